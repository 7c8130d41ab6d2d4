"""The files of a run: everything for later, and what the browser draws."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from modurob import Trajectory
from modurob.modules.files import write_file, writing
from modurob.studio import looks, signals


class Mark(NamedTuple):
    """Something on the timeline. [s]"""

    time: float
    what: str


def write(
    folder: Path, number: int, trajectory: Trajectory, reference: Any, marks: Sequence[Mark]
) -> None:
    """``N.npz`` (everything), ``N.bin`` (poses) and ``N.json`` (bodies, plots, colors).

    Args:
        reference: What the joints should have followed; None for nothing.
        marks: What happened on the way.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    stem = folder / str(number)
    trajectory.save(stem.with_suffix(".npz"))
    write_file(stem.with_suffix(".bin"), trajectory.to_bytes())
    write_file(stem.with_suffix(".json"), _browser_data(trajectory, reference, marks))


def _browser_data(trajectory: Trajectory, reference: Any, marks: Sequence[Mark]) -> bytes:
    casts = []
    for part in trajectory.parts:
        assert part.organism is not None
        casts.append(looks.cast(part.organism, part.model))
    data = {
        "casts": casts,
        "panels": signals.panels(trajectory, reference),
        "mass": signals.center_of_mass(trajectory),
        "tints": signals.tints(trajectory),
        "events": [mark._asdict() for mark in marks],
    }
    return json.dumps(_finite(data), allow_nan=False, separators=(",", ":")).encode()


def _finite(value: Any) -> Any:
    """Numbers that JSON has; what is not finite becomes a gap in a line."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
