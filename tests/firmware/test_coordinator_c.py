"""The coordinator in C against the one in Python: the same frames, tree and torques."""

import os
import signal

import numpy as np
import pytest

from firmware.bus_in_c import NEEDS_COMPILER
from firmware.coordinator_in_c import PERIOD_S, SAME, CheckedCoordinator, random_changes
from modurob import ModuleType, StateError, catalog
from modurob.distributed import PlantOptions, ProcessBus, SimulatedBus
from modurob.distributed.bus import bus as bus_of_nodes
from oracles import complains

pytestmark = NEEDS_COMPILER
DEADLINE = 60.0  # [s]
ARRIVED = 0.1  # [rad] of a motion of 0.7, at the moment of its end, over links with loss


@pytest.fixture
def checked(double_runtime, monkeypatch):
    CheckedCoordinator.library = double_runtime.lib
    CheckedCoordinator.cycles = CheckedCoordinator.rebuilt = 0
    monkeypatch.setattr(bus_of_nodes, "Coordinator", CheckedCoordinator)
    return CheckedCoordinator


def attached(bus, word, pose=(), **parameters):
    before = "base.out"
    for k, letter in enumerate(word):
        name = bus.start(catalog[f"giusti_{letter}"].with_parameters(**parameters))
        if pose:
            bus.sense(name, [pose[k]])  # before it is found: this is where it is held
        bus.plug(before, f"{name}.in")
        before = f"{name}.out"


def test_a_coordinator_in_c_drives_a_changing_arm_as_the_one_in_python(checked):
    rng = np.random.default_rng(0)
    faults = {"loss": 0.1, "delay": (0, 2), "duplication": 0.1, "reordering": 0.2, "rng": rng}
    plant = PlantOptions(step=2e-3, noise_q=1e-3, noise_v=1e-2)
    bus = SimulatedBus(plant=plant, period=PERIOD_S, faults=faults, heartbeat=0.05)
    attached(bus, "babac", viscous=0.5, coulomb=0.1)
    assert bus.run(lambda: bus.settled(5))
    bus.push("m1.joint", 3.0, 0.1)
    bus.run(lambda: False, 0.2)
    assert max(abs(tau) for values in checked.torques.values() for tau in values) > 1
    bus.kill("m2")
    assert bus.run(lambda: bool(bus.coordinator.survey.lost))
    bus.run(lambda: False, 0.1)
    bus.restart("m2")
    assert bus.run(lambda: bus.settled(5))
    bus.write("m3", mass=0.7)
    bus.run(lambda: False, 0.2)
    bus.unplug("m4.in")
    assert bus.run(lambda: bus.settled(4))
    bus.plug("m3.out", "m4.in", 90)
    bus.run(lambda: False, 0.3)
    assert checked.rebuilt > 5
    assert checked.cycles > 50


def test_motions_in_c_are_those_in_python_while_modules_come_and_go(checked):
    faults = {"loss": 0.1, "delay": (0, 2), "rng": np.random.default_rng(1)}
    plant = PlantOptions(step=2e-3, noise_q=1e-4)
    bus = SimulatedBus(plant=plant, period=PERIOD_S, faults=faults, heartbeat=0.05)
    attached(bus, "bab", viscous=0.5, limits=[-1.0, 1.0])
    assert bus.run(lambda: bus.settled(3))
    modes = set()

    def run(seconds, until=lambda: False):
        def look():
            modes.add(bus.operation.status().mode)
            assert checked.mode() == bus.operation.status().mode
            return until()

        return bus.run(look, seconds)

    is_done = lambda: not bus.operation.status().motion  # noqa: E731
    checked.order(bus, "goto", [0.3, -0.4, 0.5], 0.6)
    run(0.3)
    checked.order(bus, "goto", [-0.3, 0.4, 0.5], 0.6)  # from the motion of now
    run(0.2)
    bus.kill("m1")
    run(0.5)
    bus.restart("m1")
    assert run(5.0, is_done)
    assert np.abs(bus.operation.status().set_point - [-0.3, 0.4, 0.5]).max() < SAME
    assert np.abs(bus.operation.status().q - [-0.3, 0.4, 0.5]).max() < ARRIVED
    checked.order(bus, "goto", [0.0, 0.0, 0.0], 1.0)
    run(0.1)
    bus.unplug("m2.in")  # and back: its joint goes on
    run(0.4)
    bus.plug("m1.out", "m2.in")
    assert run(5.0, is_done)
    checked.order(bus, "relax")
    run(0.1)
    checked.order(bus, "hold")
    run(0.1)
    assert checked.order(bus, "goto", [9.0, 0.0, 0.0], 1.0) == "beyond limits"
    assert modes == {"hold", "move", "wait", "relax"}


def test_a_native_robot_has_the_torques_of_a_python_one_and_survives_a_death():
    pose, names = (0.4, 0.3, -0.5, 0.2, 0.05), ["m0", "m1", "m2", "m3", "m4"]
    goal, seconds = (0.2, 0.4, -0.3, 0.1, 0.0), 0.3
    twin = SimulatedBus()
    attached(twin, "babac", pose)
    assert twin.run(lambda: twin.settled(5))
    held_at = dict(twin.torques)
    assert max(abs(tau) for (tau,) in held_at.values()) > 1
    twin.operation.goto(goal, seconds)
    assert twin.run(lambda: not twin.operation.status().motion and twin.settled(5))
    assert max(abs(twin.torques[name][0] - held_at[name][0]) for name in names) > 1
    with ProcessBus(native=["m0", "m2", "m3", "m4"], coordinator="native", heartbeat=0.2) as bus:
        attached(bus, "babac", pose)

        def is_same(torques):
            given = [bus.torques.get(name, (np.inf,))[0] for name in names]
            wanted = [torques[name][0] for name in names]
            return bus.settled(5) and np.allclose(given, wanted, rtol=0, atol=SAME)

        assert bus.wait(lambda: is_same(held_at), DEADLINE)
        bus.kill("m2")
        assert bus.wait(lambda: "m2" in bus.robot.assembly.silent.values(), DEADLINE)
        bus.operation.goto(goal, seconds)  # it waits for m2
        assert bus.wait(lambda: bus.operation.status().mode == "wait", DEADLINE)
        assert "waits for an answer of m2, m3, m4" in bus.operation.status().reason
        bus.restart("m2")
        bus.sense("m2", [pose[2]])
        assert bus.wait(lambda: is_same(twin.torques), DEADLINE)
        with complains(StateError, "a coordinator in C keeps its law and gains"):
            bus.builder.change_law("pd-gravity")
        bus.operation.relax()
        assert bus.wait(lambda: not any(bus.torques.values()), DEADLINE)
        bus.operation.hold()
        assert bus.wait(lambda: is_same(held_at), DEADLINE)
        bus.unplug("m4.in")
        assert bus.wait(lambda: bus.settled(4), DEADLINE)
        with complains(StateError, "a coordinator in C has goto, hold and relax"):
            bus.operation.follow(lambda t: None)
        os.kill(bus.pid("base"), signal.SIGKILL)
        with complains(StateError, "the coordinator's process has ended: modules get no torques"):
            bus.wait(lambda: False, DEADLINE)
        for refused in (
            lambda: bus.operation.goto(goal[:4], seconds),
            bus.operation.hold,
            bus.operation.relax,
            lambda: bus.wait(lambda: bus.settled(4), DEADLINE),
        ):
            with complains(StateError, "the coordinator's process has ended", "start a new bus"):
                refused()
        assert (bus.operation.status().reason,) == bus.operation.missing()
        assert "process has ended" in bus.operation.status().reason


def test_a_native_coordinator_has_one_law_and_the_usual_transport():
    with complains(StateError, "coordinator is python, native, got 'c'"):
        ProcessBus(coordinator="c")
    with complains(StateError, "a coordinator in C has the law computed-torque, got pd-gravity"):
        ProcessBus("pd-gravity", coordinator="native")


def test_trees_rings_and_twins_are_found_as_in_python(checked):
    random_changes(3, 30)
    assert checked.rebuilt > 5


def test_a_module_too_large_for_a_coordinator_in_c_is_named():
    data = catalog["giusti_b"].model_dump()
    mates = [f"connector-{k}" for k in range(33)]
    crowded = ModuleType(**{**data, "ports": [{**port, "mates": mates} for port in data["ports"]]})
    with ProcessBus(coordinator="native", heartbeat=0.1) as bus:
        bus.start(crowded)
        bus.plug("base.out", "m0.in")
        assert bus.wait(lambda: bus.robot.model is not None, DEADLINE)
        assert not bus.settled(1)
        assert bus.operation.status().reason == (
            "a coordinator in C has no room for m0: take the coordinator in Python"
        )
