"""Chapter 5: double pendulum, crane, and a robot that nothing holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import sympy

from modurob import Model, Trajectory, examples, simulate
from papers import figures, lagrange
from papers.claims import Claims

QUARTER = np.pi / 2
AGREED = 1e-8
SEED = 5
# l1, l2 and so on: "various simulations with different parameters", which the thesis leaves open
CRANES = ((2.5, 0.4, 1.5, 2.0), (0.5, 3.0, 8.0, 1.2))  # m1, m2, l, angle
PLANAR = ("px", "py", "rz")
TORQUE, HOLD = 0.0012, 0.1  # [N m], [s]: random, held piecewise
TOLERANCE = 1e-12


def reproduce(claims: Claims) -> None:
    """The three verifications of the thesis."""
    _pendulum(claims)
    _crane(claims)
    _unbounded(claims)


# -- double pendulum -------------------------------------------------------------------------------


def _pendulum(claims: Claims) -> None:
    organism = examples.double_pendulum()
    claims.check("pendulum_aim", organism.aim().matrix)
    equations = organism.equations("physical")
    T = sympy.Matrix([[1, -1], [0, 1]])
    for letter in "MCN":
        ours = getattr(equations, letter)
        claims.check(f"pendulum_{letter}", as_printed(claims, f"pendulum_{letter}", ours))
        claims.check(f"lagrange_{letter}", as_printed(claims, f"lagrange_{letter}", T * ours))
    for length in (10.0, 1.0):
        claims.working_on(f"double pendulum of {length:g} m")
        found = lagrange.pendulum(length, length, (QUARTER, QUARTER), 10.0)
        claims.check(f"pendulum_{length:g}", found.deviations)
        path = claims.picture(f"fig_5_4_double_pendulum_{length:g}m.png")
        draw_pendulum(path, found, f"Double pendulum, {length:g} m, from 90° and 90°")
    found = lagrange.pendulum(10.0, 10.0, (QUARTER / 2, QUARTER), 10.0)
    claims.check("pendulum_code", found.deviations)


def as_printed(claims: Claims, key: str, ours: Iterable[Any]) -> list[str]:
    """The document's texts where our terms are the same, ours where they are not."""
    return [
        text if sympy.expand(sympy.sympify(text) - entry) == 0 else str(entry)
        for text, entry in zip(claims.expected(key), ours, strict=True)
    ]


def draw_pendulum(path: Any, found: lagrange.Comparison, headline: str) -> None:
    """Absolute angles, velocities and accelerations, as in Fig. 5.4."""
    labels = ("angle [rad]", "velocity [rad/s]", "acceleration [rad/s²]")
    rows = list(zip(labels, found.ours, found.theirs, strict=True))
    figures.compared(path, headline, found.t, rows, ("φ₁", "φ₂"), AGREED)


# -- crane -----------------------------------------------------------------------------------------


def _crane(claims: Claims) -> None:
    claims.working_on("crane")
    organism = examples.crane()
    claims.check("crane_aim", organism.aim().matrix)
    tau = organism.equations("physical").tau
    claims.check("crane_equations", as_printed(claims, "crane_equations", tau))
    claims.check("crane_twists", organism.model("physical").screw.astype(int))
    found = lagrange.crane(1.0, 1.0, 5.0, np.pi / 4, 20.0)
    claims.check("crane", found.deviations)
    draw_crane(claims.picture("fig_5_8_crane.png"), found)
    others = [lagrange.crane(*numbers, 20.0).deviations for numbers in CRANES]
    claims.check("crane_others", np.max(others, axis=0))


def draw_crane(path: Any, found: lagrange.Comparison) -> None:
    """Wagon and angle, as in Fig. 5.8."""
    labels = ("position [m, rad]", "velocity [m/s, rad/s]", "acceleration [m/s², rad/s²]")
    rows = list(zip(labels, found.ours, found.theirs, strict=True))
    names = ("wagon z", "angle φ")
    figures.compared(path, "Crane, 5 m, from 45°", found.t, rows, names, AGREED)


# -- a robot that nothing holds --------------------------------------------------------------------


def _unbounded(claims: Claims) -> None:
    claims.working_on("unbounded robot")
    found = _floated(np.zeros(6))
    model = found.model
    center = model.center_of_mass(found.q)
    claims.check("unbounded_drift", np.linalg.norm(center - center[0], axis=1).max())
    spin = found.momentum[:, 5]
    claims.check("unbounded_spin", np.abs(spin - spin[0]).max())
    poses = model.forward_kinematics(found.q)
    # (5.26): modules are points of equal mass at their centers
    centers = [poses[:, model.body_index(f"m{k}"), :3, 3] for k in range(4)]
    claims.check("unbounded_center", np.abs(np.mean(centers, axis=0) - center).max())
    _draw_unbounded(claims, found, poses)
    pushed = _floated(np.array([0.03, -0.02, 0.4, 0, 0, 0]))
    center = model.center_of_mass(pushed.q)
    velocity = pushed.momentum[0, :3] / model.mass.sum()
    straight = center[0] + pushed.t[:, None] * velocity
    claims.check("unbounded_moving", np.linalg.norm(center - straight, axis=1).max())


def _floated(v: np.ndarray) -> Trajectory:
    """Ten seconds on a plane without friction, random torques in the three hinges."""
    upright = np.eye(4)
    upright[:3, :3] = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]  # hinges along z: it moves in the plane
    organism = examples.snake(4).with_base_pose(upright)
    model = organism.model("physical", base=PLANAR, gravity=(0, 0, 0))
    rng = np.random.default_rng(SEED)
    torques = TORQUE * rng.standard_normal((101, model.nv))
    torques[:, :3] = 0.0  # nothing pushes from outside

    def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return torques[int(t / HOLD + 1e-6)]

    return simulate(
        model, None, v, 10.0, controller, "DOP853", rtol=TOLERANCE, atol=TOLERANCE,
        sample_time=HOLD, record=0.05,
    )  # fmt: skip


def _draw_unbounded(claims: Claims, found: Trajectory, poses: np.ndarray) -> None:
    """Seen from above at some times, as in Fig. 5.9, and what stays."""
    drawn = figures.blank((10.0, 5.2))
    times = (0.0, 2.5, 5.0, 7.5, 10.0)
    views = figures.styled(drawn.add_subplot(2, len(times), k + 1) for k in range(len(times)))
    center = found.model.center_of_mass(found.q)
    spot = {"color": figures.SPOT, "marker": "+", "ms": 13, "mew": 2.2, "ls": "none"}
    for plane, time in zip(views, times, strict=True):
        row = int(np.argmin(np.abs(found.t - time)))
        _draw_body(plane, found.model, poses[row])
        plane.plot(center[row, 0], center[row, 1], zorder=5, **spot)
        plane.set(xlim=(-0.08, 0.38), ylim=(-0.23, 0.23), aspect="equal", title=f"{time:g} s")
        plane.set(xticks=(0, 0.15, 0.3), yticks=(-0.15, 0, 0.15))
    (lines,) = figures.styled([drawn.add_subplot(2, 1, 2)])
    drift = np.linalg.norm(center - center[0], axis=1)
    spin = np.abs(found.momentum[:, 5] - found.momentum[0, 5])
    for y, name, color in (
        (drift, "center of mass, moved [m]", figures.SPOT),
        (spin, "angular momentum, changed [N m s]", figures.PALETTE[0]),
    ):
        lines.semilogy(found.t, np.maximum(y, 1e-19), color=color, lw=1.4, label=name)
    lines.axhline(1e-9, color=figures.FAINT, lw=1.0, ls=(0, (1, 2)))
    lines.set(xlim=(0, 10), ylim=(1e-19, 1e-8))
    lines.set_xlabel("time [s]", color=figures.INK)
    figures.legend(lines, loc="center right", bbox_to_anchor=(1.0, 0.72))
    figures.title(drawn, "Four modules, random torques, nothing holds them (from above)")
    figures.save(drawn, claims.picture("fig_5_9_unbounded.png"))


def _draw_body(plane: Any, model: Model, poses: np.ndarray) -> None:
    """Both halves of each module, seen along the hinges."""
    half = 0.05  # [m] of a module's width
    spans = {"A": (-half, 0.0), "B": (0.0, half)}
    for body, T in zip(model.body_names, poses, strict=True):
        low, high = spans[body[-1]]
        corners = [(0, low, -half), (0, high, -half), (0, high, half), (0, low, half)]
        x, y = (np.array(corners) @ T[:3, :3].T + T[:3, 3])[:, :2].T
        color = figures.PALETTE[int(body[1])]
        plane.fill(x, y, facecolor=color, alpha=0.35, edgecolor=figures.INK, lw=0.6)
