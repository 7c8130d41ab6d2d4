"""Walking: runs of a gait on the ground, measures of them, and tuning of gaits."""

from modurob.walking.metrics import WalkMetrics, walk_metrics
from modurob.walking.runs import Walk, walk

__all__ = ["Walk", "WalkMetrics", "walk", "walk_metrics"]
