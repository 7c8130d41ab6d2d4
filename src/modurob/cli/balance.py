"""``modurob balance``: modules that bring their center of mass above their base."""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np

from modurob import Ground, Organism, Scenario, StateError, examples
from modurob.checks import inside
from modurob.cli import organisms, output
from modurob.cli.characters import echo
from modurob.cli.run import FILES, execute, run_options, scenario_of, take_run_options
from modurob.distributed.balancing.faults import Fault
from modurob.distributed.balancing.laws import LAWS
from modurob.distributed.balancing.on_ground import SLIPPED, Impulse, stand
from modurob.distributed.balancing.plant import GearedDrive
from modurob.distributed.balancing.processes import BalancingProcesses
from modurob.scenario.settings import BALANCE

EXAMPLE = """\b
Examples:
  modurob balance
  modurob balance --modules 20 --law momentum --loss 0.1 --animate tree.gif
  modurob balance tree.json --fault die:m7:1.0 --stuck m3.pitch --plot tree.png
  modurob balance --law default --friction 0.1 --duration 10 --json
  modurob balance --processes --duration 2 --fault die:m4:1.0
  modurob balance --ground --push 1.0 --step m2:0.04:0 --animate step.gif
  modurob balance --ground --processes --loss 0.3 --fault die:m4:1.5 --animate stand.gif
"""
MOST_BRANCHES = 4
MODULES, SEED = 20, 2  # of the default tree
STANDING_S = 2.5  # of a run on the ground without steps
LONGEST_S = 3600.0  # of a run by processes, which takes four times as long
ROW_INTERVAL_S = 0.25  # between two lines of a run by processes


@click.command("balance", epilog=EXAMPLE)
@click.argument("name", metavar="[NAME_OR_FILE]", required=False)
@click.option(
    "--modules",
    type=click.IntRange(min=2, max=200),
    help=f"Modules of a random SuperBot tree, if no organism is named.  [default: {MODULES}]",
)
@click.option("--seed", type=click.IntRange(min=0),
              help=f"Seed of the tree and of lost messages.  [default: {SEED}]")  # fmt: skip
@click.option("--law", "balancing_law", type=click.Choice(LAWS), default="shared",
              show_default=True, help="Rule by which joints choose their torques.")  # fmt: skip
@click.option(
    "--duration", type=float, default=5.0, show_default=True, help="Length of the run. [s]"
)
@click.option("--loss", type=click.FloatRange(0, 1, max_open=True), default=0.0,
              help="Probability that a message is lost.")  # fmt: skip
@click.option("--delay", type=click.IntRange(min=0, max=1000), default=0,
              help="Extra delay of a message at each docking. [ms]")  # fmt: skip
@click.option("--fault", "faults", multiple=True, metavar="KIND:MODULE:SECONDS",
              help="Fault of a module: freeze, die or reboot, such as die:m7:1.0.")  # fmt: skip
@click.option("--stuck", multiple=True, metavar="JOINT", help="A joint that does not move.")
@click.option("--friction", "drive_friction", type=float, default=GearedDrive.friction,
              show_default=True, help="Viscous friction of the drives. [N m s/rad]")  # fmt: skip
@click.option("--processes", is_flag=True,
              help="A process for each module, and one for the body.")  # fmt: skip
@click.option("--ground", is_flag=True, help="Stand on the ground with the ends of the tree.")
@click.option(
    "--slope", type=click.FloatRange(-45, 45), default=0.0, help="Slope of the ground. [deg]"
)
@click.option(
    "--push", type=float, default=0.0, help="Impulse along x at 1 s, on the ground. [N s]"
)
@click.option("--step", "steps", multiple=True, metavar="FOOT:X:Y",
              help="A step on the ground, such as m2:0.04:0. [m]")  # fmt: skip
@run_options
def command(
    name: str | None, modules: int | None, seed: int | None, faults: tuple[str, ...],
    processes: bool, ground: bool, slope: float, push: float, steps: tuple[str, ...],
    **options: Any,
) -> None:  # fmt: skip
    """Bring the center of mass above the base by messages between neighboring modules.

    NAME_OR_FILE is a file that `modurob new` wrote or a built-in organism, fixed to the ground at
    its base; by default a random SuperBot tree. With --ground the body is free and stands on the
    ends of its branches; by default it is a random SuperBot tree with four legs.
    """
    files = take_run_options(options)
    if ground:
        ways = {
            "loss": options["loss"], "processes": processes, "duration": options["duration"],
            "faults": [_fault(text) for text in faults],
        }  # fmt: skip
        _stand(name, seed, slope, push, steps, files, ways)
        return
    if slope or push or steps:
        raise StateError("--slope, --push and --step are for a robot on the ground: give --ground")
    if name is None:
        title, organism = _tree(modules or MODULES, SEED if seed is None else seed)
        seed = (SEED if seed is None else seed) if options["loss"] else None
    elif modules is not None:
        raise StateError("--modules has no effect with NAME_OR_FILE: it is for the random tree")
    else:
        title, organism = organisms.find(name)
    events = [
        {"what": fault.kind, "time": fault.time, "module": fault.module}
        for fault in map(_fault, faults)
    ]
    scenario = scenario_of(
        organism=organism, name=title, hinges="physical", motion=BALANCE, seed=seed,
        events=events, **options,
    )  # fmt: skip
    if processes:
        _check_processes(files, events, options, organism)
        _run_processes(scenario, events, as_json=files["as_json"])
    else:
        execute(scenario, files)


def _stand(
    name: str | None, seed: int | None, slope: float, push: float, steps: tuple[str, ...],
    files: dict[str, Any], ways: dict[str, Any],
) -> None:  # fmt: skip
    """Print whether a robot on the ground stays up; refuse options of other runs."""
    context = click.get_current_context()
    allowed = {"name", "seed", "ground", "slope", "push", "steps", "film_path", "path", "force",
               "as_json", "duration", *ways}  # fmt: skip
    if context.get_parameter_source("duration") != click.core.ParameterSource.COMMANDLINE:
        ways["duration"] = None if steps else STANDING_S
    for parameter in context.command.params:
        key = parameter.name or ""
        given = context.get_parameter_source(key) == click.core.ParameterSource.COMMANDLINE
        if given and key not in allowed:
            raise StateError(f"--ground goes without {parameter.opts[-1]}: leave one of them out")
    seed = SEED if seed is None else seed
    rng = np.random.default_rng(seed)
    title, tree = (
        (f"SuperBot tree {seed} on four legs", examples.superbot_walker(rng=rng))
        if name is None else organisms.find(name)
    )  # fmt: skip
    with output.bar(title, not files["as_json"]) as progress:
        run = stand(
            tree, ground=Ground(slope=(float(np.tan(np.radians(slope))), 0.0)), rng=rng,
            push=Impulse(1.0, (push, 0.0, 0.0)) if push else None, steps=[_step(s) for s in steps],
            progress=progress, **ways,
        )  # fmt: skip
    if files["film_path"]:
        run.animate(files["film_path"])
    if files["path"]:
        run.save(files["path"])
    facts = {
        "title": title, "seconds": float(run.t[-1]), "feet": [foot.module for foot in run.feet],
        "lost": sorted(run.lost), "fallen": run.fallen, "steps": run.steps_done,
        "asked_steps": len(steps),
        "largest_tilt_deg": float(np.degrees(run.tilt.max())),
        "lowest_height_m": float(run.height.min()), "largest_slip_m": float(run.slip.max()),
    }  # fmt: skip
    if files["as_json"]:
        output.print_json(facts)
        return
    dead = f"; died: {', '.join(facts['lost'])}" if run.lost else ""
    echo(f"{title}: feet {', '.join(facts['feet'])}{dead}")
    stood = "It stands" if run.slip.max() < SLIPPED else "It does not fall, but slides"
    echo(f"{run.fallen or stood}; {run.steps_done} of {len(steps)} steps")
    echo(f"largest tilt {facts['largest_tilt_deg']:.1f} deg, lowest center "
         f"{1e3 * facts['lowest_height_m']:.0f} mm, largest slip of a sole "
         f"{1e3 * facts['largest_slip_m']:.0f} mm")  # fmt: skip


def _step(text: str) -> tuple[str, tuple[float, float]]:
    """A step as typed."""
    try:
        foot, x, y = text.split(":")
        return foot, (float(x), float(y))
    except ValueError:
        raise StateError(f"--step takes FOOT:X:Y like m2:0.04:0, got '{text}'") from None


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
    inside("--duration with --processes", options["duration"], 0.0, LONGEST_S, "seconds")
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
        body, scenario.balancing_law, drive=drive, loss=scenario.loss, seed=scenario.seed
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


def _fault(text: str) -> Fault:
    """A fault as typed."""
    pieces = text.split(":")
    try:
        return Fault(float(pieces[2]), pieces[1], pieces[0])
    except (IndexError, ValueError):
        raise StateError(
            f"--fault takes KIND:MODULE:SECONDS like die:m7:1.0, got '{text}'"
        ) from None
