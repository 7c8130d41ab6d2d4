"""Control laws with one contract: ``command(t, q, v, reference) -> tau``."""

from modurob.control import gains, references
from modurob.control.adaptation import OutputFeedback, TrackingController, Transient, transient
from modurob.control.adaptive import Adaptive
from modurob.control.cartesian_impedance import CartesianImpedance
from modurob.control.certificate import AssumptionCheck, Certificate
from modurob.control.computed_torque import ComputedTorque, PolePlacement
from modurob.control.controller import Controller, Slopes
from modurob.control.impedance import JointImpedance
from modurob.control.laws import CONTROLLERS, law_class, register
from modurob.control.lqr import Lqr
from modurob.control.partial import PartialLinearization
from modurob.control.pd_gravity import PdGravity
from modurob.control.pid import IndependentPid, PidLinearized
from modurob.control.plants import with_payload, with_scaled_masses
from modurob.control.plots import plot_closed_loop
from modurob.control.promise import Promise
from modurob.control.response import StepResponse, step_response
from modurob.control.robustness import Robustness, RobustnessCase, robustness
from modurob.control.sliding import Robust
from modurob.reference import Reference

__all__ = [
    "CONTROLLERS",
    "Adaptive",
    "AssumptionCheck",
    "CartesianImpedance",
    "Certificate",
    "ComputedTorque",
    "Controller",
    "IndependentPid",
    "JointImpedance",
    "Lqr",
    "OutputFeedback",
    "PartialLinearization",
    "PdGravity",
    "PidLinearized",
    "PolePlacement",
    "Promise",
    "Reference",
    "Robust",
    "Robustness",
    "RobustnessCase",
    "Slopes",
    "StepResponse",
    "TrackingController",
    "Transient",
    "gains",
    "law_class",
    "plot_closed_loop",
    "references",
    "register",
    "robustness",
    "step_response",
    "transient",
    "with_payload",
    "with_scaled_masses",
]
