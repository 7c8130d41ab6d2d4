"""``modurob bus``: scripts, conversations, and nothing left behind."""

from __future__ import annotations

import json
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

from modurob.cli import cli
from modurob.cli.bus_session import BusSession

DEADLINE = 60.0  # [s]


def call(script: str, *args: str):
    return CliRunner().invoke(cli, ["bus", "--script", "-", *args], input=script)


def test_a_script_builds_an_arm_and_operates_on_it(tmp_path):
    script = tmp_path / "demo.bus"
    script.write_text(
        "arm bab   # three modules\nwait 3\nmove m1 30\nshow\nkill m1\nwait 1\nunplug m1\n"
        "plug m0.out m2.in\nwait 2\nshow\n\nquit\nnonsense\n",
        encoding="utf-8",
    )
    result = CliRunner().invoke(cli, ["bus", "--script", str(script), "--heartbeat", "0.5"])
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert "+ m0 m1 m2\n= robot of 3 modules, 3 joints, computed torque" in text
    assert re.search(r"m1 +giusti_a +02:42:ac:11:00:02 +router +in on m0.out +30 +-\d+\.\d+", text)
    assert "- m1 m2\n! silent: module 02:42:ac:11:00:02 at port out of 'm0'" in text
    assert "+ m2\n= robot of 2 modules" in text
    assert re.search(r"m1 +giusti_a +02:42:ac:11:00:02 +dead +nothing", text)
    assert "For a set point that stays where it is:\ncomputed torque: guaranteed: from any" in text
    assert "The set point is the measured pose" in text


def test_json_is_the_last_state_and_nothing_else():
    result = call("arm ba\nwait 2\nmove m1 90", "--json", "--law", "PdGravity")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["organism"] == facts["joints"] == 2
    assert facts["law"] == "PD with gravity compensation"
    assert facts["guaranteed_for_fixed_set_point"] is True
    assert facts["modules"][1]["q"] == [pytest.approx(90)]
    # half a kilogram at 5 cm beyond a joint that lies flat
    assert abs(facts["modules"][1]["tau"][0]) == pytest.approx(0.5 * 9.81 * 0.05, rel=1e-6)


def test_json_of_a_conversation_has_no_prompt_and_mistakes_go_to_standard_error():
    typed = "arm b\nfly away\nwait 1\n"
    result = CliRunner().invoke(cli, ["bus", "--json"], input=typed)
    assert [module["name"] for module in json.loads(result.stdout)["modules"]] == ["m0"]
    assert "error: no command 'fly'" in result.stderr


def test_a_bad_reading_is_printed_when_it_comes_and_when_a_good_one_follows():
    result = call("arm ba\nwait 2\nmove m1 1e306\nmove m1 20\n")
    assert result.exit_code == 0, result.output
    lines = [line for line in result.stdout.splitlines() if line[:2] in ("! ", "= ")]
    robot = "= robot of 2 modules, 2 joints, computed torque, stable about a fixed set point"
    text = "\n".join(lines).replace("\n", " ")
    assert "! reading of 'm1': [1.7453292519943295e+304, 0.0]" in text
    assert f"{robot}; let go: m1" in result.stdout.replace("\n", " ")
    assert lines[-1] == robot


@pytest.mark.parametrize("line", ["start [bold]x[/bold]", "plug [/red].in m0.out", "arm [blink]"])
def test_what_is_typed_is_no_markup(line):
    result = call(line)
    assert result.exit_code == 2
    assert f"bus> {line}" in result.stdout
    assert line.split()[1].partition(".")[0] in result.stderr


@pytest.mark.parametrize(
    ("script", "pieces"),
    [
        ("launch giusti_b", ("standard input:1", "no command 'launch'", "start, plug")),
        ("\nplug base.out", ("standard input:2", "plug END END [TURN]")),
        ("plug base.out m0.in", ("no module 'm0'",)),
        ("start giusti_z", ("giusti_z",)),
        ("arm xyz", ("xyz", "babac")),
        ("wait many", ("N is a number", "many")),
        ("start giusti_b\nmove m0 1 2", ("'m0' has 1 joints",)),
    ],
)
def test_mistakes_in_a_script_are_one_line_with_its_place(script, pieces):
    result = call(script)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: standard input:")
    for piece in pieces:
        assert piece in line


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
    assert "greet NAME              print a greeting." in result.stdout
    assert "hello a b" in result.stdout
    assert result.stderr == "error: standard input:3: greet: greet NAME\n"


@pytest.mark.parametrize(
    "args", [["--script", "nowhere.bus"], ["--script", ""], ["--loss", "2"], ["--transport", "x"]]
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
    terminal = Terminal()
    terminal.until("bus> ")
    terminal.type("start giusti_b\n")
    terminal.until("m0: giusti_b")
    terminal.type("plug base.out m0.in\n")
    terminal.until("= robot of 1 module")  # told by itself, without a command
    terminal.type("plug base.out m0.in\n")
    terminal.until("error: base.out already holds m0.in")
    modules = children(terminal.process.pid)
    assert len(modules) == 1
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.process.wait(DEADLINE) == 130
    end = time.monotonic() + DEADLINE
    while any(Path(f"/proc/{pid}").exists() for pid in modules):
        assert time.monotonic() < end
        time.sleep(0.01)
    os.close(terminal.screen)
