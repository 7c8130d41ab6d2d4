"""``modurob new``: make an organism and write it to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from modurob import FileError, MatrixError, Organism, StateError
from modurob.cli import organisms, output
from modurob.modules.files import read_text
from modurob.scenario.bodies import MOST_MODULES

EXAMPLE = """\b
Examples:
  modurob new crab
  modurob new snake --modules 8 --kind scout --output snake.json
  modurob new arm --modules babac
  modurob new crane --set l=2 --set m2=0.5
  modurob new --aim '[[3,0],[4,3],[0,4]]' --kinds BBS --output chain.json
  modurob new --grid drawing.txt
  modurob new --urdf arm.urdf --repair
  modurob new --random 12 --kind backbone --seed 3
  modurob new --random 5 --kind my_module.json
"""
LARGEST_DRAWING = 1_000_000  # bytes


@click.command("new", epilog=EXAMPLE)
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--aim", metavar="JSON", help="Assembly incidence matrix; rows are modules.")
@click.option("--kinds", help="Kinds of the rows: letters (BBS) or names separated by commas.")
@click.option("--grid", metavar="FILE", help="Text drawing of a planar organism.")
@click.option("--urdf", metavar="FILE", help="Robot from a URDF file, as one module.")
@click.option("--repair", is_flag=True,
              help="Repair flaws of the URDF file, with a warning for each.")  # fmt: skip
@click.option("--random", type=click.IntRange(1, MOST_MODULES), metavar="N",
              help="A random tree of N modules.")  # fmt: skip
@click.option("--modules", metavar="N|WORD", help="Length of a snake, or word of an arm (babac).")
@click.option("--kind", help="Kind of a snake, random organism or tree: a name or a datasheet.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of random numbers.  [default: 0]")
@click.option("--set", multiple=True, metavar="NAME=VALUE",
              help="Parameter of a built-in organism, such as l1=0.5 of double_pendulum."
              )  # fmt: skip
@click.option("-o", "--output", "path", metavar="FILE", help="File to write.  [default: NAME.json]")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
def command(name: str | None, path: str | None, force: bool, as_json: bool, **options: Any) -> None:
    """Make an organism and write it to a JSON file.

    NAME is a built-in organism: arm, crab, crane, double_pendulum, nine, snake or superbot_tree.
    Instead of a name, give --aim, --grid, --urdf or --random.
    """
    output.check_path("--output", path)
    settings = {key: x for key, x in options.items() if x not in (None, ()) and x is not False}
    aim, grid, urdf, chance = (settings.pop(key, None) for key in ("aim", "grid", "urdf", "random"))
    sources = {"NAME": name, "--aim": aim, "--grid": grid, "--urdf": urdf, "--random": chance}
    given = [key for key, value in sources.items() if value is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise StateError(f"give one of {', '.join(sources)}, got {found}")
    if "kind" in settings:
        settings["kind"] = organisms.kind(settings["kind"])
    if name is not None:
        numbers = _numbers(settings.pop("set", ()))
        title, organism = name, organisms.make(name, settings, numbers)
    elif aim is not None:
        _only(settings, "--aim", "kinds")
        title, organism = "organism", _from_aim(aim, options["kinds"])
    elif grid is not None:
        _only(settings, "--grid")
        title, organism = Path(grid).stem, Organism.from_grid(read_text(grid, LARGEST_DRAWING))
    elif urdf is not None:
        from modurob.interop import read_urdf

        _only(settings, "--urdf", "repair")
        try:
            kind = read_urdf(urdf, strict=not options["repair"])
        except FileError as error:
            raise FileError(str(error).replace("strict=False", "--repair")) from None
        title, organism = Path(urdf).stem, Organism.start(kind)
    else:
        _only(settings, "--random", "kind", "seed")
        rng = np.random.default_rng(options["seed"] or 0)
        title = "random"
        organism = Organism.random(settings.get("kind", "backbone"), options["random"], rng)
    target = Path(path) if path else Path(f"{title}.json")
    output.refuse_to_overwrite([target], force)
    organism.save(target)
    if as_json:
        output.print_json({"file": str(target), **output.summary_data(title, organism)})
        return
    console = output.console()
    output.print_drawing(console, organism)
    console.print(f"{output.summary(title, organism)}: wrote {target}", soft_wrap=True)


def _only(settings: dict[str, object], source: str, *allowed: str) -> None:
    for key in settings:
        if key not in allowed:
            raise StateError(f"--{key} has no effect with {source}")


def _numbers(pairs: tuple[str, ...]) -> dict[str, float]:
    numbers = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        try:
            numbers[key] = float(value)
        except ValueError:
            raise StateError(f"--set takes NAME=VALUE with a number, got '{pair}'") from None
    return numbers


def _from_aim(text: str, kinds: str | None) -> Organism:
    try:
        matrix = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MatrixError(
            f"--aim is not JSON ({error}); it should look like '[[3,0],[4,3],[0,4]]'"
        ) from None
    if not isinstance(matrix, list) or not all(isinstance(row, list) for row in matrix):
        raise MatrixError("--aim is a list of rows, one for each module: '[[3,0],[4,3],[0,4]]'")
    if kinds is None:
        raise MatrixError("--aim needs --kinds, one for each row: --kinds BBB")
    names = [part.strip() for part in kinds.split(",")] if "," in kinds else list(kinds)
    return Organism.from_aim(matrix, kinds=names)
