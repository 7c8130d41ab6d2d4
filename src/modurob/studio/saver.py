"""Writes the latest state in the background, so that a click never waits for a disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from modurob import ModurobError

Document = dict[str, Any]


class Saver:
    """Calls `write` with the latest document; those in between may be skipped, never the last.

    Attributes:
        error: Why the last write failed; empty when it did not.
    """

    def __init__(self, write: Callable[[Document], None]) -> None:
        self._write, self.error = write, ""
        self._waiting: Callable[[], Document] | None = None
        self._busy = False
        self._changed = threading.Condition()

    def submit(self, make: Callable[[], Document]) -> None:
        """Have `make()` written soon."""
        with self._changed:
            self._waiting = make
            if not self._busy:
                self._busy = True
                threading.Thread(target=self._work, name="studio-saver", daemon=False).start()

    def _work(self) -> None:
        while True:
            with self._changed:
                make, self._waiting = self._waiting, None
                if make is None:
                    self._busy = False
                    self._changed.notify_all()
                    return
            try:
                self._write(make())
                self.error = ""
            except ModurobError as error:
                self.error = str(error)

    @property
    def idle(self) -> bool:
        """Whether everything is written."""
        return not self._busy

    def flush(self) -> None:
        """Wait until everything is written."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy)
