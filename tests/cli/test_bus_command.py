"""``modurob bus``: scripts, conversations, and nothing left behind."""

from __future__ import annotations

import json
import math
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from firmware.bus_in_c import NEEDS_COMPILER
from modurob import ModurobError, StateError
from modurob.cli import cli
from modurob.cli.bus_session import BusSession, _pairs, _summary
from modurob.distributed import PlantOptions, ProcessBus, SimulatedBus
from modurob.distributed.bus.robot import BusRobot
from oracles import complains

DEADLINE = 60.0  # [s]


def call(script: str, *args: str):
    return CliRunner().invoke(cli, ["bus", "--script", "-", *args], input=script)


def test_a_script_builds_an_arm_and_operates_on_it(tmp_path):
    script = tmp_path / "demo.bus"
    script.write_text(
        "arm bac   # three modules\nwait 3\ngoto 0,30,0 in 0.5\nwait done 40\nsleep 1\nshow\n"
        "kill m1\nwait 1\nunplug m1\nplug m0.out m2.in\nwait 2\nshow\n\nquit\nnonsense\n",
        encoding="utf-8",
    )
    result = CliRunner().invoke(cli, ["bus", "--script", str(script), "--heartbeat", "0.5"])
    assert result.exit_code == 0, result.output
    text, words = result.stdout, " ".join(result.stdout.split())
    assert "+ m0 m1 m2\n= robot of 3 modules, 3 joints, computed torque" in text
    assert "q in degrees and meters, tau in N m and N; - is a motor let go\nhold\n" in text
    assert (  # which of them depends on how busy the machine is
        "guaranteed for the body of the records and readings up to 4 ms old: close to" in words
        or "missing: readings at most 2 periods (4 ms) old" in words
    )
    assert re.search(r"error now [0-9.e-]+ rad or m; a body 10% heavier would rest", text)
    assert "- m1 m2\n! silent: module 02:42:ac:11:00:02 at port out of 'm0'" in text
    assert "computed torque; silent: m1 m2" in text
    assert "+ m2\n= robot of 2 modules" in text
    assert re.search(r"m1 +giusti_a +02:42:ac:11:00:02 +dead +nothing", text)


def test_json_is_the_last_state_and_nothing_else(tmp_path):
    script = "arm bac\nwait 3\nrecord\nmove m1 20 in 0.5\nwait done 40\nsleep 1.5\n"
    result = call(f"{script}record {tmp_path / 'run.csv'}\n", "--json", "--period", "0.005")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["organism"] == facts["joints"] == 3
    assert facts["law"] == "computed torque"
    assert (facts["mode"], facts["motion"]) == ("hold", "")
    late = ("readings at most 2 periods (10 ms) old", "new readings of")  # on a busy machine
    assert all(any(x in text for x in late) for text in facts["missing"]), facts["missing"]
    assert facts["modules"][1]["q"] == [pytest.approx(20, abs=3)]
    assert facts["error"] < 0.1 < 10 * facts["error_if_heavier"]
    assert facts["cycles"] > 50
    heading = (tmp_path / "run.csv").read_text().splitlines()[0]
    assert heading.startswith("time [s],q m0.joint [rad]")


@NEEDS_COMPILER
def test_a_script_operates_on_a_robot_without_python():
    script = "arm ba\nwait 2\nmove m1 10 in 0.3\nwait done 40\nrelax\nhold\n"
    options = ("--native", "--coordinator", "native", "--period", "0.01")
    result = call(f"{script}goto 10,20 in 0.3\nwait done 40\nlaw pd-gravity\n", *options, "--json")
    reason = "a coordinator in C keeps its law and gains: take the one in Python"
    assert result.stderr == f"error: standard input:9: {reason}\n"
    facts = json.loads(result.stdout)
    assert (facts["organism"], facts["joints"], facts["mode"]) == (2, 2, "hold")
    assert [row["role"] for row in facts["modules"]] == ["router", "end device"]
    assert [row["q"][0] for row in facts["modules"]] == [pytest.approx(x, abs=3) for x in (10, 20)]
    assert all(row["tau"] for row in facts["modules"])
    assert facts["cycles"] > 50


@NEEDS_COMPILER
def test_a_conversation_names_the_socket_of_a_coordinator_in_c(capsys, monkeypatch):
    monkeypatch.setattr(BusSession, "cmdloop", lambda self: None)
    monkeypatch.setattr(BusSession, "_watch", lambda self: None)
    with ProcessBus(native=["m1"], coordinator="native") as bus:
        bus.wait_until_warm()
        session = BusSession(bus)
        session.talk()
        session.run("start giusti_b giusti_a")
        told = capsys.readouterr().out
        assert f"Coordinator at 127.0.0.1:{bus.address[1]}. " in told
        assert bus.address[1] != bus.endpoint.address[1]
        assert re.search(r"m0: .*process \d+, ports", told)
        assert re.search(r"m1: .*process \d+ in C, ports", told)


def test_commands_reach_the_robot_the_plant_and_the_memory(tmp_path):
    path = tmp_path / "places.csv"
    path.write_text("0, 0, 0\n0.3, 5, 0.02\n0.6, 0, 0\n", encoding="utf-8")
    result = call(
        "arm ac\nwait 2\nlaw pd-gravity\ngains kp=5 kd=1\nwrite m1 viscous=4\n"
        f"follow quintic {path}\nwait done 40\npush m0.joint 0.5 in 0.05\npayload m1 0.2\n"
        "fault m0 stuck\nfault m0 none\nrelax\nhold\nstop\nfollow gait wave in 0.2\n"
        "wait done 40\nshow\n",
        "--period", "0.005",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "PD with gravity compensation" in result.stdout


def test_commands_change_what_the_robot_does():
    bus = SimulatedBus(plant=PlantOptions(), period=0.005)
    for name, below in ((bus.start("giusti_b"), "base.out"), (bus.start("giusti_c"), "m0.out")):
        bus.plug(below, f"{name}.in")
    assert bus.run(lambda: bus.settled(2))
    session = BusSession(bus, quiet=True)
    session.run("law pd-gravity")
    session.run("gains kp=5 kd=0.5")
    law = bus.robot.controller
    assert (type(law).key, [*law.kp], [*law.kd]) == ("pd-gravity", [5, 5], [0.5, 0.5])
    session.run("push m0.joint 0.5 in 0.25")
    session.run("push m1 1,2,3")
    turn, pull = bus.world._pushes
    assert (turn.joint, turn.torque, turn.until - bus.world.t) == ("m0.joint", 0.5, 0.25)
    assert (pull.module, pull.force, pull.until - bus.world.t) == ("m1", [1, 2, 3], 0.1)
    session.run("payload m1 0.2")
    session.run("fault m0 stuck")
    assert (bus.world._payloads, bus.world._faults) == ({"m1": 0.2}, {"m0": "stuck"})
    session.run("fault m0 none")
    session.run("goto 10,0.02 in 0.5")  # degrees and meters
    assert bus.operation.status().motion
    assert bus.run(lambda: not bus.operation.status().motion)
    assert bus.operation.status().set_point == pytest.approx([math.radians(10), 0.02])
    session.run("move m1 0.01")
    assert bus.run(lambda: not bus.operation.status().motion)
    assert bus.operation.status().set_point == pytest.approx([math.radians(10), 0.01])
    for line, motion in (("goto 0,0", "goto in 1 s"), ("follow gait wave in 0.2", "gait wave")):
        session.run(line)
        assert bus.operation.status().motion == motion
        session.run("stop")
        assert not bus.operation.status().motion
    for line, modules in (("kill m1", 1), ("restart m1", 2)):
        session.run(line)
        assert bus.run(lambda count=modules: bus.settled(count))
    session.run("relax")
    assert bus.operation.status().mode == "relax"
    session.run("hold")
    assert bus.operation.status().mode == "hold"


def test_changes_are_told_once(capsys):
    bus = SimulatedBus(plant=PlantOptions(), period=0.005)
    session = BusSession(bus)
    session.print_changes()
    assert capsys.readouterr().out == ""
    for name, below in ((bus.start("giusti_b"), "base.out"), (bus.start("giusti_a"), "m0.out")):
        bus.plug(below, f"{name}.in")
    assert bus.run(lambda: bus.settled(2))
    session.print_changes()
    assert capsys.readouterr().out == ("+ m0 m1\n= robot of 2 modules, 2 joints, computed torque\n")
    session.print_changes()
    assert capsys.readouterr().out == ""
    bus.kill("m1")
    assert bus.run(lambda: bus.settled(1))
    session.print_changes("before\n", "after\n")
    before, left, fault, *summary, after = capsys.readouterr().out.splitlines()
    assert (before, left, after) == ("before", "- m1", "after")
    assert fault.startswith("! silent: module")
    assert summary[-1].endswith("silent: m1")
    session.run("law pd-gravity")
    assert capsys.readouterr().out.splitlines()[0].startswith("= robot of 1 module, 2 joints, PD")


def test_json_of_a_conversation_has_no_prompt_and_mistakes_go_to_standard_error():
    typed = "arm b\nfly away\nwait 1\n"
    result = CliRunner().invoke(cli, ["bus", "--json"], input=typed)
    assert [module["name"] for module in json.loads(result.stdout)["modules"]] == ["m0"]
    assert "error: no command 'fly'" in result.stderr


def test_what_is_typed_is_no_markup():
    result = call("arm [blink]")
    assert "bus> arm [blink]" in result.stdout
    assert "[blink]" in result.stderr
    typed = "start [bold]x[/bold]\nplug [/red].in m0.out\n"
    result = CliRunner().invoke(cli, ["bus"], input=typed)
    assert "[bold]x[/bold]" in result.stdout
    assert "[/red]" in result.stdout


@pytest.mark.parametrize(
    ("script", "pieces"),
    [
        ("launch giusti_b", ("standard input:1", "no command 'launch'", "start, plug")),
        ("\nplug base.out", ("standard input:2", "plug END END [TURN]")),
    ],
)
def test_mistakes_in_a_script_are_one_line_with_its_place(script, pieces):
    result = call(script)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: standard input:")
    for piece in pieces:
        assert piece in line


@pytest.fixture(scope="module")
def session():
    """Commands on a bus with a module that is docked to nothing."""
    with ProcessBus(plant=PlantOptions()) as bus:
        bus.start("giusti_b")
        yield BusSession(bus, quiet=True)


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        ("plug base.out m9.in", ("no module 'm9'",)),
        ("start giusti_z", ("giusti_z",)),
        ("arm xyz", ("xyz", "babac")),
        ("wait many", ("N is a whole number", "many")),
        ("move m0 1 2", ("one number for each joint of 'm0' (joint)", "2")),
        ("move m0 1", ("no joint 'm0.joint' in the robot: joints are none",)),
        ("goto 1,2 in 2", ("no robot with joints", "plug modules")),
        ("goto 1,x in 2", ("Q is a number", "x")),
        ("goto 1 within 2", ("in SECONDS", "within 2")),
        ("follow dance x", ("no robot",)),
        ("law magic", ("no control law 'magic'",)),
        ("law pd-gravity", ("a law needs a robot with joints",)),
        ("gains kp=1", ("computed-torque takes", "k0 [1/s^2]")),
        ("push m0.joint fast", ("EFFORT is a number",)),
        ("payload m9 1", ("no module 'm9'",)),
        ("fault m0 tired", ("no fault 'tired'", "stuck")),
        ("write m0 mass=2", ("not in the robot",)),
        ("record /tmp/never.npz", ("nothing is being recorded",)),
        ("sleep -1", ("seconds",)),
        ("write m0", ("write MODULE NAME=NUMBER",)),
        ("start 'x", ("cannot be split into words",)),
        ("push m0 1,2", ("force of three numbers",)),
        ("goto nan", ("Q is a number, got 'nan'",)),
    ],
)
def test_mistakes_are_one_line(session, line, pieces):
    with pytest.raises(ModurobError) as caught:
        session.run(line)
    (told,) = str(caught.value).splitlines()
    for piece in pieces:
        assert piece in told


def test_mistakes_in_a_conversation_change_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mistakes = {
        "kill plant": "no module 'plant': there are m0, m1",
        "wait -1": "N is a whole number, got '-1'",
        "sleep 1e300": "SECONDS must be a number from 0 to 1e+06 (seconds), got 1e+300",
        "plug m0.out base.out 1.5": "TURN is a whole number",
        "push m0 2": "no joint 'm0': joints are m0.joint",
        "push m7.joint 2": "no module 'm7'",
        "push m0.joint 1,2,3": "no module 'm0.joint'",
        "write m0 name=3": "no parameter name",
        "move m1 3": "no joint 'm1.joint' in the robot: joints are m0.joint",
        "goto 1,2": "1 finite numbers, one for each joint (m0.joint), got 2",
        "record nowhere/x.csv": "no folder",
    }
    typed = "\n".join(
        [
            "arm b",
            "wait 1",
            "start giusti_a",
            "record",
            "sleep 0.1",
            *mistakes,
            "record x.csv",
            "show",
        ]
    )
    result = CliRunner().invoke(cli, ["bus"], input=typed + "\n")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert [words for words in mistakes.values() if f"error: {words}" not in text] == [
        "1 finite numbers, one for each joint (m0.joint), got 2",
        "no folder",
    ]
    assert "error: goto takes 1 finite numbers" in text
    assert "nowhere/x.csv: cannot be written: there is no folder" in text
    assert "wrote x.csv" in text  # what could not be written is still there
    assert "guaranteed" in text


def test_waiting_in_vain_fails():
    result = call("start giusti_b\nwait 3 0.2")
    assert result.exit_code == 1
    assert result.stderr == (
        "error: standard input:2: waited 0.2 s for a robot of 3 modules; it has 0\n"
    )


def test_a_command_is_one_method_that_help_lists_and_a_script_runs(monkeypatch):
    def do_greet(self, name: str) -> None:
        """greet NAME: print a greeting."""
        self.out.print(f"hello {name}")

    monkeypatch.setattr(BusSession, "do_greet", do_greet, raising=False)
    result = call("help\ngreet 'a b'  # quoted\ngreet")
    assert re.search(r"^greet NAME +print a greeting\. *$", result.stdout, re.MULTILINE)
    assert re.search(r"SECONDS\] +move all joints", result.stdout)
    assert "hello a b" in result.stdout
    assert result.stderr == "error: standard input:3: greet: greet NAME\n"


@pytest.mark.parametrize(
    "args",
    [
        ["--script", "nowhere.bus"],
        ["--script", ""],
        ["--loss", "2"],
        ["--transport", "x"],
        ["--native", "m1,arm"],
    ],
)
def test_bad_options_are_one_line(args):
    result = CliRunner().invoke(cli, ["bus", *args])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


class Terminal:
    """``modurob bus`` at a terminal of its own."""

    def __init__(self) -> None:
        self.screen, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "modurob", "bus"],
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            env={**os.environ, "TERM": "dumb", "COLUMNS": "100"},
            # Ctrl-C works here also where the tests run with it ignored, as under nohup
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        os.close(slave)
        os.set_blocking(self.screen, False)
        self.text = ""

    def until(self, piece: str) -> None:
        end = time.monotonic() + DEADLINE
        while piece not in self.text:
            assert time.monotonic() < end, f"no {piece!r} in {self.text!r}"
            try:
                self.text += os.read(self.screen, 4096).decode()
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:  # the other side is closed
                break

    def type(self, line: str) -> None:
        os.write(self.screen, line.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C, and again where it came in the moment before readline waits for a key.

        CPython looks for signals once before it waits; a later one is seen with the next key.
        """
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(DEADLINE / 2)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGINT)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        """End a bus that a failed test would leave running."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.screen)


def children(pid: int) -> set[int]:
    return {
        int(path.name)
        for path in Path("/proc").glob("[0-9]*")
        if (stat := _stat(path)) and stat[1] == pid
    }


def _stat(path: Path) -> tuple[str, int] | None:
    """State and parent of a process."""
    try:
        state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return state, int(parent)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_conversation_and_ctrl_c_leaves_no_process_behind():
    with Terminal() as terminal:
        terminal.until("bus> ")
        terminal.type("start giusti_b\n")
        terminal.until("m0: giusti_b")
        terminal.type("plug base.out m0.in\n")
        terminal.until("= robot of 1 module")  # told by itself, without a command
        terminal.type("plug base.out m0.in\n")
        terminal.until("error: base.out already holds m0.in")
        modules = children(terminal.process.pid)
        assert len(modules) == 2  # the plant and the module
        terminal.interrupt()
        assert terminal.process.wait(DEADLINE) == 130
        end = time.monotonic() + DEADLINE
        while any(Path(f"/proc/{pid}").exists() for pid in modules):
            assert time.monotonic() < end
            time.sleep(0.01)


def test_a_summary_names_modules_that_are_silent_or_let_go(session):
    assert _summary(BusRobot()) == "no robot"
    facts = session.facts()
    (module,) = facts["modules"]
    assert (module["name"], module["role"], module["docked"]) == ("m0", "not in the robot", [])
    assert (facts["organism"], facts["joints"], facts["law"]) == (0, 0, None)
    assert (facts["error"], facts["error_if_heavier"]) == (None, None)
    assert facts["missing"] == ["there is no controller"]


def test_data_of_a_command_are_numbers_or_lists_with_a_name():
    assert _pairs(["mass=0.6", "limits=-1,1"]) == {"mass": 0.6, "limits": [-1.0, 1.0]}
    for word in ("mass", "mass=", "=3"):
        with complains(StateError, "expected NAME=NUMBER", f"'{word}'"):
            _pairs([word])
