"""The Denavit-Hartenberg path against the tree model, Pinocchio and products of transforms."""

import copy
import itertools
import pickle

import numpy as np
import pinocchio as pin
import pytest

from modurob import DockingError, StateError, catalog, examples
from modurob.errors import DatasheetError
from modurob.manipulator import gravity_torque, mass_matrix, ne_mod, table_of
from modurob.modules.dh import characterize
from modurob.modules.record import Record, decode, encode
from oracles import PinocchioTree, complains
from oracles.two_part_modules import base_in, robot, slid, turned

POSES = 1e-12  # products of some forty transforms of meters
FORCES = 1e-10  # bodies of kilograms, velocities and accelerations of one
SAME = 1e-12  # two ways to one table
X, Z = 0, 2
WORDS = ["".join(letters) for letters in itertools.product("abc", repeat=5)]
MODULES, ROBOTS = 5, 100  # 500 random modules; every second robot branches

# giusti2015, Tab. III: in-connector to joint, joint to out-connector
TO_JOINT = {
    "a": slid(Z, 0.1) @ turned(X, -np.pi / 2) @ turned(Z, np.pi),
    "b": slid(Z, 0.1),
    "c": slid(Z, 0.1),
}
TO_OUT = {"a": turned(X, -np.pi / 2) @ slid(Z, 0.1), "b": slid(Z, 0.1), "c": slid(Z, 0.05)}


def arm_tip(word, q):
    T = np.eye(4)
    for letter, qi in zip(word, q, strict=True):
        motion = slid(Z, qi) if letter == "c" else turned(Z, qi)
        T = T @ TO_JOINT[letter] @ motion @ TO_OUT[letter]
    return T


def assert_dynamics_agree(table, model, rng, gravity=(0.0, 0.0, -9.81)):
    """M, gravity and torques of a table against those of the tree model; joints in its order."""
    n = len(table.links)
    order = [table.joint_names.index(name) for name in model.joint_names]
    q, v, a = np.zeros((3, n))
    q[order], v[order], a[order] = rng.standard_normal((3, len(order)))
    found = mass_matrix(q, table)[np.ix_(order, order)]
    np.testing.assert_allclose(found, model.mass_matrix(q[order]), rtol=0, atol=FORCES)
    found = gravity_torque(q, table, gravity=gravity)[order]
    np.testing.assert_allclose(found, model.gravity_torque(q[order]), rtol=0, atol=FORCES)
    found = ne_mod(q, v, a, table, gravity=gravity)[order]
    right = model.inverse_dynamics(q[order], v[order], a[order])
    np.testing.assert_allclose(found, right, rtol=0, atol=FORCES)


def test_all_arms_of_five_modules_equal_the_tree_model():
    parameters = {letter: characterize(catalog[f"giusti_{letter}"]) for letter in "abc"}
    rng = np.random.default_rng(0)
    for word in WORDS:
        organism = examples.arm(word)
        model, table = organism.model(), organism.dh_table()
        assert table.joint_names == model.joint_names
        datasheets = table_of([parameters[letter] for letter in word])
        np.testing.assert_allclose(datasheets.parameters, table.parameters, rtol=0, atol=SAME)
        q = rng.standard_normal(5)
        for either in (table, datasheets):
            np.testing.assert_allclose(either.poses(q)[-1], arm_tip(word, q), rtol=0, atol=POSES)
        end = model.forward_kinematics(q)[model.body_index("m4.distal")]
        end = end @ catalog[f"giusti_{word[-1]}"].port("out").pose
        np.testing.assert_allclose(table.poses(q)[-1], end, rtol=0, atol=POSES)
        assert_dynamics_agree(datasheets, model, rng)


def test_babac_has_the_table_worked_out_by_hand():
    """Straight up at q = 0: joint axes cross at heights 0.2, 0.4 (the elbows at 0.2 and 0.6)."""
    table = examples.arm("babac").dh_table()
    right = -np.pi / 2
    rows = [
        (0, right, 0.2, 0, 0.0, -0.2),
        (0, right, 0.0, np.pi, 0.2, 0.0),
        (0, right, 0.4, 0, 0.0, -0.2),
        (0, right, 0.0, np.pi, 0.2, 0.0),
        (0, 0, 0.25, 0, 0.0, -0.05),
    ]
    np.testing.assert_allclose([row[:6] for row in table.rows], rows, rtol=0, atol=SAME)
    assert [row.kind for row in table.rows] == ["revolute"] * 4 + ["prismatic"]
    assert [row.next for row in table.rows] == [*(f"m{k}.joint" for k in range(1, 5)), "m4.out"]
    assert [row.case for row in table.rows] == ["intersecting"] * 4 + ["overlapping"]
    # distal b and proximal a: 1 kg, centers 0.05 on both sides of their connector
    solid = table.links[0].solid
    np.testing.assert_allclose(solid.mass, 1.0)
    np.testing.assert_allclose(np.linalg.norm(solid.center), 0.1)
    lines = str(table).splitlines()
    assert len(lines) == 6
    assert "0.25 + q" in lines[-1]


def test_the_four_classical_parameters_alone_lead_to_the_tip():
    for seed in range(20):
        table = robot(seed).organism.dh_table()
        q = np.random.default_rng(seed).standard_normal(5)
        T = table.roots["m0.joint"]
        for row, qi in zip(table.rows, q, strict=True):
            slides = row.kind == "prismatic"
            theta, d = row.theta + (0 if slides else qi), row.d + (qi if slides else 0)
            T = T @ turned(Z, theta) @ slid(Z, d) @ slid(X, row.a) @ turned(X, row.alpha)
        last = table.rows[-1]
        T = T @ slid(Z, last.n) @ turned(Z, last.turn)
        np.testing.assert_allclose(T, table.poses(q)[-1], rtol=0, atol=POSES)


def test_random_modules_equal_the_tree_model_and_the_product_of_transforms():
    cases = set()
    for seed in range(ROBOTS):
        random, rng = robot(seed, MODULES, branches=seed % 2 == 1), np.random.default_rng(seed)
        organism, gravity = random.organism, 5 * rng.standard_normal(3)
        model, table = organism.model(gravity=gravity), organism.dh_table()
        cases |= {(row.case, row.kind, row.next.endswith(".joint")) for row in table.rows}
        assert_dynamics_agree(table, model, rng, gravity)
        q = rng.standard_normal(MODULES)
        named = dict(zip(table.joint_names, q, strict=True))
        bodies = model.forward_kinematics([named[name] for name in model.joint_names])
        for row, T in zip(table.rows, table.poses(q), strict=True):
            module, _, end = row.next.partition(".")
            known = random.known[module]
            if end == "joint":
                # only the axis is fixed: x of a joint's frame is the datasheet's own affair
                right = (random.in_connector(module, named) @ known.T_in_joint)[:, 2:]
                np.testing.assert_allclose(T[:, 2:], right, rtol=0, atol=POSES)
            else:
                right = random.port(module, end, named)
                np.testing.assert_allclose(T, right, rtol=0, atol=POSES)
                T_body = bodies[model.body_index(f"{module}.distal")]
                found = T_body @ known.kind.port(end).pose
                np.testing.assert_allclose(T, found, rtol=0, atol=POSES)
    lying = ("skew", "intersecting", "parallel", "overlapping")
    assert cases == set(itertools.product(lying, ("revolute", "prismatic"), (True, False)))


@pytest.mark.parametrize("seed", [1, 3])
def test_frames_at_the_tips_of_a_branching_robot_are_those_of_its_bodies(seed):
    random = robot(seed, MODULES, branches=True)
    model, table = random.organism.model(), random.organism.dh_table()
    q = np.random.default_rng(seed).standard_normal((3, MODULES))
    order = [table.joint_names.index(name) for name in model.joint_names]
    bodies = model.forward_kinematics(q[:, order])
    tips = [k for k, row in enumerate(table.rows) if not row.next.endswith(".joint")]
    assert len(tips) > 1
    for k in tips:
        module, _, port = table.rows[k].next.partition(".")
        T = (
            bodies[:, model.body_index(f"{module}.distal")]
            @ random.known[module].kind.port(port).pose
        )
        np.testing.assert_allclose(table.poses(q)[:, k], T, rtol=0, atol=POSES)
        turn = turned(Z, table.rows[k].turn)
        np.testing.assert_allclose(table.frames(q)[:, k] @ turn, T, rtol=0, atol=POSES)


@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_datasheets_alone_give_the_same_as_the_organism(seed):
    random, rng = robot(seed), np.random.default_rng(seed)
    organism = random.organism
    kinds = [organism.kind(name) for name in organism.modules]
    base = organism.base_pose @ base_in(kinds[0], 0.0, random.known["m0"])
    q, v, a = rng.standard_normal((3, MODULES))
    right = organism.model().inverse_dynamics(q, v, a)
    records = [decode(encode(kind, k)) for k, kind in enumerate(kinds)]
    for modules in (kinds, [characterize(kind) for kind in kinds], records):
        np.testing.assert_allclose(
            ne_mod(q, v, a, modules, base_pose=base), right, rtol=0, atol=FORCES
        )
    tip = table_of(kinds, base).poses(q)[-1]
    np.testing.assert_allclose(tip, organism.dh_table().poses(q)[-1], rtol=0, atol=POSES)


@pytest.mark.parametrize("seed", range(12))
def test_mass_matrix_is_pinocchio_s(seed):
    organism = robot(seed, branches=seed % 2 == 1).organism
    table, tree = organism.dh_table(), PinocchioTree(organism, "physical")
    q = np.random.default_rng(seed).standard_normal(MODULES)
    names = table.joint_names
    full = pin.crba(tree.model, tree.data, tree.configuration(dict(zip(names, q, strict=True))))
    M = np.triu(full) + np.triu(full, 1).T
    order = [tree.model.joints[tree.joints[name]].idx_v for name in names]
    np.testing.assert_allclose(mass_matrix(q, table), M[np.ix_(order, order)], rtol=0, atol=FORCES)


@pytest.mark.parametrize(
    "organism",
    [
        examples.superbot_tree(),
        examples.crab(),
        examples.nine(),
        examples.crane(),
        examples.double_pendulum(),
        examples.superbot_tree(3, 2).rebase("m2"),
    ],
    ids=["superbot", "crab", "nine", "crane", "pendulum", "rebased"],
)
def test_modules_of_any_make_have_a_table(organism):
    """Several joints in a module, welds, virtual joints, joints that the tree model locks."""
    model, table = organism.model(hinges="physical"), organism.dh_table()
    assert set(table.joint_names) == {*model.joint_names, *model.locked}
    assert_dynamics_agree(table, model, np.random.default_rng(1))


def test_links_without_a_joint_lie_between_and_at_the_ends():
    organism = examples.Organism.start("chen_link", "m0")
    organism = organism.dock("m0", 1, "m1", 1, kind="chen_revolute", turn=90)
    organism = organism.dock("m1", 2, "m2", 6, kind="chen_link_large")
    organism = organism.dock("m2", 2, "m3", 1, kind="chen_prismatic")
    organism = organism.dock("m2", 3, "m4", 1, kind="chen_revolute", turn=180)
    organism = organism.dock("m4", 2, "m5", 6, kind="chen_link")
    table = organism.dh_table()
    assert [(row.joint, row.next, row.previous) for row in table.rows] == [
        ("m1.turn", "m3.slide", -1),
        ("m1.turn", "m4.turn", -1),
        ("m3.slide", "m3.2", 0),
        ("m4.turn", "m5.1", 1),
    ]
    assert_dynamics_agree(table, organism.model(hinges="physical"), np.random.default_rng(2))
    pairs = [("chen_link", 6, 1), ("chen_revolute", 1, 2), ("chen_link_large", 6, 2)]
    straight = examples.Organism.start("chen_link", "m0")
    straight = straight.dock("m0", 1, "m1", 1, kind="chen_revolute")
    straight = straight.dock("m1", 2, "m2", 6, kind="chen_link_large")
    chain = [characterize(catalog[name], *ports) for name, *ports in pairs]
    base = catalog["chen_link"].port_pose(6) @ turned(X, np.pi)
    assert_dynamics_agree(
        table_of(chain, base), straight.model(hinges="physical"), np.random.default_rng(3)
    )


def test_a_robot_without_joints_has_an_empty_table():
    table = examples.Organism.start("chen_link").dh_table()
    assert (table.rows, table.links, table.parameters.shape) == ((), (), (0, 4))
    assert ne_mod([], [], [], table).shape == (0,)
    assert mass_matrix([], table).shape == (0, 0)
    nothing = np.zeros((3, 0))
    assert ne_mod(nothing, nothing, nothing, table).shape == (3, 0)
    assert gravity_torque(nothing, table).shape == (3, 0)
    assert mass_matrix(nothing, table).shape == (3, 0, 0)
    assert table.poses([]).shape == (0, 4, 4)
    assert table_of([]).rows == ()


def test_a_gripper_ends_in_the_middle_of_its_joint():
    data = catalog["giusti_c"].model_dump()
    gripper = type(catalog["giusti_c"])(**{**data, "name": "gripper", "ports": data["ports"][:1]})
    organism = examples.arm("ab").dock("m1", "out", "hand", "in", kind=gripper)
    model, table = organism.model(), organism.dh_table()
    assert [row.next for row in table.rows] == ["m1.joint", "hand.joint", "hand.joint:end"]
    assert_dynamics_agree(table, model, np.random.default_rng(4))
    q = np.array([0.3, -1.2, 0.05])
    finger = model.forward_kinematics(q)[model.body_index("hand.distal")]
    np.testing.assert_allclose(table.poses(q)[-1], finger, rtol=0, atol=POSES)


def test_states_of_any_batch_shape():
    table = examples.arm("babac").dh_table()
    q, v, a = np.random.default_rng(0).standard_normal((3, 2, 3, 5))
    tau, M, T = ne_mod(q, v, a, table), mass_matrix(q, table), table.poses(q)
    assert (tau.shape, M.shape, T.shape) == ((2, 3, 5), (2, 3, 5, 5), (2, 3, 5, 4, 4))
    np.testing.assert_allclose(tau[1, 2], ne_mod(q[1, 2], v[1, 2], a[1, 2], table), atol=FORCES)
    np.testing.assert_allclose(M[0, 1], mass_matrix(q[0, 1], table), atol=FORCES)
    np.testing.assert_allclose(T[1, 0], table.poses(q[1, 0]), atol=POSES)


# -- bad input -------------------------------------------------------------------------------------


def test_states_that_do_not_fit_are_refused():
    table = examples.arm("ab").dh_table()
    with complains(StateError, "v must be finite", "(..., 2)", "m0.joint, m1.joint", "(3,)"):
        ne_mod([0, 0], [0, 0, 0], [0, 0], table)
    with complains(StateError, "q must be finite"):
        table.poses([0.0, np.nan])
    with complains(StateError, "a must be finite"):
        ne_mod([0, 0], [0, 0], ["one", 0], table)
    for bad in ((0, 0, np.inf), (0, -9.81), [[0, 0, -9.81]], "down", -9.81):
        with complains(StateError, "gravity must be three finite numbers"):
            gravity_torque([0, 0], table, gravity=bad)
    with complains(StateError, "own base pose"):
        ne_mod([0, 0], [0, 0], [0, 0], table, base_pose=np.eye(4))


def test_modules_that_do_not_fit_are_refused():
    giusti, chen = catalog["giusti_a"], catalog["chen_revolute"]
    with complains(DockingError, "port out of m0 (giusti_a, giusti-out)", "m1", "chen-plug"):
        table_of([giusti, chen])
    with complains(DatasheetError, "got str"):
        table_of(["giusti_a"])  # pyright: ignore[reportArgumentType]
    with complains(DockingError, "m0 (backbone) also moves hinge", "from port 2 to 4"):
        table_of([characterize(catalog["backbone"], 2, 4)])


def test_the_parameters_of_a_record_count_where_it_has_those_of_one_pair():
    """A calibrated module differs from its datasheet; of several pairs none is known to be used."""
    datasheet, calibrated = (characterize(catalog[f"giusti_{letter}"]) for letter in "ba")
    for pairs, used in (((calibrated,), calibrated), ((calibrated,) * 2, datasheet)):
        found = table_of([Record(1, catalog["giusti_b"], pairs)]).parameters
        np.testing.assert_array_equal(found, table_of([used]).parameters)
    assert (table_of([datasheet]).parameters != table_of([calibrated]).parameters).any()


def test_connectors_of_different_size_do_not_dock():
    data = catalog["giusti_b"].model_dump()
    for port in data["ports"]:
        port["connector"] = port["connector"].replace("giusti", "giusti-50mm")
        port["mates"] = [mate.replace("giusti", "giusti-50mm") for mate in port["mates"]]
    small = type(catalog["giusti_b"])(**data)
    with complains(DockingError, "giusti-out", "giusti-50mm-in"):
        table_of([catalog["giusti_a"], small])
    with complains(DockingError, "giusti-out", "giusti-50mm-in"):
        examples.arm("a").dock("m0", "out", "m1", "in", kind=small)


@pytest.mark.parametrize("travel", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
def test_a_table_survives_pickling_and_copying(travel):
    table = examples.arm("bac").dh_table()
    found = travel(table)
    assert type(found) is type(table)
    assert found.rows == table.rows
    np.testing.assert_array_equal(found.frames([0.1, 0.2, 0.3]), table.frames([0.1, 0.2, 0.3]))
    with pytest.raises(TypeError):
        found.roots["m0.joint"] = np.eye(4)
    assert not any(T.flags.writeable for T in found.roots.values())
