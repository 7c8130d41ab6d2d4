"""Environments of Gymnasium: many bodies together, against as many single environments."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np

import modurob as mr
import modurob.environments

BODIES, QUICK_BODIES, ACTIONS = 256, 16, 20


def run(quick: bool) -> dict[str, Any]:
    """Milliseconds of CPU time for an action of all bodies, and the ratio."""
    count, rng = QUICK_BODIES if quick else BODIES, np.random.default_rng(0)
    body, sizes = mr.examples.snake(6), rng.integers(4, 9, count).tolist()
    others = [mr.Organism.random("backbone", size, rng) for size in sizes]
    together, different = (
        gymnasium.make_vec("modurob/Walk-v0", num_envs=count, organism=organism)
        for organism in (body, others)
    )
    alone = [gymnasium.make("modurob/Walk-v0", organism=body) for _ in range(count)]
    for k, env in enumerate(alone):
        env.reset(seed=k)
    seconds = {"single environments": 0.0, "together": 0.0, "together, different bodies": 0.0}
    for env in (together, different):
        env.reset(seed=0)
        env.step(env.action_space.sample())
    for _ in range(ACTIONS):  # interleaved
        actions = together.action_space.sample()
        begin = [time.process_time()]
        for env, action in zip(alone, actions, strict=True):
            env.step(action)
        begin.append(time.process_time())
        together.step(actions)
        begin.append(time.process_time())
        different.step(different.action_space.sample())
        begin.append(time.process_time())
        for name, spent in zip(seconds, np.diff(begin), strict=True):
            seconds[name] += float(spent)
    milliseconds = {name: 1e3 * total / ACTIONS for name, total in seconds.items()}
    ratio = milliseconds["single environments"] / milliseconds["together"]
    for name, each in milliseconds.items():
        print(f"{name:<28} {each:8.2f} ms for {count} bodies")
    print(f"ratio {ratio:.0f}")
    return {"bodies": count, "cpu_milliseconds": milliseconds, "ratio": ratio}
