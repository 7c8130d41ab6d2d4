"""A module type that users bring: one datasheet file, and everything works with it."""

import numpy as np

import modurob as mr
from modurob.interop import (
    read_cobra_modules,
    read_urdf,
    write_cobra_modules,
    write_mjcf,
    write_urdf,
)
from modurob.modules.record import decode, encode

# A telescope with a hinge at its foot: two joints of different kinds, ports on both ends.
TELESCOPE = """
format = "modurob-module"
version = 1
name = "telescope"
symbol = "T"
size = 0.2

[[bodies]]
name = "foot"
mass = 0.4
inertia = [0.002, 0.002, 0.001]

[[bodies]]
name = "tube"
mass = 0.3
center_of_mass = [0.0, 0.0, 0.05]
inertia = [0.001, 0.001, 0.0004]

[[bodies]]
name = "rod"
mass = 0.2
inertia = [0.001, 0.001, 0.0002]

[[joints]]
name = "tilt"
kind = "revolute"
parent = "foot"
child = "tube"
position = [0.0, 0.0, 0.1]
axis = [1, 0, 0]
lower = -1.5
upper = 1.5
viscous = 0.1

[[joints]]
name = "reach"
kind = "prismatic"
parent = "tube"
child = "rod"
position = [0.0, 0.0, 0.1]
axis = [0, 0, 1]
lower = -0.05
upper = 0.05

[[ports]]
label = "in"
side = 1
body = "foot"
position = [0, 0, 0]
normal = [0, 0, -1]
reference = [1, 0, 0]
connector = "flange"
mates = ["flange"]

[[ports]]
label = "out"
side = 2
body = "rod"
position = [0, 0, 0.1]
normal = [0, 0, 1]
reference = [1, 0, 0]
turns = [0, 90]
connector = "flange"
mates = ["flange"]

[[shapes]]
body = "foot"
form = "box"
size = [0.1, 0.1, 0.1]
"""
SAME = 1e-12  # two ways to the same numbers


def telescope(folder):
    path = folder / "telescope.toml"
    path.write_text(TELESCOPE)
    return mr.ModuleType.from_file(path)


def arm(folder):
    kind = telescope(folder)
    return mr.Organism.start(kind).dock("m0", "out", "m1", "in", kind=kind)


def test_a_module_type_from_a_file_docks_moves_and_is_simulated(tmp_path):
    organism = arm(tmp_path)
    model = organism.model(hinges="physical")
    assert model.joint_names == ("m0.tilt", "m0.reach", "m1.tilt", "m1.reach")
    q, v, a = np.random.default_rng(0).uniform(-0.04, 0.04, (3, model.nv))
    tau = model.inverse_dynamics(q, v, a)
    assert np.allclose(model.forward_dynamics(q, v, tau), a, rtol=0, atol=1e-9)
    formulas = organism.equations("physical", symbols="none").evaluate(q, v)
    assert np.allclose(formulas.M, model.mass_matrix(q), rtol=0, atol=SAME)
    run = mr.simulate(model, q, v, 0.05)
    assert np.isfinite(run.q).all()
    assert mr.load(saved(organism, tmp_path / "arm.json")) == organism
    assert len(organism.dh_table().links) == model.nv


def saved(organism, path):
    organism.save(path)
    return path


def test_a_module_type_from_a_file_is_exported_and_recorded(tmp_path):
    organism, kind = arm(tmp_path), telescope(tmp_path)
    write_urdf(organism, tmp_path / "arm.urdf", hinges="physical")
    write_mjcf(organism, tmp_path / "arm.xml", hinges="physical")
    write_cobra_modules(kind, tmp_path / "modules.json")
    model = organism.model(hinges="physical")
    again = mr.Organism.start(read_urdf(tmp_path / "arm.urdf")).model(hinges="physical")
    q = np.array([0.3, 0.01, -0.2, 0.02])
    assert np.allclose(again.mass_matrix(q), model.mass_matrix(q), rtol=0, atol=SAME)
    assert "m1.reach" in (tmp_path / "arm.xml").read_text()
    assert read_cobra_modules(tmp_path / "modules.json") == {"telescope": kind}
    assert decode(encode(kind, 1)).kind == kind
