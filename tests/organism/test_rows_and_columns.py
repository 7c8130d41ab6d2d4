"""Rows, columns and the canonical form after every way to change a body."""

from contextlib import suppress

import numpy as np
import pytest

from modurob import DockingError, Organism, examples

SCOUTS = Organism.start("scout", "a").dock("a", 2, "b", 4).dock("b", 2, "c", 4).dock("a", 3, "d", 5)

PAIR = Organism.start("scout", "x").dock("x", 3, "y", 3)


def saved_and_loaded(organism, folder):
    organism.save(folder / "it.json")
    return Organism.from_file(folder / "it.json")


def cut_short():
    """A body of two whose rows and columns are far apart."""
    start = Organism.start("scout", "a")
    for k in range(9):
        start = start.dock("a", 2, f"n{k}", 4).undock(f"n{k}")[0]
    return start.dock("a", 2, "last", 4)


WAYS = {
    "docked": lambda o, folder: o,
    "rebased": lambda o, folder: o.rebase("c"),
    "renamed": lambda o, folder: o.rename({"b": "x"}, prefix="m_"),
    "split": lambda o, folder: o.split("b")[0],
    "split off": lambda o, folder: o.split("a")[1],
    "undocked": lambda o, folder: o.undock("b")[0],
    "let go": lambda o, folder: o.undock("b")[1],
    "loaded": saved_and_loaded,
    "merged": lambda o, folder: o.merge("c", 2, PAIR, "y", 4),
    "edited": lambda o, folder: o.with_parameters("a", mass=2.0),
    "rebased and loaded": lambda o, folder: saved_and_loaded(o.rebase("d"), folder),
    "cut short and renamed": lambda o, folder: cut_short().rename(prefix="m_"),
    "cut short and rebased": lambda o, folder: cut_short().rebase("last"),
    "undocked and loaded": lambda o, folder: saved_and_loaded(o.undock("c")[0], folder),
}


def grown_by(organism, name):
    """With a module more, where there is room."""
    for parent in organism.modules:
        for port in organism.free_ports(parent):
            with suppress(DockingError):  # the cell is taken
                return organism.dock(parent, port, name, 4)
    raise AssertionError("there is no room")


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_rows_and_columns_stay_unique_when_a_changed_body_grows(way, tmp_path):
    before = way(SCOUTS, tmp_path)
    grown = before
    for k in range(3):
        grown = grown_by(grown, f"new{k}")
    rows = [grown._members[name].row for name in grown.modules]
    columns = [entry.column for entry in grown.dockings]
    assert len(set(rows)) == len(rows) == len(before) + 3
    assert len(set(columns)) == len(columns) == len(before) + 2
    # what is new comes last, what was there keeps its order
    assert grown.modules == (*before.modules, "new0", "new1", "new2")
    by_column = sorted(grown.dockings, key=lambda entry: entry.column)
    assert [e.child for e in by_column[-3:]] == ["new0", "new1", "new2"]
    # each column of the assembly incidence matrix joins two rows, as its docking says
    matrix = grown.aim().matrix
    assert matrix.shape == (len(rows), len(columns))
    for column, entry in zip(matrix.T, grown.dockings, strict=True):
        joined = {grown.modules[k] for k in np.flatnonzero(column)}
        assert joined == {entry.parent, entry.child}


def test_cells_and_columns_are_counted_from_the_base():
    body = Organism.start("scout").dock("m0", 2, "m1", 4).dock("m1", 3, "m2", 4)
    # docked from side 2 to side 4, m1 has its x along -y of m0 (gutenkunst2012, Tab. 3.1)
    assert [body.place(name) for name in body] == [
        ("m0", 0, 0, 0), ("m0", 1, 0, 3), ("m0", 2, 0, 3)
    ]  # fmt: skip
    assert [entry.column for entry in body.dockings] == [1, 2]
    crane = examples.crane()  # cubes behind a virtual joint have a grid of their own
    assert [crane.place(name) for name in crane] == [None, ("m1", 0, 0, 0), ("m1", 0, 1, 0)]


def rebuilt(form, kinds):
    """The organism that a canonical form describes."""
    organism = Organism.start(kinds[form[0][0]], "n0")
    for k, (digest, parent, port, child_port, turn) in enumerate(form[1:], start=1):
        organism = organism.dock(
            f"n{parent}", port, f"n{k}", child_port, kind=kinds[digest], turn=turn
        )
    return organism


BODIES = [
    SCOUTS,
    examples.crab(),
    examples.nine(),
    examples.arm("babac"),
    examples.superbot_tree(),
    *(Organism.random("backbone", 12, rng=np.random.default_rng(seed)) for seed in range(3)),
]


@pytest.mark.parametrize("organism", BODIES, ids=repr)
def test_a_body_can_be_built_again_from_its_canonical_form(organism):
    form = organism.canonical()
    assert form[0][1:] == (-1, 0, 0, 0)
    assert all(0 <= parent < k for k, (_, parent, *_) in enumerate(form) if k)
    kinds = {organism.kind(name).digest: organism.kind(name) for name in organism.modules}
    again = rebuilt(form, kinds)
    assert again.canonical() == form
    assert again == organism
    # the same modules stand at the same places
    offset = organism.base_pose @ np.linalg.inv(again.base_pose)
    places = sorted(np.round(organism.rest_pose(n), 9).ravel().tolist() for n in organism.modules)
    others = sorted(
        np.round(offset @ again.rest_pose(n), 9).ravel().tolist() for n in again.modules
    )
    np.testing.assert_allclose(places, others, atol=1e-8)  # rounding of products of poses


def test_bodies_that_differ_only_in_who_holds_whom_have_different_forms():
    start = Organism.start("scout", "a").dock("a", 2, "b", 4).dock("a", 3, "c", 4)
    on_b, on_c = start.dock("b", 2, "d", 4), start.dock("c", 2, "d", 4)
    assert [entry[1] for entry in on_b.canonical()] == [-1, 0, 1, 0]
    assert [entry[1] for entry in on_c.canonical()] == [-1, 0, 0, 2]
    assert on_b != on_c
    assert hash(on_b) != hash(on_c)


def test_the_canonical_form_depends_on_no_name_and_no_order_of_docking():
    one = Organism.start("scout", "a").dock("a", 2, "b", 4).dock("a", 3, "c", 5)
    two = Organism.start("scout", "z").dock("z", 3, "y", 5).dock("z", 2, "x", 4)
    one, two = one.dock("b", 2, "d", 4), two.dock("x", 2, "w", 4)
    assert one.canonical() == two.canonical()
    assert one == two
