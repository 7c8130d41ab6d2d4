"""What every gait keeps to; a new one in the registry is tested by being there."""

import pickle

import numpy as np
import pytest

from modurob import Organism, StateError, UnknownNameError, examples
from modurob.gaits import GAITS, Gait, Reference, gait_class, preview
from oracles import complains, group

END = 6.0  # [s] of the motions that are looked at
GRID = 4e-3  # [s]
ROUNDING = 1e-13  # of a displacement near 1 that was computed in two ways
FINE = 5e-4  # [s] a grid for integrals
QUADRATURE = 1e-8  # of Simpson's rule on it, across knots; changes are near 1e-3
REPEAT = 1e-7  # a motion that counts as periodic still creeps towards its cycle by 1e-9
SHRINK = 0.2  # what continuous accelerations change by on a grid eight times finer; 1/8 if smooth

every = pytest.mark.parametrize("name", GAITS)

BODIES = {
    "crab": examples.crab().model(),
    "crab of scouts": examples.crab().model("physical", base="free"),
    "snake": examples.snake(6).model("physical"),
    "arm with a rail": examples.arm("bac").model(),
}
bodies = pytest.mark.parametrize("body", BODIES)


def made(name, model, seed=1, **settings):
    """A gait of any kind; those that take random numbers get some."""
    kind = GAITS[name]
    if kind.random:
        settings["rng"] = np.random.default_rng(seed)
    return kind.for_model(model, **settings)


@every
@bodies
def test_a_reference_has_a_column_for_every_joint_of_the_model(name, body):
    model = BODIES[body]
    gait = made(name, model)
    assert gait.joints == model.joint_names
    for shape in [(), (4,), (2, 3), (0,)]:
        found = gait(np.full(shape, 0.7))
        assert isinstance(found, Reference)
        for part in found:
            assert part.shape == (*shape, len(model.joint_names))
            assert part.dtype == float


@every
@bodies
@pytest.mark.parametrize("ramp", [0.0, 1.3])
def test_velocity_and_acceleration_are_the_derivatives(name, body, ramp):
    """Between any two times of a fine grid, q and v change by the integrals of v and a."""
    gait = made(name, BODIES[body], ramp=ramp)
    start, middle, end = (gait(np.arange(0, 3.0, FINE) + k * FINE / 2) for k in range(3))
    for whole, rate in ((0, 1), (1, 2)):
        simpson = FINE / 6 * (start[rate] + 4 * middle[rate] + end[rate])
        np.testing.assert_allclose(end[whole] - start[whole], simpson, rtol=0, atol=QUADRATURE)


@every
@bodies
@pytest.mark.parametrize("ramp", [0.0, 1.3])
def test_accelerations_are_continuous(name, body, ramp):
    """Where an acceleration jumps, a finer grid does not make the jump smaller."""
    gait = made(name, BODIES[body], ramp=ramp)
    steps = [np.abs(np.diff(gait(np.arange(0, END, h)).a, axis=0)).max() for h in (GRID, GRID / 8)]
    assert steps[0] > 0
    assert steps[1] < SHRINK * steps[0]


@every
@bodies
def test_a_ramp_starts_from_rest_and_ends_in_the_gait(name, body):
    resting, moving = (made(name, BODIES[body], ramp=ramp) for ramp in (2.0, 0.0))
    for t in (0.0, -1.0, -1e9):
        q, v, a = resting(t)
        np.testing.assert_array_equal(q, resting.offset)
        assert not v.any()
        assert not a.any()
    late = np.linspace(2.0, 5.0, 50)
    for one, other in zip(resting(late), moving(late), strict=True):
        np.testing.assert_array_equal(one, other)
    assert resting.settled >= 2.0


@every
@bodies
def test_a_ramp_never_swings_further_than_the_gait(name, body):
    gait = made(name, BODIES[body], ramp=3.0)
    q = gait(np.arange(0, END, GRID)).q
    assert np.all(np.abs(q - gait.offset) <= np.abs(gait.amplitude) * (1 + ROUNDING))


@every
@pytest.mark.parametrize("kinds", ["cubes and wrists", "scout", "superbot", "chen"])
@pytest.mark.parametrize("amplitude", [None, -50.0])
def test_joints_stay_within_their_limits(name, kinds, amplitude):
    for organism in group(kinds, 2):
        model = organism.model("physical")
        gait = made(name, model, amplitude=amplitude)
        q = gait(np.arange(0, 2.0, 0.01)).q
        assert np.all(q >= model.lower)
        assert np.all(q <= model.upper)


@every
def test_amplitudes_within_the_limits_are_left_as_they_are(name):
    model = BODIES["crab"]
    gait = made(name, model, amplitude=[0.3, -1.2, 9.0], offset=[0.5, 0.0, 0.0])
    np.testing.assert_array_equal(gait.amplitude[:2], [0.3, -1.2])
    assert gait.amplitude[2] == pytest.approx(np.pi / 2)
    assert gait.offset[0] == 0.5


@every
def test_offsets_beyond_a_limit_are_refused(name):
    with complains(StateError, "m3.hinge", "2", "1.5708"):
        made(name, BODIES["crab"], offset={"m3.hinge": 2.0})


@every
def test_joints_that_are_not_named_hold_still(name):
    gait = made(name, BODIES["crab"], amplitude={"m3.hinge": 0.4}, offset={"m5.hinge": 0.2})
    q, v, a = gait(np.arange(0, END, 0.01))
    assert np.ptp(q[:, 1]) > 0.3
    assert not np.ptp(q[:, [0, 2]], axis=0).any()
    assert not v[:, [0, 2]].any()
    assert not a[:, [0, 2]].any()
    np.testing.assert_array_equal(q[0, [0, 2]], [0.0, 0.2])


@every
def test_virtual_joints_of_the_base_are_not_driven(name):
    model = examples.snake(3).model("physical", base=["px", "rz"])
    gait = made(name, model)
    assert gait.joints[:2] == ("world.px", "world.rz")
    q = gait(np.arange(0, END, 0.01)).q
    assert not q[:, :2].any()
    assert np.ptp(q[:, 2:], axis=0).min() > 0.1


@every
@bodies
def test_one_time_or_many_make_no_difference(name, body):
    gait = made(name, BODIES[body], ramp=1.0)
    times = np.random.default_rng(0).uniform(-1, END, (5, 8))
    times[0] = np.linspace(0.85, 1.05, 8)  # about the end of the ramp
    many = gait(times)
    for index in np.ndindex(times.shape):
        for part, single in zip(many, gait(float(times[index])), strict=True):
            np.testing.assert_allclose(part[index], single, rtol=ROUNDING, atol=ROUNDING)


@every
@bodies
def test_the_order_of_questions_makes_no_difference(name, body):
    times = np.linspace(0, 12, 40)
    one, other = made(name, BODIES[body]), made(name, BODIES[body])
    forward = [one(t).q for t in times]
    backward = [other(t).q for t in times[::-1]][::-1]
    np.testing.assert_allclose(forward, backward, rtol=ROUNDING, atol=ROUNDING)


@every
def test_the_same_seed_gives_the_same_gait(name):
    times = np.linspace(0, END, 50)
    one, same, other = (made(name, BODIES["snake"], seed)(times).q for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    if GAITS[name].random:
        assert np.abs(one - other).max() > 0.01


@pytest.mark.parametrize("name", [name for name, kind in GAITS.items() if kind.random])
def test_without_random_numbers_the_gait_is_always_the_same(name):
    one, same = (GAITS[name].for_model(BODIES["snake"])(0.3).q for _ in range(2))
    np.testing.assert_array_equal(one, same)
    with complains(StateError, "rng", "numpy.random.Generator", "int"):
        GAITS[name].for_model(BODIES["snake"], rng=3)


@every
def test_a_gait_with_a_period_has_it(name):
    gaits = [made(name, model, ramp=0.4) for model in BODIES.values()]
    periodic = [gait for gait in gaits if gait.period is not None]
    assert periodic  # of every kind there are some
    for gait in periodic:
        times = gait.settled + np.linspace(0, 3, 200)
        for turns in (1, 5):
            for one, later in zip(gait(times), gait(times + turns * gait.period), strict=True):
                np.testing.assert_allclose(later, one, atol=REPEAT * (1 + np.abs(one).max()))
        assert np.abs(gait(times + gait.period / 2).q - gait(times).q).max() > 0.05


@every
def test_a_body_without_joints_has_an_empty_gait(name):
    model = Organism.start("backbone").model("physical")
    gait = made(name, model, ramp=1.0)
    for part in gait([0.0, 1.0]):
        assert part.shape == (2, 0)
    with complains(StateError, "no joints"):
        preview(gait)


@every
def test_a_body_with_one_joint_moves(name):
    model = examples.snake(2).model("physical")
    assert np.ptp(made(name, model)(np.linspace(0, 3, 100)).q) > 0.3


@every
def test_a_copy_moves_alike(name):
    gait = made(name, BODIES["snake"])
    times = np.linspace(0, END, 20)
    before = gait(times)
    copy = pickle.loads(pickle.dumps(gait))
    np.testing.assert_array_equal(copy(times).q, before.q)


@every
def test_settings_are_read_only(name):
    gait = made(name, BODIES["crab"])
    for value in (gait.amplitude, gait.offset):
        with pytest.raises(ValueError, match="read-only"):
            value[0] = 1.0


@every
def test_times_before_the_beginning_need_a_ramp(name):
    with complains(StateError, "t = 0", "-0.5", "ramp"):
        made(name, BODIES["crab"])([0.0, -0.5])


@every
@pytest.mark.parametrize(
    ("t", "piece"),
    [(np.nan, "finite"), ([0.0, np.inf], "finite"), ("soon", "soon"), (None, "None"), (1j, "1j")],
)
def test_times_that_are_none_are_refused(name, t, piece):
    with complains(StateError, piece):
        made(name, BODIES["crab"])(t)


@every
@pytest.mark.parametrize(
    ("settings", "pieces"),
    [
        ({"ramp": -1.0}, ["ramp", "-1"]),
        ({"ramp": "long"}, ["ramp", "long"]),
        ({"amplitude": [0.1, 0.2]}, ["amplitude", "(2,)", "(3,)", "m1.hinge"]),
        ({"amplitude": np.nan}, ["amplitude", "finite"]),
        ({"amplitude": "much"}, ["amplitude", "much"]),
        ({"offset": [[0.0]]}, ["offset", "(1, 1)"]),
    ],
)
def test_settings_that_do_not_fit_are_refused(name, settings, pieces):
    with complains(StateError, *pieces):
        made(name, BODIES["crab"], **settings)


@every
def test_unknown_joints_are_refused(name):
    with complains(UnknownNameError, "m2.hinge", "m1.hinge, m3.hinge, m5.hinge"):
        made(name, BODIES["crab"], amplitude={"m2.hinge": 0.1})


@every
def test_only_models_have_gaits(name):
    with complains(StateError, "Organism", "model()"):
        GAITS[name].for_model(examples.crab())


@every
def test_joints_are_named_once(name):
    more = {"edges": []} if GAITS[name].random else {}
    with complains(StateError, "twice", "knee"):
        GAITS[name](["knee", "hip", "knee"], 0.1, **more)
    with complains(StateError, "names", "knee"):
        GAITS[name]("knee", 0.1, **more)


def test_names_are_those_of_the_classes():
    assert all(kind.name == name and issubclass(kind, Gait) for name, kind in GAITS.items())
    assert set(GAITS) >= {"sine", "wave", "oscillators", "chaotic"}
    assert gait_class("wave") is GAITS["wave"]
    with complains(UnknownNameError, "gallop", "sine", "wave", "oscillators", "chaotic"):
        gait_class("gallop")
