"""Programs of the bus in C: built from ``modurob/firmware`` on first use, then kept in a cache."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from modurob.compiler.emit_c import write_sources
from modurob.compiler.emit_runtime import runtime_kernels
from modurob.compiler.jit import cache_folder
from modurob.errors import StateError, one_line

FIRMWARE = Path(__file__).parents[1] / "firmware"
HOST = ("json.c", "process.c")
OF_COORDINATOR = (
    "coordinator", "coordinator_motion", "coordinator_robot", "control", "dynamics", "linear",
    "pose", "record", "robot", "table",
)  # fmt: skip
COMPILERS = ("gcc", "clang", "cc")
FLAGS = ("-std=c99", "-O1", "-ffp-contract=off")
# on a PC there is room for the protocol's own limits, see bus/messages.py
SIZES = {
    "MR_BUS_MAX_PORTS": 16,
    "MR_BUS_MAX_RECORD": 1 << 20,
    "MR_BUS_MAX_MODULES": 1 << 12,
    "MR_BUS_WAITING_BYTES": 1 << 22,
    "MR_BUS_READING_BYTES": 1 << 18,
    "MR_BUS_MAX_BATCHES": 1 << 8,
    "MR_BUS_BATCH_BYTES": 1 << 20,
    "MR_BUS_WINDOW": 1 << 16,
}

# a coordinator keeps two copies of each record, and matrices of all joints on its stack
COORDINATOR_SIZES = {
    "MR_MAX_MODULES": 64,
    "MR_MAX_KINDS": 64,
    "MR_MAX_JOINTS": 96,
    "MR_MAX_PARTS": 254,
    "MR_MAX_KIND_BODIES": 32,
    "MR_MAX_KIND_JOINTS": 32,
    "MR_MAX_KIND_PORTS": 16,
    "MR_MAX_TURNS": 255,
    "MR_MAX_MATES": 32,
    "MR_BUS_MAX_ENTRIES": 512,
    "MR_BUS_MAX_RECORD": 1 << 14,
    "MR_BUS_WAITING_BYTES": 1 << 20,
}


def sources() -> list[Path]:
    """Return the files of the bus in C, without a `main`."""
    return [FIRMWARE / "src" / "crc.c", *sorted((FIRMWARE / "src").glob("bus_*.c"))]


def compiler() -> str:
    """Return the path of a C compiler."""
    for name in COMPILERS:
        if found := shutil.which(name):
            return found
    raise StateError(
        f"native modules need a C compiler, and none of {', '.join(COMPILERS)} is on the PATH: "
        "install gcc, or run all modules in Python"
    )


def arguments(sizes: Mapping[str, int] = SIZES) -> list[str]:
    """Return the flags of a build with such sizes."""
    return [*FLAGS, f"-I{FIRMWARE / 'include'}", *(f"-D{k}={v}" for k, v in sizes.items())]


@cache
def module_program() -> str:
    """Return the path of a module's program, after building it if it is not in the cache."""
    return _built("module", sources(), SIZES, {})


@cache
def coordinator_program() -> str:
    """Return the path of the coordinator's program, after building it if it is not in the cache."""
    kernels = runtime_kernels()
    generated = {"kernels.c": kernels.source, "modurob/kernels.h": kernels.header}
    files = [FIRMWARE / "src" / f"{name}.c" for name in OF_COORDINATOR]
    return _built("coordinator", [*sources(), *files], COORDINATOR_SIZES, generated)


def _built(
    name: str, files: Sequence[Path], sizes: Mapping[str, int], generated: Mapping[str, str]
) -> str:
    """Return the path of a program of `firmware/host`, linked with some files."""
    files = [*files, *(FIRMWARE / "host" / file for file in (*HOST, f"{name}.c"))]
    headers = sorted(FIRMWARE.glob("**/*.h"))
    build = [compiler(), *arguments(sizes)]
    texts = b"".join(path.read_bytes() for path in (*files, *headers))
    texts += "".join(generated.values()).encode()
    key = hashlib.sha256("\n".join(build).encode() + texts).hexdigest()
    folder = cache_folder()
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="modurob_"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = folder / f"bus_{name}_{key[:32]}"
    if not program.exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as place:
                made = write_sources(Path(place), generated)
                built, extra = Path(place, name), [x for x in made if x.suffix == ".c"]
                command = [*build, f"-I{place}", *map(str, (*files, *extra)), "-lm"]
                done = subprocess.run(
                    [*command, "-o", str(built)], capture_output=True, text=True, check=False
                )
                if done.returncode:
                    raise StateError(one_line(f"{build[0]} cannot build a {name}: {done.stderr}"))
                built.replace(program)  # whole, or not at all
        except OSError as error:
            raise StateError(f"native programs cannot be built: {error}") from None
    return str(program)
