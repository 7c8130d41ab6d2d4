"""Stability certificates: a claim about a closed loop, and a check of each of its assumptions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.control.closed_loop import linearized, rehearsed, zero_dynamics
from modurob.control.controller import Controller
from modurob.control.gains import SETTLED, applied, as_matrix
from modurob.errors import choices
from modurob.friction import force as friction_force
from modurob.model import Model

STATES = 32  # random states in which the energy balance is checked
BALANCE = 1e-9  # of the power involved: rounding of sums over some ten links
STEP_S = 1e-3  # of differences of order four: truncation and rounding meet near 1e-12
SKEW = 1e-7  # of the largest inertia, per second: those differences, with room for fast joints
AT_REST = 1e-6  # [N m, N] force on a joint without a motor that still counts as rest
DECAY = 1e-6  # [1/s] slower than this counts as marginal: double zeros scatter by 1e-8
TIME_CONSTANTS = 8.0  # of the slowest error: after them torques are those of the set point
LONGEST_S = 20.0  # of a rehearsed motion
SLOW = 2.0  # times the settling time asked for
SLOW_S = 20.0  # with gains as given: longer than a run of a robot's joints


class AssumptionCheck(NamedTuple):
    """An assumption, whether it holds, and why."""

    assumption: str
    holds: bool
    why: str


@dataclass(frozen=True, eq=False)
class Certificate:
    """A claim about a closed loop, and its assumptions.

    Attributes:
        law: Name of the law.
        claim: Guaranteed when all assumptions hold.
        guaranteed: Whether they do.
        findings: Each assumption, whether it holds, and why.
        notes: Limits of the claim.
        eigenvalues: Of the error dynamics, or of the closed loop linearized at the set point; of
            one sample when `sample_time` is set. [1/s, or none]
        rate: Slowest decay of errors. [1/s]
        sample_time: [s]
    """

    law: str
    claim: str
    guaranteed: bool
    findings: tuple[AssumptionCheck, ...]
    notes: tuple[str, ...]
    eigenvalues: np.ndarray
    rate: float
    sample_time: float | None = None

    @property
    def failures(self) -> tuple[AssumptionCheck, ...]:
        """Assumptions that do not hold."""
        return tuple(finding for finding in self.findings if not finding.holds)

    def __str__(self) -> str:
        word = "guaranteed" if self.guaranteed else "NOT guaranteed"
        lines = [f"{self.law}: {word}: {self.claim}"]
        lines += [f"  {'ok' if f.holds else 'NO'}  {f.assumption}: {f.why}" for f in self.findings]
        return "\n".join([*lines, *(f"  --  {note}" for note in self.notes)])


def certify(
    law: Controller, set_point: ArrayLike | None, start: tuple[ArrayLike, ArrayLike] | None
) -> Certificate:
    """See `Controller.certificate`."""
    at = law.model.neutral()
    if set_point is not None:
        at[law._skip_q :] = law._aim(np.asarray(set_point, dtype=float), at).q
    begin = None if start is None else law._state(*start)
    eigenvalues, rate, stable = _stable(law, at)
    found = (
        stable,
        _motors(law, at),
        _set_point_held(law, at),
        _integral_carries(law, at),
        _friction(law),
        _energy(law, at) if hasattr(law, "lyapunov") else None,
        _torques(law, at, begin, rate),
    )
    findings = tuple(finding for finding in found if finding is not None)
    guaranteed = all(finding.holds for finding in findings)
    slowness = _slowness(law, rate) if guaranteed else ""
    return Certificate(
        law=law.name,
        claim=f"{_scope(law, begin is not None)}, {law.claim}{slowness}",
        guaranteed=guaranteed,
        findings=findings,
        notes=_notes(law),
        eigenvalues=eigenvalues,
        rate=rate,
        sample_time=law.sample_time,
    )


def is_decaying(rate: float) -> bool:
    """Return True if errors with this slowest decay vanish, beyond rounding. [1/s]"""
    return rate > DECAY


def _scope(law: Controller, rehearsed: bool) -> str:
    """States for which the claim is made: sampling and limits make a global one local."""
    if law.scope != "global" or law.sample_time is not None:
        return "close to the set point"
    if not law._limited:
        return "from any state"
    return "from the given start" if rehearsed else "close to the set point"


def _slowness(law: Controller, rate: float) -> str:
    """Words for errors that take far longer than the settling time asked for, or than `SLOW_S`."""
    asked, time = law.settling_time, -math.log(SETTLED) / rate
    if time < (SLOW_S if asked is None else SLOW * asked):
        return ""
    wanted = "" if asked is None else f", {asked:.3g} s asked for"
    return f", slowly: {SETTLED:.0%} of an error is left after {time:.3g} s{wanted}"


def _notes(law: Controller) -> tuple[str, ...]:
    low, high = law.mass_range
    notes = ["the model is taken to be exact"]
    if low < high:
        notes = [f"inertias of links are taken to be {low:g} to {high:g} times the model's"]
    if law.model.free_base:
        notes.append(
            "the base is taken to float: on the ground joints sag under the weight, unless the law "
            "has the forces of the ground as external wrenches"
        )
    if law.model.locked:
        notes.append(f"locked joints stay as they are: {choices(law.model.locked, 6)}")
    if law.sample_time is not None:
        late = f" and comes {law.delay:g} s late" if law.delay else ""
        notes.append(
            f"torque is held for {law.sample_time:g} s{late}: the eigenvalues include "
            "that, with the inertia at the set point"
        )
    if hasattr(law, "lyapunov"):
        notes.append("for set points; motions are followed with an error that stays")
    return tuple(notes)


# -- assumptions -----------------------------------------------------------------------------------


def _stable(law: Controller, at: np.ndarray) -> tuple[np.ndarray, float, AssumptionCheck]:
    """Eigenvalues of the error dynamics where they are linear, else at the set point."""
    error_matrix = getattr(law, "error_matrix", None)
    if error_matrix is not None and law.sample_time is None and not len(law._idle):
        values = np.linalg.eigvals(error_matrix())
        rate, where = float(-values.real.max(initial=-np.inf)), "error dynamics"
    else:
        _, values, rate = linearized(law, at)
        where = "linearized at the set point"
    word = "they grow: " if is_decaying(-rate) else "some neither grow nor decay: "
    word = "" if is_decaying(rate) else word
    why = f"{word}slowest rate {rate:.4g} 1/s"
    why += f", time constant {1 / rate:.3g} s" if is_decaying(rate) else ""
    return values, rate, AssumptionCheck(f"errors decay ({where})", is_decaying(rate), why)


def _motors(law: Controller, at: np.ndarray) -> AssumptionCheck:
    """Every joint is driven, or the motion of the others (zero dynamics) is stable."""
    name, model = "every joint has a motor", law.model
    if model.free_base:
        why = "nothing holds the base: it drifts, and its six coordinates are not controlled"
        return AssumptionCheck(name, False, why)
    if not law.passive:
        return AssumptionCheck(name, True, "fully actuated")
    rate = float(-np.linalg.eigvals(zero_dynamics(law, at)).real.max())
    without = f"no motor at {choices(law.passive)}"
    load = float(np.abs(law._gravity(at)[law._idle]).max())
    if load > AT_REST:
        why = f"{without}, which cannot rest there: {load:.3g} N m pull"
        return AssumptionCheck(name, False, why)
    if law.uses_coupling:  # judged by the eigenvalues of the closed loop
        name = "joints without a motor are reached"
        return AssumptionCheck(name, True, f"{without}; through coupling")
    why = f"{without}; slowest rate {rate:.4g} 1/s"
    if not is_decaying(rate):
        word = "unstable" if is_decaying(-rate) else "undamped"
        why = f"{without}, and with the others held its motion is {word} ({rate:.4g} 1/s)"
    return AssumptionCheck("zero dynamics decay", is_decaying(rate), why)


def _set_point_held(law: Controller, at: np.ndarray) -> AssumptionCheck | None:
    """The motors can carry the load at the set point, within the joint limits."""
    model, joints = law.model, at[law._skip_q :]
    out = (joints < model.lower) | (joints > model.upper)
    if out.any():
        why = f"not so: {choices(np.array(model.joint_names)[out])}"
        return AssumptionCheck("the set point is within the joint limits", False, why)
    if not law._limited:
        return None
    reserve = law.torque_limit - np.abs(law._gravity(at))[law._skip :]
    least = float(np.min(reserve, initial=np.inf))
    why = f"least reserve {least:.3g} N m"
    if least < 0:
        k = int(np.argmin(reserve))
        why = (
            f"'{model.joint_names[k]}' needs {law.torque_limit[k] - least:.3g} N m to rest there, "
            f"its limit is {law.torque_limit[k]:.3g}"
        )
    return AssumptionCheck("motors hold the set point", least >= 0, why)


def _friction(law: Controller) -> AssumptionCheck:
    """No dry friction: laws that cancel it use its sign at rest; others stop short of the aim."""
    model, name = law.model, "no dry friction"
    rough = model.coulomb > 0
    if not rough.any():
        drag = "viscous friction only" if np.any(model.viscous > 0) else "none in the datasheets"
        return AssumptionCheck(name, True, drag)
    why = f"dry friction at {choices(np.array(model.joint_names)[rough])} "
    kp = getattr(law, "kp", None)
    if hasattr(law, "error_matrix"):
        why += "is canceled by its datasheet; at rest its sign is not known"
    elif kp is not None and np.ndim(kp) == 1:
        stuck = float(np.max(model.coulomb / np.maximum(kp, np.finfo(float).tiny)))
        why += f"may hold it up to {stuck:.3g} rad (m) from the set point"
    else:
        why += "may hold it away from the set point"
    return AssumptionCheck(name, False, why)


def _integral_carries(law: Controller, at: np.ndarray) -> AssumptionCheck | None:
    """The limit of the integral allows the load, where no model carries it."""
    pid = getattr(law, "pid", None)
    if pid is None or hasattr(law, "error_matrix"):
        return None
    short = np.abs(law._gravity(at))[law._skip :] > pid.integral_limit
    if not short.any():
        return None
    why = f"its limit is too low at {choices(np.array(law.model.joint_names)[short])}"
    return AssumptionCheck("the integral carries the load", False, why)


def _torques(
    law: Controller,
    at: np.ndarray,
    begin: tuple[np.ndarray, np.ndarray] | None,
    rate: float,
) -> AssumptionCheck | None:
    """Torques stay within their limits on the way, rehearsed without limits."""
    if not law._limited or not law.model.nv:
        return None
    name = "torques stay within their limits"
    if begin is None:
        why = "so close to the set point; give start=(q, v) to check the way"
        return AssumptionCheck(name, True, why)
    way = rehearsed(
        law, at, *begin, LONGEST_S if rate <= 0 else min(LONGEST_S, TIME_CONSTANTS / rate)
    )
    wanted = np.abs(way.tau[:, law._skip :])
    with np.errstate(divide="ignore", invalid="ignore"):
        used = np.where(wanted > 0, wanted / law.torque_limit, 0.0)
    step, k = np.unravel_index(int(np.argmax(used)), used.shape)
    joint, most, limit = law.model.joint_names[k], wanted[step, k], law.torque_limit[k]
    why = f"at most {most:.3g} of {limit:.3g} N m ('{joint}') from the start"
    if way.diverged:
        why = f"the motion from the start diverges at {way.t[-1]:.3g} s"
    elif most > limit:
        why = f"'{joint}' needs {most:.3g} N m at {way.t[step]:.3g} s, its limit is {limit:.3g}"
    return AssumptionCheck(name, not way.diverged and bool(most <= limit), why)


def _energy(law: Any, at: np.ndarray) -> AssumptionCheck:
    """V > 0 and dV/dt = -(power of damping and friction), the latter in random states."""
    name = "energy falls (Lyapunov)"
    for what, gain in (("kp", law.kp), ("kd", law.kd)):
        matrix = as_matrix(gain)
        if not np.allclose(matrix, matrix.T):
            return AssumptionCheck(name, False, f"{what} is not symmetric")
        least = float(np.linalg.eigvalsh(matrix).min(initial=np.inf))
        if least <= 0:
            return AssumptionCheck(name, False, f"{what} is not positive definite: {least:.3g}")
    if len(law._idle):
        return AssumptionCheck(name, False, "the argument needs a motor at every joint")
    balance, skew, rng, model = 0.0, 0.0, np.random.default_rng(0), law.model
    for _ in range(STATES if model.nv else 0):
        q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
        lost = v @ (applied(law.kd, v) + friction_force(model, v))
        _, rate = law.lyapunov(q, v, at)
        size = abs(lost) + np.abs(v) @ np.abs(model.mass_matrix(q)) @ np.abs(v) + abs(rate)
        balance, skew = max(balance, abs(rate + lost) / size), max(skew, _skewness(model, q, v))
    holds = bool(balance < BALANCE and skew < SKEW)
    why = (
        f"dV/dt = -v^T Kd v - friction to {balance:.0e} of the power and dM/dt - 2 C skew to "
        f"{skew:.0e}, in {STATES} random states"
    )
    return AssumptionCheck(name, holds, why if holds else f"not so: {why}")


def _skewness(model: Model, q: np.ndarray, v: np.ndarray) -> float:
    """Largest entry of dM/dt - C - C^T, of the largest of M; dM/dt by differences of order four."""
    M = [model.mass_matrix(model.integrate(q, k * STEP_S * v)) for k in (-2, -1, 1, 2)]
    dM = (M[0] - 8 * M[1] + 8 * M[2] - M[3]) / (12 * STEP_S)
    C = model.coriolis_matrix(q, v)
    return float(np.abs(dM - C - C.T).max() / np.abs(M[1]).max())
