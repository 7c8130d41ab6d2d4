"""Distances of random bodies with random gaits on the ground, against MuJoCo.

``python tools/ground_campaign.py [--bodies 100] [--duration 10] [--kind backbone] [--jobs 4]``
prints rank correlations and medians of the distances: ours against MuJoCo's, ours at half the step,
and MuJoCo with contacts of half and twice the time constant against itself.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.on_ground import FRICTION, Sines, on_ground

from modurob import Ground, Organism, simulate

STEP = 1e-3  # [s]
FEWEST, MOST = 4, 9  # modules of a body
# PD control, torque limit and amplitude; links of SuperBots are light, so that more damping is
# unstable at 1 ms, and with larger motions of three joints a module they tumble chaotically
GAINS = {"backbone": (10.0, 0.2, 5.0, 0.6), "superbot": (4.0, 0.04, 2.0, 0.3)}


def distances(kind: str, seed: int, duration: float) -> dict[str, float]:
    """Horizontal distance of one body in each engine. [m]"""
    rng = np.random.default_rng(seed)
    hinges = "dyad" if kind == "backbone" else "physical"
    count = int(rng.integers(FEWEST, MOST) if kind == "backbone" else rng.integers(2, 5))
    organism = Organism.random(kind, count, rng)
    model = organism.model(hinges=hinges, base="free")
    phases, gains = rng.uniform(0, 2 * np.pi, (1, len(model.joint_names))), GAINS[kind]
    gait = Sines(model, phases, *gains)
    ground = Ground(friction=FRICTION, lift=True)
    found = {}
    for name, step in (("ours", STEP), ("ours, half the step", STEP / 2)):
        one = Sines(model, phases[0], *gains)
        run = simulate(
            model, None, None, duration, one, "SemiImplicitEuler", dt=step, ground=ground,
            record=duration,
        )  # fmt: skip
        found[name] = run.q[-1, :3] - run.q[0, :3]
    for name, solref in (("MuJoCo", 0.02), ("MuJoCo, solref 0.01", 0.01), ("MuJoCo, 0.04", 0.04)):
        peer = on_ground(organism, hinges, gait, solref)
        found[name] = peer.rollout(gait, duration, STEP, run.q[0, 2])[0] - run.q[0, :3]
    return {name: float(np.hypot(*place[:2])) for name, place in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bodies", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first body")
    parser.add_argument("--duration", type=float, default=10.0)
    parser.add_argument("--kind", default="backbone", choices=tuple(GAINS))
    parser.add_argument("--jobs", type=int, default=1, help="processes, each on one core")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.bodies)
    ask = partial(distances, options.kind, duration=options.duration)
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(ask, seeds))
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    for name, column in table.items():
        print(f"{name:<22} median {np.median(column):.4f} m")
    for one, other in (
        ("ours", "MuJoCo"), ("ours", "ours, half the step"),
        ("MuJoCo", "MuJoCo, solref 0.01"), ("MuJoCo", "MuJoCo, 0.04"),
    ):  # fmt: skip
        rank = spearmanr(table[one], table[other])[0]
        print(f"rank correlation of {one} with {other}: {rank:.3f}")


if __name__ == "__main__":
    main()
