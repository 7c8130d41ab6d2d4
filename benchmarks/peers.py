"""The same organism in Pinocchio, MuJoCo and dynibo, for side-by-side measurements.

Benchmarks check that all of them give the same numbers before they time anything; the independent
oracles, built from the docking list, are in tests/oracles.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np
import pinocchio as pin

from benchmarks.c_code import NoPeer
from modurob import Model
from modurob.interop import write_urdf

ALIGNED = {
    (False, 0): pin.JointModelRX, (False, 1): pin.JointModelRY, (False, 2): pin.JointModelRZ,
    (True, 0): pin.JointModelPX, (True, 1): pin.JointModelPY, (True, 2): pin.JointModelPZ,
}  # fmt: skip
DYNIBO_GRAVITY = 9.80665  # [m/s^2]; it takes no other


def depth_first(model: Model) -> list[int]:
    """Joints branch by branch: Pinocchio and MuJoCo want subtrees numbered in one piece."""
    children = _children(model)
    order: list[int] = []
    waiting = children.get(0, [])[::-1]
    while waiting:
        k = waiting.pop()
        order.append(k)
        waiting.extend(reversed(children.get(k + 1, [])))
    return order


def breadth_first(model: Model) -> list[int]:
    """Joints by their distance from the base, as dynibo numbers them."""
    children = _children(model)
    order = list(children.get(0, []))
    for k in order:
        order.extend(children.get(k + 1, []))
    return order


def _children(model: Model) -> dict[int, list[int]]:
    """Joints on each link."""
    children: dict[int, list[int]] = {}
    for k, parent in enumerate(model.parent.tolist()):
        children.setdefault(parent, []).append(k)
    return children


def axis_of(model: Model, k: int) -> np.ndarray:
    """(3,) axis of joint k in its link's frame."""
    return np.array(model.screw[k, :3] if model.prismatic[k] else model.screw[k, 3:])


def pinocchio_model(model: Model, order: list[int]) -> pin.Model:
    """A fixed-base model, with Pinocchio's faster aligned joints wherever it has one."""
    peer = pin.Model()
    peer.gravity.linear = np.array(model.gravity)
    number = {0: 0}  # our link -> its joint there
    for k in order:
        axis = axis_of(model, k)
        positive = np.flatnonzero(axis == 1.0)
        if len(positive):
            joint = ALIGNED[bool(model.prismatic[k]), int(positive[0])]()
        elif model.prismatic[k]:
            joint = pin.JointModelPrismaticUnaligned(axis)
        else:
            joint = pin.JointModelRevoluteUnaligned(axis)
        placed = pin.SE3(np.array(model.placement[k]))
        added = peer.addJoint(number[int(model.parent[k])], joint, placed, model.joint_names[k])
        number[k + 1] = added
        body = pin.Inertia(
            model.mass[k + 1], np.array(model.center[k + 1]), np.array(model.inertia[k + 1])
        )
        peer.appendBodyToJoint(added, body, pin.SE3.Identity())
    return peer


def mujoco_model(model: Model, order: list[int]) -> mujoco.MjModel:
    """The same tree without contact, limits or damping."""
    root = ElementTree.Element("mujoco")
    ElementTree.SubElement(root, "compiler", angle="radian", inertiafromgeom="false")
    option = ElementTree.SubElement(root, "option", gravity=_text(model.gravity))
    ElementTree.SubElement(option, "flag", contact="disable", constraint="disable")
    elements = {0: ElementTree.SubElement(root, "worldbody")}
    for k in order:
        T = model.placement[k]
        quaternion = np.roll(pin.Quaternion(np.array(T[:3, :3])).coeffs(), 1)
        body = ElementTree.SubElement(
            elements[int(model.parent[k])], "body", pos=_text(T[:3, 3]), quat=_text(quaternion)
        )
        kind = "slide" if model.prismatic[k] else "hinge"
        ElementTree.SubElement(body, "joint", type=kind, axis=_text(axis_of(model, k)))
        J = model.inertia[k + 1]
        moments = [J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]]
        ElementTree.SubElement(
            body,
            "inertial",
            pos=_text(model.center[k + 1]),
            mass=repr(float(model.mass[k + 1])),
            fullinertia=_text(moments),
        )
        elements[k + 1] = body
    return mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))


def dynibo_robot(model: Model) -> Any:
    """The same tree, read by dynibo from a URDF."""
    try:
        from dynibo import Robot
    except ImportError as error:
        raise NoPeer("not installed") from error
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "body.urdf"
        write_urdf(model, path)
        return Robot.from_urdf(str(path))


def _text(numbers: np.ndarray | list[float]) -> str:
    return " ".join(repr(float(x)) for x in numbers)
