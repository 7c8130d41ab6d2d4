"""The crab in modurob, MuJoCo and Pinocchio."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from modurob import Model, Organism, Trajectory, simulate
from modurob.verification.engines import Mujoco, Pinocchio
from papers import figures
from papers.claims import Claims

SECOND, PATH = 1.0, 5.0  # [s]
TORQUE, HOLD = 0.05, 0.02  # [N m], [s]: random, held piecewise
TOLERANCE = 1e-12
STEPS = (1000, 2000)  # of MuJoCo's RK4 in the second, extrapolated
ORDER = 4  # of RK4
SEED = 5


def claims_of(key: str) -> tuple[str, ...]:
    """What `reproduce` looks at."""
    moving = ("fall_mujoco", "fall_pinocchio", "driven_mujoco", "driven_pinocchio")
    return (key,) if key == "dyads_path" else (*moving, "path_mujoco", "path_pinocchio")


def reproduce(claims: Claims, organism: Organism, hinges: str, key: str) -> None:
    """A second of motion, and the accelerations along a path of five."""
    model = organism.model(hinges)
    mujoco, pinocchio = _unlimited(Mujoco(model)), Pinocchio(model)
    rng = np.random.default_rng(SEED)
    q = 0.3 * rng.standard_normal(model.nq)
    table = rng.standard_normal((int(PATH / HOLD) + 1, model.nv))
    path = _ours(model, q, TORQUE * table, PATH)
    errors = {
        "mujoco": np.abs(_mujoco_accelerations(mujoco, path) - path.a).max(),
        "pinocchio": np.abs(_pinocchio_accelerations(pinocchio, path) - path.a).max(),
    }
    if key == "dyads_path":
        claims.check(key, max(errors.values()))
        return
    for name, error in errors.items():
        claims.check(f"{key}_{name}", error)
    for kind, size in (("fall", 0.0), ("driven", TORQUE)):
        torques = size * table
        ours = _ours(model, q, torques, SECOND)
        state = np.concatenate([ours.q[-1], ours.v[-1]])
        claims.check(f"{kind}_mujoco", np.abs(_extrapolated(mujoco, q, torques) - state).max())
        claims.check(f"{kind}_pinocchio", np.abs(_driven(pinocchio, q, torques) - state).max())
        _draw(claims, f"fig_11_crab_{kind}.png", kind, ours, mujoco, torques, q)


def _unlimited(engine: Mujoco) -> Mujoco:
    """MuJoCo without its stops at the joint limits, which it solves in its own way."""
    options = engine.engine.peer.opt
    options.disableflags |= int(engine.mujoco.mjtDisableBit.mjDSBL_LIMIT)
    options.integrator = engine.mujoco.mjtIntegrator.mjINT_RK4
    return engine


def _ours(model: Model, q: np.ndarray, torques: np.ndarray, duration: float) -> Trajectory:
    return simulate(
        model, q, None, duration, lambda t, q, v: torques[int(t / HOLD + 1e-6)], "DOP853",
        rtol=TOLERANCE, atol=TOLERANCE, sample_time=HOLD, record=0.01,
    )  # fmt: skip


# -- MuJoCo ----------------------------------------------------------------------------------------


def _mujoco_accelerations(engine: Mujoco, path: Trajectory) -> np.ndarray:
    """At every sample of our path, by MuJoCo's forward dynamics."""
    found = []
    for q, v, tau in zip(path.q, path.v, path.tau, strict=True):
        engine.engine.put(engine.data, q, v)
        engine.data.ctrl[:] = tau
        engine.mujoco.mj_forward(engine.engine.peer, engine.data)
        found.append(engine.engine.to_ours(q, engine.data.qacc))
    return np.array(found)


def _stepped(engine: Mujoco, q: np.ndarray, torques: np.ndarray, steps: int) -> np.ndarray:
    """(steps + 1, 2 n) states over a second of MuJoCo's own integration."""
    peer, data, found = engine.engine.peer, engine.data, []
    peer.opt.timestep = SECOND / steps
    engine.mujoco.mj_resetData(peer, data)
    engine.engine.put(data, q, np.zeros(len(q)))
    for k in range(steps + 1):
        found.append(np.concatenate(engine.engine.state(data)))
        data.ctrl[:] = torques[int(k * SECOND / steps / HOLD + 1e-6)]
        engine.mujoco.mj_step(peer, data)
    return np.array(found)


def _extrapolated(engine: Mujoco, q: np.ndarray, torques: np.ndarray) -> np.ndarray:
    """The last state, from two step sizes: the leading error is taken away."""
    coarse, fine = (_stepped(engine, q, torques, steps)[-1] for steps in STEPS)
    return fine + (fine - coarse) / (2**ORDER - 1)


# -- Pinocchio -------------------------------------------------------------------------------------


def _pinocchio_accelerations(engine: Pinocchio, path: Trajectory) -> np.ndarray:
    rows = zip(path.q, path.v, path.tau, strict=True)
    return np.array([engine.forward_dynamics(q, v, tau) for q, v, tau in rows])


def _driven(engine: Pinocchio, q: np.ndarray, torques: np.ndarray) -> np.ndarray:
    """The last state: SciPy integrates Pinocchio's accelerations, hold by hold."""
    n = len(q)
    state = np.concatenate([q, np.zeros(n)])
    for k in range(round(SECOND / HOLD)):

        def rates(t: float, y: np.ndarray, tau: np.ndarray = torques[k]) -> np.ndarray:
            return np.concatenate([y[n:], engine.forward_dynamics(y[:n], y[n:], tau)])

        span = (k * HOLD, (k + 1) * HOLD)
        state = solve_ivp(rates, span, state, "DOP853", rtol=TOLERANCE, atol=TOLERANCE).y[:, -1]
    return state


# -- picture ---------------------------------------------------------------------------------------


def _draw(
    claims: Claims,
    name: str,
    kind: str,
    ours: Trajectory,
    engine: Mujoco,
    torques: np.ndarray,
    q: np.ndarray,
) -> None:
    """Positions, velocities and accelerations of the joints, MuJoCo dashed: Fig. 11."""
    every = STEPS[0] // (len(ours.t) - 1)
    states = _stepped(engine, q, torques, STEPS[0])[::every]
    n = len(q)
    theirs = [states[:, :n], states[:, n:], _mujoco_accelerations(engine, ours)]
    labels = ("angle [rad]", "velocity [rad/s]", "acceleration [rad/s²]")
    drawn, axes = figures.figure(3, size=(8.4, 6.6), sharex=True)
    rows = zip(axes[:, 0], labels, (ours.q, ours.v, ours.a), theirs, strict=True)
    dashes: dict[str, Any] = {"color": figures.INK, "lw": 1.0, "ls": (0, (4, 4))}
    for plane, label, mine, other in rows:
        for k, joint in enumerate(ours.model.joint_names):
            plane.plot(ours.t, mine[:, k], color=figures.PALETTE[k], lw=2.0, label=joint)
            plane.plot(ours.t, other[:, k], label="MuJoCo" if k == n - 1 else None, **dashes)
        plane.set_ylabel(label, color=figures.INK)
    figures.legend(axes[0, 0], loc="upper left", bbox_to_anchor=(1.0, 1.02))
    axes[-1, 0].set_xlabel("time [s]", color=figures.INK)
    axes[-1, 0].set_xlim(0, SECOND)
    words = {"fall": "The crab falls", "driven": "The crab under random torques"}
    figures.title(drawn, words[kind])
    drawn.align_ylabels(list(axes[:, 0]))
    figures.save(drawn, claims.picture(name))
