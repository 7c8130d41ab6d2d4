"""Which joints a model locks, which it leaves alone, and which of that it warns of."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import modurob as mr
from modurob.errors import ModelWarning

ROUNDING = 1e-14  # [m] a handful of products of numbers of size 1


def chain(masses, axes, offsets=None, parents=range(9), **limits) -> mr.Organism:
    """One module: bodies b0, b1, ... in a row, joint j1 moves b1 on b0, and so on."""
    offsets = [(0.0, 0.0, 0.1)] * len(axes) if offsets is None else offsets
    bodies = tuple(
        mr.Body(name=f"b{k}", mass=m, inertia=tuple(np.eye(3)[i] * 1e-3 * m for i in range(3)))
        for k, m in enumerate(masses)
    )
    joints = tuple(
        mr.Joint(
            name=f"j{k}", kind="revolute", parent=f"b{parents[k - 1]}", child=f"b{k}", axis=axis,
            position=offset, **limits.get(f"j{k}", {}),
        )
        for k, (axis, offset) in enumerate(zip(axes, offsets, strict=True), start=1)
    )  # fmt: skip
    port = mr.Port(
        label="in", body="b0", position=(0, 0, 0), normal=(0, 0, -1), reference=(1, 0, 0),
        connector="a", mates=("b",), side=1,
    )  # fmt: skip
    kind = mr.ModuleType(
        name="chain", symbol="k", size=0.1, bodies=bodies, joints=joints, ports=(port,)
    )
    return mr.Organism.start(kind)


X, Z = (1, 0, 0), (0, 0, 1)


def test_a_massless_base_with_one_child_locks_nothing():
    model = chain([0.0, 1.0], [Z]).model()
    assert model.joint_names == ("m0.j1",)
    assert not model.locked


def test_a_massless_base_before_joints_on_one_line_locks_nothing():
    model = chain([0.0, 1.0, 1.0], [Z, Z]).model()
    assert model.joint_names == ("m0.j1", "m0.j2")


@pytest.mark.parametrize("axis", [Z, (0, 0, -1)])
def test_a_joint_on_the_line_of_the_one_before_is_locked_without_mass_between(axis):
    with pytest.warns(ModelWarning, match=r"m0\.j2 moves along the same line as m0\.j1"):
        model = chain([1.0, 0.0, 1.0], [Z, axis]).model()
    assert model.joint_names == ("m0.j1",)
    assert list(model.locked) == ["m0.j2"]


def test_of_many_joints_on_one_line_the_first_one_moves():
    with pytest.warns(ModelWarning) as caught:
        model = chain([1.0, 0.0, 0.0, 0.0, 1.0], [Z, Z, Z, Z]).model()
    assert model.joint_names == ("m0.j1",)
    assert sorted(model.locked) == ["m0.j2", "m0.j3", "m0.j4"]
    assert all("as m0.j1," in model.locked[name] for name in ("m0.j2", "m0.j3"))
    assert len(caught) == 1  # one warning that names all


@pytest.mark.parametrize(
    "organism",
    [
        chain([1.0, 0.5, 1.0], [Z, Z]),  # mass between
        chain([1.0, 0.0, 1.0], [Z, X]),  # another direction
        chain([1.0, 0.0, 1.0], [Z, Z], [(0, 0, 0.1), (0.01, 0, 0)]),  # parallel, another line
    ],
    ids=["mass", "direction", "line"],
)
def test_joints_that_are_no_repetition_move(organism):
    assert organism.model().joint_names == ("m0.j1", "m0.j2")


@pytest.mark.filterwarnings("ignore:joints that cannot move")
@pytest.mark.parametrize(("off", "joints"), [(0.9e-9, ["m0.j1"]), (1e-9, ["m0.j1", "m0.j2"])])
def test_lines_less_than_a_nanometer_apart_are_one(off, joints):
    organism = chain([1.0, 0.0, 1.0], [Z, Z], [(0, 0, 0.1), (off, 0, 0)])
    assert [*organism.model().joint_names] == joints


def test_two_branches_on_the_line_of_a_massless_link_move():
    model = chain([1.0, 0.0, 1.0, 1.0], [Z, Z, Z], parents=(0, 1, 1)).model()
    assert model.joint_names == ("m0.j1", "m0.j2", "m0.j3")


def test_a_virtual_joint_is_not_repeated_by_the_first_joint():
    model = chain([0.0, 1.0], [Z]).model(base=["rz"])
    assert model.joint_names == ("world.rz", "m0.j1")


def test_a_joint_without_mass_beyond_it_is_locked_with_a_warning_that_says_what_to_do():
    with pytest.warns(ModelWarning) as caught:
        model = chain([1.0, 1.0, 0.0], [Z, X]).model()
    assert list(model.locked) == ["m0.j2"]
    message = str(caught[0].message)
    for part in ("m0.j2", "nothing with mass beyond it", "give bodies a mass", "Model.locked"):
        assert part in message
    assert caught[0].filename == __file__


@pytest.mark.parametrize(("joints", "named"), [(6, [1, 2, 3, 4, 5, 6]), (7, [1, 2, 3, 4, 5, 7])])
def test_a_warning_names_up_to_six_joints_and_the_number_of_all(joints, named):
    masses = [1.0] + joints * [0.0]
    with pytest.warns(ModelWarning) as caught:
        model = chain(masses, (joints * [Z, X])[:joints]).model()
    assert len(model.locked) == joints
    message = str(caught[0].message)
    told = [k for k in range(1, joints + 1) if f"m0.j{k} " in message]
    assert told == named
    assert ("7 in all" in message) == (joints == 7)


def test_a_joint_held_by_its_limits_is_locked_there_without_a_warning():
    held = {"lower": 0.5, "upper": 0.5}
    model = chain([1.0, 1.0, 1.0], [Z, X], j1=held).model()
    free = chain([1.0, 1.0, 1.0], [Z, X]).model()
    assert model.joint_names == ("m0.j2",)
    assert "both are 0.5" in model.locked["m0.j1"]
    np.testing.assert_allclose(
        model.forward_kinematics([0.3]), free.forward_kinematics([0.5, 0.3]), atol=ROUNDING
    )


def test_a_massless_joint_held_elsewhere_by_its_limits_stays_there():
    with pytest.warns(ModelWarning, match="nothing with mass"):
        model = chain([1.0, 0.0], [Z], j1={"lower": 0.5, "upper": 0.5}).model()
    turned = model.forward_kinematics([])[1, :3, 0]
    np.testing.assert_allclose(turned, [np.cos(0.5), np.sin(0.5), 0], atol=ROUNDING)


@pytest.mark.parametrize("hinges", ["dyad", "physical"])
def test_built_in_examples_are_modelled_without_a_warning(hinges):
    rng = np.random.default_rng(0)
    organisms = [mr.examples.crab(), mr.examples.nine(), mr.examples.snake(4), mr.examples.crane(),
                 mr.examples.double_pendulum(), mr.examples.arm(),
                 mr.examples.superbot_tree(2, 2, rng)]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for organism in organisms:
            organism.model(hinges)


def test_a_virtual_base_cannot_float_as_well():
    virtual = mr.Organism.start("virtual_px").dock("m0", 7, "m1", 7, kind="backbone")
    for base in ("free", ["rz"]):
        with pytest.raises(mr.StateError, match="would move the organism twice"):
            virtual.model(base=base)
