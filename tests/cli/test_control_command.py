"""``modurob control`` as its users see it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner, Result

from modurob import Scenario, Trajectory
from modurob.cli import cli, control
from modurob.control import CartesianImpedance, robustness
from modurob.control.laws import law_keys
from modurob.executors import LocalExecutor

SHORT = ("--settle", "0.2", "--sample-time", "0.005")


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Run the command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()

    def run(*args: str) -> Result:
        return runner.invoke(cli, ["control", *args])

    return run


def is_refused(result: Result, *words: str) -> None:
    """Exit code 2, nothing on stdout, one line on stderr that holds the words."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    for word in words:
        assert word in line


def data(result: Result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("law", law_keys())
def test_every_law_brings_the_crab_to_its_target(call, law):
    settle = () if law == "lqr" else ("--settle", "0.3")
    found = data(call("crab", "--law", law, *settle, "--sample-time", "0.005", "--json"))
    assert found["status"] == "finished"
    assert np.abs(found["response"]["steady_error"]).max() < 2e-3
    assert found["breaks"] == []
    assert found["guaranteed"]
    assert found["delay_margin"] > 0


def test_the_settling_time_is_the_one_asked_for(call):
    found = data(call("crab", "--settle", "0.5", "--sample-time", "0.001", "--json"))
    assert found["response"]["settling"] == pytest.approx([0.5] * 3, abs=2e-3)
    assert max(found["response"]["overshoot"]) < 1e-4
    assert found["seconds"] == pytest.approx(2.0)


def test_poles_are_one_pair_or_one_for_each_joint(call):
    options = ("double_pendulum", "--hinges", "physical", "--law", "pole-placement", "--json")
    found = data(call(*options, "--poles", "-2,-3,-5,-10", "--to", "20,20", "--duration", "4"))
    assert found["response"]["settling"] == pytest.approx([2.48, 0.92], abs=0.01)
    fast = ("--sample-time", "0.0005", "--duration", "3")  # a held torque swings a little less
    swing = data(call(*options, "--poles", "-2+3j,-2-3j", *fast))
    assert swing["response"]["overshoot"] == pytest.approx([np.exp(-2 * np.pi / 3)] * 2, abs=1e-3)


def test_an_estimate_from_noisy_angles_is_better_than_the_angles(call):
    found = data(call("crab", *SHORT, "--noise", "0.03", "--ekf", "--json"))
    filtered = found["estimator"]
    assert filtered["measured"] == pytest.approx([0.03] * 3, rel=0.2)
    assert max(filtered["estimate"]) < 0.4 * min(filtered["measured"])
    assert filtered["nis"]["consistent"]
    assert not found["guaranteed"]
    assert "estimate" in found["broken_assumptions"][0]


def test_the_summary_shows_what_it_should(call):
    result = call("crab", *SHORT, "--noise", "0.03", "--ekf", "--torque-limit", "4", "--seed", "1")
    assert result.exit_code == 0
    for words in (
        "crab: computed torque, a step, 0.8 s", "rise", "over", "settled", "steady error",
        "peak torque", "at limit", "m1.hinge", "+20.0°", "measured", "estimate", "NIS",
        "NOT guaranteed: close to the set point", "NO  the state is known", "ms of delay",
    ):  # fmt: skip
        assert words in result.output
    assert max(map(len, result.output.splitlines()[:8])) <= 80


def test_wrong_masses_are_seen_and_an_integral_is_proposed(call):
    found = data(call("crab", *SHORT, "--masses", "0.9", "--json"))
    assert found["response"]["settling"][0] is None
    # M k0 e = 0.1 gravity: too strong, so it stays above
    assert found["response"]["steady_error"][0] > 1e-3
    text = call("crab", *SHORT, "--masses", "0.9").output
    assert "true masses are 0.9 times its own" in text
    assert "m1.hinge does not settle within 2%" in text
    assert "pid-linearized" in text
    better = data(call("crab", *SHORT, "--masses", "0.9", "--law", "pid-linearized", "--json"))
    assert better["breaks"] == []


def test_saturation_is_told_with_its_times(call):
    found = data(call("crab", *SHORT, "--torque-limit", "2.5,1,1", "--json"))
    (entry,) = found["saturated"]
    assert entry["joint"] == "m1.hinge"
    assert entry["limit"] == 2.5
    assert entry["from_to"][0] == 0.0
    assert 0 < entry["seconds"] <= entry["from_to"][1]
    assert found["peak_torque"][0] == 2.5
    wrong = [x["assumption"] for x in found["assumptions"] if not x["holds"]]
    assert wrong == ["torques stay within their limits"]
    assert "m1.hinge is at its limit of 2.5 for" in found["breaks"][0]


def test_a_delay_beyond_the_margin_runs_away_and_says_when(call):
    given = ("--law", "pole-placement", "--poles", "-58,-58.5")  # gains that do not know the delay
    options = ("crab", *given, "--json", "--sample-time", "0.002")
    margin = data(call(*options))["delay_margin"]
    assert 0.004 < margin < 0.02
    fine = data(call(*options, "--delay", f"{margin - 0.002:.3f}", "--duration", "2"))
    assert not any("runs away" in line for line in fine["breaks"])
    lost = data(call(*options, "--delay", "0.02"))
    assert any("a delay of 20 ms is too long" in line for line in lost["breaks"])
    assert any("m1.hinge runs away" in line for line in lost["breaks"])
    assert not lost["guaranteed"]


def test_joints_without_a_motor_swing_as_their_zero_dynamics_say(call):
    """A crane with its wagon held is a pendulum of length 5 m."""
    crane = ("crane", "--hinges", "physical", "--passive", "m1.hinge", "--duration", "1")
    found = data(call(*crane, "--law", "partial-linearization", *SHORT, "--json"))
    swing = np.sqrt(9.81 / 5.0)
    assert sorted(x[1] for x in found["zero_dynamics"]) == pytest.approx([-swing, swing])
    assert np.abs([x[0] for x in found["zero_dynamics"]]).max() < 1e-9
    assert found["peak_torque"][1] == 0
    assert found["response"]["settling"][0] == pytest.approx(0.2, abs=0.01)
    text = call(*crane, "--outputs", "m0.slide", "--law", "partial-linearization", *SHORT).stdout
    assert "Zero dynamics at the target: 0 ± 1.4j 1/s." in text
    is_refused(call(*crane[:3], "--passive", "m9.hinge"), "m9.hinge", "m0.slide")
    is_refused(call(*crane, "--outputs", "m0.slide"), "outputs", "k0")


def test_a_measured_push_leaves_no_error(call):
    push = ("--push", "m3 force=0,0,2", "--duration", "0.5")
    blind, seen = (data(call("crab", *SHORT, *push, *more, "--json")) for more in
                   ((), ("--wrench-sensors",)))  # fmt: skip
    errors = [np.abs(x["response"]["steady_error"]).max() for x in (blind, seen)]
    assert errors[1] < 1e-3 * errors[0]
    assert (blind["guaranteed"], seen["guaranteed"]) == (False, True)


def test_a_run_that_diverges_is_reported_not_refused(call):
    given = ("--law", "pole-placement", "--poles", "-116,-117", "--delay", "0.05")
    found = data(call("crab", *given, "--duration", "9", "--json"))
    assert found["status"] == "stopped"
    assert found["seconds"] < 9
    assert found["response"] is None
    assert "diverged" in found["breaks"][0]


def test_a_smooth_motion_needs_less_torque_than_a_step(call):
    step, smooth = (
        data(call("crab", *SHORT, "--move", move, "--json")) for move in ("step", "quintic")
    )
    assert smooth["peak_torque"][0] < step["peak_torque"][0]
    assert np.abs(smooth["response"]["steady_error"]).max() < 1e-3


def test_a_plot_and_a_trajectory_are_written_and_kept(call, tmp_path):
    options = ("crane", "--hinges", "physical", *SHORT, "--noise", "0.01", "--ekf", "-o", "run.npz")
    result = call(*options, "--plot", "run.png")
    assert "wrote run.png" in result.output
    assert (tmp_path / "run.png").stat().st_size > 5000
    run = Trajectory.load(tmp_path / "run.npz")
    assert {"estimate_q", "sigma", "nis", "measured_q"} <= set(run.channels)
    is_refused(call(*options, "--plot", "run.pdf"), "run.npz already exists", "--force")
    assert call(*options, "--plot", "run.pdf", "--force").exit_code == 0
    assert (tmp_path / "run.pdf").read_bytes().startswith(b"%PDF")


def test_the_same_seed_gives_the_same_run(call):
    options = ("crab", *SHORT, "--noise", "0.02", "--json", "--seed")
    assert call(*options, "3").output == call(*options, "3").output
    assert call(*options, "3").output != call(*options, "4").output


def test_jobs_are_the_processes_of_random_steps(call, monkeypatch):
    seen = []

    def alone(law, step, *, executor, **options):
        seen.append((type(executor), executor.workers))
        return robustness(law, step, **options)

    monkeypatch.setattr(control, "robustness", alone)
    options = ("crab", *SHORT, "--monte-carlo", "5")
    assert call(*options, "--jobs", "2").exit_code == call(*options).exit_code == 0
    assert seen == [(LocalExecutor, 2), (LocalExecutor, 1)]


def test_a_monte_carlo_table_has_a_row_for_each_condition(call):
    result = call("crab", *SHORT, "--monte-carlo", "20")
    assert result.exit_code == 0
    for words in ("20 random steps", "as designed", "masses ±10 %", "delay 20 ms", "noise 0.03",
                  "torque limits", "all at once", "[rad, m]"):  # fmt: skip
        assert words in result.output
    found = data(call("crab", *SHORT, "--monte-carlo", "20", "--masses", "0.7", "--delay", "0.01",
                      "--noise", "0.05", "--torque-limit", "3", "--json"))  # fmt: skip
    names = [case["name"] for case in found["cases"]]
    assert names[1:4] == ["masses ±30 %", "delay 10 ms", "noise 0.05"]
    assert found["cases"][0]["settled"] == 1.0
    assert all(case["runs"] == 20 for case in found["cases"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("lobster",), ["lobster", "crab"]),
        (("crab", "--law", "magic"), ["magic", "computed-torque"]),
        (("crab", "--to", "1,2"), ["--to has 2 numbers", "3 joints", "m1.hinge"]),
        (("crab", "--to", "a,b,c"), ["--to takes numbers", "a,b,c"]),
        (("crab", "--to", "0,0,0"), ["at least one must move"]),
        (("crab", "--to", "nan,0,0"), ["--to takes numbers", "[deg, m]", "nan,0,0"]),
        (("crab", "--torque-limit", "1,2"), ["--torque-limit has 2 numbers"]),
        (("crab", "--torque-limit", "-1"), ["--torque-limit must be at least 0"]),
        (("crab", "--settle", "0"), ["--settle: must be greater than 0"]),
        (("crab", "--sample-time", "-1"), ["--sample-time must be a positive"]),
        (("crab", "--duration", "0"), ["duration", "positive"]),
        (("crab", "--delay", "0.003"), ["whole samples of 0.002 s"]),
        (("crab", "--delay", "-1"), ["--delay: must be greater than or equal to 0"]),
        (("crab", "--masses", "0"), ["--masses: must be greater than 0"]),
        (("crab", "--noise", "-1"), ["--noise: must be greater than or equal to 0"]),
        (("crab", "--duration", "1e9"), ["--duration", "--sample-time"]),
        (("crab", "--seed", "1"), ["--seed: has no effect when nothing is random"]),
        (("crab", "--poles", "-1,-2"), ["--poles belong to --law pole-placement"]),
        (("crab", "--law", "pole-placement", "--poles", "-1,2"), ["left of the imaginary axis"]),
        (("crab", "--law", "pole-placement", "--poles", "-1+1j,-2"), ["conjugate pairs"]),
        (("crab", "--law", "pole-placement", "--poles", "-1"), ["2 numbers, or 6"]),
        (("crab", "--law", "pole-placement", "--poles", "x,y"), ["--poles takes numbers"]),
        (
            ("crab", "--law", "pole-placement", "--poles", "-1,-2", "--settle", "1"),
            ["only one of them"],
        ),
        (("crab", "--law", "lqr", "--settle", "1"), ["lqr", "no --settle"]),
        (("crab", "--gains", "k0=nan k1=1"), ["--gains k0: takes finite numbers", "(given nan)"]),
        (("crab", "--gains", "k0=1e9 k1=1"), ["unstable: pole 60.5 ± 3.16e+04j", "m1.hinge"]),
        (("crab", "--passive", "m1.hinge,m3.hinge,m5.hinge"), ["no joint with a motor"]),
        (("crab", "--wrench-sensors"), ["--wrench-sensors: has no effect without a push"]),
        (("crab", "--plot", "x.gif"), ["unknown ending '.gif'"]),
        (("crab", "--plot", ""), ["--plot needs the name of a file"]),
        (("crab", "--monte-carlo", "0"), ["0", "1<=x"]),
        (("crab", "--monte-carlo", "9", "--plot", "x.png"), ["--plot shows one run"]),
        (("crab", "--monte-carlo", "9", "--ekf"), ["--ekf is for one run"]),
        (("crab", "--jobs", "2"), ["--jobs distributes the runs of --monte-carlo"]),
        (("crab", "--monte-carlo", "9", "--cluster", "x"), ["is such as tcp://127.0.0.1:8786"]),
        (("crab", "--monte-carlo", "9", "--jobs", "2", "--cluster", "x"), ["only one of them"]),
        (("crab", "--monte-carlo", "9", "--move", "quintic"), ["--move is for one run"]),
        (("crab", "--monte-carlo", "9", "--masses", "2.5"), ["masses is an error below 1"]),
    ],
)
def test_bad_input_is_one_line(call, arguments, words):
    is_refused(call(*arguments), *words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--law", "robust", "--gains", "rate=100", "--sample-time", "0.05"), "take 0.0095 s or"),
        (("--law", "joint-impedance", "--gains", "stiffness=10 damping=2"), "take 0.0016 s or"),
        (("--body", "m3"), "has no body that yields"),
        (("--law", "cartesian-impedance", "--body", "m9"), "bodies are m0"),
        (("--gains", "k0=1 k0=2 k1=3"), "a name twice"),
        (("--lock", "m1.hinge=0", "--lock", "m1.hinge=5"), "m1.hinge twice"),
        (("--push", "m3"), "neither a force nor a moment"),
        (("--push", "m3 force=1"), "takes three numbers"),
        (("--push", "m3 force=0,0,1 begin=9"), "the run ends at 4 s"),
        (("--lock", "m1.hinge=nan"), "--lock takes JOINT=POSITION"),
    ],
)  # fmt: skip
def test_what_would_diverge_or_have_no_effect_is_refused(call, options, words):
    is_refused(call("crab", *options), words)


def test_a_body_that_yields_and_joints_without_a_limit_reach_the_law(call, tmp_path):
    file = tmp_path / "run.json"
    run = ("--duration", "0.05", "--torque-limit", "3,0,0", "--save-scenario", str(file))
    data(call("crab", "--law", "cartesian-impedance", "--body", "m3", *run, "--json"))
    scenario = Scenario.load(file)
    law = scenario.law(scenario.model())
    assert isinstance(law, CartesianImpedance)
    assert law.body == "m3"
    np.testing.assert_array_equal(law.torque_limit, [3.0, np.inf, np.inf])
