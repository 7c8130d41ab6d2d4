"""The guide page on identification does what it says."""

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "identification.md"


def test_the_guide_finds_the_module_that_is_wrong(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert {suspect.module for suspect in names["fit"].suspects} == {"m2"}
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("m2: distal.mass is 0.5, found") for line in lines), lines
    assert (tmp_path / "corrected.json").exists()
