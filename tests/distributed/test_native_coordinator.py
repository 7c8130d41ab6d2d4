"""The parent's view of a coordinator in C, from made-up lines of that program."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import modurob as mr
from modurob.control import ComputedTorque
from modurob.distributed.bus import native_coordinator
from modurob.distributed.bus.assembly import BusAssembly
from modurob.distributed.bus.coordinator import Coordinator
from modurob.distributed.bus.messages import Address
from modurob.distributed.bus.native_coordinator import NativeOperation, told_state, with_readings
from modurob.distributed.bus.robot import BusRobot
from modurob.distributed.bus.survey import Edge
from modurob.distributed.reliable import Newest
from oracles import complains

HEADERS = Path(mr.__file__).parent / "firmware/include/modurob"
PARENT, CHILD, THIRD = Address(0x1A, 7), Address(0x2B, 8), Address(0x3C, 9)


def hexed(text):
    return text.encode().hex()


def finding(kind, above, child, name="m", port="out", child_port="in", turn=90):
    return [
        kind, f"{above.uid:x}", above.boot, hexed(port), f"{child.uid:x}", child.boot,
        hexed(child_port), turn, hexed(name),
    ]  # fmt: skip


def test_kinds_and_refusals_are_those_of_the_program():
    kinds = re.search(r"enum mr_finding_kind \{(.*?)\}", (HEADERS / "coordinator.h").read_text(),
                      re.DOTALL)[1]  # fmt: skip
    names = [name.lower() for name in re.findall(r"MR_(\w+),", kinds)]
    ours = {"modules": "attached", "loops": "ring", "twins": "twin"}
    assert names == [ours.get(kind, kind) for kind in native_coordinator.KINDS]
    status = (HEADERS / "config.h").read_text()
    codes = {int(code): name for name, code in re.findall(r"MR_(\w+) = (-\d+)", status)}
    assert {codes[code] for code in native_coordinator.REFUSALS} == {"NOT_READY", "BEYOND_LIMITS"}
    assert codes[-19] == "NOT_READY"


BASE = Address(0, 3)
EDGE = Edge(PARENT, "out", CHILD, "in", 90)


@pytest.mark.parametrize(
    ("kind", "what", "entry"),
    [
        (1, "unreported", CHILD), (2, "unread", CHILD), (3, "unheard", (PARENT, "out")),
        (4, "silent", (PARENT, "out", CHILD)), (5, "lost", EDGE),
        (6, "loops", (EDGE, (PARENT, CHILD))), (7, "twins", (PARENT, CHILD)), (8, "skewed", EDGE),
    ],
)  # fmt: skip
def test_findings_of_a_tree_are_those_of_a_survey(kind, what, entry):
    state = Coordinator().start(1)
    tree = {"findings": [finding(0, BASE, PARENT, "a"), finding(kind, PARENT, CHILD, "b")]}
    new = told_state(state, tree, {"a": b"1", "b": b"2"}.get)
    assert new.survey.modules == (PARENT,)
    assert new.survey.edges == ()  # the first one is docked to the coordinator
    assert getattr(new.survey, what) == (entry,)
    others = {*new.survey._fields} - {"modules", what}
    assert not any(getattr(new.survey, other) for other in others)
    assert new.ready
    assert not state.ready
    assert (state.revision, new.revision) == (0, 1)
    assert {m: (x.report.name, x.record) for m, x in new.table.items()} == {
        PARENT: ("a", b"1"), CHILD: ("b", b"2")
    }  # fmt: skip
    assert (new.table[CHILD].report.origin, new.table[CHILD].report.number) == (CHILD, 0)


def test_readings_stay_with_the_modules_that_stay():
    state = Coordinator().start(1)
    tree = {"findings": [finding(0, BASE, PARENT), finding(0, PARENT, CHILD)]}
    first = told_state(state, tree, lambda name: None)
    assert first.survey.edges == (EDGE,)
    rows = [["1a", 7, 0, [0.5, 0.1], []], ["2b", 8, 0, [], []], ["3c", 9, 0, [1.0], []]]
    read = with_readings(first, rows)
    assert not first.table[PARENT].has_reading
    assert read.table[PARENT].values == (0.5, 0.1)
    assert read.table[PARENT].sensed == Newest(0, 0.0)
    assert not read.table[CHILD].has_reading
    assert THIRD not in read.table
    smaller = {"findings": [finding(0, BASE, PARENT), finding(0, PARENT, THIRD)]}
    after = told_state(read, smaller, lambda name: None)
    assert after.table.keys() == {PARENT, THIRD}
    assert after.table[PARENT].values == (0.5, 0.1)
    assert not after.table[THIRD].has_reading


def told(**changes):
    return {
        "command": 0, "refused": 0, "mode": "hold", "progress": 0.25, "set_point": [0.1, 0.2],
        "modules": [["1a", 7], ["2b", 8]], **changes,
    }  # fmt: skip


@pytest.fixture
def made():
    """An operation on an arm of two joints, and the commands that it has sent."""
    sent = []
    operation = NativeOperation(0.01, sent.append)
    organism = mr.examples.arm("ba")
    names = dict(zip((PARENT, CHILD), organism.modules, strict=True))
    model = organism.model("physical")
    robot = BusRobot(BusAssembly(organism, names), model, ComputedTorque(model))
    operation.adopt(robot)
    tree = {"findings": [finding(0, BASE, PARENT), finding(0, PARENT, CHILD)]}
    state = told_state(Coordinator().start(1), tree, lambda name: None)
    table = with_readings(state, [["1a", 7, 0, [0.5, 0.1], []]]).table
    operation.tell(told(), table)
    return operation, table, sent


def test_the_state_of_the_robot_is_that_of_the_program(made):
    operation, table, _ = made
    assert operation.period == 0.01
    status = operation.status()
    assert (status.mode, status.motion, status.progress, status.reason) == ("hold", "", 0.25, "")
    assert status.joints == ("m0.joint", "m1.joint")
    np.testing.assert_array_equal(status.set_point, [0.1, 0.2])
    np.testing.assert_array_equal(status.q, [0.5, np.nan])  # the second was not measured
    operation.tell(told(set_point=[0.7]), {})  # of another body
    np.testing.assert_array_equal(operation.status().set_point, [0.1, 0.2])
    operation.tell(told(modules=[["1a", 7]]), table)
    assert "has no room for m1: take the coordinator in Python" in operation.status().reason
    empty = NativeOperation(0.01, lambda command: None).status()
    assert (empty.mode, empty.progress, empty.joints, empty.reason) == ("idle", 0.0, (), "")


@pytest.mark.parametrize(
    ("state", "mode", "reason"),
    [
        ({"command": 2, "refused": -20}, "hold", "refused: it leaves the limits of a joint"),
        ({"command": 2, "refused": -19}, "hold", "refused: not all joints have been measured"),
        ({"command": 2, "refused": -18}, "hold", "refused: wrong numbers"),
        ({"command": 2, "mode": "move"}, "move", ""),
        ({"command": 2, "lost": True}, "hold", "goto in 2 s ended: none of its joints is left"),
        ({"command": 2, "mode": "wait"}, "wait", "waits for readings"),
        ({"command": 1}, "move", ""),  # not carried out yet
    ],
)
def test_a_motion_goes_on_waits_or_ends_with_the_reason(made, state, mode, reason):
    operation, table, sent = made
    operation.tell(told(), with_measured(table))
    operation.hold()
    assert operation.status().mode == "hold"  # nor is this one, which is no motion
    operation.goto([0.3, 0.4], 2)
    assert sent == [
        {"command": 1, "hold": True},
        {"command": 2, "goto": pytest.approx([0.3, 0.4]), "seconds": 2.0},
    ]  # fmt: skip
    operation.tell(told(**state), with_measured(table))
    status = operation.status()
    assert (status.mode, status.reason) == (mode, reason)
    assert status.motion == ("goto in 2 s" if mode in ("move", "wait") else "")
    operation.relax()
    assert sent[2:] == [{"command": 3, "relax": True}]


def with_measured(table):
    state = SimpleNamespace(table=table, copy=lambda: SimpleNamespace())
    return with_readings(state, [["2b", 8, 0, [0.1, 0.0], []]]).table


def test_a_motion_waits_for_silent_modules_by_name(made):
    operation, table, _ = made
    robot = operation.robot
    assembly = robot.assembly._replace(names={PARENT: "m0"}, silent={CHILD: "m1"})
    operation.adopt(BusRobot(assembly, robot.model, robot.controller))
    operation.tell(told(mode="wait"), table)
    assert operation.status().reason == "waits for an answer of m1"


def test_without_its_program_every_command_is_refused(made):
    operation, table, sent = made
    operation.tell(told(mode="move"), with_measured(table))
    operation.check_alive()
    assert "measured delays" in operation.missing()[0]
    operation.end("the coordinator's process has ended")
    for call in (operation.check_alive, operation.hold, operation.relax,
                 lambda: operation.goto([0.1, 0.2], 1.0)):  # fmt: skip
        with complains(mr.StateError, "the coordinator's process has ended"):
            call()
    assert sent == []
    status = operation.status()
    assert (status.mode, status.reason) == ("idle", "the coordinator's process has ended")
    assert operation.missing() == ("the coordinator's process has ended",)


def test_what_the_program_cannot_do_says_who_can(made):
    operation, table, _ = made
    operation.tell(told(), with_measured(table))
    for call, words in (
        (lambda: operation.follow(lambda t: t), "goto, hold and relax"),
        (operation.record, "records nothing"),
        (operation.recorded, "nothing is being recorded"),
        (lambda: operation.goto([9e9, 0.0], 1.0), "refused"),
    ):
        with complains(mr.StateError, words):
            call()
