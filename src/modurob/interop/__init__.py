"""Exchange with other programs: URDF, SRDF, MJCF, CoBRA; PyTorch, JAX and CasADi.

Conversions between conventions live here and nowhere else.
"""

from modurob.interop import casadi, jax, torch
from modurob.interop.cobra import (
    read_cobra_assembly,
    read_cobra_modules,
    write_cobra_assembly,
    write_cobra_modules,
)
from modurob.interop.conventions import LossWarning
from modurob.interop.mjcf import write_mjcf
from modurob.interop.srdf import write_srdf
from modurob.interop.urdf import write_urdf
from modurob.interop.urdf_reader import read_urdf

__all__ = [
    "LossWarning",
    "casadi",
    "jax",
    "read_cobra_assembly",
    "read_cobra_modules",
    "read_urdf",
    "torch",
    "write_cobra_assembly",
    "write_cobra_modules",
    "write_mjcf",
    "write_srdf",
    "write_urdf",
]
