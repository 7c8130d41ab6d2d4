"""``modurob show``: an organism in words and tables."""

from __future__ import annotations

from typing import Any

import click
import numpy as np
from rich.console import Console

from modurob import Model, Organism
from modurob.cli import organisms, output
from modurob.drawing.terminal import shorten

EXAMPLE = """\b
Examples:
  modurob show crab
  modurob show crab.json --hinges dyad --picture crab.png
  modurob show crab --html crab.html
  modurob show nine --json > nine.json
"""
LARGEST_TABLES = 30  # modules; more fill the terminal
LARGEST_JSON = 1000  # modules; the square matrices of more are gigabytes
MOST_LOCKED, MOST_NAMES = 20, 12  # rows of the table; names in a cell


@organisms.body_command("show", EXAMPLE)
@click.option("--hinges", type=click.Choice(organisms.HINGES),
              help="Joints: papers' (dyad) or hardware's (physical).  [default: both]")  # fmt: skip
@click.option("--matrices/--no-matrices", default=None,
              help=f"Show matrices.  [default: up to {LARGEST_TABLES} modules]")  # fmt: skip
@click.option("--picture", "picture_path", metavar="FILE", help="Save a drawing as .png or .svg.")
@click.option("--html", "html_path", metavar="FILE", help="Write a 3D view to open in a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as machine-readable JSON.")
def command(
    name: str, hinges: str | None, matrices: bool | None, picture_path: str | None,
    html_path: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Show an organism: drawing, joints, and the matrices of the literature."""
    files = {"picture": picture_path, "html": html_path}
    for key, path in files.items():
        output.check_path(f"--{key}", path)
    title, organism = organisms.find(name)
    models = {key: organism.model(hinges=key) for key in ([hinges] if hinges else organisms.HINGES)}
    if picture_path:
        from modurob.drawing import picture

        picture(organism, picture_path)
    if html_path:
        organism.view(model=models[hinges or organisms.HINGES[0]]).save(html_path)
    written = {key: path for key, path in files.items() if path}
    if as_json:
        wanted = len(organism) <= LARGEST_JSON if matrices is None else matrices
        data = _data(title, organism, models, wanted)
        output.print_json({**data, **written})
        return
    console = output.console()
    output.print_drawing(console, organism)
    console.print(output.summary(title, organism), soft_wrap=True)
    console.print()
    _print_joints(console, models)
    if len(organism) <= LARGEST_TABLES if matrices is None else matrices:
        if len(organism) > 1:
            _print_matrices(console, organism)
    elif matrices is None:
        console.print(f"{len(organism)} modules: matrices left out; --matrices shows them.")
    for path in written.values():
        console.print(f"wrote {path}", soft_wrap=True)


# -- for people ------------------------------------------------------------------------------------


def _print_joints(console: Console, models: dict[str, Model]) -> None:
    table = output.plain_table("hinges", "active", "locked")
    table.add_column("active joints")
    for key, model in models.items():
        table.add_row(
            key, str(len(model.joint_names)), str(len(model.locked)), _names(model.joint_names)
        )
    output.print_table(console, "Joints", table)
    locked = [(key, joint, why) for key, m in models.items() for joint, why in m.locked.items()]
    if not locked:
        return
    table = output.plain_table("joint")
    table.add_column("hinges", no_wrap=True)
    table.add_column("why")
    for key, joint, why in locked[:MOST_LOCKED]:
        table.add_row(joint, key, why)
    output.print_table(console, "Locked joints", table)
    if len(locked) > MOST_LOCKED:
        console.print(f"... and {len(locked) - MOST_LOCKED} more; --json lists them all.\n")


def _names(names: tuple[str, ...]) -> str:
    shown = " ".join(names[:MOST_NAMES])
    return f"{shown} ..." if len(names) > MOST_NAMES else shown or "none"


def _print_matrices(console: Console, organism: Organism) -> None:
    aim = organism.aim()
    rows = [
        f"v{i}" if name == f"m{i}" else f"v{i} {shorten(name, 12)}"
        for i, name in enumerate(organism.modules)
    ]
    output.print_matrix(
        console,
        "Assembly incidence matrix",
        aim.matrix,
        [f"e{k + 1}" for k in range(len(organism) - 1)],
        rows,
        last_column=aim.kinds,
        last_row=aim.classes,
    )
    numbers = [str(i) for i in range(len(organism))]
    output.print_matrix(console, "Accessibility", organism.accessibility(), numbers, numbers)
    direct = organism.direct_transforms()
    cells = [
        f"{i} → {j}  sides {a}, {b}  {name}"
        for (i, j, a, b), name in zip(direct.tolist(), aim.classes, strict=True)
    ]
    output.print_flow(console, "Direct transforms (DTL)", _aligned(cells))
    indirect = organism.indirect_transforms()
    if len(indirect):
        cells = [f"T_{i},{j} = T_{i},{x} T_{x},{j}" for i, j, _, x, *_ in indirect.tolist()]
        output.print_flow(console, "Indirect transforms (IDTL)", cells)


def _aligned(cells: list[str]) -> list[str]:
    """The part before the first double space padded to one width."""
    heads = [cell.partition("  ") for cell in cells]
    width = max(len(head) for head, *_ in heads)
    return [f"{head:<{width}}  {tail}" for head, _, tail in heads]


# -- for machines ----------------------------------------------------------------------------------


def _data(
    title: str, organism: Organism, models: dict[str, Model], matrices: bool
) -> dict[str, Any]:
    """Everything there is to say; the large matrices are null when they are not wanted."""
    aim = organism.aim() if matrices else None
    return {
        "title": title,
        "base": organism.base,
        "names": list(organism.modules),
        "kinds": [organism.kind(name).name for name in organism.modules],
        "symbols": [organism.kind(name).symbol for name in organism.modules],
        "masses": [organism.kind(name).mass for name in organism.modules],
        "dockings": [entry._asdict() for entry in organism.dockings],
        "classes": organism.dyad_classes(),
        "aim": None if aim is None else aim.matrix.tolist(),
        "accessibility": organism.accessibility().tolist() if matrices else None,
        "dtl": organism.direct_transforms().tolist(),
        "idtl": organism.indirect_transforms().tolist() if matrices else None,
        "models": {key: _model_data(model) for key, model in models.items()},
    }


def _model_data(model: Model) -> dict[str, Any]:
    has_mass = bool(np.sum(model.mass) > 0)
    return {
        "joints": list(model.joint_names),
        "locked": dict(model.locked),
        "mass": float(np.sum(model.mass)),
        "center_of_mass": model.center_of_mass(model.neutral()).tolist() if has_mass else None,
        "lower": model.lower.tolist(),
        "upper": model.upper.tolist(),
    }
