"""`Population`: many different bodies that are simulated together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from modurob.compiler.cuda import on_gpu
from modurob.errors import StateError, UnknownNameError, choices
from modurob.model import Model
from modurob.model.options import ModelOptions
from modurob.organism import Organism
from modurob.population.coding import BodyPlan
from modurob.population.packing import pack
from modurob.population.rollout import (
    SERVO_RATE,
    Rollout,
    RolloutTask,
    finished,
    padded,
    task_of,
)
from modurob.population.stepper import PopulationStepper
from modurob.population.tables import BodyTables
from modurob.population.waves import JointWaves
from modurob.stepping.ground import Ground

if TYPE_CHECKING:
    from modurob.search import Genotype

Body = TypeVar("Body")
TARGETS, DTYPES = ("cpu", "cuda"), ("float64", "float32")


class Population:
    """Many different bodies in one table, all with a free base or all with a fixed one.

    Arrays have a row for each body in the order that they were given in, and are padded to the
    most joints of a body.

    Args:
        organisms: The bodies.
        hinges, base, gravity: As for `Organism.model`; base is ``free`` or ``fixed``.

    Attributes:
        tables: The bodies as arrays.
    """

    def __init__(
        self,
        organisms: Iterable[Organism],
        hinges: str = "dyad",
        base: str = "free",
        gravity: ArrayLike = (0.0, 0.0, -9.81),
    ) -> None:
        options = _options(hinges, base, gravity)
        bodies = _listed(organisms, Organism)
        tables = pack(map(BodyPlan.of, bodies), bodies.__getitem__, options)
        self._set(tables, bodies.__getitem__, options)

    def _set(
        self, tables: BodyTables, organism_of: Callable[[int], Organism], options: ModelOptions
    ) -> None:
        self.tables, self._organism_of, self._options = tables, organism_of, options
        self._executors: dict[str, Any] = {}
        if (tables.count < 2).any():
            k = int(np.argmax(tables.count < 2))
            raise StateError(
                f"body {k} has no joint that can move: leave it out, or choose other hinges"
            )

    @classmethod
    def from_tables(
        cls,
        tables: BodyTables,
        organism_of: Callable[[int], Organism],
        hinges: str = "dyad",
        gravity: ArrayLike = (0.0, 0.0, -9.81),
    ) -> Population:
        """A population of bodies that are packed already.

        Args:
            tables: The bodies.
            organism_of: Gives the organism of a body by its number, when it is asked for.
            hinges, gravity: The tables were made with.
        """
        self = cls.__new__(cls)
        base = "free" if tables.free_base else "fixed"
        self._set(tables, organism_of, _options(hinges, base, gravity))
        return self

    @classmethod
    def from_genotypes(
        cls, genotypes: Iterable[Genotype], gravity: ArrayLike = (0.0, 0.0, -9.81)
    ) -> Population:
        """A population of the bodies of genotypes, with free bases.

        No organism is built except for bodies with links that no body had before: 100,000 bodies
        take seconds. `search.joint_waves` gives their gaits.
        """
        from modurob.search import Genotype

        bodies = _listed(genotypes, Genotype)
        for k, genotype in enumerate(bodies):
            if genotype.space.hinges != bodies[0].space.hinges:
                raise StateError(f"body {k} has other hinges than the first one; all have the same")
        hinges = bodies[0].space.hinges if bodies else "dyad"

        def organism_of(k: int) -> Organism:
            return bodies[k].organism()

        plans = (genotype.plan() for genotype in bodies)
        tables = pack(plans, organism_of, _options(hinges, "free", gravity))
        return cls.from_tables(tables, organism_of, hinges, gravity)

    def __len__(self) -> int:
        return len(self.tables.count)

    def __repr__(self) -> str:
        low, high = int(self.joints.min()), int(self.joints.max())
        return (
            f"<Population: {len(self)} bodies of {low} to {high} joints, "
            f"{len(self.tables.rows)} distinct links>"
        )

    @property
    def joints(self) -> np.ndarray:
        """(bodies,) number of joints."""
        return self.tables.count - 1

    @property
    def nq(self) -> np.ndarray:
        """(bodies,) size of a configuration."""
        return self.joints + (7 if self.tables.free_base else 0)

    @property
    def nv(self) -> np.ndarray:
        """(bodies,) size of a velocity."""
        return self.joints + (6 if self.tables.free_base else 0)

    def organism(self, k: int) -> Organism:
        """The organism of a body."""
        return self._organism_of(self._number(k))

    def model(self, k: int) -> Model:
        """The model of a body, which is built anew."""
        return self._options.build(self.organism(k))

    def _number(self, k: int) -> int:
        if not (isinstance(k, int | np.integer) and 0 <= k < len(self)):
            raise UnknownNameError(f"no body {k!r}: bodies are 0 to {len(self) - 1}")
        return int(k)

    def rollout(
        self,
        duration: float,
        dt: float = 1e-3,
        gaits: JointWaves | None = None,
        ground: Ground | None = None,
        kp: ArrayLike | None = None,
        kd: ArrayLike | None = None,
        torque: ArrayLike | None = None,
        start: ArrayLike | Sequence[ArrayLike] | None = None,
        *,
        target: str = "cpu",
        dtype: str = "float64",
        threads: int | str = "auto",
        every: float | None = None,
        begin: float = 0.0,
        servo_rate: float = SERVO_RATE,
    ) -> Rollout:
        """Simulate all bodies with the steps of `SemiImplicitEuler`.

        Joints follow their waves by ``tau = kp (q_ref - q) + kd (v_ref - v)`` within the torque
        limit; their own friction acts as in `simulate`, joint limits do not.

        Args:
            duration: [s]
            dt: Step. [s]
            gaits: References of the joints; None holds them at zero.
            ground: That bodies stand on; None for none.
            kp, kd: One number, (bodies,) or (bodies, most joints). By default those that give a
                joint the servo rate and critical damping with the inertia that it feels at the
                start. [N m/rad, N m s/rad; N/m, N s/m]
            torque: Largest torque, likewise; none by default. [N m, N]
            start: q (bodies, most nq), or q and v (bodies, most nv). By default joints are at zero
                and the lowest corner of each body is on the ground. Bodies that start below the
                ground are refused, or raised with ``Ground(lift=True)``.
            target: ``cpu`` or ``cuda``.
            dtype: Of the computation; ``float32`` needs ``cuda``.
            threads: On the CPU; the results are the same for any number.
            every: Seconds between the base poses in `Rollout.trace`; start and end by default.
            begin: Time from which on `Rollout.distance` counts, rounded to whole steps. [s]
            servo_rate: Of the default gains. [rad/s]

        Raises:
            StateError: A number is wrong, or dt is too long for a body, which is named with the
                step that works.
        """
        self._executor(target, dtype)  # says what is wrong with them
        task = task_of(
            self.tables, duration, dt, gaits, ground, kp, kd, torque, start, every, threads, dtype,
            begin, servo_rate,
        )  # fmt: skip
        return self.run(task, target)

    def run(self, task: RolloutTask, target: str = "cpu") -> Rollout:
        """Simulate all bodies by a task that is checked and complete; see `rollout`."""
        return finished(self.tables, task, self._executor(target, task.dtype).rollout(task))

    def stepper(
        self,
        dt: float = 1e-3,
        ground: Ground | None = None,
        kp: ArrayLike | None = None,
        kd: ArrayLike | None = None,
        torque: ArrayLike | None = None,
        start: ArrayLike | Sequence[ArrayLike] | None = None,
        *,
        servo_rate: float = SERVO_RATE,
        threads: int | str = "auto",
    ) -> PopulationStepper:
        """A rollout on the CPU that goes on step by step, under references that change.

        Args:
            dt, ground, kp, kd, torque, start, threads: As for `rollout`.
            servo_rate: Of the default gains. [rad/s]
        """
        task = task_of(
            self.tables, dt, dt, None, ground, kp, kd, torque, start, None, threads, "float64",
            servo_rate=servo_rate,
        )  # fmt: skip
        return PopulationStepper(self.tables, task, self._executor("cpu", "float64").stepping(task))

    def inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, target: str = "cpu",
        dtype: str = "float64", threads: int | str = "auto",
    ) -> np.ndarray:  # fmt: skip
        """(bodies, most nv) generalized forces; see `Model.inverse_dynamics`. [N m, N]

        Args:
            q, v, a: (bodies, most nq), (bodies, most nv) twice.
            target, dtype, threads: As for `rollout`.
        """
        return self._evaluated("inverse_dynamics", q, v, a, "a", target, dtype, threads)

    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, target: str = "cpu",
        dtype: str = "float64", threads: int | str = "auto",
    ) -> np.ndarray:  # fmt: skip
        """(bodies, most nv) accelerations; see `Model.forward_dynamics`.

        Args:
            q, v, tau: (bodies, most nq), (bodies, most nv) twice.
            target, dtype, threads: As for `rollout`.
        """
        return self._evaluated("forward_dynamics", q, v, tau, "tau", target, dtype, threads)

    def _evaluated(
        self, quantity: str, q: ArrayLike, v: ArrayLike, x: ArrayLike, name: str, target: str,
        dtype: str, threads: int | str,
    ) -> np.ndarray:  # fmt: skip
        executor, base = self._executor(target, dtype), 6 if self.tables.free_base else 0
        given = (("q", q, 7 if base else 0), ("v", v, base), (name, x, base))
        arrays = [
            value if target == "cuda" and on_gpu(value) else padded(self.tables, label, value, size)
            for label, value, size in given
        ]
        return executor.evaluate(quantity, *arrays, threads, dtype)

    def _executor(self, target: str, dtype: str) -> Any:
        for name, value, known in (("target", target, TARGETS), ("dtype", dtype, DTYPES)):
            if value not in known:
                raise UnknownNameError(f"no {name} {value!r}: {name} is {choices(known)}")
        if target == "cpu" and dtype != "float64":
            raise StateError("dtype 'float32' is for target 'cuda': give dtype='float64'")
        if target not in self._executors:
            if target == "cuda":
                from modurob.population.cuda import CudaExecutor as Executor
            else:
                from modurob.population.lanes import LaneExecutor as Executor
            self._executors[target] = Executor(self.tables)
        return self._executors[target]


def _listed(bodies: Iterable[Body], kind: type[Body]) -> list[Body]:
    """The bodies that were given, or an error that says which one is none."""
    name = kind.__name__.lower()
    if isinstance(bodies, kind):
        raise StateError(f"a population takes a list of {name}s: write [{name}]")
    if not isinstance(bodies, Iterable):
        raise StateError(f"a population takes a list of {name}s, got {bodies!r}")
    found = list(bodies)
    for k, body in enumerate(found):
        if not isinstance(body, kind):
            given = type(body).__name__
            raise StateError(f"a population takes {name}s, got {given} as body {k}")
    return found


def _options(hinges: str, base: str, gravity: ArrayLike) -> ModelOptions:
    if base not in ("free", "fixed"):
        raise StateError(f"the base of a population is 'free' or 'fixed', got {base!r}")
    return ModelOptions(hinges, base, gravity)
