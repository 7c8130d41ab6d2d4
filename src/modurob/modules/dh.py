"""Extended Denavit-Hartenberg parameters of one module (giusti2015, III-A and III-B).

A module is two pairs of axes (see `axis_pairs`): in-connector and joint axis make the proximal
part, joint axis and out-connector the distal part. Connector frames have z along the way through
the module: into it at the input, out of it at the output.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from modurob.errors import DatasheetError, UnknownNameError, choices
from modurob.modules.axis_pairs import (
    axis_frame,
    axis_pair,
    inverse,
    lift_z,
    link_transform,
    turn_z,
    wrapped,
)
from modurob.modules.datasheet import Body, Joint, Port
from modurob.modules.module_type import ModuleType
from modurob.spatial import se3, so3

FLIP = se3.pose(so3.from_rpy(np.pi, 0.0, 0.0), np.zeros(3))  # port to in-connector


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
        """(4, 4) see `moments`; S = tr(J)/2 E - J."""
        J, h = self.inertia, self.mass * self.center
        result = np.empty((4, 4))
        result[:3, :3] = 0.5 * np.trace(J) * np.eye(3) - J
        result[:3, 3] = result[3, :3] = h
        result[3, 3] = self.mass
        return result


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
        """(4, 4) the out-connector in the in-connector: the geometry of the parameters.

        Args:
            q: Displacement of the joint. [rad, m]
        """
        T_in_joint = turn_z(-self.proximal.delta) @ self.proximal.transform
        T_joint_out = self.distal.transform @ turn_z(self.distal.delta)
        slides = self.kind == "prismatic"
        turned = turn_z(self.delta_j if slides or self.joint is None else self.delta_j + q)
        return T_in_joint @ (lift_z(q) @ turned if slides else turned) @ T_joint_out


NO_MASS = np.zeros((4, 4))  # moments of no mass


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
        joint, T_in_axis = kind.joints[number], inverse(T_entry_in) @ T_entry_axis
        T_axis_out = inverse(T_entry_axis) @ poses[exit] @ back.pose
        distal_mass = _part_mass(kind, exit, back.pose)
    else:  # a link: the axis is the out-connector's
        joint, T_axis_out = None, np.eye(4)
        T_in_axis = inverse(T_entry_in) @ poses[exit] @ back.pose
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
    T = inverse(T_body_connector)
    poses = {body: T}
    for step in kind.outward(body):
        if step.previous in poses and kind.joints[step.joint].kind == "fixed":
            poses[step.body] = poses[step.previous] @ step.before @ step.after
    return part_mass(sum((carried(T, moments(kind.bodies[k])) for k, T in poses.items()), NO_MASS))


# -- mass by its moments ---------------------------------------------------------------------------


def moments(body: Body) -> np.ndarray:
    """(4, 4) integral of (r; 1) (r; 1)^T dm over a body, in its frame: [S h; h^T m]. [kg m^2]

    Masses in one frame add as these matrices do, and `carried` moves them to another frame.
    """
    I, c = np.array(body.inertia), np.array([*body.center_of_mass, 1.0])  # noqa: E741
    result = body.mass * np.outer(c, c)
    result[:3, :3] += 0.5 * np.trace(I) * np.eye(3) - I
    return result


def carried(T_ab: np.ndarray, moments_b: np.ndarray) -> np.ndarray:
    """(4, 4) moments of mass in frame a of those in frame b."""
    return T_ab @ moments_b @ T_ab.T


def part_mass(moments: np.ndarray) -> PartMass:
    """Mass properties of (4, 4) moments; without mass the center is the origin."""
    mass, S = float(moments[3, 3]), moments[:3, :3]
    center = moments[:3, 3] / mass if mass > 0 else np.zeros(3)
    J = np.trace(S) * np.eye(3) - (S + S.T) / 2
    return frozen(mass, center + 0.0, J + 0.0)


def frozen(mass: float, center: np.ndarray, inertia: np.ndarray) -> PartMass:
    """Mass properties with read-only arrays."""
    for array in (center, inertia):
        array.setflags(write=False)
    return PartMass(mass, center, inertia)
