"""The guides to control and estimation: their examples run, their tables are those of the code."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from modurob import examples, simulate
from modurob.cli import cli
from modurob.control import ComputedTorque, gains, step_response

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


def commands():
    return re.findall(r"```console\n\$ modurob (.*)\n([\s\S]*?)```", page("control"))


@pytest.mark.parametrize(("command", "shown"), commands(), ids=["noise", "conditions"])
def test_commands_print_what_the_guide_shows(command, shown):
    result = CliRunner().invoke(cli, command.split())
    assert result.exit_code == 0
    assert [line.rstrip() for line in result.output.splitlines()] == shown.splitlines()


def test_the_gains_that_the_thesis_prints_do_what_the_guide_says():
    """The table's poles and times, from polynomials and from the motion of the pendulum."""
    number = r"([−\d.]+)"
    cells = rf"{number} \| {number} \| {number}, {number} \| {number} s"
    row = rf"^\| [12] \| (correct|as printed) \| {cells} \|$"
    rows = re.findall(row, page("control"), re.MULTILINE)
    assert len(rows) == 4
    values = {}
    for joint, (kind, *numbers) in zip((0, 0, 1, 1), rows, strict=True):
        k0, k1, *poles, time = (float(x.replace("−", "-")) for x in numbers)
        assert sorted(poles) == pytest.approx(sorted(np.roots([1, k1, k0])), rel=DIGITS)
        assert time == pytest.approx(gains.settling_time(k0, k1), rel=DIGITS)
        values[kind, joint] = k0, k1, time
    assert values["correct", 0][:2] == (6, 5)
    assert values["correct", 1][:2] == (50, 15)
    for joint in (0, 1):  # printed with the two swapped
        assert values["as printed", joint][:2] == values["correct", joint][1::-1]
    model = examples.double_pendulum().model("physical")
    for kind in ("correct", "as printed"):
        k0, k1, times = zip(*(values[kind, joint] for joint in (0, 1)), strict=True)
        run = simulate(model, None, None, 20.0, ComputedTorque(model, k0, k1), "DOP853",
                       reference=np.ones(2), record=0.01)  # fmt: skip
        found = step_response(run.t, run.q, np.ones(2)).settling
        np.testing.assert_allclose(found, times, rtol=2 * DIGITS)


def test_gains_of_the_guide_settle_in_the_time_it_says():
    rows = re.findall(r"^\| ([\d.]+) s \| (.*) \| (.*) \| (.*) \|$", page("control"), re.MULTILINE)
    assert len(rows) == 4
    for time, *cells in rows:
        full, lively, triple = ([float(x) for x in cell.split(", ")] for cell in cells)
        assert full == pytest.approx(gains.from_settling_time(float(time), 1.0), rel=DIGITS)
        assert lively == pytest.approx(gains.from_settling_time(float(time), 0.7), rel=DIGITS)
        assert triple == pytest.approx(gains.pid_from_settling_time(float(time)), rel=DIGITS)
