"""Extended Denavit-Hartenberg parameters of one module (giusti2015, III-A and III-B).

Two lines and a frame on each, z along the line, are related by their common normal:

    T = Rz(before) Tz(-p) Tx(a) Rx(alpha) Tz(n) Rz(after)

with x along the normal. docs/theory/denavit_hartenberg.md has the special cases and what
near-parallel axes cost. A module is two such pairs of axes: in-connector and joint axis make the
proximal part, joint axis and out-connector the distal part. Connector frames have z along the way
through the module: into it at the input, out of it at the output.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from modurob.errors import DatasheetError, UnknownNameError, choices
from modurob.modules.datasheet import Joint, Port
from modurob.modules.module_type import ModuleType
from modurob.spatial import se3, so3
from modurob.spatial.inertia import at_center, pseudo_inertia

PARALLEL = 1.5e-8
"""Sine of the angle below which axes count as parallel: the root of float64's epsilon. Taking axes
for parallel moves them by up to the sine, keeping them apart costs epsilon over the sine."""

TOUCHING_M = 1e-12
"""Distance below which parallel axes overlap and others intersect: above the rounding errors of a
body of meters, below the 1e-12 of a round trip. [m]"""

FLIP = se3.pose(so3.from_rpy(np.pi, 0.0, 0.0), np.zeros(3))  # port to in-connector
NO_MASS = np.zeros((4, 4))
CACHED_KINDS = 256


# -- lines in space --------------------------------------------------------------------------------


class AxisPair(NamedTuple):
    """Two z axes by their common normal: T = Rz(before) Tz(-p) Tx(a) Rx(alpha) Tz(n) Rz(after).

    Attributes:
        a: Along the normal; negative where ``z1 x z0`` points back to the first axis. [m]
        alpha: From the first axis to the second, about the normal; in [-pi, 0], or pi. [rad]
        p, n: z of the frames' origins, counted from the feet of the normal on their axes. [m]
        before, after: Turns from the first frame to the normal, and from there to the second. [rad]
        case: ``skew``, ``intersecting``, ``parallel`` or ``overlapping``.
    """

    a: float
    alpha: float
    p: float
    n: float
    before: float
    after: float
    case: str

    @property
    def transform(self) -> np.ndarray:
        """(4, 4) the second frame in the first."""
        return turn_z(self.before) @ link_transform(*self[:4]) @ turn_z(self.after)


def axis_pair(T: np.ndarray) -> AxisPair:
    """The common normal of the z axes of two frames, T (4, 4) the second in the first.

    Where the normal is not unique: intersecting axes take ``z1 x z0``, as skew ones do; parallel
    axes the normal through the second origin; overlapping axes the x of the second frame.
    """
    R, (x, y, z) = T[:3, :3].tolist(), T[:3, 3].tolist()
    zx, zy, zz = R[0][2], R[1][2], R[2][2]
    sine = math.hypot(zx, zy)
    if sine <= PARALLEL:
        return _parallel_pair(R, x, y, z)
    # giusti2015, case iii: x along z1 x z0 = (zy, -zx, 0); all angles by atan2 (erratum 14)
    before = math.atan2(0.0 - zx, zy)
    c, s = zy / sine, -zx / sine
    a, n = x * c + y * s, (y * c - x * s) / sine
    case = "intersecting" if abs(a) <= TOUCHING_M else "skew"
    after = math.atan2(0.0 - R[2][0], 0.0 - R[2][1])
    alpha = math.atan2(-sine, zz)
    return AxisPair(a + 0.0, alpha, n * zz - z + 0.0, n + 0.0, before, after, case)


def _parallel_pair(R: list[list[float]], x: float, y: float, z: float) -> AxisPair:
    """giusti2015, cases i and ii: the foot on the second axis is its origin, so n = 0."""
    along = 1.0 if R[2][2] > 0 else -1.0
    alpha = 0.0 if along > 0 else math.pi
    turned = math.atan2(R[1][0], R[0][0])
    distance = math.hypot(x, y)
    if distance <= TOUCHING_M:
        return AxisPair(0.0, alpha, 0.0 - z, 0.0, turned + 0.0, 0.0, "overlapping")
    before = math.atan2(y, x)
    # R = Rz(before) Rx(alpha) Rz(after), and Rx(pi) turns the last one round
    after = wrapped(along * (turned - before))
    return AxisPair(distance, alpha, 0.0 - z, 0.0, before + 0.0, after, "parallel")


def link_transform(a: float, alpha: float, p: float, n: float) -> np.ndarray:
    """(4, 4) Tz(-p) Tx(a) Rx(alpha) Tz(n); giusti2015 (4) without its turn."""
    c, s = _cos_sin(alpha)
    return np.array(
        [
            [1.0, 0.0, 0.0, a],
            [0.0, c, -s, -n * s],
            [0.0, s, c, n * c - p],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def turn_z(angle: float) -> np.ndarray:
    """(4, 4) Rz. [rad]"""
    c, s = _cos_sin(angle)
    return np.array([[c, -s, 0.0, 0.0], [s, c, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0, 0, 0, 1.0]])


def wrapped(angle: float) -> float:
    """The same angle in (-pi, pi]. [rad]"""
    angle = math.remainder(angle, 2 * math.pi)
    return math.pi if angle <= -math.pi else angle + 0.0


def _cos_sin(angle: float) -> tuple[float, float]:
    """Exact at whole quarter turns, of which modules are full."""
    quarters = angle / (math.pi / 2)
    if quarters == round(quarters):
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[round(quarters) % 4]
    return math.cos(angle), math.sin(angle)


def axis_frame(before: np.ndarray, screw: np.ndarray) -> np.ndarray:
    """(4, 4) frame of a joint with z along its screw: `before` itself where that holds already."""
    axis = screw[3:] if np.any(screw[3:]) else screw[:3]
    if axis[2] > 0 and not axis[:2].any():
        return before
    z = np.array([0.0, 0.0, 1.0])
    # the shortest turn from z to the axis; half a turn about x where they oppose
    turn = np.cross(z, axis)
    sine = float(np.linalg.norm(turn))
    direction = turn / sine if sine > 0 else np.array([1.0, 0.0, 0.0])
    R = so3.rotation(direction, math.atan2(sine, axis[2]))
    R[:, 2] = axis  # to the last bit: this column is what the parameters are about
    return before @ se3.pose(R, np.zeros(3))


# -- parameters ------------------------------------------------------------------------------------


class Segment(NamedTuple):
    """One part of a module (giusti2015, Tab. I): between a connector and the joint axis.

    Attributes:
        a, alpha, p, n: As in `AxisPair`; axes in the order they are passed. [m, rad]
        delta: Turn from the common normal to the connector's x. [rad]
    """

    a: float
    alpha: float
    p: float
    n: float
    delta: float

    @property
    def transform(self) -> np.ndarray:
        """(4, 4) Tz(-p) Tx(a) Rx(alpha) Tz(n): without the connector's turn."""
        return link_transform(*self[:4])


class PartMass(NamedTuple):
    """Mass properties of one part (giusti2015, Tab. II), in the frame of its connector.

    Attributes:
        mass: [kg]
        center: (3,) center of mass. [m]
        inertia: (3, 3) about the connector's origin. [kg m^2]
    """

    mass: float
    center: np.ndarray
    inertia: np.ndarray

    @property
    def moments(self) -> np.ndarray:
        """(4, 4) pseudo-inertia."""
        about_center = at_center(self.mass, self.center, self.inertia)
        return pseudo_inertia(self.mass, self.center, about_center)


class TwoPart(NamedTuple):
    """Parameters of a module for one pair of its connectors: giusti2015, Tab. I and II.

    Attributes:
        module: Name of the kind.
        input, output: The ports it is entered and left by.
        proximal, distal: From the in-connector to the joint, from there to the out-connector. A
            pair without a joint between (a link) has all of it in the proximal part.
        delta_j: Turn about the joint axis between the two parts' normals, at q = 0. [rad]
        joint: The joint in between, or None for a link.
        proximal_mass, distal_mass: Of both parts; a link has all of it in the proximal part.
        beside: Moving joints of the module that do not lie between the two connectors.
    """

    module: str
    input: Port
    output: Port
    proximal: Segment
    distal: Segment
    delta_j: float
    joint: Joint | None
    proximal_mass: PartMass
    distal_mass: PartMass
    beside: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """``revolute``, ``prismatic``, or ``fixed`` for a link."""
        return "fixed" if self.joint is None else self.joint.kind

    def transform(self, q: float = 0.0) -> np.ndarray:
        """(4, 4) the out-connector in the in-connector at displacement q of the joint. [rad, m]"""
        T_in_joint = turn_z(-self.proximal.delta) @ self.proximal.transform
        T_joint_out = self.distal.transform @ turn_z(self.distal.delta)
        turned = turn_z(self.delta_j + (q if self.kind == "revolute" else 0.0))
        lifted = link_transform(0.0, 0.0, -q if self.kind == "prismatic" else 0.0, 0.0)
        return T_in_joint @ lifted @ turned @ T_joint_out


# -- from a datasheet ------------------------------------------------------------------------------


def characterize(
    kind: ModuleType, input: int | str | None = None, output: int | str | None = None
) -> TwoPart:
    """The parameters of a module between two of its connectors.

    Args:
        kind: The datasheet.
        input, output: Labels of the ports it is entered and left by. May be left out where the kind
            has two docks: the first is the input.

    Raises:
        DatasheetError: Several joints lie between the two, or one port is both.
        UnknownNameError: No such port.
    """
    there, back = _ports(kind, input, output)
    entry, exit = kind.body_index(there.body), kind.body_index(back.body)
    crossed, poses = _way(kind, entry, exit)
    if len(crossed) > 1:
        names = choices(kind.joints[k].name for k, _ in crossed)
        raise DatasheetError(
            f"between ports {there.label} and {back.label} of a {kind.name} lie {len(crossed)} "
            f"joints ({names}); these parameters are for one. Use Organism.dh_table(), which "
            "takes any module"
        )
    T_entry_in = there.pose @ FLIP
    if crossed:
        ((number, T_entry_axis),) = crossed
        joint, T_in_axis = kind.joints[number], se3.inverse(T_entry_in) @ T_entry_axis
        T_axis_out = se3.inverse(T_entry_axis) @ poses[exit] @ back.pose
        distal_mass = _part_mass(kind, exit, back.pose)
    else:  # a link: the axis is the out-connector's
        joint, T_axis_out = None, np.eye(4)
        T_in_axis = se3.inverse(T_entry_in) @ poses[exit] @ back.pose
        distal_mass = part_mass(NO_MASS)
    first, second = axis_pair(T_in_axis), axis_pair(T_axis_out)
    return TwoPart(
        kind.name,
        there,
        back,
        Segment(*first[:4], wrapped(-first.before)),
        Segment(*second[:4], wrapped(second.after)),
        wrapped(first.after + second.before),
        joint,
        _part_mass(kind, entry, T_entry_in),
        distal_mass,
        tuple(j.name for j in kind.joints if j.kind != "fixed" and j is not joint),
    )


def connector_pairs(kind: ModuleType) -> list[TwoPart]:
    """The parameters of every pair of docks with at most one joint between, earlier dock first."""
    body = {label: kind.body_index(kind.port(label).body) for label in kind.docks}
    return [
        characterize(kind, input, output)
        for input, output in itertools.combinations(kind.docks, 2)
        if len(_way(kind, body[input], body[output])[0]) <= 1
    ]


def _ports(
    kind: ModuleType, input: int | str | None, output: int | str | None
) -> tuple[Port, Port]:
    if input is None or output is None:
        if len(kind.docks) != 2:
            raise UnknownNameError(
                f"give the input and output ports of a {kind.name}: it has "
                f"{len(kind.docks)} docks, {choices(kind.docks)}"
            )
        first, second = kind.docks
        input = first if input is None else input
        output = second if output is None else output
    if input == output:
        raise DatasheetError(
            f"port {input} of a {kind.name} cannot be input and output at once: "
            f"docks are {choices(kind.docks)}"
        )
    return kind.port(input), kind.port(output)


def _way(
    kind: ModuleType, entry: int, exit: int
) -> tuple[list[tuple[int, np.ndarray]], dict[int, np.ndarray]]:
    """Moving joints between two bodies, each with its axis frame, and all bodies; q = 0.

    Poses are in the frame of the entry body.
    """
    poses, crossed = {entry: np.eye(4)}, {entry: []}
    for step in kind.outward(entry):
        T = poses[step.previous] @ step.before
        poses[step.body] = T @ step.after
        crossed[step.body] = list(crossed[step.previous])
        if kind.joints[step.joint].kind != "fixed":
            crossed[step.body].append((step.joint, axis_frame(T, step.screw)))
    return crossed[exit], poses


def _part_mass(kind: ModuleType, body: int, T_body_connector: np.ndarray) -> PartMass:
    """Everything rigidly tied to a body, in the frame of a connector on it."""
    T = se3.inverse(T_body_connector)
    poses = {body: T}
    for step in kind.outward(body):
        if step.previous in poses and kind.joints[step.joint].kind == "fixed":
            poses[step.body] = poses[step.previous] @ step.before @ step.after
    return part_mass(sum((carried(T, moments(kind)[k]) for k, T in poses.items()), NO_MASS))


# -- mass by its moments ---------------------------------------------------------------------------


@lru_cache(maxsize=CACHED_KINDS)
def moments(kind: ModuleType) -> np.ndarray:
    """(bodies, 4, 4) pseudo-inertias of the bodies of a kind, each in its frame."""
    numbers = [(body.mass, body.center_of_mass, body.inertia) for body in kind.bodies]
    return pseudo_inertia(*zip(*numbers, strict=True))


def carried(T_ab: np.ndarray, moments_b: np.ndarray) -> np.ndarray:
    """(4, 4) pseudo-inertia in frame a of one in frame b."""
    return T_ab @ moments_b @ T_ab.T


def part_mass(moments: np.ndarray) -> PartMass:
    """Mass properties of a (4, 4) pseudo-inertia; without mass the center is the origin."""
    mass, S = float(moments[3, 3]), moments[:3, :3]
    center = moments[:3, 3] / mass if mass > 0 else np.zeros(3)
    return frozen(mass, center + 0.0, np.trace(S) * np.eye(3) - (S + S.T) / 2)


def frozen(mass: float, center: np.ndarray, inertia: np.ndarray) -> PartMass:
    """Mass properties with read-only arrays."""
    for array in (center, inertia):
        array.setflags(write=False)
    return PartMass(mass, center, inertia)
