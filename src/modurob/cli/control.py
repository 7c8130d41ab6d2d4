"""``modurob control``: a closed loop, and what it stands."""

from __future__ import annotations

import math
from typing import Any

import click
import numpy as np

from modurob import Model, StateError, Trajectory, simulate
from modurob.checks import positive
from modurob.cli import control_report, control_table, organisms, output
from modurob.cli.choices import LawChoice
from modurob.control import (
    Controller,
    OutputFeedback,
    gains,
    law_class,
    plot_closed_loop,
    robustness,
    scaled,
)
from modurob.control.references import Quintic, SetPoint
from modurob.drawing import charts
from modurob.estimation import ekf_for_sensors
from modurob.sim import Noise, SimulationError

EXAMPLE = """\b
Examples:
  modurob control crab --settle 0.5 --plot crab.png
  modurob control crab --law computed-torque --settle 0.5 --noise 0.03 --ekf
  modurob control crab --to 30,-10,20 --masses 0.9 --delay 0.02 --torque-limit 3
  modurob control double_pendulum --hinges physical --law pole-placement --poles -2,-3,-5,-10
  modurob control crab --monte-carlo 1000
"""
STEP = {False: math.radians(20.0), True: 0.1}  # [rad, m] to go, of turning and sliding joints
SHARES = (1.0, -0.75, 0.5)  # of it for one joint after the other: lines that lie apart
SETTLING_TIMES = 4.0  # of a run that nobody gave a duration
LONGEST = 60.0  # [s] of such a run
MOVING = 0.5  # of the time: how long a smooth motion takes
MOST_RUNS = 100_000


@click.command("control", epilog=EXAMPLE, short_help="Close the loop, and see what it stands.")
@click.argument("name", metavar="NAME_OR_FILE")
@click.option("--law", "law_name", type=LawChoice(), default="computed-torque",
              show_default=True, help="Which law.")  # fmt: skip
@click.option("--settle", type=float, metavar="SECONDS", help="Settling time.  [default: 1]")
@click.option("--poles", metavar="POLES", help="Instead: two, or two for each joint, such as "
              "-2,-3 (pole-placement).")  # fmt: skip
@click.option("--to", "target", metavar="ANGLES",
              help="Where the joints go, with commas. [deg, m]  [default: 20,-15,10]")  # fmt: skip
@click.option("--move", type=click.Choice(("step", "quintic")), default="step", show_default=True,
              help="Jump there, or move smoothly in half the time.")  # fmt: skip
@click.option("--duration", type=float, help="[s]  [default: 4 settling times]")
@organisms.hinges_option
@click.option("--sample-time", type=float, default=0.002, show_default=True,
              help="Between commands. [s]")  # fmt: skip
@click.option("--torque-limit", "limit", metavar="TORQUES", help="One, or one for each joint. "
              "[N m, N]")  # fmt: skip
@click.option("--delay", type=float, default=0.0, help="Until a torque takes effect. [s]")
@click.option("--masses", type=float, default=1.0, metavar="FACTOR",
              help="True masses, as a factor on those that the law believes.")  # fmt: skip
@click.option("--noise", type=float, default=0.0, metavar="SIGMA",
              help="Of measured angles and velocities. [rad, m; rad/s, m/s]")  # fmt: skip
@click.option("--ekf", is_flag=True, help="The law sees an estimate made from the angles alone.")
@click.option("--monte-carlo", "runs", type=click.IntRange(1, MOST_RUNS), metavar="RUNS",
              help="Random steps under wrong masses, delay, noise and limits.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of noise and random steps.")
@click.option("--plot", "plot_path", metavar="FILE", help="Positions, velocities, torques, errors.")
@click.option("-o", "--output", "path", metavar="FILE", help="The trajectory, .npz.")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(name: str, runs: int | None, as_json: bool, **options: Any) -> None:
    """Close the loop: joints go to a set point, under conditions that the law does not know.

    NAME_OR_FILE is a file that `modurob new` wrote, or a built-in organism: arm, crab, crane,
    double_pendulum, nine, snake or superbot_tree. With --monte-carlo each condition is looked at by
    itself, and all together; --masses, --delay, --noise and --torque-limit then say how bad.
    """
    wanted = {"--plot": options["plot_path"], "--output": options["path"]}
    files = {option: file for option, file in wanted.items() if file is not None}
    for option, file in files.items():
        output.check_path(option, file)
        if runs is not None:
            raise StateError(f"{option} shows one run: leave --monte-carlo out")
    if options["plot_path"] is not None:
        charts.check_ending(options["plot_path"], "plots")
    output.refuse_to_overwrite(files.values(), options["force"])
    title, organism = organisms.find(name)
    hinges = organisms.hinges_of(name, options["hinges"])
    model = organism.model(hinges)
    if not model.joint_names:
        raise StateError(f"{title} has no joint that could move with --hinges {hinges}")
    goal = _target(model, options["target"])
    if runs is not None:
        _many(title, model, goal, runs, as_json, options)
        return
    law = _law(model, goal, options, delay=options["delay"], limit=options["limit"])
    length = positive("--duration", _duration(law, options), "seconds")
    way: Any = SetPoint(goal)
    if options["move"] == "quintic":
        way = Quintic(model.neutral(), goal, MOVING * length)
    run = _run(law, way, length, options, show=not as_json)
    report = control_report.Report(title, law, run, goal, way, options["masses"], options["noise"])
    if options["plot_path"]:
        heading = f"{title}: {law.name}"
        plot_closed_loop(run, law, way, options["plot_path"], title=heading)
    if options["path"]:
        run.save(options["path"])
    if as_json:
        output.print_json({**report.data(), "files": list(files.values())})
    else:
        report.print(list(files.values()))


# -- what was typed --------------------------------------------------------------------------------


def _law(
    model: Model, goal: np.ndarray, options: dict[str, Any], delay: float, limit: str | None
) -> Controller:
    """The law that was asked for."""
    name, settle, poles = options["law_name"], options["settle"], options["poles"]
    settings: dict[str, Any] = {"sample_time": options["sample_time"], "delay": delay}
    if limit is not None:
        settings["torque_limit"] = _numbers("--torque-limit", limit, model, single=True)
    law = law_class(name)
    if poles is not None and "poles" not in law.parameters:
        raise StateError("--poles belong to --law pole-placement; others take --settle")
    if poles is not None and settle is not None:
        raise StateError("give --poles or --settle, not both")
    if settle is not None and "settling_time" not in law.parameters:
        raise StateError(f"{name} takes no --settle: its gains are {', '.join(law.parameters)}")
    if "set_point" in law.parameters:
        settings["set_point"] = goal
    if poles is not None:
        settings["poles"] = _poles(poles, len(model.joint_names))
    elif "settling_time" in law.parameters:
        settings["settling_time"] = gains.SETTLING_TIME if settle is None else settle
    return law(model, **settings)


def _target(model: Model, text: str | None) -> np.ndarray:
    """(n,) where the joints shall go, typed in degrees."""
    reach = np.where(model.prismatic, STEP[True], STEP[False])
    if text is None:
        return np.clip(reach * np.resize(SHARES, len(reach)), model.lower, model.upper)
    scale = np.where(model.prismatic, 1.0, math.pi / 180)
    goal = np.asarray(_numbers("--to", text, model)) * scale
    if not goal.any():
        raise StateError("--to is where the joints are already: at least one must move")
    return goal


def _numbers(option: str, text: str, model: Model, single: bool = False) -> list[float] | float:
    """Numbers with commas, one for each joint; or one for all if that is allowed."""
    joints = model.joint_names
    try:
        numbers = [float(piece) for piece in text.split(",")]
    except ValueError:
        raise StateError(f"{option} takes numbers separated by commas, got '{text}'") from None
    if single and len(numbers) == 1:
        return numbers[0]
    if len(numbers) != len(joints):
        raise StateError(
            f"{option} has {len(numbers)} numbers, the model has {len(joints)} joints: "
            f"{' '.join(joints)}"
        )
    return numbers


def _poles(text: str, joints: int) -> list[complex] | list[list[complex]]:
    try:
        numbers = [complex(piece.replace(" ", "")) for piece in text.split(",")]
    except ValueError:
        raise StateError(f"--poles takes numbers such as -2 or -2+3j, got '{text}'") from None
    if len(numbers) not in (2, 2 * joints):
        raise StateError(f"--poles are 2 numbers, or {2 * joints} for {joints} joints: got {text}")
    if len(numbers) == 2:
        return numbers
    return [numbers[k : k + 2] for k in range(0, len(numbers), 2)]


def _duration(law: Controller, options: dict[str, Any]) -> float:
    if options["duration"] is not None:
        return options["duration"]
    time = gains.SETTLING_TIME if options["settle"] is None else options["settle"]
    if options["poles"] is not None:
        k0, k1 = (np.ravel(getattr(law, name)) for name in ("k0", "k1"))
        time = max(gains.settling_time(*pair) for pair in zip(k0, k1, strict=True))
    return round(min(LONGEST, SETTLING_TIMES * time), 2)


# -- runs ------------------------------------------------------------------------------------------


def _run(
    law: Controller, way: Any, duration: float, options: dict[str, Any], show: bool
) -> Trajectory:
    """From the neutral pose; also as far as it came if it diverges."""
    model, noise, dt = law.model, options["noise"], law.sample_time or 0.0
    rng = np.random.default_rng(options["seed"])
    start, seen = model.neutral(), Noise(q=noise, v=noise)  # says what is wrong with the number
    loop: Any = law
    if options["ekf"]:
        first = model.neutral() + noise * rng.standard_normal(model.nq)  # a first measurement
        loop = OutputFeedback(law, ekf_for_sensors(model, dt, noise, q=first))
    factor = positive("--masses", options["masses"], "(a factor)")
    true = model if factor == 1 else scaled(model, factor)
    try:
        return simulate(
            true, start, None, duration, loop, "RK4", dt=min(dt, duration), record=dt, rng=rng,
            reference=way, noise=seen if noise else None,
            progress=show and output.console().is_terminal,
        )  # fmt: skip
    except SimulationError as stopped:
        if len(stopped.trajectory.t) < 3:
            raise
        return stopped.trajectory


def _many(
    title: str, model: Model, goal: np.ndarray, runs: int, as_json: bool, options: dict[str, Any]
) -> None:
    """The table of random steps."""
    for option in ("ekf", "move"):
        if options[option] not in (False, "step"):
            raise StateError(f"--{option} is for one run: leave --monte-carlo out")
    law = _law(model, goal, options, delay=0.0, limit=None)
    given: dict[str, Any] = {"runs": runs, "rng": np.random.default_rng(options["seed"])}
    if options["masses"] != 1:
        given["masses"] = abs(options["masses"] - 1)
    for option in ("delay", "noise"):
        if options[option]:
            given[option] = options[option]
    if options["limit"] is not None:
        given["torque_limit"] = _numbers("--torque-limit", options["limit"], model, single=True)
    if options["duration"] is not None:
        given["duration"] = options["duration"]
    still = np.where(model.prismatic, STEP[True], STEP[False])
    step = np.where(goal == 0, still, np.abs(goal))
    with output.bar("random steps", not as_json) as progress:
        table = robustness(law, step, progress=progress, **given)
    if as_json:
        output.print_json(control_table.table_data(title, table))
    else:
        control_table.print_table(title, table)
