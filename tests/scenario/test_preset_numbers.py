"""Numbers of presets that need no run: which trees, and what the findings are made of."""

from types import SimpleNamespace

import numpy as np
import pytest

from modurob import examples
from modurob.scenario.presets import (
    PRESETS,
    TREE_LAWS,
    TREE_SEEDS,
    TreeOutcome,
    arm_motion,
    crab_filter,
    tree_outcome,
    tree_run,
    tree_sentences,
)


def test_trees_are_the_first_whose_center_starts_more_than_half_a_width_off():
    far = []
    for seed in range(1, TREE_SEEDS[-1] + 1):
        tree = tree_run(seed, "momentum").organism
        assert tree == examples.superbot_tree(4, 5, np.random.default_rng(seed))
        model = tree.model("physical")
        center = model.center_of_mass(model.neutral())
        if np.linalg.norm(center[:2]) > tree.kind(tree.base).size / 2:
            far.append(seed)
    assert tuple(far) == TREE_SEEDS
    assert len(far) == 4


def test_a_tree_is_judged_by_the_last_three_tenths_of_a_second():
    t = np.linspace(0.0, 2.0, 17)
    distance = np.array([2.0] * 13 + [1.0, 0.2, 0.4, 0.6])
    run = SimpleNamespace(t=t, distance=distance, reached=0.75, v=np.array([[1.0, -7.0], [3, 2]]))
    outcome = tree_outcome(run)
    assert (outcome.settled, outcome.speed) == (0.75, 7)
    assert outcome.rest == pytest.approx(0.2)  # a half of 0.2, 0.4 and 0.6


@pytest.mark.parametrize(
    ("settled", "rest", "quick", "small"),
    [(0.49, 0.049, True, True), (0.5, 0.049, False, True), (0.49, 0.05, True, False)],
)
def test_quick_is_below_half_a_second_and_small_below_5_percent(settled, rest, quick, small):
    own, other = TreeOutcome(settled, rest, 5.0), TreeOutcome(0.9, 0.09, 5.0)
    outcomes = {law: [other] * len(TREE_SEEDS) for law in TREE_LAWS}
    outcomes["momentum"] = [TreeOutcome(0.1, 0.01, 5.0)] * (len(TREE_SEEDS) - 1) + [own]
    found = tree_sentences(outcomes)
    assert found["the momentum law converges on all trees, in 0.5 s"] is quick
    assert found["it leaves at most 5 % of the first distance"] is small


def test_scenarios_of_presets_may_be_changed_and_are_those_of_the_figures_unless_told():
    assert crab_filter() == PRESETS["meister2013-fig15"].build()["EKF"]
    assert (crab_filter().seed, crab_filter(seed=3).seed) == (0, 3)
    assert crab_filter("PidLinearized", duration=2.0).duration == 2
    pd, torque = (arm_motion(law) for law in ("PD with gravity compensation", "computed torque"))
    assert (pd.controller, torque.controller) == ("PdGravity", "ComputedTorque")
    assert (pd.integrator, pd.record, pd.motion) == ("SemiImplicitEuler", 1e-3, "quintic")
    assert arm_motion("computed torque", dt=1e-4, sample_time=1e-4).dt == 1e-4
    tree = tree_run(1, "distance", duration=0.5)
    assert (tree.balancing_law, tree.duration, tree.dt, tree.record) == (
        "distance",
        0.5,
        2e-4,
        1e-3,
    )
    assert tree.drive_friction == 2


def test_a_filter_is_judged_from_half_a_second_and_the_hold_from_two_seconds_on():
    t = np.linspace(0.0, 4.0, 9)
    q = np.ones((9, 2))
    q[:4], q[4:] = 9.0, 1.25
    noise = np.where(t == 0.5, 0.6, 0.3)[:, None]
    noise[0] = 99.0
    channels = {"measured_q": q + noise, "estimate_q": q - noise / 2}
    run = SimpleNamespace(
        trajectory=SimpleNamespace(q=q, t=t, channels=channels),
        reference=lambda t: SimpleNamespace(q=np.ones(2)),
    )
    findings = PRESETS["meister2013-fig15"].judge({"EKF": run})
    rms = np.sqrt((7 * 0.3**2 + 0.6**2) / 8)
    values = [float(finding.found) for finding in findings]
    assert values == pytest.approx([49.5, rms, rms / 2, 0.25], rel=1e-2)
