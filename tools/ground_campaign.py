"""Distances of random bodies with random gaits on the ground, against MuJoCo.

``python tools/ground_campaign.py [--bodies 100] [--duration 10] [--kinds superbot] [--jobs 4]``
runs each body from its start, and from starts that are disturbed by 1e-5 rad in every joint, with
modurob at several steps and with MuJoCo with several contacts. It prints the median distance and
the rank correlation with MuJoCo with hard contacts at the last of the steps: of one run, and of the
median of five disturbed runs, which is the distance of a body that is chaotic. Lines of the same
engine and other disturbed starts are the best that another engine can reach. The last lines are of
all kinds of bodies together. ``--duration 3 --reference "rigid ground"`` compares both engines with
impulses that obey Coulomb's law (`tests/oracles/rigid_contact.py`; 10 s a body).
Give the shortest step last: at 1 ms neither engine resolves SuperBots, whose links are light.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import mujoco
import numpy as np
from scipy.stats import rankdata

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from benchmarks.on_ground import FRICTION, Sines, on_ground

from modurob import Ground, Organism, simulate
from modurob.sim.mujoco_engine import CONES
from oracles.rigid_contact import rigid_motion

EARLY = 1.0, 3.0  # [s]
FEWEST, MOST = 4, 9  # modules of a body
# PD control, torque limit and amplitude; links of SuperBots are light, so that more damping is
# unstable at 1 ms, and with larger motions of three joints a module they tumble chaotically
GAINS = {"backbone": (10.0, 0.2, 5.0, 0.6), "superbot": (4.0, 0.04, 2.0, 0.3)}
DISTURBANCE = 1e-5  # [rad] largest of each joint at the start
STARTS = 5  # disturbed ones, whose median distance counts
OTHERS = ", other starts"
STEADY = 0.05  # [m] between distances of disturbed runs: a body that is not chaotic
RESAMPLES, CONFIDENCE = 4000, 0.95
Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]
PEER = "MuJoCo"
# time constant of contacts [s], whether the cone of friction is a pyramid, which of the steps
PEERS = {
    PEER: (0.002, False, -1), "MuJoCo, first step": (0.002, False, 0),
    "MuJoCo, 1 ms": (0.001, False, -1), "MuJoCo, 4 ms": (0.004, False, -1),
    "MuJoCo, 20 ms": (0.02, False, -1), "MuJoCo, pyramids": (0.002, True, -1),
}  # fmt: skip
RIGID, RIGID_STEP_S = "rigid ground", 1e-3  # impulses of Coulomb's law, of the undisturbed start


def places(
    kind: str, seed: int, duration: float, steps: tuple[float, ...],
    peers: tuple[str, ...] = tuple(PEERS), damping: tuple[float, ...] = (),
) -> dict[str, np.ndarray]:  # fmt: skip
    """(1 + STARTS, 3, 2) displacements of one body along the ground, twice early and at the end.

    The first row is of the undisturbed start. [m]
    """
    rng = np.random.default_rng(seed)
    hinges = "dyad" if kind == "backbone" else "physical"
    count = int(rng.integers(FEWEST, MOST) if kind == "backbone" else rng.integers(2, 5))
    organism = Organism.random(kind, count, rng)
    model = organism.model(hinges=hinges, base="free")
    phases = rng.uniform(0, 2 * np.pi, (1, len(model.joint_names)))
    disturbance = rng.uniform(-DISTURBANCE, DISTURBANCE, (1 + 2 * STARTS, phases.size))
    disturbance[0] = 0.0
    ground, times = Ground(friction=FRICTION, lift=True), np.minimum((*EARLY, duration), duration)
    start = np.tile(model.neutral(), (len(disturbance), 1))
    start[:, model.joint_slice_q] += disturbance
    gait = Sines(model, np.repeat(phases, len(start), axis=0), *GAINS[kind])
    found, height = {}, 0.0
    rows = {f"modurob, {1e3 * step:g} ms": (step, ground) for step in steps}
    rows |= {f"modurob, {c:g} s/m": (steps[-1], replace(ground, damping=c)) for c in damping}
    for name, (step, ground) in rows.items():
        run = simulate(
            model, start, None, duration, gait, "SemiImplicitEuler", dt=step, ground=ground,
            record=[*times],
        )  # fmt: skip
        height, at = run.q[0, 0, 2], run.q[np.searchsorted(run.t, times), :, :2]
        _split(found, name, at.swapaxes(0, 1) - run.q[0, 0, :2])
    if RIGID in peers:
        start[0, 2] = height
        law = Sines(model, phases[0], *GAINS[kind])
        at = rigid_motion(model, start[0], np.zeros(model.nv), law, FRICTION, RIGID_STEP_S, times)
        found[RIGID] = np.repeat(at[None, :, :2] - start[0, :2], 1 + STARTS, axis=0)
    for name in filter(PEERS.get, peers):
        solref, pyramid, which = PEERS[name]
        starts = len(start) if name == PEER else 1 + STARTS
        gait = Sines(model, np.repeat(phases, starts, axis=0), *GAINS[kind])
        peer, step = on_ground(organism, hinges, gait, solref), steps[which]
        peer.model.opt.impratio = float(CONES["impratio"])
        if pyramid:
            peer.model.opt.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
        at = peer.rollout(gait, duration, step, height, disturbance[:starts])
        _split(found, name, at[:, np.round(times / step).astype(int) - 1, :2])
    return found


def _split(found: dict[str, np.ndarray], name: str, rows: np.ndarray) -> None:
    """Keep displacements (starts, 3, 2) under a name; other starts have one of their own."""
    found[name] = rows[: 1 + STARTS]
    if len(rows) > 1 + STARTS:
        found[name + OTHERS] = rows[STARTS:]


def interval(a: np.ndarray, b: np.ndarray, measure: Measure) -> str:
    """A measure of two (bodies,) distances and its bootstrap interval, drawn with replacement."""
    draws = np.random.default_rng(0).integers(len(a), size=(RESAMPLES, len(a)))
    edge = (1 - CONFIDENCE) / 2
    low, high = np.quantile(measure(a[draws], b[draws]), [edge, 1 - edge])
    return f"{measure(a[None], b[None])[0]:.3f} ({low:.3f} to {high:.3f})"


def correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(draws,) rank correlations of (draws, bodies) distances."""
    x, y = (rankdata(each, axis=1) - 0.5 * (each.shape[1] + 1) for each in (a, b))
    return np.sum(x * y, axis=1) / np.sqrt(np.sum(x * x, axis=1) * np.sum(y * y, axis=1))


def ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(draws,) ratios of median distances."""
    return np.median(a, axis=1) / np.median(b, axis=1)


def report(table: dict[str, np.ndarray], steps: tuple[float, ...], other: str = PEER) -> None:
    """Print medians and rank correlations of (bodies, 1 + STARTS, 3, 2) displacements.

    Args:
        other: What all others are compared with.
    """
    lengths = {name: np.linalg.norm(x[:, :, -1], axis=-1) for name, x in table.items()}
    # of one run, and of the median of disturbed runs
    pairs = {name: (x[:, 0], np.median(x[:, 1:], axis=1)) for name, x in lengths.items()}
    print(f"{'':<28}{'median':>10}{'rank correlation of one run':>34}{'of medians':>26}"
          f"{'ratio of medians':>27}{'apart at 1 s':>16}{'3 s':>12}")  # fmt: skip
    for name, pair in pairs.items():
        apart = np.linalg.norm(table[name][:, 0] - table[other][:, 0], axis=2)
        early = np.median(apart, axis=0)[:2]
        print(f"{name:<28}{np.median(pair[1]):>8.4f} m", *(
            f"{interval(*each, correlation):>30}" for each in zip(pair, pairs[other], strict=True)
        ), f"{interval(pair[1], pairs[other][1], ratio):>26}",
            f"{early[0]:>13.4f} m{early[1]:>10.4f} m")  # fmt: skip
    coarse, fine = (f"modurob, {1e3 * h:g} ms" for h in (steps[0], steps[-1]))
    for run in (coarse, fine + OTHERS):
        both = zip(pairs[fine], pairs[run], strict=True)
        found = (interval(*each, correlation) for each in both)
        print(f"'{fine}' and '{run}', one run and medians: {', '.join(found)}")
    spread = [np.ptp(lengths[name], axis=1) for name in (fine, PEER)]
    steady = np.max(spread, axis=0) < STEADY
    ours, theirs = pairs[fine][0][steady], pairs[PEER][0][steady]
    print(f"bodies whose runs end within {STEADY} m of each other in both: {steady.sum()}, rank "
          f"correlation {interval(ours, theirs, correlation)}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bodies", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first body")
    parser.add_argument("--duration", type=float, default=10.0)
    parser.add_argument("--kinds", nargs="+", default=list(GAINS), choices=tuple(GAINS))
    parser.add_argument("--steps", type=float, nargs="+", default=[1e-3, 5e-4, 2.5e-4],
                        help="[s]")  # fmt: skip
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=(*PEERS, RIGID),
                        help=f"besides '{PEER}'")  # fmt: skip
    parser.add_argument("--damping", type=float, nargs="+", default=[],
                        help="[s/m] of further grounds, at the last step")  # fmt: skip
    parser.add_argument("--reference", default=PEER, choices=(PEER, RIGID))
    parser.add_argument("--save", type=Path, help="file for displacements: FILE.KIND.npz")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each on one core")
    options = parser.parse_args()
    seeds, steps = range(options.seed, options.seed + options.bodies), tuple(options.steps)
    peers = tuple(dict.fromkeys([PEER, options.reference, *options.peers]))
    tables = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for kind in options.kinds:
            ask = partial(
                places, kind, duration=options.duration, steps=steps, peers=peers,
                damping=tuple(options.damping),
            )  # fmt: skip
            rows = list(pool.map(ask, seeds))
            tables.append({name: np.array([row[name] for row in rows]) for name in rows[0]})
            print(f"{len(rows)} bodies of {kind}, seeds {seeds[0]} to {seeds[-1]}")
            report(tables[-1], steps, options.reference)
            if options.save:
                np.savez(options.save.with_suffix(f".{kind}.npz"), **tables[-1])
    if len(tables) > 1:
        print("All together")
        table = {name: np.concatenate([x[name] for x in tables]) for name in tables[0]}
        report(table, steps, options.reference)


if __name__ == "__main__":
    main()
