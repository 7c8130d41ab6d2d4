"""External wrenches that are known: in the closed form, in every law and in the filter."""

import numpy as np
import pytest

from modurob import Ground, Scenario, StateError, UnknownNameError, examples, simulate
from modurob.control import (
    CONTROLLERS,
    ComputedTorque,
    OutputFeedback,
    PdGravity,
    Reference,
    TrackingController,
)
from modurob.dynamics import external_forces, external_slopes
from modurob.estimation import Ekf
from modurob.sim import Noise
from oracles import complains
from oracles.differences import columns
from oracles.rigid_tree import PinocchioDynamics
from oracles.rough_organisms import case

SAME = 1e-11  # of torques below 100 N m: sums of the same numbers in another order
SLOPES = 1e-9  # of the largest entry, against differences of order eight
DT = 0.01  # [s]


def bodies():
    arm = examples.arm("bac").with_parameters(viscous=0.05)
    return {
        "arm": (arm.model("physical"), ()),
        "free": (examples.snake(3).model("physical", base="free"), ()),
        "crane": (examples.crane().with_parameters(viscous=0.1).model("physical"), ("m1.hinge",)),
    }


every_body = pytest.mark.parametrize("body", ["arm", "free", "crane"])


def state(model, seed=3):
    rng = np.random.default_rng(seed)
    wrenches = {model.body_names[k]: rng.standard_normal(6) for k in (-1, -2)}
    return model.random_configuration(rng), rng.standard_normal(model.nv), wrenches


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_the_closed_form_under_wrenches_is_pinocchios_inverse_dynamics(base):
    c = case("giusti", 5, "physical", base)
    engine = PinocchioDynamics(c.tree, c.model)
    M, C, N = c.model.closed_form(c.q, c.v, c.external)
    rough = np.array([engine.friction(v) for v in c.v])
    found = (M @ c.x[..., None] + C @ c.v[..., None])[..., 0] + N + rough
    pushes = [{body: w[k] for body, w in c.external.items()} for k in range(len(c.q))]
    expected = [engine.inverse_dynamics(*each) for each in zip(c.q, c.v, c.x, pushes, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    assert c.external  # some body was pushed
    one = c.model.closed_form(c.q[0], c.v[0], {b: w[:2] for b, w in c.external.items()})
    assert one.M.shape == (2, c.model.nv, c.model.nv)  # a batch of wrenches on one state


@pytest.mark.parametrize("law", [ComputedTorque, CONTROLLERS["PidLinearized"]])
@every_body
def test_linearized_joints_do_not_feel_a_wrench_that_is_known(law, body):
    """Forward dynamics with the wrench gives the accelerations of the run without it."""
    model, passive = bodies()[body]
    q, v, wrenches = state(model)
    motors = [k for k, name in enumerate(model.joint_names) if name not in passive]
    rows = np.array(motors) + model.joint_slice_v.start
    rng = np.random.default_rng(1)
    goal = Reference(*(0.3 * rng.standard_normal((3, len(model.joint_names)))))
    alone = model.forward_dynamics(q, v, law(model, passive=passive).command(0.0, q, v, goal))
    tau = law(model, passive=passive).command(0.0, q, v, goal, wrenches)
    pushed = model.forward_dynamics(q, v, tau, wrenches)
    np.testing.assert_allclose(pushed[rows], alone[rows], rtol=0, atol=1e-9)
    still = np.setdiff1d(np.arange(model.nv), rows)
    assert not tau[still].any()


@pytest.mark.parametrize("law", CONTROLLERS.values(), ids=CONTROLLERS)
def test_every_law_takes_wrenches_and_a_law_without_coupling_takes_them_off(law):
    model, _ = bodies()["arm"]
    q, v, wrenches = state(model)
    goal = np.zeros(len(model.joint_names))
    alone = law(model).command(0.0, q, v, goal)
    found = law(model).command(0.0, q, v, goal, wrenches)
    if "Impedance" not in law.__name__:  # those yield
        push = sum(model.jacobian(q, body).T @ w for body, w in wrenches.items())
        np.testing.assert_allclose(found, alone - push, rtol=0, atol=SAME)
    many = law(model).batched(2).command(0.0, np.tile(q, (2, 1)), np.tile(v, (2, 1)), goal, {
        body: np.tile(w, (2, 1)) for body, w in wrenches.items()
    })  # fmt: skip
    np.testing.assert_allclose(many, [found, found], rtol=0, atol=SAME)


def test_a_pushed_arm_stays_at_its_set_point_when_the_wrench_is_known():
    model, _ = bodies()["arm"]
    goal, push = np.array([0.3, -0.4, 0.1]), {model.body_names[-1]: [3.0, -2.0, 1.0, 0.2, 0.1, 0.3]}
    rest = {}
    for name, known in (("unknown", None), ("known", push)):
        law = PdGravity(model, kp=20.0, kd=4.0)
        q, v = goal.copy(), np.zeros(3)
        for _ in range(800):
            tau = law.command(0.0, q, v, goal, known)
            v = v + DT / 4 * model.forward_dynamics(q, v, tau, push)
            q = q + DT / 4 * v
        rest[name] = np.abs(q - goal).max()
    assert rest["known"] < 1e-10
    assert rest["unknown"] > 0.01


@pytest.mark.parametrize("law", ["PidLinearized", "Adaptive"])
def test_a_limit_that_a_known_wrench_reaches_is_a_limit(law):
    """The integral is held and nothing is learned, though the law's own torque is within."""
    model = examples.crab().model()
    one = CONTROLLERS[law](model, sample_time=DT, torque_limit=4.0)
    wrench = {model.body_names[-1]: [0, 0, -100.0, 0, 0, 0]}
    own = CONTROLLERS[law](model, sample_time=DT)

    def memory(some):
        return some.pid.integral if law != "Adaptive" else some.factors

    for k, push in enumerate((None, wrench, wrench)):
        before = memory(one).copy()
        some = [x.command(k * DT, [0.0, 0, 0], [0.2, 0, 0], [0.3, 0, 0], push) for x in (own, one)]
        assert k == 0 or (np.abs(some[0]).max() > 4.0 and np.abs(some[1]).max() == 4.0)
    assert np.abs(own.command(2 * DT, [0.0, 0, 0], [0.2, 0, 0], [0.3, 0, 0])).max() < 4.0
    np.testing.assert_array_equal(memory(one), before)
    assert np.abs(memory(own) - before).max() > 0


def test_wrong_wrenches_are_named():
    model, _ = bodies()["arm"]
    z = np.zeros(3)
    law, ekf = ComputedTorque(model), Ekf(model, DT)
    for ask in (lambda w: law.command(0.0, z, z, z, w), lambda w: ekf.predict(z, w)):
        with complains(UnknownNameError, "no body 'hand'", model.body_names[0]):
            ask({"hand": np.zeros(6)})
        with complains(StateError, "six finite numbers", "shape (3,)"):
            ask({model.body_names[-1]: np.zeros(3)})
        with complains(StateError, "external is a mapping", "list"):
            ask([1.0, 2.0])


# -- the filter ------------------------------------------------------------------------------------


@every_body
def test_slopes_of_external_forces_are_their_derivatives(body):
    model, _ = bodies()[body]
    q, _, wrenches = state(model)
    found = external_slopes(model, q, wrenches)
    expected = columns(
        lambda dq: external_forces(model, model.integrate(q, dq), wrenches), model.nv
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=SLOPES * np.abs(expected).max())


@pytest.mark.parametrize("substeps", [1, 3])
@every_body
def test_the_covariance_of_a_pushed_body_follows_the_derivative_of_its_step(body, substeps):
    model, _ = bodies()[body]
    q, v, wrenches = state(model)
    tau, nv = np.zeros(model.nv), model.nv

    def ahead(at, speed, **options):
        ekf = Ekf(model, DT, Q=0.0, q=at, v=speed, substeps=substeps, **options)
        ekf.predict(tau, wrenches)
        return ekf

    after = ahead(q, v, P=np.eye(2 * nv))

    def moved(dx):
        found = ahead(model.integrate(q, dx[:nv]), v + dx[nv:])
        return np.concatenate([model.difference(after.q, found.q), found.v - after.v])

    A = columns(moved, 2 * nv)
    np.testing.assert_allclose(after.P, A @ A.T, rtol=0, atol=SLOPES * np.abs(after.P).max())


def test_the_prediction_under_a_wrench_converges_to_the_motion():
    """Against SciPy's Runge-Kutta of order eight on forward dynamics with the wrench."""
    from scipy.integrate import solve_ivp

    model, _ = bodies()["arm"]
    q, v, wrenches = state(model)
    tau, n = np.array([1.0, -0.5, 2.0]), 3

    def rate(_, x):
        return np.concatenate([x[n:], model.forward_dynamics(x[:n], x[n:], tau, wrenches)])

    exact = solve_ivp(rate, (0, DT), np.r_[q, v], "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    errors = []
    for substeps in (4, 8):
        ekf = Ekf(model, DT, q=q, v=v, substeps=substeps)
        ekf.predict(tau, wrenches)
        errors.append(np.abs(np.r_[ekf.q, ekf.v] - exact).max())
    blind = Ekf(model, DT, q=q, v=v)
    blind.predict(tau)
    assert errors[1] < 0.05 * np.abs(np.r_[blind.q, blind.v] - exact).max()
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)  # held for a substep: order one


def test_a_filter_that_knows_the_wrench_has_no_bias():
    model, _ = bodies()["arm"]
    push, goal = {model.body_names[-1]: [2.0, 1.0, -1.0, 0.1, 0.0, 0.2]}, np.zeros(3)
    found = {}
    for name, known in (("unknown", None), ("known", push)):
        law = TrackingController(ComputedTorque(model, sample_time=DT), lambda t: goal)
        loop = OutputFeedback(law, Ekf(model, DT, Q=np.repeat([1e-10, 1e-6], 3), R=1e-6, P=1e-6))
        q, v = np.zeros(3), np.zeros(3)
        loop.reset(0.0, q, v)
        for k in range(150):
            tau = loop.command(k * DT, q, v, external=known)
            for _ in range(4):
                v = v + DT / 4 * model.forward_dynamics(q, v, tau, push)
                q = q + DT / 4 * v
        found[name] = np.abs(loop.estimator.v - v).max(), np.abs(q).max()
    assert found["known"][0] < 0.05 * found["unknown"][0]
    assert found["known"][1] < 0.05 * found["unknown"][1]


# -- measured during a run -------------------------------------------------------------------------


def test_with_the_wrench_measured_the_run_is_the_one_without_it():
    """Computed torque takes it up: the motion is that of a run in which nothing pushes."""
    model = examples.double_pendulum().model("physical")
    law, goal = ComputedTorque(model), np.array([0.3, -0.2])
    push = {"m2": lambda t: np.array([2.0, 3 * np.sin(9 * t), 1.0, 0.1, 0.2, 0.3])}
    given = {"reference": goal, "record": 0.1}
    alone, blind, seen = (
        simulate(model, None, None, 1.0, law, **given, **options).q
        for options in ({}, {"external": push}, {"external": push, "wrench_sensors": True})
    )
    assert np.abs(blind - alone).max() > 1e-2
    np.testing.assert_allclose(seen, alone, rtol=0, atol=1e-7)  # of RK45 with 1e-8


def test_a_scenario_hands_pushes_to_its_law_and_estimator(tmp_path):
    body = Scenario(
        organism=examples.crab(), motion="hold", controller="ComputedTorque", sample_time=DT,
        duration=0.3, pushes=[{"body": "m3", "force": (0.0, 0.0, 2.0)}],
    )  # fmt: skip
    body.edited(wrench_sensors=True).save(tmp_path / "run.json")
    seen = Scenario.load(tmp_path / "run.json")
    assert seen.wrench_sensors
    for more in ({}, {"estimator": "Ekf"}):
        assert np.abs(seen.edited(**more).run().trajectory.q[-1]).max() < 1e-4
    assert np.abs(body.run().trajectory.q[-1]).max() > 1e-3
    with complains(StateError, "wrench_sensors: has no effect without a push or ground"):
        seen.edited(pushes=())


def test_sensors_need_a_law_that_takes_wrenches():
    model = examples.crab().model()
    for law in (lambda t, q, v: 0 * v, object()):
        with complains(StateError, "wrench_sensors need a controller with command("):
            simulate(model, None, None, 0.1, law, wrench_sensors=True)
    with complains(StateError, "wrench_sensors is True or False"):
        simulate(model, None, None, 0.1, wrench_sensors="yes")  # pyright: ignore


# -- forces of the ground --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lying():
    """A free snake of cubes on its side: three lie on the ground, the tail is raised."""
    return examples.snake(4).model("physical", base="free")


RAISED = np.array([0.0, 0.0, 0.8])  # [rad]
TAIL_LOAD = 1.0 * 9.81 * 0.1 * np.cos(RAISED[2])  # [N m] a cube of 1 kg, 0.1 m from the hinge


def on_ground(model, law, duration=0.8, engine="modurob", **options):
    start = model.neutral()
    start[model.joint_slice_q] = RAISED
    method = "SemiImplicitEuler" if engine == "modurob" else None
    return simulate(
        model, start, None, duration, law, method, dt=1e-3, reference=RAISED, engine=engine,
        ground=Ground(lift=True), record=0.02, **options,
    )  # fmt: skip


@pytest.mark.parametrize("engine", ["modurob", "mujoco"])
def test_a_law_that_measures_the_ground_carries_the_load_of_statics(lying, engine):
    """On a free base the load of the joints is that of the contact forces: with them it is held."""
    law = PdGravity(lying, settling_time=0.3, sample_time=0.002)
    blind, seen = (on_ground(lying, law, engine=engine, wrench_sensors=x) for x in (False, True))
    assert seen.channels["contact"][-1, :, 2].sum() == pytest.approx(4 * 9.81, rel=1e-3)
    assert seen.tau[-1, -1] == pytest.approx(TAIL_LOAD, rel=2e-3)
    assert np.abs(seen.q[-1, -3:] - RAISED).max() < 1e-3
    assert blind.q[-1, -1] - RAISED[2] < -0.05  # sags: designed for a base that floats


@pytest.mark.parametrize("law", ["ComputedTorque", "Adaptive"])
def test_other_laws_stay_on_the_ground_as_in_the_air_when_they_measure_it(lying, law):
    one = CONTROLLERS[law](lying, settling_time=0.3, sample_time=0.002)
    found = on_ground(lying, one, 0.5, wrench_sensors=True)
    assert np.abs(found.q[-1, -3:] - RAISED).max() < 2e-3
    assert found.tau[-1, -1] == pytest.approx(TAIL_LOAD, rel=5e-3)


def test_a_joint_with_an_inertia_of_its_own_yields_to_the_ground_by_its_compliance(lying):
    law = CONTROLLERS["JointImpedance"](lying, 4.0, 0.4, 0.02, sample_time=0.002)
    found = on_ground(lying, law, 1.2, wrench_sensors=True)
    sag = RAISED[2] - found.q[-1, -1]
    assert 4.0 * sag == pytest.approx(1.0 * 9.81 * 0.1 * np.cos(RAISED[2] - sag), rel=1e-2)


def test_noise_of_joints_is_not_in_the_measured_forces_of_the_ground(lying):
    """Sensors measure the contact of the true state: with noise of 10 mm they have the weight."""
    loads: list[float] = []

    class Seen(PdGravity):
        def command(self, t, q, v, reference=None, external=None):
            loads.append(sum(np.linalg.norm(w[:3]) for w in (external or {}).values()))
            return super().command(t, q, v, reference, external)

    law = Seen(lying, settling_time=0.3, sample_time=0.002)
    noise = Noise(q=np.r_[np.full(6, 0.01), np.zeros(3)])
    on_ground(lying, law, 0.6, wrench_sensors=True, noise=noise, rng=np.random.default_rng(0))
    np.testing.assert_allclose(loads[-50:], 4 * 9.81, rtol=0.05)


def test_a_tip_with_an_impedance_presses_on_the_ground_with_the_force_of_its_spring():
    """Both ways: without a sensor, and with an inertia that needs the measured force."""
    arm = examples.arm("bababab").model("physical")
    low = np.array([0.2, 1.068, 0.1, -1.068, -0.1, 1.068, 0.3])  # the tip 20 mm in the ground
    start = low - 0.02 * np.sign(low) * [0, 1, 0, 1, 0, 1, 0]
    K, D = np.array([400.0, 400, 800, 30, 30, 30]), np.array([60.0, 60, 90, 4, 4, 4])
    wanted = arm.forward_kinematics(low)[-1, :3, 3]
    for inertia, sensors in ((None, False), ([2, 2, 2, 0.05, 0.05, 0.05], True)):
        law = CONTROLLERS["CartesianImpedance"](arm, "m6.distal", K, D, inertia, sample_time=1e-3)
        run = simulate(
            arm, start, None, 0.7, law, "SemiImplicitEuler", reference=low, ground=Ground(0.3),
            wrench_sensors=sensors, record=0.1,
        )  # fmt: skip
        force = run.channels["contact"][-1, -1]
        spring = K[:3] * (arm.forward_kinematics(run.q[-1])[-1, :3, 3] - wanted)
        assert force[2] > 10
        np.testing.assert_allclose(spring, force, rtol=0, atol=0.01 * force[2])


def test_sensors_of_contact_forces_that_torques_decide_need_a_clock(lying):
    with complains(StateError, "wrench_sensors with engine 'mujoco' need a sample_time"):
        on_ground(lying, ComputedTorque(lying), engine="mujoco", wrench_sensors=True)
