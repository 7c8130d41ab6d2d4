"""``modurob balance``: modules that bring their center of mass above their base."""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np

from modurob import Organism, Scenario, StateError, examples
from modurob.cli import organisms, output
from modurob.cli.characters import echo
from modurob.cli.run import FILES, execute, run_options, scenario_of, take_run_options
from modurob.distributed.balancing import LAWS, BalancingProcesses, Fault, GearedDrive
from modurob.scenario.settings import BALANCE

EXAMPLE = """\b
Examples:
  modurob balance
  modurob balance --modules 20 --law momentum --loss 0.1 --animate tree.gif
  modurob balance tree.json --fault die:m7:1.0 --stuck m3.pitch --plot tree.png
  modurob balance --law default --friction 0.1 --duration 10 --json
  modurob balance --processes --duration 2 --fault die:m4:1.0
"""
MOST_BRANCHES = 4
MODULES, SEED = 20, 2  # of the default tree
ROW_INTERVAL_S = 0.25  # between two lines of a run by processes


@click.command("balance", epilog=EXAMPLE, short_help="Balance by messages between modules.")
@click.argument("name", metavar="[NAME_OR_FILE]", required=False)
@click.option(
    "--modules",
    type=click.IntRange(min=2, max=200),
    help=f"Of a random SuperBot tree, if no organism is named.  [default: {MODULES}]",
)
@click.option("--seed", type=click.IntRange(min=0),
              help=f"Of the tree, and of messages that are lost.  [default: {SEED}]")  # fmt: skip
@click.option("--law", "balancing_law", type=click.Choice(LAWS), default="shared",
              show_default=True, help="Rule by which joints choose their torques.")  # fmt: skip
@click.option("--duration", type=float, default=5.0, show_default=True, help="[s]")
@click.option("--loss", type=click.FloatRange(0, 1, max_open=True), default=0.0,
              help="Probability that a message is lost.")  # fmt: skip
@click.option("--delay", type=click.IntRange(min=0, max=1000), default=0,
              help="Further milliseconds of a message for each docking.")  # fmt: skip
@click.option("--fault", "faults", multiple=True, metavar="KIND:MODULE:SECONDS",
              help="freeze, die or reboot a module, such as die:m7:1.0.")  # fmt: skip
@click.option("--stuck", multiple=True, metavar="JOINT", help="A joint that does not move.")
@click.option("--friction", "drive_friction", type=float, default=GearedDrive.friction,
              show_default=True, help="Of the drives. [N m s/rad]")  # fmt: skip
@click.option("--processes", is_flag=True,
              help="A process for each module, and one for the body.")  # fmt: skip
@run_options
def command(
    name: str | None, modules: int | None, seed: int | None, faults: tuple[str, ...],
    processes: bool, **options: Any,
) -> None:  # fmt: skip
    """Bring the center of mass above the base, each module by itself.

    NAME_OR_FILE is a file that `modurob new` wrote or a built-in organism, fixed to the ground at
    its base; by default a random SuperBot tree.
    """
    files = take_run_options(options)
    if name is None:
        title, organism = _tree(modules or MODULES, SEED if seed is None else seed)
        seed = (SEED if seed is None else seed) if options["loss"] else None
    elif modules is not None:
        raise StateError("--modules has no effect with NAME_OR_FILE: it is for the random tree")
    else:
        title, organism = organisms.find(name)
    events = [_fault(text) for text in faults]
    scenario = scenario_of(
        organism=organism, name=title, hinges="physical", motion=BALANCE, seed=seed,
        events=events, **options,
    )  # fmt: skip
    if processes:
        _check_processes(files, events, options, organism)
        _run_processes(scenario, events, as_json=files["as_json"])
    else:
        execute(scenario, files)


def _check_processes(
    files: dict[str, Any],
    events: list[dict[str, Any]],
    options: dict[str, Any],
    organism: Organism,
) -> None:
    given = [option for key, option in FILES.items() if files[key]]
    given += [f"--{key}" for key in ("delay", "stuck") if options[key]]
    given += [f"--fault {event['what']}" for event in events if event["what"] != "die"]
    if given:
        raise StateError(f"--processes goes without {', '.join(given)}: leave one of them out")
    for event in events:
        organism.kind(event["module"])  # which names the modules if there is none
        if event["time"] > options["duration"]:
            raise StateError(
                f"--fault at {event['time']:g} s lies outside of the run of "
                f"{options['duration']:g} s"
            )


def _run_processes(scenario: Scenario, events: list[dict[str, Any]], *, as_json: bool) -> None:
    """Print the distance of the center while the modules' processes run."""
    body, rows = scenario.organism, []
    waiting = sorted(events, key=lambda event: event["time"])
    drive, width = GearedDrive(friction=scenario.drive_friction), body.kind(body.base).size
    with BalancingProcesses(
        body, scenario.balancing_law, drive=drive, loss=scenario.loss, seed=scenario.seed or 0
    ) as network:
        begin, now = time.monotonic(), 0.0
        while now < scenario.duration:
            while waiting and waiting[0]["time"] <= now:
                network.kill(waiting.pop(0)["module"])
            rows.append({"time": now, "distance": network.distance() / width})
            if not as_json:
                echo(f"{now:6.2f} s  {rows[-1]['distance']:8.4f} widths")
            time.sleep(ROW_INTERVAL_S)
            now = network.speed * (time.monotonic() - begin)
        speed = network.speed
    if as_json:
        output.print_json({"law": scenario.balancing_law, "speed": speed, "rows": rows})


def _tree(modules: int, seed: int) -> tuple[str, Organism]:
    """As many branches as divide the modules evenly, four at most."""
    branches = max(k for k in range(1, MOST_BRANCHES + 1) if modules % k == 0)
    tree = examples.superbot_tree(branches, modules // branches, np.random.default_rng(seed))
    return f"SuperBot tree {seed} of {modules} modules", tree


def _fault(text: str) -> dict[str, Any]:
    """An event as typed."""
    pieces = text.split(":")
    try:
        fault = Fault(float(pieces[2]), pieces[1], pieces[0])
    except (IndexError, ValueError):
        raise StateError(
            f"--fault takes KIND:MODULE:SECONDS like die:m7:1.0, got '{text}'"
        ) from None
    return {"what": fault.kind, "time": fault.time, "module": fault.module}
