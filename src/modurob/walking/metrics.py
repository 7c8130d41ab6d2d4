"""Measures of a run on the ground: distance, cost of transport, slip, stability margin."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from modurob.distributed.balancing.support import support_polygon
from modurob.errors import StateError
from modurob.organism.matrices import aligned, monospaced
from modurob.sim import BodyTrajectory, Ground, Trajectory
from modurob.spatial import se3
from modurob.spatial.scalars import matvec
from modurob.stepping.ground import corner_depths

LEAST_DISTANCE = 1e-3  # [m] a shorter way is none: measures that divide by it are infinite


class WalkMetrics(NamedTuple):
    """Measures of a run on the ground.

    Attributes:
        duration: [s]
        distance: Horizontal, of the center of mass from the first state to the last. [m]
        speed: Distance over duration. [m/s]
        heading: Direction of that way, from the x-axis towards y. [rad]
        turn: Rotation of the body about the vertical, summed up over the run: of the horizontal
            places of all corners about their mean. [rad]
        work: Of the motors: the integral of ``sum |tau_i v_i|`` over the joints. What a joint gives
            back counts as spent, as in a drive without recuperation. [J]
        cost_of_transport: Work over weight times distance; infinite without a way.
        slip: Distance that touching corners slide along the ground (mean of those that touch),
            over the distance; infinite without a way.
        stability_margin: Mean distance of the center of mass, seen from above, to the border of
            the support polygon; negative outside. NaN if nothing ever touches. [m]
        least_margin: The smallest. [m]
        stable: Share of the time with the center of mass above the support polygon.
    """

    duration: float
    distance: float
    speed: float
    heading: float
    turn: float
    work: float
    cost_of_transport: float
    slip: float
    stability_margin: float
    least_margin: float
    stable: float

    def words(self) -> dict[str, str]:
        """Each measure with its unit."""
        nowhere = "none: it went nowhere"
        return {
            "distance": f"{self.distance:.3f} m in {self.duration:g} s ({self.speed:.3f} m/s)",
            "heading": f"{round(math.degrees(self.heading))} deg from x",
            "turned": f"{round(math.degrees(self.turn))} deg",
            "cost of transport": (
                f"{self.cost_of_transport:.2f} ({self.work:.1f} J)"
                if math.isfinite(self.cost_of_transport)
                else nowhere
            ),
            "slip": f"{self.slip:.2f} of the distance" if math.isfinite(self.slip) else nowhere,
            "stability margin": (
                f"{1e3 * self.stability_margin:.0f} mm on average, "
                f"{1e3 * self.least_margin:.0f} mm at worst; "
                f"inside for {100 * self.stable:.0f} % of the time"
                if math.isfinite(self.stability_margin)
                else "none: it never touched the ground"
            ),
        }

    def __str__(self) -> str:
        return aligned(list(self.words().items()), str.ljust)

    def _repr_html_(self) -> str:
        return monospaced(str(self))


def walk_metrics(trajectory: Trajectory | BodyTrajectory, ground: Ground) -> WalkMetrics:
    """Measures of a run of one body on the ground, from its recorded states.

    Args:
        trajectory: Recorded often enough to see steps: every 10 ms, for example.
        ground: That it ran on.
    """
    if not (isinstance(trajectory, Trajectory | BodyTrajectory) and isinstance(ground, Ground)):
        given = f"{type(trajectory).__name__} and {type(ground).__name__}"
        raise StateError(f"measures are those of a Trajectory on a Ground, got {given}")
    part = trajectory.parts[0] if isinstance(trajectory, Trajectory) else trajectory
    if (isinstance(trajectory, Trajectory) and len(trajectory.parts) > 1) or part.batch:
        raise StateError(
            "measures are those of one body: give trajectory.parts[k], or trajectory.member(k)"
        )
    if part.organism is None:
        raise StateError("measures need the organism: give organism= to simulate")
    t, model = part.t, part.model
    body, x, depth = corner_depths(ground, part.organism, model, part.q)
    T = model.forward_kinematics(part.q)[:, body]
    center = model.center_of_mass(part.q)
    way = center[-1, :2] - center[0, :2]
    distance, duration = float(np.linalg.norm(way)), float(t[-1] - t[0])
    joints = model.joint_slice_v
    power = np.abs(part.tau[:, joints] * part.v[:, joints]).sum(axis=-1)
    work = float(np.trapezoid(power, t))
    weight = float(np.sum(model.mass) * np.linalg.norm(model.gravity))
    far = distance >= LEAST_DISTANCE
    margins = _margins(x, depth > 0, center)
    touching = ~np.isnan(margins)
    return WalkMetrics(
        duration=duration,
        distance=distance,
        speed=distance / duration if duration else 0.0,
        heading=math.atan2(way[1], way[0]) if far else 0.0,
        turn=_turn(x),
        work=work,
        cost_of_transport=work / (weight * distance) if far and weight else math.inf,
        slip=_slide(x, T, depth > 0) / distance if far else math.inf,
        stability_margin=float(np.nanmean(margins)) if touching.any() else math.nan,
        least_margin=float(np.nanmin(margins)) if touching.any() else math.nan,
        stable=float(np.mean(np.nan_to_num(margins, nan=-1.0) >= 0)),
    )


def _turn(x: np.ndarray) -> float:
    """Rotation about the vertical of points (N, k, 3), summed up. [rad]"""
    r = (x - x.mean(axis=1, keepdims=True))[..., :2]
    before, after = r[:-1], r[1:]
    cross = before[..., 0] * after[..., 1] - before[..., 1] * after[..., 0]
    return float(np.arctan2(cross.sum(axis=1), (before * after).sum(axis=(1, 2))).sum())


def _slide(x: np.ndarray, T: np.ndarray, touches: np.ndarray) -> float:
    """Sum of the mean ways of points (N, k, 3) that touch at both ends of an interval. [m]

    The lowest point of a rim is another one at the end of an interval. The way is the mean of that
    of the first and that of the last: both go along with bodies of poses T (N, k, 4, 4).
    """
    both = touches[:-1] & touches[1:]
    first = _along(T[1:], _along(se3.inverse(T[:-1]), x[:-1])) - x[:-1]
    last = x[1:] - _along(T[:-1], _along(se3.inverse(T[1:]), x[1:]))
    ways = np.linalg.norm(first + last, axis=-1) / 2
    return float(np.sum((ways * both).sum(axis=1) / np.maximum(both.sum(axis=1), 1)))


def _along(T: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(..., 3) points after a transformation."""
    return matvec(T[..., :3, :3], x) + T[..., :3, 3]


def _margins(x: np.ndarray, touches: np.ndarray, center: np.ndarray) -> np.ndarray:
    """(N,) distances of the center of mass from the border of the support; NaN in the air. [m]"""
    found = np.full(len(x), np.nan)
    for k in np.flatnonzero(touches.any(axis=1)).tolist():
        found[k] = support_polygon(x[k, touches[k]]).margin(center[k, :2])
    return found
