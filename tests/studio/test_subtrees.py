"""Copies, repeats and mirror images of modules with all beyond them."""

import numpy as np
import pytest

from modurob import DockingError, Organism, examples
from modurob.studio import subtrees

SAME = 1e-9  # of poses of modules [m]


def test_the_crabs_second_leg_is_the_mirror_image_of_its_first():
    crab = examples.crab()
    half = subtrees.without(crab, ["m4"])
    whole, name = subtrees.mirrored(half, "m2")
    assert name == "m4"
    assert whole == crab


def test_a_mirror_image_lies_where_the_reflected_modules_are():
    tree = Organism.start("superbot").dock("m0", 3, "m1", 1, kind="superbot")
    tree = tree.dock("m1", 5, "m2", 3, kind="superbot", turn=90)
    result, name = subtrees.mirrored(tree, "m1")
    normal = tree.kind("m0").port_pose(3)[:3, 2]
    through = np.eye(3) - 2 * np.outer(normal, normal)
    for old, new in (("m1", name), ("m2", "m4")):
        image = through @ tree.rest_pose(old)[:3, 3]
        np.testing.assert_allclose(result.rest_pose(new)[:3, 3], image, atol=SAME)


def test_a_repeat_makes_a_snake_longer_and_a_copy_of_a_leg_docks_elsewhere():
    snake = examples.snake(3)
    for _ in range(2):
        snake, name = subtrees.repeated(snake, snake.modules[-1])
    assert snake == examples.snake(5)
    crab = examples.crab()
    result, name = subtrees.pasted(crab, subtrees.copied(crab, "m2"), "m0")
    assert len(result) == 8
    assert [result.kind(m).name for m in result.subtree(name)] == ["scout", "scout"]
    (leg,) = result.children(name)
    held, copy = crab.docking("m3"), result.docking(leg)
    assert (copy.port, copy.child_port) == (held.port, held.child_port)


def test_several_modules_go_at_once_and_what_cannot_be_is_explained():
    crab = examples.crab()
    assert subtrees.without(crab, ["m3", "m2", "m5"]).modules == ("m0", "m1", "m4")
    for edit in (subtrees.mirrored, subtrees.repeated):
        with pytest.raises(DockingError, match="'m0' is the base"):
            edit(crab, "m0")
    with pytest.raises(DockingError, match="no free port of 'm1' is where the mirror image"):
        subtrees.mirrored(crab, "m2")
