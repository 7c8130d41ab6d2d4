"""The folder of projects: names, files, runs; nothing is written outside of it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from modurob import FileError
from modurob.modules.files import checked_path, read_bytes, write_file, writing
from modurob.studio import project as projects
from modurob.studio.project import Project

NAME = re.compile(r"[^\W_][\w \-]{0,59}")
ENDING = ".modurob.json"
DELETED = "deleted"  # folder within that of the projects
FOLDER_VARIABLE = "MODUROB_STUDIO"  # environment: the folder when none is given


def usual_folder() -> Path:
    """The system's folder for a program's data of this user."""
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return Path(given)
    variable, inside = {
        "win32": ("LOCALAPPDATA", "AppData/Local"),
        "darwin": ("", "Library/Application Support"),
    }.get(sys.platform, ("XDG_DATA_HOME", ".local/share"))
    try:
        root = Path(os.environ.get(variable) or Path.home() / inside)
    except RuntimeError:  # no HOME, and no entry for this user in the system's list
        raise FileError(
            "this user has no home folder to keep projects in: name a folder with --folder or in "
            f"the environment variable {FOLDER_VARIABLE}"
        ) from None
    return root / "modurob" / "studio"


class ProjectEntry(NamedTuple):
    """A project of the folder: its name and when it was last written [s since 1970]."""

    name: str
    changed: float


class Folder:
    """Projects in one folder, one file each, and a folder of runs beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        with writing(path):
            self.path.mkdir(parents=True, exist_ok=True)

    def file(self, name: str) -> Path:
        """The file of a project; names lead nowhere else."""
        return self.path / f"{checked(name)}{ENDING}"

    def runs(self, name: str) -> Path:
        """The folder of a project's runs."""
        return self.path / f"{checked(name)}.runs"

    def entries(self) -> list[ProjectEntry]:
        """The projects, the latest first."""
        found = []
        for file in self.path.glob(f"*{ENDING}"):
            name = file.name.removesuffix(ENDING)
            if NAME.fullmatch(name) and file.is_file():
                found.append(ProjectEntry(name, file.stat().st_mtime))
        return sorted(found, key=lambda entry: -entry.changed)

    def has(self, name: str) -> bool:
        """True if there is a project of this name."""
        return self.file(name).exists()

    @staticmethod
    def clean(name: str) -> str:
        """A text made a name of a project."""
        return re.sub(r"[^\w \-]", " ", name).strip(" _-")[:50].strip(" _-") or "organism"

    def read(self, name: str) -> Project:
        """A project of the folder."""
        if not self.has(name):
            raise FileError(f"there is no project '{name}' in {self.path}; open another one")
        return projects.read(self.file(name))

    def write(self, name: str, content: bytes) -> None:
        """Put a project into its file; a crash leaves the old one or the new one."""
        write_file(self.file(name), content)

    def stamp(self, name: str) -> tuple[int, ...] | None:
        """A value that changes with every write of a project; None if there is no file."""
        try:
            found = self.file(name).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def copy_runs(self, old: str, new: str) -> None:
        """The runs of a project for a second one."""
        with writing(self.runs(new)):
            if self.runs(old).is_dir():
                shutil.copytree(self.runs(old), self.runs(new), dirs_exist_ok=True)

    def write_runs(self, name: str, files: Mapping[str, bytes]) -> None:
        """Files of runs for a project."""
        with writing(self.runs(name)):
            self.runs(name).mkdir(exist_ok=True)
        for file, content in files.items():
            write_file(self.runs(name) / file, content)

    def delete(self, name: str) -> Path:
        """Move a project and its runs to a folder of deleted ones; returns that folder."""
        target = self.path / DELETED / f"{time.time_ns()}"
        with writing(target):
            for path in (self.file(name), self.runs(name)):
                if path.exists():
                    target.mkdir(parents=True, exist_ok=True)
                    path.rename(target / path.name)
        return target

    def rename(self, old: str, new: str) -> None:
        """Another name for a project and its runs."""
        with writing(self.file(new)):
            for path, target in (
                (self.runs(old), self.runs(new)),
                (self.file(old), self.file(new)),
            ):
                if path.exists():
                    path.rename(target)


def checked(name: str) -> str:
    """A name that cannot lead out of the folder, or a `FileError`."""
    if not NAME.fullmatch(name) or name != name.strip():
        raise FileError(
            f"{name[:60]!r} is no name for a project: use letters, digits, spaces, '-' and '_', "
            "up to 60 of them, and no slashes or dots; projects stay in their folder"
        )
    return name


def fingerprint(path: Path) -> str:
    """A short form of a file's place and content: an equal file elsewhere is another one."""
    place = str(checked_path(path).resolve()).encode("utf-8", "surrogateescape")
    return hashlib.sha256(place + b"\0" + read_bytes(path)).hexdigest()
