"""``modurob bus``: modules as processes, plugged and unplugged while they run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click

from modurob import FileError, StateError
from modurob.cli import FAILED, output
from modurob.cli.bus_session import BusSession, WaitTimeout
from modurob.cli.characters import echo
from modurob.cli.fields import LawChoice
from modurob.distributed.bus.bus import PERIOD_S
from modurob.distributed.bus.processes import COORDINATORS, ProcessBus
from modurob.distributed.plant import PlantOptions
from modurob.distributed.transports import DEFAULT, between_processes

ALL = "all"  # --native without names
EXAMPLE = """\b
Examples:
  modurob bus
  modurob bus --script demo.bus --loss 0.3
  modurob bus --native m1,m2
  modurob bus --native --coordinator native
  printf 'arm babac\\nwait 5\\ngoto 20,30,30,40,0.1 in 2\\nwait done\\nshow\\n' | \\
    modurob bus --script -
"""


@click.command("bus", epilog=EXAMPLE)
@click.option("--script", metavar="FILE", help="Read commands from a file; - for standard input.")
@click.option("--law", type=LawChoice(), default="computed-torque", show_default=True,
              help="The controller.")  # fmt: skip
@click.option("--heartbeat", type=float, default=0.25, show_default=True, metavar="SECONDS",
              help="Heartbeat: each module sends several messages in this time.")  # fmt: skip
@click.option("--loss", type=float, default=0.0, show_default=True, metavar="CHANCE",
              help="Probability that a datagram is dropped.")  # fmt: skip
@click.option("--transport", type=click.Choice(between_processes()), default=DEFAULT,
              show_default=True, help="Transport of messages between the processes.")  # fmt: skip
@click.option("--period", type=float, default=PERIOD_S, show_default=True, metavar="SECONDS",
              help="Period of the coordinator's loop.")  # fmt: skip
@click.option("--noise", type=float, default=0.0, show_default=True, metavar="SIGMA",
              help="Noise of the plant's sensors, in rad, m, rad/s and m/s.")  # fmt: skip
@click.option("--mass-factor", type=float, default=1.0, show_default=True, metavar="FACTOR",
              help="True masses, as a factor on those of the records.")  # fmt: skip
@click.option("--native", is_flag=False, flag_value=ALL, metavar="[MODULES]",
              help="Run modules in C: all, or those that are named, such as m2,m3.")  # fmt: skip
@click.option("--coordinator", type=click.Choice(COORDINATORS), default=COORDINATORS[0],
              show_default=True, help="Implementation of the coordinator.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print only the last state, as JSON.")
@click.pass_context
def command(
    ctx: click.Context, script: str | None, noise: float, mass_factor: float, as_json: bool,
    native: str | None, **options: Any,
) -> None:  # fmt: skip
    """Start modules as processes of their own and plug them together.

    Every module has only its own datasheet and the messages of its neighbors. A coordinator at the
    base collects their reports, rebuilds model and controller whenever the body changes, and moves
    the robot: a simulated one, in a process of its own. Commands:

    \b
    start, plug, unplug, arm, kill, restart
    goto, move, follow, hold, relax, stop, law, gains
    push, payload, fault, write, record
    wait, sleep, show, help, quit
    """
    output.check_path("--script", script)
    lines = None if script is None else list(_script(script))
    plant = PlantOptions(noise_q=noise, noise_v=noise, mass_factor=mass_factor)
    chosen = native == ALL or _native_names(native)
    with ProcessBus(plant=plant, native=chosen, **options) as bus:
        bus.wait_until_warm()
        session = BusSession(bus, quiet=as_json)
        try:
            session.talk() if lines is None else session.play(lines)
        except WaitTimeout as error:
            echo(f"error: {error}", err=True)
            ctx.exit(FAILED)
        finally:
            if as_json:
                output.print_json(session.facts())


def _native_names(text: str | None) -> tuple[str, ...]:
    """Names of modules that run in C; commands call modules m0, m1 ..."""
    names = () if text is None else tuple(text.split(","))
    if not all(re.fullmatch(r"m[0-9]+", name) for name in names):
        raise StateError(f"--native takes names of modules such as m2,m3, got '{text}'")
    return names


def _script(path: str) -> Iterator[tuple[str, str]]:
    """Yield (place, command) of each line."""
    title = "standard input" if path == "-" else path
    try:
        with click.open_file(path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                yield f"{title}:{number}", line
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{title}: cannot be read: {getattr(error, 'strerror', error)}") from None
