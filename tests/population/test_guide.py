"""The guide to populations: its examples run."""

import json
import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "population.md"
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def test_the_examples_run_in_the_order_of_the_page():
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, scope)
    assert not scope["result"].failed.any()
    assert scope["result"].distance[scope["best"]] == scope["result"].distance.max() > 0
    np.testing.assert_allclose(scope["tau"], 0.0, atol=1e-9)  # of the accelerations without forces


def rows_below(head):
    """Cells of the rows of the table with this head, numbers by their texts."""
    table = PAGE.read_text(encoding="utf-8").split(f"| {head} |")[1].split("\n\n")[0]
    return [
        [cell.strip() for cell in line.strip("| ").split("|")] for line in table.split("\n")[2:]
    ]


def measured(name):
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["results"]


def rounded_to(text, value):
    """Return True if a text such as 12,300 or 3.3·10⁻⁷ is this value, rounded."""
    text = text.split(" ")[0].replace(",", "").translate(SUPERSCRIPTS).replace("·10", "e")
    digits = text.partition("e")[0].replace(".", "").lstrip("0")
    digits = digits if "." in text else digits.rstrip("0")
    return float(f"{value:.{len(digits)}g}") == float(text)


def check_columns(rows, expected):
    """Compare the last cells of rows with numbers."""
    assert len(rows) == len(expected)
    for row, values in zip(rows, expected, strict=True):
        for text, value in zip(row[1:], values, strict=True):
            assert rounded_to(text, value), (row, value)


def test_the_tables_show_the_committed_results():
    packing, rates = measured("packing"), measured("population")["body_steps_a_second"]
    seconds = packing["cpu_seconds"]
    parts = ("packed, first time", "packed again", "gaits", "as models")
    rows = rows_below("100,000 different bodies of 4 to 12 Backbones | CPU time")
    check_columns(rows, [[seconds[part]] for part in parts])
    text = PAGE.read_text(encoding="utf-8")
    assert f"{packing['distinct_links']:,} distinct links" in text
    assert f"take {packing['megabytes']:.0f} MB" in text

    ours = [f"modurob, {n} bodies" for n in (131_072, 4096, 64, 1)]
    names = [ours[0], "modurob", *ours[1:], "MuJoCo", "MuJoCo in Python"]
    cpu = rates["cpu"]
    rows = rows_below("bodies of 4 to 12 Backbones on the ground, 1 ms | body-steps in a second of "
                      "processor time | MuJoCo = 1")  # fmt: skip
    check_columns(rows, [[1e-6 * cpu[name], cpu[name] / cpu["MuJoCo"]] for name in names])
    wall = rates["wall"]["modurob"] / rates["wall"]["MuJoCo"]
    assert f"the ratio was {wall:.0f} (" in " ".join(text.split())


def test_the_tables_show_the_committed_results_of_the_gpu():
    found, dtypes = measured("population_gpu"), ("float32", "float64")
    populations = ("131072 bodies", "large, different")
    errors = [
        [found[f"errors after 100 steps, {name}, {ground}, {dtype}"][key] for dtype, key in keys]
        for name in populations
        for ground in ("level", "slope")
        for keys in [[("float32", x) for x in ("median", "99.9 %", "largest")]
                     + [("float64", "largest")]]
    ]  # fmt: skip
    head = "errors on an H200 | float32, median | 99.9 % | largest | float64, largest"
    check_columns(rows_below(head), errors)
    speeds = [
        [found[f"{name}, {dtype}"]["steps [million body-steps/s]"] for dtype in dtypes]
        for name in (populations[0], "4096 bodies", "64 bodies", "1 bodies", populations[1],
                     "large, equal")
    ]  # fmt: skip
    head = "NVIDIA H200, 1 ms steps, bodies that lie on the ground | float32 | float64"
    check_columns(rows_below(head), speeds)
    sizes = [found[f"inverse dynamics, {n}"] for n in (1, 64, 4096, 131_072)]
    head = "million inverse dynamics a second, float32, H200 | 1 | 64 | 4,096 | 131,072"
    check_columns(rows_below(head), [[size[key] for size in sizes] for key in sizes[0]])
