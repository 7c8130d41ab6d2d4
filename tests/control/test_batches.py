"""Laws for many states at once: the same numbers as one by one."""

import copy

import numpy as np
import pytest

from modurob import StateError, examples, simulate
from modurob.control import CONTROLLERS, ComputedTorque, JointImpedance, PdGravity, Reference
from oracles import complains

SAME = 1e-12  # of the largest torque: another order of the same sums
COUNT, DT, SAMPLES = 7, 0.01, 6

every = pytest.mark.parametrize("law", CONTROLLERS.values(), ids=CONTROLLERS)


def bodies():
    crane = examples.crane().with_parameters(viscous=0.1).model("physical")
    return {
        "crab": (examples.crab().model(), ()),
        "arm": (examples.arm("bac").with_parameters(viscous=0.05).model("physical"), ()),
        "free": (examples.snake(3).model("physical", base="free"), ()),
        "crane": (crane, ("m1.hinge",)),
    }


def options_of(law):
    return {"filter_time": 0.03, "integral_limit": 0.4} if "Pid" in law.__name__ else {}


def states(model, seed):
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(COUNT)])
    return q, rng.standard_normal((COUNT, model.nv))


@every
@pytest.mark.parametrize("body", ["crab", "arm", "free", "crane"])
@pytest.mark.parametrize("kind", ["each its own reference", "one for all", "none"])
def test_a_batch_gets_the_torques_of_its_states_one_by_one(law, body, kind):
    """Several samples, with limits, a delay of two samples, integrals and filters."""
    model, passive = bodies()[body]
    n = len(model.joint_names)
    one = law(model, sample_time=DT, delay=2 * DT, passive=passive,
              torque_limit=np.linspace(0.5, 3, n), **options_of(law))  # fmt: skip
    many, each = one.batched(COUNT), [copy.copy(one) for _ in range(COUNT)]
    q, v = states(model, 0)
    many.reset(0.0, q, v)
    for k, single in enumerate(each):
        single.reset(0.0, q[k], v[k])
    largest = 0.0
    for sample in range(SAMPLES):
        q, v = states(model, sample)
        goals = 0.3 * np.random.default_rng(sample + 50).standard_normal((3, COUNT, n))
        if kind == "one for all":
            goals[:] = goals[:, :1]
        aims = [None if kind == "none" else Reference(*goals[:, k]) for k in range(COUNT)]
        together = Reference(*goals) if kind == "each its own reference" else aims[0]
        found = many.command(sample * DT, q, v, together)
        expected = np.array(
            [x.command(sample * DT, q[k], v[k], aims[k]) for k, x in enumerate(each)]
        )
        largest = max(largest, np.abs(expected).max())
        np.testing.assert_allclose(found, expected, rtol=0, atol=SAME * largest)
        for name, value in many.record().items():
            rows = np.array([x.record()[name] for x in each])
            size = max(largest, np.abs(rows).max())
            np.testing.assert_allclose(value, rows, rtol=0, atol=SAME * size)
    assert largest > 0.1


@every
def test_gains_that_couple_joints_and_no_limits_are_the_same_in_a_batch(law):
    model = examples.crab().model()
    K = np.array([[10.0, 1, 2], [3, 20, 4], [5, 6, 30]])
    settings = {
        "ComputedTorque": {"k0": K, "k1": K / 3},
        "PdGravity": {"kp": K, "kd": K / 3},
        "Lqr": {"set_point": [0.1, 0.2, 0.3]},
    }.get(law.__name__, {})
    one = law(model, **settings)
    q, v = states(model, 1)
    goal = np.array([0.4, -0.3, 0.2])
    found = one.batched(COUNT).command(0.0, q, v, goal)
    expected = [copy.copy(one).command(0.0, q[k], v[k], goal) for k in range(COUNT)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=SAME * np.abs(expected).max())


@every
def test_a_batch_runs_in_a_simulation_as_its_states_do_alone(law):
    model = examples.crab().model()
    q0 = 0.2 * np.random.default_rng(1).standard_normal((3, 3))
    one = law(model, sample_time=0.01)
    goal = np.array([0.4, -0.3, 0.2])
    whole = simulate(model, q0, None, 0.2, one.batched(3), "RK4", dt=0.005, reference=goal)
    for k in range(3):
        alone = simulate(model, q0[k], None, 0.2, one, "RK4", dt=0.005, reference=goal)
        np.testing.assert_allclose(whole.q[:, k], alone.q, rtol=0, atol=1e-11)


def test_a_batch_begins_with_the_memory_of_its_law():
    model, z = examples.crab().model(), np.zeros(3)
    one = CONTROLLERS["PidLinearized"](model, sample_time=DT, delay=DT)
    for k in range(4):
        one.command(k * DT, z, z, np.ones(3))
    many, rest = one.batched(2), np.zeros((2, 3))
    for k in (4, 5):  # first what was under way, then what the integral makes
        expected = one.command(k * DT, z, z, np.ones(3))
        found = many.command(k * DT, rest, rest, np.ones(3))
        np.testing.assert_allclose(found, [expected, expected], rtol=0, atol=1e-12)
    assert one.record()["integral"].shape == (3,)


def test_what_a_batch_cannot_do_is_named():
    model = examples.crab().model()
    law = ComputedTorque(model)
    with complains(StateError, "one state", "(5, 3)", "law.batched(count)"):
        law.command(0.0, np.zeros((5, 3)), np.zeros((5, 3)))
    many = law.batched(4)
    with complains(StateError, "4 states", "(4, 3)", "(5, 3)"):
        many.command(0.0, np.zeros((5, 3)), np.zeros((5, 3)))
    with complains(StateError, "reference.q has shape (5, 3)"):
        many.command(0.0, np.zeros((4, 3)), np.zeros((4, 3)), np.zeros((5, 3)))
    for act in (many.certificate, lambda: many.rebuilt(model), lambda: many.batched(2)):
        with complains(StateError, "one state, not of a batch"):
            act()
    yielding = JointImpedance(model).batched(4)
    with complains(StateError, "a derivative", "one state, not of a batch"):
        yielding.slopes(np.zeros((4, 3)), np.zeros((4, 3)))
    for count in (0, -1, 2.5, "many"):
        with complains(StateError, "whole number", repr(count)):
            law.batched(count)


# -- options and delays ----------------------------------------------------------------------------


@every
def test_a_changed_law_keeps_its_gains_and_takes_the_option(law):
    model = examples.crab().model()
    one = law(model, torque_limit=1e3, sample_time=DT)
    found = one.changed(delay=2 * DT, torque_limit=[1e3, 2e3, 3e3])
    (q, _), rest = states(model, 2), np.zeros(3)
    given, late = (
        np.array([x.command(k * DT, q[k], rest, np.ones(3)) for k in range(5)])
        for x in (one, found)
    )
    np.testing.assert_allclose(late[2:], given[:-2], rtol=0, atol=1e-12)
    assert (one.delay, found.delay) == (0.0, pytest.approx(2 * DT))
    assert found.torque_limit.tolist() == [1e3, 2e3, 3e3]


@every
def test_a_delay_of_some_samples_gives_the_torque_of_that_long_ago(law):
    model = examples.crab().model()
    prompt = law(model, sample_time=DT)
    late = prompt.changed(delay=3 * DT)
    z, found, expected = np.zeros(3), [], []
    for k in range(8):
        q = np.full(3, 0.05 * k)
        expected.append(prompt.command(DT * k, q, z, np.ones(3)))
        found.append(late.command(DT * k, q, z, np.ones(3)))
    np.testing.assert_allclose(found[3:], expected[:-3], rtol=0, atol=SAME * np.abs(expected).max())
    for tau in found[:3]:  # before the first command arrives, the load is held
        np.testing.assert_allclose(tau, model.gravity_torque(z), rtol=0, atol=1e-12)


def test_a_delay_survives_another_body():
    old, new = (examples.snake(n).model("physical") for n in (4, 6))
    law = PdGravity(old, kp=3.0, kd=0.04, sample_time=DT, delay=3 * DT)
    for k in range(6):
        law.command(k * DT, np.full(3, 0.1 * k), np.zeros(3), np.ones(3))
    grown = law.rebuilt(new)
    q = np.full(5, 0.1)
    grown.reset(6 * DT, q, np.zeros(5))
    twin = PdGravity(old, kp=3.0, kd=0.04)
    for k in range(3):
        tau = grown.command((6 + k) * DT, q, np.zeros(5), np.ones(5))
        wanted = twin.command(0.0, np.full(3, 0.1 * (3 + k)), np.zeros(3), np.ones(3))
        np.testing.assert_allclose(tau[:3], wanted, rtol=0, atol=1e-12)
        np.testing.assert_allclose(tau[3:], new.gravity_torque(q)[3:], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("delay", "pieces"),
    [
        (0.015, ["whole samples of 0.01 s", "0.015 s"]),
        (0.003, ["whole samples", "take 0.01 s"]),
        (-0.01, ["delay must be zero or a positive number of seconds"]),
        (float("nan"), ["delay must be zero or a positive number of seconds"]),
        (1e9, ["samples", "10,000 are the most"]),
    ],
)
def test_wrong_delays_are_named(delay, pieces):
    with complains(StateError, *pieces):
        ComputedTorque(examples.crab().model(), sample_time=DT, delay=delay)
