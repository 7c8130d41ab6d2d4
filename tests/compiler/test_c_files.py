"""Whole exported C files of the crane, whose mass matrix fits on two lines."""

import re

import numpy as np
import pytest

from modurob import StateError, examples
from modurob.compiler.c_functions import c_functions
from modurob.compiler.c_program import _check
from modurob.compiler.emit_c import _comment, c_sources, plain
from oracles import complains

HEADER = """\
/* crane: equations of motion and kinematics of a modular robot. Written by modurob; do not edit.
 *
 * C99 without loops and branches: no allocation, no state, and of <math.h> only sin, cos and sqrt.
 * Units are SI and radians. Numbers must be finite; nothing is checked. In the dynamics the result
 * may take the place of an input.
 *
 * Base fixed, gravity (0, 0, -9.81) m/s^2 in the world.
 *
 * Coordinates:
 *   q[0], v[0]: m0.slide, prismatic [m, m/s, m/s^2, N]
 *   q[1], v[1]: m1.hinge, revolute [rad, rad/s, rad/s^2, N m], -1.5708 to 1.5708
 *
 * Modules, in the order of T:
 *   T[0]: m0
 *   T[1]: m1
 *   T[2]: m2
 *
 * Locked joints, which have no coordinate:
 *   m2.hinge: nothing with mass beyond it: m2.B carries no load
 *
 * Operations of a call (add counts subtractions), and bytes of values held at once:
 *   function         add    mul    div   sqrt    sin    cos    neg  bytes
 *   mass_matrix        0      1      0      0      0      1      0     16
 */
#ifndef CRANE_H
#define CRANE_H

#ifdef __cplusplus
extern "C" {
#endif

#define CRANE_NQ 2
#define CRANE_NV 2
#define CRANE_MODULES 3

typedef double crane_real;

/* The mass matrix. [kg m^2, kg m, kg] */
void crane_mass_matrix(const crane_real q[CRANE_NQ], crane_real M[CRANE_NV][CRANE_NV]);

#ifdef __cplusplus
}
#endif

#endif
"""
SOURCE = """\
/* crane.c: see crane.h. Written by modurob; do not edit. */

#include "crane.h"

#include <math.h>

void crane_mass_matrix(const crane_real q[CRANE_NQ], crane_real M[CRANE_NV][CRANE_NV])
{
  const crane_real cos1 = cos(q[1]);
  crane_real t0;
  M[1][1] = 25.0;
  M[0][0] = 2.0;
  t0 = cos1 * 5.0;
  M[0][1] = t0;
  M[1][0] = t0;
}
"""
FREE = """\
/* c: equations of motion and kinematics of a modular robot. Written by modurob; do not edit.
 *
 * C99 without loops and branches: no allocation, no state, and of <math.h> only sinf, cosf and
 * sqrtf. Units are SI and radians. Numbers must be finite; nothing is checked. In the dynamics the
 * result may take the place of an input.
 *
 * Base free, gravity (0, 0, -9.81) m/s^2 in the world.
 *
 * Coordinates:
 *   q[0] to q[2]: position of the base in the world [m]
 *   q[3] to q[6]: its unit quaternion x, y, z, w; it must have norm 1
 *   v[0] to v[5]: its twist in its own frame, linear part first [m/s, rad/s]; a: the rate of that
 *       [m/s^2, rad/s^2]; tau: the wrench on it, force first [N, N m]
 *   q[7], v[6]: m1.hinge, revolute [rad, rad/s, rad/s^2, N m], -1.5708 to 1.5708
 *   q[8], v[7]: m3.hinge, revolute [rad, rad/s, rad/s^2, N m], -1.5708 to 1.5708
 *   q[9], v[8]: m5.hinge, revolute [rad, rad/s, rad/s^2, N m], -1.5708 to 1.5708
 *
 * Modules, in the order of T:
 *   T[0]: m0
 *   T[1]: m1
 *   T[2]: m2
 *   T[3]: m3
 *   T[4]: m4
 *   T[5]: m5
 *
 * Locked joints, which have no coordinate:
 *   m2.hinge: DS dyad: the hinges of m1 (side 2) and m2 (side 5) lie on one line, so the docking
 *       cannot bend
 *   m4.hinge: DS dyad: the hinges of m1 (side 5) and m4 (side 2) lie on one line, so the docking
 *       cannot bend
 *
"""


def test_header_and_source_of_the_crane():
    """M = [[m1 + m2, m2 l cos q2], [m2 l cos q2, m2 l^2]] with masses of 1 kg and l = 5 m."""
    found = c_sources(examples.crane().model("physical"), "crane", functions=["mass_matrix"])
    assert found.header == HEADER
    assert found.source == SOURCE


def test_the_header_describes_a_free_base_and_wraps_long_lines():
    model = examples.crab().model("dyad", "free")
    found = c_sources(model, "c", dtype="float32", functions=["energy"])
    assert found.header.startswith(FREE)
    assert "typedef float c_real;" in found.header


def test_temporaries_are_used_again():
    """Nineteen numbers of the crane's energy need room for six of them at once."""
    model = examples.crane().model("physical")
    found = c_sources(model, "crane", functions=["energy"])
    assert found.source.count("  t") == 19
    assert "crane_real t0, t1, t2, t3, t4, t5;" in found.source
    for dtype, size in (("float64", 8), ("float32", 4)):
        header = c_sources(model, "crane", dtype, functions=["energy"]).header
        (line,) = [line for line in header.splitlines() if line.startswith(" *   energy")]
        assert line.split()[-1] == str(8 * size)  # bytes: six temporaries, a sine and a cosine


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ((-0.5, 1.25), ", -0.5 to 1.25"),
        ((None, 1.25), ", up to 1.25"),
        ((-0.5, None), ", from -0.5"),
        ((None, None), ""),
    ],
)
def test_the_header_names_the_limits_that_there_are(limits, text):
    model = examples.snake(2).with_parameters(limits=limits).model("physical")
    header = c_sources(model, "snake", functions=["mass_matrix"]).header
    (line,) = [line for line in header.splitlines() if "q[0], v[0]" in line]
    assert line == f" *   q[0], v[0]: m0.hinge, revolute [rad, rad/s, rad/s^2, N m]{text}"


@pytest.mark.parametrize(
    ("function", "length"), [("joint_screw_rates", 96), ("coriolis_matrix", 97)]
)
def test_a_declaration_of_more_than_96_characters_has_a_line_for_each_parameter(function, length):
    header = c_sources(examples.crane().model("physical"), "aa", functions=[function]).header
    (found,) = re.findall(rf"^void aa_{function}\([^;]*;", header, re.MULTILINE)
    assert len(re.sub(r"(?<=\()\n +|(?<=,)\n {3}", "", found)) == length
    assert found.count("\n") == (0 if length <= 96 else 1 + found.count(","))


def test_comments_are_wrapped_after_96_characters():
    assert _comment(["a" * 48 + " " + "b" * 47]) == [f"/* {'a' * 48} {'b' * 47} */"]
    assert _comment(["a" * 48 + " " + "b" * 48]) == ["/* " + "a" * 48, " * " + "b" * 48, " */"]


def test_long_lists_of_numbers_and_names_are_broken_into_lines():
    """Twelve temporaries, or six numbers of the test program."""
    files = c_sources(examples.arm("babac").model("physical"), "arm", states=1)
    names = [line.count(",") + 1 for line in files.source.splitlines() if "arm_real t" in line]
    assert max(names) == 12
    rows = re.findall(r"^ +\{?(-?\d[^}]*?)[},]*$", files.test, re.MULTILINE)
    assert max(row.count(",") + 1 for row in rows) == 6


def most_held(source):
    """Most values that are written before a line of C and read behind it."""
    lines = [line.strip().partition(" = ")[::2] for line in source.splitlines()]
    held = np.zeros(len(lines), dtype=int)
    for begin, (name, _) in enumerate(lines):
        if re.fullmatch(r"t\d+", name):
            again = [k for k in range(begin + 1, len(lines)) if lines[k][0] == name]
            until = range(begin + 1, (again or [len(lines) - 1])[0] + 1)
            read = [k for k in until if re.search(rf"\b{name}\b", lines[k][1])]
            held[begin : max(read)] += 1
    return held.max()


@pytest.mark.parametrize("function", ["mass_matrix", "inverse_dynamics", "joint_screws"])
def test_there_are_as_many_temporaries_as_values_are_held_at_once(function):
    model = examples.arm("bac").model("physical")
    source = c_sources(model, "arm", functions=[function]).source
    declared = ", ".join(re.findall(r"  arm_real (t\d[^;]*);", source))
    assert declared.split(", ") == [f"t{k}" for k in range(most_held(source))]


def table(text, name):
    """The numbers of an array in a C file, row by row."""
    (body,) = re.findall(rf"{name}\[STATES\]\[\d+\] = \{{(.*?)\}};", text, re.DOTALL)
    rows = re.findall(r"\{(.*?)\}", body, re.DOTALL)
    return np.array([[float(x.rstrip("f")) for x in row.split(",")] for row in rows])


@pytest.mark.parametrize(("dtype", "limit"), [("float64", "1e-12"), ("float32", "0.0001")])
def test_the_test_program_has_states_and_what_must_come_out(dtype, limit):
    model = examples.snake(4).model("physical", gravity=(1.0, 2.0, -9.0))
    names = ["inverse_dynamics", "forward_dynamics", "kinematics"]
    text = c_sources(model, "it", dtype, states=4, functions=names).test
    q, v, a, tau = (table(text, f"given_{name}") for name in ("q", "v", "a", "tau"))
    assert "#define STATES 4\n" in text
    near = {"rtol": 1e-12, "atol": 1e-10} if dtype == "float64" else {"rtol": 1e-5, "atol": 1e-4}
    forces = table(text, "expected_inverse_dynamics")
    np.testing.assert_allclose(forces, model.inverse_dynamics(q, v, a), **near)
    np.testing.assert_allclose(tau, 2 * model.inverse_dynamics(q, v, a), **near)
    rates = table(text, "expected_forward_dynamics")
    np.testing.assert_allclose(rates, model.forward_dynamics(q, v, tau), rtol=1e-3, atol=1e-3)
    poses = model.forward_kinematics(q)[:, list(model.modules.values()), :3].reshape(4, -1)
    np.testing.assert_allclose(table(text, "expected_kinematics"), poses, **near)
    largest = [float(x) for x in re.findall(r"compare\(.*?, \d+, (\S+)\);", text)]
    found = [np.abs(table(text, f"expected_{name}")).max() for name in names]
    np.testing.assert_allclose(largest, found, rtol=1e-6)
    assert [int(x) for x in re.findall(r"expected_\w+\[i\], (\d+),", text)] == [3, 3, 4 * 12]
    assert re.findall(r'passes\("\w+", (\S+)\)', text) == [limit] * 3


def test_errors_of_what_cancels_are_relative_to_its_terms():
    """A crab's mass matrix does not change: C is zero, of terms like M v."""
    model = examples.crab().model()
    text = c_sources(model, "it", "float32", states=2, functions=["coriolis_matrix"]).test
    q, v = table(text, "given_q"), table(text, "given_v")
    assert np.abs(table(text, "expected_coriolis_matrix")).max() < 1e-12
    ((count, scale),) = re.findall(r"compare\(.*?, (\d+), (\S+)\);", text)
    assert int(count) == 9
    assert float(scale) == pytest.approx(np.abs(model.mass_matrix(q)).max() * np.abs(v).max())


def test_errors_are_absolute_where_all_numbers_are_zero():
    energy = c_functions()["energy"]
    for scale, found in ((0.0, 1.0), (0.5, 0.5)):
        text = _check("it", "energy", energy, (2,), scale, 1e-12)
        (numbers,) = re.findall(r"compare\(.*?, (\d+), (\S+)\);", text)
        assert tuple(map(float, numbers)) == (2, found)


def test_ten_states_are_tested_unless_told_and_only_inputs_in_use_are_given():
    text = c_sources(examples.crane().model("physical"), "crane", functions=["mass_matrix"]).test
    assert len(table(text, "given_q")) == len(table(text, "expected_mass_matrix")) == 10
    assert "given_v" not in text


def test_functions_of_c_are_those_without_loops():
    known = c_functions()
    assert {"closed_form_matrices", "inverse_dynamics_derivatives"}.isdisjoint(known)
    assert {"forward_dynamics_derivatives", "forward_kinematics"}.isdisjoint(known)
    assert {"coriolis_matrix", "kinematics", "energy", "momentum", "joint_screw_rates"} < {*known}
    pushed = {name for name in known if name.endswith("_external")}
    assert pushed == {"inverse_dynamics_external", "forward_dynamics_external"}


def test_more_than_a_hundred_joints_are_not_exported():
    model = examples.snake(102).model("physical")
    assert len(model.joint_names) == 101
    with complains(StateError, "the model has 101 joints", "at most 100"):
        c_sources(model)


def test_long_names_are_cut_in_comments():
    assert plain("a" * 200) == "a" * 200
    assert plain("b" * 201) == "b" * 197 + "..."
    assert plain(" m1\n hinge? */") == "m1 hinge_ __"
