"""A body in motion, and a body that changes while it moves.

First the crab falls under gravity, with its energy and its pictures. Then it floats, lets go of a
claw, and a new module comes flying and docks: the equations change in the middle of the run, the
momentum of the whole does not. Last, a thousand crabs at once.

Run it with `python examples/04_simulate.py`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import modurob as mr

DRIFT = 1e-6  # [J] of an adaptive run at tolerances of 1e-10
CONSERVED = 1e-9  # [N s, N m s] through docking and undocking
FOLDER = Path("output")


def fall(crab: mr.Organism) -> bool:
    """Two seconds of falling, with plots and a film."""
    model = crab.model(hinges="physical")
    run = mr.simulate(
        model, np.full(model.nq, 0.2), None, 2.0, integrator="DOP853", rtol=1e-10, atol=1e-10,
        record=0.01, organism=crab,
    )  # fmt: skip
    drift = float(np.abs(run.energy - run.energy[0]).max())
    print(f"falling for {run.t[-1]:g} s: energy drifts by {drift:.1e} J")
    run.plot("q", "v", "energy", path=FOLDER / "fall.png", title="The crab falls", degrees=True)
    run.animate(FOLDER / "fall.gif", fps=8, size=280)
    run.save(FOLDER / "fall.npz")
    print(f"plots: {FOLDER / 'fall.png'}\nfilm:  {FOLDER / 'fall.gif'}")
    print(f"numbers: {FOLDER / 'fall.npz'}")
    return drift < DRIFT


def change(crab: mr.Organism) -> bool:
    """Undock and dock in flight."""
    model = crab.model(hinges="physical", base="free", gravity=(0.0, 0.0, 0.0))
    v = np.zeros(model.nv)
    v[:6] = 0.05, 0.0, 0.0, 0.3, 0.2, 1.0
    events = [
        mr.Undock(0.8, "m5"),
        mr.Dock(1.6, "m3", 3, "new", 4, approach=(0.0, 0.0, 0.4, 0.0, 0.0, 0.0)),
    ]
    run = mr.simulate(model, None, v, 2.4, events=events, organism=crab, record=0.02)
    print("\nfloating, with two events")
    for line in run.audit:
        print(f"  {line}")
    run.picture(FOLDER / "change.png", [0.0, 1.2, 2.0], size=300)
    print(f"pictures: {FOLDER / 'change.png'}")
    errors = [np.abs(entry.momentum_after - entry.momentum_before).max() for entry in run.audit]
    return max(errors) < CONSERVED and all(entry.energy_lost > -1e-9 for entry in run.audit)


def thousand(crab: mr.Organism) -> None:
    """Many initial states in one call."""
    model = crab.model().compile()
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (1000, model.nq))
    begin = time.perf_counter()
    run = mr.simulate(model, q, None, 1.0, integrator="RK4", dt=1e-3, record=0.1)
    seconds = time.perf_counter() - begin
    spread = np.std(run.q[-1], axis=0)
    print(f"\n{len(q)} crabs for a second, compiling included: {seconds:.2f} s")
    print(f"their joints have spread by {', '.join(f'{x:.2f}' for x in spread)} rad")


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    crab = mr.examples.crab()
    good = fall(crab)
    good = change(crab) and good
    thousand(crab)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
