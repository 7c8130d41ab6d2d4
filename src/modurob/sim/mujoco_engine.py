"""MuJoCo as the engine of a run: its steps, and its contacts as channels.

Laws, noise, wrenches, events and records are those of every run. A body that docks or undocks
becomes a new model of MuJoCo.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from modurob.dynamics import external_forces
from modurob.equations.links import friction
from modurob.errors import StateError, UnknownNameError, choices
from modurob.model import Model
from modurob.organism import Organism
from modurob.stepping import EquationOfMotion, FixedStep, Ground, StepSettings
from modurob.stepping.motion import External, Law, Stopped

# of friction; with a lower ratio of its stiffness to that of the normal, bodies creep
CONES = {"cone": "elliptic", "impratio": "10"}
STEPS_TO_STICK = 2.0  # time constant of dry friction in joints: the shortest that MuJoCo takes
START_OVERLAP_M = 1e-3  # of bodies at the start: what contact pushes apart gently
DEFAULT = "implicitfast"  # of MuJoCo's integrators: stable with stiff friction, one solve a step


class MujocoPlant:
    """One body, or a batch of states of it, in MuJoCo: contacts, joint limits, dry friction.

    Like MuJoCo it is at a time; `observed` and `force` are for states at that time.

    Args:
        motion: Of the body, with its drive and external wrenches.
        organism: Whose shapes touch each other and the ground; None for no contact.
        limits: Whether joints stop at their limits.
        integrator: One of MuJoCo's.
        t: Time at the start. [s]
    """

    def __init__(
        self, motion: EquationOfMotion, organism: Organism | None, ground: Ground | None,
        limits: bool, integrator: str, t: float,
    ) -> None:  # fmt: skip
        from modurob.interop.mujoco_model import MujocoModel, mujoco

        self._motion, self._model, self._batch = motion, motion.model, motion.batch
        self._mujoco, self._ground, self._t = mujoco(), ground, t
        self._engine = MujocoModel(motion.model, organism, ground, integrator=integrator, **CONES)
        off, self._peer = self._mujoco.mjtDisableBit, self._engine.peer
        self._peer.opt.disableflags |= int(off.mjDSBL_AUTORESET)  # divergence shall be seen
        if not limits:
            self._peer.opt.disableflags |= int(off.mjDSBL_LIMIT)
        self._data = [self._engine.data() for _ in range(math.prod(self._batch))]
        self._touches = organism is not None
        self._solved: tuple[np.ndarray, ...] | None = None  # q, v, force of the last solution

    def march(
        self, t: float, h: float, count: int, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """States after `count` steps of `h` seconds; in each, torques and wrenches are held."""
        motion, self._peer.opt.timestep = self._motion, h
        self._peer.dof_solref[:, 0] = STEPS_TO_STICK * h
        clocked = motion.drive is None or getattr(motion.drive, "sample_time", None) is not None
        some = count if clocked and not motion.external else 1
        with self._engine.quiet():
            for done in range(0, count, some):
                self._t = t + done * h
                self._load(q, v, self._given(q, v))
                for data in self._data:
                    self._mujoco.mj_step(self._peer, data, some)
                q, v = np.empty(q.shape), np.empty(v.shape)
                for data, q_one, v_one in self._rows(q, v):
                    q_one[:], v_one[:] = self._engine.state(data)
        self._t = t + count * h
        self._check_contacts(q)
        return q, v

    def _rows(self, *arrays: np.ndarray) -> Iterator[tuple[Any, ...]]:
        """MuJoCo's data of each state, with its rows of arrays."""
        flat = (x.reshape(len(self._data), x.shape[-1]) for x in arrays)
        return zip(self._data, *flat, strict=True)

    def _given(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv) what the drive and external wrenches put on states at this time. [N m, N]"""
        force, wrenches = self._motion.torque(self._t, q, v), self._motion.wrenches(self._t)
        return force if wrenches is None else force + external_forces(self._model, q, wrenches)

    def _load(self, q: np.ndarray, v: np.ndarray, force: np.ndarray) -> None:
        """Write states, and the forces on them, into MuJoCo's data."""
        self._solved = None
        for data, q_one, v_one, force_one in self._rows(q, v, force):
            self._engine.put(data, q_one, v_one)
            data.qfrc_applied[:] = self._engine.to_theirs(q_one, force_one)

    def _check_contacts(self, q: np.ndarray) -> None:
        """End a run in which contacts were left out, or a body has left a field of heights."""
        kinds = self._mujoco.mjtWarning
        for kind in (kinds.mjWARN_CONTACTFULL, kinds.mjWARN_CNSTRFULL):
            if any(data.warning[int(kind)].number for data in self._data):
                raise Stopped(
                    self._t, "MuJoCo has no memory for all contacts: give the ground a larger cell"
                )
        edge = self._engine.edge
        if edge is not None and self._model.free_base and np.any(np.abs(q[..., :2]) > edge):
            x, y = edge
            raise Stopped(
                self._t, f"the body has left the ground, which ends at x = ±{x:g} m and y = ±{y:g} "
                "m in MuJoCo: give heights on a larger grid",
            )  # fmt: skip

    def check_start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Refuse states in which bodies overlap: MuJoCo would throw them apart."""
        for data, q_one, v_one in self._rows(q, v):
            self._engine.put(data, q_one, v_one)
            with self._engine.quiet():
                self._mujoco.mj_fwdPosition(self._peer, data)
            for contact in data.contact:
                one, other = self._engine.geom_body[contact.geom].tolist()
                if min(one, other) >= 0 and contact.dist < -START_OVERLAP_M:
                    names = self._model.body_names
                    raise StateError(
                        f"'{names[one]}' and '{names[other]}' overlap by {-contact.dist:.2g} m at "
                        "the start: start in a pose without collisions"
                    )

    # -- records -----------------------------------------------------------------------------------

    def _solve(self, q: np.ndarray, v: np.ndarray) -> None:
        """Find accelerations and contacts of states at this time."""
        state = q, v, self._given(q, v)
        if self._solved is not None and all(map(np.array_equal, self._solved, state)):
            return
        self._load(*state)
        self._solved = tuple(x.copy() for x in state)
        with self._engine.quiet():
            for data in self._data:
                self._mujoco.mj_forward(self._peer, data)

    def force(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv) forces that MuJoCo's accelerations have and the model's do not. [N m, N]

        Contacts, joint limits and dry friction are constraints of MuJoCo; the model has dry
        friction, too, as a function of the velocity, which is taken away.
        """
        self._solve(q, v)
        result, joints = np.empty(v.shape), self._model.joint_slice_v
        for data, q_one, row in self._rows(q, result):
            row[:] = self._engine.to_ours(q_one, data.qfrc_constraint)
        result[..., joints] += friction(0.0, self._model.coulomb, v[..., joints])
        return result

    @property
    def recorded(self) -> int:
        """Numbers that a record of one state has of contacts, at most: `observed` and `force`."""
        return self._model.nv + 12 * self._model.nbodies * self._touches

    def observed(self, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        """Channels: forces and torques on each body, of the ground and of other bodies.

        They are (..., bodies, 3) in the world, torques about its origin. [N, N m]
        """
        if not self._touches:
            return {}
        self._solve(q, v)
        found = np.zeros((len(self._data), 2, self._model.nbodies, 6))
        for data, wrenches in zip(self._data, found, strict=True):
            contact = data.contact
            active = contact.efc_address >= 0
            # of an elliptic cone: along the normal and two tangents, on the second shape
            along = data.efc_force[contact.efc_address[active, None] + np.arange(3)]
            f = np.einsum("ki,kij->kj", along, contact.frame[active].reshape(-1, 3, 3))
            F = np.concatenate([f, np.cross(contact.pos[active], f)], axis=1)
            bodies = self._engine.geom_body[contact.geom[active]]
            by_body = (bodies.min(axis=1, initial=0) >= 0).astype(int)
            for body, sign in zip(bodies.T, (-1, 1), strict=True):
                moved = body >= 0
                np.add.at(wrenches, (by_body[moved], body[moved]), sign * F[moved])
        found = np.moveaxis(found, 1, 0).reshape(2, *self._batch, self._model.nbodies, 6)
        channels = {"self_contact": found[1, ..., :3], "self_contact_torque": found[1, ..., 3:]}
        if self._ground is not None:
            channels |= {"contact": found[0, ..., :3], "contact_torque": found[0, ..., 3:]}
        return channels


class MujocoMotion(EquationOfMotion):
    """Equation of motion of a body in MuJoCo.

    Args:
        place: Further arguments of `MujocoPlant`.
    """

    def __init__(
        self, model: Model, batch: tuple[int, ...], drive: Law | None, external: External,
        *place: Any,
    ) -> None:  # fmt: skip
        super().__init__(model, batch, drive, external=external)
        self.plant = MujocoPlant(self, *place)

    def force(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.torque(t, q, v) + self.plant.force(q, v)

    def contacts(self, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        return self.plant.observed(q, v)


class MujocoStep(FixedStep):
    """Steps of MuJoCo, whose friction is implicit: they need no substeps."""

    batches = True
    integrator: ClassVar[str] = DEFAULT

    def __init__(self, motion: EquationOfMotion, settings: StepSettings) -> None:
        assert isinstance(motion, MujocoMotion)
        super().__init__(motion, settings._replace(substeps=1))
        self._plant = motion.plant

    def advance(
        self, t: float, h: float, count: int, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._plant.march(t, h, count, q, v)


def mujoco_method(integrator: object, stops: object, ground: Ground | None) -> type[MujocoStep]:
    """Return MuJoCo's steps, or the error that says what cannot be had with MuJoCo."""
    from modurob.interop.mjcf import MUJOCO_INTEGRATORS
    from modurob.interop.mujoco_model import mujoco

    mujoco()
    name = DEFAULT if integrator is None else integrator
    if not (isinstance(name, str) and name in MUJOCO_INTEGRATORS):
        raise UnknownNameError(
            f"no integrator {integrator!r} with engine 'mujoco': integrators are "
            f"{choices(MUJOCO_INTEGRATORS)}; those of modurob go with engine 'modurob'"
        )
    if not isinstance(stops, bool):
        raise StateError(
            f"engine 'mujoco' has joint limits of its own: give stops=True or False, got {stops!r}"
        )
    if ground is not None and (ground.stiffness, ground.damping) != (None, None):
        raise StateError(
            "engine 'mujoco' has a contact law of its own: leave stiffness and damping of the "
            f"ground out, got {ground.stiffness} N/m and {ground.damping} s/m"
        )
    return type(name, (MujocoStep,), {"name": f"MuJoCo {name}", "integrator": name})
