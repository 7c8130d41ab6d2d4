"""Identification: numbers of datasheets from recorded runs, and motions that excite them."""

from modurob.identification.excitation import FourierSeries, exciting_motion
from modurob.identification.fit import BaseParameter, Identification, identify
from modurob.identification.suspects import Suspect

__all__ = [
    "BaseParameter",
    "FourierSeries",
    "Identification",
    "Suspect",
    "exciting_motion",
    "identify",
]
