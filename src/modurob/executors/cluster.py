"""Workers of a Dask cluster as an executor."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from modurob.checks import positive
from modurob.errors import StateError
from modurob.executors.base import ClosedByBlock, Item, Progress, Result, pickled, shortened

MOST_REPORTS = 100  # of progress, each with the results of a part of the items
ADDRESS = r"((tcp|tls|ws|wss)://)?[^\s/]+:\d+|inproc://\S+"
ANSWER_S = 5.0  # for a scheduler to answer, and for its first worker


class DaskExecutor(ClosedByBlock):
    """Workers of a Dask cluster, reached through its scheduler.

    They need the same version of modurob as this process. Functions and items are pickled, as for
    `LocalExecutor`; exceptions are raised in the same order.

    Args:
        address: Of the scheduler, such as ``tcp://10.0.0.5:8786``.
        wait: For the scheduler to answer, and for its first worker to come. [s]
        resources: Of a worker that may compute an item, such as ``{"GPU": 1}`` for workers that
            were started with ``dask worker --resources GPU=1``.
    """

    def __init__(
        self, address: str, *, wait: float = ANSWER_S, resources: Mapping[str, float] | None = None
    ) -> None:
        try:
            import distributed
        except ImportError:
            raise StateError("a cluster needs Dask: pip install 'modurob[cluster]'") from None
        if not isinstance(address, str) or not re.fullmatch(ADDRESS, address):
            raise StateError(
                f"the address of a Dask scheduler is such as tcp://127.0.0.1:8786, got {address!r}"
            )
        self.address, self._resources = address, dict(resources or {})
        seconds = positive("wait", wait, "seconds")
        try:
            self._client: Any = distributed.Client(address, timeout=seconds, set_as_default=False)
        except (OSError, ValueError, MemoryError):  # the last: what answers is no scheduler
            raise StateError(
                f"no Dask scheduler answers at {address} within {seconds:g} s: start one with "
                "`dask scheduler`, which prints its address"
            ) from None
        try:
            self._client.wait_for_workers(1, timeout=seconds)
        except TimeoutError:
            self.close()
            raise StateError(
                f"the Dask scheduler at {address} has no worker after {seconds:g} s: start one "
                f"with `dask worker {address}`"
            ) from None

    def close(self) -> None:
        """Leave the cluster, which goes on."""
        self._client.close()

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        progress: Progress | None = None,
    ) -> list[Result]:
        """Return ``[function(item) for item in items]``, computed by the workers.

        Args:
            function: Of one item.
            items: Each of ten milliseconds of work or more.
            progress: Called with the fraction done.

        Raises:
            StateError: Workers of another version, an item that ended several workers, or a
                scheduler that ended.
        """
        import distributed

        ended = f"the Dask scheduler at {self.address} ended before the work was done"
        try:
            self._check_workers()
        except OSError:  # it ended since the last work
            raise StateError(ended) from None
        items = list(items)
        options = {"resources": self._resources} if self._resources else {}
        # unpickled in `_computed`: a worker that cannot read a task of Dask's ends
        messages = [pickled(f"item {k}", (function, item)) for k, item in enumerate(items)]
        futures = self._client.map(_computed, messages, pure=False, **options)
        results: list[Result] = []
        try:
            for first in range(0, len(items), size := -(-len(items) // MOST_REPORTS) or 1):
                self._gather(futures[first : first + size], results)
                if progress is not None:
                    progress(len(results) / len(items))
        except distributed.KilledWorker:
            k = len(results)
            raise StateError(
                f"item {k} ended several workers, perhaps out of memory: {shortened(items[k])}"
            ) from None
        except ModuleNotFoundError as error:
            raise StateError(
                f"a worker has no module {error.name!r}: install it for all workers, or start them "
                "with PYTHONPATH"
            ) from None
        except CancelledError:
            raise StateError(ended) from None
        finally:
            self._client.cancel(futures[len(results) :])
        return results

    def _gather(self, futures: list[Any], results: list[Any]) -> None:
        """Append results; an exception is that of the first item, not the first in time."""
        try:
            results += self._client.gather(futures)
        except Exception:
            for future in futures:
                results.append(future.result())

    def _check_workers(self) -> None:
        """Refuse workers with another version of modurob, and resources that none has."""
        ours, found = _version(), self._client.run(version, "modurob", on_error="return")
        try:
            found[f"{self.address} (scheduler)"] = self._client.run_on_scheduler(version, "modurob")
        except PackageNotFoundError as error:
            found[f"{self.address} (scheduler)"] = error
        for place, theirs in found.items():
            if isinstance(theirs, PackageNotFoundError):
                theirs = None
            elif not isinstance(theirs, str):  # the worker ended in this moment
                continue
            if theirs != ours:
                raise StateError(
                    f"{place} has {_named(theirs)}, this process {_named(ours)}: install the same "
                    "version on the scheduler and on all workers"
                )
        if self._resources and not self._client.run_on_scheduler(_offered, self._resources):
            raise StateError(
                f"no worker at {self.address} offers {self._resources}: start one with "
                f"`dask worker {self.address} --resources NAME=AMOUNT`"
            )


def _computed(message: bytes) -> Any:
    """Result of a pickled function and its item; runs in a worker."""
    function, item = pickle.loads(message)
    return function(item)


def _offered(resources: dict[str, float], dask_scheduler: Any = None) -> bool:
    """Return True if some worker has these resources; runs in the scheduler."""
    offers = [worker.resources for worker in dask_scheduler.workers.values()]
    return any(all(has.get(name, 0) >= n for name, n in resources.items()) for has in offers)


def _version() -> str | None:
    try:
        return version("modurob")
    except PackageNotFoundError:  # a checkout that is only on the path
        return None


def _named(version: str | None) -> str:
    return "no modurob" if version is None else f"modurob {version}"
