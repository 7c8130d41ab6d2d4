"""Measures of runs on the ground, against cases whose answers are known."""

import dataclasses

import numpy as np
import pytest

import modurob as mr
from modurob.distributed.balancing.support import Region
from modurob.sim import BodyTrajectory
from modurob.spatial import so3
from modurob.walking import WalkMetrics, metrics, walk_metrics
from oracles.blocks import block, on_slope
from oracles.complaints import complains

G, MU, EDGE = 9.81, 0.5, 0.1
STIFFNESS = 2e4  # [N/m] a block of 1 kg sinks by 0.12 mm
CUBE = block((EDGE, EDGE, EDGE), 1.0)
MODEL = CUBE.model(base="free")
FLAT = mr.Ground(friction=MU, stiffness=STIFFNESS)
DEEP = 1e-9  # [m] below the ground: touches
ROUNDING = 1e-7  # of lengths of some centimeters, DEEP included [m]


def carried(places: np.ndarray, rotations: np.ndarray, t: np.ndarray) -> BodyTrajectory:
    """A cube that is carried along prescribed poses."""
    q = np.concatenate([places, so3.to_quaternion(rotations)], axis=1)
    return BodyTrajectory("m0", MODEL, CUBE, t, q, np.zeros((len(t), 6)), np.zeros((len(t), 6)))


def test_a_block_that_slides_slips_all_the_way():
    start = on_slope(MODEL, EDGE / 2 - G / (4 * STIFFNESS))
    angle = np.deg2rad(30.0)
    push = np.array([np.cos(angle), np.sin(angle), 0.0, 0.0, 0.0, 0.0])
    run = mr.simulate(
        MODEL, start, push, 0.5, integrator="SemiImplicitEuler", ground=FLAT, record=0.01
    )
    found = walk_metrics(run, FLAT)
    assert found.distance == pytest.approx(1 / (2 * MU * G), rel=0.01)  # v^2 / (2 mu g)
    assert found.speed == pytest.approx(found.distance / 0.5)
    assert found.heading == pytest.approx(angle, abs=1e-3)
    assert found.turn == pytest.approx(0.0, abs=1e-3)
    # friction below the center of mass tilts it, so that corners move a little more than it
    assert found.slip == pytest.approx(1.0, abs=0.01)
    assert found.work == found.cost_of_transport == 0.0


def test_a_block_that_stands_walks_nowhere_and_is_stable():
    start = on_slope(MODEL, EDGE / 2 - G / (4 * STIFFNESS))
    run = mr.simulate(MODEL, start, None, 0.05, integrator="SemiImplicitEuler", ground=FLAT)
    found = walk_metrics(run, FLAT)
    assert found.distance < 1e-9
    assert found.slip == found.cost_of_transport == np.inf
    assert found.stability_margin == pytest.approx(EDGE / 2, abs=ROUNDING)
    assert found.least_margin == pytest.approx(EDGE / 2, abs=ROUNDING)
    assert found.stable == 1.0


def test_a_notebook_shows_the_measures_in_lines():
    run = mr.simulate(MODEL, on_slope(MODEL, 1.0), None, 0.01, ground=FLAT)
    found = walk_metrics(run, FLAT)
    assert f">{str(found).splitlines()[0]}" in found._repr_html_()


def test_a_cube_that_rolls_over_its_edges_does_not_slip():
    """Four quarter turns about the leading edge: four edges of way; the edge holds still."""
    angles = np.linspace(0.0, 2 * np.pi, 4 * 9 + 1)
    quarters = np.minimum(angles // (np.pi / 2), 3)
    within = angles - quarters * np.pi / 2
    R = so3.exp(np.stack([0 * angles, angles, 0 * angles], axis=1))
    # the center goes around the leading edge, at half a diagonal
    reach, phase = EDGE / np.sqrt(2), 3 * np.pi / 4 - within
    x = (quarters + 0.5) * EDGE + reach * np.cos(phase)
    places = np.stack([x, 0 * x, reach * np.sin(phase) - DEEP], axis=1)
    found = walk_metrics(carried(places, R, angles), mr.Ground())
    assert found.distance == pytest.approx(4 * EDGE, abs=ROUNDING)
    assert found.heading == pytest.approx(0.0, abs=ROUNDING)
    assert found.slip == pytest.approx(0.0, abs=1e-6)
    assert found.turn == pytest.approx(0.0, abs=1e-6)
    # flat, the center is half an edge inside; about to leave a face or to land, half outside
    assert -EDGE / 2 < found.least_margin < 0 < found.stable < 0.5


def test_a_cube_carried_through_the_air_turns_and_touches_nothing():
    t = np.linspace(0.0, 2.0, 21)
    rates, full = 0.3, 3 * np.pi  # [m/s], [rad] one and a half turns
    R = so3.exp(np.stack([0 * t, 0 * t, full * t / 2], axis=1))
    places = np.stack([0 * t, -rates * t, 0 * t + 1.0], axis=1)
    found = walk_metrics(carried(places, R, t), mr.Ground())
    assert found.turn == pytest.approx(full)
    assert found.heading == pytest.approx(-np.pi / 2)
    assert (found.slip, found.stable) == (0.0, 0.0)
    assert np.isnan(found.stability_margin)


def test_cost_of_transport_counts_what_joints_take_and_give_back():
    body = mr.examples.snake(2)
    model = body.model(base="free")
    t, A, tau, way = np.linspace(0.0, 1.0, 2001), 0.3, 2.0, 0.5
    q, v = np.tile(model.neutral(), (len(t), 1)), np.zeros((len(t), model.nv))
    q[:, 0], q[:, 2], v[:, 0] = way * t, 1.0, way
    v[:, -1] = 2 * np.pi * A * np.cos(2 * np.pi * t)  # q_joint = A sin(2 pi t), held out of the way
    torque = np.zeros((len(t), model.nv))
    torque[:, -1] = tau
    found = walk_metrics(BodyTrajectory("m0", model, body, t, q, v, torque), mr.Ground())
    work = tau * 4 * A  # |v| swept twice there and back
    assert found.work == pytest.approx(work, rel=1e-5)
    mass = sum(model.mass)
    assert found.cost_of_transport == pytest.approx(work / (mass * G * way), rel=1e-5)


def test_the_margin_of_a_region_has_a_sign():
    square = Region(np.array([[0, 0], [2, 0], [2, 1], [0, 1.0]]), np.zeros(2))
    assert square.margin([0.5, 0.4]) == pytest.approx(0.4)
    assert square.margin([3.0, 2.0]) == pytest.approx(-np.sqrt(2))
    segment = Region(square.corners[:2], np.zeros(2))
    assert segment.margin([1.0, 0.0]) == 0.0
    assert segment.margin([1.0, -0.3]) == pytest.approx(-0.3)


def test_measures_are_told_with_their_units():
    found = WalkMetrics(
        duration=2.0, distance=0.5, speed=0.25, heading=np.pi / 2, turn=-np.pi / 4, work=3.04,
        cost_of_transport=1.234, slip=0.056, stability_margin=0.021, least_margin=-0.013,
        stable=0.75,
    )  # fmt: skip
    assert found.words() == {
        "distance": "0.500 m in 2 s (0.250 m/s)",
        "heading": "90 deg from x",
        "turned": "-45 deg",
        "cost of transport": "1.23 (3.0 J)",
        "slip": "0.06 of the distance",
        "stability margin": "21 mm on average, -13 mm at worst; inside for 75 % of the time",
    }
    assert all(" ".join(word.split()) in str(found) for word in found.words().values())
    nowhere = found._replace(cost_of_transport=np.inf, slip=np.inf, stability_margin=np.nan).words()
    assert nowhere["slip"] == nowhere["cost of transport"] == "none: it went nowhere"
    assert nowhere["stability margin"] == "none: it never touched the ground"


def test_a_way_of_less_than_a_millimeter_is_none():
    t, R = np.linspace(0.0, 1.0, 3), np.tile(np.eye(3), (3, 1, 1))
    for way, far in ((0.99e-3, False), (1.01e-3, True)):
        places = np.stack([0 * t, way * t, 0 * t + 1.0], axis=1)
        found = walk_metrics(carried(places, R, t), mr.Ground())
        assert found.distance == pytest.approx(way)
        assert np.isfinite(found.slip) == np.isfinite(found.cost_of_transport) == far
        assert found.heading == pytest.approx(np.pi / 2 if far else 0.0)


def test_a_way_of_exactly_a_millimeter_is_one():
    t, R = np.linspace(0.0, 1.0, 3), np.tile(np.eye(3), (3, 1, 1))
    found = walk_metrics(carried(np.outer([0, 0.5e-3, 1e-3], [0, 1, 0]), R, t), mr.Ground())
    assert found.distance == 1e-3
    assert found.heading == pytest.approx(np.pi / 2)


def test_a_run_lasts_from_its_first_state_to_its_last():
    """The part of a run that begins with a docking does not begin at zero."""
    t, R = np.array([2.0, 2.5, 3.0]), np.tile(np.eye(3), (3, 1, 1))
    found = walk_metrics(carried(np.outer([0, 0.1, 0.2], [1, 0, 0]), R, t), mr.Ground())
    assert found.duration == 1.0
    assert found.speed == pytest.approx(0.2)


def test_a_corner_that_is_just_at_the_ground_does_not_touch_it():
    t, R = np.linspace(0.0, 1.0, 3), np.tile(np.eye(3), (3, 1, 1))
    for height, touches in ((EDGE / 2, False), (EDGE / 2 - DEEP, True)):
        places = np.array([[x, 0.0, height] for x in (0.0, 0.1, 0.2)])
        found = walk_metrics(carried(places, R, t), mr.Ground())
        assert np.isfinite(found.stability_margin) == touches
        assert found.slip == pytest.approx(1.0 if touches else 0.0)


def test_one_corner_alone_slips_all_the_way_it_is_dragged():
    t, diagonal = np.linspace(0.0, 1.0, 3), np.sqrt(3) * EDGE / 2
    upright = so3.exp(np.arctan(np.sqrt(2)) * np.array([1, -1, 0]) / np.sqrt(2))  # on a corner
    assert upright @ np.ones(3) == pytest.approx([0, 0, np.sqrt(3)])
    places = np.array([[0.0, y, diagonal - DEEP] for y in (0.0, 0.1, 0.2)])
    found = walk_metrics(carried(places, np.tile(upright, (3, 1, 1)), t), mr.Ground())
    assert found.slip == pytest.approx(1.0)
    assert found.stability_margin == pytest.approx(0.0, abs=ROUNDING)


def test_a_body_above_the_border_of_its_support_is_stable(monkeypatch):
    monkeypatch.setattr(metrics, "_margins", lambda *_: np.array([0.0, -1e-12, np.nan, 0.1]))
    t, R = np.linspace(0.0, 1.0, 4), np.tile(np.eye(3), (4, 1, 1))
    found = walk_metrics(carried(np.ones((4, 3)), R, t), mr.Ground())
    assert (found.stable, found.least_margin) == (0.5, -1e-12)


def test_a_body_without_weight_or_time_has_no_cost_and_no_speed():
    light = CUBE.model(base="free", gravity=(0, 0, 0))
    q = np.tile(light.neutral(), (2, 1))
    q[:, 0], rest = [0.0, 0.3], np.zeros((2, 6))
    run = BodyTrajectory("m0", light, CUBE, np.array([0.0, 0.5]), q, rest, rest)
    assert walk_metrics(run, mr.Ground()).cost_of_transport == np.inf
    assert walk_metrics(run, mr.Ground()).speed == pytest.approx(0.6)
    one = dataclasses.replace(run, t=run.t[:1], q=q[:1], v=rest[:1], tau=rest[:1])
    found = walk_metrics(one, mr.Ground())
    assert (found.duration, found.distance, found.speed) == (0.0, 0.0, 0.0)


def test_measures_are_of_one_body_with_an_organism():
    batch = np.tile(on_slope(MODEL, EDGE / 2), (2, 1))
    run = mr.simulate(MODEL, batch, None, 0.002, integrator="SemiImplicitEuler", ground=FLAT)
    with complains(mr.StateError, "one body", "member"):
        walk_metrics(run, FLAT)
    with complains(mr.StateError, "Trajectory on a Ground", "NoneType"):
        walk_metrics(run.member(1), None)
    assert walk_metrics(run.member(1), FLAT).duration == pytest.approx(0.002)
    (part,) = run.member(1).parts
    with complains(mr.StateError, "one body", "parts[k]"):
        walk_metrics(mr.Trajectory((part, part)), FLAT)
    with complains(mr.StateError, "organism="):
        walk_metrics(dataclasses.replace(part, organism=None), FLAT)
    with complains(mr.StateError, "got Model and Ground"):
        walk_metrics(MODEL, FLAT)
