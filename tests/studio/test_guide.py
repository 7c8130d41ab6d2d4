"""The guide follows what was clicked, whatever it was."""

import numpy as np
import pytest

from modurob import DockingError, Organism, examples
from modurob.studio.folder import Folder
from modurob.studio.guide import COUNT, advice
from modurob.studio.project import Project
from modurob.studio.session import Session

CLICKS = [(0, 0), (0, 1), (1, 1), (1, 2), (-1, 1), (-1, 2)]


@pytest.fixture
def session(tmp_path):
    return Session(Folder(tmp_path), "crab", Project())


def obey(session, now):
    """Do what the guide says, as a user would."""
    if now.click is not None:
        wish = now.click
        session.dock(wish["kind"], wish["module"], wish["port"], wish["child_port"])
    elif now.cell is not None and now.text.startswith("Right-click"):
        session.remove(now.text.split("'")[1])
    else:
        assert "Ctrl+Z" in now.text
        session.undo()


def test_the_guide_leads_to_the_crab_in_six_clicks(session):
    for k, cell in enumerate(CLICKS):
        now = advice(session.organism)
        assert (now.done, now.cell) == (k, cell)
        assert now.text.startswith("Click the marked cell: ")
        obey(session, now)
    assert advice(session.organism).done == COUNT == len(CLICKS)
    assert session.organism == examples.crab()


def test_any_order_of_steps_counts(session):
    """The second leg before the first one; then another base."""
    session.dock("scout")
    session.dock("scout", "m0", 3, 4)
    session.dock("scout", "m1", 5, 2)
    now = advice(session.organism)
    assert (now.done, now.cell) == (3, (1, 1))
    session.rebase("m2")
    assert advice(session.organism).done == 3
    while (now := advice(session.organism)).done < COUNT:
        assert now.click is not None
        obey(session, now)
    assert len(session.organism) == COUNT


def test_a_module_docked_with_another_side_is_told_and_turning_it_helps(session):
    session.dock("scout")
    session.dock("scout", "m0", 3, 2)
    now = advice(session.organism)
    assert now.done == 1
    assert now.click is None
    assert "'m1' is docked to side 3 of 'm0' with its side 2; the crab has side 4" in now.text
    while (now := advice(session.organism)).done < 2:
        session.turn("m1")
    assert now.click is not None


def test_a_body_without_scouts_is_told():
    now = advice(Organism.start("backbone"))
    assert "made of Scouts" in now.text
    assert now.done == 0


def test_what_stands_in_the_way_is_named(session):
    session.dock("scout")
    session.dock("scout", "m0", 3, 4)
    session.dock("scout", "m0", 2)
    session.dock("scout", "m2", 3)  # in the cell of the first leg
    now = advice(session.organism)
    assert now.text == "Right-click 'm3' to remove it: it occupies the marked cell."
    assert now.cell == (1, 1)


@pytest.mark.parametrize("seed", range(10))
def test_from_any_detour_the_guide_leads_on_to_the_crab(session, seed):
    """Random clicks first; then whoever does what the guide says arrives."""
    rng = np.random.default_rng(seed)
    session.dock(rng.choice(["scout", "backbone"]))
    for _ in range(6):
        organism = session.organism
        parent = str(rng.choice(organism.modules))
        port = int(rng.choice(organism.kind(parent).docks))
        kind, child_port = rng.choice(["scout", "scout", "backbone"]), int(rng.integers(2, 6))
        try:
            session.dock(str(kind), parent, port, child_port)
        except DockingError:
            session.rebase(parent) if parent != organism.base else None
    for _ in range(60):
        now = advice(session.organism)
        if now.done == COUNT:
            break
        try:
            obey(session, now)
        except DockingError:  # the base occupies the cell
            session.undo()
    assert advice(session.organism).done == COUNT


@pytest.mark.parametrize("side", [2, 3, 4, 5])
def test_the_marked_cell_is_where_the_next_module_comes_however_the_first_one_is_turned(side):
    body = Organism.start("backbone").dock("m0", 3, "m1", side, kind="scout")
    now = advice(body)
    assert now.done == 1
    if side == 3:  # which the second one needs
        assert (now.cell, now.click) == ((0, 0), None)
        assert "'m0' is docked to side 3 of 'm1' with its side 3; the crab" in now.text
        return
    assert now.click == {"kind": "scout", "module": "m1", "port": 3, "child_port": 4}
    place = body.dock("m1", 3, "m2", 4, kind="scout").place("m2")
    assert now.cell == (place.x, place.y)
