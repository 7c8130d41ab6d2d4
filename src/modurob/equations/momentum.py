"""Poses, center of mass, momentum and energy: sums over all links.

Positions are counted from the base, not from the world's origin, until the last step, so that a
robot far from that origin loses no digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from modurob.equations.links import (
    RigidLink,
    base_screws,
    from_parent,
    joint_pose,
    screw,
    unit_screw,
)
from modurob.equations.links import to_parent as wrench_to_parent
from modurob.equations.mass_matrix import (
    Composite,
    added,
    base_inertia,
    composite,
    inertia_times,
    to_parent,
    unit_load,
)
from modurob.equations.passes import LATER, Base, Inward, JointState, Passes
from modurob.equations.vectors import (
    ZERO,
    ZERO_MATRIX,
    Mat,
    Twist,
    Vec,
    Wrench,
    hat,
    outer,
    symmetric,
)


class PlacedLink(NamedTuple):
    """Pose of a link in the world."""

    R: Mat
    p: Vec


class LinkPoses(Passes):
    """Base of algorithms that need the pose of each link in the world."""

    State = PlacedLink

    @staticmethod
    def base(link: RigidLink, base: Base) -> PlacedLink:
        return PlacedLink(*base.pose())

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: PlacedLink) -> PlacedLink:
        return PlacedLink(*_placed(link, joint, parent))


def _placed(link: RigidLink, joint: JointState, parent: Any) -> tuple[Mat, Vec]:
    R, p = joint_pose(link, joint.q)
    return parent.R @ R, parent.p + parent.R @ p


def _moved(link: RigidLink, joint: JointState, parent: Twist) -> Twist:
    """Twist of a link in its own frame."""
    return from_parent(*joint_pose(link, joint.q), parent).plus(unit_screw(link, joint.v))


class ForwardKinematics(LinkPoses):
    """Poses of all bodies in the world: rows of [R | p]. [m]"""

    @staticmethod
    def output(own: PlacedLink, R: Mat, p: Vec) -> list[Any]:
        R_wb, p_wb = own.R @ R, own.p + own.R @ p
        return [x for i in range(3) for x in (*R_wb.row(i), p_wb[i])]


class JointScrews(LinkPoses):
    """Unit screws of all velocities, linear part first, about the world's origin."""

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: PlacedLink, parent: PlacedLink) -> Inward:
        S = screw(link, own.R, own.p)
        return (*S.v, *S.w), own, parent

    @staticmethod
    def turn(link: RigidLink, base: Base, own: PlacedLink) -> tuple[Any, PlacedLink]:
        return [(*S.v, *S.w) for S in base_screws(own.R, own.p)], own


class MovingLink(NamedTuple):
    """Pose and twist of a link, in the world."""

    R: Mat
    p: Vec
    V: Twist


class JointScrewRates(Passes):
    """Time derivatives of `JointScrews`."""

    State = MovingLink

    @staticmethod
    def base(link: RigidLink, base: Base) -> MovingLink:
        R, p = base.pose()
        w = R @ base.twist.w
        return MovingLink(R, p, Twist(R @ base.twist.v + p.cross(w), w))

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: MovingLink) -> MovingLink:
        R, p = _placed(link, joint, parent)
        return MovingLink(R, p, parent.V.plus(screw(link, R, p).times(joint.v)))

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: MovingLink, parent: MovingLink) -> Inward:
        rate = own.V.cross(screw(link, own.R, own.p))
        return (*rate.v, *rate.w), own, parent

    @staticmethod
    def turn(link: RigidLink, base: Base, own: MovingLink) -> tuple[Any, MovingLink]:
        rates = [own.V.cross(S) for S in base_screws(own.R, own.p)]
        return [(*S.v, *S.w) for S in rates], own


class MassSum(NamedTuple):
    """Mass and first moment of a link with everything beyond it, in its frame."""

    mass: Any
    moment: Vec


class CenterOfMass(Passes):
    """Center of mass of all links in the world, a fixed base included. [m]"""

    State = MassSum

    @staticmethod
    def base(link: RigidLink, base: Base) -> MassSum:
        return MassSum(link.mass, link.moment)

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: MassSum) -> MassSum:
        return MassSum(link.mass, link.moment)

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: MassSum, parent: MassSum) -> Inward:
        R, p = joint_pose(link, joint.q)
        moment = parent.moment + R @ own.moment + p * own.mass
        return None, own, MassSum(parent.mass + own.mass, moment)

    @staticmethod
    def turn(link: RigidLink, base: Base, own: MassSum) -> tuple[Any, MassSum]:
        R, p = base.pose()
        return [*(p + R @ (own.moment * (1 / own.mass)))], own


class MovedMass(NamedTuple):
    """Twist of a link, and momentum of it with everything beyond it, in its frame."""

    twist: Twist
    momentum: Wrench


class Momentum(Passes):
    """Linear momentum, and angular momentum about the world's origin. [N s, N m s]"""

    State = MovedMass

    @staticmethod
    def base(link: RigidLink, base: Base) -> MovedMass:
        return MovedMass(base.twist, inertia_times(link, base.twist) if base.free else Wrench())

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: MovedMass) -> MovedMass:
        V = _moved(link, joint, parent.twist)
        return MovedMass(V, inertia_times(link, V))

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: MovedMass, parent: MovedMass) -> Inward:
        passed = wrench_to_parent(*joint_pose(link, joint.q), own.momentum)
        return None, own, parent._replace(momentum=parent.momentum.plus(passed))

    @staticmethod
    def turn(link: RigidLink, base: Base, own: MovedMass) -> tuple[Any, MovedMass]:
        total = wrench_to_parent(*base.pose(), own.momentum)
        return [*total.f, *total.n], own


class EnergySum(NamedTuple):
    """Twist of a link, and kinetic energy and mass of it with everything beyond it."""

    twist: Twist
    kinetic: Any
    total: MassSum


class Energy(Passes):
    """Kinetic energy, and potential energy, which is zero at the world's origin. [J]"""

    State = EnergySum

    @staticmethod
    def base(link: RigidLink, base: Base) -> EnergySum:
        return _energy(link, base.twist)

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: EnergySum) -> EnergySum:
        return _energy(link, _moved(link, joint, parent.twist))

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: EnergySum, parent: EnergySum) -> Inward:
        *_, total = CenterOfMass.inward(link, joint, own.total, parent.total)
        return None, own, parent._replace(kinetic=parent.kinetic + own.kinetic, total=total)

    @staticmethod
    def turn(link: RigidLink, base: Base, own: EnergySum) -> tuple[Any, EnergySum]:
        R, p = base.pose()
        place = p * own.total.mass + R @ own.total.moment
        return [own.kinetic, -base.gravity.dot(place)], own


def _energy(link: RigidLink, V: Twist) -> EnergySum:
    kinetic = V.power(inertia_times(link, V)) * 0.5
    return EnergySum(V, kinetic, MassSum(link.mass, link.moment))


# -- centroidal momentum ---------------------------------------------------------------------------


class CenterLink(NamedTuple):
    """State of a link in `CentroidalMomentumMatrix`; `momentum` is per velocity of its joint."""

    R: Mat
    p: Vec
    body: Composite
    momentum: Wrench = LATER
    center: Vec = LATER


class CentroidalMomentumMatrix(Passes):
    """A_G: momentum about the center of mass in world axes, per velocity (Orin, Goswami 2008)."""

    State = CenterLink

    @staticmethod
    def base(link: RigidLink, base: Base) -> CenterLink:
        return CenterLink(base.pose()[0], ZERO, composite(link))

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: CenterLink) -> CenterLink:
        return CenterLink(*_placed(link, joint, parent), composite(link))

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: CenterLink, parent: CenterLink) -> Inward:
        momentum = wrench_to_parent(own.R, own.p, unit_load(link, own.body))
        passed = added(parent.body, to_parent(*joint_pose(link, joint.q), own.body))
        return None, own._replace(momentum=momentum), parent._replace(body=passed)

    @staticmethod
    def turn(link: RigidLink, base: Base, own: CenterLink) -> tuple[Any, CenterLink]:
        c = own.R @ (own.body.moment * (1 / own.body.mass))
        loads = [wrench_to_parent(own.R, ZERO, load) for load in _base_loads(own.body)]
        return [_about(c, load) for load in loads], own._replace(center=c)

    @staticmethod
    def back(
        link: RigidLink, joint: JointState, own: CenterLink, parent: CenterLink
    ) -> tuple[Any, CenterLink]:
        return _about(parent.center, own.momentum), own._replace(center=parent.center)


def _about(c: Vec, F: Wrench) -> tuple[Any, ...]:
    """Six numbers of a wrench or momentum about another point."""
    return (*F.f, *(F.n - c.cross(F.f)))


def _base_loads(body: Composite) -> list[Wrench]:
    """Momentum of everything per velocity of a free base, in its frame."""
    inertia = base_inertia(body)
    return [
        Wrench(*(Vec([inertia[3 * part + i][k] for i in range(3)]) for part in range(2)))
        for k in range(6)
    ]


class CenterRate(NamedTuple):
    """State of a link in `CentroidalMomentumRate`.

    V, body, its rate and the momentum per velocity of the joint are in the link's frame.
    """

    R: Mat
    p: Vec
    V: Twist
    body: Composite
    rate: Composite
    momentum: Wrench = LATER
    momentum_rate: Wrench = LATER
    center: Vec = LATER
    center_rate: Vec = LATER


UNCHANGED = Composite(0, ZERO, ZERO_MATRIX)


class CentroidalMomentumRate(Passes):
    """Time derivative of `CentroidalMomentumMatrix`."""

    State = CenterRate

    @staticmethod
    def base(link: RigidLink, base: Base) -> CenterRate:
        return CenterRate(base.pose()[0], ZERO, base.twist, composite(link), UNCHANGED)

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: CenterRate) -> CenterRate:
        V = _moved(link, joint, parent.V)
        return CenterRate(*_placed(link, joint, parent), V, composite(link), UNCHANGED)

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: CenterRate, parent: CenterRate) -> Inward:
        pose = joint_pose(link, joint.q)
        rate = to_parent(*pose, _rate_along(own.body, own.rate, unit_screw(link, joint.v)))
        kept = own._replace(
            momentum=unit_load(link, own.body), momentum_rate=unit_load(link, own.rate)
        )
        body = added(parent.body, to_parent(*pose, own.body))
        return None, kept, parent._replace(body=body, rate=added(parent.rate, rate))

    @staticmethod
    def turn(link: RigidLink, base: Base, own: CenterRate) -> tuple[Any, CenterRate]:
        c, (v, w) = own.body.moment * (1 / own.body.mass), own.V
        velocity = v + w.cross(c) + own.rate.moment * (1 / own.body.mass)
        whole = own._replace(center=own.R @ c, center_rate=own.R @ velocity)
        loads = zip(_base_loads(own.body), _base_loads(own.rate), strict=True)
        return [_rate_about(whole, load, rate) for load, rate in loads], whole

    @staticmethod
    def back(
        link: RigidLink, joint: JointState, own: CenterRate, parent: CenterRate
    ) -> tuple[Any, CenterRate]:
        whole = own._replace(center=parent.center, center_rate=parent.center_rate)
        return _rate_about(whole, own.momentum, own.momentum_rate), whole


def _rate_along(body: Composite, rate: Composite, V: Twist) -> Composite:
    """Rates of moments in a frame at rest, of a body that moves there with V."""
    m, h, (v, w) = body.mass, body.moment, V
    turned, swept = hat(w) @ body.second, outer(v, h)
    second = symmetric(
        lambda i, j: rate.second[i, j] + turned[i, j] + turned[j, i] + swept[i, j] + swept[j, i]
    )
    return Composite(0, rate.moment + v * m + w.cross(h), second)


def _rate_about(own: CenterRate, F: Wrench, F_rate: Wrench) -> tuple[Any, ...]:
    """Time derivative of a momentum about the center of mass, from that in the link's frame."""
    R, (v, w) = own.R, own.V
    r, r_rate = own.p - own.center, R @ v - own.center_rate
    f, f_rate = R @ F.f, R @ (F_rate.f + w.cross(F.f))
    n_rate = R @ (F_rate.n + w.cross(F.n))
    return (*f_rate, *(n_rate + r_rate.cross(f) + r.cross(f_rate)))
