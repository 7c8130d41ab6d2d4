"""Base parameters: the fewest combinations of parameters that give the same joint forces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modurob.identification.parameters import ParameterSet

INDEPENDENT = 1e-8  # of a column's norm: what is left of it after projection, if it is not rounding
ZERO = 1e-12  # of the largest column's norm: a column without effect
STATES = 40  # random states, at least; and
PER_PARAMETER = 4  # equations for each parameter
ORDER = "Jhmvc"  # inertias, first moments, masses, frictions: as `Equations.regressor` keeps them


class IdentifiableColumns(NamedTuple):
    """``Y theta = Y[:, kept] (mixing theta)``.

    Attributes:
        kept: (b,) columns of the regressor that carry all others.
        mixing: (b, size) base parameters as combinations of theta.
    """

    kept: np.ndarray
    mixing: np.ndarray


def base_columns(parameters: ParameterSet) -> IdentifiableColumns:
    """Eliminate columns one after the other, over random motions within the joint limits."""
    model, rng = parameters.model, np.random.default_rng(0)
    count = max(STATES, PER_PARAMETER * parameters.size // max(model.nv, 1))
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    v, a = rng.standard_normal((2, count, model.nv))
    Y = parameters.columns(q, v, a).reshape(-1, parameters.size)
    norm = np.linalg.norm(Y, axis=0)
    letters = [name.rpartition(".")[2][0] for name in parameters.names]
    order = sorted(
        np.flatnonzero(norm > ZERO * norm.max()).tolist(), key=lambda k: ORDER.index(letters[k])
    )
    basis, kept = np.zeros((len(Y), 0)), []
    for k in order:
        rest = Y[:, k] / norm[k]
        for _ in range(2):  # twice is enough
            rest = rest - basis @ (basis.T @ rest)
        left = np.linalg.norm(rest)
        if left > INDEPENDENT:
            basis, kept = np.column_stack([basis, rest / left]), [*kept, k]
    kept = np.array(sorted(kept), dtype=int)
    mixing = np.linalg.solve(basis.T @ (Y[:, kept] / norm[kept]), basis.T @ Y)
    mixing /= norm[kept][:, None]
    mixing[np.abs(mixing) < INDEPENDENT * np.abs(mixing).max(axis=1, keepdims=True)] = 0.0
    return IdentifiableColumns(kept, mixing)
