"""Parameters of drives from a recorded motion: modurob's steps, JAX's derivatives, SciPy's fit.

A double pendulum swings under known voltages and is recorded with noise. Unknown are the gain of
each motor (torque for a volt) and the viscous friction of each joint. The run is a `lax.scan` over
modurob's step; JAX differentiates it by these parameters, and `scipy.optimize.least_squares` brings
the simulated motion onto the recorded one.

Run it with `python examples/10_drive_fit_jax.py`; it needs `pip install 'modurob[jax]'`.
"""

from __future__ import annotations

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares

import modurob as mr
from modurob.interop import jax as mj

DT, STEPS, NOISE = 0.01, 200, 2e-3  # [s], [rad] of the measured angles
TRUE = np.array([0.9, 0.5, 0.4, 0.2])  # gains [N m/V], then frictions [N m s/rad]
GUESS = np.array([0.5, 0.8, 0.1, 0.1])
WITHIN = 0.02  # relative error of every parameter


def main() -> int:
    jax.config.update("jax_enable_x64", True)
    model = mr.examples.double_pendulum(l1=1.0, l2=0.7, m1=1.0, m2=0.6).model("physical")
    step, times = mj.function(model, "step", dt=DT), DT * np.arange(STEPS)
    volts = np.stack([3 * np.sin(5 * times), 2 * np.cos(7 * times)], axis=-1)
    start = (jnp.array([0.8, -0.5]), jnp.zeros(2))

    @jax.jit
    def motion(parameters: jax.Array) -> jax.Array:
        """(steps, joints) angles of a run with gains and frictions. [rad]"""
        gains, frictions = parameters[:2], parameters[2:]

        def advance(state: tuple, u: jax.Array) -> tuple:
            q, v = step(*state, gains * u - frictions * state[1])
            return (q, v), q

        return jax.lax.scan(advance, start, volts)[1]

    noise = NOISE * np.random.default_rng(1).standard_normal((STEPS, 2))
    recorded = np.asarray(motion(TRUE)) + noise
    slopes = jax.jit(jax.jacfwd(motion))
    begin = time.perf_counter()
    fit = least_squares(
        lambda p: np.asarray(motion(p) - recorded).ravel(),
        GUESS,
        lambda p: np.asarray(slopes(p)).reshape(-1, len(p)),
    )
    print(f"{fit.nfev} runs of {STEPS} steps, {time.perf_counter() - begin:.1f} s")
    for name, true, found in zip(
        ("gain", "gain", "friction", "friction"), TRUE, fit.x, strict=True
    ):
        print(f"  {name:8s} {found:.4f}, true {true:g}")
    left = np.sqrt(np.mean(fit.fun**2))
    print(f"left: {1e3 * left:.2f} mrad, noise {1e3 * NOISE:.2f} mrad")
    reverse = jax.grad(lambda p: jnp.sum((motion(p) - recorded) ** 2))(fit.x)  # backpropagation
    print(f"gradient at the fit: {np.abs(reverse).max():.1e}")
    return 0 if np.all(np.abs(fit.x / TRUE - 1) < WITHIN) and np.abs(reverse).max() < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
