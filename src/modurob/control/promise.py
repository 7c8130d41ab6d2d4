"""Promise of a law: the settling time asked for, checked by simulation, and what prevents it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import real_array
from modurob.control import gains
from modurob.control.adaptive import Adaptive
from modurob.control.certificate import is_decaying
from modurob.control.closed_loop import (
    Rehearsal,
    linearized,
    rehearsed,
    settling_time,
    zero_dynamics,
)
from modurob.control.controller import Controller
from modurob.control.link_law import LinkLaw
from modurob.control.lqr import Lqr
from modurob.control.pid import IndependentPid
from modurob.control.response import step_response
from modurob.errors import StateError, choices
from modurob.model import Model

STEPS = 4  # in as many poses
STEP = {False: 0.35, True: 0.1}  # [rad, m] of turning and sliding joints: each 30 to 100 % of it
LEAST = 0.3  # of these: overshoot is a part of the step, which must not vanish
SMALL = 0.1  # of a step: here the linearized loop decides
FASTER = 4  # times as many samples, to see whether they are the reason
LATE = 1.1  # of the time asked for: later is a miss
OVER = 0.05  # of the step beyond the overshoot asked for: more is a miss
LENGTH = 2.0  # times the time asked for that is simulated
HALVINGS = 8  # of a sample time, to find one that is short enough
AT_LIMIT = 1 - 1e-12  # of a torque limit
NO_LEARNING = 1e-12  # [1/J]


class Promise(NamedTuple):
    """Steps of a law against what was asked for.

    Attributes:
        law: Its name.
        asked: Settling time asked for; None with gains as given. [s]
        settling: Slowest of all steps and joints with a motor; infinite if one does not settle. [s]
        overshoot: Largest, as a part of the step.
        joint: The slowest joint.
        reasons: What prevents the time or the overshoot asked for; empty when both are kept.
    """

    law: str
    asked: float | None
    settling: float
    overshoot: float
    joint: str
    reasons: tuple[str, ...]

    @property
    def kept(self) -> bool:
        """True if the steps settle in time, within 10 %, and overshoot by 5 % of a step at most."""
        return not self.reasons

    def __str__(self) -> str:
        time = (
            "does not settle" if math.isinf(self.settling) else f"settles in {self.settling:.3g} s"
        )
        asked = "" if self.asked is None else f", {self.asked:.3g} s asked for"
        head = f"{self.law}: {time} ('{self.joint}'), overshoot {self.overshoot:.1%}{asked}"
        return "\n".join([head, *(f"  {reason}" for reason in self.reasons)])


def checked(law: Controller, set_point: ArrayLike | None, start: ArrayLike | None) -> Promise:
    """See `Controller.promise`."""
    model = law.model
    if not len(law._driven):
        raise StateError("a promise is about joints with a motor; the body has none")
    asked = law.settling_time
    if set_point is None:
        goals, begin = _steps(law)
    else:
        q = model.neutral() if start is None else model.check_configuration(start)
        goals, begin = law._aim(real_array("set_point", set_point), q).q[None], q[None]
    length = LENGTH * max(asked or 0.0, law.attainable or 0.0)
    if not length:
        time = settling_time(law, begin[0])
        length = gains.SETTLING_TIME if math.isinf(time) else LENGTH * time
    trial = _Trial(law, asked, length, goals, begin)
    found = trial.run()
    reasons = () if found.kept else trial.reasons(found)
    return Promise(law.name, asked, found.settling, found.overshoot, found.joint, reasons)


def _steps(law: Controller) -> tuple[np.ndarray, np.ndarray]:
    """(STEPS, n) goals, the neutral pose and random ones, and (STEPS, nq) where steps begin."""
    model, rng = law.model, np.random.default_rng(0)
    joints = model.joint_slice_q
    poses = np.array(
        [model.neutral(), *(model.random_configuration(rng) for _ in range(STEPS - 1))]
    )
    if not model.free_base and isinstance(law, Lqr):
        poses[:] = law.set_point  # made for it
    goals = np.clip(poses[:, joints], model.lower, model.upper)
    size = np.where(model.prismatic, STEP[True], STEP[False])
    away = size * rng.uniform(LEAST, 1.0, goals.shape) * rng.choice([-1.0, 1.0], goals.shape)
    inward = (goals + away < model.lower) | (goals + away > model.upper)
    poses[:, joints] = np.clip(goals + np.where(inward, -away, away), model.lower, model.upper)
    return goals, poses


def _other(model: Model, **arrays: np.ndarray) -> Model:
    return dataclasses.replace(model, **arrays, organism=None, options=None)


class _Outcome(NamedTuple):
    """Steps of a trial: as in `Promise`, and the motion."""

    settling: float
    overshoot: float
    joint: str
    kept: bool
    way: Rehearsal


@dataclasses.dataclass(frozen=True, eq=False)
class _Trial:
    """Steps of a law (STEPS at once), and the same without what may be the reason of a miss."""

    law: Controller
    asked: float | None
    length: float
    goals: np.ndarray
    begin: np.ndarray

    def run(self) -> _Outcome:
        law, model = self.law, self.law.model
        rest = np.zeros((len(self.begin), model.nv))
        way = rehearsed(law, self.goals, self.begin, rest, self.length, limited=True)
        if way.diverged:
            return _Outcome(np.inf, np.inf, model.joint_names[0], False, way)
        driven = law._outputs - law._skip
        found = step_response(way.t, way.q[..., model.joint_slice_q], self.goals)
        moves = self.begin[:, model.joint_slice_q] != self.goals
        settling, overshoot = (
            np.where(moves, x, 0.0).max(axis=0)[driven] for x in (found.settling, found.overshoot)
        )
        joint = model.joint_names[driven[int(np.argmax(settling))]]
        time, over = float(settling.max()), float(overshoot.max())
        late = self.asked is not None and time > LATE * self.asked
        kept = not late and np.isfinite(time) and over <= self._overshoot() + OVER
        return _Outcome(time, over, joint, bool(kept), way)

    def _overshoot(self) -> float:
        """Of the damping asked for."""
        damping = getattr(self.law, "_shape", {}).get("damping", gains.DAMPING)
        root = math.sqrt(max(0.0, 1 - damping * damping))
        return math.exp(-math.pi * damping / root) if root else 0.0

    def reasons(self, found: _Outcome) -> tuple[str, ...]:
        """Reasons seen in the motion, else those without which it would be kept."""
        seen = [*self._too_slow(), *self._at_limit(found.way), *self._dry(found)]
        if found.way.diverged:
            seen[:0] = [f"the motion diverges at {found.way.t[-1]:.3g} s", *self._zero_dynamics()]
        return tuple(seen or [self._without()])

    def _too_slow(self) -> list[str]:
        clock, time = self.law.sample_time, self.law.attainable
        if clock is None or time is None or self.asked is None or time <= LATE * self.asked:
            return []
        late = f" with a delay of {self.law.delay:g} s" if self.law.delay else ""
        text = f"the sample time of {clock:g} s{late} allows {time:.3g} s"
        if not self.law.model.free_base and linearized(self.law, self._goal()).rate <= 0:
            text = f"errors grow with samples of {clock:g} s{late}"
        for shorter in clock * 0.5 ** np.arange(1, HALVINGS + 1):
            faster: Any = Controller.changed(self.law, sample_time=float(shorter))
            if faster.attainable <= LATE * self.asked:
                return [f"{text}; {shorter:.2g} s would do"]
        return [text]

    def _at_limit(self, way: Rehearsal) -> list[str]:
        law = self.law
        full = (np.abs(way.tau[..., law._skip :]) >= AT_LIMIT * law.torque_limit).any(axis=(0, 1))
        names = np.array(law.model.joint_names)[full & np.isfinite(law.torque_limit)]
        return [f"the torque limit is reached at {choices(names)}"] if len(names) else []

    def _dry(self, found: _Outcome) -> list[str]:
        model = self.law.model
        rough = model.coulomb[model.joint_names.index(found.joint)]
        if not rough or found.way.diverged:
            return []
        k = model.joint_names.index(found.joint)
        short = np.abs(found.way.q[-1][..., model.joint_slice_q] - self.goals)[:, k].max()
        return [f"dry friction of {rough:g} N m: '{found.joint}' is {short:.2g} rad (m) short"]

    def _without(self) -> str:
        """The first of these that repairs the steps when it is left out."""
        law, model = self.law, self.law.model
        for reason, other in self._simpler():
            if dataclasses.replace(self, law=other).run().kept:
                return reason
        alone = self._alone().run()
        if alone.kept:
            return f"coupling between joints: alone each settles in {alone.settling:.3g} s"
        begin, joints = self.begin.copy(), model.joint_slice_q
        begin[:, joints] = self.goals + SMALL * (begin[:, joints] - self.goals)
        near = dataclasses.replace(self, begin=begin).run()
        if near.kept:
            return (
                f"inertia and loads change during a step: one of {SMALL:.0%} settles in "
                f"{near.settling:.3g} s"
            )
        if model.free_base:
            return "the base is free and moves with the joints"
        rate = linearized(law, self._goal()).rate
        return f"small errors decay with {rate:.3g} 1/s and overshoot by {near.overshoot:.0%}"

    def _simpler(self) -> Iterator[tuple[str, Controller]]:
        """Laws without what may be the reason, and the words for it."""
        law, model = self.law, self.law.model
        if isinstance(law, IndependentPid) and not model.free_base:
            reason = "the load changes on the way, and only the integral carries it"
            yield reason, law.rebuilt(_other(model, gravity=np.zeros(3)))
        if isinstance(law, Adaptive):
            yield "the law learns during a step", law.changed(adaptation=NO_LEARNING)
        if law.sample_time is None:
            return
        clock = f"{law.sample_time:g} s"
        faster = Controller.changed(law, sample_time=law.sample_time / FASTER)
        yield f"the sample time of {clock}: a {FASTER}th of it would do", faster
        if isinstance(law, LinkLaw) and model.friction_rate.rate * law.sample_time > 1:
            reason = f"{model.friction_rate.cause} is faster than the samples of {clock}"
            none = np.zeros(len(model.viscous))
            yield reason, law.rebuilt(_other(model, viscous=none, coulomb=none))

    def _zero_dynamics(self) -> list[str]:
        law = self.law
        if not len(law._resulting) or law.model.free_base or law.uses_coupling:
            return []
        growth = float(np.linalg.eigvals(zero_dynamics(law, self._goal())).real.max())
        return [f"the zero dynamics grow with {growth:.3g} 1/s"] if is_decaying(growth) else []

    def _goal(self) -> np.ndarray:
        """(nq,) the first."""
        at = self.law.model.neutral()
        at[self.law.model.joint_slice_q] = self.goals[0]
        return at

    def _alone(self) -> _Trial:
        """Steps of one joint after the other, to the first goal."""
        joints, driven = self.law.model.joint_slice_q, self.law._driven - self.law._skip
        driven = driven[self.begin[0, joints][driven] != self.goals[0, driven]]
        goals = np.tile(self.goals[0], (len(driven), 1))
        begin = np.tile(self.begin[0], (len(driven), 1))
        begin[:, joints] = goals
        begin[np.arange(len(driven)), joints.start + driven] = self.begin[0, joints][driven]
        return dataclasses.replace(self, goals=goals, begin=begin)
