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
from modurob.scenario.presets import preset

VERDICTS = {True: Text("holds", "green"), False: Text("does not hold", "red"), None: Text("")}


class PresetReport:
    """Runs of one preset, their files and their findings.

    Args:
        name: Of the preset.
        options: As `run_options` took them.
    """

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.name, self.preset, self.options = name, preset(name), options
        for key, option in (
            ("film_path", "--animate"),
            ("csv_path", "--csv"),
            ("path", "--output"),
        ):
            if options[key]:
                raise StateError(
                    f"{option} is for a file: write the runs with --save-scenario, and run one"
                )

    def run(self) -> None:
        """Simulate, write the files, print the findings."""
        options, files = self.options, self._save_scenarios()
        with output.bar(self.name, not options["as_json"]) as progress:
            results = self.preset.run(progress)
        findings = self.preset.judge(results)
        if options["plot_path"]:
            charts.write(figure(self.preset, results, findings), options["plot_path"])
            files.append(options["plot_path"])
        if options["as_json"]:
            facts = {name: getattr(self.preset, name) for name in ("title", "source", "statement")}
            found = [finding._asdict() for finding in findings]
            output.print_json({"preset": self.name, **facts, "findings": found, "files": files})
            return
        console, table = output.console(), output.plain_table("measured", "found", "the statement")
        for finding in findings:
            table.add_row(finding.what, finding.found, VERDICTS[finding.holds])
        output.print_table(console, f"{self.preset.source}: {self.preset.title}", table)
        console.print(f"The paper states: {self.preset.statement}")
        console.print(f"Not printed there, chosen here: {self.preset.ours}")
        for file in files:
            console.print(f"wrote {file}", soft_wrap=True)

    def _save_scenarios(self) -> list[str]:
        """Write the file of each run; several runs have their names in those of the files."""
        if not self.options["scenario_path"]:
            return []
        path, runs = Path(self.options["scenario_path"]), self.preset.build()
        words = {name: re.sub(r"\W+", "-", name) for name in runs}
        files = {name: path.with_stem(f"{path.stem}-{word}") for name, word in words.items()}
        if len(runs) == 1:
            files = dict.fromkeys(runs, path)
        output.refuse_to_overwrite(map(str, files.values()), self.options["force"])
        for name, scenario in runs.items():
            scenario.save(files[name])
        return [str(file) for file in files.values()]
