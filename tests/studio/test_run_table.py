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
    second.write_text(json.dumps(panel([0.0, -4.0, 6.0])))
    assert rows(run_table.comparison(tmp_path, *RUNS[:2]))[-1][-1] == "at most 5"  # in the end
    second.write_text(json.dumps(panel([0.0, 1.0, 2.0], name="m2.hinge")))
    assert rows(run_table.comparison(tmp_path, *RUNS[:2]))[-1][-1] == "other lines"
    with pytest.raises(StateError, match="the files of run 3 are gone"):
        run_table.comparison(tmp_path, RUNS[0], RUNS[2])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456, "0.1235"), (True, "yes"), (False, "no"), (3, "3"), (None, "none"), ("", "none"),
        ("sine", "sine"), ((1.5, 2, "x"), "1.5, 2, x"), (({}, {}), "2 set"), ((), "none"),
        ({"a": 0.5, "b": 1.25}, "a=0.5 b=1.25"), ({}, "none"), ("x" * 32, "x" * 32),
        ("x" * 33, "x" * 31 + "…"),
    ],
)  # fmt: skip
def test_values_are_shown_in_few_characters(value, text):
    assert run_table.shown(value) == text


def test_runs_that_differ_in_much_name_the_first_four_settings():
    other = {"frequency": 2.0, "duration": 7.0, "rtol": 1e-3, "dt": 2e-3, "gravity": 1.6, "seed": 4}
    one, two = record(1), record(2, **other)
    words = run_table.tags([one, two])[2]
    assert words.endswith(" and 2 more")
    assert len(words.split(", ")) == 4
    four = dict([*other.items()][:4])
    assert "more" not in run_table.tags([one, record(2, **four)])[2]
    assert run_table.differing([one, two]) == [
        name for name in type(NEW_SETTINGS).model_fields if name in other
    ]
    assert run_table.word("frequency") == "frequency"
    assert run_table.word("noise_q").islower()


def test_equal_numbers_have_no_difference_and_dashed_lines_are_not_compared(tmp_path):
    first, second = panel([0.0, -4.0, 1.0]), panel([0.0, -4.0, 1.0])
    for data, y in ((first, 50.0), (second, 70.0)):
        dashed = {"name": "m1.hinge", "t": [0.0], "y": [y], "dashed": True}
        data["panels"][0]["lines"].append(dashed)
    second["panels"].append({"key": "v", "title": "Velocity", "unit": "rad/s", "lines": []})
    (tmp_path / "1.json").write_text(json.dumps(first))
    (tmp_path / "2.json").write_text(json.dumps(second))
    table = rows(run_table.comparison(tmp_path, RUNS[0], record(2, "a", 3.0)))
    assert ["simulated [s]", "3", "3", "0"] in table
    assert table[-1] == ["Position, largest [rad]", "4", "4", "at most 0"]
    assert not any("Velocity" in row[0] for row in table)  # the first run has none


def test_runs_of_different_lengths_are_compared_where_both_are(tmp_path):
    long, short = panel([0.0, 1.0, 9.0]), panel([0.0, 1.5], (0.0, 1.0))
    for one, other in ((long, short), (short, long)):
        (tmp_path / "1.json").write_text(json.dumps(one))
        (tmp_path / "2.json").write_text(json.dumps(other))
        table = rows(run_table.comparison(tmp_path, *RUNS[:2]))
        assert table[-1][-1] == "at most 0.5"


def test_lines_that_never_meet_are_others(tmp_path):
    late, gone = panel([1.0, 2.0], (1.5, 2.0)), panel([1.0, 2.0], (0.0, 1.0))
    empty = panel([None, None], (0.0, 1.0))
    for one, other in ((late, gone), (empty, gone)):
        (tmp_path / "1.json").write_text(json.dumps(one))
        (tmp_path / "2.json").write_text(json.dumps(other))
        table = rows(run_table.comparison(tmp_path, *RUNS[:2]))
        assert table[-1][-1] == "other lines"
