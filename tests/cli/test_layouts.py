"""Layouts of the command line: what stands where, at widths that just fit and that just do not."""

import io

import numpy as np
import pytest
from rich.console import Console

from modurob.cli import output


@pytest.fixture
def lines():
    """The lines that a function of `output` prints on a terminal of some columns."""

    def lines(columns, show, *args, **options):
        told = io.StringIO()
        show(Console(width=columns, markup=False, emoji=False, file=told), *args, **options)
        return [line.rstrip() for line in told.getvalue().splitlines()]

    return lines


CELLS = ["one", "two", "three", "four", "five"]


def test_short_texts_flow_from_top_to_bottom_in_as_many_columns_as_fit(lines):
    two = ["title", "one     four", "two     five", "three", ""]
    assert lines(13, output.print_flow, "title", CELLS) == two  # 5 + 3 between + 5
    assert lines(12, output.print_flow, "title", CELLS) == ["title", *CELLS, ""]
    assert lines(20, output.print_flow, "title", CELLS) == two  # three need 21
    assert lines(21, output.print_flow, "title", CELLS)[1:3] == [
        "one     three   five",
        "two     four",
    ]
    assert lines(1, output.print_flow, "t", ["ab"]) == ["t", "a", "b", ""]  # never none


MATRIX = np.array([[10, 0, 3], [0, -2, 0]])
WHOLE = """\
t
    a   b  c
────────────
x  10   ·  3
y   ·  -2  ·
"""
PARTS = """\
t, a to b
    a   b
─────────
x  10   ·
y   ·  -2

t, c to c
   c
────
x  3
y  ·
"""
WITH_KINDS = """\
t
        a   b  c  kind
──────────────────────
x      10   ·  3  kk
y       ·  -2  ·  k

class   C   D  E
"""


@pytest.mark.parametrize(("columns", "shown"), [(80, WHOLE), (12, WHOLE), (11, PARTS)])
def test_a_matrix_is_cut_into_tables_where_it_is_wider_than_the_terminal(lines, columns, shown):
    told = lines(columns, output.print_matrix, "t", MATRIX, "abc", "xy")
    assert told == [*shown.splitlines(), ""]


def test_kinds_and_classes_stand_beside_and_below_a_matrix(lines):
    extra = {"last_column": ["kk", "k"], "last_row": "CDE"}
    told = lines(22, output.print_matrix, "t", MATRIX, "abc", "xy", **extra)
    assert told == [*WITH_KINDS.splitlines(), ""]
    told = lines(21, output.print_matrix, "t", MATRIX, "abc", "xy", **extra)
    assert [line for line in told if line.startswith(("t", "class"))] == [
        "t, a to b", "class   C   D", "t, c to c", "class  E"
    ]  # fmt: skip
