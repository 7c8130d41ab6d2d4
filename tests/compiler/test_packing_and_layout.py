"""Values as rows of scalars, and scalars that share memory one after the other."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modurob.compiler import driver
from modurob.compiler.emit_llvm import Slot
from modurob.compiler.kernels import BodyRow, Row
from modurob.compiler.layout import allocated, places_of, span, vectors
from modurob.compiler.packing import columns, fields, flat, size, unflat
from modurob.compiler.statements import InputPlace, expression, place_of
from modurob.equations.forward_dynamics import Articulated, BiasedLink
from modurob.equations.passes import LATER, Passes, Quantity
from modurob.equations.servo import Servo
from modurob.equations.vectors import Mat, Symmetric, Twist, Vec, mat

SIZES = {
    float: 1, Vec: 3, Mat: 9, Symmetric: 6, Twist: 6, BodyRow: 12, Servo: 7,
    Row: 3 + 1 + 3 + 6 + 6 + 9, Articulated: 6 + 9 + 6 + 6,
}  # fmt: skip


@pytest.mark.parametrize("kind", SIZES, ids=str)
def test_values_are_packed_without_gaps_and_come_back(kind):
    assert size(kind) == SIZES[kind]
    scalars = [10.0 + k for k in range(SIZES[kind])]
    assert flat(kind, unflat(kind, scalars)) == scalars
    assert flat(kind, None) == [None] * SIZES[kind]


def test_a_symmetric_matrix_is_kept_as_six_numbers_and_is_whole_again():
    S = unflat(Symmetric, [1, 2, 3, 4, 5, 6])  # the diagonal, then xy, xz, yz
    assert [[S[i, j] for j in range(3)] for i in range(3)] == [[1, 4, 5], [4, 2, 6], [5, 6, 3]]


def test_arrays_are_packed_like_values():
    A = np.random.default_rng(0).normal(size=(4, 3, 3))
    A += np.swapaxes(A, 1, 2)
    for kind in (Mat, Symmetric):
        assert columns(kind, A).tolist() == [flat(kind, mat(each)) for each in A]
    assert columns(Vec, A[0]).tolist() == A[0].tolist()
    assert columns(float, A[0, 0]).tolist() == [[x] for x in A[0, 0]]


def test_fields_follow_each_other():
    start = 0
    for name, kind in fields(BiasedLink):
        assert span(BiasedLink, name) == (start, start := start + size(kind))
    assert start == size(BiasedLink)
    with pytest.raises(KeyError, match="mass"):
        span(BiasedLink, "mass")


lifetimes = st.lists(
    st.tuples(st.integers(0, 7), st.integers(1, 8)).filter(lambda pair: pair[0] < pair[1]),
    max_size=12,
)


@given(lifetimes)
def test_scalars_share_as_few_places_as_their_lifetimes_allow(times):
    """In events 4 and 5 a link's one kernel reads before it writes: the place is free at once."""
    at_once = (4, 5)
    born = {k: first for k, (first, _) in enumerate(times)}
    dies = {k: last for k, (_, last) in enumerate(times)}
    places = allocated(len(times) + 1, born, dies)
    assert places[-1] is None  # never read
    for k, one in enumerate(times):
        for other in range(k):
            (_, end), (birth, _) = sorted([one, times[other]])
            if places[k] == places[other]:
                assert end < birth or (end == birth and birth in at_once)
    alive = [
        sum(first <= t and (t < last or (t == last and t not in at_once)) for first, last in times)
        for t in range(9)
    ]
    assert vectors(places) == max(alive)


class Rewritten(NamedTuple):
    """Children read `early` on their way outward; inward a link writes it again for no one."""

    early: Any
    before: Any
    kept: Any = LATER


class Rewriting(Passes):
    State = Rewritten

    @staticmethod
    def base(link, base):
        return Rewritten(link.mass, link.mass)

    @staticmethod
    def outward(link, joint, parent):
        return Rewritten(joint.v, parent.early)

    @staticmethod
    def inward(link, joint, own, parent):
        return None, own._replace(early=joint.x, kept=joint.v * joint.x), parent

    @staticmethod
    def back(link, joint, own, parent):
        return own.kept * own.before, own


def test_a_store_that_nothing_reads_overwrites_no_other_scalar():
    quantity = Quantity(("q", "v", "a"), ("nv",), Rewriting, "y", "")
    assert sorted(places_of(quantity, False)) == [0, 1, 2]


class Handed(NamedTuple):
    """Of the base for its children, of a joint, and of what pushes a link once these are done."""

    base: Any = LATER
    joint: Any = LATER
    push: Any = LATER


class Handing(Passes):
    State = Handed

    @staticmethod
    def base(link, base):
        return Handed(link.mass)

    @staticmethod
    def outward(link, joint, parent):
        return Handed(LATER, joint.v * parent.base)

    @staticmethod
    def external(own, wrench):
        return own._replace(push=wrench.f[0])

    @staticmethod
    def inward(link, joint, own, parent):
        return own.joint + own.push, own, parent


def test_what_the_base_hands_to_its_children_needs_no_place_afterwards():
    quantity = Quantity(("q", "v"), ("nv",), Handing, "y", "")
    base, joint, push = places_of(quantity, False)
    assert base == push != joint


class LateSum(NamedTuple):
    total: Any = 0.0


class LateReading(Passes):
    """Reads on the way back what has been added up on the way inward."""

    State = LateSum

    @staticmethod
    def base(link, base):
        return LateSum(link.mass)

    @staticmethod
    def outward(link, joint, parent):
        return LateSum(link.mass)

    @staticmethod
    def inward(link, joint, own, parent):
        return None, own, parent._replace(total=parent.total + own.total)

    @staticmethod
    def back(link, joint, own, parent):
        return own.total, own


class PromptReading(LateReading):
    back = None

    @staticmethod
    def inward(link, joint, own, parent):
        return own.total, own, parent._replace(total=parent.total + own.total)


def test_what_children_add_up_is_not_kept_for_the_way_back():
    with pytest.raises(TypeError, match="LateReading: the accumulator 'total' is read after"):
        places_of(Quantity(("q",), ("nv",), LateReading, "y", ""), False)
    assert places_of(Quantity(("q",), ("nv",), PromptReading, "y", ""), False) == (0,)


def test_inputs_of_traced_code_are_read_from_the_users_arrays():
    joint = driver.BASE_RECORD + 2 * driver.JOINT_RECORD  # the third
    for free, q, v in ((False, 2, 2), (True, 9, 8)):
        found = [place_of(Slot("%io", joint + k), free) for k in range(driver.JOINT_RECORD)]
        assert set(found) == {
            InputPlace("q", q), InputPlace("q", q, "sin"), InputPlace("q", q, "cos"),
            InputPlace("v", v), InputPlace("x", v),
        }  # fmt: skip
        assert found[driver.SIN].function == "sin"
        assert found[driver.X].array == "x"
    base = [place_of(Slot("%io", k), True) for k in range(driver.BASE_RECORD)]
    assert base == [InputPlace(array, k) for array, n in (("q", 7), ("v", 6), ("x", 6))
                    for k in range(n)]  # fmt: skip
    assert place_of(Slot("%external", 11), True) == InputPlace("external", 11)


@pytest.mark.parametrize(
    ("op", "text"),
    [("add", "a + b"), ("sub", "a - b"), ("mul", "a * b"), ("div", "a / b"), ("neg", "-a"),
     ("sqrt", "sqrtf(a)"), ("trunc", "trunc(a)"), ("max", "fmax(a, b)"), ("min", "fmin(a, b)")],
)  # fmt: skip
def test_operations_are_written_as_c_has_them(op, text):
    one = op in ("neg", "sqrt", "trunc")
    assert expression(op, {3: "a", 8: "b"}, 3, None if one else 8, "sqrtf") == text
