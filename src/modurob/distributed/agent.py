"""Programs of modules: pure functions of their own state and their neighbors' messages."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from modurob.distributed.transports import Transport


class Message(NamedTuple):
    """Bytes that go out of a port of a module, or came in there."""

    port: str
    payload: bytes


class Agent(Protocol):
    """The program of a module, with its own state and its neighbors' messages for input."""

    def step(self, state: Any, inbox: Sequence[Message], now: float) -> tuple[Any, list[Message]]:
        """Return the next state and messages to send. The given state is left as it is.

        Args:
            state: Of this module, as the last step returned it.
            inbox: Messages since then.
            now: A clock that never goes back. [s]
        """
        ...


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
