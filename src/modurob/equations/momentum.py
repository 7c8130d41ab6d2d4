"""Poses, center of mass, momentum and energy: sums over all links.

Positions are counted from the base, not from the world's origin, until the last step, so that a
robot far from that origin loses no digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from modurob.equations.links import (
    Link,
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
    inertia_times,
    to_parent,
    unit_load,
)
from modurob.equations.passes import LATER, Base, Joint, Passes
from modurob.equations.vectors import (
    ZERO,
    Mat,
    Twist,
    Vec,
    Wrench,
    hat,
    outer,
    symmetric,
    turned_symmetric,
)


class ForwardKinematics(Passes):
    """Poses of all bodies in the world: rows of [R | p]. [m]"""

    class State(NamedTuple):
        R: Mat
        p: Vec

    @staticmethod
    def base(link: Link, base: Base) -> State:
        return ForwardKinematics.State(*base.pose())

    @staticmethod
    def outward(link: Link, joint: Joint, parent: State) -> State:
        return ForwardKinematics.State(*_placed(link, joint, parent))

    @staticmethod
    def output(own: State, R: Mat, p: Vec) -> list[Any]:
        R_wb, p_wb = own.R @ R, own.p + own.R @ p
        return [x for i in range(3) for x in (*R_wb.row(i), p_wb[i])]


class CenterOfMass(Passes):
    """Center of mass of all links in the world, a fixed base included. [m]"""

    class State(NamedTuple):
        mass: Any
        moment: Vec

    @staticmethod
    def base(link: Link, base: Base) -> State:
        return CenterOfMass.State(link.mass, link.moment)

    @staticmethod
    def outward(link: Link, joint: Joint, parent: State) -> State:
        return CenterOfMass.State(link.mass, link.moment)

    @staticmethod
    def inward(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State, State]:
        R, p = joint_pose(link, joint.q)
        moment = parent.moment + R @ own.moment + p * own.mass
        return None, own, CenterOfMass.State(parent.mass + own.mass, moment)

    @staticmethod
    def turn(link: Link, base: Base, own: State) -> tuple[Any, State]:
        R, p = base.pose()
        return [*(p + R @ (own.moment * (1 / own.mass)))], own


class Momentum(Passes):
    """Linear momentum, and angular momentum about the world's origin. [N s, N m s]"""

    class State(NamedTuple):
        twist: Twist
        momentum: Wrench

    @staticmethod
    def base(link: Link, base: Base) -> State:
        if not base.free:
            return Momentum.State(Twist(), Wrench())
        return Momentum.State(base.twist, _momentum(link, base.twist))

    @staticmethod
    def outward(link: Link, joint: Joint, parent: State) -> State:
        V = from_parent(*joint_pose(link, joint.q), parent.twist).plus(unit_screw(link, joint.v))
        return Momentum.State(V, _momentum(link, V))

    @staticmethod
    def inward(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State, State]:
        passed = wrench_to_parent(*joint_pose(link, joint.q), own.momentum)
        return None, own, parent._replace(momentum=parent.momentum.plus(passed))

    @staticmethod
    def turn(link: Link, base: Base, own: State) -> tuple[Any, State]:
        total = wrench_to_parent(*base.pose(), own.momentum)
        return [*total.f, *total.n], own


def _momentum(link: Link, V: Twist) -> Wrench:
    return inertia_times(link.mass, link.moment, link.second, V)


class Energy(Passes):
    """Kinetic energy, and potential energy, which is zero at the world's origin. [J]"""

    class State(NamedTuple):
        twist: Twist
        kinetic: Any
        mass: Any
        moment: Vec

    @staticmethod
    def base(link: Link, base: Base) -> State:
        return _energy(link, base.twist)

    @staticmethod
    def outward(link: Link, joint: Joint, parent: State) -> State:
        V = from_parent(*joint_pose(link, joint.q), parent.twist).plus(unit_screw(link, joint.v))
        return _energy(link, V)

    @staticmethod
    def inward(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State, State]:
        R, p = joint_pose(link, joint.q)
        total = parent._replace(
            kinetic=parent.kinetic + own.kinetic,
            mass=parent.mass + own.mass,
            moment=parent.moment + R @ own.moment + p * own.mass,
        )
        return None, own, total

    @staticmethod
    def turn(link: Link, base: Base, own: State) -> tuple[Any, State]:
        R, p = base.pose()
        return [own.kinetic, -base.gravity.dot(p * own.mass + R @ own.moment)], own


def _energy(link: Link, V: Twist) -> Energy.State:
    return Energy.State(V, V.power(_momentum(link, V)) * 0.5, link.mass, link.moment)


class JointScrews(Passes):
    """Unit screws of all velocities, linear part first, about the world's origin."""

    class State(NamedTuple):
        R: Mat
        p: Vec

    @staticmethod
    def base(link: Link, base: Base) -> State:
        return JointScrews.State(*base.pose())

    @staticmethod
    def outward(link: Link, joint: Joint, parent: State) -> State:
        return JointScrews.State(*_placed(link, joint, parent))

    @staticmethod
    def inward(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State, State]:
        S = screw(link, own.R, own.p)
        return (*S.v, *S.w), own, parent

    @staticmethod
    def turn(link: Link, base: Base, own: State) -> tuple[Any, State]:
        return [(*S.v, *S.w) for S in base_screws(own.R, own.p)], own


class JointScrewRates(Passes):
    """Time derivatives of `JointScrews`."""

    class State(NamedTuple):
        R: Mat
        p: Vec
        V: Twist

    @staticmethod
    def base(link: Link, base: Base) -> State:
        R, p = base.pose()
        w = R @ base.twist.w
        return JointScrewRates.State(R, p, Twist(R @ base.twist.v + p.cross(w), w))

    @staticmethod
    def outward(link: Link, joint: Joint, parent: State) -> State:
        R, p = _placed(link, joint, parent)
        return JointScrewRates.State(R, p, parent.V.plus(screw(link, R, p).times(joint.v)))

    @staticmethod
    def inward(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State, State]:
        rate = own.V.cross(screw(link, own.R, own.p))
        return (*rate.v, *rate.w), own, parent

    @staticmethod
    def turn(link: Link, base: Base, own: State) -> tuple[Any, State]:
        rates = [own.V.cross(S) for S in base_screws(own.R, own.p)]
        return [(*S.v, *S.w) for S in rates], own


def _placed(link: Link, joint: Joint, parent: Any) -> tuple[Mat, Vec]:
    R, p = joint_pose(link, joint.q)
    return parent.R @ R, parent.p + parent.R @ p


# -- centroidal momentum ---------------------------------------------------------------------------


class CentroidalMomentumMatrix(Passes):
    """A_G: momentum about the center of mass in world axes, per velocity (Orin, Goswami 2008)."""

    class State(NamedTuple):
        R: Mat
        p: Vec
        body: Composite
        momentum: Wrench = LATER  # per velocity of the joint
        center: Vec = LATER

    @staticmethod
    def base(link: Link, base: Base) -> State:
        body = Composite(link.mass, link.moment, link.second)
        return CentroidalMomentumMatrix.State(base.pose()[0], ZERO, body)

    @staticmethod
    def outward(link: Link, joint: Joint, parent: State) -> State:
        body = Composite(link.mass, link.moment, link.second)
        return CentroidalMomentumMatrix.State(*_placed(link, joint, parent), body)

    @staticmethod
    def inward(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State, State]:
        momentum = wrench_to_parent(own.R, own.p, unit_load(link, own.body))
        passed = added(parent.body, to_parent(*joint_pose(link, joint.q), own.body))
        return None, own._replace(momentum=momentum), parent._replace(body=passed)

    @staticmethod
    def turn(link: Link, base: Base, own: State) -> tuple[Any, State]:
        c = own.R @ (own.body.moment * (1 / own.body.mass))
        loads = [wrench_to_parent(own.R, ZERO, load) for load in _base_loads(own.body)]
        return [_about(c, load) for load in loads], own._replace(center=c)

    @staticmethod
    def back(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State]:
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


class CentroidalMomentumRate(Passes):
    """Time derivative of `CentroidalMomentumMatrix`."""

    class State(NamedTuple):
        R: Mat
        p: Vec
        V: Twist  # in the link's frame
        body: Composite
        rate: Composite  # of the body's moments in the link's frame
        momentum: Wrench = LATER  # per velocity of the joint, in the link's frame
        momentum_rate: Wrench = LATER
        center: Vec = LATER
        center_rate: Vec = LATER

    @staticmethod
    def base(link: Link, base: Base) -> State:
        body = Composite(link.mass, link.moment, link.second)
        return CentroidalMomentumRate.State(base.pose()[0], ZERO, base.twist, body, UNCHANGED)

    @staticmethod
    def outward(link: Link, joint: Joint, parent: State) -> State:
        V = from_parent(*joint_pose(link, joint.q), parent.V).plus(unit_screw(link, joint.v))
        body = Composite(link.mass, link.moment, link.second)
        return CentroidalMomentumRate.State(*_placed(link, joint, parent), V, body, UNCHANGED)

    @staticmethod
    def inward(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State, State]:
        R, p = joint_pose(link, joint.q)
        rate = _rate_in_parent(R, p, own.body, own.rate, unit_screw(link, joint.v))
        kept = own._replace(
            momentum=unit_load(link, own.body), momentum_rate=unit_load(link, own.rate)
        )
        body = added(parent.body, to_parent(R, p, own.body))
        return None, kept, parent._replace(body=body, rate=added(parent.rate, rate))

    @staticmethod
    def turn(link: Link, base: Base, own: State) -> tuple[Any, State]:
        c, (v, w) = own.body.moment * (1 / own.body.mass), own.V
        velocity = v + w.cross(c) + own.rate.moment * (1 / own.body.mass)
        whole = own._replace(center=own.R @ c, center_rate=own.R @ velocity)
        loads = zip(_base_loads(own.body), _base_loads(own.rate), strict=True)
        return [_rate_about(whole, load, rate) for load, rate in loads], whole

    @staticmethod
    def back(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State]:
        whole = own._replace(center=parent.center, center_rate=parent.center_rate)
        return _rate_about(whole, own.momentum, own.momentum_rate), whole


UNCHANGED = Composite(0, ZERO, Mat([[0] * 3] * 3))


def _rate_in_parent(R: Mat, p: Vec, body: Composite, rate: Composite, V: Twist) -> Composite:
    """Rates of moments in the parent's frame, of a body that moves there with V in its own."""
    m, h, (v, w) = body.mass, body.moment, V
    turned, swept = hat(w) @ body.second, outer(v, h)
    second = symmetric(
        lambda i, j: rate.second[i, j] + turned[i, j] + turned[j, i] + swept[i, j] + swept[j, i]
    )
    moment = R @ (rate.moment + v * m + w.cross(h))
    S = turned_symmetric(R, second)
    return Composite(
        0, moment, symmetric(lambda i, j: S[i, j] + moment[i] * p[j] + p[i] * moment[j])
    )


def _rate_about(own: CentroidalMomentumRate.State, F: Wrench, F_rate: Wrench) -> tuple[Any, ...]:
    """Time derivative of a momentum about the center of mass, from that in the link's frame."""
    R, (v, w) = own.R, own.V
    r, r_rate = own.p - own.center, R @ v - own.center_rate
    f, f_rate = R @ F.f, R @ (F_rate.f + w.cross(F.f))
    n_rate = R @ (F_rate.n + w.cross(F.n))
    return (*f_rate, *(n_rate + r_rate.cross(f) + r.cross(f_rate)))
