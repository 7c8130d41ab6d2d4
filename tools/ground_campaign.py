"""Distances of random bodies with random gaits on the ground, against MuJoCo.

``python tools/ground_campaign.py [--bodies 100] [--duration 10] [--kind backbone] [--jobs 4]``
prints, for modurob at several steps and for MuJoCo at the first of them and with other contacts
than its default ones: the median distance, its rank correlation with that of MuJoCo at the last of
the steps, and how far apart both are after 3 s, before chaos has parted all runs alike. Give the
shortest step last: at 1 ms neither engine resolves SuperBots, whose links are light.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import mujoco
import numpy as np
from scipy.stats import spearmanr

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.on_ground import FRICTION, Sines, on_ground

from modurob import Ground, Organism, simulate

EARLY = 3.0  # [s]
FEWEST, MOST = 4, 9  # modules of a body
# PD control, torque limit and amplitude; links of SuperBots are light, so that more damping is
# unstable at 1 ms, and with larger motions of three joints a module they tumble chaotically
GAINS = {"backbone": (10.0, 0.2, 5.0, 0.6), "superbot": (4.0, 0.04, 2.0, 0.3)}
PEER = "MuJoCo"
# time constant of contacts [s], whether the cone of friction is a pyramid, which of the steps
PEERS = {
    PEER: (0.02, False, -1), "MuJoCo, first step": (0.02, False, 0),
    "MuJoCo, 0.01 s": (0.01, False, -1), "MuJoCo, 0.04 s": (0.04, False, -1),
    "MuJoCo, pyramids": (0.02, True, -1),
}  # fmt: skip


def places(
    kind: str, seed: int, duration: float, steps: tuple[float, ...]
) -> dict[str, np.ndarray]:
    """(2, 2) displacement of one body along the ground, early and at the end, each way. [m]"""
    rng = np.random.default_rng(seed)
    hinges = "dyad" if kind == "backbone" else "physical"
    count = int(rng.integers(FEWEST, MOST) if kind == "backbone" else rng.integers(2, 5))
    organism = Organism.random(kind, count, rng)
    model = organism.model(hinges=hinges, base="free")
    phases, gains = rng.uniform(0, 2 * np.pi, (1, len(model.joint_names))), GAINS[kind]
    gait, one = Sines(model, phases, *gains), Sines(model, phases[0], *gains)
    ground, times = Ground(friction=FRICTION, lift=True), [min(EARLY, duration), duration]
    found, start = {}, model.neutral()
    for step in steps:
        run = simulate(
            model, None, None, duration, one, "SemiImplicitEuler", dt=step, ground=ground,
            record=times,
        )  # fmt: skip
        start = run.q[0]
        found[f"modurob, {1e3 * step:g} ms"] = run.q[np.searchsorted(run.t, times), :2]
    for name, (solref, pyramid, which) in PEERS.items():
        peer = on_ground(organism, hinges, gait, solref)
        if pyramid:
            peer.model.opt.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
        ends = [peer.rollout(gait, t, steps[which], start[2])[0, :2] for t in times]
        found[name] = np.array(ends)
    return {name: place - start[:2] for name, place in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bodies", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first body")
    parser.add_argument("--duration", type=float, default=10.0)
    parser.add_argument("--kind", default="backbone", choices=tuple(GAINS))
    parser.add_argument("--steps", type=float, nargs="+", default=[1e-3, 5e-4, 2.5e-4],
                        help="[s]")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1, help="processes, each on one core")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.bodies)
    steps = tuple(options.steps)
    ask = partial(places, options.kind, duration=options.duration, steps=steps)
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(ask, seeds))
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    lengths = {name: np.linalg.norm(x[:, 1], axis=1) for name, x in table.items()}
    print(f"{'':<20}{'median':>10}{'rank correlation':>20}{'apart at 3 s':>16}")
    for name, x in table.items():
        apart = np.median(np.linalg.norm(x[:, 0] - table[PEER][:, 0], axis=1))
        rank = spearmanr(lengths[name], lengths[PEER])[0]
        print(f"{name:<20}{np.median(lengths[name]):>8.4f} m{rank:>20.3f}{apart:>14.4f} m")
    coarse, fine = (lengths[f"modurob, {1e3 * h:g} ms"] for h in (steps[0], steps[-1]))
    print(f"rank correlation of the first and the last step: {spearmanr(coarse, fine)[0]:.3f}")


if __name__ == "__main__":
    main()
