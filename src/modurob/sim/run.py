"""One body on its way through time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from modurob.errors import UnknownNameError
from modurob.model import Model
from modurob.organism import Organism
from modurob.sim.actuation import Actuation, Noise
from modurob.sim.body_trajectory import BodyTrajectory
from modurob.sim.recorder import Recorder, check_ticks, intervals
from modurob.stepping import (
    EquationOfMotion,
    FixedStep,
    Integrator,
    IntegratorStep,
    LinearStops,
    StepSettings,
    Stops,
    manifold,
)
from modurob.stepping.motion import LARGEST, External, Stopped, diverged
from modurob.stepping.stops import StopForces

UNSEEN = 64  # steps between two looks when not every step is recorded


@dataclass(frozen=True)
class Setup:
    """What all bodies of a run share.

    Attributes:
        record: Times to write down; None for every step.
    """

    method: type[Integrator]
    settings: StepSettings
    duration: float
    record: np.ndarray | None = None
    reference: Any = None
    sample_time: float | None = None
    noise: Noise | None = None
    rng: np.random.Generator | None = None
    stops: Stops | LinearStops | None = None
    external: External = field(default_factory=dict)


class Run:
    """A body with its state; `advance` takes it to a later time."""

    def __init__(
        self,
        setup: Setup,
        model: Model,
        controller: Any,
        t: float,
        q: np.ndarray,
        v: np.ndarray,
        organism: Organism | None = None,
    ) -> None:
        self.model, self.organism, self.controller = model, organism, controller
        self.t, self.q, self.v = t, q, v
        self._setup, self._batch = setup, q.shape[:-1]
        self._drive = self._made_drive()
        stops = None if setup.stops is None else StopForces(setup.stops, model, q)
        external = {b: w for b, w in setup.external.items() if _has_body(model, b)}
        self.motion = EquationOfMotion(model, self._batch, self._drive, stops, external)
        self._integrator = setup.method(self.motion, setup.settings)
        self._recorder: Recorder | None = None
        self._asked = -1.0  # when the controller was asked last

    def _made_drive(self) -> Actuation | None:
        setup = self._setup
        if self.controller is None:
            if setup.noise is None:
                return None
            rest = np.zeros((*self._batch, self.model.nv))
            return self._with_clock(lambda t, q, v: rest)
        return self._with_clock(self.controller)

    def _with_clock(self, controller: Any) -> Actuation:
        s = self._setup
        drive = Actuation(
            self.model, self._batch, controller, s.reference, s.sample_time, s.noise, s.rng
        )
        if drive.sample_time is not None:
            check_ticks("sample_time", drive.sample_time, s.duration)
        return drive

    # -- going on ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Make room, ask the controller, and find an acceleration, before the first step."""
        self._recorder = self._made_recorder(self._setup.duration)
        if self._drive is not None:
            self._drive.reset(self.t, self.q, self.v)
            if self._drive.sample_time is not None:
                self._drive.sample(self.t, self.q, self.v)
                self._asked = self.t
        if self.model.nv:
            self.motion.acceleration(self.t, self.q, self.v)

    def advance(self, until: float, watch: Callable[[float], None]) -> None:
        """Integrate to a later time."""
        setup, fixed = self._setup, issubclass(self._setup.method, FixedStep)
        recorder = self._recorder
        if recorder is None:
            raise RuntimeError("begin() comes first")
        if until <= self.t:  # two events at one time
            return
        if recorder.t.count == 0:
            recorder.add(self.t, self.q, self.v)
        if not self.model.nv:  # a body that cannot move
            self.t = until
            recorder.add(self.t, self.q, self.v)
            watch(until)
            return
        stride = 1 if setup.record is None else UNSEEN
        clock = None if self._drive is None else self._drive.sample_time
        cuts = setup.record if fixed else None
        for interval in intervals(self.t, until, clock, cuts):
            if interval.sample:
                self._tick(recorder)
            steps = self._integrator.steps(interval.begin, interval.end, self.q, self.v, stride)
            for step in steps:
                self._look(step)
                self._write(recorder, step, interval.record and step.t == interval.end)
                self.t, self.q, self.v = step.t, step.q, step.v
                watch(step.t)
        if recorder.t.last < until:  # an event between two times to write down
            recorder.add(self.t, self.q, self.v)

    def _made_recorder(self, until: float) -> Recorder:
        setup, expected = self._setup, None
        if setup.record is not None:
            expected = int(np.sum((setup.record >= self.t) & (setup.record <= until))) + 2
        elif issubclass(setup.method, FixedStep):
            expected = int(np.ceil((until - self.t) / setup.settings.dt)) + 1
        return Recorder(self._batch, self.model.nq, self.model.nv, self._drive, expected)

    def _tick(self, recorder: Recorder) -> None:
        """The controller's clock: ask it, and correct what was written down for this time."""
        if self._drive is not None and self._asked != self.t:
            self._drive.sample(self.t, self.q, self.v)
            self._asked = self.t
            recorder.amend(self.t, self.q, self.v)

    def _look(self, step: IntegratorStep) -> None:
        """Stop when a number runs away."""
        if not np.abs(step.v).max(initial=0.0) < LARGEST:
            raise diverged(self.model, step.t, step.q, step.v) or Stopped(step.t, "it diverged")

    def _write(self, recorder: Recorder, step: IntegratorStep, at_end: bool) -> None:
        record = self._setup.record
        if step.dense is not None:
            recorder.pieces.append((self.t, step.t, step.dense))
        if record is None:
            recorder.add(step.t, step.q, step.v)
        elif step.dense is not None:
            first, last = np.searchsorted(record, [self.t, step.t], side="right")
            for t in record[first:last].tolist():
                recorder.add(t, *self._split(step.dense(np.array(t))))
        elif at_end:
            recorder.add(step.t, step.q, step.v)

    def _split(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, v = y[: self.model.nq], y[self.model.nq :]
        return manifold.normalized(q) if self.model.free_base else q, v

    def part(self) -> BodyTrajectory | None:
        """Everything that was written down."""
        r = self._recorder
        if r is None or r.t.count == 0:
            return None
        t, q, v, tau = r.t.array(), r.q.array(), r.v.array(), r.torques()
        motion = self.motion
        return BodyTrajectory(
            name="" if self.organism is None else self.organism.base,
            model=self.model,
            organism=self.organism,
            t=t,
            q=q,
            v=v,
            tau=tau,
            channels=MappingProxyType(r.channels()),
            _accelerations=lambda: motion.accelerations(t, q, v, tau),
            _pieces=tuple(r.pieces),
        )


def _has_body(model: Model, body: str) -> bool:
    try:
        model.body_index(body)
    except UnknownNameError:
        return False
    return True
