"""Force of the ground on a point: a spring that never pulls, and a bristle that sticks or slips.

Every number may be of any scalar type. `docs/theory/contact.md` has the equations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from modurob.equations.forward_dynamics import (
    MASSLESS,
    Articulated,
    ForwardDynamics,
    ProjectedBody,
)
from modurob.equations.links import RigidLink, base_screws, screw
from modurob.equations.momentum import LinkMotions
from modurob.equations.passes import LATER, Base, Inward, JointState, Passes, Quantity
from modurob.equations.vectors import Mat, Twist, Vec, Wrench
from modurob.spatial.scalars import maximum, minimum, sqrt, trunc

GROWTH = 10.0  # times the depth of one step to the next, beyond which a bristle counts less
SHALLOWEST = 1e-30  # [m] keeps a depth of zero from being divided by
HARDEST = 2.0  # times the spring's force: impacts at any speed need no shorter steps than rest
SMALLEST = 1e-200  # [N^2] keeps a force of zero from being divided by zero
UPRIGHT = 1e-6  # [rad] tilt of a circle below which its lowest point is not sought


class GroundLaw(NamedTuple):
    """Numbers of the contact law, the same for every point.

    Attributes:
        friction: Coefficient of Coulomb friction.
        stiffness: Of the ground under a point. [N/m]
        damping: Share of the normal force that an approach at one unit of speed adds. [s/m]
        limit: Largest product of damping and depth. [s]
        grip, drag: Stiffness and damping of a bristle. [N/m, N s/m]
    """

    friction: Any
    stiffness: Any
    damping: Any
    limit: Any
    grip: Any
    drag: Any


class HeightField(NamedTuple):
    """Numbers of a field of heights over a slope; its cells are in a table.

    Attributes:
        a, b: Rise of the slope along x and y. [m/m]
        scale: Cells in a meter. [1/m]
        nx, ny: Number of heights along x and y.
        x0, y0: Place of the origin, in cells from the edge of the table.
    """

    a: Any
    b: Any
    scale: Any
    nx: Any
    ny: Any
    x0: Any
    y0: Any


def surface(
    field: HeightField, x: Any, y: Any, cells: Callable[[Any, int], Any] | None = None
) -> tuple[Any, Any, Any]:
    """Height of a field, bilinear in each cell, and its rise along x and y. [m, m/m]

    Around the field is one more row of cells, in which nothing rises outward.

    Args:
        cells: Number in a row and column of the table of cells, by default that of `Traced.lookup`.
            Cells are ordered by x, then by y. Columns are the height at the first corner, the rises
            across the cell along x and y, and the mixed difference. [m]
    """
    cells = cells or (lambda row, column: row.lookup(column))
    i, s = _cell(x * field.scale, field.nx, field.x0)
    j, t = _cell(y * field.scale, field.ny, field.y0)
    row = i * (field.ny + 1) + j
    h, h_x, h_y, h_xy = (cells(row, column) for column in range(4))
    z = field.a * x + field.b * y + (h + s * h_x + t * (h_y + s * h_xy))
    return z, field.a + (h_x + t * h_xy) * field.scale, field.b + (h_y + s * h_xy) * field.scale


def _cell(u: Any, count: Any, origin: Any) -> tuple[Any, Any]:
    """Cell and place in it from 0 to 1; beyond the edge the middle of an outer cell.

    `u` is counted from the origin, and whole cells are added to the result alone: a sum of both
    would round, and beside a crease into the next cell.
    """
    u = minimum(maximum(u, 0.5 - origin), count + 0.5 - origin)
    whole = trunc(origin)
    u = u + (origin - whole)
    k = trunc(u)
    k = k + (trunc(u - k + 1) - 1)  # down, where `trunc` goes toward zero
    return k + whole, u - k


class ContactPoint(NamedTuple):
    """A point of a body near the ground.

    Attributes:
        x, u: Position and velocity in the world. [m, m/s]
        normal: Of the ground, of length one.
        depth: Below the ground, along the normal. [m]
        anchor: Place where the bristle holds on to the ground. [m]
        held: Largest depth at which the bristle counts in full: `GROWTH` times the depth after
            the last step, 0 for a point that was in the air. [m]
    """

    x: Vec
    u: Vec
    normal: Vec
    depth: Any
    anchor: Vec
    held: Any


def normal_force(law: GroundLaw, point: ContactPoint) -> Any:
    """N = k (d - min(c d, limit) u_n) within 0 and 2 k d (after Hunt and Crossley 1975). [N]"""
    d = maximum(point.depth, 0.0)
    damped = d - minimum(law.damping * d, law.limit) * point.normal.dot(point.u)
    return law.stiffness * minimum(maximum(damped, 0.0), d * HARDEST)


def contact_force(law: GroundLaw, point: ContactPoint, s: Vec) -> Vec:
    """Force on a point, in the world frame: N n, and a bristle within the friction cone. [N]

    Args:
        s: Stretch of the bristle. [m]
    """
    n, N = point.normal, normal_force(law, point)
    trial = s * law.grip + _along(n, point.u) * law.drag
    share = minimum(law.friction * N / sqrt(maximum(trial.dot(trial), SMALLEST)), 1.0)
    return n * N - trial * share


def stretch(point: ContactPoint) -> Vec:
    """Displacement from the anchor along the ground. [m]

    A point that has hardly touched before counts by a share, so that a point exactly on the ground,
    which touches or not by rounding alone, has no other motion than one just above it.
    """
    share = minimum(point.held / maximum(point.depth, SHALLOWEST), 1.0)
    return _along(point.normal, point.x - point.anchor) * share


def slipped(law: GroundLaw, point: ContactPoint) -> tuple[Vec, Vec, Any]:
    """Stretch, anchor and `held` after a step: beyond the cone a bristle slips to its edge."""
    s = stretch(point)
    pull = sqrt(maximum(s.dot(s) * (law.grip * law.grip), SMALLEST))
    s = s * minimum(law.friction * normal_force(law, point) / pull, 1.0)
    return s, point.x - s, maximum(point.depth, 0.0) * GROWTH


def _along(n: Vec, u: Vec) -> Vec:
    """The part of a vector along the ground."""
    return u - n * n.dot(u)


# -- all corners of a body -------------------------------------------------------------------------


class PushedLink(NamedTuple):
    """Pose and twist of a link in the world, and wrenches about the world's origin."""

    R: Mat
    p: Vec
    V: Twist
    push: Wrench
    beyond: Wrench = Wrench()
    down: Vec = LATER  # normal of the ground in the link's frame
    level: Any = LATER  # depth of the link's origin


class Corner(NamedTuple):
    """A point in the frame of its link, and the plane n . x = level below it."""

    place: Vec
    normal: Vec
    level: Any
    law: GroundLaw


class LevelCorner(NamedTuple):
    """A `Corner` above a level plane: its constant normal saves a third of the operations."""

    place: Vec
    level: Any
    law: GroundLaw
    normal = Vec([0, 0, 1])


class RoundCorner(NamedTuple):
    """The lowest point of a circle or ball around `place`; of a circle, `axis` has length 1.

    A ball has no axis, a corner no radius.
    """

    place: Vec
    axis: Vec
    radius: Any
    normal: Vec
    level: Any
    law: GroundLaw


class LevelRoundCorner(NamedTuple):
    """A `RoundCorner` above a level plane."""

    place: Vec
    axis: Vec
    radius: Any
    level: Any
    law: GroundLaw
    normal = Vec([0, 0, 1])


class FieldCorner(NamedTuple):
    """A `Corner` above a field of heights."""

    place: Vec
    field: HeightField
    law: GroundLaw


class FieldRoundCorner(NamedTuple):
    """A `RoundCorner` above a field of heights."""

    place: Vec
    axis: Vec
    radius: Any
    field: HeightField
    law: GroundLaw


class Bristle(NamedTuple):
    """Memory of a point; see `ContactPoint`."""

    anchor: Vec
    held: Any


class RollingBristle(NamedTuple):
    """A `Bristle` of a point that wanders over its link, and its place when it was anchored."""

    anchor: Vec
    held: Any
    place: Vec


class OnPlane(Passes):
    """Corners of links that touch a plane; `pushed` puts a force on a link."""

    Point, Memory, own = Corner, Bristle, ("place",)
    pushed: Any  # (state, corner, contact point, force in the world) -> state

    @classmethod
    def at(cls, own: Any, corner: Any, bristle: Bristle) -> ContactPoint:
        """A corner in the world."""
        x = own.p + own.R @ corner.place
        u = own.V.v + own.V.w.cross(x)
        return ContactPoint(x, u, *cls.under(corner, x), *bristle)

    @staticmethod
    def under(corner: Any, x: Vec) -> tuple[Vec, Any]:
        """Normal of the ground, and the depth of a point."""
        return corner.normal, corner.level - corner.normal.dot(x)

    @classmethod
    def down(cls, own: Any, corner: Any) -> Vec:
        """Normal of the ground below a corner, in the link's frame."""
        return own.down

    @classmethod
    def lowest(cls, own: Any, corner: Any) -> Any:
        """A corner at the place where it can touch."""
        return corner

    @staticmethod
    def survey(own: Any, corner: Corner) -> Any:
        n = corner.normal
        return own._replace(down=own.R.T @ n, level=corner.level - n.dot(own.p))

    @classmethod
    def active(cls, own: Any, corner: Any, bristle: Any) -> Any:
        return maximum(own.level - own.down.dot(corner.place), bristle.held)

    @staticmethod
    def weighted(corner: Any, weight: Any) -> Any:
        law = corner.law
        of_one = (law.stiffness, law.grip, law.drag)
        stiffness, grip, drag = (x * weight for x in of_one)
        return corner._replace(law=law._replace(stiffness=stiffness, grip=grip, drag=drag))

    @classmethod
    def touch(cls, own: Any, corner: Any, bristle: Any) -> Any:
        point = cls.at(own, corner, bristle)
        return cls.pushed(own, corner, point, contact_force(corner.law, point, stretch(point)))

    @classmethod
    def settle(cls, own: Any, corner: Any, bristle: Any) -> tuple[Any, Any]:
        point = cls.at(own, corner, bristle)
        s, *memory = slipped(corner.law, point)
        force = contact_force(corner.law, point, s)
        return Bristle(*memory), cls.pushed(own, corner, point, force)


class Rolling(OnPlane):
    """Lowest points of circles and balls, which wander over their links.

    The bristle holds on to the point of the link that was lowest after the last step; from there it
    is handed to the one that is lowest now, with its stretch.
    """

    Point, Memory, own = RoundCorner, RollingBristle, ("place", "axis", "radius")

    @classmethod
    def lowest(cls, own: Any, corner: Any) -> Any:
        down = cls.down(own, corner)
        across = down - corner.axis * corner.axis.dot(down)
        length = sqrt(maximum(across.dot(across), UPRIGHT * UPRIGHT))
        return corner._replace(place=corner.place - across * (corner.radius / length))

    @classmethod
    def active(cls, own: Any, corner: Any, bristle: Any) -> Any:
        # as if the circle stood upright: a bound that needs no root
        return maximum(own.level - own.down.dot(corner.place) + corner.radius, bristle.held)

    @classmethod
    def touch(cls, own: Any, corner: Any, bristle: Any) -> Any:
        corner = cls.lowest(own, corner)
        return super().touch(own, corner, handed(own.R, corner.place, bristle))

    @classmethod
    def settle(cls, own: Any, corner: Any, bristle: Any) -> tuple[Any, Any]:
        corner = cls.lowest(own, corner)
        memory, own = super().settle(own, corner, handed(own.R, corner.place, bristle))
        return RollingBristle(memory.anchor, memory.held, corner.place), own


class OnField(OnPlane):
    """Corners of links that touch a field of heights."""

    Point = FieldCorner

    @staticmethod
    def under(corner: Any, x: Vec) -> tuple[Vec, Any]:
        z, a, b = surface(corner.field, x[0], x[1])
        n_z = 1 / sqrt(1 + a * a + b * b)
        return Vec([-a * n_z, -b * n_z, n_z]), (z - x[2]) * n_z

    @classmethod
    def down(cls, own: Any, corner: Any) -> Vec:
        return own.R.T @ cls.under(corner, own.p + own.R @ corner.place)[0]

    @staticmethod
    def survey(own: Any, corner: Any) -> Any:
        return own

    @classmethod
    def active(cls, own: Any, corner: Any, bristle: Any) -> Any:
        x = own.p + own.R @ cls.lowest(own, corner).place
        return maximum(surface(corner.field, x[0], x[1])[0] - x[2], bristle.held)


def handed(R: Mat, place: Vec, bristle: RollingBristle) -> Bristle:
    """The bristle of a point at `place` in its link, with the stretch that it had elsewhere."""
    return Bristle(bristle.anchor + R @ (place - bristle.place), bristle.held)


class GroundForce(OnPlane):
    """Force of a plane on the joints and a free base, through corners of the links."""

    State = PushedLink

    @staticmethod
    def base(link: RigidLink, base: Base) -> PushedLink:
        return PushedLink(*LinkMotions.base(link, base), Wrench())

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: Any) -> PushedLink:
        return PushedLink(*LinkMotions.outward(link, joint, parent), Wrench())

    @staticmethod
    def pushed(own: PushedLink, corner: Corner, point: ContactPoint, f: Vec) -> PushedLink:
        return own._replace(push=own.push.plus(Wrench(f, point.x.cross(f))))

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: PushedLink, parent: PushedLink) -> Inward:
        F = own.push.plus(own.beyond)
        felt = screw(link, own.R, own.p).power(F)
        return felt, own, parent._replace(beyond=parent.beyond.plus(F))

    @staticmethod
    def turn(link: RigidLink, base: Base, own: PushedLink) -> tuple[Any, PushedLink]:
        F = own.push.plus(own.beyond)
        return [S.power(F) for S in base_screws(own.R, own.p)] if base.free else None, own


class GroundedLink(NamedTuple):
    """State of a link in `GroundedDynamics`: a `MovingLink`, then a `BiasedLink`."""

    R: Mat
    p: Vec
    V: Twist
    spin: Vec
    drift: Twist
    bias: Wrench
    beyond: Articulated = MASSLESS
    joint: ProjectedBody = LATER
    acceleration: Twist = LATER
    down: Vec = LATER  # as in `PushedLink`
    level: Any = LATER


class GroundedDynamics(OnPlane):
    """Forward dynamics of a body that touches a plane with its corners, and a step in time."""

    State = GroundedLink

    friction, external = ForwardDynamics.friction, ForwardDynamics.external
    inward, turn, back = ForwardDynamics.inward, ForwardDynamics.turn, ForwardDynamics.back

    @staticmethod
    def base(link: RigidLink, base: Base) -> GroundedLink:
        biased = ForwardDynamics.base(link, base)
        return GroundedLink(*LinkMotions.base(link, base), *biased)

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: Any) -> GroundedLink:
        biased = ForwardDynamics.outward(link, joint, parent)
        return GroundedLink(*LinkMotions.outward(link, joint, parent), *biased)

    @staticmethod
    def pushed(own: GroundedLink, corner: Corner, point: ContactPoint, f: Vec) -> GroundedLink:
        f = own.R.T @ f
        return own._replace(bias=own.bias.minus(Wrench(f, corner.place.cross(f))))

    @staticmethod
    def move(base: Base, rate: Twist, h: Any) -> tuple[Vec, Sequence[Any], Twist]:
        """Position, quaternion and twist of a free base after a step of semi-implicit Euler.

        The velocity of the origin is advanced in the world: u = v + h (dv/dt + w x v) in the frame
        before the step. The origin moves by h u, and u is turned into the frame after the step.

        Args:
            rate: Of the twist, in the base's frame.
            h: Duration. [s]
        """
        v, w = base.twist
        u, w = v + (rate.v + w.cross(v)) * h, w + rate.w * h
        step = w * h
        half, cosine = (_even(terms, step.dot(step)) for terms in SERIES)
        i, j, k = axis = step * half
        x, y, z, r = base.quaternion
        turned = [
            r * i + x * cosine + y * k - z * j,
            r * j - x * k + y * cosine + z * i,
            r * k + x * j - y * i + z * cosine,
            r * cosine - x * i - y * j - z * k,
        ]
        # rounding leaves the unit sphere: one Newton step brings it back
        scale = 1.5 - 0.5 * sum(e * e for e in turned)
        across = u.cross(axis) * 2  # exp(-h w) u
        after = Twist(u + across * cosine + across.cross(axis), w)
        return base.pose()[1] + base.rotation() @ (u * h), [scale * e for e in turned], after


LARGEST_TURN = 1.0  # rad of a free base in a step: the series hold up to there
# sin(x/2)/x and cos(x/2) as series in -x^2
SERIES = [
    [1 / (2**n * math.factorial(n)) for n in range(1, 20, 2)],
    [1 / (2**n * math.factorial(n)) for n in range(0, 19, 2)],
]


def _even(terms: Sequence[float], square: Any) -> Any:
    value: Any = 0.0
    for term in reversed(terms):
        value = term - square * value
    return value


# by (kind of ground, has circles or balls): name, what differs from a plane, corners
GROUNDS: dict[tuple[str, bool], tuple[str, tuple[type[Passes], ...], type]] = {
    ("slope", False): ("Sloped", (), Corner),
    ("level", False): ("Level", (), LevelCorner),
    ("field", False): ("Field", (OnField,), FieldCorner),
    ("slope", True): ("Round", (Rolling,), RoundCorner),
    ("level", True): ("LevelRound", (Rolling,), LevelRoundCorner),
    ("field", True): ("FieldRound", (OnField, Rolling), FieldRoundCorner),
}


def _on_grounds(
    passes: type[OnPlane], inputs: tuple[str, ...], result: str, text: str
) -> dict[tuple[str, bool], Quantity]:
    """The quantity of these passes on each kind of ground."""
    found = {}
    for key, (name, differences, corner) in GROUNDS.items():
        fields = {"Point": corner, "__doc__": passes.__doc__}
        bases: tuple[Any, ...] = (*differences, passes)
        each = type(f"{name}{passes.__name__}", bases, fields)
        found[key] = Quantity(inputs, ("nv",), each, result, text, near=False)
    return found


GROUND_FORCES = _on_grounds(GroundForce, ("q", "v"), "tau", "Force of the ground.")
GROUNDED_DYNAMICS = _on_grounds(
    GroundedDynamics, ("q", "v", "tau"), "a", "The acceleration of a body on the ground."
)
