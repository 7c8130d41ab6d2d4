"""Sections VIII-B and C: the same steps when only noisy hinge angles are measured; Fig. 15."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import expm, solve_discrete_are

from modurob import Model, Trajectory, simulate
from modurob.control import ComputedTorque
from modurob.estimation import Ekf
from modurob.scenario.presets import CRAB_EKF, FORGOTTEN_S, crab_filter
from papers import figures
from papers.claims import Claims
from papers.meister2013.control import SETTLING, STEP

Q, W, R, V = (np.diag(np.array(CRAB_EKF[name])) for name in "QWRV")  # (52) to (55)

# The document prints neither sample time nor noise nor how wrong the first estimate is: ours.
SCENARIO = crab_filter()
SAMPLE = SCENARIO.sample_time  # [s]
SIGMA = SCENARIO.noise_q  # [rad] of the measured angles
START = np.array(CRAB_EKF["q"])  # [rad] the first estimate; the crab starts at zero
DURATION, SEEDS = SCENARIO.duration, 5


def reproduce(claims: Claims, model: Model) -> None:
    """The filter as Fig. 14 has it, and as (37) has it."""
    ekf = _filter(model)
    claims.check("matrices", [ekf.Q, ekf.W, ekf.R, ekf.V])
    claims.check("riccati", _riccati(model))
    runs = claims.executor.map(_filtered, range(SEEDS))
    claims.check("angles", _gain_of_angles(runs))
    claims.check("rates", _gain_of_rates(runs))
    claims.check("held", _distance(runs))
    smaller = {name: SIGMA**2 * np.array(CRAB_EKF[name]) for name in ("Q", "R", "P")}
    scaled = crab_filter(ekf=CRAB_EKF | {k: x.tolist() for k, x in smaller.items()}).run()
    found, scaled = runs[0].channels, scaled.trajectory.channels
    apart = [np.abs(scaled[name] - found[name]).max() for name in ("estimate_q", "estimate_v")]
    claims.check("scaled", max(apart))
    watched = claims.executor.map(partial(_watched, model), range(SEEDS))
    claims.check("watched_angles", _gain_of_angles(watched))
    claims.check("watched_rates", _gain_of_rates(watched))
    _draw(claims, runs[0])


def _filtered(seed: int) -> Trajectory:
    """The preset with noise of this seed."""
    return crab_filter(seed=seed).run().trajectory


def _filter(model: Model, start: np.ndarray = START) -> Ekf:
    return Ekf(model, dt=SAMPLE, Q=Q, R=R, W=W, V=V, q=start, P=CRAB_EKF["P"])


class _Watched:
    """A law that sees the true state, and a filter beside it that predicts the closed loop."""

    sample_time = SAMPLE

    def __init__(self, model: Model, seed: int) -> None:
        self.law = ComputedTorque(model, settling_time=SETTLING, sample_time=SAMPLE)
        self.ekf, self.rng = _filter(model), np.random.default_rng(seed)
        self.seen: dict[str, np.ndarray] = {}

    def command(self, t: float, q: np.ndarray, v: np.ndarray, reference: Any) -> np.ndarray:
        """The law's torque; the filter takes a noisy measurement and looks ahead."""
        y = q + SIGMA * self.rng.standard_normal(len(q))
        self.ekf.correct(y)
        self.seen = {"measured_q": y, "estimate_q": self.ekf.q, "estimate_v": self.ekf.v}
        self.ekf.predict_closed_loop(self.law, t, reference)
        return self.law.command(t, q, v, reference)

    def record(self) -> dict[str, np.ndarray]:
        """Measurement and estimate."""
        return self.seen


def _watched(model: Model, seed: int) -> Trajectory:
    return simulate(
        model, None, None, DURATION, _Watched(model, seed), "RK4", dt=SAMPLE, reference=STEP,
        record=SAMPLE,
    )  # fmt: skip


# -- what is looked at -----------------------------------------------------------------------------


def _riccati(model: Model) -> float:
    """What ten samples at rest change in the covariance that the Riccati equation calls final."""
    A, H = expm(SAMPLE * _rates(model, STEP)), np.eye(model.nv, 2 * model.nv)
    final = solve_discrete_are(A.T, H.T, W @ Q @ W.T, V @ R @ V.T)
    ekf = _filter(model, start=STEP)
    ekf.P = final
    for _ in range(10):
        ekf.correct(STEP)
        ekf.predict(model.gravity_torque(STEP))
    return float(np.abs(ekf.P - final).max() / np.abs(final).max())


def _rates(model: Model, q: np.ndarray) -> np.ndarray:
    """(2n, 2n) F of d(dq, dv)/dt = F (dq, dv) around a state at rest, by central differences."""
    n, h = model.nv, 1e-6
    pull = [model.gravity_torque(q + h * x) - model.gravity_torque(q - h * x) for x in np.eye(n)]
    F = np.zeros((2 * n, 2 * n))
    F[:n, n:] = np.eye(n)
    F[n:, :n] = -np.linalg.solve(model.mass_matrix(q), np.array(pull).T / (2 * h))
    return F


def _gain_of_angles(runs: list[Trajectory]) -> float:
    """Noise of the angles, in errors of their estimates; of the worst joint."""
    noise = [run.channels["measured_q"] - run.q for run in runs]
    left = [run.channels["estimate_q"] - run.q for run in runs]
    return float((_rms(noise, FORGOTTEN_S) / _rms(left, FORGOTTEN_S)).min())


def _gain_of_rates(runs: list[Trajectory]) -> float:
    """Errors of rates from differences of angles, in errors of the estimates; worst joint."""
    slopes = [np.gradient(run.channels["measured_q"], SAMPLE, axis=0) - run.v for run in runs]
    left = [run.channels["estimate_v"] - run.v for run in runs]
    return float((_rms(slopes, FORGOTTEN_S) / _rms(left, FORGOTTEN_S)).min())


def _distance(runs: list[Trajectory]) -> float:
    """Of the true angles from the set points once the step is over; of the worst joint. [rad]"""
    return float(_rms([run.q - STEP for run in runs], 2 * SETTLING).max())


def _rms(values: list[np.ndarray], begin: float) -> np.ndarray:
    """(3,) root mean squares of (N, 3) values, from a time on."""
    late = np.concatenate([each[round(begin / SAMPLE) :] for each in values])
    return np.sqrt(np.mean(late**2, axis=0))


# -- picture ---------------------------------------------------------------------------------------


def _draw(claims: Claims, found: Trajectory) -> None:
    """Fig. 15: noisy output, true states, estimated states, error; angles left, rates right."""
    drawn, axes = figures.figure(4, 2, size=(10.0, 8.6), sharex=True)
    seen, t = found.channels, found.t
    rows = (
        ("measured", seen["measured_q"], None),
        ("true", found.q, found.v),
        ("estimated", seen["estimate_q"], seen["estimate_v"]),
        ("error", found.q - seen["estimate_q"], found.v - seen["estimate_v"]),
    )
    for planes, (word, angles, rates) in zip(axes, rows, strict=True):
        for plane, values, unit in zip(planes, (angles, rates), ("[rad]", "[rad/s]"), strict=True):
            if values is None:
                plane.axis("off")
                plane.text(0.5, 0.5, "rates are not measured", transform=plane.transAxes,
                           ha="center", color=figures.FAINT)  # fmt: skip
                continue
            for k, joint in enumerate(found.model.joint_names):
                plane.plot(t, values[:, k], color=figures.PALETTE[k], lw=1.5, label=joint)
            plane.set_ylabel(f"{word} {unit}", color=figures.INK)
    for plane, word in zip(axes[0], ("angles", "rates"), strict=True):
        plane.set_title(word, loc="left", color=figures.INK, fontsize=11)
    for plane in axes[-1]:
        plane.set_xlabel("time [s]", color=figures.INK)
        plane.set_xlim(0, DURATION)
    drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3,
                 frameon=False, labelcolor=figures.INK, fontsize=9)  # fmt: skip
    figures.title(drawn, "The crab controlled by estimates of an extended Kalman filter")
    for column in axes.T:
        drawn.align_ylabels(list(column))
    figures.save(drawn, claims.picture("fig_15_ekf.png"))
