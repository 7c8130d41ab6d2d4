"""Stability certificates: what is guaranteed, under which assumptions, and which of them fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.control.assumptions import (
    Finding,
    friction,
    integral_carries,
    is_decaying,
    motors,
    set_point_held,
    torques,
)
from modurob.control.closed_loop import linearized
from modurob.control.controller import Controller
from modurob.control.gains import applied, as_matrix
from modurob.errors import choices
from modurob.friction import force as friction_force
from modurob.model import Model

STATES = 32  # random states at which the energy balance is looked at
BALANCE = 1e-9  # of the power involved: rounding of sums over some ten links
STEP = 1e-3  # [s] of differences of order four: truncation and rounding meet near 1e-12
SKEW = 1e-7  # of the largest inertia, per second: those differences, with room for fast joints


class Eigen(NamedTuple):
    """Eigenvalues and the slowest decay. [1/s]"""

    values: np.ndarray
    rate: float


@dataclass(frozen=True, eq=False)
class Certificate:
    """A claim about a closed loop, and what it rests on.

    Attributes:
        law: Name of the law.
        claim: What is guaranteed when all assumptions hold.
        guaranteed: Whether they do.
        findings: Each assumption, whether it holds, and why.
        notes: What the claim does not speak of.
        eigenvalues: Of the error dynamics, or of the closed loop linearised at the set point; of
            one sample when `sample_time` is set. [1/s, or none]
        rate: Slowest decay of errors. [1/s]
        sample_time: [s]
    """

    law: str
    claim: str
    guaranteed: bool
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    eigenvalues: np.ndarray
    rate: float
    sample_time: float | None = None

    @property
    def failures(self) -> tuple[Finding, ...]:
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
    model = law.model
    at = model.neutral()
    if set_point is not None:
        at[law._skip_q :] = law._aim(np.asarray(set_point, dtype=float), at).q
    begin = None if start is None else law._state(*start)
    eigen, stable = _stable(law, at)
    findings = [
        stable,
        motors(law, at),
        set_point_held(law, at),
        integral_carries(law, at),
        friction(law),
    ]
    if hasattr(law, "lyapunov"):
        findings.append(_energy(law, at))
    findings.append(torques(law, at, begin, eigen.rate))
    kept = tuple(finding for finding in findings if finding is not None)
    return Certificate(
        law=law.name,
        claim=f"{_scope(law, begin is not None)}, {law.claim}",
        guaranteed=all(finding.holds for finding in kept),
        findings=kept,
        notes=_notes(law),
        eigenvalues=eigen.values,
        rate=eigen.rate,
        sample_time=law.sample_time,
    )


def _stable(law: Controller, at: np.ndarray) -> tuple[Eigen, Finding]:
    """Eigenvalues: of the error dynamics where they are linear, else at the set point."""
    error_matrix = getattr(law, "error_matrix", None)
    exact = error_matrix is not None and law.sample_time is None and not len(law._idle)
    if exact and error_matrix is not None:
        values = np.linalg.eigvals(error_matrix())
        eigen = Eigen(values, float(-values.real.max(initial=-np.inf)))
        name = "errors decay (error dynamics)"
    else:
        near = linearized(law, at)
        eigen = Eigen(near.eigenvalues, near.rate)
        name = "errors decay (linearised at the set point)"
    if is_decaying(eigen.rate):
        return eigen, Finding(name, True, f"slowest rate {eigen.rate:.4g} 1/s")
    word = "they grow" if is_decaying(-eigen.rate) else "some neither grow nor decay"
    return eigen, Finding(name, False, f"{word}: slowest rate {eigen.rate:.4g} 1/s")


def _scope(law: Controller, rehearsed: bool) -> str:
    """For which states the claim is made: a global one shrinks with sampling and limits."""
    if law.scope != "global" or law.sample_time is not None:
        return "close to the set point"
    if not law._limited:
        return "from any state"
    return "from the given start" if rehearsed else "close to the set point"


def _energy(law: Any, at: np.ndarray) -> Finding:
    """V > 0 and dV/dt = -(power of damping and friction), the latter looked at in random states."""
    name = "energy falls (Lyapunov)"
    for what, gain in (("kp", law.kp), ("kd", law.kd)):
        matrix = as_matrix(gain)
        if not np.allclose(matrix, matrix.T):
            return Finding(name, False, f"{what} is not symmetric")
        least = float(np.linalg.eigvalsh(matrix).min(initial=np.inf))
        if least <= 0:
            return Finding(name, False, f"{what} is not positive definite: {least:.3g}")
    if len(law._idle):
        return Finding(name, False, "the argument needs a motor at every joint")
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
    return Finding(name, holds, why if holds else f"not so: {why}")


def _skewness(model: Model, q: np.ndarray, v: np.ndarray) -> float:
    """Largest entry of dM/dt - C - C^T, of the largest of M; dM/dt by differences of order four."""
    M = [model.mass_matrix(model.integrate(q, k * STEP * v)) for k in (-2, -1, 1, 2)]
    dM = (M[0] - 8 * M[1] + 8 * M[2] - M[3]) / (12 * STEP)
    C = model.coriolis_matrix(q, v)
    return float(np.abs(dM - C - C.T).max() / np.abs(M[1]).max())


def _notes(law: Controller) -> tuple[str, ...]:
    notes = ["the model is taken to be exact"]
    if law.model.locked:
        notes.append(f"locked joints stay as they are: {choices(law.model.locked, 6)}")
    if law.sample_time is not None:
        late = f" and comes {law.delay:g} s late" if law.delay else ""
        notes.append(
            f"torque is held for {law.sample_time:g} s{late}: that is in the eigenvalues, with the "
            "inertia at the set point"
        )
    if hasattr(law, "lyapunov"):
        notes.append("for set points; motions are followed with an error that stays")
    return tuple(notes)
