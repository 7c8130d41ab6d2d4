"""Plots of a gait over time, and of its synchronization."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from modurob.checks import positive
from modurob.drawing import charts
from modurob.drawing.charts import INK, MOST_NAMES, PALETTE
from modurob.errors import StateError
from modurob.gaits.base import Gait, Synchronizing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 2000  # of each line
WIDTH, PANEL, LOWER, HEAD = 8.4, 2.3, 1.5, 0.75  # inches: figure, panels, title and time axis


class PreviewPanel(NamedTuple):
    """Lines that share a scale."""

    label: str
    lines: Mapping[str, np.ndarray]
    colors: Sequence[Any]
    measure: bool = False
    logarithmic: bool = False


def preview(
    gait: Gait,
    path: str | os.PathLike[str] | None = None,
    *,
    axes: Axes | Sequence[Axes] | None = None,
    duration: float = 10.0,
    title: str | None = None,
) -> Figure:
    """Plot the joint positions of a gait and, if its joints synchronize, a measure of that.

    Args:
        path: A ``.png``, ``.svg`` or ``.pdf`` file to write; none by default.
        axes: Matplotlib axes to draw into instead of a new figure, from the top: joints that turn,
            joints that slide, synchronization. If there are fewer, the first panels are drawn.
        duration: Seconds to show, from t = 0.
        title: By default the name of the gait and its period.
    """
    if path is not None:
        charts.check_ending(path, "previews")
    if not gait.joints:
        raise StateError("there is nothing to preview: the gait has no joints")
    t = np.linspace(0.0, positive("duration", duration, "seconds"), POINTS)
    panels = list(_panels(gait, t))
    given = [] if axes is None else list(axes) if isinstance(axes, Sequence) else [axes]
    planes = given or _planes(panels)
    for plane, panel in zip(planes, panels, strict=False):
        _draw(plane, panel, t)
    shown = planes[: len(panels)]
    shown[-1].set_xlabel("time [s]", color=INK)
    planes[0].set_title(
        _title(gait) if title is None else title,
        loc="left", fontsize=11, fontweight="bold", color=INK,
    )  # fmt: skip
    figure = planes[0].figure.get_figure(root=True)
    assert figure is not None
    if path is not None:
        charts.write(figure, path)
    return figure


def _title(gait: Gait) -> str:
    rhythm = "no period" if gait.period is None else f"period {gait.period:.3g} s"
    return f"{gait.name}, {rhythm}"


def _panels(gait: Gait, t: np.ndarray) -> Iterator[PreviewPanel]:
    q = gait(t).q
    colors = charts.colors(len(gait.joints))
    if gait.prismatic is None:
        groups = [("joints [rad, m]", range(len(gait.joints)))]
    else:
        turning, sliding = (np.flatnonzero(gait.prismatic == kind) for kind in (False, True))
        groups = [("joints [rad]", turning), ("joints [m]", sliding)]
    for label, columns in groups:
        if len(columns):
            lines = {gait.joints[k]: q[:, k] for k in columns}
            yield PreviewPanel(label, lines, [colors[k] for k in columns])
    if isinstance(gait, Synchronizing):
        measures = gait.synchrony(t)
        label = "difference" if gait.logarithmic else "synchrony"
        yield PreviewPanel(label, measures, [INK, *PALETTE[1:]], True, gait.logarithmic)


def _planes(panels: list[PreviewPanel]) -> list[Axes]:
    """The axes of a new figure outside of pyplot, one below the other."""
    heights = [LOWER if panel.measure else PANEL for panel in panels]
    figure = charts.blank((WIDTH, HEAD + sum(heights)))
    planes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)[
        :, 0
    ]
    return list(planes)


def _draw(plane: Axes, panel: PreviewPanel, t: np.ndarray) -> None:
    from matplotlib.ticker import LogLocator

    names = list(panel.lines)
    many = len(names) > MOST_NAMES
    for (name, y), color in zip(panel.lines.items(), panel.colors, strict=False):
        label = name if not many or name in (names[0], names[-1]) else None
        dash = (0, (4, 3)) if name == "predicted" else "-"
        plane.plot(t, y, color=color, lw=1.5, ls=dash, label=label, solid_capstyle="round")
    plane.set_ylabel(panel.label, color=INK)
    plane.set_xlim(t[0], t[-1])
    plane.margins(y=0.08)
    if panel.logarithmic:
        plane.set_yscale("log")
        least = min(float(np.min(y)) for y in panel.lines.values())
        plane.set_ylim(min(least / 3, 0.03), 10.0)
        plane.yaxis.set_major_locator(LogLocator(numticks=6))
        plane.minorticks_off()
    elif panel.measure:
        plane.set_ylim(0.0, 1.08)
        plane.set_yticks([0.0, 0.5, 1.0])
    charts.style(plane)
    charts.legend_beside(plane, len(names), f"{len(names)} joints" if many else None)
