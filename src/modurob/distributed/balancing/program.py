"""Programs of the processes of modules that balance, and of those that stand."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from modurob.distributed.agent import Message
from modurob.distributed.balancing.agent import BalancingAgent
from modurob.distributed.balancing.standing import StandingAgent
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
        self._drives: Any = self._agent  # of a class with `driven`
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
            self._sense(*np.array(readings).reshape(-1, 2).T)
        outbox = super()._exchange(self._waiting, self._clock(now))
        self._waiting = []
        if readings:
            self._state, commands = self._drives.driven(self._state)
            self._drive.write(tuple(commands.tolist()))
        return outbox

    def _sense(self, q: np.ndarray, v: np.ndarray) -> None:
        self._state = self._agent.sensed(self._state, q, v)

    def _clock(self, now: float) -> float:
        return now


class StandingProgram(BalancingProgram):
    """The `Program` of a module of a robot that stands; its clock counts simulated seconds."""

    agent_class = StandingAgent

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._begin, self._speed = time.monotonic(), settings["speed"]

    def _sense(self, q: np.ndarray, v: np.ndarray) -> None:
        super()._sense(q, v)
        self._state = self._drives.felt(self._state, self._drive.feel())

    def _clock(self, now: float) -> float:
        return self._speed * (now - self._begin)
