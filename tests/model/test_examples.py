"""The documents' organisms as models: which joints move, and where the masses are."""

import itertools

import numpy as np
import pytest

from modurob import examples

ROUNDING = 1e-14  # a handful of products of numbers of size 1 to 10
ANGLES = [0.0, 1e-9, 0.3, -1.2, np.pi / 2, np.pi, -np.pi, 4.0]


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=ROUNDING)


def state(model, **joints):
    """q with joints given as ``m0_hinge=...``."""
    q = model.neutral()
    for name, value in joints.items():
        q[model.joint_index(name.replace("_", "."))] = value
    return q


def position(model, q, module):
    return model.forward_kinematics(q)[model.modules[module], :3, 3]


# -- crab and nine ---------------------------------------------------------------------------------


def test_the_crab_keeps_three_of_its_five_joints_and_says_why():
    model = examples.crab().model()
    assert model.joint_names == ("m1.hinge", "m3.hinge", "m5.hinge")
    assert (model.nq, model.nv) == (3, 3)
    assert sorted(model.locked) == ["m2.hinge", "m4.hinge"]
    for name, neighbor in (("m2.hinge", "side 2"), ("m4.hinge", "side 5")):
        reason = model.locked[name]
        assert "DS dyad" in reason
        assert "m1" in reason
        assert neighbor in reason
        assert "cannot bend" in reason


def test_the_nine_keeps_five_of_its_eight_joints():
    model = examples.nine().model()
    assert model.joint_names == ("m1.hinge", "m2.hinge", "m4.hinge", "m7.hinge", "m8.hinge")
    assert sorted(model.locked) == ["m3.hinge", "m5.hinge", "m6.hinge"]


def test_the_physical_crab_locks_what_carries_nothing():
    model = examples.crab().model(hinges="physical")
    # side 3 of m0, m2 and m4 carries something: hinge and rotation of these three move
    assert model.joint_names == (
        "m0.hinge",
        "m0.rotation",
        "m2.hinge",
        "m2.rotation",
        "m4.hinge",
        "m4.rotation",
    )
    assert sorted(model.locked) == [
        f"m{i}.{joint}" for i in (1, 3, 5) for joint in ("hinge", "rotation")
    ]
    assert all("nothing with mass beyond it" in reason for reason in model.locked.values())


def test_limits_and_friction_are_those_of_the_datasheets():
    organism = examples.crab().with_parameters("m2", viscous=0.7, coulomb=0.2, limits=(-1, 2))
    model = organism.model(hinges="physical")
    bend, full = np.pi / 2, np.pi
    for name, low, high, viscous, coulomb in (
        ("m0.hinge", -bend, bend, 0, 0),
        ("m0.rotation", -full, full, 0, 0),
        ("m2.hinge", -1, 2, 0.7, 0.2),
        ("m2.rotation", -1, 2, 0.7, 0.2),
    ):
        k = model.joint_index(name)
        found = (model.lower[k], model.upper[k], model.viscous[k], model.coulomb[k])
        assert found == (low, high, viscous, coulomb)
    assert not model.prismatic.any()


def test_a_joint_without_room_between_its_limits_is_held_there():
    organism = examples.snake(3).with_parameters("m0", limits=(0.4, 0.4))
    model = organism.model(hinges="physical")
    assert model.joint_names == ("m1.hinge",)
    assert "its limits leave no room: both are 0.4" in model.locked["m0.hinge"]
    bent = examples.snake(3).model(hinges="physical")
    close(
        model.forward_kinematics([0.2]),
        bent.forward_kinematics(state(bent, m0_hinge=0.4, m1_hinge=0.2)),
    )


# -- double pendulum -------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [(1.0, 1.0), (1.0, 0.4), (0.3, 2.0)])
@pytest.mark.parametrize(("q1", "q2"), [*itertools.product(ANGLES[:6], ANGLES[2:])])
def test_double_pendulum_masses_stand_where_the_closed_form_says(lengths, q1, q2):
    l1, l2 = lengths
    model = examples.double_pendulum(l1=l1, l2=l2).model(hinges="physical")
    q = state(model, m0_hinge=q1, m1_hinge=q2)
    first = np.array([0, l1 * np.sin(q1), -l1 * np.cos(q1)])
    second = first + np.array([0, l2 * np.sin(q1 + q2), -l2 * np.cos(q1 + q2)])
    close(position(model, q, "m0"), [0, 0, 0])
    close(position(model, q, "m1"), first)
    close(position(model, q, "m2"), second)


def test_double_pendulum_hangs_straight_down_at_zero():
    model = examples.double_pendulum(l1=1.5, l2=0.5).model(hinges="physical")
    q = model.neutral()
    close(position(model, q, "m1"), [0, 0, -1.5])
    close(position(model, q, "m2"), [0, 0, -2.0])


def test_double_pendulum_has_two_hinges_that_carry_point_masses():
    model = examples.double_pendulum(l1=1.0, l2=0.7, m1=2.0, m2=3.0).model(hinges="physical")
    assert model.joint_names == ("m0.hinge", "m1.hinge")
    assert model.mass[1:].tolist() == [2.0, 3.0]
    close(model.inertia[1:], np.zeros((2, 3, 3)))
    q = state(model, m0_hinge=0.4, m1_hinge=-0.9)
    base = model.mass[0]  # it stands at the origin and moves nothing
    expected = (2 * position(model, q, "m1") + 3 * position(model, q, "m2")) / (5 + base)
    close(model.center_of_mass(q), expected)


# -- crane -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("phi", ANGLES)
@pytest.mark.parametrize("z", [0.0, -1.3, 2.0])
def test_crane_wagon_slides_and_the_load_swings_below_it(phi, z):
    length = 5.0
    model = examples.crane(l=length).model(hinges="physical")
    q = state(model, m0_slide=z, m1_hinge=phi)
    close(position(model, q, "m1"), [0, z, 0])
    close(position(model, q, "m2"), [0, z + length * np.sin(phi), -length * np.cos(phi)])


def test_crane_has_a_wagon_of_mass_m1_and_a_point_load_of_mass_m2():
    model = examples.crane(m1=2.0, m2=0.5, l=3.0).model(hinges="physical")
    assert model.joint_names == ("m0.slide", "m1.hinge")
    assert model.prismatic.tolist() == [True, False]
    assert model.mass.tolist() == [0.0, 2.0, 0.5]
    close(model.inertia, np.zeros((3, 3, 3)))
