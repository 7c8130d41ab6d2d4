"""``modurob identify``: datasheets from recorded runs."""

from __future__ import annotations

from typing import Any

import click

from modurob import Trajectory
from modurob.cli import organisms, output
from modurob.identification import Identification, identify

EXAMPLE = """\b
Examples:
  modurob identify arm run.npz
  modurob identify arm first.npz second.npz --shared --output corrected.json
"""


@organisms.body_command("identify", EXAMPLE)
@click.argument("runs", nargs=-1, required=True, metavar="RUN.npz...")
@organisms.hinges_option
@organisms.base_option
@click.option("--shared", is_flag=True, help="Fit one set of numbers for all modules of a kind.")
@click.option("--error", type=float, default=0.3, show_default=True,
              help="Expected relative error of the datasheets.")  # fmt: skip
@click.option("-o", "--output", "path", metavar="FILE",
              help="File for the organism with corrected datasheets.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
def command(
    name: str,
    runs: tuple[str, ...],
    hinges: str | None,
    base: str,
    shared: bool,
    error: float,
    path: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Identify masses, inertias and friction from recorded runs, and name wrong datasheets.

    RUN.npz is a run of this organism that `modurob control --output` wrote, or a record of the bus.
    """
    output.check_path("--output", path)
    output.refuse_to_overwrite([path] if path else [], force)
    title, organism, options = organisms.chosen(name, hinges, base)
    model = organism.model(**options)
    loaded = [Trajectory.load(run) for run in runs]
    fit = identify(model, loaded, shared=shared, datasheet_error=error)
    if path:
        fit.organism.save(path)
    if as_json:
        output.print_json(_data(title, fit))
    else:
        _print(title, fit, path)


def _print(title: str, fit: Identification, path: str | None) -> None:
    console = output.console()
    table = output.plain_table("base parameter", "given", "found", "std error")
    for each in fit.parameters:
        table.add_row(each.name, f"{each.given:.4g}", f"{each.found:.4g}", f"{each.std:.2g}")
    output.print_table(console, f"{title}: {len(fit.parameters)} base parameters", table)
    for suspect in fit.suspects:
        console.print(str(suspect), soft_wrap=True)
    if not fit.suspects:
        console.print("The runs do not contradict the datasheets.")
    if path:
        console.print(f"written: {path}", soft_wrap=True)


def _data(title: str, fit: Identification) -> dict[str, Any]:
    return {
        "title": title,
        "parameters": [each._asdict() for each in fit.parameters],
        "noise": fit.noise.tolist(),
        "suspects": [
            each._asdict() | {"given": _plain(each.given), "found": _plain(each.found)}
            for each in fit.suspects
        ],
    }


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
