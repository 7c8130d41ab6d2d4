"""`read_urdf`: a robot of another program as one module."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from modurob.errors import DatasheetError, FileError, choices
from modurob.interop.conventions import (
    PLACEHOLDER,
    UNLIMITED,
    Names,
    Repairs,
    checked_inertia,
    foreign_kind,
    hex_color,
    limits_of,
    position_and_rpy,
    rotation_of,
    symmetric,
)
from modurob.interop.xml_files import NUMBER, read_number, read_numbers, read_text, read_xml, shown
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
XACRO = re.compile(r"\$[({]")  # ${width / 2}, $(find arm)
BASE, TIP = "urdf-base", "urdf-tip"
SHAPES = {"box": ("size",), "cylinder": ("radius", "length"), "sphere": ("radius",), "mesh": ()}
FOREIGN_KINDS = ("floating", "planar", "spherical")
NUMBER_LISTS = frozenset({"xyz", "rpy", "size", "scale", "rgba"})
REDUCTIONS = ("mechanicalReduction", "mechanical_reduction")  # of ROS and of ros2_control
X = (1.0, 0.0, 0.0)  # URDF's axis where none is given


def read_urdf(path: str | os.PathLike[str], strict: bool = True) -> ModuleType:
    """Read a URDF robot as one module: its links are the bodies, its joints the joints.

    ``Organism.start(read_urdf("arm.urdf"))`` gives it to all of modurob. The root link comes first
    and its frame is the module's. For docking there is the port ``base`` under the root link (z
    down), and one port at each link without a child, named after it (z along the link's own z,
    outward); the base of one such robot fits onto a tip of another, the two frames coinciding.

    Characters that datasheets do not allow in names become ``_``: ``arm.1`` is ``arm_1``. Boxes,
    cylinders and spheres (of the visuals, or else of the collisions) are kept for drawing, meshes
    as references that `write_urdf` writes again. Left out are textures, sensors, what simulators
    add, transmissions and ``<ros2_control>``; gear ratios in these with a `ModelWarning`. Limits of
    1e9 or more are none, and so are efforts and velocities of 0.

    Many published files have flaws. By default each one is an error that names the link or joint.
    With ``strict=False`` they are repaired, each with a `ModelWarning` that names the repair;
    docs/guide/interop.md lists them. Errors of the tree (loops, unknown links, several roots) stay
    errors. A joint whose two limits are equal and not zero is locked by the file itself; a
    `ModelWarning` is issued in both cases.

    Args:
        path: An XML file without entities; xacro has to be expanded first.
        strict: Whether a flaw is an error.
    """
    repairs = Repairs(strict)
    path = checked_path(path)
    root = read_xml(path)
    try:
        kind = _robot(root, path.stem, repairs)
    except DatasheetError as error:
        raise FileError(f"{path}: {error}") from None
    repairs.warn(path)
    return kind


def _robot(root: Element, stem: str, repairs: Repairs) -> ModuleType:
    links, joints = _elements(root)
    for part in (*links, *joints):
        _drop_commas(part, repairs)
    names, joint_names = Names("links", repairs), Names("joints", repairs)
    bodies: dict[str, dict[str, Any]] = {}
    for link in links:
        text = read_text(link, "name", "a link")
        if text in names:
            raise DatasheetError(f"two links have the same name '{shown(text)}'; rename one")
        bodies[names(text)] = _body(link, names(text), repairs)
    hinges = [_joint(joint, joint_names, names, repairs) for joint in joints]
    first = _root(list(bodies), hinges)
    _add_placeholders(bodies, hinges, first, repairs)
    colors = {m.get("name", ""): _color(m) for m in root.findall("material")}
    drawn = (visual for link in links for visual in _visuals(link, names, colors, repairs))
    visuals = list(islice(drawn, MOST_SHAPES + 1))
    if len(visuals) > MOST_SHAPES:
        raise DatasheetError(f"a robot has at most {MOST_SHAPES:,} shapes; this one has more")
    _note_gears(root, repairs)
    title = root.get("name", "") or stem
    parts = {
        "bodies": [bodies.pop(first), *bodies.values()],
        "joints": hinges,
        "ports": list(_ports(first, list(bodies), hinges)),
    }
    return foreign_kind(title, "R", title, "URDF", parts, visuals)


def _elements(root: Element) -> tuple[list[Element], list[Element]]:
    """The links and joints, if there are as many as a tree has."""
    if root.tag != "robot":
        raise DatasheetError(f"no URDF: its root element is <{shown(root.tag)}>, not <robot>")
    for part in root:
        for element in part.iter():
            if element.tag.startswith("xacro:") or any(map(XACRO.search, element.attrib.values())):
                raise DatasheetError(
                    f"{shown(part.tag)} '{shown(part.get('name', ''))}': <{shown(element.tag)}> is "
                    "xacro, not URDF yet; expand it first: xacro robot.urdf.xacro > robot.urdf"
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
    """The link that no joint moves, if all others are connected to it."""
    held = [joint["child"] for joint in joints]
    roots = [link for link in links if link not in set(held)]
    if len(roots) != 1 or len(set(held)) < len(held):
        twice = sorted({link for link in held if held.count(link) > 1})
        raise DatasheetError(
            "the links must form one tree: the links that no joint holds are "
            f"{choices(roots)}, those held twice are {choices(twice)}"
        )
    loose = set(links) - set(_outward(roots[0], joints))
    if loose:
        raise DatasheetError(
            "the links must form one tree with no loop; in a loop or beyond one are "
            f"{choices(link for link in links if link in loose)}"
        )
    return roots[0]


def _outward(root: str, joints: list[dict[str, Any]]) -> list[str]:
    """The links beyond the root, each after its parent."""
    carried: dict[str, list[str]] = {}
    for joint in joints:
        carried.setdefault(joint["parent"], []).append(joint["child"])
    reached = [root]
    for link in reached:
        reached += carried.get(link, ())
    return reached


def _add_placeholders(
    bodies: dict[str, dict[str, Any]], joints: list[dict[str, Any]], root: str, repairs: Repairs
) -> None:
    """Give mass to each link that a joint moves, where neither it nor what it carries has any.

    One at the end of the chain would not do: the mass matrix of seven joints would have rank six.
    """
    held = {joint["child"]: joint for joint in joints}
    heavy: set[str] = set()
    for link in reversed(_outward(root, joints)[1:]):
        joint, body = held[link], bodies[link]
        if body.get("mass", 0.0) > 0 or link in heavy:
            heavy.add(joint["parent"])
        elif joint["kind"] != "fixed":
            repairs(
                f"joint '{joint['name']}' moves link '{link}', and neither that nor any link "
                "beyond has an <inertial> with mass",
                f"the link gets {PLACEHOLDER:g} kg and kg m^2, so that the joint stays movable for "
                "kinematics",
            )
            body |= {"mass": PLACEHOLDER, "inertia": [PLACEHOLDER] * 3}


def _ports(root: str, others: list[str], joints: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The ports at the root and at the tips."""
    place = {"position": (0.0, 0.0, 0.0), "reference": (1.0, 0.0, 0.0)}
    yield {"label": "base", "body": root, "side": 1, "normal": (0.0, 0.0, -1.0),
           "connector": BASE, "mates": [TIP], **place}  # fmt: skip
    carrying = {joint["parent"] for joint in joints}
    tips = [link for link in others if link not in carrying]
    for side, link in enumerate(tips, start=2):
        label = "base_" if link == "base" else link
        yield {"label": label, "body": link, "side": side, "normal": (0.0, 0.0, 1.0),
               "connector": TIP, "mates": [BASE], **place}  # fmt: skip


def _note_gears(root: Element, repairs: Repairs) -> None:
    """List transmissions with a gear, which a datasheet takes with a rotor inertia alone."""
    geared = []
    for transmission in root.iter("transmission"):
        texts = ((e.text or "").strip() for key in REDUCTIONS for e in transmission.iter(key))
        if any(NUMBER.fullmatch(text) and float(text) != 1 for text in texts):
            geared.append(shown(transmission.get("name", "")))
    if geared:
        repairs.made.append(f"gear ratios of the transmissions {choices(geared)} are not kept")


def _drop_commas(part: Element, repairs: Repairs) -> None:
    """Read ``0.1, 0, 0.2`` as three numbers, as some programs do."""
    for element in part.iter():
        for key in NUMBER_LISTS & element.attrib.keys():
            tails = element.attrib[key].split(",")[1:]
            if tails and all(tail[:1].isspace() for tail in tails):  # no decimal commas
                repairs(
                    f"{part.tag} '{shown(part.get('name', ''))}': {key} of <{shown(element.tag)}> "
                    f"has commas: '{shown(element.attrib[key])}'",
                    "they are taken for spaces",
                )
                element.set(key, element.attrib[key].replace(",", " "))


# -- elements --------------------------------------------------------------------------------------


def _body(link: Element, name: str, repairs: Repairs) -> dict[str, Any]:
    what, inertial = f"link '{name}'", link.find("inertial")
    if inertial is None:
        return {"name": name}
    mass_element, element = inertial.find("mass"), inertial.find("inertia")
    mass, I_c = 0.0, np.zeros((3, 3))
    if mass_element is None:
        repairs(f"{what}: <inertial> needs <mass>", "the link has no mass")
    else:
        mass = read_number(mass_element, "value", what)
    if element is None:
        repairs(f"{what}: <inertial> needs <inertia>", "its mass is a point")
    else:
        rows = (("ixx", "ixy", "ixz"), ("ixy", "iyy", "iyz"), ("ixz", "iyz", "izz"))
        I_c = np.array([[read_number(element, key, what) for key in row] for row in rows])
    mass, I_c = checked_inertia(mass, I_c, what, repairs)
    T = _origin(inertial, what)
    R = T[:3, :3]
    return {
        "name": name,
        "mass": mass,
        "center_of_mass": tuple(T[:3, 3].tolist()),
        "inertia": symmetric(R @ I_c @ R.T),
    }


def _joint(joint: Element, names: Names, links: Names, repairs: Repairs) -> dict[str, Any]:
    text = read_text(joint, "name", "a joint")
    if text in names:
        again = names.free(names(text))
        repairs(f"two joints have the same name '{shown(text)}'; rename one of them",
                f"the second is called '{again}'")  # fmt: skip
        text = again
    name = names(text)
    what = f"joint '{name}'"
    kind = _kind(joint, what, repairs)
    fields = {"name": name, "kind": KINDS[kind], **position_and_rpy(_origin(joint, what))}
    for end in ("parent", "child"):
        element = joint.find(end)
        if element is None:
            raise DatasheetError(f'{what} has no <{end} link="..."/>')
        link = read_text(element, "link", what)
        if link not in links:
            raise DatasheetError(f"{what} names link '{shown(link)}'; links are {choices(links)}")
        fields[end] = links(link)
    if kind == "fixed":
        return fields
    axis = joint.find("axis")
    fields["axis"] = X if axis is None else read_numbers(axis, "xyz", what, 3)
    dynamics = joint.find("dynamics")
    if dynamics is not None:
        fields["viscous"] = _friction(dynamics, "damping", what, repairs)
        fields["coulomb"] = _friction(dynamics, "friction", what, repairs)
    if kind != "continuous":
        fields |= _limits(joint, kind, what, repairs)
    limit = joint.find("limit")
    for field, key in (("max_effort", "effort"), ("max_velocity", "velocity")):
        fields[field] = None if limit is None else _motor_limit(limit, key, what, repairs)
    return fields


def _kind(joint: Element, what: str, repairs: Repairs) -> str:
    """The type of a joint, if it is one of those that modurob has."""
    kind, mimic, axis = read_text(joint, "type", what), joint.find("mimic"), joint.find("axis")
    if kind in FOREIGN_KINDS:
        advice = "; leave it out and use base='free'" if kind == "floating" else ""
        repairs(f"{what} is {kind}; modurob reads {choices(KINDS)} joints{advice}",
                "it is fixed and does not move")  # fmt: skip
        return "fixed"
    if kind not in KINDS:
        raise DatasheetError(f"{what} is {shown(kind)}; modurob reads {choices(KINDS)} joints")
    if kind == "fixed":
        return kind
    if axis is not None and not any(read_numbers(axis, "xyz", what, 3)):
        repairs(f"{what}: its <axis> is the zero vector", "it is fixed and does not move")
        return "fixed"
    if mimic is not None:
        leader = shown(read_text(mimic, "joint", what))
        factor, offset = (read_number(mimic, *pair) for pair in (
            ("multiplier", what, 1.0), ("offset", what, 0.0)))  # fmt: skip
        repairs(
            f"{what} mimics '{leader}'; modurob has independent joints only",
            f"it moves freely, and {what} = {factor:g} '{leader}' + {offset:g} is not enforced",
        )
    return kind


def _limits(joint: Element, kind: str, what: str, repairs: Repairs) -> dict[str, float | None]:
    limit = joint.find("limit")
    if limit is None:
        repairs(f"{what} is {kind} and needs a <limit>; a hinge without one is of the type "
                "continuous", "it has no limits")  # fmt: skip
        return {"lower": None, "upper": None}
    ends = (read_number(limit, key, what, 0.0, finite=False) for key in ("lower", "upper"))
    lower, upper = (None if abs(end) >= UNLIMITED else end for end in ends)
    return limits_of(lower, upper, what, repairs)


def _motor_limit(limit: Element, key: str, what: str, repairs: Repairs) -> float | None:
    """The largest effort or velocity; 0, which many files have for want of a number, is none."""
    value = read_number(limit, key, what, 0.0, finite=False)
    if value < 0:
        repairs(f"{what}: {key} is {value:g} but must not be negative", "it has no limit")
    return value if 0 < value < UNLIMITED else None


def _friction(dynamics: Element, key: str, what: str, repairs: Repairs) -> float:
    value = read_number(dynamics, key, what, 0.0)
    if value < 0:
        repairs(f"{what}: {key} is {value:g} but must not be negative", "it is taken for 0")
    return max(value, 0.0)


def _visuals(
    link: Element, names: Names, colors: dict[str, str | None], repairs: Repairs
) -> Iterator[dict[str, Any]]:
    """Shapes and meshes of a link as fields of a datasheet."""
    body = names(read_text(link, "name", "a link"))
    what = f"link '{body}'"
    for element in link.findall("visual") or link.findall("collision"):
        solids = [solid for geometry in element.findall("geometry") for solid in geometry]
        if not solids:
            repairs(f"{what}: <{element.tag}> has no shape in a <geometry>", "it is left out")
        for solid in solids:
            visual = _visual(solid, what, repairs)
            if visual is None:
                continue
            visual |= {"body": body, **position_and_rpy(_origin(element, what))}
            material = element.find("material")
            if material is not None and "form" in visual:
                color = _color(material) or colors.get(material.get("name", ""))
                visual |= {} if color is None else {"color": color}
            yield visual


def _visual(solid: Element, what: str, repairs: Repairs) -> dict[str, Any] | None:
    """A shape or mesh; None if it cannot be kept."""
    form = solid.tag
    if form not in SHAPES:
        repairs(f"{what}: <{shown(form)}> is no shape of URDF; those are {choices(SHAPES)}",
                "it is left out")  # fmt: skip
        return None
    if form == "mesh":
        size = read_numbers(solid, "scale", what, 3, "1 1 1")
        visual, drawn = {"file": read_text(solid, "filename", what), "scale": size}, all(size)
    else:
        count = 3 if form == "box" else 1
        size = [x for key in SHAPES[form] for x in read_numbers(solid, key, what, count)]
        visual, drawn = {"form": form, "size": size}, min(size) > 0
    if drawn:
        return visual
    given = " ".join(f"{x:g}" for x in size)
    repairs(f"{what}: <{form}> has the size {given}; it must be greater than 0", "it is left out")
    return None


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
