"""The command line: ``modurob new``, ``modurob show`` and so on, one file a subcommand.

Exit codes: 0 when it worked; 1 when something could not be written or the reader of the output went
away; 2 for bad input; 130 when the user interrupted it. An error is one line on stderr that starts
with ``error:``, a warning about a model or a repaired file one that starts with ``warning:``.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from modurob import ModelWarning, ModurobError, UnknownNameError, WriteError, __version__
from modurob.cli.characters import echo, forgive_narrow_encodings

# each is modurob.cli.<name>.command, imported when it is asked for
COMMANDS = {
    "new": "Make an organism and write it to a JSON file.",
    "show": "Show an organism: drawing, joints and matrices.",
    "equations": "Print the equations of motion.",
    "simulate": "Simulate an organism.",
    "control": "Simulate a closed loop and report its robustness.",
    "balance": "Balance by messages between modules.",
    "walk": "Walk on the ground with a gait, or tune the gait.",
    "evolve": "Search for bodies and gaits that do a task well.",
    "identify": "Correct datasheets from recorded runs.",
    "run": "Run a scenario file, or a figure of a paper.",
    "export": "Write C code, a C library, URDF, MJCF or CoBRA.",
    "verify": "Check the equations of an organism.",
    "bus": "Run modules as processes and plug them together.",
    "papers": "Recompute the claims of the papers.",
    "studio": "Open the graphical studio in the browser.",
}
FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130


class Commands(click.Group):
    """A group that imports its subcommands late and reports errors as one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name not in COMMANDS:
            raise UnknownNameError(f"no command '{cmd_name}': commands are {', '.join(COMMANDS)}")
        return import_module(f"modurob.cli.{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))  # imports none of them

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> NoReturn:  # pyright: ignore[reportIncompatibleMethodOverride]
        options["standalone_mode"] = False
        forgive_narrow_encodings()
        # it warns when a user has no folder for its settings, which no command needs
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        try:
            with _warnings_as_lines():
                code = super().main(args, *rest, **options)
        except (ModurobError, click.ClickException) as error:
            text = error.format_message() if isinstance(error, click.ClickException) else error
            echo(f"error: {_one_line(str(text))}", err=True)
            code = FAILED if isinstance(error, WriteError) else BAD_INPUT
        except (KeyboardInterrupt, click.Abort):
            code = INTERRUPTED
        except OSError as error:  # of standard output; files have errors of their own
            if not isinstance(error, BrokenPipeError):
                echo(f"error: the output cannot be written: {error.strerror}", err=True)
            # what is left in the buffer cannot be written either: keep Python from trying at exit
            with contextlib.suppress(OSError, io.UnsupportedOperation):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = FAILED
        sys.exit(code if isinstance(code, int) else 0)


@contextlib.contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Show each `ModelWarning` once, as a line on stderr; others as Python does."""
    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        text = _one_line(str(message))
        if not issubclass(category, ModelWarning):
            usual(message, category, *place)
        elif text not in shown:
            shown.add(text)
            echo(f"warning: {text}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", ModelWarning)
        usual, warnings.showwarning = warnings.showwarning, show
        yield


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88},
    epilog="Example: modurob show crab",
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="modurob", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Build modular robots, derive their equations, simulate and control them."""
    if ctx.invoked_subcommand is None:
        echo(ctx.get_help())


def main() -> NoReturn:
    """Run the command ``modurob``."""
    cli.main(prog_name="modurob")
