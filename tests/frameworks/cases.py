"""States and options of all differentiable functions, for the tests of every framework."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np

import modurob as mr
from modurob.interop.differentiable import FUNCTIONS

STATES = 2
DT = 0.01
BASES = ("fixed", "free")
NAMES = tuple(FUNCTIONS)
STEP = 1e-6  # of central differences
# relative: differences have about 1e-16 / STEP of rounding times the size of intermediate sums,
# and forces of 100 N m occur with slopes of 1
DIFFERENCES = 1e-6


@cache
def model(base: str) -> mr.Model:
    """The crab; one that is fixed has friction that `DT` is too long for, and springs."""
    free = mr.examples.crab().model(base="free")
    if base == "free":
        return free
    fixed, n = mr.examples.crab().model(), len(free.joint_names)
    passive = {"viscous": np.full(n, 2.0), "coulomb": np.full(n, 0.3), "stiffness": np.ones(n)}
    fixed = dataclasses.replace(fixed, organism=None, options=None, **passive)
    assert fixed.friction_rate.rate * DT > 1
    return fixed


def options(name: str, base: str) -> dict[str, Any]:
    given = {"forward_kinematics": {"body": model(base).body_names[-1]}, "step": {"dt": DT}}
    return given.get(name, {})


def states(name: str, base: str) -> list[np.ndarray]:
    """(STATES, n) of each input; one quaternion is not at norm 1."""
    rng, body = np.random.default_rng(5), model(base)
    q = np.array([body.random_configuration(rng) for _ in range(STATES)])
    if body.free_base:
        q[1, 3:7] *= 1.3
    rest = rng.standard_normal((2, STATES, body.nv))
    return [q, *rest][: len(FUNCTIONS[name].inputs)]


def difference(function: Any, arrays: list[np.ndarray], k: int, column: int) -> list[np.ndarray]:
    """(STATES, numbers) central differences of all outputs by a column of input k."""
    change = np.zeros(arrays[k].shape)
    change[:, column] = STEP
    above = function(*arrays[:k], arrays[k] + change, *arrays[k + 1 :])
    below = function(*arrays[:k], arrays[k] - change, *arrays[k + 1 :])
    pairs = zip(above, below, strict=True)
    return [((a - b) / (2 * STEP)).reshape(STATES, -1) for a, b in pairs]
