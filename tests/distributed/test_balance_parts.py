"""Parts of balancing by themselves: results, faults, agents' settings, levers and sums."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.text import Text

import modurob as mr
from modurob.distributed import BalancingNetwork, Fault, GearedDrive, LockStep, balance
from modurob.distributed.balancing import agent as agents
from modurob.distributed.balancing import laws
from modurob.distributed.balancing import processes as plants
from modurob.distributed.balancing import run as runs
from modurob.distributed.balancing.agent import BalancingAgent, region_of
from modurob.distributed.balancing.faults import FaultyLinks, checked_faults
from modurob.distributed.balancing.knowledge import InputReader, inputs_of
from modurob.distributed.balancing.laws import Joints, law_named
from modurob.distributed.balancing.network import BalancingModules
from modurob.distributed.balancing.on_ground import StandingModules
from modurob.distributed.balancing.plant import with_drives
from modurob.distributed.balancing.processes import BalancingProcesses
from modurob.distributed.balancing.result import Balanced
from modurob.distributed.balancing.standing_processes import StandingProcesses
from modurob.distributed.balancing.support import support_polygon
from modurob.distributed.mass.module_body import Levers, shared_sums
from modurob.distributed.mass.state import MassEstimate
from modurob.drawing import charts
from modurob.sim import SimulationError
from oracles import complains

SUPERBOT = mr.catalog["superbot"]


# -- results ---------------------------------------------------------------------------------------


class Made(Balanced):
    """A run whose distances the test makes up."""

    t = channels = distance = None


def run(distance, step=0.1, **values):
    made = object.__new__(Made)
    t = step * np.arange(len(distance))
    made.__dict__.update(t=t, distance=np.array(distance), **values)
    return made


@pytest.mark.parametrize(
    ("distance", "first", "reached"),
    [
        ([1.0, 0.5, 0.05, 0.2, 0.05, 0.01, 0.01, 0.01], 0.2, 0.4),
        ([1.0, 0.5, 0.1, 0.1, 0.1, 0.1], None, None),  # a tenth is not below a tenth
        ([1.0, 0.5, 0.3, 0.3, 0.05], 0.4, None),  # not for long enough
        ([1.0, 0.5, 0.3, 0.05, 0.04, 0.04], 0.3, 0.3),
        ([2.0, 0.19, 0.19, 0.19, 0.19], 0.1, 0.1),
    ],
)
def test_the_center_is_there_below_a_tenth_of_the_first_distance_for_200_ms(
    distance, first, reached
):
    made = run(distance)
    assert made.first_reached == (None if first is None else pytest.approx(first))
    assert made.reached == (None if reached is None else pytest.approx(reached))


def test_a_run_that_begins_on_its_target_is_there_from_the_beginning():
    assert run([np.nan, np.nan], step=1.0).reached == 0.0
    assert run([1.0, 0.05], step=0.2).reached == 0.2  # 200 ms are enough


def test_a_run_tells_its_distances_in_widths_its_messages_and_its_speed():
    center = np.array([[0.3, 0.4, 9.0], [0.1, 0.0, 9.0]])
    estimates = np.array(
        [center + np.array([0, 0, 2.0]), center + np.array([3.0, 4, 0])]
    ).transpose(1, 0, 2)
    channels = {
        "center": center, "target": np.array([[0.0, 0.0], [0.1, 0.2]]), "estimates": estimates,
        "sent": np.array([[1.0, 2.0], [3.0, 5.0]]),
    }  # fmt: skip
    made = run([0, 0, 0, 0], width=0.1, channels=channels, seconds=0.6, law="shared")
    np.testing.assert_allclose(Balanced.distance.fget(made), [5.0, 2.0])
    np.testing.assert_allclose(made.estimate_errors, [[2.0, 5.0], [2.0, 5.0]])
    assert made.sent.tolist() == [[1, 2], [3, 5]]
    assert made.messages == 8
    assert made.real_time == pytest.approx(0.5)
    made.__dict__["distance"] = np.array([5.0, 2.0, 2.0, 0.1])
    assert repr(made) == (
        "<Balanced: 2 modules, shared, distance 5.000 to 0.100 widths, not reached>"
    )
    made.__dict__["distance"] = np.array([5.0, 0.1, 0.1, 0.1, 0.1])
    made.__dict__["t"] = 0.1 * np.arange(5)
    assert repr(made).endswith("reached at 0.10 s>")


@pytest.mark.parametrize("moves", [False, True])
def test_the_picture_of_a_run_shows_distance_errors_and_path_in_their_units(moves):
    n = 8
    center = np.column_stack([np.linspace(0.3, 0.1, n), np.linspace(0.4, 0.2, n), np.zeros(n)])
    target = np.tile([0.1, 0.2], (n, 1))
    if moves:
        target[4:] += 0.05
    estimates = center[:, None] + np.array([[0, 0, 0], [0, 0.002, 0]])
    channels = {
        "center": center, "target": target, "estimates": estimates, "sent": np.ones((n, 2)),
    }  # fmt: skip
    distance = [5.0, 3.0, 0.4, 0.4, 0.3, 0.2, 0.1, 0.1] if moves else [5.0] * 5 + [0.1] * 3
    made = run(distance, width=0.1, channels=channels, law="shared", seconds=1.0)
    figure = made.plot(title="A title")
    assert any(text.get_text() == "A title" for text in figure.texts)
    assert figure.get_size_inches().tolist() == [9.6, 5.6]
    above, path, errors = figure.axes
    way, tenth, reached = above.lines
    np.testing.assert_allclose(way.get_xydata(), np.column_stack([made.t, distance]))
    assert set(tenth.get_ydata()) == {0.5}
    assert set(reached.get_xdata()) == {made.reached}
    assert made.reached == pytest.approx(0.2 if moves else 0.5)
    said = {text.get_text().strip(): text for text in above.texts}
    assert said.keys() == {"a tenth of the start", f"{made.reached:.2f} s"}
    assert said["a tenth of the start"].get_position() == (made.t[-1], 0.5)
    assert said["a tenth of the start"].get_horizontalalignment() == "right"
    place = said[f"{made.reached:.2f} s"]  # within the picture
    assert place.get_position()[0] == made.reached
    assert place.get_horizontalalignment() == ("left" if moves else "right")
    assert above.get_ylim()[0] == 0.0
    for plane in (above, errors):
        assert plane.get_xlim() == (0.0, made.t[-1])
    assert errors.get_yscale() == "log"
    exact, other = errors.lines
    np.testing.assert_allclose(exact.get_ydata(), 1e-6)  # a logarithm needs more than nothing
    np.testing.assert_allclose(other.get_ydata(), 2.0)  # millimeters
    whole, start, end, aim = path.lines
    np.testing.assert_allclose(whole.get_xydata(), center[:, :2] / 0.1)
    np.testing.assert_allclose(start.get_xydata(), center[:1, :2] / 0.1)
    np.testing.assert_allclose(end.get_xydata(), center[-1:, :2] / 0.1)
    np.testing.assert_allclose(aim.get_xydata(), target[: n if moves else 1] / 0.1)
    assert (aim.get_linestyle(), aim.get_marker()) == (("--", "None") if moves else ("None", "+"))
    assert [text.get_text() for text in path.get_legend().texts] == ["start", "end", "target"]
    assert path.get_aspect() == 1.0
    for plane, words in (
        (above, ("", "distance from the line [widths]")), (path, ("x [widths]", "y [widths]")),
    ):  # fmt: skip
        assert (plane.get_xlabel(), plane.get_ylabel()) == words
    assert errors.get_xlabel() == "time [s]"
    assert "[mm]" in errors.get_ylabel()


def test_the_picture_of_a_run_is_drawn_with_lines_markers_and_texts_that_can_be_read():
    center = np.column_stack([np.linspace(0.3, 0.1, 8), np.linspace(0.4, 0.2, 8), np.zeros(8)])
    channels = {
        "center": center, "target": np.tile([0.1, 0.2], (8, 1)), "estimates": center[:, None] + 0.1,
        "sent": np.ones((8, 1)),
    }  # fmt: skip
    made = run([5.0, 3.0, 0.4, 0.4, 0.3, 0.2, 0.1, 0.1], width=0.1, channels=channels, law="shared")
    above, path, errors = made.plot().axes
    blue, orange, green = charts.PALETTE[:3]
    assert [line.get_color() for line in above.lines] == [blue, orange, charts.FAINT]
    assert [line.get_linewidth() for line in above.lines] == [1.6, 1.0, 0.8]
    assert [line.is_dashed() for line in above.lines] == [False, True, False]
    assert [(line.get_linewidth(), line.get_alpha()) for line in errors.lines] == [(0.7, 0.8)]
    whole, start, end, aim = path.lines
    assert [line.get_color() for line in path.lines] == [blue, blue, green, orange]
    assert [line.get_marker() for line in (start, end, aim)] == ["o", "s", "+"]
    assert [line.get_markersize() for line in (start, end, aim)] == [6, 6, 12]
    assert (whole.get_linewidth(), aim.get_markeredgewidth()) == (1.2, 1.6)
    assert path.margins() == (0.15, 0.15)
    assert path.get_title(loc="left") == "center of mass from above"
    texts = [x for plane in (above, path, errors) for x in plane.findobj(Text) if x.get_text()]
    assert all(7 <= text.get_fontsize() <= 12 for text in texts)
    (top,) = [text for text in above.texts if text.get_text().endswith(" s ")]
    assert 0.9 < top.get_position()[1] / above.get_ylim()[1] < 1.0
    boxes = [plane.get_position() for plane in (above, errors, path)]
    assert boxes[0].width / boxes[2].width == pytest.approx(1.5)
    assert boxes[0].height == pytest.approx(boxes[1].height)


def test_the_picture_of_a_run_that_has_not_arrived_has_no_such_time():
    channels = {
        "center": np.ones((2, 3)), "target": np.zeros((2, 2)), "estimates": np.ones((2, 1, 3)),
        "sent": np.ones((2, 1)),
    }  # fmt: skip
    figure = run([5.0, 5.0], width=0.1, channels=channels, law="shared").plot()
    assert len(figure.axes[0].lines) == 2
    assert [text.get_text() for text in figure.axes[0].texts] == ["a tenth of the start"]
    assert any("1 modules balance, law: shared" in text.get_text() for text in figure.texts)


def test_one_word_with_the_ending_of_a_picture_is_its_path(monkeypatch):
    written = []
    monkeypatch.setattr("modurob.drawing.charts.write", lambda figure, path: written.append(path))
    channels = {
        "center": np.ones((2, 3)), "target": np.zeros((2, 2)), "estimates": np.ones((2, 1, 3)),
        "sent": np.ones((2, 1)),
    }  # fmt: skip
    made = run([5.0, 5.0], width=0.1, channels=channels, law="shared")
    made.plot("run.PNG")
    made.plot(path="other.svg")
    assert written == ["run.PNG", "other.svg"]
    with complains(mr.errors.FileError, "'.txt'"):
        made.plot(path="run.txt")


# -- faults, drives, laws --------------------------------------------------------------------------


def test_faults_come_in_the_order_of_their_times():
    faults = [Fault(0.3, "a", "die"), Fault(0.1, "b", "freeze"), Fault(0.1, "a", "reboot")]
    assert checked_faults(faults, ["a", "b"]) == [faults[1], faults[2], faults[0]]
    Fault(0.0, "a", "die")
    with complains(mr.StateError, "time of a fault"):
        Fault(-0.1, "a", "die")
    with complains(mr.UnknownNameError, "no fault 'sleep': faults are freeze, die, reboot"):
        Fault(0.1, "a", "sleep")


def test_faults_happen_in_the_round_of_their_time():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1)
    faults = [Fault(0.002, "m0", "freeze"), Fault(0.0, "m1", "die"), Fault(0.002, "m1", "reboot")]
    links = FaultyLinks(LockStep(organism), 0.0, faults, 1e-3, None)
    seen = []
    for k in range(3):
        links.round(1e-3 * k, think=False)
        seen.append((links.asleep.tolist(), links.dead.tolist()))
    assert seen == [([False, True], [False, True])] * 2 + [([True, False], [False, False])]


def test_a_dead_module_is_forgotten_after_a_quarter_of_a_second():
    network = LockStep(mr.Organism.start("superbot").dock("m0", 4, "m1", 1))
    links = FaultyLinks(network, 0.0, [Fault(0.01, "m1", "die")], 1e-3, None)
    known = []
    for k in range(262):
        links.round(1e-3 * k, think=False)
        known.append(round(network.totals().mass[0] / SUPERBOT.mass, 9))
    # what it sent last arrived at 10 ms
    assert known == [*known[:1], *[2.0] * 258, *[1.0] * 3]
    with complains(mr.StateError, "a loss of messages needs rng="):
        FaultyLinks(network, 0.1, [], 1e-3, None)
    with complains(mr.StateError, "loss must be a probability from 0 to below 1"):
        FaultyLinks(network, 1.0, [], 1e-3, np.random.default_rng(0))


def test_lost_messages_are_those_that_somebody_sent():
    network = LockStep(mr.Organism.start("superbot").dock("m0", 4, "m1", 1))
    faults = [Fault(0.002, "m1", "freeze")]
    links = FaultyLinks(network, 0.1, faults, 1e-3, np.random.default_rng(0))
    drawn = [[0.1, 0.09], [0.05, 0.1], [0.1, 0.05], [0.05, 0.1]]  # to m0, to m1
    links._rng = SimpleNamespace(random=lambda slots: np.array(drawn.pop(0)))
    lost = []
    for k in range(4):
        links.round(1e-3 * k, think=False)
        lost.append(links.lost)
        if not k:  # a chance of a tenth: below it
            np.testing.assert_allclose(network.totals().mass, SUPERBOT.mass * np.array([2, 1]))
    assert lost == [1, 2, 3, 3]


def test_drives_have_no_negative_friction_and_some_torque():
    GearedDrive(0.0, 1e-9)
    for wrong, words in (
        ((-0.1, 1.0), "friction"),
        ((0.1, 0.0), "torque"),
        ((0.1, -1.0), "torque"),
    ):
        with complains(mr.StateError, f"the drives' {words}"):
            GearedDrive(*wrong)


def test_servos_hold_with_stiffness_and_friction_up_to_their_torque():
    drive = GearedDrive(friction=0.5, torque=2.0)
    goal, rate, q = np.array([0.3, 1.0, -1.0]), np.array([0.2, 0.0, 0.0]), np.array([0.1, 0.0, 0.0])
    np.testing.assert_allclose(drive.servo(4.0, goal, rate, q), [0.8 + 0.1, 2.0, -2.0])


def test_drives_add_their_friction_and_stuck_joints_do_not_move():
    model = mr.Organism.start("superbot").model("physical")
    found = with_drives(model, GearedDrive(0.25, 1.0), np.array([False, True, False]))
    np.testing.assert_allclose(found.viscous[[0, 2]], model.viscous[[0, 2]] + 0.25)
    assert found.viscous[1] >= 1e9
    assert found.organism is None
    for wrong in (3, None, (0.3, 6.0)):
        with complains(mr.StateError, "drive is a GearedDrive", repr(wrong)):
            with_drives(model, wrong, np.zeros(3, dtype=bool))


def test_torques_of_a_network_end_at_those_of_its_drives():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1)
    weak, strong = (BalancingNetwork(organism, drive=GearedDrive(0.3, x)) for x in (0.05, 1e3))
    q = np.linspace(-0.6, 0.8, 6)
    for _ in range(6):
        held, free = (network.command(0.0, q, np.zeros(6), None) for network in (weak, strong))
    assert free.max() > 0.05
    assert free.min() < -0.05
    assert np.abs(free).min() < 0.05
    np.testing.assert_allclose(held, np.clip(free, -0.05, 0.05))


def test_the_shared_law_is_the_formula_of_the_guide():
    """For joints with levers of their own, one of which does not know the world."""
    rng, n = np.random.default_rng(5), 4
    levers = Levers(*rng.standard_normal((2, n, 3)), *rng.uniform(1, 2, (1, n)),
                    *rng.standard_normal((2, n, 3)), rng.uniform(0.5, 2, n))  # fmt: skip
    root = rng.standard_normal((2, 2))
    total, effort = 3.0, root @ root.T + np.eye(2)
    center, momentum = np.array([0.2, -0.1, 0.5]), np.array([0.3, 0.7])
    P = np.zeros((1, 4, 4))
    P[0, :3, 3], P[0, 3, 3] = total * center, total
    sums = np.array([[effort[0, 0], effort[0, 1], effort[1, 1], *momentum]])
    owner = np.zeros(n, dtype=int)
    known = inputs_of(levers, P, np.eye(4)[None], sums, np.array([True]), owner, owner > 0)
    law = law_named("shared", 0.08, 9.81, 20.0)
    law.reset(n)
    far = Joints(*np.zeros((2, n)), np.full(n, -9.0), np.full(n, 9.0), np.full(n, 0.4))
    assert not law.torque(far, 1e-3).any()  # before the first decision
    target = np.tile([0.25, 0.1], (n, 1))
    law.decide(known, far, target)
    S, j = effort / total**2, levers.moment[:, :2] / total
    e = target[0] - center[:2] - momentum / total / (2 * 20.0)
    pull = np.linalg.solve(S + 1e-3 * np.trace(S) * np.eye(2), e)
    share = j @ pull / levers.inertia
    here = far._replace(v=rng.standard_normal(n))
    wanted = levers.inertia * (400.0 * share - 40.0 * here.v) + 9.81 * levers.moment[:, 2]
    np.testing.assert_allclose(law.torque(here, 1e-3), wanted + 0.4 * here.v, rtol=1e-9)
    braked = wanted - 400.0 * levers.inertia * share + 0.4 * here.v
    at_limits = here._replace(q=np.where(share > 0, here.upper, here.lower))
    np.testing.assert_allclose(law.torque(at_limits, 1e-3), braked, rtol=1e-9)
    law.decide(known._replace(knows=np.zeros(n, dtype=bool)), far, target)  # lost: no share
    np.testing.assert_allclose(law.torque(here, 1e-3), braked, rtol=1e-9)
    with complains(mr.UnknownNameError, "no law 'fuzzy'"):
        law_named("fuzzy", 0.08, 9.81, 20.0)


def test_inputs_of_joints_are_those_of_their_modules():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1, kind="superbot_light")
    network = LockStep(organism)
    rng = np.random.default_rng(6)
    network.measure(rng.uniform(-0.5, 0.5, 6), rng.standard_normal(6))
    for _ in range(3):
        network.round()
    known, owner = InputReader(network).read(), [0, 0, 0, 1, 1, 1]
    np.testing.assert_array_equal(known.total, network.total[owner, 3, 3])
    np.testing.assert_allclose(known.center, network.centers()[owner])
    np.testing.assert_array_equal(known.momentum, network.sums[owner, 3:])
    xx, xy, yy = network.sums[0, :3]
    np.testing.assert_array_equal(known.effort[0], [[xx, xy], [xy, yy]])
    np.testing.assert_array_equal(known.levers.inertia[:3], network.levers[0].inertia[0])
    np.testing.assert_array_equal(known.levers.inertia[3:], network.levers[1].inertia[0])
    assert known.levers.axis.shape == (6, 3)
    assert not known.prismatic.any()
    assert known.knows.all()


def test_joints_that_move_next_to_nothing_have_no_share():
    levers = Levers(*np.zeros((2, 3, 3)), np.ones(3), np.zeros((3, 3)),
                    np.array([[1.0, 2, 0], [3, 5, 0], [7, 9, 0]]),
                    np.array([2.0, 1e-13, 4.0]))  # fmt: skip
    found = shared_sums(levers, np.array([0.5, 2.0, 3.0]), np.array([True, True, False]))
    np.testing.assert_allclose(found, [0.5, 1.0, 2.0, 0.5 + 6 + 21, 1.0 + 10 + 27])


# -- agents ----------------------------------------------------------------------------------------


def test_agents_take_the_settings_of_their_law():
    plain = BalancingAgent(SUPERBOT)
    assert isinstance(plain._law, laws.Shared)
    assert (plain._law.rate, plain._law.gravity, plain.period) == (25.0, 9.81, 1e-3)
    assert plain._moves.all()
    other = BalancingAgent(SUPERBOT, "distance", width=0.5, friction=0.3, stuck=["roll"])
    assert (other._law.width, other._law.scaled_by) == (0.5, "distance")
    assert BalancingAgent(SUPERBOT, "distance")._law.width == SUPERBOT.size
    assert other._friction.tolist() == [0.3] * 3
    assert other._moves.tolist() == [name != "roll" for name in other.body.joint_names]
    for options, words in (
        ({"rate": 0}, "rate"), ({"margin": -1.0}, "margin"), ({"period": 0.0}, "period"),
        ({"decision": 0}, "decision"), ({"decision": 1.5}, "decision"),
    ):  # fmt: skip
        with complains(mr.StateError, words):
            BalancingAgent(SUPERBOT, **options)


def test_agents_decide_at_every_few_ticks_from_the_first_on(monkeypatch):
    decided = []
    monkeypatch.setattr(laws.Shared, "decide", lambda self, *given: decided.append(given[1].q[0]))
    agent = BalancingAgent(SUPERBOT, decision=3)
    state = agent.started({}, np.random.default_rng(0))
    for tick in range(7):
        state = agent.sensed(state, np.full(3, 0.1 + tick), np.zeros(3))
        assert state.tick == tick
        assert not state.announced
        state, _ = agent.step(state, [], 1e-3 * tick)
    assert decided == [0.1, 3.1, 6.1]


def test_stuck_joints_and_those_at_their_limits_are_not_free():
    agent = BalancingAgent(SUPERBOT, stuck=["roll"])
    state = agent.started({}, np.random.default_rng(0))
    names = agent.body.joint_names
    state.law._share = np.ones(3)
    q = np.where(np.array(names) == "yaw", agent.body.upper, 0.0)
    free = agent.sensed(state, q, np.zeros(3)).free
    assert dict(zip(names, free.tolist(), strict=True)) == {
        "pitch": True, "roll": False, "yaw": False
    }  # fmt: skip


def estimate(contacts, T_wm=None):
    T_wm = np.eye(4) if T_wm is None else T_wm
    return MassEstimate(np.eye(4), {}, np.array(contacts).reshape(-1, 7), True, None, T_wm)


def test_contacts_of_one_plane_have_the_polygon_and_others_the_region_with_friction(monkeypatch):
    used = []

    def region(contacts):
        used.append(len(contacts))
        return support_polygon(contacts)

    monkeypatch.setattr(agents, "stability_region", region)
    up = [0, 0, 1.0, 0.5]

    def is_plane(contacts):
        used.clear()
        agents._region.cache_clear()
        found = region_of(estimate(contacts), 0.0)
        assert found is not None
        return not used

    feet = [[0.0, 0, 0, *up], [1, 0, 0, *up], [0, 1, 0, *up]]
    assert is_plane(feet)
    assert is_plane([*feet[:2], [0, 1, 0.0099, *up]])
    assert not is_plane([*feet[:2], [0, 1, 0.01, *up]])  # higher by a centimeter
    assert is_plane([[*foot[:6], 0.0] for foot in feet])  # level ground needs no friction
    tilted = [0, np.sin(0.049), np.cos(0.049), 0.5]
    assert is_plane([*feet[:2], [0, 1, 0, *tilted]])
    steep = [0, np.sin(0.051), np.cos(0.051), 0.5]
    assert not is_plane([*feet[:2], [0, 1, 0, *steep]])
    slope = [np.sin(0.4), 0, np.cos(0.4)]  # steeper than the friction of one of them

    def on_slope(friction):
        return [[x, y, -x * np.tan(0.4), *slope, m] for (x, y), m in
                zip(((0, 0), (1, 0), (0, 1)), friction, strict=True)]  # fmt: skip

    assert is_plane(on_slope([0.5, 0.43, 0.5]))
    assert not is_plane(on_slope([0.5, 0.41, 0.5]))


def test_contacts_are_rounded_to_nanometers_and_regions_are_kept():
    up = [0, 0, 1.0, 0.5]
    feet = np.array([[0.0, 0, 0, *up], [1, 0, 0, *up], [0, 1, 0, *up]])
    first = region_of(estimate(feet), 0.1)
    moved = feet.copy()
    moved[0, 0] = -3e-10
    assert region_of(estimate(moved[::-1]), 0.1) is first  # the same, in whatever order
    moved[0, 0] = 2e-9
    assert region_of(estimate(moved), 0.1) is not first
    np.testing.assert_allclose(first.corners, support_polygon(feet).shrunk(0.1).corners)
    there = np.eye(4)
    there[:2, 3] = 5.0, 6.0
    np.testing.assert_allclose(region_of(estimate(feet, there), 0.1).corners.mean(axis=0),
                               first.corners.mean(axis=0) + np.array([5, 6]))  # fmt: skip
    assert region_of(estimate(np.zeros((0, 7))), 0.1) is None


def test_networks_tell_their_agents_what_they_need():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1)
    network = BalancingNetwork(
        organism, "momentum", gravity=3.7, stuck="m1.roll", drive=GearedDrive(0.2, 5.0),
        period=2e-3,
    )  # fmt: skip
    np.testing.assert_allclose(network.model.gravity, [0, 0, -3.7])
    one, other = network.agents.values()
    assert one._moves.all()
    assert other._moves.sum() == 2
    assert other._friction.tolist() == [0.2] * 3
    assert other._law.width == SUPERBOT.size
    assert one.period == network.sample_time == network.period == 2e-3
    assert len(network.contacts_in_world("m0")) == 1  # the base touches below its origin
    np.testing.assert_allclose(network.contacts_in_world("m0")[0, :6], [0, 0, 0, 0, 0, 1])
    elastic = SUPERBOT.with_parameters(joint="pitch", stiffness=5.0, rotor_inertia=0.01)
    springs = BalancingNetwork(organism.dock("m1", 4, "m2", 1, kind=elastic))
    assert len(springs.model.joint_names) == 9  # a joint's own drive is balanced, not its spring
    network.torques["m1"][:] = 1.0
    network.kill("m1")
    assert not network.torques["m1"].any()
    with complains(mr.UnknownNameError, "m1.knee"):
        BalancingNetwork(organism, stuck=["m1.roll", "m1.knee"])


def test_modules_decide_once_they_know_where_the_world_is():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1)
    network = BalancingNetwork(organism)

    def knows(name):
        return network.agents[name]._inputs(network.view(name)).knows.tolist()

    assert (knows("m0"), knows("m1")) == ([True] * 3, [False] * 3)  # the base is on the ground
    network.round(2)
    assert (knows("m0"), knows("m1")) == ([True] * 3, [True] * 3)


class Watched:
    """A law that notes when it decides, and gives no torque."""

    def __init__(self):
        self.ticks, self.decided, self.targets = 0, [], []

    def reset(self, joints):
        self.ticks = 0

    def decide(self, known, here, target):
        self.decided.append(self.ticks)
        self.targets.append(target[0].tolist())

    def torque(self, here, dt):
        self.ticks += 1
        return np.zeros(len(here.q))

    def free(self, here):
        return np.ones(len(here.q), dtype=bool)


def test_a_law_decides_every_five_milliseconds_and_acts_in_each():
    law = Watched()
    run = balance(mr.examples.snake(2), law, duration=0.018)
    assert law.decided == [0, 5, 10, 15]
    assert law.ticks == 18
    assert run.law == "Watched"
    assert not run.tau.any()
    balance(mr.examples.snake(2), law, duration=0.004, faults=[Fault(0.004, "m1", "die")])
    with complains(mr.StateError, "a fault at 0.005 s lies outside of the run of 0.004 s"):
        balance(mr.examples.snake(2), law, duration=0.004, faults=[Fault(0.005, "m1", "die")])


def test_a_target_that_moves_is_where_it_is_at_the_time_of_each_decision():
    law = Watched()
    balance(
        mr.examples.snake(2), law, duration=0.018,
        target=lambda t, center: np.broadcast_to([t, 2 * t], (*center.shape[:-1], 2)),
    )  # fmt: skip
    np.testing.assert_allclose(law.targets, np.outer([0.0, 0.005, 0.01, 0.015], [1, 2]))


def test_a_run_that_diverges_says_what_helps(monkeypatch):
    trajectory = object()

    def diverge(*given, **options):
        raise SimulationError("diverged at 0.3 s", 0.3, trajectory)

    monkeypatch.setattr(runs, "simulate", diverge)
    with pytest.raises(SimulationError, match="take more friction") as caught:
        balance(mr.examples.snake(2), "default")
    assert str(caught.value).startswith("diverged at 0.3 s; lower the gains")
    assert (caught.value.time, caught.value.trajectory) == (0.3, trajectory)


def test_an_organism_without_mass_is_not_balanced():
    light = SUPERBOT.with_parameters(mass=0.0)
    with (
        pytest.warns(mr.errors.ModelWarning, match="give bodies a mass"),
        complains(mr.StateError, "the organism has no mass"),
    ):
        balance(mr.Organism.start(light))


def test_a_run_knows_its_body():
    run = balance(organism := mr.examples.snake(2), duration=0.002)
    assert run.organism == organism


def test_a_run_that_is_told_no_more_has_distances_in_meters_and_lost_nothing():
    run = balance(mr.examples.snake(2), q0=[0.3], duration=0.002)
    plain = Balanced(run.parts)
    assert (plain.law, plain.lost, plain.seconds) == ("", 0, 0.0)
    apart = np.hypot(*(run.center[:, :2] - run.target).T)
    np.testing.assert_allclose(plain.distance, apart)
    width = mr.catalog["backbone"].size
    np.testing.assert_allclose(run.distance, apart / width)


def test_a_run_tells_its_progress_to_whom_it_is_given_and_else_shows_none(monkeypatch):
    fractions, shown, simulate = [], [], runs.simulate

    def watched(*given, progress, **options):
        shown.append(progress)
        return simulate(*given, progress=progress, **options)

    monkeypatch.setattr(runs, "simulate", watched)
    for progress in (None, fractions.append):
        balance(mr.examples.snake(2), duration=0.002, progress=progress)
    assert shown[0] is False
    assert fractions[-1] == 1.0
    assert sorted(fractions) == fractions


def test_springs_of_joints_are_stiff_in_a_run():
    elastic = SUPERBOT.with_parameters(joint="pitch", stiffness=5.0, rotor_inertia=0.01)
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1, kind=elastic)
    assert balance(organism, duration=0.002).q.shape == (2, 6)


def test_accelerations_of_a_run_are_means_of_the_control_period_that_begins():
    run = balance(mr.examples.snake(2), q0=[0.3], duration=0.02, record=5e-3)
    before, after = (run.at(run.t[:-1] + dt)[1] for dt in (0.0, 1e-3))
    assert np.abs(run.a).max() > 0.1
    np.testing.assert_allclose(run.a[:-1], (after - before) / 1e-3, atol=1e-9)


def test_runs_have_whole_periods_one_at_least_and_steps_of_one_at_most():
    snake = mr.examples.snake(2)
    for duration, record, count in ((1e-4, 1e-4, 1), (1e-3, 1e-3, 1), (0.0026, 0.001, 3)):
        run = balance(snake, q0=[0.3], duration=duration, record=record)
        np.testing.assert_allclose(run.t, 1e-3 * np.arange(count + 1), atol=1e-12)
    long = balance(snake, q0=[0.3], duration=0.003, record=1e-3, dt=0.5)
    np.testing.assert_array_equal(long.q, run.q)


def test_joints_that_are_stuck_and_places_are_checked():
    snake = mr.examples.snake(2)
    with complains(mr.UnknownNameError, "m0.knee"):
        balance(snake, stuck=["m0.knee"])
    for options, words in (
        ({"target": lambda t, center: center}, "the target of processes is a point (x, y) or None"),
        ({"stuck": ["m0.pitch"]}, "joints of processes do not get stuck"),
    ):  # fmt: skip
        with complains(mr.StateError, words):
            BalancingProcesses(snake, **options)


def test_a_target_of_an_agent_moves_with_its_own_clock():
    agent = BalancingAgent(SUPERBOT, target=lambda t, center: [t, center[0, 2]], period=2e-3)
    state = agent.started({}, np.random.default_rng(0))
    for _ in range(4):
        state = agent.sensed(state, np.zeros(3), np.zeros(3))
    assert state.tick == 3
    np.testing.assert_allclose(agent._target(state, None, np.full((3, 3), 0.7)), [0.006, 0.7])


def test_clocks_of_processes_run_by_the_speed_of_the_simulation(monkeypatch):
    given = []
    monkeypatch.setattr(
        plants.MassProcesses, "__init__", lambda self, *x, **options: given.append((x, options))
    )
    made = object.__new__(BalancingProcesses)
    plants.PlantProcesses.__init__(made, "organism", period=0.01, speed=0.25, loss=0.1)
    assert given == [(("organism",), {"period": 0.01, "loss": 0.1})]
    assert (made._interval, made.speed, made._memory) == (0.04, 0.25, None)
    for options in ({"period": 0.0, "speed": 1.0}, {"period": 0.01, "speed": 0.0}):
        with complains(mr.StateError, "must be a positive number"):
            plants.PlantProcesses.__init__(made, "organism", **options)


def test_a_run_tells_its_states_at_any_times():
    run = balance(mr.examples.snake(2), q0=[0.3], duration=0.02)
    q, v = run.at(run.t)
    np.testing.assert_allclose(q, run.q, atol=1e-12)
    np.testing.assert_allclose(v, run.v, atol=1e-12)
    between = [0.0101, 0.0107]  # a step is a straight line
    q, v = run.at(between)
    assert q.shape == (2, 1)
    (a, b), (one, other) = run.at([0.010, 0.011])[0], q
    np.testing.assert_allclose(one, 0.9 * a + 0.1 * b)
    np.testing.assert_allclose(other, 0.3 * a + 0.7 * b)
    np.testing.assert_allclose(run.at(between[0])[0], one)


@pytest.mark.parametrize(
    ("networks", "options"),
    [
        (BalancingProcesses, {}),
        (StandingProcesses, {"feet": (), "ground": mr.Ground(), "q0": np.zeros(7)}),
    ],
)
def test_processes_that_do_not_come_up_are_ended(monkeypatch, networks, options):
    told = []

    def fail(self):
        told.append("failed")
        raise mr.StateError("not all modules know the whole")

    for kind in (BalancingModules, StandingModules):
        monkeypatch.setattr(kind, "__init__", lambda self, *given, **options: None)
    monkeypatch.setattr(networks, "_let_go", fail)
    monkeypatch.setattr(networks, "close", lambda self: told.append("closed"))
    with complains(mr.StateError, "not all modules know the whole"):
        networks(mr.examples.snake(2), **options)
    assert told == ["failed", "closed"]
