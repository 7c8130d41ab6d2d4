"""Kinematics of one organism on traced scalars: poses of its modules, and its center of mass."""

from __future__ import annotations

import numpy as np

from modurob.compiler import driver
from modurob.compiler.emit_llvm import Slot
from modurob.compiler.fused import Trace
from modurob.compiler.trace import lifted
from modurob.equations import mass_matrix as crba
from modurob.equations.inverse_dynamics import base_rotation
from modurob.equations.links import joint_pose
from modurob.equations.vectors import Mat, Vec, mat, vec
from modurob.model import Model
from modurob.model.frames import JointFrames, NearBase, joint_frames

NOISE = 1e-15  # of the largest entry: what turning a frame leaves of a zero or a one


def traced_poses(model: Model) -> Trace:
    """The poses of the modules' frames in the world: 12 results each, three rows of [R | p]."""
    frames = _frames(model)
    t = Trace(frames.links(), frames.sign, model.gravity, model.free_base)
    T_w = [_base(t, model)]
    for link, q in zip(t.links[1:], t.displacements(), strict=True):
        T_w.append(_product(T_w[link.parent], joint_pose(link, q)))
    results = []
    for body in model.modules.values():
        link = int(model.body_link[body])
        placed = model.body_placement[body]
        to_joint_frame = frames.turn[link].T
        R, p = _clean(to_joint_frame @ placed[:3, :3]), _clean(to_joint_frame @ placed[:3, 3])
        R_wb, p_wb = _product(T_w[link], (mat(R), vec(p)))
        for i in range(3):
            results += [*R_wb.row(i), p_wb[i]]
    _give(t, results)
    return t


def traced_center_of_mass(model: Model) -> Trace:
    """The center of mass of the whole organism in the world, a fixed base included."""
    frames = _frames(model)
    t = Trace(frames.links(), frames.sign, model.gravity, model.free_base)
    # a free base's block of M couples pushing and turning by -hat(h), h the first moment of mass
    M = crba.mass_matrix(t.links, t.displacements(), free_base=True)
    h = Vec([M[1][5], M[2][3], M[0][4]])
    R, p = _base(t, model)
    _give(t, [*(p + R @ (h * (1.0 / float(np.sum(model.mass)))))])
    return t


def _frames(model: Model) -> JointFrames:
    """Joint frames where the robot stands; `model.frames` are those near its base."""
    return joint_frames(NearBase(model, np.ones(model.nq), np.zeros(3)))


def _base(t: Trace, model: Model) -> tuple[Mat, Vec]:
    if not model.free_base:
        return mat(_clean(model.base_pose[:3, :3])), vec(model.base_pose[:3, 3])
    return base_rotation(t.base(driver.BASE_Q + 3, 4)), Vec(t.base(driver.BASE_Q, 3))


def _product(T_ab: tuple[Mat, Vec], T_bc: tuple[Mat, Vec]) -> tuple[Mat, Vec]:
    (R_ab, p_ab), (R_bc, p_bc) = T_ab, T_bc
    return R_ab @ R_bc, p_ab + R_ab @ p_bc


def _clean(x: np.ndarray) -> np.ndarray:
    """Without the rounding errors of quarter turns, so that zeros and ones vanish."""
    whole, scale = np.round(x), np.abs(x).max()
    return np.where(np.abs(x - whole) <= NOISE * scale, whole, x)


def _give(t: Trace, results: list) -> None:
    for k, value in enumerate(lifted(t.graph, results)):
        t.outputs.append((Slot("%states", k), value))
