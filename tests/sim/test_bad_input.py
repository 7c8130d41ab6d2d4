"""Input that `simulate` refuses, with one line that says what to do."""

import dataclasses

import numpy as np
import pytest

from modurob import Dock, Organism, StateError, Undock, UnknownNameError, examples, simulate
from oracles import complains


@pytest.fixture(scope="module")
def model():
    return examples.double_pendulum().model("physical")


@pytest.mark.parametrize("option", ["rtol", "atol"])
@pytest.mark.parametrize("bad", [0, 0.0, -1e-6, np.nan, np.inf, None, "small", True])
def test_a_tolerance_is_positive(model, option, bad):
    with complains(StateError, option, "positive", repr(bad)):
        simulate(model, None, None, 1.0, **{option: bad})


@pytest.mark.parametrize("bad", [-1.0, 0, np.nan, np.inf, None, "long", [1.0]])
def test_a_duration_is_positive(model, bad):
    with complains(StateError, "duration", "positive", repr(bad)):
        simulate(model, None, None, bad)


@pytest.mark.parametrize("integrator", ["RK45", "RK4"])
@pytest.mark.parametrize("bad", [0, -1e-3, np.nan, "short"])
def test_a_step_is_positive(model, bad, integrator):
    with complains(StateError, "dt", repr(bad)):
        simulate(model, None, None, 1.0, None, integrator, dt=bad)


@pytest.mark.parametrize("integrator", ["RK45", "RK4"])
def test_a_step_is_no_longer_than_the_run(model, integrator):
    with complains(StateError, "dt = 2 s", "longer than the duration of 1 s"):
        simulate(model, None, None, 1.0, None, integrator, dt=2.0)
    assert simulate(model, None, None, 1e-3, None, integrator, dt=1e-3).t[-1] == 1e-3


@pytest.mark.parametrize("bad", ["Euler", "rk4", "", 4, ["RK4"]])
def test_an_integrator_that_does_not_exist(model, bad):
    with complains(UnknownNameError, repr(bad), "RK45", "DOP853", "Variational"):
        simulate(model, None, None, 1.0, None, bad)


def test_states_have_the_size_of_the_model(model):
    with complains(StateError, "q has shape (3,)", "nq = 2", "m0.hinge"):
        simulate(model, np.zeros(3), None, 1.0)
    with complains(StateError, "v0 has shape (1,)", "nv = 2"):
        simulate(model, None, np.zeros(1), 1.0)
    with complains(StateError, "(3,), (4,)"):
        simulate(model, np.zeros((3, 2)), np.zeros((4, 2)), 1.0, None, "RK4")
    with complains(StateError, "q[0] is nan"):
        simulate(model, [np.nan, 0], None, 1.0)
    with complains(StateError, "quaternion"):
        free = examples.snake(2).model("physical", base="free")
        simulate(free, np.zeros(free.nq), None, 1.0)


@pytest.mark.parametrize("bad", [examples.crab(), None, "crab"])
def test_a_model_is_a_model(bad):
    with complains(StateError, "takes a model such as organism.model()"):
        simulate(bad, None, None, 1.0)


@pytest.mark.parametrize("bad", [0, -0.1, np.nan, "all", [2.0], [-1.0], [0.1, np.nan]])
def test_what_to_record(model, bad):
    with complains(StateError, "record"):
        simulate(model, None, None, 1.0, record=bad)


@pytest.mark.parametrize("bad", [1, "yes", None])
def test_stops_are_on_or_off(model, bad):
    with complains(StateError, "stops"):
        simulate(model, None, None, 1.0, stops=bad)


def test_noise_is_a_noise(model):
    with complains(StateError, "modurob.sim.Noise", "float"):
        simulate(model, None, None, 1.0, noise=0.1)


# -- events ----------------------------------------------------------------------------------------


def test_events_need_the_organism(model):
    by_hand = dataclasses.replace(model, organism=None, options=None)
    with complains(StateError, "Organism.model(...)"):
        simulate(by_hand, None, None, 1.0, events=[Undock(0.5, "m2")])


def test_the_organism_must_be_that_of_the_model(model):
    with complains(StateError, "not the one"):
        simulate(model, None, None, 1.0, organism=examples.crab())
    with complains(StateError, "Organism", "Model"):
        simulate(model, None, None, 1.0, organism=model)
    one, other = (Organism.start("backbone", name) for name in ("a", "b"))
    with complains(StateError, "not the one"):
        simulate(one.model(), None, None, 1.0, organism=other)
    by_hand, pendulum = dataclasses.replace(model, organism=None, options=None), model.organism
    assert simulate(by_hand, None, None, 0.01, organism=pendulum).parts[0].organism is pendulum


@pytest.mark.parametrize("time", [0.0, 1.0, 2.0, -1.0])
def test_events_lie_within_the_run(model, time):
    with complains(StateError, "outside of the run"):
        simulate(
            model, None, None, 1.0, organism=examples.double_pendulum(), events=[Undock(time, "m2")]
        )


@pytest.mark.parametrize("bad", [np.nan, "soon", None])
def test_an_event_has_a_time(bad):
    with complains(StateError, "time in seconds"):
        Undock(bad, "m2")


def test_events_are_events(model):
    with complains(StateError, "Dock(...) and Undock(...)", "'undock'"):
        simulate(model, None, None, 1.0, organism=examples.double_pendulum(), events=["undock"])


def test_events_and_batches_do_not_go_together(model):
    with complains(StateError, "many states"):
        simulate(
            model, np.zeros((3, 2)), None, 1.0, None, "RK4", organism=examples.double_pendulum(),
            events=[Undock(0.5, "m2")],
        )  # fmt: skip


def test_a_controller_must_be_able_to_follow(model):
    with complains(StateError, "rebuilt(model, organism)", "PerBody"):
        simulate(
            model, None, None, 1.0, lambda t, q, v: q, organism=examples.double_pendulum(),
            events=[Undock(0.5, "m2")],
        )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "piece"),
    [
        ({"approach": (1, 2, 3)}, "approach"),
        ({"approach": "fast"}, "approach"),
        ({"reach": (0, 1)}, "reach"),
        ({"reach": (1, -1)}, "reach"),
        ({"kind": "backbone", "organism": examples.crab()}, "not both"),
    ],
)
def test_a_docking_that_makes_no_sense(options, piece):
    with complains(StateError, piece):
        Dock(0.5, "m0", 3, "n", 4, **options)
