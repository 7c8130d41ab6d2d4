"""End a studio by SIGKILL at random times during edits and runs: nothing shown as saved is lost.

``python tools/studio_kill.py --kills 20`` starts a process that edits a project 50 times and
computes 10 runs, and reports what the bar would show as saved. It is killed at a random time; then
the project on disk must hold at least that, and every run of it must be readable. With
``--browser`` a browser edits and runs, and what counts is what its page has shown as saved: one
trial of three goes on to all edits and runs, and every other one ends within a run.
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
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks import browser as browsers
from modurob import Trajectory, examples
from modurob.studio import project as projects
from modurob.studio.folder import Folder
from modurob.studio.project import NEW_SETTINGS, History, Project, SavedBody
from modurob.studio.studio import Studio

EDITS, RUN_EACH = 50, 5
NAME = "crab"
QUICK = {"duration": 0.02, "motion": "none", "controller": "none"}  # settings of the runs
LONG_RUN_S = 5  # of simulated time, for the run that is under way at the kill
LATE_MS = 400.0  # at most, between an edit and the kill
LONG_MS = 120_000  # that anything in the browser may take
# Runs that are listed, by the panels of Move and See.
RUNS = (
    "new Set([...document.querySelectorAll('.chip[data-testid^=run-]')]"
    ".map((chip) => chip.dataset.testid)).size"
)
# In every frame: the most modules and runs that the page has shown as saved.
WATCH = f"""() => {{ window.shown = [0, 0]; const look = () => {{
  const count = window.modurob.stage.bodies.cast?.modules.length ?? 0, runs = {RUNS};
  if (document.querySelector('[data-testid=saved]').innerText === 'Saved')
    window.shown = [Math.max(window.shown[0], count), Math.max(window.shown[1], runs)];
  requestAnimationFrame(look); }}; look(); }}"""
MODULES = "window.modurob?.stage?.bodies.cast?.modules.length"


async def work(folder: Path) -> None:
    """Edit and run; print the number of the edit and of the runs whenever all is saved."""
    studio = Studio(Folder(folder))
    session = studio.open(NAME)
    if session.organism is None:
        session.dock("scout")
        session.dock("scout", "m0", 3)  # a joint to move
    session.edit_settings(**QUICK)
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
        found = read(Folder(Path(home)))
        same = found.settings.seed == number and found.organism is not None
        if found.settings.seed < number or len(found.runs) < runs:
            return f"edit {number}, {runs} runs were saved; {found.settings.seed} found"
        if same and len(found.organism or ()) != modules:
            return f"{modules} modules were saved; {len(found.organism or ())} found"
        print(f"killed after edit {number} with {runs} runs: edit {found.settings.seed} on disk")
    return ""


def read(folder: Folder) -> Project:
    """The project on the disk, when all of its runs can be read."""
    found = folder.read(NAME)
    for run in found.runs:
        Trajectory.load(folder.runs(NAME) / f"{run.number}.npz")
        json.loads((folder.runs(NAME) / f"{run.number}.json").read_text())
    return found


class EditingPage:
    """A browser page that edits the project and computes runs, as a user does."""

    def __init__(self, page: Any, url: str) -> None:
        self.page, self.edits, self.runs = page, 0, 0
        page.set_default_timeout(LONG_MS)
        page.goto(f"{url}/project/{NAME}")
        page.wait_for_function(f"{MODULES} === 2")
        page.evaluate(WATCH)
        page.keyboard.press("Alt+1")
        page.get_by_test_id("view-tree").click()
        page.get_by_test_id("row-m1").click()

    def edit(self) -> None:
        """One module more."""
        self.edits += 1
        self.page.keyboard.press("Control+d")
        self.page.wait_for_function(f"{MODULES} === {self.edits + 2}")

    def run(self) -> float:
        """Compute a run; returns the time that it took. [s]"""
        self.page.keyboard.press("Alt+3")
        begin = time.monotonic()
        self.page.locator("[data-testid=run]:enabled").click()
        self.runs += 1
        self.page.wait_for_function(f"{RUNS} === {self.runs}")
        took = time.monotonic() - begin
        self.page.keyboard.press("Alt+1")
        return took

    def start_run(self, chance: random.Random) -> None:
        """Compute a long run, start it once more, and return at a random time of that one."""
        self.page.keyboard.press("Alt+3")
        duration = self.page.locator("[data-testid=set-duration]")
        duration.fill(str(LONG_RUN_S))
        duration.blur()
        took = self.run()
        self.page.keyboard.press("Alt+3")
        self.page.locator("[data-testid=run]:enabled").click()
        self.page.wait_for_timeout(1000.0 * chance.uniform(0.0, took))


def browser_trial(browser: Any, seed: int) -> str:
    """One studio, killed while a browser edits and runs; returns what was lost."""
    chance = random.Random(seed)
    edits = EDITS if seed % 3 == 0 else chance.randint(1, EDITS)
    begun = Project(History(SavedBody(examples.snake(2))), settings=NEW_SETTINGS.edited(**QUICK))
    with tempfile.TemporaryDirectory() as home:
        folder = Folder(Path(home))
        folder.write(NAME, projects.to_bytes(begun))
        server = browsers.started(folder.path)
        page = browser.new_page()
        try:
            user = EditingPage(page, server.url)
            for number in range(1, edits + 1):
                user.edit()
                if number % RUN_EACH == 0:
                    user.run()
            if seed % 2 == 0:
                user.start_run(chance)
            else:
                page.keyboard.press("Control+d")
                page.wait_for_timeout(chance.uniform(0.0, LATE_MS))
        finally:
            server.process.kill()
            server.process.wait()
        modules, runs = page.evaluate("window.shown")
        page.close()
        found = read(folder)
        there = len(found.organism or ()), len(found.runs)
        if there[0] < modules or there[1] < runs:
            return f"{modules} modules and {runs} runs were shown as saved; {there} found"
        within = " within a run" if seed % 2 == 0 and there[1] == user.runs else ""
        print(
            f"killed{within} after {edits} edits and {user.runs} runs: the page showed {modules} "
            f"modules and {runs} runs as saved, {there} on disk",
            flush=True,
        )
    return ""


def main() -> int:
    """Run the trials; 1 if something was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--browser", action="store_true", help="edit and run in a browser")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        asyncio.run(work(Path(given.work)))
        return 0
    if given.browser:
        with browsers.browsing() as browser:
            found = [browser_trial(browser, seed) for seed in range(given.kills)]
    else:
        found = [trial(seed) for seed in range(given.kills)]
    lost = [*filter(None, found)]
    print("\n".join(lost) or f"nothing was lost in {given.kills} kills")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
