"""Sections IV and V: where a joint goes, and four trees under four laws; Fig. 2, 3 and 4."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from matplotlib.image import imread

from modurob.distributed import Balanced, LockStep, balance
from modurob.distributed.balancing import LAWS
from modurob.distributed.balancing.closest import circle_of, turns
from modurob.distributed.balancing.knowledge import InputReader
from modurob.distributed.balancing.laws import Joints, displacements
from modurob.drawing import picture
from papers import figures
from papers.claims import Claims
from papers.moll2006 import estimates
from papers.moll2006.setting import DURATION, LEFT, PAPERS_LAWS, PERIOD, TENTH, trees

ANGLES = 91  # tried over the range of a joint
UP = np.array([0.0, 0.0, 1.0])
COLORS: dict[str, str] = dict(zip(LAWS, (*figures.PALETTE[4:6], *figures.PALETTE[:2]), strict=True))
Runs = dict[str, list[Balanced]]  # by law, a run for each tree


def reproduce(claims: Claims) -> None:
    """One joint alone, then all of them."""
    claims.working_on("what a joint does")
    starts = [np.linalg.norm(t.model.center_of_mass(t.model.neutral())[:2]) for t in trees()]
    width = trees()[0].organism.kind("m0").size
    note = _listed("they start", [float(start / width) for start in starts], "widths off")
    claims.check("trees", [tree.seed for tree in trees()], note)
    sizes = [[len(t.organism), t.model.nv, t.diameter] for t in trees()]
    claims.check("sizes", sizes[0] if sizes.count(sizes[0]) == len(sizes) else sizes)
    _one_joint(claims)
    runs: Runs = {}
    for law in LAWS:
        claims.working_on(f"law {law}")
        runs[law] = [
            balance(tree.organism, law, duration=DURATION, record=PERIOD) for tree in trees()
        ]
    _judge(claims, runs)
    _draw_runs(claims, runs)
    _draw_trees(claims, runs["shared"])
    estimates.reproduce(claims, runs)


# -- a joint ---------------------------------------------------------------------------------------


def _one_joint(claims: Claims) -> None:
    """The displacement that a joint chooses, against a search over its whole range."""
    tree, network = trees()[0], LockStep(trees()[0].organism)
    order = np.array([tree.model.joint_names.index(name) for name in network.joint_names])
    q, lower, upper = tree.configuration(), tree.model.lower[order], tree.model.upper[order]
    network.measure(q[order])
    for _ in range(2 * tree.diameter):
        network.round()
    still, line = np.zeros(len(order)), np.zeros((len(order), 2))
    here = Joints(q[order], still, lower, upper, still)
    moves = displacements(InputReader(network).read(), here, line)
    tried = np.tile(q, (len(order), ANGLES + 1, 1))
    for k, column in enumerate(order):
        tried[k, :-1, column] = np.linspace(lower[k], upper[k], ANGLES)
        tried[k, -1, column] += moves[k]
    away = np.linalg.norm(tree.model.center_of_mass(tried)[..., :2], axis=-1)
    claims.check("closest", (away[:, -1] - away[:, :-1].min(axis=1)).max())
    on_axis = circle_of(UP[[1, 2, 0]], np.zeros(3), 0.3 * UP[[1, 2, 0]])  # far center on the axis
    on_line = circle_of(UP, np.zeros(3), np.array([0.2, 0.1, 0.4]))  # axis on the line
    both = circle_of(np.array([0.0, 1.0, 0.0]), UP, UP + 0.3 * UP[[2, 0, 1]])  # two are as good
    turned = [turns(circle, np.zeros(3), UP) for circle in (on_axis, on_line, both)]
    lowest = both.at(turned[2])[2]
    claims.check("special", [float(turned[0]), float(turned[1]), round(float(lowest), 12)])


# -- all joints ------------------------------------------------------------------------------------


def _judge(claims: Claims, runs: Runs) -> None:
    """Who gets there, who is first, and what is left."""
    crossed = {law: [run.first_reached for run in each] for law, each in runs.items()}
    left = {law: [_left(run) for run in each] for law, each in runs.items()}
    for law in LAWS:
        claims.check(
            law, sum(t is not None for t in crossed[law]), _listed("first at", crossed[law], "s")
        )
    stay = {law: sum(run.reached is not None for run in each) for law, each in runs.items()}
    others = ", ".join(f"{law} {stay[law]}" for law in PAPERS_LAWS)
    claims.check("stays", stay["shared"], f"the other laws: {others}")
    firsts = [
        min(PAPERS_LAWS, key=lambda law: np.inf if (t := crossed[law][k]) is None else t)
        for k in range(len(trees()))
    ]
    claims.check("winners", len(set(firsts)), ", ".join(firsts))
    smallest = [min(PAPERS_LAWS, key=lambda law: left[law][k]) for k in range(len(trees()))]
    medians = [f"{law} {100 * float(np.median(left[law])):.2g}" for law in LAWS]
    claims.check("left", smallest.count("momentum"), f"medians [%]: {', '.join(medians)}")
    ratios = [min(left[law][k] for law in PAPERS_LAWS) / left["shared"][k] for k in range(4)]
    claims.check("better", min(ratios), _listed("by", ratios, "times"))
    per_tree = runs["shared"][0].messages
    claims.check("traffic", per_tree / (DURATION / PERIOD), "all laws and trees alike")


def _left(run: Balanced) -> float:
    """Mean distance at the end, as a share of the first."""
    return float(run.distance[run.t > DURATION - LEFT].mean() / run.distance[0])


def _listed(word: str, values: Sequence[float | None], unit: str) -> str:
    texts = ["never" if x is None else f"{x:.3g}" for x in values]
    return f"{word} {', '.join(texts)} {unit}"


# -- pictures --------------------------------------------------------------------------------------


def _draw_runs(claims: Claims, runs: Runs) -> None:
    """Fig. 4: distance from the line over time, a panel for each tree."""
    drawn, axes = figures.figure(2, 2, size=(9.6, 6.2), sharex=True)
    for k, (plane, tree) in enumerate(zip(axes.flat, trees(), strict=True)):
        for law, each in runs.items():
            run, thick = each[k], 2.4 if law == "shared" else 1.3
            plane.plot(run.t, run.distance, color=COLORS[law], lw=thick, label=law)
        tenth = TENTH * runs["shared"][k].distance[0]
        style = {"color": figures.FAINT, "lw": 1.0, "ls": (0, (1, 2))}
        plane.axhline(tenth, label="a tenth of the start", **style)
        plane.set(xlim=(0, DURATION), ylim=(0, None))
        plane.set_title(f"tree {tree.seed}", loc="left", fontsize=10, color=figures.INK)
    for plane in axes[:, 0]:
        plane.set_ylabel("distance [widths]", color=figures.INK)
    for plane in axes[-1]:
        plane.set_xlabel("time [s]", color=figures.INK)
    drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5,
                 frameon=False, fontsize=9, labelcolor=figures.INK)  # fmt: skip
    figures.title(drawn, "Distance of the center of mass from the support line")
    figures.save(drawn, claims.picture("fig_4_distance.png"))


def _draw_trees(claims: Claims, runs: list[Balanced]) -> None:
    """Fig. 3: the trees, before and after."""
    drawn = figures.blank((11.0, 5.6))
    axes = drawn.subplots(2, len(runs))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "tree.png"
        for column, (tree, run) in zip(axes.T, zip(trees(), runs, strict=True), strict=True):
            for plane, row, when in zip(column, (0, -1), ("start", f"{DURATION} s"), strict=True):
                picture(tree.organism, file, q=run.q[row], size=340, labels=False, axes=False)
                plane.imshow(imread(file))
                plane.axis("off")
                plane.set_anchor("N")  # so that the titles stand in a row
                text = f"tree {tree.seed}, {when}: {run.distance[row]:.2f} widths"
                plane.set_title(text, fontsize=9.5, color=figures.INK)
    figures.title(drawn, "Four random trees under the shared law: center of mass off the line by")
    figures.save(drawn, claims.picture("fig_3_trees.png"))
