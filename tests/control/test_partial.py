"""Partial feedback linearization of cranes and pendulums with a passive joint, by numbers."""

import numpy as np
import pytest

from modurob import StateError, UnknownNameError, examples, simulate
from modurob.control import ComputedTorque, PartialLinearization, Reference
from oracles import complains

SAME = 1e-9  # of accelerations below 100 rad/s^2: condition of M
EIGEN = 1e-6  # double poles scatter by the root of rounding
G = 9.81

SYSTEMS = {
    "crane": (lambda: examples.crane(l=2.0), "m0.slide", "m1.hinge"),
    "acrobot": (lambda: examples.double_pendulum(l1=1.0, l2=1.5), "m1.hinge", "m0.hinge"),
    "pendubot": (lambda: examples.double_pendulum(l1=1.0, l2=1.5), "m0.hinge", "m1.hinge"),
}


def system(name, viscous=0.0):
    make, motor, passive = SYSTEMS[name]
    return make().with_parameters(viscous=viscous).model("physical"), motor, passive


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("collocated", [True, False])
def test_the_output_has_the_acceleration_asked_for_and_only_motors_push(name, collocated):
    model, motor, passive = system(name, viscous=0.05)
    output = motor if collocated else passive
    law = PartialLinearization(model, [output], 9.0, 5.0, passive=[passive])
    k, rng = model.joint_index(output), np.random.default_rng(0)
    for _ in range(5):
        q, v = rng.uniform(-0.7, 0.7, 2), rng.standard_normal(2)
        aim = Reference(*rng.standard_normal((3, 2)))
        tau = law.command(0.0, q, v, aim)
        a = model.forward_dynamics(q, v, tau)
        wanted = aim.a + 9 * (aim.q - q) + 5 * (aim.v - v)
        assert a[k] == pytest.approx(wanted[k], abs=SAME)
        assert tau[model.joint_index(passive)] == 0
        if collocated:
            same = ComputedTorque(model, 9.0, 5.0, passive=[passive]).command(0.0, q, v, aim)
            np.testing.assert_allclose(tau, same, rtol=0, atol=SAME)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("output", [0, 1])
def test_numbers_are_those_of_the_formulas(name, output):
    make, _, passive = SYSTEMS[name]
    equations = make().equations("physical", symbols="none")
    joint = equations.model.joint_names[output]
    paper = equations.feedback_linearization([joint], passive=[passive])
    law = PartialLinearization(equations.model, joint, passive=passive)
    q = np.array([0.4, -0.3])
    numbers = {f"q{k + 1}": q[k] for k in range(2)}
    assert law.decoupling(q)[0, 0] == pytest.approx(float(paper.A[0].subs(numbers)), rel=1e-12)
    assert law.relative_degree(q) == paper.relative_degree == (2,)


def test_zero_dynamics_have_the_known_eigenvalues():
    """A swinging load; a drifting wagon; a rigid pendulum, and the same upside down."""
    crane, slide, hinge = system("crane")
    swing = np.sqrt(G / 2)
    for output, expected in ((slide, [-1j * swing, 1j * swing]), (hinge, [0, 0])):
        law = PartialLinearization(crane, [output], passive=[hinge])
        found = np.linalg.eigvals(law.zero_dynamics())
        np.testing.assert_allclose(np.sort_complex(found), expected, rtol=0, atol=EIGEN)
    acrobot, elbow, shoulder = system("acrobot")
    law = PartialLinearization(acrobot, [elbow], passive=[shoulder])
    rate = np.sqrt(G * (1.5 + 2 * 1.0) / (1.0 * 2 + 1.5**2 + 2 * 1.5))  # load over inertia
    for at, expected in (([0, 0], [-1j * rate, 1j * rate]), ([np.pi, 0], [-rate, rate])):
        found = np.linalg.eigvals(law.zero_dynamics(at))
        np.testing.assert_allclose(np.sort_complex(found), expected, rtol=0, atol=EIGEN)


def test_the_certificate_asks_for_stable_zero_dynamics():
    smooth, slide, hinge = system("crane")
    rough, _, _ = system("crane", viscous=0.5)
    held = PartialLinearization(rough, [slide], passive=[hinge]).certificate()
    assert held.guaranteed
    swings = PartialLinearization(smooth, [slide], passive=[hinge]).certificate()
    assert "undamped" in str(swings.failures)
    drifts = PartialLinearization(smooth, [hinge], passive=[hinge]).certificate()
    assert "zero dynamics decay" in str(drifts.failures)
    acrobot, elbow, shoulder = system("acrobot", viscous=0.1)
    law = PartialLinearization(acrobot, [elbow], passive=[shoulder])
    assert "unstable" in str(law.certificate([np.pi, 0.0]).failures)
    assert law.certificate().guaranteed


def test_a_crane_moves_its_wagon_as_designed_while_the_load_swings_and_calms():
    model, slide, hinge = system("crane", viscous=1.0)
    law = PartialLinearization(model, [slide], settling_time=1.0, passive=[hinge])
    run = simulate(model, None, None, 10.0, law, rtol=1e-9, reference=np.array([1.0, 0.0]))
    w = np.sqrt(law.k0[0])
    expected = 1 - (1 + w * run.t) * np.exp(-w * run.t)
    np.testing.assert_allclose(run.q[:, 0], expected, rtol=0, atol=1e-6)
    assert np.abs(run.q[:, 1]).max() > 0.1
    assert np.abs(run.q[-1, 1]) < 0.5 * np.abs(run.q[:, 1]).max()


def test_where_inertias_do_not_couple_there_is_no_relative_degree():
    """M_12 = m2 l2 (l2 + l1 cos q2) is zero at 120 degrees for l1 = 2 l2."""
    model = examples.double_pendulum(l1=1.0, l2=0.5).model("physical")
    law = PartialLinearization(model, ["m0.hinge"], passive=["m0.hinge"])
    lost = np.array([0.1, 2 * np.pi / 3])
    assert law.relative_degree(lost) is None
    assert law.relative_degree(np.zeros(2)) == (2,)
    assert law.relative_degree(lost + np.array([0.0, 0.03])) == (2,)
    with complains(StateError, "no relative degree in this pose", "m0.hinge"):
        law.zero_dynamics(lost)
    with complains(StateError, "no relative degree in this pose"):
        law.command(0.0, lost, np.zeros(2), np.zeros(2))


def test_with_a_motor_at_every_joint_all_of_them_may_be_outputs():
    model = examples.double_pendulum().model("physical")
    law, state = PartialLinearization(model, model.joint_names), ([0.3, 2.0], [0.1, -0.2])
    assert law.relative_degree(state[0]) == (2, 2)
    expected = ComputedTorque(model).command(0.0, *state, [0.5, 0.6])
    np.testing.assert_allclose(law.command(0.0, *state, [0.5, 0.6]), expected, rtol=1e-12)


def test_wrong_outputs_of_the_law_are_named():
    model, slide, hinge = system("crane")
    with complains(UnknownNameError, "no joint 'm9.hinge'", slide):
        PartialLinearization(model, ["m9.hinge"], passive=[hinge])
    for outputs in ([slide, hinge], [], [slide, slide]):
        with complains(StateError, "outputs are 1 different joints"):
            PartialLinearization(model, outputs, passive=[hinge])
    grown = PartialLinearization(model, [hinge], passive=[hinge]).rebuilt(model)
    assert grown.outputs == (hinge,)


def test_a_body_with_more_motors_than_outputs_gets_those_with_a_motor():
    old, new = (examples.snake(n).model("physical") for n in (3, 4))
    first, last = old.joint_names
    grown = PartialLinearization(old, [last], passive=[first]).rebuilt(new)
    assert grown.outputs == tuple(name for name in new.joint_names if name != first)
