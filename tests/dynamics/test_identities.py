"""Laws that dynamics must obey whatever the organism."""

import itertools

import numpy as np
import pytest

from modurob import Organism, examples
from oracles import GROUPS
from oracles.differences import columns, slope
from oracles.rigid_tree import SLIP, PinocchioDynamics
from oracles.rough_organisms import Case, case

ROUNDING = 1e-11  # relative to the largest entry: sums over up to 30 joints
DIFFERENCES = 1e-8  # relative: eighth-order differences of motions of a few rad/s
BACK = 1e-9  # relative, forward after inverse dynamics: mass matrices of condition up to 1e6
SEEDS = (1, 2, 3)
MODULES = 8
SLOW = 0.3  # speeds, so that differences over some hundredths of a second are accurate

every_model = pytest.mark.parametrize(
    ("kinds", "hinges", "base"),
    list(itertools.product(GROUPS, ("dyad", "physical"), ("fixed", "free"))),
)


def cases(kinds, hinges, base) -> list[Case]:
    found = [case(kinds, seed, hinges, base, most=MODULES) for seed in SEEDS]
    return [c for c in found if c.model.nv]


def close(actual, expected, relative=ROUNDING, scale=None):
    actual, expected = np.asarray(actual), np.asarray(expected)
    size = np.abs(expected).max(initial=0.0) if scale is None else scale
    np.testing.assert_allclose(actual, expected, rtol=0, atol=relative * max(size, 1e-3))


def friction(model, v):
    joints = v[..., 6:] if model.free_base else v
    force = model.viscous * joints + model.coulomb * joints / np.sqrt(joints**2 + SLIP**2)
    base = np.zeros((*v.shape[:-1], 6 if model.free_base else 0))
    return np.concatenate([base, force], axis=-1)


# -- M, C, N ---------------------------------------------------------------------------------------


@every_model
def test_the_equation_of_motion_is_the_sum_of_its_terms(kinds, hinges, base):
    for c in cases(kinds, hinges, base):
        model, (q, v, a) = c.model, (c.q, c.v, c.x)
        M, C, N = model.mass_matrix(q), model.coriolis_matrix(q, v), model.gravity_torque(q)
        tau = (M @ a[..., None] + C @ v[..., None])[..., 0] + N + friction(model, v)
        close(model.inverse_dynamics(q, v, a), tau)
        push = -sum(
            np.swapaxes(model.jacobian(q, body), -1, -2) @ wrench[..., None]
            for body, wrench in c.external.items()
        )[..., 0]
        close(model.inverse_dynamics(q, v, a, c.external), tau + push)


@every_model
def test_the_documents_closed_form_has_the_same_terms(kinds, hinges, base):
    for c in cases(kinds, hinges, base):
        model, (q, v) = c.model, (c.q, c.v)
        M, C, N = model.closed_form(q, v)
        close(M, model.mass_matrix(q))
        bias = (C @ v[..., None])[..., 0]
        size = np.abs(M).max() * np.abs(v).max() ** 2  # of the terms, which may cancel
        close(bias, (model.coriolis_matrix(q, v) @ v[..., None])[..., 0], scale=size)
        close(N, model.gravity_torque(q))
        for k in range(len(q)):
            one = model.closed_form(q[k], v[k])
            for part, whole in zip(one, (M, C, N), strict=True):
                close(part, whole[k])


@every_model
def test_the_rate_of_the_mass_matrix_less_twice_c_is_skew(kinds, hinges, base):
    for c in cases(kinds, hinges, base):
        model, q, v = c.model, c.q[0], SLOW * c.v[0]
        C = model.coriolis_matrix(q, v)
        M_rate = slope(lambda t, q=q, v=v, m=model: m.mass_matrix(m.integrate(q, t * v)))
        rest = M_rate - 2 * C
        close(rest, -rest.T, DIFFERENCES, scale=np.abs(C).max())
        close(M_rate, C + C.T, DIFFERENCES, scale=np.abs(C).max())


@every_model
def test_the_mass_matrix_is_symmetric_and_positive_definite(kinds, hinges, base):
    for c in cases(kinds, hinges, base):
        M = c.model.mass_matrix(c.q)
        np.testing.assert_array_equal(M, np.swapaxes(M, -1, -2))
        assert np.linalg.eigvalsh(M).min() > 0


def test_coriolis_matrices_scale_with_the_velocity_and_vanish_at_rest():
    model, rng = examples.nine().model(), np.random.default_rng(0)
    q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
    for C in (model.coriolis_matrix, lambda q, v: model.closed_form(q, v).C):
        close(C(q, 3 * v), 3 * C(q, v))
        np.testing.assert_array_equal(C(q, 0 * v), np.zeros((model.nv, model.nv)))


def test_coriolis_and_closed_form_broadcast_like_everything_else():
    model, rng = examples.crab().model(base="free"), np.random.default_rng(1)
    q = np.stack([model.random_configuration(rng) for _ in range(3)])
    v = rng.standard_normal((2, 1, model.nv))
    for function, sizes in (
        (lambda q, v: (model.coriolis_matrix(q, v),), [2]),
        (lambda q, v: model.closed_form(q, v)[1:2], [2]),
        (lambda q, v: (model.momentum(q, v),), [1]),
        (lambda q, v: (model.kinetic_energy(q, v),), [0]),
    ):
        (result,) = function(q, v)
        assert result.ndim == 2 + sizes[0]
        for i, j in np.ndindex(2, 3):
            close(result[i, j], function(q[j], v[i, 0])[0])


# -- there and back --------------------------------------------------------------------------------


@every_model
def test_forward_dynamics_undoes_inverse_dynamics(kinds, hinges, base):
    for c in cases(kinds, hinges, base):
        model = c.model
        for external in (None, c.external):
            tau = model.inverse_dynamics(c.q, c.v, c.x, external)
            size = np.abs(c.v).max() ** 2  # accelerations that velocities alone ask for
            close(model.forward_dynamics(c.q, c.v, tau, external), c.x, BACK, scale=size)
            a = model.forward_dynamics(c.q, c.v, c.x, external)
            close(model.inverse_dynamics(c.q, c.v, a, external), c.x, BACK, scale=np.abs(tau).max())


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_forward_dynamics_of_a_thousand_modules_undoes_inverse_dynamics(base):
    # branches of 30 keep the mass matrix within reach of double precision
    organism = Organism.random("backbone", 1000, np.random.default_rng(3))
    model, rng = organism.model(base=base), np.random.default_rng(4)
    q, v, a = model.random_configuration(rng), *rng.standard_normal((2, model.nv))
    tau = model.inverse_dynamics(q, v, a)
    back = model.inverse_dynamics(q, v, model.forward_dynamics(q, v, tau))
    close(back, tau, BACK)


# -- energy ----------------------------------------------------------------------------------------


def energy_rate(model, q, v, a):
    """d/dt of the energy on a motion that passes q with velocity v and acceleration a."""
    return slope(lambda t: model.energy(model.integrate(q, t * v), v + t * a))


@every_model
def test_the_rate_of_energy_is_the_power_of_all_forces(kinds, hinges, base):
    for c in cases(kinds, hinges, base):
        model, q, v, a = c.model, c.q[0], SLOW * c.v[0], c.x[0]
        push = c.pushes(0)
        pushed = sum(f @ (model.jacobian(q, body) @ v) for body, f in push.items())
        for external, from_outside in ((None, 0.0), (push, pushed)):
            tau = model.inverse_dynamics(q, v, a, external)
            power = (tau - friction(model, v)) @ v + from_outside
            scale = np.abs(tau * v).sum() + abs(from_outside)
            close(energy_rate(model, q, v, a), power, DIFFERENCES, scale)


@every_model
def test_friction_only_takes_energy_away(kinds, hinges, base):
    for c in cases(kinds, hinges, base):
        lost = friction(c.model, c.v) * c.v
        assert np.all(lost >= 0)
        rough = c.model.inverse_dynamics(c.q, c.v, c.x)
        smooth = c.organism.with_parameters(viscous=0.0, coulomb=0.0)
        smooth = smooth.model(hinges, base, gravity=c.model.gravity)
        close(
            rough - smooth.inverse_dynamics(c.q, c.v, c.x),
            friction(c.model, c.v),
            scale=np.abs(rough).max(),
        )


@every_model
def test_kinetic_energy_is_half_of_v_m_v(kinds, hinges, base):
    for c in cases(kinds, hinges, base):
        M = c.model.mass_matrix(c.q)
        expected = 0.5 * np.einsum("ki,kij,kj->k", c.v, M, c.v)
        close(c.model.kinetic_energy(c.q, c.v), expected)
        total = c.model.kinetic_energy(c.q, c.v) + c.model.potential_energy(c.q)
        close(c.model.energy(c.q, c.v), total)


@every_model
def test_gravity_torque_is_the_gradient_of_potential_energy(kinds, hinges, base):
    for c in cases(kinds, hinges, base):
        model, q = c.model, c.q[0]
        found = columns(lambda dq, m=model, q=q: m.potential_energy(m.integrate(q, dq)), model.nv)
        close(found, model.gravity_torque(q), DIFFERENCES)


@every_model
def test_potential_energy_is_weight_times_height_of_the_center_of_mass(kinds, hinges, base):
    for c in cases(kinds, hinges, base):
        weight = -c.model.mass.sum() * c.model.gravity
        close(c.model.potential_energy(c.q), c.model.center_of_mass(c.q) @ weight)


# -- momentum --------------------------------------------------------------------------------------


@every_model
def test_momentum_matches_pinocchio(kinds, hinges, base):
    for c in cases(kinds, hinges, base):
        engine = PinocchioDynamics(c.tree, c.model)
        expected = [engine.momentum(q, v) for q, v in zip(c.q, c.v, strict=True)]
        close(c.model.momentum(c.q, c.v), expected)


@every_model
def test_linear_momentum_is_mass_times_velocity_of_the_center_of_mass(kinds, hinges, base):
    for c in cases(kinds, hinges, base):
        model, q, v = c.model, c.q[0], SLOW * c.v[0]
        rate = slope(lambda t, m=model, q=q, v=v: m.center_of_mass(m.integrate(q, t * v)))
        close(model.momentum(q, v)[:3], model.mass.sum() * rate, DIFFERENCES)


@pytest.mark.parametrize("kinds", GROUPS)
@pytest.mark.parametrize("hinges", ["dyad", "physical"])
def test_momentum_of_a_free_organism_changes_by_weight_alone(kinds, hinges):
    for c in cases(kinds, hinges, "free"):
        model, q, v = c.model, c.q[0], SLOW * c.v[0]
        tau = c.x[0].copy()
        tau[:6] = 0  # inner torques and friction, nothing from outside
        a = model.forward_dynamics(q, v, tau)
        rate = slope(lambda t, m=model, q=q, v=v, a=a: m.momentum(m.integrate(q, t * v), v + t * a))
        weight = model.mass.sum() * model.gravity
        moment = np.cross(model.center_of_mass(q), weight)
        scale = np.abs(model.mass_matrix(q)[:6] @ a).max() + np.abs(weight).max()
        close(rate, np.concatenate([weight, moment]), DIFFERENCES, scale)


def test_a_free_organism_without_gravity_keeps_its_momentum_over_time():
    model = examples.superbot_tree(3, 2, rng=np.random.default_rng(2)).model(
        "physical", "free", gravity=(0, 0, 0)
    )
    rng = np.random.default_rng(5)
    q, v = model.random_configuration(rng), SLOW * rng.standard_normal(model.nv)
    torques = 1e-3 * rng.standard_normal(model.nv)
    torques[:6] = 0
    before, dt = model.momentum(q, v), 1e-3

    def rates(q, v):
        return v, model.forward_dynamics(q, v, torques)

    for _ in range(100):  # classical Runge-Kutta in the tangent space at q
        k1 = rates(q, v)
        k2 = rates(model.integrate(q, dt / 2 * k1[0]), v + dt / 2 * k1[1])
        k3 = rates(model.integrate(q, dt / 2 * k2[0]), v + dt / 2 * k2[1])
        k4 = rates(model.integrate(q, dt * k3[0]), v + dt * k3[1])
        step = [dt / 6 * (a + 2 * b + 2 * c + d) for a, b, c, d in zip(k1, k2, k3, k4, strict=True)]
        q, v = model.integrate(q, step[0]), v + step[1]
    # steps of 1 ms in a tangent space that turns with the base: second order, 1e-6 after 0.1 s
    close(model.momentum(q, v), before, 1e-6)
