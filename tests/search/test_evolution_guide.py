"""The guide to evolution: its examples run."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "evolution.md"


def test_the_examples_run_in_the_order_of_the_page():
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, scope)
    assert scope["found"].evaluations == 12
    assert scope["found"].best[0].score >= scope["found"].history[0].best
