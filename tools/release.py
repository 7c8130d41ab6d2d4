"""Dry run of a release: build wheel and sdist, install them in clean environments, try them.

    python tools/release.py [--python python3.12 ...] [--output dist]

By default every Python from 3.11 to 3.14 on the PATH or of pyenv is tried. In each environment the
wheel is installed alone: the README's first program and some commands run, and each feature that
needs an extra says which one. Then the extra studio is installed, and a viewer is saved; where
Chromium and Playwright are there, it is opened, and its pixels are looked at. Twine checks that an
index could show the README. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks import browser as browsers  # noqa: E402

PYTHONS = [f"python3.{minor}" for minor in (11, 12, 13, 14)]
LEAST_COLORS = 50  # that a body and a floor in light and shade have
PATIENCE_MS = 120_000
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
WALK = "walk snake --hinges physical --duration 0.5 --html walk.html"
COMMANDS = ["show crab --json", "verify crab --states 2", "export --runtime robot"]
# Extra that a feature needs, and a program that uses the feature.
FEATURES = [
    ("studio", "mr.examples.crab().view().save('crab.html')"),
    ("studio", "modurob show crab --html crab.html"),
    ("studio", "modurob studio --no-browser"),
    ("mujoco", "mr.walk(mr.examples.snake(3), engine='mujoco', hinges='physical', duration=0.1)"),
    ("mujoco", "modurob simulate crab --duration 0.1 --engine mujoco"),
    ("mujoco", "modurob evolve --population 4 --generations 1 --seconds 0.2 --no-films --output o"),
    ("evolve", "modurob walk snake --hinges physical --duration 0.1 --tune 8"),
    ("evolve", "modurob evolve --strategy map-elites --output elites"),
    ("gymnasium", "import modurob.environments"),
    ("cluster", "modurob control crab --monte-carlo 2 --cluster tcp://127.0.0.1:9"),
    ("cuda", "mr.examples.crab().model().compile(target='cuda')"),
    ("torch", "import modurob.interop.torch as m; m.function(mr.examples.crab().model(), 'step')"),
    ("jax", "import modurob.interop.jax as m; m.function(mr.examples.crab().model(), 'step')"),
    ("casadi", "import modurob.interop.casadi as m; m.graph(mr.examples.crab().model(), 'step')"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", nargs="+", default=PYTHONS, metavar="EXE")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        wheel = build(place, options.output)
        found = [exe for exe in map(usable, options.python) if exe]
        if not found:
            raise SystemExit(f"none of {', '.join(options.python)} is on the PATH")
        for exe in found:
            install(exe, wheel, place)
    count = f"{len(found)} of {len(options.python)} Pythons"
    print(f"{wheel.name} was tried with {count}: {options.output}")


def run(*command: object, **options: object) -> str:
    done = subprocess.run(
        [str(each) for each in command], capture_output=True, text=True, check=False, **options
    )  # pyright: ignore[reportCallIssue, reportArgumentType]
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def usable(name: str) -> str | None:
    """Path of a Python that runs; managers of versions leave names that do not."""
    of_pyenv = PYENV.glob(f"{name.removeprefix('python')}.*/bin/python")
    for exe in filter(None, (shutil.which(name), *map(str, of_pyenv))):
        if not subprocess.run(
            [exe, "-c", "import venv"], capture_output=True, check=False
        ).returncode:
            return exe
    print(f"{name}: not here, left out")
    return None


def build(place: Path, output: Path) -> Path:
    """Wheel of the sdist of the files that git knows."""
    tree, made = place / "tree", place / "made"
    run("git", "clone", "--quiet", ROOT, tree)
    env = environment(sys.executable, place / "build")
    run(env / "pip", "install", "--quiet", "build", "twine", "readme_renderer[md]")
    run(env / "python", "-m", "build", "--outdir", made, tree)  # the sdist, and the wheel from it
    (wheel,), (sdist,) = made.glob("*.whl"), made.glob("*.tar.gz")
    check(tree, wheel, sdist)
    run(env / "python", "-m", "twine", "check", "--strict", wheel, sdist)
    output.mkdir(exist_ok=True, parents=True)
    for file in (wheel, sdist):
        shutil.copy(file, output)
    return output / wheel.name


def check(tree: Path, wheel: Path, sdist: Path) -> None:
    """Everything of the package is in the wheel, nothing else; its facts are those of pyproject."""
    tracked = run("git", "-C", tree, "ls-files", "src/modurob").split()
    expected = {name.removeprefix("src/") for name in tracked}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (metadata,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    if names != expected:
        raise SystemExit(f"the wheel differs from the package: {sorted(names ^ expected)[:10]}")
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    for line in (f"Version: {project['version']}", "License-Expression: BSD-3-Clause"):
        if line not in text:
            raise SystemExit(f"the wheel's metadata lack '{line}'")
    if relative := re.findall(r"\]\((?!https?:)[^)]*\)", text):
        raise SystemExit(f"the wheel's README has links without an address: {relative[:5]}")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "tests/test_architecture.py"):
        if name not in inside:
            raise SystemExit(f"the sdist lacks {name}")


def environment(exe: str, place: Path) -> Path:
    """The programs of a new virtual environment."""
    run(exe, "-m", "venv", place)
    return place / ("Scripts" if sys.platform == "win32" else "bin")


def install(exe: str, wheel: Path, place: Path) -> None:
    version = run(exe, "-c", "import platform; print(platform.python_version())").strip()
    folder = place / version
    env, work = environment(exe, folder / "env"), folder / "work"
    work.mkdir()
    run(env / "pip", "install", "--quiet", wheel)
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert program is not None
    run(env / "python", "-c", program[1], cwd=work)
    for command in COMMANDS:
        run(env / "modurob", *command.split(), cwd=work)
    silent = [use for extra, use in FEATURES if f"'modurob[{extra}]'" not in output(env, use, work)]
    if silent:
        raise SystemExit(f"Python {version}: no extra is named by\n  " + "\n  ".join(silent))
    run(env / "pip", "install", "--quiet", f"{wheel}[studio]")
    run(env / "modurob", *WALK.split(), cwd=work)
    viewer = work / "walk.html"
    print(
        f"Python {version}: installed; the README's program and {len(COMMANDS)} commands ran; "
        f"{len(FEATURES)} features named their extra; a viewer of {viewer.stat().st_size:,} bytes "
        f"was saved and {seen(viewer)}"
    )


def seen(viewer: Path) -> str:
    """Say what Chromium draws of a viewer."""
    if missing := browsers.missing():
        return f"not opened: {missing}"
    from PIL import Image

    with browsers.browsing() as browser:
        page = browser.new_page()
        page.goto(viewer.as_uri())
        page.wait_for_function("window.modurob?.stage?.playback.active", timeout=PATIENCE_MS)
        page.wait_for_timeout(1000)  # until the first frames are drawn
        shot = page.screenshot(timeout=PATIENCE_MS)
    colors = Image.open(io.BytesIO(shot)).convert("RGB").getcolors(2**24) or []
    if len(colors) < LEAST_COLORS:
        raise SystemExit(f"Chromium draws {viewer.name} in fewer than {LEAST_COLORS} colors")
    return f"drawn by Chromium in {len(colors):,} colors"


def output(env: Path, use: str, work: Path) -> str:
    """Everything that a command, or else a line of Python, prints."""
    command = [env / "python", "-c", f"import modurob as mr; {use}"]
    if use.startswith("modurob "):
        command = [env / "modurob", *use.split()[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=work)
    return " ".join((done.stdout + done.stderr).split())


if __name__ == "__main__":
    main()
