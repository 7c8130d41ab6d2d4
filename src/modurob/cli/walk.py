"""``modurob walk``: a gait on the ground, and its tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from modurob import Scenario, StateError
from modurob.cli import organisms, output
from modurob.cli.characters import echo
from modurob.cli.fields import field_options, take_fields
from modurob.cli.run import FILES, execute, run_options, scenario_of, take_run_options
from modurob.cli.simulate import parameter_option, typed_gait
from modurob.errors import choices
from modurob.gaits import gait_class
from modurob.scenario.gait_files import GaitRecord
from modurob.walking import started, tune, walking_fields
from modurob.walking.zoo import HINGES, ZOO, gait_file

EXAMPLE = """\b
Examples:
  modurob walk caterpillar --film caterpillar.gif
  modurob walk zoo --film zoo.gif
  modurob walk snake --hinges physical --gait wave --parameter lag=1.5 --slope 3
  modurob walk nine --hinges physical --tune 2000 --resume nine.tuning --save-gait nine.json
  modurob walk nine --hinges physical --gait nine.json --friction 0.4 --engine mujoco
"""


ALL = "zoo"
OF_ONE = {
    "--gait": "gait", "--parameter": "parameters", "--lock": "locked", "--tune": "evaluations",
    "--resume": "checkpoint", "--save-gait": "gait_path", "--json": "as_json",
}  # fmt: skip


@organisms.body_command("walk", EXAMPLE)
@click.option("--gait", metavar="GAIT",
              help="A gait by name, or a .json file of one.  [default: that of the walker, else "
              "wave]")  # fmt: skip
@parameter_option
@click.option("--duration", "--seconds", type=float, default=10.0, show_default=True,
              help="Length of the run. [s]")  # fmt: skip
@field_options(ground_friction="0.8", slope="0")
@organisms.hinges_option
@organisms.lock_option
@field_options("torque_limit", "masses", "payload", "pushes")
@field_options(engine="modurob")
@click.option("--tune", "evaluations", type=click.IntRange(min=1), metavar="RUNS",
              help="Tune the gait by CMA-ES with this many runs, then walk.")  # fmt: skip
@click.option("--resume", "checkpoint", metavar="FILE",
              help="Checkpoint of the tuning: written after each generation; an existing one "
              "is continued.")  # fmt: skip
@click.option("--save-gait", "gait_path", metavar="FILE", help="Write the gait, .json.")
@click.option("--seed", type=click.IntRange(min=0),
              help="Seed of the tuning and of random gaits.  [default: 0]")  # fmt: skip
@run_options
def command(
    name: str, gait: str | None, parameters: tuple[str, ...], evaluations: int | None,
    checkpoint: str | None, gait_path: str | None, **options: Any,
) -> None:  # fmt: skip
    """Walk with a gait; report distance, cost of transport, slip and stability.

    PD servos move the joints along the gait; the base is free. A body that starts below the
    ground is lifted. With --tune, amplitude, frequency, lag, and phases and offsets of the joints
    are tuned to maximize speed - 0.02 power / weight.

    Walkers with gaits of their own are caterpillar, crab, cross, roller and sidewinder; zoo runs
    all of them and adds the name of the walker to every file, such as zoo-crab.gif.
    """
    if name == ALL:
        return _walk_all(click.get_current_context())
    files = take_run_options(options)
    for option, path in (("--resume", checkpoint), ("--save-gait", gait_path)):
        output.check_path(option, path)
    output.refuse_to_overwrite(filter(None, [gait_path]), files["force"])
    if checkpoint is not None and evaluations is None:
        raise StateError("--resume continues a tuning: give --tune as well")
    own: dict[str, Any] = {}
    if name in ZOO:
        title, organism, own = name, ZOO[name].build(), dict(ZOO[name].fields)
        gait, options["hinges"] = gait or str(gait_file(name)), options["hinges"] or HINGES
        typed_locks = organisms.locked_of(organism, options["locked"])
        options["locked"] = {**own.pop("locked", {}), **typed_locks}
    else:
        title, organism = organisms.find(name, ZOO)
        options["hinges"] = organisms.hinges_of(name, options["hinges"])
        options["locked"] = organisms.locked_of(organism, options["locked"])
    model = organism.model(options["hinges"], "free", locked=options["locked"])
    typed = typed_gait(parameters)
    given_seed = options.pop("seed")
    seed = given_seed or 0
    given = {key: x for key, x in (take_fields(options, model) | options).items() if x is not None}
    fields = walking_fields(gait or "wave", typed.pop("gait", {}), **(own | given | typed))
    if gait_class(fields["motion"]).random:
        fields["seed"] = seed
    elif given_seed is not None and evaluations is None:
        raise StateError("--seed has no effect on this gait: leave it out, or give --tune")
    scenario = started(scenario_of(organism=organism, name=title, **fields))
    facts: dict[str, Any] = {}
    if evaluations is not None:
        scenario, tuned = _tuned(scenario, evaluations, seed, checkpoint, files["as_json"])
        facts["tuning"] = tuned
    if gait_path is not None:
        GaitRecord.of(scenario).save(gait_path)
    execute(scenario, files, facts)


def _walk_all(context: click.Context) -> None:
    """Every walker of the zoo, with files of its own."""
    given = context.params
    for option, of_one in OF_ONE.items():
        if given[of_one]:
            raise StateError(f"{option} is of one walk: name a walker, {choices(ZOO)}")
    for name in ZOO:
        paths = {key: Path(given[key]) for key in FILES if given[key]}
        files = {key: str(p.with_stem(f"{p.stem}-{name}")) for key, p in paths.items()}
        context.invoke(command, **{**given, **files, "name": name})


def _tuned(
    scenario: Scenario, evaluations: int, seed: int, checkpoint: str | None, as_json: bool
) -> tuple[Scenario, dict[str, Any]]:
    """The scenario with a better gait, and what the tuning found."""

    def show(generation: int, count: int, score: float) -> None:
        echo(f"generation {generation} of {count}: best score {score:.4f} m/s", err=True)

    found = tune(
        scenario, evaluations, seed=seed, checkpoint=checkpoint,
        progress=None if as_json else show,
    )  # fmt: skip
    facts = {"evaluations": found.evaluations, "score": found.score, "gait": found.gait.fields()}
    return scenario.edited(**found.gait.fields()).on_motion(), facts
