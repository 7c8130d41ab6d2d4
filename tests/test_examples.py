"""Every example runs, in an empty folder, and makes the files that it names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tools import gallery

import modurob as mr

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LIMIT = 1200  # [s] a program that hangs; busy machines are many times slower
FRAMEWORKS = ("casadi", "jax", "torch")  # extras that a file is named after


def run(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    search = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": search, "PYTHONIOENCODING": "utf-8"},
        timeout=LIMIT,
    )


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_makes_its_files(path, tmp_path):
    framework = path.stem.split("_")[-1]
    if framework in FRAMEWORKS and find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    done = run(path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    named = sorted(set(re.findall(r"output/[\w.-]+\.\w+", done.stdout)))
    made = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.*"))
    assert named == made
    if path.stem == "00_first_organism":
        assert "matches meister2013" in done.stdout
        assert mr.load(tmp_path / "output" / "crab.json") == mr.examples.crab()
    for name in named:
        if name.endswith(".png"):
            image = Image.open(tmp_path / name)
            assert image.format == "PNG"
            assert np.asarray(image.convert("RGB"), dtype=float).var() > 100  # not blank
        elif name.endswith(".json"):
            assert json.loads((tmp_path / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_explains_itself(path):
    source = path.read_text(encoding="utf-8")
    assert source.startswith('"""')
    assert f"examples/{path.name}" in source


def test_first_example_fails_when_the_crab_is_another(tmp_path):
    source = (ROOT / "examples" / "00_first_organism.py").read_text(encoding="utf-8")
    wrong = source.replace('dock("m4", 3, "m5", 5)', 'dock("m4", 3, "m5", 4)')
    assert wrong != source
    (tmp_path / "wrong.py").write_text(wrong, encoding="utf-8")
    done = run(tmp_path / "wrong.py", tmp_path)
    assert done.returncode == 1
    assert "matches meister2013" not in done.stdout


def test_the_gallery_shows_every_program_as_it_is():
    assert sorted(gallery.ORDER) == sorted(path.stem for path in gallery.PROGRAMS.glob("*.py"))
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page()
    for name in gallery.ORDER:
        assert (gallery.PICTURES / f"{name}.webp").is_file()
