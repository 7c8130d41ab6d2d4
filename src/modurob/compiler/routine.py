"""A compiled algorithm bound to one model: batches on threads, and single states."""

from __future__ import annotations

import ctypes
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any

import numpy as np

from modurob.compiler.driver import LARGE_RESULT, STREAM_ALIGN, Arguments, io_vectors
from modurob.compiler.entry import DATA
from modurob.compiler.jit import Library, host
from modurob.compiler.pool import cores, pool
from modurob.equations.passes import Quantity
from modurob.errors import StateError

METH_FASTCALL = 0x0080
ALIGNMENT = 64  # bytes; the widest vectors
WORTH_A_THREAD = 20_000  # joint states; about 100 us of work, ten times the cost of a hand-over


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Bound(ctypes.Structure):
    """Memory of a builtin's `self`: arguments first, where machine code reads them.

    The builtin reads its method definition when it is freed, so that must not die before it.
    """

    _fields_ = (("arguments", Arguments), ("method", _MethodDef))


class Routine:
    """One quantity of one model.

    Args:
        library: Code for vectors of `width` states.
        own_vectors: Of workspace, besides records and results.
        numbers: Further integers of `Arguments`.
        tables: Arrays that compiled code reads, by their names in `Arguments`.

    Attributes:
        result: Shape of the result for one state.
    """

    def __init__(
        self,
        library: Library,
        width: int,
        quantity: Quantity,
        joints: int,
        free_base: bool,
        bodies: int,
        own_vectors: int,
        numbers: Mapping[str, int] | None = None,
        **tables: np.ndarray,
    ) -> None:
        self.quantity, self._width = quantity, width
        self.nq, self.nv = (joints + 7, joints + 6) if free_base else (joints, joints)
        self.result = quantity.shape(joints, free_base, bodies)
        results = quantity.result_size(joints, free_base, bodies)
        self._vectors = io_vectors(joints) + results + own_vectors
        self._kept = (library, tables)  # alive as long as their addresses are in use
        self._spaces: dict[int, list[np.ndarray]] = defaultdict(list)  # by their threads
        self._fixed = Arguments(
            **{name: table.ctypes.data for name, table in tables.items()},
            joints=joints,
            **(numbers or {}),
            nq=self.nq,
            nv=self.nv,
            results=results,
            bodies=bodies,
        )

    @cached_property
    def single(self) -> Callable[..., np.ndarray | None]:
        """``single(q, v, x, out)`` for plain float64 arrays of one state.

        It returns out, or None when it cannot take them.
        """
        return self._builtin("single", 1)

    def empty(self, *batch: int) -> np.ndarray:
        """An array for results; a large one is aligned, to be written past the caches."""
        shape = batch + self.result
        numbers = math.prod(shape)
        if 8 * numbers < LARGE_RESULT:
            return np.empty(shape)
        raw = np.empty(numbers + STREAM_ALIGN // 8)
        start = -raw.ctypes.data % STREAM_ALIGN // 8
        return raw[start : start + numbers].reshape(shape)

    def several(self, states: int) -> Callable[..., np.ndarray | None]:
        """As `single`, for arrays with a row for each of that many states."""
        return self._builtin("several", states)

    def prepared(
        self, states: int | None, out: np.ndarray, answer: Any, fallback: Callable[..., Any]
    ) -> Callable[..., Any]:
        """``prepared(q, v, x)`` for one state or rows of several; the results go to `out`.

        It returns `answer`, and ``fallback(q, v, x)`` when it cannot take the arrays.
        """
        name, count = ("single", 1) if states is None else ("several", states)
        return self._builtin(name, count, None, out, answer, fallback)

    def pushed(self, external: np.ndarray) -> Callable[..., np.ndarray | None]:
        """As `single`, under the wrenches that a (links, 6) array holds when it is called."""
        return self._builtin("single", 1, external)

    def batch(
        self,
        q: np.ndarray,
        v: np.ndarray | None,
        x: np.ndarray | None,
        external: np.ndarray | None,
        threads: int,
    ) -> np.ndarray | None:
        """Results for (N, ...) contiguous float64 arrays; None when an input is not finite."""
        count = len(q)
        y = self.empty(count)
        if count == 0:
            return y
        arguments = self._arguments({"q": q, "v": v, "x": x, "y": y, "external": external})
        self._launch("run", arguments, count, threads)
        return None if arguments.not_finite else y

    def march(
        self,
        q: np.ndarray,
        v: np.ndarray,
        x: np.ndarray,
        external: np.ndarray | None,
        duration: float,
        steps: int,
        threads: int,
    ) -> bool:
        """Take steps, in place in (N, ...) contiguous arrays; False when a number is not finite."""
        arguments = self._arguments({"q": q, "v": v, "x": x, "external": external})
        arguments.duration, arguments.steps = duration, steps
        self._launch("march", arguments, len(q), threads)
        return not arguments.not_finite

    def _arguments(self, arrays: Mapping[str, np.ndarray | None]) -> Arguments:
        """Arguments of a call with arrays that have a row for each state."""
        arguments = Arguments.from_buffer_copy(self._fixed)
        for name, array in arrays.items():
            if array is not None:
                setattr(arguments, name, array.ctypes.data)
                arguments.last = len(array) - 1
        return arguments

    def _launch(self, function: str, arguments: Arguments, count: int, threads: int) -> None:
        spaces = self._spaces[threads]
        space = spaces.pop() if spaces else self._workspaces(threads)
        if threads == 1:
            run = _driver(self._kept[0], function)
            run(ctypes.addressof(arguments), 0, count, space.ctypes.data)
        else:
            address = self._kept[0].address(function)
            pool().run(address, ctypes.addressof(arguments), count, space)
        spaces.append(space)

    def _workspaces(self, count: int) -> np.ndarray:
        size = 8 * self._width * self._vectors
        size += -size % ALIGNMENT
        return aligned(size * count).reshape(count, size)

    def _builtin(
        self,
        name: str,
        states: int,
        external: np.ndarray | None = None,
        out: np.ndarray | None = None,
        answer: Any = None,
        fallback: Callable[..., Any] | None = None,
    ) -> Callable[..., Any]:
        if not _layout_is_known():
            return fallback or (lambda *_: None)
        space = self._workspaces(1)
        arguments = self._arguments({"external": external, "y": out})
        if fallback is not None:
            arguments.answer, arguments.fallback = id(answer), id(fallback)
        arguments.last, arguments.workspace = states - 1, space.ctypes.data
        arguments.array_type, arguments.float64 = id(np.ndarray), id(np.dtype(np.float64))
        arguments.refused = id(None)
        address = self._kept[0].address(name)
        method = _MethodDef(b"modurob", address, METH_FASTCALL, None)
        bound = _Bound(arguments, method)
        bound.kept = (space, external, out, answer, fallback, *self._kept)
        owner = np.frombuffer(memoryview(bound).cast("B"), dtype=np.uint8)
        at_method = ctypes.addressof(bound) + _Bound.method.offset
        return _new_builtin()(at_method, owner, None)


def aligned(size: int) -> np.ndarray:
    """(size,) zero bytes that vectors can be loaded from."""
    raw = np.zeros(size + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


def memory_blocks(states: int, *shape: int) -> np.ndarray:
    """(blocks, *shape, states of a vector) zeros: the memory of points, see `equations.passes`."""
    width = host().width
    blocks = (-(-states // width), *shape, width)
    return aligned(8 * math.prod(blocks)).view(float).reshape(blocks)


def thread_count(threads: int | str, joint_states: int) -> int:
    """Number of threads for a batch."""
    if threads == "auto":
        most = joint_states // WORTH_A_THREAD
        return min(cores(), most) if most > 1 else 1
    if isinstance(threads, int | np.integer) and threads is not True and threads >= 1:
        return min(int(threads), cores())
    raise StateError(f"threads must be 'auto' or a number from 1 up, got {threads!r}")


@cache
def _driver(library: Library, function: str) -> Any:
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    return library.function(function, pointer, number, number, pointer)


@cache
def _new_builtin() -> Any:
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make


@cache
def _layout_is_known() -> bool:
    """Check that array objects have the layout that `single` reads (64-bit CPython with a GIL)."""
    probe = np.arange(3.0)
    return ctypes.c_void_p.from_address(id(probe) + DATA).value == probe.ctypes.data
