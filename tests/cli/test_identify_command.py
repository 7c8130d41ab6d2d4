"""``modurob identify``: from files of runs to a file with corrected datasheets."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import modurob as mr
from modurob.cli import cli
from modurob.sim import Trajectory
from oracles.identified_runs import motion, pinocchio_torques, recorded

ARM = mr.examples.arm("babac")
MODEL = ARM.model("physical")


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Run ``modurob identify`` in a folder with a run of an arm that has a heavy tip."""
    monkeypatch.chdir(tmp_path)
    true = ARM.with_parameters("m4", mass=1.5)
    t, q, v, a = motion(MODEL, 5.0, 200, np.random.default_rng(0))
    tau = pinocchio_torques(true, MODEL, q, v, a)
    Trajectory((recorded(MODEL, t, q, v, a, tau),)).save("run.npz")
    return lambda *args: CliRunner().invoke(cli, ["identify", *args])


def test_runs_become_a_file_of_corrected_datasheets(call):
    result = call("arm", "run.npz", "--output", "new.json")
    assert result.exit_code == 0, result.output
    assert "31 base parameters" in result.output
    assert "m4: distal.mass is 0.25, found 0.5" in result.output
    assert mr.load("new.json").kind("m4").bodies[1].mass == pytest.approx(0.5, rel=0.05)
    assert call("arm", "run.npz", "--output", "new.json").exit_code == 2  # it is there


def test_json_for_machines(call):
    data = json.loads(call("arm", "run.npz", "run.npz", "--json").output)
    assert {suspect["module"] for suspect in data["suspects"]} == {"m4"}
    assert len(data["parameters"]) == 31


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("crab", "run.npz"), "another body"),
        (("arm", "none.npz"), "none.npz"),
        (("arm", "run.npz", "--error", "-1"), "datasheet_error"),
    ],
)
def test_bad_input_is_one_line(call, args, text):
    result = call(*args)
    assert result.exit_code == 2
    assert result.output.startswith("error: ")
    assert text in result.output
    assert len(result.output.splitlines()) == 1
