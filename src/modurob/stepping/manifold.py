"""Configurations with a free base: position, unit quaternion, joints.

The formulas are written for components, so that one state runs on plain floats (some microseconds)
and a batch on arrays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from modurob.model import Model
from modurob.spatial import so3

SMALL = 0.25  # squared angle below which the series below hold to rounding
# sin(x/2)/x, (1 - cos x)/x^2 and (x - sin x)/x^3 as polynomials in -x^2
HALF_SINC = [1 / (2 ** (2 * k + 1) * math.factorial(2 * k + 1)) for k in range(8)]
COSC = [1 / math.factorial(2 * k + 2) for k in range(8)]
SINCC = [1 / math.factorial(2 * k + 3) for k in range(8)]


def _series(coefficients: list[float], square: Any) -> Any:
    value = 0.0
    for coefficient in reversed(coefficients):
        value = coefficient - square * value
    return value


def _factors(square: Any) -> tuple[Any, Any, Any, Any]:
    """sin(x/2)/x, cos(x/2), (1 - cos x)/x^2, (x - sin x)/x^3 from x^2."""
    if isinstance(square, float):
        angle = math.sqrt(square)
        if square < SMALL:
            near = (_series(HALF_SINC, square), _series(COSC, square), _series(SINCC, square))
            return near[0], math.cos(angle / 2), near[1], near[2]
        s, c = math.sin(angle), math.cos(angle)
        return (
            math.sin(angle / 2) / angle,
            math.cos(angle / 2),
            (1 - c) / square,
            (angle - s) / (angle * square),
        )
    angle = np.sqrt(square)
    large = np.where(square < SMALL, 1.0, angle)
    small = np.where(square < SMALL, square, 0.0)
    pairs = (
        (_series(HALF_SINC, small), np.sin(large / 2) / large),
        (_series(COSC, small), (1 - np.cos(large)) / large**2),
        (_series(SINCC, small), (large - np.sin(large)) / large**3),
    )
    half, cosc, sincc = (np.where(square < SMALL, near, far) for near, far in pairs)
    return half, np.cos(angle / 2), cosc, sincc


def _cross(a: Any, b: Any) -> tuple[Any, Any, Any]:
    (ax, ay, az), (bx, by, bz) = a, b
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


def _rotated(quaternion: Any, u: Any) -> tuple[Any, Any, Any]:
    """R u for a unit quaternion (x, y, z, w)."""
    x, y, z, w = quaternion
    t = tuple(2 * c for c in _cross((x, y, z), u))
    s = _cross((x, y, z), t)
    return tuple(a + w * b + c for a, b, c in zip(u, t, s, strict=True))  # pyright: ignore[reportReturnType]


def _product(a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    (x, y, z, w), (i, j, k, r) = a, b
    return (
        w * i + x * r + y * k - z * j,
        w * j - x * k + y * r + z * i,
        w * k + x * j - y * i + z * r,
        w * r - x * i - y * j - z * k,
    )


def _components(x: np.ndarray, count: int) -> list[Any]:
    return x[:count].tolist() if x.ndim == 1 else [x[..., k] for k in range(count)]


def _filled(q: np.ndarray, head: tuple[Any, ...], tail: np.ndarray) -> np.ndarray:
    result = np.empty_like(q)
    if q.ndim == 1:
        result[: len(head)] = head
    else:
        for k, value in enumerate(head):
            result[..., k] = value
    result[..., len(head) :] = tail
    return result


def moved(q: np.ndarray, step: np.ndarray) -> np.ndarray:
    """`Model.integrate` of a free base without its checks: q (..., nq), step (..., nv)."""
    *place, x, y, z, w = _components(q, 7)
    *u, a, b, c = _components(step, 6)
    half, cosine, cosc, sincc = _factors(a * a + b * b + c * c)
    first = _cross((a, b, c), u)
    second = _cross((a, b, c), first)
    along = [p + cosc * s + sincc * t for p, s, t in zip(u, first, second, strict=True)]
    shift = _rotated((x, y, z, w), along)
    turned = _product((x, y, z, w), (half * a, half * b, half * c, cosine))
    # products of unit quaternions leave the sphere by rounding only: one Newton step brings it back
    scale = 1.5 - 0.5 * sum(e * e for e in turned)
    head = (*(p + s for p, s in zip(place, shift, strict=True)), *(scale * e for e in turned))
    return _filled(q, head, q[..., 7:] + step[..., 6:])


def stepped(
    q: np.ndarray, v: np.ndarray, after: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray]:
    """`dynamics.stepped_state` of a free base without its checks."""
    *place, x, y, z, r = _components(q, 7)
    *u, a, b, c = _components(after, 6)
    *linear, i, j, k = _components(v, 6)
    u = [e + h * f for e, f in zip(u, _cross((i, j, k), linear), strict=True)]
    half, cosine, *_ = _factors(h * h * (a * a + b * b + c * c))
    i, j, k = (h * half * e for e in (a, b, c))
    shift = _rotated((x, y, z, r), u)
    turned = _product((x, y, z, r), (i, j, k, cosine))
    scale = 1.5 - 0.5 * sum(e * e for e in turned)  # as in `moved`
    head = (*(p + h * s for p, s in zip(place, shift, strict=True)), *(scale * e for e in turned))
    end = _filled(q, head, q[..., 7:] + h * after[..., 6:])
    return end, _filled(after, (*_rotated((-i, -j, -k, cosine), u), a, b, c), after[..., 6:])


def rate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(..., nq) dq/dt of a free base: R v, half the quaternion times (w, 0), joints."""
    quaternion = _components(q, 7)[3:]
    *u, a, b, c = _components(v, 6)
    turning = _product(quaternion, (a / 2, b / 2, c / 2, 0.0))
    return _filled(q, (*_rotated(quaternion, u), *turning), v[..., 6:])


def second_rate(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """(..., nq) d^2q/dt^2 of a free base."""
    quaternion = _components(q, 7)[3:]
    u, w = _components(v, 6)[:3], _components(v, 6)[3:]
    du, dw = _components(a, 6)[:3], _components(a, 6)[3:]
    pushed = [x + y for x, y in zip(du, _cross(w, u), strict=True)]
    first = _product(quaternion, (*(x / 2 for x in w), 0.0))
    curved = _product(first, (*(x / 2 for x in w), 0.0))
    turned = _product(quaternion, (*(x / 2 for x in dw), 0.0))
    spin = (x + y for x, y in zip(curved, turned, strict=True))
    return _filled(q, (*_rotated(quaternion, pushed), *spin), a[..., 6:])


def normalized(q: np.ndarray) -> np.ndarray:
    """(..., nq) with the base's quaternion at norm 1."""
    result = q.copy()
    result[..., 3:7] = so3.unit_quaternion(q[..., 3:7])
    return result


def split(model: Model, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q and v of (..., nq + nv) numbers, with the quaternion of a free base at norm 1."""
    q, v = y[..., : model.nq], y[..., model.nq :]
    return normalized(q) if model.free_base else q, v


def dexp_inv(step: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(..., nv) rate of the coordinates `step` of exp at velocity v, to fourth order.

    T = T_0 exp(step), so d step/dt = (1 + ad/2 + ad^2/12 + O(ad^4)) V for the base's body twist V.
    """
    *x, a, b, c = _components(step, 6)
    V = _components(v, 6)
    X = (tuple(x), (a, b, c))
    first = _bracket(X, (tuple(V[:3]), tuple(V[3:])))
    second = _bracket(X, first)
    head = tuple(
        e + f / 2 + g / 12
        for e, f, g in zip(V, (*first[0], *first[1]), (*second[0], *second[1]), strict=True)
    )
    return _filled(v, head, v[..., 6:])


# -- rotations of one state, vectors as three floats -----------------------------------------------


def turned(w: Any, u: Any) -> tuple[Any, Any, Any]:
    """exp(hat(w)) u."""
    a, b, c = w
    half, cosine, *_ = _factors(a * a + b * b + c * c)
    return _rotated((half * a, half * b, half * c, cosine), u)


def left_jacobian(w: Any, u: Any) -> tuple[Any, ...]:
    """J_l(w) u = J_r(w)^T u of SO(3)."""
    a, b, c = w
    _, _, cosc, sincc = _factors(a * a + b * b + c * c)
    first = _cross(w, u)
    return tuple(
        x + cosc * y + sincc * z for x, y, z in zip(u, first, _cross(w, first), strict=True)
    )


def right_jacobian_inverse(w: Any, u: Any) -> tuple[Any, ...]:
    """J_r(w)^-1 u = J_l(w)^-T u of SO(3)."""
    a, b, c = w
    square = a * a + b * b + c * c
    # (1 - x/2 cot(x/2))/x^2, with the cotangent from sin(x/2)/x and cos(x/2)
    half, cosine, cosc, sincc = _factors(square)
    factor = (cosc - 2 * sincc) / (4 * half * cosine) if square < SMALL else (
        (1 - cosine / (2 * half)) / square
    )  # fmt: skip
    first = _cross(w, u)
    return tuple(x + y / 2 + factor * z for x, y, z in zip(u, first, _cross(w, first), strict=True))


def to_world(q: np.ndarray, u: Any) -> tuple[Any, Any, Any]:
    """R u of a vector in the base's frame."""
    return _rotated(q[3:7].tolist(), u)


def to_base(q: np.ndarray, u: Any) -> tuple[Any, Any, Any]:
    """R^T u of a vector in the world."""
    x, y, z, w = q[3:7].tolist()
    return _rotated((-x, -y, -z, w), u)


def _bracket(X: Any, Y: Any) -> Any:
    """ad(X) Y of twists ((v), (w))."""
    (u, w), (s, r) = X, Y
    linear = tuple(p + o for p, o in zip(_cross(w, s), _cross(u, r), strict=True))
    return linear, _cross(w, r)
