"""The bus of real processes: tests wait for conditions, with generous deadlines."""

import os
import random
import socket
import subprocess
import sys
import time

import pytest

from modurob import StateError, examples
from modurob.distributed import ProcessBus, SimulatedBus, child
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.builder import RobotBuilder
from oracles import complains

DEADLINE = 60.0  # [s]
HEAVY = ("numpy", "pydantic", "scipy", "llvmlite")


def attached(bus, word):
    names = [bus.start(f"giusti_{letter}") for letter in word]
    before = "base.out"
    for name in names:
        bus.plug(before, f"{name}.in")
        before = f"{name}.out"
    return names


def until(condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_driven(bus, organism, torques):
    """Whether the bus has this robot and no faults, and its motors do this.

    On a busy machine a module may count as silent for a moment: asked again until all of it holds.
    """
    assembly = bus.robot.assembly
    return (
        bus.settled(len(organism))
        and assembly.organism == organism
        and assembly.faults == ()
        and bus.torques == torques
    )


def test_six_processes_become_an_arm_that_survives_loss_noise_and_death():
    # the same programs in simulated time: the same torques to the last bit
    twin = SimulatedBus()
    attached(twin, "babaca")
    assert twin.run(lambda: twin.settled(6))
    with ProcessBus(loss=0.3, seed=1, heartbeat=0.5) as bus:
        attached(bus, "babaca")
        pids = [bus.pid(name) for name in bus.modules]
        assert len(set(pids)) == 6
        arm = examples.arm("babaca")
        assert bus.wait(lambda: is_driven(bus, arm, twin.torques), DEADLINE)

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(random.Random(0).randbytes(200), bus.endpoint.address)
            stranger.sendto(bytes(60_000), bus.endpoint.address)
        assert bus.wait(lambda: bus.endpoint.refused.total() == 2, DEADLINE)

        bus.kill("m3")
        silent = "silent: module 02:42:ac:11:00:04 at port out of 'm2'; what is known"
        assert bus.wait(
            lambda: (
                bus.settled(3)
                and bus.robot.assembly.organism == arm
                and bus.robot.assembly.faults[0].startswith(silent)
                and bus.torques.keys() == {"m0", "m1", "m2"}
            ),
            DEADLINE,
        )

        bus.unplug("m3")
        bus.plug("m2.out", "m4.in")
        assert bus.wait(
            lambda: bus.settled(5) and len(bus.robot.assembly.organism or ()) == 5, DEADLINE
        )
    until(lambda: not any(map(is_running, pids)))


def test_modules_end_when_their_coordinator_is_killed():
    code = (
        "import time\n"
        "from modurob.distributed import ProcessBus\n"
        "bus = ProcessBus()\n"
        "pids = [bus.pid(bus.start('giusti_b')) for _ in range(2)]\n"
        "bus.plug('m0.out', 'm1.in')  # they are up and listen\n"
        "print(*pids, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as host:
        pids = [int(word) for word in host.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(is_running, pids))
        host.kill()
    until(lambda: not any(map(is_running, pids)))


def test_closing_twice_is_fine_and_a_bus_needs_no_modules():
    bus = ProcessBus()
    assert not bus.wait(lambda: False, 0.01)
    bus.close()
    bus.close()


def test_a_module_needs_nothing_heavy():
    code = (
        "import runpy, sys\n"
        f"program = runpy.run_path({child.__file__!r})\n"
        "program['without_the_package']()\n"
        "import modurob.distributed.bus.node, modurob.distributed.transports.udp\n"
        f"print(*(set({HEAVY!r}) & sys.modules.keys()))\n"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == []


def test_waiting_needs_a_time():
    with ProcessBus() as bus, complains(StateError, "seconds"):
        bus.wait(lambda: True, 0)


def test_a_failure_in_the_background_is_told_to_whoever_waits_and_the_bus_goes_on(monkeypatch):
    with ProcessBus() as bus:
        bus.wait_until_warm()
        monkeypatch.setattr(bus.builder, "update", lambda state, t: 1 / 0)
        bus.start("giusti_b")
        bus.plug("base.out", "m0.in")  # does not fail for what happens in the background
        with pytest.raises(ZeroDivisionError):
            bus.wait(lambda: False, DEADLINE)
        monkeypatch.undo()
        bus.sense("m0", [0.1])

        def settled():
            try:
                return bus.wait(lambda: bus.settled(1), DEADLINE)
            except ZeroDivisionError:  # it failed again before the update was mended
                return False

        until(settled)
        assert bus.wait(lambda: bus.settled(1), DEADLINE)  # nothing is left of the failure


def test_a_datagram_that_fails_is_told_and_keeps_the_coordinator_from_nothing(monkeypatch):
    with ProcessBus() as bus:
        bus.wait_until_warm()
        step = bus._root.step

        def broken(state, inbox, now):
            if any(message.port != msg.OWN for message in inbox):
                raise RuntimeError("a datagram")
            return step(state, inbox, now)

        monkeypatch.setattr(bus._root, "step", broken)
        bus.start("giusti_b")
        bus.plug("base.out", "m0.in")
        with pytest.raises(RuntimeError, match="a datagram"):
            bus.wait(lambda: False, DEADLINE)
        assert bus._wait(lambda: "out" in bus.coordinator.links.ports, DEADLINE)
        monkeypatch.undo()
        until(lambda: bus._wait(lambda: bus.settled(1), DEADLINE))


def test_a_coordinator_that_cannot_be_set_up_tells_so():
    with ProcessBus("PdGravity", kp=-1, kd=1) as bus, complains(StateError, "kp must be positive"):
        bus.wait_until_warm()


def test_a_bad_reading_of_a_process_lets_its_motor_go_and_the_bus_goes_on():
    with ProcessBus() as bus:
        attached(bus, "ba")
        assert bus.wait(lambda: bus.settled(2) and len(bus.torques) == 2, DEADLINE)
        bus.sense("m1", [1e306])
        fault = "reading of 'm1': [1e+306, 0.0]"
        assert bus.wait(
            lambda: (
                bus.settled(2)
                and bus.torques.keys() == {"m0"}
                and [f.startswith(fault) for f in bus.robot.assembly.faults] == [True]
            ),
            DEADLINE,
        )
        bus.kill("m1")
        assert bus.wait(lambda: bus.settled(1), DEADLINE)


def test_gains_of_each_joint_do_not_keep_the_coordinator_from_starting():
    RobotBuilder("computed-torque", k0=[100.0, 90.0, 80.0], k1=[20.0, 19.0, 18.0]).warm_up()
    with pytest.raises(StateError, match="three finite numbers"):
        RobotBuilder(gravity="down")


def test_a_process_that_cannot_run_its_program_is_one_line(capfd):
    with ProcessBus(drives=lambda name: ("no_such_package:Motor", {})) as bus:
        bus.start("giusti_b")
        with complains(StateError, "process of 'm0' has ended", "no_such_package"):
            bus.plug("base.out", "m0.in")
    assert "Traceback" not in capfd.readouterr().err
    with ProcessBus(drives=lambda name: "motors") as bus:
        with complains(StateError, "package.module:Class", "'motors'"):
            bus.start("giusti_b")
        assert not bus.modules
    with ProcessBus(drives=lambda name: ("motors:Motor", {"port": open})) as bus:
        with complains(StateError, "options of a drive are numbers, texts, lists", "port"):
            bus.start("giusti_b")
        assert not bus.modules
