"""`MassNetwork`: the agents of all modules of an organism on a transport, round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from modurob.checks import positive
from modurob.distributed.agent import Message
from modurob.distributed.mass.agent import MassAgent
from modurob.distributed.mass.news import CONTACT_NUMBERS, MOST_CONTACTS, decode, moved_contacts
from modurob.distributed.mass.properties import MassProperties, unpacked
from modurob.distributed.mass.state import Module, View
from modurob.distributed.mass.topology import check_tree, links_of, turns_of
from modurob.distributed.transports import InProcess
from modurob.errors import StateError, UnknownNameError, choices
from modurob.model import Model
from modurob.organism import Organism

PERIOD = 1e-3  # [s] of a round


class MassNetwork:
    """Modules that find out together how heavy they are, where their center is, who leads.

    In a round every module sends what is new, the messages travel, and every module takes in what
    has arrived. With perfect links every module knows the exact totals after as many rounds as the
    longest path has dockings.

    Args:
        organism: Who is docked to whom; each module knows its own neighbors only.
        transport: Anything with ``send``, ``receive`` and ``tick``, such as `InProcess`; perfect
            links by default. One without any links gets those of the organism.
        rng: For boot numbers and tickets.
        period: Seconds of a round.
        resend, give_up, heartbeat, tickets: See `MassAgent`.

    Attributes:
        agents, states: By module.
        rounds: How many have passed.
        news, confirmations, bytes: Messages with news, those without, and bytes, all sent so far.
    """

    def __init__(
        self,
        organism: Organism,
        transport: Any = None,
        *,
        rng: np.random.Generator | None = None,
        period: float = PERIOD,
        **options: Any,
    ) -> None:
        self.organism = organism
        self.transport = InProcess() if transport is None else transport
        if hasattr(self.transport, "links"):
            self._plug_all()
        self.period = positive("period", period, "seconds")
        self._rng = np.random.default_rng(0) if rng is None else rng
        self._turns = turns_of(organism)
        self.agents = {name: MassAgent(organism.kind(name), **options) for name in organism}
        self.states: dict[str, Module] = {}
        self.rounds = self.news = self.confirmations = self.bytes = 0
        self._asleep: set[str] = set()
        self._outboxes: dict[str, list[Message]] = {}
        for name, agent in self.agents.items():
            self.states[name] = agent.started(self._turns[name], self._rng)

    def _plug_all(self) -> None:
        if not self.transport.links():
            for a, b in links_of(self.organism):
                self.transport.plug(a, b)
        check_tree(self.transport.links())

    # -- what modules sense ----------------------------------------------------------------------

    @property
    def joint_names(self) -> tuple[str, ...]:
        """All joints, module by module: ``m3.pitch``."""
        return tuple(
            f"{name}.{joint}"
            for name, agent in self.agents.items()
            for joint in agent.body.joint_names
        )

    def measure(self, q: Any, v: Any = None, *, model: Model | None = None) -> None:
        """Tell every module its own joints.

        Args:
            q: By joint name, or an array in the order of `joint_names` or of `model`. [rad, m]
            v: Likewise, the velocities; at rest by default.
            model: Whose order the arrays have; joints that it does not have stand at zero.
        """
        names = self.joint_names if model is None else model.joint_names
        q, v = _by_name("q", q, names, self.joint_names), _by_name("v", v, names, self.joint_names)
        for name, agent in self.agents.items():
            own = [f"{name}.{joint}" for joint in agent.body.joint_names]
            here = [np.array([x.get(joint, 0.0) for joint in own]) for x in (q, v)]
            self.states[name] = agent.sensed(self.states[name], *here)

    def touch(
        self,
        module: str,
        contacts: Any,
        pose: Any,
        *,
        friction: float = 1.0,
        body: str | None = None,
    ) -> None:
        """A module feels the ground.

        Args:
            contacts: (k, 3) points in the module's frame, the normal being up; or (k, 7) with
                normals in the module's frame and coefficients of friction. [m]
            pose: (4, 4) the module in the world, which it can sense because it stands on it.
            friction: Coefficient of all contacts, where they have none of their own.
            body: The body that touches; the module's first by default.
        """
        agent, pose = self._agent(module), np.asarray(pose, dtype=float)
        points = np.atleast_2d(np.asarray(contacts, dtype=float))
        if points.shape[1] == 3:
            up = np.broadcast_to(pose[2, :3], points.shape)
            points = np.column_stack([points, up, np.full(len(points), friction)])
        if points.shape[1] != CONTACT_NUMBERS or not 1 <= len(points) <= MOST_CONTACTS:
            raise StateError(
                f"contacts are 1 to {MOST_CONTACTS} rows of 3 or 7 numbers, got {points.shape}"
            )
        index = 0 if body is None else agent.body.kind.body_index(body)
        self.states[module] = agent.in_contact(self.states[module], points, pose, index)

    def lift(self, module: str) -> None:
        """A module leaves the ground."""
        self.states[module] = self._agent(module).lifted(self.states[module])

    # -- faults ----------------------------------------------------------------------------------

    def freeze(self, module: str) -> None:
        """The module's program stops; its memory stays."""
        self._agent(module)
        self._asleep.add(module)

    def kill(self, module: str) -> None:
        """The module dies: it neither computes, sends nor receives."""
        self.freeze(module)
        if hasattr(self.transport, "kill"):
            self.transport.kill(module)

    def wake(self, module: str) -> None:
        """A frozen module goes on where it was."""
        self._agent(module)
        self._asleep.discard(module)

    def reboot(self, module: str) -> None:
        """The module starts anew: all it knew is lost, what it senses stays."""
        agent, old = self._agent(module), self.states[module]
        new = agent.started(self._turns[module], self._rng)
        new = agent.sensed(new, old.q, old.v, old.free)
        if old.pose is not None:
            new = agent.in_contact(new, old.contacts, old.pose, old.contact_body)
        self.states[module] = new
        if hasattr(self.transport, "revive"):
            self.transport.revive(module)
        self._outboxes.pop(module, None)
        self._asleep.discard(module)

    # -- rounds ----------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self.rounds * self.period

    def round(self, count: int = 1) -> int:
        """Let `count` rounds pass; returns how many messages were sent in them."""
        sent = 0
        for _ in range(count):
            if self.rounds == 0:
                self._step_all()  # nobody has heard anything yet
            for name, outbox in self._outboxes.items():
                self._count(outbox)
                sent += len(outbox)
                self.transport.send(name, outbox)
            self._outboxes = {}
            self.transport.tick()
            self.rounds += 1
            self._step_all()
        return sent

    def settle(self, most: int = 10_000) -> int:
        """Rounds until nobody has anything to say; at most `most`."""
        for count in range(most):
            if self.rounds and self.quiet:
                return count
            self.round()
        return most

    @property
    def quiet(self) -> bool:
        """Whether nobody is about to send anything, or waits for an answer."""
        awake = [state for name, state in self.states.items() if name not in self._asleep]
        waiting = any(
            not link.confirmed and not link.gone for state in awake for link in state.links.values()
        )
        told = all(state.spoken for state in awake)
        return told and not waiting and not any(self._outboxes.values())

    def _step_all(self) -> None:
        for name, agent in self.agents.items():
            if name in self._asleep:
                continue
            inbox = self.transport.receive(name)
            self.states[name], outbox = agent.step(self.states[name], inbox, self.now)
            self._outboxes[name] = outbox

    def _count(self, outbox: Sequence[Message]) -> None:
        for message in outbox:
            packet = decode(message.payload)
            self.bytes += len(message.payload)
            if packet is not None and packet.news:
                self.news += 1
            else:
                self.confirmations += 1

    # -- what modules know -----------------------------------------------------------------------

    def view(self, module: str) -> View:
        """Everything a module makes of what it knows."""
        return self._agent(module).view(self.states[module])

    def total(self, module: str) -> MassProperties:
        """The whole as one module sees it, in its own frame."""
        return unpacked(self.view(module).total)

    def beyond(self, module: str, port: int | str) -> MassProperties:
        """What lies beyond a connector, in the module's frame; nothing if it is free."""
        agent = self._agent(module)
        if str(port) not in agent.body.labels:
            labels = choices(agent.body.labels)
            raise UnknownNameError(f"no port {port!r} on '{module}': ports are {labels}")
        found = self.view(module).beyond.get(str(port))
        return unpacked(np.zeros((4, 4)) if found is None else found.mass)

    def total_in_world(self, module: str) -> MassProperties:
        """The whole as one module sees it, in the world."""
        return unpacked(self.view(module).total).moved(self.world_pose(module))

    def contacts_in_world(self, module: str) -> np.ndarray:
        """(k, 7) all points of contact as one module knows them: position, normal, friction."""
        return moved_contacts(self.world_pose(module), self.view(module).contacts)

    def world_pose(self, module: str) -> np.ndarray:
        """(4, 4) a module in the world, as it knows it."""
        T_wm = self.view(module).T_wm
        if T_wm is None:
            raise StateError(
                f"'{module}' does not know the world's frame: no module in contact leads yet; "
                "touch() one, and let some rounds pass"
            )
        return T_wm

    @property
    def leader(self) -> str | None:
        """The module that holds itself for the leader; None while there is none, or several."""
        leading = [n for n in self.agents if n not in self._asleep and self.view(n).leads]
        return leading[0] if len(leading) == 1 else None

    def _agent(self, module: str) -> MassAgent:
        if module not in self.agents:
            raise UnknownNameError(f"no module {module!r}: modules are {choices(self.agents)}")
        return self.agents[module]


def _by_name(
    what: str, values: Any, names: Sequence[str], known: Sequence[str]
) -> Mapping[str, float]:
    if values is None:
        return {}
    if isinstance(values, Mapping):
        unknown = [name for name in values if name not in known]
        if unknown:
            raise UnknownNameError(f"no joint '{unknown[0]}': joints are {choices(known)}")
        return values
    array = np.asarray(values, dtype=float)
    if array.shape != (len(names),):
        raise StateError(f"{what} has shape {array.shape}, expected ({len(names)},), a joint each")
    return dict(zip(names, array.tolist(), strict=True))
