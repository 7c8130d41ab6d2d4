"""Kinematics of a model, for users: checked input, any batch shape."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import refuse_states
from modurob.equations import kinematics as equations
from modurob.errors import StateError, choices
from modurob.model import Model
from modurob.spatial import se3, so3

POSE_NUMBERS = 64  # of a link: its pose, its joint's motion, and the products on the way
FRAMES = ("body", "world", "aligned")
REACHED = 1e-10  # residual [m, rad] at which inverse kinematics is content
STEPS = 200  # damped Gauss-Newton steps from each start; most need ten
STUCK = 1e-8  # relative decrease of the squared residual below which a start has given its best
LEAST_DAMPING, MOST_DAMPING = 1e-12, 1e8


def link_poses(model: Model, q: np.ndarray) -> np.ndarray:
    """(..., links, 4, 4) poses of the links at a checked configuration."""
    refuse_states("kinematics", math.prod(q.shape[:-1]), POSE_NUMBERS * len(model.mass))
    return equations.link_poses(
        model.parent.tolist(),
        model.placement,
        model.screw,
        model.joints_of(q),
        model.base_of(q),
    )


def forward_kinematics(model: Model, q: ArrayLike) -> np.ndarray:
    """See `Model.forward_kinematics`."""
    rows = model.dynamics.quantity("forward_kinematics", q)
    T_wb = np.zeros_like(rows, shape=(*rows.shape[:-2], 4, 4))
    T_wb[..., :3, :] = rows
    T_wb[..., 3, 3] = 1.0
    return T_wb


def jacobian(model: Model, q: ArrayLike, body: str | int, frame: str = "body") -> np.ndarray:
    """See `Model.jacobian`."""
    if frame not in FRAMES:
        raise StateError(f"frame must be one of {choices(FRAMES)}, got {frame!r}")
    index, q = model.body_index(body), model.check_configuration(q)
    near, q_near = model.near_base(q)  # differences of positions keep their digits there
    T_wb, J = _body(near, link_poses(near, q_near), index)
    if frame == "body":
        return J
    if frame == "world":
        T_wb = link_poses(model, q)[..., model.body_link[index], :, :] @ model.body_placement[index]
        return se3.Ad(T_wb) @ J
    R = se3.pose(T_wb[..., :3, :3], np.zeros(3))
    return se3.Ad(R) @ J


def _body(model: Model, T_w: np.ndarray, index: int) -> tuple[np.ndarray, np.ndarray]:
    """Pose and body Jacobian of one body."""
    link = int(model.body_link[index])
    T_wb = T_w[..., link, :, :] @ model.body_placement[index]
    path = _path(model, link)
    return T_wb, equations.body_jacobian(path, model.screw, T_w, T_wb, model.free_base)


def _path(model: Model, link: int) -> list[int]:
    """The links between the base and a link, itself included."""
    path = []
    while link > 0:
        path.append(link)
        link = int(model.parent[link - 1])
    return path[::-1]


def jacobian_rate(
    model: Model, q: ArrayLike, v: ArrayLike, body: str | int, frame: str = "body"
) -> np.ndarray:
    """See `Model.jacobian_rate`."""
    if frame not in FRAMES:
        raise StateError(f"frame must be one of {choices(FRAMES)}, got {frame!r}")
    index = model.body_index(body)
    if frame != "world":  # the same near the origin, where no digits are lost
        model, q = model.near_base(model.check_configuration(q))
    path = _path(model, int(model.body_link[index]))
    moves = np.zeros(model.nv, dtype=bool)
    moves[: model.nv - len(model.joint_names)] = True
    moves[model.nv - len(model.joint_names) + np.array(path, dtype=int) - 1] = True
    rate = np.where(moves, model.dynamics.quantity("joint_screw_rates", q, v), 0.0)
    if frame == "world":
        return rate
    J = np.where(moves, model.dynamics.quantity("joint_screws", q), 0.0)
    T_wb = forward_kinematics(model, q)[..., index, :, :]
    V = (J @ model.check_velocity(v)[..., None])[..., 0]  # of the body, about the world's origin
    if frame == "body":  # d/dt Ad(T_bw) J = Ad(T_bw) (dJ/dt - V x J)
        return se3.Ad(se3.inverse(T_wb)) @ (rate - se3.ad(V) @ J)
    p = T_wb[..., :3, 3]
    velocity = V[..., :3] + so3.cross(V[..., 3:], p)
    rate[..., :3, :] -= so3.hat(p) @ rate[..., 3:, :] + so3.hat(velocity) @ J[..., 3:, :]
    return rate


@dataclass(frozen=True)
class IkResult:
    """What inverse kinematics found.

    Attributes:
        q: (nq,) the best configuration, within the joint limits.
        reached: Whether all targets are met to 1e-10.
        residual: Largest remaining error of a coordinate. [m, rad]
        starts: How many starts it took.
    """

    q: np.ndarray
    reached: bool
    residual: float
    starts: int


def inverse_kinematics(
    model: Model,
    targets: Mapping[str, ArrayLike],
    q0: ArrayLike | None = None,
    *,
    restarts: int = 30,
    rng: np.random.Generator | None = None,
) -> IkResult:
    """See `Model.inverse_kinematics`."""
    if not isinstance(targets, Mapping):
        raise StateError(
            f"targets are a mapping from body names to poses, got {type(targets).__name__}"
        )
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise StateError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    wanted = [(model.body_index(body), _target(body, goal)) for body, goal in targets.items()]
    if not wanted:
        raise StateError("inverse kinematics needs at least one target")
    rng = np.random.default_rng(0) if rng is None else rng
    q = model.neutral() if q0 is None else model.check_configuration(q0)
    if q.shape != (model.nq,):
        raise StateError(f"q0 is one configuration of shape ({model.nq},), got {q.shape}")
    if model.near.counts.all():  # no position in q: solved near the base, to its digits
        wanted = [(index, _shifted(goal, -model.near.place)) for index, goal in wanted]
        model = model.near.model
    best, residual = _descend(model, wanted, _within(model, q))
    starts = 1
    while residual > REACHED and starts <= restarts:
        found, left = _descend(model, wanted, model.random_configuration(rng))
        best, residual = (found, left) if left < residual else (best, residual)
        starts += 1
    return IkResult(best, residual <= REACHED, residual, starts)


def _target(body: str, goal: ArrayLike) -> np.ndarray:
    try:
        array = np.asarray(goal, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0)
    if not np.isfinite(array).all():
        raise StateError(f"the target of '{body}' has entries that are not finite")
    if array.shape == (3,):
        return array
    if array.shape == (4, 4) and so3.is_rotation(array[:3, :3]):
        return array
    raise StateError(
        f"the target of '{body}' must be a (3,) position or a (4, 4) pose with a rotation, "
        f"got shape {array.shape}"
    )


def _shifted(goal: np.ndarray, way: np.ndarray) -> np.ndarray:
    """A (3,) position or (4, 4) pose, moved."""
    moved = goal.copy()
    position = moved if moved.ndim == 1 else moved[:3, 3]
    position += way
    return moved


def _within(model: Model, q: np.ndarray) -> np.ndarray:
    """The nearest configuration within the limits."""
    inside = q.copy()
    joints = inside[7:] if model.free_base else inside
    np.clip(joints, model.lower, model.upper, out=joints)
    return inside


def _descend(
    model: Model, wanted: list[tuple[int, np.ndarray]], q: np.ndarray
) -> tuple[np.ndarray, float]:
    """Levenberg-Marquardt on the configuration manifold, projected onto the joint limits."""
    error, J = _errors(model, wanted, q)
    damping = 1e-3
    for _ in range(STEPS):
        if np.abs(error).max() <= REACHED:
            break
        step = _step(model, q, error, J, damping)
        trial = _within(model, model.integrate(q, step))
        trial_error, trial_J = _errors(model, wanted, trial)
        gained = error @ error - trial_error @ trial_error
        if gained > 0:
            done = gained <= STUCK * (error @ error)
            q, error, J = trial, trial_error, trial_J
            damping = max(damping / 10, LEAST_DAMPING)
            if done:
                break
        else:
            damping *= 10
            if damping > MOST_DAMPING:
                break
    return q, float(np.abs(error).max())


def _step(
    model: Model, q: np.ndarray, error: np.ndarray, J: np.ndarray, damping: float
) -> np.ndarray:
    """The damped step; joints at a limit that it would push outward are taken out."""
    joints, offset = model.joints_of(q), model.nv - len(model.joint_names)
    usable = np.ones(model.nv, dtype=bool)
    while True:
        A = J[:, usable]
        normal = A.T @ A + damping * np.eye(A.shape[1])
        step = np.zeros(model.nv)
        step[usable] = np.linalg.solve(normal, A.T @ error)
        outward = (joints <= model.lower) & (step[offset:] < 0)
        outward |= (joints >= model.upper) & (step[offset:] > 0)
        if not outward.any():
            return step
        usable[offset:] &= ~outward


def _errors(
    model: Model, wanted: list[tuple[int, np.ndarray]], q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What is missing to the targets, and how the velocities close it."""
    T_w = link_poses(model, q)
    errors, rows = [], []
    for index, goal in wanted:
        T_wb, J = _body(model, T_w, index)
        R = T_wb[:3, :3]
        position = goal if goal.shape == (3,) else goal[:3, 3]
        errors.append(position - T_wb[:3, 3])
        rows.append(R @ J[:3])
        if goal.shape == (4, 4):
            turn = so3.log(R.T @ goal[:3, :3])
            errors.append(turn)
            # d log(R^T R_goal) = -J_l(turn)^-1 w with w the body's angular velocity
            rows.append(so3.left_jacobian_inverse(turn) @ J[3:])
    return np.concatenate(errors), np.concatenate(rows)
