"""The operation counts that docs/theory/dynamics.md quotes are those of the code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.bodies import grid_tree

import modurob as mr
from modurob.compiler import kernels, layout
from modurob.compiler.fused import Trace
from modurob.equations.quantities import QUANTITIES

PAGE = Path(__file__).parents[2] / "docs" / "theory" / "dynamics.md"
ALGORITHMS = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


def table_count(name: str, pattern: int) -> int:
    quantity, total = QUANTITIES[name], 0
    tracer = kernels.Tracer(quantity, False, layout.places_of(quantity, False))
    for step in ("outward", "inward", "back", "carry"):
        if getattr(quantity.passes, step) is not None:
            kernel = getattr(tracer, step)(kernels.JointSeat(pattern, prismatic=False))
            values = [value for _, value in kernel.all_stores()]
            total += sum(kernel.graph.operations(values).values())
    return total


def fused_count(name: str, model: mr.Model) -> int:
    trace = Trace(QUANTITIES[name], model)
    return round(sum(trace.operations().values()) / len(model.joint_names))


def quoted(row: str) -> list[str]:
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"| {row} |"):
            return [cell.strip() for cell in line.split("|")[2:-1]]
    raise AssertionError(f"no row {row!r} in {PAGE.name}")


def test_aligned_table_kernels_have_the_quoted_counts():
    counts = [sorted({table_count(name, k) for k in range(3)}) for name in ALGORITHMS]
    shown = [f"{c[0]}" if len(c) == 1 else f"{c[0]}–{c[-1]}" for c in counts]
    assert shown == quoted("dyad tier, revolute, axis along x, y or z")


def test_general_table_kernels_have_the_quoted_counts():
    shown = [str(table_count(name, 3)) for name in ALGORITHMS]
    assert shown == quoted("dyad tier, revolute, any direction")


@pytest.mark.parametrize(
    ("row", "make"),
    [
        ("fused, grid of 20 Backbones", lambda: grid_tree(20).model()),
        (
            "fused, SuperBot tree of 60 joints",
            lambda: mr.examples.superbot_tree(rng=np.random.default_rng(1)).model("physical"),
        ),
    ],
)
def test_fused_kernels_have_the_quoted_counts(row, make):
    model = make()
    assert [str(fused_count(name, model)) for name in ALGORITHMS] == quoted(row)
