"""`load`: the one way to read a file of modurob without naming its kind."""

from __future__ import annotations

import os
import reprlib
from typing import Any

from modurob.errors import FileError, choices
from modurob.modules import ModuleType, module_type, record
from modurob.modules.files import check_version, checked_path, parse_document, read_bytes
from modurob.organism import files as organism_files

ARCHIVE = b"PK"  # first bytes of an archive of arrays
READERS = {
    organism_files.FORMAT: (organism_files.VERSION, organism_files.from_document),
    module_type.FORMAT: (module_type.VERSION, ModuleType.from_document),
    record.FORMAT: (record.VERSION, record.from_document),
}


def load(path: str | os.PathLike[str]) -> Any:
    """Read an `Organism`, `ModuleType`, `Record`, `Scenario`, `Genotype` or `Trajectory`.

    The content decides, not the name: the ``format`` field of a JSON file (or of TOML when the name
    ends in ``.toml``), the first bytes of a binary one. `Organism.from_file`,
    `ModuleType.from_file` and `Trajectory.load` read the same files and refuse other formats.
    """
    path = checked_path(path)
    content = read_bytes(path) if path.suffix.lower() != ".npz" else ARCHIVE
    if content.startswith(ARCHIVE):
        from modurob.sim import Trajectory

        return Trajectory.load(path)
    if content.startswith(record.MAGIC):
        return record.decode(content)
    data = parse_document(path)
    format = data.get("format") if isinstance(data, dict) else None
    if format == "modurob-scenario":
        from modurob.scenario.scenario import Scenario

        return Scenario.load(path)
    if format == "modurob-genotype":
        from modurob.search import Genotype

        return Genotype.from_document(data, str(path))
    if format == "modurob-project":
        raise FileError(f"{path}: a project of the studio: open it with 'modurob studio {path}'")
    if not isinstance(format, str) or format not in READERS:
        found = (
            'it has no "format" field'
            if format is None
            else f"its format is {reprlib.repr(format)}"
        )
        raise FileError(f"{path}: not a modurob file: {found}; formats are {choices(READERS)}")
    version, read = READERS[format]
    check_version(data.get("version"), path, version)
    return read(data, str(path))
