"""The guide to gaits: its examples run, and its claims are those of the code."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from modurob.gaits import GAITS

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "gaits.md"
PICTURE = PAGE.parents[1] / "images" / "gaits.png"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_examples_run_in_the_order_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(block, scope)
    assert {path.name for path in tmp_path.iterdir()} == {"wave.png", "gaits.png"}
    with Image.open("gaits.png") as drawn, Image.open(PICTURE) as kept:
        assert drawn.size == kept.size
    order, cycle, low = capsys.readouterr().out.splitlines()
    before, after = map(float, order.split())
    assert before < 0.95
    assert after == pytest.approx(1.0)
    assert cycle == "4 2.0"
    assert f"low={float(re.search(r'low=([0-9.]+)', low)[1]):.2g}, high=1.0" in TEXT
    assert np.shape(scope["q"]) == (5,)


def test_the_page_names_every_kind():
    for kind in GAITS.values():
        assert f"| `{kind.__name__}` |" in TEXT
