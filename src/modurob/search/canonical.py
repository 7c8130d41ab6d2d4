"""Canonical keys of bodies: one for all genotypes that build the same robot.

A module whose body a rigid motion maps onto itself can be docked by another port in the same place.
The key is the least of all such descriptions, found from the tips of the tree to its base.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from math import cos, sin
from struct import Struct
from typing import NamedTuple

import numpy as np

from modurob.model.build import as_one_solid, body_solids
from modurob.modules import Joint, ModuleType
from modurob.organism import Organism
from modurob.search.space import BodySpace, Gene, Oscillation, PortLabel
from modurob.spatial import se3, so3
from modurob.stepping.ground import corners

SAME = 1e-9  # of the size of a module: rounding errors of its datasheet
RESOLVED = 1e-9  # [rad, m] of waves: above rounding errors of a phase turned by pi
CACHED_KINDS = 256
DOCKING, WAVE = Struct("<3H"), Struct("<3q")


class Symmetry(NamedTuple):
    """A rigid motion of a module onto itself.

    Attributes:
        ports: Number of the port in whose place each port comes, and its turn there. [deg]
        joints: Number of the joint in whose place each joint comes, and 1 or -1 for its direction.
        upright: Whether the motion is a turn about the vertical.
    """

    ports: dict[PortLabel, tuple[int, int]]
    joints: tuple[tuple[int, int], ...]
    upright: bool


class KindForms(NamedTuple):
    """A kind of a space for keys.

    Attributes:
        name: Bytes that identify its datasheet.
        symmetries: Its symmetries.
        waves: Place among a gene's waves of each joint of the datasheet; -1 for none.
    """

    name: bytes
    symmetries: tuple[Symmetry, ...]
    waves: tuple[int, ...]


def canonical_key(space: BodySpace, genes: Sequence[Gene], frequency: float | None) -> str:
    """See `Genotype.canonical`; without a frequency, a key of the body alone."""
    kinds = _kind_forms(space)
    moving = None if frequency is None else _moving(space, genes)
    children: list[list[int]] = [[] for _ in genes]
    for number, gene in enumerate(genes[1:], start=1):
        children[gene.parent].append(number)
    codes: list[list[bytes]] = [[] for _ in genes]  # of the part from a module on, by its symmetry
    for number in range(len(genes) - 1, -1, -1):
        gene = genes[number]
        name, symmetries, places = kinds[gene.kind]
        waves = [None] * len(places)
        if frequency is not None:
            waves = [
                _wave_numbers(gene.waves[place])
                if place >= 0 and (moving is None or (number, joint) in moving)
                else None
                for joint, place in enumerate(places)
            ]
        for own in symmetries:
            if number == 0 and not own.upright:
                continue
            beyond = []
            for child in children[number]:
                kind, _, port, child_port, turn, _ = genes[child]
                place, turned = own.ports[port]
                options = []
                for other, code in zip(kinds[kind].symmetries, codes[child], strict=True):
                    own_port, own_turn = other.ports[child_port]
                    turn_there = (turn + turned + own_turn) % 360
                    options.append(DOCKING.pack(place, own_port, turn_there) + code)
                beyond.append(min(options))
            form = name + _wave_bytes(own, waves) + b"".join(sorted(beyond))
            codes[number].append(blake2b(form, digest_size=16).digest())
    whole = f"{space.hinges} {frequency}".encode() + min(codes[0])
    return blake2b(whole, digest_size=16).hexdigest()


def _moving(space: BodySpace, genes: Sequence[Gene]) -> set[tuple[int, int]] | None:
    """Numbers of modules and joints that can move; None for all."""
    found = space.moving(genes)
    return None if found is None else set(found)


def _wave_numbers(wave: Oscillation) -> tuple[int, int, int]:
    """Numbers of a wave that do not depend on how its phase is written."""
    a, phase, offset = wave
    x, y = a * cos(phase), a * sin(phase)
    return round(x / RESOLVED), round(y / RESOLVED), round(offset / RESOLVED)


def _wave_bytes(symmetry: Symmetry, waves: Sequence[tuple[int, int, int] | None]) -> bytes:
    """Waves of a module after a motion."""
    found = [b""] * len(waves)
    for wave, (place, sign) in zip(waves, symmetry.joints, strict=True):
        if wave is not None:
            x, y, offset = wave
            found[place] = WAVE.pack(sign * x, sign * y, sign * offset)
    return b"".join(found)


@lru_cache(maxsize=CACHED_KINDS)
def _kind_forms(space: BodySpace) -> tuple[KindForms, ...]:
    rigid = space.hinges == "dyad"
    return tuple(
        KindForms(
            bytes.fromhex(kind.digest), symmetries(kind, rigid), tuple(row[: len(kind.joints)])
        )
        for kind, row in zip(space.kinds, space.wave_number.tolist(), strict=True)
    )


# -- symmetries of a kind --------------------------------------------------------------------------


class RestingBody(NamedTuple):
    """A rigid body of a module at rest, in the module's frame.

    Attributes:
        mass, center, inertia: Its mass properties. [kg, m, kg m^2]
        points: (k, 3), (k, 3), (k,) places, axes and radii of what can touch the ground.
    """

    mass: float
    center: np.ndarray
    inertia: np.ndarray
    points: tuple[np.ndarray, np.ndarray, np.ndarray]


@lru_cache(maxsize=CACHED_KINDS)
def symmetries(kind: ModuleType, rigid: bool) -> tuple[Symmetry, ...]:
    """Motions of a kind onto itself that keep its dockings; the first one is rest.

    Args:
        kind: The kind.
        rigid: Whether a module with a dyad hinge is one body, as with dyad hinges.
    """
    rigid = rigid and kind.dyad_joint is not None
    solids, found = _solids(kind, rigid), []
    first = kind.docks[0]
    for label in kind.docks:
        for quarter in range(4):
            turn = se3.pose(so3.from_rpy(0.0, 0.0, quarter * np.pi / 2), np.zeros(3))
            motion = kind.port_pose(label) @ turn @ se3.inverse(kind.port_pose(first))
            ports, bodies = _mapped_ports(kind, motion), _mapped_bodies(kind, solids, motion)
            if ports is None or bodies is None:
                continue
            joints = _mapped_joints(kind, rigid, bodies, motion)
            if joints is not None:
                found.append(Symmetry(ports, joints, bool(abs(motion[2, 2] - 1) < SAME)))
    return tuple(sorted(found, key=lambda each: not _is_rest(each)))


def _is_rest(symmetry: Symmetry) -> bool:
    ports = enumerate(symmetry.ports.values())
    return all(place == (number, 0) for number, place in ports)


def _mapped_ports(kind: ModuleType, motion: np.ndarray) -> dict[PortLabel, tuple[int, int]] | None:
    found: dict[PortLabel, tuple[int, int]] = {}
    for label in kind.docks:
        port, moved = kind.port(label), motion @ kind.port_pose(label)
        for number, other in enumerate(map(kind.port, kind.docks)):
            T = se3.inverse(kind.port_pose(other.label)) @ moved
            if np.abs(T[:3, 3]).max() > SAME * kind.size or abs(T[2, 2] - 1) > SAME:
                continue
            turn = round(np.rad2deg(np.arctan2(T[1, 0], T[0, 0]))) % 360
            turns = {(each + turn) % 360 for each in port.turns}
            same = (port.connector, set(port.mates)) == (other.connector, set(other.mates))
            if same and turns == {each % 360 for each in other.turns}:
                found[label] = (number, turn)
    return found if len(found) == len(kind.docks) else None


def _mapped_bodies(
    kind: ModuleType, solids: Sequence[RestingBody], motion: np.ndarray
) -> list[int] | None:
    """Number of the body in whose place each body comes."""
    R, p = motion[:3, :3], motion[:3, 3]
    found = []
    for mass, center, inertia, (place, axis, radius) in solids:
        points = (place @ R.T + p, axis @ R.T, radius)
        moved = RestingBody(mass, R @ center + p, R @ inertia @ R.T, points)
        same = [k for k, other in enumerate(solids) if _is_same(moved, other, SAME * kind.size)]
        if not same:
            return None
        found.append(same[0])
    return found


def _is_same(one: RestingBody, other: RestingBody, near: float) -> bool:
    """True if two bodies have the same mass, and the same points in another order."""
    if len(one.points[0]) != len(other.points[0]) or abs(one.mass - other.mass) > SAME * one.mass:
        return False
    if one.mass > 0 and (
        np.abs(one.center - other.center).max() > near
        or np.abs(one.inertia - other.inertia).max() > SAME * np.abs(one.inertia).max()
    ):
        return False
    distance = np.linalg.norm(one.points[0][:, None] - other.points[0][None], axis=-1)
    across = np.linalg.norm(np.cross(one.points[1][:, None], other.points[1][None]), axis=-1)
    unlike = np.abs(one.points[2][:, None] - other.points[2][None])
    pairs = (distance < near) & (across < SAME) & (unlike < near)
    return bool(pairs.any(axis=0).all() and pairs.any(axis=1).all())


def _mapped_joints(
    kind: ModuleType, rigid: bool, bodies: Sequence[int], motion: np.ndarray
) -> tuple[tuple[int, int], ...] | None:
    found: list[tuple[int, int]] = []
    for number, joint in enumerate(kind.joints):
        if rigid and joint.name != kind.dyad_joint:
            found.append((number, 1))  # it is held
            continue
        moved = se3.transform_twist(motion, _rest_screw(kind, joint))
        for place, other in enumerate(kind.joints):
            sign = _direction(moved, _rest_screw(kind, other), kind.size)
            if not rigid:  # else one body turns about its hinge
                ends = [bodies[kind.body_index(end)] for end in (joint.parent, joint.child)]
                there = [kind.body_index(end) for end in (other.parent, other.child)]
                sign = sign if ends == there else -sign if ends == there[::-1] else 0
            if sign and (not rigid or other is joint) and _moves_alike(joint, other, sign):
                found.append((place, sign))
                break
        if len(found) != number + 1:
            return None
    return tuple(found)


def _rest_screw(kind: ModuleType, joint: Joint) -> np.ndarray:
    return se3.transform_twist(kind.rest_poses[kind.body_index(joint.child)], joint.screw)


def _direction(one: np.ndarray, other: np.ndarray, size: float) -> int:
    """1 for equal screws, -1 for opposite ones, else 0."""
    scale = np.array([1 / size] * 3 + [1.0] * 3)
    for sign in (1, -1):
        if np.abs((one - sign * other) * scale).max() < SAME:
            return sign
    return 0


def _moves_alike(joint: Joint, other: Joint, sign: int) -> bool:
    """True if two joints differ in their names, places and perhaps their directions only."""
    ends = (joint.lower, joint.upper)
    if sign < 0:
        ends = tuple(None if end is None else -end for end in ends[::-1])
    names = ("kind", "viscous", "coulomb", "rotor_inertia", "gear_ratio", "stiffness", "damping")
    return ends == (other.lower, other.upper) and all(
        getattr(joint, name) == getattr(other, name) for name in names
    )


def _solids(kind: ModuleType, rigid: bool) -> list[RestingBody]:
    organism = Organism.start(kind)
    model = organism.model("dyad" if rigid else "physical", base="free")
    body, place, axis, radius = corners(organism, model)
    if rigid:
        return [RestingBody(*as_one_solid(kind), (place, axis, radius))]
    found = []
    for each, solid, T in zip(kind.bodies, body_solids(kind), kind.rest_poses, strict=True):
        R, p, own = T[:3, :3], T[:3, 3], body == model.body_index(f"m0.{each.name}")
        points = (place[own] @ R.T + p, axis[own] @ R.T, radius[own])
        moments = R @ solid.inertia @ R.T
        found.append(RestingBody(solid.mass, R @ solid.center + p, moments, points))
    return found
