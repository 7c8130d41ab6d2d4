"""The small language of ``modurob bus``, and what it shows of the coordinator."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from rich.text import Text

from modurob import ModurobError, StateError, UnknownNameError
from modurob.cli import organisms, output
from modurob.distributed.bus.bus import BASE
from modurob.distributed.bus.messages import UNKNOWN
from modurob.distributed.bus.robot import BusRobot, moving_joints
from modurob.distributed.bus.processes import ProcessBus
from modurob.errors import choices
from modurob.modules.record import id_text

HELP = """\
start KIND [KIND ...]   switch on m0, m1 ...: catalog names or datasheet files
plug END END [TURN]     dock two ports: plug base.out m0.in, plug m0.2 m1.3 90
unplug WHAT             let go of a module or a port: unplug m1, unplug m1.in
arm WORD                an arm of modules a, b, c on the base: arm babac
kill MODULE             end its process; it falls silent where it is
move MODULE Q [Q ...]   let its joints be there [deg, m]
wait N [SECONDS]        until a robot of N modules has all its torques
show                    the coordinator's table and controller
help, quit              # starts a comment"""
PROMPT = "bus> "
WAIT = 20.0  # [s]
ANSWER = 2.0  # [s]
CONDITION = """\
The set point is the measured pose: torques carry the load there and bring no joint elsewhere.
For a set point that stays where it is:"""


class WaitedInVain(StateError):
    """What a script waited for did not happen."""


class Session:
    """Carries out commands and tells what the coordinator makes of them."""

    def __init__(self, bus: ProcessBus, quiet: bool = False) -> None:
        self.bus, self.out = bus, output.console()
        self.out.quiet = quiet
        self._shown = BusRobot()
        self._lock = threading.Lock()
        self._commands: dict[str, Callable[..., None]] = {
            "start": self.start,
            "plug": self.plug,
            "unplug": self.unplug,
            "arm": self.arm,
            "kill": self.kill,
            "move": self.move,
            "wait": self.wait,
            "show": self.show,
            "help": lambda: self.out.print(HELP),
        }

    def play(self, lines: Iterable[tuple[str, str]]) -> None:
        """Run a script; the first mistake ends it."""
        for where, line in lines:
            if _words(line):
                self.out.print(Text(PROMPT + " ".join(_words(line)), style="dim"))
            try:
                if not self.run(line):
                    return
            except ModurobError as error:
                form = WaitedInVain if isinstance(error, WaitedInVain) else StateError
                raise form(f"{where}: {error}") from None

    def talk(self) -> None:
        """Read commands from the terminal until quit or the end of the input."""
        if sys.stdin.isatty():
            with contextlib.suppress(ImportError):
                import_module("readline")  # gives input() its history and editing
        self.out.print(f"Coordinator at {_socket(self.bus.endpoint.address)}. help lists commands.")
        watcher = threading.Thread(target=self._watch, daemon=True)
        watcher.start()
        while True:
            try:
                if not self.run(input(PROMPT)):
                    return
            except EOFError:
                self.out.print()
                return
            except ModurobError as error:
                self.out.print(Text(f"error: {error}", style="red"))

    def _watch(self) -> None:
        """Tell of changes as they happen."""
        while True:
            try:
                if self.bus.wait(lambda: self.bus.robot is not self._shown, 60.0):
                    self.tell("\n", PROMPT)
            except Exception as error:  # of the bus, which goes on
                self.out.print(Text(f"\nerror: {error}", style="red"))

    def run(self, line: str) -> bool:
        """One command; False when it was quit."""
        words = _words(line)
        if not words:
            return True
        name, *arguments = words
        if name == "quit":
            return False
        if name not in self._commands:
            raise UnknownNameError(f"no command '{name}': {choices([*self._commands, 'quit'])}")
        try:
            self._commands[name](*arguments)
        except TypeError as error:
            if "argument" not in str(error):
                raise
            usage = next(u for u in HELP.splitlines() if u.startswith(name))
            raise StateError(f"{name}: {usage[:24].strip()}") from None
        return True

    # -- commands ------------------------------------------------------------------------------

    def start(self, kind: str, *kinds: str) -> None:
        """start KIND [KIND ...]"""
        for name in [self.bus.start(organisms.kind(k)) for k in (kind, *kinds)]:
            module = self.bus.modules[name]
            line = (
                f"{name}: {module.kind.name}, id {id_text(module.node.uid)}, process "
                f"{self.bus.pid(name)}, ports {choices(module.node.ports)}"
            )
            self.out.print(line, markup=False)

    def plug(self, a: str, b: str, turn: str = "0") -> None:
        """plug END END [TURN]"""
        self.bus.plug(a, b, int(_number("TURN", turn)))

    def unplug(self, what: str) -> None:
        """unplug WHAT"""
        self.bus.unplug(what)

    def kill(self, name: str) -> None:
        """kill MODULE"""
        self.bus.kill(name)

    def arm(self, word: str) -> None:
        """arm WORD"""
        if not word or set(word) - set("abc"):
            raise UnknownNameError(f"an arm is a word of a, b and c such as babac, got '{word}'")
        before, modules = "base.out", len(self.bus.modules)
        self.start(*(f"giusti_{letter}" for letter in word))
        for name in list(self.bus.modules)[modules:]:
            self.plug(before, f"{name}.in")
            before = f"{name}.out"

    def move(self, name: str, *positions: str) -> None:
        """move MODULE Q [Q ...]"""
        kind = self.bus.module(name).kind
        prismatic = [j.kind == "prismatic" for j in kind.joints if j.kind != "fixed"]
        numbers = [_number("Q", text) for text in positions]
        if len(numbers) == len(prismatic):
            pairs = zip(numbers, prismatic, strict=True)
            numbers = [x if slides else math.radians(x) for x, slides in pairs]
        self.bus.sense(name, numbers)
        address = next((a for a, n in self.bus.robot.assembly.names.items() if n == name), None)
        if address is not None:  # until the coordinator has answered

            def answered() -> bool:
                modules = len(self.bus.robot.assembly.names)
                known = self.bus.coordinator.table[address].values[::2]
                return known == tuple(numbers) and self.bus.settled(modules)

            self.bus.wait(answered, ANSWER)
            self.tell()

    def wait(self, modules: str, seconds: str = str(WAIT)) -> None:
        """wait N [SECONDS]"""
        number, limit = int(_number("N", modules)), _number("SECONDS", seconds)
        held = self.bus.wait(lambda: self.bus.settled(number), limit)
        self.tell()
        if not held:
            raise WaitedInVain(
                f"waited {limit:g} s for a robot of {number} modules; it has "
                f"{len(self.bus.robot.assembly.names)}"
            )

    # -- what there is to see ------------------------------------------------------------------

    def tell(self, before: str = "", after: str = "") -> None:
        """What has changed since the last time."""
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
            lines.append(("cyan", f"= {_summary(robot)}"))
            self.out.print(before, end="")
            for style, line in lines:
                self.out.print(Text(line, style=style))
            self.out.print(after, end="")

    def show(self) -> None:
        """show"""
        self.tell()
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
                " ".join("?" if q is None else f"{q:.4g}" for q in row["q"]),
                " ".join(f"{tau:.4g}" for tau in row["tau"]) or "-",
            )
            table.add_row(*map(Text, cells))  # names are no markup
        output.print_table(self.out, _summary(self.bus.robot), table)
        self.out.print("q in degrees and metres, tau in N m and N; - is a motor let go")
        for fault in facts["faults"]:
            self.out.print(Text(f"! {fault}", style="red"))
        certificate = self.bus.robot.certificate
        if certificate is not None:
            self.out.print(Text(f"{CONDITION}\n{certificate}"))

    def facts(self) -> dict[str, Any]:
        """Everything for machines: each module, the controller, what is wrong."""
        bus, robot = self.bus, self.bus.robot
        names = {name: address for address, name in robot.assembly.names.items()}
        edges = bus.coordinator.survey.edges
        called = {address: name for name, address in names.items()}
        parents = {edge.child: called.get(edge.parent, BASE) for edge in edges}
        routers = {edge.parent for edge in edges}
        rows = []
        for name, module in bus.modules.items():
            role = "router" if names.get(name) in routers else "end device"
            if name not in names:
                role = "not in the robot" if bus.is_alive(name) else "dead"
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
                    "tau": list(bus.torques.get(name, ())),
                }
            )
        certificate = robot.certificate
        guaranteed = None if certificate is None else certificate.guaranteed
        return {
            "modules": rows,
            "organism": len(names),
            "joints": 0 if robot.model is None else robot.model.nv,
            "law": None if certificate is None else certificate.law,
            "guaranteed_for_fixed_set_point": guaranteed,
            "faults": list(robot.assembly.faults),
        }

    def _positions(self, name: str, names: dict[str, Any]) -> list[float | None]:
        """As the coordinator knows them; None for what is no number. [deg, m]"""
        kind = self.bus.modules[name].kind
        values = self.bus.coordinator.table[names[name]].values if name in names else ()
        joints = [joint for joint in kind.joints if joint.kind != "fixed"]
        values = values or (0.0,) * (2 * len(moving_joints(kind)))
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
    certificate = robot.certificate
    if certificate is None:
        return f"{text}, no controller"
    word = "stable" if certificate.guaranteed else "NOT certified"
    text = f"{text}, {certificate.law}, {word} about a fixed set point"
    names = [robot.assembly.names[module] for module in robot.released]
    return f"{text}; let go: {' '.join(sorted(names))}" if names else text


def _words(line: str) -> list[str]:
    return line.partition("#")[0].split()


def _number(what: str, text: str) -> float:
    with contextlib.suppress(ValueError):
        if math.isfinite(number := float(text)):
            return number
    raise StateError(f"{what} is a number, got '{text}'")


def _socket(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"
