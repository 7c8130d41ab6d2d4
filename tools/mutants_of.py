"""Find changes of a few source files that their tests do not notice: a second or less for each.

    pip install 'coverage>=7.10'
    python tools/mutants_of.py src/modurob/gaits -- tests/gaits
    python tools/mutants_of.py src/modurob/gaits/sine.py --number 80 -- -m 'not slow'

`mutants.py` measures, with all tests; this looks for missing tests while they are written. pytest
collects the tests once. Every mutant is a fork of that process: the code of the changed function is
replaced in it, and the tests that reach the changed line run, those of its package and quick ones
first. A changed constant of a module or a class and a changed default are computed anew and put in
place; what else is computed at import (decorators, fields of pydantic, constants made of others) is
left out, and processes that tests start do not see a change.

The lines that each test reaches are kept in build/mutants/reach.json; only tests of new and changed
files are recorded again. Remove it after larger changes of the source.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import gc
import hashlib
import heapq
import inspect
import json
import os
import re
import resource
import signal
import sqlite3
import sys
import tempfile
import time
import types
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import pytest
from mutants import REACH, ROOT, Mutant, described, sample

LEAST_S, FACTOR = 10.0, 8.0  # CPU time of a mutant: this and so many times its tests' time
PATIENCE = 5  # times that by the clock, for those that wait
MOST_S = 8.0  # of tests for one mutant
MOST_TESTS = 100  # of one line: of its package first, then the quick ones


class Change(NamedTuple):
    """What a mutant sets in a running program: an attribute of an object."""

    owner: Any
    name: str
    value: Any


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
        self.items = {item.nodeid: item for item in session.items}
        self.known = self._record(session)
        for name in sorted(self.known["failed"] & self.items.keys()):
            print(f"left out, fails without a change: {name}", file=self.out)
        self._campaign(session)
        return True

    def _record(self, session: pytest.Session) -> dict:
        """Seconds of each test and the tests that reach each line, from the file and from a run."""
        known: dict = {"seconds": {}, "failed": [], "files": {}, "reach": {}}
        if REACH.is_file():
            known = json.loads(REACH.read_text())
        digests = {}
        for item in self.items.values():
            name = item.path.relative_to(ROOT).as_posix()
            digests[name] = digests.get(name) or hashlib.sha1(item.path.read_bytes()).hexdigest()
        changed = {x for x, digest in digests.items() if known["files"].get(x) != digest}
        seconds = {k: x for k, x in known["seconds"].items() if k.split("::")[0] not in changed}
        fresh = [item for name, item in self.items.items() if name not in seconds]
        failed = {x for x in known["failed"] if x in seconds}
        reach: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for file, lines in known["reach"].items():
            for line, tests in lines.items():
                reach[file][line] |= seconds.keys() & tests
        if fresh:
            with tempfile.TemporaryDirectory() as folder:
                data, run = Path(folder) / "coverage", Path(folder) / "run.json"
                pid = _forked(lambda: _run_covered(session, fresh, data, run))
                if os.waitpid(pid, 0)[1] or not run.exists():
                    raise SystemExit("mutants: recording which lines the tests reach has failed")
                found = json.loads(run.read_text())
                seconds |= found["seconds"]
                failed |= {*found["failed"]}
                for file, line, test in _reaching(data):
                    reach[file][line].add(test)
        few = {
            file: {k: _first(file, tests, seconds) for k, tests in lines.items()}
            for file, lines in reach.items()
        }
        files = known["files"] | digests
        out = {"seconds": seconds, "failed": sorted(failed), "files": files, "reach": few}
        if fresh:
            REACH.parent.mkdir(parents=True, exist_ok=True)
            REACH.write_text(json.dumps(out))
        return out | {"failed": failed}

    def _tests(self, mutant: Mutant, names: bool) -> list[str]:
        """Tests that reach the line, else its statement, else its function; or use its name."""
        lines, seconds = self.known["reach"].get(mutant.file, {}), self.known["seconds"]
        there = self.items.keys() - self.known["failed"]
        for first, last in _around((ROOT / mutant.file).read_text(), mutant.line):
            found = {k for n in range(first, last + 1) for k in lines.get(str(n), ())} & there
            if found:
                break
        else:
            found = set()
        if names:
            found |= self._tests_of_names(mutant) & there
        total, kept = 0.0, []
        for name in _first(mutant.file, found, seconds):
            if (total := total + seconds[name]) > MOST_S and kept:
                break
            kept.append(name)
        order = {name: k for k, name in enumerate(self.items)}
        far = _far(mutant.file)  # fixtures stay together
        return sorted(kept, key=lambda x: (far(x), seconds[x] > 0.3, order[x]))

    def _tests_of_names(self, mutant: Mutant) -> set[str]:
        """Tests that reach a line with the name that a statement gives."""
        names = _names_given((ROOT / mutant.file).read_text(), mutant.line)
        if not names:
            return set()
        word = re.compile(rf"\b({'|'.join(names)})\b")
        found: set[str] = set()
        for file, lines in self.known["reach"].items():
            if not (ROOT / file).is_file():
                continue
            for n, text in enumerate((ROOT / file).read_text().splitlines(), 1):
                if str(n) in lines and word.search(text):
                    found |= {*lines[str(n)]}
        return found

    def _campaign(self, session: pytest.Session) -> None:
        running: dict[int, tuple[Mutant, float]] = {}
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
                for pid, (mutant, latest) in list(running.items()):
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
            in_function = _replaced(mutant, self.functions)
            try:
                replaced = in_function or _computed(mutant, self.functions)
            except Exception as error:
                judged(mutant, True, f"cannot be imported: {error}")
                continue
            if not replaced:
                at_import += 1
                continue
            if not (tests := self._tests(mutant, names=not in_function)):
                judged(mutant, False, "no test reaches it")
                continue
            limit = LEAST_S + FACTOR * sum(self.known["seconds"][k] for k in tests)
            if len(running) == self.jobs:
                wait()
            pid = _forked(lambda x=(session, mutant, replaced, tests, limit): self._judge(*x))
            running[pid] = (mutant, time.monotonic() + PATIENCE * limit)
        while running:
            wait()
        killed = count - len(survivors)
        print(f"\n{killed} of {count} killed; {at_import} left out", file=self.out)

    def _judge(
        self, session: pytest.Session, mutant: Mutant, replaced, tests: list[str], limit: float
    ) -> int:
        for change in replaced:
            type.__setattr__(*change) if isinstance(change.owner, type) else setattr(*change)
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))  # also without a parent
        with tempfile.TemporaryDirectory() as folder:
            if "/compiler/" in mutant.file or "/equations/" in mutant.file:
                os.environ["MODUROB_CACHE_DIR"] = folder
            items = [self.items[k] for k in tests]
            for item, following in zip(items, [*items[1:], None], strict=True):
                _run(item, following)
                if session.testsfailed:
                    return 1
        return 0


def _run_covered(session: pytest.Session, items: list[pytest.Item], data: Path, run: Path) -> int:
    """Run tests; write the lines that each reaches, its time, and the tests that fail."""
    from coverage import Coverage

    measured = Coverage(data_file=str(data), source=[str(ROOT / "src")], messages=False)
    measured.start()
    seconds, failed = {}, []
    for item, following in zip(items, [*items[1:], None], strict=True):
        measured.switch_context(item.nodeid)
        before, begin = session.testsfailed, time.perf_counter()
        _run(item, following)
        seconds[item.nodeid] = time.perf_counter() - begin
        failed += [item.nodeid] if session.testsfailed > before else []
    measured.stop()
    measured.save()
    run.write_text(json.dumps({"seconds": seconds, "failed": failed}))
    return 0


def _reaching(data: Path) -> Iterator[tuple[str, str, str]]:
    """File, line and test of each line that a test reaches."""
    from coverage.numbits import numbits_to_nums

    with sqlite3.connect(data) as db:
        rows = db.execute(
            "select file.path, context.context, line_bits.numbits from line_bits "
            "join file on file.id = file_id join context on context.id = context_id"
        )
        for path, test, bits in rows:
            for line in numbits_to_nums(bits) if test else ():
                yield str(Path(path).relative_to(ROOT)), str(line), test


def _far(file: str) -> Callable[[str], bool]:
    """True of tests that are not of the package of a source file."""
    near = f"tests/{Path(file).parts[2].removesuffix('.py')}/"
    return lambda test: not test.startswith(near)


def _first(file: str, tests: Collection[str], seconds: dict[str, float]) -> list[str]:
    far = _far(file)
    return heapq.nsmallest(MOST_TESTS, tests, key=lambda x: (far(x), seconds[x], x))


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


def _sources(mutant: Mutant) -> tuple[str, bytes, bytes]:
    """Name of a file, its text, and that with the mutant."""
    name = str(ROOT / mutant.file)
    source = Path(name).read_bytes()
    return name, source, source[: mutant.start] + mutant.text.encode() + source[mutant.end :]


def _replaced(mutant: Mutant, functions) -> list[Change]:
    """Functions that are there and change, with their new code."""
    name, source, changed = _sources(mutant)
    before, after = (list(_codes(compile(x, name, "exec"))) for x in (source, changed))
    if len(before) != len(after):  # a function within the expression is gone
        return []
    new = {(x.co_qualname, x.co_firstlineno): y for x, y in zip(before, after, strict=True)}
    found = []
    for function in functions.get(name, ()):
        old = function.__code__
        code = new.get((old.co_qualname, old.co_firstlineno))
        if code is not None and code != old and code.co_freevars == old.co_freevars:
            found.append(Change(function, "__code__", code))
    return found


def _computed(mutant: Mutant, functions) -> list[Change]:
    """Constants of modules and classes, and defaults, that a mutant changes."""
    name, source, changed = _sources(mutant)
    modules = list(sys.modules.values())
    module = next((x for x in modules if getattr(x, "__file__", "") == name), None)
    before, after = ast.parse(source), ast.parse(changed)
    owners: list[Any] = [module]
    while module is not None:
        pairs = zip(before.body, after.body, strict=True)
        pair = next((x for x in pairs if ast.dump(x[0]) != ast.dump(x[1])), None)
        match pair:
            case (ast.ClassDef() as old, ast.ClassDef() as new):
                if ast.dump(ast.Module(old.body, [])) == ast.dump(ast.Module(new.body, [])):
                    return []  # a decorator
                before, after = old, new
                owners.append(getattr(owners[-1], old.name))
            case (ast.FunctionDef() as old, ast.FunctionDef() as new):
                return _defaults(old, new, [x for x in functions[name] if _is_at(x, old)])
            case (_, ast.Assign() | ast.AnnAssign() as new):
                return _constants(new, owners)
            case _:
                return []
    return []


def _is_at(function: types.FunctionType, node: ast.FunctionDef) -> bool:
    lines = {node.lineno, *(x.lineno for x in node.decorator_list)}
    return function.__name__ == node.name and function.__code__.co_firstlineno in lines


def _evaluated(expression: ast.expr, globals_: dict, locals_: dict) -> Any:
    return eval(compile(ast.Expression(expression), "mutant", "eval"), globals_, locals_)


def _defaults(old: ast.FunctionDef, new: ast.FunctionDef, found: list) -> list[Change]:
    """Changed defaults of a function."""
    changes = []
    for function in found:
        values = list(function.__defaults__ or ())
        for k, (x, y) in enumerate(zip(old.args.defaults, new.args.defaults, strict=True)):
            if ast.dump(x) != ast.dump(y):
                values[k] = _evaluated(y, function.__globals__, {})
                changes.append(Change(function, "__defaults__", tuple(values)))
        for arg, x, y in zip(
            new.args.kwonlyargs, old.args.kw_defaults, new.args.kw_defaults, strict=True
        ):
            if y is not None and x is not None and ast.dump(x) != ast.dump(y):
                more = {arg.arg: _evaluated(y, function.__globals__, {})}
                changes.append(
                    Change(function, "__kwdefaults__", (function.__kwdefaults__ or {}) | more)
                )
    return changes


def _constants(new: ast.Assign | ast.AnnAssign, owners: list[Any]) -> list[Change]:
    """Changed constants of a module, in all that imported them, or of a class."""
    module, owner = owners[0], owners[-1]
    assert new.value is not None
    value = _evaluated(new.value, vars(module), dict(vars(owner)))
    target = new.targets[0] if isinstance(new, ast.Assign) else new.target
    several = isinstance(target, ast.Tuple)
    pairs = zip(target.elts, value, strict=True) if several else [(target, value)]
    changes = []
    for name, x in ((each.id, x) for each, x in pairs if isinstance(each, ast.Name)):
        if owner is module:
            old = getattr(module, name)
            users = [y for y in list(sys.modules.values()) if y.__dict__.get(name) is old]
            changes += [Change(user, name, x) for user in users]
        else:
            changes += _of_class(owner, name, x)
    return changes


def _of_class(owner: Any, name: str, value: Any) -> list[Change]:
    """A changed attribute of a class, or a changed default of a dataclass or a named tuple."""
    if hasattr(owner, "model_fields") or isinstance(value, dataclasses.Field):
        return []
    named_tuple = hasattr(owner, "_field_defaults")
    is_plain = name in vars(owner) and not inspect.isdatadescriptor(vars(owner)[name])
    changes = [Change(owner, name, value)] if is_plain and not named_tuple else []
    made = owner.__new__ if named_tuple else owner.__init__
    if not named_tuple and not dataclasses.is_dataclass(owner):
        return changes
    positional = made.__code__.co_varnames[: made.__code__.co_argcount]
    defaults = list(made.__defaults__ or ())
    first = len(positional) - len(defaults)
    if name in positional[first:]:
        defaults[positional.index(name) - first] = value
        changes.append(Change(made, "__defaults__", tuple(defaults)))
    elif name in (made.__kwdefaults__ or {}):
        changes.append(Change(made, "__kwdefaults__", made.__kwdefaults__ | {name: value}))
    return changes


def _names_given(source: str, line: int) -> list[str]:
    """Names that the statements around a line give: of constants, functions and classes."""
    names = []
    for x in ast.walk(ast.parse(source)):
        if not (isinstance(x, ast.stmt) and x.lineno <= line <= (x.end_lineno or x.lineno)):
            continue
        match x:
            case ast.Assign(targets=targets):
                names += [y.id for z in targets for y in ast.walk(z) if isinstance(y, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.FunctionDef(name=name):
                names.append(name)
    return names


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
