"""Motion by hand: poses at times, which a run goes through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from modurob import StateError
from modurob.scenario.settings import TIME

SAME_S = 1e-6  # between the times of two keyframes
ON_PATH = 16  # places of a path that was drawn
SHORTEST_M = 1e-3  # of a path


class KeyFrame(NamedTuple):
    """A pose at a time: joint displacements by name. [s; rad, m]"""

    time: float
    pose: dict[str, float]


Points = Mapping[str, tuple[float, ...]]  # rows of `RunSettings.points`


def frames(points: Points) -> list[KeyFrame]:
    """The keyframes of a motion through points, in the order of time."""
    joints = [name for name in points if name != TIME]
    return [
        KeyFrame(time, {joint: points[joint][k] for joint in joints})
        for k, time in enumerate(points.get(TIME, ()))
    ]


def with_frame(points: Points, frame: KeyFrame) -> dict[str, tuple[float, ...]]:
    """The points with one more keyframe; one at the same time is replaced."""
    if not 0.0 <= frame.time < float("inf"):
        raise StateError(f"the time of a keyframe must be 0 or more, got {frame.time:g}")
    kept = [each for each in frames(points) if abs(each.time - frame.time) > SAME_S]
    return rows([*kept, frame])


def without(points: Points, time: float) -> dict[str, tuple[float, ...]]:
    """The points without the keyframe at a time."""
    return rows([each for each in frames(points) if abs(each.time - time) > SAME_S])


def spread(count: int, most: int) -> np.ndarray:
    """Rows out of a count, evenly, with the first and the last."""
    return np.unique(np.linspace(0, count - 1, most).round().astype(int))


def along(path: list[list[float]]) -> np.ndarray:
    """(ON_PATH, 3) places of a drawn path for equal steps of time, slow at both ends. [m]"""
    places = np.array(path, dtype=float).reshape(-1, 3)
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(places, axis=0), axis=1))])
    if not way[-1] > SHORTEST_M:
        raise StateError("the path is too short: press on a body, drag it along, and let go")
    eased = (1.0 - np.cos(np.linspace(0.0, np.pi, ON_PATH))) / 2.0
    return np.stack([np.interp(eased * way[-1], way, axis) for axis in places.T], axis=1)


def rows(found: list[KeyFrame]) -> dict[str, tuple[float, ...]]:
    """Rows of equal length; a joint that a keyframe does not name is at zero there."""
    if not found:
        return {}
    found = sorted(found, key=lambda frame: frame.time)
    joints = dict.fromkeys(joint for frame in found for joint in frame.pose)
    rows = {joint: tuple(frame.pose.get(joint, 0.0) for frame in found) for joint in joints}
    return {TIME: tuple(frame.time for frame in found), **rows}
