"""Memory: refused before it is asked for, and little more than the results."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import modurob as mr
from modurob.checks import LARGEST_BYTES, refuse_over
from modurob.errors import SizeError


def test_too_large_a_request_names_what_how_much_and_what_to_do() -> None:
    with pytest.raises(SizeError) as caught:
        refuse_over("recording 10^9 states", 80e9, "record less often")
    for part in ("recording 10^9 states", "80 GB", "8 GB", "record less often"):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_fits_is_not_refused() -> None:
    refuse_over("a result", LARGEST_BYTES, "ask for less")


MEMORY_OF_A_LARGE_BATCH = """
import resource
import numpy as np
import modurob as mr

model = mr.examples.superbot_tree(rng=np.random.default_rng(0)).model(hinges="physical")
q, v = np.zeros((600, model.nv)), np.ones((600, model.nv))
model.closed_form(q[:1], v[:1]); model.coriolis_matrix(q[:1], v[:1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model.closed_form(q, v); model.coriolis_matrix(q, v)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_matrices_of_sixty_joints_need_little_more_than_themselves() -> None:
    """Two (600, 60, 60) results are 35 MB; with n^3 numbers a state it was 3.7 GB."""
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", MEMORY_OF_A_LARGE_BATCH], capture_output=True, text=True, check=True
    )
    results = 2 * 600 * 60 * 60 * 8
    assert int(done.stdout) < results + 128_000_000


@pytest.mark.parametrize(
    ("name", "arrays"),
    [
        ("mass_matrix", 1),
        ("inverse_dynamics", 3),
        ("inverse_dynamics_derivatives", 3),
        ("forward_dynamics_derivatives", 3),
        ("coriolis_matrix", 2),
        ("closed_form", 2),
        ("forward_kinematics", 1),
        ("center_of_mass", 1),
    ],
)
def test_results_that_cannot_fit_are_refused(monkeypatch, name, arrays) -> None:
    model = mr.examples.crab().model(hinges="physical")
    states = np.zeros((10, 100, model.nv))
    getattr(model, name)(*[states] * arrays)
    monkeypatch.setattr("modurob.checks.LARGEST_BYTES", 10_000)
    with pytest.raises(SizeError, match=r"1000 states would need .* GB .*fewer states"):
        getattr(model, name)(*[states] * arrays)


def test_a_million_states_of_sixty_joints_are_refused() -> None:
    model = mr.examples.superbot_tree(rng=np.random.default_rng(0)).model(hinges="physical")
    many = np.broadcast_to(np.zeros(model.nv), (1000, 1000, model.nv))  # takes no memory itself
    with pytest.raises(SizeError, match=r"coriolis matrix of 1000000 states .* 28.8 GB"):
        model.coriolis_matrix(many, np.zeros(model.nv))
