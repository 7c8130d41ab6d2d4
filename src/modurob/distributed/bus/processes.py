"""A bus of real processes: one for each module, datagrams between them.

Two threads run here: one moves the coordinator's datagrams and never waits long, so that its
heartbeat is regular; the other builds models and controllers, which may take a while.
"""

from __future__ import annotations

import contextlib
import random
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from modurob.checks import positive, takes
from modurob.control import ComputedTorque
from modurob.distributed import child
from modurob.distributed.agent import Message
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.builder import RobotBuilder
from modurob.distributed.bus.bus import BASE, Bus, BusModule
from modurob.distributed.bus.coordinator import PORT, CoordinatorState
from modurob.distributed.bus.links import HELLOS
from modurob.distributed.bus.messages import Address
from modurob.distributed.bus.native_coordinator import NativeOperation, told_state, with_readings
from modurob.distributed.bus.node import NodeProgram
from modurob.distributed.drive import SharedDrive
from modurob.distributed.native import coordinator_program, module_program
from modurob.distributed.plant import PLANT, start_plant
from modurob.distributed.processes import END_TIMEOUT_S, START_TIMEOUT_S, Processes
from modurob.distributed.transports import DEFAULT, End
from modurob.errors import StateError, choices
from modurob.organism import Organism

COORDINATORS = ("python", "native")
LOST = {
    PLANT: "the plant's process has ended: nothing moves",
    BASE: "the coordinator's process has ended: modules get no torques",
}
SHARED_DRIVE = f"{SharedDrive.__module__}:{SharedDrive.__qualname__}"
KEPT_TICKS = 10_000
POLL_S = 0.02  # between looks at a condition that is waited for
WARM_UP_TIMEOUT_S = 120.0  # compilation on a busy machine


class ProcessBus(Bus):
    """Modules as processes on this machine; use it in a ``with`` block, or `close` it.

    Args:
        law, settings: See `Bus`.
        transport: Name of a transport between processes.
        loss: Chance that a datagram is dropped, for trials.
        seed: Of those chances.
        drives: From a module's name to its `Drive`: a class as ``package.module:Class``, and its
            options. Drives of the plant by default.
        native: True if modules run in C, or the names of those that do; a C compiler builds their
            program when it is first needed.
        coordinator: ``native`` for one in C, as a process. It has computed torque and the motions
            goto, hold and relax; other motions, laws and records need the one in Python.

    Attributes:
        endpoint: The socket of a coordinator in Python.
        clock: Of the loop with a plant: how late it was.
    """

    def __init__(
        self,
        law: str = "ComputedTorque",
        *,
        transport: str = DEFAULT,
        loss: float = 0.0,
        seed: int = 0,
        drives: Callable[[str], tuple[str, dict[str, Any]]] | None = None,
        native: bool | Collection[str] = False,
        coordinator: str = "python",
        **settings: Any,
    ) -> None:
        if drives is not None and (not takes(drives, "m0") or settings.get("plant") is not None):
            raise StateError("drives is a function of a module's name, on a bus without a plant")
        if coordinator not in COORDINATORS:
            raise StateError(f"coordinator is {choices(COORDINATORS)}, got {coordinator!r:.60}")
        in_c = coordinator == "native"
        if (native or in_c) and (drives is not None or transport != DEFAULT):
            raise StateError(f"native modules have the transport {DEFAULT} and drives of the plant")
        self._drives, self._native = drives, _checked_native(native)
        super().__init__(law, **settings)
        self._in_c, self._driven_in_c = in_c, False
        self._tree: dict[str, Any] = {"findings": []}  # as a coordinator in C told it
        options = _native_settings(self.builder, self.period, self.heartbeat) if in_c else {}
        program = coordinator_program() if in_c else ""
        self._program = module_program() if native else ""
        self._processes = Processes("SimulatedBus", transport=transport, loss=loss, seed=seed)
        self.endpoint = self._processes.endpoint()
        # later than the beats of any coordinator before: these come five times a heartbeat
        self._state = self._root.start(random.getrandbits(32), time.time_ns())
        self._addresses = self._processes.addresses
        if not in_c:
            self._addresses[BASE] = self.endpoint.address
        self._signals: deque[Message] = deque()
        self._news = threading.Condition()
        self._open, self._warm = True, False
        self._bell, self._ring = socket.socketpair()
        self._ring.setblocking(False)
        self._failure: Exception | None = None
        self.clock = LoopClock(self.period)
        self._memory = ""
        if self.plant is not None:
            self._memory = start_plant(self._processes, self.plant, msg.MOST_MODULES)
        if in_c:
            give = lambda command: self._processes.send(BASE, command)  # noqa: E731
            self.builder.operation = NativeOperation(self.period, give)
            options = {**options, "beat": self._state.beat}
            self._processes.start(BASE, NodeProgram, options, light=True, native=program)
        self._seen: CoordinatorState | None = None  # of the last robot built
        self._threads = [
            threading.Thread(target=self._repeat, args=(work,), name=name, daemon=True)
            for name, work in (("bus", self._carry), ("builder", self._build))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def clocked(self) -> bool:
        return self._drives is not None or super().clocked

    def kill(self, name: str) -> None:
        self._processes.kill(self.module(name).name)

    def is_alive(self, name: str) -> bool:
        """Return whether the module's process runs."""
        return self._processes.is_alive(name)

    def is_native(self, name: str) -> bool:
        """Return whether a module of this name runs in C."""
        return self._native is True or (self._native is not False and name in self._native)

    def pid(self, name: str) -> int:
        """The number of the module's process."""
        return self._processes.pid(name)

    @property
    def address(self) -> Any:
        """The address of the coordinator's socket, once it has started."""
        return self._addresses[BASE]

    def wait_until_warm(self) -> None:
        """Wait until coordinator and plant have compiled, so that first answers come quickly."""
        names = {BASE} if self.plant is None else {BASE, PLANT}
        started = lambda: names <= self._addresses.keys()  # noqa: E731
        if not self.wait(lambda: self._warm and started(), WARM_UP_TIMEOUT_S):
            raise StateError(f"coordinator and plant are not ready after {WARM_UP_TIMEOUT_S:g} s")

    def wait(self, until: Callable[[], bool], seconds: float = 10.0) -> bool:
        """Wait until a condition holds; False if it does not within so many seconds.

        Raises:
            Exception: Of the background threads since the last call; the bus goes on.
        """
        positive("seconds", seconds, "seconds")
        self._check_condition(until)
        with self._news:
            held = self._wait(lambda: self._failure is not None or until(), seconds)
            failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return held

    def _wait(self, until: Callable[[], bool], seconds: float) -> bool:
        end = time.monotonic() + seconds
        with self._news:
            while not until():
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._news.wait(min(left, POLL_S))  # some things change without news
        return True

    def close(self) -> None:
        """End all processes and threads."""
        with self._news:
            if not self._open:
                return
            self._open = False
            self._news.notify_all()
        self._wake()
        self._processes.end()
        for thread in self._threads:
            thread.join(END_TIMEOUT_S)
        self._processes.close()
        self.endpoint.close()
        self._bell.close()
        self._ring.close()
        if self._memory:
            Path(self._memory).unlink(missing_ok=True)

    @property
    def coordinator(self) -> CoordinatorState:
        return self._state

    def settled(self, modules: int) -> bool:
        if not self._in_c:
            return super().settled(modules)
        operation = self.builder.operation
        assert isinstance(operation, NativeOperation)
        operation.check_alive()
        names = self.robot.assembly.names
        whole = len(names) == modules and not self._replaced.intersection(names)
        measured = self._driven_in_c and bool(np.isfinite(self.operation.status().q).all())
        return whole and measured and self.builder.is_built(self._state)

    def _launch(self, module: BusModule) -> None:
        node = module.node
        settings = {
            "uid": node.uid,
            "record": node.record.hex(),
            "name": node.name,
            "ports": node.ports,
            "heartbeat": node.heartbeat,
        }
        if self._drives is not None:
            settings["drive"] = _checked_drive(self._drives(module.name))
        elif self.plant is not None:
            slot = list(self.modules).index(module.name)
            settings["drive"] = [SHARED_DRIVE, {"path": self._memory, "slot": slot}]
        self._addresses.pop(module.name, None)
        native = self._program if self.is_native(module.name) else ""
        if native:
            _check_native(module)
        self._processes.start(module.name, NodeProgram, settings, light=True, native=native)
        self._wake()

    def _plant(self, event: dict[str, Any]) -> None:
        if "add" in event:
            event = {**event, "slot": list(self.modules).index(event["add"])}
        self._processes.send(PLANT, event)

    def _connect(self, one: End, other: End) -> None:
        names = (one[0], other[0])
        up = lambda: all(name in self._addresses for name in names)  # noqa: E731
        ended = lambda: not all(name == BASE or self.is_alive(name) for name in names)  # noqa: E731
        self._wait(lambda: up() or ended(), START_TIMEOUT_S)
        if not up() and not self.wait(up, END_TIMEOUT_S):  # which raises the reason, if it is known
            raise StateError(f"{' and '.join(names)} have not come up in {START_TIMEOUT_S:g} s")
        for (name, port), (there, their_port) in ((one, other), (other, one)):
            address = self._addresses[there]
            if name == BASE and not self._in_c:
                self.endpoint.plug(port, address, their_port)
            else:
                self._processes.plug((name, port), address, their_port)

    def _disconnect(self, one: End, other: End) -> None:
        for name, port in (one, other):
            if name == BASE and not self._in_c:
                self.endpoint.unplug(port)
            else:
                self._processes.unplug((name, port))

    def _signal(self, name: str, signal: msg.Signal | msg.BusMessage) -> None:
        if name == BASE and not self._in_c:
            self._signals.append(msg.own(signal))
            self._wake()
        else:
            self._processes.send(name, {"signal": msg.pack(signal).hex()})

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it will wake anyway
            self._ring.send(b"!")

    def _repeat(self, work: Callable[[], None]) -> None:
        """Work until the bus is closed; `wait` raises errors, and the work goes on."""
        while self._open:
            try:
                work()
            except Exception as error:
                with self._news:
                    if self._open:
                        self._failure = error
                        self._news.notify_all()
                        self._news.wait(self.heartbeat / HELLOS)

    def _carry(self) -> None:
        """Move datagrams, and read the answers of processes."""
        pipes = self._processes.pipes()
        wake = min(self._state.wake, self.clock.due) if self.clocked else self._state.wake
        wait = self.heartbeat if self._in_c else max(0.0, wake - time.monotonic())
        ready, _, _ = select.select([self.endpoint, self._bell, *pipes], [], [], wait)
        if self._bell in ready:
            self._bell.recv(4096)
        answered = [pipe for pipe in pipes if pipe in ready]
        with self._news:
            for pipe in answered:
                self._listen(pipe)
            if answered:
                self._news.notify_all()
        if self._in_c:
            return
        signals = [self._signals.popleft() for _ in range(len(self._signals))]
        self._step(signals)  # on its own: a datagram cannot keep the coordinator from signals
        self._step(self.endpoint.receive())
        if self.clocked and self.clock.is_due(now := time.monotonic()):
            self._state, outbox = self._cycle(self._state, now)
            self.endpoint.send(outbox)

    def _step(self, inbox: list[Message]) -> None:
        """One step of the coordinator."""
        before = self._state
        state, outbox = self._root.step(before, inbox, time.monotonic())
        self.endpoint.send(outbox)
        with self._news:
            self._state = state
            if not self._same(before, state):
                self._news.notify_all()

    def _listen(self, pipe: int) -> None:
        name, events = self._processes.listen(pipe)
        if events is None:
            self._driven(name, ())
            if name in LOST and self._open:
                reason, operation = f"{LOST[name]}; start a new bus", self.builder.operation
                if name == BASE:
                    assert isinstance(operation, NativeOperation)
                    operation.end(reason)
                raise StateError(reason)
            return
        for event in events:
            if "stored" in event:
                self._stored(name, bytes.fromhex(event["stored"]))
            elif "drive" in event:
                self._driven(name, tuple(event["drive"]))
            elif "tree" in event:
                self._tree = event["tree"]
                self._state = told_state(self._state, self._tree, self._memory_of)
            elif "state" in event:
                self._take_state(event["state"])
            elif "error" in event:
                ended = "" if name == PLANT else f"the process of '{name}' has ended: "
                raise StateError(ended + event["error"])

    def _take_state(self, told: dict[str, Any]) -> None:
        """Take the state of the robot that a coordinator in C has told."""
        rows, operation = told["modules"], self.builder.operation
        assert isinstance(operation, NativeOperation)
        self._state = with_readings(self._state, rows)
        operation.tell(told, self._state.table)
        self.builder.take_torques(
            {Address(int(row[0], 16), row[1]): tuple(row[-1]) for row in rows}
        )
        self._driven_in_c = told["driven"]
        self.clock.ticks, self.clock.missed = told["cycles"], told["missed"]

    def _stored(self, name: str, record: bytes) -> None:
        super()._stored(name, record)
        if self._in_c:  # which may have told the tree before the module told its memory
            self._state = told_state(self._state, self._tree, self._memory_of)

    def _memory_of(self, name: str) -> bytes | None:
        """The content of a module's memory."""
        return self.modules[name].node.record if name in self.modules else None

    def _build(self) -> None:
        """Build a robot whenever the coordinator's state changes."""
        if not self._warm:
            self.builder.warm_up()
        with self._news:
            self._warm = True
            self._news.notify_all()
            # for commands of the user
            patience = None if self.clocked or self._in_c else self.heartbeat
            while self._open and self._seen is not None and self._same(self._state, self._seen):
                if not self._news.wait(patience):
                    break
            if not self._open:
                return
            self._seen = self._state
        if self._in_c:
            self.builder.rebuild(self._seen)
        elif not self.clocked:
            self._signals.extend(self.builder.update(self._seen, time.monotonic()))
        elif self.builder.rebuild(self._seen):
            gains = self.builder.operation.hold_gains().items()
            self._signals.extend(msg.own(msg.HoldGains(m, values)) for m, values in gains)
        self._wake()
        with self._news:
            self._news.notify_all()

    def _same(self, a: CoordinatorState, b: CoordinatorState) -> bool:
        """Return whether two states ask for the same robot and, without a clock, torques."""
        if a.survey is not b.survey or a.ready != b.ready:
            return False
        ticks = self.clocked or self._in_c
        return a.table is b.table or (ticks and a.revision == b.revision)


def _checked_native(native: Any) -> bool | tuple[str, ...]:
    if isinstance(native, bool):
        return native
    if isinstance(native, Collection) and all(isinstance(name, str) for name in native):
        names = () if isinstance(native, str) else tuple(native)
        if "" not in names and (names or not native):
            return names
    raise StateError(f"native is True, False or names such as ('m1', 'm2'), got {native!r:.60}")


def _native_settings(builder: RobotBuilder, period: float, heartbeat: float) -> dict[str, Any]:
    """Settings of a coordinator in C: gains are the same numbers for every joint."""
    law = builder.law(Organism.start("giusti_b").model("physical"), **builder.settings)
    if type(law) is not ComputedTorque:
        raise StateError(f"a coordinator in C has the law computed-torque, got {builder.law.key}")
    return {
        "ports": [PORT],
        "heartbeat": heartbeat,
        "gravity": builder.gravity.tolist(),
        "period": period,
        "sample_time": builder.settings.get("sample_time", 0.0),
        "k0": float(law.k0[0]),
        "k1": float(law.k1[0]),
    }


def _check_native(module: BusModule) -> None:
    """Refuse a module with labels of ports that its program in C cannot have.

    The keys of links depend on Python's text of a label, which in C is the label in quotes.
    """
    for label in module.node.ports:
        if not label.isascii() or repr(label) != f"'{label}'":
            raise StateError(
                f"port {label!r} of '{module.name}': labels of native modules are printable ASCII "
                "without quotes and backslashes; run this one in Python"
            )


def _checked_drive(drive: Any) -> tuple[str, dict[str, Any]]:
    match drive:
        case (str(name), dict(options)) if ":" in name:
            try:
                child.line(options)
            except (TypeError, ValueError, AttributeError):
                raise StateError(
                    f"options of a drive are numbers, texts, lists and dicts, got {options!r:.80}"
                ) from None
            return name, options
    raise StateError(
        "drives gives a class as 'package.module:Class' and a dict of its options, got "
        f"{drive!r:.80}"
    )


class LoopClock:
    """The clock of a loop in real time, and how late it was.

    Attributes:
        period: [s]
        due: Time of the next tick, on the monotonic clock. [s]
        ticks: Count so far.
        missed: Ticks that were left out because the loop was late by more than a period.
        late: Of the last ticks. [s]
    """

    def __init__(self, period: float) -> None:
        self.period, self.due = period, time.monotonic()
        self.ticks = self.missed = 0
        self.late: deque[float] = deque(maxlen=KEPT_TICKS)

    def is_due(self, now: float) -> bool:
        """Return whether a tick is due, and count it."""
        if now < self.due:
            return False
        late = now - self.due
        left_out = int(late / self.period)
        self.ticks, self.missed = self.ticks + 1, self.missed + left_out
        self.late.append(late)
        self.due += (1 + left_out) * self.period
        return True
