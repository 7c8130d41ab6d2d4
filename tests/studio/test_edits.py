"""What a click does to an organism, and why it cannot; undo and redo."""

import numpy as np
import pytest

from modurob import DockingError, Organism, UnknownNameError, catalog, examples
from modurob.studio import edits, project
from modurob.studio.project import History

SCOUT, SUPERBOT = catalog["scout"], catalog["superbot"]


def test_names_are_the_first_free_ones_from_the_count_on():
    assert edits.next_name(None) == "m0"
    snake = examples.snake(3)
    assert edits.next_name(snake) == "m3"
    assert edits.next_name(snake.undock("m2")[0].dock("m1", 3, "m3", 4)) == "m4"


def test_the_first_module_needs_no_port_and_every_other_one_does():
    first = edits.dock(None, None, None, SCOUT)
    assert first == Organism.start(SCOUT, "m0")
    for parent, port in ((None, 3), ("m0", None), (None, None)):
        with pytest.raises(DockingError, match="click a free side of a module"):
            edits.dock(first, parent, port, SCOUT)
    with pytest.raises(UnknownNameError, match="no port 9 on a scout: docks are 2, 3"):
        edits.dock(first, "m0", 9, SCOUT)


def test_the_last_module_can_be_removed_and_a_base_that_holds_others_cannot():
    assert edits.remove(examples.snake(1), "m0") is None
    with pytest.raises(DockingError, match="'m0' is the base: all other modules are docked to it"):
        edits.remove(examples.snake(2), "m0")
    assert edits.remove(examples.snake(3), "m1") == examples.snake(1)


def test_a_moved_module_keeps_its_port_where_it_mates_and_its_turn_where_it_is_allowed():
    snake = examples.snake(3)
    moved = edits.move(snake, "m2", "m0", 2)
    assert moved.docking("m2").child_port == snake.docking("m2").child_port
    assert edits.move(snake, "m2", "m0", 2, 3).docking("m2").child_port == 3
    with pytest.raises(DockingError, match="'m1' cannot dock to 'm2', which is docked beyond it"):
        edits.move(snake, "m1", "m2", 3)
    arm = examples.arm("bab")
    mixed = Organism.start("giusti_b", "m0")
    assert edits.move(arm, "m2", "m1", "out") == arm
    assert edits.move(arm, "m2", "m1", "out", "out") == arm  # which does not mate: the usual one
    assert edits.usual_port(mixed.kind("m0"), "out", catalog["giusti_a"]) == "in"


def test_turning_the_base_or_what_docks_in_one_way_only_says_so():
    with pytest.raises(DockingError, match="'m0' is the base; turn a module that is docked"):
        edits.turned(examples.snake(2), "m0")
    with pytest.raises(DockingError, match="'m1' can be docked to 'm0' in this way only"):
        edits.turned(examples.arm("ba"), "m1")
    tree = examples.superbot_tree(1, 2)
    turns = [(tree := edits.turned(tree, "m1")).docking("m1").turn for _ in range(4)]
    assert sorted(turns) == [0, 90, 180, 270]


def test_a_turn_that_the_ports_do_not_allow_becomes_the_first_they_do():
    allowed = SUPERBOT.port(1).turns
    assert len(allowed) > 1
    assert edits.usual_way(SUPERBOT, 1, SUPERBOT, 2, allowed[-1])[1] == allowed[-1]
    assert edits.usual_way(SUPERBOT, 1, SUPERBOT, 2, None)[1] == allowed[0]
    assert edits.usual_way(SUPERBOT, 1, SUPERBOT, 2, 45)[1] == allowed[0]


def test_ports_beyond_the_first_hundreds_are_offered_without_a_look(monkeypatch):
    monkeypatch.setattr(edits, "MOST_SITES", 2)
    sites = [*edits.sites(examples.snake(3), SUPERBOT, 1, None)]
    assert len(sites) == sum(len(examples.snake(3).free_ports(m)) for m in ("m0", "m1", "m2"))
    assert [bool(site.why) for site in sites] == [True, True] + [False] * (len(sites) - 2)
    assert {site.child_port for site in sites} == {1}


# -- history ---------------------------------------------------------------------------------------


def test_history_forgets_what_is_oldest_and_keeps_the_order(monkeypatch):
    monkeypatch.setattr(project, "DEPTH", 3)
    bodies = [Organism.start("scout", f"m{k}") for k in range(6)]
    kept = History()
    for k, body in enumerate(bodies):
        kept.change(f"step {k}", body)
    assert [step.label for step in kept.past] == ["step 3", "step 4", "step 5"]

    def labels(go):
        steps = [go({}, project.NEW_SETTINGS) for _ in range(4)]
        return [step and step.label for step in steps]

    assert labels(kept.undo) == ["step 5", "step 4", "step 3", None]
    assert kept.now.organism is bodies[2]
    assert labels(kept.redo) == ["step 3", "step 4", "step 5", None]
    assert kept.now.organism is bodies[5]
    assert kept.future == []


def test_every_port_that_takes_a_carried_module_is_offered_with_the_way_of_the_next_step():
    crab = examples.crab()
    held = crab.docking("m2")
    now = {(site.module, site.port): site for site in edits.moves(crab, "m2")}
    there = now[held.parent, held.port]
    assert (there.child_port, there.turn, there.why) == (held.child_port, held.turn, "")
    assert not any(site.module in ("m2", "m3") for site in now.values())
    for site in now.values():  # what is offered is what a drop does, or why it does not
        how = ("m2", site.module, site.port, site.child_port, site.turn)
        if site.why:
            with pytest.raises(DockingError):
                edits.move(crab, *how)
        else:
            assert edits.move(crab, *how).docking("m2").child_port == site.child_port
    (step,) = (s for s in edits.moves(crab, "m2", 1) if (s.module, s.port) == ("m1", held.port))
    assert step.child_port != held.child_port
    with pytest.raises(DockingError, match="'m0' is the base"):
        [*edits.moves(crab, "m0")]


def test_a_module_is_shifted_to_the_next_port_where_it_can_dock_and_back():
    crab, seen = examples.crab(), []
    body = crab
    for _ in range(100):  # through all ports, until it is where it was
        body = edits.shifted(body, "m3", 1)
        seen.append((body.parent("m3"), body.docking("m3").port))
        if seen[-1] == (crab.parent("m3"), crab.docking("m3").port):
            break
    free = {(s.module, s.port) for s in edits.moves(crab, "m3") if not s.why}
    assert len(seen) == len(free)
    assert set(seen) == free
    back = edits.shifted(edits.shifted(crab, "m3", 1), "m3", -1)
    assert (back.parent("m3"), back.docking("m3").port) == seen[-1]
    with pytest.raises(DockingError, match="'m0' is the base"):
        edits.shifted(crab, "m0", 1)


class Kind:
    """A module with one port that can be docked with some turns."""

    def __init__(self, *turns):
        self.turns = turns

    def port(self, label):
        return self


@pytest.mark.parametrize(
    ("here", "there", "wanted", "turn"),
    [
        ((0, 90), (90, 180), None, 90),
        ((0, 90), (90, 180), 90, 90),
        ((0, 90), (90, 180), 180, 90),
        ((0, 90, 180), (180, 90), 180, 180),
        ((0,), (90,), 45, 45),  # the docking itself refuses it
        ((0,), (90,), None, 0),
    ],
)
def test_a_turn_is_one_that_both_ports_allow(here, there, wanted, turn):
    found = edits.usual_way.__wrapped__(Kind(*here), 1, Kind(*there), 2, wanted)
    assert found == (2, turn)


def test_only_some_places_of_a_large_part_are_checked_before_it_is_carried(monkeypatch):
    tried = []
    monkeypatch.setattr(edits, "refusal", lambda *how, **more: tried.append(how) or "no room")
    crab = examples.crab()
    for most, checks in ((4, 2), (5, 2), (0, 0), (100, None)):  # m2 and m3 move together
        tried.clear()
        monkeypatch.setattr(edits, "MOST_SITES", most)
        found = [*edits.moves(crab, "m2")]
        count = len(found) if checks is None else checks
        assert len(tried) == count
        assert [site.why for site in found] == ["no room"] * count + [""] * (len(found) - count)


def test_a_module_can_move_to_the_free_ports_of_the_others_only():
    crab = examples.crab()
    rest, loose = crab.undock("m2")
    found = {(site.module, site.port) for site in edits.moves(crab, "m2")}
    free = {(m, port) for m in rest.modules for port in rest.free_ports(m)}
    assert found <= free
    held = crab.docking("m2")
    assert (held.parent, held.port) in found
    for site in edits.moves(crab, "m2"):
        assert site.child_port in loose.free_ports("m2")


def test_the_usual_port_faces_back_so_that_a_cube_keeps_the_heading_of_its_neighbor():
    near, kind = catalog["backbone"], SCOUT
    ways = set()
    for here in near.docks:
        mine = edits.usual_port.__wrapped__(near, here, kind)
        out, back = near.port_pose(here)[:3, 2], kind.port_pose(mine)[:3, 2]
        np.testing.assert_allclose(back, -out, atol=1e-12)
        ways.add((mine, edits.heading.__wrapped__(kind, mine)))
    assert ways == {(2, 0), (3, 1), (5, 2), (4, 3)}  # quarter turns from +x
    assert edits.mating_ports.__wrapped__(near, 3, SUPERBOT) == ()
    assert edits.usual_port.__wrapped__(near, 3, SUPERBOT) == SUPERBOT.docks[0]
