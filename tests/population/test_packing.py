"""Packing by whole numbers gives the numbers that a model of each body has, to the last bit."""

import warnings

import numpy as np
import pytest

import modurob as mr
from modurob.model.options import ModelOptions
from modurob.population import coding, packing
from modurob.population.coding import BodyPlan
from modurob.population.packing import BodyPacker
from modurob.population.tables import link_rows
from modurob.search import BodySpace, Genotype
from modurob.spatial import se3, so3
from oracles.organisms import WRIST

FREE_CUBES = ModelOptions("dyad", "free")
SPRINGY = mr.catalog["backbone"].with_parameters(rotor_inertia=1e-5, stiffness=5.0)
SIDE = {"reference": [1, 0, 0], "connector": "axle", "mates": ["axle"]}
CONNECTOR = {"reference": [0, 0, 1], "connector": "axle", "mates": ["axle"]}
REEL = mr.ModuleType(
    name="reel",
    symbol="R",
    size=0.1,
    title="Two that dock by port 1 have hinges on one line, with nothing between them",
    bodies=[{"name": "drum", "mass": 0.8, "inertia": [1e-3] * 3}, {"name": "axle"}],
    joints=[{"name": "spin", "kind": "revolute", "parent": "drum", "child": "axle",
             "axis": [1, 0, 0]}],
    ports=[
        {"label": 1, "body": "axle", "position": [0.05, 0, 0], "normal": [1, 0, 0], **CONNECTOR},
        {"label": 2, "body": "drum", "position": [-0.05, 0, 0], "normal": [-1, 0, 0], **CONNECTOR},
        {"label": 3, "body": "drum", "position": [0, 0.05, 0], "normal": [0, 1, 0], **CONNECTOR},
    ],
)  # fmt: skip
ELBOW = mr.ModuleType(
    name="elbow",
    symbol="E",
    size=0.1,
    title="Ports 1 and 2 differ by a joint that is held alone",
    bodies=[{"name": name, "mass": 1.0, "inertia": [1e-3] * 3} for name in ("near", "far", "tip")],
    joints=[
        {"name": "held", "kind": "revolute", "parent": "near", "child": "far", "axis": [1, 0, 0],
         "lower": 0.3, "upper": 0.3},
        {"name": "spin", "kind": "revolute", "parent": "far", "child": "tip", "axis": [0, 1, 0]},
    ],
    ports=[
        {"label": 1, "body": "near", "position": [0, 0, 0.05], "normal": [0, 0, 1], **SIDE},
        {"label": 2, "body": "far", "position": [0, 0, 0.05], "normal": [0, 0, 1], **SIDE},
        {"label": 3, "body": "tip", "position": [0, 0, -0.05], "normal": [0, 0, -1], **SIDE},
    ],
)  # fmt: skip
FAMILIES = {
    "cubes": ("backbone", (2, 10), "dyad", 60),
    "two kinds of cubes": (("backbone", "scout"), (2, 8), "dyad", 40),
    "cubes with massless halves": (("backbone", "scout"), (2, 8), "physical", 40),
    "spatial": ("superbot", (1, 4), "physical", 25),
    "slides and links": (("chen_link", "chen_revolute", "chen_prismatic"), (3, 7), "physical", 40),
    "skew axes": ((WRIST, "backbone"), (2, 5), "physical", 25),
    "hinges on one line": (REEL, (2, 6), "physical", 25),
    "ports before and after a held joint": (ELBOW, (2, 3), "physical", 20),
    "springs": ((SPRINGY, "backbone"), (3, 5), "physical", 10),
}


def random_bodies(kinds, sizes, hinges, count, seed=0):
    """Organisms with a joint that moves, at places of their own."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        organism = mr.Organism.random(kinds, int(rng.integers(*sizes)), rng)
        R, p = so3.from_rpy(*rng.normal(size=3)), rng.normal(size=3)
        if organism.model(hinges, "free").joint_names:
            found.append(organism.with_base_pose(se3.pose(R, p)))
    return found


@pytest.mark.parametrize("base", ["free", "fixed"])
@pytest.mark.parametrize("family", FAMILIES)
def test_packed_bodies_have_the_numbers_of_their_models(family, base):
    kinds, sizes, hinges, count = FAMILIES[family]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mr.ModelWarning)  # of massless ends
        bodies = random_bodies(kinds, sizes, hinges, count if base == "free" else count // 4)
        tables = mr.Population(bodies, hinges, base).tables
        models = [body.model(hinges, base) for body in bodies]
    for k, (body, model) in enumerate(zip(bodies, models, strict=True)):
        expected, n = link_rows(body, model), int(tables.count[k])
        row = tables.row[k, :n]
        assert tables.parent[k, :n].tolist() == [-1, *model.parent.tolist()]
        assert np.array_equal(tables.rows[row], expected.rows)
        assert np.array_equal(tables.kind[row], expected.kind)
        assert np.array_equal(tables.side[row], expected.side)
        for number, corner_rows in zip(row, expected.corner_rows, strict=True):
            start = tables.corner_start[number]
            found = tables.corner_rows[start : start + tables.corner_count[number]]
            assert np.array_equal(found, corner_rows)
        pose = model.neutral()[:7] if base == "free" else [0, 0, 0, 0, 0, 0, 1]
        assert np.array_equal(tables.base_pose[k], pose)
        assert joint_names(tables, k, body) == list(model.joint_names)
        assert (tables.parent[k, n:] == -1).all()
        assert tables.module[k, 0] == tables.joint[k, 0] == -1
        assert not tables.row[k, n:].any()


def joint_names(tables, k, body):
    """Names of a body's joints by `module` and `joint`."""
    names, found = [body.base, *(entry.child for entry in body.dockings)], []
    for module, joint in zip(tables.module[k], tables.joint[k], strict=True):
        if joint >= 0:
            found.append(f"{names[module]}.{body.kind(names[module]).joints[joint].name}")
        elif module >= 0:
            found.append(f"{found[-1]}.spring")
    return found


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, -1), (0.6, 0, 0.8)])
def test_joints_that_slide_are_known_whatever_their_direction(axis):
    drive = {"parent": "drum", "child": "axle", "axis": axis}
    table = REEL.model_dump() | {
        "bodies": [{"name": name, "mass": 1.0} for name in ("drum", "axle", "tip")],
        "joints": [{"name": "slide", "kind": "prismatic", **drive},
                   {"name": "turn", "kind": "revolute", **drive, "parent": "axle", "child": "tip"}],
    }  # fmt: skip
    tables = mr.Population([mr.Organism.start(mr.ModuleType(**table))], "physical").tables
    assert tables.slides().tolist() == [[False, True, False]]


def test_a_spring_has_its_module_and_no_joint_of_a_datasheet():
    body = mr.examples.snake(3).with_parameters("m1", rotor_inertia=1e-5, stiffness=5.0)
    tables = mr.Population([body], "physical").tables
    names = ["base", *body.model("physical", "free").joint_names]
    (place,) = (k for k, name in enumerate(names) if name.endswith(".spring"))
    assert names[place].startswith("m1.")
    assert tables.module[0, place] == 1
    assert tables.joint[0, place] == -1


@pytest.fixture(scope="module")
def genotypes():
    rng = np.random.default_rng(5)
    return [Genotype.random(BodySpace(), rng) for _ in range(80)]


def arrays(tables):
    return {name: getattr(tables, name) for name in tables.__dataclass_fields__}


def test_genotypes_and_their_organisms_give_the_same_tables(genotypes):
    one = mr.Population.from_genotypes(genotypes)
    other = mr.Population([genotype.organism() for genotype in genotypes])
    for name, array in arrays(one.tables).items():
        assert np.array_equal(array, getattr(other.tables, name)), name
    assert one.organism(7) == genotypes[7].organism()
    assert one.model(7).joint_names == genotypes[7].model().joint_names


def test_tables_do_not_depend_on_what_was_packed_before(genotypes):
    plans = [genotype.plan() for genotype in genotypes]

    def organism_of(k):
        return genotypes[k].organism()

    def late(k):
        return genotypes[50 + k].organism()

    first, second = BodyPacker(FREE_CUBES), BodyPacker(FREE_CUBES)
    first.packed(plans, organism_of)
    warm, cold = first.packed(plans[50:], late), second.packed(plans[50:], late)
    for name, array in arrays(warm).items():
        assert np.array_equal(array, getattr(cold, name)), name


@pytest.mark.parametrize("hinges", ["dyad", "physical"])
def test_known_links_need_no_organism(genotypes, hinges):
    plans = [genotype.plan() for genotype in genotypes]
    packer, built = BodyPacker(ModelOptions(hinges, "free")), []

    def organism_of(k):
        built.append(k)
        return genotypes[k].organism()

    packer.packed(plans, organism_of)
    assert 0 < len(built) <= len(plans)
    built.clear()
    packer.packed(plans[::-1], organism_of)
    assert built == []


def test_a_packer_that_has_grown_large_is_replaced(genotypes, monkeypatch):
    before = mr.Population.from_genotypes(genotypes[:5]).tables
    monkeypatch.setattr(packing, "MOST_KEPT", 0)
    after = mr.Population.from_genotypes(genotypes[:5]).tables
    for name, array in arrays(before).items():
        assert np.array_equal(array, getattr(after, name)), name
    assert packing._shared_packer(FREE_CUBES).links == 0  # a new one again


def test_equal_datasheets_that_are_made_again_are_not_kept(genotypes, monkeypatch):
    monkeypatch.setattr(coding, "MOST_OBJECTS", 4)
    packer, body = BodyPacker(FREE_CUBES), genotypes[0].organism()
    plans = [BodyPlan.of(body.with_parameters(mass=2.0)) for _ in range(12)]
    tables = packer.packed(plans, lambda k: body.with_parameters(mass=2.0))
    assert len(packer.coder._kind_of) <= 4
    assert (tables.row == tables.row[0]).all()
    np.testing.assert_array_equal(tables.mass, 2.0 * len(body))


def test_hinges_on_one_line_move_alone_if_there_is_mass_between_them():
    """Where there is none, only a model tells which of them moves."""
    options, one = ModelOptions("physical", "free"), mr.Organism.start(REEL, "a")
    apart = one.dock("a", 1, "b", 2).dock("b", 1, "c", 2)
    assert packing.moving_joints(BodyPlan.of(apart), options) == [(0, 0), (1, 0)]
    assert packing.moving_joints(BodyPlan.of(one.dock("a", 1, "b", 1)), options) is None


def test_plans_follow_the_order_of_docking():
    body = mr.Organism.start("backbone").dock("m0", 3, "z", 4).dock("m0", 5, "a", 2)
    plan = BodyPlan.of(body.rebase("z"))
    assert [kind.name for kind in plan.kinds] == ["backbone"] * 3
    assert list(plan.dockings) == [(0, 4, 3, 0), (1, 5, 2, 0)]


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        (lambda one, other: [], "one body or more"),
        (
            lambda one, other: [one, one.organism()],
            "a population takes genotypes, got Organism as body 1",
        ),
        (lambda one, other: [one, other], "body 1 has other hinges than the first one"),
    ],
)
def test_bad_genotypes_are_refused(genotypes, bodies, message):
    assert len(mr.Population.from_genotypes(genotypes[:1])) == 1  # one is enough
    other = Genotype.random(BodySpace("superbot", (2, 3), "physical"), np.random.default_rng(0))
    with pytest.raises(mr.StateError, match=message):
        mr.Population.from_genotypes(bodies(genotypes[0], other))
