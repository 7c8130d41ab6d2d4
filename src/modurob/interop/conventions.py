"""What the formats share: names, angles, colors, and an organism as a tree of links."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.errors import DatasheetError, StateError
from modurob.model import Model
from modurob.modules import Shape
from modurob.organism import Organism
from modurob.spatial import so3

UNLIMITED = 1e9  # stands for "no limit" where a format wants a number [rad, m, N m, rad/s, ...]
LONGEST_NAME = 64  # characters, as in datasheets
SOME_SIZE = 0.1  # of a module whose data do not tell [m]
ORTHONORMAL = 1e-12  # a rotation this good is kept to the last digit
CACHED_ANGLES = 4096
SLOPPY = 1e-6  # the worst that is taken for a rotation: files often keep six digits


Looks = tuple[tuple[np.ndarray, Shape], ...]


class Robot(NamedTuple):
    """What is exported: the links, what they are called, and what their bodies look like.

    Attributes:
        links: Name of each link of the model: a body whose frame is the link's, or its joint.
        bodies: For each link the bodies that are part of it.
        looks: For each body of the model its solids: (4, 4) in the body's frame, and the shape.
    """

    model: Model
    links: tuple[str, ...]
    bodies: tuple[tuple[int, ...], ...]
    looks: tuple[Looks, ...]


def robot_of(
    source: Organism | Model,
    root: str,
    hinges: str | None,
    base: str | Sequence[str] | None,
    gravity: ArrayLike | None = None,
) -> Robot:
    """The tree of links of an organism, or of a model that was made from one.

    Args:
        root: What link 0 is called when it is the world and no body.
        hinges, base, gravity: See `Organism.model`; a model has them already.
    """
    given = {"hinges": hinges, "base": base, "gravity": gravity}
    options = {key: value for key, value in given.items() if value is not None}
    if isinstance(source, Model):
        if options:
            key, value = next(iter(options.items()))
            raise StateError(
                f"{key}={reprlib.repr(value)} was given with a Model, which was built with its "
                f"own; give the Organism, or leave {key} out"
            )
        model, looks = source, tuple(() for _ in source.body_names)
    elif isinstance(source, Organism):
        model = source.model(**options)
        looks = _looks(source, model)
    else:
        raise StateError(f"an Organism or a Model can be written, got {type(source).__name__}")
    bodies: list[list[int]] = [[] for _ in model.mass]
    for body, link in enumerate(model.body_link.tolist()):
        bodies[link].append(body)
    return Robot(model, _link_names(model, root), tuple(map(tuple, bodies)), looks)


def _link_names(model: Model, root: str) -> tuple[str, ...]:
    """A link is called as the first body whose frame it has; else as its joint, with ``.link``."""
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


def _looks(organism: Organism, model: Model) -> tuple[Looks, ...]:
    looks: list[list[tuple[np.ndarray, Shape]]] = [[] for _ in model.body_names]
    poses: dict[int, list[np.ndarray]] = {}
    for name in organism.modules:
        kind = organism.kind(name)
        if id(kind) not in poses:
            poses[id(kind)] = [shape.pose for shape in kind.shapes]
        whole = model.body_names[model.modules[name]] == name  # as the dyad model sees its cubes
        for shape, T in zip(kind.shapes, poses[id(kind)], strict=True):
            if whole:
                T_body = kind.rest_poses[kind.body_index(shape.body)] @ T
                looks[model.body_index(name)].append((T_body, shape))
            else:
                looks[model.body_index(f"{name}.{shape.body}")].append((T, shape))
    return tuple(map(tuple, looks))


def axis_of(model: Model, joint: int) -> np.ndarray:
    """(3,) axis of a joint in the frame of the link that it moves."""
    return model.screw[joint, :3] if model.prismatic[joint] else model.screw[joint, 3:]


def checked_title(name: str) -> str:
    """A name for the whole robot that XML can hold."""
    if not (isinstance(name, str) and name and name.isprintable()):
        raise StateError(f"a robot's name is printable text, got {reprlib.repr(name)}")
    return name


# -- names -----------------------------------------------------------------------------------------


def to_name(text: str) -> str:
    """A foreign name as one that datasheets allow: ``arm.link 1`` -> ``arm_link_1``."""
    name = re.sub(r"[^\w\-]", "_", text)
    name = name if re.match(r"[A-Za-z_]", name) else f"_{name}"
    return name[:LONGEST_NAME]


class Names:
    """Foreign names as ours; two that would become one are an error."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        return self.keep(to_name(text), text)

    def keep(self, name: str, text: str) -> str:
        """`name`, if it stands for nothing but `text`."""
        known = self._known.setdefault(name, text)
        if known != text:
            raise DatasheetError(
                f"{self._what} {reprlib.repr(known)} and {reprlib.repr(text)} would both be called "
                f"'{name}' here; rename one of them"
            )
        return name


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
    return roll + 0.0, pitch + 0.0, yaw + 0.0


@lru_cache(maxsize=CACHED_ANGLES)
def rotation_of(rpy: tuple[float, float, float]) -> np.ndarray:
    """(3, 3) of URDF's angles; few are distinct in a robot of equal modules."""
    return so3.from_rpy(*rpy)


def checked_rotation(R: np.ndarray, what: str) -> np.ndarray:
    """The rotation that a file's rounded digits mean."""
    if so3.is_rotation(R, ORTHONORMAL):
        return R
    if not so3.is_rotation(R, SLOPPY):
        raise DatasheetError(f"{what}: its rotation is not orthonormal and right-handed")
    return so3.nearest_rotation(R)


def position_and_rpy(T: np.ndarray) -> dict[str, tuple[float, ...]]:
    """A pose as the fields of a datasheet."""
    return {"position": tuple((T[:3, 3] + 0.0).tolist()), "rpy": rpy_of(T[:3, :3])}


def symmetric(I: np.ndarray) -> list[list[float]]:  # noqa: E741
    """An inertia without the rounding that turning it has left."""
    return ((I + I.T) / 2 + 0.0).tolist()


def typical_size(positions: Iterable[ArrayLike]) -> float:
    """A width for plots: the longest step from one frame of a module to the next. [m]"""
    longest = max((float(np.linalg.norm(p)) for p in positions), default=0.0)
    return longest if longest > 0 else SOME_SIZE


def rgba(color: str) -> tuple[float, float, float, float]:
    """``#rrggbb`` as four numbers from 0 to 1."""
    red, green, blue = (int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue, 1.0


def hex_color(channels: Sequence[float]) -> str:
    """The nearest ``#rrggbb``; how much shines through is lost."""
    whole = (round(255 * min(max(channel, 0.0), 1.0)) for channel in channels[:3])
    return "#" + "".join(f"{channel:02x}" for channel in whole)
