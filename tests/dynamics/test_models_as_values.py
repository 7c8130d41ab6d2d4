"""Models travel: pickled, copied, forked; prepared callables and hand-overs keep apart."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
import threading

import numpy as np
import pytest

import modurob as mr
from modurob.compiler.pool import cores
from modurob.dynamics import BoundToModel

STATES = 100_000  # enough for several threads
SAME = 1e-12  # two tiers: another order of additions


def crab() -> mr.Model:
    return mr.examples.crab().model("physical")


def state(model: mr.Model, *batch: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((3, *batch, model.nv))


@pytest.mark.parametrize(
    "travel", [lambda m: pickle.loads(pickle.dumps(m)), copy.copy, copy.deepcopy]
)
@pytest.mark.parametrize("make", [crab, lambda: crab().compile()], ids=["dyads", "fused"])
def test_a_model_survives_pickling_and_copying(make, travel):
    model = make()
    x = state(model)
    expected = model.inverse_dynamics(*x)
    found = travel(model)
    np.testing.assert_allclose(found.inverse_dynamics(*x), expected, rtol=0, atol=SAME)
    assert dict(found.locked) == dict(model.locked)
    assert not found.mass.flags.writeable
    assert found.dynamics.tier.name == model.dynamics.tier.name


def both_tiers(model: mr.Model, x: np.ndarray) -> float:
    """Sum of results on two threads, and of code that a thread of its own compiles."""
    forces, masses = model.inverse_dynamics(*x, threads=2), model.compile().mass_matrix(x[0, :9])
    return float(forces.sum() + masses.sum())


def _in_child(model: mr.Model, x: np.ndarray, answers) -> None:
    total = both_tiers(model, x)
    helpers = sum(thread.name == "modurob" for thread in threading.enumerate())
    answers.put((total, helpers))


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork"
)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_batches_run_in_a_forked_child():
    model = crab()
    x = state(model, STATES)
    # starts the threads of batches and that of the compiler
    expected = both_tiers(model, x)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_in_child, args=(model, x, answers))
    child.start()
    try:
        found, helpers = answers.get(timeout=60)
        assert found == pytest.approx(expected, rel=1e-9)
        assert helpers == cores() - 1  # its own
        child.join(timeout=60)
        assert child.exitcode == 0
    finally:
        child.kill()


def test_two_prepared_callables_do_not_share_their_result():
    model = crab()
    one, two = model.prepare("inverse_dynamics"), model.prepare("inverse_dynamics")
    first, second = state(model), 2 * state(model)
    kept = one(*first)
    before = kept.copy()
    two(*second)
    np.testing.assert_array_equal(kept, before)


def test_prepare_waits_for_code_that_is_compiled_in_the_background():
    model = crab().compile(background=True)
    call = model.prepare("forward_dynamics")
    fused = model.dynamics.tier.ready("forward_dynamics")
    assert model.dynamics.tier.routine("forward_dynamics") is fused
    x = state(model)
    expected = crab().forward_dynamics(*x)
    np.testing.assert_allclose(call(*x), expected, rtol=0, atol=SAME * np.abs(expected).max() * 1e3)


def test_the_closed_form_of_a_single_module_is_empty():
    model = mr.Organism.start("backbone").model()
    M, C, N = model.closed_form([], [])
    assert (M.shape, C.shape, N.shape) == ((0, 0), (0, 0), (0,))


def test_an_organism_on_a_virtual_joint_takes_no_other_base():
    for base in ("free", ["px"]):
        with pytest.raises(mr.StateError, match="use base='fixed'"):
            mr.examples.crane().model("physical", base=base)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_point_mass_on_an_oblique_axis_is_named(compiled):
    tip = mr.ModuleType(
        name="tip",
        symbol="t",
        size=0.1,
        bodies=(
            mr.Body(name="a"),
            mr.Body(name="b", mass=1.0, center_of_mass=(0.03, 0.04, 0.05)),
        ),
        joints=(mr.Joint(name="j", kind="revolute", parent="a", child="b", axis=(3, 4, 5)),),
        ports=(
            mr.Port(
                label="in", body="a", position=(0, 0, 0), normal=(0, 0, -1), reference=(1, 0, 0),
                connector="giusti-in", mates=("giusti-out",), side=1,
            ),
        ),
    )  # fmt: skip
    model = mr.examples.arm("ba").dock("m1", "out", "m2", "in", kind=tip).model()
    model = model.compile() if compiled else model
    q, v, tau = state(model)
    with pytest.raises(mr.StateError, match=r"singular.*m2\.j"):
        model.forward_dynamics(q, v, tau)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.inverse_dynamics(*x, external=[1.0]),
        lambda m, x: m.step(*x, dt="soon"),
        lambda m, x: m.step(*x, dt=0.0),
        lambda m, x: m.inverse_dynamics(*x[:, None], threads="many"),
        lambda m, x: m.inverse_kinematics([1.0]),
        lambda m, x: m.inverse_kinematics({"m1": np.zeros(3)}, rng=3),
    ],
)
def test_impossible_options_are_refused_in_one_line(call):
    model = crab()
    with pytest.raises(mr.StateError) as caught:
        call(model, state(model))
    assert "\n" not in str(caught.value)


def test_prepared_calls_outlive_their_model_and_its_name_for_the_result():
    calls, still = [], np.zeros(3)
    for k in range(50):
        model = mr.examples.snake(4).with_parameters(mass=1 + 1e-3 * k).model()
        slopes = np.stack(model.inverse_dynamics_derivatives(still, still, still))
        calls.append((model.prepare("inverse_dynamics_derivatives"), slopes))
        del model
        gc.collect(0)
    gc.collect()
    for call, expected in calls:
        np.testing.assert_array_equal(call(still, still, still), expected)
        np.testing.assert_array_equal(call(*[[0.0] * 3] * 3), expected)  # by the method


def test_compiled_single_calls_outlive_their_model():
    """The builtin owns its method definition, code and workspace; else freeing it would crash."""
    still, kept = np.zeros(3), []
    for k in range(200):
        model = mr.examples.snake(4).with_parameters(mass=1 + 1e-3 * k).model()
        expected = model.inverse_dynamics(still, still, still)
        kept.append((model.dynamics.tier.routine("inverse_dynamics").single, expected))
        del model
        gc.collect(0)
    gc.collect()
    for single, expected in kept:
        out = np.empty(3)
        assert single(still, still, still, out) is out
        np.testing.assert_array_equal(out, expected)


def test_a_class_that_does_not_prepare_its_code_anew_is_not_copied():
    class Unprepared(BoundToModel):
        BOUND = ()

    with pytest.raises(NotImplementedError):
        copy.copy(Unprepared())
