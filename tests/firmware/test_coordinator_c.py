"""The coordinator in C against the one in Python: the same frames, tree and torques."""

import ctypes
import os
import signal
from ctypes import c_double, c_size_t, c_uint8, c_uint32, c_uint64

import numpy as np
import pytest

from firmware.bus_in_c import NEEDS_COMPILER
from modurob import StateError, catalog
from modurob.control import gains
from modurob.distributed import PlantOptions, ProcessBus, SimulatedBus
from modurob.distributed.bus import bus as bus_of_nodes
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.builder import SETTLING_S
from modurob.distributed.bus.coordinator import Coordinator
from modurob.distributed.bus.messages import FrameKind
from modurob.distributed.codec import read
from oracles import complains

pytestmark = NEEDS_COMPILER
SAME = 1e-9  # [N m] of torques up to 10: the dynamics of both sum in another order
KINDS = "modules", "unreported", "unread", "unheard", "silent", "lost", "loops", "twins", "skewed"
SENDER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, c_uint8, ctypes.POINTER(c_uint8), c_size_t)
PERIOD_S = 0.01
DEADLINE = 60.0  # [s]


class CheckedCoordinator(Coordinator):
    """A coordinator whose C twin gets the same inputs: every output has to be the same."""

    library = None
    cycles = rebuilt = 0
    torques = ()

    def start(self, boot, beat=1):
        self.c, self.sent = self.library, []
        self.c.coordinator_wake.restype = c_double
        self.c.robot_gains.restype = c_size_t

        def send(context, port, frame, size):
            self.sent.append(ctypes.string_at(frame, size))

        self.send = SENDER(send)  # kept as long as it is called
        k0, k1 = gains.for_samples(SETTLING_S, gains.DAMPING, PERIOD_S, 0).gains
        numbers = map(c_double, (self.heartbeat, k0, k1, PERIOD_S))
        self.c.coordinator_start(c_uint32(boot), c_uint64(beat), *numbers, self.send)
        self.wanted_gains = []
        return super().start(boot, beat)

    def step(self, state, inbox, now):
        if not inbox and now < state.wake:
            return super().step(state, inbox, now)
        for gain in (m for m in inbox if m.port == msg.OWN and m.payload[0] == msg.Kind.HOLD):
            self._check_gains(msg.unpack(gain.payload))
        for port, payload in inbox:
            take = self.c.coordinator_signal if port == msg.OWN else self.c.coordinator_take
            take(payload, c_size_t(len(payload)), c_double(now))
        self.c.coordinator_finish(c_double(now))
        state, outbox = super().step(state, inbox, now)
        assert self._sent() == [message.payload for message in outbox]
        assert self.c.coordinator_wake() == state.wake
        assert self.c.coordinator_ignored() == state.links.ignored
        assert bool(self.c.coordinator_ready()) == state.ready
        assert self._children() == _children(state.survey)
        CheckedCoordinator.rebuilt += self.c.robot_rebuild()
        return state, outbox

    def cycle(self, state, torques, now):
        self.c.robot_tick()
        (frame,) = self._sent()
        state, outbox = super().cycle(state, torques, now)
        ours, theirs = (_torques(frame), _torques(outbox[0].payload))
        assert ours[0] == theirs[0]
        assert ours[1].keys() == theirs[1].keys()
        for module, tau in theirs[1].items():
            np.testing.assert_allclose(ours[1][module], tau, rtol=0, atol=SAME)
        CheckedCoordinator.cycles += 1
        CheckedCoordinator.torques = theirs[1]
        return state, outbox

    def _sent(self):
        sent, self.sent[:] = list(self.sent), []
        return sent

    def _children(self):
        room = ctypes.create_string_buffer(20 * 200)
        found = {}
        for kind, name in enumerate(("modules", *KINDS[1:])):
            count = self.c.survey_children(kind, room, c_size_t(len(room)))
            found[name] = [room.raw[20 * k : 20 * k + 20] for k in range(count)]
        return found

    def _check_gains(self, expected):
        room = ctypes.create_string_buffer(1000)
        sizes = [self.c.robot_gains(k, room) for k in range(self.c.robot_modules())]
        found = {}
        for k, size in enumerate(sizes):
            if size:
                self.c.robot_gains(k, room)
                message = msg.unpack(room.raw[:size])
                found[message.target] = message.values
        np.testing.assert_allclose(found[expected.target], expected.values, rtol=1e-9)


def _children(survey):
    pack = lambda address: address.uid.to_bytes(16, "big") + address.boot.to_bytes(4, "little")  # noqa: E731
    unknown = pack(msg.UNKNOWN)
    return {
        "modules": [pack(module) for module in survey.modules],
        "unreported": [pack(module) for module in survey.unreported],
        "unread": [pack(module) for module in survey.unread],
        "unheard": [unknown for _ in survey.unheard],
        "silent": [pack(there) for _, _, there in survey.silent],
        "lost": [pack(edge.child) for edge in survey.lost],
        "loops": [pack(edge.child) for edge, _ in survey.loops],
        "twins": [pack(second) for _, second in survey.twins],
        "skewed": [pack(edge.child) for edge in survey.skewed],
    }


def _torques(frame):
    kind, _, _, body = msg.unpack_frame(frame)
    assert kind is FrameKind.BATCH
    batch = read(msg.BATCH, body)
    messages = [msg.unpack(message) for message in batch.messages]
    assert all(message.number == batch.number for message in messages)
    return (batch.number, batch.complete), {m.target: m.values for m in messages}


@pytest.fixture
def checked(double_runtime, monkeypatch):
    CheckedCoordinator.library = double_runtime.lib
    CheckedCoordinator.cycles = CheckedCoordinator.rebuilt = 0
    monkeypatch.setattr(bus_of_nodes, "Coordinator", CheckedCoordinator)
    return CheckedCoordinator


def attached(bus, word, pose=(), **parameters):
    before = "base.out"
    for k, letter in enumerate(word):
        name = bus.start(catalog[f"giusti_{letter}"].with_parameters(**parameters))
        if pose:
            bus.sense(name, [pose[k]])  # before it is found: this is where it is held
        bus.plug(before, f"{name}.in")
        before = f"{name}.out"


def test_a_coordinator_in_c_drives_a_changing_arm_as_the_one_in_python(checked):
    rng = np.random.default_rng(0)
    faults = {"loss": 0.1, "delay": (0, 2), "duplication": 0.1, "reordering": 0.2, "rng": rng}
    plant = PlantOptions(step=2e-3, noise_q=1e-3, noise_v=1e-2)
    bus = SimulatedBus(plant=plant, period=PERIOD_S, faults=faults, heartbeat=0.05)
    attached(bus, "babac", viscous=0.5, coulomb=0.1)
    assert bus.run(lambda: bus.settled(5))
    bus.push("m1.joint", 3.0, 0.1)
    bus.run(lambda: False, 0.2)
    assert max(abs(tau) for values in checked.torques.values() for tau in values) > 1
    bus.kill("m2")
    assert bus.run(lambda: bool(bus.coordinator.survey.lost))
    bus.run(lambda: False, 0.1)
    bus.restart("m2")
    assert bus.run(lambda: bus.settled(5))
    bus.write("m3", mass=0.7)
    bus.run(lambda: False, 0.2)
    bus.unplug("m4.in")
    assert bus.run(lambda: bus.settled(4))
    bus.plug("m3.out", "m4.in", 90)
    bus.run(lambda: False, 0.3)
    assert checked.rebuilt > 5
    assert checked.cycles > 50


def test_a_native_robot_has_the_torques_of_a_python_one_and_survives_a_death():
    pose, names = (0.4, 0.3, -0.5, 0.2, 0.05), ["m0", "m1", "m2", "m3", "m4"]
    twin = SimulatedBus()
    attached(twin, "babac", pose)
    assert twin.run(lambda: twin.settled(5))
    assert max(abs(tau) for (tau,) in twin.torques.values()) > 1
    with ProcessBus(native=["m0", "m2", "m3", "m4"], coordinator="native", heartbeat=0.2) as bus:
        attached(bus, "babac", pose)

        def is_same():
            given = [bus.torques.get(name, (np.inf,))[0] for name in names]
            wanted = [twin.torques[name][0] for name in names]
            return bus.settled(5) and np.allclose(given, wanted, rtol=0, atol=SAME)

        assert bus.wait(is_same, DEADLINE)
        bus.kill("m2")
        assert bus.wait(lambda: "m2" in bus.robot.assembly.silent.values(), DEADLINE)
        assert "silent: 'm2' stays in the model, where it was last" in bus.robot.assembly.faults
        bus.restart("m2")
        bus.sense("m2", [pose[2]])
        assert bus.wait(is_same, DEADLINE)
        bus.unplug("m4.in")
        assert bus.wait(lambda: bus.settled(4), DEADLINE)
        with complains(StateError, "a coordinator in C holds the robot where its modules are"):
            bus.operation.goto([0.0] * 4, 1.0)
        os.kill(bus.pid("base"), signal.SIGKILL)
        with complains(StateError, "the coordinator's process has ended: modules get no torques"):
            bus.wait(lambda: False, DEADLINE)


def test_a_native_coordinator_has_one_law_and_the_usual_transport():
    with complains(StateError, "coordinator is python, native, got 'c'"):
        ProcessBus(coordinator="c")
    with complains(StateError, "a coordinator in C has the law computed-torque, got pd-gravity"):
        ProcessBus("pd-gravity", coordinator="native")
