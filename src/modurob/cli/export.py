"""``modurob export``: an organism for other programs and machines."""

from __future__ import annotations

from pathlib import Path

import click

from modurob import StateError, catalog
from modurob.cli import organisms, output
from modurob.scenario.settings import RunSettings

EXAMPLE = """\b
Examples:
  modurob export crab --c
  modurob export crab --urdf --hinges physical
  modurob export crab.json --c --float --name leg --hinges physical --output firmware
  modurob export superbot_tree --c --base free --output firmware --json
  modurob export --runtime firmware --modules 16 --joints 12 --float
"""
PROGRAMS = (
    "c",
    "urdf",
    "urdf-ros2",
    "srdf",
    "mjcf",
    "mjcf-servo",
    "cobra",
)  # of the formats, those that describe a robot
MODULES, JOINTS = 16, 12  # of the runtime, by default


@organisms.body_command("export", EXAMPLE, required=False)
@click.option("--c", "format_name", flag_value="c",
              help="C99 for firmware: a header, a source and a test program.")  # fmt: skip
@click.option("--urdf", "format_name", flag_value="urdf", help="URDF, for ROS and other programs.")
@click.option("--urdf-ros2", "format_name", flag_value="urdf-ros2",
              help="URDF with ros2_control, for controllers of ROS 2.")  # fmt: skip
@click.option("--srdf", "format_name", flag_value="srdf",
              help="SRDF beside a URDF, for MoveIt.")  # fmt: skip
@click.option("--mjcf", "format_name", flag_value="mjcf", help="MJCF, for MuJoCo.")
@click.option("--mjcf-servo", "format_name", flag_value="mjcf-servo",
              help="MJCF with position servos and sensors.")  # fmt: skip
@click.option("--cobra", "format_name", flag_value="cobra",
              help="CoBRA: a set of modules and the assembly.")  # fmt: skip
@click.option("--runtime", metavar="FOLDER",
              help="C99 library for robots that model themselves, sized for the modules of the "
              "organism, which has to fit, or of the catalog if none is given.")  # fmt: skip
@click.option("--modules", type=click.IntRange(1), metavar="N",
              help=f"With --runtime: largest number of modules.  [default: {MODULES}]")  # fmt: skip
@click.option("--joints", type=click.IntRange(1), metavar="N",
              help=f"With --runtime: largest number of joints.  [default: {JOINTS}]")  # fmt: skip
@click.option("--float", "single", is_flag=True, help="C in single precision.")
@click.option("--name", "word", metavar="TEXT",
              help="Name of the files, and in them.  [default: that of the organism]")  # fmt: skip
@organisms.hinges_option
@organisms.lock_option
@click.option("--base", type=click.Choice(("fixed", "free")), default="fixed", show_default=True,
              help="Fixed to the ground, or floating.")  # fmt: skip
@click.option("-o", "--output", "path", metavar="FOLDER", help="Folder of the files.  [default: .]")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
def command(
    name: str | None,
    format_name: str | None,
    runtime: str | None,
    modules: int | None,
    joints: int | None,
    single: bool,
    word: str | None,
    hinges: str | None,
    base: str,
    locked: tuple[str, ...],
    path: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write an organism for other programs, or its equations as code."""
    output.check_path("--output", path)
    output.check_path("--runtime", runtime)
    if runtime is not None:
        if format_name is not None or path is not None:
            raise StateError("--runtime takes its folder itself, and no other format beside it")
        if word is not None or hinges is not None or base != "fixed" or locked:
            raise StateError(
                "--name, --hinges, --base and --lock have no effect with --runtime: a robot "
                "builds its model itself, see mr_options in table.h"
            )
        _write_runtime(name, runtime, modules, joints, single, force, as_json)
        return
    if modules is not None or joints is not None:
        raise StateError("--modules and --joints are sizes of the C runtime: add --runtime FOLDER")
    if format_name is None:
        formats = ", ".join(f"--{key}" for key in PROGRAMS)
        raise StateError(f"choose what to export: {formats} or --runtime")
    if name is None:
        raise StateError("name the organism to export: the name of an example, or a file")
    if single and format_name != "c":
        raise StateError(f"--float has no effect with --{format_name}")
    from modurob.compiler.emit_c import check_name
    from modurob.scenario.exports import FORMATS, ExportRequest

    title, organism, options = organisms.chosen(name, hinges, base, locked)
    if word is None and format_name == "c":
        try:
            check_name(title)
        except StateError as error:
            raise StateError(f"{error}; give a name of its own with --name") from None
    request = ExportRequest(
        title,
        title if word is None else word,
        organism,
        RunSettings(**options),
        single=single,
        check=lambda paths: output.refuse_to_overwrite(paths, force),
    )
    form = FORMATS[format_name]
    target = Path(path or ".") / f"{request.word}{form.ending}"
    facts = form.write(request, target, lambda done: None) or {}
    files = [str(file) for file in facts.pop("files", [target])]
    if as_json:
        model = request.model()
        about = {"hinges": request.settings.hinges, "base": base, "nq": model.nq, "nv": model.nv}
        output.print_json({"files": files, "title": title, **about, "name": request.word, **facts})
        return
    console = output.console()
    for key, counts in facts.get("operations", {}).items():
        line = ", ".join(f"{count} {operation}" for operation, count in counts.items() if count)
        console.print(f"{key}: {line}", soft_wrap=True)
    console.print(f"{title}: wrote {', '.join(files)}", soft_wrap=True)


def _write_runtime(
    name: str | None,
    folder: str,
    modules: int | None,
    joints: int | None,
    single: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write the C runtime for the kinds of an organism, or of the catalog."""
    from modurob.compiler.emit_c import write_sources
    from modurob.firmware import runtime_files

    title, organism = ("the catalog", None) if name is None else organisms.find(name)
    if organism is None:
        kinds = [catalog[each] for each in catalog.names()]
    else:
        kinds = [organism.kind(each) for each in organism.modules]
    needs = (0, 0) if organism is None else (len(organism), organism.model("physical").nv)
    modules = _size("modules", modules, MODULES, needs[0], title)
    joints = _size("joints", joints, JOINTS, needs[1], title)
    files = runtime_files(kinds, modules, joints, single)
    output.refuse_to_overwrite([Path(folder) / each for each in files], force)
    written = [str(file) for file in write_sources(folder, files)]
    if as_json:
        output.print_json({"files": written, "title": title, "modules": modules, "joints": joints})
        return
    output.console().print(
        f"{title}: wrote {len(written)} files of the C runtime for up to {modules} modules and "
        f"{joints} joints into {folder}; build with make or cmake",
        soft_wrap=True,
    )


def _size(what: str, given: int | None, default: int, least: int, title: str) -> int:
    """A size of the runtime: what was given, or the default; the organism has to fit."""
    if given is None:
        return max(default, least)
    if given < least:
        raise StateError(f"--{what} {given} has no room for {title}: it has {least} {what}")
    return given
