"""The fastest swing-free transport with a crane: modurob's dynamics, CasADi's derivatives, IPOPT.

A wagon on a rail carries a load on a rod; only the wagon has a motor. IPOPT finds the forces that
bring both from rest to rest, 4 m away, in the least time, and modurob's simulator checks them.

Run it with `python examples/08_crane_casadi.py`; it needs `pip install 'modurob[casadi]'`.
"""

from __future__ import annotations

import sys
import time

import casadi as ca
import numpy as np

import modurob as mr
from modurob.interop import casadi as mc

DISTANCE, FORCE, SWING = 4.0, 6.0, 0.25  # [m], [N] limit of the motor, [rad] limit of the load
INTERVALS = 40  # in which the force is constant
REACHED = 1e-3  # [m, rad, m/s, rad/s] of the simulated end


def plan(model: mr.Model) -> tuple[float, np.ndarray]:
    """Duration and forces (intervals,) of the fastest transport."""
    dynamics = mc.graph(model, "forward_dynamics")  # operations of CasADi: exact Hessians
    x, u, h = ca.SX.sym("x", 4), ca.SX.sym("u"), ca.SX.sym("h")

    def rate(x: ca.SX) -> ca.SX:
        return ca.vertcat(x[2:], dynamics(x[:2], x[2:], ca.vertcat(u, 0)))

    k1 = rate(x)
    k2 = rate(x + h / 2 * k1)
    k3 = rate(x + h / 2 * k2)
    k4 = rate(x + h * k3)
    rk4 = ca.Function("rk4", [x, u, h], [x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)])

    opti = ca.Opti()
    X, U, T = opti.variable(4, INTERVALS + 1), opti.variable(1, INTERVALS), opti.variable()
    opti.minimize(T)
    opti.subject_to(X[:, 1:] == rk4.map(INTERVALS)(X[:, :-1], U, T / INTERVALS))
    opti.subject_to(X[:, 0] == 0)
    opti.subject_to(X[:, -1] == ca.vertcat(DISTANCE, 0, 0, 0))
    opti.subject_to(opti.bounded(-FORCE, U, FORCE))
    opti.subject_to(opti.bounded(-SWING, X[1, :], SWING))
    opti.subject_to(opti.bounded(1, T, 20))
    opti.set_initial(T, 6)
    opti.set_initial(X[0, :], np.linspace(0, DISTANCE, INTERVALS + 1))
    opti.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
    found = opti.solve()
    print(f"IPOPT: {found.stats()['iter_count']} iterations, {found.stats()['return_status']}")
    return float(found.value(T)), np.asarray(found.value(U)).ravel()


def main() -> int:
    model = mr.examples.crane(l=5.0).model("physical")
    begin = time.perf_counter()
    duration, forces = plan(model)
    print(f"{DISTANCE:g} m in {duration:.3f} s, planned in {time.perf_counter() - begin:.1f} s")

    interval = duration / INTERVALS

    def force(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array([forces[min(round(t / interval), INTERVALS - 1)], 0.0])

    run = mr.simulate(
        model, None, None, duration, force, integrator="RK4", dt=interval / 10,
        sample_time=interval,
    )  # fmt: skip
    end = np.concatenate([run.q[-1] - [DISTANCE, 0.0], run.v[-1]])
    swing = np.abs(run.q[:, 1]).max()
    print(f"simulated: largest error at the end {np.abs(end).max():.1e}, largest swing {swing:.3f}")
    return 0 if np.abs(end).max() < REACHED and swing < SWING + 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())
