"""`LaneExecutor`: rollouts and dynamics of a population on the CPU."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from modurob.compiler import driver, lanes
from modurob.compiler.jit import host
from modurob.compiler.kernels import ROW, own_numbers
from modurob.compiler.packing import size
from modurob.compiler.pool import pool
from modurob.compiler.routine import aligned, thread_count
from modurob.equations.contact import GROUNDED_DYNAMICS
from modurob.equations.passes import Quantity
from modurob.equations.quantities import QUANTITIES
from modurob.equations.servo import Servo
from modurob.population import poses
from modurob.population.groups import LaneGroups, lane_groups
from modurob.population.rollout import Reached, RolloutTask
from modurob.population.tables import BodyTables
from modurob.stepping.ground import Ground

STEPS_AT_ONCE = 256  # of compiled code: between, a rollout can be interrupted
BODIES_AT_ONCE = 16384  # whose memory is allocated together: about 200 MB


class LaneExecutor:
    """Runs groups of bodies on threads.

    Args:
        tables: The bodies.
    """

    def __init__(self, tables: BodyTables) -> None:
        self.tables = tables
        rolls = tables.rolls()
        self._portions: list[tuple[bool, list[LaneGroups]]] = []
        for kind in (False, True):
            groups = lane_groups(tables, np.flatnonzero(rolls == kind), host().width)
            self._portions += [(kind, portion) for portion in _portions(groups)]

    def rollout(self, task: RolloutTask) -> Reached:
        """States at the end of a rollout, and poses on the way."""
        found = Reached.empty(self.tables, task)
        q, v, work = found.q, found.v, found.work
        for batch in self.stepping(task):
            bodies = np.unique(np.concatenate([part.body.ravel() for part in batch.groups]))
            done = 0
            for stop, record in task.stops:
                batch.march(done, stop - done, task.threads)
                batch.read(q, v, work)
                done = stop
                if stop == task.begin:
                    found.first[bodies] = q[bodies]
                if record:
                    found.trace[record, bodies] = self.tables.base_poses(q)[bodies]
        return found._replace(work=work * task.step)

    def stepping(self, task: RolloutTask) -> Iterator[SteppingLanes]:
        """Portions of the bodies at the start of a rollout."""
        kind = "level" if task.ground is None else task.ground.kind
        for rolls, groups in self._portions:
            yield SteppingLanes(self.tables, GROUNDED_DYNAMICS[kind, rolls], groups, task)

    def evaluate(
        self, name: str, q: np.ndarray, v: np.ndarray, x: np.ndarray, threads: int | str, dtype: str
    ) -> np.ndarray:
        """(bodies, most nv) a quantity of all bodies."""
        result = np.zeros(v.shape)
        for _, groups in self._portions:
            batch = LaneBatch(self.tables, QUANTITIES[name], groups)
            batch.write(q, v, x)
            batch.launch("run", batch.joint_states, threads)
            for part, y in zip(groups, batch.results, strict=True):
                _scatter(result, part, y, 6 if self.tables.free_base else 0)
        return result


def _portions(groups: Sequence[LaneGroups]) -> Iterator[list[LaneGroups]]:
    """Groups in portions whose memory is allocated together."""
    portion, rest = [], BODIES_AT_ONCE
    for each in groups:
        while len(each.body):
            count = max(1, rest // each.body.shape[1])
            some = LaneGroups(*(array[:count] for array in each))
            each = LaneGroups(*(array[count:] for array in each))
            portion.append(some)
            rest -= some.body.size
            if rest <= 0:
                yield portion
                portion, rest = [], BODIES_AT_ONCE
    if portion:
        yield portion


def _vectors(*shape: int) -> np.ndarray:
    """Zeros that vectors can be loaded from."""
    return aligned(8 * math.prod(shape)).view(float).reshape(shape)


def _scatter(target: np.ndarray, groups: LaneGroups, values: np.ndarray, base: int) -> None:
    """Put (groups, base + joints, width) numbers into (bodies, ...)."""
    body = groups.body
    target[body[:, None, :], np.arange(base)[:, None]] = values[:, :base]
    target[body[:, None, :], base + groups.link[:, 1:] - 1] = values[:, base:]


class LaneBatch:
    """Groups of all sizes with their tables and memory, bound to the code of a quantity.

    Attributes:
        records: For each size (groups, vectors, width) states, see `driver`.
        results: For each size (groups, nv, width).
    """

    def __init__(
        self, tables: BodyTables, quantity: Quantity, groups: Sequence[LaneGroups]
    ) -> None:
        self.tables, self.quantity, self.groups = tables, quantity, groups
        self.free, self.width = tables.free_base, host().width
        self.base = 6 if self.free else 0
        self.library = lanes.library(quantity, self.free)
        self.records = [self._filled(g, driver.BASE_RECORD, driver.JOINT_RECORD) for g in groups]
        self.results = [self._filled(g, self.base, 1) for g in groups]
        self.joint_states = sum(g.body.size * g.joints for g in groups)
        self._kept: list[Any] = []
        self._fields = np.concatenate([self._arguments(k, part) for k, part in enumerate(groups)])
        most = max(part.joints for part in groups)
        self._vectors = lanes.workspace_vectors(quantity, most, self.free)

    def _filled(self, groups: LaneGroups, base: int, each: int) -> np.ndarray:
        found = _vectors(len(groups.body), base + each * groups.joints, self.width)
        found[:] = np.nan  # what is read before it is written shows
        return found

    def _arguments(self, k: int, groups: LaneGroups) -> np.ndarray:
        """(groups, FIELDS) arguments of compiled code."""
        count, n = len(groups.body), groups.joints
        rows = _vectors(count, n + 1, ROW, self.width)
        numbers = groups.of_links(self.tables.row)  # (groups, links, width)
        rows[:] = np.swapaxes(self.tables.rows[numbers], -1, -2)
        parent = groups.parent[:, 1:]
        same = (parent == parent[..., :1]).all(axis=-1)
        calls = lanes.call_rows(
            self.quantity, self.free, np.where(same, parent[..., 0], -1), groups.slides[:, 1:],
            groups.rotor,
        )  # fmt: skip
        moved = np.ascontiguousarray(parent * lanes.state_bytes(self.quantity, self.free))
        passive = [self.tables.rows_by_name[x] for x in ("viscous", "coulomb", "stiffness")]
        friction = np.any(np.hstack(passive)[numbers], axis=(1, 2, 3))
        fields = np.zeros((count, lanes.FIELDS), dtype=np.int64)
        self._set(fields, "joints", n)
        self._set(fields, "nv", n + self.base)
        self._set(fields, "results", n + self.base)
        self._set(fields, "friction", friction)
        arrays = {
            "rows": rows, "calls": calls, "lane_parents": moved, "q": self.records[k],
            "y": self.results[k],
        }  # fmt: skip
        for name, array in arrays.items():
            self._point(fields, name, array)
        return fields

    def _set(self, fields: np.ndarray, name: str, value: Any) -> None:
        fields[:, driver.NAMES.index(name)] = value

    def _point(self, fields: np.ndarray, name: str, array: np.ndarray) -> None:
        """Address of each group's part of an array."""
        self._kept.append(array)
        first = np.arange(len(array)) * array.strides[0]
        self._set(fields, name, array.ctypes.data + first)

    def write(self, q: np.ndarray, v: np.ndarray, x: np.ndarray | None = None) -> None:
        """Set the states, and the third input."""
        arrays = [("q", q), ("v", v)] + ([] if x is None else [("x", x)])
        for groups, records in zip(self.groups, self.records, strict=True):
            joints = self._of_joints(groups, records)
            for name, array in arrays:
                base = 0 if not self.free else 7 if name == "q" else 6
                start = driver.BASE_PLACES[name]
                own = array[groups.body]  # (groups, width, ...)
                records[:, start : start + base] = np.swapaxes(own[..., :base], 1, 2)
                joints[:, :, driver.RECORD[name]] = groups.of_joints(array[:, base:])

    def _of_joints(self, groups: LaneGroups, records: np.ndarray) -> np.ndarray:
        """(groups, joints, JOINT_RECORD, width) records of the joints."""
        shape = (len(records), groups.joints, driver.JOINT_RECORD, self.width)
        return records[:, driver.BASE_RECORD :].reshape(shape)

    def launch(self, function: str, work: int, threads: int | str) -> None:
        """Run compiled code for all groups."""
        count = len(self._fields) * self.width
        number = thread_count(threads, work)
        bytes_each = 8 * self.width * self._vectors
        space = aligned(bytes_each * number).reshape(number, bytes_each)
        address = self.library.address(function)
        if number == 1:
            kinds = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
            run = self.library.function(function, *kinds)
            run(self._fields.ctypes.data, 0, count, space.ctypes.data)
        else:
            pool().run(address, self._fields.ctypes.data, count, space)


class SteppingLanes(LaneBatch):
    """Groups that take steps on the ground under servos."""

    def __init__(
        self,
        tables: BodyTables,
        quantity: Quantity,
        groups: Sequence[LaneGroups],
        task: RolloutTask,
    ) -> None:
        self._task = task
        self._work: list[np.ndarray] = []
        self._servos: list[np.ndarray] = []
        self._anchors: list[tuple[np.ndarray, np.ndarray]] = []  # memory, (points, width) bodies
        if task.ground is not None:  # (bodies, most links, 3) normal of its slope in the links
            R = poses.link_poses(tables, task.q).R
            self._up = np.einsum("blji,j->bli", R, task.ground.upward)
        super().__init__(tables, quantity, groups)
        self.write(task.q, task.v)
        for records, part in zip(self.records, groups, strict=True):
            records[:, driver.BASE_X : driver.BASE_RECORD] = 0.0
            self._of_joints(part, records)[:, :, driver.X] = 0.0

    def _arguments(self, k: int, groups: LaneGroups) -> np.ndarray:
        fields, task = super()._arguments(k, groups), self._task
        count = len(groups.body)
        servos = _vectors(count, groups.joints, size(Servo), self.width)
        rate = np.broadcast_to(2 * np.pi * task.waves.frequency[:, None], task.law.kp.shape)
        waves = task.waves
        servo = Servo(waves.amplitude, rate, waves.phase, waves.offset, *task.law)
        for number, array in enumerate(servo):
            servos[:, :, number] = groups.of_joints(array)
        self._point(fields, "x", servos)
        self._point(fields, "y", _vectors(count, 1, self.width))
        self._work.append(self._kept[-1])
        self._servos.append(servos)
        fields.view(float)[:, driver.NAMES.index("duration")] = task.step
        self._set(fields, "settles", 1)
        if task.ground is not None:
            self._add_points(fields, groups, task.ground)
        return fields

    def _add_points(self, fields: np.ndarray, groups: LaneGroups, ground: Ground) -> None:
        """Corners of all lanes; where a link has fewer, corners without weight fill the rest."""
        tables, passes = self.tables, self.quantity.passes
        rows = groups.of_links(tables.row)
        most = tables.corner_count[rows].max(axis=2)  # (groups, links)
        count = most.sum(axis=1)
        group = np.repeat(np.arange(len(rows)), count)
        link = np.repeat(np.tile(np.arange(rows.shape[1]), len(rows)), most.ravel())
        first = np.cumsum(most) - most.ravel()
        slot = np.arange(len(group)) - np.repeat(first, most.ravel())
        row = rows[group, link]  # (points, width)
        has = slot[:, None] < tables.corner_count[row]
        which = np.where(has, tables.corner_start[row] + slot[:, None], 0)
        # lowest first: corners that touch are in the same places of all lanes, others are skipped
        up = groups.of_links(self._up)[group, link]
        height = np.where(has, np.einsum("pwk,pwk->pw", up, tables.corner_rows[which, :3]), np.inf)
        order = [np.lexsort((height[:, k], link, group)) for k in range(self.width)]
        last = np.maximum(tables.corner_count[row] - 1, 0)  # the highest fills the rest
        place = np.repeat(first, most.ravel())[:, None] + np.minimum(slot[:, None], last)
        order = np.take_along_axis(np.stack(order, axis=1), place, axis=0)
        which = np.take_along_axis(which, order, axis=0)
        own = own_numbers(passes)
        points = _vectors(len(group), own + 1, self.width)
        points[:] = np.swapaxes(tables.corner_rows[which][..., [*range(own), 7]], 1, 2)
        points[:, own] *= has
        links = 2 * link + (slot == 0)
        memory = _vectors(len(group), size(passes.Memory), self.width)
        self._anchors.append((memory, groups.body[group]))
        law = _vectors(len(rows), size(passes.Point) - own, self.width)
        law[:] = np.swapaxes(self._law(ground)[groups.body], 1, 2)
        start = np.cumsum(count) - count
        for name, array in (("point_rows", points), ("point_links", links), ("memory", memory)):
            self._kept.append(array)
            self._set(fields, name, array.ctypes.data + start * array.strides[0])
        self._point(fields, "point_law", law)
        self._set(fields, "points", count)
        if not ground.is_plane:
            self._set(fields, "lookup_rows", ground.cells.ctypes.data)

    def _law(self, ground: Ground) -> np.ndarray:
        """(bodies, n) the ground below all corners of a body, and its contact law."""
        below = np.broadcast_to(ground.below, (len(self.tables.count), len(ground.below)))
        return np.concatenate([below, np.stack(self._task.contact, axis=1)], axis=1)

    def follow(self, offset: np.ndarray) -> None:
        """Set the constant parts (bodies, most joints) of the references. [rad, m]"""
        for groups, servos in zip(self.groups, self._servos, strict=True):
            servos[:, :, Servo._fields.index("offset")] = groups.of_joints(offset)

    def restart(self, bodies: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Set the states of all bodies; those with True in (bodies,) touch nothing yet."""
        self.write(q, v)
        for groups, work in zip(self.groups, self._work, strict=True):
            work[:, 0] = np.where(bodies[groups.body], 0.0, work[:, 0])
        for memory, body in self._anchors:
            memory[:] = np.where(bodies[body][:, None], 0.0, memory)

    def march(self, first: int, steps: int, threads: int | str) -> None:
        """Take steps, in parts."""
        for begin in range(first, first + steps, STEPS_AT_ONCE):
            number = min(STEPS_AT_ONCE, first + steps - begin)
            self._set(self._fields, "first_step", begin)
            self._set(self._fields, "steps", number)
            self.launch("march", number * self.joint_states, threads)

    def read(self, q: np.ndarray, v: np.ndarray, work: np.ndarray) -> None:
        """Put states and work into arrays of all bodies."""
        parts = zip(self.groups, self.records, self._work, strict=True)
        for groups, records, power in parts:
            joints = self._of_joints(groups, records)
            for name, array in (("q", q), ("v", v)):
                base = 0 if not self.free else 7 if name == "q" else 6
                start = driver.BASE_PLACES[name]
                own = [records[:, start : start + base], joints[:, :, driver.RECORD[name]]]
                _scatter(array, groups, np.concatenate(own, axis=1), base)
            work[groups.body] = power[:, 0]
