"""Where and when something was measured: the head of every result file."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from modurob.compiler.routine import cores

PACKAGES = (
    "modurob", "numpy", "scipy", "llvmlite", "pydantic", "rpds-py", "pin", "mujoco", "filterpy",
)  # fmt: skip


def machine() -> dict[str, object]:
    """CPU model, cores, system, Python, package versions and date."""
    return {
        "cpu": _cpu_model(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def _version(package: str) -> str | None:
    if package == "modurob":  # may run from its source, without being installed
        import modurob

        return modurob.__version__
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
