"""The bus in C against the one in Python: the same bytes, the same answers, the same torques."""

import ctypes
import hashlib
import hmac
import itertools
import random
import struct
import zlib
from ctypes import c_double, c_size_t, c_uint8, c_uint32, c_uint64

import numpy as np
import pytest

from firmware.bus_in_c import NEEDS_COMPILER, CheckedNode, LinkInC, library, outputs
from firmware.random_frames import RandomNeighbors
from modurob import StateError, catalog, examples
from modurob.distributed import PlantOptions, ProcessBus, SimulatedBus, native
from modurob.distributed.bus import bus as bus_of_nodes
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.messages import Address, FrameKind
from modurob.distributed.bus.node import Node
from modurob.distributed.codec import read
from modurob.distributed.transports import secure
from modurob.distributed.transports.secure import SecureLink
from oracles import complains

pytestmark = NEEDS_COMPILER
DEADLINE = 60.0  # [s]
KEY = bytes(range(32))
ENDS = (("127.0.0.1", 4001), "out"), (("127.0.0.1", 4002), "in")
ADDRESS = Address(2**127 + 5, 6)
MESSAGES = (
    msg.ModuleReport(ADDRESS, 7, "m1 é", ()),
    msg.ModuleReport(
        ADDRESS, 7, "", tuple(msg.Neighbor("in", ADDRESS, "aus", 90, s) for s in msg.Status)
    ),
    msg.Piece(ADDRESS, 2**31, 1024, b"record"),
    msg.Sense(ADDRESS, 2**32 - 1, 9, (0.1, -np.inf)),
    msg.Ask(ADDRESS, msg.Wanted.RECORD),
    msg.Ask(ADDRESS, msg.Wanted.REPORT),
    msg.Torque(ADDRESS, 0, (1.5,)),
    msg.HoldGains(ADDRESS, (1.0, 2.0, 3.0)),
    msg.Write(ADDRESS, 3, 0, b"abc"),
    msg.Plugged("out", 359),
    msg.Unplugged("日本 \u0800 \ud7ff \U00010000 \U0010ffff"),
    msg.Sensed((1.0, 2.0)),
    msg.DriveSignal(()),
    msg.Stored(b"new"),
)
BODIES = (
    (FrameKind.HELLO, msg.HELLO, msg.Hello(ADDRESS, 1, 2**63, 3, True, "out")),
    (FrameKind.ACK, msg.NUMBERS, (1, 2**32 - 1)),
    (FrameKind.BATCH, msg.BATCH, msg.CycleBatch(9, True, (b"", b"x" * 300))),
)


def again(function, data, limit=8192):
    """Bytes that C writes of what it has read; None if it has refused to read, or has no room."""
    room = ctypes.create_string_buffer(limit)
    size = function(bytes(data), c_size_t(len(data)), room, c_size_t(len(room)))
    return None if size < 0 else room.raw[:size]


def damages(data, seed):
    """A message, all its beginnings, and copies with wrong bytes or bytes too many."""
    rng = random.Random(seed)
    yield from (data[:size] for size in range(1, len(data) + 1))
    yield data + b"\0"
    for _ in range(200):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] = rng.getrandbits(8)
        yield bytes(changed)


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000])
def test_hashes_are_those_of_the_standard_library(size):
    data, digest = random.Random(size).randbytes(size), ctypes.create_string_buffer(32)
    for key in (KEY, KEY * 2, KEY * 3):
        library().mr_hmac_sha256(
            key, c_size_t(len(key)), data, c_size_t(size), b"tail", c_size_t(4), digest
        )
        assert digest.raw == hmac.digest(key, data + b"tail", hashlib.sha256)
    half = size // 2
    first = library().mr_crc32(c_uint32(0), data, c_size_t(half))
    whole = library().mr_crc32(c_uint32(first), data[half:], c_size_t(size - half))
    assert whole == zlib.crc32(data)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_messages_are_read_and_refused_as_in_python(message):
    whole = msg.pack(message)
    assert again(library().message_again, b"") is None
    for limit in {0, len(whole) - 1}:
        assert again(library().message_again, whole, limit) is None
    for data in damages(whole, 0):
        try:
            expected = msg.pack(msg.unpack_signal(data))
        except ValueError:
            expected = None
        assert again(library().message_again, data) == expected


def test_texts_addresses_and_heads_are_compared_and_checked():
    c, place = library(), ctypes.create_string_buffer(1000)
    assert again(c.message_again, b"\x31\x41" + b"x" * 65) is None
    address = bytes(20)
    for other in (address, bytes(16) + b"\1" + bytes(3), b"\1" + bytes(19)):
        assert c.mr_address_equal(address, other) == (address == other)
    for head in (b"\x12" + address, b"\x13" + address, b"\x12" + address[1:]):
        try:
            expected = msg.unpack_address(head)[0] > 0
        except ValueError:
            expected = False
        assert (c.mr_read_head(place, head, c_size_t(len(head))) == 0) == expected


@pytest.mark.parametrize(("kind", "layout", "value"), BODIES)
def test_frames_are_read_and_refused_as_in_python(kind, layout, value):
    for body in damages(layout.pack(value), 1):
        try:
            expected = msg.pack_frame(kind, 7, 8, layout.pack(read(layout, body)))
        except ValueError:
            expected = None
        assert again(library().frame_again, msg.pack_frame(kind, 7, 8, body)) == expected
    frame = msg.pack_frame(kind, 7, 8, layout.pack(value))
    for damaged in damages(frame, 2):
        assert again(library().frame_again, damaged) == (frame if damaged == frame else None)
    for wrong in (frame[:3] + b"\0" + frame[4:-4], frame[:3] + b"\5" + frame[4:-4], bytes(4093)):
        data = wrong + struct.pack("<I", zlib.crc32(wrong))
        assert again(library().frame_again, data) is None


def test_secured_links_answer_as_in_python_on_a_bad_channel(monkeypatch):
    rng, counter = random.Random(3), itertools.count(1000)
    monkeypatch.setattr(secure, "_random_number", lambda: next(counter))
    link, twin = SecureLink(KEY, *ENDS), LinkInC(KEY, *ENDS, seed=1000)
    others = itertools.count(2**40)
    monkeypatch.setattr(secure, "_random_number", lambda: next(others))
    peer = SecureLink(KEY, *ENDS[::-1])
    tape, back, opened = [], [link.request()], 0  # to the link, and to its neighbor
    for _ in range(2000):
        if rng.random() < 0.02:  # the neighbor starts anew
            peer = SecureLink(KEY, *ENDS[::-1])
        tape.append(peer.seal(b"to") if peer.is_up and rng.random() < 0.7 else peer.request())
        if rng.random() < 0.3:  # much is lost, and some of it comes again later
            received = peer.open(rng.choice(back[-20:]))
            opened += received.payload == b"from"
            tape += [received.answer] if received.answer else []
        data = tape[-1] if rng.random() < 0.5 else rng.choice(tape[-40:])
        if rng.random() < 0.05:
            data = data[: rng.randrange(len(data))]
        monkeypatch.setattr(secure, "_random_number", lambda: next(counter))
        expected = link.open(data)
        monkeypatch.setattr(secure, "_random_number", lambda: next(others))
        assert twin.open(data) == tuple(expected)
        assert (twin.is_up, twin.request()) == (link.is_up, link.request())
        back.append(expected.answer or link.request())
        if link.is_up:
            back.append(link.seal(b"from"))
            assert twin.seal(b"from") == back[-1]
    assert opened > 50


def test_counters_pass_once_in_any_order_within_the_window(monkeypatch):
    counter = itertools.count(1)
    monkeypatch.setattr(secure, "_random_number", lambda: next(counter))
    link, twin = SecureLink(KEY, *ENDS), LinkInC(KEY, *ENDS, seed=1)
    monkeypatch.setattr(secure, "_random_number", lambda: 2**40)
    peer = SecureLink(KEY, *ENDS[::-1])
    peer.open(link.request())
    answer = peer.open(link.request()).answer
    monkeypatch.setattr(secure, "_random_number", lambda: next(counter))
    assert tuple(link.open(answer)) == twin.open(answer)
    peer.open(link.request())
    rng, place = random.Random(0), 0
    for _ in range(400):
        place = max(1, place + rng.choice((1, 1, 1, -3, 500, 1023, 1024, 2000, -1023, -1024)))
        datagram = peer._datagram(2**40, 1, place, b"x")
        assert twin.open(datagram) == tuple(link.open(datagram))


def test_an_endpoint_joins_payloads_and_takes_whole_datagrams_only():
    c, room = library(), ctypes.create_string_buffer(1 << 16)
    memory = ctypes.create_string_buffer(c.endpoint_size())
    c.outputs_to(room, c_size_t(len(room)))
    c.endpoint_start(memory, c_uint64(1))
    ends = [repr(x).encode() for x in (ENDS, ENDS[::-1])]
    c.endpoint_plug(
        memory, c_uint8(0), c_uint64(9), b"theirs", KEY, c_size_t(32), *ends, c_double(0.0)
    )
    peer = SecureLink(KEY, *ENDS[::-1])

    def sent():
        found = outputs(room, c.outputs_size())
        c.outputs_to(room, c_size_t(len(room)))
        return found

    def receive(data, source=9, now=0.0):
        place = c_uint64(source), data, c_size_t(len(data)), c_double(now)
        return c.mr_endpoint_receive(memory, *place), sent()

    ((address, request),) = sent()
    assert (address, request[:7]) == (9, b"\x06theirs")
    for size in (4096, 3000):  # before the handshake the newest wait, 16 and one datagram at most
        c.mr_endpoint_send(memory, c_uint8(0), bytes(size), c_size_t(size))
    for k in range(20):
        c.mr_endpoint_send(memory, c_uint8(0), bytes([k]), c_size_t(1))
    c.mr_endpoint_flush(memory)
    assert sent() == [(9, request)]
    assert receive(b"\1a" + bytes(60)) == (4, [])
    _, ((_, third), (_, waiting)) = receive(b"\1a" + peer.open(request[7:]).answer)
    assert peer.open(third[7:]).refused == ""
    assert peer.open(waiting[7:]).payload == b"".join(b"\1\0" + bytes([k]) for k in range(4, 20))
    for port, size in ((0, 2000), (0, 2000), (0, 4096), (0, 3), (0, 4097), (1, 3)):
        c.mr_endpoint_send(memory, c_uint8(port), bytes(size), c_size_t(size))
    c.mr_endpoint_flush(memory)
    c.mr_endpoint_flush(memory)  # nothing is left
    contents = [peer.open(data[7:]).payload for _, data in sent()]
    assert [len(content) for content in contents] == [4004, 4098, 5]
    payloads = b"\2\0hi\0\0\3\0you"
    assert receive(b"\1a" + peer.seal(payloads)) == (0, [(100, b"hi"), (100, b""), (100, b"you")])
    for data, source, refusal in (
        (bytes(5000), 9, 1),
        (b"", 9, 2),
        (b"\5a", 9, 2),
        (b"\0a", 9, 2),
        (b"\1c" + peer.seal(payloads), 9, 3),
        (b"\1a" + peer.seal(b"\3\0hi"), 9, 2),
        (b"\1a" + peer.seal(b"\0"), 9, 2),
        (b"\1b" + peer.seal(payloads), 9, 3),
        (b"\1a" + peer.seal(payloads), 8, 3),
        (b"\1a" + bytes(60), 9, 4),
    ):
        assert receive(data, source) == (refusal, [])
    flood = b"\1a" + peer.seal(b"\0\0" * 2000)
    taken = [len(receive(b"\1a" + peer.seal(b"\0\0" * 2000))[1]) for _ in range(12)]
    assert taken == [2000] * 9 + [1997, 0, 0]  # 20,000 a second
    assert len(receive(flood, now=0.05)[1]) == 1000
    assert len(receive(b"\1a" + peer.seal(b"\0\0"), now=9.0)[1]) == 1
    c.mr_endpoint_unplug(memory, c_uint8(0))
    assert receive(b"\1a" + peer.seal(payloads)) == (3, [])


def test_a_node_in_c_answers_random_frames_as_in_python():
    for seed in range(8):
        neighbors = RandomNeighbors(seed)
        for _ in range(200):
            neighbors.step()


def test_nodes_in_c_send_what_python_nodes_send_while_a_body_changes(monkeypatch):
    monkeypatch.setattr(bus_of_nodes, "Node", CheckedNode)
    rng = np.random.default_rng(0)
    faults = {"loss": 0.2, "delay": (0, 2), "duplication": 0.1, "reordering": 0.2, "rng": rng}
    bus = SimulatedBus(plant=PlantOptions(step=2e-3), faults=faults, heartbeat=0.1)
    attached(bus, "babac", viscous=0.5)
    before = CheckedNode.steps
    assert bus.run(lambda: bus.settled(5))
    bus.operation.goto([0.1, 0.2, 0.3, 0.4, 0.05], seconds=0.2)
    bus.run(lambda: False, 0.1)
    bus.kill("m2")
    bus.run(lambda: False, 0.4)  # m3 and m4 hold their joints alone, from the middle of a motion
    bus.restart("m2")
    assert bus.run(lambda: bus.settled(5))
    bus.write("m3", mass=0.7)
    bus.unplug("m4.in")
    bus.run(lambda: False, 0.1)
    assert CheckedNode.steps - before > 1000


def attached(bus, word, **parameters):
    before = "base.out"
    for letter in word:
        name = bus.start(catalog[f"giusti_{letter}"].with_parameters(**parameters))
        bus.plug(before, f"{name}.in")
        before = f"{name}.out"


def test_a_native_process_takes_the_place_of_a_python_one_and_dies_and_comes_back():
    twin = SimulatedBus()
    attached(twin, "babac")
    assert twin.run(lambda: twin.settled(5))
    with ProcessBus(native=["m2"], loss=0.1, heartbeat=0.3) as bus:
        attached(bus, "babac")
        arm = examples.arm("babac")

        def is_driven():
            assembly = bus.robot.assembly
            return bus.settled(5) and assembly.organism == arm and bus.torques == twin.torques

        assert bus.wait(is_driven, DEADLINE)
        assert [name for name in bus.modules if bus.is_native(name)] == ["m2"]
        bus.write("m2", mass=0.9)
        assert bus.wait(lambda: bus.robot.assembly.organism.kind("m2") != arm.kind("m2"), DEADLINE)
        record = bus.modules["m2"].node.record
        bus.kill("m2")
        assert bus.wait(lambda: bool(bus.robot.assembly.faults), DEADLINE)
        bus.restart("m2")
        assert bus.wait(lambda: bus.settled(5) and not bus.robot.assembly.faults, DEADLINE)
        assert bus.modules["m2"].node.record == record
        assert bus.robot.assembly.organism.kind("m2") != arm.kind("m2")


def test_native_modules_need_a_compiler_names_and_the_usual_transport(monkeypatch):
    with complains(StateError, "native is True, False or names such as ('m1', 'm2'), got 'm1'"):
        ProcessBus(native="m1")
    with complains(StateError, "native modules have the transport udp and drives of the plant"):
        ProcessBus(native=True, drives=lambda name: ("a:B", {}))
    monkeypatch.setattr(native.shutil, "which", lambda name: None)
    with complains(StateError, "native modules need a C compiler, and none of gcc, clang, cc is"):
        native.compiler()


@pytest.mark.parametrize(
    "values", [(1.0,), (1.0,) * 17], ids=["cut off", "more than any module has motors"]
)
def test_a_bad_torque_in_a_batch_is_ignored_by_a_python_node_too(values):
    node = Node(7, b"")
    state = node.start(1)
    state, _ = node.step(state, [msg.own(msg.Plugged("in", 0))], 0.0)
    here = state.links.ports["in"].here
    hello = msg.HELLO.pack(msg.Hello(Address(1, 1), 1, 5, 1, False, "x"))
    torque = msg.pack(msg.Torque(state.links.address, 1, values))
    torque = torque if len(values) > 1 else torque[:-1]
    batch = msg.BATCH.pack(msg.CycleBatch(1, True, (torque,)))
    frames = [
        msg.pack_frame(FrameKind.HELLO, 40, 0, hello),
        msg.pack_frame(FrameKind.BATCH, 40, here, batch),
    ]
    state, _ = node.step(state, [msg.Message("in", frame) for frame in frames], 0.0)
    assert (state.links.ignored, state.torques) == (1, None)
