"""Laws, filter and D-H synthesis in C equal those in Python, step for step."""

from __future__ import annotations

import ctypes
import re
from ctypes import byref, c_int
from functools import cache

import numpy as np
import pytest

import modurob as mr
from modurob.control.pid import IndependentPid
from modurob.equations.links import SLIP_SPEED
from modurob.firmware import FOLDER
from modurob.modules.dh import axis_pair, characterize
from modurob.organism.dh_table import chain_table
from modurob.reference import Reference
from modurob.spatial import se3, so3
from oracles.runtime import port_index

SAMPLES, DT = 1000, 2e-3
SAME = 1e-9  # of the largest number of a run
CHAIN = 1e-13  # [m, rad, kg, kg m^2]: some ten products of poses


@cache
def arm() -> mr.Organism:
    return mr.examples.arm("bac").with_parameters(
        viscous=0.3, coulomb=0.1, rotor_inertia=1e-5, gear_ratio=30.0
    )


@cache
def model() -> mr.Model:
    return arm().model()


@cache
def motion() -> tuple[np.ndarray, np.ndarray, list[Reference]]:
    """States near a reference that has one jump."""
    rng, n = np.random.default_rng(5), model().nv
    t = DT * np.arange(SAMPLES)[:, None]
    phase = np.arange(n)
    q = 0.6 * np.sin(2 * t + phase) + 0.3 * (t > 0.9)
    v, a = 1.2 * np.cos(2 * t + phase), -2.4 * np.sin(2 * t + phase)
    noise = 0.05 * rng.standard_normal((2, SAMPLES, n))
    return q + noise[0], v + noise[1], [Reference(*each) for each in zip(q, v, a, strict=True)]


@pytest.fixture
def table(double_runtime):
    return double_runtime.table_of(arm(), "dyad")


def filled(struct, **arrays):
    for name, values in arrays.items():
        if np.ndim(values):
            getattr(struct, name)[: len(values)] = [float(x) for x in values]
        else:
            setattr(struct, name, float(values))
    return struct


def run(runtime, law, command) -> None:
    """Compare the torques of a Python law and of `command(k, q, v, reference)` over all samples."""
    q, v, aims = motion()
    law.reset(0.0, q[0], v[0])
    expected, found = [], []
    for k, aim in enumerate(aims):
        expected.append(law.command(k * DT, q[k], v[k], aim))
        given = filled(runtime.types.Reference(), q=aim.q, v=aim.v, a=aim.a)
        found.append(command(runtime.array(q[k]), runtime.array(v[k]), byref(given)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=SAME * np.abs(expected).max())


@pytest.mark.parametrize("sample_time", [None, DT])
def test_computed_torque(double_runtime, table, sample_time):
    n, runtime = model().nv, double_runtime
    law = mr.control.ComputedTorque(model(), k0=90.0, k1=19.0, sample_time=sample_time)
    mine, tau = filled(runtime.types.ComputedTorque(), k0=law.k0, k1=law.k1), (runtime.real * n)()
    runtime.lib.mr_linearization_init(
        byref(mine.inverse), byref(table), runtime.work, runtime.real(sample_time or 0.0)
    )

    def command(q, v, aim):
        given = (byref(mine), byref(table), runtime.work, q, v, aim, tau)
        assert runtime.lib.mr_computed_torque_command(*given) == 0
        return tau[:]

    run(runtime, law, command)


def test_pd_with_gravity_compensation(double_runtime, table):
    n, runtime = model().nv, double_runtime
    law = mr.control.PdGravity(model(), kp=20.0, kd=4.0)
    mine, tau = filled(runtime.types.PdGravity(), kp=law.kp, kd=law.kd), (runtime.real * n)()

    def command(q, v, aim):
        given = (byref(mine), byref(table), runtime.work, q, v, aim, tau)
        assert runtime.lib.mr_pd_gravity_command(*given) == 0
        return tau[:]

    run(runtime, law, command)


@pytest.mark.parametrize("linearized", [False, True])
def test_pid_with_filter_limits_and_anti_windup(double_runtime, table, linearized):
    n, runtime = model().nv, double_runtime
    options = {"filter_time": 0.01, "torque_limit": 12.0, "sample_time": DT}
    if linearized:
        law = mr.control.PidLinearized(model(), settling_time=0.5, integral_limit=40.0, **options)
    else:
        law = IndependentPid(model(), kp=60.0, ki=40.0, kd=6.0, integral_limit=5.0, **options)
    pid = law.pid
    mine = filled(
        runtime.types.Pid(), kp=pid.kp, ki=pid.ki, kd=pid.kd, share=pid.share,
        integral_limit=pid.integral_limit, filter_time=pid.filter_time,
    )  # fmt: skip
    inverse, u, tau = runtime.types.Linearization(), (runtime.real * n)(), (runtime.real * n)()
    runtime.lib.mr_linearization_init(byref(inverse), byref(table), runtime.work, runtime.real(DT))

    def command(q, v, aim):
        runtime.lib.mr_pid_output(byref(mine), n, runtime.real(DT), q, v, aim, u)
        if linearized:
            a = [x + y for x, y in zip(aim._obj.a, u, strict=False)]
            given = (byref(inverse), byref(table), runtime.work, q, v, runtime.array(a), tau)
            assert runtime.lib.mr_linearized(*given) == 0
        else:
            tau[:] = u[:]
        runtime.lib.mr_pid_limit(byref(mine), n, runtime.array([12.0] * n), tau)
        return tau[:]

    run(runtime, law, command)
    q, v, aims = motion()
    assert abs(np.array([law.command(DT * SAMPLES, q[-1], v[-1], aims[-1])])).max() <= 12.0


def test_a_law_refuses_joints_without_a_motor(double_runtime):
    soft = arm().with_parameters("m1", stiffness=30.0, damping=0.2)
    table, runtime = double_runtime.table_of(soft, "dyad"), double_runtime
    n = table.joint_count
    numbers = [runtime.array(np.zeros(n)) for _ in range(4)]
    inverse = runtime.types.Linearization()
    given = (byref(inverse), byref(table), runtime.work, *numbers)
    assert runtime.lib.mr_linearized(*given) == -18
    stiff = runtime.table_of(soft, "dyad", stiff=1)
    assert stiff.joint_count == n - 1
    assert runtime.lib.mr_linearized(byref(inverse), byref(stiff), runtime.work, *numbers) == 0


def test_the_filter(double_runtime):
    organism = arm().with_parameters(coulomb=0.0)
    body, runtime, rng = organism.model(), double_runtime, np.random.default_rng(2)
    table, n = runtime.table_of(organism, "dyad"), body.nv
    theirs = mr.estimation.Ekf(body, DT, integrator="rk4", substeps=2)
    mine = runtime.types.Ekf()
    runtime.lib.mr_ekf_init(byref(mine), byref(table), runtime.real(DT))
    mine.substeps = 2
    for k in range(SAMPLES):
        tau = np.sin(0.01 * k + np.arange(n))
        y = 0.5 * np.sin(0.02 * k + np.arange(n)) + 0.01 * rng.standard_normal(n)
        y[rng.random(n) < 0.1] = np.nan
        theirs.predict(tau)
        theirs.correct(y)
        given = (byref(mine), byref(table), runtime.work)
        assert runtime.lib.mr_ekf_predict(*given, runtime.array(tau)) == 0
        assert runtime.lib.mr_ekf_correct(*given, runtime.array(y)) == 0
        for found, expected in (
            (mine.q[:n], theirs.q),
            (mine.v[:n], theirs.v),
            (mine.P[: 4 * n * n], theirs.P.ravel()),
        ):
            np.testing.assert_allclose(found, expected, rtol=0, atol=SAME * np.abs(expected).max())


def test_denavit_hartenberg_rows_of_a_chain(double_runtime):
    runtime = double_runtime
    kinds = [mr.catalog[f"giusti_{letter}"] for letter in "babac"]
    ports = [("in", "out")] * 5
    pairs = [characterize(kind, *ends) for kind, ends in zip(kinds, ports, strict=False)]
    expected = chain_table(pairs)
    given = (runtime.types.Pair * len(pairs))(
        *(runtime.pair(kind, *(port_index(kind, end) for end in ends))
          for kind, ends in zip(kinds, ports, strict=False))
    )  # fmt: skip
    rows, count, root = (runtime.types.DhRow * 8)(), c_int(), runtime.types.Pose()
    assert runtime.lib.mr_dh_chain(given, len(pairs), rows, byref(count), byref(root)) == 0
    assert count.value == len(expected.rows)
    for mine, row, link in zip(rows, expected.rows, expected.links, strict=False):
        numbers = (mine.a, mine.alpha, mine.d, mine.theta, mine.n, mine.p, mine.turn)
        np.testing.assert_allclose(numbers, (*row[:6], row.turn), rtol=0, atol=CHAIN)
        assert mine.mass == pytest.approx(link.solid.mass, rel=CHAIN)
        np.testing.assert_allclose(mine.center[:], link.solid.center, rtol=0, atol=CHAIN)
        inertia = np.reshape(mine.inertia[:], (3, 3))
        np.testing.assert_allclose(inertia, link.solid.inertia, rtol=0, atol=CHAIN)
    (first,) = expected.roots.values()
    np.testing.assert_allclose(np.reshape(root.R[:], (3, 3)), first[:3, :3], rtol=0, atol=CHAIN)
    np.testing.assert_allclose(root.p[:], first[:3, 3], rtol=0, atol=CHAIN)


def test_the_common_normal_is_that_of_python(double_runtime):
    rng, runtime = np.random.default_rng(4), double_runtime
    names = ("a", "alpha", "p", "n", "before", "after")
    fields = [(name, runtime.real) for name in names]
    AxisPair = type("AxisPair", (ctypes.Structure,), {"_fields_": fields})
    for k in range(60):
        w = rng.standard_normal(3)
        w = {0: w, 1: w * [0, 0, 1], 2: np.array([np.pi, 0, 0])}[k % 3]
        T = se3.pose(so3.exp(w), rng.standard_normal(3) * (k % 4 > 0))
        mine, pose = AxisPair(), runtime.types.Pose()
        pose.R[:], pose.p[:] = T[:3, :3].ravel().tolist(), T[:3, 3].tolist()
        runtime.lib.mr_axes(byref(pose), byref(mine))
        found = np.array([getattr(mine, name) for name in names])
        difference = found - axis_pair(T)[:6]
        difference[[1, 4, 5]] = np.angle(np.exp(1j * difference[[1, 4, 5]]))  # pi is -pi
        np.testing.assert_allclose(difference, 0, rtol=0, atol=1e-11)


def test_dry_friction_in_c_is_rounded_off_at_the_same_speed():
    source = (FOLDER / "src" / "control.c").read_text()
    defined = re.search(r"#define SLIP MR_C\((\S+)\)", source)
    assert defined is not None
    assert float(defined[1]) == SLIP_SPEED
