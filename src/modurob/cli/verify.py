"""``modurob verify``: check the equations of an organism in every way there is."""

from __future__ import annotations

import dataclasses
from typing import Any

import click
from rich.text import Text

from modurob.cli import organisms, output
from modurob.verification import Check, VerificationReport, verify
from modurob.verification.check import FAILED, LEFT_OUT, PASSED

EXAMPLE = """\b
Examples:
  modurob verify crab
  modurob verify mine.json --hinges physical --base free
  modurob verify nine --base px,py,rz --states 50 --seed 7 --json
"""
STYLES = {PASSED: "green", FAILED: "bold red", LEFT_OUT: "yellow"}
MOST_STATES = 10_000


@organisms.body_command("verify", EXAMPLE)
@organisms.hinges_option
@organisms.base_option
@organisms.lock_option
@click.option("--states", type=click.IntRange(1, MOST_STATES), default=8, show_default=True,
              help="Random states of each check.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="Seed of the random states.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    name: str,
    hinges: str | None,
    base: str,
    locked: tuple[str, ...],
    states: int,
    seed: int,
    as_json: bool,
) -> None:
    """Verify the equations of an organism: identities, conservation laws, other engines.

    Exits with 1 if a check fails.
    """
    title, organism, options = organisms.chosen(name, hinges, base, locked)
    with output.console(stderr=True).status(f"{title}: building") as status:
        report = verify(
            organism,
            **options,
            states=states,
            seed=seed,
            progress=lambda check: status.update(f"{title}: {check}"),
        )
    if as_json:
        output.print_json(_data(title, report))
    else:
        _print(title, report)
    if not report.passed:
        ctx.exit(1)


def _print(title: str, report: VerificationReport) -> None:
    console = output.console()
    table = output.plain_table("check", "found", "limit")
    table.add_column("verdict", no_wrap=True)
    table.add_column("what")
    for check in report.checks:
        verdict = Text(check.verdict, style=STYLES[check.verdict])
        table.add_row(check.name, _number(check.found), _limit(check), verdict, check.note)
    output.print_table(console, f"{title}: {report.title}", table)
    console.print(_summary(report))


def _summary(report: VerificationReport) -> Text:
    counts = [f"{report.count(verdict)} {verdict}" for verdict in STYLES if report.count(verdict)]
    return Text(", ".join(counts), style="green" if report.passed else "bold red")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


def _limit(check: Check) -> str:
    relation = "≥" if check.relation == ">=" else "≤"
    return "" if check.limit is None else f"{relation} {check.limit:.0e}"


def _data(title: str, report: VerificationReport) -> dict[str, Any]:
    facts = {"title": title, "model": report.title, "passed": report.passed}
    return {**facts, "checks": [dataclasses.asdict(check) for check in report.checks]}
