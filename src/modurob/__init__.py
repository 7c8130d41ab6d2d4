"""modurob: equations of modular robots, generated when the body changes."""

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
from modurob.loading import load
from modurob.model import Model
from modurob.modules import Body, Joint, Mesh, ModuleType, Port, Shape, catalog
from modurob.organism import Aim, Organism, examples

if TYPE_CHECKING:
    from modurob import (
        control,
        distributed,
        drawing,
        estimation,
        gaits,
        identification,
        interop,
        population,
        sim,
        symbolic,
        verification,
        walking,
    )
    from modurob.identification import identify
    from modurob.population import JointWaves, Population
    from modurob.scenario.scenario import Scenario
    from modurob.sim import (
        ConnectorLoads,
        Dock,
        Ground,
        SimulationError,
        Trajectory,
        Undock,
        connector_loads,
        simulate,
    )
    from modurob.symbolic import Equations
    from modurob.walking import walk

__version__ = "0.1.0"

__all__ = [
    "Aim",
    "Body",
    "ConnectorLoads",
    "DatasheetError",
    "Dock",
    "DockingError",
    "Equations",
    "FileError",
    "Ground",
    "Joint",
    "JointWaves",
    "MatrixError",
    "Mesh",
    "Model",
    "ModelWarning",
    "ModuleType",
    "ModurobError",
    "Organism",
    "Population",
    "Port",
    "Scenario",
    "Shape",
    "SimulationError",
    "SizeError",
    "StateError",
    "Trajectory",
    "Undock",
    "UnknownNameError",
    "WriteError",
    "catalog",
    "connector_loads",
    "control",
    "distributed",
    "drawing",
    "estimation",
    "examples",
    "gaits",
    "identification",
    "identify",
    "interop",
    "load",
    "population",
    "sim",
    "simulate",
    "spatial",
    "symbolic",
    "verification",
    "walk",
    "walking",
]

# Names and packages that are loaded on first use: their imports take longer than building an
# organism.
_LAZY = {
    "ConnectorLoads": "sim",
    "Dock": "sim",
    "Equations": "symbolic",
    "Ground": "sim",
    "JointWaves": "population",
    "Population": "population",
    "Scenario": "scenario.scenario",
    "SimulationError": "sim",
    "Trajectory": "sim",
    "Undock": "sim",
    "connector_loads": "sim",
    "identify": "identification",
    "simulate": "sim",
    "walk": "walking",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = globals()[name] = getattr(import_module(f"modurob.{_LAZY[name]}"), name)
        return value
    if name in __all__:
        return import_module(f"modurob.{name}")
    raise AttributeError(f"module 'modurob' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
