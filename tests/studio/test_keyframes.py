"""Motion by hand: poses are kept at times, shown, removed, and a run goes through them."""

import numpy as np
import pytest

from modurob import StateError, examples
from modurob.studio import keyframes
from modurob.studio.folder import Folder
from modurob.studio.keyframes import KeyFrame
from modurob.studio.project import History, Project, SavedBody
from modurob.studio.session import Session

RADIUS_M = 0.05  # of a circle that is drawn
OFF_PATH_M = 2e-3  # between two of the places at which joints are computed: a spline of the joints


@pytest.fixture
def session(tmp_path):
    made = Session(Folder(tmp_path), "arm", Project(History(SavedBody(examples.snake(3)))))
    yield made
    made.saver.flush()


def test_a_run_goes_through_the_poses_that_were_kept(session):
    first, *_, last = session.model().joint_names
    wanted = [(0.0, 0.0, 0.2), (0.2, 0.3, 0.0), (0.4, -0.1, 0.1)]
    for time, one, other in (wanted[2], wanted[0], wanted[1]):  # in any order
        session.set_pose(**{first: one, last: other})
        session.keep_keyframe(time)
    assert session.settings.motion == "spline"
    assert session.settings.points["time"] == (0.0, 0.2, 0.4)
    session.show_keyframe(0.0)
    session.edit_settings(duration=0.4, controller="ComputedTorque")
    run = session.scenario().run().trajectory
    columns = [run.model.joint_names.index(joint) for joint in (first, last)]
    for time, *places in wanted:
        q = run.at([time])[0][0]
        assert np.allclose(q[columns], places, atol=2e-3)


def test_keyframes_are_replaced_removed_and_checked(session):
    joint = session.model().joint_names[0]
    session.edit_settings(motion="recorded", duration=1.0)
    session.keep_keyframe(0.0)
    session.keep_keyframe(3.0)
    assert (session.settings.motion, session.settings.duration) == ("recorded", 3.0)
    session.set_pose(**{joint: 0.4})
    session.keep_keyframe(3.0)
    assert session.settings.points[joint] == (0.0, 0.4)
    session.set_pose(**{joint: 0.1})
    session.show_keyframe(3.0)
    assert session.project.pose[joint] == 0.4
    session.remove_keyframe(0.0)
    assert session.settings.points["time"] == (3.0,)
    session.remove_keyframe(3.0)
    assert session.settings.points == {}
    for time, message in ((None, "needs a time"), (-1.0, "must be 0 or more, got -1")):
        with pytest.raises(StateError, match=message):
            session.keep_keyframe(time)


def test_a_joint_that_a_keyframe_does_not_name_is_at_zero_there():
    points = keyframes.with_frame({}, KeyFrame(1.0, {"a": 0.5}))
    points = keyframes.with_frame(points, KeyFrame(0.0, {"a": 0.1, "b": 0.2}))
    assert points == {"time": (0.0, 1.0), "a": (0.1, 0.5), "b": (0.2, 0.0)}
    assert keyframes.frames(points)[1] == KeyFrame(1.0, {"a": 0.5, "b": 0.0})


def test_a_body_follows_the_path_that_was_drawn_for_it(tmp_path):
    session = Session(Folder(tmp_path), "arm", Project(History(SavedBody(examples.arm("bababab")))))
    session.edit_settings(hinges="physical", motion="wave", duration=2.0)
    session.set_pose(**dict.fromkeys(session.model().joint_names, 0.5))
    model, tip = session.model(), "m6.distal"
    start = model.forward_kinematics(session.configuration(model))[model.body_index(tip), :3, 3]
    angle = np.linspace(0.0, 2 * np.pi, 200)[:, None]
    path = start + RADIUS_M * np.hstack([np.cos(angle) - 1, np.sin(angle), 0 * angle])
    assert session.draw_path(tip, [0.0, 0.0, 0.0], path.tolist()) < 1e-9
    assert session.settings.motion == "spline"
    kept = session.settings.points["time"]
    np.testing.assert_allclose(kept, np.arange(16) * 2.0 / 15, atol=1e-6)  # in microseconds
    assert all(round(time, 6) == time for time in kept)

    times = np.linspace(0.0, 2.0, 101)
    reference = session.scenario().reference(model)
    T_wb = model.forward_kinematics(np.array([reference(t).q for t in times]))
    way = T_wb[:, model.body_index(tip), :3, 3]
    off = np.linalg.norm(way[:, None] - path, axis=-1)
    assert off.min(axis=1).max() < OFF_PATH_M  # nowhere else
    assert off.min(axis=0).max() < OFF_PATH_M + RADIUS_M * np.pi / 50  # and nothing is left out
    with pytest.raises(StateError, match="too short"):
        session.draw_path(tip, [0.0, 0.0, 0.0], [start.tolist()] * 3)
    session.saver.flush()


def test_a_drawn_path_is_followed_slowly_at_both_ends():
    share = (1 - np.cos(np.pi * np.arange(16) / 15)) / 2
    found = keyframes.along([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.3, 1.0], [0.4, 0.3, 1.0]])
    assert found.shape == (16, 3)
    way = 0.7 * share
    np.testing.assert_allclose(found[:, 0], np.maximum(way - 0.3, 0.0), atol=1e-12)
    np.testing.assert_allclose(found[:, 1], np.minimum(way, 0.3), atol=1e-12)
    np.testing.assert_allclose(found[:, 2], 1.0)
    assert len(keyframes.along([[0, 0, 0], [0, 0, 2e-3]])) == 16
    for path in ([], [[0, 0, 0]], [[0, 0, 0], [0, 0, 1e-3]], [[0, 0, 0], [0, 0, float("nan")]]):
        with pytest.raises(StateError, match="the path is too short"):
            keyframes.along(path)


def test_keyframes_at_nearly_the_same_time_are_one():
    first = keyframes.rows([KeyFrame(1.0, {"a": 0.1}), KeyFrame(2.0, {"a": 0.2})])
    near = keyframes.with_frame(first, KeyFrame(1.0 + 5e-7, {"a": 0.3}))
    assert near["a"] == (0.3, 0.2)
    assert keyframes.with_frame(first, KeyFrame(1.001, {"a": 0.3}))["a"] == (0.1, 0.3, 0.2)
    assert keyframes.without(first, 1.0 - 5e-7) == {"time": (2.0,), "a": (0.2,)}
    assert keyframes.without(first, 1.01) == first
    zero = keyframes.rows([KeyFrame(0.0, {"a": 0.1})])
    assert keyframes.with_frame(zero, KeyFrame(1e-6, {"a": 0.3})) == {"time": (1e-6,), "a": (0.3,)}
    assert keyframes.without(zero, 1e-6) == {}
    assert keyframes.frames({}) == []
    with pytest.raises(StateError, match="must be 0 or more, got inf"):
        keyframes.with_frame(first, KeyFrame(float("inf"), {}))


@pytest.mark.parametrize(
    ("count", "most", "rows"),
    [(5, 12, [0, 1, 2, 3, 4]), (9, 3, [0, 4, 8]), (10, 4, [0, 3, 6, 9]), (1, 3, [0])],
)
def test_keyframes_that_are_drawn_are_spread_evenly(count, most, rows):
    assert keyframes.spread(count, most).tolist() == rows
