"""`read_urdf`: a robot of another program as one module."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from modurob.errors import DatasheetError, FileError, choices
from modurob.interop.conventions import (
    UNLIMITED,
    Names,
    hex_color,
    position_and_rpy,
    rotation_of,
    symmetric,
    to_name,
    typical_size,
)
from modurob.interop.files import read_xml
from modurob.interop.xml_text import read_number, read_numbers, read_text, shown
from modurob.modules import ModuleType
from modurob.modules.files import checked_path
from modurob.spatial import se3

KINDS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
}
MOST_LINKS = 1000  # checking a datasheet costs the square of its bodies
MOST_SHAPES = 10_000
BASE, TIP = "urdf-base", "urdf-tip"
SHAPES = {"box": ("size",), "cylinder": ("radius", "length"), "sphere": ("radius",)}


def read_urdf(path: str | os.PathLike[str]) -> ModuleType:
    """Read a URDF robot as one module: its links are the bodies, its joints the joints.

    ``Organism.start(read_urdf("arm.urdf"))`` gives it to all of modurob. The root link comes first
    and its frame is the module's. For docking there is the port ``base`` under the root link (z
    down), and one port at each link that carries nothing, named after it (z along the link's own z,
    outward); the base of one such robot fits onto a tip of another, the two frames coinciding.

    Characters that datasheets do not allow in names become ``_``: ``arm.1`` is ``arm_1``. Boxes,
    cylinders and spheres (of the visuals, or else of the collisions) are kept for drawing; meshes
    and textures are left out, and so are limits of effort and velocity, transmissions, sensors and
    what simulators add. Limits of 1e9 or more are none. Joints that are ``planar`` or ``floating``,
    joints that mimic others, and xacro are errors.

    Args:
        path: An XML file without entities.
    """
    path = checked_path(path)
    root = read_xml(path)
    try:
        return _robot(root, path.stem)
    except DatasheetError as error:
        raise FileError(f"{path}: {error}") from None


def _robot(root: Element, stem: str) -> ModuleType:
    links, joints = _elements(root)
    names, joint_names = Names("links"), Names("joints")
    bodies = {body["name"]: body for body in (_body(link, names) for link in links)}
    if len(bodies) < len(links):
        raise DatasheetError("two links have the same name; rename one of them")
    hinges = [_joint(joint, joint_names) for joint in joints]
    first = _root(list(bodies), hinges)
    colors = {m.get("name", ""): _color(m) for m in root.findall("material")}
    drawn = (shape for link in links for shape in _shapes(link, colors))
    shapes = list(islice(drawn, MOST_SHAPES + 1))
    if len(shapes) > MOST_SHAPES:
        raise DatasheetError(f"a robot has at most {MOST_SHAPES:,} shapes; this one has more")
    title = root.get("name", "") or stem
    fields = {
        "name": to_name(title),
        "symbol": "R",
        "title": title,
        "source": "read from URDF",
        "size": typical_size(hinge["position"] for hinge in hinges),
        "bodies": [bodies.pop(first), *bodies.values()],
        "joints": hinges,
        "ports": list(_ports(first, list(bodies), hinges)),
        "shapes": shapes,
    }
    return ModuleType(**fields)


def _elements(root: Element) -> tuple[list[Element], list[Element]]:
    """The links and joints, if there are as many as a tree has."""
    if root.tag != "robot":
        raise DatasheetError(f"no URDF: its root element is <{shown(root.tag)}>, not <robot>")
    for element in root.iter():
        if element.tag.startswith("xacro:"):
            raise DatasheetError(
                f"<{shown(element.tag)}> is xacro, not URDF yet; expand it first: "
                "xacro robot.urdf.xacro > robot.urdf"
            )
    links, joints = root.findall("link"), root.findall("joint")
    if not 0 < len(links) <= MOST_LINKS:
        raise DatasheetError(f"a robot has 1 to {MOST_LINKS:,} links, got {len(links):,}")
    if len(joints) != len(links) - 1:
        raise DatasheetError(
            f"the links must form one tree: {len(links):,} links need {len(links) - 1:,} joints, "
            f"got {len(joints):,}"
        )
    return links, joints


def _root(links: list[str], joints: list[dict[str, Any]]) -> str:
    """The one link that is nobody's child."""
    for joint in joints:
        for end in (joint["parent"], joint["child"]):
            if end not in links:
                raise DatasheetError(
                    f"joint '{joint['name']}' names link '{end}'; links are {choices(links)}"
                )
    held = [joint["child"] for joint in joints]
    roots = [link for link in links if link not in set(held)]
    if len(roots) != 1 or len(set(held)) < len(held):
        twice = sorted({link for link in held if held.count(link) > 1})
        raise DatasheetError(
            "the links must form one tree: the links that no joint holds are "
            f"{choices(roots)}, those held twice are {choices(twice)}"
        )
    return roots[0]


def _ports(root: str, others: list[str], joints: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Where this robot stands, and where it carries something."""
    place = {"position": (0.0, 0.0, 0.0), "reference": (1.0, 0.0, 0.0)}
    yield {"label": "base", "body": root, "side": 1, "normal": (0.0, 0.0, -1.0),
           "connector": BASE, "mates": [TIP], **place}  # fmt: skip
    carrying = {joint["parent"] for joint in joints}
    tips = [link for link in others if link not in carrying]
    for side, link in enumerate(tips, start=2):
        label = "base_" if link == "base" else link
        yield {"label": label, "body": link, "side": side, "normal": (0.0, 0.0, 1.0),
               "connector": TIP, "mates": [BASE], **place}  # fmt: skip


# -- elements --------------------------------------------------------------------------------------


def _body(link: Element, names: Names) -> dict[str, Any]:
    name = names(read_text(link, "name", "a link"))
    what, inertial = f"link '{name}'", link.find("inertial")
    if inertial is None:
        return {"name": name}
    mass, inertia = inertial.find("mass"), inertial.find("inertia")
    if mass is None or inertia is None:
        raise DatasheetError(f"{what}: <inertial> needs <mass> and <inertia>")
    T = _origin(inertial, what)
    xx, xy, xz, yy, yz, zz = (
        read_number(inertia, key, what) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    R, I_c = T[:3, :3], np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return {
        "name": name,
        "mass": read_number(mass, "value", what),
        "center_of_mass": tuple(T[:3, 3].tolist()),
        "inertia": symmetric(R @ I_c @ R.T),
    }


def _joint(joint: Element, names: Names) -> dict[str, Any]:
    name = names(read_text(joint, "name", "a joint"))
    what, kind = f"joint '{name}'", read_text(joint, "type", f"joint '{name}'")
    if kind not in KINDS:
        advice = "; leave it out and use base='free'" if kind == "floating" else ""
        raise DatasheetError(
            f"{what} is {shown(kind)}; modurob reads {choices(KINDS)} joints{advice}"
        )
    if joint.find("mimic") is not None:
        raise DatasheetError(f"{what} mimics another one; modurob knows independent joints only")
    fields = {"name": name, "kind": KINDS[kind], **position_and_rpy(_origin(joint, what))}
    for end in ("parent", "child"):
        element = joint.find(end)
        if element is None:
            raise DatasheetError(f'{what} has no <{end} link="..."/>')
        fields[end] = to_name(read_text(element, "link", what))
    if kind == "fixed":
        return fields
    axis = joint.find("axis")
    fields["axis"] = (1.0, 0.0, 0.0) if axis is None else read_numbers(axis, "xyz", what, 3)
    dynamics = joint.find("dynamics")
    if dynamics is not None:
        fields["viscous"] = read_number(dynamics, "damping", what, 0.0)
        fields["coulomb"] = read_number(dynamics, "friction", what, 0.0)
    if kind != "continuous":
        limit = joint.find("limit")
        if limit is None:
            raise DatasheetError(f"{what} is {kind} and needs a <limit>; a hinge without one "
                                 "is of the type continuous")  # fmt: skip
        fields["lower"], fields["upper"] = (_limit(limit, key, what) for key in ("lower", "upper"))
    return fields


def _limit(limit: Element, key: str, what: str) -> float | None:
    end = read_number(limit, key, what, 0.0, finite=False)
    return None if abs(end) >= UNLIMITED else end


def _shapes(link: Element, colors: dict[str, str | None]) -> Iterator[dict[str, Any]]:
    body = to_name(read_text(link, "name", "a link"))
    what = f"link '{body}'"
    for element in link.findall("visual") or link.findall("collision"):
        geometry = element.find("geometry")
        for form, keys in SHAPES.items():
            solid = None if geometry is None else geometry.find(form)
            if solid is None:
                continue
            counts = 3 if form == "box" else 1
            size = [x for key in keys for x in read_numbers(solid, key, what, counts)]
            shape = {"body": body, "form": form, "size": size}
            shape |= position_and_rpy(_origin(element, what))
            material = element.find("material")
            if material is not None:
                color = _color(material) or colors.get(material.get("name", ""))
                shape |= {} if color is None else {"color": color}
            yield shape


def _color(material: Element) -> str | None:
    color = material.find("color")
    return None if color is None else hex_color(read_numbers(color, "rgba", "a material", 4))


def _origin(element: Element, what: str) -> np.ndarray:
    """(4, 4) of an element's <origin>."""
    origin = element.find("origin")
    if origin is None:
        return np.eye(4)
    position = read_numbers(origin, "xyz", what, 3, "0 0 0")
    roll, pitch, yaw = read_numbers(origin, "rpy", what, 3, "0 0 0")
    return se3.pose(rotation_of((roll, pitch, yaw)), position)
