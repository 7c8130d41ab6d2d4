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
    Symmetric,
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
        R, p = joint_pose(link, joint.q)
        return ForwardKinematics.State(parent.R @ R, parent.p + parent.R @ p)

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
        column: Twist = LATER

    @staticmethod
    def base(link: Link, base: Base) -> State:
        return JointScrews.State(*base.pose())

    @staticmethod
    def outward(link: Link, joint: Joint, parent: State) -> State:
        R, p = _placed(link, joint, parent)
        return JointScrews.State(R, p, screw(link, R, p))

    @staticmethod
    def inward(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State, State]:
        return (*own.column.v, *own.column.w), own, parent

    @staticmethod
    def turn(link: Link, base: Base, own: State) -> tuple[Any, State]:
        return [(*S.v, *S.w) for S in base_screws(own.R, own.p)], own


class JointScrewRates(Passes):
    """Time derivatives of `JointScrews`."""

    class State(NamedTuple):
        R: Mat
        p: Vec
        V: Twist
        column: Twist = LATER

    @staticmethod
    def base(link: Link, base: Base) -> State:
        (R, p), w = base.pose(), base.pose()[0] @ base.twist.w
        return JointScrewRates.State(R, p, Twist(R @ base.twist.v + p.cross(w), w))

    @staticmethod
    def outward(link: Link, joint: Joint, parent: State) -> State:
        R, p = _placed(link, joint, parent)
        S = screw(link, R, p)
        V = parent.V.plus(S.times(joint.v))
        return JointScrewRates.State(R, p, V, parent.V.cross(S))

    @staticmethod
    def inward(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State, State]:
        return (*own.column.v, *own.column.w), own, parent

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
        inertia = base_inertia(own.body)
        loads = [
            Wrench(*(Vec([inertia[3 * part + i][k] for i in range(3)]) for part in range(2)))
            for k in range(6)
        ]
        columns = [_about(c, wrench_to_parent(own.R, ZERO, load)) for load in loads]
        return columns, own._replace(center=c)

    @staticmethod
    def back(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State]:
        return _about(parent.center, own.momentum), own._replace(center=parent.center)


def _about(c: Vec, F: Wrench) -> tuple[Any, ...]:
    """Six numbers of a wrench or momentum about another point."""
    return (*F.f, *(F.n - c.cross(F.f)))


class MovingBody(NamedTuple):
    """Moments of a link with everything beyond it, and their rates, about a fixed point."""

    mass: Any
    moment: Vec
    second: Symmetric
    moment_rate: Vec
    second_rate: Symmetric


class CentroidalMomentumRate(Passes):
    """Time derivative of `CentroidalMomentumMatrix`."""

    class State(NamedTuple):
        R: Mat
        p: Vec
        V: Twist
        body: MovingBody
        column: Twist = LATER
        column_rate: Twist = LATER
        momentum: Wrench = LATER
        momentum_rate: Wrench = LATER
        center: Vec = LATER
        center_rate: Vec = LATER

    @staticmethod
    def base(link: Link, base: Base) -> State:
        R = base.pose()[0]
        V = Twist(R @ base.twist.v, R @ base.twist.w)
        return CentroidalMomentumRate.State(R, ZERO, V, _moving(link, R, ZERO, V))

    @staticmethod
    def outward(link: Link, joint: Joint, parent: State) -> State:
        R, p = _placed(link, joint, parent)
        S = screw(link, R, p)
        V = parent.V.plus(S.times(joint.v))
        rate = parent.V.cross(S)
        return CentroidalMomentumRate.State(R, p, V, _moving(link, R, p, V), S, rate)

    @staticmethod
    def inward(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State, State]:
        momentum, rate = _moving_momentum(own.body, own.column, own.column_rate)
        one, other = parent.body, own.body
        total = MovingBody(
            one.mass + other.mass,
            one.moment + other.moment,
            symmetric(lambda i, j: one.second[i, j] + other.second[i, j]),
            one.moment_rate + other.moment_rate,
            symmetric(lambda i, j: one.second_rate[i, j] + other.second_rate[i, j]),
        )
        kept = own._replace(momentum=momentum, momentum_rate=rate)
        return None, kept, parent._replace(body=total)

    @staticmethod
    def turn(link: Link, base: Base, own: State) -> tuple[Any, State]:
        body = own.body
        c, c_rate = body.moment * (1 / body.mass), body.moment_rate * (1 / body.mass)
        columns = []
        for S in base_screws(own.R):
            F, F_rate = _moving_momentum(body, S, own.V.cross(S))
            columns.append(_about_moving(c, c_rate, F, F_rate))
        return columns, own._replace(center=c, center_rate=c_rate)

    @staticmethod
    def back(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State]:
        c, c_rate = parent.center, parent.center_rate
        found = _about_moving(c, c_rate, own.momentum, own.momentum_rate)
        return found, own._replace(center=c, center_rate=c_rate)


def _moving(link: Link, R: Mat, p: Vec, V: Twist) -> MovingBody:
    """A single link; a material point r of it moves with v + w x r."""
    h = R @ link.moment
    S = turned_symmetric(R, link.second)
    moment = h + p * link.mass
    second = symmetric(lambda i, j: S[i, j] + h[i] * p[j] + p[i] * moment[j])
    moment_rate = V.v * link.mass + V.w.cross(moment)
    turned = hat(V.w) @ second
    swept = outer(V.v, moment)
    rate = symmetric(lambda i, j: turned[i, j] + turned[j, i] + swept[i, j] + swept[j, i])
    return MovingBody(link.mass, moment, second, moment_rate, rate)


def _moving_momentum(body: MovingBody, S: Twist, rate: Twist) -> tuple[Wrench, Wrench]:
    """I S and its time derivative."""
    changed = inertia_times(0, body.moment_rate, body.second_rate, S)
    momentum = inertia_times(body.mass, body.moment, body.second, S)
    return momentum, changed.plus(inertia_times(body.mass, body.moment, body.second, rate))


def _about_moving(c: Vec, c_rate: Vec, F: Wrench, F_rate: Wrench) -> tuple[Any, ...]:
    """Time derivative of `_about`."""
    return (*F_rate.f, *(F_rate.n - c_rate.cross(F.f) - c.cross(F_rate.f)))
