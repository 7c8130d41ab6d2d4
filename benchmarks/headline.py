"""The README's table of speed, made from the result files: ``python -m benchmarks.headline``."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- headline: begin -->\n", "<!-- headline: end -->\n"
NAMES = {"inverse_dynamics": "inverse dynamics", "forward_dynamics": "forward dynamics"}
BODIES = {"grid 6": "6 joints", "grid 20": "20 joints", "superbot 60": "SuperBot tree, 60 joints"}


def results(name: str) -> dict[str, Any]:
    """A result file."""
    return json.loads((HERE / "results" / f"{name}.json").read_text(encoding="utf-8"))


def table() -> str:
    """The table and what stands below it, as Markdown."""
    measured = results("dynamics")
    found, machine = measured["results"], measured["machine"]
    lines = [
        "| a state, in a batch of 10,000, one thread | Pinocchio | C from CasADi "
        "| modurob, new body | modurob, compiled |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, words in NAMES.items():
        for body, what in BODIES.items():
            row = found[body][name]
            us, ratio = row["microseconds"], row["times_faster_than_pinocchio"]
            lines.append(
                f"| {words}, {what} | {us['pinocchio']:.2f} µs | {_time(us, 'casadi')} "
                f"| {us['dyads']:.3f} µs ({ratio['dyads']:.0f}×) "
                f"| {us['fused']:.3f} µs ({ratio['fused']:.0f}×) |"
            )
    one = found["grid 20"]["single inverse_dynamics"]
    us, ratio = one["microseconds"], one["times_faster_than_pinocchio"]
    lines.append(
        f"| one call from Python, 20 joints | {us['pinocchio']:.2f} µs | {_time(us, 'casadi')} "
        f"| {us['prepared dyads']:.2f} µs ({ratio['prepared dyads']:.0f}×) "
        f"| {us['prepared fused']:.2f} µs ({ratio['prepared fused']:.0f}×) |"
    )
    on_gpu = results("gpu")
    gpu, measured_on = on_gpu["results"], on_gpu["machine"]["date"][:10]
    million = gpu["grid 20, float32"]
    rate = million["inverse_dynamics [million states/s]"]
    jax = million["inverse_dynamics in JAX [million states/s]"]
    scaling = results("scaling")["results"]
    redock = found["redocking"]["milliseconds"]
    thousand = 1e3 * scaling["total_1000"]
    words = (
        "Undocking one of 100 modules and answering with the new body's torques takes "
        f"{redock:.1f} ms; docking 1,000 modules, with both models and their poses, "
        f"{thousand:.0f} ms. Measured by `make bench` on a shared {machine['cpu']} with "
        f"vectors of {machine['doubles_in_a_vector']} doubles, the engines interleaved in one "
        "process; ratios vary by some 30 % between runs, and small batches gain less. "
        "The ratios are to Pinocchio; "
        "[docs/benchmarks.md](docs/benchmarks.md) has all comparisons, the losses first. "
        f"On another machine, with an {gpu['device']}, on {measured_on}, "
        "inverse dynamics of 20 joints in float32 ran at "
        f"{rate / 1e3:.1f} billion states/s, {rate / jax:.0f} times the same recursion in JAX, one "
        "after the other. The numbers are in [benchmarks/results](benchmarks/results)."
    )
    lines += ["", *textwrap.wrap(words, 100, break_on_hyphens=False)]
    return "\n".join(lines) + "\n"


def _time(us: dict[str, float], engine: str) -> str:
    """Microseconds of an engine that may not have been there."""
    return f"{us[engine]:.2f} µs" if engine in us else "–"


def main() -> None:
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    README.write_text(before + BEGIN + table() + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
