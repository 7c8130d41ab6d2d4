"""Gaits by name: references for joints over time. To add one, write a file and list its class."""

from modurob.errors import UnknownNameError, choices
from modurob.gaits.base import Gait, Reference, Synchronizing
from modurob.gaits.body import depths, neighbors
from modurob.gaits.chaotic import ChaoticMaps
from modurob.gaits.oscillators import Oscillators
from modurob.gaits.preview import preview
from modurob.gaits.sine import Sine
from modurob.gaits.wave import Wave

KINDS: tuple[type[Gait], ...] = (Sine, Wave, Oscillators, ChaoticMaps)
GAITS: dict[str, type[Gait]] = {kind.name: kind for kind in KINDS}

__all__ = [
    "GAITS",
    "ChaoticMaps",
    "Gait",
    "Oscillators",
    "Reference",
    "Sine",
    "Synchronizing",
    "Wave",
    "depths",
    "gait_class",
    "neighbors",
    "preview",
]


def gait_class(name: object) -> type[Gait]:
    """The kind of gait of a name, or an error that lists them."""
    if isinstance(name, str) and name in GAITS:
        return GAITS[name]
    raise UnknownNameError(f"no gait {name!r}: gaits are {choices(GAITS)}")
