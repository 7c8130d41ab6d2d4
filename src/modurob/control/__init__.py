"""Control: one law a file, one contract: ``command(t, q, v, reference) -> tau``."""

from modurob.control import gains, references
from modurob.control.adaptation import Following, OutputFeedback, Transient, transient
from modurob.control.assumptions import Finding
from modurob.control.certificate import Certificate
from modurob.control.computed_torque import ComputedTorque
from modurob.control.controller import Controller, Slopes
from modurob.control.independent_pid import IndependentPid
from modurob.control.lqr import Lqr
from modurob.control.pd_gravity import PdGravity
from modurob.control.pid_linearized import PidLinearized
from modurob.control.plants import with_scaled_masses
from modurob.control.plots import plot_closed_loop
from modurob.control.pole_placement import PolePlacement
from modurob.control.response import StepResponse, step_response
from modurob.control.robustness import Robustness, RobustnessCase, robustness
from modurob.reference import Reference

# What the contract tests run over: each is made from a model alone, with default gains.
CONTROLLERS: dict[str, type[Controller]] = {
    law.__name__: law
    for law in (ComputedTorque, PolePlacement, PidLinearized, PdGravity, IndependentPid, Lqr)
}

__all__ = [
    "CONTROLLERS",
    "Certificate",
    "ComputedTorque",
    "Controller",
    "Finding",
    "Following",
    "IndependentPid",
    "Lqr",
    "OutputFeedback",
    "PdGravity",
    "PidLinearized",
    "PolePlacement",
    "Reference",
    "Robustness",
    "RobustnessCase",
    "Slopes",
    "StepResponse",
    "Transient",
    "gains",
    "plot_closed_loop",
    "references",
    "robustness",
    "step_response",
    "transient",
    "with_scaled_masses",
]
