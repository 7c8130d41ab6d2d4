"""``modurob evolve``: a search over bodies and gaits, and a gallery of the best."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from modurob import FileError, WriteError
from modurob.cli import output
from modurob.cli.characters import echo
from modurob.cli.executors import chosen_executor, executor_options
from modurob.modules.files import checked_path, finite
from modurob.search import BodySpace, SearchResult, Winner, evolve, write_gallery
from modurob.search.evolution import DEFAULT_SPACE
from modurob.search.gallery import CHART, PAGE, draw_progress
from modurob.search.strategies import STRATEGIES
from modurob.search.tasks import TASKS, task_of

EXAMPLE = """\b
Examples:
  modurob evolve --task walk --population 200 --generations 50 --seed 1 --output walkers
  modurob evolve --task walk --population 200 --generations 80 --seed 1 --output walkers --resume
  modurob evolve --task carry --modules 4 8 --output carriers --cluster tcp://10.0.0.5:8786
  modurob evolve --task climb --strategy map-elites --population 100 --output climbers
"""
CHECKPOINT = "evolution.json"


@click.command("evolve", epilog=EXAMPLE)
@click.option("--task", default="walk", show_default=True, help=f"{', '.join(TASKS)}.")
@click.option("--population", type=int, default=200, show_default=True,
              help="Bodies in each generation.")  # fmt: skip
@click.option("--generations", type=int, default=50, show_default=True,
              help="Generations, the random first one included.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the search.")
@click.option(
    "--duration",
    "--seconds",
    type=float,
    help="Length of a rollout. [s]  [default: that of the task]",
)
@click.option("--strategy", default="evolution", show_default=True,
              help=f"{', '.join(STRATEGIES)}.")  # fmt: skip
@click.option("--kind", "kinds", multiple=True, metavar="KIND",
              help="Kind of modules from the catalog; may be repeated.  [default: backbone]"
              )  # fmt: skip
@click.option("--modules", type=int, nargs=2, metavar="LEAST MOST",
              default=DEFAULT_SPACE.modules, show_default=True, help="Modules of a body."
              )  # fmt: skip
@click.option("-o", "--output", "path", metavar="FOLDER",
              help="Folder for the checkpoint, the chart and the gallery; created if missing.  "
              "[default: TASK-SEED, such as walk-0]")  # fmt: skip
@click.option("--resume", is_flag=True, help="Continue the search in the folder.")
@click.option("--target", type=click.Choice(("cpu", "cuda")), default="cpu", show_default=True,
              help="Device of the rollouts.")  # fmt: skip
@executor_options
@click.option("--winners", type=click.IntRange(min=1), default=4, show_default=True,
              help="Number of bodies in the gallery.")  # fmt: skip
@click.option("--films/--no-films", default=True, show_default=True, help="Film the winners.")
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
def command(
    task: str, population: int, generations: int, seed: int, duration: float | None, strategy: str,
    kinds: tuple[str, ...], modules: tuple[int, int], path: str | None, resume: bool, target: str,
    jobs: int | None, cluster: str | None, winners: int, films: bool, as_json: bool,
) -> None:  # fmt: skip
    """Search for bodies and gaits that do a task well.

    Bodies start at random and are crossed and mutated. The checkpoint evolution.json is written
    after each generation, and --resume continues from it. At the end the best bodies are run again
    in MuJoCo, and index.html shows them with films and files.
    """
    chosen = task_of(task)
    if duration is not None:
        chosen = replace(chosen, duration=duration)
    space = BodySpace(
        kinds=kinds or DEFAULT_SPACE.kinds,
        modules=modules, frequency=DEFAULT_SPACE.frequency,
    )  # fmt: skip
    with _folder(f"{task}-{seed}" if path is None else path, resume) as folder:
        with (
            chosen_executor(jobs, cluster, target) as executor,
            output.bar(task, not as_json) as show,
        ):
            found = evolve(
                chosen, population, generations, seed, strategy=strategy, space=space,
                target=target, executor=executor, checkpoint=folder / CHECKPOINT,
                progress=_reporter(folder, show, as_json),
            )  # fmt: skip
        with output.bar("films and MuJoCo", not as_json) as show:
            best = write_gallery(found, folder, bodies=winners, films=films, progress=show)
    if as_json:
        output.print_json(_data(found, best, folder))
    else:
        _print(found, best, folder)


@contextlib.contextmanager
def _folder(path: str, resume: bool) -> Iterator[Path]:
    """The folder of a search, made if it is not there; a search that fails leaves no empty one."""
    output.check_path("--output", path)
    folder = checked_path(path)
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{path}: is a file; --output needs a folder")
    there = (folder / CHECKPOINT).exists()
    if there and not resume:
        raise FileError(
            f"{path}: holds a search already; --resume continues it, or give another folder"
        )
    if resume and not there:
        raise FileError(f"{path}: holds no {CHECKPOINT} to continue; leave --resume out")
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"{path}: cannot be made: {error.strerror or error}") from None
    try:
        yield folder
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and (folder / CHECKPOINT).exists():
            echo("interrupted: the same command with --resume continues the search", err=True)
        with contextlib.suppress(OSError):  # one that is not empty stays
            for each in new:
                each.rmdir()
        raise


def _reporter(
    folder: Path, show: Callable[..., None], as_json: bool
) -> Callable[[SearchResult], None]:
    """A function that reports a generation: the chart, and a line or the bar's title."""
    on_terminal = output.console(stderr=True).is_terminal

    def report(result: SearchResult) -> None:
        draw_progress(result, folder / CHART)
        text = _line(result)
        show(len(result.history) / result.generations, text)
        if not as_json and not on_terminal:
            echo(text, err=True)

    return report


def _line(result: SearchResult) -> str:
    """One generation in a line, with all scores so far as blocks."""
    last, unit = result.history[-1], result.task.unit
    scores = [math.nan if entry.leader is None else entry.leader for entry in result.history]
    head = f"generation {len(result.history)} of {result.generations}"
    if last.leader is None:
        return f"{head}: no valid body yet"
    median = "none" if last.median is None else f"{last.median:.3f}"
    return (
        f"{head}: best {last.leader:.3f} {unit}, median {median} {unit} {output.sparkline(scores)}"
    )


def _data(result: SearchResult, winners: list[Winner], folder: Path) -> dict[str, Any]:
    return {
        "task": result.task.name,
        "generations": len(result.history),
        "evaluations": result.evaluations,
        "best": result.best[0].score,
        "median_of_random_bodies": result.history[0].median,
        "kept_out": result.kept_out,
        "history": [entry.model_dump() for entry in result.history],
        "winners": [finite({**one._asdict(), "difference": one.difference}) for one in winners],
        "page": str(folder / PAGE),
    }


def _print(result: SearchResult, winners: list[Winner], folder: Path) -> None:
    console, unit = output.console(), result.task.unit
    columns = f"score [{unit}]", "MuJoCo", "difference", "modules", "joints"
    table = output.plain_table("body", *columns)
    for one in winners:
        checked = ("none", "")
        if not one.note:
            checked = f"{one.mujoco:.3f}", f"{100 * one.difference:+.0f} %"
        table.add_row(one.name, f"{one.score:.3f}", *checked, str(one.modules), str(one.joints))
    title = f"{result.task.name}: {result.evaluations} bodies in {len(result.history)} generations"
    output.print_table(console, title, table)
    for one in winners:
        if one.note:
            console.print(f"{one.name} in MuJoCo: {one.note}", soft_wrap=True)
    random, best = result.history[0].median, result.best[0].score
    if random:
        console.print(
            f"best {best:.3f} {unit}; median of random bodies {random:.3f} {unit}", soft_wrap=True
        )
    for reason, count in result.kept_out.items():
        console.print(f"kept out: {count}, {reason}", soft_wrap=True)
    console.print(f"wrote {folder / PAGE}", soft_wrap=True)
