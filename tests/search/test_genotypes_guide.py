"""The guide to genotypes: its examples run, and its numbers are right."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "genotypes.md"


def test_the_examples_run_in_the_order_of_the_page():
    scope, text = {}, PAGE.read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, scope)
    assert scope["Genotype"].from_file(scope["path"]) == scope["best"]
    ports = [(a, b) for a in (2, 3, 4, 5) for b in (3, 4)]
    keys = {scope["pair"](*each).canonical(gait=False) for each in ports}
    assert f"# {len(keys)} of {len(ports)}" in text
