"""The guide to balance: its examples run, its commands and sizes are those of the program."""

import re
from pathlib import Path

import numpy as np

from modurob.cli.balance import command
from modurob.distributed.balancing.laws import LAWS
from modurob.distributed.mass.state import (
    Election,
    Packet,
    Receipt,
    Update,
    decode_update,
    encode,
    encode_update,
)

TEXT = (Path(__file__).parents[2] / "docs" / "guide" / "balance.md").read_text(encoding="utf-8")


def test_the_examples_run_in_the_order_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(block, scope)
    assert {path.name for path in tmp_path.iterdir()} == {"balance.png"}
    printed = capsys.readouterr().out.splitlines()
    shown = re.search(r"# distance (.*)", TEXT)[1]
    assert shown in printed[0]
    assert float(printed[-1]) < 1e-12
    assert "m0" in printed[3]
    assert "True" in printed


def test_the_page_names_every_law_and_every_option_it_shows():
    for law in LAWS:
        assert f"| `{law}` |" in TEXT
    options = {name for option in command.params for name in option.opts}
    used = re.findall(r"(--[a-z]+)", "".join(re.findall(r"\$ modurob .*", TEXT)))
    assert used
    assert set(used) <= options


def test_messages_are_as_long_as_the_page_says():
    empty = encode(Packet(Receipt(1, 1), Receipt(2, 2), b""))
    contact = np.array([[0, 0, 0, 0, 0, 1, 0.5]])
    sizes = {
        "mass": len(encode_update(Update(np.eye(4)))),
        "contest": len(encode_update(Update(np.eye(4), Election(1, 2, 1)))) - 81,
        "contact": len(encode_update(Update(np.eye(4), Election(1, 2, 1), contact))) - 98,
        "frame": len(encode_update(Update(np.eye(4), pose=np.eye(4)))) - 81,
        "sums": len(encode_update(Update(np.eye(4), sums=np.ones(5)))) - 81,
    }
    assert len(empty) == 25
    assert list(sizes.values()) == [81, 17, 56, 96, 40]
    for number in (25, *sizes.values()):
        assert re.search(rf"\b{number}\b", TEXT)


def test_news_survives_its_bytes():
    rng = np.random.default_rng(0)
    P = rng.standard_normal((4, 4))
    news = Update(P @ P.T, Election(3, 2**62, 2), rng.random((2, 7)), rng.random(5), np.eye(4))
    found = decode_update(encode_update(news))
    for ours, theirs in zip(news, found, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert decode_update(encode_update(news)[:-1]) is None
    assert decode_update(encode_update(news._replace(mass=-news.mass))) is None
    assert decode_update(encode_update(news._replace(mass=np.nan * news.mass))) is None
