"""States carried over from one body to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from modurob.checks import as_floats
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.joint_map import JointMap
from modurob.organism import Organism
from modurob.sim.reconfiguration.events import Dock
from modurob.sim.reconfiguration.impact import Masses, Pose, closest_joints, gap_size
from modurob.spatial import se3

MISFIT = 1e-9  # [m] between a mass before and after undocking, where none should be


@dataclass(frozen=True, eq=False)
class BodyState:
    """An organism at a configuration, moving."""

    organism: Organism
    model: Model
    q: np.ndarray
    v: np.ndarray

    @cached_property
    def pose(self) -> Pose:
        return Pose(self.model, self.q)

    @cached_property
    def masses(self) -> Masses:
        return self.pose.masses(self.organism, self.v)

    def frame(self, module: str) -> np.ndarray:
        """(4, 4) frame of a module in the world."""
        return self.pose.bodies[self.model.modules[module]]

    def joints(self) -> dict[str, float]:
        """Displacements by joint."""
        values = self.q[self.model.joint_slice_q].tolist()
        return dict(zip(self.model.joint_names, values, strict=True))

    def energy(self) -> float:
        """Kinetic and potential. [J]"""
        return self.masses.kinetic_energy() + self.masses.potential_energy(self.model.gravity)

    def momentum(self) -> np.ndarray:
        """(6,) linear, and angular about the world's origin. [N s, N m s]"""
        return np.sum(self.masses.momenta(), axis=0)


def undocked(state: BodyState, organism: Organism, model: Model) -> BodyState:
    """The part `organism` of a body, moving on as it did."""
    q = JointMap(state.model, model).configuration(state.q)
    if model.free_base and state.model.free_base and organism.base == state.organism.base:
        q[:7] = state.q[:7]  # not through a matrix and back
    elif model.free_base:
        q[:7] = _base(model, organism, state.frame(organism.base))
    pose = Pose(model, q)
    still = pose.masses(organism, np.zeros(model.nv))
    mine = state.masses.only(still.names)
    misfit = float(np.abs(still.center - mine.center).max(initial=0.0))
    if misfit > MISFIT:
        raise StateError(
            f"the body of '{organism.base}' cannot take the pose it had ({misfit:.1e} m off): "
            "joints that were free are locked now; give the modules between them a mass"
        )
    return BodyState(organism, model, q, pose.impact(mine))


class Joined(NamedTuple):
    """The body after a docking."""

    state: BodyState
    momentum: np.ndarray  # (6,) of both parts before. [N s, N m s]
    energy: float  # of both parts before. [J]
    aligned: float  # energy after the latch closed the gap, before the impact. [J]
    gap: tuple[float, float]  # distance and angle that were left. [m, rad]


def docked(
    module: str, host: BodyState, guest: BodyState, whole: Organism, model: Model,
    held: Mapping[str, float],
) -> Joined:  # fmt: skip
    """Both parts as one; the guest, with its `module`, is moved by what is left between the ports.

    Args:
        held: Last displacements of joints that neither part has.
    """
    q = _posed(model, host, guest.model, guest.q, held)
    fresh = set.intersection(
        *(set(JointMap(part.model, model).added.tolist()) for part in (host, guest))
    )
    T_guest, size = guest.frame(module), whole.kind(module).size
    q, left = closest_joints(model, q, sorted(fresh), module, T_guest, size)
    G = model.forward_kinematics(q)[model.modules[module]] @ se3.inverse(T_guest)
    before = host.masses.joined(guest.masses)
    aligned = host.masses.joined(guest.masses.displaced(G))
    momentum = host.momentum() + guest.momentum()
    if model.free_base:  # inner forces: they move neither the center of mass nor the momentum
        shift = before.middle - aligned.middle
        aligned = aligned.displaced(se3.pose(np.eye(3), shift)).with_momentum(momentum)
        q[:3] += shift
    energy = aligned.kinetic_energy() + aligned.potential_energy(model.gravity)
    state = BodyState(whole, model, q, Pose(model, q).impact(aligned))
    return Joined(state, momentum, host.energy() + guest.energy(), energy, gap_size(left))


def newcomer(
    event: Dock, organism: Organism, guest: Model, host: BodyState, model: Model,
    held: Mapping[str, float],
) -> BodyState:  # fmt: skip
    """A guest that appears where it docks, with the joints and the approach of the event."""
    joints, rates = (_given(event, guest, name) for name in ("q", "v"))
    q_g = np.concatenate([guest.neutral()[:7], joints])
    q = _posed(model, host, guest, q_g, held)
    v = JointMap(host.model, model).velocity(host.v)
    if model.free_base:
        v[:6] = host.v[:6]
    T_wm = model.forward_kinematics(q)[model.modules[event.child]]
    T_wp = T_wm @ organism.kind(event.child).port_pose(event.child_port)
    V = model.jacobian(q, event.child, "world") @ v
    V = V + se3.transform_twist(T_wp, np.asarray(event.approach, dtype=float))
    # the guest's own base, from the module that docks
    at = guest.forward_kinematics(q_g)
    T_mb = se3.inverse(at[guest.modules[event.child]]) @ at[guest.modules[organism.base]]
    q_g[:7] = _base(guest, organism, T_wm @ T_mb)
    J = guest.jacobian(q_g, event.child, "world")
    twist = np.linalg.solve(J[:, :6], V - J[:, 6:] @ rates)
    return BodyState(organism, guest, q_g, np.concatenate([twist, rates]))


def _given(event: Dock, guest: Model, name: str) -> np.ndarray:
    """Joint positions or velocities of a newcomer."""
    given, count = getattr(event, name), len(guest.joint_names)
    if given is None:
        return np.zeros(count)
    array = as_floats(given)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise StateError(
            f"{name} of the new organism is {count} finite numbers, one for each joint "
            f"({', '.join(guest.joint_names)}), got {given!r}"
        )
    return array


def _posed(
    model: Model, host: BodyState, guest: Model, q_guest: np.ndarray, held: Mapping[str, float]
) -> np.ndarray:
    """(nq,) of the docked body with the host's base and the joints of both, others as held."""
    others = np.array([held.get(name, 0.0) for name in model.joint_names])
    of_guest = JointMap(guest, model).carry(q_guest[guest.joint_slice_q], others)
    q = JointMap(host.model, model).configuration(host.q, of_guest)
    if model.free_base:
        q[:7] = host.q[:7]
    return q


def _base(model: Model, organism: Organism, T_base: np.ndarray) -> np.ndarray:
    """(7,) position and quaternion of link 0 when the base module is at a pose."""
    T = T_base @ se3.inverse(model.body_placement[model.modules[organism.base]])
    return se3.to_position_and_quaternion(T)
