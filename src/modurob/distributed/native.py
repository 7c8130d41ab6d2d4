"""Programs of modules in C: built from ``modurob/firmware`` on first use, then kept in a cache."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from modurob.compiler.jit import cache_folder
from modurob.errors import StateError, one_line

FIRMWARE = Path(__file__).parents[1] / "firmware"
COMPILERS = ("gcc", "clang", "cc")
FLAGS = ("-std=c99", "-O2", "-ffp-contract=off")
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


def arguments(sizes: dict[str, int] = SIZES) -> list[str]:
    """Return the flags of a build with such sizes."""
    return [*FLAGS, f"-I{FIRMWARE / 'include'}", *(f"-D{k}={v}" for k, v in sizes.items())]


@cache
def module_program() -> str:
    """Return the path of a module's program, after building it if it is not in the cache."""
    files = [*sources(), *sorted((FIRMWARE / "host").glob("*.c"))]
    headers = sorted(FIRMWARE.glob("**/*.h"))
    build = [compiler(), *arguments()]
    texts = b"".join(path.read_bytes() for path in (*files, *headers))
    key = hashlib.sha256("\n".join(build).encode() + texts).hexdigest()
    folder = cache_folder()
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="modurob_"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = folder / f"bus_module_{key[:32]}"
    if not program.exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as place:
                built = Path(place, "module")
                command = [*build, *map(str, files), "-o", str(built)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise StateError(one_line(f"{build[0]} cannot build a module: {done.stderr}"))
                built.replace(program)  # whole, or not at all
        except OSError as error:
            raise StateError(f"native modules cannot be built: {error}") from None
    return str(program)
