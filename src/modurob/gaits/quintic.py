"""Polynomials of degree five between knots: position, velocity and acceleration join."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Motion(NamedTuple):
    """A value and its first two derivatives by time, (m, n) each."""

    w: np.ndarray
    dw: np.ndarray
    ddw: np.ndarray


def between(u: np.ndarray, h: float, start: Motion, end: Motion) -> Motion:
    """The quintic that joins two states which lie h seconds apart (Hermite).

    Args:
        u: (m, 1) how far on the way, from 0 to 1.
        start, end: (m, n) states at u = 0 and u = 1.
    """
    c0, c1, c2 = start.w, h * start.dw, 0.5 * h * h * start.ddw
    # what the cubic, quartic and quintic terms must add up to at u = 1, by derivative
    e0 = end.w - c0 - c1 - c2
    e1 = h * end.dw - c1 - 2 * c2
    e2 = h * h * end.ddw - 2 * c2
    c3 = 10 * e0 - 4 * e1 + 0.5 * e2
    c4 = -15 * e0 + 7 * e1 - e2
    c5 = 6 * e0 - 3 * e1 + 0.5 * e2
    w = c0 + u * (c1 + u * (c2 + u * (c3 + u * (c4 + u * c5))))
    dw = c1 + u * (2 * c2 + u * (3 * c3 + u * (4 * c4 + u * 5 * c5)))
    ddw = 2 * c2 + u * (6 * c3 + u * (12 * c4 + u * 20 * c5))
    return Motion(w, dw / h, ddw / (h * h))


def through(samples: np.ndarray, u: np.ndarray, h: float) -> Motion:
    """A quintic spline through equidistant samples, between the two in the middle of four.

    Slope and curvature at a sample are the central differences with its neighbors, so the spline is
    local: nothing that comes later changes it. Between samples of size 1 it stays below `REACH`.

    Args:
        samples: (4, m, n) the two samples before and the two after each time.
        u: (m, 1) how far between the middle ones, from 0 to 1.
        h: Seconds between samples.
    """
    before, start, end, after = samples
    slopes = (end - before) / (2 * h), (after - start) / (2 * h)
    bends = (end - 2 * start + before) / h**2, (after - 2 * end + start) / h**2
    return between(u, h, Motion(start, slopes[0], bends[0]), Motion(end, slopes[1], bends[1]))


# Largest value that `through` can reach between samples of size 1: the sum of the weights' sizes at
# u = 1/2, where they are -1/16, 9/16, 9/16, -1/16.
REACH = 1.25


def blend(t: np.ndarray, duration: float) -> Motion:
    """From 0 at t <= 0 to 1 at t >= duration with v = a = 0 at both ends; (m,) each."""
    u = np.clip(t / duration, 0.0, 1.0)
    w = u**3 * (10 + u * (6 * u - 15))
    dw = 30 * (u * (1 - u)) ** 2 / duration
    ddw = 60 * u * (1 - u) * (1 - 2 * u) / duration**2
    return Motion(w, dw, ddw)
