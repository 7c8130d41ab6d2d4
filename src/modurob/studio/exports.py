"""Everything that leaves the studio as a file, made in a process of its own."""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from modurob import Organism, StateError, Trajectory
from modurob.compiler.emit_c import c_sources
from modurob.drawing import picture
from modurob.errors import choices
from modurob.interop import write_mjcf, write_urdf
from modurob.modules.files import write_file, writing
from modurob.organism.files import from_document
from modurob.sim.output import video
from modurob.sim.output.film import Film
from modurob.studio import formulas, report
from modurob.studio.ingredients import model_of
from modurob.studio.settings import RunRecord, Settings

FPS, FILM_SIZE = 20.0, 480  # frames a second, [px]
MOST_FRAMES = 600  # of a film: half a minute; longer runs are shown faster
PICTURE_SIZE = 1200  # [px]


class Wish(NamedTuple):
    """What to export.

    Attributes:
        name: Of the project.
        organism: Its document.
        runs: All there are.
        shown: Number of the run that is shown, or None.
        folder: Of the runs' files.
    """

    name: str
    organism: dict[str, Any]
    settings: Settings
    runs: tuple[RunRecord, ...]
    shown: int | None
    folder: Path

    def body(self) -> Organism:
        """The organism."""
        return from_document(self.organism, self.name)

    def run(self) -> Trajectory:
        """The run that is shown, or the last one."""
        if not self.runs:
            raise StateError("there is no run to export yet: press Run under Move")
        number = self.shown or self.runs[-1].number
        return Trajectory.load(self.folder / f"{number}.npz")

    @property
    def word(self) -> str:
        """The project's name as a name in other programs."""
        word = re.sub(r"\W", "_", self.name, flags=re.ASCII).strip("_")
        return word if word[:1].isalpha() else f"robot_{word}".rstrip("_")


class Format(NamedTuple):
    """A kind of file.

    Attributes:
        title, detail: For people.
        ending: Of the file.
        make: (wish, path, progress) writes it.
        run: Whether it needs a run.
    """

    title: str
    detail: str
    ending: str
    make: Callable[[Wish, Path, Callable[[float], Any]], None]
    run: bool = False


def _urdf(wish: Wish, path: Path, progress: Any) -> None:
    write_urdf(model_of(wish.body(), wish.settings), path, name=wish.word)


def _mjcf(wish: Wish, path: Path, progress: Any) -> None:
    write_mjcf(model_of(wish.body(), wish.settings), path, name=wish.word)


def _c(wish: Wish, path: Path, progress: Any) -> None:
    sources = c_sources(model_of(wish.body(), wish.settings), wish.word.lower(), "float64")
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(path, "w") as archive:
        for file in sources.write(Path(folder)):
            archive.write(file, Path(file).name)


def _latex(wish: Wish, path: Path, progress: Any) -> None:
    equations = formulas.make(wish.body(), wish.settings)
    write_file(path, equations.latex(document=True).encode("utf-8"))


def _organism(wish: Wish, path: Path, progress: Any) -> None:
    wish.body().save(path)


def _picture(wish: Wish, path: Path, progress: Any) -> None:
    picture(wish.body(), path, size=PICTURE_SIZE)


def _plots(wish: Wish, path: Path, progress: Any) -> None:
    wish.run().plot("q", "v", "tau", "energy", path=path, title=wish.name)


def _csv(wish: Wish, path: Path, progress: Any) -> None:
    wish.run().to_csv(path)


def _npz(wish: Wish, path: Path, progress: Any) -> None:
    wish.run().save(path)


def _film(wish: Wish, path: Path, progress: Callable[[float], Any]) -> None:
    video.check(path, FPS)
    film = Film(wish.run(), None, None, FILM_SIZE)
    frames_wanted = round((film.end - film.begin) * FPS) + 1
    times = np.linspace(film.begin, film.end, min(max(2, frames_wanted), MOST_FRAMES))

    def frames() -> Iterator[np.ndarray]:
        for k, t in enumerate(times.tolist()):
            progress(k / len(times))
            yield video.stamped(film.frame(t), f"{t:.2f} s")

    video.write(path, frames(), FPS)


def _report(wish: Wish, path: Path, progress: Callable[[float], Any]) -> None:
    trajectory = wish.run() if wish.runs else None
    record = next((run for run in wish.runs if run.number == wish.shown), None)
    if record is None and wish.runs:
        record = wish.runs[-1]
    text = report.html(wish.name, wish.body(), wish.settings, trajectory, record, progress)
    write_file(path, text.encode("utf-8"))


FORMATS: Mapping[str, Format] = {
    "report": Format("Report", "Everything on one page, readable anywhere", ".html", _report),
    "organism": Format("Organism", "For modurob's library and command line", ".json", _organism),
    "picture-svg": Format("Picture, SVG", "The body at rest with names", ".svg", _picture),
    "urdf": Format("URDF", "For ROS and most simulators", ".urdf", _urdf),
    "mjcf": Format("MJCF", "For MuJoCo", ".xml", _mjcf),
    "latex": Format("LaTeX", "All of M, C and N, for pdflatex", ".tex", _latex),
    "c": Format("C99", "Equations for firmware: header, source, test", ".zip", _c),
    "plots-svg": Format(
        "Plots, SVG", "Positions, velocities, torques, energy", ".svg", _plots, True
    ),
    "plots-png": Format("Plots, PNG", "The same as an image", ".png", _plots, True),
    "csv": Format("Table, CSV", "Every number of the run", ".csv", _csv, True),
    "npz": Format("Trajectory, NPZ", "For NumPy and modurob", ".npz", _npz, True),
    "gif": Format("Film, GIF", "The run, in half a minute at most", ".gif", _film, True),
    "mp4": Format("Film, MP4", "The same as a video", ".mp4", _film, True),
}


def make(name: str, wish: Wish, progress: Callable[[float], Any]) -> tuple[str, bytes]:
    """The name of the file and its content."""
    if name not in FORMATS:
        raise StateError(f"no format '{name}': formats are {choices(FORMATS)}")
    chosen = FORMATS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"export{chosen.ending}"
        with writing(path):
            chosen.make(wish, path, progress)
        return f"{wish.name}{chosen.ending}", path.read_bytes()
