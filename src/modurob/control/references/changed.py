"""References that are changed: slowed, clipped to limits, or carried to another body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import per_joint, positive
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.joint_map import JointMap
from modurob.reference import Reference

Function = Callable[[float], Any]  # of time, to something with q, v and a
POINTS = 2001  # at which a reference is evaluated: 20 for each of 100 periods
SLACK = 1e-9  # relative excess over a limit that is rounding


class Slowed:
    """The same path, slower by a constant factor: rates fall by it, accelerations by its square."""

    def __init__(self, reference: Function, factor: float) -> None:
        self.reference, self.factor = reference, positive("factor", factor, "(no unit)")

    def __call__(self, t: float) -> Reference:
        q, v, a = _parts(self.reference(t / self.factor))
        return Reference(q, v / self.factor, a / self.factor**2)


class Clipped:
    """A reference that stays within the joint limits: at a limit it waits, at rest."""

    def __init__(self, reference: Function, model: Model) -> None:
        self.reference, self.lower, self.upper = reference, model.lower, model.upper

    def __call__(self, t: float) -> Reference:
        q, v, a = _parts(self.reference(t))
        inside = (q >= self.lower) & (q <= self.upper)
        return Reference(np.clip(q, self.lower, self.upper), v * inside, a * inside)


class Carried:
    """A reference of one body for another: joints of both go on, added ones stay at `hold`.

    Args:
        reference: A function of time for the old body.
        old, new: The two bodies.
        hold: (n,) place of the new body's joints. [rad, m]
    """

    def __init__(self, reference: Function, old: Model, new: Model, hold: ArrayLike) -> None:
        joints = JointMap(old, new)
        self.reference, self._count = reference, len(old.joint_names)
        self.hold = per_joint("hold", hold, new.joint_names)
        self._kept_old, self._kept_new = joints.kept_old, joints.kept_new

    def __call__(self, t: float) -> Reference:
        q, v, a = _parts(self.reference(t))
        if not len(q) == len(v) == len(a) == self._count:
            given = f"{len(q)}, {len(v)} and {len(a)}"
            raise StateError(f"q, v and a have {given} joints, the body before had {self._count}")
        result = Reference(self.hold.copy(), np.zeros(len(self.hold)), np.zeros(len(self.hold)))
        for new, old in zip(result, (q, v, a), strict=True):
            new[self._kept_new] = old[self._kept_old]
        return result


class Excess(NamedTuple):
    """A limit that a reference exceeds: joint, quantity, worst value, limit, time."""

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
    """Return the limits that a reference exceeds, evaluated at 2001 instants.

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
            (what, np.abs(values), per_joint(what, limit, model.joint_names, least=0.0))
            for what, values, limit in (("rate", v, rate), ("acceleration", a, acceleration))
            if limit is not None
        ),
    ]
    for side, (what, values, most) in enumerate(looks):
        slack = SLACK * (1 + np.abs(most))
        worst = values.argmax(axis=0)
        sign = -1.0 if side == 1 else 1.0  # lower limits were compared with the sign changed
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
    joints, factor = model.joint_names, 1.0
    if rate is not None:
        factor = max(factor, float(np.max(np.abs(v) / per_joint("rate", rate, joints, least=0.0))))
    if acceleration is not None:
        ratio = np.max(np.abs(a) / per_joint("acceleration", acceleration, joints, least=0.0))
        factor = max(factor, float(np.sqrt(ratio)))
    return Slowed(reference, factor)


def _sampled(
    reference: Function, model: Model, t: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = [_parts(reference(time)) for time in t.tolist()]
    q, v, a = (np.array(x, dtype=float) for x in zip(*rows, strict=True))
    n = len(model.joint_names)
    if q.shape[-1] != n:
        raise StateError(f"the reference has {q.shape[-1]} joints, the model {n}")
    return q, v, a


def _parts(reference: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and a as arrays."""
    return np.asarray(reference.q), np.asarray(reference.v), np.asarray(reference.a)
