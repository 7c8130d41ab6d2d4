"""The float reference, the table of dyads and the fused code give the same numbers."""

import itertools
import threading
import time

import numpy as np
import pytest

from modurob import StateError, dynamics, examples, simulate
from modurob.compiler.tiers import FusedTier
from modurob.dynamics import link_wrenches
from modurob.model import reference as plain
from oracles import GROUPS, complains
from oracles.rough_organisms import case, states

# The same formulas with other rounding: sums of some hundred products, and for forward dynamics
# mass matrices with condition numbers up to 1e4 in these small organisms.
RELATIVE = 1e-11
SMALL = 4  # modules at most: every fused model here is compiled
SEEDS = (1, 2)  # of 3 and 4 modules, with joints in every group
SHAPES = [(), (1,), (5,), (2, 3), (0,), (3, 0, 2)]
COUNTS = range(1, 18)  # past twice the widest vector, and everything odd in between
ALGORITHMS = ("inverse_dynamics", "forward_dynamics", "mass_matrix")
PATIENCE = 30.0  # seconds for a compilation in the background
every_model = pytest.mark.parametrize(
    ("kinds", "hinges", "base"),
    list(itertools.product(GROUPS, ("dyad", "physical"), ("fixed", "free"))),
)


def assert_close(actual, expected):
    assert actual.shape == expected.shape
    scale = np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=RELATIVE * scale)


def reference(model, name, q, v, x, external=None):
    """The recursions on floats."""
    if name == "mass_matrix":
        return plain.reference(model, name, q)
    pushes = None if external is None else link_wrenches(model, external)
    return plain.reference(model, name, q, v, x, pushes)


def ask(model, name, q, v, x, external=None, threads="auto"):
    if name == "mass_matrix":
        return model.mass_matrix(q, threads=threads)
    return getattr(model, name)(q, v, x, external, threads=threads)


def batch(model, shape, seed=0):
    """q, v, x of a batch shape."""
    rng = np.random.default_rng(seed)
    configurations = [model.random_configuration(rng) for _ in np.ndindex(*shape)]
    q = np.reshape(configurations, (*shape, model.nq))
    v, x = rng.standard_normal((2, *shape, model.nv))
    return q, v, x


# -- all tiers, all kinds --------------------------------------------------------------------------


def small_cases(kinds, hinges, base, seeds):
    """Organisms of a group that have joints."""
    found = [case(kinds, seed, hinges, base, most=SMALL) for seed in seeds]
    found = [c for c in found if c.model.nv]
    assert found
    return found


@every_model
def test_table_and_fused_code_equal_the_reference(kinds, hinges, base):
    *_, c = small_cases(kinds, hinges, base, SEEDS)
    fused = c.model.compile()
    assert fused.dynamics.tier.name == "fused"
    assert c.model.dynamics.tier.name == "dyads"
    for name in ALGORITHMS:
        expected = reference(c.model, name, c.q, c.v, c.x)
        for model in (c.model, fused):
            assert_close(ask(model, name, c.q, c.v, c.x), expected)
            for k, state in enumerate(zip(c.q, c.v, c.x, strict=True)):
                assert_close(ask(model, name, *state), expected[k])


@every_model
def test_external_wrenches_act_the_same_on_every_tier(kinds, hinges, base):
    (c, *_) = small_cases(kinds, hinges, base, SEEDS)
    fused = c.model.compile()
    for name in ALGORITHMS[:2]:
        expected = reference(c.model, name, c.q, c.v, c.x, c.external)
        for model in (c.model, fused):
            assert_close(ask(model, name, c.q, c.v, c.x, c.external), expected)


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_the_reference_takes_batches_of_several_axes(base):
    model, rng = examples.crab().model("physical", base), np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(34)]).reshape(2, 17, -1)
    v, x = rng.standard_normal((2, 2, 17, model.nv))
    for name, inputs in (("mass_matrix", (q,)), ("inverse_dynamics", (q, v, x))):
        many = plain.reference(model, name, *inputs)
        flat = plain.reference(model, name, *(y.reshape(34, -1) for y in inputs))
        np.testing.assert_array_equal(many.reshape(flat.shape), flat)


@every_model
def test_the_reference_gives_one_state_and_a_batch_the_same_numbers(kinds, hinges, base):
    for c in small_cases(kinds, hinges, base, SEEDS):
        for name in ALGORITHMS:
            many = reference(c.model, name, c.q, c.v, c.x)
            ones = [reference(c.model, name, *s) for s in zip(c.q, c.v, c.x, strict=True)]
            assert_close(np.reshape(ones, many.shape), many)


@pytest.mark.parametrize("base", [["px", "rz"], "free"])
def test_the_reference_stands_where_the_robot_does(base):
    model = examples.snake(3).model("physical", base)
    q, v, _ = batch(model, (2,))
    q[:, 0] += 5.0
    for name, inputs in (("center_of_mass", (q,)), ("momentum", (q, v)), ("mass_matrix", (q,))):
        assert_close(plain.reference(model, name, *inputs), getattr(model, name)(*inputs))
    poses = plain.reference(model, "forward_kinematics", q)
    assert_close(poses, model.forward_kinematics(q)[..., :3, :])


# -- shapes, sizes, threads ------------------------------------------------------------------------

MODELS = {
    "crab": examples.crab().with_parameters(viscous=0.2, coulomb=0.1).model(),
    "free arm": examples.arm("bac").model(base="free"),
}
FUSED = {name: model.compile() for name, model in MODELS.items()}
every_tier = pytest.mark.parametrize(
    ("tier", "name"), list(itertools.product(("dyads", "fused"), MODELS))
)


def tier_model(tier, name):
    return (MODELS if tier == "dyads" else FUSED)[name]


@every_tier
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_batch_shape_is_a_loop_over_its_states(tier, name, shape, algorithm):
    model = tier_model(tier, name)
    q, v, x = batch(model, shape)
    result = ask(model, algorithm, q, v, x)
    size = (model.nv, model.nv) if algorithm == "mass_matrix" else (model.nv,)
    assert result.shape == (*shape, *size)
    for index in np.ndindex(*shape):
        assert_close(result[index], reference(model, algorithm, q[index], v[index], x[index]))


@every_tier
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("threads", [1, 2, 3, "auto"])
def test_every_batch_size_and_thread_count_gives_the_same_numbers(tier, name, algorithm, threads):
    model = tier_model(tier, name)
    q, v, x = batch(model, (max(COUNTS),))
    expected = reference(model, algorithm, q, v, x)
    for count in COUNTS:
        result = ask(model, algorithm, q[:count], v[:count], x[:count], threads=threads)
        assert_close(result, expected[:count])


@every_tier
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_large_batches_on_two_threads_equal_one(tier, name, algorithm):
    model = tier_model(tier, name)
    states = batch(model, (1001,))
    one, two = (ask(model, algorithm, *states, threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@every_tier
def test_arrays_broadcast_against_each_other(tier, name):
    model = tier_model(tier, name)
    q, v, x = batch(model, (4,))
    for algorithm in ALGORITHMS[:2]:
        result = ask(model, algorithm, q[0], v[:, None, :], x)
        assert result.shape == (4, 4, model.nv)
        for i, j in np.ndindex(4, 4):
            assert_close(result[i, j], reference(model, algorithm, q[0], v[i], x[j]))


@every_tier
def test_one_wrench_for_a_whole_batch_and_one_for_each_state(tier, name):
    model, rng = tier_model(tier, name), np.random.default_rng(3)
    q, v, x = batch(model, (5,))
    tip, one, many = model.body_names[-1], rng.standard_normal(6), rng.standard_normal((5, 6))
    for algorithm in ALGORITHMS[:2]:
        same = ask(model, algorithm, q, v, x, {tip: one})
        each = ask(model, algorithm, q, v, x, {tip: many})
        for k in range(5):
            assert_close(same[k], ask(model, algorithm, q[k], v[k], x[k], {tip: one}))
            assert_close(each[k], ask(model, algorithm, q[k], v[k], x[k], {tip: many[k]}))
        spread = ask(model, algorithm, q[0], v[0], x[0], {tip: many})
        assert spread.shape == (5, model.nv)
        assert_close(spread[2], ask(model, algorithm, q[0], v[0], x[0], {tip: many[2]}))


@every_tier
@pytest.mark.parametrize("shape", [(2, 3), (2, 1), (3,)], ids=str)
def test_wrenches_broadcast_against_states_of_two_axes(tier, name, shape):
    model, rng = tier_model(tier, name), np.random.default_rng(4)
    state, tip = batch(model, (2, 3)), model.body_names[-1]
    given = rng.standard_normal((*shape, 6))
    pushes = np.broadcast_to(given, (2, 3, 6))
    found = model.inverse_dynamics(*state, {tip: given})
    for at in np.ndindex(2, 3):
        one = [part[at] for part in state]
        assert_close(found[at], reference(model, "inverse_dynamics", *one, {tip: pushes[at]}))


@pytest.mark.parametrize("tier", ["dyads", "fused"])
def test_batches_with_a_column_for_each_state_are_refused(tier):
    """Their size alone would do."""
    model = tier_model(tier, "crab")
    q, v, x = (part.T.copy() for part in batch(model, (2 * model.nv,)))
    with complains(StateError, f"q has shape ({model.nv}, {2 * model.nv})"):
        model.inverse_dynamics(q, v, x)


def test_what_is_no_wrench_is_shown_in_sixty_characters():
    q, v, x = batch(MODELS["crab"], ())
    with complains(StateError, "'m1' is six finite numbers", f"got '{'w' * 59}") as told:
        MODELS["crab"].inverse_dynamics(q, v, x, {"m1": "w" * 100})
    assert told.message.count("w" * 60) == 0


@pytest.mark.parametrize("mass", [1.0, 0.01])
def test_a_joint_that_moves_nothing_is_named_however_light_the_organism(mass):
    """The last mass of a double pendulum is a point on its own hinge."""
    model = examples.double_pendulum().with_parameters(mass=mass).model()
    with complains(StateError, "singular", "all mass beyond m2.hinge lies on the joint's axis"):
        model.forward_dynamics([0.1, 0.2], [0.0, 0.0], [0.0, 0.0])


def test_joints_that_move_the_same_mass_in_the_same_way_are_refused_with_the_reason():
    """A straight double pendulum with all mass at its tip: rows of M are (4, 2) and (2, 1)."""
    model = examples.double_pendulum().with_parameters("m1", mass=0.0).model("physical")
    with complains(StateError, "singular: some joints move the same mass in the same way"):
        model.forward_dynamics([0.3, 0.0], [0.0, 0.0], [1.0, 2.0])


def test_a_rollout_of_one_state_is_one_step_after_another():
    model = MODELS["crab"]
    q, v, x = batch(model, ())
    path = model.rollout(q, v, np.stack([x, -x, x]), 0.01)
    for k, tau in enumerate((x, -x, x)):
        q, v = model.step(q, v, tau, 0.01)
        assert_close(path[0][k], q)
        assert_close(path[1][k], v)


@pytest.mark.parametrize("method", ["inverse_dynamics", "forward_dynamics"])
def test_finite_velocities_whose_products_overflow_are_refused_with_the_reason(method):
    rest = np.zeros(3)
    with complains(StateError, "too large: products of these velocities or forces overflow"):
        getattr(MODELS["crab"], method)(rest, np.full(3, 1e200), rest)


def test_an_implicit_step_whose_numbers_overflow_is_refused_with_the_reason():
    model = examples.snake(2).with_parameters(viscous=1.0).model("physical")
    overflow, slow = "products of these velocities or forces overflow", "no finite velocity"
    for tau, dt, reason in ((1e308, 100.0, overflow), (1e150, 1e200, slow)):
        with np.errstate(all="ignore"), complains(StateError, reason):
            model.step([0.0], [0.0], [tau], dt)


@pytest.mark.parametrize("shape", [(3,), (0, 3)])
def test_a_rollout_takes_forces_for_one_step_or_more(shape):
    rest = np.zeros(3)
    with complains(StateError, f"tau has shape {shape}, expected (steps, ..., 3)"):
        MODELS["crab"].rollout(rest, rest, np.zeros(shape), 0.01)


def test_a_body_without_mass_is_refused_with_the_reason():
    model = examples.snake(1).with_parameters(mass=0.0, inertia=0.0).model(base="free")
    with complains(StateError, "the organism has no mass"):
        model.forward_dynamics(model.neutral(), np.zeros(6), np.zeros(6))


def test_wrenches_on_one_link_add_up():
    model = MODELS["crab"]
    q, v, x = batch(model, ())
    push = np.array([1.0, -2.0, 3.0, 0.5, 0.1, -0.7])
    both = model.inverse_dynamics(q, v, x, {"m3": push, "m5": 2 * push})
    free, first, second = (
        model.inverse_dynamics(q, v, x, external)
        for external in ({}, {"m3": push}, {"m5": 2 * push})
    )
    assert_close(both - free, (first - free) + (second - free))
    assert_close(model.inverse_dynamics(q, v, x), free)
    assert link_wrenches(model, {"m3": push}).shape == (4, 6)


def test_a_model_without_joints_answers_with_nothing():
    model = examples.snake(1).model()
    nothing = np.empty(0)
    for some in (model, model.compile()):
        assert some.inverse_dynamics(nothing, nothing, nothing).shape == (0,)
        assert some.forward_dynamics(nothing, nothing, nothing).shape == (0,)
        assert some.mass_matrix(nothing).shape == (0, 0)
        assert some.mass_matrix(np.empty((3, 0))).shape == (3, 0, 0)


def test_a_single_free_module_falls_and_spins():
    model = examples.snake(1).model(base="free")
    q, v, x = states(model, np.random.default_rng(0))
    for some in (model, model.compile()):
        for name in ALGORITHMS:
            assert_close(ask(some, name, q, v, x), reference(model, name, q, v, x))
    fall = model.forward_dynamics(model.neutral(), np.zeros(6), np.zeros(6))
    assert_close(fall, np.array([0, 0, -9.81, 0, 0, 0]))


# -- compiling in the background -------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_the_table_answers_until_the_fused_code_is_ready_and_both_are_right(name, monkeypatch):
    ready = threading.Event()
    compile_now = FusedTier._compile

    def compile_when_ready(tier, *quantity):
        assert ready.wait(PATIENCE)
        return compile_now(tier, *quantity)

    monkeypatch.setattr(FusedTier, "_compile", compile_when_ready)
    model = MODELS[name].compile(background=True)
    tier = model.dynamics.tier
    state = batch(model, (3,))
    expected = {a: reference(model, a, *state) for a in ALGORITHMS}
    for algorithm in ALGORITHMS:
        assert_close(ask(model, algorithm, *state), expected[algorithm])
        assert tier.routine(algorithm) is tier.dyads.routine(algorithm)
    ready.set()
    for algorithm in ALGORITHMS:
        deadline = time.monotonic() + PATIENCE
        while tier.routine(algorithm) is tier.dyads.routine(algorithm):
            assert time.monotonic() < deadline
            assert_close(ask(model, algorithm, *state), expected[algorithm])
            time.sleep(0.001)
        assert_close(ask(model, algorithm, *state), expected[algorithm])
        assert_close(ask(model, algorithm, *(part[0] for part in state)), expected[algorithm][0])


def test_compiling_leaves_the_model_it_came_from_alone():
    model = examples.crab().model()
    tier = model.dynamics.tier
    fused = model.compile()
    assert fused is not model
    assert model.dynamics.tier is tier
    assert (fused.joint_names, fused.locked) == (model.joint_names, model.locked)


@pytest.mark.parametrize(
    ("options", "pieces"),
    [
        ({"target": "abacus"}, ("target", "cpu", "'abacus'")),
        ({"dtype": "float16"}, ("dtype", "float64", "'float16'")),
        ({"dtype": "int32"}, ("dtype", "float64", "'int32'")),
    ],
    ids=["target", "half", "integers"],
)
def test_unknown_targets_and_dtypes_are_refused(options, pieces):
    with complains(StateError, *pieces):
        MODELS["crab"].compile(**options)


def test_models_for_a_gpu_are_refused_by_what_runs_on_the_cpu(monkeypatch):
    monkeypatch.setattr(dynamics, "CudaTier", lambda model, dtype: None)
    model, rest = MODELS["crab"].compile("cuda"), np.zeros(3)
    with complains(StateError, "simulate runs on the CPU", "compiled for 'cuda'"):
        simulate(model, rest, rest, 1.0)
    with complains(StateError, "step is not there on target 'cuda'", "that was compiled"):
        model.step(rest, rest, rest, 0.01)
    with complains(StateError, "step_derivatives is not there on target 'cuda'"):
        model.step_derivatives(rest, rest, rest, 0.01)
    with complains(StateError, "closed_form_matrices is not there on target 'cuda'"):
        model.dynamics.quantity("closed_form_matrices", rest, rest)
    with pytest.raises(TypeError, match=r"mass_matrix takes 1 arrays \(q\), got 2"):
        model.dynamics.quantity("mass_matrix", rest, rest)


def test_the_best_target_is_a_gpu_where_there_is_one(monkeypatch):
    def missing():
        raise StateError("no GPU")

    for cupy, target in ((missing, "cpu"), (lambda: np, "cuda")):
        monkeypatch.setattr(dynamics, "cupy", cupy)
        assert dynamics.best_target() == target


@pytest.mark.parametrize(("modules", "own"), [(13, True), (14, False)])
def test_up_to_twelve_velocities_all_matrices_have_code_of_their_own(modules, own):
    tier, name = FusedTier(examples.snake(modules).model(), False), "closed_form_matrices"
    assert (tier.routine(name) is not tier.dyads.routine(name)) == own
