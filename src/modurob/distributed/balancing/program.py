"""The program of the process of a module that balances."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from modurob.distributed.agent import Message
from modurob.distributed.balancing.agent import BalancingAgent, BalancingState
from modurob.distributed.drive import SharedDrive
from modurob.distributed.mass.processes import MassProgram


class BalancingProgram(MassProgram):
    """The `Program` of a module's process, which works at the ticks of its own clock.

    Messages wait for the next tick: were each passed on as it comes, every tick of every module
    would go through all the others.
    """

    agent_class = BalancingAgent

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._drive = SharedDrive(**settings["drive"])
        self._interval = settings["interval"]
        self._due = time.monotonic()
        self._waiting: list[Message] = []

    @property
    def wake(self) -> float:
        return self._due

    def _exchange(self, inbox: list[Message], now: float) -> list[Message]:
        self._waiting += inbox
        if now < self._due:
            return []
        self._due = max(self._due + self._interval, now)
        readings = self._drive.read()
        if readings:
            q, v = np.array(readings).reshape(-1, 2).T
            self._state = self._agent.sensed(self._state, q, v)
        outbox = super()._exchange(self._waiting, now)
        self._waiting = []
        if readings:
            agent, state = self._agent, self._state
            assert isinstance(agent, BalancingAgent)
            assert isinstance(state, BalancingState)
            self._state, torques = agent.driven(state)
            self._drive.write(tuple(torques.tolist()))
        return outbox
