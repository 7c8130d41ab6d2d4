"""Bodies into tables by whole numbers: a link that was met before costs no arithmetic.

The row of a link has two halves. Its seat follows from the joint, the joint's place on the parent
link and the direction of the parent's frame; its load from the modules that form the link and the
direction of its own frame. Tuples of whole numbers identify both halves (`coding`). The first body
that has a new half is built as a `Model`, and its rows are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from threading import Lock
from typing import NamedTuple

import numpy as np

from modurob.compiler.kernels import ROW, Row
from modurob.compiler.packing import fields, size
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.build import UNIT
from modurob.model.options import ModelOptions
from modurob.organism import Organism
from modurob.population.coding import BodyCoder, BodyPlan, CodedBody, LinkKey, SeatKey
from modurob.population.tables import CORNER_ROW, BodyTables, link_rows
from modurob.spatial import se3

MOST_KEPT = 20_000  # links between populations, of about 3 kB each
CACHED_PACKERS = 8
IS_LOAD = np.concatenate(  # columns of a row; the others belong to its seat
    [[name in ("mass", "moment", "second")] * size(kind) for name, kind in fields(Row)]
)


class LinkSeat(NamedTuple):
    """Columns of a row that belong to the joint, and the pattern of its seat."""

    numbers: np.ndarray
    kind: int


class LinkLoad(NamedTuple):
    """Columns of a row that belong to the modules of a link, its stiffness and its corners."""

    numbers: np.ndarray
    side: np.ndarray
    corner_rows: np.ndarray


class BodyPacker:
    """All that rows of links depend on, and the rows that are known.

    Args:
        options: Of all models; the base is free or fixed.
    """

    def __init__(self, options: ModelOptions) -> None:
        self._options, self.coder = options, BodyCoder(options)
        self._seats: dict[SeatKey, LinkSeat] = {}
        self._loads: dict[tuple[int, tuple[int, ...]], LinkLoad] = {}
        self._row_of: dict[LinkKey, int] = {}
        self._rows: list[tuple[LinkSeat, LinkLoad]] = []
        self._known: dict[bytes, int] = {}  # rows by a digest of their numbers
        self.lock = Lock()

    @property
    def links(self) -> int:
        """Number of distinct links that were met."""
        return max(len(self._row_of), len(self._rows))

    def packed(
        self, plans: Iterable[BodyPlan], organism_of: Callable[[int], Organism]
    ) -> BodyTables:
        """The tables of bodies.

        Args:
            plans: The bodies.
            organism_of: Gives the organism of a body by its number, for those that are built.
        """
        parent, rows, owners, joints, poses = [], [], [], [], []
        count: list[int] = []
        pose_of: dict[bytes, np.ndarray] = {}
        for k, plan in enumerate(plans):
            body = self.coder.coded(plan)
            if body is None:
                body, found = self._from_model(organism_of(k))
            else:
                found = [self._row_of.get(key, -1) for key in body.keys]
                if -1 in found:
                    found = self._new_rows(body, k, organism_of)
            count.append(len(found))
            parent += body.parent
            rows += found
            owners += body.owners
            joints += body.joints
            place = plan.base_pose.tobytes()
            if place not in pose_of:
                T = plan.base_pose if self._options.base == "free" else UNIT
                pose_of[place] = se3.to_position_and_quaternion(T)
            poses.append(pose_of[place])
        if not count:
            raise StateError("a population has one body or more, got none")
        return self._tables(np.array(count), [parent, rows, owners, joints], np.array(poses))

    def _tables(self, count: np.ndarray, lists: list[list[int]], poses: np.ndarray) -> BodyTables:
        """Padded arrays, with the rows that are used numbered in the order of their first use."""
        parent, row, owner, joint = (np.array(each, dtype=np.int64) for each in lists)
        used, first, row = np.unique(row, return_index=True, return_inverse=True)
        order = np.argsort(first)
        row = np.argsort(order)[row]
        kept = [self._rows[number] for number in used[order].tolist()]
        numbers = np.empty((len(kept), ROW))
        numbers[:, IS_LOAD] = [load.numbers for _, load in kept]
        numbers[:, ~IS_LOAD] = [seat.numbers for seat, _ in kept]
        corner = [load.corner_rows for _, load in kept]
        corner_count = np.array([len(each) for each in corner], dtype=np.int64)
        present = np.arange(count.max()) < count[:, None]

        def padded(values: np.ndarray, behind: int) -> np.ndarray:
            array = np.full(present.shape, behind, dtype=np.int64)
            array[present] = values
            return array

        return BodyTables(
            free_base=self._options.base == "free",
            count=count,
            parent=padded(parent, -1),
            row=padded(row, 0),
            rows=numbers,
            kind=np.array([seat.kind for seat, _ in kept], dtype=np.int64),
            side=np.array([load.side for _, load in kept]),
            corner_start=np.cumsum(corner_count) - corner_count,
            corner_count=corner_count,
            corner_rows=np.concatenate(corner).reshape(-1, CORNER_ROW),
            base_pose=poses,
            module=padded(owner, -1),
            joint=padded(joint, -1),
        )

    # -- rows --------------------------------------------------------------------------------------

    def _new_rows(
        self, body: CodedBody, number: int, organism_of: Callable[[int], Organism]
    ) -> list[int]:
        """Numbers of the rows of a body, some of which are new."""
        seats = [seat for seat, _ in body.keys]
        loads = [(self.coder.turned[seat], bodies) for seat, bodies in body.keys]
        new = [k for k, load in enumerate(loads) if load not in self._loads]
        if new or not all(map(self._seats.__contains__, seats)):
            organism = organism_of(number)
            found = _halves(organism, self._options.build(organism), new)
            self._seats.update(zip(seats, (seat for seat, _ in found), strict=True))
            self._loads.update((loads[k], found[k][1]) for k in new)
        for key, seat, load in zip(body.keys, seats, loads, strict=True):
            if key not in self._row_of:
                self._row_of[key] = self._row(self._seats[seat], self._loads[load])
        return [self._row_of[key] for key in body.keys]

    def _row(self, seat: LinkSeat, load: LinkLoad) -> int:
        numbers = (seat.numbers, np.array(seat.kind), *load)
        digest = blake2b(b"".join(each.tobytes() for each in numbers), digest_size=16).digest()
        number = self._known.setdefault(digest, len(self._rows))
        if number == len(self._rows):
            self._rows.append((seat, load))
        return number

    def _from_model(self, organism: Organism) -> tuple[CodedBody, list[int]]:
        """A body by its model alone."""
        model = self._options.build(organism)
        rows = [self._row(*halves) for halves in _halves(organism, model)]
        names = [organism.base, *(entry.child for entry in organism.dockings)]
        owners, joints = [-1], [-1]
        for module, joint in (name.split(".", 1) for name in model.joint_names):
            known = [each.name for each in organism.kind(module).joints]
            owners.append(names.index(module))
            joints.append(known.index(joint) if joint in known else -1)  # a spring
        return CodedBody([-1, *model.parent.tolist()], [], owners, joints), rows


def _halves(
    organism: Organism, model: Model, new: Sequence[int] | None = None
) -> list[tuple[LinkSeat, LinkLoad]]:
    """Seat and load of each link of a model; loads are complete for new links, or for all."""
    return [
        (LinkSeat(row[~IS_LOAD], int(kind)), LinkLoad(row[IS_LOAD], side, corner))
        for row, kind, side, corner in zip(*link_rows(organism, model, new), strict=True)
    ]


@lru_cache(maxsize=CACHED_PACKERS)
def _packer(options: ModelOptions) -> list[BodyPacker]:
    """Holder of the packer for models with these options, so that it can be replaced."""
    return [BodyPacker(options)]


def _shared_packer(options: ModelOptions) -> BodyPacker:
    """The packer of the process, or a new one where the old one has grown large."""
    holder = _packer(options)
    if holder[0].links > MOST_KEPT:
        holder[0] = BodyPacker(options)
    return holder[0]


def pack(
    plans: Iterable[BodyPlan], organism_of: Callable[[int], Organism], options: ModelOptions
) -> BodyTables:
    """The tables of bodies; rows that an earlier population had are known.

    Args:
        plans: The bodies.
        organism_of: Gives the organism of a body by its number, for those with new links.
        options: Of the models.
    """
    packer = _shared_packer(options)
    with packer.lock:
        return packer.packed(plans, organism_of)


def moving_joints(plan: BodyPlan, options: ModelOptions) -> list[tuple[int, int]] | None:
    """Joints of a body that can move: numbers of the module and of the joint in its datasheet.

    None where only a model tells; then at least one moves.
    """
    packer = _shared_packer(options)
    with packer.lock:
        body = packer.coder.coded(plan)
    return None if body is None else list(zip(body.owners[1:], body.joints[1:], strict=True))
