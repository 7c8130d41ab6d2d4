"""Commands of ``modurob bus``, and its report on the coordinator."""

from __future__ import annotations

import cmd
import contextlib
import inspect
import math
import shlex
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from modurob import ModurobError, StateError, UnknownNameError
from modurob.checks import inside, positive
from modurob.cli import organisms, output
from modurob.distributed.bus import motions
from modurob.distributed.bus.bus import BASE
from modurob.distributed.bus.messages import UNKNOWN
from modurob.distributed.bus.operation import OperationStatus
from modurob.distributed.bus.processes import ProcessBus
from modurob.distributed.bus.robot import BusRobot, moving_joints
from modurob.distributed.bus.survey import BusEntry
from modurob.errors import choices
from modurob.modules.record import id_text

WAIT_TIMEOUT_S = 20.0
WRITE_S = 2.0  # until new data in a module's memory has reached the model
WATCH_INTERVAL_S = 60.0
LONGEST_SLEEP_S = 1e6
AT_REST = 1e-3  # [rad, m] an error that is not worth a word
HEAVIER = 1.1  # times the masses of the model, to show what a wrong model does


class WaitTimeout(StateError):
    """The condition that a script waited for did not come about."""


class BusSession(cmd.Cmd):
    """Commands on a bus: the method ``do_NAME`` is a command, its docstring ``usage: help``."""

    prompt = "bus> "

    def __init__(self, bus: ProcessBus, quiet: bool = False) -> None:
        super().__init__()
        self.bus, self.out = bus, output.console()
        self.out.quiet = quiet
        self._errors = output.console(stderr=True) if quiet else self.out
        if quiet:
            self.prompt = ""
        self._shown, self._unsaved = BusRobot(), None
        self._lock = threading.Lock()

    def play(self, lines: Iterable[tuple[str, str]]) -> None:
        """Run a script; the first mistake ends it.

        Args:
            lines: (place, command) of each line.
        """
        for place, line in lines:
            try:
                if words := _words(line):
                    self.out.print(Text(self.prompt + " ".join(words), style="dim"))
                if self.run(line):
                    return
            except ModurobError as error:
                form = WaitTimeout if isinstance(error, WaitTimeout) else StateError
                raise form(f"{place}: {error}") from None

    def talk(self) -> None:
        """Read commands from the terminal until quit or the end of the input."""
        threading.Thread(target=self._watch, daemon=True).start()
        address = self.bus.address
        place = address if isinstance(address, str) else ":".join(map(str, address))
        self.out.print(f"Coordinator at {place}. help lists commands.")
        self.cmdloop()

    def onecmd(self, line: str) -> bool:
        """Run a line of a conversation: mistakes are printed."""
        if line == "EOF":  # as `cmd` reports the end of the input
            self.out.print()
            return True
        try:
            return self.run(line)
        except ModurobError as error:
            self._errors.print(Text(f"error: {error}", style="red"), soft_wrap=True)
            return False

    def run(self, line: str) -> bool:
        """Run one command; True when it was quit."""
        words = _words(line)
        if not words:
            return False
        name, *arguments = words
        if name not in self._names():
            raise UnknownNameError(f"no command '{name}': {choices(self._names())}")
        command = getattr(self, f"do_{name}")
        try:
            inspect.signature(command).bind(*arguments)
        except TypeError:
            raise StateError(f"{name}: {_help(command)[0]}") from None
        return bool(command(*arguments))

    def _names(self) -> list[str]:
        return [name.removeprefix("do_") for name in vars(type(self)) if name.startswith("do_")]

    def _watch(self) -> None:
        """Print changes as they happen."""
        while True:
            try:
                if self.bus.wait(lambda: self.bus.robot is not self._shown, WATCH_INTERVAL_S):
                    self.print_changes("\n", self.prompt)
            except Exception as error:  # of the bus, which goes on
                self.out.print(Text(f"\nerror: {error}", style="red"))

    # -- commands ------------------------------------------------------------------------------

    def do_start(self, kind: str, *kinds: str) -> None:
        """start KIND [KIND ...]: switch on m0, m1 ...: catalog names or datasheet files."""
        for name in [self.bus.start(organisms.kind(k)) for k in (kind, *kinds)]:
            module = self.bus.modules[name]
            in_c = " in C" if self.bus.is_native(name) else ""
            line = (
                f"{name}: {module.kind.name}, id {id_text(module.node.uid)}, process "
                f"{self.bus.pid(name)}{in_c}, ports {choices(module.node.ports)}"
            )
            self.out.print(line)

    def do_plug(self, a: str, b: str, turn: str = "0") -> None:
        """plug END END [TURN]: dock two ports: plug base.out m0.in, plug m0.2 m1.3 90."""
        self.bus.plug(a, b, _whole("TURN", turn))

    def do_unplug(self, what: str) -> None:
        """unplug WHAT: disconnect a module or a port: unplug m1, unplug m1.in."""
        self.bus.unplug(what)

    def do_arm(self, word: str) -> None:
        """arm WORD: dock an arm of modules a, b, c to the base: arm babac."""
        if not word or set(word) - set("abc"):
            raise UnknownNameError(f"an arm is a word of a, b and c such as babac, got '{word}'")
        before, modules = "base.out", len(self.bus.modules)
        self.do_start(*(f"giusti_{letter}" for letter in word))
        for name in list(self.bus.modules)[modules:]:
            self.bus.plug(before, f"{name}.in")
            before = f"{name}.out"

    def do_kill(self, name: str) -> None:
        """kill MODULE: end its process; it falls silent where it is."""
        self.bus.kill(name)

    def do_restart(self, name: str) -> None:
        """restart MODULE: start its process again, docked as it is."""
        self.bus.restart(name)

    def do_goto(self, places: str, *times: str) -> None:
        """goto Q,Q,... [in SECONDS]: move all joints, from base to tip [deg, m]."""
        self.bus.operation.goto(self._places(places), _seconds(times, 1.0))

    def do_move(self, name: str, *positions: str) -> None:
        """move MODULE Q [Q ...] [in SECONDS]: move the joints of one module [deg, m]."""
        split = positions.index("in") if "in" in positions else len(positions)
        joints = moving_joints(self.bus.module(name).kind)
        if split != len(joints):
            raise StateError(
                f"move takes one number for each joint of '{name}' ({choices(joints)}), got {split}"
            )
        status = self.bus.operation.status()
        goal = status.set_point.copy()
        for joint, text in zip(joints, positions[:split], strict=True):
            if (title := f"{name}.{joint}") not in status.joints:
                raise UnknownNameError(
                    f"no joint '{title}' in the robot: joints are {choices(status.joints)}"
                )
            index = status.joints.index(title)
            goal[index] = self._place(index, _number("Q", text))
        self.bus.operation.goto(goal, _seconds(positions[split:], 1.0))

    def do_follow(self, how: str, what: str, *times: str) -> None:
        """follow HOW WHAT [in SECONDS]: gait NAME; steps, quintic, spline or csv of a FILE."""
        model = self.bus.robot.model
        if model is None:
            raise StateError("there is no robot: plug modules together first")
        reference, duration = motions.read(how, what, model)
        seconds = _seconds(times, duration)
        self.bus.operation.follow(reference, seconds, f"{how} {what}")

    def do_hold(self) -> None:
        """hold: hold all joints where they are."""
        self.bus.operation.hold()

    def do_relax(self) -> None:
        """relax: let all motors go."""
        self.bus.operation.relax()

    def do_stop(self) -> None:
        """stop: end the motion and hold."""
        self.bus.operation.stop()

    def do_law(self, name: str) -> None:
        """law NAME: control with another law, with its own gains."""
        self.bus.builder.change_law(name)
        self.print_changes()

    def do_gains(self, *gains: str) -> None:
        """gains NAME=NUMBER ...: gains of the law: gains k0=100 k1=20; or one a joint: k0=90,80."""
        law = self.bus.builder.law
        chosen = _pairs(gains)
        if not chosen or not chosen.keys() <= law.parameters.keys():
            units = (f"{name} [{unit}]" if unit else name for name, unit in law.parameters.items())
            raise StateError(
                f"{law.key} takes {choices(units)}, got {' '.join(gains) or 'nothing'}"
            )
        self.bus.builder.change_law(law.key, **chosen)
        self.print_changes()

    def do_payload(self, name: str, mass: str) -> None:
        """payload MODULE KG: put a load on a module that no model knows of."""
        self.bus.payload(name, _number("KG", mass))

    def do_push(self, what: str, effort: str, *times: str) -> None:
        """push WHAT EFFORT [in SECONDS]: torque on a joint [N m, N], or force x,y,z on a module."""
        numbers = [_number("EFFORT", text) for text in effort.split(",")]
        self.bus.push(what, numbers[0] if len(numbers) == 1 else numbers, _seconds(times, 0.1))

    def do_fault(self, name: str, kind: str) -> None:
        """fault MODULE KIND: let its drives be stuck or limp, or none."""
        self.bus.fault(name, kind)  # pyright: ignore[reportArgumentType]

    def do_write(self, name: str, *data: str) -> None:
        """write MODULE NAME=NUMBER ...: set data in its memory [SI]: write m1 mass=0.6."""
        if not data:
            raise StateError("write: write MODULE NAME=NUMBER ...")
        before = self.bus.robot
        self.bus.write(name, **_pairs(data))
        self.bus.wait(lambda: self.bus.robot.assembly.organism != before.assembly.organism, WRITE_S)
        self.print_changes()

    def do_record(self, path: str = "") -> None:
        """record [FILE]: begin a record; with FILE, end it and write .npz or .csv."""
        operation = self.bus.operation
        if not path:
            operation.record()
            self._unsaved = None
            return
        self._unsaved = trajectory = self._unsaved or operation.recorded()
        (trajectory.to_csv if path.endswith(".csv") else trajectory.save)(path)
        self._unsaved = None
        states = sum(len(p.t) for p in trajectory.parts)
        self.out.print(f"wrote {path}: {states} states", soft_wrap=True)

    def do_sleep(self, seconds: str) -> None:
        """sleep SECONDS: wait so long."""
        limit = inside("SECONDS", _number("SECONDS", seconds), 0.0, LONGEST_SLEEP_S, "seconds")
        self.bus.wait(lambda: False, limit)
        self.print_changes()

    def do_wait(self, modules: str, seconds: str = str(WAIT_TIMEOUT_S)) -> None:
        """wait N [SECONDS]: wait for a robot of N modules, or with done for the end of a motion."""
        limit = _number("SECONDS", seconds)
        if modules == "done":
            if not self.bus.wait(lambda: not self.bus.operation.status().motion, limit):
                status = self.bus.operation.status()
                raise WaitTimeout(f"waited {limit:g} s for the end of {_doing(status)}")
            return
        number = _whole("N", modules)

        def is_ready() -> bool:  # with its certificate, so that `show` tells it
            robot = self.bus.robot
            certified = (robot.controller is None) == (robot.certificate is None)
            return certified and self.bus.settled(number)

        held = self.bus.wait(is_ready, limit)
        self.print_changes()
        if not held:
            reason = self.bus.operation.status().reason
            raise WaitTimeout(
                f"waited {limit:g} s for a robot of {number} modules; it has "
                f"{len(self.bus.robot.assembly.names)}" + (f"; {reason}" if reason else "")
            )

    def do_show(self) -> None:
        """show: print the coordinator's table and controller."""
        self.print_changes()
        facts = self.facts()
        table = output.plain_table()
        for heading in ("module", "kind", "id", "role", "docked to"):
            table.add_column(heading, no_wrap=True)
        for heading in ("q", "tau"):
            table.add_column(heading, justify="right", no_wrap=True)
        for row in facts["modules"]:
            cells = (
                row["name"],
                row["kind"],
                row["id"],
                row["role"],
                row["docked"][0] if row["docked"] else "nothing",
                " ".join("?" if q is None else f"{q:.2f}" for q in row["q"]),
                " ".join(f"{tau:.2f}" for tau in row["tau"]) or "-",
            )
            table.add_row(*map(Text, cells))  # names are no markup
        output.print_table(self.out, _summary(self.bus.robot), table)
        self.out.print("q in degrees and meters, tau in N m and N; - is a motor let go")
        for fault in facts["faults"]:
            self.out.print(Text(f"! {fault}", style="red"))
        if facts["joints"]:
            self.out.print(Text(_doing(self.bus.operation.status())))
            for line in self._promise(facts):
                self.out.print(Text(line))

    def _promise(self, facts: dict[str, Any]) -> Iterator[str]:
        """Lines on the guarantee, and on the distance of the joints from it."""
        certificate = self.bus.robot.certificate
        if certificate is None:
            return
        if facts["missing"]:
            yield f"not guaranteed that joints go to the set point; missing: {facts['missing'][0]}"
            yield from (f"  and {text}" for text in facts["missing"][1:])
        else:
            delay = 1e3 * self.bus.operation.longest_delay
            yield (
                f"guaranteed for the body of the records and readings up to {delay:g} ms old: "
                f"{certificate.claim}"
            )
        if facts["error"] is not None:
            text = (
                f"error now {facts['error']:.2g} rad or m; a body {HEAVIER - 1:.0%} heavier would "
                f"rest {facts['error_if_heavier']:.2g} away"
            )
            if facts["error"] > facts["error_if_heavier"] + AT_REST:
                text += ": the robot still moves, or its records are more wrong than that"
            yield text

    def do_help(self, arg: str = "") -> None:
        """help: list the commands; # starts a comment."""
        table = Table.grid(padding=(0, 2))
        for name in self._names():
            table.add_row(*map(Text, _help(getattr(self, f"do_{name}"))))
        self.out.print(table)

    def do_quit(self) -> bool:
        """quit: end all modules and leave."""
        return True

    # -- output --------------------------------------------------------------------------------

    def print_changes(self, before: str = "", after: str = "") -> None:
        """Print what has changed since the last time."""
        with self._lock:
            robot, old = self.bus.robot, self._shown
            if robot is old:
                return
            self._shown = robot
            if not (robot.assembly.names or old.assembly.names or robot.assembly.faults):
                return  # still nothing there
            names, gone = robot.assembly.names.values(), old.assembly.names.values()
            joined = [name for name in names if name not in gone]
            left = [name for name in gone if name not in names]
            faults = [f for f in robot.assembly.faults if f not in old.assembly.faults]
            lines = [("green", f"+ {' '.join(joined)}")] if joined else []
            lines += [("yellow", f"- {' '.join(left)}")] if left else []
            lines += [("red", f"! {fault}") for fault in faults]
            same = robot.controller is old.controller and _summary(robot) == _summary(old)
            if before and same and not lines:
                return  # nothing that is shown: it has its certificate now
            lines.append(("cyan", f"= {_summary(robot)}"))
            self.out.print(before, end="")
            for style, line in lines:
                self.out.print(Text(line, style=style))
            self.out.print(after, end="")

    def facts(self) -> dict[str, Any]:
        """Everything as plain values: each module, the controller, the faults."""
        bus, robot = self.bus, self.bus.robot
        silent = robot.assembly.silent
        names = {name: m for m, name in (*robot.assembly.names.items(), *silent.items())}
        edges = bus.coordinator.survey.edges
        parents = {edge.child: robot.assembly.names.get(edge.parent, BASE) for edge in edges}
        routers = {edge.parent for edge in edges}
        torques = bus.builder.commanded()
        rows = []
        for name, module in bus.modules.items():
            role = "router" if names.get(name) in routers else "end device"
            if not bus.is_alive(name):
                role = "dead"
            elif name in silent.values():
                role = "silent"
            elif name not in names:
                role = "not in the robot"
            docked = [
                f"{end[1]} on {'.'.join(other)}" + (f" turned {turn}" if turn else "")
                for end, (other, turn) in bus.docked.items()
                if end[0] == name
            ]
            above = parents.get(names.get(name, UNKNOWN), "")  # the docking towards the base first
            docked.sort(key=lambda text: (f" on {above}." not in text, text))
            rows.append(
                {
                    "name": name,
                    "kind": module.kind.name,
                    "id": id_text(module.node.uid),
                    "role": role,
                    "docked": docked,
                    "q": self._positions(name, names),
                    "tau": list(torques.get(names.get(name, UNKNOWN), ())),
                }
            )
        law, status = robot.controller, bus.operation.status()
        error, heavier = self._errors_at_rest(status)
        return {
            "modules": rows,
            "organism": len(robot.assembly.names),
            "joints": 0 if robot.model is None else robot.model.nv,
            "law": None if law is None else law.name,
            "mode": status.mode,
            "motion": status.motion,
            "progress": status.progress,
            "reason": status.reason,
            "missing": list(bus.operation.missing()),
            "error": error,
            "error_if_heavier": heavier,
            "cycles": bus.clock.ticks,
            "missed": bus.clock.missed,
            "faults": list(robot.assembly.faults),
        }

    def _errors_at_rest(self, status: OperationStatus) -> tuple[float | None, float | None]:
        """Largest error measured, and predicted for a body that is heavier than the model."""
        model = self.bus.robot.model
        if status.mode != "hold" or model is None or not np.isfinite(status.q).all():
            return None, None
        other = replace(
            model, mass=HEAVIER * model.mass, inertia=HEAVIER * model.inertia,
            organism=None, options=None,
        )  # fmt: skip
        try:
            rest = self.bus.operation.rest(other)
        except StateError:
            return None, None
        if rest.shape != status.q.shape:  # another body since then
            return None, None
        error, heavier = (np.abs(q - status.set_point).max() for q in (status.q, rest))
        return float(error), float(heavier)

    def _places(self, text: str) -> list[float]:
        """Joints from base to tip, of numbers in degrees and meters."""
        numbers = [_number("Q", word) for word in text.split(",")]
        return [self._place(k, number) for k, number in enumerate(numbers)]

    def _place(self, joint: int, number: float) -> float:
        model = self.bus.robot.model
        slides = model is not None and joint < model.nv and model.prismatic[joint]
        return number if slides else math.radians(number)

    def _positions(self, name: str, names: dict[str, Any]) -> list[float | None]:
        """Positions at the coordinator; None for what is not finite. [deg, m]"""
        kind = self.bus.modules[name].kind
        entry = self.bus.coordinator.table.get(names.get(name, UNKNOWN), BusEntry())
        joints = [joint for joint in kind.joints if joint.kind != "fixed"]
        values = entry.values or (math.nan,) * (2 * len(moving_joints(kind)))
        found = [
            q if joint.kind == "prismatic" else math.degrees(q)
            for joint, q in zip(joints, values[::2], strict=False)
        ]
        return [q if math.isfinite(q) else None for q in found]


def _summary(robot: BusRobot) -> str:
    """One line on the robot as it is now."""
    if robot.assembly.organism is None:
        return "no robot"
    modules, joints = len(robot.assembly.names), robot.model.nv if robot.model else 0
    text = f"robot of {modules} module{'s' * (modules != 1)}, {joints} joint{'s' * (joints != 1)}"
    if robot.controller is None:
        return f"{text}, no controller"
    text = f"{text}, {robot.controller.name}"
    names = [robot.assembly.names[module] for module in robot.released]
    for word, some in (("silent", robot.assembly.silent.values()), ("let go", names)):
        text += f"; {word}: {' '.join(sorted(some))}" if some else ""
    return text


def _doing(status: OperationStatus) -> str:
    """One line on the operation."""
    text = (
        f"{status.mode}: {status.motion} ({status.progress:.0%})" if status.motion else status.mode
    )
    return f"{text}; {status.reason}" if status.reason else text


def _seconds(words: Sequence[str], default: float) -> float:
    """Of ``in SECONDS`` at the end of a command."""
    if not words:
        return default
    if len(words) != 2 or words[0] != "in":
        raise StateError(f"expected 'in SECONDS' at the end, got '{' '.join(words)}'")
    return positive("SECONDS", _number("SECONDS", words[1]), "seconds")


def _pairs(words: Iterable[str]) -> dict[str, Any]:
    """Numbers of NAME=NUMBER, lists of NAME=NUMBER,NUMBER."""
    pairs = {}
    for word in words:
        name, _, text = word.partition("=")
        if not (name and text):
            raise StateError(f"expected NAME=NUMBER, got '{word}'")
        numbers = [_number(name, part) for part in text.split(",")]
        pairs[name] = numbers if len(numbers) > 1 else numbers[0]
    return pairs


def _help(command: Any) -> tuple[str, str]:
    """Usage and help of a command."""
    usage, _, text = command.__doc__.partition(": ")
    return usage, text


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise StateError(f"the line cannot be split into words: {error}") from None


def _whole(what: str, text: str) -> int:
    if not text.isdecimal():
        raise StateError(f"{what} is a whole number, got '{text}'")
    return int(text)


def _number(what: str, text: str) -> float:
    with contextlib.suppress(ValueError):
        if math.isfinite(number := float(text)):
            return number
    raise StateError(f"{what} is a number, got '{text}'")
