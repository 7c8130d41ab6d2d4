"""Work in a process of its own: progress by a pipe, cancelled by ending the process.

A worker stays after its first task, so that the next one finds everything loaded and compiled.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import signal
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from modurob import ModurobError, StateError

CONTEXT = multiprocessing.get_context("spawn")
LOOK = 0.03  # [s] between two looks into the pipe
TELL = 0.1  # [s] between two words about progress; longer than a look, so that none queue up
PATIENCE = 2.0  # [s] for a process to end when told

Progress = Callable[[float], Any]
Task = Callable[..., Any]


class Cancelled(Exception):
    """Somebody ended the work."""


class Worker:
    """One process, one task at a time.

    Tasks are functions of a module, called as ``task(*args, progress=...)`` in the process.
    """

    def __init__(self) -> None:
        self._process: Any = None
        self._pipe: Connection | None = None
        self.busy = False

    async def run(self, task: Task, *args: Any, progress: Progress | None = None) -> Any:
        """The task's result; `Cancelled`, or a `ModurobError` as it was raised there."""
        if self.busy:
            raise StateError("something else is being computed: wait for it, or cancel it first")
        self.busy = True
        try:
            pipe = self._started()
            pipe.send((task, args))
            return await self._answer(pipe, progress)
        except (EOFError, BrokenPipeError, ConnectionResetError, OSError):
            self.close()
            raise Cancelled from None
        finally:
            self.busy = False

    def _started(self) -> Connection:
        if self._process is None or not self._process.is_alive() or self._pipe is None:
            self.close()
            self._pipe, theirs = CONTEXT.Pipe()
            self._process = CONTEXT.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        return self._pipe

    async def _answer(self, pipe: Connection, progress: Progress | None) -> Any:
        while True:
            await asyncio.sleep(LOOK)  # also when there is much to read: others have work, too
            if self._pipe is not pipe:
                raise Cancelled
            if not pipe.poll():
                continue
            kind, value = pipe.recv()
            if kind == "progress":
                if progress is not None:
                    progress(value)
            elif kind == "error":
                raise value
            else:
                return value

    def cancel(self) -> None:
        """End the work, if there is any; the next task starts a new process."""
        if self.busy:
            self.close()

    def close(self) -> None:
        """End the process."""
        process, pipe = self._process, self._pipe
        self._process = self._pipe = None
        if process is not None and process.is_alive():
            process.terminate()
            process.join(PATIENCE)
            if process.is_alive():
                process.kill()
        if pipe is not None:
            pipe.close()


class _Teller:
    """Passes progress on, as often as somebody can look at it."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._last = pipe, -TELL

    def __call__(self, done: float) -> None:
        now = time.monotonic()
        if now - self._last >= TELL or done >= 1.0:
            self._last = now
            self._pipe.send(("progress", float(done)))


def _serve(pipe: Connection) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the server, which ends us
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            task, args = pipe.recv()
            try:
                told = task(*args, progress=_Teller(pipe))
            except ModurobError as error:
                pipe.send(("error", StateError(str(error))))
            except Exception as error:
                traceback.print_exc()
                words = f"{type(error).__name__}: {error}"
                pipe.send(("error", StateError(f"this could not be computed ({words})")))
            else:
                pipe.send(("done", told))
