"""Programs of processes (mass, balance, standing, plant, node), stepped by the test."""

import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import modurob as mr
from modurob.distributed import GearedDrive, Message, PlantOptions
from modurob.distributed import drive as drives
from modurob.distributed import plant as plants
from modurob.distributed.balancing import program as balancing
from modurob.distributed.balancing.program import BalancingProgram, StandingProgram
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.messages import Address
from modurob.distributed.bus.node import NodeProgram
from modurob.distributed.drive import SharedMemory
from modurob.distributed.mass import processes as masses
from modurob.distributed.mass.processes import MassProcesses, MassProgram
from modurob.distributed.plant import Plant, PlantProgram, Push
from modurob.stepping import RK4, SemiImplicitEuler
from oracles import complains

SUPERBOT = mr.catalog["superbot"]
KIND = SUPERBOT.model_dump(mode="json")


# -- mass ------------------------------------------------------------------------------------------


def test_a_module_answers_each_question_with_what_it_knows_after_the_events():
    program = MassProgram({"kind": KIND, "options": {"heartbeat": 0.5}})
    assert program.wake == -np.inf  # there is something to say
    contact = {"contacts": [[0.0, 0, 0, 0, 0, 1, 0.5]], "pose": np.eye(4).tolist(), "body": 0}
    events = [{"plug": "4", "turn": 90}, {"ask": 3}, contact, {"ask": 4}]
    (message,), answers = program.step([], events, 1.0)
    assert message.port == "4"
    assert [answer["answer"] for answer in answers] == [3, 4]
    for answer in answers:
        assert answer["knowledge"]["leads"]
        assert answer["knowledge"]["total"][3, 3] == pytest.approx(SUPERBOT.mass)
    assert 1.0 < program.wake <= 1.5
    assert program.step([], [], 1.0) == ([], [])


class Parent:
    """The parent's side of processes, without processes."""

    def __init__(self):
        self.sent, self.alive = [], True

    def send(self, name, event):
        self.sent.append((name, event))

    def is_alive(self, name):
        return self.alive


def network(**attributes):
    made = object.__new__(MassProcesses)
    made._processes, made._open, made._questions = Parent(), True, 0
    made.agents = {"m0": None, "m1": None}
    made.__dict__.update(attributes)
    return made


def test_an_answer_to_an_earlier_question_is_not_taken(monkeypatch):
    whole = {
        "total": np.eye(4), "beyond": {}, "contacts": [], "leads": False, "leader_port": None,
        "T_wm": None,
    }  # fmt: skip
    made = network(_questions=6)
    late = {"answer": 6, "knowledge": None}
    heard = [[late], [], [late, {"answer": 7, "knowledge": whole}]]
    monkeypatch.setattr(masses, "time", SimpleNamespace(monotonic=lambda: 100.0))
    ends = []
    made._hear = lambda module, end: ends.append(end) or heard.pop(0)
    assert made.knowledge("m1").total.tolist() == np.eye(4).tolist()
    assert made._processes.sent == [("m1", {"ask": 7})]
    assert heard == []
    assert ends == [110.0] * 3


def test_processes_of_a_network_are_started_then_heard_then_docked(monkeypatch):
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1, turn=90)
    made, heard = network(organism=organism, _docked=set()), []
    made._dockings = {entry.child: entry for entry in organism.dockings}
    parent = made._processes
    parent.addresses = {}
    parent.start = lambda name, program, job, light: parent.sent.append((name, program, job, light))
    parent.plug = lambda end, address, port, turn: parent.sent.append((end, address, port, turn))
    made._job = lambda name, options: {"of": name, **options}

    def hear(name, end):
        heard.append((name, end))
        if len(heard) != 1:  # the first answer is not an address
            parent.addresses[name] = f"at {name}"

    made._hear = hear
    monkeypatch.setattr(masses, "time", SimpleNamespace(monotonic=lambda: 100.0))
    made._start({"x": 1})
    assert heard == [("m0", 160.0), ("m0", 160.0), ("m1", 160.0)]
    assert parent.sent == [
        ("m0", MassProgram, {"of": "m0", "x": 1}, False),
        ("m1", MassProgram, {"of": "m1", "x": 1}, False),
        (("m0", "4"), "at m1", "1", 90), (("m1", "1"), "at m0", "4", 90),
    ]  # fmt: skip
    assert made._docked == {"m1"}


def test_a_process_that_closes_its_output_is_dead():
    made, (told, tell) = network(), os.pipe()
    killed = []

    def kill(name):
        killed.append(name)
        made._processes.alive = False

    made._processes.kill, made._processes.pipe = kill, lambda name: told
    made._processes.listen = lambda pipe: ("m0", None)
    os.close(tell)
    with complains(mr.StateError, "'m0' is dead: its process has ended"):
        made._hear("m0", 0.0)
    os.close(told)
    assert killed == ["m0"]


def test_answers_of_a_process_are_heard_and_its_last_error_is_told():
    made, (told, tell) = network(), os.pipe()
    news = [[{"answer": 1}], [], [{"answer": 2}, {"error": "no memory"}]]
    made._processes.pipe = lambda name: told
    made._processes.listen = lambda pipe: ("m0", news.pop(0))
    with complains(mr.StateError, "the process of 'm0' runs, but has not answered in time"):
        made._hear("m0", 0.0)
    os.close(tell)  # from now on there is something to read
    assert made._hear("m0", 0.0) == [{"answer": 1}]
    assert made._hear("m0", 0.0) == []
    with complains(mr.StateError, "the process of 'm0' has ended: no memory"):
        made._hear("m0", 0.0)
    os.close(told)


def test_waiting_ends_with_the_condition_or_with_the_time(monkeypatch):
    now = [10.0]

    def sleep(seconds):
        assert seconds == 0.01  # so often it looks
        now[0] += 1

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(masses, "time", clock)
    made = network()
    assert made.wait(lambda: now[0] >= 14)
    assert made.wait(lambda: False, 2.5) is False
    assert now[0] == 17.0
    with complains(mr.StateError, "seconds"):
        made.wait(lambda: True, 0)


# -- balance ---------------------------------------------------------------------------------------


class Clock:
    def __init__(self, monkeypatch, now):
        self.now = now
        for module in (balancing, drives):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))


@pytest.fixture
def memory(tmp_path):
    made = SharedMemory(str(tmp_path / "memory"), 2)
    yield made
    made.close()


def test_a_module_that_balances_works_at_its_ticks_and_keeps_messages_until_then(
    monkeypatch, memory
):
    clock = Clock(monkeypatch, 100.0)
    program = BalancingProgram({
        "kind": KIND, "options": {"law": "shared"}, "interval": 0.04,
        "drive": {"path": memory.path, "slot": 1},
    })  # fmt: skip
    assert program.wake == 100.0
    seen = []
    exchange = program._agent.step
    program._agent.step = lambda *given: seen.append(given[1:]) or exchange(*given)
    commands = memory.torques(1)
    program.step([], [], 100.0)
    assert program.wake == 100.04
    assert commands.read_new() is None  # nothing was measured
    assert program._state.tick == -1
    junk = [Message("4", b"x"), Message("1", b"y")]
    assert program.step(junk[:1], [], 100.02) == ([], [])
    program.step(junk[1:], [], 100.03)
    memory.readings(1).write((0.1, 0.4, 0.2, 0.5, 0.3, 0.6))
    clock.now = 100.041
    program.step([], [], 100.041)
    assert seen == [([], 100.0), (junk, 100.041)]
    assert program.wake == pytest.approx(100.08)  # ticks that came late do not shift the others
    np.testing.assert_array_equal(program._state.q, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(program._state.v, [0.4, 0.5, 0.6])
    assert program._state.tick == 0
    assert len(commands.read_new()) == 3
    program.step([], [], 107.0)
    assert seen[-1][0] == []
    assert program.wake == 107.0  # it does not make up for ticks that it missed


def test_a_module_that_stands_counts_simulated_seconds_and_feels_the_ground(monkeypatch, memory):
    clock = Clock(monkeypatch, 50.0)
    program = StandingProgram({
        "kind": KIND, "options": {"frames": 2, "frame": [0, "4"], "period": 0.02}, "interval": 0.08,
        "drive": {"path": memory.path, "slot": 0}, "speed": 0.25,
    })  # fmt: skip
    seen = []
    exchange = program._agent.step
    program._agent.step = lambda *given: seen.append(given[2]) or exchange(*given)
    memory.readings(0).write((0.1, 0.0, 0.2, 0.0, 0.3, 0.0))
    memory.contacts(0).write((0.5, 0.6, 0.7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0.9, 2))
    clock.now = 58.0
    program.step([], [], 58.0)
    assert seen == [2.0]
    state = program._state
    np.testing.assert_array_equal(state.home, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(state.pose[:3, 3], [0.5, 0.6, 0.7])
    assert (state.touching, state.contact_body) == (True, 2)
    assert memory.torques(0).read_new() == (0.1, 0.0, 0.2, 0.0, 0.3, 0.0)  # goals and rates


# -- nodes -----------------------------------------------------------------------------------------

SETTINGS = {"record": b"record".hex(), "uid": 7, "name": "m", "ports": ["in"], "heartbeat": 0.25}


class Drive:
    def __init__(self, scale):
        self.scale, self.written = scale, []

    def read(self):
        return (0.5 * self.scale, 0.25)

    def write(self, torques):
        self.written.append(torques)


def test_a_node_reads_and_moves_its_own_drive_or_tells_its_parent(monkeypatch):
    monkeypatch.setattr(
        "modurob.distributed.bus.node.loaded", lambda path: {"p:Drive": Drive}[path]
    )
    given = []

    def step(state, inbox, now, reading):
        given.append((inbox, now, reading))
        state.wake = 3.5
        outbox = [
            msg.own(msg.DriveSignal((1.5,))), Message("in", b"out"), msg.own(msg.Stored(b"new")),
        ]  # fmt: skip
        return state, outbox

    for drive in (None, ("p:Drive", {"scale": 3})):
        program = NodeProgram({**SETTINGS, "drive": drive})
        node = program._node
        assert (node.uid, node.record, node.name, node.ports) == (7, b"record", "m", ("in",))
        assert node.heartbeat == 0.25
        assert program._state.links.address.uid == 7
        node.step = step
        plugged = msg.own(msg.Plugged("in", 90))
        sent, answers = program.step(
            [Message("in", b"x")], [{"signal": plugged.payload.hex()}, {"other": 1}], 2.0
        )
        assert sent == [Message("in", b"out")]
        assert program.wake == 3.5
        inbox, now, reading = given.pop()
        assert (inbox, now) == ([Message("in", b"x"), plugged], 2.0)
        stored = {"stored": b"new".hex()}
        if drive is None:
            assert reading is None
            assert answers == [{"drive": (1.5,)}, stored]
        else:
            assert reading == (1.5, 0.25)
            assert answers == [stored]
            assert program._drive.written == [(1.5,)]


def test_a_node_draws_a_new_number_whenever_it_starts():
    found = [NodeProgram(SETTINGS)._state.links.address for _ in range(20)]
    assert len({*found}) == 20
    assert 2**28 < max(address.boot for address in found) < 2**32
    assert Address(7, 1).uid == 7


# -- plant -----------------------------------------------------------------------------------------


def giusti(word, **options):
    one = Plant(PlantOptions(**options))
    for k, letter in enumerate(word):
        one.add(f"m{k}", mr.catalog[f"giusti_{letter}"])
        if k:
            one.plug((f"m{k - 1}", "out"), (f"m{k}", "in"))
    return one


def test_a_plant_does_what_events_say():
    one = Plant(PlantOptions(gravity=(0, 0, 0)))
    kinds = [mr.catalog[f"giusti_{letter}"].model_dump(mode="json") for letter in "ba"]
    for k, kind in enumerate(kinds):
        one.handle({"add": f"m{k}", "kind": kind})
    one.handle({"hold": {"m0.joint": 0.3, "m1.joint": -0.2}, "pose": [1, 2, 3, 0, 0, 0, 1]})
    assert one.reading("m1") == (-0.2, 0.0)
    one.handle({"dock": [["m0", "out"], ["m1", "in"], 0]})
    one.handle({"dock": [["base", "out"], ["m0", "in"], 0]})
    np.testing.assert_array_equal(one.state.q, [0.3, -0.2])  # its base is fixed
    one.t = 2.0
    one.handle({"push": {"joint": "m1.joint", "torque": 0.5}, "seconds": 0.25})
    assert one._pushes == [Push(2.25, "m1.joint", 0.5)]
    np.testing.assert_array_equal(one._forces(one.state), [0.0, 0.5])
    mass = one.state.model.mass.sum()
    one.handle({"payload": "m1", "mass": 0.75})
    assert one.state.model.mass.sum() == pytest.approx(mass + 0.75)
    one.command("m0", (2.0,))
    one.handle({"fault": "m0", "as": "limp"})
    np.testing.assert_array_equal(one._forces(one.state), [0.0, 0.5])
    one.handle({"fault": "m0", "as": "none"})
    np.testing.assert_array_equal(one._forces(one.state), [2.0, 0.5])
    one.handle({"undock": [["m1", "in"], ["m0", "out"]]})
    assert one.state.organism.modules == ("m0",)
    np.testing.assert_allclose(one.state.q, [0.3])
    assert one.reading("m1") == (-0.2, 0.0)
    one.handle({"undock": [["base", "out"], ["m0", "in"]]})
    assert one.state is None
    assert one.reading("m0") == (0.3, 0.0)
    assert one.observed() == one.contacts() == {}


def test_readings_are_those_of_the_robot_or_of_what_is_held():
    one = giusti("ba")
    one.plug(("base", "out"), ("m0", "in"))
    one.add("m2", mr.catalog["giusti_a"])
    one._held = {"m1.joint": 9.0, "m2.joint": 0.7}
    one.state = replace(one.state, q=np.array([0.1, 0.2]), v=np.array([0.3, 0.4]))
    assert [one.reading(f"m{k}") for k in range(3)] == [(0.1, 0.3), (0.2, 0.4), (0.7, 0.0)]
    assert one.contacts() == one.observed() == {}  # there is no ground


def test_servos_go_on_with_their_rate_until_their_commands_are_late():
    one = giusti("ba", gravity=(0, 0, 0), stiffness=4.0, friction=0.5, torque=1.5, geared=True)
    one.plug(("base", "out"), ("m0", "in"))
    one.t = 0.7
    one.command("m1", (0.2, 0.1))  # goal and rate
    one.command("m0", (9.0, 0.0))
    drive = GearedDrive(0.5, 1.5)
    for age, t in ((0.0, 0.7), (0.06, 0.76), (0.1, 1.0)):
        one.t = t
        goal = np.array([0.2 + age * 0.1])
        wanted = drive.servo(4.0, goal, np.array([0.1]), one.state.q[1:])
        np.testing.assert_allclose(one._forces(one.state), [1.5, *wanted])
    for wrong in ((0.2,), (np.nan, 0.0), (0.1, 0.2, 0.3)):
        one.command("m1", wrong)
        assert one._forces(one.state)[1] == 0.0


def test_a_base_on_the_ground_begins_upright_at_the_origin_and_servos_move_joints_alone():
    one = Plant(PlantOptions(ground=mr.Ground(lift=True), stiffness=4.0, geared=True))
    one.add("m0", SUPERBOT)
    one.plug(("base", "out"), ("m0", "1"))
    np.testing.assert_array_equal(one.state.q[[0, 1, 3, 4, 5, 6]], [0, 0, 0, 0, 0, 1])
    one.command("m0", (0.1, 0.0, 0.2, 0.0, 0.3, 0.0))
    np.testing.assert_allclose(one._forces(one.state), [0.0] * 6 + [0.4, 0.8, 1.2])
    one.state = replace(one.state, q=np.arange(10.0), v=np.arange(20.0, 29.0))
    assert one.reading("m0") == (7.0, 26.0, 8.0, 27.0, 9.0, 28.0)


def test_motors_have_their_last_torque_for_a_tenth_of_a_second():
    one = giusti("b", gravity=(0, 0, 0))
    one.plug(("base", "out"), ("m0", "in"))
    one.command("m0", (0.5,))
    for one.t, torque in ((0.1, 0.5), (0.1 + 1e-9, 0.0)):
        assert one._forces(one.state).tolist() == [torque]


def test_drives_of_several_joints_take_their_torques_in_order_and_pushes_add_to_them():
    one = Plant(PlantOptions(gravity=(0, 0, 0), torque=2.0, friction=0.25))
    one.add("m0", SUPERBOT)
    one.add("m1", SUPERBOT)
    one.plug(("m0", "4"), ("m1", "1"))
    one.plug(("base", "out"), ("m0", "1"))
    names = one.state.model.joint_names
    one.command("m1", (0.5, -3.0, np.inf))
    one.push(Push(1.0, names[1], 0.125))
    one.push(Push(1.0, names[1], 0.25))
    found = dict(zip(names, one._forces(one.state), strict=True))
    own = list(one._joints["m1"])
    assert [found.pop(name) for name in own] == [0.5, -2.0, 0.0]
    assert found.pop(names[1]) == 0.375
    assert set(found.values()) == {0.0}
    model = one.state.model
    plain = one.state.organism.model("physical", gravity=(0, 0, 0))
    np.testing.assert_allclose(model.viscous, plain.viscous + 0.25)
    one.advance(0.5)
    assert len(one._pushes) == 2
    one.advance(1.0)
    assert one._pushes == []
    one.t = 0.0
    one.command("m1", (0.5, 0.5, 0.5))
    one.fault("m1", "stuck")
    assert not one._forces(one.state).any()
    stuck = [name in own for name in one.state.model.joint_names]
    np.testing.assert_array_equal(one.state.model.viscous > 1e8, stuck)


@pytest.mark.parametrize("geared", [False, True])
def test_joints_of_the_plant_stop_at_their_limits_and_move_as_their_drives_need(geared):
    """Drives with much friction, and stuck ones, take an implicit method."""
    free = mr.catalog["giusti_b"]
    for kind in (free.with_parameters(limits=(-0.2, 0.3)), free):
        one = Plant(PlantOptions(geared=geared, step=2e-3))
        one.add("m0", kind)
        one.plug(("base", "out"), ("m0", "in"))
        stops = one._integrator.motion.stops
        assert (stops is not None) == (geared or kind is not free)
        if kind is not free:
            over = stops(np.array([0.4]), np.zeros(1))
            assert over[0] < 0
            if geared:
                assert over[0] == pytest.approx(-20.0 * 0.1)
        method = SemiImplicitEuler if geared else RK4
        assert type(one._integrator) is method
        assert one._integrator.settings.dt == 2e-3
        one.fault("m0", "stuck")
        assert type(one._integrator) is SemiImplicitEuler


def test_contact_sensors_of_the_plant_feel_its_ground():
    one = Plant(PlantOptions(ground=mr.Ground(friction=0.4, lift=True), geared=True))
    one.add("m0", SUPERBOT)
    assert one.contacts() == one.observed() == {}  # there is no robot
    one.plug(("base", "out"), ("m0", "1"))
    one.fault("m0", "stuck")
    one.advance(0.2)
    seen, q = one.observed(), one.state.q
    assert seen["t"] == one.t == pytest.approx(0.2)
    np.testing.assert_array_equal(seen["q"], q)
    np.testing.assert_array_equal(seen["v"], one.state.v)
    weight = 9.81 * SUPERBOT.mass
    np.testing.assert_allclose(seen["contact"].sum(axis=0), [0, 0, weight], atol=0.01 * weight)
    ((module, reading),) = one.contacts().items()
    assert module == "m0"
    np.testing.assert_allclose(reading[:3], q[:3])
    normal = mr.spatial.so3.from_quaternion(q[3:7]) @ reading[10:13]
    np.testing.assert_allclose(normal, [0, 0, 1], atol=1e-9)
    assert reading[13] == 0.4
    held = giusti("b")
    held.plug(("base", "out"), ("m0", "in"))
    assert held.contacts() == held.observed() == {}  # there is no ground


def test_a_robot_below_the_ground_is_refused_and_may_come_again_from_above():
    one, ends = Plant(PlantOptions(ground=mr.Ground())), (("base", "out"), ("m0", "1"))
    one.add("m0", SUPERBOT)
    one.plug(*ends)
    ((_, reason),) = one.refused.values()
    assert "below the ground" in reason
    assert one.state is None
    one.unplug(*ends)
    one.handle({"hold": {}, "pose": [0, 0, 0.3, 0, 0, 0, 1]})
    one.plug(*ends)
    assert one.refused == {}
    assert one.state.q[2] == 0.3


@pytest.mark.parametrize("factor", [1.5, 2.0])
def test_masses_of_the_plant_differ_by_their_factor(factor):
    one = giusti("ba", mass_factor=factor)
    one.plug(("base", "out"), ("m0", "in"))
    q = np.array([0.2, 0.7])
    weight = mr.examples.arm("ba").model("physical").gravity_torque(q)
    np.testing.assert_allclose(one.state.model.gravity_torque(q), factor * weight)


def test_noise_is_drawn_for_each_joint_and_from_the_seed():
    def readings(**options):
        one = Plant(PlantOptions(**options))
        one.add("m0", SUPERBOT)
        one._held = {f"m0.{joint.name}": k for k, joint in enumerate(SUPERBOT.joints)}
        return one.reading("m0")

    assert readings() == (0.0, 0.0, 1.0, 0.0, 2.0, 0.0)
    first = readings(noise_v=0.1, seed=2)
    assert first[::2] == (0.0, 1.0, 2.0)
    assert len({*first[1::2]}) == 3
    assert readings(noise_v=0.1, seed=2) == first
    assert readings(noise_v=0.1, seed=3) != first


def test_options_reach_from_the_least_to_the_largest():
    for name, least, most in (
        ("step", 1e-6, 0.1), ("mass_factor", 1e-3, 1e3), ("speed", 1e-3, 1e3), ("noise_q", 0, 1e6),
        ("noise_v", 0, 1e6), ("friction", 0, 1e9),
    ):  # fmt: skip
        for good in (least, most):
            assert getattr(PlantOptions(**{name: good}), name) == good
        for wrong in (least - 1e-7, most * 1.01):
            with complains(mr.StateError, name):
                PlantOptions(**{name: wrong})
    with complains(mr.StateError, "stiffness"):
        PlantOptions(stiffness=-1.0)
    ground = PlantOptions(ground={"friction": 0.4}).ground
    assert (type(ground), ground.friction) == (mr.Ground, 0.4)
    assert PlantOptions(torque=3).torque == 3


class World:
    """A plant that keeps what is done to it."""

    def __init__(self, options):
        self.options, self.t, self.refused, self.state = options, 0.0, {}, None
        self.handled, self.commands = [], []

    def handle(self, event):
        self.handled.append(event)
        if "wrong" in event:
            raise mr.StateError("no such module")
        if "refuse" in event:
            self.refused[("m0", "in"), ("m1", "out")] = 0, "a loop"

    def command(self, name, values):
        self.commands.append((name, values))

    def advance(self, until):
        if until > 90:
            raise mr.StateError("diverged")
        self.t = max(self.t, until)

    def reading(self, name):
        return (self.t, 0.5)

    def contacts(self):
        return {"m1": (self.t,)}

    def observed(self):
        return {"t": self.t}


@pytest.fixture
def program(monkeypatch, memory):
    now = [10.0]
    monkeypatch.setattr(plants, "Plant", World)
    monkeypatch.setattr(plants, "_warm_up", lambda options: None)
    monkeypatch.setattr(plants, "time", SimpleNamespace(monotonic=lambda: now[0]))
    removed = []
    monkeypatch.setattr(plants, "atexit", SimpleNamespace(register=removed.append))

    def made(**options):
        found = PlantProgram({"options": options, "memory": memory.path})
        (remove,) = removed
        found.remove = remove
        return found

    return made


def test_the_plant_runs_by_the_clock_and_answers_with_its_errors(program, memory):
    one = program(speed=0.5)
    assert one.wake == 10.0
    adds = [{"add": "m0", "slot": 0}, {"add": "m1", "slot": 1}]
    assert one.step([], adds, 10.0) == ([], [])
    assert one._plant.handled == adds
    commands = memory.torques(1)
    commands.write((1.5,))
    readings = [memory.readings(slot) for slot in (0, 1)]
    _, answers = one.step([], [{"wrong": 1}, {"refuse": 1}, {"ask": True}], 10.04)
    assert one._plant.commands == [("m1", (1.5,))]
    assert one._plant.t == pytest.approx(0.02)  # half as fast
    assert answers == [
        {"error": "no such module"}, {"error": "m0.in does not dock to m1.out: a loop"},
        {"state": {"t": one._plant.t}},
    ]  # fmt: skip
    assert [box.read_new() for box in readings] == [(one._plant.t, 0.5)] * 2
    assert one.wake == pytest.approx(10.04 + 0.01)  # at rest
    one._plant.state = object()
    one.step([], [], 10.05)
    assert one.wake == pytest.approx(10.05 + 1e-3 / 0.5)
    assert memory.contacts(1).read_new() is None  # there is no ground
    assert one.step([], [{"ask": 1}], 10.05)[1] == [{"state": {"t": one._plant.t}}]
    one._plant.t = 0.01  # behind, as of a machine that is slow
    one._plant.advance = lambda until: None
    one.step([], [], 10.06)
    assert one.wake == pytest.approx(10.06)
    one.remove()
    assert not os.path.exists(memory.path)
    one.remove()


def test_the_plant_stands_still_while_its_process_is_stopped(program):
    one = program()
    one.step([], [], 10.0)
    one.step([], [], 10.04)
    assert one._plant.t == pytest.approx(0.04)
    one.step([], [], 15.0)
    assert one._plant.t == pytest.approx(0.09)  # it makes up for 50 ms
    one.step([], [], 15.01)
    assert one._plant.t == pytest.approx(0.1)
    one._begin -= 200.0
    one._plant.t = 205.0
    assert one.step([], [], 15.02)[1] == [{"error": "diverged"}]


def test_contact_sensors_are_read_every_10_ms_and_tell_when_nothing_is_felt(program, memory):
    one = program(ground={"friction": 0.5})
    one.step([], [{"add": "m0", "slot": 0}, {"add": "m1", "slot": 1}], 10.0)
    boxes = [memory.contacts(slot) for slot in (0, 1)]
    assert [box.read_new() for box in boxes] == [(), (0.0,)]
    one.step([], [], 10.009)
    assert boxes[1].read_new() is None
    one.step([], [], 10.011)
    assert boxes[1].read_new() == (one._plant.t,)
    one._felt_at, one._plant.t = 2.0, 2.01
    one._plant.advance = lambda until: None
    one.step([], [], 12.01)
    assert boxes[1].read_new() == (2.01,)  # exactly so late
