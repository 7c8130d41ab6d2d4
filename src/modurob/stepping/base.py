"""Integrators: steps of an equation of motion from one time to another."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from modurob.errors import StateError
from modurob.friction import substeps
from modurob.stepping.motion import EquationOfMotion

ADVICE = "take Radau or BDF, or SemiImplicitEuler if it is friction"
COUNT_TOLERANCE = 1e-9  # of a step, by which an interval may exceed n steps
MOST_STEPS = 1e9  # some hours of the smallest body; more is a mistake in dt or in the duration


def check_step_count(duration: float, step: float) -> None:
    """Refuse a duration that takes too many steps."""
    if duration / step > MOST_STEPS:
        raise StateError(
            f"{duration:g} s in steps of dt = {step:g} s are {duration / step:.3g} steps; the most "
            f"is {MOST_STEPS:g}: give a shorter duration, or dt = {duration / MOST_STEPS:.2g} s or "
            "more"
        )


class StepSettings(NamedTuple):
    """Fineness of an integration.

    Attributes:
        rtol, atol: Error that adaptive methods allow in a step, relative and absolute.
        dt: Step of fixed-step methods, largest step of adaptive ones. [s]
        substeps: Equal parts of each step of fixed-step methods; by default as many as the fastest
            known decay or oscillation needs.
    """

    rtol: float
    atol: float
    dt: float
    substeps: int | None = None


class IntegratorStep(NamedTuple):
    """A state that was reached; its arrays may be overwritten by the next step."""

    t: float
    q: np.ndarray
    v: np.ndarray
    dense: Callable[[np.ndarray], Any] | None = None  # times (n,) -> states (nq + nv, n) within it


class Integrator(ABC):
    """A method. `simulate` takes a subclass as it is, or the name of one in `INTEGRATORS`.

    Attributes:
        name: For users and messages; that of the class by default.
        order: Of convergence with the step; None when it varies.
        batches: Whether it takes many states at once.
    """

    name: ClassVar[str]
    order: ClassVar[int | None] = None
    batches: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        cls.name = cls.__dict__.get("name", cls.__name__)

    def __init__(self, motion: EquationOfMotion, settings: StepSettings) -> None:
        self.motion, self.settings = motion, settings

    @abstractmethod
    def steps(
        self, t0: float, t1: float, q: np.ndarray, v: np.ndarray, stride: int = 1
    ) -> Iterator[IntegratorStep]:
        """Integrate from t0 to t1.

        Args:
            q, v: The state at t0; left as it is.
            stride: Fixed-step methods report every so many steps, and the last.
        """


class FixedStep(Integrator):
    """Equal steps, none longer than dt; each in equal parts when the motion is stiff."""

    is_implicit: ClassVar[bool] = False  # True: friction and linear stops are stable at any step

    def __init__(self, motion: EquationOfMotion, settings: StepSettings) -> None:
        super().__init__(motion, settings)
        if settings.substeps is None:
            rate, cause = motion.fastest_rate(self.is_implicit)
            self._parts = substeps(rate, cause, settings.dt, self.name, ADVICE)
        else:
            self._parts = settings.substeps

    def steps(
        self, t0: float, t1: float, q: np.ndarray, v: np.ndarray, stride: int = 1
    ) -> Iterator[IntegratorStep]:
        count = max(1, math.ceil((t1 - t0) / self.settings.dt - COUNT_TOLERANCE))
        h = (t1 - t0) / count
        q, v = q.copy(), v.copy()
        for done in range(0, count, stride):
            some = min(stride, count - done)
            q, v = self._advance(t0 + done * h, h / self._parts, some * self._parts, q, v)
            reached = done + some
            yield IntegratorStep(t1 if reached == count else t0 + reached * h, q, v)

    def sample(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the state dt later; may work in place."""
        return self._advance(t, self.settings.dt / self._parts, self._parts, q, v)

    def _advance(
        self, t: float, h: float, count: int, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """`advance`, one step at a time where the ground is told of each."""
        if self.motion.ground is None:
            return self.advance(t, h, count, q, v)
        for k in range(count):
            q, v = self.advance(t + k * h, h, 1, q, v)
            self.motion.accepted(q, v)
        return q, v

    @abstractmethod
    def advance(
        self, t: float, h: float, count: int, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the state after `count` steps of `h` seconds; may work in place.

        `self.motion.acceleration(t, q, v)` is the equation of motion; its array may be overwritten
        by the next call: copy what is kept. `self.motion.model.integrate(q, dx)` moves q by a step
        dx (..., nv), also that of a free base.
        """
