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
    assert subtrees.without(crab, ["m2", "m3"]).modules == ("m0", "m1", "m4", "m5")
    assert subtrees.without(examples.snake(1), ["m0", "m0"]) is None
    for edit in (subtrees.mirrored, subtrees.repeated):
        with pytest.raises(DockingError, match="'m0' is the base"):
            edit(crab, "m0")
    with pytest.raises(DockingError, match="no free port of 'm1' is where the mirror image"):
        subtrees.mirrored(crab, "m2")


def test_a_copy_takes_the_port_it_had_else_any_that_takes_it_and_free_names():
    crab = examples.crab().rename({"m5": "m6"})
    clip = subtrees.copied(crab, "m2")
    assert (clip.organism.modules, clip.port, clip.child_port) == (("m2", "m3"), 2, 5)
    result, name = subtrees.pasted(crab, clip, "m0")
    assert result.modules[-2:] == (name, "m8") == ("m7", "m8")  # six modules; m6 is taken
    assert result.docking(name).port == 2
    alone, name = subtrees.pasted(examples.snake(1), clip, "m0")
    held = alone.docking(name)
    assert (held.parent, held.port, held.child_port) == ("m0", 2, 5)
    result, name = subtrees.pasted(crab, clip, "m0", 5)
    assert result.docking(name).port == 5
    result, name = subtrees.pasted(crab, clip, "m3")  # its side 2 is taken by its parent
    assert result.docking(name).port != 2
    whole = subtrees.copied(crab, "m0")
    assert whole == (crab, None, None)
    with pytest.raises(DockingError):
        subtrees.pasted(crab, clip, "m0", 3)  # m1 is there
    pair = Organism.start("chen_revolute", "m0").dock("m0", 1, "m1", 1, kind="chen_link")
    with pytest.raises(DockingError):
        subtrees.repeated(pair, "m1")


def test_the_mirror_of_a_mirror_is_the_first_one_again():
    crab = examples.crab()
    for keep, gone in (("m2", "m4"), ("m4", "m2")):
        half = subtrees.without(crab, [gone])
        whole, name = subtrees.mirrored(half, keep)
        at = whole.docking(name)
        there = crab.docking(gone)
        assert (at.parent, at.port, at.child_port) == (there.parent, there.port, there.child_port)


def test_a_mirror_image_whose_cell_is_taken_says_so():
    body = examples.snake(1).dock("m0", 2, "m1", 5).dock("m0", 3, "m2", 4)
    body = body.dock("m2", 5, "m3", 2).dock("m3", 4, "m4", 3)  # around, to the other side of m0
    assert (body.place("m1").x, body.place("m4").x) == (1, -1)
    with pytest.raises(DockingError, match="would take the cell"):
        subtrees.mirrored(body, "m1")
