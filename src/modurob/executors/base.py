"""Contract of executors, and the loop that they replace."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Protocol, Self, TypeVar

from modurob.errors import StateError, one_line

LONGEST_ITEM = 200  # characters of an item in an error

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[float], object]


class Executor(Protocol):
    """Anything that maps a function over items, results in the order of the items."""

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        progress: Progress | None = None,
    ) -> list[Result]:
        """Return ``[function(item) for item in items]``; `progress` gets the fraction done."""
        ...


class ClosedByBlock(ABC):
    """An executor that a ``with`` block closes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """End what was started for the executor."""


def looped(
    function: Callable[[Item], Result], items: list[Item], progress: Progress | None
) -> list[Result]:
    """Return the results of a plain loop."""
    results = []
    for item in items:
        results.append(function(item))
        if progress is not None:
            progress(len(results) / len(items))
    return results


def shortened(item: object) -> str:
    """The item in an error."""
    return one_line(repr(item))[:LONGEST_ITEM]


def pickled(name: str, value: object) -> bytes:
    """The value for another process, or an error that names it."""
    try:
        return pickle.dumps(value)
    except Exception as error:
        raise StateError(
            f"{name} cannot be passed between processes: {one_line(str(error))}. Functions and "
            "classes must stand in a module, not inside a function"
        ) from None
