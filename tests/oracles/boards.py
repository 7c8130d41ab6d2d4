"""The C runtime on emulated boards: build, run and measure its bare-metal program."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import modurob as mr
from modurob.compiler.emit_c import write_sources
from modurob.firmware import runtime_files
from modurob.reference import Reference
from oracles.runtime import port_index, record_of

CLEAR, RECORD, DOCK, BUILD, AIM, STEP, CHECK = (
    1,
    2,
    3,
    4,
    5,
    0x80,
    0x81,
)  # boards/main.c, qemu.c
LOOP_INSTRUCTIONS = 2000  # of the loop that checks the counter
CALL_INSTRUCTIONS = 12  # at most, around that loop
K0, K1, SAMPLE_TIME = 100.0, 20.0, 1e-3  # of boards/main.c
STATES = 20
SHIFT = 6  # of -icount: an instruction takes 2^6 ns
NS_PER_INSTRUCTION = 2**SHIFT


@dataclass(frozen=True)
class Board:
    """An emulated board; ``name`` is its BOARD in ``boards/Makefile``."""

    name: str
    title: str
    compiler: str
    emulator: tuple[str, ...]
    timer_hz: float

    @property
    def ticks_per_instruction(self) -> float:
        return self.timer_hz * NS_PER_INSTRUCTION * 1e-9

    def missing(self) -> list[str]:
        """Programs that this machine lacks."""
        needed = ("make", self.compiler + "gcc", self.emulator[0])
        return [program for program in needed if shutil.which(program) is None]


BOARDS = {
    board.name: board
    for board in (
        Board("m4", "Cortex-M4F", "arm-none-eabi-",
              ("qemu-system-arm", "-M", "mps2-an386"), 25e6),
        Board("m7", "Cortex-M7", "arm-none-eabi-",
              ("qemu-system-arm", "-M", "mps2-an500"), 25e6),
        Board("rv32", "RISC-V", "riscv64-unknown-elf-",
              ("qemu-system-riscv32", "-M", "virt", "-bios", "none"), 10e6),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """Numbers of one run: bytes, instructions, and the relative error of the torques.

    Attributes:
        static: RAM without stack.
        check: Instructions of a loop of 2000.
        rebuild: All records and dockings, the table, and the first torque.
        step: The slowest computed torque.
    """

    joints: int
    flash: int
    static: int
    stack: int
    check: int
    rebuild: int
    step: int
    error: float

    @property
    def ram(self) -> int:
        return self.static + self.stack


def arm(joints: int) -> mr.Organism:
    """An arm of as many modules as joints, with friction and rotors."""
    return mr.examples.arm(("ba" * joints)[:joints]).with_parameters(
        viscous=0.3, coulomb=0.1, rotor_inertia=1e-5, gear_ratio=30.0
    )


def write_program(folder: Path, organism: mr.Organism, modules: int, joints: int) -> None:
    """Write the runtime with its program for the kinds of an organism, in single precision."""
    kinds = [organism.kind(name) for name in organism.modules]
    write_sources(folder, runtime_files(kinds, modules, joints, single=True))


def build(folder: Path, board: Board, *options: str) -> Path:
    """The program of `write_program` for a board, as an ELF file."""
    command = ["make", "-s", "-C", str(folder / "boards"), f"BOARD={board.name}", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "boards" / board.name / "robot.elf"


def messages(organism: mr.Organism, aim: Reference, hinges: str = "dyad") -> list[bytes]:
    """Records, dockings, and one reference."""
    names = list(organism.modules)
    parts = [bytes([RECORD]) + record_of(organism.kind(name)) for name in names]
    for parent, port, child, child_port, turn, _ in organism.dockings:
        places = [
            (names.index(name), port_index(organism.kind(name), label))
            for name, label in ((parent, port), (child, child_port))
        ]
        parts.append(struct.pack("<B4BH", DOCK, *places[0], *places[1], turn))
    parts.append(bytes([BUILD, hinges == "physical"]))
    parts.append(bytes([AIM]) + np.concatenate(aim).astype("<f4").tobytes())
    return parts


def exchange(
    folder: Path, command: Sequence[str], sent: Sequence[bytes], states: np.ndarray
) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Run a program on messages and states (..., 2, n); return answers, events and torques."""
    framed = b"".join(struct.pack("<H", len(each)) + each for each in sent)
    (folder / "messages.bin").write_bytes(framed)
    (folder / "states.bin").write_bytes(states.astype("<f4").tobytes())
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    answers = np.fromfile(folder / "answers.bin", "i1").tolist()
    events = np.fromfile(folder / "events.bin", "<u4").reshape(-1, 3)
    return answers, events, np.fromfile(folder / "torques.bin", "<f4")


def random_motion(n: int) -> tuple[np.ndarray, Reference]:
    """Single-precision states (STATES, 2, n) and a reference."""
    rng = np.random.default_rng(3)
    states, aim = rng.standard_normal((STATES, 2, n)), rng.standard_normal((3, n))
    return states.astype("f4").astype(float), Reference(*aim.astype("f4").astype(float))


def emulated(board: Board, program: Path) -> list[str]:
    """Command that runs a program on an emulated board."""
    return [
        *board.emulator, "-nographic", "-monitor", "none", "-serial", "none", "-kernel",
        str(program), "-icount", f"shift={SHIFT}", "-semihosting-config",
        "enable=on,target=native",
    ]  # fmt: skip


def measure(
    folder: Path, board: Board, program: Path, organism: mr.Organism, hinges: str = "dyad"
) -> Measured:
    """Let a board model an organism and control it; compare its torques with Python's."""
    model = organism.model(hinges)
    states, aim = random_motion(model.nv)
    sent = messages(organism, aim, hinges)
    answers, events, torques = exchange(folder, emulated(board, program), sent, states)
    assert answers == [0] * len(sent)
    expected = expected_torques(model, states, events[:, 0], aim)
    kinds, instructions = events[:, 0], np.rint(events[:, 1] / board.ticks_per_instruction)
    size = subprocess.run(
        [board.compiler + "size", str(program)], capture_output=True, text=True, check=True
    )
    text, data, bss = (int(word) for word in size.stdout.splitlines()[1].split()[:3])
    steps = np.flatnonzero(kinds == STEP)  # the first is the end of BUILD
    building = np.isin(kinds, (RECORD, DOCK, BUILD))
    return Measured(
        joints=model.nv,
        flash=text + data,
        static=data + bss,
        stack=int(events[:, 2].max()),
        check=int(instructions[kinds == CHECK][0]),
        rebuild=int(instructions[building].sum() + instructions[steps[:2]].sum()),
        step=int(instructions[steps[1:]].max()),
        error=float(np.abs(torques - expected.ravel()).max() / np.abs(expected).max()),
    )


def expected_torques(
    model: mr.Model, states: np.ndarray, kinds: np.ndarray, aim: Reference
) -> np.ndarray:
    """Torques (..., n) of Python's law: hold the state of BUILD until a reference comes."""
    law = mr.control.ComputedTorque(model, k0=K0, k1=K1, sample_time=SAMPLE_TIME)
    rest, now, torques, place = np.zeros(model.nv), None, [], 0
    for kind in kinds:
        if kind in (CLEAR, BUILD) and now is not None:
            now = None
            torques.append(rest)
        elif kind == AIM and now is not None:
            now = aim
        elif kind == STEP:
            if now is None:
                now = Reference(states[place, 0], rest, rest)
            else:
                torques.append(law.command(place * SAMPLE_TIME, *states[place], now))
            place += 1
    return np.array(torques)
