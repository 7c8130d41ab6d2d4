"""The table that all frameworks share: Jacobians against differences, and errors."""

from __future__ import annotations

import itertools
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import modurob as mr
from frameworks import cases
from modurob.interop import casadi, jax, torch
from modurob.interop.differentiable import (
    REVERSED,
    VERSIONS,
    DifferentiableFunction,
    demand_rows,
    framework,
)

ROUNDING = 1e-12  # relative: a sum in another order


@pytest.mark.parametrize("base", cases.BASES)
@pytest.mark.parametrize("name", cases.NAMES)
def test_jacobians_by_all_entries_equal_differences(name, base):
    bound = DifferentiableFunction(cases.model(base), name, cases.options(name, base))
    arrays = cases.states(name, base)
    jacobians = bound.jacobians(*arrays)
    for k, array in enumerate(arrays):
        for column in range(array.shape[1]):
            found = cases.difference(bound.value, arrays, k, column)
            for row, expected in zip(jacobians, found, strict=True):
                scale = 1 + np.abs(row[k]).max()
                off = np.abs(row[k][..., column] - expected).max()
                assert off < cases.DIFFERENCES * scale, (k, column)


@pytest.mark.parametrize("base", cases.BASES)
@pytest.mark.parametrize("name", cases.NAMES)
def test_states_that_are_refused_have_results_of_the_same_shapes(name, base):
    bound = DifferentiableFunction(cases.model(base), name, cases.options(name, base))
    arrays = cases.states(name, base)
    refused = [np.full(x.shape, np.nan) for x in arrays]
    for whole, compute in ((bound.value, bound.value_or_nan),
                           (lambda *x: [b for row in bound.jacobians(*x) for b in row],
                            bound.jacobians_or_nan)):  # fmt: skip
        found = compute(*refused)
        assert [x.shape for x in found] == [x.shape for x in whole(*arrays)]
        assert all(np.isnan(x).all() for x in found)


@pytest.mark.parametrize("base", cases.BASES)
@pytest.mark.parametrize("name", cases.NAMES)
def test_states_of_any_batch_have_the_jacobians_of_rows(name, base):
    bound = DifferentiableFunction(cases.model(base), name, cases.options(name, base))
    arrays = cases.states(name, base)
    rows = [block for row in bound.jacobians(*arrays) for block in row]
    for batch, of in (((1, 2), slice(None)), ((), 1)):
        given = [x[of].reshape(*batch, x.shape[-1]) for x in arrays]
        found = [block for row in bound.jacobians(*given) for block in row]
        for whole, block in zip(rows, found, strict=True):
            expected = whole[of].reshape(*batch, *whole.shape[1:])
            assert block.shape == expected.shape
            np.testing.assert_allclose(block, expected, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("base", cases.BASES)
def test_pullback_is_the_product_of_weights_and_jacobians(base):
    bound = DifferentiableFunction(cases.model(base), "step", {"dt": cases.DT})
    arrays = cases.states("step", base)
    rng = np.random.default_rng(1)
    weights = [rng.standard_normal(each.shape) for each in bound.value(*arrays)]
    for k, found in enumerate(bound.pullback(arrays, weights)):
        J = [row[k] for row in bound.jacobians(*arrays)]
        expected = sum(np.einsum("ni,nij->nj", w, each) for w, each in zip(weights, J, strict=True))
        np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("base", cases.BASES)
@pytest.mark.parametrize("name", REVERSED)
def test_gradients_of_compiled_models_are_those_of_the_table(name, base, monkeypatch):
    arrays = cases.states(name, base)
    weights = [np.random.default_rng(2).standard_normal(arrays[1].shape)]
    model = cases.model(base)
    expected = DifferentiableFunction(model, name, {}).pullback(arrays, weights)
    compiled = DifferentiableFunction(model.compile(), name, {})
    monkeypatch.setattr(compiled, "jacobians", None)  # reverse differentiation needs none
    for a, b in zip(expected, compiled.pullback(arrays, weights), strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-11 * (1 + np.abs(a).max()))


@pytest.mark.parametrize("base", cases.BASES)
def test_no_states_have_no_gradients(base):
    model = cases.model(base)
    arrays = [np.zeros((2, 0, n)) for n in (model.nq, model.nv, model.nv)]
    for each in (model, model.compile()):
        found = DifferentiableFunction(each, "inverse_dynamics", {}).pullback(arrays, arrays[1:2])
        assert [x.shape for x in found] == [x.shape for x in arrays]


def test_a_quaternion_of_zeros_is_refused():
    center = DifferentiableFunction(cases.model("free"), "center_of_mass", {})
    with pytest.raises(mr.StateError, match="zeros or NaN are no rotation"):
        center.value(np.zeros(cases.model("free").nq))


@pytest.mark.parametrize(("entry", "wrong"), [(3, np.nan), (-1, 1e200)])  # refused, overflows
def test_states_that_are_refused_leave_the_others_of_a_batch(entry, wrong):
    bound = DifferentiableFunction(cases.model("free"), "forward_kinematics", {"body": 1})
    (q,) = cases.states("forward_kinematics", "free")
    q = np.stack([q, q + 0.1, q])
    expected = [bound.value(q)[0], bound.jacobians(q)[0][0]]
    q[1, 0, entry] = wrong
    with pytest.raises(mr.StateError):
        bound.value(q)
    for found, whole in zip(
        (bound.value_or_nan(q)[0], bound.jacobians_or_nan(q)[0]), expected, strict=True
    ):
        whole[1, 0] = np.nan
        np.testing.assert_array_equal(found, whole)


def test_states_out_of_range_are_refused_one_by_one_whatever_the_inertia():
    """Finite ones; a body whose forward dynamics is singular has inverse dynamics all the same."""
    model = mr.examples.crane().model()
    bound = DifferentiableFunction(model, "inverse_dynamics", {})
    q, v, a = np.random.default_rng(4).uniform(-1, 1, (3, 4, model.nv))
    (expected,) = bound.value(q, v, a)
    q[2, 0] = 1e16
    expected[2] = np.nan
    (found,) = bound.value_or_nan(q, v, a)
    np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("name", ["forward_dynamics", "step"])
def test_accelerations_of_other_states_are_kept(name):
    bound = DifferentiableFunction(cases.model("fixed"), name, cases.options(name, "fixed"))
    arrays = [np.concatenate([x, x + 0.1]) for x in cases.states(name, "fixed")]
    expected = [*bound.value(*arrays), *(b for row in bound.jacobians(*arrays) for b in row)]
    arrays[1][2, 0] = np.inf
    for found, whole in zip(
        [*bound.value_or_nan(*arrays), *bound.jacobians_or_nan(*arrays)], expected, strict=True
    ):
        whole[2] = np.nan
        np.testing.assert_allclose(found, whole, rtol=ROUNDING, atol=ROUNDING)


def test_a_body_without_forward_dynamics_gives_no_nan():
    model = mr.examples.crane().model()
    rows = np.zeros((3, 4, model.nv))
    for name, options in (("forward_dynamics", {}), ("step", {"dt": 0.1})):
        bound = DifferentiableFunction(model, name, options)
        for compute in (bound.value_or_nan, bound.jacobians_or_nan):
            with pytest.raises(mr.StateError, match="forward dynamics is singular"):
                compute(*rows)


def test_states_are_refused_by_any_of_their_arrays():
    """Also of a body whose forward dynamics is singular, where that is not asked for."""
    for model in (cases.model("free"), mr.examples.crane().model()):
        bound, rng = DifferentiableFunction(model, "inverse_dynamics", {}), np.random.default_rng(3)
        q = np.array([model.random_configuration(rng) for _ in range(4)])
        v, a = rng.standard_normal((2, 4, model.nv))
        expected = [*bound.value(q, v, a), *bound.jacobians(q, v, a)[0]]
        v[1, 0], a[2, -1] = np.nan, np.inf
        found = [*bound.value_or_nan(q, v, a), *bound.jacobians_or_nan(q, v, a)]
        for one, whole in zip(found, expected, strict=True):
            whole[1:3] = np.nan
            np.testing.assert_allclose(one, whole, rtol=ROUNDING, atol=ROUNDING)


def test_gradients_of_compiled_models_name_a_number_that_is_not_finite():
    arrays = cases.states("inverse_dynamics", "fixed")
    bound = DifferentiableFunction(cases.model("fixed").compile(), "inverse_dynamics", {})
    arrays[1][1, 0] = np.nan
    with pytest.raises(mr.StateError, match=r"v\[1, 0\] is nan"):
        bound.pullback(arrays, [np.ones_like(arrays[1])])


def test_the_quaternion_of_a_step_has_no_jumps():
    model = cases.model("free")
    step = DifferentiableFunction(model, "step", {"dt": 1e-3})
    q, v, tau = (x[0] for x in cases.states("step", "free"))
    for w in (-0.5, -1e-9, 1e-9, 0.5):
        q[3:7] = 0.6 * np.sqrt(1 - w * w), 0.8 * np.sqrt(1 - w * w), 0.0, w
        assert np.abs(step.value(q, v, tau)[0][3:7] - q[3:7]).max() < 0.01
    for signs in itertools.product((-1e-9, 1e-9), repeat=3):  # half a turn, passed in any direction
        q[3:7] = 1.0, *signs
        assert np.abs(step.value(q, v, tau)[0][3:7] - q[3:7]).max() < 0.01


def test_a_framework_that_is_missing_is_named_with_its_extra(monkeypatch):
    for name, module in (("torch", torch), ("jax", jax), ("casadi", casadi)):
        monkeypatch.setitem(sys.modules, name, None)  # makes its import fail
        with pytest.raises(mr.StateError, match=rf"pip install 'modurob\[{name}\]'"):
            module.function(cases.model("fixed"), "inverse_dynamics")


def test_known_versions_are_those_of_the_extras():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    for name, (least, beyond, _) in VERSIONS.items():
        bounds = (".".join(map(str, each)) for each in (least, beyond))
        assert extras[name] == ["{}>={},<{}".format(name, *bounds)]


@pytest.mark.parametrize("version", ["0.0.1", "99.0", "nightly"])
@pytest.mark.parametrize("name", VERSIONS)
def test_an_unknown_version_is_refused(name, version, monkeypatch):
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(__version__=version))
    with pytest.raises(mr.StateError, match=f"found {version}: pip install"):
        framework(name)


@pytest.mark.parametrize("name", VERSIONS)
def test_the_oldest_known_version_is_taken_and_the_first_unknown_one_is_not(name, monkeypatch):
    least, beyond, _ = VERSIONS[name]
    for version, taken in ((least, True), (beyond, False)):
        module = SimpleNamespace(__version__=".".join(map(str, version)))
        monkeypatch.setitem(sys.modules, name, module)
        if taken:
            assert framework(name) is module
        else:
            with pytest.raises(mr.StateError, match="to below"):
                framework(name)


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("flight", {}, "no function 'flight': choose from inverse_dynamics"),
        ("step", {}, "step needs dt"),
        ("step", {"dt": 0.0}, "dt"),
        ("step", {"dt": 0.01, "ground": 1}, "step takes dt, got 'ground': .* no derivatives"),
        ("inverse_dynamics", {"external": {}}, "takes no options, got 'external'"),
        ("forward_kinematics", {"body": "m99"}, "no body 'm99'"),
    ],
)
def test_options_without_derivatives_are_refused(name, options, text):
    with pytest.raises(mr.ModurobError, match=text):
        DifferentiableFunction(cases.model("fixed"), name, options)


@pytest.mark.parametrize(
    ("name", "options"), [("inverse_dynamics", {}), ("forward_kinematics", {"body": "m0"})]
)
def test_a_model_is_demanded(name, options):
    with pytest.raises(mr.StateError, match=f"{name}.* takes a model such as"):
        DifferentiableFunction(mr.examples.crab(), name, options)  # pyright: ignore


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ([np.zeros(3)], "takes 2 arrays, q, v, got 1"),
        ([np.zeros(3), np.zeros(3, np.float32)], "q float64, v float32"),
        ([np.zeros(3, int), np.zeros(3, int)], "got q int64"),
        ([np.zeros(3), np.zeros(4)], r"v of momentum has shape \(4,\), expected \(..., 3\)"),
        ([np.zeros((2, 3)), np.zeros((5, 3))], "do not fit together"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays, text):
    with pytest.raises(mr.StateError, match=text):
        demand_rows("momentum", ("q", "v"), (3, 3), arrays)


def test_rows_have_one_type_and_the_batch_shape_of_all():
    inputs, sizes = ("q", "v"), (3, 2)
    given = [np.zeros((2, 1, 3)), np.zeros((5, 2))]
    assert demand_rows("momentum", inputs, sizes, given) == ("float64", (2, 5))
    given = [np.zeros((4, 3), np.float32), np.zeros((4, 2), np.float32)]
    assert demand_rows("momentum", inputs, sizes, given) == ("float32", (4,))
    assert demand_rows("momentum", inputs, sizes, [np.zeros(3), np.zeros(2)]) == ("float64", ())
