"""Organisms as text."""

from __future__ import annotations

import numpy as np
import pytest

import modurob as mr
from modurob.drawing import draw
from modurob.drawing.terminal import CENTER_X, CENTER_Y, STEP_X, STEP_Y, shorten

PLANAR = {
    "crab": mr.examples.crab(),
    "nine": mr.examples.nine(),
    "snake": mr.examples.snake(6),
    "one": mr.Organism.start("scout"),
    "random": mr.Organism.random(["backbone", "scout"], 25, np.random.default_rng(4)),
}
TREES = {
    "arm": mr.examples.arm("babac"),
    "superbots": mr.examples.superbot_tree(),
    "crane": mr.examples.crane(),
}


def cells(organism: mr.Organism) -> dict[str, tuple[int, int]]:
    """Upper left corner (line, column) that each module's box must have."""
    found = {name: organism.place(name) for name in organism}
    places = {name: place for name, place in found.items() if place is not None}
    assert len(places) == len(organism)
    left = min(place.x for place in places.values())
    top = max(place.y for place in places.values())
    return {n: (STEP_Y * (top - p.y), STEP_X * (p.x - left)) for n, p in places.items()}


@pytest.mark.parametrize("name", [*PLANAR, *TREES])
def test_every_module_is_named_once(name):
    organism = (PLANAR | TREES)[name]
    words = draw(organism).replace("→", " ").split()
    for module in organism:
        assert words.count(module) == 1


@pytest.mark.parametrize("name", [*PLANAR, *TREES])
def test_a_drawing_is_plain_text(name):
    text = draw((PLANAR | TREES)[name])
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("name", PLANAR)
def test_boxes_stand_at_the_cells_of_their_modules(name):
    organism = PLANAR[name]
    lines = draw(organism).splitlines()
    for module, (line, column) in cells(organism).items():
        assert lines[line][column] == ("╔" if module == organism.base else "┌")
        assert lines[line + 1][column + 2 :].split()[0] == module


@pytest.mark.parametrize("name", PLANAR)
def test_both_sides_of_each_docking_are_numbered_where_the_boxes_meet(name):
    organism = PLANAR[name]
    lines = draw(organism).splitlines()
    corners = cells(organism)
    for i, j, side_i, side_j in organism.direct_transforms().tolist():
        first, second = corners[organism.modules[i]], corners[organism.modules[j]]
        for here, there, side in ((first, second, side_i), (second, first, side_j)):
            down, right = np.sign(np.subtract(there, here))
            line = here[0] + CENTER_Y * (1 + down)
            column = here[1] + CENTER_X * (1 + right)
            assert lines[line][column] == str(side)


def test_only_the_base_has_a_double_border():
    text = draw(mr.examples.crab())
    assert text.count("╔") == 1
    assert "base" in text


def test_hinge_axes_turn_with_their_modules():
    lines = draw(mr.examples.crab()).splitlines()
    corners = cells(mr.examples.crab())
    middle = {m: lines[y + CENTER_Y][x + CENTER_X] for m, (y, x) in corners.items()}
    assert middle == {"m0": "╌", "m1": "╌", "m2": "╌", "m4": "╌", "m3": "╎", "m5": "╎"}


def test_long_names_keep_their_beginning_and_end_and_the_box_its_shape():
    crab = mr.examples.crab()
    named = crab.rename({"m3": "the_right_claw_number_1", "m5": "the_left_claw_number_2"})
    text = draw(named)
    assert "the_…er_1" in text
    assert "the_…er_2" in text
    assert [len(s) for s in text.splitlines()] == [len(s) for s in draw(crab).splitlines()]


@pytest.mark.parametrize("room", range(2, 12))
def test_shortened_names_fill_the_room_exactly(room):
    assert shorten("abcdefghijkl", room).count("…") == 1
    assert len(shorten("abcdefghijkl", room)) == room
    assert shorten("abcdefghijkl"[:room], room) == "abcdefghijkl"[:room]


def test_boxes_give_way_to_compact_forms_where_there_is_no_room():
    nine = mr.examples.nine()
    assert draw(nine, 80) == draw(nine)
    assert draw(nine, 40) == nine.to_grid()
    assert draw(nine, 10).startswith("m0 backbone (base)\n├─ 2→5  m6")


def test_tree_shows_ports_turns_and_branches():
    organism = mr.Organism.start("superbot", "root")
    organism = organism.dock("root", 4, "a", 1, turn=90).dock("a", 4, "a2", 1)
    organism = organism.dock("root", 2, "b", 3)
    assert draw(organism).splitlines() == [
        "root superbot (base)",
        "├─ 2→3  b superbot",
        "└─ 4→1 turn 90  a superbot",
        "   ↓ 4→1  a2 superbot",
    ]


def test_a_long_chain_stays_narrow():
    chain = mr.examples.arm("b" * 1500)  # deeper than Python's recursion limit
    text = draw(chain)
    assert len(text.splitlines()) == 1500
    assert max(map(len, text.splitlines())) < 40


def test_a_module_without_a_hinge_shows_no_axis_and_an_upright_one_a_dot():
    data = mr.catalog["backbone"].model_dump()
    stiff = mr.ModuleType(**{**data, "name": "stiff", "dyad_joint": None})
    assert not set("╌╎◦") & set(draw(mr.Organism.start(stiff)).rpartition("\n")[0])
    assert "╌" * 7 in draw(mr.Organism.start("backbone"))
    joints = [{**joint, "axis": (0, 0, 1)} for joint in data["joints"]]
    upright = mr.ModuleType(**{**data, "name": "upright", "joints": joints})
    assert "◦" in draw(mr.Organism.start(upright))


UPRIGHT = """\
┌───────────┐
│ m1        │
│  ╌╌╌╌╌╌╌  │
│ B^        │
└─────4─────┘
      ┃
╔═════3═════╗
║ m0        ║
║  ╌╌╌╌╌╌╌  ║
║ B^   base ║
╚═══════════╝
"""
LYING = """\
╔═══════════╗  ┌───────────┐
║ m0        ║  │ m1        │
║  ╌╌╌╌╌╌╌  2━━5  ╌╌╌╌╌╌╌  │
║ B^   base ║  │ B^        │
╚═══════════╝  └───────────┘
"""
LEGEND = "\nB backbone   ^<v> side 3   ╌ hinge axis   ━ docked sides   ═ base"


@pytest.mark.parametrize(("port", "child_port", "drawn"), [(3, 4, UPRIGHT), (2, 5, LYING)])
def test_two_cubes_as_a_whole_drawing(port, child_port, drawn):
    pair = mr.Organism.start("backbone").dock("m0", port, "m1", child_port)
    assert [line.rstrip() for line in draw(pair).splitlines()] == (drawn + LEGEND).splitlines()


WORDED = """\
┌───────────┐
│ m1        │
│  ╌╌╌╌╌╌╌  │
│ B^        │
└─────up────┘
      ┃
╔back_…_cube╗  ┌───────────┐
║ m0        ║  │ m2        │
║  ╌╌╌╌╌╌╌rig━━in ╌╌╌╌╌╌╌  │
║ B^   base ║  │ B^        │
╚═══under═══╝  └───────────┘
      ┃
┌──far_side─┐
│ m3        │
│  ╌╌╌╌╌╌╌  │
│ B^        │
└───────────┘

B backbone"""


def worded(words):
    """A backbone with other labels at some sides."""
    data = mr.catalog["backbone"].model_dump()
    ports = [{**port, "label": words.get(port["side"], port["label"])} for port in data["ports"]]
    return mr.ModuleType(**{**data, "ports": ports})


def test_labels_that_are_words_are_cut_where_they_have_no_room():
    base = worded({2: "right", 3: "back_of_the_cube", 4: "under"})
    organism = mr.Organism.start(base).dock(
        "m0", "back_of_the_cube", "m1", "up", kind=worded({4: "up"})
    )
    organism = organism.dock("m0", "right", "m2", "in", kind=worded({5: "in"}))
    organism = organism.dock("m0", "under", "m3", "far_side", kind=worded({3: "far_side"}))
    drawn = draw(organism).partition("   ^<v>")[0]
    assert [line.rstrip() for line in drawn.splitlines()] == WORDED.splitlines()


def test_boxes_fill_the_width_to_the_last_column_and_trees_end_their_last_branch():
    pair = mr.Organism.start("backbone").dock("m0", 2, "m1", 5)
    assert draw(pair, 28) == draw(pair)
    assert draw(pair, 27) == pair.to_grid()
    widest = max(map(len, pair.to_grid().splitlines()))
    assert draw(pair, widest) == pair.to_grid()
    assert draw(pair, widest - 1).startswith("m0 backbone (base)\n")
    star = mr.Organism.start("superbot", "s")
    for port in (2, 3, 4):
        star = star.dock("s", port, f"s{port}", 1)
    assert [line[:2] for line in draw(star).splitlines()] == ["s ", "├─", "├─", "└─"]
