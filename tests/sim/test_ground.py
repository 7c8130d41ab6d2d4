"""Bodies on the ground, against the theory of rigid bodies with Coulomb friction."""

import mujoco
import numpy as np
import pytest
from benchmarks.on_ground import FRICTION, Sines, on_ground
from scipy.integrate import quad
from scipy.interpolate import RegularGridInterpolator
from scipy.optimize import brentq

import modurob as mr
from modurob.dynamics import stepped_state
from modurob.sim import INTEGRATORS, FixedStep
from modurob.spatial import so3
from modurob.stepping import GroundContact
from oracles.blocks import block, on_slope
from oracles.complaints import complains
from oracles.ground_arrays import array_anchors, array_force, kept_anchors
from oracles.rigid_contact import rigid_motion

G = 9.81
EDGES, MASS = (0.1, 0.1, 0.05), 1.0
FLAT = block(EDGES, MASS)
MODEL = FLAT.model(base="free")
MU = 0.5
REPOSE = np.arctan(MU)  # friction angle. [rad]
HALF_DEGREE = np.deg2rad(0.5)
ROUNDING = 1e-12  # of positions of some centimeters [m]
# smaller than the places of random bodies, some of which are beyond its edge
ROUGH = {
    "slope": (0.1, 0.2),
    "height": 0.2 * np.random.default_rng(5).random((15, 22)),
    "cell": 0.1,
}
STIFFNESS = 2e4  # [N/m] sinks by 0.12 mm under the block


def rested(stiffness: float = STIFFNESS, angle: float = 0.0) -> np.ndarray:
    """The block on a slope, as deep as its weight presses it on four corners."""
    depth = MASS * G * np.cos(angle) / (4 * stiffness)
    return on_slope(MODEL, EDGES[2] / 2 - depth, angle)


def slid(trajectory: mr.Trajectory | mr.sim.BodyTrajectory, since: float = 0.0) -> np.ndarray:
    """(N,) distances from the place at a time. [m]"""
    first = np.searchsorted(trajectory.t, since)
    return np.linalg.norm(trajectory.q[:, :3] - trajectory.q[first, :3], axis=1)


def on_incline(angle: float, duration: float, **options) -> mr.Trajectory:
    ground = mr.Ground(friction=MU, slope=(np.tan(angle), 0.0), stiffness=STIFFNESS)
    return mr.simulate(
        MODEL, rested(angle=angle), None, duration, integrator="SemiImplicitEuler", ground=ground,
        **options,
    )  # fmt: skip


def test_a_block_sinks_as_deep_as_its_weight_presses_it():
    ground = mr.Ground(stiffness=5e3, lift=True)
    run = mr.simulate(
        MODEL, None, None, 0.5, integrator="SemiImplicitEuler", ground=ground, record=0.1
    )
    assert run.q[-1, 2] == pytest.approx(EDGES[2] / 2 - MASS * G / (4 * 5e3), abs=ROUNDING)
    assert run.channels["contact"].shape == (len(run.t), 1, 3)
    np.testing.assert_allclose(run.channels["contact"][-1, 0], [0, 0, MASS * G], atol=1e-9)
    np.testing.assert_allclose(run.a[-1], 0.0, atol=1e-9)


def test_a_block_sticks_below_the_friction_angle_and_does_not_creep():
    for angle in (REPOSE - HALF_DEGREE, np.arctan(0.8 * MU)):
        run = on_incline(angle, 3.0, record=0.01)
        # let go with slack bristles it gathers speed, which friction takes away again
        frequency = np.sqrt(4 * 0.7 * STIFFNESS / MASS)
        stretched = G * np.sin(angle) / frequency**2
        braking = G * (MU * np.cos(angle) - np.sin(angle))
        assert slid(run).max() < 2 * stretched + (frequency * stretched) ** 2 / (2 * braking)
        creep = slid(run, since=1.0)[-1] / 2.0  # [m/s]
        assert 60.0 * creep < 1e-9  # [m] in a minute; 0.1 mm would be much


def test_a_block_slides_above_the_friction_angle_as_coulomb_says():
    angle = REPOSE + HALF_DEGREE
    run = on_incline(angle, 0.5, record=0.1)
    rate = np.diff(slid(run), 2)[1:].mean() / 0.1**2
    assert rate == pytest.approx(G * (np.sin(angle) - MU * np.cos(angle)), rel=0.01)


def test_sliding_ends_after_v_squared_over_two_mu_g():
    push = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    ground = mr.Ground(friction=MU, stiffness=STIFFNESS)
    run = mr.simulate(
        MODEL, rested(), push, 0.6, integrator="SemiImplicitEuler", ground=ground, record=0.3
    )
    assert run.q[-1, 0] == pytest.approx(1 / (2 * MU * G), rel=0.01)
    assert np.abs(run.v[-1]).max() < 1e-6  # of 1 m/s


def test_without_friction_nothing_slows_down():
    push = np.array([1.0, 0.5, 0.0, 0.0, 0.0, 0.0])
    ground = mr.Ground(friction=0.0, stiffness=STIFFNESS)
    run = mr.simulate(MODEL, rested(), push, 0.2, integrator="RK4", ground=ground)
    np.testing.assert_allclose(run.v[-1], push, atol=1e-9)


@pytest.mark.parametrize("speed", [0.02, 0.1])
def test_restitution_is_that_of_the_law(speed):
    """v dv / g(v) = -(4 k/m) d dd has the same integral on the way in and on the way out."""
    c = 10.0

    def spent(v: float) -> float:
        return quad(lambda u: u / np.clip(1 + c * u, 0.0, 2.0), 0.0, v)[0]

    most = min(1.0, 1 / (c * speed)) * (1 - 1e-9)
    expected = brentq(lambda e: spent(-e * speed) - spent(speed), 1e-6, most)
    free = FLAT.model(base="free", gravity=(0, 0, 0))
    down = np.array([0.0, 0.0, -speed, 0.0, 0.0, 0.0])
    run = mr.simulate(
        free, on_slope(free, EDGES[2] / 2), down, 0.05, integrator="RK4", dt=2e-4,
        ground=mr.Ground(stiffness=1e4, damping=c),
    )  # fmt: skip
    assert run.v[-1, 2] / speed == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("step", [1e-3, 2.5e-4])
def test_fast_impacts_rebound_by_one_share_at_any_speed(step):
    """From the depth on at which the damping is limited by the step, the law is linear."""
    free = FLAT.model(base="free", gravity=(0, 0, 0))

    def rebound(speed: float) -> float:
        down = np.array([0.0, 0.0, -speed, 0.0, 0.0, 0.0])
        run = mr.simulate(
            free, on_slope(free, EDGES[2] / 2), down, 40 * step, integrator="SemiImplicitEuler",
            dt=step, ground=mr.Ground(),
        )  # fmt: skip
        return run.v[-1, 2] / speed

    assert rebound(1.0) == pytest.approx(0.28, abs=0.005)  # docs/theory/contact.md
    assert rebound(2.0) == pytest.approx(rebound(1.0), rel=1e-3)


def test_by_default_harder_ground_is_more_plastic():
    """10 s/m up to the hardness of steps of 1 ms; then the same damping ratio at rest."""
    laws = [GroundContact(mr.Ground(), MODEL, FLAT, rested(), h) for h in (2e-3, 1e-3, 2.5e-4)]
    assert [each.law.damping for each in laws] == pytest.approx([10.0, 10.0, 40.0], rel=1e-12)
    given = GroundContact(mr.Ground(damping=3.0), MODEL, FLAT, rested(), 2.5e-4)
    assert given.law.damping == 3.0


def test_a_box_tips_where_its_weight_leaves_the_edge():
    """A push at the center of a box twice as high as wide is a tilt of gravity."""
    tall = block((0.1, 0.1, 0.2)).model(base="free")
    below, above = (np.tan(np.arctan(0.5) + s * HALF_DEGREE) * G for s in (-1, 1))

    def push(t: float) -> list[float]:
        return [below * min(1.0, t) if t < 1.5 else above, 0, 0, 0, 0, 0]

    start = on_slope(tall, 0.1 - G / (4 * STIFFNESS))
    run = mr.simulate(
        tall, start, None, 2.7, integrator="SemiImplicitEuler", external={"m0": push},
        ground=mr.Ground(friction=2.0, stiffness=STIFFNESS), record=0.1,
    )  # fmt: skip
    tilt = np.arccos(so3.from_quaternion(run.q[:, 3:7])[:, 2, 2])
    assert tilt[run.t < 1.5].max() < HALF_DEGREE
    assert tilt[-1] > np.deg2rad(20.0)


def test_energy_never_rises_without_work():
    rng = np.random.default_rng(5)
    tumbling = mr.Organism.random("superbot", 3, rng).model(base="free", hinges="physical")
    q, v = tumbling.neutral(), rng.normal(size=tumbling.nv)
    q[2] = 0.3
    run = mr.simulate(
        tumbling, q, v, 0.35, integrator="RK4", dt=2e-4, ground=mr.Ground(stiffness=2e3)
    )
    total = run.energy + run.channels["contact_energy"]
    assert total[0] - total[-1] > 0.5  # [J] it has fallen on the ground
    assert np.diff(total).max() < 1e-6 * (total[0] - total[-1])


@pytest.mark.parametrize("kind", ["backbone", "superbot_light"])
@pytest.mark.parametrize("hinges", ["dyad", "physical"])
def test_hard_falls_gain_no_energy_at_the_default_step(kind, hinges):
    rng = np.random.default_rng(3)
    organism = mr.Organism.random(kind, 4, rng).with_parameters(viscous=0.005)
    model = organism.model(base="free", hinges=hinges)
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    q[:3], v[2] = [0.0, 0.0, 0.6], v[2] - 3.0
    run = mr.simulate(
        model, q, v, 0.6, integrator="SemiImplicitEuler", ground=mr.Ground(lift=True), record=0.005
    )
    total = run.energy + run.channels["contact_energy"]
    assert run.channels["contact"].max() > 10 * np.sum(model.mass) * G / 4  # hard
    assert np.diff(total).max() < 0.02 * (total[0] - total[-1])  # a method of order one


def test_momentum_changes_by_gravity_and_the_forces_on_the_bodies():
    rng = np.random.default_rng(6)
    organism = mr.Organism.random("superbot", 3, rng)
    model = organism.model(base="free", hinges="physical")
    run = mr.simulate(
        model, None, 0.3 * rng.normal(size=model.nv), 0.1, integrator="RK4",
        ground=mr.Ground(lift=True, slope=(0.1, -0.2)),
    )  # fmt: skip
    A = model.centroidal_momentum_matrix(run.q)[:, :3]
    dA = model.centroidal_momentum_matrix_rate(run.q, run.v)[:, :3]
    rate = (A @ run.a[..., None] + dA @ run.v[..., None])[..., 0]
    pushed = run.channels["contact"].sum(axis=1)
    assert np.abs(pushed).max() > 10.0
    error = rate - pushed - np.sum(model.mass) * model.gravity
    assert np.abs(error).max() < 1e-9 * np.abs(rate).max()


def forces_of_differences(
    model: mr.Model, points: list, q: np.ndarray, v: np.ndarray, before: np.ndarray
) -> np.ndarray:
    """(nv,) J^T f: the law in plain numbers, the velocities and J from differences of positions."""
    k, c, mu, normal = 1e4, 10.0, 0.8, np.array([-0.2, -0.1, 1.0]) / np.sqrt(1.05)
    step = 1e-4
    rate = GroundContact(mr.Ground(stiffness=k), model, model.organism, q, step).rate
    limit = 4 / (step * rate**2)

    def places(at: np.ndarray) -> np.ndarray:
        T = model.forward_kinematics(at)
        return np.array([T[body, :3, :3] @ r + T[body, :3, 3] for body, r in points])

    x, anchors, e = places(q), places(before), 1e-6
    u = (places(model.integrate(q, e * v)) - places(model.integrate(q, -e * v))) / (2 * e)
    f = np.zeros_like(x)
    for i, (place, anchor, speed) in enumerate(zip(x, anchors, u, strict=True)):
        if normal @ place < 0:
            d, d_before = -normal @ place, max(-normal @ anchor, 0.0)
            N = k * min(max(d - min(c * d, limit) * (normal @ speed), 0.0), 2 * d)
            stretched = (place - anchor) * min(10 * d_before / d, 1.0)
            pull = 0.7 * k * (stretched + speed / rate)
            pull -= normal * (normal @ pull)
            f[i] = normal * N - pull * min(1.0, mu * N / max(np.linalg.norm(pull), 1e-99))
    steps = e * np.eye(model.nv)
    J = [(places(model.integrate(q, s)) - places(model.integrate(q, -s))) / (2 * e) for s in steps]
    return np.einsum("jpk,pk->j", np.array(J), f)


@pytest.mark.parametrize("base", ["free", "fixed"])
def test_forces_act_on_joints_through_the_jacobians_of_the_corners(base):
    rng = np.random.default_rng(7)
    organism = mr.Organism.random("superbot", 2, rng)
    model = organism.model(base=base, hinges="physical")
    q, v = model.random_configuration(rng), 0.05 * rng.normal(size=model.nv)
    if base == "free":
        q[:3] = [0.05, -0.03, -0.05]
    before = model.integrate(q, -1e-3 * v)
    contact = GroundContact(
        mr.Ground(slope=(0.2, 0.1), stiffness=1e4, damping=10.0), model, organism, q, 1e-4
    )
    contact.accepted(before, v)
    points = [
        (model.body_index(f"{name}.{shape.body}"), shape.pose[:3, 3] + shape.size * signs / 2)
        for name in organism.modules
        for shape in organism.kind(name).shapes
        for signs in np.array(list(np.ndindex(2, 2, 2))) * 2 - 1
    ]
    expected = forces_of_differences(model, points, q, v, before)
    assert np.abs(expected).max() > 10.0
    error = np.abs(contact.force(q, v) - expected).max()
    assert error < 1e-6 * np.abs(expected).max()  # of the differences


@pytest.mark.parametrize("kind", ["backbone", "superbot"])  # 16 corners a cube, and boxes
def test_bodies_on_the_ground_oscillate_no_faster_than_the_step_resolves(kind):
    """Differences of the force of a body that lies flat, against the rate of the stiffness."""
    organism = mr.Organism.random(kind, 4, np.random.default_rng(2))
    model = organism.model(base="free", hinges="dyad" if kind == "backbone" else "physical")
    rest, q, h = np.zeros(model.nv), model.neutral(), 1e-3
    contact = GroundContact(mr.Ground(lift=True), model, organism, q, h)
    q = contact.started(q)
    q[2] -= 1e-4
    contact.accepted(q, rest)
    K = np.array([
        (contact.force(model.integrate(q, -e), rest) - contact.force(model.integrate(q, e), rest))
        for e in 1e-7 * np.eye(model.nv)
    ]) / 2e-7  # fmt: skip
    found = np.sqrt(np.linalg.eigvals(np.linalg.solve(model.mass_matrix(q), K.T)).real.max())
    assert contact.rate * h == pytest.approx(0.8)
    assert 0.5 * contact.rate < found < 1.05 * contact.rate


@pytest.mark.parametrize("tier", ["table", "fused"])
@pytest.mark.parametrize(
    "surface", [{"slope": (0.1, 0.2)}, {}, ROUGH], ids=["slope", "level", "field"]
)
@pytest.mark.parametrize("base", ["free", "fixed"])
def test_compiled_forces_are_those_of_the_arrays(base, surface, tier):
    """Compiled forces against the screws of the joints in NumPy; steps against accelerations."""
    rng = np.random.default_rng(8)
    organism = mr.Organism.random("backbone", 5, rng).with_parameters(viscous=0.01)
    model = organism.model(base=base)
    model = model.compile() if tier == "fused" else model
    q = np.array([model.random_configuration(rng) for _ in range(11)])
    v, tau, h = rng.normal(size=(11, model.nv)), np.zeros((11, model.nv)), 1e-4
    ground = mr.Ground(**surface, stiffness=1e6)  # deep inside: no turns beyond a radian
    contact = GroundContact(ground, model, organism, q, h)
    contact.accepted(model.integrate(q, -h * v), v)  # bristles are stretched
    plain = array_force(contact, q, v)
    scale, touching = np.abs(plain).max(), contact._points(q, v)[2].which
    np.testing.assert_allclose(contact.force(q, v), plain, rtol=0, atol=1e-13 * scale)
    anchors = array_anchors(contact, q, v)
    contact.accepted(q, v)
    np.testing.assert_allclose(kept_anchors(contact, touching), anchors, rtol=0, atol=1e-13)
    assert 0 < (anchors[..., 3] > 0).mean() < 1  # some are in the air
    memory = contact._memory.copy()
    for wrenches in (None, {"m2": 1e3 * rng.normal(size=(11, 6)), "m0": np.ones(6)}, None):
        contact._memory[:] = memory
        a = model.forward_dynamics(q, v, tau + array_force(contact, q, v), wrenches)
        q1, v1 = contact.march(q, v, tau, h, 1, wrenches)
        q2, v2 = stepped_state(model, q, v, v + h * a, h)
        np.testing.assert_allclose(v1, v2, rtol=0, atol=1e-12 * np.abs(h * a).max())
        assert np.abs(model.difference(q2, q1)).max() < 1e-12 * max(1, h * np.abs(h * a).max())


@pytest.mark.parametrize("ground", [None, mr.Ground(height=-10.0, stiffness=STIFFNESS)])
def test_a_body_that_spins_and_flies_keeps_momentum_and_energy(ground):
    """Of 45 rad/s the linear velocity gained a factor of e in a second when it was in the body."""
    model, h = FLAT.model(base="free", gravity=(0, 0, 0)), 1e-3
    about_axis, tumbling = [1.0, 0.5, -0.2, 0, 0, 45.0], [1.0, 0.5, -0.2, 20.0, -30.0, 25.0]
    v = np.array([about_axis, tumbling])
    q = np.tile(rested(), (2, 1))
    run = mr.simulate(model, q, v, 1.0, integrator="SemiImplicitEuler", dt=h, ground=ground)
    np.testing.assert_allclose(run.q[-1, :, :3], q[:, :3] + v[:, :3], rtol=0, atol=ROUNDING)
    momentum, energy = model.momentum(run.q, run.v), run.energy
    np.testing.assert_allclose(momentum[:, 0], momentum[:1, 0].repeat(1001, 0), atol=ROUNDING)
    np.testing.assert_allclose(np.ptp(momentum[:, 1, :3], axis=0), 0, atol=ROUNDING)
    np.testing.assert_allclose(energy[:, 0], energy[0, 0], rtol=ROUNDING)
    # what is left: the torque w x I w of a body that tumbles is explicit
    inertia = MASS / 12 * (np.sum(np.square(EDGES)) - np.square(EDGES))
    w = run.v[:-1, 1, 3:]
    gain = 0.5 * h * h * np.sum(np.cross(w, inertia * w) ** 2 / inertia, axis=1)
    np.testing.assert_allclose(np.diff(energy[:, 1]), gain, rtol=1e-6, atol=ROUNDING)


@pytest.mark.parametrize("name", INTEGRATORS)
def test_every_integrator_stands_on_the_ground(name):
    q = rested()
    q[2] += 1e-4  # and falls a little
    run = mr.simulate(MODEL, q, None, 0.2, integrator=name, ground=mr.Ground(stiffness=STIFFNESS))
    assert run.q[-1, 2] == pytest.approx(rested()[2], abs=1e-6)
    assert run.channels["contact"][-1, 0, 2] == pytest.approx(MASS * G, rel=0.01)


def test_on_the_ground_steps_are_equal_unless_told():
    """An adaptive method takes a minute for what equal steps do in seconds."""
    assert mr.simulate(MODEL, rested(), None, 0.01, ground=mr.Ground()).integrator == (
        "SemiImplicitEuler"
    )
    assert mr.simulate(MODEL, rested(), None, 0.01).integrator == "RK45"


def pushed_body(dt: float, integrator: str = "SemiImplicitEuler") -> np.ndarray:
    """A snake dropped and pushed, on springs that do not depend on the step."""
    model = mr.examples.snake(3).model(base="free")
    q, v = model.neutral(), np.zeros(model.nv)
    q[2], v[0], v[1] = 0.06, 0.5, 0.3
    ground = mr.Ground(friction=MU, stiffness=5e3)
    run = mr.simulate(model, q, v, 0.15, integrator=integrator, dt=dt, ground=ground, record=0.15)
    return run.q[-1]


def test_results_converge_as_the_step_shrinks():
    finest = pushed_body(1e-5)
    errors = [np.abs(pushed_body(dt) - finest).max() for dt in (4e-4, 2e-4, 1e-4)]
    assert errors[0] < 1e-3
    assert errors[1] < 0.7 * errors[0]
    assert errors[2] < 0.7 * errors[1]
    assert np.abs(pushed_body(1e-4, "RK4") - finest).max() < errors[0]


@pytest.mark.parametrize("height", [0.0, 0.002 * ROUGH["height"]], ids=["plane", "field"])
@pytest.mark.parametrize("name", ["RK4", "SemiImplicitEuler"])
def test_a_batch_on_the_ground_is_its_states_one_by_one(name, height):
    q, v = np.tile(rested(), (3, 1)), np.zeros((3, 6))
    v[:, 0] = [0.1, 0.3, 0.5]
    ground = mr.Ground(height=height, stiffness=STIFFNESS)
    options = {"integrator": name, "ground": ground, "record": 0.05}
    batch = mr.simulate(MODEL, q, v, 0.1, **options)
    assert batch.channels["contact"].shape == (3, 3, 1, 3)
    for k in range(3):
        one = mr.simulate(MODEL, q[k], v[k], 0.1, **options)
        np.testing.assert_allclose(batch.q[:, k], one.q, rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(batch.a[:, k], one.a, rtol=0, atol=1e-7)


@pytest.mark.parametrize("tier", ["table", "fused"])
def test_steps_in_compiled_code_are_the_steps_of_the_integrator(tier):
    """A law that is held, the same one asked at every step, and steps through accelerations."""
    snake = mr.examples.snake(4).with_parameters(viscous=0.02).model(base="free")
    snake = snake.compile() if tier == "fused" else snake
    torque, push = np.zeros(snake.nv), np.array([3.0, 1.0, 2.0, 0.1, 0.2, 0.0])
    torque[6:] = 3.0 * np.array([1.0, -0.5, 0.7])

    def run(push=push, integrator=INTEGRATORS["SemiImplicitEuler"], **options):
        return mr.simulate(
            snake, None, None, 0.1, lambda t, q, v: torque, integrator=integrator,
            ground=mr.Ground(lift=True), record=0.05, external={"m2": push}, **options
        )  # fmt: skip

    class ByAccelerations(INTEGRATORS["SemiImplicitEuler"]):
        _advance = FixedStep._advance

    held, asked = run(sample_time=0.05), run()
    assert np.abs(held.v).max() > 0.1
    np.testing.assert_array_equal(held.q, asked.q)
    np.testing.assert_array_equal(held.q, run(lambda t: push).q)
    loaded, stopped = run(integrator=ByAccelerations), run(stops=True)
    np.testing.assert_allclose(held.q, loaded.q, rtol=0, atol=1e-9)
    loaded = run(integrator=ByAccelerations, stops=True)
    np.testing.assert_allclose(stopped.q, loaded.q, rtol=0, atol=1e-9)
    for other in (run(np.zeros(6)), stopped):  # the push and the stops act
        assert np.abs(other.q - held.q).max() > 1e-4


# -- height fields ---------------------------------------------------------------------------------


def test_a_field_of_heights_on_a_plane_is_the_plane():
    x = 0.05 * (np.arange(9) - 4)
    field = mr.Ground(height=0.01 + 0.2 * x[:, None] - 0.1 * x[None, :], stiffness=1e4)
    plane = mr.Ground(slope=(0.2, -0.1), height=0.01, stiffness=1e4)
    rng = np.random.default_rng(9)
    q, v = rested(), 0.1 * rng.normal(size=6)
    one, other = (GroundContact(g, MODEL, FLAT, q, 1e-4) for g in (field, plane))
    for contact in (one, other):
        contact.accepted(MODEL.integrate(q, -1e-3 * v), v)
    scale = np.abs(other.force(q, v)).max()
    np.testing.assert_allclose(one.force(q, v), other.force(q, v), rtol=0, atol=1e-12 * scale)
    q[2] += 0.03
    ends = mr.simulate(MODEL, q, v, 0.1, integrator="SemiImplicitEuler", ground=field).q[-1]
    same = mr.simulate(MODEL, q, v, 0.1, integrator="SemiImplicitEuler", ground=plane).q[-1]
    np.testing.assert_allclose(ends, same, rtol=0, atol=1e-9)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_steps_at_once_are_steps_one_by_one(base, compiled):
    """In the air they are plain semi-implicit ones; friction is that of each step's velocity."""
    organism, h, count = mr.examples.snake(3).with_parameters(viscous=0.3, coulomb=0.1), 1e-3, 7
    model = organism.model("physical", base)
    rng = np.random.default_rng(8)
    q = np.stack([model.random_configuration(rng) for _ in range(9)])
    v, tau = 2 * rng.standard_normal((2, 9, model.nv))
    tau[:, :-2] = 0
    ground = mr.Ground(stiffness=STIFFNESS, height=-50.0)
    one, many = (
        GroundContact(ground, model.compile() if compiled else model, organism, q, h)
        for _ in range(2)
    )
    expected, single = (q, v), (q, v)
    for _ in range(count):
        a = model.forward_dynamics(*expected, tau)
        expected = stepped_state(model, *expected, expected[1] + h * a, h)
        single = one.march(*single, tau, h, 1)
    found = many.march(q, v, tau, h, count)
    if base == "free":  # a quaternion and its negative are one rotation
        expected[0][:, 3:7] *= np.sign(np.sum((expected[0] * found[0])[:, 3:7], axis=1))[:, None]
    for at_once, one_by_one, right in zip(found, single, expected, strict=True):
        np.testing.assert_allclose(at_once, one_by_one, rtol=0, atol=1e-13)
        np.testing.assert_allclose(at_once, right, rtol=0, atol=1e-11)


@pytest.mark.parametrize("place", [7, 12])
def test_a_step_to_numbers_that_are_none_is_told(place):
    q, v = np.tile(rested(), (3, 1)), np.zeros((3, 6))
    v[1, place - 7] = 1e308  # a rate of the first or of the last axis
    contact = GroundContact(mr.Ground(stiffness=STIFFNESS), MODEL, FLAT, q, 1e-4)
    assert np.isnan(contact.march(q, v, np.zeros((3, 6)), 1e3, 2)[1]).all()


def test_a_field_is_bilinear_and_goes_on_beyond_its_edge():
    ground, (a, b) = mr.Ground(**ROUGH), ROUGH["slope"]
    axes = [ROUGH["cell"] * (np.arange(n) - (n - 1) / 2) for n in ROUGH["height"].shape]
    peer = RegularGridInterpolator(axes, ROUGH["height"])

    def height(x, y):
        inside = [np.clip(u, axis[0], axis[-1]) for u, axis in zip((x, y), axes, strict=True)]
        return a * x + b * y + peer(np.stack(inside, axis=-1))

    x, y = 2.0 * np.random.default_rng(3).uniform(-1, 1, (2, 300))
    z, *rise = ground.surface(x, y)
    e = 1e-7  # bilinear: differences are exact but for rounding
    np.testing.assert_allclose(z, height(x, y), rtol=0, atol=1e-14)
    np.testing.assert_allclose(rise[0], (height(x + e, y) - height(x - e, y)) / (2 * e), atol=1e-8)
    np.testing.assert_allclose(rise[1], (height(x, y + e) - height(x, y - e)) / (2 * e), atol=1e-8)


def test_places_far_beyond_a_field_are_on_its_edge():
    q, v = np.tile(rested(), (4, 1)), np.zeros((4, 6))
    q[:, :2] = [(1e3, -1e3), (-1e300, 0.0), (0.0, 1e300), (0.01, 0.02)]
    ground = mr.Ground(height=np.zeros((3, 3)), cell=0.1, stiffness=STIFFNESS)
    contact = GroundContact(ground, MODEL, FLAT, q, 1e-4)
    weight = [0, 0, MASS * G, 0, 0, 0]
    np.testing.assert_allclose(contact.force(q, v)[[0, 3]], [weight] * 2, rtol=0, atol=1e-9)


def test_a_step_stops_a_sliding_block():
    height = np.where(np.arange(40) < 30, 0.0, 0.03)[:, None] * np.ones((1, 2))
    ground = mr.Ground(friction=0.1, height=height, cell=0.01, stiffness=STIFFNESS)
    push = np.array([0.8, 0.0, 0.0, 0.0, 0.0, 0.0])
    run = mr.simulate(MODEL, rested(), push, 0.15, integrator="SemiImplicitEuler", ground=ground)
    wall = 0.01 * (30 - 19.5)  # where the rise ends. [m]
    assert run.q[:, 0].max() + EDGES[0] / 2 < wall + 0.01
    assert run.v[-1, 0] < 0.1


def test_steps_of_adaptive_methods_resolve_the_ground_and_equal_steps_stay():
    """Also above it: a body may fall onto it within a step."""
    q, dt = MODEL.neutral(), 1e-3
    q[2] = 1.0
    own = GroundContact(mr.Ground(), MODEL, MODEL.organism, q, dt).law.stiffness
    ground = mr.Ground(stiffness=1.2 * own)
    longest = GroundContact(ground, MODEL, MODEL.organism, q, None).largest_step
    assert longest < dt
    adaptive = mr.simulate(MODEL, q, None, 0.02, integrator="RK45", ground=ground, rtol=1e-2)
    assert np.diff(adaptive.t).max() <= longest * (1 + 1e-9)
    equal = mr.simulate(MODEL, q, None, 0.02, integrator="SemiImplicitEuler", dt=dt, ground=ground)
    np.testing.assert_allclose(np.diff(equal.t), dt, rtol=1e-9)


# -- a body that changes ---------------------------------------------------------------------------


def test_parts_keep_their_grip_when_they_undock_and_dock_again():
    angle = np.arctan(0.8 * MU)
    pair = mr.examples.snake(2)
    model = pair.model(base="free", gravity=(G * np.sin(angle), 0.0, -G * np.cos(angle)))
    ground = mr.Ground(friction=MU, lift=True)
    hold = mr.sim.PerBody(lambda model, organism: lambda t, q, v: _braced(model, q, v))
    run = mr.simulate(
        model, None, None, 0.5, hold, integrator="SemiImplicitEuler", ground=ground,
        events=[mr.Undock(0.2, "m1"), mr.Dock(0.4, "m0", 3, "m1", 4)],
    )  # fmt: skip
    assert len(run.parts) == 4
    for part in run.parts[1:]:
        assert slid(part).max() < 5e-6  # [m] of bristles that are stretched by 0.1 mm
        push = part.channels["contact"][-1].sum(axis=0)
        np.testing.assert_allclose(push, -np.sum(part.model.mass) * model.gravity, atol=1e-3)


def test_the_ground_takes_the_momentum_of_a_module_that_docks_from_above():
    """The impact itself is between the modules: a ground that yields has no impulse in no time."""
    speed, event_t, step = 0.2, 0.02, 1e-3
    dock = mr.Dock(event_t, "m0", 1, "m1", 1, approach=(0, 0, speed, 0, 0, 0))
    run = mr.simulate(
        MODEL, rested(), None, 0.5, integrator="SemiImplicitEuler", dt=step, events=[dock],
        ground=mr.Ground(stiffness=STIFFNESS),
    )  # fmt: skip
    after = run.parts[-1]
    # both move on with half the speed, and lose half of the energy
    assert after.v[0, 2] == pytest.approx(-speed / 2, rel=1e-9)
    assert run.audit[0].energy_lost == pytest.approx(MASS * speed**2 / 4, rel=1e-9)
    np.testing.assert_allclose(run.audit[0].momentum_after[2], -MASS * speed, rtol=1e-9)
    push = after.channels["contact"][:-1, 0, 2].sum() * step - 2 * MASS * G * (0.5 - event_t)
    assert push == pytest.approx(MASS * speed, rel=1e-3)  # steps that end between states
    assert np.abs(after.v[-1]).max() < 1e-3 * speed


def test_a_light_module_that_docks_softens_the_ground_or_is_refused():
    """It would oscillate faster than the step resolves; a stiffness that is given stays."""
    model = mr.Organism.start("superbot").model(base="free", hinges="physical")
    options = {
        "integrator": "SemiImplicitEuler", "record": 0.05,
        "events": [mr.Dock(0.1, "m0", 6, "n1", 1, kind="superbot_light")],
    }  # fmt: skip
    run = mr.simulate(model, None, None, 0.4, ground=mr.Ground(lift=True), **options)
    before, after = run.parts
    total = after.energy + after.channels["contact_energy"]
    assert np.diff(total).max() < 0.02 * (total[0] - total[-1])  # a method of order one
    assert after.channels["contact_energy"][0] < before.channels["contact_energy"][-1]
    with pytest.raises(mr.sim.SimulationError, match=r"t = 0\.1 s: dt = 0\.001 s is too long"):
        mr.simulate(model, None, None, 0.4, ground=mr.Ground(lift=True, stiffness=3e3), **options)


def _braced(model: mr.Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Joints held where they are."""
    tau = np.zeros(model.nv)
    tau[model.joint_slice_v] = -5.0 * q[model.joint_slice_q] - 0.1 * v[model.joint_slice_v]
    return tau


# -- MuJoCo ----------------------------------------------------------------------------------------

MJCF = """<mujoco><option timestep="0.0005" cone="elliptic" impratio="10"/>
<default><geom friction="0.5 0 0" condim="3" solref="0.004 1"/></default><worldbody>
<geom type="plane" size="5 5 1"/><body pos="0 0 0.06"><freejoint/>
<inertial pos="0 0 0" mass="1" diaginertia="{:.9g} {:.9g} {:.9g}"/>
<geom type="box" size="0.05 0.05 0.025"/></body></worldbody></mujoco>"""


def test_a_dropped_and_pushed_block_ends_where_mujoco_says():
    x, y, z = EDGES
    moments = [s / 12 for s in (y * y + z * z, x * x + z * z, x * x + y * y)]
    theirs = mujoco.MjModel.from_xml_string(MJCF.format(*moments))
    data = mujoco.MjData(theirs)
    data.qvel[:2] = [1.0, 0.4]
    mujoco.mj_step(theirs, data, 1000)
    push = np.array([1.0, 0.4, 0.0, 0.0, 0.0, 0.0])
    run = mr.simulate(
        MODEL, on_slope(MODEL, 0.06), push, 0.5, integrator="SemiImplicitEuler", dt=5e-4,
        ground=mr.Ground(friction=0.5), record=0.5,
    )  # fmt: skip
    path = np.linalg.norm(data.qpos[:2])
    assert np.linalg.norm(run.q[-1, :2] - data.qpos[:2]) < 0.05 * path


def test_a_random_gait_without_friction_is_that_of_mujoco():
    """Normal forces and drives alone; friction of the two engines is of different laws."""
    rng = np.random.default_rng(0)
    organism = mr.Organism.random("backbone", 6, rng)
    model = organism.model(base="free")
    phases, step, duration = rng.uniform(0, 2 * np.pi, (1, len(model.joint_names))), 2e-4, 0.2
    gait, law = Sines(model, phases), Sines(model, phases[0])
    ends = []
    for h in (5 * step, step):
        run = mr.simulate(
            model, None, None, duration, law, "SemiImplicitEuler", dt=h, record=duration,
            ground=mr.Ground(friction=0.0, lift=True),
        )  # fmt: skip
        ends.append(run.q[-1, :3] - run.q[0, :3])
    peer = on_ground(organism, "dyad", gait, solref=0.001)
    peer.model.geom_friction[:, 0] = 0.0
    expected = peer.rollout(gait, duration, step, run.q[0, 2])[0, -1] - run.q[0, :3]
    coarse, fine = (np.linalg.norm(end - expected) for end in ends)
    assert np.linalg.norm(expected) > 0.01  # [m]
    assert fine < 0.01 * np.linalg.norm(expected)  # both grounds yield a little
    assert fine < coarse / 4  # and ours less with a shorter step


def test_a_random_gait_with_friction_nears_that_of_mujoco_as_both_grounds_harden():
    """Up to the first landing at speed: friction of the two engines differs in impacts, below."""
    rng = np.random.default_rng(4)
    organism = mr.Organism.random("superbot", int(rng.integers(2, 5)), rng)
    model = organism.model("physical", "free")
    phases, duration = rng.uniform(0, 2 * np.pi, (1, len(model.joint_names))), 0.125
    gait, law = (Sines(model, x, 4.0, 0.04, 2.0, 0.3) for x in (phases, phases[0]))
    apart = []
    for step, time_constant in ((2.5e-4, 2e-2), (2.5e-5, 2.5e-4)):
        run = mr.simulate(
            model, None, None, duration, law, "SemiImplicitEuler", dt=step, record=duration,
            ground=mr.Ground(friction=FRICTION, lift=True),
        )  # fmt: skip
        peer = on_ground(organism, "physical", gait, time_constant)
        expected = peer.rollout(gait, duration, step, run.q[0, 2])[0, -1] - run.q[0, :3]
        apart.append(np.linalg.norm(run.q[-1, :3] - run.q[0, :3] - expected))
    soft, hard = apart
    assert np.linalg.norm(expected[:2]) > 0.015  # [m]
    assert hard < 0.01 * np.linalg.norm(expected)
    assert hard < soft / 4


@pytest.mark.parametrize("seed", [0, 2])  # 0 to 5 are 1, 1, 0.4, 3, 5 and 24 % of the way apart
def test_a_gait_on_hard_ground_is_that_on_rigid_ground(seed):
    """Impulses of Coulomb's law without rebound are the limit; see the oracle."""
    rng = np.random.default_rng(seed)
    model = mr.Organism.random("backbone", 4, rng).model("dyad", "free")
    law, duration = Sines(model, rng.uniform(0, 2 * np.pi, len(model.joint_names))), 0.3
    run = mr.simulate(
        model, None, None, duration, law, "SemiImplicitEuler", dt=1.25e-4, record=duration,
        ground=mr.Ground(friction=FRICTION, lift=True),
    )  # fmt: skip
    start = run.q[0], np.zeros(model.nv)
    expected = rigid_motion(model, *start, law, FRICTION, 1e-3, [duration])[0, :3]
    way = np.linalg.norm(expected - run.q[0, :3])
    assert way > 0.02  # [m]
    assert np.linalg.norm(run.q[-1, :3] - expected) < 0.02 * way


def compression_impulse(A: np.ndarray, u: np.ndarray, mu: float) -> np.ndarray:
    """(3,) impulse on a point with inverse inertia A until its normal speed is zero (Keller 1986).

    The impulse takes the place of time: at each of its steps Coulomb's law holds.
    """
    p, step = np.zeros(3), -1e-3 * u[2] / A[2, 2]
    while u[2] < 0:
        change = step * np.array([*(-mu * u[:2] / np.linalg.norm(u[:2])), 1.0])
        p, u = p + change, u + A @ change
    return p


@pytest.mark.parametrize(
    ("tilt", "velocity"),
    [((0.3, 0.5, 0.0), (1.0, 0.4, -0.5)), ((-0.4, 0.6, 0.2), (-1.0, 0.2, -0.3))],
)
def test_a_corner_that_lands_and_slides_obeys_coulomb_and_in_mujoco_bounces(tilt, velocity):
    """Without restitution; a contact of MuJoCo that slides also separates."""
    R, h, u = so3.exp(np.array(tilt)), 1e-6, np.array(velocity)
    r = min((R @ (np.array(EDGES) * s / 2) for s in 2 * np.indices((2, 2, 2)).reshape(3, -1).T - 1),
            key=lambda x: x[2])  # fmt: skip
    q, v = np.concatenate([[0, 0, -r[2]], so3.to_quaternion(R)]), np.append(R.T @ u, np.zeros(3))
    x, y, z = EDGES
    moments = np.array([y * y + z * z, x * x + z * z, x * x + y * y]) * MASS / 12
    turns = so3.hat(r) @ R @ np.diag(1 / moments) @ R.T  # of the corner, by torques on the block
    expected = u + compression_impulse(np.eye(3) / MASS - turns @ so3.hat(r), u, MU) / MASS
    stiff = GroundContact(mr.Ground(), MODEL, FLAT, q, h).law.stiffness
    # 16 times fewer radians in a step than by default: such steps resolve the impact
    ground, duration = mr.Ground(friction=MU, stiffness=stiff / 256, damping=1e3), 800 * h
    run = mr.simulate(
        MODEL, q, v, duration, integrator="SemiImplicitEuler", dt=h, ground=ground, record=duration
    )
    ours = so3.from_quaternion(run.q[-1, 3:]) @ run.v[-1, :3] + [0, 0, G * duration]
    assert run.channels["contact"][-1, 0, 2] < MASS * G  # it is over
    assert np.linalg.norm(ours - expected) < 0.05 * np.linalg.norm(expected - u)  # elastic bristle
    theirs = mujoco.MjModel.from_xml_string(MJCF.format(*moments))
    theirs.opt.timestep, theirs.geom_solref[:, 0] = 5e-6, 5e-5
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:3] = q[[0, 1, 2, 6, 3, 4, 5]], u
    mujoco.mj_step(theirs, data, 50)
    assert data.ncon == 0
    assert data.qvel[2] - expected[2] > 0.3 * (expected[2] - u[2])


# -- mistakes --------------------------------------------------------------------------------------


def standing(**options) -> mr.Trajectory:
    given = {"integrator": "RK4", "ground": mr.Ground()} | options
    return mr.simulate(MODEL, rested(), None, 0.01, **given)


def test_mistakes_are_refused_with_a_way_out():
    with complains(mr.StateError, "'m0.box' starts 0.025 m below the ground", "Ground(lift=True)"):
        mr.simulate(MODEL, None, None, 0.01, ground=mr.Ground())
    two = np.stack([rested(), on_slope(MODEL, 0.0)])
    with complains(mr.StateError, "below the ground in state 1"):
        mr.simulate(MODEL, two, None, 0.01, integrator="RK4", ground=mr.Ground())
    with complains(mr.StateError, "friction", "-0.1"):
        mr.Ground(friction=-0.1)
    with complains(mr.StateError, "slope is its rise along x and y", "0.3"):
        mr.Ground(slope=0.3)
    with complains(mr.StateError, "slope", "within ±100", "1e+300"):
        mr.Ground(slope=(1e300, 0.0))
    with complains(mr.StateError, "lift is True or False", "'yes'"):
        mr.Ground(lift="yes")
    hole = np.zeros((4, 5))
    hole[2, 3] = np.nan
    with complains(mr.StateError, "has a hole: nan at [2, 3] (1 in all)"):
        mr.Ground(height=hole)
    with complains(mr.StateError, "has a hole: nan at [2, 3] (1 in all)"):
        mr.Ground(height=np.ma.masked_invalid(hole))
    with complains(mr.StateError, "two numbers or more each way", "(4,)"):
        mr.Ground(height=np.zeros(4))
    with complains(mr.StateError, "height is a finite number, or an array", "'low'"):
        mr.Ground(height="low")
    arm = mr.Organism.start("chen_link").dock("m0", 1, "m1", 1, kind="chen_revolute").model()
    with complains(mr.StateError, "below the ground", "give Ground(height=-0.05)"):
        mr.simulate(arm, None, None, 0.01, ground=mr.Ground())
    mr.simulate(arm, None, None, 0.01, ground=mr.Ground(height=-0.05))
    with complains(mr.StateError, "ground is a modurob.Ground, got float"):
        standing(ground=0.5)


def test_a_step_that_is_too_long_is_refused_with_the_longest_that_works():
    with pytest.raises(mr.StateError, match="give dt = ") as error:
        standing(dt=5e-3, ground=mr.Ground(stiffness=STIFFNESS))
    named = float(str(error.value).split("give dt = ")[1].split(" s")[0])
    stiffness = float(str(error.value).split("a stiffness of ")[1].split(" N/m")[0])
    standing(dt=named, ground=mr.Ground(stiffness=STIFFNESS))
    standing(dt=5e-3, ground=mr.Ground(stiffness=stiffness))
    with complains(mr.StateError, "too long for a ground"):
        standing(dt=1.2 * named, ground=mr.Ground(stiffness=STIFFNESS))
    # ground that is as hard as the step allows must still carry the body
    with pytest.raises(mr.StateError, match=r"sink by 0\.11 m; give dt = ") as error:
        mr.simulate(MODEL, None, None, 2.0, dt=0.05, ground=mr.Ground(lift=True))
    named = float(str(error.value).split("give dt = ")[1].split(" s")[0])
    run = mr.simulate(MODEL, None, None, 2.0, dt=named, ground=mr.Ground(lift=True))
    mr.simulate(MODEL, None, None, 0.1, dt=0.05, ground=mr.Ground(lift=True), engine="mujoco")
    assert 0.08 * EDGES[0] < EDGES[2] / 2 - run.q[-1, 2] < 0.1 * EDGES[0]


@pytest.mark.parametrize("height", [-1.0, np.full((2, 2), -1.0)], ids=["plane", "field"])
def test_an_empty_batch_stands_on_the_ground(height):
    for options in (
        {"integrator": "SemiImplicitEuler"},
        {"integrator": "RK4"},
        {"engine": "mujoco"},
    ):
        none = np.empty((0, MODEL.nq))
        run = mr.simulate(MODEL, none, None, 0.002, ground=mr.Ground(height=height), **options)
        assert run.q.shape == (3, 0, MODEL.nq)
        assert run.channels["contact"].shape == (3, 0, 1, 3)


def test_a_base_that_turns_too_far_in_a_step_ends_the_run():
    ground = mr.Ground(height=-1.0)
    spin = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 990.0])
    options = {"integrator": "SemiImplicitEuler", "ground": ground}
    run = mr.simulate(MODEL, None, spin, 0.002, **options)
    half = 990.0 * 0.002 / 2
    np.testing.assert_allclose(run.q[-1, 3:], [0, 0, np.sin(half), np.cos(half)], atol=ROUNDING)
    for factor in (1.1, 100.0):
        with complains(mr.SimulationError, "rad/s", "step of 0.001 s", "give dt = "):
            mr.simulate(MODEL, None, factor * spin, 0.002, **options)


def test_memory_for_contact_channels_is_asked_for_before_the_run(monkeypatch):
    run = standing()
    arrays = [run.t, run.q, run.v, run.tau, run.v, *run.channels.values()]  # v: forces on joints
    size = sum(array.nbytes for array in arrays)
    monkeypatch.setattr("modurob.checks.LARGEST_BYTES", size)
    standing()
    monkeypatch.setattr("modurob.checks.LARGEST_BYTES", size - 1)
    with complains(mr.SizeError, "11 times of 1 states", "record="):
        standing()


def test_a_model_without_shapes_is_refused():
    made = mr.Model(**{**{k: getattr(MODEL, k) for k in MODEL.__dataclass_fields__},
                       "organism": None, "options": None})  # fmt: skip
    with complains(mr.StateError, "touches the shapes of an organism", "organism="):
        mr.simulate(made, rested(), None, 0.01, ground=mr.Ground())
    mr.simulate(made, rested(), None, 0.01, ground=mr.Ground(), organism=FLAT)


def test_an_integrator_from_outside_stands_too():
    class Euler(FixedStep):
        order, batches = 1, True

        def advance(self, t, h, count, q, v):
            for k in range(count):
                v = v + h * self.motion.acceleration(t + k * h, q, v)
                q = self.motion.model.integrate(q, h * v)
            return q, v

    run = standing(integrator=Euler, ground=mr.Ground(stiffness=STIFFNESS))
    assert run.channels["contact"][-1, 0, 2] == pytest.approx(MASS * G, rel=0.05)
