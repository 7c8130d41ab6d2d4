"""The links of an organism with symbols in place of its numbers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from modurob.equations.links import RigidLink, base_link
from modurob.equations.mass_matrix import Composite, added, to_parent
from modurob.equations.vectors import EYE, ZERO, ZERO_MATRIX, Mat, Vec, outer, symmetric
from modurob.model import Model
from modurob.model.build import UNIT, LinkAssembly, ModelPart, Solid, Tree, collapse, held_pose
from modurob.symbolic.trigonometric import Angle, Trig, exactly
from modurob.symbolic.vocabulary import Vocabulary, label

SNAP = 1e-12  # numbers this close to a multiple of 1/2 are rounding errors of it
ROUNDING = 2.0**-53  # relative, of a float
AXES = "xyz"
JOINT_NUMBERS = {  # group, and units of joints that turn and slide
    "d": ("friction", "N m s/rad", "N s/m"),
    "f": ("friction", "N m", "N"),
    "B": ("inertia", "kg m^2", "kg"),
    "k": ("stiffness", "N m/rad", "N/m"),
}
FREE_BASE = (  # letter, marks, meaning and unit
    ("r", AXES, "position of the base in the world", "m"),
    ("e", AXES + "w", "unit quaternion of the base", "1"),
    ("V", "123456", "twist of the base in its frame, linear part first", "m/s, rad/s"),
    ("dV", "123456", "rate of the twist of the base", "m/s^2, rad/s^2"),
)


class Placed(NamedTuple):
    """A frame: its link, and (R, p) in that link's joint frame."""

    link: int
    R: Mat
    p: Vec


class FreeBase(NamedTuple):
    """Variables of a free base, none of a fixed one; quaternion x, y, z, w; twist in its frame."""

    position: list[int]
    quaternion: list[int]
    twist: list[int]
    rate: list[int]


class JointMotion(NamedTuple):
    """Symbols of the motion.

    Attributes:
        signs: +1 or -1 for each joint: -1 where the joint frame reads it backwards.
        places, speeds, rates: The variables of q, v and a in the vocabulary.
        q, v, a: Displacements (`Angle` or a variable), velocities and accelerations of the joints,
            as the joint frames read them.
    """

    base: FreeBase
    signs: list[int]
    places: list[int]
    speeds: list[int]
    rates: list[int]
    q: list[Any]
    v: list[Any]
    a: list[Any]


class SymbolicTree(NamedTuple):
    """Input of the recursions, over exact scalars.

    Attributes:
        links: In joint frames, the base first.
        viscous, coulomb: Friction of the joints; the links themselves have none.
        gravity: In the world frame.
        modules: Frames of the modules.
    """

    links: list[RigidLink]
    motion: JointMotion
    viscous: list[Any]
    coulomb: list[Any]
    gravity: Vec
    modules: dict[str, Placed]


def symbolic_tree(
    assembly: LinkAssembly, model: Model, words: Vocabulary, whole_links: bool = False
) -> SymbolicTree:
    """The links of an organism; every symbol is added to `words`.

    Args:
        whole_links: Ten inertial parameters for each link, in the model's link frames, in place of
            those of the modules.
    """
    motion = _joint_motion(model, words)
    parts = _symbolic_parts(assembly, words)
    tree = collapse(parts, assembly.reasons)
    turns = [exact_rotation(turn) for turn in model._frames.turn]
    rotations = _joint_rotations(model)
    if whole_links:
        bodies = [ten_parameters(k, words) for k in range(len(turns))]
    else:
        bodies = _merged(assembly, tree, words)
    moved = [to_parent(turn.T, ZERO, body) for turn, body in zip(turns, bodies, strict=True)]
    links = [base_link(*moved[0])]
    armature = _joint_numbers(model, words, "B", "inertia of the rotor", model.armature)
    stiffness = _joint_numbers(model, words, "k", "stiffness", model.stiffness)
    for k, (parent, place) in enumerate(zip(tree.parent.tolist(), tree.placement, strict=True)):
        p = _rounded(turns[parent].T @ _split(place)[1])
        slides, drive = (
            bool(model.prismatic[k]),
            {"armature": armature[k], "stiffness": stiffness[k]},
        )
        links.append(RigidLink(parent, rotations[k], p, slides, *moved[k + 1], **drive))
    frames = {}
    for name, index in assembly.modules.items():
        link = int(tree.link[index])
        R, p = _split(tree.poses[index])
        frames[name] = Placed(link, turns[link].T @ R, _rounded(turns[link].T @ p))
    return SymbolicTree(
        links=links,
        motion=motion,
        viscous=_joint_numbers(model, words, "d", "viscous friction", model.viscous),
        coulomb=_joint_numbers(model, words, "f", "dry friction", model.coulomb),
        gravity=_gravity(model.gravity, words),
        modules=frames,
    )


def _merged(assembly: LinkAssembly, tree: Tree, words: Vocabulary) -> list[Composite]:
    """Moments of mass of the links: the bodies that were merged into each."""
    bodies = [Composite(0, ZERO, ZERO_MATRIX) for _ in range(len(tree.moving) + 1)]
    owners = _owners(assembly)
    massive = [owner for part, owner in zip(assembly.parts, owners, strict=True) if part.solid.mass]
    for part, owner, link, pose in zip(
        assembly.parts, owners, tree.link.tolist(), tree.poses, strict=True
    ):
        body = part.name.partition(".")[2]
        several = massive.count(owner) > 1 and body
        marks = (label(owner), body) if several else (label(owner),)
        solid = _solid(part.solid, marks, part.name if several else owner, words)
        if part.solid.mass:
            bodies[link] = added(bodies[link], to_parent(*_split(pose), solid))
    return bodies


def ten_parameters(link: int, words: Vocabulary) -> Composite:
    """A link as ten symbols: mass, first moment, inertia about the link's origin."""

    def symbol(letter: str, meaning: str, unit: str) -> Trig:
        return words.variable(letter, (str(link),), f"{meaning} of link {link}", unit)

    m = symbol("m", "mass", "kg")
    h = Vec([symbol(f"h{x}", f"first moment of mass ({x})", "kg m") for x in AXES])
    J = symmetric(
        lambda i, j: symbol(f"J{AXES[i]}{AXES[j]}", f"inertia ({AXES[i]}{AXES[j]})", "kg m^2")
    )
    return Composite(m, h, _second_moment(J))


def _joint_motion(model: Model, words: Vocabulary) -> JointMotion:
    base = FreeBase([], [], [], [])
    if model.free_base:
        base = FreeBase(*(words.family(*family) for family in FREE_BASE))
    signs, slides = [int(sign) for sign in model._frames.sign], model.prismatic.tolist()

    units = ["m" if slide else "rad" for slide in slides]

    def joints(letter: str, meaning: str, per: str) -> list[int]:
        return [
            words.new(letter, (str(k + 1),), f"{meaning} of {name}", unit + per)
            for k, (name, unit) in enumerate(zip(model.joint_names, units, strict=True))
        ]

    def signed(numbers: list[int]) -> list[Trig]:
        return [Trig.variable(k) * sign for k, sign in zip(numbers, signs, strict=True)]

    places = joints("q", "displacement", "")
    speeds, rates = joints("dq", "velocity", "/s"), joints("ddq", "acceleration", "/s^2")
    q = [
        place if slide else Angle(k, sign < 0, place)
        for k, (place, sign, slide) in enumerate(zip(signed(places), signs, slides, strict=True))
    ]
    return JointMotion(base, signs, places, speeds, rates, q, signed(speeds), signed(rates))


# -- parts -----------------------------------------------------------------------------------------


def _symbolic_parts(assembly: LinkAssembly, words: Vocabulary) -> list[ModelPart]:
    """The parts with lengths as symbols; a locked joint becomes rigid."""
    # where the base is in the world is no length of the organism
    owners = [
        "" if part.previous < assembly.first else owner
        for part, owner in zip(assembly.parts, _owners(assembly), strict=True)
    ]
    exact = [
        [T if T is UNIT else _snapped(T) for T in (part.before, part.after)]
        for part in assembly.parts
    ]
    counts = Counter(
        owner
        for poses, owner in zip(exact, owners, strict=True)
        for T in poses
        if np.any(T[:3, 3] != 0)
    )
    used: Counter[str] = Counter()
    result = []
    for part, poses, owner, reason in zip(
        assembly.parts, exact, owners, assembly.reasons, strict=True
    ):
        inner = _owner(assembly.parts[part.previous])
        meaning = f"offset in {owner}" if inner == owner else f"offset from {inner} to {owner}"
        for T in poses:
            along = [k for k in range(3) if T[k, 3] != 0]
            if owner and along:
                used[owner] += 1
                marks = (label(owner), str(used[owner])) if counts[owner] > 1 else (label(owner),)
                for k in along:
                    mark = marks if len(along) == 1 else (*marks, AXES[k])
                    T[k, 3] = words.parameter("length", "l", mark, meaning, "m", T[k, 3])
        before, after = poses
        joint = part.joint
        if joint is not None and reason:
            held = held_pose(part)
            before = before if held is UNIT else before @ _snapped(held)
            joint = None
        result.append(part._replace(before=before, after=after, joint=joint))
    return result


def _owners(assembly: LinkAssembly) -> list[str]:
    """The module of each part; empty for the world and its virtual joints."""
    return ["" if k < assembly.first else _owner(part) for k, part in enumerate(assembly.parts)]


def _owner(part: ModelPart) -> str:
    return part.name.partition(".")[0]


def _solid(solid: Solid, marks: tuple[str, ...], name: str, words: Vocabulary) -> Composite:
    """Moments of mass of a part about its own origin."""
    m = words.parameter("mass", "m", marks, f"mass of {name}", "kg", solid.mass)
    meaning, center = f"center of mass of {name}", _snapped(solid.center)
    c = Vec(
        [
            words.parameter("length", "c", (*marks, x), f"{meaning}, {x}", "m", center[k])
            for k, x in enumerate(AXES)
        ]
    )
    about_center = _second_moment(_inertia(solid.inertia, marks, name, words))
    return Composite(m, c * m, about_center + outer(c * m, c))


def _second_moment(J: Mat) -> Mat:
    """S = tr(J)/2 E - J."""
    half = (J[0, 0] + J[1, 1] + J[2, 2]) * Fraction(1, 2)
    return Mat([[half - J[i, j] if i == j else -J[i, j] for j in range(3)] for i in range(3)])


def _inertia(inertia: np.ndarray, marks: tuple[str, ...], name: str, words: Vocabulary) -> Mat:
    """Inertia about the center: one symbol if it is the same about all axes."""
    scale = np.abs(inertia).max()
    clean = np.where(np.abs(inertia) < SNAP * scale, 0.0, inertia)
    diagonal = np.diag(clean)

    def symbol(tail: tuple[str, ...], value: float) -> Any:
        meaning = ", ".join((f"inertia of {name} about its center", *tail))
        return words.parameter("inertia", "J", (*marks, *tail), meaning, "kg m^2", value)

    if scale > 0 and np.ptp(diagonal) <= SNAP * scale and np.count_nonzero(clean) == 3:
        J = symbol((), diagonal[0])
        return Mat([[J if i == j else 0 for j in range(3)] for i in range(3)])
    return symmetric(lambda i, j: symbol((AXES[i] if i == j else AXES[i] + AXES[j],), clean[i, j]))


def _joint_numbers(
    model: Model, words: Vocabulary, letter: str, what: str, values: np.ndarray
) -> list[Any]:
    group, *units = JOINT_NUMBERS[letter]
    return [
        words.parameter(group, letter, (str(k + 1),), f"{what} of {name}", units[slides], value)
        for k, (name, slides, value) in enumerate(
            zip(model.joint_names, model.prismatic.tolist(), values.tolist(), strict=True)
        )
    ]


def _gravity(gravity: np.ndarray, words: Vocabulary) -> Vec:
    exact = _snapped(gravity)
    several = np.count_nonzero(exact) > 1
    return Vec(
        [
            words.parameter("gravity", "g", (x,) if several else (), "gravity", "m/s^2", exact[k])
            for k, x in enumerate(AXES)
        ]
    )


# -- exact numbers ---------------------------------------------------------------------------------


def _snapped(array: np.ndarray) -> np.ndarray:
    """The numbers as exact ones: multiples of 1/2 where they are close to one, else decimals."""
    result = np.empty(array.shape, dtype=object)
    for place, value in np.ndenumerate(array):
        twice = round(2 * value)
        near = abs(2 * value - twice) < SNAP
        exact = Fraction(twice, 2) if near else exactly(value)
        result[place] = int(exact) if exact.denominator == 1 else exact
    return result


def exact_rotation(R: np.ndarray) -> Mat:
    """The rational matrix with R^T R = 1, exactly, for a rotation in floats.

    Decimals of sines and cosines do not square to one, and what depends on it (which terms cancel,
    which parameters act only together) would be lost. R = Rz Ry Rx, each from a rational half-angle
    tangent; an axis that lies along another one within `SNAP` stays there.
    """
    if np.all(np.abs(R - (whole := np.rint(R))) < SNAP):
        return Mat(whole.astype(int).tolist())
    total, left = EYE, R
    for i, j in ((0, 1), (0, 2), (1, 2)):  # rotate row j into row i, until the columns are axes
        c, s = _unit_pair(left[i, i], left[j, i])
        turn: list[list[Any]] = [[int(a == b) for b in range(3)] for a in range(3)]
        turn[i][i] = turn[j][j] = c
        turn[i][j], turn[j][i] = -s, s
        total, left = total @ Mat(turn), np.array(turn, dtype=float).T @ left
    return total


def _unit_pair(x: float, y: float) -> tuple[Any, Any]:
    """Cosine and sine of the direction of (x, y), rational, on the unit circle exactly."""
    length = math.hypot(x, y)
    if length < SNAP:
        return 1, 0
    if abs(y) > abs(x):
        sine, cosine = _unit_pair(y, x)
        return cosine, sine
    if x < 0:
        cosine, sine = _unit_pair(-x, -y)
        return -cosine, -sine
    t = _rational(y / (length + x))
    return (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)


def _rational(value: Any) -> Fraction:
    """The rational with about the smallest denominator that is the number within its rounding."""
    if abs(value) < SNAP:
        return Fraction(0)
    exact = Fraction(value)
    found = (exact.limit_denominator(10**digits) for digits in itertools.count(1))
    return next(each for each in found if abs(each - exact) <= ROUNDING * abs(exact))


def _joint_rotations(model: Model) -> list[Mat]:
    """Exact rotations of the joint frames in the parents'.

    A slide turns nothing, so that axes before and after it may be parallel in all states: frames
    are exact in that of the last link that turned, and differ from each other by what that gives.
    """
    seen: list[np.ndarray] = [np.eye(3)]  # in the frame of the last link that turned
    exact: list[Mat] = [EYE]
    found: list[Mat] = []
    slides = [False, *model.prismatic.tolist()]
    for parent, rotation in zip(model._frames.parent.tolist(), model._frames.rotation, strict=True):
        after_slide = slides[parent]
        seen.append(seen[parent] @ rotation if after_slide else rotation)
        exact.append(exact_rotation(seen[-1]))
        found.append(exact[parent].T @ exact[-1] if after_slide else exact[-1])
    return found


def _rounded(p: Vec) -> Vec:
    """An offset whose rational coefficients are short, and zero where only rounding left one."""
    return Vec([x.with_coefficients(_rational) if isinstance(x, Trig) else _rational(x) for x in p])


def _split(pose: np.ndarray) -> tuple[Mat, Vec]:
    return exact_rotation(pose[:3, :3].astype(float)), _rounded(Vec(pose[:3, 3].tolist()))
