"""A simulated robot behind the modules of a bus: what is docked to the base moves.

The plant is the truth of a trial: its links may be heavier, its sensors noisy, its motors weak or
broken, without any module knowing.
"""

from __future__ import annotations

import atexit
import math
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from modurob.checks import LARGEST_DATA, gravity_vector, inside, not_negative, positive, whole
from modurob.control.plants import with_payload, with_scaled_masses
from modurob.distributed.balancing.plant import STOPS, STUCK_FRICTION, GearedDrive
from modurob.distributed.balancing.standing import contact_readings
from modurob.distributed.drive import Mailbox, SharedMemory, Values
from modurob.distributed.processes import Processes
from modurob.distributed.transports import End
from modurob.errors import DockingError, ModurobError, StateError, UnknownNameError, choices
from modurob.model import Model
from modurob.modules import ModuleType, catalog
from modurob.organism import Organism
from modurob.sim.reconfiguration import carry
from modurob.sim.reconfiguration.carry import BodyState
from modurob.sim.reconfiguration.events import Dock
from modurob.stepping import (
    RK4,
    EquationOfMotion,
    FixedStep,
    Ground,
    GroundContact,
    SemiImplicitEuler,
    StepSettings,
    Stops,
)
from modurob.stepping.motion import Stopped
from modurob.stepping.stops import StopForces

BASE = "base"  # the coordinator's side: ("base", "out")
PLANT = "plant"  # name of its process
WATCHDOG_S = 0.1  # without a torque, motors let go
LARGEST_NOISE = 1e6  # [rad, m, rad/s, m/s] a larger reading counts as a fault
CONTACTS_S = 0.01  # between readings of contact sensors
RESTING_S = 0.01  # between readings while nothing moves; drives tolerate several times that
LONGEST_LEAP_S = 0.05  # that the plant makes up for; it stands still while its process is stopped
DriveFault = Literal["none", "stuck", "limp"]


@dataclass(frozen=True)
class PlantOptions:
    """Properties of the plant that the modules' datasheets do not tell.

    Attributes:
        gravity: (3,) in the base's frame. [m/s^2]
        step: Of the integration. [s]
        noise_q, noise_v: Standard deviations of the sensors. [rad, m, rad/s, m/s]
        friction: Viscous, added to that of the datasheets. [N m s/rad, N s/m]
        torque: Largest torque of the motors. [N m, N]
        mass_factor: Of all masses and inertias.
        stiffness: Of servos, which commands then are for: goal and rate of each joint. 0: commands
            are torques. [N m/rad, N/m]
        ground: A plane on which the robot stands with a free base; None: its base is fixed.
        geared: Whether drives have soft stops and much friction, as in `balance`; the integration
            then takes both implicitly.
        speed: Simulated seconds in a second of the process.
        seed: Of the noise.
    """

    gravity: Sequence[float] = (0.0, 0.0, -9.81)
    step: float = 1e-3
    noise_q: float = 0.0
    noise_v: float = 0.0
    friction: float = 0.0
    torque: float = math.inf
    mass_factor: float = 1.0
    stiffness: float = 0.0
    ground: Ground | Mapping[str, Any] | None = None
    geared: bool = False
    speed: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        gravity_vector(self.gravity)
        whole("seed", self.seed, 0)
        inside("step", self.step, 1e-6, 0.1, "seconds")
        inside("mass_factor", self.mass_factor, 1e-3, 1e3, "times the masses of the datasheets")
        inside("speed", self.speed, 1e-3, 1e3, "simulated seconds a second")
        inside("noise_q", self.noise_q, 0.0, LARGEST_NOISE, "rad or m")
        inside("noise_v", self.noise_v, 0.0, LARGEST_NOISE, "rad/s or m/s")
        inside("friction", self.friction, 0.0, STUCK_FRICTION, "N m s/rad or N s/m")
        not_negative("stiffness", self.stiffness, "N m/rad or N/m")
        if isinstance(self.ground, Mapping):  # as JSON has it
            object.__setattr__(self, "ground", Ground(**self.ground))
        if not (isinstance(self.torque, float) and self.torque == math.inf):
            positive("torque", self.torque, "N m or N")


class Push(NamedTuple):
    """A force on the robot until some time."""

    until: float  # [s]
    joint: str = ""  # a torque on this joint ...
    torque: float = 0.0  # [N m, N]
    module: str = ""  # ... or a force on this module's origin, in the world
    force: Values = ()  # [N]


@dataclass
class Plant:
    """The modules of a bus as bodies: one robot at the base, other pieces at rest beside it.

    Pieces that are not docked to the base are held in place: they do not move, and come to the
    robot with the velocity of the port where they are docked.

    Attributes:
        t: Simulated time. [s]
        state: The robot at the base; None while nothing is docked there.
        refused: Dockings that cannot be, with turn [deg] and reason; they are tried again
            after each undocking.
    """

    options: PlantOptions = field(default_factory=PlantOptions)
    t: float = 0.0
    state: BodyState | None = None
    refused: dict[tuple[End, End], tuple[int, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.options, PlantOptions):
            raise StateError(f"a plant takes PlantOptions(...), got {self.options!r}")
        self._kinds: dict[str, ModuleType] = {}
        self._pieces: dict[str, Organism] = {}  # by each of their modules
        self._held: dict[str, float] = {}  # displacements of joints that do not move
        self._commands: dict[str, tuple[Values, float]] = {}  # torques and when they came
        self._faults: dict[str, DriveFault] = {}
        self._payloads: dict[str, float] = {}  # [kg]
        self._pushes: list[Push] = []
        self._pose = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])  # of a base that is free
        self._contact: GroundContact | None = None
        self._rng = np.random.default_rng(self.options.seed)
        self._integrator: FixedStep | None = None
        self._tau = np.zeros(0)
        self._joints: dict[str, tuple[str, ...]] = {}  # of each module
        self._place: dict[str, int] = {}  # of each joint of the robot in its state

    def handle(self, event: Mapping[str, Any]) -> None:
        """One of the events of a bus; see the methods."""
        match event:
            case {"add": name, "kind": kind}:
                self.add(name, ModuleType.model_validate(kind))
            case {"dock": [one, other, turn]}:
                self.plug(tuple(one), tuple(other), turn)
            case {"undock": [one, other]}:
                self.unplug(tuple(one), tuple(other))
            case {"hold": joints, "pose": pose}:
                self._held |= joints
                self._pose = np.array(pose)
            case {"push": where, "seconds": seconds}:
                self.push(Push(self.t + seconds, **where))
            case {"payload": name, "mass": mass}:
                self.payload(name, mass)
            case {"fault": name, "as": kind}:
                self.fault(name, kind)

    # -- modules and dockings ----------------------------------------------------------------------

    def add(self, name: str, kind: ModuleType) -> None:
        """Put a module beside the robot."""
        if not isinstance(name, str) or not isinstance(kind, ModuleType):
            raise StateError(
                f"a plant takes a name and a ModuleType, got {name!r} and {kind!r:.60}"
            )
        self._kinds[name] = kind
        self._joints[name] = tuple(f"{name}.{j.name}" for j in kind.joints if j.kind != "fixed")
        self._pieces[name] = Organism.start(kind, name)

    def plug(self, one: End, other: End, turn: int = 0) -> None:
        """Dock two ports; what cannot be docked stays apart, see `refused`."""
        self._check_ends(one, other)
        if one[0] == BASE:
            one, other = other, one
        try:
            if other[0] == BASE:
                self._ground(one[0])
            else:
                self._dock(one, other, turn)
        except ModurobError as error:
            self.refused[one, other] = turn, str(error)

    def unplug(self, one: End, other: End) -> None:
        """Undock two ports."""
        self._check_ends(one, other)
        if self.refused.pop((one, other), self.refused.pop((other, one), None)) is not None:
            return
        self._undock(one, other)
        waiting, self.refused = self.refused, {}
        for (a, b), (turn, _) in waiting.items():
            self.plug(a, b, turn)

    def _undock(self, one: End, other: End) -> None:
        if BASE in (one[0], other[0]):
            if self.state is not None:
                self._lay_aside(self.state.organism)
                self._become(None)
            return
        whole = self._whole(one[0])
        docking = whole.docking(one[0])
        child = one[0] if docking is not None and docking.parent == other[0] else other[0]
        rest, gone = whole.undock(child)
        if self.state is not None and whole is self.state.organism:
            before = self.state
            self._held |= before.joints()
            self._become(carry.undocked(before, rest, self._model(rest)))
        else:
            self._lay_aside(rest)
        self._lay_aside(gone)

    def _whole(self, module: str) -> Organism:
        if self.state is not None and module in self.state.organism:
            return self.state.organism
        return self._pieces[module]

    def _lay_aside(self, organism: Organism) -> None:
        if self.state is not None:
            self._held |= self.state.joints()
        self._pieces |= dict.fromkeys(organism.modules, organism)

    def _ground(self, module: str) -> None:
        if self.state is not None:
            raise DockingError("the base holds a robot already")
        organism = self._pieces[module].rebase(module).with_base_pose(np.eye(4))
        model = self._model(organism)
        q = np.array([self._held.get(name, 0.0) for name in model.joint_names])
        q = np.concatenate([self._pose, q]) if model.free_base else q
        self._become(BodyState(organism, model, q, np.zeros(model.nv)))

    def _dock(self, one: End, other: End, turn: int) -> None:
        host, guest = self._whole(one[0]), self._whole(other[0])
        if host is guest:
            raise DockingError(f"'{one[0]}' and '{other[0]}' are parts of one body: a loop")
        if self.state is not None and guest is self.state.organism:
            one, other, host, guest = other, one, guest, host
        ports = [self._label(end) for end in (one, other)]
        whole = host.merge(one[0], ports[0], guest, other[0], ports[1], turn=turn)
        if self.state is None or host is not self.state.organism:
            self._lay_aside(whole)
            return
        model = self._model(whole)
        own = guest.model("physical", "free", self.options.gravity, elastic=False)
        event = Dock(
            self.t, one[0], ports[0], other[0], ports[1], organism=guest, turn=turn,
            q=[self._held.get(name, 0.0) for name in own.joint_names],
        )  # fmt: skip
        newcomer = carry.newcomer(event, guest, own, self.state, model, self._held)
        self._become(carry.docked(other[0], self.state, newcomer, whole, model, self._held).state)

    def _label(self, end: End) -> int | str:
        for port in self._kinds[end[0]].ports:
            if str(port.label) == end[1]:
                return port.label
        raise UnknownNameError(f"'{end[0]}' has no port {end[1]}")

    # -- the robot at the base ---------------------------------------------------------------------

    def _model(self, organism: Organism) -> Model:
        """The true model: of the datasheets, with what they do not tell."""
        base = "fixed" if self.options.ground is None else "free"
        model = organism.model("physical", base, self.options.gravity, elastic=False)
        if self.options.mass_factor != 1:
            model = with_scaled_masses(model, self.options.mass_factor)
        for module in self._payloads.keys() & set(organism.modules):
            body = max(k for k, name in enumerate(model.body_names) if _module_of(name) == module)
            if mass := self._payloads[module]:
                model = with_payload(model, model.body_names[body], mass)
        stuck = [self._faults.get(_module_of(name)) == "stuck" for name in model.joint_names]
        viscous = model.viscous + self.options.friction + np.where(stuck, STUCK_FRICTION, 0.0)
        return replace(model, viscous=viscous, organism=None, options=None)

    def _become(self, state: BodyState | None, *, lift: bool = False) -> None:
        """Go on with another robot, lifted out of the ground or refused if it begins in there."""
        if state is None:
            self._contact = None
        elif state.model.nv:
            state, self._contact = self._standing(state, lift)  # an error leaves all as it was
        self.state, self._integrator, self._place = state, None, {}
        if state is None:
            return
        first = state.model.nv - len(state.model.joint_names)
        self._place = {name: k for k, name in enumerate(state.model.joint_names, first)}
        for module in state.organism.modules:
            self._pieces.pop(module, None)
        model = state.model
        if model.nv:
            stuck = (model.viscous >= STUCK_FRICTION).any()
            geared = self.options.geared
            stops = None
            if geared or np.isfinite([model.lower, model.upper]).any():
                stops = StopForces(STOPS if geared else Stops(), model, state.q)
            motion = EquationOfMotion(model, (), self._torque, stops, ground=self._contact)
            method = SemiImplicitEuler if stuck or geared else RK4
            self._integrator = method(motion, StepSettings(1e-6, 1e-6, self.options.step))
        self._tau = np.zeros(model.nv)

    def _standing(self, state: BodyState, lift: bool) -> tuple[BodyState, GroundContact | None]:
        """The robot on the ground, which stays as it was under a robot that has changed."""
        ground, before = self.options.ground, [self._contact] if self._contact else []
        if not isinstance(ground, Ground):
            return state, None
        ground, step = replace(ground, lift=ground.lift or lift), self.options.step
        found = GroundContact(ground, state.model, state.organism, state.q, step, before)
        if not before:
            state = replace(state, q=found.started(state.q))
        found.accepted(state.q, state.v)
        return state, found

    def _changed(self) -> None:
        """Take over new masses and faults into the robot that moves."""
        if self.state is not None:
            state = self.state
            self._become(BodyState(state.organism, self._model(state.organism), state.q, state.v))

    # -- motors and sensors ------------------------------------------------------------------------

    def command(self, name: str, torques: Values) -> None:
        """Set the torques of a module's motors; nothing lets them go. [N m, N]"""
        self._commands[name] = torques, self.t

    def reading(self, name: str) -> Values:
        """Measured q, v, q, v ... of a module's joints."""
        self._demand(name)
        values = [x for joint in self._joints[name] for x in self._measured(joint)]
        noise = self.options.noise_q, self.options.noise_v
        if any(noise):
            drawn = self._rng.standard_normal((len(values) // 2, 2)) * noise
            values = (np.array(values) + drawn.ravel()).tolist()
        return tuple(values)

    def _measured(self, joint: str) -> tuple[float, float]:
        k = self._place.get(joint)
        if self.state is None or k is None:
            return self._held.get(joint, 0.0), 0.0
        model = self.state.model
        return float(self.state.q[k + model.nq - model.nv]), float(self.state.v[k])

    def contacts(self) -> dict[str, Values]:
        """Readings of the contact sensors; none of modules that do not touch the ground."""
        state, ground = self.state, self.options.ground
        if state is None or self._contact is None or not isinstance(ground, Ground):
            return {}
        touching = self._contact.touching(state.q, state.v)
        return contact_readings(state.organism, state.model, state.q, touching, ground.friction)

    def observed(self) -> dict[str, Any]:
        """Time, state, and force (bodies, 3) of the ground, in the world. [s, N]"""
        if self.state is None or self._contact is None:
            return {}
        q, v = self.state.q, self.state.v
        return {"t": self.t, "q": q, "v": v, "contact": self._contact.observed(q, v)["contact"]}

    def fault(self, module: str, kind: DriveFault) -> None:
        """Let the drives of a module be stuck or limp, or whole again with ``none``."""
        self._demand(module)
        if kind not in get_args(DriveFault):
            raise UnknownNameError(f"no fault {kind!r}: faults are {choices(get_args(DriveFault))}")
        self._faults[module] = kind
        self._changed()

    def payload(self, module: str, mass: float) -> None:
        """Put a load on the far body of a module, a point at the body's origin; 0 takes it off.

        Args:
            module: Of the robot.
            mass: [kg]
        """
        self._demand(module)
        self._payloads[module] = inside("payload", mass, 0.0, LARGEST_DATA, "kg")
        self._changed()

    def push(self, push: Push) -> None:
        """Push a joint or a module until some time."""
        if push.joint:
            joints = () if self.state is None else self.state.model.joint_names
            if push.joint not in joints:
                raise UnknownNameError(f"no joint '{push.joint}': joints are {choices(joints)}")
        else:
            self._demand(push.module)
        self._pushes.append(push)

    def _check_ends(self, *ends: End) -> None:
        for end in ends:
            if not (isinstance(end, tuple) and len(end) == 2):
                raise DockingError(f"an end is (module, port) such as ('m0', 'out'), got {end!r}")
            if end[0] != BASE:
                self._demand(end[0])

    def _demand(self, module: str) -> None:
        if module not in self._kinds:
            raise UnknownNameError(f"no module '{module}': there are {choices(self._kinds)}")

    def _torque(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._tau

    def advance(self, until: float) -> None:
        """Move on to a later time, with the torques as they are.

        Raises:
            StateError: The robot diverged; it begins anew, at rest in its neutral pose.
        """
        not_negative("until", until, "seconds")
        while self._integrator is not None and self.state is not None and self.t < until - 1e-12:
            t = min(until, self.t + self.options.step)
            try:
                self._tau = self._forces(self.state)
                *_, last = self._integrator.steps(self.t, t, self.state.q, self.state.v)
            except (Stopped, ModurobError) as error:
                self._set_to_rest(self.state)
                raise StateError(f"the plant was set to rest at zero: {error}") from None
            self.state = replace(self.state, q=last.q, v=last.v)
            self.t = t
        self.t = max(self.t, until)
        self._pushes = [push for push in self._pushes if push.until > self.t]

    def _set_to_rest(self, state: BodyState) -> None:
        self._pushes, self._commands, self._contact = [], {}, None
        q = state.model.neutral()
        if state.model.free_base:
            q[: len(self._pose)] = self._pose
        self._become(replace(state, q=q, v=np.zeros(state.model.nv)), lift=True)

    def _forces(self, state: BodyState) -> np.ndarray:
        """(nv,) of motors and pushes. [N m, N]"""
        model, tau, place = state.model, np.zeros(state.model.nv), self._place
        for module, (values, at) in self._commands.items():
            late = self.t - at > WATCHDOG_S
            if not values or self._faults.get(module, "none") != "none":
                continue
            if self.options.stiffness:  # a servo without a new command stays at its goal
                self._servo(state, tau, module, np.array(values), min(self.t - at, WATCHDOG_S))
                continue
            if late:
                continue
            for joint, torque in zip(self._joints[module], values, strict=False):
                k = place.get(joint)
                if k is not None and math.isfinite(torque):
                    tau[k] += min(max(torque, -self.options.torque), self.options.torque)
        for push in self._pushes:
            if push.joint in place:
                tau[place[push.joint]] += push.torque
            elif push.module in model.modules:
                J = model.jacobian(state.q, push.module, "world")
                T = model.forward_kinematics(state.q)[model.modules[push.module]]
                f = np.asarray(push.force)
                tau += J.T @ np.concatenate([f, np.cross(T[:3, 3], f)])
        return tau

    def _servo(
        self, state: BodyState, tau: np.ndarray, module: str, values: np.ndarray, age: float
    ) -> None:
        """Add the torques of a module's servos, `age` seconds after their command."""
        own = [self._place[joint] for joint in self._joints[module] if joint in self._place]
        if len(values) == 2 * len(own) and np.isfinite(values).all():
            (goal, rate), q = values.reshape(-1, 2).T, state.q[state.model.joint_slice_q]
            first = state.model.nv - len(q)
            q = q[np.array(own) - first]
            options = self.options
            drive = GearedDrive(options.friction, options.torque)
            tau[own] += drive.servo(options.stiffness, goal + age * rate, rate, q)


class PlantProgram:
    """The `Program` of the plant's process: it runs by the clock, its drives are in memory.

    Its answers are errors.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._plant = Plant(PlantOptions(**settings["options"]))
        _warm_up(self._plant.options)
        self._memory = SharedMemory(settings["memory"])
        # its parent may be killed: the last one to know the file removes it
        atexit.register(lambda: Path(settings["memory"]).unlink(missing_ok=True))
        self._drives: dict[str, tuple[Mailbox, Mailbox]] = {}
        self._contacts: dict[str, Mailbox] = {}
        self._felt_at = -math.inf
        self._begin = time.monotonic()
        self.wake = self._begin

    def step(
        self, inbox: list[Any], events: list[dict[str, Any]], now: float
    ) -> tuple[list[Any], list[dict[str, Any]]]:
        answers: list[dict[str, Any]] = []
        plant, speed = self._plant, self._plant.options.speed
        for event in events:
            before = len(plant.refused)
            try:
                plant.handle(event)
                if len(plant.refused) > before:
                    (a, b), (_, why) = list(plant.refused.items())[-1]
                    raise DockingError(f"{'.'.join(a)} does not dock to {'.'.join(b)}: {why}")
            except ModurobError as error:
                answers.append({"error": str(error)})
            if "add" in event:
                slot = event["slot"]
                self._drives[event["add"]] = self._memory.readings(slot), self._memory.torques(slot)
                self._contacts[event["add"]] = self._memory.contacts(slot)
        self._begin += max(0.0, now - self._begin - plant.t / speed - LONGEST_LEAP_S)
        for name, (_, torques) in self._drives.items():
            found = torques.read_new()
            if found is not None:
                plant.command(name, found)
        try:
            plant.advance((now - self._begin) * speed)
        except ModurobError as error:
            answers.append({"error": str(error)})
        for name, (readings, _) in self._drives.items():
            readings.write(plant.reading(name))
        if plant.options.ground is not None and plant.t >= self._felt_at + CONTACTS_S:
            self._felt_at, felt = plant.t, plant.contacts()
            for name, contacts in self._contacts.items():
                contacts.write(felt.get(name, ()))
        answers += [{"state": plant.observed()} for event in events if "ask" in event]
        step = RESTING_S if plant.state is None else plant.options.step / speed
        self.wake = max(now, self._begin + plant.t / speed + step)
        return [], answers


def _warm_up(options: PlantOptions) -> None:
    """Move a small robot, so that the first real one needs no compilation."""
    plant = Plant(options)
    plant.add("m0", catalog["giusti_b"])
    plant.plug((BASE, "out"), ("m0", "in"))
    plant.advance(options.step)


def start_plant(processes: Processes, options: PlantOptions, modules: int) -> str:
    """Start the plant's process; returns the path of its memory, a file for the caller to remove.

    Args:
        modules: Slots for drives.
    """
    path = ""
    try:
        file, path = tempfile.mkstemp(prefix="modurob_plant_")
        os.close(file)
        SharedMemory(path, modules).close()
    except OSError as error:
        if path:
            os.unlink(path)
        raise StateError(
            f"no file for the drives of the plant: {error}; set TMPDIR to a folder with some room"
        ) from None
    settings = {"options": asdict(options), "memory": path}
    processes.start(PLANT, PlantProgram, settings, light=False)
    return path


def _module_of(name: str) -> str:
    return name.rpartition(".")[0]
