"""Runs of a project beside each other: the settings that tell them apart, and two in numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from modurob import StateError
from modurob.control import CONTROLLERS
from modurob.modules.files import read_text
from modurob.scenario.fields import FIELDS
from modurob.scenario.settings import RunRecord, RunSettings
from modurob.studio import tables

MOST_TAGS = 4  # shown of a run
LONGEST = 32  # characters of a value
USUAL = {
    "controller": {name: law.name for name, law in CONTROLLERS.items()},
    "estimator": {"Ekf": "EKF"},
}
ORDERS: Mapping[str, tuple[str, Callable[[RunRecord], Any]]] = {
    "latest": ("latest first", lambda run: -run.number),
    "title": ("by name", lambda run: (run.title.lower(), run.number)),
    "seconds": ("longest first", lambda run: (-run.seconds, run.number)),
}


def differing(runs: Sequence[RunRecord]) -> list[str]:
    """The settings that are not the same in all of these runs."""
    return [
        name
        for name in RunSettings.model_fields
        if any(getattr(run.settings, name) != getattr(runs[0].settings, name) for run in runs)
    ]


def tags(runs: Sequence[RunRecord]) -> dict[int, str]:
    """By number: the settings that tell a run from the others, in words."""
    names = differing(runs)
    return {run.number: _tag(run.settings, names) for run in runs}


def _tag(settings: RunSettings, names: list[str]) -> str:
    more = f" and {len(names) - MOST_TAGS} more" if len(names) > MOST_TAGS else ""
    pieces = [f"{word(name)} {setting(settings, name)}" for name in names[:MOST_TAGS]]
    return ", ".join(pieces) + more


def word(name: str) -> str:
    """A field of the settings, for people."""
    label = FIELDS[name].label.split(" [")[0] if name in FIELDS else name.replace("_", " ")
    return label.split(",")[0].split(" (")[0].lower()


def setting(settings: RunSettings, name: str) -> str:
    """The value of a setting in a few characters; laws and filters by their usual names."""
    value = getattr(settings, name)
    return shown(USUAL.get(name, {}).get(value, value) if isinstance(value, str) else value)


def shown(value: Any) -> str:
    """A value of the settings in a few characters."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        value = " ".join(f"{name}={shown(x)}" for name, x in value.items())
    elif isinstance(value, list | tuple):
        value = ", ".join(map(shown, value)) if all(map(_is_plain, value)) else f"{len(value)} set"
    text = "none" if value in (None, "") else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _is_plain(value: Any) -> bool:
    return isinstance(value, float | int | str)


def comparison(folder: Path, one: RunRecord, other: RunRecord) -> str:
    """A table of two runs: their settings that differ, then the peaks of what is plotted.

    Args:
        folder: Of the runs' files.
    """
    head = ("", f"run {one.number}", f"run {other.number}", "difference")
    rows = ["".join(tables.cell(text, head=True) for text in head)]
    for name in differing([one, other]):
        values = getattr(one.settings, name), getattr(other.settings, name)
        words = setting(one.settings, name), setting(other.settings, name)
        rows.append(_row(word(name), *values, words=words))
    rows += [_row("simulated [s]", one.seconds, other.seconds)]
    rows += [_row("computed in [s]", one.took, other.took)]
    first, second = _panels(folder, one), _panels(folder, other)
    for key, panel in first.items():
        if key in second:
            name = f"{panel['title'].split(':')[0]}, largest [{panel['unit']}]"
            apart = _apart(panel, second[key])
            rows.append(_row(name, _largest(panel), _largest(second[key]), apart))
    return tables.table(rows, f"Run {one.number} and run {other.number}")


def _row(
    name: str, one: Any, other: Any, apart: str = "", words: tuple[str, str] | None = None
) -> str:
    if not apart and isinstance(one, float) and isinstance(other, float):
        apart = f"{other - one:+.3g}" if other != one else "0"
    cells = [tables.cell(text) for text in words or (shown(one), shown(other))]
    return "".join([tables.cell(name, css="left", head=True), *cells, tables.cell(apart)])


def _panels(folder: Path, run: RunRecord) -> dict[str, Any]:
    path = folder / f"{run.number}.json"
    if not path.is_file():
        raise StateError(f"the files of run {run.number} are gone; run it again")
    return {panel["key"]: panel for panel in json.loads(read_text(path))["panels"]}


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _largest(panel: dict[str, Any]) -> float:
    """Largest absolute value of the solid lines of a plot."""
    lines = [_numbers(line["y"]) for line in panel["lines"] if not line.get("dashed")]
    found = np.concatenate([np.zeros(1), *lines])
    return float(np.nanmax(np.abs(found)))


def _apart(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Largest difference of lines with the same name, at the times that both have."""
    others = {line["name"]: line for line in other["lines"] if not line.get("dashed")}
    most = None
    for line in one["lines"]:
        twin = others.get(line["name"])
        if twin is None or line.get("dashed"):
            continue
        t, s = _numbers(line["t"]), _numbers(twin["t"])
        both = t <= s[-1]
        away = np.abs(_numbers(line["y"]) - np.interp(t, s, _numbers(twin["y"])))[both]
        if away.size and not np.isnan(away).all():
            most = max(most or 0.0, float(np.nanmax(away)))
    return "other lines" if most is None else f"at most {most:.3g}"
