"""CoBRA's module sets and assemblies, against a tree that is built from the JSON alone.

`CobraTree` follows CoBRA's own rules (a connector's z points outward, two mate by a half turn about
x, a joint acts about or along z between poseParent and poseChild) and knows nothing of modurob.
"""

import json
import re

import numpy as np
import pinocchio as pin
import pytest

from modurob import ModuleType, Organism, catalog, examples
from modurob.interop import (
    read_cobra_assembly,
    read_cobra_modules,
    write_cobra_assembly,
    write_cobra_modules,
)
from modurob.interop.cobra import _same
from oracles import GROUPS, WRIST, random_organism

RELATIVE = 1e-10  # of the largest entry of M
ROUNDING = 1e-12
RNG = np.random.default_rng
HALF_TURN = np.diag([1.0, -1.0, -1.0, 1.0])
VIRTUAL = [name for name in catalog if catalog[name].virtual]
PORTS = [port.model_dump() for port in WRIST.ports]
PORTS[0] |= {"connector": "claw", "mates": ["symbrion", "claw"]}
PORTS[1] |= {"mates": ["symbrion", "claw"]}
PICKY = ModuleType(**{**WRIST.model_dump(), "name": "picky", "ports": PORTS})


class CobraTree:
    """An assembly in Pinocchio: joints are called (module, joint), connectors (module, ID)."""

    def __init__(self, modules, assembly):
        self.modules = {module["header"]["ID"]: module for module in modules["modules"]}
        self.order = [self.modules[id] for id in assembly["moduleOrder"]]
        self.beside = {}
        for i, a, j, b in assembly["moduleConnection"]:
            self.beside[i, a], self.beside[j, b] = (j, b), (i, a)
        self.peer, self.frames, self.numbers = pin.Model(), {}, {}
        (module, connector, _), pose = assembly["baseConnection"][0], assembly["basePose"][0]
        body = self.holder(module, connector)
        T = np.array(pose) @ HALF_TURN @ np.linalg.inv(self.pose(module, connector))
        self.seen = {(module, body["ID"])}
        self.add(module, body, 0, T)
        self.data = self.peer.createData()

    def holder(self, module, connector):
        bodies = self.order[module]["bodies"]
        return next(b for b in bodies if connector in [c["ID"] for c in b["connectors"]])

    def pose(self, module, connector):
        body = self.holder(module, connector)
        return np.array(next(c for c in body["connectors"] if c["ID"] == connector)["pose"])

    def add(self, module, body, joint, T):
        if body["mass"]:
            inertia = pin.Inertia(body["mass"], np.array(body["r_com"]), np.array(body["inertia"]))
            self.peer.appendBodyToJoint(joint, inertia, pin.SE3(T))
        for connector in body["connectors"]:
            here, T_c = (module, connector["ID"]), T @ np.array(connector["pose"])
            self.frames[here] = joint, T_c
            if here in self.beside:
                there, id = self.beside[here]
                other = self.holder(there, id)
                if (there, other["ID"]) not in self.seen:
                    self.seen.add((there, other["ID"]))
                    T_o = T_c @ HALF_TURN @ np.linalg.inv(self.pose(there, id))
                    self.add(there, other, joint, T_o)
        for crossed in self.order[module]["joints"]:
            self.cross(module, body, crossed, joint, T)

    def cross(self, module, body, crossed, joint, T):
        ends = {crossed["parent"]: crossed["child"], crossed["child"]: crossed["parent"]}
        there = ends.get(body["ID"])
        if there is None or (module, there) in self.seen:
            return
        self.seen.add((module, there))
        other = next(b for b in self.order[module]["bodies"] if b["ID"] == there)
        before, after = np.array(crossed["poseParent"]), np.array(crossed["poseChild"])
        axis = np.array([0.0, 0.0, 1.0])
        if crossed["child"] == body["ID"]:
            before, after, axis = np.linalg.inv(after), np.linalg.inv(before), -axis
        if crossed["type"] == "fixed":
            self.add(module, other, joint, T @ before @ after)
            return
        slides = crossed["type"] == "prismatic"
        kind = pin.JointModelPrismaticUnaligned if slides else pin.JointModelRevoluteUnaligned
        number = self.peer.addJoint(joint, kind(axis), pin.SE3(T @ before), str(len(self.numbers)))
        self.numbers[module, crossed["ID"]] = number
        self.add(module, other, number, after)

    def q(self, joints):
        q = pin.neutral(self.peer)
        for name, value in joints.items():
            q[self.peer.joints[self.numbers[name]].idx_q] = value
        return q

    def mass_matrix(self, joints):
        M = pin.crba(self.peer, self.data, self.q(joints))
        M = np.triu(M) + np.triu(M, 1).T
        rows = [self.peer.joints[self.numbers[name]].idx_v for name in joints]
        return M[np.ix_(rows, rows)]

    def gravity(self, joints):
        rows = [self.peer.joints[self.numbers[name]].idx_v for name in joints]
        return pin.computeGeneralizedGravity(self.peer, self.data, self.q(joints))[rows]

    def poses(self, joints):
        """(4, 4) of every connector in the world."""
        pin.forwardKinematics(self.peer, self.data, self.q(joints))
        return {n: self.data.oMi[j].homogeneous @ T for n, (j, T) in self.frames.items()}


def assert_same_robot(organism, tree, names=str, order=None):
    """Masses, gravity and all ports.

    Args:
        names: From our names of joints and ports to CoBRA's.
        order: The modules in CoBRA's order; ours by default.
    """
    model, rng = organism.model("physical"), np.random.default_rng(0)
    row = {name: index for index, name in enumerate(order or organism.modules)}
    q = model.random_configuration(rng)
    keys = [(row[m], names(j)) for m, _, j in (n.partition(".") for n in model.joint_names)]
    joints = dict(zip(keys, q.tolist(), strict=True))
    M = tree.mass_matrix(joints)
    np.testing.assert_allclose(model.mass_matrix(q), M, rtol=0, atol=RELATIVE * M.max(initial=1e-9))
    weight = RELATIVE * 9.81 * model.mass.sum()
    np.testing.assert_allclose(model.gravity_torque(q), tree.gravity(joints), rtol=0, atol=weight)
    theirs, ours = tree.poses(joints), model.forward_kinematics(q)
    for module in organism:
        for port in organism.kind(module).ports:
            T = ours[model.body_index(f"{module}.{port.body}")] @ port.pose
            expected = theirs[row[module], names(port.label)]
            np.testing.assert_allclose(T, expected, rtol=0, atol=ROUNDING)


def organisms():
    """Of every kind, on virtual joints, and with ports that mate in several ways."""
    for seed, mix in enumerate(GROUPS):
        yield random_organism(mix, 4 + seed % 4, seed)
    for seed, kind in enumerate(VIRTUAL):
        cubes = random_organism("backbone and scout", 3, seed).rename(prefix="c")
        yield Organism.start(kind).merge("m0", 7, cubes, "cm0", 7)
    yield Organism.start(PICKY).dock("m0", 2, "m1", 2, turn=90).dock("m1", 3, "m2", 2, turn=180)


@pytest.fixture
def written(tmp_path):
    """Write an organism; the two files as JSON, and their paths."""

    def write(organism):
        paths = tmp_path / "modules.json", tmp_path / "assembly.json"
        write_cobra_modules(organism, paths[0])
        write_cobra_assembly(organism, paths[1])
        return *(json.loads(path.read_text("utf-8")) for path in paths), *paths

    return write


# -- what we write ---------------------------------------------------------------------------------


def test_written_sets_and_assemblies_are_the_same_robot_by_cobras_rules(written):
    for organism in organisms():
        modules, assembly, *_ = written(organism)
        assert_same_robot(organism, CobraTree(modules, assembly))


def test_written_assemblies_are_read_back_equal(written):
    for organism in organisms():
        _, _, set_path, path = written(organism)
        back = read_cobra_assembly(path, set_path)
        assert back == organism
        np.testing.assert_array_equal(back.base_pose, organism.base_pose)
        np.testing.assert_array_equal(back.aim().matrix, organism.aim().matrix)
        assert [entry.column for entry in back.dockings] == [*range(1, len(back))]


def test_every_kind_is_read_back_identically(tmp_path):
    heavy = catalog["scout"].with_parameters(mass=2.0)  # shares its name with another kind
    kinds = [*catalog.values(), WRIST, heavy]
    write_cobra_modules(kinds, tmp_path / "modules.json")
    back = read_cobra_modules(tmp_path / "modules.json")
    assert list(back.values()) == kinds
    assert list(back)[-3:] == ["virtual_rz", "wrist", "scout-2"]
    write_cobra_modules(back, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "modules.json").read_text()


def test_fields_are_those_that_cobra_knows(written):
    """Timor refuses unknown fields of modules, headers and bodies."""
    modules, assembly, *_ = written(examples.arm("babac"))
    assert set(modules) == {"modules"}
    assert set(assembly) == {
        "moduleSet", "moduleOrder", "moduleConnection", "baseConnection", "basePose",
    }  # fmt: skip
    assert assembly["moduleOrder"] == ["giusti_b", "giusti_a", "giusti_b", "giusti_a", "giusti_c"]
    for module in modules["modules"]:
        assert set(module) == {"header", "bodies", "joints"}
        assert set(module["header"]) <= {
            "ID", "name", "date", "author", "email", "affiliation", "cost",
        }  # fmt: skip
        for body in module["bodies"]:
            assert {"ID", "mass", "inertia", "r_com", "connectors"} <= set(body)
            assert set(body) <= {
                "ID", "mass", "inertia", "r_com", "connectors", "visual", "collision",
            }  # fmt: skip
        (joint,) = module["joints"]
        assert joint["limits"]["positionUpper"] == np.inf
        assert joint["frictionViscous"] == 3.0


def test_no_zero_of_a_written_set_has_a_minus_sign(tmp_path):
    write_cobra_modules([*catalog.values(), WRIST, PICKY], tmp_path / "m.json")
    assert not re.search(r"-0\.0\b", (tmp_path / "m.json").read_text())


def test_connectors_mate_as_the_ports_do(tmp_path):
    """CoBRA's rule, type and size equal and genders m-f or h-h, against ours."""
    kinds = [*catalog.values(), WRIST, PICKY]
    write_cobra_modules(kinds, tmp_path / "m.json")
    ways = {}
    for entry in json.loads((tmp_path / "m.json").read_text())["modules"]:
        for c in (c for b in entry["bodies"] for c in b["connectors"]):
            label = c["ID"].partition("@")[0].partition(":")[0]
            ways.setdefault((entry["header"]["ID"], label), set()).add((c["type"], c["gender"]))
    ports = [(port, ways[kind.name, str(port.label)]) for kind in kinds for port in kind.ports]
    for here, a in ports:
        for there, b in ports:
            fits = any(s == t and g + h in ("mf", "fm", "hh") for s, g in a for t, h in b)
            assert fits == here.mates_with(there), (here, there)


# -- what others write -----------------------------------------------------------------------------


def turned(axis, angle, position=(0, 0, 0)):
    i, j = [(1, 2), (2, 0), (0, 1)][axis]
    T = np.eye(4)
    T[i, i] = T[j, j] = np.cos(angle)
    T[j, i], T[i, j] = np.sin(angle), -np.sin(angle)
    T[:3, 3] = position
    return T


def connector(id, pose, gender, type="flange", size=(0.08,)):
    return {"ID": id, "pose": pose.tolist(), "gender": gender, "type": type, "size": list(size)}


def body(id, mass, r_com, *connectors, moments=(0.02, 0.03, 0.04), **more):
    return {"ID": id, "mass": mass, "inertia": np.diag(moments).tolist(), "r_com": list(r_com),
            "connectors": list(connectors), **more}  # fmt: skip


def joint(id, kind, parent, child, before, after, lower=-np.inf, upper=np.inf):
    limits = {"positionLower": lower, "positionUpper": upper, "peakTorque": np.inf,
              "velocity": 1.0, "acceleration": np.inf}  # fmt: skip
    return {"ID": id, "type": kind, "parent": parent, "child": child, "passive": False,
            "poseParent": before.tolist(), "poseChild": after.tolist(), "limits": limits,
            "gearRatio": 1.0, "motorInertia": 0.0, "frictionCoulomb": 0.1,
            "frictionViscous": 0.2}  # fmt: skip


def module(id, bodies, joints=()):
    header = {"ID": id, "name": f"The {id}", "date": "2024-02-29", "author": ["A"],
              "email": [], "affiliation": ["Somewhere"], "cost": 1.0}  # fmt: skip
    return {"header": header, "bodies": bodies, "joints": list(joints)}


DOWN = turned(0, np.pi)
ELBOW = module(
    # axes that pass by the origin of the body behind them, seen from both sides, and a weld
    "2.elbow",
    [
        body("1", 0.6, (0, 0.02, 0.01), connector("in", DOWN @ turned(2, 0.4), "f")),
        body("mid", 1.1, (0.03, -0.02, 0), moments=(0.01, 0.02, 0.015)),
        body("tip", 0.3, (0, 0, 0.1), connector("8-1", turned(1, 0.7, (0.1, 0, 0.2)), "m")),
        body("cap", 0.2, (0.01, 0, 0), connector("7", turned(0, 1.1, (0, 0.05, 0)), "m")),
    ],
    [
        joint("j 1", "revolute", "1", "mid", turned(1, 0.3, (0, 0, 0.2)),
              turned(0, 0.5, (0.1, 0.1, 0.05)), -1.0, 2.0),
        joint("j2", "continuous", "tip", "mid", turned(0, -0.8, (0.02, 0.3, 0)),
              turned(2, 1.2, (-0.07, 0.01, 0.3))),
        joint("weld", "fixed", "cap", "tip", turned(2, 0.2, (0, 0.1, 0)), turned(1, 0.1)),
    ],
)  # fmt: skip
SLIDE = module(
    "slide",
    [
        body("far", 0.5, (0, 0, 0.1), connector("out", turned(2, 0.3, (0, 0.1, 0.1)), "m")),
        body("near", 0.7, (0, 0, 0), connector("in", DOWN, "f")),
    ],
    [joint("push", "prismatic", "near", "far", turned(0, 0.9, (0, 0, 0.1)),
           turned(1, 0.4, (0.2, 0.1, 0)), 0.0, 0.3)],
)  # fmt: skip
STAND = module(
    "stand",
    [body("plate", 0.0, (0, 0, 0), connector("ground", DOWN, "f", "base", ()),
          connector("up", turned(2, 0.1, (0, 0, 0.3)), "m"), moments=(0, 0, 0))],
)  # fmt: skip
SET = {"ignore_collisions": "rigid", "modules": [ELBOW, SLIDE, STAND]}
ASSEMBLY = {
    "moduleSet": "test",
    "moduleOrder": ["slide", "2.elbow", "stand", "2.elbow", "slide"],
    "moduleConnection": [
        [1, "8-1", 3, "in"], [0, "in", 1, "7"], [2, "up", 1, "in"], [3, "7", 4, "in"],
    ],
    "baseConnection": [[2, "ground", 0]],
    "basePose": [turned(1, 0.5, (1, 2, 3)).tolist()],
}  # fmt: skip


def dump(path, data):
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_a_foreign_assembly_is_the_same_robot_by_cobras_rules(tmp_path):
    modules, assembly = dump(tmp_path / "m.json", SET), dump(tmp_path / "a.json", ASSEMBLY)
    organism = read_cobra_assembly(assembly, modules)
    assert organism.base == "m2"
    assert len(organism.model("physical").joint_names) == 6
    ids = {"j_1": "j 1", "_8-1": "8-1", 7: "7"}
    order = [f"m{k}" for k in range(5)]
    tree = CobraTree(SET, ASSEMBLY)
    assert_same_robot(organism, tree, lambda name: ids.get(name, name), order)


def test_only_hinges_that_pass_by_a_body_move_its_frame(tmp_path):
    """A slide keeps the frame of the file wherever its axis is; so does a weld."""
    for kind, moved in (("prismatic", False), ("fixed", False), ("revolute", True)):
        ends = [body("a", 1, (0, 0, 0), connector("in", DOWN, "f")), body("b", 2, (0.3, 0, 0))]
        way = [joint("j", kind, "a", "b", np.eye(4), turned(2, 0.0, (0.2, 0, 0)), 0.0, 0.3)]
        path = dump(tmp_path / f"{kind}.json", {"modules": [module("it", ends, way)]})
        found = read_cobra_modules(path)["it"]
        assert found.bodies[1].center_of_mass == pytest.approx((0.5 if moved else 0.3, 0, 0))
        assert found.joints[0].position == pytest.approx((0.0 if moved else 0.2, 0, 0))


@pytest.mark.parametrize(("off", "moved"), [(1e-9, False), (1.1e-9, True), (0.05, True)])
def test_a_hinge_passes_through_an_origin_up_to_rounding_and_no_more(tmp_path, off, moved):
    ends = [body("a", 1, (0, 0, 0), connector("in", DOWN, "f")), body("b", 2, (0.3, 0, 0))]
    way = [joint("j", "revolute", "a", "b", np.eye(4), turned(2, 0.0, (0, off, 0.2)))]
    found = read_cobra_modules(dump(tmp_path / "m.json", module("it", ends, way)))["it"]
    assert found.joints[0].position == ((0, 0, 0) if moved else (0, off, 0.2))
    assert found.bodies[1].center_of_mass == ((0.3, off, 0.2) if moved else (0.3, 0, 0))


def test_what_a_module_set_leaves_out_is_nothing(tmp_path):
    """No friction, no rotor, no limits, no turn; connectors mate with their own kind."""
    mass = {"mass": 1.0, "inertia": np.eye(3).tolist(), "r_com": [0, 0, 0]}
    bodies = [
        {"ID": "a", **mass, "connectors": {"ID": "in"}},
        {"ID": "b", **mass, "visual": [
            {"type": "sphere", "parameters": {"r": 0.3}},
            {"type": "mesh", "parameters": {"file": "b.stl"}},
            {"type": "mesh", "parameters": {"file": "c.stl", "scale": 0.001}},
        ]},
        {"ID": "c", **mass},
    ]  # fmt: skip
    joints = [
        {"ID": "j", "type": "revolute", "parent": "a", "child": "b", "gearRatio": 50.0},
        {"ID": "k", "type": "prismatic", "parent": "b", "child": "c", "motorInertia": 0.25},
    ]
    whole = {"header": {"ID": "bare"}, "bodies": bodies, "joints": joints}
    bare = read_cobra_modules(dump(tmp_path / "m.json", whole))["bare"]
    assert (bare.title, [b.mass for b in bare.bodies]) == ("", [1, 1, 1])
    for found in (*bare.joints, *bare.shapes, *bare.meshes):
        np.testing.assert_array_equal(found.pose, np.eye(4))
    for found in bare.joints:
        assert (found.viscous, found.coulomb, found.gear_ratio) == (0, 0, 1)
        assert (found.lower, found.upper, found.axis) == (None, None, (0, 0, 1))
    assert [found.rotor_inertia for found in bare.joints] == [0, 0.25]
    assert [mesh.scale for mesh in bare.meshes] == [(1, 1, 1), (0.001, 0.001, 0.001)]
    (port,) = bare.ports
    np.testing.assert_array_equal(port.pose, np.eye(4))
    assert (port.label, port.connector, port.mates) == ("in", "connector-h", ("connector-h",))
    assert bare.size == 0.1  # it has no length


def test_a_base_on_another_body_is_held_there(tmp_path):
    """A slide that hangs on its far body: the near one moves."""
    alone = {**ASSEMBLY, "moduleOrder": ["slide"], "moduleConnection": [],
             "baseConnection": [[0, "in", 0]]}  # fmt: skip
    modules, path = dump(tmp_path / "m.json", SET), dump(tmp_path / "a.json", alone)
    organism = read_cobra_assembly(path, modules)
    assert organism.kind("m0").bodies[0].name == "near"
    assert read_cobra_modules(modules)["slide"].bodies[0].name == "far"
    assert_same_robot(organism, CobraTree(SET, alone))


def test_names_limits_and_friction_are_kept(tmp_path):
    kinds = read_cobra_modules(dump(tmp_path / "m.json", SET))
    assert list(kinds) == ["2.elbow", "slide", "stand"]
    elbow = kinds["2.elbow"]
    assert (elbow.name, elbow.title) == ("_2_elbow", "The 2.elbow")
    assert [b.name for b in elbow.bodies] == ["_1", "mid", "tip", "cap"]
    assert elbow.docks == ("in", "_8-1", 7)
    first, second, weld = elbow.joints
    assert (first.name, first.lower, first.upper) == ("j_1", -1, 2)
    assert (second.kind, second.lower, second.upper) == ("revolute", None, None)
    assert (first.viscous, first.coulomb, weld.kind) == (0.2, 0.1, "fixed")
    assert elbow.port("in").connector == "flange-size0p08-f"
    assert elbow.port(7).mates == ("flange-size0p08-f",)
    assert elbow.port("in").mates_with(kinds["stand"].port("up"))
    assert not elbow.port("in").mates_with(kinds["stand"].port("ground"))


def test_a_foreign_set_is_read_back_identically_with_its_ids_and_connectors(tmp_path):
    kinds = read_cobra_modules(dump(tmp_path / "m.json", SET))
    write_cobra_modules(kinds, tmp_path / "again.json")
    assert read_cobra_modules(tmp_path / "again.json") == kinds
    again = json.loads((tmp_path / "again.json").read_text())
    for before, after in zip(SET["modules"], again["modules"], strict=True):
        assert after["header"]["ID"] == before["header"]["ID"]
        for old, new in zip(before["bodies"], after["bodies"], strict=True):
            assert new["ID"] == old["ID"]
            kept = [(c["ID"], c["gender"], c["type"], c["size"]) for c in new["connectors"]]
            for c in old["connectors"]:
                assert (c["ID"], c["gender"], c["type"], c["size"]) in kept
    write_cobra_assembly(
        read_cobra_assembly(dump(tmp_path / "a.json", ASSEMBLY), kinds), tmp_path / "b.json", kinds
    )
    found = json.loads((tmp_path / "b.json").read_text())
    # the base comes first in our order: 2, 0, 1, 3, 4
    assert found["moduleOrder"] == ["stand", "slide", "2.elbow", "2.elbow", "slide"]
    assert found["baseConnection"] == [[0, "ground", 0]]
    np.testing.assert_allclose(found["basePose"], ASSEMBLY["basePose"], atol=ROUNDING)


@pytest.mark.parametrize(
    "limits",
    [
        '{"positionLower": -Infinity, "positionUpper": Infinity}',
        '{"positionLower": NaN, "positionUpper": null}',
        '{"position": [-Infinity, Infinity], "velocity": Infinity}',
        "{}",
    ],
)
def test_infinity_and_nan_mean_no_limit(tmp_path, limits):
    push = {**SLIDE["joints"][0], "limits": "LIMITS"}
    text = json.dumps({**SLIDE, "joints": push}).replace('"LIMITS"', limits)
    (tmp_path / "m.json").write_text(text)
    (read,) = read_cobra_modules(tmp_path / "m.json")["slide"].joints
    assert (read.lower, read.upper) == (None, None)


def test_one_module_a_list_and_other_spellings_are_read(tmp_path):
    whole = read_cobra_modules(dump(tmp_path / "m.json", SET))
    assert read_cobra_modules(dump(tmp_path / "l.json", SET["modules"])) == whole
    folded = json.loads(json.dumps(SLIDE))
    for entry in folded["bodies"]:
        keys = ("mass", "inertia", "r_com")
        entry["inertia"] = {key: entry[key] for key in keys}
        del entry["mass"], entry["r_com"]
        (entry["connectors"],) = entry["connectors"]
        entry["connectors"]["gender"] = {"m": "male", "f": "female"}[entry["connectors"]["gender"]]
    (push,) = folded["joints"]
    push["limits"] = {"position": [0.0, 0.3]}
    push["coulombFriction"], push["viscousFriction"] = 0.1, 0.2
    del push["frictionCoulomb"], push["frictionViscous"]
    assert read_cobra_modules(dump(tmp_path / "f.json", folded)) == {"slide": whole["slide"]}


def test_solids_are_drawn_and_meshes_kept_as_references(tmp_path):
    shapes = [
        {"type": "box", "parameters": {"x": 1, "y": 2.0, "z": 3}, "pose": turned(2, 0.5).tolist()},
        {"type": "cylinder", "parameters": {"r": 0.1, "z": 0.5}},
        {"type": "cylinder", "parameters": {"radius": 0.2, "length": 0.6}},
        {"type": "mesh", "parameters": {"file": "a.stl", "scale": [1, 1, 1]}},
        {"type": "sphere", "parameters": {"r": 0.3}},
    ]
    hull = {"type": "sphere", "parameters": {"r": 9}}
    near, far = SLIDE["bodies"]
    bodies = [{**near, "visual": shapes, "collision": hull}, {**far, "collision": hull}]
    kinds = read_cobra_modules(dump(tmp_path / "m.json", {**SLIDE, "bodies": bodies}))
    found = [(shape.form, shape.size) for shape in kinds["slide"].shapes]
    assert found == [
        ("box", (1, 2, 3)), ("cylinder", (0.1, 0.5)), ("cylinder", (0.2, 0.6)),
        ("sphere", (0.3,)), ("sphere", (9,)),
    ]  # fmt: skip
    (mesh,) = kinds["slide"].meshes
    assert (mesh.body, mesh.file, mesh.scale) == ("far", "a.stl", (1, 1, 1))
    write_cobra_modules(kinds, tmp_path / "again.json")
    assert read_cobra_modules(tmp_path / "again.json") == kinds
    (entry,) = json.loads((tmp_path / "again.json").read_text())["modules"]
    assert [g["parameters"] for g in entry["bodies"][0]["visual"] if g["type"] == "mesh"] == [
        {"file": "a.stl", "scale": [1.0, 1.0, 1.0]}
    ]


def test_the_inertia_of_motors_is_kept(tmp_path):
    push = {**SLIDE["joints"][0], "motorInertia": 5e-5, "gearRatio": 160.0}
    kinds = read_cobra_modules(dump(tmp_path / "m.json", {**SLIDE, "joints": [push]}))
    (joint,) = kinds["slide"].joints
    assert (joint.rotor_inertia, joint.gear_ratio) == (5e-5, 160.0)
    write_cobra_modules(kinds, tmp_path / "again.json")
    (entry,) = json.loads((tmp_path / "again.json").read_text())["modules"]
    assert (entry["joints"][0]["motorInertia"], entry["joints"][0]["gearRatio"]) == (5e-5, 160.0)


# -- files that were edited ------------------------------------------------------------------------


def test_what_was_edited_wins_over_the_datasheet_that_travels_along(written):
    modules, _, path, _ = written(examples.crab())
    (scout,) = modules["modules"]
    scout["bodies"][0]["mass"] = 2.5
    edited = read_cobra_modules(dump(path, modules))["scout"]
    assert edited == catalog["scout"].with_parameters(mass=2.5, inertia=0.001666666666666667)
    scout["joints"][0]["limits"]["positionUpper"] = 0.5
    hinge, _ = read_cobra_modules(dump(path, modules))["scout"].joints
    assert hinge.upper == 0.5


def test_meshes_that_were_edited_win_and_others_are_kept(tmp_path):
    near, far = SLIDE["bodies"]
    mesh = {"type": "mesh", "parameters": {"file": "a.stl", "scale": [1, 1, 1]}}
    kinds = read_cobra_modules(
        dump(tmp_path / "m.json", {**SLIDE, "bodies": [{**near, "visual": mesh}, far]})
    )
    assert kinds["slide"].meshes
    write_cobra_modules(kinds, tmp_path / "ours.json")
    text = (tmp_path / "ours.json").read_text()
    (entry,) = json.loads(text)["modules"]
    (visual,) = (x for x in entry["bodies"][0]["visual"] if x["type"] == "mesh")
    visual["parameters"]["file"] = "b.stl"
    heavier = json.loads(text)["modules"]
    heavier[0]["bodies"][0]["mass"] *= 2
    for modules, file in (([entry], "b.stl"), (heavier, "a.stl")):
        (mesh,) = read_cobra_modules(dump(tmp_path / "e.json", modules))["slide"].meshes
        assert mesh.file == file


def test_entries_of_another_kind_are_edited():
    assert _same([1, {"x": 2.0}], [1.0, {"x": 2 + 1e-13}])
    assert not _same([1.0], [1 + 1e-11])
    assert _same(0.0, 1e-16)
    assert not _same(0.0, 1e-14)
    assert not any(_same([1.0], other) for other in (1.0, None, "1", [], [1.0, 1.0], {"0": 1.0}))
    assert not any(_same({"x": 1}, other) for other in (1, {}, {"y": 1}, {"x": 2}, [1]))


def test_an_edited_joint_moves_all_that_hangs_on_it(written):
    """The axis passes by the origin now, so the frame of the body behind it is another one."""
    modules, assembly, path, assembly_path = written(examples.superbot_tree(2, 2, rng=RNG()))
    (superbot,) = modules["modules"]
    superbot["joints"][1]["poseChild"] = turned(0, 0.3, (0.01, 0.02, 0.0)).tolist()
    edited = read_cobra_assembly(assembly_path, dump(path, modules))
    assert edited.kind("m0").symbol == catalog["superbot_light"].symbol
    assert_same_robot(edited, CobraTree(modules, assembly), in_cobra)


@pytest.mark.parametrize(("turns", "turn"), [((180, 90), 270), ((270, 180), 90), ((90, 270), 0)])
def test_connectors_that_are_turned_on_both_sides_add_up(written, turns, turn):
    superbots = Organism.start("superbot").dock("m0", 4, "m1", 1)
    modules, assembly, path, assembly_path = written(superbots)
    assembly["moduleConnection"] = [[0, f"4@{turns[0]}", 1, f"1@{turns[1]}"]]
    organism = read_cobra_assembly(dump(assembly_path, assembly), path)
    assert organism.docking("m1").turn == turn
    assert_same_robot(organism, CobraTree(modules, assembly))


def test_other_order_and_rounding_are_no_edit(written):
    modules, _, path, _ = written(examples.superbot_tree(2, 2, rng=RNG()))
    (superbot,) = modules["modules"]
    superbot["bodies"].reverse()
    superbot["joints"].reverse()
    for entry in superbot["bodies"]:
        entry["connectors"].sort(key=lambda c: c["ID"])
    superbot["joints"][0]["poseParent"][0][0] *= 1 + 1e-15
    assert read_cobra_modules(dump(path, modules)) == {"superbot_light": catalog["superbot_light"]}


# that halves of cubes are massless on purpose stands in the datasheet only
@pytest.mark.filterwarnings("ignore:.*nothing with mass beyond it:modurob.errors.ModelWarning")
def test_without_the_datasheet_the_robot_is_the_same(written):
    for organism in organisms():
        modules, assembly, path, assembly_path = written(organism)
        for entry in modules["modules"]:
            entry["header"]["affiliation"] = ['{"format":"modurob-module", broken']
        plain = read_cobra_assembly(assembly_path, dump(path, modules))
        assert plain != organism
        assert_same_robot(plain, CobraTree(modules, assembly), in_cobra)


def in_cobra(name):
    """Every connector is a port of its own: ``3:claw@90`` is read as ``_3_claw_90``."""
    text = re.sub(r"_(90|180|270)$", r"@\1", str(name))
    return re.sub(r"_(claw|symbrion)", r":\1", text.removeprefix("_"))
