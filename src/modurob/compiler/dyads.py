"""The dyad tier: one kernel for each seat of a joint on its parent, called from a table.

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

from modurob.compiler import entry, walks
from modurob.compiler.jit import Library, compile_ir
from modurob.compiler.kernels import (
    FIRST,
    KINDS,
    PATTERNS,
    ROTOR,
    ROW,
    TIP,
    JointSeat,
    Row,
    Tracer,
)
from modurob.compiler.layout import places_of, scratch_size, state_size
from modurob.compiler.packing import columns, fields
from modurob.compiler.walks import CALLS, STEPS
from modurob.equations.passes import Quantity
from modurob.equations.vectors import Mat, Vec
from modurob.model.frames import JointFrames

BASE_KERNELS = (
    "base",
    "turn",
    "external",
    "survey",
    "touch",
    "settle",
    "move",
    "friction",
    "base_pairs",
    "base_block",
    "output",
)


@cache
def library(quantity: Quantity, free_base: bool, width: int) -> Library:
    """The compiled table kernels of a quantity, for vectors of that many states."""
    tracer = Tracer(quantity, free_base, places_of(quantity, free_base))
    parts = [entry.driver_ir(width, quantity, free_base, keeps_input=False)]
    table = []
    for variant in range(_variants_of(tracer)):
        for prismatic in (False, True):
            for pattern in range(PATTERNS):
                for step in STEPS:
                    # only the way inward depends on the variant
                    chosen = variant if step == "inward" else 0
                    function = f"{step}_{pattern}_{int(prismatic)}_{chosen}"
                    exists = getattr(quantity.passes, step) is not None
                    if exists and chosen == variant:
                        way = JointSeat(pattern, prismatic, variant)
                        parts.append(getattr(tracer, step)(way).ir(function, quantity.per, width))
                    table.append(f"ptr @{function}" if exists else "ptr null")
    for each in BASE_KERNELS:
        if getattr(quantity.passes, each) and _is_needed(each, quantity, free_base):
            parts.append(getattr(tracer, each)().ir(each, quantity.per, width))
    parts.append(walks.walk(walks.Walker(quantity, free_base, width)))
    parts.append(f"@table = constant [{len(table)} x ptr] [{', '.join(table)}]\n")
    return compile_ir("\n".join(parts))


def _is_needed(kernel: str, quantity: Quantity, free_base: bool) -> bool:
    if kernel in ("base_pairs", "base_block"):
        return free_base and quantity.per == "pair"
    if kernel == "move":
        return free_base
    return True


def _variants_of(tracer: Tracer) -> int:
    """8 where the way inward differs for tips, for the first to reach a parent, and with rotors."""
    return 8 if tracer.accumulators else 1


def workspace_vectors(quantity: Quantity, joints: int, free_base: bool) -> int:
    """Vectors of workspace that a table driver needs besides records and results."""
    return sum(scratch_size(quantity, free_base)) + state_size(quantity, free_base) * (joints + 1)


class Table(NamedTuple):
    """Table of an organism that the kernels read.

    Attributes:
        rows: (n + 1, ROW) numbers; the base's row holds gravity.
        pattern: (n,) which kernel each joint takes.
        variant: (n,) sum of TIP where nothing is beyond, FIRST for the first to reach its parent,
            and ROTOR where the joint has one.
        parent: (n,)
    """

    rows: np.ndarray
    pattern: np.ndarray
    variant: np.ndarray
    parent: np.ndarray


def table_rows(frames: JointFrames, gravity: np.ndarray) -> Table:
    """The table of a model's joint frames."""
    n = len(frames.parent)
    rows, start = np.zeros((n + 1, ROW)), 0
    for name, kind in fields(Row):
        found = columns(kind, getattr(frames, {"p": "position", "R": "rotation"}.get(name, name)))
        end = start + found.shape[1]
        rows[n + 1 - len(found) :, start:end] = found  # the base is not among the joints
        start = end
    rows[0, :3] = gravity  # in the place of p
    pattern = frames.pattern + PATTERNS * frames.prismatic
    return Table(
        rows,
        pattern,
        _variants(frames.parent) + ROTOR * (frames.armature > 0),
        frames.parent,
    )


def body_tables(frames: JointFrames) -> dict[str, np.ndarray]:
    """(bodies, 12) places of the bodies in their links, and (bodies,) the links."""
    rows = (columns(Mat, frames.body_rotation), columns(Vec, frames.body_position))
    return {
        "body_rows": np.concatenate(rows, axis=1),
        "body_links": np.ascontiguousarray(frames.body_link, dtype=np.int64),
    }


def _variants(parent: np.ndarray) -> np.ndarray:
    """Joints are visited from the last to the first, so the last child is the first to arrive."""
    links = np.arange(1, len(parent) + 1)
    last_child = np.zeros(len(parent) + 1, dtype=np.intp)
    last_child[parent] = links  # later entries win
    tip = last_child[1:] == 0
    first = (last_child[parent] == links) & (parent > 0)  # the base starts from zero
    return TIP * tip + FIRST * first


@cache
def _functions(quantity: Quantity, free_base: bool, width: int) -> np.ndarray:
    """(variants, 8, 4) addresses of the kernels: kind and pattern, step."""
    variants = _variants_of(Tracer(quantity, free_base))
    count = variants * KINDS * PATTERNS * len(STEPS)
    table = library(quantity, free_base, width).address("table")
    found = (ctypes.c_int64 * count).from_address(table)
    return np.array(found, dtype=np.int64).reshape(variants, -1, len(STEPS))


def call_table(quantity: Quantity, free_base: bool, width: int, table: Table) -> np.ndarray:
    """(n, CALLS) parent and functions of each joint."""
    functions = _functions(quantity, free_base, width)
    calls = np.zeros((max(len(table.parent), 1), CALLS), dtype=np.int64)  # one is always looked at
    joints = calls[: len(table.parent)]
    joints[:, 0] = table.parent
    joints[:, 1:] = functions[table.variant % len(functions), table.pattern]
    return calls
