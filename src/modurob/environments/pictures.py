"""Pictures of environments: a camera that follows each body, its target, and marks on the floor."""

from __future__ import annotations

from itertools import product

import numpy as np

from modurob.drawing import camera as cameras
from modurob.drawing import scene as scenes
from modurob.drawing import solids
from modurob.drawing.raster import paint, rasterize
from modurob.drawing.scene import Facet, Scene
from modurob.environments.batch import TaskBatch
from modurob.environments.tasks import DockTask, ReachTask, Tip
from modurob.organism import Organism
from modurob.organism.docking import mated_pose
from modurob.spatial import so3

WIDTH_PX, SAMPLES = 480, 2
AZIMUTH_DEG, ELEVATION_DEG = -62.0, 22.0
CORNERS = np.array(list(product((-0.5, 0.5), (-0.5, 0.5), (0.0, 0.6))))  # of the view, in sizes
TARGET_COLOR, MARK_COLOR = (0.88, 0.14, 0.37), (0.75, 0.75, 0.75)
BALL_M = 0.15  # radius of a target, in sizes of a module
MARKS, MARK_M = 4, 0.015  # marks on the floor to each side, and half their width in sizes


class TrackingCamera:
    """A camera for each body that moves along with it and keeps its distance."""

    def __init__(self, batch: TaskBatch) -> None:
        self._batch = batch
        self._sizes: dict[int, float] = {}

    def frame(self, k: int) -> np.ndarray:
        """(height, width, 3) picture of body k, top row first; bytes."""
        batch, population = self._batch, self._batch.population
        organism, model = population.organism(k), population.model(k)
        scene = scenes.build(organism, model, batch.now.q[k, : model.nq])
        size = self._sizes.setdefault(k, 1.5 * float(np.ptp(scene.points, axis=0).max()))
        x, y, _ = batch.now.center[k] if model.free_base else organism.base_pose[:3, 3]
        floor = scene.floor if batch.ground is None else batch.ground.surface(x, y)[0]
        foot, task = np.array([x, y, floor]), batch.task
        parts = [scene]
        if isinstance(task, ReachTask):
            parts.append(_target(task, task.tips[k], task.target[k], organism))
        parts.append(_marks(foot, size))
        camera = cameras.fit(
            foot + size * CORNERS, AZIMUTH_DEG, ELEVATION_DEG, SAMPLES * WIDTH_PX, 2 * SAMPLES
        )
        scene = scenes.merged(parts)
        image = paint(scene, rasterize(scene.facets, camera), camera, SAMPLES, 0)
        return (255 * image[::-1] + 0.5).astype(np.uint8)


def _target(task: ReachTask, tip: Tip, T: np.ndarray, organism: Organism) -> Scene:
    """A ball at the target, or the module that waits to be docked."""
    if isinstance(task, DockTask):
        kind = organism.kind(tip.module)
        partner = Organism.start(kind)
        model = partner.model("physical", "free")
        T = mated_pose(T, kind.port_pose(tip.port), 0)
        q = model.neutral()
        q[:3], q[3:7] = T[:3, 3], so3.to_quaternion(T[:3, :3])
        return scenes.build(partner, model, q)
    ball = solids.polygons("sphere", (BALL_M * tip.length,), 16)
    facets = [Facet(each.corners + T[:3, 3], np.ones(len(each.corners)), 0) for each in ball]
    return _plain(facets, TARGET_COLOR, T[None, :3, 3])


def _marks(foot: np.ndarray, size: float) -> Scene:
    """Small squares on the floor that stay where they are."""
    apart = size / MARKS
    square = MARK_M * size * np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    first = apart * np.round(foot / apart)
    steps = product(range(-MARKS, MARKS + 1), repeat=2)
    places = [np.array([*(first[:2] + apart * np.array(each)), foot[2]]) for each in steps]
    return _plain([Facet(p + square, np.ones(4), 0) for p in places], MARK_COLOR, foot[None])


def _plain(facets: list[Facet], color: tuple[float, ...], at: np.ndarray) -> Scene:
    """A scene of one color."""
    return Scene(facets, np.array([color]), np.array([0]), at, at, np.zeros((0, 2, 3)))
