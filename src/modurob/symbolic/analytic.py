"""Closed forms as the forward dynamics of a model: simulation with the formulas on paper."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import sympy

from modurob.errors import StateError, choices
from modurob.model import Model

if TYPE_CHECKING:
    from modurob.symbolic.equations import Equations


def analytic_model(equations: Equations, q: list[sympy.Symbol], v: list[sympy.Symbol]) -> Model:
    """See `Equations.as_model`; q and v are the symbols of a state."""
    bias = equations.C * sympy.Matrix(len(v), 1, v) + equations.N + equations.friction
    values = equations.values
    unknown = (equations.M.free_symbols | bias.free_symbols) - {*q, *v, *values}
    if unknown:
        raise StateError(
            f"no value for {choices(sorted(map(str, unknown)))}: give numbers with "
            "substitute(...), or leave external wrenches out"
        )
    formulas = sympy.lambdify([[*q, *v, *values]], [*equations.M, *bias], "numpy", cse=True)
    twin = dataclasses.replace(equations.model)
    twin.__dict__["dynamics"] = AnalyticDynamics(twin, formulas, list(values.values()))
    return twin


class AnalyticDynamics:
    """Dynamics whose accelerations, forces and mass matrices come from formulas.

    All else is computed as in any model.
    """

    compile_options = None
    FORMULAS = ("forward_dynamics", "inverse_dynamics", "mass_matrix")

    def __init__(self, model: Model, formulas: Callable[..., Any], values: list[float]) -> None:
        self._model, self._formulas, self._values = model, formulas, values
        self._numbers = dataclasses.replace(model).dynamics
        self.tier = self._numbers.tier

    def quantity(self, name: str, *arrays: Any, external: Any = None, **options: Any) -> np.ndarray:
        """Any quantity of `equations.quantities`."""
        if name not in self.FORMULAS:
            return self._numbers.quantity(name, *arrays, external=external, **options)
        if external is not None:
            self.bound()
        nv = self._model.nv
        rest = [np.zeros(nv)] * (3 - len(arrays))  # of a mass matrix: no velocity and force
        q, v, x = (np.asarray(array, dtype=float) for array in (*arrays, *rest))
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], x.shape[:-1])
        with np.errstate(all="ignore"):  # overflows are found afterwards
            found = self._formulas([*np.moveaxis(q, -1, 0), *np.moveaxis(v, -1, 0), *self._values])
        entries = np.stack([np.broadcast_to(each, batch) for each in found], axis=-1)
        if not np.isfinite(entries).all():
            raise StateError("the formulas give no finite numbers at this state")
        M, bias = entries[..., : nv * nv].reshape(*batch, nv, nv), entries[..., nv * nv :]
        if name == "mass_matrix":
            return M
        if name == "inverse_dynamics":
            return (M @ x[..., None])[..., 0] + bias
        try:
            return np.linalg.solve(M, (x - bias)[..., None])[..., 0]
        except np.linalg.LinAlgError:
            raise StateError("the mass matrix of the formulas is singular here") from None

    def bound(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: it is asked for when wrenches act."""
        raise StateError("a run with equations has no external wrenches: give it a model")

    def prepare(
        self, name: str, states: int | None, out: Any, external: bool
    ) -> Callable[..., Any]:
        """See `Model.prepare`."""
        if name in self.FORMULAS and out is None and not external:
            return partial(self.quantity, name)
        return self._numbers.prepare(name, states, out, external)
