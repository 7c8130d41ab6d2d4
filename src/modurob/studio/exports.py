"""Files that leave the studio, made in a process of their own."""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from modurob.modules.files import write_file, writing
from modurob.scenario import exports
from modurob.scenario.exports import ExportFormat, ExportRequest, export_format
from modurob.studio import report


def _report(request: ExportRequest, path: Path, progress: Callable[[float], Any]) -> None:
    trajectory = None if request.run_file is None else request.run()
    write_file(path, report.html(request, trajectory, progress).encode("utf-8"))


FORMATS: Mapping[str, ExportFormat] = {
    "report": ExportFormat("Report", "Everything on one page, readable anywhere", ".html", _report),
    **exports.FORMATS,
}


def word(name: str) -> str:
    """The name of a project as a name in other programs."""
    text = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_")
    return text if text[:1].isalpha() else f"robot_{text}".rstrip("_")


def make(format_name: str, request: ExportRequest, progress: Callable[[float], Any]) -> bytes:
    """The content of a file; several are packed into one."""
    form = export_format(format_name, FORMATS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{request.word}{form.ending}"
        with writing(path):
            facts = form.write(request, path, progress) or {}
        if "files" not in facts:
            return path.read_bytes()
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for file in facts["files"]:
                archive.write(file, Path(file).name)
        return packed.getvalue()
