"""A viewer that travels: the studio's stage, player and plots in one HTML file.

The file needs no network and no server. three.js, Vue, ECharts and the icons come from the
installed NiceGUI; nothing of them is part of modurob.
"""

from __future__ import annotations

import base64
import gzip
import importlib.util
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob import Ground, Model, Organism, StateError, Trajectory
from modurob.drawing.charts import check_ending
from modurob.modules.files import finite, write_file
from modurob.scenario.scenario import Mark, RunResult
from modurob.sim import BodyTrajectory
from modurob.sim.output.export import refuse_batch
from modurob.spatial import se3
from modurob.studio import signals, view_data

WEB = Path(__file__).parent / "web"
STAGE = (
    "bus", "clock", "contact", "eye", "guides", "live", "manipulator", "measure",
    "organism", "playback", "scenery", "solids",
)  # fmt: skip
RUN = ("player", "plots")  # besides, for what moves
FRAMES_PER_S = 30.0
FEWEST_FRAMES, MOST_FRAMES = 120, 1200  # of a run: short ones have more a second, long ones fewer
RESOLUTION = 1e-6  # [m], and of the numbers of a quaternion
INLINE_HEIGHT_PX = {True: 620, False: 420}  # in a notebook, with and without a player
LIBRARIES = {  # name in the browser: file of NiceGUI
    "vue": "static/vue.esm-browser.prod.js",
    "nicegui-scene": "elements/scene/dist/index.js",
    "nicegui-echart": "elements/echart/dist/index.js",
}
ICONS = "Material Icons"


class View:
    """An organism or a run to look at: turn it, play it, read its plots.

    It is shown in notebooks by being the value of a cell; `save` writes it as one HTML file that a
    browser opens from a disk.
    """

    def __init__(self, title: str, content: Mapping[str, Any]) -> None:
        self._title, self._content = title, content

    @property
    def moves(self) -> bool:
        """True if there is something to play."""
        return "run" in self._content

    def html(self) -> str:
        """The page."""
        names = (*STAGE, *RUN) if self.moves else STAGE
        modules = {f"modurob-web/{name}.js": (WEB / f"{name}.js").read_text() for name in names}
        modules["modurob-web/viewer.js"] = (WEB / "viewer.js").read_text()
        content = {"modules": {**_libraries(self.moves), **modules}, **self._content}
        text = json.dumps(finite(content), allow_nan=False, separators=(",", ":"))
        packed = base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
        page = (WEB / "viewer.html").read_text()
        for mark, value in (
            ("TITLE", escape(self._title)),
            ("STYLE", (WEB / "studio.css").read_text() + _icon_font()),
            ("CONTENT", packed),
        ):
            page = page.replace(f"{{{{{mark}}}}}", value)
        return page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file that ends with ``.html``."""
        check(path)
        write_file(path, self.html().encode())

    def _repr_html_(self) -> str:
        style = f"width:100%;height:{INLINE_HEIGHT_PX[self.moves]}px;border:0"
        page, title = escape(self.html(), quote=True), escape(self._title, quote=True)
        look = f'title="{title}" style="{style}" loading="lazy" allowfullscreen'
        return f'<iframe srcdoc="{page}" {look}></iframe>'

    def __repr__(self) -> str:
        return f"<View of {self._title}: shown in a notebook, or .save('NAME.html')>"


def check(path: str | os.PathLike[str]) -> None:
    """Refuse a file that a viewer cannot be written to, before any work is done."""
    check_ending(path, "viewers", (".html",))
    _installed()


def organism_view(organism: Organism, q: ArrayLike | None, model: Model | None) -> View:
    """See `Organism.view`."""
    model = organism.model() if model is None else model
    posture = model.neutral() if q is None else np.asarray(q, dtype=float)
    state = {
        "cast": view_data.scene_data(organism, model),
        "poses": view_data.poses(model, posture),
        "ports": [],
    }
    return View(f"an organism of {len(organism)} modules", {"state": state})


def run_view(result: RunResult) -> View:
    """The run of a scenario, with the marks of its events."""
    parts, ground = [_thinned(part) for part in result.trajectory.parts], result.ground
    if ground is not None and not all("contact" in part.channels for part in parts):
        raise StateError("this run was not on the ground: leave ground= out")
    if ground is not None and not ground.is_plane:
        raise StateError("a viewer draws level and sloped ground; leave a height field out")
    run = replace(result.trajectory, parts=tuple(parts))
    loads = [] if result.balanced is not None else signals.part_loads(run)
    data = signals.run_data(result._replace(trajectory=run), loads)
    return _moving_view(parts, data)


def stored_run_view(trajectory: Trajectory, data: Mapping[str, Any]) -> View:
    """A run that was written with what is drawn of it; see `signals.run_data`."""
    return _moving_view([_thinned(part) for part in trajectory.parts], data)


def _moving_view(parts: Sequence[BodyTrajectory], data: Mapping[str, Any]) -> View:
    packed = [
        {"name": part.name, "t": [float(t) for t in part.t], "poses": _packed(_poses(part))}
        for part in parts
    ]
    end = max(float(part.t[-1]) for part in parts)
    title = f"{len(parts[0].model.modules)} modules, {end:g} s"
    return View(title, {"run": {**data, "parts": packed}})


def trajectory_view(trajectory: Trajectory, ground: Ground | None) -> View:
    """See `Trajectory.view`."""
    marks = [Mark(event.time, event.what) for event in trajectory.audit]
    return run_view(RunResult(trajectory, marks, ground=ground))


def _thinned(part: BodyTrajectory) -> BodyTrajectory:
    """The recorded states that are drawn."""
    refuse_batch(part, "a viewer")
    if part.organism is None:
        raise StateError("to show a trajectory, simulate a model made by Organism.model(...)")
    count = round(FRAMES_PER_S * float(part.t[-1] - part.t[0])) + 1
    return part.rows(signals.chosen(len(part.t), min(max(count, FEWEST_FRAMES), MOST_FRAMES)))


def _poses(part: BodyTrajectory) -> np.ndarray:
    return se3.to_position_and_quaternion(part.model.forward_kinematics(part.q))


def _packed(values: np.ndarray) -> dict[str, Any]:
    """Numbers (rows, ...) as whole multiples of a unit, each less the one a row before.

    The bytes of all lowest bytes come first, then those of the next: a motion has few that are not
    zero beyond the second, and compresses to a fifth of its floats.
    """
    table = values.reshape(len(values), -1)
    unit = max(RESOLUTION, float(np.abs(table).max(initial=0.0)) / 2**29)
    steps = np.diff(np.rint(table / unit).astype(np.int64), axis=0, prepend=0)
    whole = ((steps << 1) ^ (steps >> 63)).T.astype("<u4")  # the sign goes last
    planes = np.ascontiguousarray(whole).view(np.uint8).reshape(-1, 4).T
    return {"unit": unit, "bytes": base64.b64encode(planes.tobytes()).decode()}


# -- files of NiceGUI ------------------------------------------------------------------------------


def _installed() -> Path:
    found = importlib.util.find_spec("nicegui")
    if found is None or found.origin is None:
        raise StateError(
            "the viewer takes three.js from NiceGUI, which is not installed: "
            "pip install 'modurob[studio]'"
        )
    return Path(found.origin).parent


def _libraries(plots: bool) -> dict[str, str]:
    """Texts of the JavaScript libraries by the names under which they are imported."""
    texts = {}
    for name, path in LIBRARIES.items():
        if plots or name != "nicegui-echart":
            texts |= _with_parts(name, _installed() / path)
    return texts


def _with_parts(name: str, path: Path) -> dict[str, str]:
    """A library, and the files beside it that it cannot do without."""
    texts = {name: path.read_text(encoding="utf-8")}
    for part in re.findall(r"""\bfrom ?["']\./([^"']+)["']""", texts[name]):
        texts |= _with_parts(part, path.parent / part)
        texts[name] = texts[name].replace(f"./{part}", part)
    return texts


def _icon_font() -> str:
    """The font of the icons, within the style sheet."""
    folder = _installed() / "static"
    faces = re.findall(r"@font-face \{[^}]*\}", (folder / "fonts.css").read_text(encoding="utf-8"))
    face = next(face for face in faces if f'"{ICONS}"' in face)
    file = re.search(r"url\(([^)]*)\)", face)
    assert file is not None
    data = base64.b64encode((folder / file[1]).read_bytes()).decode()
    return face.replace(file[1], f"data:font/woff2;base64,{data}")
