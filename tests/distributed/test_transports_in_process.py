"""The network in one process: chance that is counted, and always the same."""

import math

import numpy as np
import pytest

from modurob import DockingError, StateError
from modurob.distributed import Counts, InProcess, Message, play_round
from oracles import complains

LINK = (("a", "out"), ("b", "in"))
MANY = 4000
SIGMAS = 4.0  # how far a count of that many draws may lie from its mean


def network(seed=0, **options):
    return InProcess([LINK], rng=np.random.default_rng(seed), **options)


def sent(transport, number, rounds=20):
    """Numbers that came in, in order, with the round of each."""
    transport.send("a", [Message("out", k.to_bytes(4, "big")) for k in range(number)])
    found = []
    for k in range(1, rounds):
        transport.tick()
        found += [(int.from_bytes(m.payload, "big"), k) for m in transport.receive("b")]
    return found


def test_what_is_sent_arrives_in_the_next_round_and_not_before():
    transport = InProcess([LINK])
    transport.send("a", [Message("out", b"x")])
    assert transport.receive("b") == []
    transport.tick()
    assert transport.receive("b") == [Message("in", b"x")]


@pytest.mark.parametrize(("what", "counter"), [("loss", "lost"), ("duplication", "duplicated")])
def test_chances_are_kept(what, counter):
    transport = network(**{what: 0.3})
    found = sent(transport, MANY)
    happened = getattr(transport.counts, counter)
    spread = SIGMAS * math.sqrt(MANY * 0.3 * 0.7)
    assert abs(happened - 0.3 * MANY) < spread
    assert len(found) == MANY + (happened if what == "duplication" else -happened)


def test_every_message_is_delivered_or_lost():
    transport = network(loss=0.2, duplication=0.3, reordering=0.5, delay=(1, 6))
    sent(transport, MANY)
    counts = transport.counts
    assert counts.sent == MANY
    assert counts.sent + counts.duplicated == counts.delivered + counts.lost
    assert counts.bytes == 4 * MANY


def test_equal_seeds_give_equal_runs_and_others_do_not():
    options = {"loss": 0.2, "duplication": 0.3, "reordering": 0.5, "delay": (0, 4)}
    assert sent(network(7, **options), 200) == sent(network(7, **options), 200)
    assert sent(network(7, **options), 200) != sent(network(8, **options), 200)


def test_delays_fill_their_range():
    rounds = {k for _, k in sent(network(delay=(2, 5)), 500)}
    assert rounds == {3, 4, 5, 6}
    assert {k for _, k in sent(network(delay=(4, 4)), 10)} == {5}


def test_reordering_changes_the_order_and_nothing_else():
    numbers = [n for n, _ in sent(network(reordering=0.5), 100)]
    assert numbers != sorted(numbers)
    assert sorted(numbers) == list(range(100))


@pytest.mark.parametrize("cut", [lambda t: t.unplug("a"), lambda t: t.kill("b")])
def test_what_is_under_way_is_lost_when_the_link_or_its_end_goes(cut):
    transport = network(delay=(3, 3))
    transport.send("a", [Message("out", b"x")])
    transport.tick()
    cut(transport)
    for _ in range(5):
        transport.tick()
    assert transport.receive("b") == []
    assert transport.counts == Counts(sent=1, lost=1, bytes=1)


def test_a_message_does_not_arrive_at_whoever_is_plugged_in_meanwhile():
    transport = network(delay=(3, 3))
    transport.send("a", [Message("out", b"x")])
    transport.unplug("a")
    transport.plug(("a", "out"), ("c", "in"))
    for _ in range(5):
        transport.tick()
    assert transport.receive("b") == transport.receive("c") == []


def test_links_are_listed_once():
    transport = InProcess([LINK, (("b", "out"), ("c", "in"))])
    assert transport.links() == [LINK, (("b", "out"), ("c", "in"))]


def test_links_are_cut_by_their_ends_or_modules():
    def made():
        return InProcess([LINK, (("a", "2"), ("c", "in")), (("b", "2"), ("c", "2"))])

    for cut, left in (
        (("a",), [2]), (("a", "c"), [0, 2]), (("c", "a"), [0, 2]), ((("b", "2"),), [0, 1]),
        ((("c", "2"), "b"), [0, 1]), (("b", ("a", "out")), [1, 2]),
    ):  # fmt: skip
        transport = made()
        links = transport.links()
        gone = transport.unplug(*cut)
        assert transport.links() == [links[k] for k in left]
        assert {*gone} == {end for k in {0, 1, 2} - {*left} for end in links[k]}
    with complains(DockingError, "a is not plugged into ('c', '2')"):
        made().unplug("a", ("c", "2"))
    with complains(DockingError, "z is not plugged"):
        made().unplug("z")


def test_a_port_holds_one_other_port():
    transport = InProcess([LINK])
    for ends in ((("c", "in"), ("a", "out")), (("b", "in"), ("c", "in"))):
        with complains(DockingError, "already holds port"):
            transport.plug(*ends)
        assert transport.links() == [LINK]
    with complains(DockingError, "port in of 'c' cannot be plugged into itself"):
        transport.plug(("c", "in"), ("c", "in"))
    for end in (("a",), ("a", 1), ["a", "out"]):
        with complains(StateError, "an end is (module, port) in two texts"):
            transport.plug(end, ("c", "in"))


def test_a_dead_module_neither_sends_nor_receives_until_it_is_revived():
    transport = InProcess([LINK])
    transport.send("a", [Message("out", b"x")])
    transport.tick()
    transport.kill("b")  # with a message in its inbox
    transport.send("b", [Message("in", b"y")])
    transport.tick()
    assert transport.receive("a") == transport.receive("b") == []
    assert transport.counts == Counts(sent=2, delivered=1, lost=2, bytes=2)
    transport.revive("b")
    transport.send("b", [Message("in", b"z")])
    transport.tick()
    assert transport.receive("a") == [Message("out", b"z")]
    transport.close()
    assert transport.links() == []


@pytest.mark.parametrize(
    ("options", "pieces"),
    [
        ({"loss": 1.5}, ("loss", "1.5", "between 0 and 1")),
        ({"loss": math.nan}, ("loss", "nan")),
        ({"reordering": -0.1}, ("reordering", "-0.1")),
        ({"duplication": True}, ("duplication", "True")),
        ({"delay": (3, 1)}, ("delay", "(3, 1)")),
        ({"delay": 2}, ("delay", "2")),
        ({"loss": 0.1, "rng": None}, ("rng",)),
        ({"links": [("a", "b")]}, ("(module, port)", "'a'")),
    ],
)
def test_bad_settings_are_named(options, pieces):
    options = {"rng": np.random.default_rng(0)} | options
    with complains(StateError, *pieces):
        InProcess(**options)


class Counter:
    """Counts what comes in and passes it on."""

    def step(self, state, inbox, now):
        return state + len(inbox), [Message("out", m.payload) for m in inbox]


def test_agents_step_in_rounds():
    links = [((f"m{k}", "out"), (f"m{k + 1}", "in")) for k in range(5)]
    transport, agents = InProcess(links), {f"m{k}": Counter() for k in range(6)}
    states = dict.fromkeys(agents, 0)
    transport.send("m0", [Message("out", b"x")])
    transport.tick()
    for now in range(5):
        assert states["m5"] == 0
        play_round(transport, agents, states, now)
    assert states == {"m0": 0, "m1": 1, "m2": 1, "m3": 1, "m4": 1, "m5": 1}
