"""The examples of the gallery."""

import numpy as np
import pytest

from modurob import UnknownNameError, examples
from modurob.scenario import bodies as gallery
from modurob.scenario.gait_files import GaitRecord
from modurob.studio.folder import Folder
from modurob.studio.project import NEW_SETTINGS
from modurob.studio.runs import scenario_of
from modurob.studio.studio import Studio
from modurob.walking.zoo import HINGES, ZOO, gait_file

TOUCHING = 1e-9  # [m]: faces and edges may touch, up to rounding


def gaps(organism, model, q, docked=True):
    """(N,) smallest gap between boxes of two modules, by the separating axes of each pair. [m]

    Args:
        docked: Whether modules that are docked to each other count.
    """
    names = organism.modules
    shapes = [(k, name, s) for k, name in enumerate(names) for s in organism.kind(name).shapes]
    assert all(shape.form == "box" for _, _, shape in shapes)
    owner = np.array([k for k, _, _ in shapes])
    half = np.array([shape.size for _, _, shape in shapes]) / 2
    bodies = [model.body_index(f"{name}.{shape.body}") for _, name, shape in shapes]
    T = model.forward_kinematics(q)[:, bodies] @ np.array([shape.pose for _, _, shape in shapes])
    i, j = np.triu_indices(len(shapes), 1)
    wanted = owner[i] != owner[j]
    if not docked:
        pairs = [{names.index(e.parent), names.index(e.child)} for e in organism.dockings]
        wanted &= [{a, b} not in pairs for a, b in zip(owner[i], owner[j], strict=True)]
    i, j = i[wanted], j[wanted]
    R, p = T[..., :3, :3], T[..., :3, 3]
    A, B = (np.swapaxes(R[:, k], -1, -2) for k in (i, j))  # rows are the edges
    edges = np.cross(A[..., :, None, :], B[..., None, :, :]).reshape(*A.shape[:-2], 9, 3)
    axes = np.concatenate([A, B, edges], axis=-2)
    length = np.linalg.norm(axes, axis=-1)
    axes /= np.where(length > 1e-6, length, 1.0)[..., None]
    apart = np.abs((axes @ (p[:, j] - p[:, i])[..., None])[..., 0])
    apart -= (np.abs(axes @ R[:, i]) @ half[i][..., None])[..., 0]
    apart -= (np.abs(axes @ R[:, j]) @ half[j][..., None])[..., 0]
    return np.where(length > 1e-6, apart, -np.inf).max(axis=-1).min(axis=-1)


def test_the_superbot_tree_does_not_pass_through_itself_at_rest_or_in_its_first_gait():
    """In the gait, modules that are docked are left out: boxes at a bent joint meet at an edge."""
    chosen = gallery.example("superbot_tree")
    organism = chosen.shown_body()
    model = organism.model(chosen.hinges)
    rest = model.neutral()
    assert gaps(organism, model, rest[None])[0] > -TOUCHING
    settings = NEW_SETTINGS.edited(hinges=chosen.hinges)
    reference = scenario_of(organism, settings, {}).reference(model)
    times = np.linspace(0.0, settings.duration, 80)
    q = np.array([reference(t).q for t in times])
    assert gaps(organism, model, q, docked=False).min() > -TOUCHING


def test_a_tree_that_does_pass_through_itself_is_found():
    organism = examples.superbot_tree(3, 3, np.random.default_rng(2))
    model = organism.model("physical")
    assert gaps(organism, model, model.neutral()[None])[0] < -0.03


@pytest.mark.parametrize("name", gallery.EXAMPLES)
def test_every_example_has_joints_in_the_model_it_is_meant_for(name):
    chosen = gallery.example(name)
    assert chosen.shown_body().model(chosen.hinges).nv > 0


def test_an_unknown_example_is_told_with_those_there_are():
    with pytest.raises(UnknownNameError, match=r"no example 'lobster': examples are crab, nine"):
        gallery.example("lobster")


@pytest.mark.parametrize("name", ZOO)
def test_a_walker_is_a_project_with_ground_and_its_tuned_gait(tmp_path, name):
    studio = Studio(Folder(tmp_path))
    session = studio.new_from_walker(name)
    assert session.name == f"{name} walks"
    scenario = session.scenario()
    assert scenario.gait == GaitRecord.load(gait_file(name)).gait
    assert scenario.locked == dict(ZOO[name].fields.get("locked", {}))
    assert (scenario.base, scenario.ground, scenario.hinges) == ("free", True, HINGES)
    with pytest.raises(UnknownNameError, match="walkers are caterpillar"):
        studio.new_from_walker("unicorn")
