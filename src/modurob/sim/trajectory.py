"""`Trajectory`: the result of a simulation."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.errors import StateError
from modurob.model import Model
from modurob.organism import Organism
from modurob.sim.body_trajectory import BodyTrajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from modurob.sim.reconfiguration.events import EventReport
    from modurob.stepping import Ground
    from modurob.studio.viewer import View


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """The result of a simulation.

    A run without events has one part, whose arrays are attributes here too: `t`, `q`, `v`, `a`,
    `tau`, `channels`, `energy`, `momentum`. With `Dock` and `Undock` there are several `parts`.

    Attributes:
        parts: The bodies, in the order in which they came into being.
        audit: One entry for each event: momentum before and after, energy lost.
        status: ``finished``, ``canceled`` or ``stopped``.
        message: Why it did not finish.
        integrator: Name of the method.
    """

    parts: tuple[BodyTrajectory, ...]
    audit: tuple[EventReport, ...] = ()
    status: str = "finished"
    message: str = ""
    integrator: str = ""

    def _only(self, what: str) -> BodyTrajectory:
        if len(self.parts) == 1:
            return self.parts[0]
        names = ", ".join(f"parts[{k}] '{p.name}'" for k, p in enumerate(self.parts[:6]))
        raise StateError(
            f"the body changed during this run, so there are {len(self.parts)} parts with a "
            f"{what} each: {names}"
        )

    @property
    def model(self) -> Model:
        """The equations of the only part."""
        return self._only("model").model

    @property
    def t(self) -> np.ndarray:
        """(N,) times. [s]"""
        return self._only("t").t

    @property
    def q(self) -> np.ndarray:
        """(N, ..., nq) configurations. [rad, m]"""
        return self._only("q").q

    @property
    def v(self) -> np.ndarray:
        """(N, ..., nv) velocities. [rad/s, m/s]"""
        return self._only("v").v

    @property
    def a(self) -> np.ndarray:
        """(N, ..., nv) accelerations. [rad/s^2, m/s^2]"""
        return self._only("a").a

    @property
    def tau(self) -> np.ndarray:
        """(N, ..., nv) torques of the controller. [N m, N]"""
        return self._only("tau").tau

    @property
    def channels(self) -> Mapping[str, np.ndarray]:
        """Numbers that the controller recorded, by name, (N, ...) each."""
        return self._only("channels").channels

    @property
    def energy(self) -> np.ndarray:
        """(N, ...) kinetic plus potential. [J]"""
        return self._only("energy").energy

    @property
    def momentum(self) -> np.ndarray:
        """(N, ..., 6) linear, and angular about the world's origin. [N s, N m s]"""
        return self._only("momentum").momentum

    def at(self, t: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """State at any time: see `BodyTrajectory.at`."""
        return self._only("state").at(t)

    def member(self, index: int | tuple[int, ...]) -> Trajectory:
        """One state of a batch as a trajectory of its own."""
        return replace(self, parts=(self._only("batch").member(index),))

    # -- files and pictures ----------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file: NumPy's NPZ with a JSON header."""
        from modurob.sim.output.files import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trajectory:
        """Read what `save` wrote."""
        from modurob.sim.output.files import load

        return load(path)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a table: one row for each time, one column for each number, units in the head.

        With several parts, a column says which part a row belongs to; cells of joints that a part
        does not have stay empty.
        """
        from modurob.sim.output.export import to_csv

        to_csv(self, path)

    def to_bytes(self) -> bytes:
        """A compact binary for a player: a JSON header, then float32 arrays, little-endian.

        Holds times, states, torques, energies, channels and the poses of all bodies;
        `modurob.sim.output.export.from_bytes` reads it back.
        """
        from modurob.sim.output.export import to_bytes

        return to_bytes(self)

    def plot(
        self,
        *quantities: str,
        path: str | os.PathLike[str] | None = None,
        joints: Sequence[str] | None = None,
        degrees: bool = False,
        title: str = "",
        overlay: Trajectory | None = None,
    ) -> Figure:
        """Draw quantities over time, one panel below the other.

        Args:
            quantities: ``q`` or ``position``, ``v`` or ``velocity``, ``a`` or ``acceleration``,
                ``tau`` or ``torque``, ``energy``, ``momentum``, or any recorded channel.
            path: Where to write it, ending with ``.png``, ``.svg`` or ``.pdf``.
            joints: Only these.
            degrees: Show angles in degrees.
            overlay: Another run of the same body, drawn over this one in thin dashes.

        Returns:
            A Matplotlib figure outside of pyplot, to be changed or shown in a notebook.
        """
        from modurob.sim.output.plots import plot

        return plot(self, quantities, path, joints, degrees, title, overlay)

    def picture(
        self,
        path: str | os.PathLike[str],
        t: ArrayLike | None = None,
        *,
        organism: Organism | None = None,
        view: tuple[float, float] | None = None,
        size: int = 600,
    ) -> None:
        """Draw the body at a time, or at several side by side, into a PNG file.

        Args:
            t: One time or several; the end by default. [s]
            organism: The body, if the trajectory has none.
            view: (azimuth, elevation) of the eye, seen from the body. [deg]
            size: Longer side of each picture. [px]
        """
        from modurob.drawing.charts import check_ending
        from modurob.sim.output.film import Film

        check_ending(path, "pictures", (".png",))
        Film(self, organism, view, size).picture(path, t)

    def animate(
        self,
        path: str | os.PathLike[str],
        *,
        organism: Organism | None = None,
        fps: float = 25.0,
        speed: float = 1.0,
        view: tuple[float, float] | None = None,
        size: int = 480,
        progress: Callable[[float], Any] | None = None,
    ) -> None:
        """Make a film: a ``.gif``, or an ``.mp4`` where ffmpeg is (``pip install imageio-ffmpeg``).

        Args:
            organism: The body, if the trajectory has none.
            fps: Frames a second.
            speed: 0.5 shows it half as fast as it was.
            view: (azimuth, elevation) of the eye, seen from the body. [deg]
            size: Longer side. [px]
            progress: Called with the fraction done.
        """
        from modurob.sim.output import video
        from modurob.sim.output.film import Film

        video.check(path, fps)
        Film(self, organism, view, size).animate(path, fps, speed, progress)

    def view(self, *, ground: Ground | None = None) -> View:
        """The run in three dimensions, with a player and plots: in a notebook, or as a file.

        Needs the extra ``studio``. ``trajectory.view().save("run.html")`` writes one file that a
        browser opens without a network.

        Args:
            ground: Level or sloped ground that the run was on: its forces and the support polygon
                are drawn.
        """
        from modurob.studio.viewer import trajectory_view

        return trajectory_view(self, ground)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The form in a notebook."""
        from modurob.studio.notebook import bundle

        return bundle(self)

    def __repr__(self) -> str:
        status = "" if self.status == "finished" else f", {self.status}: {self.message}"
        what = f"{len(self.parts)} parts until {max(part.t[-1] for part in self.parts):g} s"
        if len(self.parts) == 1:
            what = repr(self.parts[0]).removeprefix("<BodyTrajectory").strip(" :>")
        return f"<Trajectory: {what}, {self.integrator}{status}>"


class SimulationError(StateError):
    """A run that stopped early: it diverged, its controller failed, or a docking was missed.

    Attributes:
        time: When it stopped. [s]
        trajectory: Everything until then.
    """

    def __init__(self, message: str, time: float, trajectory: Trajectory) -> None:
        super().__init__(message)
        self.time, self.trajectory = time, trajectory

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.time, self.trajectory)
