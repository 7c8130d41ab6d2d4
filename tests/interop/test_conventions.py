"""What a file has rounded or made too large: repaired where it is near, refused elsewhere."""

from xml.etree.ElementTree import Element

import numpy as np
import pytest
from scipy.linalg import polar

from modurob import Body, DatasheetError
from modurob.interop.conventions import Names, Repairs, checked_rotation, hex_color, to_name
from modurob.interop.xml_files import read_numbers
from modurob.spatial import so3
from oracles import complains

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


def test_numbers_of_a_file_are_up_to_1e30():
    def read(text):
        return read_numbers(Element("mass", value=text), "value", "link 'a'", 1)

    assert read("1e30") == read("+1E+30") == (1e30,)
    with complains(DatasheetError, "link 'a': value of <mass> is a number of up to 1e+30"):
        read("1.01e30")


def test_foreign_names_are_cut_to_what_datasheets_allow():
    name = to_name("a" * 99)
    assert Body(name=name).name == "a" * 64
    with complains(DatasheetError, "name", "at most 64"):
        Body(name=name + "a")


def test_names_that_are_cut_alike_get_numbers_within_their_length():
    repairs = Repairs(strict=False)
    names = Names("links", repairs)
    found = [names("a" * 64 + end) for end in "xyz"]
    assert found == ["a" * 64, "a" * 62 + "_2", "a" * 62 + "_3"]
    assert [names("a" * 64 + end) for end in "zx"] == [found[2], found[0]]  # as before
    assert len(repairs.made) == 2


def test_colors_beyond_their_range_are_the_nearest_within():
    assert hex_color((1.5, -0.25, 0.6, 0.5)) == "#ff0099"
