"""`balance`: modules that bring their center of mass above where they stand, simulated."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import positive
from modurob.distributed.balancing.faults import Fault, Links
from modurob.distributed.balancing.knowledge import InputReader
from modurob.distributed.balancing.laws import Joints, law_named
from modurob.distributed.balancing.plant import Drive, Plant
from modurob.distributed.balancing.result import Balanced
from modurob.distributed.mass.lockstep import LockStep
from modurob.errors import StateError
from modurob.model import Model
from modurob.organism import Organism

PERIOD = 1e-3  # [s] of the control loop and of a round of messages
DECISION = 5  # control periods between two decisions where to go
RATE = 25.0  # [1/s] of the shared law

Target = ArrayLike | Callable[[float, np.ndarray], ArrayLike]


def balance(
    organism: Organism,
    law: str = "shared",
    *,
    q0: ArrayLike | None = None,
    duration: float = 5.0,
    target: Target | None = None,
    drive: Drive | None = None,
    loss: float = 0.0,
    delay: int = 0,
    faults: Sequence[Fault] = (),
    stuck: Sequence[str] = (),
    rate: float = RATE,
    gravity: float = 9.81,
    record: float = 5e-3,
    rng: np.random.Generator | None = None,
    progress: Callable[[float], None] | None = None,
) -> Balanced:
    """Let the modules of an organism balance by themselves, its base fixed to the ground.

    Every module knows its own joints and what its neighbors tell it over a network that takes a
    millisecond for each docking; each joint then acts on its own.

    Args:
        organism: A tree; its base stands on the ground.
        law: ``default``, ``distance`` or ``momentum`` of moll2006, or ``shared``.
        q0: (nq,) where the joints start, in the order of ``organism.model("physical")``.
        duration: [s]
        target: (2,) what the center shall be above, in the world; or a function of the time and of
            the center (..., 3) that gives (..., 2). By default where the base stands. [m]
        drive: Friction and torque of the drives.
        loss: Chance that a message does not arrive.
        delay: Further milliseconds that each message takes for a docking.
        faults: What happens to modules, and when.
        stuck: Joints that do not move, such as ``m3.pitch``.
        rate: How fast the shared law goes. [1/s]
        gravity: Downwards. [m/s^2]
        record: Seconds between the states that are kept.
        rng: For `loss`.
        progress: Told the share that is done.
    """
    model = organism.model("physical", gravity=(0.0, 0.0, -gravity))
    if not model.mass.sum() > 0:
        raise StateError("the organism has no mass, so there is nothing to balance")
    q = _start(model, q0)
    steps = round(positive("duration", duration, "seconds") / PERIOD)
    stride = max(1, round(positive("record", record, "seconds") / PERIOD))
    network = LockStep(organism, delay=delay)
    links = Links(network, loss, faults, PERIOD, rng)
    body = _Body(organism, model, network, drive or Drive(), stuck)
    width = organism.kind(organism.base).size
    chosen = law_named(law, width, gravity, positive("rate", rate, "1/s"))
    chosen.reset(len(network.joint_names))
    goal = _goal(organism, target)
    reader = InputReader(network)
    v, tau = np.zeros(model.nv), np.zeros(model.nv)
    kept: list[tuple[Any, ...]] = []
    begin = time.process_time()
    for k in range(steps):
        now = k * PERIOD
        here = body.felt(q, v)
        network.measure(here.q, here.v)
        network.free = chosen.free(here) & body.moves
        decides = k % DECISION == 0
        links.round(now, think=decides)
        if decides:
            known = reader.read()
            chosen.decide(known, here, goal(now, known.center))
        tau = body.torque(chosen.torque(here, PERIOD), tau, links)
        if k % stride == 0:
            kept.append((now, q, v, tau, *_known(network)))
            if progress is not None and k % 100 == 0:
                progress(k / steps)
        q, v = body.plant.step(q, v, tau, PERIOD)
    kept.append((steps * PERIOD, q, v, tau, *_known(network)))
    seconds = time.process_time() - begin
    t, qs, vs, taus, centers, knows, sent = (np.array(x) for x in zip(*kept, strict=True))
    center = model.center_of_mass(qs)
    targets = np.array([goal(s, c) for s, c in zip(t.tolist(), center, strict=True)])
    return Balanced(
        organism=organism,
        model=model,
        law=law,
        width=width,
        t=t,
        q=qs,
        v=vs,
        tau=taus,
        center=center,
        target=targets,
        estimates=np.where(knows[..., None], centers, np.nan),
        sent=sent,
        lost=links.lost,
        seconds=seconds,
    )


def _known(network: LockStep) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centers as the modules know them, which of them do, and how often each has spoken."""
    return network.centers(), network.knows.copy(), network.sent.copy()


class _Body:
    """The plant as the modules' joints see it: in their order, without those that are locked."""

    def __init__(
        self,
        organism: Organism,
        model: Model,
        network: LockStep,
        drive: Drive,
        stuck: Sequence[str],
    ) -> None:
        names = {name: k for k, name in enumerate(network.joint_names)}
        for joint in stuck:
            model.joint_index(joint)
        self._order = np.array([names[name] for name in model.joint_names], dtype=int)
        self._rest, self._joints = network.wiring.rest, len(names)
        self.plant = Plant(model, drive, np.isin(model.joint_names, list(stuck)))
        self.moves = np.zeros(self._joints, dtype=bool)
        self.moves[self._order] = ~np.isin(model.joint_names, list(stuck))
        modules = network.wiring.modules
        self._owner = np.array([modules.index(n.split(".")[0]) for n in model.joint_names])
        self._lower = self._spread(model.lower, self._rest)
        self._upper = self._spread(model.upper, self._rest)
        self._friction = self._spread(self.plant.friction)

    def _spread(self, values: np.ndarray, rest: np.ndarray | float = 0.0) -> np.ndarray:
        spread = np.zeros(self._joints) + rest
        spread[self._order] = values
        return spread

    def felt(self, q: np.ndarray, v: np.ndarray) -> Joints:
        """What the drives feel."""
        place, speed = self._spread(q, self._rest), self._spread(v)
        return Joints(place, speed, self._lower, self._upper, self._friction)

    def torque(self, wanted: np.ndarray, before: np.ndarray, links: Links) -> np.ndarray:
        """(nv,) what the drives do: those of frozen modules go on, those of dead ones let go."""
        most = self.plant.drive.torque
        tau = np.clip(wanted[self._order], -most, most)
        if links.asleep.any():
            tau = np.where(links.asleep[self._owner], before, tau)
            tau = np.where(links.dead[self._owner], 0.0, tau)
        return tau


def _start(model: Model, q0: ArrayLike | None) -> np.ndarray:
    q = model.neutral() if q0 is None else model.check_configuration(q0).copy()
    if q.ndim != 1:
        raise StateError(f"q0 is one configuration, got shape {q.shape}")
    return q


def _goal(organism: Organism, target: Target | None) -> Callable[[float, np.ndarray], np.ndarray]:
    if callable(target):
        ask = target
        return lambda t, center: np.asarray(ask(t, center), dtype=float)
    point = np.asarray(organism.base_pose[:2, 3] if target is None else target, dtype=float)
    if point.shape != (2,) or not np.isfinite(point).all():
        raise StateError(f"target is a point (x, y) of the ground or a function, got {target!r}")
    return lambda t, center: np.broadcast_to(point, (*center.shape[:-1], 2))
