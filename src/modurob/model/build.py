"""Organism -> Model, in one pass outward and one inward; linear in the number of modules."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np

from modurob.errors import ModelWarning, StateError, UnknownNameError, choices
from modurob.model.model import Model
from modurob.model.options import VIRTUAL_JOINTS, ModelOptions
from modurob.modules import Joint, ModuleType
from modurob.organism.docking import CACHED_DYADS, Docking, dyad, mated_pose
from modurob.organism.organism import Organism
from modurob.spatial import inertia, se3
from modurob.spatial.scalars import product

UNIT = np.eye(4)
FLOAT = UNIT.dtype
ONE_LINE = 1e-9  # difference of unit screws, per meter, below which two joints share their line
MASSLESS, SAME_LINE = "nothing with mass beyond it", "moves along the same line"
MOST_NAMED = 6  # joints in a warning
NO_PART = -1  # in place of the part before, until there is one
ROTOR = ":rotor"  # end of the name of the part between a motor and a spring; no body of a module


class Solid(NamedTuple):
    """Mass properties of a body, in its own frame."""

    mass: float
    center: np.ndarray
    inertia: np.ndarray


class ModelPart(NamedTuple):
    """A body before merging: ``T_previous_part(q) = before exp(screw q) after``.

    `joint` is None for what is rigidly attached; `lock_reason` says why a joint cannot move.
    """

    name: str
    previous: int
    before: np.ndarray
    after: np.ndarray
    solid: Solid
    joint: Joint | None = None
    screw: np.ndarray | None = None
    owner: str = ""
    lock_reason: str = ""


NOTHING = Solid(0.0, np.zeros(3), np.zeros((3, 3)))


class Tree(NamedTuple):
    """Links after merging: which parts' joints move, and where every part went.

    Attributes:
        moving: (n,) the part whose joint moves link k + 1.
        parent, placement: (n,), (n, 4, 4) of those joints.
        link, poses: (parts,), (parts, 4, 4) link of each part and its frame there.
    """

    moving: list[int]
    parent: np.ndarray
    placement: np.ndarray
    link: np.ndarray
    poses: np.ndarray


class LinkAssembly(NamedTuple):
    """The parts of an organism, and the links that they form.

    Attributes:
        parts: The world first, then virtual joints, then the modules' bodies from `first` on.
        modules: For each module, the part that carries its frame.
        reasons: Why each part's joint is locked; empty for those that move.
        tree: The links.
        options: That the model is built with.
    """

    parts: list[ModelPart]
    first: int
    modules: dict[str, int]
    reasons: list[str]
    tree: Tree
    options: ModelOptions


def build_model(organism: Organism, options: ModelOptions) -> Model:
    """See `Organism.model`."""
    assembly = assembled(organism, options)
    _warn_of_locks(assembly, organism)
    return flatten(assembly, organism)


def _warn_of_locks(assembly: LinkAssembly, organism: Organism) -> None:
    """Warn of joints that lack of mass has locked; limits and DS dyads lock by definition."""
    if not any(assembly.reasons):
        return
    lost = [
        f"{part.owner}.{part.joint.name} {reason}"
        for part, reason in zip(assembly.parts, assembly.reasons, strict=True)
        if part.joint is not None
        and reason.startswith((MASSLESS, SAME_LINE))
        and part.owner in organism  # no virtual joint
        and not _by_definition(organism.kind(part.owner))
    ]
    if lost:
        warnings.warn(
            f"joints that cannot move in this model, give bodies a mass to keep them: "
            f"{choices(lost, MOST_NAMED)}; see also `Model.locked`",
            ModelWarning,
            stacklevel=4,
        )


def _by_definition(kind: ModuleType) -> bool:
    """Return whether massless bodies belong to a kind: a virtual joint, or a cube of the papers."""
    return kind.virtual or kind.dyad_joint is not None


def assembled(organism: Organism, options: ModelOptions) -> LinkAssembly:
    """The parts of an organism and the links they form."""
    if options.base != "fixed":
        _check_base(organism, options.base)
    parts = [ModelPart("world", NO_PART, UNIT, UNIT, NOTHING), *_base_parts(options.base)]
    first = len(parts)
    modules: dict[str, int] = {}
    parts.extend(_module_parts(organism, options, first, modules))
    if options.elastic:
        parts = _with_springs(parts, modules)
    _apply_user_locks(parts, options.locked)
    reasons = _lock_reasons(parts)
    tree = collapse(parts, reasons)
    while redundant := _redundant_joints(parts, tree):
        reasons = [old or redundant.get(k, "") for k, old in enumerate(reasons)]
        tree = collapse(parts, reasons)
    return LinkAssembly(parts, first, modules, reasons, tree, options)


def _base_parts(base: str | tuple[str, ...]) -> Iterator[ModelPart]:
    """The virtual joints between the world and the base module."""
    for index, name in enumerate(() if isinstance(base, str) else base):
        joint = _virtual_joint(name)
        yield ModelPart(f"world.{name}", index, UNIT, UNIT, NOTHING, joint, joint.screw, "world")


def _check_base(organism: Organism, base: str | tuple[str, ...]) -> None:
    if base != "free" and "world" in organism:
        raise StateError("a module is called 'world', like the virtual joints' frame; rename it")
    if organism.kind(organism.base).virtual:
        raise StateError(
            f"base={base!r} would move the organism twice: its base '{organism.base}' is a virtual "
            "joint already; use base='fixed'"
        )


@lru_cache(maxsize=len(VIRTUAL_JOINTS))
def _virtual_joint(name: str) -> Joint:
    kind = "prismatic" if name[0] == "p" else "revolute"
    x, y, z = (float(letter == name[1]) for letter in "xyz")
    return Joint(name=name, kind=kind, parent="world", child="base", axis=(x, y, z))


# -- modules to parts ------------------------------------------------------------------------------


class ModuleTemplate(NamedTuple):
    """The bodies of a kind as parts, seen from the one it is entered by.

    Attributes:
        parts: Names are suffixes, `previous` counts from the first; that one is still unattached.
        places: Body name -> part.
        root: The part that carries the module's frame.
    """

    parts: tuple[ModelPart, ...]
    places: dict[str, int]
    root: int


class DockingTemplate(NamedTuple):
    """Attachment of a docked module to its neighbor's body `on`, and its own template.

    Attributes:
        attachment: Place of the module's first part; its parent and owner are not filled in.
        serial: True for a DS dyad, which cannot bend.
    """

    on: str
    attachment: ModelPart
    serial: bool
    module: ModuleTemplate


def _module_parts(
    organism: Organism, options: ModelOptions, first: int, modules: dict[str, int]
) -> list[ModelPart]:
    """All bodies of all modules, each after its parent; numbers start at `first`."""
    rigid = options.hinges == "dyad"
    kind = organism.kind(organism.base)
    whole = module_template(kind, kind.bodies[0].name, rigid)
    T_base = UNIT if options.base == "free" else organism.base_pose
    attachment = ModelPart("", first - 1, T_base, UNIT, NOTHING)
    parts = _instance(organism.base, first, whole, attachment, first - 1)
    modules[organism.base] = first + whole.root
    members = organism._members
    entered = {organism.base: (first, whole.places, kind)}
    templates: dict[tuple[int, int | str, int, int | str, int], DockingTemplate] = {}
    for entry in organism.dockings:
        parent, port, child, child_port, turn, _ = entry
        start, places, kind_i = entered[parent]
        kind_j = members[child].kind
        # looked up by identity first: hashing datasheets costs more
        key = (id(kind_i), port, id(kind_j), child_port, turn)
        docking = templates.get(key)
        if docking is None:
            docking = docking_template(kind_i, port, kind_j, child_port, turn, rigid)
            templates[key] = docking
        on, attachment, serial, module = docking
        here, previous = first + len(parts), start + places[on]
        reason = _serial_reason(entry) if serial else ""
        parts += _instance(child, here, module, attachment, previous, reason)
        entered[child] = (here, module.places, kind_j)
        modules[child] = here + module.root
    return parts


def _instance(
    name: str,
    start: int,
    module: ModuleTemplate,
    attachment: ModelPart,
    previous: int,
    reason: str = "",
) -> list[ModelPart]:
    """The parts of one module; the first is placed on part `previous` like `attachment`."""
    suffix, _, _, _, solid, _, _, _, _ = module.parts[0]
    _, _, before, after, _, joint, screw, _, _ = attachment
    # written out: `_replace` is slow, and large organisms have many parts
    first = (name + suffix, previous, before, after, solid, joint, screw, name, reason)
    parts = [tuple.__new__(ModelPart, first)]
    if len(module.parts) == 1:
        return parts
    for suffix, inner, before, after, solid, joint, screw, *_ in module.parts[1:]:
        parts.append(
            ModelPart(name + suffix, start + inner, before, after, solid, joint, screw, name)
        )
    return parts


def _serial_reason(entry: Docking) -> str:
    return (
        f"DS dyad: the hinges of {entry.parent} (side {entry.port}) and {entry.child} "
        f"(side {entry.child_port}) lie on one line, so the docking cannot bend"
    )


@lru_cache(maxsize=CACHED_DYADS)
def module_template(kind: ModuleType, entry_body: str, rigid: bool) -> ModuleTemplate:
    """A kind with a dyad hinge is one body in the dyad model."""
    if rigid and kind.dyad_joint is not None:
        whole = ModelPart("", NO_PART, UNIT, UNIT, as_one_solid(kind))
        return ModuleTemplate((whole,), {body.name: 0 for body in kind.bodies}, 0)
    solids, entry = body_solids(kind), kind.body_index(entry_body)
    parts, place = [ModelPart(f".{entry_body}", NO_PART, UNIT, UNIT, solids[entry])], {entry: 0}
    for step in kind.outward(entry):
        joint = kind.joints[step.joint]
        moving = (joint, step.screw) if joint.kind != "fixed" else (None, None)
        place[step.body] = len(parts)
        name, solid = f".{kind.bodies[step.body].name}", solids[step.body]
        before, after = _unit_or(step.before), _unit_or(step.after)
        parts.append(ModelPart(name, place[step.previous], before, after, solid, *moving))
    places = {kind.bodies[body].name: at for body, at in place.items()}
    return ModuleTemplate(tuple(parts), places, place[0])


def _unit_or(T: np.ndarray) -> np.ndarray:
    """The pose, or the one object `UNIT`, which `collapse` need not multiply with."""
    return UNIT if np.array_equal(T, UNIT) else T


@lru_cache(maxsize=CACHED_DYADS)
def docking_template(
    kind_i: ModuleType,
    port_i: int | str,
    kind_j: ModuleType,
    port_j: int | str,
    turn: int,
    rigid: bool,
) -> DockingTemplate:
    """A docking of two kinds; docked cubes bend about the outer one's hinge in the dyad model."""
    one_i, one_j = (rigid and kind.dyad_joint is not None for kind in (kind_i, kind_j))
    on, by = kind_i.port(port_i), kind_j.port(port_j)
    T_ia = kind_i.port_pose(port_i) if one_i else on.pose
    T_jb = kind_j.port_pose(port_j) if one_j else by.pose
    T_ij, module = mated_pose(T_ia, T_jb, turn), module_template(kind_j, by.body, rigid)
    if not (one_i and one_j) or kind_j.dyad_joint is None:
        return DockingTemplate(on.body, ModelPart("", NO_PART, T_ij, UNIT, NOTHING), False, module)
    joint = kind_j.joint(kind_j.dyad_joint)
    T_hinge = kind_j.rest_poses[kind_j.body_index(joint.child)]
    before, after = se3.composed(T_ij, T_hinge) + 0.0, _unit_or(se3.inverse(T_hinge) + 0.0)
    attachment = ModelPart("", NO_PART, before, after, NOTHING, joint, joint.screw)
    serial = dyad(kind_i, port_i, kind_j, port_j, turn).name == "DS"
    return DockingTemplate(on.body, attachment, serial, module)


@lru_cache(maxsize=CACHED_DYADS)
def body_solids(kind: ModuleType) -> tuple[Solid, ...]:
    """Mass properties of each body of a kind."""
    return tuple(
        Solid(body.mass, np.array(body.center_of_mass), np.array(body.inertia))
        for body in kind.bodies
    )


@lru_cache(maxsize=CACHED_DYADS)
def as_one_solid(kind: ModuleType) -> Solid:
    """Mass properties of a whole module with its joints at zero, in the module's frame."""
    solids, poses = body_solids(kind), np.array(kind.rest_poses)
    R = poses[:, :3, :3]
    mass, center, moments = inertia.union(
        np.array([solid.mass for solid in solids]),
        _placed(poses, np.array([solid.center for solid in solids])),
        _turned(R, np.array([solid.inertia for solid in solids])),
    )
    return Solid(float(mass), center, moments)


# -- parts to links --------------------------------------------------------------------------------


def flatten(assembly: LinkAssembly, organism: Organism) -> Model:
    """The arrays of a model."""
    parts, first, modules, reasons, tree, options = assembly
    free = options.base == "free"
    moving, link, poses = [parts[k] for k in tree.moving], tree.link, tree.poses
    bodies = [k for k in range(first, len(parts)) if not parts[k].name.endswith(ROTOR)]
    place = {index: body for body, index in enumerate(bodies)}
    locked = {
        f"{part.owner}.{part.joint.name}": reason
        for part, reason in zip(parts, reasons, strict=True)
        if reason and part.joint is not None
    }
    mass, center, moments = _link_inertias(parts, poses, link, len(moving) + 1)
    joints = [part.joint for part in moving if part.joint is not None]
    slides, lower, upper, viscous, coulomb, armature, stiffness = _joint_numbers(joints)
    return Model._of_checked_parts(
        joint_names=tuple([f"{p.owner}.{j.name}" for p, j in zip(moving, joints, strict=True)]),
        locked=MappingProxyType(locked),
        parent=tree.parent,
        placement=tree.placement,
        screw=_gathered([part.screw for part in moving if part.screw is not None], (6,)),
        prismatic=slides > 0,
        lower=lower,
        upper=upper,
        viscous=viscous,
        coulomb=coulomb,
        armature=armature,
        stiffness=stiffness * options.elastic,
        mass=mass,
        center=center,
        inertia=moments,
        body_names=tuple([parts[k].name for k in bodies]),
        body_link=link[bodies],
        body_placement=poses[bodies],
        modules=MappingProxyType({name: place[index] for name, index in modules.items()}),
        base_pose=organism.base_pose if free else UNIT,
        free_base=free,
        gravity=np.array(options.gravity),
        organism=organism,
        options=options,
    )


def _joint_numbers(joints: Sequence[Joint]) -> np.ndarray:
    """(7, n) slides, lower, upper, viscous, coulomb, armature, stiffness; few are distinct."""
    known: dict[int, np.ndarray] = {}
    for j in joints:
        if id(j) not in known:
            limits = -np.inf if j.lower is None else j.lower, np.inf if j.upper is None else j.upper
            passive = j.viscous, j.coulomb, j.armature, j.stiffness or 0.0
            known[id(j)] = np.array([float(j.kind == "prismatic"), *limits, *passive])
    return _gathered([known[id(j)] for j in joints], (7,)).T.copy()


def collapse(parts: Sequence[ModelPart], reasons: Sequence[str]) -> Tree:
    """Merge what is rigidly attached or locked."""
    link = [0] * len(parts)
    poses: list[np.ndarray] = [UNIT] * len(parts)
    moving: list[int] = []
    parent: list[int] = []
    placement: list[np.ndarray] = []
    for index, part in enumerate(parts[1:], start=1):
        at = poses[part.previous]
        before = _after(at, part.before)
        if part.joint is None or reasons[index]:
            if part.joint is not None:
                before = _after(before, held_pose(part))
            link[index] = link[part.previous]
            poses[index] = _after(before, part.after)
        else:
            parent.append(link[part.previous])
            placement.append(before)
            moving.append(index)
            link[index] = len(moving)
            poses[index] = part.after
    return Tree(
        moving,
        np.array(parent, dtype=np.intp),
        _gathered(placement, (4, 4)),
        np.array(link, dtype=np.intp),
        _gathered(poses, (4, 4)),
    )


def _gathered(arrays: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """The arrays as one, (n, *shape)."""
    if not [array for array in arrays if array.dtype is not FLOAT]:  # no symbols
        try:
            return np.frombuffer(b"".join(cast(Any, arrays))).reshape(-1, *shape)  # is quick
        except TypeError:  # numbers of an array do not lie in order
            pass
    return np.array(arrays).reshape(-1, *shape)


def _with_springs(parts: list[ModelPart], modules: dict[str, int]) -> list[ModelPart]:
    """Each elastic joint as two: that of the motor, which turns a rotor, and a spring behind it."""
    if not [part for part in parts if part.joint is not None and part.joint.stiffness is not None]:
        return parts
    made: list[ModelPart] = []
    places: list[int] = []
    for part in parts:
        joint, previous = part.joint, places[part.previous] if places else NO_PART
        if joint is not None and joint.stiffness is not None:
            motor = joint.model_copy(update={"stiffness": None})
            rotor = f"{part.owner}.{joint.name}{ROTOR}"
            made.append(ModelPart(rotor, previous, part.before, UNIT, NOTHING, motor, part.screw,
                                  part.owner, part.lock_reason))  # fmt: skip
            spring = {"name": f"{joint.name}.spring", "lower": None, "upper": None,
                      "viscous": joint.damping, "coulomb": 0.0, "rotor_inertia": 0.0}  # fmt: skip
            part = part._replace(before=UNIT, joint=joint.model_copy(update=spring))
            previous = len(made) - 1
        places.append(len(made))
        made.append(part._replace(previous=previous))
    modules.update({name: places[index] for name, index in modules.items()})
    return made


def _apply_user_locks(parts: list[ModelPart], locked: Sequence[tuple[str, float]]) -> None:
    """Narrow the limits of the joints that the user locks to the positions asked for."""
    if not locked:
        return
    joints = {f"{x.owner}.{x.joint.name}": k for k, x in enumerate(parts) if x.joint is not None}
    for name, position in locked:
        if name not in joints:
            raise UnknownNameError(f"no joint {name!r} to lock: joints are {choices(joints)}")
        part = parts[joints[name]]
        joint = part.joint
        assert joint is not None
        what = f"{position:g} {'m' if joint.kind == 'prismatic' else 'rad'}"
        lower, upper = (-np.inf if joint.lower is None else joint.lower), joint.upper
        upper = np.inf if upper is None else upper
        if part.lock_reason or not lower <= position <= upper:
            why = part.lock_reason or f"its limits are {lower:g} to {upper:g}"
            raise StateError(f"joint '{name}' cannot be locked at {what}: {why}")
        held = joint.model_copy(update={"lower": position, "upper": position})
        parts[joints[name]] = part._replace(joint=held, lock_reason=f"held at {what} by `locked`")


def _redundant_joints(parts: Sequence[ModelPart], tree: Tree) -> dict[int, str]:
    """Joints that only repeat the one before: same line, and no mass between the two."""
    mass = np.zeros(len(tree.moving) + 1)
    np.add.at(mass, tree.link, [part.solid.mass for part in parts])
    beyond = np.bincount(tree.parent, minlength=len(mass))
    found: dict[int, str] = {}
    light = (tree.parent > 0) & (mass[tree.parent] == 0) & (beyond[tree.parent] == 1)
    for k in np.flatnonzero(light).tolist():
        link = int(tree.parent[k])
        if tree.moving[link - 1] in found:
            continue
        before, after = parts[tree.moving[link - 1]], parts[tree.moving[k]]
        if before.owner == "world" or before.joint is None or after.joint is None:
            continue
        assert before.screw is not None
        assert after.screw is not None
        if before.joint.armature:
            continue
        if on_one_line(before.screw, tree.placement[k], after.screw):
            found[tree.moving[k]] = (
                f"{SAME_LINE} as {before.owner}.{before.joint.name}, with no mass between the two"
            )
    return found


def on_one_line(before: np.ndarray, placement: np.ndarray, after: np.ndarray) -> bool:
    """True if two joints move along the same line: screw, pose of the second joint, its screw."""
    same = se3.transform_twist(placement, after)
    return min(np.abs(before - same).max(), np.abs(before + same).max()) < ONE_LINE


def _lock_reasons(parts: Sequence[ModelPart]) -> list[str]:
    """Reason why each joint is locked; empty for those that move."""
    beyond = [part.solid.mass for part in parts]
    for index in range(len(parts) - 1, 0, -1):
        beyond[parts[index].previous] += beyond[index]
    reasons = []
    for part, mass in zip(parts, beyond, strict=True):
        joint = part.joint
        if joint is None:
            reasons.append("")
        elif part.lock_reason:
            reasons.append(part.lock_reason)
        elif mass == 0:
            reasons.append(f"{MASSLESS}: {part.name} carries no load")
        elif joint.lower is not None and joint.lower == joint.upper:
            reasons.append(f"its limits leave no room: both are {joint.lower:g}")
        else:
            reasons.append("")
    return reasons


def held_pose(part: ModelPart) -> np.ndarray:
    """(4, 4) motion of a locked joint: none, unless its limits hold it elsewhere than zero."""
    joint = part.joint
    if joint is None or joint.lower is None or joint.lower != joint.upper:
        return UNIT
    return se3.screw_motion(part.screw, joint.lower)


def _link_inertias(
    parts: Sequence[ModelPart], poses: np.ndarray, link: np.ndarray, links: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mass, center and inertia of each link: the bodies that were merged into it."""
    m = np.array([part.solid.mass for part in parts])
    c = _gathered([part.solid.center for part in parts], (3,))
    I_c = _gathered([part.solid.inertia for part in parts], (3, 3))
    c, I_c = _placed(poses, c), _turned(poses[:, :3, :3], I_c)
    mass, center, moments = np.zeros(links), np.zeros((links, 3)), np.zeros((links, 3, 3))
    heavy = m > 0
    at, m, c, I_c = link[heavy], m[heavy], c[heavy], I_c[heavy]
    # about one of its bodies, so that a link with a single massive body keeps its center exactly
    center[at] = c
    if np.bincount(at, minlength=1).max() <= 1:
        mass[at], moments[at] = m, I_c
        return mass, center + 0.0, moments + 0.0  # no minus zeros, as in sums
    np.add.at(mass, at, m)
    about = center.copy()
    np.add.at(center, at, (m / mass[at])[:, None] * (c - about[at]))
    np.add.at(moments, at, inertia.at_origin(m, c - center[at], I_c))
    return mass, center, moments


def _after(T_ab: np.ndarray, T_bc: np.ndarray) -> np.ndarray:
    """T_ac; most poses are the one object `UNIT`."""
    if T_ab is UNIT or T_bc is UNIT:
        return T_bc if T_ab is UNIT else T_ab
    return se3.composed(T_ab, T_bc)


def _placed(T: np.ndarray, center: np.ndarray) -> np.ndarray:
    """(k, 3) points in the frames in which their own have the poses T (k, 4, 4). [m]"""
    return product(T[:, :3, :3], center[:, :, None])[:, :, 0] + T[:, :3, 3]


def _turned(R: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """(k, 3, 3) inertias in turned axes, symmetric to the last bit."""
    turned = product(product(R, moments), np.swapaxes(R, -1, -2))
    turned[:, (1, 2, 2), (0, 0, 1)] = turned[:, (0, 0, 1), (1, 2, 2)]
    return turned
