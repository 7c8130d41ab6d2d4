"""What acts on a body at a state, and the parts of steps that whole runs hide."""

import dataclasses
import inspect
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from modurob import (
    Ground,
    ModuleType,
    Organism,
    SizeError,
    StateError,
    Undock,
    examples,
    simulate,
)
from modurob.sim import BodyTrajectory, SimulationError
from modurob.sim.reconfiguration.impact import Pose
from modurob.sim.recorder import Rows, check_ticks, record_times, row_bytes
from modurob.sim.simulate import Progress
from modurob.spatial import so3
from modurob.stepping import INTEGRATORS, Stops, integrator_class
from modurob.stepping.base import FixedStep, Integrator, StepSettings, check_step_count
from modurob.stepping.contact import GroundContact, largest_sides, rounded_down
from modurob.stepping.fixed_steps import _check_turn
from modurob.stepping.ground import corner_depths, corners
from modurob.stepping.motion import EquationOfMotion, Stopped, called, first_of
from modurob.stepping.stops import LinearStops, StopForces
from oracles import complains
from oracles.blocks import block, cylinder

ROUNDING = 1e-12
SNAKE = examples.snake(3)
FREE = SNAKE.model("physical", base="free")
WRENCHES = {"m1": np.array([1.0, -2.0, 3.0, 0.1, 0.2, -0.3])}


def law(t, q, v):
    tau = np.zeros(v.shape)
    tau[..., -1] = np.cos(t) - 0.3 * v[..., -1]
    return tau


def state(model, seed=0, count=None):
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(count or 1)])
    v = rng.standard_normal((count or 1, model.nv))
    return (q, v) if count else (q[0], v[0])


# -- the equation of motion ------------------------------------------------------------------------


@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("external", [{}, WRENCHES, {"m1": lambda t: t * WRENCHES["m1"]}])
def test_accelerations_of_records_are_those_of_their_states(stops, external):
    """By the torques and forces of the ground that were recorded, also of a batch."""
    q, v = state(FREE, count=4)
    q[:, 2], q[:, 7:] = 0.0, q[:, 7:] + FREE.upper  # inside the ground, beyond the stops
    springs = StopForces(Stops(), FREE, q[0]) if stops else None
    times, contact = np.array([0.5, 1.0]), GroundContact(Ground(height=0.1), FREE, SNAKE, q, 1e-3)
    motion = EquationOfMotion(FREE, (4,), law, springs, external, contact)
    found = motion.accelerations(
        times, np.array([q, q]), np.array([v, -v]),
        np.array([law(t, q, x) for t, x in zip(times, (v, -v), strict=True)]),
        np.array([contact.force(q, x) for x in (v, -v)]),
    )  # fmt: skip
    expected = [motion.acceleration(t, q, x) for t, x in zip(times, (v, -v), strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    for k in range(4):
        one = GroundContact(Ground(height=0.1), FREE, SNAKE, q[k], 1e-3)
        one.law = contact.law
        alone = EquationOfMotion(FREE, (), law, springs, external)
        tau = law(0.5, q[k], v[k]) + contact.force(q, v)[k]
        tau = tau + (springs(q[k], v[k]) if stops else 0.0)
        a = FREE.forward_dynamics(q[k], v[k], tau, alone.wrenches(0.5))
        np.testing.assert_allclose(found[0, k], a, rtol=1e-9)


@pytest.mark.parametrize("external", [WRENCHES, {"m1": lambda t: t * WRENCHES["m1"]}])
def test_wrenches_may_change_between_calls_for_one_state(external):
    """Compiled code keeps constant ones; those that vary are asked at each time."""
    motion, (q, v) = EquationOfMotion(FREE, drive=law, external=external), state(FREE)
    for t in (0.3, 0.7, 0.3):
        wrench = external["m1"](t) if callable(external["m1"]) else external["m1"]
        expected = FREE.forward_dynamics(q, v, law(t, q, v), {"m1": wrench})
        np.testing.assert_allclose(motion.acceleration(t, q, v), expected, rtol=1e-10)
        found = motion.observed(t)["external"]
        np.testing.assert_array_equal(found[FREE.body_index("m1")], wrench)
        assert np.count_nonzero(found.any(axis=-1)) == 1


def test_sensors_measure_wrenches_and_contacts_in_the_frames_of_the_bodies():
    model = SNAKE.model(base="free")
    q, v = model.neutral(), np.zeros(model.nv)
    q[2] = 0.049  # of cubes of 0.1 m
    contact = GroundContact(Ground(stiffness=1e4), model, SNAKE, q, 1e-4)
    contact.accepted(q, v)
    push = np.array([0.0, 1.0, 0.0, 0.2, 0.0, 0.0])
    motion = EquationOfMotion(model, external={"m1": push}, ground=contact)
    found, seen = motion.measured(0.0, q, v), contact.observed(q, v)
    T = model.forward_kinematics(q)
    for k, name in enumerate(model.body_names):
        f, n = seen["contact"][k], seen["contact_torque"][k]
        R, p = T[k, :3, :3], T[k, :3, 3]
        own = np.concatenate([R.T @ f, R.T @ (n - np.cross(p, f))])
        assert f[2] == pytest.approx(4 * 1e4 * 1e-3)
        np.testing.assert_allclose(found[name], own + (push if name == "m1" else 0), atol=1e-9)
    q[2] = 5.0
    contact.accepted(q, v)
    assert list(motion.measured(0.0, q, v)) == ["m1"]  # in the air
    assert EquationOfMotion(model, ground=contact).measured(0.0, q, v) is None
    assert EquationOfMotion(model).measured(0.0, q, v) is None


def test_the_fastest_rate_leaves_out_what_implicit_steps_take():
    rough = examples.snake(3).with_parameters(viscous=2.0).model("physical")
    smooth = examples.snake(3).model("physical")
    q = smooth.neutral()
    hard, linear = (
        StopForces(Stops(frequency=500.0), rough, q),
        StopForces(LinearStops(1e7), rough, q),
    )
    friction = rough.friction_rate.rate
    assert hard.rate > friction > 1
    for model, stops, explicit, implicit in (
        (smooth, None, 0.0, 0.0),
        (rough, None, friction, 0.0),
        (rough, hard, hard.rate, hard.rate),
        (rough, linear, max(friction, linear.rate), 0.0),
    ):
        motion = EquationOfMotion(model, stops=stops)
        found = [motion.fastest_rate(each)[0] for each in (False, True)]
        assert found == [explicit, implicit]
    assert EquationOfMotion(rough).fastest_rate(False)[1] == rough.friction_rate.cause
    assert EquationOfMotion(rough, stops=hard).fastest_rate(True)[1] == "the stops"


def test_forces_are_held_between_samples_alone():
    model = examples.snake(3).model("physical")
    stops = StopForces(Stops(), model, model.neutral())
    sampled = SimpleNamespace(sample_time=0.01)
    for given, held in (
        ({}, True),
        ({"drive": law}, False),
        ({"drive": sampled}, True),
        ({"external": {"m1": np.ones(6)}}, True),
        ({"external": {"m1": lambda t: np.ones(6)}}, False),
        ({"stops": stops}, False),
    ):
        assert EquationOfMotion(model, **given).is_held == held


def test_the_first_bad_number_is_named_by_its_joint_and_its_state():
    bad = np.zeros((2, 3, FREE.nv))
    bad[1, 2, 7] = np.nan
    one, other = (f"joint '{name}'" for name in FREE.joint_names)
    assert first_of(FREE, bad, np.isnan(bad))[0] == f"{other} of state [1, 2]"
    assert first_of(FREE, bad[1], np.isnan(bad[1]))[0] == f"{other} of state 2"
    bad[1, 0, 5] = np.inf
    assert first_of(FREE, bad, np.isinf(bad)) == ("the base of state [1, 0]", np.inf)
    bad[1, 2, 6] = -np.inf
    assert first_of(FREE, bad[1, 2], np.isinf(bad[1, 2])) == (one, -np.inf)


def test_an_interrupted_call_keeps_its_reason():
    with pytest.raises(Exception, match="the law raised ValueError: no") as caught:
        called(0.3, "the law", lambda: (_ for _ in ()).throw(ValueError("no")))
    stopped = caught.value
    assert stopped.time == 0.3
    with pytest.raises(type(stopped)) as again:
        called(0.5, "another", lambda: (_ for _ in ()).throw(stopped))
    assert again.value is stopped


# -- stops -----------------------------------------------------------------------------------------


def test_linear_stops_are_a_spring_and_a_damper_beyond_the_limits():
    model = SNAKE.with_parameters(limits=(-0.4, 0.7)).model("physical", base="free")
    force = StopForces(LinearStops(30.0, 2.0), model, model.neutral())
    q, v = np.tile(model.neutral(), (3, 1)), np.zeros((3, model.nv))
    q[:, 7:] = [[0.8, -0.3], [-0.55, 0.7], [0.1, 0.9]]
    v[:, 6:] = [[0.5, 9.0], [-1.5, 9.0], [9.0, -20.0]]
    tau = [[-30 * 0.1 - 2 * 0.5, 0], [30 * 0.15 + 2 * 1.5, 0], [0, -30 * 0.2 + 2 * 20.0]]
    np.testing.assert_allclose(force(q, v)[:, 6:], tau, atol=ROUNDING)
    assert not force(q, v)[:, :6].any()
    np.testing.assert_allclose(force.energy(q), 15 * np.array([0.1, 0.15, 0.2]) ** 2)
    dq, dv = force.derivatives(q, v)
    on = np.array([[1, 0], [1, 0], [0, 1]])
    np.testing.assert_array_equal(dq[:, 6:], -30 * on)
    np.testing.assert_array_equal(dv[:, 6:], -2 * on)
    np.testing.assert_allclose(force.beyond(q), [[0.1, 0], [-0.15, 0], [0, 0.2]], atol=ROUNDING)


def test_stops_have_no_rate_where_nothing_has_inertia():
    """A point on the axis of its joint: forward dynamics says what is wrong there."""
    model = examples.double_pendulum().model("dyad")
    assert StopForces(LinearStops(30.0), model, model.neutral()).rate == 0


def test_energies_of_rounded_stops_are_the_work_against_their_force():
    model = SNAKE.model("physical")
    force = StopForces(Stops(frequency=3.0, damping=0.0, rounding=0.02), model, model.neutral())
    x = np.linspace(0, 0.1, 20_001)
    q = np.stack([model.upper[0] + x, model.lower[1] - 0.5 * x], axis=1)
    tau = force(q, np.zeros_like(q))
    work = -np.trapezoid(tau[:, 0], q[:, 0]) - np.trapezoid(tau[:, 1], q[:, 1])
    assert force.energy(q[-1]) == pytest.approx(work, rel=1e-6)
    assert force.energy(q[0]) == 0.0


def test_stops_and_grounds_are_values():
    for value, name in (
        (Stops(), "damping"),
        (LinearStops(1.0), "damping"),
        (Ground(), "friction"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, 0.5)
    assert Stops() == Stops(10.0, 0.5, 0.01)
    assert Stops() != Stops(damping=0.4)


# -- steps -----------------------------------------------------------------------------------------


def test_integrators_have_the_orders_of_the_literature():
    """Dormand and Prince 5(4) and 8(5,3), Radau IIA of order five; others vary, or are ours."""
    orders = {"RK45": 5, "DOP853": 8, "LSODA": None, "Radau": 5, "BDF": None}
    ours = {"RK4": 4, "SemiImplicitEuler": 1, "Variational": 2}
    assert {name: method.order for name, method in INTEGRATORS.items()} == {**orders, **ours}
    batches = {name for name, method in INTEGRATORS.items() if method.batches}
    assert batches == {"RK4", "SemiImplicitEuler"}
    assert integrator_class(None).name == "RK45"
    assert integrator_class(None, on_ground=True).name == "SemiImplicitEuler"


def test_integrators_report_every_step_unless_told():
    for method in (Integrator, FixedStep, *INTEGRATORS.values()):
        assert inspect.signature(method.steps).parameters["stride"].default == 1


def test_a_run_has_a_billion_steps_at_most():
    check_step_count(1e6, 1e-3)
    with complains(StateError, "1e+09 steps; the most is 1e+09", "dt = 0.001 s or more"):
        check_step_count(1.0001e6, 1e-3)


@pytest.mark.parametrize("name", ["Variational", "SemiImplicitEuler", "RK4"])
def test_free_bodies_with_friction_move_under_wrenches_as_they_must(name):
    rough = examples.snake(3).with_parameters(viscous=0.05)
    model = rough.model("physical", base="free", gravity=(0.3, -0.2, -1.0))
    (q, v), external = state(model, 5), {"m2": lambda t: np.cos(5 * t) * 0.2 * WRENCHES["m1"]}
    options = {"controller": law, "external": external}
    exact = simulate(model, q, v, 0.1, integrator="DOP853", rtol=1e-11, atol=1e-11, **options)
    method, errors = INTEGRATORS[name], []
    for h in (2e-3, 1e-3):
        found = simulate(model, q, v, 0.1, integrator=name, dt=h, record=0.1, **options)
        apart = [found.v[-1] - exact.v[-1], model.difference(exact.q[-1], found.q[-1])]
        errors.append(np.abs(apart).max(axis=1))
    ratios = np.log2(np.divide(*errors))
    np.testing.assert_allclose(ratios, method.order, atol=0.3)


def test_a_body_on_hard_linear_stops_moves_as_an_oscillator_does():
    """Implicit steps; the free motion of a joint on a spring, with a hinge without gravity."""
    model = examples.snake(2).model("physical", gravity=(0, 0, 0))
    inertia, k = model.mass_matrix([0.0])[0, 0], 4.0
    start, rate = model.upper[0] + 0.05, np.sqrt(4.0 / inertia)
    found = simulate(
        model, [start], None, 0.6 / rate, None, "SemiImplicitEuler", stops=LinearStops(k),
        dt=1e-3 / rate,
    )  # fmt: skip
    beyond = 0.05 * np.cos(0.6)
    assert found.q[-1, 0] - model.upper[0] == pytest.approx(beyond, abs=1e-4)
    assert found.v[-1, 0] == pytest.approx(-0.05 * rate * np.sin(0.6), rel=2e-3)


@pytest.mark.parametrize("grounded", [False, True])
def test_linear_stops_that_are_too_hard_for_a_step_hold_a_joint_at_its_limit(grounded):
    """They are of the end of the step: x + 30^2 x+ = x, if x is all that is beyond the limit."""
    model, dt = examples.snake(2).model("physical", gravity=(0, 0, 0)), 1e-3
    inertia = model.mass_matrix([0.0])[0, 0]
    found = simulate(
        model, model.upper + 0.05, None, 2 * dt, None, "SemiImplicitEuler", dt=dt,
        stops=LinearStops(30**2 * inertia / dt**2),
        ground=Ground(height=-5.0) if grounded else None,
    )  # fmt: skip
    assert found.q[1, 0] - model.upper[0] == pytest.approx(0.05 / (1 + 30**2))


@pytest.mark.parametrize("name", ["Variational", "SemiImplicitEuler", "RK4"])
def test_a_base_on_a_spring_and_a_damper_of_its_controller_is_a_damped_oscillator(name):
    """In one direction of the world, by forces in the turned frame of the base."""
    model = examples.snake(1).model(base="free", gravity=(0, 0, 0))
    mass, decay, rate = float(np.sum(model.mass)), 3.0, 10.0
    R = so3.exp(np.array([0.4, -0.8, 0.5]))

    def law(t, q, v):
        force = -mass * (decay**2 + rate**2) * R.T @ q[:3] - 2 * mass * decay * v[:3]
        return np.concatenate([force, np.zeros(3)])

    start, way = np.concatenate([[0.1, 0, 0], so3.to_quaternion(R)]), np.zeros((2, 3))
    speed = np.concatenate([R.T @ [-0.1 * decay, 0, 0], np.zeros(3)])
    method, errors, end = INTEGRATORS[name], [], 0.2
    for h in (0.01, 0.005):
        run = simulate(model, start, speed, end, law, name, dt=h, record=end)
        way[0, 0] = 0.1 * np.exp(-decay * end) * np.cos(rate * end)
        way[1, 0] = -decay * way[0, 0] - 0.1 * rate * np.exp(-decay * end) * np.sin(rate * end)
        errors.append(np.abs([run.q[-1, :3] - way[0], R @ run.v[-1, :3] - way[1]]).max())
    assert errors[1] < {"Variational": 1e-3, "SemiImplicitEuler": 2e-2, "RK4": 1e-6}[name]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(method.order, abs=0.3)


@pytest.mark.parametrize("name", ["RK4", "SemiImplicitEuler", "Variational"])
@pytest.mark.parametrize("external", [{}, {"m2": lambda t: np.cos(9 * t) * 0.2 * WRENCHES["m1"]}])
def test_far_above_the_ground_forces_that_change_act_at_their_times(name, external):
    """The ground is told of each step; without it they are taken at once."""
    (q, v), options = state(FREE, 3), {"record": 0.02, "dt": 1e-3, "external": external}
    flight, above = (
        simulate(FREE, q, v, 0.02, lambda t, q, v: law(30 * t, q, v), name, ground=x, **options)
        for x in (None, Ground(height=-9.0))
    )
    np.testing.assert_allclose(above.q, flight.q, rtol=0, atol=1e-11)
    np.testing.assert_allclose(above.v, flight.v, rtol=0, atol=1e-10)


def test_a_base_may_turn_by_a_radian_in_a_step():
    v = np.zeros((2, 8))
    v[1, 3:6] = 1.2, 0.0, 1.6
    v[:, [0, 6]] = 99.0
    _check_turn(0.3, 0.5, v)
    v[1, 5] += 1e-9
    with pytest.raises(Stopped, match=r"turns at 2 rad/s, .* of 0\.5 s: give dt = 0\.5 s or less"):
        _check_turn(0.3, 0.5, v)
    spin, ground = [0.0] * 5 + [1001.0], Ground(height=-9.0)
    with complains(SimulationError, "the simulation stopped at t = 0.001 s: the base turns at"):
        simulate(BLOCK_MODEL, None, spin, 0.01, dt=1e-3, ground=ground)


class Arctangent:
    """An equation whose solution 0 Newton's method misses from 1.4 on: it goes ever farther."""

    def __init__(self):
        self.asked = []

    def equation(self, t, h, q, p, z):
        self.asked.append(z.item())
        return np.array([[1 / (1 + z[0] ** 2)]]), -np.arctan(z)


@pytest.mark.parametrize("start", [0.5, 3.0, 20.0])
def test_a_variational_step_with_kinked_forces_goes_back_where_it_went_too_far(start):
    """By half, as often as it takes; without kinks it is told that there is no solution nearby."""
    model = examples.snake(2).model("physical")
    found, none = (
        INTEGRATORS["Variational"](EquationOfMotion(model), StepSettings(0.0, 0.0, 1e-3, 1))
        for _ in range(2)
    )
    for method in (found, none):
        method._kinked, method.scheme = method is found, Arctangent()
        z = np.array([start])
        method.forget(z)
        with np.errstate(over="ignore", invalid="ignore"):
            assert method._solve(0.0, 1e-3, z, z, z) is (method is found or start < 1)
        assert abs(z.item()) < 1e-12 or (method is none and start > 1)
    way = (1 + start**2) * np.arctan(start)
    assert found.scheme.asked[1] == pytest.approx(start - way)
    if start > 1:
        assert found.scheme.asked[2] == pytest.approx(start - way / 2)
    if start > 3:
        assert found.scheme.asked[3:6] == pytest.approx([start - way / 2**k for k in (2, 3, 4)])


@pytest.mark.parametrize(
    ("sizes", "rounds", "learned"),
    [
        ([1.9e-13], 1, 0),  # half of the first correction is believed to be left
        ([2.1e-13, 1e-14], 2, 0),
        (0.2 ** np.arange(30), 19, 13),  # 0.2^19 is the first below 1e-13, 0.2^12 the last learned
        (4e-3 ** np.arange(30), 6, 4),
        (2e-3 ** np.arange(30), 5, 1),
        (1e-4 ** np.arange(30), 4, 1),  # a thousandth is left at least
        ([1.9e-9] * 60, 2, 1),  # as large as before: rounding errors
        ([2.1e-9] * 60, 60, 59),
    ],
)
def test_rounds_of_a_variational_step_end_where_a_predicted_error_is_rounding(
    sizes, rounds, learned, monkeypatch
):
    """1e-13 of a velocity of 1; in the last case no solution is nearby."""
    model = examples.snake(2).model("physical")
    motion, settings = EquationOfMotion(model), StepSettings(0.0, 0.0, 1e-3, 1)
    method, seen, lessons = INTEGRATORS["Variational"](motion, settings), iter(sizes), []
    monkeypatch.setattr(method, "_learn", lambda *given: lessons.append(given))
    left = []

    def equation(t, h, q, p, z):
        left.append(next(seen))
        return np.eye(1), np.array(left[-1:])

    method.scheme = SimpleNamespace(equation=equation)
    z = np.ones(1)
    method.forget(z)
    assert method._solve(0.0, 1e-3, z, z, z) is (rounds < 60)
    assert (len(left), len(lessons)) == (rounds, learned)


# -- the ground ------------------------------------------------------------------------------------


def test_sides_of_a_body_are_those_with_the_largest_second_moment():
    box = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 3)], dtype=float)
    np.testing.assert_allclose(largest_sides(box), 0.5)  # a half each of both sides
    pyramid = np.array([[1, 1, 0], [-1, 1, 0], [1, -1, 0], [-1, -1, 0], [0, 0, 1.5]], dtype=float)
    np.testing.assert_allclose(largest_sides(pyramid), 0.8)  # four on the floor, one on top
    nearly = pyramid + np.array([0, 0, 1.0])[None] * np.array([[1e-6], [0], [0], [0], [0]])
    np.testing.assert_allclose(largest_sides(nearly), 0.8)  # a millionth of 2 m counts as flat
    tilted = pyramid + np.array([0, 0, 1.0])[None] * np.array([[1e-5], [0], [0], [0], [0]])
    expected = [0, 0.75, 0.75, 0.75, 0.75]  # three on the floor, one on top
    np.testing.assert_allclose(largest_sides(tilted), expected)
    np.testing.assert_allclose(largest_sides(np.ones((1, 3))), 0.5)  # a sphere: both sides are one


def test_adaptive_methods_stand_on_the_ground_of_steps_of_a_millisecond():
    q = FREE.neutral()
    law, other = (GroundContact(Ground(), FREE, SNAKE, q, h).law for h in (None, 1e-3))
    assert law.stiffness == pytest.approx(other.stiffness, rel=1e-12)
    assert law[3] == np.inf  # no limit of the damping by a step


BLOCK = block((0.1, 0.1, 0.05), 2.0)
BLOCK_MODEL = BLOCK.model(base="free")


def on_block(ground, step):
    return GroundContact(ground, BLOCK_MODEL, BLOCK, BLOCK_MODEL.neutral(), step)


@pytest.mark.parametrize("step", [2e-3, 1e-3, 2.5e-4])
def test_the_law_of_the_ground_has_the_numbers_of_its_page(step):
    """docs/theory/contact.md; a box turns fastest about its normal: lambda = 12 / mass."""
    contact = on_block(Ground(friction=0.3), step)
    law, rate = contact.law, 0.8 / step
    k = rate**2 * 2.0 / 12
    assert contact.rate == pytest.approx(rate)
    assert contact.largest_step == pytest.approx(step)
    expected = (0.3, k, max(10.0, 0.0125 * rate), 6.25 * step, 0.7 * k, 0.7 * k / rate)
    assert tuple(law) == pytest.approx(expected)
    assert law.limit == pytest.approx(4 / (step * rate**2))


def test_a_record_of_the_ground_has_its_channels_and_its_force():
    q, v = state(FREE)
    contact = GroundContact(Ground(height=-1.0), FREE, SNAKE, q, 1e-3)
    numbers = [*contact.observed(q, v).values(), contact.force(q, v)]
    assert contact.recorded == sum(np.size(x) for x in numbers)


@pytest.mark.parametrize(("speed", "corners"), [(0.0999, 4), (0.1001, 0)])
def test_a_corner_that_leaves_fast_is_in_the_ground_and_not_pushed(speed, corners):
    """The damping of 10 s/m takes the whole force of the spring from 0.1 m/s on."""
    contact, q = on_block(Ground(stiffness=1e4), 1e-3), BLOCK_MODEL.neutral()
    q[2] = 0.025 - 1e-5
    v = np.array([0.0, 0.0, speed, 0.0, 0.0, 0.0])
    contact.accepted(q, v)
    found = contact.touching(q, v)
    assert len(found.body) == len(found.place) == len(found.normal) == len(found.force) == corners
    assert contact.observed(q, v)["contact_energy"] == pytest.approx(4 * 0.5 * 1e4 * 1e-10)
    force = contact.force(q, v)[2]
    assert force == pytest.approx(4 * 1e4 * 1e-5 * max(0.0, 1 - 10 * speed), abs=1e-12)


def test_a_given_ground_may_turn_a_body_by_a_radian_in_a_step():
    step = 1e-3
    k = 2.0 / 12 / step**2
    assert on_block(Ground(stiffness=k), step).rate * step == pytest.approx(1.0)
    with complains(StateError, "too long for a ground of", "159 Hz", "give dt = 0.00099 s or less"):
        on_block(Ground(stiffness=1.0001 * k), step)
    with complains(StateError, "give dt = 0.0005 s", "or a stiffness of 1.6e+05 N/m or less"):
        on_block(Ground(stiffness=4 * k), step)


def test_a_body_may_start_as_deep_as_two_weights_press_one_corner():
    for mass_g, k in ((2.0 * 9.81, 1e4), (0.0, 1e4)):
        model = BLOCK.model(base="free", gravity=(0.0, 0.0, -mass_g / 2.0))
        deepest = 2 * mass_g / k + 1e-9  # rounding
        contact = GroundContact(Ground(stiffness=k), model, BLOCK, model.neutral(), 1e-3)
        q = model.neutral()
        q[2] = 0.025 - deepest + 1e-11
        np.testing.assert_array_equal(contact.started(q), q)
        q[2] -= 1e-10
        with complains(StateError, "m below the ground: start it higher"):
            contact.started(q)


@pytest.mark.parametrize("step", [5e-4, 1e-3])
def test_ground_under_a_body_that_cannot_move_is_that_under_a_kilogram_on_a_corner(step):
    """Which oscillates by 0.8 rad in a step."""
    organism = examples.snake(1)
    model = organism.model(base="fixed")
    contact = GroundContact(Ground(height=-1.0), model, organism, model.neutral(), step)
    assert contact.law.stiffness == pytest.approx((0.8 / step) ** 2)


@pytest.mark.parametrize("slope", [(0.0, 0.0), (0.2, -0.3)])
@pytest.mark.parametrize("form", ["cylinder", "cubes"])
def test_corners_that_modules_feel_are_where_the_ground_pushes(form, slope):
    """Their forces and torques are those of the record; each lies in the ground's surface."""
    body = cylinder(0.05, 0.12) if form == "cylinder" else SNAKE
    model = body.model("physical", base="free")
    ground, rng = Ground(slope=slope, stiffness=1e4), np.random.default_rng(2)
    q, v = model.neutral(), 0.05 * rng.standard_normal(model.nv)
    q[3:7] = so3.to_quaternion(so3.exp(np.array([0.4, 0.3, -0.7])))
    q[7:] = 0.3 * rng.standard_normal(len(q) - 7)
    _, places, depth = corner_depths(ground, body, model, q)
    q[2] += depth.max() - 0.01
    contact = GroundContact(ground, model, body, q, 1e-4)
    contact.accepted(q, v)
    found, seen = contact.touching(q, v), contact.observed(q, v)
    T = model.forward_kinematics(q)[found.body]
    x = (T[:, :3, :3] @ found.place[..., None])[..., 0] + T[:, :3, 3]
    _, places, depth = corner_depths(ground, body, model, q)
    np.testing.assert_allclose(depth, places[:, :2] @ slope - places[:, 2], atol=ROUNDING)
    assert 0 < len(x) <= (depth > 0).sum()
    for place in x:
        assert np.abs(places[depth > 0] - place).max(axis=1).min() < ROUNDING
    for k in range(model.nbodies):
        mine = found.body == k
        np.testing.assert_allclose(found.force[mine].sum(axis=0), seen["contact"][k], atol=1e-9)
        torque = np.cross(x[mine], found.force[mine]).sum(axis=0)
        np.testing.assert_allclose(torque, seen["contact_torque"][k], atol=1e-9)
    normal = ground.upward / np.linalg.norm(ground.upward)
    np.testing.assert_allclose(found.normal, np.tile(normal, (len(x), 1)), atol=ROUNDING)


def test_the_first_body_on_the_ground_may_be_behind_a_virtual_one():
    """Compiled forces, which go from link to link, against those of the record."""
    start = Organism.start("virtual_rx")
    organism = start.dock("m0", start.free_ports("m0")[0], "m1", 7, kind="backbone")
    model = organism.model("physical")
    q, v = model.neutral(), np.linspace(0.1, 0.3, model.nv)
    body, _, depth = corner_depths(Ground(), organism, model, q)
    assert model.body_link[body].min() > 0
    ground = Ground(height=float(-depth.max()) + 0.002, stiffness=1e4)
    contact = GroundContact(ground, model, organism, q, 1e-4)
    seen = contact.observed(q, v)
    wrenches = np.concatenate([seen["contact"], seen["contact_torque"]], axis=1)
    expected = np.einsum("bij,bi->j", Pose(model, q).J[model.body_link], wrenches)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(contact.force(q, v), expected, atol=1e-9)


@pytest.mark.parametrize("other", [0.0, 0.002])
def test_a_corner_that_has_left_the_ground_has_no_energy_in_it(other):
    """Seen between two steps: it held on to the ground at the end of the last one."""
    q, v = np.tile(FREE.neutral(), (2, 1)), np.zeros((2, FREE.nv))
    q[:, 2] = 0.049  # of cubes of 0.1 m
    contact = GroundContact(Ground(), FREE, SNAKE, q, 1e-3)
    contact.accepted(q, v)
    q[:, 0] = 1e-4
    contact.accepted(q, v)
    law, (*_, depth) = contact.law, corner_depths(Ground(), SNAKE, FREE, q[0])
    each = (depth > 0).sum() * 0.5 * (law.stiffness * 1e-3**2 + law.grip * 1e-4**2)
    np.testing.assert_allclose(contact.observed(q, v)["contact_energy"], each)
    q[:, 2] += [0.002, other]
    expected = [0, 0 if other else each]
    np.testing.assert_allclose(contact.observed(q, v)["contact_energy"], expected)


def test_a_body_that_another_becomes_keeps_its_grip_after_steps_at_once():
    """A block that slides: both bodies stretch the same bristles."""
    q, v, h = BLOCK_MODEL.neutral(), np.array([0.05, 0.0, 0.0, 0.0, 0.0, 0.0]), 1e-3
    q[2] = 0.025 - 1e-4
    contact = on_block(Ground(), h)
    contact.accepted(q, v)
    q, v = contact.march(q, v, np.zeros(6), h, 5)
    heir = GroundContact(Ground(), BLOCK_MODEL, BLOCK, q, h, [contact])
    rest = np.zeros(6)
    assert heir.force(q, rest)[0] < -1.0
    np.testing.assert_allclose(heir.force(q, rest), contact.force(q, rest), rtol=1e-12)


def test_a_body_that_sinks_too_deep_may_have_ground_of_a_given_stiffness_or_a_fixed_base():
    """At 20 ms the ground has 267 N/m: the block of 2 kg would sink by 18 mm of its 100."""
    with complains(StateError, "dt = 0.02 s is too long", "sink by 0.018 m", "or a stiffness"):
        on_block(Ground(), 0.02)
    assert on_block(Ground(stiffness=200.0), 0.02).law.stiffness == 200.0
    held = BLOCK.model(base="fixed")
    GroundContact(Ground(height=-1.0), held, BLOCK, held.neutral(), 0.1)


def test_a_body_grips_the_ground_from_the_first_step_on():
    """One step of sticking: four bristles of 0.7 k, stretched by the way since the start."""
    h, k, q = 1e-3, 1e4, BLOCK_MODEL.neutral()
    q[2] = 0.025 - 2.0 * 9.81 / (4 * k)
    v = [0.01, 0.0, 0.0, 0.0, 0.0, 0.0]
    ground = Ground(friction=5.0, stiffness=k)
    run = simulate(BLOCK_MODEL, q, v, h, None, "RK4", dt=h, ground=ground)
    rate = np.sqrt(k * 12 / 2.0)
    way, speed = run.q[1, 0] - q[0], run.v[1, 0]
    force = -4 * 0.7 * k * (way + speed / rate)
    assert run.channels["contact"][1, 0, 0] == pytest.approx(force, rel=0.05)


@pytest.mark.parametrize("name", ["RK45", "RK4"])
def test_the_ground_is_told_the_state_after_every_step(monkeypatch, name):
    told, ground = [], Ground(height=-1.0)
    monkeypatch.setattr(EquationOfMotion, "accepted", lambda self, q, v: told.append(q.copy()))
    run = simulate(BLOCK_MODEL, None, [0.1] * 6, 0.01, None, name, ground=ground)
    np.testing.assert_array_equal(told, run.q[1:])


def test_only_free_bodies_are_lifted_and_only_if_that_is_asked_for():
    q = np.tile(FREE.neutral(), (3, 1))
    q[:, 2] = [1.0, -0.2, 0.0]
    for slope in ((0.0, 0.0), (0.1, -0.2)):
        lifting, plain = (
            GroundContact(Ground(slope=slope, lift=lift), FREE, SNAKE, q, 1e-3)
            for lift in (True, False)
        )
        found = lifting.started(q)
        places, z = lifting._corners(found)[0], 2
        heights = (places[z] - slope[0] * places[0] - slope[1] * places[1]).min(axis=-1)
        assert heights[0] > 0.5
        np.testing.assert_allclose(heights[1:], 0.0, atol=ROUNDING)
        np.testing.assert_array_equal(np.delete(found, 2, axis=1), np.delete(q, 2, axis=1))
        with complains(StateError, "m below the ground in state 1: start it higher, or give"):
            plain.started(q)
        np.testing.assert_array_equal(plain.started(found), found)
    arm = SNAKE.model("physical")
    held = GroundContact(Ground(height=0.3, lift=True), arm, SNAKE, arm.neutral(), 1e-3)
    with complains(StateError, "its base is fixed: give Ground(height=-"):
        held.started(arm.neutral())


def test_cylinders_have_circles_near_their_ends_and_corners_inside_of_them():
    body = cylinder(0.05, 0.12)
    points = corners(body, body.model(base="free"))
    circles = points.radius > 0
    np.testing.assert_allclose(points.radius[circles], 0.05)
    inset = 0.01 * 0.05  # of the radius, which is less than half the length
    np.testing.assert_allclose(
        points.place[circles], [[0, 0, -x] for x in (0.06 - inset, inset - 0.06)]
    )
    np.testing.assert_array_equal(points.axis[circles], [[0, 0, 1]] * 2)
    place = points.place[~circles]
    np.testing.assert_allclose(np.linalg.norm(place[:, :2], axis=1), 0.05 - inset)
    np.testing.assert_allclose(np.sort(place[:, 2]), 0.06 * np.repeat([-1, 1], 4))
    flat = cylinder(0.1, 0.04)
    points = corners(flat, flat.model(base="free"))
    np.testing.assert_allclose(np.abs(points.place[points.radius > 0, 2]), 0.02 * (1 - 0.01))


def test_modules_without_shapes_are_cubes_and_virtual_ones_touch_nothing():
    bare = ModuleType(**BLOCK.kind("m0").model_dump() | {"shapes": [], "size": 0.3})
    cube = Organism.start(bare)
    found = corners(cube, cube.model(base="free"))
    np.testing.assert_allclose(np.abs(found.place), np.full((8, 3), 0.15))
    assert len(np.unique(found.place, axis=0)) == 8
    virtual = Organism.start("virtual_rx")
    with complains(StateError, "no module of the organism can touch the ground: all are virtual"):
        corners(virtual, virtual.model("physical"))


@pytest.mark.parametrize(
    ("form", "size", "place", "own", "of_box"),
    [
        ("box", (0.1, 0.1, 0.1), (0.0, 0.0, 0.0), 0, 8),  # inside
        ("box", (0.1, 0.1, 0.1), (0.1, 0.0, 0.0), 4, 8),  # half inside
        ("box", (0.2, 0.2, 0.2), (0.1, 0.0, 0.0), 4, 4),  # one long box
        ("sphere", (0.05,), (0.0, 0.0, 0.04), 0, 8),
        ("sphere", (0.05,), (0.0, 0.0, 0.06), 1, 8),  # its top looks out
        ("cylinder", (0.05, 0.1), (0.0, 0.0, 0.04), 0, 8),
        ("cylinder", (0.05, 0.1), (0.0, 0.0, 0.1), 5, 8),  # its upper circle and end look out
    ],
)
def test_points_inside_the_hull_of_a_body_are_left_out(form, size, place, own, of_box):
    cube = BLOCK.kind("m0").model_dump()
    shapes = [
        {"body": "box", "form": "box", "size": (0.2, 0.2, 0.2)},
        {"body": "box", "form": form, "size": size, "position": place},
    ]
    body = Organism.start(ModuleType(**cube | {"shapes": shapes}))
    found = corners(body, body.model(base="free"))
    of_first = (found.radius == 0) & (np.abs(np.abs(found.place) - 0.1) < ROUNDING).all(axis=1)
    assert of_first.sum() == of_box
    assert len(found.place) - of_box == own


def test_numbers_are_rounded_down_to_two_digits():
    numbers = {0.3: "0.3", 0.0129: "0.012", 9.99: "9.9", 3.19e-4: "0.00031", 1.0: "1", 12.7: "12"}
    assert {x: rounded_down(x) for x in numbers} == numbers


def test_grounds_are_as_steep_as_89_degrees_at_most():
    assert Ground(slope=(100.0, -100.0)).slope == (100.0, -100.0)
    for slope in ((100.1, 0.0), (0.0, -100.1), (np.nan, 0.0), (1.0, 2.0, 3.0)):
        with complains(StateError, "slope is its rise along x and y"):
            Ground(slope=slope)
    for field in ("friction", "damping"):
        assert getattr(Ground(**{field: 0.0}), field) == 0.0
    for field in ("cell", "stiffness"):
        with complains(StateError, field):
            Ground(**{field: 0.0})
    for shape in ((1, 5), (5, 1), (2, 2, 2)):
        with complains(StateError, "two numbers or more each way", str(shape)):
            Ground(height=np.zeros(shape))
    with complains(StateError, "height is a finite number", "inf"):
        Ground(height=np.inf)
    normal = Ground(slope=(0.3, -0.4)).upward
    np.testing.assert_array_equal(normal, [-0.3, 0.4, 1.0])
    assert Ground() != Ground()  # a field has no single answer
    assert len({Ground(), Ground()}) == 2
    for fixed in (Ground(height=np.zeros((2, 3))).cells, Ground(height=0.1).height):
        assert not fixed.flags.writeable
    kinds = [Ground(**x).kind for x in ({}, {"slope": (0, 0.1)}, {"height": np.zeros((2, 3))})]
    assert kinds == ["level", "slope", "field"]


# -- records ---------------------------------------------------------------------------------------


def test_rows_ask_for_memory_when_they_are_full():
    rows = Rows((3,), 2)
    rows.add([1, 2, 3])
    assert rows.growth == 0
    rows.add([4, 5, 6])
    assert rows.growth == 2 * 2 * 3 * 8
    assert rows.array().base is not None  # a full one is handed out without a copy
    rows.add([7, 8, 9])
    assert rows.growth == 0
    assert rows.array().base is None  # nothing keeps the room for more
    np.testing.assert_array_equal(rows.array(), [[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    assert len(Rows((3,), 0).array()) == 0
    assert row_bytes(4, 7, 6) == 8 * (1 + 4 * (7 + 6 + 6))


@pytest.mark.parametrize("k", [0, 1, 2])
def test_velocities_between_records_are_cubic_and_positions_quintic(k):
    """Polynomials of these degrees are met exactly in each interval."""
    model = examples.snake(2).model("physical")
    t = np.array([0.5, 0.8, 1.2, 1.3])
    q, v, a = (x[:, None] for x in (t**4, 4 * t**3, 12 * t**2))
    part = BodyTrajectory("", model, None, t, q, v, 0 * q, _accelerations=lambda: a)
    between = np.linspace(t[k], t[k + 1], 5)
    found = part.at(between)
    np.testing.assert_allclose(found[0][:, 0], between**4, rtol=ROUNDING)
    np.testing.assert_allclose(found[1][:, 0], 4 * between**3, rtol=ROUNDING)


def test_progress_goes_on_evenly_while_bodies_part(monkeypatch):
    monkeypatch.setattr(sys.modules[Progress.__module__], "REPORT_PERIOD_S", 0.0)
    told, events = [], [Undock(0.05, "m2")]
    simulate(
        FREE, None, np.ones(FREE.nv), 0.1, None, "RK4", dt=5e-3, events=events,
        progress=told.append,
    )  # fmt: skip
    assert len(told) >= 30  # ten steps of one body, then ten of both
    assert 0 <= min(np.diff([0.0, *told])) <= max(np.diff([0.0, *told])) < 0.06
    assert told[-1] == pytest.approx(1.0)


def test_times_at_which_a_run_is_cut_take_64_bytes_each(monkeypatch):
    monkeypatch.setattr("modurob.checks.LARGEST_BYTES", 64_000)
    check_ticks("sample_time", 1e-3, 1.0)
    assert len(record_times(1e-3, 0.999)) == 1000
    for call in (
        lambda: check_ticks("sample_time", 1e-3, 1.001),
        lambda: record_times(1e-3, 1.001),
        lambda: record_times(1e-2, 1.0, 6401),
    ):
        with complains(SizeError, "give a larger "):
            call()
    assert len(record_times(1e-2, 0.999, 640)) == 101


def test_progress_is_told_twenty_times_a_second_and_at_the_end(monkeypatch):
    clock, told = iter([100.0, 100.04, 100.06, 100.10, 100.12, 100.13]), []
    module = sys.modules[Progress.__module__]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with Progress(2.0, told.append, None) as progress:
        for t in (0.1, 0.2, 0.3, 0.4, 0.5, 2.5):
            progress(t)
    assert told == [0.05, 0.15, 0.25, 1.0]
