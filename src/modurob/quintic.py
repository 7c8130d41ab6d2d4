"""Polynomials of degree five between two states: position, velocity and acceleration join."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Curve(NamedTuple):
    """A value and its first two derivatives by time, arrays of one shape."""

    x: Any
    dx: Any
    ddx: Any


def coefficients(h: Any, start: Curve, end: Curve) -> tuple[Any, ...]:
    """Return c0 to c5 of ``x(u) = sum c_k u^k``, u from 0 at `start` to 1 at `end`.

    Args:
        h: Seconds between the two states; a number, or an array that fits to theirs.
        start, end: (...) states at u = 0 and u = 1.
    """
    c0, c1, c2 = start.x, h * start.dx, 0.5 * h * h * start.ddx
    # what the cubic, quartic and quintic terms must add up to at u = 1, by derivative
    e0 = end.x - c0 - c1 - c2
    e1 = h * end.dx - c1 - 2 * c2
    e2 = h * h * end.ddx - 2 * c2
    c3, c4 = 10 * e0 - 4 * e1 + 0.5 * e2, -15 * e0 + 7 * e1 - e2
    return c0, c1, c2, c3, c4, 6 * e0 - 3 * e1 + 0.5 * e2


def value(c: tuple[Any, ...], u: Any) -> Any:
    """(...) the polynomial of `coefficients` at u from 0 to 1."""
    c0, c1, c2, c3, c4, c5 = c
    return c0 + u * (c1 + u * (c2 + u * (c3 + u * (c4 + u * c5))))


def between(u: Any, h: Any, start: Curve, end: Curve) -> Curve:
    """The quintic that joins two states h seconds apart, at u from 0 to 1, with derivatives."""
    c = coefficients(h, start, end)
    _, c1, c2, c3, c4, c5 = c
    dx = c1 + u * (2 * c2 + u * (3 * c3 + u * (4 * c4 + u * 5 * c5)))
    ddx = 2 * c2 + u * (6 * c3 + u * (12 * c4 + u * 20 * c5))
    return Curve(value(c, u), dx / h, ddx / (h * h))


def blend(t: np.ndarray, duration: float) -> Curve:
    """(m,) from 0 at t <= 0 to 1 at t >= duration, at rest at both ends (minimum jerk)."""
    u = np.clip(t / duration, 0.0, 1.0)
    x = u**3 * (10 + u * (6 * u - 15))
    dx = 30 * (u * (1 - u)) ** 2 / duration
    return Curve(x, dx, 60 * u * (1 - u) * (1 - 2 * u) / duration / duration)
