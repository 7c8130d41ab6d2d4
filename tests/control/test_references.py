"""References: derivatives fit, limits are kept or named."""

from types import SimpleNamespace

import numpy as np
import pytest

from modurob import StateError, examples
from modurob.control import Reference
from modurob.control.references import (
    Carried,
    Clipped,
    Quintic,
    Recorded,
    SetPoint,
    Slowed,
    Spline,
    Steps,
    excesses,
    minimum_jerk,
    slowed,
)
from modurob.reference import no_reference
from oracles import complains
from oracles.differences import slope

ROUNDING = 1e-12
DIFFERENCES = 1e-7  # of order eight over 10 ms of curves that last a second
A, B = np.array([0.1, -0.4, 0.3]), np.array([0.9, 0.2, -0.5])


@pytest.fixture(scope="module")
def crab():
    return examples.crab().model()


def wave(t):
    """As a gait gives it."""
    s, c = np.sin(3 * t), np.cos(3 * t)
    return SimpleNamespace(q=0.5 * s * np.ones(3), v=1.5 * c * np.ones(3), a=-4.5 * s * np.ones(3))


CURVES = {
    "quintic": Quintic(A, B, 1.3, v0=[0.1, 0, 0.2], v1=0.3, a0=-0.5, a1=[0, 1, 2], begin=0.2),
    "minimum jerk": minimum_jerk(A, B, 1.5),
    "spline": Spline([0, 0.4, 1.1, 1.6], [A, B, -A, B]),
    "slowed": Slowed(wave, 1.7),
    "carried": Carried(wave, examples.crab().model(), examples.crab().model(), A),
}


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_velocities_and_accelerations_are_those_of_the_curve(curve):
    for t in (0.3, 0.75, 1.0, 1.35):
        now = curve(t)
        near = [slope(lambda s, k=k, t=t: curve(t + s)[k], 1e-2) for k in (0, 1)]
        np.testing.assert_allclose(now.v, near[0], rtol=0, atol=DIFFERENCES)
        np.testing.assert_allclose(now.a, near[1], rtol=0, atol=20 * DIFFERENCES)


def test_a_quintic_meets_its_ends_and_rests_beyond_them():
    curve = CURVES["quintic"]
    first, last = curve(0.2), curve(1.5)
    for found, expected in zip(
        (*first, *last), (A, [0.1, 0, 0.2], [-0.5] * 3, B, [0.3] * 3, [0, 1, 2]), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)
    for t, place in ((-1.0, A), (9.0, B)):
        np.testing.assert_allclose(curve(t), [place, np.zeros(3), np.zeros(3)], atol=ROUNDING)


def test_minimum_jerk_is_the_polynomial_of_the_textbook():
    curve = minimum_jerk(A, B, 2.0)
    for x in (0.0, 0.2, 0.5, 0.9, 1.0):
        expected = A + (B - A) * (10 * x**3 - 15 * x**4 + 6 * x**5)
        np.testing.assert_allclose(curve(2.0 * x).q, expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("limits", [{"rate": 0.7}, {"acceleration": [1, 2, 3]},
                                    {"rate": 0.7, "acceleration": 5.0}])  # fmt: skip
def test_minimum_jerk_is_as_fast_as_limits_allow(limits, crab):
    curve = minimum_jerk(A, B, **limits)
    assert not excesses(curve, crab, curve.duration, **limits)
    tighter = {name: 0.999 * np.asarray(value) for name, value in limits.items()}
    assert excesses(curve, crab, curve.duration, **tighter)
    assert minimum_jerk(A, B, curve.duration, **limits).duration == curve.duration
    with complains(StateError, "too short", f"{curve.duration:.6g}"):
        minimum_jerk(A, B, 0.99 * curve.duration, **limits)


def test_minimum_jerk_keeps_joint_limits(crab):
    with complains(StateError, "q1 is beyond the joint limits of m3.hinge"):
        minimum_jerk(A, [0.1, 1.6, 0.1], 1.0, model=crab)
    ends = [crab.lower[0], crab.upper[1], 0.0], [crab.upper[0], crab.lower[1], 0.1]
    np.testing.assert_allclose(minimum_jerk(*ends, 1.0, model=crab)(1.0).q, ends[1])
    assert minimum_jerk(A, B, 0.05).duration == 0.05
    assert minimum_jerk([0.0], [1e-3], rate=1.0).duration == pytest.approx(15 / 8 * 1e-3)
    still = minimum_jerk(A, A, rate=1.0)
    assert still.duration == 1.0
    with complains(StateError, "give a duration"):
        minimum_jerk(A, B)


def test_a_spline_goes_through_its_waypoints_smoothly():
    times, places = [0, 0.4, 1.1, 1.6], np.array([A, B, -A, B])
    curve = Spline(times, places)
    np.testing.assert_allclose([curve(t).q for t in times], places, rtol=0, atol=ROUNDING)
    for t in (-1.0, 0.0, 1.6, 3.0):
        np.testing.assert_allclose(curve(t)[1:], 0, atol=1e-10)
    for t in (0.4, 1.1):  # accelerations do not jump
        np.testing.assert_allclose(curve(t - 1e-9).a, curve(t + 1e-9).a, atol=1e-6)


def test_limits_of_a_reference_are_looked_at_in_2001_instants(crab):
    for look in (excesses, slowed):
        asked = []
        look(lambda t, asked=asked: (asked.append(t), wave(t))[1], crab, 3.0, rate=1.0)
        np.testing.assert_allclose(asked, np.linspace(0, 3, 2001), rtol=0, atol=ROUNDING)


def test_limits_may_be_exceeded_by_rounding(crab):
    """A billionth of the limit and of one."""
    for off, names in ((0.9e-9, []), (1.1e-9, ["m1.hinge"])):
        rate = 3.0 + off * 4.0
        way = Reference(np.zeros(3), np.array([-rate, 0, 0]), np.zeros(3))
        assert [x.joint for x in excesses(lambda t, way=way: way, crab, 1.0, rate=3.0)] == names
    edge = np.where([True, False, True], crab.upper, crab.lower)
    for off, fits in ((0.9e-9, True), (1.1e-9, False)):
        place = edge * (1 + off / np.abs(edge))
        for ends in ((place, np.zeros(3)), (np.zeros(3), place)):
            if fits:
                minimum_jerk(*ends, 1.0, model=crab)
            else:
                with complains(StateError, "beyond the joint limits of m1.hinge, m3.hinge, m5"):
                    minimum_jerk(*ends, 1.0, model=crab)


def test_steps_jump_at_their_times():
    np.testing.assert_array_equal(Steps([0.5], [A])(0.0).q, A)  # one place is enough
    steps = Steps([0.5, 1.0], [A, B])
    for t, place in ((0.0, A), (0.5, A), (0.999, A), (1.0, B), (7.0, B)):
        np.testing.assert_array_equal(steps(t).q, place)
    np.testing.assert_array_equal(SetPoint(A)(3.0), [A, np.zeros(3), np.zeros(3)])


@pytest.mark.parametrize("with_rates", [True, False])
def test_a_recorded_motion_is_played_back(with_rates):
    t = np.linspace(0, 2, 401)
    q, v = (np.array([getattr(wave(x), name) for x in t]) for name in "qv")
    curve = Recorded(t, q, v if with_rates else None, hold=True)
    for x in (0.3, 0.77, 1.5):
        np.testing.assert_allclose(curve(x)[:2], [wave(x).q, wave(x).v], rtol=0, atol=1e-6)
        np.testing.assert_allclose(curve(x).a, wave(x).a, rtol=0, atol=1e-3)
    np.testing.assert_allclose(curve(5.0), [q[-1], np.zeros(3), np.zeros(3)], atol=ROUNDING)


def test_a_recorded_trajectory_of_a_free_body_keeps_its_joints():
    rows = np.arange(5.0)
    trajectory = SimpleNamespace(
        t=rows, q=np.outer(rows, np.arange(9)), v=np.outer(rows, np.ones(8))
    )
    np.testing.assert_allclose(Recorded.of(trajectory)(2.0).q, [14, 16], atol=ROUNDING)
    np.testing.assert_allclose(Recorded.of(trajectory, hold=True)(9.0).q, [28, 32], atol=ROUNDING)
    for t in (-0.1, -4.4e-9, 4 + 4.4e-9, 4.1):  # a billionth of its length is rounding
        with complains(StateError, "lasts from 0 to 4 s", f"got t = {t:g} s"):
            Recorded.of(trajectory)(t)
    for t, place in ((-3.6e-9, [0, 0]), (4 + 3.6e-9, [28, 32])):
        np.testing.assert_allclose(Recorded.of(trajectory)(t).q, place, atol=ROUNDING)


def test_a_slowed_gait_keeps_its_path_and_the_limits(crab):
    slow = slowed(wave, crab, 3.0, rate=1.0, acceleration=1.0)
    assert slow.factor == pytest.approx(np.sqrt(4.5), rel=1e-3)
    assert not excesses(slow, crab, 3.0, rate=1.0, acceleration=1.0)
    np.testing.assert_allclose(slow(slow.factor * 0.4).q, wave(0.4).q, rtol=0, atol=ROUNDING)
    assert slowed(wave, crab, 3.0, rate=9.0).factor == 1.0
    tight = slowed(wave, crab, 3.0, rate=0.05, acceleration=0.05)
    assert tight.factor == pytest.approx(1.5 / 0.05)
    assert slowed(wave, crab, 3.0, acceleration=0.01).factor == pytest.approx(np.sqrt(450), 1e-3)
    assert {x.limit for x in excesses(wave, crab, 3.0, rate=0.05)} == {0.05}


def test_excesses_name_joint_value_limit_and_time(crab):
    def low(t):
        return Reference(np.array([0.0, -2.0 * t, 1.2 * t]), np.zeros(3), np.array([0, 0, 9.0 * t]))

    found = excesses(low, crab, 1.0, acceleration=8.0)
    assert [(x.joint, x.what) for x in found] == [
        ("m3.hinge", "position"), ("m5.hinge", "acceleration")
    ]  # fmt: skip
    assert found[0].value == pytest.approx(-2.0)
    assert found[0].limit == pytest.approx(-np.pi / 2)
    assert found[0].time == 1.0
    assert str(found[1]) == "m5.hinge: acceleration 9 beyond 8 at 1 s"


def test_a_clipped_reference_waits_at_the_limit(crab):
    def far(t):
        return Reference(np.array([3.0 * t, 0, 0]), np.array([3.0, 1, 0]), np.ones(3))

    clipped = Clipped(far, crab)
    assert not excesses(clipped, crab, 2.0)
    np.testing.assert_allclose(clipped(1.0), [[np.pi / 2, 0, 0], [0, 1, 0], [0, 1, 1]])


def test_a_clipped_reference_is_as_given_up_to_the_limits_themselves(crab):
    q = np.array([crab.lower[0], crab.upper[1], 0.0])
    given = Reference(q, np.array([1.0, -1.0, 0.5]), np.ones(3))
    np.testing.assert_array_equal(Clipped(lambda t: given, crab)(0.0), given)


def test_a_carried_reference_goes_on_for_the_joints_that_survive():
    old, new = (examples.snake(n).model("physical") for n in (4, 6))
    hold = np.array([9, 9, 9, 0.25, -0.5])
    now = Carried(wave, old, new, hold)(0.3)
    assert old.joint_names == new.joint_names[:3]
    np.testing.assert_array_equal(now.q[:3], wave(0.3).q)
    np.testing.assert_array_equal(now.a[:3], wave(0.3).a)
    np.testing.assert_array_equal(now.q[3:], [0.25, -0.5])
    assert not now.v[3:].any()
    with complains(StateError, "1, 1 and 1 joints", "before had 5"):
        Carried(SetPoint([1]), new, old, np.zeros(3))(0.0)


@pytest.mark.parametrize(
    ("make", "pieces"),
    [
        (lambda: Quintic([0, 1], [0], 1.0), ["2 and 1 joints"]),
        (lambda: Quintic([0], [1], 0.0), ["duration"]),
        (lambda: Quintic([0], [1], 1.0, v0=[1, 2]), ["v0", "(2,)"]),
        (lambda: Quintic([[0]], [1], 1.0), ["q0", "(1, 1)"]),
        (lambda: Quintic([0], [np.nan], 1.0), ["q1", "finite"]),
        (lambda: Spline([0, 0], [[1], [2]]), ["times must increase"]),
        (lambda: Spline([0], [[1]]), ["at least 2"]),
        (lambda: Spline([0, 1, 1e300], [[0], [1], [0]]), ["no smooth curve", "more evenly apart"]),
        (lambda: Recorded([0, 5e-324], [[0], [1]]), ["no smooth curve"]),
        (lambda: Quintic([0], [1], 5e-324), ["no smooth curve"]),
        (lambda: Steps([0, 1], [1, 2]), ["(k, n)"]),
        (lambda: Steps([[0], [1]], [[1], [2]]), ["(k, n)", "(2, 1) and (2, 1)"]),
        (lambda: Steps([0, 1, 2], [[1], [2]]), ["(k, n)", "(3,) and (2, 1)"]),
        (lambda: minimum_jerk([0], [1], rate=0), ["rate must be positive"]),
    ],
)  # fmt: skip
def test_wrong_references_are_named(make, pieces):
    with complains(StateError, *pieces):
        make()


def test_a_jump_is_what_velocity_and_acceleration_do_not_explain():
    def at(t, offset=0.0):  # the rule is exact for quartics
        return Reference(
            np.array([t**4 - t + offset]), np.array([4 * t**3 - 1]), np.array([12 * t**2])
        )

    before, many = no_reference((2, 1)), at(0.7).spread((2, 1))
    assert [x.shape for x in (*before, *many)] == [(2, 1)] * 6
    assert np.isnan(many.jump(before, 0.3)).all()
    np.testing.assert_array_equal(many.a, [at(0.7).a] * 2)
    assert at(0.7).jump(at(0.4), 0.3) == pytest.approx([0.0], abs=1e-15)
    assert at(0.7, offset=0.2).jump(at(0.4), 0.3) == pytest.approx([0.2], rel=1e-12)


def test_a_motion_that_is_fastest_at_its_begin_is_slowed_for_that(crab):
    def braking(t):
        s = np.exp(-5 * t) * np.ones(3)
        return Reference(-s / 5, s, -5 * s)

    assert slowed(braking, crab, 2.0, rate=0.5).factor == pytest.approx(2.0, rel=1e-12)
    assert slowed(braking, crab, 2.0, acceleration=1.25).factor == pytest.approx(2.0, rel=1e-12)
    (first, *_) = excesses(braking, crab, 2.0, rate=0.5)
    assert (first.time, first.value) == (0.0, 1.0)
