"""What may be handed in, what may not, and what is said about it."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

from modurob import StateError, UnknownNameError, examples
from oracles import complains
from oracles.rough_organisms import states

ROUNDING = 1e-12  # relative: one state alone or in a batch, with other instructions
HALF = 1e-5  # relative: inputs rounded to single precision, cond(M) of some hundreds
BAD = (np.nan, np.inf, -np.inf)
FIXED = examples.snake(4).with_parameters(viscous=0.2, coulomb=0.1).model()
FREE = examples.arm("bc").model(base="free")
MODELS = {
    "dyads, fixed": FIXED,
    "dyads, free": FREE,
    "fused, fixed": FIXED.compile(),
    "fused, free": FREE.compile(),
}
THIRD = {
    "inverse_dynamics": "a",
    "forward_dynamics": "tau",
    "inverse_dynamics_derivatives": "a",
    "forward_dynamics_derivatives": "tau",
}
TWO = ("coriolis_matrix", "closed_form", "momentum", "kinetic_energy", "energy")
ONE = ("mass_matrix", "gravity_torque", "potential_energy")
PREPARED = ("inverse_dynamics", "forward_dynamics", "mass_matrix")
SHAPES = ((), (1,), (5,), (2, 3))

every_model = pytest.mark.parametrize("name", MODELS)
every_prepared = pytest.mark.parametrize(
    ("name", "method"), list(itertools.product(MODELS, PREPARED))
)


def arguments(model, method, shape=(), seed=0):
    """Names and arrays of a method's arguments."""
    rng = np.random.default_rng(seed)
    q = np.reshape(
        [model.random_configuration(rng) for _ in np.ndindex(*shape)], (*shape, model.nq)
    )
    v, x = rng.standard_normal((2, *shape, model.nv))
    if method in ONE:
        return {"q": q}
    return {"q": q, "v": v} if method in TWO else {"q": q, "v": v, THIRD[method]: x}


def close(actual, expected, relative=ROUNDING):
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=relative * np.abs(expected).max())


# -- numbers that are none -------------------------------------------------------------------------


@every_model
@pytest.mark.parametrize("method", [*THIRD, *TWO, *ONE])
def test_what_is_not_finite_is_named_wherever_it_stands(name, method):
    model = MODELS[name]
    call = getattr(model, method)
    for shape in SHAPES:
        given = arguments(model, method, shape)
        for label, array in given.items():
            indices = list(np.ndindex(*array.shape))
            for k, index in enumerate(indices):
                spoiled = array.copy()
                spoiled[index] = BAD[k % 3]
                with complains(StateError, f"{label}{list(index)}", str(BAD[k % 3]), "finite"):
                    call(*{**given, label: spoiled}.values())


@every_model
@pytest.mark.parametrize("count", range(1, 10))
def test_one_bad_number_in_any_lane_is_found(name, count):
    model = MODELS[name]
    for method in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
        given = arguments(model, method, (count,))
        for label, row in itertools.product(given, range(count)):
            spoiled = given[label].copy()
            spoiled[row, -1] = np.nan
            with complains(StateError, f"{label}[{row}, {spoiled.shape[1] - 1}] is nan"):
                getattr(model, method)(*{**given, label: spoiled}.values())


@every_model
def test_one_bad_number_is_found_by_every_thread(name):
    model = MODELS[name]
    q, v, x = arguments(model, "inverse_dynamics", (64,)).values()
    for row in (0, 31, 32, 63):
        spoiled = v.copy()
        spoiled[row, 0] = np.inf
        with complains(StateError, f"v[{row}, 0] is inf"):
            model.inverse_dynamics(q, spoiled, x, threads=2)


@every_model
@pytest.mark.parametrize("bad", BAD)
def test_wrenches_must_be_finite(name, bad):
    model = MODELS[name]
    state = arguments(model, "inverse_dynamics").values()
    for position in range(6):
        wrench = np.ones(6)
        wrench[position] = bad
        for method in ("inverse_dynamics", "forward_dynamics"):
            with complains(
                StateError, "external wrench on 'm1'", "finite", f"{bad} at [{position}]"
            ):
                getattr(model, method)(*state, {"m1": wrench})


@every_model
def test_the_model_works_on_after_a_refusal(name):
    model = MODELS[name]
    state = list(arguments(model, "inverse_dynamics").values())
    before = model.inverse_dynamics(*state)
    with pytest.raises(StateError):
        model.inverse_dynamics(np.full(model.nq, np.nan), *state[1:])
    np.testing.assert_array_equal(model.inverse_dynamics(*state), before)


# -- sizes -----------------------------------------------------------------------------------------


@every_model
@pytest.mark.parametrize("method", [*THIRD, *TWO, *ONE])
def test_wrong_sizes_are_named_with_the_right_one(name, method):
    model = MODELS[name]
    given = arguments(model, method)
    for label, array in given.items():
        what = f"nq = {model.nq}" if label == "q" else f"nv = {model.nv}"
        for wrong in (array[:-1], np.append(array, 0.0), np.zeros(0), np.zeros((3, 1)), 1.0):
            shape = str(np.shape(wrong))
            with complains(StateError, f"{label} has shape {shape}", what):
                getattr(model, method)(*{**given, label: wrong}.values())


@every_model
@pytest.mark.parametrize("method", [*THIRD, *TWO])
def test_batch_shapes_that_do_not_fit_are_named(name, method):
    model = MODELS[name]
    given = arguments(model, method, (3,))
    for label, array in given.items():
        with complains(StateError, "batch shape", "(3,)", "(2,)"):
            getattr(model, method)(*{**given, label: array[:2]}.values())


@every_model
@pytest.mark.parametrize(
    ("external", "error", "pieces"),
    [
        ({"hand": np.ones(6)}, UnknownNameError, ("no body 'hand'", "bodies are")),
        ({99: np.ones(6)}, UnknownNameError, ("no body 99",)),
        ({"m1": np.ones(5)}, StateError, ("external wrench on 'm1'", "six", "(5,)")),
        ({"m1": 1.0}, StateError, ("external wrench on 'm1'", "six", "()")),
        ({"m1": np.ones((6, 1))}, StateError, ("external wrench on 'm1'", "six", "(6, 1)")),
        ({"m1": "push"}, StateError, ("external wrench on 'm1'", "six")),
        ({"m1": np.ones((2, 6)), "m0": np.ones((3, 6))}, StateError, ("(2,)", "(3,)")),
    ],
    ids=["name", "number", "five", "scalar", "column", "word", "batches"],
)
def test_impossible_wrenches_are_refused(name, external, error, pieces):
    model = MODELS[name]
    state = arguments(model, "inverse_dynamics").values()
    for method in ("inverse_dynamics", "forward_dynamics"):
        with complains(error, *pieces):
            getattr(model, method)(*state, external)


def test_wrenches_and_states_must_fit_together():
    state = arguments(FIXED, "inverse_dynamics", (3,)).values()
    with complains(StateError, "q, v, a, external wrenches have batch shapes", "(3,)", "(2,)"):
        FIXED.inverse_dynamics(*state, {"m1": np.ones((2, 6))})
    q, v, a = arguments(FIXED, "inverse_dynamics", (3,)).values()
    with complains(StateError, "q, v, a have batch shapes (3,), (2,), (3,)"):
        FIXED.inverse_dynamics(q, v[:2], a)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "many", None, True])
def test_threads_are_counted(threads):
    state = arguments(FIXED, "inverse_dynamics", (3,)).values()
    with complains(StateError, "threads must be 'auto' or a number", repr(threads)):
        FIXED.inverse_dynamics(*state, threads=threads)


# -- dtypes and layouts ----------------------------------------------------------------------------


def spaced(x):
    wide = np.full((*x.shape[:-1], 2 * x.shape[-1]), np.nan)
    wide[..., ::2] = x
    return wide[..., ::2]


def read_only(x):
    copy = x.copy()
    copy.setflags(write=False)
    return copy


def unaligned(x):
    raw = np.zeros(x.nbytes + 1, dtype=np.uint8)
    result = raw[1:].view(np.float64).reshape(x.shape)
    result[...] = x
    return result


class Labelled(np.ndarray):
    """An array of a class of its own."""


LAYOUTS = {
    "read-only": read_only,
    "every second": spaced,
    "backwards": lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
    "columns first": np.asfortranarray,
    "part of a wider array": lambda x: np.concatenate([x, x], axis=-1)[..., : x.shape[-1]],
    "unaligned": unaligned,
    "other byte order": lambda x: x.astype(">f8"),
    "extended": lambda x: x.astype(np.longdouble),
    "objects": lambda x: x.astype(object),
    "lists": lambda x: x.tolist(),
    "tuples": lambda x: tuple(x.tolist()),
    "a class of its own": lambda x: x.view(Labelled),
}


@every_model
@pytest.mark.parametrize("method", [*THIRD, *ONE])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_numbers(name, method, layout):
    model = MODELS[name]
    for shape in ((), (5,), (2, 3)):
        given = arguments(model, method, shape)
        expected = getattr(model, method)(*given.values())
        found = getattr(model, method)(*(LAYOUTS[layout](array) for array in given.values()))
        expected, found = (x if isinstance(x, tuple) else (x,) for x in (expected, found))
        for one, other in zip(found, expected, strict=True):
            assert not isinstance(one, Labelled)
            close(one, other)


@every_model
@pytest.mark.parametrize("method", PREPARED)
def test_single_precision_and_integers_are_taken(name, method):
    model = MODELS[name]
    given = arguments(model, method)
    expected = getattr(model, method)(*given.values())
    rough = [array.astype(np.float32) for array in given.values()]
    close(getattr(model, method)(*rough), expected, HALF)
    whole = {label: np.arange(array.size) % 3 for label, array in given.items()}
    if model.free_base:
        whole["q"][:7] = [1, 2, 3, 0, 0, 0, 1]
    floats = [array.astype(float) for array in whole.values()]
    close(getattr(model, method)(*whole.values()), getattr(model, method)(*floats))


@every_model
@pytest.mark.parametrize("method", PREPARED)
@pytest.mark.parametrize(
    "wrong",
    ["0.1", ["a", "b"], {"q": 1}, np.array(["x"] * 3), [[1.0], [1.0, 2.0]], object()],
    ids=["word", "words", "mapping", "array of words", "ragged", "object"],
)
def test_what_holds_no_numbers_is_refused(name, method, wrong):
    model = MODELS[name]
    given = arguments(model, method)
    for label in given:
        with complains(StateError, label):
            getattr(model, method)(*{**given, label: wrong}.values())


# In a process of its own: whoever hands a null pointer to compiled code kills the interpreter.
NOTHING = """
import itertools
import numpy as np
from modurob import StateError, examples
for base, fused, method in itertools.product(("fixed", "free"), (False, True), METHODS):
    model = examples.snake(3).model(base=base)
    model = model.compile() if fused else model
    state = [model.neutral(), np.zeros(model.nv), np.zeros(model.nv)]
    state = state[:1] if method == "mass_matrix" else state
    calls = [getattr(model, method)]
    calls += [model.prepare(method)] if method in PREPARED else []
    for call, missing in itertools.product(calls, range(len(state))):
        given = [None if k == missing else part for k, part in enumerate(state)]
        try:
            call(*given)
        except StateError:
            pass
        else:
            raise AssertionError(f"{method} takes None for argument {missing}")
"""


def test_none_is_refused_and_never_reaches_compiled_code():
    head = f"METHODS, PREPARED = {(*THIRD, 'mass_matrix')!r}, {PREPARED!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", head + NOTHING], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr}"


@every_model
@pytest.mark.parametrize("method", PREPARED)
def test_complex_numbers_are_refused_and_not_cut(name, method):
    model = MODELS[name]
    given = arguments(model, method)
    for label, array in given.items():
        with complains(StateError, label):
            getattr(model, method)(*{**given, label: array + 1j}.values())


@every_model
def test_inputs_are_left_alone_and_results_are_new(name):
    model = MODELS[name]
    given = arguments(model, "inverse_dynamics", (4,))
    copies = {label: array.copy() for label, array in given.items()}
    first = model.inverse_dynamics(*given.values())
    kept = first.copy()
    second = model.inverse_dynamics(*(2 * given[k] if k == "v" else given[k] for k in given))
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)
    for label, array in given.items():
        np.testing.assert_array_equal(array, copies[label])
    one, two = (model.inverse_dynamics(*(x[k] for x in given.values())) for k in (0, 1))
    assert not np.shares_memory(one, two)


# -- quaternions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name].free_base])
@pytest.mark.parametrize("method", [*PREPARED, "inverse_dynamics_derivatives"])
def test_rounded_quaternions_are_normalised_and_others_refused(name, method):
    model = MODELS[name]
    for shape in ((), (4,)):
        given = arguments(model, method, shape)
        expected = getattr(model, method)(*given.values())
        q = given["q"].copy()
        q[..., 3:7] *= 1 + 1e-4
        found = getattr(model, method)(*{**given, "q": q}.values())
        for one, other in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
            close(np.asarray(one), np.asarray(other))
        for factor in (0.0, 0.9, 2.0):
            q[..., 3:7] = factor * given["q"][..., 3:7]
            with complains(StateError, "unit quaternion", "norm"):
                getattr(model, method)(*{**given, "q": q}.values())


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name].free_base])
def test_a_quaternion_and_its_negative_are_one_rotation(name):
    model = MODELS[name]
    given = arguments(model, "inverse_dynamics")
    expected = model.inverse_dynamics(*given.values())
    given["q"][3:7] *= -1
    close(model.inverse_dynamics(*given.values()), expected)


# -- singular --------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("tier", ["dyads", "fused"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_point_mass_on_its_axis_is_named(base, tier, shape):
    model = examples.double_pendulum().model(base=base)
    model = model.compile() if tier == "fused" else model
    given = arguments(model, "forward_dynamics", shape)
    with complains(StateError, "singular", "m2.hinge", "axis", "inertia", "hinges='physical'"):
        model.forward_dynamics(*given.values())
    assert np.isfinite(model.inverse_dynamics(*given.values())).all()
    assert np.isfinite(model.mass_matrix(given["q"])).all()


def test_only_the_empty_joints_are_named():
    organism = examples.snake(4).with_parameters("m3", inertia=0.0)
    model = organism.model()
    rest = np.zeros(model.nv)
    with pytest.raises(StateError) as caught:
        model.forward_dynamics(rest, rest, rest)
    assert "m3.hinge" in str(caught.value)
    assert "m1.hinge" not in str(caught.value)
    assert "m2.hinge" not in str(caught.value)


@every_model
@pytest.mark.parametrize("method", ["inverse_dynamics", "forward_dynamics"])
def test_numbers_too_large_are_not_called_singular(name, method):
    model = MODELS[name]
    given = arguments(model, method)
    given["v"] = np.full(model.nv, 1e200)  # its square is beyond double precision
    with pytest.raises(StateError) as caught:
        getattr(model, method)(*given.values())
    assert "singular" not in str(caught.value)


# -- prepared callables ----------------------------------------------------------------------------


@every_prepared
def test_prepared_callables_give_the_method_s_numbers(name, method):
    model = MODELS[name]
    call = model.prepare(method)
    for seed in range(20):
        given = arguments(model, method, seed=seed).values()
        close(call(*given), getattr(model, method)(*given))


@every_prepared
def test_prepared_callables_write_into_one_array(name, method):
    model = MODELS[name]
    call = model.prepare(method)
    one, two = (list(arguments(model, method, seed=seed).values()) for seed in (0, 1))
    first = call(*one)
    kept = first.copy()
    assert call(*two) is first
    assert not np.array_equal(first, kept)
    assert call(*one) is first
    np.testing.assert_array_equal(first, kept)
    # and the method's results are not that array
    assert getattr(model, method)(*one) is not first


@every_prepared
@pytest.mark.parametrize("layout", LAYOUTS)
def test_prepared_callables_take_the_long_way_for_anything_else(name, method, layout):
    model = MODELS[name]
    call = model.prepare(method)
    for shape in ((), (3,), (2, 2)):
        given = arguments(model, method, shape)
        expected = getattr(model, method)(*given.values())
        close(call(*(LAYOUTS[layout](array) for array in given.values())), expected)


@every_prepared
def test_prepared_callables_refuse_what_the_method_refuses(name, method):
    model = MODELS[name]
    call = model.prepare(method)
    given = arguments(model, method)
    for label, array in given.items():
        for wrong in (array[:-1], np.append(array, 0.0), "word"):
            with complains(StateError, label):
                call(*{**given, label: wrong}.values())
        for k, bad in itertools.product(range(array.size), BAD):
            spoiled = array.copy()
            spoiled[k] = bad
            with complains(StateError, f"{label}[{k}]", "finite"):
                call(*{**given, label: spoiled}.values())
    close(call(*given.values()), getattr(model, method)(*given.values()))


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name].free_base])
@pytest.mark.parametrize("method", PREPARED)
def test_prepared_callables_normalise_or_refuse_quaternions_as_the_method_does(name, method):
    model = MODELS[name]
    call = model.prepare(method)
    given = arguments(model, method)
    expected = getattr(model, method)(*given.values())
    rounded, wrong = given["q"].copy(), given["q"].copy()
    rounded[3:7] *= 1 + 1e-4
    wrong[3:7] *= 2
    close(call(*{**given, "q": rounded}.values()), expected)
    with complains(StateError, "unit quaternion"):
        call(*{**given, "q": wrong}.values())


@every_prepared
def test_prepared_callables_need_all_arguments_and_no_more(name, method):
    model = MODELS[name]
    call = model.prepare(method)
    given = list(arguments(model, method).values())
    with pytest.raises(TypeError):
        call(*given, np.empty_like(call(*given)))
    with pytest.raises(TypeError):
        call(*given[:-1])
    with pytest.raises(TypeError):
        call()


def test_only_what_is_compiled_can_be_prepared():
    with complains(UnknownNameError, "'closed_form'", "inverse_dynamics", "mass_matrix"):
        FIXED.prepare("closed_form")


def test_prepared_callables_name_singular_joints():
    model = examples.double_pendulum().model()
    call, rest = model.prepare("forward_dynamics"), np.zeros(model.nv)
    with complains(StateError, "singular", "m2.hinge"):
        call(rest, rest, rest)


def test_states_of_the_oracle_cover_rest_and_quarter_turns():
    q, v, _ = states(FIXED, np.random.default_rng(0))
    assert np.abs(q[1]).max() < 1e-8
    assert np.abs(v[1]).max() < 1e-2
    np.testing.assert_allclose(np.sin(2 * q[2]), 0, atol=1e-14)
