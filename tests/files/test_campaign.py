"""A sample of the campaign of mutated files; `tools/fuzz_files.py` runs the whole."""

import importlib.util
import sys
from pathlib import Path

import pytest

CASES = 360  # eighteen of each format
SEED = 7

TOOL = Path(__file__).parents[2] / "tools" / "fuzz_files.py"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("fuzz_files", TOOL)
    tool = sys.modules["fuzz_files"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    yield tool, tool.Campaign(SEED, tmp_path_factory.mktemp("campaign"))
    del sys.modules["fuzz_files"]


def test_valid_files_of_every_format_are_accepted(campaign, tmp_path):
    tool, found = campaign
    for name, form in tool.FORMATS.items():
        assert found.valid[name]
        for content in found.valid[name]:
            path = tmp_path / f"valid{form.ending}"
            path.write_bytes(content)
            assert tool.outcome(form, path).what == "accepted", name


def test_mutated_files_are_accepted_or_refused_in_one_line(campaign):
    tool, found = campaign
    outcomes = {number: found.run(number) for number in range(CASES)}
    assert not {k: v for k, v in outcomes.items() if v.what in tool.FAILURES}
    words = [outcome.what for outcome in outcomes.values()]
    assert words.count("accepted") > CASES / 20, "too few files are used"
    assert words.count("refused") > CASES / 2
