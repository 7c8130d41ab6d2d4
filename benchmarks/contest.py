"""One organism in all engines: the contenders of a comparison, on the same states."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin

from benchmarks.c_code import CasadiCode, NoPeer, pinocchio_loops
from benchmarks.peers import (
    DYNIBO_GRAVITY,
    breadth_first,
    depth_first,
    dynibo_robot,
    mujoco_model,
    pinocchio_model,
)
from modurob import Model
from modurob.compiler.tiers import SMALL
from modurob.equations.quantities import QUANTITIES

MATRICES = 400  # states of a batch of matrices, so that memory is not what is measured
SAME = 1e-9  # relative; random trees of 1,000 modules lose some digits in every engine
SAME_IN_MUJOCO = 1e-8  # relative; it stores principal axes of inertia as rounded quaternions
SAME_FROM_FILE = 1e-6  # relative; dynibo reads a URDF, whose rotations are angles
PINOCCHIO_UP_TO = 300  # joints; its data grow with the cube of them, to over 2 GB there
FUSED_UP_TO = 60  # joints; beyond, compiling takes longer than most batches
VECTORS = ("inverse_dynamics", "forward_dynamics")

Work = dict[str, Callable[[], Any]]


class Contest:
    """One organism in all engines, with states to run.

    Attributes:
        missing: Peers that do not take part, and why.
    """

    def __init__(self, model: Model, states: int, optional: bool = True) -> None:
        rng = np.random.default_rng(0)
        self.model, self.states = model, states
        self.fused = model.compile() if model.nv <= FUSED_UP_TO else None
        self.order = depth_first(model)
        self.compared = model.nv <= PINOCCHIO_UP_TO
        self.peer = pinocchio_model(model, self.order)
        if self.compared:
            self.data, self.pool = self.peer.createData(), pin.ModelPool(self.peer, 1)
        self.mj = mujoco_model(model, self.order)
        self.mj_data = mujoco.MjData(self.mj)
        self.q = np.array([model.random_configuration(rng) for _ in range(states)])
        self.v, self.a = rng.standard_normal((2, states, model.nv))
        self.theirs = [np.ascontiguousarray(x[:, self.order]) for x in (self.q, self.v, self.a)]
        self.columns = [np.asfortranarray(x.T) for x in self.theirs]
        self.out = np.zeros((model.nv, states), order="F")
        self.missing: dict[str, str] = {}
        self.casadi: dict[str, CasadiCode] = {}
        self.loops = self.dynibo = None
        if optional and self.fused is not None:
            self._add_optional()

    def _add_optional(self) -> None:
        for name in (*VECTORS, "mass_matrix", "inverse_dynamics_derivatives"):
            if code := self._tried(f"CasADi, {name}", CasadiCode, self.model, name):
                self.casadi[name] = code
        self.loops = self._tried("loops in C++ around Pinocchio", pinocchio_loops)
        self.dynibo = self._tried("dynibo", dynibo_robot, self.model)

    def _tried(self, name: str, make: Callable[..., Any], *args: Any) -> Any:
        try:
            return make(*args)
        except NoPeer as reason:
            self.missing[name] = str(reason)
            print(f"without {name}: {reason}")
            return None

    def agree(self) -> None:
        """Check that all engines give the same numbers, or the comparison means nothing."""
        state = self.q[0], self.v[0], self.a[0]
        q, v, a = state
        tau = self.model.inverse_dynamics(q, v, a)
        if self.compared:
            tau[self.order] = pin.rnea(self.peer, self.data, *(x[0] for x in self.theirs))
        scale = np.abs(tau).max()
        for model in filter(None, (self.model, self.fused)):
            assert np.abs(model.inverse_dynamics(q, v, a) - tau).max() < SAME * scale
            assert np.abs(model.forward_dynamics(q, v, tau) - a).max() < SAME * len(a) * 1e3
        assert np.abs(self._mujoco_inverse() - tau[self.order]).max() < SAME_IN_MUJOCO * scale
        if self.dynibo is not None:
            weight = np.linalg.norm(self.model.gravity)
            heavier = (DYNIBO_GRAVITY / weight - 1.0) * self.model.gravity_torque(q)
            order = breadth_first(self.model)
            found = self.dynibo.inverse_dynamics(*(x[order] for x in state))
            assert np.abs(found - (tau + heavier)[order]).max() < SAME_FROM_FILE * scale
            given = (x[order] for x in (q, v, tau + heavier))
            found = self.dynibo.forward_dynamics(*given)
            assert np.abs(found - a[order]).max() < SAME_FROM_FILE * len(a) * 1e3
        for name in self.casadi:
            last = tau if name == "forward_dynamics" else a
            wanted = getattr(self.model, name)(*self._inputs(name, (q, v, last)))
            found = self.casadi[name].batch(*(x[None].copy() for x in (q, v, last)))()
            self._same(np.reshape(wanted, -1), found[0])
        if self.fused is not None:
            self._matrices_agree(state)

    def _matrices_agree(self, state: tuple[np.ndarray, ...]) -> None:
        """Check matrices against Pinocchio's, computed for the last of two states."""
        rows = np.ix_(self.order, self.order)
        last = [np.ascontiguousarray(x[1::-1]) for x in self.theirs]
        if self.loops:
            self.loops.batch("inverse_dynamics_derivatives", self.peer, self.data, *last)()
        else:
            pin.computeRNEADerivatives(self.peer, self.data, *(x[1] for x in last))
        d = self.data  # its mass matrix is an upper triangle; dq and dv alone may be mere rounding
        theirs = np.stack([d.dtau_dq, d.dtau_dv, np.triu(d.M)])
        for model in filter(None, (self.model, self.fused)):
            ours = model.inverse_dynamics_derivatives(*state)
            self._same(np.stack([ours.dq[rows], ours.dv[rows], np.triu(ours.da[rows])]), theirs)
        self.data.M[:] = 0.0
        if self.loops:
            self.loops.batch("mass_matrix", self.peer, self.data, *last)()
        else:
            pin.crba(self.peer, self.data, last[0][1])
        self._same(np.triu(self.model.mass_matrix(state[0])[rows]), np.triu(self.data.M))

    def _same(self, wanted: np.ndarray, found: np.ndarray) -> None:
        assert np.abs(wanted - found).max() < SAME * self.model.nv * np.abs(wanted).max()

    def _mujoco_inverse(self) -> np.ndarray:
        d = self.mj_data
        d.qpos[:], d.qvel[:], d.qacc[:] = (x[0] for x in self.theirs)
        mujoco.mj_inverse(self.mj, d)
        return d.qfrc_inverse.copy()

    def _mujoco_forward(self) -> None:
        d = self.mj_data
        d.qpos[:], d.qvel[:], d.qfrc_applied[:] = (x[0] for x in self.theirs)
        mujoco.mj_forward(self.mj, d)

    @staticmethod
    def _inputs(name: str, arrays: Any) -> Any:
        return arrays[:1] if name == "mass_matrix" else arrays

    def _has_code(self, name: str) -> bool:
        """Whether the compiled model has code of its own for a quantity."""
        return QUANTITIES[name].straight_line or self.model.nv <= SMALL

    def count(self, name: str) -> int:
        """States of the largest batch."""
        return self.states if name in VECTORS else min(self.states, MATRICES)

    def batched(self, name: str, count: int) -> Work:
        """Contenders for a batch of the first states."""
        arrays = [np.ascontiguousarray(x[:count]) for x in (self.q, self.v, self.a)]
        args = self._inputs(name, arrays)
        work: Work = {"dyads": partial(self.model.prepare(name, count), *args)}
        if self.fused is not None and self._has_code(name):
            work["fused"] = partial(self.fused.prepare(name, count), *args)
        if self.compared:
            work["pinocchio"] = self._pinocchio(name, count)
        if name in self.casadi:
            work["casadi"] = self.casadi[name].batch(*arrays)
        return work

    def _pinocchio(self, name: str, count: int) -> Callable[[], Any]:
        rows = [np.ascontiguousarray(x[:count]) for x in self.theirs]
        if name in VECTORS:
            if count == 1:  # faster than a batch of one
                one = pin.rnea if name == "inverse_dynamics" else pin.aba
                return partial(one, self.peer, self.data, *(x[0] for x in rows))
            run = pin.rneaInParallel if name == "inverse_dynamics" else pin.abaInParallel
            columns = (x[:, :count] for x in (*self.columns, self.out))
            return partial(run, 1, self.pool, *columns)
        if self.loops is not None:
            return self.loops.batch(name, self.peer, self.data, *rows)
        one = pin.crba if name == "mass_matrix" else pin.computeRNEADerivatives
        states = list(zip(*self._inputs(name, rows), strict=True))
        return lambda: [one(self.peer, self.data, *state) for state in states]

    def single(self, name: str) -> Work:
        """Contenders for one state, called from Python."""
        q, v, a = state = [np.array(x[0]) for x in (self.q, self.v, self.a)]
        peer = {"inverse_dynamics": pin.rnea, "forward_dynamics": pin.aba}[name]
        theirs = self._mujoco_inverse if name == "inverse_dynamics" else self._mujoco_forward
        calls: Work = {
            "prepared dyads": partial(self.model.prepare(name), q, v, a),
            "plain": partial(getattr(self.model, name), q, v, a),
            "pinocchio": partial(
                peer, self.peer, self.data, *(np.array(x[0]) for x in self.theirs)
            ),
            "mujoco": theirs,
        }
        if self.fused is not None:
            calls["prepared fused"] = partial(self.fused.prepare(name), q, v, a)
        if self.dynibo is not None:
            order, out = breadth_first(self.model), np.empty(self.model.nv)
            given = (x[order] for x in state)
            calls["dynibo"] = partial(getattr(self.dynibo, name), *given, out=out)
        if name in self.casadi:
            calls["casadi"] = self.casadi[name].trigger(*state)
            calls["casadi by ctypes"] = self.casadi[name].batch(*(x[None] for x in state))
        return calls


def repeated(work: Work, repetitions: int) -> Work:
    """The same calls, each made several times, for those too short to be timed alone."""

    def loop(call: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(repetitions):
                call()

        return run

    return {name: loop(call) for name, call in work.items()}
