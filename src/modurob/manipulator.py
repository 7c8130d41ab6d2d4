"""Dynamics of a manipulator straight from its modules' datasheets (NEmod of giusti2015, III-B).

The tree model never enters: datasheets give the Denavit-Hartenberg table, the table gives the links
of the two-step recursion. Both paths must agree, and each is the other's check.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import gravity_vector
from modurob.equations.links import RigidLink, base_link
from modurob.equations.passes import Base, JointState, run
from modurob.equations.quantities import QUANTITIES
from modurob.equations.vectors import ZERO, Mat, Vec, packed, unpacked
from modurob.errors import DatasheetError, StateError
from modurob.modules import ModuleType
from modurob.modules.dh import TwoPart, carried, characterize
from modurob.modules.record import Record
from modurob.organism import Organism
from modurob.organism.dh_table import DhTable, chain_table
from modurob.spatial import se3

Modules = DhTable | Organism | Sequence[TwoPart | ModuleType | Record]
GRAVITY = (0.0, 0.0, -9.81)

# The recursions turn about x, the tables about z: x of a link is z of its table frame.
AXES = se3.pose(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]), np.zeros(3))


def ne_mod(
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    modules: Modules,
    *,
    gravity: ArrayLike = GRAVITY,
    base_pose: ArrayLike | None = None,
) -> np.ndarray:
    """Joint forces of a manipulator, friction included, from the datasheets of its modules.

    Args:
        q, v, a: (..., joints) displacements, velocities, accelerations. [rad, m]
        modules: Base first: datasheets with two docks, their records, or parameters for a pair of
            docks (`characterize`). Where modules branch or dock with a turn, the organism. A table
            (`table_of`) spares the synthesis when called again and again.
        gravity: (3,) in the world frame. [m/s^2]
        base_pose: (4, 4) in-connector of the first module in the world; for datasheets only.

    Returns:
        (..., joints). [N m, N]
    """
    table = table_of(modules, base_pose)
    q, v, a = np.broadcast_arrays(
        table.checked(q, "q"), table.checked(v, "v"), table.checked(a, "a")
    )
    joints = [JointState(*each) for each in zip(*map(unpacked, (q, v, a)), strict=True)]
    base = Base(Vec(gravity_vector(gravity).tolist()))
    tau = run(QUANTITIES["inverse_dynamics"], links(table), joints, base)
    return packed(tau, np.empty(q.shape[:-1]))


def gravity_torque(
    q: ArrayLike,
    modules: Modules,
    *,
    gravity: ArrayLike = GRAVITY,
    base_pose: ArrayLike | None = None,
) -> np.ndarray:
    """(..., joints) forces that hold the manipulator still; arguments as in `ne_mod`. [N m, N]"""
    table = table_of(modules, base_pose)
    rest = np.zeros(len(table.links))
    return ne_mod(q, rest, rest, table, gravity=gravity)


def mass_matrix(
    q: ArrayLike, modules: Modules, *, base_pose: ArrayLike | None = None
) -> np.ndarray:
    """(..., joints, joints) mass matrix; arguments as in `ne_mod`. [kg m^2, kg m, kg]"""
    table = table_of(modules, base_pose)
    q = table.checked(q)
    joints = [JointState(each, None, None) for each in unpacked(q)]
    cells = run(QUANTITIES["mass_matrix"], links(table), joints, Base(ZERO))
    batch = q.shape[:-1]
    return packed(cells, np.empty(batch)).reshape(*batch, len(joints), len(joints))


def table_of(modules: Modules, base_pose: ArrayLike | None = None) -> DhTable:
    """The table of the modules, as `ne_mod` takes them."""
    if isinstance(modules, DhTable | Organism):
        if base_pose is not None:
            raise StateError(
                "a table and an organism have their own base pose; leave base_pose out"
            )
        return modules if isinstance(modules, DhTable) else modules.dh_table()
    return chain_table([_parameters(module) for module in modules], base_pose)


def _parameters(module: TwoPart | ModuleType | Record) -> TwoPart:
    if isinstance(module, TwoPart):
        return module
    if isinstance(module, Record):
        if len(module.pairs) == 1:
            return module.pairs[0]
        module = module.kind
    if isinstance(module, ModuleType):
        return characterize(module)
    raise DatasheetError(
        f"modules are datasheets, records or parameters, got {type(module).__name__}"
    )


def links(table: DhTable) -> list[RigidLink]:
    """The links of a table as the recursions take them, the base first."""
    number = {name: k for k, name in enumerate(table.joint_names, start=1)}
    result = [base_link()]
    T_zx = se3.inverse(AXES)
    for link in table.links:
        row = table.rows[link.row]
        if row.previous < 0:
            parent, placement = 0, table.roots[link.joint] @ AXES
        else:
            before = table.rows[row.previous]
            parent, placement = number[before.joint], T_zx @ before.rest @ AXES
        moved = carried(T_zx @ row.rest, link.solid.moments)
        result.append(
            RigidLink(
                parent,
                Mat(placement[:3, :3].tolist()),
                Vec(placement[:3, 3].tolist()),
                row.kind == "prismatic",
                link.solid.mass,
                Vec(moved[:3, 3].tolist()),
                Mat(moved[:3, :3].tolist()),
                link.datasheet.viscous,
                link.datasheet.coulomb,
                armature=link.datasheet.armature,
            )
        )
    return result
