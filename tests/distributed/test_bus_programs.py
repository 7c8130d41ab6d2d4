"""The programs of module and coordinator, step by step: guards that whole runs hide."""

import os
import signal
import struct
from dataclasses import replace

import numpy as np
import pytest

from modurob import Organism
from modurob.distributed import Message, ProcessBus, SimulatedBus, processes
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.assembly import BusAssembly, assemble
from modurob.distributed.bus.builder import _same_body
from modurob.distributed.bus.coordinator import PATIENCE, Coordinator
from modurob.distributed.bus.links import HELLOS, LinkTable
from modurob.distributed.bus.messages import Address, FrameKind, ModuleReport, Neighbor, Status
from modurob.distributed.bus.node import GATHER, STALE, Node
from modurob.distributed.bus.robot import BusRobot
from modurob.distributed.bus.survey import BusEntry, survey
from modurob.distributed.child import Lines
from modurob.distributed.codec import read
from modurob.distributed.reliable import Newest

HEARTBEAT = 0.25  # [s] the default of all
DEADLINE = 60.0  # [s]


class Bench:
    """A node with neighbors at its ports `in` and `out`, played by the test."""

    def __init__(self):
        self.node, self.now = Node(7, b"record"), 0.0
        self.state = self.node.start(1)
        self.numbers = {"in": 0, "out": 0}
        self.hellos = {"in": 0, "out": 0}
        self.peers = {"in": 40, "out": 50}
        for port in self.peers:
            self.step(msg.own(msg.Plugged(port, 0)))

    def step(self, *inbox):
        self.state, outbox = self.node.step(self.state, inbox, self.now)
        return outbox

    def hello(self, port, beat, *, child=False, epoch=1):
        self.hellos[port] += 1
        peer = self.peers[port]
        body = msg.Hello(Address(peer, 1), self.hellos[port], beat, epoch, child, "x")
        return self.step(
            Message(port, msg.pack_frame(FrameKind.HELLO, peer, 0, msg.HELLO.pack(body)))
        )

    def data(self, port, message):
        self.numbers[port] += 1
        body = struct.pack("<I", self.numbers[port]) + message
        mine = self.state.links.ports[port].here
        return self.step(
            Message(port, msg.pack_frame(FrameKind.DATA, self.peers[port], mine, body))
        )

    def driven(self):
        """A node in the tree below `in`, with `out` further out, whose motor has a torque."""
        self.hello("out", 0, child=True)
        self.hello("in", 5)
        assert self.state.parent == "in"
        self.data("out", msg.pack(msg.Sense(Address(50, 1), 1, 0, ())))
        (torque,) = drives(self.data("in", msg.pack(msg.Torque(Address(7, 1), 1, (2.0,)))))
        assert torque == (2.0,)
        return self


def drives(outbox):
    return [signal.values for signal in msg.own_signals(outbox)]


def beats(outbox):
    """What hellos in an outbox say of the way to the coordinator, by port."""
    found = {}
    for port, payload in outbox:
        if port != msg.OWN:
            kind, _, _, body = msg.unpack_frame(payload)
            if kind is FrameKind.HELLO:
                found[port] = read(msg.HELLO, body).beat
    return found


def told(outbox, port):
    """Messages in an outbox that go out of a port."""
    frames = [msg.unpack_frame(payload) for p, payload in outbox if p == port]
    return [msg.unpack(body[4:]) for kind, _, _, body in frames if kind is FrameKind.DATA]


@pytest.mark.parametrize(
    "hello",
    [{"beat": 0}, {"beat": 6, "child": True}, {"beat": 6, "epoch": 2}],
    ids=["its parent lost its way", "its parent leads back to it", "its parent found another way"],
)
def test_a_module_that_loses_its_way_lets_its_motor_go_and_says_so(hello):
    bench = Bench().driven()
    outbox = bench.hello("in", **hello)
    assert drives(outbox)[0] == ()
    assert bench.state.torques is None
    if hello.get("epoch", 1) == 1:
        assert bench.state.parent is None
        assert beats(outbox)["out"] == 0
    else:  # at once by the new one
        assert bench.state.epoch == 2


def test_a_parent_that_has_started_again_is_left_at_once():
    bench = Bench().driven()
    bench.peers["in"], bench.hellos["in"] = 41, 0
    outbox = bench.hello("in", 6)
    assert drives(outbox) == [()]
    assert bench.state.parent is None
    assert beats(outbox) == {"in": 0, "out": 0}


def test_a_way_without_new_beats_ends_by_itself():
    bench = Bench().driven()
    while bench.now < (STALE - 0.5) * HEARTBEAT:
        bench.now += HEARTBEAT / 4
        assert drives(bench.hello("in", 5)) == []
        bench.hello("out", 5, child=True)
    assert bench.state.parent == "in"
    bench.now = STALE * HEARTBEAT
    bench.hello("in", 5)
    assert bench.state.parent == "in"  # exactly so long
    bench.now = (STALE + 0.5) * HEARTBEAT
    outbox = bench.hello("in", 5)
    assert drives(outbox) == [()]
    assert bench.state.parent is None
    assert set(beats(outbox).values()) == {0}
    # neither the old beat nor one from further out leads back, a new one does
    bench.hello("in", 5)
    bench.hello("out", 9, child=True)
    assert bench.state.parent is None
    bench.hello("in", 6)
    assert bench.state.parent == "in"
    bench.hello("in", 0)
    left = bench.now
    for bench.now, parent in ((left + STALE * HEARTBEAT, None), (left + 5.001, "in")):
        bench.hello("in", 6)  # an old beat counts again after as long a time
        assert bench.state.parent == parent


def test_neighbors_hear_at_once_of_a_way_and_new_ones_get_an_answer():
    bench = Bench()
    assert beats(bench.hello("out", 0)) == {"out": 0}
    assert beats(bench.hello("out", 0)) == {}
    assert beats(bench.hello("in", 5)) == {"in": 5, "out": 5}
    assert beats(bench.hello("in", 6)) == {}
    bench.now = 0.03  # the next ones are due at 0.05 s
    assert beats(bench.hello("in", 7)) == {"in": 7, "out": 7}
    bench.peers["out"] = 51  # another module, whose first hello was lost
    assert [beats(bench.hello("out", 0)) for _ in range(3)] == [{}, {"out": 7}, {}]
    assert beats(bench.step(msg.own(msg.Plugged("out", 0)))) == {"out": 7}


def test_a_beat_is_taken_up_to_a_hundred_ahead():
    bench = Bench().driven()  # with beat 5
    for beat, known in ((105, 105), (206, 105), (205, 205), (204, 205), (206, 206)):
        bench.hello("in", beat)
        assert bench.state.beat == known


def test_a_module_takes_commands_from_its_parent_and_news_from_the_others():
    bench = Bench().driven()
    far = Address(99, 1)
    sense = msg.pack(msg.Sense(far, 1, 0, (0.1, 0.0)))
    torque = msg.pack(msg.Torque(far, 2, (1.0,)))
    assert told(bench.data("in", torque), "out") == []  # nothing was ever heard of it
    assert told(bench.data("in", sense), "in") == []  # news does not come from the coordinator
    assert told(bench.data("out", sense), "in") == [msg.Sense(far, 1, 0, (0.1, 0.0))]
    assert told(bench.data("in", torque), "out") == [msg.Torque(far, 2, (1.0,))]
    assert told(bench.data("out", torque), "in") == []  # a module does not command
    ignored = bench.state.links.ignored
    bench.data("in", b"\x77")
    assert bench.state.links.ignored == ignored + 1
    bench.step(msg.own(msg.Unplugged("out")))  # its way goes with the neighbour
    assert bench.state.routes == {}


def test_a_router_remembers_so_many_modules_and_those_that_still_send(monkeypatch):
    monkeypatch.setattr(msg, "MOST_MODULES", 20)
    bench = Bench().driven()
    modules = [Address(uid, 1) for uid in range(100, 150)]
    for number, module in enumerate(modules):
        for origin in (modules[0], module):  # the first one goes on
            bench.data("out", msg.pack(msg.Sense(origin, number, 0, ())))
    assert list(bench.state.routes) == [*modules[-19:-1], modules[0], modules[-1]]


def test_a_module_that_is_asked_tells_report_or_record_and_nothing_else():
    bench = Bench().driven()
    (report,) = told(bench.data("in", msg.pack(msg.Ask(Address(7, 1), msg.Wanted.REPORT))), "in")
    assert isinstance(report, ModuleReport)
    assert [n.port for n in report.neighbors] == ["in", "out"]
    (piece,) = told(bench.data("in", msg.pack(msg.Ask(Address(7, 1), msg.Wanted.RECORD))), "in")
    assert piece == msg.Piece(Address(7, 1), 6, 0, b"record")


def test_a_module_that_joins_sends_its_news_together_with_those_from_further_out():
    def joined():
        bench = Bench()
        bench.hello("out", 0)
        assert told(bench.hello("in", 5), "in") == []
        return bench

    far = msg.Sense(Address(50, 1), 1, 0, (0.1, 0.0))
    bench = joined()
    kinds = [type(message) for message in told(bench.data("out", msg.pack(far)), "in")]
    assert kinds == [ModuleReport, msg.Piece, msg.Sense]
    assert told(bench.data("out", msg.pack(far)), "in") == [far]  # from now on at once
    bench = joined()
    assert len(told(bench.hello("out", 6), "in")) == 2  # the neighbor has found another way
    bench = joined()
    assert len(told(bench.step(msg.own(msg.Unplugged("out"))), "in")) == 3  # the report twice
    bench = joined()
    assert bench.state.wake <= GATHER * HEARTBEAT
    bench.now = GATHER * HEARTBEAT
    assert len(told(bench.step(), "in")) == 2  # nothing came from there
    bench = joined()
    bench.hello("in", 0)  # the way is lost: nothing is sent into it
    bench.now = GATHER * HEARTBEAT
    assert told(bench.step(), "in") == []


def test_hellos_of_a_neighbor_that_is_about_to_join_do_not_end_the_wait_for_its_news():
    bench = Bench()
    bench.hello("out", 0)
    bench.hello("in", 5)
    assert told(bench.hello("out", 0), "in") == []  # without a way yet
    assert told(bench.hello("out", 5, child=True), "in") == []  # its way leads over this one
    assert bench.state.gather_from == {"out"}
    assert len(told(bench.hello("out", 6), "in")) == 2


def test_a_connector_that_closes_again_has_a_new_link_and_has_lost_its_neighbor():
    links = LinkTable(Address(1, 100), HEARTBEAT)
    links.plug("in", 0)
    first = links.ports["in"].here
    assert (links.lost, links.changes) == ([], 1)
    links.plug("in", 90)
    assert (links.lost, links.changes) == (["in"], 3)
    assert links.ports["in"].here != first
    assert links.ports["in"].turn == 90
    links.unplug("out")
    assert links.changes == 3
    links.unplug("in")
    assert (links.lost, links.changes, links.ports) == (["in", "in"], 4, {})


def test_a_module_that_joins_again_tells_report_and_reading_and_its_record_only_once():
    bench = Bench()
    bench.step(msg.own(msg.Sensed([0.1, 0.2])))
    first = told(bench.hello("in", 5), "in")
    assert [type(message) for message in first] == [ModuleReport, msg.Sense, msg.Piece]
    assert first[1].values == (0.1, 0.2)
    bench.hello("in", 0)
    assert told(bench.step(msg.own(msg.Sensed([0.3, 0.4]))), "in") == []  # to nobody
    again = told(bench.hello("in", 6), "in")
    assert [type(message) for message in again] == [ModuleReport, msg.Sense]
    assert again[1].values == (0.3, 0.4)
    assert [message.number for message in again] == [first[0].number + 1, first[1].number + 1]
    (now,) = told(bench.step(msg.own(msg.Sensed([0.5, 0.6]))), "in")
    assert now.values == (0.5, 0.6)


def test_report_and_reading_are_sent_again_after_20_heartbeats():
    bench = Bench()
    bench.step(msg.own(msg.Sensed([0.1, 0.2])))
    found = {}
    for k in range(101):
        bench.now = k / 10
        if messages := told(bench.hello("in", 5 + k), "in"):
            found[bench.now] = [type(message) for message in messages]
        for number in list(bench.state.links.ports["in"].waiting):
            bench.state.links.ports["in"].acknowledge(number)
    assert found.keys() == {0.0, 5.0, 10.0}
    assert found[5.0] == found[10.0] == [ModuleReport, msg.Sense]


def test_a_module_with_no_reading_tells_none_and_one_with_an_empty_reading_tells_that():
    bench = Bench()
    assert [type(message) for message in told(bench.hello("in", 5), "in")] == [
        ModuleReport,
        msg.Piece,
    ]
    (empty,) = told(bench.step(msg.own(msg.Sensed([]))), "in")
    assert empty.values == ()


def test_an_empty_torque_lets_the_motor_go():
    bench = Bench().driven()
    outbox = bench.data("in", msg.pack(msg.Torque(Address(7, 1), 2, ())))
    assert drives(outbox) == [()]
    assert bench.state.torques is None
    bench.hello("in", 0)  # it has nothing to let go any more
    assert drives(bench.hello("in", 0)) == []


def test_what_is_not_acknowledged_is_repeated_soon_then_rarely_and_then_never():
    links = LinkTable(Address(1, 100), HEARTBEAT)
    links.plug("in", 0)
    links.post("in", b"message", 0.0)
    now, gaps = 0.0, []
    for _ in range(11):
        due = links.ports["in"].wake(links.retries)
        gaps.append(due - now)
        now, sent = due, len(links.outbox)
        links.retry(now - 1e-6)
        assert len(links.outbox) == sent
        links.retry(now)
        assert links.outbox[-1] == links.outbox[0]
        assert len(links.outbox) == sent + 1
    assert gaps == pytest.approx([*[0.025] * 5, 0.05, 0.1, 0.2, 0.25, 0.25, 0.25])
    (number,) = links.ports["in"].waiting
    mine = links.ports["in"].here
    hello = msg.HELLO.pack(msg.Hello(Address(2, 5), 1, 7, 1, False, "out"))
    links.take("in", msg.pack_frame(FrameKind.HELLO, 40, 0, hello), now)
    for numbers, left in (([number + 1], 1), ([number], 0)):
        frame = msg.pack_frame(FrameKind.ACK, 40, mine, msg.NUMBERS.pack(numbers))
        links.take("in", frame, now)
        assert len(links.ports["in"].waiting) == left


def test_frames_of_a_neighbour_that_is_not_known_are_ignored():
    links = LinkTable(Address(1, 100), HEARTBEAT)
    links.plug("in", 0)
    mine = links.ports["in"].here
    body = struct.pack("<I", 1) + b"message"
    data = msg.pack_frame(FrameKind.DATA, 40, mine, body)
    assert links.take("in", data, 0.0) == (None, [])  # before its hello
    hello = msg.HELLO.pack(msg.Hello(Address(2, 5), 1, 7, 1, False, "out"))
    links.take("in", msg.pack_frame(FrameKind.HELLO, 40, 0, hello), 0.0)
    other = msg.pack_frame(FrameKind.DATA, 41, mine, body)
    assert links.take("in", other, 0.0) == (None, [])
    assert links.take("in", msg.pack_frame(FrameKind.DATA, 40, 0, body), 0.0) == (None, [])
    assert links.take("out", data, 0.0) == (None, [])  # nothing is plugged in there
    assert links.take("in", data, 0.0) == (None, [b"message"])


def test_a_neighbor_is_silent_after_two_and_a_half_heartbeats_without_a_hello():
    links = LinkTable(Address(1, 100), 0.5)
    links.plug("in", 0)
    hello = msg.HELLO.pack(msg.Hello(Address(2, 5), 1, 7, 1, False, "out"))
    links.take("in", msg.pack_frame(FrameKind.HELLO, 40, 0, hello), 0.0)

    def status():
        (neighbor,) = links.neighbors()
        return neighbor.status

    assert links.is_pulse(1.25)
    assert (status(), links.lost) == (Status.HEARD, [])
    assert not links.is_pulse(1.349)  # five times a heartbeat
    assert links.is_pulse(1.351)
    assert (status(), links.lost) == (Status.SILENT, ["in"])


def test_hellos_that_are_due_soon_go_out_with_those_of_the_neighbor():
    links = LinkTable(Address(1, 100), 0.5)
    assert links.is_pulse(2.0)
    for now, wake in ((2.04, 2.1), (2.06, 2.06)):  # half of the time between two of them
        links.pulse_with_neighbor(now)
        assert links.wake() == pytest.approx(wake)


# -- cycles ----------------------------------------------------------------------------------------


class Clocked(Bench):
    """A node in the tree whose coordinator has a clock; its drive reads `reading`."""

    def __init__(self):
        super().__init__()
        self.reading = (0.3, 0.2)
        self.driven()

    def step(self, *inbox):
        reading = getattr(self, "reading", None)
        self.state, outbox = self.node.step(self.state, inbox, self.now, reading)
        return outbox

    def batch(self, port, number, *messages, complete=True):
        return self.step(self.frame(port, number, *map(msg.pack, messages), complete=complete))

    def frame(self, port, number, *messages, complete=True):
        body = msg.BATCH.pack(msg.CycleBatch(number, complete, messages))
        mine = self.state.links.ports[port].here
        return Message(port, msg.pack_frame(FrameKind.BATCH, self.peers[port], mine, body))


def batched(outbox, port):
    """Number, completeness and messages of the batches in an outbox that go out of a port."""
    frames = [msg.unpack_frame(payload) for p, payload in outbox if p == port]
    found = [read(msg.BATCH, body) for kind, _, _, body in frames if kind is FrameKind.BATCH]
    return [(x.number, x.complete, [msg.unpack(data) for data in x.messages]) for x in found]


ME, FAR, LEAF = Address(7, 1), Address(50, 1), Address(60, 1)


def test_a_cycle_goes_outward_and_its_answer_comes_back_when_all_beyond_have_answered():
    bench = Clocked()
    bench.data("out", msg.pack(msg.Sense(LEAF, 1, 0, ())))
    bench.now = 0.01
    mine, theirs, other = (msg.Torque(who, 3, (k,)) for k, who in enumerate((ME, FAR, LEAF)))
    stranger = msg.Torque(Address(99, 9), 3, (9.0,))
    outbox = bench.batch("in", 3, theirs, mine, stranger, other)
    assert drives(outbox) == [(0.0,)]
    assert batched(outbox, "out") == [(3, True, [theirs, other])]
    assert batched(outbox, "in") == []
    senses = [msg.Sense(who, 5, 3, (0.1 * k, 0.0)) for k, who in enumerate((FAR, LEAF))]
    assert batched(bench.batch("out", 2, complete=True), "in") == []  # of a cycle before
    assert batched(bench.batch("out", 3, senses[0], complete=False), "in") == []
    bench.reading = (0.5, 0.6)
    ((number, complete, messages),) = batched(bench.batch("out", 3, senses[1]), "in")
    assert (number, complete, messages[:2]) == (3, True, senses)
    assert (messages[2].origin, messages[2].cycle, messages[2].values) == (ME, 3, (0.5, 0.6))
    # a cycle that comes late, and one that comes again
    assert batched(bench.batch("in", 2, mine), "out") == []
    bench.now = 0.03
    bench.batch("in", 5, mine)
    assert bench.state.period == pytest.approx(0.01)  # of two cycles


def test_a_module_that_is_late_takes_all_parts_of_the_newest_cycle_and_skips_others():
    bench = Clocked()
    bench.now = 0.01
    old, mine, theirs = (msg.Torque(who, 5, (x,)) for who, x in ((ME, 3.0), (ME, 4.0), (FAR, 5.0)))
    frames = [
        bench.frame("in", number, msg.pack(torque), complete=complete)
        for number, torque, complete in ((3, old, True), (4, mine, False), (4, theirs, True))
    ]
    outbox = bench.step(*frames)
    assert drives(outbox) == [(4.0,)]
    assert [messages for _, _, messages in batched(outbox, "out")] == [[], [theirs]]
    ignored = bench.state.links.ignored
    assert drives(bench.step(bench.frame("in", 5, msg.pack(old), b"\x77"))) == []
    assert bench.state.links.ignored == ignored + 1
    assert bench.state.cycle.number == 4


def test_readings_of_a_cycle_show_the_way_to_their_modules_until_the_own_way_is_lost():
    bench = Clocked()
    bench.now, torque = 0.01, msg.Torque(LEAF, 4, (1.0,))
    bench.batch("in", 3)
    bench.batch("out", 3, msg.Sense(LEAF, 5, 3, ()))
    assert told(bench.data("in", msg.pack(torque)), "out") == [torque]
    bench.hello("in", 0)
    outbox = bench.batch("out", 3, msg.Sense(LEAF, 6, 3, ()))
    assert batched(outbox, "in") == batched(outbox, "out") == []
    bench.hello("in", 6)
    assert bench.state.parent == "in"
    assert told(bench.data("in", msg.pack(torque)), "out") == []


def test_a_cycle_does_not_wait_for_a_connector_where_nobody_was_heard():
    bench = Clocked()
    bench.step(msg.own(msg.Plugged("out", 0)))  # a docking with another module
    outbox = bench.batch("in", 3)
    ((number, complete, messages),) = batched(outbox, "in")
    assert (number, complete, [message.origin for message in messages]) == (3, True, [ME])
    assert batched(outbox, "out") == []


def test_a_node_that_misses_an_answer_sends_what_it_has_after_one_and_a_half_periods():
    bench = Clocked()
    for bench.now, number in ((0.01, 3), (0.02, 4)):
        bench.batch("in", number)
        bench.batch("out", number)
    bench.now = 0.03
    bench.batch("in", 5)
    assert bench.state.wake == pytest.approx(0.035)  # after its last answer
    bench.now = 0.0349
    assert batched(bench.step(), "in") == []
    bench.now = bench.state.wake
    assert bench.now == pytest.approx(0.035)
    ((number, _, messages),) = batched(bench.step(), "in")
    assert (number, [message.origin for message in messages]) == (5, [ME])


def test_a_node_whose_neighbor_never_answers_sends_its_own_reading_from_the_second_cycle_on():
    bench = Clocked()
    bench.now = 0.01
    assert batched(bench.batch("in", 3), "in") == []
    bench.now = 0.02
    ((number, _, messages),) = batched(bench.batch("in", 4), "in")
    assert (number, [message.origin for message in messages]) == (4, [ME])


def test_a_node_without_cycles_holds_its_joints_with_its_gains_and_the_last_torque():
    bench = Clocked()
    bench.data("in", msg.pack(msg.HoldGains(ME, (100.0, 5.0, 0.5))))
    for bench.now, number in ((0.25, 3), (0.26, 4)):
        bench.hello("in", 5)
        bench.batch("in", number, msg.Torque(ME, number + 1, (2.0,)))
        bench.batch("out", number)
    late = 0.26 + 50 * 0.01
    bench.now = late - 1e-3
    bench.hello("in", 6)
    assert drives(bench.step()) == []
    assert bench.state.hold_at == pytest.approx(late)
    bench.now = bench.state.hold_at
    ((torque,),) = drives(bench.step())
    rest = 2.0 - 0.5 * 0.2  # without what worked against friction
    assert torque == pytest.approx(rest - 5.0 * 0.2)
    bench.reading = (0.31, -0.1)
    bench.now += 1e-3
    assert drives(bench.step(Message("out", b"garbage"))) == []
    bench.now = bench.state.hold_at
    ((torque,),) = drives(bench.step())
    assert torque == pytest.approx(rest - 100.0 * 0.01 + 5.0 * 0.1)
    assert bench.state.wake <= bench.now + 2e-3 + 1e-12
    bench.batch("in", 9, msg.Torque(ME, 10, (3.0,)))  # the loop is back
    assert bench.state.held == ()
    bench.step(msg.own(msg.Unplugged("in")))
    assert bench.state.torques is None
    assert bench.state.hold_at == float("inf")


def test_a_node_without_a_clock_holds_its_joints_when_its_way_is_lost():
    bench = Clocked()  # with a torque of 2, before the first cycle
    bench.data("in", msg.pack(msg.HoldGains(ME, (100.0, 5.0, 0.5))))
    for bench.now in (0.5, 1.0):
        assert drives(bench.hello("in", 5)) == []
        assert bench.state.hold_at == float("inf")
    assert drives(bench.hello("in", 0)) == [(pytest.approx(2.0 - 0.5 * 0.2 - 5.0 * 0.2),)]
    bench.now = 1.001
    assert drives(bench.hello("in", 6)) == []
    bench.reading, bench.now = (0.31, 0.0), 1.002  # it has a way again, but no torque yet
    assert drives(bench.step()) == [(pytest.approx(2.0 - 0.5 * 0.2 - 100.0 * 0.01),)]


def test_joints_are_held_after_a_tenth_of_a_second_or_50_periods_whichever_is_longer():
    bench = Clocked()
    bench.data("in", msg.pack(msg.HoldGains(ME, (100.0, 5.0, 0.5))))
    for bench.now, number, seconds in (
        (0.25, 3, 0.1), (0.251, 4, 0.1), (0.254, 5, 0.15)
    ):  # fmt: skip
        bench.hello("in", 5)
        bench.batch("in", number, msg.Torque(ME, number + 1, (2.0,)))
        bench.batch("out", number)
        assert bench.state.hold_at == pytest.approx(bench.now + seconds)


def test_a_module_of_several_joints_holds_each_with_its_own_gains():
    bench = Clocked()
    bench.data("in", msg.pack(msg.HoldGains(ME, (100.0, 5.0, 0.5, 200.0, 6.0, 0.25))))
    bench.reading = (0.1, 0.2, 0.3, 0.4)
    bench.now = 0.25
    bench.hello("in", 5)
    bench.batch("in", 3, msg.Torque(ME, 4, (2.0, 3.0)))
    bench.batch("out", 3)
    for reading, wanted in (
        (bench.reading, (1.9 - 5.0 * 0.2, 2.9 - 6.0 * 0.4)),
        ((0.11, 0.0, 0.28, 0.0), (1.9 - 100.0 * 0.01, 2.9 + 200.0 * 0.02)),
    ):
        bench.reading, bench.now = reading, bench.state.hold_at
        (torques,) = drives(bench.step())
        assert torques == pytest.approx(wanted)


def test_a_module_passes_on_the_readings_of_so_many_others_and_its_own(monkeypatch):
    bench = Clocked()
    monkeypatch.setattr(msg, "MOST_MODULES", 2)
    bench.now = 0.01
    bench.batch("in", 3)
    senses = [msg.Sense(who, 5, 3, (0.1, 0.0)) for who in (FAR, LEAF, Address(70, 1))]
    ((_, _, messages),) = batched(bench.batch("out", 3, *senses), "in")
    assert [message.origin for message in messages] == [FAR, LEAF, ME]


def test_commands_have_numbers_for_eight_joints_at_most():
    """Two of each, as for servos; three gains of each."""
    bench = Bench().driven()

    def taken(message):
        before = bench.state.links.ignored
        bench.data("in", msg.pack(message))
        return bench.state.links.ignored == before

    assert taken(msg.Torque(ME, 2, (1.0,) * 16))
    assert bench.state.torques == (1.0,) * 16
    assert not taken(msg.Torque(ME, 3, (2.0,) * 17))
    assert bench.state.torques == (1.0,) * 16
    assert taken(msg.HoldGains(ME, (3.0,) * 24))
    assert not taken(msg.HoldGains(ME, (4.0,) * 25))
    assert bench.state.hold_gains == (3.0,) * 24


# -- sleep -----------------------------------------------------------------------------------------


def test_programs_sleep_until_there_is_something_to_do():
    """A process that is woken too early runs all the time."""
    bus = SimulatedBus()
    bus.start("giusti_b")
    bus.plug("base.out", "m0.in")
    assert bus.run(lambda: bus.settled(1))
    bus.run(lambda: False, 2 * PATIENCE * HEARTBEAT)
    for program, state in (
        (bus.modules["m0"].node, bus.states["m0"]),
        (bus._root, bus.coordinator),
    ):
        assert bus.now < state.wake <= bus.now + HEARTBEAT / HELLOS
        assert program.step(state, [], state.wake - 1e-6) == (state, [])
        after, outbox = program.step(state, [], state.wake)
        assert outbox != []
        assert after.wake == pytest.approx(state.wake + HEARTBEAT / HELLOS)


def test_a_program_wakes_to_repeat_what_was_not_acknowledged():
    bench = Bench().driven()
    bench.step(msg.own(msg.Sensed([0.1, 0.2])))
    assert bench.state.wake == pytest.approx(0.025)


def test_a_cycle_is_answered_by_the_batch_that_completes_it():
    coordinator = Coordinator(HEARTBEAT)
    state, _ = coordinator.step(coordinator.start(1), [msg.own(msg.Plugged("out", 0))], 0.0)
    mine = state.links.ports["out"].here

    def come(kind, there, body):
        frame = Message("out", msg.pack_frame(kind, 40, there, body))
        return coordinator.step(state, [frame], 0.0)[0]

    state = come(FrameKind.HELLO, 0, msg.HELLO.pack(msg.Hello(Address(7, 1), 1, 0, 1, True, "x")))
    state = come(FrameKind.BATCH, mine, msg.BATCH.pack(msg.CycleBatch(3, False, ())))
    assert state.answered == 0
    state = come(FrameKind.BATCH, mine, msg.BATCH.pack(msg.CycleBatch(3, True, ())))
    assert state.answered == 3


def test_hellos_of_the_coordinator_bear_its_beat_and_are_those_of_no_child():
    coordinator = Coordinator(HEARTBEAT)

    def hellos(outbox):
        frames = [msg.unpack_frame(payload) for _, payload in outbox]
        found = [read(msg.HELLO, body) for kind, _, _, body in frames if kind is FrameKind.HELLO]
        return [(x.number, x.beat, x.epoch, x.child, x.port) for x in found]

    state, outbox = coordinator.step(coordinator.start(1, 7), [msg.own(msg.Plugged("out", 0))], 0.0)
    assert hellos(outbox) == [(1, 7, 1, False, "out"), (2, 8, 1, False, "out")]  # and a pulse
    first = msg.HELLO.pack(msg.Hello(Address(7, 1), 1, 0, 1, False, "in"))
    frame = Message("out", msg.pack_frame(FrameKind.HELLO, 40, 0, first))
    state, outbox = coordinator.step(state, [frame], 0.01)
    assert hellos(outbox) == [(3, 8, 1, False, "out")]  # an answer to a new neighbor
    assert hellos(coordinator.step(state, [], state.links.pulse)[1]) == [(4, 9, 1, False, "out")]
    # another neighbor, whose first hello was lost: it begins a link of its own
    answers = []
    for number in (2, 3, 4):
        late = msg.HELLO.pack(msg.Hello(Address(8, 1), number, 0, 1, False, "in"))
        frame = Message("out", msg.pack_frame(FrameKind.HELLO, 41, 0, late))
        state, outbox = coordinator.step(state, [frame], 0.02)
        answers.append(hellos(outbox))
    assert answers == [[], [(1, 8, 1, False, "out")], []]


def test_the_coordinator_counts_what_is_no_news_of_a_module():
    coordinator, module = Coordinator(), Address(7, 1)
    state = coordinator.start(1)
    command = msg.pack(msg.Torque(module, 1, (1.0,)))
    for ignored, data in enumerate((b"", b"\x77", command, msg.pack(msg.Unplugged("in"))), 1):
        coordinator._file(state, data, 1.0)
        assert (state.links.ignored, state.table, state.revision) == (ignored, {}, 0)


def test_cycles_of_a_coordinator_without_a_neighbor_are_counted_and_sent_to_nobody():
    coordinator = Coordinator()
    state, outbox = coordinator.cycle(coordinator.start(1), {Address(7, 1): (1.0,)}, 0.0)
    assert (state.cycle, outbox) == (1, [])
    ask = msg.own(msg.Ask(Address(7, 1), msg.Wanted.REPORT))
    assert coordinator.step(state, [ask], 0.0)[1] == []


def test_the_coordinator_drops_modules_that_are_not_heard_for_60_heartbeats():
    coordinator, module = Coordinator(HEARTBEAT), Address(7, 1)
    state = coordinator.start(1)
    coordinator._file(state, msg.pack(msg.Sense(module, 1, 0, (0.1, 0.0))), 1.0)
    for now, there in ((1.0, True), (16.0, True), (16.001, False)):
        coordinator._expire(state, now)
        assert (module in state.table) == there


def test_the_coordinator_asks_in_every_heartbeat_for_what_is_missing():
    coordinator, now, sent, hellos = Coordinator(HEARTBEAT), 0.0, [0], [0]
    one, two = Address(1, 1), Address(2, 1)
    state, _ = coordinator.step(coordinator.start(9), [msg.own(msg.Plugged("out", 0))], now)
    mine = state.links.ports["out"].here

    def come(*frames):
        hellos[0] += 1
        hello = msg.HELLO.pack(msg.Hello(one, hellos[0], 0, 1, True, "in"))
        frames = ((FrameKind.HELLO, 0, hello), *frames)
        inbox = [Message("out", msg.pack_frame(kind, 40, to, body)) for kind, to, body in frames]
        return coordinator.step(state, inbox, now)

    def data(message):
        sent[0] += 1
        return FrameKind.DATA, mine, struct.pack("<I", sent[0]) + msg.pack(message)

    up = Neighbor("in", Address(0, 9), "out", 0, Status.HEARD)
    down = Neighbor("out", two, "in", 0, Status.HEARD)
    state, _ = come(data(ModuleReport(one, 1, "m", (up, down))))
    assert state.survey.modules == state.survey.unread == (one,)
    assert state.survey.unreported == (two,)
    wanted = {(two, msg.Wanted.REPORT), (one, msg.Wanted.RECORD)}
    assert state.asks == dict.fromkeys(wanted, 0.25)
    for now in (0.125, 0.25, 0.375, 0.5):
        state, outbox = come()
        asked = {tuple(message) for message in told(outbox, "out")}
        assert wanted <= asked if now in (0.25, 0.5) else state.asked in (0, 2)
    assert state.asked == 4
    assert not state.ready
    now = 0.5
    state, _ = come(data(msg.Piece(one, 6, 0, b"record")))
    assert state.asks.keys() == {(two, msg.Wanted.REPORT)}
    for later, ready in ((0.9, False), (1.249, False), (1.25, True)):
        now = later
        state, _ = come()
        assert state.ready == ready  # three heartbeats later it goes on without the other one


def test_the_coordinator_wakes_when_its_patience_ends():
    bus = SimulatedBus()
    bus.start("giusti_b")
    bus.start("giusti_b")
    bus.kill("m1")
    bus.plug("base.out", "m0.in")
    bus.plug("m0.out", "m1.in")
    assert bus.run(lambda: len(bus.coordinator.survey.modules) == 1)
    end = bus.coordinator.waiting_since + PATIENCE * HEARTBEAT
    assert bus.run(lambda: bus.coordinator.links.pulse > end)  # nothing else would wake it
    state = bus.coordinator
    assert not state.ready
    assert state.wake == end
    assert bus._root.step(state, [], end + 1e-9)[0].ready


def test_reports_and_records_are_revisions_and_readings_are_not():
    """Each revision has the robot built anew."""
    coordinator, found = Coordinator(), []
    state = coordinator.start(1)
    module = Address(7, 1)
    for message in (
        msg.Sense(module, 1, 0, (0.1, 0.0)), msg.ModuleReport(module, 1, "m", ()),
        msg.Sense(module, 2, 0, (0.2, 0.0)), msg.Piece(module, 6, 0, b"record"),
        msg.Sense(module, 3, 0, (0.3, 0.0)), msg.ModuleReport(module, 1, "m", ()),
    ):  # fmt: skip
        coordinator._file(state, msg.pack(message), 0.0)
        found.append(state.revision)
    assert found == [0, 1, 1, 2, 2, 2]  # the last report came twice
    assert (state.table[module].values, state.table[module].record) == ((0.3, 0.0), b"record")


# -- the tree --------------------------------------------------------------------------------------

OWN, ONE, TWO, THREE = Address(0, 9), Address(1, 1), Address(2, 2), Address(3, 3)


def reported(*neighbors):
    return BusEntry(report=ModuleReport(ONE, 1, "m", tuple(neighbors)), record=b"")


def two(back):
    """The survey of a module on the base and one on it, which reports `back` of that docking."""
    base = Neighbor("out", ONE, "in", 0, Status.HEARD)
    up = Neighbor("in", OWN, "out", 0, Status.HEARD)
    down = Neighbor("out", TWO, "in", 90, Status.HEARD)
    return survey(OWN, base, {ONE: reported(up, down), TWO: reported(back)})


def test_a_docking_counts_when_both_sides_report_it_alike():
    good = Neighbor("in", ONE, "out", 90, Status.HEARD)
    assert two(good).modules == (ONE, TWO)
    assert two(good).complete
    for wrong in (
        good._replace(status=Status.SILENT),
        good._replace(address=Address(1, 2)),
        good._replace(their_port="side"),
        good._replace(port="side"),
    ):
        assert two(wrong).modules == (ONE,)
        assert two(wrong).unreported == (TWO,)
        assert not two(wrong).complete


def test_a_docking_with_two_turns_is_left_out_and_named():
    found = two(Neighbor("in", ONE, "out", 180, Status.HEARD))
    assert found.modules == (ONE,)
    assert [(edge.parent, edge.child, edge.turn) for edge in found.skewed] == [(ONE, TWO, 90)]
    assert found.complete


def test_modules_beyond_one_that_starts_again_stay_in_the_body():
    base = Neighbor("out", ONE, "in", 0, Status.HEARD)
    up = Neighbor("in", OWN, "out", 0, Status.HEARD)
    silent = Neighbor("out", TWO, "in", 0, Status.SILENT)
    middle = reported(
        Neighbor("in", ONE, "out", 0, Status.HEARD), Neighbor("out", THREE, "in", 0, Status.HEARD)
    )
    for parent in (TWO, Address(TWO.uid, 77)):  # its address, and that of its next start
        end = reported(Neighbor("in", parent, "out", 0, Status.HEARD))
        found = survey(OWN, base, {ONE: reported(up, silent), TWO: middle, THREE: end})
        assert [edge.child for edge in found.lost] == [TWO, THREE]


FOUR, FIVE = Address(4, 4), Address(5, 5)


def tree(*dockings):
    """The survey of modules with dockings (module, port, module, port), each on both sides."""
    told = {}
    for one, port, other, their_port in (*dockings, (OWN, "out", ONE, "in")):
        told.setdefault(one, []).append(Neighbor(port, other, their_port, 0, Status.HEARD))
        told.setdefault(other, []).append(Neighbor(their_port, one, port, 0, Status.HEARD))
    (base,) = [neighbor for neighbor in told.pop(OWN) if neighbor.port == "out"]
    return survey(OWN, base, {module: reported(*found) for module, found in told.items()})


STEM = ((ONE, "out", TWO, "in"), (TWO, "out", THREE, "in"), (TWO, "up", FOUR, "in"))


def test_a_tree_is_walked_level_by_level():
    found = tree(*STEM, (THREE, "out", FIVE, "in"))
    assert found.modules == (ONE, TWO, THREE, FOUR, FIVE)
    assert [(edge.parent, edge.port, edge.child) for edge in found.edges] == [
        (ONE, "out", TWO), (TWO, "out", THREE), (TWO, "up", FOUR), (THREE, "out", FIVE)
    ]  # fmt: skip
    assert not found.loops


def test_a_ring_is_named_from_one_branch_to_the_other_over_where_they_meet():
    found = tree(*STEM, (THREE, "out", FIVE, "in"), (FIVE, "side", FOUR, "side"))
    ((edge, ring),) = found.loops
    assert {edge.parent, edge.child} == {FOUR, FIVE}
    assert ring in ((FIVE, THREE, TWO, FOUR), (FOUR, TWO, THREE, FIVE))  # without the stem
    ((_, ring),) = tree(*STEM, (FOUR, "side", ONE, "side")).loops
    assert set(ring) == {FOUR, TWO, ONE}


def test_a_module_that_still_reports_the_base_elsewhere_is_in_a_ring_with_all_below():
    base = Neighbor("out", ONE, "in", 0, Status.HEARD)
    up, down = (Neighbor(port, other, end, 0, Status.HEARD)
                for port, other, end in (("in", OWN, "out"), ("out", TWO, "in")))  # fmt: skip
    back = Neighbor("in", ONE, "out", 0, Status.HEARD)
    old = Neighbor("side", OWN, "out", 0, Status.HEARD)
    found = survey(OWN, base, {ONE: reported(up, down), TWO: reported(back, old)})
    ((edge, ring),) = found.loops
    assert (edge.parent, edge.port, edge.child) == (TWO, "side", OWN)
    assert ring == (TWO, ONE)


def test_a_silent_module_that_has_joined_elsewhere_is_not_lost():
    base = Neighbor("out", ONE, "in", 0, Status.HEARD)
    again = Address(TWO.uid, 99)
    table = {
        ONE: reported(Neighbor("in", OWN, "out", 0, Status.HEARD),
                      Neighbor("out", TWO, "in", 0, Status.SILENT),
                      Neighbor("side", again, "in", 0, Status.HEARD)),
        TWO: reported(Neighbor("in", ONE, "out", 0, Status.HEARD)),
        again: reported(Neighbor("in", ONE, "side", 0, Status.HEARD)),
    }  # fmt: skip
    found = survey(OWN, base, table)
    assert (found.modules, found.lost) == ((ONE, again), ())
    assert found.silent == ((ONE, "out", TWO),)
    del table[again]
    assert [edge.child for edge in survey(OWN, base, table).lost] == [TWO]
    # its last report has it elsewhere: how it was docked here is not known
    table[TWO] = reported(Neighbor("in", THREE, "out", 0, Status.HEARD))
    assert survey(OWN, base, table).lost == ()


def test_records_that_are_missing_and_ids_that_are_there_twice_are_found():
    base = Neighbor("out", ONE, "in", 0, Status.HEARD)
    twin = Address(ONE.uid, 77)
    table = {
        ONE: reported(Neighbor("in", OWN, "out", 0, Status.HEARD),
                      Neighbor("out", twin, "in", 0, Status.HEARD),
                      Neighbor("side", TWO, "in", 0, Status.EXPECTED)),
        twin: reported(Neighbor("in", ONE, "out", 0, Status.HEARD)),
    }  # fmt: skip
    table[ONE] = table[ONE]._replace(record=None)
    found = survey(OWN, base, table)
    assert (found.modules, found.twins, found.unread) == ((ONE,), ((ONE, twin),), (ONE,))
    assert found.unheard == ((ONE, "side"),)
    assert not found.complete
    (fault,) = assemble(found._replace(twins=(), unheard=()), table).faults
    assert fault.endswith("module 00:00:00:00:00:01 has not sent its record")


def test_faults_name_the_coordinator_modules_and_ids():
    found = survey(OWN, Neighbor("out", Address(0, 0), "", 0, Status.EXPECTED), {})
    assert assemble(found, {}).faults == ("no answer at port out of 'coordinator'; it is left out",)
    stranger = Address(0x0242AC110099, 1)
    silent = found._replace(unheard=(), silent=((stranger, "x", TWO),))
    assert "at port x of '02:42:ac:11:00:99'" in assemble(silent, {}).faults[0]


def test_readings_of_all_joints_make_the_state_and_silent_modules_are_at_rest():
    organism = Organism.start("superbot").dock("m0", 4, "m1", 1)
    model = organism.model("physical")
    found = BusRobot(BusAssembly(organism, {ONE: "m0"}, (), {TWO: "m1"}), model)
    table = {
        ONE: BusEntry(values=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6)),
        TWO: BusEntry(values=(1.1, 1.2, 1.3, 1.4)),  # of the third joint there is none
    }
    q, v, known = found.state(table)
    names = [f"{m}.{joint.name}" for m in ("m0", "m1") for joint in organism.kind(m).joints]
    order = [names.index(name) for name in model.joint_names]
    np.testing.assert_array_equal(q, np.array([0.1, 0.3, 0.5, 1.1, 1.3, 0.0])[order])
    np.testing.assert_array_equal(v, np.array([0.2, 0.4, 0.6, 0.0, 0.0, 0.0])[order])
    np.testing.assert_array_equal(known, np.array([1, 1, 1, 1, 1, 0], bool)[order])
    assert found.joints().keys() == {ONE}
    assert BusRobot().joints() == {}
    assert BusRobot().bad_readings(table) == {}
    short = table[ONE]._replace(sensed=Newest(1, 0.0), values=(0.1,) * 5)
    assert "has 5 numbers, expected 6" in found.bad_readings({ONE: short})[ONE]


def test_a_body_is_the_same_if_only_those_that_answer_differ():
    organism = Organism.start("superbot").dock("m0", 4, "m1", 1)
    old = BusRobot(BusAssembly(organism, {ONE: "m0"}), controller=object())
    assert _same_body(old, BusRobot(BusAssembly(organism, {}, (), {ONE: "m0"})))
    turned = Organism.start("superbot").dock("m0", 4, "m1", 1, turn=90)
    smaller = Organism.start("superbot")
    for other in (BusRobot(), BusRobot(BusAssembly(turned)), BusRobot(BusAssembly(smaller))):
        assert not _same_body(old, other)
        assert not _same_body(other, old)
    assert not _same_body(replace(old, controller=None), old)


# -- processes -------------------------------------------------------------------------------------


def test_lines_that_come_in_halves_are_read_whole_and_in_order():
    out, into = os.pipe()
    try:
        lines = Lines(out)
        os.write(into, b'{"a": 1}\n{"b"')
        assert lines.read() == [{"a": 1}]
        os.write(into, b': 2}\n{"c": 3}\n')
        assert lines.read() == [{"b": 2}, {"c": 3}]
        parent = processes.Processes("SimulatedBus")
        parent._pipes[out] = "m0", Lines(out)
        os.write(into, b'{"drive": [1.0]}\n{"address": ["127.0.0.1"')
        assert parent.listen(out) == ("m0", [{"drive": [1.0]}])
        os.write(into, b", 7]}\n")
        assert parent.listen(out) == ("m0", [])
        assert parent.addresses == {"m0": ["127.0.0.1", 7]}
    finally:
        os.close(into)
    assert parent.listen(out) == ("m0", None)
    assert parent.pipes() == []
    assert lines.read() is None
    os.close(out)


def test_a_process_that_does_not_end_is_killed(monkeypatch):
    monkeypatch.setattr(processes, "END_TIMEOUT_S", 0.05)
    with ProcessBus() as bus:
        bus.start("giusti_b")
        bus.start("giusti_b")
        bus.plug("m0.out", "m1.in")  # both are up
        pid = bus.pid("m0")
        os.kill(pid, signal.SIGSTOP)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
