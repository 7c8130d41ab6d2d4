"""Find changes of a few source files that their tests do not notice: a second or less for each.

    python tools/mutants_of.py src/modurob/gaits -- tests/gaits
    python tools/mutants_of.py src/modurob/gaits/sine.py --number 80 -- tests/gaits tests/sim

`mutants.py` measures, with all tests; this looks for missing tests while they are written. pytest
collects the tests once. Every mutant is a fork of that process: the code of the changed function is
replaced in it, and the tests that reach the changed line run, quick ones first. What is computed at
import (constants of modules and classes, defaults of parameters) is left out, and processes that
tests start do not see a change.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import os
import resource
import signal
import sys
import tempfile
import time
import types
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import pytest
from mutants import ROOT, Mutant, described, sample

LEAST_S, FACTOR = 10.0, 8.0  # a mutant may run for this and so many times its tests' time
MOST_S = 40.0  # of tests for one mutant


class Forks:
    """A plugin of pytest: in place of running the tests once, run them for each mutant."""

    def __init__(self, chosen: list[Mutant], jobs: int, out: TextIO) -> None:
        self.chosen, self.jobs, self.out = chosen, jobs, out

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.unfreeze()  # functions that pytest's conftest has hidden
        self.functions: dict[str, list[types.FunctionType]] = defaultdict(list)
        for x in gc.get_objects():
            if isinstance(x, types.FunctionType):
                self.functions[x.__code__.co_filename].append(x)
        self.items = session.items
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "reach.json"
            pid = _forked(lambda: self._record(session, file))
            if os.waitpid(pid, 0)[1] or not file.exists():
                raise SystemExit("mutants: recording which lines the tests reach has failed")
            found = json.loads(file.read_text())
        self.reach, self.seconds, broken = found["reach"], found["seconds"], found["failed"]
        for k in broken:
            print(f"left out, fails without a change: {self.items[k].nodeid}", file=self.out)
        self.broken = set(broken)
        self._campaign(session)
        return True

    def _record(self, session: pytest.Session, file: Path) -> int:
        """Run every test; write the lines that each reaches, and its time."""
        from coverage import Coverage

        measured = Coverage(data_file=None, source=[str(ROOT / "src")], messages=False)
        measured.start()
        seconds, failed = [], []
        for k, item in enumerate(self.items):
            measured.switch_context(str(k))
            before, begin = session.testsfailed, time.perf_counter()
            _run(item, self.items[k + 1] if k + 1 < len(self.items) else None)
            seconds.append(time.perf_counter() - begin)
            failed += [k] if session.testsfailed > before else []
        measured.stop()
        data = measured.get_data()
        reach = {
            name: {
                line: sorted({int(x) for x in tests if x})
                for line, tests in data.contexts_by_lineno(name).items()
            }
            for name in data.measured_files()
        }
        file.write_text(json.dumps({"reach": reach, "seconds": seconds, "failed": failed}))
        return 0

    def _tests(self, mutant: Mutant) -> list[int]:
        """Tests that reach the line, else its statement, else its function; quick ones first."""
        lines = self.reach.get(str(ROOT / mutant.file), {})
        for first, last in _around((ROOT / mutant.file).read_text(), mutant.line):
            reaching = {k for n in range(first, last + 1) for k in lines.get(str(n), ())}
            if found := sorted(reaching - self.broken, key=lambda k: self.seconds[k]):
                break
        else:
            return []
        total, kept = 0.0, []
        for k in found:
            if (total := total + self.seconds[k]) > MOST_S and kept:
                break
            kept.append(k)
        return sorted(kept, key=lambda k: (self.seconds[k] > 0.3, k))  # fixtures stay together

    def _campaign(self, session: pytest.Session) -> None:
        running: dict[int, tuple[Mutant, float, float]] = {}
        survivors: list[str] = []
        count = 0

        def judged(mutant: Mutant, killed: bool, why: str) -> None:
            nonlocal count
            count += 1
            if not killed:
                survivors.append(f"{described(mutant)}  [{why}]")
                print(f"SURVIVED {survivors[-1]}", file=self.out)

        def wait() -> None:
            while True:
                for pid, (mutant, latest, _) in list(running.items()):
                    done, status = os.waitpid(pid, os.WNOHANG)
                    if late := not done and time.monotonic() > latest:
                        os.killpg(pid, signal.SIGKILL)
                        os.waitpid(pid, 0)
                    if done or late:
                        del running[pid]
                        return judged(mutant, late or status != 0, "its tests passed")
                time.sleep(0.005)

        at_import = 0
        for mutant in self.chosen:
            replaced = _replaced(mutant, self.functions)
            if not replaced:
                at_import += 1
                continue
            if not (tests := self._tests(mutant)):
                judged(mutant, False, "no test reaches it")
                continue
            limit = LEAST_S + FACTOR * sum(self.seconds[k] for k in tests)
            if len(running) == self.jobs:
                wait()
            pid = _forked(lambda r=replaced, t=tests, m=mutant: self._judge(session, m, r, t))
            running[pid] = (mutant, time.monotonic() + limit, 0.0)
        while running:
            wait()
        killed = count - len(survivors)
        print(f"\n{killed} of {count} killed; {at_import} at import left out", file=self.out)

    def _judge(self, session: pytest.Session, mutant: Mutant, replaced, tests: list[int]) -> int:
        for function, code in replaced:
            function.__code__ = code
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        with tempfile.TemporaryDirectory() as folder:
            if "/compiler/" in mutant.file or "/equations/" in mutant.file:
                os.environ["MODUROB_CACHE_DIR"] = folder
            for j, k in enumerate(tests):
                following = self.items[tests[j + 1]] if j + 1 < len(tests) else None
                _run(self.items[k], following)
                if session.testsfailed:
                    return 1
        return 0


def _run(item: pytest.Item, following: pytest.Item | None) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _forked(work: Callable[[], int]) -> int:
    """Start `work` in a fork of this process; its exit status is what it returns, or 1."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        code = work()
    finally:
        os._exit(code)  # without the end of pytest, which is the parent's


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _codes(inner)


def _replaced(mutant: Mutant, functions) -> list[tuple[types.FunctionType, types.CodeType]]:
    """Functions that are there and change, with their new code."""
    name = str(ROOT / mutant.file)
    source = Path(name).read_bytes()
    changed = source[: mutant.start] + mutant.text.encode() + source[mutant.end :]
    before, after = (list(_codes(compile(x, name, "exec"))) for x in (source, changed))
    if len(before) != len(after):  # a function within the expression is gone
        return []
    new = {(x.co_qualname, x.co_firstlineno): y for x, y in zip(before, after, strict=True)}
    found = []
    for function in functions.get(name, ()):
        old = function.__code__
        code = new.get((old.co_qualname, old.co_firstlineno))
        if code is not None and code != old and code.co_freevars == old.co_freevars:
            found.append((function, code))
    return found


def _around(source: str, line: int) -> list[tuple[int, int]]:
    """Lines of what stands around a line: itself, its statement, its function."""
    holding = [
        (x.lineno, x.end_lineno or x.lineno)
        for x in ast.walk(ast.parse(source))
        if isinstance(x, ast.stmt) and x.lineno <= line <= (x.end_lineno or x.lineno)
    ]
    return [(line, line), *sorted(holding, key=lambda x: x[1] - x[0])[:3]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="+", help="src/modurob/sim ..., then -- and tests")
    parser.add_argument("--number", type=int, default=10**6, help="of mutants; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    given = parser.parse_args(sys.argv[1:split])
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    sys.path[:0] = [str(ROOT / "src")]
    os.chdir(ROOT)
    out = os.fdopen(os.dup(1), "w", buffering=1)
    plugin = Forks(sample(given.number, given.seed, given.paths), given.jobs, out)
    options = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
    with tempfile.TemporaryFile("w+") as log:  # that of pytest, for all mutants
        os.dup2(log.fileno(), 1)
        if code := pytest.main([*options, *sys.argv[split + 1 :]], plugins=[plugin]):
            log.seek(0)
            print(f"pytest ended with {code}:\n{log.read()[-3000:]}", file=out)


if __name__ == "__main__":
    main()
