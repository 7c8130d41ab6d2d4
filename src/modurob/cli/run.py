"""``modurob run``, and the run that all commands share: progress, files and a report."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from modurob import Scenario, StateError
from modurob.cli import output
from modurob.cli.control_report import ControlReport
from modurob.cli.fields import option_of
from modurob.cli.preset_report import run_preset
from modurob.cli.reports import (
    BalanceReport,
    MotionReport,
    WalkReport,
    check_loads,
    load_data,
    loads_of,
)
from modurob.drawing import charts
from modurob.scenario.presets import PRESETS
from modurob.scenario.scenario import RunResult
from modurob.scenario.settings import BALANCE, NONE, POINTS
from modurob.sim import SimulationError

if TYPE_CHECKING:
    from modurob.studio.viewer import View

EXAMPLE = """\b
Examples:
  modurob simulate crab --hinges physical --save-scenario fall.json
  modurob run fall.json --plot fall.png
  modurob run --preset giusti2015-fig8 --plot fig8.png
"""
FILES = {
    "plot_path": "--plot",
    "film_path": "--animate",
    "html_path": "--html",
    "csv_path": "--csv",
    "path": "--output",
    "scenario_path": "--save-scenario",
}
# fields of a scenario that share an option, or whose option another command has
OPTIONS = {
    "noise_q": "--noise", "noise_v": "--noise", "drive_friction": "--friction", "motion": "--gait",
}  # fmt: skip
LEAST_STATES = 3  # of a run that stopped: fewer show nothing


def run_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options of every command that runs a scenario."""
    options = (
        click.option("--plot", "plot_path", metavar="FILE",
                     help="Draw plots of the run: .png, .svg or .pdf."),
        click.option("--animate", "--film", "film_path", metavar="FILE",
                     help="Make a film: .gif, or .mp4 with ffmpeg."),
        click.option("--html", "html_path", metavar="FILE",
                     help="Write an interactive 3D replay of the run for the browser."),
        click.option("--csv", "csv_path", metavar="FILE", help="Write the run as a table."),
        click.option("-o", "--output", "path", metavar="FILE", help="Write the trajectory, .npz."),
        click.option("--save-scenario", "scenario_path", metavar="FILE",
                     help="Write all settings; `modurob run FILE` repeats the run."),
        click.option("--loads", is_flag=True,
                     help="Print the loads on all connectors, not only on those with limits."),
        click.option("--force", is_flag=True, help="Overwrite existing files."),
        click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON."),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


@click.command("run", epilog=EXAMPLE)
@click.argument("scenario", metavar="[FILE]", required=False)
@click.option("--preset", type=click.Choice(tuple(PRESETS)), help="A figure of a paper.")
@run_options
def command(scenario: str | None, preset: str | None, **options: Any) -> None:
    """Run a scenario that --save-scenario, the studio or a script wrote, or a figure of a paper.

    FILE holds the organism, its start, motion, controller and all other settings. A preset
    is compared with the paper; --save-scenario writes its runs as files that you can edit.
    """
    if (scenario is None) == (preset is None):
        raise StateError("give the FILE of a scenario, or --preset")
    taken = take_run_options(options)
    if preset is not None:
        run_preset(preset, taken)
    elif scenario is not None:
        execute(Scenario.load(scenario), taken)


def take_run_options(options: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `run_options` out of all options, after a look at the files."""
    taken = {key: options.pop(key) for key in (*FILES, "loads", "force", "as_json")}
    for key, option in FILES.items():
        output.check_path(option, taken[key])
    output.refuse_to_overwrite(filter(None, map(taken.get, FILES)), taken["force"])
    if taken["plot_path"]:
        charts.check_ending(taken["plot_path"], "plots")
    if taken["html_path"]:
        from modurob.studio import viewer

        viewer.check(taken["html_path"])
    return taken


def scenario_of(**fields: Any) -> Scenario:
    """A scenario of the fields that are not None; errors name the options."""
    try:
        return Scenario(**{name: value for name, value in fields.items() if value is not None})
    except StateError as error:
        raise StateError(_with_options(str(error))) from None


def _with_options(text: str) -> str:
    """Findings about fields as findings about options, each once."""
    pieces = [
        re.sub(r"^(\w+)(?:\[\d+\])?(?:\.(\w+))?\S*: ", _renamed, piece)
        for piece in text.split("; ")
    ]
    return "; ".join(dict.fromkeys(pieces))


def _renamed(found: re.Match[str]) -> str:
    """The field of a finding as an option, with the name of its part."""
    option = OPTIONS.get(found[1]) or option_of(found[1])
    return f"{option} {found[2]}: " if found[2] else f"{option}: "


def execute(
    scenario: Scenario, options: dict[str, Any], facts: Mapping[str, Any] | None = None
) -> None:
    """Run a scenario, write the files, print the report; as JSON with other facts."""
    as_json = options["as_json"]
    controlled = is_controlled(scenario)
    if options["loads"]:
        check_loads(scenario)
    if options["scenario_path"]:
        scenario.save(options["scenario_path"])
    with output.bar(scenario.name, not as_json) as progress:
        result = scenario.run(partial=controlled, progress=progress)
    trajectory = result.trajectory
    if trajectory.status == "stopped" and len(trajectory.t) < LEAST_STATES:
        raise SimulationError(trajectory.message, float(trajectory.t[-1]), trajectory)
    report = report_of(scenario, result)
    for key, write in (
        ("plot_path", report.plot),
        ("film_path", trajectory.animate),
        ("html_path", lambda path: _view(result).save(path)),
        ("csv_path", trajectory.to_csv),
        ("path", trajectory.save),
    ):
        if options[key]:
            write(options[key])
    files = [options[key] for key in FILES if options[key]]
    loads = loads_of(scenario, trajectory, options["loads"])
    if as_json:
        found = {"loads": [load_data(each) for each in loads]} if loads else {}
        output.print_json({**report.data(), **(facts or {}), **found, "files": files})
        return
    report.print()
    for each in loads:
        output.console().print(f"loads on connectors\n{each}", soft_wrap=True)
    for file in files:
        output.console().print(f"wrote {file}", soft_wrap=True)


def _view(result: RunResult) -> View:
    from modurob.studio import viewer

    return viewer.run_view(result)


def is_controlled(scenario: Scenario) -> bool:
    """True if a law with a clock moves the joints of one body on a fixed base to a target."""
    pose, target = scenario.pose, scenario.target
    moves = any(pose.get(joint, 0.0) != target.get(joint, 0.0) for joint in {*pose, *target})
    clocked = scenario.controller != NONE and scenario.clock > 0
    to_target = scenario.motion in POINTS and moves and clocked
    return to_target and scenario.base == "fixed" and not scenario.events


def report_of(
    scenario: Scenario, result: RunResult
) -> BalanceReport | ControlReport | MotionReport | WalkReport:
    """The report that shows what matters in a run: its numbers, one screen, and a plot."""
    if scenario.motion == BALANCE:
        return BalanceReport(scenario, result)
    if scenario.ground and scenario.base == "free" and len(result.trajectory.parts) == 1:
        return WalkReport(scenario, result)
    return (ControlReport if is_controlled(scenario) else MotionReport)(scenario, result)
