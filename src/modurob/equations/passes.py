"""Recursions over the tree of links, each declared once as passes.

An algorithm is a class derived from `Passes`: the type of a link's state (`State`, a NamedTuple of
scalars, vectors, matrices and such tuples) and one static method for each pass, in the words of the
equations. `run` executes it link by link over any scalar; the compiler derives packing, kernels and
sizes from the same declaration.

    base(link, base) -> state                             state of link 0
    outward(link, joint, parent) -> state                 from the base to the tips
    external(state, wrench) -> state                      an external wrench on a link
    inward(link, joint, own, parent) -> result, own, parent     from the tips to the base
    turn(link, base, own) -> results, own                 at link 0, after the way inward
    back(link, joint, own, parent) -> result, own         from the base to the tips again
    output(state, R, p) -> numbers                        of each body, at (R, p) in its link

A quantity may depend on points of its links, each with numbers of its own (`Point`) and a memory
(`Memory`) that lasts from one call to the next; `run` leaves them to the compiler. Scalars may also
choose among rows of four numbers, which all points share, by ``lookup(column)``.

    survey(state, point) -> state                         once for a link, from its first point
    active(state, point, memory) -> number                where it is 0 or less, nothing happens
    touch(state, point, memory) -> state                  after the way outward
    settle(state, point, memory) -> memory, state         in its place, when a call asks for it
    weighted(point, weight) -> point                      as many points at its place; 0 is none

Fields of a point that are not the same for all points of a body are named in `own`, and come first.

An algorithm whose result is an acceleration may take steps in time, too: the joints' velocities
first, then their displacements with these, and a free base by

    move(base, rate, h) -> position, quaternion, twist    after h seconds; rate of its twist

Fields of a state that a later pass fills have the default `LATER`. A field with another default is
an accumulator: it begins with that value, children add to it on the way inward, and it is not read
after that.

Matrix results are made of pairs of a joint i and a joint j between it and the base. The state then
has the fields `column`, of a joint with those beyond it, and `carried`, of a joint with everything
beyond it; `inward` returns the entries of the diagonal.

    carry(link, joint, carried) -> carried                into the parent's frame
    pair(carried, column) -> (ij, ji) of each matrix
    base_columns(base, own) -> six columns                of a free base
    base_pairs(carried, columns) -> six of (ij, ji) of each matrix
    base_block(own, columns) -> 6 x 6 entries of each matrix
    finish(matrices)                                      on the filled matrices
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from modurob.equations.links import Links, Placement, passive_force
from modurob.equations.vectors import EYE, ZERO, Mat, Twist, Vec, Wrench

LATER: Any = None  # default of a state's fields that a later pass fills
Inward = tuple[Any, Any, Any]  # result, own state, parent's state
Entries = tuple[tuple[Any, Any], ...]  # (i, j) and (j, i) of each matrix


class JointState(NamedTuple):
    """Displacement, velocity and third input (acceleration or force) of a joint along its +x."""

    q: Any
    v: Any
    x: Any


class Base(NamedTuple):
    """State of link 0. A fixed base is at rest in the world frame.

    Attributes:
        gravity: In the world frame. [m/s^2]
        position: Of a free base in the world; None for a fixed one. [m]
        quaternion: (x, y, z, w), of norm 1.
        twist, x: Twist and third input (its rate, or a wrench), in the base's frame.
    """

    gravity: Vec
    position: Vec | None = None
    quaternion: Sequence[Any] = ()
    twist: Twist = Twist()
    x: Sequence[Any] = ()

    @classmethod
    def moving(cls, gravity: Vec, q: Sequence[Any], v: Sequence[Any], x: Sequence[Any]) -> Base:
        """A free base from its seven, six and six numbers."""
        return cls(gravity, Vec(q[:3]), q[3:], Twist(Vec(v[:3]), Vec(v[3:])), x)

    @property
    def free(self) -> bool:
        """True for a base that can move."""
        return self.position is not None

    def rotation(self) -> Mat:
        """R of a free base in the world."""
        return base_rotation(self.quaternion)

    def pose(self) -> tuple[Mat, Vec]:
        """(R, p) of the base in the world."""
        return (EYE, ZERO) if self.position is None else (self.rotation(), self.position)

    def own_gravity(self) -> Vec:
        """Gravity in the frame of a free base: R^T g."""
        axis, w = Vec(self.quaternion[:3]), self.quaternion[3]
        t = self.gravity.cross(axis) * 2
        return self.gravity + t * w + t.cross(axis)


def base_rotation(quaternion: Sequence[Any]) -> Mat:
    """R of a base with unit quaternion (x, y, z, w)."""
    x, y, z, w = quaternion
    return Mat(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


class Matrices:
    """Square matrices of scalars with the order of their columns in the tree.

    Loops take a function of the index: the compiler writes a loop where this class runs one.
    """

    def __init__(self, count: int, above: Sequence[int]) -> None:
        self.nv, self._above = len(above), above
        self._cells = [[[0] * self.nv for _ in above] for _ in range(count)]

    def get(self, matrix: int, i: Any, j: Any) -> Any:
        return self._cells[matrix][i][j]

    def put(self, matrix: int, i: Any, j: Any, value: Any) -> None:
        self._cells[matrix][i][j] = value

    def each(self, action: Callable[[Any], None]) -> None:
        """Every column, from the base outward."""
        for k in range(self.nv):
            action(k)

    def each_inward(self, action: Callable[[Any], None]) -> None:
        """Every column, from the tips inward."""
        for k in range(self.nv - 1, -1, -1):
            action(k)

    def each_above(self, column: Any, action: Callable[[Any], None]) -> None:
        """Every column between one and the base, that of the base last."""
        while (column := self._above[column]) >= 0:
            action(column)

    def rows(self, matrix: int) -> list[list[Any]]:
        """One of the matrices."""
        return self._cells[matrix]


class Passes:
    """Base of all algorithms; see the module's description."""

    State: type
    Point: type
    Memory: type
    # friction and springs, "x": taken from the third input before, "y": added to the result after
    friction = ""
    matrices: int  # (nv, nv) that pairs fill or `finish` needs
    places: tuple[int, ...] = ()  # of the matrices that pairs fill; all, in order, by default

    base: Any
    outward: Any
    external: Any = None
    survey: Any = None
    active: Any = None
    touch: Any = None
    settle: Any = None
    weighted: Any = None
    own: tuple[str, ...] = ()
    move: Any = None
    inward: Any = None
    turn: Any = None
    back: Any = None
    output: Any = None
    carry: Any = None
    pair: Any = None
    base_columns: Any = None
    base_block: Any = None
    base_pairs: Any = None
    finish: Any = None

    @classmethod
    def filled(cls) -> tuple[int, ...]:
        """Numbers of the matrices that pairs fill."""
        return cls.places or tuple(range(cls.matrices))


class Quantity(NamedTuple):
    """A quantity of a model: its inputs, the shape of its result, and its algorithm.

    Attributes:
        inputs: Names of q, v and a third array, as many as it reads.
        result: Shape; "nv" and "bodies" stand for numbers of the model.
        passes: The algorithm.
        symbol, meaning: Letter of the result and a sentence about it, for documentation.
        near: True if it does not depend on the robot's place, and is computed near the origin.
        straight_line: True if code without loops is worth its length for an organism of any size.
    """

    inputs: tuple[str, ...]
    result: tuple[str | int, ...]
    passes: type[Passes]
    symbol: str
    meaning: str
    near: bool = True
    straight_line: bool = True

    def shape(self, joints: int, free_base: bool, bodies: int) -> tuple[int, ...]:
        """The result's dimensions as numbers."""
        known = {"nv": joints + (6 if free_base else 0), "bodies": bodies}
        return tuple(known[size] if isinstance(size, str) else size for size in self.result)

    def result_size(self, joints: int, free_base: bool, bodies: int) -> int:
        """Numbers of the result, and of the matrices that only `finish` needs."""
        nv = joints + (6 if free_base else 0)
        if self.per == "pair":
            return self.passes.matrices * nv * nv
        return math.prod(self.shape(joints, free_base, bodies))

    def checked(self, entries: Sequence[Any]) -> Sequence[Any]:
        """Numbers of a joint, a body or the whole, if they are as many as in the shape."""
        if len(entries) != self.entries:
            raise TypeError(
                f"{self.passes.__name__} gives {len(entries)} numbers where the shape "
                f"{self.result} has {self.entries}"
            )
        return entries

    @property
    def per(self) -> str:
        """Kind of the result: numbers of each "pair" of joints, "joint", "body", or the "whole"."""
        if self.result.count("nv") == 2:
            return "pair"
        return "joint" if "nv" in self.result else "body" if "bodies" in self.result else "whole"

    @property
    def entries(self) -> int:
        """Numbers of such a set."""
        return math.prod(size for size in self.result if isinstance(size, int))


def run(
    quantity: Quantity,
    links: Links,
    joints: Sequence[JointState],
    base: Base,
    external: Sequence[Wrench | None] | None = None,
    bodies: Sequence[Placement] = (),
    touched: Callable[[list[Any]], list[Any]] | None = None,
) -> list[Any]:
    """The result's numbers, row by row: the algorithm executed link by link.

    Args:
        links: The base first.
        joints: Along +x of their frames: users' numbers times the sign of the link.
        external: Wrench on each link, in its frame.
        bodies: Their places in the links.
        touched: The states of all links after their points have acted on them.
    """
    passes = quantity.passes
    if passes.friction == "x":
        joints = [
            joint._replace(x=joint.x - passive_force(link, joint.q, joint.v))
            for link, joint in zip(links[1:], joints, strict=True)
        ]
    states = [passes.base(links[0], base)]
    for link, joint in zip(links[1:], joints, strict=True):
        states.append(passes.outward(link, joint, states[link.parent]))
    if external is not None:
        for i, wrench in enumerate(external):
            if wrench is not None:
                states[i] = passes.external(states[i], wrench)
    if touched is not None:
        states = touched(states)
    found: list[Any] = [None] * len(joints)
    at_base: Any = ()
    if passes.inward:
        for i in range(len(joints), 0, -1):
            above = links[i].parent
            found[i - 1], states[i], states[above] = passes.inward(
                links[i], joints[i - 1], states[i], states[above]
            )
    if passes.turn:
        at_base, states[0] = passes.turn(links[0], base, states[0])
    if passes.back:
        for i in range(1, len(links)):
            found[i - 1], states[i] = passes.back(
                links[i], joints[i - 1], states[i], states[links[i].parent]
            )
    if quantity.per == "pair":
        return _pairs(quantity, links, joints, base, states, found)
    if quantity.per == "body":
        found = [quantity.checked(passes.output(states[link], R, p)) for link, R, p in bodies]
        return [x for numbers in found for x in numbers]
    if quantity.per == "whole":
        return list(quantity.checked(at_base))
    if passes.friction == "y":
        found = [
            y + passive_force(link, joint.q, joint.v)
            for y, link, joint in zip(found, links[1:], joints, strict=True)
        ]
    columns = [as_entries(y) for y in at_base] if base.free else []
    for y, link in zip(found, links[1:], strict=True):
        columns.append([x * link.sign for x in quantity.checked(as_entries(y))])
    return [column[k] for k in range(quantity.entries) for column in columns]


def as_entries(result: Any) -> Sequence[Any]:
    """A joint's numbers; one that is alone comes without a tuple."""
    return result if isinstance(result, tuple | list) else (result,)


def _pairs(
    quantity: Quantity,
    links: Links,
    joints: Sequence[JointState],
    base: Base,
    states: Sequence[Any],
    diagonals: Sequence[Any],
) -> list[Any]:
    passes, offset = quantity.passes, 6 if base.free else 0
    above = [*range(-1, offset - 1), *(offset + link.parent - 1 for link in links[1:])]
    m = Matrices(passes.matrices, above)
    filled = passes.filled()

    def put(i: int, j: int, entries: Entries) -> None:
        for matrix, (ij, ji) in zip(filled, entries, strict=True):
            m.put(matrix, i, j, ij)
            m.put(matrix, j, i, ji)

    columns = passes.base_columns(base, states[0]) if base.free and passes.base_columns else ()
    for i in range(1, len(links)):
        row, carried, at = offset + i - 1, states[i].carried, i
        put(row, row, tuple((x, x) for x in diagonals[i - 1]))
        while links[at].parent > 0:
            if passes.carry:
                carried = passes.carry(links[at], joints[at - 1], carried)
            at = links[at].parent
            put(row, offset + at - 1, passes.pair(carried, states[at].column))
        if base.free:
            if passes.carry:
                carried = passes.carry(links[at], joints[at - 1], carried)
            for k, entries in enumerate(passes.base_pairs(carried, columns)):
                put(row, k, entries)
    if base.free:
        for matrix, rows in zip(filled, passes.base_block(states[0], columns), strict=True):
            for i, line in enumerate(rows):
                for j, value in enumerate(line):
                    m.put(matrix, i, j, value)
    if passes.finish:
        passes.finish(m)
    return [x for matrix in range(quantity.entries) for row in m.rows(matrix) for x in row]
