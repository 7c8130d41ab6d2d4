"""Change of the body: laws go on with references and estimators; bound on the transient."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.control.closed_loop import linearized
from modurob.control.controller import Controller
from modurob.control.gains import SETTLED
from modurob.control.references import Carried
from modurob.dynamics import External
from modurob.errors import StateError
from modurob.model import Model

CURVE = 1000  # instants at which a response is evaluated
TIME_CONSTANTS = 12.0  # of the slowest error that a response lasts


class TrackingController:
    """A law with its reference, a function of time; both are rebuilt for another body.

    After a change the joints of both bodies follow the old reference; added ones stay in place.
    """

    def __init__(self, law: Any, reference: Any) -> None:
        if not callable(reference):
            raise StateError(f"a reference is a function of time, got {type(reference).__name__}")
        self.law, self.reference = law, reference
        self._before: Model | None = None  # the body that the reference still belongs to

    @property
    def model(self) -> Model:
        """Model of the present body."""
        return self.law.model

    @property
    def sample_time(self) -> float | None:
        """Of the law. [s]"""
        return self.law.sample_time

    def command(
        self, t: float, q: ArrayLike, v: ArrayLike, reference: Any = None,
        external: External | None = None,
    ) -> np.ndarray:  # fmt: skip
        """(nv,) generalized forces; `reference` replaces the own one where given. [N m, N]"""
        self._bring_reference(q)
        aim = self.reference(t) if reference is None else reference
        return self.law.command(t, q, v, aim, **_given(external))

    def reset(self, t: float, q: ArrayLike, v: ArrayLike) -> None:
        """Begin a run, or go on with a new body."""
        self._bring_reference(q)
        self.law.reset(t, q, v)

    def record(self) -> dict[str, np.ndarray]:
        """Channels that the law records."""
        return self.law.record()

    def rebuilt(self, model: Model, organism: Any = None) -> TrackingController:
        """Law and reference for another body."""
        twin = TrackingController(self.law.rebuilt(model, organism), self.reference)
        twin._before = self.model if self._before is None else self._before
        return twin

    def _bring_reference(self, q: ArrayLike) -> None:
        """Carry the reference over to a new body at its first state."""
        if self._before is not None:
            model = self.model
            joints = np.asarray(q, dtype=float)[model.joint_slice_q]
            self.reference = Carried(self.reference, self._before, model, joints)
            self._before = None


class OutputFeedback:
    """A law that acts on an estimate: correct with the measurement, command, predict.

    When the body changes, the estimate is carried over, and the law begins with the first estimate
    that includes a measurement of the new joints. A change should fall on a sample: the estimate is
    that of a sample.

    Args:
        law: A controller.
        estimator: With ``q, v, P, dt, correct(y), predict(tau), measure(q, v)`` and
            ``rebuilt(model)``, such as `modurob.estimation.Ekf`.
    """

    def __init__(self, law: Any, estimator: Any) -> None:
        self.law, self.estimator = law, estimator
        self._first = copy.deepcopy(estimator)
        self._carried: _Corrected | None = None  # of the body before
        self._begins = True  # before the first command
        self._last: _Corrected | None = None
        self.sample_time: float = estimator.dt
        self._seen: dict[str, np.ndarray] = {}

    @property
    def model(self) -> Model:
        """Model of the present body."""
        return self.law.model

    def command(
        self, t: float, q: ArrayLike, v: ArrayLike, reference: Any = None,
        external: External | None = None,
    ) -> np.ndarray:  # fmt: skip
        """(nv,) generalized forces from the estimate; uses only the measured part of q and v."""
        ekf = self.estimator
        innovation = ekf.correct(ekf.measure(q, v))
        self._seen = {
            "estimate_q": ekf.q.copy(),
            "estimate_v": ekf.v.copy(),
            "sigma": np.sqrt(np.diagonal(ekf.P)),
            "nis": np.array(innovation.nis),
        }
        if self._begins:
            self.law.reset(t, ekf.q, ekf.v)
            self._begins = False
        tau = self.law.command(t, ekf.q, ekf.v, reference, **_given(external))
        self._last = _Corrected(t, ekf, (ekf.q, ekf.v, ekf.P))
        ekf.predict(tau, **_given(external))
        return tau

    def reset(self, t: float, q: ArrayLike, v: ArrayLike) -> None:
        """Begin a run with the estimator as it was given, or as it was carried over."""
        if self._carried is None:
            self.estimator = copy.deepcopy(self._first)
        elif self._carried.time == t:  # two changes at once: nothing was predicted in between
            self.estimator = self._carried.estimate().rebuilt(self.model)
        self._carried, self._begins = None, True

    def record(self) -> dict[str, np.ndarray]:
        """Estimate, standard deviations, and the innovation's size (NIS)."""
        return self._seen | self.law.record()

    def rebuilt(self, model: Model, organism: Any = None) -> OutputFeedback:
        """Law and estimator for another body."""
        twin = OutputFeedback(
            self.law.rebuilt(model, organism), self.estimator.rebuilt(model, organism)
        )
        twin._carried = self._last or _Corrected(-np.inf, self.estimator, ())
        return twin


def _given(external: External | None) -> dict[str, External]:
    """Arguments for what takes external wrenches, so that a law without them will do."""
    return {} if external is None else {"external": external}


class _Corrected(NamedTuple):
    """An estimate after a measurement, before it was predicted further: q, v and P."""

    time: float
    estimator: Any
    values: tuple[np.ndarray, ...]

    def estimate(self) -> Any:
        """The estimator as it was then."""
        found = copy.deepcopy(self.estimator)
        found.q, found.v, found.P = self.values
        return found


@dataclass(frozen=True, eq=False)
class Transient:
    """Response of small errors to a change of the body.

    Attributes:
        error, rate: (n,) errors right after the change. [rad, m; rad/s, m/s]
        peak: (n,) largest errors afterwards. [rad, m]
        torque: (n,) largest torques beyond those of the reference, because of the errors. [N m, N]
        bound: No joint's error is ever larger, for any other start of the same size. [rad, m]
        settled: From when on all errors stay within 2 % of the largest first or later one. [s]
        decay: Slowest rate of decay. [1/s]
    """

    error: np.ndarray
    rate: np.ndarray
    peak: np.ndarray
    torque: np.ndarray
    bound: float
    settled: float
    decay: float

    def __str__(self) -> str:
        if self.decay <= 0:
            return "the transient is not bounded: the closed loop is not stable"
        return (
            f"errors up to {self.peak.max(initial=0.0):.3g} (bound {self.bound:.3g}) rad or m, "
            f"torques {self.torque.max(initial=0.0):.3g} N m or N beyond the reference's, "
            f"settled after {self.settled:.3g} s, slowest rate {self.decay:.3g} 1/s"
        )


def transient(law: Controller, q: ArrayLike, v: ArrayLike, reference: Any = None) -> Transient:
    """Return the response of a law to a change of its body.

    Computed from the closed loop linearized at the reference (exact for laws that linearize, apart
    from changes of inertia within a sample), with the memory in balance.

    Args:
        law: For the new body.
        q, v: (nq,), (nv,) state right after the change.
        reference: At that time; None to stay.
    """
    q, v = law._state(q, v)
    aim = law._aim(reference, q)
    at = q.copy()
    at[law._skip_q :] = aim.q
    error, rate = q[law._skip_q :] - aim.q, v[law._skip :] - aim.v
    near, n = linearized(law, at), len(error)
    if near.rate <= 0:
        lost = np.full(n, np.inf)
        return Transient(error, rate, lost, lost, np.inf, np.inf, near.rate)
    step, h = _stepped(near.A, near.rate, law.sample_time)
    k, skip = law.slopes(at, np.zeros(law.model.nv), at), law._skip
    slope = np.hstack([k.dq[skip:, skip:], k.dv[skip:, skip:], k.dmemory[skip:]])
    x = np.zeros(len(step))
    x[:n], x[n : 2 * n] = error, rate
    power, states, gain = np.eye(len(step)), [], 0.0
    while len(states) * h < TIME_CONSTANTS / near.rate:
        states.append(power @ x)
        gain = max(gain, float(np.linalg.norm(power[:n, : 2 * n], 2)))
        power = step @ power
    path = np.array(states)
    errors, torques = np.abs(path[:, :n]), np.abs(path[:, : slope.shape[1]] @ slope.T)
    peak = errors.max(axis=0, initial=0.0)
    outside = np.flatnonzero((errors > SETTLED * peak.max(initial=0.0)).any(axis=1))
    settled = 0.0 if not len(outside) else float((outside[-1] + 1) * h)
    bound = gain * float(np.linalg.norm(x))
    largest = torques.max(axis=0, initial=0.0)
    return Transient(error, rate, peak, largest, bound, settled, near.rate)


def _stepped(A: np.ndarray, rate: float, sample_time: float | None) -> tuple[np.ndarray, float]:
    """Matrix of one step, and its duration. [s]"""
    from scipy.linalg import expm

    horizon = TIME_CONSTANTS / rate
    if sample_time is None:
        h = horizon / CURVE
        return expm(A * h), h
    samples = max(1, int(horizon / sample_time / CURVE))
    return np.linalg.matrix_power(A, samples), samples * sample_time
