"""Scenarios: one value for scripts, the command line and the studio."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import modurob as mr
from modurob import control, examples
from modurob.cli import cli
from modurob.scenario.scenario import largest_difference
from modurob.scenario.settings import RunSettings
from modurob.studio import runs
from modurob.studio.folder import Folder
from modurob.studio.project import History, Project, SavedBody
from modurob.studio.studio import Studio
from oracles import complains

WAVE = {"motion": "wave", "controller": "ComputedTorque", "duration": 0.3}


def test_a_scenario_does_what_simulate_does():
    model = examples.crab().model()
    run = mr.Scenario(organism=examples.crab(), pose={"m1.hinge": 0.3}, duration=0.3).run()
    alone = mr.simulate(model, [0.3, 0.0, 0.0], None, 0.3)
    assert np.array_equal(run.trajectory.q, alone.q)
    law = control.ComputedTorque(model)
    gait = mr.gaits.Wave.for_model(model)
    followed = mr.simulate(model, None, None, 0.3, law, reference=gait)
    assert np.array_equal(mr.Scenario(organism="crab", **WAVE).run().trajectory.q, followed.q)


@pytest.mark.parametrize(
    "fields",
    [
        {"organism": "double_pendulum", "hinges": "physical", "pose": {"m0.hinge": 1.0}},
        {"organism": "crab", **WAVE, "estimator": "Ekf", "noise_q": 0.01, "seed": 3},
        {
            "organism": "crab", "motion": "step", "target": {"m1.hinge": 0.3}, "masses": 0.9,
            "controller": "PolePlacement", "poles": [-6 + 2j, -6 - 2j], "torque_limit": (3, 1, 1),
            "sample_time": 0.005, "torque_delay": 0.01, "integrator": "RK4", "duration": 0.3,
        },
        {
            "organism": "crab", "motion": "hold", "controller": "PdGravity", "duration": 0.1,
            "gains": {"kp": [9.0, 5.0, 5.0], "kd": 1.0},
        },
        {
            "organism": "snake", "hinges": "physical", "duration": 0.2, "stops": True,
            "events": [{"what": "undock", "time": 0.1, "module": "m3"}],
        },
        {
            "organism": examples.superbot_tree(2, 2, np.random.default_rng(1)), "loss": 0.2,
            "hinges": "physical", "motion": "balance", "duration": 0.1, "seed": 5,
            "events": [{"what": "die", "time": 0.05, "module": "m1"}], "stuck": ["m2.pitch"],
        },
    ],
)  # fmt: skip
def test_a_file_repeats_the_run_to_the_last_bit(tmp_path, fields):
    scenario = mr.Scenario(**fields)
    scenario.save(tmp_path / "run.json")
    again = mr.Scenario.load(tmp_path / "run.json")
    assert again == scenario
    for one, other in zip(
        scenario.run().trajectory.parts, again.run().trajectory.parts, strict=True
    ):
        assert np.array_equal(one.q, other.q)
        assert np.array_equal(one.tau, other.tau)


def test_command_line_studio_and_python_give_equal_numbers(tmp_path, monkeypatch):
    """A wave of the crab, set up three times, and repeated from each file."""
    monkeypatch.chdir(tmp_path)
    studio = Studio(Folder(tmp_path / "studio"))
    session = studio.new("crab", Project(History(SavedBody(examples.crab()))))
    session.edit_settings(frequency=1.0, ramp=0.0, settling_time=1.0, rtol=1e-8, duration=0.3)
    start = mr.gaits.Wave.for_model(session.model())(0.0)
    names = session.model().joint_names
    session.set_pose(**dict(zip(names, start.q.tolist(), strict=True)))
    session.edit_settings(rates=dict(zip(names, start.v.tolist(), strict=True)))
    request = runs.RunRequest(session.scenario(), session.settings, tmp_path, 1)
    runs.perform(request, lambda _: None)
    line = ["simulate", "crab", "--gait", "wave", "--duration", "0.3"]
    files = ["--save-scenario", "typed.json", "--output", "typed.npz"]
    assert CliRunner().invoke(cli, [*line, *files]).exit_code == 0
    pose, rates = session.scenario().pose, session.scenario().rates
    python = mr.Scenario(organism=examples.crab(), pose=pose, rates=rates, record=0.01, **WAVE)

    q = python.run().trajectory.q
    assert np.array_equal(mr.Trajectory.load("1.npz").q, q)
    assert np.array_equal(mr.Scenario.load("1.scenario.json").run().trajectory.q, q)
    typed = mr.Scenario.load("typed.json").edited(record=0.01)
    assert np.array_equal(typed.run().trajectory.q, q)
    assert np.array_equal(mr.Trajectory.load("typed.npz").q[-1], q[-1])


@pytest.mark.parametrize(
    "line",
    [
        "simulate crab --duration 0.2 --start 10,20,0",
        "control crab --settle 0.2 --noise 0.02 --ekf --seed 3 --masses 0.95 --sample-time 0.005",
        "balance --modules 4 --duration 0.1 --loss 0.1",
    ],
)
def test_the_command_run_repeats_what_was_typed(tmp_path, line):
    file = str(tmp_path / "run.json")
    first = CliRunner().invoke(cli, [*line.split(), "--json", "--save-scenario", file])
    assert first.exit_code == 0, first.output
    again = CliRunner().invoke(cli, ["run", file, "--json"])
    assert again.exit_code == 0, again.output
    one, other = json.loads(first.output), json.loads(again.output)
    assert one.pop("files") == [file]
    assert other.pop("files") == []
    for facts in (one, other):
        facts.pop("times_real_time", None)  # of this machine, at this moment
    assert one == other


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"colour": 1}, "colour: no such field; fields are hinges, base"),
        ({"duration": -1}, "duration: must be greater than 0"),
        ({"organism": "lobster"}, "organism: no example 'lobster': examples are crab"),
        ({"organism": 3}, "organism: must be an Organism"),
        ({"motion": "dance"}, "motion: must be one of none, hold"),
        ({"motion": "wave"}, "motion: has no effect without a controller"),
        ({"integrator": "RK4", "rtol": 1e-9}, "rtol: has no effect for RK4"),
        ({"seed": 1}, "seed: has no effect when nothing is random"),
        ({"loss": 0.1}, "loss: has no effect with motion 'none'"),
        ({**WAVE, "controller": "Lqr", "settling_time": 2}, "settling_time: has no effect for Lqr"),
        ({"events": [{"what": "melt", "time": 1, "module": "m1"}]}, r"events\[0\].what"),
        ({"version": 2}, "version"),
    ],
)
def test_wrong_fields_and_fields_without_effect_are_refused(fields, message):
    with pytest.raises(mr.StateError, match=message):
        mr.Scenario(**{"organism": "crab", **fields})


DOCK = {"what": "dock", "time": 0.1, "module": "m5", "port": 3, "child": "m6", "child_port": 4}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pose": {"m1.knee": 1.0}}, "no joint 'm1.knee'"),
        ({**WAVE, "poles": [-1, -2]}, "ComputedTorque has no poles: it takes k0, k1"),
        ({**WAVE, "gains": {"kp": 1.0}}, "ComputedTorque has no kp: it takes k0, k1"),
        ({"estimator": "Ekf"}, "works with a controller"),
        ({"organism": examples.snake(1)}, "no joint that can move"),
        *(({"events": [{**DOCK, field: None}]}, "a docking needs") for field in ("port", "child")),
        ({"events": [{**DOCK, "child_port": None}]}, "a docking needs"),
    ],
)
def test_a_run_that_cannot_be_is_refused_in_one_line(fields, message):
    with pytest.raises(mr.ModurobError, match=message):
        mr.Scenario(**{"organism": "crab", **fields}).run()


@pytest.mark.parametrize(
    "fields",
    [
        {"motion": "step", "target": {"m1.hinge": 0.3}},  # continuous: no delay margin
        {"motion": "step", "sample_time": 0.01},  # there is no step
        {"motion": "hold", "base": "free", "hinges": "physical"},
    ],
)
def test_the_command_run_reports_any_scenario(tmp_path, fields):
    scenario = mr.Scenario(organism="crab", controller="PdGravity", duration=0.1, **fields)
    scenario.save(tmp_path / "run.json")
    done = CliRunner().invoke(cli, ["run", str(tmp_path / "run.json")])
    assert done.exit_code == 0, done.output
    assert "position at the end" in done.output


def test_files_of_others_and_of_newer_versions_are_refused(tmp_path):
    file = tmp_path / "x.json"
    for content, message in (
        ("{", "not valid JSON"),
        ('{"format": "modurob-organism", "version": 1}', "expected 'modurob-scenario'"),
        ('{"format": "modurob-scenario", "version": 2}', "newer modurob"),
        ('{"format": "modurob-scenario", "version": 1}', "organism: field required"),
    ):
        file.write_text(content)
        with pytest.raises(mr.FileError, match=message):
            mr.Scenario.load(file)
        done = CliRunner().invoke(cli, ["run", str(file)])
        assert (done.exit_code, done.output.count("\n")) == (2, 1)


def test_a_run_that_stops_early_is_an_error_unless_it_is_asked_for():
    wild = mr.Scenario(
        organism="crab", motion="zero", pose={"m1.hinge": 1.0}, controller="ComputedTorque",
        settling_time=0.001, integrator="RK4", dt=0.05, duration=1.0,
    )  # fmt: skip
    with pytest.raises(mr.ModurobError, match="diverged"):
        wild.run()
    kept = wild.run(partial=True).trajectory
    assert kept.status == "stopped"
    assert 0 < kept.t[-1] < 1.0


def test_the_trajectory_of_a_balancing_run_keeps_all_that_it_recorded():
    result = mr.Scenario(organism="arm", hinges="physical", motion="balance", duration=0.02).run()
    assert result.trajectory is result.balanced
    recorded = {"estimates", "center", "target", "known", "sent"}
    assert set(result.trajectory.channels) == recorded


def test_settings_of_earlier_projects_are_read():
    """All fields of a project's settings, as version 1 wrote them before scenarios."""
    old = {
        "hinges": "dyad", "base": "fixed", "gravity": 9.81, "duration": 5.0, "integrator": "RK45",
        "rtol": 1e-06, "dt": 0.001, "motion": "wave", "amplitude": 0.5, "frequency": 0.5,
        "ramp": 1.0, "controller": "ComputedTorque", "settling_time": 0.5, "torque_limit": 0.0,
        "sample_time": 0.0, "estimator": "none", "noise_q": 0.0, "noise_v": 0.0, "noise_tau": 0.0,
        "balancing_law": "shared", "loss": 0.0, "delay": 0, "drive_friction": 0.5, "seed": 0,
        "stops": False, "rates": {}, "events": [],
    }  # fmt: skip
    scenario = runs.scenario_of(examples.crab(), RunSettings(**old), {})
    assert scenario.summary == "computed torque, wave"
    assert scenario.frequency == 0.5


GAIT, BALANCE = {"amplitude", "frequency", "ramp", "gait"}, {
    "balancing_law", "loss", "delay", "drive_friction", "stuck"
}  # fmt: skip
LAW = {
    "settling_time", "poles", "gains", "torque_limit", "torque_delay", "sample_time", "feedforward",
    "passive", "outputs", "yielding",
}  # fmt: skip
RUN = {
    "integrator", "rtol", "dt", "analytic", "stops", "masses", "payload", "pushes", "rates",
    "locked", "ground", "engine",
}  # fmt: skip
NOISE = {"estimator", "noise_q", "noise_v", "noise_tau"}
# of these runs
ALWAYS = {"points", "move_time", "ekf", "slope", "ground_friction", "wrench_sensors"}


@pytest.mark.parametrize(
    ("fields", "idle"),
    [
        ({}, BALANCE | LAW | GAIT | {"target", "seed"}),
        ({"motion": "balance"}, LAW | (RUN - {"dt"}) | NOISE | GAIT | {"target", "seed"}),
        ({"motion": "balance", "loss": 0.1}, LAW | (RUN - {"dt"}) | NOISE | GAIT | {"target"}),
        (WAVE, BALANCE | {"target", "seed"}),
        ({**WAVE, "integrator": "RK4"}, BALANCE | {"target", "seed", "rtol"}),
        (
            {**WAVE, "engine": "mujoco"},
            BALANCE | {"target", "seed", "integrator", "rtol", "analytic"},
        ),
        ({**WAVE, "noise_q": 0.1}, BALANCE | {"target"}),
        ({**WAVE, "gains": {"k0": 1, "k1": 1}}, BALANCE | {"target", "seed", "settling_time"}),
        ({**WAVE, "controller": "Lqr"}, BALANCE | {"target", "seed", "settling_time"}),
        ({"motion": "step", "controller": "ComputedTorque"}, BALANCE | GAIT | {"seed"}),
    ],
)
def test_fields_that_a_run_does_not_use_are_known(fields, idle):
    hinges = {"hinges": "physical"} if fields.get("motion") == "balance" else {}
    settings = RunSettings(**{**hinges, **fields})
    assert set(settings.without_effect()) == idle | ALWAYS


# -- parameters of gaits ---------------------------------------------------------------------------


def gait_run(motion, **gait):
    return mr.Scenario(
        organism="snake", hinges="physical", motion=motion, controller="ComputedTorque", gait=gait
    )


@pytest.mark.parametrize("motion", list(mr.gaits.GAITS))
def test_every_parameter_of_a_gait_reaches_it(motion, tmp_path):
    """Other values than the defaults come out of the gait that a saved scenario makes."""
    chosen = {"lag": 0.5, "coupling": 0.3, "r": 3.7, "step": 0.25, "warm_up": 7, "phase": 0.2,
              "offset": 0.1, "start": {"m1.hinge": 0.4}}  # fmt: skip
    known = mr.gaits.GAITS[motion].parameters()
    own = {name: value for name, value in chosen.items() if name in known}
    assert set(known) - {"amplitude", "frequency", "ramp"} == set(own)
    scenario = gait_run(motion, **own)
    scenario.save(tmp_path / "gait.json")
    scenario = mr.Scenario.load(tmp_path / "gait.json")
    model = scenario.model()
    gait = scenario.reference(model)
    for name, value in own.items():
        found = np.asarray(getattr(gait, name))
        if name == "phase" and motion == "wave":
            found = found + gait.lag * gait.depth
        if isinstance(value, dict):
            found, value = found[model.joint_index("m1.hinge")], value["m1.hinge"]
        np.testing.assert_allclose(found, value)


@pytest.mark.parametrize("name", ["coupling", "frequency", "joints", "edges"])
def test_a_parameter_that_a_gait_does_not_take_is_refused(name):
    scenario = gait_run("wave", **{name: 1.0})
    others = "amplitude, frequency, ramp are settings of their own"
    with complains(mr.StateError, f"wave has no parameter '{name}'", "offset, lag, phase", others):
        scenario.reference(scenario.model())


@pytest.mark.parametrize(
    ("given", "gait", "field"),
    [
        (["lag=0.5", "frequency=0.25"], {"lag": 0.5}, 0.25),
        (
            ["phase.m1.hinge=0.3", "phase.m2.hinge=1"],
            {"phase": {"m1.hinge": 0.3, "m2.hinge": 1}},
            1,
        ),
    ],
)
def test_parameters_of_a_gait_are_typed_by_name(given, gait, field, tmp_path):
    command = ["simulate", "snake", "--gait", "wave", "--duration", "0.01"]
    command += [piece for text in given for piece in ("--parameter", text)]
    result = CliRunner().invoke(cli, [*command, "--save-scenario", str(tmp_path / "run.json")])
    assert result.exit_code == 0, result.output
    scenario = mr.Scenario.load(tmp_path / "run.json")
    assert (scenario.gait, scenario.frequency) == (gait, field)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["lag"], "--parameter takes NAME=VALUE"),
        (["lag=x"], "--parameter takes NAME=VALUE"),
        (["lag=1", "lag=2"], "--parameter has lag twice"),
        (["phase=1", "phase.m1.hinge=2"], "--parameter has phase.m1.hinge twice"),
        (["gait=1"], "wave has no parameter 'gait'"),
    ],
)
def test_a_parameter_that_cannot_be_read_is_refused_in_one_line(given, words):
    pieces = [piece for text in given for piece in ("--parameter", text)]
    result = CliRunner().invoke(cli, ["simulate", "snake", "--gait", "wave", *pieces])
    assert result.exit_code == 2
    assert words in result.output


def test_the_studio_leaves_out_what_another_gait_takes():
    settings = RunSettings(
        motion="wave", controller="ComputedTorque", gait={"lag": 0.5, "coupling": 0.3}
    )
    assert runs.scenario_of(examples.crab(), settings, {}).gait == {"lag": 0.5}


def test_bodies_are_free_if_nothing_but_gravity_moves_them():
    crab = mr.examples.crab()
    assert mr.Scenario(organism=crab).free
    for fields in (
        {"controller": "ComputedTorque", "motion": "hold"},
        {"motion": "balance"},
        {"base": "free", "ground": True},
        {"stops": True, "hinges": "physical"},
        {"events": [{"what": "undock", "time": 0.5, "module": "m5"}]},
    ):
        assert not mr.Scenario(organism=crab, **fields).free


def test_a_law_holds_its_pose_within_the_limits_that_are_given():
    crab = mr.examples.crab()
    held = mr.Scenario(
        organism=crab, controller="ComputedTorque", motion="hold", pose={"m1.hinge": 0.3}
    )
    model = held.model()
    np.testing.assert_allclose(held.reference(model)(1.5).q, [0.3, 0, 0])
    assert np.isinf(held.law(model).torque_limit).all()
    limited = held.edited(torque_limit=(0.0, 5.0, 0.0)).law(model)
    np.testing.assert_array_equal(limited.torque_limit, [np.inf, 5, np.inf])
    with complains(mr.StateError, "rtol: 1e-15 is below the rounding errors of a step"):
        mr.Scenario(organism=crab, rtol=1e-15)


def test_the_difference_of_runs_is_taken_at_the_times_of_the_first():
    one = SimpleNamespace(q=np.array([[1.0], [2.0]]), t=np.array([0.0, 0.5]))
    other = SimpleNamespace(at=lambda t: (np.array([[1.25], [1.0]]) + t[:, None], None))
    assert largest_difference(one, other) == 0.5
