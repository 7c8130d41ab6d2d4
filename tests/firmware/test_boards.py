"""The bare-metal program of the C runtime, on this machine and on an emulated Cortex-M4F."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import modurob as mr
from oracles import boards, runtime

FLOAT = 1e-4  # relative error of torques in single precision
FLASH, RAM = 64 * 1024, 16 * 1024  # [bytes] at 12 joints
REBUILD, STEP = 1_000_000, 100_000  # instructions, for 6 modules and 6 joints
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "porting.md"
STACK = 2 * 1024  # [bytes] that boards/Makefile leaves at least, at 12 joints
NOT_A_RECORD, LENGTH, NUMBER, MODULE, ARGUMENT = -1, -6, -9, -12, -18


@pytest.mark.skipif(runtime.COMPILER is None, reason="no C compiler on this machine")
def test_the_program_with_the_port_of_the_guide_models_what_its_messages_say(tmp_path):
    """Wrong messages get a status and change nothing; a robot is forgotten and built again."""
    organism = boards.arm(2)
    model, (states, aim) = organism.model(), boards.random_motion(2)
    boards.write_program(tmp_path, organism, 2, 2)
    (port,) = re.findall(r"```c\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "boards" / "board.c").write_text(port)
    own = [tmp_path / "boards" / name for name in ("main.c", "board.c")]
    sources = [*tmp_path.glob("src/*.c"), *own, Path(__file__).with_name("chip.c")]
    command = [
        str(runtime.COMPILER), *runtime.WARNINGS, "-O0", "-DMR_HAVE_SIZES", "-DJOINTS=2",
        f"-I{tmp_path / 'include'}", f"-I{tmp_path / 'boards'}",
        "-o", str(tmp_path / "robot"), *map(str, sources), "-lm",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    good = boards.messages(organism, aim)
    wrong = {
        bytes([9]): ARGUMENT,
        bytes([boards.BUILD, 0]): MODULE,
        bytes([boards.BUILD]): LENGTH,
        bytes([boards.RECORD]): NOT_A_RECORD,
        bytes([boards.DOCK, 0, 1, 1, 0, 0]): LENGTH,
        bytes([boards.AIM, 0, 0, 0, 0]): LENGTH,
    }
    no_number = bytes([boards.AIM]) + np.full(6, np.nan, "<f4").tobytes()
    sent = [*wrong, *good, no_number, bytes([boards.CLEAR]), *good]
    answers, events, torques = boards.exchange(tmp_path, [str(tmp_path / "robot")], sent, states)
    assert answers == [*wrong.values(), *[0] * len(good), NUMBER, *[0] * (len(good) + 1)]
    expected = boards.expected_torques(model, states, events[:, 0], aim)
    assert len(expected) == boards.STATES - 2 + 1  # two builds read one state each; one release
    np.testing.assert_allclose(
        torques.reshape(-1, 2), expected, rtol=0, atol=FLOAT * np.abs(expected).max()
    )
    times = events[events[:, 0] == boards.STEP, 1][-11::2].astype(int)
    assert set(np.diff(times)) == {2000}  # [us] every millisecond; the loop takes 400


@pytest.mark.parametrize("organism", [boards.arm(6), mr.examples.snake(13)], ids=["arm", "snake"])
def test_a_cortex_m4_models_and_controls_a_robot_within_its_limits(tmp_path, organism):
    board = boards.BOARDS["m4"]
    if board.missing():
        pytest.skip(f"not installed: {', '.join(board.missing())}")
    boards.write_program(tmp_path, organism, modules=13, joints=12)
    found = boards.measure(tmp_path, board, boards.build(tmp_path, board), organism)
    assert 0 <= found.check - boards.LOOP_INSTRUCTIONS <= boards.CALL_INSTRUCTIONS
    assert found.error < FLOAT
    assert found.rebuild < REBUILD
    assert found.step < STEP
    assert found.flash < FLASH
    assert found.ram < RAM
    assert found.stack < STACK


@pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine")
@pytest.mark.parametrize(
    ("folder", "change"), [(".", "CFLAGS=-O0"), ("boards", "MEMORY_m4=flash=0x08000000,ram=8")]
)
def test_make_builds_all_again_when_flags_change(tmp_path, folder, change):
    boards.write_program(tmp_path, boards.arm(1), 1, 1)
    compiler = tmp_path / "cc"  # writes what follows -o, and adds a line to a log
    compiler.write_text(
        f'#!/bin/sh\necho x >> {tmp_path}/log\nwhile [ "$1" != -o ]; do shift; done\n: > "$2"\n'
    )
    compiler.chmod(0o755)

    def compiled(*options: str) -> int:
        log = tmp_path / "log"
        log.write_text("")
        command = ["make", "-s", "-C", str(tmp_path / folder), f"CC={compiler}", "AR=true"]
        subprocess.run([*command, *options], check=True)
        return len(log.read_text().split())

    everything = compiled()
    if folder == ".":
        (tmp_path / "build/libmodurob.a").touch()
    assert everything > 20
    assert compiled() == 0
    assert compiled(change) == everything
