"""Section VIII-A: step responses of the crab's three active joints under computed torque."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from modurob import Model, Trajectory
from modurob.control import ComputedTorque, Controller
from modurob.scenario.presets import CRAB_STEP, PRESETS, settled
from modurob.verification.check import LeftOut
from modurob.verification.engines import Pinocchio
from papers import figures
from papers.claims import Claims

# The document prints neither set points nor gains: ours, those of the preset.
RUNS = PRESETS["meister2013-fig13"].build()
STEP = np.array(list(CRAB_STEP.values()))  # [rad]
SETTLING = RUNS["computed torque"].settling_time  # [s] within 2 %
DURATION = RUNS["computed torque"].duration  # [s]
TOLERANCE = 1e-11
DASHES = (0, (4, 4))


def reproduce(claims: Claims, model: Model) -> None:
    """Fig. 13, by computed torque (35) and by the PID of Fig. 12."""
    results = {name: scenario.run() for name, scenario in RUNS.items()}
    found, pid = (result.trajectory for result in results.values())
    law = ComputedTorque(model, settling_time=SETTLING)
    linear = response(law, found.t)
    claims.check("steps", np.abs(found.q - linear).max())
    try:
        claims.check("steps_pinocchio", np.abs(_by_pinocchio(model, law, found.t) - linear).max())
    except LeftOut as reason:
        claims.leave_out("steps_pinocchio", f"an engine is {reason}")
    for key, result in zip(("settled", "pid_settled"), results.values(), strict=True):
        claims.check(key, settled(result))
    _draw(claims, found, pid)


def response(law: ComputedTorque, t: np.ndarray) -> np.ndarray:
    """(N, 3) of e'' + K1 e' + K0 e = 0 with its double pole. [rad]"""
    pole = law.k1 / 2
    decay = np.outer(t, pole)
    return STEP * (1 - (1 + decay) * np.exp(-decay))


def _by_pinocchio(model: Model, law: Controller, t: np.ndarray) -> np.ndarray:
    """(N, 3) the same with Pinocchio's crab in the place of ours."""
    engine, n = Pinocchio(model), model.nv

    def rates(now: float, y: np.ndarray) -> np.ndarray:
        q, v = y[:n].copy(), y[n:].copy()
        return np.concatenate([v, engine.forward_dynamics(q, v, law.command(now, q, v, STEP))])

    span = (0.0, t[-1])
    return solve_ivp(
        rates, span, np.zeros(2 * n), "DOP853", t, rtol=TOLERANCE, atol=TOLERANCE
    ).y[:n].T  # fmt: skip


def _draw(claims: Claims, found: Trajectory, pid: Trajectory) -> None:
    drawn, axes = figures.figure(2, size=(8.4, 5.2), sharex=True)
    angle, torque = axes[:, 0]
    for k, joint in enumerate(found.model.joint_names):
        color = figures.PALETTE[k]
        angle.plot(found.t, found.q[:, k], color=color, lw=2.0, label=joint)
        angle.plot(pid.t, pid.q[:, k], color=color, lw=1.2, ls=DASHES)
        torque.plot(found.t, found.tau[:, k], color=color, lw=2.0)
        torque.plot(pid.t, pid.tau[:, k], color=color, lw=1.2, ls=DASHES)
        angle.axhline(STEP[k], color=figures.FAINT, lw=1.0, ls=(0, (1, 2)))
    angle.plot([], [], color=figures.INK, lw=2.0, label="computed torque")
    angle.plot([], [], color=figures.INK, lw=1.2, ls=DASHES, label="with PID")
    angle.set_ylabel("angle [rad]", color=figures.INK)
    torque.set_ylabel("torque [N m]", color=figures.INK)
    torque.set_xlabel("time [s]", color=figures.INK)
    torque.set_xlim(0, DURATION)
    figures.legend(angle, loc="upper left", bbox_to_anchor=(1.0, 1.03))
    figures.title(drawn, "The crab's three active joints, steps under computed torque")
    drawn.align_ylabels([angle, torque])
    figures.save(drawn, claims.picture("fig_13_steps.png"))
