"""A CoBRA module as a kind of ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from modurob.checks import is_number
from modurob.errors import DatasheetError
from modurob.interop.cobra_records import (
    BodyRecord,
    CobraModule,
    ConnectorRecord,
    GeometryRecord,
    JointRecord,
)
from modurob.interop.cobra_writer import MATES, SIZE_KEYS
from modurob.interop.conventions import (
    Names,
    Repairs,
    checked_inertia,
    checked_rotation,
    foreign_kind,
    limits_of,
    position_and_rpy,
    symmetric,
    to_name,
)
from modurob.modules import ModuleType
from modurob.organism.docking import edges_outward
from modurob.spatial import se3

THROUGH_M = 1e-9  # distance of an axis from a body's origin that counts as none [m]
LONGEST_TYPE = 40  # characters of a connector's type; size and gender follow
Z = np.array([0.0, 0.0, 1.0])


def plain_kind(module: CobraModule, connectors: Names, repairs: Repairs) -> ModuleType:
    """The kind that a module's fields describe; connectors and repairs are of the whole file."""
    always = Repairs(strict=True)  # other fields name bodies by what they are called in the file
    bodies, joints, header = Names("bodies", always), Names("joints", always), module.header
    frames, crossings = _frames(module)
    sides = _sides([_label(c.id) for body in module.bodies for c in body.connectors])
    kinds = [_joint(record, crossings[record.id], joints, repairs) for record in module.joints]
    ports = [
        _port(c, body.id, frames[body.id], sides[_label(c.id)], connectors)
        for body in module.bodies
        for c in body.connectors
    ]
    visuals = [v for body in module.bodies for v in _visuals(body, frames[body.id], repairs)]
    parts = {
        "bodies": [_body(body, frames[body.id], bodies, repairs) for body in module.bodies],
        "joints": kinds,
        "ports": ports,
    }
    return foreign_kind(header.id, "C", header.name, "CoBRA", parts, visuals)


# -- frames ----------------------------------------------------------------------------------------


class Crossing(NamedTuple):
    """A joint of ours: ``T_parent_child(q) = T exp(axis q)``."""

    parent: str
    child: str
    T: np.ndarray
    axis: np.ndarray


def _frames(module: CobraModule) -> tuple[dict[str, np.ndarray], dict[str, Crossing]]:
    """Each body's frame of the file in ours (T_ours_file), and the joints between ours.

    Our axes go through the child's origin. Where one of the file does not, our frame of that body
    is the joint's instead; so the tree is walked outward from the first body, whose frame stays.
    """
    for what, parts in (("body", module.bodies), ("joint", module.joints)):
        ids = [part.id for part in parts]
        if len(set(ids)) < len(ids):
            raise DatasheetError(f"{what} '{max(ids, key=ids.count)}' is there twice")
    placed = {body.id: np.eye(4) for body in module.bodies}
    poses = {
        joint.id: (
            _checked(joint.pose_parent, f"poseParent of joint '{joint.id}'"),
            _checked(joint.pose_child, f"poseChild of joint '{joint.id}'"),
        )
        for joint in module.joints
    }
    for joint in module.joints:
        for end in (joint.parent, joint.child):
            if end not in placed:
                raise DatasheetError(f"joint '{joint.id}' names body '{end}', which is not there")
    crossed: dict[str, Crossing] = {}
    reached = {module.bodies[0].id}
    edges = [(joint.parent, joint.child) for joint in module.joints]
    for number, here, there in edges_outward(edges, module.bodies[0].id):
        if there not in reached:
            joint = module.joints[number]
            crossed[joint.id], placed[there] = _crossed(joint, *poses[joint.id], here, placed[here])
            reached.add(there)
    if len(reached) < len(placed) or len(module.joints) != len(placed) - 1:
        raise DatasheetError(
            f"module '{module.header.id}': the joints must connect the {len(placed)} bodies into "
            f"one tree, without a loop; got {len(module.joints)} joints"
        )
    return placed, crossed


def _crossed(
    joint: JointRecord, before: np.ndarray, after: np.ndarray, here: str, placed: np.ndarray
) -> tuple[Crossing, np.ndarray]:
    """A joint seen from a body whose frame is known, and T_ours_file of the body beyond it."""
    turns = joint.type in ("revolute", "continuous")
    if joint.parent == here:
        return _outward(joint.parent, joint.child, placed @ before, after, Z, turns)
    after = after @ se3.inverse(placed)
    if not (turns and _misses(after)):
        return Crossing(joint.parent, joint.child, before @ after, after[:3, :3].T @ Z), np.eye(4)
    # q stays child relative to parent, so the axis is reversed
    inward, outward = se3.inverse(after), se3.inverse(before)
    return _outward(joint.child, joint.parent, inward, outward, -Z, turns)


def _outward(
    parent: str, child: str, before: np.ndarray, after: np.ndarray, axis: np.ndarray, turns: bool
) -> tuple[Crossing, np.ndarray]:
    """``T_parent_child(q) = before exp(axis q) after`` with the child's frame on the axis."""
    if turns and _misses(after):
        return Crossing(parent, child, before, axis), after
    return Crossing(parent, child, before @ after, after[:3, :3].T @ axis), np.eye(4)


def _misses(after: np.ndarray) -> bool:
    """Return whether the axis z misses the origin of the frame behind it."""
    return math.hypot(after[0, 3], after[1, 3]) > THROUGH_M


def _checked(T: np.ndarray, what: str) -> np.ndarray:
    return se3.pose(checked_rotation(T[:3, :3], what), T[:3, 3])


# -- parts -----------------------------------------------------------------------------------------


def _body(body: BodyRecord, T: np.ndarray, names: Names, repairs: Repairs) -> dict[str, Any]:
    R, center, name = T[:3, :3], np.array(body.r_com), names(body.id)
    mass, inertia = checked_inertia(body.mass, np.array(body.inertia), f"body '{name}'", repairs)
    return {
        "name": name,
        "mass": mass,
        "center_of_mass": tuple((R @ center + T[:3, 3]).tolist()),
        "inertia": symmetric(R @ inertia @ R.T),
    }


def _joint(
    joint: JointRecord, crossing: Crossing, names: Names, repairs: Repairs
) -> dict[str, Any]:
    name = names(joint.id)
    fields = {
        "name": name,
        "kind": "revolute" if joint.type == "continuous" else joint.type,
        "parent": to_name(crossing.parent),
        "child": to_name(crossing.child),
        **position_and_rpy(crossing.T),
    }
    if joint.type == "fixed":
        return fields
    return fields | {
        "axis": tuple(crossing.axis.tolist()),
        **limits_of(joint.limits.lower, joint.limits.upper, f"joint '{name}'", repairs),
        "viscous": joint.viscous,
        "coulomb": joint.coulomb,
        "rotor_inertia": joint.motor_inertia,
        "gear_ratio": joint.gear_ratio if joint.motor_inertia else 1.0,
    }


def _port(
    connector: ConnectorRecord, body: str, T: np.ndarray, side: int, names: Names
) -> dict[str, Any]:
    pose = T @ _checked(connector.pose, f"the pose of connector '{connector.id}'")
    gender, size = connector.gender[0], "x".join(f"{s:.12g}" for s in connector.size)
    kind = to_name(connector.type or "connector")[:LONGEST_TYPE]
    stem = f"{kind}-size{size.replace('.', 'p')}" if size else kind
    given = f"{connector.type} {size} {gender}"
    return {
        "label": _label(connector.id),
        "body": to_name(body),
        "position": tuple(pose[:3, 3].tolist()),
        "normal": tuple(pose[:3, 2].tolist()),
        "reference": tuple(pose[:3, 0].tolist()),
        "connector": names.keep(to_name(f"{stem}-{gender}"), given),
        "mates": [to_name(f"{stem}-{MATES[gender]}")],
        "side": side,
    }


def _label(id: str) -> int | str:
    """Label of a port: a whole number stays one."""
    number = id.removeprefix("-")
    whole = number.isascii() and number.isdigit() and str(int(number[:18])) == number
    return int(id) if whole else to_name(id)


def _sides(labels: list[int | str]) -> dict[int | str, int]:
    """A number for each port: its own, if it is called by one."""
    own = {label for label in labels if isinstance(label, int) and label > 0}
    free = (n for n in range(1, len(labels) + 1) if n not in own)
    return {
        label: label if isinstance(label, int) and label > 0 else next(free)
        for label in dict.fromkeys(labels)
    }


def _visuals(body: BodyRecord, T: np.ndarray, repairs: Repairs) -> Iterator[dict[str, Any]]:
    """Shapes and meshes of a body as fields of a datasheet."""
    for geometry in body.visual or body.collision:
        what = f"a {geometry.type[:20]} of body '{to_name(body.id)}'"
        visual = _visual(geometry, what, repairs)
        if visual is not None:
            pose = _checked(geometry.pose, f"the pose of {what}")
            yield {"body": to_name(body.id), **visual, **position_and_rpy(T @ pose)}


def _visual(geometry: GeometryRecord, what: str, repairs: Repairs) -> dict[str, Any] | None:
    """A shape or mesh; None if it cannot be kept."""
    given: Mapping[str, Any] = geometry.parameters
    if geometry.type == "mesh":
        scale = given.get("scale", 1.0)
        scale = [scale] * 3 if is_number(scale) else scale
        if not isinstance(given.get("file"), str):
            raise DatasheetError(f"{what} needs the parameter file, the path of a mesh")
        return {"file": given["file"], "scale": scale}
    long = {"r": "radius", "z": "length"} if geometry.type == "cylinder" else {"r": "radius"}
    keys = SIZE_KEYS.get(geometry.type)
    if keys is None:
        repairs(f"{what}: its type is none of box, cylinder, sphere, mesh", "it is left out")
        return None
    sizes: list[Any] = [given.get(key, given.get(long.get(key, ""))) for key in keys]
    if None in sizes:
        raise DatasheetError(f"{what} needs the parameters {', '.join(keys)}")
    if any(is_number(size) and size <= 0 for size in sizes):
        repairs(f"{what} has the size {sizes}; it must be greater than 0", "it is left out")
        return None
    return {"form": geometry.type, "size": sizes}
