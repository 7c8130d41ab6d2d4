"""Modules that balance with their own programs: equal to lock step, bit for bit; own regions."""

import numpy as np
import pytest

import modurob as mr
from modurob.distributed import BalancingNetwork, Fault, InProcess, balance
from modurob.distributed.balancing.laws import LAWS
from modurob.distributed.balancing.plant import STOPS
from modurob.distributed.balancing.support import stability_region, waypoints
from modurob.distributed.mass.agent import GIVE_UP
from modurob.distributed.mass.base import links_of

MS = 1e-3  # [s] a period of the control loop


def tree(seed, length=5, branches=4):
    return mr.examples.superbot_tree(branches, length, np.random.default_rng(seed))


class LossyRounds(InProcess):
    """Links that lose what lock step loses: a draw for every connector that holds a neighbor."""

    def __init__(self, organism, loss, rng):
        super().__init__()
        self._ends = [end for link in links_of(organism) for end in link]
        self._share, self._draws = loss, rng

    def tick(self):
        drops = self._draws.random(len(self._ends)) < self._share
        lost = {end for end, drop in zip(self._ends, drops, strict=True) if drop}
        for messages in self._in_transit.values():
            messages[:] = [message for message in messages if message.end not in lost]
        super().tick()


def driven(network, duration, at=()):
    """A run of modules with their own programs; `at` has (round, what to do)."""
    events, count, command = dict(at), [0], network.command

    def commanded(t, q, v, reference):
        events.get(count[0], lambda: None)()
        count[0] += 1
        return command(t, q, v, reference)

    network.command = commanded
    return mr.simulate(
        network.plant, network.model.neutral(), None, duration, network, "SemiImplicitEuler",
        dt=MS, stops=STOPS, record=MS,
    )  # fmt: skip


def assert_equal_bits(run, own):
    assert np.abs(run.tau).max() > 0
    np.testing.assert_array_equal(own.tau, run.tau)
    np.testing.assert_array_equal(own.q, run.q)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seed", [1, 2])
def test_modules_with_their_own_programs_have_the_torques_of_lock_step(law, seed):
    organism = tree(seed, 3)
    run = balance(organism, law, duration=40 * MS, record=MS)
    assert_equal_bits(run, driven(BalancingNetwork(organism, law), 40 * MS))


@pytest.mark.parametrize("law", ["momentum", "shared"])
@pytest.mark.parametrize(
    "kinds",
    [("superbot", "superbot_light"), ("chen_link", "chen_prismatic", "chen_revolute")],
    ids=["two kinds", "joints that slide, and modules without any"],
)
def test_modules_of_several_kinds_have_the_torques_of_lock_step(law, kinds):
    organism = mr.Organism.random(list(kinds), 8, np.random.default_rng(1))
    run = balance(organism, law, duration=20 * MS, record=MS)
    assert_equal_bits(run, driven(BalancingNetwork(organism, law), 20 * MS))


def test_twenty_modules_have_the_torques_of_lock_step_after_all_know_all():
    organism = tree(3)
    run = balance(organism, duration=30 * MS, record=MS)
    own = driven(BalancingNetwork(organism), 30 * MS)
    assert np.isfinite(run.estimates[-1]).all()
    assert_equal_bits(run, own)


@pytest.mark.parametrize("law", ["momentum", "shared"])
def test_lost_and_late_messages_change_both_alike(law):
    organism = tree(2, 2)
    run = balance(
        organism, law, duration=50 * MS, record=MS, loss=0.4, rng=np.random.default_rng(5)
    )
    lossy = LossyRounds(organism, 0.4, np.random.default_rng(5))
    # in lock step every round repeats what was not acknowledged
    network = BalancingNetwork(organism, law, transport=lossy, resend=MS / 2)
    assert_equal_bits(run, driven(network, 50 * MS))
    late = balance(organism, law, duration=50 * MS, record=MS, delay=3)
    links = InProcess(delay=(3, 3))
    own = driven(BalancingNetwork(organism, law, transport=links), 50 * MS)
    assert_equal_bits(late, own)
    assert (late.tau != run.tau).any()


def test_stuck_joints_weak_drives_and_moving_targets_change_both_alike():
    organism = tree(1, 2)
    target = waypoints([0.01, 0.04], [[0.02, 0.0], [0.0, 0.03]])
    options = {
        "target": target, "stuck": ["m1.pitch"], "drive": mr.distributed.GearedDrive(0.2, 0.05)
    }  # fmt: skip
    run = balance(organism, duration=50 * MS, record=MS, **options)
    own = driven(BalancingNetwork(organism, **options), 50 * MS)
    assert np.abs(run.tau).max() == 0.05
    assert_equal_bits(run, own)


@pytest.mark.parametrize("kind", ["die", "freeze"])
def test_a_module_that_stops_changes_both_alike_until_the_others_have_given_it_up(kind):
    organism = tree(2, 2, 2)
    run = balance(organism, duration=0.32, record=MS, faults=[Fault(0.02, "m1", kind)])
    network = BalancingNetwork(organism)
    stop = {"die": network.kill, "freeze": network.freeze}[kind]
    own = driven(network, 0.32, {20: lambda: stop("m1")})
    assert run.t[-1] > 0.02 + GIVE_UP + 0.04
    assert network.total("m0").mass < 0.9 * run.model.mass.sum()
    assert_equal_bits(run, own)


def test_every_module_computes_the_region_of_contacts_that_it_was_told():
    """Lock step is given the region; each module has nothing but its neighbors' messages."""
    organism = tree(2, 2)
    up, tilted = [0, 0, 1, 0.5], [0, 0.28, 0.96, 0.5]
    feet = np.array(
        [[0.02, 0.0, 0.0, *up], [-0.01, 0.02, 0.0, *up], [-0.01, -0.02, 0.005, *tilted]]
    )
    region = stability_region(feet[np.lexsort(feet.T[::-1])])
    run = balance(organism, duration=60 * MS, record=MS, target=region.keep_inside(0.002))
    network = BalancingNetwork(organism, margin=0.002)
    R, p = organism.base_pose[:3, :3], organism.base_pose[:3, 3]
    own_frame = np.column_stack([(feet[:, :3] - p) @ R, feet[:, 3:6] @ R, feet[:, 6]])
    network.touch("m0", own_frame, organism.base_pose)
    own = driven(network, 60 * MS)
    regions = [network.agents[name].region(network.view(name)) for name in organism]
    assert len(set(map(id, regions))) == 1  # computed once, from equal numbers
    np.testing.assert_array_equal(regions[0].corners, region.shrunk(0.002).corners)
    assert_equal_bits(run, own)


def test_contacts_of_several_modules_make_one_region_at_every_module():
    """Two feet on level ground: a segment, wherever the leader is."""
    organism = tree(2, 2)
    model = organism.model("physical")
    network = BalancingNetwork(organism)
    q = np.full(model.nv, 0.2)
    T = model.forward_kinematics(q)[model.modules["m3"]]
    foot = np.array([0.15, 0.1, 0.0])
    network.touch("m3", T[:3, :3].T @ (foot - T[:3, 3]), T)
    network.measure(q, model=model)
    assert network.settle() < 200
    for name in organism:
        region = network.agents[name].region(network.view(name))
        np.testing.assert_allclose(region.corners, [[0, 0], [0.15, 0.1]], atol=1e-8)
    network.lift("m3")
    network.settle()
    for name in organism:
        region = network.agents[name].region(network.view(name))
        np.testing.assert_allclose(region.corners, [[0, 0]], atol=1e-8)


def test_where_walls_hold_any_center_a_module_leaves_it_where_it_is():
    organism = tree(2, 1)
    network = BalancingNetwork(organism)
    R = organism.base_pose[:3, :3]
    walls = np.array([[-0.1, 0, 0, 1, 0, 0, 1.0], [0.1, 0, 0, -1, 0, 0, 1.0]])
    own = np.column_stack([walls[:, :3] @ R, walls[:, 3:6] @ R, walls[:, 6]])
    network.touch("m0", own, organism.base_pose)
    q, v = network.model.neutral(), np.zeros(network.model.nv)
    for k in range(20):
        tau = network.command(k * MS, q, v, None)
    assert network.agents["m1"].region(network.view("m1")) is None
    # nothing pulls: the drives hold the load
    np.testing.assert_allclose(tau, network.model.gravity_torque(q), atol=1e-12)


@pytest.mark.parametrize("law", ["default", "shared"])
def test_steps_and_torques_leave_the_given_state_as_it_is(law):
    organism = tree(2, 1)
    network = BalancingNetwork(organism, law)
    q = np.full(network.model.nv, 0.1)
    for k in range(7):
        network.command(k * MS, q + 0.01 * k, q, None)
    agent, state = network.agents["m1"], network.states["m1"]
    first = [agent.driven(state)[1] for _ in range(2)]
    np.testing.assert_array_equal(*first)
    while state.tick % 5 != 4:
        state = agent.sensed(state, state.q, state.v)
    state = agent.sensed(state, state.q + 0.3, state.v)  # the tick of a decision
    before = agent.driven(state)[1]
    decided = [agent.step(state, [], 0.01)[0] for _ in range(2)]
    np.testing.assert_array_equal(*(agent.driven(new)[1] for new in decided))
    np.testing.assert_array_equal(agent.driven(state)[1], before)
    assert (agent.driven(decided[0])[1] != before).any()
