"""The same organism in Pinocchio and in MuJoCo, through the files that modurob writes for them."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from modurob.errors import ModurobError
from modurob.friction import force as friction
from modurob.interop import write_urdf
from modurob.interop.mujoco_model import MujocoModel
from modurob.model import Model
from modurob.verification.check import CheckCase, CheckValue, LeftOut, relative

SAME = 1e-9  # relative: files keep 17 digits, MuJoCo's free massless links weigh 2e-15 kg


def compared(engine: type[Pinocchio | Mujoco], note: str, case: CheckCase) -> CheckValue:
    """Compare the mass matrix and inverse dynamics with those of another engine."""
    peer = engine(case.model)
    # friction is left to the other checks: MuJoCo solves it as a constraint, Pinocchio ignores it;
    # neither has springs in its recursions
    tau = case.model.inverse_dynamics(case.q, case.v, case.a) - friction(case.model, case.v)
    joints_q, joints_v = case.model.joint_slice_q, case.model.joint_slice_v
    tau[..., joints_v] -= case.model.stiffness * case.q[..., joints_q]
    M = case.model.mass_matrix(case.q)
    theirs = [peer.mass_matrix(q) for q in case.q]
    forces = [peer.inverse_dynamics(*s) for s in zip(case.q, case.v, case.a, strict=True)]
    error = max(relative(M, np.stack(theirs)), relative(tau, np.stack(forces)))
    return CheckValue(error, SAME, f"{note}: M and inverse dynamics")


def _imported(name: str, install: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise LeftOut(f"not installed (pip install {install})") from None


@contextlib.contextmanager
def _written(write: Any, model: Model, suffix: str) -> Any:
    """The path of an exported model; what cannot be written is left out."""
    with tempfile.TemporaryDirectory(prefix="modurob-") as folder:
        path = Path(folder) / f"organism{suffix}"
        try:
            write(model, path)
        except ModurobError as error:
            raise LeftOut(str(error)) from None
        yield str(path)


class Pinocchio:
    """A model in Pinocchio."""

    def __init__(self, model: Model) -> None:
        self.pin = _imported("pinocchio", "pin")
        root = [self.pin.JointModelFreeFlyer()] if model.free_base else []
        none = np.zeros(len(model.joint_names))
        bare = dataclasses.replace(  # URDF has neither armatures nor springs
            model, armature=none, stiffness=none, organism=None, options=None
        )
        with _written(write_urdf, bare, ".urdf") as path:
            self.peer = self.pin.buildModelFromUrdf(path, *root)
        self.peer.gravity.linear = model.gravity
        self.data, self.offset = self.peer.createData(), 7 if model.free_base else 0
        self.joints = [self.peer.joints[self.peer.getJointId(n)] for n in model.joint_names]
        base = range(6 if model.free_base else 0)
        self.columns = np.array([*base, *(joint.idx_v for joint in self.joints)], dtype=int)
        self.peer.armature[self.columns[len(base) :]] = model.armature

    def _q(self, q: np.ndarray) -> np.ndarray:
        theirs = self.pin.neutral(self.peer)
        theirs[: self.offset] = q[: self.offset]
        for joint, value in zip(self.joints, q[self.offset :], strict=True):
            # a continuous joint is a point on the circle there
            ends = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
            theirs[joint.idx_q : joint.idx_q + joint.nq] = ends
        return theirs

    def _v(self, v: np.ndarray) -> np.ndarray:
        theirs = np.zeros(self.peer.nv)
        theirs[self.columns] = v
        return theirs

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """(nv, nv)"""
        M = self.pin.crba(self.peer, self.data, self._q(q))
        M = np.triu(M) + np.triu(M, 1).T
        return M[np.ix_(self.columns, self.columns)]

    def inverse_dynamics(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(nv,) without friction."""
        tau = self.pin.rnea(self.peer, self.data, self._q(q), self._v(v), self._v(a))
        return tau[self.columns]

    def forward_dynamics(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """(nv,) without friction."""
        a = self.pin.aba(self.peer, self.data, self._q(q), self._v(v), self._v(tau))
        return a[self.columns]


class Mujoco:
    """A model in MuJoCo."""

    def __init__(self, model: Model) -> None:
        self.mujoco = _imported("mujoco", "'modurob[mujoco]'")
        try:
            self.engine = MujocoModel(model)
        except ModurobError as error:
            raise LeftOut(str(error)) from None
        self.data, self.free = self.engine.data(), model.free_base

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """(nv, nv)"""
        engine, n, column = self.engine, self.engine.peer.nv, np.empty(self.engine.peer.nv)
        engine.put(self.data, q, np.zeros(n))
        self.mujoco.mj_forward(engine.peer, self.data)
        M = np.empty((n, n))
        for k, unit in enumerate(np.eye(n)):
            self.mujoco.mj_mulM(engine.peer, self.data, column, engine.to_theirs(q, unit))
            M[:, k] = engine.to_ours(q, column)
        return M

    def inverse_dynamics(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(nv,) without friction, limits and contacts."""
        peer, tau = self.engine.peer, np.empty(self.engine.peer.nv)
        self.engine.put(self.data, q, v)
        self.mujoco.mj_forward(peer, self.data)
        a = a.copy()
        if self.free:  # of the base's point; ours is the rate of a twist in a turning frame
            a[:3] += np.cross(v[3:6], v[:3])
        self.data.qacc[:] = self.engine.to_theirs(q, a)
        self.mujoco.mj_rne(peer, self.data, 1, tau)
        tau += peer.dof_armature * self.data.qacc
        return self.engine.to_ours(q, tau)
