"""Where and when something was measured: the head of every result file."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from modurob.compiler.jit import host
from modurob.compiler.routine import cores

PACKAGES = (
    "modurob", "numpy", "scipy", "llvmlite", "pydantic", "rpds-py", "pin", "mujoco", "filterpy",
    "casadi", "dynibo", "jax", "frax", "mujoco-warp", "warp-lang",
)  # fmt: skip


def machine() -> dict[str, object]:
    """CPU model, its vectors, cores, their load, system, versions and date."""
    return {
        "cpu": _cpu_model(),
        "llvm_cpu": host().cpu,
        "doubles_in_a_vector": host().width,
        "cores": cores(),
        "load": os.getloadavg()[0],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "gcc": _gcc(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def _gcc() -> str | None:
    if shutil.which("gcc") is None:
        return None
    return subprocess.run(
        ["gcc", "-dumpfullversion"], capture_output=True, text=True
    ).stdout.strip()


def _version(package: str) -> str | None:
    if package == "modurob":  # may run from its source, without being installed
        import modurob

        return modurob.__version__
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
