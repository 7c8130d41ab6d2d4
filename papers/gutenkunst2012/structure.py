"""Chapters 2 and 3: sides, matrices and lists of an organism, and its closed form."""

from __future__ import annotations

import numpy as np

from modurob import Organism, catalog, examples
from modurob.drawing import picture
from modurob.spatial import inertia, se3
from papers import figures, lists
from papers.claims import Claims

SEED, STATES = 2012, 10
SIDES = (2, 3, 4, 5)


def reproduce(claims: Claims) -> None:
    """From the module to the equations of motion."""
    claims.working_on("structure of the tree robot")
    _modules(claims)
    _rotations(claims)
    organism = examples.nine()
    claims.check("aim", organism.aim().matrix)
    claims.check("accessibility", organism.accessibility())
    claims.check("direct", organism.direct_transforms())
    claims.check("indirect", organism.indirect_transforms())
    picture(organism, claims.picture("fig_3_1_tree.png"), size=900)
    draw_matrices(organism, claims, "fig_3_2_matrices.png")
    kinematics(claims, "kinematics")
    closed_forms(claims, "closed_form", "recursion")


def _modules(claims: Claims) -> None:
    kinds = {name: catalog[name].joints[0] for name in ("backbone", "scout")}
    claims.check("bend", {k: round(np.degrees(j.upper - j.lower)) for k, j in kinds.items()})
    rng = np.random.default_rng(SEED)
    T = se3.exp(rng.standard_normal(6))
    V = rng.standard_normal(6)
    error = se3.Ad(T) @ se3.ad(V) - se3.ad(se3.Ad(T) @ V) @ se3.Ad(T)
    claims.check("adjoint", np.abs(error).max())
    mass, center, J = 1.7, rng.standard_normal(3), np.diag([0.3, 0.4, 0.5])
    at_center = inertia.spatial_inertia(mass, np.zeros(3), J)
    T_center = np.eye(4)
    T_center[:3, 3] = -center  # pose of the frame, seen from the center of mass
    moved = lists.Ad(T_center).T @ at_center @ lists.Ad(T_center)
    error = inertia.spatial_inertia(mass, center, J) - moved
    claims.check("inertia", np.abs(error).max())


def _rotations(claims: Claims) -> None:
    """How modurob turns a module when it docks."""
    found = {}
    for a in SIDES:
        for b in SIDES:
            organism = Organism.start("backbone").dock("m0", a, "m1", b)
            model = organism.model()
            R = model.forward_kinematics(model.neutral())[model.body_index("m1")][:2, :2]
            found[f"{a}{b}"] = round(np.degrees(np.arctan2(R[1, 0], R[0, 0]))) % 360
    claims.check("rotations", found)


def kinematics(claims: Claims, key: str) -> None:
    """Products of exponentials by the two lists against forward kinematics."""
    organism, rng = examples.nine(), np.random.default_rng(SEED)
    model = organism.model()
    q = model.random_configuration(rng)
    angles = dict(zip(lists.joints_of(model), q.tolist(), strict=True))
    T = lists.transforms(organism, angles, organism.kind("m0").size)
    poses = model.forward_kinematics(q)
    errors = [poses[model.body_index(f"m{j}")] - T[0, j] for j in range(1, len(organism))]
    claims.check(key, np.abs(errors).max())


def closed_forms(claims: Claims, printed: str, recursion: str) -> None:
    """The printed stacked matrices, modurob's closed form and its recursion."""
    rng, by_lists, by_recursion = np.random.default_rng(SEED), [], []
    for organism in (examples.nine(), examples.snake(6)):  # a tree, and one with a lively C
        model = organism.model()
        for _ in range(STATES):
            q = model.random_configuration(rng)
            v, a = rng.standard_normal((2, model.nv))
            ours, theirs = model.closed_form(q, v), lists.closed_form(organism, model, q, v)
            by_lists += [np.abs(x - y).max() for x, y in zip(ours, theirs, strict=True)]
            tau = theirs.M @ a + theirs.C @ v + theirs.N
            by_recursion.append(np.abs(model.inverse_dynamics(q, v, a) - tau).max())
    claims.check(printed, max(by_lists))
    claims.check(recursion, max(by_recursion))


def draw_matrices(organism: Organism, claims: Claims, name: str) -> None:
    """AIM with kinds and classes, and the accessibility matrix."""
    aim, n = organism.aim(), len(organism)
    drawn, axes = figures.figure(1, 2, size=(10.0, 5.0))
    rows = [f"v{i} {kind}" for i, kind in enumerate(aim.kinds)]
    columns = [f"e{k + 1}\n{word}" for k, word in enumerate(aim.classes)]
    figures.matrix(axes[0, 0], aim.matrix, "assembly incidence matrix", rows, columns)
    numbers = [str(i) for i in range(n)]
    figures.matrix(axes[0, 1], organism.accessibility(), "accessibility", numbers, numbers)
    figures.save(drawn, claims.picture(name))
