"""The turn or slide of a joint that brings a point closest to a line.

A joint moves the center of mass on a circle ``c + a cos(theta) + b sin(theta)``, or along a
segment. Seen along the line, the circle is an ellipse and the line a point, so the question is
which point of an ellipse is closest to a point. The critical angles are the roots of a quartic,
which is badly conditioned where two of them meet; in the axes of the ellipse they are roots of

    F(u) = (e0 y0 / (u + D))^2 + (e1 y1 / u)^2 - 1,      D = e0^2 - e1^2,

which is convex on each side of its poles, so that Newton's method, started on the right side, runs
into the root without overshooting. The root with u > 0 is the global minimum; between the poles
there may be a second, local one, which matters where limits forbid the first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NEWTON_STEPS = 60  # far more than ever needed: it doubles its digits once it is near
SAME = 1e-12  # of the scale: distances this close count as equal
ROUNDING = 1e-14  # relative step at which Newton's method is done
FULL_TURN = 2 * np.pi


class Circles(NamedTuple):
    """Points ``center + cosine cos(theta) + sine sin(theta)``; theta = 0 is where they are now."""

    center: np.ndarray  # (..., 3) [m]
    cosine: np.ndarray  # (..., 3) and
    sine: np.ndarray  # (..., 3) radii at right angles, of equal length [m]

    def at(self, theta: np.ndarray) -> np.ndarray:
        """(..., 3) points at angles (...). [m]"""
        cos, sin = np.cos(theta)[..., None], np.sin(theta)[..., None]
        return self.center + self.cosine * cos + self.sine * sin


def circle_of(axis: np.ndarray, through: np.ndarray, point: np.ndarray) -> Circles:
    """The circle of a point (..., 3) about an axis (..., 3) through another point (..., 3). [m]"""
    w = point - through
    along = axis * np.sum(axis * w, axis=-1, keepdims=True)
    return Circles(through + along, w - along, np.cross(axis, w))


def turns(
    circles: Circles,
    line_point: np.ndarray,
    line_direction: np.ndarray,
    lower: np.ndarray | float = -np.inf,
    upper: np.ndarray | float = np.inf,
) -> np.ndarray:
    """(...) turns from here that bring the points closest to the line. [rad]

    Where every turn is as good (a circle without radius, or about the line itself) the answer is 0.
    Where two are equally good, the one that ends further back along the line wins: the lower one,
    if the line's direction is up.

    Args:
        line_point, line_direction: (..., 3) the line; unit direction.
        lower, upper: (...) limits of the turn; infinite where there is none.
    """
    ellipse = _seen_along(circles, line_point, line_direction)
    shape = np.shape(ellipse.middle)
    lower, upper = np.broadcast_to(lower, shape), np.broadcast_to(upper, shape)
    best = _within(_minimum(ellipse), lower, upper)
    best = np.where(ellipse.flat, np.clip(0.0, lower, upper), best)
    doubtful = ~ellipse.flat & (np.isnan(best) | ellipse.mirrored)
    if doubtful.any():
        some = Circles(*(np.broadcast_to(x, (*shape, 3))[doubtful] for x in circles))
        part = _Ellipse(*(x[doubtful] for x in ellipse))
        up = np.broadcast_to(line_direction, (*shape, 3))[doubtful]
        low, high = lower[doubtful], upper[doubtful]
        second = _within(_second_minimum(part), low, high)
        best[doubtful] = _best([best[doubtful], second, low, high], part, some, up)
    return best


def slides(
    direction: np.ndarray,
    point: np.ndarray,
    line_point: np.ndarray,
    line_direction: np.ndarray,
    lower: np.ndarray | float = -np.inf,
    upper: np.ndarray | float = np.inf,
) -> np.ndarray:
    """(...) slides from here that bring the points closest to the line. [m]

    Args:
        direction: (..., 3) motion of the point per unit of slide (not longer than one).
        point: (..., 3) position now. [m]
        line_point, line_direction: (..., 3) the line; unit direction.
        lower, upper: (...) limits of the slide.
    """
    across = direction - line_direction * _dot(direction, line_direction)[..., None]
    offset = line_point - point
    square = _dot(across, across)
    moves = square > SAME**2 * np.maximum(_dot(direction, direction), np.finfo(float).tiny)
    best = np.where(moves, _dot(across, offset) / np.where(moves, square, 1.0), 0.0)
    return np.clip(best, lower, upper)


class _Ellipse(NamedTuple):
    """Circles seen along lines: complex numbers ``middle + plus exp(i th) + minus exp(-i th)``."""

    middle: np.ndarray  # with the line at 0
    plus: np.ndarray
    minus: np.ndarray
    phase: np.ndarray  # angle of the ellipse's own parameter at th = 0
    major: np.ndarray  # semi-axes e0 >= e1 >= 0
    minor: np.ndarray
    y_major: np.ndarray  # coordinates y0, y1 >= 0 of the line, mirrored into one quadrant
    y_minor: np.ndarray
    flip_cosine: np.ndarray  # signs that undo the mirroring
    flip_sine: np.ndarray
    spread: np.ndarray  # D = e0^2 - e1^2
    flat: np.ndarray  # all points are equally far from the line
    mirrored: np.ndarray  # the line lies on the long axis: each point has an equal

    def distance(self, theta: np.ndarray) -> np.ndarray:
        turn = np.exp(1j * theta)
        return np.abs(self.middle + self.plus * turn + self.minus * turn.conj())

    def angle(self, cosine: np.ndarray, sine: np.ndarray) -> np.ndarray:
        """Turn that leads to a point of the mirrored ellipse."""
        return np.arctan2(self.flip_sine * sine, self.flip_cosine * cosine) - self.phase


def _seen_along(circles: Circles, point: np.ndarray, direction: np.ndarray) -> _Ellipse:
    first, second = _across(np.asarray(direction, dtype=float))

    def seen(x: np.ndarray) -> np.ndarray:
        return _dot(x, first) + 1j * _dot(x, second)

    middle, a, b = seen(circles.center - point), seen(circles.cosine), seen(circles.sine)
    plus, minus = (a - 1j * b) / 2, (a + 1j * b) / 2
    r, s = np.abs(plus), np.abs(minus)
    alpha, beta = np.angle(plus), np.angle(minus)
    y = -middle * np.exp(-0.5j * (alpha + beta))
    sense = np.where(r < s, -1.0, 1.0)  # which way the ellipse is run through
    major, minor, spread = r + s, np.abs(r - s), 4 * r * s
    along, across = np.real(y), np.imag(y)
    y0, y1 = np.abs(along), np.abs(across)
    scale = major**2 + y0**2 + y1**2
    return _Ellipse(
        middle=middle,
        plus=plus,
        minus=minus,
        phase=(alpha - beta) / 2,
        major=major,
        minor=minor,
        y_major=y0,
        y_minor=y1,
        flip_cosine=np.where(along < 0, -1.0, 1.0),
        flip_sine=np.where(across < 0, -sense, sense),
        spread=spread,
        flat=major * y0 + minor * y1 + spread <= SAME * scale,
        mirrored=minor * y1 <= SAME * scale,
    )


def _minimum(ellipse: _Ellipse) -> np.ndarray:
    """(...) turns to the closest points: the root u > 0 of F."""
    X, Y = ellipse.major * ellipse.y_major, ellipse.minor * ellipse.y_minor
    D = ellipse.spread
    u = np.maximum(Y, X - D)  # one of the two squares is 1 here, so that F >= 0
    u = _newton(X, Y, D, u, 1.0)
    return _turn_at(ellipse, X, Y, u, D + u, 1.0)


def _second_minimum(ellipse: _Ellipse) -> np.ndarray:
    """(...) turns to the local minima across the long axis: the root -D < u < 0 next to 0."""
    X, Y = ellipse.major * ellipse.y_major, ellipse.minor * ellipse.y_minor
    D = ellipse.spread
    exists = np.cbrt(X) ** 2 + np.cbrt(Y) ** 2 < np.cbrt(D) ** 2  # inside of the evolute
    w = np.where(exists, Y, 0.0)
    w = _newton(np.where(exists, X, 0.0), w, D, w, -1.0)
    return np.where(exists, _turn_at(ellipse, X, Y, w, D - w, -1.0), np.nan)


def _newton(X: np.ndarray, Y: np.ndarray, D: np.ndarray, u: np.ndarray, sign: float) -> np.ndarray:
    """Root of (X / (D + sign u))^2 + (Y / u)^2 = 1 above a start where the left is not below 1."""
    settled = np.where(u > 0, 0.0, 1.0)  # there is no root above 0: nothing to divide
    active = settled == 0  # each ends by itself: alone it takes the same steps as among others
    for _ in range(NEWTON_STEPS):
        far, near = D + sign * u + settled, u + settled
        p, q = (X / far) ** 2, (Y / near) ** 2
        slope = q / near + sign * p / far
        step = (p + q - 1) / (2 * slope + settled)
        step = np.where(active & (step > 0), step, 0.0)
        u = u + step
        active &= step > ROUNDING * u
        if not active.any():
            break
    return u


def _turn_at(
    ellipse: _Ellipse, X: np.ndarray, Y: np.ndarray, u: np.ndarray, far: np.ndarray, side: float
) -> np.ndarray:
    cosine = np.minimum(X / np.where(far > 0, far, 1.0), 1.0)
    # the line on the long axis: F has no root, and the sine follows from the cosine
    sine = np.where(u > 0, Y / np.where(u > 0, u, 1.0), np.sqrt(1 - cosine**2))
    return ellipse.angle(cosine, side * sine)


def _within(theta: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The angle, or the same point a full turn on, nearest to 0 within limits; nan if none is."""
    theta = theta - FULL_TURN * np.round(theta / FULL_TURN)
    other = theta - np.copysign(FULL_TURN, theta)
    allowed = (theta >= lower) & (theta <= upper)
    return np.where(allowed, theta, np.where((other >= lower) & (other <= upper), other, np.nan))


def _best(
    options: list[np.ndarray], ellipse: _Ellipse, circles: Circles, up: np.ndarray
) -> np.ndarray:
    """The option closest to the line; of equally close ones the lower, then the nearer one."""
    found, size = options[0], np.abs(ellipse.middle) + ellipse.major
    for option in (np.where(np.isfinite(x), x, np.nan) for x in options[1:]):
        gain = ellipse.distance(found) - ellipse.distance(option)
        drop = _dot(circles.at(found) - circles.at(option), up)
        nearer = np.abs(found) > np.abs(option)
        level = np.abs(drop) <= SAME * size
        preferred = np.where(level, nearer, drop > 0)
        better = np.where(np.abs(gain) <= SAME * size, preferred, gain > 0)
        found = np.where(np.isnan(found) | better, np.where(np.isnan(option), found, option), found)
    return found


def _across(direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors at right angles to unit directions (..., 3) and to each other."""
    x, y, z = direction[..., 0], direction[..., 1], direction[..., 2]
    sign = np.where(z < 0, -1.0, 1.0)
    a = -1 / (sign + z)
    b = x * y * a
    first = np.stack([1 + sign * x * x * a, sign * b, -sign * x], axis=-1)
    return first, np.stack([b, sign + y * y * a, -y], axis=-1)


def _dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.sum(x * y, axis=-1)
