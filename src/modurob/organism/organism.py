"""`Organism`: modules docked into a tree, as a value that never changes."""

from __future__ import annotations

import heapq
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rpds import HashTrieMap

from modurob.errors import DockingError, StateError, UnknownNameError, choices
from modurob.modules import ModuleType, Port, catalog
from modurob.organism import docking as rule
from modurob.organism import matrices
from modurob.organism.docking import Docking, Dyad
from modurob.organism.matrices import Aim
from modurob.spatial import so3

if TYPE_CHECKING:
    from modurob.model import Model
    from modurob.organism.dh_table import DhTable
    from modurob.studio.viewer import View
    from modurob.symbolic import Equations

NAME = re.compile(r"[^\W\d][\w-]{0,63}")
HEADINGS = ((1, 0), (0, 1), (-1, 0), (0, -1))  # where x points after 0, 1, 2, 3 quarter turns
ROTATION_TOLERANCE = 1e-9  # a base pose typed by hand or read from a file
ORIGIN = np.eye(4)
ORIGIN.setflags(write=False)


class GridPlace(NamedTuple):
    """A cell of a planar grid and the turn of its module; each patch of cubes has its own grid."""

    grid: str
    x: int
    y: int
    quarter: int

    @property
    def cell(self) -> tuple[str, int, int]:
        return self.grid, self.x, self.y


class Member(NamedTuple):
    """A module of an organism: its datasheet, its row in the AIM, its cell if it has one.

    `pose` is (4, 4), its frame in the base module's with all joints at zero.
    """

    kind: ModuleType
    row: int
    place: GridPlace | None
    pose: np.ndarray = ORIGIN


@dataclass(frozen=True, eq=False)
class Organism:
    """Modules docked into a tree, seen from a base.

    Immutable: `dock`, `undock`, `merge` and the others return new organisms that share what did
    not change, so docking one module costs the same on an organism of 10 or of 10,000.

    Two organisms are equal when the same kinds are docked in the same way from the base: names, the
    order of docking and the base pose do not count.

    Attributes:
        base: Name of the base module.
        base_pose: (4, 4) frame of the base module in the world, joints at zero.
    """

    base: str
    base_pose: np.ndarray
    _members: HashTrieMap[str, Member]
    _dockings: HashTrieMap[str, Docking]  # by child
    _taken: HashTrieMap[tuple[str, int | str], str]  # (module, port) -> neighbor
    _cells: HashTrieMap[tuple[str, int, int], str]
    _next: int = field(default=1)  # the next free row and column number

    # -- making one ----------------------------------------------------------------------------

    @classmethod
    def start(
        cls, kind: str | ModuleType, name: str = "m0", *, pose: ArrayLike | None = None
    ) -> Organism:
        """An organism of one module, the base.

        Args:
            kind: A catalog name or a datasheet.
            pose: (4, 4) frame of the base in the world; the origin by default.
        """
        kind, name = resolve_kind(kind), checked_name(name)
        place = GridPlace(name, 0, 0, 0) if kind.grid else None
        cells = HashTrieMap({place.cell: name}) if place else HashTrieMap()
        members = HashTrieMap({name: Member(kind, 0, place)})
        return cls(name, checked_pose(pose), members, HashTrieMap(), HashTrieMap(), cells)

    @classmethod
    def from_aim(
        cls, matrix: ArrayLike | Aim, kinds: Sequence[str | ModuleType] | None = None
    ) -> Organism:
        """The organism of an assembly incidence matrix; row 0 is the base.

        Args:
            matrix: (modules, joints) sides, two in each column; or an `Aim`.
            kinds: One catalog name, letter or datasheet for each row; ``"BBS"`` works too.
        """
        from modurob.organism.builders import from_aim

        return from_aim(matrix, kinds)

    @classmethod
    def from_grid(
        cls, drawing: str, kinds: Mapping[str, str | ModuleType] | None = None
    ) -> Organism:
        """The planar organism of a small text drawing, seen from above.

        Each module is its letter and an arrow for where side 3 points (``^ > v <``); ``*`` marks
        the base (else the first module); ``-`` and ``|`` dock neighbors. A cell is four
        characters wide and two lines high::

            S^--B>
            |
            S^*

        Args:
            kinds: Further letters; by default those of the catalog.
        """
        from modurob.organism.builders import from_grid

        return from_grid(drawing, kinds)

    @classmethod
    def random(
        cls,
        kind: str | ModuleType | Sequence[str | ModuleType],
        modules: int,
        rng: np.random.Generator,
    ) -> Organism:
        """A random tree of `modules` modules of the given kind or kinds.

        Not every kind need appear: virtual joints are left out, and so is a kind whose connectors
        mate with no module that is there.
        """
        from modurob.organism.builders import random

        return random(kind, modules, rng)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Organism:
        """Read an organism that `save` wrote; `modurob.load` reads files of every kind."""
        from modurob.organism.files import read

        return read(path)

    # -- structure -----------------------------------------------------------------------------

    @cached_property
    def modules(self) -> tuple[str, ...]:
        """Names of the modules, base first: the rows of the matrices."""
        members = self._members
        return tuple(sorted(members, key=lambda name: (name != self.base, members[name].row)))

    @cached_property
    def dockings(self) -> tuple[Docking, ...]:
        """The dockings, each after the one that brought its parent: the columns of the matrices."""
        ordered = sorted(self._dockings.values(), key=attrgetter("column"))
        reached = {self.base}
        for entry in ordered:
            if entry.parent not in reached:
                return self._sorted_outward(ordered)
            reached.add(entry.child)
        return tuple(ordered)

    def _sorted_outward(self, ordered: Iterable[Docking]) -> tuple[Docking, ...]:
        waiting: dict[str, list[Docking]] = {}
        for entry in ordered:
            waiting.setdefault(entry.parent, []).append(entry)
        ready = [(entry.column, entry) for entry in waiting.get(self.base, [])]  # sorted: a heap
        result = []
        while ready:
            _, entry = heapq.heappop(ready)
            result.append(entry)
            for beyond in waiting.get(entry.child, []):
                heapq.heappush(ready, (beyond.column, beyond))
        return tuple(result)

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._members

    def kind(self, name: str) -> ModuleType:
        """The datasheet of a module."""
        return self._member(name).kind

    def place(self, name: str) -> GridPlace | None:
        """The grid cell of a module, or None for one that is not a grid cube."""
        return self._member(name).place

    def parent(self, name: str) -> str | None:
        """The neighbor towards the base; None for the base."""
        self._member(name)
        found = self._dockings.get(name)
        return None if found is None else found.parent

    def docking(self, name: str) -> Docking | None:
        """The docking that holds a module; None for the base."""
        self._member(name)
        return self._dockings.get(name)

    def children(self, name: str) -> tuple[str, ...]:
        """The neighbors away from the base, in the order of the datasheet's ports."""
        parent = self.parent(name)
        neighbors = (self._taken.get((name, p.label)) for p in self.kind(name).ports)
        return tuple(n for n in neighbors if n is not None and n != parent)

    def free_ports(self, name: str) -> tuple[int | str, ...]:
        """The docks of a module that are not in use."""
        kind = self.kind(name)
        return tuple(label for label in kind.docks if (name, label) not in self._taken)

    def subtree(self, name: str) -> tuple[str, ...]:
        """A module and everything beyond it, each after its parent."""
        reached = [name]
        for module in reached:
            reached.extend(self.children(module))
        return tuple(reached)

    def dyad(self, entry: Docking) -> Dyad:
        """Transform, class and grid step of a docking."""
        kind_i, kind_j = self._members[entry.parent].kind, self._members[entry.child].kind
        return rule.dyad(kind_i, entry.port, kind_j, entry.child_port, entry.turn)

    def rest_pose(self, name: str) -> np.ndarray:
        """(4, 4) frame of a module in the world with all joints at zero."""
        return self.base_pose @ self._member(name).pose

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The form in a notebook."""
        from modurob.studio.notebook import bundle

        return bundle(self)

    def __repr__(self) -> str:
        counts = Counter(self._members[name].kind.name for name in self.modules)
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        modules = "1 module" if len(self) == 1 else f"{len(self)} modules"
        return f"<Organism of {modules} ({kinds}), base {self.base}>"

    # -- changing the body ---------------------------------------------------------------------

    def dock(
        self,
        parent: str,
        port: int | str,
        child: str,
        child_port: int | str,
        *,
        kind: str | ModuleType | None = None,
        turn: int = 0,
    ) -> Organism:
        """This organism with a new module docked.

        Args:
            parent, port: Where the new module goes.
            child, child_port: Name of the new module and the port it docks with.
            kind: Catalog name or datasheet of the new module; by default the parent's kind.
            turn: About the port's normal. [deg]
        """
        new_kind = self.kind(parent) if kind is None else resolve_kind(kind)
        return self._docked(Docking(parent, port, child, child_port, turn, self._next), new_kind)

    def _docked(self, new: Docking, kind: ModuleType, row: int | None = None) -> Organism:
        checked_name(new.child)
        if new.child in self._members:
            raise DockingError(
                f"'{new.child}' is already part of the organism; docking it to '{new.parent}' too "
                "would close a loop. Give the new module another name."
            )
        new = self._checked_docking(new, kind)
        parent = self._members[new.parent]
        found = rule.dyad(parent.kind, new.port, kind, new.child_port, new.turn)
        place, cells = self._occupied(new, kind, found.step)
        pose = parent.pose.dot(found.transform)
        member = Member(kind, self._next if row is None else row, place, pose)
        taken = self._taken.insert((new.parent, new.port), new.child)
        return _changed(
            self,
            _members=self._members.insert(new.child, member),
            _dockings=self._dockings.insert(new.child, new),
            _taken=taken.insert((new.child, new.child_port), new.parent),
            _cells=cells,
            _next=self._next + 1,
        )

    def _demand_free(self, module: str, port: int | str) -> None:
        if (module, port) in self._taken:
            raise DockingError(
                f"port {port} of '{module}' already holds '{self._taken[module, port]}'; "
                f"free docks are {choices(self.free_ports(module))}"
            )

    def _checked_docking(self, new: Docking, kind: ModuleType) -> Docking:
        """The docking with the datasheets' own labels and turns, if it breaks no rule."""
        here = _port(new.parent, self.kind(new.parent), new.port)
        self._demand_free(new.parent, new.port)
        there = _port(new.child, kind, new.child_port)
        if kind.virtual:
            raise DockingError(
                f"'{new.child}' ({kind.name}) is a virtual joint: it lies between the world and "
                f"the base. Start the organism with it, or pass base=[...] to model()."
            )
        if not here.mates_with(there):
            fitting = [p.label for p in kind.ports if here.mates_with(p)]
            raise DockingError(
                f"port {new.port} of '{new.parent}' ({here.connector}) does not mate with port "
                f"{new.child_port} of '{new.child}' ({there.connector}); "
                f"ports of {kind.name} that do: {choices(fitting)}"
            )
        allowed = [turn for turn in here.turns if turn in there.turns]
        if new.turn not in allowed:
            raise DockingError(
                f"turn {new.turn!r} is not allowed between port {new.port} of '{new.parent}' and "
                f"port {new.child_port} of '{new.child}': turns are {choices(allowed)} degrees"
            )
        turn = allowed[allowed.index(new.turn)]
        return new._replace(port=here.label, child_port=there.label, turn=turn)

    def _occupied(
        self, new: Docking, kind: ModuleType, step: tuple[int, int, int] | None
    ) -> tuple[GridPlace | None, HashTrieMap[tuple[str, int, int], str]]:
        """Place of the new module on the grid, and the cells with it."""
        if not kind.grid:
            return None, self._cells
        parent = self._members[new.parent]
        if step is None:
            place = GridPlace(new.child, 0, 0, 0)
        else:
            assert parent.place is not None
            grid, x, y, quarter = parent.place
            (ax, ay), (bx, by) = HEADINGS[quarter], HEADINGS[(quarter + 1) % 4]
            dx, dy, turned = step
            x, y = x + dx * ax + dy * bx, y + dx * ay + dy * by
            place = GridPlace(grid, x, y, (quarter + turned) % 4)
        if place.cell in self._cells:
            raise DockingError(
                f"'{new.child}' at port {new.port} of '{new.parent}' would take the cell of "
                f"'{self._cells[place.cell]}' ({place.x}, {place.y}); choose another port"
            )
        return place, self._cells.insert(place.cell, new.child)

    def undock(self, name: str) -> tuple[Organism, Organism]:
        """Undock a module: what stays with the base, and the module with all beyond it.

        The loose part keeps its names and its place in the world; `name` is its base.
        """
        entry = self.docking(name)
        if entry is None:
            others = self.modules[1:]
            rest = f"rebase the organism first, on {choices(others)}" if others else "it is alone"
            raise DockingError(f"'{name}' is the base and cannot be undocked; {rest}")
        loose = self.subtree(name)
        members, dockings, taken, cells = self._members, self._dockings, self._taken, self._cells
        for module in loose:
            member, held = members[module], dockings[module]
            members, dockings = members.remove(module), dockings.remove(module)
            taken = taken.remove((held.parent, held.port)).remove((module, held.child_port))
            if member.place is not None:
                cells = cells.remove(member.place.cell)
        rest = _changed(self, _members=members, _dockings=dockings, _taken=taken, _cells=cells)
        if "dockings" in vars(self):  # need not be sorted again
            gone = set(loose)
            vars(rest)["dockings"] = tuple([x for x in self.dockings if x.child not in gone])
        parts = {module: self._members[module] for module in loose}
        held = [self._dockings[module] for module in loose[1:]]
        return rest, assemble(name, self.rest_pose(name), parts, held)

    def split(self, name: str) -> tuple[Organism, ...]:
        """Undock a module from all its neighbors: the base's part, the module, each part beyond."""
        pieces, remaining = [], self
        for child in self.children(name):
            remaining, beyond = remaining.undock(child)
            pieces.append(beyond)
        held = (remaining,) if name == self.base else remaining.undock(name)
        return (*held, *pieces)

    def merge(
        self,
        parent: str,
        port: int | str,
        other: Organism,
        child: str,
        child_port: int | str,
        *,
        turn: int = 0,
    ) -> Organism:
        """This organism with a whole other one docked through the other's module `child`."""
        if not isinstance(other, Organism):
            raise DockingError(f"merge takes an Organism, got {type(other).__name__}; see dock()")
        shared = [name for name in other.modules if name in self]
        if shared:
            raise DockingError(
                f"both organisms have modules named {choices(shared)}; "
                "rename one side first: other.rename(prefix='other_')"
            )
        other._demand_free(child, child_port)
        other = other.rebase(child)
        result = self.dock(parent, port, child, child_port, kind=other.kind(child), turn=turn)
        for entry in other.dockings:
            result = result._docked(entry._replace(column=result._next), other.kind(entry.child))
        return result

    def rebase(self, name: str) -> Organism:
        """The same body with another base, at the same place in the world."""
        if name == self.base:
            return self
        if self.kind(self.base).virtual:
            raise DockingError(
                f"the base '{self.base}' is a virtual joint, which ties the organism to the world; "
                f"undock the rest before you rebase it"
            )
        turned: dict[str, Docking] = {}
        entry = self.docking(name)
        while entry is not None:
            parent, port, child, child_port, *rest = entry
            turned[child] = Docking(child, child_port, parent, port, *rest)
            entry = self._dockings.get(parent)
        dockings = [turned.get(e.child, e) for e in self.dockings]
        members = {module: self._members[module] for module in self.modules}
        return assemble(name, self.rest_pose(name), members, dockings)

    # -- editing names and numbers ---------------------------------------------------------------

    def rename(self, names: Mapping[str, str] | None = None, *, prefix: str = "") -> Organism:
        """The same organism with other names: ``{"m0": "body"}``, or a prefix for all."""
        names = names or {}
        for old in names:
            self._member(old)
        new = {old: prefix + names.get(old, old) for old in self.modules}
        twice = sorted(name for name, count in Counter(new.values()).items() if count > 1)
        if twice:
            raise DockingError(f"two modules would be called {choices(twice)}")
        members = {checked_name(new[old]): self._members[old] for old in self.modules}
        dockings = [
            entry._replace(parent=new[entry.parent], child=new[entry.child])
            for entry in self.dockings
        ]
        return assemble(new[self.base], self.base_pose, members, dockings)

    def with_parameters(self, *names: str, **parameters: Any) -> Organism:
        """The same organism with other numbers in some modules' datasheets.

        Args:
            names: The modules to edit; all of them by default.
            parameters: See `ModuleType.with_parameters`: mass, size, inertia, viscous, ...
        """
        edited: dict[ModuleType, ModuleType] = {}
        for name in names or self.modules:
            kind = self.kind(name)
            if kind not in edited:
                edited[kind] = kind.with_parameters(**parameters)
        return self.with_kinds({n: edited[self.kind(n)] for n in names or self.modules})

    def with_kinds(self, kinds: Mapping[str, str | ModuleType]) -> Organism:
        """The same organism with other datasheets in some modules, docked at the same ports."""
        members = {name: self._members[name] for name in self.modules}
        for name, kind in kinds.items():
            members[name] = self._member(name)._replace(kind=resolve_kind(kind))
        return assemble(self.base, self.base_pose, members, self.dockings)

    def with_base_pose(self, pose: ArrayLike) -> Organism:
        """The same organism with its base elsewhere: (4, 4) in the world."""
        return _changed(self, base_pose=checked_pose(pose))

    # -- matrices, files, models -----------------------------------------------------------------

    def aim(self) -> Aim:
        """The assembly incidence matrix with its kinds and dyad classes."""
        return matrices.aim(self)

    def accessibility(self) -> np.ndarray:
        """(n, n) 0/1: entry (i, j) is 1 when module j lies beyond module i."""
        return matrices.accessibility(self)

    def direct_transforms(self) -> np.ndarray:
        """(n - 1, 4) rows (i, j, side_i, side_j), one for each docking (DTL)."""
        return matrices.direct_transforms(self)

    def indirect_transforms(self) -> np.ndarray:
        """(k, 6) rows (i, j, i, x, x, j): T_ij = T_ix T_xj from rows before or the DTL (IDTL)."""
        return matrices.indirect_transforms(self)

    def dyad_classes(self) -> list[str]:
        """The class of each docking: DS, DP, DO; DV behind a virtual joint, DR when rigid."""
        return [self.dyad(entry).name for entry in self.dockings]

    def dh_table(self) -> DhTable:
        """The extended Denavit-Hartenberg table: ``.rows``, ``.links``, ``.poses(q)``.

        Every joint of every module, as in ``model(hinges="physical")``, the base fixed. A row
        (a, alpha, d, theta, n, p, kind, joint, ...) leads from one joint axis to the next or to a
        tip.
        """
        from modurob.organism.dh_table import dh_table

        return dh_table(self)

    def to_grid(self) -> str:
        """The drawing that `from_grid` reads."""
        from modurob.organism.builders import to_grid

        return to_grid(self)

    def canonical(self) -> tuple[tuple[str, int, int | str, int | str, int], ...]:
        """A form that does not depend on names, docking order or the base pose.

        One entry for each module, in the order a walk along the ports meets them: fingerprint of
        its datasheet, position of its parent in this list, the two ports, the turn.
        """
        return self._canonical

    @cached_property
    def _canonical(self) -> tuple[tuple[str, int, int | str, int | str, int], ...]:
        form, stack = [], [(self.base, -1)]
        while stack:
            name, parent = stack.pop()
            entry = self._dockings.get(name)
            ports = (0, 0, 0) if entry is None else (entry.port, entry.child_port, entry.turn)
            form.append((self.kind(name).digest, parent, *ports))
            here = len(form) - 1
            stack.extend((child, here) for child in reversed(self.children(name)))
        return tuple(form)

    def __eq__(self, other: object) -> bool:
        """Compare the `canonical` forms; the base pose does not count."""
        return isinstance(other, Organism) and (
            self is other or (len(self) == len(other) and self._canonical == other._canonical)
        )

    def __hash__(self) -> int:
        return hash(self._canonical)

    def view(self, q: ArrayLike | None = None, *, model: Model | None = None) -> View:
        """The organism in three dimensions: in a notebook, or as an HTML file.

        Needs the extra ``studio``. ``organism.view().save("crab.html")`` writes one file that a
        browser opens without a network.

        Args:
            q: Configuration of `model`, zero by default.
            model: By default `Organism.model` without arguments.
        """
        from modurob.studio.viewer import organism_view

        return organism_view(self, q, model)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the organism with all its datasheets to a JSON file, atomically."""
        from modurob.organism.files import save

        save(self, path)

    def model(
        self,
        hinges: str = "dyad",
        base: str | Sequence[str] = "fixed",
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        locked: Mapping[str, float] | None = None,
        elastic: bool = True,
    ) -> Model:
        """Build the numeric model of this organism.

        Args:
            hinges: ``dyad`` (the papers: docked cubes bend about the hinge of the outer module) or
                ``physical`` (every joint of every module, dockings rigid).
            base: ``fixed``, ``free``, or virtual joints between world and base, in order:
                ``px py pz`` slide, ``rx ry rz`` turn.
            gravity: (3,) in the world frame. [m/s^2]
            locked: Joints that are held at a position, such as ``{"m1.roll": 0.5}``; they leave the
                state, and `Model.locked` names them. [rad, m]
            elastic: Whether a joint with a stiffness is two joints: ``m1.roll`` turns the rotor,
                ``m1.roll.spring`` has no motor. False for rigid joints.
        """
        from modurob.model.build import build_model
        from modurob.model.options import ModelOptions

        return build_model(self, ModelOptions(hinges, base, gravity, locked, elastic))

    def equations(
        self,
        hinges: str = "dyad",
        base: str | Sequence[str] = "fixed",
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        locked: Mapping[str, float] | None = None,
        elastic: bool = True,
        *,
        symbols: str | Collection[str] = "all",
        external: Sequence[str] = (),
        limit: float | None = None,
    ) -> Equations:
        """The equations of motion of this organism as formulas.

        Args:
            hinges, base, gravity, locked, elastic: As for `model`.
            symbols: Which quantities are symbols: ``all``, ``none``, or some of ``mass length
                inertia gravity friction stiffness``; the others enter with the organism's numbers.
                Joint displacements and velocities always are symbols; `Equations.substitute` gives
                them values.
            external: Modules that an external wrench acts on.
            limit: Refuse closed forms that would have more terms than this.  [default: 100,000]
        """
        from modurob.model.options import ModelOptions
        from modurob.symbolic.equations import build_equations

        options = ModelOptions(hinges, base, gravity, locked, elastic)
        return build_equations(self, options, symbols, external, limit)

    def _member(self, name: str) -> Member:
        try:
            return self._members[name]
        except (KeyError, TypeError):
            raise UnknownNameError(
                f"no module {name!r} in this organism: modules are {choices(self.modules)}"
            ) from None


def _changed(organism: Organism, **changes: Any) -> Organism:
    """`dataclasses.replace` without re-running the constructor: docking is a hot path."""
    new = object.__new__(Organism)
    fields = new.__dict__
    for name in Organism.__dataclass_fields__:
        fields[name] = changes[name] if name in changes else organism.__dict__[name]
    return new


def assemble(
    base: str, base_pose: np.ndarray, members: Mapping[str, Member], dockings: Iterable[Docking]
) -> Organism:
    """An organism from its parts, rows and columns kept.

    Args:
        base_pose: Not checked again: see `checked_pose`.
    """
    dockings = tuple(dockings)
    base_pose.setflags(write=False)
    result = Organism.start(members[base].kind, base)
    first = result._members[base]._replace(row=members[base].row)
    result = _changed(result, _members=result._members.insert(base, first), base_pose=base_pose)
    for entry in result._sorted_outward(sorted(dockings, key=lambda e: e.column)):
        member = members[entry.child]
        result = result._docked(entry, member.kind, row=member.row)
    used = [member.row for member in members.values()] + [e.column for e in dockings]
    return _changed(result, _next=max(used) + 1)


def resolve_kind(kind: str | ModuleType) -> ModuleType:
    """A datasheet from a datasheet or a catalog name."""
    return kind if isinstance(kind, ModuleType) else catalog[kind]


def _port(module: str, kind: ModuleType, label: int | str) -> Port:
    try:
        return kind._ports[label]
    except (KeyError, TypeError):
        raise UnknownNameError(
            f"no port {label!r} on '{module}' ({kind.name}): docks are {choices(kind.docks)}"
        ) from None


def checked_name(name: str) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise DockingError(
            f"{name!r} is no name for a module: use a letter, then up to 63 letters, digits, "
            "'_' or '-'"
        )
    return name


def checked_pose(pose: ArrayLike | None) -> np.ndarray:
    """(4, 4) a pose as a read-only array; the origin by default."""
    if pose is None:
        return ORIGIN
    try:
        T = np.array(pose, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise StateError("a pose is a finite 4x4 matrix [R p; 0 1], got no numbers") from None
    flaw = ""
    if T.shape != (4, 4):
        flaw = f"shape {T.shape}"
    elif not np.isfinite(T).all():
        flaw = "nan or inf in it"
    elif not np.array_equal(T[3], [0, 0, 0, 1]):
        flaw = f"{T[3].tolist()} as its last row"
    if flaw:
        raise StateError(f"a pose is a finite 4x4 matrix [R p; 0 1], got {flaw}")
    if not so3.is_rotation(T[:3, :3], ROTATION_TOLERANCE):
        raise StateError("the rotation part of the pose is not orthonormal and right-handed")
    T.setflags(write=False)
    return T
