"""Values as text: what a user sees when a value is printed."""

import numpy as np
import pytest

from modurob import Dock, Organism, Undock, catalog, examples, simulate
from modurob.control import Certificate, ComputedTorque
from modurob.control.adaptation import Transient
from modurob.control.certificate import AssumptionCheck
from modurob.control.references.changed import Excess
from modurob.estimation import Consistency, Ekf
from modurob.gaits import Sine, Wave
from modurob.modules import record

CRAB, PAIR = examples.crab().model("physical"), examples.snake(2).model(base="free")


def run(q=None):
    return simulate(CRAB, q, None, 0.02, None, "RK4", dt=0.01)


REPRS = {
    "<ModuleType scout: 1 kg, joints hinge (revolute), rotation (revolute), docks 2, 3, 4, 5>": (
        lambda: catalog["scout"]
    ),
    "<Model: nq = 6, nv = 6, 7 links of 18 bodies, fixed base, 6 locked joints>": lambda: CRAB,
    "<Model: nq = 8, nv = 7, 2 links of 2 bodies, free base, 0 locked joints>": lambda: PAIR,
    "<Equations: nv = 2, 4 parameters as symbols>": lambda: examples.crane().equations("physical"),
    "<Trajectory: of 'm0': 0 to 0.02 s, 3 times, RK4>": run,
    "<Trajectory: of 'm0': 0 to 0.02 s, 3 times, batch (2,), RK4>": lambda: run(np.zeros((2, 6))),
    "<BodyTrajectory of 'm0': 0 to 0.02 s, 3 times>": lambda: run().parts[0],
    "<Organism of 6 modules (6 scout), base m0>": examples.crab,
    "<Organism of 1 module (1 backbone), base a>": lambda: Organism.start("backbone", "a"),
    "<Wave gait of 6 joints>": lambda: Wave.for_model(CRAB),
    "<Sine gait of 1 joint>": lambda: Sine(["hip"], 0.1),
    "<ComputedTorque of 6 joints>": lambda: ComputedTorque(CRAB),
    "<Ekf of 12 states from 6 measurements>": lambda: Ekf(CRAB, 0.01),
}


@pytest.mark.parametrize("text", REPRS)
def test_values_show_what_they_are(text):
    assert repr(REPRS[text]()) == text


STRINGS = {
    "undock m2": Undock(0.25, "m2"),
    "dock n (port 5) to m0 (port 2)": Dock(0.5, "m0", 2, "n", 5),
    "hip: rate -2.5 beyond 2 at 0.125 s": Excess("hip", "rate", -2.5, 2.0, 0.125),
    "consistent: mean 1.5, expected 1 to 2": Consistency(1.5, 1.0, 2.0, True),
    "overconfident: mean 3, expected 1 to 2": Consistency(3.0, 1.0, 2.0, False),
    "too cautious: mean 0.5, expected 1 to 2": Consistency(0.5, 1.0, 2.0, False),
    "the transient is not bounded: the closed loop is not stable": (
        Transient(np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1), np.inf, np.inf, 0.0)
    ),
    "errors up to 0.2 (bound 0.3) rad or m, torques 5 N m or N beyond the reference's, settled "
    "after 1.5 s, slowest rate 4 1/s": (
        Transient(np.zeros(2), np.zeros(2), np.array([0.1, 0.2]), np.array([5.0, 4]), 0.3, 1.5, 4.0)
    ),
}


@pytest.mark.parametrize("text", STRINGS)
def test_values_are_written_for_reading(text):
    assert str(STRINGS[text]) == text


def test_a_certificate_lists_assumptions_and_notes():
    findings = (AssumptionCheck("gains are positive", True, "they are"),
                AssumptionCheck("no delay", False, "2 ms"))  # fmt: skip
    found = Certificate("pd", "it settles", False, findings, ("nearby",), np.zeros(2), 1.0)
    assert str(found).splitlines() == [
        "pd: NOT guaranteed: it settles",
        "  ok  gains are positive: they are",
        "  NO  no delay: 2 ms",
        "  --  nearby",
    ]
    assert found.failures == findings[1:]


def test_a_table_of_denavit_and_hartenberg():
    assert str(examples.arm("bac").dh_table()).splitlines() == [
        "joint     next      a  alpha    d         theta        n    p      axes",
        "m0.joint  m1.joint  0  -1.5708  0.2       0 + q        0    -0.2   intersecting",
        "m1.joint  m2.joint  0  -1.5708  0         3.14159 + q  0.2  0      intersecting",
        "m2.joint  m2.out    0  0        0.25 + q  0            0    -0.05  overlapping",
    ]


def test_an_assembly_incidence_matrix():
    assert str(examples.crab().aim()).splitlines() == [
        "    e1  e2  e3  e4  e5",
        "v0   3   0   0   0   0  S",
        "v1   4   2   0   5   0  S",
        "v2   0   5   3   0   0  S",
        "v3   0   0   2   0   0  S",
        "v4   0   0   0   2   3  S",
        "v5   0   0   0   0   5  S",
        "    DP  DS  DO  DS  DO",
    ]


def test_a_record_says_what_takes_its_bytes():
    data = record.encode(catalog["scout"], 7)
    head, version, *fields = record.describe(data).splitlines()
    assert head == (
        "module 00:00:00:00:00:07: scout, 1 kg, joints hinge (revolute), rotation (revolute)"
    )
    assert version.startswith(f"version 1, {len(data)} bytes, checksum ")
    sizes = [int(line.split()[-2]) for line in fields]
    assert sum(sizes) == len(data)
    counts = {line.split()[1]: int(line.split()[0]) for line in fields[1:]}
    assert counts == {
        "KIND": 1, "TITLE": 1, "SOURCE": 1, "BODY": 3, "JOINT": 2, "PORT": 5, "SHAPE": 4, "PAIR": 3
    }  # fmt: skip
    assert record.describe(record.decode(data)) == record.describe(data)
    assert record.id_text(2**48) == "01:00:00:00:00:00:00"


@pytest.mark.parametrize(
    ("modules", "text"),
    [
        (2, "Equations of motion: 2 modules, 1 joint"),
        (3, "Equations of motion: 3 modules, 2 joints"),
    ],
)
def test_equations_have_a_title(modules, text):
    assert examples.snake(modules).equations("physical").title == text
