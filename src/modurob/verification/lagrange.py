"""Lagrange's equations of the two benchmarks of the documents: double pendulum and crane.

They are the printed ones and know nothing of modurob.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from modurob.errors import ModurobError
from modurob.model import Model
from modurob.model.validation import same_numbers
from modurob.organism import Organism, examples
from modurob.verification.check import CheckCase, CheckValue, relative

G = 9.81
FINER = 1e-13  # of the reference: its own error should not count
ROUNDING = 1e-10  # of the largest acceleration: M of the pendulum may have a condition of 1e4


PENDULUM = (
    "(m₁ + m₂) l₁ φ̈₁ + m₂ l₂ φ̈₂ cos(φ₁ − φ₂) + m₂ l₂ φ̇₂² sin(φ₁ − φ₂) + (m₁ + m₂) g sin φ₁ = 0",
    "l₁ φ̈₁ cos(φ₁ − φ₂) + l₂ φ̈₂ − l₁ φ̇₁² sin(φ₁ − φ₂) + g sin φ₂ = 0",
)
CRANE = (
    "(m₁ + m₂) ẍ + m₂ l φ̈ cos φ − m₂ l φ̇² sin φ = 0",
    "ẍ cos φ + l φ̈ + g sin φ = 0",
)
Accelerations = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (2,) of the joints at (q, v)


class LagrangeEquations(NamedTuple):
    """Equations of motion without torques, as printed in gutenkunst2012.

    Attributes:
        title: Body and source.
        lines: The equations, for people.
        symbols: Their symbols in words, with numbers.
        accelerations: Of the joints.
    """

    title: str
    lines: tuple[str, ...]
    symbols: str
    accelerations: Accelerations

    def __call__(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(2,) accelerations of the joints at a state. [rad/s^2, m/s^2]"""
        return self.accelerations(q, v)

    def solution(self, q: np.ndarray, v: np.ndarray, times: np.ndarray) -> np.ndarray:
        """(3, N, 2) positions, velocities and accelerations of the joints from a state on."""

        def rates(t: float, state: np.ndarray) -> list[float]:
            return [*state[2:], *self(state[:2], state[2:])]

        return _solved(rates, [*q, *v], times)


def printed(organism: Organism, model: Model) -> LagrangeEquations | None:
    """Lagrange's equations of a model without torques; None if it is no pendulum and no crane."""
    if organism.modules != ("m0", "m1", "m2"):
        return None
    kinds = [organism.kind(name) for name in organism.modules]
    sizes, (_, m1, m2) = [kind.size for kind in kinds], [kind.mass for kind in kinds]
    l1, l2 = (sizes[0] + sizes[1]) / 2, (sizes[1] + sizes[2]) / 2

    def pendulum(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        _, _, a, b = pendulum_rates(l1, l2, m1, m2)(0.0, np.cumsum([q, v], axis=1).ravel())
        return np.array([a, b - a])

    def crane(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array(crane_rates(m1, m2, sizes[2])(0.0, np.concatenate([q, v]))[2:])

    masses = f"m₁ = {m1:g} kg, m₂ = {m2:g} kg, g = {G} m/s²"
    for found, example, numbers in (
        (
            LagrangeEquations(
                "Double pendulum, gutenkunst2012 (5.8)", PENDULUM, "φ₁ and φ₂ are angles from the "
                f"vertical: q₁ and q₁ + q₂; l₁ = {l1:g} m, l₂ = {l2:g} m, {masses}", pendulum,
            ),
            examples.double_pendulum, (l1, l2, m1, m2),
        ),
        (
            LagrangeEquations(
                "Crane, gutenkunst2012 (5.15)", CRANE, "x is the place of the wagon, φ the angle "
                f"of the load from the vertical: q₁ and q₂; l = {sizes[2]:g} m, {masses}", crane,
            ),
            examples.crane, (m1, m2, sizes[2]),
        ),
    ):  # fmt: skip
        # no such example, say without mass
        with contextlib.suppress(ModurobError):
            if same_numbers(example(*numbers).model("physical"), model):
                return found
    return None


def compared(equations: LagrangeEquations, case: CheckCase) -> CheckValue:
    """Compare accelerations of a model with those of the printed equations."""
    ours = case.model.forward_dynamics(case.q, case.v, np.zeros(case.model.nv))
    theirs = [equations(q, v) for q, v in zip(case.q, case.v, strict=True)]
    note = "accelerations after gutenkunst2012 (5.8), (5.15)"
    return CheckValue(relative(ours, np.stack(theirs)), ROUNDING, note)


def pendulum_rates(l1: float, l2: float, m1: float, m2: float) -> Callable[..., list[float]]:
    """gutenkunst2012 (5.8): absolute angles, point masses on massless rods."""

    def rates(t: float, state: np.ndarray) -> list[float]:
        a, b, u, w = state
        c, s = np.cos(a - b), np.sin(a - b)
        M = [[(m1 + m2) * l1, m2 * l2 * c], [l1 * c, l2]]
        forces = [-m2 * l2 * w * w * s - (m1 + m2) * G * np.sin(a), l1 * u * u * s - G * np.sin(b)]
        return [u, w, *np.linalg.solve(M, forces)]

    return rates


def crane_rates(m1: float, m2: float, length: float) -> Callable[..., list[float]]:
    """gutenkunst2012 (5.15): wagon and angle."""

    def rates(t: float, state: np.ndarray) -> list[float]:
        _, phi, u, w = state
        M = [[m1 + m2, m2 * length * np.cos(phi)], [np.cos(phi), length]]
        forces = [m2 * length * w * w * np.sin(phi), -G * np.sin(phi)]
        return [u, w, *np.linalg.solve(M, forces)]

    return rates


def _solved(rates: Callable[..., list[float]], state: list[float], times: np.ndarray) -> np.ndarray:
    """(3, N, 2) of the printed equations."""
    solution = solve_ivp(
        rates, (0, times[-1]), state, "DOP853", rtol=FINER, atol=FINER, dense_output=True
    ).sol
    states = solution(times).T
    slopes = np.array([rates(0.0, each) for each in states])
    return np.stack([states[:, :2], states[:, 2:], slopes[:, 2:]])
