"""Looking at a running simulation from outside: progress, and a way to stop it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from modurob.errors import StateError

OFTEN = 0.05  # [s] between two looks at the clock's progress; a bar need not be smoother


class Canceled(Exception):
    """Ends a run because somebody asked for it."""


class Watch:
    """Tells how far a run is, and asks whether to go on.

    Args:
        duration: Of the run. [s]
        progress: True for a bar on standard error, or a function of the fraction that is done.
        cancel: A function without arguments, or a `threading.Event`; True ends the run.
    """

    def __init__(self, duration: float, progress: Any, cancel: Any) -> None:
        if not (isinstance(progress, bool) or callable(progress)):
            raise StateError(f"progress is True, False or a function, got {progress!r}")
        asked = getattr(cancel, "is_set", cancel)
        if not (asked is None or callable(asked)):
            raise StateError(f"cancel is a function or a threading.Event, got {cancel!r}")
        self._duration, self._cancel, self._next = duration, asked, 0.0
        self._tell: Callable[[float], Any] | None = progress if callable(progress) else None
        self._bar = progress is True
        self._open = ExitStack()

    def __enter__(self) -> Watch:
        if self._bar:
            self._tell = self._open.enter_context(_Bar(self._duration))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def __call__(self, t: float) -> None:
        """Called after each step; raises `Canceled`."""
        if self._cancel is not None and self._cancel():
            raise Canceled
        if self._tell is not None:
            now = time.monotonic()
            if now >= self._next or t >= self._duration:
                self._next = now + OFTEN
                self._tell(min(1.0, t / self._duration))


class _Bar:
    """A bar with the simulated time, on standard error, gone when it is done."""

    def __init__(self, duration: float) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._duration = duration
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("simulating"),
            BarColumn(),
            TextColumn("{task.completed:.2f} of {task.total:g} s"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,  # nothing in a log file
        )
        self._task = self._progress.add_task("simulating", total=duration)

    def __enter__(self) -> Callable[[float], None]:
        self._progress.start()
        return lambda done: self._progress.update(self._task, completed=done * self._duration)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
