"""Steps through time: the equation of motion of a body, its stops, and integrators by name."""

from modurob.errors import StateError, UnknownNameError, choices
from modurob.stepping.base import FixedStep, Integrator, IntegratorStep, StepSettings
from modurob.stepping.contact import GroundContact
from modurob.stepping.fixed_steps import RK4, SemiImplicitEuler
from modurob.stepping.ground import Ground
from modurob.stepping.motion import EquationOfMotion
from modurob.stepping.scipy_methods import BDF, DOP853, LSODA, RK45, Radau
from modurob.stepping.stops import LinearStops, Stops
from modurob.stepping.variational import Variational

METHODS: tuple[type[Integrator], ...] = (  # add yours here
    RK45, DOP853, LSODA, Radau, BDF, RK4, SemiImplicitEuler, Variational
)  # fmt: skip
INTEGRATORS: dict[str, type[Integrator]] = {method.name: method for method in METHODS}

__all__ = [
    "INTEGRATORS",
    "RK4",
    "EquationOfMotion",
    "FixedStep",
    "Ground",
    "GroundContact",
    "Integrator",
    "IntegratorStep",
    "LinearStops",
    "SemiImplicitEuler",
    "StepSettings",
    "Stops",
    "integrator_class",
]


def integrator_class(integrator: object, on_ground: bool = False) -> type[Integrator]:
    """Return the integrator of a name, or a class as it is; else an error that lists the names.

    None is RK45; on the ground, where adaptive methods resolve each impact, SemiImplicitEuler.
    """
    if integrator is None:
        integrator = "SemiImplicitEuler" if on_ground else "RK45"
    if isinstance(integrator, str) and integrator in INTEGRATORS:
        return INTEGRATORS[integrator]
    if isinstance(integrator, type) and issubclass(integrator, Integrator):
        if missing := sorted(integrator.__abstractmethods__):
            raise StateError(f"{integrator.__name__} is no integrator yet: it lacks {missing[0]}()")
        return integrator
    raise UnknownNameError(
        f"no integrator {integrator!r}: integrators are {choices(INTEGRATORS)}, "
        "or a subclass of modurob.sim.Integrator"
    )
