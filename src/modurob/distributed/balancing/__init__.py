"""Decentralized balance: modules that steer the center of mass of the whole."""

from modurob.distributed.balancing.faults import Fault
from modurob.distributed.balancing.laws import LAWS
from modurob.distributed.balancing.plant import GearedDrive
from modurob.distributed.balancing.result import Balanced
from modurob.distributed.balancing.run import balance
from modurob.distributed.balancing.support import (
    Region,
    stability_region,
    support_polygon,
    waypoints,
)

__all__ = [
    "LAWS",
    "Balanced",
    "Fault",
    "GearedDrive",
    "Region",
    "balance",
    "stability_region",
    "support_polygon",
    "waypoints",
]
