"""Decentralized balance: modules that steer the center of mass of the whole.

Names are imported on first use, so that a module's process loads only what it runs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modurob.distributed.balancing.agent import BalancingAgent
    from modurob.distributed.balancing.faults import Fault
    from modurob.distributed.balancing.laws import LAWS
    from modurob.distributed.balancing.network import BalancingNetwork
    from modurob.distributed.balancing.on_ground import Impulse, StandingNetwork, Stood, stand
    from modurob.distributed.balancing.plant import GearedDrive
    from modurob.distributed.balancing.processes import BalancingProcesses
    from modurob.distributed.balancing.result import Balanced
    from modurob.distributed.balancing.run import balance
    from modurob.distributed.balancing.stance import Foot, feet_of
    from modurob.distributed.balancing.standing import StandingAgent
    from modurob.distributed.balancing.support import (
        Region,
        stability_region,
        support_polygon,
        waypoints,
    )

__all__ = [
    "LAWS",
    "Balanced",
    "BalancingAgent",
    "BalancingNetwork",
    "BalancingProcesses",
    "Fault",
    "Foot",
    "GearedDrive",
    "Impulse",
    "Region",
    "StandingAgent",
    "StandingNetwork",
    "Stood",
    "balance",
    "feet_of",
    "stability_region",
    "stand",
    "support_polygon",
    "waypoints",
]

_HOMES = {
    "agent": ("BalancingAgent",),
    "faults": ("Fault",),
    "laws": ("LAWS",),
    "network": ("BalancingNetwork",),
    "plant": ("GearedDrive",),
    "processes": ("BalancingProcesses",),
    "result": ("Balanced",),
    "on_ground": ("Impulse", "StandingNetwork", "Stood", "stand"),
    "run": ("balance",),
    "stance": ("Foot", "feet_of"),
    "standing": ("StandingAgent",),
    "support": ("Region", "stability_region", "support_polygon", "waypoints"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
            return value
    raise AttributeError(f"module '{__name__}' has no attribute {name!r}")
