"""Base of gaits: a reference for every joint at every time, twice differentiable."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import Numbers, generator, not_negative, per_joint, real_array
from modurob.errors import StateError, UnknownNameError, choices
from modurob.gaits.body import Edges, checked_edges, neighbors, within_limits
from modurob.model import Model
from modurob.quintic import Curve, blend
from modurob.reference import Reference

G = TypeVar("G", bound="Gait")
GIVEN_BY_BODY = ("joints", "edges", "depth", "rng")


class Gait(ABC):
    """A function of time, ``gait(t) -> Reference``, with continuous acceleration.

    Every gait is ``q_i(t) = offset_i + amplitude_i s(t) w_i(t)``, with a swing w between -1 and 1
    and a ramp s from 0 to 1. So no joint leaves offset ± amplitude, whatever w is.

    A subclass is one small file with a `swing`; the decorator `register` lists it.

    Attributes:
        name: What users call this kind of gait.
        random: Whether the constructor takes an `rng`.
        joints: Names of the joints, in the order of the columns.
        amplitude, offset: (n,) [rad, m]
        ramp: Seconds from rest to full swing; 0 for none.
        prismatic: (n,) which joints slide, where a model said so.
    """

    name: ClassVar[str]
    random: ClassVar[bool] = False
    prismatic: np.ndarray | None = None

    def __init__(
        self,
        joints: Sequence[str],
        amplitude: Numbers,
        *,
        offset: Numbers = 0.0,
        ramp: float = 0.0,
    ) -> None:
        self.joints = checked_joints(joints)
        self.amplitude = per_joint("amplitude", amplitude, self.joints)
        self.offset = per_joint("offset", offset, self.joints)
        self.ramp = not_negative("ramp", ramp, "seconds")

    @classmethod
    def for_model(
        cls,
        model: Model,
        *,
        amplitude: Numbers | None = None,
        offset: Numbers | None = None,
        **settings: Any,
    ) -> Self:
        """A gait for all joints of a model, within their limits.

        Columns are those of `model.joint_names`: a free base has none. Amplitudes that are too
        large for a joint are scaled down, never clipped, so the motion keeps its form.

        Args:
            amplitude: One number, (n,), or numbers by joint (joints not named hold still); by
                default half the way to the next limit, 0.5 rad or 0.05 m where there is none, and
                nothing for virtual joints of the base. A negative one mirrors the joint. [rad, m]
            offset: Middle of the motion; by default the middle of the limits, else zero. [rad, m]
            settings: Of this kind of gait. Properties of the body, such as which joints
                are neighbors, are read from the model unless given.
        """
        if not isinstance(model, Model):
            raise StateError(
                f"for_model takes a model such as organism.model(), got {type(model).__name__}"
            )
        center, swing = within_limits(model, offset, amplitude)
        given = {**cls.body_settings(model), **settings}
        gait = cls(model.joint_names, swing, offset=center, **given)
        gait.prismatic = model.prismatic
        return gait

    @classmethod
    def body_settings(cls, model: Model) -> dict[str, Any]:
        """The settings that follow from the body."""
        return {}

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """Parameters of this kind that a user may choose, with their defaults."""
        known = inspect.signature(cls).parameters
        return {name: p.default for name, p in known.items() if name not in GIVEN_BY_BODY}

    @abstractmethod
    def swing(self, t: np.ndarray) -> Curve:
        """The swing w with its two derivatives, (m, n) each, at times t (m,) from 0 on. [s]"""

    @property
    def period(self) -> float | None:
        """Seconds after which the motion repeats from `settled` on; None if it never does."""
        return None

    @property
    def settled(self) -> float:
        """Time from which on the motion has its `period`. [s]"""
        return self.ramp

    def __call__(self, t: ArrayLike) -> Reference:
        """The reference at one time or at an array of times (...). [s]

        With a ramp, the joints rest at `offset` until t = 0 and start from there without a jerk:
        v = a = 0. Without one, the gait begins at t = 0 in full motion.
        """
        times = checked_times(t, resting=self.ramp > 0)
        flat = times.reshape(-1)
        w, dw, ddw = self.swing(np.maximum(flat, 0.0))
        if flat.min(initial=self.ramp) < self.ramp:
            s, ds, dds = (part[:, None] for part in blend(flat, self.ramp))
            w, dw, ddw = s * w, ds * w + s * dw, dds * w + 2 * ds * dw + s * ddw
        shape = (*times.shape, len(self.joints))
        q = self.offset + self.amplitude * w
        v, a = self.amplitude * dw, self.amplitude * ddw
        return Reference(q.reshape(shape), v.reshape(shape), a.reshape(shape))

    def __repr__(self) -> str:
        count = "1 joint" if len(self.joints) == 1 else f"{len(self.joints)} joints"
        return f"<{type(self).__name__} gait of {count}>"


GAITS: dict[str, type[Gait]] = {}  # by name; the command line and the studio offer these


def register(kind: type[G]) -> type[G]:
    """List a class as a kind of gait; a decorator."""
    GAITS[kind.name] = kind
    return kind


def gait_class(name: object) -> type[Gait]:
    """Return the kind of gait with this name, or raise an error that lists the names."""
    if isinstance(name, str) and name in GAITS:
        return GAITS[name]
    raise UnknownNameError(f"no gait {name!r}: gaits are {choices(GAITS)}")


class Synchronizing(Gait):
    """A gait of coupled joints that synchronize by themselves.

    Attributes:
        logarithmic: Whether its measures are best seen on a logarithmic scale.
        reach: Of the random first values.
        edges: (m, 2) indices of coupled joints.
        start: (n,) first values of the joints.
    """

    random = True
    logarithmic: ClassVar[bool] = False
    reach: ClassVar[float] = 1.0

    def __init__(
        self,
        joints: Sequence[str],
        amplitude: Numbers,
        *,
        edges: Edges,
        offset: Numbers,
        start: Numbers | None,
        rng: np.random.Generator | None,
        ramp: float,
    ) -> None:
        super().__init__(joints, amplitude, offset=offset, ramp=ramp)
        self.edges = checked_edges(edges, self.joints)
        if start is None:
            random = generator(rng, "a random start", seed=0)
            start = random.uniform(-self.reach, self.reach, len(self.joints))
        self.start = per_joint("start", start, self.joints)

    @classmethod
    def body_settings(cls, model: Model) -> dict[str, Any]:
        return {"edges": neighbors(model)}

    @abstractmethod
    def synchrony(self, t: ArrayLike) -> dict[str, np.ndarray]:
        """Measures (...) of synchronization at times t (...), by their names."""


def checked_joints(joints: Sequence[str]) -> tuple[str, ...]:
    """Names of joints, none of them twice."""
    if isinstance(joints, str) or not all(isinstance(name, str) for name in joints):
        raise StateError(f"joints are given by their names, such as model.joint_names: {joints!r}")
    if len(set(joints)) < len(joints):
        twice = sorted({name for name in joints if list(joints).count(name) > 1})
        raise StateError(f"joints are there twice: {choices(twice)}")
    return tuple(joints)


def checked_times(t: ArrayLike, resting: bool = False) -> np.ndarray:
    """(...) finite times; from 0 on unless the gait rests before. [s]"""
    times = real_array("t", t)
    if not resting and times.min(initial=0.0) < 0:
        raise StateError(
            f"the gait begins at t = 0, got t = {times.min():g}; with a ramp it rests before"
        )
    return times
