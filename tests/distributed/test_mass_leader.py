"""Who leads: a contest among those on the ground, without names; and the world's frame."""

import numpy as np
import pytest

import modurob as mr
from modurob.distributed import MassNetwork

FEET = ("m0", "m2", "m4", "m7")


def walker(tickets=2**63, seed=0, feet=FEET):
    organism = mr.examples.superbot_tree(4, 2, np.random.default_rng(5))
    model = organism.model("physical")
    network = MassNetwork(organism, rng=np.random.default_rng(seed), tickets=tickets)
    q = model.random_configuration(np.random.default_rng(seed))
    network.measure(q, model=model)
    T = model.forward_kinematics(q)
    for foot in feet:
        network.touch(foot, np.zeros(3), T[model.modules[foot]])
    return network, model, q


def leaders(network):
    return [name for name in network.agents if network.view(name).leads]


def test_one_of_those_on_the_ground_leads_and_everybody_learns_the_world():
    network, model, q = walker()
    network.settle()
    assert len(leaders(network)) == 1
    assert network.leader in FEET
    T = model.forward_kinematics(q)
    for name in network.agents:
        np.testing.assert_allclose(network.view(name).T_wm, T[model.modules[name]], atol=1e-13)
        center = network.total_in_world(name).center
        np.testing.assert_allclose(center, model.center_of_mass(q), atol=1e-13)
        assert len(network.view(name).contacts) == len(FEET)


@pytest.mark.parametrize("tickets", [2, 3])
def test_equal_tickets_are_drawn_again_until_one_is_left(tickets):
    """With two numbers to draw and four on the ground, most contests begin with a tie."""
    for seed in range(6):
        network, *_ = walker(tickets, seed)
        assert network.settle(500) < 500
        assert len(leaders(network)) == 1


def test_when_the_leader_is_lifted_another_one_leads():
    network, *_ = walker()
    network.settle()
    first = network.leader
    network.lift(first)
    network.settle()
    assert network.leader in set(FEET) - {first}
    for foot in FEET:
        network.lift(foot)
    network.settle()
    assert network.leader is None
    with pytest.raises(mr.StateError, match="no module in contact"):
        network.total_in_world("m3")


def test_every_module_can_lead():
    chosen = set()
    for seed in range(12):
        network, *_ = walker(seed=seed)
        network.settle()
        chosen.add(network.leader)
    assert chosen == set(FEET)
