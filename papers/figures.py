"""Pictures of the papers, in the style of modurob's own plots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from modurob.drawing import charts
from modurob.drawing.charts import FAINT, INK, PALETTE, blank
from modurob.drawing.charts import headline as title

DPI = 110
BODY, SPOT = "#cbd2d9", "#e0245e"  # of drawn modules; of a center of mass


def styled(axes: Iterable[Axes]) -> list[Axes]:
    """Axes with a light grid and two spines."""
    found = list(axes)
    for plane in found:
        charts.style(plane)
        plane.title.set(color=INK, fontsize=10)
    return found


def figure(
    rows: int, columns: int = 1, size: tuple[float, float] = (8.4, 6.0), **options: Any
) -> tuple[Figure, np.ndarray]:
    """A figure with (rows, columns) of such axes."""
    found = blank(size)
    axes = found.subplots(rows, columns, squeeze=False, **options)
    styled(axes.flat)
    return found, axes


def legend(plane: Axes, **options: Any) -> None:
    """Names of the lines, without a frame."""
    plane.legend(frameon=False, labelcolor=INK, fontsize=9, **options)


def save(drawn: Figure, path: Path) -> None:
    """Write it; the same numbers give the same file."""
    drawn.savefig(path, dpi=DPI, metadata={"Software": None})


def compared(
    path: Path,
    headline: str,
    t: np.ndarray,
    rows: Sequence[tuple[str, np.ndarray, np.ndarray]],
    names: Sequence[str],
    limit: float,
) -> None:
    """Ours (colored) and Lagrange's solution (dashed) over time, and how far they are apart.

    Args:
        rows: For each panel a label, ours (N, n) and theirs (N, n).
        names: Of the n lines.
        limit: Drawn into the lowest panel.
    """
    drawn, axes = figure(len(rows) + 1, size=(8.4, 2.0 * len(rows) + 2.4), sharex=True)
    last = len(names) - 1
    for plane, (label, ours, theirs) in zip(axes[:, 0], rows, strict=False):
        for k, name in enumerate(names):
            plane.plot(t, ours[:, k], color=PALETTE[k], lw=2.2, label=name)
            dashes = {"ls": (0, (4, 4)), "lw": 1.1}
            plane.plot(
                t, theirs[:, k], color=INK, label="Lagrange" if k == last else None, **dashes
            )
        plane.set_ylabel(label, color=INK)
    axes[0, 0].legend(
        frameon=False, ncols=len(names) + 1, loc="lower right", bbox_to_anchor=(1.0, 0.98),
        fontsize=9, labelcolor=INK,
    )  # fmt: skip
    lowest = axes[-1, 0]
    for k, (label, ours, theirs) in enumerate(rows):
        apart = np.abs(ours - theirs).max(axis=1)
        word = label.split(" [")[0]
        lowest.semilogy(t, np.maximum(apart, 1e-17), color=PALETTE[3 + k], lw=1.2, label=word)
    lowest.axhline(limit, color=FAINT, lw=1.0, ls=(0, (1, 2)))
    lowest.set_ylabel("deviation", color=INK)
    lowest.set_ylim(1e-17, 30 * limit)
    legend(lowest, loc="lower right", ncols=3)
    lowest.set_xlabel("time [s]", color=INK)
    lowest.set_xlim(t[0], t[-1])
    title(drawn, headline)
    drawn.align_ylabels(list(axes[:, 0]))
    save(drawn, path)


def matrix(
    plane: Axes, values: np.ndarray, name: str, rows: Sequence[str], columns: Sequence[str]
) -> None:
    """A matrix of small whole numbers as a table, zeros as dots."""
    plane.grid(False)
    plane.spines[["left", "bottom"]].set_visible(False)
    plane.imshow(np.where(values == 0, np.nan, 1.0), cmap="Blues", vmin=0, vmax=6, aspect="equal")
    for (i, j), value in np.ndenumerate(values):
        text, color = (str(value), INK) if value else ("·", FAINT)
        plane.text(j, i, text, ha="center", va="center", color=color, fontsize=10)
    plane.set_xticks(range(len(columns)), columns)
    plane.set_yticks(range(len(rows)), rows)
    plane.tick_params(length=0, top=True, bottom=False, labeltop=True, labelbottom=False)
    plane.set_title(name, color=INK, fontsize=10, loc="left")
