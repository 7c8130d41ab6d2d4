"""The mass network in C against the one in Python: the same packets, to rounding, at every step."""

import ctypes
import math
from ctypes import c_double, c_size_t, c_uint8, c_uint32, c_uint64

import numpy as np
import pytest

import modurob as mr
from firmware.bus_in_c import NEEDS_COMPILER, library
from modurob.distributed import MassNetwork
from modurob.distributed.balancing.knowledge import inputs_of
from modurob.distributed.balancing.laws import Joints, Shared
from modurob.distributed.balancing.support import support_polygon
from modurob.distributed.mass.agent import MassAgent
from modurob.distributed.mass.module_body import ModuleBody
from modurob.distributed.mass.state import decode, decode_update, encode, encode_update
from modurob.modules.record import encode as encode_record
from oracles.runtime import KINDS

pytestmark = NEEDS_COMPILER
ROUNDING = 1e-12  # sums of products of numbers near 1, in another order
DEEP = 1e-9  # [m] of a depth that is found by halving
LAW_ROUNDING = 1e-9  # a 2x2 system whose condition is at most 1 / damping = 1e3
SEND = ctypes.CFUNCTYPE(None, ctypes.c_void_p, c_uint8, ctypes.POINTER(c_uint8), c_size_t)
DRAW = ctypes.CFUNCTYPE(c_uint64, ctypes.c_void_p, c_uint64, c_uint32)


def doubles(values):
    return np.ascontiguousarray(values, dtype=float).ctypes.data_as(ctypes.c_void_p)


class MassAgentInC:
    """A module of the C library that follows the inputs of a Python agent's state."""

    def __init__(self, agent, state):
        self.c, self.body, self.boot = library(), agent.body, state.boot
        self.c.mr_mass_wake.restype, self.c.mass_size.restype = c_double, c_size_t
        self.memory = ctypes.create_string_buffer(self.c.mass_size())
        self.out = []
        self._send = SEND(lambda _, port, data, size: self.out.append((port, bytes(data[:size]))))
        self._draw = DRAW(lambda _, boot, draw: agent._number(boot, draw))
        beat = math.inf if agent.heartbeat is None else agent.heartbeat
        self.c.mass_start(self.memory, c_uint64(state.boot), c_double(beat), self._send, self._draw)
        body = self.body
        masks = [
            [sum(1 << k for k in np.flatnonzero(row)) for row in side]
            for side in (body.child_bodies, body.child_ports)
        ]
        joints = len(body.joint_names)
        self.c.mass_shape(
            self.memory, c_size_t(len(body.labels)), c_size_t(body.child_bodies.shape[1]),
            c_size_t(joints), bytes(map(int, body.prismatic)),
            *((c_uint32 * joints)(*mask) for mask in masks), bytes(map(int, body.port_bodies)),
        )  # fmt: skip
        self.known, self.plugged = {}, {}

    def follow(self, state):
        """Take over events that changed the state between steps."""
        c, memory = self.c, self.memory
        joints = (state.q.tobytes(), state.v.tobytes(), state.free.tobytes())
        if self.known.get("joints") != joints:
            at = self.body.at(state.q)
            c.mass_posture(memory, *map(doubles, (at.ports, at.bodies, at.axis, at.point)))
            c.mr_mass_sense(memory, doubles(state.v), bytes(map(int, state.free)))
        contact = None if state.pose is None else (state.contacts.tobytes(), state.pose.tobytes())
        if self.known.get("contact") != contact:
            if contact is None:
                c.mr_mass_lift(memory)
            else:
                c.mr_mass_contact(
                    memory, doubles(state.contacts), c_size_t(len(state.contacts)),
                    doubles(state.pose), c_uint8(state.contact_body),
                )  # fmt: skip
        self.known = {"joints": joints, "contact": contact}
        for k, label in enumerate(self.body.labels):
            link = state.links.get(label)
            if link is None and label in self.plugged:
                c.mr_mass_unplug(memory, c_uint8(k))
                del self.plugged[label]
            elif link is not None and (label not in self.plugged or not link.posted):
                c.mr_mass_plug(memory, c_uint8(k), doubles(link.T_here_there))
                self.plugged[label] = True

    def step(self, inbox, now):
        self.out.clear()
        for port, payload in inbox:
            place = c_uint8(self.body.labels.index(port)), payload, c_size_t(len(payload))
            self.c.mr_mass_take(self.memory, *place, c_double(now))
        self.c.mr_mass_finish(self.memory, c_double(now))
        return [(self.body.labels[port], data) for port, data in self.out]

    def whole(self):
        mass, sums, leads, port = np.empty((4, 4)), np.empty(5), ctypes.c_int(), ctypes.c_int()
        references = ctypes.byref(leads), ctypes.byref(port)
        self.c.mass_whole(self.memory, doubles(mass), doubles(sums), *references)
        return mass, sums, bool(leads.value), port.value


def same_packets(mine, theirs):
    assert [port for port, _ in mine] == [port for port, _ in theirs]
    for (_, one), (_, other) in zip(mine, theirs, strict=True):
        a, b = decode(one), decode(other)
        assert (a.sent, a.received, bool(a.update)) == (b.sent, b.received, bool(b.update))
        if a.update:
            assert encode_update(decode_update(a.update)) == a.update
            assert len(a.update) == len(b.update)
            x, y = decode_update(a.update), decode_update(b.update)
            assert x.election == y.election
            for part in ("mass", "contacts", "sums", "pose"):
                one, other = getattr(x, part), getattr(y, part)
                assert (one is None) == (other is None)
                if one is not None:
                    np.testing.assert_allclose(one, other, rtol=0, atol=ROUNDING)


@pytest.fixture
def twins(monkeypatch):
    """C twins of all agents, by boot number; every step is compared."""
    found, python_step = {}, MassAgent.step

    def step(agent, state, inbox, now):
        twin = found.get(state.boot)
        if twin is None:
            twin = found[state.boot] = MassAgentInC(agent, state)
        twin.follow(state)
        state, outbox = python_step(agent, state, inbox, now)
        same_packets(twin.step(inbox, now), outbox)
        wake = twin.c.mr_mass_wake(twin.memory)
        assert wake == agent.wake(state)
        return state, outbox

    monkeypatch.setattr(MassAgent, "step", step)
    return found


def test_agents_in_c_send_what_python_agents_send_while_leaders_change(twins):
    organism = mr.examples.superbot_tree(3, 2, np.random.default_rng(5))
    model = organism.model("physical")
    network = MassNetwork(organism, rng=np.random.default_rng(0), tickets=2)
    rng = np.random.default_rng(1)
    q = model.random_configuration(rng)
    network.measure(q, rng.standard_normal(model.nv), model=model)
    T = model.forward_kinematics(q)
    feet = ("m0", "m1", "m2")
    for foot in feet:
        network.touch(foot, np.zeros(3), T[model.modules[foot]])
    network.settle(500)
    assert network.leader in feet
    network.lift(network.leader)
    network.settle(500)
    network.kill("m3")
    network.round(60)
    network.measure(model.random_configuration(rng), rng.standard_normal(model.nv), model=model)
    network.settle(500)
    for name, state in network.states.items():
        if name != "m3":
            view, (mass, sums, leads, port) = network.view(name), twins[state.boot].whole()
            np.testing.assert_allclose(mass, view.total, rtol=0, atol=ROUNDING)
            np.testing.assert_allclose(sums, view.sums, rtol=0, atol=ROUNDING)
            assert leads == view.leads
            assert (port != 255) == (view.leader_port is not None)
            same_torques(network.agents[name].body, state, view, twins[state.boot])


def same_torques(body, state, view, twin):
    """The shared law gets the same torques from both: joints at rest, moving, and at a limit."""
    joints, law = len(body.joint_names), Shared(2.0, 9.81)
    none = np.zeros(joints, dtype=int)
    inputs = inputs_of(
        view.levers, view.total[None], view.T_wm[None], view.sums[None], np.array([True]), none,
        body.prismatic,
    )  # fmt: skip
    target = np.array([0.3, -0.2])
    upper = state.q + np.array([1.0, 1e-4, 1.0])[:joints]
    here = Joints(state.q, state.v + 0.1, state.q - 1e-4, upper, np.full(joints, 0.7))
    law.reset(joints)
    law.decide(inputs, here, np.tile(target, (joints, 1)))
    torques, table = np.empty(joints), np.ascontiguousarray(np.transpose(here))
    twin.c.mass_balance(
        twin.memory, c_double(2.0), c_double(9.81), doubles(target), doubles(table),
        doubles(torques),
    )  # fmt: skip
    expected = law.torque(here, 0.01)
    np.testing.assert_allclose(torques, expected, rtol=LAW_ROUNDING, atol=LAW_ROUNDING)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_posture_follows_from_the_record_as_in_python(kind):
    body, record = ModuleBody(kind), encode_record(kind, 1)
    q = np.random.default_rng(1).uniform(-2, 2, len(body.joint_names))
    at, joints = body.at(q), len(body.joint_names)
    wanted = np.concatenate([x.ravel() for x in (at.ports, at.bodies, at.axis, at.point)])
    numbers, bits = np.full(len(wanted), np.nan), (c_uint32 * (2 * joints))()
    size = c_size_t(len(record))
    assert library().mass_posture_of(record, size, doubles(q), doubles(numbers), bits) == 0
    np.testing.assert_allclose(numbers, wanted, rtol=0, atol=ROUNDING)
    rows = (*body.child_bodies, *body.child_ports)
    assert list(bits) == [sum(1 << int(k) for k in np.flatnonzero(row)) for row in rows]


def test_targets_are_the_nearest_places_in_the_support_polygon():
    rng = np.random.default_rng(2)
    for count in (1, 2, 3, 4, 7, 16) * 8:
        contacts = np.zeros((count, 7))
        contacts[:, :2], contacts[:, 5:] = rng.uniform(-1, 1, (count, 2)).round(1), (1.0, 0.6)
        margin, center, found = rng.choice([0.0, 0.05, 3.0]), rng.uniform(-1.5, 1.5, 3), np.zeros(2)
        status = target_of(contacts, center, margin, found)
        assert status == 0
        wanted = support_polygon(contacts).shrunk(margin)
        if margin == 3.0 and len(wanted.corners):  # the deepest place is where a border is farthest
            depth = support_polygon(contacts).margin
            assert abs(depth(found) - depth(wanted.corners[0])) < DEEP
        else:
            np.testing.assert_allclose(found, wanted.nearest(center), rtol=0, atol=LAW_ROUNDING)


@pytest.mark.parametrize("margin", [0.25, 0.3])
def test_targets_in_a_region_that_shrinks_to_a_line_are_on_that_line(margin):
    """A rectangle that is as wide as two margins, or narrower: its middle has two ends."""
    contacts = np.zeros((4, 7))
    contacts[:, :2], contacts[:, 5:] = [(0, 0), (1, 0), (1, 0.5), (0, 0.5)], (1.0, 0.6)
    region, found = support_polygon(contacts).shrunk(0.25), np.zeros(2)
    for center, nearest in (
        ((2.0, 0.25), (0.75, 0.25)), ((-1.0, 0.25), (0.25, 0.25)), ((0.5, 0.25), (0.5, 0.25)),
        ((0.5, 3.0), (0.5, 0.25)),
    ):  # fmt: skip
        assert target_of(contacts, np.array([*center, 0.0]), margin, found) == 0
        np.testing.assert_allclose(found, nearest, rtol=0, atol=LAW_ROUNDING)
        np.testing.assert_allclose(region.nearest(center), nearest, rtol=0, atol=LAW_ROUNDING)


def test_targets_on_rough_ground_are_left_to_the_user():
    contacts = np.array(
        [[0, 0, 0, 0, 0, 1, 0.6], [1, 0, 0, 0, 0, 1, 0.6], [0, 1, 0.3, 0, 0, 1, 0.6]]
    )
    assert target_of(contacts, np.zeros(3), 0.0, np.zeros(2)) == -18
    assert target_of(contacts[:0], np.zeros(3), 0.0, np.zeros(2)) == -19


def target_of(contacts, center, margin, found):
    numbers = doubles(contacts), c_size_t(len(contacts)), doubles(center), c_double(margin)
    return library().mass_target(*numbers, doubles(found))


def test_damaged_packets_are_refused_as_in_python():
    organism = mr.examples.superbot_tree(2, 1, np.random.default_rng(5))
    network = MassNetwork(organism, rng=np.random.default_rng(0))
    name = next(iter(network.agents))
    agent, state = network.agents[name], network.states[name]
    twin = MassAgentInC(agent, state)
    twin.follow(state)
    port = next(iter(state.links))
    _, sent = agent.step(state, [], 0.0)
    packet = next(data for _, data in sent)
    rng = np.random.default_rng(3)
    for k in range(400):
        damaged = bytearray(packet)
        damaged[rng.integers(len(packet))] = rng.integers(256)
        data = bytes(damaged) if k % 2 else packet[: rng.integers(len(packet) + 1)]
        found = decode(data)
        good = found is not None and (not found.update or decode_update(found.update) is not None)
        fresh = MassAgentInC(agent, state)
        fresh.follow(state)
        place = c_uint8(twin.body.labels.index(port)), data, c_size_t(len(data)), c_double(0.0)
        assert (fresh.c.mr_mass_take(fresh.memory, *place) == 0) == good
    assert encode(decode(packet)) == packet
