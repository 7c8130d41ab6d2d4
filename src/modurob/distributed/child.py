"""A module's own process: a thin loop around the module's program.

Standard input brings settings and events, standard output takes the socket's address and the
program's answers; both are lines of JSON. When standard input ends, so does the process, however
its parent ended; when its parent has changed as well, in case a copy of the parent keeps the input
open. `processes` has the parent's side. This file is run by its path.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import types
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
LONGEST_WAIT_S = 1.0  # in one go; then comes a look at the parent


class Program(Protocol):
    """The program of a module, made from the settings.

    Attributes:
        wake: Time of the next step if nothing comes in, on the monotonic clock. [s]
    """

    @property
    def wake(self) -> float: ...

    def step(
        self, inbox: list[Any], events: list[dict[str, Any]], now: float
    ) -> tuple[list[Any], list[dict[str, Any]]]:
        """Return messages to send, and answers to the parent."""
        ...


class Lines:
    """Whole lines of JSON from a pipe."""

    def __init__(self, pipe: int) -> None:
        self.pipe, self.rest = pipe, b""

    def read(self) -> list[dict[str, Any]] | None:
        """Wait for bytes and return the lines that are complete; None at the end."""
        data = os.read(self.pipe, 1 << 16)
        if not data:
            return None
        *whole, self.rest = (self.rest + data).split(b"\n")
        return [json.loads(line) for line in whole]


def without_the_package() -> None:
    """Make submodules of modurob importable without the imports of modurob itself.

    A node of the bus needs none of them, and starts in hundredths of a second.
    """
    package = types.ModuleType("modurob")
    package.__path__ = [os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))]
    sys.modules["modurob"] = package


def main() -> None:
    try:
        run()
    except Exception as error:  # for the parent: its user gets one line and no traceback
        _write({"error": f"{type(error).__name__}: {error}"})
        sys.exit(1)


def run() -> None:
    """Run the program of the settings until the parent ends."""
    parent = os.getppid()
    lines = Lines(0)
    events: list[dict[str, Any]] = []
    while not events:
        events = _received(lines)
    settings, *events = events
    sys.path += [place for place in settings["path"] if place not in sys.path]
    os.environ["OMP_NUM_THREADS"] = "1"  # 4 x 4 matrices need no threads
    if settings["light"]:
        without_the_package()
    rng = None
    if settings["loss"]:
        import random  # slow to load, and seldom needed

        rng = random.Random(settings["seed"])
    key = bytes.fromhex(settings.pop("key"))  # the program has no use for it
    endpoint = loaded(settings["transport"])(key=key, loss=settings["loss"], rng=rng)
    program: Program = loaded(settings["program"])(settings)
    _write({"address": endpoint.address})
    _continue_without_parent()
    while os.getppid() == parent:
        if not events:
            wait = min(max(0.0, program.wake - time.monotonic()), LONGEST_WAIT_S)
            ready, _, _ = select.select([endpoint, 0], [], [], wait)
            events = _received(lines) if 0 in ready else []
        inbox = endpoint.receive()
        for event in events:
            if "plug" in event:
                endpoint.plug(event["plug"], event["address"], event["port"])
            elif "unplug" in event:
                endpoint.unplug(event["unplug"])
        outbox, answers = program.step(inbox, events, time.monotonic())
        endpoint.send(outbox)
        for answer in answers:
            _write(answer)
        events = []


def _continue_without_parent() -> None:
    """Let Linux continue this process, if it is stopped, when its parent ends: then it ends too."""
    if sys.platform == "linux":
        import ctypes  # after the address, for which the parent waits

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGCONT)


def _received(lines: Lines) -> list[dict[str, Any]]:
    events = lines.read()
    if events is None:
        sys.exit(0)
    return events


def line(event: Mapping[str, Any]) -> bytes:
    """An event as a line of JSON; arrays become nested lists."""
    return json.dumps(event, default=lambda array: array.tolist()).encode() + b"\n"


def _write(event: dict[str, Any]) -> None:
    try:
        os.write(1, line(event))
    except OSError:  # the parent has ended
        sys.exit(0)


def loaded(path: str) -> Any:
    """The class of a path such as ``package.module:Class``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


if __name__ == "__main__":
    main()
