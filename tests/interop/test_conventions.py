"""Rotations that a file has rounded: repaired where they are near one, refused elsewhere."""

import numpy as np
import pytest
from scipy.linalg import polar

from modurob import DatasheetError
from modurob.interop.conventions import checked_rotation
from modurob.spatial import so3

ROUNDING = 1e-14  # entries of size 1 after a handful of operations
R = so3.from_rpy(0.3, -1.1, 2.0)


def test_an_exact_rotation_is_kept_to_the_last_digit():
    np.testing.assert_array_equal(checked_rotation(R, "pose"), R)


def test_a_rotation_of_seven_digits_becomes_the_nearest_one():
    rounded = np.round(R, 7)
    found = checked_rotation(rounded, "pose")
    np.testing.assert_allclose(found, polar(rounded)[0], rtol=0, atol=ROUNDING)
    assert np.abs(found - rounded).max() < 1e-7


@pytest.mark.parametrize("bad", [np.round(R, 3), -R, 0 * R, np.full((3, 3), np.nan)])
def test_what_is_no_rotation_is_refused_by_name(bad):
    with pytest.raises(DatasheetError, match="pose: its rotation is not orthonormal"):
        checked_rotation(bad, "pose")
