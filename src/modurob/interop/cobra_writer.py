"""A kind of module as CoBRA describes it: plain JSON data.

A port is a connector with the same frame: z points outward in both, and both mate by a half turn
about x. What differs:

* CoBRA joins two connectors in one way. A port with several turns becomes one connector for each,
  turned about z: ``3``, ``3@90``, ``3@180``.
* CoBRA's connectors mate by type and gender. A port that mates with its own kind is ``h``; two
  kinds that mate with each other are ``f`` and ``m`` of one type; a port with several mates becomes
  one connector for each.
* CoBRA's joints act about or along z of a frame of their own, ours along any axis of the child's.
* CoBRA builds an assembly up from a connector of type ``base``. Every module gets one in the frame
  of its first body, z down, unless it has one there.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from typing import Any, NamedTuple

import numpy as np

from modurob.modules import Joint, Mesh, ModuleType, Port, Shape
from modurob.spatial import se3, so3

HALF_TURN = se3.pose(so3.from_rpy(math.pi, 0.0, 0.0), np.zeros(3))
MATES = {"f": "m", "m": "f", "h": "h"}
BASE = "base"  # the type of connectors to the ground
SIZE_KEYS = {"box": "xyz", "cylinder": "rz", "sphere": "r"}  # parameters of the shapes
FOREIGN = re.compile(r"(?P<type>.+?)(?:-size(?P<size>[0-9px]+))?-(?P<gender>[fmh])")


class Connector(NamedTuple):
    """One way to dock at a port.

    Attributes:
        id: CoBRA's name for it.
        label, mate, turn: The port, the connector it holds, and how far it is turned. [deg]
    """

    id: str
    label: int | str
    mate: str
    turn: int


def connectors(port: Port) -> list[Connector]:
    """All ways to dock at a port; the first one is straight and has the port's own name."""
    name, turns = label_id(port.label), [0, *(turn for turn in port.turns if turn)]
    found = []
    for mate in port.mates:
        first = name if mate == port.mates[0] else f"{name}:{mate}"
        found += [
            Connector(f"{first}@{turn}" if turn else first, port.label, mate, turn)
            for turn in turns
        ]
    return found


def base_connector(kind: ModuleType) -> tuple[str, np.ndarray]:
    """Name of the connector between an assembly and the ground, and its (4, 4) frame."""
    for port in kind.ports:
        kind_of, _, gender = mating(port.connector, port.mates[0])
        if kind_of == BASE and gender == "f" and port.body == kind.bodies[0].name:
            return label_id(port.label), port.pose
    taken = {label_id(port.label) for port in kind.ports}
    return BASE if BASE not in taken else f"{BASE}@", HALF_TURN


def part_id(name: str) -> str:
    """CoBRA's name of a body or joint: the underscore before a digit is needed only here."""
    return name[1:] if re.match(r"_\d", name) else name


def label_id(label: int | str) -> str:
    """CoBRA's name of a port; ``_5`` stays apart from the number 5."""
    text = str(label)
    return text if text[1:].isdigit() else part_id(text)


def mating(connector: str, mate: str) -> tuple[str, list[float], str]:
    """Type, size and gender that let a connector mate with `mate` and nothing else."""
    found = FOREIGN.fullmatch(connector)
    if found and mate == f"{connector[:-1]}{MATES[found['gender']]}":
        # named by the reader: back to what it was
        texts = found["size"].split("x") if found["size"] else []
        sizes = [float(t.replace("p", ".")) if "p" in t else int(t) for t in texts]
        return found["type"], sizes, found["gender"]
    if connector == mate:
        return connector, [], "h"
    female, male = sorted((connector, mate))
    return f"{female}+{male}", [], "f" if connector == female else "m"


def module_data(kind: ModuleType, id: str, date: datetime.date) -> dict[str, Any]:
    """A kind as a CoBRA module.

    The whole datasheet is one line of text among the affiliations, which readers of CoBRA ignore:
    title, symbol, colors, the dyad's hinge and all digits come back with it.
    """
    datasheet = json.dumps(kind.document(), ensure_ascii=False, separators=(",", ":"))
    return {
        "header": {
            "ID": id,
            "name": kind.title or kind.name,
            "date": date.isoformat(),
            "author": ["modurob"],
            "email": [],
            "affiliation": [datasheet],
            "cost": 0.0,
        },
        "bodies": [_body(kind, index) for index in range(len(kind.bodies))],
        "joints": [_joint(joint) for joint in kind.joints],
    }


def _body(kind: ModuleType, index: int) -> dict[str, Any]:
    body = kind.bodies[index]
    held = []
    for port in (port for port in kind.ports if port.body == body.name):
        for connector in connectors(port):
            turned = so3.from_rpy(0.0, 0.0, math.radians(connector.turn))
            T = port.pose @ se3.pose(turned, np.zeros(3)) if connector.turn else port.pose
            held.append(_connector(connector.id, T, *mating(port.connector, connector.mate)))
    if index == 0:
        id, T = base_connector(kind)
        if all(connector["ID"] != id for connector in held):
            held.append(_connector(id, T, BASE, [], "f"))
    data = {
        "ID": part_id(body.name),
        "mass": body.mass,
        "inertia": [list(row) for row in body.inertia],
        "r_com": list(body.center_of_mass),
        "connectors": held,
    }
    visuals = [visual for visual in (*kind.shapes, *kind.meshes) if visual.body == body.name]
    return {**data, "visual": list(map(_geometry, visuals))} if visuals else data


def _connector(id: str, T: np.ndarray, type: str, size: list[float], gender: str) -> dict[str, Any]:
    return {"ID": id, "pose": (T + 0.0).tolist(), "gender": gender, "type": type, "size": size}


def _joint(joint: Joint) -> dict[str, Any]:
    # T_parent_child(q) = poseParent exp(z q) poseChild with z of the joint along our axis
    R = _frame_along(np.array(joint.axis)) if joint.kind != "fixed" else np.eye(3)
    T_joint = se3.pose(R, np.zeros(3))
    return {
        "ID": part_id(joint.name),
        "parent": part_id(joint.parent),
        "child": part_id(joint.child),
        "type": joint.kind,
        "passive": False,
        "poseParent": (joint.pose @ T_joint + 0.0).tolist(),
        "poseChild": (se3.inverse(T_joint) + 0.0).tolist(),
        "limits": {
            "positionLower": -math.inf if joint.lower is None else joint.lower,
            "positionUpper": math.inf if joint.upper is None else joint.upper,
            "peakTorque": math.inf,
            "velocity": math.inf,
            "acceleration": math.inf,
        },
        "gearRatio": joint.gear_ratio,
        "motorInertia": joint.rotor_inertia,
        "frictionCoulomb": joint.coulomb,
        "frictionViscous": joint.viscous,
    }


def _frame_along(axis: np.ndarray) -> np.ndarray:
    """(3, 3) rotation whose z is the axis, digit for digit."""
    if np.array_equal(axis, [0, 0, 1]):
        return np.eye(3)
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(axis)))], axis)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=-1)


def _geometry(shape: Shape | Mesh) -> dict[str, Any]:
    if isinstance(shape, Mesh):
        form, parameters = "mesh", {"file": shape.file, "scale": list(shape.scale)}
    else:
        form, keys = shape.form, SIZE_KEYS[shape.form]
        parameters = dict(zip(keys, shape.size, strict=True))
    return {"type": form, "parameters": parameters, "pose": shape.pose.tolist()}
