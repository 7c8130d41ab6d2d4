"""Rigid ground for comparisons: impulses that obey Coulomb's law and leave no rebound.

The scheme of Moreau (1988): in each step, impulses at the corners make the velocity after it obey
``0 <= P_n, u_n + gap/h >= 0, P_n (u_n + gap/h) = 0`` and the friction cone, found by sweeps over
the corners (Gauss-Seidel). It has no stiffness, no damping and no memory of friction. Friction is
opposed to the velocity after an impact, not to those along it: rigid bodies have several limits.
"""

import math

import numpy as np

import modurob as mr
from modurob.stepping.ground import corners

NEAR_M = 2e-3  # corners that may touch within a step
SWEEPS, TOLERANCE = 400, 1e-8
LIFT = 0.1  # of a depth, taken back in a step
SMALLEST = 1e-300  # [N s] keeps an impulse of zero from being divided by zero


def rigid_motion(
    model: mr.Model, q: np.ndarray, v: np.ndarray, law, friction: float, step: float, times
) -> np.ndarray:
    """(times, nq) configurations of a body above a level plane at z = 0; `law` moves its joints."""
    at = corners(model.organism, model).outline()
    moves = model._moving_columns[model.body_link].astype(float)[at.body]
    ends = np.round(np.asarray(times) / step).astype(int)
    impulses, found = np.zeros((len(at.body), 3)), []
    for k in range(ends[-1]):
        tau = np.zeros(model.nv) if law is None else law.command(k * step, q, v, None)
        v = v + step * model.forward_dynamics(q, v, tau)
        T = model.forward_kinematics(q)[at.body]
        x = (T[:, :3, :3] @ at.place[..., None])[..., 0] + T[:, :3, 3]
        near = x[:, 2] < NEAR_M
        impulses[~near] = 0.0
        if near.any():
            S, hat = model.dynamics.quantity("joint_screws", q), np.cross(np.eye(3), x[near, None])
            J = (S[:3].T + S[3:].T @ hat) * moves[near][:, :, None]  # (near, nv, 3)
            J = np.moveaxis(J, 1, 2).reshape(-1, model.nv)
            gained, gap = np.linalg.solve(model.mass_matrix(q), J.T), x[near, 2]
            u = J @ v
            u[2::3] += np.where(gap > 0, gap, LIFT * gap) / step
            impulses[near] = coulomb(J @ gained, u, friction, impulses[near])
            v = v + gained @ impulses[near].ravel()
        q = model.integrate(q, step * v)
        found += [q] * int(np.sum(ends == k + 1))
    return np.array(found)


def coulomb(G: np.ndarray, u: np.ndarray, mu: float, start: np.ndarray) -> np.ndarray:
    """(n, 3) impulses P of Coulomb's law (z is normal) for which velocities are u + G P."""
    P, n = start.ravel().copy(), len(start)
    # the largest eigenvalue of two tangents: a safe step of the projection on the cone
    stiff = [np.linalg.eigvalsh(G[i : i + 2, i : i + 2])[-1] for i in range(0, 3 * n, 3)]
    for _ in range(SWEEPS):
        before = P.copy()
        for i, rate in zip(range(0, 3 * n, 3), stiff, strict=True):
            P[i + 2] = max(P[i + 2] - (u[i + 2] + G[i + 2] @ P) / G[i + 2, i + 2], 0.0)
            x, y = P[i : i + 2] - (u[i : i + 2] + G[i : i + 2] @ P) / rate
            share = min(1.0, mu * P[i + 2] / max(math.hypot(x, y), SMALLEST))
            P[i], P[i + 1] = x * share, y * share
        if np.abs(P - before).sum() <= TOLERANCE * np.abs(P).sum():
            break
    return P.reshape(n, 3)
