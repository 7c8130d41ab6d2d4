"""``modurob balance``: modules that bring their center of mass above their base."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from modurob import Organism, StateError, examples
from modurob.cli import organisms
from modurob.cli.run import execute, run_options, scenario_of, take_run_options
from modurob.distributed.balancing import LAWS, Fault, GearedDrive
from modurob.scenario.settings import BALANCE

EXAMPLE = """\b
Examples:
  modurob balance
  modurob balance --modules 20 --law momentum --loss 0.1 --animate tree.gif
  modurob balance tree.json --fault die:m7:1.0 --stuck m3.pitch --plot tree.png
  modurob balance --law default --friction 0.1 --duration 10 --json
"""
MOST_BRANCHES = 4
MODULES, SEED = 20, 2  # of the default tree


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
@run_options
def command(
    name: str | None, modules: int | None, seed: int | None, faults: tuple[str, ...], **options: Any
) -> None:
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
    scenario = scenario_of(
        organism=organism, name=title, hinges="physical", motion=BALANCE, seed=seed,
        events=[_fault(text) for text in faults], **options,
    )  # fmt: skip
    execute(scenario, files)


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
