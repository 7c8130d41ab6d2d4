"""The README's figures are those of the committed results."""

from benchmarks.headline import BEGIN, END, README, table


def test_the_readme_shows_the_measured_figures():
    text = README.read_text(encoding="utf-8")
    shown = text.split(BEGIN)[1].split(END)[0]
    assert shown == table()
