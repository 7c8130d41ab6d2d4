"""CUDA text of populations compiled as plain C++: one body after the other, on the CPU."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess

import numpy as np


def _supported(flag):
    """The flag in a list, if the compiler knows it."""
    command = [COMPILER, flag, "-x", "c++", "-E", "-"]
    known = COMPILER and subprocess.run(command, input=b"", capture_output=True).returncode == 0
    return [flag] if known else []


COMPILER = shutil.which("g++") or shutil.which("clang++")
POISON = _supported("-ftrivial-auto-var-init=pattern")  # large numbers in what was not written
SHIM = """
#include <cmath>
#include <cstddef>
#define __global__
#define __device__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __shared__
struct Index { int x; };
extern "C" { Index blockIdx = {0}, blockDim = {1}, threadIdx = {0}; }
struct float4 { float x, y, z, w; };
struct double2 { double x, y; };
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline double2 make_double2(double x, double y) { return {x, y}; }
template <class T> static inline T __ldg(const T* p) { return *p; }
static inline int __ffs(unsigned x) { return __builtin_ffs(x); }
static inline void sincos(float a, float* s, float* c) { *s = std::sin(a); *c = std::cos(a); }
using std::fabs; using std::floor; using std::fmax; using std::fmin; using std::sqrt;
using std::trunc;
"""
TYPES = {np.int32: ctypes.c_int, np.int64: ctypes.c_longlong, np.float64: ctypes.c_double}


class CpuLauncher:
    """Runs the text of kernels in place of CuPy, with NumPy arrays."""

    xp = np
    free_bytes = 1 << 40
    processors = 1
    shared_bytes = 228 << 10

    def __init__(self, folder):
        self.folder = folder
        self.launched, self.shared = [], []  # numbers of bodies, bytes of shared memory

    def kernel(self, source, name, options=()):
        defined = "".join(f"#define {x[2:].replace('=', ' ')}\n" for x in options if x[:2] == "-D")
        text = SHIM + defined + source + f"\nreal shared[{self.shared_bytes} / sizeof(real)];"
        stem = hashlib.sha256(text.encode()).hexdigest()[:20]
        library = self.folder / f"{stem}.so"
        if not library.exists():
            (self.folder / f"{stem}.cpp").write_text(text, encoding="utf-8")
            command = [COMPILER, "-O0", *POISON, "-shared", "-fPIC", "-o", library, f"{stem}.cpp"]
            subprocess.run(command, cwd=self.folder, check=True)
        loaded = ctypes.CDLL(str(library))
        function, block = getattr(loaded, name), ctypes.c_int.in_dll(loaded, "blockIdx")
        shared = (ctypes.c_uint8 * self.shared_bytes).in_dll(loaded, "shared")

        def launch(grid, threads, args, shared_mem=0):
            assert all(x.flags.c_contiguous for x in args if isinstance(x, np.ndarray))
            given = [
                ctypes.c_void_p(x.ctypes.data) if isinstance(x, np.ndarray) else TYPES[type(x)](x)
                for x in args
            ]
            self.launched.append(np.count_nonzero(args[1]))
            self.shared.append(shared_mem)
            for block.value in range(grid[0] * threads[0]):
                ctypes.memset(shared, 0xFF, self.shared_bytes)  # not a number until it is written
                function(*given)
                assert set(shared[shared_mem : shared_mem + 64]) <= {0xFF}  # nothing beyond

        return launch
