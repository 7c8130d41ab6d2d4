"""Little compiled functions of some numbers, for looking at the compiler from outside."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from modurob.compiler import driver
from modurob.compiler.emit_llvm import FunctionWriter, Slot
from modurob.compiler.jit import compile_ir, host

ALIGNMENT = 64  # bytes; the widest vectors

Write = Callable[[FunctionWriter, list[Slot]], list[str]]


def compiled(write: Write, inputs: int, outputs: int) -> Callable[[np.ndarray], np.ndarray]:
    """A function (N, inputs) -> (N, outputs); `write` writes its body for a block of states."""
    width = host().width
    writer = FunctionWriter(width)
    with writer.loop("0", "%blocks") as block:
        start = writer.offset("%given", writer.value(f"mul i64 {block}, {inputs}"))
        end = writer.offset("%found", writer.value(f"mul i64 {block}, {outputs}"))
        values = write(writer, [Slot(start, k) for k in range(inputs)])
        for k, value in enumerate(values):
            writer.store(Slot(end, k), value)
    writer.do("ret void")
    head = "define void @run(ptr %given, ptr %found, i64 %blocks) {\nentry:\n"
    ir = driver.declarations(width) + head + "\n".join(writer.lines) + "\n}\n"
    pointer = ctypes.c_void_p
    library = compile_ir(ir)
    run = library.function("run", pointer, pointer, ctypes.c_int64)

    def call(x: np.ndarray) -> np.ndarray:
        assert library is not None  # the code lives as long as this function
        blocks = -(-len(x) // width)
        given, found = _aligned(blocks, inputs, width), _aligned(blocks, outputs, width)
        rows = np.zeros((blocks * width, inputs))
        rows[: len(x)] = x
        given[...] = rows.reshape(blocks, width, inputs).swapaxes(1, 2)
        run(given.ctypes.data, found.ctypes.data, blocks)
        return found.swapaxes(1, 2).reshape(-1, outputs)[: len(x)]

    return call


def _aligned(*shape: int) -> np.ndarray:
    size = int(np.prod(shape))
    raw = np.zeros(8 * size + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + 8 * size].view(np.float64).reshape(shape)
