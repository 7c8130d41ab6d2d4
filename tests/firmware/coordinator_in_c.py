"""The coordinator in C for tests: one that checks its C twin at every step."""

import ctypes
from ctypes import c_double, c_size_t, c_uint8, c_uint32, c_uint64

import numpy as np

from modurob import StateError
from modurob.control import gains
from modurob.distributed import SimulatedBus
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.builder import SETTLING_S
from modurob.distributed.bus.coordinator import Coordinator
from modurob.distributed.bus.messages import FrameKind
from modurob.distributed.codec import read
from oracles import runtime

SAME = 1e-9  # [N m] of torques up to 10: the dynamics of both sum in another order
KINDS = "modules", "unreported", "unread", "unheard", "silent", "lost", "loops", "twins", "skewed"
SENDER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, c_uint8, ctypes.POINTER(c_uint8), c_size_t)
PERIOD_S = 0.01
MODES = "idle", "hold", "move", "wait", "relax"  # in the order of mr_bus_mode


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
        self.c.robot_tick(c_double(now))
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

    @classmethod
    def mode(cls):
        return MODES[cls.library.robot_mode()]

    @classmethod
    def order(cls, bus, what, q=(), seconds=0.0):
        """Give a command to both; the reason if both refuse it."""
        values = (c_double * len(q))(*q)
        given = (values, len(q), c_double(seconds)) if what == "goto" else ()
        status = getattr(cls.library, f"robot_{what}")(*given)
        try:
            getattr(bus.operation, what)(*((q, seconds) if what == "goto" else ()))
        except StateError:
            assert status != 0
        else:
            assert status == 0
        return runtime.STATUS[status]

    def _sent(self):
        sent, self.sent[:] = list(self.sent), []
        return sent

    def _children(self):
        room = ctypes.create_string_buffer(20 * 200)
        found = {}
        for kind, name in enumerate(KINDS):
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


def random_changes(seed, changes):
    """Plug, unplug, kill and restart modules at random; rings and twins are among them."""
    rng = np.random.default_rng(seed)
    faults = {"loss": 0.1, "delay": (0, 2), "duplication": 0.1, "reordering": 0.2, "rng": rng}
    bus = SimulatedBus(faults=faults, heartbeat=0.1)
    names = [bus.start("backbone", uid=7 if k > 4 else None) for k in range(7)]
    dead = set()
    for _ in range(changes):
        free = [f"{n}.{p}" for n in names for p in bus.modules[n].node.ports]
        free = [end for end in [*free, "base.out"] if bus.end(end) not in bus.docked]
        held = [".".join(end) for end in bus.docked]
        name, action = rng.choice(names), rng.random()
        if len(free) > 1 and (action < 0.5 or not held):
            one = "base.out" if "base.out" in free else rng.choice(free)
            bus.plug(one, rng.choice([end for end in free if end != one]), int(rng.choice([0, 90])))
        elif action < 0.7 and held:
            bus.unplug(rng.choice(held))
        elif name in dead:
            dead.remove(name)
            bus.restart(name)
        elif action < 0.85:
            dead.add(name)
            bus.kill(name)
        bus.run(lambda: False, rng.choice([0.05, 0.2, 0.6]))
