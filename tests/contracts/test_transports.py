"""What every transport keeps to; a new one in the registry is tested by being there."""

import time

import pytest

from modurob import DockingError
from modurob.distributed import Message
from modurob.distributed.transports import TRANSPORTS
from modurob.distributed.transports import network as network_named
from oracles import complains

DEADLINE = 5.0  # [s] for something that takes microseconds
LINKS = [(("a", "out"), ("b", "in")), (("b", "out"), ("c", "in"))]

every = pytest.mark.parametrize("name", TRANSPORTS)


@pytest.fixture
def network(name):
    transport = network_named(name, LINKS)
    yield transport
    transport.close()


def received(transport, module, number):
    """The messages of a module, as soon as there are so many."""
    found, end = [], time.monotonic() + DEADLINE
    while len(found) < number and time.monotonic() < end:
        transport.tick()
        found += transport.receive(module)
    return found


@every
def test_a_message_comes_in_at_the_port_that_is_plugged_to_where_it_went_out(network):
    network.send("a", [Message("out", b"hello")])
    network.send("b", [Message("in", b"back"), Message("out", b"on")])
    assert received(network, "a", 1) == [Message("out", b"back")]
    assert received(network, "b", 1) == [Message("in", b"hello")]
    assert received(network, "c", 1) == [Message("in", b"on")]


@every
def test_messages_of_a_link_keep_their_order_and_every_byte(network):
    payloads = [bytes([k, 0, 255 - k]) * k for k in range(50)]
    network.send("a", [Message("out", payload) for payload in payloads])
    assert received(network, "b", 50) == [Message("in", payload) for payload in payloads]
    counts = network.counts
    assert (counts.sent, counts.delivered, counts.lost) == (50, 50, 0)
    assert counts.bytes == sum(map(len, payloads))


@every
def test_a_message_is_received_once(network):
    network.send("a", [Message("out", b"x")])
    assert received(network, "b", 1)
    network.tick()
    assert network.receive("b") == []


@every
def test_what_goes_into_an_open_port_is_lost(network):
    network.send("a", [Message("in", b"x")])
    assert network.counts.lost == 1
    network.tick()
    assert not any(network.receive(module) for module in "abc")


@every
@pytest.mark.parametrize("what", ["b", ("b", "in")])
def test_nothing_passes_an_unplugged_link(network, what):
    network.unplug(what)
    network.send("a", [Message("out", b"x")])
    network.tick()
    assert network.receive("b") == []
    network.plug(("a", "out"), ("b", "in"))
    network.send("a", [Message("out", b"y")])
    assert received(network, "b", 1) == [Message("in", b"y")]


@every
def test_only_the_link_between_two_modules_is_unplugged(network):
    network.unplug("b", "c")
    network.send("b", [Message("in", b"x"), Message("out", b"y")])
    assert received(network, "a", 1) == [Message("out", b"x")]
    assert network.receive("c") == []


@every
def test_a_dead_module_neither_sends_nor_receives_until_it_is_revived(network):
    network.kill("b")
    network.send("a", [Message("out", b"lost")])
    network.send("b", [Message("out", b"never")])
    network.tick()
    assert network.receive("b") == network.receive("c") == []
    network.revive("b")
    network.send("a", [Message("out", b"x")])
    assert received(network, "b", 1) == [Message("in", b"x")]


@every
def test_a_port_holds_one_link(network):
    with complains(DockingError, "out", "'a'"):
        network.plug(("a", "out"), ("d", "in"))
    with pytest.raises(DockingError):
        network.plug(("d", "in"), ("d", "in"))


@every
def test_unplugging_what_is_not_plugged_is_an_error(network):
    with complains(DockingError, "('a', 'in')"):
        network.unplug(("a", "in"))
    with complains(DockingError, "into c"):
        network.unplug("a", "c")
