"""Angles so large that doubles are over 0.1 rad apart are refused alike on every path."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import modurob as mr
from modurob.errors import StateError

JUST_OVER = np.nextafter(1e15, 2e15)
ROWS = 37  # no multiple of a vector width


def arm(base: str = "fixed") -> mr.Model:
    return mr.examples.arm("babac").model(hinges="physical", base=base)


def state(model: mr.Model, angle: float) -> tuple[np.ndarray, np.ndarray]:
    q = model.neutral()
    q[-4] = angle
    return q, np.full(model.nv, 0.1)


def prepared(model: mr.Model, q: np.ndarray, v: np.ndarray) -> None:
    model.prepare("forward_dynamics")(q, v, v)


def prepared_rows(model: mr.Model, q: np.ndarray, v: np.ndarray) -> None:
    rows = np.stack([model.neutral(), q]), np.stack([v, v])
    model.prepare("inverse_dynamics", states=2)(*rows, rows[1])


def batch(model: mr.Model, q: np.ndarray, v: np.ndarray) -> None:
    many = np.tile(model.neutral(), (ROWS, 1))
    many[ROWS - 1] = q
    rates = np.tile(v, (ROWS, 1))
    model.forward_dynamics(many, rates, rates)


PATHS: dict[str, Callable[[mr.Model, np.ndarray, np.ndarray], object]] = {
    "single": lambda m, q, v: m.inverse_dynamics(q, v, v),
    "list": lambda m, q, v: m.inverse_dynamics(q.tolist(), v.tolist(), v.tolist()),
    "batch": batch,
    "prepared": prepared,
    "prepared rows": prepared_rows,
    "compiled": lambda m, q, v: m.compile().mass_matrix(q),
    "mass matrix": lambda m, q, v: m.mass_matrix(q),
    "gravity torque": lambda m, q, v: m.gravity_torque(q),
    "external": lambda m, q, v: m.forward_dynamics(q, v, v, external={"m4": np.ones(6)}),
    "derivatives": lambda m, q, v: m.forward_dynamics_derivatives(q, v, v),
    "kinematics": lambda m, q, v: m.forward_kinematics(q),
    "Jacobian": lambda m, q, v: m.jacobian(q, "m4"),
    "center of mass": lambda m, q, v: m.center_of_mass(q),
    "Coriolis matrix": lambda m, q, v: m.coriolis_matrix(q, v),
    "energy": lambda m, q, v: m.energy(q, v),
    "step": lambda m, q, v: m.step(q, v, v, 1e-3),
    "integrate": lambda m, q, v: m.integrate(q, v),
    "simulate": lambda m, q, v: mr.simulate(m, q, 0 * v, 1e-3, integrator="RK4"),
}


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("angle", [JUST_OVER, -1e16, 1e300])
def test_an_angle_beyond_the_range_is_refused_by_name(path, base, angle) -> None:
    model = arm(base)
    q, v = state(model, angle)
    with pytest.raises(StateError) as caught:
        PATHS[path](model, q, v)
    message = str(caught.value)
    for part in ("q[", model.joint_names[1], f"{angle:g}", "1e+15 rad", "modulo 2 pi"):
        assert part in message, message


@pytest.mark.parametrize("path", PATHS)
def test_the_largest_angle_is_taken(path) -> None:
    model = arm()
    PATHS[path](model, *state(model, 1e15))


def test_the_largest_angle_has_the_sine_of_its_remainder() -> None:
    model = arm()
    turned, _ = state(model, np.arctan2(np.sin(1e15), np.cos(1e15)))
    given, _ = state(model, 1e15)
    np.testing.assert_allclose(
        model.gravity_torque(given), model.gravity_torque(turned), rtol=0, atol=1e-13
    )


def test_the_first_of_several_rows_is_named() -> None:
    model = arm()
    rows = np.zeros((2, 3, model.nq))
    rows[1, 2, 4] = 2e15
    with pytest.raises(StateError, match=r"q\[1, 2, 4\]"):
        model.mass_matrix(rows)


@pytest.mark.parametrize("compiled", [False, True])
def test_accelerations_and_forces_up_to_the_largest_double_are_taken(compiled) -> None:
    """F = m a of 1 kg; the torque of a hinge is linear in its acceleration."""
    model = mr.examples.snake(2).with_parameters(mass=0.5)
    model = model.model("physical", "free", gravity=(0, 0, 0))
    model = model.compile() if compiled else model
    q, (v, one, lifted, turned) = model.neutral(), np.zeros((4, model.nv))
    one[-1], turned[-1], lifted[2] = 1.0, -1.7e308, 1.7e308
    small = model.inverse_dynamics(q, v, one)
    rows = [np.tile(x, (ROWS, 1)) for x in (q, v, turned, lifted)]
    for f, turning, lifting in (
        (model.inverse_dynamics, (q, v, turned), (q, v, lifted)),
        (lambda *given: model.inverse_dynamics(*given)[-1], rows[:3], (*rows[:2], rows[3])),
    ):
        np.testing.assert_allclose(f(*turning) / -1.7e308, small, rtol=0, atol=1e-15)
        assert f(*lifting)[2] == 1.7e308
