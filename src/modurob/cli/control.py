"""``modurob control``: a closed loop and its robustness."""

from __future__ import annotations

import math
from typing import Any

import click
import numpy as np

from modurob import Model, Scenario, StateError
from modurob.checks import positive
from modurob.cli import control_report, organisms, output
from modurob.cli.law_choice import LawChoice
from modurob.cli.run import (
    FILES,
    execute,
    joint_numbers,
    joint_positions,
    run_options,
    scenario_of,
    take_run_options,
)
from modurob.control import gains, law_class, robustness
from modurob.scenario.settings import POINTS
from modurob.sim.simulate import MOST_STEPS

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
SETTLING_TIMES = 4.0  # of a run without a given duration
LONGEST_S = 60.0  # such a run
MOST_RUNS = 100_000


@organisms.body_command("control", EXAMPLE, "Simulate a closed loop and report its robustness.")
@click.option("--law", type=LawChoice(), default="computed-torque", show_default=True,
              help="Control law.")  # fmt: skip
@click.option("--settle", type=float, metavar="SECONDS", help="Settling time.  [default: 1]")
@click.option(
    "--poles",
    metavar="POLES",
    help="Instead: two, or two for each joint, such as -2,-3 (pole-placement).",
)
@click.option(
    "--to",
    "target",
    metavar="ANGLES",
    help="Joint positions to go to, with commas. [deg, m]  [default: 20,-15,10]",
)
@click.option("--move", type=click.Choice(POINTS), default="step", show_default=True,
              help="Jump there, or move smoothly in half the time.")  # fmt: skip
@click.option("--duration", type=float, help="[s]  [default: 4 settling times]")
@organisms.hinges_option
@click.option("--sample-time", type=float, default=0.002, show_default=True,
              help="Between commands. [s]")  # fmt: skip
@click.option("--torque-limit", "limit", metavar="TORQUES",
              help="One, or one for each joint. [N m, N]")  # fmt: skip
@click.option("--delay", type=float, default=0.0, help="Until a torque takes effect. [s]")
@click.option("--masses", type=float, default=1.0, metavar="FACTOR", show_default=True,
              help="True masses, as a factor on those that the law assumes.")  # fmt: skip
@click.option("--noise", type=float, default=0.0, metavar="SIGMA",
              help="Of measured angles and velocities. [rad, m; rad/s, m/s]")  # fmt: skip
@click.option("--ekf", is_flag=True, help="Feed back an estimate made from the angles alone.")
@click.option("--monte-carlo", "runs", type=click.IntRange(1, MOST_RUNS), metavar="RUNS",
              help="Random steps under wrong masses, delay, noise and limits.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), help="Of noise and random steps.  [default: 0]")
@run_options
def command(name: str, runs: int | None, **options: Any) -> None:
    """Simulate a closed loop and report its robustness.

    The joints go to a set point, under conditions that the controller has no information about.
    With --monte-carlo each condition is tried by itself, and all together; --masses, --delay,
    --noise and --torque-limit then say how bad.
    """
    files = take_run_options(options)
    for key, option in FILES.items():
        if runs is not None and files[key] is not None:
            raise StateError(f"{option} shows one run: leave --monte-carlo out")
    title, organism = organisms.find(name)
    hinges = organisms.hinges_of(name, options["hinges"])
    model = organism.model(hinges)
    if not model.joint_names:
        raise StateError(f"{title} has no joint that can move with --hinges {hinges}")
    sample_time = positive("--sample-time", options["sample_time"], "seconds")
    scenario = scenario_of(
        organism=organism,
        name=title,
        hinges=hinges,
        controller=law_class(options["law"]).__name__,
        motion=options["move"],
        target=_target(model, options["target"]),
        sample_time=sample_time,
        integrator="RK4",
        record=sample_time,
        **_gains(model, options),
    )
    if runs is not None:
        _many(scenario, model, runs, files["as_json"], options)
        return
    length = _duration(scenario, model, options["duration"])
    if length / sample_time > MOST_STEPS:
        raise StateError(
            f"--duration {length:g} s with --sample-time {sample_time:g} s are "
            f"{length / sample_time:.3g} samples; the most is {MOST_STEPS:g}"
        )
    noise = options["noise"] or None
    fields = {name: getattr(scenario, name) for name in scenario.model_fields_set}
    conditions = scenario_of(
        **fields,
        duration=length,
        dt=min(sample_time, length),
        torque_limit=_limit(model, options["limit"]),
        torque_delay=options["delay"],
        masses=options["masses"],
        noise_q=noise,
        noise_v=noise,
        estimator="Ekf" if options["ekf"] else None,
        seed=options["seed"],
    )
    execute(conditions, files)


# -- what was typed --------------------------------------------------------------------------------


def _gains(model: Model, options: dict[str, Any]) -> dict[str, Any]:
    """Settling time or poles of the law."""
    law, settle, poles = options["law"], options["settle"], options["poles"]
    takes = law_class(law).parameters
    if poles is None:
        if settle is not None and "settling_time" not in takes:
            raise StateError(f"{law} takes no --settle: its gains are {', '.join(takes)}")
        return {"settling_time": settle}
    if "poles" not in takes:
        raise StateError("--poles belong to --law pole-placement; others take --settle")
    if settle is not None:
        raise StateError("give --poles or --settle, not both")
    try:
        numbers = [complex(piece.replace(" ", "")) for piece in poles.split(",")]
    except ValueError:
        raise StateError(f"--poles takes numbers such as -2 or -2+3j, got '{poles}'") from None
    joints = len(model.joint_names)
    if len(numbers) not in (2, 2 * joints):
        raise StateError(f"--poles are 2 numbers, or {2 * joints} for {joints} joints: got {poles}")
    return {"poles": numbers}


def _target(model: Model, text: str | None) -> dict[str, float]:
    """Positions to go to, by joint. [rad, m]"""
    if text is None:
        reach = np.where(model.prismatic, STEP[True], STEP[False])
        goal = np.clip(reach * np.resize(SHARES, len(reach)), model.lower, model.upper)
        return dict(zip(model.joint_names, goal.tolist(), strict=True))
    goal = joint_positions("--to", text, model)
    if not any(goal.values()):
        raise StateError("--to is where the joints are already: at least one must move")
    return goal


def _limit(model: Model, text: str | None) -> list[float] | float | None:
    """Torque limits as typed: one, or one for each joint."""
    if text is None:
        return None
    numbers = joint_numbers("--torque-limit", text, model, "N m, N", single=True)
    if min(numbers) < 0:
        raise StateError(f"--torque-limit must be at least 0, got {text}")
    return numbers * len(model.joint_names) if len(numbers) == 1 else numbers


def _duration(scenario: Scenario, model: Model, given: float | None) -> float:
    if given is not None:
        return positive("--duration", given, "seconds")
    time = scenario.settling_time
    if scenario.poles:
        law: Any = scenario.law(model)
        pairs = zip(np.ravel(law.k0), np.ravel(law.k1), strict=True)
        time = max(gains.settling_time(*pair) for pair in pairs)
    return round(min(LONGEST_S, SETTLING_TIMES * time), 2)


# -- many runs -------------------------------------------------------------------------------------


def _many(
    scenario: Scenario, model: Model, runs: int, as_json: bool, options: dict[str, Any]
) -> None:
    """Print the table of random steps."""
    for option in ("ekf", "move"):
        if options[option] not in (False, "step"):
            raise StateError(f"--{option} is for one run: leave --monte-carlo out")
    law = scenario.law(model)
    assert law is not None
    given: dict[str, Any] = {"runs": runs, "rng": np.random.default_rng(options["seed"] or 0)}
    if options["masses"] != 1:
        given["masses"] = abs(options["masses"] - 1)
    for option in ("delay", "noise", "duration"):
        if options[option]:
            given[option] = options[option]
    limit = _limit(model, options["limit"])
    if limit is not None:
        given["torque_limit"] = limit
    goal = np.array(list(scenario.target.values()))
    reach = np.where(model.prismatic, STEP[True], STEP[False])
    with output.bar("random steps", not as_json) as progress:
        table = robustness(
            law, np.where(goal == 0, reach, np.abs(goal)), progress=progress, **given
        )
    if as_json:
        output.print_json(control_report.robustness_data(scenario.name, table))
    else:
        control_report.print_robustness(scenario.name, table)
