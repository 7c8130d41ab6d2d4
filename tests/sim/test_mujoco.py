"""MuJoCo as the engine: our motion without contact, the theory of friction with it."""

import dataclasses
import sys

import mujoco
import numpy as np
import pytest
from click.testing import CliRunner

import modurob as mr
from modurob.cli import cli
from modurob.control import ComputedTorque, TrackingController
from modurob.control.references import SetPoint
from modurob.interop import mjcf
from modurob.interop.mujoco_model import MujocoModel
from modurob.sim import Noise, Stops
from modurob.sim.mujoco_engine import MujocoPlant
from modurob.stepping import EquationOfMotion
from oracles.blocks import block, on_slope
from oracles.complaints import complains

G, MU = 9.81, 0.5
EDGES = (0.1, 0.1, 0.05)
BLOCK = block(EDGES)
MODEL = BLOCK.model(base="free")
SAME = 2e-8  # [rad, m, rad/s, m/s] of two fourth-order methods after a second
SUNK_M = 2e-4  # that MuJoCo's default contact gives way under a block of 1 kg
ROUNDING = 1e-12


def simulate(model, q, v, duration, *law, **options) -> mr.Trajectory:
    return mr.simulate(model, q, v, duration, *law, engine="mujoco", **options)


def without_shapes(model: mr.Model) -> mr.Model:
    """The same model; nothing of it can touch."""
    return dataclasses.replace(model, organism=None, options=None)


# -- motion without contact ------------------------------------------------------------------------

BODIES = [
    ("backbone", "free", {"viscous": 0.02}),
    ("scout", "fixed", {"viscous": 0.02}),
    ("superbot", "free", {"viscous": 0.01}),
    ("superbot", "fixed", {"rotor_inertia": 2e-6, "gear_ratio": 60.0}),
    ("giusti_a", "fixed", {"viscous": 0.1, "stiffness": 20.0, "rotor_inertia": 1e-4}),
    ("chen_prismatic", "free", {}),
]


@pytest.mark.parametrize(("kind", "base", "numbers"), BODIES)
def test_a_body_moves_as_in_modurob(kind, base, numbers):
    rng = np.random.default_rng(3)
    count = 1 if kind == "chen_prismatic" else 3
    organism = mr.Organism.random(kind, count, rng).with_parameters(**numbers)
    model = without_shapes(organism.model("physical", base))
    q, v = model.neutral(), 0.3 * rng.standard_normal(model.nv)
    q[model.joint_slice_q] += 0.2 * rng.standard_normal(len(model.joint_names))
    ours = mr.simulate(model, q, v, 1.0, integrator="DOP853", rtol=1e-11, record=0.25)
    theirs = simulate(model, q, v, 1.0, integrator="RK4", dt=5e-4, record=0.25)
    assert np.abs(ours.v[-1] - v).max() > 0.1
    assert np.abs(model.difference(ours.q, theirs.q)).max() < SAME
    assert np.abs(ours.v - theirs.v).max() < SAME
    np.testing.assert_allclose(theirs.a, model.forward_dynamics(theirs.q, theirs.v, 0 * v),
                               atol=1e-9 * np.abs(theirs.a).max())  # fmt: skip


def test_dry_friction_stops_a_joint_after_i_omega_squared_over_2_c():
    organism = mr.Organism.start("giusti_a").with_parameters(coulomb=0.2, viscous=0.0)
    model = without_shapes(organism.model("physical", gravity=(0, 0, 0)))
    inertia, speed = float(model.mass_matrix([0.0])[0, 0]), 5.0
    stopped = inertia * speed**2 / (2 * 0.2)
    dt = 1e-4
    run = simulate(model, [0.0], [speed], 2 * inertia * speed / 0.2, dt=dt)
    assert run.q[-1, 0] == pytest.approx(stopped, abs=speed * dt)  # first order
    slides = run.t < 0.5 * inertia * speed / 0.2
    np.testing.assert_allclose(run.a[slides, 0], -0.2 / inertia, rtol=1e-6)


def test_friction_answers_a_torque_at_the_sample_at_which_it_begins():
    """It holds the joint until then; the record of that time has the new torque and its motion."""
    organism = mr.Organism.start("giusti_a").with_parameters(coulomb=0.2, viscous=0.0)
    model = without_shapes(organism.model("physical", gravity=(0, 0, 0)))
    inertia = float(model.mass_matrix([0.0])[0, 0])
    run = simulate(
        model, [0.0], [0.0], 0.02, lambda t, q, v: [1.0 if t > 0.005 else 0.0], dt=1e-3,
        sample_time=0.01,
    )  # fmt: skip
    (at,) = np.flatnonzero(np.isclose(run.t, 0.01))
    assert run.tau[[at - 1, at], 0].tolist() == [0.0, 1.0]
    np.testing.assert_allclose(run.a[:at, 0], 0.0, atol=1e-9)
    assert run.a[at, 0] == pytest.approx((1.0 - 0.2) / inertia, rel=0.01)


def test_dry_friction_holds_joints_with_the_shortest_time_constant_that_mujoco_takes():
    """Of two steps, as its documentation says of solref; a torque below it lets a joint creep."""
    model = without_shapes(mr.Organism.start("giusti_a").model("physical"))
    plant = MujocoPlant(EquationOfMotion(model, ()), None, None, False, "implicitfast", 0.0)
    for h in (1e-3, 5e-3):
        plant.march(0.0, h, 1, np.zeros(1), np.zeros(1))
        np.testing.assert_array_equal(plant._peer.dof_solref[:, 0], 2 * h)


def test_joints_stop_at_their_limits_only_when_asked():
    model = mr.examples.snake(2).model("physical", gravity=(0, 0, 0))
    joint = int(np.argmax(np.diagonal(model.mass_matrix(np.zeros(model.nq)))))
    v = np.zeros(model.nv)
    v[joint] = 10.0
    free, stopped = (
        run.q[:, joint].max()
        for run in (simulate(without_shapes(model), None, v, 0.3, stops=s) for s in (False, True))
    )
    assert free == pytest.approx(3.0, rel=1e-6)
    assert stopped < model.upper[joint] + 0.1


# -- on the ground ---------------------------------------------------------------------------------


def test_a_block_rests_on_the_ground_where_ours_does():
    options = {"ground": mr.Ground(lift=True), "record": 0.5}
    run = simulate(MODEL, None, None, 0.5, **options)
    ours = mr.simulate(MODEL, None, None, 0.5, integrator="SemiImplicitEuler", **options)
    assert run.q[-1, 2] == pytest.approx(ours.q[-1, 2], abs=SUNK_M)
    assert run.q[-1, 2] == pytest.approx(EDGES[2] / 2, abs=SUNK_M)
    np.testing.assert_allclose(run.channels["contact"][-1], [[0, 0, G]], atol=1e-4 * G)
    np.testing.assert_allclose(run.a[-1], 0.0, atol=1e-3)
    assert not run.channels["self_contact"].any()


def test_sliding_ends_after_v_squared_over_two_mu_g():
    ground, push = mr.Ground(friction=MU), [1.0, 0, 0, 0, 0, 0]
    run = simulate(MODEL, on_slope(MODEL, EDGES[2] / 2), push, 0.5, ground=ground, record=0.05)
    assert run.q[-1, 0] == pytest.approx(1 / (2 * MU * G), rel=0.01)
    x, _, z = run.channels["contact"][run.t < 0.2, 0].T  # MuJoCo's boxes rattle when they slide
    np.testing.assert_allclose(x, -MU * z, atol=1e-6)
    assert z.max() > 0.5 * G


@pytest.mark.parametrize(("share", "slides"), [(0.95, False), (1.05, True)])
def test_a_block_slides_on_a_slope_above_the_friction_angle(share, slides):
    angle = np.arctan(share * MU)
    ground = mr.Ground(friction=MU, slope=(0.0, np.tan(angle)))
    turned = on_slope(MODEL, EDGES[2] / 2, angle)[[1, 0, 2, 4, 3, 5, 6]]  # along y in place of x
    turned[3] *= -1
    run = simulate(MODEL, turned, None, 0.5, ground=ground, record=0.5)
    way = np.linalg.norm(run.q[-1, :3] - run.q[0, :3])
    expected = 0.5 * G * (np.sin(angle) - MU * np.cos(angle)) * 0.5**2 if slides else 0.0
    assert way == pytest.approx(expected, rel=0.02, abs=SUNK_M)


def test_a_field_of_heights_is_where_ours_is():
    """Stairs that rise along x and lean along y, and a block on the third."""
    x = 0.02 * np.arange(60)[:, None]
    height = np.repeat(0.03 * (x // 0.2), 40, axis=1)
    ground = mr.Ground(height=height, cell=0.02, slope=(0.0, 0.1), lift=True)
    q = MODEL.neutral()
    q[:2] = 0.11, -0.15
    run = simulate(MODEL, q, None, 0.5, ground=ground, record=0.5)
    x, y, z = run.q[-1, :3]
    assert np.hypot(x - q[0], y - q[1]) < 5e-3  # it turns as it falls on the slope
    upright = EDGES[2] / 2 * np.sqrt(1 + 0.1**2)
    assert z == pytest.approx(0.09 + 0.1 * y + upright, abs=SUNK_M)


def test_a_body_that_leaves_a_field_of_heights_is_told_so():
    field = mr.Ground(height=np.zeros((3, 3)), cell=0.01, friction=0.0)
    fast = [60.0, 0, 0, 0, 0, 0]
    with complains(mr.SimulationError, "left the ground", "x = ±5.01 m", "larger grid"):
        simulate(MODEL, on_slope(MODEL, EDGES[2] / 2), fast, 0.2, ground=field, record=0.1)


def test_pushes_move_a_block_when_they_exceed_friction():
    def pushed(force: float) -> float:
        start, ground = on_slope(MODEL, EDGES[2] / 2), mr.Ground(friction=MU)
        wrench = {"m0": lambda t: [force, 0, 0, 0, 0, 0]}
        run = simulate(MODEL, start, None, 0.3, ground=ground, external=wrench, record=0.3)
        return float(run.q[-1, 0])

    assert abs(pushed(0.9 * MU * G)) < SUNK_M
    assert pushed(1.5 * MU * G) == pytest.approx(0.5 * 0.5 * MU * G * 0.3**2, rel=0.02)


def test_pushes_and_laws_are_asked_at_each_step():
    """A force t N along the body's x on 1 kg, from outside or of a law: v = t^2 / 2."""
    free = BLOCK.model(base="free", gravity=(0, 0, 0))
    push = {"external": {"m0": lambda t: [t, 0, 0, 0, 0, 0]}}
    for options in (push, {"controller": lambda t, q, v: np.array([t, 0, 0, 0, 0, 0])}):
        run = simulate(free, None, None, 0.3, record=0.3, **options)
        assert run.v[-1, 0] == pytest.approx(0.3**2 / 2, abs=0.3 * 1e-3)  # of first order


def test_friction_holds_a_push_at_the_time_of_the_record():
    push, start = {"m0": lambda t: [20.0 * t, 0, 0, 0, 0, 0]}, on_slope(MODEL, EDGES[2] / 2)
    run = simulate(MODEL, start, None, 0.2, ground=mr.Ground(), external=push, record=0.05)
    found, held = run.channels["contact"][1:, 0, 0], -20.0 * run.t[1:]
    np.testing.assert_allclose(found, held, rtol=0.02)


def momentum_rate(run: mr.Trajectory) -> np.ndarray:
    """(N, 6) rate of the momentum, by differences along recorded v and a. [N, N m]"""
    h, m = 1e-6, run.model
    before, after = (
        m.momentum(m.integrate(run.q, s * h * run.v), run.v + s * h * run.a) for s in (-1, 1)
    )
    return (after - before) / (2 * h)


def crawl(record: float | None) -> mr.Trajectory:
    """A snake that curls on the ground, sampled every 10 ms."""
    model = mr.examples.snake(4).model("physical", base="free")

    def law(t, q, v):
        goal = 0.6 * np.sin(6 * t + np.arange(model.nv - 6))
        return np.concatenate([np.zeros(6), 4.0 * (goal - q[7:]) - 0.1 * v[6:]])

    ground = mr.Ground(lift=True)
    return simulate(model, None, None, 0.3, law, ground=ground, sample_time=0.01, record=record)


def test_forces_of_the_ground_balance_the_momentum():
    """Newton's second law ties channels, accelerations and torques of each sample together."""
    run, mass = crawl(0.02), 4.0
    force, torque = (run.channels[name].sum(axis=1) for name in ("contact", "contact_torque"))
    assert np.ptp(force[:, 1:], axis=0).min() > 1.0
    weight = np.array([0, 0, -mass * G])
    torque += np.cross(run.model.center_of_mass(run.q), weight)
    expected = np.concatenate([force + weight, torque], axis=1)
    np.testing.assert_allclose(momentum_rate(run), expected, atol=1e-4)


def test_recording_does_not_change_the_motion():
    np.testing.assert_allclose(crawl(None).q[-1], crawl(0.3).q[-1], atol=ROUNDING)


def test_memory_for_contact_channels_is_asked_for_before_the_run(monkeypatch):
    options = {"ground": mr.Ground(lift=True), "dt": 1e-3}
    run = simulate(MODEL, None, None, 2e-3, **options)
    arrays = [run.t, run.q, run.v, run.v, run.v, *run.channels.values()]  # torques, pushes: as v
    size = sum(array.nbytes for array in arrays)
    monkeypatch.setattr("modurob.checks.LARGEST_BYTES", size)
    simulate(MODEL, None, None, 2e-3, **options)
    monkeypatch.setattr("modurob.checks.LARGEST_BYTES", size - 1)
    with complains(mr.SizeError, "3 times of 1 states", "record="):
        simulate(MODEL, None, None, 2e-3, **options)


def test_a_batch_is_its_states_one_by_one():
    q, v = np.tile(on_slope(MODEL, 0.03), (2, 2, 1)), np.zeros((2, 2, 6))
    v[..., 0] = [[0.1, 0.3], [0.5, 0.7]]
    options = {"ground": mr.Ground(), "record": 0.05}
    batch = simulate(MODEL, q, v, 0.1, **options)
    assert batch.channels["contact"].shape == (3, 2, 2, 1, 3)
    one = simulate(MODEL, q[1, 0], v[1, 0], 0.1, **options)
    np.testing.assert_array_equal(batch.q[:, 1, 0], one.q)
    np.testing.assert_array_equal(batch.channels["contact"][:, 1, 0], one.channels["contact"])
    assert simulate(MODEL, q[:0], v[:0], 0.1, record=0.05).q.shape == (3, 0, 2, 7)


# -- laws, events, collisions ----------------------------------------------------------------------


def test_a_law_with_noise_holds_a_pose_as_in_modurob():
    model = mr.examples.crab().model("physical")
    goal = np.full(model.nq, 0.2)
    options = {"noise": Noise(q=1e-3, v=1e-3, tau=0.01), "record": 0.1}
    found = []
    for engine in mr.sim.ENGINES:
        law = ComputedTorque(model, settling_time=0.5, sample_time=0.01)
        run = mr.simulate(model, None, None, 1.0, TrackingController(law, SetPoint(goal)),
                          rng=np.random.default_rng(1), engine=engine, **options)  # fmt: skip
        found.append(run)
    ours, theirs = found
    assert np.abs(theirs.q[-1] - goal).max() < 0.02
    # the same noise; dt of 1 ms costs what it costs at the fastest motion
    assert np.abs(theirs.q - ours.q).max() < 5e-3
    noise = [(run.channels["measured_q"] - run.q)[:-1] for run in found]  # none at the end
    np.testing.assert_allclose(*noise, atol=ROUNDING)


def test_docking_on_the_fly_keeps_the_momentum():
    crab = mr.examples.crab().model("physical", base="free", gravity=(0, 0, 0))
    spin = np.array([0, 0, 0, 0.3, 0.2, 1.0, *np.zeros(6)])
    events = [mr.Undock(0.2, "m5"), mr.Dock(0.4, "m3", 3, "n1", 4, approach=(0, 0, 0.3, 0, 0, 0))]
    run = simulate(crab, None, spin, 0.6, integrator="RK4", events=events, record=0.1)
    before, gone, whole = run.parts[0], run.parts[2], run.parts[3]
    np.testing.assert_allclose(before.momentum, before.momentum[[0]].repeat(3, 0), atol=ROUNDING)
    undock, dock = run.audit
    np.testing.assert_allclose(undock.momentum_after, before.momentum[-1], atol=ROUNDING)
    np.testing.assert_allclose(dock.momentum_after, dock.momentum_before, atol=ROUNDING)
    np.testing.assert_allclose(whole.momentum[-1], dock.momentum_before, atol=ROUNDING)
    assert (gone.t[-1], dock.energy_lost > 1e-3) == (0.6, True)


def arms() -> tuple[mr.Model, object]:
    """A chain held in its middle, and a law that curls both ends up to each other."""
    organism = mr.examples.snake(7).rebase("m3").with_parameters(viscous=0.3)
    model = organism.model("physical", gravity=(0, 0, 0))

    def law(t, q, v):
        return 3.0 * (1.4 * min(t, 1.0) - q)

    return model, law


def test_arms_collide_that_would_pass_through_each_other():
    model, law = arms()
    through = mr.simulate(model, None, None, 1.2, law, record=1.2)
    with complains(mr.StateError, "overlap", "start in a pose without collisions"):
        simulate(model, through.q[-1], None, 0.1)
    run = simulate(model, None, None, 1.2, law, record=0.1)
    forces, torques = run.channels["self_contact"], run.channels["self_contact_torque"]
    assert not forces[0].any()
    assert np.abs(forces[-1]).max() > 1.0
    for each in (forces, torques):  # Newton's third law
        np.testing.assert_allclose(each.sum(axis=1), 0.0, atol=1e-9)
    assert np.abs(run.q[-1] - through.q[-1]).max() > 0.1


def test_bodies_may_overlap_by_a_millimeter_at_the_start():
    """Ends of a chain that curls by the same angle in all its hinges."""
    model, _ = arms()
    engine = MujocoModel(model, model.organism)
    data = engine.data()

    def depth(angle):
        engine.put(data, np.full(model.nq, angle), np.zeros(model.nv))
        mujoco.mj_fwdPosition(engine.peer, data)
        one, other = engine.geom_body[data.contact.geom].T
        return max([0.0, *-data.contact.dist[np.minimum(one, other) >= 0]])

    free, deep = 0.5, 1.4
    assert depth(free) == 0
    poses = {}
    for wanted in (0.9e-3, 1.1e-3):
        low, high = free, deep
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if depth(middle) < wanted else (low, middle)
        assert depth(high) == pytest.approx(wanted, rel=0.05)
        poses[wanted] = np.full(model.nq, high)
    simulate(model, poses[0.9e-3], None, 0.001)
    with complains(mr.StateError, "overlap by 0.0011 m"):
        simulate(model, poses[1.1e-3], None, 0.001)
    with complains(mr.StateError, "'m0.A' and 'm4.A' overlap by"):  # the end and the fixed base
        simulate(mr.examples.snake(5).model("physical"), [1.4] * 4, None, 0.001)


def test_bodies_that_fit_as_docked_do_not_push_each_other():
    """Bodies of one module in any pose; cubes side by side, with hinges that stick out."""
    scout = mr.Organism.start("scout").dock("m0", 3, "m1", 4)
    ring = mr.Organism.start("backbone").dock("m0", 3, "m1", 4).dock("m1", 2, "m2", 4)
    ring = ring.dock("m2", 2, "m3", 4).dock("m3", 3, "m4", 4)
    rng = np.random.default_rng(0)
    for organism, poses in ((scout, 8), (ring, 0)):
        model = organism.model("physical", base="free", gravity=(0, 0, 0))
        q = [model.neutral(), *(model.random_configuration(rng) for _ in range(poses))]
        run = simulate(model, np.array(q), None, 0.01, record=0.01)
        assert not run.channels["self_contact"].any()
        np.testing.assert_allclose(run.v, 0.0, atol=ROUNDING)


# -- refusals --------------------------------------------------------------------------------------

WRONG = [
    ({"engine": "bullet"}, mr.UnknownNameError, "no engine 'bullet': engines are modurob, mujoco"),
    ({"engine": None}, mr.UnknownNameError, "no engine None"),
    ({"integrator": "RK45"}, mr.UnknownNameError, "'RK45' with engine 'mujoco'"),
    ({"integrator": mr.sim.FixedStep}, mr.UnknownNameError, "implicitfast"),
    ({"stops": Stops()}, mr.StateError, "stops=True or False"),
    ({"ground": mr.Ground(stiffness=1e4)}, mr.StateError, "leave stiffness and damping"),
    ({"ground": mr.Ground(damping=1.0)}, mr.StateError, "contact law of its own"),
]


@pytest.mark.parametrize(("options", "error", "words"), WRONG)
def test_options_that_mujoco_does_not_have_are_refused(options, error, words):
    with complains(error, words):
        mr.simulate(MODEL, None, None, 0.1, **{"engine": "mujoco", **options})


def test_bodies_that_mujoco_cannot_move_are_refused():
    pendulum = mr.examples.double_pendulum()
    with complains(mr.StateError, "give it a model, not equations"):
        simulate(pendulum.equations("physical"), None, None, 0.1)
    bare = without_shapes(pendulum.model("physical"))
    with complains(mr.StateError, "not built from one"):
        simulate(bare, None, None, 0.1, ground=mr.Ground())
    massless = dataclasses.replace(bare, mass=0 * bare.mass, inertia=0 * bare.inertia)
    with complains(mr.StateError, "no mass"):
        simulate(massless, None, None, 0.1)


def test_a_run_that_diverges_names_the_joint_and_leaves_no_log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = mr.examples.double_pendulum().model("physical")
    with complains(mr.SimulationError, "it diverged", "m0"):
        simulate(model, None, None, 1.0, lambda t, q, v: 1e6 * v * abs(v) + 1.0)
    assert not list(tmp_path.iterdir())  # MuJoCo would write MUJOCO_LOG.TXT


def test_without_mujoco_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with complains(mr.StateError, "pip install 'modurob[mujoco]'"):
        simulate(MODEL, None, None, 0.1)


@pytest.mark.parametrize(
    ("memory", "error", "words"),
    [
        ("40K", mr.SimulationError, "no memory for all contacts: give the ground a larger cell"),
        ("20K", mr.StateError, "MuJoCo failed: mj_stackAlloc: out of memory"),
    ],
)
def test_contacts_that_mujoco_has_no_memory_for_are_not_left_out(monkeypatch, memory, error, words):
    """As on a field with very many cells, here with little memory."""
    monkeypatch.setattr(mjcf, "FIELD_MEMORY", memory)
    plate = block((1.0, 0.8, 0.05)).model(base="free")
    field = mr.Ground(height=np.zeros((60, 60)), cell=0.02)
    with complains(error, words):
        simulate(plate, on_slope(plate, 0.0251), None, 0.05, ground=field, record=0.05)


def test_the_command_line_takes_an_engine():
    arguments = ["simulate", "crab", "--hinges", "physical", "--engine", "mujoco"]
    done = CliRunner().invoke(cli, [*arguments, "--duration", "0.1"])
    assert (done.exit_code, "steps of MuJoCo implicitfast" in done.output) == (0, True)
    refused = CliRunner().invoke(cli, [*arguments, "--integrator", "RK4"])
    assert refused.exit_code == 2
    assert "--integrator: has no effect with engine 'mujoco'" in refused.output


def test_a_scenario_runs_in_mujoco():
    scenario = mr.Scenario(organism="crab", hinges="physical", engine="mujoco", duration=0.1)
    assert scenario.run().trajectory.integrator == "MuJoCo implicitfast"
    for field in ({"integrator": "RK4"}, {"rtol": 1e-6}, {"analytic": True}):
        with complains(mr.StateError, next(iter(field)), "no effect with engine 'mujoco'"):
            scenario.edited(**field)
    with complains(mr.StateError, "engine", "modurob, mujoco"):
        scenario.edited(engine="bullet")
