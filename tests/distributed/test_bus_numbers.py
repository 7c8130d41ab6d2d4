"""Numbers on the bus: they wrap around, and none that is forged counts for good."""

import struct
from itertools import pairwise

import numpy as np
import pytest

from modurob import examples
from modurob.control import ComputedTorque
from modurob.distributed import Message, SimulatedBus
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.coordinator import EXPIRY
from modurob.distributed.bus.links import LinkTable
from modurob.distributed.bus.messages import Address, FrameKind
from modurob.distributed.bus.node import LIFETIME, REFRESH, STALE
from modurob.distributed.reliable import NUMBERS, WINDOW, Newest, Retry, following, is_newer

LAST = NUMBERS - 3  # a few steps before the end of all numbers
AHEAD = (1, 1000, NUMBERS // 2 - 1)  # numbers that are newer than the real ones
HEARTBEAT = 0.05  # [s] fast, so that few rounds pass
MODEL = examples.arm("bab").model("physical")
ROUGH = {"loss": 0.3, "reordering": 0.3, "duplication": 0.1, "delay": (0, 3)}


def arm(word="bab", **options):
    bus = SimulatedBus(heartbeat=HEARTBEAT, **options)
    names = [bus.start(f"giusti_{letter}") for letter in word]
    for one, other in pairwise(names):
        bus.plug(f"{one}.out", f"{other}.in")
    bus.plug("base.out", "m0.in")
    assert bus.run(lambda: bus.settled(len(word)))
    return bus


def moved(bus, q):
    """Whether the coordinator learns where m1 is, and the motor does what follows from that."""
    bus.sense("m1", [q])
    held = bus.operation.status().set_point
    tau = ComputedTorque(MODEL).command(0.0, [0.0, q, 0.0], np.zeros(3), held)
    expected = (pytest.approx(tau[1]),)
    return bus.run(lambda: bus.torques.get("m1") == expected and bus.settled(3))


def test_numbers_are_compared_as_in_rfc_1982():
    assert following(NUMBERS - 1) == 0
    for number in (0, 1, 44, NUMBERS // 2, NUMBERS - 1):
        assert not is_newer(number, number)
        for step in (1, 100, NUMBERS // 2 - 1):
            assert is_newer((number + step) % NUMBERS, number)
            assert not is_newer(number, (number + step) % NUMBERS)
        assert not is_newer((number + NUMBERS // 2) % NUMBERS, number)  # neither is


def test_a_message_is_outdated_only_while_it_may_travel():
    newest = Newest(6, 0.0)
    assert newest.refuses(5, 0.9, 1.0)
    assert newest.refuses(6, 0.9, 1.0)
    assert not newest.refuses(7, 0.0, 1.0)
    assert not newest.refuses(5, 1.0, 1.0)
    assert not Newest(NUMBERS - 1, 0.0).refuses(0, 0.0, 1.0)


def aged(bus):
    """Let all counters of a bus in which nothing is under way be near their end."""

    def quiet():
        stations = [bus.coordinator, *bus.states.values()]
        ports = [link for state in stations for link in state.links.ports.values()]
        return not any(link.waiting or link.beyond for link in ports)

    assert bus.run(quiet)
    for state in (bus.coordinator, *bus.states.values()):
        for link in state.links.ports.values():
            link.number = link.low = link.hellos = LAST
            link.newest = link.newest._replace(number=LAST)
    for state in bus.states.values():
        state.reports = state.senses = state.epoch = state.parent_epoch = LAST
        state.newest_torque = state.newest_torque._replace(number=LAST)
    bus.states["m0"].parent_epoch = 1  # the coordinator's never changes
    bus.coordinator.table = {
        module: entry._replace(
            sensed=entry.sensed._replace(number=LAST), reported=entry.reported._replace(number=LAST)
        )
        for module, entry in bus.coordinator.table.items()
    }
    bus.builder._number = LAST


@pytest.mark.parametrize("faults", [None, ROUGH], ids=["perfect links", "rough links"])
def test_a_running_bus_goes_on_when_all_its_counters_wrap(faults):
    rng = {"rng": np.random.default_rng(1)}
    bus = arm(faults=None if faults is None else faults | rng)
    aged(bus)
    built, epoch = bus.builder.built, bus.states["m2"].epoch
    for k in range(8):
        assert moved(bus, 0.1 * (k + 1))
    assert bus.builder.built == built
    assert bus.states["m2"].epoch == epoch  # nobody lost its way
    assert bus.states["m1"].senses < 10
    assert bus.builder._number < 100
    for k in range(5):  # reports and epochs wrap too
        bus.unplug("m1.in")
        assert bus.run(lambda: bus.settled(1))
        bus.plug("m0.out", "m1.in")
        assert bus.run(lambda: bus.settled(3)), k
    assert bus.states["m1"].epoch < 10
    assert bus.states["m1"].reports < 100
    assert moved(bus, -0.5)


def test_hellos_wrap_unnoticed():
    bus = arm()
    aged(bus)
    bus.run(lambda: False, 5 * bus.heartbeat)
    assert bus.settled(3)
    assert bus.states["m1"].links.ports["in"].newest.number < 100
    assert {state.epoch for state in bus.states.values()} == {LAST}


def test_numbers_of_links_differ_from_the_one_before_and_are_never_zero():
    links = LinkTable(Address(1, NUMBERS - 3), 0.25)
    numbers = []
    for _ in range(6):
        links.plug("in", 0)
        numbers.append(links.ports["in"].here)
    assert len(set(numbers)) == 6
    assert 0 not in numbers
    assert max(numbers) < NUMBERS


# -- forged numbers --------------------------------------------------------------------------------


def forge(bus, sender, port, message, *, number=None, kind=FrameKind.DATA):
    """Put a frame on a link as if its sender had sent it."""
    state = bus.coordinator if sender == "base" else bus.states[sender]
    link = state.links.ports[port]
    body = struct.pack("<I", following(link.number) if number is None else number) + message
    frame = msg.pack_frame(kind, link.here, link.there, body)
    bus.transport.send(sender, [Message(port, frame)])


def address(bus, name):
    return next(a for a, n in bus.robot.assembly.names.items() if n == name)


@pytest.mark.parametrize("ahead", AHEAD)
def test_a_forged_reading_is_believed_for_seconds_at_most(ahead):
    bus = arm()
    bus.sense("m1", [0.5])
    assert bus.run(lambda: bus.torques["m1"] != (0.0,) and bus.settled(3))
    right = dict(bus.torques)
    number = (bus.states["m1"].senses + ahead) % NUMBERS
    forge(bus, "m0", "in", msg.pack(msg.Sense(address(bus, "m1"), number, 0, (-1.2, 0.0))))
    assert bus.run(lambda: bus.torques != right, 0.1)
    # nothing happens any more, and still it is put right
    assert bus.run(lambda: bus.torques == right, (LIFETIME + 2 * REFRESH) * bus.heartbeat)
    assert bus.run(lambda: bus.settled(3))


@pytest.mark.parametrize("ahead", AHEAD)
def test_after_a_forged_number_new_readings_count_within_the_lifetime_of_a_message(ahead):
    bus = arm()
    number = (bus.states["m1"].senses + ahead) % NUMBERS
    forged = msg.pack(msg.Sense(address(bus, "m1"), number, 0, (-1.2, 0.0)))
    forge(bus, "m0", "in", forged, number=1000)  # a place on the link that is not due yet
    bus.run(lambda: False, LIFETIME * bus.heartbeat)
    assert bus.torques["m1"] != (0.0,)  # it was believed
    begin = bus.now
    assert moved(bus, 0.7)
    assert bus.now - begin < bus.heartbeat


@pytest.mark.parametrize("ahead", AHEAD)
def test_a_forged_report_is_believed_for_seconds_at_most(ahead):
    bus = arm()
    robot = bus.robot
    number = (bus.states["m1"].reports + ahead) % NUMBERS
    forge(bus, "m0", "in", msg.pack(msg.ModuleReport(address(bus, "m1"), number, "m1", ())))
    assert bus.run(lambda: bus.coordinator.survey.unreported != (), 0.1)  # it was believed
    assert bus.run(lambda: bus.settled(3), (LIFETIME + 2) * bus.heartbeat)
    assert bus.robot.assembly.organism == robot.assembly.organism
    bus.unplug("m1.in")
    assert bus.run(lambda: bus.settled(1))
    bus.plug("m0.out", "m1.in")
    assert bus.run(lambda: bus.settled(3))


@pytest.mark.parametrize("ahead", AHEAD)
def test_a_forged_torque_is_obeyed_for_seconds_at_most(ahead):
    bus = arm()
    number = (bus.states["m1"].newest_torque.number + ahead) % NUMBERS
    forge(bus, "base", "out", msg.pack(msg.Torque(address(bus, "m1"), number, (7.0,))))
    assert bus.run(lambda: bus.torques["m1"] == (7.0,), 0.1)
    assert bus.run(lambda: bus.torques["m1"] == (0.0,), (LIFETIME + 2 * REFRESH) * bus.heartbeat)
    assert moved(bus, 0.4)


@pytest.mark.parametrize("ahead", [1, 1000, NUMBERS // 2 - 1, NUMBERS - 1])
def test_a_forged_hello_does_not_make_a_neighbour_silent(ahead):
    bus = arm()
    link = bus.states["m1"].links.ports["in"]
    state = bus.states["m1"]
    hello = msg.Hello(
        state.links.address, (link.hellos + ahead) % NUMBERS, state.beat, state.epoch, True, "in"
    )
    frame = msg.pack_frame(FrameKind.HELLO, link.here, link.there, msg.HELLO.pack(hello))
    bus.transport.send("m1", [Message("in", frame)])
    robot = bus.robot
    bus.run(lambda: False, 6 * bus.heartbeat)
    assert bus.robot is robot
    assert bus.settled(3)


@pytest.mark.parametrize("beat", [2**64 - 1, 50])
def test_a_forged_beat_does_not_keep_modules_from_the_coordinator(beat):
    bus = arm()
    link, state = bus.coordinator.links.ports["out"], bus.coordinator
    number = following(link.hellos)
    hello = msg.Hello(state.links.address, number, state.beat + beat, 1, False, "out")
    hello = hello._replace(beat=min(hello.beat, 2**64 - 1))
    frame = msg.pack_frame(FrameKind.HELLO, link.here, link.there, msg.HELLO.pack(hello))
    bus.transport.send("base", [Message("out", frame)])
    bus.run(lambda: False, 2 * STALE * bus.heartbeat)
    assert {state.epoch for state in bus.states.values()} == {1}  # nobody lost its way
    assert moved(bus, 0.4)


def test_a_loose_module_that_heard_a_forged_beat_joins_when_the_beat_is_stale():
    bus = SimulatedBus(heartbeat=HEARTBEAT)
    bus.start("giusti_b")
    state = bus.states["m0"].copy()
    state.beat, state.left_at = 2**64 - 1, 0.0  # as after a forged hello
    bus.states["m0"] = state
    bus.plug("base.out", "m0.in")
    assert not bus.run(lambda: bus.settled(1), 0.9 * STALE * bus.heartbeat)
    assert bus.run(lambda: bus.settled(1), 0.3 * STALE * bus.heartbeat)


def test_a_forged_neighbour_is_believed_until_the_real_one_is_heard_and_nothing_is_lost():
    bus = arm()
    assert moved(bus, 0.2)  # so that links have counted some messages
    link = bus.coordinator.links.ports["out"]
    hello = msg.Hello(Address(99, 99), 1, 0, 1, True, "in")
    frame = msg.pack_frame(FrameKind.HELLO, 4711, link.here, msg.HELLO.pack(hello))
    bus.transport.send("m0", [Message("in", frame)])
    assert bus.run(lambda: bus.coordinator.links.ports["out"].here != link.here, 0.1)
    begin = bus.now
    assert bus.run(lambda: bus.settled(3), 4 * bus.heartbeat)
    for q in (0.3, 0.4, 0.5):
        assert moved(bus, q)
    assert bus.now - begin < 5 * bus.heartbeat


def test_a_forged_acknowledgement_loses_a_message_until_it_is_told_again():
    bus = arm()
    bus.transport.unplug(("m1", "in"), ("m0", "out"))  # nothing gets through
    bus.sense("m1", [0.5])
    bus.round()
    number = max(bus.states["m1"].links.ports["in"].waiting)
    bus.transport.plug(("m1", "in"), ("m0", "out"))
    forge(bus, "m0", "out", b"", number=number, kind=FrameKind.ACK)
    assert bus.run(lambda: not bus.states["m1"].links.ports["in"].waiting, 0.01)
    assert not bus.run(lambda: bus.torques["m1"] != (0.0,), 2 * bus.heartbeat)
    assert bus.run(lambda: bus.torques["m1"] != (0.0,), REFRESH * bus.heartbeat)


def linked(boot=100):
    """LinkTable with one neighbour at `in`, whose frames `data` makes."""
    links = LinkTable(Address(1, boot), 0.25)
    links.plug("in", 0)
    mine = links.ports["in"].here
    hello = msg.HELLO.pack(msg.Hello(Address(2, 5), 1, 7, 1, False, "out"))
    links.take("in", msg.pack_frame(FrameKind.HELLO, 40, 0, hello), 0.0)

    def data(number):
        body = struct.pack("<I", number) + b"message"
        return links.take("in", msg.pack_frame(FrameKind.DATA, 40, mine, body), 0.0)[1]

    return links, data


def test_numbers_far_ahead_are_neither_taken_nor_acknowledged_and_counted():
    links, data = linked()
    links.ports["in"].low = low = NUMBERS - 10
    assert data((low + WINDOW) % NUMBERS) == [b"message"]
    sent = len(links.outbox)
    for ahead in (WINDOW + 1, NUMBERS // 2 - 1):
        assert data((low + ahead) % NUMBERS) == []
    assert links.ignored == 2
    assert len(links.outbox) == sent
    assert len(links.ports["in"].beyond) == 1
    assert data(low) == []  # a double is acknowledged, as it may have been lost
    assert len(links.outbox) == sent + 1
    for k in range(1, 20):
        assert data((low + k) % NUMBERS) == [b"message"]
        assert data((low + k) % NUMBERS) == []
    assert links.ports["in"].low == 9


def test_an_outdated_hello_counts_again_after_a_heartbeat():
    links, _ = linked()

    def hello(number, now):
        body = msg.HELLO.pack(msg.Hello(Address(2, 5), number, 7, 1, False, "out"))
        return links.take("in", msg.pack_frame(FrameKind.HELLO, 40, 0, body), now)[0]

    assert hello(1000, 1.0) is not None
    assert hello(2, 1.2) is None
    assert hello(3, 1.26) is not None  # a heartbeat of 0.25 s later
    assert hello(4, 1.27) is not None


# -- what is told by modules that are not there ----------------------------------------------------


def test_modules_that_are_not_in_the_tree_are_forgotten_and_those_in_it_are_not():
    bus = arm()
    stranger = Address(77, 78)
    forge(bus, "m0", "in", msg.pack(msg.Sense(stranger, 1, 0, (0.0, 0.0))))
    assert bus.run(lambda: stranger in bus.coordinator.table, 0.1)
    known = bus.robot.assembly.names.keys()
    assert bus.run(lambda: stranger not in bus.coordinator.table, (EXPIRY + 1) * bus.heartbeat)
    assert bus.coordinator.table.keys() == known
    assert bus.now > EXPIRY * bus.heartbeat


def test_a_module_that_comes_back_after_it_was_forgotten_is_asked_for_its_record():
    bus = arm()
    bus.unplug("m2.in")
    assert bus.run(lambda: len(bus.coordinator.table) == 2, (EXPIRY + 4) * bus.heartbeat)
    bus.plug("m1.out", "m2.in")
    assert bus.run(lambda: bus.settled(3))
    assert bus.coordinator.asked >= 1


@pytest.mark.parametrize(
    "piece",
    [
        msg.Piece(Address(7, 8), msg.LARGEST_RECORD + 1, 0, b"x"),
        msg.Piece(Address(7, 8), 100, 5, b"x"),  # pieces start at multiples of their size
        msg.Piece(Address(7, 8), 100, 0, b"x" * 101),
        msg.Piece(Address(7, 8), 100, msg.CHUNK, b"x"),
        msg.Piece(Address(7, 8), 4000, 0, b"x" * (msg.CHUNK + 1)),
    ],
)
def test_pieces_that_cannot_be_of_a_record_are_not_kept(piece):
    bus = arm("b")
    forge(bus, "m0", "in", msg.pack(piece))
    bus.run(lambda: False, 0.05)
    assert piece.origin not in bus.coordinator.table
    assert bus.settled(1)


def test_report_and_reading_are_told_again_now_and_then_and_nothing_is_rebuilt():
    bus = arm()
    bus.sense("m1", [0.5])
    bus.run(lambda: False, 0.1)
    before = {name: (state.reports, state.senses) for name, state in bus.states.items()}
    robot, built = bus.robot, bus.builder.built
    bus.run(lambda: False, 3 * REFRESH * bus.heartbeat)
    for name, state in bus.states.items():
        reports, senses = before[name]
        assert 2 <= state.reports - reports <= 4
        assert state.senses - senses == state.reports - reports
    assert bus.robot is robot
    assert bus.builder.built == built


def test_a_message_that_is_never_acknowledged_is_repeated_at_the_longest_interval():
    retry = Retry(0.025, 0.25, 4)
    assert [retry.interval(tries) for tries in (1, 5, 6, 7)] == [0.025, 0.025, 0.05, 0.1]
    assert retry.interval(5000) == 0.25
