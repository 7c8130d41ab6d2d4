"""What a bus refuses: nodes, plants, operations and balancing without what they need."""

from dataclasses import replace

import numpy as np
import pytest

from modurob import Organism, StateError, UnknownNameError, catalog, examples
from modurob.distributed import BalancingNetwork, PlantOptions, SimulatedBus, balance
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.node import Node
from modurob.distributed.plant import BASE, Plant
from oracles import complains


def test_a_node_has_ports_and_a_record_of_some_size():
    most = [f"p{k}" for k in range(msg.MOST_PORTS)]
    assert Node(1, b"r", ports=most).ports == tuple(most)
    for ports in ([], [*most, "x"]):
        with complains(StateError, f"a node has 1 to {msg.MOST_PORTS} ports, got {len(ports)}"):
            Node(1, b"r", ports=ports)
    Node(1, bytes(msg.LARGEST_RECORD))
    with complains(StateError, f"{msg.LARGEST_RECORD + 1}"):
        Node(1, bytes(msg.LARGEST_RECORD + 1))


def test_names_of_modules_are_free_ones_and_a_plant_is_made_of_options():
    bus = SimulatedBus()
    assert [bus.start("giusti_b", "m1"), bus.start("giusti_b"), bus.start("giusti_b")] == [
        "m1", "m2", "m3"
    ]  # fmt: skip
    for name in ("m2", "base", "plant"):
        with complains(StateError, f"there is a '{name}' already"):
            bus.start("giusti_b", name)
    with complains(StateError, "plant is PlantOptions(...) or None, got True"):
        SimulatedBus(plant=True)


def test_an_operation_without_a_robot_says_what_is_missing():
    operation = SimulatedBus(plant=PlantOptions()).operation
    assert operation.missing() == ("there is no controller",)
    assert operation.status().mode == "idle"
    with complains(StateError, "no controller with a set point"):
        operation.rest(examples.arm("b").model("physical"))
    operation.record()
    assert operation.is_recording
    with complains(StateError, "the record is empty"):
        operation.recorded()
    assert not operation.is_recording
    with complains(StateError, "nothing is being recorded"):
        operation.recorded()


def test_a_motion_is_refused_when_the_body_changes_or_is_not_measured(monkeypatch):
    bus = SimulatedBus(plant=PlantOptions(), period=0.005)
    bus.plug("base.out", f"{bus.start('giusti_b')}.in")
    assert bus.run(lambda: bus.settled(1))
    model = bus.robot.model
    models = iter(
        [model, model, replace(model, joint_names=("m7.joint",), organism=None, options=None)]
    )
    with monkeypatch.context() as patch:
        patch.setattr(bus.operation, "_demand_joints", lambda: next(models))
        with complains(StateError, "is refused: the body has changed just now"):
            bus.operation.goto([0.1], 0.5)
    assert not bus.operation.status().motion
    assert len(bus.operation.hold_gains()) == 1
    with monkeypatch.context() as patch:
        patch.setattr(bus.operation, "robot", replace(bus.operation.robot, controller=None))
        assert bus.operation.hold_gains() == {}
    bus.operation._q[:] = np.nan
    with complains(StateError, "not all joints have been measured yet"):
        bus.operation.goto([0.1], 0.5)


def test_a_plant_keeps_what_cannot_be_docked_apart_and_knows_its_modules():
    plant = Plant()
    for name in ("m0", "m1", "m2"):
        plant.add(name, catalog["giusti_b"])
    plant.plug(("m0", "in"), (BASE, "out"))
    for one, other, reason in (
        (("m1", "in"), (BASE, "out"), "the base holds a robot already"),
        (("m1", "nowhere"), ("m0", "out"), "'m1' has no port nowhere"),
    ):
        plant.plug(one, other)
        assert plant.refused == {(one, other): (0, reason)}  # of a turn by 0 degrees
        assert plant.state.organism.modules == ("m0",)
        plant.unplug(other, one)
        assert not plant.refused
    with complains(UnknownNameError, "no fault 'tired'", "stuck"):
        plant.fault("m0", "tired")
    with complains(UnknownNameError, "no module 'm9': there are m0, m1, m2"):
        plant.payload("m9", 1.0)


def test_balancing_needs_an_organism_with_mass_and_one_start():
    with complains(StateError, "balancing takes an Organism, got str"):
        BalancingNetwork("tree")
    organism = Organism.start("superbot").dock("m0", 4, "m1", 1)
    with pytest.raises(StateError, match=r"q0 is one configuration, got shape \(2, \d\)"):
        balance(organism, duration=0.01, q0=np.zeros((2, organism.model("physical").nq)))
