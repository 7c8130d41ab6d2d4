"""Fields of datasheets that recorded runs contradict: the fewest that explain them."""

from __future__ import annotations

import numpy as np

from modurob.identification.fit import Problem, Suspect
from modurob.identification.parameters import FieldRange

LEAST_SIGMAS = 4.0  # of a suspect: a false one among a hundred fields in a hundred robots


def find_suspects(problem: Problem, error: float) -> tuple[Suspect, ...]:
    """Free one field after the other, the one that explains most, while it explains enough.

    A field with k numbers has to lower the sum of squared residuals by more than k log N + 2 log F
    for N equations and F fields (the extended Bayesian information criterion).
    """
    parameters = problem.parameters
    fields, chosen = list(parameters.fields), []
    free, x = np.zeros((2, parameters.size))
    least = 2 * np.log(len(fields))
    while len(chosen) < len(fields):
        r, J = problem.residual(x), problem.jacobian(x)
        active = _orthonormal(J[:, free > 0])
        r = r - active @ (active.T @ r)
        best, most = None, least
        for field in fields:
            if free[field.place].any():
                continue
            columns = J[:, field.place]
            rest = _orthonormal(columns - active @ (active.T @ columns), np.linalg.norm(columns))
            gain = float(np.sum((rest.T @ r) ** 2) - rest.shape[1] * np.log(problem.equations))
            if gain > most:
                best, most = field, gain
        if best is None:
            break
        chosen.append(best)
        free[best.place] = 1
        x = problem.solve(free > 0, error)
    found = [_suspect(problem, field, x, free > 0) for field in chosen]
    worst = sorted(found, key=lambda each: -each.sigmas)
    return tuple(each for each in worst if each.sigmas > LEAST_SIGMAS)


def _orthonormal(columns: np.ndarray, scale: float | None = None) -> np.ndarray:
    """Basis of the columns' span; what is small against `scale` is rounding."""
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    return U[:, s > 1e-6 * (s.max(initial=0.0) if scale is None else scale)]


def _suspect(problem: Problem, field: FieldRange, x: np.ndarray, free: np.ndarray) -> Suspect:
    """The deviation of a field in standard errors, the other suspects being free."""
    J, place = problem.jacobian(x), field.place
    others = free.copy()
    others[place] = False
    active = _orthonormal(J[:, others])
    columns = J[:, place] - active @ (active.T @ J[:, place])
    parameters = problem.parameters
    return Suspect(
        field.owner,
        field.name,
        parameters.field_value(np.zeros(parameters.size), field),
        parameters.field_value(x, field),
        float(np.linalg.norm(columns @ x[place])),
    )
