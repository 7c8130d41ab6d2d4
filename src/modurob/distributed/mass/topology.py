"""Who is plugged to whom, as the network sees it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from modurob.errors import DockingError
from modurob.organism import Organism

End = tuple[str, str]  # (module, port)
Pair = tuple[End, End]


def links_of(organism: Organism) -> list[Pair]:
    """The dockings of an organism as pairs of ends."""
    return [
        ((entry.parent, str(entry.port)), (entry.child, str(entry.child_port)))
        for entry in organism.dockings
    ]


def turns_of(organism: Organism) -> dict[str, dict[str, int]]:
    """For each module, the turn of the docking at each connector that holds one. [deg]"""
    turns: dict[str, dict[str, int]] = {name: {} for name in organism.modules}
    for entry in organism.dockings:
        turns[entry.parent][str(entry.port)] = entry.turn
        turns[entry.child][str(entry.child_port)] = entry.turn
    return turns


def check_tree(links: Iterable[Pair]) -> None:
    """Links that close a loop are an error that names it: sums would count modules twice."""
    neighbors: dict[str, list[str]] = {}
    for (a, port_a), (b, port_b) in links:
        path = _path(neighbors, a, b)
        if path is not None:
            raise DockingError(
                f"the link from port {port_a} of '{a}' to port {port_b} of '{b}' closes the loop "
                f"{' - '.join([*path, a])}; the mass network needs a tree: undock one of them"
            )
        neighbors.setdefault(a, []).append(b)
        neighbors.setdefault(b, []).append(a)


def _path(neighbors: Mapping[str, Sequence[str]], start: str, end: str) -> list[str] | None:
    """Modules from one to another, or None."""
    before, front = {start: start}, deque([start])
    while front:
        module = front.popleft()
        if module == end:
            path = [end]
            while path[-1] != start:
                path.append(before[path[-1]])
            return path[::-1]
        for neighbor in neighbors.get(module, ()):
            if neighbor not in before:
                before[neighbor] = module
                front.append(neighbor)
    return None


def diameter(organism: Organism) -> int:
    """Dockings on the longest path between two modules: rounds until all know everything."""
    neighbors: dict[str, list[str]] = {name: [] for name in organism.modules}
    for entry in organism.dockings:
        neighbors[entry.parent].append(entry.child)
        neighbors[entry.child].append(entry.parent)

    def farthest(start: str) -> tuple[str, int]:
        distance, front = {start: 0}, deque([start])
        module = start
        while front:
            module = front.popleft()
            for neighbor in neighbors[module]:
                if neighbor not in distance:
                    distance[neighbor] = distance[module] + 1
                    front.append(neighbor)
        return module, distance[module]

    return farthest(farthest(organism.base)[0])[1]
