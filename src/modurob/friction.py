"""Friction of joints (`equations.links.friction`) in discrete time: fastest rate, implicit steps.

Friction slows small deviations of the velocities down by ``dv/dt = -M^-1 D v``, D = its slope.
Explicit steps much longer than one over the largest eigenvalue of ``M^-1 D`` grow without bound,
however calm the motion is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modurob.equations import links
from modurob.equations.links import SLIP_SPEED
from modurob.errors import StateError

if TYPE_CHECKING:
    from modurob.model import Model

CONFIGURATIONS = 32  # sampled: rates of trees vary by some ten percent beyond them
# largest rate times step: RK4 is stable up to 2.78, the midpoint rule oscillates from 2 on
MOST_RATE_STEP = 2.0
EXPLICIT = 1.0  # rate times step beyond which explicit Euler steps change the velocity's sign
MOST_SUBSTEPS = 1000  # of one step; slower runs are refused
ROUNDS = 100  # of Newton's method for dry friction; five are usual
HALVINGS = 30  # of a step that leads uphill
SETTLED = 1e-14  # of the largest term: what is left of the equation is rounding
ROUNDING = 1e-7  # of the largest term: closer, differences of the convex function are rounding
STALLED = 1e-9  # of the largest term: with more left, no solution was found


class FrictionRate(NamedTuple):
    """Fastest decay that friction causes in a model.

    Attributes:
        rate: Largest eigenvalue of M^-1 D over sampled configurations, at rest, where dry friction
            is steepest. [1/s]
        joint: The joint that takes the largest part in it; empty without friction.
    """

    rate: float
    joint: str

    @property
    def cause(self) -> str:
        """For messages."""
        return f"the friction of '{self.joint}'"


def force(model: Model, v: np.ndarray) -> np.ndarray:
    """(..., nv) friction at a velocity, against it. [N m, N]"""
    result, joints = np.zeros(v.shape), model.joint_slice_v
    result[..., joints] = links.friction(model.viscous, model.coulomb, v[..., joints])
    return result


def slope(model: Model, v: np.ndarray) -> np.ndarray:
    """(..., nv) its derivative by the velocity. [N m s/rad, N s/m]"""
    result, joints = np.zeros(v.shape), model.joint_slice_v
    result[..., joints] = links.friction_slope(model.viscous, model.coulomb, v[..., joints])
    return result


def fastest_rate(model: Model) -> FrictionRate:
    """See `Model.friction_rate`, which keeps the result."""
    steepest = links.friction_slope(model.viscous, model.coulomb, 0.0)
    if not steepest.any():
        return FrictionRate(0.0, "")
    rng = np.random.default_rng(0)
    q = [model.neutral(), *(model.random_configuration(rng) for _ in range(CONFIGURATIONS - 1))]
    M, root = model.mass_matrix(np.array(q)), np.sqrt(steepest)
    rate, fastest, n = 0.0, None, len(root)
    for each in M:
        try:
            inverse = np.linalg.inv(each)
        except np.linalg.LinAlgError:  # forward dynamics raises the reason there
            continue
        decay = root[:, None] * inverse[-n:, -n:] * root
        largest = float(np.linalg.eigvalsh(decay)[-1])
        if rate < largest < np.inf:
            rate, fastest = largest, decay
    if fastest is None:
        return FrictionRate(0.0, "")
    _, vectors = np.linalg.eigh(fastest)
    return FrictionRate(rate, model.joint_names[int(np.abs(vectors[:, -1]).argmax())])


def substeps(rate: float, cause: str, dt: float, method: str, advice: str) -> int:
    """Number of equal parts of a step with which an explicit method follows a decay.

    Args:
        rate: Of the fastest decay or oscillation. [1/s]
        cause: What decays, for the error message when there would be too many.
        dt: [s]
        method: For the message, too.
        advice: What else to do then, in the imperative.
    """
    parts = math.ceil(rate * dt / MOST_RATE_STEP)
    if parts > MOST_SUBSTEPS:
        largest = MOST_SUBSTEPS * MOST_RATE_STEP / rate
        raise StateError(
            f"{method} with steps of {dt:g} s would need {parts:,} substeps for {cause}, whose "
            f"fastest rate is {rate:.3g} 1/s: take dt = {largest:.1e} s or less, or {advice}"
        )
    return max(1, parts)


# -- implicit steps --------------------------------------------------------------------------------


def needs_implicit_step(model: Model, h: float) -> bool:
    """Return whether a semi-implicit Euler step of `h` seconds takes friction at its end."""
    return h * model.friction_rate.rate > EXPLICIT


def implicit_velocity(
    model: Model, M: np.ndarray, v: np.ndarray, push: np.ndarray, h: float
) -> np.ndarray:
    """(..., nv) v+ with ``M (v+ - v) = h (push - friction(v+))``; NaN where there is none.

    Args:
        M: (..., nv, nv) mass matrix.
        v: (..., nv) velocity before.
        push: (..., nv) all forces but friction. [N m, N]
    """
    A, dry = M.copy(), np.zeros(model.nv)
    diagonal = np.einsum("...ii->...i", A)  # a view
    diagonal[..., model.joint_slice_v] += h * model.viscous
    dry[model.joint_slice_v] = h * model.coulomb
    return solve_with_dry_friction(A, (M @ v[..., None])[..., 0] + h * push, dry)


def solve_with_dry_friction(A: np.ndarray, b: np.ndarray, coulomb: np.ndarray) -> np.ndarray:
    """(..., n) u with ``A u + friction(0, coulomb, u) = b``; NaN where there is none.

    It is the minimum of a convex function. Newton's method starts where every joint sticks: from
    there it does not overshoot for one joint; for several, steps that lead uphill are halved.

    Args:
        A: (..., n, n) symmetric, positive definite.
        b: (..., n)
        coulomb: (n,) zero or more.
    """
    if not coulomb.any():
        return _solved(A, b)
    scale = np.abs(b).max(axis=-1, initial=0.0) + coulomb.max()
    u = _solved(A + np.diag(coulomb / SLIP_SPEED), b)  # the slope at rest
    left, height, error = _missing(A, b, coulomb, u)
    for _ in range(ROUNDS):
        if not np.any(error > SETTLED * scale):
            break
        bend = links.friction_slope(0.0, coulomb, u)
        change = _solved(A + bend[..., None] * np.eye(len(coulomb)), left)
        left, after, off = _missing(A, b, coulomb, u + change)
        for _ in range(HALVINGS):
            uphill = (after > height) & (off > ROUNDING * scale)
            if not uphill.any():
                break
            change = np.where(uphill[..., None], change / 2, change)
            left, after, off = _missing(A, b, coulomb, u + change)
        u, height, error = u + change, after, off
    return np.where((error < STALLED * scale)[..., None], u, np.nan)


def _missing(
    A: np.ndarray, b: np.ndarray, coulomb: np.ndarray, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Residual of `solve_with_dry_friction`, its convex function, and the largest error."""
    # the root of `links.friction`, which both terms need
    root, pulled = np.sqrt(u * u + SLIP_SPEED * SLIP_SPEED), (A @ u[..., None])[..., 0]
    left = b - pulled - coulomb * u / root
    height = np.sum(u * (pulled / 2 - b) + coulomb * root, axis=-1)
    return left, height, np.abs(left).max(axis=-1)


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(..., n) A^-1 b of symmetric positive A; NaN when one is not."""
    if not b.size:
        return b
    if b.ndim == 1:
        from scipy.linalg import lapack  # some microseconds less than NumPy

        _, x, wrong = lapack.dposv(A, b)  # pyright: ignore[reportAttributeAccessIssue]
        return np.full(b.shape, np.nan) if wrong else x
    try:
        return np.linalg.solve(A, b[..., None])[..., 0]
    except np.linalg.LinAlgError:
        return np.full(b.shape, np.nan)
