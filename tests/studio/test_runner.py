"""A run belongs to its project: pages that come and go do not end it."""

import asyncio

import numpy as np
import pytest

from modurob import StateError, Trajectory, WriteError, examples
from modurob.scenario.settings import RunRecord
from modurob.studio import runs
from modurob.studio.folder import Folder
from modurob.studio.jobs import JobCanceled
from modurob.studio.project import History, Project, SavedBody
from modurob.studio.studio import Studio


class FakeWorker:
    """Computes nothing: a test says when it makes progress and how it ends."""

    def __init__(self):
        self.closed = self.canceled = 0
        self.task = self.request = self.tell = self.end = None

    async def run(self, task, request, progress):
        self.task, self.request, self.tell = task, request, progress
        self.end = asyncio.get_running_loop().create_future()
        return await self.end

    def cancel(self):
        self.canceled += 1
        self.end.set_exception(JobCanceled())

    def close(self):
        self.closed += 1


@pytest.fixture
def studio(tmp_path):
    return Studio(Folder(tmp_path))


@pytest.fixture
def session(studio):
    session = studio.new("crab", Project(History(SavedBody(examples.crab()))))
    session.runner.worker = FakeWorker()
    return session


async def started(session):
    """A run that has begun."""
    task = asyncio.ensure_future(session.runner.run())
    while session.runner.worker.end is None:
        await asyncio.sleep(0)
    return task


def record(session, **changes):
    plain = {"number": 1, "title": "x", "status": "finished", "seconds": 1.0, "took": 0.25}
    return RunRecord(**plain, settings=session.settings).model_copy(update=changes)


def test_a_run_goes_on_when_the_last_page_leaves_and_its_result_is_there_afterwards(
    session, studio, awaited
):
    heard = []
    leave = session.listen(lambda topic: heard.append((topic, session.runner.state)))

    async def story():
        runner, worker = session.runner, session.runner.worker
        task = await started(session)
        assert (runner.progress, runner.done, runner.twin) == (0.0, None, None)
        worker.tell(0.4213)
        assert (runner.busy, runner.progress, runner.state) == (True, 0.421, "42 %")
        leave()
        studio.close(session)
        assert not worker.closed
        assert studio.open("crab") is session  # the page that comes next finds it
        with pytest.raises(StateError, match="wait for it or cancel it, then rename"):
            studio.rename(session, "lobster")
        with pytest.raises(StateError, match="a run is being computed"):
            await runner.run()
        worker.end.set_result(record(session))
        await task
        assert not runner.busy
        assert (runner.state, runner.done, runner.problem) == ("done in 0.2 s", 1, "")
        assert [run.number for run in session.runs] == [1]
        studio.close(session)
        assert worker.closed
        assert "crab" not in studio.sessions

    awaited(story())
    assert heard == [("run", "starting…"), ("run", "42 %")]
    assert [run.number for run in studio.session("crab").runs] == [1]  # on disk


def test_the_request_of_a_run_is_the_project_as_it_is(session, awaited):
    session.set_pose(**{"m1.hinge": 0.5})
    session.edit_settings(duration=2.0)

    async def story():
        task = await started(session)
        worker = session.runner.worker
        session.set_pose(**{"m1.hinge": 0.7})  # too late for this run
        assert worker.task is runs.perform
        assert worker.request.scenario.pose["m1.hinge"] == 0.5
        assert worker.request.scenario.duration == worker.request.settings.duration == 2.0
        assert worker.request.number == 1
        assert worker.request.folder == session.folder.runs("crab")
        assert worker.request.scenario.summary == "computed torque, wave"
        session.runner.worker.cancel()
        await task

    awaited(story())
    assert session.runner.state == "canceled"
    assert session.runner.done is None
    assert not session.runs


@pytest.mark.parametrize(
    ("end", "state", "problem", "count"),
    [
        (StateError("no joint moves"), "it did not run", "no joint moves", 0),
        ({"status": "stopped", "message": "it diverged"}, "it stopped early", "it diverged", 1),
        (JobCanceled(), "canceled", "", 0),
    ],
)
def test_the_end_of_a_run_is_told(session, awaited, end, state, problem, count):
    heard = []
    session.listen(heard.append)

    async def story():
        task = await started(session)
        future = session.runner.worker.end
        if isinstance(end, dict):
            future.set_result(record(session, **end))
        else:
            future.set_exception(end)
        await task

    awaited(story())
    runner = session.runner
    assert (runner.state, runner.problem, len(session.runs)) == (state, problem, count)
    assert not runner.busy
    assert heard == ["run"] + ["runs"] * count + ["run"]


def test_a_slip_in_the_program_is_not_hidden_and_leaves_a_runner_that_works(session, awaited):
    async def story():
        task = await started(session)
        session.runner.worker.end.set_exception(KeyError("slip"))
        with pytest.raises(KeyError, match="slip"):
            await task

    awaited(story())
    assert session.runner.state == "it did not run"
    assert not session.runner.busy


def test_settings_that_do_not_fit_are_told_before_anything_starts(session, awaited):
    session.edit_settings(base="px,qq")
    with pytest.raises(StateError, match="qq"):
        awaited(session.runner.run())
    assert not session.runner.busy
    assert session.next_run() == 1


# -- the file that was opened ----------------------------------------------------------------------


def test_equal_files_in_two_folders_are_two_projects(tmp_path, studio):
    files = [tmp_path / name / "snake.json" for name in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        examples.snake(3).save(file)
    first = studio.open_file(files[0])
    first.remove("m2")
    first.saver.flush()
    second = studio.open_file(files[1])
    assert len(second.organism) == 3
    second.dock("backbone", "m2", 3)
    assert second.save() == files[1]
    assert first.save() == files[0]
    from modurob import load

    assert [len(load(file)) for file in files] == [2, 4]


def test_a_copy_and_an_upload_do_not_stand_for_the_file(tmp_path, studio):
    file = tmp_path / "snake.json"
    examples.snake(3).save(file)
    session = studio.open_file(file)
    copy = studio.copy(session, "snake two")
    copy.dock("backbone", "m2", 3)
    copy.save()
    session.saver.flush()
    shared = studio.upload("snake three.json", session.folder.file("snake").read_bytes())
    shared.dock("backbone", "m2", 3)
    shared.save()
    again = Studio(studio.folder).open_file(file)
    assert again.name == "snake"
    assert len(again.organism) == 3


def test_a_file_that_another_program_changed_is_not_overwritten(tmp_path, studio):
    file = tmp_path / "snake.json"
    examples.snake(3).save(file)
    session = studio.open_file(file)
    examples.snake(5).save(file)
    session.remove("m2")
    with pytest.raises(WriteError, match=r"snake\.json: changed by another program.*save a copy"):
        session.save()
    from modurob import load

    assert len(load(file)) == 5
    file.unlink()  # what is gone is written again, as what it was
    assert session.save() == file
    assert load(file) == examples.snake(2)


def test_an_organism_file_cannot_hold_nothing(tmp_path, studio):
    file = tmp_path / "one.json"
    examples.snake(1).save(file)
    session = studio.open_file(file)
    before = file.read_bytes()
    session.remove("m0")
    with pytest.raises(StateError, match="no module yet"):
        session.save()
    assert file.read_bytes() == before


def test_a_run_with_formulas_comes_with_the_same_one_with_numbers(studio, awaited, tmp_path):
    session = studio.new_from_example("double_pendulum")
    session.edit_settings(analytic=True, controller="none", motion="none", duration=0.2)
    session.set_pose(**{"m0.hinge": 1.0})

    class Here:
        """A worker of this process."""

        async def run(self, task, request, progress):
            return task(request, progress)

        def close(self):
            pass

    session.runner.worker = Here()
    awaited(session.runner.run())
    formulas, numbers = session.runs
    assert (formulas.settings.analytic, numbers.settings.analytic) == (True, False)
    assert "formulas" in formulas.title
    assert (session.runner.done, session.runner.twin) == (formulas.number, numbers.number)
    one, other = (
        Trajectory.load(session.folder.runs(session.name) / f"{run.number}.npz").q
        for run in session.runs
    )
    assert 0 < np.abs(one - other).max() < 1e-6  # two computations, one motion
    apart = f"{np.abs(one - other).max():.1e}"
    assert f"differ by at most {apart} rad, m." in session.runner.state
