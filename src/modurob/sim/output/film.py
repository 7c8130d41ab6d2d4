"""Pictures and animations of trajectories in three dimensions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.drawing import camera as cameras
from modurob.drawing import scene as scenes
from modurob.drawing.raster import paint, rasterize
from modurob.drawing.scene import Scene
from modurob.errors import StateError
from modurob.organism import Organism
from modurob.sim.body_trajectory import BodyTrajectory
from modurob.sim.output import video
from modurob.sim.output.export import refuse_batch
from modurob.sim.trajectory import Trajectory

SAMPLES = 2  # per pixel and direction
LOOKS = 500  # moments that the camera must have in view
SMALLEST, LARGEST = 64, 2048  # pixels of the longer side
FLAT = 0.45  # height over width below which a scene is seen from higher up


class Film:
    """A fixed camera with bodies that move through its view.

    Args:
        organism: The body, if the trajectory has none.
        view: (azimuth, elevation) of the eye, seen from the scene. [deg]
        size: Longer side. [px]
    """

    def __init__(
        self,
        trajectory: Trajectory,
        organism: Organism | None,
        view: tuple[float, float] | None,
        size: int,
    ) -> None:
        if not SMALLEST <= size <= LARGEST:
            raise StateError(f"a picture has {SMALLEST} to {LARGEST} pixels, got size {size}")
        for part in trajectory.parts:
            refuse_batch(part, "a picture")
        self._parts = [(part, _organism(part, organism)) for part in trajectory.parts]
        self.begin = min(float(part.t[0]) for part in trajectory.parts)
        self.end = max(float(part.t[-1]) for part in trajectory.parts)
        seen = np.concatenate([_reached(part, organism) for part, organism in self._parts])
        self._floor = float(seen[:, 2].min())
        shadow = scenes.on_floor(seen, self._floor)
        everything = np.concatenate([seen, shadow])
        azimuth, elevation = _view(seen) if view is None else view
        # an even number of whole pixels, as video encoders need
        self._camera = cameras.fit(everything, azimuth, elevation, SAMPLES * size, 2 * SAMPLES)

    def _scene(self, t: float) -> Scene:
        """Everything that is there at a time; an event belongs to what comes after it."""
        there = [
            (part, organism)
            for part, organism in self._parts
            if part.t[0] <= t <= part.t[-1] and (t < part.t[-1] or part.t[-1] == self.end)
        ]
        first = self._parts[0][0].name  # its base gets the outline, whoever else is there
        there.sort(key=lambda pair: pair[0].name != first)
        return scenes.merged([scenes.build(o, part.model, part.at(t)[0]) for part, o in there])

    def frame(self, t: float) -> np.ndarray:
        """(height, width, 3) of bytes, top row first."""
        scene = self._scene(t)
        # the floor stays where it is while the bodies move
        foot = np.append(scene.points[:, :2].mean(axis=0), self._floor)
        scene = scene._replace(points=np.concatenate([scene.points, foot[None]]))
        buffers = rasterize(scene.facets, self._camera)
        image = paint(scene, buffers, self._camera, SAMPLES, 0)
        return (255 * image[::-1] + 0.5).astype(np.uint8)

    def frames(
        self, times: np.ndarray, progress: Callable[[float], Any] | None = None
    ) -> Iterator[np.ndarray]:
        """Frames with the time in their upper left corner."""
        for k, t in enumerate(times.tolist()):
            if progress is not None:
                progress(k / len(times))
            yield video.stamped(self.frame(t), f"{t:.2f} s")

    def animate(
        self,
        path: str | os.PathLike[str],
        fps: float,
        speed: float,
        progress: Callable[[float], Any] | None = None,
    ) -> None:
        """See `Trajectory.animate`."""
        if not speed > 0:
            raise StateError(f"speed must be positive, got {speed!r}")
        count = max(2, round((self.end - self.begin) * fps / speed) + 1)
        frames = self.frames(np.linspace(self.begin, self.end, count), progress)
        video.write(path, frames, fps)

    def picture(self, path: str | os.PathLike[str], t: ArrayLike | None) -> None:
        """See `Trajectory.picture`."""
        times = np.atleast_1d(np.asarray(self.end if t is None else t, dtype=float))
        if times.ndim != 1 or not np.all((times >= self.begin) & (times <= self.end)):
            span = f"between {self.begin:g} and {self.end:g} s"
            raise StateError(f"the time must lie {span}, got {t!r}")
        video.write_png(path, list(self.frames(times)))


def _organism(part: BodyTrajectory, given: Organism | None) -> Organism:
    found = part.organism if given is None else given
    if found is None:
        raise StateError("to draw a trajectory, say whose it is: pass organism=")
    missing = [name for name in part.model.modules if name not in found]
    if missing or len(found) != len(part.model.modules):
        raise StateError("organism is not the one that the trajectory belongs to")
    return found


def _reached(part: BodyTrajectory, organism: Organism) -> np.ndarray:
    """(n, 3) corners of boxes around the solids of the modules, wherever they come."""
    q, _ = part.at(np.linspace(part.t[0], part.t[-1], LOOKS))
    return scenes.reached(organism, part.model, q)


def _view(points: np.ndarray) -> tuple[float, float]:
    """Across the longer side, from higher up when the scene is flat."""
    reach = np.ptp(points, axis=0)
    azimuth = -62.0 if reach[0] >= reach[1] else -28.0
    return azimuth, 40.0 if reach[2] < FLAT * max(reach[0], reach[1]) else 18.0
