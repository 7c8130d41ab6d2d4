"""The thesis' pendulum and crane, term for term, and a pendulum of six."""

import sympy
from sympy import Matrix, cos, sin, symbols

from modurob import examples

l1, l2, m1, m2, g = symbols("l1 l2 m1 m2 g")
q1, q2, dq1, dq2, ddq1, ddq2 = symbols("q1 q2 dq1 dq2 ddq1 ddq2")
PENDULUM = examples.double_pendulum(l1=1.5, l2=2.0, m1=3.0, m2=4.0).equations("physical")
CRANE = examples.crane(m1=1.0, m2=2.0, l=5.0).equations("physical")


def same(found, expected):
    """Term for term: both sides as expanded sums, nothing simplified."""
    assert found == sympy.ImmutableMatrix(expected.applyfunc(sympy.expand)), found


def test_the_double_pendulum_is_the_reference_term_for_term():
    same(
        PENDULUM.M,
        Matrix(
            [
                [l1**2 * (m1 + m2) + l2**2 * m2 + 2 * l1 * l2 * m2 * cos(q2),
                 l2 * m2 * (l2 + l1 * cos(q2))],
                [l2 * m2 * (l2 + l1 * cos(q2)), l2**2 * m2],
            ]
        ),
    )  # fmt: skip
    same(PENDULUM.C, l1 * l2 * m2 * sin(q2) * Matrix([[-2 * dq2, -dq2], [dq1 - dq2, dq1]]))
    same(
        PENDULUM.N,
        g * Matrix([l2 * m2 * sin(q1 + q2) + l1 * (m1 + m2) * sin(q1), l2 * m2 * sin(q1 + q2)]),
    )


def test_the_double_pendulum_equals_its_lagrangian_in_absolute_angles():
    """gutenkunst2012 (5.11): with theta = (q1, q1 + q2), Tm tau are the Lagrangian forces."""
    t = sympy.Symbol("t")
    theta = [sympy.Function(f"theta{k}")(t) for k in (1, 2)]
    x1, y1 = l1 * sin(theta[0]), -l1 * cos(theta[0])
    x2, y2 = x1 + l2 * sin(theta[1]), y1 - l2 * cos(theta[1])
    speeds = [x1.diff(t) ** 2 + y1.diff(t) ** 2, x2.diff(t) ** 2 + y2.diff(t) ** 2]
    lagrangian = m1 * speeds[0] / 2 + m2 * speeds[1] / 2 - g * (m1 * y1 + m2 * y2)
    forces = [lagrangian.diff(x.diff(t)).diff(t) - lagrangian.diff(x) for x in theta]
    Tm = Matrix([[1, -1], [0, 1]])
    relative = (Tm * PENDULUM.tau).subs(
        {ddq1: theta[0].diff(t, 2), ddq2: (theta[1] - theta[0]).diff(t, 2)}
    )
    relative = relative.subs({dq1: theta[0].diff(t), dq2: (theta[1] - theta[0]).diff(t)})
    relative = relative.subs({q1: theta[0], q2: theta[1] - theta[0]})
    for ours, theirs in zip(relative, forces, strict=True):
        assert sympy.simplify(ours - theirs) == 0


def test_the_crane_is_the_reference():
    """(m1+m2) z'' + m2 l (phi'' cos phi - phi'^2 sin phi), m2 l (l phi'' + g sin phi + z'' cos)."""
    z, phi = CRANE.tau
    length, wagon = l2, (m1 + m2) * ddq1
    assert sympy.expand(z - wagon - m2 * length * (ddq2 * cos(q2) - dq2**2 * sin(q2))) == 0
    swing = length * ddq2 + g * sin(q2) + ddq1 * cos(q2)
    assert sympy.expand(phi - m2 * length * swing) == 0
    assert CRANE.values[length] == 5.0


def test_the_short_form_factors_parameters_out():
    assert sympy.sstr(PENDULUM.entry("M[1,2]")) == "l2*m2*(l1*cos(q2) + l2)"
    assert sympy.sstr(PENDULUM.entry("C[2,1]")) == "l1*l2*m2*(dq1 - dq2)*sin(q2)"
    assert sympy.sstr(PENDULUM.entry("N[1]")) == "g*(l1*(m1 + m2)*sin(q1) + l2*m2*sin(q1 + q2))"


def test_short_and_normal_forms_are_equal():
    equations = examples.crab().equations("physical")
    for entry in equations.entries():
        short, normal = equations.entry(entry.name), equations.entry(entry.name, short=False)
        assert sympy.expand(short - normal) == 0, entry.name


def test_a_pendulum_of_six_modules_is_planar():
    equations = examples.snake(7).equations("physical")
    waves = {wave.args[0] for entry in equations.M for wave in entry.atoms(sympy.cos)}
    q = symbols("q1:7")
    runs = {sum(q[i:j]) for i in range(1, 6) for j in range(i + 1, 7)}
    assert waves == runs  # angles of neighbors in a row, and never the first
    level = {wave.args[0] for entry in equations.N for wave in entry.atoms(sympy.cos)}
    assert level == {sum(q[:j]) for j in range(1, 7)}  # it starts out horizontal
