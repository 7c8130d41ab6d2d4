"""Balancing: how often and how fast each law gets there, how large a network may be, speed.

Random SuperBot trees of 20 modules (moll2006, section V), the first seeds from 1000 on whose center
of mass starts more than half a module's width off. A law has got there when the distance stays
below a tenth of what it was at the start until the run ends.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from typing import Any

import numpy as np
from scipy.optimize import nnls

from modurob import Organism, StateError, examples
from modurob.compiler.routine import cores
from modurob.distributed import LockStep, balance
from modurob.distributed.balancing import support
from modurob.distributed.balancing.laws import LAWS
from modurob.distributed.balancing.support import stability_region

TREES, QUICK_TREES = 50, 4
DURATION, QUICK_DURATION = 3.0, 2.0  # [s]
OFF = 0.5  # widths
FIRST_SEED = 1000  # the shared law was tuned on trees of smaller seeds
SIZES, QUICK_SIZES = (100, 1000, 10_000), (100, 1000)
CONTACT_SETS, QUICK_CONTACT_SETS, POINTS = 1000, 50, 6
BORDER = 1e-5  # [m] points this close to the border may go either way


def random_trees(count: int) -> list[tuple[int, Organism]]:
    """Seeds and trees whose center is off by more than `OFF`."""
    found: list[tuple[int, Organism]] = []
    seed = FIRST_SEED
    while len(found) < count:
        tree = examples.superbot_tree(4, 5, np.random.default_rng(seed))
        model = tree.model("physical")
        width = tree.kind(tree.base).size
        if np.linalg.norm(model.center_of_mass(model.neutral())[:2]) > OFF * width:
            found.append((seed, tree))
        seed += 1
    return found


def laws(quick: bool) -> dict[str, Any]:
    """How often, how fast, and what is left. Trees are shared among processes."""
    trees = random_trees(QUICK_TREES if quick else TREES)
    duration = QUICK_DURATION if quick else DURATION
    results: dict[str, Any] = {"trees": len(trees), "seeds": [seed for seed, _ in trees]}
    with ProcessPoolExecutor(cores(), get_context("spawn")) as pool:
        for law in LAWS:
            trials = pool.map(_trial, [tree for _, tree in trees], repeat(law), repeat(duration))
            times, firsts, left = np.array(list(trials)).T
            there = np.isfinite(times)
            median = float(np.median(times))
            results[law] = {
                "got_there": int(there.sum()),
                "median_seconds": median if np.isfinite(median) else None,
                "crossed": int(np.isfinite(firsts).sum()),
                "median_first_seconds": float(np.median(firsts)),
                "median_share_left": float(np.median(left)),
                "seconds": [float(x) if np.isfinite(x) else None for x in times],
            }
            print(
                f"{law:<9} got there {there.sum():2} of {len(trees)}, median {median:5.2f} s; "
                f"first below a tenth {np.isfinite(firsts).sum():2} of {len(trees)}, median "
                f"{np.median(firsts):.2f} s; left {100 * np.median(left):.2g} %",
                flush=True,
            )
    papers = [results[law]["median_seconds"] or np.inf for law in LAWS if law != "shared"]
    shared = results["shared"]["median_seconds"] or np.inf
    results["times_faster_than_the_papers_best"] = (
        float(min(papers) / shared) if np.isfinite(min(papers)) else None
    )
    return results


def _trial(tree: Organism, law: str, duration: float) -> tuple[float, float, float]:
    """Seconds until it stays there, until it is there first; share of the distance left."""
    run = balance(tree, law, duration=duration)
    left = run.distance[run.t > run.t[-1] - 0.5].mean() / run.distance[0]
    reached = np.inf if run.reached is None else run.reached
    first = np.inf if run.first_reached is None else run.first_reached
    return reached, first, left


def speeds(quick: bool) -> dict[str, float]:
    """Simulated seconds for each second of one core, alone; the best of three runs."""
    [(_, tree)] = random_trees(1)
    found = {}
    for law in LAWS:
        runs = [balance(tree, law, duration=QUICK_DURATION if quick else DURATION) for _ in "123"]
        found[law] = max(run.real_time for run in runs)
        print(f"{law:<9} {found[law]:.2f} simulated seconds in a second of one core", flush=True)
    return found


def networks(quick: bool) -> dict[str, float]:
    """Rounds a second of the mass network alone, everybody sending in every round."""
    found = {}
    for size in QUICK_SIZES if quick else SIZES:
        rng = np.random.default_rng(0)
        organism = Organism.random("superbot_light", size, rng)
        network = LockStep(organism, world=False)
        q = rng.uniform(-1, 1, len(network.joint_names))
        network.measure(q)
        rounds, begin = 0, time.perf_counter()
        while network.round():  # the last one is silent
            rounds += 1
        found[str(size)] = (rounds + 1) / (time.perf_counter() - begin)
        print(
            f"{size:6} modules: {found[str(size)]:8.0f} rounds a second; all know all after "
            f"{rounds} rounds",
            flush=True,
        )
    return found


def regions(quick: bool) -> dict[str, int]:
    """Stability regions against force balances by nonnegative least squares."""
    rng = np.random.default_rng(0)
    counts = dict.fromkeys(("sets", "points", "stable", "infeasible", "clamped", "disagree"), 0)
    for _ in range(QUICK_CONTACT_SETS if quick else CONTACT_SETS):
        k = int(rng.integers(1, 6))
        normal = np.array([0, 0, 1.0]) + rng.normal(0, 0.4, (k, 3))
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        place = rng.uniform(-1, 1, (k, 3)) * [1, 1, 0.3]
        contacts = np.hstack([place, normal, rng.uniform(0, 0.9, (k, 1))])
        counts["sets"] += 1
        try:
            region = stability_region(contacts)
        except StateError:
            counts["clamped"] += 1
            continue
        counts["infeasible"] += not region.feasible
        rows = np.vstack(support.pyramids(contacts, support.CONE_SIDES))
        for point in rng.uniform(-1.2, 1.2, (POINTS, 2)):
            stands = nnls(rows, np.array([0, 0, 1.0, 0, *point]))[1] < 1e-8
            counts["points"] += 1
            counts["stable"] += stands
            near = region.contains(point, -BORDER) and not region.contains(point, BORDER)
            counts["disagree"] += stands != region.contains(point) and not near
    print(f"stability regions: {counts}")
    return {name: int(count) for name, count in counts.items()}


def run(quick: bool) -> dict[str, Any]:
    """Measure everything and print the table."""
    return {
        "laws": laws(quick),
        "times_real_time": speeds(quick),
        "rounds_a_second": networks(quick),
        "regions": regions(quick),
    }
