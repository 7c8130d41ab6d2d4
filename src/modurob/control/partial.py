"""Partial feedback linearization: as many joints as there are motors, with a motor or without."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.control.closed_loop import zero_dynamics
from modurob.control.computed_torque import ComputedTorque
from modurob.control.laws import register
from modurob.errors import StateError, choices
from modurob.model import Model
from modurob.model.joint_map import JointMap

SINGULAR = 1e-9  # of the inertias: a coupling that counts as none


@register(
    "partial-linearization", "passive joints, through coupling",
    outputs="", k0="1/s^2", k1="1/s", settling_time="s",
)  # fmt: skip
class PartialLinearization(ComputedTorque):
    """Chosen joints (outputs) follow ``e'' + K1 e' + K0 e = 0``; the rest is the zero dynamics.

    Outputs with a motor (collocated) always have relative degree 2. Others (not collocated) have it
    where the coupling of inertias allows (Spong 1994): where ``M_uz`` is regular, rows u without a
    motor, columns z beside the outputs. The zero dynamics, what moves while the outputs are held,
    must be stable; the certificate checks it. `Equations.feedback_linearization` has formulas.

    Args:
        model: The body.
        outputs: Names of joints, as many as there are motors; those with a motor by default.
        k0, k1: One number, one for each joint, or (n, n); only outputs use theirs. [1/s^2, 1/s]
        options: See `ComputedTorque` and `Controller`, with `passive`.
    """

    name = "partial feedback linearization"
    claim = "errors of the outputs follow e'' + K1 e' + K0 e = 0, and the rest calms down"
    scope = "local"  # inertias may not couple elsewhere

    def __init__(
        self,
        model: Model,
        outputs: Iterable[str] | None = None,
        k0: ArrayLike | None = None,
        k1: ArrayLike | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, k0, k1, **options)
        self.outputs = tuple(model.joint_names[k - self._skip] for k in self._driven)
        self._given_outputs = outputs is not None
        if outputs is not None:
            self.outputs = (outputs,) if isinstance(outputs, str) else tuple(outputs)
            places = sorted({model.joint_index(name) for name in self.outputs})
            if len(places) != len(self._driven) or len(places) != len(self.outputs):
                raise StateError(
                    f"outputs are {len(self._driven)} different joints, as many as there are "
                    f"motors, got {choices(self.outputs)}"
                )
            self._outputs = np.array(places, dtype=int) + self._skip
            self._resulting = np.setdiff1d(np.arange(model.nv), self._outputs)

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        settings = super()._settings(joints)
        motors = len(joints.new.joint_names) - len(settings["passive"])
        kept = [name for name in self.outputs if name in joints.new.joint_names]
        same = self._given_outputs and len(kept) == motors
        return settings | {"outputs": kept if same else None}

    def decoupling(self, q: ArrayLike) -> np.ndarray:
        """(m, m) A of ``y'' = A tau + b``: accelerations of the outputs per torque (thesis 6.9)."""
        inverse = np.linalg.inv(self.model.mass_matrix(self._state(q, np.zeros(self.model.nv))[0]))
        return inverse[np.ix_(self._outputs, self._driven)]

    def relative_degree(self, q: ArrayLike) -> tuple[int, ...] | None:
        """2 for each output; None where the motors do not reach all of them."""
        q, _ = self._state(q, np.zeros(self.model.nv))
        return (2,) * len(self.outputs) if self._reached(q) else None

    def _reached(self, q: np.ndarray) -> bool:
        """Return whether M_uz is regular, its entries as parts of the inertias that they couple."""
        if not self._given_outputs or not len(self._idle):
            return True
        M, u, z = self._mass(q), self._idle, self._resulting
        size = np.sqrt(np.diagonal(M, axis1=-2, axis2=-1))
        coupling = M[..., u[:, None], z] / size[..., u, None] / size[..., None, z]
        return bool(np.linalg.svd(coupling, compute_uv=False).min() > SINGULAR)

    def zero_dynamics(self, set_point: ArrayLike | None = None) -> np.ndarray:
        """(2k, 2k) A of ``(z, z')' = A (z, z')``: the k other coordinates while outputs are held.

        Args:
            set_point: (n,) or (nq,) a pose of rest; the neutral one by default.
        """
        at = self.model.neutral()
        if set_point is not None:
            at[self._skip_q :] = self._aim(np.asarray(set_point, dtype=float), at).q
        self._demand_degree(at)
        return zero_dynamics(self, at)

    def _demand_degree(self, q: np.ndarray) -> None:
        if not self._reached(q):
            raise StateError(
                f"outputs {choices(self.outputs)} have no relative degree in this pose: the motors "
                "do not reach all of them there; choose other outputs, or another pose"
            )

    def _completed(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        self._demand_degree(q)
        return super()._completed(q, v, a)
