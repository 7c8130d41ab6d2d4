"""Ground in scenarios: typed slope and friction, and bodies that start below it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import modurob as mr
from modurob.cli import cli

G = 9.81
SLOPE_DEG, FRICTION = 20.0, 0.1
STEADY_S = 0.3  # after it the block has tipped onto the slope, and slides
ROUNDING = 1e-6  # of an acceleration that is constant
ON_ICE = 5e-3  # [m] where nothing pushes sideways: errors of the steps, which shrink with them
ON_GROUND = {"ground": True, "integrator": "SemiImplicitEuler", "duration": 0.05}


def test_a_typed_slope_and_friction_let_a_block_slide_as_coulomb_says(tmp_path):
    block, run = str(tmp_path / "block.json"), str(tmp_path / "run.npz")
    mr.Organism.start("backbone").save(block)
    line = f"simulate {block} --base free --ground --slope 0,{SLOPE_DEG:g} --friction {FRICTION:g}"
    method = f"--duration 0.5 --integrator SemiImplicitEuler --output {run} --json"
    result = CliRunner().invoke(cli, [*line.split(), *method.split()])
    assert result.exit_code == 0, result.output
    found, slope = mr.Trajectory.load(run), np.deg2rad(SLOPE_DEG)
    slides = found.t >= STEADY_S
    way = np.linalg.norm(found.q[slides, :3] - found.q[slides][0, :3], axis=-1)
    gain = 2 * np.polyfit(found.t[slides], way, 2)[0]
    assert gain == pytest.approx(G * (np.sin(slope) - FRICTION * np.cos(slope)), rel=ROUNDING)
    assert "Placed on the ground: raised by" in json.loads(result.output)["note"]


def test_a_body_that_starts_below_the_ground_is_put_onto_it_and_that_is_said():
    half = mr.catalog["backbone"].shapes[0].size[2] / 2
    free = mr.Scenario(organism="snake", base="free", **ON_GROUND).run()
    assert free.trajectory.q[0, 2] == pytest.approx(half, abs=1e-12)
    assert free.note == f"Placed on the ground: raised by {half:.3g} m."
    held = mr.Scenario(organism="snake", **ON_GROUND).run()
    assert np.asarray(held.ground.height) == pytest.approx(-half, abs=1e-12)
    assert held.note.startswith(f"The ground is {half:.3g} m below the origin")
    above = np.eye(4)
    above[2, 3] = 1.0
    high = mr.Organism.start("backbone").with_base_pose(above)
    falls = mr.Scenario(organism=high, base="free", **ON_GROUND).run()
    assert falls.note == ""
    assert falls.trajectory.q[0, 2] == 1.0


def test_a_gait_carries_the_body_away_and_on_ice_its_center_of_mass_stays():
    fields = {**ON_GROUND, "duration": 1.5, "base": "free", "hinges": "physical", "motion": "wave"}
    law = {"controller": "ComputedTorque", "settling_time": 0.05, "frequency": 1.0, "ramp": 0.5}
    travel = []
    for friction in (0.8, 0.0):
        body = mr.Scenario(organism="snake", **fields, **law, ground_friction=friction)
        run = body.run().trajectory
        ends = run.model.center_of_mass(run.q[[0, -1], :])
        travel.append(np.linalg.norm(ends[1, :2] - ends[0, :2]))
    assert travel[0] > 0.1
    assert travel[1] < ON_ICE


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--ground --slope 95", "below 80 degrees"),
        ("--ground --slope 1,2,3", "one or two angles"),
        ("--ground --slope steep", "got 'steep'"),
        ("--ground --friction -1", "--friction"),
        ("--friction 1", "no effect without ground"),
        ("--ground --equations", "formulas have no ground"),
        ("--gait wave --base free", "give --ground"),
    ],
)
def test_mistakes_about_the_ground_are_one_line(options, words):
    result = CliRunner().invoke(cli, ["simulate", "crab", *options.split()])
    assert result.exit_code == 2
    assert words in result.output
    assert len(result.output.strip().splitlines()) == 1
