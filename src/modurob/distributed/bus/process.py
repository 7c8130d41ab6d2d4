"""One module as a process of the operating system: a thin loop around `Node`.

Standard input brings what happens to the module, one line of JSON each; when it ends, so does the
process, however the one that started it ended. Standard output tells its socket and its torques.
The package around is not imported: a module needs none of it, and starts in hundredths of a second.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
import types
from typing import Any


def without_the_package() -> None:
    """Make submodules of modurob importable without the imports of modurob itself."""
    package = types.ModuleType("modurob")
    package.__path__ = [os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))]
    sys.modules["modurob"] = package


def main() -> None:
    from modurob.distributed.agent import Message
    from modurob.distributed.bus import messages as say
    from modurob.distributed.bus.node import Node
    from modurob.distributed.transports.udp import Endpoint

    lines = Lines(0)
    [settings] = lines.read()
    rng = None
    if settings["loss"]:
        import random

        rng = random.Random(settings["seed"])
    endpoint = Endpoint(loss=settings["loss"], rng=rng)
    node = Node(
        settings["uid"],
        bytes.fromhex(settings["record"]),
        name=settings["name"],
        ports=settings["ports"],
        heartbeat=settings["heartbeat"],
    )
    state = node.start(int.from_bytes(os.urandom(4), "big"))
    tell({"address": endpoint.address})
    while True:
        wait = max(0.0, state.wake - time.monotonic())
        ready, _, _ = select.select([endpoint, 0], [], [], wait)
        inbox = endpoint.receive()
        for event in lines.read() if 0 in ready else ():
            inbox.append(Message(say.OWN, signal(event, endpoint)))
        state, outbox = node.step(state, inbox, time.monotonic())
        endpoint.send([message for message in outbox if message.port != say.OWN])
        for message in outbox:
            if message.port == say.OWN:
                tell({"drive": say.unpack_floats(message.payload)})


def signal(event: dict[str, Any], endpoint: Any) -> bytes:
    """What the module's sensors say of an event."""
    from modurob.distributed.bus import messages as say

    if "plug" in event:
        port = event["plug"]
        endpoint.plug(port, tuple(event["address"]), event["port"])
        return say.plugged(port, event["turn"])
    if "unplug" in event:
        endpoint.unplug(event["unplug"])
        return say.unplugged(event["unplug"])
    return say.sensed(event["sense"])


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
    try:
        os.write(1, json.dumps(event).encode() + b"\n")
    except OSError:  # nobody listens any more
        sys.exit(0)


if __name__ == "__main__":
    without_the_package()
    main()
