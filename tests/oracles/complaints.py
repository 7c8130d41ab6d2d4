"""Errors as users meet them: one readable line, and nothing changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

from modurob import ModurobError, Organism

LONGEST_LINE = 1000  # characters; a message is read by a person in a terminal


@dataclass
class Complaint:
    """The error's line, once the block is over."""

    message: str = ""


@contextmanager
def complains(kind: type[ModurobError], *pieces: str) -> Iterator[Complaint]:
    """The block raises exactly this class, with one line that holds every piece."""
    complaint = Complaint()
    with pytest.raises(kind) as caught:
        yield complaint
    assert caught.type is kind
    message = complaint.message = str(caught.value)
    assert message.strip()
    assert len(message.splitlines()) == 1, message
    assert len(message) <= LONGEST_LINE, f"{len(message)} characters: {message[:200]} ..."
    for piece in pieces:
        assert piece in message, f"{piece!r} is not in: {message}"


@contextmanager
def unchanged(organism: Organism) -> Iterator[None]:
    """The block leaves the organism as it was, down to names, rows and columns."""
    before = _everything(organism)
    yield
    assert _everything(organism) == before


def _everything(organism: Organism) -> tuple[object, ...]:
    ports = {name: organism.free_ports(name) for name in organism.modules}
    places = {name: organism.place(name) for name in organism.modules}
    kinds = [organism.kind(name) for name in organism.modules]
    return (
        organism.base,
        np.asarray(organism.base_pose).tobytes(),
        organism.modules,
        organism.dockings,
        organism.canonical(),
        ports,
        places,
        kinds,
    )
