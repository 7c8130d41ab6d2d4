"""The guide to simulation: its code runs, block after block, and its table is the registry."""

import re
from pathlib import Path

import modurob as mr
from modurob.sim import INTEGRATORS

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "simulation.md"


def test_the_code_of_the_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["batch"].q.shape == (6, 1000, 6)
    assert isinstance(names["change"], mr.Trajectory)
    assert len(names["change"].audit) == 2
    printed = capsys.readouterr().out
    assert "undock m5: momentum" in printed
    assert "the simulation stopped at t = " in printed
    made = {file.name for file in tmp_path.iterdir()}
    assert made == {
        *(
            "crab.png",
            "hold.png",
            "run.npz",
            "run.csv",
            "moments.png",
            "film.gif",
            "run.html",
            "wave.json",
        )
    }


def test_the_guide_lists_all_integrators():
    rows = re.findall(r"^\| (`\w+`.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(INTEGRATORS)
