"""Fields of datasheets that recorded runs contradict: the fewest that explain them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modurob.errors import choices
from modurob.identification.parameters import FieldRange
from modurob.identification.problem import Problem

LEAST_SIGMAS = 4.0  # of a suspect: a false one among a hundred fields in a hundred robots
LEAST_CHANGE = 0.02  # of a coordinate: about 4 % of a mass; less is an error of the method
WRONG = 1.0  # relative error of a wrong field: a slip, a tool that was left on, worn bearings
LIKELY = 2 * np.log(20)  # twice the log of the odds up to which another field may be the wrong one
SPAN = 1e-6  # of the largest singular value: below it columns depend on each other


class Suspect(NamedTuple):
    """A field of a datasheet that the runs contradict.

    Attributes:
        module: Its name; that of the kind where modules share their numbers.
        field: Such as ``distal.mass`` or ``joint.viscous``.
        given, found: The datasheet's, and the one that explains the runs.
        sigmas: Deviation in standard errors.
        alternatives: Fields that might be the wrong one instead, as ``module.field``: the runs
            hardly tell a heavy link from its heavy neighbor on the same side of a joint.
    """

    module: str
    field: str
    given: float | np.ndarray
    found: float | np.ndarray
    sigmas: float
    alternatives: tuple[str, ...] = ()

    def __str__(self) -> str:
        given, found = (
            np.array2string(np.asarray(x), formatter={"float": "{:.4g}".format}).replace("\n", "")
            for x in (self.given, self.found)
        )
        text = f"{self.module}: {self.field} is {given}, found {found} ({self.sigmas:.1f} sigma)"
        return text + (f"; or {choices(self.alternatives)}" if self.alternatives else "")


def find_suspects(problem: Problem) -> tuple[tuple[Suspect, ...], np.ndarray]:
    """Free one field after the other, the most probable one, while the odds are on a wrong field.

    The odds are Bayes factors of the linearized problem, with one wrong field expected in all. Of
    those with similar odds, fields of modules that are suspected already come first.

    Returns:
        The suspects, worst first, and (size,) which coordinates are theirs.
    """
    parameters = problem.parameters
    fields = parameters.fields
    chosen: list[tuple[FieldRange, tuple[str, ...]]] = []
    free, x = np.zeros(parameters.size, dtype=bool), np.zeros(parameters.size)
    while not free.all():
        odds = _log_odds(problem, x, free)
        best = int(odds.argmax())
        if odds[best] <= 2 * np.log(len(fields)):
            break
        likely = np.flatnonzero(odds > odds[best] - LIKELY).tolist()
        known = {field.owner for field, _ in chosen}
        best = max(likely, key=lambda k: (fields[k].owner in known, odds[k]))
        names = tuple(f"{fields[k].owner}.{fields[k].name}" for k in likely if k != best)
        chosen.append((fields[best], names))
        free[fields[best].place] = True
        x = problem.solve(free, np.full(parameters.size, WRONG))
    found = [(field, _suspect(problem, field, names, x, free)) for field, names in chosen]
    free[:] = False
    suspects = []
    for field, suspect in sorted(found, key=lambda each: -each[1].sigmas):
        if suspect.sigmas > LEAST_SIGMAS and np.linalg.norm(x[field.place]) > LEAST_CHANGE:
            suspects.append(suspect)
            free[field.place] = True
    return tuple(suspects), free


def _log_odds(problem: Problem, x: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Twice the log Bayes factor of each field that is not free: wrong, or right."""
    J, (_, slope) = problem.jacobian(x), problem.parameters.prior(x)
    beyond = _beyond(J[:, free])
    r, odds = beyond @ problem.residual(x), []
    for field in problem.parameters.fields:
        C = beyond @ J[:, field.place] * (WRONG / slope[field.place])
        gram = np.eye(C.shape[1]) + C.T @ C
        fitted = C.T @ r
        value = fitted @ np.linalg.solve(gram, fitted) - np.linalg.slogdet(gram)[1]
        odds.append(-np.inf if free[field.place].any() else value)
    return np.array(odds)


def _beyond(columns: np.ndarray) -> np.ndarray:
    """Projector onto what the columns do not span."""
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    basis = U[:, s > SPAN * s.max(initial=0.0)]
    return np.eye(len(columns)) - basis @ basis.T


def _suspect(
    problem: Problem, field: FieldRange, names: tuple[str, ...], x: np.ndarray, free: np.ndarray
) -> Suspect:
    """The deviation of a field in standard errors, the other suspects being free."""
    J, others = problem.jacobian(x), free.copy()
    others[field.place] = False
    given, found = problem.parameters.field_values(x, field)
    effect = _beyond(J[:, others]) @ J[:, field.place] @ x[field.place]
    return Suspect(field.owner, field.name, given, found, float(np.linalg.norm(effect)), names)
