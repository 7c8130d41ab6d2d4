"""Poses, center of mass, momentum and energy: sums over all links.

Positions are counted from the base, not from the world's origin, until the last step, so that a
robot far from that origin loses no digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from modurob.equations.links import (
    RigidLink,
    base_screws,
    displacement,
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


class MovingLink(NamedTuple):
    """Pose and twist of a link in the world; what an algorithm does not read costs nothing."""

    R: Mat
    p: Vec
    V: Twist


class LinkMotions(Passes):
    """Base of algorithms on the poses and twists of all links in the world."""

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


def _placed(link: RigidLink, joint: JointState, parent: Any) -> tuple[Mat, Vec]:
    R, p = joint_pose(link, joint.q)
    return parent.R @ R, parent.p + parent.R @ p


def _moved(link: RigidLink, joint: JointState, parent: Twist) -> Twist:
    """Twist of a link in its own frame."""
    return from_parent(*joint_pose(link, joint.q), parent).plus(unit_screw(link, joint.v))


class ForwardKinematics(LinkMotions):
    """Poses of all bodies in the world: rows of [R | p]. [m]"""

    @staticmethod
    def output(own: MovingLink, R: Mat, p: Vec) -> list[Any]:
        R_wb, p_wb = own.R @ R, own.p + own.R @ p
        return [x for i in range(3) for x in (*R_wb.row(i), p_wb[i])]


class JointScrews(LinkMotions):
    """Unit screws of all velocities, linear part first, about the world's origin."""

    @staticmethod
    def result(S: Twist, V: Twist) -> tuple[Any, ...]:
        """Six numbers of a screw S of a link that moves with V."""
        return (*S.v, *S.w)

    @classmethod
    def inward(cls, link: RigidLink, joint: JointState, own: Any, parent: Any) -> Inward:
        return cls.result(screw(link, own.R, own.p), own.V), own, parent

    @classmethod
    def turn(cls, link: RigidLink, base: Base, own: Any) -> tuple[Any, Any]:
        return [cls.result(S, own.V) for S in base_screws(own.R, own.p)], own


class JointScrewRates(JointScrews):
    """Time derivatives of `JointScrews`."""

    @staticmethod
    def result(S: Twist, V: Twist) -> tuple[Any, ...]:
        rate = V.cross(S)
        return (*rate.v, *rate.w)


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
    """Twist of a link; energies of motion and of springs, mass of it with everything beyond it."""

    twist: Twist
    kinetic: Any
    elastic: Any
    total: MassSum


class Energy(Passes):
    """Kinetic energy, and potential energy, which is zero at the world's origin. [J]"""

    State = EnergySum

    @staticmethod
    def base(link: RigidLink, base: Base) -> EnergySum:
        return _energy(link, base.twist)

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: EnergySum) -> EnergySum:
        own, q = _energy(link, _moved(link, joint, parent.twist)), displacement(joint.q)
        return own._replace(
            kinetic=own.kinetic + link.armature * (joint.v * joint.v) * 0.5,
            elastic=link.stiffness * (q * q) * 0.5,
        )

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: EnergySum, parent: EnergySum) -> Inward:
        *_, total = CenterOfMass.inward(link, joint, own.total, parent.total)
        kinetic, elastic = parent.kinetic + own.kinetic, parent.elastic + own.elastic
        return None, own, parent._replace(kinetic=kinetic, elastic=elastic, total=total)

    @staticmethod
    def turn(link: RigidLink, base: Base, own: EnergySum) -> tuple[Any, EnergySum]:
        R, p = base.pose()
        place = p * own.total.mass + R @ own.total.moment
        return [own.kinetic, own.elastic - base.gravity.dot(place)], own


def _energy(link: RigidLink, V: Twist) -> EnergySum:
    kinetic = V.power(inertia_times(link, V)) * 0.5
    return EnergySum(V, kinetic, 0, MassSum(link.mass, link.moment))


# -- centroidal momentum ---------------------------------------------------------------------------


UNCHANGED = Composite(0, ZERO, ZERO_MATRIX)


class CenterLink(NamedTuple):
    """State of a link in `CentroidalMomentumMatrix` and its rate.

    V, body, its rate and the momentum per velocity of the joint are in the link's frame; the center
    of mass of everything and its velocity are in world axes, from the base.
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


class CentroidalMomentumMatrix(Passes):
    """A_G: momentum about the center of mass in world axes, per velocity (Orin, Goswami 2008)."""

    State = CenterLink

    @staticmethod
    def about_center(own: CenterLink, F: Wrench, F_rate: Wrench) -> tuple[Any, ...]:
        """Six numbers of a momentum in the link's frame."""
        f = own.R @ F.f
        return (*f, *(own.R @ F.n + (own.p - own.center).cross(f)))

    @staticmethod
    def base(link: RigidLink, base: Base) -> CenterLink:
        return CenterLink(base.pose()[0], ZERO, base.twist, composite(link), UNCHANGED)

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: CenterLink) -> CenterLink:
        V = _moved(link, joint, parent.V)
        return CenterLink(*_placed(link, joint, parent), V, composite(link), UNCHANGED)

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: CenterLink, parent: CenterLink) -> Inward:
        pose = joint_pose(link, joint.q)
        rate = to_parent(*pose, _rate_along(own.body, own.rate, unit_screw(link, joint.v)))
        kept = own._replace(
            momentum=unit_load(link, own.body), momentum_rate=unit_load(link, own.rate)
        )
        body = added(parent.body, to_parent(*pose, own.body))
        return None, kept, parent._replace(body=body, rate=added(parent.rate, rate))

    @classmethod
    def turn(cls, link: RigidLink, base: Base, own: CenterLink) -> tuple[Any, CenterLink]:
        c, (v, w) = own.body.moment * (1 / own.body.mass), own.V
        velocity = v + w.cross(c) + own.rate.moment * (1 / own.body.mass)
        whole = own._replace(center=own.R @ c, center_rate=own.R @ velocity)
        loads = zip(_base_loads(own.body), _base_loads(own.rate), strict=True)
        return [cls.about_center(whole, *each) for each in loads], whole

    @classmethod
    def back(cls, link: RigidLink, joint: JointState, own: Any, parent: Any) -> tuple[Any, Any]:
        whole = own._replace(center=parent.center, center_rate=parent.center_rate)
        return cls.about_center(whole, own.momentum, own.momentum_rate), whole


class CentroidalMomentumRate(CentroidalMomentumMatrix):
    """Time derivative of `CentroidalMomentumMatrix`."""

    @staticmethod
    def about_center(own: CenterLink, F: Wrench, F_rate: Wrench) -> tuple[Any, ...]:
        R, (v, w) = own.R, own.V
        r, r_rate = own.p - own.center, R @ v - own.center_rate
        f, f_rate = R @ F.f, R @ (F_rate.f + w.cross(F.f))
        n_rate = R @ (F_rate.n + w.cross(F.n))
        return (*f_rate, *(n_rate + r_rate.cross(f) + r.cross(f_rate)))


def _base_loads(body: Composite) -> list[Wrench]:
    """Momentum of everything per velocity of a free base, in its frame."""
    inertia = base_inertia(body)
    return [
        Wrench(*(Vec([inertia[3 * part + i][k] for i in range(3)]) for part in range(2)))
        for k in range(6)
    ]


def _rate_along(body: Composite, rate: Composite, V: Twist) -> Composite:
    """Rates of moments in a frame at rest, of a body that moves there with V."""
    m, h, (v, w) = body.mass, body.moment, V
    turned, swept = hat(w) @ body.second, outer(v, h)
    second = symmetric(
        lambda i, j: rate.second[i, j] + turned[i, j] + turned[j, i] + swept[i, j] + swept[j, i]
    )
    return Composite(0, rate.moment + v * m + w.cross(h), second)
