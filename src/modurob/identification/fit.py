"""`identify`: numbers of the datasheets from recorded runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from modurob.checks import inside
from modurob.errors import StateError, choices
from modurob.identification.parameters import parameter_set
from modurob.identification.problem import Problem, reduced, triangle
from modurob.identification.runs import samples_of
from modurob.identification.suspects import WRONG, Suspect, find_suspects
from modurob.model import Model
from modurob.organism import Organism
from modurob.sim import BodyTrajectory, Trajectory

Runs = Trajectory | BodyTrajectory | Iterable[Trajectory | BodyTrajectory]

ERRORS = 1e-3, 3.0  # relative ones that datasheets may have
NORMAL_95 = 1.959964  # standard deviations on either side of a 95 % interval


class BaseParameter(NamedTuple):
    """A combination of parameters that the joint forces determine.

    Attributes:
        name: Of its first parameter, such as ``m2.distal.Jxx``.
        terms: Factor of each parameter in it.
        given, found: From the datasheets, and identified. [kg, kg m, kg m^2; units of friction]
        std: Standard error of `found`.
    """

    name: str
    terms: Mapping[str, float]
    given: float
    found: float
    std: float

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval."""
        return self.found - NORMAL_95 * self.std, self.found + NORMAL_95 * self.std


@dataclass(frozen=True, eq=False, repr=False)
class Identification:
    """The result of `identify`.

    Attributes:
        parameters: The base parameters, (b,).
        covariance: (b, b) of their errors.
        noise: (nv,) standard deviation of the torques about the identified model. [N m, N]
        delay: Of the recorded torques behind the motion, identified too; minus half a sample for a
            torque that is held from one sample to the next. [s]
        organism: With corrected datasheets.
        suspects: Fields that explain the runs together where the datasheets do not, worst first.
        accelerations: ``estimated`` or ``recorded``.
    """

    parameters: tuple[BaseParameter, ...]
    covariance: np.ndarray
    noise: np.ndarray
    delay: float
    organism: Organism
    suspects: tuple[Suspect, ...]
    accelerations: str
    _nominal: Model

    @cached_property
    def model(self) -> Model:
        """Model of the corrected organism, built as the given one."""
        assert self._nominal.options is not None
        return self._nominal.options.build(self.organism)

    def __repr__(self) -> str:
        who = choices(dict.fromkeys(suspect.module for suspect in self.suspects)) or "none"
        return f"<Identification: {len(self.parameters)} base parameters, suspects: {who}>"


def identify(
    model: Model,
    runs: Runs,
    *,
    shared: bool = False,
    datasheet_error: float = 0.3,
    accelerations: str = "estimated",
) -> Identification:
    """Identify masses, centers of mass, inertias and friction from recorded runs.

    The most probable parameters, for Gaussian noise of a size of its own on the torque of each
    joint, datasheets that are wrong by `datasheet_error`, and positive definite pseudo-inertias.
    What the runs do not determine stays as the datasheets have it.

    Args:
        model: With the datasheets' numbers, built from an organism.
        runs: One trajectory or several of this body, driven by known torques.
        shared: Modules of one kind have the same numbers.
        datasheet_error: Relative standard deviation of the datasheets' numbers.
        accelerations: ``estimated`` from the recorded velocities with smoothing splines, or
            ``recorded``: the run's own `a`. That of a robot's record was computed with its model.
    """
    error = inside("datasheet_error", datasheet_error, *ERRORS, "relative error")
    if not isinstance(model, Model) or model.organism is None:
        raise StateError("identify takes a model that was built from an organism: organism.model()")
    if not model.nv:
        raise StateError("the model has no joint that moves: nothing can be identified")
    samples = samples_of(model, runs, accelerations)
    parameters = parameter_set(model, model.organism, shared)
    problem = reduced(parameters, samples)
    problem.check_excitation()
    suspects, wrong = find_suspects(problem)
    errors = np.where(wrong, np.maximum(WRONG, error), error)
    x = problem.solve(np.ones(parameters.size, dtype=bool), errors)
    _, slope = parameters.prior(x)
    root = triangle(np.vstack([problem.jacobian(x), np.diag(slope / errors)]))
    by_x = problem.base.mixing @ parameters.theta_derivative(x)
    half = np.linalg.solve(root.T, by_x.T)  # the covariance of x is (root^T root)^-1
    covariance = half.T @ half
    return Identification(
        parameters=_listed(problem, x, np.sqrt(np.diagonal(covariance))),
        covariance=covariance,
        noise=problem.noise,
        delay=problem.delay,
        organism=parameters.organism_with(x),
        suspects=suspects,
        accelerations=accelerations,
        _nominal=model,
    )


def _listed(problem: Problem, x: np.ndarray, std: np.ndarray) -> tuple[BaseParameter, ...]:
    parameters, (kept, mixing) = problem.parameters, problem.base
    given, found = mixing @ parameters.given, mixing @ parameters.theta(x)
    names = parameters.names
    return tuple(
        BaseParameter(
            names[column],
            {names[k]: float(mixing[i, k]) for k in np.flatnonzero(mixing[i]).tolist()},
            float(given[i]),
            float(found[i]),
            float(std[i]),
        )
        for i, column in enumerate(kept.tolist())
    )
