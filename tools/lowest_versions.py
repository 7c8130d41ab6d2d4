"""Install the lowest versions that pyproject.toml allows, and run some tests with them.

A new virtual environment in a temporary folder gets exactly ``name==lowest`` for every dependency
of the core, of the extras ``studio`` and ``mujoco``, and for what the tests themselves need. Takes
some minutes and about 1 GB; a bound that is too low fails here.

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
EXTRAS = ("studio", "mujoco")
FOR_TESTS = ("pytest", "hypothesis", "jsonschema", "pin")  # of the extra `dev`
TESTS = [
    "tests/spatial",
    "tests/equations",
    "tests/model/test_values_and_states.py",
    "tests/model/test_examples.py",
    "tests/compiler/test_hosts.py",
    "tests/compiler/test_sincos.py",
    "tests/dynamics/test_same_bytes.py",
    "tests/dynamics/test_prepared_rows.py",
    "tests/dynamics/test_derivatives.py",
    "tests/contracts",
    "tests/modules",
    "tests/organism/test_files.py",
    "tests/interop/test_mjcf.py",
    "tests/symbolic",
    "tests/sim/test_running.py",
    "tests/sim/test_pictures.py",
    "tests/drawing",
    "tests/studio/test_session.py",
    "tests/studio/test_guard.py",
    "tests/cli",
]
REQUIREMENT = re.compile(r"([\w-]+)(\[[\w,]+\])?>=([\d.]+)")


def lowest() -> list[str]:
    """``name==version`` for every requirement with a lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(each for name in EXTRAS for each in extras[name])]
    wanted += [each for each in extras["dev"] if re.match(r"[\w-]+", each)[0] in FOR_TESTS]
    found = [REQUIREMENT.match(each) for each in wanted]
    missing = [each for each, match in zip(wanted, found, strict=True) if match is None]
    if missing:
        sys.exit(f"no lower bound in pyproject.toml: {', '.join(missing)}")
    return [f"{match[1]}=={match[3]}" for match in found]


def main(arguments: list[str]) -> int:
    pins = lowest()
    print("\n".join(pins), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "Scripts" if os.name == "nt" else "bin", "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *pins], check=True)
        subprocess.run([*install, "--no-deps", "--editable", ROOT], check=True)
        environment = {**os.environ, "MODUROB_CACHE_DIR": str(Path(folder, "cache"))}
        command = [python, "-m", "pytest", *TESTS, *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
