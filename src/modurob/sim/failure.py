"""When a simulation cannot go on: an error that keeps what was computed until then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from modurob.errors import StateError

if TYPE_CHECKING:
    from modurob.sim.trajectory import Trajectory


class Stopped(Exception):
    """Ends a run from inside; `simulate` turns it into a `SimulationError`."""

    def __init__(self, time: float, reason: str) -> None:
        super().__init__(reason)
        self.time, self.reason = time, reason


def called(time: float, what: str, function: Callable[..., Any], *given: Any) -> Any:
    """The answer of a function that users gave; its exceptions end the run, with what it has."""
    try:
        return function(*given)
    except Stopped:
        raise
    except Exception as error:
        raise Stopped(time, f"{what} raised {type(error).__name__}: {error}") from error


class SimulationError(StateError):
    """A run that stopped early: it diverged, its controller failed, or a docking was missed.

    Attributes:
        time: When it stopped. [s]
        trajectory: Everything until then.
    """

    def __init__(self, message: str, time: float, trajectory: Trajectory) -> None:
        super().__init__(message)
        self.time, self.trajectory = time, trajectory

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.time, self.trajectory)
