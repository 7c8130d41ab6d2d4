"""`Model`: an organism as flat arrays, for the numerics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.errors import StateError, UnknownNameError, choices
from modurob.model.options import ModelOptions
from modurob.model.validation import check_arrays, check_numbers, common_batch
from modurob.spatial import se3, so3

if TYPE_CHECKING:
    from modurob.dynamics import (
        Dynamics,
        ForwardDerivatives,
        InverseDerivatives,
        StateSpace,
        StepDerivatives,
    )
    from modurob.equations.coriolis import ClosedForm
    from modurob.friction import FrictionRate
    from modurob.kinematics import IkResult
    from modurob.model.frames import JointFrames, NearBase
    from modurob.organism import Organism

LARGEST_DISPLACEMENT = 1e15  # [rad, m] of a joint: beyond it doubles are over 0.1 apart
UNIT_QUATERNION = 1e-3  # deviation of the norm still taken for round-off, and normalized away


@dataclass(frozen=True, eq=False)
class Model:
    """A tree of rigid links. Link 0 is the base; joint k connects link k + 1 to its parent.

    ``T_parent_link(q) = placement exp(screw q)``. Rigidly docked bodies are merged into one link;
    every body of the organism keeps its name and its place in its link.

    Attributes:
        joint_names: Active joints in the order of q: ``m3.hinge`` is joint ``hinge`` of ``m3``.
        locked: Joints that cannot move or move nothing, with the reason.
        parent: (n,) parent link of links 1..n.
        placement: (n, 4, 4) joint frames in the parent links' frames at q = 0. [m]
        screw: (n, 6) unit screws in the link frames, linear part first.
        prismatic: (n,) True for a joint that slides.
        lower, upper: (n,) limits, infinite where there is none. [rad, m]
        viscous, coulomb: (n,) friction. [N m s/rad or N s/m; N m or N]
        armature: (n,) inertia of the motors' rotors as the joints feel it. [kg m^2 or kg]
        stiffness: (n,) of springs in the joints, at rest at zero; such a joint has no motor.
            [N m/rad or N/m]
        mass: (n + 1,) of the links. [kg]
        center: (n + 1, 3) centers of mass in the link frames. [m]
        inertia: (n + 1, 3, 3) about the centers of mass, link axes. [kg m^2]
        body_names: All bodies of all modules.
        body_link: (nbodies,) the link each body is part of.
        body_placement: (nbodies, 4, 4) body frames in their link's frame. [m]
        modules: For each module, the body whose frame is the module's frame.
        base_pose: (4, 4) neutral pose of a free base in the world; the identity for a fixed one,
            whose link 0 is the world.
        free_base: True if q starts with position and unit quaternion (x, y, z, w) of link 0 in
            the world, and v with its twist in its own frame, linear part first.
        gravity: (3,) in the world frame. [m/s^2]
        organism: The organism that the model was built from; None for a model that was made by hand
            or whose arrays differ from the organism's, such as one with scaled masses.
        options: The arguments of `Organism.model` that it was built with; None without `organism`.
    """

    joint_names: tuple[str, ...]
    locked: Mapping[str, str]
    parent: np.ndarray
    placement: np.ndarray
    screw: np.ndarray
    prismatic: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    viscous: np.ndarray
    coulomb: np.ndarray
    armature: np.ndarray
    stiffness: np.ndarray
    mass: np.ndarray
    center: np.ndarray
    inertia: np.ndarray
    body_names: tuple[str, ...]
    body_link: np.ndarray
    body_placement: np.ndarray
    modules: Mapping[str, int]
    base_pose: np.ndarray
    free_base: bool
    gravity: np.ndarray
    organism: Organism | None = None
    options: ModelOptions | None = None

    def __post_init__(self) -> None:
        check_arrays(self)
        if (self.organism is None) != (self.options is None):
            raise StateError("a model has both, organism and options, or neither")

    @classmethod
    def _of_checked_parts(cls, **fields: Any) -> Model:
        """A model of arrays made from datasheets and dockings that were checked.

        The checks of the constructor are left out, except for numbers that have become too large.
        """
        model = object.__new__(cls)
        vars(model).update(fields)
        check_numbers(model)
        return frozen(model)

    @property
    def nq(self) -> int:
        """Size of a configuration."""
        return len(self.joint_names) + (7 if self.free_base else 0)

    @property
    def nv(self) -> int:
        """Size of a velocity."""
        return len(self.joint_names) + (6 if self.free_base else 0)

    @property
    def joint_slice_q(self) -> slice:
        """Place of the joints in a configuration, behind a free base: ``q[..., joint_slice_q]``."""
        return slice(7 if self.free_base else 0, self.nq)

    @property
    def joint_slice_v(self) -> slice:
        """Place of the joints in a velocity, an acceleration or generalized forces."""
        return slice(6 if self.free_base else 0, self.nv)

    @property
    def nbodies(self) -> int:
        """Number of bodies, merged or not."""
        return len(self.body_names)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The form in a notebook."""
        from modurob.studio.notebook import bundle

        return bundle(self)

    def __repr__(self) -> str:
        base = "free" if self.free_base else "fixed"
        return (
            f"<Model: nq = {self.nq}, nv = {self.nv}, {len(self.mass)} links of {self.nbodies} "
            f"bodies, {base} base, {len(self.locked)} locked joints>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies hold the arrays; code is compiled again when needed."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        fields["locked"], fields["modules"] = dict(self.locked), dict(self.modules)
        return _restored, (fields, getattr(vars(self).get("dynamics"), "compile_options", None))

    # -- names ---------------------------------------------------------------------------------

    @cached_property
    def _body_index(self) -> dict[str, int]:
        names = {name: index for index, name in enumerate(self.body_names)}
        return {**self.modules, **names}

    def body_index(self, body: str | int) -> int:
        """Index of a body; a module's name means the body that carries its frame."""
        if isinstance(body, int | np.integer) and 0 <= body < self.nbodies:
            return int(body)
        if isinstance(body, str) and body in self._body_index:
            return self._body_index[body]
        raise UnknownNameError(f"no body {body!r}: bodies are {choices(self.body_names)}")

    def is_merged(self, module: str) -> bool:
        """Return whether a module is one body, named as the module (a cube in the dyad model).

        Otherwise each body of the module's datasheet is a body ``module.body`` of the model.
        """
        if module not in self.modules:
            raise UnknownNameError(f"no module {module!r}: modules are {choices(self.modules)}")
        return self.body_names[self.modules[module]] == module

    def joint_index(self, joint: str) -> int:
        """Index of an active joint in `joint_names`."""
        if joint in self.joint_names:
            return self.joint_names.index(joint)
        if isinstance(joint, str) and joint in self.locked:
            raise UnknownNameError(f"joint '{joint}' is locked: {self.locked[joint]}")
        raise UnknownNameError(f"no joint {joint!r}: joints are {choices(self.joint_names)}")

    # -- states --------------------------------------------------------------------------------

    def neutral(self) -> np.ndarray:
        """(nq,) all joints at zero; a free base at its pose in the organism."""
        joints = np.zeros(len(self.joint_names))
        if not self.free_base:
            return joints
        return np.concatenate([se3.to_position_and_quaternion(self.base_pose), joints])

    def random_configuration(self, rng: np.random.Generator) -> np.ndarray:
        """(nq,) joints uniform within their limits (one turn or 1 m where there is none)."""
        reach = np.where(self.prismatic, 0.5, np.pi)
        low = np.where(np.isfinite(self.lower), self.lower, np.minimum(-reach, self.upper - reach))
        high = np.where(np.isfinite(self.upper), self.upper, np.maximum(reach, low + reach))
        joints = rng.uniform(low, high)
        if not self.free_base:
            return joints
        quaternion = rng.standard_normal(4)
        place = self.base_pose[:3, 3] + rng.standard_normal(3)
        return np.concatenate([place, so3.unit_quaternion(quaternion), joints])

    def integrate(self, q: ArrayLike, step: ArrayLike) -> np.ndarray:
        """The configuration reached from `q` when the velocity `step` acts for one second.

        Args:
            q: (..., nq) configuration.
            step: (..., nv) velocity times duration, the base's as a body twist.
        """
        q, dq = self.check_configuration(q), self.check_velocity(step)
        if not self.free_base:
            return q + dq
        q, dq = np.asarray(q, order="C"), np.asarray(dq, order="C")  # NumPy rounds views otherwise
        T = self.base_of(q) @ se3.exp(dq[..., :6])
        joints = q[..., 7:] + dq[..., 6:]
        return np.concatenate([se3.to_position_and_quaternion(T), joints], axis=-1)

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> np.ndarray:
        """(..., nv) velocity that leads from `q0` to `q1` in one second; inverts `integrate`.

        The base's part is a body twist in the frame of `q0`, with an angle of pi at most.

        Args:
            q0, q1: (..., nq) configurations, whose batch shapes broadcast.
        """
        q0, q1 = self.check_configuration(q0), self.check_configuration(q1)
        common_batch([q0.shape[:-1], q1.shape[:-1]], "q0 and q1")
        joints = q1[..., self.joint_slice_q] - q0[..., self.joint_slice_q]
        if not self.free_base:
            return joints
        twist = se3.log(se3.inverse(self.base_of(q0)) @ self.base_of(q1))
        return np.concatenate([twist, joints], axis=-1)

    def base_of(self, q: np.ndarray) -> np.ndarray:
        """(..., 4, 4) pose of link 0 in a checked configuration."""
        if not self.free_base:
            return self.base_pose
        T = np.zeros((*q.shape[:-1], 4, 4))
        T[..., :3, :3] = so3.from_quaternion(q[..., 3:7])
        T[..., :3, 3] = q[..., :3]
        T[..., 3, 3] = 1.0
        return T

    def check_configuration(self, q: ArrayLike, finite: bool = True) -> np.ndarray:
        """`q` as (..., nq) floats, quaternion at norm 1 (`so3.unit_quaternion`), or a `StateError`.

        Args:
            finite: Check every number; compiled kernels do so themselves.
        """
        array = self._checked("q", q, self.nq, "nq", finite)
        if finite:
            self._demand_range(array)
        if not self.free_base or so3.is_unit(array[..., 3:7]):
            return array
        norm = np.sqrt(np.asarray(so3.squared_norm(array[..., 3:7])))[..., None]
        if np.any(np.abs(norm - 1) > UNIT_QUATERNION):
            self._checked("q", array, self.nq, "nq", finite=True)
            row = np.unravel_index(np.argmax(np.abs(norm - 1)), norm.shape)
            where = "".join(f"{k}, " for k in row[:-1])
            raise StateError(
                f"q[{where}3:7] is the base's unit quaternion (x, y, z, w); "
                f"its norm must be 1, got {norm[row]:g}"
            )
        unit = so3.unit_quaternion(array[..., 3:7])
        return np.concatenate([array[..., :3], unit, array[..., 7:]], axis=-1)

    def _demand_range(self, q: np.ndarray) -> None:
        over = np.abs(q[..., self.joint_slice_q]) > LARGEST_DISPLACEMENT
        if over.any():
            *row, joint = (int(k) for k in np.argwhere(over)[0])
            where = [*row, joint + self.joint_slice_q.start]
            raise StateError(
                f"q{where} ({self.joint_names[joint]}) is {q[tuple(where)]:g}, beyond "
                f"{LARGEST_DISPLACEMENT:g} rad or m: there numbers are over 0.1 apart; "
                "give angles modulo 2 pi"
            )

    def check_velocity(self, v: ArrayLike, name: str = "v", finite: bool = True) -> np.ndarray:
        """`v` (or a, tau) as (..., nv) floats, or a `StateError`."""
        return self._checked(name, v, self.nv, "nv", finite)

    def _checked(
        self, name: str, value: ArrayLike, size: int, what: str, finite: bool
    ) -> np.ndarray:
        try:
            given = np.asarray(value)
            refused = given.dtype.kind not in "iufO"
            array = np.empty(0) if refused else given.astype(float, copy=False)
        except (TypeError, ValueError, OverflowError):
            raise StateError(f"{name} must hold numbers, got {type(value).__name__}") from None
        if refused:
            kind = "complex ones" if given.dtype.kind == "c" else repr(value)[:60]
            raise StateError(f"{name} must hold real numbers, got {kind}")
        if array.ndim == 0 or array.shape[-1] != size:
            base = "base (7 in q, 6 in v), then " if self.free_base else ""
            raise StateError(
                f"{name} has shape {array.shape}, expected (..., {what} = {size}): "
                f"{base}{choices(self.joint_names)}"
            )
        if finite and not np.isfinite(array).all():
            where = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
            raise StateError(f"{name}{list(where)} is {array[where]}; all entries must be finite")
        return array

    @cached_property
    def _frames(self) -> JointFrames:
        """The same arrays in joint frames, for the recursions and the compiler."""
        from modurob.model.frames import joint_frames

        return joint_frames(self._near)

    @cached_property
    def _placed_frames(self) -> JointFrames:
        """Joint frames at the robot's place; `_frames` are those near its base."""
        from modurob.model.frames import NearBase, joint_frames

        return joint_frames(NearBase(self, np.ones(self.nq), np.zeros(3)))

    @cached_property
    def _wrench_maps(self) -> np.ndarray:
        """(nbodies, 6, 6) ``F @ map`` is the wrench F on a body, in its link's joint frame."""
        frames = self._frames
        return se3.Ad(se3.inverse(se3.pose(frames.body_rotation, frames.body_position)))

    def _on_links(self, given: Sequence[tuple[int, np.ndarray]]) -> np.ndarray:
        """(..., links, 6) wrenches in joint frames, from (body, (..., 6) wrench in its frame)."""
        batch = common_batch([F.shape[:-1] for _, F in given], "external wrenches")
        result = np.zeros((*batch, len(self.mass), 6))
        for body, F in given:
            result[..., self.body_link[body], :] += F @ self._wrench_maps[body]
        return result

    @cached_property
    def _near(self) -> NearBase:
        """The same dynamics with the origin at the base."""
        from modurob.model.frames import near_base

        return near_base(self)

    def _near_base(self, q: np.ndarray) -> tuple[Model, np.ndarray]:
        """A model with the same dynamics near the origin, and its configuration for a checked q.

        Sums over all links are formed there, because far away they would lose their digits.
        """
        model, counts, _ = self._near
        return model, q if counts.all() else q * counts

    @cached_property
    def _moving_columns(self) -> np.ndarray:
        """(links, nv) true where a velocity moves a link."""
        moves = np.zeros((len(self.mass), self.nv), dtype=bool)
        moves[:, : self.joint_slice_v.start] = True
        for k, parent in enumerate(self.parent.tolist()):
            moves[k + 1] = moves[parent]
            moves[k + 1, self.joint_slice_v.start + k] = True
        return moves

    @property
    def _on_cpu(self) -> Model:
        """The model itself, or the one that was compiled for a GPU."""
        return getattr(self.dynamics, "source", self)

    # -- kinematics ----------------------------------------------------------------------------

    def forward_kinematics(self, q: ArrayLike) -> np.ndarray:
        """(..., nbodies, 4, 4) poses of all bodies in the world frame. [m]"""
        from modurob import kinematics

        return kinematics.forward_kinematics(self, q)

    def jacobian(self, q: ArrayLike, body: str | int, frame: str = "body") -> np.ndarray:
        """(..., 6, nv) twist of a body per velocity, linear part first.

        Args:
            frame: ``body`` (its own, as in Meister 2013), ``world`` (spatial twist about the
                world's origin) or ``aligned`` (velocity of the body's origin, world axes).
        """
        from modurob import kinematics

        return kinematics.jacobian(self, q, body, frame)

    def jacobian_rate(
        self, q: ArrayLike, v: ArrayLike, body: str | int, frame: str = "body"
    ) -> np.ndarray:
        """(..., 6, nv) time derivative of `jacobian` along the velocity v, in the same frame."""
        from modurob import kinematics

        return kinematics.jacobian_rate(self, q, v, body, frame)

    def center_of_mass(self, q: ArrayLike) -> np.ndarray:
        """(..., 3) center of mass of the whole organism, a fixed base included. [m]"""
        self._demand_mass()
        return self.dynamics.quantity("center_of_mass", q)

    def inverse_kinematics(
        self,
        targets: Mapping[str, ArrayLike],
        q0: ArrayLike | None = None,
        *,
        points: Mapping[str, ArrayLike] | None = None,
        restarts: int = 30,
        rng: np.random.Generator | None = None,
    ) -> IkResult:
        """A configuration within the joint limits that brings bodies to their targets.

        Args:
            targets: For each body (..., 4, 4) poses or (..., 3) positions in the world.
            q0: (..., nq) first guess; by default all joints at zero, or at the limit next to it.
            points: For bodies with a position: the (3,) point, in the body's frame, that has to be
                there; the origin by default. [m]
            restarts: Further random starts while the targets are not reached.
            rng: For the restarts; a fixed seed by default.
        """
        from modurob import kinematics

        return kinematics.inverse_kinematics(
            self, targets, q0, points=points, restarts=restarts, rng=rng
        )

    # -- dynamics --------------------------------------------------------------------------------

    @cached_property
    def dynamics(self) -> Dynamics:
        """The compiled routines behind the methods below."""
        from modurob.dynamics import Dynamics

        return Dynamics(self)

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        external: Mapping[str, ArrayLike] | None = None,
        threads: int | str = "auto",
    ) -> np.ndarray:
        """(..., nv) generalized forces for an acceleration, friction included. [N m, N]

        Args:
            q, v, a: (..., nq), (..., nv), (..., nv) state and acceleration.
            external: Wrenches (..., 6) on bodies, in the bodies' frames, force first.
            threads: For large batches; "auto" takes the cores that are worth it.
        """
        return self.dynamics.quantity(
            "inverse_dynamics", q, v, a, external=external, threads=threads
        )

    def forward_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        external: Mapping[str, ArrayLike] | None = None,
        threads: int | str = "auto",
    ) -> np.ndarray:
        """(..., nv) acceleration under generalized forces `tau` and friction. [rad/s^2, m/s^2]"""
        return self.dynamics.quantity(
            "forward_dynamics", q, v, tau, external=external, threads=threads
        )

    def mass_matrix(self, q: ArrayLike, threads: int | str = "auto") -> np.ndarray:
        """(..., nv, nv) M(q). [kg m^2, kg m, kg]"""
        return self.dynamics.quantity("mass_matrix", q, threads=threads)

    def gravity_torque(self, q: ArrayLike) -> np.ndarray:
        """(..., nv) N(q): the forces that hold the organism still, springs included. [N m, N]"""
        rest = np.zeros(self.nv)
        return self.inverse_dynamics(q, rest, rest)

    def coriolis_matrix(
        self, q: ArrayLike, v: ArrayLike, threads: int | str = "auto"
    ) -> np.ndarray:
        """(..., nv, nv) C(q, v) with dM/dt - 2 C skew."""
        return self.dynamics.quantity("coriolis_matrix", q, v, threads=threads)

    def closed_form(
        self, q: ArrayLike, v: ArrayLike, external: Mapping[str, ArrayLike] | None = None
    ) -> ClosedForm:
        """M, C and N as in Meister 2013, eqs. (29)-(33): M a + C v + N + friction = tau.

        Args:
            q, v: (..., nq), (..., nv) state.
            external: As for `inverse_dynamics`; N is gravity less what they do.
        """
        from modurob.equations.coriolis import ClosedForm

        model = self._on_cpu
        found = model.dynamics.quantity("closed_form_matrices", q, v)
        rest = np.zeros(self.nv)
        N = model.inverse_dynamics(q, rest, rest, external)
        batch = common_batch([found.shape[:-3], N.shape[:-1]], "v and external wrenches")
        M, C = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in np.moveaxis(found, -3, 0))
        return ClosedForm(M, C, np.broadcast_to(N, (*batch, self.nv)))

    def momentum(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """(..., 6) linear momentum, angular momentum about the world's origin. [N s, N m s]

        Far from the origin the angular part is mostly ``r x`` the linear one and is as accurate as
        that product. About a free base, in its frame, it is ``(mass_matrix(q) @ v)[..., 3:6]``.
        """
        return self.dynamics.quantity("momentum", q, v)

    def kinetic_energy(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """(...) [J]"""
        return self.dynamics.quantity("energy", q, v)[..., 0][()]

    def potential_energy(self, q: ArrayLike) -> np.ndarray:
        """(...) of weight, zero at the height of the world's origin, and of springs. [J]"""
        return self.dynamics.quantity("energy", q, np.zeros(self.nv))[..., 1][()]

    def energy(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """(...) kinetic plus potential energy. [J]"""
        return self.dynamics.quantity("energy", q, v).sum(axis=-1)

    def centroidal_momentum_matrix(self, q: ArrayLike, threads: int | str = "auto") -> np.ndarray:
        """(..., 6, nv) A with A v the momentum about the center of mass, in world axes.

        Linear part first. [kg, kg m; kg m, kg m^2]
        """
        self._demand_mass()
        return self.dynamics.quantity("centroidal_momentum_matrix", q, threads=threads)

    def centroidal_momentum_matrix_rate(
        self, q: ArrayLike, v: ArrayLike, threads: int | str = "auto"
    ) -> np.ndarray:
        """(..., 6, nv) time derivative of `centroidal_momentum_matrix`."""
        self._demand_mass()
        return self.dynamics.quantity("centroidal_momentum_matrix_rate", q, v, threads=threads)

    def _demand_mass(self) -> None:
        if not np.sum(self.mass) > 0:
            raise StateError("the organism has no mass, so it has no center of mass")

    def inverse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, threads: int | str = "auto"
    ) -> InverseDerivatives:
        """Exact derivatives (dq, dv, da) of `inverse_dynamics`, each (..., nv, nv).

        With a free base, dq is by the base's twist in its own frame, as in `integrate`.
        """
        from modurob.dynamics import InverseDerivatives

        found = self.dynamics.quantity("inverse_dynamics_derivatives", q, v, a, threads=threads)
        return InverseDerivatives(*(found[..., k, :, :] for k in range(3)))

    def forward_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, threads: int | str = "auto"
    ) -> ForwardDerivatives:
        """Exact derivatives (dq, dv, dtau) of `forward_dynamics`, each (..., nv, nv)."""
        from modurob.dynamics import ForwardDerivatives

        a = self.dynamics.quantity("forward_dynamics", q, v, tau, threads=threads)
        found = self.dynamics.quantity("forward_dynamics_derivatives", q, v, a, threads=threads)
        return ForwardDerivatives(*(found[..., k, :, :] for k in range(3)))

    def step(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """(q, v) after one semi-implicit Euler step of `dt` seconds: first v, then q with it.

        The velocity of a free base's origin is advanced in the world, then turned into its frame.
        Friction acts with the velocity before the step, or, when it is too stiff for that
        (``dt * friction_rate.rate > 1``), with the velocity after it, which no friction can make
        unstable.
        """
        from modurob import dynamics

        return dynamics.step(self, q, v, tau, dt)

    def rollout(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, dt: float,
        external: Mapping[str, ArrayLike] | None = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """(steps, ..., nq) and (steps, ..., nv) states after each of many steps; see `step`.

        Compiled for ``cuda``, all steps are one launch; friction must not be stiff there.

        Args:
            q, v: (..., nq), (..., nv) states at the start.
            tau: (steps, ..., nv) joint forces in each step.
            external: Wrenches on bodies as in `forward_dynamics`, the same in all steps.
        """
        from modurob import dynamics

        return dynamics.rollout(self, q, v, tau, dt, external)

    def step_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, dt: float
    ) -> StepDerivatives:
        """Exact Jacobians (A, B) of `step` for estimators, by x = (q, v) and by tau."""
        from modurob import dynamics

        return dynamics.step_derivatives(self, q, v, tau, dt)

    def linearize(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> StateSpace:
        """State space (A, B) of small deviations from a state, exact; see `Equations.linearize`.

        Args:
            q, v: (..., nq), (..., nv) the state.
            tau: (..., nv) the joint forces there.
        """
        from modurob import dynamics

        return dynamics.linearize(self, q, v, tau)

    @cached_property
    def friction_rate(self) -> FrictionRate:
        """Fastest decay that friction causes, and the joint: what steps in time must follow."""
        from modurob.friction import fastest_rate

        return fastest_rate(self)

    def prepare(
        self, name: str, states: int | None = None, out: Any = None, external: bool = False
    ) -> Callable[..., Any]:
        """A bound callable for control loops: ``f = model.prepare("inverse_dynamics")``.

        Takes plain float64 arrays of one state and returns the same array each time, overwritten;
        anything else goes through the ordinary method. Compiled for ``cuda`` it takes contiguous
        arrays on the GPU, of CuPy or with ``__dlpack__``, and copies nothing: other arrays are
        refused. An array that is given again must have kept its memory.

        Args:
            name: Of a quantity in `modurob.equations.quantities` such as ``forward_dynamics`` or
                ``mass_matrix``; derivatives are returned in the same three arrays each time, and
                ``forward_kinematics`` as the rows [R | p] of all bodies.
            states: For arrays of that many rows instead of one state.
            out: On ``cuda``: the array for the results, of CuPy or with ``__dlpack__``.
            external: On ``cuda``: for a call that takes one more array, (bodies, 6) wrenches of
                each state on all bodies, each in its body's frame.
        """
        return self.dynamics.prepare(name, states, out, external)

    def compile(
        self, target: str = "cpu", dtype: str = "float64", background: bool = False
    ) -> Model:
        """The same model with compiled code of its own: faster, after some time for compiling.

        Each algorithm is compiled when it is first called or prepared, for one state and for
        batches apart. On ``cuda`` the numbers are not checked: numbers that are not finite give
        results that are not.

        Args:
            target: ``cpu``, or ``cuda`` for large batches on an NVIDIA GPU (CuPy arrays in and out;
                arrays with ``__dlpack__``, of PyTorch and JAX, are read without a copy, NumPy
                arrays are moved). There every quantity with ``straight_line`` in
                `modurob.equations.quantities` is computed: dynamics, mass, Coriolis and centroidal
                momentum matrices, kinematics, momentum and energy. Jacobians, inverse kinematics
                and the closed form of the result are computed on the CPU; derivatives and `step`
                are refused, `rollout` takes steps.
            dtype: ``float64``; on ``cuda`` also ``float32``.
            background: Use the table of dyads until the new code is ready.
        """
        from modurob.dynamics import compiled

        return compiled(self, target, dtype, background)


def frozen(model: Model) -> Model:
    """The model with all its arrays read-only."""
    for value in vars(model).values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return model


def _restored(fields: dict[str, Any], options: tuple[str, str, bool] | None = None) -> Model:
    views = {key: MappingProxyType(fields[key]) for key in ("locked", "modules")}
    model = frozen(Model(**{**fields, **views}))
    return model if options is None else model.compile(*options)
