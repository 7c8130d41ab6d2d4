"""The bus that drives a robot: forming, the clock of the loop, memory over time.

Wall-clock times of processes: run it on a machine with nothing else to do.
"""

from __future__ import annotations

import os
import time
from itertools import pairwise
from typing import Any

import numpy as np

from modurob.distributed import PlantOptions, ProcessBus

LARGE, ARM = "babac" * 12, "babaca"  # 60 modules, 6 modules
PERIOD_S = 2e-3
SECONDS, QUICK_SECONDS = 600.0, 20.0
SAMPLES = 10  # of the memory
PERCENTILES = (50, 90, 99, 99.9, 100)


def attached(bus: ProcessBus, word: str) -> float:
    """Seconds from the docking of a ready arm to the base until its joints are held."""
    names = [bus.start(f"giusti_{letter}") for letter in word]
    for one, other in pairwise(names):
        bus.plug(f"{one}.out", f"{other}.in")
    bus.wait(lambda: False, 2.0)  # all processes are up
    begin = time.perf_counter()
    bus.plug("base.out", f"{names[0]}.in")
    if not bus.wait(lambda: bus.settled(len(word)), 120.0):
        raise RuntimeError(f"no robot of {len(word)} modules: {bus.robot.assembly.faults}")
    return time.perf_counter() - begin


def memory_mb(pids: dict[str, int]) -> dict[str, float]:
    """Resident memory of processes."""
    page = os.sysconf("SC_PAGE_SIZE") / 1e6
    found = {}
    for name, pid in pids.items():
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            found[name] = int(file.read().split()[1]) * page
    return found


def forming(quick: bool) -> dict[str, float]:
    """Seconds until 60 modules are a robot; the loop is slower there."""
    times = []
    for _ in range(1 if quick else 3):
        with ProcessBus(plant=PlantOptions(), period=0.05) as bus:
            bus.wait_until_warm()
            times.append(attached(bus, LARGE))
    print(f"60 modules form a robot in {min(times):.2f} s (slowest {max(times):.2f})")
    return {"fastest": min(times), "slowest": max(times)}


def looping(quick: bool) -> dict[str, Any]:
    """Lateness of the clock, lost cycles and memory of an arm of six modules that moves."""
    seconds = QUICK_SECONDS if quick else SECONDS
    with ProcessBus(plant=PlantOptions(), period=PERIOD_S) as bus:
        bus.wait_until_warm()
        attached(bus, ARM)
        pids = {"coordinator": os.getpid(), "plant": bus.pid("plant")}
        pids |= {name: bus.pid(name) for name in bus.modules}
        late = np.zeros(int(2 * seconds / PERIOD_S))  # made now, so that memory does not grow
        late.fill(np.nan)
        count = 0
        memory = [memory_mb(pids)]
        ticks, missed, answered = bus.clock.ticks, bus.clock.missed, 0
        goal = np.array([0.2, 0.4, 0.6, 0.8, 0.1, 0.2])
        for _ in range(SAMPLES):
            bus.operation.goto(goal, seconds / SAMPLES)
            goal = -goal
            end = time.monotonic() + seconds / SAMPLES
            while time.monotonic() < end:
                bus.clock.late.clear()
                time.sleep(0.5)
                new = list(bus.clock.late)
                late[count : count + len(new)], count = new, count + len(new)
                answered += bus.coordinator.cycle - bus.coordinator.answered <= 1
            memory.append(memory_mb(pids))
        ticks, missed = bus.clock.ticks - ticks, bus.clock.missed - missed
    found = np.percentile(late[:count], PERCENTILES).tolist()
    percentiles = dict(zip(map(str, PERCENTILES), found, strict=True))
    growth = {name: memory[-1][name] - memory[1][name] for name in pids}
    print(f"{ticks / seconds:.0f} cycles a second, {missed} of {ticks + missed} missed, late by "
          + ", ".join(f"{1e3 * x:.2f} ms ({p} %)" for p, x in percentiles.items()))  # fmt: skip
    print("memory grew by " + ", ".join(f"{name} {x:.1f} MB" for name, x in growth.items()))
    return {
        "seconds": seconds, "cycles": ticks, "missed": missed, "late_s": percentiles,
        "answered_in_time": answered / (2 * seconds), "growth_mb": growth,
    }  # fmt: skip


def run(quick: bool) -> dict[str, Any]:
    """Measure; every number is of wall-clock time."""
    return {"forming_s": forming(quick), "loop": looping(quick)}
