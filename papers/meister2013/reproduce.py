"""The crab of meister2013: its matrices, its motion in three engines, control and estimation.

The document compared the crab with SimMechanics; here Pinocchio and MuJoCo, which read what modurob
writes for them, take its place.

Run it with ``python -m papers.meister2013.reproduce``, or with ``modurob papers``.
"""

from __future__ import annotations

import numpy as np

from modurob import Organism, examples
from modurob.drawing import picture
from modurob.verification.check import LeftOut
from papers import lists
from papers.claims import Claims, main
from papers.gutenkunst2012.structure import draw_matrices
from papers.meister2013 import chaos, control, engines, estimation

SEED, STATES = 2013, 10


def reproduce(claims: Claims) -> None:
    """Section by section."""
    claims.working_on("the crab's matrices")
    organism = examples.crab()
    picture(organism, claims.picture("fig_9_crab.png"), size=900)
    _matrices(claims, organism)
    for key, hinges in (("path", "physical"), ("dyads_path", "dyad")):
        claims.working_on(f"the crab in three engines, {hinges} hinges")
        try:
            engines.reproduce(claims, organism, hinges, key)
        except LeftOut as reason:
            for name in engines.claims_of(key):
                claims.leave_out(name, f"an engine is {reason}")
    claims.working_on("two crabs that start 1e-10 apart")
    chaos.draw(claims.picture("chaos.png"), organism)
    claims.working_on("computed torque")
    control.reproduce(claims, organism.model())
    claims.working_on("extended Kalman filter")
    estimation.reproduce(claims, organism.model())


def _matrices(claims: Claims, organism: Organism) -> None:
    draw_matrices(organism, claims, "fig_5_matrices.png")
    claims.check("direct", organism.direct_transforms())
    claims.check("indirect", organism.indirect_transforms())
    claims.check("aim", organism.aim().matrix)
    claims.check("classes", organism.dyad_classes())
    model, rng = organism.model(), np.random.default_rng(SEED)
    claims.check("locked", sorted(model.locked))
    claims.check("active", model.nv)
    errors = []
    for _ in range(STATES):
        q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
        theirs = lists.closed_form(organism, model, q, v)
        pairs = zip(model.closed_form(q, v), theirs, strict=True)
        errors += [np.abs(x - y).max() for x, y in pairs]
    claims.check("closed_form", max(errors))


if __name__ == "__main__":
    main("meister2013", reproduce)
