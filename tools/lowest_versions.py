"""Install the lowest versions that pyproject.toml allows, and run some tests with them.

New virtual environments in a temporary folder get exactly ``name==lowest``: one for the core, with
MuJoCo and what the tests themselves need; one for the studio, whose own dependencies ask for more
than the core does; one for the extras that search, environments, clusters and CasADi need. A bound
that is too low fails here; those of ``torch``, ``jax`` and ``cuda`` are not tried, which are
gigabytes. Takes some minutes and about 1 GB.

    python tools/lowest_versions.py [-k EXPRESSION ...]     arguments go to pytest
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_TESTS = [x for x in EXTRAS["dev"] if x.startswith(("pytest>", "hypothesis>", "jsonschema>"))]
CORE_TESTS = [  # none that compares with Pinocchio, which asks for a newer NumPy
    "tests/spatial/test_any_scalar.py",
    "tests/spatial/test_scalars.py",
    "tests/model/test_values_and_states.py",
    "tests/model/test_examples.py",
    "tests/compiler/test_hosts.py",
    "tests/compiler/test_sincos.py",
    "tests/dynamics/test_models_as_values.py",
    "tests/dynamics/test_prepared_rows.py",
    "tests/dynamics/test_same_bytes.py",
    "tests/contracts",
    "tests/estimation/test_ekf.py",
    "tests/interop/test_mjcf.py",
    "tests/modules",
    "tests/organism/test_files.py",
    "tests/symbolic/test_output.py",
    "tests/sim/test_running.py",
    "tests/drawing",
    "tests/cli/test_cli.py",
    "tests/cli/test_control_command.py",
]
STUDIO_TESTS = ["tests/studio/test_session.py", "tests/studio/test_guard.py"]
MORE = ("evolve", "gymnasium", "cluster", "casadi")
MORE_TESTS = [
    "tests/search/test_evolution.py",
    "tests/environments",
    "tests/executors/test_cluster.py",
    "tests/frameworks/test_casadi.py",
]


def lowest(requirements: list[str]) -> list[str]:
    """``name==version`` for requirements that begin with a lower bound."""
    found = [re.match(r"([\w-]+)>=([\d.]+)", each) for each in requirements]
    missing = [each for each, match in zip(requirements, found, strict=True) if match is None]
    if missing:
        sys.exit(f"no lower bound in pyproject.toml: {', '.join(missing)}")
    return [f"{match[1]}=={match[2]}" for match in found if match]


ENVIRONMENTS = {
    "core": (lowest(PROJECT["dependencies"] + EXTRAS["mujoco"] + FOR_TESTS), CORE_TESTS),
    "studio": (PROJECT["dependencies"] + FOR_TESTS + lowest(EXTRAS["studio"]), STUDIO_TESTS),
    "more": (
        PROJECT["dependencies"] + EXTRAS["mujoco"] + FOR_TESTS
        + lowest([each for name in MORE for each in EXTRAS[name]]),
        MORE_TESTS,
    ),
}  # fmt: skip


def tested(requirements: list[str], tests: list[str], arguments: list[str]) -> bool:
    """Whether tests pass in an environment with these requirements."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "Scripts" if os.name == "nt" else "bin", "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *requirements], check=True)
        subprocess.run([*install, "--no-deps", "--editable", ROOT], check=True)
        environment = {**os.environ, "MODUROB_CACHE_DIR": str(Path(folder, "cache"))}
        command = [python, "-m", "pytest", *tests, *arguments]
        return not subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main(arguments: list[str]) -> int:
    failed = []
    for name, (requirements, tests) in ENVIRONMENTS.items():
        print(f"{name}: {' '.join(requirements)}", flush=True)
        if not tested(requirements, tests, arguments):
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
