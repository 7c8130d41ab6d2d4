"""Trials of the bus as processes in real time.

``python tools/bus_trials.py [--native] [TRIAL ...]``

An arm b-a-b-a-c with noise on its sensors moves to a place in 2 s: undisturbed, with a module that
is killed and started again, with lost messages, with each process stopped for a second, and with a
load that no model knows of. A pushed arm comes back, a heavier one rests where the law predicts; a
tree of 20 modules balances by its own processes, also after the death of one. Every trial is judged
by its end, and prints its numbers and the load of the machine; exits with 1 if one fails. Sockets
are attacked by ``tools/fuzz_bus.py``; ``python -m benchmarks operation`` measures forming, clock
and memory.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from modurob import ModurobError, examples, simulate
from modurob.control import ComputedTorque
from modurob.control.plants import with_payload, with_scaled_masses
from modurob.control.references import Quintic
from modurob.distributed import BalancingProcesses, PlantOptions, ProcessBus
from modurob.sim import Noise, Trajectory

ARM, GOAL, MOVING_S = "babac", np.array([0.2, 0.4, 0.6, 0.8, 0.1]), 2.0
NOISE = 0.03  # [rad, m, rad/s, m/s]
PAYLOAD_KG = 0.5
STOPPED_S = 1.0
RESTING_S = 3.0  # after the motion; errors settle in half a second
HOLDING_S = 1.0  # before it; the pose found is a noisy reading
MEAN_S = 2.0  # at the end, over which the noise is averaged
# [rad, m] of a mean at rest. The law passes on the noise: joints scatter by 0.004 in lockstep, by
# 0.03 with a third of the datagrams lost, and errors last for half a second.
NEAR = 0.03
SMOOTHED = 25  # readings whose mean is shown as an error: it has a fifth of the noise
PUSHED, BACK_S, BACK = ("m1.joint", 2.0, 0.1), 1.5, 1e-3  # [N m, s], [s], [rad]
HEAVIER, PREDICTED = 1.1, 1e-3  # times all masses; [rad, m] from where the law predicts
TREE, TREE_S, BALANCED = (4, 5), 4.0, 0.05  # branches and length; [s]; [widths of a module]
DEADLINE_S = 120.0

Facts = dict[str, Any]


class TrialFailure(Exception):
    """A trial that ended otherwise than it should."""


@contextmanager
def attached(word: str, loop: Facts, loss: float = 0.0, **plant: Any) -> Iterator[ProcessBus]:
    """An arm of processes that holds the pose in which it was found; loop: options of the bus."""
    with ProcessBus(plant=PlantOptions(**plant), loss=loss, seed=1, **loop) as bus:
        bus.wait_until_warm()
        before = "base.out"
        for name in [bus.start(f"giusti_{letter}") for letter in word]:
            bus.plug(before, f"{name}.in")
            before = f"{name}.out"
        demand(bus.wait(lambda: bus.settled(len(word)), DEADLINE_S), "no robot was formed")
        yield bus


def demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise TrialFailure(otherwise)


# -- the motion ------------------------------------------------------------------------------------


def move(disturb: Callable[[ProcessBus], None], loss: float = 0.0, *, loop: Facts) -> Facts:
    """Move the arm, disturb it in mid-motion, and report errors on the way and at rest."""
    with attached(ARM, loop, loss, noise_q=NOISE, noise_v=NOISE) as bus:
        operation = bus.operation
        time.sleep(HOLDING_S)
        operation.record()
        begin = time.monotonic()
        operation.goto(GOAL, MOVING_S)
        demand(bus.wait(lambda: operation.status().progress > 0.4, DEADLINE_S), "no progress")
        disturb(bus)
        finished = bus.wait(lambda: not operation.status().motion, DEADLINE_S)
        demand(finished, f"the motion was not finished: {operation.status().reason}")
        seconds = time.monotonic() - begin
        bus.wait(lambda: bus.settled(len(ARM)), DEADLINE_S)
        time.sleep(RESTING_S)
        aim, missing = operation.status().set_point, operation.missing()
        demand(bool(np.allclose(aim, GOAL, atol=1e-9)), f"it rests at {aim}")
        facts = {"seconds": seconds, **errors(operation.recorded(), predicted(bus))}
        age, clock = operation.oldest_reading(), bus.clock
        facts |= {"oldest_reading_s": age[0], "ticks": clock.ticks, "missed": clock.missed}
    facts["missing"] = list(missing)
    demand(facts["at_rest"] < NEAR, f"it rests {facts['at_rest']:.3g} away from where it should")
    return facts


def predicted(bus: ProcessBus) -> np.ndarray:
    """(5,) where the law lets the arm rest under the loads of this bus. [rad, m]"""
    model = bus.robot.model
    assert model is not None
    for name, mass in getattr(bus, "loads", {}).items():
        body = max(k for k, n in enumerate(model.body_names) if n.startswith(f"{name}."))
        model = with_payload(model, model.body_names[body], mass)
    return bus.operation.rest(model)


def errors(run: Trajectory, rest: np.ndarray) -> Facts:
    """Errors of a record; noise of the sensors is taken out of squares and means. [rad, m]"""
    parts = [part for part in run.parts if part.model.nv == len(GOAL) and len(part.t) > SMOOTHED]
    error = np.concatenate([part.q - part.channels["set_point"] for part in parts])
    kernel = np.ones(SMOOTHED) / SMOOTHED
    smooth = [np.convolve(x, kernel, "valid") for x in error.T]
    last = parts[-1]
    mean = last.q[last.t > last.t[-1] - MEAN_S].mean(axis=0)
    moving = np.concatenate([part.t for part in parts]) < MOVING_S
    return {
        "rms": _without_noise(error[moving]), "largest": float(np.abs(smooth).max()),
        "predicted_rest": float(np.abs(rest - GOAL).max()),
        "at_rest": float(np.abs(mean - rest).max()),
    }  # fmt: skip


def _without_noise(error: np.ndarray) -> float:
    """Root mean square of the joint that follows worst, without the noise of its sensor."""
    squares = (error**2).mean(axis=0) - NOISE**2
    return float(np.sqrt(max(0.0, squares.max())))


def of_simulate(period: float) -> Facts:
    """The same loop in `simulate`, with torques one period late."""
    model, still = examples.arm(ARM).model("physical"), np.zeros(len(GOAL))
    path = Quintic(still, GOAL, MOVING_S)
    law = ComputedTorque(model, settling_time=0.5, sample_time=period, delay=period)
    run = simulate(model, still, still, MOVING_S, law, "RK4", dt=period / 2, reference=path,
                   record=period, noise=Noise(q=NOISE, v=NOISE),
                   rng=np.random.default_rng(1))  # fmt: skip
    measured = run.channels["measured_q"]
    return {"rms": _without_noise(measured - np.array([path(t).q for t in run.t]))}


def nothing(bus: ProcessBus) -> None:
    """Leave the arm alone."""


def kill(bus: ProcessBus) -> None:
    """End the process of module 3 and start it again once the coordinator has noticed."""
    bus.kill("m2")
    silent = bus.wait(lambda: bool(bus.robot.assembly.silent), DEADLINE_S)
    demand(silent, "the death was not noticed")
    time.sleep(0.5)
    demand(bus.operation.status().mode == "wait", "the motion went on without the module")
    bus.restart("m2")


def stop(name: str, bus: ProcessBus) -> None:
    """Stop a process for a second."""
    pid = os.getpid() if name == "coordinator" else bus.pid(name)
    waker = f"import os, time; time.sleep({STOPPED_S}); os.kill({pid}, {int(signal.SIGCONT)})"
    with subprocess.Popen([sys.executable, "-S", "-c", waker]):
        os.kill(pid, signal.SIGSTOP)


def load(bus: ProcessBus) -> None:
    """Hang a load on the tip."""
    bus.loads = {"m4": PAYLOAD_KG}  # pyright: ignore[reportAttributeAccessIssue]
    bus.payload("m4", PAYLOAD_KG)


# -- other trials ----------------------------------------------------------------------------------


def push(loop: Facts) -> Facts:
    """Push joint 2 of b-a-c: it comes back."""
    with attached("bac", loop) as bus:
        time.sleep(1.0)
        aim = bus.operation.status().set_point
        bus.operation.record()
        bus.push(*PUSHED)
        time.sleep(BACK_S + 0.2)
        (part,) = bus.operation.recorded().parts
        away = np.abs(part.q - aim).max(axis=1)
        began = part.t[np.argmax(away > BACK)]
        left = float(away[part.t >= began + BACK_S].max(initial=0.0))
    demand(left < BACK, f"it is {left:.2g} rad away after {BACK_S:g} s")
    return {"largest": float(away.max()), "left": left}


def heavier(loop: Facts) -> Facts:
    """A body that is heavier than its records rests where the law predicts."""
    aim = np.array([0.3, 0.5, 0.05])
    with attached("bac", loop, mass_factor=HEAVIER) as bus:
        bus.operation.goto(aim, 1.0)
        time.sleep(1.0 + RESTING_S)
        q = bus.operation.status().q
        time.sleep(1.0)
        drift = float(np.abs(bus.operation.status().q - q).max())
        assert bus.robot.model is not None
        rest = bus.operation.rest(with_scaled_masses(bus.robot.model, HEAVIER))
    away, off = float(np.abs(q - aim).max()), float(np.abs(q - rest).max())
    demand(
        off < PREDICTED and drift < PREDICTED, f"{off:.2g} from the prediction, drift {drift:.2g}"
    )
    return {"steady_error": away, "from_prediction": off, "drift": drift}


def tree(loop: Facts) -> Facts:
    """A SuperBot tree balances by its own processes; a module dies, and the rest balances again.

    Its modules are in Python, and its clock is its own: the loop is that of the other trials.
    """
    del loop
    body = examples.superbot_tree(*TREE, np.random.default_rng(2))
    width, leaf = body.kind(body.base).size, body.modules[-1]
    with BalancingProcesses(body) as network:

        def distance() -> float:  # of the modules that live: no other one is known to the base
            center = network.total_in_world(body.base).center - body.base_pose[:3, 3]
            return float(np.linalg.norm(center[:2])) / width

        begin = distance()
        time.sleep(TREE_S / network.speed)
        balanced = distance()
        network.kill(leaf)
        time.sleep(TREE_S / network.speed)
        again = distance()
    demand(max(balanced, again) < BALANCED, f"{balanced:.3g} and {again:.3g} widths away")
    return {"distance": [begin, balanced, again], "killed": leaf}


STOPPED = (*(f"m{k}" for k in range(len(ARM))), "plant", "coordinator")
TRIALS: dict[str, Callable[..., Facts]] = {
    "plain": partial(move, nothing),
    "kill": partial(move, kill),
    "loss": partial(move, nothing, 0.3),
    **{f"stop-{name}": partial(move, partial(stop, name)) for name in STOPPED},
    "payload": partial(move, load),
    "push": push,
    "heavier": heavier,
    "tree": tree,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trials", nargs="*", metavar="TRIAL", help=f"{', '.join(TRIALS)}; all")
    parser.add_argument("--period", type=float, default=0.002, help="of the loop [s]")
    parser.add_argument("--native", action="store_true", help="modules in C")
    given = parser.parse_args()
    if unknown := [name for name in given.trials if name not in TRIALS]:
        parser.error(f"no trial {unknown[0]}: trials are {', '.join(TRIALS)}")
    failed, loop = 0, {"period": given.period, "native": given.native}
    print(json.dumps({"simulate": of_simulate(given.period)}), flush=True)
    for name in given.trials or TRIALS:
        facts: Facts = {"load": round(os.getloadavg()[0], 1)}
        try:
            facts |= {"ok": True, **TRIALS[name](loop=loop)}
        except (TrialFailure, ModurobError) as failure:
            facts |= {"ok": False, "why": str(failure)}
            failed += 1
        print(json.dumps({name: _rounded(facts)}), flush=True)
    return 1 if failed else 0


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(x) for key, x in value.items()}
    if isinstance(value, list):
        return [_rounded(x) for x in value]
    return float(f"{value:.3g}") if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
