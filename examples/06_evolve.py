"""Bodies that learn to walk: a short search, and its best body as picture and files.

Four generations of twelve bodies of cubes, the first one random. The best body
is run again in MuJoCo, if it is here, with contacts between modules that the search does not have.

Run it with `python examples/06_evolve.py`. `modurob evolve --output walkers` searches longer.
"""

from __future__ import annotations

from pathlib import Path

import modurob as mr
from modurob.search import TASKS, BodySpace, SearchResult, evolve
from modurob.search.gallery import draw_progress
from modurob.search.winners import mujoco_score, scenario_of

FOLDER = Path("output")
SPACE = BodySpace(kinds=("backbone",), modules=(4, 8), frequency=(0.2, 0.6))


def report(result: SearchResult) -> None:
    """One line for each generation."""
    last = result.history[-1]
    print(f"generation {len(result.history)}: best {last.leader:.3f} m, median {last.median:.3f} m")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    task = TASKS["walk"]
    found = evolve(task, population=12, generations=4, seed=3, space=SPACE, progress=report)
    best = found.best[0]
    scenario = scenario_of(best.genotype, task, "walker")
    print(f"{len(scenario.organism)} modules, {found.evaluations} bodies evaluated")
    score, note = mujoco_score(scenario, task)
    print(f"in MuJoCo: {note or f'{score:.3f} m'}")
    mr.drawing.picture(scenario.organism, FOLDER / "walker.png", labels=False, size=600)
    scenario.save(FOLDER / "walker.json")
    draw_progress(found, FOLDER / "progress.png")
    print(f"picture: {FOLDER / 'walker.png'}\nscores:  {FOLDER / 'progress.png'}")
    print(f"the run, for `modurob run`: {FOLDER / 'walker.json'}")


if __name__ == "__main__":
    main()
