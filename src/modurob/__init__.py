"""modurob: equations of modular robots, made in the moment the body changes."""

from modurob import spatial
from modurob.errors import (
    DatasheetError,
    DockingError,
    FileError,
    MatrixError,
    ModurobError,
    SizeError,
    StateError,
    UnknownNameError,
    WriteError,
)
from modurob.model import Model
from modurob.modules import Body, Joint, ModuleType, Port, Shape, catalog
from modurob.organism import Aim, Organism, examples, load

__version__ = "0.1.0"

__all__ = [
    "Aim",
    "Body",
    "DatasheetError",
    "DockingError",
    "FileError",
    "Joint",
    "MatrixError",
    "Model",
    "ModuleType",
    "ModurobError",
    "Organism",
    "Port",
    "Shape",
    "SizeError",
    "StateError",
    "UnknownNameError",
    "WriteError",
    "catalog",
    "examples",
    "load",
    "spatial",
]
