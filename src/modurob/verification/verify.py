"""`verify`: all checks of the equations of one organism."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from modurob.checks import refuse_states
from modurob.errors import StateError
from modurob.organism import Organism
from modurob.verification import engines, identities, lagrange
from modurob.verification.check import (
    FAILED,
    LEFT_OUT,
    PASSED,
    Check,
    CheckCase,
    CheckValue,
    LeftOut,
    VerificationReport,
)

STATES = 8
MATRICES = 40  # (nv, nv) of a state at once: derivatives of two tiers, and what compares them
SLOWEST = 0.5  # [rad/s, m/s]: away from rest, where dry friction is too steep for differences

CHECKS: Mapping[str, Callable[[CheckCase], CheckValue]] = {
    "closed form = recursion": identities.closed_form_is_recursion,
    "compiled = reference": identities.tiers_agree,
    "M symmetric": identities.mass_matrix_is_symmetric,
    "M positive definite": identities.mass_matrix_is_positive,
    "dM/dt - 2 C skew": identities.rate_of_mass_matrix_is_skew,
    "forward undoes inverse": identities.forward_undoes_inverse,
    "energy rate = power": identities.energy_rate_is_power,
    "momentum conserved": identities.momentum_is_conserved,
    "derivatives = differences": identities.derivatives_are_slopes,
    "formulas = numbers": identities.formulas_are_numbers,
    "Pinocchio": partial(engines.compared, engines.Pinocchio, "Pinocchio, by URDF"),
    "MuJoCo": partial(engines.compared, engines.Mujoco, "MuJoCo, by MJCF"),
}


def verify(
    organism: Organism,
    hinges: str = "dyad",
    base: str | Sequence[str] = "fixed",
    locked: Mapping[str, float] | None = None,
    *,
    states: int = STATES,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> VerificationReport:
    """Check the equations of an organism in every available way.

    Two algorithms must give the same numbers, laws of mechanics must hold, and other engines must
    agree. Checks that cannot be made (an engine is not installed, formulas would be too long) are
    left out, with the reason.

    Args:
        organism: Whose equations.
        hinges, base, locked: See `Organism.model`.
        states: Number of random states of each check.
        seed: Of the random states.
        progress: Called with the name of each check before it starts.
    """
    if states < 1:
        raise StateError(f"states must be at least 1, got {states}")
    model = organism.model(hinges, base, locked=locked)
    assert model.options is not None
    if not model.nv:
        raise StateError("there is nothing to verify: the organism has no joint that moves")
    refuse_states("checks", states, MATRICES * model.nv**2)
    rng = np.random.default_rng(seed)
    q = np.stack([model.random_configuration(rng) for _ in range(states)])
    signs = rng.choice((-1.0, 1.0), size=(states, model.nv))
    v = signs * rng.uniform(SLOWEST, 2 * SLOWEST, size=(states, model.nv))
    a = rng.standard_normal((states, model.nv))
    case = CheckCase(organism, model.options, model, q, v, a, rng)
    found = []
    checks = dict(CHECKS)
    printed = lagrange.printed(organism, model)
    if printed is not None:
        checks["Lagrange"] = partial(lagrange.compared, printed)
    for name, check in checks.items():
        if progress is not None:
            progress(name)
        found.append(_made(name, check, case))
    where = base if isinstance(base, str) else ",".join(base)
    count = "1 random state" if states == 1 else f"{states} random states"
    title = f"{hinges} hinges, base {where}, nv = {model.nv}, {count}"
    return VerificationReport(title, tuple(found))


def _made(name: str, check: Callable[[CheckCase], CheckValue], case: CheckCase) -> Check:
    try:
        # a broken model divides by zero; its NaN fails the check
        with np.errstate(all="ignore"):
            finding = check(case)
    except LeftOut as reason:
        return Check(name, LEFT_OUT, str(reason))
    except (StateError, np.linalg.LinAlgError) as error:
        return Check(name, FAILED, f"it could not be computed: {error}")
    verdict = PASSED if finding.holds else FAILED
    relation = ">=" if finding.at_least else "<="
    return Check(name, verdict, finding.note, finding.found, relation, finding.limit)
