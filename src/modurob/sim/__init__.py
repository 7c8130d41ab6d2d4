"""Simulation: one entry, `simulate`, with orthogonal parts."""

from modurob.sim.actuation import Noise, PerBody
from modurob.sim.body_trajectory import BodyTrajectory
from modurob.sim.loads import ConnectorBreak, ConnectorLoads, connector_loads
from modurob.sim.reconfiguration.events import Dock, Event, EventReport, Undock
from modurob.sim.simulate import ENGINES, simulate
from modurob.sim.trajectory import SimulationError, Trajectory
from modurob.stepping import INTEGRATORS, FixedStep, Ground, Integrator, LinearStops, Stops

__all__ = [
    "ENGINES",
    "INTEGRATORS",
    "BodyTrajectory",
    "ConnectorBreak",
    "ConnectorLoads",
    "Dock",
    "Event",
    "EventReport",
    "FixedStep",
    "Ground",
    "Integrator",
    "LinearStops",
    "Noise",
    "PerBody",
    "SimulationError",
    "Stops",
    "Trajectory",
    "Undock",
    "connector_loads",
    "simulate",
]
