"""Promises and certificates of laws with designed gains over random bodies; run by hand.

    python tools/promises.py [BODIES] [FIRST]

Each body gets every such law with default gains. A promise is kept, or states a reason; a
certificate that says "guaranteed" is tried from 50 states. Prints one line for each kind of body
and law, and every false certificate; exits with 1 if there is one, or a miss without a reason.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict

import numpy as np

from modurob import Model, ModurobError, Organism, examples
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
    return f"{found}\n{left.max():.2g} left" if way.diverged or left.max() > most else ""


def main() -> int:
    """Run the campaign."""
    count, first = (int(sys.argv[k]) if len(sys.argv) > k else (200, 0)[k - 1] for k in (1, 2))
    told: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    wrong = 0
    for number in range(first, first + count):
        kind, model = body(number)
        if not model.joint_names:
            continue
        for law_class in DESIGNED:
            row = told[kind, law_class.__name__]
            try:
                law = law_class(model, sample_time=SAMPLE_S)
                promise = law.promise()
            except ModurobError as error:
                row[f"refused: {str(error)[:60]}"] += 1
                continue
            reason = promise.reasons[0].split(":")[0].split(" of ")[0] if promise.reasons else ""
            row["kept" if promise.kept else reason or "NO REASON"] += 1
            wrong += not promise.kept and not reason
            false = [is_false(law)]
            if law_class.scope == "global" and law_class.__name__ != "PidLinearized":
                false.append(is_false(law_class(model)))
            for text in filter(None, false):
                row["FALSE CERTIFICATE"], wrong = row["FALSE CERTIFICATE"] + 1, wrong + 1
                print(f"body {number} ({kind}): {text}", flush=True)
        if number % 10 == 9:
            print(f"{number - first + 1} bodies, {wrong} wrong", flush=True)
    for (kind, law_name), row in sorted(told.items()):
        print(
            f"{kind:14} {law_name:15} " + ", ".join(f"{n} {what}" for what, n in row.most_common())
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
