"""Estimate of a body carried over to the body after a change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from modurob.checks import positive
from modurob.errors import UnknownNameError, choices
from modurob.model import Model
from modurob.model.joint_map import JointMap, shared_places
from modurob.spatial import se3

if TYPE_CHECKING:
    from modurob.estimation.ekf import Ekf

BASE_SIGMA = 0.3  # [m, rad, m/s, rad/s] of a free base of which nothing is known
REACH = {False: 2 * np.pi, True: 1.0}  # [rad, m] of joints without limits: a turn, or a meter
STEP = 1e-5  # [rad, m] of central differences: rounding and truncation meet near 1e-10


def rebuilt(old: Ekf, model: Model, known: Mapping[str, float], rate_sigma: float) -> Ekf:
    """See `Ekf.rebuilt`."""
    joints = JointMap(old.model, model)
    added = [model.joint_names[k] for k in joints.added]
    for name in known:
        if name not in added:
            raise UnknownNameError(f"no new joint {name!r}: new joints are {choices(added)}")
    positive("rate_sigma", rate_sigma, "rad/s or m/s")
    q, v, T = _moved(old, joints)
    P = T @ old.P @ T.T
    base = model.joint_slice_v.start
    noise = _typical(old)
    for k, name in zip(joints.added, added, strict=True):
        mean, sigma = _prior(model, k)
        if name in known:
            mean, sigma = float(known[name]), np.sqrt(noise["R"])
        q[model.joint_slice_q.start + k] = mean
        P[base + k, base + k] = sigma**2
        P[model.nv + base + k, model.nv + base + k] = rate_sigma**2
    if model.free_base and not T[:6].any():
        spread = np.r_[0:6, model.nv : model.nv + 6]
        P[spread, spread] = BASE_SIGMA**2
    free_changes = model.free_base != old.model.free_base
    rates = tuple(n for n in old.measured_rates if n in model.joint_names)
    measured = tuple(n for n in model.joint_names if n in old.measured or n in added)
    return type(old)(
        model,
        old.dt,
        _process(old, joints, noise),
        _measurement(old, (*measured, *(f"rate {n}" for n in rates)), noise),
        measured=measured,
        measured_rates=rates,
        q=q,
        v=v,
        P=(P + P.T) / 2,
        gate=old.gate,
        integrator=None if free_changes else old._given["integrator"],
        substeps=old._given["substeps"],
        density=old.density,
    )


def _prior(model: Model, k: int) -> tuple[float, float]:
    """Mean and standard deviation of a joint of which only the datasheet is known."""
    low, high = float(model.lower[k]), float(model.upper[k])
    width = high - low if np.isfinite(high - low) else REACH[bool(model.prismatic[k])]
    return min(max(0.0, low), high), width / np.sqrt(12)  # of a uniform distribution


def _moved(old: Ekf, joints: JointMap) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimate in the new body, and (2nv, 2nv_old) its derivative by the old one."""
    model, nv, nv_old = joints.new, joints.new.nv, old.model.nv
    q, v = joints.configuration(old.q), joints.velocity(old.v)
    T, (there, here) = np.zeros((2 * nv, 2 * nv_old)), joints.rows
    T[here, there] = T[nv + here, nv_old + there] = 1.0
    links = zip(model.body_names, model.body_link, strict=True)
    shared = [name for name, link in links if link == 0 and name in old.model.body_names]
    if model.free_base and shared:  # the new base link was a part of the old body
        T_lb = model.body_placement[model.body_index(shared[0])]
        X = np.asarray(se3.Ad(T_lb), dtype=float)

        def jacobian(x: np.ndarray) -> np.ndarray:
            return X @ old.model.jacobian(x, shared[0])

        pose = old.model.forward_kinematics(old.q)[old.model.body_index(shared[0])]
        pose, J = pose @ se3.inverse(T_lb), jacobian(old.q)
        q[:7], v[:6] = se3.to_position_and_quaternion(pose), J @ old.v
        T[:6, :nv_old] = T[nv : nv + 6, nv_old:] = J
        sides = (old.model.integrate(old.q, s * STEP * np.eye(nv_old)) for s in (1, -1))
        ahead, back = (jacobian(x) @ old.v for x in sides)
        T[nv : nv + 6, :nv_old] = (ahead - back).T / (2 * STEP)
    return q, v, T


# -- noise -----------------------------------------------------------------------------------------


def _typical(old: Ekf) -> dict[str, float]:
    """Variances for what is new: the medians of what there was, or the numbers once given."""
    from modurob.estimation.ekf import Q_POSITION, Q_RATE, R_ANGLE

    nv, n = old.model.nv, len(old.model.joint_names)
    process, angles = np.diagonal(old.process), np.diagonal(old.noise)[: len(old.measured)]
    usual = {"q": _number(old._given["Q"], Q_POSITION), "v": _number(old._given["Q"], Q_RATE)}
    return {
        "q": float(np.median(process[nv - n : nv])) if n else usual["q"],
        "v": float(np.median(process[2 * nv - n :])) if n else usual["v"],
        "R": float(np.median(angles)) if len(angles) else _number(old._given["R"], R_ANGLE),
    }


def _number(given: Any, default: float) -> float:
    return float(given) if given is not None and np.ndim(given) == 0 else default


def _process(old: Ekf, joints: JointMap, noise: Mapping[str, float]) -> np.ndarray:
    """(2nv, 2nv) W Q W^T of the new body."""
    nv, nv_old = joints.new.nv, joints.old.nv
    base = np.arange(6 if joints.new.free_base and joints.old.free_base else 0)
    there, here = (np.concatenate([base, rows]) for rows in joints.rows)
    to, fro = np.concatenate([here, nv + here]), np.concatenate([there, nv_old + there])
    result = np.diag(np.repeat([noise["q"], noise["v"]], nv))
    result[np.ix_(to, to)] = old.process[np.ix_(fro, fro)]
    return result


def _measurement(old: Ekf, rows: tuple[str, ...], noise: Mapping[str, float]) -> np.ndarray:
    """(m, m) V R V^T of the new body."""
    before = (*old.measured, *(f"rate {name}" for name in old.measured_rates))
    result = np.diag(np.full(len(rows), noise["R"]))
    fro, to = shared_places(before, rows)
    result[np.ix_(to, to)] = old.noise[np.ix_(fro, fro)]
    return result
