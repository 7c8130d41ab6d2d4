"""Simulation: one entry, `simulate`, with orthogonal parts."""

from modurob.sim.command import Noise, PerBody
from modurob.sim.events import Audit, Dock, Event, Undock
from modurob.sim.failure import SimulationError
from modurob.sim.integrators import INTEGRATORS
from modurob.sim.part import Part
from modurob.sim.simulate import simulate
from modurob.sim.stops import Stops
from modurob.sim.trajectory import Trajectory

__all__ = [
    "INTEGRATORS",
    "Audit",
    "Dock",
    "Event",
    "Noise",
    "Part",
    "PerBody",
    "SimulationError",
    "Stops",
    "Trajectory",
    "Undock",
    "simulate",
]
