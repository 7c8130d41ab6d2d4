"""``modurob simulate``: an organism that moves under gravity, or follows a gait."""

from __future__ import annotations

from typing import Any

import click

from modurob import StateError
from modurob.cli import organisms
from modurob.cli.fields import field_options, take_fields
from modurob.cli.run import execute, run_options, scenario_of, take_run_options
from modurob.scenario.fields import gait_parameters, joint_positions
from modurob.scenario.gait_files import gait_fields
from modurob.scenario.settings import WALKING
from modurob.sim import INTEGRATORS

OF_ALL_GAITS = ("amplitude", "frequency", "ramp")  # with fields of their own in a scenario
EXAMPLE = """\b
Examples:
  modurob simulate double_pendulum --hinges physical --start 90,0 --duration 10
  modurob simulate crab --hinges physical --plot crab.png --animate crab.gif
  modurob simulate snake --hinges physical --gait wave --plot wave.png
  modurob simulate double_pendulum --start 90,0 --equations --plot both.png
  modurob simulate snake --hinges physical --push "m3 force=0,2,0 begin=1 length=0.1"
  modurob simulate snake --hinges physical --gait wave --base free --ground --slope 2 --duration 2
  modurob simulate crab --hinges physical --engine mujoco
  modurob simulate crab --base free --integrator DOP853 --output run.npz --csv run.csv
"""
parameter_option = click.option(
    "--parameter", "parameters", multiple=True, metavar="NAME=VALUE",
    help="Gait parameter, such as frequency=0.5, lag=1 or phase.m1.hinge=0.3; may be repeated. "
    "[rad, s, Hz]",
)  # fmt: skip


@organisms.body_command("simulate", EXAMPLE)
@click.option("--duration", type=float, default=5.0, show_default=True,
              help="Length of the run. [s]")  # fmt: skip
@organisms.hinges_option
@organisms.base_option
@organisms.lock_option
@click.option("--start", metavar="ANGLES",
              help="Joint positions at the start, separated by commas. [deg, m]  [default: 0]"
              )  # fmt: skip
@click.option("--gait", metavar="GAIT",
              help="Follow a gait with computed torque: its name, or a .json file.")  # fmt: skip
@parameter_option
@field_options("payload", "pushes", "wrench_sensors", "ground", "slope", "ground_friction")
@field_options(engine="modurob")
@click.option("--integrator", type=click.Choice(list(INTEGRATORS)),
              help="Method of integration.  "
              "[default: RK45; on the ground SemiImplicitEuler]")  # fmt: skip
@click.option("--rtol", type=float,
              help="Relative tolerance of adaptive methods.  [default: 1e-8]")  # fmt: skip
@click.option("--dt", type=float,
              help="Step; for adaptive methods the largest. [s]  [default: 0.001]")  # fmt: skip
@field_options("analytic")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of random gaits.  [default: 0]")
@run_options
def command(
    name: str, start: str | None, gait: str | None, parameters: tuple[str, ...], **options: Any
) -> None:
    """Simulate an organism under gravity, or along a gait."""
    files = take_run_options(options)
    title, organism = organisms.find(name)
    options["hinges"] = organisms.hinges_of(name, options["hinges"])
    locked = organisms.locked_of(organism, options.pop("locked"))
    if gait is not None:
        if start is not None:
            raise StateError("a gait has a start of its own: give --gait or --start")
        options |= {**gait_fields(gait), "controller": "ComputedTorque"}
        if options["ground"]:
            options["settling_time"] = WALKING["settling_time"]
    elif parameters:
        raise StateError("--parameter sets a parameter of a gait: give --gait as well")
    body = {"organism": organism, "name": title, "locked": locked}
    model = scenario_of(**body, hinges=options["hinges"], base=options["base"]).model()
    typed = typed_gait(parameters)
    if "gait" in typed:
        typed["gait"] = {**options.get("gait", {}), **typed["gait"]}
    fields = take_fields(options, model) | typed
    scenario = scenario_of(**body, **(options | fields))
    if start is not None:
        scenario = scenario.edited(pose=joint_positions("--start", start, model))
    if gait is not None:
        if model.free_base and not scenario.ground:
            raise StateError(
                "a gait moves joints, and a free base falls: use a fixed base, or give --ground"
            )
        scenario = scenario.on_motion()
    execute(scenario, files)


def typed_gait(parameters: tuple[str, ...]) -> dict[str, Any]:
    """Fields of a scenario with the parameters of a gait, as typed."""
    gait = gait_parameters("--parameter", " ".join(parameters))
    fields = {name: gait.pop(name) for name in OF_ALL_GAITS if name in gait}
    return {**fields, "gait": gait} if gait else fields
