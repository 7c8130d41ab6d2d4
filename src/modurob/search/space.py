"""Space of bodies and gaits that a search goes through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from modurob.checks import inside, positive, whole
from modurob.errors import StateError, choices
from modurob.model.options import ModelOptions
from modurob.modules import Joint, ModuleType
from modurob.organism.docking import dyad
from modurob.organism.organism import resolve_kind
from modurob.population.coding import BodyPlan, PortLabel
from modurob.population.packing import moving_joints

UNLIMITED = {"revolute": np.pi / 2, "prismatic": 0.05}  # [rad], [m] half the range without limits
MOST_MODULES = 1000
CACHED_SPACES = 64

Fit: TypeAlias = tuple[int, PortLabel, int]  # kind and port of a new module, turn


class Oscillation(NamedTuple):
    """Sine wave of one joint: ``offset + amplitude sin(2 pi f t + phase)``. [rad, m; rad]"""

    amplitude: float
    phase: float
    offset: float


class Gene(NamedTuple):
    """One module: its place in a body, and the waves of its joints.

    Attributes:
        kind: Number of its kind in `BodySpace.kinds`.
        parent, port: Number of the gene and the port that it docks to; -1 and 0 for the base.
        child_port: Its own port.
        turn: About the port's normal. [deg]
        waves: One for each joint, see `BodySpace.joints`.
    """

    kind: int
    parent: int
    port: PortLabel
    child_port: PortLabel
    turn: int
    waves: tuple[Oscillation, ...]


class JointRange(NamedTuple):
    """Middle of a joint's range and half its width. [rad, m]"""

    middle: float
    half: float


@dataclass(frozen=True, init=False)
class BodySpace:
    """Bodies of some kinds of modules, and sine waves of their joints.

    Bodies of grid cubes lie on the planar lattice, with one module in a cell; the modules of all
    other bodies do not overlap with their joints at zero.

    Attributes:
        kinds: Catalog names or datasheets; at least one that docks.
        modules: Fewest and most modules of a body.
        hinges: As for `Organism.model`.
        amplitude, offset: Most of a joint's wave, as shares of half its range; together at most 1,
            so that no wave passes a limit.
        frequency: Lowest and highest of the waves. [Hz]
    """

    kinds: tuple[ModuleType, ...]
    modules: tuple[int, int]
    hinges: str
    amplitude: float
    offset: float
    frequency: tuple[float, float]

    def __init__(
        self,
        kinds: str | ModuleType | Sequence[str | ModuleType] = "backbone",
        modules: Sequence[int] = (4, 12),
        hinges: str = "dyad",
        amplitude: float = 0.6,
        offset: float = 0.4,
        frequency: Sequence[float] = (0.5, 2.0),
    ) -> None:
        given = (kinds,) if isinstance(kinds, str | ModuleType) else kinds
        if not isinstance(given, Sequence) or not given:
            raise StateError(
                f"kinds of a body space are catalog names or datasheets, got {given!r}"
            )
        types = tuple(map(resolve_kind, given))
        for k, kind in enumerate(types):
            if kind.virtual or kind in types[:k]:
                flaw = "is a virtual joint, which never docks" if kind.virtual else "is there twice"
                raise StateError(f"kinds of a body space: '{kind.name}' {flaw}")
        if hinges not in ("dyad", "physical"):
            raise StateError(f"hinges must be 'dyad' or 'physical', got {hinges!r}")
        least, most = _pair("modules", modules)
        least = whole("the smallest number of modules", least, 1, MOST_MODULES)
        most = whole("the largest number of modules", most, least, MOST_MODULES)
        low, high = _pair("frequency", frequency)
        low = positive("the lowest frequency", low, "Hz")
        if positive("the highest frequency", high, "Hz") < low:
            raise StateError(f"frequency goes from low to high in Hz, got {frequency!r}")
        amplitude = inside("the amplitude of a body space", amplitude, 0.0, 1.0, "a share")
        offset = inside("the offset of a body space", offset, 0.0, 1.0 - amplitude, "a share")
        checked = (types, (least, most), hinges, amplitude, offset, (low, float(high)))
        for name, value in zip(self.__dataclass_fields__, checked, strict=True):
            object.__setattr__(self, name, value)
        if most > 1 and not any(self.fits.values()):
            names = choices(kind.name for kind in types)
            raise StateError(f"no port of {names} mates with another: bodies have one module only")

    def __reduce__(self) -> tuple[Any, ...]:
        """The settings alone: what was derived from them need not be sent to other processes."""
        return _restored, tuple(getattr(self, name) for name in self.__dataclass_fields__)

    @cached_property
    def planar(self) -> bool:
        """True if all kinds are cubes of the planar lattice."""
        return all(kind.grid for kind in self.kinds)

    @cached_property
    def fits(self) -> dict[tuple[int, PortLabel], tuple[Fit, ...]]:
        """All modules that mate with a port, (kind, port) -> (kind, port, turn) of a new module."""
        found: dict[tuple[int, PortLabel], tuple[Fit, ...]] = {}
        for i, kind in enumerate(self.kinds):
            for port in map(kind.port, kind.docks):
                found[i, port.label] = tuple(
                    (j, other.label, turn)
                    for j, new in enumerate(self.kinds)
                    for other in map(new.port, new.docks)
                    if port.mates_with(other)
                    for turn in port.turns
                    if turn in other.turns
                )
        return found

    @cached_property
    def transforms(self) -> dict[tuple[int, PortLabel, int, PortLabel, int], Any]:
        """Geometry of all dockings: the step on the lattice of planar bodies, else (4, 4) T_ij."""
        found = {}
        for (i, port), fitting in self.fits.items():
            for j, other, turn in fitting:
                pair = dyad(self.kinds[i], port, self.kinds[j], other, turn)
                found[i, port, j, other, turn] = pair.step if self.planar else pair.transform
        return found

    @cached_property
    def joints(self) -> tuple[tuple[Joint, ...], ...]:
        """The joints of each kind that a gait moves, in the order of the datasheet."""
        return tuple(
            (kind.joint(kind.dyad_joint),)
            if self.hinges == "dyad" and kind.dyad_joint is not None
            else tuple(joint for joint in kind.joints if joint.kind != "fixed")
            for kind in self.kinds
        )

    @cached_property
    def wave_number(self) -> np.ndarray:
        """(kinds, most joints) place among a gene's waves of a joint of the datasheet; else -1."""
        found = np.full((len(self.kinds), max(len(kind.joints) for kind in self.kinds)), -1)
        for k, (kind, joints) in enumerate(zip(self.kinds, self.joints, strict=True)):
            for number, joint in enumerate(joints):
                found[k, kind.joints.index(joint)] = number
        return found

    @cached_property
    def wave_places(self) -> list[list[int]]:
        """The same as lists, which are quick for single numbers."""
        return self.wave_number.tolist()

    def plan(self, genes: Sequence[Gene]) -> BodyPlan:
        """Modules and dockings of genes, as populations take them."""
        kinds = self.kinds
        return BodyPlan([kinds[gene[0]] for gene in genes], [gene[1:5] for gene in genes[1:]])

    @cached_property
    def _options(self) -> ModelOptions:
        return ModelOptions(self.hinges, "free")

    @cached_property
    def _bending(self) -> dict[tuple[int, PortLabel, int, PortLabel, int], int]:
        """Dockings of simple bodies that bend, and the joint that they bend by."""
        found = {}
        for i, port, j, other, turn in self.transforms:
            kind = self.kinds[j]
            assert kind.dyad_joint is not None  # of a simple space
            name = dyad(self.kinds[i], port, kind, other, turn).name
            if name in ("DP", "DO") and self.ranges[j][0].half > 0:
                joint = kind.joints.index(kind.joint(kind.dyad_joint))
                found[i, port, j, other, turn] = joint
        return found

    @cached_property
    def _is_simple(self) -> bool:
        """True if no other joints than those of bending dockings move."""
        heavy = all(kind.dyad_joint is not None and kind.mass > 0 for kind in self.kinds)
        elastic = any(joint.stiffness for kind in self.kinds for joint in kind.joints)
        return self.hinges == "dyad" and heavy and not elastic

    def moving(self, genes: Sequence[Gene]) -> list[tuple[int, int]] | None:
        """Joints of a body that can move, see `moving_joints`."""
        if not self._is_simple:
            return moving_joints(self.plan(genes), self._options)
        bending, found = self._bending, []
        for number, (kind, parent, port, child_port, turn, _) in enumerate(genes):
            joint = bending.get((genes[parent].kind, port, kind, child_port, turn), -1)
            if joint >= 0 and number > 0:
                found.append((number, joint))
        return found

    def moves(self, genes: Sequence[Gene]) -> bool:
        """True if a joint of the body can move."""
        return self.moving(genes) != []

    @cached_property
    def ranges(self) -> tuple[tuple[JointRange, ...], ...]:
        """Ranges of these joints."""
        return tuple(tuple(map(_range, joints)) for joints in self.joints)

    @cached_property
    def wave_bounds(self) -> tuple[tuple[tuple[float, float, float], ...], ...]:
        """Of each kind and joint: largest amplitude, lowest and highest offset. [rad, m]"""
        return tuple(
            tuple(
                (self.amplitude * half, middle - self.offset * half, middle + self.offset * half)
                for middle, half in ranges
            )
            for ranges in self.ranges
        )


@lru_cache(maxsize=CACHED_SPACES)
def shared_space(space: BodySpace) -> BodySpace:
    """The first of equal spaces, so that what is derived from a space is derived once."""
    return space


def _restored(*settings: Any) -> BodySpace:
    return shared_space(BodySpace(*settings))


def _range(joint: Joint) -> JointRange:
    half = UNLIMITED[joint.kind]
    lower, upper = joint.lower, joint.upper
    if lower is None:
        lower = -half if upper is None else min(-half, upper - 2 * half)
    if upper is None:
        upper = max(half, lower + 2 * half)
    return JointRange((lower + upper) / 2, (upper - lower) / 2)


def _pair(name: str, value: Any) -> tuple[Any, Any]:
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2:
        return value[0], value[1]
    raise StateError(f"{name} of a body space is a pair, the least and the most, got {value!r}")
