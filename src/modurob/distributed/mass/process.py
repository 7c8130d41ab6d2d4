"""One module of the mass network as a process: a thin loop around `MassAgent`.

Standard input brings what happens to the module, standard output tells its socket and, when asked,
what it knows.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from modurob.distributed.mass.agent import MassAgent
from modurob.distributed.mass.state import Knowledge, Module
from modurob.distributed.processes.child import Surroundings, tell
from modurob.modules import ModuleType


def main() -> None:
    around = Surroundings()
    kind = ModuleType.model_validate(around.settings["kind"])
    agent = MassAgent(kind, **around.settings["options"])
    state = agent.started({}, np.random.default_rng())
    while True:
        inbox, events = around.wait(agent.wake(state))
        for event in events:
            state = sensed(agent, state, event)
        state, outbox = agent.step(state, inbox, time.monotonic())
        around.endpoint.send(outbox)
        for event in events:
            if "ask" in event:
                knowledge = Knowledge.of(agent.view(state))
                tell({"answer": event["ask"], "knowledge": knowledge.to_dict()})


def sensed(agent: MassAgent, state: Module, event: dict[str, Any]) -> Module:
    """The module after an event."""
    if "plug" in event:
        return agent.plugged(state, event["plug"], event["turn"])
    if "unplug" in event:
        return agent.unplugged(state, event["unplug"])
    if "q" in event:
        return agent.sensed(state, np.array(event["q"]), np.array(event["v"]))
    if "contacts" in event:
        contacts, pose = np.array(event["contacts"]), np.array(event["pose"])
        return agent.in_contact(state, contacts, pose, event["body"])
    if "lift" in event:
        return agent.lifted(state)
    return state


if __name__ == "__main__":
    main()
