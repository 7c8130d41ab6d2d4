"""End a studio by SIGKILL at random times during edits and runs: nothing shown as saved is lost.

``python tools/studio_kill.py --kills 20`` starts a process that edits a project 50 times and
computes 10 runs, and reports what the bar would show as saved. It is killed at a random time; then
the project on disk must hold at least that, and every run of it must be readable.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from modurob import Trajectory
from modurob.studio.folder import Folder
from modurob.studio.studio import Studio

EDITS, RUN_EACH = 50, 5
NAME = "crab"


async def work(folder: Path) -> None:
    """Edit and run; print the number of the edit and of the runs whenever all is saved."""
    studio = Studio(Folder(folder))
    session = studio.open(NAME)
    if session.organism is None:
        session.dock("scout")
        session.dock("scout", "m0", 3)  # a joint to move
    session.edit_settings(duration=0.02, motion="none", controller="none")
    for number in range(1, EDITS + 1):
        session.edit_settings(seed=number)
        last = session.body().modules[-1]
        session.dock("scout", last, 3) if number % 2 else session.remove(last)
        if number % RUN_EACH == 0:
            await session.runner.run()
        while session.save_state().words != "Saved":
            await asyncio.sleep(0.001)
        print(json.dumps([number, len(session.body()), len(session.runs)]), flush=True)
    session.runner.worker.close()


def trial(seed: int) -> str:
    """One process, killed after some lines and a random time; returns what was lost."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, __file__, "--work", home]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(chance.randint(1, EDITS - 1))]
            time.sleep(chance.uniform(0.0, 0.4))
            process.kill()
            lines += process.stdout.read().splitlines()
        whole = [line for line in lines if line.rstrip().endswith("]")]
        number, modules, runs = json.loads(whole[-1])
        folder = Folder(Path(home))
        found = folder.read(NAME)
        for run in found.runs:
            Trajectory.load(folder.runs(NAME) / f"{run.number}.npz")
            json.loads((folder.runs(NAME) / f"{run.number}.json").read_text())
        same = found.settings.seed == number and found.organism is not None
        if found.settings.seed < number or len(found.runs) < runs:
            return f"edit {number}, {runs} runs were saved; {found.settings.seed} found"
        if same and len(found.organism or ()) != modules:
            return f"{modules} modules were saved; {len(found.organism or ())} found"
        print(f"killed after edit {number} with {runs} runs: edit {found.settings.seed} on disk")
    return ""


def main() -> int:
    """Run the trials; 1 if something was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        asyncio.run(work(Path(given.work)))
        return 0
    lost = [found for seed in range(given.kills) if (found := trial(seed))]
    print("\n".join(lost) or f"nothing was lost in {given.kills} kills")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
