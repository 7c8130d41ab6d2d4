"""Report of a preset: the statement of a paper beside what is measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rich.text import Text

from modurob import StateError
from modurob.cli import output
from modurob.drawing import charts
from modurob.scenario.preset_figures import figure
from modurob.scenario.presets import Preset, preset

VERDICTS = {True: Text("holds", "green"), False: Text("does not hold", "red"), None: Text("")}
OF_ONE_RUN = {
    "film_path": "--animate", "html_path": "--html", "csv_path": "--csv", "path": "--output",
}  # fmt: skip


def run_preset(name: str, options: dict[str, Any]) -> None:
    """Simulate the runs of a preset, write their files, print the findings.

    Args:
        options: As `run_options` took them.
    """
    for key, option in OF_ONE_RUN.items():
        if options[key]:
            raise StateError(
                f"{option} is for a file: write the runs with --save-scenario, and run one"
            )
    chosen = preset(name)
    files = _save_scenarios(chosen, options) if options["scenario_path"] else []
    with output.bar(name, not options["as_json"]) as progress:
        results = chosen.run(progress)
    findings = chosen.judge(results)
    if options["plot_path"]:
        charts.write(figure(chosen, results, findings), options["plot_path"])
        files.append(options["plot_path"])
    if options["as_json"]:
        facts = {key: getattr(chosen, key) for key in ("title", "source", "statement")}
        found = [finding._asdict() for finding in findings]
        output.print_json({"preset": name, **facts, "findings": found, "files": files})
        return
    console, table = output.console(), output.plain_table("measured", "found", "the statement")
    for finding in findings:
        table.add_row(finding.what, finding.found, VERDICTS[finding.holds])
    output.print_table(console, f"{chosen.source}: {chosen.title}", table)
    console.print(f"The paper states: {chosen.statement}")
    console.print(f"Not printed there, chosen here: {chosen.ours}")
    for file in files:
        console.print(f"wrote {file}", soft_wrap=True)


def _save_scenarios(chosen: Preset, options: dict[str, Any]) -> list[str]:
    """Write the file of each run; several runs have their names in those of the files."""
    path, runs = Path(options["scenario_path"]), chosen.build()
    words = {name: re.sub(r"\W+", "-", name) for name in runs}
    files = {name: path.with_stem(f"{path.stem}-{word}") for name, word in words.items()}
    if len(runs) == 1:
        files = dict.fromkeys(runs, path)
    output.refuse_to_overwrite(map(str, files.values()), options["force"])
    for name, scenario in runs.items():
        scenario.save(files[name])
    return [str(file) for file in files.values()]
