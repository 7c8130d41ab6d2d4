"""The command line as its users see it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

import modurob as mr
from modurob.cli import COMMANDS, cli
from modurob.cli.organisms import EXAMPLES
from modurob.cli.show import _names
from oracles import ARM

LIMIT = 60  # seconds; a command takes one


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()

    def run(*args: str) -> Result:
        return runner.invoke(cli, list(args))

    return run


def is_refused(result: Result, *words: str) -> None:
    """Exit code 2, nothing on stdout, one line on stderr that holds the words."""
    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    for word in words:
        assert word in lines[0]


def fails(result: Result, *words: str) -> None:
    """Exit code 1, and one line on stderr that holds the words."""
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    for word in words:
        assert word in line


def process(*args: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "modurob", *args]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=LIMIT, **options
    )


# -- in general ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(call, command):
    result = call(command, "--help")
    assert result.exit_code == 0
    assert f"  modurob {command} " in result.output


def test_help_lists_the_commands_and_so_does_no_command(call):
    assert call().output == call("--help").output
    assert all(command in call("--help").output for command in COMMANDS)


def test_version_is_that_of_the_package(call):
    assert call("--version").output == f"modurob {mr.__version__}\n"


def test_unknown_command_and_option_are_refused(call):
    is_refused(call("fly"), "'fly'", "new", "show")
    is_refused(call("show", "crab", "--wings"), "--wings")


ENDS = {  # least and largest number that an option takes
    "--seed": (0, None),
    **dict.fromkeys(("--limit", "--tune", "--winners", "--joints"), (1, None)),
    "new --random": (1, 100_000), "export --modules": (1, None), "balance --modules": (2, 200),
    "balance --slope": (-45, 45), "balance --delay": (0, 1000), "control --monte-carlo": (1, 10**5),
    "--jobs": (1, 1000), "--states": (1, 10_000), "--port": (0, 65_535),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_options_take_numbers_up_to_the_ends_of_their_range(command):
    given = cli.get_command(click.Context(cli), command)
    for option in given.params:
        kind, name = option.type, option.opts[0]
        if not isinstance(kind, click.IntRange | click.FloatRange) or name == "--loss":
            continue
        for end, beyond in zip(ENDS.get(f"{command} {name}", ENDS.get(name)), (-1, 1), strict=True):
            if end is not None:
                assert kind.convert(str(end), option, None) == end
                with pytest.raises(click.BadParameter):
                    kind.convert(str(end + beyond), option, None)
            else:
                assert kind.max is None


def test_module_runs_as_a_program():
    done = process("show", "crab", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["title"] == "crab"
    assert done.stderr == ""


def test_program_reports_bad_input_without_traceback():
    done = process("show", "lobster")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: 'lobster'")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("args", [("show", "nine"), ("show", "nine", "--json")])
def test_closing_the_pipe_early_is_no_accident(args):
    command = [sys.executable, "-m", "modurob", *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        complaint = running.stderr.read()
        assert running.wait(LIMIT) == 1
    assert complaint == b""


def test_a_terminal_without_box_characters_still_gets_the_names():
    done = process("show", "crab", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "m5" in done.stdout


def test_interrupting_is_quiet(call, monkeypatch):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("modurob.cli.organisms.find", interrupted)
    result = call("show", "crab")
    assert result.exit_code == 130
    assert result.output.strip() == ""


def test_showing_text_does_not_load_matplotlib():
    code = (
        "import sys\nfrom modurob.cli import cli\n"
        "try:\n    cli.main(['show', 'crab'])\nexcept SystemExit as end:\n    assert not end.code\n"
        "sys.exit('matplotlib' in sys.modules or 'scipy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr.decode()


# -- new -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_new_writes_a_file_that_loads_as_the_example(call, name):
    result = call("new", name)
    assert result.exit_code == 0, result.stderr
    assert mr.load(f"{name}.json") == EXAMPLES[name].make()
    assert f"wrote {name}.json" in result.output
    assert all(module in result.output for module in EXAMPLES[name].make())


def test_new_takes_the_settings_of_an_example(call):
    assert call("new", "snake", "--modules", "4", "--kind", "scout").exit_code == 0
    assert mr.load("snake.json") == mr.examples.snake(4, "scout")
    assert call("new", "arm", "--modules", "bac").exit_code == 0
    assert mr.load("arm.json") == mr.examples.arm("bac")
    assert call("new", "crane", "--set", "l=2", "--set", "m2=0.5").exit_code == 0
    assert mr.load("crane.json") == mr.examples.crane(l=2.0, m2=0.5)
    call("new", "superbot_tree", "--seed", "3", "--set", "branches=2", "-o", "t.json")
    expected = mr.examples.superbot_tree(branches=2, rng=np.random.default_rng(3))
    assert mr.load("t.json") == expected


def test_new_from_matrix_drawing_and_chance(call, tmp_path):
    assert call("new", "--aim", "[[3,0],[4,3],[0,4]]", "--kinds", "BBS", "-o", "a").exit_code == 0
    assert mr.load("a") == mr.Organism.from_aim([[3, 0], [4, 3], [0, 4]], kinds="BBS")
    names = "backbone, backbone, scout"
    call("new", "--aim", "[[3,0],[4,3],[0,4]]", "--kinds", names, "-o", "b")
    assert mr.load("b") == mr.load("a")
    (tmp_path / "drawing.txt").write_text("S^--B>\n|\nS^*\n")
    assert call("new", "--grid", "drawing.txt").exit_code == 0
    assert mr.load("drawing.json") == mr.Organism.from_grid("S^--B>\n|\nS^*\n")
    assert call("new", "--random", "12", "--seed", "5", "--kind", "scout").exit_code == 0
    expected = mr.Organism.random("scout", 12, np.random.default_rng(5))
    assert mr.load("random.json") == expected
    assert call("new", "--random", "12", "-o", "c").exit_code == 0  # of the seed 0
    assert mr.load("c") == mr.Organism.random("backbone", 12, np.random.default_rng(0))


def test_new_overwrites_only_when_forced(call, tmp_path):
    (tmp_path / "crab.json").write_text("precious")
    is_refused(call("new", "crab"), "crab.json", "--force")
    assert (tmp_path / "crab.json").read_text() == "precious"
    assert call("new", "crab", "--force").exit_code == 0
    assert mr.load("crab.json") == mr.examples.crab()


def test_new_json_is_json_only(call):
    data = json.loads(call("new", "nine", "--json").output)
    assert data == {
        "file": "nine.json",
        "title": "nine",
        "modules": 9,
        "kinds": {"backbone": 9},
        "mass": 9.0,
        "base": "m0",
    }


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), ["NAME", "--aim", "--grid", "--random, got none of them"]),
        (("crab", "--random", "3"), ["NAME and --random"]),
        (("lobster",), ["'lobster'", "crab", "snake"]),
        (("crab", "--modules", "3"), ["--modules", "crab"]),
        (("snake", "--modules", "many"), ["--modules", "many"]),
        (("snake", "--modules", "0"), ["at least 1"]),
        (("snake", "--modules", "1000000000"), ["100,000"]),
        (("snake", "--kind", "rubber"), ["rubber", "backbone"]),
        (("arm", "--modules", "xyz"), ["xyz"]),
        (("crane", "--set", "l=long"), ["l=long"]),
        (("crane", "--set", "wheels=4"), ["wheels", "m1, m2, l"]),
        (("crane", "--set", "l=-1"), ["positive"]),
        (("superbot_tree", "--set", "branches=inf"), ["branches"]),
        (("--random", "0"), ["--random"]),
        (("--random", "5", "--modules", "3"), ["--modules", "--random"]),
        (("--aim", "[[3,0],[4,3],[0,4", "--kinds", "BBB"), ["--aim", "JSON"]),
        (("--aim", "[" * 100_000, "--kinds", "BBB"), ["--aim"]),
        (("--aim", "3", "--kinds", "B"), ["list of rows"]),
        (("--aim", "[1,2]", "--kinds", "BB"), ["--aim is a list of rows"]),
        (("--aim", '[["a",0],[4,3],[0,4]]', "--kinds", "BBB"), ["whole side numbers"]),
        (("--aim", "[[3,0],[4,3],[0,4]]"), ["--kinds"]),
        (("--aim", "[[3,0],[4,3],[0,4]]", "--kinds", "BB"), ["3 rows"]),
        (("--aim", "[[9,0],[4,3],[0,4]]", "--kinds", "BBB"), ["no side 9"]),
        (("--grid", "nowhere.txt"), ["nowhere.txt", "No such file"]),
        (("crab", "--output", ""), ["--output", "name of a file"]),
        (("crab", "-o", "crab.toml"), ["crab.toml", ".json"]),
        (("--random", "3", "--kind", "nowhere.json"), ["nowhere.json", "backbone"]),
    ],
)
def test_new_refuses_bad_input_and_writes_nothing(call, tmp_path, args, words):
    is_refused(call("new", *args), *words)
    assert list(tmp_path.iterdir()) == []


def test_new_takes_a_datasheet_for_a_kind(call, tmp_path):
    own = mr.catalog["backbone"].with_parameters(mass=3.0)
    (tmp_path / "own.json").write_text(own.model_dump_json())
    assert call("new", "--random", "5", "--kind", "own.json").exit_code == 0
    assert mr.load("random.json") == mr.Organism.random(own, 5, np.random.default_rng(0))
    assert call("new", "snake", "--kind", "own.json").exit_code == 0
    assert mr.load("snake.json") == mr.examples.snake(6, own)
    (tmp_path / "broken.json").write_text("{}")
    is_refused(call("new", "--random", "5", "--kind", "broken.json"), "broken.json", "format")


def test_what_cannot_be_written_is_a_failure(call, tmp_path):
    fails(call("new", "crab", "--output", "missing/crab.json"), "missing", "cannot be written")
    fails(call("show", "crab", "--picture", "missing/crab.png"), "missing", "cannot be written")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_behind_the_output_is_a_failure_in_one_line():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "modurob", "show", "crab"]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT
        )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: the output cannot be written: No space left on device"
    ]


# -- show ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_show_fits_80_columns(call, name):
    result = call("show", name)
    assert result.exit_code == 0, result.stderr
    assert "\x1b" not in result.output
    title = next(line for line in result.output.splitlines() if line.startswith(f"{name}: "))
    longest = max(len(line) for line in result.output.splitlines() if line != title)
    assert longest <= 80


def test_show_tells_joints_reasons_and_matrices(call):
    text = call("show", "crab").output
    assert "crab: 6 modules (6 scout), 5 dockings, 6 kg, base m0" in text
    assert "DS dyad" in text
    assert "nothing with mass beyond it" in text
    assert "v1      4   2   ·   5   ·  S" in text
    assert "class  DP  DS  DO  DS  DO" in text
    assert "T_0,3 = T_0,2 T_2,3" in text
    assert "1 → 2  sides 2, 5  DS" in text


def test_show_of_one_hinge_model_leaves_the_other_out(call):
    text = call("show", "crab", "--hinges", "dyad").output
    assert "physical" not in text
    assert list(
        json.loads(call("show", "crab", "--hinges", "dyad", "--json").output)["models"]
    ) == ["dyad"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_show_json_holds_what_the_organism_says(call, name):
    data = json.loads(call("show", name, "--json").output)
    organism = EXAMPLES[name].make()
    assert data["names"] == list(organism.modules)
    assert data["symbols"] == list(organism.aim().kinds)
    assert data["aim"] == organism.aim().matrix.tolist()
    assert data["classes"] == organism.dyad_classes()
    assert data["accessibility"] == organism.accessibility().tolist()
    assert data["dtl"] == organism.direct_transforms().tolist()
    assert data["idtl"] == organism.indirect_transforms().tolist()
    for hinges in ("dyad", "physical"):
        model = organism.model(hinges=hinges)
        assert data["models"][hinges]["joints"] == list(model.joint_names)
        assert data["models"][hinges]["locked"] == dict(model.locked)
        assert data["models"][hinges]["mass"] == pytest.approx(sum(data["masses"]))


def test_show_reads_files_and_keeps_names(call):
    mr.examples.crab().rename({"m3": "claw"}).save("mine.json")
    text = call("show", "mine.json").output
    assert "mine: 6 modules" in text
    assert "v3 claw" in text


def test_show_leaves_large_matrices_out_unless_asked(call):
    mr.examples.snake(40).save("long.json")
    text = call("show", "long.json").output
    assert "--matrices" in text
    assert "Accessibility" not in text
    forced = call("show", "long.json", "--matrices").output
    assert "Accessibility" in forced
    assert max(map(len, forced.splitlines())) <= 80
    assert "Accessibility" not in call("show", "crab", "--no-matrices").output


def test_show_of_a_huge_organism_stays_short(call):
    mr.examples.snake(2000).save("huge.json")
    assert len(call("show", "huge.json").output.splitlines()) < 60
    data = json.loads(call("show", "huge.json", "--json").output)
    assert data["aim"] is None
    assert len(data["dtl"]) == 1999


def test_show_draws_a_picture(call, tmp_path):
    result = call("show", "crab", "--picture", "crab.png")
    assert result.exit_code == 0
    assert "wrote crab.png" in result.output
    assert (tmp_path / "crab.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_show_lists_the_examples_for_an_unknown_name(call):
    is_refused(call("show", "lobster"), *EXAMPLES)
    is_refused(call("show", "a" * 5000), "…")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (np.random.default_rng(0).bytes(10_000_000), ["not a text file"]),
        (b"x" * 10_000_000, ["not valid JSON"]),
        (b"", ["not valid JSON"]),
        (b"[" * 1_000_000, ["broken.json"]),
        (b'{"format": "modurob-organism", "version": 99}', ["newer modurob"]),
        (b'{"format": "modurob-module", "version": 1}', ["modurob-module"]),
        (b'{"format": "modurob-organism", "version": 1}', ["base"]),
    ],
    ids=["garbage", "text", "empty", "bomb", "newer", "other", "incomplete"],
)
def test_show_refuses_broken_files(call, tmp_path, content, words):
    (tmp_path / "broken.json").write_bytes(content)
    is_refused(call("show", "broken.json"), "broken.json", *words)


def test_show_refuses_a_folder_and_bad_pictures(call):
    is_refused(call("show", "."), "it is a folder")
    is_refused(call("show", "crab", "--picture", "crab.gif"), ".gif", ".png")
    is_refused(call("show", "crab", "--picture", ""), "--picture", "name of a file")


# -- equations -------------------------------------------------------------------------------------


def test_equations_prints_formulas(call):
    done = call("equations", "double_pendulum", "--hinges", "physical")
    assert done.exit_code == 0
    assert "M[1,2] = l2 m2 (l1 cos(q2) + l2)" in done.stdout
    latex = call("equations", "crab", "--format", "latex", "--entry", "M[1,1]")
    assert latex.stdout.startswith("\\begin{align*}\nM_{1,1} &= ")


def test_equations_show_relative_degree_and_zero_dynamics(call):
    crane = "equations", "crane", "--hinges", "physical"
    done = call(*crane, "--outputs", "m0.slide", "--passive", "m1.hinge")
    assert "relative degree 2" in done.stdout
    assert "zero dynamics: 0 = l2*m2*(ddq2*l2 + g*sin(q2))" in done.stdout
    is_refused(call(*crane, "--passive", "m1.hinge"), "--passive needs --outputs")
    is_refused(call(*crane, "--outputs", "m7.hinge"), "no joint 'm7.hinge'", "m0.slide")


def test_equations_writes_documents_by_their_ending(call):
    for name, begin in {"m.tex": "\\documentclass", "m.md": "$$", "m.html": "<math"}.items():
        done = call("equations", "snake", "--hinges", "physical", "--output", name)
        assert (done.exit_code, done.stdout) == (0, f"snake: wrote {name}\n"), done.stderr
        assert Path(name).read_text("utf-8").startswith(begin)
        is_refused(call("equations", "snake", "--output", name), "--force")


def test_equations_that_cannot_be_written_name_the_file(call):
    fails(call("equations", "crab", "--output", "nowhere/model.tex"), "nowhere/model.tex")


def test_an_interrupted_equations_leaves_nothing_half_written(call, monkeypatch):
    Path("model.tex").write_text("mine", encoding="utf-8")

    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("modurob.symbolic.output.document", interrupted)
    for name in ("model.tex", "new.tex"):
        assert call("equations", "crab", "--output", name, "--force").exit_code == 130
    assert [path.name for path in Path().iterdir()] == ["model.tex"]
    assert Path("model.tex").read_text("utf-8") == "mine"


def test_equations_for_machines(call):
    done = call("equations", "crane", "--hinges", "physical", "--json")
    data = json.loads(done.stdout)
    assert data["entries"]["M[1,2]"] == "l2*m2*cos(q2)"
    assert {"name", "meaning", "unit", "value"} <= set(data["symbols"][0])


@pytest.mark.parametrize(
    ("arguments", "pieces"),
    [
        (["superbot_tree", "--hinges", "physical"], ["terms", "one entry at a time"]),
        (["crab", "--entry", "M[9,9]"], ["M[9,9]", "from 1 to 3"]),
        (["crab", "--entry", "import os"], ["written like M[1,2]"]),
        (["crab", "--symbols", "weight"], ["'weight'", "mass"]),
        (["crab", "--base", "sideways"], ["'sideways'"]),
        (["crab", "--output", "crab.pdf"], ["crab.pdf", "--format"]),
        (["nobody"], ["nobody"]),
        (["one.json"], ["one has no joint that can move"]),
    ],
)
def test_equations_says_what_is_wrong_in_one_line(call, arguments, pieces):
    mr.examples.snake(1).save("one.json")
    is_refused(call("equations", *arguments), *pieces)


# -- simulate --------------------------------------------------------------------------------------


def test_simulate_prints_where_the_joints_end_and_writes_files(call):
    files = ["run.npz", "run.csv", "run.png"]
    options = ["--duration", "0.5", "--output", files[0], "--csv", files[1], "--plot", files[2]]
    done = call("simulate", "double_pendulum", "--hinges", "physical", "--start", "90,0", *options)
    assert done.exit_code == 0, done.stderr
    assert "m1.hinge" in done.stdout
    for file in files:
        assert f"wrote {file}" in done.stdout
        assert Path(file).stat().st_size > 0
    trajectory = mr.Trajectory.load("run.npz")
    assert trajectory.q[0] == pytest.approx([np.pi / 2, 0])
    assert trajectory.t[-1] == 0.5
    is_refused(call("simulate", "crab", "--output", "run.npz"), "run.npz", "--force")


def test_simulate_follows_a_gait(call):
    done = call(
        "simulate", "snake", "--hinges", "physical", "--gait", "wave", "--duration", "1", "--json"
    )
    data = json.loads(done.stdout)
    gait = mr.gaits.Wave.for_model(mr.examples.snake(6).model("physical"))
    assert data["last_position"] == pytest.approx(gait(1.0).q, abs=1e-5)


def test_simulate_prints_loads_where_connectors_have_limits_or_when_asked(call):
    bar = mr.examples.snake(2)
    bar.save("bar.json")
    bar.with_parameters(max_force=1.0).save("weak.json")  # one cube weighs 9.81 N
    options = ["--hinges", "physical", "--duration", "0.01"]
    assert "connectors" not in call("simulate", "bar.json", *options).stdout
    assert "m0.3-m1.4" in call("simulate", "bar.json", *options, "--loads").stdout
    assert "exceeds its limit at" in call("simulate", "weak.json", *options).stdout
    (loads,) = json.loads(call("simulate", "weak.json", *options, "--json").stdout)["loads"]
    assert loads["utilization"] == loads["largest_force"]
    assert [entry["docking"] for entry in loads["breaks"]] == loads["dockings"] == ["m0.3-m1.4"]
    heavy = [*options, "--payload", "m1 mass=0.2"]
    assert "connectors" not in call("simulate", "weak.json", *heavy).stdout
    is_refused(call("simulate", "weak.json", *heavy, "--loads"), "other masses", "payload")


@pytest.mark.parametrize(
    ("arguments", "pieces"),
    [
        (["--duration", "-1"], ["duration", "-1"]),
        (["--start", "1,2"], ["2 numbers", "3 joints"]),
        (["--start", "a,b,c"], ["'a,b,c'"]),
        (["--gait", "gallop"], ["'gallop'", "wave"]),
        (["--gait", "wave", "--start", "0,0,0"], ["--gait or --start"]),
        (["--rtol", "0"], ["--rtol: must be greater than 0"]),
        (["--rtol", "1e-15"], ["--rtol: 1e-15 is below the rounding errors"]),
        (["--rtol", "1e-6", "--integrator", "RK4"], ["--rtol: has no effect for RK4"]),
        (["--rtol", "1e-6", "--integrator", "Variational"], ["--rtol: has no effect"]),
        (["--seed", "3"], ["--seed: has no effect"]),
        (["--gait", "wave", "--seed", "3"], ["--seed: has no effect"]),
        (["--integrator", "RK4", "--dt", "9", "--duration", "1"], ["dt", "duration"]),
        (["--output", ""], ["--output"]),
    ],
)
def test_simulate_says_what_is_wrong_in_one_line(call, arguments, pieces):
    is_refused(call("simulate", "crab", *arguments), *pieces)


# -- robots of other programs ----------------------------------------------------------------------


@pytest.fixture
def mimicking(tmp_path):
    """A robot with a joint that mimics another one."""
    old = '<axis xyz="0 1 1"/>'
    text = ARM.replace(old, f'{old}<mimic joint="elbow"/>')
    (tmp_path / "arm.urdf").write_text(text, encoding="utf-8")


def test_new_refuses_a_flawed_robot_and_names_the_switch_that_repairs(call, mimicking):
    result = call("new", "--urdf", "arm.urdf")
    is_refused(result, "joint 'shoulder' mimics 'elbow'", "; --repair repairs this")
    assert not Path("arm.json").exists()


def test_new_repairs_a_robot_with_one_line_for_each_repair(call, mimicking):
    result = call("new", "--urdf", "arm.urdf", "--repair", "--json")
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: arm.urdf: joint 'shoulder' mimics 'elbow'")
    assert json.loads(result.stdout)["file"] == "arm.json"
    assert mr.load("arm.json").model().joint_names == ("m0.shoulder", "m0.elbow", "m0.lift")


def test_a_warning_stays_one_line_in_a_process(tmp_path, mimicking):
    result = process("new", "--urdf", "arm.urdf", "--repair", cwd=tmp_path)
    assert result.returncode == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: arm.urdf: joint 'shoulder' mimics 'elbow'")


def test_repair_is_for_robots_of_other_programs(call):
    is_refused(call("new", "crab", "--repair"), "--repair", "crab")
    is_refused(call("new", "--random", "3", "--repair"), "--repair", "--random")


@pytest.mark.parametrize(
    "source", [("--urdf", "arm.urdf"), ("--grid", "a.txt"), ("--aim", "a.txt")], ids=lambda x: x[0]
)
def test_settings_of_other_sources_are_refused_before_a_file_is_read(call, source):
    is_refused(call("new", *source, "--seed", "1"), f"--seed has no effect with {source[0]}")


def test_other_commands_say_how_to_read_a_urdf(call, mimicking):
    is_refused(call("show", "arm.urdf"), "arm.urdf", "modurob new --urdf arm.urdf")


NO_HOME = """
import pwd, sys
def getpwuid(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")
pwd.getpwuid = getpwuid
from modurob.cli import main
main()
"""


def test_a_user_without_a_home_folder_gets_a_picture_and_no_warning(tmp_path):
    gone = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR", "MODUROB_CACHE_DIR")
    done = subprocess.run(
        [sys.executable, "-c", NO_HOME, "show", "crab", "--picture", "crab.png"],
        env={name: value for name, value in os.environ.items() if name not in gone},
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["crab.png"]


def test_a_random_gait_is_that_of_its_seed_and_needs_a_fixed_base(call):
    options = ("--gait", "chaotic", "--duration", "0.2", "--json")
    runs = [call("simulate", "crab", *options, "--seed", seed).stdout for seed in ("1", "1", "2")]
    assert runs[0] == runs[1] != runs[2]
    is_refused(call("simulate", "crab", "--base", "free", *options), "a free base falls")


def test_drawings_have_a_limit_and_are_text(call, monkeypatch):
    Path("drawing.txt").write_text("B^--B^")
    monkeypatch.setattr("modurob.cli.new.LARGEST_DRAWING", 6)
    assert call("new", "--grid", "drawing.txt").exit_code == 0
    Path("long.txt").write_text("B^---B^")
    is_refused(call("new", "--grid", "long.txt"), "long.txt", "at most 6 bytes")
    Path("bytes.txt").write_bytes(b"B\xff")
    is_refused(call("new", "--grid", "bytes.txt"), "bytes.txt", "byte 1 is not UTF-8")


def test_help_tells_every_default_but_zero():
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        for option in command.params:
            value = getattr(option, "default", None)
            if value and isinstance(value, str | int | float) and not isinstance(value, bool):
                assert option.show_default or "default" in option.help, (name, option.name)


def test_long_lists_of_joints_are_cut(monkeypatch):
    monkeypatch.setattr("modurob.cli.show.MOST_NAMES", 2)
    assert [_names(names) for names in ((), ("a", "b"), ("a", "b", "c"))] == [
        "none", "a b", "a b ..."
    ]  # fmt: skip


def test_a_plot_of_a_free_motion_shows_its_energy_and_one_of_a_law_its_torques(call, monkeypatch):
    plotted = []
    monkeypatch.setattr(mr.Trajectory, "plot", lambda self, *what, **how: plotted.append(what))
    for how in ([], ["--gait", "wave"]):
        done = call("simulate", "crab", *how, "--duration", "0.02", "--plot", "run.svg")
        assert done.exit_code == 0, done.stderr
    assert plotted == [("q", "v", "energy"), ("q", "v", "tau")]


def test_show_tells_how_many_locked_joints_it_left_out(call, monkeypatch):
    monkeypatch.setattr("modurob.cli.show.MOST_LOCKED", 4)
    assert "... and 2 more" in call("show", "crab", "--hinges", "physical").stdout
    monkeypatch.setattr("modurob.cli.show.MOST_LOCKED", 6)
    assert "more" not in call("show", "crab", "--hinges", "physical", "--no-matrices").stdout


def test_a_folder_that_cannot_be_made_is_told(call):
    Path("file").write_text("")
    fails(call("export", "crab", "--urdf", "--output", "file/folder"), "cannot be written")
