"""Processes of the studio: started, answered and ended; none is needed here."""

import asyncio
import signal
from types import SimpleNamespace

import pytest

from modurob import StateError
from modurob.studio import jobs
from modurob.studio.jobs import JobCanceled, Worker


class Context:
    """Makes processes and pipes, and remembers what was asked of them."""

    def __init__(self):
        self.told, self.alive, self.answers = [], True, []

    def Pipe(self):
        end = len([x for x in self.told if x == "pipe"])
        self.told.append("pipe")
        ours = SimpleNamespace(
            close=lambda: self.told.append(f"close ours {end}"),
            send=lambda message: self.told.append(message),
            poll=lambda: bool(self.answers),
            recv=lambda: self.answers.pop(0),
        )
        return ours, SimpleNamespace(close=lambda: self.told.append("close theirs"))

    def Process(self, target, args, daemon):
        self.told.append((target, daemon))
        return SimpleNamespace(
            start=lambda: self.told.append("start"), is_alive=lambda: self.alive,
            terminate=lambda: self.told.append("terminate"), join=lambda limit: None,
            kill=lambda: None,
        )  # fmt: skip


@pytest.fixture
def context(monkeypatch):
    made = Context()
    monkeypatch.setattr(jobs, "CONTEXT", made)
    monkeypatch.setattr(jobs, "POLL_S", 0.0)
    return made


def test_a_process_is_prepared_once_and_made_anew_when_it_has_died(context):
    worker = Worker()
    worker.prepare()
    # the other end is closed here, else its loss would not be noticed
    begun = ["pipe", (jobs._serve, True), "start", "close theirs"]
    assert context.told == begun
    worker.prepare()
    assert context.told == begun
    assert not worker.busy
    context.alive = False
    worker.prepare()
    assert context.told == [*begun, "close ours 0", *begun]


def test_a_task_is_sent_with_its_arguments_and_its_progress_is_passed_on(context, awaited):
    async def story():
        worker, heard = Worker(), []
        context.answers = [("progress", 0.25), ("progress", 0.5), ("done", "result")]
        assert await worker.run(max, 1, 2, progress=heard.append) == "result"
        assert context.told[-1] == (max, (1, 2))
        assert heard == [0.25, 0.5]
        assert not worker.busy
        context.answers = [("progress", 0.25), ("error", StateError("no"))]
        with pytest.raises(StateError, match="no"):
            await worker.run(max, progress=None)
        assert not worker.busy
        assert context.told.count("start") == 1  # the same process

    awaited(story())


def test_one_task_at_a_time_is_computed_and_canceled(context, awaited):
    async def story():
        worker = Worker()
        first = asyncio.ensure_future(worker.run(max))
        while not worker.busy:
            await asyncio.sleep(0)
        with pytest.raises(StateError, match="something else is being computed"):
            await worker.run(min)
        worker.cancel()
        assert not worker.busy
        with pytest.raises(JobCanceled):
            await first
        assert "terminate" in context.told

    awaited(story())


def test_a_process_that_ends_by_itself_is_told_and_closed(context, awaited):
    async def story():
        worker = Worker()

        def ended():
            raise EOFError

        context.answers = [None]
        worker.prepare()
        worker._pipe.recv = ended
        with pytest.raises(StateError, match="the machine may be out of memory"):
            await worker.run(max)
        assert context.told[-1] == "close ours 0"
        assert not worker.busy

    awaited(story())


def test_a_task_that_is_canceled_before_it_was_sent_is_canceled(context, awaited):
    async def story():
        worker = Worker()
        worker.prepare()

        def send(message):
            worker.cancel()
            raise OSError("handle is closed")

        worker._pipe.send = send
        with pytest.raises(JobCanceled):
            await worker.run(max)
        assert not worker.busy

    awaited(story())


def test_progress_is_sent_at_intervals_and_always_at_the_end(monkeypatch):
    now, sent = [5.0], []
    monkeypatch.setattr(jobs.time, "monotonic", lambda: now[0])
    told = jobs._ProgressSender(SimpleNamespace(send=sent.append))
    for time, done in ((5.0, 0.1), (5.05, 0.2), (5.11, 0.3), (5.2, 0.4), (5.22, 0.5), (5.23, 1.0)):
        now[0] = time
        told(done)
    assert sent == [("progress", x) for x in (0.1, 0.3, 0.5, 1.0)]
    assert jobs.REPORT_S > jobs.POLL_S
    told = jobs._ProgressSender(SimpleNamespace(send=sent.append))
    for time in (0.0, 0.1):  # just far enough apart
        now[0] = time
        told(time)
    assert sent[4:] == [("progress", 0.0), ("progress", 0.1)]

    def gone(message):
        raise BrokenPipeError

    with pytest.raises(SystemExit):
        jobs._ProgressSender(SimpleNamespace(send=gone))(0.5)


def test_a_process_loads_what_tasks_need_and_leaves_ctrl_c_to_the_server(monkeypatch):
    handled, loaded = [], []
    monkeypatch.setattr(jobs.signal, "signal", lambda *args: handled.append(args))
    monkeypatch.setattr(jobs.importlib, "import_module", loaded.append)

    def recv():
        raise EOFError

    jobs._serve(SimpleNamespace(recv=recv))
    assert handled == [(signal.SIGINT, signal.SIG_IGN)]
    assert loaded == [*jobs.LOADED]
