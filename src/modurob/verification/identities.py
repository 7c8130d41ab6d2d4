"""Checks of a model against itself: two algorithms, or an algorithm and a law of mechanics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from modurob.errors import SizeError
from modurob.friction import force as friction
from modurob.model import Model
from modurob.model.reference import reference
from modurob.sim import simulate
from modurob.spatial import se3
from modurob.symbolic.equations import build_equations
from modurob.verification.check import CheckCase, CheckValue, LeftOut, relative

ROUNDING = 1e-10  # relative: sums over some hundred joints, and other orders of adding
DIFFERENCES = 1e-7  # relative: eighth-order differences of motions of about 1 rad/s
BACK = 1e-9  # relative, of torques: rounding, enlarged by the condition of long chains
DEFINITE = 1e-14  # smallest eigenvalue of M with its diagonal scaled to 1: rounding is below
CONSERVED = 1e-8  # relative: a second of integration at the tolerance below
INTEGRATION = 1e-11
DURATION_S = 0.5
FUSED_JOINTS = 24  # more take seconds to compile
MOST_DIFFERENCES = 60  # joints; derivatives of more take minutes by differences
# f'(0) = sum of w_k (f(k h) - f(-k h)) / h; the error is h^8/630 times the ninth derivative
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
STEP_S = 2e-3  # accelerations of light links turn sharply; rounding still leaves eleven digits
TERMS = 50_000  # at most, by the estimate, of closed forms in numbers: what takes a few seconds


def closed_form_is_recursion(case: CheckCase) -> CheckValue:
    """M a + C v + N + friction of the closed form agrees with the recursion."""
    model, v, a = case.model, case.v, case.a
    M, C, N = model.closed_form(case.q, v)
    tau = (M @ a[..., None] + C @ v[..., None])[..., 0] + N + friction(model, v)
    errors = (
        relative(model.inverse_dynamics(case.q, v, a), tau, _size(M, a, v, N)),
        relative(model.mass_matrix(case.q), M),
    )
    return CheckValue(max(errors), ROUNDING, "M a + C v + N + friction against the recursion")


def tiers_agree(case: CheckCase) -> CheckValue:
    """The compiled routines are the recursions on plain numbers."""
    model, q, v, a = case.model, case.q, case.v, case.a
    tiers = [model]
    if model.nv <= FUSED_JOINTS:
        tiers.append(model.compile())
    tau, M = reference(model, "inverse_dynamics", q, v, a), reference(model, "mass_matrix", q)
    slopes = reference(model, "inverse_dynamics_derivatives", q, v, a)
    errors = []
    for tier in tiers:
        found = np.stack(tier.inverse_dynamics_derivatives(q, v, a), axis=-3)
        errors += [
            relative(tier.inverse_dynamics(q, v, a), tau),
            relative(tier.mass_matrix(q), M),
            relative(found, slopes),
        ]
    if not _is_singular(model, M):
        expected = reference(model, "forward_dynamics", q, v, tau)
        # accelerations lose the digits of M's condition; the torques they need do not
        needed = reference(model, "inverse_dynamics", q, v, expected)
        for tier in tiers:
            found = tier.forward_dynamics(q, v, tau)
            mine = reference(model, "inverse_dynamics", q, v, found)
            errors.append(relative(mine, needed, float(np.abs(tau).max())))
    names = ", ".join(tier.dynamics.tier.name for tier in tiers)
    return CheckValue(max(errors), ROUNDING, f"compiled ({names}) against plain Python")


def mass_matrix_is_symmetric(case: CheckCase) -> CheckValue:
    """M = M^T."""
    M = case.model.mass_matrix(case.q)
    return CheckValue(relative(M, np.swapaxes(M, -1, -2)), ROUNDING, "M against its transpose")


def mass_matrix_is_positive(case: CheckCase) -> CheckValue:
    """v^T M v > 0: whatever moves has kinetic energy."""
    M = case.model.mass_matrix(case.q)
    empty = _empty_joints(case.model, M)
    if empty:
        return CheckValue(0.0, DEFINITE, f"nothing has inertia about {', '.join(empty)}", True)
    return CheckValue(
        _smallest(M), DEFINITE, "smallest eigenvalue of M, diagonal scaled to 1", True
    )


def rate_of_mass_matrix_is_skew(case: CheckCase) -> CheckValue:
    """dM/dt - 2 C is skew along a motion; passivity rests on it."""
    model, v = case.model, case.slow
    C = model.coriolis_matrix(case.q, v)
    rate = slope(lambda t: model.mass_matrix(model.integrate(case.q, t * v)))
    rest = rate - 2 * C
    size = float(np.abs(model.mass_matrix(case.q)).max() * np.abs(v).max())
    error = relative(rest, -np.swapaxes(rest, -1, -2), size)
    return CheckValue(error, DIFFERENCES, "dM/dt by differences, less 2 C")


def forward_undoes_inverse(case: CheckCase) -> CheckValue:
    """Torques give the acceleration they were computed for."""
    model, q, v = case.model, case.q, case.v
    if _is_singular(model, model.mass_matrix(q)):
        raise LeftOut("forward dynamics is singular: the mass matrix is not positive definite")
    tau = model.inverse_dynamics(q, v, case.a)
    back = model.inverse_dynamics(q, v, model.forward_dynamics(q, v, tau))
    return CheckValue(relative(back, tau), BACK, "inverse(forward(tau)) against tau")


def energy_rate_is_power(case: CheckCase) -> CheckValue:
    """d(energy)/dt is the power of the joints, less that of friction."""
    model, q, v, a = case.model, case.q, case.slow, case.a
    tau = model.inverse_dynamics(q, v, a)
    power = np.sum((tau - friction(model, v)) * v, axis=-1)
    rate = slope(lambda t: model.energy(model.integrate(q, t * v), v + t * a))
    scale = float(np.abs(tau * v).sum(axis=-1).max())
    return CheckValue(relative(rate, power, scale), DIFFERENCES, "d(energy)/dt against tau v")


def momentum_is_conserved(case: CheckCase) -> CheckValue:
    """Torques between its own joints leave the momentum of a floating organism constant."""
    if case.organism.kind(case.organism.base).virtual:
        raise LeftOut("its base is a virtual joint, which cannot float")
    model = case.options.build(case.organism, free=True)
    # dry friction is an inner force too, but stiff: the run would take long and show no more
    none = np.zeros(len(model.joint_names))
    model = dataclasses.replace(model, viscous=none, coulomb=none, gravity=np.zeros(3))
    q = model.random_configuration(case.rng)
    v, a = case.rng.standard_normal((2, model.nv)) / np.sqrt(model.nv)
    if _is_singular(model, model.mass_matrix(q)):
        return _momentum_rate(model, q, v, a)
    tau, joints = np.zeros(model.nv), model.joint_slice_v
    tau[joints] = (model.mass_matrix(q) @ a)[joints]
    found = simulate(
        model, q, v, DURATION_S, lambda t, q, v: tau, "DOP853", rtol=INTEGRATION, atol=INTEGRATION
    )
    error = relative(found.momentum, found.momentum[0])
    return CheckValue(error, CONSERVED, f"drift over {DURATION_S:g} s, floating, driven joints")


def _momentum_rate(model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> CheckValue:
    """The wrench on the base is the rate of momentum: for models without forward dynamics."""
    rate = slope(lambda t: model.momentum(model.integrate(q, t * v), v + t * a))
    T_bw = se3.inverse(model.base_of(q))
    wrench = se3.transform_wrench(T_bw, model.inverse_dynamics(q, v, a)[:6])
    return CheckValue(
        relative(rate, wrench), DIFFERENCES, "its rate against the wrench on the base"
    )


def derivatives_are_slopes(case: CheckCase) -> CheckValue:
    """Exact derivatives of inverse and forward dynamics are those by differences."""
    model = case.model
    if model.nv > MOST_DIFFERENCES:
        raise LeftOut(f"too large: {model.nv} velocities, differences up to {MOST_DIFFERENCES}")
    q, v, a = case.q[0], case.slow[0], case.a[0]
    tau, M = model.inverse_dynamics(q, v, a), model.mass_matrix(q)
    # function, its derivatives, third argument, size of what it computes
    algorithms: list[Any] = [
        (model.inverse_dynamics, model.inverse_dynamics_derivatives, a, np.abs(M).max())
    ]
    if not _is_singular(model, M):
        size = np.abs(a).max()
        algorithms.append((model.forward_dynamics, model.forward_dynamics_derivatives, tau, size))
    errors = []
    for function, derivatives, x, size in algorithms:
        exact = derivatives(q, v, x)
        by_q = columns(lambda d, f=function, x=x: f(model.integrate(q, d), v, x), model.nv)
        by_v = columns(lambda d, f=function, x=x: f(q, v + d, x), model.nv)
        by_x = columns(lambda d, f=function, x=x: f(q, v, x + d), model.nv)
        pairs = zip(exact, (by_q, by_v, by_x), strict=True)
        errors += [relative(*pair, scale=float(size)) for pair in pairs]
    return CheckValue(max(errors), DIFFERENCES, "exact derivatives against differences")


def formulas_are_numbers(case: CheckCase) -> CheckValue:
    """M, C and N as formulas, evaluated, are the closed form of the numbers."""
    q, v = case.q[0], case.v[0]
    try:
        equations = build_equations(case.organism, case.options, "none", (), TERMS)
        found = equations.evaluate(q, v)
    except SizeError:
        raise LeftOut(f"too large: the formulas may have over {TERMS:,} terms") from None
    M, C, N = case.model.closed_form(q, v)
    bias, size = C @ v + N, _size(M, v, v, N)
    errors = (relative(found.M, M), relative(found.C @ v + found.N, bias, size))
    return CheckValue(max(errors), ROUNDING, "formulas of M, C and N, evaluated")


# -- helpers ---------------------------------------------------------------------------------------


def _size(M: np.ndarray, a: np.ndarray, v: np.ndarray, N: np.ndarray) -> float:
    """Size of the terms of a torque, which may cancel each other."""
    moved = np.abs(M).max() * max(np.abs(a).max(), np.abs(v).max() ** 2)
    return float(max(moved, np.abs(N).max()))


def slope(function: Callable[[float], np.ndarray]) -> np.ndarray:
    """f'(0) of a function of time by central differences of order eight."""
    pairs = (
        weight * (np.asarray(function(k * STEP_S)) - np.asarray(function(-k * STEP_S)))
        for k, weight in enumerate(WEIGHTS, start=1)
    )
    return np.asarray(sum(pairs)) / STEP_S


def columns(function: Callable[[np.ndarray], np.ndarray], size: int) -> np.ndarray:
    """(n, size) derivatives of an n-vector by each component of its argument, at zero.

    Args:
        function: Takes (size, size) arguments, one a row, and returns (size, n).
    """
    return slope(lambda t: function(t * np.eye(size))).T


def _empty_joints(model: Model, M: np.ndarray) -> list[str]:
    """Joints without inertia about them."""
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)[..., model.joint_slice_v]
    least = np.abs(diagonal).min(axis=tuple(range(diagonal.ndim - 1)))
    return [name for name, each in zip(model.joint_names, least, strict=True) if each == 0]


def _smallest(M: np.ndarray) -> float:
    """Smallest eigenvalue after scaling the diagonal to 1, which takes the units away."""
    scale = 1 / np.sqrt(np.diagonal(M, axis1=-2, axis2=-1))
    return float(np.linalg.eigvalsh(scale[..., :, None] * M * scale[..., None, :]).min())


def _is_singular(model: Model, M: np.ndarray) -> bool:
    return bool(_empty_joints(model, M)) or not _smallest(M) >= DEFINITE
