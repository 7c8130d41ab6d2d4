"""The guide to datasheets: its example works, its list of connectors is that of the catalog."""

import re
from pathlib import Path

from modurob import ModuleType, catalog, examples

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "datasheets.md"


def test_the_module_of_the_guide_loads_and_docks(tmp_path):
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "gripper.toml").write_text(block, encoding="utf-8")
    gripper = ModuleType.from_file(tmp_path / "gripper.toml")
    arm = examples.arm("babac").dock("m4", "out", "hand", "in", kind=gripper)
    assert arm.model(hinges="physical").joint_names[-1] == "hand.close"


def test_the_guide_lists_the_connectors_of_the_catalog():
    rows = re.findall(
        r"^\| `([\w-]+)` \| `([\w-]+)` \| ([\d, ]+) \| (.*) \|$",
        PAGE.read_text("utf-8"),
        re.MULTILINE,
    )
    ports = [(kind, port) for kind in catalog.values() for port in kind.ports]
    assert {row[0] for row in rows} == {port.connector for _, port in ports}
    for connector, mate, turns, kinds in rows:
        same = [(kind, port) for kind, port in ports if port.connector == connector]
        assert {port.mates for _, port in same} == {(mate,)}
        assert {", ".join(map(str, port.turns)) for _, port in same} == {turns}
        assert set(re.findall(r"`(\w+)`", kinds)) <= {kind.name for kind, _ in same}
