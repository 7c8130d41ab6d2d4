"""Bodies of a run, and the bodies that an event makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from modurob.errors import DockingError, StateError, UnknownNameError, choices
from modurob.model import Model, ModelOptions
from modurob.organism import Organism
from modurob.sim.events import Dock, Event, Undock

SAME = 1e-12  # difference of arrays of two models that are one


def origin(model: Model, given: Organism | None) -> Organism | None:
    """The organism of a model: the given one, if it fits, else the one it was built from."""
    if given is None or given is model.organism:
        return model.organism
    if not isinstance(given, Organism):
        raise StateError(f"organism must be an Organism, got {type(given).__name__}")
    fits = set(given.modules) == set(model.modules)
    if fits and model.options is not None:
        fits = _same(model.options.build(given), model)
    if not fits:
        raise StateError("organism is not the one that the model was built from")
    return given


def _same(one: Model, other: Model) -> bool:
    if one.joint_names != other.joint_names or one.body_names != other.body_names:
        return False
    arrays = ("placement", "screw", "mass", "center", "inertia", "viscous", "coulomb")
    return all(np.allclose(getattr(one, x), getattr(other, x), rtol=0, atol=SAME) for x in arrays)


class Body(NamedTuple):
    """An organism, and whether it is loose: not held by the ground."""

    organism: Organism
    loose: bool


class Pair(NamedTuple):
    """Who docks where: the guest comes to the host, which keeps its base.

    Attributes:
        new: Whether the guest was not part of the run before.
        module, port: Of the host.
        guest_module, guest_port: Of the guest.
    """

    host: Body
    guest: Body
    new: bool
    module: str
    port: int | str
    guest_module: str
    guest_port: int | str


def holder(bodies: Sequence[Body], module: str) -> Body:
    """The body that a module is part of."""
    for body in bodies:
        if module in body.organism:
            return body
    names = [name for body in bodies for name in body.organism.modules]
    raise UnknownNameError(f"no module {module!r} in this run: modules are {choices(names)}")


def pair_of(event: Dock, bodies: Sequence[Body]) -> Pair:
    """Host and guest of a docking."""
    host = holder(bodies, event.parent)
    ends = (event.parent, event.port, event.child, event.child_port)
    known = [body for body in bodies if event.child in body.organism]
    if not known:
        return Pair(host, Body(_newcomer(event, host.organism), True), True, *ends)
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
        return Pair(host, guest, False, *ends)
    # only one body stands on the ground, and it stays there
    return Pair(guest, host, False, *ends[2:], *ends[:2])


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


def merged(event: Dock, pair: Pair, hinges: str) -> Organism:
    """The body after a docking."""
    guest = pair.guest.organism
    if hinges == "dyad" and pair.guest_module != guest.base and _bends(guest):
        raise DockingError(
            f"in the dyad model a body docks by its base, '{guest.base}': docked by "
            f"'{pair.guest_module}' it would bend about other hinges; use hinges='physical'"
        )
    return pair.host.organism.merge(
        pair.module, pair.port, guest, pair.guest_module, pair.guest_port, turn=event.turn
    )


def _bends(organism: Organism) -> bool:
    return any(organism.kind(name).dyad_joint is not None for name in organism.modules)


def after(event: Event, bodies: Sequence[Body], options: ModelOptions) -> list[Body]:
    """The bodies after an event, or the error that says why it cannot happen."""
    if isinstance(event, Undock):
        body = holder(bodies, event.module)
        rest, gone = body.organism.undock(event.module)
        return [*(b for b in bodies if b is not body), Body(rest, body.loose), Body(gone, True)]
    if isinstance(event, Dock):
        pair = pair_of(event, bodies)
        whole = merged(event, pair, options.hinges)
        others = [b for b in bodies if b is not pair.host and b is not pair.guest]
        return [*others, Body(whole, pair.host.loose)]
    raise StateError(f"events are Dock(...) and Undock(...), got {event!r}")
