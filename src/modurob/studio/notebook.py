"""Values as the cell of a notebook shows them: pictures, plots, tables and formulas."""

from __future__ import annotations

import base64
from functools import singledispatch
from html import escape
from typing import Any

from modurob import Equations, Model, ModurobError, Organism, Trajectory
from modurob.drawing import charts, picture
from modurob.studio import tables

PICTURE_PX, PICTURE_DPI = 560, 100
MOST_MODULES = 200  # of a picture that is drawn without being asked for
LONGEST_FORMULAS = 60_000  # characters
FORMULA_MARGIN = "0.5em 0"  # or the dots of one line touch the line above


def bundle(value: Any) -> dict[str, str]:
    """Answer of `_repr_mimebundle_`: the text, and the best form there is."""
    try:
        rich = _rich(value)
    except ModurobError:  # no shapes to draw, or too large to write down: the text says enough
        rich = {}
    return {"text/plain": repr(value), **rich}


@singledispatch
def _rich(value: Any) -> dict[str, str]:
    raise TypeError(f"no form of a notebook for {type(value).__name__}")


@_rich.register
def _(value: Organism) -> dict[str, str]:
    if len(value) > MOST_MODULES:
        return {}
    return _image(picture(value, size=PICTURE_PX))


@_rich.register
def _(value: Model) -> dict[str, str]:
    return {"text/html": f"<p>{escape(repr(value).strip('<>'))}</p>{tables.joints(value)}"}


@_rich.register
def _(value: Equations) -> dict[str, str]:
    formulas = value.mathml()
    if len(formulas) > LONGEST_FORMULAS:
        return {}
    return {"text/html": formulas.replace("<math ", f'<math style="margin:{FORMULA_MARGIN}" ')}


@_rich.register
def _(value: Trajectory) -> dict[str, str]:
    return _image(value.plot("q", "tau"))


def _image(figure: Any) -> dict[str, str]:
    return {"image/png": base64.b64encode(charts.rendered(figure, dpi=PICTURE_DPI)).decode()}
