"""Every quantity of the table, on every tier; the new ones against Pinocchio and differences."""

import dataclasses
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
import pytest

import modurob as mr
from modurob.compiler.tiers import DyadTier, FusedTier
from modurob.equations.links import RigidLink, from_parent, joint_pose, unit_screw
from modurob.equations.mass_matrix import inertia_times
from modurob.equations.passes import Base, JointState, Passes, Quantity
from modurob.equations.quantities import QUANTITIES
from modurob.equations.vectors import Twist
from modurob.model.reference import reference
from oracles import GROUPS
from oracles.rigid_tree import PinocchioDynamics
from oracles.rough_organisms import case

RELATIVE = 1e-11  # the same formulas with other rounding: sums of some hundred products
ENGINE = 1e-10  # of the largest entry, other formulas
DIFFERENCE = 1e-8  # of the largest entry: central differences of order four over 1e-3
STEP = 1e-3  # [s]
FEW = 3  # states, for which the table has code of its own
BASES = ("fixed", "free")
MODELS = list(product(GROUPS, ("dyad", "physical"), BASES))
# Code of one body takes long to compile: each quantity has it for four models, of four groups of
# kinds and with both sorts of hinges on both bases, since 7 and 4 have no common divisor.
TURNS = 7
every_model = pytest.mark.parametrize(("kinds", "hinges", "base"), MODELS)


def close(actual, expected, scale, relative):
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=relative * scale)


@every_model
def test_table_and_fused_code_of_every_quantity_equal_the_reference(kinds, hinges, base):
    c = next(c for c in (case(kinds, seed, hinges, base, most=4) for seed in (1, 2)) if c.model.nv)
    model = c.model
    q = model.check_configuration(c.q)
    given = {"q": q, "v": c.v, "a": c.x, "tau": c.x}
    fastest = np.abs(c.v).max()
    moved = fastest * np.abs(model.mass_matrix(q)).max()
    cancelling = {  # size of the terms of quantities that are zero for some bodies
        "coriolis_matrix": moved,
        "centroidal_momentum_matrix_rate": moved,
        "joint_screw_rates": fastest,
    }
    turn = MODELS.index((kinds, hinges, base))
    for number, (name, quantity) in enumerate(QUANTITIES.items(), turn):
        arrays = [np.ascontiguousarray(given[each]) for each in quantity.inputs]
        expected = reference(model, name, *arrays)
        scale = np.abs(expected).max(initial=0.0)
        scale = max(scale, cancelling.get(name, 0.0))
        tiers = [DyadTier(model)]
        if number % TURNS == 0:
            tiers.append(FusedTier(model, False))
        none = [None] * (4 - len(arrays))
        for tier in tiers:
            routine = tier.routine(name)
            batch = routine.batch(*arrays, *none, 1)
            close(batch, expected, scale, RELATIVE)
            for each in (routine, tier.routine(name, states=1)):
                one = each.single(*(array[0] for array in arrays), each.empty())
                assert one.tobytes() == batch[0].tobytes(), name
            some = [array[:FEW] for array in arrays]
            few = tier.routine(name, states=FEW).batch(*some, *none, 1)
            assert few.tobytes() == batch[:FEW].tobytes(), name


def about_the_origin(A, c):
    """A centroidal momentum matrix, its angular part about the world's origin."""
    return np.concatenate([A[:3], A[3:] + np.cross(c, A[:3].T).T])


@every_model
def test_centroidal_momentum_matrix_is_that_of_pinocchio(kinds, hinges, base):
    c = next(c for c in (case(kinds, seed, hinges, base) for seed in (3, 4)) if c.model.nv)
    model, engine = c.model, PinocchioDynamics(c.tree, c.model)
    q = model.check_configuration(c.q)
    ours, centers = model.centroidal_momentum_matrix(q), model.center_of_mass(q)
    for k in range(len(q)):
        pin.ccrba(engine.pin, engine.data, engine.q(q[k]), engine.v(c.v[k]))
        theirs = engine.data.Ag[:, engine.columns]
        if base == "free":
            close(ours[k], theirs, np.abs(theirs).max(), ENGINE)
        # a fixed base has a mass here and none there
        theirs = about_the_origin(theirs, engine.data.com[0])
        close(about_the_origin(ours[k], centers[k]), theirs, np.abs(theirs).max(), ENGINE)


def test_rate_of_the_centroidal_momentum_matrix_is_that_of_pinocchio():
    for kinds in GROUPS:
        c = next(
            c for c in (case(kinds, seed, "physical", "free") for seed in (3, 4)) if c.model.nv
        )
        engine = PinocchioDynamics(c.tree, c.model)
        q = c.model.check_configuration(c.q)
        ours = c.model.centroidal_momentum_matrix_rate(q, c.v)
        for k in range(len(q)):
            theirs = pin.dccrba(engine.pin, engine.data, engine.q(q[k]), engine.v(c.v[k]))
            theirs = theirs[:, engine.columns]
            close(ours[k], theirs, np.abs(theirs).max(), ENGINE)


def differenced(function, model, q, v):
    """Central difference of order four along v."""
    at = {k: function(model.integrate(q, k * STEP * v)) for k in (-2, -1, 1, 2)}
    return (at[-2] - 8 * at[-1] + 8 * at[1] - at[2]) / (12 * STEP)


@pytest.mark.parametrize("frame", ["body", "world", "aligned"])
@pytest.mark.parametrize("base", BASES)
def test_jacobian_rate_is_the_rate_of_the_jacobian(base, frame):
    model = mr.examples.crab().model("physical", base=base)
    rng = np.random.default_rng(2)
    q = np.stack([model.random_configuration(rng) for _ in range(3)])
    v = rng.standard_normal((3, model.nv))
    for body in ("m0", "m3", "m5"):
        found = model.jacobian_rate(q, v, body, frame)
        expected = differenced(lambda at, body=body: model.jacobian(at, body, frame), model, q, v)
        close(found, expected, 1.0 + np.abs(expected).max(), DIFFERENCE)


def test_rate_of_the_centroidal_momentum_matrix_of_a_fixed_base():
    model = mr.examples.arm("babac").model("physical")
    rng = np.random.default_rng(2)
    q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
    expected = differenced(model.centroidal_momentum_matrix, model, q, v)
    found = model.centroidal_momentum_matrix_rate(q, v)
    close(found, expected, np.abs(expected).max(), DIFFERENCE)


def test_quantities_refuse_a_wrong_number_of_arrays():
    model = mr.examples.crab().model()
    with pytest.raises(TypeError, match=r"mass_matrix takes 1 arrays \(q\), got 2"):
        model.dynamics.quantity("mass_matrix", model.neutral(), model.neutral())


def test_a_body_without_mass_has_no_centroidal_momentum():
    kind = mr.catalog["backbone"].with_parameters(mass=0.0, inertia=0.0)
    model = mr.Organism.start(kind).model(base="free")
    for call in (model.centroidal_momentum_matrix, model.center_of_mass):
        with pytest.raises(mr.StateError, match="no mass"):
            call(model.neutral())


# -- a quantity from outside -----------------------------------------------------------------------


class HalfVisViva(Passes):
    """Kinetic energy, link by link: all that a new quantity needs."""

    class State(NamedTuple):
        twist: Twist
        energy: Any

    @staticmethod
    def base(link: RigidLink, base: Base) -> Any:
        return HalfVisViva.State(base.twist, HalfVisViva.of(link, base.twist))

    @staticmethod
    def of(link: RigidLink, V: Twist) -> Any:
        return V.power(inertia_times(link, V)) * 0.5

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: Any) -> Any:
        V = from_parent(*joint_pose(link, joint.q), parent.twist).plus(unit_screw(link, joint.v))
        return HalfVisViva.State(V, HalfVisViva.of(link, V))

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: Any, parent: Any) -> Any:
        return None, own, parent._replace(energy=parent.energy + own.energy)

    @staticmethod
    def turn(link: RigidLink, base: Base, own: Any) -> Any:
        return [own.energy], own


@pytest.mark.parametrize("base", BASES)
def test_a_quantity_added_from_outside_runs_on_every_tier(monkeypatch, base):
    quantity = Quantity(("q", "v"), (1,), HalfVisViva, "T", "Kinetic energy. [J]")
    monkeypatch.setitem(QUANTITIES, "half_vis_viva", quantity)
    model = mr.examples.crab().model("physical", base=base)
    rng = np.random.default_rng(4)
    q = np.stack([model.random_configuration(rng) for _ in range(9)])
    v = rng.standard_normal((9, model.nv))
    M = model.mass_matrix(q)
    expected = 0.5 * np.einsum("ki,kij,kj->k", v, M, v)
    for tier in (model, model.compile()):
        found = tier.dynamics.quantity("half_vis_viva", q, v)
        close(found[:, 0], expected, np.abs(expected).max(), RELATIVE)


def test_a_model_with_a_fixed_base_stands_in_the_world_frame():
    pose = np.eye(4)
    pose[0, 3] = 1.0
    with pytest.raises(mr.StateError, match="base_pose"):
        dataclasses.replace(mr.examples.crab().model(), base_pose=pose)


class Greedy(Passes):
    """Writes a scalar after it was read for the last time; no other one may suffer."""

    class State(NamedTuple):
        kept: Any
        spent: Any

    @staticmethod
    def base(link: RigidLink, base: Base) -> Any:
        return Greedy.State(1, link.mass)

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: Any) -> Any:
        return Greedy.State(parent.kept * 2, link.mass)

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: Any, parent: Any) -> Any:
        return None, own._replace(kept=own.spent * 2, spent=own.spent * 0 + 7), parent

    @staticmethod
    def turn(link: RigidLink, base: Base, own: Any) -> Any:
        return [own.kept] * 6, own

    @staticmethod
    def back(link: RigidLink, joint: JointState, own: Any, parent: Any) -> Any:
        return own.kept, own


def test_code_without_loops_is_made_for_all_but_the_largest_quantities():
    large = {name for name, quantity in QUANTITIES.items() if not quantity.straight_line}
    derivatives = {"inverse_dynamics_derivatives", "forward_dynamics_derivatives"}
    assert large == {"closed_form_matrices", *derivatives}


@pytest.mark.parametrize(("shape", "says"), [((2,), "1 numbers"), (("nv",), None)])
def test_what_is_written_late_destroys_nothing_and_sizes_are_checked(monkeypatch, shape, says):
    if says is None:
        monkeypatch.setitem(QUANTITIES, "greedy", Quantity(("q",), shape, Greedy, "g", "A test."))
        model = mr.examples.crab().model("physical", base="free")
        expected = reference(model, "greedy", model.neutral())
        found = model.dynamics.quantity("greedy", model.neutral())
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        return
    monkeypatch.setitem(QUANTITIES, "greedy", Quantity(("q", "v"), shape, HalfVisViva, "g", "-"))
    model = mr.examples.crab().model()
    with pytest.raises(TypeError, match=says):
        model.dynamics.quantity("greedy", model.neutral(), np.zeros(model.nv))


def test_quantities_name_what_they_do_not_take():
    model = mr.examples.crab().model()
    with pytest.raises(mr.UnknownNameError, match="no quantity 'mass'"):
        model.dynamics.quantity("mass", model.neutral())
    with pytest.raises(mr.StateError, match="leave external out"):
        model.dynamics.quantity("mass_matrix", model.neutral(), external={"m0": np.zeros(6)})


@pytest.mark.parametrize("base", ["fixed", ["px", "rz"]])
def test_momentum_matrices_keep_their_digits_far_away(base):
    pose = np.eye(4)
    pose[:3, 3] = (5e5, 5e6, 300.0)
    near = away = mr.examples.crab().model("physical", base=base)
    rng = np.random.default_rng(0)
    q, v = near.random_configuration(rng), rng.standard_normal(near.nv)
    there = q.copy()
    if base == "fixed":
        away = mr.examples.crab().with_base_pose(pose).model("physical")
    else:
        there[0] += 5e6
    for name, arrays in (
        ("centroidal_momentum_matrix", ()),
        ("centroidal_momentum_matrix_rate", (v,)),
        ("jacobian_rate", (v, "m3")),
    ):
        expected = getattr(near, name)(q, *arrays)
        found = getattr(away, name)(there, *arrays)
        close(found, expected, np.abs(expected).max(), 1e-8)  # one part in 1e9 of 5e6 m is lost
