"""The mass network: exact after as many rounds as the tree is long, then silent."""

import struct

import numpy as np
import pytest

import modurob as mr
from modurob.distributed import InProcess, LockStep, MassNetwork
from modurob.distributed.mass.agent import GIVE_UP
from modurob.distributed.mass.base import check_tree, links_of
from modurob.distributed.mass.properties import unpacked
from modurob.distributed.mass.state import (
    Election,
    Packet,
    Receipt,
    Update,
    decode,
    decode_update,
    encode,
    encode_update,
)
from modurob.distributed.reliable import NUMBERS
from modurob.distributed.transports import network as network_named
from modurob.spatial import se3
from modurob.spatial.inertia import pseudo_inertia

EXACT = 1e-12  # relative to the mass, the size and the inertia of the whole
TREES, MOST_MODULES = 200, 100


def kind_sets(kind):
    return {
        body.name: pseudo_inertia(body.mass, body.center_of_mass, np.array(body.inertia))
        for body in kind.bodies
    }


def body_sets(organism, q):
    """(bodies, 4, 4) of all bodies in the world, and the module each belongs to; centralised."""
    model = organism.model("physical")
    T = model.forward_kinematics(q)
    known = {kind: kind_sets(kind) for kind in {organism.kind(name) for name in organism}}
    pairs = [name.split(".") for name in model.body_names]
    sets = np.array([known[organism.kind(module)][body] for module, body in pairs])
    poses = {name: T[index] for name, index in model.modules.items()}
    return T @ sets @ np.swapaxes(T, -1, -2), np.array([m for m, _ in pairs]), poses


def in_order(model, joint_names, q):
    values = dict(zip(model.joint_names, q, strict=True))
    return np.array([values.get(name, 0.0) for name in joint_names])


def assert_same(found, expected):
    """Both (..., 4, 4), each in its module's frame."""
    found, expected = unpacked(np.asarray(found)), unpacked(np.asarray(expected))
    spread = np.trace(expected.inertia, axis1=-2, axis2=-1) / expected.mass
    size = np.sqrt(spread) + np.abs(expected.center).max(axis=-1)
    assert np.all(abs(found.mass - expected.mass) <= EXACT * expected.mass)
    off = np.abs(found.center - expected.center).max(axis=-1)
    assert np.all(off <= EXACT * size)
    off = np.abs(found.inertia - expected.inertia).max(axis=(-1, -2))
    assert np.all(off <= EXACT * expected.mass * size**2)


def diameter(organism):
    """Dockings on the longest path between two modules."""
    neighbors = {name: [] for name in organism}
    for entry in organism.dockings:
        neighbors[entry.parent].append(entry.child)
        neighbors[entry.child].append(entry.parent)

    def farthest(start):
        distance = {start: 0}
        for module in (order := [start]):
            new = [n for n in neighbors[module] if n not in distance]
            distance |= dict.fromkeys(new, distance[module] + 1)
            order += new
        return order[-1], distance[order[-1]]

    return farthest(farthest(organism.base)[0])[1]


def random_tree(rng, most=MOST_MODULES):
    kinds = [["superbot"], ["backbone", "scout"], ["superbot", "superbot_light"]]
    kind = kinds[int(rng.integers(len(kinds)))]
    size = int(np.exp(rng.uniform(0, np.log(most + 1))))
    return mr.Organism.random(kind, max(1, size), rng)


def test_after_d_rounds_every_module_knows_the_whole_exactly_and_then_nobody_speaks():
    """200 random trees; totals, and what lies beyond each connector, against all bodies."""
    rng = np.random.default_rng(2006)
    sizes = []
    for _ in range(TREES):
        organism = random_tree(rng)
        sizes.append(len(organism))
        model = organism.model("physical")
        q = model.random_configuration(rng)
        network = LockStep(organism, world=False)
        network.measure(in_order(model, network.joint_names, q))
        for _ in range(diameter(organism)):
            network.round()
        assert network.round() == 0
        sets, owner, poses = body_sets(organism, q)
        whole = sets.sum(axis=0)
        T_mw = {name: np.linalg.inv(pose) for name, pose in poses.items()}
        assert len(network.total) == len(organism)
        assert_same(network.total, [T_mw[m] @ whole @ T_mw[m].T for m in organism.modules])
        found, expected = [], []
        for entry in organism.dockings:
            beyond = np.isin(owner, organism.subtree(entry.child))
            for module, port, there in (
                (entry.parent, entry.port, beyond),
                (entry.child, entry.child_port, ~beyond),
            ):
                found.append(network.beyond(module, port))
                expected.append(T_mw[module] @ sets[there].sum(axis=0) @ T_mw[module].T)
        if found:  # a module alone has no neighbors
            assert_same(found, expected)
    assert max(sizes) > MOST_MODULES / 2


def test_agents_know_the_whole_exactly_after_d_rounds_and_then_only_confirm():
    rng = np.random.default_rng(1)
    for _ in range(6):
        organism = random_tree(rng, 30)
        model = organism.model("physical")
        q = model.random_configuration(rng)
        network = MassNetwork(organism)
        network.measure(q, model=model)
        network.round(diameter(organism))
        sets, _, poses = body_sets(organism, q)
        for name in organism:
            T_mw = se3.inverse(poses[name])
            assert_same(network.view(name).total, T_mw @ sets.sum(axis=0) @ T_mw.T)
        told = network.news
        network.round(2)
        assert network.news == told
        assert network.quiet
        assert network.round(5) == 0
        model_center = model.center_of_mass(q)
        ours = network.total(organism.base).moved(poses[organism.base]).center
        np.testing.assert_allclose(ours, model_center, atol=EXACT * (1 + np.abs(ours).max()))


def moving_tree(seed=3):
    organism = mr.examples.superbot_tree(4, 5, np.random.default_rng(seed))
    return organism, organism.model("physical")


def stand(network, organism):
    foot = organism.kind(organism.base).port_pose(1)[:3, 3]
    network.touch(organism.base, foot, organism.base_pose)


def test_lock_step_is_the_agents_at_every_round_of_a_motion():
    organism, model = moving_tree()
    rng = np.random.default_rng(4)
    agents, twin = MassNetwork(organism), LockStep(organism)
    stand(agents, organism)
    start, speed = model.random_configuration(rng), rng.standard_normal(model.nv)
    for k in range(20):
        q = start + 1e-3 * k * speed
        agents.measure(q, speed, model=model)
        twin.measure(*(in_order(model, twin.joint_names, x) for x in (q, speed)))
        agents.round()
        twin.round()
        for index, name in enumerate(organism):
            view = agents.view(name)
            np.testing.assert_array_equal(view.total, twin.total[index])
            np.testing.assert_array_equal(view.sums, twin.sums[index])
            assert (view.T_wm is not None) == twin.knows[index]
            if view.T_wm is not None:
                np.testing.assert_array_equal(view.T_wm, twin.T_wm[index])
    assert agents.leader == organism.base
    # the shared sums hold the horizontal momentum, as the rigid-body dynamics know it
    twin.measure(*(in_order(model, twin.joint_names, x) for x in (q, speed)))
    for _ in range(2 * diameter(organism) + 1):
        twin.round()
    momentum = model.momentum(q, speed)[:2]
    np.testing.assert_allclose(twin.sums[:, 3:], np.tile(momentum, (20, 1)), atol=1e-13)


def test_what_lock_step_forgets_is_all_that_a_connector_heard_and_nothing_else():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1).dock("m1", 4, "m2", 1)
    network = LockStep(organism)
    network.measure(np.linspace(-0.4, 0.5, 9), np.linspace(0.1, 0.9, 9))
    for _ in range(5):
        network.round()
    one, before = mr.catalog["superbot"].mass, network.sums.copy()
    slots = [k for k, owner in enumerate(network.wiring.owner) if owner == 2]
    network.forget(np.isin(np.arange(network.wiring.slots), slots))
    network._recompute(think=False)
    np.testing.assert_allclose(network.totals().mass, np.array([3, 3, 1]) * one)
    np.testing.assert_array_equal(network.sums[:2], before[:2])
    np.testing.assert_array_equal(network.sums[2], network._own_sums[2])
    assert network.knows.tolist() == [True, True, False]
    network.round()
    np.testing.assert_allclose(network.totals().mass, 3 * one)
    assert network.knows.all()


def test_a_dead_module_is_dead_for_its_transport_too_if_that_knows_of_death():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1)
    network = MassNetwork(organism)
    network.round()
    network.freeze("m1")
    network.round()
    lost = network.transport.counts.lost
    network.kill("m1")
    network.measure({"m0.pitch": 0.3})
    network.round(2)
    assert network.transport.counts.lost > lost
    network.reboot("m1")
    network.settle()
    assert network.total("m1").mass == pytest.approx(2 * mr.catalog["superbot"].mass)

    class Plain:
        """A transport with nothing but what is needed."""

        def __init__(self, inner):
            self.send, self.receive, self.tick = inner.send, inner.receive, inner.tick

    plain = MassNetwork(organism, Plain(InProcess(links_of(organism))))
    plain.round(3)
    plain.kill("m1")
    plain.reboot("m1")
    plain.settle()
    assert plain.total("m0").mass == pytest.approx(2 * mr.catalog["superbot"].mass)


def test_lock_step_counts_the_updates_of_each_module_and_a_silent_one_sends_none():
    two = mr.Organism.start("superbot").dock("m0", 4, "m1", 1)
    network = LockStep(two.dock("m1", 4, "m2", 1), world=False)
    assert network.round() == 4
    assert network.round(silent=np.array([False, True, False])) == 0
    assert network.sent.tolist() == [1, 2, 1]
    assert (network.news, network.rounds) == (4, 2)
    delayed, masses = LockStep(two, delay=2), []
    for _ in range(4):
        delayed.round()
        masses.append(delayed.totals().mass[1] / mr.catalog["superbot"].mass)
    np.testing.assert_allclose(masses, [1, 1, 2, 2])


def test_in_motion_the_error_stays_below_delay_times_speed():
    """A module's center is a mean over modules seen one docking's delay earlier for each docking.

    Seen from a module, no other one's body moves faster than the bodies' largest speed in the
    world, plus that of a point of the module's own frame as far away as the body is.
    """
    organism, model = moving_tree(5)
    rng = np.random.default_rng(6)
    period, delay = 1e-3, 2
    twin = LockStep(organism, world=False, delay=delay)
    start, speed = model.random_configuration(rng), rng.standard_normal(model.nv)
    late = diameter(organism) * (1 + delay) * period
    worst, fastest = 0.0, 0.0
    before = None
    for k in range(3 * diameter(organism) * (1 + delay)):
        q = start + period * k * speed
        twin.measure(in_order(model, twin.joint_names, q))
        twin.round()
        _, _, poses = body_sets(organism, q)
        T = np.array([poses[name] for name in organism])
        # every module's frame seen from every other one
        seen = se3.inverse(T)[:, None] @ T[None]
        if before is not None:
            moved = np.linalg.norm((seen - before)[..., :3, :], axis=(-2, -1))
            fastest = max(fastest, moved.max() / period)
        before = seen
        if k * period >= late:
            expected = np.linalg.solve(T, np.append(model.center_of_mass(q), 1.0))[:, :3]
            errors = np.linalg.norm(twin.totals().center - expected, axis=-1)
            worst = max(worst, errors.max())
    assert 0 < worst < late * fastest


def lossy(rng, **changes):
    settings = {"loss": 0.3, "delay": (0, 4), "duplication": 0.1, "reordering": 0.3}
    return InProcess(**{**settings, **changes}, rng=rng)


def test_with_loss_delays_doubles_and_disorder_everybody_still_finds_out():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        organism = mr.Organism.random("superbot", 12, rng)
        model = organism.model("physical")
        q = model.random_configuration(rng)
        network = MassNetwork(organism, lossy(rng), rng=rng)
        network.measure(q, model=model)
        assert network.settle(2000) < 2000
        sets, _, poses = body_sets(organism, q)
        for name in organism:
            T_mw = se3.inverse(poses[name])
            assert_same(network.view(name).total, T_mw @ sets.sum(axis=0) @ T_mw.T)
        assert network.transport.counts.lost > 0


def halves_after_the_death_of(module, organism, q, *, moves):
    network = MassNetwork(organism, give_up=0.02, heartbeat=None if moves else 0.05)
    model = organism.model("physical")
    network.measure(q, model=model)
    network.round(30)
    network.kill(module)
    if moves:  # somebody has news, and finds nobody there
        q = q + 0.01
        network.measure(q, model=model)
    network.round(200)
    return network, q


@pytest.mark.parametrize("moves", [True, False], ids=["in motion", "at rest, with a heartbeat"])
def test_around_a_dead_module_each_half_finds_its_own_total(moves):
    rng = np.random.default_rng(8)
    organism = mr.Organism.random("superbot", 14, rng)
    model = organism.model("physical")
    middle = max(organism.modules[1:], key=lambda n: min(7, len(organism.subtree(n))))
    network, q = halves_after_the_death_of(
        middle, organism, model.random_configuration(rng), moves=moves
    )
    sets, owner, poses = body_sets(organism, q)
    parts = [set(organism.subtree(child)) for child in organism.children(middle)]
    parts.append(set(organism.modules) - set(organism.subtree(middle)))
    assert len(parts) > 1
    for part in parts:
        expected = sets[np.isin(owner, list(part))].sum(axis=0)
        for name in part:
            T_mw = se3.inverse(poses[name])
            assert_same(network.view(name).total, T_mw @ expected @ T_mw.T)
    network.reboot(middle)
    network.round(60)
    for name in organism:
        T_mw = se3.inverse(poses[name])
        assert_same(network.view(name).total, T_mw @ sets.sum(axis=0) @ T_mw.T)


def test_a_frozen_module_keeps_its_memory_and_catches_up():
    organism, model = moving_tree()
    network = MassNetwork(organism)
    q = model.neutral()
    network.measure(q, model=model)
    network.round(20)
    network.freeze("m3")
    q = q + 0.2
    network.measure(q, model=model)
    network.round(20)
    before = network.total("m3").center
    network.wake("m3")
    network.round(60)
    assert np.abs(network.total("m3").center - before).max() > 1e-3
    sets, _, poses = body_sets(organism, q)
    T_mw = se3.inverse(poses["m3"])
    assert_same(network.view("m3").total, T_mw @ sets.sum(axis=0) @ T_mw.T)


def test_what_is_no_message_is_ignored():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1)
    network = MassNetwork(organism)
    network.round(3)
    known = network.view("m0").total
    for junk in (b"", b"x" * 7, bytes(200), b"\x01" + bytes(24) + b"\xff" * 90):
        network.transport.send("m1", [mr.distributed.Message("1", junk)])
        network.round()
    np.testing.assert_array_equal(network.view("m0").total, known)


def test_updates_with_numbers_that_are_none_are_not_taken():
    good = Update(np.eye(4), contacts=np.ones((1, 7)), election=Election(1, 2, 1), pose=np.eye(4))
    assert decode_update(encode_update(good)) is not None
    for wrong in (np.nan, np.inf, -np.inf):
        for part in ("mass", "contacts", "pose"):
            bad = getattr(good, part).copy()
            bad[0, 1] = bad[-1, 0] = wrong
            assert decode_update(encode_update(good._replace(**{part: bad}))) is None
        assert decode_update(encode_update(good._replace(sums=np.full(5, wrong)))) is None


def test_modules_that_are_not_there_are_named_and_leave_all_as_it_is():
    network = MassNetwork(mr.Organism.start("superbot").dock("m0", 4, "m1", 1))
    for call in (network.freeze, network.kill, network.wake, network.reboot, network.lift,
                 network.view):  # fmt: skip
        with pytest.raises(mr.UnknownNameError, match="no module 'm9': modules are m0, m1"):
            call("m9")
    assert network.round() == 2


def test_joints_that_were_not_told_are_at_rest():
    network = MassNetwork(mr.Organism.start("superbot").dock("m0", 4, "m1", 1))
    network.measure({"m1.yaw": 0.3}, {"m1.yaw": 0.7})
    for name, state in network.states.items():
        joints = network.agents[name].body.joint_names
        told = [name == "m1" and joint == "yaw" for joint in joints]
        np.testing.assert_array_equal(state.q, 0.3 * np.array(told))
        np.testing.assert_array_equal(state.v, 0.7 * np.array(told))


def test_updates_and_packets_have_the_bytes_that_programs_in_c_read():
    """Flags are those of `firmware/src/mass.c`; sizes those of the guide."""
    rng = np.random.default_rng(0)
    P, contacts, sums = np.diag([1.0, 2.0, 3.0, 4.0]), rng.random((2, 7)), rng.random(5)
    mass = struct.pack("<10d", 4, 0, 0, 0, 1, 2, 3, 0, 0, 0)
    ticket = struct.pack("<IQIB", 3, 2**40, 5, 2) + contacts.tobytes()
    pose = se3.exp(rng.standard_normal(6))
    for parts, data in (
        ({}, b"\0" + mass),
        ({"election": Election(3, 2**40, 5), "contacts": contacts}, b"\2" + mass + ticket),
        ({"pose": pose}, b"\4" + mass + pose[:3].tobytes()),
        ({"sums": sums}, b"\x08" + mass + sums.tobytes()),
    ):
        assert encode_update(Update(P, **parts)) == data
        told = decode_update(data)
        for name, value in (parts | {"mass": P}).items():
            np.testing.assert_array_equal(getattr(told, name), value)
    assert [len(mass) + 1, len(ticket) - contacts.nbytes, 8 * 12, sums.nbytes] == [81, 17, 96, 40]
    receipts = struct.pack("<QIQI", 7, 8, 9, 10)
    for update, flags in ((b"", b"\0"), (b"news", b"\1")):
        packet = Packet(Receipt(7, 8), Receipt(9, 10), update)
        assert encode(packet) == flags + receipts + update
        assert decode(flags + receipts + update) == packet


def test_massless_modules_are_allowed():
    light = mr.catalog["superbot"].with_parameters(mass=0.0)
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1, kind=light)
    network = MassNetwork(organism)
    network.round(2)
    assert network.total("m1").mass == pytest.approx(mr.catalog["superbot"].mass)
    assert network.beyond("m0", 4).mass == 0
    assert network.settle(100) < 100  # they are heard and confirmed as others are


def test_a_loop_is_an_error_that_names_it():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1).dock("m1", 4, "m2", 1)
    closed = [*links_of(organism), (("m2", "4"), ("m0", "1"))]
    with pytest.raises(mr.DockingError, match="m2 - m1 - m0 - m2"):
        MassNetwork(organism, InProcess(closed))
    check_tree(links_of(organism))


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda n: n.total("m9"), mr.UnknownNameError, "m9"),
        (lambda n: n.beyond("m0", 8), mr.UnknownNameError, "ports are 1, 2"),
        (lambda n: n.measure([1.0, 2.0]), mr.StateError, r"\(2,\)"),
        (lambda n: n.measure({"m0.knee": 1.0}), mr.UnknownNameError, "knee"),
        (lambda n: n.total_in_world("m0"), mr.StateError, "no module in contact"),
        (lambda n: n.touch("m0", np.zeros((2, 4)), np.eye(4)), mr.StateError, "3 or 7"),
    ],
)
def test_bad_questions_get_one_clear_error(ask, error, words):
    network = MassNetwork(mr.Organism.start("superbot"))
    with pytest.raises(error, match=words):
        ask(network)


def test_old_news_that_comes_late_is_not_taken():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1)
    network = MassNetwork(organism)
    sender, receiver = network.agents["m1"], network.agents["m0"]
    state, outboxes = network.states["m1"], []
    for k, pitch in enumerate((0.0, 0.7)):
        state = sender.sensed(state, np.array([pitch, 0.0, 0.0]), np.zeros(3))
        state, outbox = sender.step(state, [], 1e-3 * k)
        outboxes.append([message._replace(port="4") for message in outbox])
    old, new = outboxes
    here = network.states["m0"]
    told, _ = receiver.step(here, new, 0.0)
    late, _ = receiver.step(told, old, 0.001)
    np.testing.assert_array_equal(receiver.view(late).total, receiver.view(told).total)
    swapped, _ = receiver.step(here, [*new, *old], 0.0)
    np.testing.assert_array_equal(receiver.view(swapped).total, receiver.view(told).total)
    first, _ = receiver.step(here, old, 0.0)
    assert np.abs(receiver.view(first).total - receiver.view(told).total).max() > 1e-3


def test_a_step_leaves_the_given_state_as_it_is():
    organism, model = moving_tree()
    network = MassNetwork(organism)
    stand(network, organism)
    network.measure(0.1 * np.ones(model.nv), model=model)
    network.round(5)
    agent, state = network.agents["m0"], network.states["m0"]
    state = agent.sensed(state, state.q + 0.1, state.v)
    again = [agent.step(state, [], 1.0) for _ in range(2)]
    assert [m.payload for m in again[0][1]] == [m.payload for m in again[1][1]]
    assert again[0][1]
    assert not state.announced


def test_the_same_agents_find_out_over_sockets():
    organism = mr.Organism.random("superbot", 6, np.random.default_rng(3))
    model = organism.model("physical")
    q = model.random_configuration(np.random.default_rng(4))
    transport = network_named("udp", links_of(organism), loss=0.2, rng=np.random.default_rng(5))
    try:
        network = MassNetwork(organism, transport)
        network.measure(q, model=model)
        assert network.settle(500) < 500
        sets, _, poses = body_sets(organism, q)
        for name in organism:
            T_mw = se3.inverse(poses[name])
            assert_same(network.view(name).total, T_mw @ sets.sum(axis=0) @ T_mw.T)
    finally:
        transport.close()


# -- numbers that wrap, and forged ones ------------------------------------------------------------


def pair():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1)
    network = MassNetwork(organism, heartbeat=0.05)
    network.round(5)
    return organism, organism.model("physical"), network


def centers_right(organism, model, network, q):
    """Whether every module knows where the center is, from its own frame."""
    T = model.forward_kinematics(q)
    center = np.append(model.center_of_mass(q), 1.0)
    expected = {m: np.linalg.solve(T[model.modules[m]], center)[:3] for m in organism}
    return all(np.abs(network.total(m).center - expected[m]).max() < EXACT for m in organism)


def test_numbers_of_news_wrap():
    organism, model, network = pair()
    for name, state in network.states.items():
        for link in state.links.values():
            assert link.there == network.states["m1" if name == "m0" else "m0"].boot
            link.number, link.newest = NUMBERS - 3, link.newest._replace(number=NUMBERS - 3)
    for k in range(8):
        q = 0.1 * (k + 1) * np.ones(model.nv)
        network.measure(q, model=model)
        network.round(3)
        assert centers_right(organism, model, network, q)
    assert all(0 < link.number < 10 for s in network.states.values() for link in s.links.values())
    assert not any(link.waiting for s in network.states.values() for link in s.links.values())


def test_news_with_the_number_zero_is_repeated_until_it_is_confirmed():
    _, _, network = pair()
    state = network.states["m1"]
    state.links["1"].number = NUMBERS - 1
    state = network.agents["m1"].sensed(state, np.ones(3), np.zeros(3))
    state, (first,) = network.agents["m1"].step(state, [], 1.0)
    assert decode(first.payload).sent.number == 0
    old = encode(Packet(Receipt(5, 1), Receipt(state.boot, NUMBERS - 1), b""))
    state, _ = network.agents["m1"].step(state, [mr.distributed.Message("1", old)], 1.001)
    assert state.links["1"].waiting
    state, (again,) = network.agents["m1"].step(state, [], 1.1)
    assert again.payload == first.payload


@pytest.mark.parametrize("ahead", [1, 1000, NUMBERS // 2 - 1])
def test_forged_news_is_believed_for_a_moment_at_most(ahead):
    organism, model, network = pair()
    state = network.states["m1"]
    number = (state.links["1"].number + ahead) % NUMBERS
    news = encode_update(Update(np.eye(4)))
    received = Receipt(state.links["1"].there, state.links["1"].newest.number)
    packet = Packet(Receipt(state.boot, number), received, news)
    network.transport.send("m1", [mr.distributed.Message("1", encode(packet))])
    network.round(2)
    assert not centers_right(organism, model, network, model.neutral())
    network.round(round(GIVE_UP / network.period) + 100)  # two heartbeats more
    assert centers_right(organism, model, network, model.neutral())


def test_a_contest_of_many_holders_and_many_contacts_still_fit_into_a_message():
    most = Election(3, 7, NUMBERS - 1)
    assert most.merged(most) == most
    assert most.merged(Election(3, 7, 1)) == most
    contacts = np.arange(300.0 * 7).reshape(300, 7)
    told = decode_update(encode_update(Update(np.eye(4), most.merged(most), contacts)))
    assert told.election == most
    np.testing.assert_array_equal(told.contacts, contacts[:255])


# -- joints that their limits hold -----------------------------------------------------------------


def held_chain():
    """Three modules; the middle one's pitch joint is held at 0.7 rad by its limits."""
    held = mr.catalog["superbot"].with_parameters(joint="pitch", limits=(0.7, 0.7))
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1, kind=held)
    return organism.dock("m1", 4, "m2", 1, kind="superbot", turn=90)


@pytest.mark.parametrize("measured", [False, True])
def test_a_joint_held_by_its_limits_enters_with_its_angle(measured):
    organism = held_chain()
    model = organism.model("physical")
    assert "m1.pitch" in model.locked
    q = model.random_configuration(np.random.default_rng(7)) if measured else model.neutral()
    network, twin = MassNetwork(organism), LockStep(organism)
    if measured:
        network.measure(q, model=model)
        values = dict(zip(model.joint_names, q, strict=True)) | {"m1.pitch": 0.7}
        twin.measure(np.array([values[name] for name in twin.joint_names]))
    for _ in range(3):
        network.round()
        twin.round()
    assert centers_right(organism, model, network, q)
    for k, name in enumerate(organism):
        np.testing.assert_allclose(twin.total[k], network.view(name).total, atol=1e-15)


@pytest.mark.parametrize("wrong", ["x", None, 3])
def test_what_is_no_organism_and_no_transport_is_named(wrong):
    with pytest.raises(mr.StateError, match=f"takes an Organism, got {type(wrong).__name__}"):
        MassNetwork(wrong)
    if wrong is not None:
        with pytest.raises(mr.ModurobError, match="in_process, udp"):
            MassNetwork(mr.examples.arm("ba"), transport=wrong)


def test_a_view_tells_how_each_joint_moves_the_center():
    organism, model, network = pair()
    stand(network, organism)
    q, e = np.linspace(-0.4, 0.5, model.nv), 1e-6
    network.measure(q, model=model)
    network.settle()
    slope = [
        (model.center_of_mass(q + x) - model.center_of_mass(q - x)) / (2 * e)
        for x in e * np.eye(model.nv)
    ]
    found = np.concatenate([network.view(name).levers.moment for name in organism])
    np.testing.assert_allclose(found, model.mass.sum() * np.array(slope), atol=1e-9)
    for name in organism:  # of the far side: m2 u x (p2 - q)
        lever = network.view(name).levers
        arm = np.cross(lever.axis, lever.center - lever.point)
        np.testing.assert_allclose(lever.moment, lever.mass[:, None] * arm, atol=1e-12)
