"""The shape of the package: imports go one way, and importing modurob is cheap.

`modurob` is cut into parts, one per folder or file directly under `src/modurob`. Each part may
import the parts that stand on a line above its own in LAYERS, and nothing else of the project.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = "modurob"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE

# From the ground up. Parts on one line do not know each other.
LAYERS = (
    ("errors",),
    ("checks", "blas"),
    ("executors",),  # processes and clusters for whatever repeats a function
    ("spatial",),
    ("modules",),
    ("organism",),
    ("equations",),
    ("model", "manipulator"),  # two ways to the same equations: neither may lean on the other
    ("compiler",),
    ("firmware",),  # C sources, and the kernels that the compiler adds to them
    ("kinematics",),
    ("friction",),
    ("dynamics", "symbolic", "regressor"),
    ("stepping",),  # one core of integrators for simulations, rehearsals and balancing
    ("interop",),  # files of other programs, and MuJoCo as an engine of simulations
    ("drawing",),
    ("reference", "quintic"),
    ("sim", "control", "estimation", "gaits", "population"),
    ("identification",),  # fits datasheets to recorded runs
    ("loading",),
    ("distributed",),  # coordinators hand out controllers, balancing runs in simulations
    ("verification",),
    ("scenario",),  # what to run, for scripts and both front ends
    ("walking",),  # scenarios of gaits on the ground, measured and tuned
    ("search", "environments"),  # evolution over bodies and gaits; tasks for learners
    ("__init__",),  # the public names: what a user of the library sees
    ("studio",),  # the front ends may use those names, as any user does
    ("cli",),
    ("__main__",),
)
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}

# Conveniences that hand a value up: `organism.model()` is nicer to write than `build(organism)`.
# Such an import stands inside the function (or under TYPE_CHECKING, for its annotation), so that
# the lower part still loads, and can be tested, without the upper one.
DEFERRED_UPWARD = {
    ("organism", "model"),
    ("organism", "symbolic"),
    ("organism", "studio"),  # `view`, and the form in a notebook
    ("sim", "studio"),
    ("model", "studio"),
    ("symbolic", "studio"),
    ("model", "kinematics"),
    ("model", "dynamics"),
    ("model", "friction"),
    ("model", "compiler"),
    ("loading", "scenario"),
    ("loading", "search"),
    ("population", "search"),
}

# Each takes a good part of a second to load, and none is needed to describe an organism.
HEAVY = ("matplotlib", "sympy", "scipy", "llvmlite")

STATEFUL = {"Counts", "Greedy", "Shared", "Plant", "History", "Project"}


@dataclass(frozen=True)
class Import:
    source: str  # the importing part
    target: str  # the imported part
    deferred: bool  # runs later than the import of the file, or never
    where: str  # "path:line"


def part_of(path: Path, root: Path) -> str:
    """The part a file belongs to: the first folder below the root, or the file itself."""
    return path.relative_to(root).with_suffix("").parts[0]


def module_name(path: Path, root: Path) -> tuple[str, ...]:
    """Dotted name of a file in pieces; a package's `__init__` keeps that piece."""
    return (PACKAGE, *path.relative_to(root).with_suffix("").parts)


def parts_on_disk(root: Path) -> set[str]:
    return {part_of(path, root) for path in root.rglob("*.py")}


def imported_names(node: ast.AST, importer: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Absolute names, in pieces, that one statement or call imports from the package."""
    names: list[tuple[str, ...]] = []
    match node:
        case ast.Import():
            names = [tuple(alias.name.split(".")) for alias in node.names]
        case ast.ImportFrom(level=0):
            base = tuple((node.module or "").split("."))
            names = [(*base, alias.name) for alias in node.names]
        case ast.ImportFrom():
            base = importer[: -node.level] + tuple(filter(None, (node.module or "").split(".")))
            names = [(*base, alias.name) for alias in node.names]
        case ast.Call(
            func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            names = [tuple(name.split("."))]
    yield from (name for name in names if name[0] == PACKAGE)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in (
        "TYPE_CHECKING",
        "typing.TYPE_CHECKING",
    )


def walk(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Every node below, and whether it only runs after its file has been imported."""
    waiting = [(tree, False)]
    while waiting:
        node, deferred = waiting.pop()
        later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        deferred = deferred or later or is_type_checking(node)
        found = [(child, deferred) for child in ast.iter_child_nodes(node)]
        yield from found
        waiting += found


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports_of(path: Path, root: Path, parts: set[str]) -> Iterator[Import]:
    """Imports in one file that lead from its own part into another."""
    source, importer = part_of(path, root), module_name(path, root)
    for node, deferred in walk(parsed(path)):
        for name in imported_names(node, importer):
            # `from modurob import Organism` names no part, so it asks for the public names.
            target = name[1] if len(name) > 1 and name[1] in parts else "__init__"
            if target != source:
                where = f"{path.relative_to(root)}:{getattr(node, 'lineno', 0)}"
                yield Import(source, target, deferred, where)


def violations(root: Path) -> list[str]:
    """One line for each import that does not go down."""
    found, parts = [], parts_on_disk(root) | RANK.keys()
    for path in sorted(root.rglob("*.py")):
        for link in imports_of(path, root, parts):
            if link.source not in RANK or link.target not in RANK:
                continue  # test_every_part_has_its_layer speaks of these
            goes_down = RANK[link.target] < RANK[link.source]
            # The public names are loaded on first use, so they may lead to the front ends.
            public = link.source == "__init__" and link.deferred
            allowed = link.deferred and (link.source, link.target) in DEFERRED_UPWARD
            if not (goes_down or public or allowed):
                kind = "deferred import" if link.deferred else "import"
                found.append(f"{link.where}: {kind} of {link.target} by {link.source}")
    return found


def test_every_part_has_its_layer():
    unknown = parts_on_disk(SOURCE) - RANK.keys()
    assert not unknown, f"add to LAYERS, at the right height: {sorted(unknown)}"


def test_imports_only_go_down():
    found = violations(SOURCE)
    assert not found, "imports that go up or sideways:\n  " + "\n  ".join(found)


def plant(root: Path, path: str, code: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(code, encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("spatial/se3.py", "import modurob.organism"),
        ("spatial/se3.py", "from modurob.model import Model"),
        ("spatial/se3.py", "from modurob import Organism"),
        ("modules/port.py", "from ..organism.grid import cell"),
        ("modules/catalog/__init__.py", "from ... import organism"),
        ("errors.py", "from . import spatial"),
        ("kinematics.py", "from modurob.dynamics import torque"),
        ("control/pid.py", "from modurob.sim import simulate"),
        ("interop/urdf.py", "import modurob"),
        ("model/model.py", "try:\n    import modurob.dynamics\nexcept ImportError:\n    pass"),
        ("organism/organism.py", "class A:\n    from modurob.model import Model"),
        ("modules/port.py", "def f():\n    from modurob.organism import Organism"),
        ("organism/organism.py", "def f():\n    from modurob.sim import simulate"),
        ("organism/organism.py", "def f():\n    importlib.import_module('modurob.cli')"),
        ("organism/organism.py", "if TYPE_CHECKING:\n    from modurob.cli import main"),
        ("__init__.py", "from modurob.cli import main"),
    ],
)
def test_checker_finds_a_planted_violation(tmp_path, path, code):
    plant(tmp_path, path, code)
    assert len(violations(tmp_path)) == 1


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("spatial/se3.py", "from modurob.errors import ModurobError"),
        ("spatial/se3.py", "from . import so3\nfrom .so3 import exp\nimport numpy as np"),
        ("modules/catalog/__init__.py", "from ...spatial import se3\nfrom ..port import Port"),
        ("organism/organism.py", "def f():\n    from modurob.model import Model"),
        ("organism/organism.py", "if TYPE_CHECKING:\n    from modurob.model import Model"),
        ("model/model.py", "def f():\n    from modurob import dynamics, kinematics"),
        ("cli/new.py", "import modurob as mr\nfrom modurob.interop import read_urdf"),
        ("__init__.py", "from .organism import Organism\ndef f():\n    from . import cli"),
    ],
)
def test_checker_accepts_imports_that_go_down(tmp_path, path, code):
    plant(tmp_path, path, code)
    assert violations(tmp_path) == []


def test_checker_finds_a_part_without_a_layer(tmp_path):
    plant(tmp_path, "gadgets/wheel.py", "")
    assert parts_on_disk(tmp_path) - RANK.keys() == {"gadgets"}


def test_import_of_modurob_loads_nothing_heavy():
    code = f"import sys, {PACKAGE}; print(*(set({HEAVY!r}) & sys.modules.keys()))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == []


def test_every_public_name_resolves():
    import modurob

    missing = [name for name in modurob.__all__ if not hasattr(modurob, name)]
    assert modurob.__all__
    assert not missing
    assert len(set(modurob.__all__)) == len(modurob.__all__)


@cache
def classes() -> list[tuple[ast.ClassDef, str]]:
    return [
        (node, f"{path.relative_to(SOURCE)}:{node.lineno}")
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
    ]


def test_no_class_name_is_used_twice():
    places: dict[str, list[str]] = {}
    for node, place in classes():
        places.setdefault(node.name, []).append(place)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_values_are_frozen():
    """Data classes cannot be changed, except those that keep a state of their own."""
    made = {node.name: ast.unparse(d) for node, _ in classes() for d in node.decorator_list}
    made = {name: how for name, how in made.items() if how.startswith("dataclass")}
    assert {name for name, how in made.items() if "frozen=True" not in how} == STATEFUL


def test_values_with_arrays_are_equal_to_themselves_alone():
    """Arrays have no hash, and two of them are not equal or different but both."""
    asked = {
        place
        for node, place in classes()
        for how in map(ast.unparse, node.decorator_list)
        if "dataclass" in how and "eq=False" not in how
        for field in node.body
        if isinstance(field, ast.AnnAssign) and "ndarray" in ast.unparse(field.annotation)
    }
    assert asked == set()


def test_the_citation_has_the_version_of_the_package():
    root = SOURCE.parents[1]
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (root / "CITATION.cff").read_text()


def test_slow_tests_are_there_and_every_package_has_others():
    folder = Path(__file__).parent
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("test_*.py")}
    slow = (folder / "slow.txt").read_text("utf-8").split()
    for file, _, function in (line.partition("::") for line in slow):
        assert file in files
        assert f"def {function}" in (folder / file).read_text("utf-8")
    quick = {file for file in files - {*slow} if not file.endswith("_browser.py")}
    assert {Path(file).parent for file in quick} == {Path(file).parent for file in files}
