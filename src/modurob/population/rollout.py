"""Numbers of a rollout: what is given, checked and complete, and the result."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import inside, positive, real_array
from modurob.equations.contact import UPRIGHT, GroundLaw
from modurob.equations.links import friction_slope
from modurob.errors import StateError
from modurob.friction import EXPLICIT
from modurob.population import poses
from modurob.population.tables import BodyTables
from modurob.population.waves import JointWaves
from modurob.stepping.base import check_step_count
from modurob.stepping.contact import (
    MOST_RESOLVED,
    RESOLVED,
    ROUNDING,
    SUNK,
    ground_law,
    rounded_down,
)
from modurob.stepping.ground import Ground

SERVO_RATE = 30.0  # [rad/s] of a joint under the default gains, critically damped
TINY = 1e-300  # [1/s] in place of no rate
CHUNK = 4096  # bodies whose matrices are in memory together


class JointLaw(NamedTuple):
    """``tau = kp (q_ref - q) + kd (v_ref - v)``, within a limit: (bodies, most joints) each."""

    kp: np.ndarray
    kd: np.ndarray
    torque: np.ndarray


class RolloutTask(NamedTuple):
    """A rollout as executors take it: everything is an array of the right shape.

    Attributes:
        step, steps, record: Seconds of a step, their number, and steps between records.
        begin: Steps after which ways count.
        q, v: (bodies, most nq), (bodies, most nv) start, padded with 0.
        waves: References of the joints.
        law: Of the joints.
        ground: None for a fall through empty space, or a fixed base.
        contact: The contact law, (bodies,) numbers each.
        too_fast: (bodies,) True for bodies that the step is too long for.
        threads: Of an executor on the CPU: "auto" or a number.
        dtype: "float64" or "float32".
    """

    step: float
    steps: int
    record: int
    begin: int
    q: np.ndarray
    v: np.ndarray
    waves: JointWaves
    law: JointLaw
    ground: Ground | None
    contact: GroundLaw
    too_fast: np.ndarray
    threads: int | str
    dtype: str

    @property
    def records(self) -> int:
        """Number of records after the start; the last one is at the end."""
        return -(-self.steps // self.record)

    @property
    def stops(self) -> list[tuple[int, int]]:
        """Steps after which states are read, and the number of the record then; 0 for none."""
        ends = range(self.record, self.steps, self.record)
        found = {self.begin: 0, **{end: end // self.record for end in ends}}
        found[self.steps] = self.records
        return sorted((stop, number) for stop, number in found.items() if stop > 0)


class Rollout(NamedTuple):
    """Result of `Population.rollout`; numbers behind the last joint of a body are 0.

    Attributes:
        q, v: (bodies, most nq), (bodies, most nv) state at the end.
        base_pose, start_pose: (bodies, 7) position and quaternion (x, y, z, w) of the base at the
            end and when ways begin to count. [m]
        center, start_center: (bodies, 3) centers of mass at these times. [m]
        work: (bodies,) sum of ``|tau v| dt`` over joints and steps. [J]
        failed: (bodies,) True for a body whose state is not finite, or whose base turned by more
            than a radian in a step; its numbers are NaN.
        times: (times,) of `trace`. [s]
        trace: (times, bodies, 7) poses of the base, that of the start first.
    """

    q: np.ndarray
    v: np.ndarray
    base_pose: np.ndarray
    start_pose: np.ndarray
    center: np.ndarray
    start_center: np.ndarray
    work: np.ndarray
    failed: np.ndarray
    times: np.ndarray
    trace: np.ndarray

    @property
    def distance(self) -> np.ndarray:
        """(bodies,) horizontal way of the center of mass, from its start to its end. [m]"""
        return np.hypot(*(self.center - self.start_center)[:, :2].T)


class Reached(NamedTuple):
    """Result of an executor: see `Rollout`; `first` is the configuration when ways begin."""

    first: np.ndarray
    q: np.ndarray
    v: np.ndarray
    work: np.ndarray
    trace: np.ndarray

    @classmethod
    def empty(cls, tables: BodyTables, task: RolloutTask) -> Reached:
        """Arrays for the results of a task, with its start in `first` and in the whole trace."""
        trace = np.tile(tables.base_poses(task.q), (task.records + 1, 1, 1))
        q, v = np.zeros(task.q.shape), np.zeros(task.v.shape)
        return cls(task.q.copy(), q, v, np.zeros(len(q)), trace)


def finished(tables: BodyTables, task: RolloutTask, reached: Reached) -> Rollout:
    """The result for users."""
    first, q, v, work, trace = reached
    failed = np.logical_not(np.isfinite(np.hstack([q, v])).all(axis=1))
    q, v, work = q + 0.0, v + 0.0, work + 0.0  # no negative zeros
    for array in (q, v, work):
        array[failed] = np.nan
    start, end = tables.base_poses(first), tables.base_poses(q)
    end[failed] = np.nan
    with np.errstate(invalid="ignore"):
        center, start_center = (poses.centers_of_mass(tables, x) for x in (q, first))
    times = task.step * np.minimum(task.record * np.arange(len(trace)), task.steps)
    return Rollout(q, v, end, start, center, start_center, work, failed, times, trace)


def task_of(
    tables: BodyTables, duration: float, dt: float, gaits: JointWaves | None, ground: Any, kp: Any,
    kd: Any, torque: Any, start: Any, every: float | None, threads: int | str, dtype: str,
    begin: float = 0.0, servo_rate: float = SERVO_RATE, strict: bool = True,
) -> RolloutTask:  # fmt: skip
    """Check the arguments of `Population.rollout` and complete them.

    Args:
        strict: Whether a body that the step is too long for is an error.
    """
    length, step = positive("duration", duration, "seconds"), positive("dt", dt, "seconds")
    if not (ground is None or isinstance(ground, Ground)):
        raise StateError(f"ground is a modurob.Ground or None, got {type(ground).__name__}")
    if step > length:
        raise StateError(f"dt = {step:g} s is longer than the duration of {length:g} s")
    check_step_count(length, step)
    steps = int(np.ceil(length / step * (1 - 1e-12)))
    step = length / steps
    record = steps
    if every is not None:
        record = round(positive("every", every, "seconds") / step)
        if abs(record * step - every) > 1e-6 * step * record:
            raise StateError(
                f"every = {every:g} s is no multiple of the step of {step:g} s: give one"
            )
    first = round(inside("begin", begin, 0.0, length, "seconds") / step)
    bodies, joints = len(tables.count), tables.row.shape[1] - 1
    waves = JointWaves(np.zeros((bodies, joints))) if gaits is None else gaits
    if not isinstance(waves, JointWaves):
        raise StateError(f"gaits is a modurob.JointWaves, got {type(gaits).__name__}")
    if waves.amplitude.shape != (bodies, joints):
        raise StateError(
            f"gaits are for (bodies, most joints) = {waves.amplitude.shape}, but this population "
            f"has {bodies} bodies with {joints} joints at most"
        )
    q, v = _start(tables, start, ground)
    law, contact, limits = _laws(
        tables, q, step, ground, kp, kd, torque, positive("servo_rate", servo_rate, "rad/s")
    )
    if strict:
        for limit in limits:
            limit.check(step)
    if start is not None and ground is not None and not ground.lift:
        _check_above(tables, ground, q, contact.stiffness)
    return RolloutTask(
        step, steps, record, first, q, v, waves, law, ground, contact,
        np.any([limit.passed(step) for limit in limits], axis=0), threads, dtype,
    )  # fmt: skip


def _start(tables: BodyTables, start: Any, ground: Ground | None) -> tuple[np.ndarray, np.ndarray]:
    """States at the start, on the ground where none are given."""
    bodies, joints = len(tables.count), tables.row.shape[1] - 1
    free = tables.free_base
    if start is not None:
        parts = start if isinstance(start, tuple | list) else (start,)
        if len(parts) not in (1, 2):
            raise StateError(f"start is q or (q, v), got {len(parts)} arrays")
        q = padded(tables, "start q", parts[0], 7 if free else 0)
        v = padded(tables, "start v", parts[1], 6 if free else 0) if len(parts) == 2 else None
        if free:
            norm = np.linalg.norm(q[:, 3:7], axis=1)
            if (np.abs(norm - 1) > 1e-3).any():
                k = int(np.abs(norm - 1).argmax())
                raise StateError(
                    f"start q[{k}, 3:7] is a unit quaternion (x, y, z, w); "
                    f"its norm must be 1, got {norm[k]:g}"
                )
            q[:, 3:7] /= norm[:, None]
    else:
        q, v = np.zeros((bodies, joints + (7 if free else 0))), None
        if free:
            q[:, :7] = tables.base_pose
    if v is None:
        v = np.zeros((bodies, joints + (6 if free else 0)))
    if free and ground is not None and (start is None or ground.lift):
        rise = rises(tables, ground, q)
        q[:, 2] += rise if start is None else np.maximum(rise, 0.0)
    return q, v


def padded(tables: BodyTables, name: str, value: ArrayLike, base: int) -> np.ndarray:
    """(bodies, base + most joints) finite numbers; those behind a body's last joint become 0."""
    array = real_array(name, value)
    shape = (len(tables.count), base + tables.row.shape[1] - 1)
    if array.shape != shape:
        raise StateError(f"{name} has shape {array.shape}, expected {shape}: a row for each body")
    array[:, base:] *= tables.present[:, 1:]
    return array


def rises(tables: BodyTables, ground: Ground, q: np.ndarray) -> np.ndarray:
    """(bodies,) height by which bodies have to rise until nothing is below the ground. [m]"""
    bodies, links = tables.row.shape
    found = np.empty(bodies)
    for first in range(0, bodies, CHUNK):
        some = np.arange(first, min(first + CHUNK, bodies))
        found[some] = _rises(tables.part(some, links), ground, q[some])
    if np.isinf(found).any():
        k = int(np.isinf(found).argmax())
        raise StateError(f"no module of body {k} can touch the ground: all are virtual")
    return found


def _rises(tables: BodyTables, ground: Ground, q: np.ndarray) -> np.ndarray:
    counts = (tables.corner_count[tables.row] * tables.present).ravel()
    link = np.repeat(np.arange(len(counts)), counts)  # of each corner, counted over all bodies
    slot = np.arange(len(link)) - np.repeat(np.cumsum(counts) - counts, counts)
    corner = tables.corner_rows[tables.corner_start[tables.row.ravel()[link]] + slot]
    found = np.full(len(q), -np.inf)
    R, p = (x.reshape(len(counts), *x.shape[2:]) for x in poses.link_poses(tables, q))
    if ground.is_plane and not corner[:, 6].any():  # much less to compute
        up = ground.upward
        above = np.einsum("ki,ki->k", (up @ R)[link], corner[:, :3]) + (p @ up)[link]
        np.maximum.at(found, link // tables.row.shape[1], np.asarray(ground.height) - above)
        return found
    R, p = R[link], p[link]
    x = np.einsum("kij,kj->ki", R, corner[:, :3]) + p
    if corner[:, 6].any():
        _, a, b = ground.surface(x[:, 0], x[:, 1])
        normal = np.stack(np.broadcast_arrays(-a, -b, np.ones(len(x))), axis=1)
        axis = np.einsum("kij,kj->ki", R, corner[:, 3:6])
        across = normal - axis * np.sum(axis * normal, axis=1, keepdims=True)
        length = np.maximum(np.linalg.norm(across, axis=1, keepdims=True), UPRIGHT)
        x = x - corner[:, 6:7] * across / length
    np.maximum.at(found, link // tables.row.shape[1], ground.surface(x[:, 0], x[:, 1])[0] - x[:, 2])
    return found


class BodyRates(NamedTuple):
    """Numbers of the mass matrices at the start.

    Attributes:
        inertia: (bodies, most joints) that joints feel; 0 behind the last one. [kg m^2, kg]
        ground: (bodies,) fastest oscillation on a ground of 1 N/m. [rad/s]
        decay: (bodies,) fastest decay by friction and kd; infinite where a joint moves no mass.
            [1/s]
        swing: (bodies,) fastest oscillation by springs and kp. [rad/s]
    """

    inertia: np.ndarray
    ground: np.ndarray
    decay: np.ndarray
    swing: np.ndarray


def _rates(
    tables: BodyTables,
    q: np.ndarray,
    kp: np.ndarray | None,
    kd: np.ndarray | None,
    servo_rate: float,
    has_ground: bool,
) -> BodyRates:
    """Rates of all bodies: those of one size together, so that none depends on the others."""
    bodies, base = len(tables.count), 6 if tables.free_base else 0
    found = BodyRates(np.zeros((bodies, tables.row.shape[1] - 1)), *np.ones((3, bodies)))
    for links in np.unique(tables.count).tolist():
        of_size = np.flatnonzero(tables.count == links)
        for first in range(0, len(of_size), CHUNK):
            some = of_size[first : first + CHUNK]
            part = tables.part(some, links)
            J = poses.jacobians(part, q[some, : base + links if base else links - 1])
            M = poses.mass_matrices(part, J)
            massless = _massless(M)
            M[massless] = np.eye(M.shape[1])
            inverse = np.linalg.inv(M)[:, base:, base:]
            if has_ground:
                K = poses.ground_matrices(part, J)
                found.ground[some] = poses.fastest_rates(M, K)
            inertia = 1 / np.diagonal(inverse, axis1=1, axis2=2)
            found.inertia[some, : links - 1] = inertia
            own = {x: part.of_links(x)[:, 1:, 0] for x in ("viscous", "coulomb", "stiffness")}
            given = (x if x is None else x[some, : links - 1] for x in (kp, kd))
            law = _gains(inertia, *given, rate=servo_rate)
            slope = friction_slope(own["viscous"], own["coulomb"], 0.0) + law[1]
            found.decay[some] = np.where(massless, np.inf, _largest(inverse, slope))
            found.swing[some] = np.sqrt(_largest(inverse, own["stiffness"] + law[0]))
    return found


class StepLimit(NamedTuple):
    """A limit of the step: rates of the bodies (1/s), the most of rate times step, the cause."""

    rate: np.ndarray
    most: float
    cause: str

    def passed(self, step: float) -> np.ndarray:
        """(bodies,) True where a step is too long."""
        return step * self.rate > self.most * (1 + 1e-9)

    def check(self, step: float) -> None:
        """Raise an error that names the fastest body that passes it, and the step that works."""
        wrong = self.passed(step)
        if wrong.any():
            _check_mass(self.rate)
            k = int(self.rate.argmax())
            longest = rounded_down(self.most / self.rate[k])
            raise StateError(
                f"dt = {step:g} s is too long for body {k} ({np.count_nonzero(wrong)} bodies in "
                f"all): {self.cause} and its mass need dt = {longest} s or less"
            )


def _massless(M: np.ndarray) -> np.ndarray:
    """(bodies,) True where a mass matrix is singular: a joint moves no mass."""
    found = np.zeros(len(M), dtype=bool)
    try:
        np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        for k, each in enumerate(M):
            try:
                np.linalg.cholesky(each)
            except np.linalg.LinAlgError:
                found[k] = True
    return found


def _check_mass(decay: np.ndarray) -> None:
    """Refuse a body with a joint that moves no mass."""
    if np.isinf(decay).any():
        k = int(np.isinf(decay).argmax())
        raise StateError(f"a joint of body {k} moves no mass: give its modules mass")


def _gains(
    inertia: np.ndarray, kp: np.ndarray | None, kd: np.ndarray | None, rate: float
) -> tuple[np.ndarray, np.ndarray]:
    """Given gains, or those of critically damped servos."""
    return (
        rate**2 * inertia if kp is None else kp,
        2 * rate * inertia if kd is None else kd,
    )


def _largest(inverse: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """(bodies,) largest eigenvalue of M^-1 D, from M^-1 and the diagonal of D."""
    root = np.sqrt(slope)
    values = np.linalg.eigvalsh(root[:, :, None] * inverse * root[:, None, :])
    return np.maximum(values[:, -1], 0.0)


def _laws(
    tables: BodyTables, q: np.ndarray, step: float, ground: Ground | None, kp: Any, kd: Any,
    torque: Any, servo_rate: float,
) -> tuple[JointLaw, GroundLaw, list[StepLimit]]:  # fmt: skip
    """Gains of the joints, numbers of the ground, and limits of the step."""
    shape = bodies, _ = len(tables.count), tables.row.shape[1] - 1
    kp, kd, torque = (
        _per_joint(name, value, *shape)
        for name, value in (("kp", kp), ("kd", kd), ("torque", torque))
    )
    rates = _rates(tables, q, kp, kd, servo_rate, ground is not None)
    limits = [
        StepLimit(rates.decay, EXPLICIT, "friction and kd of its joints"),
        StepLimit(rates.swing, EXPLICIT, "springs and kp of its joints"),
    ]
    most = np.full(shape, np.inf) if torque is None else torque
    springs = tables.of_links("stiffness")[:, 1:, 0] > 0  # which have no motor
    law = JointLaw(*_gains(rates.inertia, kp, kd, servo_rate), np.where(springs, 0.0, most))
    if ground is None:
        return law, GroundLaw(*np.zeros((len(GroundLaw._fields), bodies))), limits
    k = np.full(bodies, ground.stiffness or 0.0)
    if ground.stiffness is None:
        k = (RESOLVED / step / rates.ground) ** 2
    rate = rates.ground * np.sqrt(k)
    limits.append(StepLimit(rate, MOST_RESOLVED, f"a ground of {k[rate.argmax()]:.4g} N/m"))
    contact = ground_law(ground, k, rate, step)
    numbers = [np.array(np.broadcast_to(x, bodies), float) for x in contact]
    return law, GroundLaw(*numbers), limits


def largest_step(
    tables: BodyTables, q: np.ndarray, kp: Any, kd: Any, servo_rate: float = SERVO_RATE
) -> float:
    """Longest step that the friction, springs and servos of all bodies allow. [s]"""
    shape = len(tables.count), tables.row.shape[1] - 1
    kp, kd = (_per_joint(name, x, *shape) for name, x in (("kp", kp), ("kd", kd)))
    rates = _rates(tables, q, kp, kd, servo_rate, False)
    _check_mass(rates.decay)
    return EXPLICIT / max(float(rates.decay.max()), float(rates.swing.max()), TINY)


def _check_above(tables: BodyTables, ground: Ground, q: np.ndarray, k: np.ndarray) -> None:
    """Refuse bodies that start below the ground."""
    gravity = np.linalg.norm(tables.of_links("p")[:, 0], axis=1)
    depth = rises(tables, ground, q)
    wrong = depth > SUNK * tables.mass * gravity / k + ROUNDING
    if wrong.any():
        at = int(np.argmax(np.where(wrong, depth, -np.inf)))
        raise StateError(
            f"body {at} starts {depth[at]:.3g} m below the ground ({np.count_nonzero(wrong)} bodies"
            " in all): start higher, or leave start out to begin on the ground"
        )


def _per_joint(name: str, value: Any, bodies: int, joints: int) -> np.ndarray | None:
    """(bodies, joints) from one number, (bodies,) or the whole; not negative."""
    if value is None:
        return None
    array = real_array(name, value, infinite=name == "torque")
    shape = array.shape
    if shape == (bodies,):
        array = array[:, None]
    elif shape not in ((), (bodies, joints)):
        raise StateError(
            f"{name} is one number, ({bodies},) for the bodies or ({bodies}, {joints}) for their "
            f"joints, got shape {shape}"
        )
    if (array < 0).any():
        raise StateError(f"{name} must be zero or positive, got {array.min():g}")
    return np.array(np.broadcast_to(array, (bodies, joints)))
