"""``modurob verify``: it passes what is right, and fails what is wrong."""

from __future__ import annotations

import dataclasses
import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner, Result

import modurob as mr
from modurob import dynamics
from modurob.cli import cli
from modurob.equations.coriolis import ClosedForm
from modurob.verification import CHECKS, engines, verify
from modurob.verification.check import FAILED, LEFT_OUT, PASSED
from oracles.rough_organisms import rough_organism

ALL = list(CHECKS)


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Run ``modurob verify`` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> Result:
        return CliRunner().invoke(cli, ["verify", *args])

    return run


def verdicts(report) -> dict[str, str]:
    return {check.name: check.verdict for check in report.checks}


def failed(report) -> set[str]:
    return {name for name, verdict in verdicts(report).items() if verdict == FAILED}


# -- what is right ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("organism", "hinges", "base"),
    [
        (mr.examples.crab(), "dyad", "fixed"),  # its mass matrix does not change: C = 0
        (mr.examples.crab(), "physical", "free"),
        (mr.examples.nine(), "dyad", ("px", "py", "rz")),
        (mr.examples.arm("bac"), "physical", "fixed"),
        (mr.examples.double_pendulum(), "physical", "fixed"),
    ],
    ids=["crab", "floating crab", "nine on a plane", "arm", "double pendulum"],
)
def test_the_documents_organisms_pass_every_check(organism, hinges, base):
    report = verify(organism, hinges, base, states=3)
    known = {"Lagrange"} if organism == mr.examples.double_pendulum() else set()
    assert verdicts(report) == dict.fromkeys({*ALL, *known}, PASSED)
    assert report.passed


@pytest.mark.parametrize("kinds", ["backbone and scout", "superbot", "giusti"])
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_rough_organisms_pass(kinds, base):
    report = verify(rough_organism(kinds, 2, 4), "physical", base, states=2, seed=3)
    assert not failed(report)
    assert report.count(PASSED) >= len(ALL) - 1  # formulas may be too large


def test_what_is_too_large_or_cannot_float_is_left_out_and_says_so():
    crane = verify(mr.examples.crane(), "physical", states=1)
    assert verdicts(crane)["momentum conserved"] == LEFT_OUT
    assert crane.passed
    tree = verify(mr.examples.superbot_tree(3, 3), "physical", states=1)
    (note,) = [c.note for c in tree.checks if c.name == "formulas = numbers"]
    assert note.startswith("too large")
    assert tree.passed


@pytest.mark.parametrize(
    ("package", "check", "install"),
    [("pinocchio", "Pinocchio", "pip install pin"), ("mujoco", "MuJoCo", "modurob[mujoco]")],
)
def test_an_engine_that_is_not_installed_is_left_out(monkeypatch, package, check, install):
    monkeypatch.setitem(sys.modules, package, None)
    report = verify(mr.examples.snake(2), states=1)
    (found,) = [c for c in report.checks if c.name == check]
    assert found.verdict == LEFT_OUT
    assert install in found.note
    assert report.passed


# -- what is wrong ---------------------------------------------------------------------------------


def test_a_joint_that_moves_nothing_fails_and_is_named():
    report = verify(mr.examples.double_pendulum(), "dyad", states=1)
    assert failed(report) == {"M positive definite"}
    (note,) = [c.note for c in report.checks if c.name == "M positive definite"]
    assert "m2.hinge" in note
    assert verdicts(report)["forward undoes inverse"] == LEFT_OUT


def spoiled_routine(monkeypatch, name, spoil):
    """Compiled code of one algorithm that is wrong by a factor."""
    original = dynamics.Dynamics.quantity

    def wrong(self, quantity, *arrays, **options):
        found = original(self, quantity, *arrays, **options)
        return spoil(found) if quantity == name else found

    monkeypatch.setattr(dynamics.Dynamics, "quantity", wrong)


def a_little_off(x):
    return x * (1 + 1e-5)


def lopsided(x):
    return np.triu(x) + 0.999 * np.tril(x, -1)


@pytest.mark.parametrize(
    ("algorithm", "spoil", "expected"),
    [
        (
            "inverse_dynamics",
            a_little_off,
            {"closed form = recursion", "compiled = reference", "energy rate = power", "Pinocchio"},
        ),
        ("forward_dynamics", a_little_off, {"compiled = reference", "forward undoes inverse"}),
        (
            "mass_matrix",
            lopsided,
            {"closed form = recursion", "M symmetric", "Pinocchio", "MuJoCo"},
        ),
        (
            "inverse_dynamics_derivatives",
            a_little_off,
            {"compiled = reference", "derivatives = differences"},
        ),
    ],
)
def test_wrong_compiled_code_fails(monkeypatch, algorithm, spoil, expected):
    spoiled_routine(monkeypatch, algorithm, spoil)
    report = verify(mr.examples.snake(4), states=2)
    assert expected <= failed(report)
    assert not report.passed


def test_the_documents_coriolis_matrix_is_not_skew_and_fails(monkeypatch):
    # the papers' C gives the same C v: only the skewness tells the two apart
    monkeypatch.setattr(mr.Model, "coriolis_matrix", lambda m, q, v: m.closed_form(q, v).C)
    assert failed(verify(mr.examples.snake(4), states=2)) == {"dM/dt - 2 C skew"}


def test_a_dropped_inertia_in_the_closed_form_fails(monkeypatch):
    """Erratum 7: the documents print C without M beside adV*."""
    original = mr.Model.closed_form

    def printed(model, q, v):
        M, C, N = original(model, q, v)
        return ClosedForm(M, 0.9 * C, N)

    monkeypatch.setattr(mr.Model, "closed_form", printed)
    found = failed(verify(mr.examples.snake(4), states=2))
    assert found == {"closed form = recursion", "formulas = numbers"}


def test_wrong_energy_and_momentum_fail(monkeypatch):
    energy, momentum = mr.Model.energy, mr.Model.momentum
    kinetic = mr.Model.kinetic_energy
    monkeypatch.setattr(
        mr.Model, "energy", lambda m, q, v: energy(m, q, v) + 0.01 * kinetic(m, q, v)
    )
    monkeypatch.setattr(mr.Model, "kinetic_energy", lambda m, q, v: 1.01 * kinetic(m, q, v))
    found = failed(verify(mr.examples.crane(), "physical", states=2))
    assert found == {"energy rate = power"}
    monkeypatch.setattr(mr.Model, "momentum", lambda m, q, v: momentum(m, q, v) * v[..., -1:])
    found = failed(verify(mr.examples.snake(3), "physical", states=2))
    assert found == {"energy rate = power", "momentum conserved"}


def test_a_file_that_says_something_else_fails(monkeypatch):
    """The exporters are checked as well: a URDF with another mass is another robot."""

    def heavier(model, path):
        engines_write(dataclasses.replace(model, mass=1.001 * model.mass), path)

    engines_write = engines.write_urdf
    monkeypatch.setattr(engines, "write_urdf", heavier)
    assert failed(verify(mr.examples.crab(), "physical", states=1)) == {"Pinocchio"}


def test_numbers_that_are_not_numbers_fail(monkeypatch):
    spoiled_routine(monkeypatch, "inverse_dynamics", lambda x: np.full_like(x, np.nan))
    assert "closed form = recursion" in failed(verify(mr.examples.snake(3), states=1))


# -- on the command line ---------------------------------------------------------------------------


def test_verify_prints_a_verdict_for_each_check(call):
    mr.examples.snake(3).save("mine.json")
    result = call("mine.json", "--hinges", "physical", "--states", "2")
    assert result.exit_code == 0, result.stderr
    assert "mine: physical hinges, base fixed, nv = 2, 2 random states" in result.stdout
    for name in ALL:
        assert name in result.stdout
    assert result.stdout.count("passed") == len(ALL) + 1
    assert f"{len(ALL)} passed" in result.stdout
    (head,) = [line for line in result.stdout.splitlines() if line.startswith("check ")]
    assert head.split() == ["check", "found", "limit", "verdict", "what"]


def test_verify_exits_with_1_when_a_check_fails(call):
    result = call("double_pendulum", "--hinges", "dyad", "--states", "1")
    assert result.exit_code == 1
    assert "1 FAILED" in result.stdout
    assert "≥ 1e-14" in result.stdout
    assert "≤ 1e-10" in result.stdout
    assert "0.0e+00" in result.stdout


def test_verify_json_is_json_only(call):
    result = call("crab", "--states", "1", "--seed", "5", "--base", "px,py,rz", "--json")
    data = json.loads(result.stdout)
    assert data["passed"] is True
    assert [check["name"] for check in data["checks"]] == ALL
    assert all(check["found"] is not None for check in data["checks"])
    again = json.loads(
        call("double_pendulum", "--hinges", "dyad", "--states", "1", "--json").stdout
    )
    assert again["passed"] is False


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("lobster",), ["'lobster'", "crab"]),
        (("crab", "--states", "0"), ["--states"]),
        (("crab", "--hinges", "rubber"), ["rubber"]),
        (("crab", "--base", "wobbly"), ["wobbly"]),
        (("crab", "--seed", "-1"), ["--seed"]),
        (("one.json",), ["nothing to verify"]),
    ],
)
def test_verify_refuses_bad_input(call, args, words):
    mr.Organism.start("backbone").save("one.json")
    result = call(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if line.strip()]
    assert line.startswith("error: ")
    for word in words:
        assert word in line


def test_more_states_than_fit_into_memory_are_refused_before_they_are_drawn():
    with pytest.raises(mr.SizeError, match=r"checks of 1000000000 states would need 2,880 GB"):
        verify(mr.examples.crab(), states=10**9)
