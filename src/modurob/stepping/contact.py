"""Forces of the ground on the corners of a body, and the anchors of their bristles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from modurob.compiler.packing import size
from modurob.compiler.routine import Routine, memory_blocks, thread_count
from modurob.dynamics import External, link_wrenches
from modurob.equations.contact import (
    GROUND_FORCES,
    GROUNDED_DYNAMICS,
    Bristle,
    ContactPoint,
    GroundLaw,
    RollingBristle,
    contact_force,
    stretch,
)
from modurob.equations.passes import Quantity
from modurob.equations.vectors import Vec, vec
from modurob.errors import StateError
from modurob.model import Model
from modurob.organism import Organism
from modurob.stepping.ground import Ground, corners

GRIP = 0.7  # tangential over normal stiffness: of equal spheres that touch (Mindlin 1949), about
LEAST_DAMPING = 10.0  # [s/m] by default
DAMPING_OF_RATE = 0.0125  # [s^2/m] over the fastest oscillation: keeps the share of critical
RESOLVED = 0.8  # rad of the fastest oscillation on the ground in a step, by default
MOST_RESOLVED = 1.0  # rad of it: beyond, steps of impacts are no longer small
MOST_DAMPED = 4.0  # of the speed on a whole side, a quarter of it on each corner, in a step
NOMINAL_STEP_S = 1e-3  # that adaptive methods get their stiffness from
SOFTEST = 0.1  # of the largest body: deepest that all may lie in ground as hard as the step allows
SUNK = 2.0  # times the depth at which one corner carries the weight: refused at the start
ROUNDING = 1e-9  # [m] of the lowest point at the start
SAME_SIDE = 1e-6  # of the size of a body: distance of corners that touch a plane together


class Touching(NamedTuple):
    """Corners of a body that touch the ground, as its modules can measure them.

    Attributes:
        body: (k,) body of each corner.
        place: (k, 3) in the body's frame. [m]
        normal: (k, 3) of the ground, in the world.
        force: (k, 3) of the ground, in the world. [N]
    """

    body: np.ndarray
    place: np.ndarray
    normal: np.ndarray
    force: np.ndarray


class Touched(NamedTuple):
    """Corners that touch: which of all, and (..., k, 3) places in their bodies. [m]"""

    which: np.ndarray
    place: np.ndarray


class GroundContact:
    """Forces of the ground on one model, and its anchors: the memory of friction.

    Anchors stay as they are within a step, so that the force is a continuous function of the state;
    `accepted` moves them after it.

    Args:
        q: (..., nq) a configuration; the mass matrix there sets the stiffness.
        step: Of the integrator; None for an adaptive one. [s]
        before: Contacts of the bodies that this one was made of.

    Attributes:
        law: Numbers of the contact law.
        rate: Fastest oscillation of the body on the ground. [rad/s]
        largest_step: For adaptive methods. [s]
    """

    def __init__(
        self, ground: Ground, model: Model, organism: Organism | None, q: np.ndarray,
        step: float | None, before: Sequence[GroundContact] = (),
    ) -> None:  # fmt: skip
        if organism is None:
            raise StateError(
                "ground touches the shapes of an organism, and this model was not built from one: "
                "use Organism.model(...), or give organism="
            )
        self._ground, self._model = ground, model
        self._at = corners(organism, model)
        self._body, self._rolls = self._at.body, bool(self._at.radius.any())
        self._moves = model._moving_columns[model.body_link].astype(float)  # (bodies, nv)
        given = min((other.law.stiffness for other in before), default=ground.stiffness)
        states = q.reshape(math.prod(q.shape[:-1]), q.shape[-1])  # -1 cannot tell where nq is 0
        softness = self._unit_rate(states[0] if len(states) else model.neutral())
        k = given or (RESOLVED / (step or NOMINAL_STEP_S) / softness) ** 2
        if ground.stiffness is None and step is not None:  # a light module may have docked
            k = min(k, (MOST_RESOLVED / (step * softness)) ** 2)
        self.rate = rate = softness * np.sqrt(k)
        self.law = ground_law(ground, k, rate, step)
        self.largest_step = RESOLVED / rate
        if step is not None and step * rate > MOST_RESOLVED * (1 + 1e-9):
            most_k = k * (MOST_RESOLVED / (step * rate)) ** 2
            raise StateError(
                f"dt = {step:g} s is too long for a ground of {k:.4g} N/m, on which this body "
                f"oscillates at {rate / (2 * np.pi):.3g} Hz: give dt = "
                f"{rounded_down(MOST_RESOLVED / rate)} s or less, or a stiffness of "
                f"{rounded_down(most_k)} N/m or less"
            )
        if ground.stiffness is None and step is not None and model.free_base:
            self._check_softness(step)
        self._batch = q.shape[:-1]
        memory = RollingBristle if self._rolls else Bristle
        self._memory = memory_blocks(math.prod(self._batch), len(self._body), size(memory))
        for other in before:
            self._take(other)
        self._seen: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # q, v, force
        self._reached: tuple[np.ndarray, np.ndarray] | None = None  # by `march`: q, v
        self._routines: dict[tuple[Quantity, bool, bool], Routine] = {}

    def _tables(self) -> dict[str, np.ndarray]:
        """Corners in their links, the ground and the law, for compiled code."""
        (_, place, axis, radius), ground = self._at, self._ground
        link = self._model._placed_frames.body_link[self._body].astype(np.int64)
        R, p = self._in_links
        own = [_placed(R, p, place)]
        if self._rolls:
            own += [_placed(R, 0.0, axis), radius[:, None]]
        same = np.array([*ground.below, *self.law])
        same = np.broadcast_to(same, (len(place), len(same)))
        return {
            "point_rows": np.concatenate([*own, same], axis=1),
            "point_links": 2 * link + (np.diff(link, prepend=-1) != 0),
            "memory": self._memory,
            **({} if ground.is_plane else {"lookup_rows": ground.cells}),
        }

    @property
    def _in_links(self) -> tuple[np.ndarray, np.ndarray]:
        """Rotations and positions of the corners' bodies in the frames of compiled code."""
        frames = self._model._placed_frames
        return frames.body_rotation[self._body], frames.body_position[self._body]

    def _routine(
        self, choices: Mapping[tuple[str, bool], Quantity], settles: bool, external: bool = False
    ) -> Routine:
        """Compiled code, made when it is first needed."""
        key = (choices[self._ground.kind, self._rolls], settles, external)
        if key not in self._routines:
            self._routines[key] = self._model.dynamics.tier.with_points(*key, **self._tables())
        return self._routines[key]

    def _unit_rate(self, q: np.ndarray) -> float:
        """Fastest oscillation on a ground of 1 N/m. [rad/s]

        Every body is taken to lie on its largest side; the corners of the opposite side are counted
        as well, with half the weight each, because their second moments are the same.
        """
        T, S = self._model.forward_kinematics(q), self._model.dynamics.quantity("joint_screws", q)
        K, (of_body, place, *_) = np.zeros((self._model.nv, self._model.nv)), self._at.outline()
        for body in np.unique(of_body).tolist():
            own = place[of_body == body]
            side = largest_sides(own)
            r = own[side > 0] @ T[body, :3, :3].T + T[body, :3, 3]
            hat = np.cross(np.eye(3), r[:, None, :])  # rows w x r
            J = (S[:3].T + S[3:].T @ hat) * self._moves[body][:, None]  # (points, nv, 3)
            K += np.einsum("p,pik,pjk->ij", side[side > 0], J, J)
        M = self._model.mass_matrix(q)
        try:
            values = np.linalg.eigvals(np.linalg.solve(M, K)).real
        except np.linalg.LinAlgError:  # forward dynamics says what is wrong there
            return 1.0
        largest = values.max(initial=0.0)
        return float(np.sqrt(largest)) if largest > 0 else 1.0

    def _check_softness(self, step: float) -> None:
        """Refuse a step that would need ground too soft to lie on."""
        (of_body, place, *_), model = self._at.outline(), self._model
        bodies = [place[of_body == body] for body in np.unique(of_body)]
        weight = np.sum(model.mass) * np.linalg.norm(model.gravity)
        depth = weight / (self.law.stiffness * sum(largest_sides(own).sum() for own in bodies))
        most = SOFTEST * max(np.ptp(own, axis=0).max() for own in bodies)
        if depth > most:
            raise StateError(
                f"dt = {step:g} s is too long for this body on the ground: one that is soft enough "
                f"for it lets the body sink by {depth:.2g} m; give dt = "
                f"{rounded_down(step * np.sqrt(most / depth))} s or less, or a stiffness of the "
                "ground"
            )

    def _take(self, other: GroundContact) -> None:
        """Keep the anchors of bodies that another contact has, by name."""
        other._settle()
        names = {name: k for k, name in enumerate(other._model.body_names)}
        for body in np.unique(self._body).tolist():
            k = names.get(self._model.body_names[body])
            if k is not None:
                mine, theirs = self._body == body, other._body == k
                self._memory[:, mine, :4] = other._memory[:, theirs, :4]
                if self._rolls:  # these bodies may have other links now
                    place = other._anchored()[..., theirs, :]
                    R, p = (x[mine] for x in self._in_links)
                    self._memory[:, mine, 4:] = np.moveaxis(_placed(R, p, place), 1, -1)

    def _anchored(self) -> np.ndarray:
        """(blocks, states, k, 3) places of the points when they were anchored, in their bodies."""
        if not self._rolls:
            return self._at.place[None, None]
        R, p = self._in_links
        place = np.moveaxis(self._memory[:, :, 4:], -1, 1) - p
        return _placed(np.swapaxes(R, -1, -2), 0.0, place)

    # -- states ------------------------------------------------------------------------------------

    def _corners(self, q: np.ndarray) -> tuple[Vec, Vec, np.ndarray, np.ndarray]:
        """Positions of all corners, normals of the ground, depths: (..., k) each; bodies' poses."""
        T = self._model.forward_kinematics(q)[..., self._body, :, :]
        x = vec(self._at.lowest(self._ground, T))
        z, a, b = self._ground.surface(x[0], x[1])
        n_z = 1 / np.sqrt(1 + a * a + b * b)
        return x, Vec([-a * n_z, -b * n_z, n_z]), (z - x[2]) * n_z, T

    def _points(self, q: np.ndarray, v: np.ndarray) -> tuple[ContactPoint, np.ndarray, Touched]:
        """Corners that touch, (..., 6, nv) screws of all velocities, which corners."""
        x, n, depth, T = self._corners(q)
        held = self._states(np.moveaxis(self._memory[:, :, 3], -1, 1))
        which = np.flatnonzero((depth > 0).reshape(-1, len(self._body)).any(axis=0))
        S = self._model.dynamics.quantity("joint_screws", q)
        V = (S * v[..., None, :]) @ self._moves[self._body[which]].T  # (..., 6, which)
        x = Vec([e[..., which] for e in x])
        n = Vec([np.broadcast_to(e, depth.shape)[..., which] for e in n])
        u = Vec([V[..., k, :] for k in range(3)]) + Vec([V[..., k, :] for k in (3, 4, 5)]).cross(x)
        T = T[..., which, :, :]
        anchor = vec(self._states(np.moveaxis(self._memory[:, which, :3], -1, 1)))
        place = self._at.place[which]
        if self._rolls:
            before = self._states(self._anchored()[..., which, :])
            R, p = T[..., :3, :3], T[..., :3, 3]
            anchor = anchor + (x - vec(_placed(R, p, before)))
            place = _placed(np.swapaxes(R, -1, -2), 0.0, np.stack([*x], axis=-1) - p)
        point = ContactPoint(x, u, n, depth[..., which], anchor, held[..., which])
        return point, S, Touched(which, place)

    def _states(self, blocks: np.ndarray) -> np.ndarray:
        """(..., *rest) of the states, from (blocks, states of a vector, *rest)."""
        rest = blocks.shape[2:]
        rows = blocks.reshape(math.prod(blocks.shape[:2]), *rest)[: math.prod(self._batch)]
        return rows.reshape(*self._batch, *rest)

    def force(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv) force of the ground on the joints and a free base. [N m, N]"""
        self._settle()
        seen = self._seen
        if seen is not None and np.array_equal(v, seen[1]) and np.array_equal(q, seen[0]):
            return seen[2]
        return self._run(False, q, v)

    def _run(self, settles: bool, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        routine, found = self._routine(GROUND_FORCES, settles), None
        if not self._batch:
            found = routine.single(q, v, np.empty(self._model.nv))
        if found is None:
            found = routine.batch(self._rows(q), self._rows(v), None, None, self._threads)
        if found is None:  # not finite: forward dynamics says where
            return np.full((*self._batch, self._model.nv), np.nan)
        return found.reshape(*self._batch, self._model.nv)

    def _rows(self, x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x.reshape(math.prod(self._batch), x.shape[-1]))

    @property
    def _threads(self) -> int:
        return thread_count("auto", math.prod(self._batch) * self._model.nv)

    def march(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: float, count: int,
        wrenches: External | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """States after semi-implicit Euler steps of h seconds under constant forces, compiled.

        Anchors move before each of the steps, and after the last one when they are needed.
        """
        q, v = np.array(q, order="C"), np.array(v, order="C")
        rows, external = (self._rows(q), self._rows(v), self._rows(tau)), None
        if wrenches is not None:
            external = link_wrenches(self._model, wrenches)
            external = np.broadcast_to(external, (*self._batch, *external.shape[-2:]))
            external = self._rows(external.reshape(*self._batch, math.prod(external.shape[-2:])))
        stepper = self._routine(GROUNDED_DYNAMICS, True, external is not None)
        if not stepper.march(*rows, external, h, count, self._threads):
            v[:] = np.nan
        self._reached = q.copy(), v.copy()
        return q, v

    def _settle(self) -> None:
        """Move the anchors after the last step of `march`."""
        if self._reached is not None:
            self.accepted(*self._reached)

    @property
    def recorded(self) -> int:
        """Numbers that a record of one state has of the ground: `observed` and `force`."""
        return self._model.nv + 6 * self._model.nbodies + 1

    def observed(self, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        """Channels: force and torque on each body, energy in the ground.

        Forces and torques about the world's origin are (..., bodies, 3), in the world. [N, N m]
        """
        self._settle()
        point, _, (which, _) = self._points(q, v)
        s, d = stretch(point), point.depth
        f = contact_force(self.law, point, s)
        each = np.where(d > 0, self.law.stiffness * d * d + self.law.grip * s.dot(s), 0.0)
        energy = 0.5 * np.sum(each, axis=-1)
        of_body = (np.arange(self._model.nbodies)[:, None] == self._body[which]).astype(float)
        force, torque = (of_body @ np.stack([*u], axis=-1) for u in (f, point.x.cross(f)))
        return {"contact": force, "contact_torque": torque, "contact_energy": energy}

    def touching(self, q: np.ndarray, v: np.ndarray) -> Touching:
        """The corners of one body that the ground pushes."""
        self._settle()
        point, _, (which, place) = self._points(q, v)
        force = contact_force(self.law, point, stretch(point))
        f, n = (np.stack([*u], axis=-1) for u in (force, point.normal))
        pushed = np.sum(f * n, axis=-1) > 0
        return Touching(self._body[which[pushed]], place[pushed], n[pushed], f[pushed])

    def accepted(self, q: np.ndarray, v: np.ndarray) -> None:
        """Move the anchors after a step; the force there is kept for the next one."""
        self._reached = None
        self._seen = q.copy(), v.copy(), self._run(True, q, v)

    def started(self, q: np.ndarray) -> np.ndarray:
        """(..., nq) the same, or lifted out of the ground if that was asked for; else refused."""
        _, normal, depth, _ = self._corners(q)
        weight = np.sum(self._model.mass) * np.linalg.norm(self._model.gravity)
        if depth.max(initial=-np.inf) <= SUNK * weight / self.law.stiffness + ROUNDING:
            return q
        rise = (depth / normal[2]).max(axis=-1)
        if self._ground.lift and self._model.free_base:
            q = q.copy()
            q[..., 2] += np.maximum(rise, 0.0)
            return q
        *state, k = np.unravel_index(int(np.argmax(depth)), depth.shape)
        body = self._model.body_names[self._body[k]]
        where = f" in state {state[0] if len(state) == 1 else state}" if state else ""
        advice = (
            "start it higher, or give Ground(lift=True)"
            if self._model.free_base
            else f"its base is fixed: give Ground(height={-np.ceil(100 * rise.max()) / 100:g})"
        )
        raise StateError(f"'{body}' starts {depth.max():.3g} m below the ground{where}: {advice}")


def ground_law(ground: Ground, k: Any, rate: Any, step: float | None) -> GroundLaw:
    """The contact law of a stiffness under a corner, for a body that oscillates at a rate on it.

    Args:
        step: Of the integrator, which deep corners must not overshoot; None for an adaptive one.
    """
    damping = ground.damping
    if damping is None:
        damping = np.maximum(LEAST_DAMPING, DAMPING_OF_RATE * rate)
    limit = np.inf if step is None else MOST_DAMPED / (step * rate**2)
    return GroundLaw(ground.friction, k, damping, limit, GRIP * k, GRIP * k / rate)


def _placed(R: np.ndarray, p: np.ndarray | float, place: np.ndarray) -> np.ndarray:
    """(..., 3) places in the frame that R and p are poses in."""
    return (R @ place[..., None])[..., 0] + p


def largest_sides(place: np.ndarray) -> np.ndarray:
    """(k,) weights of the corners (k, 3) of a body in the stiffness of a body that lies on a side.

    Of the three pairs of opposite sides of the box around the body, the pair whose corners have the
    largest second moment; the weights add up to the number of corners of its larger side, or to
    half of it where both sides are one, as of a point.
    """
    low, high = place.min(axis=0), place.max(axis=0)
    near = SAME_SIDE * (high - low).max()
    ends = np.stack([place - low <= near, high - place <= near]).astype(float)  # (2, k, 3)
    counts = ends.sum(axis=1)  # (2, 3)
    weights = ends.max(axis=0) * counts.max(axis=0) / counts.sum(axis=0)
    spread = np.sum((place - place.mean(axis=0)) ** 2, axis=1) @ weights
    return weights[:, spread.argmax()]


def rounded_down(x: float) -> str:
    """Two digits that are not more than x."""
    unit = 10.0 ** (np.floor(np.log10(x)) - 1)
    return f"{np.floor(x / unit * (1 + 1e-12)) * unit:.2g}"
