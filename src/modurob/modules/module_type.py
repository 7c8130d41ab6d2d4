"""`ModuleType`: the datasheet of one kind of module."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from numbers import Real
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import ConfigDict, FailFast, Field, model_validator

from modurob.checks import is_number
from modurob.errors import DatasheetError, FileError, UnknownNameError, choices
from modurob.modules.datasheet import (
    PERPENDICULAR,
    VISIBLE,
    Body,
    DatasheetPart,
    Flag,
    Joint,
    Mesh,
    Name,
    Port,
    Positive,
    Shape,
)
from modurob.modules.files import publish, read_document, without_schema
from modurob.spatial import se3
from modurob.spatial.scalars import product

FORMAT = "modurob-module"
VERSION = 1
DRIVE = (
    "viscous", "coulomb", "rotor_inertia", "gear_ratio", "stiffness", "damping", "max_effort",
    "max_velocity",
)  # fmt: skip
STRENGTH = ("max_force", "max_torque")
PARAMETERS = ("mass", "size", "inertia", *DRIVE, "limits", *STRENGTH, "body", "joint")


class JointCrossing(NamedTuple):
    """One joint crossed while walking through a module, away from the body it was entered by.

    ``T_previous_body(q) = before @ exp(screw q) @ after``
    """

    body: int
    previous: int
    joint: int
    before: np.ndarray
    screw: np.ndarray
    after: np.ndarray


ABOUT = (
    "A kind of module: rigid bodies, the joints between them, the ports where other modules dock, "
    "and solids for drawing. SI units, radians; docking turns are whole degrees.\n"
)


def _publish(schema: dict[str, Any]) -> None:
    attributes = schema["description"].partition("Attributes:")[2]
    publish(schema, "modurob module datasheet", ABOUT + attributes)


class ModuleType(DatasheetPart):
    """A kind of module: its bodies, the joints between them, its ports and its shapes.

    Frozen. `with_parameters` returns an edited copy; `from_file` reads a user's own module.

    Attributes:
        name: The kind's name, such as ``backbone``.
        symbol: One letter for the assembly incidence matrix.
        title, source: For people.
        nominal: True when the numbers are placeholders of the right order, not measured.
        size: Width of a module, the unit for distances in plots. [m]
        bodies: The first one is the root: its frame is the module's frame.
        dyad_joint: The hinge that a docking of two such modules bends about (papers' dyad model).
        grid: Whether the module fills one cell of the planar grid.
        virtual: Whether it only gives an organism freedom to move: it can be a base, never docked.
    """

    model_config = ConfigDict(json_schema_extra=_publish)

    format: Literal["modurob-module"] = FORMAT
    version: Literal[1] = VERSION
    name: Name
    symbol: Annotated[str, Field(min_length=1, max_length=1, pattern=VISIBLE)]
    title: str = ""
    source: str = ""
    nominal: Flag = False
    size: Positive
    bodies: Annotated[tuple[Body, ...], Field(min_length=1), FailFast()]
    joints: Annotated[tuple[Joint, ...], FailFast()] = ()
    ports: Annotated[tuple[Port, ...], Field(min_length=1), FailFast()]
    shapes: Annotated[tuple[Shape, ...], FailFast()] = ()
    meshes: Annotated[tuple[Mesh, ...], FailFast()] = ()
    dyad_joint: Name | None = None
    grid: Flag = False
    virtual: Flag = False

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> ModuleType:
        """Read a datasheet (JSON, or TOML when the name ends so) and check every field."""
        return cls.from_document(read_document(path, FORMAT, VERSION), str(path))

    @classmethod
    def from_document(cls, data: dict[str, Any], where: str) -> ModuleType:
        """The datasheet of a file's content; `where` is the file's name for error messages."""
        try:
            return cls(**data)
        except DatasheetError as error:
            raise FileError(f"{where}: {error}") from None

    def document(self) -> dict[str, Any]:
        """The content of its file, without what equals its default."""
        data = self.model_dump(mode="json", exclude_defaults=True)
        return {"format": self.format, "version": self.version, **data}

    @model_validator(mode="before")
    @classmethod
    def _without_schema(cls, data: Any) -> Any:
        return without_schema(data)

    @model_validator(mode="after")
    def _consistent(self) -> ModuleType:
        names = [body.name for body in self.bodies]
        unique: tuple[tuple[str, list[Any]], ...] = (
            ("body", names),
            ("joint", [joint.name for joint in self.joints]),
            ("port", [port.label for port in self.ports]),
            ("side", [port.side for port in self.ports]),
        )
        for what, listed in unique:
            for name in listed:
                if listed.count(name) > 1:
                    raise ValueError(f"{what} {name!r} is there twice")
        for part, body in [
            *((f"joint '{joint.name}'", joint.parent) for joint in self.joints),
            *((f"joint '{joint.name}'", joint.child) for joint in self.joints),
            *((f"port {port.label}", port.body) for port in self.ports),
            *(("a shape", shape.body) for shape in self.shapes),
            *(("a mesh", mesh.body) for mesh in self.meshes),
        ]:
            if body not in names:
                raise ValueError(f"{part} names body '{body}'; bodies are {choices(names)}")
        if len(self.outward(0)) != len(names) - 1 or len(self.joints) != len(names) - 1:
            raise ValueError(
                f"the joints must connect the {len(names)} bodies into one tree "
                f"({len(names) - 1} joints, no loop); got {len(self.joints)} joints"
            )
        hinges = [joint.name for joint in self.joints if joint.kind == "revolute"]
        if self.dyad_joint is not None and self.dyad_joint not in hinges:
            raise ValueError(
                f"dyad_joint '{self.dyad_joint}' is no revolute joint; those are {choices(hinges)}"
            )
        if self.grid:
            self._check_cube()
        return self

    def _check_cube(self) -> None:
        """Docking on the planar grid goes by quarter turns about z, from cell to cell."""
        for label in self.docks:
            T = self.port_pose(label)
            normal, position = T[:3, 2], T[:3, 3]
            distance = float(normal @ position)
            off = [
                abs(abs(normal[0]) + abs(normal[1]) - 1),
                abs(normal[0] * normal[1]),
                abs(T[2, 0] - 1),
                *np.abs(position - distance * normal) / self.size,
            ]
            if distance <= 0 or max(off) > PERPENDICULAR:
                raise ValueError(
                    f"port {label}: a dock of a grid module lies on +x, -x, +y or -y of the "
                    "module's frame, away from the origin, with its normal outward and its "
                    "reference along +z"
                )

    # -- lookup --------------------------------------------------------------------------------

    @cached_property
    def _ports(self) -> dict[int | str, Port]:
        return {port.label: port for port in self.ports}

    @cached_property
    def _joints(self) -> dict[str, Joint]:
        return {joint.name: joint for joint in self.joints}

    @cached_property
    def _body_index(self) -> dict[str, int]:
        return {body.name: index for index, body in enumerate(self.bodies)}

    @cached_property
    def docks(self) -> tuple[int | str, ...]:
        """Labels of the ports, without the mount for virtual joints."""
        return tuple(port.label for port in self.ports if port.connector != "virtual-mount")

    def port(self, label: int | str) -> Port:
        """The port with this label."""
        return self._found(self._ports, label, "port {} on", "docks", self.docks)

    def joint(self, name: str) -> Joint:
        """The joint with this name."""
        return self._found(self._joints, name, "joint {} in", "joints", self._joints)

    def body_index(self, name: str) -> int:
        """Index in `bodies` of the body with this name."""
        return self._found(self._body_index, name, "body {} in", "bodies", self._body_index)

    def _found(self, table: Any, name: Any, what: str, plural: str, known: Iterable[Any]) -> Any:
        try:
            return table[name]
        except (KeyError, TypeError):
            missing = f"no {what.format(repr(name))} a {self.name}"
            raise UnknownNameError(f"{missing}: {plural} are {choices(known)}") from None

    # -- geometry ------------------------------------------------------------------------------

    @cached_property
    def _walks(self) -> dict[int, tuple[JointCrossing, ...]]:
        return {}

    def outward(self, entry: int) -> tuple[JointCrossing, ...]:
        """The steps that reach every other body, each from one reached before, breadth first."""
        if entry not in self._walks:
            self._walks[entry] = tuple(self._walk(entry))
        return self._walks[entry]

    def _walk(self, entry: int) -> list[JointCrossing]:
        index = self._body_index
        steps, reached, front, unit = [], {entry}, [entry], np.eye(4)
        while front:
            body = front.pop(0)
            for number, joint in enumerate(self.joints):
                parent, child = index[joint.parent], index[joint.child]
                if body == parent and child not in reached:
                    step = JointCrossing(child, body, number, joint.pose, joint.screw, unit)
                elif body == child and parent not in reached:
                    # q stays child relative to parent, so the screw is reversed
                    back = se3.inverse(joint.pose) + 0.0
                    step = JointCrossing(parent, body, number, unit, 0.0 - joint.screw, back)
                else:
                    continue
                steps.append(step)
                reached.add(step.body)
                front.append(step.body)
        return steps

    @cached_property
    def rest_poses(self) -> tuple[np.ndarray, ...]:
        """(4, 4) pose of each body in the module's frame with all joints at zero."""
        poses: dict[int, np.ndarray] = {0: np.eye(4)}
        for step in self.outward(0):
            poses[step.body] = product(product(poses[step.previous], step.before), step.after)
        return tuple(poses[index] for index in range(len(self.bodies)))

    def port_pose(self, label: int | str) -> np.ndarray:
        """(4, 4) port frame in the module's frame with all joints at zero."""
        port = self.port(label)
        return product(self.rest_poses[self.body_index(port.body)], port.pose)

    @cached_property
    def dyad_screw(self) -> np.ndarray | None:
        """(6,) screw of the dyad hinge in the module's frame, or None without one."""
        if self.dyad_joint is None:
            return None
        joint = self.joint(self.dyad_joint)
        T_module_joint = self.rest_poses[self.body_index(joint.child)]
        return se3.transform_twist(T_module_joint, joint.screw) + 0.0

    @property
    def mass(self) -> float:
        """Mass of the whole module. [kg]"""
        return math.fsum(body.mass for body in self.bodies)

    # -- value semantics -----------------------------------------------------------------------

    @cached_property
    def digest(self) -> str:
        """A fingerprint of every field: equal datasheets have equal digests."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ModuleType) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        joints = choices(f"{joint.name} ({joint.kind})" for joint in self.joints)
        docks = choices(self.docks)
        return f"<ModuleType {self.name}: {self.mass:g} kg, joints {joints}, docks {docks}>"

    __str__ = __repr__  # pydantic's lists every field

    # -- editing -------------------------------------------------------------------------------

    def with_parameters(
        self,
        *,
        mass: float | None = None,
        size: float | None = None,
        inertia: float | Sequence[Any] | np.ndarray | None = None,
        limits: Sequence[float | None] | np.ndarray | None = None,
        body: str | None = None,
        joint: str | None = None,
        max_force: float | None = None,
        max_torque: float | None = None,
        **drive: float | None,
    ) -> ModuleType:
        """A copy with other numbers.

        Args:
            mass: New mass, of `body` or of the whole module (masses and inertias of all bodies
                keep their proportions). [kg]
            size: New width; all lengths scale with it, inertias with its square. [m]
            inertia: New inertia about the center of mass, of `body` or of the only body that has
                mass: a number (same about all axes), three, or a 3x3 matrix. [kg m^2]
            limits: New limits, of `joint` or of all joints.
            max_force, max_torque: New limits of all connectors (see `Port`). [N, N m]
            body, joint: The part to edit; by default the whole module.
            drive: New viscous, coulomb, rotor_inertia, gear_ratio, stiffness, damping, max_effort
                or max_velocity (see `Joint`), of `joint` or of all joints.
        """
        unknown = [name for name in drive if name not in DRIVE]
        if unknown:
            raise DatasheetError(
                f"no parameter {choices(unknown)}: parameters are {choices(PARAMETERS)}"
            )
        joint_edits: dict[str, Any] = {k: x for k, x in drive.items() if x is not None}
        if limits is not None:
            limits = _as_list(limits)
            if not (isinstance(limits, tuple | list) and len(limits) == 2):
                raise DatasheetError(f"limits are (lower, upper), got {limits!r}")
            joint_edits["lower"], joint_edits["upper"] = limits
        if body is not None:
            self.body_index(body)
            if mass is None and inertia is None:
                raise DatasheetError(f"nothing to edit in body '{body}': give its mass or inertia")
        if joint is not None:
            self.joint(joint)
            if not joint_edits:
                raise DatasheetError(
                    f"nothing to edit in joint '{joint}': give its limits, {choices(DRIVE)}"
                )
        data = self.model_dump()
        if size is not None:
            if not (is_number(size) and size > 0):
                raise DatasheetError(f"size must be a positive number, got {size!r}")
            _scale_lengths(data, float(size) / self.size)
        if mass is not None:
            _set_mass(data, self, mass, body)
        if inertia is not None:
            massive = [k for k, entry in enumerate(self.bodies) if entry.mass > 0]
            if body is None and len(massive) != 1:
                names = choices(self.bodies[k].name for k in massive)
                raise DatasheetError(
                    f"give the body whose inertia changes: in a {self.name}, mass is in {names}"
                )
            index = massive[0] if body is None else self.body_index(body)
            inertia = _as_list(inertia)
            moments = [inertia] * 3 if isinstance(inertia, Real) else inertia
            data["bodies"][index]["inertia"] = moments
        for entry in data["joints"]:
            if joint is None or entry["name"] == joint:
                entry.update(joint_edits)
        for name, value in zip(STRENGTH, (max_force, max_torque), strict=True):
            for entry in data["ports"] if value is not None else ():
                entry[name] = value
        return ModuleType(**data)


def _as_list(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _scale_lengths(data: dict[str, Any], factor: float) -> None:
    def scaled(values: Sequence[float]) -> tuple[float, ...]:
        return tuple(factor * value for value in values)

    data["size"] *= factor
    for body in data["bodies"]:
        body["center_of_mass"] = scaled(body["center_of_mass"])
        body["inertia"] = tuple(
            tuple(factor * factor * entry for entry in row) for row in body["inertia"]
        )
    for part in (*data["joints"], *data["ports"], *data["shapes"], *data["meshes"]):
        part["position"] = scaled(part["position"])
    for joint in data["joints"]:
        if joint["kind"] == "prismatic":
            for end in ("lower", "upper"):
                joint[end] = None if joint[end] is None else factor * joint[end]
    for shape in data["shapes"]:
        shape["size"] = scaled(shape["size"])
    for mesh in data["meshes"]:
        mesh["scale"] = scaled(mesh["scale"])


def _set_mass(data: dict[str, Any], kind: ModuleType, mass: float, body: str | None) -> None:
    if not (is_number(mass) and mass >= 0):
        raise DatasheetError(f"mass must be a finite number of at least 0 kg, got {mass!r}")
    mass = float(mass)
    if body is None:
        chosen, before = data["bodies"], kind.mass
    else:
        chosen = [data["bodies"][kind.body_index(body)]]
        before = chosen[0]["mass"]
    if before == 0 and len(chosen) > 1 and mass > 0:
        raise DatasheetError(f"a {kind.name} has no mass to scale: give the body to change")
    for entry in chosen:
        ratio = mass / before if before else 0.0
        entry["mass"] = entry["mass"] * ratio if before else mass
        entry["inertia"] = tuple(tuple(ratio * value for value in row) for row in entry["inertia"])
