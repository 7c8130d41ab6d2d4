"""Fuzz everything in C that reads bytes: ``python tools/fuzz_native.py --runs 10000000 --jobs 2``.

libFuzzer programs with address and undefined-behavior sanitizers (clang), one for each target,
start from inputs that Python has made. ``--folder DIR`` keeps programs, first inputs and ``go.sh``,
which runs them on another x86-64 Linux machine without compiler, Python or this repository.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / "tools"
sys.path.insert(0, str(ROOT / "tests"))

from firmware.bus_in_c import MASS  # noqa: E402
from modurob import catalog  # noqa: E402
from modurob.compiler.emit_c import write_sources  # noqa: E402
from modurob.compiler.emit_runtime import runtime_kernels  # noqa: E402
from modurob.distributed import native  # noqa: E402
from modurob.distributed.bus import messages as msg  # noqa: E402
from modurob.firmware import runtime_files  # noqa: E402
from modurob.modules.record import encode  # noqa: E402
from oracles.organisms import WRIST  # noqa: E402

BUILD = (
    "clang", "-std=c99", "-O2", "-g1", "-ffp-contract=off", "-fsanitize=fuzzer,address,undefined",
    "-fno-sanitize-recover=all", "-static-libstdc++", "-static-libgcc",
)  # fmt: skip
OF_RECORD = ("record", "robot", "table", "pose", "crc")
TARGETS = {  # number in fuzz_native.c and longest input
    "record": (0, 2048),
    "frame": (1, 2048),
    "message": (2, 2048),
    "datagram": (3, 512),
    "node": (4, 2048),
    "json": (5, 512),
    "mass": (6, 2048),
    "coordinator": (7, 2048),
}


def build(target: str, folder: Path) -> None:
    """Build a program into `folder` with its first inputs in `folder/seeds`."""
    number, longest = TARGETS[target]
    made, source = folder / "made", native.FIRMWARE / "src"
    made.mkdir()
    if target == "record":
        write_sources(
            made, runtime_files([*map(catalog.__getitem__, catalog.names()), WRIST], 4, 16)
        )
        files = [TOOLS / "fuzz_record.c", *(made / "src" / f"{name}.c" for name in OF_RECORD)]
        options = ["-DMR_HAVE_SIZES", f"-I{made / 'include'}"]
    else:
        files = [*native.sources(), *MASS, native.FIRMWARE / "host" / "json.c"]
        files += [TOOLS / "fuzz_native.c"]
        folders = (native.FIRMWARE / "include", native.FIRMWARE / "host", made)
        options = [f"-DTARGET={number}", *(f"-I{each}" for each in folders)]
    if target == "coordinator":
        kernels = runtime_kernels()
        texts = {"modurob/kernels.h": kernels.header, "kernels.c": kernels.source}
        write_sources(made, texts | {"records.h": _records_of_coordinator()})
        files += [*(source / f"{name}.c" for name in native.OF_COORDINATOR), made / "kernels.c"]
    if target == "datagram":
        files.remove(source / "bus_hash.c")
    (made / "uncounted").write_text("src:*/crc.c\n")  # a loop whose branches say nothing
    options += [f"-fsanitize-coverage-ignorelist={made / 'uncounted'}"]
    command = [*BUILD, *options, *map(str, dict.fromkeys(files)), "-lm", "-o", str(folder / "fuzz")]
    subprocess.run(command, check=True)
    shutil.rmtree(made, ignore_errors=True)
    (folder / "longest").write_text(f"{longest}\n")
    (folder / "seeds").mkdir()
    for k, seed in enumerate(seeds(target)):
        (folder / "seeds" / f"{k:03}").write_bytes(seed[:longest])


def copy_libraries(program: Path, folder: Path) -> None:
    """Copy the libraries of a program, for machines that have older ones."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True)
    folder.mkdir(exist_ok=True)
    for path in re.findall(r"/\S+\.so\S*", listed.stdout):
        shutil.copy(path, folder)


def _records_of_coordinator() -> str:
    words = ("giusti_b", "giusti_a", "giusti_b", "giusti_c", "backbone", "scout")
    records = [encode(catalog[kind], uid) for uid, kind in enumerate(words, 1)]
    rows = ",\n".join("{" + ",".join(map(str, record)) + "}" for record in records)
    sizes = ",".join(str(len(record)) for record in records)
    return f"""#define COUNT {len(records)}
static const uint32_t SIZES[] = {{{sizes}}};
static const uint8_t RECORDS[][{max(map(len, records))}] = {{{rows}}};
"""


def _messages() -> list[bytes]:
    """One message of every kind and of several lengths."""
    here, there = msg.Address(7, 1), msg.Address(50, 3)
    docking = msg.Neighbor("out", there, "in", 90, msg.Status.HEARD)
    made = [
        *(msg.ModuleReport(here, 3, "arm", (docking,) * n) for n in (0, 1, 4)),
        *(msg.Piece(here, 1500, at, bytes(range(200))) for at in (0, 1024)),
        *(msg.Sense(here, 4, 2, (0.5,) * n) for n in (0, 2, 16)),
        *(msg.Ask(here, wanted) for wanted in msg.Wanted),
        *(msg.Torque(here, 5, (1.5,) * n) for n in (0, 1, 8)),
        msg.HoldGains(here, (10.0, 2.0, 0.1)),
        msg.Write(here, 600, 0, bytes(600)),
    ]
    return [msg.pack(each) for each in made]


def _frames() -> list[tuple[int, bytes]]:
    """Kind and body of frames."""
    kinds, messages = msg.FrameKind, _messages()
    hello = msg.Hello(msg.Address(7, 1), 3, 9, 1, True, "out")
    batches = (msg.CycleBatch(3, True, tuple(messages[k : k + 3])) for k in (0, 5, 8, 10))
    return [
        (kinds.HELLO, msg.HELLO.pack(hello)),
        *((kinds.DATA, struct.pack("<I", k) + m) for k, m in enumerate(messages, 1)),
        (kinds.ACK, struct.pack("<3I", 1, 2, 3)),
        *((kinds.BATCH, msg.BATCH.pack(batch)) for batch in batches),
    ]


def _arm() -> bytes:
    """Reports, records and readings of an arm of four modules, for a coordinator."""
    to_base, outward = 20, 17  # in - out and out - in, both without a turn
    parts = [bytes([0, 4, k, to_base, k - 1, outward, k + 1]) for k in (1, 2, 3)]
    parts += [bytes([0, 2, 4, to_base, 3]), *(bytes([1, 0, k]) for k in (1, 2, 3, 4))]
    parts += [bytes([2, 16, k]) + bytes(16) for k in (1, 2, 3, 4)]
    return b"".join([*parts, bytes([7, 0, 0]) * 3, bytes([7, 64, 7]), bytes([7, 0, 0]) * 9])


def seeds(target: str) -> list[bytes]:
    """First inputs, in the forms that the targets describe."""
    rng = random.Random(0)
    if target == "record":
        kinds = [*map(catalog.__getitem__, catalog.names()), WRIST]
        kinds += [kind.with_parameters(stiffness=9.0, rotor_inertia=1e-6) for kind in kinds]
        return [form for kind in kinds for form in (encode(kind, 1), encode(kind, 1)[30:-4])]
    if target == "message":
        return _messages()
    if target == "frame":
        whole = [msg.pack_frame(kind, 1, 2, body) for kind, body in _frames()]
        return [*whole, *(bytes([kind]) + body for kind, body in _frames())]
    if target == "datagram":  # payloads after their lengths
        frames = [msg.pack_frame(kind, 1, 2, body)[:100] for kind, body in _frames()]
        contents = [struct.pack("<H", len(x)) + x for x in frames]
        contents += [x + y for x, y in itertools.pairwise(contents)]
        return [
            b"".join(bytes([2 * rng.randrange(128), len(x[:255])]) + x[:255] for x in group)
            for group in (
                contents,
                *([each] for each in contents),
                *(contents[k : k + 4] for k in range(8)),
            )
        ]
    if target == "node":
        turns = [
            bytes([128 + 4 * kind, len(body), 9]) + body
            for kind, body in _frames()
            if len(body) < 256
        ]
        return [b"".join(rng.sample(turns, 6)) for _ in range(20)]
    return [_arm()] if target == "coordinator" else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000_000, help="inputs of each target")
    parser.add_argument("--jobs", type=int, default=1, help="processes of each target")
    parser.add_argument("--target", choices=TARGETS, action="append", help="all by default")
    parser.add_argument("--folder", type=Path, help="keep the programs here, and run nothing")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = given.folder or Path(name)
        for target in given.target or TARGETS:
            shutil.rmtree(folder / target, ignore_errors=True)
            (folder / target).mkdir(parents=True)
            build(target, folder / target)
            copy_libraries(folder / target / "fuzz", folder / "lib")
        script = shutil.copy(TOOLS / "fuzz_native.sh", folder / "go.sh")
        if given.folder:
            return 0
        return subprocess.call(["sh", script, str(given.runs), str(given.jobs)])


if __name__ == "__main__":
    sys.exit(main())
