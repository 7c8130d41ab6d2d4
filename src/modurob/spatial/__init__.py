"""Rotations, poses, twists, wrenches and inertias, over any scalar type.

Linear parts come first: V = (v; w), F = (f; n). `T_ab` is the pose of frame b in frame a, so that
`T_ac = T_ab @ T_bc`. Elements may be numbers, SymPy expressions or traced scalars (see `scalars`).
"""

from modurob.spatial import inertia, scalars, se3, so3

__all__ = ["inertia", "scalars", "se3", "so3"]
