"""Bodies in whole numbers: poses, joints, directions and modules that were met before.

Few distinct poses, joints and directions appear in many bodies. Each has a number, and tuples of
numbers identify the links of a body without arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from modurob.model.build import (
    UNIT,
    ModelPart,
    docking_template,
    held_pose,
    module_template,
    on_one_line,
)
from modurob.model.frames import UPRIGHT, turned
from modurob.model.options import ModelOptions
from modurob.modules import ModuleType
from modurob.organism import Organism
from modurob.spatial.se3 import composed

MOST_OBJECTS = 1000  # datasheets that are known by identity; equal ones may be made again and again

PortLabel: TypeAlias = int | str
SeatKey: TypeAlias = tuple[int, int, int]  # direction of the parent, pose, joint
LinkKey: TypeAlias = tuple[SeatKey, tuple[int, ...]]  # seat; bodies and their poses
ROOT: SeatKey = (-1, -1, -1)  # seat of a base


class BodyPlan(NamedTuple):
    """Modules and dockings of a body, in the order in which they dock.

    Attributes:
        kinds: One for each module; the first is the base.
        dockings: Number of the parent, its port, port of the new module, turn [deg]; for each
            module but the base.
        base_pose: (4, 4) frame of the base in the world.
    """

    kinds: Sequence[ModuleType]
    dockings: Sequence[tuple[int, PortLabel, PortLabel, int]]
    base_pose: np.ndarray = UNIT

    @classmethod
    def of(cls, organism: Organism) -> BodyPlan:
        """The plan of an organism."""
        number, kinds, dockings = {organism.base: 0}, [organism.kind(organism.base)], []
        for k, entry in enumerate(organism.dockings, start=1):
            number[entry.child] = k
            kinds.append(organism.kind(entry.child))
            dockings.append((number[entry.parent], entry.port, entry.child_port, entry.turn))
        return cls(kinds, dockings, organism.base_pose)


class CodedPart(NamedTuple):
    """A `ModelPart` in numbers.

    Attributes:
        previous: Part that it hangs on, counted from the first of its module; that of the first
            part is counted from the first of the parent module.
        before, after: Numbers of poses.
        held: Number of the pose of a joint that cannot move; -1 where it can or there is none.
        body: Number of the body, with its mass and shapes.
        joint: Number of the joint; -1 for none.
        mass: [kg]
    """

    previous: int
    before: int
    after: int
    held: int
    body: int
    joint: int
    mass: float


class CodedModule(NamedTuple):
    """A docked module in numbers.

    Attributes:
        parts: Its parts.
        template: Number of its kind as seen from the body that it docks with.
        simple: False if only a model tells which of its joints move.
        light: Whether a part has no mass.
    """

    parts: tuple[CodedPart, ...]
    template: int
    simple: bool
    light: bool


class CodedBody(NamedTuple):
    """A body in numbers.

    Attributes:
        parent: Of links 0 to n; -1 of the base.
        keys: Of links 0 to n.
        owners: Number of the module whose joint moves each link; -1 of the base.
        joints: Number of that joint in its datasheet; -1 of the base.
    """

    parent: list[int]
    keys: list[LinkKey]
    owners: list[int]
    joints: list[int]


class JointEntry(NamedTuple):
    """A joint of a kind: number in the datasheet, axis, screw, and whether it has a rotor."""

    number: int
    axis: bytes
    screw: np.ndarray
    has_rotor: bool


class BodyCoder:
    """Numbers of all that links depend on.

    Args:
        options: Of all models; the base is free or fixed.

    Attributes:
        turned: Number of the direction of a link's joint frame by the link's seat.
    """

    def __init__(self, options: ModelOptions) -> None:
        self._options, self._rigid = options, options.hinges == "dyad"
        self._kinds: dict[ModuleType, int] = {}
        self._kind_of: dict[int, tuple[int, ModuleType]] = {}  # by identity, which is quick
        self._poses, self._pose_of = [UNIT], {UNIT.tobytes(): 0}
        self._products: dict[tuple[int, int], int] = {}
        self._turns, self._turn_of = [UPRIGHT], {UPRIGHT.tobytes(): 0}
        self.turned: dict[SeatKey, int] = {ROOT: 0}
        self._bodies: dict[tuple[int, str], int] = {}
        self._joint_of: dict[tuple[int, int, bytes], int] = {}
        self._joints: list[JointEntry] = []
        self._template_of: dict[tuple[int, str], int] = {}
        self._templates: list[tuple[ModuleType, dict[str, int]]] = []
        self._bases: dict[int, CodedModule] = {}
        self._modules: dict[tuple[int, PortLabel, int, PortLabel, int], CodedModule] = {}

    def coded(self, plan: BodyPlan) -> CodedBody | None:
        """The body in numbers; None where only a model tells which joints can move."""
        kind = self._kind(plan.kinds[0])
        module = self._bases.get(kind) or self._base(kind, plan.kinds[0])
        simple, light = module.simple, module.light
        starts, templates, parts = [0], [module.template], list(module.parts)
        previous, owners = [part.previous for part in parts], [0] * len(parts)
        for k, (parent, port, child_port, turn) in enumerate(plan.dockings, start=1):
            kind = self._kind(plan.kinds[k])
            key = (templates[parent], port, kind, child_port, turn)
            module = self._modules.get(key) or self._docked(key, plan.kinds[k])
            new, template, is_simple, is_light = module
            here = len(parts)
            previous.append(starts[parent] + new[0].previous)
            if len(new) > 1:
                previous += [here + part.previous for part in new[1:]]
            parts += new
            owners += [k] * len(new)
            simple, light = simple and is_simple, light or is_light
            starts.append(here)
            templates.append(template)
        if not simple:
            return None
        T_base = 0 if self._options.base == "free" else self._pose(plan.base_pose)
        return self._linked(previous, parts, owners, T_base, light)

    def _linked(
        self,
        previous: list[int],
        parts: list[CodedPart],
        owners: list[int],
        T_base: int,
        light: bool,
    ) -> CodedBody | None:
        """Links as in `model.build.collapse`, with numbers in the place of poses."""
        beyond = [part.mass for part in parts] if light else []
        for k in range(len(beyond) - 1, 0, -1):
            beyond[previous[k]] += beyond[k]
        link, poses = [0], [T_base]  # of the part before the first one: the world
        members: list[list[int]] = [[]]
        seats, heavy, own = [ROOT], set[int](), CodedBody([-1], [], [-1], [-1])
        for k, (_, before, after, held, body, joint, part_mass) in enumerate(parts):
            above = previous[k] + 1
            on, at = link[above], poses[above]
            if at:
                before = self._product(at, before)
            if joint < 0 or held >= 0 or (light and not beyond[k]):
                if held > 0:
                    before = self._product(before, held)
                pose = self._product(before, after)
            else:
                seats.append((0, before, joint))
                own.parent.append(on)
                own.owners.append(owners[k])
                own.joints.append(self._joints[joint].number)
                on, pose = len(members), after
                members.append([])
            link.append(on)
            poses.append(pose)
            if light and part_mass:
                heavy.add(on)
            members[on] += (body, pose)
        if light and any(
            own.parent.count(above) == 1 and self._repeats(seats[above], seat)
            for above, seat in zip(own.parent, seats, strict=True)
            if above > 0 and above not in heavy
        ):
            return None
        turns: list[int] = []
        for seat, on, held_bodies in zip(seats, own.parent, members, strict=True):
            if on >= 0:
                seat = (turns[on], seat[1], seat[2])
            turn = self.turned.get(seat)
            turns.append(self._turn(seat) if turn is None else turn)
            own.keys.append((seat, tuple(held_bodies)))
        return own

    def _repeats(self, before: SeatKey, after: SeatKey) -> bool:
        """True if a joint only repeats the one before it, if there is no mass between the two."""
        first, second = self._joints[before[2]], self._joints[after[2]]
        return not first.has_rotor and on_one_line(first.screw, self._poses[after[1]], second.screw)

    # -- numbers -----------------------------------------------------------------------------------

    def _kind(self, kind: ModuleType) -> int:
        found = self._kind_of.get(id(kind))
        if found is None:
            if len(self._kind_of) >= MOST_OBJECTS:
                self._kind_of.clear()
            number = self._kinds.setdefault(kind, len(self._kinds))
            found = self._kind_of[id(kind)] = (number, kind)
        return found[0]

    def _pose(self, T: np.ndarray) -> int:
        number = self._pose_of.setdefault(T.tobytes(), len(self._poses))
        if number == len(self._poses):
            self._poses.append(T)
        return number

    def _product(self, a: int, b: int) -> int:
        if a == 0 or b == 0:
            return a + b
        found = self._products.get((a, b))
        if found is None:
            found = self._products[a, b] = self._pose(composed(self._poses[a], self._poses[b]))
        return found

    def _turn(self, seat: SeatKey) -> int:
        """Number of the direction of a link's joint frame; see `model.frames.joint_frames`."""
        parent, pose, joint = seat
        placed = self._poses[pose][:3, :3].tobytes()
        turn = turned(self._turns[parent].tobytes(), placed, self._joints[joint].axis).turn
        found = self._turn_of.setdefault(turn.tobytes(), len(self._turns))
        if found == len(self._turns):
            self._turns.append(turn)
        self.turned[seat] = found
        return found

    def _base(self, number: int, kind: ModuleType) -> CodedModule:
        entry = kind.bodies[0].name
        whole = module_template(kind, entry, self._rigid)
        coded = self._coded_module(number, kind, entry, whole.places, whole.parts)
        found = self._bases[number] = coded._replace(simple=coded.simple and not kind.virtual)
        return found

    def _docked(
        self, key: tuple[int, PortLabel, int, PortLabel, int], kind: ModuleType
    ) -> CodedModule:
        above, port, number, child_port, turn = key
        neighbor, places = self._templates[above]
        docking = docking_template(neighbor, port, kind, child_port, turn, self._rigid)
        first, *rest = docking.module.parts
        first = docking.attachment._replace(
            name=first.name,
            previous=places[docking.on],
            solid=first.solid,
            lock_reason="DS" * docking.serial,
        )
        entry = kind.port(child_port).body
        found = self._modules[key] = self._coded_module(
            number, kind, entry, docking.module.places, (first, *rest)
        )
        return found

    def _coded_module(
        self,
        number: int,
        kind: ModuleType,
        entry: str,
        places: dict[str, int],
        parts: Sequence[ModelPart],
    ) -> CodedModule:
        template = self._template_of.setdefault((number, entry), len(self._templates))
        if template == len(self._templates):
            self._templates.append((kind, places))
        elastic = any(p.joint is not None and p.joint.stiffness is not None for p in parts)
        light = any(part.solid.mass == 0 for part in parts)
        coded = tuple(self._part(number, kind, part) for part in parts)
        return CodedModule(coded, template, not elastic, light)

    def _part(self, number: int, kind: ModuleType, part: ModelPart) -> CodedPart:
        joint, held = -1, -1
        if part.joint is not None:
            assert part.screw is not None
            which = kind.joints.index(part.joint)
            key = (number, which, part.screw.tobytes())
            joint = self._joint_of.setdefault(key, len(self._joints))
            if joint == len(self._joints):
                linear, angular = np.split(part.screw, 2)
                axis = linear if part.joint.kind == "prismatic" else angular
                has_rotor = part.joint.armature > 0
                self._joints.append(JointEntry(which, axis.tobytes(), part.screw, has_rotor))
            lower = part.joint.lower
            if part.lock_reason or (lower is not None and lower == part.joint.upper):
                held = self._pose(held_pose(part))
        body = self._bodies.setdefault((number, part.name), len(self._bodies))
        before, after = self._pose(part.before), self._pose(part.after)
        return CodedPart(part.previous, before, after, held, body, joint, part.solid.mass)
