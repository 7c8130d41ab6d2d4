"""Options whose values are the entries of a table that may grow."""

from __future__ import annotations

from typing import Any

import click

from modurob.control.laws import law_class, law_keys
from modurob.errors import UnknownNameError


class LawChoice(click.ParamType):
    """A control law by its key or the name of its class; the value is the key."""

    name = "law"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """List the laws in the help text."""
        return f"[{'|'.join(law_keys())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the key of a law as typed."""
        try:
            return law_class(value).key
        except UnknownNameError as error:
            self.fail(str(error), param, ctx)
