"""The guides to control and estimation: their examples run, their tables are those of the code."""

import re
from pathlib import Path

import pytest

from modurob.control import gains

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
DIGITS = 1e-3  # four digits in the tables


def page(name):
    return (GUIDE / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["control", "estimation"])
def test_examples_run_and_print_what_the_guide_shows(name, capsys):
    text, names = page(name), {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, names)
    printed = capsys.readouterr().out
    shown = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert all(block in printed for block in shown), printed
    for comment in re.findall(r"# (consistent: .*)$", text, re.MULTILINE):
        assert comment in printed


def test_gains_of_the_guide_settle_in_the_time_it_says():
    rows = re.findall(r"^\| ([\d.]+) s \| (.*) \| (.*) \| (.*) \|$", page("control"), re.MULTILINE)
    assert len(rows) == 4
    for time, *cells in rows:
        full, lively, triple = ([float(x) for x in cell.split(", ")] for cell in cells)
        assert full == pytest.approx(gains.from_settling_time(float(time), 1.0), rel=DIGITS)
        assert lively == pytest.approx(gains.from_settling_time(float(time), 0.7), rel=DIGITS)
        assert triple == pytest.approx(gains.pid_from_settling_time(float(time)), rel=DIGITS)
