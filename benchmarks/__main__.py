"""Run the benchmarks: ``python -m benchmarks [--quick] [name ...]``.

Every module of this package with a function ``run(quick: bool) -> dict`` is one. Its numbers go,
with the machine they were measured on, to ``benchmarks/results/<name>.json``; one that cannot run
here leaves its file as it is.
"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path

from benchmarks.header import machine

HERE = Path(__file__).parent


def found() -> list[str]:
    """Names of the benchmarks; they are imported only when they run, with what each needs."""
    files = sorted(HERE.glob("[a-z]*.py"))
    return [f.stem for f in files if "\ndef run(quick: bool)" in f.read_text(encoding="utf-8")]


def main() -> None:
    benchmarks = found()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure modurob.")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(benchmarks)}; all by default")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer repetitions")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder to write to")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(benchmarks)):
        parser.error(f"no benchmark {', '.join(unknown)}: there are {', '.join(benchmarks)}")
    head = machine()
    print(f"{head['cpu']}, {head['cores']} cores, Python {head['python']}, {head['date']}")
    options.results.mkdir(parents=True, exist_ok=True)
    for name in options.names or benchmarks:
        print(f"\n== {name}")
        measured = importlib.import_module(f"benchmarks.{name}").run(options.quick)
        if "skipped" in measured:  # a file from a machine that has the device stays
            continue
        result = {"machine": head, "quick": options.quick, "results": measured}
        text = json.dumps(result, indent=1, allow_nan=False) + "\n"
        (options.results / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
