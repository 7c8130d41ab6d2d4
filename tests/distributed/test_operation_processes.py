"""The robot of processes against the plant in real time: what a loaded machine allows to claim."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest

from modurob.distributed import PlantOptions, ProcessBus
from modurob.errors import StateError
from oracles import complains

GOAL = [0.2, 0.4, 0.6, 0.8, 0.1]
DEADLINE = 90.0  # [s]


def test_an_arm_of_processes_moves_loses_a_module_and_finishes():
    plant = PlantOptions(noise_q=0.03, noise_v=0.03)
    with ProcessBus(plant=plant, period=0.005, loss=0.1, seed=1) as bus:
        bus.wait_until_warm()
        assert "plant" in bus._addresses  # which takes seconds to start on a busy machine
        names = [bus.start(f"giusti_{letter}") for letter in "babac"]
        for one, other in pairwise(names):
            bus.plug(f"{one}.out", f"{other}.in")
        bus.plug("base.out", "m0.in")
        assert bus.wait(lambda: bus.settled(5), DEADLINE)
        bus.operation.record()
        bus.operation.goto(GOAL, 2.0)
        assert bus.wait(lambda: bus.operation.status().progress > 0.3, DEADLINE)
        bus.kill("m2")
        assert bus.wait(lambda: bool(bus.robot.assembly.silent), DEADLINE)
        assert bus.wait(lambda: bus.operation.status().mode == "wait", DEADLINE)
        bus.restart("m2")
        stopped = bus.pid("m1")
        assert bus.wait(lambda: bus.settled(5), DEADLINE)
        os.kill(stopped, signal.SIGSTOP)
        time.sleep(0.3)
        os.kill(stopped, signal.SIGCONT)
        if not bus.robot.assembly.silent:  # on a busy machine the others have lost m1 by now
            assert bus.operation.oldest_reading()[0] > 0.1
            assert any("readings at most 2 periods" in x for x in bus.operation.missing())
        assert bus.wait(lambda: not bus.operation.status().motion, DEADLINE)

        def is_there():
            q = bus.operation.status().q
            return len(q) == 5 and np.abs(q - GOAL).max() < 0.2

        assert bus.wait(is_there, DEADLINE)
        record = bus.operation.recorded()
        assert all(len(part.t) > 10 for part in record.parts)
        assert record.parts[0].model.nv == 5
        assert bus.clock.ticks > 100
        bus.start("backbone")
        bus.plug("m4.out", "m5.2")
        with complains(StateError, "m4.out does not dock to m5.2", "does not mate"):
            bus.wait(lambda: False, DEADLINE)
        os.kill(bus._processes.pid("plant"), signal.SIGKILL)
        with complains(StateError, "plant's process has ended"):
            bus.wait(lambda: False, DEADLINE)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs POSIX signals")
def test_a_coordinator_that_stops_for_a_second_goes_on():
    script = "arm bac\nwait 3 60\ngoto 10,20,0.05 in 1\nsleep 0.5\nwait done 60\nsleep 2\n"
    command = [sys.executable, "-m", "modurob", "bus", "--script", "-", "--json"]
    with subprocess.Popen(
        [*command, "--period", "0.005"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as bus:
        bus.stdin.write(script)
        bus.stdin.close()
        time.sleep(4.0)  # somewhere in the motion, or before or after it: it must not matter
        os.kill(bus.pid, signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(bus.pid, signal.SIGCONT)
        facts = json.loads(bus.stdout.read())
    assert bus.returncode == 0
    assert facts["organism"] == 3
    assert facts["modules"][1]["q"] == [pytest.approx(20, abs=5)]
