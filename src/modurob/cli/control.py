"""``modurob control``: a closed loop and its robustness."""

from __future__ import annotations

import math
from typing import Any

import click
import numpy as np

from modurob import Model, Scenario, StateError
from modurob.checks import positive
from modurob.cli import control_report, organisms, output
from modurob.cli.executors import chosen_executor, executor_options
from modurob.cli.fields import LawChoice, field_options, option_of, take_fields
from modurob.cli.run import FILES, execute, run_options, scenario_of, take_run_options
from modurob.control import gains, law_class, robustness
from modurob.errors import choices
from modurob.executors import Executor
from modurob.gaits import GAITS
from modurob.scenario.settings import PATHS, POINTS, TIME
from modurob.stepping.base import MOST_STEPS

EXAMPLE = """\b
Examples:
  modurob control crab --settle 0.5 --plot crab.png
  modurob control crab --law computed-torque --settle 0.5 --noise 0.03 --ekf
  modurob control crab --to 30,-10,20 --masses 0.9 --delay 0.02 --torque-limit 3
  modurob control double_pendulum --hinges physical --law pole-placement --poles -2,-3,-5,-10
  modurob control crab --gains "k0=100 k1=20" --push "m3 force=0,0,5 begin=1"
  modurob control crane --hinges physical --law partial-linearization --passive m1.hinge
  modurob control crab --monte-carlo 10000 --jobs 4
"""
STEP = {False: math.radians(20.0), True: 0.1}  # [rad, m] to go, of turning and sliding joints
SHARES = (1.0, -0.75, 0.5)  # of it for one joint after the other: lines that lie apart
SETTLING_TIMES = 4.0  # of a run without a given duration
LONGEST_S = 60.0  # such a run
MOST_RUNS = 100_000
MOTION_FIELDS = (  # and gains: also of random steps
    "move_time", "points", "amplitude", "frequency", "ramp", "settling_time", "poles", "gains",
    "passive", "outputs", "yielding",
)  # fmt: skip


@organisms.body_command("control", EXAMPLE)
@click.option("--law", type=LawChoice(), default="computed-torque", show_default=True,
              help="Control law.")  # fmt: skip
@click.option("--move", type=click.Choice((*POINTS, *PATHS, *GAITS)), default="step",
              show_default=True, metavar="MOTION",
              help="step or quintic to the target; steps, spline or recorded through --points; "
              f"or a gait: {choices(GAITS)}.")  # fmt: skip
@field_options(target="20,-15,10", move_time="half of the run")
@field_options("points", "amplitude", "frequency", "ramp")
@click.option("--position-only", is_flag=True, help="Give the law the motion's positions only.")
@field_options(settling_time="1")
@field_options("gains", "poles", "torque_limit", "torque_delay", "passive", "outputs", "yielding",
               "masses", "payload", "pushes", "wrench_sensors", "ground", "slope",
               "ground_friction")  # fmt: skip
@click.option("--duration", type=float, help="Length of the run. [s]  [default: 4 settling times]")
@organisms.hinges_option
@organisms.lock_option
@click.option("--sample-time", type=float, default=0.002, show_default=True,
              help="Time between commands. [s]")  # fmt: skip
@click.option("--noise", type=float, default=0.0, metavar="SIGMA",
              help="Noise of measured positions and velocities. [rad, m; rad/s, m/s]")  # fmt: skip
@field_options("noise_tau")
@click.option("--ekf", "filtered", is_flag=True,
              help="Feed back a Kalman filter's estimate from measured positions.")  # fmt: skip
@field_options("ekf")
@click.option("--monte-carlo", "runs", type=click.IntRange(1, MOST_RUNS), metavar="RUNS",
              help="Random steps under wrong masses, delay, noise and limits.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0),
              help="Seed of noise and random steps.  [default: 0]")  # fmt: skip
@executor_options
@run_options
def command(
    name: str, runs: int | None, jobs: int | None, cluster: str | None, **options: Any
) -> None:
    """Simulate a closed loop and report its robustness.

    The joints move to a set point under conditions that the controller does not know.
    With --monte-carlo, each condition is tried alone, then all together; --masses, --delay,
    --noise and --torque-limit set their sizes, and --jobs or --cluster distribute the runs.
    """
    for option, given in (("--jobs", jobs), ("--cluster", cluster)):
        if runs is None and given is not None:
            raise StateError(f"{option} distributes the runs of --monte-carlo: give that as well")
    files = take_run_options(options)
    for key, option in FILES.items():
        if runs is not None and files[key] is not None:
            raise StateError(f"{option} shows one run: leave --monte-carlo out")
    title, organism, built = organisms.chosen(name, options["hinges"], locked=options.pop("locked"))
    model = organism.model(**built)
    if not model.joint_names:
        raise StateError(f"{title} has no joint that can move with --hinges {built['hinges']}")
    sample_time = positive("--sample-time", options.pop("sample_time"), "seconds")
    given = take_fields(options, model)
    _check_gains(options["law"], given)
    if {*(given["passive"] or ())} == {*model.joint_names}:
        raise StateError("--passive leaves no joint with a motor: name fewer joints")
    scenario = scenario_of(
        organism=organism,
        name=title,
        **built,
        controller=law_class(options["law"]).__name__,
        motion=options["move"],
        target=_target(model, options["move"], given.pop("target"), given["passive"] or ()),
        feedforward=False if options["position_only"] else None,
        sample_time=sample_time,
        integrator="RK4",
        record=sample_time,
        **{name: given.pop(name) for name in MOTION_FIELDS},
    )
    if runs is not None:
        with chosen_executor(jobs, cluster) as executor:
            _many(scenario, model, runs, files["as_json"], options, given, executor)
        return
    length = _duration(scenario, model, options["duration"])
    if length / sample_time > MOST_STEPS:
        raise StateError(
            f"--duration {length:g} s with --sample-time {sample_time:g} s are "
            f"{length / sample_time:.3g} samples; the most is {MOST_STEPS:g}"
        )
    noise = options["noise"] or None
    known = {name: getattr(scenario, name) for name in scenario.model_fields_set}
    conditions = scenario_of(
        **known,
        **given,
        duration=length,
        dt=min(sample_time, length),
        noise_q=noise,
        noise_v=noise,
        estimator="Ekf" if options["filtered"] else None,
        seed=options["seed"],
    )
    execute(conditions if scenario.motion in POINTS else conditions.on_motion(), files)


# -- what was typed --------------------------------------------------------------------------------


def _check_gains(law: str, given: dict[str, Any]) -> None:
    """Refuse a settling time or poles that the law does not take."""
    settle, poles, takes = given["settling_time"], given["poles"], law_class(law).parameters
    if settle is not None and "settling_time" not in takes:
        raise StateError(f"{law} takes no --settle: its gains are {', '.join(takes)}")
    if poles is not None and "poles" not in takes:
        raise StateError("--poles belong to --law pole-placement; others take --settle")
    if sum(given[name] is not None for name in ("settling_time", "poles", "gains")) > 1:
        raise StateError("give --poles, --gains or --settle, only one of them")


def _target(
    model: Model, motion: str, target: dict[str, float] | None, passive: tuple[str, ...]
) -> dict[str, float] | None:
    """Positions to go to, by joint; those without a motor stay by default. [rad, m]"""
    if target is None and motion in POINTS:
        reach = np.where(model.prismatic, STEP[True], STEP[False])
        reach = np.where(np.isin(model.joint_names, passive), 0.0, reach)
        goal = np.clip(reach * np.resize(SHARES, len(reach)), model.lower, model.upper)
        return dict(zip(model.joint_names, goal.tolist(), strict=True))
    if target is not None and not any(target.values()):
        raise StateError("--to is where the joints are already: at least one must move")
    return target


def _duration(scenario: Scenario, model: Model, given: float | None) -> float:
    if given is not None:
        return positive("--duration", given, "seconds")
    if scenario.points:
        return max(scenario.points[TIME])
    time = scenario.settling_time
    if scenario.poles:
        law: Any = scenario.law(model)
        pairs = zip(np.ravel(law.k0), np.ravel(law.k1), strict=True)
        time = max(gains.settling_time(*pair) for pair in pairs)
    return float(f"{min(LONGEST_S, SETTLING_TIMES * time):.3g}")


# -- many runs -------------------------------------------------------------------------------------


def _many(
    scenario: Scenario, model: Model, runs: int, as_json: bool, options: dict[str, Any],
    fields: dict[str, Any], executor: Executor,
) -> None:  # fmt: skip
    """Print the table of random steps."""
    wanted = {
        "--ekf": options["filtered"], "--move": scenario.motion != "step",
        **{option_of(name): fields[name] for name in (
            "payload", "pushes", "wrench_sensors", "ground", "ekf", "noise_tau",
        )},
    }  # fmt: skip
    for option in wanted:
        if wanted[option]:
            raise StateError(f"{option} is for one run: leave --monte-carlo out")
    law = scenario.law(model)
    assert law is not None
    given: dict[str, Any] = {"runs": runs, "rng": np.random.default_rng(options["seed"] or 0)}
    if fields["masses"] not in (None, 1):
        given["masses"] = abs(fields["masses"] - 1)
    conditions = {"delay": fields["torque_delay"], **options}
    for option in ("delay", "noise", "duration"):
        if conditions[option]:
            given[option] = conditions[option]
    if np.any(fields["torque_limit"] or 0):
        limit = np.broadcast_to(fields["torque_limit"], len(model.joint_names))
        given["torque_limit"] = np.where(limit == 0, np.inf, limit)
    goal = np.array(list(scenario.target.values()))
    reach = np.where(model.prismatic, STEP[True], STEP[False])
    with output.bar("random steps", not as_json) as progress:
        step = np.where(goal == 0, reach, np.abs(goal))
        table = robustness(law, step, progress=progress, executor=executor, **given)
    if as_json:
        output.print_json(control_report.robustness_data(scenario.name, table))
    else:
        control_report.print_robustness(scenario.name, table)
