"""The guide to other programs: its examples run, its numbers are those of the code."""

import re
from pathlib import Path

from modurob import interop
from modurob.interop import mjcf, urdf_reader

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "interop.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_examples_run_in_the_order_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(block, scope)
    assert scope["model"].joint_names[0] == "m0.m0_hinge"
    assert len(scope["longer"]) == 6
    written = {"crab.urdf", "free_crab.urdf", "crab.xml", "modules.json", "assembly.json"}
    written |= {"ros2_crab.urdf", "crab.srdf", "servo_crab.xml"}
    assert {path.name for path in tmp_path.iterdir()} == written


def test_the_page_names_every_function_and_limit():
    for name in interop.__all__:
        assert f"`{name}`" in TEXT
    assert f"more than {urdf_reader.MOST_LINKS:,} links" in TEXT
    assert f"up to {mjcf.LONGEST_CHAIN} joints" in TEXT
    assert f"{mjcf.DUST:g} kg" in TEXT
