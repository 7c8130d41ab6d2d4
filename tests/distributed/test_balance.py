"""Balancing: what a joint's decision does to the whole, and whether trees get there."""

from functools import partial

import numpy as np
import pytest

import modurob as mr
from modurob.distributed import Fault, GearedDrive, LockStep, balance
from modurob.distributed.balancing import laws
from modurob.distributed.balancing.faults import FaultyLinks
from modurob.distributed.balancing.knowledge import InputReader
from modurob.distributed.balancing.laws import Joints, Shared, displacements
from modurob.distributed.balancing.plant import STOPS, with_drives
from modurob.distributed.mass.agent import GIVE_UP
from modurob.stepping import EquationOfMotion, SemiImplicitEuler, StepSettings
from modurob.stepping.stops import StopForces

# the first four random trees whose center starts more than half a width off
TREES = (1, 2, 3, 6)


def tree(seed, length=5):
    return mr.examples.superbot_tree(4, length, np.random.default_rng(seed))


def informed(organism, seed=0):
    """What everybody knows at a random configuration, once the news has gone round."""
    model, network = organism.model("physical"), LockStep(organism)
    q = 0.6 * model.random_configuration(np.random.default_rng(seed))
    values = dict(zip(model.joint_names, q, strict=True))
    network.measure(np.array([values[name] for name in network.joint_names]))
    for _ in range(40):
        network.round()
    order = np.array([model.joint_names.index(name) for name in network.joint_names])
    n = len(order)
    here = Joints(q[order], np.zeros(n), model.lower[order], model.upper[order], np.zeros(n))
    return model, q, order, InputReader(network).read(), here


def test_four_trees_get_below_a_tenth_with_the_momentum_law_and_stay_there_with_the_shared_one():
    for seed in TREES:
        organism = tree(seed)
        assert balance(organism, "momentum", duration=0.4).first_reached is not None
        run = balance(organism, "shared", duration=0.5)
        assert run.distance[0] > 0.5
        assert run.reached is not None


def test_each_displacement_is_the_best_that_its_joint_alone_can_do():
    """The model, which knows everything, moves one joint at a time over its whole range."""
    organism = tree(2, 3)  # of 0.6 kg: a mass of 1 would hide a missing division
    model, q, order, known, here = informed(organism)
    target = np.array([0.03, -0.02])
    moves = displacements(known, here, np.tile(target, (len(order), 1)))
    for k in range(0, len(order), 5):
        angles = np.linspace(here.lower[k], here.upper[k], 400)
        tried = np.tile(q, (401, 1))
        tried[:-1, order[k]] = angles
        tried[-1, order[k]] = q[order[k]] + moves[k]
        away = np.linalg.norm(model.center_of_mass(tried)[:, :2] - target, axis=-1)
        assert away[-1] <= away[:-1].min() + 1e-12
        assert here.lower[k] - 1e-12 <= q[order[k]] + moves[k] <= here.upper[k] + 1e-12


def test_shares_add_up_to_the_way_to_go_with_the_least_kinetic_energy():
    organism = tree(3, 3)
    model, q, order, known, here = informed(organism, 1)
    law = Shared(20.0, 9.81, damping=0.0)
    law.reset(len(order))
    target = model.center_of_mass(q)[:2] + np.array([1e-5, -2e-5])
    law.decide(known, here, np.tile(target, (len(order), 1)))
    # with no drives and no friction, torque / (rate^2 inertia) is the share, beside the load
    share = (law.torque(here, 1e-3) - law._load) / (20.0**2 * known.levers.inertia)
    moved = q.copy()
    moved[order] += share
    step = model.center_of_mass(moved)[:2] - model.center_of_mass(q)[:2]
    np.testing.assert_allclose(step, [1e-5, -2e-5], atol=2e-9)  # second order in the step
    J = np.array([
        (model.center_of_mass(q + 1e-6 * e) - model.center_of_mass(q - 1e-6 * e))[:2] / 2e-6
        for e in np.eye(len(q))[order]
    ]).T  # fmt: skip
    inertia = np.diag(model.mass_matrix(q))[order]
    W = np.diag(1 / inertia)
    best = W @ J.T @ np.linalg.solve(J @ W @ J.T, [1e-5, -2e-5])
    np.testing.assert_allclose(share, best, atol=1e-6 * np.abs(best).max())


def test_looking_ahead_keeps_the_center_from_shooting_past_the_line(monkeypatch):
    overshoot = []
    for braking in (0.0, 0.5):
        monkeypatch.setattr(laws, "Shared", partial(Shared, braking=braking))
        run = balance(tree(1), "shared", duration=0.6)
        passed = run.t > run.first_reached
        overshoot.append(run.distance[passed].max() / run.distance[0])
    assert overshoot[0] > 0.12
    assert overshoot[1] < 0.1


def test_the_load_that_joints_hold_is_their_gravity_torque():
    organism = tree(1)
    model, q, order, known, here = informed(organism, 2)
    law = Shared(20.0, 9.81)
    law.reset(len(order))
    law.decide(known, here, known.center[:, :2])
    np.testing.assert_allclose(law.torque(here, 1e-3), model.gravity_torque(q)[order], atol=1e-12)


def test_a_tree_that_should_stay_where_it_is_stands_still():
    organism = tree(1)
    model = organism.model("physical")
    center = model.center_of_mass(model.neutral())[:2]
    run = balance(organism, "shared", duration=0.6, target=center)
    # it sags for the few milliseconds until everybody knows what to hold
    assert run.distance.max() < 0.02
    assert run.distance[-1] < 1e-3


def moved(model, drive, stuck, state, dt, count):
    """Position and velocity after steps of the plant from (q, v), under constant torques."""
    q, v, tau = state
    plant = with_drives(model, drive, stuck)
    motion = EquationOfMotion(plant, drive=lambda t, q, v: tau, stops=StopForces(STOPS, plant, q))
    settings = StepSettings(0.0, 0.0, dt)
    return SemiImplicitEuler(motion, settings).advance(0.0, dt, count, q.copy(), v.copy())


def test_the_plant_is_the_dynamics_without_friction():
    """Against a far more precise integrator, with the error of a first-order method."""
    organism = tree(2, 2)
    model = organism.model("physical")
    nothing_stuck = np.zeros(model.nv, dtype=bool)
    q, v, tau = model.neutral(), np.zeros(model.nv), 0.002 * np.ones(model.nv)
    exact = mr.simulate(model, q, v, 0.02, lambda t, q, v: tau, "DOP853")
    errors = []
    for dt in (1e-4, 5e-5):
        x, _ = moved(
            model, GearedDrive(1e-12, 6.0), nothing_stuck, (q, v, tau), dt, round(0.02 / dt)
        )
        errors.append(np.abs(x - exact.q[-1]).max())
    assert np.abs(exact.q[-1]).max() > 0.05
    assert errors[0] < 0.02 * np.abs(exact.q[-1]).max()
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.15)


def test_friction_and_stops_hold():
    organism = tree(2, 2)
    model = organism.model("physical")
    state = model.upper + 0.05, np.zeros(model.nv), np.zeros(model.nv)
    q, _ = moved(model, GearedDrive(0.3, 6.0), np.arange(model.nv) == 0, state, 1e-3, 2000)
    assert q[0] == pytest.approx(model.upper[0] + 0.05, abs=1e-3)  # stuck
    assert (q[1:] < model.upper[1:] + 0.04).all()


@pytest.mark.parametrize(
    "trouble",
    [
        {"loss": 0.3, "rng": np.random.default_rng(0)},
        {"delay": 3},
        {"stuck": ["m1.pitch", "m6.yaw", "m0.roll"]},
        {"faults": [Fault(0.05, "m7", "freeze"), Fault(0.3, "m7", "reboot")]},
        {"faults": [Fault(0.05, "m7", "reboot"), Fault(0.15, "m0", "reboot")]},
    ],
    ids=["30 % loss", "slow links", "stuck joints", "freeze and reboot", "reboots"],
)
def test_in_spite_of_trouble_it_gets_there(trouble):
    run = balance(tree(2), "shared", duration=0.7, **trouble)
    assert run.reached is not None


def test_a_dead_leaf_drops_and_the_others_make_up_for_it():
    organism = tree(2)
    leaf = next(name for name in organism if not organism.children(name))
    run = balance(organism, "shared", duration=1.0, faults=[Fault(0.02, leaf, "die")])
    assert run.distance[-1] < 0.25 * run.distance[0]


def test_beyond_a_dead_module_joints_hold_what_they_held_and_know_no_world():
    organism = tree(2)
    entry = next(e for e in organism.dockings if e.parent == organism.base)
    run = balance(organism, "shared", duration=0.6, faults=[Fault(0.1, entry.child, "die")])
    beyond = [organism.modules.index(n) for n in organism.subtree(entry.child)[1:]]
    assert np.isnan(run.estimates[-1, beyond]).all()
    others = np.isfinite(run.estimates[-1, :, 0]).sum()
    assert others >= len(organism) - len(beyond) - 1
    assert np.abs(run.v[-1]).max() < 5.0


def test_the_center_follows_a_gait_of_targets():
    from modurob.distributed.balancing.support import waypoints

    places = np.array([[0.0, 0.0], [0.03, 0.0], [0.0, 0.03]])
    run = balance(tree(2), "shared", duration=1.7, target=waypoints([0.5, 1.0, 1.5], places))
    assert run.distance[-1] < 0.05
    assert run.distance[run.t > 0.5].max() < 0.25


def test_messages_flow_only_on_dockings():
    organism = tree(1, 2)
    run = balance(organism, "shared", duration=0.1)
    assert run.messages <= 2 * (len(organism) - 1) * 100
    assert run.messages > 0.9 * 2 * (len(organism) - 1) * 100


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"law": "fuzzy"}, mr.UnknownNameError, "laws are default, distance, momentum, shared"),
        ({"duration": 0}, mr.StateError, "duration"),
        ({"loss": 1.5}, mr.StateError, "loss"),
        ({"loss": 0.1}, mr.StateError, "rng"),
        ({"target": (1.0, 2.0, 3.0)}, mr.StateError, "target"),
        ({"stuck": ["m0.knee"]}, mr.UnknownNameError, "knee"),
        ({"faults": [Fault(0.1, "m99", "die")]}, mr.UnknownNameError, "m99"),
        ({"q0": np.zeros(3)}, mr.StateError, "q"),
        ({"delay": 0.5}, mr.StateError, "delay must be a whole number"),
        ({"delay": -1}, mr.StateError, "delay must be a whole number"),
        ({"loss": 0.1, "rng": 3}, mr.StateError, "rng=numpy.*got int"),
        ({"faults": ["die"]}, mr.StateError, "faults are Fault"),
        ({"faults": [Fault(9.0, "m0", "die")]}, mr.StateError, "outside of the run"),
        ({"stuck": "m0.knee"}, mr.UnknownNameError, "m0.knee"),
        ({"target": "x"}, mr.StateError, "target is a point .* got 'x'"),
        ({"drive": 3}, mr.StateError, "drive is a GearedDrive, got 3"),
    ],
)
def test_bad_settings_get_one_clear_error(settings, error, words):
    with pytest.raises(error, match=words):
        balance(tree(0, 1), **settings)


def test_a_model_in_place_of_an_organism_is_named():
    with pytest.raises(mr.StateError, match="takes an Organism, got Model"):
        balance(tree(0, 1).model("physical"))


def test_bad_faults_and_drives_are_refused():
    with pytest.raises(mr.UnknownNameError, match="freeze, die, reboot"):
        Fault(0.1, "m0", "explode")
    with pytest.raises(mr.StateError, match="friction"):
        GearedDrive(friction=-1.0)


def test_each_module_tells_every_neighbor_once_in_the_first_round_and_the_sum_is_the_total():
    tree = mr.examples.superbot_tree(4, 5, np.random.default_rng(1))
    run = mr.distributed.balance(tree, "shared", duration=0.02, record=0.001)
    neighbors = [sum(name in (d.parent, d.child) for d in tree.dockings) for name in tree.modules]
    assert run.sent[0].tolist() == neighbors
    assert (np.diff(run.sent, axis=0) >= 0).all()
    assert (np.diff(run.sent, axis=0) <= neighbors).all()
    assert run.messages == run.sent[-1].sum()


def test_a_dead_module_says_nothing_and_what_it_does_not_say_is_not_lost():
    tree = mr.examples.superbot_tree(4, 5, np.random.default_rng(1))
    faults = [Fault(0.01, "m7", "die"), Fault(0.03, "m7", "reboot")]
    run = mr.distributed.balance(tree, "shared", duration=0.04, record=0.001, faults=faults)
    sent = run.sent[:, tree.modules.index("m7")]
    assert sent[9] > 0
    assert (sent[9:30] == sent[9]).all()
    assert sent[-1] > sent[29]
    assert run.lost == 0


# -- what drives do --------------------------------------------------------------------------------


def joints_of(run, module):
    return [k for k, name in enumerate(run.model.joint_names) if name.startswith(f"{module}.")]


@pytest.mark.parametrize("law", ["shared", "default"])
def test_joints_of_a_dead_module_get_no_torque_and_those_of_a_frozen_one_the_last(law):
    organism = tree(2, 2)
    faults = [Fault(0.02, "m1", "die"), Fault(0.02, "m2", "freeze"), Fault(0.04, "m1", "reboot")]
    strong = GearedDrive(0.3, 1e3)  # no torque is cut off, so every one changes all the time
    run = balance(organism, law, duration=0.06, record=1e-3, faults=faults, drive=strong)
    dead, frozen = run.tau[:, joints_of(run, "m1")], run.tau[:, joints_of(run, "m2")]
    assert (dead[1:20] != 0).any(axis=0).all()
    assert (dead[20:40] == 0).all()
    assert (dead[41:] != 0).any(axis=0).all()  # it works again
    assert (frozen[1:20] != frozen[0]).any()
    assert (frozen[20:] == frozen[19]).all()
    assert (frozen[19] != 0).any()
    others = np.delete(run.tau, [*joints_of(run, "m1"), *joints_of(run, "m2")], axis=1)
    assert (np.diff(others[20:40], axis=0) != 0).any(axis=0).all()


def test_a_module_that_died_after_it_was_frozen_lets_go():
    organism = tree(2, 1)
    faults = [Fault(0.01, "m1", "freeze"), Fault(0.02, "m1", "die"), Fault(0.03, "m1", "freeze")]
    run = balance(organism, "shared", duration=0.04, record=1e-3, faults=faults)
    tau = run.tau[:, joints_of(run, "m1")]
    assert (tau[10:20] == tau[9]).all()
    assert (tau[20:] == 0).all()  # a program that does not run drives nothing anew


def test_drives_give_no_more_than_they_can():
    run = balance(tree(2, 2), "shared", duration=0.02, record=1e-3, drive=GearedDrive(0.3, 0.01))
    assert np.abs(run.tau).max() == 0.01


def goals(law, known, here, target):
    law.reset(len(here.q))
    law.decide(known, here, np.tile(target, (len(here.q), 1)))
    return here.q + displacements(known, here, np.tile(target, (len(here.q), 1)))


@pytest.mark.parametrize("scaled_by", ["nothing", "distance", "momentum"])
def test_the_greedy_law_is_the_pid_of_moll2006_on_the_way_to_its_goal(scaled_by):
    """Proportional, integral and derivative terms from the formula, along a made-up motion."""
    organism = tree(2, 2)
    model, q, order, known, here = informed(organism, 1)
    width, c0, c1, target, dt = 0.084, 0.3, 0.7, np.array([0.03, -0.02]), 2e-3
    law = laws.Greedy(scaled_by, c0, c1, width)
    goal = goals(law, known, here, target)
    center = model.center_of_mass(q)
    k = {
        "nothing": np.zeros(len(order)),
        "distance": np.full(len(order), np.linalg.norm(center[:2] - target) / width),
        # the first moment that each joint moves: mass times the derivative of the center
        "momentum": np.array([
            model.mass.sum() * np.linalg.norm(
                (model.center_of_mass(q + 1e-6 * e) - model.center_of_mass(q - 1e-6 * e)) / 2e-6
            )
            for e in np.eye(len(q))[order]
        ]) / width,
    }[scaled_by]  # fmt: skip
    rng = np.random.default_rng(3)
    errors = np.zeros(len(order))
    for _ in range(50):
        now = here._replace(
            q=here.q + 0.1 * rng.standard_normal(len(order)), v=rng.standard_normal(len(order))
        )
        errors += goal - now.q
        expected = (c0 + c1 * k) * (10.0 * (goal - now.q) + 0.1 * dt * errors - 1e-4 * now.v)
        np.testing.assert_allclose(law.torque(now, dt), expected, rtol=1e-7, atol=1e-9)
    assert np.abs(0.1 * dt * errors).max() > 1e-3  # the integral is seen above the tolerance
    law.reset(len(order))
    np.testing.assert_array_equal(law.torque(here, dt), 0.0)  # no goal, no scale, no memory


def test_greedy_joints_without_a_world_keep_goal_and_scale():
    organism = tree(2, 2)
    _, _, order, known, here = informed(organism, 1)
    law = laws.Greedy("distance", 0.0, 0.1, 0.084)
    goals(law, known, here, np.array([0.03, -0.02]))
    lost = known._replace(knows=np.arange(len(order)) % 2 == 0)
    before = law.torque(here, 0.0)
    law.decide(lost, here, np.tile([-0.05, 0.04], (len(order), 1)))
    after = law.torque(here, 0.0)
    np.testing.assert_array_equal(after[1::2], before[1::2])
    assert (after[::2] != before[::2]).mean() > 0.5


# -- joints that their limits hold -----------------------------------------------------------------


def test_a_joint_held_by_its_limits_counts_where_it_is():
    free = mr.Organism.random("superbot", 5, np.random.default_rng(3))
    held = mr.catalog["superbot"].with_parameters(joint="pitch", limits=(0.7, 0.7))
    organism = mr.Organism.start("superbot", "m0", pose=free.base_pose)
    for e in free.dockings:
        kind = held if e.child in ("m1", "m3") else "superbot"
        organism = organism.dock(e.parent, e.port, e.child, e.child_port, kind=kind, turn=e.turn)
    run = balance(organism, "shared", duration=0.5)
    assert {"m1.pitch", "m3.pitch"} <= run.model.locked.keys()
    # a few milliseconds of news at the speed of the last moment; 6 mm with the joint at zero
    assert np.abs(run.estimates[-1] - run.center[-1]).max() < 1e-4
    assert np.linalg.norm(run.center[-1, :2] - run.target[-1]) < 1e-3


# -- what faults and laws do, step by step ---------------------------------------------------------


def masses(network):
    return network.totals().mass


def faulty_links(faults=(), loss=0.0, rng=None):
    """Four modules in a row, which know each other, and their links."""
    organism = mr.Organism.start("superbot")
    for k in range(3):
        organism = organism.dock(f"m{k}", 4, f"m{k + 1}", 1)
    network = LockStep(organism)
    for _ in range(6):
        network.round()
    return network, FaultyLinks(network, loss, faults, 1e-3, rng)


def test_a_neighbor_that_is_silent_for_long_enough_does_not_count_any_more():
    one = mr.catalog["superbot"].mass
    network, links = faulty_links([Fault(0.0, "m2", "freeze")])
    rounds = round(GIVE_UP / 1e-3)
    for k in range(rounds - 1):
        links.round(1e-3 * k, think=False)
    np.testing.assert_allclose(masses(network), 4 * one)
    for k in range(3):
        links.round(GIVE_UP + 1e-3 * k, think=False)
    # who is frozen does not forget; what lies beyond it is alone
    np.testing.assert_allclose(masses(network), np.array([2, 2, 4, 1]) * one)
    assert links.lost == 0


def test_a_module_that_starts_anew_knows_itself_alone_and_then_all_again():
    one = mr.catalog["superbot"].mass
    network, links = faulty_links([Fault(0.5, "m3", "reboot"), Fault(0.2, "m3", "die")])
    links.round(0.199, think=False)
    assert not links.dead.any()
    links.round(0.2, think=False)
    assert links.dead.tolist() == links.asleep.tolist() == [False, False, False, True]
    links.round(0.499, think=False)
    links._apply(links._waiting.pop())
    assert not links.dead.any()
    assert not links.asleep.any()
    network._recompute()
    assert masses(network)[3] == pytest.approx(one)
    for k in range(4):
        links.round(0.5 + 1e-3 * k, think=False)
    np.testing.assert_allclose(masses(network), 4 * one)


def test_lost_messages_are_those_that_were_sent_and_did_not_arrive():
    network, links = faulty_links([Fault(0.0, "m1", "freeze")], 0.5, np.random.default_rng(0))
    draws = np.random.default_rng(0).random((40, network.wiring.slots)) >= 0.5
    sender = network.wiring.owner[network.wiring.other]
    for k in range(40):
        links.round(1e-3 * k, think=False)
    assert links.lost == (~draws & (sender != 1)).sum()


def test_a_joint_at_its_limit_has_no_share_in_that_direction_only():
    _, _, order, known, here = informed(tree(3), 1)
    law = Shared(20.0, 9.81)
    law.reset(len(order))
    target = np.tile(known.center[0, :2] + [1e-3, -2e-3], (len(order), 1))
    law.decide(known, here, target)
    share = law._share
    assert law.free(here).all()
    for q, sign in ((here.upper - 0.9 * laws.AT_LIMIT, 1), (here.lower + 0.9 * laws.AT_LIMIT, -1)):
        there = here._replace(q=q)
        np.testing.assert_array_equal(law.free(there), sign * share <= 0)
        pull = law.torque(there, 1e-3) - law._load
        assert (pull[sign * share > 0] == 0).all()
        assert (pull[sign * share < 0] != 0).all()
    away = here._replace(q=here.upper - 1.1 * laws.AT_LIMIT)
    assert law.free(away).all()


def test_shared_joints_without_a_world_stop_pulling_and_hold_their_load():
    _, _, order, known, here = informed(tree(3), 1)
    law = Shared(20.0, 9.81)
    law.reset(len(order))
    target = np.tile(known.center[0, :2] + [1e-3, -2e-3], (len(order), 1))
    law.decide(known, here, target)
    load = law._load.copy()
    levers = known.levers._replace(moment=2 * known.levers.moment, inertia=0 * known.levers.inertia)
    law.decide(known._replace(knows=np.zeros(len(order), dtype=bool), levers=levers), here, target)
    np.testing.assert_array_equal(law.torque(here, 1e-3), load)
    turning = here._replace(v=np.ones(len(order)), friction=np.full(len(order), 0.3))
    braked = load - 2 * 20.0 * known.levers.inertia + 0.3
    np.testing.assert_allclose(law.torque(turning, 1e-3), braked)


def test_modules_of_several_kinds_hold_their_gravity_torque():
    organism = mr.Organism.random(["superbot", "superbot_light"], 9, np.random.default_rng(4))
    assert len({organism.kind(name) for name in organism}) == 2
    model, q, order, known, here = informed(organism, 2)
    law = Shared(20.0, 9.81)
    law.reset(len(order))
    law.decide(known, here, known.center[:, :2])
    np.testing.assert_allclose(law.torque(here, 1e-3), model.gravity_torque(q)[order], atol=1e-12)


def test_joints_that_cannot_move_have_no_part_in_the_effort_and_all_have_one_in_the_momentum():
    organism = tree(2, 1)
    network = LockStep(organism)
    rng = np.random.default_rng(0)
    q, v = rng.uniform(-0.5, 0.5, (2, len(network.joint_names)))
    network.measure(q, v)
    network.free = np.arange(len(q)) % 3 != 0
    for _ in range(10):
        network.round()
    found = InputReader(network).read()
    j, inertia = found.levers.moment[:, :2], found.levers.inertia
    effort = np.einsum("ki,kj->ij", j[network.free] / inertia[network.free, None], j[network.free])
    np.testing.assert_allclose(found.effort, np.broadcast_to(effort, found.effort.shape))
    np.testing.assert_allclose(found.momentum, np.broadcast_to(v @ j, found.momentum.shape))


# -- the run as a trajectory -----------------------------------------------------------------------


def test_states_between_the_samples_are_those_of_every_control_period():
    organism = tree(2, 2)
    fine = balance(organism, "shared", duration=0.3, record=1e-3)
    coarse = balance(organism, "shared", duration=0.3, record=0.02)
    assert isinstance(coarse, mr.Trajectory)
    q, v = coarse.at(fine.t)
    np.testing.assert_allclose(q, fine.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(v, fine.v, rtol=0, atol=1e-9)
    middle = (fine.t[1:] + fine.t[:-1]) / 2
    bound = 0.5e-3 * np.abs(fine.v).max() + 1e-12  # [rad] half a period at the highest speed
    assert np.abs(coarse.at(middle)[0] - fine.q[1:]).max() <= bound


def test_a_balancing_run_moves_by_the_equation_with_its_drives_and_stops():
    """A finer method follows the recorded torques to the same place."""
    organism, drive = tree(2, 1), GearedDrive(friction=0.3)
    run = balance(organism, "shared", duration=0.2, record=1e-3, drive=drive)

    def replayed(t, q, v):
        return run.tau[min(int(t / 1e-3 + 1e-9), len(run.t) - 1)]

    exact = mr.simulate(
        run.model, run.q[0], run.v[0], 0.2, replayed, "RK4", dt=1e-4, sample_time=1e-3,
        stops=STOPS, record=1e-3,
    )  # fmt: skip
    error = np.abs(exact.q - run.q).max()
    assert error < 0.03 * np.abs(run.q - run.q[0]).max()  # first order at 1 ms
    assert np.abs(exact.at(run.t[:-1] + 5e-4)[0] - run.at(run.t[:-1] + 5e-4)[0]).max() < 2 * error


def test_a_balancing_run_is_saved_plotted_and_drawn_as_a_trajectory(tmp_path):
    run = balance(tree(2, 1), "shared", duration=0.05)
    run.save(tmp_path / "run.npz")
    loaded = mr.Trajectory.load(tmp_path / "run.npz")
    for name in ("t", "q", "v", "a", "tau"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(run, name))
    np.testing.assert_array_equal(loaded.channels["sent"], run.sent)
    np.testing.assert_array_equal(loaded.channels["center"], run.center)
    run.plot("q", path=tmp_path / "q.svg")
    figure = run.plot(path=tmp_path / "run.svg")
    distance, path, errors = figure.axes
    x, y = run.center[:, :2].T / run.width
    np.testing.assert_array_equal(distance.lines[0].get_xydata().T, [run.t, run.distance])
    np.testing.assert_array_equal(path.lines[0].get_xydata().T, [x, y])
    starts, ends = (path.lines[k].get_xydata()[0] for k in (1, 2))
    np.testing.assert_array_equal([starts, ends], [[x[0], y[0]], [x[-1], y[-1]]])
    assert {text.get_text() for text in path.get_legend().texts} == {"start", "end", "target"}
    for line, error in zip(errors.lines, run.estimate_errors.T, strict=True):
        np.testing.assert_allclose(line.get_ydata(), np.maximum(1e3 * error, 1e-6))
    assert {plane.get_xlim() for plane in (distance, errors)} == {(0.0, run.t[-1])}
    run.animate(tmp_path / "film.gif", size=64, fps=20)
    assert all((tmp_path / name).is_file() for name in ("q.svg", "run.svg", "film.gif"))
