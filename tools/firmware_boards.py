"""Measure the C runtime on emulated boards: flash, RAM, stack and instructions.

    python tools/firmware_boards.py
    python tools/firmware_boards.py --board m4 --optimize=-Os
    python tools/firmware_boards.py --board m4 --functions

The bare-metal program of the runtime (`src/modurob/firmware/boards`) is built for each board in
single precision, linked into 64 kB of flash and 16 kB of RAM, and run by QEMU: it reads records and
dockings, builds its model, and computes torques, which are compared with Python's. QEMU lets every
instruction take 64 ns (-icount shift=6), so that the board's own timer counts instructions; a loop
of known length checks that. The stack is painted before each message and each torque. Prints a
table in Markdown; ends with 1 where a limit is missed. With --functions it counts the instructions
of single functions of the runtime, for the arm.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import modurob as mr  # noqa: E402
from oracles import boards  # noqa: E402

ALLOWED = 1e-4  # relative error of torques
FLASH, RAM = 64 * 1024, 16 * 1024  # [bytes]
REBUILD, STEP = 1_000_000, 100_000  # instructions
HEADER = "| board | robot | flash | RAM | stack | rebuild | step |\n" + "| --- " * 7 + "|"
DRIVES = {"viscous": 0.3, "coulomb": 0.1, "rotor_inertia": 1e-5, "gear_ratio": 30.0}
ROBOTS = {
    "arm": [(boards.arm(joints), "dyad") for joints in (3, 6, 12)],
    "4 SuperBots": [(mr.examples.superbot_tree(1, 4).with_parameters(**DRIVES), "physical")],
    "13 Backbones": [(mr.examples.snake(13).with_parameters(**DRIVES), "dyad")],
}

FUNCTIONS = (  # in the order of firmware_functions.c
    "inverse dynamics",
    "forward dynamics",
    "mass matrix",
    "computed torque",
    "PD with gravity compensation",
    "PID without a model",
    "EKF, prediction",
    "EKF, correction",
)


def count_functions(board: boards.Board, optimize: str) -> None:
    """Print the instructions of each function for the arms."""
    columns = []
    for organism, _ in ROBOTS["arm"]:
        states, aim = boards.random_motion(len(organism))
        with tempfile.TemporaryDirectory() as name:
            folder, source = Path(name), Path(__file__).with_name("firmware_functions.c")
            boards.write_program(folder, organism, len(organism), len(organism))
            shutil.copy(source, folder / "boards")
            options = (f"PROGRAM={source.name}", "FLASH_KB=256", "RAM_KB=64", "STACK_KB=4")
            program = boards.build(folder, board, f"OPTIMIZE={optimize}", *options)
            sent = boards.messages(organism, aim)
            _, events, _ = boards.exchange(folder, boards.emulated(board, program), sent, states)
        steps = events[events[:, 0] == boards.STEP, 1][1 : len(FUNCTIONS) + 1]
        columns.append([f"{x / board.ticks_per_instruction:,.0f}" for x in steps])
    counts = " | ".join(f"{len(organism)} joints" for organism, _ in ROBOTS["arm"])
    print(f"\n| {board.title} | {counts} |\n" + "| --- " * (1 + len(columns)) + "|")
    for title, *numbers in zip(FUNCTIONS, *columns, strict=True):
        print(f"| {title} | {' | '.join(numbers)} |")


def row(board: boards.Board, title: str, found: boards.Measured) -> str:
    """A line of the table; RAM does not include the stack."""
    numbers = (found.flash, found.static, found.stack, found.rebuild, found.step)
    cells = [board.title, f"{title}, {found.joints} joints", *(f"{x:,}" for x in numbers)]
    return f"| {' | '.join(cells)} |"


def missed(modules: int, found: boards.Measured) -> list[str]:
    """Limits that a measurement misses; instructions are limited for up to 6 modules."""
    limits = {
        "counter": (abs(found.check - boards.LOOP_INSTRUCTIONS), boards.CALL_INSTRUCTIONS),
        "error": (found.error, ALLOWED),
        "flash": (found.flash, FLASH),
        "RAM": (found.ram, RAM),
    }
    if modules <= 6:
        limits |= {"rebuild": (found.rebuild, REBUILD), "step": (found.step, STEP)}
    return [f"{name}: {x:g}, limit {most:g}" for name, (x, most) in limits.items() if x > most]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--board", choices=boards.BOARDS, action="append", help="all by default")
    parser.add_argument("--optimize", default="-O2", help="of the compiler (default: -O2)")
    parser.add_argument("--functions", action="store_true", help="count single functions")
    given = parser.parse_args()
    chosen = [boards.BOARDS[name] for name in given.board or boards.BOARDS]
    missing = sorted({program for board in chosen for program in board.missing()})
    if missing:
        parser.error(f"not installed: {', '.join(missing)}")
    if given.functions:
        for board in chosen:
            count_functions(board, given.optimize)
        return 0
    failures, worst = [], 0.0
    print(HEADER)
    for board in chosen:
        for title, robots in ROBOTS.items():
            for organism, hinges in robots:
                modules, joints = len(organism), organism.model(hinges).nv
                with tempfile.TemporaryDirectory() as name:
                    folder = Path(name)
                    boards.write_program(folder, organism, modules, joints)
                    program = boards.build(folder, board, f"OPTIMIZE={given.optimize}")
                    found = boards.measure(folder, board, program, organism, hinges)
                print(row(board, title, found), flush=True)
                worst = max(worst, found.error)
                failures += [f"{board.title}, {title}: {each}" for each in missed(modules, found)]
    print(f"largest relative error of a torque: {worst:.1e}")
    print("\n".join(failures) or "All limits are kept.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
