"""The zoo of walkers: tune their gaits, compare them with MuJoCo, film them.

    python tools/zoo.py compare [NAME ...]           distances here and in MuJoCo
    python tools/zoo.py films FOLDER [NAME ...]      a film and a picture of each
    python tools/zoo.py tune NAME RUNS [SEED]        write the gait into the package

MuJoCo has the same body, law and start; its contacts are its own, and modules that meet push each
other apart, which they do not here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from modurob import Scenario
from modurob.walking import started, tune, walking_fields
from modurob.walking.zoo import HINGES, ZOO, gait_file, zoo_body, zoo_walk

TUNED_S = 6.0  # length of the runs that are compared when gaits are tuned
YAW = [f"m{k}.yaw" for k in range(4)]  # a quarter ahead of pitch
SHOWN = (0.1, 0.4, 0.7, 1.0)  # of a run: moments of its picture


def compare(names: list[str]) -> None:
    print(f"{'':<12} {'modurob':>8} {'MuJoCo':>8} {'ratio':>6}  [m]")
    for name in names or ZOO:
        ours, theirs = (zoo_walk(name, engine=e).metrics.distance for e in ("modurob", "mujoco"))
        print(f"{name:<12} {ours:8.3f} {theirs:8.3f} {ours / theirs:6.2f}", flush=True)


def films(folder: str, names: list[str]) -> None:
    for name in names or ZOO:
        walk = zoo_walk(name)
        run, path = walk.trajectory, Path(folder) / name
        run.animate(path.with_suffix(".gif"), fps=12.5, size=360)
        run.picture(path.with_suffix(".png"), walk.scenario.duration * np.array(SHOWN), size=300)
        print(f"wrote {path}.gif and {path}.png", flush=True)


def tuned(name: str, runs: int, seed: int = 0) -> None:
    it = zoo_body(name)
    begin = {"phase": dict.fromkeys(YAW, np.pi / 2)} if name == "sidewinder" else {}
    fields = walking_fields(it.kind, begin, hinges=HINGES, **it.fields, duration=TUNED_S)
    scenario = started(Scenario(organism=it.build(), name=name, **fields))
    found = tune(scenario, runs, seed=seed, progress=lambda *state: print(*state, flush=True))
    found.gait.save(gait_file(name))


def main() -> None:
    match sys.argv[1:]:
        case ["compare", *names]:
            compare(names)
        case ["films", folder, *names]:
            films(folder, names)
        case ["tune", name, runs, *seed]:
            tuned(name, int(runs), *map(int, seed))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
