"""All quantities of a model, each as one entry: everything else is derived from it.

The compiled tiers, the reference, C and CUDA read this table; see `passes`.
"""

from __future__ import annotations

from modurob.equations.coriolis import ClosedFormMatrices, CoriolisMatrix
from modurob.equations.derivatives import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from modurob.equations.forward_dynamics import ForwardDynamics
from modurob.equations.inverse_dynamics import InverseDynamics
from modurob.equations.mass_matrix import MassMatrix
from modurob.equations.momentum import (
    CenterOfMass,
    CentroidalMomentumMatrix,
    CentroidalMomentumRate,
    Energy,
    ForwardKinematics,
    JointScrewRates,
    JointScrews,
    Momentum,
)
from modurob.equations.passes import Quantity

QUANTITIES: dict[str, Quantity] = {
    "inverse_dynamics": Quantity(
        ("q", "v", "a"), ("nv",), InverseDynamics, "tau",
        "The forces tau that give the acceleration a, gravity and friction included.",
    ),
    "forward_dynamics": Quantity(
        ("q", "v", "tau"), ("nv",), ForwardDynamics, "a",
        "The acceleration a under the forces tau, gravity and friction.",
    ),
    "mass_matrix": Quantity(
        ("q",), ("nv", "nv"), MassMatrix, "M", "The mass matrix. [kg m^2, kg m, kg]",
    ),
    "coriolis_matrix": Quantity(
        ("q", "v"), ("nv", "nv"), CoriolisMatrix, "C",
        "C with C v the velocity forces and dM/dt - 2 C skew.",
    ),
    "closed_form_matrices": Quantity(
        ("q", "v"), (2, "nv", "nv"), ClosedFormMatrices, "MC",
        "M and C as in the documents; dM/dt - 2 C is not skew.", straight_line=False,
    ),
    "inverse_dynamics_derivatives": Quantity(
        ("q", "v", "a"), (3, "nv", "nv"), InverseDynamicsDerivatives, "D",
        "Derivatives of the forces by q, v and a.", straight_line=False,
    ),
    # its third array holds the accelerations that forward dynamics has found
    "forward_dynamics_derivatives": Quantity(
        ("q", "v", "a"), (3, "nv", "nv"), ForwardDynamicsDerivatives, "D",
        "Derivatives of the acceleration by q, v and tau.", straight_line=False,
    ),
    "forward_kinematics": Quantity(
        ("q",), ("bodies", 3, 4), ForwardKinematics, "T",
        "T[i] is the pose of body i in the world, [R | p]: its point x is at R x + p. [m]",
        near=False,
    ),
    "center_of_mass": Quantity(
        ("q",), (3,), CenterOfMass, "c",
        "The center of mass of the whole organism in the world, a fixed base included. [m]",
        near=False,
    ),
    "momentum": Quantity(
        ("q", "v"), (6,), Momentum, "h",
        "Linear momentum, and angular momentum about the world's origin. [N s, N m s]",
        near=False,
    ),
    "energy": Quantity(
        ("q", "v"), (2,), Energy, "E",
        "Kinetic energy, and that of weight, which is zero at the world's origin, and springs. [J]",
        near=False,
    ),
    "joint_screws": Quantity(
        ("q",), (6, "nv"), JointScrews, "S",
        "Unit screws of all velocities about the world's origin, linear part first.",
        near=False,
    ),
    "joint_screw_rates": Quantity(
        ("q", "v"), (6, "nv"), JointScrewRates, "dS",
        "Time derivatives of the unit screws of all velocities.",
        near=False,
    ),
    "centroidal_momentum_matrix": Quantity(
        ("q",), (6, "nv"), CentroidalMomentumMatrix, "A",
        "A v is the momentum about the center of mass, in world axes. [kg, kg m, kg m^2]",
        near=False,  # the center of mass is also that of a fixed base
    ),
    "centroidal_momentum_matrix_rate": Quantity(
        ("q", "v"), (6, "nv"), CentroidalMomentumRate, "dA",
        "Time derivative of the centroidal momentum matrix.",
        near=False,
    ),
}  # fmt: skip
