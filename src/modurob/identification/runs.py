"""Recorded runs as samples (q, v, a, tau) of one body."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from modurob.errors import StateError, choices
from modurob.model import Model
from modurob.sim import BodyTrajectory, Trajectory

ACCELERATIONS = ("estimated", "recorded")
LEAST_SAMPLES = 20  # of a run: a spline through fewer is no estimate
EDGE = 0.02  # of a run at either end, where the derivative of a spline is poor
DEGREE = 5  # of the splines
FEWEST_PIECES, FINER = 2, 1.2  # number of pieces to begin with, and factor to the next
MOST_COEFFICIENTS = 0.5  # of a spline for each sample
SAME_GEOMETRY = 1e-9  # [rad, m] between the poses of joints of one body


class Samples(NamedTuple):
    """States (N, nq), (N, nv), accelerations (N, nv), joint forces (N, nv).

    `rate` (N, nv) is the time derivative of the forces, by the datasheets. [N m/s, N/s]
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    rate: np.ndarray


def samples_of(
    model: Model,
    runs: Trajectory | BodyTrajectory | Iterable[Trajectory | BodyTrajectory],
    accelerations: str,
) -> Samples:
    """All states of all runs, or a `StateError`."""
    if accelerations not in ACCELERATIONS:
        raise StateError(f"accelerations are {choices(ACCELERATIONS)}, got {accelerations!r}")
    found = []
    for number, part in enumerate(_parts(runs)):
        _check(model, part, f"run {number}")
        t = part.t
        q, v, tau = (x.reshape(len(t), -1, x.shape[-1]) for x in (part.q, part.v, part.tau))
        if accelerations == "recorded":
            a = part.a.reshape(v.shape)
        else:
            smooth = smoothed(t, v.reshape(len(v), -1))
            v, a = (x.reshape(v.shape) for x in smooth)
            kept = slice(round(EDGE * len(v)), len(v) - round(EDGE * len(v)))
            t, q, v, a, tau = (x[kept] for x in (t, q, v, a, tau))
        rate = np.gradient(model.inverse_dynamics(q, v, a), t, axis=0)
        found.append([x.reshape(-1, x.shape[-1]) for x in (q, v, a, tau, rate)])
    return Samples(*(np.concatenate(each) for each in zip(*found, strict=True)))


def smoothed(t: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N, k) velocities without noise, and accelerations: least-squares splines of degree five.

    The number of pieces is chosen for each column by generalized cross-validation, so nothing has
    to be set: N |rest|^2 / (N - coefficients)^2 is least.
    """
    from scipy.interpolate import make_lsq_spline

    rates, slopes, least = v.copy(), np.zeros_like(v), np.full(v.shape[1], np.inf)
    count = FEWEST_PIECES
    while count + DEGREE <= MOST_COEFFICIENTS * len(t):
        inner = np.quantile(t, np.linspace(0, 1, count + 1)[1:-1])
        ends = [t[0]] * (DEGREE + 1), [t[-1]] * (DEGREE + 1)
        spline = make_lsq_spline(t, v, np.concatenate([ends[0], inner, ends[1]]), DEGREE)
        fitted = spline(t)
        rest = ((v - fitted) ** 2).sum(axis=0) / (len(t) - count - DEGREE) ** 2
        better = rest < least
        least = np.where(better, rest, least)
        rates, slopes = (
            np.where(better, new, old)
            for new, old in ((fitted, rates), (spline.derivative()(t), slopes))
        )
        count = int(count * FINER) + 1
    return rates, slopes


def _parts(runs: object) -> Sequence[BodyTrajectory]:
    several = [runs] if isinstance(runs, Trajectory | BodyTrajectory) else runs
    if not isinstance(several, Iterable):
        raise StateError(f"runs are trajectories, got {type(runs).__name__}")
    parts: list[BodyTrajectory] = []
    for run in several:
        if not isinstance(run, Trajectory | BodyTrajectory):
            raise StateError(f"a run is a Trajectory or one of its parts, got {type(run).__name__}")
        parts.extend(run.parts if isinstance(run, Trajectory) else [run])
    if not parts:
        raise StateError("identification needs at least one run, got none")
    return parts


def _check(model: Model, part: BodyTrajectory, name: str) -> None:
    other = part.model
    if other.free_base != model.free_base:
        bases = {True: "a free base", False: "a fixed base"}
        raise StateError(
            f"{name} is of {bases[other.free_base]}, the model has {bases[model.free_base]}: "
            "give the base of the run"
        )
    if other.joint_names != model.joint_names:
        raise StateError(
            f"{name} is of another body, with the joints {choices(other.joint_names)}; the model "
            f"has {choices(model.joint_names)}. Give its runs, or the part of a run that is its own"
        )
    for field in ("placement", "screw", "gravity"):
        off = np.abs(getattr(other, field) - getattr(model, field)).max(initial=0.0)
        if off > SAME_GEOMETRY:
            raise StateError(
                f"{name} is of another body: its joints have the same names, but its {field} "
                f"differs by {off:.3g}. Build the model as the run's was"
            )
    if len(part.t) < LEAST_SAMPLES:
        raise StateError(f"{name} has {len(part.t)} states; record {LEAST_SAMPLES} or more")
    if not part.tau.any():
        raise StateError(f"{name} has no torques: tau is zero at all times. Record a driven run")
