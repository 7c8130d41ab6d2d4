"""``modurob papers``: the claims of the documents, computed again."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from modurob import FileError, UnknownNameError, WriteError
from modurob.cli import output
from modurob.cli.executors import chosen_executor, executor_options
from modurob.errors import choices
from modurob.executors import Executor

EXAMPLE = """\b
Examples:
  modurob papers
  modurob papers gutenkunst2012 --output results
  modurob papers meister2012 --json
  modurob papers moll2006 --jobs 2
"""
ROOT = Path(__file__).parents[3]  # of a source checkout
VERDICTS = {True: ("passed", "green"), False: ("FAILED", "bold red"), None: ("left out", "yellow")}
LONGEST_VALUE = 18  # characters of a value in the table


@click.command("papers", epilog=EXAMPLE)
@click.argument("key", required=False)
@click.option("-o", "--output", "path", metavar="FOLDER",
              help="Folder for pictures and results.json.  [default: output/papers]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
@executor_options
@click.pass_context
def command(
    ctx: click.Context, key: str | None, path: str | None, as_json: bool, jobs: int | None,
    cluster: str | None,
) -> None:  # fmt: skip
    """Recompute the figures and claims of the papers that modurob builds on.

    KEY is one of them, such as gutenkunst2012; without it, all are run. Needs a source checkout:
    the papers are not part of the installed package. Exits with 1 if a claim fails.
    """
    output.check_path("--output", path)
    known = _known()
    if key is not None and key not in known:
        raise UnknownNameError(f"no paper '{key}': papers are {choices(known)}")
    folder = Path(path) if path else Path("output") / "papers"
    with chosen_executor(jobs, cluster) as executor:
        found = [_run(each, folder / each, executor) for each in ([key] if key else known)]
    if as_json:
        output.print_json([_data(claims) for claims in found])
    else:
        for claims in found:
            _print(claims)
    if not all(claims.passed for claims in found):
        ctx.exit(1)


def _known() -> list[str]:
    """The papers in the source checkout."""
    found = sorted(file.parent.name for file in (ROOT / "papers").glob("*/reproduce.py"))
    if not found:
        raise FileError(
            "the papers are not here: they are part of the source repository, not of the "
            "installed package; run this command from a checkout"
        )
    return found


def _run(key: str, folder: Path, executor: Executor) -> Any:
    """Compute one paper; its script is a module of the checkout, not of the package."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    reproduce = import_module(f"papers.{key}.reproduce").reproduce
    run = import_module("papers.claims").run
    with output.console(stderr=True).status(f"{key}: starting") as status:
        try:
            return run(
                key, reproduce, folder, lambda what: status.update(f"{key}: {what}"), executor
            )
        except OSError as error:
            raise WriteError(f"{folder}: cannot be written: {error.strerror or error}") from None


def _print(claims: Any) -> None:
    console = output.console()
    table = output.plain_table()
    table.add_column("claim", style="bold")
    table.add_column("source")
    table.add_column("found", justify="right", no_wrap=True)
    table.add_column("expected", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for claim in claims.results:
        verdict, style = VERDICTS[claim.passed]
        found = _found(claim) if claim.passed is not None else ""
        row = (claim.name, claim.source, found, _expected(claim), Text(verdict, style=style))
        table.add_row(*row)
    output.print_table(console, f"{claims.key}: {claims.document}", table)
    notes = {claim.note for claim in claims.results if claim.passed is None and claim.note}
    for note in sorted(notes):
        console.print(f"left out: {note}", soft_wrap=True)
    counts = [sum(claim.passed is verdict for claim in claims.results) for verdict in VERDICTS]
    words = [
        f"{count} {word}"
        for count, (word, _) in zip(counts, VERDICTS.values(), strict=True)
        if count
    ]
    style = "green" if claims.passed else "bold red"
    console.print(Text(", ".join(words), style=style))
    console.print(f"wrote {claims.output / 'results.json'}", soft_wrap=True)
    console.print()


def _found(claim: Any) -> str:
    """A number, the largest of a few, or whether a table is the expected one."""
    value = claim.found
    if claim.tolerance is None and claim.relation == "=":
        return "the same" if claim.passed else "differs"
    if isinstance(value, list):
        numbers = [abs(float(x)) for x in value if isinstance(x, int | float)]
        return _number(max(numbers)) if len(numbers) == len(value) else "differs"
    return _number(value)


def _expected(claim: Any) -> str:
    if claim.relation != "=":
        sign = "≥" if claim.relation == ">=" else "≤"
        return f"{sign} {_number(claim.expected)} {claim.unit}".strip()
    if claim.tolerance is None:
        value = str(claim.expected)
        return value if len(value) <= LONGEST_VALUE else _kind(claim.expected)
    return f"{_expected_number(claim.expected)} ± {claim.tolerance:.0e} {claim.unit}".strip()


def _kind(value: Any) -> str:
    """The kind of a long value."""
    first = value[0] if isinstance(value, list) else None
    words = {list: "rows", str: "formulas" if "*" in str(first) else "names"}
    return f"{len(value)} {words.get(type(first), 'entries')}"


def _expected_number(value: Any) -> str:
    distinct = set(value) if isinstance(value, list) else {value}
    return _number(distinct.pop()) if len(distinct) == 1 else "as printed"


def _number(value: Any) -> str:
    if not isinstance(value, int | float):
        return "none" if value is None else str(value)
    return f"{value:.1e}" if value and not 0.01 <= abs(value) < 1e4 else f"{value:.4g}"


def _data(claims: Any) -> dict[str, Any]:
    return {
        "paper": claims.key,
        "document": claims.document,
        "passed": claims.passed,
        "output": str(claims.output),
        "pictures": [str(path) for path in claims.pictures],
        "claims": [claim._asdict() for claim in claims.results],
    }
