"""Motion by hand: poses at times, which a run goes through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from modurob import StateError
from modurob.scenario.settings import TIME

SAME_S = 1e-6  # between the times of two keyframes


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
    return _rows([*kept, frame])


def without(points: Points, time: float) -> dict[str, tuple[float, ...]]:
    """The points without the keyframe at a time."""
    return _rows([each for each in frames(points) if abs(each.time - time) > SAME_S])


def _rows(found: list[KeyFrame]) -> dict[str, tuple[float, ...]]:
    """Rows of equal length; a joint that a keyframe does not name is at zero there."""
    if not found:
        return {}
    found = sorted(found, key=lambda frame: frame.time)
    joints = dict.fromkeys(joint for frame in found for joint in frame.pose)
    rows = {joint: tuple(frame.pose.get(joint, 0.0) for frame in found) for joint in joints}
    return {TIME: tuple(frame.time for frame in found), **rows}
