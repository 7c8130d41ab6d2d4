"""Walking: runs of a gait on the ground, measures of them, and tuning of gaits."""

from modurob.walking.metrics import WalkMetrics, walk_metrics
from modurob.walking.runs import Walk, measured, started, walk, walking_fields
from modurob.walking.tuning import TunedGait, evaluate, tune
from modurob.walking.zoo import zoo_walk

__all__ = [
    "TunedGait",
    "Walk",
    "WalkMetrics",
    "evaluate",
    "measured",
    "started",
    "tune",
    "walk",
    "walk_metrics",
    "walking_fields",
    "zoo_walk",
]
