"""The sockets: they listen to this machine alone, and to those who are plugged in."""

import random
import socket
import time
from types import SimpleNamespace

import pytest

from modurob import StateError
from modurob.checks import is_loopback
from modurob.distributed import Message
from modurob.distributed.transports import Udp, base, network, udp
from modurob.distributed.transports.base import LARGEST_PAYLOAD
from oracles import complains

DEADLINE = 5.0  # [s] for something that takes microseconds
KEY = bytes(range(16))


@pytest.fixture
def pair():
    one, other = Udp(key=KEY), Udp(key=KEY)
    introduce(one, other)
    yield one, other
    one.close()
    other.close()


def introduce(one, other):
    """Plug two sockets together, and wait until they know each other."""
    one.plug("out", other.address, "in")
    other.plug("in", one.address, "out")
    until(lambda: one.read() or other.read() or (one.is_up("out") and other.is_up("in")))


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

    def sendto(self, data, address):
        pass

    def recvfrom(self, size):
        if not self.datagrams:
            raise BlockingIOError
        data, source = self.datagrams.pop(0)
        return data[:size], source


def test_a_socket_is_bound_to_the_loopback(pair):
    for endpoint in pair:
        assert is_loopback(endpoint.address[0])
        assert endpoint.address[1] > 0


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.7"])
@pytest.mark.parametrize(
    ("key", "given"), [(None, "got none"), (b"hush" * 3, "12 bytes"), ("hush" * 9, "str")]
)
def test_a_socket_without_a_proper_key_is_refused_and_the_key_is_not_shown(host, key, given):
    with complains(StateError, "key is at least 16 secret bytes", given) as complaint:
        Udp(host, key=key)
    assert "hush" not in complaint.message


@pytest.mark.parametrize("host", ["0.0.0.0", "", "192.0.2.7", "::", "none.invalid", ".."])
def test_a_host_is_the_address_of_one_interface_of_this_machine(host):
    with complains(StateError, repr(host), "address of one interface"):
        Udp(host, key=KEY)


class Recorded(socket.socket):
    """A socket that keeps its options."""

    made = ()

    def __init__(self, *given):
        super().__init__(*given)
        self.options = []
        Recorded.made = (*Recorded.made, self)

    def setsockopt(self, *option):
        self.options.append(option)


def test_a_socket_asks_for_room_does_not_block_and_is_closed_if_it_cannot_be_bound(monkeypatch):
    names = ("AF_INET", "SOCK_DGRAM", "SOL_SOCKET", "SO_RCVBUF")
    system = {name: getattr(socket, name) for name in names}
    monkeypatch.setattr(udp, "socket", SimpleNamespace(socket=Recorded, **system))
    monkeypatch.setattr(Recorded, "made", ())
    endpoint = Udp(key=KEY)
    (sock,) = Recorded.made
    assert sock.options == [(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**20)]
    assert not sock.getblocking()
    endpoint.close()
    for host in ("192.0.2.7", "0.0.0.0"):
        with complains(StateError, "address of one interface"):
            Udp(host, key=KEY)
    assert [each.fileno() for each in Recorded.made] == [-1] * 3


def test_a_socket_on_the_loopback_is_not_plugged_into_another_machine(pair):
    with complains(StateError, "192.0.2.7", "another machine", "host="):
        pair[0].plug("in", ("192.0.2.7", 4711), "out")


def test_datagrams_of_other_machines_are_refused_and_counted():
    endpoint = Udp(key=KEY, sock=FakeSocket((b"\x02inx", ("192.0.2.7", 4711))))
    endpoint.plug("in", ("127.0.0.1", 4711), "out")
    assert endpoint.receive() == []
    assert endpoint.refused == {"stranger": 1}


def test_garbage_strangers_and_oversized_datagrams_are_ignored_and_counted(pair):
    one, other = pair
    garbage = [b"", b"\x00", b"\xff", b"\x09in", b"\x03in", bytes(range(65, 200))]
    thrown(other.address, *garbage, b"\x02inforged", b"\x04nonex", b"\x02in")
    thrown(other.address, b"\x02in" + bytes(LARGEST_PAYLOAD + 110), bytes(60_000))
    one.send([Message("out", b"true")])
    found = []
    until(lambda: found.extend(other.receive()) or found)
    assert found == [Message("in", b"true")]
    assert other.refused == {"garbage": 6, "stranger": 3, "oversized": 2}


def test_a_neighbour_can_speak_only_through_the_port_it_is_plugged_into(pair):
    one, other = pair
    one.plug("out", other.address, "elsewhere")
    until(lambda: other.receive() or other.refused)
    assert other.refused == {"stranger": 1}


def test_loss_for_trials_is_counted(pair):
    one, _ = pair
    lossy = Udp(key=KEY, loss=1.0, rng=random.Random(0))
    introduce(one, lossy)
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
        Udp(key=KEY, loss=0.5)


class Broken:
    """A socket whose calls fail as those of the system do."""

    def __init__(self, sock, failures):
        self.sock, self.failures = sock, failures

    def __getattr__(self, name):
        return getattr(self.sock, name)

    def sendto(self, data, address):
        raise OSError("no buffer space available")

    def recvfrom(self, size):
        if self.failures:
            self.failures -= 1
            raise ConnectionRefusedError
        return self.sock.recvfrom(size)


def test_what_the_system_does_not_send_is_lost_and_counted(pair):
    one, _ = pair
    one._socket = Broken(one._socket, 0)
    before = one.counts.lost
    one.send([Message("out", b"a"), Message("out", b"b")])
    assert one.counts.lost == before + 2


def test_errors_of_earlier_datagrams_do_not_hide_those_that_arrived(pair):
    one, other = pair
    one.send([Message("out", b"hello")])
    other._socket = Broken(other._socket, 3)
    until(lambda: Message("in", b"hello") in other.receive())


def test_the_longest_label_and_payload_fit_into_a_datagram(pair):
    one, other = pair
    port = "x" * 64
    one.plug("out", other.address, port)
    other.plug(port, one.address, "out")
    until(lambda: one.read() or other.read() or (one.is_up("out") and other.is_up(port)))
    sent = Message("out", bytes(LARGEST_PAYLOAD))
    one.send([sent])
    found = []
    until(lambda: found.extend(other.receive()) or found)
    assert found == [Message(port, sent.payload)]
    with complains(StateError, "a payload has up to 4096 bytes, got 4097"):
        one.send([Message("out", bytes(LARGEST_PAYLOAD + 1))])


def test_what_a_neighbor_sends_in_another_form_is_garbage(pair):
    one, other = pair
    plug = one._plugs["out"]
    one._put(plug, plug.link.seal(b"\xff\xff of a length that is not there"))
    until(lambda: other.receive() or other.refused)
    assert other.refused == {"garbage": 1}


def test_payloads_share_a_datagram_up_to_its_size():
    half = bytes(LARGEST_PAYLOAD // 2 - 1)  # with its length: half of a datagram
    found = [*base._contents([half, half, b"more", half, b"x", bytes(LARGEST_PAYLOAD)])]
    assert [count for _, count in found] == [2, 3, 1]
    assert [len(content) for content, _ in found] == [4098, 2049 + 6 + 3, 4098]
    assert [base._payloads(content) for content, _ in found] == [
        [half, half], [b"more", half, b"x"], [bytes(LARGEST_PAYLOAD)]
    ]  # fmt: skip
    assert not [*base._contents([])]


LINK = (("a", "out"), ("b", "in"))


@pytest.fixture
def net():
    made = network("udp", [LINK, (("b", "out"), ("c", "in"))])
    yield made
    made.close()


def test_a_module_that_was_dead_has_nothing_of_what_was_sent_to_it(net):
    net.kill("b")
    net.send("b", [Message("in", b"from the dead")])
    net.send("a", [Message("out", b"old")])
    until(lambda: base._readable([net.endpoint("b")], 0.01))
    assert net.receive("b") == []
    net.revive("b")
    net.send("a", [Message("out", b"new")])
    found = []
    until(lambda: found.extend(net.receive("b")) or found)
    assert found == [Message("in", b"new")]
    assert net.receive("a") == []
    assert vars(net.counts) == {
        "sent": 2, "delivered": 2, "lost": 0, "duplicated": 0, "bytes": 6
    }  # fmt: skip


def test_a_round_waits_for_those_who_live(net, monkeypatch):
    waited = []
    monkeypatch.setattr(base, "_readable", lambda *given: waited.append(given))
    net.kill("b")
    net.tick()
    net.tick(0.5)
    alive = [net.endpoint("a"), net.endpoint("c")]
    assert waited == [(alive, 0.01), (alive, 0.5)]


def test_what_is_unplugged_in_a_network_is_so_at_its_sockets(net):
    assert net.unplug("a") == [*LINK]
    assert not net.endpoint("a").is_up("out")
    assert not net.endpoint("b").is_up("in")
    assert net.endpoint("b").is_up("out")
    assert len(net.links()) == 1
    net.send("a", [Message("out", b"x")])
    assert net.counts.lost == 1


def test_sockets_of_a_network_share_a_random_key_unless_one_is_given(net):
    key = net.endpoint("a")._key
    assert key == net.endpoint("c")._key
    assert len(key) == 32
    for options, same in (({}, key), ({"key": KEY}, KEY)):
        other = network("udp", **options)
        assert (other.endpoint("a")._key == same) == bool(options)
        other.close()
