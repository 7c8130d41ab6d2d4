"""Bodies of the zoo and fields of walks, without their runs."""

import re

import numpy as np
import pytest

import modurob as mr
from modurob.scenario.gait_files import GaitRecord
from modurob.walking import started, walking_fields
from modurob.walking.zoo import ZOO, gait_file, zoo_body
from oracles.complaints import complains

NUMBERS = {"four": 4, "six": 6, "nine": 9}
SNAKE = mr.examples.snake(3)
ROLLER = ZOO["roller"].fields


@pytest.mark.parametrize("name", ZOO)
def test_bodies_have_as_many_modules_as_their_titles_say(name):
    body = zoo_body(name)
    (word,) = re.findall("|".join(NUMBERS), body.title)
    assert len(body.build()) == NUMBERS[word]


def test_every_body_has_a_file_with_its_gait_and_others_have_none():
    for name, body in ZOO.items():
        assert GaitRecord.load(gait_file(name)).motion == body.kind
    with complains(mr.UnknownNameError, "no walker 'lobster'", "caterpillar"):
        gait_file("lobster")


def test_the_legs_of_the_cross_point_to_its_four_sides():
    model = ZOO["cross"].build().model("physical", base="free")
    T = model.forward_kinematics(model.neutral())
    places = {name.partition(".")[0]: T[k, :2, 3] for k, name in enumerate(model.body_names)}
    far = [places[f"m{k}"] - places["m0"] for k in (2, 4, 6, 8)]
    np.testing.assert_allclose(np.sum(far, axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.abs(far).min(axis=1), 0, atol=1e-9)
    assert len({tuple(np.sign(np.round(x, 6))) for x in far}) == 4


def test_the_bar_lies_along_the_ground_and_bends_in_two_planes_at_right_angles():
    organism = ZOO["roller"].build()
    straight = mr.Scenario(organism=organism, hinges="physical", **ZOO["sidewinder"].fields)
    model = straight.model()
    model_free = organism.model("physical", base="free")
    T = model_free.forward_kinematics(model_free.neutral())
    assert np.ptp(T[:, 0, 3]) > 0.4  # [m]
    np.testing.assert_allclose(T[:, 1:3, 3], 0, atol=1e-9)
    assert all("roll" not in name for name in model.joint_names)
    screws = model.dynamics.quantity("joint_screws", model.neutral())
    products = np.abs(screws[3:].T @ screws[3:])
    expected = np.arange(8)[:, None] % 2 == np.arange(8) % 2  # pitch and yaw by turns
    np.testing.assert_allclose(products, expected, atol=1e-9)


def test_the_servos_of_the_roller_are_those_of_the_guide():
    """With 0.1 s the ends of the bar are not lifted."""
    assert (ROLLER["settling_time"], ROLLER["sample_time"]) == (0.03, 0.001)


def test_walks_last_ten_seconds_and_are_recorded_every_hundredth():
    fields = walking_fields("sine", {"phase": 0.5}, hinges="physical")
    assert (fields["duration"], fields["record"]) == (10.0, 0.01)
    assert fields["gait"] == {"phase": 0.5}
    assert (fields["hinges"], fields["base"], fields["motion"]) == ("physical", "free", "sine")
    assert walking_fields(duration=2.0)["duration"] == 2.0
    with complains(mr.StateError, "numbers by name", "3"):
        walking_fields("sine", 3)


def test_a_walk_needs_a_free_base_on_ground():
    for wrong in ({"base": "fixed", "ground": False}, {"ground": False}):
        fields = walking_fields(duration=0.1, hinges="physical") | wrong
        with complains(mr.StateError, "free base on ground"):
            started(mr.Scenario(organism=SNAKE, **fields))
