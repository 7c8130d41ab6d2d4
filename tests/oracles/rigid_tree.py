"""An organism's moving links, and their dynamics by Pinocchio and by MuJoCo.

`PinocchioTree` knows every body and joint from the docking list and the datasheets. Here the joints
that modurob says are locked are fixed at zero, or where the test holds them (only their names are
taken from it), what is rigidly attached is merged, and the rest is handed to two engines that know
nothing of each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

import mujoco
import numpy as np
import pinocchio as pin

from modurob import Model, Organism
from oracles.pinocchio_tree import PinocchioTree

SLIP = 1e-3  # velocity that rounds off dry friction, docs/theory. [rad/s, m/s]
REVOLUTE, PRISMATIC, FREE = "hinge", "slide", "free"
DISABLED = ("contact", "constraint", "limit", "equality", "frictionloss", "actuation")
Wrenches = Mapping[str, np.ndarray]


class Moving(NamedTuple):
    """A link that moves: how its joint sits on the parent link (-1 is the world), and its mass."""

    name: str
    parent: int
    T: np.ndarray
    kind: str
    axis: np.ndarray
    inertia: pin.Inertia
    viscous: float
    coulomb: float
    armature: float


class RigidTree(PinocchioTree):
    """The links of an organism that move, each after its parent, subtrees contiguous.

    Attributes:
        links: The moving links, depth first as Pinocchio's algorithms demand.
        standing: Inertia of what does not move at all, in the world.
        places: For each body its link (-1 is the world) and its (4, 4) frame there.
    """

    def __init__(
        self,
        organism: Organism,
        hinges: str,
        base: str | tuple[str, ...] = "fixed",
        locked: Sequence[str] = (),
        held: Mapping[str, float] | None = None,
    ) -> None:
        self._motions: dict[str, tuple[str, np.ndarray]] = {"free": (FREE, np.zeros(3))}
        super().__init__(organism, hinges, base)
        self._flatten(dict.fromkeys(locked, 0.0) | dict(held or {}))

    def _joint(self, parent: int, kind: Any, T: np.ndarray, name: str) -> int:
        short = kind.shortname()
        axis = kind.axis if "Unaligned" in short else np.eye(3)["XYZ".index(short[-1])]
        slides = short.startswith("JointModelP")
        self._motions[name] = PRISMATIC if slides else REVOLUTE, np.array(axis)
        return super()._joint(parent, kind, T, name)

    def _drive(self, name: str) -> tuple[float, float, float]:
        """Viscous and dry friction, and the inertia of the rotor behind its gear."""
        module, _, joint = name.partition(".")
        if name == "free" or module == "world":
            return 0.0, 0.0, 0.0
        (entry,) = [e for e in self._sheet(module)["joints"] if e["name"] == joint]
        armature = entry.get("rotor_inertia", 0.0) * entry.get("gear_ratio", 1.0) ** 2
        return entry.get("viscous", 0.0), entry.get("coulomb", 0.0), armature

    def _flatten(self, locked: Mapping[str, float]) -> None:
        model, children = self.model, [[] for _ in range(self.model.njoints)]
        for joint in range(1, model.njoints):
            children[model.parents[joint]].append(joint)
        links: list[Moving] = []
        place: dict[int, tuple[int, np.ndarray]] = {0: (-1, np.eye(4))}
        inertias = {-1: model.inertias[0]}
        waiting = children[0][::-1]
        while waiting:
            joint = waiting.pop()
            waiting.extend(children[joint][::-1])
            name = model.names[joint]
            parent, T_parent = place[model.parents[joint]]
            T = T_parent @ model.jointPlacements[joint].homogeneous
            kind, axis = self._motions[name]
            if name in locked:
                parts = (np.zeros(3), axis) if kind == REVOLUTE else (axis, np.zeros(3))
                T = T @ pin.exp6(pin.Motion(*parts) * locked[name]).homogeneous
                place[joint] = parent, T
                inertias[parent] = inertias[parent] + pin.SE3(T).act(model.inertias[joint])
                continue
            place[joint] = len(links), np.eye(4)
            inertias[len(links)] = model.inertias[joint]
            links.append(
                Moving(name, parent, T, kind, axis, pin.Inertia.Zero(), *self._drive(name))
            )
        self.links = [link._replace(inertia=inertias[k]) for k, link in enumerate(links)]
        self.standing = inertias[-1]
        self.places = {}
        for body, frame in self.frames.items():
            link, T = place[model.frames[frame].parentJoint]
            self.places[body] = link, T @ model.frames[frame].placement.homogeneous


class Engine:
    """What both engines share: the order of modurob's joints, and its law of friction."""

    def __init__(self, tree: RigidTree, model: Model) -> None:
        self.tree, self.free, self.gravity = tree, model.free_base, np.array(model.gravity)
        names = (*(("free",) if self.free else ()), *model.joint_names)
        index = {link.name: k for k, link in enumerate(tree.links)}
        assert sorted(index) == sorted(names)
        self.order = [index[name] for name in model.joint_names]
        self.viscous = np.array([tree.links[k].viscous for k in self.order])
        self.coulomb = np.array([tree.links[k].coulomb for k in self.order])

    def dry(self, v: np.ndarray) -> np.ndarray:
        """Rounded Coulomb friction of the joints alone."""
        joints = v[6:] if self.free else v
        force = self.coulomb * joints / np.sqrt(joints**2 + SLIP**2)
        return np.concatenate([np.zeros(6), force]) if self.free else force

    def friction(self, v: np.ndarray) -> np.ndarray:
        """d v + c v / sqrt(v^2 + SLIP^2), none on a free base."""
        joints = self.viscous * (v[6:] if self.free else v)
        return self.dry(v) + (np.concatenate([np.zeros(6), joints]) if self.free else joints)


class PinocchioDynamics(Engine):
    """Dynamics in the coordinates of a modurob model, by Pinocchio."""

    def __init__(self, tree: RigidTree, model: Model) -> None:
        super().__init__(tree, model)
        joints = {
            FREE: lambda axis: pin.JointModelFreeFlyer(),
            REVOLUTE: pin.JointModelRevoluteUnaligned,
            PRISMATIC: pin.JointModelPrismaticUnaligned,
        }
        self.pin = pin.Model()
        self.pin.gravity.linear = self.gravity
        for link in tree.links:  # depth first: joint k + 1 is link k
            number = self.pin.addJoint(
                link.parent + 1, joints[link.kind](link.axis), pin.SE3(link.T), link.name
            )
            self.pin.appendBodyToJoint(number, link.inertia, pin.SE3.Identity())
            self.pin.armature[self.pin.joints[number].idx_v] = link.armature
        self.data = self.pin.createData()
        columns = [self.pin.joints[k + 1].idx_v for k in self.order]
        base = list(range(6 if self.free else 0))
        self.columns = np.array([*base, *columns], dtype=int)  # theirs for each of ours
        self.rows_q = [self.pin.joints[k + 1].idx_q for k in self.order]

    def q(self, q: np.ndarray) -> np.ndarray:
        """Pinocchio's configuration."""
        theirs = pin.neutral(self.pin)
        if self.free:
            theirs[:7] = q[:7]
        theirs[self.rows_q] = q[7:] if self.free else q
        return theirs

    def v(self, v: np.ndarray) -> np.ndarray:
        """Pinocchio's velocity (acceleration, force)."""
        theirs = np.empty(self.pin.nv)
        theirs[self.columns] = v
        return theirs

    def forces(self, external: Wrenches) -> Any:
        """Pinocchio's wrench on each joint, from wrenches on bodies in their own frames."""
        forces = [pin.Force.Zero() for _ in range(self.pin.njoints)]
        for body, wrench in external.items():
            link, T = self.tree.places[body]
            forces[link + 1] += pin.SE3(T).act(pin.Force(wrench[:3], wrench[3:]))
        found = pin.StdVec_Force()
        found.extend(forces)
        return found

    def inverse_dynamics(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray, external: Wrenches
    ) -> np.ndarray:
        tau = pin.rnea(self.pin, self.data, self.q(q), self.v(v), self.v(a), self.forces(external))
        return tau[self.columns] + self.friction(v)

    def forward_dynamics(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, external: Wrenches
    ) -> np.ndarray:
        left = self.v(tau - self.friction(v))
        a = pin.aba(self.pin, self.data, self.q(q), self.v(v), left, self.forces(external))
        return a[self.columns]

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        M = pin.crba(self.pin, self.data, self.q(q))
        M = np.triu(M) + np.triu(M, 1).T
        return M[np.ix_(self.columns, self.columns)]

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(6,) linear momentum, angular momentum about the world's origin."""
        h = pin.computeCentroidalMomentum(self.pin, self.data, self.q(q), self.v(v))
        return pin.SE3(np.eye(3), self.data.com[0]).act(h).vector


class MujocoDynamics(Engine):
    """Dynamics in the coordinates of a modurob model, by MuJoCo.

    MuJoCo wants mass in every moving body, but allows several joints in one: a massless link is
    merged into the only link beyond it, whose body then carries both joints.
    """

    def __init__(self, tree: RigidTree, model: Model) -> None:
        super().__init__(tree, model)
        self.mj = mujoco.MjModel.from_xml_string(self._xml())
        self.data = mujoco.MjData(self.mj)
        adr = [self.mj.joint(tree.links[k].name) for k in self.order]
        base = list(range(6 if self.free else 0))
        self.columns = np.array([*base, *(int(j.dofadr[0]) for j in adr)], dtype=int)
        self.rows_q = [int(j.qposadr[0]) for j in adr]

    # -- building --------------------------------------------------------------------------------

    def _xml(self) -> str:
        root = ElementTree.Element("mujoco")
        ElementTree.SubElement(
            root, "compiler", angle="radian", fusestatic="false", balanceinertia="false"
        )
        option = ElementTree.SubElement(root, "option", gravity=_text(self.gravity))
        ElementTree.SubElement(option, "flag", dict.fromkeys(DISABLED, "disable"))
        self._elements = {-1: ElementTree.SubElement(root, "worldbody")}
        self._bodies: dict[int, str] = {}
        links = self.tree.links
        beyond = [[] for _ in links]
        for k, link in enumerate(links):
            if link.parent >= 0:
                beyond[link.parent].append(k)
        pending: dict[int, list[int]] = {}  # joints of massless links, waiting for a body
        for k, link in enumerate(links):
            chain = [*pending.pop(link.parent, []), k]
            if link.inertia.mass == 0:
                assert len(beyond[k]) == 1, "no mass at a fork: MuJoCo cannot say that"
                pending[k] = chain
            else:
                self._body(chain)
        assert not pending
        return ElementTree.tostring(root, encoding="unicode")

    def _body(self, chain: list[int]) -> None:
        """One body with the joints of a chain of links, of which the last has the mass."""
        links = [self.tree.links[k] for k in chain]
        T = np.eye(4)
        for link in links:
            T = T @ link.T
        parent = self._elements[links[0].parent]
        body = ElementTree.SubElement(
            parent, "body", name=links[-1].name, pos=_text(T[:3, 3]), quat=_quaternion(T[:3, :3])
        )
        self._elements[chain[-1]] = body
        inertia = links[-1].inertia
        moments, axes = np.linalg.eigh(inertia.inertia)
        axes = axes * np.sign(np.linalg.det(axes))
        ElementTree.SubElement(
            body, "inertial", pos=_text(inertia.lever), quat=_quaternion(axes),
            mass=_text([inertia.mass]), diaginertia=_text(moments),
        )  # fmt: skip
        self._bodies[chain[-1]] = links[-1].name
        joints, T_link_body = [], np.eye(4)
        for link in links[::-1]:
            R, p = T_link_body[:3, :3], T_link_body[:3, 3]
            joints.append(
                {
                    "name": link.name, "type": link.kind, "damping": _text([link.viscous]),
                    "armature": _text([link.armature]),
                    "axis": _text(R.T @ link.axis), "pos": _text(-R.T @ p),
                }
            )  # fmt: skip
            T_link_body = link.T @ T_link_body
        for joint in joints[::-1]:
            free = {"name": joint["name"]}
            if joint["type"] == FREE:
                ElementTree.SubElement(body, "freejoint", free)
            else:
                ElementTree.SubElement(body, "joint", joint)

    # -- states ----------------------------------------------------------------------------------

    def _turn(self, q: np.ndarray) -> np.ndarray:
        return pin.Quaternion(q[3:7]).toRotationMatrix()

    def _set(self, q: np.ndarray, v: np.ndarray) -> None:
        data = self.data
        mujoco.mj_resetData(self.mj, data)
        if self.free:
            data.qpos[:3], data.qpos[3:7] = q[:3], q[[6, 3, 4, 5]]
        data.qpos[self.rows_q] = q[7:] if self.free else q
        data.qvel[self.columns] = self._moved(q, v)

    def _moved(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        """A velocity or force: the base's linear part in the world's axes."""
        return np.concatenate([self._turn(q) @ x[:3], x[3:]]) if self.free else x

    def _back(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        x = x[self.columns]
        return np.concatenate([self._turn(q).T @ x[:3], x[3:]]) if self.free else x

    def _sweep(self, v: np.ndarray) -> np.ndarray:
        """w x v of the base: what its twist's rate lacks of the acceleration of its origin."""
        sweep = np.zeros(len(v))
        if self.free:
            sweep[:3] = np.cross(v[3:6], v[:3])
        return sweep

    def _pushes(self, external: Wrenches) -> list[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Body, force, torque and point of each wrench in the world's axes."""
        pushes = []
        for name, wrench in external.items():
            link, T_link = self.tree.places[name]
            if link < 0:
                continue  # the ground does not mind
            number = self.mj.body(self._bodies[link]).id
            R, p = self.data.xmat[number].reshape(3, 3), self.data.xpos[number]
            R_body, point = R @ T_link[:3, :3], R @ T_link[:3, 3] + p
            pushes.append((number, R_body @ wrench[:3], R_body @ wrench[3:], point))
        return pushes

    # -- asking ----------------------------------------------------------------------------------

    def can_push(self, body: str) -> bool:
        """Whether the body is one that MuJoCo knows: on the ground, or with mass."""
        link, _ = self.tree.places[body]
        return link < 0 or link in self._bodies

    def inverse_dynamics(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray, external: Wrenches
    ) -> np.ndarray:
        self._set(q, v)
        self.data.qacc[self.columns] = self._moved(q, a + self._sweep(v))
        mujoco.mj_inverse(self.mj, self.data)
        pushed = np.zeros(self.mj.nv)
        for body, force, torque, point in self._pushes(external):
            mujoco.mj_applyFT(self.mj, self.data, force, torque, point, body, pushed)
        return self._back(q, self.data.qfrc_inverse - pushed) + self.dry(v)

    def forward_dynamics(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, external: Wrenches
    ) -> np.ndarray:
        self._set(q, v)
        mujoco.mj_kinematics(self.mj, self.data)
        for body, force, torque, point in self._pushes(external):
            arm = point - self.data.xipos[body]
            self.data.xfrc_applied[body] += np.concatenate([force, torque + np.cross(arm, force)])
        self.data.qfrc_applied[self.columns] = self._moved(q, tau - self.dry(v))
        mujoco.mj_forward(self.mj, self.data)
        return self._back(q, self.data.qacc) - self._sweep(v)

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        self._set(q, np.zeros(len(self.columns)))
        mujoco.mj_forward(self.mj, self.data)
        M, column = np.empty((self.mj.nv, self.mj.nv)), np.empty(self.mj.nv)
        for k, unit in enumerate(np.eye(self.mj.nv)):
            mujoco.mj_mulM(self.mj, self.data, column, unit)
            M[:, k] = column
        M = M[np.ix_(self.columns, self.columns)]
        if self.free:
            R = self._turn(q)
            M[:3] = R.T @ M[:3]
            M[:, :3] = M[:, :3] @ R
        return M


def _text(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def _quaternion(R: np.ndarray) -> str:
    x, y, z, w = pin.Quaternion(np.array(R)).coeffs()
    return _text((w, x, y, z))
