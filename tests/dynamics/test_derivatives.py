"""Derivatives of inverse and forward dynamics against Pinocchio and against differences."""

import itertools

import numpy as np
import pinocchio as pin
import pytest

from modurob import StateError, examples
from modurob.model.reference import reference
from modurob.spatial import so3
from oracles import GROUPS, complains
from oracles.differences import columns
from oracles.rigid_tree import SLIP, PinocchioDynamics, RigidTree
from oracles.rough_organisms import case

RELATIVE = 1e-10  # to Pinocchio, of the largest entry
DIFFERENCES = 1e-8  # to differences of order eight, of the largest entry
ROUNDING = 1e-12  # the same formulas with other rounding
# Forward dynamics multiplies by the inverse of mass matrices of condition up to 1e5.
FORWARD = 1e-9
SEEDS = (1, 2, 3, 4, 5, 6)
MODULES = 10
SOME = (1, 2)
SOLVED = 1e-9  # of the forces: inverse dynamics of an acceleration that a mass matrix gave
DT = 0.01

every_model = pytest.mark.parametrize(
    ("kinds", "hinges", "base"),
    list(itertools.product(GROUPS, ("dyad", "physical"), ("fixed", "free"))),
)


def cases(kinds, hinges, base, seeds=SEEDS, most=MODULES):
    found = [case(kinds, seed, hinges, base, most=most) for seed in seeds]
    return [c for c in found if c.model.nv]


def close(actual, expected, relative, at_least=1e-3):
    """Equal, relative to the largest entry or to a size that the terms have before they cancel."""
    assert actual.shape == expected.shape
    scale = np.abs(expected).max(initial=at_least)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=relative * scale)


class Slopes(PinocchioDynamics):
    """Pinocchio's derivatives in the coordinates of a modurob model, our friction added."""

    def inverse(self, q, v, a):
        dq, dv, da = pin.computeRNEADerivatives(
            self.pin, self.data, self.q(q), self.v(v), self.v(a)
        )
        da = np.triu(da) + np.triu(da, 1).T
        dq, dv, da = (X[np.ix_(self.columns, self.columns)] for X in (dq, dv, da))
        return dq, dv + self.friction_slope(v), da

    def forward(self, q, v, tau):
        left = tau - self.friction(v)
        dq, dv, dtau = pin.computeABADerivatives(
            self.pin, self.data, self.q(q), self.v(v), self.v(left)
        )
        dtau = np.triu(dtau) + np.triu(dtau, 1).T
        dq, dv, dtau = (X[np.ix_(self.columns, self.columns)] for X in (dq, dv, dtau))
        return dq, dv - dtau @ self.friction_slope(v), dtau

    def friction_slope(self, v):
        joints = v[6:] if self.free else v
        slope = self.viscous + self.coulomb * SLIP**2 / (joints**2 + SLIP**2) ** 1.5
        return np.diag(np.concatenate([np.zeros(6 if self.free else 0), slope]))


# -- inverse dynamics ------------------------------------------------------------------------------


@every_model
def test_inverse_dynamics_derivatives_match_pinocchio(kinds, hinges, base):
    for c in cases(kinds, hinges, base):
        engine, found = Slopes(c.tree, c.model), c.model.inverse_dynamics_derivatives(c.q, c.v, c.x)
        assert found._fields == ("dq", "dv", "da")
        for k, state in enumerate(zip(c.q, c.v, c.x, strict=True)):
            for ours, theirs in zip(found, engine.inverse(*state), strict=True):
                close(ours[k], theirs, RELATIVE)


@every_model
def test_inverse_dynamics_derivatives_match_differences(kinds, hinges, base):
    for c in cases(kinds, hinges, base, SOME):
        m, q, v, a = c.model, c.q[0], c.v[0], c.x[0]
        found = m.inverse_dynamics_derivatives(q, v, a)
        by_q = columns(
            lambda d, m=m, q=q, v=v, a=a: m.inverse_dynamics(m.integrate(q, d), v, a), m.nv
        )
        close(found.dq, by_q, DIFFERENCES)
        smooth = c.organism.with_parameters(coulomb=0.0).model(hinges, base, gravity=m.gravity)
        # dry friction changes within a thousandth of a rad/s: no step of 0.01 may cross that
        slopes = smooth.inverse_dynamics_derivatives(q, v, a)
        by_v = columns(lambda d, m=smooth, q=q, v=v, a=a: m.inverse_dynamics(q, v + d, a), m.nv)
        close(slopes.dv, by_v, DIFFERENCES)
        by_a = columns(lambda d, m=m, q=q, v=v, a=a: m.inverse_dynamics(q, v, a + d), m.nv)
        close(found.da, by_a, DIFFERENCES)
        close(found.da, m.mass_matrix(q), ROUNDING)


def test_the_slope_of_dry_friction_is_steepest_at_rest():
    organism = examples.snake(3).with_parameters(coulomb=0.4, viscous=0.1)
    model = organism.model("physical", gravity=(0, 0, 0))
    q, rest = np.array([0.3, -0.5]), np.zeros(2)
    at_rest = model.inverse_dynamics_derivatives(q, rest, rest).dv
    close(at_rest, (0.1 + 0.4 / SLIP) * np.eye(2), ROUNDING)
    for speed in (-3 * SLIP, -SLIP / 2, SLIP / 10, SLIP, 20 * SLIP):
        v = np.array([speed, 0.0])
        by_v = columns(lambda d, v=v: model.inverse_dynamics(q, v + d, rest), 2, step=SLIP / 50)
        close(model.inverse_dynamics_derivatives(q, v, rest).dv, by_v, DIFFERENCES)


# -- forward dynamics ------------------------------------------------------------------------------


@every_model
def test_forward_dynamics_derivatives_match_pinocchio(kinds, hinges, base):
    for c in cases(kinds, hinges, base):
        engine, found = Slopes(c.tree, c.model), c.model.forward_dynamics_derivatives(c.q, c.v, c.x)
        assert found._fields == ("dq", "dv", "dtau")
        for k, state in enumerate(zip(c.q, c.v, c.x, strict=True)):
            size = np.abs(c.model.forward_dynamics(*state)).max()
            for ours, theirs in zip(found, engine.forward(*state), strict=True):
                close(ours[k], theirs, FORWARD, at_least=size)


@every_model
def test_forward_dynamics_derivatives_match_differences(kinds, hinges, base):
    for c in cases(kinds, hinges, base, SOME, most=5):
        smooth = c.organism.with_parameters(coulomb=0.0)
        m = smooth.model(hinges, base, gravity=c.model.gravity)
        q, v, tau = c.q[0], c.v[0], c.x[0]
        found = m.forward_dynamics_derivatives(q, v, tau)
        step = 1e-3  # accelerations of light modules curve more than torques do
        by_q = columns(
            lambda d, m=m, q=q, v=v, t=tau: m.forward_dynamics(m.integrate(q, d), v, t), m.nv, step
        )
        close(found.dq, by_q, DIFFERENCES)
        by_v = columns(lambda d, m=m, q=q, v=v, t=tau: m.forward_dynamics(q, v + d, t), m.nv, step)
        close(found.dv, by_v, DIFFERENCES)
        by_tau = columns(
            lambda d, m=m, q=q, v=v, t=tau: m.forward_dynamics(q, v, t + d), m.nv, step
        )
        close(found.dtau, by_tau, DIFFERENCES)
        close(found.dtau @ m.mass_matrix(q), np.eye(m.nv), FORWARD)


# -- tiers, shapes, bases --------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["fixed", "free", ("px", "py", "rz")], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (9,)], ids=str)
def test_derivatives_come_in_every_batch_shape_and_from_every_tier(base, shape):
    model, rng = (
        examples.crab().with_parameters(viscous=0.1).model(base=base),
        np.random.default_rng(0),
    )
    q = np.reshape(
        [model.random_configuration(rng) for _ in np.ndindex(*shape)], (*shape, model.nq)
    )
    v, x = rng.standard_normal((2, *shape, model.nv))
    expected = reference(model, "inverse_dynamics_derivatives", q, v, x)
    a = reference(model, "forward_dynamics", q, v, x)
    solved = reference(model, "forward_dynamics_derivatives", q, v, a)
    for some in (model, model.compile()):
        found = some.inverse_dynamics_derivatives(q, v, x)
        forward = some.forward_dynamics_derivatives(q, v, x)
        for k, part in enumerate(found):
            assert part.shape == (*shape, model.nv, model.nv)
            close(part, expected[..., k, :, :], ROUNDING)
        for k, part in enumerate(forward):
            assert part.shape == (*shape, model.nv, model.nv)
            close(part, solved[..., k, :, :], FORWARD)
        for index in np.ndindex(*shape):
            one = some.forward_dynamics_derivatives(q[index], v[index], x[index])
            for whole, part in zip(forward, one, strict=True):
                close(whole[index], part, FORWARD)


def test_derivatives_on_a_rail_and_of_a_tree_of_sixty_joints_match_pinocchio():
    tree = examples.superbot_tree(4, 5, rng=np.random.default_rng(1))
    rng = np.random.default_rng(2)
    for organism, base in ((examples.nine(), ("px", "py", "rz")), (tree, "fixed"), (tree, "free")):
        model = organism.model("physical", base)
        engine = Slopes(RigidTree(organism, "physical", base, list(model.locked)), model)
        q, (v, x) = model.random_configuration(rng), rng.standard_normal((2, model.nv))
        found = model.inverse_dynamics_derivatives(q, v, x)
        for ours, theirs in zip(found, engine.inverse(q, v, x), strict=True):
            close(ours, theirs, RELATIVE)


def test_singular_mass_matrices_are_named_by_the_derivatives_too():
    model = examples.double_pendulum().model()  # a point mass on the last hinge's axis
    rest = np.zeros(model.nv)
    for some in (model, model.compile()):
        with complains(StateError, "singular", "m2.hinge"):
            some.forward_dynamics_derivatives(rest, rest, rest)


def test_derivatives_of_an_organism_without_joints_are_empty():
    model = examples.snake(1).model()
    nothing = np.empty(0)
    for part in model.inverse_dynamics_derivatives(nothing, nothing, nothing):
        assert part.shape == (0, 0)


# -- one discrete step -----------------------------------------------------------------------------


@every_model
def test_jacobians_of_a_step_match_differences(kinds, hinges, base):
    (c, *_) = cases(kinds, hinges, base, SOME, most=4)
    smooth = c.organism.with_parameters(coulomb=0.0)
    model = smooth.model(hinges, base, gravity=c.model.gravity)
    engine = PinocchioDynamics(RigidTree(smooth, hinges, base, list(model.locked)), model)
    q, v, tau, nv = c.q[0], c.v[0], c.x[0], model.nv
    q_after, v_after = model.step(q, v, tau, DT)
    reached = v_after.copy()  # in the frame before the step
    if model.free_base:
        u = so3.exp(DT * v_after[3:6]) @ v_after[:3]
        reached[:3] = u - DT * np.cross(v[3:6], v[:3])
    if DT * model.friction_rate.rate <= 1:
        close(reached, v + DT * model.forward_dynamics(q, v, tau), ROUNDING)
    else:  # the friction of the velocity after the step, not of that before
        bare = smooth.with_parameters(viscous=0.0).model(hinges, base, gravity=c.model.gravity)
        force = bare.inverse_dynamics(q, v, (reached - v) / DT)
        force[nv - len(model.viscous) :] += model.viscous * v_after[nv - len(model.viscous) :]
        close(force, tau, SOLVED)
    if model.free_base:  # the origin moves with its velocity in the world after the step
        shift = q_after[:3] - so3.from_quaternion(q_after[3:7]) @ (DT * v_after[:3])
        close(shift, q[:3], ROUNDING)
        turn = np.concatenate([np.zeros(3), DT * v_after[3:]])
        close(q_after[3:], model.integrate(q, turn)[3:], ROUNDING)
    else:
        close(q_after, model.integrate(q, DT * v_after), ROUNDING)

    def moved(d):
        """Tangent at the undisturbed next state, of the next state after a disturbance."""
        q_d, v_d = model.step(model.integrate(q, d[:nv]), v + d[nv : 2 * nv], tau + d[2 * nv :], DT)
        away = pin.difference(engine.pin, engine.q(q_after), engine.q(q_d))
        return np.concatenate([away[engine.columns], v_d - v_after])

    found = model.step_derivatives(q, v, tau, DT)
    expected = columns(moved, 3 * nv, step=1e-3)
    close(found.A, expected[:, : 2 * nv], DIFFERENCES)
    close(found.B, expected[:, 2 * nv :], DIFFERENCES)


@pytest.mark.parametrize("dt", [0.0, -0.01, np.nan, np.inf])
def test_a_step_takes_time(dt):
    model = examples.crab().model()
    rest = np.zeros(3)
    for function in (model.step, model.step_derivatives):
        with complains(StateError, "dt must be a positive number of seconds"):
            function(rest, rest, rest, dt)
