"""The bus in simulated time: what the coordinator finds out, and how fast."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

from modurob import Organism, catalog, examples
from modurob.distributed import PlantOptions, SimulatedBus
from modurob.distributed.bus.bus import Bus
from modurob.distributed.bus.coordinator import Coordinator
from modurob.distributed.bus.node import END_DEVICE, LOOSE, ROUTER, Node

ARM = "babac" * 4  # 20 modules
ROUGH = {"loss": 0.3, "reordering": 0.3, "duplication": 0.1, "delay": (0, 3)}


def rough(seed):
    return {**ROUGH, "rng": np.random.default_rng(seed)}


def attach(bus: Bus, word: str) -> None:
    """Start an arm, plug it together, then plug it into the base."""
    names = [bus.start(f"giusti_{letter}") for letter in word]
    for one, other in pairwise(names):
        bus.plug(f"{one}.out", f"{other}.in")
    bus.plug("base.out", f"{names[0]}.in")


def arm(word=ARM, **options):
    """An arm that the coordinator knows completely."""
    bus = SimulatedBus(**options)
    attach(bus, word)
    assert bus.run(lambda: bus.settled(len(word)))
    return bus


def assert_is_the_model_of(robot, organism):
    """Equal organisms, and the same numbers to the last bit."""
    assert robot.assembly.organism == organism
    model, expected = robot.model, organism.model("physical")
    rng = np.random.default_rng(5)
    q, v, a = rng.uniform(-1, 1, (3, model.nv))
    assert model.joint_names == expected.joint_names
    assert np.array_equal(model.mass_matrix(q), expected.mass_matrix(q))
    assert np.array_equal(model.inverse_dynamics(q, v, a), expected.inverse_dynamics(q, v, a))


# -- discovery -------------------------------------------------------------------------------------


def test_an_arm_of_20_modules_is_found_modelled_and_driven():
    bus = arm()
    assert_is_the_model_of(bus.robot, examples.arm(ARM))
    assert bus.robot.assembly.faults == ()
    assert bus.robot.certificate.guaranteed
    assert bus.robot.certificate.law == "computed torque"
    expected = examples.arm(ARM).model("physical").gravity_torque(np.zeros(20))
    assert [bus.torques[f"m{k}"][0] for k in range(20)] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_loss_and_reordering_change_nothing_in_the_result(seed):
    bus = arm(faults=rough(seed))
    counts = bus.transport.counts
    assert counts.lost / counts.sent > 0.25  # it did happen
    assert_is_the_model_of(bus.robot, examples.arm(ARM))
    assert bus.torques == arm().torques


def test_equal_seeds_give_equal_runs():
    one, other = arm("bab", faults=rough(3)), arm("bab", faults=rough(3))
    assert one.transport.counts == other.transport.counts
    assert one.rounds == other.rounds


def test_modules_have_the_roles_of_a_tree():
    bus = arm("bab")
    loose = bus.start("giusti_c")
    bus.run(lambda: False, 1.0)
    assert [bus.states[m].role for m in ("m0", "m1", "m2")] == [ROUTER, ROUTER, END_DEVICE]
    assert bus.states[loose].role == LOOSE


def test_a_tree_docks_with_the_ports_and_turns_that_were_reported():
    organism = examples.superbot_tree(3, 3, np.random.default_rng(2))
    assert {d.turn for d in organism.dockings} - {0}  # some are turned
    bus = SimulatedBus("PdGravity", faults=rough(1))
    for name in organism.modules:
        bus.start(organism.kind(name), name)
    for parent, port, child, child_port, turn, _ in reversed(organism.dockings):
        bus.plug(f"{child}.{child_port}", f"{parent}.{port}", turn)
    free = next(p for p in organism.free_ports(organism.base))
    bus.plug("base.out", f"{organism.base}.{free}")
    assert bus.run(lambda: bus.settled(len(organism)))
    assert bus.robot.assembly.organism == organism
    assert len(bus.torques) == len(organism)
    # three joints a module, in the datasheet's order: those of the model
    q, v, known = bus.robot.state(bus.coordinator.table)
    assert known.all()
    tau = bus.robot.controller.command(0.0, q, v, np.zeros(27))
    places = {name: k for k, name in enumerate(bus.robot.model.joint_names)}
    for name in organism.modules:
        own = [places[f"{name}.{joint.name}"] for joint in organism.kind(name).joints]
        assert bus.torques[name] == pytest.approx(tau[own])


@pytest.mark.parametrize(("shape", "depths"), [("chain", (2, 6, 10)), ("tree", (2, 3, 4))])
def test_rounds_grow_with_the_depth_of_the_tree_and_not_with_its_size(shape, depths):
    def rounds(depth):
        bus = SimulatedBus()
        kind = catalog["superbot_light"]
        front, modules = [bus.start(kind)], 1
        ends = [("base.out", f"{front[0]}.1")]
        for _ in range(depth - 1):
            ports = (2, 3) if shape == "tree" else (2,)
            new = [(bus.start(kind), f"{parent}.{port}") for parent in front for port in ports]
            ends += [(end, f"{name}.1") for name, end in new]
            front, modules = [name for name, _ in new], modules + len(new)
        for a, b in ends[1:]:
            bus.plug(a, b)
        bus.run(lambda: False, 0.1)  # neighbors know each other; now the coordinator comes
        begin = bus.rounds
        bus.plug(*ends[0])
        assert bus.run(lambda: len(bus.coordinator.survey.modules) == modules)
        assert bus.coordinator.survey.complete
        return bus.rounds - begin

    near, middle, far = map(rounds, depths)
    assert far - middle == middle - near  # a straight line ...
    assert middle - near == 2 * (depths[1] - depths[0])  # ... there and back for each further one


# -- changes ---------------------------------------------------------------------------------------


def test_a_module_that_joins_or_leaves_gives_a_new_model():
    bus = arm("bab")
    bus.start("giusti_c", "tip")
    bus.plug("m2.out", "tip.in")
    assert bus.run(lambda: bus.settled(4))
    longer = examples.arm("bab").dock("m2", "out", "tip", "in", kind="giusti_c")
    assert_is_the_model_of(bus.robot, longer)
    bus.unplug("m2")
    assert bus.run(lambda: bus.settled(2))
    assert_is_the_model_of(bus.robot, examples.arm("ba"))
    assert bus.torques.keys() == {"m0", "m1"}  # who is cut off lets its motor go


def test_the_death_of_a_module_is_noticed_within_three_heartbeats():
    bus = arm("babac")
    begin = bus.now
    bus.kill("m3")
    assert bus.run(lambda: bus.settled(3))
    assert bus.now - begin <= 3 * bus.heartbeat
    assert bus.torques.keys() == {"m0", "m1", "m2"}
    (fault,) = bus.robot.assembly.faults
    assert fault.startswith("silent: module 02:42:ac:11:00:04 at port out of 'm2'; what is known")
    # its connector is still closed: what hangs there is still carried
    assert list(bus.robot.assembly.silent.values()) == ["m3", "m4"]
    assert_is_the_model_of(bus.robot, examples.arm("babac"))


def test_an_arm_can_be_mended():
    bus = arm("babac")
    bus.kill("m1")
    assert bus.run(lambda: bus.settled(1))
    bus.unplug("m1")
    bus.plug("m0.out", "m2.in")
    assert bus.run(lambda: bus.settled(4))
    mended = Organism.start("giusti_b")
    for before, name, kind in (("m0", "m2", "b"), ("m2", "m3", "a"), ("m3", "m4", "c")):
        mended = mended.dock(before, "out", name, "in", kind=f"giusti_{kind}")
    assert_is_the_model_of(bus.robot, mended)
    assert bus.robot.assembly.faults == ()


def test_nothing_is_rebuilt_while_nothing_changes_even_with_loss():
    bus = arm(faults=rough(0))
    built = bus.builder.built
    bus.run(lambda: False, 12 * bus.heartbeat)
    assert bus.builder.built == built
    assert {state.epoch for state in bus.states.values()} == {1}  # nobody lost its way


def test_motors_get_new_torques_when_joints_move():
    bus = arm("bab")
    model = examples.arm("bab").model("physical")
    gravity = model.gravity_torque([0, 0.5, 0])
    assert abs(gravity[1]) > 1
    bus.sense("m1", [0.5])
    # a spring to the pose in which the robot was found: computed torque, kp from its gains
    kp = np.diagonal(bus.robot.controller.k0 * np.eye(3))[1]
    back = gravity - model.mass_matrix([0, 0.5, 0])[:, 1] * kp * 0.5
    assert bus.run(lambda: bus.torques["m1"] == (pytest.approx(back[1]),))
    bus.operation.hold()  # from now on this is the pose
    assert bus.run(lambda: bus.torques["m1"] == (pytest.approx(gravity[1]),))


def test_a_module_that_lost_its_way_for_a_moment_is_driven_again():
    bus = arm("bab")
    bus.unplug("base")
    assert bus.run(lambda: not bus.torques)
    assert bus.robot.assembly.organism is None or bus.run(lambda: bus.robot.controller is None)
    bus.plug("base.out", "m0.in")
    assert bus.run(lambda: bus.settled(3))
    assert len(bus.torques) == 3


def test_a_module_that_finds_its_way_anew_is_driven_again_without_a_new_model():
    bus = arm("bab")
    built, reports = bus.builder.built, bus.states["m2"].reports
    state = bus.states["m1"].copy()
    state.parent_epoch += 1  # as if the parent had lost its way and found another unheard
    bus.states["m1"] = state
    assert bus.run(lambda: "m1" not in bus.torques)
    assert bus.run(lambda: bus.torques.keys() == {"m0", "m1", "m2"} and bus.settled(3))
    assert bus.builder.built == built
    assert bus.states["m2"].reports > reports  # what it said may have been lost on the way


def test_lost_records_are_asked_for_again():
    bus = SimulatedBus()
    bus.start("giusti_b")
    # a coordinator that was switched on after the module told its record knows nothing of it
    state = bus.states["m0"].copy()
    state.record_sent = True
    bus.states["m0"] = state
    bus.plug("base.out", "m0.in")
    assert bus.run(lambda: bus.settled(1))
    assert bus.coordinator.asked == 1


# -- agents ----------------------------------------------------------------------------------------


def test_steps_are_pure(monkeypatch):
    """Every step of a lively run leaves its state alone and gives the same when repeated."""
    calls = []

    def checked(kind):
        step = kind.step

        def wrapped(agent, state, inbox, now, *reading):
            before = pickle.dumps(state)
            result = step(agent, state, inbox, now, *reading)
            assert pickle.dumps(state) == before
            assert pickle.dumps(step(agent, state, inbox, now, *reading)) == pickle.dumps(result)
            calls.append(kind)
            return result

        monkeypatch.setattr(kind, "step", wrapped)

    checked(Node)
    checked(Coordinator)
    bus = arm("ba", faults=rough(2))
    bus.kill("m1")
    assert bus.run(lambda: bus.settled(1))
    assert set(calls) == {Node, Coordinator}


def test_the_plant_of_a_clocked_bus_moves_in_every_round():
    """A round of a period of 10 ms is a step of the plant: rounding must not leave one out."""
    bus = SimulatedBus(plant=PlantOptions(), period=0.01)
    for _ in range(50):
        bus.round()
        assert bus.world.t == bus.now
    assert bus.now == pytest.approx(0.05)
