"""The bus in C for tests: a shared library, and nodes that check a C twin at every step."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from ctypes import byref, c_char_p, c_double, c_int, c_long, c_size_t, c_uint32, c_uint64
from functools import cache
from pathlib import Path

import pytest

from modurob.distributed import Message, native
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.node import Node

FLAGS_VARIABLE, BUILD_VARIABLE = "MODUROB_TEST_CFLAGS", "MODUROB_TEST_BUILD"
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
MASS_NAMES = "mass.c", "mass_posture.c", "balance.c", "record.c", "pose.c"
HARNESSES = [Path(__file__).with_name(f"{name}_harness.c") for name in ("bus", "mass")]
MASS = [native.FIRMWARE / "src" / name for name in MASS_NAMES]
NEEDS_COMPILER = pytest.mark.skipif(
    not any(map(shutil.which, native.COMPILERS)), reason="no C compiler on this machine"
)
ROOM = 1 << 20
SIZES = {"MR_BUS_MAX_MODULES": 64, "MR_BUS_WAITING_BYTES": 1 << 16, "MR_BUS_MAX_RECORD": 1 << 13}
DRIVE, STORED = 254, 255
C_FUNCTIONS = {
    "node_size": c_size_t,
    "mr_node_wake": c_double,
    "node_ignored": c_uint32,
    "node_dropped": c_uint32,
    "outputs_size": c_size_t,
    "message_again": c_long,
    "frame_again": c_long,
    "link_size": c_size_t,
    "link_seal": c_size_t,
    "link_open": c_int,
    "endpoint_size": c_size_t,
    "mr_endpoint_receive": c_int,
    "mr_crc32": c_uint32,
    "mr_secure_is_up": ctypes.c_bool,
    "mr_address_equal": ctypes.c_bool,
}


@cache
def library() -> ctypes.CDLL:
    """The bus and the harness, with small sizes and every warning an error."""
    folder = tempfile.TemporaryDirectory()
    place = os.environ.get(BUILD_VARIABLE, folder.name)
    files = map(str, (*native.sources(), *MASS, *HARNESSES))
    build = [native.compiler(), *native.arguments(SIZES), "-O1", *STRICT, "-fPIC", "-shared"]
    build += os.environ.get(FLAGS_VARIABLE, "").split()  # for measurements of coverage
    subprocess.run([*build, *files, "-o", "bus.so"], cwd=place, check=True)
    found = ctypes.CDLL(os.path.join(place, "bus.so"))
    for name, result in C_FUNCTIONS.items():
        getattr(found, name).restype = result
    folder.cleanup()  # it is mapped by now
    return found


def outputs(room, size):
    """(port, bytes) of what C code has put out."""
    data, found, at = ctypes.string_at(room, size), [], 0
    while at < size:
        count = int.from_bytes(data[at + 1 : at + 5], "little")
        found.append((data[at], data[at + 5 : at + 5 + count]))
        at += 5 + count
    return found


class NodeInC:
    """A node of the C library behind the interface of a Python node's step."""

    def __init__(self, node: Node, boot: int) -> None:
        self.c, self.labels = library(), node.ports
        self.memory = ctypes.create_string_buffer(self.c.node_size())
        self.room = ctypes.create_string_buffer(ROOM)
        ports = (c_char_p * len(node.ports))(*(port.encode() for port in node.ports))
        status = self.c.node_start(
            self.memory, node.uid.to_bytes(16, "big"), c_uint32(boot), node.record,
            c_size_t(len(node.record)), node.name.encode(), ports, c_size_t(len(node.ports)),
            c_double(node.heartbeat),
        )  # fmt: skip
        assert status == 0

    def step(self, inbox, now, reading=None):
        if not inbox and now < self.wake:
            return []
        self.c.outputs_to(self.room, c_size_t(ROOM))
        if reading is not None:
            values = (c_double * len(reading))(*reading)
            self.c.mr_node_read(self.memory, values, c_size_t(len(reading)))
        for port, payload in inbox:
            place = c_size_t(len(payload)), c_double(now)
            if port == msg.OWN:
                self.c.mr_node_signal(self.memory, payload, *place)
            else:
                number = self.labels.index(port)
                self.c.mr_node_take(self.memory, ctypes.c_uint8(number), payload, *place)
        self.c.mr_node_finish(self.memory, c_double(now))
        return [self._message(*x) for x in outputs(self.room, self.c.outputs_size())]

    def _message(self, port, data):
        if port == DRIVE:
            return Message(msg.OWN, bytes([msg.Kind.DRIVE]) + data)
        if port == STORED:
            return Message(msg.OWN, bytes([msg.Kind.STORED]) + data)
        return Message(self.labels[port], data)

    @property
    def wake(self):
        return self.c.mr_node_wake(self.memory)

    @property
    def ignored(self):
        return self.c.node_ignored(self.memory)


class CheckedNode(Node):
    """A Python node whose C twin gets the same inputs: every output has to be the same."""

    steps = 0

    def start(self, boot):
        self.twin = NodeInC(self, boot)
        return super().start(boot)

    def step(self, state, inbox, now, reading=None):
        state, outbox = super().step(state, inbox, now, reading)
        assert self.twin.step(inbox, now, reading) == outbox
        assert self.twin.wake == state.wake
        assert self.twin.ignored == state.links.ignored
        CheckedNode.steps += 1
        return state, outbox


class LinkInC:
    """A `SecureLink` of the C library; its numbers count up from `seed`."""

    def __init__(self, key, here, there, seed):
        self.c = library()
        self.memory = ctypes.create_string_buffer(self.c.link_size())
        ends = [repr(x).encode() for x in ((here, there), (there, here))]
        self.c.link_start(self.memory, key, c_size_t(len(key)), *ends, c_uint64(seed))

    @property
    def is_up(self):
        return self.c.mr_secure_is_up(self.memory)

    def request(self):
        room = ctypes.create_string_buffer(40)
        self.c.mr_secure_request(self.memory, room)
        return room.raw

    def seal(self, content):
        room = ctypes.create_string_buffer(len(content) + 40)
        size = self.c.link_seal(self.memory, content, c_size_t(len(content)), room)
        return room.raw[:size]

    def open(self, data):
        """(content, answer, refusal) with None where there is none."""
        content, answer = ctypes.create_string_buffer(5000), ctypes.create_string_buffer(40)
        size, answer_size = c_long(), c_size_t()
        refusal = self.c.link_open(
            self.memory, data, c_size_t(len(data)), content, byref(size), answer, byref(answer_size)
        )
        reasons = {0: "", 4: "forged", 5: "replayed"}
        found = None if size.value < 0 else content.raw[: size.value]
        return found, answer.raw[: answer_size.value] or None, reasons[refusal]
