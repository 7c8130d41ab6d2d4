"""Commands as they call the library: what is typed arrives there, and what comes back is told."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pytest
from click.testing import CliRunner

import modurob as mr
from modurob.cli import (
    COMMANDS,
    _warnings_as_lines,
    balance,
    bus_session,
    characters,
    cli,
    control,
    evolve,
    export,
    fields,
    identify,
    organisms,
    output,
    papers,
    preset_report,
    reports,
    run,
    show,
    simulate,
    verify,
    walk,
)
from modurob.cli import bus as bus_command
from modurob.cli.bus_session import BusSession, WaitTimeout
from modurob.distributed.balancing.faults import Fault
from modurob.distributed.bus.robot import BusRobot
from modurob.scenario.gait_files import GaitRecord
from oracles import complains

EXACT = 1e-12
DEFAULTS = {  # that are public: of all options that are not simply left out
    "equations --base": "fixed", "equations --symbols": "all", "equations --passive": "",
    "simulate --duration": 5.0, "simulate --base": "fixed",
    "control --law": "computed-torque", "control --move": "step", "control --sample-time": 0.002,
    "control --noise": 0.0,
    "balance --law": "shared", "balance --duration": 5.0, "balance --loss": 0.0,
    "balance --delay": 0, "balance --friction": 0.3, "balance --slope": 0.0, "balance --push": 0.0,
    "walk --duration": 10.0,
    "evolve --task": "walk", "evolve --population": 200, "evolve --generations": 50,
    "evolve --seed": 0, "evolve --strategy": "evolution", "evolve --modules": (4, 12),
    "evolve --target": "cpu", "evolve --winners": 4, "evolve --films": True,
    "identify --base": "fixed", "identify --error": 0.3,
    "export --base": "fixed",
    "verify --base": "fixed", "verify --states": 8, "verify --seed": 0,
    "bus --law": "computed-torque", "bus --heartbeat": 0.25, "bus --loss": 0.0,
    "bus --transport": "udp", "bus --period": 0.002, "bus --noise": 0.0, "bus --mass-factor": 1.0,
    "bus --coordinator": "python",
    "studio --port": 8350, "studio --host": "127.0.0.1",
}  # fmt: skip
REPEATED = {
    "new --set", "equations --lock", "simulate --lock", "simulate --parameter", "simulate --push",
    "control --lock", "control --push", "balance --fault", "balance --stuck", "balance --step",
    "walk --lock", "walk --parameter", "walk --push", "evolve --kind", "export --lock",
    "verify --lock",
}  # fmt: skip
SWITCHES = {
    "new": "repair force json", "show": "json", "equations": "force json",
    "simulate": "wrench-sensors ground equations loads force json",
    "control": "position-only wrench-sensors ground ekf loads force json",
    "balance": "processes ground loads force json", "walk": "loads force json",
    "evolve": "resume films json", "identify": "shared force json", "run": "loads force json",
    "export": "float force json", "verify": "json", "bus": "json", "papers": "json",
    "studio": "no-browser",
}  # fmt: skip
NEEDED = {"show", "equations", "simulate", "control", "walk", "identify", "verify"}


@pytest.mark.parametrize("name", COMMANDS)
def test_options_and_their_defaults_are_public(name):
    command = cli.get_command(click.Context(cli), name)
    context = click.Context(command)
    defaults, repeated, switches, needed = {}, set(), set(), set()
    for option in command.params:
        if isinstance(option, click.Argument):
            needed |= {name} if option.required else set()
            continue
        title, value = f"{name} {option.opts[0]}", option.get_default(context)
        if option.multiple:
            repeated.add(title)
        elif option.is_flag and isinstance(option.type, click.types.BoolParamType):
            switches.add(option.opts[0].removeprefix("--"))
        if isinstance(value, str | int | float | tuple) and value is not False and value != ():
            defaults[title] = value
        if option.opts[0] == "--seed" or defaults.get(title):
            assert "default: " in option.get_help_record(context)[1], title
        if value == 0 and value is not False and option.opts[0] != "--seed":
            told = "default: 0" in option.get_help_record(context)[1]
            assert told == (title in ("bus --loss", "bus --noise")), title
    wanted = {title for title in DEFAULTS if title.split()[0] == name}
    assert defaults == {title: DEFAULTS[title] for title in wanted}
    assert repeated == {title for title in REPEATED if title.split()[0] == name}
    assert switches - {"matrices"} == {*SWITCHES[name].split()}
    assert (name in needed) == (name in NEEDED)


def called(*args):
    """Standard output of a command."""
    done = CliRunner().invoke(cli, list(map(str, args)))
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*args):
    """The line of an error."""
    done = CliRunner().invoke(cli, list(map(str, args)))
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line.removeprefix("error: ")


def test_help_is_88_columns_wide_where_the_terminal_is_wider(monkeypatch):
    """Click leaves two of them free."""
    monkeypatch.setenv("COLUMNS", "200")
    context = click.Context(cli, **cli.context_settings)
    for name in ("balance", "verify"):
        command = cli.get_command(context, name)
        told = command.get_help(click.Context(command, parent=context, info_name=name))
        assert max(map(len, told.partition("Examples:")[0].splitlines())) == 86


def test_fields_of_a_run_are_options_in_order_with_kinds_and_defaults():
    told = " ".join(called("control", "--help").split())
    for words in (
        "[default: step] --to ANGLES Joint positions to go to, separated by commas. [deg, m] "
        "[default: 20,-15,10] --move-time FLOAT ",
        "--points FILE File of times",
        "--amplitude FLOAT Amplitude of a gait, as a share of the limits, up to 1. --frequency",
        "--settle SECONDS Settling time. [s] [default: 1] --gains GAINS",
    ):
        assert words in told


@pytest.mark.parametrize(
    "line",
    [
        "new crab --output", "show crab --picture", "show crab --html", "equations crab --output",
        *(f"simulate crab {option}" for option in run.FILES.values()), "run x.json --csv",
        "walk crab --resume", "walk crab --save-gait", "identify crab a.npz --output",
        "export crab --c --output", "export crab --runtime", "papers --output", "evolve --output",
        "bus --script", "studio --folder",
    ],
)  # fmt: skip
def test_an_empty_name_and_an_option_in_its_place_are_no_files(monkeypatch, tmp_path, line):
    monkeypatch.chdir(tmp_path)
    option = line.split()[-1]
    for given in ("", "--json"):
        words = f"{option} needs the name of a file, got '{given}'"
        assert refused(*line.split(), given) == words
    assert not [*tmp_path.iterdir()]


# -- balance ---------------------------------------------------------------------------------------


@pytest.fixture
def stood(monkeypatch):
    """Calls of `stand`, and the run that it returns."""
    calls, files = [], []
    made = SimpleNamespace(
        t=np.array([0.0, 0.5, 1.25]),
        feet=[SimpleNamespace(module="m2"), SimpleNamespace(module="m4")],
        lost=set(), fallen="", steps_done=1, tilt=np.radians([1.0, 2.5]),
        height=np.array([0.0625, 0.05]), slip=np.array([0.0, 0.003]),
        animate=lambda path: files.append(("film", path)),
        save=lambda path: files.append(("run", path)),
    )  # fmt: skip

    def stand(tree, **given):
        calls.append({"tree": tree, **given})
        return made

    monkeypatch.setattr(balance, "stand", stand)
    return SimpleNamespace(calls=calls, run=made, files=files)


def test_a_robot_on_the_ground_stands_with_the_options_that_are_typed(stood):
    called("balance", "--ground")
    called(
        "balance", "arm", "--ground", "--slope", 45, "--push", 1.5, "--step", "m2:0.04:-0.02",
        "--loss", 0.25, "--processes", "--fault", "die:m1:0.5", "--seed", 7, "--duration", 3,
        "--animate", "a.gif", "-o", "a.npz", "--json",
    )  # fmt: skip
    called("balance", "--ground", "--step", "m2:0:1")
    plain, given, _ = stood.calls
    assert plain["tree"] == mr.examples.superbot_walker(rng=np.random.default_rng(2))
    rest = {name: plain[name] for name in ("push", "steps", "loss", "processes", "faults")}
    assert rest == {"push": None, "steps": [], "loss": 0, "processes": False, "faults": []}
    assert plain["ground"].slope == (0, 0)
    assert [call["duration"] for call in stood.calls] == [2.5, 3, None]
    assert given["tree"] == mr.examples.arm()
    assert given["ground"].slope == pytest.approx((1.0, 0.0))
    assert (given["push"].time, given["push"].vector) == (1.0, (1.5, 0.0, 0.0))
    assert given["steps"] == [("m2", (0.04, -0.02))]
    assert (given["loss"], given["processes"]) == (0.25, True)
    assert given["faults"] == [Fault(0.5, "m1", "die")]
    assert given["rng"].uniform() == np.random.default_rng(7).uniform()
    assert stood.files == [("film", "a.gif"), ("run", "a.npz")]


def test_it_is_told_whether_a_robot_stands_slides_or_falls(stood):
    told = called("balance", "--ground").splitlines()
    assert told == [
        "SuperBot tree 2 on four legs: feet m2, m4",
        "It stands; 1 of 0 steps",
        "largest tilt 2.5 deg, lowest center 50 mm, largest slip of a sole 3 mm",
    ]
    facts = json.loads(called("balance", "arm", "--ground", "--step", "m2:0:0", "--json"))
    assert facts["largest_tilt_deg"] == pytest.approx(2.5)
    facts = {name: x for name, x in facts.items() if name != "largest_tilt_deg"}
    assert facts == {
        "title": "arm", "seconds": 1.25, "feet": ["m2", "m4"], "lost": [], "fallen": "", "steps": 1,
        "asked_steps": 1, "lowest_height_m": 0.05, "largest_slip_m": 0.003,
    }  # fmt: skip
    stood.run.slip[1], stood.run.lost = balance.SLIPPED, {"m9", "m3"}
    told = called("balance", "--ground", "--step", "m2:0:0").splitlines()
    assert told[0].endswith("feet m2, m4; died: m3, m9")
    assert told[1] == "It does not fall, but slides; 1 of 1 steps"
    stood.run.fallen = "It falls at 1 s"
    assert called("balance", "--ground").splitlines()[1] == "It falls at 1 s; 1 of 0 steps"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--ground", "--delay", 3), "--ground goes without --delay: leave one of them out"),
        (("--ground", "--csv", "x.csv"), "--ground goes without --csv"),
        (("--slope", 3), "--slope, --push and --step are for a robot on the ground: give --ground"),
        (("--step", "m2:0:0"), "give --ground"),
        (("--ground", "--step", "m2:0"), "--step takes FOOT:X:Y like m2:0.04:0, got 'm2:0'"),
        (("--fault", "die:m1:x"), "--fault takes KIND:MODULE:SECONDS like die:m7:1.0"),
        (("--fault", "die:m1"), "--fault takes KIND:MODULE:SECONDS like die:m7:1.0"),
        (("crab", "--modules", 3), "--modules has no effect with NAME_OR_FILE"),
        (("--processes", "--csv", "x.csv", "--stuck", "a"), "goes without --csv, --stuck: leave"),
        (("--processes", "--duration", 3601), "must be a number from 0 to 3600 (seconds)"),
        (("--processes", "--fault", "die:m1:6"), "--fault at 6 s lies outside of the run of 5 s"),
    ],
)
def test_balancing_refuses_what_has_no_effect(stood, args, words):
    assert words in refused("balance", *args)
    assert not stood.calls


def test_modules_balance_as_a_tree_of_twenty_unless_told(monkeypatch):
    found = []
    monkeypatch.setattr(balance, "execute", lambda scenario, files: found.append(scenario))
    called("balance")
    called("balance", "--modules", 6, "--seed", 5, "--loss", 0.5)
    given = [(x.name, len(x.organism), x.seed, x.hinges) for x in found]
    assert given == [
        ("SuperBot tree 2 of 20 modules", 20, 0, "physical"),
        ("SuperBot tree 5 of 6 modules", 6, 5, "physical"),
    ]
    told = " ".join(called("balance", "--help").split())
    assert "[default: 20]" in told
    assert "Seed of the tree and of lost messages. [default: 2]" in told


def test_processes_are_killed_in_time_and_a_row_comes_each_quarter_of_a_second(monkeypatch):
    done, slept = [], []

    class Network:
        speed = 0.5  # of real time

        def __init__(self, body, law, **given):
            done.append((len(body), law, given["drive"].friction, given["loss"], given["seed"]))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            done.append("end")

        def kill(self, name):
            done.append((name, round(sum(slept), 9)))

        def distance(self):
            return 0.042 * (1 + len(slept))

    monkeypatch.setattr(balance, "BalancingProcesses", Network)
    clock = SimpleNamespace(sleep=slept.append, monotonic=lambda: 100.0 + sum(slept))
    monkeypatch.setattr(balance, "time", clock)
    line = ("balance", "--modules", 4, "--processes", "--duration", 0.5, "--loss", 0.25, "--law",
            "momentum", "--friction", 0.75)  # fmt: skip
    told = called(*line, "--fault", "die:m3:0.25", "--fault", "die:m1:0.1").splitlines()
    assert done == [(4, "momentum", 0.75, 0.25, 2), ("m1", 0.25), ("m3", 0.5), "end"]
    assert slept == [0.25] * 4
    assert told == [
        f"{time:6.2f} s  {distance:8.4f} widths"
        for time, distance in ((0, 0.5), (0.125, 1.0), (0.25, 1.5), (0.375, 2.0))
    ]
    slept.clear()
    assert called(*line, "--fault", "die:m1:0.5")  # at the end of the run is not outside of it
    slept.clear()
    facts = json.loads(called(*line, "--json"))
    assert (facts["law"], facts["speed"], len(facts["rows"])) == ("momentum", 0.5, 4)
    assert facts["rows"][3] == {"time": 0.375, "distance": pytest.approx(2.0)}


# -- evolve ----------------------------------------------------------------------------------------


def entry(leader, median):
    return SimpleNamespace(leader=leader, median=median, model_dump=lambda: {"leader": leader})


def search(**changes):
    given = {
        "task": SimpleNamespace(name="walk", unit="m"), "generations": 4, "evaluations": 12,
        "history": [entry(None, None), entry(0.5, 0.125), entry(1.0, None)],
        "best": [SimpleNamespace(score=1.0)], "kept_out": {"too heavy": 3},
    }  # fmt: skip
    return SimpleNamespace(**(given | changes))


class Winner(SimpleNamespace):
    def _asdict(self):
        return {"name": self.name, "score": self.score, "mujoco": self.mujoco}


WINNERS = [
    Winner(name="winner-1", score=1.0, mujoco=1.5, difference=0.5, modules=3, joints=2, note=""),
    Winner(name="winner-2", score=0.5, mujoco=None, difference=None, modules=4, joints=3,
           note="it flies away"),
]  # fmt: skip


def test_a_generation_is_one_line():
    assert evolve._line(search()) == "generation 3 of 4: best 1.000 m, median none m ▁█"
    one = search(history=[entry(None, None)])
    assert evolve._line(one) == "generation 1 of 4: no valid body yet"
    two = search(history=[entry(0.25, 0.125)])
    assert evolve._line(two) == "generation 1 of 4: best 0.250 m, median 0.125 m ▁"


def test_a_search_has_the_options_that_are_typed(monkeypatch, tmp_path):
    calls, galleries = [], []

    def searched(task, population, generations, seed, **given):
        calls.append((task, population, generations, seed, given))
        (given["checkpoint"]).write_text("{}")
        given["progress"](search())
        return search()

    def gallery(found, folder, **given):
        given["progress"](0.5)
        galleries.append({name: given[name] for name in ("bodies", "films")})
        return WINNERS

    drawn, bars = [], []

    @contextlib.contextmanager
    def bar(title, shown):
        bars.append((title, shown))
        yield lambda *_: None

    monkeypatch.setattr(output, "bar", bar)
    monkeypatch.setattr(evolve, "evolve", searched)
    monkeypatch.setattr(evolve, "write_gallery", gallery)
    monkeypatch.setattr(evolve, "draw_progress", lambda result, path: drawn.append(path))
    folder = tmp_path / "new" / "search"
    done = CliRunner().invoke(cli, [
        "evolve", "--task", "climb", "--population", "7", "--generations", "3", "--seed", "5",
        "--duration", "2.5", "--kind", "scout", "--kind", "backbone", "--modules", "2", "9",
        "--strategy", "map-elites", "--winners", "2", "--no-films", "-o", str(folder),
    ])  # fmt: skip
    assert done.exit_code == 0, done.output
    ((task, *numbers, given),) = calls
    assert (task.name, task.duration, numbers) == ("climb", 2.5, [7, 3, 5])
    assert [kind.name for kind in given["space"].kinds] == ["scout", "backbone"]
    assert given["space"].modules == (2, 9)
    assert (given["strategy"], given["target"]) == ("map-elites", "cpu")
    assert galleries == [{"bodies": 2, "films": False}]
    assert drawn == [folder / "progress.png"]
    assert done.stderr == "generation 3 of 4: best 1.000 m, median none m ▁█\n"
    assert [line.rstrip() for line in done.stdout.splitlines()] == [
        "walk: 12 bodies in 3 generations",
        "body      score [m]  MuJoCo  difference  modules  joints",
        "────────────────────────────────────────────────────────",
        "winner-1      1.000   1.500       +50 %        3       2",
        "winner-2      0.500    none                    4       3",
        "",
        "winner-2 in MuJoCo: it flies away",
        "kept out: 3, too heavy",
        f"wrote {folder / 'index.html'}",
    ]
    again = ("evolve", "--output", folder, "--json")
    assert "--resume continues it" in refused(*again[:3])
    done = CliRunner().invoke(cli, [*map(str, again), "--resume"])
    assert done.stderr == ""
    films = "films and MuJoCo"
    assert bars == [("climb", True), (films, True), ("walk", False), (films, False)]
    assert calls[1][0].duration == mr.search.TASKS["walk"].duration
    assert [kind.name for kind in calls[1][4]["space"].kinds] == ["backbone"]
    data = json.loads(done.stdout)
    assert data["winners"][0]["difference"] == 0.5
    assert data["page"] == str(folder / "index.html")
    assert {name: data[name] for name in ("task", "generations", "evaluations", "best")} == {
        "task": "walk", "generations": 3, "evaluations": 12, "best": 1.0
    }  # fmt: skip
    assert (data["median_of_random_bodies"], data["kept_out"]) == (None, {"too heavy": 3})
    assert data["history"] == [{"leader": None}, {"leader": 0.5}, {"leader": 1.0}]


def test_progress_of_a_search_is_a_bar_on_a_terminal_and_lines_elsewhere(monkeypatch, capsys):
    drawn, shown = [], []
    monkeypatch.setattr(evolve, "draw_progress", lambda result, path: drawn.append(path.name))
    line = "generation 3 of 4: best 1.000 m, median none m ▁█"
    for on_terminal, as_json, told in (
        (False, False, f"{line}\n"), (True, False, ""), (False, True, ""), (True, True, "")
    ):  # fmt: skip
        screens = {True: SimpleNamespace(is_terminal=on_terminal)}  # of standard error
        monkeypatch.setattr(output, "console", lambda stderr, screens=screens: screens[stderr])
        evolve._reporter(Path("x"), lambda *given: shown.append(given), as_json)(search())
        assert capsys.readouterr() == ("", told)
    assert shown == [(0.75, line)] * 4
    assert drawn == ["progress.png"] * 4


def test_the_median_of_random_bodies_is_told(capsys):
    found = search(history=[entry(0.5, 0.125)], kept_out={})
    evolve._print(found, WINNERS[:1], Path("x"))
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "best 1.000 m; median of random bodies 0.125 m", "wrote x/index.html"
    ]  # fmt: skip


# -- control ---------------------------------------------------------------------------------------


def test_a_step_goes_20_degrees_or_10_cm_in_shares_that_lie_apart():
    model = mr.examples.arm().model("physical")
    goal = control._target(model, "step", None, ("m2.joint",))
    angles = np.degrees([goal[f"m{k}.joint"] for k in range(4)])
    np.testing.assert_allclose(angles, [20, -15, 0, 20], atol=EXACT)
    assert goal["m4.joint"] == pytest.approx(-0.075)
    near = mr.examples.arm("bb").with_parameters("m0", limits=(-1.0, 0.1)).model("physical")
    assert control._target(near, "quintic", None, ())["m0.joint"] == 0.1
    assert control._target(model, "wave", None, ()) is None
    assert control._target(model, "step", {"m0.joint": 0.1}, ()) == {"m0.joint": 0.1}
    with complains(mr.StateError, "--to is where the joints are already"):
        control._target(model, "step", {"m0.joint": 0.0}, ())


def test_a_run_takes_four_settling_times_up_to_a_minute():
    law = {"organism": "crab", "controller": "ComputedTorque", "motion": "step"}
    model = mr.examples.crab().model()

    def length(given=None, **fields):
        return control._duration(mr.Scenario(**{**law, **fields}), model, given)

    assert length() == 4.0
    assert length(settling_time=0.3) == 1.2
    assert length(settling_time=14.9) == 59.6
    assert length(settling_time=15.1) == 60
    assert length(given=0.7) == 0.7
    points = {"time": (0, 3, 2.5), "m1.hinge": (0, 0, 0)}
    assert length(motion="spline", points=points) == 3
    poles = {"controller": "PolePlacement", "poles": (-2, -3, -20, -30, -20, -30)}
    time = length(**poles) / 4  # of the slowest pair, after which 2 % of a step are left
    assert 3 * np.exp(-2 * time) - 2 * np.exp(-3 * time) == pytest.approx(0.02, rel=0.02)
    with complains(mr.StateError, "--duration must be a positive"):
        length(given=0.0)


def test_random_steps_have_the_sizes_that_are_typed(monkeypatch):
    calls = []

    def tried(law, step, *, progress, executor, rng, **given):
        calls.append({"law": law.key, "step": step, "seed": rng.uniform(), **given})
        return SimpleNamespace(_asdict=dict)

    monkeypatch.setattr(control, "robustness", tried)
    monkeypatch.setattr(control.control_report, "robustness_data", lambda title, table: [title])
    line = ("control", "crab", "--monte-carlo", 9, "--json")
    called(*line)
    called(*line, "--masses", 0.75, "--delay", 0.01, "--noise", 0.05, "--torque-limit", "3,0,1",
           "--duration", 2, "--seed", 4, "--to", "0,-30,45")  # fmt: skip
    called(*line, "--masses", 1, "--torque-limit", 0)
    plain, given, none = calls
    np.testing.assert_allclose(np.degrees(plain.pop("step")), [20, 15, 10])
    np.testing.assert_allclose(np.degrees(none.pop("step")), [20, 15, 10])
    seeds = [np.random.default_rng(seed).uniform() for seed in (0, 4)]
    assert plain == none == {"law": "computed-torque", "seed": seeds[0], "runs": 9}
    np.testing.assert_allclose(np.degrees(given.pop("step")), [20, 30, 45])
    np.testing.assert_array_equal(given.pop("torque_limit"), [3, np.inf, 1])
    assert given == {
        "law": "computed-torque", "seed": seeds[1], "runs": 9, "masses": 0.25, "delay": 0.01,
        "noise": 0.05, "duration": 2,
    }  # fmt: skip
    for to, step in (("0,30", [0.1, np.pi / 6]), ("-0.2,0", [0.2, np.pi / 9])):
        called("control", "crane", *line[2:], "--to", to)  # a slide and a hinge
        np.testing.assert_allclose(calls.pop()["step"], step)
    assert "--ground is for one run" in refused(*line, "--ground")
    assert "--ekf is for one run" in refused(*line, "--ekf")


@pytest.fixture
def executed(monkeypatch):
    """Scenarios that `control` and `simulate` would run, and the files that they would write."""
    found = []
    for module in (control, simulate):
        monkeypatch.setattr(module, "execute", lambda scenario, files: found.append(scenario))
    return found


def test_a_closed_loop_has_the_conditions_that_are_typed(executed):
    called("control", "crab", "--sample-time", 0.01)
    called("control", "crab", "--noise", 0.1, "--torque-noise", 0.2, "--ekf", "--seed", 3,
           "--position-only", "--settle", 0.5, "--masses", 0.75, "--delay", 0.004,
           "--torque-limit", "3,0,1", "--duration", 0.001)  # fmt: skip
    called("control", "crane", "--move", "wave", "--amplitude", 0.25, "--duration", 0.5)
    called("control", "double_pendulum", "--law", "pole-placement", "--poles", "-4,-5")
    plain, given, wave, poles = executed
    assert (plain.controller, plain.motion, plain.duration) == ("ComputedTorque", "step", 4)
    assert (plain.integrator, plain.dt, plain.record, plain.clock) == ("RK4", 0.01, 0.01, 0.01)
    assert (plain.noise_q, plain.estimator, plain.feedforward) == (0, "none", True)
    np.testing.assert_allclose(np.degrees([*plain.target.values()]), [20, -15, 10])
    assert (given.noise_q, given.noise_v, given.noise_tau) == (0.1, 0.1, 0.2)
    assert (given.estimator, given.seed, given.feedforward) == ("Ekf", 3, False)
    assert (given.dt, given.sample_time, given.duration) == (0.001, 0.002, 0.001)
    assert (given.settling_time, given.masses, given.torque_delay) == (0.5, 0.75, 0.004)
    assert given.torque_limit == (3, 0, 1)
    assert (wave.motion, wave.amplitude, wave.hinges, wave.target) == ("wave", 0.25, "physical", {})
    start = wave.reference(wave.model())(0.0)
    assert [*wave.rates.values()] == pytest.approx(start.v.tolist())
    assert (poles.controller, poles.poles, poles.hinges) == ("PolePlacement", (-4, -5), "physical")


def test_samples_of_a_run_have_a_limit(executed, monkeypatch):
    monkeypatch.setattr(control, "MOST_STEPS", 100)
    called("control", "crab", "--duration", 0.5, "--sample-time", 0.005)
    line = refused("control", "crab", "--duration", 0.6, "--sample-time", 0.005)
    assert line == ("--duration 0.6 s with --sample-time 0.005 s are 120 samples; the most is 100")
    assert len(executed) == 1
    assert "--csv shows one run" in refused("control", "crab", "--monte-carlo", 3, "--csv", "x")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--law", "lqr", "--settle", 1), "lqr takes no --settle: its gains are "),
        (("--poles", "-1,-2"), "--poles belong to --law pole-placement; others take --settle"),
        (("--settle", 1, "--gains", "k0=1 k1=1"), "give --poles, --gains or --settle, only one"),
        (("--to", "0,0,0"), "--to is where the joints are already"),
        (("--passive", "m1.hinge,m3.hinge,m5.hinge"), "--passive leaves no joint with a motor"),
    ],
)
def test_gains_and_targets_that_do_not_fit_are_refused(executed, args, words):
    assert words in refused("control", "crab", *args)
    assert not executed


def test_a_motion_has_the_start_the_gait_and_the_ground_that_are_typed(executed, tmp_path):
    called("simulate", "crab", "--start", "10,-20,30", "--duration", 0.5, "--dt", 0.01, "--rtol",
           1e-5, "--integrator", "DOP853")  # fmt: skip
    called("simulate", "crab", "--gait", "wave", "--parameter", "lag=0.5", "--parameter",
           "amplitude=0.25", "--parameter", "frequency=2")  # fmt: skip
    called("simulate", "snake", "--gait", "wave", "--base", "free", "--ground", "--slope", 45)
    file = tmp_path / "g.json"
    GaitRecord(motion="wave", ramp=0.5, gait={"lag": 0.3, "phase": 0.2}).save(file)
    called("simulate", "crab", "--gait", file, "--parameter", "lag=0.7")
    plain, wave, ground, kept = executed
    np.testing.assert_allclose(np.degrees([*plain.pose.values()]), [10, -20, 30])
    assert (plain.duration, plain.dt, plain.rtol, plain.integrator) == (0.5, 0.01, 1e-5, "DOP853")
    assert (plain.controller, plain.settling_time) == ("none", 1)
    assert (wave.controller, wave.settling_time) == ("ComputedTorque", 1)
    assert (wave.gait, wave.amplitude, wave.frequency) == ({"lag": 0.5}, 0.25, 2)
    assert (ground.settling_time, ground.slope) == (0.1, (pytest.approx(1.0), 0))
    assert (kept.ramp, kept.gait) == (0.5, {"lag": 0.7, "phase": 0.2})
    for args, words in (
        (("--gait", "wave", "--start", "1,2,3"), "a gait has a start of its own"),
        (("--parameter", "lag=1"), "--parameter sets a parameter of a gait: give --gait"),
        (("--gait", "wave", "--base", "free"), "a free base falls"),
    ):
        assert words in refused("simulate", "crab", *args)


# -- runs ------------------------------------------------------------------------------------------


def test_a_target_counts_for_one_body_on_a_fixed_base_with_a_clock():
    step = {
        "organism": "crab", "controller": "ComputedTorque", "motion": "step", "sample_time": 0.01,
        "target": {"m1.hinge": 0.5},
    }  # fmt: skip
    event = {"what": "undock", "time": 0.5, "module": "m5"}
    for changes, controlled in (
        ({}, True),
        ({"motion": "quintic"}, True),
        ({"pose": {"m1.hinge": 0.5}}, False),
        ({"pose": {"m1.hinge": 0.5, "m3.hinge": 0.1}}, True),
        ({"target": {}}, False),
        ({"target": {"m1.hinge": 0.1}}, True),
        ({"target": {"m1.hinge": 0.0}}, False),
        ({"sample_time": 0.0}, False),
        ({"sample_time": 0.0, "noise_q": 0.1}, True),
        ({"base": "free"}, False),
        ({"events": [event]}, False),
        ({"motion": "wave", "target": {}}, False),
    ):
        given = {key: x for key, x in {**step, **changes}.items() if x != {}}
        assert run.is_controlled(mr.Scenario(**given)) is controlled, changes


@pytest.mark.parametrize(
    ("states", "status", "code"), [(2, "stopped", 2), (3, "stopped", 0), (2, "finished", 0)]
)
def test_a_run_that_stops_is_shown_from_three_states_on(
    monkeypatch, tmp_path, states, status, code
):
    stopped = SimpleNamespace(
        status=status, t=np.arange(states) * 0.25, message="the simulation diverged",
        animate=None, to_csv=None, save=lambda path: Path(path).write_text("run"),
    )  # fmt: skip
    result = SimpleNamespace(trajectory=stopped)
    monkeypatch.setattr(mr.Scenario, "run", lambda self, **given: result)
    report = SimpleNamespace(plot=None, data=lambda: {"title": "x"}, print=lambda: None)
    monkeypatch.setattr(run, "report_of", lambda *_: report)
    monkeypatch.setattr(run, "loads_of", lambda *_: [])
    file = tmp_path / "run.npz"
    done = CliRunner().invoke(cli, ["simulate", "crab", "-o", str(file), "--json"])
    assert (done.exit_code, file.exists()) == (code, code == 0)
    if code:
        assert done.stderr == "error: the simulation diverged\n"
    else:
        assert json.loads(done.stdout) == {"title": "x", "files": [str(file)]}


def test_loads_are_shown_when_asked_for_or_where_connectors_have_limits(monkeypatch):
    monkeypatch.setattr(reports, "connector_loads", lambda part: part)
    parts = SimpleNamespace(parts=["a", "b"])
    limited = mr.examples.crab().with_parameters("m3", max_torque=5.0)
    for fields_, asked, shown in (
        ({}, False, []),
        ({}, True, ["a", "b"]),
        ({"organism": limited}, False, ["a", "b"]),
        ({"organism": limited, "masses": 0.9}, False, []),
        ({"organism": limited, "payload": {"body": "m1", "mass": 1}}, False, []),
    ):
        scenario = mr.Scenario(**{"organism": "crab", **fields_})
        assert reports.loads_of(scenario, parts, asked) == shown
    reports.check_loads(mr.Scenario(organism=limited))
    with complains(mr.StateError, "--loads needs the mass of each module"):
        reports.check_loads(mr.Scenario(organism="crab", masses=0.9))


def test_unknown_loads_and_endings_are_refused_before_the_run(monkeypatch, tmp_path):
    monkeypatch.setattr(mr.Scenario, "run", lambda self, **_: pytest.fail("it has run"))
    file = tmp_path / "x.json"
    line = ("simulate", "crab", "--payload", "m1 mass=0.2", "--save-scenario", file, "--loads")
    assert "--loads needs the mass of each module" in refused(*line)
    assert "unknown ending '.gif'" in refused(*line[:2], *line[4:6], "--plot", "x.gif")
    assert "x.txt" in refused(*line[:2], *line[4:6], "--html", "x.txt")
    assert not file.exists()


def test_loads_for_machines_are_the_largest_over_time():
    found = SimpleNamespace(
        names=["m0-m1", "m1-m2"],
        magnitudes=np.array([[[1.0, 5], [2, 6]], [[3, 4], [1, 7]]]),
        utilization=np.array([[0.5, np.nan], [0.25, np.nan]]),
        breaks=lambda: [SimpleNamespace(_asdict=lambda: {"docking": "m0-m1"})],
    )
    assert reports.load_data(found) == {
        "dockings": ["m0-m1", "m1-m2"], "largest_force": [3, 2], "largest_torque": [5, 7],
        "utilization": [0.5, None], "breaks": [{"docking": "m0-m1"}],
    }  # fmt: skip


# -- walk ------------------------------------------------------------------------------------------


def test_the_zoo_walks_with_files_of_its_own(monkeypatch):
    seen = []
    monkeypatch.setattr(walk, "execute", lambda scenario, files, facts: seen.append(
        (scenario.name, files["film_path"], files["csv_path"], facts)))  # fmt: skip
    called("walk", "zoo", "--film", "some/zoo.gif", "--seconds", 0.1)
    assert seen == [(name, f"some/zoo-{name}.gif", None, {}) for name in walk.ZOO]
    assert "--json is of one walk: name a walker, caterpillar" in refused("walk", "zoo", "--json")


@pytest.mark.parametrize("name", walk.ZOO)
def test_a_walker_of_the_zoo_has_its_gait_and_joints_unless_told(monkeypatch, name):
    seen = []
    monkeypatch.setattr(walk, "execute", lambda scenario, files, facts: seen.append(scenario))
    called("walk", name)
    called("walk", name, "--gait", "sine", "--hinges", "dyad")
    own, other = seen
    assert GaitRecord.of(own) == GaitRecord.load(walk.gait_file(name))
    assert (own.hinges, own.base, own.name) == ("physical", "free", name)
    assert (other.motion, other.gait, other.hinges) == ("sine", {}, "dyad")


def test_a_walk_has_the_seed_the_tuning_and_the_gait_that_are_typed(monkeypatch, tmp_path):
    seen, tuned = [], []
    monkeypatch.setattr(walk, "execute", lambda scenario, files, facts: seen.append(
        (scenario, facts)))  # fmt: skip

    def tune(scenario, evaluations, *, seed, checkpoint, progress):
        tuned.append((evaluations, seed, checkpoint))
        if progress is not None:
            progress(3, 9, 0.25)
        gait = SimpleNamespace(fields=lambda: {"amplitude": 0.75})
        return SimpleNamespace(evaluations=evaluations, score=0.5, gait=gait)

    monkeypatch.setattr(walk, "tune", tune)
    file = tmp_path / "gait.json"
    base = ("walk", "snake", "--hinges", "physical")
    done = CliRunner().invoke(cli, [*base, "--tune", "9", "--seed", "4", "--resume", "x.tuning",
                                    "--save-gait", str(file)])  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.stderr == "generation 3 of 9: best score 0.2500 m/s\n"
    assert tuned == [(9, 4, "x.tuning")]
    scenario, facts = seen[0]
    assert (scenario.amplitude, scenario.motion, scenario.base) == (0.75, "wave", "free")
    assert facts == {"tuning": {"evaluations": 9, "score": 0.5, "gait": {"amplitude": 0.75}}}
    assert json.loads(file.read_text())["amplitude"] == 0.75
    assert "already exists" in refused(*base, "--save-gait", file)
    called(*base, "--gait", "chaotic", "--seed", 3)
    assert seen[1][0].seed == 3
    called(*base, "--gait", "chaotic")
    assert (seen[2][0].seed, seen[2][1]) == (0, {})
    done = CliRunner().invoke(cli, [*base, "--tune", "5", "--json"])
    assert (tuned[1], done.stderr) == ((5, 0, None), "")
    assert "--seed has no effect on this gait" in refused(*base, "--seed", 3)
    assert "--resume continues a tuning: give --tune" in refused(*base, "--resume", "x")


# -- export, identify, fields ----------------------------------------------------------------------


def test_the_runtime_is_as_large_as_its_organism_or_16_modules_and_12_joints(monkeypatch):
    asked = []
    monkeypatch.setattr("modurob.firmware.runtime_files", lambda kinds, *sizes: (
        asked.append((len(kinds), *sizes)) or {"a.c": ""}))  # fmt: skip
    monkeypatch.setattr("modurob.compiler.emit_c.write_sources", lambda folder, files: [
        Path(folder) / name for name in files])  # fmt: skip
    told = called("export", "--runtime", "new")
    assert told == (
        "the catalog: wrote 1 files of the C runtime for up to 16 modules and 12 joints into new; "
        "build with make or cmake\n"
    )
    facts = json.loads(called("export", "superbot_tree", "--runtime", "new", "--float", "--json"))
    assert facts == {"files": ["new/a.c"], "title": "superbot_tree", "modules": 20, "joints": 60}
    called("export", "crab", "--runtime", "new", "--modules", 6, "--joints", 6)
    assert asked == [
        (len(mr.catalog.names()), 16, 12, False), (20, 20, 60, True), (6, 6, 6, False)
    ]  # fmt: skip
    line = refused("export", "crab", "--runtime", "new", "--modules", 5)
    assert line == "--modules 5 has no room for crab: it has 6 modules"
    assert export._size("joints", None, 12, 13, "x") == 13


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ("crab",),
            "choose what to export: --c, --urdf, --urdf-ros2, --srdf, --mjcf, --mjcf-servo",
        ),
        (("--c",), "name the organism to export"),
        (("crab", "--urdf", "--float"), "--float has no effect with --urdf"),
        (("crab", "--urdf", "--modules", 3), "--modules and --joints are sizes of the C runtime"),
        (("crab", "--urdf", "--joints", 3), "--modules and --joints are sizes of the C runtime"),
        (("--runtime", "x", "--urdf"), "--runtime takes its folder itself"),
        (("--runtime", "x", "-o", "y"), "--runtime takes its folder itself"),
        (("--runtime", "x", "--base", "free"), "have no effect with --runtime"),
        (("--runtime", "x", "--name", "y"), "have no effect with --runtime"),
        (("--runtime", "x", "--hinges", "dyad"), "have no effect with --runtime"),
        (("--runtime", "x", "--lock", "a=1"), "have no effect with --runtime"),
    ],
)
def test_exports_refuse_what_has_no_effect(args, words):
    assert words in refused("export", *args)


def test_what_is_identified_is_told_and_written(monkeypatch, tmp_path):
    asked = []
    suspect = SimpleNamespace(
        given=np.array([1.0]), found=2,
        _asdict=lambda: {"module": "m1", "given": np.array([1.0]), "found": 2},
    )  # fmt: skip
    fit = SimpleNamespace(
        parameters=[SimpleNamespace(
            name="m1.mass", given=1.0, found=1.25, std=0.0125,
            _asdict=lambda: {"name": "m1.mass", "found": 1.25},
        )],
        suspects=[], noise=np.array([0.5]), organism=mr.examples.crab(),
    )  # fmt: skip
    monkeypatch.setattr(identify, "Trajectory", SimpleNamespace(load=lambda path: path))
    monkeypatch.setattr(identify, "identify", lambda model, runs, **given: (
        asked.append((runs, given)) or fit))  # fmt: skip
    file = tmp_path / "new.json"
    told = called("identify", "crab", "a.npz", "b.npz", "--shared", "-o", file).splitlines()
    assert [line.rstrip() for line in told[:6]] == [
        "crab: 1 base parameters",
        "base parameter  given  found  std error",
        "───────────────────────────────────────",
        "m1.mass             1   1.25      0.013",
        "",
        "The runs do not contradict the datasheets.",
    ]
    assert "written: " in told[6]
    assert mr.load(file) == mr.examples.crab()
    fit.suspects = [suspect]
    data = json.loads(called("identify", "crab", "a.npz", "--error", 0.5, "--json"))
    assert data == {
        "title": "crab", "parameters": [{"name": "m1.mass", "found": 1.25}], "noise": [0.5],
        "suspects": [{"module": "m1", "given": [1.0], "found": 2}],
    }  # fmt: skip
    assert asked == [
        (["a.npz", "b.npz"], {"shared": True, "datasheet_error": 0.3}),
        (["a.npz"], {"shared": False, "datasheet_error": 0.5}),
    ]
    assert "already exists" in refused("identify", "crab", "a.npz", "-o", file)
    assert "Missing argument 'RUN.npz...'" in refused("identify", "crab")


def test_points_of_a_saved_run_begin_at_zero_and_belong_to_the_same_joints(monkeypatch):
    model = mr.examples.snake(2).model(base="free")
    (hinge,), q = model.joint_names, np.tile(model.neutral(), (2, 1))
    q[:, 7] = 0.1, 0.2
    saved = SimpleNamespace(model=model, t=np.array([2.0, 2.5]), q=q)
    monkeypatch.setattr(fields, "Trajectory", SimpleNamespace(load=lambda path: saved))
    found = fields._points("x.npz", mr.examples.snake(2).model())
    assert found == {"time": (0.0, 0.5), hinge: (0.1, 0.2)}
    with complains(mr.StateError, "x.npz: the run has other joints than the model: " + hinge):
        fields._points("x.npz", mr.examples.snake(3).model())


# -- bus -------------------------------------------------------------------------------------------


def status(**changes):
    given = {
        "mode": "hold", "motion": "", "progress": 0.0, "reason": "", "joints": (),
        "q": np.zeros(2), "set_point": np.zeros(2),
    }  # fmt: skip
    return SimpleNamespace(**(given | changes))


class Bus:
    """A bus that never comes to anything, and remembers what it was asked to wait for."""

    def __init__(self, **changes):
        self.waits, self.held = [], []
        self.robot = BusRobot()
        self.state = status(**changes)
        self.operation = SimpleNamespace(status=lambda: self.state)

    def wait(self, condition, limit):
        self.waits.append(limit)
        self.held.append(bool(condition()))
        return self.held[-1]

    def settled(self, number):
        return number == 0


@pytest.fixture
def conversations(monkeypatch):
    """What `modurob bus` asks of its processes and of its session."""
    found = []

    class Processes:
        def __init__(self, **given):
            found.append(given)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            found.append("end")

        def wait_until_warm(self):
            found.append("warm")

    class Session:
        fails = None

        def __init__(self, bus, quiet):
            found.append(quiet)

        def talk(self):
            found.append("talk")

        def play(self, lines):
            found.append(list(lines))
            if Session.fails:
                raise Session.fails

        def facts(self):
            return {"modules": []}

    monkeypatch.setattr(bus_command, "ProcessBus", Processes)
    monkeypatch.setattr(bus_command, "BusSession", Session)
    return SimpleNamespace(found=found, session=Session)


def test_a_bus_has_the_options_that_are_typed(conversations, tmp_path):
    assert called("bus") == ""
    given, *rest = conversations.found
    assert rest == ["warm", False, "talk", "end"]
    assert given == {
        "plant": mr.distributed.PlantOptions(), "native": (), "law": "computed-torque",
        "heartbeat": 0.25, "loss": 0, "transport": "udp", "period": 0.002, "coordinator": "python",
    }  # fmt: skip
    conversations.found.clear()
    file = tmp_path / "a.bus"
    file.write_text("one\ntwo\n", encoding="utf-8")
    told = called("bus", "--script", file, "--json", "--noise", 0.5, "--mass-factor", 1.25,
                  "--native", "m2,m13", "--law", "pd-gravity")  # fmt: skip
    assert json.loads(told) == {"modules": []}
    given, warm, quiet, lines, end = conversations.found
    assert given["plant"] == mr.distributed.PlantOptions(noise_q=0.5, noise_v=0.5, mass_factor=1.25)
    assert (given["native"], given["law"]) == (("m2", "m13"), "pd-gravity")
    assert (warm, quiet, end) == ("warm", True, "end")
    assert lines == [(f"{file}:1", "one\n"), (f"{file}:2", "two\n")]
    conversations.found.clear()
    called("bus", "--native")
    assert conversations.found[0]["native"] is True
    for names in ("m2,x", "m", "m2,", "1"):
        assert "--native takes names of modules such as m2,m3" in refused("bus", "--native", names)
    assert "nowhere.bus: cannot be read" in refused("bus", "--script", "nowhere.bus")


def test_a_script_that_waits_in_vain_ends_with_1_and_still_prints_the_state(conversations):
    conversations.session.fails = WaitTimeout("waited 1 s")
    done = CliRunner().invoke(cli, ["bus", "--script", "-", "--json"], input="wait 1\n")
    assert (done.exit_code, done.stderr) == (1, "error: waited 1 s\n")
    assert json.loads(done.stdout) == {"modules": []}
    assert conversations.found[3] == [("standard input:1", "wait 1\n")]


def test_characters_that_a_terminal_lacks_are_replaced_by_what_looks_alike():
    text = "a→é≥▁█║"
    lacking = UnicodeEncodeError("ascii", text, 1, len(text), "not there")
    assert characters.plain_characters(lacking) == (">\\xe9>=_#|", len(text))
    other = UnicodeDecodeError("ascii", b"x", 0, 1, "no")
    with pytest.raises(UnicodeDecodeError):
        characters.plain_characters(other)


def test_waiting_has_a_limit_of_20_seconds_and_says_what_it_waited_for():
    bus = Bus()
    session = BusSession(bus, quiet=True)
    assert (session.prompt, BusSession(bus).prompt) == ("", "bus> ")
    session.run("wait 0")
    session.run("wait done")
    session.run("sleep 1e6")
    session.run("sleep 0")
    with complains(WaitTimeout, "waited 0.5 s for a robot of 3 modules; it has 0"):
        session.run("wait 3 0.5")
    bus.state = status(motion="goto in 1 s", progress=0.25, reason="too slow")
    with complains(WaitTimeout, "waited 2 s for the end of hold: goto in 1 s (25%); too slow"):
        session.run("wait done 2")
    with complains(WaitTimeout, "waited 20 s for a robot of 3 modules; it has 0; too slow"):
        session.run("wait 3")
    with complains(mr.StateError, "SECONDS must be a number from 0 to 1e+06 (seconds), got 1"):
        session.run("sleep 1000001")
    assert bus.waits == [20, 20, 1e6, 0, 0.5, 2, 20]
    assert bus.held == [True, True, *[False] * 5]  # nothing ends a sleep


@pytest.mark.parametrize(
    ("words", "seconds"), [((), 1.5), (("in", "2"), 2.0), (("in", "0.25"), 0.25)]
)
def test_commands_end_with_their_seconds(words, seconds):
    assert bus_session._seconds(words, 1.5) == seconds
    for wrong in (("in",), ("at", "2"), ("in", "2", "3"), ("in", "0"), ("in", "-1"), ("in", "x")):
        with pytest.raises(mr.StateError):
            bus_session._seconds(wrong, 1.5)


def test_numbers_of_commands_are_whole_or_finite():
    assert (bus_session._whole("N", "12"), bus_session._number("Q", "-1.5e2")) == (12, -150.0)
    for text in ("1.5", "-1", "", "x"):
        with complains(mr.StateError, f"N is a whole number, got '{text}'"):
            bus_session._whole("N", text)
    for text in ("inf", "nan", "", "1,2"):
        with complains(mr.StateError, f"Q is a number, got '{text}'"):
            bus_session._number("Q", text)


def test_a_script_ends_at_quit_or_at_its_first_mistake(capsys):
    session = BusSession(Bus(), quiet=False)
    session.play([("a:1", "# nothing"), ("a:2", "sleep 0  # short"), ("a:3", "quit"), ("a:4", "x")])
    assert capsys.readouterr().out == "bus> sleep 0\nbus> quit\n"
    with complains(mr.StateError, "a:1: no command 'x': start, plug, unplug, arm"):
        session.play([("a:1", "x")])
    with complains(WaitTimeout, "b:2: waited 1 s"):
        session.play([("b:1", ""), ("b:2", "wait 1 1")])
    with complains(mr.StateError, "c:1: wait: wait N [SECONDS]"):
        session.play([("c:1", "wait 1 2 3")])
    assert session.onecmd("EOF") is True
    assert capsys.readouterr().out.endswith("bus> wait 1 2 3\n\n")  # behind the prompt
    assert session.onecmd("nothing") is False
    assert "error: no command 'nothing'" in capsys.readouterr().out
    assert session.onecmd("") is False


def test_a_record_that_could_not_be_written_is_kept(tmp_path, capsys):
    calls, parts = [], [SimpleNamespace(t=np.zeros(3)), SimpleNamespace(t=np.zeros(4))]
    made = SimpleNamespace(
        parts=parts, to_csv=lambda path: calls.append(("csv", path)),
        save=lambda path: calls.append(("npz", path)),
    )  # fmt: skip
    bus = Bus()
    bus.operation = SimpleNamespace(
        record=lambda: calls.append("begin"), recorded=lambda: calls.append("end") or made
    )
    session = BusSession(bus)
    session.run("record")
    session.run("record a.csv")
    session.run("record b.npz")
    assert calls == ["begin", "end", ("csv", "a.csv"), "end", ("npz", "b.npz")]
    assert capsys.readouterr().out == "wrote a.csv: 7 states\nwrote b.npz: 7 states\n"

    def fails(path):
        raise mr.WriteError(f"{path}: no folder")

    made.save = fails
    with complains(mr.WriteError, "c: no folder"):
        session.run("record c")
    made.save = lambda path: calls.append(("npz", path))
    calls.clear()
    session.run("record d")
    assert calls == [("npz", "d")]  # the record of before
    session.run("record")
    session.run("record e")
    assert calls[1:] == ["begin", "end", ("npz", "e")]


def test_an_arm_is_plugged_module_by_module_from_the_base_on(capsys):
    plugged = []
    bus = Bus()
    bus.modules = {"m0": None}

    def start(kind):
        name = f"m{len(bus.modules)}"
        node = SimpleNamespace(uid=5, ports=("in", "out"))
        bus.modules[name] = SimpleNamespace(kind=kind, node=node)
        return name

    bus.start, bus.is_native = start, lambda name: name == "m2"
    bus.pid = lambda name: 70 + int(name[1:])
    bus.plug = lambda *ends: plugged.append(ends)
    session = BusSession(bus, quiet=True)
    session.out.quiet = False
    session.run("arm ca")
    assert capsys.readouterr().out.splitlines() == [
        "m1: giusti_c, id 00:00:00:00:00:05, process 71, ports in, out",
        "m2: giusti_a, id 00:00:00:00:00:05, process 72 in C, ports in, out",
    ]
    assert [bus.modules[name].kind.name for name in ("m1", "m2")] == ["giusti_c", "giusti_a"]
    assert plugged == [("base.out", "m1.in"), ("m1.out", "m2.in")]
    session.run("plug m0.2 m1.3 90")
    session.run("plug m0.2 m1.3")
    assert plugged[2:] == [("m0.2", "m1.3", 90), ("m0.2", "m1.3", 0)]
    for word in ("abd", "''"):
        with complains(mr.UnknownNameError, "an arm is a word of a, b and c such as babac"):
            session.run(f"arm {word}")


def test_data_that_was_written_has_two_seconds_to_reach_the_model():
    bus, written = Bus(), []
    body = SimpleNamespace(names={}, organism="old", faults=())
    bus.robot = SimpleNamespace(assembly=body)
    bus.write = lambda name, **data: written.append((name, data))
    session = BusSession(bus, quiet=True)
    session._shown = bus.robot
    session.run("write m1 mass=0.6 limits=-1,1")
    assert written == [("m1", {"mass": 0.6, "limits": [-1, 1]})]
    assert bus.waits == [2]
    with complains(mr.StateError, "write: write MODULE NAME=NUMBER"):
        session.run("write m1")


@pytest.mark.parametrize(
    ("address", "told"), [(("127.0.0.1", 4321), "127.0.0.1:4321"), ("/tmp/bus.sock",) * 2]
)
def test_a_conversation_begins_with_the_address_of_the_coordinator(
    monkeypatch, capsys, address, told
):
    watched, daemons = threading.Event(), []

    def watch(self):
        daemons.append(threading.current_thread().daemon)  # ends with the conversation
        watched.set()

    monkeypatch.setattr(BusSession, "_watch", watch)
    monkeypatch.setattr(BusSession, "cmdloop", lambda self: self.out.print(self.prompt))
    bus = Bus()
    bus.address = address
    BusSession(bus).talk()
    assert capsys.readouterr().out == f"Coordinator at {told}. help lists commands.\nbus> \n"
    assert watched.wait(60)
    assert daemons == [True]


def test_help_has_a_line_for_each_command(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "120")
    session = BusSession(Bus())
    session.run("help")
    told = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    usages = [bus_session._help(getattr(session, f"do_{name}"))[0] for name in session._names()]
    width = max(map(len, usages)) + 2
    assert [line[:width].rstrip() for line in told] == usages
    assert told[usages.index("hold")] == f"{'hold':<{width}}hold all joints where they are."


def test_gains_are_some_or_all_of_those_of_the_law():
    bus, chosen = Bus(), []
    law = SimpleNamespace(key="pd", parameters={"kp": "1/s", "kd": ""})
    bus.builder = SimpleNamespace(
        law=law, change_law=lambda key, **gains: chosen.append((key, gains))
    )
    session = BusSession(bus, quiet=True)
    session.run("gains kp=5")
    session.run("gains kp=5 kd=1,2")
    session.run("law lqr")
    assert chosen == [("pd", {"kp": 5}), ("pd", {"kp": 5, "kd": [1, 2]}), ("lqr", {})]
    for given, told in (("", "nothing"), (" kp=1 ki=2", "kp=1 ki=2")):
        with complains(mr.StateError, f"pd takes kp [1/s], kd, got {told}"):
            session.run(f"gains{given}")


def test_commands_after_which_the_robot_may_be_another_tell_its_changes():
    bus, told = Bus(), []
    law = SimpleNamespace(key="pd", parameters={"kp": ""})
    bus.builder = SimpleNamespace(law=law, change_law=lambda key, **gains: None)
    bus.write = lambda name, **data: None
    session = BusSession(bus, quiet=True)
    session.print_changes = lambda: told.append(line)
    lines = ("law pd", "gains kp=1", "write m0 mass=1", "sleep 0", "wait 0")
    for line in lines:
        session.run(line)
    assert told == [*lines]


def test_changes_are_watched_for_and_errors_of_the_bus_are_told(capsys):
    bus, told = Bus(), []
    session = BusSession(bus)
    session.print_changes = lambda *given: told.append(given)
    answers = [True, True, False, RuntimeError("lost"), KeyboardInterrupt()]

    def wait(condition, limit):
        assert not condition()
        bus.waits.append(limit)
        session._shown = bus.robot
        if isinstance(answer := answers.pop(0), BaseException):
            raise answer
        return answer

    bus.wait, session._shown = wait, bus.robot
    with pytest.raises(KeyboardInterrupt):
        session._watch()
    assert bus.waits == [60] * 5
    assert told == [("\n", "bus> ")] * 2
    assert capsys.readouterr().out == "\nerror: lost\n"


def test_a_robot_is_waited_for_until_it_has_its_certificate():
    bus = Bus()
    session = BusSession(bus, quiet=True)
    names = {"names": {1: "m0"}, "organism": None, "faults": (), "silent": {}}
    for controller, certificate, ready in (
        (None, None, True), ("law", "proof", True), ("law", None, False), (None, "proof", False)
    ):  # fmt: skip
        bus.robot = SimpleNamespace(
            controller=controller, certificate=certificate, assembly=SimpleNamespace(**names)
        )
        session._shown = bus.robot
        if ready:
            session.run("wait 0")
        else:
            with complains(WaitTimeout, "for a robot of 0 modules; it has 1"):
                session.run("wait 0")


def test_errors_at_rest_are_those_of_a_body_a_tenth_heavier():
    bus, model, asked = Bus(), mr.examples.crab().model(), []
    session = BusSession(bus, quiet=True)

    def rest(other):
        asked.append(other)
        return np.array([0.1, -0.5, 0.2])

    bus.operation.rest = rest
    bus.robot = SimpleNamespace(model=model)
    hold = status(q=np.array([0.3, 0.1, -0.4]), set_point=np.array([0.0, 0.0, 0.1]))
    assert session._errors_at_rest(hold) == pytest.approx((0.5, 0.5))
    np.testing.assert_allclose(asked[0].mass, 1.1 * model.mass)
    np.testing.assert_allclose(asked[0].inertia, 1.1 * model.inertia)
    nothing = (None, None)
    assert session._errors_at_rest(status(mode="move", q=hold.q)) == nothing
    assert session._errors_at_rest(status(q=np.array([0, np.nan, 0]))) == nothing
    assert session._errors_at_rest(status(q=np.zeros(2))) == nothing  # another body since then
    assert len(asked) == 2

    def never(other):
        raise mr.StateError("no rest")

    bus.operation.rest = never
    assert session._errors_at_rest(hold) == nothing
    bus.robot = SimpleNamespace(model=None)
    assert session._errors_at_rest(hold) == nothing


def robot_of(names, controller=None, joints=2, faults=(), silent=()):
    """A robot as the coordinator knows it."""
    assembly = SimpleNamespace(
        names=dict(enumerate(names)), organism="body", faults=faults,
        silent=dict(enumerate(silent, start=50)),
    )  # fmt: skip
    return SimpleNamespace(
        assembly=assembly, controller=controller, model=SimpleNamespace(nv=joints), released=(1,)
    )


def test_changes_of_a_robot_are_told_by_name(capsys):
    law, bus = SimpleNamespace(name="PD"), Bus()
    session = BusSession(bus)

    def told(robot, *around):
        bus.robot = robot
        session.print_changes(*around)
        return capsys.readouterr().out.splitlines()

    summary = "= robot of 2 modules, 2 joints, PD; let go: m1"
    assert told(robot_of(["m0", "m1"], law)) == ["+ m0 m1", summary]
    assert told(robot_of(["m0", "m1"], law), "\n", "bus> ") == []  # has its certificate now
    assert told(robot_of(["m0", "m1"], law)) == [summary]
    other = SimpleNamespace(name="PD")
    assert told(robot_of(["m0", "m1"], other), "\n", "> ") == ["", summary, "> "]
    changed = "= robot of 2 modules, 1 joint, PD; let go: m1"
    assert told(robot_of(["m0", "m1"], other, joints=1), "\n", "> ") == ["", changed, "> "]
    lost = robot_of(["m0", "m2"], other, faults=("loose",), silent=["m9", "m3"])
    assert told(lost) == [
        "+ m2", "- m1", "! loose",
        "= robot of 2 modules, 2 joints, PD; silent: m3 m9; let go: m2",
    ]  # fmt: skip
    assert told(robot_of(["m0", "m2"], None, faults=("loose",))) == [
        "= robot of 2 modules, 2 joints, no controller"
    ]
    still = robot_of(["m0", "m2"])
    still.model = None
    assert told(still) == ["= robot of 2 modules, 0 joints, no controller"]
    nothing = robot_of([])
    nothing.assembly.organism = None
    assert told(nothing) == ["- m0 m2", "= no robot"]
    again = robot_of([])
    again.assembly.organism = None
    assert told(again) == []


def test_the_table_of_the_coordinator_is_told_on_one_screen(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    row = {"name": "m0", "kind": "giusti_b", "id": "02:42", "role": "router",
           "docked": ["in on base.out", "x"], "q": [1.234, None], "tau": [0.5, -1.0]}  # fmt: skip
    loose = row | {"name": "m1", "docked": [], "q": [], "tau": [], "role": "dead"}
    facts = {"modules": [row, loose], "faults": ["silent"], "joints": 0}
    bus = Bus(motion="goto in 1 s", progress=0.5)
    session = BusSession(bus)
    session.facts = lambda: facts
    session._promise = lambda facts: ["promised"]
    session.print_changes = lambda: session.out.print("changes")
    session.run("show")
    told = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert told[:3] == ["changes", "no robot", "module kind id role docked to q tau"]
    assert told[4:] == [
        "m0 giusti_b 02:42 router in on base.out 1.23 ? 0.50 -1.00",
        "m1 giusti_b 02:42 dead nothing -",
        "",
        "q in degrees and meters, tau in N m and N; - is a motor let go",
        "! silent",
    ]
    facts["joints"] = 2
    session.run("show")
    assert capsys.readouterr().out.splitlines()[-2:] == ["hold: goto in 1 s (50%)", "promised"]
    for columns in range(60, 70):  # a row, or one cell below the other: none is broken
        monkeypatch.setenv("COLUMNS", str(columns))
        session.out = output.console()
        session.run("show")
        told = capsys.readouterr().out.splitlines()
        row = "m0 giusti_b 02:42 router in on base.out 1.23 ? 0.50 -1.00"
        whole = row in [" ".join(line.split()) for line in told]
        assert whole != ({"  docked to: in on base.out", "  q: 1.23 ?"} <= {*told}), columns
        assert whole == (columns >= 67)


def test_the_state_of_a_bus_has_every_module_with_its_dockings_towards_the_base_first():
    bus = Bus(mode="hold", motion="goto in 1 s", progress=0.5, reason="slow")
    session = BusSession(bus, quiet=True)
    names = [f"m{k}" for k in range(5)]
    bus.modules = {
        name: SimpleNamespace(kind=mr.catalog["giusti_b"], node=SimpleNamespace(uid=256 + k))
        for k, name in enumerate(names)
    }
    bus.robot = robot_of(names[:2], SimpleNamespace(name="PD"), 2, ("loose",), ["m3"])
    edges = [SimpleNamespace(child=0, parent=99), SimpleNamespace(child=1, parent=0)]
    table = {1: SimpleNamespace(values=(np.pi, 9.0))}
    bus.coordinator = SimpleNamespace(survey=SimpleNamespace(edges=edges), table=table)
    bus.builder = SimpleNamespace(commanded=lambda: {1: (0.5, -1.0)})
    bus.is_alive = lambda name: name != "m2"
    bus.docked = {
        ("m0", "out"): (("m1", "in"), 90), ("m0", "in"): (("base", "out"), 0),
        ("m1", "c"): (("m2", "in"), 0), ("m1", "b"): (("m3", "in"), 0),
        ("m1", "in"): (("m0", "out"), 90),
    }  # fmt: skip
    bus.operation.missing = lambda: ("readings",)
    bus.clock = SimpleNamespace(ticks=7, missed=3)
    session._errors_at_rest = lambda status: (0.25, 0.5)
    facts = session.facts()
    m0, m1, *rest = facts.pop("modules")
    assert m0 == {
        "name": "m0", "kind": "giusti_b", "id": "00:00:00:00:01:00", "role": "router",
        "docked": ["in on base.out", "out on m1.in turned 90"], "q": [None], "tau": [],
    }  # fmt: skip
    assert m1 == m0 | {
        "name": "m1", "id": "00:00:00:00:01:01", "role": "end device", "q": [180.0],
        "docked": ["in on m0.out turned 90", "b on m3.in", "c on m2.in"], "tau": [0.5, -1.0],
    }  # fmt: skip
    assert [row["role"] for row in rest] == ["dead", "silent", "not in the robot"]
    assert [row["docked"] for row in rest] == [[], [], []]
    assert facts == {
        "organism": 2, "joints": 2, "law": "PD", "mode": "hold", "motion": "goto in 1 s",
        "progress": 0.5, "reason": "slow", "missing": ["readings"], "error": 0.25,
        "error_if_heavier": 0.5, "cycles": 7, "missed": 3, "faults": ["loose"],
    }  # fmt: skip


def test_places_are_read_and_told_in_degrees_and_meters():
    bus, model = Bus(), mr.examples.arm("bc").model("physical")
    session = BusSession(bus, quiet=True)
    bus.robot = SimpleNamespace(model=model)
    assert session._places("180,0.5,90") == pytest.approx([np.pi, 0.5, np.pi / 2])
    kinds = {"m0": "giusti_b", "m1": "giusti_c", "m2": "giusti_c"}
    bus.modules = {name: SimpleNamespace(kind=mr.catalog[kind]) for name, kind in kinds.items()}
    table = {7: SimpleNamespace(values=(np.pi / 6, 9.0)), 8: SimpleNamespace(values=(0.25, 9.0))}
    bus.coordinator = SimpleNamespace(table=table)
    names = {"m0": 7, "m1": 8}
    told = [session._positions(name, names) for name in kinds]
    assert told == [[pytest.approx(30)], [0.25], [None]]
    bus.modules["m3"] = SimpleNamespace(kind=mr.catalog["superbot"])  # three hinges: q, v, q, v ...
    table[9] = SimpleNamespace(values=(np.pi / 6, 9.0, np.pi / 3, 9.0, np.pi / 2, 9.0))
    assert session._positions("m3", {"m3": 9}) == pytest.approx([30, 60, 90])


def test_one_module_is_moved_within_a_second_unless_told():
    bus, model, moved = Bus(), mr.examples.arm("bc").model("physical"), []
    bus.robot = SimpleNamespace(model=model)
    bus.state = status(joints=model.joint_names, set_point=np.array([0.5, 0.25, 0.75]))
    bus.module = lambda name: SimpleNamespace(kind=mr.catalog[f"giusti_{'bc'[int(name[1:])]}"])
    bus.operation.goto = lambda goal, seconds: moved.append(([*goal], seconds))
    session = BusSession(bus, quiet=True)
    session.run("move m0 180")
    session.run("move m1 0.125 in 0.5")
    assert moved == [([pytest.approx(np.pi), 0.25, 0.75], 1.0), ([0.5, 0.125, 0.75], 0.5)]
    assert [*bus.state.set_point] == [0.5, 0.25, 0.75]
    session.run("goto 180,0.125,0")
    session.run("goto 0,0,0 in 4")
    assert moved[2:] == [([pytest.approx(np.pi), 0.125, 0], 1.0), ([0, 0, 0], 4.0)]
    for line in ("move m0", "move m0 1 2", "move m0 in 2"):
        with complains(mr.StateError, "move takes one number for each joint of 'm0' (joint)"):
            session.run(line)
    bus.state = status(joints=("m1.joint",), set_point=np.zeros(1))
    with complains(mr.UnknownNameError, "no joint 'm0.joint' in the robot: joints are m1.joint"):
        session.run("move m0 1")


def test_a_guarantee_is_told_with_its_delay_and_the_errors_beside_it():
    bus = Bus()
    session = BusSession(bus, quiet=True)
    facts = {"missing": ["readings", "drives"], "error": 0.5, "error_if_heavier": 0.25}
    assert list(session._promise(facts)) == []
    bus.robot = SimpleNamespace(certificate=SimpleNamespace(claim="joints stay"))
    bus.operation = SimpleNamespace(longest_delay=0.004)
    assert list(session._promise(facts)) == [
        "not guaranteed that joints go to the set point; missing: readings",
        "  and drives",
        "error now 0.5 rad or m; a body 10% heavier would rest 0.25 away: the robot still moves, "
        "or its records are more wrong than that",
    ]
    near = {"missing": [], "error": 0.2509, "error_if_heavier": 0.25}
    assert list(session._promise(near)) == [
        "guaranteed for the body of the records and readings up to 4 ms old: joints stay",
        "error now 0.25 rad or m; a body 10% heavier would rest 0.25 away",
    ]
    assert len(list(session._promise({**near, "error": 0.2511}))[1]) > 80
    assert len(list(session._promise({**near, "error": None}))) == 1


# -- reports ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields_", "parts", "report"),
    [
        ({}, 1, "MotionReport"),
        ({"motion": "step", "controller": "ComputedTorque", "sample_time": 0.01,
          "target": {"m1.hinge": 0.5}}, 1, "ControlReport"),
        ({"ground": True}, 1, "MotionReport"),
        ({"base": "free"}, 1, "MotionReport"),
        ({"ground": True, "base": "free"}, 1, "WalkReport"),
        ({"ground": True, "base": "free"}, 2, "MotionReport"),  # after an event
        ({"motion": "balance"}, 1, "BalanceReport"),
    ],
)  # fmt: skip
def test_a_run_has_the_report_that_shows_what_matters(monkeypatch, fields_, parts, report):
    for name in ("BalanceReport", "ControlReport", "MotionReport", "WalkReport"):
        monkeypatch.setattr(run, name, lambda *given, name=name: (name, *given))
    result = SimpleNamespace(trajectory=SimpleNamespace(parts=[None] * parts))
    plain = {
        "motion": "none", "controller": "none", "ground": False, "base": "fixed", "events": (),
        "pose": {}, "target": {}, "clock": fields_.get("sample_time", 0),
    }  # fmt: skip
    scenario = SimpleNamespace(**(plain | fields_))
    assert run.report_of(scenario, result) == (report, scenario, result)


# -- papers and presets ----------------------------------------------------------------------------


def test_runs_of_a_preset_are_files_with_their_names_unless_there_is_one(monkeypatch, tmp_path):
    scenario = mr.Scenario(organism="crab", duration=0.1)
    made, seen = {"PD law": scenario, "b+c": scenario}, []
    finding = SimpleNamespace(what="error [%]", found="3", holds=True,
                              _asdict=lambda: {"what": "error"})  # fmt: skip
    chosen = SimpleNamespace(
        title="Arm", source="paper", statement="It works.", ours="The rest.", build=lambda: made,
        run=lambda progress: "results", judge=lambda results: seen.append(results) or [finding],
    )  # fmt: skip
    monkeypatch.setattr(preset_report, "preset", lambda name: chosen)
    monkeypatch.setattr(preset_report, "figure", lambda *given: given)
    monkeypatch.setattr(preset_report.charts, "write", lambda drawn, path: seen.append(path))
    line = ("run", "--preset", "giusti2015-fig7")
    file = tmp_path / "x.json"
    data = json.loads(called(*line, "--save-scenario", file, "--plot", "x.png", "--json"))
    names = [str(tmp_path / name) for name in ("x-PD-law.json", "x-b-c.json")]
    assert data == {
        "preset": "giusti2015-fig7", "title": "Arm", "source": "paper", "statement": "It works.",
        "findings": [{"what": "error"}], "files": [*names, "x.png"],
    }  # fmt: skip
    assert seen == ["results", "x.png"]
    assert [mr.Scenario.load(name) for name in names] == [scenario] * 2
    assert "already exists" in refused(*line, "--save-scenario", file)
    del made["b+c"]
    told = called(*line, "--save-scenario", file).splitlines()
    assert mr.Scenario.load(file) == scenario
    assert [text.rstrip() for text in told[:4]] == [
        "paper: Arm", "measured   found  the statement", "───────────────────────────────",
        "error [%]      3          holds",
    ]  # fmt: skip
    assert "The paper states: It works." in told
    assert "Not printed there, chosen here: The rest." in told
    for option in ("--animate", "--html", "--csv", "--output"):
        words = f"{option} is for a file: write the runs with --save-scenario, and run one"
        assert words in refused(*line, option, "y.npz" if option == "--output" else "y.html")


@pytest.mark.parametrize(("passed", "code"), [(True, 0), (False, 1)])
def test_papers_are_run_one_or_all_and_fail_with_their_claims(monkeypatch, passed, code):
    asked = []

    def run_(key, folder, executor):
        asked.append((key, str(folder), executor.workers))
        return SimpleNamespace(passed=passed or key != "meister2013")

    monkeypatch.setattr(papers, "_run", run_)
    monkeypatch.setattr(papers, "_print", lambda claims: print("printed"))
    monkeypatch.setattr(papers, "_data", lambda claims: claims.passed)
    done = CliRunner().invoke(cli, ["papers", "--json", "--jobs", "2"])
    assert done.exit_code == code
    known = papers._known()
    assert json.loads(done.stdout) == [passed or key != "meister2013" for key in known]
    assert asked == [(key, f"output/papers/{key}", 2) for key in known]
    assert called("papers", "moll2006", "-o", "new") == "printed\n"
    assert asked[-1] == ("moll2006", "new/moll2006", 1)
    assert "no paper 'lobster': papers are " in refused("papers", "lobster")


def test_a_paper_is_run_by_its_script_in_the_checkout(monkeypatch, tmp_path):
    calls = []

    def run_(key, reproduce, folder, progress, executor):
        calls.append((key, reproduce, folder, executor))
        progress("claim 1")
        if executor is None:
            raise PermissionError(13, "no right")
        return "claims"

    modules = {
        "papers.moll2006.reproduce": SimpleNamespace(reproduce="script"),
        "papers.claims": SimpleNamespace(run=run_),
    }
    monkeypatch.setattr(papers, "import_module", modules.__getitem__)
    monkeypatch.setattr(papers.sys, "path", ["elsewhere"])
    assert papers._run("moll2006", tmp_path, "executor") == "claims"
    assert calls == [("moll2006", "script", tmp_path, "executor")]
    assert papers.sys.path == [str(papers.ROOT), "elsewhere"]  # before packages of that name
    papers._run("moll2006", tmp_path, "executor")
    assert papers.sys.path == [str(papers.ROOT), "elsewhere"]
    with complains(mr.WriteError, f"{tmp_path}: cannot be written: no right"):
        papers._run("moll2006", tmp_path, None)
    monkeypatch.setattr(papers, "ROOT", tmp_path)
    with complains(mr.FileError, "they are part of the source repository"):
        papers._known()


def test_progress_is_shown_beside_the_output_of_a_command(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("TERM", "xterm")
    modules = {
        "papers.moll2006.reproduce": SimpleNamespace(reproduce="script"),
        "papers.claims": SimpleNamespace(run=lambda *_: "claims"),
    }
    monkeypatch.setattr(papers, "import_module", modules.__getitem__)
    papers._run("moll2006", tmp_path, None)
    out, err = capsys.readouterr()
    assert (out, "moll2006: starting" in err) == ("", True)
    with output.bar("[a] snake", True) as show:
        show(0.5)
    out, err = capsys.readouterr()
    assert (out, "[a] snake" in err) == ("", True)
    assert "\x1b[2K" in err.rpartition("snake")[2]  # erased at the end
    with output.bar("[a] snake", False) as show:
        show(0.5)
    assert capsys.readouterr() == ("", "")


def test_checks_are_named_on_standard_error_while_they_run(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("TERM", "xterm")
    report = SimpleNamespace(title="t", passed=True, checks=[])
    monkeypatch.setattr(verify, "verify", lambda *_, progress, **__: progress("M") or report)
    with pytest.raises(SystemExit):
        cli.main(["verify", "crab", "--json"])
    out, err = capsys.readouterr()
    assert json.loads(out) == {"title": "crab", "model": "t", "passed": True, "checks": []}
    assert "crab: M" in err


def test_a_scenario_or_a_preset_is_run():
    words = "give the FILE of a scenario, or --preset"
    assert refused("run") == refused("run", "x.json", "--preset", "giusti2015-fig7") == words


def test_a_paper_is_data_for_machines():
    claims = SimpleNamespace(
        key="a", document="b", passed=True, output=Path("out"), pictures=[Path("out/x.png")],
        results=[SimpleNamespace(_asdict=lambda: {"name": "c"})],
    )  # fmt: skip
    assert papers._data(claims) == {
        "paper": "a", "document": "b", "passed": True, "output": "out", "pictures": ["out/x.png"],
        "claims": [{"name": "c"}],
    }  # fmt: skip


def test_long_lists_and_drawings_have_their_limits(capsys, tmp_path, monkeypatch):
    names = [f"j{k}" for k in range(13)]
    assert show._names(tuple(names[:12])) == " ".join(names[:12])
    assert show._names(tuple(names)) == " ".join(names[:12]) + " ..."
    output.print_drawing(output.console(), mr.examples.snake(201))
    assert capsys.readouterr().out == "(no drawing of more than 200 modules)\n"
    monkeypatch.chdir(tmp_path)
    Path("long.txt").write_text("B" * 1_000_001)
    assert "at most 1,000,000 bytes" in refused("new", "--grid", "long.txt")
    heading = called("show", "crab", "--hinges", "physical").split("Locked joints")[1].split()[:3]
    assert heading == ["joint", "hinges", "why"]
    told = called("show", "--help")
    assert "[default: up to 30 modules]" in " ".join(told.split())


@pytest.mark.parametrize(("modules", "there"), [(1000, True), (1001, False)])
def test_matrices_of_more_than_a_thousand_modules_are_not_part_of_json(monkeypatch, modules, there):
    class Organism(SimpleNamespace):
        def __len__(self):
            return modules

    asked = []
    monkeypatch.setattr(
        organisms, "find", lambda name: (name, Organism(model=lambda hinges: hinges))
    )
    monkeypatch.setattr(show, "_data", lambda *given: asked.append(given[2:]) or {})
    called("show", "x", "--json")
    called("show", "x", "--json", "--hinges", "physical", "--matrices")
    both = {"dyad": "dyad", "physical": "physical"}
    assert asked == [(both, there), ({"physical": "physical"}, True)]


def test_two_modules_have_matrices_and_three_transforms_between_others(tmp_path):
    for modules in (1, 2, 3):
        mr.examples.snake(modules).save(tmp_path / "x.json")
        told = called("show", tmp_path / "x.json")
        assert ("Assembly incidence matrix" in told) == (modules > 1)
        assert ("Indirect transforms (IDTL)" in told) == (modules > 2)
        assert ", base m0\n\nJoints\n" in told
        assert "matrices left out" not in told


def test_long_names_of_modules_are_cut_after_twelve_characters(tmp_path):
    names = {"m0": "a" * 12, "m1": "b" * 13}
    mr.examples.snake(3).rename(names).save(tmp_path / "x.json")
    told = called("show", tmp_path / "x.json").split("Assembly incidence matrix")[1]
    rows = [line.split()[:2] for line in told.splitlines() if line.startswith("v")]
    assert rows[:2] == [["v0", "a" * 12], ["v1", "bbbbbb…bbbbb"]]
    assert rows[2][0] == "v2"


def test_a_view_has_the_joints_that_are_asked_for(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(mr.Organism, "view", lambda self, model: SimpleNamespace(
        save=lambda path: seen.append((model.joint_names, path))))  # fmt: skip
    crab = mr.examples.crab()
    told = called("show", "crab", "--no-matrices", "--html", "a.html").splitlines()
    assert told[-1] == "wrote a.html"
    data = json.loads(called("show", "crab", "--hinges", "physical", "--html", "b.html", "--json"))
    assert (data["html"], "picture" in data) == ("b.html", False)
    assert seen == [
        (crab.model("dyad").joint_names, "a.html"), (crab.model("physical").joint_names, "b.html")
    ]  # fmt: skip


def test_twenty_locked_joints_are_listed(capsys):
    for count, more in ((20, False), (21, True)):
        locked = {f"j{k}": "why" for k in range(count)}
        model = SimpleNamespace(joint_names=(), locked=locked)
        show._print_joints(output.console(), {"dyad": model})
        told = capsys.readouterr().out
        assert told.count("why") == 1 + 20
        assert ("... and 1 more; --json lists them all." in told) == more


def test_the_help_names_the_examples_with_joints_of_the_hardware():
    told = " ".join(called("export", "--help").split())
    physical = [name for name in organisms.EXAMPLES if organisms.hinges_of(name, None) != "dyad"]
    assert {"arm", "crane", "double_pendulum"} <= {*physical}
    assert f"[default: dyad; physical for {', '.join(physical)}]" in told


def test_models_have_a_center_of_mass_where_they_have_mass():
    light = mr.examples.snake(2).with_parameters(mass=0.125)
    data = show._model_data(light.model())
    assert data["mass"] == 0.25
    assert len(data["center_of_mass"]) == 3
    dot = mr.Organism.start("virtual_rz").model()
    assert show._model_data(dot)["center_of_mass"] is None


# -- characters and lines --------------------------------------------------------------------------


@pytest.fixture
def narrow(monkeypatch, capsys):
    """What is printed where a line has 20 characters."""
    monkeypatch.setenv("COLUMNS", "20")

    def lines(show, *args):
        show(*args)
        return capsys.readouterr().out.splitlines()

    return lines


def test_sentences_and_paths_are_not_cut_where_the_terminal_is_narrow(narrow, monkeypatch):
    found = search(history=[entry(0.5, 0.125)])
    told = narrow(evolve._print, found, WINNERS, Path("a/folder/of/a/search"))
    for line in (
        "winner-2 in MuJoCo: it flies away",
        "best 1.000 m; median of random bodies 0.125 m",
        "kept out: 3, too heavy",
        "wrote a/folder/of/a/search/index.html",
    ):
        assert line in told
    claims = SimpleNamespace(
        key="a", document="b", passed=True, output=Path("a/folder/of/papers"), results=[
            SimpleNamespace(name="c", source="s", found=None, expected=1, passed=None, unit="",
                            tolerance=None, relation="=", note="there is no engine here")
        ],
    )  # fmt: skip
    told = narrow(papers._print, claims)
    assert {"left out: there is no engine here", "wrote a/folder/of/papers/results.json"} < {*told}
    note = "Placed on the ground: raised by 0.05 m."
    model = mr.examples.snake(2).model()
    part = SimpleNamespace(
        t=np.array([0.0, 1.0]), model=model, q=np.zeros((2, 1)), v=np.zeros((2, 1)),
        energy=np.ones(2),
    )  # fmt: skip
    report = reports.MotionReport(
        SimpleNamespace(name="x", analytic=False),
        SimpleNamespace(
            trajectory=SimpleNamespace(parts=[part], integrator="RK4"), reference=None, note=note
        ),
    )
    told = narrow(report.print)
    energy = "1 steps of RK4; energy 1 J at the start, 1 J at the end"
    assert told[-2:] == [energy, note]
    monkeypatch.setattr(reports, "measured", lambda *_: SimpleNamespace(
        metrics=SimpleNamespace(words=dict), note=note, ground=mr.Ground(),
        scenario=SimpleNamespace(name="x", motion="wave"),
    ))  # fmt: skip
    assert narrow(reports.WalkReport(None, None).print)[-1] == note


def test_files_are_told_in_one_line_where_the_terminal_is_narrow(narrow, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    long = "a_long_name_of_a_file"
    loads = "m0 - m1: 3 N of 4 N, 0.1 N m of 2 N m"
    stopped = SimpleNamespace(status="finished", t=np.zeros(3), save=lambda path: None)
    monkeypatch.setattr(mr.Scenario, "run", lambda self, **_: SimpleNamespace(trajectory=stopped))
    report = SimpleNamespace(plot=None, print=lambda: None)
    monkeypatch.setattr(run, "report_of", lambda *_: report)
    monkeypatch.setattr(run, "loads_of", lambda *_: [loads])
    for field in ("animate", "to_csv"):
        setattr(stopped, field, None)
    told = called("simulate", "crab", "-o", f"{long}.npz").splitlines()
    assert told == ["loads on connectors", loads, f"wrote {long}.npz"]
    told = called("new", "crab", "-o", f"{long}.json").splitlines()
    assert told[-1] == f"crab: 6 modules (6 scout), 5 dockings, 6 kg, base m0: wrote {long}.json"
    told = called("show", f"{long}.json", "--no-matrices").splitlines()
    assert f"{long}: 6 modules (6 scout), 5 dockings, 6 kg, base m0" in told
    told = called("export", "crab", "--urdf", "--name", long).splitlines()
    assert told == [f"crab: wrote {long}.urdf"]
    told = called("export", "crab", "--c", "--name", long).splitlines()
    assert told[-1] == f"crab: wrote {long}.h, {long}.c, {long}_test.c"
    assert len(told) == 6  # with the operations of five functions
    monkeypatch.setattr("modurob.drawing.picture", lambda organism, path: None)
    told = called("show", "crab", "--picture", f"{long}.svg", "--no-matrices").splitlines()
    assert told[-1] == f"wrote {long}.svg"
    suspect = "m1: mass is 1, found 2 in all of the runs"
    fit = SimpleNamespace(parameters=[], suspects=[suspect])
    assert {suspect, f"written: {long}"} < {*narrow(identify._print, "crab", fit, long)}


def test_files_and_errors_of_the_bus_are_told_in_one_line_where_the_terminal_is_narrow(narrow):
    bus = Bus()
    made = SimpleNamespace(parts=[SimpleNamespace(t=np.zeros(3))], save=lambda path: None)
    bus.operation.recorded = lambda: made
    session = BusSession(bus)
    assert narrow(session.onecmd, "record a_long_name_of_a_file.npz") == [
        "wrote a_long_name_of_a_file.npz: 3 states"
    ]
    told = narrow(session.onecmd, "wait many")
    assert told == ["error: N is a whole number, got 'many'"]


def test_a_cell_that_is_wider_than_the_terminal_stays_one_line(narrow):
    table = output.plain_table("name", "number")
    table.add_row("one", "two words that take more than twenty characters")
    told = narrow(output.print_table, output.console(), "title", table)
    assert told[2] == "  number: two words that take more than twenty characters"


def test_files_of_a_preset_are_told_in_one_line_where_the_terminal_is_narrow(narrow, monkeypatch):
    chosen = SimpleNamespace(
        title="Arm", source="paper", statement="It works.", ours="The rest.",
        run=lambda progress: None, judge=lambda results: [],
    )  # fmt: skip
    monkeypatch.setattr(preset_report, "preset", lambda name: chosen)
    monkeypatch.setattr(preset_report, "figure", lambda *given: given)
    monkeypatch.setattr(preset_report.charts, "write", lambda drawn, path: None)
    long = "a_long_name_of_a_picture.png"
    told = called("run", "--preset", "giusti2015-fig7", "--plot", long).splitlines()
    assert told[-1] == f"wrote {long}"


@pytest.mark.parametrize(
    ("typed", "taken"), [("all", "all"), ("none", "none"), ("mass,length", ["mass", "length"])]
)
def test_symbols_of_equations_are_all_none_or_groups_of_them(monkeypatch, typed, taken):
    asked = []

    def equations(self, **options):
        asked.append(options["symbols"])
        raise mr.StateError("enough")

    monkeypatch.setattr(mr.Organism, "equations", equations)
    assert "enough" in refused("equations", "crab", "--symbols", typed)
    assert asked == [taken]


def test_equations_are_printed_without_an_empty_line_at_the_end():
    told = called("equations", "crane", "--hinges", "physical", "--entry", "M[1,1]")
    assert told.startswith("M[1,1] = m1 + m2\n")
    assert told.endswith("mass of m2 [kg] = 1\n")
    pendulum = ("equations", "double_pendulum", "--hinges", "physical")
    every = called(*pendulum, "--outputs", "m0.hinge,m1.hinge")  # all joints have motors
    assert "relative degree 2" in every
    assert "zero dynamics: 0 =" not in every
    line = refused(*pendulum, "--limit", 3)
    assert "over the limit of 3" in line


def test_bars_are_shown_unless_json_is_asked_for(monkeypatch, stood):
    wanted = []

    @contextlib.contextmanager
    def bar(title, shown):
        wanted.append((title, shown))
        yield lambda *_: None

    monkeypatch.setattr(output, "bar", bar)
    finished = SimpleNamespace(status="finished", t=np.zeros(3), animate=0, to_csv=0, save=0)
    monkeypatch.setattr(mr.Scenario, "run", lambda self, **_: SimpleNamespace(trajectory=finished))
    report = SimpleNamespace(plot=None, print=lambda: None, data=dict)
    monkeypatch.setattr(run, "report_of", lambda *_: report)
    monkeypatch.setattr(run, "loads_of", lambda *_: [])
    table = SimpleNamespace(_asdict=dict)
    monkeypatch.setattr(control, "robustness", lambda *_, **__: table)
    for name in ("robustness_data", "print_robustness"):
        monkeypatch.setattr(control.control_report, name, lambda *_: [])
    for line, title in (
        ("simulate crab", "crab"),
        ("control crab --monte-carlo 3", "random steps"),
        ("balance arm --ground", "arm"),
    ):
        called(*line.split())
        called(*line.split(), "--json")
        assert wanted == [(title, True), (title, False)]
        wanted.clear()


def test_json_has_a_line_for_each_number(capsys):
    output.print_json({"a": [1, float("nan")]})
    assert capsys.readouterr().out == '{\n "a": [\n  1,\n  null\n ]\n}\n'


def test_bars_of_numbers_are_from_lowest_to_highest():
    assert output.sparkline([0.0, 1.0, 7.0]) == "▁▂█"
    assert output.sparkline([np.nan, 2.0, np.inf, 2.0]) == "▁▁"
    assert output.sparkline([]) == ""
    many = output.sparkline(range(47))
    assert (len(many), many[0], many[-1]) == (24, "▁", "█")
    assert output.sparkline([3.0, 1.0, 2.0], 2) == "█▁"


def test_names_that_look_like_markup_and_numbers_are_printed_as_they_are(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("TERM", "xterm")
    text = "[red]m0[/red] :snake: 3.5 'x'"
    for stderr in (False, True):
        output.console(stderr).print(text)
        assert capsys.readouterr()[stderr] == f"{text}\n"


def test_columns_of_a_table_are_as_wide_as_their_longest_word_or_number():
    table = output.plain_table("ab", "a number")
    table.add_column("what it is")
    table.add_row("a b", "1", "some longwords")
    width = len("a b") + 2 + len("a number") + 2 + len("longwords")
    assert output._needed_width(table) == width
    table.add_column("")
    assert output._needed_width(table) == width + 2


def test_a_wide_table_has_a_cell_a_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "12")
    table = output.plain_table("name", "", "number")
    table.add_row("one", "first", "123456")
    table.add_row("two", "", "2")
    output.print_table(output.console(), "title", table)
    assert capsys.readouterr().out.splitlines() == [
        "title", "one", "  first", "  number: 123456", "two", "  number: 2", ""
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "taken"), [("m0", "m0"), ("m0.5", "m0.5"), ("x" * 70, f"{'x' * 30}…{'x' * 29}")]
)
def test_what_is_no_body_is_named_with_the_examples(given, taken):
    with complains(mr.UnknownNameError, f"'{taken}' is neither", "examples are zoo, crab, nine"):
        organisms.find(given, ["zoo", "crab"])


def test_numbers_and_words_of_examples_are_those_that_they_take():
    arm = organisms.make("arm", {"modules": "ab"}, {})
    assert arm == mr.examples.arm("ab")
    crane = organisms.make("crane", {}, {"l": 2.0})
    assert crane == mr.examples.crane(l=2.0)
    for name, settings, numbers, words in (
        ("arm", {"seed": 1}, {}, "--seed does not apply to 'arm': its options are --modules"),
        ("crane", {}, {"h": 1.0}, "'crane' has no parameter 'h': it takes m1, m2, l"),
    ):
        with complains(mr.StateError, words):
            organisms.make(name, settings, numbers)
    assert organisms.hinges_of("arm", None) == "physical"
    assert organisms.hinges_of("mine.json", None) == "dyad"
    assert organisms.hinges_of("arm", "dyad") == "dyad"


def test_errors_have_one_line_and_their_exit_code(monkeypatch):
    def raised(error):
        def fails(*_, **__):
            raise error

        monkeypatch.setattr("modurob.cli.show.organisms.find", fails)
        return CliRunner().invoke(cli, ["show", "crab"])

    for error, code, told in (
        (mr.StateError("a\nb\x1bc"), 2, "error: a b c\n"),
        (mr.WriteError("full"), 1, "error: full\n"),
        (click.UsageError("wrong"), 2, "error: wrong\n"),
        (KeyboardInterrupt(), 130, "\n"),  # after the ^C of a terminal
        (click.Abort(), 130, ""),
        (BrokenPipeError(32, "gone"), 1, ""),
        (OSError(28, "no space"), 1, "error: the output cannot be written: no space\n"),
    ):
        done = raised(error)
        assert (done.exit_code, done.stderr, done.stdout) == (code, told, ""), error


def test_warnings_about_models_are_lines_told_once_and_others_stay_as_they_are(capsys):
    shown = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, *place: shown.append((category, *place))
        with _warnings_as_lines():
            for text, category in (("a\nb", mr.ModelWarning), ("c", RuntimeWarning)) * 2:
                warnings.warn_explicit(text, category, "some.py", 7)
        warnings.warn_explicit("d", mr.ModelWarning, "some.py", 8)
    assert capsys.readouterr().err == "warning: a b\n"
    assert [each[:3] for each in shown] == [
        (RuntimeWarning, "some.py", 7), (RuntimeWarning, "some.py", 7),
        (mr.ModelWarning, "some.py", 8),
    ]  # fmt: skip


def test_an_empty_line_stands_between_the_parts_of_show():
    lines = [
        line.rstrip() for line in CliRunner().invoke(cli, ["show", "crab"]).stdout.splitlines()
    ]
    (summary,) = [k for k, line in enumerate(lines) if line.startswith("crab: 6 modules")]
    assert lines[summary - 1] == ""
    assert lines[summary + 1 : summary + 3] == ["", "Joints"]
    for title in ("Locked joints", "Assembly incidence matrix", "Accessibility"):
        assert lines[lines.index(title) - 1] == ""


def test_matplotlib_tells_errors_and_no_warnings():
    logger = logging.getLogger("matplotlib")
    before = logger.level
    logger.setLevel(logging.INFO)
    try:
        assert CliRunner().invoke(cli, ["--version"]).exit_code == 0
        assert logger.isEnabledFor(logging.ERROR)
        assert not logger.isEnabledFor(logging.WARNING)
    finally:
        logger.setLevel(before)
