"""Rotations, poses, twists, wrenches and inertias, over any scalar type.

Linear parts come first: V = (v; w), F = (f; n). `T_ab` is the pose of frame b in frame a, so that
`T_ac = T_ab @ T_bc`. Elements may be numbers, SymPy expressions or traced scalars (see `scalars`).
"""

from . import inertia, scalars, se3, so3
from .inertia import at_center, at_origin, inertia_flaw, moved, spatial_inertia, union
from .scalars import atan2, cos, cosc, sin, sinc, sincc, sqrt, stack
from .se3 import (
    Ad,
    ad,
    bracket,
    inverse,
    pose,
    position_of,
    rotation_of,
    screw_motion,
    transform_twist,
    transform_wrench,
)
from .so3 import from_quaternion, from_rpy, is_rotation, rotation, to_quaternion

__all__ = [
    "Ad",
    "ad",
    "at_center",
    "at_origin",
    "atan2",
    "bracket",
    "cos",
    "cosc",
    "from_quaternion",
    "from_rpy",
    "inertia",
    "inertia_flaw",
    "inverse",
    "is_rotation",
    "moved",
    "pose",
    "position_of",
    "rotation",
    "rotation_of",
    "scalars",
    "screw_motion",
    "se3",
    "sin",
    "sinc",
    "sincc",
    "so3",
    "spatial_inertia",
    "sqrt",
    "stack",
    "to_quaternion",
    "transform_twist",
    "transform_wrench",
    "union",
]
