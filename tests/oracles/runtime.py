"""The C runtime as a shared library of the machine at hand, called through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from ctypes import byref, c_int, c_int8, c_size_t, c_uint8, c_uint16, c_uint32
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from modurob import Organism, catalog
from modurob.compiler.dyads import Table
from modurob.compiler.emit_c import write_sources
from modurob.firmware import runtime_files, runtime_sizes
from modurob.modules import ModuleType
from modurob.modules.record import encode
from oracles.organisms import WRIST

COMPILER = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
WARNINGS = (
    "-std=c99",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Werror",
)
KINDS = [*(catalog[name] for name in catalog.names()), WRIST]
MODULES, JOINTS = 24, 60
STATUS = {
    0: "ok", -1: "not a record", -2: "too short", -3: "header sum", -4: "sum", -5: "newer",
    -6: "length", -7: "field", -8: "index", -9: "number", -10: "datasheet", -11: "too many",
    -12: "module", -13: "port", -14: "taken", -15: "docking", -16: "loop", -17: "singular",
    -18: "argument", -19: "not ready", -20: "beyond limits",
}  # fmt: skip
ROTOR, LOCKED = 2, 16  # flags of a part
ID, WORK_BYTES = c_uint8 * 16, 1 << 20


def structures(real: Any, n: SimpleNamespace) -> SimpleNamespace:
    """The structs of the headers, for one type of numbers and some sizes."""

    def struct(name: str, *fields: tuple[str, Any]) -> Any:
        return type(name, (ctypes.Structure,), {"_fields_": fields})

    def bytes_(*names: str) -> list[tuple[str, Any]]:
        return [(name, c_uint8) for name in names]

    def reals(*names: str, count: int = 0) -> list[tuple[str, Any]]:
        return [(name, real * count if count else real) for name in names]

    joints, state = n.JOINTS, 2 * n.JOINTS
    Pose = struct("Pose", *reals("R", count=9), *reals("p", count=3))
    Solid = struct("Solid", *reals("mass"), *reals("center", count=3), *reals("inertia", count=9))
    numbers = ("lower", "upper", "viscous", "coulomb", "armature", "stiffness", "damping")
    Joint = struct(
        "Joint", ("pose", Pose), *reals("axis", count=3), *reals(*numbers),
        *bytes_("type", "parent", "child", "has_lower", "has_upper", "is_elastic"),
    )  # fmt: skip
    Port = struct(
        "Port", ("pose", Pose), ("number", ctypes.c_int32), ("connector", c_uint32),
        ("mates", c_uint32 * n.MATES), ("turns", c_uint16 * n.TURNS),
        ("turn_count", c_uint16), *bytes_("is_named", "body", "mate_count"),
    )  # fmt: skip
    Kind = struct(
        "Kind", ("bodies", Solid * n.KIND_BODIES), ("rest", Pose * n.KIND_BODIES),
        ("whole", Solid), ("joints", Joint * n.KIND_JOINTS), ("ports", Port * n.KIND_PORTS),
        *reals("size"), *bytes_("body_count", "joint_count", "port_count"),
        ("dyad_joint", c_int8), *bytes_("is_virtual"),
    )  # fmt: skip
    Pair = struct(
        "Pair", *bytes_("input", "output"), ("joint", c_int8), *reals("proximal", count=5),
        *reals("distal", count=5), *reals("delta_j"), *reals("proximal_mass", count=10),
        *reals("distal_mass", count=10),
    )  # fmt: skip
    Docking = struct(
        "Docking", *bytes_("module", "port", "other", "other_port"), ("turn", c_uint16)
    )
    Robot = struct(
        "Robot", ("kinds", Kind * (n.KINDS + 1)), ("ids", ID * n.MODULES),
        ("kind_of", c_uint8 * n.MODULES), ("dockings", Docking * n.MODULES),
        *bytes_("kind_count", "module_count", "docking_count"),
    )  # fmt: skip
    Part = struct(
        "Part", ("pose", Pose),
        *bytes_("link", "module", "body", "joint", "docking", "previous", "flags"),
    )  # fmt: skip
    Table = struct(
        "Table", ("rows", real * 28 * (joints + 1)), ("parent", c_uint8 * joints),
        ("pattern", c_uint8 * joints), ("variant", c_uint8 * joints), ("moved", c_uint8 * joints),
        ("turn", ctypes.c_double * 9 * (joints + 1)), ("parts", Part * (n.PARTS + 1)),
        ("dockings", Docking * n.MODULES),
        *bytes_("joint_count", "part_count", "docking_count", "has_friction"),
    )  # fmt: skip
    Options = struct(
        "Options", ("base_pose", Pose), *reals("gravity", count=3),
        *bytes_("base", "physical", "stiff", "placed"),
    )  # fmt: skip
    Reference = struct("Reference", *reals("q", "v", "a", count=joints))
    Linearization = struct(
        "Linearization", *reals("pose_ahead"), *reals("drag_ahead", "dry_ahead", count=joints)
    )
    ComputedTorque = struct(
        "ComputedTorque", *reals("k0", "k1", count=joints), ("inverse", Linearization)
    )
    PdGravity = struct("PdGravity", *reals("kp", "kd", count=joints))
    Pid = struct(
        "Pid", *reals("kp", "ki", "kd", "share", "integral_limit", count=joints),
        *reals("filter_time"), *reals("integral", "rate", "before", count=joints),
        ("last", Reference), *bytes_("has_run"),
    )  # fmt: skip
    Ekf = struct(
        "Ekf", *reals("q", "v", count=joints), *reals("P", count=state * state),
        *reals("Q", count=state), *reals("R", count=joints), *reals("dt"), ("substeps", c_int),
    )  # fmt: skip
    DhRow = struct(
        "DhRow", *reals("a", "alpha", "d", "theta", "n", "p", "turn"), *bytes_("module"),
        *reals("mass"), *reals("center", count=3), *reals("inertia", count=9),
    )  # fmt: skip
    return SimpleNamespace(**{k: v for k, v in locals().items() if k[0].isupper()})


class Runtime:
    """The compiled library."""

    def __init__(self, path: Path, sizes: dict[str, int], single: bool) -> None:
        self.folder, self.sizes = path.parent, sizes
        self.real = ctypes.c_float if single else ctypes.c_double
        self.lib, self.types = (
            ctypes.CDLL(str(path)),
            structures(self.real, SimpleNamespace(**sizes)),
        )
        self.work = (ctypes.c_double * (WORK_BYTES // 8))()

    def read(self, record: bytes) -> tuple[str, Any]:
        """Status and datasheet of a record, whose copy ends where its memory does."""
        kind, data = self.types.Kind(), _exactly(record)
        status = self.lib.mr_record_read(data, c_size_t(len(record)), ID(), byref(kind))
        return STATUS[status], kind

    def pair(self, kind: ModuleType, input: int, output: int) -> Any:
        record, pair = encode(kind, 1), self.types.Pair()
        status = self.lib.mr_record_pair(record, c_size_t(len(record)), input, output, byref(pair))
        assert status == 0
        return pair

    def robot(self, organism: Organism, dockings: Sequence[Any] | None = None) -> Any:
        """The robot of an organism's records and dockings, added in this order."""
        robot, modules = self.types.Robot(), list(organism.modules)
        for name in modules:
            assert self.add(robot, record_of(organism.kind(name))) == "ok"
        for parent, port, child, child_port, turn, _ in dockings or organism.dockings:
            places = [
                (modules.index(name), port_index(organism.kind(name), label))
                for name, label in ((parent, port), (child, child_port))
            ]
            assert self.dock(robot, *places[0], *places[1], turn) == "ok"
        return robot

    def add(self, robot: Any, record: bytes) -> str:
        size = c_size_t(len(record))
        return STATUS[self.lib.mr_robot_add(byref(robot), record, size, byref(c_int()))]

    def dock(self, robot: Any, *numbers: int) -> str:
        return STATUS[self.lib.mr_robot_dock(byref(robot), *numbers)]

    def table(self, robot: Any, base_pose: np.ndarray | None = None, **options: int) -> Any:
        """The table, or the name of a status."""
        given = self.types.Options.in_dll(self.lib, "mr_default_options")
        given, table = self.types.Options.from_buffer_copy(given), self.types.Table()
        if base_pose is not None:
            given.base_pose.R[:] = base_pose[:3, :3].ravel().tolist()
            given.base_pose.p[:] = base_pose[:3, 3].tolist()
        for name, value in options.items():
            setattr(given, name, value)
        status = self.lib.mr_table_build(byref(robot), byref(given), byref(table))
        return STATUS[status] if status else table

    def table_of(self, organism: Organism, hinges: str, **options: int) -> Any:
        """The table of an organism's model."""
        physical = int(hinges == "physical")
        pose = organism.base_pose
        return self.table(self.robot(organism), base_pose=pose, physical=physical, **options)

    def array(self, numbers: Any) -> Any:
        return (self.real * len(numbers))(*map(float, numbers))

    def evaluate(self, name: str, table: Any, count: int, *inputs: Any) -> np.ndarray:
        """A quantity of `dynamics.h`."""
        y = (self.real * count)()
        given = [None if x is None else self.array(x) for x in inputs]
        getattr(self.lib, f"mr_{name}")(byref(table), self.work, *given, y)
        return np.array(y[:])


def numbers_of(table: Any) -> dict[str, np.ndarray]:
    """A table of the runtime as those of the dyad tier, of joints and of bodies."""
    n = table.joint_count
    parts = [part for part in table.parts[1 : table.part_count] if not part.flags & ROTOR]
    body_rows = [part.pose.R[:] + part.pose.p[:] for part in parts]
    whole = (table.pattern[:n], table.variant[:n], table.parent[:n])
    pattern, variant, parent = (np.array(each, dtype=np.intp) for each in whole)
    rows = np.array([row[:] for row in table.rows[: n + 1]])
    links = np.array([part.link for part in parts], dtype=np.int64)
    joints = Table(rows, pattern, variant, parent)._asdict()
    return joints | {"body_rows": np.array(body_rows), "body_links": links}


def port_index(kind: ModuleType, label: int | str) -> int:
    return [port.label for port in kind.ports].index(label)


def build(
    folder: Path, single: bool = False, flags: Sequence[str] = ("-O1",), more: Sequence[Path] = ()
) -> Runtime:
    """The exported sources and more files, compiled without a warning."""
    write_sources(folder, runtime_files(KINDS, MODULES, JOINTS, single))
    path = folder / "runtime.so"
    command = [str(COMPILER), *WARNINGS, *flags, "-DMR_HAVE_SIZES", f"-I{folder / 'include'}",
               "-shared", "-fPIC", "-o", str(path),
               *map(str, (*sorted(folder.glob("src/*.c")), *more)), "-lm"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return load(folder, single)


def load(folder: Path, single: bool = False, flags: Sequence[str] = ()) -> Runtime:
    """A library that was built before; the flags were used then."""
    return Runtime(folder / "runtime.so", runtime_sizes(KINDS, MODULES, JOINTS), single)


record_of = lru_cache(maxsize=64)(partial(encode, uid=1))


def _exactly(data: bytes) -> Any:
    return (c_uint8 * max(len(data), 1)).from_buffer_copy(data or b"\0")
