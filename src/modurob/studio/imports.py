"""Files from elsewhere: projects with or without runs, organisms, URDF, CoBRA, datasheets."""

from __future__ import annotations

import io
import re
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from modurob import FileError, ModelWarning, ModuleType, ModurobError, Organism, Trajectory
from modurob.interop import read_cobra_assembly, read_cobra_modules, read_urdf
from modurob.modules.archives import read_member, reading_archive
from modurob.modules.files import parse_json, read_text
from modurob.organism.files import FORMAT as ORGANISM
from modurob.scenario.settings import RunRecord
from modurob.studio import project as projects
from modurob.studio.project import NEW_SETTINGS, History, Project, SavedBody

PROJECT = "project.modurob.json"  # in an archive of a project with its runs
RUN_FILE = re.compile(r"runs/(\d{1,6})\.(npz|json|scenario\.json)")
LARGEST_MEMBER = 64 * 2**20  # bytes of one unpacked file of an archive
LARGEST_UNPACKED = 256 * 2**20  # bytes of all
MOST_MEMBERS = 2000
PACKED = b"PK\3\4"
ENDINGS = (".json", ".toml", ".urdf", ".xml", ".zip")


class Imported(NamedTuple):
    """The content of a file.

    Attributes:
        project: With a body; None if the file holds modules only.
        kinds: Modules for the palette.
        runs: Files of runs, by name.
        notes: Repairs of data with flaws, one sentence each.
    """

    project: Project | None = None
    kinds: tuple[ModuleType, ...] = ()
    runs: Mapping[str, bytes] = {}
    notes: tuple[str, ...] = ()


def read(name: str, content: bytes) -> Imported:
    """A file by its name and bytes, whichever of the known formats it has."""
    with uploaded(name, content) as path, warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", ModelWarning)
        try:
            got = _read(path, name, content)
        except ModurobError as error:
            raise FileError(str(error).replace(str(path), name)) from None
    notes = [str(each.message).replace(str(path), name) for each in found]
    return got._replace(notes=(*got.notes, *notes))


def kinds(name: str, content: bytes) -> tuple[ModuleType, ...]:
    """The modules of a file: a datasheet, a URDF robot, a CoBRA set, or those of a body."""
    found = read(name, content)
    body = None if found.project is None else found.project.organism
    own = () if body is None else tuple(dict.fromkeys(map(body.kind, body.modules)))
    if not (found.kinds or own):
        raise FileError(f"{name}: there is no module in this file")
    return found.kinds or own


def _read(path: Path, name: str, content: bytes) -> Imported:
    if content.startswith(PACKED):
        return _archive(path, name, content)
    if path.suffix == ".urdf" or content.lstrip()[:1] == b"<":
        return _of_body(Organism.start(read_urdf(path, strict=False)))
    if path.suffix == ".toml":
        return Imported(kinds=(ModuleType.from_file(path),))
    data = parse_json(read_text(path), name, finite=False)
    form = data.get("format") if isinstance(data, dict) else None
    if form == "modurob-module":
        return Imported(kinds=(ModuleType.from_file(path),))
    if form in (ORGANISM, projects.FORMAT):
        return Imported(_without_runs(projects.read(path, where=name)))
    if isinstance(data, dict) and "moduleOrder" in data:
        raise FileError(
            f"{name}: a CoBRA assembly without its modules; put both files into one .zip, as "
            "Export does"
        )
    if data and (isinstance(data, list) or "modules" in data or "header" in data):
        return Imported(kinds=tuple(read_cobra_modules(path, strict=False).values()))
    return Imported(_without_runs(projects.read(path, where=name)))  # says what it expects


def _of_body(organism: Organism) -> Imported:
    """A body from another program: its joints are as they are, so all hinges are physical."""
    content = Project(history=History(SavedBody(organism)))
    content.settings = NEW_SETTINGS.edited(hinges="physical")
    return Imported(content)


def _without_runs(content: Project) -> Project:
    content.runs.clear()  # their files stayed elsewhere
    content.source = None  # a file of whoever shared it
    return content


# -- archives --------------------------------------------------------------------------------------


def archive(content: Project, folder: Path, largest: int) -> tuple[bytes, int]:
    """A project with its runs as one file, and the number of runs that are in it.

    The latest runs come first; those with which it would become too large to be opened are left
    out.

    Args:
        folder: Of the runs' files.
        largest: Bytes of the result.
    """
    kept: list[RunRecord] = []
    files: dict[str, bytes] = {}
    room = largest - len(_zipped({PROJECT: projects.to_bytes(content)}))
    for run in reversed([run for run in content.runs if not run.removed]):
        own = {
            f"runs/{run.number}.{ending}": path.read_bytes()
            for ending in ("npz", "json", "scenario.json")
            if (path := folder / f"{run.number}.{ending}").is_file()
        }
        packed = len(_zipped(own))
        if f"runs/{run.number}.npz" not in own or packed > room:
            continue
        room -= packed
        kept.insert(0, run)
        files |= own
    shared = Project(content.history, content.kinds, content.pose, content.settings, kept)
    return _zipped({PROJECT: projects.to_bytes(shared), **files}), len(kept)


def _zipped(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in files.items():
            target.writestr(name, data)
    return packed.getvalue()


def _archive(path: Path, name: str, content: bytes) -> Imported:
    try:
        with reading_archive(io.BytesIO(content)) as source:
            files = _members(source)
    except (FileError, OSError) as error:
        raise FileError(f"{name}: not a ZIP archive that can be read: {error}") from None
    if PROJECT in files:
        return _project(path, name, files)
    assembly = [key for key in files if key.endswith("_assembly.json")]
    modules = [key for key in files if key.endswith("_modules.json")]
    if len(assembly) == len(modules) == 1:
        parts = [path.with_name(f"{what}.json") for what in ("modules", "assembly")]
        for part, key in zip(parts, (*modules, *assembly), strict=True):
            part.write_bytes(files[key])
        kinds = read_cobra_modules(parts[0], strict=False)
        return _of_body(read_cobra_assembly(parts[1], kinds))
    raise FileError(
        f"{name}: holds neither a project ({PROJECT}) nor a CoBRA assembly with its modules "
        "(NAME_assembly.json and NAME_modules.json)"
    )


def _members(source: zipfile.ZipFile) -> dict[str, bytes]:
    entries = [entry for entry in source.infolist() if not entry.is_dir()]
    sizes = [entry.file_size for entry in entries]
    if len(sizes) > MOST_MEMBERS or max(sizes, default=0) > LARGEST_MEMBER:
        raise FileError("holds too many or too large files")
    if sum(sizes) > LARGEST_UNPACKED:
        raise FileError(f"at most {LARGEST_UNPACKED // 2**20} MB of files can be unpacked")
    files: dict[str, bytes] = {}
    for entry in entries:
        try:
            files[entry.filename] = read_member(source, entry)
        except FileError as error:
            raise FileError(f"its file {ascii(entry.filename)[:80]} {error}") from None
    return files


def _project(path: Path, name: str, files: dict[str, bytes]) -> Imported:
    """A project whose runs are there; a run whose trajectory cannot be read is left out."""
    file = path.with_suffix(".json")
    file.write_bytes(files[PROJECT])
    content = projects.read(file, where=f"{name}: {PROJECT}")
    content.source = None
    found: dict[str, bytes] = {}
    whole, notes = [], []
    for run in content.runs:
        own = {key: data for key, data in files.items() if _number(key) == run.number}
        try:
            found |= _checked_run(path.with_suffix(".npz"), run.number, own)
            whole.append(run)
        except (ModurobError, KeyError) as error:
            why = str(error).replace(str(path.with_suffix(".npz")), f"{run.number}.npz")
            notes.append(f"Run {run.number} is left out: {why}")
    content.runs = whole
    return Imported(content, runs=found, notes=tuple(notes))


def _number(name: str) -> int:
    match = RUN_FILE.fullmatch(name)
    return int(match[1]) if match else 0


def _checked_run(path: Path, number: int, own: dict[str, bytes]) -> dict[str, bytes]:
    """The files of a run, named as in a folder of runs; poses are computed from the trajectory."""
    stem = f"runs/{number}"
    path.write_bytes(own[f"{stem}.npz"])
    poses = Trajectory.load(path).to_bytes()
    parse_json(own[f"{stem}.json"].decode("utf-8", "replace"), f"{number}.json")
    files = {key.removeprefix("runs/"): data for key, data in own.items()}
    return {**files, f"{number}.bin": poses}


# -- uploads ---------------------------------------------------------------------------------------


@contextmanager
def uploaded(name: str, content: bytes) -> Iterator[Path]:
    """An uploaded file on disk, under a name of ours."""
    ending = next((end for end in ENDINGS if name.lower().endswith(end)), ".json")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"upload{ending}"
        path.write_bytes(content)
        yield path
