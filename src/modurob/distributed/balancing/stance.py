"""A first posture of a robot on several feet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from modurob.errors import StateError
from modurob.model import Model
from modurob.organism import Organism
from modurob.stepping.ground import corners

STARTS = 30
REACHED = 2e-3  # [m, rad] error of soles
CLEARANCE = 0.03  # [m] of all other bodies above the ground
RADIUS = 0.16  # [m] of feet from their middle: legs are bent
SHARE = 0.15  # of the weight: least load of each foot that stays on the ground
EVEN = 0.9  # of the side of a regular polygon: least distance of two feet
USED = 0.8  # share of the joints' range
ROOM = 0.5  # [rad, m] to the limits of a joint that is free to step
LEAST_FEET = 3
ENOUGH = 5.0  # half the sum of squared residuals of a posture that needs no better one


class Foot(NamedTuple):
    """A module that the robot stands on, and the connector that is its sole."""

    module: str
    port: int | str


class Step(NamedTuple):
    """A step of one foot.

    Attributes:
        foot: Module.
        shift: (3,) in the world. [m]
    """

    foot: str
    shift: tuple[float, float, float]


def feet_of(organism: Organism, feet: Mapping[str, int | str] | None = None) -> tuple[Foot, ...]:
    """Feet as given, or the ends of the tree: the connector farthest from the docking."""
    if feet is not None:
        return tuple(Foot(name, organism.kind(name).port(p).label) for name, p in feet.items())
    found = []
    for name in organism.modules:
        entry = organism.docking(name)
        if entry is None or organism.children(name):
            continue
        kind = organism.kind(name)
        docked = kind.port_pose(entry.child_port)[:3, 3]
        away = {p: np.linalg.norm(kind.port_pose(p)[:3, 3] - docked) for p in
                organism.free_ports(name)}  # fmt: skip
        found.append(Foot(name, max(away, key=lambda p: away[p])))
    return tuple(found)


class _Posture:
    """Residuals of a posture: height of the base, all joints, and loads of the feet.

    The center of mass shall be where, on all feet and then without each foot that steps, every foot
    on the ground carries at least its share. Such a robot need not shift its weight.
    """

    def __init__(
        self, organism: Organism, model: Model, feet: tuple[Foot, ...], steps: Sequence[Step]
    ) -> None:
        ports = [organism.kind(foot.module).port(foot.port) for foot in feet]
        self._model, self._soles = model, np.array([port.pose for port in ports])
        names = [foot.module for foot in feet]
        self.bodies = [model.body_index(f"{n}.{p.body}") for n, p in zip(names, ports, strict=True)]
        body, self._place, *_ = corners(organism, model).outline()
        other = ~np.isin(body, self.bodies)
        self._body, self._place = body[other], self._place[other]
        self._loads = _loads(names, steps)
        self.loaded = np.count_nonzero(self._loads.on)
        self._pairs = np.triu_indices(len(feet), 1)
        self._apart = EVEN * 2 * RADIUS * np.sin(np.pi / len(feet))

    def q(self, x: np.ndarray) -> np.ndarray:
        """(..., nq) with the base upright above the origin."""
        q = np.zeros((*x.shape[:-1], self._model.nq))
        q[..., 2], q[..., 6], q[..., 7:] = x[..., 0], 1.0, x[..., 1 : self._model.nv - 5]
        return q

    def soles(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(..., feet, 3) places [m], and outward normals of the soles."""
        T = self._model.forward_kinematics(self.q(x))[..., self.bodies, :, :] @ self._soles
        return T[..., :3, 3], T[..., :3, 2]

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """(..., m) each in units of an error that matters."""
        p, n = self.soles(x)
        q = self.q(x)
        room = np.minimum(q[..., 7:] - self._model.lower, self._model.upper - q[..., 7:])
        center = self._model.center_of_mass(q)[..., :2]
        T = self._model.forward_kinematics(q)[..., self._body, 2, :]
        z = np.sum(T[..., :3] * self._place, axis=-1) + T[..., 3]
        i, j = self._pairs
        apart = np.linalg.norm(p[..., i, :2] - p[..., j, :2], axis=-1)
        middle = p[..., :2].mean(axis=-2)
        away = np.linalg.norm(p[..., :2] - middle[..., None, :], axis=-1)
        share = np.zeros((*x.shape[:-1], *self._loads.on.shape))
        share[..., self._loads.on] = x[..., self._model.nv - 5 :]
        place = p[..., None, :, :2] + self._loads.moved
        over = np.sum(share[..., None] * place, axis=-2) - center[..., None, :]
        loads = [over.reshape(*x.shape[:-1], -1) / 0.003, (share.sum(axis=-1) - 1) / 0.02]
        flat = np.concatenate([n[..., 0], n[..., 1], 1 + n[..., 2]], axis=-1) / 0.01
        return np.concatenate([
            p[..., 2] / 0.002, flat, *loads, (away - RADIUS) / 0.05, (middle - center) / 0.1,
            np.minimum(apart - self._apart, 0) / 0.03, np.minimum(z - CLEARANCE, 0) / 0.01,
            np.minimum(room - ROOM, 0) / 0.15, 0.3 * q[..., 7:],
        ], axis=-1)  # fmt: skip

    def rates(self, x: np.ndarray) -> np.ndarray:
        """(m, n) central differences, all at once."""
        h = 1e-6 * np.eye(len(x))
        return ((self.residuals(x + h) - self.residuals(x - h)) / 2e-6).T


class _Loads(NamedTuple):
    """On all feet, and on those that stay while one steps.

    Attributes:
        on: (steps + 1, feet) which feet carry.
        moved: (steps + 1, feet, 2) by the steps before. [m]
    """

    on: np.ndarray
    moved: np.ndarray


def _loads(names: list[str], steps: Sequence[Step]) -> _Loads:
    on = np.ones((len(steps) + 1, len(names)), dtype=bool)
    moved = np.zeros((*on.shape, 2))
    for k, step in enumerate(steps, start=1):
        foot = names.index(step.foot)
        on[k, foot] = False
        moved[k + 1 :, foot] += step.shift[:2]
    return _Loads(on, moved)


def stance(
    organism: Organism, feet: tuple[Foot, ...], rng: np.random.Generator,
    steps: Sequence[Step] = (), starts: int = STARTS,
) -> np.ndarray:  # fmt: skip
    """(nq,) a configuration of the free body whose soles lie flat on the level ground.

    The base is upright, and all else off the ground. The center of mass is where each of the feet
    carries part of the weight, also without a foot that steps, as far as there is such a place.

    Raises:
        StateError: None was found from any of the random starts.
    """
    from scipy.optimize import least_squares

    if len(feet) < LEAST_FEET:
        raise StateError(
            f"a robot stands on {LEAST_FEET} feet or more, got {len(feet)}: give feet= modules "
            "and their connectors, such as {'m2': 4}"
        )
    model = organism.model("physical", base="free", elastic=False)
    posture = _Posture(organism, model, feet, steps)
    rates: Any = posture.rates  # SciPy's annotation names only the texts
    low, high = USED * np.maximum(model.lower, -np.pi), USED * np.minimum(model.upper, np.pi)
    loads = np.ones(posture.loaded)
    bounds = (np.concatenate([[0.0], low, SHARE * loads]), np.concatenate([[1.0], high, loads]))
    best, found = np.inf, None
    for _ in range(starts):
        x0 = np.concatenate([[0.15], rng.uniform(0.6 * low, 0.6 * high), loads / len(feet)])
        fit = least_squares(posture.residuals, x0, rates, bounds=bounds, max_nfev=60)
        p, n = posture.soles(fit.x)
        error = max(np.abs(p[:, 2]).max(), np.abs(n[:, :2]).max(), np.max(1 + n[:, 2]))
        if error < REACHED and fit.cost < best:
            best, found = fit.cost, fit.x
        if best < ENOUGH:
            break
    if found is None:
        names = ", ".join(foot.module for foot in feet)
        raise StateError(
            f"no posture of {starts} tried has {names} flat on the ground and all else above it: "
            "give longer legs, other feet=, or q0="
        )
    return posture.q(found)
