"""`MassProcesses`: a mass network of real processes, one for each module, datagrams between them.

Modules send updates to each other all the time; their estimates are read on request.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from modurob.checks import positive
from modurob.distributed.agent import Message
from modurob.distributed.mass.agent import MassAgent
from modurob.distributed.mass.base import Network, ends_of
from modurob.distributed.mass.state import MassEstimate
from modurob.distributed.processes import START_TIMEOUT_S, Processes
from modurob.distributed.transports import DEFAULT
from modurob.errors import DockingError, StateError
from modurob.modules import ModuleType
from modurob.organism import Organism
from modurob.organism.docking import Docking

HEARTBEAT_S = 0.1
ANSWER_TIMEOUT_S = 10.0
POLL_INTERVAL_S = 0.01


class MassProgram:
    """The `Program` of a module's process. Its answers are estimates that were asked for."""

    agent_class: ClassVar[type[MassAgent]] = MassAgent

    def __init__(self, settings: Mapping[str, Any]) -> None:
        kind = ModuleType.model_validate(settings["kind"])
        self._agent = self.agent_class(kind, **settings["options"])
        self._state = self._agent.started({}, np.random.default_rng())

    @property
    def wake(self) -> float:
        return self._agent.wake(self._state)

    def step(
        self, inbox: list[Message], events: list[dict[str, Any]], now: float
    ) -> tuple[list[Message], list[dict[str, Any]]]:
        for event in events:
            self._state = self._agent.after(self._state, event)
        outbox = self._exchange(inbox, now)
        asked = [event["ask"] for event in events if "ask" in event]
        estimate = self._agent.view(self._state).to_dict() if asked else None
        return outbox, [{"answer": number, "knowledge": estimate} for number in asked]

    def _exchange(self, inbox: list[Message], now: float) -> list[Message]:
        """Take in messages; returns those to send."""
        self._state, outbox = self._agent.step(self._state, inbox, now)
        return outbox


class MassProcesses(Network):
    """Modules as processes on this machine; use it in a ``with`` block, or `close` it.

    Args:
        organism: The modules and their dockings; a process has its own neighbors only.
        transport: Name of a transport between processes.
        loss: Chance that a datagram is dropped, for trials.
        seed: Of those chances.
        heartbeat: Seconds after which a silent module repeats its update; with None, a dead module
            is noticed only by a neighbor with a new update.
        resend, give_up, tickets: See `MassAgent`.
    """

    program: ClassVar[type[MassProgram]] = MassProgram

    def __init__(
        self,
        organism: Organism,
        *,
        transport: str = DEFAULT,
        loss: float = 0.0,
        seed: int = 0,
        heartbeat: float | None = HEARTBEAT_S,
        **options: Any,
    ) -> None:
        options = {**options, "heartbeat": heartbeat}
        super().__init__(organism, **options)
        self._processes = Processes("MassNetwork", transport=transport, loss=loss, seed=seed)
        self._dockings = {entry.child: entry for entry in organism.dockings}
        self._docked: set[str] = set()
        self._questions = 0
        self._open = True
        try:
            self._start(options)
        except BaseException:
            self.close()
            raise

    def _start(self, options: dict[str, Any]) -> None:
        for name in self.organism:
            self._processes.start(name, self.program, self._job(name, options), light=False)
        end = time.monotonic() + START_TIMEOUT_S
        for name in self.organism:
            while name not in self._processes.addresses:
                self._hear(name, end)
        for name in self._dockings:
            self.plug(name)

    def _job(self, module: str, options: dict[str, Any]) -> dict[str, Any]:
        """Settings of a module's program."""
        kind = self.organism.kind(module).model_dump(mode="json")
        return {"kind": kind, "options": self._settings(module, options)}

    def plug(self, module: str) -> None:
        """Dock a module again where the organism has it."""
        entry = self._docking(module)
        if module in self._docked:
            raise DockingError(f"'{module}' is docked to '{entry.parent}' already")
        self._docked.add(module)
        one, other = ends_of(entry)
        for here, (there, port) in ((one, other), (other, one)):
            self._processes.plug(here, self._processes.addresses[there], port, turn=entry.turn)

    def unplug(self, module: str) -> None:
        """Undock a module, with all beyond it, from its parent."""
        entry = self._docking(module)
        if module not in self._docked:
            raise DockingError(f"'{module}' is not docked to '{entry.parent}'")
        self._docked.remove(module)
        for end in ends_of(entry):
            self._processes.unplug(end)

    def kill(self, module: str) -> None:
        """Kill a module's process: from now on it is silent."""
        self._processes.kill(module)

    def is_alive(self, module: str) -> bool:
        """Return whether the module's process runs."""
        return self._processes.is_alive(module)

    def pid(self, module: str) -> int:
        """The number of the module's process."""
        return self._processes.pid(module)

    def wait(self, until: Callable[[], bool], seconds: float = 10.0) -> bool:
        """Wait until a condition holds; False if it does not within so many seconds."""
        end = time.monotonic() + positive("seconds", seconds, "seconds")
        while not until():
            if time.monotonic() >= end:
                return False
            time.sleep(POLL_INTERVAL_S)
        return True

    def close(self) -> None:
        """End all processes."""
        self._open = False
        self._processes.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def knowledge(self, module: str) -> MassEstimate:
        self._agent(module)
        self._questions += 1
        self._event(module, {"ask": self._questions})
        end = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            for event in self._hear(module, end):
                if event["answer"] == self._questions:  # an earlier one may have come too late
                    return MassEstimate.from_dict(event["knowledge"])

    def _running(self) -> list[str]:
        return [name for name in self.organism if self.is_alive(name)]

    def _event(self, module: str, event: Mapping[str, Any]) -> None:
        if not self._open:
            raise StateError("the network is closed: its processes have ended")
        self._processes.send(module, event)

    def _hear(self, module: str, end: float) -> list[dict[str, Any]]:
        """Next answers of a module, until some time on the monotonic clock."""
        if self.is_alive(module):
            pipe = self._processes.pipe(module)
            ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise StateError(f"the process of '{module}' runs, but has not answered in time")
            _, events = self._processes.listen(pipe)
            for event in events or ():
                if "error" in event:
                    raise StateError(f"the process of '{module}' has ended: {event['error']}")
            if events is not None:
                return events
            self._processes.kill(module)  # a process that closes its output is ending
        raise StateError(f"'{module}' is dead: its process has ended")

    def _docking(self, module: str) -> Docking:
        self._agent(module)
        if module not in self._dockings:
            raise DockingError(f"'{module}' is the base: it is docked to no parent")
        return self._dockings[module]
