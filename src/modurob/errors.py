"""Every exception modurob raises on purpose.

    ModurobError
    ├── DatasheetError     a module's data is impossible or malformed
    ├── UnknownNameError   a kind, module, port, body or joint that does not exist
    ├── DockingError       a docking that breaks a rule (port in use, no mate, loop, cell taken)
    ├── MatrixError        an assembly incidence matrix or grid drawing that describes no organism
    ├── FileError          a file that cannot be read, is not ours, or comes from a newer version
    │   └── WriteError     a file that cannot be written: no such folder, no permission, no space
    ├── StateError         a state, pose or option that does not fit the model
    │   └── SimulationError  (modurob.sim) a run that stopped; holds the trajectory until then
    └── SizeError          a closed form too long to read, or arrays too large for memory

    ModelWarning           data that were repaired, or joints that a model cannot move

A message says what was given, what was expected, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable

LONGEST_LINE = 1000  # characters


class ModurobError(Exception):
    """Base of all errors that modurob raises on purpose."""


class DatasheetError(ModurobError, ValueError):
    """A module's data is impossible or malformed."""


class UnknownNameError(ModurobError, KeyError):
    """A kind, module, port, body or joint that does not exist."""

    # KeyError prints its argument with repr(); an error message is for reading.
    __str__ = Exception.__str__


class DockingError(ModurobError, ValueError):
    """A docking that breaks a rule."""


class MatrixError(ModurobError, ValueError):
    """A matrix or drawing that describes no organism."""


class FileError(ModurobError, ValueError):
    """A file that cannot be read, is not ours, or comes from a newer version."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class WriteError(FileError):
    """A file that cannot be written."""


class StateError(ModurobError, ValueError):
    """A state, pose or option that does not fit the model."""


class SizeError(ModurobError, ValueError):
    """A closed form that would be too long to read, or arrays that would not fit into memory."""


class ModelWarning(UserWarning):
    """A model that differs from its data: a value was repaired, or a joint cannot move."""


def one_line(text: str) -> str:
    """A message that quotes a file: in one line that can be printed, shortened when it is long."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 200]} ... {text[-100:]}"


def choices(names: Iterable[object], limit: int = 12) -> str:
    """The valid names for an error message, in order, shortened when there are many."""
    listed = [str(name) for name in names]
    if not listed:
        return "none"
    if len(listed) <= limit:
        return ", ".join(listed)
    return ", ".join(listed[: limit - 1]) + f", ... ({len(listed)} in all, last {listed[-1]})"
