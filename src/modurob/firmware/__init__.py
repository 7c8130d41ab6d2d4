"""The C runtime with which a robot models itself: sources for microcontrollers.

The folder holds the sources that are written by hand; kernels and sizes are added on export.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

from modurob.checks import is_whole
from modurob.compiler.emit_runtime import runtime_kernels
from modurob.errors import StateError
from modurob.modules import ModuleType
from modurob.modules.record import encode

FOLDER = Path(__file__).parent
COPIED = ("Makefile", "CMakeLists.txt", "include/modurob/*.h", "src/*.[ch]", "boards/*")
LARGEST = 254  # modules, joints and bodies are numbered by one byte
MOST = {"bodies": 128, "ports": 255}  # of one datasheet; joints are numbered by a signed byte
BUS_PORTS = 16  # most ports of a module on the bus
RECORD_BYTES = 2048  # of the bus and the boards, unless a record is larger
AIM_BYTES = 12  # of each joint in a message of the boards: three numbers
SIZES_HEADER = """/* Made by modurob export --runtime: sizes for {kinds}.
 * Flags of the compiler such as -DMR_MAX_MODULES=32 take precedence. */
#ifndef MODUROB_SIZES_H
#define MODUROB_SIZES_H

{lines}

#endif
"""


def _different(kinds: Iterable[ModuleType]) -> list[ModuleType]:
    """The different ones of some datasheets, after a check."""
    given = list(kinds) if isinstance(kinds, Iterable) else []
    if not given or not all(isinstance(kind, ModuleType) for kind in given):
        raise StateError(
            "the runtime is made for a list of datasheets, such as [modurob.catalog['backbone']], "
            f"got {kinds!r:.80}"
        )
    return list(dict.fromkeys(given))


def runtime_sizes(kinds: Sequence[ModuleType], modules: int, joints: int) -> dict[str, int]:
    """The sizes of ``modurob/config.h`` for robots of some kinds of modules.

    Args:
        kinds: The different datasheets.
        modules: Largest number of modules.
        joints: Largest number of joints that can move.
    """
    kinds = _different(kinds)
    for what, count in (("modules", modules), ("joints", joints)):
        if not is_whole(count) or not 1 <= count <= LARGEST:
            raise StateError(f"the runtime is made for 1 to {LARGEST} {what}, got {count!r}")
    for kind, (what, most) in itertools.product(kinds, MOST.items()):
        if (count := len(getattr(kind, what))) > most:
            raise StateError(
                f"the runtime is made for modules of up to {most} {what}, {kind.name} has {count}"
            )
    ports = [port for kind in kinds for port in kind.ports]
    bodies = [
        len(kind.bodies) + sum(j.stiffness is not None for j in kind.joints) for kind in kinds
    ]
    return {
        "MODULES": modules,
        "KINDS": len(kinds),
        "JOINTS": joints,
        "PARTS": min(modules * max(bodies), LARGEST),
        "KIND_BODIES": max(len(kind.bodies) for kind in kinds),
        "KIND_JOINTS": max(1, *(len(kind.joints) for kind in kinds)),
        "KIND_PORTS": max(len(kind.ports) for kind in kinds),
        "TURNS": max(len(port.turns) for port in ports),
        "MATES": max(len(port.mates) for port in ports),
    }


def _bus_sizes(kinds: Sequence[ModuleType], joints: int) -> dict[str, int]:
    """The sizes of ``modurob/bus.h`` and ``boards/port.h`` that depend on datasheets and joints."""
    longest = max(len(encode(kind, 1)) for kind in kinds)
    return {
        "MR_BUS_MAX_PORTS": min(max(len(kind.ports) for kind in kinds), BUS_PORTS),
        "MR_BUS_MAX_RECORD": max(longest, RECORD_BYTES),
        "PORT_MESSAGE_SIZE": max(longest + 1, AIM_BYTES * joints + 1, RECORD_BYTES),
    }


def runtime_files(
    kinds: Sequence[ModuleType], modules: int, joints: int, single: bool = False
) -> dict[str, str]:
    """Text of the runtime by the names of its files; see `runtime_sizes`.

    Args:
        single: Whether numbers are float instead of double.
    """
    kinds = _different(kinds)
    sizes = {"MR_SINGLE": 1} if single else {}
    sizes |= {f"MR_MAX_{k}": v for k, v in runtime_sizes(kinds, modules, joints).items()}
    sizes |= _bus_sizes(kinds, joints)
    lines = [f"#ifndef {name}\n#define {name} {size}\n#endif" for name, size in sizes.items()]
    names = ", ".join(kind.name for kind in kinds)
    kernels = runtime_kernels()
    copied = [path for pattern in COPIED for path in sorted(FOLDER.glob(pattern))]
    return {
        **{path.relative_to(FOLDER).as_posix(): path.read_text("ascii") for path in copied},
        "include/modurob/sizes.h": SIZES_HEADER.format(kinds=names, lines="\n".join(lines)),
        "include/modurob/kernels.h": kernels.header,
        "src/kernels.c": kernels.source,
    }
