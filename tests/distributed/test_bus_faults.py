"""What modules may get wrong: it is named, left out, and the rest works on."""

import struct
import zlib
from itertools import pairwise

import numpy as np
import pytest

from modurob import DockingError, ModuleType, StateError, UnknownNameError, catalog, examples
from modurob.distributed import Message, SimulatedBus
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.links import LinkTable
from modurob.distributed.bus.messages import Address, FrameKind, Status
from modurob.distributed.bus.node import Node
from modurob.modules.record import CRC, HEADER, encode
from modurob.modules.record_fields import Tag, split_fields, write_count
from oracles import complains

UID = 0x0242AC110099
UID_TEXT = "02:42:ac:11:00:99"


def sealed(data: bytes) -> bytes:
    """A record with its checksums made right again."""
    head, body = data[: HEADER.size], data[HEADER.size + CRC.size : -CRC.size]
    data = head + CRC.pack(zlib.crc32(head)) + body
    return data + CRC.pack(zlib.crc32(data))


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


def with_nan(data: bytes) -> bytes:
    half = struct.pack("<d", 0.5)  # a mass
    assert half in data
    return sealed(data.replace(half, struct.pack("<d", np.nan), 1))


def without_joints(data: bytes) -> bytes:
    """The output cannot be reached from the input."""
    fields = split_fields(data[HEADER.size + CRC.size : -CRC.size])
    kept = [(t, x) for t, x in fields if t not in (Tag.JOINT, Tag.PAIR)]
    body = b"".join(bytes([t]) + write_count(len(x)) + x for t, x in kept)
    size = HEADER.size + 2 * CRC.size + len(body)
    head = data[:6] + struct.pack("<I", size) + data[10 : HEADER.size]
    return sealed(head + bytes(4) + body + bytes(4))


GOOD = encode(catalog["giusti_a"], UID)
RECORDS = {
    "flipped bit": (flipped(GOOD, 200), "its checksum does not match"),
    "flipped bit in its header": (flipped(GOOD, 12), "damaged header"),
    "future version": (sealed(GOOD[:4] + b"\x02\0" + GOOD[6:]), "newer modurob"),
    "not a number": (with_nan(GOOD), "mass"),
    "output not reachable": (without_joints(GOOD), "joints must connect"),
    "cut off": (GOOD[:100], "100 bytes, but its header gives"),
    "nothing": (b"", "not a module's record"),
    "garbage": (b"\xff" * 3000, "not a module's record"),
    "another module's": (encode(catalog["giusti_a"], 5), "record of module 00:00:00:00:00:05"),
    "other ports": (encode(catalog["backbone"], UID), "port in, which a backbone does not have"),
}


def ring(number):
    """Backbones around a cell, the first on the base."""
    bus = SimulatedBus()
    names = [bus.start("backbone") for _ in range(number)]
    for k, name in enumerate(names):
        bus.plug(f"{name}.3", f"{names[(k + 1) % number]}.4")
    bus.plug("base.out", "m0.2")
    return bus


@pytest.mark.parametrize("what", RECORDS)
def test_a_bad_record_is_refused_with_the_id_of_its_module_and_the_rest_works(what):
    record, complaint = RECORDS[what]
    bus = SimulatedBus()
    bus.start("giusti_b")
    bus.start("giusti_a", uid=UID, record=record)
    bus.start("giusti_c", "tip")
    bus.plug("base.out", "m0.in")
    bus.plug("m0.out", "m1.in")
    bus.plug("m1.out", "tip.in")
    assert bus.run(lambda: bus.settled(1))
    assert bus.robot.assembly.organism == examples.arm("b")
    bad, beyond = bus.robot.assembly.faults
    assert bad.startswith("'m1' is left out")
    assert complaint in bad
    if what != "other ports":
        assert UID_TEXT in bad
    assert beyond == "'tip' is left out: it is reached over 'm1'"
    assert bus.torques.keys() == {"m0"}


def test_two_modules_with_one_id_are_reported_and_not_merged():
    bus = SimulatedBus()
    bus.start("giusti_b", uid=UID)
    bus.start("giusti_a")
    bus.start("giusti_b", uid=UID)
    bus.plug("base.out", "m0.in")
    bus.plug("m0.out", "m1.in")
    bus.plug("m1.out", "m2.in")
    assert bus.run(lambda: bus.settled(2) and bus.coordinator.survey.twins)
    assert bus.robot.assembly.organism == examples.arm("ba")
    (fault,) = bus.robot.assembly.faults
    assert f"id {UID_TEXT} is there twice: 'm0' is used, 'm2'" in fault
    assert bus.torques.keys() == {"m0", "m1"}


@pytest.mark.parametrize("number", [3, 4, 6])
def test_a_ring_of_modules_is_named_and_gets_no_controller(number):
    bus = ring(number)
    assert bus.run(
        lambda: bool(bus.robot.assembly.faults) and bus.builder.is_current(bus.coordinator)
    )
    assert bus.robot.assembly.organism is None
    assert bus.robot.controller is None
    (fault,) = bus.robot.assembly.faults
    assert fault.startswith("loop: m")
    inside = fault.partition("(")[2].partition(")")[0].split(" - ")
    assert sorted(inside) == [f"m{k}" for k in range(number)]
    # in the order in which they stand around the ring
    steps = {(int(b[1:]) - int(a[1:])) % number for a, b in pairwise(inside)}
    assert steps in ({1}, {number - 1})


def test_a_ring_that_is_opened_becomes_a_robot():
    bus = ring(4)
    assert bus.run(lambda: bool(bus.robot.assembly.faults))
    bus.unplug("m2.3")
    assert bus.run(lambda: bus.settled(4))
    assert bus.robot.assembly.faults == ()


def test_closing_a_ring_lets_the_motors_go():
    bus = ring(4)
    bus.unplug("m2.3")
    assert bus.run(lambda: bus.settled(4))
    assert len(bus.torques) == 4
    bus.plug("m2.3", "m3.4")
    assert bus.run(lambda: not bus.torques)
    assert bus.robot.controller is None


def test_a_module_docked_to_itself_is_a_ring_of_one():
    bus = SimulatedBus()
    bus.start("backbone")
    bus.plug("base.out", "m0.2")
    bus.plug("m0.3", "m0.5")
    assert bus.run(lambda: bool(bus.robot.assembly.faults))
    assert "(m0)" in bus.robot.assembly.faults[0]
    bus.unplug("m0")  # both ends of that docking, and the one to the base
    assert not bus.docked


def test_connectors_of_different_size_do_not_dock():
    data = catalog["giusti_b"].model_dump()
    data["ports"][0].update(connector="giusti-in-wide", mates=("giusti-out-wide",))
    bus = SimulatedBus()
    bus.start("giusti_b")
    bus.start(ModuleType(**data))
    bus.plug("base.out", "m0.in")
    bus.plug("m0.out", "m1.in")
    assert bus.run(lambda: bool(bus.robot.assembly.faults) and bus.settled(1))
    (fault,) = bus.robot.assembly.faults
    assert "does not mate" in fault
    assert "port out of 'm0' (giusti-out)" in fault
    assert "port in of 'm1' (giusti-in-wide)" in fault


def test_a_turn_that_the_connectors_do_not_allow_is_named():
    bus = SimulatedBus()
    bus.start("giusti_b")
    bus.start("giusti_b")
    bus.plug("base.out", "m0.in")
    bus.plug("m0.out", "m1.in", 90)
    assert bus.run(lambda: bool(bus.robot.assembly.faults) and bus.settled(1))
    assert "turn 90 is not allowed" in bus.robot.assembly.faults[0]


def test_a_module_that_never_speaks_is_waited_for_and_then_left_out():
    bus = SimulatedBus()
    bus.start("giusti_b")
    bus.start("giusti_b")
    bus.kill("m1")
    bus.plug("base.out", "m0.in")
    bus.plug("m0.out", "m1.in")
    assert bus.run(lambda: bus.settled(1))
    assert bus.robot.assembly.faults == ("no answer at port out of 'm0'; it is left out",)


def test_names_that_cannot_be_used_are_replaced():
    bus = SimulatedBus()
    bus.start("giusti_b", "7 of 9", uid=UID)
    bus.plug("base.out", "7 of 9.in")
    assert bus.run(lambda: len(bus.robot.assembly.names) == 1)
    assert bus.robot.assembly.organism.modules == (f"m_{UID:x}",)


# -- frames ----------------------------------------------------------------------------------------


def test_frames_that_make_no_sense_are_counted_and_change_nothing():
    bus = SimulatedBus()
    bus.start("giusti_b")
    bus.plug("base.out", "m0.in")
    assert bus.run(lambda: bus.settled(1))
    number = bus.states["m0"].links.ports["in"]
    peer = number.there
    nonsense = [
        b"",
        b"MB",
        bytes(5000),
        msg.pack_frame(FrameKind.DATA, number.here, peer, b"\x01"),
        msg.pack_frame(FrameKind.DATA, number.here, peer, struct.pack("<I", 99) + b"\x77"),
        # a module that wants to command the coordinator
        msg.pack_frame(
            FrameKind.DATA,
            number.here,
            peer,
            struct.pack("<I", 98) + msg.pack(msg.Torque(Address(1, 1), 1, (5.0,))),
        ),
    ]
    before = bus.robot
    bus.transport.send("m0", [Message("in", data) for data in nonsense])
    bus.run(lambda: False, 0.1)
    assert bus.coordinator.links.ignored == len(nonsense)
    assert bus.robot is before


def test_frames_of_a_link_that_was_replaced_are_ignored():
    links = LinkTable(Address(1, 100), 0.25)
    links.plug("in", 0)
    old = links.ports["in"].here
    hello = msg.HELLO.pack(msg.Hello(Address(2, 5), 1, 7, 1, False, "out"))
    assert links.take("in", msg.pack_frame(FrameKind.HELLO, 40, old, hello), 0.0)[0] is not None
    links.plug("in", 0)
    assert links.take("in", msg.pack_frame(FrameKind.HELLO, 40, old, hello), 0.0)[0] is None
    assert links.ports["in"].peer is None


def test_hellos_that_were_overtaken_are_ignored():
    links = LinkTable(Address(1, 100), 0.25)
    links.plug("in", 0)
    for number, heard in ((1, True), (3, True), (2, False), (3, False), (4, True)):
        hello = msg.HELLO.pack(msg.Hello(Address(2, 5), number, 7, 1, False, "out"))
        found, _ = links.take("in", msg.pack_frame(FrameKind.HELLO, 40, 0, hello), 0.0)
        assert (found is not None) == heard


def test_a_neighbor_that_acknowledges_nothing_counts_as_silent(monkeypatch):
    monkeypatch.setattr("modurob.distributed.bus.links.MOST_WAITING", 100)
    links = LinkTable(Address(1, 100), 0.25)
    links.plug("in", 0)
    hello = msg.HELLO.pack(msg.Hello(Address(2, 7), 1, 5, 1, False, "out"))
    links.take("in", msg.pack_frame(FrameKind.HELLO, 9, links.ports["in"].here, hello), 0.0)
    for _ in range(101):
        links.post("in", b"x", 0.01)
    assert links.neighbors()[0].status is Status.HEARD
    assert links.is_pulse(0.02)
    assert links.neighbors()[0].status is Status.SILENT
    assert not links.ports["in"].waiting


def test_a_message_that_comes_twice_is_taken_once_and_acknowledged_twice():
    links = LinkTable(Address(1, 100), 0.25)
    links.plug("in", 0)
    mine = links.ports["in"].here
    hello = msg.HELLO.pack(msg.Hello(Address(2, 5), 1, 7, 1, False, "out"))
    links.take("in", msg.pack_frame(FrameKind.HELLO, 40, 0, hello), 0.0)
    for number, new in ((2, True), (1, True), (2, False), (1, False), (3, True), (3, False)):
        body = struct.pack("<I", number) + b"message"
        _, arrived = links.take("in", msg.pack_frame(FrameKind.DATA, 40, mine, body), 0.0)
        assert arrived == ([b"message"] if new else [])
        kind, _, to, acknowledged = msg.unpack_frame(links.outbox[-1].payload)
        assert (kind, to, acknowledged) == (FrameKind.ACK, 40, struct.pack("<I", number))


def test_only_the_coordinator_commands_and_older_commands_are_ignored():
    """A module takes torques from where the coordinator is, newest first."""
    node = Node(7, b"record")
    state, _ = node.step(node.start(1), [msg.own(msg.Plugged("in", 0))], 0.0)
    state, _ = node.step(state, [msg.own(msg.Plugged("out", 0))], 0.0)
    for port, beat, peer in (("in", 5, 40), ("out", 0, 50)):
        hello = msg.HELLO.pack(msg.Hello(Address(peer, 1), 1, beat, 1, beat == 0, "x"))
        frame = msg.pack_frame(FrameKind.HELLO, peer, 0, hello)
        state, _ = node.step(state, [Message(port, frame)], 0.0)
    assert state.parent == "in"

    def told(port, peer, number, torque):
        mine = state.links.ports[port].here
        message = msg.pack(msg.Torque(Address(7, 1), torque, (float(torque),)))
        frame = msg.pack_frame(FrameKind.DATA, peer, mine, struct.pack("<I", number) + message)
        after, outbox = node.step(state, [Message(port, frame)], 0.0)
        drives = [m.payload for m in outbox if m.port == msg.OWN]
        return after, [msg.unpack_signal(payload).values for payload in drives]

    assert told("out", 50, 1, 9)[1] == []  # a module further out
    state, driven = told("in", 40, 1, 5)
    assert driven == [(5.0,)]
    assert told("in", 40, 2, 4)[1] == []
    assert told("in", 40, 2, 6)[1] == [(6.0,)]


# -- users -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "call", "pieces"),
    [
        (UnknownNameError, lambda b: b.plug("m0.up", "m1.in"), ("m0.up", "m0.in, m0.out")),
        (UnknownNameError, lambda b: b.plug("m0", "m1.in"), ("'m0'", "m0.in, m0.out")),
        (UnknownNameError, lambda b: b.plug("m7.in", "m1.in"), ("m7", "m0, m1")),
        (UnknownNameError, lambda b: b.kill("m7"), ("m7", "m0, m1")),
        (UnknownNameError, lambda b: b.start("giusti_z"), ("giusti_z",)),
        (DockingError, lambda b: b.plug("m0.out", "m1.out"), ("m0.out", "m1.in")),
        (DockingError, lambda b: b.plug("m1.out", "m1.out"), ("m1.out",)),
        (DockingError, lambda b: b.plug("m1.out", "base.out", 400), ("400",)),
        (DockingError, lambda b: b.unplug("m1.out"), ("m1.out",)),
        (StateError, lambda b: b.start("giusti_b", "m0"), ("m0",)),
        (StateError, lambda b: b.start("giusti_b", "base"), ("base",)),
        (StateError, lambda b: b.start("giusti_b", "x" * 65), ("64 bytes",)),
        (StateError, lambda b: b.sense("m0", [1, 2]), ("m0", "1 joints", "[1, 2]")),
        (StateError, lambda b: b.sense("m0", [np.nan]), ("m0", "nan")),
    ],
)
def test_mistakes_are_named(kind, call, pieces):
    bus = SimulatedBus()
    bus.start("giusti_b")
    bus.start("giusti_b")
    bus.plug("m0.out", "m1.in")
    with complains(kind, *pieces):
        call(bus)


def test_bad_settings_are_named():
    with complains(UnknownNameError, "Pid", "computed-torque", "pd-gravity"):
        SimulatedBus("Pid")
    with complains(StateError, "heartbeat", "-1"):
        SimulatedBus(heartbeat=-1)
