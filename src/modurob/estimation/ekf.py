"""Extended Kalman filter on any model: joint angles are measured, angles and rates estimated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import as_floats, positive, whole
from modurob.dynamics import BoundToModel, External, cpu_model, external_forces, external_slopes
from modurob.errors import StateError, UnknownNameError, choices
from modurob.estimation.covariance import (
    chi_square,
    covariance,
    gained,
    joseph,
    rows_of,
    shaped,
    symmetric,
)
from modurob.estimation.prediction import STEPS, Predicted, chosen
from modurob.model import Model
from modurob.model.model import LARGEST_DISPLACEMENT

Q_POSITION, Q_RATE = 1e-8, 1e-4  # default variances a sample adds: mostly unknown torques
R_ANGLE = 1e-4  # [rad^2] default: encoders of half a degree
P_FIRST = 1e-2  # default first variance: about six degrees


class Innovation(NamedTuple):
    """Result of a measurement.

    Attributes:
        residual: (m,) measured minus expected, of what was there.
        S: (m, m) its covariance.
        nis: ``residual^T S^-1 residual``: chi-square with m degrees of freedom.
        accepted: Whether it passed the gate and was used.
    """

    residual: np.ndarray
    S: np.ndarray
    nis: float
    accepted: bool


class Ekf(BoundToModel):
    """State (q, v) of a model from noisy measurements of some joints.

    Predict: ``P = A P A^T + W Q W^T`` with the exact Jacobian A of the step taken. Correct:
    ``K = P H^T (H P H^T + V R V^T)^-1``, covariance in Joseph form. On a free base the error of the
    base is a twist in its own frame.

    Args:
        model: The body.
        dt: Seconds between samples. [s]
        Q: Process noise: one variance, (k,) or (k, k); k = 2 nv, or the columns of `W`.
        R: Measurement noise: one variance, (k,) or (k, k); k = measurements, or columns of `V`.
        W: (2nv, k) how process noise enters; the identity by default.
        V: (m, k) how measurement noise enters; the identity by default.
        measured: Names of the joints whose angles (or ways) are measured; all by default.
        measured_rates: Names of the joints whose velocities are measured, after the angles.
        q, v: (nq,), (nv,) first estimate; neutral pose and rest by default.
        P: Its covariance: one variance, (2nv,) or (2nv, 2nv).
        gate: Probability with which a good measurement is let in, for example 0.999; others are
            left out. None lets all in.
        integrator: ``rk4`` (fixed base only) or ``step``, the model's semi-implicit one. By default
            rk4, and the step on a free base and where friction is too stiff for rk4.
        substeps: Steps of it in a sample; as many as friction needs by default, one without.
        density: Whether Q is a spectral density (per second) and not what one sample adds.
    """

    BOUND = ("_step",)

    def __init__(
        self,
        model: Model,
        dt: float,
        Q: ArrayLike | None = None,
        R: ArrayLike | None = None,
        *,
        W: ArrayLike | None = None,
        V: ArrayLike | None = None,
        measured: Iterable[str] | None = None,
        measured_rates: Iterable[str] = (),
        q: ArrayLike | None = None,
        v: ArrayLike | None = None,
        P: ArrayLike | None = None,
        gate: float | None = None,
        integrator: str | None = None,
        substeps: int | None = None,
        density: bool = False,
    ) -> None:
        self.model = cpu_model("an estimator", model)
        self.dt = positive("dt", dt, "seconds")
        self._nq, self._nv, self._base = model.nq, model.nv, model.joint_slice_v.start
        nv = self._nv
        self.q = _one(model.check_configuration(model.neutral() if q is None else q), "q").copy()
        self.v = _one(model.check_velocity(np.zeros(nv) if v is None else v), "v").copy()
        usual = np.repeat([Q_POSITION, Q_RATE], nv)
        self.Q, self.W, self.process = shaped("Q", usual if Q is None else Q, "W", W, 2 * nv)
        self._choose(measured, measured_rates)
        m = len(self._rows)
        self.R, self.V, self.noise = shaped("R", R_ANGLE if R is None else R, "V", V, m)
        self.P = covariance("P", P_FIRST if P is None else P, 2 * nv)
        if gate is not None and not 0 < gate < 1:
            raise StateError(f"gate is a probability such as 0.999, got {gate!r}")
        self.gate = gate
        self._check_integrator(integrator, substeps)
        self.integrator, self.substeps = chosen(model, self.dt, integrator, substeps)
        self.density = bool(density)
        self._given = {"Q": Q, "R": R, "integrator": integrator, "substeps": substeps}
        self._bind()

    def _bind(self) -> None:
        self._step = STEPS[self.integrator](self.model, self.dt / self.substeps)

    def _choose(self, measured: Iterable[str] | None, rates: Iterable[str]) -> None:
        names = self.model.joint_names
        self.measured = names if measured is None else _names(measured)
        self.measured_rates = _names(rates)
        angles = [self._base + self.model.joint_index(name) for name in self.measured]
        after = self.model.nv + self._base
        speeds = [after + self.model.joint_index(name) for name in self.measured_rates]
        self._rows = np.array(angles + speeds, dtype=int)  # of the state (q, v)
        self._all = rows_of(self._rows)
        skip = self.model.nq - self.model.nv  # of a free base: its pose has one number more
        self._angles = rows_of([k + skip for k in angles])
        self._speeds = rows_of([k - self.model.nv for k in speeds]) if speeds else None
        if len(set(self._rows.tolist())) != len(self._rows):
            raise StateError("measured names a joint twice")

    def _check_integrator(self, integrator: Any, substeps: Any) -> None:
        if integrator is not None and integrator not in STEPS:
            raise UnknownNameError(f"no integrator {integrator!r}: choose from {choices(STEPS)}")
        if self.model.free_base and integrator == "rk4":
            raise StateError("on a free base the integrator is 'step'")
        if substeps is not None:
            whole("substeps", substeps, 1)

    # -- the filter --------------------------------------------------------------------------------

    def predict(self, tau: ArrayLike, external: External | None = None) -> None:
        """One sample ahead under a torque that is held.

        Args:
            tau: (nv,) [N m, N]
            external: Wrenches (6,) on bodies, in the bodies' frames, force first. Their forces on
                the joints are held during each substep.
        """
        if not _is_plain(tau, self._nv):
            tau = _one(self.model.check_velocity(tau, "tau"), "tau")
        self._ahead(tau, None, external)

    def predict_closed_loop(self, law: Any, t: float, reference: Any = None) -> np.ndarray:
        """One sample ahead under a law that acts on the true state, not on the estimate.

        The torque depends on the state, so the law's slopes enter the Jacobian:
        ``A + B [d tau/dq, d tau/dv]``.

        Args:
            law: With ``command(t, q, v, reference)`` and ``slopes(q, v, reference)``.
            t: [s]
            reference: As for the law.

        Returns:
            (nv,) the torque expected. [N m, N]
        """
        slopes = law.slopes(self.q, self.v, reference)
        tau = np.asarray(law.command(t, self.q, self.v, reference), dtype=float)
        self._ahead(tau, np.hstack([slopes.dq, slopes.dv]))
        return tau

    def _ahead(
        self, tau: np.ndarray, feedback: np.ndarray | None, external: External | None = None
    ) -> None:
        torque = feedback is not None
        q, v, A, B = self._substep(*self._estimate(), tau, external, torque)
        # trapezoid of exp(F s) W Q W^T exp(F s)^T over a substep
        inner = self.process * (self.dt / self.substeps / 2) if self.density else None
        spread = self.process if inner is None else A @ inner @ A.T + inner
        for _ in range(self.substeps - 1):
            q, v, one, push = self._substep(q, v, tau, external, torque)
            A, B = one @ A, None if B is None or push is None else one @ B + push
            if inner is not None:
                spread = one @ (spread + inner) @ one.T + inner
        if feedback is not None:
            assert B is not None
            A = A + B @ feedback
        P = A.dot(self.P).dot(A.T)
        P += spread
        self.q, self.v, self.P = q, v, symmetric(P)

    def _substep(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, external: External | None, torque: bool
    ) -> Predicted:
        if external is None:
            return self._step(q, v, tau, torque)
        push = external_forces(self.model, q, external)
        found = self._step(q, v, tau + _one(push, "external wrenches"), True)
        assert found.B is not None
        A = found.A.copy()
        A[:, : self.model.nv] += found.B @ external_slopes(self.model, q, external)
        return found._replace(A=A)

    def _estimate(self) -> tuple[np.ndarray, np.ndarray]:
        """q and v, checked again if they were replaced from outside."""
        model, q, v = self.model, self.q, self.v
        q = q if _is_plain(q, self._nq) else _one(model.check_configuration(q), "q")
        return q, v if _is_plain(v, self._nv) else _one(model.check_velocity(v), "v")

    def correct(self, y: ArrayLike) -> Innovation:
        """Use a measurement.

        Args:
            y: (m,) as `measure` orders it; NaN where nothing came in. [rad, m, rad/s, m/s]
        """
        given = y if _is_plain(y, len(self._rows)) else as_floats(y)
        if given.shape != self._rows.shape:
            self._complain(given)
        q, v = self._estimate()
        residual, rows, noise, P = given - self._expected(q, v), self._all, self.noise, self.P
        if not math.hypot(*given.tolist()) < LARGEST_DISPLACEMENT:
            there = self._received(given)
            residual, rows = residual[there], self._rows[there]
            noise = noise[np.ix_(there, there)]
        if not len(residual):
            return Innovation(residual, noise, 0.0, False)
        S = P[rows][:, rows] + noise
        K, nis = gained(P, S, rows, residual)
        if self.gate is not None and nis > chi_square(self.gate, len(residual)):
            return Innovation(residual, S, nis, False)
        dx, nv = K.dot(residual), self._nv
        free = self.model.free_base
        self.q = self.model.integrate(q, dx[:nv]) if free else q + dx[:nv]
        self.v = v + dx[nv:]
        self.P = joseph(P, K, rows, noise)
        return Innovation(residual, S, nis, True)

    def _received(self, given: np.ndarray) -> np.ndarray:
        """(m,) which numbers are there; a `StateError` if one of them is too large."""
        over = np.abs(given) > LARGEST_DISPLACEMENT  # infinite ones too
        for k in np.flatnonzero(over).tolist():
            raise StateError(
                f"y[{k}] is {given[k]:g}: give numbers up to {LARGEST_DISPLACEMENT:g}, "
                "NaN for what is missing"
            )
        return ~np.isnan(given)

    def _complain(self, given: np.ndarray) -> None:
        names = choices((*self.measured, *(f"rate of {n}" for n in self.measured_rates)))
        raise StateError(
            f"y has shape {given.shape}, expected ({len(self._rows)},) real numbers, NaN for "
            f"what is missing: {names}"
        )

    def _expected(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(m,) angles, then rates, in a checked state."""
        angles = q[self._angles]
        return angles if self._speeds is None else np.append(angles, v[self._speeds])

    def measure(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """(m,) what would be measured in a state, without noise: angles, then rates."""
        return self._expected(self.model.check_configuration(q), self.model.check_velocity(v))

    @property
    def H(self) -> np.ndarray:
        """(m, 2nv) derivative of `measure` by the state."""
        return np.eye(2 * self.model.nv)[self._rows]

    # -- truth -------------------------------------------------------------------------------------

    def error(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """(2nv,) the true state minus the estimate, the base's pose as a twist in its frame."""
        q, v = self.model.check_configuration(q), self.model.check_velocity(v)
        return np.concatenate([self.model.difference(self.q, q), v - self.v])

    def nees(self, q: ArrayLike, v: ArrayLike) -> float:
        """Normalized error squared: chi-square with 2 nv degrees when the filter is consistent."""
        e = self.error(q, v)
        return float(e @ np.linalg.solve(self.P, e))

    # -- another body ------------------------------------------------------------------------------

    def rebuilt(
        self,
        model: Model,
        organism: Any = None,
        *,
        known: Mapping[str, float] | None = None,
        rate_sigma: float = 1.0,
    ) -> Ekf:
        """A filter for another body: surviving joints keep estimate and covariance.

        New joints start within their limits: mean as close to zero as these allow, standard
        deviation that of a uniform distribution between them. They are measured, with the noise of
        the others. A new free base is placed where the old estimate had that module.

        Args:
            model: Of the new body.
            organism: Not needed; part of the protocol of what follows a change of the body.
            known: Angles of new joints that are known from docking. [rad, m]
            rate_sigma: Standard deviation of their velocities. [rad/s, m/s]
        """
        from modurob.estimation.carry import rebuilt

        return rebuilt(self, model, dict(known or {}), rate_sigma)

    def __repr__(self) -> str:
        return f"<Ekf of {2 * self.model.nv} states from {len(self._rows)} measurements>"


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _is_plain(array: Any, size: int) -> TypeGuard[np.ndarray]:
    """Return True for (size,) floats: a quick test; compiled code checks the numbers."""
    return type(array) is np.ndarray and array.shape == (size,) and array.dtype == np.float64


def _one(array: np.ndarray, name: str) -> np.ndarray:
    if array.ndim != 1:
        raise StateError(f"a filter has one state: {name} has shape {array.shape}")
    return array
