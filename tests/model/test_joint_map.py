"""Joints of a body before and after a change, matched by name."""

import numpy as np
import pytest

from modurob import examples
from modurob.model.joint_map import JointMap, shared_places

OLD, NEW = examples.snake(4), examples.snake(3).rename(prefix="n")


@pytest.fixture(scope="module", params=["fixed", "free"])
def bodies(request):
    """m0 to m3 lose m2 and m3 and get nm0 to nm2."""
    left, _ = OLD.undock("m2")
    grown = left.merge("m1", 3, NEW, "nm0", 4)
    return OLD.model("physical"), grown.model("physical", base=request.param)


def test_joints_are_matched_by_name(bodies):
    old, new = bodies
    joints = JointMap(old, new)
    names = [old.joint_names[k] for k in joints.kept_old]
    assert names == [new.joint_names[k] for k in joints.kept_new]
    assert set(names) == set(old.joint_names) & set(new.joint_names)
    assert 0 < len(names) < len(old.joint_names)
    assert {new.joint_names[k] for k in joints.added} == set(new.joint_names) - set(names)


def test_numbers_and_matrices_of_kept_joints_are_kept(bodies):
    joints, rng = JointMap(*bodies), np.random.default_rng(1)
    n = len(joints.old.joint_names)
    numbers, matrix = rng.uniform(1, 2, n), rng.standard_normal((n, n))
    carried = joints.carry(numbers)
    np.testing.assert_array_equal(carried[joints.kept_new], numbers[joints.kept_old])
    np.testing.assert_array_equal(carried[joints.added], np.median(numbers))
    filled = joints.carry(matrix, fill=7.0)
    kept_old, kept_new = (np.ix_(k, k) for k in (joints.kept_old, joints.kept_new))
    np.testing.assert_array_equal(filled[kept_new], matrix[kept_old])
    rest = filled.copy()
    rest[kept_new] = 0.0
    expected = np.zeros(len(rest))
    expected[joints.added] = 7.0
    np.testing.assert_array_equal(rest, np.diag(expected))


def test_added_joints_get_a_median_for_their_size_or_what_is_given(bodies):
    joints = JointMap(*bodies)
    n, m = (len(model.joint_names) for model in bodies)
    before, after = np.arange(1.0, n + 1), np.arange(10.0, m + 10)
    carried = joints.carry(3.0 * before, sizes=(before, after))
    np.testing.assert_array_equal(carried[joints.added], 3.0 * after[joints.added])
    np.testing.assert_array_equal(joints.carry(before, fill=after)[joints.added],
                                  after[joints.added])  # fmt: skip


def test_states_of_the_new_body_have_the_old_joints(bodies):
    joints, rng = JointMap(*bodies), np.random.default_rng(2)
    old, new = bodies
    q, v = rng.standard_normal(old.nq), rng.standard_normal(old.nv)
    moved, speed = joints.configuration(q, fill=0.5), joints.velocity(v)
    new.check_configuration(moved)
    np.testing.assert_array_equal(moved[new.joint_slice_q][joints.kept_new], q[joints.kept_old])
    np.testing.assert_array_equal(moved[new.joint_slice_q][joints.added], 0.5)
    assert not joints.configuration(q)[new.joint_slice_q][joints.added].any()
    there, here = joints.rows
    np.testing.assert_array_equal(speed[here], v[there])
    assert np.count_nonzero(speed) == len(here)


def test_a_body_without_joints_has_nothing_to_carry():
    alone, snake = (examples.snake(n).model("physical") for n in (1, 3))
    np.testing.assert_array_equal(JointMap(alone, snake).carry(np.zeros(0)), [0.0, 0.0])
    assert JointMap(snake, alone).carry(np.ones(2)).shape == (0,)


def test_shared_places_follow_the_order_of_the_new_names():
    there, here = shared_places(("a", "b", "c"), ("c", "x", "a"))
    assert (there.tolist(), here.tolist()) == ([2, 0], [0, 2])
