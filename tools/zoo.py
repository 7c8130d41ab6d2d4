"""The zoo of walkers: tune their gaits, compare them with MuJoCo, film them.

    python tools/zoo.py compare [NAME ...]           distances here and in MuJoCo
    python tools/zoo.py films FOLDER [NAME ...]      a film and a picture of each
    python tools/zoo.py tune NAME RUNS [SEED]        write the gait into the package

MuJoCo gets the same shapes, masses, law and start; its contacts are its own. Bodies touch the
ground alone, as here; the last column lets them touch each other, too.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import mujoco
import numpy as np

from modurob import Scenario
from modurob.interop import write_mjcf
from modurob.walking import Walk, started, tune, walking_fields
from modurob.walking.zoo import HINGES, ZOO, gait_path, walker, zoo_walk

TUNED_S = 8.0  # length of the runs that are compared when gaits are tuned
SHOWN = (0.1, 0.4, 0.7, 1.0)  # of a run: moments of its picture


def mujoco_distance(walk: Walk, collide: bool = False) -> float:
    """Horizontal way of the center of mass when MuJoCo moves the body of a walk. [m]

    Args:
        collide: Whether bodies touch each other, too, but those that are joined.
    """
    scenario = walk.scenario
    model = _model(walk, collide)
    data = mujoco.MjData(model)
    law, reference = scenario.law(walk.trajectory.model), scenario.reference(scenario.model())
    assert law is not None and reference is not None and law.sample_time is not None
    skip = law.model.nv - len(law.model.joint_names)
    q, v = walk.trajectory.q[0].copy(), walk.trajectory.v[0].copy()
    data.qpos[:3], data.qpos[3:7], data.qpos[7:] = q[:3], q[[6, 3, 4, 5]], q[7:]
    data.qvel[skip:] = v[skip:]
    mujoco.mj_forward(model, data)
    start = data.subtree_com[0].copy()
    every = round(law.sample_time / model.opt.timestep)
    for k in range(round(scenario.duration / model.opt.timestep)):
        if k % every == 0:
            q[7:], v[skip:] = data.qpos[7:], data.qvel[skip:]  # the law sees the joints alone
            t = k * model.opt.timestep
            data.qfrc_applied[skip:] = law.command(t, q, v, reference(t))[skip:]
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    return float(np.linalg.norm((data.subtree_com[0] - start)[:2]))


def _model(walk: Walk, collide: bool) -> mujoco.MjModel:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "it.xml"
        organism, hinges = walk.scenario.organism, walk.scenario.hinges
        write_mjcf(organism, path, hinges=hinges, base="free", contact=True)
        spec = mujoco.MjSpec.from_file(str(path))
    for geom in spec.geoms:
        geom.contype, geom.conaffinity = 1, int(collide)
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE, size=[50, 50, 1], contype=0, conaffinity=1
    )
    for geom in spec.geoms:
        geom.friction, geom.condim = [walk.ground.friction, 0, 0], 3
    spec.option.timestep = walk.scenario.dt or 1e-3
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    return spec.compile()


def compare(names: list[str]) -> None:
    print(f"{'':<12} {'modurob':>8} {'MuJoCo':>8} {'ratio':>6} {'with self-collision':>20}  [m]")
    for name in names or ZOO:
        walk = zoo_walk(name)
        ours, theirs = walk.metrics.distance, mujoco_distance(walk)
        both = mujoco_distance(walk, collide=True)
        print(f"{name:<12} {ours:8.3f} {theirs:8.3f} {ours / theirs:6.2f} {both:20.3f}", flush=True)


def films(folder: str, names: list[str]) -> None:
    for name in names or ZOO:
        walk = zoo_walk(name)
        run, path = walk.trajectory, Path(folder) / name
        run.animate(path.with_suffix(".gif"), fps=12.5, size=360)
        run.picture(path.with_suffix(".png"), walk.scenario.duration * np.array(SHOWN), size=300)
        print(f"wrote {path}.gif and {path}.png", flush=True)


def tuned(name: str, runs: int, seed: int = 0) -> None:
    it = walker(name)
    fields = walking_fields(it.kind, {}) | {"hinges": HINGES, "duration": TUNED_S}
    scenario = started(Scenario(organism=it.build(), name=name, **fields))
    found = tune(scenario, runs, seed=seed, progress=lambda *state: print(*state, flush=True))
    found.gait.save(gait_path(name))


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
