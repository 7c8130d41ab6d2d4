"""Executors of independent work: processes of this machine, or the workers of a Dask cluster.

Both return results in the order of the items. A worker that ends in the middle costs time, no
result: its item runs again elsewhere. If the function depends on its item alone, neither the number
of workers nor their end changes a bit of the results.
"""

from modurob.executors.base import Executor
from modurob.executors.cluster import DaskExecutor
from modurob.executors.local import LocalExecutor

__all__ = ["DaskExecutor", "Executor", "LocalExecutor"]
