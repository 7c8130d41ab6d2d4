"""The assumptions of stability certificates, each looked at by itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modurob.control.closed_loop import rehearsed
from modurob.control.controller import Controller
from modurob.errors import choices

AT_REST = 1e-6  # [N m, N] force on a joint without a motor that still counts as rest
DECAY = 1e-6  # [1/s] slower than this is not told from marginal: double zeros scatter by 1e-8
TIME_CONSTANTS = 8.0  # of the slowest error: after them torques are those of the set point
LONGEST = 20.0  # [s] rehearsed at most


class Finding(NamedTuple):
    """An assumption, whether it holds, and why."""

    assumption: str
    holds: bool
    why: str


def is_decaying(rate: float) -> bool:
    """Whether a decay is one, and not rounding of a motion that stays. [1/s]"""
    return rate > DECAY


def motors(law: Controller, at: np.ndarray) -> Finding:
    """Every joint is driven, or what is not driven is stable by itself: the zero dynamics."""
    name, model = "every joint has a motor", law.model
    if model.free_base:
        why = "nothing holds the base: it drifts, and its six coordinates are not controlled"
        return Finding(name, False, why)
    if not law.passive:
        return Finding(name, True, "fully actuated")
    idle, rest = law._idle, np.zeros(model.nv)
    by = model.inverse_dynamics_derivatives(at, rest, rest)
    pick = np.ix_(idle, idle)
    m = len(idle)
    zero = np.zeros((2 * m, 2 * m))
    zero[:m, m:] = np.eye(m)
    zero[m:] = -np.linalg.solve(by.da[pick], np.hstack([by.dq[pick], by.dv[pick]]))
    rate = float(-np.linalg.eigvals(zero).real.max())
    without = f"no motor at {choices(law.passive)}"
    load = float(np.abs(law._gravity(at)[idle]).max())
    if load > AT_REST:
        return Finding(name, False, f"{without}, which cannot rest there: {load:.3g} N m pull")
    if law.uses_coupling:  # the eigenvalues of the closed loop tell the whole story
        return Finding("joints without a motor are reached", True, f"{without}; through coupling")
    if is_decaying(rate):
        return Finding("zero dynamics decay", True, f"{without}; slowest rate {rate:.4g} 1/s")
    word = "unstable" if is_decaying(-rate) else "undamped"
    why = f"{without}, and with the others held its motion is {word} ({rate:.4g} 1/s)"
    return Finding("zero dynamics decay", False, why)


def set_point_held(law: Controller, at: np.ndarray) -> Finding | None:
    """The motors can carry the load at the set point, within the joint limits."""
    model, joints = law.model, at[law._skip_q :]
    out = (joints < model.lower) | (joints > model.upper)
    if out.any():
        names = choices(np.array(model.joint_names)[out])
        return Finding("the set point is within the joint limits", False, f"not so: {names}")
    if not law._limited:
        return None
    load = np.abs(law._gravity(at))[law._skip :]
    short = load > law.torque_limit
    if short.any():
        k = int(np.argmax(load - law.torque_limit))
        why = (
            f"'{model.joint_names[k]}' needs {load[k]:.3g} N m to rest there, "
            f"its limit is {law.torque_limit[k]:.3g}"
        )
        return Finding("motors hold the set point", False, why)
    reserve = float(np.min(law.torque_limit - load, initial=np.inf))
    return Finding("motors hold the set point", True, f"least reserve {reserve:.3g} N m")


def friction(law: Controller) -> Finding:
    """Dry friction: laws that cancel it trust its sign at rest; others stop short of the aim."""
    model, name = law.model, "no dry friction"
    rough = model.coulomb > 0
    if not rough.any():
        drag = "viscous friction only" if np.any(model.viscous > 0) else "none in the datasheets"
        return Finding(name, True, drag)
    joints = choices(np.array(model.joint_names)[rough])
    kp = getattr(law, "kp", None)
    if hasattr(law, "error_matrix"):
        why = (
            f"dry friction at {joints} is canceled by its datasheet; at rest its sign is not known"
        )
    elif kp is not None and np.ndim(kp) == 1:
        stuck = float(np.max(model.coulomb / np.maximum(kp, np.finfo(float).tiny)))
        why = f"dry friction at {joints} may hold it up to {stuck:.3g} rad (m) from the set point"
    else:
        why = f"dry friction at {joints} may hold it away from the set point"
    return Finding(name, False, why)


def integral_carries(law: Controller, at: np.ndarray) -> Finding | None:
    """Without a model the integral carries the load, and its own limit must allow it."""
    pid = getattr(law, "pid", None)
    if pid is None or hasattr(law, "error_matrix"):
        return None
    load = np.abs(law._gravity(at))[law._skip :]
    short = load > pid.integral_limit
    if not short.any():
        return None
    names = choices(np.array(law.model.joint_names)[short])
    return Finding("the integral carries the load", False, f"its limit is too low at {names}")


def torques(
    law: Controller,
    at: np.ndarray,
    begin: tuple[np.ndarray, np.ndarray] | None,
    rate: float,
) -> Finding | None:
    """Torques stay within their limits on the way, rehearsed without limits."""
    if not law._limited or not law.model.nv:
        return None
    name = "torques stay within their limits"
    if begin is None:
        return Finding(name, True, "so close to the set point; give start=(q, v) to check the way")
    duration = LONGEST if rate <= 0 else min(LONGEST, TIME_CONSTANTS / rate)
    way = rehearsed(law, at, *begin, duration)
    wanted = np.abs(way.tau[:, law._skip :])
    with np.errstate(divide="ignore", invalid="ignore"):
        used = np.where(wanted > 0, wanted / law.torque_limit, 0.0)
    step, k = np.unravel_index(int(np.argmax(used)), used.shape)
    joint, most = law.model.joint_names[k], wanted[step, k]
    limit = law.torque_limit[k]
    if way.diverged:
        return Finding(name, False, f"the motion from the start diverges at {way.t[-1]:.3g} s")
    if most > limit:
        why = f"'{joint}' wants {most:.3g} N m at {way.t[step]:.3g} s, its limit is {limit:.3g}"
        return Finding(name, False, why)
    return Finding(name, True, f"at most {most:.3g} of {limit:.3g} N m ('{joint}') from the start")
