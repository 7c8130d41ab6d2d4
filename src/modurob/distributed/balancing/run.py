"""`balance`: simulated modules that bring their center of mass above their base."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import positive
from modurob.distributed.balancing.agent import DECISION, PERIOD_S, RATE
from modurob.distributed.balancing.faults import Fault, FaultyLinks
from modurob.distributed.balancing.knowledge import InputReader
from modurob.distributed.balancing.laws import Joints, Law, law_named
from modurob.distributed.balancing.plant import STOPS, GearedDrive, with_drives
from modurob.distributed.balancing.result import Balanced
from modurob.distributed.balancing.support import Goal, Target, goal_of
from modurob.distributed.mass.lockstep import LockStep
from modurob.errors import StateError
from modurob.model import Model
from modurob.organism import Organism
from modurob.sim import SimulationError, Trajectory, simulate


def balance(
    organism: Organism,
    law: str | Law = "shared",
    *,
    q0: ArrayLike | None = None,
    duration: float = 5.0,
    target: Target | None = None,
    drive: GearedDrive | None = None,
    loss: float = 0.0,
    delay: int = 0,
    faults: Sequence[Fault] = (),
    stuck: Sequence[str] = (),
    rate: float = RATE,
    gravity: float = 9.81,
    dt: float = PERIOD_S,
    record: float = 5e-3,
    rng: np.random.Generator | None = None,
    progress: Callable[[float], None] | None = None,
) -> Balanced:
    """Let the modules of an organism balance by themselves, its base fixed to the ground.

    Every module measures its own joints and hears its neighbors over a network that takes a
    millisecond for each docking; each joint then acts on its own.

    Args:
        organism: A tree; its base is fixed to the ground.
        law: ``default``, ``distance`` or ``momentum`` of moll2006, ``shared``, or a `Law`.
        q0: (nq,) where the joints start, in the order of ``organism.model("physical")``.
        duration: [s]
        target: (2,) what the center shall be above, in the world; or a function of the time and of
            the center (..., 3) that gives (..., 2). By default the place of the base. [m]
        drive: Friction and torque of the drives.
        loss: Chance that a message does not arrive.
        delay: Further milliseconds that each message takes for a docking.
        faults: What happens to modules, and when.
        stuck: Joints that do not move, such as ``m3.pitch``.
        rate: How fast the shared law goes. [1/s]
        gravity: Downwards. [m/s^2]
        dt: Step of the integration, at most a control period. Laws that swing, as those of moll2006
            do with little friction, need a tenth of it. [s]
        record: Seconds between the states that are kept.
        rng: For `loss`.
        progress: Called with the fraction that is done.
    """
    if not isinstance(organism, Organism):
        raise StateError(f"balance takes an Organism, got {type(organism).__name__}")
    model = organism.model("physical", gravity=(0.0, 0.0, -gravity), elastic=False)
    if not model.mass.sum() > 0:
        raise StateError("the organism has no mass, so there is nothing to balance")
    q = _start(model, q0)
    steps = max(1, round(positive("duration", duration, "seconds") / PERIOD_S))
    stride = max(1, round(positive("record", record, "seconds") / PERIOD_S))
    stuck = [stuck] if isinstance(stuck, str) else stuck
    if not (isinstance(stuck, Sequence) and all(isinstance(joint, str) for joint in stuck)):
        raise StateError(f"stuck is a list of joints such as 'm3.pitch', got {stuck!r:.80}")
    network = LockStep(organism, delay=delay)
    links = FaultyLinks(network, loss, faults, PERIOD_S, rng)
    for fault in faults:
        if fault.time > duration:
            raise StateError(
                f"a fault at {fault.time:g} s lies outside of the run of {duration:g} s"
            )
    width = organism.kind(organism.base).size
    rate = positive("rate", rate, "1/s")
    name = law if isinstance(law, str) else type(law).__name__
    chosen = law_named(law, width, gravity, rate) if isinstance(law, str) else law
    goal = goal_of(organism.base_pose[:2, 3] if target is None else target)
    modules = _Modules(model, network, links, chosen, goal, drive or GearedDrive(), stuck)
    begin = time.process_time()
    try:
        run = simulate(
            modules.plant, q, None, steps * PERIOD_S, modules, "SemiImplicitEuler",
            dt=min(positive("dt", dt, "seconds"), PERIOD_S),
            stops=STOPS, record=stride * PERIOD_S, progress=progress or False, organism=organism,
        )  # fmt: skip
    except SimulationError as error:
        advice = f"{error}; lower the gains or take more friction"
        raise SimulationError(advice, error.time, error.trajectory) from error
    seconds = time.process_time() - begin
    center = model.center_of_mass(run.q)
    targets = np.array([goal(s, c) for s, c in zip(run.t.tolist(), center, strict=True)])
    channels = {**run.channels, "center": center, "target": targets}
    states, mean = modules.dense(run)
    part = replace(
        run.parts[0], channels=MappingProxyType(channels),
        _accelerations=lambda: mean, _pieces=((0.0, steps * PERIOD_S, states),),
    )  # fmt: skip
    return Balanced(
        (part,), integrator=run.integrator, law=name, width=width, lost=links.lost, seconds=seconds
    )


class _Modules:
    """Controller of a simulation: modules that decide by messages, each for its own joints.

    Modules count all joints, the model only those that are not locked.
    """

    sample_time = PERIOD_S

    def __init__(
        self, model: Model, network: LockStep, links: FaultyLinks, law: Law, goal: Goal,
        drive: GearedDrive, stuck: Sequence[str],
    ) -> None:  # fmt: skip
        for joint in stuck:
            model.joint_index(joint)
        is_stuck = np.isin(model.joint_names, list(stuck))
        self.plant = with_drives(model, drive, is_stuck)
        self._network, self._links, self._law, self._goal = network, links, law, goal
        self._reader, self._most = InputReader(network), drive.torque
        names, modules = list(network.joint_names), network.wiring.modules
        self._order = np.array([names.index(name) for name in model.joint_names], dtype=int)
        self._owner = np.array([modules.index(n.split(".")[0]) for n in model.joint_names])
        self._rest = network.wiring.rest
        self._moves = self._spread(~is_stuck) > 0
        self._lower, self._upper = (self._spread(x, self._rest) for x in (model.lower, model.upper))
        self._friction = self._spread(np.full(len(model.joint_names), drive.friction))
        self._tau = np.zeros(model.nv)

    def _spread(self, values: np.ndarray, rest: np.ndarray | float = 0.0) -> np.ndarray:
        """(joints,) numbers of all joints; those of locked ones are at rest."""
        spread = np.zeros(len(self._rest)) + rest
        spread[self._order] = values
        return spread

    def reset(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Forget the last run."""
        self._law.reset(len(self._rest))
        self._count = 0  # of samples
        self._states: list[np.ndarray] = []

    def command(self, t: float, q: np.ndarray, v: np.ndarray, reference: object) -> np.ndarray:
        """(nv,) torques of the drives after a round of messages. [N m, N]"""
        self._states.append(np.concatenate([q, v]))
        here = Joints(
            self._spread(q, self._rest), self._spread(v), self._lower, self._upper, self._friction
        )
        network, law, now = self._network, self._law, self._count * PERIOD_S
        network.measure(here.q, here.v)
        network.free = law.free(here) & self._moves
        decides = self._count % DECISION == 0
        self._links.round(now, think=decides)
        if decides:
            known = self._reader.read()
            law.decide(known, here, self._goal(now, known.center))
        wanted = law.torque(here, PERIOD_S)[self._order]
        tau = np.minimum(np.maximum(wanted, -self._most), self._most)  # faster than np.clip
        if self._links.asleep.any():  # drives of frozen modules go on, those of dead ones let go
            tau = np.where(self._links.asleep[self._owner], self._tau, tau)
            tau = np.where(self._links.dead[self._owner], 0.0, tau)
        self._tau, self._count = tau, self._count + 1
        return tau

    def record(self) -> dict[str, np.ndarray]:
        """Centers as the modules estimate them, and numbers of messages that each has sent."""
        network = self._network
        known = np.where(network.knows[:, None], network.centers(), np.nan)
        return {"estimates": known, "sent": network.sent}

    def dense(self, run: Trajectory) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
        """States at any time, and (N, nv) mean accelerations of the periods from `run.t` on.

        A step of semi-implicit Euler is a straight line. The acceleration right after a new torque
        decays within microseconds, so that no polynomial through it is a motion.
        """
        y = np.array([*self._states, np.concatenate([run.q[-1], run.v[-1]])])
        t = PERIOD_S * np.arange(len(y))
        first = np.minimum(np.round(run.t / PERIOD_S).astype(int), len(y) - 2)
        mean = np.diff(y[:, run.q.shape[1] :], axis=0)[first] / PERIOD_S
        return lambda s: np.array([np.interp(s, t, x) for x in y.T]).reshape(y.shape[1], -1), mean


def _start(model: Model, q0: ArrayLike | None) -> np.ndarray:
    q = model.neutral() if q0 is None else model.check_configuration(q0).copy()
    if q.ndim != 1:
        raise StateError(f"q0 is one configuration, got shape {q.shape}")
    return q
