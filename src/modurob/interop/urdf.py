"""`write_urdf`: an organism for ROS, Pinocchio, Drake, PyBullet and all others that read URDF."""

from __future__ import annotations

import os
import reprlib
import warnings
from collections.abc import Sequence

import numpy as np

from modurob.errors import StateError, choices
from modurob.interop.conventions import (
    UNLIMITED,
    ExportTree,
    LossWarning,
    Motor,
    Visuals,
    axis_of,
    checked_title,
    motors_of,
    rgba,
    robot_of,
    rpy_of,
)
from modurob.interop.xml_files import XmlText
from modurob.model import Model
from modurob.modules import Mesh, Shape
from modurob.modules.files import checked_target
from modurob.organism import Organism

WORLD = "world"
INTERFACES = ("position", "velocity", "effort")  # of ros2_control
MOCK_HARDWARE = "mock_components/GenericSystem"  # of ros2_control: it follows every command
TRANSMISSION = "transmission_interface/SimpleTransmission"


def write_urdf(
    robot: Organism | Model,
    path: str | os.PathLike[str],
    *,
    hinges: str | None = None,
    base: str | Sequence[str] | None = None,
    name: str = "organism",
    contact: bool = False,
    ros2_control: str | None = None,
    hardware: str = MOCK_HARDWARE,
) -> None:
    """Write an organism as URDF.

    Every body is a link of its name: ``m3.A``, or ``m3`` where the dyad model takes a module for
    one body. Rigidly attached bodies have fixed joints; the joints that move are called as in
    `Model.joint_names`. On a fixed base and on virtual joints the root link is ``world``; with a
    free base it is the base's first body, to be loaded with a free-flyer root joint. Masses of
    bodies that move as one are summed up in one of their links.

    URDF does not hold gravity, the pose of a free base, the names of locked joints, which ports
    are docked, nor what a module is; rotor inertias and springs are lost with a `LossWarning`. It
    requires limits of effort and velocity: those of the datasheet's motor, or 1e9, as is the limit
    of a slide that has none.

    Args:
        robot: An organism, or a model; one that was built from an organism is drawn with its
            shapes, too.
        path: The file to write; an old one stays intact if writing fails.
        hinges, base: See `Organism.model`.
        name: Of the robot.
        contact: Whether the shapes collide too.
        ros2_control: Command interface of the joints, ``position``, ``velocity`` or ``effort``, for
            a ``<ros2_control>`` element with a transmission for each motor; None for none.
        hardware: Plugin of the hardware in it.
    """
    path = checked_target(path)
    if ros2_control is not None and ros2_control not in INTERFACES:
        given = reprlib.repr(ros2_control)
        raise StateError(f"ros2_control is one of {choices(INTERFACES)} or None, got {given}")
    plugin = checked_title(hardware, "the hardware's plugin")
    tree = robot_of(robot, WORLD, hinges, base)
    driven = (tree.model.armature > 0) | (tree.model.stiffness > 0)
    if driven.any():
        lost = choices(np.array(tree.model.joint_names)[driven])
        message = f"{path}: URDF has no place for the rotor inertia or stiffness of {lost}"
        warnings.warn(message, LossWarning, stacklevel=2)
    text, motors = XmlText(), {motor.joint: motor for motor in motors_of(tree.model)}
    shapes = (v for visuals in tree.visuals for _, v in visuals if isinstance(v, Shape))
    with text.open("robot", name=checked_title(name)):
        for color in sorted({shape.color for shape in shapes}):
            with text.open("material", name=color):
                text.leaf("color", rgba=rgba(color))
        for link in range(len(tree.links)):
            _link(text, tree, link, contact)
        for joint in range(len(tree.model.joint_names)):
            _joint(text, tree, joint, motors.get(joint))
        if ros2_control is not None:
            _control(text, tree.model, motors, ros2_control, name, plugin)
    text.write(path)


def _link(text: XmlText, tree: ExportTree, link: int, contact: bool) -> None:
    """A link of the model, and the other bodies that are part of it on fixed joints."""
    model, name = tree.model, tree.links[link]
    with text.open("link", name=name):
        _inertial(text, model, link)
        for body in tree.bodies[link]:
            if model.body_names[body] == name:
                _shapes(text, tree.visuals[body], contact)
    for body in tree.bodies[link]:
        other = model.body_names[body]
        if other == name:
            continue
        with text.open("link", name=other):
            _shapes(text, tree.visuals[body], contact)
        # a colon is in no name of ours, so no joint is called like this
        with text.open("joint", name=f"fixed:{other}", type="fixed"):
            _origin(text, model.body_placement[body])
            text.leaf("parent", link=name)
            text.leaf("child", link=other)


def _inertial(text: XmlText, model: Model, link: int) -> None:
    if model.mass[link] == 0:
        return
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = model.inertia[link].tolist()
    with text.open("inertial"):
        text.leaf("origin", xyz=model.center[link], rpy="0 0 0")
        text.leaf("mass", value=model.mass[link])
        text.leaf("inertia", ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)


def _shapes(text: XmlText, visuals: Visuals, contact: bool) -> None:
    for tag in ("visual", "collision") if contact else ("visual",):
        for T, shape in visuals:
            with text.open(tag):
                _origin(text, T)
                with text.open("geometry"):
                    if isinstance(shape, Mesh):
                        text.leaf("mesh", filename=shape.file, scale=shape.scale)
                    elif shape.form == "box":
                        text.leaf("box", size=shape.size)
                    else:  # radius, and the length of a cylinder
                        names = ("radius", "length")[: len(shape.size)]
                        text.leaf(shape.form, **dict(zip(names, shape.size, strict=True)))
                if tag == "visual" and isinstance(shape, Shape):
                    text.leaf("material", name=shape.color)


def _control(
    text: XmlText, model: Model, motors: dict[int, Motor], command: str, name: str, hardware: str
) -> None:
    """The element that controllers of ROS 2 read: interfaces and transmissions of all motors."""
    with text.open("ros2_control", name=name, type="system"):
        with text.open("hardware"):
            text.text("plugin", hardware)
        for joint, motor in motors.items():
            most = {"velocity": motor.velocity, "effort": motor.effort}
            low, high = model.lower[joint], model.upper[joint]
            if command != "position":
                low, high = -most[command], most[command]
            with text.open("joint", name=motor.name):
                with text.open("command_interface", name=command):
                    for key, limit in (("min", low), ("max", high)):
                        if abs(limit) < UNLIMITED:
                            text.text("param", repr(float(limit)), name=key)
                for interface in INTERFACES:
                    text.leaf("state_interface", name=interface)
        for motor in motors.values():
            with text.open("transmission", name=f"{motor.name}:transmission"):
                text.text("plugin", TRANSMISSION)
                text.leaf("actuator", name=f"{motor.name}:motor", role="actuator1")
                with text.open("joint", name=motor.name, role="joint1"):
                    text.text("mechanical_reduction", repr(float(motor.gear_ratio)))


def _joint(text: XmlText, tree: ExportTree, joint: int, motor: Motor | None) -> None:
    model = tree.model
    lower, upper = model.lower[joint], model.upper[joint]
    effort, velocity = (UNLIMITED,) * 2 if motor is None else (motor.effort, motor.velocity)
    limit: dict[str, float] = {"effort": effort, "velocity": velocity}
    kind = "prismatic" if model.prismatic[joint] else "revolute"
    if np.isinf(lower) and np.isinf(upper) and kind == "revolute":
        kind = "continuous"
    else:
        low, high = np.clip([lower, upper], -UNLIMITED, UNLIMITED).tolist()
        limit = {"lower": low, "upper": high, **limit}
    with text.open("joint", name=model.joint_names[joint], type=kind):
        _origin(text, model.placement[joint])
        text.leaf("parent", link=tree.links[model.parent[joint]])
        text.leaf("child", link=tree.links[joint + 1])
        text.leaf("axis", xyz=axis_of(model, joint))
        text.leaf("limit", **limit)
        text.leaf("dynamics", damping=model.viscous[joint], friction=model.coulomb[joint])


def _origin(text: XmlText, T: np.ndarray) -> None:
    text.leaf("origin", xyz=T[:3, 3], rpy=rpy_of(T[:3, :3]))
