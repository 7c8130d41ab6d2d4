"""modurob: equations of modular robots, made in the moment the body changes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from modurob import spatial
from modurob.errors import (
    DatasheetError,
    DockingError,
    FileError,
    MatrixError,
    ModelWarning,
    ModurobError,
    SizeError,
    StateError,
    UnknownNameError,
    WriteError,
)
from modurob.model import Model
from modurob.modules import Body, Joint, Mesh, ModuleType, Port, Shape, catalog
from modurob.organism import Aim, Organism, examples, load

if TYPE_CHECKING:
    from modurob import control, distributed, estimation, gaits, interop, symbolic
    from modurob.scenario.scenario import Scenario
    from modurob.sim import Dock, Trajectory, Undock, simulate
    from modurob.symbolic import Equations

__version__ = "0.1.0"

__all__ = [
    "Aim",
    "Body",
    "DatasheetError",
    "Dock",
    "DockingError",
    "Equations",
    "FileError",
    "Joint",
    "MatrixError",
    "Mesh",
    "Model",
    "ModelWarning",
    "ModuleType",
    "ModurobError",
    "Organism",
    "Port",
    "Scenario",
    "Shape",
    "SizeError",
    "StateError",
    "Trajectory",
    "Undock",
    "UnknownNameError",
    "WriteError",
    "catalog",
    "control",
    "distributed",
    "estimation",
    "examples",
    "gaits",
    "interop",
    "load",
    "simulate",
    "spatial",
    "symbolic",
]

# Loaded on first use: what they need takes longer to import than an organism takes to build.
_PACKAGES = ("control", "distributed", "estimation", "gaits", "interop", "symbolic")
_LAZY = {"Equations": "modurob.symbolic", "Scenario": "modurob.scenario.scenario"}
_LAZY |= dict.fromkeys(("Dock", "Trajectory", "Undock", "simulate"), "modurob.sim")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"modurob.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'modurob' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PACKAGES, *_LAZY})
