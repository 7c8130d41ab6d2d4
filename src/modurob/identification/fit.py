"""`identify`: numbers of the datasheets from recorded runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from modurob.checks import positive
from modurob.errors import StateError, choices
from modurob.identification.base import BaseColumns, base_columns
from modurob.identification.parameters import ParameterSet, parameter_set
from modurob.identification.runs import Samples, samples_of
from modurob.model import Model
from modurob.organism import Organism
from modurob.sim import BodyTrajectory, Trajectory

Runs = Trajectory | BodyTrajectory | Iterable[Trajectory | BodyTrajectory]

CHUNK = 512  # states whose regressor is held at once
REWEIGHTED = 3  # times that the noise of the joints is estimated from the fit before
NOISE_FLOOR = 1e-4  # of the largest torque: less noise is not believed
UNSEEN = 1e3  # relative standard error of a direction that a run says nothing about
INVOLVED = 0.3  # share of an unseen direction from which on a parameter is named
MOST_NAMED = 6  # parameters in a message
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


class Suspect(NamedTuple):
    """A field of a datasheet that the runs contradict.

    Attributes:
        module: Its name; that of the kind where modules share their numbers.
        field: Such as ``distal.mass`` or ``joint.viscous``.
        given, found: The datasheet's, and the one that explains the runs.
        sigmas: Deviation in standard errors.
    """

    module: str
    field: str
    given: float | np.ndarray
    found: float | np.ndarray
    sigmas: float

    def __str__(self) -> str:
        given, found = (np.array2string(np.asarray(x), precision=4) for x in (self.given, self.found))
        return f"{self.module}: {self.field} is {given}, found {found} ({self.sigmas:.1f} sigma)"


@dataclass(frozen=True, eq=False, repr=False)
class Identification:
    """The result of `identify`.

    Attributes:
        parameters: The base parameters, (b,).
        covariance: (b, b) of their errors.
        noise: (nv,) standard deviation of the torques about the identified model. [N m, N]
        organism: With corrected datasheets.
        suspects: Fields that explain the runs together where the datasheets do not, worst first.
        accelerations: ``estimated`` or ``recorded``.
    """

    parameters: tuple[BaseParameter, ...]
    covariance: np.ndarray
    noise: np.ndarray
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

    The most probable parameters, for Gaussian torque noise of a size of its own at each joint and
    datasheets that are wrong by `datasheet_error`; every body's pseudo-inertia is positive definite.
    What the runs do not determine stays as the datasheets have it.

    Args:
        model: With the datasheets' numbers, built from an organism.
        runs: One trajectory or several of this body, driven by known torques.
        shared: Modules of one kind have the same numbers.
        datasheet_error: Relative standard deviation of the datasheets' numbers.
        accelerations: ``estimated`` from the recorded velocities with smoothing splines, or
            ``recorded``: the run's own `a`. That of a robot's record was computed with its model.
    """
    error = positive("datasheet_error", datasheet_error, "parts of one")
    if not isinstance(model, Model) or model.organism is None:
        raise StateError("identify takes a model that was built from an organism: organism.model()")
    if not model.nv:
        raise StateError("the model has no joint that moves: nothing can be identified")
    samples = samples_of(model, runs, accelerations)
    parameters = parameter_set(model, model.organism, shared)
    problem = reduced(parameters, samples)
    problem.check_excitation()
    x = problem.solve(np.ones(parameters.size, dtype=bool), error)
    from modurob.identification.suspects import find_suspects

    J = problem.jacobian(x)
    _, slope = parameters.prior(x)
    mixing = problem.base.mixing @ parameters.theta_derivative(x)
    root = np.linalg.qr(np.vstack([J, np.diag(slope / error)]), mode="r")
    half = np.linalg.solve(root.T, mixing.T)  # covariance of x is (root^T root)^-1
    covariance = half.T @ half
    return Identification(
        parameters=_listed(problem, x, np.sqrt(np.diagonal(covariance))),
        covariance=covariance,
        noise=problem.noise,
        organism=parameters.organism_with(x),
        suspects=find_suspects(problem, error),
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


@dataclass(frozen=True, eq=False)
class Problem:
    """Weighted least squares for the base parameters, reduced to a triangle: ``R beta = z``.

    Attributes:
        R, z: (b, b), (b,) with residuals in standard deviations of the noise.
        noise: (nv,)
        equations: How many were reduced.
    """

    parameters: ParameterSet
    base: BaseColumns
    R: np.ndarray
    z: np.ndarray
    noise: np.ndarray
    equations: int

    def residual(self, x: np.ndarray) -> np.ndarray:
        """(b,) residuals of the runs, without the constant rest."""
        return self.R @ (self.base.mixing @ self.parameters.theta(x)) - self.z

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """(b, size) of `residual`."""
        return self.R @ self.base.mixing @ self.parameters.theta_derivative(x)

    def solve(self, free: np.ndarray, error: float) -> np.ndarray:
        """(size,) most probable x, with coordinates outside of `free` (size,) at zero."""
        from scipy.optimize import least_squares

        x = np.zeros(self.parameters.size)

        def whole(part: np.ndarray) -> np.ndarray:
            full = x.copy()
            full[free] = part
            return full

        def residuals(part: np.ndarray) -> np.ndarray:
            full = whole(part)
            prior, _ = self.parameters.prior(full)
            return np.concatenate([self.residual(full), prior[free] / error])

        def slopes(part: np.ndarray) -> np.ndarray:
            full = whole(part)
            _, slope = self.parameters.prior(full)
            return np.vstack([self.jacobian(full)[:, free], np.diag(slope[free] / error)])

        return whole(least_squares(residuals, x[free], slopes, method="lm").x)

    def check_excitation(self) -> None:
        """Refuse runs that say nothing about some base parameter, and name it."""
        zero = np.zeros(self.parameters.size)
        by_x = self.base.mixing @ self.parameters.theta_derivative(zero)
        directions, _ = np.linalg.qr(by_x.T)
        _, seen, turn = np.linalg.svd(self.R @ by_x @ directions)
        unseen = directions @ turn[seen < 1 / UNSEEN].T
        if not unseen.size:
            return
        share = np.linalg.norm(by_x @ unseen, axis=1) / np.linalg.norm(by_x, axis=1)
        names = [self.parameters.names[k] for k in self.base.kept[share > INVOLVED]]
        raise StateError(
            f"the runs do not excite {unseen.shape[1]} of {len(self.z)} base parameters; they say "
            f"nothing about {choices(names, MOST_NAMED)}. Move all joints, fast enough to feel "
            "inertias: see modurob.identification.exciting_motion"
        )


def reduced(parameters: ParameterSet, samples: Samples) -> Problem:
    """Reduce all samples to a triangle, and estimate the noise of each joint's torques on the way."""
    base, model = base_columns(parameters), parameters.model
    b, nv, count = len(base.kept), model.nv, len(samples.q)
    if count * nv < 2 * b:
        raise StateError(
            f"the runs have {count} states, {count * nv} torques, for {b} base parameters; record "
            f"{-(-2 * b // nv)} states or more"
        )
    blocks = np.zeros((nv, 0, b + 1))
    for k in range(0, count, CHUNK):
        q, v, a, tau = (x[k : k + CHUNK] for x in samples)
        Y = parameters.columns(q, v, a)
        # whatever the parameters do not cover counts as known
        rest = tau - model.inverse_dynamics(q, v, a) + Y @ parameters.given
        rows = np.concatenate([Y[..., base.kept], rest[..., None]], axis=-1)
        blocks = np.linalg.qr(np.concatenate([blocks, rows.swapaxes(0, 1)], axis=1), mode="r")
    floor = NOISE_FLOOR * np.sqrt(np.mean(samples.tau**2, axis=0)).max()
    noise = np.ones(nv)
    for _ in range(REWEIGHTED):
        stacked = (blocks / noise[:, None, None]).reshape(-1, b + 1)
        scale = np.linalg.norm(stacked[:, :b], axis=0)
        scale[scale == 0] = 1.0
        beta = np.linalg.lstsq(stacked[:, :b] / scale, stacked[:, b], rcond=None)[0] / scale
        errors = blocks[..., :b] @ beta - blocks[..., b]
        noise = np.sqrt((errors**2).sum(axis=1) / (count - b / nv)) 
        noise = np.maximum(noise, floor)
    triangle = np.linalg.qr((blocks / noise[:, None, None]).reshape(-1, b + 1), mode="r")
    return Problem(parameters, base, triangle[:b, :b], triangle[:b, b], noise, count * nv)
