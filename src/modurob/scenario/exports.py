"""Export formats: files for other programs, of a body or of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from modurob.compiler.emit_c import c_sources
from modurob.drawing import picture
from modurob.errors import StateError, choices
from modurob.interop import (
    write_cobra_assembly,
    write_cobra_modules,
    write_mjcf,
    write_srdf,
    write_urdf,
)
from modurob.model import Model
from modurob.modules.files import read_bytes, write_file, writing
from modurob.organism import Organism
from modurob.scenario.scenario import model_of, model_options
from modurob.scenario.settings import RunRecord, RunSettings
from modurob.sim import Trajectory
from modurob.symbolic import Equations

FPS, FILM_PX = 20.0, 480
FILM_S = 30.0  # at most; longer runs are shown faster
PICTURE_PX = 1200
MOST_TERMS = 30_000  # of one entry of the equations

Progress = Callable[[float], Any]


def _allow(paths: Iterable[Path]) -> None:
    """Let files be overwritten."""


@dataclass(frozen=True)
class ExportRequest:
    """A body, and perhaps a run of it, to be exported.

    Attributes:
        title: For people.
        word: Name of the robot in the files, and of the files.
        settings: Hinges, base and gravity of the model.
        run_file: The run's ``.npz`` file.
        record: Facts about the run.
        single: Whether C code has single precision.
        check: Called with the paths before they are written.
    """

    title: str
    word: str
    organism: Organism
    settings: RunSettings
    run_file: Path | None = None
    record: RunRecord | None = None
    single: bool = False
    check: Callable[[Iterable[Path]], None] = _allow

    def model(self) -> Model:
        """The equations of the body."""
        return model_of(self.organism, self.settings)

    def run(self) -> Trajectory:
        """The run."""
        if self.run_file is None:
            raise StateError("there is no run to export yet: press Run under Move")
        return Trajectory.load(self.run_file)

    def equations(self, symbols: str = "all") -> Equations:
        """The symbolic equations of the body, within a limit for one entry."""
        options = model_options(self.settings)
        return self.organism.equations(*options, symbols=symbols, limit=MOST_TERMS)


class ExportFormat(NamedTuple):
    """A format.

    Attributes:
        title, detail: For people.
        ending: Of its file; ``.zip`` where there are several.
        write: (request, path, progress) writes the file, or several beside it, and returns facts
            about them: ``files`` where there are others than the path.
        needs_run: Whether it shows a run.
    """

    title: str
    detail: str
    ending: str
    write: Callable[[ExportRequest, Path, Progress], dict[str, Any] | None]
    needs_run: bool = False


def _c(request: ExportRequest, path: Path, progress: Progress) -> dict[str, Any]:
    real = "float32" if request.single else "float64"
    sources = c_sources(request.model(), request.word, real)
    request.check([path.parent / name for name in sources.files()])
    files = sources.write(path.parent)
    counts = {key: dict(operations) for key, operations in sources.operations.items()}
    return {"files": files, "operations": counts}


def _cobra(request: ExportRequest, path: Path, progress: Progress) -> dict[str, Any]:
    files = [path.with_name(f"{request.word}_{what}.json") for what in ("modules", "assembly")]
    request.check(files)
    _make_folder(path)
    write_cobra_modules(request.organism, files[0])
    write_cobra_assembly(request.organism, files[1])
    return {"files": files}


def _one(write: Callable[[ExportRequest, Path, Progress], Any]) -> Any:
    """A writer of one file that checks its path first."""

    def checked(request: ExportRequest, path: Path, progress: Progress) -> None:
        request.check([path])
        _make_folder(path)
        write(request, path, progress)

    return checked


def _make_folder(path: Path) -> None:
    with writing(path.parent):
        path.parent.mkdir(exist_ok=True)


@_one
def _latex(request: ExportRequest, path: Path, progress: Progress) -> None:
    write_file(path, request.equations().latex(document=True).encode("utf-8"))


@_one
def _plots(request: ExportRequest, path: Path, progress: Progress) -> None:
    request.run().plot("q", "v", "tau", "energy", path=path, title=request.title)


@_one
def _film(request: ExportRequest, path: Path, progress: Progress) -> None:
    run = request.run()
    seconds = max(float(part.t[-1]) for part in run.parts)
    speed = max(1.0, seconds / FILM_S)
    run.animate(path, fps=FPS, speed=speed, size=FILM_PX, progress=progress)


@_one
def _scenario(request: ExportRequest, path: Path, progress: Progress) -> None:
    file = request.run_file and request.run_file.with_suffix(".scenario.json")
    if file is None or not file.exists():
        raise StateError(
            "there is no scenario of this run: press Run under Move to compute it anew"
        )
    write_file(path, read_bytes(file))


FORMATS: Mapping[str, ExportFormat] = {
    "organism": ExportFormat(
        "Organism", "For modurob's library and command line", ".json",
        _one(lambda request, path, _: request.organism.save(path)),
    ),
    "picture-svg": ExportFormat(
        "Picture, SVG", "The body at rest with names", ".svg",
        _one(lambda request, path, _: picture(request.organism, path, size=PICTURE_PX)),
    ),
    "urdf": ExportFormat(
        "URDF", "For ROS and most simulators", ".urdf",
        _one(lambda request, path, _: write_urdf(request.model(), path, name=request.word)),
    ),
    "urdf-ros2": ExportFormat(
        "URDF with ros2_control", "For controllers of ROS 2", ".urdf",
        _one(lambda request, path, _: write_urdf(
            request.model(), path, name=request.word, ros2_control="position")),
    ),
    "srdf": ExportFormat(
        "SRDF", "For MoveIt: groups, pairs that never collide", ".srdf",
        _one(lambda request, path, _: write_srdf(request.model(), path, name=request.word)),
    ),
    "mjcf": ExportFormat(
        "MJCF", "For MuJoCo", ".xml",
        _one(lambda request, path, _: write_mjcf(request.model(), path, name=request.word)),
    ),
    "mjcf-servo": ExportFormat(
        "MJCF with servos", "For MuJoCo: position servos and sensors", ".xml",
        _one(lambda request, path, _: write_mjcf(
            request.model(), path, name=request.word, actuators="position", sensors=True)),
    ),
    "cobra": ExportFormat("CoBRA", "A set of modules and the assembly", ".zip", _cobra),
    "latex": ExportFormat("LaTeX", "All of M, C and N, for pdflatex", ".tex", _latex),
    "c": ExportFormat("C99", "Equations for firmware: header, source, test", ".zip", _c),
    "plots-svg": ExportFormat(
        "Plots, SVG", "Positions, velocities, torques, energy", ".svg", _plots, True
    ),
    "plots-png": ExportFormat("Plots, PNG", "The same as an image", ".png", _plots, True),
    "scenario": ExportFormat(
        "Scenario", "To repeat the run: modurob run FILE", ".scenario.json", _scenario, True
    ),
    "csv": ExportFormat(
        "Table, CSV", "Every number of the run", ".csv",
        _one(lambda request, path, _: request.run().to_csv(path)), True,
    ),
    "npz": ExportFormat(
        "Trajectory, NPZ", "For NumPy and modurob", ".npz",
        _one(lambda request, path, _: request.run().save(path)), True,
    ),
    "gif": ExportFormat("Film, GIF", "The run, in half a minute at most", ".gif", _film, True),
    "mp4": ExportFormat("Film, MP4", "The same as a video", ".mp4", _film, True),
}  # fmt: skip


def export_format(name: str, formats: Mapping[str, ExportFormat] = FORMATS) -> ExportFormat:
    """A format by its name, or an error that lists them."""
    if name not in formats:
        raise StateError(f"no format '{name}': formats are {choices(formats)}")
    return formats[name]
