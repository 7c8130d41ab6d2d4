"""Matrices and lists as HTML: texts, the module or joint of each cell, limits."""

import re

import numpy as np
import pytest

from modurob import examples
from modurob.studio import tables
from modurob.verification import lagrange


def cells(html):
    """Rows of (text, module, joint, class) of a table."""
    rows = []
    for row in re.findall(r"<tr>(.*?)</tr>", html):
        found = []
        for marks, text in re.findall(r"<t[dh]([^>]*)>(.*?)</t[dh]>", row):
            attributes = dict(re.findall(r'([\w-]+)="([^"]*)"', marks))
            keys = ("data-module", "data-joint", "class")
            found.append((text, *(attributes.get(key, "") for key in keys)))
        rows.append(found)
    return rows


def test_accessibility_marks_columns_by_their_module_and_zeros_as_such():
    crab = examples.crab()
    head, *rows = cells(tables.accessibility(crab))
    assert [c[1] for c in head[1:]] == list(crab.modules)
    for i, row in enumerate(rows):
        assert row[0][:2] == (f"v{i}", f"m{i}")
        for j, (text, module, _, css) in enumerate(row[1:]):
            value = crab.accessibility()[i, j]
            assert (text, module, css) == (
                str(value) if value else "·",
                f"m{j}",
                "" if value else "zero",
            )


def test_transforms_name_both_modules_and_the_one_between():
    crab = examples.crab()
    direct = cells(tables.direct(crab))[1:]
    for row, line, name, e in zip(
        direct, crab.direct_transforms().tolist(), crab.dyad_classes(), crab.dockings, strict=True
    ):
        assert [c[0] for c in row] == [*map(str, line), name]
        assert [c[1] for c in row] == [e.parent, e.child, e.parent, e.child, e.child]
    (first, *_) = cells(tables.indirect(crab))[1:]
    i, j, _, x, *_ = crab.indirect_transforms().tolist()[0]
    assert [c[:2] for c in first] == [
        (str(i), f"m{i}"), (str(j), f"m{j}"), (f"T{i},{j} = T{i},{x} · T{x},{j}", f"m{x}"),
    ]  # fmt: skip


def test_joints_have_limits_in_their_units_and_locked_ones_their_reason():
    rows = cells(tables.joints(examples.crab().model()))[1:]
    assert [c[0] for c in rows[0]] == ["m1.hinge", "turns", "-90° to 90°", "q1"]
    assert {c[1:3] for c in rows[0]} == {("m1", "m1.hinge")}
    locked = [row for row in rows if row[1][0] == "locked"]
    model = examples.crab().model()
    assert [row[0][0] for row in locked] == [*model.locked]
    assert [row[2][0] for row in locked] == [*model.locked.values()]
    slides = cells(tables.joints(examples.crane().model("physical")))[1:]
    assert [c[0] for c in slides[0]][:3] == ["m0.slide", "slides", "none"]


def test_limits_may_be_open_at_one_end():
    assert tables._limits(-float("inf"), 1.0, slides=True) == "∞ to 1000 mm"


def test_long_lists_end(monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 2)
    crab, model = examples.crab(), examples.crab().model()
    assert len(cells(tables.direct(crab))) == 1 + 2
    assert len(cells(tables.indirect(crab))) == 1 + 2
    assert len(cells(tables.denavit_hartenberg(crab))) == 1 + 2
    assert len(cells(tables.joints(model))) == 1 + 2 + min(2, len(model.locked))
    symbol = {"name": "x", "meaning": "y", "unit": "m", "value": 0.5}
    found = cells(tables.symbols([symbol] * 3))
    assert len(found) == 1 + 2
    assert [c[0] for c in found[1]] == ["x", "y", "m", "0.5"]


def test_the_table_of_denavit_and_hartenberg_is_in_degrees_and_names_the_next_joint():
    arm = examples.arm("ba")
    rows = cells(tables.denavit_hartenberg(arm))[1:]
    for row, wanted in zip(rows, arm.dh_table().rows, strict=True):
        assert row[0][0] == wanted.joint
        assert float(row[1][0]) == pytest.approx(wanted.a, abs=1e-4)
        assert float(row[2][0]) == pytest.approx(wanted.alpha * 57.29577951, rel=1e-3, abs=1e-6)
        assert row[7][0] == str(wanted.next)
        assert row[0][1] == wanted.joint.partition(".")[0]


def test_modules_with_names_of_their_own_are_named_in_their_row():
    body = examples.snake(1).dock("m0", 3, "tail", 4)
    assert [row[0][0] for row in cells(tables.aim(body))[1:3]] == ["v0", "v1 tail"]


@pytest.mark.parametrize(
    ("html", "heads", "row_heads"),
    [
        (tables.aim(examples.snake(2)), ["", "e1", "kind"], ["v0", "v1", "class"]),
        (tables.accessibility(examples.snake(2)), ["", "0", "1"], ["v0", "v1"]),
        (tables.direct(examples.snake(2)), ["from", "to", "side", "side", "class"], []),
        (tables.indirect(examples.snake(3)), ["i", "j", "transform"], []),
        (tables.joints(examples.snake(2).model()), ["joint", "kind", "limits", "state"], []),
        (tables.denavit_hartenberg(examples.arm("ab")),
         ["joint", "a [m]", "α [°]", "d [m]", "θ [°]", "n [m]", "p [m]", "next"], []),
        (tables.symbols([{"name": "m", "meaning": "mass", "unit": "kg", "value": None}]),
         ["symbol", "meaning", "unit", "value"], []),
    ],
    ids=["aim", "accessibility", "direct", "indirect", "joints", "dh", "symbols"],
)  # fmt: skip
def test_headings_are_those_of_a_table_for_screen_readers(html, heads, row_heads):
    first, *rows = re.findall(r"<tr>(.*?)</tr>", html)
    assert re.findall(r"<th[^>]*>(.*?)</th>", first) == heads
    assert "<td" not in first
    found = [text for row in rows for text in re.findall(r"<th[^>]*>(.*?)</th>", row)]
    assert found == row_heads
    assert re.search(r'aria-label="(.*?)".*<caption class="sr-only">\1</caption>', html)


def test_joints_of_a_moving_base_belong_to_no_module():
    rows = cells(tables.joints(examples.snake(2).model("dyad", ("px", "rz"))))[1:]
    assert [row[0][1] for row in rows[:3]] == ["", "", "m1"]
    assert [row[2][0] for row in rows[:2]] == ["none", "none"]
    assert [row[1][0] for row in rows[:2]] == ["slides", "turns"]


@pytest.mark.parametrize(("size", "labeled"), [(12, True), (13, False)])
def test_entries_of_large_matrices_have_no_index(size, labeled):
    html = tables.entries("M", np.ones((size, size)), "M[2,3]")
    assert ("entries small" in html) is not labeled
    assert (">2,3</button>" in html) is labeled
    assert html.count("data-entry=") == size**2


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e9])
def test_entries_are_colored_by_the_root_of_their_size_whatever_their_unit(unit):
    html = tables.entries("M", unit * np.array([[4.0, -1.0], [0.0, 0.25]]), "M[1,2]")
    assert re.findall(r"--share: (.*?)%", html) == ["100", "50", "0", "25"]
    assert re.findall(r'class="(\w*)" title', html) == ["", "on", "zero", ""]
    assert f'title="M[1,2] = {-unit:.4g}" aria-label="M[1,2]"' in html
    zeros = tables.entries("N", np.zeros((2, 1)), "N[1]")
    assert re.findall(r"--share: (.*?)%", zeros) == ["0", "0"]
    assert re.findall(r'data-entry="(.*?)"', zeros) == ["N[1]", "N[2]"]


def test_accelerations_are_those_of_lagrange_with_the_units_of_their_joints():
    crane = examples.crane()
    model = crane.model("physical")
    equations = lagrange.printed(crane, model)
    q, v = np.array([0.1, 0.4]), np.array([0.2, -0.3])
    rows = cells(tables.lagrange(model, equations, q, v))[1:]
    a = model.forward_dynamics(q, v, np.zeros(2))
    for row, value, joint, unit in zip(rows, a, model.joint_names, ("m/s²", "rad/s²"), strict=True):
        assert row[0][:3] == (joint, joint.partition(".")[0], joint)
        assert float(row[1][0]) == pytest.approx(value, rel=1e-8)
        assert float(row[2][0]) == pytest.approx(value, rel=1e-6)
        assert abs(float(row[3][0])) < 1e-9
        assert row[4][0] == unit
