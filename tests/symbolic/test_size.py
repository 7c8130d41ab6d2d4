"""Estimates of the length of closed forms, counted by hand along short chains."""

import math

import pytest

from modurob import ModuleType, Organism, SizeError, examples
from modurob.symbolic import size
from oracles import complains

# joints in a row: r parallel ones give 2 r + 1 waves of a pose and 2 r^2 + 2 r + 1 of an inertia
POSES = {
    "two parallel": (examples.double_pendulum(), [1, 3, 5]),
    "three parallel": (examples.arm("aaa"), [1, 3, 5, 7]),
    "three askew": (examples.arm("aba"), [1, 3, 9, 27]),
    "a slide between": (examples.arm("aca"), [1, 3, 3, 9]),
    "a slide first": (examples.crane(), [1, 1, 3]),
}
MATRICES = {
    "two parallel": 1 + 1 + 2 * 5,
    "three parallel": 1 + (1 + 2 * 5) + (1 + 2 * 5 + 3 * 13),
    "three askew": 1 + (1 + 2 * 5) + (1 + 2 * 5 + 3 * 25),
    "a slide between": 1 + (1 + 2 * 1) + (1 + 2 * 5 + 3 * 5),
    "a slide first": 1 + (1 + 2 * 5),
}
ENTRIES = {  # M[1,1], M[1,2], M[2,2]; links that move with both joints
    "two parallel": [1 + 5, 5, 1],
    "three parallel": [1 + 5 + 13, 5 + 13, 1 + 5],
    "three askew": [1 + 5 + 25, 5 + 25, 1 + 5],
}


@pytest.mark.parametrize("name", POSES)
def test_terms_of_chains_are_counted(name):
    organism, poses = POSES[name]
    model = organism.model("physical")
    assert size.terms_of_poses(model) == poses
    assert size.terms_of_matrix(model, ()) == MATRICES[name]
    for row in range(len(poses) - 1):
        assert size.terms_of_gravity(model, (), [row]) == sum(poses[row + 1 :])
    assert size.terms_of_gravity(model, (), [0, 1]) == sum(poses[1:]) + sum(poses[2:])
    for (row, column), terms in zip([(0, 0), (0, 1), (1, 1)], ENTRIES.get(name, ()), strict=False):
        assert size.terms_of_entry(model, (), row, column) == terms
        assert size.terms_of_entry(model, (), column, row) == terms


@pytest.mark.parametrize(
    ("tilt", "poses"), [(0.0, [1, 3, 5]), (math.pi, [1, 3, 5]), (0.3, [1, 3, 9]), (1e-3, [1, 3, 9])]
)
def test_axes_are_parallel_or_askew_by_their_angle(tilt, poses):
    solid = {"mass": 1.0, "center_of_mass": (0.1, 0.0, 0.0), "inertia": (0.01, 0.02, 0.02)}
    place = {"kind": "revolute", "axis": (0, 0, 1), "position": (0.1, 0, 0)}
    arm = ModuleType(
        name="arm", symbol="a", size=0.1,
        bodies=[{"name": f"b{k}", **solid} for k in range(3)],
        joints=[{"name": f"j{k}", "parent": f"b{k}", "child": f"b{k + 1}", **place,
                 "rpy": (k * tilt, 0, 0)} for k in range(2)],
        ports=[{"label": 1, "body": "b0", "position": (0, 0, 0), "normal": (0, 0, -1),
                "reference": (1, 0, 0), "connector": "x", "mates": ["x"]}],
    )  # fmt: skip
    assert size.terms_of_poses(Organism.start(arm).model("physical")) == poses


def test_a_free_base_adds_its_own_rows():
    """Nine entries couple turns; the rest of 6 x 6, and two of 6 for each joint, are linear."""
    model = examples.double_pendulum().model("physical", "free")
    own = 5 * 9 + 3 * (27 + 12) + 13 * 9 + 5 * (27 + 24)
    assert size.terms_of_matrix(model, ()) == MATRICES["two parallel"] + own
    assert size.terms_of_entry(model, (), -1, -6) == 5 + 3 + 13 + 5
    assert size.terms_of_gravity(model, (), [-1]) == 1 + 3 + 5


@pytest.mark.parametrize(
    ("entry", "terms"),
    [("M[7,7]", 1 + 5), ("M[7,8]", 5), ("M[8,8]", 1), ("M[6,6]", 5 + 3 + 13 + 5), ("N[7]", 3 + 5),
     ("N[6]", 1 + 3 + 5)],
)  # fmt: skip
def test_entries_of_a_free_base_are_counted_from_its_six_velocities_on(entry, terms):
    def asked(limit):
        body = examples.double_pendulum()
        equations = body.equations("physical", "free", symbols="none", limit=limit)
        return equations.exact_entry(equations.parse_entry(entry))

    asked(terms)
    with complains(SizeError, f"{entry} would have up to about {terms} terms"):
        asked(terms - 1)


@pytest.mark.parametrize(
    ("groups", "factor"),
    [((), 1), (("gravity",), 1), (("mass",), 2), (("mass", "length"), 3),
     (("mass", "length", "inertia", "gravity"), 4)],
)  # fmt: skip
def test_symbols_keep_terms_apart(groups, factor):
    model = examples.double_pendulum().model("physical")
    assert size.terms_of_matrix(model, groups) == 12 * factor
    assert size.terms_of_entry(model, groups, 0, 0) == 6 * factor
    assert size.terms_of_gravity(model, groups, [1]) == 5 * factor


def test_what_is_longer_than_the_limit_is_refused_with_advice():
    size.check_size(100, 100, "M", ())
    with complains(SizeError, "M would have up to about 101 terms, over the limit of 100: ask for"):
        size.check_size(101, 100, "M", ())
    with complains(SizeError, "about 999,999,999 terms", "limit of 1,000:") as told:
        size.check_size(999_999_999, 1000, "M", ("gravity",))
    assert "symbols none" not in told.message
    assert "one entry" not in told.message
    with complains(SizeError, "about 1e+09 terms", "one entry at a time", "symbols none"):
        size.check_size(1e9, 1000, "M", ("mass",), has_entries=True)
    assert size.READABLE == 100_000


def test_a_whole_matrix_counts_its_own_terms_and_a_document_those_of_all():
    """Twelve terms of M or C, and 3 + 5 + 5 of gravity."""
    equations = {
        limit: examples.double_pendulum().equations("physical", symbols="none", limit=limit)
        for limit in (11, 12, 13, 24, 25)
    }
    for limit, letter in ((11, "M"), (11, "C"), (12, "N")):
        with complains(SizeError, f"{letter} as a whole would have"):
            getattr(equations[limit], letter)
    assert equations[12].M.shape == equations[12].C.shape == (2, 2)
    assert equations[13].N.shape == (2, 1)
    asked = ("text", "data", "linearize", "feedback_linearization", "regressor")
    for written in (getattr(equations[24], name) for name in asked):
        with complains(SizeError, "about 25 terms"):
            written()
    with complains(SizeError, "about 25 terms"):
        equations[24].evaluate([0, 0], [0, 0])
    assert equations[25].text().startswith("M[1,1] = ")
