"""The plant: physics behind the modules, and the drives through which they reach it."""

import errno
import json
import mmap
import os
from types import SimpleNamespace

import numpy as np
import pytest

from modurob import Dock, Ground, Organism, Undock, catalog, examples, simulate
from modurob.distributed import Plant, PlantOptions, ProcessBus
from modurob.distributed.drive import Mailbox, RecordedDrive, SharedDrive, SharedMemory
from modurob.distributed.plant import WATCHDOG_S, PlantProgram, Push, start_plant
from modurob.distributed.processes import Processes
from modurob.errors import FileError, StateError, UnknownNameError
from oracles import complains


def plant(word, **options):
    """An arm at the base, and its organism."""
    one = Plant(PlantOptions(**options))
    for k, letter in enumerate(word):
        one.add(f"m{k}", catalog[f"giusti_{letter}"])
        if k:
            one.plug((f"m{k - 1}", "out"), (f"m{k}", "in"))
    one.plug(("base", "out"), ("m0", "in"))
    return one


def test_a_robot_that_is_let_go_moves_as_simulate_says():
    one = plant("bac")
    one.push(Push(0.1, "m1.joint", 1.0))
    one.advance(0.1)
    q, v = one.state.q.copy(), one.state.v.copy()
    one.advance(0.5)
    model = examples.arm("bac").model("physical")
    free = simulate(model, q, v, 0.4, rtol=1e-10, atol=1e-12)
    assert one.state.q == pytest.approx(free.q[-1], abs=1e-6)


def test_docking_and_undocking_are_those_of_simulate():
    one = plant("bac")
    one.push(Push(0.2, "m1.joint", 1.0))
    one.advance(0.3)
    q, v = one.state.q.copy(), one.state.v.copy()
    model, exact = examples.arm("bac").model("physical"), {"rtol": 1e-10, "atol": 1e-12}
    one.advance(0.35)
    one.unplug(("m1", "out"), ("m2", "in"))
    (held, rate) = one.reading("m2")  # the piece is kept as it was, at rest
    assert rate == 0.0
    one.advance(0.4)
    twin = simulate(model, q, v, 0.1, events=[Undock(0.05, "m2")], **exact)
    assert held == pytest.approx(twin.parts[0].q[-1][2], abs=1e-6)
    assert one.state.q == pytest.approx(twin.parts[1].q[-1], abs=1e-6)
    q, v = one.state.q.copy(), one.state.v.copy()
    one.advance(0.45)
    one.plug(("m2", "in"), ("m1", "out"))
    one.advance(0.5)
    tip = Organism.start("giusti_c", "m2")
    event = Dock(0.05, "m1", "out", "m2", "in", organism=tip, q=[held])
    twin = simulate(examples.arm("ba").model("physical"), q, v, 0.1, events=[event], **exact)
    assert one.state.q == pytest.approx(twin.parts[-1].q[-1], abs=1e-6)


def test_undocking_keeps_what_moves_and_docking_keeps_the_momentum_of_the_rest():
    one = plant("bac", gravity=(0, 0, 0))
    one.push(Push(0.2, "m0.joint", 1.0))
    one.advance(0.2)
    v = one.state.v.copy()
    one.unplug(("m1", "out"), ("m2", "in"))
    assert one.state.v == pytest.approx(v[:2], abs=1e-12)
    # brought back by hand at the speed of the port: nothing is lost
    one.plug(("m1", "out"), ("m2", "in"))
    assert one.state.v == pytest.approx([*v[:2], 0.0], abs=1e-9)


def test_a_force_on_a_module_does_the_work_of_its_origin():
    one = plant("bac", gravity=(0, 0, 0))
    one.push(Push(0.01, "m1.joint", 3.0))
    one.advance(0.2)
    state, force = one.state, np.array([0.3, -0.5, 0.7])
    one.push(Push(1.0, module="m2", force=tuple(force)))
    tau = one._forces(state)
    model, e = state.model, 1e-6
    place = [
        model.forward_kinematics(state.q + s * e * state.v)[model.modules["m2"]][:3, 3]
        for s in (1, -1)
    ]
    power = force @ (place[0] - place[1]) / (2 * e)
    assert abs(power) > 1e-4
    assert tau @ state.v == pytest.approx(power, rel=1e-6)


def test_a_payload_adds_its_mass_where_it_hangs():
    one, q = plant("ba"), np.array([0.2, 0.6])
    before = one.state.model.gravity_torque(q)
    one.payload("m1", 0.5)
    model = one.state.model
    body = model.body_names.index("m1.distal")
    height = lambda x: model.forward_kinematics(x)[body][2, 3]  # noqa: E731
    weight = [0.5 * 9.81 * (height(q + d) - height(q - d)) / 2e-6 for d in np.eye(2) * 1e-6]
    assert model.gravity_torque(q) - before == pytest.approx(weight, abs=1e-7)
    one.payload("m1", 0.0)
    assert one.state.model.gravity_torque(q).tolist() == before.tolist()


def test_motors_saturate_and_let_go_when_no_torque_comes():
    one = plant("b", torque=0.5, gravity=(0, 0, 0))
    one.command("m0", (7.0,))
    assert one._forces(one.state).tolist() == [0.5]
    one.command("m0", (np.nan,))
    assert one._forces(one.state).tolist() == [0.0]
    one.command("m0", (-7.0,))
    one.advance(0.9 * WATCHDOG_S)
    assert one._forces(one.state).tolist() == [-0.5]
    one.advance(1.1 * WATCHDOG_S)
    assert one._forces(one.state).tolist() == [0.0]


def test_a_plant_that_diverges_begins_anew_at_rest():
    one = plant("bac")
    one.push(Push(1.0, "m1.joint", 1e30))
    with complains(StateError, "set to rest", "diverged"):
        one.advance(0.5)
    assert not one.state.q.any()
    one.advance(1.0)
    one.push(Push(1.1, "m1.joint", 1.0))
    one.advance(1.1)
    assert 1e-3 < abs(one.state.q[1]) < 10.0


def test_a_robot_that_comes_to_the_base_again_is_lifted_onto_the_ground_again():
    one = Plant(PlantOptions(ground=Ground(lift=True), geared=True))
    one.add("m0", catalog["superbot"])
    ends = ("base", "out"), ("m0", "1")
    one.plug(*ends)
    first = one.state.q
    assert first[2] > 0.01
    one.advance(0.02)
    one.unplug(*ends)
    assert one.contacts() == one.observed() == {}
    one.plug(*ends)
    assert one.refused == {}
    assert one.state.q.tolist() == first.tolist()
    for height, begin in ((0.3, 0.3), (-1.0, first[2])):  # at its pose again, but not below ground
        one.handle({"hold": {}, "pose": [0, 0, height, 0, 0, 0, 1]})
        one.push(Push(1.0, module="m0", force=(1e30, 0.0, 0.0)))
        with complains(StateError, "set to rest"):
            one.advance(0.5)
        assert one.state.q == pytest.approx([0, 0, begin, 0, 0, 0, 1, 0, 0, 0])


def test_noise_has_the_deviation_that_was_asked_for():
    one = plant("b", noise_q=0.03, noise_v=0.1, seed=3)
    readings = np.array([one.reading("m0") for _ in range(4000)])
    assert readings.std(axis=0) == pytest.approx([0.03, 0.1], rel=0.05)
    assert np.abs(readings.mean(axis=0)).max() < 0.01
    again = plant("b", noise_q=0.03, noise_v=0.1, seed=3)  # at rest at zero
    drawn = np.random.default_rng(3).standard_normal(2)
    assert again.reading("m0") == pytest.approx(drawn * [0.03, 0.1])


def test_pieces_that_are_taken_apart_beside_the_robot_stay_apart():
    one = Plant()
    for k, letter in enumerate("bac"):
        one.add(f"m{k}", catalog[f"giusti_{letter}"])
        if k:
            one.plug((f"m{k - 1}", "out"), (f"m{k}", "in"))
    one.unplug(("m2", "in"), ("m1", "out"))
    one.plug(("base", "out"), ("m0", "in"))
    assert one.state.organism.modules == ("m0", "m1")
    one.plug(("m2", "in"), ("m1", "out"))
    assert one.state.organism.modules == ("m0", "m1", "m2")


def test_pieces_grow_beside_the_robot_and_keep_the_places_of_their_joints():
    one = plant("ba", gravity=(0, 0, 0))
    for name in ("m2", "m3"):
        one.add(name, catalog["giusti_a"])
    assert one.reading("m2") == (0.0, 0.0)
    one.plug(("m2", "out"), ("m3", "in"))
    assert one.refused == {}
    assert one.state.organism.modules == ("m0", "m1")
    for joint in ("m0.joint", "m1.joint"):
        one.push(Push(0.1, joint, 1.0))
    one.advance(0.1)
    q = one.state.q.tolist()
    assert min(map(abs, q)) > 1e-6
    one.unplug(("m0", "in"), ("base", "out"))
    assert [one.reading(f"m{k}") for k in range(2)] == [(x, 0.0) for x in q]
    one.plug(("m0", "in"), ("base", "out"))
    one.plug(("m1", "out"), ("m2", "in"))
    assert one.state.organism.modules == ("m0", "m1", "m2", "m3")
    assert one.state.q.tolist() == [*q, 0.0, 0.0]


def test_the_plant_starts_with_its_options_and_a_memory_for_all_modules(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    started = []
    parent = SimpleNamespace(start=lambda *given, **details: started.append((given, details)))
    options, opened = PlantOptions(speed=0.5, geared=True), len(os.listdir("/proc/self/fd"))
    path = start_plant(parent, options, 4)
    assert len(os.listdir("/proc/self/fd")) == opened
    ((name, program, settings), details) = started[0]
    assert (name, program, details) == ("plant", PlantProgram, {"light": False})
    assert settings["memory"] == path
    assert PlantOptions(**settings["options"]) == options
    assert os.path.getsize(path) == 3 * 4 * Mailbox.SIZE


def test_springs_of_joints_are_stiff_in_the_plant():
    one = plant("b")
    one.add("x", catalog["giusti_a"].with_parameters(stiffness=100.0, rotor_inertia=0.01))
    one.plug(("m0", "out"), ("x", "in"))
    assert one.refused == {}
    assert one.state.model.joint_names == ("m0.joint", "x.joint")


def test_what_cannot_be_docked_stays_apart_with_the_reason():
    one = plant("ba")
    one.plug(("m0", "in"), ("m1", "out"))  # a ring
    ((_, reason),) = one.refused.values()
    assert "loop" in reason
    one.add("x", catalog["backbone"])
    one.plug(("m1", "out"), ("x", "2"))
    assert len(one.refused) == 2
    one.unplug(("x", "2"), ("m1", "out"))
    assert len(one.refused) == 1
    assert len(one.state.organism) == 2
    one.unplug(("m0", "out"), ("m1", "in"))  # the other docking of the ring holds now
    assert not one.refused
    assert one.state.organism.docking("m1").port == "in"
    with complains(UnknownNameError, "no joint 'm9.joint'", "m0.joint"):
        one.push(Push(1.0, "m9.joint", 1.0))
    with complains(UnknownNameError, "no module 'm9'", "m0"):
        one.push(Push(1.0, module="m9", force=(1.0, 0.0, 0.0)))
    for wrong in ({"step": 0.0}, {"mass_factor": -1}, {"noise_q": -1.0}, {"torque": 0.0},
                  {"gravity": "down"}, {"seed": -1}):  # fmt: skip
        with complains(StateError, next(iter(wrong))):
            PlantOptions(**wrong)


# -- drives ----------------------------------------------------------------------------------------


def test_every_module_has_three_mailboxes_of_its_own_and_the_file_is_let_go(tmp_path):
    def opened():
        return len(os.listdir("/proc/self/fd"))

    before = opened()
    memory = SharedMemory(str(tmp_path / "memory"), 3)
    other = SharedMemory(str(tmp_path / "memory"))
    assert os.stat(memory.path).st_size == 9 * Mailbox.SIZE
    assert os.stat(memory.path).st_mode & 0o777 == 0o600  # nobody else moves the motors
    kinds = ("readings", "torques", "contacts")
    boxes = [(kind, slot) for slot in range(3) for kind in kinds]
    for k, (kind, slot) in enumerate(boxes):
        getattr(memory, kind)(slot).write((float(k),) * 16)
    for k, (kind, slot) in enumerate(boxes):
        assert getattr(other, kind)(slot).read_new() == (float(k),) * 16
    for each in (memory, other):
        each.close()
        with pytest.raises(ValueError, match="closed"):
            each.readings(0).read_new()
    assert opened() == before


def test_a_drive_feels_contacts_until_another_reading_and_takes_16_goals(tmp_path):
    memory = SharedMemory(str(tmp_path / "memory"), 2)
    drive = SharedDrive(memory.path, 1)
    assert drive.feel() == ()
    memory.contacts(0).write((9.0,))
    contacts = memory.contacts(1)
    contacts.write((1.0, 2.0))
    assert drive.feel() == (1.0, 2.0)
    assert drive.feel() == (1.0, 2.0)  # not anew, and still there
    contacts.write(())
    assert drive.feel() == ()
    drive.write((0.5,) * 16)  # goal and rate of eight servos
    assert memory.torques(1).read_new() == (0.5,) * 16


def test_recorded_readings_come_at_their_times_from_the_first_look_on(tmp_path, monkeypatch):
    (tmp_path / "readings").write_text("[0.5, [0.1, 0]]\n[0.75, [0.2, 3]]\n")
    now = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("modurob.distributed.drive.time", clock)
    drive = RecordedDrive(str(tmp_path / "readings"), str(tmp_path / "log"))
    now[0] = 200.0
    found = []
    for now[0] in (200.0, 200.25, 200.5, 200.625, 200.75, 300.0):
        found.append(drive.read())
    assert found == [(), (), (0.1, 0.0), (0.1, 0.0), (0.2, 3.0), (0.2, 3.0)]
    drive.write((1.5, 2.0))
    drive.write(())
    assert (tmp_path / "log").read_text() == "[1.5, 2.0]\n[]\n"  # at once
    again = RecordedDrive(str(tmp_path / "readings"), str(tmp_path / "log"))
    again.write((1.0,))
    assert (tmp_path / "log").read_text().endswith("[]\n[1.0]\n")
    for each in (drive, again):
        each._log.close()


def test_a_reader_never_takes_a_half_written_mailbox(tmp_path):
    memory = SharedMemory(str(tmp_path / "memory"), 2)
    box, reader = memory.readings(1), memory.readings(1)
    assert memory.torques(1).read_new() is None
    box.write((0.1, 0.2))
    assert reader.read_new() == (0.1, 0.2)
    assert reader.read_new() is None  # it was read already
    box.write(())
    assert isinstance(memory._memory, mmap.mmap)
    at = 3 * Mailbox.SIZE + 20
    memory._memory[at] ^= 1  # the writer is in the middle
    assert reader.read_new() is None
    memory._memory[at] ^= 1
    assert reader.read_new() == ()


def test_a_drive_whose_plant_stands_still_measures_nothing(tmp_path, monkeypatch):
    path = str(tmp_path / "memory")
    memory = SharedMemory(path, 1)
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("modurob.distributed.drive.time", clock)
    drive = SharedDrive(path, 0)
    assert drive.read() == ()
    box = memory.readings(0)
    box.write((0.5, 0.0))
    assert drive.read() == (0.5, 0.0)
    now[0] = 0.09
    assert drive.read() == (0.5, 0.0)
    now[0] = 0.1
    assert drive.read() == ()
    box.write((0.6, 0.0))
    assert drive.read() == (0.6, 0.0)
    drive.write((1.5,))
    assert memory.torques(0).read_new() == (1.5,)
    with complains(StateError, "motors"):
        drive.write((1.0,) * 17)


def test_a_plant_without_room_for_its_drives_says_so_and_leaves_nothing(tmp_path, monkeypatch):
    def full(path, modules):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("modurob.distributed.plant.SharedMemory", full)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with complains(StateError, "No space left on device", "TMPDIR"):
        start_plant(Processes("SimulatedBus"), PlantOptions(), 4)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with complains(StateError, "missing", "TMPDIR"):
        start_plant(Processes("SimulatedBus"), PlantOptions(), 4)
    # all of the memory is there from the beginning, and not only promised
    memory = SharedMemory(str(tmp_path / "memory"), 4)
    assert os.stat(memory.path).st_blocks * 512 >= 8 * Mailbox.SIZE


@pytest.mark.parametrize(
    ("text", "line"),
    [("[0, [0.1, 0]]\nx\n", 2), ("3\n", 1), ('[0, ["a"]]', 1), ("[0, 1]", 1), ("[1e400]", 1),
     ("[" * 10**5, 1), (f"[{10**400}, []]", 1), ("\xff", 1)],
)  # fmt: skip
def test_readings_that_are_none_are_told_with_their_line(tmp_path, text, line):
    path = tmp_path / "readings"
    path.write_text(text, encoding="latin-1")
    with complains(FileError, "readings", f"line {line} is no reading"):
        RecordedDrive(str(path), str(tmp_path / "log"))
    os.mkfifo(tmp_path / "pipe")
    with complains(FileError, "pipe", "no file is there"):
        RecordedDrive(str(tmp_path / "pipe"), str(tmp_path / "log"))


def test_another_drive_takes_the_place_of_the_plant(tmp_path):
    """Recorded readings drive the loop; the coordinator holds the pose that they show."""
    path = tmp_path / "readings"
    path.write_text("[0.0, [0.25, 0.0]]\n[0.05, [0.3, 0.0]]\n", encoding="utf-8")
    kind = f"{RecordedDrive.__module__}:{RecordedDrive.__qualname__}"

    def drives(name):
        return kind, {"path": str(path), "log": str(tmp_path / name)}

    with ProcessBus(drives=drives, period=0.01) as bus:
        bus.start("giusti_a")
        bus.plug("base.out", "m0.in")
        assert bus.wait(lambda: bus.settled(1), 60.0)
        assert bus.wait(lambda: bus.operation.status().q.tolist() == [0.3], 60.0)
        bus.operation.hold()
        weight = examples.arm("a").model("physical").gravity_torque([0.3])[0]

        def written():
            lines = (tmp_path / "m0").read_text().splitlines()
            return bool(lines) and json.loads(lines[-1]) == [pytest.approx(weight)]

        assert bus.wait(written, 60.0)
