"""Every notebook runs from top to bottom, and shows its values as notebooks do."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples" / "notebooks").glob("*.ipynb"))
FORMS = ("_repr_mimebundle_", "_repr_png_", "_repr_html_", "_repr_latex_")


def code_cells(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def shown(value: object) -> object:
    """The first form of the last value of a cell, as a notebook asks for it; else its text."""
    forms = [getattr(value, name) for name in FORMS if hasattr(value, name)]
    return next(filter(None, (form() for form in forms)), None) if forms else repr(value)


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_every_last_value_is_shown(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for number, source in enumerate(code_cells(path), start=1):
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        where = f"{path.name}, code cell {number}"
        exec(compile(tree, where, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
            assert value is None or shown(value), where


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_kept_without_outputs(path):
    book = json.loads(path.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    for cell in book["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
