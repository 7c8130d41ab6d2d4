"""Sines and waves do what their formulas say; what they read of a body is right."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from modurob import Organism, StateError, UnknownNameError, examples
from modurob.gaits import Sine, Wave, depths, neighbors
from modurob.gaits.body import within_limits
from oracles import WRIST, complains

ROUNDING = 1e-12
TIMES = np.linspace(0, 5, 101)


def test_a_sine_is_offset_and_amplitude_times_a_sine():
    gait = Sine(
        ["hip", "knee"], [0.5, -0.2], offset=[0.1, 0.0], frequency=[1.0, 2.5], phase=[0.0, 0.7]
    )
    q, v, a = gait(TIMES)
    for k, (A, b, f, p) in enumerate([(0.5, 0.1, 1.0, 0.0), (-0.2, 0.0, 2.5, 0.7)]):
        w = 2 * np.pi * f
        np.testing.assert_allclose(q[:, k], b + A * np.sin(w * TIMES + p), atol=ROUNDING)
        np.testing.assert_allclose(v[:, k], A * w * np.cos(w * TIMES + p), atol=10 * ROUNDING)
        np.testing.assert_allclose(a[:, k], -A * w**2 * np.sin(w * TIMES + p), atol=100 * ROUNDING)
    assert gait.period is None


def test_settings_can_be_given_by_joint():
    gait = Sine(["hip", "knee"], {"knee": 0.3}, frequency={"knee": 2.0}, phase={"hip": 1.0})
    np.testing.assert_array_equal(gait.amplitude, [0.0, 0.3])
    np.testing.assert_array_equal(gait.frequency, [1.0, 2.0])
    np.testing.assert_array_equal(gait.phase, [1.0, 0.0])
    assert gait.period == 0.5  # the hip does not move, so its frequency does not count


def test_late_times_are_as_exact_as_early_ones():
    gait = Sine(["hip"], 1.0, frequency=2.0, phase=0.3)
    np.testing.assert_allclose(gait(1e6 + TIMES).q, gait(TIMES).q, atol=1e-8)
    assert gait(2.0**30).q == gait(0.0).q


def test_a_wave_reaches_each_joint_later_than_the_one_before():
    model = examples.snake(6).model("physical")
    gait = Wave.for_model(model, amplitude=0.3, frequency=0.8, lag=0.9)
    late = 0.9 / (2 * np.pi * 0.8)
    first = gait(TIMES).q[:, 0]
    for depth in range(5):
        np.testing.assert_allclose(gait(TIMES + depth * late).q[:, depth], first, atol=ROUNDING)


def test_a_negative_lag_brings_the_wave_back():
    there = Wave(["a", "b", "c"], 0.3, lag=0.5)(1.0).q
    back = Wave(["c", "b", "a"], 0.3, lag=-0.5, phase=-1.0)(1.0).q
    np.testing.assert_allclose(there, back[::-1], atol=ROUNDING)


def test_joints_that_are_equally_far_out_move_alike():
    gait = Wave.for_model(examples.crab().model(), amplitude=0.3)
    np.testing.assert_array_equal(gait.depth, [0, 1, 1])
    q = gait(TIMES).q
    np.testing.assert_array_equal(q[:, 1], q[:, 2])
    assert np.abs(q[:, 0] - q[:, 1]).max() > 0.1


@pytest.mark.parametrize(
    ("organism", "hinges", "expected"),
    [
        (examples.snake(5), "dyad", [0, 1, 2, 3]),
        (examples.crab(), "physical", [0, 1, 2, 3, 2, 3]),
        (examples.nine(), "dyad", [0, 1, 0, 0, 1]),
    ],
)
def test_depth_counts_the_joints_on_the_way_from_the_base(organism, hinges, expected):
    assert depths(organism.model(hinges)).tolist() == expected


def test_neighbors_of_a_chain_are_the_next_ones():
    model = examples.snake(5).model("physical")
    names = model.joint_names
    assert neighbors(model) == tuple(pairwise(names))


def test_the_joints_of_the_crab_meet_at_its_middle():
    """Modules 1, 2 and 4 are one link: the crab's dyads between them cannot bend."""
    assert neighbors(examples.crab().model()) == (
        ("m1.hinge", "m3.hinge"), ("m1.hinge", "m5.hinge"), ("m3.hinge", "m5.hinge"),
    )  # fmt: skip


def test_neighbors_do_not_depend_on_the_base():
    organism = examples.superbot_tree(branches=3, length=2)
    seen = {
        frozenset(map(frozenset, neighbors(organism.rebase(name).model("physical", base="free"))))
        for name in organism.modules
    }
    assert len(seen) == 1


def test_the_default_motion_stays_half_way_to_the_limits():
    model = examples.crab().model("physical")
    offset, amplitude = within_limits(model, None, None)
    np.testing.assert_array_equal(offset, 0.0)
    np.testing.assert_allclose(amplitude, model.upper / 2)


def test_the_default_motion_is_about_the_middle_of_the_limits():
    model = Organism.start(WRIST).model("physical")
    offset, amplitude = within_limits(model, None, None)
    np.testing.assert_allclose(offset, (model.lower + model.upper) / 2)
    np.testing.assert_allclose(amplitude, (model.upper - model.lower) / 4)
    assert offset.any()


def test_joints_with_one_limit_or_none_swing_as_usual():
    model = examples.arm("bac").model()
    offset, amplitude = within_limits(model, None, None)
    np.testing.assert_array_equal(offset, 0.0)
    np.testing.assert_array_equal(amplitude, [0.5, 0.5, 0.05])

    class OneSided:
        joint_names, prismatic = ("a", "b"), np.array([False, True])
        lower, upper = np.array([1.0, -np.inf]), np.array([np.inf, -0.2])

    offset, amplitude = within_limits(OneSided(), None, None)
    np.testing.assert_allclose(offset, [1.5, -0.25])
    np.testing.assert_allclose(amplitude, [0.25, 0.025])


@pytest.mark.parametrize(
    ("settings", "pieces"),
    [
        ({"frequency": 0.0}, ["frequencies are positive", "0 Hz", "hip"]),
        ({"frequency": [1.0, -2.0]}, ["-2 Hz", "knee"]),
        ({"phase": [1.0, 2.0, 3.0]}, ["phase", "(3,)", "hip, knee"]),
    ],
)
def test_a_sine_refuses(settings, pieces):
    with complains(StateError, *pieces):
        Sine(["hip", "knee"], 0.1, **settings)


def test_a_wave_refuses_lags_that_would_look_like_others():
    with complains(StateError, "lag", "-3.14159 to 3.14159", "4"):
        Wave(["hip", "knee"], 0.1, lag=4)
    with complains(UnknownNameError, "toe", "hip, knee"):
        Wave(["hip", "knee"], 0.1, depth={"toe": 1})


def test_a_short_ramp_rests_before_the_gait_begins():
    gait = Sine(["hip"], 1.0, phase=1.0, offset=0.2, ramp=0.5)
    np.testing.assert_array_equal(gait(-1.0), [[0.2], [0.0], [0.0]])
    with complains(StateError, "begins at t = 0", "-1"):
        Sine(["hip"], 1.0)(-1.0)


def test_parameters_are_those_that_a_user_may_choose():
    assert Wave.parameters().keys() == {
        "amplitude", "offset", "frequency", "lag", "phase", "ramp"
    }  # fmt: skip
    assert Sine.parameters()["frequency"] == 1.0


def test_importing_gaits_loads_nothing_heavy():
    heavy = ("matplotlib", "scipy", "sympy", "llvmlite")
    code = f"import sys, modurob.gaits; print(*(set({heavy!r}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_a_gait_prints_what_it_is():
    assert repr(Sine(["hip"], 1.0)) == "<Sine gait of 1 joint>"
    assert repr(Wave(["hip", "knee"], 1.0)) == "<Wave gait of 2 joints>"


def test_numbers_for_joints_are_one_or_one_each():
    for wrong in ([[1], [1, 2]], [1, "2"], [True, True], {"hip": None, "knee": 1.0}, object()):
        with complains(StateError, "amplitude must hold finite real numbers"):
            Sine(["hip", "knee"], wrong)
    for wrong in ([1.0], [1.0, 2, 3], [[1.0, 2.0]]):
        with complains(StateError, "amplitude has shape", "(2,)", "hip, knee"):
            Sine(["hip", "knee"], wrong)


def test_an_offset_may_be_a_limit_and_the_joint_holds_still_there():
    model = examples.crab().model()
    for limit in (model.lower, model.upper):
        gait = Sine.for_model(model, offset=limit, amplitude=0.3)
        np.testing.assert_array_equal(gait(TIMES).q, np.broadcast_to(limit, (len(TIMES), 3)))


@pytest.mark.parametrize("offset", [None, [0.1, -0.3, 0.7]])
def test_the_largest_swing_does_not_pass_a_limit_by_rounding(offset):
    model = examples.crab().model()
    center, swing = within_limits(model, offset, 100.0)
    room = np.minimum(model.upper - center, center - model.lower)
    assert (center + swing <= model.upper).all()
    assert (center - swing >= model.lower).all()
    assert (swing < room).all()
    np.testing.assert_allclose(swing, room, rtol=1e-11)


def test_only_joints_that_are_there_twice_are_named():
    with pytest.raises(StateError) as caught:
        Sine(["hip", "knee", "toe", "knee", "hip"], 0.1)
    assert str(caught.value) == "joints are there twice: hip, knee"
