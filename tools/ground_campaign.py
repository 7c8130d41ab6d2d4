"""Distances of random bodies with random gaits on the ground, against MuJoCo.

``python tools/ground_campaign.py [--bodies 100] [--duration 10] [--kind superbot] [--jobs 4]``
prints, for modurob at several steps and for MuJoCo with several contacts: the median distance, its
rank correlation with that of MuJoCo with hard contacts at the last of the steps, and how far apart
both are after 1 s and 3 s. Runs that start 1e-6 rad apart show how much of a disagreement is chaos.
Give the shortest step last: at 1 ms neither engine resolves SuperBots, whose links are light.
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
from modurob.sim.mujoco_engine import CONES

EARLY = 1.0, 3.0  # [s]
FEWEST, MOST = 4, 9  # modules of a body
# PD control, torque limit and amplitude; links of SuperBots are light, so that more damping is
# unstable at 1 ms, and with larger motions of three joints a module they tumble chaotically
GAINS = {"backbone": (10.0, 0.2, 5.0, 0.6), "superbot": (4.0, 0.04, 2.0, 0.3)}
DISTURBANCE = 1e-6  # [rad] of the first joint at the start
DISTURBED = ", disturbed"
RESAMPLES, CONFIDENCE = 4000, 0.95
PEER = "MuJoCo"
# time constant of contacts [s], whether the cone of friction is a pyramid, which of the steps
PEERS = {
    PEER: (0.002, False, -1), "MuJoCo, first step": (0.002, False, 0),
    "MuJoCo, 1 ms": (0.001, False, -1), "MuJoCo, 5 ms": (0.005, False, -1),
    "MuJoCo, 20 ms": (0.02, False, -1), "MuJoCo, pyramids": (0.002, True, -1),
}  # fmt: skip


def places(
    kind: str, seed: int, duration: float, steps: tuple[float, ...],
    peers: tuple[str, ...] = tuple(PEERS),
) -> dict[str, np.ndarray]:  # fmt: skip
    """(3, 2) displacement of one body along the ground, twice early and at the end. [m]"""
    rng = np.random.default_rng(seed)
    hinges = "dyad" if kind == "backbone" else "physical"
    count = int(rng.integers(FEWEST, MOST) if kind == "backbone" else rng.integers(2, 5))
    organism = Organism.random(kind, count, rng)
    model = organism.model(hinges=hinges, base="free")
    phases = rng.uniform(0, 2 * np.pi, (1, len(model.joint_names)))
    gaits = [Sines(model, np.repeat(phases, n, axis=0), *GAINS[kind]) for n in (1, 2)]
    ground, times = Ground(friction=FRICTION, lift=True), np.minimum((*EARLY, duration), duration)
    disturbance = np.array([0.0, DISTURBANCE])
    start = np.tile(model.neutral(), (2, 1))
    start[:, model.joint_slice_q.start] += disturbance
    found, height = {}, 0.0
    for step in steps:
        run = simulate(
            model, start, None, duration, gaits[1], "SemiImplicitEuler", dt=step, ground=ground,
            record=[*times],
        )  # fmt: skip
        height, name = run.q[0, 0, 2], f"modurob, {1e3 * step:g} ms"
        at = run.q[np.searchsorted(run.t, times), :, :2] - run.q[0, 0, :2]
        found[name], found[name + DISTURBED] = at[:, 0], at[:, 1]
    for name in peers:
        solref, pyramid, which = PEERS[name]
        peer, step = on_ground(organism, hinges, gaits[0], solref), steps[which]
        peer.model.opt.impratio = float(CONES["impratio"])
        if pyramid:
            peer.model.opt.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
        twice = name == PEER
        at = peer.rollout(gaits[twice], duration, step, height, disturbance[: 1 + twice])
        at = at[:, np.round(times / step).astype(int) - 1, :2]
        found |= dict(zip((name, name + DISTURBED), at, strict=False))
    return found


def interval(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(2,) bootstrap interval of the rank correlation, bodies drawn with replacement."""
    draws = np.random.default_rng(0).integers(len(a), size=(RESAMPLES, len(a)))
    edge = (1 - CONFIDENCE) / 2
    return np.quantile([spearmanr(a[k], b[k])[0] for k in draws], [edge, 1 - edge])


def report(table: dict[str, np.ndarray], steps: tuple[float, ...]) -> None:
    """Print medians, rank correlations and differences of (bodies, 3, 2) displacements."""
    lengths = {name: np.linalg.norm(x[:, -1], axis=1) for name, x in table.items()}
    print(f"{'':<28}{'median':>10}{'rank correlation':>26}{'apart at 1 s':>16}{'3 s':>12}")
    for name, x in table.items():
        early = np.median(np.linalg.norm(x - table[PEER], axis=2), axis=0)[:2]
        rank = spearmanr(lengths[name], lengths[PEER])[0]
        low, high = interval(lengths[name], lengths[PEER])
        print(f"{name:<28}{np.median(lengths[name]):>8.4f} m{rank:>10.3f} ({low:.3f} to {high:.3f})"
              f"{early[0]:>14.4f} m{early[1]:>10.4f} m")  # fmt: skip
    coarse, fine = (f"modurob, {1e3 * h:g} ms" for h in (steps[0], steps[-1]))
    for one, other in ((coarse, fine), (fine, fine + DISTURBED)):
        print(f"rank correlation of '{one}' and '{other}': "
              f"{spearmanr(lengths[one], lengths[other])[0]:.3f}")  # fmt: skip


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
    seeds, steps = range(options.seed, options.seed + options.bodies), tuple(options.steps)
    ask = partial(places, options.kind, duration=options.duration, steps=steps)
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(ask, seeds))
    report({name: np.array([row[name] for row in rows]) for name in rows[0]}, steps)


if __name__ == "__main__":
    main()
