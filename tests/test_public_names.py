"""The public names of the package and of `Model`: a new one is added here on purpose."""

import subprocess
import sys

import pytest

import modurob as mr

NAMES = [
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
    "executors",
    "gaits",
    "identification",
    "identify",
    "interop",
    "load",
    "population",
    "search",
    "sim",
    "simulate",
    "spatial",
    "symbolic",
    "verification",
    "walk",
    "walking",
]
MODEL = [
    "armature",
    "base_of",
    "base_pose",
    "body_index",
    "body_link",
    "body_names",
    "body_placement",
    "center",
    "center_of_mass",
    "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_rate",
    "check_configuration",
    "check_velocity",
    "closed_form",
    "compile",
    "coriolis_matrix",
    "coulomb",
    "difference",
    "dynamics",
    "energy",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_kinematics",
    "free_base",
    "friction_rate",
    "gravity",
    "gravity_torque",
    "inertia",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_kinematics",
    "is_merged",
    "jacobian",
    "jacobian_rate",
    "joint_index",
    "joint_names",
    "joint_slice_q",
    "joint_slice_v",
    "kinetic_energy",
    "linearize",
    "locked",
    "lower",
    "mass",
    "mass_matrix",
    "modules",
    "momentum",
    "nbodies",
    "neutral",
    "nq",
    "nv",
    "options",
    "organism",
    "parent",
    "placement",
    "potential_energy",
    "prepare",
    "prismatic",
    "random_configuration",
    "rollout",
    "screw",
    "step",
    "step_derivatives",
    "stiffness",
    "upper",
    "viscous",
]
HEAVY = "modurob.sim", "modurob.control", "modurob.drawing", "sympy", "matplotlib", "llvmlite"


def test_the_package_has_these_names():
    assert sorted(mr.__all__) == sorted(NAMES)
    assert set(NAMES) <= set(dir(mr))
    assert all(getattr(mr, name) is not None for name in NAMES)
    assert issubclass(mr.SimulationError, mr.StateError)


def test_a_model_has_these_names():
    found = {name for name in dir(mr.examples.snake(2).model()) if not name.startswith("_")}
    assert sorted(found) == sorted(MODEL)


def test_packages_are_there_though_nobody_imported_them_and_other_names_are_not():
    assert mr.__getattr__("gaits") is sys.modules["modurob.gaits"]
    with pytest.raises(AttributeError, match="module 'modurob' has no attribute 'robots'"):
        mr.__getattr__("robots")


def test_lazy_names_are_there_at_the_first_access():
    names = ("Dock", "Equations", "Scenario", "SimulationError", "Trajectory", "simulate")
    code = f"import modurob; print([callable(getattr(modurob, x)) for x in {names!r}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([True] * len(names))


def test_importing_the_package_loads_no_heavy_part():
    code = f"import sys, modurob; print([x for x in {HEAVY!r} if x in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
