"""Measure the tests: change the source at random places and count the changes that a test notices.

    python tools/mutants.py --number 150 --jobs 16    # change, test, report
    python tools/mutants.py --only 3,17               # some mutants of the same seed again

Each mutant is one change of one expression or statement in a copy of the repository. The first
tests are those that reach its line, as `mutants_of.py` has recorded them; without a record, and
after them, those that share names with the changed function and with what calls it in its module:
of ten mutants that are noticed, these notice eight. Then come files of such tests, of the same
package and of no package; slow ones last. Tests in the browser run for mutants of the studio, all
of them. A survivor is a missing test or an equivalent program; a person decides which. With
`--minutes 60` no mutant starts later: those that did are the first of the sample, and as random as
all of them. Not part of CI.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import json
import math
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from queue import Queue
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "modurob"
REACH = ROOT / "build" / "mutants" / "reach.json"  # tests that reach each line: `mutants_of.py`
NOT_COPIED = (".git", ".venv", "build", "dist", "output", "site")
# A mutant that runs longer is noticed. The longest test takes 75 s of CPU time: none reaches this
# just because the machine is busy.
TEST_LIMIT_S = 600  # of one test
TIME_LIMIT_S = 3600.0  # of one call of pytest: for mutants that hang before the first test
MOST_SECONDS = 60.0  # of the tests that reach the line of a mutant, as recorded
LOADED = ["numpy", "scipy.integrate", "scipy.optimize", "sympy", "pydantic", "llvmlite.binding"]
NEAREST = 16  # tests that run first, by their names
NEAR_FILES = 5  # files of tests that run next
WORD = re.compile(r"[A-Za-z_]\w+")
FRAMEWORKS = {f"src/modurob/interop/{name}.py": name for name in ("torch", "jax", "casadi")}
BROWSER = "_browser.py"  # the end of the names of files with tests in the browser
FORKED = multiprocessing.get_context("forkserver")  # packages are imported once, not per mutant

SWAPPED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.MatMult: ast.Add, ast.Pow: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


class Mutant(NamedTuple):
    """One change: `text` in place of the source between two offsets of a file."""

    file: str
    line: int
    start: int
    end: int
    kind: str
    text: str


def changes(node: ast.AST) -> list[tuple[str, ast.AST]]:
    """Changed versions of a node, with the name of each kind of change."""
    found: list[tuple[str, ast.AST]] = []

    def changed(kind: str, **fields: object) -> None:
        other = copy.deepcopy(node)
        for name, value in fields.items():
            setattr(other, name, value)
        found.append((kind, other))

    match node:
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPPED:
            changed("operator", op=SWAPPED[type(op)]())
        case ast.Compare(ops=[op, *rest]) if type(op) in SWAPPED:
            changed("comparison", ops=[SWAPPED[type(op)](), *rest])
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=inner):
            found.append(("sign or not removed", inner))
        case ast.IfExp(test=test):
            changed("condition", test=ast.UnaryOp(ast.Not(), test))
        case ast.Constant(value=bool() as value):
            changed("constant", value=not value)
        case ast.Constant(value=int() | float() as value):
            changed("constant", value=value + 1 if isinstance(value, int) else value * 2 + 0.1)
        case ast.Return(value=value) if value is not None and not _is_none(value):
            changed("return value", value=ast.Constant(None))
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            found.append(("statement removed", ast.Pass()))
        case ast.Break():
            found.append(("loop", ast.Continue()))
        case ast.Continue():
            found.append(("loop", ast.Pass()))
    return found


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def mutants_of(path: Path) -> list[Mutant]:
    """All mutants of one file."""
    source = path.read_text()
    tree = ast.parse(source)
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    skipped = {id(x) for node in ast.walk(tree) for x in _not_run(node)}
    found = []
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        tests = [node.test] if isinstance(node, ast.If | ast.While) else []
        for test in tests:
            found.append(_mutant(path, starts, test, "condition", ast.UnaryOp(ast.Not(), test)))
        for kind, other in changes(node):
            found.append(_mutant(path, starts, node, kind, other))
    return found


def _not_run(node: ast.AST) -> list[ast.AST]:
    """Nodes below that no test can notice: annotations, and imports for the type checker."""
    roots: list[ast.AST | None] = []
    match node:
        case ast.AnnAssign(annotation=note) | ast.arg(annotation=note):
            roots = [note]
        case ast.FunctionDef(returns=note) | ast.AsyncFunctionDef(returns=note):
            roots = [note]
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            roots = [node]
        case ast.JoinedStr():
            roots = [node]  # texts: their formats are not counted
        case ast.Raise():
            roots = [node.exc, node.cause]  # texts of errors
        case ast.keyword(arg="strict"):
            roots = [node]  # of zip: lengths that never differ
    return [x for root in roots if root is not None for x in ast.walk(root)]


def _mutant(path: Path, starts: list[int], node, kind: str, other: ast.AST) -> Mutant:
    start = starts[node.lineno - 1] + node.col_offset
    end = starts[node.end_lineno - 1] + node.end_col_offset
    text = ast.unparse(ast.fix_missing_locations(other))
    if isinstance(other, ast.expr):
        text = f"({text})"
    return Mutant(str(path.relative_to(ROOT)), node.lineno, start, end, kind, text)


def sample(number: int, seed: int, paths: list[str]) -> list[Mutant]:
    """Mutants of all packages in turn, each drawn at random within its package."""
    rng = random.Random(seed)
    by_package: dict[str, list[Mutant]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        relative = path.relative_to(ROOT).as_posix()
        if paths and not any(relative.startswith(p) for p in paths):
            continue
        if (name := FRAMEWORKS.get(relative)) and find_spec(name) is None:
            print(f"left out: {relative}, since {name} is not installed")
            continue
        by_package[path.relative_to(SOURCE).parts[0]] += mutants_of(path)
    number = min(number, sum(map(len, by_package.values())))
    packages = [name for name in by_package if by_package[name]]
    weights = [len(by_package[name]) ** 0.5 for name in packages]  # small packages are seen too
    chosen: list[Mutant] = []
    while len(chosen) < number:
        package = rng.choices(packages, weights)[0]
        mutant = rng.choice(by_package[package])
        if mutant not in chosen:
            chosen.append(mutant)
    return chosen


# -- tests -----------------------------------------------------------------------------------------


def read_reach() -> dict[str, dict]:
    """Recorded seconds of each test, and the tests that reach each line."""
    return json.loads(REACH.read_text()) if REACH.is_file() else {"seconds": {}, "reach": {}}


def reaching_tests(mutant: Mutant, known: dict) -> list[str]:
    """Tests that reach the line of a mutant, quick ones first.

    Left out are those that are gone, and those that failed without a change: they notice all.
    """
    broken = {test.partition("[")[0] for test in known.get("failed", ())}
    there, total = words_of_tests()[1].keys() - broken, 0.0
    seconds: dict[str, float] = defaultdict(float)
    for test in known["reach"].get(mutant.file, {}).get(str(mutant.line), ()):
        seconds[test.partition("[")[0]] += known["seconds"][test]
    found = []
    for test in sorted(seconds.keys() & there, key=lambda x: (seconds[x], x)):
        if (total := total + seconds[test]) < MOST_SECONDS:
            found.append(test)
    return found


def browser_tests(mutant: Mutant) -> list[str]:
    """Files of tests in the browser, for the studio."""
    found = (ROOT / "tests" / Path(mutant.file).parts[2]).glob(f"*{BROWSER}")
    return sorted(x.relative_to(ROOT).as_posix() for x in found)


Words = dict[str, set[str]]  # that a test or a file of tests has, by its name


@cache
def words_of_tests() -> tuple[Words, Words]:
    """Words of each file of tests, and of each of its tests with the functions that this calls."""
    files: Words = {}
    tests: Words = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path.name.endswith(BROWSER):
            continue
        text, file = path.read_text(), path.relative_to(ROOT).as_posix()
        files[file], lines = set(WORD.findall(text)), text.splitlines()
        parts = {}
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                begin = min([node.lineno, *(x.lineno for x in node.decorator_list)])
                parts[node.name] = set(WORD.findall(" ".join(lines[begin - 1 : node.end_lineno])))
        for name, words in parts.items():
            if name.startswith("test"):
                called = [parts[x] for x in words & parts.keys() if not x.startswith("test")]
                tests[f"{file}::{name}"] = words.union(*called)
    return files, tests


def names_near(mutant: Mutant) -> dict[str, float]:
    """Names of what a mutant is in, of what uses that in its module, and weights that fall."""
    text = (ROOT / mutant.file).read_text()
    made = [x for x in ast.walk(ast.parse(text)) if isinstance(x, ast.FunctionDef | ast.ClassDef)]
    used = {x.name: set(WORD.findall(ast.unparse(x))) - {x.name} for x in made}
    names = {x.name for x in made if x.lineno <= mutant.line <= (x.end_lineno or 0)}
    if not names:  # a constant
        names = {x for x in WORD.findall(text.splitlines()[mutant.line - 1]) if x.isupper()}
    found = {Path(mutant.file).stem: 2.0}
    for weight in (3.0, 2.0, 1.5, 1.0):
        found |= {name: weight for name in names if name not in found}
        names = {name for name, words in used.items() if words & names} - found.keys()
    return found


def likely_tests(mutant: Mutant) -> tuple[list[str], list[str]]:
    """Single tests, then files of tests, that may notice a mutant; the most likely first.

    A rare name counts more than one that many files have.
    """
    files, tests = words_of_tests()
    near, package = names_near(mutant), Path(mutant.file).parts[2].removesuffix(".py")
    many = {x: sum(x in words for words in files.values()) for x in near}
    rarity = {x: near[x] * math.log((len(files) + 1) / (n + 0.5)) for x, n in many.items()}

    def score(words: set[str]) -> float:
        return sum(rarity[x] for x in rarity.keys() & words)

    def fits(file: str) -> float:
        return 3.0 * (f"tests/{package}/" in file) + 4.0 * (Path(mutant.file).stem in file)

    of_file = {file: score(words) + fits(file) for file, words in files.items()}
    of_test = {x: score(words) + of_file[x.split("::")[0]] / 2 for x, words in tests.items()}
    order = sorted(files, key=lambda file: -of_file[file])
    own = [x for x in order[NEAR_FILES:] if f"tests/{package}/" in x or x.count("/") == 1]
    return sorted(tests, key=lambda x: -of_test[x])[:NEAREST], order[:NEAR_FILES] + own


def is_killed(mutant: Mutant, place: Path, known: dict) -> tuple[bool, str]:
    """Whether a test fails with a mutant in place, and what ended the search."""
    file = place / mutant.file
    original, stat = file.read_bytes(), file.stat()
    file.write_bytes(original[: mutant.start] + mutant.text.encode() + original[mutant.end :])
    tests, files = likely_tests(mutant)
    at_line = reaching_tests(mutant, known)
    calls = [(at_line, "not slow")] if at_line else []
    calls += [(tests, "not slow"), (files, "not slow")]
    calls += [([*dict.fromkeys([*at_line, *tests])], "slow")]
    calls += [(files + browser_tests(mutant), "slow")]
    why = ""
    try:
        for chosen, marked in calls:
            failed, why = _failing([*chosen, "-m", marked], place)
            if failed:
                return True, why
        return False, f"{len(calls[-1][0])} files passed"
    finally:
        file.write_bytes(original)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        Path(cache_from_source(file)).unlink(missing_ok=True)
        if "/compiler/" in mutant.file:
            shutil.rmtree(place / "cache", ignore_errors=True)


def _failing(tests: list[str], place: Path) -> tuple[bool, str]:
    log = place / "pytest.log"
    process = FORKED.Process(target=_call_pytest, args=(tests, place, log))
    process.start()
    process.join(TIME_LIMIT_S)
    late = process.exitcode is None
    assert process.pid is not None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # what a mutant has left running, too
    process.join()
    text = log.read_text()
    if late or "Timeout (" in text:  # as faulthandler says it
        return True, "time limit"
    lines = [x for x in text.splitlines() if x.startswith(("FAILED", "ERROR "))]
    # 4 otherwise: a file of tests or a conftest cannot be imported; 5: no test is marked so
    return process.exitcode not in (0, 5), lines[0][:150] if lines else "pytest's exit code"


def _call_pytest(tests: list[str], place: Path, log: Path) -> None:
    """Run pytest in a copy of the repository; other packages are loaded already."""
    os.setsid()
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(place)
    os.environ |= {"PYTHONPATH": str(place / "src"), "MODUROB_CACHE_DIR": str(place / "cache")}
    sys.dont_write_bytecode = False  # that of the tests, too, is made once for all mutants
    sys.path[:0] = [str(place / "src")]
    options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=line"]
    limits = [f"faulthandler_timeout={TEST_LIMIT_S}", "faulthandler_exit_on_timeout=true"]
    code = pytest.main([*options, *(x for limit in limits for x in ("-o", limit)), *tests])
    sys.stdout.flush()
    os._exit(code)  # threads of a mutant must not keep it alive


# -- the campaign ----------------------------------------------------------------------------------


def run(
    number: int, seed: int, jobs: int, only: list[int], minutes: float, paths: list[str]
) -> None:
    """Test a sample of mutants and print the score."""
    latest = time.monotonic() + 60 * minutes
    known = read_reach()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    FORKED.set_forkserver_preload(LOADED)
    chosen = list(enumerate(sample(number, seed, paths)))
    chosen = [x for x in chosen if not only or x[0] in only]
    words = {mutant: described(mutant) for _, mutant in chosen}  # somebody may edit the source
    places: Queue[Path] = Queue()
    survivors, killers, judged = [], set(), 0
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory(prefix="mutants_") as folder:
        for k in range(jobs):
            places.put(_copy(Path(folder) / str(k)))

        def judge(item: tuple[int, Mutant]) -> tuple[int, Mutant, bool, str, float] | None:
            place, begin = places.get(), time.monotonic()
            try:
                if begin > latest:
                    return None
                return (*item, *is_killed(item[1], place, known), time.monotonic() - begin)
            finally:
                places.put(place)

        with ThreadPoolExecutor(jobs) as pool:
            for done in as_completed([pool.submit(judge, item) for item in chosen]):
                if (result := done.result()) is None:
                    continue
                k, mutant, killed, why, seconds = result
                judged += 1
                word = "killed  " if killed else "SURVIVED"
                print(f"{k:3} {word} {seconds:5.0f} s  {words[mutant]}  [{why}]", flush=True)
                count = counts[Path(mutant.file).parts[2]]
                count["killed" if killed else "survived"] += 1
                if not killed:
                    survivors.append((k, mutant))
                elif why.startswith("FAILED "):
                    killers.add(why.removeprefix("FAILED ").split(" - ")[0].partition("[")[0])
        # a test that fails in a copy without a mutant would kill every mutant
        failed, why = _failing(sorted(killers), places.get()) if killers else (False, "")
    for package, count in sorted(counts.items()):
        print(f"{package:16} {count['killed']} killed, {count['survived']} survived")
    caught = judged - len(survivors)
    low, high = interval(caught, judged)
    print(f"\n{caught} of {judged} killed ({caught / judged:.1%}), seed {seed}")
    print(f"95 % confidence interval: {low:.1%} to {high:.1%}; equivalent programs are survivors")
    if judged < len(chosen):
        print(f"the time was over: these are the first {judged} of {len(chosen)}")
    if failed:
        print(f"NOT VALID: a test that killed mutants fails without one, too: {why}")
    for k, mutant in sorted(survivors):
        print(f"  {k:3} {words[mutant]}")


def interval(caught: int, judged: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval for the share of all mutants that the tests notice."""
    share, more = caught / judged, z * z / judged
    half = z * math.sqrt(share * (1 - share) / judged + more / (4 * judged))
    return (share + more / 2 - half) / (1 + more), (share + more / 2 + half) / (1 + more)


def described(mutant: Mutant) -> str:
    """File, line, and the text before and after, on one line."""
    source = (ROOT / mutant.file).read_bytes()
    before = " ".join(source[mutant.start : mutant.end].decode().split())
    after = " ".join(mutant.text.split())
    return f"{mutant.file}:{mutant.line} {mutant.kind}: {before[:70]} -> {after[:70]}"


def _copy(place: Path) -> Path:
    place.mkdir()
    for source in ROOT.iterdir():
        if source.name in NOT_COPIED:
            continue
        if source.is_dir():
            shutil.copytree(source, place / source.name)
        else:
            shutil.copy(source, place / source.name)
    return place


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--number", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=lambda x: [int(k) for k in x.split(",")], default=[])
    parser.add_argument("--minutes", type=float, default=math.inf, help="start no mutant later")
    parser.add_argument("paths", nargs="*", help="src/modurob/sim ...; everything by default")
    given = parser.parse_args()
    run(given.number, given.seed, given.jobs, given.only, given.minutes, given.paths)


if __name__ == "__main__":
    main()
