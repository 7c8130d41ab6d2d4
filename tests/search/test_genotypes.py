"""Genotypes: random ones and changed ones can always be built, and files hold all of them."""

import json
import pickle
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import modurob as mr
from modurob.model.options import ModelOptions
from modurob.population.packing import moving_joints
from modurob.search import BodySpace, Gene, Genotype, Oscillation, joint_waves, variation
from modurob.search.growth import GrowingBody, _boxes, picked, subtree
from modurob.search.space import _range
from modurob.search.variation import Draws, changed_body, random_body

CUBES = BodySpace("backbone", (2, 7))
MIXED = BodySpace(("backbone", "scout"), (3, 6), "physical", 0.5, 0.2, (1.0, 1.0))
SPATIAL = BodySpace("superbot", (2, 5), "physical")
ARMS = BodySpace(("chen_link", "chen_revolute", "chen_prismatic"), (2, 6), "physical")
ROUNDING = 1e-12  # of sums of offsets and amplitudes
INSIDE = 0.9  # of the width of a shape: points that are inside it for certain


def rng(seed=0):
    return np.random.default_rng(seed)


@given(st.sampled_from([CUBES, MIXED, SPATIAL, ARMS]), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_changed_genotypes_can_be_built(space, seed):
    draw = rng(seed)
    one, other = (Genotype.random(space, draw) for _ in range(2))
    for genotype in (one, one.mutated(draw), one.crossed(other, draw), other.crossed(one, draw)):
        again = Genotype(space, genotype.genes, genotype.frequency)  # checks all
        organism = again.organism()  # checks the rules of docking once more
        assert space.modules[0] <= len(organism) <= space.modules[1]
        assert Genotype.from_document(json.loads(json.dumps(again.document()))) == genotype


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_waves_stay_within_the_limits_of_joints(seed):
    draw = rng(seed)
    genotype = Genotype.random(MIXED, draw)
    for _ in range(4):
        genotype = genotype.mutated(draw)
    model, waves = genotype.model(), genotype.waves()
    low, high = waves.offset[0] - waves.amplitude[0], waves.offset[0] + waves.amplitude[0]
    assert (low >= model.lower - ROUNDING).all()
    assert (high <= model.upper + ROUNDING).all()


def test_the_same_seed_gives_the_same_genotypes():
    def run():
        draw = rng(4)
        one, other = Genotype.random(CUBES, draw), Genotype.random(CUBES, draw)
        return one, one.mutated(draw), one.crossed(other, draw)

    assert run() == run()


def test_mutations_and_crossovers_reach_all_sizes_and_change_bodies():
    draw, changed, sizes = rng(1), 0, set()
    genotype = Genotype.random(CUBES, draw)
    for _ in range(120):
        child = genotype.mutated(draw).crossed(Genotype.random(CUBES, draw), draw)
        changed += child.canonical(gait=False) != genotype.canonical(gait=False)
        sizes.add(len(child.genes))
        genotype = child
    assert sizes == set(range(2, 8))
    assert changed > 90


def test_a_body_that_is_changed_has_a_module_more_or_less_or_as_many():
    space, draws = BodySpace("backbone", (2, 4)), Draws(rng(2))
    genes = random_body(BodySpace("backbone", (3, 3)), draws)
    changed = [changed_body(space, genes, draws) for _ in range(40)]
    assert {len(each) for each in changed} == {2, 3, 4}
    assert any(len(each) == 3 and [*each] != [*genes] for each in changed)  # docked elsewhere
    full = BodySpace("backbone", (3, 3))
    assert {len(changed_body(full, genes, draws)) for _ in range(10)} == {3}
    pair = BodySpace("backbone", (2, 2))
    two = random_body(pair, draws)
    assert any([*changed_body(pair, two, draws)] != [*two] for _ in range(20))


def test_bodies_of_one_module_keep_it_where_nothing_else_is_allowed():
    space = BodySpace("superbot", (1, 3), "physical")
    single = Genotype(space, (BASE._replace(waves=(WAVE,) * 3),), 1.0)
    longer = Genotype.random(replace(space, modules=(3, 3)), rng(1))
    longer = Genotype(space, longer.genes, 1.5)
    assert single.crossed(longer, rng()).genes == single.genes
    assert longer.crossed(single, rng()).genes == longer.genes
    alone = Genotype(replace(space, modules=(1, 1)), single.genes, 1.0)
    sizes = {len(alone.mutated(rng(k)).genes) for k in range(6)}
    assert sizes == {1}
    grown = {len(single.mutated(rng(k)).genes) for k in range(12)}
    assert grown == {1, 2}  # nothing can be taken off or docked elsewhere


def test_mutations_change_every_second_number_and_every_second_body(monkeypatch):
    """By normal steps of 0.15 of the number's range, as far as the range allows."""
    asked, count = [], 1500
    monkeypatch.setattr(
        "modurob.search.genotype.changed_body", lambda space, genes, draws: asked.append(0) or genes
    )
    (most, low, high), draw = CUBES.wave_bounds[0][0], rng(3)
    middle = Oscillation(most / 2, np.pi, (low + high) / 2)
    one = Genotype(CUBES, (BASE._replace(waves=(middle,)), gene(waves=(middle,))), 1.25)
    made = [one.mutated(draw) for _ in range(count)]
    assert len(asked) / count == pytest.approx(0.5, abs=5 * np.sqrt(0.25 / count))
    waves = np.array([each.genes[1].waves[0] for each in made]) - middle
    steps = waves / [most, 2 * np.pi, high - low]
    changed = steps != 0
    assert changed.mean(axis=0) == pytest.approx(0.5, abs=5 * np.sqrt(0.25 / count))
    widths = [column[there].std() for column, there in zip(steps.T, changed.T, strict=True)]
    assert widths == pytest.approx([0.15] * 3, rel=5 / np.sqrt(count))
    frequencies = np.array([each.frequency for each in made])
    assert frequencies.std() == pytest.approx(0.15 * 1.5, rel=5 / np.sqrt(2 * count))
    assert 0.5 <= frequencies.min() < 0.8
    assert 1.7 < frequencies.max() <= 2.0


def test_random_waves_fill_their_ranges():
    (most, low, high), draw = CUBES.wave_bounds[0][0], rng(5)
    made = [Genotype.random(CUBES, draw) for _ in range(100)]
    waves = np.array([gene.waves[0] for one in made for gene in one.genes])
    ends = np.array([[0.0, 0.0, low], [most, 2 * np.pi, high]])
    near = 0.05 * np.ptp(ends, axis=0)  # some hundreds of draws come closer
    for found, end in ((waves.min(axis=0), ends[0]), (waves.max(axis=0), ends[1])):
        assert (np.abs(found - end) < near).all()
    frequencies = [one.frequency for one in made]
    assert 0.5 <= min(frequencies) < 0.6
    assert 1.9 < max(frequencies) <= 2.0
    assert {len(one.genes) for one in made} == set(range(2, 8))


def test_the_base_of_a_random_body_docks_to_nothing():
    draw = rng(7)
    for space in (CUBES, MIXED, SPATIAL):
        one, other = (Genotype.random(space, draw) for _ in range(2))
        for genotype in (one, one.mutated(draw), one.crossed(other, draw)):
            assert genotype.genes[0][1:5] == (-1, 0, 0, 0)


def test_parts_of_equal_size_are_exchanged_where_no_other_size_is_allowed():
    space, draws = BodySpace("backbone", (3, 3)), Draws(rng(0))
    one, other = (random_body(space, draws) for _ in range(2))
    made = [variation.exchanged_part(space, one, other, draws) for _ in range(10)]
    assert {len(genes) for genes in made} == {3}
    assert any([*genes] != [*one] for genes in made)


def test_a_part_docks_by_a_port_that_nothing_else_of_it_is_on(monkeypatch):
    """So the first try is enough where there is room."""
    tried, copy = [], GrowingBody.copy
    monkeypatch.setattr(GrowingBody, "copy", lambda self: tried.append(0) or copy(self))
    part = [BASE, *(gene(0, port, 4) for port in (2, 3, 5)), gene(1, 2, 4)]
    for seed in range(8):
        made = variation._grafted(replace(CUBES, modules=(2, 9)), [BASE], part, Draws(rng(seed)))
        assert made[1].child_port == 4
        assert len(made) == 6
    assert len(tried) == 8


def test_a_crossover_takes_the_frequency_of_either():
    one, other = (Genotype.random(CUBES, rng(k)) for k in range(2))
    draw = rng(0)
    assert {one.crossed(other, draw).frequency for _ in range(20)} == {
        one.frequency, other.frequency
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "limits", "expected"),
    [
        ("revolute", (None, None), (0.0, np.pi / 2)),
        ("prismatic", (None, None), (0.0, 0.05)),
        ("prismatic", (-0.02, 0.04), (0.01, 0.03)),
        ("revolute", (1.0, None), (1.0 + np.pi / 2, np.pi / 2)),
        ("revolute", (-1.0, None), (-1.0 + np.pi / 2, np.pi / 2)),
        ("revolute", (-2.0, None), (np.pi / 4 - 1.0, np.pi / 4 + 1.0)),
    ],
)
def test_ranges_of_joints_without_limits_are_those_of_the_guide(kind, limits, expected):
    name = "chen_revolute" if kind == "revolute" else "chen_prismatic"
    joint = next(each for each in mr.catalog[name].joints if each.kind == kind)
    joint = joint.model_copy(update={"lower": limits[0], "upper": limits[1]})
    assert tuple(_range(joint)) == pytest.approx(expected)
    lower, upper = (None if x is None else -x for x in reversed(limits))
    upside_down = joint.model_copy(update={"lower": lower, "upper": upper})
    assert tuple(_range(upside_down)) == pytest.approx((-expected[0], expected[1]))


def test_joints_that_move_are_those_of_the_packed_body():
    draw = rng(6)
    for space in (CUBES, BodySpace(("backbone", "scout"), (3, 8)), MIXED, SPATIAL):
        for _ in range(10):
            genes = Genotype.random(space, draw).genes
            options = ModelOptions(space.hinges, "free")
            assert space.moving(genes) == moving_joints(space.plan(genes), options)


def test_bodies_with_springs_count_all_of_their_waves():
    """Only a model tells which of their joints can move."""
    elastic = mr.catalog["backbone"].with_parameters(rotor_inertia=1e-5, stiffness=5.0)
    space = BodySpace((elastic, "backbone"), (2, 4))
    genes = (BASE, gene(0, 2, 5), gene(1, kind=1))  # the first two hinges are on one line
    assert space.moving(genes) is None
    one = Genotype(space, genes, 1.0)
    assert one.sketch() == (1.0, 0.1, 0.1, 0.1)
    keys = {one.canonical()}
    for k in range(3):
        waves = (WAVE._replace(amplitude=0.2),)
        changed = [each._replace(waves=waves) if i == k else each for i, each in enumerate(genes)]
        keys.add(Genotype(space, tuple(changed), 1.0).canonical())
    assert len(keys) == 4


@pytest.mark.parametrize("label", [2, 3, 4, 5])
def test_a_base_moves_by_no_docking_of_its_own(label):
    """Of a kind with a port 0, which a gene of a base has in the place of its parent's."""
    data, draw = mr.catalog["backbone"].document(), rng(0)
    for port in data["ports"]:
        port["label"] = 0 if port["label"] == label else port["label"]
    space = BodySpace(mr.ModuleType(**data), (2, 4))
    for _ in range(4):
        genes = Genotype.random(space, draw).genes
        assert space.moving(genes) == moving_joints(space.plan(genes), ModelOptions("dyad", "free"))


def test_massless_modules_at_the_end_of_a_body_do_not_move():
    bare = mr.catalog["backbone"].with_parameters(mass=0.0)
    space, draw = BodySpace((bare, "backbone"), (3, 6)), rng(0)
    for _ in range(12):
        genes = Genotype.random(space, draw).genes
        assert space.moving(genes) == moving_joints(space.plan(genes), ModelOptions("dyad", "free"))


def test_fixed_joints_have_no_waves():
    table = mr.catalog["superbot"].document()
    table["joints"][1] = {
        name: table["joints"][1][name] for name in ("name", "parent", "child")
    } | {"kind": "fixed"}
    space = BodySpace(mr.ModuleType(**table), (2, 3), "physical")
    assert [joint.name for joint in space.joints[0]] == [table["joints"][k]["name"] for k in (0, 2)]
    np.testing.assert_array_equal(space.wave_number, [[0, -1, 1]])
    assert {len(gene.waves) for gene in Genotype.random(space, rng()).genes} == {2}


def test_genotypes_travel_to_other_processes_without_derived_tables():
    genotypes = [Genotype.random(SPATIAL, rng(k)) for k in range(2)]
    sent = [pickle.dumps(genotype) for genotype in genotypes]
    again = [*map(pickle.loads, sent)]
    assert again == genotypes
    assert again[0].space is again[1].space  # tables are derived once
    assert "transforms" in vars(genotypes[0].space)
    assert b"transforms" not in sent[0]


def test_waves_belong_to_the_joints_that_they_are_named_for():
    draw = rng(2)
    for space in (CUBES, MIXED, SPATIAL, ARMS):
        genotypes = [Genotype.random(space, draw) for _ in range(6)]
        population = mr.Population.from_genotypes(genotypes)
        waves = joint_waves(genotypes, population)
        for k, genotype in enumerate(genotypes):
            names = population.model(k).joint_names
            expected = [named_wave(genotype, *name.split(".")) for name in names]
            found = np.stack([waves.amplitude[k], waves.phase[k], waves.offset[k]], axis=-1)
            assert np.array_equal(found[: len(names)], expected)
            assert not found[len(names) :].any()
            assert waves.frequency[k] == genotype.frequency
            alone = genotype.waves()
            assert np.array_equal(alone.amplitude[0], waves.amplitude[k, : len(names)])


def named_wave(genotype, module, joint):
    gene = genotype.genes[int(module.removeprefix("m"))]
    names = [each.name for each in genotype.space.joints[gene.kind]]
    return gene.waves[names.index(joint)]


# -- room ------------------------------------------------------------------------------------------


def test_modules_of_spatial_bodies_do_not_overlap_and_only_those_are_refused():
    """A free docking is refused exactly if points inside two modules coincide."""
    draw, refused, taken = rng(3), 0, 0
    for _ in range(6):
        body = regrown(Genotype.random(BodySpace("superbot", (8, 9), "physical"), draw))
        poses = [np.eye(4)]
        for gene in body.genes[1:]:
            poses.append(poses[gene.parent] @ step(body, gene))
        for a in range(len(poses)):
            for b in range(a):
                assert not meet(poses[a], poses[b]), (a, b)
        ports = list(body.free)
        for parent, port in [ports[k] for k in draw.integers(len(ports), size=12)]:
            kind, child_port, turn = body.space.fits[0, port][int(draw.integers(24))]
            gene = Gene(kind, parent, port, child_port, turn, body.genes[0].waves)
            T = poses[parent] @ step(body, gene)
            others = [pose for k, pose in enumerate(poses) if k != parent]
            free = not any(meet(T, pose) for pose in others)
            assert body.copy().add(gene) == free
            refused, taken = refused + (not free), taken + free
    assert min(refused, taken) >= 5  # both cases were there


def regrown(genotype):
    body = GrowingBody(genotype.space, genotype.genes[0])
    assert all(body.add(gene) for gene in genotype.genes[1:])
    return body


def step(body, gene):
    key = (body.genes[gene.parent].kind, gene.port, gene.kind, gene.child_port, gene.turn)
    return body.space.transforms[key]


def meet(T_a, T_b):
    """Whether points inside the shapes of one SuperBot are inside those of another one."""
    for T, T_other in ((T_a, T_b), (T_b, T_a)):
        points = superbot_points() @ T[:3, :3].T + T[:3, 3] - T_other[:3, 3]
        for R, center, half in superbot_boxes():
            local = (points @ T_other[:3, :3] - center) @ R
            if (np.abs(local) < INSIDE * half).all(axis=1).any():
                return True
    return False


@lru_cache
def superbot_boxes():
    kind = mr.catalog["superbot"]
    poses = [kind.rest_poses[kind.body_index(s.body)] @ s.pose for s in kind.shapes]
    return [
        (T[:3, :3], T[:3, 3], np.array(shape.size) / 2)
        for T, shape in zip(poses, kind.shapes, strict=True)
    ]


@lru_cache
def superbot_points():
    grid = np.stack(np.meshgrid(*[np.linspace(-INSIDE, INSIDE, 6)] * 3), axis=-1).reshape(-1, 3)
    return np.concatenate([(grid * half) @ R.T + c for R, c, half in superbot_boxes()])


# -- files and bad input ---------------------------------------------------------------------------


def test_files_hold_genotypes_with_datasheets_of_their_own(tmp_path):
    heavy = mr.catalog["backbone"].with_parameters(mass=2.0)
    genotype = Genotype.random(BodySpace((heavy, "scout"), (2, 5)), rng())
    genotype.save(tmp_path / "best.json")
    again = Genotype.from_file(tmp_path / "best.json")
    assert mr.load(tmp_path / "best.json") == again
    assert again == genotype
    assert hash(again) == hash(genotype)
    assert again.space.kinds[0].mass == 2.0
    assert again.canonical() == genotype.canonical()


STIFF = mr.catalog["backbone"].with_parameters(limits=(0.0, 0.0))


def test_changes_are_given_up_after_twenty_tries(monkeypatch):
    made, draws = [], Draws(rng())

    class Counted(GrowingBody):
        def __init__(self, *args):
            super().__init__(*args)
            made.append("new")

        def copy(self):
            made.append("copy")
            return super().copy()

    genes = random_body(BodySpace("backbone", (2, 2)), draws)
    monkeypatch.setattr(variation, "GrowingBody", Counted)
    with pytest.raises(mr.DockingError, match=r"no body of 2 modules or more .* in 20 tries"):
        random_body(BodySpace(STIFF, (2, 2)), draws)
    assert made == ["new"] * 20
    made.clear()
    monkeypatch.setattr(GrowingBody, "add", lambda self, gene: False)  # no room anywhere
    space = BodySpace("backbone", (1, 2))
    assert variation._grafted(space, genes[:1], [genes[1]._replace(parent=-1)], draws) is None
    assert made == ["new"] + ["copy"] * 20
    monkeypatch.setattr(variation, "_grafted", lambda *_: made.append("graft"))
    made.clear()
    assert variation.exchanged_part(space, genes, genes, draws) is genes
    assert made == ["graft"] * 20


WAVE = Oscillation(0.1, 0.0, 0.0)
BASE = Gene(0, -1, 0, 0, 0, (WAVE,))


MOST = 0.6 * np.pi / 2  # amplitude of a hinge of a cube


def gene(parent=0, port=3, child_port=4, turn=0, waves=(WAVE,), kind=0):
    return Gene(kind, parent, port, child_port, turn, waves)


@pytest.mark.parametrize(
    ("genes", "frequency", "error", "message"),
    [
        ((), 1.0, mr.DockingError, "starts with its base"),
        ((gene(),), 1.0, mr.DockingError, "starts with its base"),
        ((BASE,), 1.0, mr.DockingError, "1 modules: its space has 2 to 7"),
        ((BASE, gene(1)), 1.0, mr.DockingError, "a parent comes before its children"),
        ((BASE, gene(kind=4)), 1.0, mr.DockingError, "kind 4 and parent 0: kinds are 0 to 0"),
        ((BASE, gene(kind=1)), 1.0, mr.DockingError, "kind 1 and parent 0: kinds are 0 to 0"),
        ((BASE, gene(kind=-1)), 1.0, mr.DockingError, "kind -1 and parent 0: kinds are 0 to 0"),
        ((BASE, gene(-1)), 1.0, mr.DockingError, "kind 0 and parent -1: kinds are 0 to 0"),
        ((BASE, gene(port=9)), 1.0, mr.UnknownNameError, "no port 9 on 'm0'"),
        ((BASE, gene(), gene()), 1.0, mr.DockingError, "already holds 'm1'"),
        ((BASE, gene(turn=90)), 1.0, mr.DockingError, "turn 90 is not allowed"),
        ((BASE, gene(0, 2, 5)), 1.0, mr.DockingError, "no joint of this body can move"),
        (
            (BASE, gene(), gene(1, 2, 4), gene(2, 2, 4), gene(3, 2, 4)),
            1.0,
            mr.DockingError,
            "would take the cell of 'm0'",
        ),
        ((BASE, gene(waves=())), 1.0, mr.StateError, "gene 1 has 0 waves, expected 1"),
        (
            (BASE, gene(waves=(Oscillation(9.0, 0.0, 0.0),))),
            1.0,
            mr.StateError,
            "'hinge' has amplitude 9 and offset 0: its space has amplitudes from 0 to 0.94",
        ),
        *(
            ((BASE, gene(waves=(wave,))), 1.0, mr.StateError, f"has amplitude {wave.amplitude:g}")
            for wave in (Oscillation(1.01 * MOST, 0, 0), Oscillation(-0.01, 0, 0))
        ),
        *(
            ((BASE, gene(waves=(Oscillation(0.1, 0, x),))), 1.0, mr.StateError, f"offset {x:g}")
            for x in (1.01 * MOST / 1.5, -1.01 * MOST / 1.5)
        ),
        ((BASE, gene()), 9.0, mr.StateError, "frequency is 9.0 Hz: its space has 0.5 to 2"),
    ],
)
def test_genotypes_that_cannot_be_built_are_refused(genes, frequency, error, message):
    with pytest.raises(error) as caught:
        Genotype(CUBES, genes, frequency)
    assert message in str(caught.value)


@pytest.mark.parametrize(("share", "taken"), [(0.8e-12, True), (1.2e-12, False)])
@pytest.mark.parametrize("kind", ["superbot", "chen_prismatic"])
def test_waves_may_pass_their_bounds_by_rounding(kind, share, taken):
    """By 1e-12 of half the range of a hinge or a slide."""
    space = BodySpace(kind, (1, 1), "physical")
    ((middle, half), *_), ((most, low, high), *rest) = space.ranges[0], space.wave_bounds[0]
    others = [Oscillation(0.1, 0.0, 0.0)] * len(rest)
    for wave in (
        Oscillation(most + share * half, 0.0, middle),
        Oscillation(0.0, 0.0, high + share * half),
        Oscillation(0.0, 0.0, low - share * half),
    ):
        genes = (BASE._replace(waves=(wave, *others)),)
        if taken:
            assert Genotype(space, genes, 1.0).genes == genes
        else:
            with pytest.raises(mr.StateError, match="gene 0: the wave of joint"):
                Genotype(space, genes, 1.0)


def test_waves_of_genotypes_of_equal_spaces_are_put_together():
    one, other = Genotype.random(CUBES, rng(0)), Genotype.random(replace(CUBES), rng(1))
    assert one.space is not other.space
    waves = joint_waves([one, other], mr.Population.from_genotypes([one, other]))
    np.testing.assert_array_equal(waves.frequency, [one.frequency, other.frequency])


def test_modules_that_overlap_in_space_are_refused():
    waves = (WAVE,) * 3
    loop = [gene(0, 4, 2, 0, waves), gene(1, 4, 2, 0, waves), gene(2, 4, 2, 0, waves)]
    loop.append(gene(3, 4, 2, 0, waves))
    with pytest.raises(mr.DockingError, match="gene 4 at port 4 of gene 3 would overlap another"):
        Genotype(SPATIAL, (BASE._replace(waves=waves), *loop), 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: [], 'not a modurob-genotype file: it has no "format" field'),
        (lambda data: {**data, "format": "modurob-organism"}, "expected 'modurob-genotype'"),
        (lambda data: {**data, "version": 2}, "written by a newer modurob"),
        (lambda data: {**data, "genes": []}, "genes"),
        (lambda data: {**data, "genes": [{**data["genes"][0], "turn": "up"}]}, "turn"),
        (lambda data: {**data, "frequency": None}, "frequency"),
        (lambda data: {**data, "extra": 1}, "extra"),
        (lambda data: {**data, "genes": data["genes"][:1]}, "1 modules: its space has 2 to 7"),
        (
            lambda data: {**data, "space": {**data["space"], "kinds": ["scout"]}},
            "gene 0 has kind 'backbone', which its space lacks: kinds are scout",
        ),
        (lambda data: {**data, "space": {**data["space"], "kinds": ["cube"]}}, "cube"),
        *(
            (
                lambda data, key=key, numbers=numbers: {
                    **data,
                    "space": {**data["space"], key: numbers},
                },
                f"space.{key}",
            )
            for key, two in (("modules", [2, 7]), ("frequency", [0.5, 2.0]))
            for numbers in (two[:1], [*two, two[1]])
        ),
        *(
            (
                lambda data, wave=wave: {
                    **data,
                    "genes": [{**data["genes"][0], "waves": [wave]}, *data["genes"][1:]],
                },
                "genes[0].waves[0]",
            )
            for wave in ([0.1, 0.0], [0.1, 0.0, 0.0, 0.0])
        ),
        (lambda data: {**data, "space": {**data["space"], "offset": 0.7}}, "from 0 to 0.4"),
    ],
)
def test_bad_files_are_refused_in_one_line(change, message):
    data = Genotype.random(CUBES, rng()).document()
    with pytest.raises(mr.FileError) as caught:
        Genotype.from_document(change(data), "best.json")
    text = str(caught.value)
    assert text.startswith("best.json: ")
    assert message in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kinds": ()}, "catalog names or datasheets, got ()"),
        ({"kinds": 3}, "catalog names or datasheets, got 3"),
        ({"modules": "47"}, "modules of a body space is a pair, the least and the most, got '47'"),
        ({"modules": (1, 2, 3)}, "modules of a body space is a pair"),
        ({"kinds": ("backbone", "backbone")}, "'backbone' is there twice"),
        ({"kinds": "chen_link"}, "no port of chen_link mates with another"),
        ({"kinds": "virtual_px"}, "is a virtual joint, which never docks"),
        ({"modules": 4}, "modules of a body space is a pair"),
        ({"modules": (5, 4)}, "the largest number of modules must be a whole number from 5"),
        ({"modules": (0, 4)}, "the smallest number of modules"),
        (
            {"modules": (4, 1001)},
            "the largest number of modules must be a whole number from 4 to 1",
        ),
        ({"frequency": (1.0, -2.0)}, "highest frequency must be a positive number"),
        ({"offset": -0.1}, "offset of a body space"),
        ({"amplitude": -0.1}, "amplitude of a body space"),
        ({"hinges": "soft"}, "hinges must be 'dyad' or 'physical'"),
        ({"amplitude": 1.5}, "amplitude of a body space"),
        (
            {"amplitude": 0.8, "offset": 0.4},
            "of a body space must be a number from 0 to 0.2",
        ),
        ({"frequency": (2.0, 1.0)}, "from low to high"),
        ({"frequency": (0.0, 1.0)}, "lowest frequency must be a positive number"),
    ],
)
def test_bad_spaces_are_refused(settings, message):
    with pytest.raises(mr.StateError) as caught:
        BodySpace(**settings)
    assert message in str(caught.value)


def test_bad_arguments_are_refused():
    one, other = Genotype.random(CUBES, rng()), Genotype.random(SPATIAL, rng())
    with pytest.raises(mr.StateError, match="same body space"):
        one.crossed(other, rng())
    with pytest.raises(mr.StateError, match="needs a BodySpace, got str"):
        Genotype.random("backbone", rng())
    with pytest.raises(mr.StateError, match="a mutation needs rng"):
        one.mutated(3)
    with pytest.raises(mr.StateError, match="2 genotypes for a population of 1 bodies"):
        joint_waves([one, one], mr.Population.from_genotypes([one]))
    two = mr.Population.from_genotypes([one, Genotype.random(CUBES, rng(1))])
    with pytest.raises(mr.StateError, match="genotype 1 is of another body space"):
        joint_waves([one, Genotype.random(MIXED, rng())], two)
    with pytest.raises(mr.StateError, match="0 genotypes for a population of 2 bodies"):
        joint_waves([], two)
    with pytest.raises(mr.DockingError, match=r"no body of 2 modules or more that can move"):
        Genotype.random(BodySpace(STIFF, (2, 3)), rng())


def test_spaces_reach_to_the_ends_of_their_ranges():
    assert BodySpace(modules=(4, 1000)).modules == (4, 1000)
    assert BodySpace(modules=[1, 1]).modules == (1, 1)
    assert BodySpace("chen_link", (1, 1)).fits is not None  # one module needs no port that fits
    still = BodySpace(amplitude=0.0, offset=1.0, frequency=(0.7, 0.7))
    assert (still.amplitude, still.offset, still.frequency) == (0.0, 1.0, (0.7, 0.7))
    assert BodySpace(amplitude=1.0, offset=0.0).amplitude == 1.0


def test_ranges_of_waves_are_shares_of_those_of_joints_about_their_middle():
    limited = mr.catalog["backbone"].with_parameters(limits=(-0.2, 1.0))
    space = BodySpace(limited, amplitude=0.3, offset=0.5)
    ((bounds,),) = space.wave_bounds
    assert bounds == pytest.approx((0.3 * 0.6, 0.4 - 0.5 * 0.6, 0.4 + 0.5 * 0.6))


@pytest.mark.parametrize("space", [CUBES, SPATIAL])
def test_a_module_that_cannot_dock_leaves_a_body_as_it_was(space):
    waves = (WAVE,) * len(space.joints[0])
    ports = {"port": 3, "child_port": 4} if space is CUBES else {"port": 4, "child_port": 1}
    ok = gene(waves=waves, **ports)
    body = GrowingBody(space, BASE._replace(waves=waves))
    assert body.add(ok)
    free, genes = list(body.free), list(body.genes)
    docks = space.kinds[0].docks
    expected = [(0, label) for label in docks if label != ok.port]
    assert free == expected + [(1, label) for label in docks if label != ok.child_port]
    for wrong in (
        ok, ok._replace(parent=2), ok._replace(parent=-1), ok._replace(parent=1, turn=17),
        ok._replace(parent=1, port=ok.child_port),
    ):  # fmt: skip
        assert not body.add(wrong)
        assert (list(body.free), body.genes) == (free, genes)
    again = body.copy()
    assert again.add(ok._replace(parent=1))
    assert (list(body.free), body.genes) == (free, genes)
    assert body.add(ok._replace(parent=1))  # in the same way
    assert list(body.free) == list(again.free)
    assert body._places == again._places
    assert body._cells == again._cells


def test_parts_of_a_body_are_numbered_anew_after_their_parents():
    genes = [BASE, gene(0), gene(0, port=2), gene(1, port=5), gene(3), gene(2)]
    assert subtree(genes, 1) == [1, 3, 4]
    assert subtree(genes, 0) == [0, 1, 2, 3, 4, 5]
    part = picked(genes, [1, 3, 4])
    assert [each.parent for each in part] == [-1, 0, 1]
    assert [each.port for each in part] == [3, 5, 3]
    rest = picked(genes, [0, 2, 5])
    assert [each.parent for each in rest] == [-1, 0, 1]
    assert rest[1][2:] == genes[2][2:]


def test_shapes_may_overlap_by_a_twentieth_of_a_module():
    for name, count in (("superbot", len(superbot_boxes())), ("chen_link", None)):
        kind = mr.catalog[name]
        boxes = _boxes(kind)
        sizes = [np.array(shape.size) for shape in kind.shapes if shape.form == "box"]
        if count:
            expected = [(size - 0.05 * kind.size) / 2 for size in sizes]
            np.testing.assert_allclose(boxes.half, expected)
    data = mr.catalog["backbone"].document()
    data["shapes"] = []
    bare = mr.ModuleType(**data)
    np.testing.assert_allclose(_boxes(bare).half, [[0.475 * bare.size] * 3])
    np.testing.assert_array_equal(_boxes(bare).center, np.zeros((1, 3)))


def test_draws_are_the_numbers_of_their_generator():
    draws, expected = Draws(rng(3)), rng(3).random(128)
    found = [draws.number() for _ in range(128)]
    assert sorted(found[:64]) == sorted(expected[:64])  # drawn in blocks
    assert sorted(found) == sorted(expected)
    counts = np.bincount([draws.below(3) for _ in range(600)])
    assert len(counts) == 3
    assert counts.min() > 150


def test_arguments_that_are_no_generators_or_bodies_are_named():
    one = Genotype.random(CUBES, rng())
    for call, words in (
        (lambda: Genotype.random(CUBES, 3), "a random genotype needs rng"),
        (lambda: one.crossed(one, 3), "a crossover needs rng"),
        (lambda: one.crossed("m0", rng()), "two genotypes of the same body space"),
    ):
        with pytest.raises(mr.StateError, match=words):
            call()
