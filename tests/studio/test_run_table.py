"""Runs beside each other: the settings that tell them apart, orders, and two in numbers."""

import json
import re

import pytest

from modurob import StateError
from modurob.scenario.settings import RunRecord
from modurob.studio import run_table
from modurob.studio.project import NEW_SETTINGS


def record(number, title="wave", seconds=1.0, **settings):
    return RunRecord(
        number=number, title=title, status="finished", seconds=seconds, took=0.5,
        settings=NEW_SETTINGS.edited(**settings),
    )  # fmt: skip


RUNS = [
    record(1, "b", 3.0, frequency=0.5, gait={}),
    record(2, "a", 1.0, frequency=1.0, controller="PdGravity"),
    record(3, "c", 2.0, frequency=0.5, estimator="Ekf"),
]


def test_tags_name_the_settings_that_differ_and_no_others():
    assert run_table.tags(RUNS) == {
        1: "frequency 0.5, controller computed torque, estimator none",
        2: "frequency 1, controller PD with gravity compensation, estimator none",
        3: "frequency 0.5, controller computed torque, estimator EKF",
    }
    assert run_table.tags([RUNS[0], RUNS[0]]) == {1: ""}


@pytest.mark.parametrize(
    ("order", "numbers"), [("latest", [3, 2, 1]), ("title", [2, 1, 3]), ("seconds", [1, 3, 2])]
)
def test_orders(order, numbers):
    found = sorted(RUNS, key=run_table.ORDERS[order][1])
    assert [run.number for run in found] == numbers


def panel(y, t=(0.0, 1.0, 2.0), name="m1.hinge", **line):
    lines = [{"name": name, "t": [*t], "y": [*y], **line}]
    return {"panels": [{"key": "q", "title": "Position", "unit": "rad", "lines": lines}]}


def rows(html):
    found = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in found]


def test_two_runs_in_numbers(tmp_path):
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    first.write_text(json.dumps(panel([0.0, -4.0, 1.0])))
    # twice as many times, and a gap: what is between is interpolated
    second.write_text(json.dumps(panel([0.0, 1.0, 2.0, None], (0.0, 0.5, 1.0, 1.5))))
    table = rows(run_table.comparison(tmp_path, RUNS[0], RUNS[1]))
    assert table[0] == ["", "run 1", "run 2", "difference"]
    assert ["controller", "computed torque", "PD with gravity compensation", ""] in table
    assert ["frequency", "0.5", "1", "+0.5"] in table
    assert ["simulated [s]", "3", "1", "-2"] in table
    assert table[-1] == ["Position, largest [rad]", "4", "2", "at most 6"]
    second.write_text(json.dumps(panel([0.0, 1.0, 2.0], name="m2.hinge")))
    assert rows(run_table.comparison(tmp_path, *RUNS[:2]))[-1][-1] == "other lines"
    with pytest.raises(StateError, match="the files of run 3 are gone"):
        run_table.comparison(tmp_path, RUNS[0], RUNS[2])
