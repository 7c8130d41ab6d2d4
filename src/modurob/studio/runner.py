"""The run of a project that is being computed: it goes on while pages come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modurob import ModurobError, StateError
from modurob.organism.files import to_document
from modurob.studio import runs
from modurob.studio.jobs import Cancelled, Worker
from modurob.studio.settings import RunRecord

if TYPE_CHECKING:
    from modurob.studio.session import Session


class Runner:
    """Computes the runs of a session, one at a time, in a process of its own.

    Attributes:
        progress: From 0 to 1; None while nothing is computed.
        state: The progress or the result in a few words.
        problem: Reason why the last run failed or stopped early; empty when it did not.
        done: Number of the last run, if it has a result.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._worker = session, Worker()
        self.progress: float | None = None
        self.state = self.problem = ""
        self.done: int | None = None

    @property
    def busy(self) -> bool:
        """Whether a run is being computed."""
        return self.progress is not None

    async def run(self) -> None:
        """Compute a run of the project as it is now, and add it to the project.

        Listeners hear the topic "run" at each step; `state` and `problem` tell the result.
        """
        session = self._session
        if self.busy:
            raise StateError("a run is being computed: wait for it, or cancel it first")
        session.model()  # says at once what does not fit
        settings = session.settings
        request = runs.Request(
            organism=to_document(session.body()),
            kinds=session.project.kinds_document(),
            pose=dict(session.project.pose),
            settings=settings,
            folder=session.folder.runs(session.name),
            number=session.next_run(),
            title=runs.title(settings),
        )
        self.progress, self.state, self.problem, self.done = 0.0, "starting…", "", None
        session.tell("run")
        try:
            self._keep(await self._worker.run(runs.perform, request, progress=self._advance))
        except ModurobError as error:
            self.state, self.problem = "it did not run", str(error)
        except Cancelled:
            self.state = "cancelled"
        except BaseException:
            self.state = "it did not run"
            raise
        finally:
            self.progress = None
            session.tell("run")

    def _keep(self, record: RunRecord) -> None:
        stopped = record.status == "stopped"
        self.state = "it stopped early" if stopped else f"done in {record.took:.1f} s"
        self.problem, self.done = record.message, record.number
        self._session.add_run(record)

    def _advance(self, done: float) -> None:
        self.progress, self.state = round(done, 3), f"{100 * done:.0f} %"
        self._session.tell("run")

    def prepare(self) -> None:
        """Start the process now, so that the first run need not wait for it."""
        self._worker.prepare()

    def cancel(self) -> None:
        """End the run that is being computed, if there is one."""
        self._worker.cancel()

    def close(self) -> None:
        """End the process."""
        self._worker.close()
