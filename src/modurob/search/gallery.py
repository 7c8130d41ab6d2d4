"""Gallery of a search: winners as pictures, films and files, checked in MuJoCo, on one page."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from modurob.checks import whole
from modurob.drawing import charts, picture
from modurob.modules.files import checked_path, finite, write_document, write_file
from modurob.scenario.gait_files import GaitRecord
from modurob.search.evolution import SearchResult
from modurob.search.strategies import Individual, strategy_class
from modurob.search.winners import mujoco_score, replay, scenario_of

CHART, ARCHIVE, PAGE, WINNERS = "progress.png", "archive.png", "index.html", "winners.json"
FPS, FILM_PX, PICTURE_PX = 10.0, 640, 500
STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;
color:#1f2933}h1,h2{line-height:1.2}img{max-width:100%}code{font-size:.85em;overflow-wrap:anywhere}
td,th{border-bottom:1px solid #d5dbe1;padding:.2rem .8rem .2rem 0;text-align:left;font-weight:400}
th{white-space:nowrap;vertical-align:top}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(30rem,100%),1fr));gap:1.5rem}
.card{border:1px solid #d5dbe1;border-radius:.5rem;padding:1rem}.card h2{margin:0 0 .5rem}
.card img{width:100%;max-height:22rem;object-fit:contain}
.body{display:flex;flex-wrap:wrap;gap:1rem;align-items:center}.body figure{flex:1 1 10rem}
.body table{flex:2 1 14rem}figure{margin:0 0 .5rem;font-size:.85em;color:#52606d}"""


class Winner(NamedTuple):
    """A body of a gallery.

    Attributes:
        name: Of its files.
        score: In the search.
        mujoco: Score of the same run in MuJoCo; NaN without one.
        note: The reason for no score in MuJoCo; empty otherwise.
        modules, joints: Their numbers.
        mass: With a payload. [kg]
        frequency: Of the gait. [Hz]
        generation: In which it was found, from 0.
        files: Names in the folder.
    """

    name: str
    score: float
    mujoco: float
    note: str
    modules: int
    joints: int
    mass: float
    frequency: float
    generation: int
    files: tuple[str, ...]

    @property
    def difference(self) -> float:
        """Score in MuJoCo less that in the search, over the latter; NaN without one."""
        return (self.mujoco - self.score) / abs(self.score) if self.score else math.nan


def write_gallery(
    result: SearchResult,
    folder: str | os.PathLike[str],
    *,
    bodies: int = 4,
    films: bool = True,
    progress: Callable[[float], Any] | None = None,
) -> list[Winner]:
    """Write the best bodies of a search into a folder, with a page that shows them.

    Each body has its organism, its gait and its scenario as files that `modurob walk` and
    `modurob run` read, a picture and a film; each is run again in MuJoCo.

    Args:
        result: Of `evolve`.
        folder: That is there.
        bodies: How many; of those that differ in the gait alone, the best.
        films: Whether to make films.
        progress: Called with the share done.
    """
    home, found = checked_path(folder), []
    chosen = _different(result.best, whole("bodies", bodies, 0))
    for k, individual in enumerate(chosen):
        found.append(_write_winner(result, individual, f"winner-{k + 1}", home, films))
        if progress is not None:
            progress((k + 1) / len(chosen))
    draw_progress(result, home / CHART)
    measured = len(strategy_class(result.record.settings["strategy"]).measures) == 2
    if measured:
        draw_archive(result, home / ARCHIVE)
    rows = [finite({**one._asdict(), "difference": one.difference}) for one in found]
    write_document(home / WINNERS, {"task": result.task.name, "winners": rows})
    write_file(home / PAGE, _page(result, found, measured).encode())
    return found


def _different(individuals: Sequence[Individual], count: int) -> list[Individual]:
    """The best individuals with different bodies."""
    bodies: dict[str, Individual] = {}
    for one in individuals:
        if len(bodies) < count:
            bodies.setdefault(one.genotype.canonical(gait=False), one)
    return list(bodies.values())


def _write_winner(
    result: SearchResult, individual: Individual, name: str, home: Path, films: bool
) -> Winner:
    task, genotype = result.task, individual.genotype
    scenario = scenario_of(genotype, task, f"{task.name} {name}")
    organism, model = scenario.organism, scenario.model()
    files = [f"{name}.json", f"{name}-gait.json", f"{name}-scenario.json", f"{name}.png"]
    organism.save(home / files[0])
    GaitRecord.of(scenario).save(home / files[1])
    scenario.save(home / files[2])
    picture(organism, home / files[3], hinges=scenario.hinges, labels=False, size=PICTURE_PX)
    if films:
        files.append(f"{name}.gif")
        replay(scenario, task).animate(home / files[4], fps=FPS, size=FILM_PX)
    mujoco, note = mujoco_score(scenario, task)
    return Winner(
        name, individual.score, mujoco, note, len(organism), len(model.joint_names),
        float(np.sum(model.mass)), genotype.frequency, individual.generation, tuple(files),
    )  # fmt: skip


# -- charts ----------------------------------------------------------------------------------------


def draw_progress(result: SearchResult, path: str | os.PathLike[str]) -> None:
    """Draw scores over generations, into a file."""
    figure = charts.blank((7, 3.6))
    plane = figure.add_subplot()
    charts.style(plane)
    numbers = range(1, len(result.history) + 1)
    for (label, field, width), color in zip(
        # wide below narrow: the two best often have the same value
        (("best so far", "leader", 4.0), ("best of a generation", "best", 1.5),
         ("median", "median", 1.5)),
        charts.colors(3),
        strict=True,
    ):  # fmt: skip
        values = [getattr(entry, field) for entry in result.history]
        plane.plot(
            numbers, [math.nan if x is None else x for x in values], color=color, label=label,
            marker="o", ms=width + 1.5, lw=width,
        )  # fmt: skip
    plane.set_xlim(0.5, result.generations + 0.5)
    plane.locator_params(axis="x", integer=True)
    plane.set_xlabel("generation")
    plane.set_ylabel(f"score [{result.task.unit}]")
    plane.legend(frameon=False, labelcolor=charts.INK, fontsize=8.5)
    charts.headline(figure, f"{result.task.name}: {result.evaluations} bodies")
    charts.write(figure, path)


def draw_archive(result: SearchResult, path: str | os.PathLike[str]) -> None:
    """Draw the best score of each cell of an archive over two measures, into a file."""
    x, y = strategy_class(result.record.settings["strategy"]).measures
    scores = np.full((y.cells, x.cells), np.nan)
    for one in reversed(result.best):
        column, row = (
            min(max(int((value - m.low) / (m.high - m.low) * m.cells), 0), m.cells - 1)
            for m, value in zip((x, y), one.measures, strict=True)
        )
        scores[row, column] = one.score
    figure = charts.blank((7, 4.2))
    plane = figure.add_subplot()
    image = plane.imshow(
        scores, origin="lower", aspect="auto", extent=(x.low, x.high, y.low, y.high)
    )
    plane.set_xlabel(x.name)
    plane.set_ylabel(y.name)
    figure.colorbar(image, label=f"score [{result.task.unit}]")
    charts.headline(figure, f"{result.task.name}: {len(result.best)} of {scores.size} cells")
    charts.write(figure, path)


# -- page ------------------------------------------------------------------------------------------


def _page(result: SearchResult, winners: Sequence[Winner], archive: bool) -> str:
    settings, unit = result.record.settings, result.task.unit
    random, begin = result.history[0].median, result.task.begin_time
    facts = {
        "task": f"{result.task.name}, {result.task.duration:g} s"
        + (f", scored from {begin:g} s on" if begin else ""),
        "strategy": settings["strategy"],
        "bodies": f"{result.evaluations} in {len(result.history)} generations of "
        f"{settings['population']}, seed {settings['seed']}",
        "best score": f"{result.best[0].score:.3f} {unit}",
        "median of random bodies": "none" if random is None else f"{random:.3f} {unit}",
        "kept out": ", ".join(f"{n}: {reason}" for reason, n in result.kept_out.items()) or "none",
    }
    return "\n".join(
        [
            "<!doctype html>", '<html lang="en"><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>Evolution: {escape(result.task.name)}</title><style>{STYLE}</style>",
            f"<h1>Evolution: {escape(result.task.name)}</h1>", _table(facts),
            f'<p><img src="{CHART}" alt="Scores over generations"></p>',
            f'<p><img src="{ARCHIVE}" alt="Best score of each cell"></p>' if archive else "",
            '<div class="cards">', *(_card(one, result) for one in winners), "</div></html>", "",
        ]
    )  # fmt: skip


def _card(winner: Winner, result: SearchResult) -> str:
    unit, hinges = result.task.unit, result.best[0].genotype.space.hinges
    organism, gait, scenario, image, *film = winner.files
    checked = winner.note
    if not checked:
        checked = f"{winner.mujoco:.3f} {unit} ({100 * winner.difference:+.0f} %)"
    facts = {
        "score": f"{winner.score:.3f} {unit}",
        "in MuJoCo": checked,
        "body": f"{winner.modules} modules, {winner.joints} joints, {winner.mass:.3g} kg",
        "gait": f"{winner.frequency:.2f} Hz, found in generation {winner.generation + 1}",
    }
    drawn = _figure(winner, image, "joints at zero")
    filmed = "".join(_figure(winner, file, "in motion") for file in film)
    commands = {
        "The same run": f"modurob run {scenario}",
        "Its gait with the servos of walk": f"modurob walk {organism} --hinges {hinges} "
        f"--gait {gait}",
    }
    code = "".join(f"<p>{use}: <code>{escape(x)}</code></p>" for use, x in commands.items())
    head = f'<h2>{winner.name}</h2><div class="body">{drawn}{_table(facts)}</div>'
    return f'<div class="card">{head}{filmed}{code}</div>'


def _figure(winner: Winner, file: str, caption: str) -> str:
    return (
        f'<figure><img src="{file}" alt="{winner.name}, {caption}" loading="lazy">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _table(facts: dict[str, str]) -> str:
    rows = (
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts.items()
    )
    return f"<table>{''.join(rows)}</table>"
