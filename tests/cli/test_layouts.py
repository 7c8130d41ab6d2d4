"""Layouts of the command line: what stands where, at widths that just fit and that just do not."""

import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from modurob import examples
from modurob.cli import balance, cli, output, papers, show, verify
from modurob.cli.control_report import ControlReport, _poles_text, print_robustness
from modurob.cli.reports import BalanceReport, MotionReport, WalkReport
from modurob.control import Certificate, Robustness, RobustnessCase, StepResponse
from modurob.control.certificate import AssumptionCheck
from modurob.control.pid import PidLaw
from modurob.estimation import Consistency
from modurob.verification import Check
from modurob.verification.check import LEFT_OUT


@pytest.fixture
def lines():
    """The lines that a function of `output` prints on a terminal of some columns."""

    def lines(columns, show, *args, **options):
        told = io.StringIO()
        show(Console(width=columns, markup=False, emoji=False, file=told), *args, **options)
        return [line.rstrip() for line in told.getvalue().splitlines()]

    return lines


CELLS = ["one", "two", "three", "four", "five"]


def test_short_texts_flow_from_top_to_bottom_in_as_many_columns_as_fit(lines):
    two = ["title", "one     four", "two     five", "three", ""]
    assert lines(13, output.print_flow, "title", CELLS) == two  # 5 + 3 between + 5
    assert lines(12, output.print_flow, "title", CELLS) == ["title", *CELLS, ""]
    assert lines(20, output.print_flow, "title", CELLS) == two  # three need 21
    assert lines(21, output.print_flow, "title", CELLS)[1:3] == [
        "one     three   five",
        "two     four",
    ]
    assert lines(1, output.print_flow, "t", ["ab"]) == ["t", "a", "b", ""]  # never none


MATRIX = np.array([[10, 0, 3], [0, -2, 0]])
WHOLE = """\
t
    a   b  c
────────────
x  10   ·  3
y   ·  -2  ·
"""
PARTS = """\
t, a to b
    a   b
─────────
x  10   ·
y   ·  -2

t, c to c
   c
────
x  3
y  ·
"""
WITH_KINDS = """\
t
        a   b  c  kind
──────────────────────
x      10   ·  3  kk
y       ·  -2  ·  k

class   C   D  E
"""


@pytest.mark.parametrize(("columns", "shown"), [(80, WHOLE), (12, WHOLE), (11, PARTS)])
def test_a_matrix_is_cut_into_tables_where_it_is_wider_than_the_terminal(lines, columns, shown):
    told = lines(columns, output.print_matrix, "t", MATRIX, "abc", "xy")
    assert told == [*shown.splitlines(), ""]


def test_columns_that_are_wider_than_the_terminal_have_tables_of_their_own(lines):
    told = lines(9, output.print_matrix, "t", 10**7 * MATRIX, "abc", "xy")
    assert [line for line in told if line.startswith("t,")] == [
        "t, a to a", "t, b to b", "t, c to c"
    ]  # fmt: skip


def test_columns_fill_the_room_of_every_table():
    """Each takes two characters more than its width."""
    assert output._blocks([5, 2, 2], 8) == [(0, 1), (1, 3)]
    assert output._blocks([5, 2, 2], 7) == [(0, 1), (1, 2), (2, 3)]


def test_a_drawing_ends_with_an_empty_line(lines):
    told = lines(80, output.print_drawing, examples.snake(1))
    assert told[-1] == "" != told[-2]


def test_kinds_and_classes_stand_beside_and_below_a_matrix(lines):
    extra = {"last_column": ["kk", "k"], "last_row": "CDE"}
    told = lines(22, output.print_matrix, "t", MATRIX, "abc", "xy", **extra)
    assert told == [*WITH_KINDS.splitlines(), ""]
    told = lines(21, output.print_matrix, "t", MATRIX, "abc", "xy", **extra)
    assert [line for line in told if line.startswith(("t", "class"))] == [
        "t, a to b", "class   C   D", "t, c to c", "class  E"
    ]  # fmt: skip


# -- reports ---------------------------------------------------------------------------------------


@pytest.fixture
def screen(monkeypatch, capsys):
    """The text that a report prints on a terminal of 90 columns, line by line."""
    monkeypatch.setenv("COLUMNS", "90")

    def screen(show, *args):
        show(*args)
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    return screen


def balanced(**changed):
    """Result of a balancing run with numbers that are easy to recognize."""
    run = SimpleNamespace(
        law="shared", t=np.array([0.0, 1.0, 2.0]), width=0.1, model=examples.crab().model(),
        distance=np.array([2.0, 2.5, 0.1]), first_reached=1.25, reached=1.5,
        tau=np.array([[0.5, -3.0]]), v=np.array([[0.25, -0.125]]),
        estimate_errors=np.array([[1.0, 1.0, 1.0], [0.002, 0.001, np.nan]]),
        messages=1234, lost=56, real_time=0.5,
    )  # fmt: skip
    return SimpleNamespace(balanced=SimpleNamespace(**(vars(run) | changed)))


def test_a_balancing_run_is_told_on_one_screen(screen):
    scenario = SimpleNamespace(name="tree")
    assert screen(BalanceReport(scenario, balanced()).print) == [
        "tree, 3 joints, 2 s",
        "law                    shared",
        "distance               2.000 -> 0.100 widths of a module",
        "stays below a tenth    after 1.50 s",
        "first below a tenth    at 1.25 s",
        "largest speed, torque  0.25 rad/s, 3 N m",
        "error of the center    2 mm, worst module, 1 module cut off",
        "messages               1,234 (617 per second, 56 lost)",
        "speed                  0.5 times real time",
        "",
    ]
    nothing = np.full((1, 2), np.nan)
    told = screen(
        BalanceReport(
            scenario,
            balanced(first_reached=None, reached=None, lost=0, estimate_errors=nothing),
        ).print
    )
    assert told[3:5] == ["stays below a tenth    no", "first below a tenth    never"]
    assert told[6] == "error of the center    unknown to all modules, 2 modules cut off"
    assert told[7] == "messages               1,234 (617 per second)"


def test_numbers_of_a_balancing_run_are_those_of_the_run():
    assert BalanceReport(SimpleNamespace(name="tree"), balanced()).data() == {
        "title": "tree", "law": "shared", "seconds": 2.0, "joints": 3, "width": 0.1,
        "distance": {"start": 2.0, "end": 0.1, "largest": 2.5},
        "first_below_a_tenth": 1.25, "stays_below_a_tenth": 1.5,
        "largest_torque": 3.0, "largest_speed": 0.25,
        "error_of_the_worst_module_mm": 2.0, "modules_without_a_world_frame": 1,
        "messages": 1234, "lost": 56, "times_real_time": 0.5,
    }  # fmt: skip


def test_a_body_at_rest_has_no_speeds_and_torques():
    rest = balanced(tau=np.zeros((2, 2)), v=np.zeros((2, 2)))
    facts = BalanceReport(SimpleNamespace(name="tree"), rest).data()
    assert (facts["largest_torque"], facts["largest_speed"]) == (0.0, 0.0)


def test_a_motion_is_told_by_its_last_positions_and_largest_speeds(screen):
    """Two bodies at the end, and one that was there before: it is counted, not listed."""
    slide, free = examples.crane().model("physical"), examples.snake(2).model(base="free")

    def part(model, t, q, v, energy):
        q0 = np.tile(model.neutral(), (len(t), 1))
        q0[:, model.joint_slice_q] = q
        v0 = np.full((len(t), model.nv), 99.0)
        v0[:, model.nv - len(model.joint_names) :] = v
        return SimpleNamespace(t=np.array(t), model=model, q=q0, v=v0, energy=np.array(energy))

    joint = free.joint_names[0]
    parts = [
        part(slide, [0.0, 0.1], [[0, 0]] * 2, [[7, 7]] * 2, [3.0, 4.0]),
        part(slide, [0.1, 0.2, 0.5], [[0, 0], [1, 1], [0.5, -2]], [[0, -3], [0, 2], [1, 1]],
             [5.0, 5.0, 1.0]),
        part(free, [0.1, 0.5], [[0], [0.25]], [[-4.5], [4]], [9.0, 1.5]),
    ]  # fmt: skip
    run = SimpleNamespace(parts=parts, integrator="RK4")
    scenario = SimpleNamespace(name="fall", analytic=False)
    report = MotionReport(scenario, SimpleNamespace(trajectory=run, reference=None, note=""))
    assert screen(report.print) == [
        "fall after 0.5 s",
        "joint     position at the end  largest speed",
        "────────────────────────────────────────────",
        f"{slide.joint_names[0]:<8}              +0.5000         1.0000",
        f"{slide.joint_names[1]:<8}              -2.0000         3.0000",
        f"{joint:<8}              +0.2500         4.5000",
        "",
        "4 steps of RK4; energy 3 J at the start, 2.5 J at the end",
    ]


def test_a_motion_tells_its_errors_and_its_difference_from_formulas(screen, monkeypatch):
    model = examples.snake(2).model(base="free")
    t, q = np.array([0.0, 1.0, 2.0]), np.tile(model.neutral(), (3, 1))
    q[:, 7] = 0.5, 1.0, 1.5
    part = SimpleNamespace(t=t, model=model, q=q, v=np.zeros((3, 7)), energy=np.ones(3))
    run = SimpleNamespace(parts=[part], integrator="RK4", t=t, q=q, model=model)
    other = SimpleNamespace(at=lambda times: (q + 1e-3, None))
    numeric = SimpleNamespace(run=lambda: SimpleNamespace(trajectory=other))
    asked = []
    scenario = SimpleNamespace(
        name="snake", analytic=True, edited=lambda **fields: asked.append(fields) or numeric
    )
    follows = SimpleNamespace(
        trajectory=run, reference=lambda t: SimpleNamespace(q=np.array([0.5 * t])), note="moved"
    )
    report = MotionReport(scenario, follows)
    data = report.data()
    assert asked == [{"analytic": False}]
    assert data["rms_error"] == pytest.approx([0.5])
    assert data["difference_of_numbers"] == pytest.approx(1e-3)
    assert (data["note"], data["steps"], data["seconds"]) == ("moved", 2, 2.0)
    told = screen(report.print)
    assert told[1] == "joint     position at the end  largest speed  RMS error"
    assert told[3] == f"{model.joint_names[0]:<8}              +1.5000         0.0000   5.00e-01"
    assert told[-2:] == ["moved", "by formulas; the recursions differ by 0.001 rad, m"]
    run.parts = [part, part]  # after an event there is no motion for the other body
    assert report.data()["rms_error"] is None


def test_a_walk_tells_its_ground(screen, monkeypatch):
    metrics = SimpleNamespace(words=lambda: {"distance": "1 m"}, _asdict=lambda: {"distance": 1.0})
    walk = SimpleNamespace(
        metrics=metrics, scenario=SimpleNamespace(name="crab", motion="none"), note="",
        ground=SimpleNamespace(friction=0.5, slope=(0.0, 0.0)),
    )  # fmt: skip
    monkeypatch.setattr("modurob.cli.reports.measured", lambda scenario, result: walk)
    report = WalkReport(None, None)
    assert screen(report.print) == ["crab: free motion, friction 0.5", "distance  1 m", ""]
    walk.scenario.motion, walk.note, walk.ground.slope = "wave", "lifted", (0.0, -1.0)
    told = screen(report.print)
    assert (told[0], told[-1]) == ("crab: wave, friction 0.5, slope 0°, -45°", "lifted")
    walk.ground.slope = (1.0, 0.0)
    assert screen(report.print)[0].endswith("slope 45°, 0°")
    plotted = []
    walk.trajectory = SimpleNamespace(plot=lambda *what, **how: plotted.append((what, how)))
    report.plot("x.png")
    assert plotted == [(("q", "v", "tau"), {"path": "x.png", "title": "crab"})]
    assert report.data() == {
        "title": "crab", "gait": "wave", "friction": 0.5, "slope": (1.0, 0.0), "note": "lifted",
        "distance": 1.0,
    }  # fmt: skip


CASES = (
    RobustnessCase("as designed", 2000, 1.0, 0.5, 0.0, 1.5e-3, 0.0, 0.0),
    RobustnessCase("delay", 2000, 0.125, np.nan, np.nan, np.nan, 0.5, 0.875),
)


def test_a_table_of_robustness_has_a_row_for_each_condition(screen):
    told = screen(print_robustness, "crab", Robustness("lqr", 1.5, 0.02, CASES))
    assert told[:6] == [
        "crab: lqr, 2,000 random steps of 1.5 s a row",
        "condition    settled      in  worst over  RMS error  at limit  diverged",
        "───────────────────────────────────────────────────────────────────────",
        "as designed   100.0%  0.50 s        0.0%    1.5e-03      0.0%      0.0%",
        "delay          12.5%       -           -          -     50.0%     87.5%",
        "",
    ]
    assert told[6].startswith("settled: all joints within 2% of their steps to the end.")
    assert screen(print_robustness, "crab", Robustness("lqr", 1.5, 0.02, CASES[:1]))[0] == told[0]
    assert str(Robustness("lqr", 1.5, 0.02, CASES[:1])).splitlines() == [
        "lqr, 1.5 s",
        "                          settled     time  overshoot     error  saturated  diverged",
        "as designed                100.0%  0.500 s       0.0%   1.5e-03       0.0%      0.0%",
    ]


def control_report(**changed):
    """Report of a run of the crane whose slide settles and whose hinge does not."""
    model = examples.crane().model("physical")
    slide, hinge = model.joint_names
    law = SimpleNamespace(
        mass_range=(1.0, 1.0),
        model=model, name="pd", delay=0.006, torque_limit=np.array([2.0, np.inf]),
        settling_time=None, _idle=(),
    )  # fmt: skip
    run = SimpleNamespace(
        t=np.array([0.0, 0.1, 0.3, 0.6, 1.0]), q=np.zeros((5, 2)), v=np.zeros((5, 2)),
        tau=np.array([[1.0, 5], [2, -70], [-2, 5], [0, 0], [-2, 0]]), status="finished",
        message="",
        channels={
            "estimate_q": np.array([[2e-3, 0], [2e-3, 0], [2e-3, 0], [2e-3, 0], [9, 9]]),
            "estimate_v": np.array([[0, 0.1]] * 4 + [[9, 9]]),
            "measured_q": np.array([[3e-3, 0], [-3e-3, 0], [3e-3, 0], [3e-3, 0], [9, 9]]),
            "nis": np.full(5, 2.0),
        },
    )  # fmt: skip
    scenario = SimpleNamespace(
        name="crane", target={slide: 0.1, hinge: np.pi / 6}, masses=0.9, noise_q=0.01,
        motion="step", payload=None, pushes=(), noise_tau=0.0,
        wrench_sensors=False,
    )  # fmt: skip
    for name, value in changed.items():
        setattr(next(x for x in (law, run, scenario) if hasattr(x, name)), name, value)
    report = ControlReport(
        scenario, SimpleNamespace(law=law, trajectory=run, reference=lambda t: None, note="")
    )
    report.response = StepResponse(
        rise=np.array([0.25, np.nan]), overshoot=np.array([0.125, 0.0]),
        settling=np.array([0.5, np.inf]), steady_error=np.array([-1e-6, np.pi / 180]),
        ripple=np.array([0.0, np.pi / 360]), band=0.02,
    )  # fmt: skip
    findings = (AssumptionCheck("gains are positive", True, "they are"),)
    report.certificate = Certificate("pd", "it settles", True, findings, (), np.zeros(2), 1.0)
    report.margin = 0.004
    report.runaways = {}
    return report


def test_a_controlled_run_is_told_on_one_screen(screen):
    assert (
        screen(control_report().print)
        == """\
crane: pd, a step, 1 s
joint        target     rise   over  settled  steady error  peak torque  at limit
─────────────────────────────────────────────────────────────────────────────────
m0.slide  +100.0 mm  0.250 s  12.5%  0.500 s      +0.00 mm          2 N     50.0%
m1.hinge     +30.0°        -   0.0%    never        +1.00°       70 N m         -

RMS errors of angles measured and estimated
joint     measured  estimate  better       rate
───────────────────────────────────────────────
m0.slide  3.000 mm  2.000 mm   1.5 x  0.00 mm/s
m1.hinge    0.000°    0.000°       -    5.73°/s

the filter is consistent: mean 2, expected 0.5449 to 4.384 (NIS)

NOT guaranteed: it settles
  ok  gains are positive: they are
  NO  the model is exact: true masses are 0.9 times its own
  NO  the state is known: the law sees an estimate, noise 0.01

Stable with up to 4 ms of delay near the target.
Failures:
  a delay of 6 ms is too long: errors decay up to 4 ms
  m0.slide is at its limit of 2 for 0.500 s, between 0.100 and 0.600 s
  m1.hinge does not settle within 2%: +1.00° ± 0.50°
  (a law with an integral, as pid-linearized, evens out wrong masses)""".splitlines()
    )


def test_a_motor_is_at_its_limit_within_rounding_errors():
    """1e-12 of the limit; a joint without a limit is never at it."""
    tau = np.array([[2 * (1 - 1e-12), 9], [-2 + 1e-12, 9], [2 - 1e-11, 9], [1.9, 9], [2, 9]])
    assert control_report(tau=tau).at_limit.T.tolist() == [[True, True, False, False], [False] * 4]


def test_a_run_without_faults_says_so(screen):
    report = control_report(
        masses=1, noise_q=0.0, channels={}, delay=0.004, torque_limit=np.full(2, np.inf),
        motion="quintic",
    )  # fmt: skip
    report.response = report.response._replace(settling=np.array([0.5, 0.75]))
    told = screen(report.print)
    assert told[0] == "crane: pd, a smooth motion, 1 s"
    assert told[6:] == [
        "guaranteed: it settles",
        "  ok  gains are positive: they are",
        "",
        "Stable with up to 4 ms of delay near the target.",
        "No failures.",
    ]
    data = report.data()
    assert data["guaranteed"]
    assert data["estimator"] is None
    assert data["breaks"] == data["saturated"] == data["broken_assumptions"] == []
    assert data["target"] == [0.1, np.pi / 6]
    assert data["peak_torque"] == [2, 70]


def test_a_joint_runs_away_beyond_ten_steps_from_its_target():
    """The farthest step is that of the hinge, 30 degrees."""
    far = 10 * np.pi / 6
    q = np.zeros((5, 2))
    q[2:, 1] = np.pi / 6 - far * (1 + 1e-12)
    q[3, 0] = 0.1 + far * (1 - 1e-12)
    report = control_report(q=q)
    del report.runaways
    assert report.runaways == {1: 0.3}
    assert "m1.hinge runs away: more than 10 steps from its target from 0.300 s on" in (
        report.failures()
    )
    assert not any("does not settle" in line for line in report.failures())
    slide, hinge = report.law.model.joint_names
    for place, runs in ((10.5, False), (np.nextafter(10.5, 11), True), (-9.5, False)):
        q = np.array([[-0.5, 0], *[[0.4, 0]] * 3, [place, 0]])  # the step is 1 m
        found = control_report(target={slide: 0.5, hinge: 0.25}, q=q)
        del found.runaways
        assert found.runaways == ({0: 1.0} if runs else {})


def test_a_loop_that_does_not_decay_and_a_joint_that_runs_away_are_told(screen):
    report = control_report()
    report.margin, report.runaways = None, {1: 0.3}
    told = screen(report.print)
    assert told[4] == (
        "m1.hinge     +30.0°        -      -  runs away             -       70 N m         -"
    )
    assert not any(line.startswith("Stable") for line in told)
    assert "  errors do not decay close to the target, even without a delay" in told
    report.margin = np.inf
    assert not any("delay" in line for line in screen(report.print))
    stopped = control_report(status="stopped", message="the simulation stopped: m1: too fast")
    stopped.response = None
    assert stopped.failures()[0] == "at 1.000 s m1: too fast"


def test_sentences_on_a_closed_loop_are_not_cut_where_the_terminal_is_narrow(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    report = control_report()
    report.note = "The target of m0.slide is where it starts."
    report.print()
    told = capsys.readouterr().out.splitlines()
    for line in (
        report.note,
        "  ok  gains are positive: they are",
        "  NO  the state is known: the law sees an estimate, noise 0.01",
        "  m0.slide is at its limit of 2 for 0.500 s, between 0.100 and 0.600 s",
    ):
        assert line in told
    assert report.data()["note"] == report.note
    report.certificate = replace(report.certificate, claim="joints stay near the target")
    report.print()
    told = capsys.readouterr().out.splitlines()
    assert "NOT guaranteed: joints stay near the target" in told


def test_errors_of_an_estimator_are_those_from_the_true_state():
    at_rest, moved = control_report(), control_report(q=np.ones((5, 2)), v=np.full((5, 2), 2.0))
    channels = dict(moved.run.channels)
    moved.run.channels = channels | {
        name: x + (2 if name == "estimate_v" else 1)
        for name, x in channels.items()
        if name != "nis"
    }
    for name in ("measured", "estimate", "rate"):
        assert moved.estimator[name] == pytest.approx(at_rest.estimator[name])
    del moved.run.channels["measured_q"]  # without noise the angles are known
    del moved.estimator
    assert moved.estimator["measured"] == [0, 0]


@pytest.mark.parametrize("fails", [False, True])
def test_colors_tell_whether_something_fails(monkeypatch, fails):
    told = io.StringIO()
    console = Console(file=told, width=120, force_terminal=True, color_system="standard")
    monkeypatch.setattr(output, "console", lambda: console)
    nis = Consistency(2.0, 1.0, 3.0, not fails)
    report = control_report(delay=0.004 + 0.002 * fails)
    report.failures = lambda: ["it falls"] if fails else []
    report.estimator |= {"nis": nis}
    report.print()
    lines = told.getvalue().splitlines()
    codes = {words: next(line.partition(words)[0] for line in lines if words in line)
             for words in ("Stable with", "the filter is", "  ok  ", "  NO  ")}  # fmt: skip
    plain, green, red, yellow = (f"\x1b[{k}m" for k in (39, 32, 31, 33))
    assert codes == {
        "Stable with": plain if fails else green, "the filter is": yellow if fails else green,
        "  ok  ": green, "  NO  ": red,
    }  # fmt: skip
    assert (f"{green}No failures." in told.getvalue()) != fails
    assert (f"{red}  it falls" in told.getvalue()) == fails


def test_what_is_exact_is_not_compared(screen):
    report = control_report()
    report.estimator |= {"measured": [0.0, 1e-3], "estimate": [1e-3, 0.0]}
    rows = [line for line in screen(report.print) if line.endswith(("mm/s", "°/s"))]
    assert [" - " in row for row in rows] == [True, True]


def test_a_certificate_is_that_of_the_start():
    q, v = np.arange(20.0).reshape(2, 5, 2)
    report = control_report(q=q, v=v)
    del report.certificate
    report.law.certificate = lambda goal, start: (goal, *start)
    goal, place, rate = report.certificate
    assert (goal.tolist(), place.tolist(), rate.tolist()) == ([0.1, np.pi / 6], [0, 1], [10, 11])


def test_an_integral_is_proposed_to_laws_without_one_where_masses_are_wrong():
    class WithIntegral(SimpleNamespace, PidLaw):
        def __init__(self, **given):
            SimpleNamespace.__init__(self, **given)

    line = "(a law with an integral, as pid-linearized, evens out wrong masses)"
    assert line in control_report()._off_target()
    assert line not in control_report(masses=1)._off_target()
    report = control_report()
    report.law = WithIntegral(**vars(report.law))
    assert len(report._off_target()) == 1
    report = control_report()
    report.response = report.response._replace(settling=np.array([0.5, 0.75]))
    assert report._off_target() == []


def test_numbers_of_a_closed_loop_are_those_of_the_run():
    data = control_report().data()
    nis = data["estimator"].pop("nis")
    assert (nis["mean"], nis["consistent"]) == (2, True)
    findings = [{"assumption": "gains are positive", "holds": True, "why": "they are"}]
    assert data.pop("breaks") == control_report().failures()
    assert data.pop("broken_assumptions") == [
        "the model is exact: true masses are 0.9 times its own",
        "the state is known: the law sees an estimate, noise 0.01",
    ]
    found = {name: pytest.approx(x) for name, x in data["estimator"].items()}
    assert found == {"measured": [3e-3, 0], "estimate": [2e-3, 0], "rate": [0, 0.1]}
    response = data.pop("response")
    np.testing.assert_array_equal(response["settling"], [0.5, np.inf])
    np.testing.assert_array_equal(response["rise"], [0.25, np.nan])
    assert {*response} == {"rise", "overshoot", "settling", "steady_error", "ripple"}
    assert data == {
        "title": "crane", "law": "pd", "seconds": 1.0, "status": "finished",
        "joints": list(examples.crane().model("physical").joint_names),
        "target": [0.1, np.pi / 6], "peak_torque": [2, 70], "delay_margin": 0.004,
        "saturated": [
            {"joint": "m0.slide", "limit": 2.0, "seconds": pytest.approx(0.5),
             "from_to": (0.1, 0.6)}
        ],
        "estimator": data["estimator"], "zero_dynamics": None, "guaranteed": False,
        "claim": "it settles", "assumptions": findings,
    }  # fmt: skip


def test_broken_assumptions_of_a_run_are_named():
    def told(**changed):
        return control_report(**{"masses": 1, "noise_q": 0.0, **changed}).not_exact()

    assert told() == []
    assert told(masses=1.0 - 1e-9) == ["the model is exact: true masses are 1 times its own"]
    assert told(masses=0.9, mass_range=(0.9, 1.1)) == told(masses=1.1, mass_range=(0.9, 1.1)) == []
    load = SimpleNamespace(body="m1", mass=0.25, known=False)
    assert told(payload=load) == ["the model is exact: m1 carries 0.25 kg more"]
    load.known = True
    assert told(payload=load) == []
    push, sine = (SimpleNamespace(body=body, frequency=f) for body, f in (("m0", 0), ("m1", 2)))
    assert told(pushes=(push, sine, push)) == ["only the motors act: m0, m1 is pushed"]
    assert told(pushes=(push, sine), wrench_sensors=True) == ["only the motors act: m1 is pushed"]
    assert told(noise_tau=0.5) == ["torques are exact: noise 0.5"]
    seen = "the state is known: the law sees {}, noise 0.1"
    assert told(noise_q=0.1) == [seen.format("an estimate")]
    assert told(noise_q=0.1, channels={}) == [seen.format("measurements")]
    model = examples.crane().model("physical")
    touched = np.zeros((5, len(model.body_names), 6))
    assert told(channels={"contact": touched}) == []
    touched[2, 1, 5] = 1e-3
    report = control_report(masses=1, noise_q=0.0, channels={"contact": touched})
    report.run.model = model
    words = f"only the motors act: the ground touches {model.body_names[1]}"
    assert report.not_exact() == [words]


def test_a_step_later_than_its_gains_promise_says_why():
    def missed(**changed):
        given = {"masses": 1, "noise_q": 0.0, "settling_time": 0.5, "q": np.eye(5, 2)}
        report = control_report(**(given | changed))
        report.response = report.response._replace(settling=np.array([0.5, 0.75]))
        report.law.promise = lambda goal, start: SimpleNamespace(reasons=(*goal, *start))
        return report

    assert missed()._missed() == [0.1, np.pi / 6, 1, 0]
    for changed in (
        {"settling_time": None}, {"settling_time": 0.74}, {"motion": "quintic"}, {"masses": 0.9},
        {"noise_q": 0.1},
    ):  # fmt: skip
        assert missed(**changed)._missed() == []
    just = missed(settling_time=0.625)  # a tenth more is not late
    just.response = just.response._replace(settling=np.array([0.5, 1.1 * 0.625]))
    assert just._missed() == []
    never = missed()
    never.response = never.response._replace(settling=np.array([0.5, np.inf]))
    for asked in (0.5, 0.9):
        never.law.settling_time = asked
        assert never._missed() != []  # after a second
    never.law.settling_time = 1.0
    assert never._missed() == []
    never.response = None
    assert never._missed() == []


def test_poles_are_told_once_by_pair_from_the_slowest_on():
    values = np.array([-3.0, -1 - 2j, -0.0, -1 + 2j])
    assert _poles_text(values) == "0, -1 ± 2j, -3"


def test_estimates_worse_than_what_was_measured_are_told():
    report = control_report()
    report.estimator |= {"nis": Consistency(9.0, 1.0, 2.0, False)}
    assert report.failures()[-1] == "the filter's covariances do not fit its errors (NIS)"
    report.estimator |= {"estimate": [3e-3, 1.0]}  # as good, and not measured at all
    assert "do not fit" in report.failures()[-1]
    report.estimator |= {"estimate": [4e-3, 0.0]}
    assert report.failures()[-1] == (
        "the estimate is worse than the measurement at m0.slide: the filter's model is off"
    )


# -- limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "limit", "count", "shown"),
    [  # the crab has 6 modules; with physical hinges, 6 active and 6 locked joints
        (output, "LARGEST_DRAWING", 6, "(no drawing of more than 5 modules)"),
        (show, "LARGEST_TABLES", 6, "6 modules: matrices left out; --matrices shows them."),
        (show, "MOST_NAMES", 6, "m2.rotation m4.hinge ..."),
        (show, "MOST_LOCKED", 6, "... and 1 more; --json lists them all."),
    ],
)
def test_a_list_is_cut_where_it_is_one_longer_than_its_limit(
    monkeypatch, module, limit, count, shown
):
    monkeypatch.setattr(module, limit, count)
    whole = CliRunner().invoke(cli, ["show", "crab", "--hinges", "physical"]).stdout
    monkeypatch.setattr(module, limit, count - 1)
    cut = CliRunner().invoke(cli, ["show", "crab", "--hinges", "physical"]).stdout
    assert shown not in " ".join(whole.split())
    assert shown in " ".join(cut.split())


def test_matrices_are_part_of_json_up_to_a_limit(monkeypatch):
    for limit, there in ((6, True), (5, False)):
        monkeypatch.setattr(show, "LARGEST_JSON", limit)
        data = json.loads(CliRunner().invoke(cli, ["show", "crab", "--json"]).stdout)
        assert (data["aim"] is not None) == there


@pytest.mark.parametrize(
    ("modules", "line"),
    [
        (1, "x: 1 module (1 backbone), 0 dockings, 1 kg, base m0"),
        (2, "x: 2 modules (2 backbone), 1 docking, 2 kg, base m0"),
        (3, "x: 3 modules (3 backbone), 2 dockings, 3 kg, base m0"),
    ],
)
def test_an_organism_in_one_line(modules, line):
    organism = examples.snake(modules)
    assert output.summary("x", organism) == line
    data = {"title": "x", "modules": modules, "kinds": {"backbone": modules}, "base": "m0"}
    assert output.summary_data("x", organism) == {**data, "mass": float(modules)}


# -- papers ----------------------------------------------------------------------------------------


def claim(found, expected, passed=True, relation="=", tolerance=None, unit=""):
    return SimpleNamespace(
        name="c", source="s", found=found, expected=expected, passed=passed, relation=relation,
        tolerance=tolerance, unit=unit, note="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "found", "expected"),
    [
        (claim(3, 3), "the same", "3"),
        (claim(4, 3, False), "differs", "3"),
        (claim("x" * 18, "x" * 18), "the same", "x" * 18),
        (claim("x" * 19, "x" * 19), "the same", "19 entries"),
        (claim([[1, 2]] * 7, [[1, 2]] * 7), "the same", "7 rows"),
        (claim(["sin(q1)*l"] * 4, ["sin(q1)*l"] * 4), "the same", "4 formulas"),
        (claim(["m1.hinge"] * 4, ["m1.hinge"] * 4), "the same", "4 names"),
        (claim(["sin(q1)*cos(q2)"], ["sin(q1)*cos(q2)"]), "the same", "1 formulas"),
        (claim(1e4, 1e4, relation="<="), "1.0e+04", "≤ 1.0e+04"),
        (claim([100000.0] * 4, [100000.0] * 4), "the same", "4 entries"),
        (claim(0.5, 0.25, tolerance=0.5, unit="s"), "0.5", "0.25 ± 5e-01 s"),
        (claim([1.0, -2.0], [1.0, 1.0], tolerance=1e-3), "2", "1 ± 1e-03"),
        (claim([1.0, -2.0], [1.0, 2.0], tolerance=1e-3), "2", "as printed ± 1e-03"),
        (claim([1.0, None], [1.0, 2.0], tolerance=1e-3), "differs", "as printed ± 1e-03"),
        (claim(1e-5, 1e-4, relation="<="), "1.0e-05", "≤ 1.0e-04"),
        (claim(20000.0, 9999.0, relation=">=", unit="m"), "2.0e+04", "≥ 9999 m"),
        (claim(0.01, 0.00999, relation="<="), "0.01", "≤ 1.0e-02"),
        (claim(0, None, relation="<="), "0", "≤ none"),
    ],
)
def test_numbers_and_tables_of_claims_are_short(given, found, expected):
    assert papers._found(given) == found
    assert papers._expected(given) == expected


def test_claims_are_listed_with_their_verdicts(screen):
    results = [claim(3, 3), claim(4, 3, False), claim(None, 2.5, None)]
    results[0].note, results[2].note = "of a claim that passed", "no engine here"
    claims = SimpleNamespace(
        key="giusti2015", document="Modules", results=results, passed=False, output=Path("out")
    )
    assert screen(papers._print, claims) == [
        "giusti2015: Modules",
        "claim  source     found  expected  verdict",
        "───────────────────────────────────────────",
        "c      s       the same         3  passed",
        "c      s        differs         3  FAILED",
        "c      s                      2.5  left out",
        "",
        "left out: no engine here",
        "1 passed, 1 FAILED, 1 left out",
        "wrote out/results.json",
        "",
    ]


def test_numbers_and_verdicts_are_never_broken_into_two_lines(monkeypatch, capsys):
    """At any width they stand in a row, or one below the other."""
    claims = SimpleNamespace(
        key="a", document="b", passed=True, output=Path("out"),
        results=[claim(3, 3), claim(0.5, 0.25, None, tolerance=0.5, unit="s")],
    )  # fmt: skip
    left_out = Check(
        name="c", found=None, limit=1e-10, relation="<=", verdict=LEFT_OUT, note="note"
    )
    report = SimpleNamespace(title="t", passed=True, checks=[left_out], count=lambda verdict: 1)
    for show_, given, rows, cells in (
        (papers._print, (claims,), ("c s the same 3 passed", "c s 0.25 ± 5e-01 s left out"),
         ("  found: the same", "  expected: 0.25 ± 5e-01 s", "  verdict: left out")),
        (verify._print, ("x", report), ("c ≤ 1e-10 left out note",),
         ("  limit: ≤ 1e-10", "  verdict: left out")),
    ):  # fmt: skip
        found = []
        for columns in range(36, 52):
            monkeypatch.setenv("COLUMNS", str(columns))
            show_(*given)
            told = capsys.readouterr().out.splitlines()
            whole = {*rows} <= {" ".join(line.split()) for line in told}
            assert whole != ({*cells} <= {*told}), columns
            found.append(whole)
        assert found == sorted(found)
        assert len({*found}) == 2


@pytest.mark.parametrize(("passed", "color"), [(True, 32), (False, 31)])
def test_the_sum_of_verdicts_is_green_or_red(monkeypatch, passed, color):
    told = io.StringIO()
    console = Console(file=told, width=80, force_terminal=True, color_system="standard")
    monkeypatch.setattr(output, "console", lambda: console)
    claims = SimpleNamespace(
        key="a", document="b", results=[claim(3, 3, passed)], passed=passed, output=Path("out")
    )
    papers._print(claims)
    report = SimpleNamespace(title="t", passed=passed, checks=[], count=lambda verdict: 1)
    verify._print("x", report)
    words = "1 passed" if passed else "1 FAILED"
    ends = [line for line in told.getvalue().splitlines() if words in line]
    assert len(ends) == 2
    assert all(f"{color}m{words if k == 0 else '1 passed'}" in x for k, x in enumerate(ends))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["balance", "crab", "--modules", "5"], "--modules has no effect with NAME_OR_FILE"),
        (["control", "one.json"], "one has no joint that can move with --hinges dyad"),
    ],
)
def test_options_without_effect_and_bodies_without_joints_are_refused(
    tmp_path, monkeypatch, args, words
):
    monkeypatch.chdir(tmp_path)
    examples.snake(1).save("one.json")
    result = CliRunner().invoke(cli, args)
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize(
    ("modules", "branches"), [(2, 2), (3, 3), (4, 4), (5, 1), (6, 3), (7, 1), (9, 3), (20, 4)]
)
def test_a_random_tree_has_as_many_branches_as_divide_its_modules(modules, branches):
    title, tree = balance._tree(modules, 3)
    assert title == f"SuperBot tree 3 of {modules} modules"
    assert len(tree) == modules
    assert tree == balance._tree(modules, 3)[1]
    assert tree == examples.superbot_tree(branches, modules // branches, np.random.default_rng(3))
