"""Run the numeric tests as on other machines: without SIMD, and with every other vector width.

The width of this machine is that of all other tests. With another width alone, derivatives are
compared with Pinocchio and not with differences too.

Each pass is a process of its own, because the libraries choose their code when they are loaded.
Used by ``make test-simd``; arguments go to pytest.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from numpy._core._multiarray_umath import __cpu_dispatch__  # what NumPy can be told to leave out

from modurob.compiler.jit import Host

ROOT = Path(__file__).parents[1]

LANES = [  # compiled code, which knows how many states a vector holds
    "tests/compiler/test_sincos.py",
    "tests/dynamics/test_same_bytes.py",
    "tests/dynamics/test_prepared_rows.py",
    "tests/dynamics/test_derivatives.py",
]
SUMS = [  # what depends on fused multiply-adds and on the libraries' order of additions
    "tests/spatial/test_inertia.py",
    "tests/spatial/test_scalars.py",
    "tests/spatial/test_se3.py",
    "tests/spatial/test_so3.py",
    "tests/equations",
    "tests/model/test_values_and_states.py",
    "tests/dynamics/test_identities.py",
    "tests/estimation/test_ekf.py",
    "tests/sim/test_manifold.py",
]

X86 = platform.machine() in ("x86_64", "AMD64")
PASSES = {
    "no SIMD, vectors of 2": {
        "NPY_DISABLE_CPU_FEATURES": " ".join(__cpu_dispatch__),
        "MODUROB_CPU": "generic",
        "MODUROB_VECTOR_WIDTH": "2",
        **({"OPENBLAS_CORETYPE": "Prescott"} if X86 else {}),
    },
    "vectors of 4": {"MODUROB_VECTOR_WIDTH": "4"},
    "vectors of 8": {"MODUROB_VECTOR_WIDTH": "8"},
}


def main(arguments: list[str]) -> int:
    failed, own = [], str(Host().width)
    for name, variables in PASSES.items():
        if variables == {"MODUROB_VECTOR_WIDTH": own}:
            continue
        settings = " ".join(f"{key}={value!r}" for key, value in variables.items())
        print(f"{name}: {settings}", flush=True)
        start = time.monotonic()
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **variables}
        tests = [*LANES, *SUMS] if "MODUROB_CPU" in variables else [*LANES, "-k", "not differences"]
        command = [sys.executable, "-m", "pytest", *tests, *arguments]
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
            failed.append(name)
        print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
