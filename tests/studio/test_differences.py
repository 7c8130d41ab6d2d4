"""Lists that are sent as what differs, put together again as the browser does it."""

import json
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from modurob import catalog, examples

pytest.importorskip("nicegui")

from modurob.studio import differences, edits, view_data
from modurob.studio.differences import NEAR, Sender, pieces


def joined(before, found):
    """What `Received` in bus.js does."""
    return [row for piece in found for row in (piece.get("new") or before[slice(*piece["old"])])]


def sent(found):
    """The rows that travel."""
    return [row for piece in found for row in piece.get("new", ())]


@pytest.mark.parametrize(
    ("before", "now", "new"),
    [
        ([], [], []),
        ([], ["a"], ["a"]),
        (["a", "b"], [], []),
        (["a", "b"], ["a", "b"], []),
        (["a", "b"], ["a", "b", "c"], ["c"]),
        (["a", "b"], ["c", "a", "b"], ["c"]),
        (["a", "b", "c"], ["a", "c"], []),
        (["a", "b", "c"], ["b", "c"], []),
        (["a", "b", "c"], ["a", "x", "c"], ["x"]),
        (["a", "b", "c"], ["a", "x", "y", "c"], ["x", "y"]),
        (["a", "a", "b"], ["a", "b"], []),
        (["a", "b"], ["b", "a"], ["a"]),
    ],
)
def test_only_what_is_new_is_sent(before, now, new):
    found = pieces(before, now)
    assert joined(before, found) == now
    assert sent(found) == new


def test_neighbors_that_stay_are_one_piece():
    rows = list(range(100))
    assert pieces(rows, rows) == [{"old": (0, 100)}]
    assert pieces(rows, [*rows[:40], *rows[42:], 100]) == [
        {"old": (0, 40)}, {"old": (42, 100)}, {"new": [100]},
    ]  # fmt: skip


@pytest.mark.parametrize(("gone", "kept"), [(NEAR - 1, True), (NEAR, False)])
def test_rows_behind_a_gap_are_found_if_it_is_short(gone, kept):
    rows = list(range(3 * NEAR))
    assert (sent(pieces(rows, rows[gone:])) == []) is kept
    assert joined(rows, pieces(rows, rows[gone:])) == rows[gone:]


def test_any_list_becomes_any_other(rng):
    rows = [rng.integers(0, 6, rng.integers(0, 40)).tolist() for _ in range(200)]
    for before, now in pairwise(rows):
        assert joined(before, pieces(before, now)) == now


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_a_component_is_sent_each_row_once():
    told = []
    element: Any = SimpleNamespace(run_method=lambda *args: told.append(args))
    sender = Sender(element, "set_plan")
    sender.send({"cells": ["a", "b"], "links": []}, hidden=3)
    sender.send({"cells": ["a", "b", "c"], "links": []}, hidden=4)
    assert [name for name, _ in told] == ["set_plan"] * 2
    assert [json.loads(text) for _, text in told] == [
        {
            "number": 0,
            "lists": {"cells": [{"new": ["a", "b"]}], "links": []},
            "rest": {"hidden": 3},
        },
        {
            "number": 1,
            "lists": {"cells": [{"old": [0, 2]}, {"new": ["c"]}], "links": []},
            "rest": {"hidden": 4},
        },
    ]


@pytest.mark.parametrize("module", ["m499", "m250"])
def test_a_docking_to_many_modules_is_a_short_message(module):
    kind, before = catalog["backbone"], examples.snake(500)
    after = edits.dock(before, module, 2, kind)
    scenes = []
    for body in (before, after):
        model = body.model("dyad")
        sites = [*edits.sites(body, kind, None, None)]
        scene = view_data.scene_data(body, model)
        plan, tree = view_data.plan(body, sites), view_data.tree(body, kind, sites)
        ports = view_data.ports(body, model, sites)
        scenes.append(
            [
                *scene.values(),
                ports,
                view_data.poses(model, model.neutral()),
                plan["cells"],
                plan["links"],
                tree["modules"],
                [*tree["sites"].items()],
            ]
        )
    found = [pieces(*lists) for lists in zip(*scenes, strict=True)]
    for had, now, piece in zip(*scenes, found, strict=True):
        assert joined(had, piece) == now
    assert sum(len(differences.json.dumps(piece)) for piece in found) < 6000  # all are 700 kB
