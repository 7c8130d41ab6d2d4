"""Every figure and claim of meister2012 that can be computed.

Run it with ``python -m papers.meister2012.reproduce``, or with ``modurob papers``.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from modurob import Organism, catalog, examples
from modurob.drawing import picture
from modurob.spatial import se3, so3
from papers import lagrange, lists
from papers.claims import Claims, main
from papers.gutenkunst2012 import structure, verification
from papers.meister2012 import stroboscope

SEED, STATES = 2012, 10
SIDES = (2, 3, 4, 5)


def reproduce(claims: Claims) -> None:
    """Section by section."""
    claims.working_on("twists and rotations")
    _geometry(claims)
    claims.working_on("modules and matrices")
    _modules(claims)
    _organism(claims)
    structure.kinematics(claims, "kinematics")
    structure.closed_forms(claims, "closed_form", "recursion")
    claims.working_on("formulas and numbers")
    _two_ways(claims)
    _benchmarks(claims)


def _geometry(claims: Claims) -> None:
    """Section II, with the errata put right; SciPy's matrix exponential is the series (6)."""
    rng = np.random.default_rng(SEED)
    x, y, z = rng.standard_normal((3, 6))

    def bracket(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return se3.ad(a) @ b

    jacobi = bracket(x, bracket(y, z)) + bracket(z, bracket(x, y)) + bracket(y, bracket(z, x))
    claims.check("brackets", max(np.abs(jacobi).max(), np.abs(bracket(x, y) + bracket(y, x)).max()))
    w, q = x[3:] / np.linalg.norm(x[3:]), 2.3
    rodrigues = np.eye(3) + np.sin(q) * so3.hat(w) + (1 - np.cos(q)) * so3.hat(w) @ so3.hat(w)
    series = lists.exp(np.concatenate([np.zeros(3), w]), q)[:3, :3]
    errors = np.abs(rodrigues - series).max(), np.abs(so3.exp(w * q) - series).max()
    claims.check("rodrigues", max(errors))
    T, twist = se3.exp(y), _twist_matrix(z)
    moved = _twist_matrix(se3.Ad(T) @ z) - T @ twist @ np.linalg.inv(T)
    commuted = _twist_matrix(bracket(x, z)) - (_twist_matrix(x) @ twist - twist @ _twist_matrix(x))
    claims.check("adjoint", max(np.abs(moved).max(), np.abs(commuted).max()))
    power = x @ (se3.Ad(T) @ z) - se3.transform_wrench(T, x) @ z
    claims.check("power", abs(power))


def _twist_matrix(V: np.ndarray) -> np.ndarray:
    """(2): a twist as an element of se(3)."""
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = lists.hat(V[3:]), V[:3]
    return matrix


def _modules(claims: Claims) -> None:
    """Tables I and II."""
    docks = {name: _docks(name) for name in ("chen_link", "backbone", "scout")}
    claims.check("ports", docks)
    limits = {
        name: [round(np.degrees(joint.upper)) for joint in catalog[name].joints]
        for name in ("chen_revolute", "backbone", "scout")
    }
    claims.check("freedoms", limits)
    found: dict[str, list[str]] = {"DS": [], "DP": [], "DO": []}
    for a, b in product(SIDES, SIDES):
        (name,) = Organism.start("scout").dock("m0", a, "m1", b).dyad_classes()
        found[name].append(f"{a}{b}")
    claims.check("dyads", found)


def _docks(name: str) -> int:
    """Ports for other modules; the seventh port of a cube is for virtual joints."""
    return sum(port.label != 7 for port in catalog[name].ports)


def _organism(claims: Claims) -> None:
    """Figures 4 and 5, Table III."""
    organism = examples.nine()
    picture(organism, claims.picture("fig_4_organism.png"), size=900)
    structure.draw_matrices(organism, claims, "fig_5_matrices.png")
    aim = organism.aim()
    claims.check("aim", aim.matrix)
    claims.check("classes", list(aim.classes))
    claims.check("kinds", list(aim.kinds))
    claims.check("direct", organism.direct_transforms())
    claims.check("indirect", organism.indirect_transforms())
    reach = organism.accessibility()
    tips = [j for j in range(len(organism)) if not reach[j].any()]
    paths = [[i for i in range(len(organism)) if reach[i, j] or i == j] for j in tips]
    claims.check("paths", paths)


def _two_ways(claims: Claims) -> None:
    """Formulas, evaluated, are the numbers of the compiled model."""
    rng, errors = np.random.default_rng(SEED), []
    for organism, hinges in ((examples.nine(), "dyad"), (examples.snake(4), "physical")):
        equations = organism.equations(hinges)
        model = equations.model
        q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
        M, C, N = equations.evaluate(q, v)
        rest = np.zeros(model.nv)
        errors.append(np.abs(M - model.mass_matrix(q)).max())
        errors.append(np.abs(C @ v + N - model.inverse_dynamics(q, v, rest)).max())
    claims.check("two_ways", max(errors))


def _benchmarks(claims: Claims) -> None:
    """Figures 7 and 8. The paper gives no numbers; these are those of gutenkunst2012."""
    claims.working_on("double pendulum")
    found = lagrange.pendulum(1.0, 1.0, (np.pi / 2, np.pi / 2), 10.0)
    claims.check("pendulum", found.deviations)
    path = claims.picture("fig_7a_double_pendulum.png")
    verification.draw_pendulum(path, found, "Double pendulum, 1 m, from 90° and 90°")
    claims.working_on("crane")
    swung = lagrange.crane(1.0, 1.0, 5.0, np.pi / 4, 20.0)
    claims.check("crane", swung.deviations)
    verification.draw_crane(claims.picture("fig_7b_crane.png"), swung)
    stroboscope.draw(claims.picture("fig_8_benchmarks.png"), found.trajectory, swung.trajectory)


if __name__ == "__main__":
    main("meister2012", reproduce)
