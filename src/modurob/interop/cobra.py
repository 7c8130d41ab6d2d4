"""Module sets and assemblies of CoBRA, the benchmark for modular robots, as Timor has them."""

from __future__ import annotations

import datetime
import json
import math
import os
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from modurob.checks import is_number
from modurob.errors import (
    DatasheetError,
    FileError,
    ModurobError,
    StateError,
    choices,
)
from modurob.interop.cobra_reader import plain_kind
from modurob.interop.cobra_records import (
    MOST_PARTS,
    AssemblyRecord,
    CobraModule,
    ModuleSetRecord,
    read_record,
    write_json,
)
from modurob.interop.cobra_writer import (
    HALF_TURN,
    Connector,
    base_connector,
    connectors,
    module_data,
)
from modurob.interop.conventions import Names, Repairs, checked_rotation, checked_title, to_name
from modurob.modules import ModuleType
from modurob.modules.files import checked_path
from modurob.organism import Docking, Organism
from modurob.organism.docking import edges_outward
from modurob.organism.organism import Member, assemble, checked_pose
from modurob.spatial import se3

Kinds = ModuleType | Organism | Mapping[str, ModuleType] | Iterable[ModuleType]
OURS = '{"format":"modurob-module"'  # how the datasheet among the affiliations starts
UNEDITED = {"rel_tol": 1e-12, "abs_tol": 1e-15}  # others may write the last digit differently
SECTIONS = ("bodies", "joints", "ports", "shapes")


def write_cobra_modules(
    kinds: Kinds, path: str | os.PathLike[str], *, date: datetime.date | None = None
) -> None:
    """Write a CoBRA module set.

    CoBRA has no field for a module's symbol, size, source, dyad hinge and grid, for the turns and
    sides of ports, for colors, nor for joint angles to the last digit. So each header carries the
    whole datasheet as a text among its affiliations, and `read_cobra_modules` gives back equal
    kinds. See `modurob.interop.cobra_writer` for how ports become connectors.

    Args:
        kinds: Datasheets; those of an organism; or a mapping from CoBRA's IDs to datasheets. The ID
            is the kind's name by default, with a number if several have the same.
        path: The file, ``modules.json`` by CoBRA's custom; an old one stays intact if it fails.
        date: For the headers; today by default.
    """
    path = checked_path(path)
    date = datetime.date.today() if date is None else date
    if not isinstance(date, datetime.date):
        raise StateError(f"date must be a datetime.date, got {reprlib.repr(date)}")
    modules = [module_data(kind, id, date) for id, kind in named_kinds(kinds).items()]
    write_json(path, {"modules": modules})


def read_cobra_modules(path: str | os.PathLike[str], strict: bool = True) -> dict[str, ModuleType]:
    """Read a CoBRA module set: its kinds by their IDs.

    Connectors become ports with the same frame (z outward, mating by a half turn about x) and mate
    by type, size and gender: ``schunk`` of size 1 and gender ``m`` is ``schunk-size1-m``. A joint's
    axis, z of its own frame in CoBRA, is written in the child's frame; a body that the axis passes
    by gets the joint's frame instead of its own. The first body's frame is the module's. IDs that
    are no names of ours get a ``_`` in front or for each character that is not allowed.

    Meshes are kept as references. Left out are limits of velocity, acceleration and torque, and
    whether a joint is passive. Infinite limits are none.

    By default a flaw is an error that names the module and its part. With ``strict=False``
    inertias, limits, shapes without size and missing masses are repaired as in `read_urdf`, each
    with a `ModelWarning` that names the repair.

    Args:
        path: A JSON file with one module, a list, or a list under ``modules``.
        strict: Whether a flaw is an error.
    """
    repairs = Repairs(strict)
    path = checked_path(path)
    record, data = read_record(ModuleSetRecord, path, repairs)
    entries = data.get("modules", data) if isinstance(data, dict) else data
    entries = entries if isinstance(entries, list) else [entries]
    kinds: dict[str, ModuleType] = {}
    types = Names("connectors", Repairs(strict=True))  # other modules name what they mate with
    for module, entry in zip(record.modules, entries, strict=True):
        id = module.header.id
        if id in kinds:
            raise FileError(f"{path}: module '{id}' is there twice")
        try:
            before = len(repairs.made)
            kinds[id] = _kind(module, entry, types, repairs)
            repairs.made[before:] = [f"module '{id}': {line}" for line in repairs.made[before:]]
        except DatasheetError as error:
            raise FileError(f"{path}: module '{id}': {error}") from None
    repairs.warn(path)
    return kinds


def write_cobra_assembly(
    organism: Organism,
    path: str | os.PathLike[str],
    modules: Mapping[str, ModuleType] | None = None,
    *,
    module_set: str = "modurob",
) -> None:
    """Write how an organism is docked, for the module set that `write_cobra_modules` makes of it.

    Modules are listed in the order of the organism's rows; CoBRA has no names for them. The base
    connector is at the base module's frame, so that ``basePose`` is the organism's base pose.

    Args:
        path: The file; an old one stays intact if writing fails.
        modules: Kinds by their IDs in the module set; by default those that
            ``write_cobra_modules(organism, ...)`` gives them.
        module_set: What CoBRA calls the set: the name of the folder it lies in.
    """
    path = checked_path(path)
    if not isinstance(organism, Organism):
        raise StateError(f"an Organism has an assembly, got {type(organism).__name__}")
    ids = {kind: id for id, kind in named_kinds(organism if modules is None else modules).items()}
    row = {name: index for index, name in enumerate(organism.modules)}
    for name in row:
        if organism.kind(name) not in ids:
            raise StateError(
                f"'{name}' is a {organism.kind(name).name}, which is not in the module set: "
                f"that has {choices(ids.values())}"
            )
    base = organism.kind(organism.base)
    connector, T_base = base_connector(base)
    T_world = organism.base_pose @ T_base @ HALF_TURN  # the ground's side of that connector
    write_json(
        path,
        {
            "moduleSet": checked_title(module_set),
            "moduleOrder": [ids[organism.kind(name)] for name in row],
            "moduleConnection": [
                _connection(organism, entry, row)
                for entry in sorted(organism.dockings, key=lambda entry: entry.column)
            ],
            "baseConnection": [[row[organism.base], connector, 0]],
            "basePose": [(T_world + 0.0).tolist()],
        },
    )


def read_cobra_assembly(
    path: str | os.PathLike[str], modules: str | os.PathLike[str] | Mapping[str, ModuleType]
) -> Organism:
    """Read a CoBRA assembly as an organism; its modules are ``m0``, ``m1``, ... in CoBRA's order.

    The module with the base connection is the base. CoBRA holds the body that has the connector; if
    that is not the kind's first body, the base's kind is the same with this body put first.

    Args:
        path: A JSON file with ``moduleOrder``, ``moduleConnection``, and ``baseConnection`` and
            ``basePose`` if the base is not module 0 at the origin.
        modules: The module set: its file, or what `read_cobra_modules` gave.
    """
    path = checked_path(path)
    kinds = modules if isinstance(modules, Mapping) else read_cobra_modules(modules)
    record, _ = read_record(AssemblyRecord, path)
    try:
        return _organism(record, kinds)
    except ModurobError as error:
        raise FileError(f"{path}: {error}") from None


# -- module sets -----------------------------------------------------------------------------------


def named_kinds(kinds: Kinds) -> dict[str, ModuleType]:
    """Kinds by their IDs."""
    if isinstance(kinds, Organism):
        kinds = [kinds.kind(name) for name in kinds.modules]
    if isinstance(kinds, ModuleType) or not isinstance(kinds, Iterable):
        kinds = [kinds]
    given = kinds.items() if isinstance(kinds, Mapping) else [(None, kind) for kind in kinds]
    named: dict[str, ModuleType] = {}
    for id, kind in given:
        if not isinstance(kind, ModuleType) or not isinstance(id, str | None):
            shown = reprlib.repr(kind)
            raise StateError(f"a module set is made of ModuleTypes, got {shown}; see mr.catalog")
        if id is None and kind in named.values():
            continue
        number, free = 1, id or kind.name
        while id is None and free in named:
            number += 1
            free = f"{kind.name}-{number}"
        named[free] = kind
    if not named:
        raise StateError("a module set needs at least one kind of module, got none")
    return named


def _kind(module: CobraModule, entry: Any, types: Names, repairs: Repairs) -> ModuleType:
    """The datasheet that comes with a module, as far as its fields still agree with it."""
    ours = _enclosed(module)
    if ours is None:
        return plain_kind(module, types, repairs)
    written = _sections(module_data(ours, module.header.id, datetime.date.min))
    found = _sections(entry)
    edited = [key for key in SECTIONS if not _same(written[key], found[key])]
    if not edited:
        return ours
    plain = plain_kind(module, types, repairs)
    # another joint may move a body's frame, and with it all that is given there
    taken = list(SECTIONS) if "joints" in edited else edited
    taken += ["meshes"] if "shapes" in taken else []
    try:
        changes = {key: plain.model_dump()[key] for key in taken}
        return ModuleType(**(ours.model_dump() | changes))
    except DatasheetError:
        return plain


def _enclosed(module: CobraModule) -> ModuleType | None:
    listed = module.header.affiliation
    for text in listed if isinstance(listed, list) else ():
        if isinstance(text, str) and text.startswith(OURS):
            try:
                data = json.loads(text)
                if all(len(data.get(key, ())) <= MOST_PARTS for key in (*SECTIONS, "meshes")):
                    return ModuleType(**data)
            except (DatasheetError, ValueError, TypeError, AttributeError, RecursionError):
                return None
    return None


def _sections(module: dict[str, Any]) -> dict[str, Any]:
    """Bodies, joints, ports and shapes of a module's fields, by their IDs."""
    bodies, joints = module["bodies"], module.get("joints", [])
    bodies = {str(b.get("ID")): b for b in (bodies if isinstance(bodies, list) else [bodies])}
    joints = joints if isinstance(joints, list) else [joints]

    def each(*keys: str) -> dict[str, Any]:
        return {id: [body.get(key) or [] for key in keys] for id, body in bodies.items()}

    held = {id: body.get("connectors") or [] for id, body in bodies.items()}
    return {
        "bodies": each("mass", "inertia", "r_com"),
        "joints": {str(joint.get("ID")): joint for joint in joints},
        "ports": {
            id: {str(c.get("ID")): c for c in (cs if isinstance(cs, list) else [cs])}
            for id, cs in held.items()
        },
        "shapes": each("visual"),
    }


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, int | float) and isinstance(b, int | float) and is_number(a) and is_number(b):
        return math.isclose(a, b, **UNEDITED)
    return a == b


# -- assemblies ------------------------------------------------------------------------------------


def _connection(organism: Organism, entry: Docking, row: Mapping[str, int]) -> list[int | str]:
    """The connectors that meet: the parent's is turned, the child's straight."""
    here = organism.kind(entry.parent).port(entry.port)
    there = organism.kind(entry.child).port(entry.child_port)
    ways = [c.id for c in connectors(here) if (c.mate, c.turn) == (there.connector, entry.turn)]
    back = [c.id for c in connectors(there) if (c.mate, c.turn) == (here.connector, 0)]
    return [row[entry.parent], ways[0], row[entry.child], back[0]]


def _organism(record: AssemblyRecord, kinds: Mapping[str, ModuleType]) -> Organism:
    unknown = [id for id in record.module_order if id not in kinds]
    if unknown:
        raise FileError(f"no module '{unknown[0]}' in the module set: that has {choices(kinds)}")
    members = [kinds[id] for id in record.module_order]
    base, T_base = 0, np.eye(4)
    if record.base_connection:
        if len(record.base_connection) > 1:
            raise FileError("there are several baseConnections; modurob reads one")
        base, id = record.base_connection[0]
        members[_index(base, members)], T_base = _standing(members[_index(base, members)], id)
    pose = record.base_pose[0] if record.base_pose else np.eye(4)
    pose = se3.pose(checked_rotation(pose[:3, :3], "basePose"), pose[:3, 3])
    dockings = _dockings(record, members, base)
    names = {f"m{k}": Member(kind, k, None) for k, kind in enumerate(members)}
    organism = assemble(f"m{base}", checked_pose(pose @ T_base), names, dockings)
    if len(organism) < len(members):
        loose = [name for name in names if name not in organism]
        raise FileError(f"not connected to the base m{base}: {choices(loose)}")
    return organism


def _standing(kind: ModuleType, id: str) -> tuple[ModuleType, np.ndarray]:
    """The kind with the body first that the base connector belongs to, and T_ground_module."""
    own, T = base_connector(kind)
    if id != own:
        port = kind.port(_connector(kind, id).label)
        first = kind.bodies[kind.body_index(port.body)]
        if kind.bodies[0] is not first:
            bodies = [first, *(body for body in kind.bodies if body is not first)]
            dumped = [body.model_dump() for body in bodies]
            kind = ModuleType(**{**kind.model_dump(), "bodies": dumped})
        T = port.pose
    return kind, HALF_TURN @ se3.inverse(T) + 0.0


def _dockings(record: AssemblyRecord, members: list[ModuleType], base: int) -> list[Docking]:
    """The connections, each seen from the side of the base."""
    ends = [(_index(i, members), _index(j, members)) for i, _, j, _ in record.module_connection]
    dockings, held = [], {base}
    for number, here, there in edges_outward(ends, base):
        if there in held:
            raise FileError(f"moduleConnection[{number}] closes a loop at module {there}")
        held.add(there)
        i, id_i, _, id_j = record.module_connection[number]
        id_i, id_j = (id_i, id_j) if i == here else (id_j, id_i)
        a, b = _connector(members[here], id_i), _connector(members[there], id_j)
        turn = (a.turn + b.turn) % 360  # Rz(a) Rx(pi) Rz(-b) = Rz(a + b) Rx(pi)
        dockings.append(Docking(f"m{here}", a.label, f"m{there}", b.label, turn, number + 1))
    return dockings


def _connector(kind: ModuleType, id: str) -> Connector:
    known = {c.id: c for port in kind.ports for c in connectors(port)}
    found = known.get(id) or {to_name(key): c for key, c in known.items()}.get(to_name(id))
    if found is None:
        raise FileError(f"no connector '{id}' on a {kind.name}: connectors are {choices(known)}")
    return found


def _index(index: int, members: list[ModuleType]) -> int:
    if not 0 <= index < len(members):
        raise FileError(f"module {index} is not there: modules are 0 to {len(members) - 1}")
    return index
