"""Populations on a GPU, through CuPy: one thread a body, many steps a launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from modurob.compiler.cuda import cupy, on_gpu
from modurob.compiler.emit_population import (
    KERNEL,
    KernelShape,
    memory_numbers,
    population_source,
    shared_numbers,
)
from modurob.compiler.kernels import own_numbers
from modurob.equations.contact import GROUNDED_DYNAMICS, HeightField
from modurob.equations.passes import Quantity
from modurob.equations.quantities import QUANTITIES
from modurob.equations.servo import Servo
from modurob.errors import StateError
from modurob.population.device import WARP, DeviceTables, block_slots
from modurob.population.rollout import Reached, RolloutTask
from modurob.population.tables import BodyTables
from modurob.stepping.ground import Ground

# threads of a block, and for how many blocks on a multiprocessor registers have to suffice: where
# bodies are few, small blocks spread them and registers are plenty
MANY = {"float32": (128, 3), "float64": (128, 2)}
FEW = (WARP, 1)
FULL = 256  # bodies on a multiprocessor that are many
SHARING = 8  # blocks on a multiprocessor that keep few bodies in its shared memory
RESERVED = 1024  # bytes of the shared memory that each of them takes besides
SCHEDULERS = 4  # blocks on a multiprocessor, each at its full speed, where they do not fit there
# quick divisions and roots round in the last bit
OPTIONS = {"float32": ("--prec-div=false", "--prec-sqrt=false", "--ftz=true"), "float64": ()}
LAUNCH_STEPS = 500  # of a launch; positions are counted from a body's place at its start
ORIGIN_OF_CELLS = [HeightField._fields.index(x) for x in ("x0", "y0")]
USED_SHARE = 0.8  # of the free memory


class CupyLauncher:
    """Compiles kernels and holds arrays on the GPU."""

    def __init__(self) -> None:
        self.xp = cupy()
        self._kernels: dict[tuple[str, tuple[str, ...]], Any] = {}

    @property
    def processors(self) -> int:
        """Number of multiprocessors."""
        return int(self.xp.cuda.Device().attributes["MultiProcessorCount"])

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a multiprocessor."""
        return int(self.xp.cuda.Device().attributes["MaxSharedMemoryPerMultiprocessor"])

    @property
    def free_bytes(self) -> int:
        """Memory that arrays can take."""
        pool = self.xp.get_default_memory_pool()
        return int(self.xp.cuda.runtime.memGetInfo()[0] + pool.free_bytes())

    def kernel(self, source: str, name: str, options: Sequence[str] = ()) -> Any:
        """A kernel, compiled once."""
        key = source, tuple(options)
        if key not in self._kernels:
            self._kernels[key] = self.xp.RawKernel(source, name, options=tuple(options))
        return self._kernels[key]


class CudaExecutor:
    """Runs the bodies of a population on a GPU."""

    def __init__(self, tables: BodyTables, launcher: Any = None) -> None:
        self.tables, self.device = tables, DeviceTables(tables)
        self.launcher = launcher or CupyLauncher()
        self.xp = self.launcher.xp
        self._parts: dict[tuple[int, int, str, Quantity], _Part] = {}

    # -- one state of each body --------------------------------------------------------------------

    def evaluate(self, name: str, q: Any, v: Any, x: Any, threads: int | str, dtype: str) -> Any:
        """(bodies, most nv) result of a quantity; on the GPU if an input is there.

        Args:
            q, v, x: NumPy arrays, or arrays of a library that has DLPack.
        """
        xp, bases = self.xp, _bases(self.tables)
        shape = self.device.shape(dtype, with_points=False)
        given = [self._array(*each, dtype) for each in zip((q, v, x), bases, strict=True)]
        found = xp.zeros(given[1].shape, dtype=dtype)

        def compute(some: slice) -> None:
            part = self._part(some, dtype, QUANTITIES[name])
            arrays = [part.taken(*each) for each in zip(given, bases, strict=True)]
            y = xp.full(arrays[1].shape, np.nan, dtype=dtype)  # what is not written shows
            self._launch(QUANTITIES[name], shape, part, (*arrays, y))
            part.put(found, y, bases[1])

        self._in_parts(compute, 5 * given[0].nbytes // len(given[0]) + 8 * shape.links)
        return found if any(map(on_gpu, (q, v, x))) else _as_numpy(found)

    def _part(self, some: slice, dtype: str, quantity: Quantity) -> _Part:
        """Some of the bodies; the last ones asked for stay on the GPU."""
        key = (some.start, some.stop, dtype, quantity)
        if key not in self._parts:
            self._parts = {key: _Part(self, some, dtype, quantity)}
        return self._parts[key]

    def _array(self, value: Any, base: int, dtype: str) -> Any:
        if on_gpu(value) and not isinstance(value, self.xp.ndarray):
            value = self.xp.from_dlpack(value)
        array = self.xp.asarray(value, dtype=dtype)
        expected = (len(self.tables.count), base + self.tables.row.shape[1] - 1)
        if array.shape != expected:
            raise StateError(f"an array has shape {array.shape}, expected {expected}")
        return array

    def _launch(
        self, quantity: Quantity, shape: KernelShape, part: _Part, args: Sequence[Any]
    ) -> None:
        source, bodies = population_source(quantity, shape), len(part.order)
        threads, blocks = FEW if part.shared_bytes else MANY[shape.dtype]
        options = (
            f"-DTHREADS={threads}", f"-DBLOCKS={blocks}", f"-DSHARED={int(part.shared_bytes > 0)}",
            *OPTIONS[shape.dtype],
        )  # fmt: skip
        kernel = self.launcher.kernel(source, KERNEL, options)
        args = (np.int32(bodies), part.count, part.words, part.rows, part.places, *args)
        kernel((-(-bodies // threads),), (threads,), args, shared_mem=part.shared_bytes)

    def fills(self, bodies: int) -> bool:
        """True if so many bodies keep all of the GPU busy."""
        return bodies >= FULL * self.launcher.processors

    def _in_parts(self, compute: Callable[[slice], None], bytes_per_body: int) -> None:
        """Compute all bodies, as many at a time as fit into the memory.

        Others may take memory in the meantime: a part that does not fit after all is halved.
        """
        bodies, first = len(self.tables.count), 0
        fit = int(USED_SHARE * self.launcher.free_bytes / bytes_per_body)
        while first < bodies and fit:
            stop = min(first + fit, bodies)
            try:
                compute(slice(first, stop))
            except MemoryError:
                self._parts.clear()
                fit = (stop - first) // 2
            else:
                first = stop
        if first < bodies:
            raise StateError(
                f"one body takes {bytes_per_body / 1e6:.3g} MB of GPU memory and "
                f"{self.launcher.free_bytes / 1e6:.3g} MB are free: free some, or give target='cpu'"
            )

    # -- steps in time -----------------------------------------------------------------------------

    def rollout(self, task: RolloutTask) -> Reached:
        """States after all steps; see `Population.rollout`."""
        tables, found = self.tables, Reached.empty(self.tables, task)
        rolls = bool((tables.corner_rows[:, 6] > 0).any())
        kind = "level" if task.ground is None else task.ground.kind
        quantity = GROUNDED_DYNAMICS[kind, rolls]
        shape = self.device.shape(task.dtype, with_points=task.ground is not None)
        self._in_parts(
            lambda some: _PartRollout(self, some, task, quantity, shape).run(found),
            self._rollout_bytes(quantity, shape),
        )
        return found

    def _rollout_bytes(self, quantity: Quantity, shape: KernelShape) -> int:
        """Of a body in a rollout, copies for the way in and out included."""
        joints, item = shape.links - 1, np.dtype(shape.dtype).itemsize
        numbers = 3 * (2 * joints + 13) + 7 * joints + 16
        if shape.masks:
            numbers += int(self.device.points.max()) * memory_numbers(quantity) + shape.masks
        return item * numbers + 8 * shape.links + 64


class _Part:
    """Some of the bodies, in the order of the GPU.

    Attributes:
        slots: Threads that have a body; the others have no links.
        order, joint, words, count: As in `DeviceTables`, for each thread.
        shared_bytes: Of a block; 0 where the numbers of a body lie in the memory of its thread.
        places: In the shared memory, for each thread.
    """

    def __init__(self, executor: CudaExecutor, some: slice, dtype: str, quantity: Quantity) -> None:
        device, xp = executor.device, executor.xp
        self.xp, self.dtype, self.tables = xp, dtype, executor.tables
        count = device.count[some]
        slots, starts, self.shared_bytes = np.arange(len(count)), 0 * count, 0
        if not executor.fills(len(count)):
            launcher, item = executor.launcher, np.dtype(dtype).itemsize
            size = shared_numbers(quantity, self.tables.free_base, count, device.forks[some])
            blocks = SHARING * launcher.processors
            room = (launcher.shared_bytes // SHARING - RESERVED) // item
            slots, starts = block_slots(size, blocks, room)
            self.shared_bytes = item * int((starts + size).max())
            if slots[-1] >= WARP * blocks or size.max() > room:  # not all at the same time
                blocks = SCHEDULERS * launcher.processors
                slots, self.shared_bytes = block_slots(size, blocks, int(size.sum()))[0], 0
        place = np.zeros(slots[-1] + 1, dtype=np.int64)  # threads without a body have any
        place[slots] = np.arange(len(count))
        links, places = np.zeros((2, len(place)), dtype=np.int32)
        links[slots], places[slots] = count, starts
        self.places = xp.asarray(places)
        self.slots, self.count = xp.asarray(slots), xp.asarray(links)
        self.order = xp.asarray(device.order[some][place])
        self.joint = xp.asarray(device.joint[some][place])
        self.words = xp.ascontiguousarray(xp.asarray(device.words[:, some][:, place]))
        self.rows = xp.asarray(self.tables.rows, dtype=dtype)

    @property
    def bodies(self) -> Any:
        """Numbers of the bodies at `slots`."""
        return self.order[self.slots]

    def _columns(self, base: int) -> Any:
        first = self.xp.broadcast_to(self.xp.arange(base), (len(self.order), base))
        return self.xp.concatenate([first, base + self.joint], axis=1)

    def taken(self, array: Any, base: int, dtype: str | None = None) -> Any:
        """(base + most joints, bodies) numbers of these bodies, their joints in order."""
        found = self.xp.asarray(array)[self.order[:, None], self._columns(base)]
        return self.xp.ascontiguousarray(found.T.astype(dtype or self.dtype))

    def put(self, result: Any, found: Any, base: int) -> None:
        """Write numbers back to their bodies and joints; those behind the last one become 0."""
        inside = self.xp.arange(found.shape[0])[:, None] < base + self.count - 1
        found, slots = self.xp.where(inside, found, 0), self.slots
        result[self.bodies[:, None], self._columns(base)[slots]] = found.T[slots]


class _PartRollout(_Part):
    """Some of the bodies on their way."""

    def __init__(
        self, executor: CudaExecutor, some: slice, task: RolloutTask, quantity: Quantity,
        shape: KernelShape,
    ) -> None:  # fmt: skip
        super().__init__(executor, some, task.dtype, quantity)
        xp, tables = self.xp, self.tables
        self.executor, self.task, self.quantity, self.shape = executor, task, quantity, shape
        bodies = len(self.order)
        waves, law = task.waves, task.law
        rate = np.broadcast_to(2 * np.pi * waves.frequency[:, None], waves.phase.shape)
        servo = Servo(
            waves.amplitude, rate, waves.phase, waves.offset, law.kp, law.kd, law.torque
        )  # fmt: skip
        servos = xp.stack([self.taken(x, 0) for x in servo], axis=1)  # (joints, numbers, bodies)
        frequency = xp.asarray(waves.frequency)[self.order]
        q_base, v_base = _bases(tables)[:2]
        self.q = self.taken(task.q, q_base, "float64")
        self.v, self.work = self.taken(task.v, v_base), xp.zeros(bodies)
        self.origin = xp.zeros((3, bodies))
        nothing = xp.zeros(1, dtype=task.dtype)
        self.memory = self.below = nothing
        ground: tuple[Any, ...] = (nothing.view("int32"), nothing, nothing, nothing, nothing)
        if shape.masks and task.ground is not None:
            points = int(executor.device.points[some].max())
            ground = self._ground(task.ground)
            self.below = ground[3]
            size = (points, bodies, memory_numbers(quantity))
            self.memory = xp.full(size, np.nan, task.dtype)  # read after it is written
        self._recenter()
        self.q = xp.ascontiguousarray(self.q.astype(task.dtype))
        self._args = (
            servos, frequency, self.q, self.v, self.work, *ground, self.memory
        )  # fmt: skip

    def _of_bodies(self, x: np.ndarray) -> Any:
        return self.xp.asarray(x)[self.order].astype(self.dtype)

    def _ground(self, ground: Ground) -> tuple[Any, ...]:
        """Spans and numbers of the corners, cells of a field, the ground under each body, masks."""
        xp, tables = self.xp, self.tables
        own = own_numbers(self.quantity.passes)
        corners = tables.corner_rows[:, [*range(own), 7]]
        spans = np.stack([tables.corner_start, tables.corner_count], axis=1).astype(np.int32)
        cells = np.zeros((1, 4)) if ground.is_plane else ground.cells
        below = [xp.full(len(self.order), x, self.dtype) for x in ground.below]
        law = [self._of_bodies(x) for x in self.task.contact]
        masks = xp.zeros((self.shape.masks, len(self.order)), dtype="uint32")
        put = (xp.ascontiguousarray(xp.asarray(x, self.dtype)) for x in (corners, cells))
        return (xp.asarray(spans), *put, xp.stack([*below, *law]), masks)

    def run(self, found: Reached) -> None:
        """Take all steps, and write the result and what is recorded."""
        task, bodies = self.task, _as_numpy(self.bodies)
        q_base, v_base = _bases(self.tables)[:2]
        done = 0
        for stop, record in task.stops:
            self._advance(done, stop - done)
            done = stop
            if stop == task.begin:
                self._copy(found.first, self._placed(), q_base)
            if record and self.tables.free_base:
                found.trace[record, bodies] = _as_numpy(self._placed()[:7].T[self.slots])
        self._copy(found.q, self._placed(), q_base)
        self._copy(found.v, self.v, v_base)
        found.work[bodies] = _as_numpy(self.work[self.slots])

    def _copy(self, result: np.ndarray, part: Any, base: int) -> None:
        """Write numbers of these bodies into an array of all."""
        whole = self.xp.zeros(result.shape)
        self.put(whole, part, base)
        result[_as_numpy(self.bodies)] = _as_numpy(whole[self.bodies])

    def _advance(self, first: int, steps: int) -> None:
        for step in range(first, first + steps, LAUNCH_STEPS):
            count = min(LAUNCH_STEPS, first + steps - step)
            times = (np.int64(step), np.int32(count), np.float64(self.task.step))
            self.executor._launch(self.quantity, self.shape, self, (*times, *self._args))
            self._recenter()

    def _placed(self) -> Any:
        """(nq, bodies) configurations in the world."""
        q = self.q.astype("float64")
        if self.tables.free_base:
            q[:3] += self.origin
        return q

    def _recenter(self) -> None:
        """Count positions from where a body is: far from zero digits are lost."""
        if not self.tables.free_base:
            return
        ground = self.task.ground
        a, b = (0.0, 0.0) if ground is None else ground.slope
        x, y = self.q[:2].astype("float64")
        if ground is not None and not ground.is_plane:  # whole cells
            cells = self.xp.rint(self.xp.stack([x, y]) / ground.cell)
            self.below[ORIGIN_OF_CELLS] += cells.astype(self.dtype)
            x, y = ground.cell * cells
        shift = self.xp.stack([x, y, a * x + b * y])
        self.origin += shift
        self.q[:3] -= shift.astype(self.q.dtype)
        if self.shape.masks:
            self.memory[..., :3] -= shift.T.astype(self.dtype)


def _bases(tables: BodyTables) -> tuple[int, int, int]:
    """Numbers of the base in q, v and a third array."""
    return (7, 6, 6) if tables.free_base else (0, 0, 0)


def _as_numpy(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()
