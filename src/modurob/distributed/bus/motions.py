"""Motions of a robot: gaits, and tables of places such as a CSV file."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from modurob.control.references import Quintic, Recorded, Spline, Steps
from modurob.errors import FileError, StateError, choices
from modurob.gaits import gait_class
from modurob.model import Model
from modurob.model.model import LARGEST_DISPLACEMENT
from modurob.modules.files import read_text
from modurob.reference import Reference

Function = Callable[[float], Reference]
CLOSE_S = 0.05  # between rows: the noise of a record is not a motion
KINDS = ("gait", "steps", "quintic", "spline", "csv")


def read(kind: str, path: str, model: Model) -> tuple[Function, float]:
    """Motion for the joints of a model, and its duration, of a file or a gait. [s]

    Args:
        path: Of the file, or name of a gait.
        kind: ``gait``; ``steps``; ``quintic``, at rest in each place; ``spline`` or ``csv``,
            through all. Of places less than 0.05 s apart, as in a record, these three take means.
    """
    if kind not in KINDS:
        raise StateError(f"follow takes {choices(KINDS)}, got '{kind}'")
    if kind == "gait":
        return gait_class(path).for_model(model), math.inf
    times, q = table(read_text(path), model, path)
    if kind != "steps":
        times, q = _thinned(times, q)
    return motion(kind, times, q), float(times[-1])


def table(text: str, model: Model, path: str) -> tuple[np.ndarray, np.ndarray]:
    """Times (k,) from zero on, and places (k, n), of the text of a file. [s], [rad, m]

    Rows are a time and a place of all joints from base to tip, in seconds, degrees and meters. A
    file with a heading is one of `Trajectory.to_csv`, in radians; its columns are found by name.
    """
    text = text.removeprefix("\ufeff")  # of spreadsheets
    try:
        rows = [row for row in csv.reader(text.splitlines()) if row]
    except csv.Error as error:
        raise FileError(f"{path}: not a table with commas: {error}") from None
    if rows and not _is_number(rows[0][0]):
        times, q = _named(path, rows, model)
    else:
        numbers = _numbers(path, rows)
        joints = model.joint_names
        if numbers.shape[1] != 1 + len(joints):
            raise FileError(
                f"{path}: each row is a time and {len(joints)} places ({choices(joints)})"
            )
        times, q = numbers[:, 0], numbers[:, 1:]
        q = np.where(model.prismatic, q, np.radians(q))
    if not (np.diff(times) > 0).all():
        raise FileError(f"{path}: times must increase from row to row")
    return times - times[0], q


def motion(kind: str, times: np.ndarray, q: np.ndarray) -> Function:
    """Motion through places (k, n) at times (k,)."""
    if kind == "steps":
        return Steps(times, q)
    if kind == "spline":
        return Spline(times, q)
    if kind == "csv":
        return Recorded(times, q, hold=True)
    legs = [
        Quintic(q0, q1, t1 - t0, begin=t0)
        for (t0, q0), (t1, q1) in pairwise(zip(times.tolist(), q, strict=True))
    ]
    return lambda t: legs[max(0, min(int(np.searchsorted(times, t)) - 1, len(legs) - 1))](t)


def _thinned(times: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of rows that are closer than `CLOSE_S`, so that a curve does not follow their noise.

    At both ends, lines through the rows there lead to the first and to the last time.
    """
    _, first = np.unique(np.round(times / CLOSE_S), return_index=True)
    if len(first) == 1:
        return times[[0, -1]], q[[0, -1]]
    rows = np.diff(first, append=len(times))
    middle = np.add.reduceat(times, first) / rows
    means = np.add.reduceat(q, first) / rows[:, None]
    for k, group in ((0, slice(0, rows[0])), (-1, slice(first[-1], None))):
        late = times[group] - middle[k]
        slope = late @ q[group] / (late @ late or 1.0)
        means[k] += slope * (times[k] - middle[k])
        middle[k] = times[k]
    return middle, means


def _named(path: str, rows: list[list[str]], model: Model) -> tuple[np.ndarray, np.ndarray]:
    heading = [name.partition(" [")[0] for name in rows[0]]
    wanted = ["time", *(f"q {joint}" for joint in model.joint_names)]
    if missing := [name for name in wanted if name not in heading]:
        raise FileError(f"{path}: no column '{missing[0]}': columns are {choices(heading)}")
    columns = [heading.index(name) for name in wanted]
    table = _numbers(path, [[row[k] for k in columns if k < len(row)] for row in rows[1:]])
    return table[:, 0], table[:, 1:]


def _numbers(path: str, rows: list[list[str]]) -> np.ndarray:
    try:
        table = np.array(rows, dtype=float)
    except ValueError:
        table = np.array(np.nan)
    if table.ndim != 2 or len(table) < 2 or not np.isfinite(table).all():
        raise FileError(f"{path}: at least two rows of as many finite numbers each are expected")
    if (largest := np.abs(table).max(initial=0.0)) > LARGEST_DISPLACEMENT:
        raise FileError(f"{path}: numbers up to {LARGEST_DISPLACEMENT:g}, got {largest:g}")
    return table


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
