"""The C runtime as a shared library of the machine at hand, called through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from ctypes import POINTER, byref, c_int, c_size_t, c_uint8, c_uint16, c_uint32
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from modurob import Organism
from modurob.modules import ModuleType
from modurob.modules.record import encode

COMPILER = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
SIZES = {"MODULES": 24, "KINDS": 24, "JOINTS": 40, "PARTS": 120, "KIND_BODIES": 4,
         "KIND_JOINTS": 3, "KIND_PORTS": 8, "TURNS": 4, "MATES": 2}  # fmt: skip
ID = c_uint8 * 16
REVERSED, ROTOR, SPRING, WHOLE, LOCKED = 1, 2, 4, 8, 16  # flags of a part


def structures(real: Any) -> SimpleNamespace:
    """The structs of the headers, for one type of numbers and `SIZES`."""

    def struct(name: str, *fields: tuple[str, Any]) -> Any:
        return type(name, (ctypes.Structure,), {"_fields_": fields})

    def bytes_(*names: str) -> list[tuple[str, Any]]:
        return [(name, c_uint8) for name in names]

    n = SimpleNamespace(**SIZES)
    Pose = struct("Pose", ("R", real * 9), ("p", real * 3))
    Solid = struct("Solid", ("mass", real), ("center", real * 3), ("inertia", real * 9))
    numbers = ("lower", "upper", "viscous", "coulomb", "armature", "stiffness", "damping")
    Joint = struct(
        "Joint", ("pose", Pose), ("axis", real * 3), *((name, real) for name in numbers),
        *bytes_("type", "parent", "child", "has_lower", "has_upper", "is_elastic"),
    )  # fmt: skip
    Port = struct(
        "Port", ("pose", Pose), ("number", ctypes.c_int32), ("connector", c_uint32),
        ("mates", c_uint32 * n.MATES), ("turns", c_uint16 * n.TURNS),
        *bytes_("is_named", "body", "mate_count", "turn_count"),
    )  # fmt: skip
    Kind = struct(
        "Kind", ("bodies", Solid * n.KIND_BODIES), ("rest", Pose * n.KIND_BODIES),
        ("whole", Solid), ("joints", Joint * n.KIND_JOINTS), ("ports", Port * n.KIND_PORTS),
        ("size", real), *bytes_("body_count", "joint_count", "port_count"),
        ("dyad_joint", ctypes.c_int8), *bytes_("is_virtual"),
    )  # fmt: skip
    Pair = struct(
        "Pair", *bytes_("input", "output"), ("joint", ctypes.c_int8), ("proximal", real * 5),
        ("distal", real * 5), ("delta_j", real), ("proximal_mass", real * 10),
        ("distal_mass", real * 10),
    )  # fmt: skip
    Docking = struct(
        "Docking", *bytes_("module", "port", "other", "other_port"), ("turn", c_uint16)
    )
    Robot = struct(
        "Robot", ("kinds", Kind * (n.KINDS + 1)), ("ids", ID * n.MODULES),
        ("kind_of", c_uint8 * n.MODULES), ("dockings", Docking * n.MODULES),
        *bytes_("kind_count", "module_count", "docking_count"),
    )  # fmt: skip
    Row = struct("Row", ("numbers", real * 28))
    Part = struct(
        "Part", ("pose", Pose),
        *bytes_("link", "module", "body", "joint", "docking", "previous", "flags"),
    )  # fmt: skip
    Table = struct(
        "Table", ("rows", Row * (n.JOINTS + 1)), ("parent", c_uint8 * n.JOINTS),
        ("pattern", c_uint8 * n.JOINTS), ("variant", c_uint8 * n.JOINTS),
        ("moved", c_uint8 * n.JOINTS), ("turn", real * 9 * (n.JOINTS + 1)),
        ("parts", Part * (n.PARTS + 1)), ("dockings", Docking * n.MODULES),
        *bytes_("joint_count", "part_count", "docking_count", "has_friction"),
    )  # fmt: skip
    Options = struct(
        "Options", ("base_pose", Pose), ("gravity", real * 3),
        *bytes_("base", "physical", "stiff", "placed"),
    )  # fmt: skip
    return SimpleNamespace(**{k: v for k, v in locals().items() if k[0].isupper()})


class Runtime:
    """The compiled library; `status` codes come back as they are."""

    def __init__(self, path: Path, single: bool) -> None:
        self.real = ctypes.c_float if single else ctypes.c_double
        self.dtype = np.float32 if single else np.float64
        self.lib, self.types = ctypes.CDLL(str(path)), structures(self.real)
        self.lib.mr_crc32.restype = c_uint32

    def read(self, record: bytes) -> tuple[int, Any, bytes]:
        """Status, datasheet and id of a record, which is put at the very end of its memory."""
        kind, found = self.types.Kind(), ID()
        data = (c_uint8 * len(record)).from_buffer_copy(record) if record else (c_uint8 * 1)()
        status = self.lib.mr_record_read(data, c_size_t(len(record)), found, byref(kind))
        return status, kind, bytes(found)

    def robot(self, organism: Organism) -> Any:
        """The robot of an organism's records and dockings, added in this order."""
        robot = self.types.Robot()
        numbers, module = {}, c_int()
        for k, name in enumerate(organism.modules):
            data = encode(organism.kind(name), k)
            assert self.lib.mr_robot_add(byref(robot), data, c_size_t(len(data)), byref(module)) == 0
            numbers[name] = module.value
        for parent, port, child, child_port, turn, _ in organism.dockings:
            ports = port_index(organism.kind(parent), port), port_index(organism.kind(child), child_port)
            given = (numbers[parent], ports[0], numbers[child], ports[1], turn)
            assert self.lib.mr_robot_dock(byref(robot), *given) == 0
        return robot

    def options(self, **changed: Any) -> Any:
        options = self.types.Options.in_dll(self.lib, "mr_default_options")
        options = self.types.Options.from_buffer_copy(options)
        for name, value in changed.items():
            if name == "base_pose":
                options.base_pose.R[:] = value[:3, :3].ravel().tolist()
                options.base_pose.p[:] = value[:3, 3].tolist()
            elif name == "gravity":
                options.gravity[:] = list(value)
            else:
                setattr(options, name, value)
        return options

    def table(self, robot: Any, **options: Any) -> Any:
        """The table, or a negative status."""
        table = self.types.Table()
        status = self.lib.mr_table_build(byref(robot), byref(self.options(**options)), byref(table))
        return table if status == 0 else status

    def array(self, numbers: Any) -> Any:
        return (self.real * len(numbers))(*map(float, numbers))


def port_index(kind: ModuleType, label: int | str) -> int:
    return [port.label for port in kind.ports].index(label)


def build(
    folder: Path, sources: list[Path], single: bool, flags: tuple[str, ...] = ("-O1",)
) -> Runtime:
    """Compile a folder's sources without a warning."""
    include = Path(__file__).parents[2] / "src/modurob/firmware/include"
    path = folder / f"runtime_{'float' if single else 'double'}.so"
    defines = [f"-DMR_MAX_{name}={value}" for name, value in SIZES.items()]
    command = [str(COMPILER), *WARNINGS, *flags, *defines, *(["-DMR_SINGLE"] if single else []),
               f"-I{include}", f"-I{folder}", "-shared", "-fPIC", "-o", str(path),
               *map(str, sources), "-lm"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Runtime(path, single)


__all__ = ["COMPILER", "LOCKED", "POINTER", "REVERSED", "ROTOR", "SPRING", "WHOLE", "Runtime", "build"]
