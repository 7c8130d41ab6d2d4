"""The arrays of a model, checked before compiled code follows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from modurob.errors import StateError, choices
from modurob.spatial import so3
from modurob.spatial.inertia import INERTIA_TOLERANCE, inertia_flaw

if TYPE_CHECKING:
    from modurob.model.model import Model

EXACT = 1e-6  # of rotations and unit screws: products of thousands of them, and seven-digit files
# sizes by letter: j joints, l links, b bodies
SHAPES = {
    "parent": "j",
    "placement": "j44",
    "screw": "j6",
    "prismatic": "j",
    "lower": "j",
    "upper": "j",
    "viscous": "j",
    "coulomb": "j",
    "armature": "j",
    "stiffness": "j",
    "mass": "l",
    "center": "l3",
    "inertia": "l33",
    "body_link": "b",
    "body_placement": "b44",
    "base_pose": "44",
    "gravity": "3",
}
DTYPES = {"parent": np.dtype(np.intp), "body_link": np.dtype(np.intp), "prismatic": np.dtype(bool)}
FLOAT = np.dtype(float)
UNIT_ROW = np.array([0.0, 0.0, 0.0, 1.0])  # the last one of a pose
UNBOUNDED = ("lower", "upper")
SAME = 1e-12  # difference of the arrays of two models that are one
FINITE = tuple(name for name in SHAPES if name not in DTYPES and name not in UNBOUNDED)


def check_arrays(model: Model) -> None:
    """Refuse names and arrays that do not describe a tree of rigid links, with a `StateError`."""
    _check_names(model)
    sizes = {"j": len(model.joint_names), "l": len(model.joint_names) + 1, "b": model.nbodies}
    for name, letters in SHAPES.items():
        array, dtype = getattr(model, name), DTYPES.get(name, FLOAT)
        shape = tuple(sizes[x] if x in sizes else int(x) for x in letters)
        if type(array) is not np.ndarray or array.dtype != dtype or array.shape != shape:
            got = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else repr(array)
            raise StateError(
                f"{name} of a model must be an array of {dtype}, {shape}, got {got[:60]}"
            )
    with np.errstate(all="ignore"):
        check_numbers(model)
        _check_tree(model)
        _check_poses(model)
        _check_masses(model)


def same_numbers(one: Model, other: Model) -> bool:
    """Return whether two models have the same names, and equal arrays up to rounding."""
    if (one.joint_names, one.body_names) != (other.joint_names, other.body_names):
        return False
    pairs = ((getattr(one, name), getattr(other, name)) for name in SHAPES)
    return all(np.allclose(x, y, rtol=0, atol=SAME) for x, y in pairs)


def _check_names(model: Model) -> None:
    for what, names in (("joint_names", model.joint_names), ("body_names", model.body_names)):
        if not (isinstance(names, tuple) and all(isinstance(name, str) for name in names)):
            raise StateError(f"{what} of a model must be texts, got {repr(names)[:60]}")
        if len(set(names)) < len(names):
            raise StateError(f"{what} of a model must be unique, got {choices(names)[:200]}")
    if not all(_is_text(x) for pair in _items(model.locked, "locked") for x in pair):
        raise StateError("locked of a model must map names of joints to reasons")
    for name, body in _items(model.modules, "modules"):
        if not (_is_text(name) and type(body) is int and 0 <= body < model.nbodies):
            raise StateError(
                f"modules of a model must map names to bodies 0 to {model.nbodies - 1}, got "
                f"{repr(name)[:60]}: {repr(body)[:60]}"
            )
    if type(model.free_base) is not bool:
        raise StateError(f"free_base of a model must be True or False, got {model.free_base!r:.60}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _items(mapping: Any, what: str) -> Sequence[tuple[Any, Any]]:
    if not isinstance(mapping, Mapping):
        raise StateError(f"{what} of a model must be a mapping, got {type(mapping).__name__}")
    return list(mapping.items())


def check_numbers(model: Model) -> None:
    """Refuse numbers that are not finite, limits out of order and negative friction."""
    arrays = [getattr(model, name) for name in FINITE]
    if not np.isfinite(np.concatenate([array.ravel() for array in arrays])).all():
        name = next(n for n, x in zip(FINITE, arrays, strict=True) if not np.isfinite(x).all())
        raise StateError(f"{name} of a model must hold finite numbers")
    ordered = (model.lower <= model.upper) & (model.lower < np.inf) & (model.upper > -np.inf)
    if not ordered.all():
        k = int(np.argmin(ordered))
        raise StateError(
            f"limits of '{model.joint_names[k]}' must be in order, got {model.lower[k]:g} to "
            f"{model.upper[k]:g}"
        )
    for name in ("viscous", "coulomb", "armature", "stiffness"):
        if not (getattr(model, name) >= 0).all():
            what = name if name in ("armature", "stiffness") else f"{name} friction"
            raise StateError(f"{what} of a model must not be negative")


def _check_tree(model: Model) -> None:
    before = model.parent <= np.arange(len(model.parent))
    for name, link, possible in (
        ("parent", model.parent, before),
        ("body_link", model.body_link, model.body_link <= len(model.parent)),
    ):
        right = possible & (link >= 0)
        if not right.all():
            k = int(np.argmin(right))
            last = k if name == "parent" else len(model.parent)
            raise StateError(f"{name}[{k}] of a model must be link 0 to {last}, got {link[k]}")


def _check_poses(model: Model) -> None:
    T = np.concatenate([model.placement, model.body_placement, model.base_pose[None]])
    right = so3.is_rotation(T[:, :3, :3], EXACT) & (T[:, 3] == UNIT_ROW).all(axis=1)
    if not right.all():
        k, joints = int(np.argmin(right)), len(model.parent)
        name = f"placement[{k}]" if k < joints else f"body_placement[{k - joints}]"
        name = "base_pose" if k == len(T) - 1 else name
        raise StateError(f"{name} of a model is no pose: a rotation and a position, then 0 0 0 1")
    if not model.free_base and not np.array_equal(model.base_pose, np.eye(4)):
        raise StateError(
            "base_pose of a model with a fixed base must be the identity: link 0 is the world; "
            "organism.with_base_pose(T) puts the robot elsewhere"
        )
    slides = model.prismatic[:, None]
    along = np.where(slides, model.screw[:, :3], model.screw[:, 3:])
    across = np.where(slides, model.screw[:, 3:], model.screw[:, :3])
    off = np.abs(np.sqrt(np.einsum("ij,ij->i", along, along)) - 1) + np.abs(across).max(axis=1)
    if not (off <= EXACT).all():
        name = model.joint_names[int(np.argmax(~(off <= EXACT)))]
        raise StateError(f"screw of '{name}' must be a unit axis through the origin of its link")


def _check_masses(model: Model) -> None:
    """Look closely only at links whose integral of r r^T dm is not clearly positive."""
    I = model.inertia  # noqa: E741
    slack = INERTIA_TOLERANCE * np.abs(I).max(axis=(1, 2))
    S = (0.5 * np.trace(I, axis1=1, axis2=2) + slack)[:, None, None] * np.eye(3) - I
    minor = S[:, 0, 0] * S[:, 1, 1] - S[:, 0, 1] * S[:, 1, 0]
    clear = (S[:, 0, 0] > 0) & (minor > 0) & (np.linalg.det(S) > 0) & (model.mass > 0)
    clear &= np.abs(I - I.swapaxes(1, 2)).max(axis=(1, 2)) <= slack
    clear |= (slack == 0) & (model.mass >= 0)  # a point, or nothing
    for k in np.flatnonzero(~clear).tolist():
        flaw = inertia_flaw(float(model.mass[k]), I[k])
        if flaw:
            raise StateError(f"link {k} of a model: {flaw}")


def common_batch(shapes: Sequence[tuple[int, ...]], whose: str) -> tuple[int, ...]:
    """The batch shape that all broadcast to, or a `StateError`."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        given = choices(shapes)
        raise StateError(
            f"{whose} have batch shapes {given}, which cannot be broadcast together"
        ) from None
