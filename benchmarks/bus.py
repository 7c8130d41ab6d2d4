"""The module bus: how long until an arm of processes is driven, and how discovery grows.

Part one starts a process for each of 20 modules, plugs them together, then plugs the arm into the
coordinator's base and waits until every module has its first torque. Then a module in the middle is
killed. Part two discovers chains and trees in simulated rounds, in which a message passes one link.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from modurob import examples
from modurob.distributed import ProcessBus, SimulatedBus
from modurob.distributed.bus.coordinator import CoordinatorState
from modurob.distributed.bus.robot import RobotBuilder

ARM = "babac" * 4
VICTIM = 10  # the module that is killed
LOSSES = (0.0, 0.3)
REPETITIONS, QUICK_REPETITIONS = 5, 2
DEADLINE = 60.0  # [s]
CHAINS, QUICK_CHAINS = (10, 30, 100, 300), (10, 30, 100)
TREES, QUICK_TREES = (3, 4, 5, 6), (3, 4)  # levels; four branches from every module
KINDS = {"chain": ("giusti_b", "in"), "tree": ("superbot_light", "1")}  # and the port inward
BRANCHES = ("2", "3", "4", "5")


class Idle(RobotBuilder):
    """Makes no models: what is measured is the bus."""

    def update(self, state: CoordinatorState, t: float) -> list[Any]:
        return []


def run(quick: bool) -> dict[str, Any]:
    """Measure, print and return; seconds unless named otherwise."""
    repetitions = QUICK_REPETITIONS if quick else REPETITIONS
    processes = [operate(loss, repetitions) for loss in LOSSES]
    print("\nshape  modules  depth  rounds  rounds/depth  messages    MB  seconds")
    sizes = QUICK_CHAINS if quick else CHAINS
    rows = [discover("chain", modules, chain(modules)) for modules in sizes]
    rows += [discover("tree", *tree(levels)) for levels in (QUICK_TREES if quick else TREES)]
    return {"processes": processes, "simulated": rows}


# -- processes -------------------------------------------------------------------------------------


def operate(loss: float, repetitions: int) -> dict[str, Any]:
    """Medians over some runs with one process for each module."""
    runs = [_operation(loss, seed) for seed in range(repetitions)]
    row: dict[str, Any] = {"modules": len(ARM), "loss": loss, "runs": runs}
    for key in runs[0]:
        row[key] = statistics.median(run[key] for run in runs)
    print(
        f"{len(ARM)} processes, {100 * loss:.0f} % loss: started in {row['start']:.2f} s, "
        f"plugged to last first torque {row['first_torques']:.2f} s "
        f"(slowest {max(run['first_torques'] for run in runs):.2f} s), "
        f"death to new model {row['death_heartbeats']:.2f} heartbeats"
    )
    return row


def _operation(loss: float, seed: int) -> dict[str, float]:
    with ProcessBus(loss=loss, seed=seed) as bus:
        bus.wait_until_warm()
        begin = time.perf_counter()
        names = [bus.start(f"giusti_{letter}") for letter in ARM]
        for one, other in pairwise(names):
            bus.plug(f"{one}.out", f"{other}.in")
        started = time.perf_counter()
        bus.plug("base.out", "m0.in")
        _hold(bus, lambda: bus.settled(len(ARM)))
        driven = time.perf_counter()
        if bus.robot.assembly.organism != examples.arm(ARM):
            raise RuntimeError("the organism is not the arm that was plugged together")
        bus.kill(f"m{VICTIM}")
        killed = time.perf_counter()
        _hold(bus, lambda: bus.settled(VICTIM))
        return {
            "start": started - begin,
            "first_torques": driven - started,
            "death_heartbeats": (time.perf_counter() - killed) / bus.heartbeat,
        }


def _hold(bus: ProcessBus, condition: Callable[[], bool]) -> None:
    if not bus.wait(condition, DEADLINE):
        raise RuntimeError(f"nothing in {DEADLINE:g} s")


# -- rounds ----------------------------------------------------------------------------------------

Plan = list[tuple[int, str]]  # (parent, port) of every module but the first


def chain(modules: int) -> Plan:
    return [(k, "out") for k in range(modules - 1)]


def tree(levels: int) -> tuple[int, Plan]:
    """Every module holds four others, up to so many levels."""
    plan: Plan = []
    front = [0]
    for _ in range(levels - 1):
        first = len(plan) + 1
        plan += [(parent, port) for parent in front for port in BRANCHES]
        front = list(range(first, len(plan) + 1))
    return levels, plan


def discover(shape: str, depth: int, plan: Plan) -> dict[str, Any]:
    """Rounds from plugging in the base until the coordinator knows all modules and records."""
    bus = SimulatedBus()
    bus.builder = Idle()
    kind, entry = KINDS[shape]
    for _ in range(len(plan) + 1):
        bus.start(kind)
    for child, (parent, port) in enumerate(plan, start=1):
        bus.plug(f"m{parent}.{port}", f"m{child}.{entry}")
    bus.run(lambda: False, 0.05)  # neighbors have found each other
    sent, volume, rounds = bus.transport.counts.sent, bus.transport.counts.bytes, bus.rounds
    begin = time.perf_counter()
    bus.plug("base.out", f"m0.{entry}")

    def known() -> bool:
        survey = bus.coordinator.survey
        return len(survey.modules) == len(plan) + 1 and survey.complete

    if not bus.run(known):
        raise RuntimeError(f"{shape} of {len(plan) + 1} modules: not discovered")
    row = {
        "shape": shape,
        "modules": len(plan) + 1,
        "depth": depth,
        "rounds": bus.rounds - rounds,
        "messages": bus.transport.counts.sent - sent,
        "bytes": bus.transport.counts.bytes - volume,
        "seconds": time.perf_counter() - begin,
    }
    print(
        f"{shape:<5}  {row['modules']:>7}  {depth:>5}  {row['rounds']:>6}  "
        f"{row['rounds'] / depth:>12.2f}  {row['messages']:>8}  {row['bytes'] / 1e6:>4.1f}  "
        f"{row['seconds']:>7.2f}"
    )
    return row
