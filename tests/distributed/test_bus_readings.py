"""Readings that cannot be used, and exceptions: faults with a name, and the bus goes on."""

from itertools import pairwise

import numpy as np
import pytest

from modurob import examples
from modurob.distributed import SimulatedBus
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.builder import _certified
from modurob.distributed.bus.robot import LARGEST_READING, BusRobot

BAD = {
    "not a number": ((np.nan, 0.0), "[nan, 0.0] is not finite"),
    "infinite": ((0.5, -np.inf), "[0.5, -inf] is not finite"),
    "too short": ((1.0,), "[1.0] has 1 numbers, expected 2"),
    "too long": ((1.0, 0.0, 2.0, 0.0), "has 4 numbers, expected 2"),
    "nothing": ((), "[] has 0 numbers, expected 2"),
    "huge": ((1e306, 0.0), "[1e+306, 0.0] is beyond 1e+06"),
    "fast": ((0.5, -1.01 * LARGEST_READING), "is beyond 1e+06"),
}


def arm(word="bab", **options):
    bus = SimulatedBus(**options)
    names = [bus.start(f"giusti_{letter}") for letter in word]
    for one, other in pairwise(names):
        bus.plug(f"{one}.out", f"{other}.in")
    bus.plug("base.out", "m0.in")
    assert bus.run(lambda: bus.settled(len(word)))
    return bus


def holding(word, q):
    """Gravity torques by module, from a model that never saw the bus."""
    tau = examples.arm(word).model("physical").gravity_torque(np.array(q))
    return {f"m{k}": (pytest.approx(x, abs=1e-12),) for k, x in enumerate(tau)}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_reading_is_a_fault_and_lets_the_motor_go_until_a_good_one_comes(what):
    values, complaint = BAD[what]
    bus = arm()
    bus.sense("m1", [0.5], [0.3])
    bus.sense("m2", [0.4])
    assert bus.run(lambda: bus.robot.state(bus.coordinator.table)[0].tolist() == [0.0, 0.5, 0.4])
    bus.operation.hold()
    built = bus.builder.built
    bus._signal("m1", msg.Sensed(values))
    assert bus.run(lambda: bus.robot.assembly.faults != () and bus.settled(3))
    (fault,) = bus.robot.assembly.faults
    assert fault.startswith("reading of 'm1': [")
    assert complaint in fault
    assert [bus.robot.assembly.names[m] for m in bus.robot.released] == ["m1"]
    # the others go on with the place where the joint was last, at rest
    expected = holding("bab", [0.0, 0.5, 0.4])
    del expected["m1"]
    assert bus.torques == expected
    bus.sense("m1", [0.7])
    assert bus.run(lambda: bus.robot.assembly.faults == () and bus.settled(3))
    bus.operation.hold()
    bus.run(lambda: False, 0.01)
    assert bus.robot.released == frozenset()
    assert bus.torques == holding("bab", [0.0, 0.7, 0.4])
    assert bus.builder.built == built  # it is the same body


def test_a_reading_at_the_limit_is_good():
    bus = arm("ba")
    bus._signal("m1", msg.Sensed((LARGEST_READING, 0.0)))
    assert bus.run(lambda: any(e.has_reading for e in bus.coordinator.table.values()))
    assert bus.run(lambda: bus.settled(2))
    assert bus.robot.assembly.faults == ()
    assert bus.torques.keys() == {"m0", "m1"}


def test_a_module_whose_first_reading_is_bad_is_not_driven():
    bus = SimulatedBus()
    bus.start("giusti_a")
    bus._signal("m0", msg.Sensed((np.nan, 0.0)))
    bus.plug("base.out", "m0.in")
    assert bus.run(lambda: bus.robot.assembly.faults != () and bus.settled(1))
    bus.run(lambda: False, 1.0)
    assert bus.torques == {}


def test_a_stream_of_bad_readings_is_one_fault():
    bus = arm("ba")
    bus._signal("m1", msg.Sensed((np.nan, 0.0)))
    assert bus.run(lambda: bus.robot.assembly.faults != ())
    robot = bus.robot
    bus._signal("m1", msg.Sensed((np.inf, 0.0)))
    bus.run(lambda: False, 0.5)
    assert bus.robot is robot


def test_a_fault_of_the_body_and_one_of_a_reading_stand_side_by_side():
    bus = arm()
    bus._signal("m1", msg.Sensed((np.nan, 0.0)))
    assert bus.run(lambda: bus.robot.assembly.faults != ())
    bus.kill("m2")
    assert bus.run(lambda: bus.settled(2))
    silent, reading = bus.robot.assembly.faults
    assert silent.startswith("silent: module")
    assert reading.startswith("reading of 'm1'")
    assert bus.torques.keys() == {"m0"}


def test_an_update_that_fails_is_a_fault_and_lets_all_motors_go_and_the_next_one_works(monkeypatch):
    bus = arm()
    monkeypatch.setattr(bus.robot.controller, "command", lambda *args: 1 / 0)
    bus.sense("m1", [0.5])
    assert bus.run(lambda: not bus.torques)
    assert bus.robot.assembly.faults == (
        "no torques, all motors are let go: ZeroDivisionError: division by zero",
    )
    assert bus.settled(3)
    monkeypatch.undo()
    bus.sense("m1", [0.6])
    assert bus.run(lambda: bus.settled(3) and bus.torques.keys() == {"m0", "m1", "m2"})
    assert bus.robot.assembly.faults == ()
    bus.operation.hold()
    bus.run(lambda: False, 0.01)
    assert bus.torques == holding("bab", [0.0, 0.6, 0.0])


def test_a_body_that_cannot_be_controlled_is_a_fault_and_the_next_body_works(monkeypatch):
    bus = arm()

    def broken(model):
        raise RuntimeError("no idea")

    monkeypatch.setattr(bus.builder, "_controller", broken)
    bus.kill("m2")
    bus.unplug("m2")
    assert bus.run(lambda: len(bus.robot.assembly.names) == 2 and not bus.torques)
    assert bus.robot.assembly.faults[-1] == "no controller: RuntimeError: no idea"
    assert bus.robot.model.nv == 2
    monkeypatch.undo()
    bus.start("giusti_c", "tip")
    bus.plug("m1.out", "tip.in")
    assert bus.run(lambda: bus.settled(3) and bus.torques.keys() == {"m0", "m1", "tip"})
    assert bus.robot.assembly.faults == ()


def test_a_law_without_a_certificate_drives_no_robot():
    class Law:
        def certificate(self):
            raise ZeroDivisionError("no gains")

    robot = _certified(BusRobot(controller=Law()))
    assert (robot.controller, robot.certificate) == (None, None)
    assert robot.assembly.faults == ("no controller: ZeroDivisionError: no gains",)


def test_a_dead_module_and_all_beyond_it_get_no_torque_and_the_rest_goes_on():
    bus = arm("babac")
    for name in bus.modules:
        bus.sense(name, [0.3])
    assert bus.run(lambda: all(e.values == (0.3, 0.0) for e in bus.coordinator.table.values()))
    assert bus.run(lambda: bus.settled(5))
    bus.operation.hold()
    addresses = {name: address for address, name in bus.robot.assembly.names.items()}
    bus.kill("m2")
    assert bus.run(lambda: bus.torques.keys() == {"m0", "m1"} and bus.settled(2))
    assert bus.builder.commanded().keys() == {addresses["m0"], addresses["m1"]}
    assert bus.states["m3"].torques is None  # it was not told: it lost its way
    # the rest still carries what hangs there
    expected = holding("babac", [0.3] * 5)
    assert bus.torques == {name: expected[name] for name in ("m0", "m1")}
