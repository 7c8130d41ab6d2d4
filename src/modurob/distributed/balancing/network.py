"""`BalancingNetwork`: the programs of modules that balance, round by round in one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from modurob.distributed.balancing.agent import PERIOD_S, BalancingAgent, BalancingState
from modurob.distributed.balancing.plant import GearedDrive, with_drives
from modurob.distributed.mass.base import Network
from modurob.distributed.mass.network import MassNetwork
from modurob.errors import StateError
from modurob.organism import Organism


class BalancingModules(Network):
    """Modules that balance, each with its own program; its base is fixed to the ground.

    The base touches the ground below its origin; `touch` tells it other contacts, and other modules
    theirs.

    Args:
        organism: A tree.
        law, drive, stuck, gravity: See `balance`.
        options: Further ones of the modules; see `BalancingAgent`.

    Attributes:
        model: The body.
        plant: The body with its drives.
    """

    agent_class = BalancingAgent

    def __init__(
        self,
        organism: Organism,
        law: str = "shared",
        *,
        drive: GearedDrive | None = None,
        stuck: Sequence[str] = (),
        gravity: float = 9.81,
        **options: Any,
    ) -> None:
        if not isinstance(organism, Organism):
            raise StateError(f"balancing takes an Organism, got {type(organism).__name__}")
        down = (0.0, 0.0, -gravity)
        self.model = model = organism.model("physical", gravity=down, elastic=False)
        self.drive, stuck = drive or GearedDrive(), [stuck] if isinstance(stuck, str) else stuck
        for joint in stuck:
            model.joint_index(joint)
        self.plant = with_drives(model, self.drive, np.isin(model.joint_names, list(stuck)))
        self._moving = {*model.joint_names} - {*stuck}
        options |= {"law": law, "friction": self.drive.friction, "gravity": gravity}
        options |= {"width": organism.kind(organism.base).size}
        super().__init__(organism, **options)
        self.touch(organism.base, np.zeros(3), organism.base_pose)

    def _settings(self, module: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        names = [joint.name for joint in self.organism.kind(module).joints]
        return {**options, "stuck": [n for n in names if f"{module}.{n}" not in self._moving]}


class BalancingNetwork(BalancingModules, MassNetwork):
    """Modules that balance, in one process: a controller for `simulate`.

    `balance` computes the same torques for all modules at once, bit for bit.

    Args:
        organism, law, options: See `BalancingModules` and `MassNetwork`.
        period: Of the modules' clock, and of a round of messages. [s]

    Attributes:
        sample_time: The period. [s]
        torques: By module, (joints,) of its drives. [N m, N]
    """

    def __init__(
        self, organism: Organism, law: str = "shared", *, period: float = PERIOD_S, **options: Any
    ) -> None:
        self.sample_time = period
        super().__init__(organism, law, period=period, **options)
        self.torques = {n: np.zeros(len(a.body.joint_names)) for n, a in self.agents.items()}
        self._order = [self.joint_names.index(name) for name in self.model.joint_names]

    def _settings(self, module: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**super()._settings(module, options), "period": self.sample_time}

    def command(self, t: float, q: np.ndarray, v: np.ndarray, reference: object) -> np.ndarray:
        """(nv,) torques of the drives after a round of messages. [N m, N]"""
        self.measure(q, v, model=self.model)
        self.round()
        for name in self._running():
            agent, state = self.agents[name], self.states[name]
            assert isinstance(agent, BalancingAgent)
            assert isinstance(state, BalancingState)
            self.states[name], self.torques[name] = agent.driven(state)
        tau = np.concatenate(list(self.torques.values()))[self._order]
        return np.clip(tau, -self.drive.torque, self.drive.torque)

    def kill(self, module: str) -> None:
        """Stop a module altogether; its drives let go, those of a frozen one go on."""
        super().kill(module)
        self.torques[module] = np.zeros(len(self.torques[module]))
