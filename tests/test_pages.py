"""The programs of the README, the first page and the tutorials run, block after block."""

import re
from pathlib import Path

import pytest

from modurob.control import CONTROLLERS

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md", *TUTORIALS]


@pytest.fixture
def laws():
    """The list of laws, as it was, after a page has added one."""
    kept = dict(CONTROLLERS)
    yield
    CONTROLLERS.clear()
    CONTROLLERS.update(kept)


@pytest.mark.usefixtures("laws")
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
