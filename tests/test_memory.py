"""Memory: refused before it is asked for, and little more than the results."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

import modurob as mr
from modurob.checks import LARGEST_BYTES, refuse_over
from modurob.errors import SizeError
from modurob.sim.recorder import CUT_BYTES, Recorder, check_ticks, record_times


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


CRAB = mr.examples.crab().model(hinges="physical")  # six joints


@pytest.mark.parametrize(
    ("nbytes", "ask"),
    [
        # 50 states of (6, 6) matrices, one, two or three of them
        (50 * 36 * 8, lambda: CRAB.mass_matrix(np.zeros((50, 6)))),
        (50 * 36 * 8, lambda: CRAB.coriolis_matrix(*np.zeros((2, 50, 6)))),
        (3 * 50 * 36 * 8, lambda: CRAB.inverse_dynamics_derivatives(*np.zeros((3, 50, 6)))),
        (50 * 6 * 8, lambda: CRAB.inverse_dynamics(*np.zeros((3, 50, 6)))),
        # of each body a pose and the rows that it is made of
        (50 * CRAB.nbodies * (16 + 12) * 8, lambda: CRAB.forward_kinematics(np.zeros((5, 10, 6)))),
        (40 * CRAB.nv**2 * 8 * 3, lambda: refuse_verification(3)),
        # 11 times from 0 to 1 s, 10 of them counted
        (10 * CUT_BYTES, lambda: record_times(0.1, 1.0)),
        (10 * 1000, lambda: record_times(0.1, 1.0, 1000)),
        (10 * CUT_BYTES, lambda: check_ticks("sample_time", 0.1, 1.0)),
        # 100 times, with q, v and tau of 1 or 15 states
        (100 * 8 * (1 + 18), lambda: Recorder((), 6, 6, None, 100)),
        (100 * 8 * (1 + 15 * 18), lambda: Recorder((3, 5), 6, 6, None, 100)),
    ],
)
def test_what_fits_to_the_byte_is_done_and_one_byte_more_is_refused(monkeypatch, nbytes, ask):
    monkeypatch.setattr("modurob.checks.LARGEST_BYTES", nbytes)
    ask()
    monkeypatch.setattr("modurob.checks.LARGEST_BYTES", nbytes - 1)
    with pytest.raises(SizeError, match="would need"):
        ask()


def refuse_verification(states):
    """`verify` up to its question for memory."""
    from modurob.verification import verify

    with pytest.raises(InterruptedError):
        verify(mr.examples.crab(), "physical", states=states, progress=_interrupted)


def _interrupted(_name):
    raise InterruptedError


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(8.04e9, "8.04 GB"), (99.9e9, "99.9 GB"), (100e9, "100 GB"), (1234.5e9, "1,234 GB"),
     (1e18, "1e+09 GB"), (9.99e17, "999,000,000 GB")],
)  # fmt: skip
def test_sizes_are_written_to_be_read(nbytes, text):
    with pytest.raises(SizeError, match=f"need {re.escape(text)} of memory; the limit is 8 GB"):
        refuse_over("it", nbytes, "ask for less")


def test_bodies_that_appear_during_a_run_ask_for_the_rest_of_it_only(monkeypatch):
    """Eleven times of 26 numbers fit; sixteen of the 23 that the smaller body has would not."""
    model = mr.examples.snake(3).model("physical", base="free", gravity=(0, 0, 0))
    monkeypatch.setattr("modurob.checks.LARGEST_BYTES", 11 * 8 * 26)
    events = [mr.Undock(0.5, "m2")]
    found = mr.simulate(model, None, None, 1.0, None, "RK4", dt=0.1, events=events)
    assert [len(part.t) for part in found.parts] == [6, 6, 6]
    monkeypatch.setattr("modurob.checks.LARGEST_BYTES", 11 * 8 * 26 - 1)
    with pytest.raises(SizeError, match="11 times of 1 states would need"):
        mr.simulate(model, None, None, 1.0, None, "RK4", dt=0.1, events=events)
