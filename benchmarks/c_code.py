"""Peers that are compiled by gcc: C that CasADi and SymPy generate, and loops around Pinocchio."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from modurob import Model

FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-w")
LONGEST = 30_000  # operations of a function of CasADi; gcc takes 13 s of CPU time for 26,000
MATRICES = {"mass_matrix": (2,), "inverse_dynamics_derivatives": (0, 1, 2)}  # by q, v, a
LOOPS = Path(__file__).parent / "pinocchio_loops.cpp"

_folder = tempfile.TemporaryDirectory(prefix="modurob-benchmarks-")
FOLDER = Path(_folder.name)  # of sources and libraries, removed with the process
_numbers = itertools.count()  # a name that comes again would open the library of before


class NoPeer(Exception):
    """A peer that cannot run here, and why."""


def built(source: Path, *flags: str) -> Path:
    """The shared library of a C or C++ file."""
    compiler = "g++" if source.suffix == ".cpp" else "gcc"
    if shutil.which(compiler) is None:
        raise NoPeer(f"no {compiler}")
    library = FOLDER / f"{source.stem}.so"
    command = [compiler, *FLAGS, str(source), "-o", str(library), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise NoPeer(f"{compiler} failed: {done.stderr[:200]}")
    return library


class CasadiCode:
    """C that CasADi generates from the simplified operations of a model, one state a call.

    Attributes:
        operations: Of one state.
        out: Results of one state, of all matrices one after the other.
    """

    LOOP = """
void batch(const double* q, const double* v, const double* x, double* out, long n, long size, long states) {{
  static double w[{work}];
  for (long k = 0; k < states; ++k) {{
    const double* arg[] = {{q + k * n, v + k * n, x + k * n}};
    double* res[] = {{{results}}};
    {name}(arg, res, 0, w, 0);
  }}
}}
"""  # noqa: E501

    def __init__(self, model: Model, name: str) -> None:
        try:
            import casadi

            from modurob.interop.casadi import graph
        except ImportError as error:
            raise NoPeer("not installed") from error
        plain = graph(model, "inverse_dynamics" if name in MATRICES else name)
        given = plain.sx_in()
        found = [plain(*given)]
        if name in MATRICES:  # transposed: CasADi counts down the columns
            found = [casadi.densify(casadi.jacobian(found[0], given[k]).T) for k in MATRICES[name]]
        function = casadi.Function(name, given, found)
        self.operations, self.n = function.n_instructions(), model.nv
        if self.operations > LONGEST:
            raise NoPeer(f"{self.operations:,} operations, {LONGEST:,} are compiled")
        size = model.nv**2 if name in MATRICES else model.nv
        self.out = np.empty(size * len(found))
        results = ", ".join(f"out + k * size + {i * size}" for i in range(len(found)))
        source = FOLDER / f"{name}_{next(_numbers)}.c"
        code = casadi.CodeGenerator(source.name)
        code.add(function)
        text = code.dump() + self.LOOP.format(
            name=name, work=max(1, function.sz_w()), results=results
        )
        source.write_text(text, encoding="utf-8")
        library = built(source, "-lm")
        self._batch = ctypes.CDLL(str(library)).batch
        self._batch.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_long] * 3
        self._batch.restype = None
        self._external = casadi.external(name, str(library))

    def batch(self, *arrays: np.ndarray) -> Callable[[], np.ndarray]:
        """A call for all states of contiguous (states, n) arrays, with the loop in C."""
        states = len(arrays[0])
        out = np.empty((states, len(self.out)))
        addresses = [x.ctypes.data for x in (*arrays, out)]
        given = (*addresses, self.n, len(self.out), states)

        def call() -> np.ndarray:
            self._batch(*given)
            return out

        call.keep = arrays  # type: ignore[attr-defined]
        return call

    def trigger(self, *arrays: np.ndarray) -> Callable[[], Any]:
        """A call for one state through CasADi's buffers, its fastest binding: no arguments."""
        buffer, trigger = self._external.buffer()
        for k, array in enumerate(arrays):
            buffer.set_arg(k, memoryview(array))
        buffer.set_res(0, memoryview(self.out))
        self._kept = (buffer, arrays)
        return trigger


@cache
def pinocchio_loops() -> PinocchioLoops:
    """The loops, compiled once."""
    return PinocchioLoops()


class PinocchioLoops:
    """Loops in C++ over the functions of Pinocchio's wheel that have no batches of their own."""

    def __init__(self) -> None:
        import pinocchio

        root = Path(pinocchio.__file__).parents[4]
        include, lib = root / "include", root / "lib"
        if not (include / "eigen3").is_dir():
            raise NoPeer("no headers of Eigen (wheel cmeel-eigen)")
        boost = next(lib.glob("libboost_python*.so"), None)
        if boost is None:
            raise NoPeer("no Boost.Python beside Pinocchio")
        library = built(
            LOOPS, "-std=c++17", "-DNDEBUG", "-mno-avx", f"-I{include}", f"-I{include / 'eigen3'}",
            f"-I{sysconfig.get_paths()['include']}", f"-L{lib}", "-lpinocchio_default",
            f"-l{boost.stem.removeprefix('lib')}", f"-Wl,-rpath,{lib}",
        )  # fmt: skip
        self._library = ctypes.PyDLL(str(library))

    def batch(self, name: str, peer: Any, data: Any, *arrays: np.ndarray) -> Callable[[], None]:
        """A call for all states of contiguous (states, n) arrays; the last one stays in data."""
        function = getattr(self._library, name)
        function.argtypes = [ctypes.py_object] * 2 + [ctypes.c_void_p] * 3 + [ctypes.c_long] * 2
        function.restype = None
        addresses = [x.ctypes.data for x in arrays]

        def call() -> None:
            function(peer, data, *addresses, arrays[0].shape[1], len(arrays[0]))

        return call
