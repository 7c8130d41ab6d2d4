"""Runs in which the body changes: docking and undocking while everything moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from modurob.errors import StateError
from modurob.model import ModelOptions
from modurob.organism import Organism
from modurob.sim import carry
from modurob.sim import recipe as bodies
from modurob.sim.carry import State
from modurob.sim.events import Audit, Dock, Event, Undock
from modurob.sim.failure import Stopped, called
from modurob.sim.part import Part
from modurob.sim.recipe import Body
from modurob.sim.run import Run, Setup
from modurob.sim.watch import Watch


class Colony:
    """All bodies of a run: they start as one, part and meet."""

    def __init__(
        self,
        setup: Setup,
        first: Run,
        controller: Any,
        events: tuple[Event, ...],
    ) -> None:
        self._setup, self._options, self._controller = setup, first.model.options, controller
        self._runs: list[Run] = [first]  # that go on
        self._all: list[Run] = [first]  # in the order in which they came into being
        self._events = sorted(events, key=lambda event: event.time)
        self._audit: list[Audit] = []
        self._held: dict[str, float] = {}  # last displacements of joints that are gone or locked
        self._names = {*first.model.body_names, *first.model.modules}
        if events and first.organism is not None:
            self._rehearse(first.organism, self._known_options())

    def _rehearse(self, organism: Organism, options: ModelOptions) -> None:
        """Go through the events on paper: what cannot work is told before anything moves."""
        there = [Body(organism, options.base == "free")]
        for event in self._events:
            there = bodies.after(event, there, options)
            for body in there:
                model = options.build(*body)
                self._names |= {*model.body_names, *model.modules}

    @property
    def t(self) -> float:
        """How far all have come."""
        return min(run.t for run in self._runs)

    def body_names(self) -> set[str]:
        """Bodies and modules that appear at some time."""
        return self._names

    def audit(self) -> tuple[Audit, ...]:
        """What the events did so far."""
        return tuple(self._audit)

    def parts(self) -> tuple[Part, ...]:
        """What was recorded, in the order in which the bodies came into being."""
        return tuple(part for part in (run.part() for run in self._all) if part is not None)

    # -- going on --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Ask the first controller."""
        self._runs[0].begin()

    def go(self, watch: Watch) -> None:
        """Run everything to the end."""
        for event in self._events:
            self._advance(event.time, watch)
            self._happen(event)
        self._advance(self._setup.duration, watch)

    def _advance(self, until: float, watch: Watch) -> None:
        begin, count = self.t, len(self._runs)
        for k, run in enumerate(self._runs):
            # one after the other, but progress for the user goes forward only
            run.advance(
                until, lambda t, k=k: watch(begin + (k * (until - begin) + t - begin) / count)
            )

    def _happen(self, event: Event) -> None:
        if isinstance(event, Undock):
            self._undock(event)
        elif isinstance(event, Dock):
            self._dock(event)

    def _there(self) -> dict[int, tuple[Body, Run]]:
        """The bodies that there are, with their runs."""
        found = {}
        for run in self._runs:
            if run.organism is not None:
                body = Body(run.organism, run.model.free_base)
                found[id(body)] = (body, run)
        return found

    def _undock(self, event: Undock) -> None:
        options, there = self._known_options(), self._there()
        body, run = there[id(bodies.holder([b for b, _ in there.values()], event.module))]
        before = _state(run)
        self._held |= before.joints()
        states = [
            carry.undocked(before, organism, options.build(organism, loose))
            for organism, loose in zip(
                body.organism.undock(event.module), (body.loose, True), strict=True
            )
        ]
        audit = Audit(
            time=event.time,
            what=str(event),
            momentum_before=before.momentum(),
            momentum_after=states[0].momentum() + states[1].momentum(),
            energy_before=before.energy(),
            energy_after=states[0].energy() + states[1].energy(),
        )
        self._replace([run], states, event.time, audit)

    def _dock(self, event: Dock) -> None:
        options, there = self._known_options(), self._there()
        pair = bodies.pair_of(event, [body for body, _ in there.values()])
        whole = bodies.merged(event, pair, options.hinges)
        model = options.build(whole, pair.host.loose)
        host_run = there[id(pair.host)][1]
        host, left = _state(host_run), [host_run]
        if pair.new:
            own = options.build(pair.guest.organism, True)
            guest = carry.newcomer(event, pair, host, own, whole, model, self._held)
        else:
            guest_run = there[id(pair.guest)][1]
            guest, left = _state(guest_run), [host_run, guest_run]
        self._held |= {**host.joints(), **guest.joints()}
        joined = carry.docked(pair, host, guest, whole, model, self._held)
        self._check_reach(event, joined.gap)
        after = joined.state.energy()
        audit = Audit(
            time=event.time,
            what=str(event),
            momentum_before=joined.momentum,
            momentum_after=joined.state.momentum(),
            energy_before=joined.energy,
            energy_after=after,
            energy_lost=joined.aligned - after,
            latch_work=joined.aligned - joined.energy,
            gap=joined.gap,
            grounded=not pair.host.loose,
        )
        self._replace(left, [joined.state], event.time, audit)

    @staticmethod
    def _check_reach(event: Dock, gap: tuple[float, float]) -> None:
        if gap[0] > event.reach[0] or gap[1] > event.reach[1]:
            raise Stopped(
                event.time,
                f"{event} misses: the ports are {gap[0]:.3g} m and {gap[1]:.3g} rad apart, "
                f"the latch reaches {event.reach[0]:g} m and {event.reach[1]:g} rad",
            )

    def _replace(self, old: list[Run], states: list[State], time: float, audit: Audit) -> None:
        """Let new bodies go on in the place of old ones."""
        self._audit.append(audit)
        for run in old:
            self._runs.remove(run)
        # a law remembers (integrals, estimates), so the new one grows out of the body's last one
        source = old[0].controller if hasattr(self._controller, "command") else self._controller
        for state in states:
            law = None
            if source is not None:
                body = state.model, state.organism
                law = called(time, "the controller's rebuilt()", source.rebuilt, *body)
            run = Run(self._setup, state.model, law, time, state.q, state.v, state.organism)
            self._runs.append(run)
            self._all.append(run)
            run.begin()

    def _known_options(self) -> ModelOptions:
        if self._options is None:
            raise StateError("events need the organism that the model was built from")
        return self._options


def _state(run: Run) -> State:
    if run.organism is None:
        raise StateError("events need the organism that the model was built from")
    return State(run.organism, run.model, np.array(run.q), np.array(run.v))
