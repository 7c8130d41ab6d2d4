"""Names and units of the columns of a trajectory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modurob.model import Model


class Column(NamedTuple):
    """One line of a plot, one column of a table."""

    name: str
    unit: str


BASE_Q = (*(Column(f"base {x}", "m") for x in "xyz"), *(Column(f"base q{x}", "1") for x in "xyzw"))
BASE_V = (
    *(Column(f"base v{x}", "m/s") for x in "xyz"),
    *(Column(f"base w{x}", "rad/s") for x in "xyz"),
)
BASE_A = tuple(Column(c.name.replace("v", "a"), c.unit + "²") for c in BASE_V)
BASE_TAU = (
    *(Column(f"base f{x}", "N") for x in "xyz"),
    *(Column(f"base n{x}", "N m") for x in "xyz"),
)
MOMENTUM = (*(Column(f"p{x}", "N s") for x in "xyz"), *(Column(f"L{x}", "N m s") for x in "xyz"))
QUANTITIES = {"q": "position", "v": "velocity", "a": "acceleration", "tau": "torque"}
UNITS = {"q": ("rad", "m"), "v": ("rad/s", "m/s"), "a": ("rad/s²", "m/s²"), "tau": ("N m", "N")}
BASES = {"q": BASE_Q, "v": BASE_V, "a": BASE_A, "tau": BASE_TAU}


def columns(model: Model, quantity: str) -> list[Column]:
    """Names and units of q, v, a or tau."""
    turning, sliding = UNITS[quantity]
    joints = [
        Column(name, sliding if slides else turning)
        for name, slides in zip(model.joint_names, model.prismatic.tolist(), strict=True)
    ]
    return [*(BASES[quantity] if model.free_base else ()), *joints]


def channel_columns(model: Model, name: str, array: np.ndarray) -> list[Column]:
    """Names of a channel's columns: the joints', where it has as many."""
    count = int(np.prod(array.shape[1:], dtype=int))
    if count == 1:
        return [Column(name, "")]
    if array.shape[1:] == (model.nv,):
        return [Column(c.name, "") for c in columns(model, "v")]
    if array.shape[1:] == (model.nq,):
        return [Column(c.name, "") for c in columns(model, "q")]
    return [Column(f"{name}[{k}]", "") for k in range(count)]
