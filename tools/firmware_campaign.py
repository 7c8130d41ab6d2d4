"""Compare the C runtime with Python on many random robots: tables, dynamics, and broken records.

    python tools/firmware_campaign.py --count 10000
    python tools/firmware_campaign.py --count 1000 --sanitize
    python tools/firmware_campaign.py --libraries DIR --count 0   # builds them, for another machine

Each robot is built by both from the same records and dockings, with datasheets of the catalog or
random ones, dyad or physical hinges, a base anywhere, friction, rotors, springs and held joints.
With --sanitize the library checks its memory and its arithmetic (gcc or clang with libasan), in
double precision only. Libraries that lie in DIR already are used as they are.
"""

from __future__ import annotations

import argparse
import os
import struct
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import modurob as mr  # noqa: E402
from modurob.compiler import dyads  # noqa: E402
from modurob.errors import ModurobError  # noqa: E402
from modurob.modules.record import decode  # noqa: E402
from oracles import runtime  # noqa: E402
from oracles.organisms import GROUPS, random_organism, random_pose  # noqa: E402
from oracles.random_kinds import random_kind  # noqa: E402

MOST = 8  # modules
ALLOWED = {False: 1e-12, True: 1e-4}  # of dynamics, by the largest number; double and float
SANITIZE = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def robot(rng: np.random.Generator) -> mr.Organism:
    """A random robot with random drives; every second one has random datasheets."""
    modules = int(rng.integers(1, MOST + 1))
    if rng.random() < 0.5:
        kinds = [random_kind(rng, f"kind{k}") for k in range(rng.integers(1, 4))]
        organism = mr.Organism.random(kinds, modules, rng).with_base_pose(random_pose(rng))
    else:
        organism = random_organism(str(rng.choice(list(GROUPS))), modules, int(rng.integers(2**31)))
    if rng.random() < 0.3:
        organism = organism.with_base_pose(np.eye(4))
    drive = {"rotor_inertia": rng.uniform(1e-7, 1e-5), "gear_ratio": rng.uniform(10, 100)}
    changes = (
        {"viscous": rng.uniform(0, 0.5), "coulomb": rng.uniform(0, 0.5)},
        drive,
        drive | {"stiffness": rng.uniform(5, 50), "damping": rng.uniform(0, 0.5)},
        {"limits": [rng.uniform(-0.1, 0.1)] * 2},
    )
    chosen = rng.choice(len(changes) + 2, size=len(organism))
    for k, change in enumerate(changes):
        of = [name for name, choice in zip(organism.modules, chosen, strict=True) if choice == k]
        jointed = [
            name
            for name in of
            if any(joint.kind != "fixed" for joint in organism.kind(name).joints)
        ]
        if jointed:
            organism = organism.with_parameters(*jointed, **change)
    return organism


def compare(
    libraries: dict[bool, runtime.Runtime], organism: mr.Organism, rng: np.random.Generator,
    worst: dict[str, float], counts: Counter[str],
) -> None:  # fmt: skip
    """Add the differences of one robot to the worst ones."""
    hinges = "physical" if rng.random() < 0.5 else "dyad"
    try:
        model = organism.model(hinges)
    except ModurobError:
        counts["refused by Python"] += 1
        return
    n = model.nv
    q, v, x = rng.standard_normal((3, n))
    for single, library in libraries.items():
        made, physical = library.robot(organism), int(hinges == "physical")
        table, placed = (
            library.table(made, organism.base_pose, physical=physical, placed=k) for k in (0, 1)
        )
        if isinstance(table, str):
            counts[f"status {table}"] += 1
            continue
        word = "float" if single else "double"
        if not single:
            for found, frames in ((table, model._frames), (placed, model._placed_frames)):
                expected = dyads.table_rows(frames, model.gravity)._asdict()
                expected |= dyads.body_tables(frames)
                same = [(a, expected[name]) for name, a in runtime.numbers_of(found).items()]
                pairs = [(a, np.ascontiguousarray(b, dtype=a.dtype)) for a, b in same]
                equal = all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)
                counts["tables, equal in every byte" if equal else "OTHER TABLES"] += 1
        if not n:
            continue
        counts[f"robots with joints, {word}"] += 1
        if single:  # the same question to both: C takes no more digits than these
            q, v, x = np.float64(np.float32([q, v, x]))
        for name, count, inputs, expected in (
            ("inverse_dynamics", n, (q, v, x), model.inverse_dynamics(q, v, x)),
            ("forward_dynamics", n, (q, v, x), model.forward_dynamics(q, v, x)),
            ("mass_matrix", n * n, (q,), model.mass_matrix(q)),
        ):
            found = library.evaluate(name, table, count, *inputs)
            note(worst, f"{word}, {name}", found, expected.ravel(), np.abs(expected).max())


def note(worst: dict[str, float], name: str, found, expected, scale: float) -> None:
    error = float(np.abs(found - expected).max(initial=0.0) / (scale or 1.0))
    worst[name] = max(worst.get(name, 0.0), error if error == error else np.inf)


def broken_record(rng: np.random.Generator) -> bytes:
    """A record with a few wrong bytes, often with checksums that match."""
    data = bytearray(runtime.record_of(runtime.KINDS[rng.integers(len(runtime.KINDS))]))
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(data)))
        if rng.random() < 0.3:
            del data[place : place + int(rng.integers(1, 20))]
        elif data:
            data[place] = int(rng.integers(256))
    data = bytes(data)
    if len(data) > 40 and rng.random() < 0.9:
        header = b"MROB\x01\x00" + struct.pack("<I", len(data)) + data[10:26]
        data = header + struct.pack("<I", zlib.crc32(header)) + data[30:-4]
        data += struct.pack("<I", zlib.crc32(data))
    return data


def try_record(library: runtime.Runtime, record: bytes, counts: Counter[str]) -> None:
    """Read a record; what C refuses Python must refuse, too."""
    status, _ = library.read(record)
    counts["broken records"] += 1
    counts["broken records, read"] += status == "ok"
    if status not in ("ok", "too many"):
        try:
            decode(record)
        except ModurobError:
            return
        counts["REFUSED BY C ALONE"] += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument(
        "--libraries", type=Path, metavar="DIR", help="keep compiled libraries here"
    )
    given = parser.parse_args()
    if given.sanitize and "libasan" not in os.environ.get("LD_PRELOAD", ""):
        found = subprocess.check_output([str(runtime.COMPILER), "-print-file-name=libasan.so"])
        added = {"LD_PRELOAD": found.decode().strip(), "ASAN_OPTIONS": "detect_leaks=0"}
        return subprocess.call([sys.executable, *sys.argv], env=os.environ | added)
    warnings.simplefilter("ignore")
    rng, start = np.random.default_rng(given.seed), time.monotonic()
    worst: dict[str, float] = {}
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        libraries = {}
        for single in (False,) if given.sanitize else (False, True):
            place = (given.libraries or Path(folder)) / ("float" if single else "double")
            place.parent.mkdir(parents=True, exist_ok=True)
            flags = SANITIZE if given.sanitize else ("-O2",)
            built = (place / "runtime.so").exists()
            libraries[single] = (runtime.load if built else runtime.build)(place, single, flags)
        try:
            for number in range(given.count):
                compare(libraries, robot(rng), rng, worst, counts)
                try_record(libraries[False], broken_record(rng), counts)
                if (number + 1) % 500 == 0:
                    print(f"{number + 1} robots, {time.monotonic() - start:.0f} s", flush=True)
        except KeyboardInterrupt:
            print(f"stopped after {number} robots")
    for name, count in sorted(counts.items()):
        print(f"{name}: {count}")
    failed = any(name.isupper() or name.startswith("status") for name in counts)
    for name, error in sorted(worst.items()):
        allowed = ALLOWED[name.startswith("float")]
        failed |= not error <= allowed
        print(f"{name}: largest difference {error:.1e}, allowed {allowed:.0e}")
    print("FAILED" if failed else "passed")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
