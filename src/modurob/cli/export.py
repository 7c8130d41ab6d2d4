"""``modurob export``: an organism for other programs and machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from modurob import Model, Organism, StateError
from modurob.cli import organisms, output
from modurob.modules.files import writing

EXAMPLE = """\b
Examples:
  modurob export crab --c
  modurob export crab --urdf --hinges physical
  modurob export crab.json --c --float --name leg --hinges physical --output firmware
  modurob export superbot_tree --c --base free --output firmware --json
"""


class Request(NamedTuple):
    """What is to be exported, and where to."""

    title: str
    organism: Organism
    model: Model
    target: Path
    force: bool


class Written(NamedTuple):
    """What an export left behind: its files, what there is to say, and data for machines."""

    files: list[Path]
    notes: list[str]
    data: Mapping[str, Any]


class Format(NamedTuple):
    """A kind of file: who writes it, and the options that only it has."""

    write: Callable[..., Written]
    options: tuple[str, ...] = ()


def _c(request: Request, name: str | None = None, single: bool = False) -> Written:
    from modurob.compiler.emit_c import c_sources, check_name

    if name is None:
        name = request.title
        try:
            check_name(name)
        except StateError as error:
            raise StateError(f"{error}; give a name of its own with --name") from None
    sources = c_sources(request.model, name, "float32" if single else "float64")
    output.refuse_to_overwrite([request.target / each for each in sources.files()], request.force)
    files = sources.write(request.target)
    operations = {key: dict(counts) for key, counts in sources.operations.items()}
    notes = [
        f"{key}: " + ", ".join(f"{count} {op}" for op, count in counts.items() if count)
        for key, counts in operations.items()
    ]
    return Written(files, notes, {"name": name, "operations": operations})


def _file(request: Request, name: str | None, suffix: str, write: Callable[..., None]) -> Written:
    """One file that describes the robot to another program."""
    name = request.title if name is None else name
    path = request.target / f"{name}{suffix}"
    output.refuse_to_overwrite([path], request.force)
    _make_folder(request.target)
    write(request.model, path, name=name)
    return Written([path], [], {"name": name})


def _urdf(request: Request, name: str | None = None) -> Written:
    from modurob.interop import write_urdf

    return _file(request, name, ".urdf", write_urdf)


def _mjcf(request: Request, name: str | None = None) -> Written:
    from modurob.interop import write_mjcf

    return _file(request, name, ".xml", write_mjcf)


def _cobra(request: Request, name: str | None = None) -> Written:
    from modurob.interop import write_cobra_assembly, write_cobra_modules

    name = request.title if name is None else name
    modules, assembly = (request.target / f"{name}_{x}.json" for x in ("modules", "assembly"))
    output.refuse_to_overwrite([modules, assembly], request.force)
    _make_folder(request.target)
    write_cobra_modules(request.organism, modules)
    write_cobra_assembly(request.organism, assembly)
    return Written([modules, assembly], [], {"name": name})


FORMATS: Mapping[str, Format] = {
    "c": Format(_c, ("name", "single")),
    "urdf": Format(_urdf, ("name",)),
    "mjcf": Format(_mjcf, ("name",)),
    "cobra": Format(_cobra, ("name",)),
}
OPTIONS = {"name": "--name", "single": "--float"}  # as the user writes them


@click.command("export", epilog=EXAMPLE, short_help="Write C code, URDF, MJCF or CoBRA.")
@click.argument("name_or_file", metavar="NAME_OR_FILE")
@click.option("--c", "format_name", flag_value="c",
              help="C99 for firmware: a header, a source and a test program.")  # fmt: skip
@click.option("--urdf", "format_name", flag_value="urdf", help="URDF, for ROS and the like.")
@click.option("--mjcf", "format_name", flag_value="mjcf", help="MJCF, for MuJoCo.")
@click.option("--cobra", "format_name", flag_value="cobra",
              help="CoBRA: a set of modules and the assembly.")  # fmt: skip
@click.option("--float", "single", is_flag=True, help="C in single precision.")
@click.option("--name", help="Of the files, and in them.  [default: that of the organism]")
@organisms.hinges_option
@click.option("--base", type=click.Choice(("fixed", "free")), default="fixed", show_default=True,
              help="Whether the base stands or floats.")  # fmt: skip
@click.option("-o", "--output", "path", metavar="FOLDER", help="Where to.  [default: .]")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(
    name_or_file: str,
    format_name: str | None,
    single: bool,
    name: str | None,
    hinges: str | None,
    base: str,
    path: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write an organism for other programs, or its equations as code.

    NAME_OR_FILE is a file that `modurob new` wrote, or a built-in organism: arm, crab, crane,
    double_pendulum, nine, snake or superbot_tree.
    """
    output.check_path("--output", path)
    if format_name is None:
        raise StateError(f"say what to export: {' or '.join(f'--{key}' for key in FORMATS)}")
    given = {"name": name, "single": single or None}
    settings = {key: value for key, value in given.items() if value is not None}
    for key in settings:
        if key not in FORMATS[format_name].options:
            raise StateError(f"{OPTIONS[key]} means nothing with --{format_name}")
    title, organism = organisms.find(name_or_file)
    hinges = organisms.hinges_of(name_or_file, hinges)
    model = organism.model(hinges=hinges, base=base)
    request = Request(title, organism, model, Path(path or "."), force)
    written = FORMATS[format_name].write(request, **settings)
    files = [str(file) for file in written.files]
    if as_json:
        facts = {"hinges": hinges, "base": base, "nq": model.nq, "nv": model.nv}
        output.print_json({"files": files, "title": title, **facts, **written.data})
        return
    console = output.console()
    for line in (*written.notes, f"{title}: wrote {', '.join(files)}"):
        console.print(line, soft_wrap=True)


def _make_folder(folder: Path) -> None:
    with writing(folder):
        folder.mkdir(exist_ok=True)
