"""Mass properties of the whole, found by modules that talk to their neighbors only."""

from modurob.distributed.mass.agent import MassAgent
from modurob.distributed.mass.lockstep import LockStep
from modurob.distributed.mass.network import MassNetwork
from modurob.distributed.mass.processes import MassProcesses
from modurob.distributed.mass.properties import MassProperties

__all__ = ["LockStep", "MassAgent", "MassNetwork", "MassProcesses", "MassProperties"]
