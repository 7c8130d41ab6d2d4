"""What a transport has carried."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Counts:
    """Messages so far.

    When nothing is under way, ``sent + duplicated == delivered + lost``.

    Attributes:
        sent: Handed over by modules.
        delivered: Laid into inboxes, copies included.
        lost: Dropped on the way, sent into an open port, or to or from a dead module.
        duplicated: Copies that the transport made.
        bytes: Of payloads sent.
    """

    sent: int = 0
    delivered: int = 0
    lost: int = 0
    duplicated: int = 0
    bytes: int = 0
