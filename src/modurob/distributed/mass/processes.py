"""`MassProcesses`: a mass network of real processes, one for each module, datagrams between them.

Modules talk to each other all the time; here nothing is known that was not asked for.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from modurob.checks import positive
from modurob.distributed.mass.base import Network
from modurob.distributed.mass.state import Knowledge
from modurob.distributed.processes.parent import STARTING, Processes
from modurob.distributed.transports.in_process import chance
from modurob.errors import DockingError, StateError
from modurob.organism import Organism
from modurob.organism.docking import Docking

PROGRAM = ("-P", "-m", "modurob.distributed.mass.process")
HEARTBEAT = 0.1  # [s]
ANSWERING = 10.0  # [s] that a process may take to say what it knows
GLANCE = 0.01  # [s] between two looks at what is waited for


class MassProcesses(Network):
    """Modules as processes on this machine; use it in a ``with`` block, or `close` it.

    Args:
        organism: Who is docked to whom; each process knows its own neighbors only.
        loss: Chance that a datagram is thrown away, for trials.
        seed: Of those chances.
        heartbeat: Seconds after which a silent module repeats its news; with None, a module that
            dies is missed only when somebody has news for it.
        resend, give_up, tickets: See `MassAgent`.
    """

    def __init__(
        self,
        organism: Organism,
        *,
        loss: float = 0.0,
        seed: int = 0,
        heartbeat: float | None = HEARTBEAT,
        **options: Any,
    ) -> None:
        options = {**options, "heartbeat": heartbeat}
        super().__init__(organism, **options)
        self._processes = Processes("MassNetwork", loss=chance("loss", loss), seed=seed)
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
        # what can be imported here can be imported there; 4 x 4 matrices need no threads
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
        for name in self.organism:
            kind = self.organism.kind(name).model_dump(mode="json")
            settings = {"kind": kind, "options": options}
            self._processes.start(name, PROGRAM, settings, environment)
        end = time.monotonic() + STARTING
        for name in self.organism:
            while name not in self._processes.addresses:
                self._hear(name, end)
        for name in self._dockings:
            self.plug(name)

    # -- what a user does ------------------------------------------------------------------------

    def plug(self, module: str) -> None:
        """Dock a module again where the organism has it."""
        entry = self._docking(module)
        if module in self._docked:
            raise DockingError(f"'{module}' is docked to '{entry.parent}' already")
        self._docked.add(module)
        one, other = _ends(entry)
        for here, (there, port) in ((one, other), (other, one)):
            self._processes.plug(here, self._processes.addresses[there], port, entry.turn)

    def unplug(self, module: str) -> None:
        """Undock a module, with all that hangs on it, from the one that it hangs on."""
        entry = self._docking(module)
        if module not in self._docked:
            raise DockingError(f"'{module}' is not docked to '{entry.parent}'")
        self._docked.remove(module)
        for end in _ends(entry):
            self._processes.unplug(end)

    def kill(self, module: str) -> None:
        """Let a module die where it is: from now on it is silent."""
        self._agent(module)
        self._processes.kill(module)

    def is_alive(self, module: str) -> bool:
        """Whether the module's process runs."""
        self._agent(module)
        return self._processes.is_alive(module)

    def pid(self, module: str) -> int:
        """The number of the module's process."""
        self._agent(module)
        return self._processes.pid(module)

    def wait(self, until: Callable[[], bool], seconds: float = 10.0) -> bool:
        """Wait until something holds; whether it did within so many seconds."""
        end = time.monotonic() + positive("seconds", seconds, "seconds")
        while not until():
            if time.monotonic() >= end:
                return False
            time.sleep(GLANCE)
        return True

    def close(self) -> None:
        """End all processes."""
        self._open = False
        self._processes.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    # -- as `Network` wants it -------------------------------------------------------------------

    def knowledge(self, module: str) -> Knowledge:
        self._agent(module)
        self._questions += 1
        self._tell(module, {"ask": self._questions})
        end = time.monotonic() + ANSWERING
        while True:
            for event in self._hear(module, end):
                if event["answer"] == self._questions:  # an earlier one may have come too late
                    return Knowledge.from_dict(event["knowledge"])

    def _sensed(self, module: str, q: np.ndarray, v: np.ndarray) -> None:
        self._tell(module, {"q": q.tolist(), "v": v.tolist()})

    def _touched(self, module: str, contacts: np.ndarray, pose: np.ndarray, body: int) -> None:
        event = {"contacts": contacts.tolist(), "pose": pose.tolist(), "body": body}
        self._tell(module, event)

    def _lifted(self, module: str) -> None:
        self._tell(module, {"lift": True})

    def _speaking(self) -> list[str]:
        return [name for name in self.organism if self.is_alive(name)]

    def _tell(self, module: str, event: dict[str, Any]) -> None:
        if not self._open:
            raise StateError("the network is closed: its processes have ended")
        self._processes.tell(module, event)

    def _hear(self, module: str, end: float) -> list[dict[str, Any]]:
        """What a module tells next, until some time on the monotonic clock."""
        if self.is_alive(module):
            pipe = self._processes.pipe(module)
            ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise StateError(f"the process of '{module}' runs, but has not answered in time")
            _, events = self._processes.listen(pipe)
            if events is not None:
                return events
            self._processes.kill(module)  # whoever closes its output is ending
        raise StateError(f"'{module}' is dead: its process has ended")

    def _docking(self, module: str) -> Docking:
        self._agent(module)
        if module not in self._dockings:
            raise DockingError(f"'{module}' is the base: it hangs on no other module")
        return self._dockings[module]


def _ends(entry: Docking) -> tuple[tuple[str, str], tuple[str, str]]:
    return (entry.parent, str(entry.port)), (entry.child, str(entry.child_port))
