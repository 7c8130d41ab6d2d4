"""Processes of modules, seen from their parent: started, plugged, read and ended; see `child`."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from modurob.checks import whole
from modurob.distributed import child
from modurob.distributed.transports import DEFAULT, End, Endpoint, endpoint_class
from modurob.distributed.transports.base import chance, random_key
from modurob.errors import StateError, UnknownNameError, choices

START_TIMEOUT_S = 60.0  # until a process has opened its socket; 20 of them on two busy cores
END_TIMEOUT_S = 2.0
POLL_S = 1e-3


class Processes:
    """One process for each module, all on this machine.

    Their sockets share a random key, which travels over standard inputs only.

    Args:
        instead: The class for systems without such processes, for the error message.
        transport: Name of a transport between processes.
        loss: Chance that a datagram is dropped, for trials.
        seed: Of those chances.

    Attributes:
        addresses: Of the modules' sockets, as they report them.
    """

    def __init__(
        self, instead: str, *, transport: str = DEFAULT, loss: float = 0.0, seed: int = 0
    ) -> None:
        self.kind = endpoint_class(transport)
        if os.name == "nt":
            raise StateError(f"modules as processes need a POSIX system; {instead} runs anywhere")
        if self.kind.__module__ == "__main__":
            raise StateError(
                f"processes cannot import {self.kind.__name__} from the program that is run: "
                "put this transport into a module of its own"
            )
        self.loss, self.seed = chance("loss", loss), whole("seed", seed, 0)
        self._key = random_key()
        self.addresses: dict[str, Any] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._pipes: dict[int, tuple[str, child.Lines]] = {}  # standard outputs

    def endpoint(self) -> Endpoint:
        """Open an endpoint in this process."""
        return self.kind(key=self._key, loss=self.loss, rng=random.Random(self.seed))

    def start(
        self,
        name: str,
        program: type[child.Program],
        settings: Mapping[str, Any],
        *,
        light: bool,
        native: str = "",
    ) -> None:
        """Start a module's process.

        Args:
            name: Of the module.
            program: In Python.
            settings: Of the program.
            light: Whether the program works without the imports of modurob itself.
            native: Path of a program that takes its place, with the same settings.
        """
        if name in self._processes:  # a module that is started again
            self._forget(name)
        flags = ("-I", "-S") if light else ("-P",)
        # a session of its own: Ctrl-C at the terminal is for this process alone
        process = subprocess.Popen(
            [native] if native else [sys.executable, *flags, child.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._processes[name] = process
        self._pipes[self.pipe(name)] = name, child.Lines(self.pipe(name))
        common = {
            "program": _path(program),
            "transport": _path(self.kind),
            "path": sys.path,  # what can be imported here can be imported there
            "light": light,
            "key": self._key.hex(),
            "loss": self.loss,
            "seed": self.seed + len(self._processes),
        }
        self.send(name, {**settings, **common})

    def _forget(self, name: str) -> None:
        """End a process, and drop its answers."""
        process, pipe = self._process(name), self.pipe(name)
        process.kill()
        process.wait()
        end = time.monotonic() + END_TIMEOUT_S
        while pipe in self._pipes and time.monotonic() < end:  # whoever listens reads its end
            time.sleep(POLL_S)
        self._pipes.pop(pipe, None)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def send(self, name: str, event: Mapping[str, Any]) -> None:
        """Send an event to a module."""
        stdin = self._processes[name].stdin
        assert stdin is not None
        with contextlib.suppress(OSError):  # a dead module receives nothing
            stdin.write(child.line(event))
            stdin.flush()

    def plug(self, end: End, address: Any, port: str, **details: Any) -> None:
        """Connect a module's port with the port of a socket; the program gets the details."""
        self.send(end[0], {"plug": end[1], "address": address, "port": port, **details})

    def unplug(self, end: End) -> None:
        """Disconnect a module's port."""
        self.send(end[0], {"unplug": end[1]})

    def pipe(self, name: str) -> int:
        """The number of a module's standard output."""
        stdout = self._processes[name].stdout
        assert stdout is not None
        return stdout.fileno()

    def pipes(self) -> list[int]:
        """Standard outputs that have not ended."""
        return list(self._pipes)

    def listen(self, pipe: int) -> tuple[str, list[dict[str, Any]] | None]:
        """Wait for a module's answers; (module, None) where the process has ended.

        Addresses are kept, and not returned.
        """
        name, lines = self._pipes[pipe]
        events = lines.read()
        if events is None:
            del self._pipes[pipe]
            return name, None
        for event in events:
            if "address" in event:
                self.addresses[name] = event["address"]
        return name, [event for event in events if "address" not in event]

    def _process(self, name: str) -> subprocess.Popen[bytes]:
        if name not in self._processes:
            raise UnknownNameError(f"no module '{name}': there are {choices(self._processes)}")
        return self._processes[name]

    def kill(self, name: str) -> None:
        process = self._process(name)
        process.kill()
        process.wait()

    def is_alive(self, name: str) -> bool:
        return self._process(name).poll() is None

    def pid(self, name: str) -> int:
        return self._process(name).pid

    def end(self) -> None:
        """End all processes; their answers can still be read."""
        for process in self._processes.values():
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()  # then a module ends
        end = time.monotonic() + END_TIMEOUT_S
        for process in self._processes.values():
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def close(self) -> None:
        """End all processes, and drop their answers."""
        self.end()
        self._pipes.clear()
        for process in self._processes.values():
            if process.stdout is not None:
                process.stdout.close()


def _path(kind: type) -> str:
    """The path of a class for the child."""
    return f"{kind.__module__}:{kind.__qualname__}"
