"""Fig. 8: the two benchmarks as one sees them move."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from modurob import Trajectory
from papers import figures

FLASHES = 14
PENDULUM_TIME, CRANE_TIME = 1.4, 1.85  # [s]: one swing of each


def draw(path: Path, pendulum: Trajectory, crane: Trajectory) -> None:
    """Rods and masses at equal intervals, the later the darker."""
    drawn, (planes,) = figures.figure(1, 2, size=(9.6, 4.2), width_ratios=(1, 1.35))
    _flashes(planes[0], pendulum, ("m0", "m1", "m2"), PENDULUM_TIME)
    planes[0].set_title("double pendulum, 1 m", loc="left", fontsize=10, color=figures.INK)
    _flashes(planes[1], crane, ("m1", "m2"), CRANE_TIME)
    planes[1].axhline(0, color=figures.FAINT, lw=1.0)
    planes[1].set_title("crane, 5 m", loc="left", fontsize=10, color=figures.INK)
    for plane in planes:
        plane.set_aspect("equal")
        plane.set_xlabel("[m]", color=figures.INK)
    figures.title(drawn, "The first swing")
    figures.save(drawn, path)


def _flashes(plane: Axes, found: Trajectory, modules: tuple[str, ...], duration: float) -> None:
    """Seen along the hinges: the plane of motion is y, z of the world."""
    q, _ = found.at(np.linspace(0, duration, FLASHES))
    poses = found.model.forward_kinematics(q)
    rows = [found.model.body_index(name) for name in modules]
    for k, points in enumerate(poses[:, rows][:, :, 1:3, 3]):
        shade = 0.15 + 0.85 * (k + 1) / FLASHES
        plane.plot(*points.T, color=figures.INK, lw=1.0, alpha=0.6 * shade)
        for j, point in enumerate(points):
            color = figures.FAINT if j == 0 and len(modules) == 3 else figures.PALETTE[j]
            plane.plot(*point, color=color, marker="o", ms=7, alpha=shade, ls="none")
