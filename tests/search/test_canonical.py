"""Canonical keys: equal for all descriptions of one robot, different for different robots."""

from itertools import product

import numpy as np
import pytest

import modurob as mr
from modurob.search import BodySpace, Gene, Genotype, Oscillation
from modurob.search.canonical import _direction, symmetries
from modurob.search.growth import GrowingBody

SPACES = {
    "cubes": BodySpace("backbone", (3, 8)),
    "two kinds of cubes": BodySpace(("backbone", "scout"), (3, 7)),
    "spatial": BodySpace("superbot", (2, 4), "physical"),
    "slides": BodySpace(("chen_link", "chen_revolute", "chen_prismatic"), (3, 6), "physical"),
}
ROUNDING = 1e-12  # of products of poses, relative
MOMENT_S = 0.3
WAVE = Oscillation(0.3, 0.2, 0.1)


def rewritten(genotype, rng):
    """The same robot in other words: by other ports of symmetric modules, docked in another order.

    Returns:
        The genotype, the symmetry that each module was rewritten by, and its new number.
    """
    space, genes = genotype.space, []
    chosen = []
    for k, gene in enumerate(genotype.genes):
        known = symmetries(space.kinds[gene.kind], space.hinges == "dyad")
        usable = [each for each in known if each.upright or k > 0]
        chosen.append(usable[int(rng.integers(len(usable)))])
    for k, gene in enumerate(genotype.genes):
        waves = list(gene.waves)
        for joint, (place, sign) in enumerate(chosen[k].joints):
            before, after = space.wave_number[gene.kind, [joint, place]].tolist()
            wave = gene.waves[before]
            if sign < 0:
                wave = Oscillation(wave.amplitude, wave.phase + np.pi, -wave.offset)
            waves[after] = wave
        new = gene._replace(waves=tuple(waves))
        if k > 0:
            above, own = space.kinds[genotype.genes[gene.parent].kind], space.kinds[gene.kind]
            port, turned = chosen[gene.parent].ports[gene.port]
            child_port, own_turn = chosen[k].ports[gene.child_port]
            turn = (gene.turn + turned + own_turn) % 360
            new = new._replace(port=above.docks[port], child_port=own.docks[child_port], turn=turn)
        genes.append(new)
    order = shuffled(genes, rng)
    number = {old: new for new, old in enumerate(order)}
    made = [genes[old]._replace(parent=number.get(genes[old].parent, -1)) for old in order]
    return Genotype(space, tuple(made), genotype.frequency), chosen, number


def shuffled(genes, rng):
    """Another order in which each gene comes after its parent."""
    order = [0]
    while len(order) < len(genes):
        ready = [k for k in range(len(genes)) if k not in order and genes[k].parent in order]
        order.append(ready[int(rng.integers(len(ready)))])
    return order


@pytest.mark.parametrize("family", SPACES)
def test_other_words_for_a_robot_have_its_key_and_its_dynamics(family):
    """Mass matrices of the joints, gravity and gaits agree up to the directions of joints."""
    rng, space = np.random.default_rng(8), SPACES[family]
    different = 0
    for _ in range(6):
        one = Genotype.random(space, rng)
        other, chosen, number = rewritten(one, rng)
        different += one.genes != other.genes
        assert one.canonical() == other.canonical()
        assert one.canonical(gait=False) == other.canonical(gait=False)
        assert one.sketch() == other.sketch()
        a, b = one.model(), other.model()
        place, sign = [], []
        for module, joint in (name.split(".") for name in a.joint_names):
            k = int(module.removeprefix("m"))
            kind = space.kinds[one.genes[k].kind]
            there, direction = chosen[k].joints[[each.name for each in kind.joints].index(joint)]
            place.append(b.joint_names.index(f"m{number[k]}.{kind.joints[there].name}"))
            sign.append(direction)
        sign, q = np.array(sign), rng.normal(size=len(sign))
        q_a, q_b = a.neutral(), b.neutral()
        q_a[7:], q_b[7 + np.array(place)] = q, sign * q
        M_a, M_b = a.mass_matrix(q_a)[6:, 6:], b.mass_matrix(q_b)[6:, 6:]
        M_b = M_b[np.ix_(place, place)] * np.outer(sign, sign)
        np.testing.assert_allclose(M_b, M_a, rtol=0, atol=ROUNDING * np.abs(M_a).max())
        N_a, N_b = a.gravity_torque(q_a)[6:], sign * b.gravity_torque(q_b)[6:][place]
        weight = 9.81 * a.mass.sum()
        np.testing.assert_allclose(N_b, N_a, rtol=0, atol=ROUNDING * weight)
        np.testing.assert_allclose(sign * moment(other)[place], moment(one), atol=ROUNDING)
    assert different >= 3


def moment(genotype):
    waves = genotype.waves()
    angle = 2 * np.pi * genotype.frequency * MOMENT_S + waves.phase[0]
    return waves.offset[0] + waves.amplitude[0] * np.sin(angle)


def test_keys_of_all_bodies_of_three_cubes_agree_with_their_geometry():
    """Two bodies are one when their cells, hinge lines and dockings are, up to a half turn.

    A half turn of the base about the vertical maps a backbone onto itself.
    """
    space = BodySpace("backbone", (3, 3))
    by_key, by_geometry = {}, {}
    for genes in all_bodies_of_three(space):
        genotype = Genotype(space, genes, 1.0)
        by_key.setdefault(genotype.canonical(gait=False), set()).add(genes)
        by_geometry.setdefault(geometry(genotype.organism()), set()).add(genes)
    assert set(map(frozenset, by_key.values())) == set(map(frozenset, by_geometry.values()))
    assert (sum(map(len, by_key.values())), len(by_key)) == (368, 36)  # as docs/guide/genotypes.md


def test_each_number_of_a_wave_counts():
    space = BodySpace("backbone", (2, 3))

    def key(*wave):
        genes = (Gene(0, -1, 0, 0, 0, (WAVE,)), Gene(0, 0, 3, 4, 0, (Oscillation(*wave),)))
        return Genotype(space, genes, 1.0).canonical()

    phases = (0.0, np.pi / 2, np.pi, -np.pi / 2)
    waves = [*product((0.2, 0.3), phases, (0.0, 0.1))]
    assert len({key(*wave) for wave in waves}) == len(waves)
    assert key(0.3, 0.4, 0.1) == key(0.3, 0.4 + 2 * np.pi, 0.1)
    assert len({key(0.3 + x, 0, 0.1 + y) for x in (0, 1e-8) for y in (0, 1e-8)}) == 4
    assert key(0.3 + 1e-12, 0.4, 0.1) == key(0.3, 0.4 + 1e-12, 0.1 + 1e-12)
    assert key(0.0, 0.4, 0.1) == key(0.0, 0.9, 0.1)  # no wave has no phase


def all_bodies_of_three(space):
    base, ports = Gene(0, -1, 0, 0, 0, (WAVE,)), (2, 3, 4, 5)
    for a, b, parent, c, d in product(ports, ports, (0, 1), ports, ports):
        body = GrowingBody(space, base)
        genes = (Gene(0, 0, a, b, 0, (WAVE,)), Gene(0, parent, c, d, 0, (WAVE,)))
        if all(map(body.add, genes)) and space.moves(body.genes):
            yield tuple(body.genes)


def geometry(organism):
    """Cells, directions of hinges and cells of parents, the same after a half turn."""
    found = []
    for turn in (1, -1):
        places = {name: organism.place(name) for name in organism}
        cells = {name: (turn * place.x, turn * place.y) for name, place in places.items()}
        above = {name: cells.get(organism.parent(name), ()) for name in organism}
        found.append(sorted((cells[k], places[k].quarter % 2, above[k]) for k in organism))
    return str(min(found))


def test_symmetries_of_modules_are_those_of_their_shapes():
    counts = {
        ("backbone", True): (2, 2),  # a half turn about z; as halves of different mass: none
        ("backbone", False): (1, 1),
        ("scout", True): (1, 1),
        ("superbot", False): (4, 2),  # half turns about z, and about two axes that swap its ends
        ("chen_link", False): (24, 4),  # all turns of a cube
        ("chen_revolute", False): (4, 4),
    }
    for (name, rigid), expected in counts.items():
        found = symmetries(mr.catalog[name], rigid)
        assert (len(found), sum(each.upright for each in found)) == expected, name
        assert list(found[0].ports.values()) == [(k, 0) for k in range(len(found[0].ports))]


def test_uneven_modules_have_no_symmetry():
    cube = mr.catalog["backbone"]
    data = cube.document()
    data["bodies"][0]["center_of_mass"] = [0.01, 0.0, 0.0]
    shifted, limited = mr.ModuleType(**data), cube.with_parameters(limits=(-0.5, 1.0))
    assert len(symmetries(shifted, True)) == 1
    assert len(symmetries(limited, True)) == 1
    data["bodies"][0]["center_of_mass"] = [1e-7, 0.0, 0.0]  # more than rounding of 0.1 m
    assert len(symmetries(mr.ModuleType(**data), True)) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("viscous", 0.1), ("coulomb", 0.1), ("rotor_inertia", 1e-5), ("gear_ratio", 2.0),
     ("stiffness", 3.0), ("damping", 0.2), ("upper", 0.5)],
)  # fmt: skip
def test_joints_that_differ_in_one_number_are_not_exchanged(field, value):
    data = mr.catalog["superbot"].document()
    for joint in data["joints"]:
        joint |= {"rotor_inertia": 2e-5, "stiffness": 2.0, "gear_ratio": 3.0}
    assert len(symmetries(mr.ModuleType(**data), False)) == 4
    data["joints"][0][field] = value
    ends = symmetries(mr.ModuleType(**data), False)
    assert 1 <= len(ends) <= 2
    assert all(each.joints[0][0] == 0 for each in ends)  # in its own place


def test_a_cube_is_as_symmetric_as_its_masses_are():
    data = mr.catalog["chen_link"].document()
    (body,) = data["bodies"]
    assert len(symmetries(mr.ModuleType(**data), False)) == 24
    moment = float(np.ravel(np.diag(np.atleast_2d(body["inertia"])))[0])
    body["inertia"] = [moment, moment, moment * (1 + 1e-7)]
    assert len(symmetries(mr.ModuleType(**data), False)) == 8  # turns of a square prism


def test_a_module_with_one_port_has_the_turns_that_its_shape_allows():
    data = mr.catalog["chen_link"].document()
    data["ports"] = data["ports"][:1]
    assert len(symmetries(mr.ModuleType(**data), False)) == 4


def two_halves(**change):
    """Two cubes side by side on a hinge between them, alike but for changes of the second."""
    data = {
        "name": "pair", "symbol": "P", "size": 0.2,
        "bodies": [
            {"name": name, "mass": 1.0, "center_of_mass": [x, 0, 0], "inertia": [1e-3] * 3}
            for name, x in (("left", -0.05), ("right", 0.05))
        ],
        "joints": [
            {"name": "twist", "kind": "revolute", "parent": "left", "child": "right",
             "axis": [1, 0, 0]}
        ],
        "ports": [
            {"label": k, "body": name, "position": [0.1 * x, 0, 0], "normal": [x, 0, 0],
             "reference": [0, 0, 1], "connector": "c", "mates": ["c"]}
            for k, name, x in ((1, "left", -1), (2, "right", 1))
        ],
        "shapes": [
            {"body": name, "form": "box", "size": [0.1, 0.1, 0.1], "position": [x, 0, 0]}
            for name, x in (("left", -0.05), ("right", 0.05))
        ],
    }  # fmt: skip
    data["bodies"][1] |= change
    return mr.ModuleType(**data)


@pytest.mark.parametrize(
    ("change", "count"),
    [({}, 2), ({"mass": 1 + 1e-7}, 1), ({"inertia": [1e-3, 1e-3, 1.001e-3]}, 1),
     ({"center_of_mass": [0.05 + 1e-7, 0, 0]}, 1), ({"mass": 1 + 1e-12}, 2),
     ({"center_of_mass": [0.05 + 2e-9, 0, 0]}, 1),  # 1e-8 of their size
     ({"inertia": [1e-3, 1e-3, 1e-3 * (1 + 1e-8)]}, 1)],
)  # fmt: skip
def test_halves_that_swap_have_the_same_mass_moments_and_places(change, count):
    """By a half turn about z."""
    assert len(symmetries(two_halves(**change), False)) == count


@pytest.mark.parametrize(
    ("both", "change", "count"),
    [({"mass": 0.01}, {"mass": 0.01 * (1 + 1e-8)}, 1), ({"mass": 0.01}, {}, 2),
     ({"inertia": [0, 0, 0]}, {}, 2)],
)  # fmt: skip
def test_light_halves_and_point_masses_swap_as_others_do(both, change, count):
    data = two_halves().document()
    for body in data["bodies"]:
        body |= both
    data["bodies"][1] |= change
    assert len(symmetries(mr.ModuleType(**data), False)) == count


def test_halves_that_swap_have_the_same_shapes():
    data = two_halves().document()
    left, right = data["shapes"]

    def count(*shapes):
        return len(symmetries(mr.ModuleType(**{**data, "shapes": shapes}), False))

    assert count(left, right) == 2
    assert count(left, {**right, "position": [0.05 + 2e-9, 0, 0]}) == 1
    for radius, expected in ((0.03, 2), (0.03 + 2e-9, 1)):
        tubes = [
            {**each, "form": "cylinder", "size": [r, 0.1]}
            for each, r in ((left, 0.03), (right, radius))
        ]
        assert count(*tubes) == expected


@pytest.mark.parametrize(
    ("change", "count"),
    [({"connector": "chen-plug"}, 4), ({"mates": ["chen-socket"]}, 4), ({"turns": [0, 180]}, 2),
     ({"turns": [0]}, 1), ({"position": [0.05, 2e-9, 0.0]}, 1)],
)  # fmt: skip
def test_a_port_that_docks_otherwise_stays_in_its_place(change, count):
    """Of the 24 turns of a cube those about the port's normal by a turn that it allows."""
    data = mr.catalog["chen_link"].document()
    data["ports"][1] |= change
    assert len(symmetries(mr.ModuleType(**data), False)) == count


def test_ports_side_by_side_are_told_apart():
    """Of a plate with two ports on its top: rest, and a half turn that swaps them."""
    data = mr.catalog["chen_link"].document()
    top = data["ports"][0] | {"turns": [0, 180]}
    data["ports"] = [
        top | {"label": k, "side": k, "position": [x, 0, 0.05]} for k, x in ((1, 0.03), (2, -0.03))
    ]
    rest, swap = symmetries(mr.ModuleType(**data), False)
    assert rest.ports == {1: (0, 0), 2: (1, 0)}
    assert swap.ports == {1: (1, 180), 2: (0, 180)}


@pytest.mark.parametrize(("turn", "upright"), [(90, [True]), (270, [False]), (0, []), (180, [])])
def test_ports_that_swap_allow_turns_in_the_same_directions(turn, upright):
    """A half turn about z moves port 1 to port 2, a quarter turn ahead of the reference there.

    One about y moves it to a quarter turn behind it; there are no others of two flat boxes.
    """
    data = two_halves().document()
    for shape in data["shapes"]:
        shape["size"] = [0.1, 0.08, 0.06]
    data["ports"][1] |= {"reference": [0, 1, 0], "turns": [turn]}
    rest, *found = symmetries(mr.ModuleType(**data), False)
    assert rest.ports == {1: (0, 0), 2: (1, 0)}
    assert [each.upright for each in found] == upright
    for each in found:
        assert each.ports == {1: (1, turn), 2: (0, 360 - turn)}


def test_gaits_count_and_waves_of_locked_joints_do_not():
    space = BodySpace("backbone", (2, 4))
    body = (
        Gene(0, -1, 0, 0, 0, (WAVE,)),
        Gene(0, 0, 3, 4, 0, (WAVE,)),
        Gene(0, 0, 2, 5, 0, (WAVE,)),  # hinges on one line
    )

    def key(number=None, gait=True, frequency=1.0, **change):
        genes = list(body)
        if number is not None:
            genes[number] = body[number]._replace(waves=(WAVE._replace(**change),))
        return Genotype(space, tuple(genes), frequency).canonical(gait)

    assert key(0, amplitude=0.4) == key(2, phase=1.0) == key()
    locked = body[0]._replace(waves=(WAVE._replace(amplitude=0.4),))
    sketches = {Genotype(space, (each, *body[1:]), 1.0).sketch() for each in (body[0], locked)}
    assert len(sketches) == 1
    assert len({key(), key(1, amplitude=0.4), key(1, phase=0.3), key(frequency=1.5)}) == 4
    assert key(1, phase=0.2 + 2 * np.pi) == key()
    assert key(1, gait=False, amplitude=0.4) == key(gait=False) != key()


def test_a_base_that_starts_upside_down_is_another_robot():
    waves = (WAVE,) * 3
    space, base = BodySpace("superbot", (2, 2), "physical"), Gene(0, -1, 0, 0, 0, waves)
    above, turned, below = (
        Genotype(space, (base, Gene(0, 0, port, 1, turn, waves)), 1.0)
        for port, turn in ((4, 90), (4, 270), (1, 0))
    )
    assert above.canonical(gait=False) != below.canonical(gait=False)
    assert above.canonical(gait=False) == turned.canonical(gait=False)


def test_screws_are_equal_opposite_or_neither():
    """Places count as shares of the module's size, directions as they are."""
    one, small = np.array([0.0, 0.02, 0, 0, 0, 1]), 1e-4
    assert [_direction(one, sign * one, 0.1) for sign in (1, -1)] == [1, -1]
    for k in range(6):
        other = one.copy()
        other[k] += small
        assert _direction(one, other, 0.1) == 0
    place = np.array([0.0, 1e-9, 0, 0, 0, 0])  # 1e-8 of a size of 0.1 m, 1e-10 of 10 m
    assert [_direction(one + place, one, size) for size in (0.1, 10.0)] == [0, 1]
