"""Loads on connectors: the wrench through every docking over a run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from modurob.errors import StateError
from modurob.model.shapes import body_place
from modurob.organism import Docking, Organism
from modurob.sim.body_trajectory import BodyTrajectory
from modurob.sim.output.export import refuse_batch
from modurob.sim.reconfiguration.impact import body_masses
from modurob.sim.trajectory import Trajectory
from modurob.spatial import se3
from modurob.stepping.motion import contact_wrenches

SAME_MASS = 1e-9  # relative difference of masses that are equal up to rounding


class ConnectorBreak(NamedTuple):
    """A docking that was loaded beyond its limit.

    Attributes:
        docking: Its name.
        time: When its limit was exceeded first. [s]
        utilization: The largest of the run.
    """

    docking: str
    time: float
    utilization: float


@dataclass(frozen=True, eq=False, repr=False)
class ConnectorLoads:
    """Wrenches through the dockings of a body over a run, and their ratio to the limits.

    A wrench is that of the inner module (nearer to the base) on the outer one, in the port frame of
    the inner module: z is its outward normal, so that a negative third number is tension.

    Attributes:
        dockings: As in `Organism.dockings`.
        t: (N,) times. [s]
        wrenches: (N, dockings, 6) force, then torque about the port. [N, N m]
        limits: (dockings, 2) largest force and torque, of the weaker port; infinite without a
            limit. [N, N m]
    """

    dockings: tuple[Docking, ...]
    t: np.ndarray
    wrenches: np.ndarray
    limits: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the dockings: ``m0.3-m1.4`` is port 3 of m0 with port 4 of m1."""
        return tuple(f"{d.parent}.{d.port}-{d.child}.{d.child_port}" for d in self.dockings)

    @cached_property
    def magnitudes(self) -> np.ndarray:
        """(N, dockings, 2) lengths of force and torque. [N, N m]"""
        parts = self.wrenches.reshape(*self.wrenches.shape[:-1], 2, 3)
        return np.linalg.norm(parts, axis=-1)

    @cached_property
    def utilization(self) -> np.ndarray:
        """(N, dockings) larger ratio of force and torque to their limits; NaN without limits."""
        found = (self.magnitudes / self.limits).max(axis=-1)
        return np.where(np.isfinite(self.limits).any(axis=-1), found, np.nan)

    def breaks(self) -> list[ConnectorBreak]:
        """The dockings that were loaded beyond their limits, in the order of time."""
        over = self.utilization > 1
        found = [
            ConnectorBreak(self.names[k], float(self.t[over[:, k].argmax()]),
                           float(self.utilization[:, k].max()))
            for k in np.flatnonzero(over.any(axis=0)).tolist()
        ]  # fmt: skip
        return sorted(found, key=lambda entry: entry.time)

    def __str__(self) -> str:
        if not self.dockings:
            return "no dockings"
        width = max(len("docking"), *map(len, self.names))
        lines = [f"{'docking':<{width}}  largest force  largest torque  utilization"]
        peaks = self.magnitudes.max(axis=0)
        for k, (name, (force, torque)) in enumerate(zip(self.names, peaks.tolist(), strict=True)):
            used, share = self.utilization[:, k], "no limit"
            if not np.isnan(used[0]):
                share = f"{100 * used.max():.3g} % at {self.t[used.argmax()]:.4g} s"
            lines.append(f"{name:<{width}}  {force:11.4g} N  {torque:10.4g} N m  {share:>11}")
        for entry in self.breaks():
            lines.append(
                f"{entry.docking} exceeds its limit at {entry.time:.4g} s, by a factor of "
                f"{entry.utilization:.3g} at most"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<ConnectorLoads: {len(self.dockings)} dockings, {len(self.t)} times>"


def connector_loads(trajectory: Trajectory | BodyTrajectory) -> ConnectorLoads:
    """Return the wrench through every docking over a run.

    Of what lies beyond a docking, it is the rate of momentum less weight, contact and external
    wrenches. Dockings inside one rigid link and dockings at a joint have theirs alike. Impulses of
    docking events and of stops are no part of it.

    Args:
        trajectory: One motion of one body; of a run with events, one of its `parts`.
    """
    if not isinstance(trajectory, Trajectory | BodyTrajectory):
        raise StateError(
            f"connector loads are those of a Trajectory, got {type(trajectory).__name__}"
        )
    part = trajectory._only("load") if isinstance(trajectory, Trajectory) else trajectory
    refuse_batch(part, "a table of loads")
    model, organism = part.model, part.organism
    if organism is None:
        raise StateError(
            "connector loads need the dockings of an organism, and this run has none: simulate a "
            "model of Organism.model(...), or give organism="
        )
    dockings = organism.dockings
    wrenches = part._each(
        lambda *row: _demands(part, organism, *row), part.q, part.v, part.a
    )  # (N, bodies, 6)
    T = model.forward_kinematics(part.q)
    wrenches = wrenches - _given(part, T)
    through = _beyond(part, organism) @ wrenches
    frames = np.stack([_frame(part, organism, T, d) for d in dockings], axis=1) if dockings else T
    found = se3.transform_wrench(frames, through) if dockings else through
    limits = [_limits(organism, docking) for docking in dockings]
    return ConnectorLoads(dockings, part.t, found, np.array(limits).reshape(-1, 2))


def _demands(
    part: BodyTrajectory, organism: Organism, q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> np.ndarray:
    """(N, bodies, 6) rate of momentum less weight of each body, about the world's origin."""
    model = part.model
    names, solids = body_masses(organism, model)
    index = [model.body_index(name) for name in names]
    _check_masses(part, index, np.array([solid.mass for solid in solids]))
    S = model.dynamics.quantity("joint_screws", q)
    dS = model.dynamics.quantity("joint_screw_rates", q, v)
    moves = model._moving_columns[model.body_link[index]].T.astype(float)
    V = np.swapaxes((S * v[:, None, :]) @ moves, 1, 2)  # (N, massive bodies, 6)
    rate = np.swapaxes((S * a[:, None, :] + dS * v[:, None, :]) @ moves, 1, 2)
    T = model.forward_kinematics(q)[:, index]
    R = T[..., :3, :3]
    c = (R @ np.array([solid.center for solid in solids])[..., None])[..., 0] + T[..., :3, 3]
    inertia = R @ np.array([solid.inertia for solid in solids]) @ np.swapaxes(R, -1, -2)
    w, alpha = V[..., 3:], rate[..., 3:]
    velocity = V[..., :3] + np.cross(w, c)
    acceleration = rate[..., :3] + np.cross(alpha, c) + np.cross(w, velocity)
    f = np.array([solid.mass for solid in solids])[:, None] * (acceleration - model.gravity)
    spin = (inertia @ w[..., None])[..., 0]
    n = (inertia @ alpha[..., None])[..., 0] + np.cross(w, spin) + np.cross(c, f)
    found = np.zeros((len(q), model.nbodies, 6))
    found[:, index] = np.concatenate([f, n], axis=-1)
    return found


def _check_masses(part: BodyTrajectory, index: list[int], mass: np.ndarray) -> None:
    """Refuse a model with other masses than the datasheets: where they are is unknown."""
    model, found = part.model, np.zeros(len(part.model.mass))
    np.add.at(found, model.body_link[index], mass)
    if not np.allclose(found, model.mass, rtol=SAME_MASS, atol=SAME_MASS * model.mass.max()):
        raise StateError(
            "the model has other masses than its modules' datasheets (payload, scaled masses), "
            "and loads on connectors need the mass of each module: change the datasheets with "
            "Organism.with_parameters"
        )


def _given(part: BodyTrajectory, T: np.ndarray) -> np.ndarray:
    """(N, bodies, 6) contact and external wrenches on bodies about the world's origin."""
    channels, found = part.channels, np.zeros((len(part.t), part.model.nbodies, 6))
    if "contact" in channels and "contact_torque" not in channels:
        raise StateError(
            "the run has forces of the ground without their torques: it is from an earlier "
            "version; simulate it again"
        )
    found += contact_wrenches(channels)
    if "external" in channels:
        found += se3.transform_wrench(se3.inverse(T), channels["external"])
    return found


def _beyond(part: BodyTrajectory, organism: Organism) -> np.ndarray:
    """(dockings, bodies) 1 for the bodies beyond a docking."""
    owner = np.array([name.partition(".")[0] for name in part.model.body_names])
    modules = {name: k for k, name in enumerate(organism.modules)}
    reach = np.eye(len(modules)) + organism.accessibility()
    rows = [modules[docking.child] for docking in organism.dockings]
    return (reach[rows][:, [modules[name] for name in owner.tolist()]] > 0).astype(float)


def _frame(part: BodyTrajectory, organism: Organism, T: np.ndarray, docking: Docking) -> np.ndarray:
    """(N, 4, 4) port frame of the inner module in the world."""
    port = organism.kind(docking.parent).port(docking.port)
    body, T_body = body_place(part.model, organism, docking.parent, port.body)
    return T[:, body] @ T_body @ port.pose


def _limits(organism: Organism, docking: Docking) -> tuple[float, float]:
    """Largest force and torque of the weaker port."""
    ports = (
        organism.kind(docking.parent).port(docking.port),
        organism.kind(docking.child).port(docking.child_port),
    )
    return (
        min(np.inf if port.max_force is None else port.max_force for port in ports),
        min(np.inf if port.max_torque is None else port.max_torque for port in ports),
    )
