"""Random SuperBot trees that stand on the ground, are pushed, and walk two steps.

``python tools/stand_campaign.py [--stand 20] [--walk 10] [--slope 4] [--jobs 1]`` prints a line for
each run and a count. A robot has fallen, by the simulated body alone, when a body without a sole
touches the ground, the base tilts by more than 30 degrees, or the center sinks to half its height.
Runs count when it does not fall, no sole slips by 15 mm, and both steps end within 15 mm of what
was asked for. Trees for which no first posture is found are named and replaced.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from modurob import Ground, StateError, examples
from modurob.distributed.balancing import Impulse, Stood, feet_of, stand

PUSH = 0.3  # [N s/kg] of the whole mass, within 50 ms at the base, in a random direction
SHIFT = 0.04  # [m] of each of two steps
SLIPPED = 0.015  # [m] of a sole on the ground


def run_one(job: tuple[str, int, float]) -> tuple[Any, ...] | None:
    """Numbers of one run; None where the tree has no posture."""
    task, seed, degrees = job
    rng = np.random.default_rng(seed)
    legs = 4 if task == "walk" else 3 + seed % 2
    tree = examples.superbot_walker(legs, 2, rng)
    slope, turn = np.tan(np.radians(degrees)), rng.uniform(0, 2 * np.pi)
    ground, way = Ground(slope=(slope, 0.0)), np.array([np.cos(turn), np.sin(turn)])
    feet, options = [foot.module for foot in feet_of(tree)], {}
    if task == "walk":
        options["steps"] = [(foot, SHIFT * way) for foot in feet[:2]]
    else:
        mass = tree.model("physical").mass.sum()
        options["push"] = Impulse(1.0, (*(PUSH * mass * way).tolist(), 0.0))
        options["duration"] = 2.5
    try:
        run = stand(tree, ground=ground, rng=rng, **options)
    except StateError as error:
        return (task, seed, degrees, legs, f"no run: {error}", np.nan, np.nan, 0, [], [])
    return (task, seed, degrees, legs, _verdict(run), *_numbers(run))


def _verdict(run: Stood) -> str:
    if run.fallen is not None:
        return run.fallen
    return "good" if run.slip.max() < SLIPPED and run.steps_done == len(run.steps) else "stands"


def _numbers(run: Stood) -> tuple[float, float, int, list[int], list[int]]:
    after = int(np.searchsorted(run.t, 0.4))  # the first rounds have settled
    moved = np.linalg.norm((run.soles[-1] - run.soles[after])[:, :2], axis=-1)
    lowest = float(np.min(run.height) / run.height[0])
    slip, moved = (np.rint(1e3 * x).astype(int).tolist() for x in (run.slip, moved))
    return float(np.degrees(run.tilt.max())), lowest, run.steps_done, moved, slip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stand", type=int, default=20)
    parser.add_argument("--walk", type=int, default=10)
    parser.add_argument("--slope", type=float, default=0.0, help="degrees")
    parser.add_argument("--seed", type=int, default=0, help="of the first tree")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor(options.jobs) as pool:
        for task, count in (("stand", options.stand), ("walk", options.walk)):
            good = tried = 0
            seeds = range(options.seed, options.seed + 3 * count)
            jobs = ((task, seed, options.slope) for seed in seeds)
            while tried < count:
                batch = [next(jobs) for _ in range(min(options.jobs, count - tried))]
                for row in pool.map(run_one, batch):
                    name, seed, degrees, legs, verdict, tilt, lowest, done, moved, slip = row
                    print(f"{name:5s} seed {seed:3d}  {legs} legs  slope {degrees:g} deg  "
                          f"tilt {tilt:5.1f} deg  height {lowest:.2f}  steps {done}  "
                          f"soles moved {moved}, slipped {slip} mm  {verdict}",
                          flush=True)  # fmt: skip
                    if not verdict.startswith("no run"):
                        tried += 1
                        good += verdict == "good"
            print(f"{task}: {good} of {count}", flush=True)


if __name__ == "__main__":
    main()
