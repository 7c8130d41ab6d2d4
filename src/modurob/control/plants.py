"""Models with other masses than those a law was made for."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import positive, real_array
from modurob.errors import StateError
from modurob.model import Model


def with_scaled_masses(model: Model, factor: ArrayLike) -> Model:
    """The same body with its masses and inertias times a factor.

    It is one positive number, or (n + 1,) for each of the links, base first.
    """
    array = real_array("factor", factor)
    if array.shape not in ((), model.mass.shape) or np.any(array <= 0):
        raise StateError(
            f"factor is a positive number, or one for each of {len(model.mass)} links, "
            f"got {factor!r}"
        )
    each = np.broadcast_to(array, model.mass.shape)
    return dataclasses.replace(
        model,
        mass=model.mass * each,
        inertia=model.inertia * each[:, None, None],
        organism=None,
        options=None,
    )


def with_payload(model: Model, body: str, mass: float, center: ArrayLike = (0, 0, 0)) -> Model:
    """The same body with a point mass [kg] at a place [m] in the frame of one of its bodies."""
    index = model.body_index(body)
    link = int(model.body_link[index])
    at = real_array("center", center)
    if at.shape != (3,):
        raise StateError(f"center is three numbers, x, y and z in meters, got {center!r}")
    place = (model.body_placement[index] @ [*at, 1.0])[:3]
    masses, centers, inertias = model.mass.copy(), model.center.copy(), model.inertia.copy()
    total = masses[link] + positive("mass", mass, "kg")
    arm = place - centers[link]
    reduced = masses[link] * mass / total  # of two masses about their common center
    inertias[link] += reduced * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    centers[link] += mass / total * arm
    masses[link] = total
    return dataclasses.replace(
        model, mass=masses, center=centers, inertia=inertias, organism=None, options=None
    )


def side_by_side(model: Model, factors: np.ndarray) -> Model:
    """Copies of a body on one fixed base, each with masses of its own: many bodies in one call.

    On a base that cannot move they do not feel each other. Joints of the first copy come first.

    Args:
        model: The body, on a fixed base.
        factors: (copies, n + 1) on the links' masses and inertias.
    """
    if model.free_base:
        raise StateError("bodies side by side need a fixed base")
    copies, n = len(factors), len(model.joint_names)
    shift = n * np.arange(copies)[:, None]
    parent = np.where(model.parent == 0, 0, model.parent + shift).ravel()
    per_joint = ("placement", "screw", "prismatic", "lower", "upper", "viscous", "coulomb",
                 "armature", "stiffness")  # fmt: skip
    each = {name: np.concatenate([getattr(model, name)] * copies) for name in per_joint}
    links = np.concatenate([[0], np.tile(np.arange(1, n + 1), copies)])
    factor = np.concatenate([factors[0, :1], factors[:, 1:].ravel()])
    return dataclasses.replace(
        model,
        joint_names=tuple(f"{k}.{name}" for k in range(copies) for name in model.joint_names),
        locked=MappingProxyType({}),
        parent=parent,
        mass=model.mass[links] * factor,
        center=model.center[links],
        inertia=model.inertia[links] * factor[:, None, None],
        organism=None,
        options=None,
        **each,
    )
