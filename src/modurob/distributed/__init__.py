"""Programs of modules that communicate: agents, transports, module bus, mass network, balance.

Names are imported on first use, so that a module's process loads only what it runs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modurob.distributed.agent import Agent, Message, play_round
    from modurob.distributed.balancing.agent import BalancingAgent
    from modurob.distributed.balancing.faults import Fault
    from modurob.distributed.balancing.network import BalancingNetwork
    from modurob.distributed.balancing.on_ground import Impulse, StandingNetwork, Stood, stand
    from modurob.distributed.balancing.plant import GearedDrive
    from modurob.distributed.balancing.processes import BalancingProcesses
    from modurob.distributed.balancing.result import Balanced
    from modurob.distributed.balancing.run import balance
    from modurob.distributed.bus.processes import ProcessBus
    from modurob.distributed.bus.simulated import SimulatedBus
    from modurob.distributed.mass import (
        LockStep,
        MassAgent,
        MassNetwork,
        MassProcesses,
        MassProperties,
    )
    from modurob.distributed.plant import Plant, PlantOptions
    from modurob.distributed.transports import TRANSPORTS, Endpoint, InProcess, Transport
    from modurob.distributed.transports.base import Counts

__all__ = [
    "TRANSPORTS",
    "Agent",
    "Balanced",
    "BalancingAgent",
    "BalancingNetwork",
    "BalancingProcesses",
    "Counts",
    "Endpoint",
    "Fault",
    "GearedDrive",
    "Impulse",
    "InProcess",
    "LockStep",
    "MassAgent",
    "MassNetwork",
    "MassProcesses",
    "MassProperties",
    "Message",
    "Plant",
    "PlantOptions",
    "ProcessBus",
    "SimulatedBus",
    "StandingNetwork",
    "Stood",
    "Transport",
    "balance",
    "play_round",
    "stand",
]

_HOMES = {
    "agent": ("Agent", "Message", "play_round"),
    "balancing.agent": ("BalancingAgent",),
    "balancing.faults": ("Fault",),
    "balancing.network": ("BalancingNetwork",),
    "balancing.plant": ("GearedDrive",),
    "balancing.processes": ("BalancingProcesses",),
    "balancing.result": ("Balanced",),
    "balancing.on_ground": ("Impulse", "StandingNetwork", "Stood", "stand"),
    "balancing.run": ("balance",),
    "bus.processes": ("ProcessBus",),
    "bus.simulated": ("SimulatedBus",),
    "mass": ("LockStep", "MassAgent", "MassNetwork", "MassProcesses", "MassProperties"),
    "plant": ("Plant", "PlantOptions"),
    "transports": ("TRANSPORTS", "Endpoint", "InProcess", "Transport"),
    "transports.base": ("Counts",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
            return value
    raise AttributeError(f"module 'modurob.distributed' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
