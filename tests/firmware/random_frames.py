"""Random inputs of a node that come close to real ones: most frames are whole and due."""

import random
import struct

from firmware.bus_in_c import CheckedNode
from modurob.distributed import Message
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.messages import Address, FrameKind

THEIRS = 40  # number of each link on the neighbor's side


class RandomNeighbors:
    """A checked node whose neighbors, connectors and joints do random things."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        record = self.rng.randbytes(self.rng.choice((0, 10, 1500)))
        self.node = CheckedNode(7, record, name="n", ports=("in", "out", "3"))
        self.state, self.now = self.node.start(self.rng.getrandbits(32)), 0.0
        self.sent = dict.fromkeys(self.node.ports, 0)
        self.hellos = dict.fromkeys(self.node.ports, 0)
        self.cycle = 0

    def step(self):
        rng = self.rng
        self.now += rng.choice((0.0, 1e-3, 1e-3, 2e-3, 0.03, 0.2))
        inbox = [self._input(rng.choice(self.node.ports)) for _ in range(rng.randrange(4))]
        reading = rng.choice((None, (0.3, 0.1), (rng.random(), rng.random()), ()))
        self.state, _ = self.node.step(self.state, inbox, self.now, reading)

    def _input(self, port):
        kind = self.rng.random()
        if kind < 0.03:
            return msg.own(msg.Unplugged(port))
        if kind < 0.12:
            self.sent[port] = self.hellos[port] = 0
            return msg.own(msg.Plugged(port, 90))
        if kind < 0.15:
            return msg.own(msg.Sensed((0.1, 0.2)))
        return Message(port, self._frame(port))

    def _frame(self, port):
        rng, link = self.rng, self.state.links.ports.get(port)
        make = rng.choices((self._hello, self._data, self._ack, self._batch), (30, 30, 10, 30))[0]
        kind, body = make(port)
        if rng.random() < 0.03:
            return rng.randbytes(rng.randrange(60))
        if rng.random() < 0.03:
            body = body[: rng.randrange(len(body) + 1)]
        there = link.here if link is not None and rng.random() < 0.95 else 0
        if kind is FrameKind.HELLO:
            there = rng.choice((0, there))
        return msg.pack_frame(kind, THEIRS + (rng.random() < 0.02), there, body)

    def _hello(self, port):
        rng, beat = self.rng, self.state.beat
        self.hellos[port] += 1
        if port == "in":
            beats, child = (0, beat + 1, beat + rng.randrange(200)), rng.random() < 0.05
        else:
            beats, child = (0, 0, beat + 1), rng.random() < 0.8
        address = Address(THEIRS if port == "in" else 50, 1)
        epoch = 1 + (rng.random() < 0.05)
        hello = msg.Hello(address, self.hellos[port], rng.choice(beats), epoch, child, "x")
        return FrameKind.HELLO, msg.HELLO.pack(hello)

    def _data(self, port):
        self.sent[port] += self.rng.choice((1, 1, 1, 2, 0))
        number = self.sent[port] if self.rng.random() < 0.97 else self.rng.getrandbits(32)
        return FrameKind.DATA, struct.pack("<I", number) + self._message()

    def _ack(self, port):
        return FrameKind.ACK, struct.pack("<3I", *(self.rng.randrange(1, 30) for _ in range(3)))

    def _batch(self, port):
        rng = self.rng
        self.cycle += rng.choice((0, 1, 1))
        number = self.cycle if rng.random() < 0.95 else rng.getrandbits(32)
        messages = tuple(self._message() for _ in range(rng.randrange(4)))
        batch = msg.CycleBatch(number, rng.random() < 0.8, messages)
        return FrameKind.BATCH, msg.BATCH.pack(batch)

    def _message(self):
        """A message; one of ten is cut off or has a wrong byte."""
        rng = self.rng
        others = Address(50, 1), Address(51, 1), Address(rng.getrandbits(128), rng.getrandbits(32))
        address = rng.choice((self.state.links.address, *others))
        number = rng.choice((rng.getrandbits(32), self.cycle, self.cycle + 1))
        values = tuple(rng.uniform(-1, 1) for _ in range(rng.choice((0, 1, 1, 2, 3, 17))))
        piece = rng.randbytes(rng.choice((1024, 476, 3)))
        data = bytearray(
            msg.pack(
                rng.choice(
                    (
                        msg.Sense(address, number, self.cycle, values),
                        msg.Torque(address, number, values),
                        msg.HoldGains(address, tuple(rng.random() for _ in range(3))),
                        msg.Ask(address, rng.choice(list(msg.Wanted))),
                        msg.Write(address, 1500, rng.choice((0, 1024)), piece),
                        msg.ModuleReport(address, number, "x", ()),
                        msg.Piece(address, 5, 0, b"12345"),
                    )
                )
            )
        )
        damage = rng.random()
        if damage < 0.05:
            return bytes(data[: rng.randrange(len(data) + 1)])
        if damage < 0.1 and len(data) < 300:  # C has less room for records
            place = rng.choice((0, rng.randrange(len(data))))
            data[place] = rng.choice((*map(int, msg.Kind), rng.getrandbits(8)))
        return bytes(data)
