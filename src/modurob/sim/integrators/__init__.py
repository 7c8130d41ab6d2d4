"""Integrators by name. To add one, write a file with a subclass of `Integrator` and list it."""

from modurob.errors import UnknownNameError, choices
from modurob.sim.integrators.base import FixedStep, Integrator, Settings, Step
from modurob.sim.integrators.rk4 import RK4
from modurob.sim.integrators.scipy_methods import BDF, DOP853, LSODA, RK45, Radau
from modurob.sim.integrators.semi_implicit_euler import SemiImplicitEuler
from modurob.sim.integrators.variational import Variational

METHODS: tuple[type[Integrator], ...] = (
    RK45, DOP853, LSODA, Radau, BDF, RK4, SemiImplicitEuler, Variational
)  # fmt: skip
INTEGRATORS: dict[str, type[Integrator]] = {method.name: method for method in METHODS}

__all__ = ["INTEGRATORS", "FixedStep", "Integrator", "Settings", "Step", "integrator_class"]


def integrator_class(name: object) -> type[Integrator]:
    """The integrator of a name, or an error that lists them."""
    if isinstance(name, str) and name in INTEGRATORS:
        return INTEGRATORS[name]
    raise UnknownNameError(f"no integrator {name!r}: integrators are {choices(INTEGRATORS)}")
