"""Attack every socket of a module bus and of a mass network: ``python tools/fuzz_bus.py``.

Datagrams are random, cut off, damaged, replayed, sent back to their sender or to another module,
forged up to the tag, and oversized. Half of them come from a socket of the attacker, half from the
very socket that is plugged in (`tapped_udp`). The attacker knows all datagrams and no key. Failures
are a process that ends, a model or an estimate that is not the real one, a torque at a motor that
the coordinator has not sent, memory that grows, and modules that do not find each other again after
the attack. In a last phase all modules send damaged messages under their own keys: there, torques
are not compared.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from tapped_udp import MAD, ROUTE, TAP, TappedUdp, damaged

from modurob import examples
from modurob.distributed import TRANSPORTS, MassProcesses, ProcessBus
from modurob.distributed.bus import messages as msg
from modurob.distributed.drive import RecordedDrive
from modurob.distributed.transports.base import LARGEST
from modurob.distributed.transports.secure import HEADER, TAG_BYTES

WORD = "babac"  # modules of the arm
JOINTS = (0.1, 0.2, 0.3, 0.4, 0.5)  # [rad]
PERIOD_S = 0.01  # of the clocked loop
HEARTBEAT_S = 0.5  # long, so that a busy machine silences no module
DEADLINE_S = 60.0
PER_S = 10_000  # datagrams of the attack
BURST = 50  # datagrams between two looks at the clock
TAPE = 5000  # newest real datagrams that are kept
LARGEST_GROWTH_MB = 8.0  # allocators keep some of what they once had
EXACT_KG = 1e-9
MAD_S = 3.0  # time for which all modules send damaged messages


class Attacker:
    """Copies of all sockets, and of all that goes over them."""

    def __init__(self, folder: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self.sockets: dict[int, socket.socket] = {}  # of modules, by port
        self.tape: deque[tuple[int, int, bytes]] = deque(maxlen=TAPE)  # source, destination, data
        self.sent: Counter[str] = Counter()
        self._mad = Path(folder, "mad")
        os.environ[TAP], os.environ[MAD] = str(Path(folder, "tap")), str(self._mad)
        self._tap = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._tap.bind(os.environ[TAP])
        self._own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._open = True
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while self._open:
            data, found, _, _ = socket.recv_fds(self._tap, LARGEST + ROUTE.size, 1)
            for number in found:
                taken = socket.socket(fileno=number)
                self.sockets[taken.getsockname()[1]] = taken
            if not found and len(data) > ROUTE.size:
                self.tape.append((*ROUTE.unpack_from(data), data[ROUTE.size :]))

    def attack(self, number: int) -> None:
        """Send so many datagrams, no faster than they can be read."""
        began = time.monotonic()
        for k in range(number):
            kind = self.rng.choice(tuple(KINDS))
            source, target, data = KINDS[kind](self, *self.rng.choice(self.tape))
            is_inside = self.rng.random() < 0.5
            sender = self.sockets[source] if is_inside else self._own
            try:
                sender.sendto(data, ("127.0.0.1", target))
            except OSError:  # no room; the socket belongs to a module and does not wait
                self.sent["not sent"] += 1
            else:
                self.sent[f"{kind}, {'its own' if is_inside else 'another'} socket"] += 1
            if k % BURST == 0:
                time.sleep(max(0.0, k / PER_S - (time.monotonic() - began)))

    @contextmanager
    def madness(self) -> Iterator[None]:
        """All modules send damaged messages as well."""
        self._mad.touch()
        yield
        self._mad.unlink()

    def close(self) -> None:
        self._open = False
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as waker:
            waker.sendto(b"", os.environ[TAP])
        self._thread.join()
        for sock in (*self.sockets.values(), self._tap, self._own):
            sock.close()


def _random(attacker: Attacker, source: int, target: int, data: bytes) -> tuple[int, int, bytes]:
    label = data[: 1 + data[0]] if attacker.rng.random() < 0.8 else b""
    return source, target, label + attacker.rng.randbytes(attacker.rng.randrange(200))


def _cut(attacker: Attacker, source: int, target: int, data: bytes) -> tuple[int, int, bytes]:
    return source, target, data[: attacker.rng.randrange(len(data))]


def _damaged(attacker: Attacker, source: int, target: int, data: bytes) -> tuple[int, int, bytes]:
    return source, target, damaged(data, attacker.rng)


def _replayed(attacker: Attacker, source: int, target: int, data: bytes) -> tuple[int, int, bytes]:
    return source, target, data


def _returned(attacker: Attacker, source: int, target: int, data: bytes) -> tuple[int, int, bytes]:
    return target, source, data


def _diverted(attacker: Attacker, source: int, target: int, data: bytes) -> tuple[int, int, bytes]:
    """To any socket, from one of its neighbors."""
    other_source, other_target, other = attacker.rng.choice(attacker.tape)
    return other_source, other_target, other[: 1 + other[0]] + data[1 + data[0] :]


def _forged(attacker: Attacker, source: int, target: int, data: bytes) -> tuple[int, int, bytes]:
    """With other values, later numbers and the right checksum: all but the tag is right."""
    rng, start = attacker.rng, 1 + data[0]
    ours, theirs, counter = HEADER.unpack_from(data, start)
    payload, tag = data[start + HEADER.size : -TAG_BYTES], data[-TAG_BYTES:]
    header = HEADER.pack(ours, theirs, counter + rng.randrange(1, 5000))
    return source, target, data[:start] + header + _forged_payload(payload, rng) + tag


def _forged_payload(payload: bytes, rng: random.Random) -> bytes:
    try:
        kind, here, there, body = msg.unpack_frame(payload)
        if kind is not msg.FrameKind.DATA:
            return msg.pack_frame(kind, here, there, damaged(body, rng))
        number = int.from_bytes(body[:4], "little") + rng.randrange(1, 50)
        message = msg.unpack(body[4:])
        if isinstance(message, msg.Torque | msg.Sense):
            values = tuple(rng.uniform(-9, 9) for _ in message.values)
            later = message.number + rng.randrange(1, 50)
            message = message._replace(number=later, values=values)
        content = msg.pack(message)
        content = content if rng.random() < 0.7 else damaged(content, rng)
        return msg.pack_frame(kind, here, there, number.to_bytes(4, "little") + content)
    except ValueError:  # no frame of the bus
        return damaged(payload, rng)


def _oversized(attacker: Attacker, source: int, target: int, data: bytes) -> tuple[int, int, bytes]:
    return source, target, data + bytes(attacker.rng.choice((LARGEST, 20_000)))


KINDS: dict[str, Callable[..., tuple[int, int, bytes]]] = {
    "random": _random,
    "cut off": _cut,
    "damaged": _damaged,
    "replayed": _replayed,
    "returned": _returned,
    "diverted": _diverted,
    "forged": _forged,
    "oversized": _oversized,
}


class RecordingBus(ProcessBus):
    """A bus that compares the torques of its motors with those that were computed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.computed: dict[str, set[tuple[float, ...]]] = {}
        self.forged: list[str] = []
        self.organisms: list[Any] = []
        self.is_compared = True
        self._compute = self.builder.commands
        self.builder.commands = self._commands  # type: ignore[method-assign]

    def _commands(self, state: Any, t: float) -> Any:
        found = self._compute(state, t)
        names = self.builder.operation.robot.assembly.names
        for module, torques in found.items():
            if module in names:
                self.computed.setdefault(names[module], set()).add(torques)
        if not self.organisms or self.organisms[-1] is not self.robot.assembly.organism:
            self.organisms.append(self.robot.assembly.organism)
        return found

    def commanded(self) -> list[float]:
        """The newest torque of each module with one joint."""
        if not self.clocked:
            return [self.torques.get(name, (np.nan,))[0] for name in self.modules]
        wanted, names = self.builder.commanded(), self.robot.assembly.names
        found = {names[m]: tau[0] for m, tau in wanted.items() if m in names}
        return [found.get(name, np.nan) for name in self.modules]

    def _driven(self, name: str, values: tuple[float, ...]) -> None:
        values = tuple(values)
        if self.is_compared and values and values not in self.computed.get(name, ()):
            self.forged.append(f"{name} was driven by {values}, which was never computed")
        super()._driven(name, values)


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def dropped(ports: set[int]) -> int:
    """Datagrams that found no room in the buffers of sockets."""
    rows = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
    return sum(int(row[-1]) for row in rows if int(row[1].split(":")[1], 16) in ports)


@contextmanager
def attacker(seed: int) -> Iterator[Attacker]:
    with tempfile.TemporaryDirectory() as folder:
        one = Attacker(folder, seed)
        TRANSPORTS["tapped"] = TappedUdp
        try:
            yield one
        finally:
            one.close()
            del TRANSPORTS["tapped"], os.environ[TAP], os.environ[MAD]


def attack_bus(
    number: int, seed: int = 0, mad_s: float = 0.0, *, clocked: bool = False
) -> list[str]:
    """Attack a bus with so many datagrams; one line for each failure.

    Modules send damaged messages for `mad_s` seconds. With `clocked` their joints are recorded
    ones, and every torque that their drives got is compared.
    """
    failures: list[str] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        attacker(seed) as foe,
        RecordingBus(
            transport="tapped", heartbeat=HEARTBEAT_S, period=PERIOD_S,
            drives=_recorded(Path(folder)) if clocked else None,
        ) as bus,
    ):  # fmt: skip
        bus.wait_until_warm()
        names = [bus.start(f"giusti_{letter}") for letter in WORD]
        for before, name in zip(["base", *names], names, strict=False):
            bus.plug(f"{before}.out", f"{name}.in")
        for name, q in () if clocked else zip(names, JOINTS, strict=True):
            bus.sense(name, [q])
        parts = [None, *(examples.arm(WORD[:k]) for k in range(1, len(WORD) + 1))]
        tau = parts[-1].model("physical", gravity=(0, 0, -9.81)).gravity_torque(np.array(JOINTS))

        def check(what: str) -> None:
            def is_right() -> bool:
                if not bus.settled(len(names)):
                    return False
                bus.operation.hold()  # where the joints are: torques against gravity alone
                torques = bus.commanded()
                return (
                    bus.robot.assembly.organism == parts[-1]
                    and bus.robot.assembly.faults == ()
                    and bool(np.allclose(torques, tau, rtol=1e-9))
                )

            if not bus.wait(is_right, DEADLINE_S):
                failures.append(f"{what}: the robot is {bus.robot.assembly}, torques {bus.torques}")
            failures.extend(f"{what}: {name} ended" for name in names if not bus.is_alive(name))
            failures.extend(f"{what}: {line}" for line in bus.forged)
            bus.forged.clear()

        def rejoin() -> None:
            for k in (0, 2):
                place, _ = bus.docked[names[k], "in"]
                bus.unplug(f"{names[k]}.in")
                if not bus.wait(lambda k=k: bus.robot.assembly.organism == parts[k], DEADLINE_S):
                    failures.append(f"{names[k]} was unplugged, and the robot is still whole")
                bus.plug(".".join(place), f"{names[k]}.in")

        check("before")
        rejoin()  # for the tape: reports, records, handshakes of links that are no more
        check("before")
        pids = {"base": os.getpid(), **{name: bus.pid(name) for name in names}}
        built = bus.builder.built
        _campaign(foe, number, pids, check, failures)
        built = bus.builder.built - built
        if wrong := [o for o in bus.organisms if o not in parts]:
            failures.append(f"attack: models of robots that were never there: {wrong}")
        rejoin()
        check("unplugged and plugged after the attack")
        if mad_s:
            bus.is_compared = False
            with foe.madness():
                time.sleep(mad_s)
            time.sleep(30 * HEARTBEAT_S)  # docs/guide/bus.md: forged ones count for 28 heartbeats
            bus.is_compared = True
            check("after damaged messages of neighbors")
        for name in names if clocked else ():
            lines = (Path(folder) / name).read_text(encoding="utf-8").splitlines()
            written = {tuple(json.loads(line)) for line in lines}
            alien = written - bus.computed[name] - {()}
            failures.extend(f"{name} was driven by {tau}, never computed" for tau in alien)
            if not written & bus.computed[name]:
                failures.append(f"{name} was never driven")
        print(f"bus: rebuilt {built} times during the attack; coordinator: refused "
              f"{dict(bus.endpoint.refused)}, ignored {bus.coordinator.links.ignored}")  # fmt: skip
    return failures


def _recorded(folder: Path) -> Any:
    """Drives whose joints rest where `JOINTS` has them, and which log their torques."""
    for k, q in enumerate(JOINTS):
        (folder / f"readings{k}").write_text(f"[0.0, [{q}, 0.0]]\n", encoding="utf-8")
    path = f"{RecordedDrive.__module__}:{RecordedDrive.__qualname__}"

    def drive(name: str) -> tuple[str, dict[str, str]]:
        files = {"path": folder / f"readings{name[1:]}", "log": folder / name}
        return path, {key: str(file) for key, file in files.items()}

    return drive


def attack_mass(number: int, seed: int = 0) -> list[str]:
    """Attack a mass network with so many datagrams; one line for each failure."""
    failures: list[str] = []
    tree = examples.superbot_tree(branches=2, length=2, rng=np.random.default_rng(seed))
    total_kg = sum(tree.kind(name).mass for name in tree)
    with attacker(seed) as foe, MassProcesses(tree, transport="tapped") as net:

        def check(what: str) -> None:
            def is_right() -> bool:
                return all(abs(net.total(name).mass - total_kg) < EXACT_KG for name in tree)

            if not net.wait(is_right, DEADLINE_S):
                masses = [float(net.total(name).mass) for name in tree]
                failures.append(f"mass, {what}: modules know {masses}, expected {total_kg}")
            failures.extend(f"mass, {what}: {n} ended" for n in tree if not net.is_alive(n))

        def rejoin() -> None:
            for name in list(tree)[1:]:
                net.unplug(name)
                net.plug(name)

        check("before")
        rejoin()
        check("before")
        _campaign(foe, number, {name: net.pid(name) for name in tree}, check, failures)
        rejoin()
        check("unplugged and plugged after the attack")
    return failures


def _campaign(
    foe: Attacker,
    number: int,
    pids: dict[str, int],
    check: Callable[[str], None],
    failures: list[str],
) -> None:
    """Attack, and look at the memory before and after."""
    warm_up = number // 10  # caches and buffers fill once
    foe.attack(warm_up)
    before = {name: memory_mb(pid) for name, pid in pids.items()}
    began = time.monotonic()
    foe.attack(number - warm_up)
    took = time.monotonic() - began
    check("attack")
    growth = {name: round(memory_mb(pid) - before[name], 1) for name, pid in pids.items()}
    failures.extend(
        f"attack: {name} grew by {more} MB"
        for name, more in growth.items()
        if more > LARGEST_GROWTH_MB
    )
    lost = dropped(set(foe.sockets))
    print(f"{foe.sent.total():,} datagrams, the last {number - warm_up:,} in {took:.0f} s, {lost} "
          f"dropped by the system, growth {growth} MB")  # fmt: skip
    for kind, count in sorted(foe.sent.items()):
        print(f"  {kind}: {count:,}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-n", "--number", type=int, default=100_000, help="datagrams at the bus")
    parser.add_argument("--mass", type=int, default=30_000, help="datagrams at the mass network")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    failures = attack_bus(given.number // 2, given.seed, MAD_S)
    failures += attack_bus(given.number - given.number // 2, given.seed + 1, clocked=True)
    failures += attack_mass(given.mass, given.seed)
    print(*failures or ["no failure"], sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
