"""Where a model's compiled routines come from: the table of dyads, or code of its own."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

import numpy as np

from modurob.compiler import dyads, fused
from modurob.compiler.jit import compile_ir
from modurob.compiler.routine import Routine
from modurob.model.frames import JointFrames


class DyadTier:
    """Routines from the table; compiles nothing once the kernels exist."""

    name = "dyads"

    def __init__(self, frames: JointFrames, gravity: np.ndarray, free_base: bool) -> None:
        self.free_base = free_base
        self.table = dyads.table_rows(frames, gravity)
        self.rough = bool(frames.viscous.any() or frames.coulomb.any())
        self._routines: dict[str, Routine] = {}

    def routine(self, name: str) -> Routine:
        """The routine of an algorithm."""
        found = self._routines.get(name)
        if found is None:
            found = self._routines[name] = self._bind(name)
        return found

    def pushed(self, name: str) -> Routine:
        """The routine that takes external wrenches."""
        return self.routine(name)

    def settled(self, name: str) -> Routine:
        """The routine that will not change any more."""
        return self.routine(name)

    def _bind(self, name: str) -> Routine:
        joints = len(self.table.parent)
        return Routine(
            dyads.library(name, self.free_base),
            dyads.ALGORITHMS[name].shape,
            joints,
            self.free_base,
            dyads.workspace_vectors(name, joints, self.free_base),
            calls=dyads.call_table(name, self.free_base, self.table),
            rows=self.table.rows,
            rough=self.rough,
        )


class FusedTier:
    """Straight-line code for one organism, compiled at once or while the table still answers."""

    name = "fused"

    def __init__(
        self, frames: JointFrames, gravity: np.ndarray, free_base: bool, background: bool
    ) -> None:
        self.frames, self.gravity, self.free_base = frames, gravity, free_base
        self.dyads = DyadTier(frames, gravity, free_base)
        self._links = frames.links()
        self._background = background
        self._routines: dict[str, Routine] = {}
        self._waiting: dict[str, Future[Routine]] = {}
        self._lock = threading.Lock()

    def routine(self, name: str) -> Routine:
        """The fused routine, or the table's while it is being compiled in the background."""
        found = self._routines.get(name)
        return self._settle(name, wait=not self._background) if found is None else found

    def settled(self, name: str) -> Routine:
        """The fused routine, waited for."""
        return self._settle(name, wait=True)

    def _settle(self, name: str, wait: bool) -> Routine:
        if name not in fused.ALGORITHMS:
            return self.dyads.routine(name)
        with self._lock:
            if name not in self._waiting:
                self._waiting[name] = _compilers().submit(self._compile, name)
            future = self._waiting[name]
        if not (wait or future.done()):
            return self.dyads.routine(name)
        self._routines[name] = future.result()
        return self._routines[name]

    def pushed(self, name: str) -> Routine:
        """The routine that takes external wrenches: only the table's does."""
        return self.dyads.routine(name)

    def _compile(self, name: str) -> Routine:
        try:
            ir = fused.module_ir(name, self._links, self.frames.sign, self.gravity, self.free_base)
        except ZeroDivisionError:  # a joint moves nothing; the table finds out when it runs
            return self.dyads.routine(name)
        joints = len(self.frames.parent)
        return Routine(
            compile_ir(ir),
            fused.ALGORITHMS[name][0],
            joints,
            self.free_base,
            fused.workspace_vectors(name, joints, self.free_base),
        )


@cache
def _compilers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="modurob-compiler")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_compilers.cache_clear)
