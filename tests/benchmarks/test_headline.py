"""The figures of the README and of the benchmark page are those of the committed results."""

from benchmarks.headline import BEGIN, END, README, table
from benchmarks.page import PAGE, page, ratio


def test_the_readme_shows_the_measured_figures():
    text = README.read_text(encoding="utf-8")
    shown = text.split(BEGIN)[1].split(END)[0]
    assert shown == table()


def test_the_benchmark_page_shows_the_measured_figures():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_a_ratio_below_one_stands_out():
    shown = [ratio(value) for value in (0.734, 1.0, 31.2, None)]
    assert shown == ["**0.73×**", "1.00×", "31×", "–"]
