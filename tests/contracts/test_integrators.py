"""Contract of every integrator of the registry, and of one that is added from outside."""

import numpy as np
import pytest

from modurob import (
    Organism,
    SimulationError,
    StateError,
    Undock,
    UnknownNameError,
    examples,
    simulate,
)
from modurob.sim import INTEGRATORS, Noise, Stops
from modurob.stepping import FixedStep, Integrator, StepSettings, integrator_class
from modurob.stepping.motion import EquationOfMotion
from oracles import complains


class Midpoint(FixedStep):
    """Implicit midpoint rule, by fixed-point iteration: an integrator from outside."""

    order = 2
    batches = True

    def advance(self, t, h, count, q, v):
        motion, moved = self.motion, self.motion.model.integrate
        for k in range(count):
            middle, v_mid = t + (k + 0.5) * h, v
            for _ in range(5):
                a = motion.acceleration(middle, moved(q, h / 2 * v_mid), v_mid)
                v_mid = v + h / 2 * a
            q, v = moved(q, h * v_mid), 2 * v_mid - v
        return q, v


METHODS = [*INTEGRATORS, Midpoint]
FIXED = [method for method in METHODS if issubclass(integrator_class(method), FixedStep)]
ADAPTIVE = [method for method in METHODS if method not in FIXED]
BATCHES = [method for method in METHODS if integrator_class(method).batches]
DT = 1e-3  # [s] default step
ORDER = 0.15  # of a measured order of convergence: higher terms, and some rounding
END = 0.4  # [s] of the runs that are compared
ADAPTED = 1e-6  # at tolerances of 1e-10
CLOSE = 2e-8  # of methods of order three and more with steps of 1 ms
ROUNDING = 1e-12
REPEATED = 1e-11  # the same run twice: SciPy's methods go through BLAS and LAPACK

every = pytest.mark.parametrize("name", METHODS)


def fixed_base():
    """Two hinges and a rail, with friction."""
    organism = examples.arm("bac").with_parameters(viscous=0.05)
    return organism.model("physical")


def free_base():
    return examples.snake(3).model("physical", base="free", gravity=(0.3, -0.2, -2.0))


def state(model, seed=3):
    rng = np.random.default_rng(seed)
    return model.random_configuration(rng), rng.standard_normal(model.nv)


def push(t, q, v):
    """A smooth torque of time, position and velocity on the last joint."""
    tau = np.zeros(v.shape)
    tau[..., -1] = 0.02 * np.cos(5 * t) - 0.05 * q[..., -1] - 0.01 * v[..., -1]
    return tau


def distance(model, q, v, other_q, other_v):
    """Largest difference of two states; q and -q are one orientation."""
    if model.free_base:
        sign = np.sign(np.sum(q[..., 3:7] * other_q[..., 3:7], axis=-1, keepdims=True))
        q = np.concatenate([q[..., :3], sign * q[..., 3:7], q[..., 7:]], axis=-1)
    return max(np.abs(q - other_q).max(), np.abs(v - other_v).max())


@pytest.fixture(scope="module", params=["fixed base", "free base"])
def case(request):
    """A model, its state, and its motion to ten digits."""
    model = fixed_base() if request.param == "fixed base" else free_base()
    q, v = state(model)
    exact = simulate(model, q, v, END, push, "DOP853", rtol=1e-13, atol=1e-13)
    return model, q, v, exact


def allowed(name, constant=20.0, least=CLOSE, adapted=ADAPTED):
    """Error with steps of 1 ms, from the order that the method declares."""
    if name not in FIXED:
        return adapted
    return max(constant * DT ** integrator_class(name).order, least)


@every
def test_it_comes_close_to_the_exact_motion(name, case):
    model, q, v, exact = case
    found = simulate(model, q, v, END, push, name, rtol=1e-10, atol=1e-10)
    assert distance(model, found.q[-1], found.v[-1], exact.q[-1], exact.v[-1]) < allowed(name)


@every
def test_times_rise_from_zero_to_the_end(name, case):
    model, q, v, _ = case
    found = simulate(model, q, v, 0.1, None, name)
    assert found.t[0] == 0
    assert found.t[-1] == 0.1
    assert np.all(np.diff(found.t) > 0)
    np.testing.assert_array_equal(found.q[0], model.check_configuration(q))
    np.testing.assert_array_equal(found.v[0], v)
    assert found.integrator == integrator_class(name).name


@every
def test_what_it_is_given_stays_as_it_was(name, case):
    model, q, v, _ = case
    kept = q.copy(), v.copy()
    simulate(model, q, v, 0.05, push, name)
    np.testing.assert_array_equal(q, kept[0])
    np.testing.assert_array_equal(v, kept[1])


@every
def test_the_quaternion_keeps_its_length(name):
    model = free_base()
    found = simulate(model, *state(model), 0.1, push, name)
    np.testing.assert_allclose(np.linalg.norm(found.q[:, 3:7], axis=1), 1, atol=1e-14)


@every
def test_recorded_times_are_hit_exactly(name, case):
    model, q, v, exact = case
    wanted = np.array([0.0, 0.13, 0.2, 0.33, END])
    found = simulate(model, q, v, END, push, name, rtol=1e-10, atol=1e-10, record=wanted)
    np.testing.assert_allclose(found.t, wanted, rtol=0, atol=1e-15)
    there = exact.at(wanted)
    assert distance(model, found.q, found.v, *there) < allowed(name)


@every
def test_states_between_the_recorded_ones_lie_on_the_motion(name, case):
    model, q, v, exact = case
    found = simulate(model, q, v, END, push, name, rtol=1e-10, atol=1e-10)
    times = np.random.default_rng(0).uniform(0, END, 50)
    assert distance(model, *found.at(times), *exact.at(times)) < allowed(name)


@every
def test_accelerations_are_those_of_the_equation_of_motion(name, case):
    model, q, v, _ = case
    found = simulate(model, q, v, 0.05, push, name)
    expected = np.array([push(t, *x) for t, *x in zip(found.t, found.q, found.v, strict=True)])
    np.testing.assert_allclose(found.tau, expected, atol=ROUNDING)
    a = [model.forward_dynamics(*x) for x in zip(found.q, found.v, expected, strict=True)]
    np.testing.assert_allclose(found.a, a, atol=1e-9)


@pytest.mark.parametrize("name", FIXED)
def test_it_converges_at_its_order(name, case):
    model, q, v, exact = case
    method = integrator_class(name)
    finest = 1e-4 * 10 ** np.log2(method.order)  # errors well above rounding, higher terms below
    there = exact.at(END)
    errors = []
    for h in (2 * finest, finest):
        found = simulate(model, q, v, END, push, name, dt=h, record=END)
        errors.append(distance(model, found.q[-1], found.v[-1], *there))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(method.order, abs=ORDER)


@pytest.mark.parametrize("name", ADAPTIVE)
def test_tighter_tolerances_give_smaller_errors(name, case):
    model, q, v, exact = case
    errors = []
    for tolerance in (1e-4, 1e-7, 1e-10):
        found = simulate(model, q, v, END, push, name, rtol=tolerance, atol=tolerance)
        errors.append(distance(model, found.q[-1], found.v[-1], exact.q[-1], exact.v[-1]))
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize("name", ADAPTIVE)
def test_dt_is_the_largest_step(name):
    model = fixed_base()
    found = simulate(model, *state(model), 0.2, None, name, dt=0.011)
    assert np.diff(found.t).max() <= 0.011 * (1 + ROUNDING)


@pytest.mark.parametrize("name", FIXED)
def test_steps_are_equal_and_no_longer_than_dt(name):
    model = fixed_base()
    found = simulate(model, *state(model), 0.1, None, name, dt=0.03)  # not a whole number of them
    np.testing.assert_allclose(np.diff(found.t), 0.025, rtol=1e-9)


@every
def test_a_free_organism_keeps_its_momentum(name):
    model = examples.snake(4).model("physical", base="free", gravity=(0, 0, 0))
    q, v = state(model)
    found = simulate(model, q, v, 0.2, None, name, rtol=1e-10, atol=1e-10)
    drift = np.abs(found.momentum - found.momentum[0]).max()
    assert drift < (1e-12 if name == "Variational" else allowed(name, 30.0, 1e-7, 1e-7))


@every
def test_energy_is_conserved_without_friction(name):
    model = examples.double_pendulum().model("physical")
    found = simulate(model, [0.6, -0.2], [0.0, 0.5], 1.0, None, name, rtol=1e-10, atol=1e-10)
    drift = np.abs(found.energy - found.energy[0]).max()
    assert drift < allowed(name, 10.0, 1e-7, 1e-7)


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("shape", [(5,), (2, 3), (0,)])
def test_a_batch_is_many_single_runs(name, shape, case):
    model, q, v, _ = case
    rng = np.random.default_rng(1)
    many_v = v + 0.3 * rng.standard_normal((*shape, model.nv))
    batch = simulate(model, q, many_v, 0.05, push, name, organism=None)
    assert batch.q.shape == (51, *shape, model.nq)
    assert batch.tau.shape == batch.a.shape == (51, *shape, model.nv)
    for index in np.ndindex(shape):
        single = simulate(model, q, many_v[index], 0.05, push, name)
        one = batch.member(index)
        np.testing.assert_allclose(one.q, single.q, rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(one.v, single.v, rtol=0, atol=1e-11)
        np.testing.assert_allclose(one.energy, single.energy, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in BATCHES])
def test_one_that_takes_no_batches_says_so(name):
    model = fixed_base()
    with complains(StateError, name, "takes one state", "RK4"):
        simulate(model, np.zeros((3, model.nq)), None, 1.0, None, name)


@every
def test_external_wrenches_push(name):
    model = fixed_base()
    q, v = state(model)
    wrench = {"m2.distal": lambda t: [0.3 * t, 0.1, -0.2, 0.0, 0.05, 0.0]}

    def same(t, q, v):
        J = model.jacobian(q, "m2.distal")
        return J.T @ wrench["m2.distal"](t)

    pushed = simulate(model, q, v, 0.05, None, name, external=wrench, rtol=1e-9, atol=1e-9)
    driven = simulate(model, q, v, 0.05, same, name, rtol=1e-9, atol=1e-9)
    assert distance(model, *pushed.at(0.05), *driven.at(0.05)) < 1e-7
    calm = simulate(model, q, v, 0.05, None, name)
    assert distance(model, *pushed.at(0.05), *calm.at(0.05)) > 1e-3
    np.testing.assert_allclose(pushed.a[0], driven.a[0], atol=1e-9)


@every
def test_a_sampled_controller_is_asked_at_its_times_only(name):
    model = fixed_base()
    asked = []

    class Sampled:
        sample_time = 0.02

        def command(self, t, q, v, reference):
            asked.append(t)
            return np.full(v.shape, np.floor(t / 0.02 + 0.5))

    found = simulate(model, *state(model), 0.1, Sampled(), name, record=0.01)
    np.testing.assert_allclose(asked, [0, 0.02, 0.04, 0.06, 0.08], atol=ROUNDING)
    np.testing.assert_array_equal(found.tau[:, 0], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4])


@every
def test_noise_is_the_same_for_the_same_seed(name):
    model, noise = fixed_base(), Noise(q=0.03, v=0.03, tau=0.3)

    def run(seed):
        rng = np.random.default_rng(seed)
        return simulate(
            model, *state(model), 0.1, push, name, sample_time=0.01, noise=noise, rng=rng
        )

    one, same, other = run(1), run(1), run(2)
    np.testing.assert_allclose(one.q, same.q, rtol=0, atol=REPEATED)
    assert np.abs(one.q[-1] - other.q[-1]).max() > 1e-9


@every
def test_stops_hold_a_joint_that_falls_on_its_limit(name):
    organism = Organism.start("backbone").dock("m0", 3, "m1", 4)
    model = organism.model("physical")
    found = simulate(model, [-1.0], [-3.0], 0.5, None, name, stops=Stops(frequency=5.0))
    assert found.q.min() < model.lower[0]  # gravity pulls it through its lower limit
    assert found.q.min() > model.lower[0] - 0.3
    free = simulate(model, [-1.0], [-3.0], 0.5, None, name)
    assert free.q.min() < model.lower[0] - 0.5


@every
def test_a_runaway_is_stopped_and_what_was_there_is_kept(name):
    model = fixed_base()

    def spin(t, q, v):
        return 2.0 * v * np.abs(v) + 2.0

    with pytest.raises(StateError, match="stopped at t = ") as caught:
        simulate(model, *state(model), 20.0, spin, name)
    kept = caught.value.trajectory
    assert 0 < caught.value.time < 20
    assert kept.status == "stopped"
    assert 0 < kept.t[-1] <= caught.value.time
    assert np.isfinite(kept.q).all()
    assert np.isfinite(kept.v).all()


@every
def test_a_body_that_cannot_move_takes_its_time(name):
    model = Organism.start("backbone").model("physical")
    assert model.nv == 0
    found = simulate(model, None, None, 2.0, None, name)
    assert found.t.tolist() == [0.0, 2.0]
    assert found.q.shape == (2, 0)


@pytest.mark.parametrize("name", FIXED)
def test_the_step_can_be_taken_in_any_number_of_calls(name):
    """Reporting every step or every tenth must not change the motion."""
    model = free_base()
    q, v = state(model)
    ends = []
    for stride in (1, 7, 100):
        integrator = integrator_class(name)(EquationOfMotion(model), StepSettings(1e-8, 1e-8, 2e-3))
        *_, last = integrator.steps(0.0, 0.2, q, v, stride)
        ends.append(last)
    for end in ends[1:]:
        assert end.t == 0.2
        assert distance(model, end.q, end.v, ends[0].q, ends[0].v) < 1e-11


@pytest.mark.parametrize("name", FIXED)
def test_a_new_start_forgets_the_motion_before(name, case):
    """Also one that shares its positions or its velocities with the end of that motion."""
    model, q, v, _ = case

    def fresh():
        motion = EquationOfMotion(model, drive=push)
        return integrator_class(name)(motion, StepSettings(0.0, 0.0, DT))

    def after(method, q, v):
        return [x.copy() for x in method.sample(0.1, q.copy(), v.copy())]

    method = fresh()
    end_q, end_v = after(method, q, v)
    for start in ((end_q, v), (q, v)):
        for one, other in zip(after(method, *start), after(fresh(), *start), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=ROUNDING)
    after(method, q, v)
    for one, other in zip(after(method, q, end_v), after(fresh(), q, end_v), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=ROUNDING)


def test_semi_implicit_euler_is_the_step_of_the_model(case):
    model, q, v, _ = case
    tau = 0.01 * np.arange(model.nv)
    found = simulate(model, q, v, 2e-3, lambda t, q, v: tau, "SemiImplicitEuler", dt=1e-3)
    for k in range(2):
        after = model.step(found.q[k], found.v[k], tau, 1e-3)
        assert distance(model, found.q[k + 1], found.v[k + 1], *after) < ROUNDING


def test_a_class_that_is_no_integrator_is_refused():
    with complains(UnknownNameError, "RK45", "subclass of modurob.sim.Integrator"):
        simulate(fixed_base(), None, None, 0.1, None, dict)


def test_names_are_those_of_the_classes():
    assert all(method.name == name for name, method in INTEGRATORS.items())
    assert set(INTEGRATORS) >= {
        "RK45", "DOP853", "LSODA", "Radau", "BDF", "RK4", "SemiImplicitEuler", "Variational"
    }  # fmt: skip


class NoState(FixedStep):
    """A wrong integrator: its states are no numbers."""

    def advance(self, t, h, count, q, v):
        return q * np.nan, v


class NoSteps(Integrator):
    """A wrong integrator: it takes no steps."""

    def steps(self, t0, t1, q, v, stride=1):
        return iter(())


class Finer(INTEGRATORS["RK45"]):
    """A method of the list under another name."""


def test_integrators_from_outside_are_checked():
    model = examples.double_pendulum().model("physical")
    for wrong in (NoState, NoSteps):
        with pytest.raises(SimulationError, match=f"{wrong.__name__} gave no state"):
            simulate(model, [0.5, 0], None, 0.1, integrator=wrong)
    with complains(StateError, "FixedStep is no integrator yet", "advance()"):
        simulate(model, [0.5, 0], None, 0.1, integrator=FixedStep)
    own = simulate(model, [0.5, 0], None, 0.1, integrator=Finer)
    assert np.array_equal(own.q, simulate(model, [0.5, 0], None, 0.1, integrator="RK45").q)


def test_events_are_a_list():
    model = examples.snake(3).model("physical")
    with complains(StateError, "events is a list"):
        simulate(model, None, None, 0.1, events=Undock(0.05, "m2"))
