"""Shared by all formats: names, angles, colors, and an organism as a tree of links."""

from __future__ import annotations

import itertools
import math
import re
import reprlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.errors import DatasheetError, ModelWarning, StateError
from modurob.model import Model
from modurob.model.shapes import placed_shapes
from modurob.modules import Mesh, ModuleType, Shape
from modurob.organism import Organism
from modurob.spatial import inertia as spatial_inertia
from modurob.spatial import so3

UNLIMITED = 1e9  # "no limit" where a format requires a number [rad, m, N m, rad/s, ...]
LONGEST_NAME = 64  # characters, as in datasheets
SOME_SIZE_M = 0.1  # of a module without lengths
ORTHONORMAL = 1e-12  # a rotation this good is kept to the last digit
CACHED_ANGLES = 4096
SLOPPY = 1e-6  # the worst that is taken for a rotation: files often keep six digits
LARGEST_NUMBER = 1e30  # of a file, in any unit: products of a few such numbers stay finite
PLACEHOLDER = 1e-12  # mass and moments in place of missing ones: below what M shows [kg, kg m^2]

Visuals = tuple[tuple[np.ndarray, Shape | Mesh], ...]


class LossWarning(ModelWarning):
    """Numbers of a robot that matter and that a format has no place for."""


class Repairs:
    """Flaws of a file: errors if `strict`, else listed with the repair of each.

    Attributes:
        strict: Whether a flaw is an error.
        made: One line for each repair, and for each joint that the file itself locks.
    """

    def __init__(self, strict: bool) -> None:
        if not isinstance(strict, bool):
            raise StateError(f"strict is True or False, got {reprlib.repr(strict)}")
        self.strict = strict
        self.made: list[str] = []

    def __call__(self, flaw: str, repair: str) -> None:
        """Refuse a flaw, or list the repair that the caller makes."""
        if self.strict:
            raise DatasheetError(f"{flaw}; strict=False repairs this: {repair}")
        self.made.append(f"{flaw}; {repair}")

    def warn(self, path: Path, stacklevel: int = 3) -> None:
        """Issue one warning for each line; by default at the caller of the caller."""
        for line in self.made:
            warnings.warn(f"{path}: {line}", ModelWarning, stacklevel=stacklevel)


class ExportTree(NamedTuple):
    """The links of an export, with their names, bodies and shapes.

    Attributes:
        links: Name of each link of the model: a body whose frame is the link's, or its joint.
        bodies: For each link the bodies that are part of it.
        visuals: For each body of the model its solids: (4, 4) in the body's frame, and the shape.
    """

    model: Model
    links: tuple[str, ...]
    bodies: tuple[tuple[int, ...], ...]
    visuals: tuple[Visuals, ...]


def robot_of(
    source: Organism | Model,
    root: str,
    hinges: str | None,
    base: str | Sequence[str] | None,
    gravity: ArrayLike | None = None,
) -> ExportTree:
    """The tree of links of an organism or a model, with the shapes of the organism behind it.

    Args:
        root: Name of link 0 where that is the world and no body.
        hinges, base, gravity: See `Organism.model`; a model has them already.
    """
    given = {"hinges": hinges, "base": base, "gravity": gravity}
    options = {key: value for key, value in given.items() if value is not None}
    if isinstance(source, Organism):
        return tree_of(source.model(**options), source, root)
    if not isinstance(source, Model):
        raise StateError(f"an Organism or a Model can be written, got {type(source).__name__}")
    if options:
        key, value = next(iter(options.items()))
        raise StateError(
            f"{key}={reprlib.repr(value)} was given with a Model, which was built with its "
            f"own; give the Organism, or leave {key} out"
        )
    return tree_of(source, source.organism, root)


def tree_of(model: Model, organism: Organism | None, root: str) -> ExportTree:
    """The tree of links of a model, with the shapes of an organism; see `robot_of`."""
    visuals = tuple(() for _ in model.body_names)
    if organism is not None:
        visuals = _visuals(organism, model)
    bodies: list[list[int]] = [[] for _ in model.mass]
    for body, link in enumerate(model.body_link.tolist()):
        bodies[link].append(body)
    return ExportTree(model, _link_names(model, root), tuple(map(tuple, bodies)), visuals)


def _link_names(model: Model, root: str) -> tuple[str, ...]:
    """Name of the first body whose frame is the link's, else of the joint with ``.link``."""
    names: dict[int, str] = {}
    if not model.free_base:
        while root in model.body_names:
            root += "_"
        names[0] = root
    same = (model.body_placement == np.eye(4)).all(axis=(-1, -2))
    for body in np.flatnonzero(same).tolist():
        names.setdefault(int(model.body_link[body]), model.body_names[body])
    joints = ("base", *model.joint_names)
    return tuple(names.get(link, f"{joint}.link") for link, joint in enumerate(joints))


def _visuals(organism: Organism, model: Model) -> tuple[Visuals, ...]:
    visuals: list[list[tuple[np.ndarray, Shape | Mesh]]] = [[] for _ in model.body_names]
    for name in organism.modules:
        kind = organism.kind(name)
        for body, T, visual in placed_shapes(organism, model, name, (*kind.shapes, *kind.meshes)):
            visuals[body].append((T, visual))
    return tuple(map(tuple, visuals))


class Motor(NamedTuple):
    """The motor of a joint.

    Attributes:
        joint: Number of the joint in the model.
        name: Of the joint.
        effort, velocity: Largest of the datasheet; `UNLIMITED` without. [N m, N; rad/s, m/s]
        gear_ratio: Displacement of the motor for a displacement of the joint.
    """

    joint: int
    name: str
    effort: float
    velocity: float
    gear_ratio: float


def motors_of(model: Model) -> tuple[Motor, ...]:
    """The motors of a model in the order of its joints; springs have none."""
    found = []
    for number, name in enumerate(model.joint_names):
        module, _, label = name.partition(".")
        if model.stiffness[number] > 0:
            continue
        limits, gear = (None, None), 1.0
        if model.organism is not None and module in model.organism:
            sheet = model.organism.kind(module).joint(label)
            limits, gear = (sheet.max_effort, sheet.max_velocity), sheet.gear_ratio
        effort, velocity = (UNLIMITED if x is None else x for x in limits)
        found.append(Motor(number, name, effort, velocity, gear))
    return tuple(found)


def axis_of(model: Model, joint: int) -> np.ndarray:
    """(3,) axis of a joint in the frame of the link that it moves."""
    return model.screw[joint, :3] if model.prismatic[joint] else model.screw[joint, 3:]


def checked_title(name: str, what: str = "a robot's name") -> str:
    """A name that XML can hold, by default of the whole robot."""
    if not (isinstance(name, str) and name and name.isprintable()):
        raise StateError(f"{what} is printable text, got {reprlib.repr(name)}")
    return name


# -- names -----------------------------------------------------------------------------------------


def to_name(text: str) -> str:
    """A foreign name as one that datasheets allow: ``arm.link 1`` -> ``arm_link_1``."""
    name = re.sub(r"[^\w\-]", "_", text)
    name = name if re.match(r"[A-Za-z_]", name) else f"_{name}"
    return name[:LONGEST_NAME]


class Names:
    """Foreign names as ours; two that would become one are a flaw."""

    def __init__(self, what: str, repairs: Repairs) -> None:
        self._what, self._repairs = what, repairs
        self._known: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        return self.keep(to_name(text), text)

    def __contains__(self, text: str) -> bool:
        return text in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def keep(self, name: str, text: str) -> str:
        """`name`, if it is free or that of `text`; else one with a number."""
        if text in self._names:
            return self._names[text]
        if name in self._known:
            free = self.free(name)
            self._repairs(
                f"{self._what} {reprlib.repr(self._known[name])} and {reprlib.repr(text)} would "
                f"both be called '{name}' here; rename one of them",
                f"the second is called '{free}'",
            )
            name = free
        self._known[name], self._names[text] = text, name
        return name

    def free(self, name: str) -> str:
        """`name` with a number that makes it a new one."""
        tails = (f"_{number}" for number in itertools.count(2))
        tried = (name[: LONGEST_NAME - len(tail)] + tail for tail in tails)
        return next(new for new in tried if new not in self._known)


# -- geometry --------------------------------------------------------------------------------------


def rpy_of(R: np.ndarray) -> tuple[float, float, float]:
    """URDF's angles of a rotation: R = Rz(yaw) Ry(pitch) Rx(roll), exact at every pitch.

    Roll is read off after the yaw is taken out, so that close to a pitch of 90 degrees, where yaw
    is arbitrary, the two still fit each other.
    """
    (xx, xy, xz), (yx, yy, yz), (zx, _, _) = R.tolist()
    yaw = math.atan2(yx, xx)
    c, s = (0.0 if abs(x) < so3.SNAP_TOLERANCE else x for x in (math.cos(yaw), math.sin(yaw)))
    pitch = math.atan2(-zx, c * xx + s * yx)
    roll = math.atan2(s * xz - c * yz, c * yy - s * xy)
    return roll, pitch, yaw


@lru_cache(maxsize=CACHED_ANGLES)
def rotation_of(rpy: tuple[float, float, float]) -> np.ndarray:
    """(3, 3) of URDF's angles; few are distinct in a robot of equal modules."""
    return so3.from_rpy(*rpy)


def checked_rotation(R: np.ndarray, what: str) -> np.ndarray:
    """The rotation nearest to a file's rounded digits."""
    if so3.is_rotation(R, ORTHONORMAL):
        return R
    if not so3.is_rotation(R, SLOPPY):
        raise DatasheetError(f"{what}: its rotation is not orthonormal and right-handed")
    return so3.nearest_rotation(R)


def position_and_rpy(T: np.ndarray) -> dict[str, tuple[float, ...]]:
    """A pose as the fields of a datasheet."""
    return {"position": tuple(T[:3, 3].tolist()), "rpy": rpy_of(T[:3, :3])}


def symmetric(I: np.ndarray) -> list[list[float]]:  # noqa: E741
    """An inertia without the rounding that turning it has left."""
    return (I / 2 + I.T / 2).tolist()


def checked_inertia(
    mass: float, inertia: np.ndarray, what: str, repairs: Repairs
) -> tuple[float, np.ndarray]:
    """Mass and (3, 3) inertia about the center of mass that a rigid body can have."""
    if mass < 0:
        raise DatasheetError(f"{what}: the mass is {mass:g} kg but must not be negative")
    flaw = spatial_inertia.inertia_flaw(1.0, inertia)
    if flaw:
        near = spatial_inertia.nearest_possible(inertia)
        change, largest = np.abs(near - inertia).max(), np.abs(inertia).max()
        repairs(
            f"{what}: {flaw}",
            "the nearest possible inertia is taken, with entries changed by up to "
            f"{change:.2g} kg m^2 ({100 * change / largest:.3g} % of the largest)",
        )
        inertia = near
    if mass == 0 and inertia.any():
        repairs(
            f"{what}: {spatial_inertia.inertia_flaw(mass, inertia) or 'inertia without mass'}",
            f"its mass is set to {PLACEHOLDER:g} kg",
        )
        mass = PLACEHOLDER
    return mass, inertia


def limits_of(
    lower: float | None, upper: float | None, what: str, repairs: Repairs
) -> dict[str, float | None]:
    """Limits of a joint as fields of a datasheet; None is no limit."""
    if lower is not None and upper is not None:
        if lower > upper:
            repairs(f"{what}: its lower limit {lower:g} is above its upper limit {upper:g}",
                    "the two are exchanged")  # fmt: skip
            lower, upper = upper, lower
        elif lower == upper == 0:
            repairs(f"{what}: its limits are 0 and 0, which leaves no room to move; make it fixed "
                    "if that is intended", "it has no limits")  # fmt: skip
            lower = upper = None
        elif lower == upper:
            repairs.made.append(f"{what} is locked in models: both of its limits are {lower:g}")
    return {"lower": lower, "upper": upper}


def foreign_kind(
    name: str,
    letter: str,
    title: str,
    format: str,
    parts: Mapping[str, list[dict[str, Any]]],
    visuals: Sequence[dict[str, Any]],
) -> ModuleType:
    """The kind of the parts (bodies, joints, ports) and visuals (shapes, meshes) of a file."""
    # a width for plots: the longest step from one frame to the next
    steps = (np.linalg.norm(p["position"]) for p in (*parts["joints"], *parts["ports"]))
    data: dict[str, Any] = {
        "name": to_name(name),
        "symbol": letter,
        "title": title,
        "source": f"read from {format}",
        "size": max(map(float, steps), default=0.0) or SOME_SIZE_M,
        **parts,
        "shapes": [visual for visual in visuals if "form" in visual],
        "meshes": [visual for visual in visuals if "file" in visual],
    }
    return ModuleType(**data)


def rgba(color: str) -> tuple[float, float, float, float]:
    """``#rrggbb`` as four numbers from 0 to 1."""
    red, green, blue = (int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue, 1.0


def hex_color(channels: Sequence[float]) -> str:
    """The nearest ``#rrggbb``; how much shines through is lost."""
    whole = (round(255 * min(max(channel, 0.0), 1.0)) for channel in channels[:3])
    return "#" + "".join(f"{channel:02x}" for channel in whole)
