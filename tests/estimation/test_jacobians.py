"""Jacobians of a sample against complex steps through the recursions as they are written."""

import dataclasses

import numpy as np
import pytest

from modurob import examples
from modurob.equations.links import SLIP_SPEED
from modurob.equations.passes import Base, JointState, run
from modurob.equations.quantities import QUANTITIES
from modurob.equations.vectors import vec
from modurob.estimation.prediction import STEPS

COMPLEX = 1e-10  # of the largest entry: both are exact but for rounding and the condition of M
SOLVED = 1e-12  # [rad/s, m/s] left of the implicit equation
TINY = 1e-30  # a complex step has no truncation error

BODIES = {
    "crab": lambda: examples.crab().model(),
    "physical crab": lambda: examples.crab().model("physical"),
    "rough arm": lambda: (
        examples.arm("bac").with_parameters(viscous=0.05, coulomb=0.02).model("physical")
    ),
    "stiff arm": lambda: examples.arm("bac").with_parameters(viscous=10.0).model("physical"),
    "sticking arm": lambda: (
        examples.arm("bac").with_parameters(viscous=0.2, coulomb=3.0).model("physical")
    ),
    "crab, compiled": lambda: examples.crab().model("physical").compile(),
}


def acceleration(model, q, v, tau):
    """(nv,) by the articulated-body recursion, on any numbers."""
    frames = model._frames
    signed = ((x * frames.sign).tolist() for x in (q, v, tau))
    joints = [JointState(*each) for each in zip(*signed, strict=True)]
    base = Base(vec(model.gravity))
    return np.array(run(QUANTITIES["forward_dynamics"], frames.links(), joints, base))


def runge_kutta(model, x, tau, h):
    def rates(x):
        q, v = np.split(x, 2)
        return np.concatenate([v, acceleration(model, q, v, tau)])

    a = rates(x)
    b = rates(x + h / 2 * a)
    c = rates(x + h / 2 * b)
    d = rates(x + h * c)
    return x + h / 6 * (a + 2 * b + 2 * c + d)


def semi_implicit(model, x, tau, h):
    """Explicit in the friction up to a decay of 1 a step, implicit beyond."""
    q, v = np.split(x, 2)
    after = v + h * acceleration(model, q, v, tau)
    if h * model.friction_rate.rate > 1:
        after = implicit(model, q, v, tau, h)
    return np.concatenate([q + h * after, after])


def implicit(model, q, v, tau, h):
    """u = v + h a(q, v, tau - friction(u)) on any numbers, by Newton from rest."""
    none = np.zeros(model.nv)
    bare = dataclasses.replace(model, viscous=none, coulomb=none)
    inverse = np.linalg.inv(model.mass_matrix(q.real))
    u, left = np.zeros(model.nv, dtype=complex), 3
    while left:
        root = np.sqrt(u * u + SLIP_SPEED**2)
        friction = model.viscous * u + model.coulomb * u / root
        slope = model.viscous + model.coulomb * SLIP_SPEED**2 / root**3
        missing = v + h * acceleration(bare, q, v, tau - friction) - u
        u = u + np.linalg.solve(np.eye(model.nv) + h * inverse * slope, missing)
        left -= np.abs(missing.real).max() < SOLVED  # then imaginary parts follow at once
    return u


WRITTEN = {"rk4": runge_kutta, "step": semi_implicit}


@pytest.mark.parametrize("h", [1e-3, 0.02])
@pytest.mark.parametrize("integrator", STEPS)
@pytest.mark.parametrize("body", BODIES)
def test_jacobians_agree_with_complex_steps(body, integrator, h):
    model, rng = BODIES[body](), np.random.default_rng(5)
    n, step, written = model.nv, STEPS[integrator](model, h), WRITTEN[integrator]
    for _ in range(2):
        q = model.random_configuration(rng)
        v, tau = rng.standard_normal((2, n))
        found, x = step(q, v, tau), np.append(q, v)
        np.testing.assert_allclose(
            np.append(found.q, found.v), written(model, x, tau, h).real, rtol=COMPLEX, atol=COMPLEX
        )
        by_state = [written(model, x + 1j * TINY * e, tau, h).imag / TINY for e in np.eye(2 * n)]
        by_torque = [written(model, x, tau + 1j * TINY * e, h).imag / TINY for e in np.eye(n)]
        for ours, columns in ((found.A, by_state), (found.B, by_torque)):
            expected = np.stack(columns, axis=-1)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(ours, expected, rtol=0, atol=COMPLEX * scale)


def test_a_step_does_not_touch_what_the_last_one_returned():
    model = examples.crab().model()
    step, tau = STEPS["rk4"](model, 0.01), np.ones(3)
    first = step(np.zeros(3), np.zeros(3), tau)
    kept = [part.copy() for part in first]
    step(np.full(3, 0.5), np.ones(3), -tau)
    for part, before in zip(first, kept, strict=True):
        np.testing.assert_array_equal(part, before)


@pytest.mark.parametrize("refusing", ["_forward", "_linearize"])
def test_where_compiled_code_refuses_the_model_answers(refusing):
    """As when one of several numbers overflows: the model's method then names it."""
    model, rng = examples.arm("bac").model("physical"), np.random.default_rng(6)
    q, v, tau = model.random_configuration(rng), *rng.standard_normal((2, model.nv))
    one, other = (STEPS["rk4"](model, 0.005) for _ in range(2))
    other(q + 0.3, 2 * v, -tau)  # its memory is that of another step
    setattr(other, refusing, lambda *_: None)
    for found, expected in zip(other(q, v, tau), one(q, v, tau), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
