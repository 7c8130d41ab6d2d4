"""Errata of the documents, items 5 to 8 (docs/errata.md): what is printed, and what is right.

The recursion and the stacked closed form are written here once more, straight from the documents
with six-dimensional matrices, and with a switch for every misprint. Pinocchio is the judge.
"""

import numpy as np
import pytest

from modurob import examples
from oracles import random_organism
from oracles.rigid_tree import PRISMATIC, PinocchioDynamics, RigidTree

ROUNDING = 1e-11  # relative: sums over up to 20 links of products of 6x6 matrices
VISIBLE = 1e-2  # relative: a misprint changes the result by more than this
FAST = 20.0  # rad/s and rad/s^2: inertia outweighs the pushes, so its terms show
ORGANISMS = {
    "crab": (examples.crab(), "physical"),
    # with cubes of 1 kg the missing inertia of item 7 would not show
    "snake": (examples.snake(6).with_parameters(mass=0.6), "dyad"),
    "cubes": (random_organism("backbone and scout", 12, 2).with_parameters(mass=1.7), "dyad"),
    "arm": (examples.arm("babac").with_parameters(viscous=0.0), "physical"),
    "superbots": (random_organism("superbot", 4, seed=1), "physical"),
}
every_organism = pytest.mark.parametrize("name", ORGANISMS)


def hat(w):
    x, y, z = w
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def Ad(T):
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R, hat(p) @ R], [np.zeros((3, 3)), R]])


def ad(V):
    v, w = hat(V[:3]), hat(V[3:])
    return np.block([[w, v], [np.zeros((3, 3)), w]])


def motion(link, q):
    """exp(s q): Rodrigues' formula, or a translation."""
    T = np.eye(4)
    if link.kind == PRISMATIC:
        T[:3, 3] = q * link.axis
    else:
        w = hat(link.axis)
        T[:3, :3] += np.sin(q) * w + (1 - np.cos(q)) * w @ w
    return T


class Tree:
    """A fixed organism with the documents' symbols: s, M, X at one configuration."""

    def __init__(self, name, seed=0):
        organism, hinges = ORGANISMS[name]
        self.model, rng = organism.model(hinges), np.random.default_rng(seed)
        tree = RigidTree(organism, hinges, "fixed", list(self.model.locked))
        self.engine = PinocchioDynamics(tree, self.model)
        order = self.engine.order  # our joints' places among Pinocchio's
        new = {-1: -1} | {k: i for i, k in enumerate(order)}
        links = [tree.links[k] for k in order]
        self.parent = [new[link.parent] for link in links]
        self.q = self.model.random_configuration(rng)
        self.v, self.a = FAST * rng.standard_normal((2, self.model.nv))
        self.s, self.M, self.T, self.X = [], [], [], []
        for link, q, parent in zip(links, self.q, self.parent, strict=True):
            zero = np.zeros(3)
            slides = link.kind == PRISMATIC
            self.s.append(np.concatenate([link.axis, zero] if slides else [zero, link.axis]))
            self.M.append(link.inertia.matrix())
            step = link.T @ motion(link, q)
            self.T.append(step if parent < 0 else self.T[parent] @ step)
            self.X.append(Ad(np.linalg.inv(step)))
        self.count = len(links)
        self.up = np.concatenate([-self.model.gravity, np.zeros(3)])
        self.Fe = rng.standard_normal((self.count, 6))  # on every link, in its frame
        bodies = {}
        for body, (link, T) in tree.places.items():
            if link >= 0 and new[link] not in bodies:
                bodies[new[link]] = body, T
        self.external = {
            body: np.linalg.inv(Ad(np.linalg.inv(T))).T @ self.Fe[link]
            for link, (body, T) in bodies.items()
        }
        assert len(self.external) == self.count

    def pinocchio(self, v, a, pushed=True):
        return self.engine.inverse_dynamics(self.q, v, a, self.external if pushed else {})

    def modurob(self, v, a, pushed=True):
        return self.model.inverse_dynamics(self.q, v, a, self.external if pushed else None)

    # -- the recursion -------------------------------------------------------------------------

    def rates(self, without_acceleration=False, without_velocity=False):
        """Twists and their rates, base to tips (3.22), (3.23)."""
        V, dV = [], []
        for i in range(self.count):
            p = self.parent[i]
            V_p, dV_p = (np.zeros(6), self.up) if p < 0 else (V[p], dV[p])
            V.append(self.X[i] @ V_p + self.s[i] * self.v[i])
            bracket = ad(V[i]) @ self.s[i] * (1.0 if without_velocity else self.v[i])
            own = 0.0 if without_acceleration else self.s[i] * self.a[i]
            dV.append(self.X[i] @ dV_p + own + bracket)
        return V, dV

    def own_wrenches(self, **misprints):
        V, dV = self.rates(**misprints)
        return [
            M @ dV_i - ad(V_i).T @ M @ V_i - Fe
            for M, V_i, dV_i, Fe in zip(self.M, V, dV, self.Fe, strict=True)
        ]

    def recursion(self, **misprints):
        """Forces, tips to base."""
        F = self.own_wrenches(**misprints)
        for i in range(self.count - 1, -1, -1):
            if self.parent[i] >= 0:
                F[self.parent[i]] = F[self.parent[i]] + self.X[i].T @ F[i]
        return np.array([s @ F_i for s, F_i in zip(self.s, F, strict=True)])

    def recursion_with_the_parents_wrench(self):
        """meister2013 (21) as printed."""
        F = self.own_wrenches()
        for i in range(self.count):
            if self.parent[i] >= 0:
                F[i] = F[i] + self.X[i].T @ F[self.parent[i]]
        return np.array([s @ F_i for s, F_i in zip(self.s, F, strict=True)])

    # -- the closed form -----------------------------------------------------------------------

    def stacked(self):
        """S, T, M and T_0 of all links."""
        n = self.count
        S, T, M = np.zeros((6 * n, n)), np.zeros((6 * n, 6 * n)), np.zeros((6 * n, 6 * n))
        T_0 = np.zeros((6 * n, 6))
        for i in range(n):
            rows = slice(6 * i, 6 * i + 6)
            S[rows, i], M[rows, rows] = self.s[i], self.M[i]
            T_0[rows] = Ad(np.linalg.inv(self.T[i]))
            j = i
            while j >= 0:
                T[rows, 6 * j : 6 * j + 6] = Ad(np.linalg.inv(self.T[i]) @ self.T[j])
                j = self.parent[j]
        return S, T, M, T_0

    def diagonal(self, blocks):
        result = np.zeros((6 * self.count, 6 * self.count))
        for i, block in enumerate(blocks):
            result[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = block
        return result

    def C(self, without_inertia=False):
        """meister2012 (38)."""
        S, T, M, _ = self.stacked()
        V = (T @ S @ self.v).reshape(-1, 6)
        adS = self.diagonal([-ad(s * v) for s, v in zip(self.s, self.v, strict=True)])
        adV = self.diagonal([-ad(V_i).T for V_i in V])
        second = adV if without_inertia else adV @ M
        return S.T @ T.T @ (M @ T @ adS + second) @ T @ S


def is_close(ours, right):
    return np.abs(ours - right).max() <= ROUNDING * np.abs(right).max()


def is_visibly_off(printed, right):
    return np.abs(printed - right).max() >= VISIBLE * np.abs(right).max()


@every_organism
def test_5_the_acceleration_recursion_needs_both_joint_terms(name):
    tree = Tree(name)
    right = tree.pinocchio(tree.v, tree.a)
    assert is_close(tree.recursion(), right)
    assert is_close(tree.modurob(tree.v, tree.a), right)
    assert is_visibly_off(tree.recursion(without_acceleration=True), right)
    assert is_visibly_off(tree.recursion(without_velocity=True), right)


@every_organism
def test_6_the_force_recursion_sums_the_wrenches_of_the_children(name):
    tree = Tree(name, seed=1)
    right = tree.pinocchio(tree.v, tree.a)
    assert is_close(tree.recursion(), right)
    assert is_close(tree.modurob(tree.v, tree.a), right)
    assert is_visibly_off(tree.recursion_with_the_parents_wrench(), right)


@every_organism
def test_7_the_coriolis_matrix_has_the_inertia_in_both_terms(name):
    tree = Tree(name, seed=2)
    rest = np.zeros(tree.count)
    right = tree.pinocchio(tree.v, rest) - tree.pinocchio(rest, rest)
    found = tree.model.closed_form(tree.q, tree.v).C
    assert is_close(found, tree.C())
    assert is_close(found @ tree.v, right)
    assert is_visibly_off(tree.C(without_inertia=True) @ tree.v, right)


@every_organism
def test_8_gravity_enters_by_the_base_and_pushes_count_negative(name):
    tree = Tree(name, seed=3)
    rest = np.zeros(tree.count)
    S, T, M, T_0 = tree.stacked()
    weight, push = S.T @ T.T @ M @ T_0 @ tree.up, S.T @ T.T @ tree.Fe.ravel()
    alone, right = tree.pinocchio(rest, rest, pushed=False), tree.pinocchio(rest, rest)
    assert is_close(weight, alone)
    assert is_close(weight - push, right)
    assert is_close(tree.model.closed_form(tree.q, tree.v).N, alone)
    assert is_close(tree.modurob(rest, rest), right)
    assert is_visibly_off(weight + push, right)
    # dV of the links themselves, as printed, takes inertia for weight
    _, dV = tree.rates()
    assert is_visibly_off(S.T @ T.T @ M @ np.ravel(dV) - push, right)
