"""Organisms from matrices, drawings and chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modurob import Organism, examples
from oracles import GROUPS, organisms
from oracles.organisms import CUBES


def test_an_organism_prints_what_it_is_made_of():
    assert repr(examples.snake(1)) == "<Organism of 1 module (1 backbone), base m0>"
    assert repr(examples.snake(2)) == "<Organism of 2 modules (2 backbone), base m0>"


# -- assembly incidence matrix ---------------------------------------------------------------------


def kinds_of(organism):
    return [organism.kind(name) for name in organism]


@given(organisms(*GROUPS))
def test_aim_round_trips(organism):
    aim = organism.aim()
    again = Organism.from_aim(aim)
    assert again == organism
    assert again.aim() == aim


def test_aim_keeps_edited_datasheets():
    crab = examples.crab().with_parameters(mass=2.0)
    again = Organism.from_aim(crab.aim())
    assert again == crab
    assert [kind.mass for kind in again.aim().types] == [2.0] * 6
    assert crab.aim() != examples.crab().aim()
    assert crab.aim().names == examples.crab().aim().names == ("scout",) * 6


@given(organisms(*CUBES))
def test_a_bare_matrix_and_letters_are_enough_for_cubes(organism):
    aim = organism.aim()
    assert Organism.from_aim(aim.matrix.tolist(), "".join(aim.kinds)) == organism


@given(organisms(*CUBES, "giusti", least=3), st.randoms(use_true_random=False))
def test_aim_columns_may_come_in_any_order(organism, random):
    matrix = organism.aim().matrix
    order = list(range(matrix.shape[1]))
    random.shuffle(order)
    shuffled = matrix[:, order]
    again = Organism.from_aim(shuffled, kinds_of(organism))
    assert again == organism
    found = again.aim().matrix
    # rows stay; columns are the same ones, in an order in which each finds its parent
    assert sorted(map(tuple, found.T)) == sorted(map(tuple, shuffled.T))
    parents_first = [int(i) for i, *_ in again.direct_transforms()]
    children = [0, *(int(j) for _, j, *_ in again.direct_transforms())]
    assert all(i in children[: k + 1] for k, i in enumerate(parents_first))
    if is_outward(shuffled):
        np.testing.assert_array_equal(found, shuffled)


@given(organisms(*CUBES, least=3), st.randoms(use_true_random=False))
def test_aim_rows_keep_their_order_below_the_base(organism, random):
    matrix, rows = organism.aim().matrix, list(range(1, len(organism)))
    random.shuffle(rows)
    shuffled = matrix[[0, *rows]]
    kinds = [kinds_of(organism)[row] for row in (0, *rows)]
    again = Organism.from_aim(shuffled, kinds)
    assert again == organism
    np.testing.assert_array_equal(again.aim().matrix, shuffled)


def is_outward(matrix):
    """Whether each column touches a module that an earlier one reached."""
    reached = {0}
    for column in matrix.T:
        ends = {int(row) for row in np.flatnonzero(column)}
        if not ends & reached:
            return False
        reached |= ends
    return True


def test_modules_from_a_matrix_are_named_after_their_rows():
    organism = Organism.from_aim([[3, 0], [4, 3], [0, 4]], kinds="BBB")
    assert organism.modules == ("m0", "m1", "m2")
    assert organism == examples.snake(3)


def test_whole_numbers_in_a_float_matrix_are_fine():
    assert Organism.from_aim(np.array([[3.0], [4.0]]), kinds="BB") == examples.snake(2)


def test_docking_goes_on_after_reading_a_matrix():
    organism = Organism.from_aim([[3, 0], [4, 3], [0, 4]], kinds="BBB").dock("m2", 3, "m3", 4)
    assert organism == examples.snake(4)
    assert organism.modules[-1] == "m3"
    assert organism.aim() == examples.snake(4).aim()


def test_the_crane_comes_back_from_its_matrix():
    aim = examples.crane().aim()
    again = Organism.from_aim([[7, 0], [7, 3], [0, 4]], ["virtual_pz", "backbone", "backbone"])
    np.testing.assert_array_equal(again.aim().matrix, aim.matrix)
    assert (again.aim().names, again.aim().classes) == (aim.names, aim.classes)
    assert Organism.from_aim(aim) == examples.crane()


# -- drawings --------------------------------------------------------------------------------------


@given(organisms(*CUBES))
def test_grid_drawings_round_trip(organism):
    drawing = organism.to_grid()
    again = Organism.from_grid(drawing)
    assert again == organism
    assert again.to_grid() == drawing


def test_a_drawing_shows_what_it_says():
    organism = Organism.from_grid(
        """
        S^--B>
        |
        S^*
        """
    )
    # the Scout above the base stands on side 3 of it; B's side 3 points right, so its side 4 left
    expected = Organism.start("scout").dock("m0", 3, "m1", 4)
    expected = expected.dock("m1", 2, "m2", 4, kind="backbone")
    assert organism == expected


@pytest.mark.parametrize("drawing", ["B^*", "B^*-B^", "B^\n|\nB^*", "S^  B^*\n|   |\nS^ -Bv"])
def test_a_drawing_has_no_more_lines_than_it_needs(drawing):
    found = Organism.from_grid(drawing).to_grid()
    assert [len(line) for line in found.splitlines()] == [len(x) for x in drawing.splitlines()]
    assert found.replace(" ", "") == drawing.replace(" ", "")
    assert not found.endswith("\n")


def test_the_crab_s_drawing():
    assert Organism.from_grid(examples.crab().to_grid()) == examples.crab()
    assert examples.crab().to_grid().count("S") == 6


def test_a_drawing_may_be_turned_and_use_own_letters():
    assert Organism.from_grid("B^*\n|\nBv") == Organism.from_grid("B<*-B>")
    assert Organism.from_grid("B^*\n|\nBv") != Organism.from_grid("B^*\n|\nB^")
    assert Organism.from_grid("Q^*-Q^", kinds={"Q": "scout"}) == Organism.from_grid("S^*-S^")
    assert Organism.from_grid("B>*-B>") == Organism.from_grid("B^\n|\nB^*")


def test_a_stroke_may_be_anywhere_between_its_modules():
    beside, above = Organism.from_grid("B^--B^"), Organism.from_grid("B^\n|\nB^")
    for drawing in ("B^- B^", "B^ -B^"):
        assert Organism.from_grid(drawing) == beside
    for drawing in ("B^\n |\nB^", "B^\n  |\nB^", "B^\n|||\nB^"):
        assert Organism.from_grid(drawing) == above


# -- chance ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", GROUPS)
def test_random_organisms_have_the_asked_size_and_kinds(kinds):
    allowed = {kind if isinstance(kind, str) else kind.name for kind in GROUPS[kinds]}
    for modules in (1, 2, 17):
        organism = Organism.random(GROUPS[kinds], modules, np.random.default_rng(5))
        assert len(organism) == modules
        assert {organism.kind(name).name for name in organism} <= allowed


def test_random_organisms_follow_their_generator():
    one, same, other = (
        Organism.random("backbone", 12, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


@given(organisms(*CUBES))
def test_no_two_cubes_of_a_random_organism_share_a_cell(organism):
    cells = [organism.place(name).cell for name in organism]
    assert len(set(cells)) == len(cells)
    centers = np.round([organism.rest_pose(name)[:3, 3] / 0.1 for name in organism], 6)
    assert len({tuple(center) for center in centers}) == len(centers)


@pytest.mark.parametrize(("branches", "length"), [(1, 1), (4, 5), (5, 2)])
def test_superbot_trees_have_branches_of_the_asked_length(branches, length):
    organism = examples.superbot_tree(branches, length, rng=np.random.default_rng(3))
    assert len(organism) == branches * length
    assert organism.rest_pose("m0")[2, 3] == 0.042  # connector 1 stands on the ground


@pytest.mark.parametrize(("legs", "length"), [(1, 1), (4, 2), (3, 3)])
def test_superbot_walkers_have_legs_at_their_sides_that_go_from_end_to_end(legs, length):
    ends, seen = ({1, 2, 3}, {4, 5, 6}), set()
    for seed in range(8):
        organism = examples.superbot_walker(legs, length, np.random.default_rng(seed))
        assert len(organism) == 1 + legs * length
        hips = [entry.port for entry in organism.dockings if entry.parent == "m0"]
        assert len(hips) == legs
        assert set(hips) <= {2, 3, 5, 6}
        near = {entry.child: entry.child_port for entry in organism.dockings}
        for entry in organism.dockings:
            seen |= {entry.child_port, entry.turn}
            if entry.parent != "m0":
                own = next(end for end in ends if near[entry.parent] in end)
                assert entry.port in {1, 2, 3, 4, 5, 6} - own
    assert seen <= {*range(1, 7), 0, 90, 180, 270}
    assert length == 1 or seen == {*range(1, 7), 0, 90, 180, 270}


def test_superbot_trees_dock_by_all_connectors_in_all_turns():
    dockings = [
        entry
        for seed in range(8)
        for entry in examples.superbot_tree(3, 5, np.random.default_rng(seed)).dockings
    ]
    assert {entry.child_port for entry in dockings} == set(range(1, 7))
    assert {entry.port for entry in dockings} == set(range(1, 7))
    assert {entry.turn for entry in dockings} == {0, 90, 180, 270}
    roots = {entry.port for entry in dockings if entry.parent == "m0"}
    assert roots == {2, 3, 4, 5, 6}  # the first one stands on the ground
