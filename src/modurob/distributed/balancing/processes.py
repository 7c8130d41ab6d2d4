"""`BalancingProcesses`: a robot that balances by the processes of its modules; its simulated body.

Each module has a process, and so has the simulated body: the modules reach it through their drives
alone, and each other by datagrams.
"""

from __future__ import annotations

import select
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from modurob.checks import positive
from modurob.distributed.balancing.agent import BalancingAgent
from modurob.distributed.balancing.network import BalancingModules
from modurob.distributed.balancing.plant import GearedDrive
from modurob.distributed.balancing.program import BalancingProgram
from modurob.distributed.balancing.support import Region, goal_of
from modurob.distributed.drive import SharedMemory
from modurob.distributed.mass.base import ends_of
from modurob.distributed.mass.processes import MassProcesses
from modurob.distributed.plant import BASE, PLANT, PlantOptions, start_plant
from modurob.distributed.processes import START_TIMEOUT_S
from modurob.errors import StateError
from modurob.organism import Organism

PERIOD_S, DECISION = 0.01, 2  # of the modules' clocks, in simulated time
SPEED = 0.25  # 20 modules and the plant then take 0.8 of a core
KNOWN = 1e-9  # share of the mass that may be missing when the robot is let go


class PlantProcesses(MassProcesses):
    """Modules as processes, and the simulated body that they move as one more.

    Args:
        period: Of the modules' clocks, in simulated time. [s]
        speed: Simulated seconds in a second.
        options: See `MassProcesses`.
    """

    drive: GearedDrive

    def __init__(self, organism: Organism, *, period: float, speed: float, **options: Any) -> None:
        self._interval = positive("period", period, "seconds") / positive(
            "speed", speed, "simulated seconds a second"
        )
        self.speed, self._memory, self._positions = speed, None, dict[str, float]()
        super().__init__(organism, period=period, **options)

    @abstractmethod
    def _plant(self) -> PlantOptions:
        """Properties of the simulated body."""

    def _start(self, options: dict[str, Any]) -> None:
        self._memory = SharedMemory(start_plant(self._processes, self._plant(), len(self.organism)))
        for slot, name in enumerate(self.organism):
            kind = self.organism.kind(name).model_dump(mode="json")
            self._processes.send(PLANT, {"add": name, "kind": kind, "slot": slot})
        self._place_body()
        super()._start(options)

    def _place_body(self) -> None:
        """Give the pieces of the body their first positions, before modules measure them."""

    def _job(self, module: str, options: dict[str, Any]) -> dict[str, Any]:
        assert self._memory is not None
        drive = {"path": self._memory.path, "slot": self.organism.modules.index(module)}
        job = super()._job(module, options)
        return {**job, "drive": drive, "interval": self._interval, "speed": self.speed}

    def plug(self, module: str) -> None:
        super().plug(module)
        entry = self._docking(module)
        self._processes.send(PLANT, {"dock": [*ends_of(entry), entry.turn]})

    def unplug(self, module: str) -> None:
        super().unplug(module)
        self._processes.send(PLANT, {"undock": [*ends_of(self._docking(module))]})

    def close(self) -> None:
        super().close()
        if self._memory is not None:
            self._memory.close()
            Path(self._memory.path).unlink(missing_ok=True)
            self._memory = None

    # -- the truth, which no module has ------------------------------------------------------------

    def positions(self) -> dict[str, float]:
        """Positions of all joints, as the plant has them. [rad, m]"""
        if self._memory is None:
            raise StateError("the network is closed: its processes have ended")
        self._from_plant(0.0)
        for slot, (name, agent) in enumerate(self.agents.items()):
            values = self._memory.readings(slot).read_new() or ()  # nothing: the last ones
            joints = (f"{name}.{joint}" for joint in agent.body.joint_names)
            self._positions |= dict(zip(joints, values[::2], strict=False))
        return dict(self._positions)

    def _from_plant(self, seconds: float) -> list[dict[str, Any]]:
        """Answers of the plant, for which to wait so long; its errors are raised."""
        pipe, answers = self._processes.pipe(PLANT), []
        while self.is_alive(PLANT) and select.select([pipe], [], [], seconds)[0]:
            answers += self._processes.listen(pipe)[1] or ()
            seconds = 0.0
        for answer in answers:
            if "error" in answer:
                raise StateError(answer["error"])
        if not self.is_alive(PLANT):
            raise StateError("the plant is dead: its process has ended")
        return answers


class BalancingProcesses(BalancingModules, PlantProcesses):
    """Modules that balance, as processes on this machine, against a simulated body.

    The robot is held until every module knows the whole. Use it in a ``with`` block, or `close` it.

    Args:
        organism, law: See `BalancingModules`.
        target: (2,) what the center shall be above; by default the nearest place in the region of
            the contacts, as each module knows them. [m]
        period: Of the modules' clocks, in simulated time. [s]
        decision: Ticks from one decision to the next.
        speed: Simulated seconds in a second.
        options: See `BalancingModules` and `MassProcesses`.
    """

    program = BalancingProgram

    def __init__(
        self,
        organism: Organism,
        law: str = "shared",
        *,
        target: Any = None,
        period: float = PERIOD_S,
        decision: int = DECISION,
        speed: float = SPEED,
        **options: Any,
    ) -> None:
        if callable(target):
            raise StateError("the target of processes is a point (x, y) or None, got a function")
        if options.get("stuck"):
            raise StateError("joints of processes do not get stuck: BalancingNetwork has such ones")
        self._goal = None if target is None else goal_of(target)
        self._region: Region | None = None
        options |= {"target": target, "period": period, "decision": decision, "speed": speed}
        super().__init__(organism, law, **options)
        try:
            self._let_go()
        except BaseException:
            self.close()
            raise

    def _plant(self) -> PlantOptions:
        R_wb = self.organism.base_pose[:3, :3]
        return PlantOptions(
            gravity=(R_wb.T @ self.model.gravity).tolist(), friction=self.drive.friction,
            torque=self.drive.torque, geared=True, speed=self.speed,
        )  # fmt: skip

    def _let_go(self) -> None:
        """Fix the base to the ground and let the rest move, once every module knows the whole."""
        mass = self.model.mass.sum() * (1 - KNOWN)

        def ready() -> bool:
            known = (self.knowledge(name) for name in self.organism)
            return len(self.positions()) == len(self.joint_names) and all(
                x.T_wm is not None and x.total[3, 3] >= mass for x in known
            )

        if not self.wait(ready, START_TIMEOUT_S):
            raise StateError(
                f"not all modules know the whole after {START_TIMEOUT_S:g} s: choose a lower speed"
            )
        self.distance()  # loads and compiles what it needs, before the body moves
        self._processes.send(PLANT, {"dock": [[self.organism.base, ""], [BASE, ""], 0]})

    def center(self) -> np.ndarray:
        """(3,) the true center of mass of what is docked to the base, in the world. [m]"""
        body = self.organism
        for module in self._dockings.keys() - self._docked:
            if module in body:
                body, _ = body.undock(module)
        model, q = body.model("physical", elastic=False), self.positions()
        return model.center_of_mass(np.array([q.get(name, 0.0) for name in model.joint_names]))

    def distance(self) -> float:
        """Distance of the true center from the place that the base wants it to be above. [m]"""
        center, base = self.center(), self.organism.base
        agent = self.agents[base]
        assert isinstance(agent, BalancingAgent)
        if self._goal is not None:
            goal = self._goal(0.0, center)
        else:
            if self.is_alive(base):  # else what it wanted last
                self._region = agent.region(self.knowledge(base))
            goal = center[:2] if self._region is None else self._region.nearest(center)
        return float(np.linalg.norm(center[:2] - goal))
