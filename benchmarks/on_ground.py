"""The same organism on the ground in MuJoCo, moved by the same gait.

Shapes touch a plane and not each other, as here. Joints follow sines by PD control with limited
torques; MuJoCo has that law as an actuator.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import mujoco.rollout
import numpy as np
from numpy.typing import ArrayLike

from benchmarks.bodies import FRICTION
from modurob import Ground, Model, Organism
from modurob.interop.mujoco_model import MujocoModel

FIRST_JOINT = 8  # in a state of MuJoCo: after the time and the pose of the base


class Sines:
    """tau = kp (A sin(w t + phase) - q) - kd v within limits; phases (..., joints)."""

    def __init__(
        self, model: Model, phases: np.ndarray, kp: float = 10.0, kd: float = 0.2,
        most: float = 5.0, amplitude: float = 0.6,
    ) -> None:  # fmt: skip
        self.model, self.phases, self.kp, self.kd, self.most = model, phases, kp, kd, most
        self.amplitude, self.w = amplitude, 2 * np.pi

    def goal(self, t: float) -> np.ndarray:
        return self.amplitude * np.sin(self.w * t + self.phases)

    def command(self, t: float, q: np.ndarray, v: np.ndarray, reference: object) -> np.ndarray:
        q, v = q[..., self.model.joint_slice_q], v[..., self.model.joint_slice_v]
        tau = np.zeros((*q.shape[:-1], self.model.nv))
        wanted = self.kp * (self.goal(t) - q) - self.kd * v
        tau[..., self.model.joint_slice_v] = np.clip(wanted, -self.most, self.most)
        return tau


class OnGround(NamedTuple):
    """An organism in MuJoCo on a plane, with a position actuator at each joint."""

    model: mujoco.MjModel
    data: mujoco.MjData

    def rollout(
        self, gait: Sines, duration: float, step: float, height: float, disturbance: ArrayLike = 0.0
    ) -> np.ndarray:
        """(gaits, steps, 3) places of the base after each step of MuJoCo's native rollout. [m]

        It runs on one core.

        Args:
            height: Of the base at the start. [m]
            disturbance: (gaits, joints) added to the joints at the start. [rad]
        """
        self.model.opt.timestep = step
        times = step * np.arange(round(duration / step))
        ctrl = np.stack([gait.goal(t) for t in times], axis=-2)  # (gaits, times, joints)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[2] = height
        start = np.concatenate([[0.0], self.data.qpos, self.data.qvel])
        start = np.tile(start, (len(ctrl), 1))
        start[:, FIRST_JOINT : FIRST_JOINT + ctrl.shape[-1]] += disturbance
        states, _ = mujoco.rollout.rollout(self.model, [self.data], start, ctrl)
        return states[..., 1:4]


def on_ground(organism: Organism, hinges: str, gait: Sines, solref: float = 0.02) -> OnGround:
    """Build it; `solref` is the time constant of MuJoCo's contact. [s]"""
    model, ground = organism.model(hinges, "free"), Ground(friction=FRICTION)
    engine = MujocoModel(model, organism, ground, integrator="implicitfast", cone="elliptic")
    peer, is_floor = engine.peer, engine.geom_body < 0
    peer.geom_contype[:], peer.geom_conaffinity[:] = ~is_floor, is_floor
    peer.geom_solref[:, 0] = solref
    peer.actuator_biastype[:] = mujoco.mjtBias.mjBIAS_AFFINE
    peer.actuator_gainprm[:, 0] = gait.kp
    peer.actuator_biasprm[:, 1:3] = -gait.kp, -gait.kd
    peer.actuator_forcerange[:], peer.actuator_forcelimited[:] = (-gait.most, gait.most), 1
    return OnGround(peer, engine.data())
