"""``modurob equations``: the equations of motion as formulas."""

from __future__ import annotations

from pathlib import Path

import click

from modurob import StateError
from modurob.cli import organisms, output
from modurob.cli.characters import echo
from modurob.modules.files import write_file

EXAMPLE = """\b
Examples:
  modurob equations double_pendulum --hinges physical
  modurob equations crab --format latex --entry "M[1,2]"
  modurob equations crab.json --hinges physical --output model.tex
  modurob equations arm --symbols mass,gravity --format markdown
  modurob equations crane --hinges physical --outputs m0.slide --passive m1.hinge
"""
FORMATS = ("text", "latex", "markdown", "mathml")
SUFFIXES = {".txt": "text", ".tex": "latex", ".md": "markdown", ".html": "mathml"}


@organisms.body_command("equations", EXAMPLE)
@organisms.hinges_option
@organisms.base_option
@organisms.lock_option
@click.option("--symbols", default="all", show_default=True, metavar="GROUPS",
              help="all, none, or some of mass,length,inertia,gravity,friction,stiffness; "
              "the others are numbers.")  # fmt: skip
@click.option("--entry", metavar="ENTRY", help="One entry, such as M[1,2] or N[1].")
@click.option("--outputs", metavar="JOINTS",
              help="Relative degree and zero dynamics of joints such as m0.slide.")  # fmt: skip
@click.option("--passive", metavar="JOINTS", default="",
              help="With --outputs: joints without a motor, such as m1.hinge.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(FORMATS),
              help="[default: by the name of the output, else text]")  # fmt: skip
@click.option("-o", "--output", "path", metavar="FILE",
              help="Write a file: .tex (for pdflatex), .md, .html or .txt.")  # fmt: skip
@click.option("--limit", type=click.IntRange(min=1),
              help="Refuse to print more terms than this.  [default: 100,000]")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
def command(
    name: str,
    hinges: str | None,
    base: str,
    locked: tuple[str, ...],
    symbols: str,
    entry: str | None,
    outputs: str | None,
    passive: str,
    form: str | None,
    path: str | None,
    limit: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Print M, C and N of an organism: M ddq + C dq + N + friction = tau."""
    output.check_path("--output", path)
    form = form or _format_of(path)
    output.refuse_to_overwrite([path] if path else [], force)
    title, organism, options = organisms.chosen(name, hinges, base, locked)
    equations = organism.equations(
        **options,
        symbols=symbols if symbols in ("all", "none") else symbols.split(","),
        limit=limit,
    )
    if passive and outputs is None:
        raise StateError("--passive needs --outputs: as many joints as there are motors")
    if outputs is not None:
        without = passive.split(",") if passive else []
        echo(str(equations.feedback_linearization(outputs.split(","), without)))
        return
    if as_json:
        output.print_json(equations.data(entry))
        return
    if not equations.model.nv:
        raise StateError(f"{title} has no joint that can move, so it has no equations of motion")
    if path:
        whole = form == "latex"
        text = equations.latex(entry, document=True) if whole else equations.written(form, entry)
        write_file(path, text.encode())
        echo(f"{title}: wrote {path}")
        return
    echo(equations.written(form, entry), nl=False)


def _format_of(path: str | None) -> str:
    if path is None:
        return "text"
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise StateError(f"{path}: unknown ending; use {known}, or choose a format with --format")
    return SUFFIXES[suffix]
