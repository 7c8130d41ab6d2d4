"""Pushes, payloads, paths, gains and filters of a scenario, and fields as they are typed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import modurob as mr
from modurob import examples
from modurob.cli import cli
from modurob.control import with_payload
from modurob.organism.examples import emulation
from modurob.scenario.fields import FIELDS
from modurob.scenario.settings import PushRecord, RunSettings
from oracles import complains

ROUNDING = 1e-12
SOLVED = 1e-6  # relative, of RK45 with its tolerance of 1e-8
STEP = {"organism": "crab", "motion": "step", "controller": "ComputedTorque", "duration": 0.2}


# -- pushes ----------------------------------------------------------------------------------------


def hinge() -> tuple[mr.Scenario, float, np.ndarray]:
    """Two cubes without gravity, the inertia about their hinge, and its axis in the second cube."""
    body = mr.Scenario(organism=examples.snake(2), gravity=0.0, duration=2.0)
    model = body.model()
    return body, float(model.mass_matrix(np.zeros(1))[0, 0]), model.jacobian([0.0], "m1")[3:, 0]


def test_pushes_move_a_hinge_as_newton_says():
    """Constant, pulse and sine moments against the integrals of their angular accelerations."""
    body, inertia, axis = hinge()
    w = 2 * np.pi * 1.5
    cases = (
        ({}, lambda t: t**2 / 2),
        ({"begin": 1.5, "length": 0.02}, lambda t: 0.02 * (t - 1.51)),
        ({"begin": 0.5, "frequency": 1.5}, lambda t: (t - 0.5 - np.sin(w * (t - 0.5)) / w) / w),
    )
    for shape, integral in cases:
        moment = 1e-3 * (body.model().forward_kinematics([0.0])[-1, :3, :3].T @ axis)
        push = {"body": "m1", "moment": tuple(moment.tolist()), **shape}
        run = body.edited(pushes=[push]).run()
        expected = 1e-3 / inertia * integral(2.0)
        assert run.trajectory.q[-1, 0] == pytest.approx(expected, rel=SOLVED)
        assert run.marks[0] == (shape.get("begin", 0.0), "push m1")


def test_pushes_on_one_body_add_up():
    one = PushRecord(body="m1", force=(1, 0, 0), length=1.0)
    other = PushRecord(body="m1", force=(0, 2, 0), moment=(0, 0, 3))
    scenario = mr.Scenario(organism="crab", pushes=(one, other))
    wrench = scenario._wrenches(scenario.model())["m1"]
    assert wrench(0.5).tolist() == [1, 2, 0, 0, 0, 3]
    assert wrench(1.0).tolist() == [0, 2, 0, 0, 0, 3]


# -- payload ---------------------------------------------------------------------------------------


def test_a_payload_adds_the_inertia_and_weight_of_a_point():
    """M + m J^T J and N - m g J_z, J by differences of the point's place."""
    model, rng = examples.arm().model("physical"), np.random.default_rng(0)
    q, mass, place = rng.uniform(-1, 1, 5), 0.7, np.array([0.1, -0.05, 0.2, 1.0])
    loaded = with_payload(model, "m3", mass, place[:3])
    index = model.body_index("m3")

    def point(x: np.ndarray) -> np.ndarray:
        return (model.forward_kinematics(x)[index] @ place)[:3]

    h = 1e-6
    J = np.array([(point(q + h * e) - point(q - h * e)) / (2 * h) for e in np.eye(5)]).T
    difference = 1e-8  # of central differences with this step
    M = model.mass_matrix(q) + mass * J.T @ J
    np.testing.assert_allclose(loaded.mass_matrix(q), M, atol=difference)
    N = model.gravity_torque(q) + mass * 9.81 * J[2]
    np.testing.assert_allclose(loaded.gravity_torque(q), N, atol=10 * difference)


def test_a_law_that_knows_the_payload_reaches_the_target_and_one_that_does_not_sags():
    goal = {"m1.hinge": 0.3}
    load = {"body": "m3", "mass": 0.2}
    step = {**STEP, "target": goal, "duration": 2.0, "settling_time": 0.5, "integrator": "RK4"}
    ends = {}
    for known in (True, False):
        run = mr.Scenario(**step, payload={**load, "known": known}).run().trajectory
        ends[known] = abs(run.q[-1, 0] - 0.3)
    assert ends[True] < 1e-4 < 1e-2 < ends[False]


# -- motions ---------------------------------------------------------------------------------------


def test_paths_go_through_their_points():
    points = {"time": (0.0, 0.5, 1.0), "m3.hinge": (0.0, 0.4, 0.1)}
    pose = {"m1.hinge": 0.2}
    for motion in ("steps", "spline", "recorded"):
        scenario = mr.Scenario(**{**STEP, "motion": motion}, points=points, pose=pose)
        reference = scenario.reference(scenario.model())
        assert reference is not None
        for t, place in zip(points["time"], points["m3.hinge"], strict=True):
            np.testing.assert_allclose(reference(t).q, [0.2, place, 0.0], atol=ROUNDING)


def test_a_quintic_takes_the_time_given_and_the_law_may_be_told_positions_only():
    fields = {**STEP, "motion": "quintic", "target": {"m1.hinge": 0.3}}
    for scenario, end in (
        (mr.Scenario(**fields), 0.1),
        (mr.Scenario(**fields, move_time=0.2), 0.2),
    ):
        reference = scenario.reference(scenario.model())
        assert reference is not None
        assert reference(0.99 * end).v[0] > 0 == reference(1.01 * end).v[0]
    bare = scenario.edited(feedforward=False)
    reference = bare.reference(bare.model())
    assert reference is not None
    assert reference(0.1).q[0] == pytest.approx(0.15)
    assert not np.any(reference(0.1)[1:])


# -- as typed --------------------------------------------------------------------------------------

TYPED = {
    "passive": "m1.hinge, m3.hinge",
    "outputs": "m1.hinge",
    "yielding": "m3",
    "locked": "m1.hinge=45 m2.hinge=-10.5",
    "slope": "5, -2.5",
    "target": "10, -20.5, 0",
    "points": "0,0,0,0\n1,10,-20,5.5",
    "gains": "kp=250 kd=30,20,10 Q=1,0;0,1",
    "poles": "-2, -3, -2+3j, -2-3j, -5, -10",
    "torque_limit": "3,1,1",
    "payload": "m3 mass=0.2 center=0,0,0.1 known=1",
    "pushes": "m3 force=0,0,5 begin=1 length=0.1\nm1 moment=0,1,0 frequency=2",
    "gait": "lag=0.5 phase.m1.hinge=0.3 phase.m2.hinge=1",
    "ekf": "Q=0.1,0.1,0.1,0.0001,0.0001,0.0001 R=1",
}


def test_every_field_in_the_table_is_a_setting_and_typed_ones_are_written_as_they_are_read():
    model = examples.crab().model()
    assert set(FIELDS) <= set(RunSettings.model_fields)
    assert {name for name, field in FIELDS.items() if field.read} == set(TYPED)
    for name, text in TYPED.items():
        read, write = FIELDS[name].read, FIELDS[name].write
        assert read is not None
        assert write is not None
        kept = getattr(RunSettings(**{name: read(name, text, model)}), name)
        assert write(kept, model) == text
        empty = getattr(RunSettings(**{name: read(name, "", model)}), name)
        assert empty == RunSettings.model_fields[name].get_default(call_default_factory=True)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("poles", "-1,-2,-3", "poles takes 2 numbers, or 6 for 3 joints, got -1,-2,-3"),
        ("poles", "-1,x", "poles takes numbers such as -2 or -2+3j, got '-1,x'"),
        ("torque_limit", "1,2", "torque_limit has 2 numbers, but the model has 3 joints: m1.hinge"),
        ("torque_limit", "1,-2,3", "torque_limit must be at least 0"),
        ("target", "1", "target has 1 numbers, but the model has 3 joints"),
        ("target", "1,2,inf", "target takes numbers separated by commas [deg, m]"),
        ("passive", "m1.hinge,m1.knee", "no joint 'm1.knee'"),
        ("yielding", "m9", "no body 'm9'"),
        ("locked", "m1.hinge=1 m1.hinge=2", "locked has m1.hinge twice"),
        ("locked", "m1.hinge", "locked takes JOINT=POSITION, such as m1.roll=45, or "),
        ("locked", "m1.hinge=nan", "locked takes JOINT=POSITION"),
        ("slope", "80", "angles below 80 degrees"),
        ("slope", "1,-80", "angles below 80 degrees"),
        ("slope", "1,2,3", "one or two angles"),
        ("gains", "kp=1 kp=2", "gains has a name twice"),
        ("gains", "kd kp=1", "gains takes name=numbers such as"),
        ("gait", "lag=inf", "gait takes NAME=VALUE"),
        ("gait", "phase.a=1 phase.a=2", "gait has phase.a twice"),
        ("payload", "mass=1", "payload starts with a body, such as 'm3 mass=0.5"),
    ],
)
def test_what_cannot_be_read_says_what_is_expected(name, text, words):
    unknown = words.startswith("no ")
    with complains(mr.UnknownNameError if unknown else mr.StateError, words):
        FIELDS[name].read(name, text, examples.crab().model())


def test_typed_values_may_have_spaces_and_one_number_for_all():
    model = examples.crab().model()
    for name, text, value in (
        ("torque_limit", "2.5", 2.5),
        ("torque_limit", "", 0.0),
        ("slope", "", (0.0, 0.0)),
        ("slope", " 45 ", (pytest.approx(1.0), 0.0)),
        ("slope", "0,-45", (0.0, pytest.approx(-1.0))),
        ("yielding", " m3 ", "m3"),
        ("passive", " m1.hinge ,, m3.hinge,", ("m1.hinge", "m3.hinge")),
        ("poles", "-2, - 3", (-2, -3)),
        ("locked", "m1.hinge=90,m2.hinge=-45",
         {"m1.hinge": pytest.approx(np.pi / 2), "m2.hinge": pytest.approx(-np.pi / 4)}),
        ("gains", "kp = 1, 2 ,3 kd=4", {"kp": (1, 2, 3), "kd": 4}),
        ("gains", "Q=1,2;3,4", {"Q": ((1, 2), (3, 4))}),
        ("gait", "lag=2 r=3.5", {"lag": 2, "r": 3.5}),
        ("points", " ", {}),
        ("pushes", "\nm3 force=0,0,5\n\n", [{"body": "m3", "force": (0, 0, 5)}]),
        ("payload", " ", None),
    ):  # fmt: skip
        assert FIELDS[name].read(name, text, model) == value
    assert type(FIELDS["gait"].read("", "step=2", model)["step"]) is int


def test_places_are_typed_in_degrees_and_meters():
    model = examples.crane().model("physical")
    read, write = FIELDS["target"].read, FIELDS["target"].write
    assert read("", "0.5,90", model) == {"m0.slide": 0.5, "m1.hinge": pytest.approx(np.pi / 2)}
    assert write({"m1.hinge": np.pi / 6}, model) == "0, 30"
    assert write({}, model) == ""
    points = FIELDS["points"]
    assert points.write({"time": (0.0, 2.0), "m1.hinge": (0.0, np.pi)}, model) == "0,0,0\n2,0,180"
    assert points.read("", "0,1,0\n2,3,90", model) == {
        "time": (0, 2), "m0.slide": (1, 3), "m1.hinge": (0, pytest.approx(np.pi / 2))
    }  # fmt: skip
    locks = FIELDS["locked"]
    assert locks.read("", "m0.slide=0.5", model) == {"m0.slide": 0.5}
    assert locks.write({"m0.slide": 0.5, "m1.hinge": np.pi / 4}, model) == (
        "m0.slide=0.5 m1.hinge=45"
    )
    planar = examples.crab().model(base=("px", "py", "rz"))
    assert locks.read("", "world.px=0.5 world.rz=180", planar) == {
        "world.px": 0.5, "world.rz": pytest.approx(np.pi)
    }  # fmt: skip


def test_what_is_not_given_is_written_as_nothing():
    model = examples.crab().model()
    for name, value in (("points", {}), ("payload", None), ("slope", (0.0, 0.0)), ("pushes", ())):
        assert FIELDS[name].write(value, model) == ""
    assert FIELDS["slope"].write((np.tan(np.radians(5)), 0.0), model) == "5"
    assert FIELDS["slope"].write((0.0, np.tan(np.radians(-2.5))), model) == "0, -2.5"


def test_a_robot_to_emulate_stands_for_the_joints_that_are_held():
    tree = examples.superbot_tree(2, 2)
    held = FIELDS["locked"].read("--lock", "conro", tree.model("physical"))
    assert held == emulation(tree, "conro")
    assert {joint.partition(".")[2] for joint in held} == {"roll"}
    with complains(mr.StateError, "--lock has m0.roll twice: give it once"):
        FIELDS["locked"].read("--lock", "conro m0.roll=0", tree.model("physical"))


def test_steps_of_numbers_are_one_or_five_of_a_decimal():
    steps = [field.step for field in FIELDS.values() if field.step is not None]
    assert len(steps) >= 10
    assert {f"{step:e}".rstrip("0").partition("e")[0].rstrip("0") for step in steps} <= {"1.", "5."}


def test_what_is_typed_reaches_the_run_and_its_file(tmp_path):
    (tmp_path / "points.csv").write_text("0,0,0,0\n0.2,10,-20,5")
    file = str(tmp_path / "run.json")
    line = [
        "control", "crab", "--law", "lqr", "--gains", "Q=1,1,1,0.1,0.1,0.1 R=0.1", "--move",
        "spline", "--points", str(tmp_path / "points.csv"), "--noise", "0.01", "--ekf", "--filter",
        "Q=1e-6 W=1,1,1,1,1,1", "--torque-noise", "0.01", "--payload", "m3 mass=0.1", "--push",
        "m3 force=0,0,1 begin=0.1", "--position-only", "--sample-time", "0.01", "--json",
        "--save-scenario", file,
    ]  # fmt: skip
    done = CliRunner().invoke(cli, line)
    assert done.exit_code == 0, done.output
    assert max(json.loads(done.output)["rms_error"]) < 0.2
    kept = mr.Scenario.load(file)
    assert kept.gains == {"Q": (1.0, 1.0, 1.0, 0.1, 0.1, 0.1), "R": 0.1}
    assert kept.ekf == {"Q": 1e-6, "W": (1.0,) * 6}
    assert (kept.noise_tau, kept.feedforward, kept.duration) == (0.01, False, 0.2)
    assert kept.pushes[0].begin == 0.1
    model = kept.model()
    filter_ = kept._estimator(model, *kept.start(model), None)
    np.testing.assert_array_equal(filter_.Q, 1e-6 * np.eye(6))


def test_a_recorded_run_is_followed(tmp_path):
    wave = str(tmp_path / "wave.npz")
    move = ("control", "crab", "--sample-time", "0.005", "--duration", "0.3", "--json")
    for options in (("--move", "wave", "-o", wave), ("--move", "recorded", "--points", wave)):
        done = CliRunner().invoke(cli, [*move, *options])
        assert done.exit_code == 0, done.output
    assert max(json.loads(done.output)["rms_error"]) < 1e-2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--to", "300,0,0"), "m1.hinge at 300° is beyond its limits, -90 to 90°"),
        (("--gains", "k0=1,2 k1=3"), "k0 is one number, one for each of 3 joints"),
        (("--gains", "k0"), "--gains takes name=numbers"),
        (("--gains", "k0=a"), "--gains k0 takes numbers"),
        (("--gains", "kp=1"), "ComputedTorque has no kp: it takes k0, k1"),
        (("--gains", "k0=1 k1=1", "--settle", "1"), "only one of them"),
        (("--law", "lqr", "--gains", "Q=-1"), "Q is a weight, positive semidefinite"),
        (("--ekf", "--filter", "Q=-1"), "Q is a covariance: its eigenvalue -1 is negative"),
        (("--ekf", "--filter", "S=1"), "--filter S: must be 'Q', 'R'"),
        (("--filter", "Q=1"), "--filter: has no effect without an estimator"),
        (("--push", "m9 force=0,0,1"), "no body 'm9': bodies are m0, m1"),
        (("--push", "force=0,0,1"), "--push starts with a body"),
        (("--push", "m3 force=0,1"), "--push force: takes three numbers"),
        (("--push", "m3 colour=1"), "--push colour: no such field; fields are body, force"),
        (("--payload", "m9 mass=1"), "no body 'm9'"),
        (("--payload", "m3 mass=-1"), "--payload mass: must be greater than 0"),
        (("--move", "spline"), "needs times and places"),
        (("--points", "x.csv"), "x.csv"),
        (("--move-time", "1"), "--move-time: has no effect with motion 'step'"),
        (("--move", "quintic", "--move-time", "1"), "takes 1 s, but the run ends at 0.1 s"),
        (("--push", "m3 force=0,0,1 frequency=300"), "300 Hz on m3 is above 250 Hz, half of the"),
        (("--law", "pid-linearized", "--gains", "kp=1 ki=9 kd=1"), "unstable: pole 0.643"),
        (("--gains", "k0=9 k1=2e3"), "sample_time of 0.002 s is too long for these gains"),
        (("--wrench-sensors",), "--wrench-sensors: has no effect without a push or ground"),
        (("--monte-carlo", "9", "--ground"), "--ground is for one run"),
        (("--monte-carlo", "9", "--push", "m3 force=0,0,1"), "--push is for one run"),
    ],
)
def test_bad_input_is_one_line(options, words):
    done = CliRunner().invoke(cli, ["control", "crab", "--duration", "0.1", *options])
    assert (done.exit_code, done.output.count("\n")) == (2, 1), done.output
    assert words in done.output


def test_a_start_beyond_the_limits_of_a_joint_is_named():
    words = "m1.hinge at 171.9° is beyond its limits, -90 to 90°"
    scenario = mr.Scenario(organism="crab", pose={"m1.hinge": 3.0}, duration=0.01)
    assert scenario.run().note == f"The start of {words}."
    done = CliRunner().invoke(
        cli, ["simulate", "crab", "--start", "171.9,0,0", "--duration", "0.01"]
    )
    assert words in done.output


def test_a_closed_loop_that_touches_the_ground_is_not_guaranteed():
    bend = ["control", "arm", "--law", "cartesian-impedance", "--to", "0,90,0,-90,0.1", "--ground",
            "--move", "quintic", "--move-time", "0.6", "--duration", "0.7", "--json"]  # fmt: skip
    found = json.loads(CliRunner().invoke(cli, bend).output)
    assert not found["guaranteed"]
    assert "only the motors act: the ground touches m4" in found["broken_assumptions"][0]


def test_a_body_without_a_gait_moves_freely_on_the_ground():
    fall = ["simulate", "crab", "--base", "free", "--ground", "--duration", "0.01"]
    assert "crab: free motion, friction 0.8" in CliRunner().invoke(cli, fall).output


def test_events_go_with_the_masses_of_the_datasheets():
    scenario = mr.Scenario(
        organism="snake", hinges="physical", payload={"body": "m1", "mass": 1.0},
        events=[{"what": "undock", "time": 0.1, "module": "m3"}],
    )  # fmt: skip
    with pytest.raises(mr.StateError, match="payload: a body that events change"):
        scenario.run()
