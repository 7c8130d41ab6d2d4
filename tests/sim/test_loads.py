"""Wrenches through dockings, against weights, a spinning bar, Pinocchio and equilibrium."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pinocchio as pin
import pytest

import modurob as mr
from modurob.spatial import se3
from oracles.complaints import complains
from oracles.organisms import random_organism
from oracles.pinocchio_tree import PinocchioTree
from oracles.rough_organisms import states

G = 9.81
ROUNDING = 1e-9  # relative to the largest wrench of a body


def moving(model, t, q, v, a, **channels) -> mr.sim.BodyTrajectory:
    """A recorded run with these states."""
    kept = MappingProxyType(channels)
    rest = np.zeros_like(v)
    return mr.sim.BodyTrajectory("", model, model.organism, t, q, v, rest, kept, lambda: a)


class PinocchioDockings(PinocchioTree):
    """Each docking has a joint of its own, at the port of the inner module, which never moves."""

    def _add_docked(self, docking):
        (port,) = [p for p in self._sheet(docking.parent)["ports"] if p["label"] == docking.port]
        spot = docking.parent, port["body"]
        at, T = self._spots[spot]
        before = dict(self._spots)
        T_port = T @ port["frame"]
        cut = self._joint(at, pin.JointModelRZ(), T_port, f"docking {docking.child}")
        self._spots[spot] = cut, np.linalg.inv(port["frame"])
        super()._add_docked(docking)
        self._spots[spot] = before[spot]

    def loads(self, model, q, v, a, external):
        """(dockings, 6) forces of the joints at the dockings."""
        base = model.nv - len(model.joint_names)
        self.model.gravity.linear = model.gravity
        joints = dict(zip(model.joint_names, q[model.nq - len(model.joint_names) :], strict=True))
        rates = []
        for x in (v, a):
            full = np.zeros(self.model.nv)
            full[:base] = x[:base]
            for name, value in zip(model.joint_names, x[base:], strict=True):
                full[self.model.joints[self.joints[name]].idx_v] = value
            rates.append(full)
        pushes = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for body, wrench in external.items():
            frame = self.model.frames[self.frames[body]]
            pushes[frame.parentJoint] += frame.placement.act(pin.Force(wrench))
        place = self.configuration(joints, q[:7] if base else ())
        pin.rnea(self.model, self.data, place, *rates, pushes)
        names = [f"docking {docking.child}" for docking in self.organism.dockings]
        return np.array([self.data.f[self.joints[name]].vector for name in names])


@pytest.mark.parametrize(
    ("kinds", "hinges", "base"),
    [
        ("backbone and scout", "dyad", "free"),
        ("superbot", "physical", "free"),
        ("giusti", "physical", "fixed"),
        ("cubes and wrists", "physical", "free"),
    ],
)
def test_loads_are_those_of_pinocchio(kinds, hinges, base):
    rng = np.random.default_rng(5)
    organism = random_organism(kinds, 7, 3)
    model = organism.model(hinges, base, gravity=5 * rng.standard_normal(3))
    q, v, a = states(model, rng)
    pushed = rng.standard_normal((len(q), model.nbodies, 6))
    loads = mr.connector_loads(moving(model, np.arange(3.0), q, v, a, external=pushed))
    peer = PinocchioDockings(organism, hinges, base)
    for k in range(len(q)):
        each = dict(zip(model.body_names, pushed[k], strict=True))
        expected = peer.loads(model, q[k], v[k], a[k], each)
        assert np.abs(loads.wrenches[k] - expected).max() < ROUNDING * np.abs(expected).max()


def test_a_hanging_chain_carries_the_weights_below():
    organism = mr.examples.snake(5)
    model = organism.model("physical", gravity=(0.0, G, 0.0))  # the chain lies along y
    run = mr.simulate(model, None, None, 0.01)
    weights = G * organism.kind("m0").mass * np.array([4, 3, 2, 1])
    expected = np.zeros((4, 6))
    expected[:, 2] = -weights  # tension
    np.testing.assert_allclose(mr.connector_loads(run).wrenches[-1], expected, atol=1e-9)


def spinning(rate: float, **limits: float) -> tuple[mr.ConnectorLoads, np.ndarray]:
    """Loads of a rigid bar of four cubes that turns about its center, and where they are."""
    organism = mr.examples.snake(4).with_parameters(**limits)
    held = dict.fromkeys(organism.model("physical").joint_names, 0.0)
    model = organism.model("physical", "free", gravity=(0, 0, 0), locked=held)
    assert model.nv == 6  # all dockings are inside one rigid body
    y = np.array([0.1, 0.2, 0.3])  # of the outer cubes, 0.1 m wide; the first is at the origin
    run = mr.simulate(model, None, [0.15 * rate, 0, 0, 0, 0, rate], 0.3)
    return mr.connector_loads(run), y - 0.15


def test_a_spinning_bar_is_drawn_apart_by_its_outer_cubes():
    rate = 7.0
    loads, r = spinning(rate)
    tension = rate**2 * np.cumsum(r[::-1])[::-1] * mr.catalog["backbone"].mass
    np.testing.assert_allclose(loads.wrenches[..., 2], np.tile(-tension, (len(loads.t), 1)))
    assert np.abs(loads.wrenches[..., [0, 1, 3, 4, 5]]).max() < 1e-9
    assert np.isnan(loads.utilization).all()
    assert loads.breaks() == []
    assert "no limit" in str(loads)


def test_a_docking_breaks_where_and_when_its_limit_is_exceeded():
    loads, _ = spinning(7.0, max_force=8.0, max_torque=1.0)  # 7.35, 9.8 and 7.35 N
    assert loads.names == ("m0.3-m1.4", "m1.3-m2.4", "m2.3-m3.4")
    np.testing.assert_allclose(loads.utilization[0], np.array([7.35, 9.8, 7.35]) / 8.0)
    (found,) = loads.breaks()
    assert found.docking == "m1.3-m2.4"
    assert found.time == 0.0
    assert found.utilization == pytest.approx(9.8 / 8.0)
    assert "m1.3-m2.4 exceeds its limit at 0 s" in str(loads)


def test_loads_are_told_by_their_peaks_and_breaks_in_the_order_of_time():
    dockings = mr.examples.snake(4).dockings
    wrenches = np.zeros((4, 3, 6))
    wrenches[:, 0, :3] = [[3, 0, 4], [0, 0, 6], [0, 0, 0], [0, 0, 5]]  # at most 6 N of 5.5
    wrenches[:, 1, 3:] = [[0, 0, 1], [0, 2, 0], [0, 0, 1], [0, 0, 3]]  # at most 3 N m of 0.5
    wrenches[:, 2, 0] = 1.0
    limits = np.array([[5.5, np.inf], [10.0, 0.5], [np.inf, np.inf]])
    loads = mr.sim.loads.ConnectorLoads(dockings, np.array([0.1, 0.2, 0.3, 0.4]), wrenches, limits)
    np.testing.assert_allclose(loads.magnitudes[0], [[5, 0], [0, 1], [1, 0]])
    shares = [[5 / 5.5, 2], [6 / 5.5, 4], [0, 2], [5 / 5.5, 6]]
    np.testing.assert_allclose(loads.utilization[:, :2], shares)
    found = [(each.docking, each.time) for each in loads.breaks()]
    assert found == [("m1.3-m2.4", 0.1), ("m0.3-m1.4", 0.2)]
    assert [each.utilization for each in loads.breaks()] == pytest.approx([6, 6 / 5.5])
    assert str(loads).splitlines() == [
        "docking    largest force  largest torque  utilization",
        "m0.3-m1.4            6 N           0 N m  109 % at 0.2 s",
        "m1.3-m2.4            0 N           3 N m  600 % at 0.4 s",
        "m2.3-m3.4            1 N           0 N m     no limit",
        "m1.3-m2.4 exceeds its limit at 0.1 s, by a factor of 6 at most",
        "m0.3-m1.4 exceeds its limit at 0.2 s, by a factor of 1.09 at most",
    ]
    assert repr(loads) == "<ConnectorLoads: 3 dockings, 4 times>"
    single = mr.Organism.start("backbone").model(base="free")
    none = mr.connector_loads(mr.simulate(single, None, None, 0.01))
    assert str(none) == "no dockings"
    assert none.limits.shape == (0, 2)


def test_a_docking_holds_exactly_its_limit():
    docking, limits = mr.examples.snake(2).dockings, np.array([[5.0, 2.0]])
    for force, torque, breaks in ((5.0, 2.0, 0), (5.001, 2.0, 1), (5.0, 2.001, 1)):
        wrench = np.array([[[0.6 * force, 0.8 * force, 0.0, 0.0, torque, 0.0]]])
        loads = mr.sim.loads.ConnectorLoads(docking, np.zeros(1), wrench, limits)
        assert len(loads.breaks()) == breaks


def test_the_weaker_port_limits_a_docking():
    organism = mr.examples.snake(2).with_parameters("m1", max_force=5.0)
    run = mr.simulate(organism.model("physical"), None, None, 0.01)
    assert mr.connector_loads(run).limits.tolist() == [[5.0, np.inf]]


def test_the_base_is_in_equilibrium_on_the_ground(tmp_path):
    """Dockings, weight, contact and a push give the rate of momentum of the base module.

    Loads are sums over what lies beyond a docking, so nothing else in them knows of the base.
    """
    organism = mr.Organism.random("backbone", 5, np.random.default_rng(1))
    model, kind = organism.model(base="free"), organism.kind("m0")
    push = np.array([1.0, 2.0, -1.0, 0.1, 0.2, -0.3])
    run = mr.simulate(
        model, None, None, 0.3, integrator="SemiImplicitEuler", ground=mr.Ground(lift=True),
        record=0.02, external={"m0": lambda t: (1 + t) * push},
    )  # fmt: skip
    run.save(tmp_path / "run.npz")
    loads = mr.connector_loads(mr.Trajectory.load(tmp_path / "run.npz"))
    T = model.forward_kinematics(run.q)[:, 0]
    (v, w), (a, alpha) = (np.split(x[:, :6], 2, axis=1) for x in (run.v, run.a))
    inertia = sum(np.array(body.inertia) for body in kind.bodies)  # at the center of the cube
    rate = np.concatenate(
        [kind.mass * (a + np.cross(w, v)), alpha @ inertia + np.cross(w, w @ inertia)], axis=1
    )
    forces = (1 + run.t[:, None]) * push
    forces[:, :3] += np.squeeze(np.swapaxes(T[:, :3, :3], 1, 2) @ [[0], [0], [-G * kind.mass]])
    channels = [run.channels[name][:, 0] for name in ("contact", "contact_torque")]
    assert channels[0].any()
    forces += se3.transform_wrench(T, np.concatenate(channels, axis=1))
    own = [k for k, docking in enumerate(organism.dockings) if docking.parent == "m0"]
    assert own
    for k in own:
        T_port = kind.port_pose(organism.dockings[k].port)
        forces -= se3.transform_wrench(se3.inverse(T_port), loads.wrenches[:, k])
    np.testing.assert_allclose(forces, rate, atol=ROUNDING * np.abs(loads.wrenches).max())


SNAKE = mr.examples.snake(3)
LOADED = SNAKE.model("physical")


def ran(q=None, model=LOADED, **options):
    return mr.simulate(model, q, None, 0.002, integrator="RK4", **options)


def test_bad_input_is_refused():
    scaled = replace(LOADED, mass=1.1 * LOADED.mass)
    split = ran(events=[mr.Undock(0.001, "m2")])
    for run, error, pieces in (
        (3, mr.StateError, ["connector loads are those of a Trajectory, got int"]),
        (ran(np.zeros((2, LOADED.nq))), mr.StateError, ["one motion", "trajectory.member(0)"]),
        (ran(model=scaled), mr.StateError, ["other masses", "Organism.with_parameters"]),
        (split, mr.StateError, ["parts[0]", "parts[1]"]),
    ):
        with complains(error, *pieces):
            mr.connector_loads(run)
    assert mr.connector_loads(split.parts[0]).names == ("m0.3-m1.4", "m1.3-m2.4")
    with complains(mr.DatasheetError, "max_force", "greater than 0"):
        SNAKE.with_parameters(max_force=0.0)
