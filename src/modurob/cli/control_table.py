"""What `modurob control --monte-carlo` says: a row for each condition."""

from __future__ import annotations

import math
from typing import Any

from modurob.cli import output
from modurob.control import Robustness, RobustnessCase


def print_table(title: str, found: Robustness) -> None:
    """One row for each condition."""
    console, table = output.console(), output.plain_table()
    table.add_column("condition", style="bold", no_wrap=True)
    for name in ("settled", "in", "worst over", "RMS error", "at limit", "diverged"):
        table.add_column(name, justify="right", no_wrap=True)
    for case in found.cases:
        table.add_row(*_cells(case))
    runs = found.cases[0].runs
    heading = f"{title}: {found.law}, {runs:,} random steps of {found.duration:.3g} s a row"
    output.print_table(console, heading, table)
    console.print(
        f"settled: all joints within {found.band:.0%} of their steps to the end. RMS error: over "
        "the last tenth [rad, m]. The law does not know of the conditions.",
    )


def _cells(case: RobustnessCase) -> list[str]:
    nothing = math.isnan(case.overshoot)
    return [
        case.name,
        f"{case.settled:.1%}",
        "-" if math.isnan(case.settling) else f"{case.settling:.2f} s",
        "-" if nothing else f"{case.overshoot:.1%}",
        "-" if nothing else f"{case.error:.1e}",
        f"{case.saturated:.1%}",
        f"{case.diverged:.1%}",
    ]


def table_data(title: str, found: Robustness) -> dict[str, Any]:
    """The table for JSON."""
    rows = [case._asdict() for case in found.cases]
    head = {"title": title, "law": found.law, "duration": found.duration, "band": found.band}
    return {**head, "cases": rows}
