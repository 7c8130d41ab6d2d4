"""Beyond the document: what each module takes for the center of mass while everything moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modurob.distributed import Balanced
from papers import figures
from papers.claims import Claims
from papers.moll2006.setting import PERIOD, Tree, shades, trees

SHOWN, LAW = 1, "momentum"  # the tree (among ours) and the law of the picture
UNTIL = 0.3  # [s] in the picture
STEP = 25  # samples between those whose exactness is looked at


class Late(NamedTuple):
    """Errors of a run, once the news has gone round.

    Attributes:
        t: (N,) [s]
        error: (N, modules) of the center that each module believes in. [m]
        bound: (N, modules) delay of the farthest news times how fast the joints move the center.
        exact: Largest distance between a belief and the center of joints that are a millisecond
            older for each docking. [m]
    """

    t: np.ndarray
    error: np.ndarray
    bound: np.ndarray
    exact: float


def reproduce(claims: Claims, runs: dict[str, list[Balanced]]) -> None:
    """All trees under the law that swings most and the one that rests."""
    claims.working_on("what modules know")
    wild = [
        judged(tree, run)
        for law in ("default", "shared")
        for tree, run in zip(trees(), runs[law], strict=True)
    ]
    claims.check("old", max(late.exact for late in wild))
    worst = 1e3 * max(late.error.max() for late in wild)
    claims.check("bound", max((late.error / late.bound).max() for late in wild),
                 f"largest error {worst:.2g} mm")  # fmt: skip
    shown = runs[LAW][SHOWN]
    late = judged(trees()[SHOWN], shown)
    far = trees()[SHOWN].apart.max(axis=1)
    ratio = late.error[:, far == far.max()].mean() / late.error[:, far == far.min()].mean()
    claims.check("root", ratio)
    _draw(claims, trees()[SHOWN], shown, late)


def judged(tree: Tree, run: Balanced) -> Late:
    """Compare what modules believe with what the joints were."""
    d = tree.diameter
    last = len(run.t) - 1  # the end of the run comes after the last round
    owner = [tree.organism.modules.index(name.split(".")[0]) for name in run.model.joint_names]
    age = tree.apart[:, owner]  # (modules, joints)
    at = np.arange(d, last, STEP)
    old = run.q[at[:, None, None] - age, np.arange(run.model.nq)]  # (N, modules, joints)
    exact = np.abs(run.model.center_of_mass(old) - run.estimates[at]).max()
    error = run.estimate_errors[d:last]
    moves = _moves(tree, run.q[:last]) * np.abs(run.v[:last])  # (N, joints)
    recent = np.lib.stride_tricks.sliding_window_view(moves.sum(axis=1), d + 1).max(axis=-1)
    bound = recent[:, None] * PERIOD * tree.apart.max(axis=1)
    return Late(run.t[d:last], error, bound, float(exact))


def _moves(tree: Tree, q: np.ndarray) -> np.ndarray:
    """(N, joints) how far the center goes with each joint, from gravity in three directions."""
    squares = 0.0
    for direction in np.eye(3):
        model = tree.organism.model("physical", gravity=-direction)
        squares = squares + model.gravity_torque(q) ** 2
    return np.sqrt(squares) / tree.model.mass.sum()


def _draw(claims: Claims, tree: Tree, run: Balanced, late: Late) -> None:
    """The center, as it is and as twenty modules believe; and how far off they are."""
    drawn, axes = figures.figure(3, size=(8.4, 7.6), sharex=True, height_ratios=(1, 1, 1.4))
    far = tree.apart.max(axis=1)
    color_of = shades(far)
    upto = run.t <= UNTIL
    for plane, column, name in zip(axes[:2, 0], (0, 1), "xy", strict=True):
        for module, d in enumerate(far):
            seen = run.estimates[upto, module, column] / run.width
            plane.plot(run.t[upto], seen, color=color_of[d], lw=0.8)
        plane.plot(run.t[upto], run.center[upto, column] / run.width, color=figures.INK, lw=1.4,
                   ls=(0, (4, 3)), label="true")  # fmt: skip
        plane.set_ylabel(f"center, {name} [widths]", color=figures.INK)
        low, high = run.center[upto, column].min(), run.center[upto, column].max()
        plane.set_ylim(
            (low - 0.2 * (high - low)) / run.width, (high + 0.2 * (high - low)) / run.width
        )
    lowest = axes[2, 0]
    shown = late.t <= UNTIL
    for d in sorted(set(far)):
        of = far == d
        lowest.semilogy(late.t[shown], 1e3 * late.error[shown][:, of], color=color_of[d], lw=0.9)
    for d, ls in ((far.min(), (0, (1, 1.5))), (far.max(), (0, (5, 2)))):
        bound = 1e3 * late.bound[shown][:, far == d][:, 0]
        lowest.semilogy(late.t[shown], bound, color=figures.SPOT, lw=1.2, ls=ls,
                        label=f"bound, {d} dockings")  # fmt: skip
    for word, d in (("root", far.min()), ("tips", far.max())):
        label = f"{word}, {d} dockings to the farthest module"
        axes[0, 0].plot([], [], color=color_of[d], lw=1.6, label=label)
    figures.legend(axes[0, 0], loc="upper right", ncols=3)
    figures.legend(lowest, loc="upper right", ncols=2)
    lowest.set_ylabel("error of each module [mm]", color=figures.INK)
    lowest.set_xlabel("time [s]", color=figures.INK)
    lowest.set_xlim(0, UNTIL)
    figures.title(drawn, f"Tree {tree.seed}, law {run.law}: the center as twenty modules know it")
    drawn.align_ylabels(list(axes[:, 0]))
    figures.save(drawn, claims.picture("estimates.png"))
