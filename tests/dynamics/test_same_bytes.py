"""The same numbers give the same bytes, in whatever form they come.

All claims here are about operations of our own: compiled kernels, and elementwise arithmetic in one
order. Nothing goes through BLAS, whose order of additions depends on the machine.
"""

from __future__ import annotations

import numpy as np
import pytest

import modurob as mr
from modurob.compiler.driver import LARGE_RESULT
from modurob.spatial import so3

STATES = 19  # no multiple of any vector width
OFF = 1e-4  # relative error of a quaternion's norm that is normalized away
CALLS = (
    "inverse_dynamics",
    "forward_dynamics",
    "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
    "mass_matrix",
    "integrate",
)


def states(model: mr.Model, norms: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    q = np.stack([model.random_configuration(rng) for _ in range(STATES)])
    if norms == "off":
        q[:, 3:7] *= 1 + OFF * rng.standard_normal((STATES, 1))
    elif norms == "mixed":  # a row that must be normalized leaves its neighbors alone
        q[::3, 3:7] *= 1 + OFF
    return q, *rng.standard_normal((2, STATES, model.nv))


@pytest.fixture(scope="module", params=["dyads", "fused"])
def model(request) -> mr.Model:
    table = mr.examples.snake(3).model("physical", base="free")
    return table if request.param == "dyads" else table.compile()


def called(model: mr.Model, name: str, *state: object) -> bytes:
    count = {"mass_matrix": 1, "integrate": 2}.get(name, 3)
    found = getattr(model, name)(*state[:count])
    return b"".join(np.ascontiguousarray(each).tobytes() for each in np.atleast_1d(found))


@pytest.mark.parametrize("norms", ["unit", "off", "mixed"])
@pytest.mark.parametrize("name", CALLS)
def test_lists_arrays_views_and_rows_of_a_batch_give_the_same_bytes(model, name, norms):
    arrays = states(model, norms)
    for k in range(STATES):
        one = called(model, name, *(x[k] for x in arrays))
        assert called(model, name, *(x[k].tolist() for x in arrays)) == one
        assert called(model, name, *(np.repeat(x[k], 2)[::2] for x in arrays)) == one
        assert called(model, name, *(x[k : k + 1] for x in arrays)) == one
    whole = getattr(model, name)(*arrays[: {"mass_matrix": 1, "integrate": 2}.get(name, 3)])
    parts = whole if isinstance(whole, tuple) else (whole,)
    for k in range(STATES):
        row = b"".join(np.ascontiguousarray(part[k]).tobytes() for part in parts)
        assert row == called(model, name, *(x[k] for x in arrays))


@pytest.mark.parametrize("norms", ["unit", "off", "mixed"])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "mass_matrix"])
def test_prepared_callables_give_the_bytes_of_the_method(model, name, norms):
    arrays = states(model, norms)[: 1 if name == "mass_matrix" else 3]
    expected = getattr(model, name)(*arrays)
    assert model.prepare(name, STATES)(*arrays).tobytes() == expected.tobytes()
    one = model.prepare(name)
    for k in range(STATES):
        assert one(*(x[k] for x in arrays)).tobytes() == expected[k].tobytes()


def test_a_checked_configuration_is_kept_when_it_is_checked_again(model):
    for norms in ("unit", "off", "mixed"):
        q, _, _ = states(model, norms)
        once = model.check_configuration(q)
        assert model.check_configuration(once).tobytes() == once.tobytes()
        rows = b"".join(model.check_configuration(each).tobytes() for each in q)
        assert rows == once.tobytes()
        lists = b"".join(model.check_configuration(each.tolist()).tobytes() for each in q)
        assert lists == once.tobytes()


def test_quaternions_are_normalized_and_kept_as_told():
    rng = np.random.default_rng(6)
    q = rng.standard_normal((200, 4)) * 10.0 ** rng.integers(-3, 4, (200, 1))
    unit = so3.unit_quaternion(q)
    exact = q.astype(np.longdouble) / np.sqrt((q.astype(np.longdouble) ** 2).sum(-1))[:, None]
    np.testing.assert_allclose(unit, exact.astype(float), rtol=4e-16, atol=0)  # 2 ulp
    assert so3.is_unit(unit)
    assert not so3.is_unit(q)
    assert so3.unit_quaternion(unit).tobytes() == unit.tobytes()
    assert so3.squared_norm(np.full((1, 4), 1e200)) == np.inf  # without a warning


@pytest.mark.parametrize(("joints", "threads"), [(4, 1), (4, 2), (3, 1)])
def test_matrices_that_are_written_past_the_caches_have_the_same_bytes(joints, threads):
    model = mr.examples.snake(joints + 1).model()
    count = 5 + LARGE_RESULT // (8 * 3 * joints**2) * threads
    q, v, a = np.random.default_rng(6).standard_normal((3, count, joints))
    found = model.inverse_dynamics_derivatives(q, v, a, threads=threads)
    prepared = model.prepare("inverse_dynamics_derivatives", count)(q, v, a)
    for start in range(0, count, count // 3):
        rows = slice(start, start + count // 3)
        part = model.inverse_dynamics_derivatives(q[rows], v[rows], a[rows], threads=1)
        for one, other, expected in zip(found, prepared, part, strict=True):
            assert one[rows].tobytes() == expected.tobytes()
            assert other[rows].tobytes() == expected.tobytes()
