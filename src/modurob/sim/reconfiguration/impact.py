"""Bodies before and after an event: momenta, and the velocities that an inelastic impact leaves.

An impact that locks two ports acts within an instant: positions stay, and the impulses between the
parts do no work on any motion that the docked body allows. So its velocity v+ solves

    M v+ = sum over the bodies of J^T h        (h = momentum of a body before, J at the docked body)

which is the projection, in the metric of kinetic energy, of the velocities before onto those that
the docked body can have: kinetic energy cannot rise, and a free body keeps its momentum exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from modurob.model import Model
from modurob.model.build import Solid, as_one_solid, body_solids
from modurob.organism import Organism
from modurob.spatial import se3, so3

ROUNDS, SETTLED = 30, 1e-14  # of Gauss and Newton; [rad, m]
RANK = 1e-9  # joints on one line move alike: then the shortest change


@dataclass(frozen=True, eq=False)
class Masses:
    """The bodies with mass of an organism, in the world."""

    names: tuple[str, ...]  # of the bodies
    mass: np.ndarray  # (k,) [kg]
    center: np.ndarray  # (k, 3) [m]
    inertia: np.ndarray  # (k, 3, 3) about the centers, world axes. [kg m^2]
    u: np.ndarray  # (k, 3) velocities of the centers. [m/s]
    w: np.ndarray  # (k, 3) angular velocities. [rad/s]

    def momenta(self) -> np.ndarray:
        """(k, 6) of each body, about the world's origin."""
        p = self.mass[:, None] * self.u
        spin = (self.inertia @ self.w[..., None])[..., 0]
        return np.concatenate([p, np.cross(self.center, p) + spin], axis=-1)

    def kinetic_energy(self) -> float:
        spin = np.einsum("ki,kij,kj->", self.w, self.inertia, self.w)
        return 0.5 * float(np.sum(self.mass * np.sum(self.u**2, axis=-1)) + spin)

    def potential_energy(self, gravity: np.ndarray) -> float:
        return -float(np.sum(self.mass * (self.center @ gravity)))

    @property
    def middle(self) -> np.ndarray:
        """(3,) center of mass of all. [m]"""
        return self.mass @ self.center / np.sum(self.mass)

    def joined(self, other: Masses) -> Masses:
        return Masses(
            self.names + other.names,
            *(
                np.concatenate([getattr(self, x), getattr(other, x)])
                for x in ("mass", "center", "inertia", "u", "w")
            ),
        )

    def only(self, names: tuple[str, ...]) -> Masses:
        """Some of the bodies, in the order of the names."""
        rows = [self.names.index(name) for name in names]
        return Masses(
            names, *(getattr(self, x)[rows] for x in ("mass", "center", "inertia", "u", "w"))
        )

    def displaced(self, G: np.ndarray) -> Masses:
        """Moved rigidly by the world transform G, with the same velocities."""
        R = G[:3, :3]
        return replace(self, center=self.center @ R.T + G[:3, 3], inertia=R @ self.inertia @ R.T)

    def with_momentum(self, wanted: np.ndarray) -> Masses:
        """With a rigid motion of all added, so that the total momentum is as wanted."""
        total, middle = np.sum(self.mass), self.middle
        lack = wanted - np.sum(self.momenta(), axis=0)
        push = lack[:3] / total
        arm = self.center - middle
        I_com = np.sum(
            self.inertia
            + self.mass[:, None, None]
            * (np.sum(arm**2, axis=-1)[:, None, None] * np.eye(3) - arm[:, :, None] * arm[:, None]),
            axis=0,
        )
        about = lack[3:] - np.cross(middle, lack[:3])
        spin = np.linalg.pinv(I_com) @ about
        return replace(self, u=self.u + push + np.cross(spin, arm), w=self.w + spin)


class Pose:
    """A model at a configuration: where its bodies are, and how velocities move its links.

    Attributes:
        bodies: (nbodies, 4, 4) frames of the bodies in the world.
        J: (links, 6, nv) Jacobians of the links in the world frame; a fixed base has zeros.
    """

    def __init__(self, model: Model, q: np.ndarray) -> None:
        screws = model.dynamics.quantity("joint_screws", q)
        self.model, self.q = model, q
        self.J = np.where(model._moving_columns[:, None, :], screws, 0.0)
        self.bodies = model.forward_kinematics(q)

    def masses(self, organism: Organism, v: np.ndarray) -> Masses:
        """All bodies with mass of the model's organism, moving."""
        model, V = self.model, self.J @ v
        names, solids = body_masses(organism, model)
        index = [model.body_index(name) for name in names]
        R, p = self.bodies[index, :3, :3], self.bodies[index, :3, 3]
        center = (R @ np.array([s.center for s in solids])[..., None])[..., 0] + p
        inertia = R @ np.array([s.inertia for s in solids]) @ np.swapaxes(R, -1, -2)
        twist = V[model.body_link[index]]
        w = twist[:, 3:]
        u = twist[:, :3] + np.cross(w, center)
        return Masses(tuple(names), np.array([s.mass for s in solids]), center, inertia, u, w)

    def impact(self, before: Masses) -> np.ndarray:
        """(nv,) velocity when the bodies, moving as `before`, have become this model."""
        model = self.model
        links = [int(model.body_link[model.body_index(name)]) for name in before.names]
        h = np.einsum("kij,ki->j", self.J[links], before.momenta())
        return np.linalg.solve(model.mass_matrix(self.q), h)


def body_masses(organism: Organism, model: Model) -> tuple[list[str], list[Solid]]:
    """Names and mass properties, in their own frames, of all bodies with mass."""
    names: list[str] = []
    solids: list[Solid] = []
    for module in organism.modules:
        kind = organism.kind(module)
        if model.is_merged(module):
            found = [(module, as_one_solid(kind))]
        else:
            each = zip(kind.bodies, body_solids(kind), strict=True)
            found = [(f"{module}.{body.name}", solid) for body, solid in each]
        for name, solid in found:
            if solid.mass > 0:
                names.append(name)
                solids.append(solid)
    return names, solids


def gap_size(G: np.ndarray) -> tuple[float, float]:
    """Distance and angle of a small rigid motion."""
    return float(np.linalg.norm(G[:3, 3])), float(np.linalg.norm(so3.log(G[:3, :3])))


def closest_joints(
    model: Model, q: np.ndarray, fresh: list[int], body: str, T_wanted: np.ndarray, size: float
) -> tuple[np.ndarray, np.ndarray]:
    """q with the joints `fresh` moved so that a body comes closest to a pose, and what is left.

    Returns:
        (nq,) and (4, 4), the motion from the body's frame to the wanted one.
    """
    scale = np.array([1 / size] * 3 + [1.0] * 3)
    skip, base = model.joint_slice_q.start, model.joint_slice_v.start
    q, row = q.copy(), model.body_index(body)

    def left() -> np.ndarray:
        return se3.inverse(model.forward_kinematics(q)[row]) @ T_wanted

    for _ in range(ROUNDS if fresh else 0):
        J = model.jacobian(q, body)[:, [base + k for k in fresh]]
        change, *_ = np.linalg.lstsq(scale[:, None] * J, scale * se3.log(left()), rcond=RANK)
        q[[skip + k for k in fresh]] += change
        if np.abs(change).max() < SETTLED:
            break
    return q, left()
