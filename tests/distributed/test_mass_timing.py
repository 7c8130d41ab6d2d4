"""Times of the mass network: when a module sends again, gives a neighbor up, and takes it back."""

import math
from dataclasses import replace

import numpy as np
import pytest

from modurob import catalog, examples
from modurob.distributed import MassNetwork
from modurob.distributed.mass import MassAgent
from modurob.distributed.mass.state import decode, encode

KIND = catalog["backbone"]
MASS = KIND.mass
A_LITTLE = 1e-9  # [s]


class Pair:
    """Two modules, whose messages are carried by hand."""

    def __init__(self, **options):
        self.agent, self.rng = MassAgent(KIND, **options), np.random.default_rng(0)
        self.states = [self.agent.started({port: 0}, self.rng) for port in ("3", "4")]

    def step(self, module, now, *payloads):
        port = ("3", "4")[module]
        self.states[module], outbox = self.agent.step(
            self.states[module], [(port, payload) for payload in payloads], now
        )
        return [message.payload for message in outbox]

    def settled(self):
        """Both know the whole at 0 s, and nothing is left to be said."""
        boxes = [self.step(0, 0.0), self.step(1, 0.0)]
        while any(boxes):
            boxes = [self.step(0, 0.0, *boxes[1]), self.step(1, 0.0, *boxes[0])]
        return self

    def mass(self, module):
        return self.agent.view(self.states[module]).total[3, 3]

    def wake(self, module):
        return self.agent.wake(self.states[module])


def has_update(payloads):
    return [bool(decode(payload).update) for payload in payloads]


def test_both_know_the_whole_and_sleep():
    pair = Pair().settled()
    assert [pair.mass(k) for k in (0, 1)] == pytest.approx([2 * MASS] * 2)
    assert [pair.wake(k) for k in (0, 1)] == [math.inf] * 2


def test_an_update_is_sent_again_until_it_is_acknowledged():
    pair = Pair(resend=0.02, give_up=0.3)
    assert pair.wake(0) == -math.inf  # at once
    assert has_update(pair.step(0, 1.0)) == [True]
    assert pair.wake(0) == pytest.approx(1.02)
    assert pair.step(0, 1.02 - A_LITTLE) == []
    (again,) = pair.step(0, 1.02 + A_LITTLE)
    assert decode(again).update
    (answer,) = pair.step(1, 1.03, again)
    pair.step(0, 1.04, answer)
    assert pair.wake(0) == math.inf
    assert pair.step(0, 1.1) == []


def test_a_neighbor_that_does_not_answer_is_given_up_and_taken_back():
    pair = Pair(resend=0.02, give_up=0.3).settled()
    moved = np.full(len(pair.states[0].q), 0.1)
    pair.states[0] = pair.agent.sensed(pair.states[0], moved, moved)
    (news,) = pair.step(0, 1.0)
    pair.step(0, 1.3 - A_LITTLE)
    assert not pair.states[0].links["3"].gone
    assert pair.mass(0) == pytest.approx(2 * MASS)
    assert pair.wake(0) <= 1.3
    pair.step(0, 1.3)
    assert pair.states[0].links["3"].gone
    assert pair.mass(0) == pytest.approx(MASS)
    assert pair.wake(0) == pytest.approx(1.6)
    asked = [t for t in np.arange(1.31, 2.0, 0.01) if pair.step(0, t)]
    assert np.diff(asked) == pytest.approx(0.3, abs=0.011)  # now rarely
    (answer,) = pair.step(1, 2.0, news)
    pair.step(0, 2.0, answer)
    assert not pair.states[0].links["3"].gone
    assert pair.mass(0) == pytest.approx(2 * MASS)


def test_a_module_wakes_to_give_a_neighbor_up_before_it_sends_again():
    pair = Pair(resend=1.0, give_up=0.3)
    pair.step(0, 2.0)
    assert pair.wake(0) == pytest.approx(2.3)


def test_an_update_that_cannot_be_read_is_neither_taken_nor_acknowledged():
    pair = Pair().settled()
    moved = np.full(len(pair.states[0].q), 0.1)
    pair.states[0] = pair.agent.sensed(pair.states[0], moved, moved)
    (news,) = pair.step(0, 1.0)
    packet = decode(news)
    heard = pair.states[1].links["4"].heard
    assert pair.step(1, 1.0, encode(packet._replace(update=packet.update[:-1]))) == []
    assert pair.states[1].links["4"].heard is heard
    assert len(pair.step(1, 1.0, news)) == 1
    assert pair.states[1].links["4"].heard is not heard


def test_a_module_keeps_its_ticket_while_it_touches_the_ground():
    agent = MassAgent(KIND)
    state = agent.started({}, np.random.default_rng(0))
    assert agent.lifted(state).ticket == (0, 0)
    first = agent.in_contact(state, np.zeros((1, 7)), np.eye(4))
    redrawn = replace(first, ticket=(2, 5))  # after a tie
    again = agent.in_contact(redrawn, np.ones((1, 7)), np.eye(4), 1)
    assert (again.ticket, again.contact_body, again.announced) == ((2, 5), 1, False)
    assert agent.lifted(again).ticket == (0, 0)


def test_a_neighbor_that_restarts_is_told_again():
    pair = Pair().settled()
    pair.states[1] = pair.agent.started({"4": 0}, pair.rng)
    assert pair.mass(1) == pytest.approx(MASS)
    (hello,) = pair.step(1, 1.0)
    box = pair.step(0, 1.0, hello)
    t = 1.0
    while pair.mass(1) < 1.5 * MASS and t < 1.1:
        t += 0.005
        box = pair.step(0, t, *pair.step(1, t, *box))
    assert pair.mass(1) == pytest.approx(2 * MASS)


def test_a_heartbeat_repeats_the_update_of_a_silent_module():
    pair = Pair(heartbeat=0.5).settled()
    assert pair.wake(0) == pytest.approx(0.5)
    assert pair.step(0, 0.5 - A_LITTLE) == []
    (beat,) = pair.step(0, 0.5)
    assert decode(beat).update
    (answer,) = pair.step(1, 0.5, beat)
    pair.step(0, 0.5, answer)
    assert pair.wake(0) == pytest.approx(1.0)


def test_numbers_of_starts_are_drawn_from_63_bits():
    agent, rng = MassAgent(KIND), np.random.default_rng(0)
    boots = [agent.started({}, rng).boot for _ in range(100)]
    assert len({*boots}) == 100
    assert 2**62 < max(boots) < 2**63
    tickets = [agent.in_contact(agent.started({}, rng), np.zeros((1, 7)), np.eye(4)).ticket
               for _ in range(100)]  # fmt: skip
    assert {draw for draw, _ in tickets} == {1}
    assert 2**62 < max(number for _, number in tickets) < 2**63


def test_reading_the_same_joints_again_is_no_news():
    pair = Pair().settled()
    state = pair.states[0]
    assert pair.agent.sensed(state, state.q, state.v) is state
    other = pair.agent.sensed(state, state.q, state.v, ~state.free)
    assert not other.announced
    assert np.array_equal(other.free, ~state.free)


# -- networks --------------------------------------------------------------------------------------


def test_a_rebooted_module_learns_the_whole_again():
    organism = examples.snake(4)
    network = MassNetwork(organism)
    network.settle()
    for module in ("m1", "m3"):
        network.reboot(module)
        assert network.view(module).total[3, 3] == pytest.approx(MASS)
        network.settle()
        for name in organism:
            assert network.view(name).total[3, 3] == pytest.approx(4 * MASS)


def test_a_module_that_stops_or_reboots_does_not_send_what_it_was_about_to_send():
    for stop in ("freeze", "kill", "reboot"):
        network = MassNetwork(examples.snake(2))
        assert network.round() == 2  # now both are about to answer
        getattr(network, stop)("m1")
        assert network.round() == 1


def test_a_rebooted_module_keeps_its_measurements_and_its_contact_and_runs_again():
    network = MassNetwork(examples.snake(2))
    network.settle()
    names, pose = network.joint_names, np.diag([-1.0, -1, 1, 1])
    network.measure(dict.fromkeys(names, 0.3), dict.fromkeys(names, 2.0))
    network.touch("m1", [0.1, 0, 0], pose, body=KIND.bodies[-1].name)
    old = network.states["m1"]
    network.freeze("m1")
    network.reboot("m1")
    new = network.states["m1"]
    assert new.boot != old.boot
    assert (new.q.tolist(), new.v.tolist()) == ([0.3], [2.0])
    assert new.contacts.tolist() == old.contacts.tolist()
    assert new.pose.tolist() == pose.tolist()
    assert new.contact_body == len(KIND.bodies) - 1 > 0
    assert network.settle() < 10
    assert network.leader == "m1"
    assert network.view("m0").total[3, 3] == pytest.approx(2 * MASS)


def test_what_is_undocked_is_told_to_the_other_neighbors():
    network = MassNetwork(organism := examples.snake(3))
    network.settle()
    state, port = network.states["m1"], str(organism.docking("m2").port)
    network.states["m1"] = network.agents["m1"].unplugged(state, port)
    network.settle()
    assert [network.total(f"m{k}").mass for k in (0, 1)] == pytest.approx([2 * MASS] * 2)


def test_rounds_messages_and_bytes_are_counted():
    """Two modules: an update each, then an answer each."""
    network = MassNetwork(examples.snake(2), period=0.002)
    assert network.now == 0
    assert network.round() == 2
    assert (network.rounds, network.news, network.confirmations) == (1, 2, 0)
    assert network.round(2) == 2
    assert (network.rounds, network.news, network.confirmations) == (3, 2, 2)
    assert network.now == pytest.approx(0.006)
    assert network.quiet
    assert network.settle() == 0
    header, update = 1 + 2 * 12, 1 + 8 * 10  # flags, two receipts; flags, ten numbers
    assert network.bytes == 4 * header + 2 * update


def test_settling_ends_after_the_rounds_that_it_was_given():
    network = MassNetwork(examples.snake(6))
    assert network.settle(2) == 2
    assert network.rounds == 2
    assert 0 < network.settle() < 10
