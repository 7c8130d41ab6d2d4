"""Modules that balance as processes: tests wait for conditions, with generous deadlines."""

import os
import time

import numpy as np
import pytest

import modurob as mr
from modurob.distributed import BalancingNetwork, BalancingProcesses, GearedDrive
from modurob.distributed.balancing.plant import STOPS, with_drives
from modurob.distributed.balancing.processes import DECISION, PERIOD_S
from modurob.distributed.mass.base import ends_of
from modurob.distributed.plant import BASE, Plant, PlantOptions
from oracles import complains

DEADLINE = 60.0  # [s]
STAYS = 1.0  # [s]
OVER = 0.05  # of the first distance: the center is where it shall be


def tree(branches=4, length=5):
    return mr.examples.superbot_tree(branches, length, np.random.default_rng(2))


def leaf_of(organism):
    return next(name for name in organism if not organism.children(name))


def center_of(model, q, without=()):
    """(2,) the center of mass of all modules but some, on the ground; from the datasheets."""
    total, moment = 0.0, np.zeros(3)
    for name, T in zip(model.body_names, model.forward_kinematics(q), strict=True):
        module, body = name.split(".")
        if module not in without:
            kind = model.organism.kind(module)
            sheet = kind.bodies[kind.body_index(body)]
            total += sheet.mass
            moment += sheet.mass * (T @ [*sheet.center_of_mass, 1.0])[:3]
    return moment[:2] / total


def test_in_rounds_twenty_modules_balance_one_dies_and_the_rest_balances_again():
    """At the clock of the processes; the base stands at the origin."""
    organism = tree()
    dead = leaf_of(organism)
    network = BalancingNetwork(organism, period=PERIOD_S, decision=DECISION)
    model = network.model
    first = np.linalg.norm(center_of(model, model.neutral()))

    def run(q, v, duration):
        path = mr.simulate(
            network.plant, q, v, duration, network, "SemiImplicitEuler", dt=1e-3, stops=STOPS
        )
        return path.q[-1], path.v[-1]

    q, v = run(model.neutral(), None, 0.7)
    assert np.linalg.norm(center_of(model, q)) < OVER * first
    network.kill(dead)
    hanging = q
    q, v = run(q, v, 0.8)
    assert np.abs(hanging - q).max() > 0.1  # the dead module's joints have given way
    assert np.linalg.norm(center_of(model, q, [dead])) < OVER * first
    assert np.linalg.norm(center_of(model, q)) > OVER * first


def test_twenty_processes_balance_one_dies_and_the_rest_balances_again():
    organism = tree()
    dead = leaf_of(organism)
    model = organism.model("physical")
    first = np.linalg.norm(center_of(model, model.neutral()))

    def settles(network, without=()):
        """Whether the center of all but some comes to where it shall be, and stays for a while."""
        since = time.monotonic()

        def stays():
            nonlocal since
            q = network.positions()
            center = center_of(model, [q[name] for name in model.joint_names], without)
            if np.linalg.norm(center) > OVER * first:
                since = time.monotonic()
            return time.monotonic() - since > STAYS

        return network.wait(stays, DEADLINE)

    with BalancingProcesses(organism) as network:
        memory = network._memory.path
        assert len({network.pid(name) for name in organism}) == 20
        assert settles(network)
        assert network.distance() < 2 * OVER * first
        network.kill(dead)
        assert network.wait(lambda: network.total("m0").mass < 0.96 * model.mass.sum(), DEADLINE)
        assert settles(network, [dead])
        known = network.total_in_world("m0")
        assert np.linalg.norm(known.center[:2]) < 2 * OVER * first
        with complains(mr.StateError, f"'{dead}' is dead"):
            network.total(dead)

        # a branch goes away altogether
        branch = organism.children("m0")[-1]
        gone = organism.subtree(branch)
        network.unplug(branch)
        rest, _ = organism.undock(branch)
        assert network.wait(
            lambda: abs(network.total("m0").mass - rest.model("physical").mass.sum()) < 0.06,
            DEADLINE,
        )
        assert settles(network, [dead, *gone])
        q, body = network.positions(), rest.model("physical")
        true = body.center_of_mass([q[name] for name in body.joint_names])
        np.testing.assert_allclose(network.center(), true, atol=0.1 * first)  # it moves on
        network.plug(branch)
        whole = model.mass.sum() - organism.kind(dead).mass
        assert network.wait(lambda: abs(network.total("m0").mass - whole) < 1e-9, DEADLINE)
    assert not os.path.exists(memory)
    with complains(mr.StateError, "closed"):
        network.center()


def test_the_plant_of_processes_moves_as_the_body_of_balance():
    organism, drive, tau = tree(2, 2), GearedDrive(), 2.0
    R_wb = organism.base_pose[:3, :3]
    plant = Plant(
        PlantOptions(
            gravity=R_wb.T @ [0, 0, -9.81],
            friction=drive.friction,
            torque=drive.torque,
            geared=True,
        )
    )
    for name in organism:
        plant.add(name, organism.kind(name))
    for entry in organism.dockings:
        plant.plug(*ends_of(entry), entry.turn)
    plant.plug((organism.base, ""), (BASE, ""))
    assert plant.refused == {}
    for k in range(400):
        for name in organism:
            plant.command(name, (tau,) * 3)
        plant.advance(1e-3 * (k + 1))
    model = with_drives(organism.model("physical"), drive, np.zeros(12, dtype=bool))
    path = mr.simulate(
        model, model.neutral(), None, 0.4, lambda t, q, v: np.full(12, tau), "SemiImplicitEuler",
        dt=1e-3, stops=STOPS,
    )  # fmt: skip
    assert (path.q[-1] > model.upper).any()  # on its stops
    found = dict(zip(plant.state.model.joint_names, plant.state.q, strict=True))
    # gravity is turned into the base's frame, which rounds
    np.testing.assert_allclose([found[n] for n in model.joint_names], path.q[-1], atol=1e-11)


@pytest.mark.parametrize(
    ("options", "pieces"),
    [
        ({"target": lambda t, c: c}, ("target", "function")),
        ({"target": (1.0, 2.0, 3.0)}, ("target", "(x, y)")),
        ({"stuck": ["m0.pitch"]}, ("stuck", "BalancingNetwork")),
        ({"speed": 0.0}, ("speed", "positive")),
        ({"period": -1.0}, ("period", "positive")),
        ({"margin": -1.0}, ("margin", "-1")),
        ({"decision": 0}, ("decision", "0")),
    ],
)
def test_bad_settings_are_named_before_any_process_starts(options, pieces):
    with complains(mr.StateError, *pieces):
        BalancingProcesses(tree(1, 2), **options)
