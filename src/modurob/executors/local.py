"""Processes of this machine as an executor."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import connection, resource_tracker
from types import ModuleType
from typing import Any

from modurob.checks import whole
from modurob.errors import ModurobError, StateError, one_line
from modurob.executors.base import ClosedByBlock, Item, Progress, Result, looped, pickled, shortened

CONTEXT = multiprocessing.get_context("spawn")  # compiled kernels and threads cannot be forked
MOST_WORKERS = 1000  # processes of one machine
SCRIPT = "__main__"
MOST_LOSSES = 3  # ends of a worker with the same item, until the item is blamed


class LocalExecutor(ClosedByBlock):
    """Processes of this machine, started when first needed and kept until `close`.

    An exception of the function is raised as by a plain loop: that of the first item that has one.
    Functions and items are pickled. A function stands in a module, or in a script whose own work is
    below ``if __name__ == "__main__":``, because the processes import that script.

    Args:
        workers: How many processes; with 1 the calling process computes and none is started.

    Examples:
        >>> from modurob.executors import LocalExecutor
        >>> with LocalExecutor(2) as executor:
        ...     executor.map(abs, [-1, 2, -3])
        [1, 2, 3]
    """

    def __init__(self, workers: int) -> None:
        self.workers = whole("workers", workers, 1, MOST_WORKERS)
        self._pool: list[_Worker] = []

    def close(self) -> None:
        """End the processes; a later `map` starts new ones."""
        pool, self._pool = self._pool, []
        for worker in pool:
            worker.process.kill()
        for worker in pool:
            worker.process.join()
            worker.pipe.close()

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        progress: Progress | None = None,
    ) -> list[Result]:
        """Return ``[function(item) for item in items]``, computed by the processes.

        Args:
            function: Of one item.
            items: Each of some milliseconds of work or more; one is handed out at a time.
            progress: Called with the fraction done.

        Raises:
            StateError: An item ended its process three times, or something cannot be pickled.
        """
        items = list(items)
        if self.workers == 1:
            return looped(function, items, progress)
        work = _Work(pickled("the function", function), items, progress)
        if work.in_script and not all(worker.has_script for worker in self._pool):
            self.close()
        try:
            for _ in range(len(self._pool), min(self.workers, len(items))):
                self._pool.append(_Worker(work.in_script))
            while busy := self._hand_out(work):
                for pipe in connection.wait([worker.pipe for worker in busy]):
                    self._take(next(each for each in busy if each.pipe is pipe), work)
        except BaseException:
            self.close()  # also after Ctrl+C: their results are not needed
            raise
        if work.errors:
            raise work.errors[min(work.errors)]
        return [work.results[k] for k in range(len(items))]

    def _hand_out(self, work: _Work) -> list[_Worker]:
        """Give items to the processes that wait for one; return those that will answer."""
        for worker in self._pool:
            if worker.ready and worker.index is None and work.more:
                worker.index = k = work.waiting.popleft()
                function = None if worker.function is work.function else work.function
                message = pickled(f"item {k}", (function, work.items[k]))
                worker.function = work.function
                with contextlib.suppress(OSError):  # the process has ended: `_take` finds out
                    worker.pipe.send_bytes(message)
        return [w for w in self._pool if w.index is not None or (work.more and not w.ready)]

    def _take(self, worker: _Worker, work: _Work) -> None:
        """Take the answer of a process, or start another one in place of one that has ended."""
        try:
            answer = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            worker.pipe.close()
            work.lose(worker)
            self._pool[self._pool.index(worker)] = _Worker(worker.has_script)
            return
        if worker.ready:
            work.take(worker, *answer)
        worker.ready, worker.index = True, None


class _Worker:
    """A process, and the work that it has. It ignores Ctrl+C, which is for this process.

    Args:
        has_script: Import the script that is run, which must have a guard: for functions in it.
    """

    def __init__(self, has_script: bool) -> None:
        self.has_script = has_script
        self.ready = False  # it has loaded its modules
        self.index: int | None = None  # of the item that it computes
        self.function: bytes | None = None  # the last one that was sent
        self.pipe, theirs = CONTEXT.Pipe()
        self.process: Any = CONTEXT.Process(target=_serve, args=(theirs,), daemon=True)
        script = sys.modules[SCRIPT]
        with _interrupts_blocked():
            try:
                if not has_script:
                    sys.modules[SCRIPT] = ModuleType(SCRIPT)
                self.process.start()
            finally:
                sys.modules[SCRIPT] = script
        theirs.close()


class _Work:
    """One call of `map`: what is left to do, and what came back."""

    def __init__(self, function: bytes, items: list[Any], progress: Progress | None) -> None:
        self.function, self.items, self.progress = function, items, progress
        self.in_script = SCRIPT.encode() in function
        self.waiting = deque(range(len(items)))
        self.results: dict[int, Any] = {}
        self.errors: dict[int, Exception] = {}
        self.losses: Counter[int | None] = Counter()  # None: before the first item

    @property
    def more(self) -> bool:
        """True if items may be handed out; they go in order, so the first error is a loop's."""
        return bool(self.waiting) and not self.errors

    def take(self, worker: _Worker, succeeded: bool, value: Any) -> None:
        """Keep an answer."""
        assert worker.index is not None
        (self.results if succeeded else self.errors)[worker.index] = value
        if self.progress is not None and succeeded:
            self.progress(len(self.results) / len(self.items))

    def lose(self, worker: _Worker) -> None:
        """Put the item of a process that ended back in front, unless it did so too often."""
        k, code = worker.index, worker.process.exitcode
        self.losses[k] += 1
        if k is None and code > 0:
            raise StateError(
                f"worker processes do not start (exit code {code}): a script with a function for "
                'them must have its own work below `if __name__ == "__main__":`'
            )
        if self.losses[k] >= MOST_LOSSES:
            how = f"signal {-code}, perhaps out of memory" if code < 0 else f"exit code {code}"
            what = "start of a worker" if k is None else f"item {k} ({shortened(self.items[k])})"
            raise StateError(f"{what} ended {MOST_LOSSES} processes: {how}")
        if k is not None:
            self.waiting.appendleft(k)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT in this thread; processes that are started inherit that."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # its start would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: connection.Connection) -> None:
    """Answer items in a worker process until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    function: Any = None
    with contextlib.suppress(EOFError, OSError):
        pipe.send(None)  # ready
        while True:
            message = pipe.recv_bytes()
            try:
                code, item = pickle.loads(message)
                function = function if code is None else pickle.loads(code)
                answer = pickled("the result", (True, function(item)))
            except Exception as error:
                answer = pickle.dumps((False, _portable(error)))
            pipe.send_bytes(answer)


def _end_with_parent() -> None:
    """End this process when the one that started it has ended, however that came about."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _portable(error: Exception) -> Exception:
    """The error itself, with its traceback as a note, or its words if it cannot be pickled."""
    if not isinstance(error, ModurobError):
        error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return StateError(one_line(f"{type(error).__name__}: {error}"))
    return error
