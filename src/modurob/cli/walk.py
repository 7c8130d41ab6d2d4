"""``modurob walk``: a gait on the ground, and its tuning."""

from __future__ import annotations

from typing import Any

import click

from modurob.cli import organisms
from modurob.cli.fields import field_options, take_fields
from modurob.cli.run import execute, run_options, scenario_of, take_run_options
from modurob.cli.simulate import typed_gait
from modurob.walking.runs import started, walking_fields

EXAMPLE = """\b
Examples:
  modurob walk snake --hinges physical --gait wave
  modurob walk crab --hinges physical --parameter lag=1.5 --slope 3 --film crab.gif
  modurob walk crab --hinges physical --tune 2000 --resume crab.tuning --save-gait crab.json
  modurob walk crab --hinges physical --gait crab.json --friction 0.4
"""


@organisms.body_command("walk", EXAMPLE, "Walk on the ground by a gait, or tune the gait.")
@click.option("--gait", metavar="GAIT", default="wave", show_default=True,
              help="A gait by name, or a .json file of one.")  # fmt: skip
@click.option("--parameter", "parameters", multiple=True, metavar="NAME=VALUE",
              help="Of the gait, such as frequency=0.5, lag=1 or phase.m1.hinge=0.3; may be "
              "repeated. [rad, s, Hz]")  # fmt: skip
@click.option("--duration", "--seconds", type=float, default=10.0, show_default=True, help="[s]")
@field_options(ground_friction="0.8", slope="0")
@organisms.hinges_option
@organisms.lock_option
@field_options("torque_limit", "masses", "payload", "pushes")
@click.option("--seed", type=click.IntRange(min=0),
              help="Of the tuning, and of random gaits.  [default: 0]")  # fmt: skip
@run_options
def command(name: str, gait: str, parameters: tuple[str, ...], **options: Any) -> None:
    """Walk on the ground by a gait: distance, cost of transport, slip and stability.

    The joints follow the gait by a servo (PD); the base is free. A body that starts below the
    ground is lifted.
    """
    files = take_run_options(options)
    title, organism = organisms.find(name)
    options["hinges"] = organisms.hinges_of(name, options["hinges"])
    options["locked"] = organisms.locked_of(organism, options["locked"])
    model = organism.model(options["hinges"], "free", locked=options["locked"])
    typed = typed_gait(parameters)
    own = walking_fields(gait, typed.pop("gait", {})) | typed
    given = {key: x for key, x in (take_fields(options, model) | options).items() if x is not None}
    execute(started(scenario_of(organism=organism, name=title, **(own | given))), files)
