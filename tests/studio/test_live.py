"""Live robots of a project, on a bus in simulated rounds, and once on processes."""

import asyncio
import json
import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from modurob import StateError, Trajectory, examples
from modurob.distributed.bus.simulated import SimulatedBus
from modurob.distributed.plant import PlantOptions
from modurob.organism import Organism
from modurob.studio import live, view_data
from modurob.studio.folder import Folder
from modurob.studio.jobs import JobCanceled
from modurob.studio.live import LiveOptions, LiveRobot
from modurob.studio.live_session import MOST_MODULES, Live
from modurob.studio.studio import Studio

SETTLED = 1e-2  # [rad] some time after a motion, with torques of 5 ms each
LATE = 1e-3  # [rad, m] that joints near rest move in two cycles
LONG_S = 45.0  # that anything may take: the machine may be busy with other tests
TIP = "m2"


def body() -> Organism:
    """Three cubes in a row: the hinges of the first two move."""
    return examples.snake(3)


def simulated(organism=None, options=None) -> LiveRobot:
    bus = SimulatedBus(plant=PlantOptions(), period=0.005)
    return LiveRobot(organism or body(), bus, bus.run, lambda: bus.now)


@pytest.fixture
def robot():
    made = simulated()
    made.power_up()
    yield made
    made.close()


def run(robot, seconds):
    robot.bus.run(lambda: False, seconds)


def test_modules_appear_one_after_the_other_and_ghosts_are_those_not_found():
    robot, seen = simulated(), []
    plug = robot.plug

    def watched(name):
        scene = robot.scene()
        data = scene.data()
        drawn = [] if data["cast"] is None else [m["name"] for m in data["cast"]["modules"]]
        ghosts = {data["ghost"]["modules"][s["module"]]["name"] for s in data["ghost"]["solids"]}
        seen.append((drawn, sorted(ghosts)))
        plug(name)

    robot.plug = watched
    assert set(robot.states().values()) == {"unplugged"}
    robot.power_up()
    assert seen == [
        ([], ["m0", "m1", "m2"]),
        (["m0"], ["m1", "m2"]),
        (["m0", "m1"], ["m2"]),
    ]
    assert robot.scene().data()["links"] == [["m0", "m1"], ["m1", "m2"]]
    assert robot.state == robot.problem == ""
    assert set(robot.states().values()) == {"found"}


def test_the_body_is_drawn_where_the_plant_has_its_joints(robot):
    robot.goto({"m1.hinge": -0.3}, 0.3)
    assert robot.status().mode == "move"
    run(robot, 0.6)
    assert robot.status().mode == "hold"
    truth = robot.bus.world.state
    assert np.allclose(truth.q, [0.0, -0.3], atol=SETTLED)
    frame = robot.frame(robot.scene())
    measured = [frame["q"][name] for name in truth.model.joint_names]
    assert np.allclose(measured, truth.q, atol=LATE)
    T = body().model("physical").forward_kinematics(truth.q)
    assert np.allclose([pose[:3] for pose in frame["poses"]], T[:, :3, 3], atol=LATE)
    assert "ghosts" not in frame
    assert sorted(frame["heard"]) == ["m0", "m1", "m2"]
    assert robot.frame(robot.scene())["heard"] == []  # nothing new


def test_ghosts_stand_where_the_missing_module_was(robot):
    robot.goto({"m0.hinge": 0.4, "m1.hinge": 0.4}, 0.2)
    run(robot, 0.4)
    before = robot.frame(robot.scene())["poses"]
    robot.unplug(TIP)
    assert robot.bus.run(lambda: robot.scene().missing == (TIP,))
    assert robot.states() == {"m0": "found", "m1": "found", "m2": "unplugged"}
    assert not robot.is_plugged(TIP)
    scene = robot.scene()
    assert [m["name"] for m in scene.data()["cast"]["modules"]] == ["m0", "m1"]
    # poses of the whole body, of which only the missing module is drawn
    assert np.allclose(robot.frame(scene)["ghosts"], before, atol=SETTLED)
    still = scene.poses({})  # what was not measured yet is at zero
    for key, model in (("poses", scene.model), ("ghosts", scene.planned_model)):
        np.testing.assert_allclose(still[key], view_data.poses(model, np.zeros(model.nq)))
    robot.plug(TIP)
    assert robot.bus.run(lambda: robot.bus.settled(3))
    assert set(robot.states().values()) == {"found"}


def test_what_is_docked_to_an_unplugged_module_stays_there(robot):
    robot.unplug("m1")
    assert robot.bus.run(lambda: robot.scene().missing == ("m1", "m2"))
    assert robot.states() == {"m0": "found", "m1": "unplugged", "m2": "not found"}
    robot.plug("m1")
    assert robot.bus.run(lambda: robot.bus.settled(3))


def test_a_killed_module_is_dead_those_beyond_are_silent_and_come_back(robot):
    robot.kill("m1")
    robot.bus.run(lambda: "silent" in robot.states().values())
    assert robot.states() == {"m0": "found", "m1": "dead", "m2": "silent"}
    scene = robot.scene()
    assert scene.missing == ()
    assert dict(scene.lost) == {"m1": "dead", "m2": "silent"}
    assert "m1" not in robot.frame(scene)["heard"]
    assert robot.faults_found()
    robot.restart("m1")
    assert robot.bus.run(lambda: robot.bus.settled(3))
    assert set(robot.states().values()) == {"found"}


def test_a_scene_is_sent_again_only_when_more_than_poses_changed(robot):
    first = robot.scene()
    robot.goto({"m0.hinge": 0.4}, 0.2)
    run(robot, 0.1)
    assert first.differs(None)
    assert not robot.scene().differs(first)
    robot.kill(TIP)
    assert robot.scene().differs(first)


def test_pushes_loads_and_faults_reach_the_plant(robot):
    robot.push("m1.hinge", 3.0)
    run(robot, 0.05)
    assert robot.bus.world.state.q[1] > 1e-3
    robot.payload(TIP, 1.5)
    mass = robot.bus.world.state.model.mass.sum()
    assert mass == pytest.approx(body().model("physical").mass.sum() + 1.5)
    robot.fault("m0", "stuck")
    assert robot.payloads == {TIP: 1.5}
    assert robot.faults == {"m0": "stuck"}
    stuck_at = robot.bus.world.state.q[0]
    robot.goto({"m0.hinge": 0.5}, 0.2)
    run(robot, 0.2)
    assert robot.bus.world.state.q[0] == pytest.approx(stuck_at, abs=1e-4)
    with pytest.raises(StateError, match=r"'m2\.hinge' cannot be pushed: it is locked"):
        robot.push("m2.hinge", 1.0)
    before = robot.bus.world.state.q.copy()
    robot.push(TIP, [0.0, 0.0, 30.0])
    run(robot, 0.05)
    assert abs(robot.bus.world.state.q[1] - before[1]) > 1e-3
    robot.follow("oscillators")
    run(robot, 0.05)
    assert (robot.status().mode, robot.status().motion) == ("move", "gait oscillators")


def test_words_say_what_drives_do_and_what_the_law_claims(robot):
    robot.goto({"m0.hinge": np.pi / 6}, 0.2)
    run(robot, 1.0)
    angle, torque = robot.drive_line("m0").removeprefix("hinge ").removesuffix(" N m").split("°, ")
    assert float(angle) == pytest.approx(30, abs=np.degrees(SETTLED))
    truth = robot.bus.world.state
    assert float(torque) == pytest.approx(truth.model.gravity_torque(truth.q)[0], abs=0.1)
    assert robot.certificate().startswith("computed torque: guaranteed")
    assert robot.clock_line() == ""  # simulated rounds have no clock
    robot.relax()
    assert robot.status().mode == "relax"


def test_a_record_is_gapless_from_zero_with_marks_where_the_body_changed(robot):
    run(robot, 0.3)
    robot.record()
    robot.goto({"m0.hinge": 0.2}, 0.2)
    run(robot, 0.3)
    robot.unplug(TIP)
    run(robot, 0.5)
    assert robot.recording == pytest.approx(0.8)
    result = robot.recorded()
    assert robot.recording is None
    first, second = result.trajectory.parts
    assert first.t[0] == 0
    assert first.t[-1] == second.t[0]
    assert (np.diff(first.t) > 0).all()
    assert second.t[-1] == pytest.approx(0.8, abs=0.01)
    assert first.q.shape[1] == 2
    assert second.q.shape[1] == 1
    assert first.channels["set_point"].shape == first.q.shape
    assert [mark.what for mark in result.marks] == ["goto", "undock m2"]
    assert result.marks[1].time == pytest.approx(0.3, abs=0.01)


def test_long_records_are_thinned_but_keep_their_ends(robot, monkeypatch):
    monkeypatch.setattr(live.runs, "MOST_FRAMES", 10)
    robot.record()
    run(robot, 0.2)
    trajectory = robot.recorded().trajectory
    assert len(trajectory.t) <= 11
    assert trajectory.t[-1] == pytest.approx(0.2, abs=0.01)


def test_a_base_without_a_free_port_is_named():
    assert live.ways(body())["m0"] == ("base.out", "m0.2", 0)
    assert live.ways(body())["m1"] == ("m0.3", "m1.4", 0)
    full = Organism.start("chen_revolute", "m0").dock("m0", 1, "m1", 1, kind="chen_link")
    full = full.dock("m0", 2, "m2", 1, kind="chen_link")
    with pytest.raises(StateError, match="base 'm0' has no free port"):
        live.ways(full)


# -- the live robot of a session -------------------------------------------------------------------


@pytest.fixture
def session(tmp_path):
    session = Studio(Folder(tmp_path)).new("arm")
    session.change("build", body())
    session.live = Live(session, simulated)
    return session


def test_a_body_that_cannot_be_plugged_in_is_refused_before_anything_starts(session, awaited):
    full = Organism.start("chen_revolute", "m0").dock("m0", 1, "m1", 1, kind="chen_link")
    session.change("full", full.dock("m0", 2, "m2", 1, kind="chen_link"))
    topics = []
    session.listen(topics.append)
    with pytest.raises(StateError, match="base 'm0' has no free port"):
        awaited(session.live.start(LiveOptions()))
    assert topics == []


def test_a_project_has_one_live_robot_and_keeps_its_record_as_a_run(session, awaited):
    topics = []
    session.listen(topics.append)
    awaited(session.live.start(LiveOptions()))
    assert topics == ["live", "live"]
    with pytest.raises(StateError, match="live already"):
        awaited(session.live.start(LiveOptions()))
    session.live.robot.record()
    session.live.robot.goto({"m0.hinge": 0.1}, 0.05)
    run(session.live.robot, 0.1)
    assert awaited(session.live.keep()) == 1
    (record,) = session.runs
    assert record.title == "live, computed torque"
    assert record.settings.hinges == "physical"
    kept = Trajectory.load(session.folder.runs(session.name) / "1.npz")
    assert kept.model.joint_names == ("m0.hinge", "m1.hinge")
    shown = json.loads((session.folder.runs(session.name) / "1.json").read_text())
    assert {"q", "tau", "error"} <= {panel["key"] for panel in shown["panels"]}
    assert [event["what"] for event in shown["events"]] == ["goto"]
    (error,) = (panel for panel in shown["panels"] if panel["key"] == "error")
    first = error["lines"][0]
    at = kept.t.tolist().index(pytest.approx(first["t"][10]))
    assert first["y"][10] == pytest.approx(
        kept.q[at, 0] - kept.channels["set_point"][at, 0], rel=1e-5
    )
    request = session.export_request()
    assert request.run().t[-1] == pytest.approx(record.seconds)
    awaited(session.live.end())
    assert not session.live.on


def test_the_end_keeps_a_record_that_is_being_made(session, awaited):
    awaited(session.live.start(LiveOptions()))
    session.live.robot.record()
    run(session.live.robot, 0.1)
    told = []
    session.listen(lambda topic: told.append((topic, session.live.on)))
    awaited(session.live.end())
    assert len(session.runs) == 1
    assert told == [("runs", True), ("live", False)]  # pages hear when everything is off


def test_a_start_that_fails_or_is_ended_leaves_nothing_on(session, awaited):
    made = []

    class Failing(LiveRobot):
        def power_up(self):
            made.append(self)
            raise StateError("m1 has not come up")

    def failing(organism, options):
        bus = SimulatedBus(plant=PlantOptions())
        return Failing(organism, bus, bus.run)

    session.live = Live(session, failing)
    with pytest.raises(StateError, match="not come up"):
        awaited(session.live.start(LiveOptions()))
    assert not session.live.on
    with pytest.raises(JobCanceled):
        made[0].plug("m0")  # closed

    def ended(organism, options):
        session.live.close()  # while the robot is made
        made.append(simulated(organism, options))
        return made[-1]

    session.live = Live(session, ended)
    with pytest.raises(JobCanceled):
        awaited(session.live.start(LiveOptions()))
    assert not session.live.on
    with pytest.raises(JobCanceled):
        made[-1].plug("m0")


def test_what_cannot_be_live_says_why(session, awaited, monkeypatch):
    session.change("long", examples.snake(MOST_MODULES + 1))
    with pytest.raises(StateError, match="up to 60; this body has 61"):
        awaited(session.live.start(LiveOptions()))
    monkeypatch.setattr(os, "name", "nt")
    with pytest.raises(StateError, match="needs Linux or macOS"):
        live.on_processes(body(), LiveOptions())


def test_a_robot_is_switched_off_when_the_last_page_goes(tmp_path, awaited):
    studio = Studio(Folder(tmp_path))
    session = studio.new("arm")
    session.change("build", body())
    session.live = Live(session, simulated)

    async def drive():
        await session.live.start(LiveOptions())
        leave = session.listen(lambda topic: None)
        studio.close(session)
        await asyncio.sleep(0.01)
        assert session.live.on  # another page shows it
        leave()
        studio.close(session)
        async with asyncio.timeout(LONG_S):
            while session.live.on:
                await asyncio.sleep(0.005)

    awaited(drive())


@pytest.mark.skipif(os.name == "nt", reason="modules are processes of POSIX systems")
def test_processes_move_and_none_is_left_when_the_last_page_goes(tmp_path, awaited):
    studio = Studio(Folder(tmp_path))
    session = studio.new("arm")
    session.change("build", Organism.start("giusti_b", "m0"))

    async def drive():
        await session.live.start(LiveOptions(noise_q=1e-4))
        robot = session.live.robot
        pids = [robot.bus.pid(name) for name in ("m0", "plant")]
        robot.goto({"m0.joint": 0.3}, 0.2)
        for _ in range(200):
            if abs(robot.frame(robot.scene())["q"]["m0.joint"] - 0.3) < SETTLED:
                break
            await asyncio.sleep(0.05)
        robot.clock_line()
        await asyncio.sleep(0.05)
        assert "cycles/s of 200" in robot.clock_line()
        assert robot.look() == ""
        studio.close(session)
        for _ in range(200):
            if not session.live.on and not any(map(_runs, pids)):
                return
            await asyncio.sleep(0.05)
        raise AssertionError("processes are left")

    awaited(drive())


def _runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# -- words and records -----------------------------------------------------------------------------


def test_the_clock_is_told_in_cycles_of_the_last_second_and_their_lateness(robot, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
    late = [0.009] + [0.001] * 60 + [0.003] + [0.002] * 39
    robot.clock = SimpleNamespace(ticks=50, late=late, missed=2, period=0.005)
    assert robot.clock_line() == ""  # nothing has passed
    now[0], robot.clock.ticks = 100.5, 150
    words = "200 cycles/s of 200, 2 left out, 3.0 ms late at most"
    assert robot.clock_line() == words  # the last hundred: one before them was later
    now[0], robot.clock.ticks = 100.9, 170
    assert robot.clock_line().startswith("133 cycles/s")  # 120 in 0.9 s
    now[0], robot.clock.ticks = 101.2, 224
    assert robot.clock_line().startswith("106 cycles/s")  # 74 since 100.5: a second back
    now[0], robot.clock.ticks = 101.5, 290
    assert robot.clock_line().startswith("200 cycles/s")  # 120 since 100.9: 100.5 is a second ago
    now[0], robot.clock.ticks = 110.0, 375
    assert robot.clock_line().startswith("10 cycles/s")  # 85 in 8.5 s: it was not asked meanwhile


def test_errors_of_the_bus_are_kept_in_one_line(robot):
    assert robot.look() == ""
    for error, words in ((StateError("m1 is lost"), "m1 is lost"), (KeyError(3), "KeyError: 3")):

        def wait(condition, seconds, error=error):
            raise error

        robot._wait = wait
        assert robot.look() == robot.problem == words


def test_the_first_module_that_is_not_found_is_named():
    robot, waits = simulated(), []
    robot._wait = lambda condition, seconds: waits.append(seconds)
    robot.power_up()
    assert robot.problem == "'m0' was not found within 10 s"
    assert waits == [10.0] * 3
    assert robot.state == ""
    robot.close()


def test_a_module_that_slides_is_told_in_millimeters_and_newtons():
    robot = simulated(examples.arm("bc"))
    robot.power_up()
    robot.goto({"m1.joint": 0.05}, 0.2)
    run(robot, 1.0)
    place, force = robot.drive_line("m1").removeprefix("joint ").split(", ")
    assert place.endswith(" mm")
    assert float(place.removesuffix(" mm")) == pytest.approx(50, abs=1000 * SETTLED)
    assert force.endswith(" N")
    state = robot.bus.world.state
    upward = state.model.gravity_torque(state.q)[1]
    assert float(force.removesuffix(" N")) == pytest.approx(upward, abs=0.2)
    assert robot.drive_line("m7") == ""
    assert robot.joints_of("m1") == ["m1.joint"]
    robot.close()


def test_the_certificate_is_empty_before_there_is_a_controller_and_tells_what_is_missing():
    robot = simulated()
    assert robot.certificate() == ""
    assert robot.model is None
    with pytest.raises(StateError, match="there is no robot yet"):
        robot.follow("sine")
    robot.power_up()
    assert robot.certificate().startswith("computed torque: not guaranteed; missing: measured")
    run(robot, 0.1)
    delay = 1000 * robot.bus.operation.longest_delay
    assert f"readings up to {delay:g} ms old" in robot.certificate()
    robot.close()


def test_marks_of_a_record_are_what_was_done_to_the_robot_since_it_began(robot):
    robot.payload(TIP, 0.5)  # before
    robot.record()
    for act in (
        lambda: robot.fault("m0", "limp"),
        lambda: robot.fault("m0", "none"),
        lambda: robot.push("m1.hinge", 0.5),
        lambda: robot.payload(TIP, 0.0),
        lambda: robot.kill(TIP),
        lambda: robot.restart(TIP),
        lambda: robot.follow("sine"),
        robot.relax,
    ):
        act()
        run(robot, 0.02)
    marks = robot.recorded().marks
    assert [mark.what for mark in marks] == [
        "limp m0", "repair m0", "push m1.hinge", "load m2", "die m2", "reboot m2", "gait sine",
        "relax",
    ]  # fmt: skip
    assert [mark.time for mark in marks] == pytest.approx(0.02 * np.arange(8), abs=0.006)


def test_parts_of_a_record_end_where_the_next_begins_with_few_states(robot, monkeypatch):
    robot.record()
    run(robot, 0.2)
    (part,) = robot.recorded().trajectory.parts
    monkeypatch.setattr(live.runs, "MOST_FRAMES", 10)
    k = np.arange(32) / 100
    first = part.rows(np.zeros(25, int))
    second = part.rows(np.zeros(7, int))
    first, second = replace(first, t=k[:25]), replace(second, t=k[25:])
    one, two = live.joined((first, second))  # one of four states
    assert one.t.tolist() == [*k[0:25:4], k[25]]
    assert two.t.tolist() == [k[25], k[29], k[31]]
    assert [len(x) for x in (one.q, one.v, one.tau)] == [8] * 3
    assert {len(values) for values in one.channels.values()} == {8}


def test_sixty_modules_may_be_live_and_what_is_off_is_told(session, awaited):
    def full(organism, options):
        raise StateError(f"{len(organism)} came")

    session.change("long", examples.snake(MOST_MODULES))
    session.live = Live(session, full)
    with pytest.raises(StateError, match="60 came"):
        awaited(session.live.start(LiveOptions()))
    assert not session.live.on
    with pytest.raises(StateError, match="nothing is live: press Start first"):
        awaited(session.live.keep())
    topics = []
    session.listen(topics.append)
    awaited(session.live.end())
    assert topics == ["live"]


def test_a_record_of_a_live_robot_has_its_options_as_settings(session, awaited):
    options = LiveOptions("PdGravity", 0.01, 0.001, 0.002, 0.1, 3.7)
    awaited(session.live.start(options))
    robot = session.live.robot
    robot.record()
    run(robot, 0.1)
    awaited(session.live.keep())
    (record,) = session.runs
    found = record.settings
    assert (found.base, found.motion, found.controller) == ("fixed", "hold", "PdGravity")
    assert (found.noise_q, found.noise_v, found.loss, found.gravity) == (0.001, 0.002, 0.1, 3.7)
    assert record.seconds == record.took == found.duration == pytest.approx(0.1, abs=0.01)
    assert record.title == "live, PD with gravity compensation"
    awaited(session.live.end())
    assert len(session.runs) == 1  # nothing was being recorded any more


def test_modules_with_several_joints_are_measured_joint_by_joint():
    organism = Organism.start("superbot", "m0").dock("m0", 3, "m1", 1, kind="superbot")
    robot = simulated(organism)
    robot.power_up()
    names = robot.status().joints
    goals = {name: 0.1 * (k + 1) for k, name in enumerate(names)}
    robot.goto(goals, 0.3)
    run(robot, 1.0)
    truth = robot.bus.world.state
    frame = robot.frame(robot.scene())
    assert [frame["q"][name] for name in names] == pytest.approx([*goals.values()], abs=SETTLED)
    for module in organism.modules:
        parts = robot.drive_line(module).split("; ")
        assert [part.split(" ")[0] for part in parts] == [
            joint.name for joint in organism.kind(module).joints if joint.kind != "fixed"
        ]
        for part in parts:
            joint, place, torque, *unit = part.split(" ")
            assert (place[-2:], unit) == ("°,", ["N", "m"])
            name = f"{module}.{joint}"
            if name in goals:
                index = truth.model.joint_index(name)
                assert float(place[:-2]) == pytest.approx(np.degrees(truth.q[index]), abs=0.2)
                wanted = truth.model.gravity_torque(truth.q)[index]
                assert float(torque) == pytest.approx(wanted, abs=0.1)
    robot.close()


def test_modules_without_joints_are_heard_as_long_as_they_are_known():
    organism = Organism.start("chen_revolute", "m0").dock("m0", 1, "m1", 1, kind="chen_link")
    robot = simulated(organism)
    robot.power_up()
    run(robot, 0.02)
    heard = [sorted(robot.frame(robot.scene())["heard"]) for _ in range(2)]
    assert heard == [["m0", "m1"], ["m1"]]  # no joint was read in between
    (address,) = (m for m, name in robot.bus.robot.assembly.names.items() if name == "m0")
    robot._drawn_at = robot.bus.coordinator.table[address].sensed.at
    assert robot.frame(robot.scene())["heard"] == ["m1"]  # what was drawn then is not new
    robot.close()


def test_a_robot_without_wishes_has_perfect_sensors_and_the_gravity_of_the_earth():
    assert LiveOptions() == ("ComputedTorque", 0.005, 0.0, 0.0, 0.0, 9.81)


@pytest.mark.skipif(os.name == "nt", reason="modules are processes of POSIX systems")
def test_processes_have_the_options_that_are_given_and_end_where_no_robot_can_be(monkeypatch):
    made, ended = [], []

    def bus(law, **options):
        made.append((law, options))
        builder = SimpleNamespace(gravity=options["gravity"])
        return SimpleNamespace(
            builder=builder, wait="wait", clock="clock", close=lambda: ended.append(law)
        )

    monkeypatch.setattr(live, "ProcessBus", bus)
    robot = live.on_processes(body(), LiveOptions("PdGravity", 0.01, 0.1, 0.2, 0.3, 1.6))
    moon = (0.0, 0.0, -1.6)
    plant = PlantOptions(gravity=moon, noise_q=0.1, noise_v=0.2)
    assert made == [("PdGravity", {"plant": plant, "period": 0.01, "loss": 0.3, "gravity": moon})]
    assert (robot.clock, robot._wait, ended) == ("clock", "wait", [])
    assert robot._whole.gravity.tolist() == [*moon]
    monkeypatch.setattr(live, "LiveRobot", lambda *given, **named: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        live.on_processes(body(), LiveOptions())
    assert ended == ["ComputedTorque"]
