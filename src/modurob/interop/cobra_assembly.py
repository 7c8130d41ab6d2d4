"""Assemblies of CoBRA: which modules of a set are connected, and where they stand."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np

from modurob.errors import FileError, ModurobError, StateError, choices
from modurob.interop.cobra import named_kinds, read_cobra_modules
from modurob.interop.cobra_records import AssemblyRecord, read_record, write_json
from modurob.interop.cobra_writer import HALF_TURN, Connector, base_connector, connectors
from modurob.interop.conventions import checked_rotation, checked_title, to_name
from modurob.modules import Body, ModuleType
from modurob.modules.files import checked_path
from modurob.organism import Docking, Organism
from modurob.organism.organism import Member, assemble
from modurob.spatial import se3


def write_cobra_assembly(
    organism: Organism,
    path: str | os.PathLike[str],
    modules: Mapping[str, ModuleType] | None = None,
    *,
    module_set: str = "modurob",
) -> None:
    """Write how an organism is docked, for the module set that `write_cobra_modules` makes of it.

    Modules are listed in the order of the organism's rows; CoBRA has no names for them. The base
    connector stands at the base module's frame, so that ``basePose`` is the organism's base pose.

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
    path: str | os.PathLike[str],
    modules: str | os.PathLike[str] | Mapping[str, ModuleType],
) -> Organism:
    """Read a CoBRA assembly as an organism; its modules are ``m0``, ``m1``, ... in CoBRA's order.

    The module with the base connection is the base. CoBRA holds the body that has the connector; if
    that is not the kind's first body, the base's kind is the same with this body put first.

    Args:
        path: A JSON file with ``moduleOrder``, ``moduleConnection``, and ``baseConnection`` and
            ``basePose`` if it does not stand at the origin on module 0.
        modules: The module set: its file, or what `read_cobra_modules` gave.
    """
    path = checked_path(path)
    kinds = modules if isinstance(modules, Mapping) else read_cobra_modules(modules)
    record, _ = read_record(AssemblyRecord, path)
    try:
        return _organism(record, kinds)
    except ModurobError as error:
        raise FileError(f"{path}: {error}") from None


# -- inside ----------------------------------------------------------------------------------------


def _connection(organism: Organism, entry: Docking, row: Mapping[str, int]) -> list[int | str]:
    """The connectors that meet: the parent's is turned, the child's straight."""
    here = organism.kind(entry.parent).port(entry.port)
    there = organism.kind(entry.child).port(entry.child_port)
    ways = [c.id for c in connectors(here) if (c.mate, c.turn) == (there.connector, entry.turn)]
    back = [c.id for c in connectors(there) if (c.mate, c.turn) == (here.connector, 0)]
    return [row[entry.parent], ways[0], row[entry.child], back[0]]


def _organism(record: AssemblyRecord, kinds: Mapping[str, ModuleType]) -> Organism:
    members = []
    for id in record.module_order:
        if id not in kinds:
            raise FileError(f"no module '{id}' in the module set: that has {choices(kinds)}")
        members.append(kinds[id])
    base, T_base = 0, np.eye(4)
    if record.base_connection:
        if len(record.base_connection) > 1:
            raise FileError("there are several baseConnections; modurob reads one")
        base, id = record.base_connection[0][:2]
        members[_index(base, members)], T_base = _standing(members[_index(base, members)], id)
    pose = record.base_pose[0] if record.base_pose else np.eye(4)
    pose = se3.pose(checked_rotation(pose[:3, :3], "basePose"), pose[:3, 3])
    dockings = _dockings(record, members, base)
    names = {f"m{k}": Member(kind, k, None) for k, kind in enumerate(members)}
    organism = assemble(f"m{base}", pose @ T_base, names, dockings)
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
        others = [body for body in kind.bodies if body is not first]
        kind = kind if kind.bodies[0] is first else _with_bodies(kind, [first, *others])
        T = port.pose
    return kind, HALF_TURN @ se3.inverse(T) + 0.0


def _with_bodies(kind: ModuleType, bodies: Sequence[Body]) -> ModuleType:
    return ModuleType(**{**kind.model_dump(), "bodies": [body.model_dump() for body in bodies]})


def _dockings(record: AssemblyRecord, members: list[ModuleType], base: int) -> list[Docking]:
    """The connections, each seen from the side of the base."""
    beside: dict[int, list[int]] = {}
    for number, (i, _, j, _) in enumerate(record.module_connection):
        for index in (i, j):
            beside.setdefault(_index(index, members), []).append(number)
    dockings, used, held, front = [], set(), {base}, [base]
    for here in front:
        for number in beside.get(here, []):
            if number in used:
                continue
            used.add(number)
            i, id_i, j, id_j = record.module_connection[number]
            if i != here:
                i, id_i, j, id_j = j, id_j, i, id_i
            if j in held:
                raise FileError(f"moduleConnection[{number}] closes a loop at module {j}")
            held.add(j)
            front.append(j)
            a, b = _connector(members[i], id_i), _connector(members[j], id_j)
            turn = (a.turn + b.turn) % 360  # Rz(a) Rx(pi) Rz(-b) = Rz(a + b) Rx(pi)
            dockings.append(Docking(f"m{i}", a.label, f"m{j}", b.label, turn, number + 1))
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
