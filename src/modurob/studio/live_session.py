"""The live robot of a session: started, shared by its pages, kept as runs, ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from modurob import Organism, StateError, Trajectory
from modurob.control import CONTROLLERS
from modurob.scenario.settings import RunRecord
from modurob.studio import runs
from modurob.studio.jobs import JobCanceled
from modurob.studio.live import LiveOptions, LiveRobot, on_processes, ways

if TYPE_CHECKING:
    from modurob.studio.session import Session

MOST_MODULES = 60  # processes


class Live:
    """The live robot of a session: one at a time, shared by its pages.

    Attributes:
        robot: The robot; None while it is off.
        options: Of the robot.
    """

    def __init__(
        self,
        session: Session,
        make: Callable[[Organism, LiveOptions], LiveRobot] = on_processes,
    ) -> None:
        self._session, self._make = session, make
        self._lock, self._starting = threading.Lock(), False
        self.robot: LiveRobot | None = None
        self.options = LiveOptions()

    @property
    def on(self) -> bool:
        """True from the start to the end."""
        return self._starting or self.robot is not None

    async def start(self, options: LiveOptions) -> None:
        """Switch on the body of the project as it is now."""
        organism = self._session.body()
        if self.on:
            raise StateError("this project is live already: end it first")
        if len(organism) > MOST_MODULES:
            raise StateError(
                f"Live starts a process for each module, for up to {MOST_MODULES}; this body has "
                f"{len(organism)}"
            )
        ways(organism)
        self._starting, self.options = True, options
        self._session.notify("live")
        try:
            await asyncio.to_thread(self._switch_on, organism)
        finally:
            self._starting = False
            self._session.notify("live")

    def _switch_on(self, organism: Organism) -> None:
        robot = self._make(organism, self.options)
        try:
            with self._lock:
                if not self._starting:  # ended meanwhile
                    raise JobCanceled
                self.robot = robot
            robot.power_up()
        except BaseException:
            self.close()
            robot.close()
            raise

    async def keep(self) -> int:
        """End the record and add it to the runs of the project; the number of the run."""
        robot, session = self.robot, self._session
        if robot is None:
            raise StateError("nothing is live: press Start first")
        result, number = robot.recorded(), session.next_run()
        folder = session.folder.runs(session.name)
        await asyncio.to_thread(runs.write, folder, number, result)
        session.add_run(self._fact(result.trajectory, number))
        return number

    def _fact(self, trajectory: Trajectory, number: int) -> RunRecord:
        options, seconds = self.options, float(trajectory.parts[-1].t[-1])
        settings = self._session.settings.edited(
            hinges="physical", base="fixed", gravity=options.gravity, controller=options.law,
            motion="hold", estimator="none", events=(), duration=max(seconds, options.period),
            noise_q=options.noise_q, noise_v=options.noise_v, loss=options.loss,
        )  # fmt: skip
        title = f"live, {CONTROLLERS[options.law].name}"
        return RunRecord(
            number=number, title=title, status="finished", seconds=seconds, took=seconds,
            settings=settings,
        )  # fmt: skip

    async def end(self) -> None:
        """Keep a record that is being made, and switch everything off."""
        try:
            if self.robot is not None and self.robot.recording is not None:
                await self.keep()
        finally:
            await asyncio.to_thread(self.close)
            self._session.notify("live")

    def close(self) -> None:
        """Switch everything off; no process is left."""
        with self._lock:
            robot, self.robot, self._starting = self.robot, None, False
        if robot is not None:
            robot.close()
