"""Matrices of an organism as HTML; every cell names its module or joint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from modurob import Model, Organism
from modurob.verification.lagrange import LagrangeEquations

MOST_MODULES = 60  # of a matrix on the page; the exports have them all
MOST_ROWS = 200  # of a list
LARGEST_LABELED = 12  # rows of a matrix of buttons with their indices


def cell(
    text: object, *, module: str = "", joint: str = "", css: str = "", head: bool = False
) -> str:
    """One cell; names come from files and are escaped."""
    tag = "th" if head else "td"
    marks = "".join(
        f' {key}="{escape(value, quote=True)}"'
        for key, value in (("data-module", module), ("data-joint", joint), ("class", css))
        if value
    )
    return f"<{tag}{marks}>{escape(str(text))}</{tag}>"


def table(rows: Iterable[str], caption: str) -> str:
    """Rows below a caption for screen readers."""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        '<div class="wide" tabindex="0" role="region" '
        f'aria-label="{escape(caption, quote=True)}"><table class="table">'
        f'<caption class="sr-only">{escape(caption)}</caption>{body}</table></div>'
    )


def aim(organism: Organism) -> str:
    """The assembly incidence matrix with kinds and classes."""
    found, dockings = organism.aim(), organism.dockings
    head = [cell("", head=True)]
    head += [cell(f"e{k + 1}", module=e.child, head=True) for k, e in enumerate(dockings)]
    rows = ["".join([*head, cell("kind", head=True)])]
    for i, name in enumerate(organism.modules):
        cells = [cell(_row_name(i, name), module=name, head=True)]
        cells += [
            cell(side or "·", module=name, css="" if side else "zero") for side in found.matrix[i]
        ]
        rows.append("".join([*cells, cell(found.kinds[i], module=name)]))
    classes = [
        cell(text, module=entry.child) for text, entry in zip(found.classes, dockings, strict=True)
    ]
    rows.append("".join([cell("class", head=True), *classes, cell("")]))
    return table(rows, "Assembly incidence matrix")


def accessibility(organism: Organism) -> str:
    """The modules beyond each module."""
    matrix, names = organism.accessibility(), organism.modules
    rows = [
        cell("", head=True) + "".join(cell(i, module=n, head=True) for i, n in enumerate(names))
    ]
    for i, name in enumerate(names):
        cells = [
            cell(value or "·", module=names[j], css="" if value else "zero")
            for j, value in enumerate(matrix[i])
        ]
        rows.append(cell(_row_name(i, name), module=name, head=True) + "".join(cells))
    return table(rows, "Accessibility matrix")


def direct(organism: Organism) -> str:
    """DTL with the dyad classes."""
    heads = ("from", "to", "side", "side", "class")
    rows = ["".join(cell(text, head=True) for text in heads)]
    lines = zip(
        organism.direct_transforms().tolist(),
        organism.dyad_classes(),
        organism.dockings,
        strict=True,
    )
    for (i, j, a, b), name, entry in [*lines][:MOST_ROWS]:
        first, second = entry.parent, entry.child
        cells = [cell(i, module=first), cell(j, module=second), cell(a, module=first)]
        rows.append("".join([*cells, cell(b, module=second), cell(name, module=second)]))
    return table(rows, "Direct transforms (DTL)")


def indirect(organism: Organism) -> str:
    """IDTL: T_ij = T_ix T_xj."""
    names = organism.modules
    rows = ["".join(cell(text, head=True) for text in ("i", "j", "transform"))]
    for i, j, _, x, *_ in organism.indirect_transforms().tolist()[:MOST_ROWS]:
        text = f"T{i},{j} = T{i},{x} · T{x},{j}"
        rows.append(
            cell(i, module=names[i]) + cell(j, module=names[j]) + cell(text, module=names[x])
        )
    return table(rows, "Indirect transforms (IDTL)")


def joints(model: Model) -> str:
    """Active joints with limits, then locked ones with reasons."""
    heads = ("joint", "kind", "limits", "state")
    rows = ["".join(cell(text, head=True) for text in heads)]
    for k, name in enumerate(model.joint_names[:MOST_ROWS]):
        slides = bool(model.prismatic[k])
        limits = _limits(float(model.lower[k]), float(model.upper[k]), slides)
        texts = (name, "slides" if slides else "turns", limits, f"q{k + 1}")
        rows.append("".join(cell(t, joint=name, module=_owner(model, name)) for t in texts))
    for name, reason in [*model.locked.items()][:MOST_ROWS]:
        owner = _owner(model, name)
        first = cell(name, module=owner) + cell("locked", module=owner)
        why = cell(reason, module=owner, css="left").replace("<td", '<td colspan="2"', 1)
        rows.append(first + why)
    return table(rows, "Joints")


def denavit_hartenberg(organism: Organism) -> str:
    """The extended table, angles in degrees."""
    heads = ("joint", "a [m]", "α [°]", "d [m]", "θ [°]", "n [m]", "p [m]", "next")
    rows = ["".join(cell(text, head=True) for text in heads)]
    for row in organism.dh_table().rows[:MOST_ROWS]:
        numbers = (row.a, np.rad2deg(row.alpha), row.d, np.rad2deg(row.theta), row.n, row.p)
        texts = [f"{x + 0.0:.4g}" for x in np.round(numbers, 9)]
        shown = [row.joint, *texts, row.next]
        owner = row.joint.partition(".")[0]
        rows.append("".join(cell(text, joint=row.joint, module=owner) for text in shown))
    return table(rows, "Denavit-Hartenberg table")


def lagrange(model: Model, equations: LagrangeEquations, q: np.ndarray, v: np.ndarray) -> str:
    """Accelerations of the joints at a state, of the model and of Lagrange's equations."""
    heads = ("joint", "model", "Lagrange", "difference", "unit")
    rows = ["".join(cell(text, head=True) for text in heads)]
    ours, theirs = model.forward_dynamics(q, v, np.zeros(model.nv)), equations(q, v)
    units = ["m/s²" if slides else "rad/s²" for slides in model.prismatic.tolist()]
    for joint, a, b, unit in zip(model.joint_names, ours, theirs, units, strict=True):
        texts = (joint, f"{a:.9g}", f"{b:.9g}", f"{a - b:.1e}", unit)
        rows.append("".join(cell(text, joint=joint, module=_owner(model, joint)) for text in texts))
    return table(rows, "Accelerations of the joints")


def entries(matrix: str, values: np.ndarray, chosen: str) -> str:
    """A button for each entry of M, C or N, colored by its size; of large ones without its index.

    Args:
        values: (rows, columns) numbers that give the colors.
        chosen: The entry that is shown, such as ``M[1,2]``.
    """
    sizes = np.abs(values)
    shares = np.sqrt(sizes / max(float(sizes.max(initial=0.0)), np.finfo(float).tiny))
    small = len(values) > LARGEST_LABELED
    rows = []
    for i, row in enumerate(values, 1):
        cells = []
        for j, value in enumerate(row, 1):
            index = f"{i}" if matrix == "N" else f"{i},{j}"
            name = f"{matrix}[{index}]"
            css = "on" if name == chosen else "zero" if value == 0 else ""
            cells.append(
                f'<td><button type="button" data-entry="{name}" data-testid="entry-{name}" '
                f'class="{css}" title="{name} = {value:.4g}" aria-label="{name}" '
                f'style="--share: {100 * shares[i - 1, j - 1]:.0f}%">{"" if small else index}'
                "</button></td>"
            )
        rows.append(f"<tr>{''.join(cells)}</tr>")
    css = "entries small" if small else "entries"
    return (
        f'<div class="wide entry-grid" tabindex="0" role="region" aria-label="Entries of {matrix}">'
        f'<table class="{css}">{"".join(rows)}</table></div>'
    )


def symbols(found: Sequence[dict[str, object]]) -> str:
    """The symbols of an equation."""
    if not found:
        return ""
    rows = ["".join(cell(text, head=True) for text in ("symbol", "meaning", "unit", "value"))]
    for each in found[:MOST_ROWS]:
        value = each["value"]
        number = "" if value is None else f"{value:g}"
        texts = (each["name"], each["meaning"], each["unit"], number)
        rows.append("".join(cell(text, css="left") for text in texts))
    return table(rows, "Symbols")


def _owner(model: Model, joint: str) -> str:
    name = joint.partition(".")[0]
    return name if name in model.modules else ""


def _row_name(index: int, name: str) -> str:
    return f"v{index}" if name == f"m{index}" else f"v{index} {name}"


def _limits(low: float, high: float, slides: bool) -> str:
    if not (np.isfinite(low) or np.isfinite(high)):
        return "none"
    scale, unit = (1000.0, " mm") if slides else (180 / np.pi, "°")
    return " to ".join("∞" if not np.isfinite(x) else f"{scale * x:.4g}{unit}" for x in (low, high))
