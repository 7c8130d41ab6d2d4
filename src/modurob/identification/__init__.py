"""Identification: numbers of datasheets from recorded runs, and motions that excite them."""

from modurob.identification.fit import BaseParameter, Identification, Suspect, identify

__all__ = ["BaseParameter", "Identification", "Suspect", "identify"]
