"""The sockets: they listen to this machine alone, and to those who are plugged in."""

import random
import socket
import time

import pytest

from modurob import StateError
from modurob.checks import is_loopback
from modurob.distributed import Message
from modurob.distributed.transports import Udp
from modurob.distributed.transports.base import LARGEST_PAYLOAD
from oracles import complains

DEADLINE = 5.0  # [s] for something that takes microseconds


@pytest.fixture
def pair():
    one, other = Udp(), Udp()
    one.plug("out", other.address, "in")
    other.plug("in", one.address, "out")
    yield one, other
    one.close()
    other.close()


def until(condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "nothing happened"


def thrown(address, *datagrams):
    """Send from a socket that is plugged into nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for data in datagrams:
            sock.sendto(data, address)


class FakeSocket:
    """Hands out datagrams with any source address."""

    def __init__(self, *datagrams):
        self.datagrams = list(datagrams)

    def getsockname(self):
        return ("127.0.0.1", 1)

    def recvfrom(self, size):
        if not self.datagrams:
            raise BlockingIOError
        data, source = self.datagrams.pop(0)
        return data[:size], source


def test_a_socket_is_bound_to_the_loopback(pair):
    for endpoint in pair:
        assert is_loopback(endpoint.address[0])
        assert endpoint.address[1] > 0


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "localhost.example"])
def test_listening_to_other_machines_has_to_be_asked_for(host):
    with complains(StateError, host, "foreign=True"):
        Udp(host)


def test_datagrams_of_other_machines_are_refused_and_counted():
    source = ("192.0.2.7", 4711)
    endpoint = Udp(sock=FakeSocket((b"\x02inx", source)))
    endpoint.plug("in", source, "out")  # even if somebody plugged it in
    assert endpoint.receive() == []
    assert endpoint.refused == {"foreign": 1}
    endpoint = Udp(sock=FakeSocket((b"\x02inx", source)), foreign=True)
    endpoint.plug("in", source, "out")
    assert endpoint.receive() == [Message("in", b"x")]


def test_garbage_strangers_and_oversized_datagrams_are_ignored_and_counted(pair):
    one, other = pair
    garbage = [b"", b"\x00", b"\xff", b"\x09in", bytes(range(65, 200))]
    thrown(other.address, *garbage, b"\x02inforged", b"\x04nonex")
    thrown(other.address, b"\x02in" + bytes(LARGEST_PAYLOAD + 70), bytes(60_000))
    one.send([Message("out", b"true")])
    found = []
    until(lambda: found.extend(other.receive()) or found)
    assert found == [Message("in", b"true")]
    assert other.refused == {"garbage": 5, "stranger": 2, "oversized": 2}


def test_a_neighbour_can_speak_only_through_the_port_it_is_plugged_into(pair):
    one, other = pair
    one.plug("out", other.address, "elsewhere")
    one.send([Message("out", b"x")])
    until(lambda: other.receive() or other.refused)
    assert other.refused == {"stranger": 1}


def test_loss_for_trials_is_counted(pair):
    one, _ = pair
    lossy = Udp(loss=1.0, rng=random.Random(0))
    lossy.plug("in", one.address, "out")
    one.plug("out", lossy.address, "in")
    one.send([Message("out", b"x")] * 3)
    arrived = []
    until(lambda: arrived.extend(lossy.receive()) or len(arrived) + lossy.counts.lost == 3)
    assert (arrived, lossy.counts.lost) == ([], 3)
    lossy.close()


def test_sending_to_a_socket_that_is_gone_does_not_raise(pair):
    one, other = pair
    other.close()
    for _ in range(3):
        one.send([Message("out", b"x")])
        assert one.receive() == []


@pytest.mark.parametrize("label", ["", "x" * 65])
def test_labels_fit_on_the_wire(pair, label):
    with complains(StateError, "64 bytes"):
        pair[0].plug("out", pair[1].address, label)


def test_loss_needs_a_generator():
    with complains(StateError, "rng"):
        Udp(loss=0.5)
