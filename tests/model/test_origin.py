"""A model keeps the organism and the options that it was built from."""

import dataclasses
import pickle

import pytest

from modurob import Dock, StateError, Trajectory, Undock, UnknownNameError, examples, simulate
from modurob.control.plants import with_scaled_masses
from modurob.model import ModelOptions
from oracles import complains


def test_a_model_keeps_its_organism_and_its_options():
    organism = examples.crab()
    model = organism.model("physical", base=["px", "rz"], gravity=[0, 0, -1.6])
    assert model.organism is organism
    assert model.options == ModelOptions("physical", ["px", "rz"], (0, 0, -1.6))
    assert model.options.base == ("px", "rz")
    assert examples.crab().model().options == ModelOptions()


def test_options_build_another_organism_in_the_same_way():
    options = examples.crab().model("physical", gravity=(0, 0, -1.6)).options
    found = options.build(examples.snake(3))
    assert found.options == options
    assert found.joint_names == examples.snake(3).model("physical").joint_names
    loose = options.build(examples.snake(3), free=True)
    assert loose.free_base
    assert loose.options == ModelOptions("physical", "free", (0, 0, -1.6))


def test_locks_go_along_where_their_joints_are():
    """Those of virtual joints not to a free base, those of modules not to organisms without."""
    snake = examples.snake(3)
    locked = {"world.px": 0.25, "m0.hinge": 0.5, "m1.hinge": -0.5}
    options = snake.model("physical", base=["px", "rz"], locked=locked).options
    assert options.build(snake).options == options
    assert dict(options.build(snake, free=True).options.locked) == {"m0.hinge": 0.5,
                                                                    "m1.hinge": -0.5}  # fmt: skip
    left, _ = snake.undock("m1")
    assert dict(options.build(left).options.locked) == {"world.px": 0.25, "m0.hinge": 0.5}


@pytest.mark.parametrize("derive", [lambda m: m.compile(), lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_keeps_the_origin(derive):
    model = examples.snake(3).model("physical", base="free")
    found = derive(model)
    assert found.options == model.options
    assert found.organism == model.organism


def test_a_body_with_other_masses_has_no_organism():
    found = with_scaled_masses(examples.snake(3).model(), 1.1)
    assert found.organism is None
    assert found.options is None


def test_a_model_has_both_or_neither():
    with complains(StateError, "organism and options"):
        dataclasses.replace(examples.snake(3).model(), options=None)


def test_cubes_of_the_dyad_model_are_merged():
    crab = examples.crab()
    dyad, physical = crab.model(), crab.model("physical")
    assert all(dyad.is_merged(name) for name in crab.modules)
    assert not any(physical.is_merged(name) for name in crab.modules)
    with complains(UnknownNameError, "no module 'x'"):
        physical.is_merged("x")


def test_a_run_needs_no_organism_of_its_own(tmp_path):
    """Docking in a live run, and again in one that starts from a file."""
    model = examples.snake(3).model("physical", base="free", gravity=(0, 0, 0))
    events = [Undock(0.1, "m2"), Dock(0.2, "m1", 2, "n", 5, approach=(0, 0, 0.1, 0, 0, 0))]
    run = simulate(model, None, None, 0.3, None, "RK4", dt=0.02, events=events)
    assert [part.organism is part.model.organism for part in run.parts] == [True] * len(run.parts)
    run.save(tmp_path / "run.npz")
    loaded = Trajectory.load(tmp_path / "run.npz")
    last = loaded.parts[-1]
    assert last.model.options == model.options
    assert last.model.organism is last.organism
    loaded.picture(tmp_path / "run.png", size=64)
    further = [Undock(0.1, last.organism.modules[-1])]
    again = simulate(last.model, last.q[-1], last.v[-1], 0.2, None, "RK4", dt=0.02, events=further)
    assert len(again.parts) == 3
