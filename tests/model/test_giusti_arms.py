"""Arms of giusti2015's modules against the direct product of its Table III."""

import itertools

import numpy as np
import pytest

from modurob import catalog, examples

ROUNDING = 1e-13  # products of up to forty elementary transforms
PI = np.pi

# giusti2015, Tab. III. Kinematics: (a, alpha, p, n, delta) of the proximal and the distal part.
TABLE = {
    "a": {
        "pl": (0, -PI / 2, -0.1, 0, 0),
        "dl": (0, -PI / 2, 0, 0.1, 0),
        "delta_j": PI,
        "kind": "revolute",
    },
    "b": {
        "pl": (0, 0, -0.1, 0, 0),
        "dl": (0, 0, -0.1, 0, 0),
        "delta_j": 0,
        "kind": "revolute",
    },
    "c": {
        "pl": (0, 0, -0.1, 0, 0),
        "dl": (0, 0, -0.05, 0, 0),
        "delta_j": 0,
        "kind": "prismatic",
    },
}
# mass, z of the center of mass, moments about the connector's origin, in the connector's frame
SOLIDS = {
    ("a", "proximal"): (0.5, 0.05, (2e-3, 2e-3, 0.65e-3)),
    ("a", "distal"): (0.5, -0.05, (2e-3, 2e-3, 0.65e-3)),
    ("b", "proximal"): (0.5, 0.05, (2e-3, 2e-3, 0.65e-3)),
    ("b", "distal"): (0.5, -0.05, (2e-3, 2e-3, 0.65e-3)),
    ("c", "proximal"): (0.5, 0.05, (2e-3, 2e-3, 0.65e-3)),
    ("c", "distal"): (0.25, -0.025, (0.36e-3, 0.36e-3, 0.31e-3)),
}
VISCOUS = 3.0
WORDS = ["".join(letters) for letters in itertools.product("abc", repeat=3)] + ["babac"]


def slid(axis, distance):
    T = np.eye(4)
    T[axis, 3] = distance
    return T


def turned(axis, angle):
    T, (i, j) = np.eye(4), [(1, 2), (2, 0), (0, 1)][axis]
    T[i, i] = T[j, j] = np.cos(angle)
    T[j, i], T[i, j] = np.sin(angle), -np.sin(angle)
    return T


X, Z = 0, 2


def joint_frame(letter):
    """In-connector to joint: Rz(-d) Tz(-p) Tx(a) Rx(alpha) Tz(n) of the proximal part."""
    a, alpha, p, n, delta = TABLE[letter]["pl"]
    return turned(Z, -delta) @ slid(Z, -p) @ slid(X, a) @ turned(X, alpha) @ slid(Z, n)


def out_frame(letter):
    """Joint to out-connector: Tz(-p) Tx(a) Rx(alpha) Tz(n) Rz(d) of the distal part."""
    a, alpha, p, n, delta = TABLE[letter]["dl"]
    return slid(Z, -p) @ slid(X, a) @ turned(X, alpha) @ slid(Z, n) @ turned(Z, delta)


def module_transform(letter, q):
    """In-connector to out-connector."""
    delta_j = TABLE[letter]["delta_j"]
    revolute = TABLE[letter]["kind"] == "revolute"
    motion = turned(Z, delta_j + q) if revolute else slid(Z, q) @ turned(Z, delta_j)
    return joint_frame(letter) @ motion @ out_frame(letter)


@pytest.mark.parametrize("word", WORDS)
def test_arm_poses_equal_the_product_of_module_transforms(word):
    model = examples.arm(word).model()
    rng = np.random.default_rng(WORDS.index(word))
    assert model.joint_names == tuple(f"m{i}.joint" for i in range(len(word)))
    for q in (model.neutral(), *(model.random_configuration(rng) for _ in range(5))):
        poses, T = model.forward_kinematics(q), np.eye(4)
        for i, letter in enumerate(word):
            found = poses[model.modules[f"m{i}"]]
            np.testing.assert_allclose(found, T, rtol=0, atol=ROUNDING)
            T = T @ module_transform(letter, q[i])
        port = catalog[f"giusti_{word[-1]}"].port("out")
        end = poses[model.body_index(f"m{len(word) - 1}.distal")] @ port_frame(port)
        np.testing.assert_allclose(end, T, rtol=0, atol=ROUNDING)


def port_frame(port):
    T = np.eye(4)
    x, z = np.array(port.reference), np.array(port.normal)
    T[:3, :3] = np.column_stack([x, np.cross(z, x), z])
    T[:3, 3] = port.position
    return T


@pytest.mark.parametrize(("letter", "part"), SOLIDS)
def test_mass_properties_about_the_connector_are_those_of_the_table(letter, part):
    mass, z, moments = SOLIDS[letter, part]
    kind = catalog[f"giusti_{letter}"]
    body = kind.bodies[kind.body_index(part)]
    # the proximal part's frame is the in-connector; the distal part's is the joint
    T = np.eye(4) if part == "proximal" else port_frame(kind.port("out"))
    R, p = T[:3, :3], T[:3, 3]
    center = R.T @ (np.array(body.center_of_mass) - p)
    inertia = R.T @ np.array(body.inertia) @ R
    inertia += body.mass * (center @ center * np.eye(3) - np.outer(center, center))
    assert body.mass == mass
    np.testing.assert_allclose(center, [0, 0, z], rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(inertia, np.diag(moments), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("letter", TABLE)
def test_joints_are_of_the_table_s_kind_and_friction(letter):
    (joint,) = catalog[f"giusti_{letter}"].joints
    assert (joint.kind, joint.viscous) == (TABLE[letter]["kind"], VISCOUS)
