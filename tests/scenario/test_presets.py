"""Presets: the papers' figures run, and their findings and pictures say what was measured."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.text import Text
from scipy.integrate import solve_ivp

import modurob as mr
from modurob.cli import cli
from modurob.drawing import charts
from modurob.scenario import preset_figures
from modurob.scenario.presets import (
    PRESETS,
    TREE_LAWS,
    TREE_SEEDS,
    Preset,
    PresetFinding,
    TreeOutcome,
    arm_motion,
    crab_filter,
    preset,
    tree_outcome,
    tree_run,
    tree_sentences,
)
from modurob.studio.folder import Folder
from modurob.studio.studio import Studio

# the twelve runs of the first are computed, judged and drawn by tests/papers; Fig. 7 of giusti2015
# shows one of the two runs of Fig. 8
QUICK = [name for name in PRESETS if name not in ("moll2006-fig4", "giusti2015-fig7")]


@pytest.mark.parametrize("name", QUICK)
def test_a_preset_runs_and_supports_its_statement(name, tmp_path, monkeypatch):
    chosen, runs = preset(name), {}

    def judge(results):
        runs.update(results)
        return chosen.judge(results)

    monkeypatch.setitem(PRESETS, name, chosen._replace(judge=judge))
    line = ["run", "--preset", name, "--plot", str(tmp_path / "x.svg"), "--json"]
    done = CliRunner().invoke(cli, line)
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["statement"] == chosen.statement
    verdicts = [finding["holds"] for finding in found["findings"]]
    assert False not in verdicts
    assert True in verdicts
    assert "The paper states" in (tmp_path / "x.svg").read_text(encoding="utf-8")
    if name == "giusti2015-fig8":
        found = PRESETS["giusti2015-fig7"].judge(runs)
        assert [float(each.found) for each in found] == pytest.approx(lag_of_pd(), abs=NOISE)


NOISE = 1.0  # [% of the way] 0.03 rad and 0.3 N m at each of 20 000 samples, filtered by the arm


def lag_of_pd() -> tuple[float, float]:
    """Largest and last error of ``(Kd + F) q' = Kp (q_d - q)``, as the paper prints them. [%]

    The law has no desired velocity, and inertias are small beside damping.
    """

    def error(t: float, e: np.ndarray) -> np.ndarray:
        return 30 * (t * (1 - t)) ** 2 - 250 / (30 + 3) * e

    t = np.linspace(0, 1, 1001)
    e = 100 * solve_ivp(error, (0, 1), [0.0], t_eval=t, rtol=1e-8).y[0]
    return e.max(), e[-1]


def test_the_findings_of_a_preset_follow_its_runs():
    """Wrong gains or laws are seen."""
    poles = PRESETS["gutenkunst2012-fig6.6"]
    (name, scenario), *_ = poles.build().items()
    alike = scenario.edited(poles=(-2, -3, -2, -3), rtol=1e-6)
    assert [x.holds for x in poles.judge({name: alike.run()})] == [None, None, None, False]
    torque = PRESETS["giusti2015-fig8"]
    ways = torque.build()
    short = {law: x.edited(duration=0.1, move_time=0.1) for law, x in ways.items()}
    results = dict(zip(ways, reversed([x.run() for x in short.values()]), strict=True))
    assert torque.judge(results)[-1].holds is False


def test_presets_have_the_values_that_papers_print_and_their_texts_state():
    def fields(name, *wanted):
        return [tuple(getattr(x, key) for key in wanted) for x in PRESETS[name].build().values()]

    hinges = {"m0.hinge": 1, "m1.hinge": 1}
    (pid,) = fields("gutenkunst2012-fig6.4", "gains", "target", "sample_time", "duration", "dt")
    assert pid == ({"kp": 10, "ki": 1, "kd": 4}, hinges, 1e-3, 10, 1e-3)
    (poles,) = fields("gutenkunst2012-fig6.6", "poles", "target", "duration", "rtol")
    assert poles == ((-2, -3, -5, -10), hinges, 4, 1e-11)
    steps = {"m1.hinge": 1, "m3.hinge": 0.7, "m5.hinge": -0.5}
    for found in fields("meister2013-fig13", "target", "settling_time", "duration"):
        assert found == (steps, 1, 2)
    true, estimated = fields("meister2013-fig14", "target", "settling_time", "sample_time", "dt",
                             "noise_q", "duration")  # fmt: skip
    assert estimated == (steps, 1, 0.01, 0.01, 0.03, 4)
    assert true == (steps, 1, 0.01, 0.01, 0, 4)
    ((ekf,),) = fields("meister2013-fig15", "ekf")
    assert {key: np.unique(value).tolist() for key, value in ekf.items()} == {
        "Q": [1e-4, 0.1], "W": [1], "R": [1], "V": [1], "P": [0.1], "q": [-0.2, 0.2],
    }  # fmt: skip
    torque, pd = fields("giusti2015-fig8", "gains", "feedforward", "noise_q", "noise_v",
                        "noise_tau", "duration", "move_time", "dt", "sample_time")  # fmt: skip
    assert pd == ({"kp": 250, "kd": 30}, False, 0.03, 0.03, 0.3, 1, 1, 5e-5, 5e-5)
    assert torque == ({"k0": 250, "k1": 30}, True, *pd[2:])
    ((goal,),) = fields("giusti2015-fig7", "target")
    assert list(goal.values()) == [0.2, 0.4, 0.6, 0.8, 0.1]
    trees = fields("moll2006-fig4", "drive_friction", "duration", "dt", "balancing_law")
    assert len(trees) == len(TREE_SEEDS) * len(TREE_LAWS) == 12
    assert {tree[:3] for tree in trees} == {(2, 1, 5e-4)}
    assert all(len(x.organism) == 20 for x in PRESETS["moll2006-fig4"].build().values())


def run_of(q, **more):
    q = np.array(q, dtype=float)
    trajectory = SimpleNamespace(q=q, t=np.linspace(0.0, 4.0, len(q)), channels=more)
    return SimpleNamespace(trajectory=trajectory, reference=lambda t: SimpleNamespace(q=np.ones(2)))


@pytest.mark.parametrize(
    ("apart", "left", "verdicts"),
    [(0.004, 0.04, [True, None, True]), (0.006, 0.06, [False, None, False])],
)
def test_steps_of_pid_are_judged_by_their_distance_and_their_rest(apart, left, verdicts):
    q = [[0, 0], [1.2, 1.2 - apart], [1 - left, 1 - left]]
    findings = PRESETS["gutenkunst2012-fig6.4"].judge({"PID": run_of(q)})
    assert [x.holds for x in findings] == verdicts
    assert [float(x.found) for x in findings] == pytest.approx([apart, 20, 100 * left])


def test_steps_are_settled_when_all_joints_stay_within_two_percent():
    judge = PRESETS["meister2013-fig13"].judge
    q = [[0, 0], [0.981, 0.97], [1.03, 0.99], [1.019, 0.981], [1, 1]]
    (late,) = judge({"x": run_of(q)})
    assert (late.found, late.holds) == ("3", False)  # from the fourth of five samples in 4 s
    (early,) = judge({"x": run_of([[0, 0], *[[1.019, 0.981]] * 4])})
    assert (early.found, early.holds) == ("1", True)
    (never,) = judge({"x": run_of([[0, 0], [0, 0]])})
    assert (never.found, never.holds) == ("inf", False)


@pytest.mark.parametrize(("off", "holds"), [(0.029, True), (0.031, False)])
def test_loops_agree_when_they_differ_by_less_than_the_noise(off, holds):
    q = np.ones((8, 2))
    other = q + np.array([[9.0], [9], [9], [9], [off], [-off], [off], [off]]) * [1, 0]
    judge = PRESETS["meister2013-fig14"].judge
    noise, found = judge({"a": run_of(q), "b": run_of(other)})
    assert (noise.found, noise.holds) == ("0.03", None)
    assert (found.found, found.holds) == (f"{off:.3g}", holds)


def test_loops_that_differ_by_the_noise_do_not_agree(monkeypatch):
    monkeypatch.setattr("modurob.scenario.presets.ANGLE_NOISE", 0.5)
    runs = {"a": run_of(np.zeros((8, 2))), "b": run_of(np.full((8, 2), 0.5))}
    _, found = PRESETS["meister2013-fig14"].judge(runs)
    assert found.holds is False


@pytest.mark.parametrize(("left", "holds"), [(0.02, True), (0.04, False)])
def test_a_filter_is_judged_by_what_it_leaves_of_the_noise(left, holds):
    q = np.ones((9, 2)) + np.array([0.01, -0.05])
    first = np.zeros((9, 1))
    first[0] = 1.0  # forgotten by 0.5 s
    channels = {"measured_q": q + 0.03 + 7 * first, "estimate_q": q - left + 0.25 * first}
    findings = PRESETS["meister2013-fig15"].judge({"EKF": run_of(q, **channels)})
    values = [float(x.found) for x in findings]
    assert values == pytest.approx([0.25 - left, 0.03, left, 0.05], rel=1e-2)
    assert [x.holds for x in findings] == [None, None, holds, None]


FINDINGS = [
    PresetFinding("good", "1", True),
    PresetFinding("bad", "2", False),
    PresetFinding("fact", "3"),
    PresetFinding("sentence", "", True),
]


def test_a_figure_shows_the_runs_beside_what_was_found():
    chosen = PRESETS["gutenkunst2012-fig6.6"]
    run = run_of([[0, 0], [0.5, 0.8], [1, 1]])
    run.trajectory.model = mr.examples.double_pendulum().model("physical")
    run.trajectory.tau = np.array([[3.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    drawn = preset_figures.figure(chosen, {"pole placement": run}, FINDINGS)
    assert drawn.get_suptitle() == f"{chosen.source}: {chosen.title}"
    left, right = drawn.subfigs
    position, torque = left.axes
    for plane, values in ((position, run.trajectory.q), (torque, run.trajectory.tau)):
        for k, line in enumerate(plane.get_lines()[:2]):
            assert line.get_ydata().tolist() == values[:, k].tolist()
            assert line.get_color() == charts.PALETTE[k]
            assert line.get_linestyle() == "-"
    assert [line.get_ydata().tolist() for line in position.get_lines()[2:]] == [[1, 1, 1]] * 2
    assert len(torque.get_lines()) == 2
    assert (position.get_ylabel(), torque.get_ylabel()) == ("position [rad]", "torque [N m]")
    assert torque.get_xlim() == (0, 4)
    assert torque.get_xlabel() == "time [s]"
    (legend,) = left.legends
    assert [text.get_text() for text in legend.get_texts()] == ["m0.hinge", "m1.hinge", "desired"]
    told = {text.get_text().replace("\u00a0", " "): text for text in right.axes[0].texts}
    colors = {"good: 1 ✓": "#1a7f37", "bad: 2 ✗": "#c62828", "fact: 3": charts.INK}
    for text, color in {**colors, "sentence ✓": "#1a7f37"}.items():
        assert told[text].get_color() == color
    bold = [text for text, each in told.items() if each.get_fontweight() == "bold"]
    assert bold == ["The paper states", "Measured here", "Not printed in the paper, chosen here"]
    assert {(text.xy, text.xyann[0]) for text in right.axes[0].texts} == {((0, 1), 0)}
    heights = [text.xyann[1] for text in right.axes[0].texts]
    assert heights[0] == -6
    assert set(np.round(np.diff(heights), 9)) == {-13.5}
    # a second run has other dashes and stands in the legend
    drawn = preset_figures.figure(chosen, {"one": run, "two": run}, FINDINGS)
    (legend,) = drawn.subfigs[0].legends
    assert [text.get_text() for text in legend.get_texts()][2:] == ["one", "two", "desired"]
    *_, one, two, desired = legend.legend_handles
    widths = [line.get_linewidth() for line in legend.legend_handles]
    assert sorted(widths, reverse=True) == widths  # joints, runs, the motion that was wanted
    assert len(set(widths)) == 3
    assert (one.is_dashed(), two.is_dashed()) == (False, True)
    looks = [
        (line.get_color(), line.get_linewidth(), line._unscaled_dash_pattern)
        for line in (desired, drawn.subfigs[0].axes[0].get_lines()[-1])
    ]
    assert looks[0] == looks[1]
    begin, (dash, gap) = looks[0][2]
    assert (begin, dash) == (0, gap)
    assert drawn.subfigs[0].axes[0].get_lines()[2].get_linestyle() == "--"
    assert drawn.get_size_inches()[0] == 12


def test_lines_on_top_of_others_are_dashed_and_errors_end_with_a_gap():
    values = np.array([[0.0, 0.005, 0.02], [1.0, 1.0, 1.0]])
    for scale in (1, 100, 0.01):  # whatever the unit
        hidden = [preset_figures._coincides(scale * values, k) for k in range(3)]
        assert hidden == [False, True, False]
    dash, gap = preset_figures.OVER[1]
    assert dash == gap  # half of the line below is seen
    assert {style[0] for style in (*preset_figures.DASHES[1:], preset_figures.OVER)} == {0}
    run = run_of([[1, 2], [3, 5], [4, 4]], estimate_q=np.array([[0.5, 0], [0, 0], [0, 0]]))
    error = preset_figures._error(run, run.trajectory.q, "estimate_q")
    np.testing.assert_array_equal(error, [[0.5, 2], [3, 5], [np.nan, np.nan]])


def test_sentences_about_trees_are_judged_by_the_end_of_runs():
    good, never = TreeOutcome(0.2, 0.01, 5.0), TreeOutcome(None, 0.4, 30.0)
    best = TreeOutcome(0.1, 0.001, 5.0)
    four = len(TREE_SEEDS)
    made = {"default": [never] * four, "distance": [never] * four, "momentum": [good] * four}
    assert list(tree_sentences(made).values()) == [False, True, True, True, False, False]
    made["momentum"] = [good, good, good, never]  # on the last tree nothing converges first
    assert not next(iter(tree_sentences(made).values()))
    made["momentum"] = [good] * four
    made["default"] = [best, good, good, never]
    assert list(tree_sentences(made).values()) == [True, True, True, False, True, True]
    assert not any(tree_sentences(dict.fromkeys(TREE_LAWS, [never] * four)).values())
    for settled, rest, beaten in (
        (0.1, 0.009, True), (0.1, 0.01, False), (0.2, 0.009, False), (0.1, 0.02, False),
        (0.3, 0.009, False),
    ):  # fmt: skip
        made["default"] = [TreeOutcome(settled, rest, 5.0), never, never, never]
        assert list(tree_sentences(made).values())[4] is beaten


def test_a_preset_is_written_as_scenarios_and_opened_as_a_project(tmp_path):
    file = tmp_path / "fig8.json"
    line = ["run", "--preset", "meister2013-fig14", "--save-scenario", str(file), "--json"]
    done = CliRunner().invoke(cli, line)
    assert done.exit_code == 0, done.output
    written = [mr.Scenario.load(path) for path in sorted(tmp_path.iterdir(), reverse=True)]
    assert written == list(PRESETS["meister2013-fig14"].build().values())
    again = CliRunner().invoke(cli, line)
    assert (again.exit_code, "--force" in again.output) == (2, True)
    session = Studio(Folder(tmp_path / "studio")).new_from_preset("meister2013-fig15")
    known = PRESETS["meister2013-fig15"].build()["EKF"]
    mine = session.scenario().edited(record=known.record, name=known.name, pose={})
    assert np.array_equal(mine.run().trajectory.q, known.run().trajectory.q)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give the FILE of a scenario, or --preset"),
        (("x.json", "--preset", "giusti2015-fig7"), "give the FILE of a scenario, or --preset"),
        (("--preset", "giusti2015-fig9"), "giusti2015-fig7"),
        (("--preset", "giusti2015-fig7", "--csv", "x.csv"), "--csv is for a file"),
    ],
)
def test_bad_input_is_one_line(arguments, words):
    done = CliRunner().invoke(cli, ["run", *arguments])
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert words in done.output
    with pytest.raises(mr.UnknownNameError, match="no preset 'x': presets are gutenkunst2012"):
        preset("x")


# -- without runs ----------------------------------------------------------------------------------


def test_trees_are_the_first_whose_center_starts_more_than_half_a_width_off():
    far = []
    for seed in range(1, TREE_SEEDS[-1] + 1):
        tree = tree_run(seed, "momentum").organism
        assert tree == mr.examples.superbot_tree(4, 5, np.random.default_rng(seed))
        model = tree.model("physical")
        center = model.center_of_mass(model.neutral())
        if np.linalg.norm(center[:2]) > tree.kind(tree.base).size / 2:
            far.append(seed)
    assert tuple(far) == TREE_SEEDS
    assert len(far) == 4


def test_trees_are_told_law_by_law_before_the_sentences():
    t = np.array([0.0, 1.0, 2.0])
    results = {}
    for law, reached in zip(TREE_LAWS, (None, 0.5, 1.0), strict=True):
        for seed in TREE_SEEDS:
            run = SimpleNamespace(
                t=t, distance=np.array([2.0, 1.0, 0.02]), reached=reached, v=np.zeros((3, 1))
            )
            results[f"tree {seed}: {law}"] = SimpleNamespace(balanced=run)
    told = PRESETS["moll2006-fig4"].judge(results)
    rows = [(each.what, each.found, each.holds) for each in told[:6]]
    settled = ", ".join(["never"] * 4), ", ".join(["0.50"] * 4), ", ".join(["1.00"] * 4)
    wanted = []
    for law, words in zip(TREE_LAWS, settled, strict=True):
        wanted.append((f"{law}: below a tenth for good from [s]", words, None))
        wanted.append((f"{law}: rest error [%]", ", ".join(["1"] * 4), None))
    assert rows == wanted
    assert [each.found for each in told[6:]] == [""] * 6


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
    cycle = crab_filter()
    assert cycle.dt == cycle.sample_time == cycle.record == 0.01  # a state each cycle of the loop
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


def on_the_way(shares):
    """A run along a motion whose errors are shares of the ways of 2 and -4."""
    t, shares = np.array([0.0, 1.0, 2.0]), np.array(shares)
    wanted = np.stack([1 + t, -2 * t], axis=1)
    return SimpleNamespace(
        trajectory=SimpleNamespace(t=t, q=wanted + shares * [2, -4]),
        reference=lambda t: SimpleNamespace(q=np.array([1 + t, -2 * t])),
    )


def test_errors_of_the_arm_are_shares_of_the_ways_of_its_joints():
    pd = on_the_way([[0, 0], [0.3, -0.4], [0.05, 0.0]])
    norm = preset_figures.PANELS["norm"].values(pd)
    np.testing.assert_allclose(norm, [[0], [0.5], [0.05]], atol=1e-12)  # a line
    pd = on_the_way([[0, 0], [0.1, -0.3], [0.05, 0.02]])
    findings = PRESETS["giusti2015-fig7"].judge({"PD with gravity compensation": pd})
    assert [(x.found, x.holds) for x in findings] == [("30", None), ("5", None)]
    norms = 0.3, 0.15  # means of norms
    pd, torque = on_the_way([[0, 0], [0.3, 0.4], [0.4, 0]]), on_the_way([[0.45, 0], [0, 0], [0, 0]])
    results = {"computed torque": torque, "PD with gravity compensation": pd}
    findings = PRESETS["giusti2015-fig8"].judge(results)
    assert [float(x.found) for x in findings] == [norms[1], norms[0], 2]
    assert findings[2].holds is True
    swapped = dict(zip(results, reversed(results.values()), strict=True))
    assert PRESETS["giusti2015-fig8"].judge(swapped)[2].holds is False


# -- figures ---------------------------------------------------------------------------------------


def words(part):
    """Texts of a part of a figure: titles, labels, legends."""
    return [text for text in part.findobj(Text) if text.get_text()]


def test_trees_are_drawn_in_four_panels_with_a_line_for_each_law():
    chosen, t = PRESETS["moll2006-fig4"], np.array([0.0, 0.5, 1.25])
    results = {}
    for k, seed in enumerate(TREE_SEEDS, start=1):
        for j, law in enumerate(TREE_LAWS):
            run = SimpleNamespace(t=t, distance=np.array([2.0 * k, 0.5, 0.1 * j]))
            results[f"tree {seed}: {law}"] = SimpleNamespace(balanced=run)
    drawn = preset_figures.figure(chosen, results, [PresetFinding("word " * 20, "3", False)])
    np.testing.assert_allclose(drawn.get_size_inches(), [12, 6.7])
    left, right = drawn.subfigs
    for k, (plane, seed) in enumerate(zip(left.axes, TREE_SEEDS, strict=True), start=1):
        *lines, tenth = plane.get_lines()
        assert plane.get_title(loc="left") == f"tree {seed}"
        for j, (line, law) in enumerate(zip(lines, TREE_LAWS, strict=True)):
            assert (line.get_label(), line.get_ydata().tolist()) == (law, [2.0 * k, 0.5, 0.1 * j])
            assert line.get_color() == preset_figures.TREE_COLORS[law]
        assert tenth.get_ydata() == pytest.approx([0.2 * k] * 2)
        assert tenth.get_linewidth() < min(line.get_linewidth() for line in lines)
        begin, (dot, gap) = tenth._unscaled_dash_pattern
        assert (begin, gap) == (0, 2 * dot)
        assert plane.get_ylim()[0] == 0
        assert plane.get_xlim() == (0, 1.25)
        assert plane.get_ylabel() == ("distance [widths]" if k % 2 else "")
        assert plane.get_xlabel() == ("time [s]" if k > 2 else "")
    (legend,) = left.legends
    told = [text.get_text() for text in legend.get_texts()]
    assert told == [*TREE_LAWS, "a tenth of the start"]
    assert all(8 <= text.get_fontsize() <= 10 for text in words(left))
    texts = [text.get_text() for text in right.axes[0].texts]
    assert max(len(text.lstrip()) for text in texts) <= 50
    first = texts.index("Measured here") + 1
    assert texts[first].startswith("word word")
    assert texts[first + 1].startswith("  word")
    assert texts[first + 2].endswith("3\u00a0✗") or texts[first + 1].endswith("3\u00a0✗")
    assert not right.axes[0].axison


@pytest.mark.parametrize(
    ("name", "height"), [("gutenkunst2012-fig6.6", 5.2), ("meister2013-fig15", 10.5)]
)
def test_figures_are_as_high_as_their_panels_and_images_have_110_dots_an_inch(
    monkeypatch, name, height
):
    made = []
    monkeypatch.setattr(preset_figures, "_draw_joints", lambda left, panels, results: None)
    monkeypatch.setattr(
        preset_figures.charts, "rendered", lambda drawn, dpi: made.append((drawn, dpi))
    )
    preset_figures.image(PRESETS[name], {}, [])
    ((drawn, dpi),) = made
    assert dpi == 110
    np.testing.assert_allclose(drawn.get_size_inches(), [12, height])


def test_the_wanted_motion_and_a_hidden_line_are_seen_in_a_figure():
    """Two joints of one run that move alike, along a motion that ends at 1 rad."""
    t = np.array([0.0, 1.0, 2.0])
    model = mr.examples.double_pendulum().model("physical")
    run = SimpleNamespace(t=t, q=np.array([[0.0, 0], [0.5, 0.5], [1, 1]]), model=model)
    run.tau = np.array([[1.0, 3], [2, 2], [3, 1]])
    result = SimpleNamespace(
        trajectory=run, reference=lambda t: SimpleNamespace(q=np.array([t / 2, 1.0]))
    )
    drawn = preset_figures.figure(PRESETS["gutenkunst2012-fig6.6"], {"run": result}, [])
    position, torque = drawn.subfigs[0].axes
    one, hidden, *wanted = position.get_lines()
    assert (one.is_dashed(), hidden.is_dashed()) == (False, True)
    assert [line.get_ydata().tolist() for line in wanted] == [[0, 0.5, 1], [1, 1, 1]]
    assert not any(line.is_dashed() for line in torque.get_lines())
    assert torque.get_xlim() == (0, 2)
    crane = mr.examples.crane().model("physical")
    run.model = crane
    drawn = preset_figures.figure(PRESETS["gutenkunst2012-fig6.6"], {"run": result}, [])
    labels = [plane.get_ylabel() for plane in drawn.subfigs[0].axes]
    assert labels == ["position [rad, m]", "torque [N m, N]"]
    assert all(8 <= text.get_fontsize() <= 10 for text in words(drawn.subfigs[0]))


def test_runs_of_a_preset_are_simulated_in_this_process_unless_told(monkeypatch):
    scenarios = [mr.Scenario(organism="crab", duration=x) for x in (1.0, 2.0)]
    seen, told, names = [], [], ["one", "two"]

    def run(scenario, partial):
        seen.append((scenario, partial))
        return scenario.duration

    monkeypatch.setattr(mr.Scenario, "run", run)
    made = Preset("", "", "", "", (), lambda: dict(zip(names, scenarios, strict=True)), list)
    assert made.run(told.append) == {"one": 1.0, "two": 2.0}
    assert seen == [(scenario, True) for scenario in scenarios]
    assert told[-1] == 1.0
