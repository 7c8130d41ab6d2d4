"""References and the limits of joints: which are broken, and how to keep them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import positive
from modurob.control.checks import per_joint
from modurob.control.references.shapes import Function, parts
from modurob.errors import StateError
from modurob.model import Model
from modurob.reference import Reference

POINTS = 2001  # at which a reference is looked at: an oscillation of 100 periods has 20 each
SLACK = 1e-9  # relative excess over a limit that is rounding


class Slowed:
    """The same path, slower by a constant factor: rates fall by it, accelerations by its square."""

    def __init__(self, reference: Function, factor: float) -> None:
        self.reference, self.factor = reference, positive("factor", factor, "(no unit)")

    def __call__(self, t: float) -> Reference:
        q, v, a = parts(self.reference(t / self.factor))
        return Reference(q, v / self.factor, a / self.factor**2)


class Clipped:
    """A reference that stays within the joint limits: at a limit it waits, at rest."""

    def __init__(self, reference: Function, model: Model) -> None:
        self.reference, self.lower, self.upper = reference, model.lower, model.upper

    def __call__(self, t: float) -> Reference:
        q, v, a = parts(self.reference(t))
        inside = (q >= self.lower) & (q <= self.upper)
        return Reference(np.clip(q, self.lower, self.upper), v * inside, a * inside)


class Excess(NamedTuple):
    """Where a reference breaks a limit: the joint, what, the worst value, its limit, when."""

    joint: str
    what: str
    value: float
    limit: float
    time: float

    def __str__(self) -> str:
        beyond = f"{self.value:.4g} beyond {self.limit:.4g}"
        return f"{self.joint}: {self.what} {beyond} at {self.time:.4g} s"


def excesses(
    reference: Function,
    model: Model,
    duration: float,
    *,
    rate: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
) -> tuple[Excess, ...]:
    """Which limits a reference breaks, looked at in 2001 instants.

    Args:
        reference: A function of time.
        model: Whose joint limits count.
        duration: From 0 on. [s]
        rate, acceleration: Largest ones of all joints, or of each; none by default.
    """
    t = np.linspace(0.0, positive("duration", duration, "seconds"), POINTS)
    q, v, a = _sampled(reference, model, t)
    found: list[Excess] = []
    looks: Sequence[tuple[str, np.ndarray, np.ndarray]] = [
        ("position", q, model.upper),
        ("position", -q, -model.lower),
        *(
            (what, np.abs(values), per_joint(what, limit, model))
            for what, values, limit in (("rate", v, rate), ("acceleration", a, acceleration))
            if limit is not None
        ),
    ]
    for side, (what, values, most) in enumerate(looks):
        slack = SLACK * (1 + np.abs(np.where(np.isfinite(most), most, 0.0)))
        worst = values.argmax(axis=0)
        sign = -1.0 if side == 1 else 1.0  # the lower limit was looked at upside down
        for k in np.flatnonzero(values.max(axis=0) > most + slack):
            value, limit = sign * values[worst[k], k], sign * most[k]
            found.append(Excess(model.joint_names[k], what, value, limit, float(t[worst[k]])))
    return tuple(found)


def slowed(
    reference: Function,
    model: Model,
    duration: float,
    *,
    rate: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
) -> Slowed:
    """The reference, slowed down by the least factor that keeps rate and acceleration limits."""
    t = np.linspace(0.0, positive("duration", duration, "seconds"), POINTS)
    _, v, a = _sampled(reference, model, t)
    factor = 1.0
    if rate is not None:
        factor = max(factor, float(np.max(np.abs(v) / per_joint("rate", rate, model))))
    if acceleration is not None:
        ratio = np.max(np.abs(a) / per_joint("acceleration", acceleration, model))
        factor = max(factor, float(np.sqrt(ratio)))
    return Slowed(reference, factor)


def _sampled(
    reference: Function, model: Model, t: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = [parts(reference(time)) for time in t.tolist()]
    q, v, a = (np.array(x, dtype=float) for x in zip(*rows, strict=True))
    n = len(model.joint_names)
    if q.shape[-1] != n:
        raise StateError(f"the reference has {q.shape[-1]} joints, the model {n}")
    return q, v, a
