"""Sources of a model's compiled routines: the table of dyads, or code of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, cached_property, partial

import numpy as np

from modurob.compiler import dyads, fused
from modurob.compiler.adjoint import Adjoint
from modurob.compiler.jit import Library, compile_ir, host
from modurob.compiler.narrow import NARROW
from modurob.compiler.routine import Routine
from modurob.equations.passes import Quantity
from modurob.equations.quantities import QUANTITIES
from modurob.model import Model

FEW = 4  # states for which shorter vectors are quicker, where wide ones are two operations
SMALL = 12  # velocities of a body up to which all code without loops is worth its length


class DyadTier:
    """Routines from the table; compiles nothing once the kernels exist."""

    name = "dyads"

    def __init__(self, model: Model) -> None:
        self.model = model
        passive = (model.viscous, model.coulomb, model.stiffness)
        self.has_friction = any(bool(array.any()) for array in passive)
        self._routines: dict[tuple[str, int], Routine] = {}

    @cached_property
    def _near_table(self) -> dyads.Table:
        return dyads.table_rows(self.model._frames, self.model.gravity)

    @cached_property
    def _placed_table(self) -> dyads.Table:
        return dyads.table_rows(self.model._placed_frames, self.model.gravity)

    def routine(self, name: str, external: bool = False, states: int | None = None) -> Routine:
        """The routine of a quantity; it takes external wrenches, too.

        Args:
            states: In each call, if always as many: code for a few has shorter vectors, that for
                one has none. The bytes of the results are the same.
        """
        width = NARROW if states == 1 else host().width
        if states is not None and 1 < states <= FEW:
            width = min(FEW, width)
        found = self._routines.get((name, width))
        if found is None:
            found = self._routines[name, width] = self._bind(QUANTITIES[name], width)
        return found

    ready = routine  # compiled at once: it will not change any more

    def with_points(
        self, quantity: Quantity, settles: bool, external: bool, **tables: np.ndarray
    ) -> Routine:
        """The routine of a quantity with points, bound to their rows, links and memory."""
        numbers = {"points": len(tables["point_links"]), "settles": int(settles)}
        return self._bind(quantity, host().width, numbers, **tables)

    def _bind(
        self,
        quantity: Quantity,
        width: int,
        numbers: Mapping[str, int] | None = None,
        **tables: np.ndarray,
    ) -> Routine:
        free = self.model.free_base
        table = self._near_table if quantity.near else self._placed_table
        if quantity.passes.output:
            frames = self.model._frames if quantity.near else self.model._placed_frames
            tables |= dyads.body_tables(frames)
        joints = len(table.parent)
        return Routine(
            dyads.library(quantity, free, width),
            width,
            quantity,
            joints,
            free,
            self.model.nbodies,
            dyads.workspace_vectors(quantity, joints, free),
            {"friction": int(self.has_friction), **(numbers or {})},
            calls=dyads.call_table(quantity, free, width, table),
            rows=table.rows,
            **tables,
        )


class FusedTier:
    """Straight-line code for one organism, compiled at once or while the table is still in use."""

    name = "fused"

    def __init__(self, model: Model, background: bool) -> None:
        self.model, self.dyads, self._background = model, DyadTier(model), background
        self._routines: dict[tuple[str, bool, bool], Routine] = {}
        self._waiting: dict[tuple[Quantity, bool, bool], Future[Library | None]] = {}
        self._gradients: dict[str, Routine | None] = {}
        self._lock = threading.Lock()

    def routine(self, name: str, external: bool = False, states: int | None = None) -> Routine:
        """The fused routine, or the table's while it is being compiled in the background.

        Args:
            states: See `DyadTier.routine`; for one it is compiled apart, when it is first asked
                for.
        """
        found = self._routines.get((name, external, states == 1))
        return found or self._bound(name, external, states, not self._background)

    def ready(self, name: str, external: bool = False, states: int | None = None) -> Routine:
        """The fused routine, waited for."""
        return self._bound(name, external, states, wait=True)

    def _bound(self, name: str, external: bool, states: int | None, wait: bool) -> Routine:
        quantity, table = QUANTITIES[name], partial(self.dyads.routine, name, states=states)
        narrow = states == 1
        if not (quantity.straight_line or self.model.nv <= SMALL):
            return table()
        future = self._library(quantity, external, narrow)
        if not (wait or future.done()):
            return table()
        library = future.result()
        found = table() if library is None else self._bind(library, quantity, narrow)
        return self._routines.setdefault((name, external, narrow), found)

    def gradient(self, name: str) -> Routine | None:
        """The routine of a quantity's gradient, see `Adjoint`; None if a joint moves nothing.

        Its array of external wrenches holds the weights, and zeros behind them.
        """
        with self._lock:
            if name not in self._gradients:
                try:
                    adjoint = Adjoint(fused.Trace(QUANTITIES[name], self.model))
                except ZeroDivisionError:
                    self._gradients[name] = None
                else:
                    library = compile_ir(fused.straight_ir(adjoint))
                    self._gradients[name] = self._bind(library, adjoint.quantity)
            return self._gradients[name]

    def with_points(
        self, quantity: Quantity, settles: bool, external: bool, **tables: np.ndarray
    ) -> Routine:
        """The routine of a quantity with points, waited for; see `DyadTier.with_points`."""
        library = self._library(quantity, external).result()
        if library is None:
            return self.dyads.with_points(quantity, settles, external, **tables)
        numbers = {"points": len(tables["point_links"]), "settles": int(settles)}
        return self._bind(library, quantity, False, numbers, **tables)

    def _library(
        self, quantity: Quantity, external: bool, narrow: bool = False
    ) -> Future[Library | None]:
        key = quantity, external, narrow
        with self._lock:
            if key not in self._waiting:
                self._waiting[key] = _compilers().submit(self._compile, *key)
            return self._waiting[key]

    def _compile(self, quantity: Quantity, external: bool, narrow: bool) -> Library | None:
        width = NARROW if narrow else None
        try:
            return compile_ir(fused.module_ir(quantity, self.model, external, width))
        except ZeroDivisionError:  # a joint moves nothing; the table raises the error when it runs
            return None

    def _bind(
        self,
        library: Library,
        quantity: Quantity,
        narrow: bool = False,
        numbers: Mapping[str, int] | None = None,
        **tables: np.ndarray,
    ) -> Routine:
        model, own = self.model, fused.workspace_vectors(quantity, self.model)
        size = (len(model.parent), model.free_base, model.nbodies)
        width = NARROW if narrow else host().width
        return Routine(library, width, quantity, *size, own, numbers, **tables)


@cache
def _compilers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="modurob-compiler")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_compilers.cache_clear)
