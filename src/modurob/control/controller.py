"""The contract of all controllers: ``command(t, q, v, reference) -> tau``.

A law derives from `Controller` and computes a torque; limits, delay, passive joints and the change
to another body are the same for all laws and are implemented here.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import is_number, per_joint, positive, real_array, whole
from modurob.control.delay import DelayLine, samples_late
from modurob.dynamics import BoundToModel, External, cpu_model, external_forces
from modurob.errors import StateError, choices
from modurob.model import Model
from modurob.model.joint_map import JointMap
from modurob.reference import Reference

if TYPE_CHECKING:
    from modurob.control.certificate import Certificate
    from modurob.control.promise import Promise


class Slopes(NamedTuple):
    """Derivatives of a torque before limits.

    Attributes:
        dq, dv: (nv, nv) by q (tangent space of a free base) and v, with the memory held.
        dmemory: (nv, k) by what the law remembers; k = 0 for most.
    """

    dq: np.ndarray
    dv: np.ndarray
    dmemory: np.ndarray


class Controller(BoundToModel, ABC):
    """A law for the joints of one model.

    Args:
        model: The body. On a free base the base is not driven, and errors are those of the joints.
        torque_limit: Largest torque of all joints, or of each (n,); none by default. [N m, N]
        sample_time: Seconds between commands; None for a law that acts continuously. [s]
        delay: Until a command takes effect, in whole samples; True for one sample. [s]
        passive: Names of joints without a motor; springs of elastic joints are among them.
    """

    BOUND = ("_inverse", "_mass")
    name: ClassVar[str] = "controller"
    key: ClassVar[str] = ""  # as typed after --law; this and the next two: see `laws.register`
    summary: ClassVar[str] = ""
    parameters: ClassVar[Mapping[str, str]] = MappingProxyType({})
    claim: ClassVar[str] = ""  # of its certificate when all assumptions hold
    scope: ClassVar[str] = "local"  # of the claim without limits and sampling; or "global"
    cancels_gravity: ClassVar[bool] = False  # True: gravity is no disturbance of it
    uses_coupling: ClassVar[bool] = False  # True: it moves joints without a motor on purpose
    settling_time: float | None = None  # as asked for; None with gains as given. [s]
    attainable: float | None = None  # as designed: longer where samples do not allow it. [s]

    def __init__(
        self,
        model: Model,
        *,
        torque_limit: ArrayLike | None = None,
        sample_time: float | None = None,
        delay: float | bool = 0.0,
        passive: Iterable[str] = (),
    ) -> None:
        self.model = cpu_model("a controller", model)
        n = len(model.joint_names)
        self._skip, self._skip_q = model.nv - n, model.nq - n
        self._sizes = (n,), (model.nq,), (model.nv,)
        self.passive = _passive(passive, model)
        motor = np.array([name not in self.passive for name in model.joint_names], dtype=bool)
        self._driven = np.flatnonzero(motor) + self._skip  # in v
        self._idle = np.setdiff1d(np.arange(model.nv), self._driven)
        # whose accelerations a law that linearizes chooses, and whose result from them
        self._outputs, self._resulting = self._driven, self._idle
        self.torque_limit = np.full(n, np.inf)
        if torque_limit is not None:
            self.torque_limit = per_joint(
                "torque_limit", torque_limit, model.joint_names, least=0.0, infinite=True
            )
        self._bound = np.concatenate([np.full(self._skip, np.inf), self.torque_limit])
        self._limited = torque_limit is not None
        self._given_for_all: dict[str, float] = {}  # also holds for joints that are added later
        self._remember(torque_limit=torque_limit)
        self.sample_time = sample_time
        if sample_time is not None:
            self.sample_time = positive("sample_time", sample_time, "seconds")
        self._late = DelayLine(samples_late(delay, self.sample_time))
        self._batch: tuple[int, ...] = ()  # of the states that `command` takes
        self._hold = np.full(n, np.nan)  # where to stay when no reference is given
        self._rest = Reference(self._hold, np.zeros(n), np.zeros(n))
        self._carried = False
        self._added = np.zeros(0, dtype=int)  # joints that the body before did not have
        self._bind()

    def _bind(self) -> None:
        self._inverse = self.model.prepare("inverse_dynamics")
        self._mass = self.model.prepare("mass_matrix")

    # -- the law -----------------------------------------------------------------------------------

    @abstractmethod
    def _torque(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        """(..., nv) torque of the law before limits and delay; zero where there is no motor.

        Written for one state and for a batch of them alike: joints are the last axis.
        """

    def _notice_limits(self, beyond: np.ndarray) -> None:
        """Take note of motors whose torque is cut: (..., nv) +1 above, -1 below, 0 within."""

    @abstractmethod
    def slopes(self, q: ArrayLike, v: ArrayLike, reference: Any = None) -> Slopes:
        """Exact derivatives of the torque by the state, for estimators and certificates."""

    def memory(self, dt: float, at: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(k, k), (k, 2n) F and G of ``m+ = F m + G (q, v)`` in a sample; m+ makes the torque.

        Close to a set point (nq,), the neutral pose by default; most laws have the same everywhere.
        """
        return np.zeros((0, 0)), np.zeros((0, 2 * len(self.torque_limit)))

    @property
    def mass_range(self) -> tuple[float, float]:
        """Least and largest factor on the inertias of links for which the claim is made."""
        return 1.0, 1.0

    def certificate(
        self, set_point: ArrayLike | None = None, start: tuple[ArrayLike, ArrayLike] | None = None
    ) -> Certificate:
        """Certificate of stability: claim, assumptions, and which of them fail.

        Args:
            set_point: (n,) or (nq,) where the joints shall rest; the neutral pose by default.
            start: (q, v) from where; torques on the way are then compared with the limits.
        """
        self._demand_one("a certificate")
        from modurob.control.certificate import certify

        return certify(self, set_point, start)

    def promise(
        self, set_point: ArrayLike | None = None, start: ArrayLike | None = None
    ) -> Promise:
        """Settling time and overshoot of simulated steps, against those asked for.

        Args:
            set_point: (n,) or (nq,) end of one step; by default several steps in several poses.
            start: (nq,) begin of that step; the neutral pose by default.
        """
        self._demand_one("a promise")
        from modurob.control.promise import checked

        return checked(self, set_point, start)

    # -- the contract ------------------------------------------------------------------------------

    def command(
        self, t: float, q: ArrayLike, v: ArrayLike, reference: Any = None,
        external: External | None = None,
    ) -> np.ndarray:  # fmt: skip
        """(nv,) generalized forces. [N m, N]

        Args:
            t: [s]
            q, v: (nq,), (nv,) one state; (count, nq), (count, nv) for a law made by `batched`.
            reference: Something with q, v and a, a plain set point (n,), or None to stay where the
                first command was given. A batch has one for all, or (count, n).
            external: Measured or known wrenches (6,) on bodies, in the bodies' frames, force first,
                as for `Model.inverse_dynamics`. The motors take them up; an impedance law uses
                them as its equation says.
        """
        q, v = self._state(q, v)
        aim = self._aim(reference, q)
        try:
            tau = self._torque(t, q, v, aim)
        except StateError:  # about numbers that follow from those that were given
            self._demand_finite(q, v, aim)
            raise
        if external is not None:
            tau = self._loaded(q, tau, external_forces(self.model, q, external))
        if not math.isfinite(np.vdot(tau, tau)):
            self._demand_finite(q, v, aim)
            raise StateError(
                f"{self.name}: the torque is not finite; errors or gains are too large"
            )
        if self._limited:
            bound = self._bound
            self._notice_limits(np.sign(tau) * (np.abs(tau) > bound))
            tau = np.minimum(np.maximum(tau, -bound), bound)
        else:
            tau = tau.copy()
        if not self._late.count:
            return tau
        if not self._late.under_way:
            self._late.fill(self._holding(q))
        return self._late.passed(tau)

    def reset(self, t: float, q: ArrayLike, v: ArrayLike) -> None:
        """Clear the memory; a law made by `rebuilt` keeps once what it took over."""
        q, v = self._state(q, v)
        if self._carried:
            self._carried = False
            self._settle_in(t, q)
            return
        self._late.clear()
        self._hold[:] = q[..., self._skip_q :]

    def record(self) -> dict[str, np.ndarray]:
        """Channels that a simulation records beside the torque."""
        return {}

    def rebuilt(self, model: Model, organism: Any = None) -> Controller:
        """The same law for another body, without a jump of the torque.

        Joints of both bodies keep their gains and integrals, added joints get typical gains; gains
        from a settling time are designed again.

        Args:
            model: Of the new body.
            organism: Not used; part of the protocol of what follows a change of the body.
        """
        self._demand_one("another body")
        joints = JointMap(self.model, cpu_model("a controller", model))
        twin = type(self)(model, **self._settings(joints))
        twin._take_over(self, joints)
        return twin

    def changed(self, **options: Any) -> Controller:
        """The same law with other options of `Controller`, and an empty memory.

        Args:
            options: torque_limit, sample_time, delay or passive; the others stay.
        """
        return type(self)(
            self.model, **(self._settings(JointMap(self.model, self.model)) | options)
        )

    def batched(self, count: int) -> Controller:
        """The same law for many states at once: `command` then takes (count, nq) and (count, nv).

        Each state has a memory of its own, which begins as the memory of this one; time is shared.
        """
        count = whole("the number of states in a batch", count, 1)
        self._demand_one("a batch")
        twin = copy.copy(self)
        twin._spread(count)
        return twin

    @property
    def delay(self) -> float:
        """Until a command takes effect. [s]"""
        return self._late.count * (self.sample_time or 0.0)

    # -- for laws ----------------------------------------------------------------------------------

    def _spread(self, count: int) -> None:
        """Turn into a law for a batch: memory gets a row for each state."""
        self._batch = (count,)
        self._sizes = tuple((*self._batch, *size) for size in self._sizes)
        self._hold = np.tile(self._hold, (count, 1))
        self._rest = self._rest._replace(q=self._hold)
        self._late.under_way = [np.tile(tau, (count, 1)) for tau in self._late.under_way]

    def _remember(self, **given: Any) -> None:
        """Keep numbers that were given for all joints: they also hold for joints added later."""
        self._given_for_all |= {k: float(x) for k, x in given.items() if is_number(x)}

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        """Arguments of the constructor for a new body."""
        limit = None
        if self._limited:
            limit = joints.carry(self.torque_limit, self._given_for_all.get("torque_limit"))
        return {
            "torque_limit": limit,
            "sample_time": self.sample_time,
            "delay": self.delay,
            "passive": [name for name in self.passive if name in joints.new.joint_names],
        }

    def _take_over(self, old: Controller, joints: JointMap) -> None:
        """Continue with the memory of the law for the body before."""
        self._hold[:] = joints.carry(old._hold, np.nan)
        self._added = joints.added
        self._late.under_way = [joints.velocity(tau) for tau in old._late.under_way]
        self._carried = True

    def _settle_in(self, t: float, q: np.ndarray) -> None:
        """Initialize added joints from the first state of the new body: they stay in place."""
        new = self._added
        self._hold[new] = q[self._skip_q + new]
        if self._late.under_way:
            load = self._holding(q)
            for tau in self._late.under_way:
                tau[self._skip + new] = load[self._skip + new]

    def _errors(
        self, q: np.ndarray, v: np.ndarray, aim: Reference
    ) -> tuple[np.ndarray, np.ndarray]:
        """(..., n) reference minus state, of positions and of velocities."""
        return aim.q - q[..., self._skip_q :], aim.v - v[..., self._skip :]

    def _pose_ahead(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nq) pose in the middle of the sample for which the torque will be held."""
        return self.model.integrate(q, self._half * v) if self._half else q

    @property
    def _half(self) -> float:
        """Time until then. [s]"""
        return (self._late.count + 0.5) * (self.sample_time or 0.0)

    def _gravity(self, q: np.ndarray) -> np.ndarray:
        """(..., nv) N(q) of a body on a fixed base; zero for a free base, which falls."""
        rest = np.zeros((*q.shape[:-1], self.model.nv))
        return rest if self.model.free_base else self._inverse(q, rest, rest)

    @property
    def _eliminated(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows without a torque that the law solves for accelerations, and which ones.

        Those of a free base in all laws: it falls, as in `_gravity`.
        """
        return np.arange(self._skip), np.arange(self._skip)

    def _felt(self, q: np.ndarray, push: np.ndarray) -> np.ndarray:
        """(..., nv) forces on the joints, and those that reach them through a base that moves."""
        rows, z = self._eliminated
        if not len(rows):
            return push
        M = self._mass(q)
        moved = np.linalg.solve(M[..., rows[:, None], z], push[..., rows, None])
        return push - (M[..., :, z] @ moved)[..., 0]

    def _loaded(self, q: np.ndarray, tau: np.ndarray, push: np.ndarray) -> np.ndarray:
        """Torque of a law under generalized forces (..., nv) of known external wrenches."""
        tau = tau - self._felt(q, push)
        tau[..., self._idle] = 0.0
        return tau

    def _holding(self, q: np.ndarray) -> np.ndarray:
        """(..., nv) torque that holds still, as far as motors can."""
        tau = np.clip(self._gravity(q), -self._bound, self._bound)
        tau[..., self._idle] = 0.0
        return tau

    def _joint_slopes(self, dq: np.ndarray, dv: np.ndarray, dmemory: np.ndarray) -> Slopes:
        """Slopes of the model from those of the joints, (n, n), (n, n) and (n, k)."""
        nv, skip = self.model.nv, self._skip
        found = Slopes(np.zeros((nv, nv)), np.zeros((nv, nv)), np.zeros((nv, dmemory.shape[1])))
        found.dq[skip:, skip:], found.dv[skip:, skip:], found.dmemory[skip:] = dq, dv, dmemory
        return found

    def _driven_only(self, *slopes: np.ndarray) -> Slopes:
        """Slopes with zeros in the rows that have no motor."""
        for slope in slopes:
            slope[self._idle] = 0.0
        return Slopes(*slopes)

    def _demand_stable(self) -> None:
        """Refuse gains with which errors grow; those of a settling time are not refused."""
        if self.settling_time is None:
            from modurob.control.closed_loop import demand_stable

            demand_stable(self)

    def _demand_one(self, what: str) -> None:
        if self._batch:
            raise StateError(f"{what} is made of the law for one state, not of a batch")

    # -- input -------------------------------------------------------------------------------------

    def _state(self, q: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
        _, size_q, size_v = self._sizes
        if not (
            type(q) is np.ndarray
            and type(v) is np.ndarray
            and q.shape == size_q
            and v.shape == size_v
            and q.dtype == v.dtype == np.float64
        ):
            q, v = self.model.check_configuration(q), self.model.check_velocity(v)
            if q.shape != size_q or v.shape != size_v:
                states = f"{self._batch[0]} states" if self._batch else "one state"
                many = "" if self._batch else "; law.batched(count) takes many"
                raise StateError(
                    f"command takes {states}: q of shape {size_q} and v of shape {size_v}, "
                    f"got {q.shape} and {v.shape}{many}"
                )
        return q, v

    def _aim(self, reference: Any, q: np.ndarray) -> Reference:
        if reference is None:
            if np.isnan(self._hold).any():
                np.copyto(self._hold, q[..., self._skip_q :], where=np.isnan(self._hold))
            return self._rest
        try:
            given = reference.q, reference.v, reference.a
        except AttributeError:
            if hasattr(reference, "q") or callable(reference):
                raise StateError(
                    "a reference has q, v and a, or is a set point; call a function of time first"
                ) from None
            given = reference, self._rest.v, self._rest.a
        n, nq, nv = (size[-1] for size in self._sizes)
        return Reference(
            self._joints("q", given[0], n, nq),
            self._joints("v", given[1], n, nv),
            self._joints("a", given[2], n, nv),
        )

    def _joints(self, what: str, value: Any, n: int, size: int) -> np.ndarray:
        """(n,) of the joints, from an array of the joints or of the whole model; (..., n) too."""
        if type(value) is not np.ndarray or value.dtype != np.float64:
            value = real_array(f"reference.{what}", value)
        if value.shape == (n,):
            return value
        if value.shape in ((size,), (*self._batch, n), (*self._batch, size)):
            return value[..., value.shape[-1] - n :]
        raise StateError(
            f"reference.{what} has shape {value.shape}, expected ({n},), one number for each of "
            f"the joints {choices(self.model.joint_names)}"
        )

    def _demand_finite(self, q: np.ndarray, v: np.ndarray, aim: Reference) -> None:
        """Raise an error that names a number that is not finite, if one was given."""
        self.model.check_configuration(q)
        self.model.check_velocity(v)
        for what, value in zip("qva", aim, strict=True):
            real_array(f"reference.{what}", value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._rest = self._rest._replace(q=self._hold)  # one array under two names

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.model.joint_names)} joints>"


def _passive(names: Iterable[str] | str, model: Model) -> tuple[str, ...]:
    """Joints without a motor in the model's order, or an `UnknownNameError`."""
    if not isinstance(names, Iterable):
        raise StateError(f"passive takes names of joints, got {names!r}")
    springs = [name for name, k in zip(model.joint_names, model.stiffness, strict=True) if k > 0]
    chosen = {names, *springs} if isinstance(names, str) else {*names, *springs}
    for name in chosen:
        model.joint_index(name)
    if isinstance(names, tuple | list) and len(set(names)) != len(names):
        raise StateError(f"passive names a joint twice: {names!r}")
    return tuple(name for name in model.joint_names if name in chosen)
