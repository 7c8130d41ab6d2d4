"""The picture of a balancing run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from modurob.distributed.balancing.result import REACHED, Balanced
from modurob.drawing import charts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (9.6, 5.6)  # inches
SMALLEST = 1e-6  # [mm] below which an error is drawn as this


def plot(run: Balanced, path: str | os.PathLike[str] | None, title: str) -> Figure:
    """See `Balanced.plot`."""
    if path is not None:
        charts.check_ending(path, "plots")
    figure = charts.blank(SIZE)
    charts.headline(figure, title or f"{run.sent.shape[1]} modules balance, law: {run.law}")
    planes = figure.subplot_mosaic(
        [["distance", "path"], ["errors", "path"]], width_ratios=[1.5, 1], height_ratios=[1, 1]
    )
    _distance(planes["distance"], run)
    _errors(planes["errors"], run)
    _path(planes["path"], run)
    if path is not None:
        charts.write(figure, path)
    return figure


def _distance(plane: Axes, run: Balanced) -> None:
    charts.style(plane)
    first = run.distance[0]
    plane.plot(run.t, run.distance, color=charts.PALETTE[0], lw=1.6)
    plane.axhline(REACHED * first, color=charts.PALETTE[1], lw=1.0, ls=(0, (4, 3)))
    note: dict[str, Any] = {"fontsize": 8.5, "color": charts.PALETTE[1], "va": "bottom"}
    plane.text(run.t[-1], REACHED * first, "a tenth of the start", ha="right", **note)
    if run.reached is not None:
        plane.axvline(run.reached, color=charts.FAINT, lw=0.8)
        near_end = run.reached > 0.6 * run.t[-1]
        plane.text(
            run.reached, 0.97 * plane.get_ylim()[1], f" {run.reached:.2f} s ",
            ha="right" if near_end else "left", va="top", fontsize=8.5, color=charts.INK,
        )  # fmt: skip
    plane.set_ylim(bottom=0)
    plane.set_xlim(run.t[0], run.t[-1])
    plane.set_ylabel("distance from the line [widths]", fontsize=9, color=charts.INK)


def _errors(plane: Axes, run: Balanced) -> None:
    charts.style(plane)
    errors = np.maximum(1e3 * run.estimate_errors, SMALLEST)
    for column, color in zip(errors.T, charts.colors(errors.shape[1]), strict=True):
        plane.plot(run.t, column, color=color, lw=0.7, alpha=0.8)
    plane.set_yscale("log")
    plane.set_xlim(run.t[0], run.t[-1])
    plane.set_xlabel("time [s]", fontsize=9, color=charts.INK)
    plane.set_ylabel("error of the center as\neach module estimates it [mm]", fontsize=9)


def _path(plane: Axes, run: Balanced) -> None:
    charts.style(plane)
    x, y = (run.center[:, :2] / run.width).T
    plane.plot(x, y, color=charts.PALETTE[0], lw=1.2)
    plane.plot(x[0], y[0], "o", color=charts.PALETTE[0], ms=6, label="start")
    plane.plot(x[-1], y[-1], "s", color=charts.PALETTE[2], ms=6, label="end")
    targets = run.target / run.width
    moves = len(np.unique(targets, axis=0)) > 1
    style = {"ls": "--", "lw": 0.9} if moves else {"marker": "+", "ms": 12, "mew": 1.6, "ls": ""}
    plane.plot(
        *(targets if moves else targets[:1]).T, color=charts.PALETTE[1], label="target", **style
    )
    plane.set_aspect("equal", adjustable="datalim")
    plane.margins(0.15)
    plane.set_xlabel("x [widths]", fontsize=9, color=charts.INK)
    plane.set_ylabel("y [widths]", fontsize=9, color=charts.INK)
    plane.set_title("center of mass from above", fontsize=9.5, color=charts.INK, loc="left")
    plane.legend(frameon=False, fontsize=8.5, labelcolor=charts.INK, loc="best")
