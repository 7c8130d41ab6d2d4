"""Modules that act on their own: agents, transports, the module bus, mass network, balance.

Names are imported on first use, so that a module's process loads only what it runs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modurob.distributed.agent import Agent, Message, play_round
    from modurob.distributed.balancing import Balanced, Drive, Fault, balance
    from modurob.distributed.bus.processes import ProcessBus
    from modurob.distributed.bus.simulated import SimulatedBus
    from modurob.distributed.mass import (
        LockStep,
        MassAgent,
        MassNetwork,
        MassProcesses,
        MassProperties,
    )
    from modurob.distributed.transports import TRANSPORTS, Counts, InProcess, Transport

__all__ = [
    "TRANSPORTS",
    "Agent",
    "Balanced",
    "Counts",
    "Drive",
    "Fault",
    "InProcess",
    "LockStep",
    "MassAgent",
    "MassNetwork",
    "MassProcesses",
    "MassProperties",
    "Message",
    "ProcessBus",
    "SimulatedBus",
    "Transport",
    "balance",
    "play_round",
]

_HOMES = {
    "Agent": "agent",
    "Balanced": "balancing",
    "Counts": "transports",
    "Drive": "balancing",
    "Fault": "balancing",
    "InProcess": "transports",
    "LockStep": "mass",
    "MassAgent": "mass",
    "MassNetwork": "mass",
    "MassProcesses": "mass",
    "MassProperties": "mass",
    "Message": "agent",
    "ProcessBus": "bus.processes",
    "SimulatedBus": "bus.simulated",
    "TRANSPORTS": "transports",
    "Transport": "transports",
    "balance": "balancing",
    "play_round": "agent",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'modurob.distributed' has no attribute {name!r}")
    home = import_module(f"modurob.distributed.{_HOMES[name]}")
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
