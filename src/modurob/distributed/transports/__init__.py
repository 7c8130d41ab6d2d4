"""Transports, chosen by name: `TRANSPORTS["mine"] = Mine` adds one.

A `Transport` works within one process. An `Endpoint` is the socket of one module and works within
one process and between processes; networks and buses of both kinds take either by its name.
"""

from collections.abc import Iterable
from typing import Any

from modurob.distributed.transports.base import End, Endpoint, EndpointNetwork, Transport
from modurob.distributed.transports.in_process import InProcess
from modurob.distributed.transports.udp import Udp
from modurob.errors import StateError, UnknownNameError, choices

TRANSPORTS: dict[str, type[Transport] | type[Endpoint]] = {"in_process": InProcess, "udp": Udp}
DEFAULT = "udp"  # between processes


def network(name: str, links: Iterable[tuple[End, End]] = (), **options: Any) -> Transport:
    """Make a network of a transport within this process; options such as loss and rng."""
    kind = _named(name)
    try:
        if issubclass(kind, Endpoint):
            return EndpointNetwork(kind, links, **options)
        return kind(links, **options)
    except TypeError as error:
        raise StateError(f"transport {name!r} does not take these options: {error}") from None


def between_processes() -> list[str]:
    """Names of the transports that work between processes."""
    return [name for name, kind in TRANSPORTS.items() if issubclass(kind, Endpoint)]


def endpoint_class(name: str) -> type[Endpoint]:
    """Return the class of a transport's endpoints, for modules as processes."""
    kind = _named(name)
    if not issubclass(kind, Endpoint):
        raise StateError(
            f"transport {name!r} works within one process only: between processes there are "
            f"{choices(between_processes())}"
        )
    return kind


def _named(name: str) -> type[Transport] | type[Endpoint]:
    if not isinstance(name, str) or name not in TRANSPORTS:
        raise UnknownNameError(f"no transport {name!r}: transports are {choices(TRANSPORTS)}")
    return TRANSPORTS[name]
