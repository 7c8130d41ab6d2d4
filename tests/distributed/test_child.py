"""The loop of a module's process, and the parent's side of it, without starting processes."""

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from modurob import StateError, UnknownNameError
from modurob.distributed import child, processes
from modurob.distributed.bus.node import NodeProgram
from modurob.distributed.processes import Processes
from modurob.distributed.transports import Udp
from oracles import complains

SETTINGS = {
    "path": ["/somewhere"], "light": False, "loss": 0.0, "seed": 5, "key": "00ff" * 8,
    "transport": "T", "program": "P", "own": 7,
}  # fmt: skip


class Endpoint:
    """An endpoint that keeps what is done to it."""

    def __init__(self, **options):
        self.options, self.done, self.address = options, [], ("127.0.0.1", 9)

    def receive(self):
        return ["message"]

    def send(self, messages):
        self.done.append(("send", messages))

    def plug(self, *link):
        self.done.append(("plug", *link))

    def unplug(self, port):
        self.done.append(("unplug", port))


class Program:
    """A program that keeps what it is given and answers once."""

    def __init__(self, settings):
        self.settings, self.steps, self.wake = settings, [], 0.0

    def step(self, inbox, events, now):
        self.steps.append((inbox, events))
        return ["out"], [{"answer": len(self.steps)}]


@pytest.fixture
def run(monkeypatch):
    """Run the loop for the lines of standard input, one list for each time it can be read."""

    def run(*reads, ready=(), wake=0.0, orphan=False):
        made, written, waits, pending = {}, [], [], [*reads]
        readable = iter(ready)

        class Lines:
            def __init__(self, pipe):
                assert pipe == 0

            def read(self):
                return pending.pop(0) if pending else None

        def select(inputs, outputs, errors, seconds):
            assert inputs == [made["T"], 0]
            waits.append(seconds)
            return ([0] if next(readable, True) else [made["T"]]), [], []

        def loaded(path):
            def make(*given, **options):
                made[path] = {"T": Endpoint, "P": Program}[path](*given, **options)
                if path == "P":
                    made[path].wake = wake
                return made[path]

            return make

        for name, value in (
            ("Lines", Lines), ("select", SimpleNamespace(select=select)), ("loaded", loaded),
            ("_write", written.append), ("_continue_without_parent", lambda: None),
        ):  # fmt: skip
            monkeypatch.setattr(child, name, value)
        monkeypatch.setattr(child, "time", SimpleNamespace(monotonic=lambda: 100.0))
        monkeypatch.setattr(sys, "path", ["/here"])
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        if orphan:
            parents = iter([7, 7, 8])
            monkeypatch.setattr(os, "getppid", lambda: next(parents))
            child.run()
        else:
            with pytest.raises(SystemExit) as end:
                child.run()
            assert end.value.code == 0
        return made["T"], made["P"], written, waits

    return run


def test_a_process_does_what_its_lines_say_until_they_end(run):
    plug = {"plug": "in", "address": ["127.0.0.1", 3], "port": "out", "turn": 90}
    endpoint, program, written, waits = run(
        [], [dict(SETTINGS), plug], [{"unplug": "in"}], [{"ask": 1}], ready=(False, True, True)
    )
    assert endpoint.options == {"key": b"\x00\xff" * 8, "loss": 0.0, "rng": None}
    assert "key" not in program.settings  # the program has no use for it
    assert program.settings["own"] == 7
    assert sys.path == ["/here", "/somewhere"]
    assert os.environ["OMP_NUM_THREADS"] == "1"
    events = [events for _, events in program.steps]
    assert events == [[plug], [], [{"unplug": "in"}], [{"ask": 1}]]
    sent = ("send", ["out"])
    assert endpoint.done == [
        ("plug", "in", ["127.0.0.1", 3], "out"), sent, sent, ("unplug", "in"), sent, sent,
    ]  # fmt: skip
    assert written == [{"address": endpoint.address}, *({"answer": k} for k in (1, 2, 3, 4))]
    assert waits == [0.0] * 4


@pytest.mark.parametrize(("wake", "wait"), [(99.0, 0.0), (100.25, 0.25), (250.0, 1.0)])
def test_a_process_waits_for_its_program_and_looks_at_its_parent_every_second(run, wake, wait):
    assert run([dict(SETTINGS)], wake=wake)[3] == [wait]


def test_losses_are_drawn_from_the_seed(run):
    endpoint, *_ = run([SETTINGS | {"loss": 0.3, "seed": 11}])
    again, *_ = run([SETTINGS | {"loss": 0.3, "seed": 11}])
    assert endpoint.options["loss"] == 0.3
    assert endpoint.options["rng"].random() == again.options["rng"].random()


def test_a_program_whose_parent_changed_ends_by_itself(run):
    assert len(run([dict(SETTINGS)], ready=(False,), orphan=True)[1].steps) == 1


def test_only_a_light_process_does_without_the_package(run, monkeypatch):
    done = []
    monkeypatch.setattr(child, "without_the_package", lambda: done.append(1))
    run([dict(SETTINGS)])
    assert done == []
    run([SETTINGS | {"light": True}])
    assert done == [1]


def test_without_the_package_its_modules_can_be_imported(monkeypatch):
    package = sys.modules["modurob"]
    monkeypatch.setitem(sys.modules, "modurob", package)  # put back afterwards
    child.without_the_package()
    bare = sys.modules["modurob"]
    assert bare is not package
    assert not hasattr(bare, "Organism")
    assert [os.path.realpath(place) for place in bare.__path__] == [
        os.path.realpath(os.path.dirname(package.__file__))
    ]


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_a_stopped_process_goes_on_when_its_parent_ends_where_the_system_can_do_so(
    monkeypatch, system
):
    calls = []
    library = SimpleNamespace(prctl=lambda *given: calls.append(given))
    monkeypatch.setattr("ctypes.CDLL", lambda name: library)
    monkeypatch.setattr(child, "sys", SimpleNamespace(platform=system))
    child._continue_without_parent()
    assert calls == ([(1, signal.SIGCONT)] if system == "linux" else [])


def test_an_error_of_a_program_is_one_line_for_the_parent(monkeypatch):
    written = []
    monkeypatch.setattr(child, "run", lambda: 1 / 0)
    monkeypatch.setattr(child, "_write", written.append)
    with pytest.raises(SystemExit) as end:
        child.main()
    assert end.value.code == 1
    assert written == [{"error": "ZeroDivisionError: division by zero"}]


def test_arrays_become_nested_lists():
    assert child.line({"a": np.arange(2.0), "b": 1}) == b'{"a": [0.0, 1.0], "b": 1}\n'


def test_a_process_ends_when_nobody_reads_it(monkeypatch):
    told = []
    monkeypatch.setattr(child, "os", SimpleNamespace(write=lambda *given: told.append(given)))
    child._write({"a": 1})
    assert told == [(1, b'{"a": 1}\n')]

    def broken(*given):
        raise BrokenPipeError

    monkeypatch.setattr(child, "os", SimpleNamespace(write=broken))
    with pytest.raises(SystemExit) as end:
        child._write({})
    assert end.value.code == 0


def test_classes_are_found_by_their_paths():
    assert child.loaded("modurob.distributed.transports.udp:Udp") is Udp
    assert processes._path(Udp) == "modurob.distributed.transports.udp:Udp"


# -- the parent's side -----------------------------------------------------------------------------


class Popen:
    """A process that is not there, with pipes; one that hangs ends when it is killed."""

    made, hangs = [], False

    def __init__(self, command, **options):
        self.command, self.options, self.returncode, self.waits = command, options, None, []
        self.made.append(self)
        self.pid = 100 + len(self.made)
        (self.theirs, stdin), (stdout, self.answers) = os.pipe(), os.pipe()
        self.stdin, self.stdout = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")

    def poll(self):
        return self.returncode

    def kill(self):
        self.returncode = -9

    def wait(self, seconds=None):
        self.waits.append(seconds)
        if self.hangs and self.returncode is None:
            raise subprocess.TimeoutExpired(self.command, seconds)
        self.returncode = self.returncode or 0

    def lines(self):
        return [json.loads(line) for line in os.read(self.theirs, 1 << 16).splitlines()]


@pytest.fixture
def popen(monkeypatch):
    monkeypatch.setattr(Popen, "made", [])
    monkeypatch.setattr(subprocess, "Popen", Popen)
    yield Popen
    for each in Popen.made:
        for end in (each.theirs, each.answers):
            os.close(end)


def test_processes_are_started_with_their_settings_in_a_session_of_their_own(popen):
    own = Processes("nothing", loss=0.25, seed=40)
    own.start("a", NodeProgram, {"uid": 1}, light=True)
    own.start("b", NodeProgram, {"uid": 2}, light=False)
    own.start("c", NodeProgram, {"uid": 3}, light=False, native="/bin/module")
    light, heavy, native = popen.made
    assert light.command == [sys.executable, "-I", "-S", child.__file__]
    assert heavy.command == [sys.executable, "-P", child.__file__]
    assert native.command == ["/bin/module"]
    pipe = subprocess.PIPE
    for each in popen.made:
        assert each.options == {"stdin": pipe, "stdout": pipe, "start_new_session": True}
    (first,), (second,), _ = (each.lines() for each in popen.made)
    assert first == {
        "uid": 1, "program": "modurob.distributed.bus.node:NodeProgram", "light": True,
        "transport": "modurob.distributed.transports.udp:Udp", "path": sys.path,
        "key": own._key.hex(), "loss": 0.25, "seed": 41,
    }  # fmt: skip
    assert (second["light"], second["seed"]) == (False, 42)
    assert [own.pid(name) for name in "abc"] == [101, 102, 103]
    assert own.pipes() == [own.pipe(name) for name in "abc"]
    one, other = own.endpoint(), own.endpoint()
    assert (one.loss, one._key) == (0.25, own._key)
    assert one._rng.random() == other._rng.random()  # of the seed
    for each in (one, other):
        each.close()
    own.close()


def test_events_and_answers_travel_by_lines(popen):
    own = Processes("nothing")
    own.start("a", NodeProgram, {}, light=True)
    (process,) = popen.made
    process.lines()
    own.plug(("a", "in"), ("127.0.0.1", 7), "out", turn=90)
    own.unplug(("a", "in"))
    assert process.lines() == [
        {"plug": "in", "address": ["127.0.0.1", 7], "port": "out", "turn": 90}, {"unplug": "in"},
    ]  # fmt: skip
    os.write(process.answers, b'{"address": ["127.0.0.1", 5]}\n{"x": 1}\n')
    pipe = own.pipe("a")
    assert own.listen(pipe) == ("a", [{"x": 1}])
    assert own.addresses == {"a": ["127.0.0.1", 5]}
    os.close(process.answers)
    assert own.listen(pipe) == ("a", None)
    assert own.pipes() == []
    process.answers = os.dup(process.theirs)
    os.close(process.theirs)  # it is dead
    process.theirs = os.dup(process.answers)
    own.kill("a")
    assert process.waits == [None]
    assert not own.is_alive("a")
    for call in (own.kill, own.is_alive, own.pid):
        with complains(UnknownNameError, "no module 'z': there are a"):
            call("z")
    own.close()


def test_a_module_that_is_started_again_leaves_nothing_of_its_old_process(popen, monkeypatch):
    monkeypatch.setattr(processes, "END_TIMEOUT_S", 0.01)
    own = Processes("nothing")
    own.start("a", NodeProgram, {}, light=True)
    assert own.is_alive("a")
    own.start("a", NodeProgram, {}, light=True)
    old, new = popen.made
    assert (old.returncode, old.waits) == (-9, [None])
    assert old.stdin.closed
    assert old.stdout.closed
    assert own.pipes() == [new.stdout.fileno()]
    assert own.pid("a") == 102
    own.close()


def test_whoever_listens_reads_the_end_of_a_process_that_is_started_again(popen, monkeypatch):
    own = Processes("nothing")
    own.start("a", NodeProgram, {}, light=True)
    pipe, slept = own.pipe("a"), []

    def sleep(seconds):
        slept.append(seconds)
        own._pipes.pop(pipe, None)  # as a thread does that listens

    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=sleep))
    own.start("a", NodeProgram, {}, light=True)
    assert slept == [1e-3]
    own.close()


@pytest.mark.parametrize("hangs", [False, True])
def test_processes_end_with_their_inputs_and_are_killed_if_they_do_not(popen, monkeypatch, hangs):
    monkeypatch.setattr(Popen, "hangs", hangs)
    now = iter([10.0, 10.5, 99.0])
    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=lambda: next(now)))
    own = Processes("nothing")
    for name in "ab":
        own.start(name, NodeProgram, {}, light=True)
    own.end()
    one, other = popen.made
    assert [each.stdin.closed for each in popen.made] == [True, True]
    assert [each.returncode for each in popen.made] == ([-9, -9] if hangs else [0, 0])
    assert one.waits == [1.5, None][: 1 + hangs]  # two seconds for all of them together
    assert other.waits == [0.0, None][: 1 + hangs]
    assert len(own.pipes()) == 2  # their answers can still be read
    now = iter([200.0] * 3)
    own.close()
    assert own.pipes() == []
    assert [each.stdout.closed for each in popen.made] == [True, True]


def test_windows_has_no_processes_of_modules(monkeypatch):
    monkeypatch.setattr(processes, "os", SimpleNamespace(name="nt"))
    with complains(StateError, "need a POSIX system; MassNetwork runs anywhere"):
        Processes("MassNetwork")


def test_seeds_and_losses_of_processes_are_checked():
    with complains(StateError, "seed must be a whole number"):
        Processes("nothing", seed=-1)
    with complains(StateError, "loss must be a probability"):
        Processes("nothing", loss=1.5)
