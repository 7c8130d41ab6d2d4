"""Sections IV and V: where a joint goes, and four trees under four laws; Fig. 2, 3 and 4."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from matplotlib.image import imread

from modurob.distributed import Balanced, LockStep
from modurob.distributed.balancing.closest import circle_of, turns
from modurob.distributed.balancing.knowledge import InputReader
from modurob.distributed.balancing.laws import Joints, displacements
from modurob.drawing import picture
from modurob.scenario import preset_figures
from modurob.scenario.presets import (
    PRESETS,
    TREE_LAWS,
    TREE_STEP_S,
    tree_outcome,
    tree_run,
    tree_sentences,
)
from modurob.scenario.scenario import RunResult, Scenario
from papers import figures
from papers.claims import Claims
from papers.moll2006 import estimates, scan
from papers.moll2006.setting import DURATION, LEFT, PERIOD, trees

ANGLES = 91  # tried over the range of a joint
UP = np.array([0.0, 0.0, 1.0])
PRESET = PRESETS["moll2006-fig4"]
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
    claims.working_on("four trees under three laws")
    results = PRESET.run(executor=claims.executor)
    runs: Runs = {
        law: [_balanced(results[f"tree {tree.seed}: {law}"]) for tree in trees()]
        for law in TREE_LAWS
    }
    claims.working_on("law shared")
    shared = [tree_run(tree.seed, "shared", duration=DURATION, dt=TREE_STEP_S) for tree in trees()]
    runs["shared"] = [_balanced(each) for each in claims.executor.map(Scenario.run, shared)]
    _judge(claims, runs)
    _judge_regions(claims, runs)
    drawn = preset_figures.figure(PRESET, results, PRESET.judge(results))
    figures.save(drawn, claims.picture("fig_4_distance.png"))
    scan.draw(claims.picture("fig_4_regions.png"))
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
    """Sentences of section V at the friction of the preset, and the law beyond it."""
    outcomes = {law: [tree_outcome(run) for run in runs[law]] for law in TREE_LAWS}
    times = {law: [x.settled for x in each] for law, each in outcomes.items()}
    for law in TREE_LAWS:
        note = _listed("from", times[law], "s on")
        claims.check(law, sum(time is not None for time in times[law]), note)
    rests = [x.rest for x in outcomes["momentum"]]
    claims.check("rest", max(rests), _listed("shares", rests, "of the first distance"))
    claims.check("sentences", list(tree_sentences(outcomes).values()))
    stay = [run.reached for run in runs["shared"]]
    claims.check("shared", sum(time is not None for time in stay), _listed("from", stay, "s on"))
    left = [_left(run) for run in runs["shared"]]
    claims.check("left", max(left), _listed("shares", left, "of the first distance"))
    per_tree = runs["shared"][0].messages
    claims.check("traffic", per_tree / (DURATION / PERIOD), "all laws and trees alike")


def _judge_regions(claims: Claims, runs: Runs) -> None:
    """The scan is of this code, and the region of each sentence."""
    claims.working_on("little friction")
    kept = scan.outcomes()[scan.Cell("widths", 2.0)]
    apart = [
        abs(tree_outcome(run).rest - known.rest)
        for law in TREE_LAWS
        for run, known in zip(runs[law], kept[law], strict=True)
    ]
    claims.check("scan", max(apart))
    claims.check("regions", list(scan.regions().values()))
    wild = scan.run(trees()[0].seed, "default", scan.Cell("widths", min(scan.FRICTIONS)))
    claims.check("wild", wild.speed, f"distance at the end: {wild.rest:.2g} of the first")


def _balanced(result: RunResult) -> Balanced:
    assert result.balanced is not None
    return result.balanced


def _left(run: Balanced) -> float:
    """Mean distance at the end, as a share of the first."""
    return float(run.distance[run.t > run.t[-1] - LEFT].mean() / run.distance[0])


def _listed(word: str, values: Sequence[float | None], unit: str) -> str:
    texts = ["never" if x is None else f"{x:.3g}" for x in values]
    return f"{word} {', '.join(texts)} {unit}"


# -- pictures --------------------------------------------------------------------------------------


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
