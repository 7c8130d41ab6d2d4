"""The host of a bus of processes: what it sends and how it takes answers, without processes."""

import threading
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

from modurob import Organism, StateError, catalog, examples
from modurob.distributed import Message, PlantOptions, ProcessBus
from modurob.distributed.bus import builder as builders
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus import processes as hosts
from modurob.distributed.bus.assembly import BusAssembly
from modurob.distributed.bus.builder import RobotBuilder
from modurob.distributed.bus.bus import BusModule
from modurob.distributed.bus.coordinator import Coordinator
from modurob.distributed.bus.messages import Address
from modurob.distributed.bus.native_coordinator import NativeOperation
from modurob.distributed.bus.node import Node
from modurob.distributed.bus.processes import LoopClock, _checked_native, _native_settings
from modurob.distributed.bus.robot import BusRobot
from modurob.distributed.bus.survey import Survey
from oracles import complains


class Socket:
    """An endpoint that keeps what is done to it."""

    def __init__(self):
        self.done = []

    def plug(self, *link):
        self.done.append(("plug", *link))

    def unplug(self, port):
        self.done.append(("unplug", port))


class Parent:
    """The parent's side of processes."""

    def __init__(self):
        self.done, self.answers, self.dead = [], {}, set()

    def start(self, name, program, settings, **details):
        self.done.append(("start", name, dict(settings), details))

    def send(self, name, event):
        self.done.append(("send", name, event))

    def plug(self, end, address, port):
        self.done.append(("plug", end, address, port))

    def unplug(self, end):
        self.done.append(("unplug", end))

    def is_alive(self, name):
        return name not in self.dead

    def listen(self, pipe):
        return self.answers[pipe]


def module(name, letter, ports=("in", "out")):
    return BusModule(name, catalog[f"giusti_{letter}"], Node(7, b"record", name=name, ports=ports))


def host(*, in_c=False, **attributes):
    made = object.__new__(ProcessBus)
    modules = {"m0": module("m0", "b"), "m1": module("m1", "a")}
    made.__dict__.update(
        _processes=Parent(), endpoint=Socket(), _in_c=in_c, _native=False, _program="program",
        _drives=None, plant=None, _memory="", modules=modules, heartbeat=0.25, _open=True,
        _news=threading.Condition(), _signals=deque(), _driven_in_c=False, torques={},
        _addresses={"base": "B", "m0": "0", "m1": "1"}, _state=Coordinator().start(1),
        _tree={"findings": []}, clock=LoopClock(0.01), _replaced=set(), _failure=None,
        builder=RobotBuilder(), woken=0,
    )  # fmt: skip
    made.__dict__.update(attributes)
    made._wake = lambda: made.__dict__.update(woken=made.woken + 1)
    if in_c:
        made.builder.operation = NativeOperation(0.01, lambda command: None)
    return made


# -- the clock -------------------------------------------------------------------------------------


def test_a_clock_that_is_late_leaves_ticks_out_and_keeps_its_beat(monkeypatch):
    monkeypatch.setattr(hosts, "time", SimpleNamespace(monotonic=lambda: 10.0))
    clock = LoopClock(0.25)
    assert clock.is_due(9.99) is False
    assert (clock.ticks, clock.due, clock.period) == (0, 10.0, 0.25)
    assert clock.is_due(10.125)
    assert (clock.ticks, clock.missed, clock.due) == (1, 0, 10.25)
    assert not clock.is_due(10.24)
    assert clock.is_due(11.0625)  # 10.5, 10.75 and 11.0 are left out
    assert (clock.ticks, clock.missed, clock.due) == (2, 3, 11.25)
    assert clock.is_due(11.25)
    assert (clock.ticks, clock.missed, clock.due) == (3, 3, 11.5)
    assert [*clock.late] == [0.125, 0.8125, 0.0]
    clock.late.extend([0.5] * 10_001)  # of the last ten thousand ticks
    assert [*clock.late] == [0.5] * 10_000


# -- settings --------------------------------------------------------------------------------------


def test_native_modules_are_all_or_those_of_some_names():
    for given, found in ((True, True), (False, False), (["m1", "m2"], ("m1", "m2")), ([], ())):
        assert _checked_native(given) == found
    for wrong in ("m1", ["m1", ""], [1], 3, None):
        with complains(StateError, "native is True, False or names"):
            _checked_native(wrong)
    assert host(_native=True).is_native("m9")
    assert not host(_native=False).is_native("m0")
    some = host(_native=("m1",))
    assert (some.is_native("m1"), some.is_native("m0")) == (True, False)


def test_a_coordinator_in_c_gets_the_gains_of_one_joint_and_computed_torque_alone():
    builder = RobotBuilder(gravity=(0.0, 1.0, -3.0), sample_time=0.02)
    found = _native_settings(builder, 0.02, 0.5)
    law = builder.law(catalog_model(), **builder.settings)
    assert found == {
        "ports": ["out"], "heartbeat": 0.5, "gravity": [0.0, 1.0, -3.0], "period": 0.02,
        "sample_time": 0.02, "k0": law.k0[0], "k1": law.k1[0],
    }  # fmt: skip
    assert _native_settings(RobotBuilder(), 0.02, 0.5)["sample_time"] == 0.0
    with complains(StateError, "law computed-torque, got pd-gravity"):
        _native_settings(RobotBuilder("pd-gravity"), 0.02, 0.5)


def catalog_model():
    from modurob import Organism

    return Organism.start("giusti_b").model("physical")


def test_the_law_of_a_coordinator_in_c_cannot_be_changed():
    bus = host(in_c=True)
    with complains(StateError, "a coordinator in C keeps its law and gains"):
        bus.builder.change_law("pd-gravity")
    with complains(StateError, "a law needs a robot with joints"):
        host().builder.change_law("pd-gravity")


def test_labels_of_native_modules_are_printable_ascii():
    hosts._check_native(module("m0", "b", ["in", "port 7"]))
    for label in ("ä", "a'b", "a\\b", "a\tb"):
        with complains(StateError, "of 'm0': labels of native modules are printable ASCII"):
            hosts._check_native(module("m0", "b", ["in", label]))
        bus = host(modules={"m0": module("m0", "b", ["in", label])}, _native=("m0",))
        with complains(StateError, "labels of native modules"):
            bus._launch(bus.modules["m0"])
        assert bus._processes.done == []


def test_a_drive_is_a_class_and_options_that_travel():
    good = ("a.b:C", {"x": [1, "y"]})
    assert hosts._checked_drive(list(good)) == good
    for wrong in ("a.b:C", ("a.b.C", {}), ("a:C", 3), ("a:C",), None):
        with complains(StateError, "drives gives a class as"):
            hosts._checked_drive(wrong)
    with complains(StateError, "options of a drive are numbers, texts, lists and dicts"):
        hosts._checked_drive(("a:C", {"x": object()}))


# -- what goes out ---------------------------------------------------------------------------------

NODE = {
    "uid": 7, "record": b"record".hex(), "ports": ("in", "out"),
    "heartbeat": Node(7, b"r").heartbeat,
}  # fmt: skip


def started(bus, name):
    bus._launch(bus.modules[name])
    ((what, who, settings, details),) = bus._processes.done
    assert (what, who, settings.pop("name")) == ("start", name, name)
    drive = settings.pop("drive", None)
    assert settings == NODE
    assert name not in bus._addresses  # of its process before
    assert bus.woken == 1
    assert details.pop("light")
    return drive, details["native"]


def test_modules_start_with_their_record_and_their_drive():
    assert started(host(), "m1") == (None, "")
    assert started(host(_native=("m1",)), "m1") == (None, "program")
    assert started(host(_native=("m1",)), "m0") == (None, "")
    drives = host(_drives=lambda name: ("a:C", {"of": name}))
    assert started(drives, "m1") == (("a:C", {"of": "m1"}), "")
    assert drives.clocked
    plant = host(plant=PlantOptions(), _memory="/memory")
    (kind, options), _ = started(plant, "m1")
    assert kind == "modurob.distributed.drive:SharedDrive"
    assert options == {"path": "/memory", "slot": 1}
    assert plant.clocked
    assert not host().clocked


def test_the_plant_is_told_the_slot_of_a_module():
    bus = host(plant=PlantOptions())
    bus._plant({"add": "m1", "kind": {}})
    bus._plant({"dock": 1})
    assert bus._processes.done == [
        ("send", "plant", {"add": "m1", "kind": {}, "slot": 1}), ("send", "plant", {"dock": 1})
    ]  # fmt: skip


@pytest.mark.parametrize("in_c", [False, True])
def test_links_of_the_base_are_those_of_the_own_socket_or_of_a_process(in_c):
    bus = host(in_c=in_c)
    bus._connect(("base", "out"), ("m1", "in"))
    bus._disconnect(("m1", "in"), ("base", "out"))
    own, other = [("plug", "out", "1", "in"), ("unplug", "out")], ("plug", ("m1", "in"), "B", "out")
    if in_c:
        assert bus.endpoint.done == []
        assert bus._processes.done == [
            ("plug", ("base", "out"), "1", "in"), other, ("unplug", ("m1", "in")),
            ("unplug", ("base", "out")),
        ]  # fmt: skip
    else:
        assert bus.endpoint.done == own
        assert bus._processes.done == [other, ("unplug", ("m1", "in"))]
    plugged, bytes_ = msg.Plugged("out", 90), msg.pack(msg.Plugged("out", 90)).hex()
    del bus._processes.done[:]
    bus._signal("m0", plugged)
    bus._signal("base", plugged)
    signals = [("send", "m0", {"signal": bytes_})]
    assert bus._processes.done == signals + [("send", "base", {"signal": bytes_})] * in_c
    assert [*bus._signals] == [msg.own(plugged)] * (not in_c)
    assert bus.woken == (not in_c)


def test_a_link_waits_until_both_ends_are_up_or_one_has_ended():
    bus, seen = host(), []
    addresses = bus._addresses

    def wait(until, seconds):
        addresses.pop("m1")
        seen.append((until(), seconds))
        bus._processes.dead.add("m1")
        seen.append((until(), seconds))
        bus._processes.dead.clear()
        addresses["m1"] = "1"
        seen.append((until(), seconds))

    bus._wait = wait
    for name in ("m0", "base"):
        bus._connect((name, "out"), ("m1", "in"))
    assert seen == [(False, 60.0), (True, 60.0), (True, 60.0)] * 2


def test_a_bus_is_warm_when_coordinator_and_plant_have_come_up_and_compiled():
    bus, waits = host(_warm=True, _addresses={"base": "B"}), []

    def wait(until, seconds):
        waits.append(seconds)
        return until()

    bus.wait = wait
    bus.wait_until_warm()
    bus.plant = PlantOptions()
    with complains(StateError, "coordinator and plant are not ready after 120 s"):
        bus.wait_until_warm()
    bus._addresses["plant"] = "P"
    bus.wait_until_warm()
    bus._warm = False
    with complains(StateError, "not ready"):
        bus.wait_until_warm()
    assert waits == [120.0] * 4
    assert bus.address == "B"


def test_waiting_lasts_until_the_condition_holds_or_the_time_is_over(monkeypatch):
    bus, now, waits = host(), [10.0], []
    monkeypatch.setattr(hosts, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def wait(seconds):
        waits.append(seconds)
        now[0] += seconds

    bus._news.wait = wait
    assert bus._wait(lambda: now[0] >= 10.0625, 0.125)
    assert waits == [0.02] * 4  # so often it looks
    now[0] = 20.0
    assert bus._wait(lambda: False, 0.03125) is False
    assert waits[4:] == [0.02, pytest.approx(0.01125)]


def test_modules_that_do_not_come_up_are_named(monkeypatch):
    monkeypatch.setattr(hosts, "START_TIMEOUT_S", 0.0)
    monkeypatch.setattr(hosts, "END_TIMEOUT_S", 0.01)
    bus = host(_addresses={"m0": "0"})
    with complains(StateError, "m0 and m1 have not come up in 0 s"):
        bus._connect(("m0", "out"), ("m1", "in"))
    bus._processes.dead.add("m1")
    bus._failure = StateError("the process of 'm1' has ended: no drive")
    with complains(StateError, "no drive"):
        bus._connect(("m0", "out"), ("m1", "in"))


# -- what comes in ---------------------------------------------------------------------------------


def heard(bus, name, *events):
    bus._processes.answers[5] = name, None if events == (None,) else [*events]
    bus._listen(5)


def test_answers_of_modules_are_torques_memories_and_errors():
    bus = host()
    heard(bus, "m1", {"drive": [1.5, -2.0]}, {"stored": b"new".hex()}, {"other": 1})
    assert bus.torques == {"m1": (1.5, -2.0)}
    assert bus.modules["m1"].node.record == b"new"
    with complains(StateError, "the process of 'm1' has ended: no port"):
        heard(bus, "m1", {"error": "no port"})
    with complains(StateError, "m0 does not dock") as complaint:
        heard(bus, "plant", {"error": "m0 does not dock"})
    assert "process" not in complaint.message
    heard(bus, "m1", None)
    assert bus.torques == {}
    with complains(StateError, hosts.LOST["plant"], "start a new bus"):
        heard(bus, "plant", None)
    bus._open = False  # it is being closed
    heard(bus, "plant", None)


def test_the_end_of_a_coordinator_in_c_is_told_to_the_operation():
    bus = host(in_c=True)
    with complains(StateError, hosts.LOST["base"]):
        heard(bus, "base", None)
    with complains(StateError, hosts.LOST["base"]):
        bus.builder.operation.check_alive()
    with complains(StateError, hosts.LOST["base"]):
        bus.settled(1)


def finding(uid, name):
    above = ["0", 3, b"out".hex()]
    return [0, *above, f"{uid:x}", 1, b"in".hex(), 0, name.encode().hex()]


def test_tree_and_state_of_a_coordinator_in_c_are_taken_with_the_memories_of_its_modules():
    bus = host(in_c=True)
    heard(bus, "base", {"tree": {"findings": [finding(0x1A, "m0"), finding(0x2B, "new")]}})
    one, other = Address(0x1A, 1), Address(0x2B, 1)
    assert bus._state.survey.modules == (one, other)
    assert bus._state.table[one].record == b"record"
    assert bus._state.table[other].record is None
    heard(bus, "m0", {"stored": b"new".hex()})
    assert bus._state.table[one].record == b"new"  # though the tree came before
    told = {
        "modules": [["1a", 1, 0, [0.5, 0.1], [2.5]], ["2b", 1, 0, [], []]], "driven": True,
        "cycles": 70, "missed": 3, "command": 0, "refused": 0, "mode": "hold", "progress": 0.0,
        "set_point": [],
    }  # fmt: skip
    heard(bus, "base", {"state": told})
    assert bus._state.table[one].values == (0.5, 0.1)
    assert bus.builder.commanded() == {one: (2.5,)}
    assert (bus.clock.ticks, bus.clock.missed, bus._driven_in_c) == (70, 3, True)
    assert bus.builder.operation._told is told


def test_a_robot_in_c_is_settled_when_it_is_whole_measured_and_driven():
    bus = host(in_c=True, _driven_in_c=True)
    names = {Address(1, 1): "m0", Address(2, 1): "m1"}
    assembly = SimpleNamespace(names=names)
    bus.builder.robot = SimpleNamespace(assembly=assembly)
    q = [np.array([0.1, 0.2])]
    bus.builder.operation.status = lambda: SimpleNamespace(q=q[0])
    bus.builder.is_built = lambda state: state is bus._state
    assert bus.settled(2)
    assert not bus.settled(3)
    bus._replaced = {Address(2, 1)}
    assert not bus.settled(2)
    bus._replaced = {Address(9, 1)}
    q[0] = np.array([0.1, np.nan])
    assert not bus.settled(2)
    q[0] = np.zeros(2)
    bus._driven_in_c = False
    assert not bus.settled(2)
    bus._driven_in_c = True
    bus.builder.is_built = lambda state: False
    assert not bus.settled(2)


def test_states_ask_for_the_same_robot_by_survey_and_table_or_revision():
    def state(survey, table, revision=1, ready=True):
        return SimpleNamespace(survey=survey, table=table, revision=revision, ready=ready)

    survey, table = Survey(), {}
    same = state(survey, table)
    for bus, ticks in (
        (host(), False),
        (host(plant=PlantOptions()), True),
        (host(in_c=True), True),
    ):
        assert bus._same(same, state(survey, table))
        assert bus._same(same, state(survey, table, 2))
        assert bus._same(same, state(survey, {1: 2})) == ticks  # another reading
        assert not bus._same(same, state(survey, {1: 2}, 2))
        assert not bus._same(same, state(Survey((1,)), table))
        assert not bus._same(same, state(survey, table, ready=False))


def test_waiting_ends_with_the_condition_the_time_or_a_failure():
    bus = host()
    counts = []
    assert bus.wait(lambda: counts.append(1) or len(counts) > 2, 5.0)
    assert bus.wait(lambda: False, 0.01) is False
    bus._failure = KeyError("background")
    with pytest.raises(KeyError, match="background"):
        bus.wait(lambda: False, 5.0)
    assert not bus.wait(lambda: False, 0.01)  # it was told
    with complains(StateError, "seconds"):
        bus.wait(lambda: True, 0)


@pytest.mark.parametrize("late", ["", "base", "plant", "compiler"])
def test_a_bus_is_warm_when_coordinator_and_plant_have_started_and_compiled(monkeypatch, late):
    monkeypatch.setattr(hosts, "WARM_UP_TIMEOUT_S", 0.02)
    addresses = {name: "A" for name in ("base", "plant") if name != late}
    bus = host(plant=PlantOptions(), _addresses=addresses, _warm=late != "compiler")
    if not late:
        bus.wait_until_warm()
        host(_addresses={"base": "A"}, _warm=True).wait_until_warm()  # without a plant
        return
    with complains(StateError, "coordinator and plant are not ready after 0.02 s"):
        bus.wait_until_warm()


@pytest.mark.parametrize("clocked", [False, True])
def test_the_builder_waits_for_another_state_or_a_heartbeat(clocked):
    """Commands of the user change torques without any news of the bus."""
    bus, built, waits = host(plant=PlantOptions() if clocked else None), [], []
    bus.builder = SimpleNamespace(
        update=lambda state, now: built.append(state) or [Message("", b"torque")],
        rebuild=lambda state: built.append(state) or False,
    )
    bus._warm, bus._seen = True, bus._state
    other = Coordinator().start(2)
    other.survey = Survey((Address(1, 1),))

    class News(threading.Condition().__class__):
        def wait(self, timeout=None):
            waits.append(timeout)
            if len(waits) == 2:
                bus._state = other if clocked else bus._state
            return clocked or len(waits) == 1

    bus._news = News()
    bus._build()
    assert waits == [None if clocked else 0.25] * 2
    assert built == [other if clocked else bus._state]
    assert bus._seen is built[0]
    assert [*bus._signals] == ([] if clocked else [Message("", b"torque")])
    assert bus.woken == 1
    bus._open = False
    bus._build()  # the bus was closed meanwhile
    assert len(built) == 1


def test_a_host_passes_signals_then_messages_and_begins_a_cycle_when_it_is_due(monkeypatch):
    bus, steps, sent = host(plant=PlantOptions()), [], []
    bus._bell = SimpleNamespace(recv=lambda size: steps.append("bell"))
    bus._processes.pipes = lambda: [5, 6]
    bus._processes.answers[6] = "m1", [{"drive": [2.0]}]
    bus.endpoint.receive = lambda: [Message("out", b"in")]
    bus.endpoint.send = sent.append
    waits = []

    def select(inputs, outputs, errors, seconds):
        assert inputs == [bus.endpoint, bus._bell, 5, 6]
        waits.append(seconds)
        return [bus._bell, 6], [], []

    now = [20.0]
    monkeypatch.setattr(hosts, "select", SimpleNamespace(select=select))
    monkeypatch.setattr(hosts, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def step(state, inbox, at):
        steps.append((inbox, at))
        return state, [Message("out", b"step")] if inbox else []

    bus._root = SimpleNamespace(step=step)
    bus._cycle = lambda state, at: (state, [Message("out", b"cycle")])
    bus._signals.append(Message("", b"signal"))
    bus._state.wake, bus.clock.due = 20.5, 20.25
    bus._carry()
    assert waits == [0.25]
    assert steps == ["bell", ([Message("", b"signal")], 20.0), ([Message("out", b"in")], 20.0)]
    assert sent == [[Message("out", b"step")]] * 2
    assert bus.torques == {"m1": (2.0,)}
    assert not bus._signals
    now[0] = 20.25
    bus._processes.answers[6] = "m1", []
    bus._carry()
    assert waits[1] == 0.0
    assert sent[-1] == [Message("out", b"cycle")]
    assert bus.clock.ticks == 1
    bus.plant = None  # without a clock, the coordinator's time counts
    bus._carry()
    assert waits[2] == 0.25
    bus._in_c = True
    del steps[:]
    bus._carry()
    assert waits[3] == bus.heartbeat
    assert steps == ["bell"]  # the rest is done by the program in C


def test_an_open_bus_keeps_no_program_from_ending_nor_a_caller_waiting(monkeypatch):
    monkeypatch.setattr(RobotBuilder, "warm_up", lambda self: None)
    with ProcessBus(drives=lambda name: ("a:B", {})) as bus:
        assert [(x.name, x.daemon) for x in bus._threads] == [("bus", True), ("builder", True)]
        assert not bus._ring.getblocking()  # a bell that rings already is not waited for
    assert not any(thread.is_alive() for thread in bus._threads)


def test_a_closed_bus_leaves_nothing_and_may_be_closed_again(tmp_path):
    bus, told = host(_memory=str(tmp_path / "memory")), []
    (tmp_path / "memory").touch()
    bus._threads = [SimpleNamespace(join=lambda seconds: told.append(("joined", seconds)))]
    for name in ("_bell", "_ring", "endpoint", "_processes"):
        part = SimpleNamespace(
            close=lambda name=name: told.append(f"{name} closed"), end=lambda: told.append("ended")
        )
        setattr(bus, name, part)
    bus.close()
    assert told == [
        "ended", ("joined", 2.0), "_processes closed", "endpoint closed", "_bell closed",
        "_ring closed",
    ]  # fmt: skip
    assert bus.woken == 1
    assert not [*tmp_path.iterdir()]
    bus.close()
    assert len(told) == 6


# -- the builder -----------------------------------------------------------------------------------


class Fake:
    """A law that notes what it is made of."""

    key, parameters, made = "fake", {}, []

    def __init__(self, model, *, sample_time=0.0, k=1.0):
        self.model, self.settings, self.asked = model, {"sample_time": sample_time, "k": k}, []
        self.made.append(self)

    def command(self, t, q, v):
        self.asked.append("torques")

    def certificate(self):
        self.asked.append("certificate")
        return "certified"


@pytest.fixture
def laws(monkeypatch):
    monkeypatch.setattr(builders, "law_class", lambda law: Fake)
    monkeypatch.setattr(Fake, "made", [])
    return Fake.made


def test_gains_of_other_joints_are_left_out_when_a_builder_warms_up(laws):
    RobotBuilder("fake", sample_time=0.02, k=3.0).warm_up()
    RobotBuilder("fake", sample_time=0.02, k=[3.0, 4.0]).warm_up()
    assert [law.settings for law in laws] == [
        {"sample_time": 0.02, "k": 3.0}, {"sample_time": 0.0, "k": 1.0}
    ]  # fmt: skip
    assert [law.asked for law in laws] == [["torques", "certificate"]] * 2


def test_another_law_needs_a_robot_with_joints_and_keeps_the_period(laws):
    builder = RobotBuilder("fake", sample_time=0.02, k=3.0)
    with complains(StateError, "a law needs a robot with joints"):
        builder.change_law("fake")
    still = Organism.start("backbone")
    builder.operation.robot = BusRobot(BusAssembly(still), still.model("physical"))
    with complains(StateError, "a law needs a robot with joints"):
        builder.change_law("fake")
    arm = examples.arm("b")
    builder.operation.robot = BusRobot(BusAssembly(arm), model := arm.model("physical"), "old")
    builder.change_law("fake", k=5.0)
    assert builder.settings == {"sample_time": 0.02, "k": 5.0}
    assert laws[-1].settings == builder.settings
    assert laws[-1].model is model
    assert builder.robot.controller is laws[-1]
    assert builder.operation.robot.certificate == "certified"


def test_a_builder_counts_the_robots_that_it_has_built(laws):
    builder, state = RobotBuilder("fake"), Coordinator().start(1)
    assert builder.rebuild(state) is False  # not all is known yet
    state.ready = True
    assert [builder.rebuild(state), builder.rebuild(state), builder.built] == [True, False, 1]
    state.survey = Survey((), ())
    assert [builder.rebuild(state), builder.built] == [True, 2]
