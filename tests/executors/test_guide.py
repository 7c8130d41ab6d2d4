"""The guide to executors: its example runs and prints what the page shows."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "guide" / "cluster.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_page_shows(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(example, {})
    (shown,) = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)
    assert capsys.readouterr().out == shown
