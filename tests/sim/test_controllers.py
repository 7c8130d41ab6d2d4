"""Controllers in a run: what they are asked, what they see, what they leave behind."""

import numpy as np
import pytest

from modurob import ModurobError, StateError, Undock, examples, simulate
from modurob.sim import Noise, PerBody, SimulationError
from oracles import complains

ROUNDING = 1e-12


@pytest.fixture
def model():
    return examples.double_pendulum().model("physical")


class Recorded:
    """Everything a controller may have."""

    sample_time = 0.05

    def __init__(self):
        self.calls, self.begun = [], []

    def reset(self, t, q, v):
        self.begun.append((t, q.tolist(), v.tolist()))
        self.calls.clear()

    def command(self, t, q, v, reference):
        self.calls.append((t, q.copy(), v.copy(), reference))
        self.last = reference
        return -2.0 * (q - reference) - v

    def record(self):
        return {"goal": self.last, "count": float(len(self.calls))}


def test_a_function_of_time_and_state_is_a_controller(model):
    found = simulate(model, [0.1, 0.2], None, 0.2, lambda t, q, v: -q)
    np.testing.assert_allclose(found.tau, -found.q, atol=ROUNDING)


def test_a_controller_that_works_in_place_does_not_move_the_robot(model):
    def rude(t, q, v):
        q -= 100.0
        v *= 0.0
        return np.zeros(2)

    calm = simulate(model, [0.1, 0.2], None, 0.2)
    found = simulate(model, [0.1, 0.2], None, 0.2, rude)
    np.testing.assert_allclose(found.at(0.2)[0], calm.at(0.2)[0], atol=1e-9)


@pytest.mark.parametrize("reference", [lambda t: np.array([t, -t]), np.array([0.3, 0.4])])
def test_the_reference_is_a_function_of_time_or_a_constant(model, reference):
    law = Recorded()
    simulate(model, None, None, 0.2, law, reference=reference)
    for t, _, _, given in law.calls:
        np.testing.assert_array_equal(given, reference(t) if callable(reference) else reference)


def test_channels_and_torques_are_held_between_samples(model):
    law = Recorded()
    found = simulate(
        model, None, None, 0.2, law, "RK4", reference=lambda t: np.array([t, 1.0]), record=0.01
    )
    assert law.begun == [(0.0, [0, 0], [0, 0])]
    assert found.channels.keys() == {"goal", "count"}
    ticks = np.minimum(np.floor(found.t / 0.05 + 1e-9), 3)
    np.testing.assert_allclose(found.channels["goal"][:, 0], 0.05 * ticks, atol=ROUNDING)
    np.testing.assert_array_equal(found.channels["count"], ticks + 1)
    for k in range(4):
        mine = ticks == k
        assert np.ptp(found.tau[mine], axis=0).max() == 0
        _, q, v, reference = law.calls[k]
        at = int(np.flatnonzero(mine)[0])
        np.testing.assert_array_equal(found.q[at], q)
        np.testing.assert_allclose(found.tau[at], -2.0 * (q - reference) - v, atol=ROUNDING)


def test_the_sample_time_of_the_call_goes_first(model):
    law = Recorded()
    simulate(model, None, None, 0.2, law, reference=np.zeros(2), sample_time=0.1)
    assert [t for t, *_ in law.calls] == [0.0, 0.1]


def test_samples_that_are_no_multiple_of_the_step_are_still_hit(model):
    law = Recorded()
    simulate(model, None, None, 0.1, law, "RK4", reference=np.zeros(2), sample_time=0.0333, dt=0.01)
    np.testing.assert_allclose([t for t, *_ in law.calls], [0, 0.0333, 0.0666, 0.0999])


def test_a_controller_can_be_used_again(model):
    law = Recorded()
    first = simulate(model, [0.1, 0.0], None, 0.2, law, reference=np.zeros(2))
    second = simulate(model, [0.1, 0.0], None, 0.2, law, reference=np.zeros(2))
    np.testing.assert_allclose(first.q, second.q, rtol=0, atol=ROUNDING)
    assert len(law.calls) == 4


def test_a_channel_that_comes_late_has_gaps(model):
    class Late:
        sample_time = 0.1

        def command(self, t, q, v, reference):
            self.t = t
            return np.zeros(2)

        def record(self):
            return {"late": self.t} if self.t > 0.05 else {}

    found = simulate(model, None, None, 0.3, Late(), "RK4", dt=0.05)
    np.testing.assert_allclose(found.channels["late"], [np.nan] * 2 + [0.1] * 2 + [0.2] * 3)


def test_a_channel_of_any_shape_is_kept(model):
    class Square:
        def command(self, t, q, v, reference):
            return np.zeros(2)

        def record(self):
            return {"P": np.eye(3)}

    found = simulate(model, None, None, 0.1, Square(), "RK4", dt=0.05)
    assert found.channels["P"].shape == (3, 3, 3)


def test_batches_are_controlled_all_at_once(model):
    shapes = []

    def law(t, q, v):
        shapes.append(q.shape)
        return -q

    q = np.random.default_rng(0).standard_normal((7, 2))
    found = simulate(model, q, None, 0.01, law, "RK4")
    assert set(shapes) == {(7, 2)}
    np.testing.assert_allclose(found.tau, -found.q, atol=ROUNDING)


def test_per_body_makes_the_controller_of_the_model(model):
    made = []

    def make(model, organism):
        made.append((model, organism))
        return lambda t, q, v: np.ones(model.nv)

    found = simulate(model, None, None, 0.1, PerBody(make))
    assert made == [(model, model.organism)]
    assert np.all(found.tau == 1)


# -- noise -----------------------------------------------------------------------------------------


def test_noise_has_the_sizes_it_is_told(model):
    noise = Noise(q=0.03, v=[0.1, 0.2], tau=0.3)
    found = simulate(
        model, None, None, 20.0, lambda t, q, v: -q - v, "RK4", sample_time=0.01, dt=0.01,
        noise=noise, rng=np.random.default_rng(1),
    )  # fmt: skip
    channels = found.channels
    assert set(channels) >= {"measured_q", "measured_v", "command"}
    few = 0.05  # relative error of a standard deviation from 2,000 samples: 3 percent at 2 sigma
    assert np.std(channels["measured_q"] - found.q) == pytest.approx(0.03, rel=few)
    spread = np.std(channels["measured_v"] - found.v, axis=0)
    np.testing.assert_allclose(spread, [0.1, 0.2], rtol=2 * few)
    assert np.std(found.tau - channels["command"]) == pytest.approx(0.3, rel=few)
    seen = -channels["measured_q"] - channels["measured_v"]
    np.testing.assert_allclose(channels["command"], seen, atol=ROUNDING)


def test_disturbances_without_a_controller_shake_the_robot(model):
    found = simulate(
        model, None, None, 1.0, None, "RK4", sample_time=0.01, noise=Noise(tau=0.5),
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert np.std(found.tau) > 0.3
    assert np.abs(found.q[-1]).max() > 1e-3


def test_noise_turns_a_free_base_on_the_sphere():
    model = examples.snake(2).model("physical", base="free", gravity=(0, 0, 0))
    found = simulate(
        model, None, None, 1.0, lambda t, q, v: np.zeros(model.nv), "RK4", dt=0.01,
        sample_time=0.01, noise=Noise(q=0.1, tau=1e-3), rng=np.random.default_rng(0),
    )  # fmt: skip
    seen = found.channels["measured_q"]
    np.testing.assert_allclose(np.linalg.norm(seen[:, 3:7], axis=1), 1, atol=1e-12)
    assert np.std(seen[:, 4]) == pytest.approx(0.05, rel=0.3)  # half the angle
    assert np.all(found.tau[:, :6] == 0)  # motors do not push the base
    assert np.any(found.tau[:, 6:] != 0)


# -- what is wrong with a controller ---------------------------------------------------------------


@pytest.mark.parametrize("integrator", ["RK45", "LSODA", "RK4", "Variational"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_controller_that_returns_nan_is_named_with_joint_and_time(model, bad, integrator):
    def law(t, q, v):
        return np.array([0.0, bad if t >= 0.1 else 0.0])

    with pytest.raises(SimulationError) as caught:
        simulate(model, [0.1, 0.2], None, 1.0, law, integrator)
    error = caught.value
    assert f"the controller returned {bad} for joint 'm1.hinge'" in str(error)
    assert 0.1 <= error.time < 0.2
    assert f"at t = {error.time:.6g} s" in str(error)
    assert isinstance(error, ModurobError)
    assert error.trajectory.status == "stopped"
    assert 0 < error.trajectory.t[-1] <= error.time


def test_a_controller_that_fails_where_it_is_recorded_leaves_whole_rows(model):
    def law(t, q, v):
        return np.full(2, np.nan if t == 0.3 else 0.0)  # asked there by the recorder only

    with pytest.raises(SimulationError) as caught:
        simulate(model, [0.1, 0.2], None, 1.0, law, "DOP853", record=[0.3])
    kept = caught.value.trajectory
    assert len(kept.t) == len(kept.q) == len(kept.tau) == len(kept.a)


def test_a_sampled_controller_that_returns_nan_is_named_too(model):
    class Law:
        sample_time = 0.1

        def command(self, t, q, v, reference):
            return np.full(2, np.nan if t > 0.15 else 0.0)

    with pytest.raises(SimulationError, match=r"nan for joint 'm0\.hinge'") as caught:
        simulate(model, [0.1, 0.2], None, 1.0, Law())
    assert caught.value.time == pytest.approx(0.2)


def test_nan_in_a_batch_names_the_state(model):
    def law(t, q, v):
        tau = np.zeros(v.shape)
        tau[3, 1] = np.nan if t > 0.01 else 0
        return tau

    with pytest.raises(SimulationError, match=r"for joint 'm1\.hinge' of state 3"):
        simulate(model, np.zeros((5, 2)), None, 1.0, law, "RK4")


@pytest.mark.parametrize(
    ("answer", "piece"),
    [
        (np.zeros(3), "an array of shape (3,)"),
        (None, "None"),
        ("up", "'up'"),
        (np.zeros((2, 2)), "an array of shape (2, 2)"),
        (0.0, "0.0"),
        ([1.0], "[1.0]"),
        ([1.0, [2.0]], "[1.0, [2.0]]"),
    ],
)
def test_a_controller_with_the_wrong_number_of_torques_is_told(model, answer, piece):
    with complains(StateError, "the controller returned", piece, "(2,)"):
        simulate(model, None, None, 1.0, lambda t, q, v: answer)


def test_nan_at_the_start_is_told_at_once(model):
    with complains(StateError, "at t = 0 s", "nan for joint 'm0.hinge'"):
        simulate(model, None, None, 1.0, lambda t, q, v: [np.nan, 0])


class Failing:
    """A controller that raises in one of its methods from 0.05 s on."""

    sample_time = 0.01

    def __init__(self, where):
        self.where, self.t = where, 0.0

    def command(self, t, q, v, reference):
        self.t = t
        if self.where == "command" and t > 0.045:
            raise ZeroDivisionError("my own mistake")
        return np.zeros(v.shape)

    def record(self):
        if self.where == "record" and self.t > 0.045:
            raise ZeroDivisionError("my own mistake")
        return {}


@pytest.mark.parametrize("name", ["RK45", "Radau", "LSODA", "RK4", "Variational"])
@pytest.mark.parametrize("where", ["command", "record", "function", "reference", "external"])
def test_what_users_functions_raise_keeps_the_trajectory(model, where, name):
    def late(t, *_):
        if t > 0.045:
            raise ZeroDivisionError("my own mistake")
        return np.zeros(6 if where == "external" else model.nv)

    options = {
        "function": {"controller": late},
        "reference": {"controller": Failing("nowhere"), "reference": late},
        "external": {"external": {"m2": late}},
    }.get(where, {"controller": Failing(where)})
    with pytest.raises(SimulationError, match="raised ZeroDivisionError: my own mistake") as caught:
        simulate(model, None, None, 1.0, integrator=name, dt=0.01, **options)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert 0.03 < caught.value.time <= 0.06
    assert 0.03 < caught.value.trajectory.t[-1] <= 0.06
    word = {"reference": "the reference", "external": "the external wrench on 'm2'"}
    assert word.get(where, "the controller") in str(caught.value)


def test_a_controller_that_raises_at_once_is_named_with_its_reason(model):
    def broken(t, q, v):
        raise ZeroDivisionError("my own mistake")

    with pytest.raises(StateError, match="at t = 0 s the controller raised Zero") as caught:
        simulate(model, None, None, 1.0, broken)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_reset_that_raises_is_named(model):
    class Broken:
        def reset(self, t, q, v):
            raise KeyError("gain")

        def command(self, t, q, v, reference):
            return 0 * v

    with pytest.raises(StateError, match="the controller raised KeyError: 'gain'"):
        simulate(model, None, None, 1.0, Broken())


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_goes_through_untouched(model, signal):
    def interrupted(t, q, v):
        if t > 0.01:
            raise signal
        return 0 * v

    with pytest.raises(signal):
        simulate(model, None, None, 1.0, interrupted)


def test_a_controller_that_cannot_be_rebuilt_keeps_the_trajectory():
    class Stubborn:
        def command(self, t, q, v, reference):
            return 0 * v

        def rebuilt(self, model, organism):
            raise LookupError("no gains for this body")

    organism = examples.snake(3)
    with pytest.raises(SimulationError, match=r"rebuilt.. raised LookupError: no gains") as caught:
        simulate(
            organism.model("physical"), None, None, 0.2, Stubborn(), organism=organism,
            events=[Undock(0.1, "m2")],
        )  # fmt: skip
    assert caught.value.trajectory.t[-1] == 0.1


def test_something_that_is_no_controller(model):
    with complains(StateError, "command(t, q, v, reference)", "float"):
        simulate(model, None, None, 1.0, 3.0)


def test_noise_needs_a_clock_and_a_generator(model):
    with complains(StateError, "sample_time"):
        simulate(
            model, None, None, 1.0, lambda t, q, v: q, noise=Noise(0.1),
            rng=np.random.default_rng(),
        )  # fmt: skip
    with complains(StateError, "noise needs rng="):
        simulate(model, None, None, 1.0, lambda t, q, v: q, noise=Noise(0.1), sample_time=0.1)
    with complains(StateError, "noise of q", "-1"):
        Noise(q=-1)
    with complains(StateError, "noise of tau", "'much'"):
        Noise(tau="much")
    with complains(StateError, "noise of v", "(3,)"):
        simulate(
            model, None, None, 1.0, lambda t, q, v: q, noise=Noise(v=[1, 2, 3]),
            sample_time=0.1, rng=np.random.default_rng(),
        )  # fmt: skip


@pytest.mark.parametrize("bad", [0, -0.1, np.nan, "often"])
def test_a_sample_time_is_positive(model, bad):
    with complains(StateError, "sample_time", repr(bad)):
        simulate(model, None, None, 1.0, lambda t, q, v: q, sample_time=bad)
