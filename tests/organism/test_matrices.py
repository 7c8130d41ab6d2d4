"""AIM, accessibility, DTL and IDTL of the documents' organisms and of random ones."""

import numpy as np
import pytest
from hypothesis import given

from modurob import Organism, examples
from oracles import organisms

ROUNDING = 1e-13  # products of up to twenty poses

CRAB_AIM = [
    [3, 0, 0, 0, 0],
    [4, 2, 0, 5, 0],
    [0, 5, 3, 0, 0],
    [0, 0, 2, 0, 0],
    [0, 0, 0, 2, 3],
    [0, 0, 0, 0, 5],
]
CRAB_DTL = [(0, 1, 3, 4), (1, 2, 2, 5), (2, 3, 3, 2), (1, 4, 5, 2), (4, 5, 3, 5)]
# meister2013, Tab. III, with the pairs (1, 3) and (1, 5) that it omits (erratum 11)
CRAB_PRINTED_PAIRS = {(0, 2), (0, 3), (0, 4), (0, 5)}
CRAB_OMITTED_PAIRS = {(1, 3), (1, 5)}
CRAB_BEYOND = {0: [1, 2, 3, 4, 5], 1: [2, 3, 4, 5], 2: [3], 4: [5]}

NINE_AIM = [
    [3, 0, 5, 0, 0, 2, 0, 0],
    [2, 5, 0, 0, 0, 0, 0, 0],
    [0, 3, 0, 0, 0, 0, 0, 0],
    [0, 0, 2, 4, 0, 0, 0, 0],
    [0, 0, 0, 3, 5, 0, 0, 0],
    [0, 0, 0, 0, 2, 0, 0, 0],
    [0, 0, 0, 0, 0, 5, 4, 0],
    [0, 0, 0, 0, 0, 0, 2, 4],
    [0, 0, 0, 0, 0, 0, 0, 5],
]
NINE_DTL = [
    (0, 1, 3, 2),
    (1, 2, 5, 3),
    (0, 3, 5, 2),
    (3, 4, 4, 3),
    (4, 5, 5, 2),
    (0, 6, 2, 5),
    (6, 7, 4, 2),
    (7, 8, 4, 5),
]
NINE_PAIRS = [(0, 2), (0, 4), (3, 5), (0, 5), (0, 7), (6, 8), (0, 8)]  # meister2012, Tab. III
NINE_BEYOND = {0: range(1, 9), 1: [2], 3: [4, 5], 4: [5], 6: [7, 8], 7: [8]}


def as_matrix(beyond, size):
    matrix = np.zeros((size, size), dtype=int)
    for i, row in beyond.items():
        matrix[i, list(row)] = 1
    return matrix


@pytest.mark.parametrize(
    ("organism", "matrix", "kind", "classes"),
    [
        (examples.crab(), CRAB_AIM, "S", ("DP", "DS", "DO", "DS", "DO")),
        (examples.nine(), NINE_AIM, "B", ("DO", "DO", "DS", "DP", "DS", "DS", "DO", "DO")),
    ],
    ids=["crab", "nine"],
)
def test_aim_of_the_documents_organisms(organism, matrix, kind, classes):
    aim = organism.aim()
    np.testing.assert_array_equal(aim.matrix, matrix)
    assert aim.kinds == [kind] * len(matrix)
    assert aim.classes == list(classes)
    assert organism.dyad_classes() == list(classes)


def test_the_next_module_gets_the_next_column_of_a_matrix():
    nine = Organism.from_aim(NINE_AIM, "B" * 9)
    module = next(name for name in nine if nine.free_ports(name))
    more = nine.dock(module, nine.free_ports(module)[0], "new", 3, kind="backbone")
    assert [entry.column for entry in more.dockings][-1] == 9
    assert sorted(entry.column for entry in more.dockings) == list(range(1, 10))
    np.testing.assert_array_equal(more.aim().matrix[:9, :8], NINE_AIM)


@pytest.mark.parametrize(
    ("organism", "rows"),
    [(examples.crab(), CRAB_DTL), (examples.nine(), NINE_DTL)],
    ids=["crab", "nine"],
)
def test_direct_transforms_of_the_documents_organisms(organism, rows):
    assert [tuple(row) for row in organism.direct_transforms()] == rows


@pytest.mark.parametrize(
    ("organism", "beyond"),
    [(examples.crab(), CRAB_BEYOND), (examples.nine(), NINE_BEYOND)],
    ids=["crab", "nine"],
)
def test_accessibility_of_the_documents_organisms(organism, beyond):
    np.testing.assert_array_equal(organism.accessibility(), as_matrix(beyond, len(organism)))


def test_indirect_transforms_of_the_nine_are_those_of_the_document():
    rows = examples.nine().indirect_transforms()
    assert [(i, j) for i, j, *_ in rows.tolist()] == NINE_PAIRS
    assert rows[3].tolist() == [0, 5, 0, 4, 4, 5]


def test_indirect_transforms_of_the_crab_hold_the_two_pairs_the_document_omits():
    rows = examples.crab().indirect_transforms()
    pairs = [(i, j) for i, j, *_ in rows.tolist()]
    assert set(pairs) == CRAB_PRINTED_PAIRS | CRAB_OMITTED_PAIRS
    assert len(pairs) == len(set(pairs))


@pytest.mark.parametrize("omitted", sorted(CRAB_OMITTED_PAIRS))
def test_an_omitted_pair_is_an_ancestor_and_its_descendant(omitted):
    crab = examples.crab()
    assert crab.accessibility()[omitted] == 1
    assert omitted not in [(i, j) for i, j, *_ in crab.direct_transforms().tolist()]


def relative(organism, i, j):
    T_i, T_j = (organism.rest_pose(organism.modules[k]) for k in (i, j))
    return np.linalg.inv(T_i) @ T_j


@given(organisms())
def test_each_indirect_row_uses_only_dockings_or_rows_before_it(organism):
    known = {(i, j) for i, j, *_ in organism.direct_transforms().tolist()}
    for i, j, i_again, x, x_again, j_again in organism.indirect_transforms().tolist():
        assert (i, x, j) == (i_again, x_again, j_again)
        assert {(i, x), (x, j)} <= known
        assert (i, j) not in known
        known.add((i, j))
    assert known == {tuple(pair) for pair in np.argwhere(organism.accessibility()).tolist()}


@given(organisms())
def test_each_indirect_row_is_a_product_of_poses(organism):
    T = {
        (i, j): organism.dyad(entry).transform
        for entry, (i, j, *_) in zip(
            organism.dockings, organism.direct_transforms().tolist(), strict=True
        )
    }
    for i, j, _, x, _, _ in organism.indirect_transforms().tolist():
        T[i, j] = T[i, x] @ T[x, j]
        np.testing.assert_allclose(T[i, j], relative(organism, i, j), rtol=0, atol=ROUNDING)


@given(organisms())
def test_accessibility_is_the_closure_of_the_dockings(organism):
    n = len(organism)
    step = np.zeros((n, n), dtype=int)
    for i, j, *_ in organism.direct_transforms():
        step[i, j] = 1
    reach, power = np.zeros_like(step), np.eye(n, dtype=int)
    for _ in range(n):
        power = power @ step
        reach += power
    np.testing.assert_array_equal(organism.accessibility(), reach)


@given(organisms())
def test_each_aim_column_holds_the_two_docked_sides(organism):
    aim = organism.aim()
    assert aim.matrix.shape == (len(organism), len(organism) - 1)
    for column, (i, j, side_i, side_j) in zip(
        aim.matrix.T, organism.direct_transforms(), strict=True
    ):
        assert (column[i], column[j], np.count_nonzero(column)) == (side_i, side_j, 2)


def test_a_single_module_has_empty_matrices():
    alone = Organism.start("scout")
    assert alone.aim().matrix.shape == (1, 0)
    assert alone.accessibility().tolist() == [[0]]
    assert alone.direct_transforms().shape == (0, 4)
    assert alone.indirect_transforms().shape == (0, 6)


def test_the_crane_writes_seven_for_its_virtual_joint():
    aim = examples.crane().aim()
    assert aim.matrix.tolist() == [[7, 0], [7, 3], [0, 4]]
    assert aim.kinds == ["V", "B", "B"]
    assert aim.classes == ["DV", "DP"]


def test_an_aim_prints_as_the_documents_table():
    assert str(examples.crane().aim()).splitlines() == [
        "    e1  e2",
        "v0   7   0  V",
        "v1   7   3  B",
        "v2   0   4  B",
        "    DV  DP",
    ]
