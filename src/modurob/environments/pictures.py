"""Pictures of environments: a camera that follows each body."""

from __future__ import annotations

from itertools import product

import numpy as np

from modurob.drawing import camera as cameras
from modurob.drawing import scene as scenes
from modurob.drawing.raster import paint, rasterize
from modurob.environments.batch import TaskBatch
from modurob.environments.tasks import DockTask, ReachTask
from modurob.organism import Organism
from modurob.organism.docking import mated_pose
from modurob.spatial import so3

WIDTH_PX, SAMPLES = 480, 2
AZIMUTH_DEG, ELEVATION_DEG = -62.0, 22.0
CORNERS = np.array(list(product((-1.0, 1.0), (-1.0, 1.0), (0.0, 1.0))))


class TrackingCamera:
    """A camera for each body that moves along with it and keeps its distance."""

    def __init__(self, batch: TaskBatch) -> None:
        self._batch = batch
        self._extent: dict[int, float] = {}

    def frame(self, k: int = 0) -> np.ndarray:
        """(height, width, 3) picture of body k, top row first; bytes."""
        batch, population = self._batch, self._batch.population
        organism, model = population.organism(k), population.model(k)
        q = np.nan_to_num(batch.now.q[k, : model.nq])
        if model.free_base and not q[3:7].any():
            q[6] = 1.0  # a body that has failed
        scene = scenes.build(organism, model, q)
        center, floor = np.nan_to_num(batch.now.center[k]), scene.floor
        if batch.ground is not None:
            floor = float(batch.ground.surface(center[:1], center[1:2])[0][0])
        size = self._extent.setdefault(k, 1.2 * float(np.ptp(scene.points, axis=0).max()))
        foot = np.array([*center[:2], floor])
        seen = foot + size * CORNERS * (0.75, 0.75, 1.0)
        camera = cameras.fit(seen, AZIMUTH_DEG, ELEVATION_DEG, SAMPLES * WIDTH_PX, 2 * SAMPLES)
        scene = scene._replace(points=np.concatenate([scene.points, foot[None]]))
        image = paint(scene, rasterize(scene.facets, camera), camera, SAMPLES, 0)
        return (255 * image[::-1] + 0.5).astype(np.uint8)
