"""What runs on one module: a pure function of its own state and its neighbours' messages."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple, Protocol


class Message(NamedTuple):
    """Bytes at a port of the module at hand: where they go out, or where they came in."""

    port: str
    payload: bytes


class Agent(Protocol):
    """The program of a module. It knows its own state and what its neighbours say, and no more."""

    def step(self, state: Any, inbox: Sequence[Message], now: float) -> tuple[Any, list[Message]]:
        """The next state and what to send. The given state is left as it is.

        Args:
            state: Of this module, as the last step returned it.
            inbox: What came in since then.
            now: A clock that never goes back. [s]
        """
        ...


class Transport(Protocol):
    """Carries messages between modules whose ports are plugged together."""

    def send(self, module: str, messages: Sequence[Message]) -> None: ...

    def receive(self, module: str) -> list[Message]: ...

    def tick(self) -> None: ...


def play_round(
    transport: Transport,
    agents: Mapping[str, Agent],
    states: MutableMapping[str, Any],
    now: float,
) -> None:
    """Let every agent step once, then move the messages on; `states` are replaced in place."""
    for module, agent in agents.items():
        states[module], outbox = agent.step(states[module], transport.receive(module), now)
        transport.send(module, outbox)
    transport.tick()
