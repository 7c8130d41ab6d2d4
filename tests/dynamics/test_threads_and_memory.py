"""One model for many threads, and batches that need no more memory than they must."""

import sys
import threading
import time
import tracemalloc
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

from modurob import examples
from modurob.compiler import jit
from modurob.compiler.fused import module_ir
from modurob.compiler.jit import compile_ir
from modurob.compiler.pool import pool
from modurob.compiler.routine import _layout_is_known, aligned
from modurob.compiler.tiers import DyadTier, FusedTier
from modurob.equations.quantities import QUANTITIES

ROUNDING = 1e-12  # relative: other threads, other lanes, the same formulas
THREADS = 8
ROUNDS = 25
MEGABYTE = 2**20
SPARE = 8 * MEGABYTE  # workspaces and whatever Python needs for a call
STATES = 10_000
MANY_MATRICES = 2_000  # mass matrices of 60 joints are 29 kB each
PATIENCE = 60.0


def batch(model, count, seed=0):
    rng = np.random.default_rng(seed)
    q = np.stack([model.random_configuration(rng) for _ in range(count)])
    return q, *rng.standard_normal((2, count, model.nv))


def ask(model, q, v, x):
    """All algorithms, as one list of arrays."""
    return [
        model.inverse_dynamics(q, v, x),
        model.forward_dynamics(q, v, x),
        model.mass_matrix(q),
        model.inverse_dynamics(q, v, x, {"m1": np.ones(6)}),
        *model.inverse_dynamics_derivatives(q, v, x),
    ]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        scale = np.abs(other).max()
        np.testing.assert_allclose(one, other, rtol=0, atol=ROUNDING * scale)


@pytest.fixture
def hurried():
    """Threads take turns as often as the interpreter lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(work):
    """Run work(0) ... work(7) at the same time; the first error is raised here."""
    barrier = threading.Barrier(THREADS)

    def one(k):
        barrier.wait(PATIENCE)
        return work(k)

    with ThreadPoolExecutor(THREADS) as pool:
        for future in [pool.submit(one, k) for k in range(THREADS)]:
            future.result(PATIENCE)


def variants(base):
    model = examples.crab().with_parameters(viscous=0.1).model("physical", base)
    return {"dyads": model, "fused": model.compile()}


@pytest.mark.parametrize("tier", ["dyads", "fused"])
@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("threads", [1, 2])
def test_eight_threads_share_a_model(hurried, tier, base, threads):
    model = variants(base)[tier]
    states = batch(model, 13)
    expected = ask(model, *states)

    def work(k):
        for round_ in range(ROUNDS):
            row = (k + round_) % 13
            one = [part[row] for part in states]
            assert_same(ask(model, *one), [part[row] for part in expected])
            some = [part[: row + 1] for part in states]
            found = model.inverse_dynamics(*some, threads=threads)
            assert_same([found], [expected[0][: row + 1]])

    together(work)


@pytest.mark.parametrize("tier", ["dyads", "fused", "background"])
def test_eight_threads_may_ask_first(hurried, tier):
    for seed in range(3):
        organism = examples.snake(4).with_parameters(mass=1 + 1e-3 * seed)
        states = batch(organism.model(), 5)
        expected = ask(organism.model(), *states)
        model = organism.model()
        if tier != "dyads":
            model = model.compile(background=tier == "background")

        def work(k, model=model, states=states, expected=expected):
            for _ in range(20 if tier == "background" else 2):
                assert_same(ask(model, *states), expected)

        together(work)


def test_the_hand_over_to_fused_code_happens_once():
    class Ready(Future):
        """Done; and the thread that asks is held up before it can act on that."""

        def done(self):
            time.sleep(0.05)
            return True

    tier = examples.snake(4).model().compile(background=True).dynamics.tier
    quantity, found = QUANTITIES["mass_matrix"], []
    ready = tier._waiting[quantity, False, False] = Ready()
    ready.set_result(compile_ir(module_ir(quantity, tier.model)))
    together(lambda k: found.append(tier.routine("mass_matrix")))
    assert len(set(map(id, found))) == 1
    assert found[0] is not tier.dyads.routine("mass_matrix")


@pytest.mark.skipif(not _layout_is_known(), reason="NumPy's arrays are laid out differently here")
def test_single_states_take_the_short_way():
    model = examples.snake(4).model().compile(background=True)
    q = np.array([0.1, -0.2, 0.3])[: model.nq]
    routine = model.dynamics.tier.dyads.routine("mass_matrix")
    found = routine.single(q, np.empty(routine.result))
    np.testing.assert_allclose(found, model.mass_matrix(q), rtol=ROUNDING)


def test_helpers_are_free_for_the_next_batch_also_after_an_error(monkeypatch):
    model = examples.snake(6).model()
    states = batch(model, 64)
    model.inverse_dynamics(*states, threads=2)
    helpers = pool()
    assert not helpers._leading.locked()
    assert all(each.daemon for each in threading.enumerate() if each.name == "modurob")

    def failing(batch):
        raise RuntimeError

    monkeypatch.setattr(helpers, "_lead", failing)
    with pytest.raises(RuntimeError):
        model.inverse_dynamics(*states, threads=2)
    assert not helpers._leading.locked()


def test_workspaces_are_never_handed_out_twice(hurried):
    model = examples.snake(6).model()
    states = batch(model, 64)
    expected = model.inverse_dynamics(*states, threads=1)

    def work(k):
        for _ in range(200):
            assert_same([model.inverse_dynamics(*states, threads=3)], [expected])

    together(work)


def test_a_prepared_callable_for_each_thread_s_own_model():
    organism = examples.crab()

    def work(k):
        model = organism.model()
        call = model.prepare("inverse_dynamics")
        q, v, a = (part[0] for part in batch(model, 1, seed=k))
        expected = model.inverse_dynamics(q, v, a)
        for _ in range(ROUNDS):
            assert_same([call(q, v, a)], [expected])

    together(work)


# -- memory ----------------------------------------------------------------------------------------


def peak_of(function):
    """Bytes allocated at most while a function runs, and its result."""
    tracemalloc.start()
    try:
        result = function()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def tree():
    return examples.superbot_tree(4, 5, rng=np.random.default_rng(1))


METHODS = ("inverse_dynamics", "forward_dynamics", "mass_matrix")
LARGE_BATCHES = [
    *(("dyads", base, method) for base in ("fixed", "free") for method in METHODS),
    ("fused", "fixed", "inverse_dynamics"),  # its driver is the same for all algorithms
]


@pytest.mark.parametrize(("tier", "base", "method"), LARGE_BATCHES)
@pytest.mark.parametrize("threads", [1, 2])
def test_batches_need_their_results_and_little_more(tree, tier, base, threads, method):
    model = tree.model("physical", base)
    assert len(model.joint_names) == 60
    model = model.compile() if tier == "fused" else model
    count = MANY_MATRICES if method == "mass_matrix" else STATES
    states = batch(model, 1)
    states = [np.repeat(part, count, axis=0) for part in states]
    given = states[:1] if method == "mass_matrix" else states
    call = getattr(model, method)
    call(*(part[:1] for part in given))  # compiled, and tables made
    used, result = peak_of(lambda: call(*given, threads=threads))
    assert result.nbytes == 8 * count * model.nv ** (2 if method == "mass_matrix" else 1)
    assert used <= result.nbytes + SPARE, f"{(used - result.nbytes) / MEGABYTE:.1f} MB beyond"


def test_single_states_allocate_nothing_that_stays(tree):
    model = tree.model("physical")
    q, v, a = (part[0] for part in batch(model, 1))
    call = model.prepare("inverse_dynamics")
    call(q, v, a)
    model.inverse_dynamics(q, v, a)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            call(q, v, a)
            model.inverse_dynamics(q, v, a)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 10_000
    assert peak - before < 100_000


def changes_nothing_behind(found, *given):
    """True if a batch leaves the bytes alone that follow its vectors of workspace."""
    end = 8 * found._width * found._vectors
    space = aligned(end + 512).reshape(1, -1)
    space[0, end:] = 0xA5
    found._spaces[1].append(space)
    assert found.batch(*given, 1) is not None
    return bool(space[0, :end].any() and (space[0, end:] == 0xA5).all())


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_code_changes_nothing_behind_its_memory(base):
    model = examples.snake(3).model("physical", base)
    (q, v, a), rng = batch(model, 3), np.random.default_rng(5)
    wrenches = rng.standard_normal((3, len(model.mass), 6))
    table, fused = DyadTier(model), FusedTier(model, background=False)
    for name in ("inverse_dynamics", "mass_matrix", "momentum"):
        inputs, external = QUANTITIES[name].inputs, QUANTITIES[name].passes.external
        given = ([q, v, a][: len(inputs)] + [None] * 3)[:3]
        assert changes_nothing_behind(table.routine(name), *given, wrenches if external else None)
    assert changes_nothing_behind(fused.routine("inverse_dynamics", True), q, v, a, wrenches)
    weights = np.zeros((3, 6 * len(model.mass)))
    weights[:, : model.nv] = a
    assert changes_nothing_behind(fused.gradient("inverse_dynamics"), q, v, a, weights)


def test_eight_threads_look_up_a_function_once(monkeypatch):
    """LLVM unloads the code when one of two results of a lookup is deleted."""
    library, linker, looked_up = compile_ir("define void @f() {\n  ret void\n}"), jit._linker(), []

    class SlowLinker:
        def lookup(self, key, name):
            time.sleep(0.01)
            looked_up.append(name)
            return linker.lookup(key, name)

    monkeypatch.setattr(jit, "_linker", SlowLinker)
    together(lambda k: library.function("f")())
    assert looked_up == ["f"]
