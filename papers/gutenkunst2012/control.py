"""Chapter 6: feedback linearization, PID and pole placement on the double pendulum."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from modurob import Model, examples, simulate
from papers import figures
from papers.claims import Claims

KP, KI, KD = 10.0, 1.0, 4.0  # §6.2
POLES = ((-2.0, -3.0), (-5.0, -10.0))  # (6.38); (6.37a) says otherwise: erratum 12
STEP = np.ones(2)  # [rad] both joints
TOLERANCE = 1e-11
PID_TIME, POLE_TIME = 10.0, 4.0  # [s]
NEAR = 0.95  # of the step


def reproduce(claims: Claims) -> None:
    """Both controllers, compared with the linear systems they make of the pendulum."""
    claims.working_on("control of the double pendulum")
    model = examples.double_pendulum().model("physical")
    rng = np.random.default_rng(6)
    q, (v, a) = rng.uniform(-2, 2, 2), rng.standard_normal((2, 2))
    claims.check(
        "linearized", np.abs(model.forward_dynamics(q, v, torque(model, q, v, a)) - a).max()
    )
    t_pid, q_pid, linear_pid = _pid(model)
    claims.check("pid", np.abs(q_pid - linear_pid).max())
    gains = [np.poly(poles)[:0:-1].tolist() for poles in POLES]  # of position, of velocity
    claims.check("gains", gains)
    t, q, linear = _placed(model, np.array(gains))
    claims.check("poles", np.abs(q - linear).max())
    reached = [t[np.argmax(q[:, k] >= NEAR)] for k in range(2)]
    claims.check("faster", reached[0] / reached[1])
    _draw(claims, "fig_6_4_pid.png", "Feedback linearization and PID", t_pid, q_pid, linear_pid)
    _draw(claims, "fig_6_6_poles.png", "Feedback linearization and pole placement", t, q, linear)


def torque(model: Model, q: np.ndarray, v: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(6.23): tau = M wanted + C v + N, as it is printed."""
    M, C, N = model.closed_form(q, v)
    return M @ wanted + C @ v + N


def _pid(model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, angles, and the angles of the linear loop; the integral is part of the state."""

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        q, v, integral = y[:2], y[2:4], y[4:]
        wanted = KP * (STEP - q) + KI * integral - KD * v
        return np.concatenate(
            [v, model.forward_dynamics(q, v, model.inverse_dynamics(q, v, wanted)), STEP - q]
        )

    t = np.linspace(0, PID_TIME, 401)
    found = (
        solve_ivp(rates, (0, PID_TIME), np.zeros(6), "DOP853", t, rtol=TOLERANCE, atol=TOLERANCE)
        .y[:2]
        .T
    )
    # (q - 1, q', integral): linear, with the matrix exponential for a solution
    A = np.array([[0, 1, 0], [-KP, -KD, KI], [-1, 0, 0]])
    step = expm(A * t[1])
    z, linear = np.array([-1.0, 0.0, 0.0]), []
    for _ in t:
        linear.append(1 + z[0])
        z = step @ z
    return t, found, np.stack([linear, linear], axis=1)


def _placed(model: Model, gains: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, angles, and the sums of exponentials that the poles promise."""

    def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return model.inverse_dynamics(q, v, gains[:, 0] * (STEP - q) - gains[:, 1] * v)

    found = simulate(
        model, [0, 0], [0, 0], POLE_TIME, controller, "DOP853",
        rtol=TOLERANCE, atol=TOLERANCE, record=0.005,
    )  # fmt: skip
    linear = [
        1 + (p2 * np.exp(p1 * found.t) - p1 * np.exp(p2 * found.t)) / (p1 - p2) for p1, p2 in POLES
    ]
    return found.t, found.q, np.stack(linear, axis=1)


def _draw(
    claims: Claims, name: str, headline: str, t: np.ndarray, q: np.ndarray, linear: np.ndarray
) -> None:
    drawn, axes = figures.figure(1, size=(8.4, 3.4))
    plane = axes[0, 0]
    for k, width in ((1, 5.0), (0, 2.2)):  # where both are one line, the wider shows
        plane.plot(t, q[:, k], color=figures.PALETTE[k], lw=width, label=f"joint {k + 1}")
    for k in range(2):
        label = "linear system" if k else None
        plane.plot(t, linear[:, k], color=figures.INK, lw=1.1, ls=(0, (4, 4)), label=label)
    plane.axhline(1.0, color=figures.FAINT, lw=1.0, ls=(0, (1, 2)))
    plane.set_xlim(0, t[-1])
    plane.set_xlabel("time [s]", color=figures.INK)
    plane.set_ylabel("angle [rad]", color=figures.INK)
    figures.legend(plane, loc="lower right")
    figures.title(drawn, headline)
    figures.save(drawn, claims.picture(name))
