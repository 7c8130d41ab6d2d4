"""Lists that are sent as what differs: a click on a large body is a short message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import json
from nicegui.element import Element

NEAR = 16  # rows that may be gone at one place and are not sent anew behind it


class Sender:
    """Calls a method of a component with lists, of which only what differs from before is sent.

    `Received` in ``web/bus.js`` puts them together. They are sent as JSON text, which a browser
    reads faster than a script.
    """

    def __init__(self, element: Element, method: str) -> None:
        self._element, self._method = element, method
        self._had: Mapping[str, Sequence[Any]] = {}
        self._count = 0

    def send(self, lists: Mapping[str, Sequence[Any]], **rest: Any) -> None:
        """The lists as they are now, and what is sent as it is."""
        found = {name: pieces(self._had.get(name, ()), now) for name, now in lists.items()}
        text = json.dumps({"number": self._count, "lists": found, "rest": rest})
        self._had, self._count = lists, self._count + 1
        self._element.run_method(self._method, text)


def pieces(before: Sequence[Any], now: Sequence[Any]) -> list[dict[str, Any]]:
    """A list as ``{"old": (begin, end)}``, which are rows of that before, and ``{"new": rows}``."""
    found: list[dict[str, Any]] = []
    i = j = 0
    while j < len(now):
        at, begin = _near(before, i, now[j]), j
        if at is None:
            while j < len(now) and _near(before, i, now[j]) is None:
                j += 1
            found.append({"new": now[begin:j]})
        else:
            i = at
            while i < len(before) and j < len(now) and before[i] == now[j]:
                i, j = i + 1, j + 1
            found.append({"old": (at, i)})
    return found


def _near(before: Sequence[Any], begin: int, row: Any) -> int | None:
    """Index of a row, if soon after the begin."""
    for k in range(begin, min(begin + NEAR, len(before))):
        if before[k] == row:
            return k
    return None
