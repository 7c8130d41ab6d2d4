"""Dynamics in the moment the body changes.

The crab holds itself against gravity, falls, loses a claw and holds itself again: each new body has
its equations at once, from kernels that were compiled before it existed. The numbers are checked on
the way: energy is conserved while it falls, and forward dynamics undoes inverse dynamics.

Run it with `python examples/02_dynamics.py`.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import modurob as mr

CONSERVED = 1e-6  # [J/kg] of a fourth-order fall with 1 ms steps; the swing is some 2 J/kg
ROUND_TRIP = 1e-9  # accelerations back from the torques that cause them


def hold(organism: mr.Organism, q: np.ndarray) -> np.ndarray:
    """Torques that keep an organism still."""
    model = organism.model(hinges="physical")
    torques = model.gravity_torque(q)
    for name, torque in zip(model.joint_names, torques, strict=True):
        print(f"  {name}: {torque:+.4f} N m")
    return torques


def fall(model: mr.Model, q: np.ndarray, seconds: float, dt: float = 1e-3) -> np.ndarray:
    """Let it fall without torques (Runge-Kutta 4); returns the energy after each step."""
    v, free = np.zeros(model.nv), np.zeros(model.nv)
    energies = [model.energy(q, v)]
    for _ in range(round(seconds / dt)):
        k1 = model.forward_dynamics(q, v, free)
        k2 = model.forward_dynamics(q + dt / 2 * v, v + dt / 2 * k1, free)
        v3 = v + dt / 2 * k2
        k3 = model.forward_dynamics(q + dt / 2 * (v + dt / 2 * k1), v3, free)
        k4 = model.forward_dynamics(q + dt * v3, v + dt * k3, free)
        q = q + dt * (v + dt / 6 * (k1 + k2 + k3))
        v = v + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        energies.append(model.energy(q, v))
    return np.array(energies)


def main() -> int:
    crab = mr.examples.crab()
    model = crab.model(hinges="physical")
    q = np.deg2rad([20.0, 10.0, 30.0, 0.0, 40.0, -15.0])
    print("Torques that hold the crab still")
    hold(crab, q)

    print("\nMass matrix [kg m^2]")
    print(np.array_str(model.mass_matrix(q), precision=5, suppress_small=True))

    energies = fall(model, q, seconds=0.5)
    drift = np.abs(energies - energies[0]).max() / model.mass.sum()
    print(f"\nHalf a second of falling: energy drifts by {drift:.1e} J for each kg")

    v, a = np.random.default_rng(0).standard_normal((2, model.nv))
    back = model.forward_dynamics(q, v, model.inverse_dynamics(q, v, a))
    error = np.abs(back - a).max()
    print(f"Forward dynamics of inverse dynamics: off by {error:.1e}")

    begin = time.perf_counter()
    smaller, claw = crab.undock("m5")
    torques = smaller.model(hinges="physical").gravity_torque(q[:4])
    duration = time.perf_counter() - begin
    print(f"\nUndocked {claw.base}; after {1e3 * duration:.1f} ms the new body holds itself with")
    print(f"  {np.round(torques, 4)} N m")

    states = np.random.default_rng(0).uniform(-1.5, 1.5, (3, 100_000, model.nv))
    begin = time.perf_counter()
    model.inverse_dynamics(*states)
    duration = time.perf_counter() - begin
    print(f"Inverse dynamics of 100,000 states: {1e3 * duration:.1f} ms")
    return 0 if drift < CONSERVED and error < ROUND_TRIP else 1


if __name__ == "__main__":
    sys.exit(main())
