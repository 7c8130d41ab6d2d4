"""Sections III-A, III-B and Tab. III: datasheets, Denavit-Hartenberg table, NEmod."""

from __future__ import annotations

from typing import Any

import numpy as np

from modurob import Organism, catalog, examples
from modurob.control import ComputedTorque, Reference
from modurob.drawing import picture
from modurob.drawing.charts import GRID
from modurob.manipulator import gravity_torque, mass_matrix, ne_mod
from modurob.modules.dh import PartMass, TwoPart, characterize
from modurob.organism.dh_table import DhRow, DhTable
from papers import figures
from papers.claims import Claims
from papers.giusti2015.setting import KD, KP, WORD, rounded

SEED, STATES = 2015, 20
TURNS = {0.0: "0", round(np.pi, 9): "π", round(-np.pi / 2, 9): "−π/2"}
HEADER = ("axis", "a [m]", "α [rad]", "d [m]", "θ [rad]", "n [m]", "p [m]", "axes")


def reproduce(claims: Claims) -> None:
    """What the modules say, and what follows for the arm."""
    claims.working_on("modules and Denavit-Hartenberg table")
    kinds = [catalog[f"giusti_{letter}"] for letter in "abc"]
    parameters = [characterize(kind) for kind in kinds]
    claims.check("types", [each.kind for each in parameters])
    claims.check("kinematics", rounded([_kinematics(each) for each in parameters]))
    claims.check("dynamics", rounded([_dynamics(each) for each in parameters]))
    arm = examples.arm(WORD)
    table = arm.dh_table()
    claims.check("table", rounded(table.parameters))
    _compare(claims, arm, table)
    picture(arm, claims.picture("fig_6_arm.png"), q=[0.4, 0.8, 0.6, 0.8, 0.1], size=900)
    _draw(claims, table)


def _kinematics(module: TwoPart) -> list[float]:
    """Tab. I: (a, alpha, p, n, delta) of both parts, delta_j."""
    return [*module.proximal, *module.distal, module.delta_j]


def _dynamics(module: TwoPart) -> list[float]:
    """Tab. II: center of mass, mass, diagonal of the inertia; of both parts; friction."""
    assert module.joint is not None
    return [
        *_numbers(module.proximal_mass),
        *_numbers(module.distal_mass),
        module.joint.viscous,
    ]


def _numbers(part: PartMass) -> list[float]:
    return [*part.center, part.mass, *np.diag(part.inertia)]


def _compare(claims: Claims, arm: Organism, table: DhTable) -> None:
    """The path of datasheets and table against the tree model, which uses neither."""
    model, rng = arm.model("physical"), np.random.default_rng(SEED)
    q = np.array([model.random_configuration(rng) for _ in range(STATES)])
    v, a = rng.standard_normal((2, STATES, model.nv))
    tip = model.forward_kinematics(q)[:, model.body_index("m4.distal")]
    tip = tip @ catalog["giusti_c"].port("out").pose
    claims.check("poses", np.abs(table.poses(q)[:, -1] - tip).max())
    sheets = [characterize(arm.kind(name)) for name in arm.modules]
    pairs: dict[str, tuple[Any, Any]] = {
        "mass": (mass_matrix(q, sheets), model.mass_matrix(q)),
        "gravity": (gravity_torque(q, sheets), model.gravity_torque(q)),
        "torques": (ne_mod(q, v, a, sheets), model.inverse_dynamics(q, v, a)),
    }
    for key, (theirs, ours) in pairs.items():
        claims.check(key, np.abs(theirs - ours).max())
    law = ComputedTorque(model, k0=KP, k1=KD)
    aim = Reference(*rng.standard_normal((3, model.nv)))
    off = []
    for x, rate in zip(q, v, strict=True):
        wanted = aim.a + KP * (aim.q - x) + KD * (aim.v - rate)
        off.append(ne_mod(x, rate, wanted, sheets) - law.command(0.0, x, rate, aim))
    claims.check("command", np.abs(off).max())


def _draw(claims: Claims, table: DhTable) -> None:
    """The table as a picture."""
    drawn, axes = figures.figure(1, size=(8.4, 2.5))
    plane = axes[0, 0]
    plane.axis("off")
    made = plane.table(
        [_cells(row) for row in table.rows], colLabels=HEADER, loc="center", cellLoc="center"
    )
    made.auto_set_font_size(False)
    made.set_fontsize(9.5)
    made.scale(1.0, 1.6)
    for (row, _), cell in made.get_celld().items():
        cell.set_edgecolor(GRID)
        cell.get_text().set_color(figures.INK)
        if row == 0:
            cell.set_facecolor(GRID)
            cell.get_text().set_fontweight("bold")
    figures.title(drawn, "Denavit-Hartenberg table of b-a-b-a-c, from the datasheets")
    figures.save(drawn, claims.picture("dh_table.png"))


def _cells(row: DhRow) -> list[str]:
    alpha, theta = (TURNS.get(round(x, 9), f"{x:.4g}") for x in (row.alpha, row.theta))
    d, where = f"{row.d:.4g}", f"{row.joint} → {row.next}".replace(".joint", "")
    if row.kind == "prismatic":
        d += " + q"
    else:
        theta = "q" if theta == "0" else f"{theta} + q"
    return [where, f"{row.a:.4g}", alpha, d, theta, f"{row.n:.4g}", f"{row.p:.4g}", row.case]
