"""Plots of trajectories over time, all in one style."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from modurob.drawing import charts
from modurob.drawing.charts import FAINT, INK, MOST_NAMES
from modurob.errors import StateError, UnknownNameError, choices
from modurob.sim.body_trajectory import BodyTrajectory
from modurob.sim.output.export import (
    MOMENTUM,
    QUANTITIES,
    ColumnLabel,
    channel_columns,
    columns,
    refuse_batch,
)
from modurob.sim.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, PANEL, HEAD = 8.4, 2.05, 0.75  # inches: figure, each panel, title and time axis
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
TITLES = {("q", "1"): "orientation", ("momentum", "N m s"): "angular momentum"}
ALIASES = {word: letter for letter, word in QUANTITIES.items()}


class PlotLine(NamedTuple):
    """A line of a panel; the same name in several parts is one line with gaps."""

    name: str
    t: np.ndarray
    y: np.ndarray
    group: str = ""  # lines of one group share a color and differ by their dashes; empty for none


class PlotPanel(NamedTuple):
    """Lines that share a unit."""

    title: str
    unit: str
    lines: list[PlotLine]


def plot(
    trajectory: Trajectory, quantities: Sequence[str], path: str | os.PathLike[str] | None,
    joints: Sequence[str] | None, degrees: bool, title: str, overlay: Trajectory | None = None,
) -> Figure:  # fmt: skip
    """See `Trajectory.plot`."""
    if path is not None:
        charts.check_ending(path, "plots")
    for part in trajectory.parts:
        refuse_batch(part, "a plot")
    wanted = [ALIASES.get(name, name) for name in quantities or _default(trajectory)]
    panels = [p for name in wanted for p in _panels(trajectory, name, joints, degrees)]
    if not panels:
        raise StateError("there is nothing to plot: the body has no joints")
    figure = _figure(trajectory, panels, title)
    if overlay is not None:
        over = [p for name in wanted for p in _panels(overlay, name, joints, degrees)]
        if [(p.title, p.unit) for p in over] != [(p.title, p.unit) for p in panels]:
            raise StateError("overlay must be a run of the same body")
        for plane, panel in zip(figure.axes, over, strict=True):
            for line in panel.lines:
                plane.plot(line.t, line.y, color=INK, lw=0.8, ls=DASHES[1])
    if path is not None:
        charts.write(figure, path)
    return figure


def _default(trajectory: Trajectory) -> tuple[str, ...]:
    driven = any(part.tau.any() for part in trajectory.parts)
    return ("q", "v", "tau") if driven else ("q", "v", "energy")


# -- what to draw ----------------------------------------------------------------------------------


def _panels(
    trajectory: Trajectory, quantity: str, joints: Sequence[str] | None, degrees: bool
) -> list[PlotPanel]:
    """One panel for each unit of a quantity."""
    found: dict[str, list[PlotLine]] = {}
    several = len({part.name for part in trajectory.parts}) > 1
    for part in trajectory.parts:
        for (name, unit), y in _lines(part, quantity, trajectory):
            is_joint = name in part.model.joint_names
            if joints is not None and is_joint and name not in joints:
                continue
            if several and quantity == "energy" and name != "total":
                continue
            if degrees and unit.startswith("rad"):
                unit, y = "°" + unit[3:], np.rad2deg(y)
            if several and not is_joint:
                line = PlotLine(f"{part.name} {name.removeprefix('base ')}", part.t, y, part.name)
            else:
                line = PlotLine(name, part.t, y)
            found.setdefault(unit, []).append(line)
    words = QUANTITIES.get(quantity, quantity.replace("_", " "))
    return [
        PlotPanel(TITLES.get((quantity, unit), words), unit, lines) for unit, lines in found.items()
    ]


def _lines(
    part: BodyTrajectory, quantity: str, trajectory: Trajectory
) -> list[tuple[ColumnLabel, np.ndarray]]:
    if quantity in QUANTITIES:
        values = getattr(part, quantity)
        return list(zip(columns(part.model, quantity), values.T, strict=True))
    if quantity == "energy":
        names = ("kinetic", "potential", "total")
        rows = (part.kinetic_energy, part.potential_energy, part.energy)
        return [(ColumnLabel(name, "J"), y) for name, y in zip(names, rows, strict=True)]
    if quantity == "momentum":
        return list(zip(MOMENTUM, part.momentum.T, strict=True))
    if quantity in part.channels:
        values = part.channels[quantity]
        flat = values.reshape(len(part.t), -1).T
        return list(zip(channel_columns(part.model, quantity, values), flat, strict=True))
    channels = [name for p in trajectory.parts for name in p.channels]
    if quantity in channels:
        return []
    known = [*QUANTITIES, *ALIASES, "energy", "momentum", *dict.fromkeys(channels)]
    raise UnknownNameError(f"nothing called {quantity!r} was recorded: there are {choices(known)}")


# -- drawing ---------------------------------------------------------------------------------------


def _figure(trajectory: Trajectory, panels: list[PlotPanel], title: str) -> Figure:
    figure = charts.blank((WIDTH, HEAD + PANEL * len(panels)))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    colors = _colors(panels)
    before: list[str] = []
    for plane, panel in zip(axes, panels, strict=True):
        names = list(dict.fromkeys(line.name for line in panel.lines))
        # panels with the same lines share the legend of the first
        _draw(plane, panel, colors, named=names not in (before, [panel.title]))
        before = names
        for entry in trajectory.audit:
            plane.axvline(entry.time, color=FAINT, lw=0.8, ls=(0, (4, 3)), zorder=1)
    begin = min(part.t[0] for part in trajectory.parts)
    end = max(part.t[-1] for part in trajectory.parts)
    axes[-1].set_xlim(begin, end)
    axes[-1].set_xlabel("time [s]", color=INK)
    _name_events(axes[0], trajectory, end - begin)
    if title:
        charts.headline(figure, title)
    figure.align_ylabels(list(axes))
    return figure


def _colors(panels: list[PlotPanel]) -> dict[str, Any]:
    """One color for each name or group, the same in all panels."""
    found: dict[str, Any] = {}
    for panel in panels:
        keys = list(dict.fromkeys(line.group or line.name for line in panel.lines))
        for key, color in zip(keys, charts.colors(len(keys)), strict=True):
            found.setdefault(key, color)
    return found


def _draw(plane: Axes, panel: PlotPanel, colors: dict[str, Any], named: bool) -> None:
    names = list(dict.fromkeys(line.name for line in panel.lines))
    shown = set(names if len(names) <= MOST_NAMES else [names[0], names[-1]])
    members: dict[str, list[str]] = {}
    for line in panel.lines:
        label = line.name if line.name in shown else None
        shown.discard(line.name)
        group = members.setdefault(line.group, [])
        group += [] if line.name in group else [line.name]
        dash = DASHES[group.index(line.name) % len(DASHES)] if line.group else "-"
        plane.plot(
            line.t, line.y, color=colors[line.group or line.name], lw=1.5, ls=dash, label=label,
            solid_capstyle="round",
        )  # fmt: skip
    unit = f" [{panel.unit}]" if panel.unit and panel.unit != "1" else ""
    plane.set_ylabel(panel.title + unit, color=INK)
    charts.style(plane)
    plane.margins(y=0.08)
    plane.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
    plane.yaxis.get_offset_text().set(color=INK, fontsize=8)
    _keep_flat_lines_flat(plane, panel)
    if named:
        few = len(names) <= MOST_NAMES
        charts.legend_beside(plane, len(names), None if few else f"{len(names)} lines")


def _keep_flat_lines_flat(plane: Axes, panel: PlotPanel) -> None:
    """Rounding errors of a conserved quantity must not fill the panel."""
    values = np.concatenate([line.y[np.isfinite(line.y)] for line in panel.lines])
    if not len(values):
        return
    middle, reach = float(np.mean(values)), float(np.ptp(values))
    least = 1e-6 * max(abs(middle), float(np.abs(values).max()), 1e-6)
    if reach < least:
        half = max(abs(middle), 1e-3)
        plane.set_ylim(middle - half, middle + half)


def _name_events(plane: Axes, trajectory: Trajectory, length: float) -> None:
    """Words above the lines of the events; where they would overlap, only the first."""
    last = -np.inf
    for entry in trajectory.audit:
        words = entry.what.split(" (")[0].replace("undock", "−").replace("dock", "+")
        room = 0.013 * length * len(words)
        if entry.time - last < room:
            continue
        last = entry.time
        plane.annotate(
            words, (entry.time, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 2),
            textcoords="offset points", ha="center", va="bottom", fontsize=8, color=FAINT,
        )  # fmt: skip
