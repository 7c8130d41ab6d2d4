"""Processes of this machine: order, lost processes, errors, the end."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from operator import add
from types import SimpleNamespace

import pytest

from modurob.errors import StateError
from modurob.executors import LocalExecutor, base, local
from worker_functions import (
    Seed,
    accelerations,
    divided,
    end_at_two,
    fail_from_three,
    without_pickle,
)

SEEDS = [Seed(k) for k in range(6)]
ENDED_S = 10.0  # for processes to end on a busy machine
SCRIPT = """
import os, time
from modurob.executors import LocalExecutor

def work(k):
    print("worker", flush=True)
    time.sleep(60)

{guard}
    {first}
    LocalExecutor(2).map(work, range(4))
"""


@pytest.fixture(scope="module")
def two():
    with LocalExecutor(2) as executor:
        yield executor


def test_two_processes_return_the_bytes_of_a_loop_in_order(two):
    seen = []
    wanted = [accelerations(item) for item in SEEDS]
    assert len(set(wanted)) == len(SEEDS)
    assert two.map(accelerations, SEEDS, seen.append) == wanted
    assert LocalExecutor(1).map(accelerations, SEEDS) == wanted
    assert seen == [(k + 1) / len(SEEDS) for k in range(len(SEEDS))]
    assert len(multiprocessing.active_children()) == 2
    assert two.map(accelerations, []) == []


def test_a_killed_process_changes_no_result(two, tmp_path):
    items = [Seed(k, tmp_path / "killed" if k == 2 else None) for k in range(6)]
    found = two.map(accelerations, items)
    assert items[2].fatal.exists()
    assert found == [accelerations(item) for item in SEEDS]


def test_the_first_error_is_raised_as_by_a_loop(two):
    with pytest.raises(StateError, match="item 3 is wrong"):
        two.map(fail_from_three, range(8))
    with pytest.raises(ZeroDivisionError) as raised:
        two.map(divided, [2, 0])
    assert "in divided" in raised.value.__notes__[0]  # the traceback of the worker
    assert two.map(divided, [2, 4]) == [0.5, 0.25]


def test_values_that_cannot_be_pickled_are_refused(two):
    with pytest.raises(StateError, match="the function cannot be passed between processes"):
        two.map(lambda k: k, [1])
    with pytest.raises(StateError, match="item 1 cannot be passed"):
        two.map(divided, [1, lambda: 1])
    with pytest.raises(StateError, match="the result cannot be passed"):
        two.map(without_pickle, [1])
    for wrong in (0, 2.5, "two"):
        with pytest.raises(StateError, match="workers must be a whole number"):
            LocalExecutor(wrong)


def test_an_item_that_ends_its_process_three_times_is_named(two):
    with pytest.raises(StateError, match=r"item 2 \(2\) ended 3 processes: exit code 7"):
        two.map(end_at_two, range(4))
    assert not multiprocessing.active_children()


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals to groups of processes are POSIX's")
@pytest.mark.parametrize("how", ["interrupted", "killed"])
def test_no_process_outlives_its_script(how, tmp_path):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT.format(guard='if __name__ == "__main__":', first=""), encoding="utf-8")
    script = subprocess.Popen(
        [sys.executable, str(file)], start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # ignored by jobs in the background
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert script.stdout is not None
    started = "".join(script.stdout.readline() for _ in range(2))
    assert started.split() in (["worker", "worker"], ["workerworker"])  # both write at once
    begin = time.monotonic()
    if how == "interrupted":
        os.killpg(script.pid, signal.SIGINT)  # what Ctrl+C does
    else:
        script.kill()
    _, errors = script.communicate(timeout=ENDED_S)  # until the last one closes its output
    assert time.monotonic() - begin < ENDED_S
    assert errors.count("Traceback") == (how == "interrupted")  # of the script alone


def test_a_script_without_a_guard_gets_one_clear_line(tmp_path):
    file = tmp_path / "script.py"
    # the first executor stays open: its processes must not keep the script from its end
    first = "kept = LocalExecutor(2); print(kept.map(abs, [-1]))"
    file.write_text(SCRIPT.format(guard="if True:", first=first), encoding="utf-8")
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout.startswith("[1]\n")  # functions of modules need no guard
    assert 'its own work below `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]


# -- parts -----------------------------------------------------------------------------------------


def lost(work, index, code):
    work.lose(SimpleNamespace(index=index, process=SimpleNamespace(exitcode=code)))


def test_one_worker_tells_its_progress_and_starts_no_process():
    seen = []
    assert LocalExecutor(1).map(os.path.basename, ["a/b", "c"], seen.append) == ["b", "c"]
    assert seen == [0.5, 1.0]
    assert LocalExecutor(1000).workers == 1000
    with pytest.raises(StateError, match="from 1 to 1000"):
        LocalExecutor(1001)


def test_an_item_comes_back_in_front_until_it_ended_three_processes():
    work = local._Work(b"f", ["a", "b", "c"], None)
    work.waiting.popleft()
    for _ in range(2):
        lost(work, 0, -9)
        assert list(work.waiting) == [0, 1, 2]
        work.waiting.popleft()
    with pytest.raises(
        StateError, match=r"item 0 \('a'\) ended 3 processes: signal 9, perhaps out"
    ):
        lost(work, 0, -9)
    with pytest.raises(StateError, match=r"worker processes do not start \(exit code 1\)"):
        lost(work, None, 1)
    work = local._Work(b"f", ["a", "b", "c"], None)
    for _ in range(2):
        lost(work, None, -9)  # killed before its first item: nothing to hand out again
        assert list(work.waiting) == [0, 1, 2]
    with pytest.raises(StateError, match="start of a worker ended 3 processes: signal 9"):
        lost(work, None, -9)
    work = local._Work(b"f", ["a"], None)
    lost(work, None, 0)  # without an error
    lost(work, None, 0)
    with pytest.raises(StateError, match="start of a worker ended 3 processes: exit code 0"):
        lost(work, None, 0)


def test_no_item_is_handed_out_after_an_error():
    seen = []
    work = local._Work(b"f", ["a", "b", "c", "d"], seen.append)
    assert work.more
    work.take(SimpleNamespace(index=1), True, "B")
    assert seen == [0.25]
    work.take(SimpleNamespace(index=0), False, ValueError("bad"))
    assert not work.more
    assert seen == [0.25]
    assert (work.results, list(work.errors)) == ({1: "B"}, [0])
    assert local._Work(b"c__main__", [], None).in_script
    assert not work.in_script


def test_errors_travel_with_their_traceback_or_their_words():
    told = local._portable(ValueError("bad"))
    assert isinstance(told, ValueError)
    assert "ValueError: bad" in told.__notes__[0]
    own = StateError("ours")
    assert local._portable(own) is own
    assert not hasattr(own, "__notes__")
    error = ValueError("bad")
    error.handle = lambda: None
    told = local._portable(error)
    assert (type(told), str(told)) == (StateError, "ValueError: bad")


def test_long_items_are_cut_in_errors():
    assert base.shortened("ab") == "'ab'"
    assert len(base.shortened("x" * 1000)) == 200


class FakePipe:
    """A pipe to a process that computes at once."""

    def __init__(self, ends=()):
        self.answers, self.functions, self.ends = [None], [], iter(ends)

    def send_bytes(self, message):
        code, item = pickle.loads(message)
        self.functions += [] if code is None else [pickle.loads(code)]
        self.answers.append((True, self.functions[-1](item)))

    def recv(self):
        if next(self.ends, False):
            raise EOFError
        return self.answers.pop(0)

    def close(self):
        self.answers = None


class FakeWorker:
    """A worker without a process; `made` are all of them."""

    made, ends = [], ()

    def __init__(self, has_script):
        self.has_script, self.ready, self.index, self.function = has_script, False, None, None
        self.pipe, self.told, self.made[:] = FakePipe(self.ends), [], [*self.made, self]
        told = self.told.append
        self.process = SimpleNamespace(
            kill=lambda: told("kill"), join=lambda: told("join"), exitcode=-9
        )


@pytest.fixture
def workers(monkeypatch):
    monkeypatch.setattr(local, "_Worker", FakeWorker)
    monkeypatch.setattr(local.connection, "wait", list)
    monkeypatch.setattr(FakeWorker, "made", [])
    return FakeWorker.made


def test_processes_are_kept_get_a_function_once_and_import_the_script_for_its_functions(workers):
    executor = LocalExecutor(3)
    assert executor.map(os.path.basename, ["a/b"]) == ["b"]
    assert len(workers) == 1  # no more than items
    assert executor.map(os.path.basename, ["a/b", "c/d", "e/f", "g"]) == ["b", "d", "f", "g"]
    assert executor.map(str.upper, ["x", "y", "z"]) == ["X", "Y", "Z"]
    assert [worker.has_script for worker in workers] == [False] * 3
    first, second = os.path.basename, str.upper
    sent = [worker.pipe.functions for worker in workers]  # once in each call
    assert sent == [[first, first, second], [first, second], [first, second]]
    in_script = partial(add, "__main__ ")  # as functions of a script are, by their names
    assert executor.map(in_script, ["a", "b"]) == ["__main__ a", "__main__ b"]
    assert [worker.has_script for worker in workers[3:]] == [True] * 2
    assert [worker.told for worker in workers[:3]] == [["kill", "join"]] * 3
    assert all(worker.pipe.answers is None for worker in workers[:3])  # closed
    assert executor.map(os.path.basename, ["a/b", "c"]) == ["b", "c"]
    assert executor.map(in_script, ["a"]) == ["__main__ a"]
    assert len(workers) == 5
    executor.close()
    assert workers[3].told == ["kill", "join"]


def test_work_that_is_done_does_not_wait_for_processes_that_are_not_up_yet(workers, monkeypatch):
    monkeypatch.setattr(local.connection, "wait", lambda pipes: pipes[:1])
    assert LocalExecutor(3).map(os.path.basename, ["a/b", "c", "d"]) == ["b", "c", "d"]
    assert [worker.ready for worker in workers] == [True, False, False]


def test_a_process_that_ended_is_replaced_by_one_of_its_sort(workers, monkeypatch):
    monkeypatch.setattr(FakeWorker, "ends", (False, True))  # with its first item
    executor, in_script = LocalExecutor(2), partial(add, "__main__ ")
    with pytest.raises(StateError, match=r"item [01] .* ended 3 processes: signal 9"):
        executor.map(in_script, ["a", "b"])
    assert all(worker.has_script for worker in workers)
    assert all("join" in worker.told and worker.pipe.answers is None for worker in workers)


def test_processes_end_when_their_caller_is_interrupted(workers):
    def interrupt(share):
        raise KeyboardInterrupt

    executor = LocalExecutor(2)
    with pytest.raises(KeyboardInterrupt):
        executor.map(os.path.basename, ["a", "b", "c"], interrupt)
    assert [worker.told for worker in workers] == [["kill", "join"]] * 2
    executor.map(os.path.basename, ["a", "b"])
    assert len(workers) == 4


def test_the_end_of_a_block_closes_its_executor(workers):
    with LocalExecutor(2) as executor:
        executor.map(os.path.basename, ["a", "b"])
    assert [worker.told for worker in workers] == [["kill", "join"]] * 2


@pytest.mark.parametrize("has_script", [False, True])
def test_a_process_sees_the_script_only_if_it_needs_it_and_no_interrupts(monkeypatch, has_script):
    script, seen = sys.modules["__main__"], []

    def start(self):
        blocked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        seen.append((sys.modules["__main__"] is script, blocked))
        raise OSError("too many processes")

    monkeypatch.setattr(local.CONTEXT.Process, "start", start)
    with pytest.raises(OSError, match="too many"):
        local._Worker(has_script)
    assert seen == [(has_script, True)]
    assert sys.modules["__main__"] is script
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_processes_start_where_signals_have_no_masks(monkeypatch):
    """As on Windows."""
    monkeypatch.delattr(signal, "pthread_sigmask")
    with local._interrupts_blocked():
        pass


def test_the_tracker_of_resources_is_there_before_signals_are_blocked(monkeypatch):
    """Its start unblocks them."""
    blocked = []

    def ensure_running():
        blocked.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))

    monkeypatch.setattr(local.resource_tracker, "ensure_running", ensure_running)
    with local._interrupts_blocked():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert blocked == [False]


def test_a_process_answers_until_its_pipe_ends_and_ignores_interrupts(monkeypatch):
    messages = [
        (pickle.dumps(divided), 4), (None, 2), (None, 0), (pickle.dumps(without_pickle), 1),
    ]  # fmt: skip
    queue, answers = [pickle.dumps(x) for x in messages], []

    def receive():
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        if not queue:
            raise EOFError
        return queue.pop(0)

    pipe = SimpleNamespace(
        send=lambda x: answers.append(x), recv_bytes=receive,
        send_bytes=lambda x: answers.append(pickle.loads(x)),
    )  # fmt: skip
    ended, before = [], signal.getsignal(signal.SIGINT)
    # waits for the parent, which must not keep this process from its end
    monkeypatch.setattr(
        local, "_end_with_parent", lambda: ended.append(threading.current_thread().daemon)
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by jobs in the background
    try:
        local._serve(pipe)
    finally:
        signal.signal(signal.SIGINT, before)
    ready, first, second, (failed, error), (unfit, reason) = answers
    assert (ready, first, second) == (None, (True, 0.25), (True, 0.5))
    assert (failed, type(error)) == (False, ZeroDivisionError)
    assert (unfit, type(reason)) == (False, StateError)
    assert ended == [True]


def test_a_process_ends_with_its_parent(monkeypatch):
    told = []
    parent = SimpleNamespace(join=lambda: told.append("joined"))
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: parent)
    monkeypatch.setattr(os, "_exit", told.append)
    local._end_with_parent()
    assert told == ["joined", 1]
