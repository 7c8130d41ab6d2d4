"""Promises and certificates of laws with designed gains over random bodies; run by hand.

    python tools/promises.py --jobs 16 --log promises.jsonl
    python tools/promises.py --first 200 --bodies 60

Each body gets every such law with default gains. A promise is kept, or states a reason; a
certificate that says "guaranteed" is tried from 50 states. Bodies depend on their number alone. A
log holds one line for each body; bodies that are in it already are not run again, so that a
campaign can be interrupted, or run in parts. The summary counts the bodies of the range. Exits
with 1 if a certificate is false, or a promise is missed without a reason.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import multiprocessing
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from modurob import Model, ModurobError, Organism, examples, simulate
from modurob.control import (
    ComputedTorque,
    Controller,
    IndependentPid,
    Lqr,
    PdGravity,
    PidLinearized,
    PolePlacement,
)
from modurob.control.closed_loop import rehearsed

SAMPLE_S = 0.005
DESIGNED = (ComputedTorque, PolePlacement, PidLinearized, PdGravity, IndependentPid, Lqr)
STATES = 50
NEAR = 1e-3  # [rad, m] "close to the set point"
TIME_CONSTANTS = 10.0  # of the slowest error, after which a tried state has to be close
FAR_FACTOR = 3.0  # longer from far away, where decay may be slower
LEFT = 0.05  # of the largest error: what may be left then
LONGEST_S = 20.0
KINDS = ("dyads", "physical", "SuperBot tree", "arm", "free base", "friction")


def body(number: int) -> tuple[str, Model]:
    """The kind and the model of a random body."""
    rng, kind = np.random.default_rng(number), KINDS[number % len(KINDS)]
    modules = "backbone" if rng.random() < 0.5 else "scout"
    some = Organism.random(modules, int(rng.integers(3, 9)), rng)
    if kind == "dyads":
        return kind, some.model()
    if kind == "physical":
        return kind, some.model("physical")
    if kind == "SuperBot tree":
        branches, length = rng.integers(1, 3, size=2)
        tree = examples.superbot_tree(branches=int(branches), length=int(length), rng=rng)
        return kind, tree.model("physical")
    if kind == "arm":
        word = "".join(rng.choice(list("ab"), int(rng.integers(2, 6)))) + rng.choice(["", "c"])
        return kind, examples.arm(word).model("physical")
    if kind == "free base":
        few = Organism.random(modules, int(rng.integers(2, 5)), rng)
        return kind, few.model("physical", base="free")
    few = Organism.random(modules, int(rng.integers(2, 4)), rng)
    rough = few.with_parameters(viscous=rng.uniform(0.0, 1.0), coulomb=rng.choice([0.0, 0.05]))
    return kind, rough.model("physical")


def is_false(law: Controller) -> str:
    """Text of a certificate that does not come true; empty when it does, or claims nothing."""
    found, model = law.certificate(), law.model
    if not found.guaranteed:
        return ""
    rng, n = np.random.default_rng(1), len(model.joint_names)
    far = found.claim.startswith("from any state")
    if far:
        q = np.array([model.random_configuration(rng) for _ in range(STATES)])
        v = rng.standard_normal((STATES, model.nv))
    else:
        q = model.neutral() + NEAR * rng.standard_normal((STATES, n))
        v = NEAR * rng.standard_normal((STATES, n))
    time = min(LONGEST_S, TIME_CONSTANTS * (FAR_FACTOR if far else 1.0) / found.rate)
    way = rehearsed(law, np.zeros((STATES, n)), q, v, time)
    left = np.abs(way.q[-1]).max(axis=1) / np.abs(way.q).max(axis=(0, 2))
    most = min(1.0, max(LEFT, 3 * np.exp(-found.rate * time)))  # a slow one is cut
    if (way.diverged or left.max() > most) and law.sample_time is None:
        # equal steps may be too long for a loop that is stiff and has no clock: resolve it
        aim, rows = np.zeros(n), time / 50
        runs = [
            simulate(model, a, b, time, copy.copy(law), "Radau", reference=aim, record=rows).q
            for a, b in zip(q, v, strict=True)
        ]
        left = np.array([np.abs(run[-1]).max() / np.abs(run).max() for run in runs])
        return f"{found}\n{left.max():.2g} left" if left.max() > most else ""
    return f"{found}\n{left.max():.2g} left" if way.diverged or left.max() > most else ""


def tried(number: int, sample_time: float) -> dict[str, Any]:
    """Outcome of each law for a body, and the texts of what is wrong."""
    began = time.monotonic()
    kind, model = body(number)
    outcomes: dict[str, str] = {}
    texts: list[str] = []
    wrong: list[str] = []
    for law_class in DESIGNED if model.joint_names else ():
        name = law_class.__name__
        try:
            law = law_class(model, sample_time=sample_time)
            promise = law.promise()
        except ModurobError as error:
            outcomes[name] = f"refused: {str(error)[:60]}"
            continue
        reason = promise.reasons[0].split(":")[0].split(" of ")[0] if promise.reasons else ""
        outcomes[name] = "kept" if promise.kept else reason or "NO REASON"
        texts.append(str(promise))
        if not promise.kept and not reason:
            wrong.append(f"body {number} ({kind}): {promise}")
        false = [is_false(law)]
        if law_class.scope == "global" and law_class is not PidLinearized:
            false.append(is_false(law_class(model)))
        wrong += [f"body {number} ({kind}): FALSE CERTIFICATE {text}" for text in false if text]
    return {
        "body": number,
        "kind": kind,
        "sample_time": sample_time,
        "laws": outcomes,
        "promises": texts,
        "wrong": wrong,
        "seconds": round(time.monotonic() - began, 1),
    }


def summary(rows: list[dict[str, Any]]) -> str:
    """Counts by law and by kind of body, and of what is wrong."""
    by_law: defaultdict[str, Counter[str]] = defaultdict(Counter)
    by_kind: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in rows:
        for law, outcome in row["laws"].items():
            by_law[law][outcome] += 1
            by_kind[row["kind"], law][outcome] += 1
    lines = [f"{k[0]:14} {k[1]:15} {_counts(found)}" for k, found in sorted(by_kind.items())]
    lines += ["", *(f"{law:15} {_counts(found)}" for law, found in sorted(by_law.items()))]
    wrong = sum(len(row["wrong"]) for row in rows)
    empty = sum(not row["laws"] for row in rows)
    return "\n".join(
        [*lines, "", f"{len(rows)} bodies ({empty} without joints), {wrong} wrong results"]
    )


def _counts(found: Counter[str]) -> str:
    total = sum(found.values())
    return f"kept {found['kept']} of {total}" + "".join(
        f", {n} {outcome}" for outcome, n in found.most_common() if outcome != "kept"
    )


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bodies", type=int, default=200, help="how many; 200 by default")
    parser.add_argument("--first", type=int, default=0, help="number of the first body")
    parser.add_argument("--sample-time", type=float, default=SAMPLE_S, help="of all laws [s]")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--log", type=Path, help="results by body; those in it are not run again")
    given = parser.parse_args()
    numbers = range(given.first, given.first + given.bodies)
    done: dict[int, dict[str, Any]] = {}
    if given.log and given.log.exists():
        for row in map(json.loads, given.log.read_text().splitlines()):
            if row["body"] in numbers and row["sample_time"] == given.sample_time:
                done[row["body"]] = row
    left = [number for number in numbers if number not in done]
    fresh = multiprocessing.get_context("spawn")  # compiled kernels and their threads: not forked
    with ProcessPoolExecutor(given.jobs, mp_context=fresh) as pool:
        for row in pool.map(tried, left, itertools.repeat(given.sample_time)):
            done[row["body"]] = row
            if given.log:
                with given.log.open("a") as log:
                    log.write(json.dumps(row) + "\n")
            print("\n".join([f"{row['body']} ({row['seconds']} s)", *row["wrong"]]), flush=True)
    print(summary([done[number] for number in sorted(done)]))
    return 1 if any(row["wrong"] for row in done.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
