"""``modurob balance``: modules that bring their center of mass above where they stand."""

from __future__ import annotations

from typing import Any

import click
import numpy as np
from rich.text import Text

from modurob import Organism, StateError, distributed, examples
from modurob.cli import organisms, output
from modurob.distributed.balancing import LAWS, Balanced, Drive, Fault
from modurob.drawing import charts

EXAMPLE = """\b
Examples:
  modurob balance
  modurob balance --modules 20 --law momentum --loss 0.1 --animate tree.gif
  modurob balance tree.json --fault die:m7:1.0 --stuck m3.pitch --plot tree.png
  modurob balance --law default --friction 0.1 --duration 10 --json
"""
MOST_BRANCHES = 4


@click.command("balance", epilog=EXAMPLE, short_help="Let modules balance by themselves.")
@click.argument("name", metavar="[NAME_OR_FILE]", required=False)
@click.option("--modules", type=click.IntRange(min=2, max=200), default=20, show_default=True,
              help="Of a random SuperBot tree, if no organism is named.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=2, show_default=True,
              help="For the tree, and for messages that get lost.")  # fmt: skip
@click.option("--law", type=click.Choice(LAWS), default="shared", show_default=True,
              help="How joints choose their torques.")  # fmt: skip
@click.option("--duration", type=float, default=5.0, show_default=True, help="[s]")
@click.option("--loss", type=click.FloatRange(0, 1, max_open=True), default=0.0,
              help="Chance that a message gets lost.")  # fmt: skip
@click.option("--delay", type=click.IntRange(min=0, max=1000), default=0,
              help="Further milliseconds of a message for each docking.")  # fmt: skip
@click.option("--fault", "faults", multiple=True, metavar="KIND:MODULE:SECONDS",
              help="freeze, die or reboot a module, such as die:m7:1.0.")  # fmt: skip
@click.option("--stuck", multiple=True, metavar="JOINT", help="A joint that does not move.")
@click.option("--friction", type=float, default=Drive.friction, show_default=True,
              help="Of the drives. [N m s/rad]")  # fmt: skip
@click.option("--plot", "plot_path", metavar="FILE", help="Distance, path and errors: .png.")
@click.option("--animate", "film_path", metavar="FILE", help="A film: .gif, or .mp4 with ffmpeg.")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(
    name: str | None,
    modules: int,
    seed: int,
    law: str,
    duration: float,
    loss: float,
    delay: int,
    faults: tuple[str, ...],
    stuck: tuple[str, ...],
    friction: float,
    plot_path: str | None,
    film_path: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Let modules bring their center of mass above where they stand, each on its own.

    NAME_OR_FILE is a file that `modurob new` wrote or a built-in organism, fixed to the ground at
    its base; by default a random SuperBot tree.
    """
    wanted = {"--plot": plot_path, "--animate": film_path}
    files = {option: file for option, file in wanted.items() if file is not None}
    for option, file in files.items():
        output.check_path(option, file)
    output.refuse_to_overwrite(files.values(), force)
    if plot_path:
        charts.check_ending(plot_path, "plots")
    title, organism = _tree(modules, seed) if name is None else organisms.find(name)
    happenings = [_fault(text) for text in faults]
    with output.bar(title, not as_json) as progress:
        run = distributed.balance(
            organism, law, duration=duration, loss=loss, delay=delay, stuck=stuck,
            faults=happenings, drive=Drive(friction), rng=np.random.default_rng(seed),
            progress=progress,
        )  # fmt: skip
    if plot_path:
        run.plot(path=plot_path, title=f"{title}, law: {law}")
    if film_path:
        run.animate(film_path)
    facts = _facts(title, run)
    if as_json:
        output.print_json({**facts, "files": list(files.values())})
        return
    _print(facts, list(files.values()))


def _tree(modules: int, seed: int) -> tuple[str, Organism]:
    """As many branches as divide the modules evenly, four at most."""
    branches = max(k for k in range(1, MOST_BRANCHES + 1) if modules % k == 0)
    rng = np.random.default_rng(seed)
    tree = examples.superbot_tree(branches, modules // branches, rng)
    return f"SuperBot tree {seed} of {modules} modules", tree


def _fault(text: str) -> Fault:
    pieces = text.split(":")
    try:
        kind, module, seconds = pieces[0], pieces[1], float(pieces[2])
    except (IndexError, ValueError):
        raise StateError(
            f"--fault takes KIND:MODULE:SECONDS like die:m7:1.0, got '{text}'"
        ) from None
    return Fault(seconds, module, kind)


def _facts(title: str, run: Balanced) -> dict[str, Any]:
    errors = 1e3 * run.estimate_errors
    worst = np.nanmax(errors[-1]) if np.isfinite(errors[-1]).any() else None
    return {
        "title": title,
        "law": run.law,
        "seconds": float(run.t[-1]),
        "joints": len(run.model.joint_names),
        "width": run.width,
        "distance": {
            "start": float(run.distance[0]),
            "end": float(run.distance[-1]),
            "largest": float(run.distance.max()),
        },
        "first_below_a_tenth": run.first_reached,
        "stays_below_a_tenth": run.reached,
        "largest_torque": float(np.abs(run.tau).max(initial=0.0)),
        "largest_speed": float(np.abs(run.v).max(initial=0.0)),
        "error_of_the_worst_module_mm": None if worst is None else float(worst),
        "modules_without_a_world_frame": int(np.isnan(errors[-1]).sum()),
        "messages": run.messages,
        "lost": run.lost,
        "times_real_time": run.real_time,
    }


def _print(facts: dict[str, Any], files: list[str]) -> None:
    console = output.console()
    table = output.plain_table()
    table.show_header = False
    table.add_column("", style="bold")
    table.add_column("")
    away, first, stays = (
        facts["distance"], facts["first_below_a_tenth"], facts["stays_below_a_tenth"]
    )  # fmt: skip
    reached = Text("no", "red") if stays is None else Text(f"after {stays:.2f} s", "green")
    crossed = "never" if first is None else f"at {first:.2f} s"
    worst, blind = facts["error_of_the_worst_module_mm"], facts["modules_without_a_world_frame"]
    known = "nobody knows it" if worst is None else f"{worst:.3g} mm for the worst module"
    table.add_row("law", facts["law"])
    table.add_row("distance", f"{away['start']:.3f} -> {away['end']:.3f} widths of a module")
    table.add_row("stays below a tenth", reached)
    table.add_row("first below a tenth", crossed)
    speed, torque = facts["largest_speed"], facts["largest_torque"]
    table.add_row("largest speed, torque", f"{speed:.2g} rad/s, {torque:.2g} N m")
    table.add_row("center known to", known + (f", {blind} modules cut off" if blind else ""))
    rate = facts["messages"] / facts["seconds"]
    lost = f", {facts['lost']:,} lost" if facts["lost"] else ""
    table.add_row("messages", f"{facts['messages']:,} ({rate:,.0f} a second{lost})")
    table.add_row("computed", f"{facts['times_real_time']:.2g} times as fast as it happens")
    output.print_table(
        console, f"{facts['title']}, {facts['joints']} joints, {facts['seconds']:g} s", table
    )
    for file in files:
        console.print(f"wrote {file}", soft_wrap=True)
