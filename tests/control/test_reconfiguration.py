"""A snake that follows a gait loses two modules and gains three: law and filter go on."""

import numpy as np
import pytest

from modurob import Dock, Undock, examples, simulate
from modurob.control import ComputedTorque, OutputFeedback, TrackingController, transient
from modurob.control.references import Carried
from modurob.estimation import Ekf, consistency
from modurob.gaits import Wave
from modurob.sim import Noise

DT = 5e-3  # [s]
SIGMA = 1e-3  # [rad] of measured angles
BOUND = 5e-3  # [rad] tracking error of surviving joints: some sigmas, and the lag of the samples
SURVIVORS = ["m0.hinge", "m1.hinge", "m2.hinge"]
LATER, END = 0.7, 1.2  # [s] when it gains modules, and the end


@pytest.fixture(scope="module")
def snake():
    return examples.snake(6)


def gait_of(model):
    return Wave.for_model(model, amplitude=0.3, frequency=0.5)


def events(lost=0.4, gained=LATER):
    three = examples.snake(3).rename(prefix="n")
    return [Undock(lost, "m4"), Dock(gained, "m3", 3, "nm0", 4, organism=three)]


def ran(snake, estimated, changes):
    model = snake.model("physical")
    gait = gait_of(model)
    first = gait(0.0)
    loop = TrackingController(ComputedTorque(model, settling_time=0.3, sample_time=DT), gait)
    options = {}
    if estimated:
        ekf = Ekf(model, DT, Q=np.repeat([1e-10, 1e-6], 5), R=SIGMA**2, P=SIGMA**2,
                  q=first.q, v=first.v)  # fmt: skip
        loop = OutputFeedback(loop, ekf)
        options = {"noise": Noise(q=SIGMA), "rng": np.random.default_rng(0)}
    return simulate(model, first.q, first.v, END, loop, "RK4", dt=DT, organism=snake,
                    events=changes, **options)  # fmt: skip


@pytest.fixture(scope="module")
def exact(snake):
    return ran(snake, False, events())


@pytest.fixture(scope="module")
def estimated(snake):
    return ran(snake, True, events())


def on_the_ground(run):
    return [part for part in run.parts if not part.model.free_base]


def errors(part, gait):
    own = [part.model.joint_index(name) for name in SURVIVORS]
    there = [gait.joints.index(name) for name in SURVIVORS]
    return part.q[:, own] - gait(part.t).q[:, there]


def test_the_body_changes_as_told(exact):
    counts = [len(part.organism) for part in on_the_ground(exact)]
    assert counts == [6, 4, 7]
    assert [len(part.model.joint_names) for part in on_the_ground(exact)] == [5, 3, 6]


@pytest.mark.parametrize("kind", ["exact", "estimated"])
def test_surviving_joints_stay_within_their_bound_of_the_gait(kind, request, snake):
    run, gait = request.getfixturevalue(kind), gait_of(snake.model("physical"))
    parts = on_the_ground(run)
    assert parts[-1].t[-1] == pytest.approx(END)
    for part in parts:
        assert np.abs(errors(part, gait)).max() < BOUND
    moved = gait(np.linspace(0, END, 50)).q
    assert np.ptp(moved, axis=0).max() > 100 * BOUND


@pytest.mark.parametrize("kind", ["exact", "estimated"])
def test_every_number_of_every_part_is_finite(kind, request):
    for part in request.getfixturevalue(kind).parts:
        for numbers in (part.q, part.v, part.tau, part.a, *part.channels.values()):
            assert np.isfinite(numbers).all()


@pytest.mark.parametrize("kind", ["exact", "estimated"])
def test_new_joints_stay_where_they_docked(kind, request):
    part = on_the_ground(request.getfixturevalue(kind))[-1]
    new = [k for k, name in enumerate(part.model.joint_names) if name not in SURVIVORS]
    assert len(new) == 3
    assert np.abs(part.q[:, new] - part.q[0, new]).max() < BOUND


def references(parts, gait):
    """What each body was asked to follow: the one before, carried over."""
    found, before = [gait], parts[0].model
    for part in parts[1:]:
        found.append(Carried(found[-1], before, part.model, part.q[0]))
        before = part.model
    return found


def test_the_torque_jumps_by_what_the_new_body_needs_and_the_transient_says(exact, snake):
    """Beyond the torque of the reference there is no more than the report allows."""
    parts = on_the_ground(exact)
    law = ComputedTorque(parts[0].model, settling_time=0.3, sample_time=DT)
    ways = references(parts, gait_of(snake.model("physical")))
    for part, way in list(zip(parts, ways, strict=True))[1:]:
        aim = way(part.t[0])
        report = transient(law.rebuilt(part.model), part.q[0], part.v[0], aim)
        own = part.model.inverse_dynamics(aim.q + DT / 2 * aim.v, aim.v, aim.a)  # amid a sample
        beyond = np.abs(part.tau[0] - own)
        assert np.all(beyond <= 1.02 * report.torque)  # of first order in the errors
        assert beyond.max() > 0.2 * report.torque.max()
        assert beyond.max() < 0.05 * np.abs(own).max()
        after = np.abs(part.q - [way(t).q for t in part.t.tolist()]).max()
        assert after < max(report.bound, BOUND)


def test_with_an_estimator_the_torque_does_not_jump_further_than_its_noise(exact, estimated):
    """Angles that are off by a few sigma ask for k0 times that, and the body turns it to torque."""
    k0 = ComputedTorque(estimated.parts[0].model, settling_time=0.3).k0[0]
    for ours, true in zip(on_the_ground(estimated), on_the_ground(exact), strict=True):
        M = true.model.mass_matrix(true.q[0])
        noise = np.abs(M).sum(axis=1) * k0 * 10 * SIGMA
        assert np.all(np.abs(ours.tau[0] - true.tau[0]) < noise)


def test_the_filter_stays_consistent_through_the_changes(estimated):
    for part in estimated.parts:
        found = consistency(part.channels["nis"][:-1], len(part.model.joint_names), level=0.999)
        assert found.consistent, str(found)


def test_two_changes_at_once_do_not_predict_the_estimate_twice(snake):
    run = ran(snake, True, events(lost=LATER, gained=LATER))
    parts = on_the_ground(run)
    last = parts[-1]
    assert len(last.organism) == 7
    own = [last.model.joint_index(name) for name in SURVIVORS]
    off = (last.channels["estimate_q"] - last.q)[0, own]
    sigma = last.channels["sigma"][0, own]
    assert np.all(np.abs(off) < 4 * sigma)
    moved = np.abs(last.v[0, own]).max() * DT
    assert np.abs(off).max() < moved / 2  # one sample further would be off by this way
    gait = gait_of(snake.model("physical"))
    assert np.abs(errors(last, gait)).max() < BOUND
