"""Mass matrix: composite bodies, then one wrench walked inward for each joint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from modurob.equations.inverse_dynamics import Load, inward
from modurob.equations.links import Link, Links, joint_pose
from modurob.equations.vectors import Mat, Vec, hat, symmetric, turned_symmetric


class Composite(NamedTuple):
    """Moments of a link with everything beyond it."""

    mass: Any
    moment: Vec
    second: Mat


def to_parent(R: Mat, p: Vec, body: Composite) -> Composite:
    """The moments about the parent's origin: r -> R r + p."""
    m, h, S = body.mass, R @ body.moment, turned_symmetric(R, body.second)
    g = h + p * m  # first moment about the new origin

    def moved(i: int, j: int) -> Any:
        return S[i, j] + h[i] * p[j] + p[i] * g[j]

    return Composite(m, g, symmetric(moved))


def added(one: Composite, other: Composite) -> Composite:
    """Two bodies moving as one."""
    second = symmetric(lambda i, j: one.second[i, j] + other.second[i, j])
    return Composite(one.mass + other.mass, one.moment + other.moment, second)


def unit_load(link: Link, body: Composite) -> Load:
    """The wrench that accelerates everything beyond a joint by one unit along it."""
    h, S = body.moment, body.second
    if link.prismatic:
        return Load(Vec([body.mass, 0, 0]), Vec([0, h[2], -h[1]]))
    return Load(Vec([0, -h[2], h[1]]), Vec([S[1, 1] + S[2, 2], -S[0, 1], -S[0, 2]]))


def along(link: Link, load: Load) -> Any:
    """The component of a wrench that the joint of `link` carries."""
    return (load.f if link.prismatic else load.n)[0]


def mass_column(
    links: Links, poses: Sequence[tuple[Mat, Vec]], i: int, body: Composite
) -> tuple[dict[int, Any], Load]:
    """Entries of M for the joint of link i, by link: its own and those on the way to the base.

    Args:
        body: Link i with everything beyond it.

    Returns:
        The entries, innermost last, and the wrench on that last link.
    """
    load = unit_load(links[i], body)
    entries = {i: along(links[i], load)}
    while links[i].parent > 0:
        load, i = inward(*poses[i - 1], load), links[i].parent
        entries[i] = along(links[i], load)
    return entries, load


def mass_matrix(links: Links, q: Sequence[Any], free_base: bool = False) -> list[list[Any]]:
    """Rows of M(q); with a free base its six velocities come first."""
    poses = [joint_pose(link, qi) for link, qi in zip(links[1:], q, strict=True)]
    bodies = [Composite(link.mass, link.moment, link.second) for link in links]
    for i in range(len(links) - 1, 0, -1):
        parent = links[i].parent
        bodies[parent] = added(bodies[parent], to_parent(*poses[i - 1], bodies[i]))
    offset = 6 if free_base else 0
    nv = len(poses) + offset
    M: list[list[Any]] = [[0] * nv for _ in range(nv)]
    for i in range(1, len(links)):
        row = offset + i - 1
        entries, load = mass_column(links, poses, i, bodies[i])
        for k, value in entries.items():
            M[row][offset + k - 1] = M[offset + k - 1][row] = value
        if free_base:
            load = inward(*poses[min(entries) - 1], load)
            for column, value in enumerate((*load.f, *load.n)):
                M[row][column] = M[column][row] = value
    if free_base:
        for i, line in enumerate(base_inertia(bodies[0])):
            M[i][:6] = line
    return M


def solved(
    M: Sequence[Sequence[Any]], right: Sequence[Sequence[Any]], above: Sequence[int]
) -> list[list[Any]]:
    """Rows of X in ``M X = -right``.

    Eliminated from the tips inward, M fills nothing in: what is zero because two joints lie on
    different branches stays zero (Featherstone 2005).

    Args:
        above: The next column on the way to the base, -1 at its end.
    """
    rows, X = [list(row) for row in M], [list(row) for row in right]

    def way(column: int) -> Iterator[int]:
        while (column := above[column]) >= 0:
            yield column

    for k in range(len(rows) - 1, -1, -1):
        for i in way(k):
            factor = rows[i][k] / rows[k][k]
            for j in (i, *way(i)):
                rows[i][j] = rows[j][i] = rows[i][j] - factor * rows[k][j]
            X[i] = [x - factor * y for x, y in zip(X[i], X[k], strict=True)]
    for i, row in enumerate(rows):
        for k in way(i):
            X[i] = [x + row[k] * y for x, y in zip(X[i], X[k], strict=True)]
        X[i] = [-x / row[i] for x in X[i]]
    return X


def base_inertia(body: Composite) -> list[list[Any]]:
    """6x6 inertia of the whole organism about the base, linear part first."""
    m, S = body.mass, body.second
    H = hat(body.moment)
    trace = S[0, 0] + S[1, 1] + S[2, 2]
    rows = [
        [*(m if i == j else 0 for j in range(3)), *(-H[i, j] for j in range(3))] for i in range(3)
    ]
    for i in range(3):
        turning = (trace - S[i, i] if i == j else -S[i, j] for j in range(3))
        rows.append([*(H[i, j] for j in range(3)), *turning])
    return rows
