"""The mass network of real processes: tests wait for conditions, with generous deadlines."""

import json
import os
import select
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import modurob as mr
from modurob.distributed import InProcess, MassAgent, MassNetwork, MassProcesses, child
from modurob.distributed.mass import processes
from modurob.distributed.mass.properties import unpacked
from modurob.spatial import se3
from modurob.spatial.inertia import pseudo_inertia
from oracles import complains

DEADLINE = 60.0  # [s]
EXACT = 1e-12  # [kg, m, kg m^2] the whole has about a kilogram and a metre
CHAIN = (
    ("m0", 4, "m1", 3, 90),
    ("m1", 6, "m2", 2, 0),
    ("m2", 5, "m3", 1, 180),
    ("m3", 2, "m4", 6, 270),
)
FOOT = np.array([0.0, 0.0, -0.042])


def chain():
    """Five SuperBots in a row, none of its connectors like the others."""
    organism = mr.Organism.start("superbot")
    for *ends, turn in CHAIN:
        organism = organism.dock(*ends, turn=turn)
    return organism


def expected(organism, q, members):
    """For each of some modules, the mass properties of them all in its frame; centralised."""
    model = organism.model("physical")
    T = model.forward_kinematics(q)
    whole = np.zeros((4, 4))
    for name, T_wb in zip(model.body_names, T, strict=True):
        module, body = name.split(".")
        if module in members:
            kind = organism.kind(module)
            sheet = kind.bodies[kind.body_index(body)]
            set_ = pseudo_inertia(sheet.mass, sheet.center_of_mass, np.array(sheet.inertia))
            whole += T_wb @ set_ @ T_wb.T
    poses = {name: T[model.modules[name]] for name in members}
    return {name: unpacked(whole).moved(se3.inverse(T_wm)) for name, T_wm in poses.items()}


def error(found, wanted):
    parts = ("mass", "center", "inertia")
    return max(np.abs(getattr(found, part) - getattr(wanted, part)).max() for part in parts)


def know(network, q, members):
    """Whether some modules come to know the exact total of them all, and no more."""
    wanted = expected(network.organism, q, members)
    return network.wait(
        lambda: all(error(network.total(name), wanted[name]) < EXACT for name in members), DEADLINE
    )


def sees_the_world(known, model, q):
    """Whether a module at the end knows center and foot in the world, and where the leader is."""
    if known.T_wm is None or known.leader_port != "6" or len(known.contacts) != 1:
        return False
    center = unpacked(known.total).moved(known.T_wm).center
    foot = (known.T_wm @ [*known.contacts[0, :3], 1.0])[:3]
    return max(np.abs(center - model.center_of_mass(q)).max(), np.abs(foot - FOOT).max()) < EXACT


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_five_processes_know_the_whole_follow_a_joint_and_survive_a_death(loss, monkeypatch):
    organism = chain()
    model = organism.model("physical")
    q = model.random_configuration(np.random.default_rng(1))
    with MassProcesses(organism, loss=loss, seed=1) as network:
        pids = [network.pid(name) for name in organism]
        assert len({os.getpid(), *pids}) == 6
        network.measure(q, model=model)
        assert know(network, q, organism.modules)

        q[model.joint_names.index("m2.pitch")] += 0.5
        network.measure(q, model=model)
        assert know(network, q, organism.modules)
        others = 4 * organism.kind("m0").mass
        assert network.wait(
            lambda: abs((network.beyond("m1", 6) + network.beyond("m1", 3)).mass - others) < EXACT,
            DEADLINE,
        )

        # an answer that comes too late is not taken for the next one
        os.kill(pids[0], signal.SIGSTOP)
        monkeypatch.setattr(processes, "ANSWER_TIMEOUT_S", 0.01)
        with complains(mr.StateError, "'m0' runs, but has not answered"):
            network.total("m0")
        monkeypatch.undo()
        os.kill(pids[0], signal.SIGCONT)
        assert select.select([network._processes.pipe("m0")], [], [], DEADLINE)[0]
        network.touch("m0", FOOT, organism.base_pose)
        assert network.knowledge("m0").leads

        # the world runs outward from the one that stands in it
        assert network.wait(lambda: sees_the_world(network.knowledge("m4"), model, q), DEADLINE)
        assert network.wait(lambda: network.leader == "m0", DEADLINE)
        network.lift("m0")
        assert network.wait(lambda: network.knowledge("m4").T_wm is None, DEADLINE)

        with complains(mr.DockingError, "'m4' is docked to 'm3' already"):
            network.plug("m4")
        with complains(mr.DockingError, "'m0' is the base"):
            network.unplug("m0")
        network.unplug("m4")
        with complains(mr.DockingError, "'m4' is not docked to 'm3'"):
            network.unplug("m4")
        assert know(network, q, ("m0", "m1", "m2", "m3"))
        assert know(network, q, ("m4",))
        network.plug("m4")
        assert know(network, q, organism.modules)

        network.kill("m2")
        assert know(network, q, ("m0", "m1"))
        assert know(network, q, ("m3", "m4"))
        with complains(mr.StateError, "'m2' is dead"):
            network.total("m2")
        network.measure(0 * q, model=model)  # the dead do not feel anything
        assert know(network, 0 * q, ("m3", "m4"))
    assert not any(map(is_running, pids))
    network.close()
    with complains(mr.StateError, "closed"):
        network.measure(q, model=model)


def test_a_module_ends_by_itself_when_its_standard_input_does():
    """As the system closes it when the one that started the module is killed."""
    kind = mr.catalog["superbot"].model_dump(mode="json")
    settings = {
        "program": "modurob.distributed.mass.processes:MassProgram",
        "transport": "modurob.distributed.transports.udp:Udp",
        "path": sys.path,
        "light": False,
        "key": bytes(16).hex(),
        "loss": 0.0,
        "seed": 0,
        "kind": kind,
        "options": {},
    }
    result = subprocess.run(
        [sys.executable, "-P", child.__file__],
        input=f'{json.dumps(settings)}\n{{"ask": 7}}\n',
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert (result.returncode, result.stderr) == (0, "")
    address, answer = map(json.loads, result.stdout.splitlines())
    assert address["address"][0] == "127.0.0.1"
    assert answer["answer"] == 7
    alone = expected(mr.Organism.start("superbot"), np.zeros(3), ("m0",))["m0"]
    assert error(unpacked(np.array(answer["knowledge"]["total"])), alone) < EXACT


def test_a_process_that_does_not_come_up_is_named_and_nothing_stays(monkeypatch):
    started = []
    start = processes.Processes.start

    def watched(self, name, program, settings, **details):
        start(self, name, program, {}, **details)  # not enough for the program
        started.append(self.pid(name))

    monkeypatch.setattr(processes.Processes, "start", watched)
    with complains(mr.StateError, "process of 'm0' has ended", "'kind'"):
        MassProcesses(chain())
    assert len(started) == 5
    assert not any(map(is_running, started))


@pytest.mark.parametrize(
    ("options", "pieces"),
    [({"loss": 1.5}, ("loss", "1.5")), ({"heartbeat": 0}, ("heartbeat", "0", "positive"))],
)
def test_bad_settings_are_named(options, pieces):
    with complains(mr.StateError, *pieces):
        MassProcesses(chain(), **options)


def played(network, now):
    """Steps at the times when agents want to be woken, or when something comes in; then the time.

    Messages take a millisecond.
    """
    counts = network.transport.counts
    for _ in range(10_000):
        under_way = counts.sent - counts.delivered - counts.lost
        wakes = [agent.wake(network.states[name]) for name, agent in network.agents.items()]
        if min(wakes) == np.inf and not under_way:
            return now
        now = now + 1e-3 if under_way else max(now, min(wakes)) + 1e-9
        network.transport.tick()
        for name, agent in network.agents.items():
            inbox = network.transport.receive(name)
            if inbox or agent.wake(network.states[name]) <= now:
                network.states[name], outbox = agent.step(network.states[name], inbox, now)
                network.transport.send(name, outbox)
    raise AssertionError("they never rest")


def test_an_agent_that_sleeps_until_it_wants_to_be_woken_misses_nothing():
    organism = chain()
    model = organism.model("physical")
    rng = np.random.default_rng(3)
    network = MassNetwork(organism, InProcess(loss=0.4, rng=rng))
    now = 0.0
    for _ in range(5):
        q = model.random_configuration(rng)
        network.measure(q, model=model)
        now = played(network, now)
        wanted = expected(organism, q, organism.modules)
        assert max(error(network.total(name), wanted[name]) for name in organism) < EXACT


def test_an_agent_without_an_answer_wakes_to_repeat_to_give_up_and_then_seldom():
    agent = MassAgent(mr.catalog["superbot"], resend=0.25, give_up=1.0)
    state = agent.started({"1": 0}, np.random.default_rng(0))
    assert agent.wake(state) == -np.inf  # it has not spoken yet
    sent, now = [], 0.0
    while now <= 3.0:
        state, outbox = agent.step(state, [], now)
        sent += [now] * len(outbox)
        now = agent.wake(state)
    assert state.links["1"].gone
    assert sent == [0.0, 0.25, 0.5, 0.75, 1.75, 2.75]


def test_an_agent_wakes_for_its_heartbeat():
    agent = MassAgent(mr.catalog["superbot"], resend=0.25, give_up=8.0, heartbeat=0.125)
    state = agent.started({"1": 0}, np.random.default_rng(0))
    state, _ = agent.step(state, [], 2.0)
    assert agent.wake(state) == 2.125
    assert agent.step(state, [], 2.125)[1]


def test_the_error_that_ended_a_process_is_told():
    network = object.__new__(MassProcesses)
    told, tell = os.pipe()
    heard = [({}, [{"error": "no port 9"}]), ({}, [{"answer": 1}])]
    network._processes = SimpleNamespace(
        is_alive=lambda name: True, pipe=lambda name: told, listen=lambda pipe: heard.pop(0)
    )
    with complains(mr.StateError, "the process of 'm0' runs, but has not answered in time"):
        network._hear("m0", 0.0)
    os.write(tell, b".")
    with complains(mr.StateError, "the process of 'm0' has ended: no port 9"):
        network._hear("m0", 0.0)
    assert network._hear("m0", 0.0) == [{"answer": 1}]
    os.close(told)
    os.close(tell)
