"""Motions from files: kinds, units, headings, and files that are none."""

import numpy as np
import pytest

from modurob import FileError, StateError, examples, simulate
from modurob.distributed.bus import motions
from oracles import complains

MODEL = examples.arm("bc").model("physical")  # a joint that turns, and one that slides
TIMES = np.array([0.0, 0.4, 1.0])
Q = np.array([[0.0, 0.0], [0.5, 0.02], [-0.25, 0.01]])


@pytest.fixture
def path(tmp_path):
    """A table in degrees and meters that does not begin at zero."""
    rows = np.column_stack([TIMES + 3.0, np.degrees(Q[:, 0]), Q[:, 1]])
    np.savetxt(tmp_path / "places.csv", rows, delimiter=",", fmt="%.17g")
    return str(tmp_path / "places.csv")


@pytest.mark.parametrize("kind", motions.KINDS[1:])
def test_a_motion_passes_its_places_at_their_times_from_zero_on(path, kind):
    motion, duration = motions.read(kind, path, MODEL)
    assert duration == pytest.approx(1.0)
    for t, q in (*zip(TIMES, Q, strict=True), (1.5, Q[-1])):  # where it ends it stays
        np.testing.assert_allclose(motion(t).q, q, atol=1e-12)


def test_quintics_rest_in_each_place_and_move_between(path):
    motion, _ = motions.read("quintic", path, MODEL)
    for t in TIMES:
        np.testing.assert_allclose([motion(t).v, motion(t).a], 0, atol=1e-9)
    np.testing.assert_allclose(motion(0.2).q, (Q[0] + Q[1]) / 2, atol=1e-12)  # of a symmetric leg
    np.testing.assert_allclose(motion(0.7).q, (Q[1] + Q[2]) / 2, atol=1e-12)
    for t, place in ((-1.0, Q[0]), (9.0, Q[2])):
        np.testing.assert_allclose(motion(t).q, place, atol=1e-12)


def test_steps_jump_and_splines_do_not_stop(path):
    steps, spline = (motions.read(kind, path, MODEL)[0] for kind in ("steps", "spline"))
    np.testing.assert_allclose(steps(0.39).q, Q[0])
    np.testing.assert_allclose(steps(0.41).q, Q[1], atol=1e-12)
    assert np.abs(spline(0.5).v).max() > 0.1


def test_a_recorded_run_is_followed_by_the_names_of_its_columns(tmp_path):
    run = simulate(MODEL, Q[0], [0.3, 0.0], 0.3, None, "RK4", dt=0.01, record=0.1)
    path = tmp_path / "run.csv"
    run.to_csv(path)
    heading, *rows = path.read_text().splitlines()
    swapped = [",".join([*line.split(",")[1:], line.split(",")[0]]) for line in (heading, *rows)]
    path.write_text("\n".join(swapped))  # time comes last
    motion, duration = motions.read("csv", str(path), MODEL)
    assert duration == pytest.approx(0.3)
    np.testing.assert_allclose(motion(0.1).q, run.q[1], atol=1e-9)


def test_of_rows_that_are_close_the_means_are_followed(tmp_path):
    path = tmp_path / "noisy.csv"
    rows = [
        (t, 10 + noise, 0.0) for t, noise in ((0, 0), (0.1, 1), (0.11, -1), (0.12, 3), (0.2, 0))
    ]
    np.savetxt(path, rows, delimiter=",")
    motion, _ = motions.read("csv", str(path), MODEL)
    assert np.degrees(motion(0.11).q[0]) == pytest.approx(11.0)
    ramp = [(t, 100 * t, 0.1 * t) for t in np.arange(0.0, 0.5, 0.002)]
    np.savetxt(tmp_path / "ramp.csv", ramp, delimiter=",")
    along, end = motions.read("csv", str(tmp_path / "ramp.csv"), MODEL)
    for t in (0.0, 0.2, end):  # both ends of a record are where it was there
        np.testing.assert_allclose(along(t).q, [np.radians(100 * t), 0.1 * t], atol=1e-9)
    np.savetxt(tmp_path / "short.csv", ramp[:3], delimiter=",")
    along, end = motions.read("csv", str(tmp_path / "short.csv"), MODEL)
    for t in (0.0, end / 2, end):
        assert np.degrees(along(t).q[0]) == pytest.approx(100 * t, abs=1e-9)
    steps, _ = motions.read("steps", str(path), MODEL)
    assert np.degrees(steps(0.115).q[0]) == pytest.approx(9.0)


def test_a_record_begins_and_ends_on_lines_through_its_first_and_last_rows(tmp_path):
    first, last = ([0.0, 0.01, 0.02], [1, 4, 2]), ([0.2, 0.21, 0.22], [6, 9, 5])
    rows = [
        (t, q, 0.0) for times, places in (first, last) for t, q in zip(times, places, strict=True)
    ]
    np.savetxt(tmp_path / "noisy.csv", rows, delimiter=",")
    motion, end = motions.read("csv", str(tmp_path / "noisy.csv"), MODEL)
    for t, (times, places) in ((0.0, first), (end, last)):
        line = np.polyval(np.polyfit(times, places, 1), t)
        assert np.degrees(motion(t).q[0]) == pytest.approx(line)


def test_a_gait_has_no_end():
    motion, duration = motions.read("gait", "sine", MODEL)
    assert duration == np.inf
    assert motion(0.3).q.shape == (2,)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("0,1\n1,2\n", ("each row is a time and 2 places", "m0.joint, m1.joint")),
        ("0,1,0\n", ("at least two rows",)),
        ("", ("at least two rows",)),
        ("0,1,0\n1,2\n", ("at least two rows",)),
        ("0,1,0\n1,nan,0\n", ("finite numbers",)),
        ("0,1,0\n0,2,0\n", ("times must increase",)),
        ("0,1,0\n1,x,0\n", ("finite numbers",)),
        ("time [s],q m0.joint [rad]\n0,0\n1,0\n", ("no column 'q m1.joint'", "time, q m0.joint")),
        ("time,q m0.joint,q m1.joint\n0,0,0\n1,0\n", ("at least two rows",)),
        (f"0,1,0\n1,{'1' * 200_000},0\n", ("not a table with commas", "131072")),
        ("-1.7e308,1,0\n1.7e308,1,0\n", ("numbers up to 1e+15", "got 1.7e+308")),
    ],
)
def test_files_that_are_no_motion_are_told(tmp_path, text, pieces):
    path = tmp_path / "places.csv"
    path.write_text(text)
    with complains(FileError, "places.csv", *pieces):
        motions.read("quintic", str(path), MODEL)


def test_lines_end_as_on_any_system(tmp_path):
    path = tmp_path / "places.csv"
    path.write_bytes(b"0,90,0.5\r1,0,0\r\n2,0,0\n")
    motion, duration = motions.read("steps", str(path), MODEL)
    assert duration == 2.0
    np.testing.assert_allclose(motion(0.5).q, [np.pi / 2, 0.5])


@pytest.mark.parametrize("kind", ["quintic", "spline", "csv"])
def test_times_that_are_too_close_for_a_curve_are_told(tmp_path, kind):
    path = tmp_path / "places.csv"
    path.write_text("0,1,0\n5e-324,2,0\n1e-323,3,0\n")
    with complains(StateError, "no smooth curve", "more evenly apart"):
        motions.read(kind, str(path), MODEL)


def test_kinds_that_are_unknown_are_told(path):
    with complains(StateError, "gait, steps, quintic, spline, csv", "got 'dance'"):
        motions.read("dance", path, MODEL)
