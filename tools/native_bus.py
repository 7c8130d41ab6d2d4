"""Campaigns for the bus in C: ``python tools/native_bus.py frames|trees|mixes|coverage``.

frames    Random frames for a node in Python and its C twin: every answer is the same.
trees     A coordinator in Python and its C twin while modules are plugged, unplugged, killed and
          restarted at random: every frame and every tree is the same.
mixes     The arm b-a-b-a-c with every mix of native and Python modules, under a coordinator in
          Python (the same torques to the last bit) and in C (to 1e-9), again after the module in
          the middle was killed and restarted, and at the end of a motion.
coverage  Branches of the parsers that the tests of tests/firmware take, by gcov.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from firmware import bus_in_c, conftest, coordinator_in_c, random_frames  # noqa: E402
from modurob.distributed import ProcessBus, SimulatedBus, native  # noqa: E402
from modurob.distributed.bus import bus as bus_of_nodes  # noqa: E402
from modurob.errors import one_line  # noqa: E402
from oracles import runtime  # noqa: E402

Torques = dict[str, tuple[float, ...]]
WORD = "babac"
GOAL, SECONDS = (0.2, 0.4, -0.3, 0.1, 0.0), 0.3  # of a motion [rad, m], [s]
POSE = {"m0": 0.4, "m1": 0.3, "m2": -0.5, "m3": 0.2, "m4": 0.05}  # [rad, m]
SAME = 1e-9  # [N m, N] of torques of the two coordinators: sums of dynamics have another order
DEADLINE_S = 60.0
STEPS = 200  # of a node with one seed
CHANGES = 30  # of a robot with one seed
PARSERS = ("bus_messages.c", "bus_secure.c", "bus_endpoint.c", "double/runtime.so-record.c")


def frames(nodes: int) -> int:
    differing = 0
    for seed in range(nodes):
        neighbors = random_frames.RandomNeighbors(seed)
        try:
            for _ in range(STEPS):
                neighbors.step()
        except AssertionError:
            differing += 1
            print(f"seed {seed} differs")
    print(f"{bus_in_c.CheckedNode.steps} steps of {nodes} nodes, {differing} nodes differ")
    return differing


def trees(robots: int) -> int:
    differing = 0
    checked = coordinator_in_c.CheckedCoordinator
    with tempfile.TemporaryDirectory() as folder:
        checked.library = runtime.build(Path(folder), more=[conftest.HARNESS]).lib
        bus_of_nodes.Coordinator = checked
        for seed in range(robots):
            try:
                coordinator_in_c.random_changes(seed, CHANGES)
            except AssertionError as error:
                differing += 1
                print(f"seed {seed} differs: {one_line(str(error)):.200}")
    print(f"{robots} robots, built {checked.rebuilt} times, {differing} differ")
    return differing


def _attached(bus: ProcessBus | SimulatedBus) -> None:
    before = "base.out"
    for letter in WORD:
        name = bus.start(f"giusti_{letter}")
        bus.sense(name, [POSE[name]])  # before it is found: this is where it is held
        bus.plug(before, f"{name}.in")
        before = f"{name}.out"


def mixes(all_native: bool) -> int:
    twin = SimulatedBus()
    _attached(twin)
    assert twin.run(lambda: twin.settled(len(WORD)))
    held_at = dict(twin.torques)
    twin.operation.goto(GOAL, SECONDS)
    assert twin.run(lambda: not twin.operation.status().motion)
    assert twin.run(lambda: twin.settled(len(WORD)))
    moved_to, failed = dict(twin.torques), 0
    for where, *chosen in itertools.product(("python", "native"), *[(False, True)] * len(WORD)):
        names = [f"m{k}" for k, is_native in enumerate(chosen) if is_native]
        if all_native and len(names) < len(WORD):
            continue
        begin, most = time.monotonic(), SAME if where == "native" else 0.0
        with ProcessBus(native=names, coordinator=where, heartbeat=0.3) as bus:
            _attached(bus)

            def is_driven(wanted: Torques, bus: ProcessBus = bus, most: float = most) -> bool:
                known = bus.robot.assembly
                if not bus.settled(len(WORD)) or known.faults or bus.torques.keys() != POSE.keys():
                    return False
                gaps = (abs(bus.torques[name][0] - wanted[name][0]) for name in POSE)
                return max(gaps) <= most

            held = bus.wait(lambda: is_driven(held_at), DEADLINE_S)
            bus.kill("m2")
            held &= bus.wait(lambda: bool(bus.robot.assembly.faults), DEADLINE_S)
            bus.restart("m2")
            bus.sense("m2", [POSE["m2"]])
            held &= bus.wait(lambda: is_driven(held_at), DEADLINE_S)
            bus.operation.goto(GOAL, SECONDS)
            held &= bus.wait(lambda: is_driven(moved_to), DEADLINE_S)
        failed += not held
        took = f"{time.monotonic() - begin:.1f} s"
        result = "same torques" if held else "FAILED"
        print(f"coordinator {where}, native {','.join(names) or '-':16} {result} {took}")
    return failed


def coverage() -> int:
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        flags = "--coverage -O0 -fprofile-abs-path -fprofile-update=atomic"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "tests/firmware"]
        environment = {
            **os.environ,
            bus_in_c.FLAGS_VARIABLE: flags,
            bus_in_c.BUILD_VARIABLE: folder,
        }
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
        for place in PARSERS:
            data = next(Path(folder).glob(f"*{place[:-2]}.gcda"))
            name = place.rpartition("-")[2]
            done = subprocess.run(
                ["gcov", "-b", "-c", str(data)],
                cwd=folder,
                capture_output=True,
                text=True,
                check=True,
            )
            taken = re.search(rf"{name}'\n(?:.*\n)*?Taken at least once:(.*)", done.stdout)
            print(f"{name:18} branches taken: {taken.group(1) if taken else '?'}")
            source = ""
            for line in Path(folder, f"{name}.gcov").read_text().split("\n"):
                if re.match(r"branch +\d+ (taken 0\b|never)", line):
                    print(f"    {line:34} {source}")
                    missed += 1
                elif not line.startswith(("branch", "call", "function")):
                    source = line.partition(":")[2]
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("campaign", choices=("frames", "trees", "mixes", "coverage"))
    parser.add_argument("--count", type=int, default=1000, help="of nodes or of robots")
    parser.add_argument(
        "--sanitize", metavar="NAMES", help="of mixes: address,undefined or thread; all in C"
    )
    given = parser.parse_args()
    if given.sanitize:
        checks = (f"-fsanitize={given.sanitize}", "-fno-sanitize-recover=all", "-g")
        native.FLAGS = (*native.FLAGS, *checks)
    if given.campaign == "frames":
        return frames(given.count)
    if given.campaign == "trees":
        return trees(given.count)
    return mixes(bool(given.sanitize)) if given.campaign == "mixes" else coverage()


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
