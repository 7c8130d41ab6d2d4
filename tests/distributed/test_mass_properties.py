"""Mass properties of sets: union, difference, change of frame, against clouds of points."""

import numpy as np
import pytest

from modurob import DatasheetError, catalog
from modurob.distributed.mass.properties import (
    MassProperties,
    from_numbers,
    to_numbers,
    unpacked,
)
from modurob.spatial import se3
from modurob.spatial.inertia import pseudo_inertia

ROUND_OFF = 1e-13  # relative: a few dozen additions


def cloud(rng, count=40):
    return rng.uniform(0.1, 2.0, count), rng.standard_normal((count, 3))


def properties_of(masses, points):
    """By the definitions, point by point."""
    m = masses.sum()
    center = (masses[:, None] * points).sum(axis=0) / m
    inertia = sum(
        mass * (r @ r * np.eye(3) - np.outer(r, r))
        for mass, r in zip(masses, points - center, strict=True)
    )
    return MassProperties(m, center, inertia)


def same(a, b, tolerance=ROUND_OFF):
    scale = np.abs(b.inertia).max()
    np.testing.assert_allclose(a.mass, b.mass, rtol=tolerance)
    np.testing.assert_allclose(a.center, b.center, atol=tolerance * np.sqrt(scale / b.mass))
    np.testing.assert_allclose(a.inertia, b.inertia, atol=tolerance * scale)


def test_union_and_difference_are_those_of_the_points():
    rng = np.random.default_rng(0)
    masses, points = cloud(rng)
    whole = properties_of(masses, points)
    one, other = (properties_of(masses[k], points[k]) for k in (slice(15), slice(15, None)))
    same(one + other, whole)
    same(whole - other, one, 1e-12)


def test_averaged_inertias_are_wrong_even_for_two_points():
    """moll2006 weighs the inertias by mass: that of two points would be zero."""
    ends = np.array([[-1.0, 0, 0], [1.0, 0, 0]])
    points = [MassProperties(np.array(1.0), end, np.zeros((3, 3))) for end in ends]
    found = (points[0] + points[1]).inertia
    np.testing.assert_allclose(found, np.diag([0.0, 2.0, 2.0]), atol=ROUND_OFF)


def test_another_frame_is_the_moved_points():
    rng = np.random.default_rng(1)
    masses, points = cloud(rng)
    T = se3.exp(rng.standard_normal(6))
    moved_points = points @ T[:3, :3].T + T[:3, 3]
    same(properties_of(masses, points).moved(T), properties_of(masses, moved_points), 1e-12)


def test_ten_numbers_hold_everything():
    rng = np.random.default_rng(2)
    P = pseudo_inertia(*(np.asarray(x) for x in vars(properties_of(*cloud(rng))).values()))
    np.testing.assert_array_equal(from_numbers(to_numbers(P)), P)


def test_nothing_has_no_mass_and_its_center_at_the_origin():
    nothing = unpacked(np.zeros((4, 4)))
    assert nothing.mass == 0
    np.testing.assert_array_equal(nothing.center, 0.0)


def test_a_negative_mass_is_refused_by_the_datasheet():
    with pytest.raises(DatasheetError, match="mass"):
        catalog["superbot"].with_parameters(mass=-0.1)
