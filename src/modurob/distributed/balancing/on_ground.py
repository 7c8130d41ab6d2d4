"""`stand`: simulated modules that stand on the ground, are pushed, and step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import as_floats, not_negative, positive
from modurob.distributed.balancing.agent import PERIOD_S
from modurob.distributed.balancing.faults import Fault, checked_faults
from modurob.distributed.balancing.plant import STOPS, GearedDrive, with_drives
from modurob.distributed.balancing.stance import Foot, Step, feet_of, stance
from modurob.distributed.balancing.standing import (
    StandingAgent,
    StandingState,
    contact_readings,
)
from modurob.distributed.mass.base import Network
from modurob.distributed.mass.network import MassNetwork
from modurob.distributed.transports import InProcess
from modurob.errors import StateError, UnknownNameError, choices
from modurob.organism import Organism
from modurob.sim import Ground, Trajectory, simulate
from modurob.spatial import so3
from modurob.stepping.contact import Touching

TICK = 20  # control periods between two rounds of messages
HEARTBEAT_S = 0.1  # of modules with no news: a dead neighbor is noticed though nothing moves
STIFFNESS = 60.0  # [N m/rad] of the servos
PUSH_S = 0.05
TILTED = np.radians(30.0)  # of the base: fallen
SUNK = 0.5  # share of the center's first height: fallen
SETTLED_S = 0.4  # after the start: soles have settled
LIFTED = 0.01  # [m] above the ground: a flight
STEP_TOLERANCE = 0.015  # [m] of a step
SLIPPED = 0.015  # [m] of a sole on the ground
FIRST_S, STEP_S = 1.0, 5.0  # of a run: to stand, and for each step


@dataclass(frozen=True)
class Impulse:
    """A push of the base within 50 ms.

    Attributes:
        time: When it begins. [s]
        vector: (3,) in the world, as the base stands at the start. [N s]
    """

    time: float
    vector: tuple[float, float, float]


class StandingModules(Network):
    """Modules of a robot that stands. Servos hold the joints at goals that their programs move.

    Args:
        organism: A tree.
        feet: Modules to stand on.
        steps: In their order.
        drive: Of the joints.
        stiffness: Of the servos. [N m/rad]
        margin: Least distance of the center from the border of the soles' polygon. [m]
        friction: Coefficient of the ground.
        options: Further ones of the modules; see `MassAgent`.

    Attributes:
        model: The body with a free base.
        plant: The body with its drives.
    """

    agent_class = StandingAgent

    def __init__(
        self,
        organism: Organism,
        feet: Sequence[Foot],
        steps: Sequence[Step] = (),
        *,
        drive: GearedDrive | None = None,
        stiffness: float = STIFFNESS,
        margin: float = 0.015,
        gravity: float = 9.81,
        friction: float = 1.0,
        **options: Any,
    ) -> None:
        self._base, self._friction = organism.base, friction
        self._feet, self._steps = {foot.module: foot for foot in feet}, tuple(steps)
        self.drive, self._stiffness = drive or GearedDrive(), positive("stiffness", stiffness, "")
        self.model = model = organism.model(
            "physical", base="free", gravity=(0.0, 0.0, -gravity), elastic=False
        )
        self.plant = with_drives(model, self.drive, np.zeros(len(model.joint_names), dtype=bool))
        period = TICK * PERIOD_S
        options |= {"frames": len(self._feet) + 1, "margin": margin, "period": period}
        options = {"heartbeat": HEARTBEAT_S, "resend": 2 * period, **options}
        super().__init__(organism, **options)

    def _settings(self, module: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        number = {name: k for k, name in enumerate(self._feet)}
        frame = (number[module], str(self._feet[module].port)) if module in number else None
        if module == self._base:
            frame = (len(number), None)
        own = [(k, s.shift) for k, s in enumerate(self._steps) if s.foot == module]
        return {**options, "frame": frame, "steps": own, "period": TICK * PERIOD_S}


class StandingNetwork(StandingModules, MassNetwork):
    """Modules of a robot that stands, in one process: a controller for `simulate`.

    Modules measure joints and contacts, and exchange messages, every 20 ms.

    Args:
        organism, feet, steps, options: See `StandingModules` and `MassNetwork`.
        faults: Of modules. Servos of one that freezes hold their goals, those of one that dies let
            go.

    Attributes:
        sample_time: Of the servos. [s]
    """

    sample_time = PERIOD_S

    def __init__(
        self,
        organism: Organism,
        feet: Sequence[Foot],
        steps: Sequence[Step] = (),
        *,
        faults: Sequence[Fault] = (),
        **options: Any,
    ) -> None:
        super().__init__(organism, feet, steps, **options)
        names = self.model.joint_names
        self._order = [self.joint_names.index(name) for name in names]
        self._owner = np.array([name.partition(".")[0] for name in names])
        self._limp = np.zeros(len(names), dtype=bool)
        self._goal, self._rate = np.zeros((2, len(names)))
        self._sensor: Callable[[], Touching] | None = None
        self._samples, self._faults = 0, checked_faults(faults, organism.modules)

    def connect_ground(self, sensor: Callable[[], Touching]) -> None:
        """Take the sensor of contacts of a simulation."""
        self._sensor = sensor

    def command(self, t: float, q: np.ndarray, v: np.ndarray, reference: object) -> np.ndarray:
        """(nv,) torques of the servos; every 20 ms after a round of messages. [N m, N]"""
        since = self._samples % TICK
        if since == 0:
            self._tick(q, v)
        self._samples += 1
        goal = self._goal + since * PERIOD_S * self._rate
        tau = self.drive.servo(self._stiffness, goal, self._rate, q[7:])
        return np.concatenate([np.zeros(6), np.where(self._limp, 0.0, tau)])

    def _tick(self, q: np.ndarray, v: np.ndarray) -> None:
        while self._faults and self._faults[0].time <= self.now:
            self._apply(self._faults.pop(0))
        self.measure(q[7:], v[6:], model=self.model)
        self.sense_contacts(q)
        self.round()
        goals = []
        for name, agent in self.agents.items():
            state = self.states[name]
            assert isinstance(agent, StandingAgent)
            assert isinstance(state, StandingState)
            if name in self._asleep:  # its servos hold
                state = replace(state, rate=np.zeros(len(state.rate)))
            goals.append(agent.driven(state)[1])
        self._goal, self._rate = np.concatenate(goals).reshape(-1, 2)[self._order].T

    def _apply(self, fault: Fault) -> None:
        act = {"freeze": self.freeze, "die": self.kill, "reboot": self.reboot}[fault.kind]
        act(fault.module)
        self._limp[self._owner == fault.module] = fault.kind == "die"

    def sense_contacts(self, q: np.ndarray) -> None:
        """Tell each module where the ground pushes it, and its pose there."""
        assert self._sensor is not None
        readings = contact_readings(self.organism, self.model, q, self._sensor(), self._friction)
        for name, agent in self.agents.items():
            state = self.states[name]
            assert isinstance(agent, StandingAgent)
            assert isinstance(state, StandingState)
            self.states[name] = agent.felt(state, readings.get(name, ()))


@dataclass(frozen=True, eq=False, repr=False)
class Stood(Trajectory):
    """A run on the ground, with what tells whether the robot fell, stepped, and slipped.

    All of it is judged by the simulated body alone.

    Attributes:
        feet: Modules it stands on.
        steps: That were asked for.
        lost: Modules that died.
    """

    feet: tuple[Foot, ...] = ()
    steps: tuple[Step, ...] = ()
    ground: Ground = field(default_factory=Ground)
    lost: frozenset[str] = frozenset()

    @property
    def center(self) -> np.ndarray:
        """(N, 3) center of mass. [m]"""
        return self.channels["center"]

    @property
    def height(self) -> np.ndarray:
        """(N,) of the center above the ground below it. [m]"""
        x, y, z = self.center.T
        return z - self.ground.surface(x, y)[0]

    @cached_property
    def _sole_bodies(self) -> tuple[list[int], np.ndarray]:
        """Bodies of the soles, and (feet, 4, 4) the soles there."""
        organism = self.parts[0].organism
        assert organism is not None
        ports = [organism.kind(foot.module).port(foot.port) for foot in self.feet]
        names = [f"{f.module}.{p.body}" for f, p in zip(self.feet, ports, strict=True)]
        return [self.model.body_index(name) for name in names], np.array([p.pose for p in ports])

    @cached_property
    def soles(self) -> np.ndarray:
        """(N, feet, 3) places of the soles. [m]"""
        bodies, pose = self._sole_bodies
        return (self.model.forward_kinematics(self.q)[:, bodies] @ pose)[..., :3, 3]

    @cached_property
    def _flights(self) -> list[tuple[int, int, int]]:
        """First and last sample, and number of the foot, of each flight above `LIFTED`, in order.

        A foot flies while the ground does not push it.
        """
        pushed = np.any(self.channels["contact"][:, self._sole_bodies[0]], axis=-1)
        away = np.logical_not(pushed)  # (N, feet)
        x, y, z = np.moveaxis(self.soles, -1, 0)
        high = z - self.ground.surface(x, y)[0]
        found = []
        for foot in range(len(self.feet)):
            edges = np.flatnonzero(np.diff(away[:, foot].astype(int), prepend=0, append=0))
            for a, b in edges.reshape(-1, 2).tolist():
                if high[a:b, foot].max() > LIFTED:
                    found.append((max(a - 1, 0), min(b, len(self.t) - 1), foot))
        return sorted(found, key=lambda flight: flight[1])

    @property
    def steps_done(self) -> int:
        """Steps that were made as asked, in their order.

        The foot flies, and lands within `STEP_TOLERANCE` of its shift; no other sole moves by
        `SLIPPED` meanwhile, nor since the step before.
        """
        names = [foot.module for foot in self.feet]
        before = min(int(np.searchsorted(self.t, SETTLED_S)), len(self.t) - 1)
        for done, step in enumerate(self.steps):
            if done == len(self._flights):
                return done
            _, end, foot = self._flights[done]
            moved = self.soles[end] - self.soles[before]
            moved[foot] -= step.shift
            most = np.where(np.arange(len(names)) == foot, STEP_TOLERANCE, SLIPPED)
            if names[foot] != step.foot or (np.linalg.norm(moved[:, :2], axis=1) > most).any():
                return done
            before = end
        return len(self.steps)

    @property
    def slip(self) -> np.ndarray:
        """(feet,) farthest distance of each sole from where it stood or landed. [m]

        A foot that steps counts until the step before has landed, and again when it has landed. One
        that was not asked to step counts all the time, also when it was knocked off the ground.
        """
        first = min(int(np.searchsorted(self.t, SETTLED_S)), len(self.t) - 1)
        slip = np.zeros(len(self.feet))
        stepping = {step.foot for step in self.steps}
        flights = [x for x in self._flights if self.feet[x[2]].module in stepping]
        for foot in range(len(self.feet)):
            own = [(a, b) for a, b, k in flights if k == foot]
            begins = [first, *(b for _, b in own)]
            stayed = [max([first, *(b for _, b, _ in flights if b <= a)]) for a, _ in own]
            for a, b in zip(begins, [*stayed, len(self.t) - 1], strict=True):
                way = self.soles[a : b + 1, foot, :2] - self.soles[a, foot, :2]
                slip[foot] = max(slip[foot], *np.linalg.norm(way, axis=1))
        return slip

    @property
    def tilt(self) -> np.ndarray:
        """(N,) angle of the base's vertical to that at the start. [rad]"""
        R = so3.from_quaternion(self.q[:, 3:7])
        up = R[0].T @ [0.0, 0.0, 1.0]
        return np.arccos(np.clip((R @ up)[:, 2], -1.0, 1.0))

    @property
    def fallen(self) -> str | None:
        """Why the robot counts as fallen: the ground pushes a body without a sole, for one.

        Legs that died, and all beyond, may lie on the ground.
        """
        organism = self.parts[0].organism
        assert organism is not None
        lying = {name for module in self.lost for name in organism.subtree(module)}
        force = np.linalg.norm(self.channels["contact"], axis=-1)
        for k, name in enumerate(self.model.body_names):
            may_touch = k in self._sole_bodies[0] or name.partition(".")[0] in lying
            if not may_touch and force[:, k].any():
                when = self.t[np.argmax(force[:, k] > 0)]
                return f"'{name}' touches the ground at {when:.2f} s"
        if self.tilt.max() > TILTED:
            return f"the base tilts by {np.degrees(self.tilt.max()):.0f} degrees"
        if self.height.min() < SUNK * self.height[0]:
            return f"the center sinks to {self.height.min():.3f} m"
        return None


def stand(
    organism: Organism,
    *,
    feet: Mapping[str, int | str] | None = None,
    steps: Sequence[tuple[str, ArrayLike]] = (),
    push: Impulse | None = None,
    ground: Ground | None = None,
    loss: float = 0.0,
    faults: Sequence[Fault] = (),
    processes: bool = False,
    q0: ArrayLike | None = None,
    duration: float | None = None,
    drive: GearedDrive | None = None,
    stiffness: float = STIFFNESS,
    margin: float = 0.015,
    gravity: float = 9.81,
    record: float = 0.02,
    rng: np.random.Generator | None = None,
    progress: Callable[[float], None] | None = None,
) -> Stood:
    """Let the modules of an organism stand on the ground, and step.

    Args:
        organism: A tree.
        feet: Modules to stand on, and the connector that is the sole of each; by default the ends
            of the tree.
        steps: Foot and shift (2,) on the ground of one step after the other. [m]
        push: Of the base.
        ground: A plane; level by default.
        loss: Chance that a message between neighbors is lost.
        faults: Of modules; see `StandingNetwork`.
        processes: Whether to run each module, and the body, in a process of its own; modules then
            die, and do not freeze or reboot.
        q0: (nq,) first configuration of the free body; by default one that is searched for.
        duration: 1 s, and 5 s for each step, by default. [s]
        drive: Friction and torque of the drives.
        stiffness: Of the servos. [N m/rad]
        margin: Least distance of the center from the border of the soles' polygon. [m]
        gravity: Downwards. [m/s^2]
        record: Seconds between the states that are kept.
        rng: For the search of the first configuration, and for lost messages.
        progress: Called with the fraction that is done.
    """
    if not isinstance(organism, Organism):
        raise StateError(f"stand takes an Organism, got {type(organism).__name__}")
    ground = replace(ground or Ground(), lift=True)
    if not ground.is_plane:
        raise StateError("stand takes a plane, level or not: leave out the ground's height field")
    soles = feet_of(organism, feet)
    plan = [_step(s, soles, ground) for s in steps]
    rng = np.random.default_rng(0) if rng is None else rng
    settings = {"drive": drive, "stiffness": stiffness, "margin": margin, "gravity": gravity}
    network = StandingNetwork(
        organism, soles, plan, friction=ground.friction, faults=faults,
        transport=InProcess(loss=loss, rng=rng), **settings,
    )  # fmt: skip
    for fault in faults:
        if processes and fault.kind != "die":
            raise StateError(f"modules of processes die, and do not {fault.kind}: give 'die'")
    model = network.model
    q = stance(organism, soles, rng, plan) if q0 is None else model.check_configuration(q0).copy()
    q = _on_slope(q, ground) if q0 is None else q
    length = FIRST_S + STEP_S * len(plan) if duration is None else duration
    if processes:
        from modurob.distributed.balancing.standing_processes import StandingProcesses

        seed = int(rng.integers(2**31))
        with StandingProcesses(
            organism, soles, plan, ground=ground, q0=q, loss=loss, seed=seed, **settings
        ) as robot:
            part = robot.run(length, push=push, faults=faults, record=record, progress=progress)
    else:
        external = {} if push is None else {organism.base: _wrench(push, q)}
        (part,) = simulate(
            network.plant, q, None, length, network, "SemiImplicitEuler", dt=PERIOD_S,
            ground=ground, stops=STOPS, record=record, organism=organism, external=external,
            progress=progress or False,
        ).parts  # fmt: skip
    channels = {**part.channels, "center": model.center_of_mass(part.q)}
    part = replace(part, channels=MappingProxyType(channels))
    return Stood(
        (part,), integrator="SemiImplicitEuler", feet=soles, steps=tuple(plan), ground=ground,
        lost=frozenset(fault.module for fault in faults if fault.kind == "die"),
    )  # fmt: skip


def _step(step: tuple[str, ArrayLike], feet: Sequence[Foot], ground: Ground) -> Step:
    foot, shift = step
    names = [foot.module for foot in feet]
    if foot not in names:
        raise UnknownNameError(f"no foot {foot!r} to step with: feet are {choices(names)}")
    place = as_floats(shift)
    if place.shape != (2,) or not np.isfinite(place).all():
        raise StateError(f"the shift of a step is (x, y) in meters, got {shift!r}")
    return Step(foot, (*place.tolist(), float(place @ ground.slope)))


def _on_slope(q: np.ndarray, ground: Ground) -> np.ndarray:
    """The configuration of a body on level ground, turned with the ground about the origin."""
    a, b = ground.slope
    n = np.array([-a, -b, 1.0]) / np.sqrt(1 + a * a + b * b)
    axis = np.cross([0.0, 0.0, 1.0], n)
    R = so3.exp(axis * (np.arcsin(np.linalg.norm(axis)) / max(np.linalg.norm(axis), 1e-12)))
    q = q.copy()
    q[:3] = R @ q[:3] + [0.0, 0.0, float(np.asarray(ground.height))]
    q[3:7] = so3.to_quaternion(R @ so3.from_quaternion(q[3:7]))
    return q


def _wrench(push: Impulse, q: np.ndarray) -> Callable[[float], np.ndarray]:
    force = so3.from_quaternion(q[3:7]).T @ as_floats(push.vector) / PUSH_S
    wrench, begin = np.concatenate([force, np.zeros(3)]), not_negative("time", push.time, "s")
    return lambda t: wrench * (begin <= t < begin + PUSH_S)
