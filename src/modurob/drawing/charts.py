"""Style of all charts: ink, colors, axes, legends, files."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modurob.errors import FileError, choices
from modurob.modules.files import checked_target, write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, GRID = "#1f2933", "#7b8794", "#e4e7eb"
# Okabe and Ito's colors, distinct for most eyes; yellow last, it is faint on white
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5c4b8a", "#8c8c2a")
MOST_NAMES = 14  # of a legend; more lines than that get a color scale
DPI = 150
DATELESS = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def blank(size: tuple[float, float], layout: Any = "constrained") -> Figure:
    """Return a white figure [inch] outside of pyplot, which a notebook shows by itself."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = Figure(figsize=size, facecolor="white", layout=layout)
    FigureCanvasAgg(found)
    # notebooks know figures of pyplot only
    found._repr_png_ = partial(_png, found)  # pyright: ignore[reportAttributeAccessIssue]
    return found


def _png(figure: Figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    return stream.getvalue()


def colors(count: int) -> list[Any]:
    """A color for each of so many lines: the palette, or a scale where it does not reach."""
    from matplotlib import colormaps

    if count <= len(PALETTE):
        return list(PALETTE[:count])
    return [colormaps["viridis"](0.92 * k / (count - 1)) for k in range(count)]


def style(plane: Axes) -> None:
    """A light grid and two spines."""
    plane.grid(True, color=GRID, lw=0.8)
    plane.set_axisbelow(True)
    plane.spines[["top", "right"]].set_visible(False)
    plane.spines[["left", "bottom"]].set_color(FAINT)
    plane.tick_params(colors=INK, labelsize=9, color=FAINT)


def headline(figure: Figure, text: str) -> None:
    """A title at the left."""
    figure.suptitle(text, x=0.01, ha="left", fontsize=12, fontweight="bold", color=INK)


def legend_beside(plane: Axes, count: int, title: str | None = None) -> None:
    """Names of so many lines, right of the axes."""
    plane.legend(
        loc="upper left", bbox_to_anchor=(1.005, 1.02), frameon=False, labelcolor=INK,
        fontsize=8.5 if count <= 8 else 6.5, handlelength=1.9, borderaxespad=0.2,
        title=title, title_fontsize=8.5,
    )  # fmt: skip


def check_ending(
    path: str | os.PathLike[str], what: str, endings: Iterable[str] = tuple(DATELESS)
) -> str:
    """Return the ending of a path, or raise an error that lists those of `what`, in the plural."""
    ending = checked_target(path).suffix
    if ending.lower() not in endings:
        raise FileError(f"{path}: unknown ending {ending!r}; {what} are {choices(endings)}")
    return ending.lower()


def rendered(figure: Figure, ending: str = ".png", dpi: int = DPI) -> bytes:
    """The file of a figure; the same numbers give the same bytes."""
    stream = io.BytesIO()
    figure.savefig(stream, format=ending[1:], dpi=dpi, metadata=DATELESS[ending])
    return stream.getvalue()


def write(figure: Figure, path: str | os.PathLike[str], dpi: int = DPI) -> None:
    """Write a figure by the ending of the path."""
    write_file(path, rendered(figure, Path(path).suffix.lower(), dpi))
