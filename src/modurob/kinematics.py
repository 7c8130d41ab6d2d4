"""Kinematics of a model, for users: checked input, any batch shape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import generator, refuse_states
from modurob.errors import StateError, choices
from modurob.model import Model
from modurob.model.validation import UNIT_ROW, common_batch
from modurob.spatial import se3, so3

POSE_NUMBERS = 28  # of a body: its rows [R | p], and the pose that they become
FRAMES = ("body", "world", "aligned")
REACHED = 1e-10  # residual [m, rad] at which inverse kinematics ends
STEPS = 200  # damped Gauss-Newton steps from each start; most need ten
STUCK = 1e-8  # relative decrease of the squared residual below which a start is at its minimum
LEAST_DAMPING, MOST_DAMPING = 1e-12, 1e8

# body, (N, 3) positions or (N, 4, 4) poses, and the (3,) point of the body that has to be there
Goals = Sequence[tuple[int, np.ndarray, np.ndarray]]


def forward_kinematics(model: Model, q: ArrayLike) -> np.ndarray:
    """See `Model.forward_kinematics`."""
    states = math.prod(getattr(q, "shape", ())[:-1])
    refuse_states("the forward kinematics", states, POSE_NUMBERS * model.nbodies)
    rows = model.dynamics.quantity("forward_kinematics", q)
    T_wb = np.zeros_like(rows, shape=(*rows.shape[:-2], 4, 4))
    T_wb[..., :3, :] = rows
    T_wb[..., 3, 3] = 1.0
    return T_wb


def jacobian(model: Model, q: ArrayLike, body: str | int, frame: str) -> np.ndarray:
    """See `Model.jacobian`."""
    model, q, index = _at_body(model, q, body, frame)
    J = _moving(model, index, model.dynamics.quantity("joint_screws", q))
    if frame == "world":
        return J
    T_wb = forward_kinematics(model, q)[..., index, :, :]
    if frame == "body":
        return se3.Ad(se3.inverse(T_wb)) @ J
    J[..., :3, :] -= so3.hat(T_wb[..., :3, 3]) @ J[..., 3:, :]
    return J


def jacobian_rate(
    model: Model, q: ArrayLike, v: ArrayLike, body: str | int, frame: str
) -> np.ndarray:
    """See `Model.jacobian_rate`."""
    model, q, index = _at_body(model, q, body, frame)
    rate = _moving(model, index, model.dynamics.quantity("joint_screw_rates", q, v))
    if frame == "world":
        return rate
    J = _moving(model, index, model.dynamics.quantity("joint_screws", q))
    T_wb = forward_kinematics(model, q)[..., index, :, :]
    V = (J @ model.check_velocity(v)[..., None])[..., 0]  # of the body, about the world's origin
    if frame == "body":  # d/dt Ad(T_bw) J = Ad(T_bw) (dJ/dt - V x J)
        return se3.Ad(se3.inverse(T_wb)) @ (rate - se3.ad(V) @ J)
    p = T_wb[..., :3, 3]
    velocity = V[..., :3] + so3.cross(V[..., 3:], p)
    rate[..., :3, :] -= so3.hat(p) @ rate[..., 3:, :] + so3.hat(velocity) @ J[..., 3:, :]
    return rate


def _at_body(
    model: Model, q: ArrayLike, body: str | int, frame: str
) -> tuple[Model, ArrayLike, int]:
    """The model to compute with, a configuration of it, and the number of a body."""
    if frame not in FRAMES:
        raise StateError(f"frame must be one of {choices(FRAMES)}, got {frame!r}")
    index, model = model.body_index(body), model._on_cpu
    if frame != "world":  # the same near the origin, where no digits are lost
        model, q = model._near_base(model.check_configuration(q))
    return model, q, index


def _moving(model: Model, body: int, columns: np.ndarray) -> np.ndarray:
    """Columns (..., 6, nv) of the velocities that move a body; zeros for the others."""
    return np.where(model._moving_columns[model.body_link[body]], columns, 0.0)


@dataclass(frozen=True, eq=False)
class IkResult:
    """Result of inverse kinematics, for targets of batch shape (...).

    Attributes:
        q: (..., nq) the best configurations, within the joint limits.
        reached: (...) whether all targets are met to 1e-10.
        residual: (...) largest remaining error of a coordinate. [m, rad]
        starts: (...) number of starts it took.
    """

    q: np.ndarray
    reached: bool | np.ndarray
    residual: float | np.ndarray
    starts: int | np.ndarray


def inverse_kinematics(
    model: Model,
    targets: Mapping[str, ArrayLike],
    q0: ArrayLike | None = None,
    *,
    points: Mapping[str, ArrayLike] | None = None,
    restarts: int = 30,
    rng: np.random.Generator | None = None,
) -> IkResult:
    """See `Model.inverse_kinematics`."""
    if not isinstance(targets, Mapping):
        raise StateError(
            f"targets are a mapping from body names to poses, got {type(targets).__name__}"
        )
    rng = generator(rng, "inverse kinematics", seed=0)
    wanted = [(model.body_index(body), *_target(body, goal)) for body, goal in targets.items()]
    if not wanted:
        raise StateError("inverse kinematics needs at least one target")
    places = _points(points or {}, targets)
    model = model._on_cpu
    q = model.neutral() if q0 is None else model.check_configuration(q0)
    shapes = [goal.shape[: goal.ndim - axes] for _, goal, axes in wanted]
    batch = common_batch([q.shape[:-1], *shapes], "q0 and the targets")
    count = math.prod(batch)

    def rows(array: np.ndarray, axes: int) -> np.ndarray:
        shape = array.shape[array.ndim - axes :]
        return np.broadcast_to(array, (*batch, *shape)).reshape(count, *shape).copy()

    goals = [
        (index, rows(goal, axes), places.get(body, np.zeros(3)))
        for body, (index, goal, axes) in zip(targets, wanted, strict=True)
    ]
    if model._near.counts.all():  # no position in q: solved near the base, to its digits
        for _, goal, _ in goals:
            position = goal if goal.ndim == 2 else goal[:, :3, 3]
            position -= model._near.place
        model = model._near.model
    best, residual = _descend(model, goals, _within(model, rows(q, 1)))
    starts = np.ones(count, dtype=int)
    for _ in range(restarts):
        left = np.flatnonzero(residual > REACHED)
        if not len(left):
            break
        guess = np.array([model.random_configuration(rng) for _ in left])
        found, error = _descend(model, [(k, goal[left], at) for k, goal, at in goals], guess)
        better = error < residual[left]
        best[left[better]], residual[left[better]] = found[better], error[better]
        starts[left] += 1
    numbers = ((residual <= REACHED).reshape(batch), residual.reshape(batch), starts.reshape(batch))
    return IkResult(best.reshape(*batch, model.nq), *(x if batch else x.item() for x in numbers))


def _target(body: str, goal: ArrayLike) -> tuple[np.ndarray, int]:
    """A target and the number of its axes behind the batch's."""
    try:
        array = np.asarray(goal, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0)
    if not np.isfinite(array).all():
        raise StateError(f"the target of '{body}' has entries that are not finite")
    if array.shape[-2:] == (4, 4):
        rigid = so3.is_rotation(array[..., :3, :3]) & (array[..., 3, :] == UNIT_ROW).all(axis=-1)
        if rigid.all():
            return array, 2
    if array.shape[-1:] == (3,):
        return array, 1
    raise StateError(
        f"the target of '{body}' must be a (..., 3) position or a (..., 4, 4) pose [R p; 0 1] with "
        f"a rotation R, got shape {array.shape}"
    )


def _points(
    points: Mapping[str, ArrayLike], targets: Mapping[str, ArrayLike]
) -> dict[str, np.ndarray]:
    """The (3,) points of bodies, for targets that are positions."""
    found = {}
    for body, point in points.items():
        if body not in targets:
            raise StateError(f"'{body}' has a point but no target: targets are {choices(targets)}")
        place, _ = _target(body, point)
        if place.shape != (3,) or _target(body, targets[body])[1] != 1:
            raise StateError(
                f"the point of '{body}' must have three numbers and its target must be a position"
            )
        found[body] = place
    return found


def _within(model: Model, q: np.ndarray) -> np.ndarray:
    """The nearest configurations (N, nq) within the limits."""
    joints = q[:, model.joint_slice_q]
    np.clip(joints, model.lower, model.upper, out=joints)
    return q


def _descend(model: Model, goals: Goals, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N, nq) configurations and (N,) their largest errors, by Levenberg and Marquardt's method.

    On the configuration manifold, projected onto the joint limits.
    """
    error, J = _errors(model, goals, q)
    damping = np.full(len(q), 1e-3)
    active = np.abs(error).max(axis=-1) > REACHED
    for _ in range(STEPS):
        rows = np.flatnonzero(active)
        if not len(rows):
            break
        step = _step(model, q[rows], error[rows], J[rows], damping[rows])
        trial = _within(model, model.integrate(q[rows], step))
        trial_error, trial_J = _errors(model, [(k, goal[rows], at) for k, goal, at in goals], trial)
        before, after = (np.sum(x * x, axis=-1) for x in (error[rows], trial_error))
        better = after < before
        stuck = better & (before - after <= STUCK * before)
        took = rows[better]
        q[took], error[took], J[took] = trial[better], trial_error[better], trial_J[better]
        tuned = np.where(better, np.maximum(damping[rows] / 10, LEAST_DAMPING), damping[rows] * 10)
        damping[rows] = tuned
        left = np.abs(error[rows]).max(axis=-1) > REACHED
        active[rows] = left & ~stuck & (tuned <= MOST_DAMPING)
    return q, np.abs(error).max(axis=-1)


def _step(
    model: Model, q: np.ndarray, error: np.ndarray, J: np.ndarray, damping: np.ndarray
) -> np.ndarray:
    """Damped steps (N, nv); joints at a limit that a step would push outward are taken out."""
    joints, moved = q[:, model.joint_slice_q], model.joint_slice_v
    usable = np.ones((len(q), model.nv), dtype=bool)
    few = J.shape[1] < model.nv  # (A^T A + d I)^-1 A^T = A^T (A A^T + d I)^-1: solve the smaller
    damped = damping[:, None, None] * np.eye(min(J.shape[1:]))
    while True:
        A = J * usable[:, None, :]
        A_T, e = np.swapaxes(A, -1, -2), error[..., None]
        if few:
            step = (A_T @ np.linalg.solve(A @ A_T + damped, e))[..., 0]
        else:
            step = np.linalg.solve(A_T @ A + damped, A_T @ e)[..., 0]
        outward = (joints <= model.lower) & (step[:, moved] < 0)
        outward |= (joints >= model.upper) & (step[:, moved] > 0)
        if not outward.any():
            return step
        usable[:, moved] &= ~outward


def _errors(model: Model, goals: Goals, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Differences (N, m) to the targets, and rates (N, m, nv) at which velocities close them."""
    T_wb, screws = forward_kinematics(model, q), model.dynamics.quantity("joint_screws", q)
    errors, rows = [], []
    for index, goal, at in goals:
        J = _moving(model, index, screws)
        R = T_wb[:, index, :3, :3]
        p = T_wb[:, index, :3, 3] + R @ at
        errors.append((goal if goal.ndim == 2 else goal[:, :3, 3]) - p)
        rows.append(J[:, :3] + np.cross(J[:, 3:], p[..., None], axis=1))
        if goal.ndim == 3:
            R_T = np.swapaxes(R, -1, -2)
            turn = so3.log(R_T @ goal[:, :3, :3])
            errors.append(turn)
            # d log(R^T R_goal) = -J_l(turn)^-1 w with w the body's angular velocity
            rows.append(so3.left_jacobian_inverse(turn) @ (R_T @ J[:, 3:]))
    return np.concatenate(errors, axis=-1), np.concatenate(rows, axis=-2)
