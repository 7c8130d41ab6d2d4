"""Scenarios: what to run, as one checked value, for scripts, the command line and the studio."""

from modurob.scenario.bodies import EXAMPLES, ExampleBody, example
from modurob.scenario.scenario import Mark, RunResult, Scenario, model_of, model_options
from modurob.scenario.settings import EventRecord, FrozenRecord, RunSettings

__all__ = [
    "EXAMPLES",
    "EventRecord",
    "ExampleBody",
    "FrozenRecord",
    "Mark",
    "RunResult",
    "RunSettings",
    "Scenario",
    "example",
    "model_of",
    "model_options",
]
