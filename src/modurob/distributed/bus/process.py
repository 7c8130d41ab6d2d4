"""One module as a process of the operating system: a thin loop around `Node`.

Standard input brings what happens to the module, standard output tells its socket and its torques.
The package around is not imported: a module needs none of it, and starts in hundredths of a second.
"""

from __future__ import annotations

import os
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
    from modurob.distributed.processes.child import Surroundings, tell

    around = Surroundings()
    settings = around.settings
    node = Node(
        settings["uid"],
        bytes.fromhex(settings["record"]),
        name=settings["name"],
        ports=settings["ports"],
        heartbeat=settings["heartbeat"],
    )
    state = node.start(int.from_bytes(os.urandom(4), "big"))
    while True:
        inbox, events = around.wait(state.wake)
        inbox += [Message(say.OWN, signal(event)) for event in events]
        state, outbox = node.step(state, inbox, time.monotonic())
        around.endpoint.send([message for message in outbox if message.port != say.OWN])
        for message in outbox:
            if message.port == say.OWN:
                tell({"drive": say.unpack_floats(message.payload)})


def signal(event: dict[str, Any]) -> bytes:
    """What the module's sensors say of an event."""
    from modurob.distributed.bus import messages as say

    if "plug" in event:
        return say.plugged(event["plug"], event["turn"])
    if "unplug" in event:
        return say.unplugged(event["unplug"])
    return say.sensed(event["sense"])


if __name__ == "__main__":
    without_the_package()
    main()
