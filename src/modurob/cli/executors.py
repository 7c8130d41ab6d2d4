"""Options of commands whose work can be spread: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import click

from modurob import StateError
from modurob.executors import DaskExecutor, Executor, LocalExecutor
from modurob.executors.local import MOST_WORKERS


def executor_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--jobs`` and ``--cluster``, which `chosen_executor` takes."""
    jobs = click.option("--jobs", type=click.IntRange(1, MOST_WORKERS), metavar="N",
                        help="Processes to use on this machine.  [default: 1]")  # fmt: skip
    cluster = click.option("--cluster", metavar="ADDRESS",
                           help="Dask scheduler, such as tcp://127.0.0.1:8786.")  # fmt: skip
    return jobs(cluster(command))


@contextlib.contextmanager
def chosen_executor(
    jobs: int | None, cluster: str | None, target: str = "cpu"
) -> Iterator[Executor]:
    """The executor of these options, which ends with the block; for ``cuda``, workers with GPUs."""
    if jobs is not None and cluster is not None:
        raise StateError("give --jobs or --cluster, only one of them")
    needs = {"GPU": 1} if target == "cuda" else None
    chosen = LocalExecutor(jobs or 1) if cluster is None else DaskExecutor(cluster, resources=needs)
    with chosen as executor:
        yield executor
