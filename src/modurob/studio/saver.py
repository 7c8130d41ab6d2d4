"""Writes the latest state in the background, so that a click never waits for a disk."""

from __future__ import annotations

import threading
from collections.abc import Callable

from modurob import ModurobError

FLUSH_S = 30.0  # at most: a disk that does not answer must not hold the studio
LATER_S = 0.05  # before a write: the page that shows the edit goes first
PAUSE_S = 0.3  # after a write: a slider that moves need not be written forty times a second


class Saver:
    """Calls `write` with the latest content; those in between may be skipped, never the last.

    Attributes:
        error: Why the last write failed; empty when it did not.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write, self.error = write, ""
        self._latest: Callable[[], bytes] | None = None
        self._waiting = self._writing = self._hurried = False
        self._worker: threading.Thread | None = None
        self._changed = threading.Condition()

    def submit(self, make: Callable[[], bytes]) -> None:
        """Have `make()` written soon."""
        with self._changed:
            self._latest, self._waiting = make, True
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="studio-saver", daemon=True)
                self._worker.start()

    def retry(self) -> None:
        """Try again what could not be written."""
        if self.error and self.idle and self._latest is not None:
            self.submit(self._latest)

    def _work(self) -> None:
        while True:
            with self._changed:
                if self._waiting:
                    self._changed.wait_for(lambda: self._hurried, LATER_S)
                make = self._latest
                if not self._waiting or make is None:
                    self._worker = None
                    return
                self._waiting, self._writing = False, True
            error = self._attempt(make)
            with self._changed:
                self.error, self._writing = error, False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._hurried, PAUSE_S)

    def _attempt(self, make: Callable[[], bytes]) -> str:
        """Write; returns why it did not work."""
        try:
            self._write(make())
        except ModurobError as error:
            return str(error)
        except Exception as error:  # whatever it is, the next write must find a saver that works
            return f"the project could not be written ({type(error).__name__}: {error})"
        return ""

    @property
    def idle(self) -> bool:
        """True if everything was written, or tried to."""
        return not (self._waiting or self._writing)

    def flush(self) -> None:
        """Wait until it is idle; after `FLUSH_S` seconds `error` says that it is not."""
        with self._changed:
            self._hurried = True
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self.idle, FLUSH_S):
                self.error = f"not written within {FLUSH_S:g} s: the disk does not answer"
            self._hurried = False
