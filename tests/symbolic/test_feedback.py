"""Feedback linearization on paper: relative degree and zero dynamics of textbook systems."""

import numpy as np
import pytest
import sympy

from modurob import Organism, SizeError, StateError, UnknownNameError, catalog, examples
from modurob.symbolic import feedback, linear
from oracles import complains

SECOND = 1e-6  # of the largest acceleration: second differences of a path of order four
q1, q2, dq1, dq2, ddq1, ddq2 = sympy.symbols("q1 q2 dq1 dq2 ddq1 ddq2")
l1, l2, m1, m2, g = sympy.symbols("l1 l2 m1 m2 g")
SLIDE, HINGE = "m0.slide", "m1.hinge"
LOAD = q1 + l2 * sympy.sin(q2)  # horizontal position of the crane's load


@pytest.fixture(scope="module")
def crane():
    return examples.crane().equations("physical")


@pytest.fixture(scope="module")
def pendulum():
    return examples.double_pendulum().equations("physical")


def same(found, expected):
    return sympy.simplify(sympy.expand_trig(found - expected)) == 0


def test_a_pendulum_with_two_motors_is_flat(pendulum):
    """Thesis (6.10): degrees sum up to the order, and there are no zero dynamics (6.1.2)."""
    found = pendulum.feedback_linearization()
    assert found.relative_degree == (2, 2)
    assert list(found.phi) == [q1, dq1, q2, dq2]
    assert found.zero_dynamics.shape == (0, 1)
    assert (found.A * pendulum.M).applyfunc(sympy.simplify) == sympy.eye(2)
    assert "no zero dynamics" in str(found)


def test_a_crane_with_its_wagon_held_is_a_pendulum(crane):
    found = crane.feedback_linearization([SLIDE], passive=[HINGE])
    assert found.relative_degree == (2,)
    assert same(found.A[0], 1 / (m1 + m2 * sympy.sin(q2) ** 2))
    assert same(found.zero_dynamics[0], m2 * l2 * (l2 * ddq2 + g * sympy.sin(q2)))
    assert crane.feedback_linearization(passive=[HINGE]) == found  # the joint with the motor
    lines = str(found).splitlines()
    assert lines[0] == "inputs u: m0.slide"
    assert lines[1] == "y1 = q1: relative degree 2"
    assert lines[2].startswith(f"  y1^(2) = ({found.A[0]}) u1 + ")
    assert lines[3:] == [f"zero dynamics: 0 = {found.zero_dynamics[0]}"]


def test_outputs_that_are_no_joints_have_no_zero_dynamics_told(crane):
    found = crane.feedback_linearization([LOAD], passive=[HINGE])
    assert found.zero_dynamics is None
    assert "zero dynamics" not in str(found)


def test_a_crane_with_its_load_held_upright_drifts(crane):
    """Not collocated: A vanishes at a quarter turn; at rest the wagon is a double integrator."""
    found = crane.feedback_linearization([HINGE], passive=[HINGE])
    assert same(found.A[0], -sympy.cos(q2) / (l2 * (m1 + m2 * sympy.sin(q2) ** 2)))
    assert sympy.simplify(found.A[0].subs(q2, sympy.pi / 2)) == 0
    assert same(found.zero_dynamics[0].subs(q2, 0), m2 * l2 * ddq1)


def test_the_acrobot_and_the_pendubot_lose_their_degree_where_inertias_do_not_couple(pendulum):
    """Spong 1994: the passive joint is reached where M_12 is not zero."""
    coupling = l2 * (l2 + l1 * sympy.cos(q2)) * m2
    for passive in ("m0.hinge", "m1.hinge"):
        found = pendulum.feedback_linearization([passive], passive=[passive])
        assert found.relative_degree == (2,)
        assert same(found.A[0] * pendulum.M.det(), -coupling)
    acrobot = pendulum.feedback_linearization(["m1.hinge"], passive=["m0.hinge"])
    whole = l1**2 * (m1 + m2) + l2**2 * m2 + 2 * l1 * l2 * m2 * sympy.cos(q2)
    load = g * (l2 * m2 * sympy.sin(q1 + q2) + l1 * (m1 + m2) * sympy.sin(q1))
    assert same(acrobot.zero_dynamics[0], whole * ddq1 + load)  # a rigid pendulum


def test_the_acrobot_has_an_output_of_degree_three():
    """Its momentum over M_11, integrated (Olfati-Saber 2001); for equal masses and lengths."""
    pendulum = examples.double_pendulum().equations("physical", symbols="none")
    root = sympy.sqrt(5)
    y = q1 + q2 / 2 - sympy.atan(sympy.tan(q2 / 2) / root) / root
    found = pendulum.feedback_linearization([y], passive=["m0.hinge"])
    assert found.relative_degree == (3,)
    assert found.zero_dynamics is None
    M11, M12 = 3 + 2 * sympy.cos(q2), 1 + sympy.cos(q2)
    assert same(found.phi[1] * M11, M11 * dq1 + M12 * dq2)


@pytest.mark.parametrize("output", [SLIDE, HINGE, LOAD])
def test_accelerations_of_outputs_are_those_of_forward_dynamics(crane, output):
    found = crane.feedback_linearization([output], passive=[HINGE])
    model, rng = crane.model, np.random.default_rng(0)
    for _ in range(3):
        q, v, u = rng.uniform(-1, 1, 2), rng.standard_normal(2), rng.standard_normal()
        a = model.forward_dynamics(q, v, np.array([u, 0.0]))
        numbers = crane.values | dict(zip((q1, q2, dq1, dq2), (*q, *v), strict=True))
        formula = float((found.A * u + found.b)[0].subs(numbers))

        def y(t, at=q, v=v, a=a, numbers=numbers):
            here = at + t * v + t * t / 2 * a
            return float(found.h[0].subs(numbers | dict(zip((q1, q2), here, strict=True))))

        h = 1e-2
        expected = (16 * (y(h) + y(-h)) - y(2 * h) - y(-2 * h) - 30 * y(0)) / (12 * h * h)
        assert formula == pytest.approx(expected, abs=SECOND * max(1, abs(expected)))


def test_a_link_behind_a_spring_has_twice_as_many_degrees_as_there_are_joints():
    """Spong 1987: the fourth derivative is k u / (B J) and more, of a rotor B and a link J."""
    rotor, spring = 0.01, 20.0
    kind = catalog["backbone"].with_parameters(rotor_inertia=rotor, stiffness=spring)
    soft = examples.snake(2, kind).equations("physical", symbols="none")
    found = soft.feedback_linearization([q1 + q2], passive=[soft.model.joint_names[1]])
    assert found.relative_degree == (4,)
    link = soft.model.mass_matrix(np.zeros(2))[1, 1]
    assert float(found.A[0]) == pytest.approx(spring / (rotor * link), rel=1e-12)


def test_an_output_that_no_motor_reaches_is_named():
    """A module on two slides, one of them without a motor."""
    slides = Organism.start("backbone").equations(base=["px", "py"])
    with complains(StateError, "no motor reaches the output q2: it has no relative degree"):
        slides.feedback_linearization("world.py", passive=["world.py"])
    found = slides.feedback_linearization("world.px", passive=["world.py"])
    assert (list(found.h), found.relative_degree) == ([q1], (2,))
    both = str(slides.substitute(m0=1).feedback_linearization()).splitlines()
    assert both[2::2] == ["  y1^(2) = (1) u1 + 0", "  y2^(2) = (1) u2 + 0"]  # and no (0) u


def test_friction_is_in_the_zero_dynamics():
    rough = examples.crane().with_parameters(viscous=0.1).equations("physical")
    found = rough.feedback_linearization([SLIDE], passive=[HINGE])
    terms = sympy.expand(found.zero_dynamics[0].subs(rough.values))
    assert float(terms.coeff(dq2)) == pytest.approx(0.1)


def test_the_largest_inverse_is_taken_and_no_larger_one(monkeypatch):
    """Of linearizations and of feedback; one joint stands for four, which take long."""
    equations = examples.snake(2).equations("physical")
    asked = (linear, equations.linearize), (feedback, equations.feedback_linearization)
    for module, ask in asked:
        monkeypatch.setattr(module, "LARGEST_INVERSE", 1)
        ask()
        monkeypatch.setattr(module, "LARGEST_INVERSE", 0)
        with complains(SizeError, "inverse of a symbolic 1 x 1 mass matrix", "readable up to 0"):
            ask()


def test_wrong_outputs_are_named(crane):
    with complains(UnknownNameError, "outputs: no joint 'q1'", SLIDE):
        crane.feedback_linearization(["q1"], passive=[HINGE])
    with complains(UnknownNameError, "passive: no joint 'm7.hinge'", SLIDE):
        crane.feedback_linearization(passive=["m7.hinge"])
    with complains(StateError, "give 1 outputs", "got 2"):
        crane.feedback_linearization([SLIDE, HINGE], passive=[HINGE])
    with complains(StateError, "an expression of q1, q2", "got l2"):
        crane.feedback_linearization([l2], passive=[HINGE])
    with complains(StateError, "no relative degree together"):
        crane.feedback_linearization([q1, 2 * q1])
    with complains(SizeError, "readable up to 4", "PartialLinearization"):
        examples.snake(6).equations("physical", symbols="none").feedback_linearization()
    with complains(StateError, "free base", "virtual joints"):
        examples.snake(3).equations("physical", base="free").feedback_linearization()
