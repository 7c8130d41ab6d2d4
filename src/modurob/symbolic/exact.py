"""The entries of M, C and N, poses and twists of an organism as trigonometric polynomials.

Everything is computed on demand: one entry of a large matrix costs no more than the
links it depends on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from modurob.equations.closed_entries import Pose, base_screw, coriolis_column, twists
from modurob.equations.links import RigidLink, along, from_parent, joint_pose, unit_screw
from modurob.equations.links import to_parent as wrench_to_parent
from modurob.equations.mass_matrix import Composite, added, base_inertia, mass_column, to_parent
from modurob.equations.passes import Base, JointState, base_rotation, run
from modurob.equations.quantities import QUANTITIES
from modurob.equations.vectors import EYE, ZERO, Twist, Vec, Wrench
from modurob.symbolic.links import SymbolicTree
from modurob.symbolic.trigonometric import Trig, trig


class Exact:
    """Exact closed forms of one tree, with `external` wrenches in the frames of some modules."""

    def __init__(self, tree: SymbolicTree, external: dict[str, Wrench]) -> None:
        self.tree, self.external = tree, external
        self.offset = len(tree.motion.base.twist)  # a free base comes first
        self.nv = len(tree.motion.signs) + self.offset
        self.signs = [1] * self.offset + tree.motion.signs
        self._bodies: dict[int, Composite] = {}
        self._masses: dict[int, dict[int, Any]] = {}
        self._coriolis: dict[int, list[Any]] = {}
        self._links: dict[int, Pose] = {}
        self._loads: dict[int, Wrench] = {}

    @cached_property
    def poses(self) -> list[Pose]:
        """(R, p) of each link in its parent."""
        links = self.tree.links[1:]
        return [joint_pose(link, q) for link, q in zip(links, self.tree.motion.q, strict=True)]

    def mass(self, row: int, column: int) -> Trig:
        """An entry of M, counted from 0."""
        row, column = min(row, column), max(row, column)
        if column < self.offset:
            return trig(self._base_inertia[row][column])
        entries = self._mass_column(column)
        found = trig(entries.get(row, 0)) * (self.signs[row] * self.signs[column])
        return found + self._joint(row).armature if row == column else found

    def _joint(self, row: int) -> RigidLink:
        return self.tree.links[row - self.offset + 1]

    def coriolis(self, row: int, column: int) -> Trig:
        """An entry of C as in Meister 2013, counted from 0."""
        return trig(self._coriolis_column(column)[row]) * (self.signs[row] * self.signs[column])

    def bias(self, row: int) -> Trig:
        """An entry of N: gravity, springs and external wrenches."""
        link = max(row - self.offset + 1, 0)
        if link not in self._loads:
            upward, body = -(self._link_pose(link)[0].T @ self.tree.gravity), self._body(link)
            load = Wrench(upward * body.mass, body.moment.cross(upward))
            self._loads[link] = load.minus(self._push(link))
        load = self._loads[link]
        if row < self.offset:
            return trig((*load.f, *load.n)[row])
        place = self.tree.motion.places[row - self.offset]
        spring = Trig.variable(place) * self._joint(row).stiffness
        return trig(along(self.tree.links[link], load)) * self.signs[row] + spring

    def _push(self, link: int) -> Wrench:
        """All external wrenches on a link and beyond it, in its frame."""
        total = Wrench()
        for module, wrench in self.external.items():
            place = self.tree.modules[module]
            load, i = wrench_to_parent(place.R, place.p, wrench), place.link
            while i > link:
                load, i = wrench_to_parent(*self.poses[i - 1], load), self.tree.links[i].parent
            if i == link:
                total = total.plus(load)
        return total

    def forces(self) -> list[Trig]:
        """M ddq + C dq + N in one recursion."""
        tree, motion, base = self.tree, self.tree.motion, Base(self.tree.gravity)
        if self.offset:
            base = Base(
                tree.gravity,
                Vec(_variables(motion.base.position)),
                _variables(motion.base.quaternion),
                self._base_twist,
                _variables(motion.base.rate),
            )
        pushes = [Wrench() for _ in tree.links]
        for module, wrench in self.external.items():
            place = tree.modules[module]
            pushes[place.link] = pushes[place.link].plus(wrench_to_parent(place.R, place.p, wrench))
        joints = [JointState(*each) for each in zip(motion.q, motion.v, motion.a, strict=True)]
        forces = run(QUANTITIES["inverse_dynamics"], tree.links, joints, base, pushes)
        return [trig(x) * sign for x, sign in zip(forces, self.signs, strict=True)]

    def module_pose(self, module: str, reference: str | None = None) -> Pose:
        """(R, p) of a module's frame in another module's, or in the world."""
        R, p = self._world_pose(module)
        if reference is None:
            return R, p
        R_0, p_0 = self._world_pose(reference)
        return R_0.T @ R, R_0.T @ (p - p_0)

    def module_twist(self, module: str) -> Twist:
        """Twist of a module in its own frame."""
        place = self.tree.modules[module]
        return from_parent(place.R, place.p, self._twists[place.link])

    def jacobian_column(self, module: str, column: int) -> Twist:
        """Twist of a module in its own frame for one unit of a velocity."""
        place = self.tree.modules[module]
        if column < self.offset:
            screws, link = {0: base_screw(column)}, 0
        else:
            link = column - self.offset + 1
            screws = {link: unit_screw(self.tree.links[link], self.signs[column])}
        path = [place.link]
        while path[-1] > link:
            path.append(self.tree.links[path[-1]].parent)
        if path[-1] != link:
            return Twist()
        twist = screws[link]
        for i in reversed(path[:-1]):
            twist = from_parent(*self.poses[i - 1], twist)
        return from_parent(place.R, place.p, twist)

    # -- kept results ----------------------------------------------------------------------------

    def _body(self, i: int) -> Composite:
        """Link i with everything beyond it."""
        if i not in self._bodies:
            link = self.tree.links[i]
            body = Composite(link.mass, link.moment, link.second)
            for k, other in enumerate(self.tree.links):
                if other.parent == i:
                    body = added(body, to_parent(*self.poses[k - 1], self._body(k)))
            self._bodies[i] = body
        return self._bodies[i]

    def _mass_column(self, column: int) -> dict[int, Any]:
        if column not in self._masses:
            i = column - self.offset + 1
            entries, load = mass_column(self.tree.links, self.poses, i, self._body(i))
            found = {self.offset + k - 1: value for k, value in entries.items()}
            if self.offset:
                load = wrench_to_parent(*self.poses[min(entries) - 1], load)
                found.update(enumerate((*load.f, *load.n)))
            self._masses[column] = found
        return self._masses[column]

    @cached_property
    def _base_inertia(self) -> list[list[Any]]:
        return base_inertia(self._body(0))

    @cached_property
    def _base_twist(self) -> Twist:
        twist = _variables(self.tree.motion.base.twist)
        return Twist(Vec(twist[:3]), Vec(twist[3:])) if twist else Twist()

    @cached_property
    def _twists(self) -> list[Twist]:
        return twists(self.tree.links, self.poses, self.tree.motion.v, self._base_twist)

    def _coriolis_column(self, column: int) -> list[Any]:
        if column not in self._coriolis:
            inside = column - self.offset
            start = inside + 1 if inside >= 0 else -1 - column
            joints, base = coriolis_column(
                self.tree.links, self.poses, self.tree.motion.v, self._twists, start
            )
            self._coriolis[column] = [*base.f, *base.n, *joints] if self.offset else joints
        return self._coriolis[column]

    def _link_pose(self, link: int) -> Pose:
        if link not in self._links:
            base = self.tree.motion.base
            if link:
                R, p = self._link_pose(self.tree.links[link].parent)
                R_in, p_in = self.poses[link - 1]
                self._links[link] = R @ R_in, p + R @ p_in
            elif self.offset:
                R = base_rotation(_variables(base.quaternion))
                self._links[0] = R, Vec(_variables(base.position))
            else:
                self._links[0] = EYE, ZERO
        return self._links[link]

    def _world_pose(self, module: str) -> Pose:
        place = self.tree.modules[module]
        R, p = self._link_pose(place.link)
        return R @ place.R, p + R @ place.p


def _variables(numbers: Sequence[int]) -> list[Trig]:
    return [Trig.variable(number) for number in numbers]
