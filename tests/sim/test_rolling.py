"""Cylinders and balls on the ground, against the theory of rolling."""

import numpy as np
import pytest

import modurob as mr
from modurob.dynamics import stepped_state
from modurob.spatial import so3
from modurob.stepping import GroundContact
from modurob.stepping.ground import CHAMFER, Corners, corners
from modurob.walking import walk_metrics
from oracles.blocks import ball, cylinder
from oracles.ground_arrays import array_force

G, R, LENGTH = 9.81, 0.05, 0.12
LYING = so3.exp(np.array([np.pi / 2, 0.0, 0.0]))  # the axis along y
STIFFNESS = 2e4  # [N/m]
WHEEL, BALL = cylinder(R, LENGTH), ball(R)
BODIES = {"cylinder": (WHEEL, 2, 2 / 3), "ball": (BALL, 1, 5 / 7)}  # points; 1 / (1 + I / m r^2)
EVEN = 1e-9  # [m, m/s] of motions of centimeters: a rim has no corners
OPTIONS = {"integrator": "RK4", "record": 0.05}


def lying(model: mr.Model, points: int, angle: float = 0.0) -> np.ndarray:
    """(7,) on a slope, as deep as the weight presses it on this many points."""
    tilt = so3.exp(np.array([0.0, -angle, 0.0]))
    height = R - np.sum(model.mass) * G * np.cos(angle) / (points * STIFFNESS)
    return np.concatenate([tilt @ [0.0, 0.0, height], so3.to_quaternion(tilt @ LYING)])


@pytest.mark.parametrize("form", BODIES)
@pytest.mark.parametrize("tier", ["table", "fused"])
def test_a_round_body_rolls_down_a_slope_as_it_must(form, tier):
    """a = g sin(alpha) / (1 + I / m r^2), on a constant height above the slope."""
    organism, points, share = BODIES[form]
    model, angle = organism.model(base="free"), 0.1
    model = model.compile() if tier == "fused" else model
    ground = mr.Ground(slope=(np.tan(angle), 0.0), stiffness=STIFFNESS)
    run = mr.simulate(model, lying(model, points, angle), None, 0.4, ground=ground, **OPTIONS)
    down, up = np.array([-np.cos(angle), 0, -np.sin(angle)]), [-np.sin(angle), 0, np.cos(angle)]
    rate = np.diff(run.q[:, :3] @ down, 2)[2:].mean() / 0.05**2
    # the bristle takes up the load in the first moments, and is no part of the formula
    assert rate == pytest.approx(share * G * np.sin(angle), rel=1e-3)
    assert np.ptp(run.q[:, :3] @ up) < 1e-7  # [m]
    assert np.ptp(run.q[:, 1]) < EVEN
    found = walk_metrics(run, ground)
    assert found.distance > 0.04  # [m]
    turned = found.speed * 2 * 0.05 / R  # [rad] in the last interval
    assert found.slip < turned**2 / 6  # it rolls: the chord of an arc is that much shorter


def test_a_wheel_rolls_as_fast_with_equal_steps_as_in_theory():
    """2 s down a slope, up to 26 rad/s in steps of 1 ms; 5 % more while the base gained speed."""
    model, angle = WHEEL.model(base="free"), np.arctan(0.1)
    ground = mr.Ground(slope=(np.tan(angle), 0.0), lift=True)
    run = mr.simulate(
        model, lying(model, 2), None, 2.0, integrator="SemiImplicitEuler", dt=1e-3, ground=ground,
        record=2.0,
    )  # fmt: skip
    way = np.linalg.norm(run.q[-1, :3] - run.q[0, :3])
    assert way == pytest.approx(2 / 3 * G * np.sin(angle) * 2.0**2 / 2, rel=1e-3)


@pytest.mark.parametrize("form", BODIES)
def test_a_round_body_that_slides_ends_up_rolling(form):
    """With angular momentum about the line of contact v_end = v / (1 + I / m r^2), any friction."""
    organism, points, share = BODIES[form]
    model = organism.model(base="free")
    push = np.concatenate([LYING.T @ [0.6, 0.0, 0.0], np.zeros(3)])
    for friction in (0.3, 0.6):
        ground = mr.Ground(friction=friction, stiffness=STIFFNESS)
        run = mr.simulate(model, lying(model, points), push, 0.2, ground=ground, **OPTIONS)
        twist = LYING @ run.v[-1, :3], LYING @ run.v[-1, 3:]
        speed = float(np.linalg.norm(twist[0]))
        assert speed == pytest.approx(share * 0.6, rel=2e-3)
        assert np.linalg.norm(twist[1]) == pytest.approx(speed / R, rel=2e-3)
        total = run.energy + run.channels["contact_energy"]
        assert np.diff(total).max() < 1e-5  # [J] of 0.18: nothing is gained


def test_a_lying_cylinder_grips_along_its_axis_and_rests_on_its_line():
    model, angle = WHEEL.model(base="free"), np.arctan(0.4)
    ground = mr.Ground(friction=0.5, slope=(0.0, np.tan(angle)), stiffness=STIFFNESS, lift=True)
    tilt = so3.exp(np.array([angle, 0.0, 0.0]))
    q = np.concatenate([[0.0, 0.0, 0.0], so3.to_quaternion(tilt @ LYING)])
    run = mr.simulate(
        model, q, None, 1.5, integrator="SemiImplicitEuler", ground=ground, record=0.5
    )
    assert np.abs(run.q[-1, :3] - run.q[-2, :3]).max() < EVEN
    depth = G * np.cos(angle) / (2 * STIFFNESS)
    # the lower end carries more: the mean of both depths counts
    assert tilt[:, 2] @ run.q[-1, :3] == pytest.approx(R - depth, abs=1e-6)


def test_an_upright_cylinder_stands_on_its_end():
    run = mr.simulate(
        WHEEL.model(base="free"), np.array([0.0, 0.0, LENGTH / 2 + 2e-3, 0.0, 0.0, 0.0, 1.0]), None,
        0.8, integrator="SemiImplicitEuler", ground=mr.Ground(stiffness=STIFFNESS), record=0.4,
    )  # fmt: skip
    rest = [0.0, 0.0, LENGTH / 2 - G / (4 * STIFFNESS), 0.0, 0.0, 0.0, 1.0]
    np.testing.assert_allclose(run.q[-1], rest, atol=EVEN)


def test_a_leaning_cylinder_tips_about_its_rim():
    """Beyond 1.9 degrees it stands on the rim: a push along its end holds it there, or tips it."""
    model, lean, arm = WHEEL.model(base="free"), np.deg2rad(2.9), LENGTH / 2 - CHAMFER * R
    tilt, stiffness = so3.exp(np.array([0.0, lean, 0.0])), 10 * STIFFNESS
    height = -(tilt @ [R, 0.0, -arm])[2] - G / stiffness
    q = np.concatenate([[0.0, 0.0, height], so3.to_quaternion(tilt)])
    balance = G * (np.cos(lean) * R - np.sin(lean) * arm) / arm  # [N]
    for share, sign in ((0.97, -1), (1.03, 1)):
        run = mr.simulate(
            model, q, None, 0.1, integrator="SemiImplicitEuler", dt=5e-4, record=0.1,
            external={"m0": [share * balance, 0, 0, 0, 0, 0]},
            ground=mr.Ground(friction=2.0, stiffness=stiffness),
        )  # fmt: skip
        found = np.arccos(so3.from_quaternion(run.q[-1, 3:7])[2, 2])
        assert sign * (found - lean) > 1e-3  # [rad]


def test_compiled_forces_on_round_bodies_are_those_of_the_arrays():
    rng = np.random.default_rng(4)
    organism = mr.Organism.random("scout", 3, rng)
    model = organism.model(base="free", hinges="physical")
    q = np.array([model.random_configuration(rng) for _ in range(11)])
    v, tau, h = rng.normal(size=(11, model.nv)), np.zeros((11, model.nv)), 1e-4
    rough = {"slope": (0.1, 0.2), "height": 0.2 * rng.random((15, 22)), "cell": 0.1}
    for surface in ({"slope": (0.1, 0.2)}, {}, rough):
        contact = GroundContact(mr.Ground(**surface, stiffness=1e5), model, organism, q, h)
        contact.accepted(model.integrate(q, -h * v), v)  # bristles are stretched
        plain = array_force(contact, q, v)
        scale = np.abs(plain).max()
        np.testing.assert_allclose(contact.force(q, v), plain, rtol=0, atol=1e-13 * scale)
        contact.accepted(q, v)
        a = model.forward_dynamics(q, v, tau + array_force(contact, q, v))
        v1 = contact.march(q, v, tau, h, 1)[1]
        v2 = stepped_state(model, q, v, v + h * a, h)[1]
        np.testing.assert_allclose(v1, v2, rtol=0, atol=1e-12 * np.abs(h * a).max())


def test_a_ball_rolls_on_a_field_of_heights_as_on_its_plane():
    x = 0.05 * (np.arange(13) - 6)
    field = mr.Ground(height=0.2 * x[:, None] - 0.1 * x[None, :], stiffness=STIFFNESS, lift=True)
    plane = mr.Ground(slope=(0.2, -0.1), stiffness=STIFFNESS, lift=True)
    ends = [
        mr.simulate(BALL.model(base="free"), None, None, 0.2, integrator="SemiImplicitEuler",
                    ground=ground, record=0.1).q
        for ground in (field, plane)
    ]  # fmt: skip
    assert np.linalg.norm(ends[0][-1, :2]) > 0.02  # [m]
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=EVEN)


def test_rims_keep_their_grip_when_parts_dock():
    """Places where rims are anchored are those of bodies, whatever links the bodies are in."""
    rng = np.random.default_rng(1)
    pair = mr.Organism.random("scout", 2, rng)
    ground = mr.Ground(stiffness=1e4, slope=(0.1, 0.0), height=1.0)  # all is deep inside
    before = []
    for part in pair.undock("m1"):
        model = part.model(base="free", hinges="physical")
        q, v = model.random_configuration(rng), np.zeros(model.nv)
        before.append(GroundContact(ground, model, part, q, 1e-4))
        before[-1].accepted(q, v)
    model = pair.model(base="free", hinges="physical")
    whole = GroundContact(ground, model, pair, model.neutral(), 1e-4, before)
    for old in before:
        for body, name in enumerate(old._model.body_names):
            mine, theirs = whole._body == model.body_names.index(name), old._body == body
            np.testing.assert_array_equal(whole._memory[:, mine, :4], old._memory[:, theirs, :4])
            places = whole._anchored()[0, 0, mine], old._anchored()[0, 0, theirs]
            np.testing.assert_allclose(*places, rtol=0, atol=1e-15)
            assert np.ptp(places[0], axis=0).max() > 0.05  # [m]


def test_the_outline_of_an_oblique_rim_is_on_it():
    axis = np.array([0.48, 0.6, 0.64])
    rim = Corners(np.array([2]), np.array([[1.0, 2.0, 3.0]]), axis[None], np.array([0.3]))
    arms = rim.outline().place - rim.place
    np.testing.assert_allclose(np.linalg.norm(arms, axis=1), 0.3)
    np.testing.assert_allclose(arms @ axis, 0, atol=1e-12)
    np.testing.assert_allclose(
        arms @ arms.T,
        0.09
        * np.array(  # a square
            [[1, 0, -1, 0], [0, 1, 0, -1], [-1, 0, 1, 0], [0, -1, 0, 1]]
        ),
        atol=1e-12,
    )


@pytest.mark.parametrize("form", BODIES)
def test_the_outline_of_a_round_body_is_on_its_circles(form):
    organism = BODIES[form][0]
    at = corners(organism, organism.model(base="free"))
    round_ = at.radius > 0
    points = at.outline()
    assert not points.radius.any()
    count = 4 if at.axis.any() else 12  # around one axis, or all three
    np.testing.assert_array_equal(points.body[: np.sum(~round_)], at.body[~round_])
    np.testing.assert_array_equal(points.place[: np.sum(~round_)], at.place[~round_])
    around = points.place[np.sum(~round_) :].reshape(round_.sum(), count, 3)
    arms = around - at.place[round_, None]
    np.testing.assert_allclose(arms.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(arms, axis=-1), R)
    np.testing.assert_allclose(np.sum(arms * at.axis[round_, None], axis=-1), 0, atol=1e-12)
