"""The parent of modules and plant as processes: events, answers, faults, without processes."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

import modurob as mr
from modurob.distributed import BalancingProcesses, Fault, GearedDrive, Impulse, MassAgent
from modurob.distributed.balancing import processes as plants
from modurob.distributed.balancing import standing_processes
from modurob.distributed.balancing.standing_processes import StandingProcesses
from modurob.distributed.balancing.support import goal_of, support_polygon
from modurob.distributed.drive import SharedMemory
from modurob.distributed.mass.base import ends_of
from oracles import complains

ORGANISM = mr.Organism.start("superbot").dock("m0", 4, "m1", 1, turn=90)
KIND = mr.catalog["superbot"]


class Parent:
    """The parent's side of processes."""

    def __init__(self):
        self.sent, self.dead, self.closed, self.answers = [], set(), 0, []
        self.reader, self.writer = os.pipe()
        self.addresses = {"m0": "A", "m1": "B"}

    def send(self, name, event):
        self.sent.append((name, event))

    def is_alive(self, name):
        return name not in self.dead

    def kill(self, name):
        self.dead.add(name)

    def pipe(self, name):
        return self.reader

    def listen(self, pipe):
        os.read(pipe, 1)
        return "plant", self.answers.pop(0)

    def says(self, *answers):
        self.answers.append(list(answers))
        os.write(self.writer, b".")

    def plug(self, end, address, port, **details):
        self.sent.append(("plug", end, address, port, details))

    def unplug(self, end):
        self.sent.append(("unplug", end))

    def close(self):
        self.closed += 1


@pytest.fixture
def made(tmp_path):
    """A maker of networks without processes."""
    parents, memories = [], []

    def make(kind, **attributes):
        parents.append(Parent())
        memories.append(SharedMemory(str(tmp_path / f"memory{len(memories)}"), 2))
        found = object.__new__(kind)
        found.__dict__.update(
            organism=ORGANISM, _processes=parents[-1], _memory=memories[-1], _open=True,
            agents={name: MassAgent(KIND) for name in ORGANISM}, _positions={}, speed=0.25,
            model=ORGANISM.model("physical"), drive=GearedDrive(0.2, 5.0), _questions=0,
            _dockings={entry.child: entry for entry in ORGANISM.dockings}, _docked={"m1"},
            **attributes,
        )  # fmt: skip
        return found

    yield make
    for parent, memory in zip(parents, memories, strict=True):
        memory.close()
        os.close(parent.reader)
        os.close(parent.writer)


# -- the plant -------------------------------------------------------------------------------------


def test_positions_are_those_that_the_plant_wrote_last(made):
    net = made(BalancingProcesses)
    boxes = [net._memory.readings(slot) for slot in (0, 1)]
    boxes[1].write((0.1, 9.0, 0.2, 9.0, 0.3, 9.0))
    names = [f"m1.{joint}" for joint in net.agents["m1"].body.joint_names]
    assert net.positions() == dict(zip(names, (0.1, 0.2, 0.3), strict=True))
    net._memory.readings(0).write((0.4, 9.0, 0.5, 9.0, 0.6, 9.0))
    found = net.positions()
    assert len(found) == 6
    assert [found[name] for name in names] == [0.1, 0.2, 0.3]  # nothing new: the last ones
    found.clear()
    assert len(net.positions()) == 6
    net._memory, memory = None, net._memory
    with complains(mr.StateError, "the network is closed: its processes have ended"):
        net.positions()
    memory.close()


def test_answers_of_the_plant_are_read_until_there_are_no_more_and_its_errors_raised(made):
    net = made(BalancingProcesses)
    assert net._from_plant(0.0) == []
    net._processes.says({"a": 1})
    net._processes.says({"b": 2}, {"c": 3})
    assert net._from_plant(0.0) == [{"a": 1}, {"b": 2}, {"c": 3}]
    net._processes.says({"a": 1}, {"error": "no such port"})
    with complains(mr.StateError, "no such port"):
        net._from_plant(0.0)
    net._processes.kill("plant")
    with complains(mr.StateError, "the plant is dead: its process has ended"):
        net._from_plant(0.0)


def test_dockings_reach_the_plant_too(made):
    net = made(BalancingProcesses)
    one, other = ends_of(ORGANISM.docking("m1"))
    net.unplug("m1")
    assert net._processes.sent == [
        ("unplug", one), ("unplug", other), ("plant", {"undock": [one, other]})
    ]  # fmt: skip
    assert net._docked == set()
    with complains(mr.DockingError, "'m1' is not docked to 'm0'"):
        net.unplug("m1")
    del net._processes.sent[:]
    net.plug("m1")
    assert net._processes.sent == [
        ("plug", one, "B", other[1], {"turn": 90}), ("plug", other, "A", one[1], {"turn": 90}),
        ("plant", {"dock": [one, other, 90]}),
    ]  # fmt: skip
    with complains(mr.DockingError, "'m1' is docked to 'm0' already"):
        net.plug("m1")
    with complains(mr.DockingError, "'m0' is the base"):
        net.plug("m0")


def test_closing_removes_the_memory_and_may_be_repeated(made):
    net = made(BalancingProcesses)
    path = net._memory.path
    net.close()
    assert not os.path.exists(path)
    assert net._memory is None
    net.close()
    assert net._processes.closed == 2
    with complains(mr.StateError, "the network is closed"):
        net.measure(np.zeros(6))


def test_modules_are_put_into_the_plant_before_they_start(made, monkeypatch):
    net, begun = made(BalancingProcesses, _interval=0.04), []
    path = net._memory.path

    def start(processes, options, modules):
        begun.append((processes, options, modules))
        return path

    monkeypatch.setattr(plants, "start_plant", start)
    monkeypatch.setattr(plants.MassProcesses, "_start", lambda self, options: begun.append(options))
    monkeypatch.setattr(type(net), "_settings", lambda self, module, options: {"of": module})
    net._memory.close()
    net._start({"x": 1})
    (processes, options, modules), settings = begun
    assert (processes, modules, settings) == (net._processes, 2, {"x": 1})
    assert (options.friction, options.torque, options.geared, options.speed) == (0.2, 5, True, 0.25)
    assert [(name, event["add"], event["slot"]) for name, event in net._processes.sent] == [
        ("plant", "m0", 0), ("plant", "m1", 1)
    ]  # fmt: skip
    job = net._job("m1", {})
    assert job["drive"] == {"path": path, "slot": 1}
    assert (job["interval"], job["speed"], job["options"]) == (0.04, 0.25, {"of": "m1"})
    net._memory.close()


def test_gravity_of_the_plant_is_in_the_frame_of_the_base(made):
    net = made(BalancingProcesses)
    turned = np.eye(4)
    turned[:3, :3] = [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    net.organism = ORGANISM.with_base_pose(turned)
    np.testing.assert_allclose(net._plant().gravity, turned[:3, :3].T @ net.model.gravity)


# -- balance ---------------------------------------------------------------------------------------


def test_the_center_counts_what_is_docked_and_the_distance_is_from_what_the_base_wants(made):
    net = made(BalancingProcesses, _goal=goal_of((0.1, -0.2)), _region=None)
    net.agents["m0"] = mr.distributed.BalancingAgent(KIND)
    rng = np.random.default_rng(1)
    q = dict(zip(net.model.joint_names, rng.uniform(-0.5, 0.5, 6), strict=True))
    net.positions = lambda: q
    center = net.model.center_of_mass(np.array([q[name] for name in net.model.joint_names]))
    np.testing.assert_allclose(net.center(), center)
    assert net.distance() == pytest.approx(np.linalg.norm(center[:2] - [0.1, -0.2]))
    net._docked.clear()
    alone = mr.Organism.start("superbot").model("physical")
    own = alone.center_of_mass(np.array([q[name] for name in alone.joint_names]))
    np.testing.assert_allclose(net.center(), own)
    regions = [support_polygon([[1.0, 0, 0], [1, 1, 0], [2, 0, 0]]), None]
    net._goal = None
    net.agents["m0"].region = lambda known: regions[0]
    net.knowledge = lambda name: None
    expected = np.linalg.norm(own[:2] - regions[0].nearest(own[:2]))
    assert net.distance() == pytest.approx(expected)
    net._processes.kill("m0")
    regions[0] = None
    assert net.distance() == pytest.approx(expected)  # what it wanted last
    net._region = None
    assert net.distance() == 0.0


def test_the_robot_is_let_go_when_every_module_knows_the_whole(made):
    net = made(BalancingProcesses)
    mass = net.model.mass.sum()
    known = {name: SimpleNamespace(T_wm=np.eye(4), total=mass * np.eye(4)) for name in ORGANISM}
    net.knowledge = known.__getitem__
    net.positions = lambda: dict.fromkeys(range(6), 0.0)
    net.distance = lambda: 0.0
    net.wait = lambda ready, seconds: ready()
    dock = [("plant", {"dock": [["m0", ""], ["base", ""], 0]})]
    net._let_go()
    assert net._processes.sent == dock
    known["m1"].total = mass * (1 - 9e-10) * np.eye(4)
    net._let_go()
    for spoil in (
        lambda: known["m1"].__dict__.update(total=mass * (1 - 2e-9) * np.eye(4)),
        lambda: known["m1"].__dict__.update(total=mass * np.eye(4), T_wm=None),
        lambda: (known["m1"].__dict__.update(T_wm=np.eye(4)),
                 net.__dict__.update(positions=lambda: {0: 0.0})),
    ):  # fmt: skip
        spoil()
        with complains(mr.StateError, "not all modules know the whole after 60 s"):
            net._let_go()


# -- standing --------------------------------------------------------------------------------------


def test_the_plant_of_a_standing_robot_has_servos_and_its_first_posture(made):
    q0 = np.arange(13.0)
    net = made(StandingProcesses, _stiffness=30.0, _ground=mr.Ground(friction=0.4), _q0=q0)
    options = net._plant()
    assert (options.stiffness, options.geared, options.speed) == (30.0, True, 0.25)
    assert (options.friction, options.torque, options.ground.friction) == (0.2, 5.0, 0.4)
    np.testing.assert_allclose(options.gravity, [0, 0, -9.81])
    net._place_body()
    joints = dict(zip(net.model.joint_names, range(7, 13), strict=True))
    assert net._processes.sent == [("plant", {"hold": joints, "pose": q0[:7].tolist()})]


def test_a_standing_robot_is_let_go_when_all_servos_are_on(made):
    net, waited = made(StandingProcesses), []

    def wait(ready, seconds):
        waited.append(ready())
        net._memory.torques(0).write((0.1,))
        waited.append(ready())
        return len(waited) > 2

    net.wait = wait
    with complains(mr.StateError, "servos of 1 modules are off after 60 s", "lower speed"):
        net._let_go()
    assert waited == [False, False]
    net._memory.torques(1).write((0.1,))
    net.wait = lambda ready, seconds: ready()
    net._let_go()
    assert net._processes.sent == [("plant", {"dock": [["m0", ""], ["base", ""], 0]})]


def test_a_push_of_processes_has_its_impulse_within_50_ms_and_servos_of_the_dead_let_go(made):
    net = made(StandingProcesses)
    net.push((0.1, -0.2, 0.3))
    net.kill("m1")
    (_, push), limp = net._processes.sent
    assert push["seconds"] == 0.05
    assert push["push"]["module"] == "m0"
    np.testing.assert_allclose(push["push"]["force"], [2.0, -4.0, 6.0])
    assert limp == ("plant", {"fault": "m1", "as": "limp"})
    assert not net.is_alive("m1")


def test_a_run_of_processes_is_what_was_observed_with_faults_and_a_push_at_their_times(
    made, monkeypatch
):
    net, done, slept = made(StandingProcesses), [], []
    monkeypatch.setattr(standing_processes, "time", SimpleNamespace(sleep=slept.append))
    times = iter([7.0, 7.1, 7.2, 7.35, 7.5, 9.0])

    def observed():
        t = next(times)
        return {"t": np.array(t), "q": np.full(13, t), "v": np.full(12, t * t),
                "contact": np.full((8, 3), t)}  # fmt: skip

    net._observed = observed
    net.kill = lambda name: done.append((name, round(7.0 + fractions[-1] * 0.5, 9)))
    net.push = lambda impulse: done.append((impulse, round(7.0 + fractions[-1] * 0.5, 9)))
    fractions = [0.0]
    push = Impulse(0.15, (1.0, 2.0, 3.0))
    faults = [Fault(0.34, "m1", "die"), Fault(0.0, "m0", "die")]
    run = net.run(0.5, push=push, faults=faults, record=0.05, progress=fractions.append)
    np.testing.assert_allclose(run.t, [0.0, 0.1, 0.2, 0.35, 0.5])
    np.testing.assert_allclose(fractions[1:], [0.0, 0.2, 0.4, 0.7, 1.0])
    # told of with the progress before
    assert done == [("m0", 7.0), ((1.0, 2.0, 3.0), 7.1), ("m1", 7.2)]
    assert slept == [pytest.approx(0.2)] * 5
    np.testing.assert_allclose(run.q[:, 0], [7.0, 7.1, 7.2, 7.35, 7.5])
    assert run.channels["contact"].shape == (5, 8, 3)
    assert np.isnan(run.tau).all()
    assert run.tau.shape == run.v.shape
    np.testing.assert_allclose(run.a, np.gradient(run.v, run.t, axis=0))
    assert (run.name, run.model) == ("m0", net.model)


def test_the_plant_is_asked_until_it_tells_its_state_or_time_is_over(made, monkeypatch):
    net, now = made(StandingProcesses), [0.0]
    monkeypatch.setattr(standing_processes, "time", SimpleNamespace(monotonic=lambda: now[0]))
    answers = [[], [{"x": 1}, {"state": {}}], [{"state": {"t": 0.5, "q": [1, 2]}}]]

    def answer(seconds):
        now[0] += 1.0
        return answers.pop(0) if answers else []

    net._from_plant = answer
    found = net._observed()
    assert found["t"] == 0.5
    assert found["q"].tolist() == [1, 2]
    assert net._processes.sent == [("plant", {"ask": True})] * 3
    with complains(mr.StateError, "the plant runs, but has not answered in time"):
        net._observed()
    assert now == [13.0]
