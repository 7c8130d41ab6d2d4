"""The programs of the README, the first page, the tutorials and some guides run, block after block.

Commands on all pages are understood, and no page has a program that no test runs.
"""

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from modurob.control import CONTROLLERS
from modurob.distributed.transports import TRANSPORTS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
GUIDES = [DOCS / "guide" / f"{name}.md" for name in ("bus", "datasheets", "firmware", "machines")]
PAGES = [ROOT / "README.md", DOCS / "index.md", *TUTORIALS, *GUIDES]
ELSEWHERE = {  # pages whose programs another test runs
    "guide/balance.md": "distributed/test_balance_guide.py",
    "guide/cluster.md": "executors/test_guide.py",
    "guide/control.md": "control/test_guide.py",
    "guide/equations.md": "symbolic/test_guide.py",
    "guide/estimation.md": "control/test_guide.py",
    "guide/evolution.md": "search/test_evolution_guide.py",
    "guide/frameworks.md": "frameworks/test_guide.py",
    "guide/gaits.md": "gaits/test_guide.py",
    "guide/genotypes.md": "search/test_genotypes_guide.py",
    "guide/identification.md": "identification/test_guide.py",
    "guide/interop.md": "interop/test_guide.py",
    "guide/learning.md": "environments/test_environments.py",
    "guide/population.md": "population/test_guide.py",
    "guide/records.md": "modules/test_record.py",
    "guide/simulation.md": "sim/test_guide.py",
    "guide/walking.md": "walking/test_walk.py",
    "theory/denavit_hartenberg.md": "modules/test_dh.py",
}


@pytest.fixture
def lists():
    """The lists of laws and transports, as they were, after a page has added to them."""
    kept = [(table, dict(table)) for table in (CONTROLLERS, TRANSPORTS)]
    yield
    for table, before in kept:
        table.clear()
        table.update(before)


@pytest.mark.usefixtures("lists")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_programs_of_the_page_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = path.read_text(encoding="utf-8")
    for name, content in re.findall(r"Save it as `([\w.]+)`:\n\n```\w+\n(.*?)```", text, re.DOTALL):
        (tmp_path / name).write_text(content, encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, path.name, "exec"), names)


def test_every_page_with_a_program_is_run():
    programs = {path for path in DOCS.rglob("*.md") if "\n```python\n" in path.read_text("utf-8")}
    elsewhere = {DOCS / page for page in ELSEWHERE}
    assert programs == elsewhere | set(PAGES) - {ROOT / "README.md"}
    for page, test in ELSEWHERE.items():
        assert Path(page).stem in (ROOT / "tests" / test).read_text("utf-8")


def test_commands_on_pages_are_understood():
    """Names, options and values are those of the command; those that run long are not started."""
    commands = []
    for path in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        text = path.read_text("utf-8").replace("\\\n", " ")
        for block in re.findall(
            r"^```(?:sh|console|text)\n(.*?)^```", text, re.DOTALL | re.MULTILINE
        ):
            commands += re.findall(r"^(?:\$ )?modurob ([a-z].*)$", block, re.MULTILINE)
    assert len(commands) > 50
    for command in commands:
        name, *arguments = shlex.split(re.split(r" [|>&] | && ", command)[0], comments=True)
        import_module(f"modurob.cli.{name}").command.make_context(name, arguments)
