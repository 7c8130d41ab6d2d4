"""Docking, undocking, merging, splitting and rebasing, on random organisms of all kinds."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from modurob import DockingError, Organism, StateError, UnknownNameError, examples
from modurob.organism.organism import resolve_kind
from oracles import GROUPS, organisms, random_organism, unchanged
from oracles.complaints import complains
from oracles.organisms import CUBES

ROUNDING = 1e-12  # products of up to sixty poses with entries of size 1 to 10
seeds = st.integers(0, 2**32 - 1)


def possible_dockings(organism, kinds):
    """Every (parent, port, kind, port, turn) that mates; a cell may still be taken."""
    for name in organism:
        for label in organism.free_ports(name):
            here = organism.kind(name).port(label)
            for kind in map(resolve_kind, kinds):
                for there in kind.ports:
                    if here.mates_with(there):
                        for turn in set(here.turns) & set(there.turns):
                            yield name, label, kind, there.label, turn


def docked_somewhere(organism, kinds, name, seed):
    """The organism with one more module at a random place, or None when all cells are taken."""
    choices = list(possible_dockings(organism, kinds))
    for index in np.random.default_rng(seed).permutation(len(choices)):
        parent, port, kind, child_port, turn = choices[index]
        try:
            return organism.dock(parent, port, name, child_port, kind=kind, turn=turn)
        except DockingError:
            continue
    return None


def module_at(organism, data):
    return data.draw(st.sampled_from(organism.modules))


def same_places(one, other, names=None):
    for name in names or one.modules:
        np.testing.assert_allclose(
            one.rest_pose(name), other.rest_pose(name), rtol=0, atol=ROUNDING
        )


def identical(one, other):
    """Equal, and with the same names, rows, columns, ports and cells."""
    assert one == other
    assert one.base == other.base
    assert one.modules == other.modules
    assert [e._replace(column=0) for e in one.dockings] == [
        e._replace(column=0) for e in other.dockings
    ]
    for name in one:
        assert one.free_ports(name) == other.free_ports(name)
        assert one.children(name) == other.children(name)


# -- dock and undock -------------------------------------------------------------------------------


@given(kinds=st.sampled_from(sorted(GROUPS)), size=st.integers(1, 12), seed=seeds)
def test_dock_then_undock_gives_the_same_organism_and_the_docked_module(kinds, size, seed):
    organism = random_organism(kinds, size, seed)
    larger = docked_somewhere(organism, GROUPS[kinds], "new", seed)
    assume(larger is not None)
    rest, loose = larger.undock("new")
    identical(rest, organism)
    same_places(rest, organism)
    assert loose.modules == ("new",)
    assert loose.kind("new") == larger.kind("new")
    np.testing.assert_allclose(loose.base_pose, larger.rest_pose("new"), rtol=0, atol=ROUNDING)


@given(organisms(least=2), st.data())
def test_undocked_parts_keep_their_names_and_places_and_dock_again(organism, data):
    name = data.draw(st.sampled_from(organism.modules[1:]))
    entry = organism.docking(name)
    rest, loose = organism.undock(name)
    assert loose.base == name
    assert set(loose.modules) == set(organism.subtree(name))
    assert sorted([*rest.modules, *loose.modules]) == sorted(organism.modules)
    same_places(rest, organism)
    same_places(loose, organism)
    again = rest.merge(entry.parent, entry.port, loose, name, entry.child_port, turn=entry.turn)
    assert again == organism
    same_places(organism, again)


def test_a_port_is_free_again_after_undocking():
    crab = examples.crab()
    rest, _ = crab.undock("m4")
    assert 5 not in crab.free_ports("m1")
    assert 5 in rest.free_ports("m1")
    assert len(rest) == 4


def test_a_cell_is_free_again_after_undocking():
    square = Organism.start("backbone").dock("m0", 3, "m1", 4).dock("m1", 2, "m2", 5)
    full = square.dock("m2", 4, "m3", 3)
    with pytest.raises(DockingError, match="m3"):
        full.dock("m0", 2, "m4", 5)
    emptied, _ = full.undock("m3")
    assert len(emptied.dock("m0", 2, "m4", 5)) == 4


# -- split and merge -------------------------------------------------------------------------------


@given(organisms(), st.data())
def test_split_pieces_merged_again_give_the_same_organism(organism, data):
    name = module_at(organism, data)
    pieces = {piece.base: piece for piece in organism.split(name)}
    assert sorted(n for piece in pieces.values() for n in piece) == sorted(organism.modules)
    for piece in pieces.values():
        same_places(piece, organism)
    assert len(pieces[name]) == 1
    whole = pieces[organism.base]
    for module in (name, *organism.children(name)):
        entry = organism.docking(module)
        if entry is None:  # the base was split off: it is the whole we begin with
            continue
        whole = whole.merge(
            entry.parent, entry.port, pieces[module], module, entry.child_port, turn=entry.turn
        )
    assert whole == organism
    same_places(organism, whole)


@given(kinds=st.sampled_from(sorted(GROUPS)), sizes=st.tuples(*[st.integers(1, 8)] * 2), seed=seeds)
def test_merging_equals_docking_one_by_one(kinds, sizes, seed):
    one = random_organism(kinds, sizes[0], seed)
    other = random_organism(kinds, sizes[1], seed + 1).rename(prefix="x_")
    rng = np.random.default_rng(seed)
    child = str(rng.choice(other.modules))
    ways = [
        (parent, port, child_port, turn)
        for parent, port, kind, child_port, turn in possible_dockings(one, [other.kind(child)])
        if child_port in other.free_ports(child)
    ]
    assume(ways)
    parent, port, child_port, turn = ways[rng.integers(len(ways))]
    try:
        merged = one.merge(parent, port, other, child, child_port, turn=turn)
    except DockingError as error:
        assume("would take the cell" not in str(error))
        raise
    grown = one.dock(parent, port, child, child_port, kind=other.kind(child), turn=turn)
    for entry in other.rebase(child).dockings:
        grown = grown.dock(
            entry.parent,
            entry.port,
            entry.child,
            entry.child_port,
            kind=other.kind(entry.child),
            turn=entry.turn,
        )
    identical(merged, grown)
    same_places(merged, grown)


# -- rebase ----------------------------------------------------------------------------------------


@given(organisms(), st.data())
def test_rebase_leaves_every_module_where_it_stood(organism, data):
    name = module_at(organism, data)
    rebased = organism.rebase(name)
    assert rebased.base == rebased.modules[0] == name
    assert set(rebased.modules) == set(organism.modules)
    same_places(organism, rebased)


@given(organisms(), st.data())
def test_rebase_and_back_gives_the_same_organism(organism, data):
    name = module_at(organism, data)
    back = organism.rebase(name).rebase(organism.base)
    identical(back, organism)
    assert back.aim() == organism.aim()
    np.testing.assert_allclose(back.base_pose, organism.base_pose, rtol=0, atol=ROUNDING)


@given(organisms(most=12), st.data(), seeds)
def test_rebase_leaves_relative_poses_at_the_same_joint_angles(organism, data, seed):
    name = module_at(organism, data)
    model = organism.model(hinges="physical", base="fixed")
    other = organism.rebase(name).model(hinges="physical", base="fixed")
    # of two joints on one line with no mass between them, the one nearer to the base moves
    assert model.nv == other.nv
    angles = dict.fromkeys([*model.joint_names, *model.locked], 0.0)
    drawn = model.random_configuration(np.random.default_rng(seed))
    for joint, angle in zip(model.joint_names, drawn.tolist(), strict=True):
        angles[joint] = angle if joint in other.joint_names else 0.0
    q, q_other = ([angles[joint] for joint in m.joint_names] for m in (model, other))
    T, T_other = model.forward_kinematics(q), other.forward_kinematics(q_other)
    for a, b in itertools.product(organism.modules, repeat=2):
        relative = np.linalg.inv(T[model.modules[a]]) @ T[model.modules[b]]
        expected = np.linalg.inv(T_other[other.modules[a]]) @ T_other[other.modules[b]]
        np.testing.assert_allclose(relative, expected, rtol=0, atol=ROUNDING)


# -- names and order -------------------------------------------------------------------------------


@given(organisms(), st.randoms(use_true_random=False))
def test_relabelling_changes_names_and_nothing_else(organism, random):
    shuffled = list(organism.modules)
    random.shuffle(shuffled)
    names = dict(zip(organism.modules, shuffled, strict=True))
    renamed = organism.rename(names, prefix="r_")
    assert renamed.canonical() == organism.canonical()
    assert renamed == organism
    assert hash(renamed) == hash(organism)
    assert renamed.modules == tuple(f"r_{names[name]}" for name in organism.modules)
    assert renamed.aim() == organism.aim()
    for old in organism.modules:
        found, expected = renamed.rest_pose(f"r_{names[old]}"), organism.rest_pose(old)
        np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING)
    model, other = organism.model("physical"), renamed.model("physical")
    q = model.random_configuration(np.random.default_rng(0))
    found, expected = other.forward_kinematics(q), model.forward_kinematics(q)
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING)


@given(organisms(least=2), st.randoms(use_true_random=False))
def test_docking_order_does_not_matter_for_equality(organism, random):
    waiting, grown = list(organism.dockings), Organism.start(organism.kind(organism.base))
    while waiting:
        ready = [entry for entry in waiting if entry.parent in grown]
        entry = random.choice(ready)
        waiting.remove(entry)
        grown = grown.dock(
            entry.parent,
            entry.port,
            entry.child,
            entry.child_port,
            kind=organism.kind(entry.child),
            turn=entry.turn,
        )
    assert grown == organism
    assert hash(grown) == hash(organism)


def test_organisms_that_differ_are_not_equal():
    snake = examples.snake(3)
    others = [
        examples.snake(4),
        examples.snake(3, "scout"),
        snake.undock("m2")[0].dock("m1", 3, "m2", 3),
        snake.undock("m2")[0].dock("m1", 2, "m2", 4),
        snake.with_parameters("m1", mass=2.0),
        snake.rebase("m1"),
    ]
    for one, other in itertools.combinations([snake, *others], 2):
        assert one != other
    assert snake != "snake"


def test_turns_count_for_equality():
    base = Organism.start("superbot")
    assert base.dock("m0", 4, "m1", 1) != base.dock("m0", 4, "m1", 1, turn=90)


# -- values ----------------------------------------------------------------------------------------


@given(organisms(least=2), st.data(), seeds)
def test_an_organism_never_changes(organism, data, seed):
    name = data.draw(st.sampled_from(organism.modules[1:]))
    with unchanged(organism):
        docked_somewhere(organism, [organism.kind(name)], "new", seed)
        organism.undock(name)
        organism.split(name)
        organism.rebase(name)
        organism.rename(prefix="x")
        organism.with_parameters(name, mass=3.0)
        organism.with_base_pose(np.eye(4))
        organism.model("dyad")
        organism.model("physical", "free")


def test_an_organism_and_its_arrays_cannot_be_written_to():
    crab = examples.crab()
    with pytest.raises(AttributeError):
        crab.base = "m1"  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        crab.base_pose[0, 3] = 1.0
    placed = Organism.start("scout", pose=np.eye(4))
    others = crab.undock("m4")[1], crab.rebase("m3"), crab.with_base_pose(np.eye(4)), placed
    for changed in others:
        with pytest.raises(ValueError, match="read-only"):
            changed.base_pose[0, 3] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        crab.aim().matrix[0, 0] = 5
    with pytest.raises(ValueError, match="read-only"):
        crab.dyad(crab.dockings[0]).transform[0, 0] = 5


def test_base_pose_is_a_copy_of_what_was_given():
    pose = np.eye(4)
    organism = Organism.start("scout", pose=pose)
    pose[0, 3] = 1.0
    assert organism.base_pose[0, 3] == 0.0


def test_a_base_pose_is_a_rotation_up_to_typing():
    pose = np.eye(4)
    pose[0, 0] = 1 + 3e-10
    assert Organism.start("scout", pose=pose).base_pose[0, 0] == 1 + 3e-10
    pose[0, 0] = 1 + 3e-9
    with complains(StateError, "not orthonormal"):
        Organism.start("scout", pose=pose)


# -- parameters ------------------------------------------------------------------------------------


@given(organisms(), st.floats(0.01, 100.0))
def test_with_parameters_sets_the_mass_of_every_module(organism, mass):
    heavier = organism.with_parameters(mass=mass)
    model = heavier.model("physical")
    assert model.mass.sum() == pytest.approx(mass * len(organism), rel=1e-12)
    same_places(organism, heavier)


@pytest.mark.parametrize("kinds", ["backbone", "scout", "superbot"])
def test_scaling_all_masses_scales_inertias_and_keeps_the_center_of_mass(kinds):
    organism = random_organism(kinds, 8, seed=1)
    factor = 2.5
    mass = factor * organism.kind("m0").mass
    model, heavy = (o.model("physical") for o in (organism, organism.with_parameters(mass=mass)))
    q = model.random_configuration(np.random.default_rng(0))
    np.testing.assert_allclose(heavy.mass, factor * model.mass, rtol=ROUNDING)
    np.testing.assert_allclose(heavy.inertia, factor * model.inertia, atol=ROUNDING)
    np.testing.assert_allclose(heavy.center_of_mass(q), model.center_of_mass(q), atol=ROUNDING)


@pytest.mark.parametrize("kinds", CUBES)
def test_scaling_all_sizes_scales_positions_and_keeps_rotations(kinds):
    organism = random_organism(kinds, 8, seed=2).with_base_pose(np.eye(4))
    wide = organism.with_parameters(size=0.3)
    for name in organism:
        T, wide_T = organism.rest_pose(name), wide.rest_pose(name)
        np.testing.assert_allclose(wide_T[:3, 3], 3 * T[:3, 3], rtol=0, atol=ROUNDING)
        np.testing.assert_array_equal(wide_T[:3, :3], T[:3, :3])


def test_only_the_named_modules_change_their_parameters():
    organism = examples.snake(4).with_parameters("m1", "m3", mass=5.0)
    assert [organism.kind(name).mass for name in organism] == [1.0, 5.0, 1.0, 5.0]


def test_other_datasheets_keep_the_dockings_and_have_to_have_the_ports():
    organism = Organism.start("backbone").dock("m0", 3, "m1", 4, kind="backbone")
    mixed = organism.with_kinds({"m1": "scout"})
    assert [mixed.kind(name).name for name in mixed.modules] == ["backbone", "scout"]
    assert mixed.dockings == organism.dockings
    with complains(UnknownNameError, "no port 4", "m1", "giusti_a"):
        organism.with_kinds({"m1": "giusti_a"})
    with complains(UnknownNameError, "no module 'm7'"):
        organism.with_kinds({"m7": "scout"})
