"""Random datasheets: trees of bodies, oblique joints and ports, drives and springs."""

from __future__ import annotations

from typing import Any

import numpy as np

from modurob import ModuleType

QUARTERS = (0.0, np.pi / 2, np.pi, -np.pi / 2)


def random_kind(rng: np.random.Generator, name: str, bodies: int = 4) -> ModuleType:
    """A datasheet of up to `bodies` bodies and 3 ports that mate with those of all others."""
    count = int(rng.integers(1, bodies + 1))
    joints = [_joint(rng, k) for k in range(1, count)]
    turning = [joint["name"] for joint in joints if joint["kind"] == "revolute"]
    return ModuleType(
        name=name, symbol="R", size=rng.uniform(0.05, 0.3),
        bodies=[_body(rng, k) for k in range(count)], joints=joints,
        ports=[_port(rng, k, count) for k in range(3)],
        dyad_joint=turning[0] if turning and rng.random() < 0.4 else None,
    )  # fmt: skip


def _direction(rng: np.random.Generator) -> np.ndarray:
    if rng.random() < 0.4:
        return np.eye(3)[rng.integers(3)] * rng.choice([-1, 1])
    return rng.standard_normal(3)


def _body(rng: np.random.Generator, number: int) -> dict[str, Any]:
    """With an inertia that points can have; the first body has a mass."""
    mass = float(rng.uniform(0.05, 2)) if number == 0 or rng.random() < 0.85 else 0.0
    points = rng.standard_normal((5, 3)) * rng.uniform(0.01, 0.1)
    spread = points.T @ points * mass
    inertia = np.trace(spread) * np.eye(3) - spread
    center = rng.uniform(-0.1, 0.1, 3) * (rng.random(3) < 0.8)
    return {"name": f"b{number}", "mass": mass, "center_of_mass": center.tolist(),
            "inertia": ((inertia + inertia.T) / 2).tolist()}  # fmt: skip


def _joint(rng: np.random.Generator, number: int) -> dict[str, Any]:
    """Between body `number` and one before it, from either side."""
    ends = [f"b{rng.integers(number)}", f"b{number}"][:: int(rng.choice([-1, 1]))]
    rpy = rng.choice(QUARTERS, 3) if rng.random() < 0.4 else rng.uniform(-3, 3, 3)
    joint = {
        "name": f"j{number}", "parent": ends[0], "child": ends[1], "rpy": rpy.tolist(),
        "kind": str(rng.choice(["revolute", "revolute", "prismatic", "fixed"])),
        "position": (rng.uniform(-0.2, 0.2, 3) * (rng.random(3) < 0.8)).tolist(),
        "axis": _direction(rng).tolist(),
    }  # fmt: skip
    drive = {"rotor_inertia": rng.uniform(1e-7, 1e-5), "gear_ratio": rng.uniform(1, 100)}
    changes = (
        {"viscous": rng.uniform(0, 0.5), "coulomb": rng.uniform(0, 0.5)},
        drive,
        drive | {"stiffness": rng.uniform(5, 50), "damping": rng.uniform(0, 0.5)},
        {"lower": (angle := rng.uniform(-1, 1)), "upper": angle},
        {"lower": -1.0},
        {},
    )
    return joint | changes[rng.integers(len(changes))]


def _port(rng: np.random.Generator, number: int, bodies: int) -> dict[str, Any]:
    normal = _direction(rng)
    turns = sorted({0, *map(int, rng.choice(360, size=int(rng.integers(4)), replace=False))})
    return {
        "label": number + 1 if rng.random() < 0.5 else f"p{number}", "side": number + 1,
        "body": f"b{rng.integers(bodies)}", "position": rng.uniform(-0.1, 0.1, 3).tolist(),
        "normal": normal.tolist(), "reference": np.cross(normal, rng.standard_normal(3)).tolist(),
        "connector": "any", "mates": ["any"], "turns": turns,
    }  # fmt: skip
