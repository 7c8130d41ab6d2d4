"""Checks of arguments: each error names the argument, what was given and what is allowed."""

import numpy as np
import pytest

from modurob import StateError, UnknownNameError
from modurob.checks import (
    complex_array,
    generator,
    gravity_vector,
    inside,
    is_loopback,
    is_number,
    is_whole,
    not_negative,
    per_joint,
    positive,
    real_array,
    refuse_over,
    refuse_states,
    takes,
    whole,
)
from modurob.errors import SizeError, choices, one_line
from oracles import complains

JOINTS = ("hip", "knee")


def test_numbers_per_joint_are_one_or_each_or_by_name_and_read_only():
    for given, found in ((2, [2, 2]), ([1, 2], [1, 2]), ({"knee": 3.0}, [1, 3])):
        array = per_joint("phase", given, JOINTS, otherwise=1.0)
        assert array.tolist() == found
        assert not array.flags.writeable
    assert per_joint("limit", np.inf, JOINTS, infinite=True).tolist() == [np.inf, np.inf]


@pytest.mark.parametrize(
    ("kind", "given", "pieces"),
    [
        (StateError, [1.0], ["phase has shape (1,)", "(2,)", "hip, knee"]),
        (StateError, [1.0, -1.0], ["phase must be at least 0", "-1"]),
        (StateError, [1.0, np.inf], ["phase must hold finite real numbers"]),
        (StateError, "12", ["phase must hold finite real numbers", "'12'"]),
        (StateError, [True, False], ["phase must hold finite real numbers"]),
        (UnknownNameError, {"toe": 1.0}, ["phase", "'toe'", "hip, knee"]),
    ],
)
def test_other_numbers_per_joint_are_named(kind, given, pieces):
    with complains(kind, *pieces):
        per_joint("phase", given, JOINTS, least=0.0)


def test_arrays_are_copies_of_numbers():
    given = np.ones(3)
    array = real_array("x", given)
    array[0] = 2.0
    assert given[0] == 1.0
    assert complex_array("poles", [-1 + 1j]).dtype == complex
    with complains(StateError, "poles must hold finite numbers"):
        complex_array("poles", [np.nan])


def test_whole_numbers_and_ranges():
    assert whole("count", np.int64(3), 1) == 3
    for wrong in (0, 1.0, True, "1", None):
        with complains(StateError, "count must be a whole number of 1 or more", repr(wrong)):
            whole("count", wrong, 1)
    with complains(StateError, "from 1 to 5", "6"):
        whole("count", 6, 1, 5)
    assert inside("lag", 1, -2, 2, "rad") == 1.0
    with complains(StateError, "lag must be a number from -2 to 2 (rad)", "3"):
        inside("lag", 3, -2, 2, "rad")


def test_random_numbers_come_from_a_generator():
    rng = np.random.default_rng(1)
    assert generator(rng, "noise") is rng
    assert generator(None, "noise", seed=0).random() == np.random.default_rng(0).random()
    for wrong in (None, 3):
        with complains(StateError, "noise needs rng=", type(wrong).__name__):
            generator(wrong, "noise")


def test_long_lists_of_names_are_shortened_and_keep_their_last():
    names = [f"m{k}" for k in range(13)]
    assert choices(names[:12]) == ", ".join(names[:12])
    assert choices(names) == ", ".join(names[:11]) + ", ... (13 in all, last m12)"
    assert choices([]) == "none"


def test_ends_of_ranges_are_part_of_them():
    assert [whole("count", k, 1, 5) for k in (1, 5)] == [1, 5]
    assert [inside("lag", x, -2, 2, "rad") for x in (-2, 2)] == [-2.0, 2.0]
    assert not_negative("delay", 0, "seconds") == 0.0
    assert positive("dt", 5e-324, "seconds") == 5e-324
    assert per_joint("limit", [0.0, 1.0], JOINTS, least=0.0).tolist() == [0, 1]
    for wrong in (0, -1e-300, np.inf, np.nan, 10**400, True, "1", 1 + 0j):
        with complains(StateError, "dt must be a positive number of seconds"):
            positive("dt", wrong, "seconds")
    for wrong in (-1e-300, -np.inf, None):
        with complains(StateError, "delay must be zero or a positive number of seconds"):
            not_negative("delay", wrong, "seconds")


def test_infinite_numbers_are_taken_where_they_make_sense():
    assert real_array("limit", [np.inf, -np.inf, 1], infinite=True).tolist() == [np.inf, -np.inf, 1]
    with complains(StateError, "limit must hold finite real numbers"):
        real_array("limit", [np.nan, 1.0], infinite=True)
    with complains(StateError, "limit must hold finite real numbers"):
        real_array("limit", [np.inf, 1.0])
    objects = np.array([1, 2.5], dtype=object)
    assert real_array("x", objects).tolist() == [1, 2.5]
    for wrong in (np.array([1, "2"], dtype=object), np.array([True, 2], dtype=object), [1 + 1j]):
        with complains(StateError, "x must hold finite real numbers"):
            real_array("x", wrong)


def test_functions_take_what_their_signature_allows():
    assert takes(lambda a, b=0: a, 1)
    assert not takes(lambda a, b: a, 1)
    assert not takes(lambda: 0, 1)
    assert not takes("no function")
    assert takes(dict.fromkeys, [])
    assert takes(max, 1, 2)  # of C, without a signature: the call itself will tell


def test_messages_of_a_thousand_characters_stay_whole_and_longer_ones_keep_both_ends():
    text = "".join(chr(97 + k % 26) for k in range(1001))
    assert one_line(text[:1000]) == text[:1000]
    assert one_line(text) == text[:800] + " ... " + text[-100:]


def test_what_cannot_be_printed_is_written_as_in_a_program():
    assert one_line("a\nb\x00c\u200bü") == "a\\nb\\x00c\\u200bü"


def test_long_values_are_cut_and_units_are_named_where_there_are_some():
    with complains(StateError, f"x must hold finite real numbers, got {'y' * 60!r}"):
        real_array("x", "y" * 99)
    with complains(StateError, "stiffness must be zero or a positive number, got -1"):
        not_negative("stiffness", -1)
    with complains(StateError, "limit must be at least -2.5, got [-3, 0]"):
        per_joint("limit", [-3, 0], JOINTS, least=-2.5)


def test_states_are_refused_by_the_memory_of_their_numbers():
    refuse_states("positions", 10**9, 1)
    refuse_over("arrays", 8_000_000_000, "wait")
    with complains(SizeError, "arrays would need 8 GB of memory; the limit is 8 GB: wait"):
        refuse_over("arrays", 8_000_000_001, "wait")
    for nbytes, size in (
        (9.87e9, "9.87"),
        (2.5e14, "250,000"),
        (1e18, "1e+09"),
        (1.5e18, "1.5e+09"),
    ):
        with complains(SizeError, f"arrays would need {size} GB of memory"):
            refuse_over("arrays", nbytes, "wait")
    with complains(SizeError, "positions of 500000001 states would need 8 GB", "fewer states"):
        refuse_states("positions", 500_000_001, 2)


def test_gravity_is_three_finite_numbers():
    assert gravity_vector((0, 1, -9.81)).tolist() == [0.0, 1.0, -9.81]
    for wrong in ((0, 0), (0, 0, np.nan), (0, 0, -9.81j), 9.81, "down", [[0, 0, -9.81]]):
        with complains(StateError, "gravity must be three finite numbers [m/s^2]", repr(wrong)):
            gravity_vector(wrong)
    with complains(StateError, "gravity must be three finite numbers", "j"):
        gravity_vector(np.array([0, 0, -9.81 + 1j]))  # its real part alone is no answer


@pytest.mark.parametrize(
    ("question", "yes", "no"),
    [
        (is_number, [1, 2.5, np.float64(3)], [True, "1", None, 1j, np.nan, np.inf, 10**400]),
        (is_whole, [1, np.int64(3)], [True, 1.0, "1", None]),
        (takes, [max, lambda: 0], [3, lambda a: a]),
        (is_loopback, ["localhost", "127.9.9.9", "::1"], ["192.0.2.7", "example.org", ""]),
    ],
)
def test_questions_are_answered_with_true_or_false(question, yes, no):
    assert {question(x) for x in yes} == {True}
    assert all(question(x) is False for x in no)
