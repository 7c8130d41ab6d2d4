"""Parts of `verify`: a check that cannot fail is worth nothing."""

import dataclasses
import sys

import numpy as np
import pytest

import modurob as mr
from modurob import examples
from modurob.model import ModelOptions
from modurob.verification import engines, identities, lagrange, verify
from modurob.verification.check import FAILED, LEFT_OUT, PASSED, CheckCase, CheckValue, relative

EXACT = 1e-12  # a few roundings


def case_of(organism, hinges="physical", base="fixed", states=2):
    model, rng = organism.model(hinges, base), np.random.default_rng(1)
    q = np.stack([model.random_configuration(rng) for _ in range(states)])
    v, a = rng.standard_normal((2, states, model.nv))
    return CheckCase(organism, ModelOptions(hinges, base), model, q, v, a, rng)


# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "at_most", "at_least"),
    [(0.9, True, False), (1.0, True, True), (1.1, False, True), (np.nan, False, False)],
)
def test_a_number_keeps_its_limit_when_it_is_at_it(found, at_most, at_least):
    assert CheckValue(found, 1.0, "").holds is at_most
    assert CheckValue(found, 1.0, "", True).holds is at_least


def test_deviations_are_relative_to_the_largest_number_or_to_a_scale():
    assert relative([1.0, 2.0], [1.0, -4.0]) == 6 / 4
    assert relative([1.0, 2.0], [1.0, -4.0], 12.0) == 0.5
    assert relative([1.0, 2.0], [1.0, -4.0], 3.0) == 6 / 4
    assert relative([0.0], [0.0]) == 0
    assert relative([], []) == 0
    assert relative([1e-200], [0.0]) > 1


def test_differences_are_of_order_eight():
    """Powers up to the eighth have no error; that of the ninth is 9!/630 h^8."""
    h = identities.STEP_S
    for power in range(9):
        found = identities.slope(lambda t, power=power: np.array([(t / h) ** power]))
        assert found[0] * h == pytest.approx(1.0 if power == 1 else 0.0, abs=EXACT)
    ninth = identities.slope(lambda t: (t / h) ** 9) * h
    assert abs(ninth) == pytest.approx(576)
    assert 1e-3 <= h <= 1e-2  # larger: light links turn too far; smaller: digits are lost


def test_columns_are_derivatives_by_each_component():
    A = np.arange(6.0).reshape(2, 3)
    found = identities.columns(lambda rows: rows @ A.T, 3)
    np.testing.assert_allclose(found, A, atol=EXACT)


def test_the_size_of_a_torque_is_that_of_its_largest_term():
    M, one = np.array([[1.0, -4.0]]), np.ones(2)
    assert identities._size(M, 3 * one, one, one) == 12
    assert identities._size(M, one, -3 * one, one) == 36  # speeds count twice
    assert identities._size(M, one, one, -50 * one) == 50


def test_the_smallest_eigenvalue_does_not_depend_on_units():
    M = np.array([[4.0, 3.0], [3.0, 9.0]])
    assert identities._smallest(M) == pytest.approx(0.5)
    units = np.diag([1e-3, 1e3])
    assert identities._smallest(units @ M @ units) == pytest.approx(0.5)
    assert identities._smallest(np.stack([M, np.eye(2)])) == pytest.approx(0.5)


def test_slow_velocities_are_those_of_a_chain_that_turns_about_as_fast():
    case = case_of(mr.examples.snake(5))
    np.testing.assert_allclose(case.slow, case.v / 2)  # four joints
    one = case_of(mr.examples.snake(2))
    np.testing.assert_array_equal(one.slow, one.v)


# -- states ----------------------------------------------------------------------------------------


@pytest.fixture
def cases(monkeypatch):
    """The cases that `verify` makes, in place of all checks."""
    found = []

    def look(case):
        found.append(case)
        return CheckValue(0.0, 1.0, "")

    monkeypatch.setattr(sys.modules[verify.__module__], "CHECKS", {"look": look})
    return found


def test_random_states_move_neither_too_fast_nor_too_slowly(cases):
    report = verify(mr.examples.crab(), "physical", states=50, seed=3)
    (case,) = cases
    assert case.q.shape == case.v.shape == case.a.shape == (50, 6)
    assert np.abs(case.v).min() >= 0.5
    assert 0.95 < np.abs(case.v).max() <= 1.0
    assert 0.3 < (case.v > 0).mean() < 0.7
    assert case.a.std() == pytest.approx(1, abs=0.2)
    assert len(np.unique(case.q, axis=0)) == 50
    assert report.title == "physical hinges, base fixed, nv = 6, 50 random states"


def test_states_are_those_of_the_seed_and_eight_unless_told(cases):
    for seed in (0, 0, 1):
        verify(mr.examples.crab(), seed=seed)
    verify(mr.examples.crab())
    first, same, other, default = (case.q for case in cases)
    np.testing.assert_array_equal(first, same)
    np.testing.assert_array_equal(first, default)
    assert not np.any(first == other)
    assert len(first) == 8
    one = verify(mr.examples.crab(), base=("px", "py"), states=1)
    assert one.title == "dyad hinges, base px,py, nv = 5, 1 random state"


def test_a_report_has_the_number_the_limit_and_the_side_of_it(monkeypatch):
    given = {
        "low": CheckValue(2.0, 1.0, "a", True),
        "high": CheckValue(0.5, 1.0, "b"),
        "over": CheckValue(2.0, 1.0, "c"),
    }
    checks = {name: lambda case, value=value: value for name, value in given.items()}
    monkeypatch.setattr(sys.modules[verify.__module__], "CHECKS", checks)
    seen = []
    report = verify(mr.examples.crab(), progress=seen.append)
    assert [dataclasses.astuple(check) for check in report.checks] == [
        ("low", PASSED, "a", 2.0, ">=", 1.0),
        ("high", PASSED, "b", 0.5, "<=", 1.0),
        ("over", FAILED, "c", 2.0, "<=", 1.0),
    ]
    assert seen == [*checks]
    for value in (report, report.checks[0]):
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.note = ""


def test_memory_that_is_asked_for_grows_with_the_square_of_the_velocities(cases, monkeypatch):
    """40 square matrices in double precision for a state."""
    monkeypatch.setattr("modurob.checks.LARGEST_BYTES", 8 * 40 * 4**2 * 10)
    for joints, states in ((4, 10), (2, 40)):
        snake = mr.examples.snake(joints + 1)
        verify(snake, states=states)
        with pytest.raises(mr.SizeError, match=f"checks of {states + 1} states"):
            verify(snake, states=states + 1)


def test_at_least_one_state_is_needed():
    with pytest.raises(mr.StateError, match="states must be at least 1, got 0"):
        verify(mr.examples.crab(), states=0)


# -- checks ----------------------------------------------------------------------------------------


def test_differences_of_large_models_are_left_out(monkeypatch):
    case = case_of(mr.examples.snake(3))
    monkeypatch.setattr(identities, "MOST_DIFFERENCES", 2)
    assert identities.derivatives_are_slopes(case).holds
    monkeypatch.setattr(identities, "MOST_DIFFERENCES", 1)
    with pytest.raises(identities.LeftOut, match="too large: 2 velocities, differences up to 1"):
        identities.derivatives_are_slopes(case)


def test_the_fused_tier_is_checked_up_to_its_size(monkeypatch):
    case = case_of(mr.examples.snake(3))
    for most, tiers in ((2, "dyads, fused"), (1, "dyads")):
        monkeypatch.setattr(identities, "FUSED_JOINTS", most)
        found = identities.tiers_agree(case)
        assert found.holds
        assert found.note == f"compiled ({tiers}) against plain Python"


@pytest.mark.parametrize(
    ("method", "check"),
    [
        ("forward_dynamics_derivatives", identities.derivatives_are_slopes),
        ("inverse_dynamics_derivatives", identities.derivatives_are_slopes),
        ("forward_dynamics", identities.forward_undoes_inverse),
        ("coriolis_matrix", identities.rate_of_mass_matrix_is_skew),
        ("inverse_dynamics", identities.energy_rate_is_power),
        ("closed_form", identities.closed_form_is_recursion),
        ("closed_form", identities.formulas_are_numbers),
    ],
)
@pytest.mark.parametrize("part", [0, -1])
def test_an_error_in_the_sixth_digit_of_either_part_fails(monkeypatch, method, check, part):
    """Of the first or the last matrix, where there are several."""
    case = case_of(mr.examples.snake(4).with_parameters(viscous=0.1))
    assert check(case).holds
    original = getattr(mr.Model, method)

    def spoiled(model, *args):
        found = original(model, *args)
        if isinstance(found, np.ndarray):
            return found * (1 + 1e-6)
        parts = list(found)
        parts[part] = parts[part] * (1 + 1e-6)
        return type(found)(*parts)

    monkeypatch.setattr(mr.Model, method, spoiled)
    assert not check(case).holds


@pytest.mark.parametrize(
    "method",
    ["inverse_dynamics", "mass_matrix", "inverse_dynamics_derivatives", "forward_dynamics"],
)
def test_compiled_code_that_is_off_in_the_sixth_digit_is_not_the_recursion(monkeypatch, method):
    monkeypatch.setattr(identities, "FUSED_JOINTS", 0)  # quicker
    case = case_of(mr.examples.snake(3))
    assert identities.tiers_agree(case).holds
    original = getattr(mr.Model, method)

    def spoiled(model, *args):
        found = original(model, *args)
        if isinstance(found, np.ndarray):
            return found * (1 + 1e-6)
        return type(found)(*(x * (1 + 1e-6) for x in found))

    monkeypatch.setattr(mr.Model, method, spoiled)
    assert not identities.tiers_agree(case).holds


def test_compiled_code_of_a_singular_model_is_compared_without_accelerations(monkeypatch):
    """Points on the axes of a double pendulum: M is singular with dyad hinges."""
    monkeypatch.setattr(identities, "FUSED_JOINTS", 0)  # quicker
    assert identities.tiers_agree(case_of(mr.examples.double_pendulum(), "dyad")).holds


def test_models_of_up_to_24_joints_are_compiled_as_a_whole_too():
    assert identities.FUSED_JOINTS == 24


def test_a_matrix_is_singular_without_inertia_of_a_joint_or_of_a_motion_of_several(monkeypatch):
    model = mr.examples.snake(3).model("physical")
    for M, singular in (
        (np.eye(2), False), (np.diag([1.0, 0.0]), True), (np.ones((2, 2)), True),
    ):  # fmt: skip
        with np.errstate(all="ignore"):
            assert identities._is_singular(model, M) is singular
    monkeypatch.setattr(identities, "_smallest", lambda _: identities.DEFINITE)
    assert not identities._is_singular(model, np.eye(2))  # as in the check of M


def test_a_mass_matrix_that_is_not_symmetric_or_has_empty_rows_fails(monkeypatch):
    case, original = case_of(mr.examples.snake(4)), mr.Model.mass_matrix
    first, second, _ = case.model.joint_names
    for factor in (np.triu(np.full((3, 3), 1e-6), 1), np.tril(np.full((3, 3), 1e-6), -1)):
        spoiled = lambda *given, factor=factor: original(*given) * (1 + factor)  # noqa: E731
        monkeypatch.setattr(mr.Model, "mass_matrix", spoiled)
        assert not identities.mass_matrix_is_symmetric(case).holds
    for factor, empty in (([0, 1, 1], first), ([0, 0, 1], f"{first}, {second}")):
        spoiled = lambda *given, d=factor: original(*given) * np.outer(d, d)  # noqa: E731
        monkeypatch.setattr(mr.Model, "mass_matrix", spoiled)
        check = identities.mass_matrix_is_positive(case)
        assert (check.holds, check.note) == (False, f"nothing has inertia about {empty}")
    monkeypatch.setattr(mr.Model, "mass_matrix", lambda *_: np.tile(np.eye(3), (2, 1, 1)))
    assert identities.mass_matrix_is_positive(case).found == 1  # a kilogram square meter each


def test_errors_of_rates_are_shares_of_the_largest_terms(monkeypatch):
    """C and the energy are off by a known rate: 1e-3 of the identity, and 1e-3 q of a joint."""
    case = case_of(mr.examples.snake(4), states=3)
    case = case._replace(v=np.random.default_rng(2).standard_normal((3, 3)))
    model, off = case.model, 1e-3
    coriolis, energy = mr.Model.coriolis_matrix, mr.Model.energy
    monkeypatch.setattr(
        mr.Model, "coriolis_matrix", lambda *given: coriolis(*given) + off * np.eye(3)
    )
    monkeypatch.setattr(mr.Model, "energy", lambda m, q, v: energy(m, q, v) + off * q[..., 1])
    speeds = case.v / np.sqrt(3)  # of three joints
    size = np.abs(model.mass_matrix(case.q)).max() * np.abs(speeds).max()
    found = identities.rate_of_mass_matrix_is_skew(case)
    assert found.found == pytest.approx(4 * off / max(size, 2 * off), rel=1e-4)
    tau = model.inverse_dynamics(case.q, speeds, case.a)
    size = max(sum(np.abs(x)) for x in tau * speeds)  # powers of joints cancel each other
    found = identities.energy_rate_is_power(case)
    assert found.found == pytest.approx(off * np.abs(speeds[:, 1]).max() / size, rel=1e-4)


@pytest.mark.parametrize("engine", [engines.Pinocchio, engines.Mujoco])
def test_engines_have_armatures_and_their_check_leaves_out_springs_and_friction(engine):
    drives = {"stiffness": 3.0, "viscous": 0.2, "coulomb": 0.3}
    arm = mr.examples.arm("bac").with_parameters(**drives, rotor_inertia=1e-5, gear_ratio=50)
    turning = mr.examples.snake(3).with_parameters(limits=(None, None))  # as often as it likes
    for organism, base in ((turning, "fixed"), (arm, "fixed"), (arm, "free")):
        case = case_of(organism, base=base)
        assert case.model.stiffness.any() == case.model.armature.any() == (organism is arm)
        found = engines.compared(engine, "name", case)
        assert found.holds, found
        assert found.note == "name: M and inverse dynamics"
    heavy = case._replace(model=dataclasses.replace(case.model, gravity=np.array([0.2, 0.1, -9.8])))
    assert engines.compared(engine, "", heavy).holds
    joints = case.model.joint_slice_v
    original = mr.Model.mass_matrix

    def spoiled(model, q):
        M = original(model, q)
        M[..., joints, joints] *= 1 + 1e-6
        return M

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mr.Model, "mass_matrix", spoiled)
        assert not engines.compared(engine, "", case).holds


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_accelerations_of_pinocchio_are_ours(base):
    none = dict.fromkeys(("viscous", "coulomb"), 0.0)
    arm = mr.examples.arm("bac").with_parameters(**none, rotor_inertia=1e-5, gear_ratio=50)
    case = case_of(arm, base=base)
    peer = engines.Pinocchio(case.model)
    for q, v, tau in zip(case.q, case.v, case.a, strict=True):
        ours = case.model.forward_dynamics(q, v, tau)
        np.testing.assert_allclose(
            peer.forward_dynamics(q, v, tau), ours, atol=1e-9 * np.abs(ours).max()
        )


def test_what_cannot_be_written_for_an_engine_is_left_out(monkeypatch):
    def never(*_):
        raise mr.ModurobError("too odd a robot")

    monkeypatch.setattr(engines, "write_urdf", never)
    monkeypatch.setattr(engines, "MujocoModel", never)
    for engine in (engines.Pinocchio, engines.Mujoco):
        with pytest.raises(identities.LeftOut, match="too odd a robot"):
            engines.compared(engine, "", case_of(mr.examples.snake(2)))


@pytest.mark.parametrize(
    ("engine", "package", "install"),
    [(engines.Pinocchio, "pinocchio", "pin"), (engines.Mujoco, "mujoco", "'modurob[mujoco]'")],
)
def test_an_engine_that_is_not_installed_is_left_out(monkeypatch, engine, package, install):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(identities.LeftOut) as left:
        engine(mr.examples.snake(2).model())
    assert str(left.value) == f"not installed (pip install {install})"


def test_joints_are_driven_while_momentum_is_checked(monkeypatch):
    torques = []

    def run(model, q, v, duration, law, *rest, **options):
        torques.append(law(0.0, q, v))
        return type("Run", (), {"momentum": np.ones((2, 6))})

    monkeypatch.setattr(identities, "simulate", run)
    identities.momentum_is_conserved(case_of(mr.examples.snake(4)))
    assert torques[0].shape == (9,)
    assert not torques[0][:6].any()
    assert torques[0][6:].all()


def test_momentum_is_checked_at_speeds_that_do_not_grow_with_the_number_of_joints(monkeypatch):
    """The root of the sum of squares is 1 on average: a long chain adds up its joints' speeds."""
    speeds = []

    def run(model, q, v, *rest, **options):
        speeds.append(np.linalg.norm(v))
        return type("Run", (), {"momentum": np.ones((2, 6))})

    monkeypatch.setattr(identities, "simulate", run)
    for count in (3, 12):
        identities.momentum_is_conserved(case_of(mr.examples.snake(count)))
    assert 0.5 < min(speeds) < max(speeds) < 1.5


def test_a_base_that_is_a_virtual_joint_cannot_float():
    with pytest.raises(identities.LeftOut, match="its base is a virtual joint"):
        identities.momentum_is_conserved(case_of(mr.examples.crane()))


def test_without_a_joint_there_is_nothing_to_verify():
    with pytest.raises(mr.StateError, match="nothing to verify: the organism has no joint"):
        verify(mr.examples.snake(1))


def test_drift_of_momentum_is_counted_from_the_start(monkeypatch):
    momentum = np.ones((3, 6)) + 1e-6 * np.array([[0], [1], [-1]])
    found = type("Run", (), {"momentum": momentum})
    monkeypatch.setattr(identities, "simulate", lambda *_, **__: found)
    check = identities.momentum_is_conserved(case_of(mr.examples.snake(3)))
    assert check.found == pytest.approx(1e-6, rel=1e-3)
    assert not check.holds


def test_limits_of_slow_checks_are_told(monkeypatch):
    case = case_of(mr.examples.snake(62), states=1)
    with pytest.raises(identities.LeftOut, match="61 velocities, differences up to 60"):
        identities.derivatives_are_slopes(case)
    monkeypatch.setattr(identities, "build_equations", lambda *_: (_ for _ in ()).throw(SIZE))
    with pytest.raises(identities.LeftOut, match="may have over 50,000 terms"):
        identities.formulas_are_numbers(case)


SIZE = mr.SizeError("too many terms")


@pytest.mark.parametrize("hinges", ["physical", "dyad"])
def test_momentum_is_checked_of_models_without_forward_dynamics_too(monkeypatch, hinges):
    """Points on the axes of a double pendulum: M is singular with dyad hinges."""
    organism = mr.examples.snake(3) if hinges == "physical" else mr.examples.double_pendulum()
    case = case_of(organism, hinges)
    found = identities.momentum_is_conserved(case)
    assert found.holds
    assert found.note == (
        "drift over 0.5 s, floating, driven joints"
        if hinges == "physical"
        else "its rate against the wrench on the base"
    )
    original = mr.Model.momentum

    def spoiled(model, q, v):
        return original(model, q, v) + 1e-4 * v[..., -1:]

    monkeypatch.setattr(mr.Model, "momentum", spoiled)
    assert not identities.momentum_is_conserved(case).holds


def test_reports_count_their_verdicts():
    report = verify(mr.examples.double_pendulum(), "dyad", states=1)
    verdicts = [check.verdict for check in report.checks]
    for verdict in (FAILED, LEFT_OUT):
        assert report.count(verdict) == verdicts.count(verdict) > 0
    assert not report.passed


@pytest.mark.parametrize(
    "organism",
    [
        examples.double_pendulum(l1=0.3, l2=0.7, m2=2.0),
        examples.double_pendulum(l1=0.7, l2=0.3),
        examples.crane(m1=2.0, l=1.5),
    ],
    ids=["pendulum", "long first", "crane"],
)
def test_pendulum_and_crane_are_compared_with_lagranges_equations(organism):
    report = verify(organism, "physical", states=4)
    (check,) = [check for check in report.checks if check.name == "Lagrange"]
    assert check.verdict == PASSED, check
    model = organism.model("physical")
    equations = lagrange.printed(organism, model)
    heavier = organism.with_parameters("m2", mass=3.0).model("physical")
    q, v = np.array([0.4, 0.9]), np.array([1.0, -2.0])
    assert equations is not None
    assert np.abs(heavier.forward_dynamics(q, v, [0, 0]) - equations(q, v)).max() > 1e-3


@pytest.mark.parametrize(
    "organism",
    [examples.double_pendulum(l1=0.3, l2=0.7, m2=2.0), examples.crane(m1=2.0, l=1.5)],
    ids=["pendulum", "crane"],
)
def test_solutions_of_lagranges_equations_keep_the_energy(organism):
    model = organism.model("physical")
    equations = lagrange.printed(organism, model)
    assert equations is not None
    start, rate, times = np.array([0.4, 0.9]), np.array([0.5, -1.0]), np.linspace(0, 1, 401)
    q, v, a = equations.solution(start, rate, times)
    np.testing.assert_allclose((q[0], v[0]), (start, rate), rtol=EXACT)
    two = equations.solution(start, rate, times[[0, -1]])
    np.testing.assert_allclose(two[0, -1], q[-1], rtol=1e-10)
    energy = model.energy(q, v)
    np.testing.assert_allclose(
        energy, energy[0], rtol=0, atol=1e-11 * np.ptp(model.kinetic_energy(q, v))
    )
    np.testing.assert_allclose(a, model.forward_dynamics(q, v, np.zeros((401, 2))), atol=1e-9)
    mean = (v[:-2] + 4 * v[1:-1] + v[2:]) / 6  # Simpson's rule
    np.testing.assert_allclose((q[2:] - q[:-2]) / (2 / 400), mean, atol=1e-5)


@pytest.mark.parametrize("organism", [examples.double_pendulum(), examples.crane()])
def test_accelerations_that_are_off_in_the_seventh_digit_are_not_those_of_lagrange(organism):
    case = case_of(organism)
    equations = lagrange.printed(organism, case.model)
    assert equations is not None
    assert lagrange.compared(equations, case).holds
    off = equations._replace(accelerations=lambda q, v: equations(q, v) * (1 + 1e-7))
    check = lagrange.compared(off, case)
    assert check.found == pytest.approx(1e-7, rel=1e-3)
    assert not check.holds


def test_no_other_body_is_taken_for_the_pendulum():
    snake = examples.snake(3)
    assert lagrange.printed(snake, snake.model("physical")) is None
    pendulum = examples.double_pendulum()
    assert lagrange.printed(pendulum, pendulum.model("dyad")) is None
    rubbed = pendulum.with_parameters(viscous=0.1)
    assert lagrange.printed(rubbed, rubbed.model("physical")) is None
