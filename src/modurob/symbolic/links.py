"""The links of an organism with symbols in place of its numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from modurob.equations.links import Link
from modurob.equations.mass_matrix import Composite, added, to_parent
from modurob.equations.vectors import EYE, ZERO, Mat, Vec, outer
from modurob.model import Model
from modurob.model.build import UNIT, Assembly, Part, Solid, Tree, collapse, held_pose
from modurob.symbolic.trigonometric import Angle, Trig, exactly
from modurob.symbolic.vocabulary import Vocabulary, label

SNAP = 1e-12  # numbers this close to a multiple of 1/2 are rounding errors of it
ROUNDING = 2.0**-53  # relative, of a float
AXES = "xyz"


class Placed(NamedTuple):
    """Where a frame sits: its link, and (R, p) in that link's joint frame."""

    link: int
    R: Mat
    p: Vec


class FreeBase(NamedTuple):
    """Variables of a free base: quaternion is (x, y, z, w), twist and rate in its own frame."""

    position: list[int]
    quaternion: list[int]
    twist: list[int]
    rate: list[int]


class SymbolicTree(NamedTuple):
    """What the recursions need, over exact scalars.

    Attributes:
        links: In joint frames, the base first.
        signs: +1 or -1 for each joint: -1 where the joint frame reads it backwards.
        q, v, a: Displacements (`Angle` or a variable), velocities and accelerations of the joints,
            as the joint frames read them.
        places, speeds, rates: The variables of q, v and a in the vocabulary.
        viscous, coulomb: Friction of the joints; the links themselves have none.
        gravity: In the world frame.
        modules: Frames of the modules.
        base: Of a free base.
    """

    links: list[Link]
    signs: list[int]
    q: list[Any]
    v: list[Any]
    a: list[Any]
    places: list[int]
    speeds: list[int]
    rates: list[int]
    viscous: list[Any]
    coulomb: list[Any]
    gravity: Vec
    modules: dict[str, Placed]
    base: FreeBase | None


def symbolic_tree(
    assembly: Assembly, model: Model, words: Vocabulary, whole_links: bool = False
) -> SymbolicTree:
    """The links of an organism; every symbol it needs is introduced to `words`.

    Args:
        whole_links: Ten inertial parameters for each link, in the model's link frames, in place of
            those of the modules.
    """
    motion = _Motion(model, words)
    parts = _symbolic_parts(assembly, words)
    tree = collapse(parts, assembly.reasons)
    turns = [exact_rotation(turn) for turn in model.frames.turn]
    rotations = _joint_rotations(model)
    if whole_links:
        bodies = [ten_parameters(k, words) for k in range(len(turns))]
    else:
        bodies = _merged(assembly, tree, words)
    moved = [to_parent(turn.T, ZERO, body) for turn, body in zip(turns, bodies, strict=True)]
    links = [Link(-1, EYE, ZERO, False, *moved[0], 0, 0)]
    for k, (parent, place) in enumerate(zip(tree.parent.tolist(), tree.placement, strict=True)):
        p = _rounded(turns[parent].T @ _split(place)[1])
        slides = bool(model.prismatic[k])
        links.append(Link(parent, rotations[k], p, slides, *moved[k + 1], 0, 0))
    frames = {}
    for name, index in assembly.modules.items():
        link = int(tree.link[index])
        R, p = _split(tree.poses[index])
        frames[name] = Placed(link, turns[link].T @ R, _rounded(turns[link].T @ p))
    return SymbolicTree(
        links=links,
        signs=motion.signs,
        q=motion.q,
        v=motion.v,
        a=motion.a,
        places=motion.places,
        speeds=motion.speeds,
        rates=motion.rates,
        viscous=_friction(model, words, "d", "viscous", model.viscous),
        coulomb=_friction(model, words, "f", "dry", model.coulomb),
        gravity=_gravity(model.gravity, words),
        modules=frames,
        base=motion.base,
    )


def _merged(assembly: Assembly, tree: Tree, words: Vocabulary) -> list[Composite]:
    """Moments of mass of the links: the bodies that were merged into each."""
    bodies = [Composite(0, ZERO, _zero()) for _ in range(len(tree.moving) + 1)]
    solids = _solids(assembly, words)
    for part, solid, link, pose in zip(
        assembly.parts, solids, tree.link.tolist(), tree.poses, strict=True
    ):
        if part.solid.mass:
            bodies[link] = added(bodies[link], to_parent(*_split(pose), solid))
    return bodies


def ten_parameters(link: int, words: Vocabulary) -> Composite:
    """A link as ten symbols: mass, first moment, inertia about the link's origin."""
    where = f"of link {link}"

    def symbol(letter: str, meaning: str, unit: str) -> Trig:
        return words.variable(letter, (str(link),), f"{meaning} {where}", unit, None)

    m = symbol("m", "mass", "kg")
    h = Vec([symbol(f"h{x}", f"first moment of mass ({x})", "kg m") for x in AXES])
    J: dict[tuple[int, int], Trig] = {}
    for i in range(3):
        for j in range(i, 3):
            axes = AXES[i] + AXES[j]
            J[i, j] = J[j, i] = symbol(f"J{axes}", f"inertia ({axes})", "kg m^2")
    return Composite(m, h, _second_moment(Mat([[J[i, j] for j in range(3)] for i in range(3)])))


class _Motion:
    """Symbols for displacements, velocities and accelerations."""

    def __init__(self, model: Model, words: Vocabulary) -> None:
        self.signs = [int(sign) for sign in model.frames.sign]
        self.base = _free_base(words) if model.free_base else None
        units = ["m" if slides else "rad" for slides in model.prismatic.tolist()]

        def family(letter: str, meaning: str, per: str) -> tuple[list[int], list[Trig]]:
            start = len(words.quantities)
            made = [
                words.variable(letter, (str(k + 1),), f"{meaning} of {name}", unit + per, None)
                for k, (name, unit) in enumerate(zip(model.joint_names, units, strict=True))
            ]
            return list(range(start, len(words.quantities))), joints_of(made, self.signs)

        self.places, q = family("q", "displacement", "")
        self.speeds, self.v = family("dq", "velocity", "/s")
        self.rates, self.a = family("ddq", "acceleration", "/s^2")
        self.q: list[Any] = [
            place if slides else Angle(k, backwards=sign < 0)
            for k, (place, sign, slides) in enumerate(
                zip(q, self.signs, model.prismatic.tolist(), strict=True)
            )
        ]


def _free_base(words: Vocabulary) -> FreeBase:
    def family(letter: str, marks: str, meaning: str, unit: str) -> list[int]:
        start = len(words.quantities)
        for mark in marks:
            words.variable(letter, (mark,), meaning, unit, None)
        return list(range(start, len(words.quantities)))

    return FreeBase(
        family("r", AXES, "position of the base in the world", "m"),
        family("e", AXES + "w", "unit quaternion of the base", "1"),
        family("V", "123456", "twist of the base in its frame, linear part first", "m/s, rad/s"),
        family("dV", "123456", "rate of the twist of the base", "m/s^2, rad/s^2"),
    )


# -- parts -----------------------------------------------------------------------------------------


def _symbolic_parts(assembly: Assembly, words: Vocabulary) -> list[Part]:
    """The parts with lengths as symbols; a locked joint becomes rigid."""
    # where the base stands in the world is no length of the organism
    owners = [
        "" if part.previous < assembly.first else owner
        for part, owner in zip(assembly.parts, _owners(assembly), strict=True)
    ]
    counts: dict[str, int] = {}
    for part, owner in zip(assembly.parts, owners, strict=True):
        offsets = sum(bool(np.any(_snapped(T)[:3, 3] != 0)) for T in (part.before, part.after))
        counts[owner] = counts.get(owner, 0) + offsets
    used: dict[str, int] = {}
    result = []
    for part, owner, reason in zip(assembly.parts, owners, assembly.reasons, strict=True):
        inner = _owner(assembly.parts[part.previous])
        meaning = f"offset in {owner}" if inner == owner else f"offset from {inner} to {owner}"
        before, after = (
            _exact_pose(T, words, owner, meaning, counts, used) for T in (part.before, part.after)
        )
        joint = part.joint
        if joint is not None and reason:
            held = held_pose(part)
            if held is not UNIT:
                before = before @ _snapped(held)
            joint = None
        result.append(part._replace(before=before, after=after, joint=joint))
    return result


def _owners(assembly: Assembly) -> list[str]:
    """The module of each part; empty for the world and its virtual joints."""
    return ["" if k < assembly.first else _owner(part) for k, part in enumerate(assembly.parts)]


def _owner(part: Part) -> str:
    return part.name.partition(".")[0]


def _exact_pose(
    T: np.ndarray,
    words: Vocabulary,
    owner: str,
    meaning: str,
    counts: dict[str, int],
    used: dict[str, int],
) -> np.ndarray:
    """A pose with exact numbers, its offset as a symbol if it belongs to a module."""
    if T is UNIT:
        return UNIT
    exact = _snapped(T)
    if not owner or not np.any(exact[:3, 3] != 0):
        return exact
    used[owner] = used.get(owner, 0) + 1
    marks = (label(owner), str(used[owner])) if counts[owner] > 1 else (label(owner),)
    along = [k for k in range(3) if exact[k, 3] != 0]
    for k in along:
        mark = marks if len(along) == 1 else (*marks, AXES[k])
        size, sign = abs(float(exact[k, 3])), 1 if exact[k, 3] > 0 else -1
        exact[k, 3] = sign * words.parameter("length", "l", mark, meaning, "m", size)
    return exact


def _solids(assembly: Assembly, words: Vocabulary) -> list[Composite]:
    """Moments of mass of each part about its own origin."""
    owners = _owners(assembly)
    massive = [owner for part, owner in zip(assembly.parts, owners, strict=True) if part.solid.mass]
    found = []
    for part, owner in zip(assembly.parts, owners, strict=True):
        body = part.name.partition(".")[2]
        several = massive.count(owner) > 1 and body
        marks = (label(owner), body) if several else (label(owner),)
        found.append(_solid(part.solid, marks, part.name if several else owner, words))
    return found


def _solid(solid: Solid, marks: tuple[str, ...], name: str, words: Vocabulary) -> Composite:
    m = words.parameter("mass", "m", marks, f"mass of {name}", "kg", solid.mass)
    center = _snapped(solid.center)
    c = Vec(
        [
            _signed(center[k], words, "length", "c", (*marks, AXES[k]),
                    f"center of mass of {name}, {AXES[k]}", "m")
            for k in range(3)
        ]
    )  # fmt: skip
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
    meaning = f"inertia of {name} about its center"
    if scale > 0 and np.ptp(diagonal) <= SNAP * scale and np.count_nonzero(clean) == 3:
        J = words.parameter("inertia", "J", marks, meaning, "kg m^2", float(diagonal[0]))
        return Mat([[J if i == j else 0 for j in range(3)] for i in range(3)])
    found: dict[tuple[int, int], Any] = {}
    for i in range(3):
        for j in range(i, 3):
            axes = AXES[i] if i == j else AXES[i] + AXES[j]
            found[i, j] = found[j, i] = _signed(
                clean[i, j], words, "inertia", "J", (*marks, axes), f"{meaning}, {axes}", "kg m^2"
            )
    return Mat([[found[i, j] for j in range(3)] for i in range(3)])


def _signed(
    value: Any,
    words: Vocabulary,
    group: str,
    letter: str,
    marks: tuple[str, ...],
    meaning: str,
    unit: str,
) -> Any:
    """A parameter that may be negative: its symbol stands for the size."""
    sign = -1 if value < 0 else 1
    return sign * words.parameter(group, letter, marks, meaning, unit, abs(float(value)))


def _friction(
    model: Model, words: Vocabulary, letter: str, law: str, values: np.ndarray
) -> list[Any]:
    units = {"d": ("N m s/rad", "N s/m"), "f": ("N m", "N")}[letter]
    return [
        words.parameter(
            "friction", letter, (str(k + 1),), f"{law} friction of {name}", units[slides], value
        )
        for k, (name, slides, value) in enumerate(
            zip(model.joint_names, model.prismatic.tolist(), values.tolist(), strict=True)
        )
    ]


def _gravity(gravity: np.ndarray, words: Vocabulary) -> Vec:
    exact = _snapped(gravity)
    along = [k for k in range(3) if exact[k] != 0]
    return Vec(
        [
            _signed(exact[k], words, "gravity", "g", () if len(along) == 1 else (AXES[k],),
                    "gravity", "m/s^2")
            for k in range(3)
        ]
    )  # fmt: skip


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
    """The rational matrix with R^T R = 1, exactly, that stands for a rotation in floats.

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
    for parent, rotation in zip(model.frames.parent.tolist(), model.frames.rotation, strict=True):
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


def _zero() -> Mat:
    return Mat([[0] * 3] * 3)


def joints_of(values: Sequence[Any], signs: Sequence[int]) -> list[Any]:
    """Results of the recursions as the user reads the joints."""
    return [value * sign for value, sign in zip(values, signs, strict=True)]
