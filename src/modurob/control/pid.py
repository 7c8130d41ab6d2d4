"""PID laws: independent PIDs without a model, and feedback linearization with PIDs."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import per_joint, positive
from modurob.control import gains
from modurob.control.computed_torque import Linearizing
from modurob.control.controller import Controller, Slopes
from modurob.control.gains import DesignedLaw
from modurob.control.laws import register
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.joint_map import JointMap
from modurob.reference import Reference, no_reference

SAMPLE_TIME = 1e-3  # [s] by default: a law with a memory needs a clock


class Pid:
    """One PID for each joint: ``u = Kp e + i + Kd r``, ``i' = Ki e``, ``r`` the filtered rate of e.

    The integral is kept as the part of the output that it makes, so that new gains make no bump.
    A jump of the reference, more than its velocity explains, takes `share` times it from the
    integral, so that the jump does not excite the pole of the integral: the weighting of set
    points, for jumps only; motions are followed as by a plain PID.

    Args:
        kp, ki, kd: (n,) gains.
        filter_time: Time constant of the low-pass on the rate; 0 for none. [s]
        integral_limit: (n,) largest part of the output that the integral may make.
        share: (n,) part of Kp that jumps of the reference do not see.
    """

    def __init__(
        self,
        kp: np.ndarray,
        ki: np.ndarray,
        kd: np.ndarray,
        filter_time: float,
        integral_limit: np.ndarray,
        share: np.ndarray,
    ) -> None:
        self.kp, self.ki, self.kd, self.share = kp, ki, kd, share
        self.filter_time, self.integral_limit = filter_time, integral_limit
        self._shape = kp.shape
        self.clear()

    def clear(self) -> None:
        """Clear the memory."""
        self.integral, self.rate, self.error = (np.zeros(self._shape) for _ in range(3))
        self._before = self.integral
        self._time: float | None = None
        self._last = no_reference(self._shape)

    def spread(self, count: int) -> None:
        """Keep a memory for each of many states."""
        self._shape = (count, *self._shape)
        self.integral, self.rate, self.error = (
            np.tile(x, (count, 1)) for x in (self.integral, self.rate, self.error)
        )
        self._last = self._last.spread(self._shape)
        self._before = self.integral

    def output(self, t: float, error: np.ndarray, rate: np.ndarray, aim: Reference) -> np.ndarray:
        """(n,) u at a time; a second call for the same time integrates nothing."""
        dt = self._elapsed(t)
        self.error = error
        if self._time is None or self.filter_time == 0:
            self.rate = rate
        elif dt > 0:  # implicit Euler of the low-pass: stable for every dt
            self.rate = self.rate + dt / (self.filter_time + dt) * (rate - self.rate)
        jump = aim.jump(self._last, dt)
        self._last = aim.spread(error.shape)
        # until the first reference, it was where the joint is
        self._before = self.integral - self.share * np.where(np.isnan(jump), error, jump)
        grown = self._before + self.ki * (dt * error)
        self.integral = np.minimum(np.maximum(grown, -self.integral_limit), self.integral_limit)
        self._time = t
        return self.frozen(error, self.rate)

    def frozen(self, error: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(n,) u with the integral as it is."""
        return self.kp * error + self.integral + self.kd * rate

    def hold(self, saturated: np.ndarray) -> None:
        """Anti-windup: take back the last growth where the output is at its limit already.

        `saturated` is (n,) +1 at the upper limit, -1 at the lower one, 0 within.
        """
        windup = saturated * (self.integral - self._before) > 0
        if windup.any():
            self.integral = np.where(windup, self._before, self.integral)

    def slopes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(n, n), (n, n), (n, k) derivatives of u by q, v and the memory (i, and r if filtered)."""
        n = len(self.kp)
        if self.filter_time == 0:
            return -np.diag(self.kp), -np.diag(self.kd), np.eye(n)
        return -np.diag(self.kp), np.zeros((n, n)), np.hstack([np.eye(n), np.diag(self.kd)])

    def memory(self, dt: float) -> tuple[np.ndarray, np.ndarray]:
        """F and G of the memory; see `Controller.memory`."""
        n, none = len(self.kp), np.zeros((len(self.kp), len(self.kp)))
        grow = np.hstack([-dt * np.diag(self.ki), none])
        if self.filter_time == 0:
            return np.eye(n), grow
        share = dt / (self.filter_time + dt)
        F = np.diag(np.concatenate([np.ones(n), np.full(n, 1 - share)]))
        return F, np.vstack([grow, np.hstack([none, -share * np.eye(n)])])

    def take_over(self, old: Pid, joints: JointMap) -> None:
        """Go on where another PID ended, with the same output for the joints of both bodies."""
        there, here = joints.kept_old, joints.kept_new
        step_p = (old.kp[there] - self.kp[here]) * old.error[there]
        step_d = (old.kd[there] - self.kd[here]) * old.rate[there]
        self.integral[here] = old.integral[there] + step_p + step_d
        self.integral[self.ki == 0] = 0.0  # it would never fade
        self.rate, self.error = (joints.carry(x, 0.0) for x in (old.rate, old.error))
        self._last = Reference(*(joints.carry(x, np.nan) for x in old._last))
        self._time = old._time

    def _elapsed(self, t: float) -> float:
        if not math.isfinite(t):
            raise StateError(f"t must be a finite number of seconds, got {t!r}")
        return 0.0 if self._time is None else max(0.0, t - self._time)

    __copy__ = copy.deepcopy


class PidLaw(DesignedLaw):
    """Base of laws with a `Pid`: its gains, its memory, and its change to another body."""

    pid: Pid

    def __init__(
        self,
        model: Model,
        kp: ArrayLike | None = None,
        ki: ArrayLike | None = None,
        kd: ArrayLike | None = None,
        *,
        settling_time: float | None = None,
        filter_time: float = 0.0,
        integral_limit: ArrayLike | None = None,
        sample_time: float | None = SAMPLE_TIME,
        **options: Any,
    ) -> None:
        super().__init__(model, sample_time=sample_time, **options)
        if self.sample_time is None:
            raise StateError("a law with an integral needs sample_time, for example 0.001")
        given = {"kp": kp, "ki": ki, "kd": kd}
        chosen, joints = self._choose_gains(given, settling_time), model.joint_names
        names = (*given, "share")
        chosen = [*chosen, 0.0][: len(names)]  # gains as given are those of a plain PID
        each = [per_joint(n, k, joints, least=0.0) for n, k in zip(names, chosen, strict=True)]
        limit = np.inf if integral_limit is None else integral_limit
        most = per_joint("integral_limit", limit, joints, least=0.0, infinite=True)
        if filter_time != 0:
            filter_time = positive("filter_time", filter_time, "seconds, or 0")
        self.pid = Pid(each[0], each[1], each[2], float(filter_time), most, each[3])
        self._remember(integral_limit=limit)
        self._demand_stable()

    def _gain(self, name: str) -> np.ndarray:
        return getattr(self.pid, name)

    def _take_gains(self, old: DesignedLaw) -> None:
        for name in (*self._gain_names, "share"):
            setattr(self.pid, name, old._gain(name))

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        limit: Any = self.pid.integral_limit
        if np.isfinite(limit).any() or "integral_limit" in self._given_for_all:
            limit = self._carry("integral_limit", limit, joints)
        else:
            limit = np.inf
        common = super()._settings(joints)
        return common | {"filter_time": self.pid.filter_time, "integral_limit": limit}

    def memory(self, dt: float, at: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """See `Controller.memory`."""
        return self.pid.memory(dt)

    def reset(self, t: float, q: ArrayLike, v: ArrayLike) -> None:
        """Clear the integral, unless it was just taken over."""
        if not self._carried:
            self.pid.clear()
        super().reset(t, q, v)

    def record(self) -> dict[str, np.ndarray]:
        """The integral's part of the PID's output."""
        return {"integral": self.pid.integral}

    def _spread(self, count: int) -> None:
        super()._spread(count)
        self.pid.spread(count)

    def _take_over(self, old: Controller, joints: JointMap) -> None:
        super()._take_over(old, joints)
        if isinstance(old, PidLaw):
            self.pid.take_over(old.pid, joints)

    def _notice_limits(self, beyond: np.ndarray) -> None:
        self.pid.hold(beyond[..., self._skip :])


@register(
    "independent-pid", "no model", kp="N m/rad", ki="N m/(rad s)", kd="N m s/rad", settling_time="s"
)
class IndependentPid(PidLaw):
    """``tau = Kp e + Ki int(e) + Kd e'`` for each joint by itself, ``e = q_d - q``.

    Args:
        model: The body; used for the default gains only.
        kp, ki, kd: One number or one for each joint. [N m/rad, N m/(rad s), N m s/rad]
        settling_time: Instead of gains; see `gains.for_joints`. The integral then begins with the
            load at the first state. 1 s if nothing is given. [s]
        filter_time: Time constant of a low-pass on the velocity error; 0 for none. [s]
        integral_limit: Largest torque of the integral. [N m, N]
        sample_time: Seconds between commands. [s]
        options: See `Controller`.
    """

    name = "independent PID"
    claim = "errors vanish, constant loads included"
    _gains_make_torques = True

    def _designed(self, time: float, **shape: float) -> gains.Design:
        assert self.sample_time is not None
        return gains.for_joints(self.model, time, self.sample_time, self._late.count)

    def _torque(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        tau = np.zeros(v.shape)
        tau[..., self._skip :] = self.pid.output(t, *self._errors(q, v, aim), aim)
        tau[..., self._idle] = 0.0
        return tau

    def slopes(self, q: ArrayLike, v: ArrayLike, reference: Any = None) -> Slopes:
        """Exact derivatives of the torque by the state; see `Controller.slopes`."""
        return self._driven_only(*self._joint_slopes(*self.pid.slopes()))

    def reset(self, t: float, q: ArrayLike, v: ArrayLike) -> None:
        """Clear the memory; designed for a model, the integral begins with the load at q."""
        begins = not self._carried
        super().reset(t, q, v)
        if begins and self.settling_time is not None:
            load = self._holding(self._state(q, v)[0])
            self.pid.integral = load[..., self._skip :].copy()  # every joint has an integral

    def _settle_in(self, t: float, q: np.ndarray) -> None:
        super()._settle_in(t, q)
        new = self._added[self.pid.ki[self._added] > 0]
        self.pid.integral[new] = self._holding(q)[self._skip + new]  # the load it has to carry


@register(
    "pid-linearized", "for constant loads", kp="1/s^2", ki="1/s^3", kd="1/s", settling_time="s"
)
class PidLinearized(PidLaw, Linearizing):
    """``tau = M (a_d + Kp e + Ki int(e) + Kd e') + C v + N + friction`` with ``e = q_d - q``.

    The error follows ``e''' + Kd e'' + Kp e' + Ki e = 0``. The integral of a joint is held
    while its motor is at the limit.

    Args:
        model: The body.
        kp, ki, kd: One number or one for each joint. [1/s^2, 1/s^3, 1/s]
        settling_time: Instead of gains: a triple pole, of which a step excites two. 1 s if nothing
            is given. [s]
        filter_time: Time constant of a low-pass on the velocity error; 0 for none. [s]
        integral_limit: Largest acceleration of the integral. [rad/s^2, m/s^2]
        sample_time: Seconds between commands. [s]
        options: See `Controller`.
    """

    name = "feedback linearization with PID"
    claim = "the error follows e''' + Kd e'' + Kp e' + Ki e = 0 and goes to zero"

    def _designed(self, time: float, **shape: float) -> gains.Design:
        clock = self.sample_time, self._late.count
        return gains.for_samples(time, gains.DAMPING, *clock, integral=True)

    def _acceleration(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        return aim.a + self.pid.output(t, *self._errors(q, v, aim), aim)

    def _steady(self, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        return aim.a + self.pid.frozen(*self._errors(q, v, aim))

    def _gains(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.pid.slopes()

    def error_matrix(self) -> np.ndarray:
        """(3n, 3n) A of ``d(e, e', i)/dt = A (e, e', i)``, i the integral's acceleration."""
        n, pid = len(self.pid.kp), self.pid
        A = np.zeros((3 * n, 3 * n))
        A[:n, n : 2 * n] = np.eye(n)
        A[n : 2 * n] = np.hstack([-np.diag(pid.kp), -np.diag(pid.kd), -np.eye(n)])
        A[2 * n :, :n] = np.diag(pid.ki)
        return A
