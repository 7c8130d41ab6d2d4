"""Work in a process of its own: progress by a pipe, canceled by ending the process.

A worker stays after its first task, so that the next one finds everything loaded and compiled.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import math
import multiprocessing
import signal
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from modurob import ModurobError, StateError

CONTEXT = multiprocessing.get_context("spawn")
POLL_S = 0.03  # between two looks into the pipe
LOADED = ("modurob.studio.runs", "modurob.studio.exports")  # what tasks need, before they come
REPORT_S = 0.1  # between two reports of progress; longer than POLL_S, so that none queue up
END_S = 2.0  # for a process to end by itself

Progress = Callable[[float], Any]
Task = Callable[..., Any]


class JobCanceled(Exception):
    """The work was canceled."""


class Worker:
    """One process, one task at a time.

    Tasks are functions of a module, called as ``task(*args, progress=...)`` in the process.
    """

    def __init__(self) -> None:
        self._process: Any = None
        self._pipe: Connection | None = None
        self._at_work: Connection | None = None  # the pipe of the task that is being computed

    @property
    def busy(self) -> bool:
        """True if something is being computed."""
        return self._at_work is not None

    def prepare(self) -> None:
        """Start the process now, so that the first task need not wait for it."""
        self._started()

    async def run(self, task: Task, *args: Any, progress: Progress | None = None) -> Any:
        """The task's result; `JobCanceled`, or a `ModurobError` as it was raised there."""
        if self.busy:
            raise StateError("something else is being computed: wait for it, or cancel it first")
        pipe = self._at_work = self._started()
        try:
            await asyncio.to_thread(pipe.send, (task, args))  # may wait until the process listens
            return await self._answer(pipe, progress)
        except (EOFError, OSError):
            if self._pipe is not pipe:
                raise JobCanceled from None
            self.close()
            raise StateError(
                "the process that computed this ended: the machine may be out of memory. Try a "
                "shorter run or a smaller body"
            ) from None
        finally:
            if self._at_work is pipe:
                self._at_work = None

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
            await asyncio.sleep(POLL_S)  # also when there is much to read: others have work, too
            if self._pipe is not pipe:
                raise JobCanceled
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
        self._process = self._pipe = self._at_work = None
        if process is not None and process.is_alive():
            process.terminate()
            process.join(END_S)
            if process.is_alive():
                process.kill()
        if pipe is not None:
            pipe.close()


class _ProgressSender:
    """Sends progress through the pipe, not too often."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._last = pipe, -math.inf

    def __call__(self, done: float) -> None:
        now = time.monotonic()
        if now - self._last >= REPORT_S or done >= 1.0:
            self._last = now
            try:
                self._pipe.send(("progress", float(done)))
            except OSError:  # the server is gone, and nothing else asks for the result
                raise SystemExit from None


def _serve(pipe: Connection) -> None:
    """Answer tasks until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the server, which ends us
    for name in LOADED:
        importlib.import_module(name)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            task, args = pipe.recv()
            try:
                result = task(*args, progress=_ProgressSender(pipe))
            except ModurobError as error:
                pipe.send(("error", StateError(str(error))))
            except Exception as error:
                traceback.print_exc()
                words = f"{type(error).__name__}: {error}"
                pipe.send(("error", StateError(f"this could not be computed ({words})")))
            else:
                pipe.send(("done", result))
