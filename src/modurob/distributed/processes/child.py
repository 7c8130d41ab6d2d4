"""A module's own process: standard input brings what happens to it, standard output what it tells.

Both are lines of JSON. When standard input ends, so does the process, however the one that started
it ended. Nothing heavy is imported here.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from typing import Any

from modurob.distributed.agent import Message
from modurob.distributed.transports.udp import Endpoint

LONGEST = 3600.0  # [s] to wait in one go: there is no waiting forever with a number


class Surroundings:
    """What a process sees of the world: its settings, its ports, and what happens.

    Attributes:
        settings: The first line it was given.
        endpoint: Its socket, whose address is told at once.
    """

    def __init__(self) -> None:
        self._lines = Lines(0)
        self.settings, *self._events = self._lines.read()
        rng = None
        if self.settings["loss"]:
            import random  # slow to load, and seldom needed

            rng = random.Random(self.settings["seed"])
        self.endpoint = Endpoint(loss=self.settings["loss"], rng=rng)
        tell({"address": self.endpoint.address})

    def wait(self, until: float) -> tuple[list[Message], list[dict[str, Any]]]:
        """What came in at the ports and what happened, as soon as there is something.

        Ports are plugged and unplugged here; the events are handed on all the same.

        Args:
            until: When to return with nothing, on the monotonic clock. [s]
        """
        events, self._events = self._events, []
        if not events:
            wait = min(max(0.0, until - time.monotonic()), LONGEST)
            ready, _, _ = select.select([self.endpoint, 0], [], [], wait)
            events = self._lines.read() if 0 in ready else []
        inbox = self.endpoint.receive()
        for event in events:
            if "plug" in event:
                self.endpoint.plug(event["plug"], tuple(event["address"]), event["port"])
            elif "unplug" in event:
                self.endpoint.unplug(event["unplug"])
        return inbox, events


class Lines:
    """Whole lines of JSON from a pipe; the process ends when the pipe does."""

    def __init__(self, pipe: int) -> None:
        self.pipe, self.rest = pipe, b""

    def read(self) -> list[dict[str, Any]]:
        """All lines that are there; waits for one."""
        while b"\n" not in self.rest:
            data = os.read(self.pipe, 1 << 16)
            if not data:
                sys.exit(0)
            self.rest += data
        *whole, self.rest = self.rest.split(b"\n")
        return [json.loads(line) for line in whole]


def tell(event: dict[str, Any]) -> None:
    """One line on standard output."""
    try:
        os.write(1, json.dumps(event).encode() + b"\n")
    except OSError:  # nobody listens any more
        sys.exit(0)
