"""`MujocoModel`: a model and its ground in MuJoCo, with states and forces in both conventions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from modurob.errors import StateError, one_line
from modurob.interop.conventions import ExportTree, tree_of
from modurob.interop.mjcf import GROUND, Floor, LinkPair, mjcf_text
from modurob.model import Model
from modurob.modules import Shape
from modurob.organism import Organism
from modurob.spatial import so3
from modurob.stepping import Ground

MARGIN_M = 5.0  # around a field of heights, where those at its edge go on
MOST_CELLS = 500  # of the margin on each side
PLANE_SIZE = (5.0, 5.0, 1.0)  # [m] drawn; it has no end
THICKNESS_M = 1.0  # of a field of heights, below its lowest place
OVERLAP_M = 1e-6  # more than rounding of shapes that touch
LEAST_RISE_M = 1e-3  # MuJoCo's fields are not flat


def mujoco() -> Any:
    """MuJoCo, or an error with the way to install it."""
    try:
        return import_module("mujoco")
    except ImportError:
        raise StateError("MuJoCo is not installed: pip install 'modurob[mujoco]'") from None


class MujocoModel:
    """A model in MuJoCo.

    MuJoCo sorts joints its own way, has quaternions as (w, x, y, z), and the linear velocity of a
    free base along the axes of the world.

    Shapes do not collide where their links share a joint or a module, or overlap with all joints at
    zero: as they were docked, they fit.

    Args:
        organism: Whose shapes collide with the ground and with each other; None for no contact.
        ground: What they stand on; its friction also acts between bodies.
        options: Attributes of MuJoCo's ``option``.

    Attributes:
        peer: MuJoCo's ``MjModel``.
        geom_body: (geoms,) body of the model that each shape belongs to; -1 for the ground.
        edge: (2,) largest x and y of a field of heights; None on a plane. [m]
    """

    def __init__(
        self, model: Model, organism: Organism | None = None, ground: Ground | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        self._mujoco = mujoco()
        tree, floor = tree_of(model, organism, GROUND), None if ground is None else _floor(ground)
        if organism is not None:
            tree = _touching(tree, organism)
        self._compile(tree, floor, organism is not None, (), options)
        if apart := self._overlaps(model):
            self._compile(tree, floor, True, apart, options)
        self.edge = None
        if floor is not None and floor.heights is not None:
            self.peer.hfield_data[:] = floor.heights.ravel()
            self.edge = floor.size[:2]
        self.peer.geom_friction[:] = ((ground or Ground()).friction, 0.0, 0.0)
        joints = [self.peer.joint(name) for name in model.joint_names]
        base = range(6 if model.free_base else 0)
        self._free = model.free_base
        self._q = np.array([int(joint.qposadr[0]) for joint in joints], dtype=int)
        self._v = np.array([*base, *(int(joint.dofadr[0]) for joint in joints)], dtype=int)

    def _compile(
        self, tree: ExportTree, floor: Floor | None, contact: bool, apart: Iterable[LinkPair],
        options: dict[str, Any],
    ) -> None:  # fmt: skip
        text = mjcf_text(tree, contact, floor, apart, **options)
        try:
            self.peer = self._mujoco.MjModel.from_xml_string(str(text))
        except ValueError as error:
            raise StateError(f"MuJoCo refuses this model: {one_line(str(error))}") from None
        names = (self.peer.geom(k).name.rpartition(":")[0] for k in range(self.peer.ngeom))
        numbers = [tree.model.body_index(name) if name else -1 for name in names]
        self.geom_body = np.array(numbers, dtype=int)

    def _overlaps(self, model: Model) -> set[LinkPair]:
        """Pairs of links whose shapes overlap while all joints are at zero."""
        data = self.data()
        self._mujoco.mj_forward(self.peer, data)
        found = set()
        for contact in data.contact:
            bodies = self.geom_body[contact.geom]
            if contact.dist < -OVERLAP_M and bodies.min() >= 0:
                one, other = sorted(model.body_link[bodies].tolist())
                found.add((one, other))
        return found

    def data(self) -> Any:
        """A new ``MjData``."""
        return self._mujoco.MjData(self.peer)

    def put(self, data: Any, q: np.ndarray, v: np.ndarray) -> None:
        """Write a state (nq,), (nv,) into MuJoCo's data."""
        if self._free:
            data.qpos[:3], data.qpos[3:7] = q[:3], q[[6, 3, 4, 5]]
        data.qpos[self._q] = q[7:] if self._free else q
        data.qvel[:] = self.to_theirs(q, v)

    def state(self, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """(nq,), (nv,) state of MuJoCo's data."""
        q = data.qpos[self._q]
        if self._free:
            q = np.concatenate([data.qpos[:3], data.qpos[[4, 5, 6, 3]], q])
        return q, self.to_ours(q, data.qvel)

    def to_theirs(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(nv,) a velocity or generalized force of ours in MuJoCo's coordinates."""
        found = np.empty(len(x))
        found[self._v] = x
        if self._free:
            found[:3] = so3.from_quaternion(q[3:7]) @ x[:3]
        return found

    def to_ours(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(nv,) a velocity or generalized force of MuJoCo's in our coordinates."""
        found = x[self._v]
        if self._free:
            found[:3] = so3.from_quaternion(q[3:7]).T @ x[:3]
        return found

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep MuJoCo from writing its warnings to a file ``MUJOCO_LOG.TXT``."""
        before = self._mujoco.get_mju_user_warning()
        self._mujoco.set_mju_user_warning(lambda message: None)
        try:
            yield
        finally:
            self._mujoco.set_mju_user_warning(before)


def _touching(tree: ExportTree, organism: Organism) -> ExportTree:
    """The shapes that touch: a module without any is a cube of its size, virtual ones have none."""
    visuals = list(tree.visuals)
    for name in organism.modules:
        kind, body = organism.kind(name), tree.model.modules[name]
        if kind.virtual:
            for k, other in enumerate(tree.model.body_names):
                if other.partition(".")[0] == name:
                    visuals[k] = ()
        elif not kind.shapes:
            cube = Shape(body=kind.bodies[0].name, form="box", size=(kind.size,) * 3)
            visuals[body] = ((np.eye(4), cube),)
    return tree._replace(visuals=tuple(visuals))


def _floor(ground: Ground) -> Floor:
    """MuJoCo's form of a ground; a field of heights gets a margin."""
    pose, (a, b) = np.eye(4), ground.slope
    heights = np.asarray(ground.height)
    if ground.is_plane:
        n = np.array([-a, -b, 1.0]) / math.sqrt(1 + a * a + b * b)
        side = np.array([1.0, 0.0, a]) / math.sqrt(1 + a * a)
        pose[:3, :3] = np.column_stack([side, np.cross(n, side), n])
        pose[2, 3] = heights
        return Floor(pose, PLANE_SIZE)
    more = min(math.ceil(MARGIN_M / ground.cell), MOST_CELLS)
    x, y = (ground.cell * (np.arange(n + 2 * more) - (n - 1) / 2 - more) for n in heights.shape)
    z = ground.surface(*np.meshgrid(x, y))[0]
    low, rise = z.min(), max(np.ptp(z), LEAST_RISE_M)
    pose[2, 3] = low
    return Floor(pose, (x[-1], y[-1], rise, THICKNESS_M), (z - low) / rise)
