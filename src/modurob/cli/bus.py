"""``modurob bus``: modules as processes, plugged and unplugged while they run."""

from __future__ import annotations

from collections.abc import Iterator

import click

from modurob import FileError
from modurob.cli import FAILED, output
from modurob.cli.bus_session import Session, WaitedInVain
from modurob.cli.characters import echo
from modurob.cli.choices import LawChoice
from modurob.distributed.bus.processes import ProcessBus

EXAMPLE = """\b
Examples:
  modurob bus
  modurob bus --script demo.bus --loss 0.3
  printf 'arm babac\\nwait 5\\nshow\\n' | modurob bus --script -
"""


@click.command("bus", epilog=EXAMPLE, short_help="Plug modules together while they run.")
@click.option("--script", metavar="FILE", help="Read commands from a file; - for standard input.")
@click.option("--law", type=LawChoice(), default="computed-torque", show_default=True,
              help="The controller.")  # fmt: skip
@click.option("--heartbeat", type=float, default=0.25, show_default=True, metavar="SECONDS",
              help="A module is heard at least so often.")  # fmt: skip
@click.option("--loss", type=float, default=0.0, show_default=True, metavar="CHANCE",
              help="Throw datagrams away, to see that it does not matter.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the last state as JSON, no more.")
@click.pass_context
def command(
    ctx: click.Context, script: str | None, law: str, heartbeat: float, loss: float, as_json: bool
) -> None:
    """Start modules as processes of their own and plug them together.

    Every module knows only its own datasheet and who is plugged into it. A coordinator at the base
    finds out what hangs there, makes model and controller anew whenever that changes, and hands out
    torques. Commands:

    \b
    start, plug, unplug, arm, kill, move, wait, show, help, quit
    """
    output.check_path("--script", script)
    lines = None if script is None else list(_script(script))
    with ProcessBus(law, heartbeat=heartbeat, loss=loss) as bus:
        bus.wait_until_warm()
        session = Session(bus, quiet=as_json)
        try:
            session.talk() if lines is None else session.play(lines)
        except WaitedInVain as error:
            echo(f"error: {error}", err=True)
            ctx.exit(FAILED)
        finally:
            if as_json:
                output.print_json(session.facts())


def _script(path: str) -> Iterator[tuple[str, str]]:
    """(where, command) of each line."""
    title = "standard input" if path == "-" else path
    try:
        with click.open_file(path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                yield f"{title}:{number}", line
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{title}: cannot be read: {getattr(error, 'strerror', error)}") from None
