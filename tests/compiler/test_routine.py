"""Memory and threads of compiled routines."""

import itertools
import os
from types import SimpleNamespace

import numpy as np
import pytest

from modurob import StateError, examples
from modurob.compiler import jit, pool, routine
from modurob.compiler.fused import workspace_vectors
from modurob.compiler.jit import compile_ir, host
from modurob.compiler.layout import point_places
from modurob.compiler.routine import aligned, memory_blocks, thread_count
from modurob.compiler.tiers import DyadTier, FusedTier
from modurob.equations.contact import GROUNDED_DYNAMICS
from modurob.equations.quantities import QUANTITIES
from modurob.model.reference import reference


@pytest.mark.parametrize(
    ("threads", "joint_states", "expected"),
    [("auto", 0, 1), ("auto", 39_999, 1), ("auto", 40_000, 2), ("auto", 100_000, 5),
     ("auto", 10**9, 8), (1, 10**9, 1), (3, 0, 3), (8, 0, 8), (100, 0, 8), (np.int64(2), 0, 2)],
)  # fmt: skip
def test_threads_are_as_many_as_are_asked_for_or_worth_it(
    monkeypatch, threads, joint_states, expected
):
    """A thread is worth it for 20000 states of a joint; there are no more than cores."""
    monkeypatch.setattr(routine, "cores", lambda: 8)
    assert thread_count(threads, joint_states) == expected


@pytest.mark.parametrize("threads", [0, -1, 1.0, True, "all", None])
def test_other_numbers_of_threads_are_refused(threads):
    with pytest.raises(StateError, match="threads must be 'auto' or a number from 1 up"):
        thread_count(threads, 10**9)


def test_cores_are_those_the_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert pool.cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS and Windows
    assert pool.cores() == 64
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert pool.cores() == 1


@pytest.mark.parametrize(
    ("triple", "pauses", "gives_way"),
    [("x86_64-unknown-linux-gnu", True, "sched_yield"), ("i686-pc-windows", True, "SwitchToThread"),
     ("aarch64-apple-darwin", False, "sched_yield"), ("arm64-windows", False, "SwitchToThread")],
)  # fmt: skip
def test_threads_wait_as_their_machine_does(monkeypatch, triple, pauses, gives_way):
    monkeypatch.setattr(pool, "host", lambda: SimpleNamespace(triple=triple))
    pause, yields = pool._waiting()
    assert (bool(pause), yields) == (pauses, gives_way)
    assert f"@{gives_way}()" in pool._ir()


def test_a_batch_is_split_into_shares_for_threads_with_memory_of_their_own(monkeypatch):
    helpers, width, seen = pool.pool(), host().width, []
    fields = [name for name, *_ in pool.Batch._fields_]

    def lead(address):
        batch = pool.Batch.from_address(address)
        seen.append({name: getattr(batch, name) for name in fields} | {"at": address})

    monkeypatch.setattr(helpers, "_lead", lead)
    spaces = np.zeros((3, 128), dtype=np.uint8)
    for count in (1, 1000, 12_345):
        helpers.run(7, 8, count, spaces)
        found = seen.pop()
        assert (found["run"], found["arguments"], found["count"], found["next"]) == (7, 8, count, 0)
        assert (found["workspaces"], found["workspace_size"]) == (spaces.ctypes.data, 128)
        assert found["free_slots"] == 2  # beside the leader
        share = found["share"]  # whole vectors, about sixteen for each thread
        assert share % width == 0
        assert share * 16 * 3 >= count > (share - width) * 16 * 3
        assert not helpers._leading.locked()
    with helpers._leading:  # another thread leads
        helpers.run(7, 8, 5, spaces)
        assert helpers._leading.locked()
    shared, alone = pool.ctypes.addressof(helpers._batch), seen.pop()
    assert alone["at"] != shared == found["at"]
    assert alone["inside"] == alone["open"] == 0


def test_as_many_helpers_are_woken_as_there_are_threads_beside_the_leader(monkeypatch):
    """One that is awake has a lock that is open already."""

    class Lock:
        def __init__(self, asleep):
            self.asleep, self.released = asleep, 0

        def locked(self):
            return self.asleep

        def release(self):
            assert self.asleep
            self.released += 1

    helpers, locks = pool.pool(), [Lock(asleep) for asleep in (True, False, True, True)]
    monkeypatch.setattr(helpers, "_lead", lambda batch: None)
    monkeypatch.setattr(helpers, "_wake_locks", locks)
    helpers.run(7, 8, 100, np.zeros((4, 128), dtype=np.uint8))
    assert [lock.released for lock in locks] == [1, 0, 1, 0]
    with helpers._leading:  # another thread leads: its helpers are busy
        helpers.run(7, 8, 100, np.zeros((4, 128), dtype=np.uint8))
    assert [lock.released for lock in locks] == [1, 0, 1, 0]


@pytest.mark.parametrize("size", [1, 64, 1000])
def test_memory_for_vectors_is_aligned_and_empty(size):
    found = aligned(size)
    assert found.ctypes.data % 64 == 0
    assert found.shape == (size,)
    assert found.flags.writeable
    assert not found.any()


@pytest.mark.parametrize("moves", [True, False])
def test_points_of_a_compiled_model_are_visited_by_its_own_code_if_all_joints_move(
    monkeypatch, moves
):
    """Where one moves nothing there is no such code: the table's raises the error."""
    code = compile_ir("define void @run() {\nentry:\n  ret void\n}\n") if moves else None
    asked, quantity = [], GROUNDED_DYNAMICS["level", False]
    monkeypatch.setattr(FusedTier, "_compile", lambda tier, *given: asked.append(given) or code)
    tier = FusedTier(examples.snake(3).model("physical", "free"), background=True)
    tier.dyads = SimpleNamespace(with_points=lambda *given, **tables: (given, [*tables]))
    links = np.zeros(5, dtype=np.int64)
    for settles in (True, False):
        found = tier.with_points(quantity, settles, True, point_links=links)
        if moves:
            assert found._kept[0] is code
            assert found._width == host().width
            assert (found._fixed.points, found._fixed.settles) == (5, settles)
        else:
            assert found == ((quantity, settles, True), ["point_links"])
    assert asked == [(quantity, True, False)]  # once, with wrenches, for vectors


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_code_with_points_has_a_state_for_each_link_and_the_base(base):
    model = examples.snake(3).model("physical", base)
    quantity = GROUNDED_DYNAMICS["level", False]
    of_a_link = 1 + max(k for k in point_places(quantity, model.free_base) if k is not None)
    assert workspace_vectors(quantity, model) == of_a_link * len(model.mass)
    assert workspace_vectors(QUANTITIES["mass_matrix"], model) == 0


def test_the_memory_of_points_has_a_block_for_each_vector_of_states():
    width = host().width
    for states, blocks in ((1, 1), (width, 1), (width + 1, 2), (5 * width, 5)):
        found = memory_blocks(states, 3, 2)
        assert found.shape == (blocks, 3, 2, width)
        assert found.dtype == float
        assert found.ctypes.data % 64 == 0
        assert not found.any()


# -- what compiled code takes from Python ----------------------------------------------------------


class Other(np.ndarray):
    """Not a plain array."""


def gaps(x):
    """The same numbers with room between the rows, or between numbers."""
    return np.repeat(x, 2, axis=-1)[..., ::2]


def wide(x):
    return np.concatenate([x, x], axis=-1)[..., : x.shape[-1]]


UNFIT = {
    "a list": lambda x: x.tolist(),
    "a subclass": lambda x: x.view(Other),
    "single precision": lambda x: x.astype(np.float32),
    "integers": lambda x: x.astype(np.int64),
    "other bytes": lambda x: x.astype(">f8"),
    "one axis more": lambda x: x[None],
    "too long": lambda x: np.concatenate([x, x[..., :1]], axis=-1),
    "too short": lambda x: np.ascontiguousarray(x[..., :-1]),
    "gaps": gaps,
    "backwards": lambda x: x[..., ::-1],
    "nothing": lambda x: None,
}
UNFIT_ROWS = {
    "one axis less": lambda x: x[0].copy(),
    "a row more": lambda x: np.concatenate([x, x[:1]]),
    "a row less": lambda x: x[:-1].copy(),
    "columns": np.asfortranarray,
    "rows apart": wide,
    "rows backwards": lambda x: x[::-1],
}
ROWS = 3


@pytest.fixture(scope="module", params=["fixed", "free"])
def bound(request):
    """A routine, and the inputs of some states."""
    model = examples.crab().model("physical", request.param)
    rng = np.random.default_rng(2)
    q = np.stack([model.random_configuration(rng) for _ in range(ROWS)])
    v, a = rng.standard_normal((2, ROWS, model.nv))
    return DyadTier(model).routine("inverse_dynamics"), (q, v, a)


def test_arrays_that_do_not_fit_are_left_to_the_slow_path(bound):
    routine, rows = bound
    expected = routine.batch(*rows, None, 1)
    single, several = routine.single, routine.several(ROWS)
    for call, arrays, right, unfit in (
        (single, [x[0].copy() for x in rows], expected[0], UNFIT),
        (several, [x.copy() for x in rows], expected, UNFIT | UNFIT_ROWS),
    ):
        out = np.empty_like(right)
        arrays = [*arrays, out]
        assert call(*arrays) is out
        np.testing.assert_array_equal(out, right)
        for name, change in unfit.items():
            for k, array in enumerate(arrays):
                given = [*arrays[:k], change(array), *arrays[k + 1 :]]
                assert call(*given) is None, (name, k)
        for bad in (np.nan, np.inf, -np.inf):
            for k, array in enumerate(arrays[:-1]):
                last = array.copy()
                last[..., -1] = bad
                assert call(*arrays[:k], last, *arrays[k + 1 :]) is None
        for number in (0, 1, 3, 5):
            assert call(*(arrays * 2)[:number]) is None
        assert call(*arrays) is out


def test_code_for_one_state_has_no_vectors_and_for_a_few_short_ones():
    tier = DyadTier(examples.snake(8).model("physical"))
    widest = host().width
    for states, width in ((None, widest), (1, 1), (2, min(4, widest)), (4, min(4, widest)),
                          (5, widest), (100, widest)):  # fmt: skip
        found = tier.routine("center_of_mass", states=states)
        assert found._width == width
        assert tier.routine("center_of_mass", states=states) is found  # bound once


@pytest.mark.parametrize(("name", "base"), [("coriolis_matrix", "fixed"), ("momentum", "free")])
def test_vectors_of_any_width_give_the_same_bytes(name, base):
    """Seven joints: a block of four, and three one by one; where vectors have two, all so."""
    model, quantity = examples.snake(8).model("physical", base), QUANTITIES[name]
    rng = np.random.default_rng(4)
    q = np.stack([model.random_configuration(rng) for _ in range(11)])
    v = rng.standard_normal((11, model.nv))
    tier, expected = DyadTier(model), reference(model, name, q, v)
    found = [tier._bind(quantity, width).batch(q, v, None, None, 1) for width in (1, 2, 4, 8)]
    assert len({each.tobytes() for each in found}) == 1
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-13 * scale)


@pytest.mark.parametrize("name", ["mass_matrix", "coriolis_matrix"])
def test_every_joint_of_every_state_is_checked_also_in_blocks_of_four(name):
    """Results of pairs are not checked: a number of the input that is none would come out."""
    tier = DyadTier(examples.snake(8).model("physical"))
    rng, states = np.random.default_rng(3), host().width + 1
    rows = [rng.uniform(-1, 1, (states, 7)) for _ in QUANTITIES[name].inputs]
    none = [None] * (4 - len(rows))
    routine, narrow = tier.routine(name), tier.routine(name, states=1)
    several = routine.several(states)
    assert routine.batch(*rows, *none, 1) is not None
    for k, bad in itertools.product(range(len(rows)), (np.nan, np.inf, -np.inf)):
        for joint in range(7):
            given = [x.copy() for x in rows]
            given[k][joint % states, joint] = bad
            assert routine.batch(*given, *none, 1) is None
            assert several(*given, routine.empty(states)) is None
            alone = [x[joint % states].copy() for x in given]
            for each in (routine, narrow):
                assert each.single(*alone, routine.empty()) is None


@pytest.mark.parametrize("bound", ["free"], indirect=True)
def test_a_quaternion_has_norm_one_in_every_row(bound):
    routine, (q, v, a) = bound
    out, several = np.empty((ROWS, routine.nv)), routine.several(ROWS)
    for row in range(ROWS):
        for k in range(3, 7):
            for share in (1e-6, -1e-6):
                other = q.copy()
                other[row, k] *= 1 + share
                assert several(other, v, a, out) is None
                alone = [x[row].copy() for x in (other, v, a)]
                assert routine.single(*alone, out[row].copy()) is None


def test_prepared_calls_write_where_they_were_told_and_hand_on_what_they_cannot_take(bound):
    routine, rows = bound
    out, answer, handed = np.empty((ROWS, routine.nv)), object(), []

    def fallback(*arrays):
        handed.append(arrays)
        return "slow"

    for states, given in ((ROWS, rows), (None, [x[0].copy() for x in rows])):
        at = out if states else out[0]
        at[...] = 0
        call = routine.prepared(states, at, answer, fallback)
        assert call(*given) is answer
        right = routine.batch(*rows, None, 1)
        np.testing.assert_array_equal(at, right if states else right[0])
        lists = [x.tolist() for x in given]
        assert call(*lists) == "slow"
        assert handed.pop() == tuple(lists)
        assert call(*given, at) == "slow"  # one too many
        assert len(handed.pop()) == 4


@pytest.mark.parametrize(
    ("features", "width", "told"),
    [({"avx512f": True, "avx": True}, 8, "+avx,+avx512f"),
     ({"avx512f": False, "avx": True}, 4, "+avx,-avx512f"),
     ({"sse2": True, "avx": False}, 2, "-avx,+sse2"), (RuntimeError, 2, "")],
)  # fmt: skip
def test_vectors_are_as_wide_as_those_of_the_cpu(monkeypatch, features, width, told):
    """512, 256 or 128 bits: the least that a CPU of 64 bits has, also where LLVM does not say."""

    def asked():
        if features is RuntimeError:
            raise RuntimeError
        return features

    monkeypatch.setattr(jit.llvm, "get_host_cpu_features", asked)
    for variable in ("MODUROB_VECTOR_WIDTH", "MODUROB_CPU"):
        monkeypatch.delenv(variable, raising=False)
    found = jit.Host()
    assert (found.width, found.features) == (width, told)
    monkeypatch.setenv("MODUROB_VECTOR_WIDTH", "4")
    assert jit.Host().width == 4


def test_all_code_is_kept_in_a_folder_that_is_made_with_those_above_it(monkeypatch, tmp_path):
    folder = tmp_path / "not" / "there"
    monkeypatch.setenv("MODUROB_CACHE_DIR", str(folder))
    for name in ("first", "second"):
        ir = f"define void @{name}() {{\nentry:\n  ret void\n}}\n; {tmp_path}"
        assert compile_ir(ir).compiled
    assert len(list(folder.glob("*.o"))) == 2


@pytest.mark.parametrize(("states", "threads"), [(13_333, 1), (13_334, 2), (26_667, 4)])
def test_a_batch_takes_the_threads_that_its_joints_are_worth(monkeypatch, states, threads):
    """Three joints in each state."""
    monkeypatch.setattr(routine, "cores", lambda: 8)
    model = examples.crab().model()
    model.mass_matrix(np.zeros((states, 3)))
    assert list(model.dynamics.tier.routine("mass_matrix")._spaces) == [threads]


@pytest.mark.parametrize("fused", [False, True])
def test_batches_take_the_widest_vectors_and_single_states_none(fused):
    model = examples.crab().model()
    model = model.compile() if fused else model
    for states, widths in ((5, {host().width}), (1, {host().width, 1})):
        model.mass_matrix(np.zeros((states, 3)))
        assert {each._width for each in model.dynamics.tier._routines.values()} == widths


@pytest.mark.parametrize("fused", [False, True])
def test_prepared_calls_for_one_state_take_code_without_vectors(fused):
    model = examples.crab().model()
    model = model.compile() if fused else model
    model.prepare("inverse_dynamics")
    model.dynamics.bound("mass_matrix")
    assert [each._width for each in model.dynamics.tier._routines.values()] == [1, 1]


def test_where_arrays_have_another_layout_all_calls_take_the_slow_path(monkeypatch):
    monkeypatch.setattr(routine, "_layout_is_known", lambda: False)
    model, state = examples.crab().model(), np.array([[0.1, 0.2, 0.3], [1, 2, 3], [4, 5, 6]])
    expected = reference(model, "inverse_dynamics", *state)
    close = {"rtol": 0, "atol": 1e-13 * np.abs(expected).max()}
    np.testing.assert_allclose(model.inverse_dynamics(*state), expected, **close)
    np.testing.assert_allclose(model.prepare("inverse_dynamics")(*state), expected, **close)
