"""Chapter 6: feedback linearization, PID and pole placement on the double pendulum."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.linalg import expm
from scipy.optimize import least_squares

from modurob import Model, Trajectory, examples, simulate
from modurob.control import ComputedTorque, Controller, PidLinearized, PolePlacement, Reference
from modurob.scenario.presets import NEAR, PID_GAINS, POLES, PRESETS
from papers import figures
from papers.claims import Claims

PID, PLACED = (PRESETS[f"gutenkunst2012-fig6.{k}"].build() for k in (4, 6))
KP, KI, KD = (PID_GAINS[name] for name in ("kp", "ki", "kd"))
PRINTED = ((5.0, 15.0), (6.0, 50.0))  # (6.43): of position, of velocity
BOTH, FIRST, SECOND = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])  # [rad] unit steps
TOLERANCE = 1e-11
SAMPLES = (8e-3, 4e-3, 2e-3, 1e-3)  # [s] of the PID: a law with a memory has a clock
SHORT, POLE_TIME, PRINTED_TIME = 4.0, PLACED["pole placement"].duration, 12.0  # [s]
RECORD = PID["PID"].record or 0.0  # [s] a multiple of all samples


def reproduce(claims: Claims) -> None:
    """Both controllers, compared with the linear systems they make of the pendulum."""
    claims.working_on("control of the double pendulum")
    model = examples.double_pendulum().model("physical")
    claims.check("linearized", _linearized(model))
    _pid(claims, model)
    _placed(claims, model)


def _linearized(model: Model) -> list[float]:
    """How far (6.23) is from the law's torque, and (6.24) from what it does."""
    rng = np.random.default_rng(6)
    q, (v, a) = rng.uniform(-2, 2, 2), rng.standard_normal((2, 2))
    M, C, N = model.closed_form(q, v)
    tau = PolePlacement(model, poles=POLES).command(0.0, q, v, Reference(q, v, a))
    found = tau - (M @ a + C @ v + N), model.forward_dynamics(q, v, tau) - a
    return [float(np.abs(each).max()) for each in found]


# -- PID -------------------------------------------------------------------------------------------


def _pid(claims: Claims, model: Model) -> None:
    """The law has a clock; what it does between samples goes with the sample time, to zero."""
    deviations, ratios, coupling = [], [], []
    for step in (BOTH, FIRST, SECOND):
        runs = [_sampled(model, step, sample, SHORT) for sample in SAMPLES]
        linear = _pid_linear(runs[0].t, step)
        apart = [np.abs(run.q - linear).max() for run in runs]
        ratios.append(apart[-2] / apart[-1])
        limit = extrapolated([run.q for run in runs])
        deviations.append(np.abs(limit - linear).max())
        coupling.append(np.abs(limit[:, step == 0]).max(initial=0.0))
    claims.check("pid", max(deviations))
    claims.check("pid_coupling", max(coupling))
    claims.check("pid_order", ratios)
    found = PID["PID"].run().trajectory
    known = np.roots([1, KD, KP, KI])
    apart = [_off(measured_poles(found.t, 1 - q, 3), known) for q in found.q.T]
    claims.check("pid_poles", max(apart))
    _draw(
        claims, "fig_6_4_pid.png", "Feedback linearization and PID", found,
        _pid_linear(found.t, BOTH),
    )  # fmt: skip


def _sampled(model: Model, step: np.ndarray, sample: float, duration: float) -> Trajectory:
    law = PidLinearized(model, KP, KI, KD, sample_time=sample)
    return simulate(
        model, None, None, duration, law, "RK4", dt=sample, reference=step, record=RECORD
    )


def _pid_linear(t: np.ndarray, step: np.ndarray) -> np.ndarray:
    """(N, 2) of e''' + Kd e'' + Kp e' + Ki e = 0, by the matrix exponential."""
    once = expm(np.array([[0, 1, 0], [-KP, -KD, -KI], [1, 0, 0]]) * (t[1] - t[0]))
    e, found = np.array([1.0, 0.0, 0.0]), []
    for _ in t:
        found.append(1 - e[0])
        e = once @ e
    return np.outer(found, step)


def extrapolated(values: list[np.ndarray]) -> np.ndarray:
    """The limit of a sequence whose steps halve, the error a series in the step (Richardson)."""
    for order in range(1, len(values)):
        values = [fine + (fine - coarse) / (2**order - 1) for coarse, fine in pairwise(values)]
    return values[0]


# -- pole placement --------------------------------------------------------------------------------


def _placed(claims: Claims, model: Model) -> None:
    law = PolePlacement(model, poles=POLES)
    claims.check("gains", np.stack([law.k0, law.k1], axis=1))
    both = PLACED["pole placement"].run().trajectory
    alone = [_stepped(model, law, step, POLE_TIME) for step in (FIRST, SECOND)]
    linear = _placed_linear(both.t)
    claims.check("poles", np.abs(both.q - linear).max())
    claims.check("coupling", max(np.abs(run.q[:, 1 - k]).max() for k, run in enumerate(alone)))
    poles = [measured_poles(both.t, 1 - q, 2) for q in both.q.T]
    apart = [_off(found, np.array(known)) for found, known in zip(poles, POLES, strict=True)]
    claims.check("poles_measured", max(apart))
    times = _times(both)
    claims.check("faster", times[0] / times[1])
    printed = _stepped(model, ComputedTorque(model, *PRINTED), BOTH, PRINTED_TIME)
    times = _times(printed)
    claims.check("printed", times[1] / times[0])
    headline = "Feedback linearization and pole placement"
    _draw(claims, "fig_6_6_poles.png", headline, both, linear)
    corrected = _stepped(model, law, BOTH, PRINTED_TIME)
    _draw_printed(claims, corrected, printed)


def _stepped(model: Model, law: Controller, step: np.ndarray, duration: float) -> Trajectory:
    return simulate(
        model, None, None, duration, law, "DOP853", rtol=TOLERANCE, atol=TOLERANCE,
        reference=step, record=RECORD,
    )  # fmt: skip


def _placed_linear(t: np.ndarray) -> np.ndarray:
    """(N, 2) the sums of exponentials that the poles promise."""
    return np.stack(
        [1 + (p2 * np.exp(p1 * t) - p1 * np.exp(p2 * t)) / (p1 - p2) for p1, p2 in POLES], axis=1
    )


def measured_poles(t: np.ndarray, error: np.ndarray, order: int) -> np.ndarray:
    """(order,) poles whose exponentials fit a response best, found without knowing them. [1/s]"""

    def missed(polynomial: np.ndarray) -> np.ndarray:
        modes = np.exp(np.outer(t, np.roots([1.0, *polynomial])))
        return (error - modes @ np.linalg.lstsq(modes, error)[0]).real

    found = least_squares(missed, np.poly(-(2.0 ** np.arange(order)))[1:], xtol=1e-12)
    return np.roots([1.0, *found.x])


def _off(found: np.ndarray, known: np.ndarray) -> float:
    """Largest relative distance of a pole from the closest found one."""
    return max(np.abs(found - pole).min() / abs(pole) for pole in known)


def _times(found: Trajectory) -> list[float]:
    """When each joint has come close to its goal, between samples by a line. [s]"""
    return [float(np.interp(NEAR, q, found.t)) for q in found.q.T]


# -- pictures --------------------------------------------------------------------------------------


def _draw(claims: Claims, name: str, headline: str, found: Trajectory, linear: np.ndarray) -> None:
    drawn, axes = figures.figure(1, size=(8.4, 3.4))
    plane = axes[0, 0]
    for k, width in ((1, 5.0), (0, 2.2)):  # where both are one line, the wider shows
        plane.plot(
            found.t, found.q[:, k], color=figures.PALETTE[k], lw=width, label=f"joint {k + 1}"
        )
    for k in range(2):
        label = "linear system" if k else None
        plane.plot(found.t, linear[:, k], color=figures.INK, lw=1.1, ls=(0, (4, 4)), label=label)
    _finish(claims, name, headline, drawn, found.t[-1])


def _draw_printed(claims: Claims, corrected: Trajectory, printed: Trajectory) -> None:
    """What the gains of (6.43) would do, beside the ones that the poles ask for."""
    drawn, axes = figures.figure(1, size=(8.4, 3.4))
    plane = axes[0, 0]
    law = PolePlacement(corrected.model, poles=POLES)
    for run, gains, words, style in (
        (corrected, (law.k0, law.k1), "", "-"),
        (printed, PRINTED, " (as printed)", (0, (4, 2))),
    ):
        for k, (k0, k1) in enumerate(zip(*gains, strict=True)):
            label = f"joint {k + 1}: {k0:g} and {k1:g}{words}"
            plane.plot(run.t, run.q[:, k], color=figures.PALETTE[k], lw=2.0, ls=style, label=label)
    headline = "Pole placement: gains of position and velocity, and swapped as in (6.43)"
    _finish(claims, "fig_6_6_as_printed.png", headline, drawn, printed.t[-1])


def _finish(claims: Claims, name: str, headline: str, drawn: figures.Figure, end: float) -> None:
    (plane,) = drawn.axes
    plane.axhline(1.0, color=figures.FAINT, lw=1.0, ls=(0, (1, 2)))
    plane.set_xlim(0, end)
    plane.set_xlabel("time [s]", color=figures.INK)
    plane.set_ylabel("angle [rad]", color=figures.INK)
    figures.legend(plane, loc="lower right")
    figures.title(drawn, headline)
    figures.save(drawn, claims.picture(name))
