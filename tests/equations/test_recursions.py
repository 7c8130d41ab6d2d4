"""Every quantity, run link by link on plain numbers, against Pinocchio on the same links.

Nothing is compiled here: what is wrong in a recursion shows, whatever code of it was kept.
"""

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from modurob.equations.closed_entries import coriolis_column, twists
from modurob.equations.links import SLIP_SPEED, Placement, RigidLink, joint_pose
from modurob.equations.passes import Base, JointState, Quantity, run
from modurob.equations.quantities import QUANTITIES
from modurob.equations.vectors import Mat, Twist, Vec, Wrench

RELATIVE = 1e-11  # of the largest entry: sums of some hundred products
DIFFERENCE = 1e-7  # of the largest entry: central differences over 1e-4
STEP = 1e-4  # [s]
GRAVITY = np.array([1.3, -2.1, -9.0])
PARENTS, SLIDES, SIGNS = (0, 1, 1, 3, 0), (False, True, False, False, True), (1, -1, 1, -1, 1)
COUNT = len(PARENTS)


def solid(rng):
    """Mass, center and inertia about it, of some particles."""
    masses, points = rng.uniform(0.2, 1, 6), rng.normal(size=(6, 3)) + rng.normal(size=3)
    m, c = masses.sum(), masses @ points / masses.sum()
    d = points - c
    return (
        m,
        c,
        np.einsum("k,kij->ij", masses, np.einsum("kl,kl,ij->kij", d, d, np.eye(3)))
        - (d.T * masses) @ d,
    )


class Case:
    """A tree with every sort of joint, its twin in Pinocchio, and a state."""

    def __init__(self, free):
        rng = np.random.default_rng(12)
        self.free, self.offset = free, 6 if free else 0
        self.links, self.solids, self.pin = [], [], pin.Model()
        self.pin.gravity.linear = GRAVITY
        drives = rng.uniform(0.1, 1, (COUNT, 4))
        joints = []
        for k in range(COUNT + 1):
            m, c, inertia = solid(rng)
            second = inertia.trace() / 2 * np.eye(3) - inertia + m * np.outer(c, c)
            mass = m, Vec(m * c), Mat(second.tolist())
            R, p = Rotation.random(random_state=k).as_matrix(), rng.normal(size=3)
            if k == 0:
                self.links.append(
                    RigidLink(-1, Mat(np.eye(3).tolist()), Vec([0.0] * 3), False, *mass)
                )
                joint = (
                    self.pin.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3(1), "0") if free else 0
                )
            else:
                slides, sign = SLIDES[k - 1], SIGNS[k - 1]
                viscous, coulomb, armature, stiffness = drives[k - 1].tolist()
                self.links.append(RigidLink(
                    PARENTS[k - 1], Mat(R.tolist()), Vec(p), slides, *mass, viscous, coulomb,
                    sign, sign, armature, stiffness,
                ))  # fmt: skip
                kind = pin.JointModelPX() if slides else pin.JointModelRX()
                joint = self.pin.addJoint(joints[PARENTS[k - 1]], kind, pin.SE3(R, p), str(k))
            self.pin.appendBodyToJoint(joint, pin.Inertia(m, c, inertia), pin.SE3(1))
            self.solids.append(pin.Inertia(m, c, inertia))
            joints.append(joint)
        self.joints, self.data = joints, self.pin.createData()
        self.viscous, self.coulomb, self.armature, self.stiffness = (
            np.concatenate([np.zeros(self.offset), x]) for x in drives.T
        )
        self.D = np.diag([1.0] * self.offset + [float(sign) for sign in SIGNS])
        nv = self.nv = self.offset + COUNT
        self.q = rng.uniform(-2, 2, self.pin.nq)
        if free:
            self.q[3:7] /= np.linalg.norm(self.q[3:7])
        self.v, self.x = rng.normal(size=(2, nv))
        self.push = rng.normal(size=(COUNT + 1, 6))
        self.bodies = [
            Placement(k, Mat(Rotation.random(random_state=30 + k).as_matrix().tolist()),
                      Vec(rng.normal(size=3)))
            for k in (2, 0, 5)
        ]  # fmt: skip

    def run(self, name, v=None, x=None, pushed=False):
        """The quantity at the state; q, v, x are along the axes of the frames, as for Pinocchio."""
        v, x = (y if z is None else z for y, z in ((self.v, v), (self.x, x)))
        base = Base(Vec(GRAVITY))
        if self.free:
            base = Base.moving(base.gravity, self.q[:7], v[:6], x[:6])
        angles = self.q[len(self.q) - COUNT :]
        joints = [
            JointState(*each)
            for each in zip(angles, v[self.offset :], x[self.offset :], strict=True)
        ]
        pushes = [Wrench(Vec(F[:3]), Vec(F[3:])) for F in self.push] if pushed else None
        quantity = QUANTITIES[name]
        found = run(quantity, self.links, joints, base, pushes, self.bodies)
        return np.array(found).reshape(quantity.shape(COUNT, self.free, len(self.bodies)))

    @property
    def passive(self):
        """Friction and springs, by the law of `links.friction`."""
        angle = np.concatenate([np.zeros(self.offset), self.q[len(self.q) - COUNT :]])
        dry = self.coulomb * self.v / np.sqrt(self.v**2 + SLIP_SPEED**2)
        return self.viscous * self.v + dry + self.stiffness * angle

    def rnea(self, v, a, pushed=False):
        given = [pin.Force(np.zeros(6)) for _ in range(self.pin.njoints)]
        for joint, F in zip(self.joints, self.push, strict=True):
            if pushed and joint:
                given[joint] = pin.Force(F)
        return pin.rnea(self.pin, self.data, self.q, v, a, given)

    def M(self, q=None):
        M = np.triu(pin.crba(self.pin, self.data, self.q if q is None else q))
        return M + np.triu(M, 1).T + np.diag(self.armature)

    def momentum(self, v, q=None):
        """(6,) momentum about the world's origin, without that of rotors."""
        pin.forwardKinematics(self.pin, self.data, self.q if q is None else q, v)
        moving = [(j, body) for j, body in zip(self.joints, self.solids, strict=True) if j]
        return sum(self.data.oMi[j].act(body * self.data.v[j]).vector for j, body in moving)

    def center(self, q=None):
        """Center of mass, that of a fixed base included."""
        pin.forwardKinematics(self.pin, self.data, self.q if q is None else q)
        whole = [(self.data.oMi[j], x) for j, x in zip(self.joints, self.solids, strict=True)]
        return sum(x.mass * T.act(x.lever) for T, x in whole) / sum(x.mass for _, x in whole)

    def centroidal(self, q=None):
        A, c = np.stack([self.momentum(e, q) for e in np.eye(self.nv)], axis=1), self.center(q)
        return np.concatenate([A[:3], A[3:] - np.cross(c, A[:3].T).T])

    def rate(self, function):
        """Rate of a function of q along v."""
        ends = [function(pin.integrate(self.pin, self.q, s * STEP * self.v)) for s in (1, -1)]
        return (ends[0] - ends[1]) / (2 * STEP)


CASES = {"fixed": Case(False), "free": Case(True)}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def close(found, expected, relative=RELATIVE):
    assert found.shape == expected.shape
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=relative * scale)


@pytest.mark.parametrize("pushed", [False, True])
def test_forces_and_accelerations(case, pushed):
    tau = case.rnea(case.v, case.x, pushed) + case.armature * case.x + case.passive
    close(case.run("inverse_dynamics", pushed=pushed), case.D @ tau)
    close(case.run("forward_dynamics", x=tau, pushed=pushed), case.D @ case.x)


def test_mass_and_coriolis_matrices(case):
    M, rest = case.D @ case.M() @ case.D, np.zeros(case.nv)
    close(case.run("mass_matrix"), M)
    bias = case.D @ (case.rnea(case.v, rest) - case.rnea(rest, rest))
    C, (M_too, C_too) = case.run("coriolis_matrix"), case.run("closed_form_matrices")
    close(M_too, M)
    close(C @ case.D @ case.v, bias)
    close(C_too @ case.D @ case.v, bias)
    rate = case.D @ case.rate(case.M) @ case.D
    close(C + C.T, rate, DIFFERENCE)  # dM/dt - 2 C is skew


def test_columns_of_the_documents_coriolis_matrix_one_by_one(case):
    angles = case.q[len(case.q) - COUNT :]
    poses = [joint_pose(link, q) for link, q in zip(case.links[1:], angles, strict=True)]
    speeds = case.v[case.offset :]
    base = Twist(Vec(case.v[:3]), Vec(case.v[3:6])) if case.free else Twist()
    V = twists(case.links, poses, speeds, base)
    columns = [*range(-1, -7, -1)] if case.free else []
    found = []
    for column in [*columns, *range(1, COUNT + 1)]:
        entries, load = coriolis_column(case.links, poses, speeds, V, column)
        found.append([*load.f, *load.n, *entries] if case.free else entries)
    C = case.D @ np.array(found, dtype=float).T @ case.D
    close(case.run("closed_form_matrices")[1], C)


def test_derivatives_of_forces_and_accelerations(case):
    pin.computeRNEADerivatives(case.pin, case.data, case.q, case.v, case.x)
    dq, dv = case.data.dtau_dq.copy(), case.data.dtau_dv.copy()
    square = case.v**2 + SLIP_SPEED**2
    slope = case.viscous + case.coulomb * SLIP_SPEED**2 / square**1.5
    right = np.stack([dq + np.diag(case.stiffness), dv + np.diag(slope), case.M()])
    close(case.run("inverse_dynamics_derivatives"), case.D @ right @ case.D)
    inverse = np.linalg.inv(case.M())
    right = np.stack([-inverse @ right[0], -inverse @ right[1], inverse])
    close(case.run("forward_dynamics_derivatives"), case.D @ right @ case.D)


def test_poses_screws_and_their_rates(case):
    pin.computeJointJacobiansTimeVariation(case.pin, case.data, case.q, case.v)
    close(case.run("joint_screws"), case.data.J @ case.D)
    close(case.run("joint_screw_rates"), case.data.dJ @ case.D)
    for found, (link, R, p) in zip(case.run("forward_kinematics"), case.bodies, strict=True):
        rotation = np.array([[R[i, j] for j in range(3)] for i in range(3)])
        T = case.data.oMi[case.joints[link]] * pin.SE3(rotation, np.array(list(p)))
        close(found, T.homogeneous[:3])


def test_center_of_mass_momentum_and_energy(case):
    close(case.run("center_of_mass"), case.center())
    close(case.run("momentum"), case.momentum(case.v))
    total = sum(body.mass for body in case.solids)
    angles = case.q[len(case.q) - COUNT :]
    springs = case.stiffness[case.offset :] @ angles**2 / 2
    weight = -total * GRAVITY @ case.center()
    close(case.run("energy"), np.array([case.v @ case.M() @ case.v / 2, springs + weight]))


def test_centroidal_momentum_matrix_and_its_rate(case):
    close(case.run("centroidal_momentum_matrix"), case.centroidal() @ case.D)
    rate = case.rate(case.centroidal) @ case.D
    close(case.run("centroidal_momentum_matrix_rate"), rate, DIFFERENCE)


def test_a_wrong_number_of_results_is_told():
    quantity = QUANTITIES["energy"]._replace(result=(3,))
    with pytest.raises(TypeError, match=r"Energy gives 2 numbers where the shape \(3,\) has 3"):
        run(quantity, CASES["fixed"].links[:1], [], Base(Vec(GRAVITY)))


def test_closed_forms_and_derivatives_alone_have_no_code_without_loops():
    """The others are there on a GPU, as `Model.compile` says."""
    loops = {name for name, quantity in QUANTITIES.items() if not quantity.straight_line}
    assert loops == {
        "closed_form_matrices", "inverse_dynamics_derivatives", "forward_dynamics_derivatives",
    }  # fmt: skip
    whole = Quantity(("q",), (3,), QUANTITIES["center_of_mass"].passes, "c", "A place.")
    assert (whole.straight_line, whole.near) == (True, True)


@pytest.mark.parametrize(
    ("result", "per", "entries", "shape", "size"),
    [
        (("nv",), "joint", 1, (10,), 10),
        ((6, "nv"), "joint", 6, (6, 10), 60),
        (("bodies", 3, 4), "body", 12, (5, 3, 4), 60),
        ((3,), "whole", 3, (3,), 3),
    ],
)
def test_results_are_as_large_as_their_shape(result, per, entries, shape, size):
    """Of four joints on a free base, and five bodies."""
    some = QUANTITIES["energy"]._replace(result=result)
    assert (some.per, some.entries, some.shape(4, True, 5)) == (per, entries, shape)
    assert some.result_size(4, True, 5) == size
    fixed = size - 6 * entries if per == "joint" else size
    assert some.result_size(4, False, 5) == fixed
    derivatives = QUANTITIES["forward_dynamics_derivatives"]
    assert derivatives.per == "pair"
    assert derivatives.shape(4, True, 5) == (3, 10, 10)
    assert derivatives.result_size(4, True, 5) == 4 * 100  # the mass matrix besides
    assert derivatives.result_size(4, False, 5) == 4 * 16
