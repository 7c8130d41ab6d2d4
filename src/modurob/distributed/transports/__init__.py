"""How messages travel from port to port: in one process, or as datagrams between processes."""

from modurob.distributed.transports.counts import Counts
from modurob.distributed.transports.in_process import InProcess
from modurob.distributed.transports.udp import Endpoint, Udp

# What the contract tests run over.
TRANSPORTS = {"InProcess": InProcess, "Udp": Udp}

__all__ = ["TRANSPORTS", "Counts", "Endpoint", "InProcess", "Udp"]
