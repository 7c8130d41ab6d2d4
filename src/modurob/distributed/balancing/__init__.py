"""Decentralized balance: modules that steer the center of mass of the whole."""

from modurob.distributed.balancing.faults import Fault
from modurob.distributed.balancing.laws import LAWS
from modurob.distributed.balancing.plant import Drive
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
    "Drive",
    "Fault",
    "Region",
    "balance",
    "stability_region",
    "support_polygon",
    "waypoints",
]
