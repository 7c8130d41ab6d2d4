"""Run of one body: its state, controller, integrator and records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from modurob.errors import StateError
from modurob.model import Model
from modurob.organism import Organism
from modurob.sim.actuation import Actuation, Noise
from modurob.sim.body_trajectory import BodyTrajectory
from modurob.sim.mujoco_engine import MujocoMotion, MujocoStep
from modurob.sim.recorder import Recorder, check_ticks, intervals
from modurob.stepping import (
    EquationOfMotion,
    FixedStep,
    Ground,
    GroundContact,
    Integrator,
    IntegratorStep,
    StepSettings,
    manifold,
)
from modurob.stepping.motion import LARGEST, External, Stopped, diverged
from modurob.stepping.stops import LinearStops, StopForces, Stops

UNSEEN = 64  # steps between two checks when not every step is recorded


@dataclass(frozen=True, eq=False)
class Setup:
    """Settings that all bodies of a run share."""

    method: type[Integrator]
    settings: StepSettings
    duration: float
    record: np.ndarray | None  # times to record; None for every step
    reference: Any
    sample_time: float | None
    noise: Noise | None
    rng: np.random.Generator | None
    stops: Stops | LinearStops | None
    external: External
    wrench_sensors: bool
    ground: Ground | None


class Run:
    """A body with its state; `advance` takes it to a later time.

    Args:
        before: Runs of the bodies that this one was made of.
    """

    def __init__(
        self,
        setup: Setup,
        model: Model,
        controller: Any,
        t: float,
        q: np.ndarray,
        v: np.ndarray,
        organism: Organism | None = None,
        before: Sequence[Run] = (),
    ) -> None:
        self.model, self.organism, self.controller = model, organism, controller
        self.t, self.q, self.v = t, q, v
        self._setup, self._batch = setup, q.shape[:-1]
        self._drive = self._actuation()
        names = {*model.body_names, *model.modules}
        external = {body: w for body, w in setup.external.items() if body in names}
        self._is_fixed = issubclass(setup.method, FixedStep)
        ground, settings = self._contact(before), setup.settings
        if issubclass(setup.method, MujocoStep):
            self.motion = MujocoMotion(
                model, self._batch, self._drive, external, organism, setup.ground,
                setup.stops is not None, setup.method.integrator, t,
            )  # fmt: skip
            recorded = self.motion.plant
            if not before:
                recorded.check_start(self.q, self.v)
        else:
            if ground is not None and not self._is_fixed:
                settings = settings._replace(dt=min(settings.dt, ground.largest_step))
            stops = None if setup.stops is None else StopForces(setup.stops, model, q)
            self.motion = EquationOfMotion(model, self._batch, self._drive, stops, external, ground)
            recorded = ground
        self._integrator = setup.method(self.motion, settings)
        rows = None
        if setup.record is not None:
            rows = int(np.sum(setup.record >= t)) + 2
        elif self._is_fixed:
            rows = int(np.ceil((setup.duration - t) / setup.settings.dt)) + 1
        self._recorder = Recorder(
            self._batch, model.nq, model.nv, self._drive, rows, recorded, self.motion.observed
        )
        self._asked = -1.0  # when the controller was asked last

    def _contact(self, before: Sequence[Run]) -> GroundContact | None:
        """The ground under this body; a body that starts under it is lifted or refused."""
        setup = self._setup
        if setup.ground is None:
            return None
        own_law = not issubclass(setup.method, MujocoStep)  # MuJoCo has another: this is for starts
        step = setup.settings.dt if self._is_fixed and own_law else None
        known = [run.motion.ground for run in before if run.motion.ground is not None]
        found = GroundContact(setup.ground, self.model, self.organism, self.q, step, known)
        if not before:
            self.q = found.started(self.q)
        found.accepted(self.q, self.v)
        return found

    def _actuation(self) -> Actuation | None:
        setup, controller = self._setup, self.controller
        if controller is None and setup.noise is None:
            return None
        rest = np.zeros((*self._batch, self.model.nv))
        drive = Actuation(
            self.model, self._batch, (lambda t, q, v: rest) if controller is None else controller,
            setup.reference, setup.sample_time, setup.noise, setup.rng,
            (lambda *state: self.motion.measured(*state)) if setup.wrench_sensors else None,
        )  # fmt: skip
        if drive.sample_time is not None:
            check_ticks("sample_time", drive.sample_time, setup.duration)
        elif setup.wrench_sensors and issubclass(setup.method, MujocoStep):
            raise StateError(
                "wrench_sensors with engine 'mujoco' need a sample_time: its contact forces follow "
                "from the torques that are held"
            )
        return drive

    def begin(self) -> None:
        """Ask the controller and find an acceleration, before the first step."""
        if self._drive is not None:
            ground = self.motion.ground
            if ground is not None and hasattr(self.controller, "connect_ground"):
                self.controller.connect_ground(lambda: ground.touching(self.q, self.v))
            self._drive.reset(self.t, self.q, self.v)
            if self._drive.sample_time is not None:
                self._drive.sample(self.t, self.q, self.v)
                self._asked = self.t
        if self.model.nv:
            self.motion.acceleration(self.t, self.q, self.v)

    def advance(self, until: float, progress: Callable[[float], None]) -> None:
        """Integrate to a later time."""
        record, recorder = self._setup.record, self._recorder
        if until <= self.t:  # two events at one time
            return
        if recorder.t.count == 0:
            recorder.add(self.t, self.q, self.v)
        if not self.model.nv:  # a body that cannot move
            self.t = until
            recorder.add(self.t, self.q, self.v)
            progress(until)
            return
        stride = 1 if record is None else UNSEEN
        clock = None if self._drive is None else self._drive.sample_time
        for interval in intervals(self.t, until, clock, record if self._is_fixed else None):
            if interval.sample:
                self._sample()
            begin, end = interval.begin, interval.end
            for step in self._integrator.steps(begin, end, self.q, self.v, stride):
                if not np.abs(step.v).max(initial=0.0) < LARGEST:
                    found = diverged(self.model, step.t, step.q, step.v)
                    raise found or Stopped(step.t, "it diverged")
                self._write(step, interval.record and step.t == end)
                self.t, self.q, self.v = step.t, step.q, step.v
                progress(step.t)
            if self.t != end or not np.isfinite(self.q).all():  # an integrator from outside
                raise Stopped(self.t, f"{self._integrator.name} gave no state at {end:g} s")
        if recorder.t.last < until:  # an event between two times to record
            recorder.add(self.t, self.q, self.v)

    def _sample(self) -> None:
        """Ask a sampled controller, and correct what was recorded for this time."""
        if self._drive is not None and self._asked != self.t:
            self._drive.sample(self.t, self.q, self.v)
            self._asked = self.t
            self._recorder.amend(self.t, self.q, self.v)

    def _write(self, step: IntegratorStep, at_end: bool) -> None:
        record, recorder = self._setup.record, self._recorder
        if step.dense is not None:
            recorder.pieces.append((self.t, step.t, step.dense))
        if record is None or (step.dense is None and at_end):
            recorder.add(step.t, step.q, step.v)
        elif step.dense is not None:
            first, last = np.searchsorted(record, [self.t, step.t], side="right")
            for t in record[first:last].tolist():
                between = t < step.t  # the end itself is known without rounding
                found = (
                    manifold.split(self.model, step.dense(np.array(t))) if between else step[1:3]
                )
                recorder.add(t, *found)

    def part(self) -> BodyTrajectory | None:
        """Everything that was recorded."""
        r, motion = self._recorder, self.motion
        if r.t.count == 0:
            return None
        t, q, v, tau, pushes = r.t.array(), r.q.array(), r.v.array(), r.torques(), r.pushes()
        name = "" if self.organism is None else self.organism.base
        return BodyTrajectory(
            name, self.model, self.organism, t, q, v, tau, MappingProxyType(r.channels()),
            lambda: motion.accelerations(t, q, v, tau, pushes), tuple(r.pieces),
        )  # fmt: skip
