"""Transports are chosen by name, and one from outside carries bus and mass network alike."""

import tempfile
from pathlib import Path

import numpy as np
import pytest

import modurob as mr
from modurob.distributed import (
    TRANSPORTS,
    MassNetwork,
    MassProcesses,
    ProcessBus,
    SimulatedBus,
)
from modurob.distributed.transports import network
from oracles import complains

DEADLINE = 60.0  # [s]
EXACT = 1e-12  # [kg]


@pytest.fixture
def unix(monkeypatch):
    """The name of a transport that the package does not have."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    from unix_sockets import UnixSockets

    monkeypatch.setitem(TRANSPORTS, "unix", UnixSockets)
    with tempfile.TemporaryDirectory() as place:  # short: names of such sockets are
        monkeypatch.setenv("UNIX_SOCKETS", place)
        yield "unix"


def attached(bus):
    for name, before in ((bus.start("giusti_b"), "base.out"), (bus.start("giusti_a"), "m0.out")):
        bus.plug(before, f"{name}.in")
    return bus


def test_a_transport_from_outside_carries_a_bus_of_processes(unix):
    with ProcessBus(transport=unix, loss=0.1) as bus:
        attached(bus)
        assert bus.wait(lambda: bus.settled(2) and len(bus.torques) == 2, DEADLINE)
        assert bus.robot.assembly.organism == mr.examples.arm("ba")
        assert str(bus.endpoint.address).endswith("/s")


def test_a_transport_from_outside_carries_a_mass_network_of_processes(unix):
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1)
    mass = 2 * mr.catalog["superbot"].mass
    with MassProcesses(organism, transport=unix) as net:
        assert net.wait(
            lambda: all(abs(net.total(name).mass - mass) < EXACT for name in organism), DEADLINE
        )


@pytest.mark.parametrize("name", ["in_process", "udp", "unix"])
def test_every_transport_carries_both_within_one_process(name, unix):
    organism = mr.Organism.random("superbot", 5, np.random.default_rng(3))
    masses = MassNetwork(organism, name)
    masses.settle(500)
    assert masses.total("m0").mass == pytest.approx(5 * mr.catalog["superbot"].mass)
    masses.transport.close()
    with SimulatedBus(transport=name) as bus:
        attached(bus)
        assert bus.run(lambda: bus.settled(2), 5.0)


def test_unknown_transports_and_those_within_one_process_are_named():
    with complains(mr.UnknownNameError, "'can'", "in_process, udp"):
        network("can")
    with complains(mr.StateError, "'in_process' works within one process only", "udp"):
        ProcessBus(transport="in_process")


def test_a_transport_that_processes_cannot_import_is_named(unix, monkeypatch):
    monkeypatch.setattr(TRANSPORTS[unix], "__module__", "__main__")
    with complains(mr.StateError, "cannot import UnixSockets", "module of its own"):
        ProcessBus(transport=unix)
