"""Least squares for the parameters of a body, reduced to a small triangle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from modurob.errors import StateError, choices
from modurob.identification.base import IdentifiableColumns, base_columns
from modurob.identification.parameters import ParameterSet
from modurob.identification.runs import Samples

CHUNK = 100_000  # blocks of the regressor, joints times bodies times states, held at once
REWEIGHTED = 3  # times that the noise of the joints is estimated from the fit before
NOISE_FLOOR = 0.01  # of a joint's torque: no model of friction or filter of velocities is better
UNSEEN = 1e3  # relative standard error of a direction that a run says nothing about
INVOLVED = 0.3  # share of an unseen direction from which on a parameter is named
MOST_NAMED = 6  # parameters in a message


@dataclass(frozen=True, eq=False)
class Problem:
    """Weighted least squares for the base parameters, reduced to a triangle: ``R beta = z``.

    Attributes:
        R, z: (b, b), (b,) with residuals in standard deviations of the noise.
        noise: (nv,) standard deviations of the torques. [N m, N]
        delay: Of the torques behind the motion. [s]
    """

    parameters: ParameterSet
    base: IdentifiableColumns
    R: np.ndarray
    z: np.ndarray
    noise: np.ndarray
    delay: float

    @cached_property
    def _by_theta(self) -> np.ndarray:
        return self.R @ self.base.mixing

    def residual(self, x: np.ndarray) -> np.ndarray:
        """(b,) residuals of the runs, without the constant rest."""
        return self._by_theta @ self.parameters.theta(x) - self.z

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """(b, size) of `residual`."""
        return self._by_theta @ self.parameters.theta_derivative(x)

    def solve(self, free: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """(size,) most probable x, with coordinates outside of `free` (size,) at zero.

        Args:
            errors: (size,) relative standard deviations of the datasheets' numbers.
        """
        from scipy.optimize import least_squares

        x = np.zeros(self.parameters.size)

        def whole(part: np.ndarray) -> np.ndarray:
            full = x.copy()
            full[free] = part
            return full

        def residuals(part: np.ndarray) -> np.ndarray:
            full = whole(part)
            prior, _ = self.parameters.prior(full)
            return np.concatenate([self.residual(full), prior[free] / errors[free]])

        def slopes(part: np.ndarray) -> np.ndarray:
            full = whole(part)
            _, slope = self.parameters.prior(full)
            return np.vstack([self.jacobian(full)[:, free], np.diag(slope[free] / errors[free])])

        jac: Any = slopes  # SciPy's annotation knows only the names of its methods
        return whole(least_squares(residuals, x[free], jac, method="lm").x)

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
    """Reduce all samples to a triangle, weighted by the noise that is left at each joint."""
    base, model = base_columns(parameters), parameters.model
    b, nv, count = len(base.kept), model.nv, len(samples.q)
    # Columns: the delay first, so that a triangle below its first row is free of it; what the
    # parameters do not cover is known and goes to the right side, the last column.
    blocks = np.zeros((nv, 0, b + 2))
    chunk = max(1, CHUNK // (nv * model.nbodies))
    for k in range(0, count, chunk):
        q, v, a, tau, rate = (x[k : k + chunk] for x in samples)
        Y = parameters.columns(q, v, a)
        rest = tau - model.inverse_dynamics(q, v, a) + Y @ parameters.given
        rows = np.concatenate([rate[..., None], Y[..., base.kept], rest[..., None]], axis=-1)
        blocks = triangle(np.concatenate([blocks, rows.swapaxes(0, 1)], axis=1))
    torque = np.sqrt(np.mean(samples.tau**2, axis=0))
    floor = NOISE_FLOOR * np.where(torque > 0, torque, torque.max())  # a free base feels none
    noise, best = np.ones(nv), np.zeros(b + 1)
    for _ in range(REWEIGHTED):
        whole = _weighted(blocks, noise)
        scale = np.linalg.norm(whole, axis=0)
        scale[scale == 0] = 1.0
        scaled = whole / scale
        best = np.linalg.lstsq(scaled[:, :-1], scaled[:, -1], rcond=None)[0]
        best *= scale[-1] / scale[:-1]
        errors = blocks[..., :-1] @ best - blocks[..., -1]
        noise = np.maximum(np.sqrt((errors**2).sum(axis=1) / (count - (b + 1) / nv)), floor)
    whole = _weighted(blocks, noise)[1:-1]
    return Problem(parameters, base, whole[:, 1:-1], whole[:, -1], noise, -float(best[0]))


def triangle(rows: np.ndarray) -> np.ndarray:
    """(..., k, n) R of the QR decomposition: the same least squares with fewer rows."""
    return np.asarray(np.linalg.qr(rows, mode="r"))


def _weighted(blocks: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """One triangle from those of all joints, in units of the noise."""
    return triangle((blocks / noise[:, None, None]).reshape(-1, blocks.shape[-1]))
