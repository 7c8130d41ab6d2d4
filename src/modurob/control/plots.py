"""Plots of a closed loop: true, desired, measured and estimated motion of the joints."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from modurob.control.controller import Controller
from modurob.drawing import charts
from modurob.drawing.charts import FAINT, INK, MOST_NAMES
from modurob.errors import StateError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, PANEL, HEAD = 8.4, 2.0, 0.75  # [inch] figure, each panel, title and time axis
SIGMAS = 3.0  # half width of the band about the estimate
DOTS = 600  # measurements drawn at most
TIGHT = 10.0  # times as wide as its median a band may be: that of the start is wider


def plot_closed_loop(
    run: Any,
    law: Controller,
    reference: Callable[[float], Any],
    path: str | os.PathLike[str] | None = None,
    *,
    title: str = "",
) -> Figure:
    """Plot positions, velocities, torques and errors of one run.

    Positions and velocities are shown with the reference, and with measurements and the estimate
    with a band of three standard deviations, if the run recorded them; torques with their limits.

    Args:
        run: Result of `simulate` for one body on a fixed base: t, q, v, tau and channels.
        law: Its controller, for names and limits.
        reference: The function of time that it followed.
        path: Where to write it, ending with ``.png``, ``.svg`` or ``.pdf``.
        title: Above the panels.

    Returns:
        A Matplotlib figure outside of pyplot.
    """
    if path is not None:
        charts.check_ending(path, "plots")
    model = law.model
    if model.free_base or not model.joint_names or run.q.ndim != 2:
        raise StateError("a closed loop is drawn for one run of joints on a fixed base")
    units = [
        _Unit(np.flatnonzero(~model.prismatic), 180 / np.pi, "°", "N m"),
        _Unit(np.flatnonzero(model.prismatic), 1.0, "m", "N"),
    ]
    loop = _Loop(run, law, np.array([np.asarray(reference(t).q) for t in run.t.tolist()]))
    panels = [
        (draw, unit)
        for draw in (_positions, _velocities, _torques, _errors)
        for unit in units
        if len(unit.joints)
    ]
    figure = charts.blank((WIDTH, HEAD + PANEL * len(panels)))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for plane, (draw, unit) in zip(axes, panels, strict=True):
        charts.style(plane)
        plane.margins(y=0.08)
        draw(plane, loop, unit)
    axes[-1].set_xlim(run.t[0], run.t[-1])
    axes[-1].set_xlabel("time [s]", color=INK)
    figure.align_ylabels(list(axes))
    if title:
        charts.headline(figure, title)
    if path is not None:
        charts.write(figure, path)
    return figure


class _Unit(NamedTuple):
    """Joints that share a unit: how a displacement is shown, and the unit of its force."""

    joints: np.ndarray
    scale: float
    unit: str
    force: str


class _Loop:
    """A run, its reference, and a color for each joint; channels end one row before the rest."""

    def __init__(self, run: Any, law: Controller, wanted: np.ndarray) -> None:
        self.t, self.q, self.v, self.tau = run.t, run.q, run.v, run.tau
        self.channels, self.wanted = run.channels, wanted
        self.names, self.limit = law.model.joint_names, law.torque_limit
        self.colors = charts.colors(len(self.names))

    def estimate(self, plane: Axes, unit: _Unit, k: int, channel: str) -> None:
        """The estimate of a joint, with its band."""
        if channel not in self.channels:
            return
        t, shift = self.t[:-1], len(self.names) if channel == "estimate_v" else 0
        middle = unit.scale * self.channels[channel][:-1, k]
        reach = SIGMAS * unit.scale * self.channels["sigma"][:-1, shift + k]
        reach = np.minimum(reach, TIGHT * np.median(reach))
        color = self.colors[k]
        plane.fill_between(t, middle - reach, middle + reach, color=color, alpha=0.2, lw=0)
        plane.plot(t, middle, color=color, lw=1.0, ls=(0, (1, 1)))


def _positions(plane: Axes, loop: _Loop, unit: _Unit) -> None:
    named = len(unit.joints) <= MOST_NAMES
    for k in unit.joints:
        color = loop.colors[k]
        if "measured_q" in loop.channels:
            each = slice(0, -1, max(1, len(loop.t) // DOTS))
            seen = unit.scale * loop.channels["measured_q"][each, k]
            plane.plot(loop.t[each], seen, ".", color=color, ms=2.5, alpha=0.3, mec="none")
        loop.estimate(plane, unit, k, "estimate_q")
        label = loop.names[k] if named or k in (unit.joints[0], unit.joints[-1]) else None
        plane.plot(loop.t, unit.scale * loop.q[:, k], color=color, lw=1.6, label=label)
    for k in unit.joints:
        label = "reference" if k == unit.joints[0] else None
        wanted = unit.scale * loop.wanted[:, k]
        plane.plot(loop.t, wanted, color=INK, lw=0.9, ls=(0, (4, 3)), label=label)
    if "estimate_q" in loop.channels:
        plane.plot([], [], color=FAINT, lw=1.0, ls=(0, (1, 1)), label="estimate, ±3σ")
    if "measured_q" in loop.channels:
        plane.plot([], [], ".", color=FAINT, ms=4, label="measured")
        both = np.concatenate([loop.q[:, unit.joints], loop.wanted[:, unit.joints]])
        _show(plane, unit.scale * both)  # dots may lie outside: what counts are the lines
    plane.set_ylabel(f"position [{unit.unit}]", color=INK)
    charts.legend_beside(plane, min(len(unit.joints), MOST_NAMES))


def _velocities(plane: Axes, loop: _Loop, unit: _Unit) -> None:
    for k in unit.joints:
        loop.estimate(plane, unit, k, "estimate_v")
        plane.plot(loop.t, unit.scale * loop.v[:, k], color=loop.colors[k], lw=1.4)
    plane.set_ylabel(f"velocity [{unit.unit}/s]", color=INK)


def _torques(plane: Axes, loop: _Loop, unit: _Unit) -> None:
    for k in unit.joints:
        color = loop.colors[k]
        plane.plot(loop.t[:-1], loop.tau[:-1, k], color=color, lw=1.2, drawstyle="steps-post")
        if np.isfinite(loop.limit[k]):
            for side in (-1.0, 1.0):
                plane.axhline(float(side * loop.limit[k]), color=color, lw=0.9, ls=(0, (1, 2)))
    _show(plane, loop.tau[:-1][:, unit.joints])  # limits far away must not make them flat
    word = "torque" if unit.force == "N m" else "force"
    plane.set_ylabel(f"{word} [{unit.force}]", color=INK)


def _errors(plane: Axes, loop: _Loop, unit: _Unit) -> None:
    for k in unit.joints:
        error = unit.scale * (loop.q[:, k] - loop.wanted[:, k])
        plane.plot(loop.t, error, color=loop.colors[k], lw=1.4)
    plane.axhline(0.0, color=FAINT, lw=0.8, zorder=1)
    plane.set_ylabel(f"error [{unit.unit}]", color=INK)


def _show(plane: Axes, values: np.ndarray) -> None:
    """Choose the range of the axis by some of its curves."""
    low, high = float(values.min()), float(values.max())
    room = 0.12 * max(high - low, 1e-9)
    plane.set_ylim(low - room, high + room)
