"""Runs of a project: computed in a process of their own, kept as files, one at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from modurob import Model, ModuleType, ModurobError, Organism, Scenario, StateError, Trajectory
from modurob.gaits import GAITS
from modurob.modules.files import finite, write_file, writing
from modurob.scenario.scenario import RunResult, largest_difference, model_of
from modurob.scenario.settings import BALANCE, RunRecord, RunSettings
from modurob.studio import signals
from modurob.studio.jobs import JobCanceled, Worker
from modurob.walking.metrics import walk_metrics

if TYPE_CHECKING:
    from modurob.studio.session import Session

FRAME_S = 0.01  # between recorded states
MOST_FRAMES = 4000  # of a run; longer runs are recorded more coarsely


class RunRequest(NamedTuple):
    """A run to be computed."""

    scenario: Scenario
    settings: RunSettings  # of the project, also those without effect in this run
    folder: Path  # for the run's files, which are named by its number
    number: int
    twin: int | None = None  # number of a run to compare it with


def scenario_of(
    organism: Organism,
    settings: RunSettings,
    pose: Mapping[str, float],
    kinds: Sequence[ModuleType] = (),
    name: str = "organism",
) -> Scenario:
    """The run that a project describes, without settings that have no effect in it."""
    model, unused = model_of(organism, settings), set(settings.without_effect())
    if not settings.fixed_step and settings.motion != BALANCE:
        unused.add("dt")
    given = {field: getattr(settings, field) for field in RunSettings.model_fields}
    given["rates"] = {n: v for n, v in settings.rates.items() if n in model.joint_names}
    if settings.motion in GAITS:
        known = GAITS[settings.motion].parameters()
        given["gait"] = {name: x for name, x in settings.gait.items() if name in known}
    docked = {event.kind for event in settings.events}
    return Scenario(
        **{field: value for field, value in given.items() if field not in unused},
        organism=organism,
        name=name,
        pose=clipped_pose(model, pose),
        kinds=tuple(kind for kind in kinds if kind.name in docked),
        record=max(FRAME_S, settings.duration / MOST_FRAMES),
    )


def clipped_pose(model: Model, pose: Mapping[str, float]) -> dict[str, float]:
    """The pose of the sliders, of the joints that the model has, within their limits. [rad, m]"""
    values = [pose.get(name, 0.0) for name in model.joint_names]
    inside = np.clip(values, model.lower, model.upper).tolist()
    return dict(zip(model.joint_names, inside, strict=True))


def perform(request: RunRequest, progress: Callable[[float], Any]) -> RunRecord:
    """Simulate, and write the files of the run; a run that stops early is kept, with the reason."""
    begin = time.perf_counter()
    result = request.scenario.run(partial=True, progress=lambda done: progress(0.9 * done))
    write(request.folder, request.number, result, request.scenario)
    progress(1.0)
    run = result.trajectory
    stopped = run.status == "stopped"
    message = f"{run.message}. {advice(run.message)}" if stopped else _said(result)
    if request.twin is not None and not stopped:
        twin = Trajectory.load(request.folder / f"{request.twin}.npz")
        apart = largest_difference(twin, run)
        message = f"Formulas and numbers differ by at most {apart:.1e} rad, m."
    return RunRecord(
        number=request.number,
        title=request.scenario.summary,
        status="stopped" if stopped else "finished",
        message=message[:2000],
        seconds=max(float(part.t[-1]) for part in run.parts),
        took=time.perf_counter() - begin,
        settings=request.settings,
    )


def _said(result: RunResult) -> str:
    """Changes at the start of a run, and the distance walked."""
    run, ground = result.trajectory, result.ground
    if ground is None or len(run.parts) > 1 or not run.model.free_base:
        return result.note
    found = walk_metrics(run, ground)
    way = f"It moved {found.distance:.2g} m, {found.speed:.2g} m/s."
    return f"{way} {result.note}".rstrip()


def advice(reason: str) -> str:
    """A proposal for a run that stopped."""
    if "diverged" in reason or "finite" in reason or "step" in reason:
        return (
            "Try a smaller step or tolerance, a longer settling time, or a torque limit; what was "
            "computed until then is kept."
        )
    return "What was computed until then is kept."


def write(folder: Path, number: int, result: RunResult, scenario: Scenario | None = None) -> None:
    """``N.npz`` (everything), ``N.bin`` (poses), ``N.json`` (bodies, plots, colors) and
    ``N.scenario.json``, from which the run can be repeated, if it can be."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    stem, run = folder / str(number), result.trajectory
    run.save(stem.with_suffix(".npz"))
    write_file(stem.with_suffix(".bin"), run.to_bytes())
    # accelerations of recorded states are noise, and a balancing run has drives beside the model
    simulated = None if result.balanced is not None else scenario
    loads = [] if simulated is None else signals.part_loads(run)
    data = signals.run_data(result, loads, simulated is not None and simulated.free)
    # what is not finite becomes a gap in a line
    text = json.dumps(finite(data), allow_nan=False, separators=(",", ":"))
    write_file(stem.with_suffix(".json"), text.encode())
    if scenario is not None:
        scenario.save(stem.with_suffix(".scenario.json"))


class Runner:
    """The run of a session that is being computed, also while no page shows it.

    Attributes:
        worker: The process that computes it.
        progress: From 0 to 1; None while nothing is computed.
        state: The progress or the result in a few words.
        problem: Reason why the last run failed or stopped early; empty when it did not.
        done: Number of the last run, if it has a result.
        twin: Number of the run to compare it with, if there is one.
    """

    def __init__(self, session: Session) -> None:
        self._session, self.worker = session, Worker()
        self.progress: float | None = None
        self.state = self.problem = ""
        self.done: int | None = None
        self.twin: int | None = None

    @property
    def busy(self) -> bool:
        """True if a run is being computed."""
        return self.progress is not None

    async def run(self) -> None:
        """Compute a run of the project as it is now, and add it to the project.

        Listeners hear the topic "run" at each step; `state` and `problem` hold the result.
        """
        session = self._session
        if self.busy:
            raise StateError("a run is being computed: wait for it, or cancel it first")
        scenario = session.scenario()  # raises at once what does not fit
        folder = session.folder.runs(session.name)
        request = RunRequest(scenario, session.settings, folder, session.next_run())
        self.progress, self.state, self.problem, self.done = 0.0, "starting…", "", None
        self.twin = None
        session.notify("run")
        try:
            self._keep(await self.worker.run(perform, request, progress=self._advance))
            if scenario.analytic and not self.problem:
                await self._compare(request)
        except ModurobError as error:
            self.state, self.problem = "it did not run", str(error)
        except JobCanceled:
            self.state = "canceled"
        except BaseException:
            self.state = "it did not run"
            raise
        finally:
            self.progress = None
            session.notify("run")

    async def _compare(self, request: RunRequest) -> None:
        """Compute the same run with numbers, beside the one with formulas."""
        numbers = request._replace(
            scenario=request.scenario.edited(analytic=False),
            settings=request.settings.edited(analytic=False),
            number=self._session.next_run(),
            twin=request.number,
        )
        self._keep(await self.worker.run(perform, numbers, progress=self._advance))
        self.done, self.twin = request.number, self.done

    def _keep(self, record: RunRecord) -> None:
        stopped = record.status == "stopped"
        self.state = "it stopped early" if stopped else f"done in {record.took:.1f} s"
        if record.message and not stopped:
            self.state += f". {record.message}"
        self.problem, self.done = record.message if stopped else "", record.number
        self._session.add_run(record)

    def _advance(self, done: float) -> None:
        self.progress, self.state = round(done, 3), f"{100 * done:.0f} %"
        self._session.notify("run")
