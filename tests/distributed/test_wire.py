"""Safety of the wire: only what a neighbor sent is received, once, and never too much of it."""

import hashlib
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from modurob import Organism
from modurob.distributed import MassProcesses, Message, child
from modurob.distributed.bus import coordinator
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.messages import Address
from modurob.distributed.bus.node import NodeProgram
from modurob.distributed.processes import Processes
from modurob.distributed.transports import Udp, base
from modurob.distributed.transports.base import MOST_PER_S, MOST_WAITING
from modurob.distributed.transports.secure import COUNTER_WINDOW, SecureLink

KEY = b"a key of 20 bytes..."
A, B = ((("127.0.0.1", 1), "out"), (("127.0.0.1", 2), "in"))
DEADLINE = 20.0  # [s] for something that takes milliseconds on a free machine
SETTLING = 1  # exchanges until two sides that lost each other are in touch again


def hmac_sha256(key, data):
    """As RFC 2104 defines it."""
    block = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in block) + data).digest()
    return hashlib.sha256(bytes(b ^ 0x5C for b in block) + inner).digest()


def links():
    """Both sides of a link after their handshake."""
    a, b = SecureLink(KEY, A, B), SecureLink(KEY, B, A)
    shake(a, b, a.request())
    assert a.is_up
    assert b.is_up
    return a, b


def shake(a, b, data):
    """Carry a datagram from a to b, the answer back, and so on, until there is none."""
    for _ in range(5):
        if data is not None:
            data, a, b = b.open(data).answer, b, a
    assert data is None


def test_a_datagram_has_the_bytes_of_the_guide():
    a, b = links()
    data = a.seal(b"payload")
    ours, theirs, counter = struct.unpack("<QQQ", data[:24])
    assert (counter, data[24:-16]) == (1, b"payload")
    assert struct.unpack("<QQ", b.seal(b"")[:16]) == (theirs, ours)
    key = hmac_sha256(KEY, repr((A, B)).encode())
    assert data[-16:] == hmac_sha256(key, data[:-16])[:16]


def test_no_bit_of_a_datagram_can_be_changed_and_nothing_cut_off_or_added():
    a, b = links()
    data = a.seal(b"payload")
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert b.open(bytes(changed)).refused == "forged"
    for wrong in [data[:n] for n in range(len(data))] + [data + b"\0", b"\0" + data]:
        assert b.open(wrong).refused == "forged"
    assert b.open(data).payload == b"payload"  # nothing of this has changed anything


def test_a_datagram_passes_once_in_whatever_order():
    a, b = links()
    sent = [a.seal(bytes([k])) for k in range(100)]
    random.Random(0).shuffle(sent)
    assert sorted(b.open(data).payload for data in sent) == [bytes([k]) for k in range(100)]
    assert {b.open(data).refused for data in sent} == {"replayed"}


def test_counters_older_than_the_window_are_refused_and_those_within_are_not():
    a, b = links()
    sent = [a.seal(b"x") for _ in range(COUNTER_WINDOW + 1)]
    assert b.open(sent[-1]).payload == b"x"
    assert b.open(sent[0]).refused == "replayed"
    assert b.open(sent[1]).payload == b"x"
    a._sent += 2**40  # a leap forgets what was before, at no cost
    assert b.open(a.seal(b"y")).payload == b"y"
    assert b.open(sent[2]).refused == "replayed"


def test_a_datagram_is_of_no_use_elsewhere():
    a, _ = links()
    data = [a.request(), a.seal(b"x")]
    for key, here, there in [
        (KEY, A, B),  # back to its sender
        (KEY, B, (A[0], "in")),  # from another port of the sender
        (KEY, (B[0], "out"), A),  # into another port of the receiver
        (KEY, (("127.0.0.1", 3), "in"), A),  # to another module
        (KEY[::-1], B, A),  # to a module with another key
    ]:
        other = SecureLink(key, here, there)
        assert [other.open(each).refused for each in data] == ["forged", "forged"]


def test_an_old_run_of_the_neighbor_does_not_pass_for_a_restart():
    a, b = links()
    old = [a.request(), a.seal(b"old"), a.seal(b"never delivered")]
    assert b.open(old[1]).payload == b"old"
    a = SecureLink(KEY, A, B)
    tape = [a.request()]
    for data in old:  # before the restart is noticed: nothing of it moves b
        answer = b.open(data).answer
        assert answer is None or a.open(answer) == (None, None, "")
    shake(a, b, tape[0])
    tape.append(a.seal(b"new"))
    assert b.open(tape[1]).payload == b"new"
    for data in old:
        payload, answer, _ = b.open(data)
        assert payload is None
        assert answer is None or a.open(answer) == (None, None, "")
    assert b.open(a.seal(b"newer")).payload == b"newer"
    assert a.open(b.seal(b"back")).payload == b"back"


def test_a_side_that_started_anew_and_says_nothing_is_found_by_what_is_sent_to_it():
    a, _ = links()
    b = SecureLink(KEY, B, A)
    shake(a, b, a.seal(b"lost"))
    assert b.open(a.seal(b"found")).payload == b"found"


def test_a_replayed_request_leaves_the_numbers_in_use():
    a, b = SecureLink(KEY, A, B), SecureLink(KEY, B, A)
    request = a.request()
    shake(a, b, request)
    numbers = b.seal(b"")[:16]
    shake(a, b, request)
    assert b.seal(b"")[:16] == numbers


class Hostile:
    """A wire in the hands of an attacker who has everything that was ever sent on it."""

    def __init__(self, rng):
        self.rng = rng
        self.sides = [SecureLink(KEY, A, B), SecureLink(KEY, B, A)]
        self.lives = [0, 0]
        self.under_way = []  # (receiver, datagram)
        self.tape = []
        self.payloads = 0
        self.received = {}  # lives of both sides when each payload came in

    def restart(self, side):
        ends = (A, B) if side == 0 else (B, A)
        self.sides[side], self.lives[side] = SecureLink(KEY, *ends), self.lives[side] + 1
        self.put(1 - side, self.sides[side].request())

    def put(self, receiver, data):
        self.under_way.append((receiver, data))
        self.tape.append((receiver, data))

    def speak(self, side):
        """Send a payload, with its number, its direction and the lives of both sides."""
        link = self.sides[side]
        if not link.is_up:
            return self.put(1 - side, link.request())
        self.payloads += 1
        return self.put(1 - side, link.seal(repr((self.payloads, side, *self.lives)).encode()))

    def deliver(self, receiver, data):
        payload, answer, _ = self.sides[receiver].open(data)
        if answer is not None:
            self.put(1 - receiver, answer)
        if payload is not None:
            number, sender, *lives = eval(payload)
            assert number not in self.received, "received twice"
            assert sender != receiver, "came back to its sender"
            assert lives[receiver] == self.lives[receiver], "sent to an earlier run"
            self.received[number] = self.lives[:]

    def deliver_all(self):
        for _ in range(1000):
            if self.under_way:
                self.deliver(*self.under_way.pop(0))
        assert not self.under_way, "they answer each other for ever"

    def step(self):
        """Anything that may happen."""
        rng = self.rng
        chance = rng.random()
        if chance < 0.005:
            self.restart(rng.randrange(2))
        elif chance < 0.15:
            self.speak(rng.randrange(2))
        elif chance < 0.8 and self.under_way:
            at = rng.choice((0, rng.randrange(len(self.under_way))))  # in order, or not
            receiver, data = self.under_way.pop(at)
            if rng.random() < 0.8:  # else it is lost
                self.deliver(receiver, data)
        elif self.tape:
            self.replay()

    def replay(self):
        receiver, data = self.rng.choice(self.tape)
        self.deliver(self.rng.choice((receiver, receiver, 1 - receiver)), data)


@pytest.mark.parametrize("seed", range(10))
def test_a_hostile_wire_delivers_nothing_twice_nor_to_a_later_run_and_keeps_nobody_apart(seed):
    wire = Hostile(random.Random(seed))
    for _ in range(1500):
        wire.step()
    assert len(wire.received) > 50
    wire.under_way.clear()
    late = 0
    for exchange in range(40):  # from now on everything arrives, and the replays go on
        first = wire.payloads
        for side in (0, 1):
            wire.speak(side)
        wire.deliver_all()
        for _ in range(20):
            wire.replay()
        wire.deliver_all()
        if {first + 1, first + 2} <= wire.received.keys():
            continue
        late = exchange + 1
    assert late <= SETTLING


@pytest.fixture
def pair():
    one, other = Udp(key=KEY), Udp(key=KEY)
    plugged(one, other)
    yield one, other
    one.close()
    other.close()


def plugged(one, other):
    one.plug("out", other.address, "in")
    other.plug("in", one.address, "out")
    until(lambda: one.read() or other.read() or (one.is_up("out") and other.is_up("in")))
    one.read()


def until(condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(1e-4)


class Tape:
    """A socket that keeps what it sends."""

    def __init__(self, sock):
        self.sock, self.sent = sock, []

    def __getattr__(self, name):
        return getattr(self.sock, name)

    def sendto(self, data, address):
        self.sent.append(data)
        return self.sock.sendto(data, address)


def test_an_attacker_at_the_neighbors_own_socket_gets_nothing_in(pair):
    one, other = pair
    one._socket = tape = Tape(one._socket)
    one.send([Message("out", b"true")])
    until(lambda: other.receive() == [Message("in", b"true")])
    rng = random.Random(0)
    (data,) = tape.sent
    forged = [data[:3] + rng.randbytes(n) for n in range(1, 60)] + [data[:-1], data + b"\0"]
    for attack in (*forged, data, data):
        one._socket.sock.sendto(attack, other.address)
    one.send([Message("out", b"true again")])
    found = []
    until(lambda: found.extend(other.receive()) or found)
    assert found == [Message("in", b"true again")]
    assert other.refused == {"forged": len(forged), "replayed": 2}


def test_a_module_that_restarts_at_the_same_address_is_heard_and_its_old_self_is_not(pair):
    one, other = pair
    one._socket = tape = Tape(one._socket)
    for _ in range(3):
        one.send([Message("out", b"old")])
    until(lambda: other.receive())
    again = Udp(key=KEY, sock=one._socket)  # the same address, and nothing of the memory
    again.plug("out", other.address, "in")
    for attack in tape.sent[:3]:
        tape.sock.sendto(attack, other.address)
    again.send([Message("out", b"new")])
    found = []
    until(lambda: again.read() or found.extend(other.receive()) or found)
    assert found == [Message("in", b"new")]
    for attack in tape.sent[:3]:
        tape.sock.sendto(attack, other.address)
    again.send([Message("out", b"newer")])
    until(lambda: again.read() or found.extend(other.receive()) or len(found) > 1)
    assert found[1:] == [Message("in", b"newer")]


def test_what_is_sent_before_the_handshake_arrives_up_to_a_number_and_the_rest_is_counted():
    one, other = Udp(key=KEY), Udp(key=KEY)
    one.plug("out", other.address, "in")
    sent = [Message("out", bytes([k])) for k in range(MOST_WAITING + 3)]
    one.send(sent)
    assert one.counts.lost == 3
    other.plug("in", one.address, "out")
    found = []
    until(lambda: one.read() or found.extend(other.receive()) or len(found) == MOST_WAITING)
    assert [m.payload for m in found] == [m.payload for m in sent[3:]]
    one.plug("in", other.address, "nowhere")
    one.send([Message("in", b"x")] * 2)
    one.plug("in", other.address, "elsewhere")
    one.send([Message("in", b"x")] * 2)
    one.unplug("in")
    assert one.counts.sent == one.counts.lost + other.counts.delivered
    one.close()
    other.close()


def test_a_lost_handshake_is_repeated_by_whoever_sends():
    one, other = Udp(key=KEY), Udp(key=KEY)
    one.plug("out", other.address, "in")
    other.plug("in", one.address, "out")
    for endpoint in (one, other):
        assert select.select([endpoint], [], [], DEADLINE)[0]
        endpoint._socket.recvfrom(1000)  # the neighbor's request is lost
    one.send([Message("out", b"x")])
    until(lambda: one.read() or other.receive() == [Message("in", b"x")])
    one.close()
    other.close()


def test_a_neighbor_that_floods_is_limited_and_the_others_are_not(monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(base, "time", clock)
    flooding, quiet, here = (Udp(key=KEY) for _ in range(3))
    plugged(flooding, here)
    quiet.plug("out", here.address, "second")
    here.plug("second", quiet.address, "out")
    until(lambda: quiet.read() or here.read() or quiet.is_up("out"))

    def passed(number):
        """How many of so many datagrams of one moment get in."""
        before = here.counts.delivered + here.refused["rate"]
        for start in range(0, number, 100):  # what fits into the socket's buffer
            flooding.send([Message("out", b"x")] * min(100, number - start))
            here.read()
        until(
            lambda: here.read() or here.counts.delivered + here.refused["rate"] - before == number
        )
        return len(here.receive())

    clock.now += 1000.0
    assert passed(MOST_PER_S) == MOST_PER_S
    assert passed(10) == 0
    quiet.send([Message("out", b"x")])
    until(lambda: here.receive() == [Message("second", b"x")])
    clock.now += 1 / 256  # exact in binary
    assert passed(200) == MOST_PER_S // 256
    assert here.refused["rate"] == 10 + 200 - MOST_PER_S // 256
    for endpoint in (flooding, quiet, here):
        endpoint.close()


def test_other_sockets_of_this_machine_get_nothing_in(pair):
    one, other = pair
    one._socket = tape = Tape(one._socket)
    one.send([Message("out", b"true")])
    until(lambda: other.receive())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(tape.sent[0], other.address)
    until(lambda: other.receive() or other.refused)
    assert other.refused == {"stranger": 1}


# -- every socket of running processes -------------------------------------------------------------


@pytest.mark.parametrize("clocked", [False, True])
def test_a_small_attack_on_every_socket_gets_nothing_in(monkeypatch, clocked):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "tools"))
    from fuzz_bus import attack_bus

    assert attack_bus(2000, clocked=clocked) == []


# -- limits of the coordinator ---------------------------------------------------------------------


def filed(state, *messages):
    for message in messages:
        coordinator.Coordinator()._file(state, msg.pack(message), 0.0)
    return state.table


def test_a_coordinator_remembers_so_many_modules_and_goes_on_with_those(monkeypatch):
    monkeypatch.setattr(msg, "MOST_MODULES", 20)
    state = coordinator.Coordinator().start(1)
    modules = [Address(uid, 1) for uid in range(100, 130)]
    filed(state, *(msg.Sense(module, 1, 0, (0.0, 0.0)) for module in modules))
    assert list(state.table) == modules[:20]
    assert state.links.ignored == 10
    filed(state, *(msg.Sense(module, 2, 0, (1.0, 0.0)) for module in modules))
    assert {entry.values for entry in state.table.values()} == {(1.0, 0.0)}


def test_records_of_all_modules_together_have_a_limit(monkeypatch):
    monkeypatch.setattr(coordinator, "LARGEST_MEMORY", 10 * msg.CHUNK)
    state = coordinator.Coordinator().start(1)
    one, other = Address(1, 1), Address(2, 1)
    whole = bytes(3 * msg.CHUNK)
    for k in range(3):
        filed(state, msg.Piece(one, len(whole), k * msg.CHUNK, whole[: msg.CHUNK]))
    assert state.table[one].record == whole
    for k in range(1, 20):  # the first piece is missing, so the record never becomes complete
        filed(state, msg.Piece(other, msg.LARGEST_RECORD, k * msg.CHUNK, b"x"))
    assert len(state.table[other].pieces) == 7


# -- nothing is left running -----------------------------------------------------------------------

HOST = f"""
import os, runpy, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by jobs in the background
runpy.run_path({child.__file__!r})["without_the_package"]()  # starts quickly
from modurob.distributed import processes
from modurob.distributed.bus.node import NodeProgram

processes.END_TIMEOUT_S = 0.2
modules = processes.Processes("nothing")
try:
    for uid, name in enumerate("ab"):
        settings = dict(uid=uid, record="", name=name, ports=["in"], heartbeat=60.0)
        modules.start(name, NodeProgram, settings, light=True)
        modules.listen(modules.pipe(name))  # it is up
    copy = os.fork() if "copied" in sys.argv else 0
    if "copied" in sys.argv and not copy:
        time.sleep(60)  # holds all pipes open
    print(*map(modules.pid, "ab"), copy, flush=True)
    sys.stdin.read()
finally:
    modules.close()
    print(*(process.returncode for process in modules._processes.values()))
"""


@pytest.fixture
def host(request):
    """A program with two modules, in a process group as in a terminal, and the modules' ids."""
    how = getattr(request, "param", "")
    command = [sys.executable, "-c", HOST, how]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, process_group=0, **pipes) as process:
        *pids, copy = map(int, process.stdout.readline().split())
        assert all(map(is_running, pids))
        yield process, pids
        process.kill()
        if copy:
            os.kill(copy, signal.SIGKILL)
    for pid in filter(is_running, pids):  # only after a failure
        os.kill(pid, signal.SIGKILL)


def state(pid):
    """One letter: Z has ended, T is stopped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def is_running(pid):
    return state(pid) != "Z"


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state(pid) == "T")


@pytest.mark.parametrize("host", ["", "copied"], indirect=True)
def test_modules_end_when_their_host_is_killed_even_if_a_copy_of_it_lives_on(host):
    process, pids = host
    process.kill()
    until(lambda: not any(map(is_running, pids)))


def test_a_stopped_module_ends_when_its_host_is_killed(host):
    process, pids = host
    stop(pids[0])
    process.kill()
    until(lambda: not any(map(is_running, pids)))


def test_a_stopped_module_is_killed_when_its_host_ends(host):
    process, pids = host
    stop(pids[0])
    process.stdin.close()
    until(lambda: not any(map(is_running, pids)))
    assert process.stdout.read().split() == [str(-signal.SIGKILL), "0"]


def test_ctrl_c_reaches_the_host_which_ends_its_modules(host):
    process, pids = host
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.read().split() == ["0", "0"]  # neither has felt the signal
    assert not any(map(is_running, pids))


def test_a_key_is_on_no_command_line_in_no_environment_and_differs_from_bus_to_bus():
    modules = Processes("nothing")
    settings = {"uid": 1, "record": "", "name": "a", "ports": ["in"], "heartbeat": 60.0}
    modules.start("a", NodeProgram, settings, light=True)
    modules.listen(modules.pipe("a"))  # it is up
    place = Path("/proc", str(modules.pid("a")))
    known = (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
    modules.close()
    assert b"child.py" in known
    assert modules._key.hex().encode() not in known
    assert modules._key not in known
    assert modules._key != Processes("nothing")._key


def test_an_interrupt_half_way_through_the_start_leaves_no_process(monkeypatch):
    start, started = Processes.start, []

    def interrupted(self, name, program, settings, **details):
        if started:
            raise KeyboardInterrupt
        start(self, name, program, settings, **details)
        started.append(self.pid(name))

    monkeypatch.setattr(Processes, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        MassProcesses(Organism.start("superbot").dock("m0", 4, "m1", 1))
    assert not is_running(started[0])
