"""The documents' matrices of an organism: AIM, accessibility, direct and indirect transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from modurob.modules import ModuleType

if TYPE_CHECKING:
    from modurob.organism.organism import Organism


@dataclass(frozen=True, eq=False)
class Aim:
    """Assembly incidence matrix (meister2013, section IV).

    Attributes:
        matrix: (modules, joints) int; the docked side, 0 where a joint does not touch a module.
        kinds: The last column: one letter for each module.
        classes: The last row: the dyad class of each joint.
        types: The datasheets, one for each module.
        turns: Docking turn of each joint. [deg]
    """

    matrix: np.ndarray
    kinds: list[str]
    classes: list[str]
    types: tuple[ModuleType, ...]
    turns: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The kinds' full names, one for each module."""
        return tuple(kind.name for kind in self.types)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Aim)
            and np.array_equal(self.matrix, other.matrix)
            and (self.types, self.classes, self.turns) == (other.types, other.classes, other.turns)
        )

    def __hash__(self) -> int:
        return hash((self.matrix.tobytes(), self.types, self.turns))

    def __str__(self) -> str:
        joints = [f"e{k + 1}" for k in range(self.matrix.shape[1])]
        rows = [
            [f"v{i}", *map(str, sides), kind]
            for i, (sides, kind) in enumerate(zip(self.matrix, self.kinds, strict=True))
        ]
        return aligned([["", *joints, ""], *rows, ["", *self.classes, ""]], str.rjust)

    def _repr_html_(self) -> str:
        return monospaced(str(self))


def monospaced(text: str) -> str:
    """Text for a notebook, whose style may give <pre> another font."""
    return f'<pre style="font-family:monospace">{escape(text)}</pre>'


def aligned(rows: Sequence[Sequence[str]], justify: Callable[[str, int], str]) -> str:
    """A table as text, each column as wide as its longest entry."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(justify, row, widths)).rstrip() for row in rows)


def aim(organism: Organism) -> Aim:
    """The AIM: rows are modules, base first; columns are dockings."""
    row = {name: index for index, name in enumerate(organism.modules)}
    matrix = np.zeros((len(row), len(organism.dockings)), dtype=int)
    for column, (i, j, side_i, side_j) in enumerate(direct_transforms(organism)):
        matrix[i, column], matrix[j, column] = side_i, side_j
    matrix.setflags(write=False)
    kinds = [organism.kind(name) for name in row]
    return Aim(
        matrix=matrix,
        kinds=[kind.symbol for kind in kinds],
        classes=organism.dyad_classes(),
        types=tuple(kinds),
        turns=tuple(entry.turn for entry in organism.dockings),
    )


def direct_transforms(organism: Organism) -> np.ndarray:
    """DTL: rows (i, j, side_i, side_j), one for each docking."""
    row = {name: index for index, name in enumerate(organism.modules)}
    rows = [
        (
            row[entry.parent],
            row[entry.child],
            organism.kind(entry.parent).port(entry.port).side,
            organism.kind(entry.child).port(entry.child_port).side,
        )
        for entry in organism.dockings
    ]
    return np.array(rows, dtype=int).reshape(-1, 4)


def indirect_transforms(organism: Organism) -> np.ndarray:
    """IDTL: rows (i, j, i, x, x, j), nearest ancestor first (meister2012, Tab. III)."""
    parent: dict[int, int] = {}
    rows = []
    for x, j, *_ in direct_transforms(organism).tolist():
        i = parent.get(x)
        while i is not None:
            rows.append((i, j, i, x, x, j))
            i = parent.get(i)
        parent[j] = x
    return np.array(rows, dtype=int).reshape(-1, 6)


def accessibility(organism: Organism) -> np.ndarray:
    """AM: entry (i, j) is 1 when module j lies beyond module i (gutenkunst2012, 3.2)."""
    n = len(organism)
    matrix = np.zeros((n, n), dtype=np.int8)
    for i, j, *_ in direct_transforms(organism):
        matrix[:, j] = matrix[:, i]
        matrix[i, j] = 1
    return matrix
