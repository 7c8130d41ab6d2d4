"""A hundred arms at once: the two laws of section IV, stepped with batched equations.

Controllers take one state at a time; here their equations stand once more, two lines each, for all
seeds together. `control` shows that a seed moves as it does under the controllers themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modurob import Model
from papers.giusti2015.setting import (
    DISTURBED,
    DURATION,
    FINAL,
    KD,
    KEEP,
    KP,
    MEASURED,
    MOTION,
    SAMPLE,
)

LAWS = ("computed torque", "PD + gravity", "PD + gravity, told the desired velocity")
SIGMA = np.array([MEASURED, MEASURED, DISTURBED])[:, None, None]
CHUNK = 500  # samples of noise drawn at once, a multiple of all holds


def errors(model: Model, holds: Sequence[int]) -> np.ndarray:
    """(laws, seeds, N, 5) q - q_d each millisecond; a seed has the same noise under each law.

    Noise comes in the order in which `simulate` draws it: positions, velocities, inputs.

    Args:
        holds: For each seed, how many samples its noise stays the same.
    """
    streams = [np.random.default_rng(seed) for seed in range(len(holds))]
    q, v = np.zeros((2, len(LAWS), len(holds), model.nv))
    every, samples, kept = round(KEEP / SAMPLE), round(DURATION / SAMPLE), []
    noise = np.empty(0)
    for k in range(samples):
        if k % CHUNK == 0:
            drawn = [
                stream.standard_normal((CHUNK // hold, 3, model.nv)).repeat(hold, axis=0)
                for stream, hold in zip(streams, holds, strict=True)
            ]
            noise = SIGMA * np.stack(drawn, axis=2)  # (CHUNK, 3, seeds, 5)
        aim = MOTION(k * SAMPLE)
        if k % every == 0:
            kept.append(q - aim.q)
        n_q, n_v, n_tau = noise[k % CHUNK]
        tau = n_tau + _commands(model, q + n_q, v + n_v, *aim)
        v += SAMPLE * model.forward_dynamics(q, v, tau)
        q += SAMPLE * v
    kept.append(q - FINAL)
    return np.stack(kept, axis=2)


def _commands(
    model: Model, q: np.ndarray, v: np.ndarray, q_d: np.ndarray, v_d: np.ndarray, a_d: np.ndarray
) -> np.ndarray:
    """(laws, seeds, 5) what each law answers to what it sees: NEmod with other arguments."""
    e, rate = q_d - q, v_d - v
    v_model, a_model = np.zeros_like(q), np.zeros_like(q)
    v_model[0], a_model[0] = v[0], a_d + KP * e[0] + KD * rate[0]
    tau = model.inverse_dynamics(q, v_model, a_model)
    tau[1] += KP * e[1] - KD * v[1]
    tau[2] += KP * e[2] + KD * rate[2]
    return tau


def norms(errors: np.ndarray) -> np.ndarray:
    """(..., N) Euclidean norms of errors (..., N, 5). [rad and m]"""
    return np.linalg.norm(errors, axis=-1)


def integrated(norms: np.ndarray) -> np.ndarray:
    """(...,) integrals over the motion, by the trapezoidal rule."""
    return np.trapezoid(norms, dx=KEEP, axis=-1)
