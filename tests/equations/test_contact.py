"""The contact law, lowest points of round shapes, and a step of a free base, on plain numbers."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from modurob.equations.contact import (
    GROUND_FORCES,
    GROUNDED_DYNAMICS,
    Bristle,
    ContactPoint,
    Corner,
    GroundForce,
    GroundLaw,
    HeightField,
    LevelCorner,
    LevelRoundCorner,
    OnField,
    OnPlane,
    Rolling,
    RollingBristle,
    RoundCorner,
    contact_force,
    handed,
    normal_force,
    slipped,
    stretch,
    surface,
)
from modurob.equations.links import RigidLink
from modurob.equations.passes import Base, JointState, run
from modurob.equations.vectors import EYE, ZERO, ZERO_MATRIX, Mat, Twist, Vec

ROUNDING = 1e-13  # of a dozen operations on numbers of size one
LAW = GroundLaw(friction=0.7, stiffness=1000.0, damping=0.5, limit=0.02, grip=300.0, drag=20.0)
NORMAL = np.array([0.6, 0.0, 0.8])


def normal(seed, *shape):
    """Numbers of a test, which do not depend on the tests before it."""
    return np.random.default_rng(seed).normal(size=shape)


def close(found, expected):
    found = list(found) if isinstance(found, Vec) else found
    np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING)


def touching(depth, u=(0, 0, 0), s=(0, 0, 0), held=1.0, normal=NORMAL):
    """A point at (0.3, -0.2, 0.1), stretched by s from its anchor."""
    x = np.array([0.3, -0.2, 0.1])
    return ContactPoint(Vec(x), Vec(u), Vec(normal), depth, Vec(x - s), held)


@pytest.mark.parametrize(
    ("depth", "rate", "force"),
    [
        (-0.01, -1.0, 0.0),  # in the air
        (0.01, 0.0, 10.0),  # the spring
        (0.01, -0.4, 12.0),  # and its damping: k d (1 + c |rate|)
        (0.01, 0.4, 8.0),
        (0.01, 3.0, 0.0),  # it never pulls
        (0.01, -100.0, 20.0),  # and is never harder than twice the spring
        (0.1, -0.4, 108.0),  # c d is limited: k (d + limit |rate|)
    ],
)
def test_the_normal_force_is_a_damped_spring_that_never_pulls(depth, rate, force):
    along = np.array([0.8, 5.0, -0.6])  # along the ground: does not count
    u = rate * NORMAL + along
    assert normal_force(LAW, touching(depth, u)) == pytest.approx(force, rel=ROUNDING)


def test_a_bristle_is_a_damped_spring_within_the_friction_cone():
    tangent, other = np.array([0.8, 0.0, -0.6]), np.array([0.0, 1.0, 0.0])
    s, u = 0.01 * tangent, 0.02 * other + 0.5 * NORMAL  # less than 0.7 N
    point = touching(0.1, u)
    N = normal_force(LAW, point)
    close(contact_force(LAW, point, Vec(s)), N * NORMAL - 300 * s - 20 * 0.02 * other)
    close(contact_force(LAW, touching(0.1), Vec([0, 0, 0])), 100 * NORMAL)
    for size in (1.0, 1e-9):  # beyond the cone, also under hardly any force
        s = size * (0.6 * tangent + 0.8 * other)
        found = contact_force(LAW, touching(0.1 * size), Vec(s))
        close(np.array(list(found)) / size, 100 * (NORMAL - 0.7 * s / size))


def test_a_bristle_that_has_hardly_touched_counts_by_a_share():
    s, lifted = np.array([0.08, 0.3, -0.06]), 0.5 * NORMAL
    for depth, held, share in ((0.01, 1.0, 1), (0.01, 0.01, 1), (0.01, 0.0025, 0.25), (0.01, 0, 0)):
        close(stretch(touching(depth, s=s + lifted, held=held)), share * s)
    assert list(stretch(touching(0.0, s=s, held=0.0))) == [0, 0, 0]


def test_a_step_leaves_the_anchor_or_drags_it_to_the_edge_of_the_cone():
    x, s = np.array([0.3, -0.2, 0.1]), np.array([0.08, 0.3, -0.06])
    edge = 0.7 * 100 / 300  # friction times the normal force over the grip
    for size, kept in ((0.5, 0.5), (3.0, edge / np.linalg.norm(s))):
        left, anchor, held = slipped(LAW, touching(0.1, s=size * s))
        close(left, kept * s)
        close(anchor, x - kept * s)
        assert held == pytest.approx(1.0)  # ten times the depth
    for depth in (-0.1, 0.0):
        left, anchor, held = slipped(LAW, touching(depth, s=s))
        assert held == 0
        close(left, np.zeros(3))
        close(anchor, x)


def test_equal_points_at_one_place_are_one_with_their_stiffness():
    corner = Corner(Vec([0.1, 0.2, 0.3]), Vec(NORMAL), 0.05, LAW)
    for weight in (3.0, 0.0):
        law = OnPlane.weighted(corner, weight).law
        assert law == (0.7, weight * 1000, 0.5, 0.02, weight * 300, weight * 20)
    assert OnPlane.weighted(corner, 2.0)._replace(law=LAW) == corner


class Seen(NamedTuple):
    """What the passes read of a link's state."""

    R: Mat
    p: Vec
    V: Twist
    down: Vec = ZERO
    level: float = 0.0


def seen(seed):
    """A link somewhere; its twist is about the world's origin."""
    V, p = np.random.default_rng(seed).normal(size=(2, 6))
    R = Rotation.random(random_state=seed).as_matrix()
    return Seen(Mat(R), Vec(p[:3]), Twist(Vec(V[:3]), Vec(V[3:]))), R, p[:3], V


def test_a_corner_is_where_its_link_is_and_moves_with_it():
    link, R, p, V = seen(1)
    place = normal(10, 3)
    corner = Corner(Vec(place), Vec(NORMAL), 0.4, LAW)
    point = OnPlane.at(link, corner, Bristle(Vec([1.0, 2.0, 3.0]), 0.6))
    x = p + R @ place
    close(point.x, x)
    close(point.u, V[:3] + np.cross(V[3:], x))
    close(point.normal, NORMAL)
    assert point.depth == pytest.approx(0.4 - NORMAL @ x)
    assert (*point.anchor, point.held) == (1, 2, 3, 0.6)
    link = OnPlane.survey(link, corner)
    close(link.down, R.T @ NORMAL)
    for held, expected in ((-9.0, point.depth), (5.0, 5.0)):
        found = OnPlane.active(link, corner, Bristle(ZERO, held))
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("tilt", [0.05, 0.7, np.pi / 2])
def test_the_lowest_point_of_a_circle_or_ball_is_found(tilt):
    link, R, p, _ = seen(2)
    down = R.T @ NORMAL
    across = np.cross(down, [1.0, 0, 0])
    axis = expm(np.cross(np.eye(3), -tilt * across / np.linalg.norm(across))) @ down
    second = np.cross(axis, across) / np.linalg.norm(across)
    center, radius = normal(11, 3), 0.3
    corner = RoundCorner(Vec(center), Vec(axis), radius, Vec(NORMAL), 0.4, LAW)
    link = OnPlane.survey(link, corner)
    lowest = Rolling.lowest(link, corner).place
    turns = np.linspace(0, 2 * np.pi, 721)[:, None]
    first = np.cross(second, axis)
    circle = center + radius * (np.cos(turns) * first + np.sin(turns) * second)
    np.testing.assert_allclose(np.linalg.norm(list(lowest) - center), radius)
    assert down @ list(lowest) == pytest.approx((circle @ down).min(), abs=1e-5)
    depth = 0.4 - NORMAL @ (p + R @ list(lowest))
    for held in (-9.0, 9.0):
        bound = Rolling.active(link, corner, RollingBristle(ZERO, held, ZERO))
        assert bound >= max(depth, held) - ROUNDING  # never misses a contact
    ball = corner._replace(axis=ZERO)
    close(Rolling.lowest(link, ball).place, center - radius * down)
    bound = Rolling.active(link, ball, RollingBristle(ZERO, -9.0, ZERO))
    assert bound == pytest.approx(0.4 - NORMAL @ (p + R @ (center - radius * down)))


def test_an_upright_circle_has_no_lowest_point_to_seek():
    link, R, _, _ = seen(3)
    axis = R.T @ NORMAL
    corner = RoundCorner(Vec([0.1, 0.2, 0.3]), Vec(axis), 0.3, Vec(NORMAL), 0.4, LAW)
    found = Rolling.lowest(OnPlane.survey(link, corner), corner).place
    np.testing.assert_allclose(list(found), [0.1, 0.2, 0.3], atol=1e-8)


def test_a_rolling_point_takes_the_stretch_of_the_one_before():
    link, R, p, _ = seen(4)
    place, before, anchor = normal(12, 3, 3)
    found = handed(link.R, Vec(place), RollingBristle(Vec(anchor), 0.2, Vec(before)))
    close((p + R @ place) - np.array(list(found.anchor)), (p + R @ before) - anchor)
    assert found.held == 0.2


def test_a_field_of_heights_is_bilinear_over_its_slope_and_level_beyond():
    heights, cell = np.random.default_rng(8).normal(size=(4, 6)), 0.2
    nx, ny = heights.shape
    z = np.pad(heights, 1, mode="edge")

    def cells(row, column):
        """Height at the first corner of a cell, rises across it, and the mixed difference."""
        i, j = divmod(int(row), ny + 1)
        h, h_x, h_y, h_xy = z[i, j], z[i + 1, j], z[i, j + 1], z[i + 1, j + 1]
        return (h, h_x - h, h_y - h, h_xy - h_x - h_y + h)[column]

    field = HeightField(0.3, -0.7, 1 / cell, nx, ny, (nx + 1) / 2, (ny + 1) / 2)
    axes = [cell * (np.arange(n) - (n - 1) / 2) for n in heights.shape]
    peer = RegularGridInterpolator(axes, heights)

    def height(x, y):
        inside = [np.clip(u, axis[0], axis[-1]) for u, axis in zip((x, y), axes, strict=True)]
        return 0.3 * x - 0.7 * y + peer(inside).item()

    for x, y in np.random.default_rng(9).uniform(-1, 1, (60, 2)):
        found, *rise = surface(field, x, y, cells)
        assert found == pytest.approx(height(x, y), abs=ROUNDING)
        e = 1e-7  # bilinear: differences are exact but for rounding
        slopes = height(x + e, y) - height(x - e, y), height(x, y + e) - height(x, y - e)
        np.testing.assert_allclose(rise, np.array(slopes) / (2 * e), atol=1e-7)


# -- force on the joints ---------------------------------------------------------------------------


def moving_links():
    """A base, a joint that slides on it, one that turns beyond it, and one more on the base."""
    turns = [Mat(R) for R in Rotation.random(3, random_state=5).as_matrix()]
    places = [Vec(p) for p in normal(13, 3, 3)]
    joints = [
        RigidLink(parent, R, p, slides, 1.0, ZERO, ZERO_MATRIX, sign=sign)
        for parent, R, p, slides, sign in zip(
            (0, 1, 0), turns, places, (True, False, False), (1, -1, 1), strict=True
        )
    ]
    return [RigidLink(-1, EYE, ZERO, False, 1.0, ZERO, ZERO_MATRIX), *joints]


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(
    ("kind", "corner"),
    [
        (("slope", False), Corner(Vec([0.1, -0.3, 0.2]), Vec(NORMAL), 9.0, LAW)),
        (("level", False), LevelCorner(Vec([0.1, -0.3, 0.2]), 9.0, LAW)),
        (("slope", True),
         RoundCorner(Vec([0.1, -0.3, 0.2]), Vec([0, 1, 0]), 0.3, Vec(NORMAL), 9.0, LAW)),
        (("level", True),
         LevelRoundCorner(Vec([0.1, -0.3, 0.2]), Vec([0, 0, 1]), 0.3, 9.0, LAW)),
    ],
    ids=["corner", "level", "round", "level round"],
)  # fmt: skip
def test_generalized_forces_of_the_ground_have_the_power_of_the_point(kind, corner, free):
    """tau . v = f . u for any v: u is linear in v, and f is that of one state."""
    links, quantity = moving_links(), GROUND_FORCES[kind]
    passes = quantity.passes
    q, v, w = normal(14, 3, 3)
    q_0, v_0, w_0 = np.array([0.1, 0.2, 0.3, 0.5, -0.5, 0.5, 0.5]), *normal(15, 2, 6)

    def forces_and_motion(joint_v, base_v, on):
        """Generalized forces, and point and force of a corner on a link."""
        base = Base.moving(ZERO, q_0, base_v, [0] * 6) if free else Base(ZERO)
        found = []

        def touched(states):
            here = passes.survey(states[on], corner)
            bristle = Bristle(Vec([0.5, 0.4, 0.3]), 1.0)
            if passes.Memory is RollingBristle:
                bristle = RollingBristle(*bristle, Vec([0.2, 0.2, 0.1]))
                lowest = passes.lowest(here, corner)
                known = handed(here.R, lowest.place, bristle)
                found.append(passes.at(here, lowest, known))
            else:
                found.append(passes.at(here, corner, bristle))
            states[on] = passes.touch(here, corner, bristle)
            return states

        # along +x of the joint frames; the second one is read backwards by users
        joints = [JointState(a, b * link.sign, 0) for a, b, link in
                  zip(q, joint_v, links[1:], strict=True)]  # fmt: skip
        tau = run(quantity, links, joints, base, touched=touched)
        return np.array(tau), found[0]

    for on in range(4):
        tau, point = forces_and_motion(v, v_0, on)
        f = np.array(list(contact_force(LAW, point, stretch(point))))
        assert np.abs(f).max() > 1
        _, other = forces_and_motion(w, w_0, on)
        rates = np.concatenate([w_0, w]) if free else w
        assert tau @ rates == pytest.approx(f @ list(other.u), rel=1e-10, abs=1e-10)


def test_passes_on_fields_seek_the_surface_below_the_point():
    assert issubclass(GROUND_FORCES["field", True].passes, (OnField, Rolling))
    for (_, is_round), quantity in (GROUND_FORCES | GROUNDED_DYNAMICS).items():
        assert issubclass(quantity.passes, Rolling) is is_round
    assert issubclass(GROUND_FORCES["slope", False].passes, GroundForce)
    assert GROUND_FORCES["slope", False].near is False  # the ground is where it is


# -- a step of a free base -------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0.0, 1e-9, 0.3, 1.0])
def test_a_free_base_steps_by_the_exponential_of_its_new_twist(size):
    """Semi-implicit Euler; the velocity of the origin is advanced in the world."""
    h, p = 0.25, np.array([0.3, -1.0, 2.0])
    R = Rotation.random(random_state=7)
    v, dv, dw = normal(16, 3, 3)
    w_new = np.array([0.48, -0.6, 0.64]) * size / h
    w = w_new - h * dw
    base = Base.moving(ZERO, [*p, *R.as_quat()], [*v, *w], [0] * 6)
    position, quaternion, twist = GROUNDED_DYNAMICS["level", False].passes.move(
        base, Twist(Vec(dv), Vec(dw)), h
    )
    u = v + h * (dv + np.cross(w, v))
    turn = Rotation.from_rotvec(h * w_new)
    close(position, p + R.apply(h * u))
    close(Rotation.from_quat(quaternion).as_matrix(), (R * turn).as_matrix())
    assert np.dot(quaternion, quaternion) == pytest.approx(1, abs=1e-15)
    close(twist.w, w_new)
    close(twist.v, turn.inv().apply(u))


def test_a_step_brings_a_quaternion_back_to_norm_one():
    q = np.array([0.5, -0.5, 0.5, 0.5]) * (1 + 1e-6)
    base = Base.moving(ZERO, [0, 0, 0, *q], [0, 0, 0, 0.1, 0.2, 0.3], [0] * 6)
    passes = GROUNDED_DYNAMICS["level", False].passes
    _, found, _ = passes.move(base, Twist(), 0.1)
    assert np.dot(found, found) == pytest.approx(1, abs=1e-11)  # the square of the deviation
