"""``modurob simulate``: let an organism move."""

from __future__ import annotations

import inspect
import math
from typing import Any

import click
import numpy as np

from modurob import Model, StateError, Trajectory, simulate
from modurob.cli import organisms, output
from modurob.sim import INTEGRATORS

EXAMPLE = """\b
Examples:
  modurob simulate double_pendulum --hinges physical --start 90,0 --duration 10
  modurob simulate crab --hinges physical --plot crab.png --animate crab.gif
  modurob simulate snake --hinges physical --gait wave --plot wave.png
  modurob simulate crab --base free --integrator DOP853 --output run.npz --csv run.csv
"""


@click.command("simulate", epilog=EXAMPLE, short_help="Let an organism move.")
@click.argument("name", metavar="NAME_OR_FILE")
@click.option("--duration", type=float, default=5.0, show_default=True, help="[s]")
@organisms.hinges_option
@click.option("--base", default="fixed", show_default=True, metavar="BASE",
              help="fixed, free, or virtual joints such as px,pz,ry.")  # fmt: skip
@click.option("--start", metavar="ANGLES",
              help="Where the joints start [deg, m], with commas.  [default: 0]")  # fmt: skip
@click.option("--gait", "gait_name", metavar="NAME", help="Follow a gait, with computed torque.")
@click.option("--integrator", type=click.Choice(list(INTEGRATORS)), default="RK45",
              show_default=True, help="How to integrate.")  # fmt: skip
@click.option("--rtol", type=float, default=1e-8, show_default=True, help="Relative error a step.")
@click.option("--dt", type=float, help="Step of the methods that have one. [s]  [default: 0.001]")
@click.option("--plot", "plot_path", metavar="FILE", help="Positions, velocities, energy: .png.")
@click.option("--animate", "film_path", metavar="FILE", help="A film: .gif, or .mp4 with ffmpeg.")
@click.option("--csv", "csv_path", metavar="FILE", help="A table.")
@click.option("-o", "--output", "path", metavar="FILE", help="The trajectory, .npz.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="For gaits that are random.")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(
    name: str,
    duration: float,
    hinges: str | None,
    base: str,
    start: str | None,
    gait_name: str | None,
    integrator: str,
    rtol: float,
    dt: float | None,
    plot_path: str | None,
    film_path: str | None,
    csv_path: str | None,
    path: str | None,
    seed: int,
    force: bool,
    as_json: bool,
) -> None:
    """Let an organism move under gravity, or follow a gait.

    NAME_OR_FILE is a file that `modurob new` wrote, or a built-in organism: arm, crab, crane,
    double_pendulum, nine, snake or superbot_tree.
    """
    wanted = {"--plot": plot_path, "--animate": film_path, "--csv": csv_path, "--output": path}
    files = {option: file for option, file in wanted.items() if file is not None}
    for option, file in files.items():
        output.check_path(option, file)
    output.refuse_to_overwrite(files.values(), force)
    title, organism = organisms.find(name)
    model = organism.model(organisms.hinges_of(name, hinges), organisms.base_of(base))
    q0 = _start(model, start)
    v0, settings = None, {}
    if gait_name is not None:
        if start is not None:
            raise StateError("a gait has a start of its own: give --gait or --start")
        settings, (q0, v0, _) = _following(model, gait_name, seed)
    trajectory = simulate(
        model, q0, v0, duration, integrator=integrator, rtol=rtol, dt=dt, organism=organism,
        progress=not as_json and output.console().is_terminal, **settings,
    )  # fmt: skip
    if plot_path:
        trajectory.plot("q", "v", "tau" if gait_name else "energy", path=plot_path, title=title)
    if film_path:
        trajectory.animate(film_path)
    if csv_path:
        trajectory.to_csv(csv_path)
    if path:
        trajectory.save(path)
    facts = _facts(title, trajectory)
    if as_json:
        output.print_json({**facts, "files": list(files.values())})
        return
    _print(facts, list(files.values()))


def _start(model: Model, text: str | None) -> np.ndarray:
    """The configuration that the user typed, angles in degrees."""
    q = model.neutral()
    if text is None:
        return q
    joints = len(model.joint_names)
    try:
        numbers = [float(piece) for piece in text.split(",")]
    except ValueError:
        raise StateError(f"--start takes numbers separated by commas, got '{text}'") from None
    if len(numbers) != joints:
        raise StateError(
            f"--start has {len(numbers)} numbers, the model has {joints} joints: "
            f"{' '.join(model.joint_names)}"
        )
    scale = np.where(model.prismatic, 1.0, math.pi / 180)
    q[len(q) - joints :] = np.array(numbers) * scale
    return q


def _following(model: Model, gait_name: str, seed: int) -> tuple[dict[str, Any], Any]:
    """A gait, a controller that follows it, and where that starts."""
    from modurob.control import ComputedTorque
    from modurob.gaits import gait_class

    if model.free_base:
        raise StateError("a gait moves joints; a free base has none: use a fixed base")
    kind = gait_class(gait_name)
    settings: dict[str, Any] = {}
    if "rng" in inspect.signature(kind).parameters:
        settings["rng"] = np.random.default_rng(seed)
    gait = kind.for_model(model, **settings)
    return {"controller": ComputedTorque(model), "reference": gait}, gait(0.0)


def _facts(title: str, trajectory: Trajectory) -> dict[str, Any]:
    q, v, energy = trajectory.q, trajectory.v, trajectory.energy
    model = trajectory.model
    joints = len(model.joint_names)
    return {
        "title": title,
        "integrator": trajectory.integrator,
        "seconds": float(trajectory.t[-1]),
        "steps": len(trajectory.t) - 1,
        "joints": list(model.joint_names),
        "last_position": q[-1, model.nq - joints :].tolist(),
        "largest_speed": np.abs(v[:, model.nv - joints :]).max(axis=0, initial=0.0).tolist(),
        "energy": [float(energy[0]), float(energy[-1])],
    }


def _print(facts: dict[str, Any], files: list[str]) -> None:
    console = output.console()
    table = output.plain_table()
    table.add_column("joint", style="bold")
    for heading in ("position at the end", "largest speed"):
        table.add_column(heading, justify="right")
    rows = zip(facts["joints"], facts["last_position"], facts["largest_speed"], strict=True)
    for joint, place, speed in rows:
        table.add_row(joint, f"{place:+.4f}", f"{speed:.4f}")
    output.print_table(console, f"{facts['title']} after {facts['seconds']:g} s", table)
    begin, end = facts["energy"]
    console.print(
        f"{facts['steps']} steps of {facts['integrator']}; energy {begin:.6g} J at the start, "
        f"{end:.6g} J at the end",
        soft_wrap=True,
    )
    for file in files:
        console.print(f"wrote {file}", soft_wrap=True)
