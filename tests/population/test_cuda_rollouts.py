"""Populations on a GPU: their CUDA text, compiled as C++ for the CPU, steps as every model does."""

import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest

import modurob as mr
from modurob.compiler.emit_population import MASK_BITS
from modurob.population import cuda
from modurob.population.cuda import CudaExecutor
from modurob.population.device import WARP, DeviceTables, block_slots, depth_first
from modurob.population.rollout import rises, task_of

from .cuda_shim import COMPILER, CpuLauncher
from .test_population import STEP_S, alone, arms, cubes, waves

__all__ = ["arms", "cubes"]  # fixtures

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")

ROUNDING = {"float64": 1e-12, "float32": 5e-6}  # of one evaluation: some hundred operations a joint
AFTER_STEPS = {"float64": 1e-10, "float32": 1e-4}  # of the state: the issue demands this
STEPS = 100
HILLS = mr.Ground(height=0.02 * np.indices((20, 20)).sum(axis=0) % 0.03, cell=0.1)
RESOLUTION_M = 1.2e-7  # of float32 at 1 m


@pytest.fixture(scope="module")
def launcher(tmp_path_factory):
    return CpuLauncher(tmp_path_factory.mktemp("cuda"))


@pytest.fixture
def on_gpu(launcher):
    """Give a population an executor whose kernels run here."""

    def prepared(population):
        population._executors["cuda"] = CudaExecutor(population.tables, launcher)
        return population

    return prepared


def tilted(population, ground, seed=1):
    """Tilted bodies whose lowest corners are exactly on the ground."""
    rng, tables = np.random.default_rng(seed), population.tables
    q = np.zeros((len(population), int(population.nq.max())))
    q[:, 3:6], q[:, 6] = 0.05 * rng.standard_normal((len(q), 3)), 1
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    q[:, 2] = rises(tables, ground, q)
    return q


@pytest.mark.parametrize(("name", "dtype"), [("cubes", "float64"), ("arms", "float32")])
def test_dynamics_are_those_of_the_models_and_are_all_written(name, dtype, on_gpu, request):
    population, rng = on_gpu(request.getfixturevalue(name)), np.random.default_rng(0)
    q = np.zeros((len(population), population.nq.max()))
    v, x = rng.standard_normal((2, len(population), population.nv.max()))
    for k in range(len(population)):
        q[k, : population.nq[k]] = population.model(k).random_configuration(rng)
    for quantity in ("inverse_dynamics", "forward_dynamics"):
        # results begin as NaN, and so does what a thread has in its memory
        found = getattr(population, quantity)(q, v, x, target="cuda", dtype=dtype)
        for k in range(len(population)):
            model = population.model(k)
            state = (q[k, : model.nq], v[k, : model.nv], x[k, : model.nv])
            expected = getattr(model, quantity)(*state)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(
                found[k, : model.nv] / scale, expected / scale, rtol=0, atol=ROUNDING[dtype]
            )
            assert not found[k, model.nv :].any()


@pytest.mark.parametrize(
    ("name", "ground", "step", "dtypes"),
    [
        ("cubes", mr.Ground(), STEP_S, ["float64"]),
        ("cubes", mr.Ground(friction=0.3, slope=(0.2, -0.1)), STEP_S, ["float32"]),
        ("arms", HILLS, 1e-4, ["float64", "float32"]),
    ],
    ids=["level", "slope", "field"],
)
def test_every_body_steps_as_its_model_does(name, ground, step, dtypes, on_gpu, request):
    population = on_gpu(request.getfixturevalue(name))
    gaits, start = waves(population), tilted(population, ground)
    given = {"gaits": gaits, "ground": ground, "torque": 5.0, "start": start}
    task = task_of(
        population.tables, STEPS * step, step, gaits, ground, None, None, 5.0, start, None,
        "auto", "float64",
    )  # fmt: skip
    expected = [alone(population, task, k) for k in range(len(population))]
    for dtype in dtypes:
        found = population.rollout(STEPS * step, step, **given, target="cuda", dtype=dtype)
        for k, (q, _, work) in enumerate(expected):
            error = np.abs(found.q[k, : len(q)] - q).max() / np.abs(q).max()
            assert error < AFTER_STEPS[dtype], (dtype, k)
            assert found.work[k] == pytest.approx(work, rel=100 * AFTER_STEPS[dtype])
        assert not found.failed.any()
    assert population.tables.corner_count.max() > MASK_BITS or name == "arms"


def test_launches_and_chunks_of_memory_do_not_change_results(cubes, launcher, on_gpu, monkeypatch):
    population, ground = on_gpu(cubes), mr.Ground()
    given = {"gaits": waves(population), "ground": ground, "target": "cuda"}
    whole = population.rollout(0.06, **given)
    del launcher.launched[:]
    monkeypatch.setattr(type(launcher), "free_bytes", 20_000)
    parts = population.rollout(0.06, **given)
    assert len(launcher.launched) > 1
    assert sum(launcher.launched) == len(population)
    assert parts.q.tobytes() == whole.q.tobytes()
    traced = population.rollout(0.06, **given, every=0.02)  # one launch for each record
    np.testing.assert_allclose(traced.q, whole.q, rtol=0, atol=AFTER_STEPS["float64"])
    np.testing.assert_array_equal(traced.trace[0], whole.start_pose)
    np.testing.assert_array_equal(traced.trace[-1], traced.base_pose)
    assert len(traced.trace) == len(traced.times) == 4
    late = population.rollout(0.06, **given, begin=0.02)
    np.testing.assert_array_equal(late.trace[0], whole.start_pose)
    np.testing.assert_array_equal(late.trace[-1], late.base_pose)
    np.testing.assert_allclose(late.q, whole.q, rtol=0, atol=AFTER_STEPS["float64"])
    np.testing.assert_allclose(late.start_pose, traced.trace[1], rtol=0, atol=1e-12)
    monkeypatch.setattr(type(launcher), "free_bytes", 100)
    with pytest.raises(mr.errors.StateError, match=r"one body takes .* MB of GPU memory"):
        population.rollout(0.06, **given)


@pytest.mark.parametrize("quantity", ["rollout", "forward_dynamics"])
def test_bodies_that_find_no_memory_after_all_are_halved(quantity, cubes, on_gpu, monkeypatch):
    q, v = np.zeros((len(cubes), cubes.nq.max())), np.ones((len(cubes), cubes.nv.max()))
    q[:, 6] = 1
    given = (q, v, v) if quantity == "forward_dynamics" else (0.002, 1e-3, None, mr.Ground())

    def computed():
        found = getattr(on_gpu(cubes), quantity)(*given, target="cuda")
        return (found if quantity == "forward_dynamics" else found.q).tobytes()

    whole, launch, sizes = computed(), CudaExecutor._launch, []

    def launched(self, quantity, shape, part, args):
        sizes.append(np.count_nonzero(part.count))
        if sizes[-1] > most:
            raise MemoryError("out of memory")  # as CuPy's: others took what was free
        launch(self, quantity, shape, part, args)

    monkeypatch.setattr(CudaExecutor, "_launch", launched)
    most = 3
    assert computed() == whole
    assert sizes == [11, 5, 2, 2, 2, 2, 2, 1]
    most = 0
    with pytest.raises(mr.StateError, match=r"one body takes .* MB of GPU memory") as caught:
        computed()
    if quantity == "forward_dynamics":  # q, v, x, the result, what else lies there; words of links
        numbers = 5 * cubes.nq.max() + cubes.tables.parent.shape[1]
        assert float(str(caught.value).split()[3]) * 1e6 == pytest.approx(8 * numbers, rel=0.01)


PERIOD = 3  # cells after which the wide field repeats itself
WIDE = mr.Ground(height=0.01 * (np.indices((3000, 20)).sum(axis=0) % PERIOD), cell=0.1)


@pytest.mark.parametrize(
    ("ground", "shift"),
    [
        (mr.Ground(slope=(0.1, -0.2)), [1000.0, -500.0, 200.0]),
        (WIDE, [400 * PERIOD * WIDE.cell, 0.0, 0.0]),
    ],
    ids=["slope", "field"],
)
def test_far_from_the_origin_float32_loses_no_digits(ground, shift, cubes, on_gpu):
    population = on_gpu(cubes)
    near = tilted(population, ground)
    far = near.copy()
    far[:, :3] += shift
    runs = [
        population.rollout(0.1, gaits=waves(population), ground=ground, start=start, every=0.05,
                           target="cuda", dtype="float32")
        for start in (near, far)
    ]  # fmt: skip
    way = [run.q[:, :3] - start[:, :3] for run, start in zip(runs, (near, far), strict=True)]
    np.testing.assert_allclose(way[1], way[0], rtol=0, atol=1e-6)


def test_float32_on_bumps_deviates_as_a_start_displaced_by_its_resolution(cubes, on_gpu):
    """Impacts on bumps amplify any difference; float32 adds no more than its resolution."""
    population, rng = on_gpu(cubes), np.random.default_rng(0)
    ground = mr.Ground(height=rng.uniform(0, 0.02, (30, 30)), cell=0.1)
    start = tilted(population, ground)

    def after_steps(start, dtype, target="cpu"):
        given = {"gaits": waves(population), "ground": ground, "torque": 5.0, "start": start}
        return population.rollout(STEPS * STEP_S, **given, target=target, dtype=dtype).q

    exact, moved = after_steps(start, "float64"), start.copy()
    deviation = np.zeros(len(start))
    for _ in range(4):
        moved[:, :3] = start[:, :3] + RESOLUTION_M * rng.uniform(
            [-1, -1, 1], [1, 1, 2], (len(start), 3)
        )
        found = after_steps(moved, "float64")
        deviation = np.maximum(deviation, np.abs(found - exact).max(axis=1))
    error = np.abs(after_steps(start, "float32", "cuda") - exact).max(axis=1)
    assert (error < 5 * deviation).all()
    assert error.max() < AFTER_STEPS["float32"]


def test_a_body_that_fails_disturbs_no_other(cubes, on_gpu):
    population = on_gpu(cubes)
    start = (tilted(population, mr.Ground()), np.zeros((len(cubes), int(cubes.nv.max()))))
    given = {"gaits": waves(population), "ground": mr.Ground(), "target": "cuda"}
    good = population.rollout(0.002, start=start, **given)
    start[1][2, 3] = 1100.0  # [rad/s] 1.1 rad in a step, beyond the series of its rotation
    bad = population.rollout(0.002, start=start, **given)
    assert bad.failed.tolist() == [k == 2 for k in range(len(cubes))]
    assert np.delete(bad.q, 2, axis=0).tobytes() == np.delete(good.q, 2, axis=0).tobytes()


class ThereArray(np.ndarray):
    """An array that says it lies on a GPU."""

    def __dlpack_device__(self):
        return (2, 0)


def test_arrays_on_the_gpu_are_taken_as_they_are(cubes, on_gpu):
    population = on_gpu(cubes)
    q, v = np.zeros((len(cubes), cubes.nq.max())), np.ones((len(cubes), cubes.nv.max()))
    q[:, 6] = 1
    here = population.forward_dynamics(q, v, v, target="cuda")
    there = [x.view(ThereArray) for x in (q, v, v)]
    assert population.forward_dynamics(*there, target="cuda").tobytes() == here.tobytes()
    with pytest.raises(mr.errors.StateError, match=r"shape \(11, 3\), expected \(11, 14\)"):
        population.forward_dynamics(there[0][:, :3], *there[1:], target="cuda")
    with pytest.raises(mr.errors.StateError, match="q has shape"):
        population.forward_dynamics(q[:, :3], v, v, target="cuda")


class ThereTensor:
    """An array of another library than the launcher's, on a GPU."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return (2, 0)


def test_arrays_of_other_libraries_come_by_dlpack(cubes):
    there = SimpleNamespace(ndarray=np.ndarray, asarray=np.asarray, from_dlpack=lambda x: x.array)
    executor = CudaExecutor(cubes.tables, SimpleNamespace(xp=there))
    q = np.ones((len(cubes), cubes.nq.max()))
    found = executor._array(ThereTensor(q), 7, "float32")
    np.testing.assert_array_equal(found, q)
    assert found.dtype == np.float32


def test_the_launcher_asks_cupy_for_the_gpu_and_compiles_a_kernel_once(monkeypatch):
    made = []
    attributes = {"MultiProcessorCount": 132, "MaxSharedMemoryPerMultiprocessor": 233472}
    fake = SimpleNamespace(
        cuda=SimpleNamespace(
            Device=lambda: SimpleNamespace(attributes=attributes),
            runtime=SimpleNamespace(memGetInfo=lambda: (1000, 5000)),  # free, of all
        ),
        get_default_memory_pool=lambda: SimpleNamespace(free_bytes=lambda: 24),
        RawKernel=lambda source, name, options: made.append((source, name, options)) or len(made),
    )
    monkeypatch.setattr(cuda, "cupy", lambda: fake)
    launcher = cuda.CupyLauncher()
    assert (launcher.processors, launcher.shared_bytes, launcher.free_bytes) == (132, 233472, 1024)
    calls = [("a", ()), ("a", ["-DTHREADS=32"]), ("a", ("-DTHREADS=32",)), ("b", ()), ("a", ())]
    assert [launcher.kernel(source, "k", options) for source, options in calls] == [1, 2, 2, 3, 1]
    assert made == [("a", "k", ()), ("a", "k", ("-DTHREADS=32",)), ("b", "k", ())]


def test_arrays_of_the_gpu_are_copied_and_others_are_not():
    here = np.arange(3.0)
    assert cuda._as_numpy(here) is here
    assert cuda._as_numpy(SimpleNamespace(get=lambda: here)) is here


@pytest.mark.parametrize("bodies", [1, 64, 4_096, 10_000, 30_000])
def test_blocks_of_large_bodies_have_fewer_and_fit_side_by_side(bodies):
    blocks, room, rng = 1056, 7_000, np.random.default_rng(0)
    size = 33 * np.sort(rng.integers(2, 27, bodies))[::-1]
    slots, starts = block_slots(size, blocks, room)
    of_body, lane = np.divmod(slots, WARP)
    lanes = np.bincount(of_body)
    assert len(np.unique(slots)) == bodies
    assert lanes.max() == max(lane) + 1 <= WARP == 32  # threads of a warp, on every GPU
    begins = np.flatnonzero(lane == 0)
    assert (starts[begins] == 0).all()
    np.testing.assert_array_equal((starts + size)[:-1][lane[1:] > 0], starts[1:][lane[1:] > 0])
    assert (starts + size).max() <= room
    fits = size.sum() < 0.9 * blocks * room
    assert (len(lanes) <= blocks) == fits == (bodies < 30_000)
    assert lanes[0] == {1: 1, 64: 1, 4_096: 2, 10_000: 5, 30_000: 8}[bodies]
    assert bodies == 1 or lanes[-2] > 2 * lanes[0]


def test_blocks_are_no_more_than_run_at_the_same_time_where_there_is_room():
    size = np.array([2, 2, 2])
    for blocks, room, slots, places in (
        (3, 100, [0, 32, 64], [0, 0, 0]),
        (2, 100, [0, 1, 32], [0, 2, 0]),
        (1, 100, [0, 1, 2], [0, 2, 4]),
        (1, 4, [0, 1, 32], [0, 2, 0]),  # numbers for two bodies
        (1, 3, [0, 32, 64], [0, 0, 0]),
    ):
        found = block_slots(size, blocks, room)
        assert [each.tolist() for each in found] == [slots, places]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bodies_that_do_not_fit_into_shared_memory_lie_in_that_of_their_threads(
    cubes, launcher, monkeypatch, dtype
):
    given = {"gaits": waves(cubes), "ground": mr.Ground(), "target": "cuda", "dtype": dtype}
    runs = []
    for shared in (228 << 10, 16 << 10):
        monkeypatch.setattr(type(launcher), "shared_bytes", shared)
        cubes._executors["cuda"] = CudaExecutor(cubes.tables, launcher)
        runs.append(cubes.rollout(0.02, **given))
        assert (launcher.shared[-1] > 0) == (shared > 100_000)
    assert runs[0].q.tobytes() == runs[1].q.tobytes()


def test_the_number_of_multiprocessors_does_not_change_results(cubes, launcher, monkeypatch):
    runs = []
    for processors in (1, 100):  # four warps; a warp for each body
        monkeypatch.setattr(type(launcher), "processors", processors)
        cubes._executors["cuda"] = CudaExecutor(cubes.tables, launcher)
        given = {"gaits": waves(cubes), "ground": mr.Ground(), "every": 0.01, "target": "cuda"}
        runs.append(cubes.rollout(0.03, **given))
    for name in ("q", "v", "work", "trace"):
        assert getattr(runs[0], name).tobytes() == getattr(runs[1], name).tobytes()


def test_bodies_that_fill_the_gpu_lie_in_the_memory_of_their_threads(cubes, launcher, monkeypatch):
    """From 256 on a multiprocessor on; with the same result."""
    executor = CudaExecutor(cubes.tables, launcher)
    monkeypatch.setattr(type(launcher), "processors", 3)
    assert [executor.fills(bodies) for bodies in (767, 768, 769)] == [False, True, True]
    runs = []
    for full in (4, 3):  # bodies on a multiprocessor; there are eleven in all
        monkeypatch.setattr(cuda, "FULL", full)
        cubes._executors["cuda"] = CudaExecutor(cubes.tables, launcher)
        runs.append(cubes.rollout(0.02, gaits=waves(cubes), ground=mr.Ground(), target="cuda"))
        assert (launcher.shared[-1] > 0) == (full == 4)
    assert runs[0].q.tobytes() == runs[1].q.tobytes()
    assert runs[0].work.tobytes() == runs[1].work.tobytes()


def test_links_are_ordered_depth_first():
    rng = np.random.default_rng(0)
    count = rng.integers(1, 10, 40)
    parent = np.full((40, 9), -1)
    for b, n in enumerate(count):
        parent[b, 1:n] = [rng.integers(0, i) for i in range(1, n)]
    found = depth_first(count, parent)
    for b, n in enumerate(count):
        above = found.parent[b]
        assert sorted(found.link[b]) == list(range(9))
        for i in range(1, n):
            assert found.link[b, above[i]] == parent[b, found.link[b, i]]
            way = {i - 1}  # links between the one before and the base
            while above[min(way)] >= 0:
                way.add(above[min(way)])
            assert above[i] in way


def test_fixed_base_and_empty_space(cubes, launcher):
    fixed = mr.Population([cubes.organism(k) for k in range(3)], base="fixed")
    fixed._executors["cuda"] = CudaExecutor(fixed.tables, launcher)
    given = {"gaits": waves(fixed), "every": 0.01}
    there, here = fixed.rollout(0.05, **given, target="cuda"), fixed.rollout(0.05, **given)
    np.testing.assert_allclose(there.q, here.q, rtol=0, atol=AFTER_STEPS["float64"])
    np.testing.assert_array_equal(there.trace, here.trace)


def test_cuda_without_cupy_says_what_to_install(cubes):
    if importlib.util.find_spec("cupy"):
        pytest.skip("CuPy is installed")
    population = mr.Population([cubes.organism(0)])
    with pytest.raises(mr.errors.StateError, match=r"pip install 'modurob\[cuda\]'"):
        population.rollout(0.01, target="cuda")


def test_kernels_have_room_for_the_corners_and_forks_of_the_largest_body(cubes):
    """A bit for each corner of a link, in whole words of 32."""
    words, forks = [], []
    for k in range(len(cubes)):
        n, tables = int(cubes.tables.count[k]), cubes.tables
        words.append(sum(-(-int(x) // 32) for x in tables.corner_count[tables.row[k, :n]]))
        parent, count = tables.parent[k, :n].tolist(), []
        for link in range(n):
            way = [link]
            while way[-1] > 0:
                way.append(parent[way[-1]])
            count.append(sum(parent.count(each) > 1 for each in way))
        forks.append(max(count))
    device = DeviceTables(cubes.tables)
    shape = device.shape("float32", with_points=True)
    assert (shape.masks, shape.forks, shape.links) == (
        max(words),
        max(forks),
        max(cubes.joints) + 1,
    )
    assert cubes.tables.corner_count.max() > 32
    assert max(forks) > 0
    assert device.shape("float32", with_points=False).masks == 0
    np.testing.assert_array_equal(device.forks, np.array(forks)[device.order])
    assert not shape.prismatic
    assert not shape.rotor


def test_kernels_have_what_some_body_needs(arms):
    shape = DeviceTables(arms.tables).shape("float64", with_points=False)
    assert (shape.free_base, shape.dtype) == (True, "float64")
    assert (shape.prismatic, shape.rotor, shape.friction) == (True, True, True)
    smooth = mr.Population([mr.examples.snake(2).with_parameters(viscous=0.0, coulomb=0.0)])
    assert not DeviceTables(smooth.tables).shape("float64", with_points=False).friction


def test_the_largest_bodies_come_first_and_alike_ones_are_together(cubes):
    bodies = [cubes.organism(k) for k in (0, 9, 1, 0, 5, 9)]
    population = mr.Population(bodies)
    device, count = DeviceTables(population.tables), population.tables.count
    assert sorted(device.order) == list(range(6))
    np.testing.assert_array_equal(device.count, count[device.order])
    assert (np.diff(device.count) <= 0).all()
    place = np.argsort(device.order)
    assert abs(place[0] - place[3]) == abs(place[1] - place[5]) == 1
