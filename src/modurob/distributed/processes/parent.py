"""Processes of modules, as the one sees them that starts, plugs, hears and ends them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from modurob.distributed.transports.in_process import End
from modurob.distributed.transports.udp import Socket
from modurob.errors import StateError

STARTING = 20.0  # [s] that a process may take to open its socket
ENDING = 2.0  # [s] that it may take to end


class Processes:
    """One process for each module, all on this machine.

    Args:
        instead: What runs where there are no such processes, for the error that says so.
        loss: Chance that a datagram is thrown away, for trials.
        seed: Of those chances.

    Attributes:
        addresses: Where each module listens, once it has told.
    """

    def __init__(self, instead: str, *, loss: float = 0.0, seed: int = 0) -> None:
        if os.name == "nt":
            raise StateError(f"modules as processes need a POSIX system; {instead} runs anywhere")
        self.loss, self.seed = loss, seed
        self.addresses: dict[str, Socket] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._pipes: dict[int, tuple[str, bytes]] = {}  # standard outputs: whose, half a line

    def start(
        self,
        name: str,
        program: Sequence[str],
        settings: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the process of a module.

        Args:
            program: What Python shall run.
            settings: The first line it is given, with loss and a seed.
            environment: Its variables; those of this process by default.
        """
        # a session of its own: Ctrl-C at the terminal is for this process alone
        process = subprocess.Popen(
            [sys.executable, *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        self._processes[name] = process
        self._pipes[self.pipe(name)] = name, b""
        seed = self.seed + len(self._processes)
        self.tell(name, {**settings, "loss": self.loss, "seed": seed})

    def tell(self, name: str, event: Mapping[str, Any]) -> None:
        """Let something happen to a module."""
        stdin = self._processes[name].stdin
        assert stdin is not None
        with contextlib.suppress(OSError):  # a dead module does not feel anything
            stdin.write(json.dumps(event).encode() + b"\n")
            stdin.flush()

    def plug(self, end: End, address: Socket, port: str, turn: int) -> None:
        """Connect a module's port with the port of a socket."""
        plug = {"plug": end[1], "address": address, "port": port, "turn": turn}
        self.tell(end[0], plug)

    def unplug(self, end: End) -> None:
        """Let a module's port go."""
        self.tell(end[0], {"unplug": end[1]})

    def pipe(self, name: str) -> int:
        """The number of the pipe on which a module tells things."""
        stdout = self._processes[name].stdout
        assert stdout is not None
        return stdout.fileno()

    def pipes(self) -> list[int]:
        """Of all modules whose end was not heard yet."""
        return list(self._pipes)

    def listen(self, pipe: int) -> tuple[str, list[dict[str, Any]] | None]:
        """Who told what; waits for something. None where the process has ended.

        Addresses are kept, and not handed on.
        """
        name, rest = self._pipes[pipe]
        data = os.read(pipe, 1 << 16)
        if not data:
            del self._pipes[pipe]
            return name, None
        *lines, rest = (rest + data).split(b"\n")
        self._pipes[pipe] = name, rest
        events = []
        for line in lines:
            event = json.loads(line)
            if "address" in event:
                self.addresses[name] = (event["address"][0], event["address"][1])
            else:
                events.append(event)
        return name, events

    def kill(self, name: str) -> None:
        process = self._processes[name]
        process.kill()
        process.wait()

    def is_alive(self, name: str) -> bool:
        return self._processes[name].poll() is None

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def end(self) -> None:
        """End all processes; what they told can still be read."""
        for process in self._processes.values():
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()  # a module ends when nobody holds it any more
        end = time.monotonic() + ENDING
        for process in self._processes.values():
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def close(self) -> None:
        """End all processes, and forget what they told."""
        self.end()
        self._pipes.clear()
        for process in self._processes.values():
            if process.stdout is not None:
                process.stdout.close()
