"""What every controller keeps to; a new one in the registry is tested by being there."""

import copy
import pickle

import numpy as np
import pytest

from modurob import Organism, StateError, UnknownNameError, examples
from modurob.control import CONTROLLERS, Controller, Reference
from oracles import complains
from oracles.differences import columns

SET_POINT = np.array([0.4, -0.3, 0.2])
HELD = 2e-3  # [rad] from the set point when it should be there: the slowest default is LQR
DT = 2e-3  # [s]
SLOPES = 1e-8  # of the largest entry, against differences of order eight
ROUNDING = 1e-12  # of torques below 10 N m; idle joints and LQR go through LAPACK

every = pytest.mark.parametrize("law", CONTROLLERS.values(), ids=CONTROLLERS)


@pytest.fixture(scope="module")
def crab():
    return examples.crab().model()


def bodies():
    rough = examples.arm("bac").with_parameters(viscous=0.05)
    return {
        "arm": rough.model("physical"),
        "free": examples.snake(3).model("physical", base="free"),
        "crab": examples.crab().model(),
    }


def state(model, seed=3):
    rng = np.random.default_rng(seed)
    return model.random_configuration(rng), rng.standard_normal(model.nv)


def aim(model, seed=4):
    rng, n = np.random.default_rng(seed), len(model.joint_names)
    return Reference(*(0.3 * rng.standard_normal((3, n))))


@every
@pytest.mark.parametrize("body", ["arm", "free", "crab"])
def test_torques_are_finite_and_only_motors_push(law, body):
    model = bodies()[body]
    for seed in range(5):
        tau = law(model).command(0.0, *state(model, seed), aim(model))
        assert tau.shape == (model.nv,)
        assert np.isfinite(tau).all()
        assert not tau[: model.nv - len(model.joint_names)].any()


@every
def test_joints_without_a_motor_get_no_torque(law):
    model = examples.crane().model("physical")
    one = law(model, passive=["m1.hinge"])
    tau = one.command(0.0, np.array([0.3, 0.2]), np.array([0.1, -0.2]), np.zeros(2))
    assert tau[1] == 0
    assert tau[0] != 0


@every
def test_torque_limits_are_kept_joint_by_joint(law, crab):
    limit = np.array([0.5, 0.02, 0.01])
    free, bound = law(crab), law(crab, torque_limit=limit)
    q, v = np.array([0.1, 0.2, -0.4]), np.array([1.0, -2.0, 3.0])
    wanted, found = (one.command(0.0, q, v, SET_POINT) for one in (free, bound))
    assert np.any(np.abs(wanted) > limit)
    np.testing.assert_allclose(found, np.clip(wanted, -limit, limit), rtol=0, atol=ROUNDING)


@every
def test_the_answer_and_the_arguments_belong_to_the_caller(law, crab):
    one, (q, v) = law(crab), state(crab)
    kept = q.copy(), v.copy()
    first = one.command(0.0, q, v, SET_POINT)
    copied = first.copy()
    first_again = one.command(0.0, q, v, SET_POINT)
    np.testing.assert_allclose(first, first_again, rtol=0, atol=ROUNDING)
    one.command(0.1, q + 0.1, v, SET_POINT)
    np.testing.assert_array_equal(first, copied)
    first[:] = 7.0
    np.testing.assert_array_equal((q, v), kept)


@every
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_independent(law, way, crab):
    one = law(crab, sample_time=0.01, delay=True)
    q, v = state(crab)
    one.command(0.0, q, v, SET_POINT)
    two = way(one)
    expected = copy.copy(one).command(0.01, q, v, SET_POINT)
    for k in range(5):
        one.command(0.01 + 0.01 * k, q + 0.1 * k, v, SET_POINT)
    np.testing.assert_allclose(two.command(0.01, q, v, SET_POINT), expected, rtol=0, atol=ROUNDING)


@every
def test_wrong_shapes_are_named(law, crab):
    one, z = law(crab), np.zeros(3)
    with complains(StateError, "q has shape (4,)", "nq = 3"):
        one.command(0.0, np.zeros(4), z, z)
    with complains(StateError, "v has shape (2,)", "nv = 3"):
        one.command(0.0, z, [0.0, 1.0], z)
    with complains(StateError, "one state", "(5, 3)"):
        one.command(0.0, np.zeros((5, 3)), z, z)
    with complains(StateError, "reference.q has shape (2,)", "m1.hinge"):
        one.command(0.0, z, z, np.zeros(2))
    with complains(StateError, "reference.a has shape (1,)"):
        one.command(0.0, z, z, Reference(z, z, np.zeros(1)))
    with complains(StateError, "function of time"):
        one.command(0.0, z, z, lambda t: z)


@every
@pytest.mark.parametrize("where", ["q", "v", "reference"])
def test_numbers_that_are_not_finite_are_named(law, where, crab):
    values = {name: np.zeros(3) for name in ("q", "v", "reference")}
    values[where][1] = np.nan
    with pytest.raises(StateError, match=r"nan|finite"):
        law(crab).command(0.0, **values)


@every
def test_wrong_options_are_named(law, crab):
    with complains(StateError, "takes a model", "Organism"):
        law(examples.crab())
    with complains(StateError, "torque_limit", "shape (2,)"):
        law(crab, torque_limit=[1, 2])
    with complains(StateError, "torque_limit must be at least 0"):
        law(crab, torque_limit=-1)
    with complains(StateError, "sample_time must be a positive number"):
        law(crab, sample_time=0)
    with complains(StateError, "needs sample_time"):
        law(crab, sample_time=None, delay=True)
    with complains(UnknownNameError, "m9.hinge", "m1.hinge"):
        law(crab, passive=["m9.hinge"])


@every
def test_it_takes_lists_set_points_and_whole_configurations(law):
    model = bodies()["free"]
    q, v = state(model)
    goal = aim(model)
    expected = law(model).command(0.0, q, v, goal)
    pairs = zip((7, 6, 6), goal, strict=True)  # whatever the reference says of the base
    whole = Reference(*(np.concatenate([np.full(k, 9.0), x]) for k, x in pairs))
    rest = np.zeros(len(goal.q))
    still = law(model).command(0.0, q, v, Reference(goal.q, rest, rest))
    for found, right in (
        (law(model).command(0.0, q, v, whole), expected),
        (law(model).command(0.0, list(q), list(v), goal), expected),
        (law(model).command(0.0, q, v, goal.q.tolist()), still),
    ):
        np.testing.assert_allclose(found, right, rtol=0, atol=ROUNDING)


@every
def test_the_crab_holds_a_set_point(law, crab):
    one = law(crab, sample_time=DT)
    q, v = np.zeros(3), np.zeros(3)
    one.reset(0.0, q, v)
    for k in range(2250):
        q, v = crab.step(q, v, one.command(k * DT, q, v, SET_POINT), DT)
    np.testing.assert_allclose(q, SET_POINT, rtol=0, atol=HELD)
    np.testing.assert_allclose(v, 0, rtol=0, atol=5 * HELD)


@every
def test_without_a_reference_it_stays_where_it_was(law, crab):
    one, start = law(crab, SET_POINT) if law.__name__ == "Lqr" else law(crab), SET_POINT
    one.reset(0.0, start, np.zeros(3))
    pushed = start + 0.01
    np.testing.assert_allclose(
        one.command(0.0, pushed, np.zeros(3)),
        copy.copy(one).command(0.0, pushed, np.zeros(3), start),
        rtol=0,
        atol=ROUNDING,
    )


@every
def test_a_delay_gives_the_torque_of_the_sample_before(law, crab):
    prompt = law(crab, sample_time=0.01)
    late = prompt.changed(delay=True)  # with the same gains
    z, found, expected = np.zeros(3), [], []
    for k in range(4):
        q = np.full(3, 0.05 * k)
        expected.append(prompt.command(0.01 * k, q, z, SET_POINT))
        found.append(late.command(0.01 * k, q, z, SET_POINT))
    np.testing.assert_allclose(found[1:], expected[:-1], rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(found[0], crab.gravity_torque(z), atol=ROUNDING)


@every
@pytest.mark.parametrize("body", ["arm", "free", "crab", "crane"])
def test_slopes_are_the_derivatives_of_the_torque(law, body):
    crane = examples.crane().with_parameters(viscous=0.1).model("physical")
    model = crane if body == "crane" else bodies()[body]
    passive = {"passive": ["m1.hinge"]} if body == "crane" else {}
    (q, v), goal = state(model), aim(model)
    one = law(model, **passive)
    one.command(0.0, q, v, goal)  # the reference is no jump any more
    found = one.slopes(q, v, goal)

    def torque(dx):
        moved = model.integrate(q, dx[: model.nv])
        return one.command(0.0, moved, v + dx[model.nv :], goal)

    expected = columns(torque, 2 * model.nv)
    np.testing.assert_allclose(
        np.hstack([found.dq, found.dv]),
        expected,
        rtol=0,
        atol=SLOPES * np.abs(expected).max(initial=1e-3),
    )


@every
def test_a_rebuilt_law_is_the_law_of_the_new_body(law):
    small, large = (examples.snake(n).model("physical") for n in (3, 5))
    grown = law(small, torque_limit=5.0).rebuilt(large)
    assert type(grown) is law
    q, v = state(large)
    grown.reset(0.0, q, v)
    fresh = law(large, torque_limit=5.0)
    goal = aim(large)
    if "Pid" not in law.__name__:  # their integrals begin with a load, for no bump
        np.testing.assert_allclose(
            grown.command(0.0, q, v, goal), fresh.command(0.0, q, v, goal), rtol=0, atol=1e-10
        )
    assert grown.torque_limit.tolist() == [5.0] * 4


@every
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_a_body_that_cannot_move_is_no_problem(law, base):
    model = Organism.start("backbone").model("physical", base=base)
    one = law(model, torque_limit=1.0)
    v = np.zeros(model.nv)
    assert not one.command(0.0, model.neutral(), v).any()
    grown = one.rebuilt(examples.snake(3).model("physical", base=base))
    assert grown.torque_limit.tolist() == [1.0, 1.0]
    assert isinstance(one.certificate().guaranteed, bool)


def test_the_registry_holds_all_laws():
    assert all(issubclass(law, Controller) for law in CONTROLLERS.values())
    assert set(CONTROLLERS) >= {
        "ComputedTorque", "PolePlacement", "PidLinearized", "PdGravity", "IndependentPid", "Lqr"
    }  # fmt: skip
