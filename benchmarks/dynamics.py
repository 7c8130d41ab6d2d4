"""Dynamics against Pinocchio and MuJoCo: microseconds a state, and how many times faster.

All contenders of a row run in one process, interleaved, on one thread, on the same
states; the fastest of many rounds counts for each. Before timing, their results are compared.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin

from benchmarks.bodies import grid_tree
from benchmarks.peers import depth_first, mujoco_model, pinocchio_model
from benchmarks.timing import interleaved
from modurob import Model, examples

BUDGET, QUICK_BUDGET = 2.0, 0.3  # [s] for each comparison
STATES, MATRICES = 10_000, 400  # of a batch: vectors, and matrices
SAME = 1e-9  # relative; random trees of 1,000 modules lose some digits in every engine
SAME_IN_MUJOCO = 1e-8  # relative; it stores principal axes of inertia as rounded quaternions
PINOCCHIO_UP_TO = 300  # joints; its data grow with the cube of them, to over 2 GB there
FUSED_UP_TO = 60  # joints; beyond, compiling takes longer than most batches


def bodies(quick: bool) -> dict[str, Model]:
    """The organisms that are measured."""
    found = {f"grid {n}": grid_tree(n).model() for n in (2, 6, 20, 60)}
    found["superbot 60"] = examples.superbot_tree(rng=np.random.default_rng(1)).model("physical")
    for n in () if quick else (300, 1000):
        found[f"grid {n}"] = grid_tree(n).model()
    return found


class Contest:
    """One organism in all engines, with states to run."""

    def __init__(self, model: Model, states: int) -> None:
        rng = np.random.default_rng(0)
        self.model, self.states = model, states
        self.fused = model.compile() if model.nv <= FUSED_UP_TO else None
        self.order = depth_first(model)
        self.compared = model.nv <= PINOCCHIO_UP_TO
        self.peer = pinocchio_model(model, self.order)
        if self.compared:
            self.data, self.pool = self.peer.createData(), pin.ModelPool(self.peer, 1)
        self.mj = mujoco_model(model, self.order)
        self.mj_data = mujoco.MjData(self.mj)
        self.q = np.array([model.random_configuration(rng) for _ in range(states)])
        self.v, self.a = rng.standard_normal((2, states, model.nv))
        self.theirs = [np.ascontiguousarray(x[:, self.order]) for x in (self.q, self.v, self.a)]
        self.columns = [np.asfortranarray(x.T) for x in self.theirs]
        self.out = np.zeros((model.nv, states), order="F")

    def agree(self) -> None:
        """All engines give the same forces and accelerations, or the comparison means nothing."""
        q, v, a = self.q[0], self.v[0], self.a[0]
        tau = self.model.inverse_dynamics(q, v, a)
        if self.compared:
            tau[self.order] = pin.rnea(self.peer, self.data, *(x[0] for x in self.theirs))
        scale = np.abs(tau).max()
        for model in filter(None, (self.model, self.fused)):
            assert np.abs(model.inverse_dynamics(q, v, a) - tau).max() < SAME * scale
            assert np.abs(model.forward_dynamics(q, v, tau) - a).max() < SAME * len(a) * 1e3
        assert np.abs(self._mujoco_inverse() - tau[self.order]).max() < SAME_IN_MUJOCO * scale

    def _mujoco_inverse(self) -> np.ndarray:
        d = self.mj_data
        d.qpos[:], d.qvel[:], d.qacc[:] = (x[0] for x in self.theirs)
        mujoco.mj_inverse(self.mj, d)
        return d.qfrc_inverse.copy()

    def _mujoco_forward(self) -> None:
        d = self.mj_data
        d.qpos[:], d.qvel[:], d.qfrc_applied[:] = (x[0] for x in self.theirs)
        mujoco.mj_forward(self.mj, d)

    def count(self, name: str) -> int:
        """States of a batch; matrices get fewer, so that memory is not what is measured."""
        matrices = name in ("mass_matrix", "inverse_dynamics_derivatives")
        return min(self.states, MATRICES) if matrices else self.states

    def batched(self, name: str) -> dict[str, Callable[[], Any]]:
        """Contenders for a batch of all states."""
        in_parallel = {
            "inverse_dynamics": pin.rneaInParallel,
            "forward_dynamics": pin.abaInParallel,
        }
        count = self.count(name)
        args = [x[:count] for x in (self.q, self.v, self.a)]
        args = args[:1] if name == "mass_matrix" else args
        work: dict[str, Callable[[], Any]] = {
            "dyads": lambda: getattr(self.model, name)(*args, threads=1)
        }
        if self.fused is not None and name != "inverse_dynamics_derivatives":
            fused = self.fused
            work["fused"] = lambda: getattr(fused, name)(*args, threads=1)
        if not self.compared:
            return work
        if name in in_parallel:
            run = in_parallel[name]
            work["pinocchio"] = lambda: run(1, self.pool, *self.columns, self.out)
        elif name == "mass_matrix":
            work["pinocchio"] = lambda: [
                pin.crba(self.peer, self.data, q) for q in self.theirs[0][:count]
            ]
        else:
            rows = list(zip(*(x[:count] for x in self.theirs), strict=True))
            work["pinocchio"] = lambda: [
                pin.computeRNEADerivatives(self.peer, self.data, q, v, a) for q, v, a in rows
            ]
        return work

    def single(self, name: str, repetitions: int) -> dict[str, Callable[[], Any]]:
        """Contenders for one state, called from Python."""
        q, v, a = (np.array(x[0]) for x in (self.q, self.v, self.a))
        peer = {"inverse_dynamics": pin.rnea, "forward_dynamics": pin.aba}[name]
        theirs = self._mujoco_inverse if name == "inverse_dynamics" else self._mujoco_forward
        calls: dict[str, Callable[[], Any]] = {
            "prepared dyads": _bound(self.model.prepare(name), q, v, a),
            "plain": _bound(getattr(self.model, name), q, v, a),
            "pinocchio": _bound(peer, self.peer, self.data, *(np.array(x[0]) for x in self.theirs)),
            "mujoco": theirs,
        }
        if self.fused is not None:
            calls["prepared fused"] = _bound(self.fused.prepare(name), q, v, a)

        def repeated(call: Callable[[], Any]) -> Callable[[], Any]:
            def run() -> None:
                for _ in range(repetitions):
                    call()

            return run

        return {key: repeated(call) for key, call in calls.items()}


def _bound(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    return lambda: function(*args)


def report(label: str, seconds: dict[str, float], each: int) -> dict[str, Any]:
    """Print a row and return microseconds and ratios to Pinocchio."""
    micros = {name: 1e6 * value / each for name, value in seconds.items()}
    theirs = micros.get("pinocchio", np.nan)
    ratios = {name: theirs / us for name, us in micros.items() if name != "pinocchio"}
    cells = [f"{name} {micros[name]:.3f} us ({x:.1f}x)" for name, x in ratios.items()]
    print(f"{label:<42} pinocchio {theirs:.3f} us  {'  '.join(cells)}", flush=True)
    if "pinocchio" not in micros:
        return {"microseconds": micros}
    return {"microseconds": micros, "times_faster_than_pinocchio": ratios}


def redocking(budget: float) -> dict[str, float]:
    """From undocking one of 100 modules to the first torque of the new body."""
    organism = examples.snake(100)
    still = np.zeros(98)
    organism.model().inverse_dynamics(*np.zeros((3, 99)))

    def work() -> None:
        rest, _ = organism.undock("m99")
        rest.model().inverse_dynamics(still, still, still)

    best = interleaved({"undock": work}, budget)
    print(f"undock 1 of 100 modules -> first torque: {1e3 * best['undock']:.2f} ms")
    return {"milliseconds": 1e3 * best["undock"]}


def compiling() -> dict[str, float]:
    """Seconds to fuse 20 joints, and to answer first in a new process with an empty cache."""
    from modurob.compiler import fused, jit

    model, seconds = grid_tree(20, seed=7).model(), {}
    with tempfile.TemporaryDirectory() as folder:
        kept = os.environ.get(jit.CACHE_VARIABLE)
        os.environ[jit.CACHE_VARIABLE] = folder
        for name in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
            begin = time.perf_counter()
            jit.compile_ir(fused.module_ir(name, model))
            seconds[f"fuse {name}"] = time.perf_counter() - begin
        script = (
            "import time; b = time.perf_counter(); import modurob as mr, numpy as np; "
            "m = mr.examples.crab().model(); m.inverse_dynamics(*np.zeros((3, 3))); "
            "print(time.perf_counter() - b)"
        )
        for label in ("cold", "warm"):
            done = subprocess.run(
                [sys.executable, "-c", script], capture_output=True, text=True, check=True
            )
            seconds[f"import to first answer, {label} cache"] = float(done.stdout)
        if kept is None:
            del os.environ[jit.CACHE_VARIABLE]
        else:
            os.environ[jit.CACHE_VARIABLE] = kept
    for name, value in seconds.items():
        print(f"{name:<48} {value:.3f} s")
    return seconds


def growth(rows: dict[str, Any]) -> dict[str, float]:
    """Exponent of the cost over the number of modules, on the dyad tier."""
    exponents = {}
    for name in ("inverse_dynamics", "forward_dynamics"):
        sizes = [n for n in (20, 60, 300, 1000) if f"grid {n}" in rows]
        costs = [rows[f"grid {n}"][name]["microseconds"]["dyads"] for n in sizes]
        exponents[name] = float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
        print(f"{name} on the dyad tier grows with modules^{exponents[name]:.2f}")
    return exponents


def run(quick: bool) -> dict[str, Any]:
    """Measure everything and print the table."""
    budget = QUICK_BUDGET if quick else BUDGET
    results: dict[str, Any] = {}
    for label, model in bodies(quick).items():
        contest = Contest(model, STATES if model.nv <= FUSED_UP_TO else 1000)
        contest.agree()
        row = results[label] = {}
        batches = ["inverse_dynamics", "forward_dynamics"]
        if model.nv <= FUSED_UP_TO:
            batches += ["mass_matrix", "inverse_dynamics_derivatives"]
        for name in batches:
            found = interleaved(contest.batched(name), budget)
            row[name] = report(f"{label}: {name[:26]}", found, contest.count(name))
        if model.nv <= FUSED_UP_TO:
            repetitions = 2000 // model.nv + 50
            for name in ("inverse_dynamics", "forward_dynamics"):
                found = interleaved(contest.single(name, repetitions), budget)
                row[f"single {name}"] = report(f"{label}: one {name}", found, repetitions)
    results["redocking"] = redocking(budget)
    results["compiling"] = compiling()
    results["exponents"] = growth(results)
    return results
