"""Runs in which the body changes: docking and undocking while everything moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from modurob.errors import DockingError, StateError, UnknownNameError, choices
from modurob.model import ModelOptions
from modurob.organism import Organism
from modurob.sim.body_trajectory import BodyTrajectory
from modurob.sim.reconfiguration import carry
from modurob.sim.reconfiguration.carry import BodyState
from modurob.sim.reconfiguration.events import Dock, Event, EventReport, Undock
from modurob.sim.run import Run, Setup
from modurob.stepping.motion import Stopped, called


class BodyEntry(NamedTuple):
    """A body of a run."""

    organism: Organism
    loose: bool  # whether it is not held by the ground
    run: Run | None = None  # None while events are checked before the run

    def state(self) -> BodyState:
        """A copy of its state."""
        if self.run is None:
            raise RuntimeError("this body does not move")
        return BodyState(self.organism, self.run.model, np.array(self.run.q), np.array(self.run.v))


class DockingPair(NamedTuple):
    """Host and guest of a docking: the guest comes to the host, which keeps its base."""

    host: BodyEntry
    guest: BodyEntry
    new: bool  # whether the guest was not part of the run before
    module: str  # of the host
    port: int | str
    guest_module: str  # of the guest
    guest_port: int | str


class MultiBodyRun:
    """All bodies of a run: they start as one, part and meet."""

    def __init__(
        self, setup: Setup, first: Run, controller: Any, events: tuple[Event, ...]
    ) -> None:
        self._setup, self._options, self._controller = setup, first.model.options, controller
        self._runs: list[Run] = [first]  # that go on
        self._all: list[Run] = [first]  # in the order in which they came into being
        self._events = sorted(events, key=lambda event: event.time)
        self.reports: list[EventReport] = []  # of the events so far
        self._held: dict[str, float] = {}  # last displacements of joints that are gone or locked
        self.body_names = {*first.model.body_names, *first.model.modules}  # there at some time
        if events and first.organism is not None:
            self._check_events(first.organism)

    def _check_events(self, organism: Organism) -> None:
        """Go through the events without motion: errors come before anything moves."""
        options = self._known_options()
        there = [BodyEntry(organism, options.base == "free")]
        for event in self._events:
            there = after(event, there, options)
            for body in there:
                model = options.build(body.organism, body.loose)
                self.body_names |= {*model.body_names, *model.modules}

    @property
    def t(self) -> float:
        """Time that all bodies have reached. [s]"""
        return min(run.t for run in self._runs)

    def parts(self) -> tuple[BodyTrajectory, ...]:
        """Recorded trajectories, in the order in which the bodies came into being."""
        return tuple(part for part in (run.part() for run in self._all) if part is not None)

    def begin(self) -> None:
        """Ask the first controller."""
        self._runs[0].begin()

    def go(self, progress: Callable[[float], None]) -> None:
        """Run everything to the end."""
        for event in self._events:
            self._advance(event.time, progress)
            self._apply(event)
        self._advance(self._setup.duration, progress)

    def _advance(self, until: float, progress: Callable[[float], None]) -> None:
        begin, count = self.t, len(self._runs)
        for k, run in enumerate(self._runs):
            # one after the other, but progress for the user goes forward only
            run.advance(
                until, lambda t, k=k: progress(begin + (k * (until - begin) + t - begin) / count)
            )

    # -- events ------------------------------------------------------------------------------------

    def _apply(self, event: Event) -> None:
        there = [
            BodyEntry(run.organism, run.model.free_base, run)
            for run in self._runs
            if run.organism is not None
        ]
        if isinstance(event, Undock):
            self._undock(event, holder(there, event.module))
        elif isinstance(event, Dock):
            self._dock(event, pair_of(event, there))

    def _undock(self, event: Undock, body: BodyEntry) -> None:
        options, before = self._known_options(), body.state()
        self._held |= before.joints()
        parts = zip(body.organism.undock(event.module), (body.loose, True), strict=True)
        states = [
            carry.undocked(before, organism, options.build(organism, loose))
            for organism, loose in parts
        ]
        report = EventReport(
            time=event.time,
            what=str(event),
            momentum_before=before.momentum(),
            momentum_after=states[0].momentum() + states[1].momentum(),
            energy_before=before.energy(),
            energy_after=states[0].energy() + states[1].energy(),
        )
        self._replace([body], states, report)

    def _dock(self, event: Dock, pair: DockingPair) -> None:
        options, host = self._known_options(), pair.host.state()
        whole = merged(event, pair, options.hinges)
        model = options.build(whole, pair.host.loose)
        if pair.new:
            own = options.build(pair.guest.organism, True)
            guest = carry.newcomer(event, pair.guest.organism, own, host, model, self._held)
        else:
            guest = pair.guest.state()
        self._held |= {**host.joints(), **guest.joints()}
        joined = carry.docked(pair.guest_module, host, guest, whole, model, self._held)
        gap, reach, after = joined.gap, event.reach, joined.state.energy()
        if gap[0] > reach[0] or gap[1] > reach[1]:
            raise Stopped(
                event.time,
                f"{event} misses: the ports are {gap[0]:.3g} m and {gap[1]:.3g} rad apart, "
                f"the latch reaches {reach[0]:g} m and {reach[1]:g} rad",
            )
        report = EventReport(
            time=event.time,
            what=str(event),
            momentum_before=joined.momentum,
            momentum_after=joined.state.momentum(),
            energy_before=joined.energy,
            energy_after=after,
            energy_lost=joined.aligned - after,
            latch_work=joined.aligned - joined.energy,
            gap=gap,
            grounded=not pair.host.loose,
        )
        self._replace([pair.host, pair.guest], [joined.state], report)

    def _replace(self, old: list[BodyEntry], states: list[BodyState], report: EventReport) -> None:
        """Let new bodies go on in the place of old ones."""
        self.reports.append(report)
        gone = [body.run for body in old if body.run is not None]
        # a law keeps integrals and estimates, so the new one is rebuilt from the body's last one
        source = gone[0].controller if hasattr(self._controller, "command") else self._controller
        for state in states:
            law, body = None, (state.model, state.organism)
            if source is not None:
                law = called(report.time, "the controller's rebuilt()", source.rebuilt, *body)
            run = Run(
                self._setup, state.model, law, report.time, state.q, state.v, state.organism, gone
            )
            self._runs.append(run)
            self._all.append(run)
            run.begin()
        for run in gone:  # not before: a new body may be refused, and `t` is then theirs
            self._runs.remove(run)

    def _known_options(self) -> ModelOptions:
        assert self._options is not None  # `simulate` refuses events of other models
        return self._options


# -- bodies that an event makes of others ----------------------------------------------------------


def holder(bodies: Sequence[BodyEntry], module: str) -> BodyEntry:
    """The body that a module is part of."""
    for body in bodies:
        if module in body.organism:
            return body
    names = [name for body in bodies for name in body.organism.modules]
    raise UnknownNameError(f"no module {module!r} in this run: modules are {choices(names)}")


def pair_of(event: Dock, bodies: Sequence[BodyEntry]) -> DockingPair:
    """Host and guest of a docking."""
    host = holder(bodies, event.parent)
    ends = (event.parent, event.port, event.child, event.child_port)
    known = [body for body in bodies if event.child in body.organism]
    if not known:
        return DockingPair(host, BodyEntry(_newcomer(event, host.organism), True), True, *ends)
    guest = known[0]
    if event.kind is not None or event.organism is not None:
        raise DockingError(
            f"'{event.child}' is part of the run already; leave kind and organism out to dock it, "
            "or give the new module another name"
        )
    if guest is host:
        raise DockingError(
            f"'{event.child}' and '{event.parent}' are parts of one body: that closes a loop"
        )
    if guest.loose:
        return DockingPair(host, guest, False, *ends)
    # only one body is held by the ground, and it stays the host
    return DockingPair(guest, host, False, *ends[2:], *ends[:2])


def _newcomer(event: Dock, host: Organism) -> Organism:
    if event.organism is None:
        kind = host.kind(event.parent) if event.kind is None else event.kind
        return Organism.start(kind, event.child)
    if event.child not in event.organism:
        raise UnknownNameError(
            f"no module {event.child!r} in the new organism: "
            f"modules are {choices(event.organism.modules)}"
        )
    return event.organism


def merged(event: Dock, pair: DockingPair, hinges: str) -> Organism:
    """The body after a docking."""
    guest = pair.guest.organism
    bends = any(guest.kind(name).dyad_joint is not None for name in guest.modules)
    if hinges == "dyad" and pair.guest_module != guest.base and bends:
        raise DockingError(
            f"in the dyad model a body docks by its base, '{guest.base}': docked by "
            f"'{pair.guest_module}' it would bend about other hinges; use hinges='physical'"
        )
    return pair.host.organism.merge(
        pair.module, pair.port, guest, pair.guest_module, pair.guest_port, turn=event.turn
    )


def after(event: Event, bodies: Sequence[BodyEntry], options: ModelOptions) -> list[BodyEntry]:
    """The bodies after an event, or the error that says why it cannot happen."""
    if isinstance(event, Undock):
        body = holder(bodies, event.module)
        rest, gone = body.organism.undock(event.module)
        others = [b for b in bodies if b is not body]
        return [*others, BodyEntry(rest, body.loose), BodyEntry(gone, True)]
    if isinstance(event, Dock):
        pair = pair_of(event, bodies)
        others = [b for b in bodies if b is not pair.host and b is not pair.guest]
        return [*others, BodyEntry(merged(event, pair, options.hinges), pair.host.loose)]
    raise StateError(f"events are Dock(...) and Undock(...), got {event!r}")
