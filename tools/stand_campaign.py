"""Random SuperBot trees that stand on the ground, are pushed, step, and lose messages and modules.

``python tools/stand_campaign.py [--seed 1000] [--count 20] [--jobs 1] [--tasks stand,walk]
[--loss 0.3] [--slope 3]`` prints a line for each run, and the counts. A robot has fallen, by the
simulated body alone, when a body without a sole touches the ground, the base tilts by more than 30
degrees, or the center sinks to half its height; legs that died may lie. Tasks:

* ``stand``: three or four legs; a push at 1 s. Good: not fallen, no sole slips by 15 mm.
* ``walk``: four legs; steps of the first two feet. Good: not fallen, no sole slips by 15 mm, steps
  end within 15 mm of what was asked for.
* ``walk_all``: the same with steps of all four feet.
* ``bump``: one step, and a push along it while the foot is in the air. Good: not fallen.
* ``die``: four legs; a module of a leg dies at 1 s. Good: not fallen.
* ``freeze``: likewise, its program stops, and its servos hold.

Trees for which no first posture is found are counted apart.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any

import numpy as np

from modurob import Ground, Organism, StateError, examples
from modurob.distributed.balancing.faults import Fault
from modurob.distributed.balancing.on_ground import Impulse, Stood, stand
from modurob.distributed.balancing.stance import feet_of

PUSH = 0.3  # [N s/kg] of the whole mass, within 50 ms at the base, in a random direction
BUMP, BUMP_S = 0.45, 1.9  # [N s/kg, s] while a foot is in the air
SHIFT = 0.04  # [m] of each step
SLIPPED = 0.015  # [m] of a sole on the ground
TASKS = ("stand", "walk", "walk_all", "bump", "die", "freeze")


def run_one(job: tuple[str, int, float, float]) -> tuple[str, str, str]:
    """Task, verdict, and a line about one run."""
    task, seed, degrees, loss = job
    rng = np.random.default_rng(seed)
    legs = 3 + seed % 2 if task == "stand" else 4
    tree = examples.superbot_walker(legs, 2, rng)
    slope, turn = np.tan(np.radians(degrees)), rng.uniform(0, 2 * np.pi)
    way = np.array([np.cos(turn), np.sin(turn)])
    head = f"{task:8s} seed {seed:4d}  {legs} legs  slope {degrees:g} deg  loss {loss:g}"
    try:
        run = stand(
            tree, ground=Ground(slope=(slope, 0.0)), rng=rng, loss=loss,
            **_options(task, seed, tree, way, PUSH * tree.model("physical").mass.sum()),
        )  # fmt: skip
    except StateError as error:
        return task, "no posture", f"{head}  {error}"
    verdict = _verdict(task, run)
    slip = np.rint(1e3 * run.slip).astype(int).tolist()
    return task, verdict, (
        f"{head}  tilt {np.degrees(run.tilt.max()):4.1f} deg (end {np.degrees(run.tilt[-1]):4.1f}) "
        f"height {np.min(run.height) / run.height[0]:.2f}  steps {run.steps_done} of "
        f"{len(run.steps)}  slip {slip} mm  {verdict}{'' if run.fallen is None else ': '}"
        f"{run.fallen or ''}"
    )  # fmt: skip


def _options(task: str, seed: int, tree: Organism, way: np.ndarray, push: float) -> dict[str, Any]:
    feet = [foot.module for foot in feet_of(tree)]
    if task == "stand":
        return {"push": Impulse(1.0, (*(push * way).tolist(), 0.0)), "duration": 2.5}
    if task in ("walk", "walk_all"):
        return {"steps": [(foot, SHIFT * way) for foot in feet[: 2 if task == "walk" else 4]]}
    if task == "bump":
        vector, steps = (*(BUMP / PUSH * push * way).tolist(), 0.0), [(feet[0], SHIFT * way)]
        return {"steps": steps, "push": Impulse(BUMP_S, vector), "duration": 5.0}
    module = tree.modules[1 + seed % (len(tree) - 1)]
    return {"faults": [Fault(1.0, module, task)], "duration": 4.0}


def _verdict(task: str, run: Stood) -> str:
    if run.fallen is not None:
        return "fallen"
    if task in ("bump", "die", "freeze"):
        return "good"
    return "good" if run.slip.max() < SLIPPED and run.steps_done == len(run.steps) else "stands"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="stand,walk", help=f"of {', '.join(TASKS)}")
    parser.add_argument("--count", type=int, default=20, help="of trees for each task")
    parser.add_argument("--slope", type=float, default=0.0, help="degrees")
    parser.add_argument("--loss", type=float, default=0.0, help="chance that a message is lost")
    parser.add_argument("--seed", type=int, default=0, help="of the first tree")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    seeds = range(options.seed, options.seed + options.count)
    tasks = [
        (t, s, options.slope, options.loss) for s, t in product(seeds, options.tasks.split(","))
    ]
    counts = Counter[tuple[str, str]]()
    with ProcessPoolExecutor(options.jobs) as pool:
        for task, verdict, line in pool.map(run_one, tasks):
            print(line, flush=True)
            counts[task, verdict] += 1
    for (task, verdict), number in sorted(counts.items()):
        print(f"{task}: {number} {verdict}", flush=True)


if __name__ == "__main__":
    main()
