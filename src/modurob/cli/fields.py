"""Options for the fields of a run, made from the table that the studio's forms show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import numpy as np

from modurob import Model, StateError, Trajectory, UnknownNameError
from modurob.control.laws import law_class, law_keys
from modurob.modules.files import read_text
from modurob.scenario import fields
from modurob.scenario.fields import FIELDS, RunField
from modurob.scenario.settings import TIME, RunSettings


class LawChoice(click.ParamType):
    """A control law by its key or the name of its class; the value is the key."""

    name = "law"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """List the laws in the help text."""
        return f"[{'|'.join(law_keys())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the key of a law as typed."""
        try:
            return law_class(value).key
        except UnknownNameError as error:
            self.fail(str(error), param, ctx)


def option_of(field: str) -> str:
    """The option of a field."""
    known = FIELDS.get(field)
    return f"--{(known and known.option) or field.replace('_', '-')}"


def field_options(*names: str, **defaults: str) -> Callable[..., Any]:
    """Options of some fields, with the words for their defaults where there are any."""

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        for name in reversed((*names, *defaults)):
            field = FIELDS[name]
            note = f"  [default: {defaults[name]}]" if name in defaults else ""
            function = click.option(
                option_of(name), name, help=field.help + note, **_kind(name, field),
            )(function)  # fmt: skip
        return function

    return decorated


def _kind(name: str, field: RunField) -> dict[str, Any]:
    """Type of an option: a switch, one of some, a number, or text."""
    if RunSettings.model_fields[name].annotation is bool:
        return {"is_flag": True, "default": None}
    text = click.Choice(field.choices) if field.choices else None if field.read else float
    return {"type": text, "metavar": field.metavar or None, "multiple": name == "pushes"}


def take_fields(options: dict[str, Any], model: Model) -> dict[str, Any]:
    """Take the fields out of all options, as values of a scenario; None for those not given."""
    found: dict[str, Any] = {}
    for name in FIELDS.keys() & options.keys():
        value, read = options.pop(name), FIELDS[name].read
        if name == "pushes":
            value = [fields.push("--push", text, model) for text in value] or None
        elif name == "points" and value is not None:
            value = _points(value, model)
        elif read is not None and isinstance(value, str):
            value = read(option_of(name), value, model)
        found[name] = value
    return found


def _points(path: str, model: Model) -> dict[str, tuple[float, ...]]:
    """Times and places of a table, or of a run that was saved. [s], [rad, m]"""
    if not path.endswith(".npz"):
        return fields.point_table(path, read_text(path), model)
    run = Trajectory.load(path)
    if run.model.joint_names != model.joint_names:
        theirs = " ".join(run.model.joint_names)
        raise StateError(f"{path}: the run has other joints than the model: {theirs}")
    columns = np.column_stack([run.t - run.t[0], run.q[:, run.model.joint_slice_q]]).T
    return dict(zip((TIME, *model.joint_names), map(tuple, columns.tolist()), strict=True))
