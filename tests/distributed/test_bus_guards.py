"""What a bus refuses: nodes, plants, operations and balancing without what they need."""

from dataclasses import replace

import numpy as np
import pytest

from modurob import (
    DockingError,
    Ground,
    ModurobError,
    Organism,
    StateError,
    UnknownNameError,
    catalog,
    examples,
)
from modurob.distributed import (
    BalancingNetwork,
    Fault,
    PlantOptions,
    ProcessBus,
    SimulatedBus,
    balance,
    stand,
)
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.node import Node
from modurob.distributed.plant import BASE, Plant
from modurob.errors import DatasheetError
from modurob.modules.record import encode, id_text
from modurob.reference import Reference
from oracles import complains

FREE = Organism.start("giusti_b", "m0").model("physical", "free")
DEATH = Fault(0.1, "m1", "die")


def ragged(t):
    """A motion whose velocities are of two joints."""
    return Reference(np.zeros(1), np.zeros(2), np.zeros(1))


HILLS = Ground(height=[[0.0, 0.1], [0.0, 0.2]])


def loose():
    """A bus with a module that is plugged into nothing."""
    bus = SimulatedBus()
    bus.start("giusti_b")
    return bus


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


def test_modules_without_an_id_get_those_of_the_guide():
    bus = SimulatedBus()
    names = [bus.start("giusti_b") for _ in range(3)]
    names.append(bus.start("giusti_b", uid=0x0242AC1100FF))
    names.append(bus.start("giusti_b"))
    assert [id_text(bus.modules[name].node.uid)[-5:] for name in names] == [
        "00:01", "00:02", "00:03", "00:ff", "01:00"
    ]  # fmt: skip
    assert id_text(bus.modules["m0"].node.uid) == "02:42:ac:11:00:01"


def test_ports_hold_one_other_port_with_a_turn_of_whole_degrees():
    bus = SimulatedBus()
    for _ in range(3):
        bus.start("giusti_b")
    bus.plug("m0.out", "m1.in", 359)
    assert bus.docked == {
        ("m0", "out"): (("m1", "in"), 359), ("m1", "in"): (("m0", "out"), 359)
    }  # fmt: skip
    docked = dict(bus.docked)
    for turn in (360, -1, 1.5):
        with complains(DockingError, "turn is whole degrees from 0 to 359", repr(turn)):
            bus.plug("m1.out", "m2.in", turn)
    for ends, words in (
        (("m0.out", "m2.in"), "m0.out already holds m1.in"),
        (("m2.in", "m1.in"), "m1.in already holds m0.out"),
        (("m2.in", "m2.in"), "m2.in already holds m2.in"),
    ):
        with complains(DockingError, words):
            bus.plug(*ends)
    for text in ("m2.side", "m2", "base.in"):
        with complains(UnknownNameError, f"no port '{text}': ports of"):
            bus.end(text)
    assert bus.docked == docked
    for what in ("m2", "m2.in", "base", "m0.in"):
        with complains(DockingError, f"{what} is not plugged in"):
            bus.unplug(what)
    bus.plug("m1.out", "m2.in")
    bus.unplug("m1")
    assert bus.docked == {}
    bus.plug("m2.in", "m2.out")  # both ends at one module
    bus.unplug("m2")
    assert bus.docked == {}


def test_joints_are_at_rest_at_zero_until_they_are_set(monkeypatch):
    told = []
    for options in ({}, {"plant": PlantOptions()}):  # drives of a plant measure by themselves
        bus = SimulatedBus(**options)
        monkeypatch.setattr(bus, "_signal", lambda *given: told.append(given))
        bus.start("superbot")
    bus = SimulatedBus()
    bus.start("superbot")
    monkeypatch.setattr(bus, "_signal", lambda *given: told.append(given))
    bus.sense("m0", [0.1, 0.2, 0.3])
    bus.sense("m0", [0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
    assert told == [
        ("m0", msg.Sensed((0.0,) * 6)), ("m0", msg.Sensed((0.1, 0.0, 0.2, 0.0, 0.3, 0.0))),
        ("m0", msg.Sensed((0.1, 1.0, 0.2, 2.0, 0.3, 3.0))),
    ]  # fmt: skip


def test_data_are_written_as_a_record_in_pieces(held, monkeypatch):
    told = []
    monkeypatch.setattr(held, "_signal", lambda *given: told.append(given))
    held.write("m0", mass=1.5)
    (address,) = held.robot.assembly.names
    uid, kind = held.modules["m0"].node.uid, catalog["giusti_b"].with_parameters(mass=1.5)
    assert {name for name, _ in told} == {BASE}
    assert {piece.target for _, piece in told} == {address}
    assert b"".join(piece.data for _, piece in told) == encode(kind, uid)


def test_a_round_without_a_clock_takes_a_millisecond_and_one_with_a_clock_a_tenth_of_its_period():
    for options, seconds in (({}, 1e-3), ({"plant": PlantOptions(), "period": 0.005}, 5e-4)):
        bus = SimulatedBus(**options)
        for _ in range(3):
            bus.round()
        assert bus.now == pytest.approx(3 * seconds)


def test_a_bus_says_whether_it_has_settled_and_a_condition_has_held(held):
    for bus in (SimulatedBus(), SimulatedBus(plant=PlantOptions(), period=0.005)):
        assert bus.settled(1) is False
        assert bus.run(lambda: False, 0.01) is False
        assert bus.run(lambda: True, 0.01) is True
    assert held.settled(1) is True
    assert held.settled(2) is False
    assert held.builder.rebuild(held.coordinator) is False  # nothing has changed


def test_the_plant_is_told_what_is_docked_and_undocked(monkeypatch):
    bus, told = SimulatedBus(plant=PlantOptions(), period=0.005), []
    monkeypatch.setattr(bus, "_plant", told.append)
    bus.start("giusti_b")
    bus.start("giusti_a")
    bus.plug("m0.out", "m1.in", 90)
    bus.unplug("m1.in")
    assert [(event["add"], event["kind"]["name"]) for event in told[:2]] == [
        ("m0", "giusti_b"), ("m1", "giusti_a")
    ]  # fmt: skip
    assert told[2:] == [
        {"dock": [("m0", "out"), ("m1", "in"), 90]}, {"undock": [("m1", "in"), ("m0", "out")]}
    ]  # fmt: skip
    without = SimulatedBus()
    monkeypatch.setattr(without, "_plant", told.append)
    without.start("giusti_b")
    without.plug("base.out", "m0.in")
    without.unplug("m0")
    assert len(told) == 4


def test_a_sampled_law_without_gains_settles_within_half_a_second():
    def settling(**settings):
        return SimulatedBus(**settings).builder.settings.get("settling_time")

    clocked = {"plant": PlantOptions(), "period": 0.005}
    assert settling(**clocked) == 0.5
    assert settling(**clocked, settling_time=0.8) == 0.8
    assert settling(**clocked, k0=100.0, k1=20.0) is None
    assert settling() is None


def test_a_module_has_at_most_the_joints_that_fit_into_the_memory_of_its_drive(monkeypatch):
    monkeypatch.setattr("modurob.distributed.bus.bus.MOST_JOINTS", 2)
    with complains(StateError, "a module of the bus has up to 2 joints, superbot has 3"):
        SimulatedBus().start("superbot")


def test_an_operation_without_a_robot_says_what_is_missing():
    assert SimulatedBus().operation.period == 0.0  # no clock
    operation = SimulatedBus(plant=PlantOptions(), period=0.004).operation
    assert operation.period == 0.004
    status = operation.status()
    assert (status.set_point.shape, status.q.shape, status.joints) == ((0,), (0,), ())
    with complains(StateError, "there is no robot"):
        operation.relax()  # it would not hold the pose in which it is found
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


def test_a_push_is_a_torque_on_a_joint_or_a_force_on_a_module_for_some_time(monkeypatch):
    bus, told = SimulatedBus(plant=PlantOptions(), period=0.005), []
    bus.start("giusti_b")
    monkeypatch.setattr(bus, "_plant", told.append)
    bus.push("m0.joint", 2, 0.25)
    bus.push("m0", [1, -2.0, 3], 0.5)
    assert told == [
        {"push": {"joint": "m0.joint", "torque": 2.0}, "seconds": 0.25},
        {"push": {"module": "m0", "force": [1.0, -2.0, 3.0]}, "seconds": 0.5},
    ]
    bus.payload("m0", 0.0)
    bus.payload("m0", 1e12)
    bus.fault("m0", "limp")
    assert told[2:] == [
        {"payload": "m0", "mass": 0.0}, {"payload": "m0", "mass": 1e12},
        {"fault": "m0", "as": "limp"},
    ]  # fmt: skip
    with complains(UnknownNameError, "no module 'm9'"):
        bus.payload("m9", 1.0)
    with complains(UnknownNameError, "no module 'm9'"):
        bus.fault("m9", "limp")
    assert len(told) == 5
    with complains(StateError, "mass must be a number from 0 to 1e+12"):
        bus.payload("m0", 1.1e12)
    for effort in ([1.0, np.nan, 0.0], [1.0, 2.0]):
        with complains(StateError, "a push is a torque or a force of three numbers"):
            bus.push("m0", effort, 0.1)
    with complains(UnknownNameError, "no joint 'm0': joints are m0.joint"):
        bus.push("m0", 1.0, 0.1)
    with complains(StateError, "this bus has no plant"):
        bus = SimulatedBus()
        bus.payload(bus.start("giusti_b"), 1.0)


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


@pytest.mark.parametrize(
    ("call", "pieces"),
    [
        (lambda bus: bus.plug(3, 4), ("a port is a text such as 'm0.out', got 3",)),
        (lambda bus: bus.unplug(None), ("a port is a text", "got None")),
        (lambda bus: bus.kill([]), ("no module []", "m0")),
        (lambda bus: bus.push(3, 1.0, 0.1), ("no module 3",)),
        (lambda bus: bus.start("giusti_b", record="MROB"), ("a record is bytes", "'MROB'")),
        (lambda bus: bus.start(3), ("a kind is a catalog name or a ModuleType, got 3",)),
        (lambda bus: bus.start("giusti_b", uid=0), ("id 0 is that of the coordinator",)),
        (lambda bus: bus.run(lambda: True, "long"), ("seconds", "'long'")),
        (lambda bus: bus.payload("m0", 1e300), ("mass", "1e+12", "1e+300")),
        (lambda bus: bus.write("m0", mass=1e300), ("bodies.0.mass", "1e+12")),
        (lambda bus: bus.sense("m0", [0.1]), ("drives measure the joints of this bus",)),
        (lambda bus: SimulatedBus().operation.hold(), ("there is no robot with joints",)),
        (lambda bus: loose().write("m0", mass=1.0), ("'m0' is not in the robot",)),
        (lambda bus: stand(examples.snake(2), ground=HILLS), ("stand takes a plane",)),
        (lambda bus: bus.operation.follow(3), ("a motion is a function of time", "callable")),
        (lambda bus: bus.operation.follow(lambda t: t), ("a motion is a function of time", "'q'")),
        (lambda bus: bus.operation.follow(np.sin, "long"), ("seconds", "'long'")),
        (lambda bus: SimulatedBus(faults=3), ("faults is a dict", "got 3")),
        (lambda bus: SimulatedBus(faults={"los": 0.3}), ("'in_process'", "'los'")),
        (lambda bus: bus.run(3), ("a condition is a function without arguments", "got 3")),
        (lambda bus: bus.run(lambda q: True), ("a condition is a function without arguments",)),
        (lambda bus: bus.operation.follow(ragged), ("q, v and a", "(1,), (2,)", "1 joints")),
        (lambda bus: SimulatedBus(sample_time=0.1), ("sampled with its period",)),
        (lambda bus: ProcessBus(drives=lambda: ("x:Y", {})), ("drives is a function of a module",)),
        (lambda bus: bus.operation.rest(3), ("rest takes a model", "m0.joint", "got 3")),
        (lambda bus: bus.operation.rest(FREE), ("rest takes a model on a fixed base", "<Model")),
        (lambda bus: bus.operation.follow(lambda t: int("x")), ("a motion is", "literal")),
        (lambda bus: bus.operation.goto([1.0], 1e300), ("seconds", "1e+06", "1e+300")),
        (lambda bus: bus.operation.goto([1j], 1.0), ("goto takes 1 finite", "m0.joint")),
        (lambda bus: bus.builder.change_law("pd-gravity", k9=3), ("kd, kp", "got k9")),
        (lambda bus: SimulatedBus(k9=3), ("computed-torque takes", "k0, k1", "got k9")),
        (lambda bus: SimulatedBus(np.zeros(2)), ("no control law", "pd-gravity")),
        (lambda bus: SimulatedBus(period=1e300), ("period", "0.0001 to 1", "1e+300")),
        (lambda bus: SimulatedBus(heartbeat=1e-9), ("heartbeat", "0.01 to 3600", "1e-09")),
        (lambda bus: SimulatedBus(faults={"loss": 0.1, "rng": 3}), ("rng", "Generator", "int")),
        (lambda bus: bus.start("giusti_b", uid=b"x"), ("uid is a whole number", "b'x'")),
        (lambda bus: bus.fault("m0", np.zeros(2)), ("no fault", "stuck, limp")),
        (lambda bus: PlantOptions(mass_factor=1e-300), ("mass_factor", "0.001 to 1000")),
        (lambda bus: PlantOptions(step=3.0), ("step", "1e-06 to 0.1", "3.0")),
        (lambda bus: PlantOptions(noise_q=1e300), ("noise_q", "0 to 1e+06")),
        (lambda bus: PlantOptions(torque=np.zeros(2)), ("torque must be a positive number",)),
        (lambda bus: ProcessBus(seed=[]), ("seed must be a whole number", "[]")),
        (lambda bus: bus.write("m0", size=1e300), ("bodies[0].inertia", "finite")),
        (lambda bus: Plant(3), ("a plant takes PlantOptions(...), got 3",)),
        (lambda bus: Plant().add("m0", 3), ("a name and a ModuleType", "'m0' and 3")),
        (lambda bus: Plant().plug(3, 4), ("an end is (module, port)", "got 3")),
        (lambda bus: Plant().unplug(("m9", "in"), ("base", "out")), ("no module 'm9'",)),
        (lambda bus: Plant().reading("m9"), ("no module 'm9'",)),
        (lambda bus: Plant().advance(np.inf), ("until", "inf")),
        (lambda bus: balance(examples.snake(2), faults=DEATH), ("a list of Fault", "'die'")),
        (lambda bus: balance(examples.snake(2), faults=3), ("faults is a list of Fault", "got 3")),
        (lambda bus: balance(examples.snake(2), stuck=3), ("stuck is a list of joints", "got 3")),
        (lambda bus: balance(examples.snake(2), loss="some"), ("loss", "'some'")),
    ],
)
def test_a_wrong_argument_is_one_clear_line(held, call, pieces):
    with pytest.raises(ModurobError) as caught:
        call(held)
    with complains(caught.type, *pieces):
        raise caught.value


@pytest.fixture(scope="module")
def held():
    """A robot of one module that holds its pose."""
    bus = SimulatedBus(plant=PlantOptions(), period=0.005)
    bus.plug("base.out", f"{bus.start('giusti_b')}.in")
    assert bus.run(lambda: bus.settled(1))
    return bus


def test_a_cycle_begins_in_every_period_of_ten_rounds(held):
    before = held.coordinator.cycle
    for _ in range(200):
        held.round()
    assert abs(held.coordinator.cycle - before - 20) <= 1
    assert held.world._commands["m0"][0] == held.torques["m0"]


def test_the_plant_of_a_simulated_bus_moves_in_rounds_of_its_step_or_more():
    for period, rounds, times in (
        (0.01, 30, 1e-3 * np.arange(1, 31)), (0.0095, 4, [0.0, 0.0019, 0.0019, 0.0038]),
    ):  # fmt: skip
        bus, found = SimulatedBus(plant=PlantOptions(step=1e-3), period=period), []
        for _ in range(rounds):
            bus.round()
            found.append(bus.world.t)
        np.testing.assert_allclose(found, times, atol=1e-12)


def test_modules_that_start_again_have_another_number_each_time():
    bus = loose()
    boots = {bus.states["m0"].links.address.boot}
    for _ in range(100):
        bus.restart("m0")
        boots.add(bus.states["m0"].links.address.boot)
    assert len(boots) == 101
    assert max(boots) < 2**32
    assert np.diff(sorted(boots)).min() > 2**32 / 200  # spread over all


def test_a_module_with_numbers_beyond_all_robots_is_left_out():
    bus = SimulatedBus(plant=PlantOptions(), period=0.005)
    heavy = catalog["giusti_a"].with_parameters(mass=1e300)
    with complains(DatasheetError, "giusti_a: bodies.0.mass is 5e+299"):
        bus.start(heavy)
    bus.start("giusti_a", uid=7, record=encode(heavy, 7))
    bus.plug("base.out", "m0.in")
    assert bus.run(lambda: bool(bus.robot.assembly.faults))
    (fault,) = bus.robot.assembly.faults
    assert "'m0' is left out" in fault
    assert "bodies.0.mass is 5e+299" in fault
    assert bus.robot.model is None


def test_elastic_joints_are_refused_by_name():
    bus = SimulatedBus(plant=PlantOptions(), period=0.005)
    bus.start(catalog["giusti_a"].with_parameters(stiffness=100.0, rotor_inertia=0.01))
    bus.plug("base.out", "m0.in")
    assert bus.run(lambda: bool(bus.robot.assembly.faults))
    (fault,) = bus.robot.assembly.faults
    assert "elastic joints are not driven on the bus: m0.joint" in fault
    assert bus.robot.controller is None


def test_a_robot_with_a_module_that_has_just_restarted_is_not_settled(held):
    (old,) = held.robot.assembly.names
    held.kill("m0")
    held.restart("m0")
    assert held.settled(1) is False
    assert held.run(lambda: held.settled(1))
    (new,) = held.robot.assembly.names
    assert new != old


def test_cycles_begin_when_there_is_a_robot():
    """Before that, modules are busy with finding each other, and there is nothing to drive."""
    bus = SimulatedBus(plant=PlantOptions(), period=0.005)
    bus.start("giusti_b")
    bus.plug("base.out", "m0.in")
    assert bus.run(lambda: bus.robot.model is not None or bus.coordinator.cycle > 0)
    assert bus.coordinator.cycle <= 1
    assert bus.run(lambda: bus.coordinator.answered > 10)
    bus.unplug("m0")
    assert bus.run(lambda: bus.robot.model is None)
    bus.run(lambda: False, 0.1)
    last = bus.coordinator.cycle
    bus.run(lambda: False, 0.1)
    assert bus.coordinator.cycle == last
