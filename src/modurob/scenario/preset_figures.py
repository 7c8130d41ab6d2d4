"""Figures of the presets: the runs, beside the statement of the paper and what was measured."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from modurob.distributed.balancing.result import REACHED
from modurob.drawing import charts
from modurob.drawing.charts import FAINT, INK, PALETTE
from modurob.scenario.presets import Preset, PresetFinding, Results, shares_of_the_way
from modurob.scenario.scenario import RunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, TEXT_WIDTH, PANEL, HEAD = 12.0, 3.9, 1.9, 1.0  # [inch]
LETTERS = 50  # of a line of the text
DASHES = ("-", (0, (4, 2)), (0, (1, 1.2)))  # of the first, second and third run
OVER, SAME = (0, (5, 5)), 0.01  # a line on top of another: dashes, and a part of the range
GOOD, BAD = "#1a7f37", "#c62828"
TREE_COLORS = {"default": PALETTE[1], "distance": PALETTE[5], "momentum": PALETTE[0]}


class PresetPanel(NamedTuple):
    """A quantity over time: its label, and (N, n) values of a run."""

    label: str
    values: Callable[[RunResult], np.ndarray]


PANELS: Mapping[str, PresetPanel] = {
    "position": PresetPanel("position [rad, m]", lambda r: r.trajectory.q),
    "torque": PresetPanel("torque [N m, N]", lambda r: r.trajectory.tau),
    "measured": PresetPanel("measured [rad, m]", lambda r: r.trajectory.channels["measured_q"]),
    "estimate": PresetPanel("estimated [rad, m]", lambda r: r.trajectory.channels["estimate_q"]),
    "error of the estimate": PresetPanel(
        "error of\nangles [rad, m]", lambda r: _error(r, r.trajectory.q, "estimate_q")
    ),
    "error of the rate": PresetPanel(
        "error of\nrates [rad/s, m/s]", lambda r: _error(r, r.trajectory.v, "estimate_v")
    ),
    "share": PresetPanel("error [% of the way]", lambda r: 100 * shares_of_the_way(r)),
    "norm": PresetPanel(
        "norm of the error",
        lambda r: np.linalg.norm(shares_of_the_way(r), axis=1, keepdims=True),
    ),
}


def _error(result: RunResult, true: np.ndarray, channel: str) -> np.ndarray:
    """(N, n) of an estimate; a gap after the last sample."""
    error = true - result.trajectory.channels[channel]
    error[-1] = np.nan
    return error


def figure(preset: Preset, results: Results, findings: Sequence[PresetFinding]) -> Figure:
    """Draw a preset with its statement and findings."""
    trees = preset.panels == ("distance",)
    rows = 2 if trees else len(preset.panels)
    drawn = charts.blank((WIDTH, max(HEAD + PANEL * rows * (1.5 if trees else 1.0), 5.2)))
    left, right = drawn.subfigures(
        1, 2, squeeze=False, width_ratios=(WIDTH - TEXT_WIDTH, TEXT_WIDTH)
    )[0]
    _draw_trees(left, results) if trees else _draw_joints(left, preset.panels, results)
    _write_text(right, preset, findings)
    charts.headline(drawn, f"{preset.source}: {preset.title}")
    return drawn


def image(preset: Preset, results: Results, findings: Sequence[PresetFinding]) -> bytes:
    """The figure as a PNG."""
    return charts.rendered(figure(preset, results, findings), dpi=110)


# -- curves ----------------------------------------------------------------------------------------


def _draw_joints(left: Any, panels: Sequence[str], results: Results) -> None:
    axes = left.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    model = next(iter(results.values())).trajectory.model
    joints = model.joint_names
    for plane, name in zip(axes, panels, strict=True):
        charts.style(plane)
        for result, dashes in zip(results.values(), DASHES, strict=False):
            t, values = result.trajectory.t, PANELS[name].values(result)
            for k in range(values.shape[1]):
                color = PALETTE[k] if values.shape[1] > 1 else INK
                hidden = len(results) == 1 and _coincides(values, k)
                plane.plot(t, values[:, k], color=color, lw=1.5, ls=OVER if hidden else dashes)
        if name == "position":
            _draw_wanted(plane, next(iter(results.values())))
        label = PANELS[name].label
        if not model.prismatic.any():
            label = re.sub(r", (m|N|m/s)\]", "]", label)
        plane.set_ylabel(label, color=INK, fontsize=9)
    handles = _legend(axes[0], joints, list(results))
    left.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8.5,
                labelcolor=INK)  # fmt: skip
    axes[-1].set_xlim(0, max(float(r.trajectory.t[-1]) for r in results.values()))
    axes[-1].set_xlabel("time [s]", color=INK)
    left.align_ylabels(list(axes))


def _coincides(values: np.ndarray, k: int) -> bool:
    """Return True if a line lies on one before it."""
    apart = np.abs(values[:, :k] - values[:, k : k + 1]).max(axis=0, initial=0.0)
    return bool((apart < SAME * np.ptp(values)).any())


def _draw_wanted(plane: Axes, result: RunResult) -> None:
    t = result.trajectory.t
    wanted = np.array([result.reference(x).q for x in t.tolist()])
    plane.plot(t, wanted, color=FAINT, lw=0.9, ls=(0, (3, 3)), zorder=2)


def _legend(plane: Axes, joints: Sequence[str], runs: Sequence[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=PALETTE[k], lw=2, label=name) for k, name in enumerate(joints)]
    if len(runs) > 1:
        lines += [
            Line2D([], [], color=INK, lw=1.3, ls=dashes, label=name)
            for name, dashes in zip(runs, DASHES, strict=False)
        ]
    wanted = Line2D([], [], color=FAINT, lw=0.9, ls=(0, (3, 3)), label="desired")
    return [*lines, wanted]


def _draw_trees(left: Any, results: Results) -> None:
    names = dict.fromkeys(name.split(": ")[0] for name in results)
    axes = left.subplots(2, 2, sharex=True)
    for plane, tree in zip(axes.flat, names, strict=True):
        charts.style(plane)
        for law, color in TREE_COLORS.items():
            run = results[f"{tree}: {law}"].balanced
            assert run is not None
            plane.plot(run.t, run.distance, color=color, lw=1.5, label=law)
            plane.set(ylim=(0, None), xlim=(0, run.t[-1]))
        tenth = REACHED * plane.lines[0].get_ydata()[0]
        plane.axhline(tenth, color=FAINT, lw=0.9, ls=(0, (1, 2)), label="a tenth of the start")
        plane.set_title(tree, loc="left", fontsize=9.5, color=INK)
    for plane in axes[:, 0]:
        plane.set_ylabel("distance [widths]", color=INK, fontsize=9)
    for plane in axes[-1]:
        plane.set_xlabel("time [s]", color=INK)
    left.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4,
                frameon=False, fontsize=8.5, labelcolor=INK)  # fmt: skip


# -- text ------------------------------------------------------------------------------------------


def _write_text(right: Any, preset: Preset, findings: Sequence[PresetFinding]) -> None:
    lines: list[tuple[str, str, bool]] = [("The paper states", FAINT, True)]
    lines += [(line, INK, False) for line in textwrap.wrap(preset.statement, LETTERS)]
    lines += [("", INK, False), ("Measured here", FAINT, True)]
    for finding in findings:
        color = {True: GOOD, False: BAD, None: INK}[finding.holds]
        mark = {True: "\u00a0✓", False: "\u00a0✗", None: ""}[finding.holds]
        text = f"{finding.what}: {finding.found}" if finding.found else finding.what
        words = textwrap.wrap(text + mark, LETTERS)
        lines += [(f"{'  ' if k else ''}{line}", color, False) for k, line in enumerate(words)]
    lines += [("", INK, False), ("Not printed in the paper, chosen here", FAINT, True)]
    lines += [(line, FAINT, False) for line in textwrap.wrap(preset.ours, LETTERS)]
    plane = right.subplots()
    plane.axis("off")
    for k, (text, color, heading) in enumerate(lines):
        plane.annotate(
            text, (0, 1), xycoords="axes fraction", xytext=(0, -6 - 13.5 * k), color=color,
            textcoords="offset points", va="top", fontsize=9, annotation_clip=False,
            fontweight="bold" if heading else "normal",
        )  # fmt: skip
