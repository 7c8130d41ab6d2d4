"""An organism as a Pinocchio model, built from its docking list and the written rules alone.

Nothing here uses modurob's transforms, walks or models: a datasheet is the plain data of its JSON
file, and frames follow docs/theory/conventions.md. No joint is locked and no body is merged, so
that comparing the two checks modurob's locking and merging too.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np
import pinocchio as pin

from modurob import ModuleType, Organism, catalog

# Cubes: sides like on a gaming die, z up, hinge along x.
CUBE_NORMALS = {2: (1, 0, 0), 5: (-1, 0, 0), 3: (0, 1, 0), 4: (0, -1, 0)}
CUBES = ("backbone", "scout")
VIRTUAL = {
    "px": pin.JointModelPX,
    "py": pin.JointModelPY,
    "pz": pin.JointModelPZ,
    "rx": pin.JointModelRX,
    "ry": pin.JointModelRY,
    "rz": pin.JointModelRZ,
}


@lru_cache(maxsize=1024)
def datasheet(kind: ModuleType) -> dict[str, Any]:
    """The fields of a kind, with the frames of its ports and joints beside them.

    The fields are those of its file in the catalog, or its dump when it is not from there.
    """
    if kind.name in catalog.names() and catalog[kind.name] == kind:
        file = resources.files("modurob.modules.catalog") / f"{kind.name}.json"
        sheet = json.loads(file.read_text(encoding="utf-8"))
    else:
        sheet = json.loads(kind.model_dump_json())
    for port in sheet.get("ports", []):
        port["frame"] = port_frame(port)
    for joint in sheet.get("joints", []):
        joint["frame"] = joint_frame(joint)
    return sheet


def turned(axis: int, angle: float) -> np.ndarray:
    """(4, 4) rotation about x, y or z."""
    i, j = [(1, 2), (2, 0), (0, 1)][axis]
    T = np.eye(4)
    T[i, i] = T[j, j] = np.cos(angle)
    T[j, i] = np.sin(angle)
    T[i, j] = -np.sin(angle)
    return T


def moved(position: Any) -> np.ndarray:
    """(4, 4) translation."""
    T = np.eye(4)
    T[:3, 3] = position
    return T


def unit(vector: Any) -> np.ndarray:
    return np.array(vector, dtype=float) / np.linalg.norm(vector)


def port_frame(port: dict[str, Any]) -> np.ndarray:
    """(4, 4) in its body: z = outward normal, x = reference."""
    z, x = unit(port["normal"]), unit(port["reference"])
    T = moved(port["position"])
    T[:3, :3] = np.column_stack([x, np.cross(z, x), z])
    return T


def joint_frame(joint: dict[str, Any]) -> np.ndarray:
    """(4, 4) in its parent body: translation, then roll, pitch, yaw about fixed axes (URDF)."""
    roll, pitch, yaw = joint.get("rpy", (0, 0, 0))
    T = moved(joint.get("position", (0, 0, 0)))
    return T @ turned(2, yaw) @ turned(1, pitch) @ turned(0, roll)


def faced(T_ia: np.ndarray, T_jb: np.ndarray, turn: float) -> np.ndarray:
    """(4, 4) T_ij of two port frames that meet: T_ij = T_ia Rz(turn) Rx(pi) T_jb^-1."""
    return T_ia @ turned(2, np.deg2rad(turn)) @ turned(0, np.pi) @ np.linalg.inv(T_jb)


def cube_docking(size_i: float, side_i: int, size_j: float, side_j: int) -> np.ndarray:
    """(4, 4) T_ij of two cubes: turn about z so that R n_b = -n_a, then move by L n_a."""
    n_a, n_b = np.array(CUBE_NORMALS[side_i]), np.array(CUBE_NORMALS[side_j])
    angle = np.arctan2(-n_a[1], -n_a[0]) - np.arctan2(n_b[1], n_b[0])
    return moved((size_i + size_j) / 2 * n_a) @ turned(2, angle)


class PinocchioTree:
    """All bodies and joints of an organism in Pinocchio.

    Attributes:
        model, data: Pinocchio's.
        frames: Frame of each body: ``m3.A``, or ``m3`` where the dyad model has one body.
        joints: Joint of each ``m3.hinge``.
    """

    def __init__(
        self, organism: Organism, hinges: str, base: str | tuple[str, ...] = "fixed"
    ) -> None:
        self.organism, self.dyad = organism, hinges == "dyad"
        self.model = pin.Model()
        self.frames: dict[str, int] = {}
        self.joints: dict[str, int] = {}
        self._spots: dict[tuple[str, str], tuple[int, np.ndarray]] = {}
        root, T_root = 0, np.array(organism.base_pose)
        if base == "free":
            root = self.model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "free")
            T_root = np.eye(4)
        elif base != "fixed":
            for name in base:
                root = self._joint(root, VIRTUAL[name](), np.eye(4), f"world.{name}")
        self.root = root
        self._add_module(organism.base, root, T_root, entry_body=None)
        for docking in organism.dockings:
            self._add_docked(docking)
        self.data = self.model.createData()

    # -- building --------------------------------------------------------------------------------

    def _sheet(self, module: str) -> dict[str, Any]:
        return datasheet(self.organism.kind(module))

    def _as_one(self, module: str) -> bool:
        """Whether the dyad model takes this module for one body."""
        return self.dyad and bool(self._sheet(module).get("dyad_joint"))

    def _joint(self, parent: int, kind: Any, T: np.ndarray, name: str) -> int:
        self.joints[name] = self.model.addJoint(parent, kind, pin.SE3(T), name)
        return self.joints[name]

    def _body(self, frame: str, joint: int, T: np.ndarray, bodies: list[dict[str, Any]]) -> None:
        """A frame, and the masses of the bodies whose frames coincide with it."""
        self.frames[frame] = self.model.addFrame(
            pin.Frame(frame, joint, pin.SE3(T), pin.FrameType.OP_FRAME)
        )
        for body in bodies:
            if not body.get("mass"):
                continue
            inertia = np.array(body.get("inertia", [0, 0, 0]), dtype=float)
            inertia = np.diag(inertia) if inertia.shape == (3,) else inertia
            center = np.array(body.get("center_of_mass", [0, 0, 0]), dtype=float)
            self.model.appendBodyToJoint(
                joint, pin.Inertia(body["mass"], center, inertia), pin.SE3(T)
            )

    def _add_docked(self, docking: Any) -> None:
        parent, child = self._sheet(docking.parent), self._sheet(docking.child)
        port = next(p for p in parent["ports"] if p["label"] == docking.port)
        child_port = next(p for p in child["ports"] if p["label"] == docking.child_port)
        joint, T_joint_body = self._spots[docking.parent, port["body"]]
        if self._as_one(docking.parent) and self._as_one(docking.child):
            T_ij = cube_docking(parent["size"], docking.port, child["size"], docking.child_port)
            name = f"{docking.child}.{child['dyad_joint']}"
            joint = self._joint(joint, pin.JointModelRX(), T_joint_body @ T_ij, name)
            self._add_module(docking.child, joint, np.eye(4), child_port["body"])
            return
        # In the catalog's cubes all bodies share one frame at rest: ports need no further step.
        T = T_joint_body @ faced(port["frame"], child_port["frame"], docking.turn)
        self._add_module(docking.child, joint, T, child_port["body"])

    def _add_module(
        self, module: str, joint: int, T_joint_body: np.ndarray, entry_body: str | None
    ) -> None:
        sheet = self._sheet(module)
        bodies = {body["name"]: body for body in sheet["bodies"]}
        entry = entry_body or sheet["bodies"][0]["name"]
        if self._as_one(module):
            assert sheet["name"] in CUBES
            self._body(module, joint, T_joint_body, sheet["bodies"])
            self._spots.update({(module, name): (joint, T_joint_body) for name in bodies})
            return
        self._spots[module, entry] = joint, T_joint_body
        waiting = [entry]
        while waiting:
            name = waiting.pop()
            at, T = self._spots[module, name]
            self._body(f"{module}.{name}", at, T, [bodies[name]])
            for entry_joint in sheet.get("joints", []):
                other = self._cross(module, entry_joint, name)
                if other is not None:
                    waiting.append(other)

    def _cross(self, module: str, joint: dict[str, Any], body: str) -> str | None:
        """Cross a joint from one of its bodies to the other, unless that one is there already."""
        forward = joint["parent"] == body
        other = joint["child"] if forward else joint["parent"]
        if body not in (joint["parent"], joint["child"]) or (module, other) in self._spots:
            return None
        at, T = self._spots[module, body]
        T_parent_joint, axis = joint["frame"], unit(joint.get("axis", (0, 0, 1)))
        if joint["kind"] == "fixed":
            step = T_parent_joint if forward else np.linalg.inv(T_parent_joint)
            self._spots[module, other] = at, T @ step
            return other
        # T_parent_child(q) = T_parent_joint exp(axis q); backwards it is exp(-axis q) T^-1
        unaligned = {
            "revolute": pin.JointModelRevoluteUnaligned,
            "prismatic": pin.JointModelPrismaticUnaligned,
        }[joint["kind"]]
        name = f"{module}.{joint['name']}"
        if forward:
            moving = self._joint(at, unaligned(axis), T @ T_parent_joint, name)
            self._spots[module, other] = moving, np.eye(4)
        else:
            moving = self._joint(at, unaligned(-axis), T, name)
            self._spots[module, other] = moving, np.linalg.inv(T_parent_joint)
        return other

    # -- asking ----------------------------------------------------------------------------------

    def configuration(self, joints: dict[str, float], base: Any = ()) -> np.ndarray:
        """Pinocchio's q: the named joints as given, all others at zero."""
        q = pin.neutral(self.model)
        q[: len(base)] = base
        for name, value in joints.items():
            q[self.model.joints[self.joints[name]].idx_q] = value
        return q

    def poses(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """(4, 4) of every body."""
        pin.framesForwardKinematics(self.model, self.data, q)
        return {name: self.data.oMf[index].homogeneous for name, index in self.frames.items()}

    def jacobian(self, q: np.ndarray, body: str, frame: Any, joints: Any) -> np.ndarray:
        """(6, nv): columns of a free base first, then those of the named joints."""
        J = pin.computeFrameJacobian(self.model, self.data, q, self.frames[body], frame)
        free = range(6 if self.model.existJointName("free") else 0)
        return J[:, [*free, *(self.model.joints[self.joints[name]].idx_v for name in joints)]]

    def link_inertias(self, q: np.ndarray, joints: Any) -> dict[str, pin.Inertia]:
        """World inertias of what each named joint carries up to the next ones; "" is the base."""
        pin.forwardKinematics(self.model, self.data, q)
        owner = {0: "", self.root: ""} | {self.joints[name]: name for name in joints}
        sums = {name: pin.Inertia.Zero() for name in ("", *joints)}
        for index in range(self.model.njoints):
            at = index
            while at not in owner:
                at = self.model.parents[at]
            sums[owner[at]] += self.data.oMi[index].act(self.model.inertias[index])
        return sums

    def center_of_mass(self, q: np.ndarray) -> np.ndarray:
        """(3,) of all bodies; Pinocchio's own leaves out what stands on the ground."""
        standing = self.model.inertias[0]
        if sum(inertia.mass for inertia in self.model.inertias) == standing.mass:
            return standing.lever
        moving = pin.centerOfMass(self.model, self.data, q)
        mass = self.data.mass[0]
        return (mass * moving + standing.mass * standing.lever) / (mass + standing.mass)
