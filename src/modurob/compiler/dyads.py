"""The dyad tier: one kernel for each way a joint can sit on its parent, walked by a table.

A joint turns or slides (2), along x, y or z of its parent or in any other direction (4): eight
kernels for each pass of an algorithm, compiled once for all organisms. Masses, lengths, inertias
and friction are table data; docking a module or editing a number makes a new table and compiles
nothing.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import NamedTuple

import numpy as np

from modurob.compiler import driver, elimination, walks
from modurob.compiler.driver import Driver
from modurob.compiler.jit import Library, compile_ir, host
from modurob.compiler.kernels import (
    ALGORITHMS,
    CALLS,
    COULOMB,
    FIRST,
    KINDS,
    MASS,
    MOMENT,
    PATTERNS,
    POSITION,
    ROTATION,
    ROW,
    SECOND,
    SIGN,
    SLIDING,
    SYMMETRIC,
    TIP,
    TRAVEL,
    TURNING,
    VISCOUS,
    Kernel,
)
from modurob.model.frames import JointFrames

STEPS = ("outward", "inward", "back")


@cache
def library(name: str, free_base: bool) -> Library:
    """The compiled table kernels of an algorithm."""
    algorithm = ALGORITHMS[name]
    parts = [driver.declarations(host().width)]
    table = []
    for variant in range(algorithm.variants):
        for prismatic in (False, True):
            for pattern in range(PATTERNS):
                for step in STEPS:
                    # only the way inward depends on the variant
                    chosen = variant if step == "inward" else 0
                    function = f"{step}_{pattern}_{int(prismatic)}_{chosen}"
                    trace = getattr(algorithm, step)
                    if trace is not None and chosen == variant:
                        kernel = Kernel(pattern, prismatic, variant)
                        trace(kernel)
                        parts.append(kernel.ir(function))
                    table.append("ptr null" if trace is None else f"ptr @{function}")
    for end in ("root", "root_end"):
        kernel = Kernel(0, False)
        getattr(algorithm, end)(kernel, free_base)
        parts.append(kernel.ir(end))
    for other, trace in algorithm.others.items():
        kernel = Kernel(0, False)
        trace(kernel)
        parts.append(kernel.ir(other))
    parts.append(_body(name, free_base))
    parts.append(Driver(host().width, algorithm.shape, free_base).write("@body"))
    parts += [driver.entry_ir(algorithm.shape, several) for several in (False, True)]
    size = len(table)
    parts.append(f"@table = constant [{size} x ptr] [{', '.join(table)}]\n")
    return compile_ir("\n".join(parts))


def _body(name: str, free_base: bool) -> str:
    """The walk of an algorithm, as the function that a driver calls for each block."""
    algorithm = ALGORITHMS[name]
    if name == "mass_matrix":
        return walks.mass_matrix(algorithm, free_base)
    if name == "inverse_dynamics_derivatives":
        return walks.derivatives(algorithm, free_base)
    if name == "forward_dynamics_derivatives":
        return elimination.forward_derivatives(algorithm, free_base)
    return walks.walk(algorithm)


def workspace_vectors(name: str, joints: int, free_base: bool) -> int:
    """Vectors of workspace that a table driver needs."""
    links, algorithm = joints + 1, ALGORITHMS[name]
    io = driver.BASE_RECORD + driver.JOINT_RECORD * joints + driver.EXTERNAL * links
    nv = joints + (6 if free_base else 0)
    matrices = (algorithm.shape.matrices + algorithm.spare) * nv * nv
    return io + matrices + algorithm.scratch + algorithm.size * links


class Table(NamedTuple):
    """An organism as the kernels see it.

    Attributes:
        rows: (n + 1, ROW) numbers; the base's row holds gravity.
        pattern: (n,) which kernel each joint takes.
        variant: (n,) TIP where nothing is beyond, FIRST for the first to reach its parent.
        parent: (n,)
    """

    rows: np.ndarray
    pattern: np.ndarray
    variant: np.ndarray
    parent: np.ndarray


def table_rows(frames: JointFrames, gravity: np.ndarray) -> Table:
    """The table of a model's joint frames."""
    n = len(frames.parent)
    rows = np.zeros((n + 1, ROW))
    rows[0, POSITION : POSITION + 3] = gravity
    rows[1:, POSITION : POSITION + 3] = frames.position
    rows[:, MASS] = frames.mass
    rows[:, MOMENT : MOMENT + 3] = frames.moment
    for k, (i, j) in enumerate(SYMMETRIC):
        rows[:, SECOND + k] = frames.second[:, i, j]
    rows[1:, SIGN] = frames.sign
    rows[1:, VISCOUS] = frames.viscous
    rows[1:, COULOMB] = frames.coulomb
    rows[1:, ROTATION : ROTATION + 9] = frames.rotation.reshape(n, 9)
    rows[1:, SLIDING] = np.where(frames.prismatic, frames.sign, 0.0)
    rows[1:, TURNING] = np.where(frames.prismatic, 0.0, frames.sign)
    rows[1:, TRAVEL] = frames.travel
    pattern = frames.pattern + PATTERNS * frames.prismatic
    return Table(rows, pattern, _variants(frames.parent), frames.parent)


def _variants(parent: np.ndarray) -> np.ndarray:
    """Joints are visited from the last to the first, so the last child is the first to arrive."""
    links = np.arange(1, len(parent) + 1)
    tip = ~np.isin(links, parent)
    last_child = np.zeros(len(parent) + 1, dtype=np.intp)
    last_child[parent] = links  # later entries win
    first = (last_child[parent] == links) & (parent > 0)  # the base starts from zero
    return TIP * tip + FIRST * first


@cache
def _functions(name: str, free_base: bool) -> np.ndarray:
    """(variants, 8, 3) addresses of the kernels: kind and pattern, pass."""
    variants = ALGORITHMS[name].variants
    count = variants * KINDS * PATTERNS * len(STEPS)
    found = (ctypes.c_int64 * count).from_address(library(name, free_base).constant("table"))
    return np.array(found, dtype=np.int64).reshape(variants, -1, len(STEPS))


def call_table(name: str, free_base: bool, table: Table) -> np.ndarray:
    """(n, CALLS) parent and functions of each joint."""
    functions = _functions(name, free_base)
    calls = np.empty((len(table.parent), CALLS), dtype=np.int64)
    calls[:, 0] = table.parent
    calls[:, 1:] = functions[table.variant % len(functions), table.pattern]
    return calls
