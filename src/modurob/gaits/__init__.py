"""Gaits by name: references for joints over time. To add one, write a file and `register` it."""

from modurob.gaits.base import GAITS, Gait, Reference, Synchronizing, gait_class, register
from modurob.gaits.body import depths, neighbors
from modurob.gaits.chaotic import ChaoticMaps
from modurob.gaits.oscillators import Oscillators
from modurob.gaits.preview import preview
from modurob.gaits.sine import Sine
from modurob.gaits.wave import Wave

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
    "register",
]
