"""`StandingProcesses`: a robot that stands on the ground by the processes of its modules."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from modurob.checks import positive
from modurob.distributed.balancing.faults import Fault, checked_faults
from modurob.distributed.balancing.on_ground import PUSH_S, Impulse, StandingModules
from modurob.distributed.balancing.processes import SPEED, PlantProcesses
from modurob.distributed.balancing.program import StandingProgram
from modurob.distributed.balancing.stance import Foot, Step
from modurob.distributed.mass.processes import ANSWER_TIMEOUT_S
from modurob.distributed.plant import BASE, PLANT, PlantOptions
from modurob.distributed.processes import START_TIMEOUT_S
from modurob.errors import StateError
from modurob.organism import Organism
from modurob.sim import Ground
from modurob.sim.body_trajectory import BodyTrajectory


class StandingProcesses(StandingModules, PlantProcesses):
    """Modules of a robot that stands, as processes on this machine, against a simulated body.

    The robot is held in its first posture until the servos of every module are on. Use it in a
    ``with`` block, or `close` it.

    Args:
        organism, feet, steps: See `StandingModules`.
        ground: A plane.
        q0: (nq,) first configuration of the free body.
        speed: Simulated seconds in a second.
        options: See `StandingModules` and `MassProcesses`.
    """

    program = StandingProgram

    def __init__(
        self,
        organism: Organism,
        feet: Sequence[Foot],
        steps: Sequence[Step] = (),
        *,
        ground: Ground,
        q0: np.ndarray,
        speed: float = SPEED,
        **options: Any,
    ) -> None:
        self._ground, self._q0 = ground, q0
        options |= {"friction": ground.friction, "speed": speed}
        super().__init__(organism, feet, steps, **options)
        try:
            self._let_go()
        except BaseException:
            self.close()
            raise

    def _plant(self) -> PlantOptions:
        return PlantOptions(
            gravity=self.model.gravity.tolist(), friction=self.drive.friction,
            torque=self.drive.torque, stiffness=self._stiffness, ground=asdict(self._ground),
            geared=True, speed=self.speed,
        )  # fmt: skip

    def _place_body(self) -> None:
        joints = dict(zip(self.model.joint_names, self._q0[7:].tolist(), strict=True))
        self._processes.send(PLANT, {"hold": joints, "pose": self._q0[:7].tolist()})

    def _let_go(self) -> None:
        assert self._memory is not None
        waiting = [self._memory.torques(slot) for slot in range(len(self.organism))]

        def ready() -> bool:
            waiting[:] = [mailbox for mailbox in waiting if mailbox.read_new() is None]
            return not waiting

        if not self.wait(ready, START_TIMEOUT_S):
            raise StateError(
                f"servos of {len(waiting)} modules are off after {START_TIMEOUT_S:g} s: choose a "
                "lower speed"
            )
        self._processes.send(PLANT, {"dock": [[self.organism.base, ""], [BASE, ""], 0]})

    def kill(self, module: str) -> None:
        """Kill a module's process, and let its servos go."""
        super().kill(module)
        self._processes.send(PLANT, {"fault": module, "as": "limp"})

    def push(self, impulse: Sequence[float]) -> None:
        """Push the base with an impulse (3,) in the world, within 50 ms. [N s]"""
        where = {"module": self.organism.base, "force": (np.array(impulse) / PUSH_S).tolist()}
        self._processes.send(PLANT, {"push": where, "seconds": PUSH_S})

    def run(
        self,
        duration: float,
        *,
        push: Impulse | None = None,
        faults: Sequence[Fault] = (),
        record: float = 0.02,
        progress: Callable[[float], None] | None = None,
    ) -> BodyTrajectory:
        """Wait so many simulated seconds; returns states and contact forces meanwhile.

        Args:
            duration: [s]
            push: Of the base.
            faults: Modules that die.
            record: Seconds between two states, or more if the machine is slow.
            progress: Called with the fraction that is done.
        """
        waiting = checked_faults(faults, self.organism.modules)
        rows, begin, now = [], None, 0.0
        while now < positive("duration", duration, "seconds"):
            row = self._observed()
            begin = row["t"] if begin is None else begin
            now = float(row["t"] - begin)
            rows.append({**row, "t": np.array(now)})
            while waiting and waiting[0].time <= now:
                self.kill(waiting.pop(0).module)
            if push is not None and push.time <= now:
                self.push(push.vector)
                push = None
            if progress is not None:
                progress(min(now / duration, 1.0))
            time.sleep(record / self.speed)
        t, q, v, contact = (np.array([row[x] for row in rows]) for x in ("t", "q", "v", "contact"))
        tau = np.full(v.shape, np.nan)  # known to the drives alone
        return BodyTrajectory(
            self.organism.base, self.model, self.organism, t, q, v, tau, {"contact": contact},
            lambda: np.gradient(v, t, axis=0),
        )  # fmt: skip

    def _observed(self) -> dict[str, np.ndarray]:
        end = time.monotonic() + ANSWER_TIMEOUT_S
        while time.monotonic() < end:
            self._processes.send(PLANT, {"ask": True})
            for answer in self._from_plant(ANSWER_TIMEOUT_S):
                if answer.get("state"):
                    return {key: np.array(value) for key, value in answer["state"].items()}
        raise StateError("the plant runs, but has not answered in time")
