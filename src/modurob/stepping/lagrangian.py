"""Lagrangian of a body from the compiled kernels, and the variational step with a free base.

Coordinates with a free base are the center of mass x in the world, the base's rotation R, and the
joints: the kinetic energy m x'^2/2 + T(w, joint velocities) then falls into two, and a steady
flight or a fall adds no error to the rest. The base turns by R1 = R0 exp(h w), with
R_m = R0 exp(h w/2) between. With the torque k about the center of mass, in the base's frame, the
discrete Euler-Lagrange equations of the rotation in position-momentum form are

    p0 = J_l(h w)^-T (dT/dw + h/2 J_r(h w/2)^T k) - h exp(h w/2) k
    p1 = exp(-h w) p0 + h exp(-h w/2) k

(Lee, Leok and McClamroch 2007), those of the joints as for a fixed base. Linear momentum, and
angular momentum about the center of mass, are conserved to rounding when nothing pushes.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from modurob import friction
from modurob.stepping import manifold
from modurob.stepping.motion import EquationOfMotion

STILL = np.zeros(3)


class Lagrangian:
    """M(q), d(M v)/dq and dL/dq with the forces that act from outside."""

    def __init__(self, motion: EquationOfMotion) -> None:
        self.motion, model = motion, motion.model
        self._bare = dataclasses.replace(
            model,
            gravity=np.zeros(3),
            viscous=np.zeros_like(model.viscous),
            coulomb=np.zeros_like(model.coulomb),
            stiffness=np.zeros_like(model.stiffness),
        )
        self._rest = np.zeros(model.nv)
        self._derivatives, self._out = self._bare.dynamics.bound("inverse_dynamics_derivatives")
        self._weight = model.prepare("inverse_dynamics")
        self._has_friction = bool(model.viscous.any() or model.coulomb.any())
        # forces of more than the joints and the base's rotation; forces that may have kinks
        acting = (motion.drive, motion.stops, motion.ground)
        self.is_driven = any(each is not None for each in acting)
        self.is_kinked = self.is_driven or bool(model.coulomb.any())
        self.mass = self._bare.prepare("mass_matrix")

    def derivatives(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M(q), and D = d(M v)/dq at constant v; the next call overwrites both.

        Without gravity and at rest, inverse dynamics is M a: its derivatives by a and by q are
        these, with v in the place of a.
        """
        if self._derivatives(q, self._rest, v, self._out) is None:
            self._out[:] = self._bare.inverse_dynamics_derivatives(q, self._rest, v)
        return self._out[2], self._out[0]

    def bias(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(nv,) what an acceleration of zero takes: D v - dL/dq less the forces from outside.

        On a fixed base only; the next call may overwrite it.
        """
        if self.motion.external:
            pushed = self.motion.wrenches(t)
            found = self.motion.model.inverse_dynamics(q, v, self._rest, pushed)
        else:
            found = self._weight(q, v, self._rest)
        if self.is_driven:
            found -= self.motion.force(t, q, v)
        return found

    def forces(
        self, t: float, q: np.ndarray, v: np.ndarray, D: np.ndarray, seen: np.ndarray | None = None
    ) -> np.ndarray:
        """(nv,) dL/dq = v^T D/2 - gravity, with the forces from outside.

        Args:
            seen: Velocity that the drive measures; v by default.
        """
        G = np.dot(v, D)
        G *= 0.5
        if self.motion.external:
            pushed = self.motion.wrenches(t)
            G -= self.motion.model.inverse_dynamics(q, self._rest, self._rest, pushed)
        else:
            G -= self._weight(q, self._rest, self._rest)
        if self.is_driven:
            G += self.motion.force(t, q, v if seen is None else seen)
        if self._has_friction:
            G -= friction.force(self.motion.model, v)
        return G

    def drag(self, v: np.ndarray, slope: np.ndarray, half: float) -> None:
        """Add what friction at v (nv,) adds to the derivative of a step: near rest it is stiff."""
        if self._has_friction:
            n = len(slope)
            slope.flat[:: n + 1] += half * friction.slope(self.motion.model, v)[-n:]


class Floating:
    """The equation of one step for z = (w, joint velocities); momenta are (P, p_w, p_joints)."""

    def __init__(self, lagrangian: Lagrangian) -> None:
        self._of = lagrangian
        self._mass = float(np.sum(lagrangian.motion.model.mass))
        self._force, self._pushed, self._q_m = np.zeros(3), np.empty(0), np.empty(0)

    def begin(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Momenta and unknowns of a state."""
        M = self._of.mass(q)
        p = M @ v
        p[3:] -= self._lever(M).T @ p[:3]
        p[:3] = manifold.to_world(q, p[:3].tolist())
        return p, v[3:].copy()

    def velocity(self, q: np.ndarray, p: np.ndarray) -> np.ndarray:
        """(nv,) the velocity that belongs to momenta."""
        M, p = self._of.mass(q), p.copy()
        p[:3] = manifold.to_base(q, p[:3].tolist())
        p[3:] += self._lever(M).T @ p[:3]
        return np.linalg.solve(M, p)

    def _lever(self, M: np.ndarray) -> np.ndarray:
        """(3, nv - 3) velocity of the center of mass, in the base's frame, per w and joints."""
        return M[:3, 3:] / self._mass

    def _center(self, q: np.ndarray, M: np.ndarray) -> np.ndarray:
        """(3,) from the base's origin to the center of mass, in the world."""
        # the block between forces and w is -m hat(s)
        s = (M[1, 5] / self._mass, M[2, 3] / self._mass, M[0, 4] / self._mass)
        return np.array(manifold.to_world(q, s))

    def equation(
        self, t: float, h: float, q: np.ndarray, p: np.ndarray, z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Derivative (to first order in h) and what is missing to the solution."""
        half, w = h / 2, z[:3].tolist()
        q_m = manifold.moved(q, np.concatenate([STILL, half * z]))
        lever = self._lever(self._of.mass(q_m))
        v = np.concatenate([-lever @ z, z])  # the center of mass at rest
        M, D = self._of.derivatives(q_m, v)
        seen = self._flying(h, q, q_m, p, v, M) if self._of.is_driven else None
        G = self._of.forces(t + half, q_m, v, D, seen)
        pushed = G[3:] - lever.T @ G[:3]  # about the center of mass
        momentum, reduced = (M @ v)[3:], M[3:, 3:] - self._mass * (lever.T @ lever)
        slope = D[3:, 3:] - lever.T @ D[:3, 3:]
        slope = reduced + half * (slope - slope.T)
        self._of.drag(v, slope, half)
        missing = p[3:] + half * pushed - momentum
        missing[:3] = p[3:6] - self._turning(h, w, momentum[:3], pushed[:3])
        # to first order p0 = dT/dw + h/2 (w x dT/dw - k)
        slope[:3] += half * (_hat(w) @ reduced[:3])
        slope[:3, :3] -= half * _hat(momentum[:3].tolist())
        self._q_m, self._force, self._pushed = q_m, G[:3], pushed
        return slope, missing

    @staticmethod
    def _turning(h: float, w: list[float], momentum: np.ndarray, k: np.ndarray) -> np.ndarray:
        """(3,) the p0 of the rotation."""
        half, torque = [h / 2 * x for x in w], k.tolist()
        carried = momentum + h / 2 * np.array(manifold.left_jacobian(half, torque))
        begun = manifold.right_jacobian_inverse([h * x for x in w], carried.tolist())
        return np.array(begun) - h * np.array(manifold.turned(half, torque))

    def _flying(
        self, h: float, q: np.ndarray, q_m: np.ndarray, p: np.ndarray, v: np.ndarray, M: np.ndarray
    ) -> np.ndarray:
        """Velocity with that of the center of mass; puts the base of q_m to its place.

        The force that changes it during this step is that of the round before.
        """
        push = np.array(manifold.to_world(q_m, self._force.tolist()))
        speed = (p[:3] + h / 2 * push) / self._mass
        center = q[:3] + self._center(q, self._of.mass(q)) + h / 2 * speed
        q_m[:3] = center - self._center(q_m, M)
        flying = v.copy()
        flying[:3] += manifold.to_base(q_m, speed.tolist())
        return flying

    def finish(
        self, h: float, q: np.ndarray, p: np.ndarray, z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Configuration and momenta after the step."""
        after = np.concatenate([p[:3], p[3:] + h * self._pushed])
        after[:3] += h * np.array(manifold.to_world(self._q_m, self._force.tolist()))
        back, k = (-h * z[:3]).tolist(), self._pushed[:3].tolist()
        kept = np.array(manifold.turned(back, p[3:6].tolist()))
        after[3:6] = kept + h * np.array(manifold.turned([x / 2 for x in back], k))
        center = q[:3] + self._center(q, self._of.mass(q))
        center += h / (2 * self._mass) * (p[:3] + after[:3])
        moved = manifold.moved(q, np.concatenate([STILL, h * z]))
        moved[:3] = center - self._center(moved, self._of.mass(moved))
        return moved, after


def _hat(u: list[float]) -> np.ndarray:
    x, y, z = u
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
