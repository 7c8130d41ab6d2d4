"""The guide to equations and the README: their programs run and print what they say."""

import re
from pathlib import Path

import modurob as mr

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guide" / "equations.md").read_text(encoding="utf-8")


def programs(page):
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def test_the_guides_programs_run_one_after_the_other(capsys):
    names = {}
    for block in programs(GUIDE):
        exec(compile(block, "guide", "exec"), names)
    printed = capsys.readouterr().out
    (shown,) = re.findall(r"```text\n(.*?)```", GUIDE, re.DOTALL)
    assert shown in printed
    (comment,) = re.findall(r"^# (\[hy1 .*\])$", GUIDE, re.MULTILINE)
    assert comment in printed


def test_the_guides_entry_is_what_latex_gives():
    (shown,) = re.findall(r"# one entry: (.*)$", GUIDE, re.MULTILINE)
    assert mr.examples.double_pendulum().equations("physical").latex("M[1,2]") == shown


def test_the_readmes_formulas_are_what_is_printed(capsys):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = (each for each in programs(readme) if "equations(" in each)
    expected = re.findall(r"print\(.*?\)\s+# (.*)$", block, re.MULTILINE)
    exec(compile(block, "readme", "exec"), {"mr": mr})
    assert capsys.readouterr().out.splitlines() == expected
