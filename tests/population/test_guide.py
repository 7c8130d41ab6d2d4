"""The guide to populations: its examples run."""

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "population.md"


def test_the_examples_run_in_the_order_of_the_page():
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, scope)
    assert not scope["result"].failed.any()
    assert scope["result"].distance[scope["best"]] == scope["result"].distance.max() > 0
    np.testing.assert_allclose(scope["tau"], 0.0, atol=1e-9)  # of the accelerations without forces
