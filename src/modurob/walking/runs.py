"""`walk`: a gait on the ground, as a scenario, and its measures."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from modurob.errors import ModelWarning, StateError
from modurob.organism import Organism
from modurob.scenario.gait_files import gait_fields
from modurob.scenario.scenario import RunResult, Scenario
from modurob.scenario.settings import WALKING, RunSettings
from modurob.sim import Ground, Trajectory
from modurob.walking.metrics import WalkMetrics, walk_metrics

DURATION_S, RECORD_S = 10.0, 0.01  # where nothing else is given
OF_LAW = {"motion", "controller", "poles", "gains"}
ICE = "the ground has no friction: nothing can push itself along"


class Walk(NamedTuple):
    """Result of `walk`.

    Attributes:
        trajectory: States, torques and contact forces.
        metrics: Distance, speed, cost of transport and so on.
        ground: That it walked on.
        note: How the start was changed, such as a body that was lifted; empty if it was not.
        scenario: The run as one value, to be saved or changed.
    """

    trajectory: Trajectory
    metrics: WalkMetrics
    ground: Ground
    note: str
    scenario: Scenario


def walk(
    organism: Organism,
    gait: str | os.PathLike[str] = "wave",
    parameters: Mapping[str, Any] | None = None,
    *,
    progress: Any = False,
    **fields: Any,
) -> Walk:
    """Simulate a gait on the ground and measure it.

    Args:
        organism: The body; its base is free.
        gait: Name of a kind of gait, or a file of a gait such as one that tuning wrote.
        parameters: Of the gait, by name: lag, phase, offset, one number for all joints or numbers
            by joint; units as in `modurob.gaits`.
        progress: True for a bar on standard error, or a function of the fraction done.
        fields: Of `Scenario`, in place of those in `WALKING` (`modurob.scenario.settings`) or
            beside them: duration, ground_friction, slope, hinges, amplitude, frequency and so on.

    Raises:
        UnknownNameError: There is no such gait.
        StateError: The body has no joint that can move, or a field is wrong.
    """
    given = walking_fields(gait, parameters, **fields)
    scenario = started(Scenario(organism=organism, **given))
    return measured(scenario, scenario.run(progress=progress))


def walking_fields(
    gait: str | os.PathLike[str] = "wave",
    parameters: Mapping[str, Any] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Fields of a scenario for a gait on the ground; arguments as for `walk`."""
    own = {**WALKING, "duration": DURATION_S, "record": RECORD_S, **gait_fields(gait)}
    if not isinstance(parameters, Mapping | None):
        raise StateError(f"parameters of a gait are numbers by name, got {parameters!r}")
    all_fields = {**own, "gait": {**own.get("gait", {}), **(parameters or {})}, **fields}
    # what a law does not use, as a settling time beside gains, is refused only if it was asked for
    law = RunSettings(**{name: all_fields[name] for name in OF_LAW & all_fields.keys()})
    replaced = law.without_effect().keys() & WALKING.keys() - fields.keys()
    return {name: x for name, x in all_fields.items() if name not in replaced}


def started(scenario: Scenario) -> Scenario:
    """The same walk, started on its gait; an error if the body cannot walk."""
    if not scenario.ground or scenario.base != "free":
        raise StateError("a body walks with a free base on ground: leave base and ground out")
    if scenario.events:
        raise StateError("a walk is that of one body: leave events out, or use Scenario.run")
    if not scenario.model().joint_names:
        raise StateError(
            "this body has no joint that can move, so it cannot walk: choose other hinges, or see "
            "the reasons in model.locked"
        )
    if not scenario.ground_friction:
        warnings.warn(ICE, ModelWarning, stacklevel=3)
    return scenario.on_motion()


def measured(scenario: Scenario, result: RunResult) -> Walk:
    """A run of a scenario on the ground, with its measures."""
    run, ground = result.trajectory, result.ground
    assert ground is not None
    return Walk(run, walk_metrics(run, ground), ground, result.note, scenario)
