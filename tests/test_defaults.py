"""Defaults of public functions that decide on results: a new one is written here on purpose."""

import inspect
import math

import pytest

from modurob import (
    Ground,
    Model,
    Organism,
    Population,
    Scenario,
    Trajectory,
    control,
    distributed,
    examples,
    gaits,
    identify,
    kinematics,
    simulate,
)
from modurob.control import ComputedTorque, PdGravity, PolePlacement, robustness, step_response
from modurob.control.plants import with_payload
from modurob.control.references.motions import Quintic, Recorded, minimum_jerk
from modurob.distributed.balancing.agent import BalancingAgent
from modurob.distributed.balancing.network import BalancingNetwork
from modurob.distributed.balancing.on_ground import stand
from modurob.distributed.balancing.plant import GearedDrive
from modurob.distributed.balancing.processes import BalancingProcesses
from modurob.distributed.mass import MassAgent, MassNetwork
from modurob.distributed.plant import Plant, PlantOptions
from modurob.drawing import picture
from modurob.estimation import Ekf, consistency
from modurob.firmware import runtime_files
from modurob.gaits import ChaoticMaps, Oscillators, Sine, Wave, preview
from modurob.identification import FourierSeries, exciting_motion
from modurob.interop import read_cobra_modules, read_urdf, write_mjcf, write_srdf, write_urdf
from modurob.manipulator import gravity_torque, ne_mod
from modurob.modules import ModuleType
from modurob.modules.datasheet import Body, Joint, Mesh, Port, Shape
from modurob.population import JointWaves
from modurob.search import BodySpace, SearchTask, evolve, write_gallery
from modurob.search.tasks import way_along
from modurob.sim import Dock, Noise
from modurob.stepping import Stops
from modurob.stepping.stops import LinearStops
from modurob.symbolic import Equations
from modurob.verification import verify
from modurob.walking import tune, walk
from modurob.walking.tuning import evaluate

DEFAULTS = [
    (simulate, {
        "rtol": 1e-8, "atol": 1e-10, "progress": False, "stops": False, "wrench_sensors": False,
    }),
    (Noise, {"q": 0, "v": 0, "tau": 0}),
    (Dock, {"turn": 0}),
    (Stops, {"frequency": 10, "damping": 0.5, "rounding": 0.01}),
    (Trajectory.plot, {"degrees": False, "title": ""}),
    (Trajectory.picture, {"size": 600}),
    (Trajectory.animate, {"fps": 25, "speed": 1, "size": 480}),
    (picture, {"size": 1200}),
    (ComputedTorque, {"damping": 1}),
    (PolePlacement, {"damping": 1}),
    (PdGravity, {"damping": 1}),
    (control.Controller, {"delay": 0, "passive": ()}),
    (step_response, {"band": 0.02}),
    (robustness, {
        "step": 0.35, "masses": 0.1, "delay": 0.02, "noise": 0.03, "runs": 1000, "band": 0.02
    }),
    (Ekf, {"density": False}),
    (Ekf.rebuilt, {"rate_sigma": 1}),
    (consistency, {"level": 0.95}),
    (gaits.Gait, {"offset": 0, "ramp": 0}),
    (Sine, {"offset": 0, "frequency": 1, "phase": 0, "ramp": 0}),
    (Wave, {"offset": 0, "frequency": 1, "lag": math.pi / 3, "phase": 0, "ramp": 0}),
    (Oscillators, {"offset": 0, "frequency": 1, "coupling": 4, "phase": 0, "ramp": 0}),
    (ChaoticMaps, {
        "offset": 0, "step": 0.5, "r": 3.9, "coupling": 0.15, "warm_up": 0, "ramp": 0
    }),
    (preview, {"duration": 10}),
    (read_urdf, {"strict": True}),
    (read_cobra_modules, {"strict": True}),
    (write_urdf, {"contact": False}),
    (write_mjcf, {"contact": False, "integrator": "RK4", "timestep": 0.002}),
    (Model.inverse_kinematics, {"restarts": 30}),
    (kinematics.inverse_kinematics, {"restarts": 30}),
    (Model.compile, {"background": False}),
    (Organism.dock, {"turn": 0}),
    (Organism.merge, {"turn": 0}),
    (Scenario.run, {"partial": False, "progress": False}),
    (examples.arm, {"modules": "babac"}),
    (examples.crane, {"m1": 1, "m2": 1, "l": 5}),
    (examples.double_pendulum, {"l1": 1, "l2": 1, "m1": 1, "m2": 1}),
    (examples.superbot_tree, {"branches": 4, "length": 5}),
    (MassAgent, {"resend": 0.01, "give_up": 0.25}),
    (MassNetwork, {"period": 0.001}),
    (Equations.latex, {"document": False}),
    (Equations.entry, {"short": True}),
    (Equations.linearize, {"q": None, "v": 0, "a": 0}),
    (verify, {"hinges": "dyad", "base": "fixed", "states": 8, "seed": 0}),
    (Organism.model, {"gravity": (0, 0, -9.81), "elastic": True}),
    (Organism.equations, {"gravity": (0, 0, -9.81), "elastic": True}),
    (Ground, {"friction": 0.8, "slope": (0, 0), "cell": 0.05, "lift": False}),
    (examples.superbot_walker, {"legs": 4, "length": 2}),
    (evolve, {
        "task": "walk", "population": 200, "generations": 50, "seed": 0, "strategy": "evolution",
        "target": "cpu",
    }),
    (write_gallery, {"bodies": 4, "films": True}),
    (BodySpace, {
        "kinds": "backbone", "modules": (4, 12), "hinges": "dyad", "amplitude": 0.6, "offset": 0.4,
        "frequency": (0.5, 2),
    }),
    (SearchTask, {
        "unit": "m", "duration": 10, "begin": 0, "payload": 0, "torque": 10, "start": "gait",
        "clear": True,
    }),
    (way_along, {"direction": (1, 0)}),
    (walk, {"gait": "wave", "parameters": None, "progress": False}),
    (tune, {"seed": 0, "effort": 0.02, "population": 32}),
    (Population, {"hinges": "dyad", "base": "free", "gravity": (0, 0, -9.81)}),
    (Population.from_genotypes, {"gravity": (0, 0, -9.81)}),
    (Population.from_tables, {"hinges": "dyad", "gravity": (0, 0, -9.81)}),
    (Population.rollout, {"dt": 0.001, "target": "cpu", "begin": 0, "servo_rate": 30}),
    (Population.stepper, {"dt": 0.001, "servo_rate": 30}),
    (JointWaves, {"phase": 0, "offset": 0, "frequency": 1}),
    (identify, {"shared": False, "datasheet_error": 0.3}),
    (exciting_motion, {
        "duration": 10, "harmonics": 5, "velocity": math.inf, "torque": math.inf, "trials": 200
    }),
    (FourierSeries, {"offset": 0, "ramp": 0}),
    (Quintic, {"v0": 0, "v1": 0, "a0": 0, "a1": 0, "begin": 0}),
    (Recorded, {"hold": False}),
    (minimum_jerk, {"begin": 0}),
    (control.Adaptive, {"spread": 2, "sample_time": 0.001}),
    (control.Robust, {"mass_error": 0.2}),
    (control.PidLinearized, {"filter_time": 0, "sample_time": 0.001}),
    (control.IndependentPid, {"filter_time": 0, "sample_time": 0.001}),
    (distributed.balance, {
        "law": "shared", "duration": 5, "loss": 0, "delay": 0, "rate": 25, "gravity": 9.81,
        "dt": 0.001, "record": 0.005,
    }),
    (stand, {
        "loss": 0, "processes": False, "stiffness": 60, "margin": 0.015, "gravity": 9.81,
        "record": 0.02,
    }),
    (GearedDrive, {"friction": 0.3, "torque": 6}),
    (PlantOptions, {
        "gravity": (0, 0, -9.81), "step": 0.001, "noise_q": 0, "noise_v": 0, "friction": 0,
        "torque": math.inf, "mass_factor": 1, "stiffness": 0, "geared": False, "speed": 1,
        "seed": 0,
    }),
    (distributed.ProcessBus, {"law": "ComputedTorque", "transport": "udp", "loss": 0, "seed": 0}),
    (distributed.SimulatedBus, {"law": "ComputedTorque", "transport": "in_process"}),
    (distributed.LockStep, {"world": True, "delay": 0}),
    (distributed.MassProcesses, {"transport": "udp", "loss": 0, "seed": 0, "heartbeat": 0.1}),
    (distributed.InProcess, {"loss": 0, "delay": (0, 0), "duplication": 0, "reordering": 0}),
    (write_srdf, {"samples": 1000, "seed": 0}),
    (with_payload, {"center": (0, 0, 0)}),
    (BalancingAgent, {
        "law": "shared", "margin": 0, "friction": 0, "rate": 25, "gravity": 9.81, "period": 0.001,
        "decision": 5,
    }),
    (BalancingNetwork, {"law": "shared", "period": 0.001}),
    (BalancingProcesses, {"law": "shared", "period": 0.01, "decision": 2, "speed": 0.25}),
    (Plant.plug, {"turn": 0}),
    (distributed.ProcessBus.wait, {"seconds": 10}),
    (distributed.MassProcesses.wait, {"seconds": 10}),
    (distributed.SimulatedBus.run, {"seconds": 30}),
    (distributed.LockStep.round, {"think": True}),
    (MassNetwork.round, {"count": 1}),
    (runtime_files, {"single": False}),
    (ne_mod, {"gravity": (0, 0, -9.81)}),
    (gravity_torque, {"gravity": (0, 0, -9.81)}),
    (LinearStops, {"damping": 0}),
    (evaluate, {"effort": 0.02}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "documented"), DEFAULTS, ids=lambda x: getattr(x, "__name__", "")
)
def test_defaults_are_the_documented_ones(function, documented):
    found = {p.name: p.default for p in inspect.signature(function).parameters.values()}
    for name, value in documented.items():
        assert type(found[name]) is not bool or type(value) is bool
        assert found[name] == value, name


ZERO = (0, 0, 0)
PLACED = {"position": ZERO, "rpy": ZERO}
DATASHEETS = [
    (Body, {"mass": 0, "center_of_mass": ZERO, "inertia": (ZERO, ZERO, ZERO), "imu": False}),
    (Joint, {
        **PLACED, "axis": (0, 0, 1), "lower": None, "upper": None, "viscous": 0, "coulomb": 0,
        "rotor_inertia": 0, "gear_ratio": 1, "stiffness": None, "damping": 0, "max_effort": None,
        "max_velocity": None,
    }),
    (Port, {"turns": (0,), "max_force": None, "max_torque": None}),
    (Shape, {**PLACED, "color": "#8aa0b8"}),
    (Mesh, {**PLACED, "scale": (1, 1, 1)}),
    (ModuleType, {
        "format": "modurob-module", "version": 1, "title": "", "source": "", "nominal": False,
        "joints": (), "shapes": (), "meshes": (), "dyad_joint": None, "grid": False,
        "virtual": False,
    }),
]  # fmt: skip


@pytest.mark.parametrize(("part", "documented"), DATASHEETS)
def test_a_datasheet_without_a_number_has_none_or_zero(part, documented):
    found = {name: x.default for name, x in part.model_fields.items() if not x.is_required()}
    assert found == documented


def test_a_scenario_is_a_fall_of_five_seconds_unless_told():
    found = {name: field.default for name, field in Scenario.model_fields.items()}
    assert found | {
        "hinges": "dyad", "base": "fixed", "gravity": 9.81, "stops": False,
        "duration": 5, "integrator": None, "rtol": 1e-8, "dt": None, "record": None,
        "motion": "none", "amplitude": 0.5, "frequency": 1, "ramp": 0,
        "controller": "none", "settling_time": 1, "torque_limit": 0, "torque_delay": 0,
        "sample_time": 0, "masses": 1, "poles": (),
        "estimator": "none", "noise_q": 0, "noise_v": 0, "noise_tau": 0,
        "balancing_law": "shared", "loss": 0, "delay": 0, "drive_friction": 0.3, "stuck": (),
        "seed": 0, "events": (), "kinds": (), "name": "organism", "version": 1,
    } == found  # fmt: skip
