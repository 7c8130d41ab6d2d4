"""Sources of a model's compiled routines: the table of dyads, or code of its own."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, cached_property

import numpy as np

from modurob.compiler import dyads, fused
from modurob.compiler.jit import compile_ir
from modurob.compiler.routine import Routine
from modurob.equations.passes import Quantity
from modurob.equations.quantities import QUANTITIES
from modurob.model import Model


class DyadTier:
    """Routines from the table; compiles nothing once the kernels exist."""

    name = "dyads"

    def __init__(self, model: Model) -> None:
        self.model = model
        passive = (model.viscous, model.coulomb, model.stiffness)
        self.has_friction = any(bool(array.any()) for array in passive)
        self._routines: dict[str, Routine] = {}

    @cached_property
    def _near_table(self) -> dyads.Table:
        return dyads.table_rows(self.model._frames, self.model.gravity)

    @cached_property
    def _placed_table(self) -> dyads.Table:
        return dyads.table_rows(self.model._placed_frames, self.model.gravity)

    def routine(self, name: str) -> Routine:
        """The routine of an algorithm."""
        found = self._routines.get(name)
        if found is None:
            found = self._routines[name] = self._bind(QUANTITIES[name])
        return found

    def with_external(self, name: str) -> Routine:
        """The routine that takes external wrenches."""
        return self.routine(name)

    def ready(self, name: str) -> Routine:
        """The routine that will not change any more."""
        return self.routine(name)

    def with_points(self, quantity: Quantity, settles: bool, **tables: np.ndarray) -> Routine:
        """The routine of a quantity with points, bound to their rows, links and memory."""
        return self._bind(quantity, len(tables["point_links"]), settles, **tables)

    def _bind(
        self, quantity: Quantity, points: int = 0, settles: bool = False, **tables: np.ndarray
    ) -> Routine:
        free = self.model.free_base
        table = self._near_table if quantity.near else self._placed_table
        joints = len(table.parent)
        return Routine(
            dyads.library(quantity, free),
            quantity,
            joints,
            free,
            len(table.body_links),
            dyads.workspace_vectors(quantity, joints, free),
            {"friction": int(self.has_friction), "points": points, "settles": int(settles)},
            calls=dyads.call_table(quantity, free, table),
            rows=table.rows,
            body_rows=table.body_rows,
            body_links=table.body_links,
            **tables,
        )


class FusedTier:
    """Straight-line code for one organism, compiled at once or while the table is still in use."""

    name = "fused"

    def __init__(self, model: Model, background: bool) -> None:
        self.model, self.dyads, self._background = model, DyadTier(model), background
        self._routines: dict[str, Routine] = {}
        self._waiting: dict[str, Future[Routine]] = {}
        self._lock = threading.Lock()

    def routine(self, name: str) -> Routine:
        """The fused routine, or the table's while it is being compiled in the background."""
        found = self._routines.get(name)
        return self._compiled(name, wait=not self._background) if found is None else found

    def ready(self, name: str) -> Routine:
        """The fused routine, waited for."""
        return self._compiled(name, wait=True)

    def _compiled(self, name: str, wait: bool) -> Routine:
        if not QUANTITIES[name].straight_line:
            return self.dyads.routine(name)
        with self._lock:
            if name not in self._waiting:
                self._waiting[name] = _compilers().submit(self._compile, name)
            future = self._waiting[name]
        if not (wait or future.done()):
            return self.dyads.routine(name)
        self._routines[name] = future.result()
        return self._routines[name]

    def with_external(self, name: str) -> Routine:
        """The routine that takes external wrenches: only the table's does."""
        return self.dyads.routine(name)

    def with_points(self, quantity: Quantity, settles: bool, **tables: np.ndarray) -> Routine:
        """The routine of a quantity with points: only the table's has them."""
        return self.dyads.with_points(quantity, settles, **tables)

    def _compile(self, name: str) -> Routine:
        try:
            ir = fused.module_ir(name, self.model)
        except ZeroDivisionError:  # a joint moves nothing; the table raises the error when it runs
            return self.dyads.routine(name)
        model = self.model
        return Routine(
            compile_ir(ir), QUANTITIES[name], len(model.parent), model.free_base, model.nbodies
        )


@cache
def _compilers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="modurob-compiler")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_compilers.cache_clear)
