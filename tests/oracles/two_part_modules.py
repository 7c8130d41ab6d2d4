"""Random modules of two parts with known geometry: every way two axes can lie, either joint."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from modurob import ModuleType, Organism

CASES = ("skew", "intersecting", "parallel", "antiparallel", "overlapping", "anti-overlapping")
CLEAR = 0.05  # sine of the smallest angle between axes that are not parallel
X, Z = 0, 2


def turned(axis: int, angle: float) -> np.ndarray:
    """(4, 4) rotation about x, y or z."""
    T, (i, j) = np.eye(4), [(1, 2), (2, 0), (0, 1)][axis]
    T[i, i] = T[j, j] = np.cos(angle)
    T[j, i], T[i, j] = np.sin(angle), -np.sin(angle)
    return T


def slid(axis: int, distance: float) -> np.ndarray:
    """(4, 4) translation along x, y or z."""
    T = np.eye(4)
    T[axis, 3] = distance
    return T


def any_pose(rng: np.random.Generator) -> np.ndarray:
    """(4, 4) anywhere within a meter."""
    Q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Q * np.sign(np.linalg.det(Q)), rng.uniform(-0.5, 0.5, 3)
    return T


def lying(case: str, rng: np.random.Generator) -> np.ndarray:
    """(4, 4) a frame whose z axis lies so towards the z axis of the first."""
    first, last = (turned(Z, angle) for angle in rng.uniform(-np.pi, np.pi, 2))
    up, out, further = rng.uniform(0.05, 0.4, 3) * rng.choice([-1, 1], 3)
    tilt = rng.uniform(np.arcsin(CLEAR), np.pi - np.arcsin(CLEAR)) * rng.choice([-1, 1])
    if case in ("skew", "intersecting"):
        aside = out if case == "skew" else 0.0
        middle = slid(Z, up) @ slid(X, aside) @ turned(X, tilt) @ slid(Z, further)
    else:
        aside = out if "parallel" in case else 0.0
        middle = slid(Z, up) @ slid(X, aside) @ turned(X, np.pi if "anti" in case else 0.0)
    return first @ middle @ last


class Known(NamedTuple):
    """A module and what it was made from.

    Attributes:
        kind: The datasheet.
        T_in_joint: (4, 4) in-connector to joint axis.
        T_joint_out: Port label -> (4, 4) joint axis to out-connector.
        cases: How the axes lie: proximal part, and distal part for each output.
    """

    kind: ModuleType
    T_in_joint: np.ndarray
    T_joint_out: dict[str, np.ndarray]
    cases: tuple[str, ...]

    def transform(self, output: str, q: float) -> np.ndarray:
        """(4, 4) in-connector to out-connector, as a product of transforms."""
        return self.T_in_joint @ self.motion(q) @ self.T_joint_out[output]

    def motion(self, q: float) -> np.ndarray:
        """(4, 4) of the joint."""
        return turned(Z, q) if self.kind.joints[0].kind == "revolute" else slid(Z, q)


def rpy(R: np.ndarray) -> list[float]:
    """Fixed-axis angles: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    return [np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])]


def solid(name: str, rng: np.random.Generator) -> dict[str, Any]:
    """A body that can exist: the inertia of four points."""
    points, masses = rng.uniform(-0.1, 0.1, (4, 3)), rng.uniform(0.1, 0.5, 4)
    center = masses @ points / masses.sum()
    r = points - center
    inertia = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, r, strict=True))
    return {
        "name": name,
        "mass": masses.sum(),
        "center_of_mass": center.tolist(),
        "inertia": inertia.tolist(),
    }


def port(label: str, body: str, T: np.ndarray, side: int) -> dict[str, Any]:
    """A port whose frame in its body is T."""
    connector = "in" if label == "in" else "out"
    return {
        "label": label,
        "body": body,
        "position": T[:3, 3].tolist(),
        "normal": T[:3, 2].tolist(),
        "reference": T[:3, 0].tolist(),
        "turns": [0, 90, 180, 270],
        "connector": f"test-{connector}",
        "mates": ["test-out" if connector == "in" else "test-in"],
        "side": side,
    }


def two_part_module(seed: int, outputs: int = 1) -> Known:
    """Module number `seed`; neighboring seeds differ in their cases and kinds of joint."""
    rng = np.random.default_rng(seed)
    cases = (CASES[seed % 6], *(CASES[(seed // 6 + k) % 6] for k in range(outputs)))
    kind = ("revolute", "prismatic")[seed // 36 % 2]
    backwards = bool(rng.integers(2))  # the joint's parent is the distal part
    T_in_joint = lying(cases[0], rng)
    T_joint_out = {f"out{k}": lying(case, rng) for k, case in enumerate(cases[1:])}
    # the child's frame is the joint frame; its axis lies along or against z of T_in_joint
    T_axis_child, T_axis_parent = any_pose(rng), any_pose(rng)
    T_axis_child[:3, 3] = 0.0
    T_parent_joint = np.linalg.inv(T_axis_parent) @ T_axis_child
    axis = T_axis_child[2, :3] * (-1 if backwards else 1)
    parent, child = ("distal", "proximal") if backwards else ("proximal", "distal")
    T_axis = {parent: T_axis_parent, child: T_axis_child}
    T_in_port = np.linalg.inv(T_axis["proximal"]) @ np.linalg.inv(T_in_joint) @ turned(X, np.pi)
    ports = [port("in", "proximal", T_in_port, 1)]
    for k, (label, T) in enumerate(T_joint_out.items()):
        ports.append(port(label, "distal", np.linalg.inv(T_axis["distal"]) @ T, 2 + k))
    joint = {
        "name": "joint",
        "kind": kind,
        "parent": parent,
        "child": child,
        "position": T_parent_joint[:3, 3].tolist(),
        "rpy": rpy(T_parent_joint[:3, :3]),
        "axis": axis.tolist(),
        "viscous": rng.uniform(0, 1),
        "coulomb": rng.uniform(0, 1),
    }
    datasheet = ModuleType(
        name=f"random{seed}",
        symbol="r",
        size=0.1,
        bodies=[solid("proximal", rng), solid("distal", rng)],
        joints=[joint],
        ports=ports,
    )
    return Known(datasheet, T_in_joint, T_joint_out, cases)


class Robot(NamedTuple):
    """An organism of such modules: m0, m1, ..., and what each was made from."""

    organism: Organism
    known: dict[str, Known]

    def in_connector(self, name: str, q: dict[str, float]) -> np.ndarray:
        """(4, 4) in the world: the product of all transforms on the way to a module."""
        entry = self.organism.docking(name)
        if entry is None:
            kind = self.known[name].kind
            return self.organism.base_pose @ base_in(kind, q[f"{name}.joint"], self.known[name])
        before = self.known[entry.parent]
        T = self.in_connector(entry.parent, q)
        T = T @ before.transform(str(entry.port), q[f"{entry.parent}.joint"])
        return T @ turned(Z, np.deg2rad(entry.turn))

    def port(self, name: str, label: str, q: dict[str, float]) -> np.ndarray:
        """(4, 4) out-connector in the world."""
        return self.in_connector(name, q) @ self.known[name].transform(label, q[f"{name}.joint"])


def base_in(kind: ModuleType, q: float, known: Known) -> np.ndarray:
    """(4, 4) in-connector in the frame of the base: that of its first body, the proximal part."""
    (there,) = (p for p in kind.ports if p.label == "in")
    x, z = np.array(there.reference), np.array(there.normal)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.column_stack([x, np.cross(z, x), z]), there.position
    return T @ turned(X, np.pi)


def robot(seed: int, modules: int = 5, *, branches: bool = False) -> Robot:
    """A chain, or a tree with turned dockings, of random two-part modules; base anywhere."""
    rng = np.random.default_rng(10_000 + seed)
    kinds = [two_part_module(modules * seed + k, 1 + 2 * branches) for k in range(modules)]
    organism = Organism.start(kinds[0].kind, "m0", pose=any_pose(rng))
    for k, kind in enumerate(kinds[1:], start=1):
        free = [(m, p) for m in organism.modules for p in organism.free_ports(m) if p != "in"]
        parent, label = free[rng.integers(len(free))] if branches else free[-1]
        turn = int(rng.choice([0, 90, 180, 270])) if branches else 0
        organism = organism.dock(parent, label, f"m{k}", "in", kind=kind.kind, turn=turn)
    return Robot(organism, {f"m{k}": kind for k, kind in enumerate(kinds)})
