"""`write_urdf`: an organism for ROS, Pinocchio, Drake, PyBullet and all others that read URDF."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from modurob.interop.conventions import (
    UNLIMITED,
    ExportTree,
    Looks,
    axis_of,
    checked_title,
    rgba,
    robot_of,
    rpy_of,
)
from modurob.interop.xml_text import XmlText, numbers
from modurob.model import Model
from modurob.modules import Mesh, Shape
from modurob.modules.files import checked_target, write_file
from modurob.organism import Organism

WORLD = "world"


def write_urdf(
    robot: Organism | Model,
    path: str | os.PathLike[str],
    *,
    hinges: str | None = None,
    base: str | Sequence[str] | None = None,
    name: str = "organism",
    contact: bool = False,
) -> None:
    """Write an organism as URDF.

    Every body is a link of its name: ``m3.A``, or ``m3`` where the dyad model takes a module for
    one body. What is rigidly attached hangs on fixed joints; the joints that move are called as in
    `Model.joint_names`. On a fixed base and on virtual joints the root link is ``world``; with a
    free base it is the base's first body, to be loaded with a free-flyer root joint. Masses of
    bodies that move as one are summed up in one of their links.

    URDF does not hold gravity, the pose of a free base, the names of locked joints, which ports
    are docked, nor what a module is. It wants limits of effort and velocity: both are 1e9, as is
    the limit of a slide that has none.

    Args:
        robot: An organism, drawn with its shapes; or a model, which has none.
        path: The file to write; an old one stays intact if writing fails.
        hinges, base: See `Organism.model`.
        name: Of the robot.
        contact: Whether the shapes collide too.
    """
    path = checked_target(path)
    tree = robot_of(robot, WORLD, hinges, base)
    text = XmlText()
    text.open("robot", name=checked_title(name))
    for color in sorted(
        {look.color for looks in tree.looks for _, look in looks if isinstance(look, Shape)}
    ):
        text.open("material", name=color)
        text.leaf("color", rgba=numbers(rgba(color)))
        text.close()
    for link in range(len(tree.links)):
        _link(text, tree, link, contact)
    for joint in range(len(tree.model.joint_names)):
        _joint(text, tree, joint)
    text.close()
    write_file(path, str(text).encode("utf-8"))


def _link(text: XmlText, tree: ExportTree, link: int, contact: bool) -> None:
    """A link of the model, and the other bodies that are part of it on fixed joints."""
    model, name = tree.model, tree.links[link]
    text.open("link", name=name)
    _inertial(text, model, link)
    for body in tree.bodies[link]:
        if model.body_names[body] == name:
            _shapes(text, tree.looks[body], contact)
    text.close()
    for body in tree.bodies[link]:
        if model.body_names[body] == name:
            continue
        text.open("link", name=model.body_names[body])
        _shapes(text, tree.looks[body], contact)
        text.close()
        # a colon is in no name of ours, so no joint is called like this
        text.open("joint", name=f"fixed:{model.body_names[body]}", type="fixed")
        _origin(text, model.body_placement[body])
        text.leaf("parent", link=name)
        text.leaf("child", link=model.body_names[body])
        text.close()


def _inertial(text: XmlText, model: Model, link: int) -> None:
    if model.mass[link] == 0:
        return
    text.open("inertial")
    text.leaf("origin", xyz=numbers(model.center[link]), rpy="0 0 0")
    text.leaf("mass", value=numbers([model.mass[link]]))
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = ((numbers([x]) for x in r) for r in model.inertia[link])
    text.leaf("inertia", ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)
    text.close()


def _shapes(text: XmlText, looks: Looks, contact: bool) -> None:
    for tag in ("visual", "collision") if contact else ("visual",):
        for T, shape in looks:
            text.open(tag)
            _origin(text, T)
            text.open("geometry")
            if isinstance(shape, Mesh):
                text.leaf("mesh", filename=shape.file, scale=numbers(shape.scale))
            elif shape.form == "box":
                text.leaf("box", size=numbers(shape.size))
            elif shape.form == "cylinder":
                radius, length = (numbers([x]) for x in shape.size)
                text.leaf("cylinder", radius=radius, length=length)
            else:
                text.leaf("sphere", radius=numbers(shape.size))
            text.close()
            if tag == "visual" and isinstance(shape, Shape):
                text.leaf("material", name=shape.color)
            text.close()


def _joint(text: XmlText, tree: ExportTree, joint: int) -> None:
    model = tree.model
    lower, upper = model.lower[joint], model.upper[joint]
    endless = np.isinf(lower) and np.isinf(upper) and not model.prismatic[joint]
    kind = "prismatic" if model.prismatic[joint] else "continuous" if endless else "revolute"
    text.open("joint", name=model.joint_names[joint], type=kind)
    _origin(text, model.placement[joint])
    text.leaf("parent", link=tree.links[model.parent[joint]])
    text.leaf("child", link=tree.links[joint + 1])
    text.leaf("axis", xyz=numbers(axis_of(model, joint)))
    most = numbers([UNLIMITED])
    if endless:
        text.leaf("limit", effort=most, velocity=most)
    else:
        ends = np.clip([lower, upper], -UNLIMITED, UNLIMITED)
        low, high = (numbers([end]) for end in ends)
        text.leaf("limit", lower=low, upper=high, effort=most, velocity=most)
    damping, friction = numbers([model.viscous[joint]]), numbers([model.coulomb[joint]])
    text.leaf("dynamics", damping=damping, friction=friction)
    text.close()


def _origin(text: XmlText, T: np.ndarray) -> None:
    text.leaf("origin", xyz=numbers(T[:3, 3]), rpy=numbers(rpy_of(T[:3, :3])))
