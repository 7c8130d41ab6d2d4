"""Files that leave the studio; among them a report, one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import io
import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

from modurob import ModurobError, Organism, Trajectory, __version__
from modurob.drawing import charts, picture
from modurob.drawing.picture import DPI as PICTURE_DPI
from modurob.modules.files import parse_json, read_text, write_file, writing
from modurob.scenario import exports
from modurob.scenario.exports import ExportFormat, ExportRequest, export_format
from modurob.scenario.settings import RunRecord
from modurob.studio import formulas, tables, viewer

MOST_ENTRIES = 90  # of M, C and N that are written out
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #17202b; max-width: 960px;
  margin: 40px auto; padding: 0 20px }
h1 { font-size: 28px; margin: 0 } h2 { font-size: 20px; margin: 32px 0 10px }
.note { color: #4a5868 } img, svg { max-width: 100%; height: auto }
.table { border-collapse: collapse; font-size: 14px }
.table th, .table td { border: 1px solid #d8dfe7; padding: 3px 8px; text-align: center }
.table th { background: #f3f5f8 } .table td.left { text-align: left } .zero { color: #8a97a6 }
.wide, .formula { overflow-x: auto; margin-bottom: 10px } math { font-size: 1.05em }
.sr-only { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden }
"""


def html(
    request: ExportRequest, trajectory: Trajectory | None, progress: Callable[[float], Any]
) -> str:
    """The whole page."""
    name, organism, record = request.title, request.organism, request.record
    model = request.model()
    kinds = ", ".join(
        f"{n} {kind}"
        for kind, n in Counter(organism.kind(m).name for m in organism.modules).items()
    )
    modules = f"{len(organism)} module{'s'[: len(organism) != 1]}"
    parts = [
        f"<h1>{escape(name)}</h1>",
        f'<p class="note">{modules} ({escape(kinds)}), base {escape(organism.base)}, '
        f"{sum(organism.kind(m).mass for m in organism.modules):.6g} kg. "
        f"Written by modurob {__version__}, {datetime.now():%d %B %Y}.</p>",
        _image(organism),
    ]
    progress(0.2)
    if len(organism) > 1:
        parts += [
            "<h2>Assembly incidence matrix</h2>", tables.aim(organism),
            "<h2>Accessibility</h2>", tables.accessibility(organism),
            "<h2>Direct transforms and dyad classes</h2>", tables.direct(organism),
            "<h2>Indirect transforms</h2>", tables.indirect(organism),
        ]  # fmt: skip
    parts += ["<h2>Joints</h2>", tables.joints(model)]
    parts += ["<h2>Denavit-Hartenberg table</h2>", tables.denavit_hartenberg(organism)]
    progress(0.4)
    parts += ["<h2>Equations of motion</h2>", _equations(request)]
    progress(0.7)
    if trajectory is not None and record is not None:
        parts += ["<h2>Run</h2>", _run(trajectory, record, organism)]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(name)}</title><style>{STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _image(organism: Organism) -> str:
    data = base64.b64encode(charts.rendered(picture(organism, size=900), dpi=PICTURE_DPI)).decode()
    return f'<img alt="The organism" src="data:image/png;base64,{data}">'


def _equations(request: ExportRequest) -> str:
    """M, C and N as far as they can be read."""
    equations = request.equations()
    entries = [e for e in equations.entries() if e.matrix != "M" or e.row <= e.column]
    shown, left, names = [], max(0, len(entries) - MOST_ENTRIES), set()
    for entry in entries[:MOST_ENTRIES]:
        try:
            value = equations.exact_entry(entry)
        except ModurobError:
            left += 1
            continue
        if not len(value):
            continue
        if len(value) > formulas.MOST_TERMS:
            left += 1
            continue
        names |= equations.names_in(value)
        shown.append(f'<div class="formula">{equations.mathml(entry.name)}</div>')
    words = "M is symmetric; entries that are not shown are zero."
    if left:
        words = f"{left} entries are too long for a page; export C99 or LaTeX to have them."
    text = "".join(shown).replace("&InvisibleTimes;", "&#x2062;")
    symbols = tables.symbols(formulas.symbols(equations, names))
    return f'<p class="note">{words}</p>{text}{symbols}'


def _run(trajectory: Trajectory, record: RunRecord, organism: Organism) -> str:
    rows = [
        tables.cell(key.replace("_", " "), css="left", head=True) + tables.cell(value, css="left")
        for key, value in record.settings.model_dump(mode="json").items()
        if key not in ("rates", "events")
    ]
    svg = charts.rendered(trajectory.plot("q", "v", "tau", "energy"), ".svg").decode()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    events = "".join(f"<li>{escape(str(entry))}</li>" for entry in trajectory.audit)
    message = f"<p>{escape(record.message)}</p>" if record.message else ""
    ran = trajectory.parts[0].organism
    if ran is not None and ran != organism:
        message += (
            f"<p><b>The body was changed after this run,</b> which has {len(ran)} modules and the "
            f"base {escape(ran.base)}; tables and equations above are of the body as it is.</p>"
        )
    return (
        f"<p>{escape(record.title)}: {record.seconds:g} s, {record.status}.</p>{message}{svg}"
        f"{f'<h2>Events</h2><ul>{events}</ul>' if events else ''}"
        f"<h2>Settings of the run</h2>{tables.table(rows, 'Settings')}"
    )


def _report(request: ExportRequest, path: Path, progress: Callable[[float], Any]) -> None:
    trajectory = None if request.run_file is None else request.run()
    write_file(path, html(request, trajectory, progress).encode("utf-8"))


def _viewer(request: ExportRequest, path: Path, progress: Callable[[float], Any]) -> None:
    viewer.organism_view(request.organism, None, request.model()).save(path)


def _run_viewer(request: ExportRequest, path: Path, progress: Callable[[float], Any]) -> None:
    run = request.run()
    assert request.run_file is not None
    data = parse_json(read_text(request.run_file.with_suffix(".json")), path)
    viewer.stored_run_view(run, data).save(path)


FORMATS: Mapping[str, ExportFormat] = {
    "report": ExportFormat("Report", "Everything on one page, readable anywhere", ".html", _report),
    "viewer": ExportFormat("3D view, HTML", "The body to turn, in any browser", ".html", _viewer),
    **exports.FORMATS,
    "viewer-run": ExportFormat(
        "Playback, HTML", "The run in 3D with plots, in any browser", ".html", _run_viewer, True
    ),
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
