"""The equations of one organism as C99 for firmware: a header, a source, and a test program.

Straight-line code from the compiler's traces: no allocation, no state, and of the mathematics
library only sin, cos and sqrt (sinf, cosf and sqrtf in single precision).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from modurob.compiler.c_functions import REALS, USUAL, Function, Printed, Real, c_functions, printed
from modurob.compiler.c_header import header_text, signature
from modurob.compiler.c_program import program_text
from modurob.errors import StateError, UnknownNameError, WriteError, choices
from modurob.model import Model
from modurob.modules.files import checked_path, checked_target, replace_file, writing

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
MOST_JOINTS = 100  # straight-line code of more takes C compilers minutes
STATES = 10  # of the test program
# <name>.h would be found in the place of these by files that include them
STANDARD_HEADERS = (
    "assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits",
    "locale", "math", "setjmp", "signal", "stdarg", "stdbool", "stddef", "stdint", "stdio",
    "stdlib", "string", "tgmath", "time", "wchar", "wctype",
)  # fmt: skip


class CSources(NamedTuple):
    """An exported organism.

    Attributes:
        name: Prefix of all identifiers and files.
        header, source, test: Text of ``<name>.h``, ``<name>.c`` and ``<name>_test.c``.
        operations: For each function how often it adds (or subtracts), multiplies and so on.
    """

    name: str
    header: str
    source: str
    test: str
    operations: Mapping[str, Mapping[str, int]]

    def files(self) -> dict[str, str]:
        """The texts by the names of their files."""
        name = self.name
        return {f"{name}.h": self.header, f"{name}.c": self.source, f"{name}_test.c": self.test}

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write all three files into a folder, which may be new, or change nothing."""
        target = checked_path(folder)
        made = not os.path.exists(target)
        if not made and not target.is_dir():
            raise WriteError(f"{target}: cannot be written: not a folder")
        before: dict[Path, bytes | None] = {}
        with writing(target):
            try:
                if made:
                    target.mkdir()
                for name, text in self.files().items():
                    path = checked_target(target / name)
                    before[path] = path.read_bytes() if path.exists() else None
                    replace_file(path, text.encode("ascii"))
            except BaseException:
                _restore(before, target if made else None)
                raise
        return list(before)


def _restore(before: Mapping[Path, bytes | None], made: Path | None) -> None:
    """Files and folder as they were."""
    for path, content in before.items():
        if content is not None:
            replace_file(path, content)
        else:
            path.unlink(missing_ok=True)
    if made is not None and made.is_dir():
        made.rmdir()


def c_sources(
    model: Model,
    name: str = "modurob",
    dtype: str = "float64",
    states: int = STATES,
    functions: Sequence[str] = USUAL,
) -> CSources:
    """Quantities of a model as C99; by default dynamics, mass matrix and kinematics.

    Args:
        model: The organism's model; its numbers become constants of the code.
        name: Prefix of all files, functions and macros.
        dtype: ``float64`` for double, ``float32`` for float.
        states: Number of reference states in the test program.
        functions: Of `c_functions`.
    """
    check_name(name)
    known = c_functions()
    if not functions:
        raise StateError(f"no C function is named: choose from {choices(known, 20)}")
    for each in functions:
        if each not in known:
            raise UnknownNameError(f"no C function {each!r}: choose from {choices(known, 20)}")
    chosen = {each: known[each] for each in functions}
    if dtype not in REALS:
        raise StateError(f"dtype must be one of {choices(REALS)}, got {dtype!r}")
    if not model.nv:
        raise StateError("no joint of this model can move: there are no equations to export")
    if len(model.joint_names) > MOST_JOINTS:
        raise StateError(
            f"the model has {len(model.joint_names):,} joints; code without loops is exported for "
            f"at most {MOST_JOINTS}"
        )
    real = REALS[dtype]
    bodies = {
        each: _printed(each, spec, model, real, f"{name}_real") for each, spec in chosen.items()
    }
    return CSources(
        name=name,
        header=header_text(model, name, real, chosen, bodies),
        source=_source(name, chosen, bodies),
        test=program_text(model, name, dtype, states, chosen),
        operations={each: body.operations for each, body in bodies.items()},
    )


def check_name(name: str) -> None:
    """Refuse a name that cannot begin identifiers in C, or would hide a standard header."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise StateError(
            f"{name!r} cannot begin names in C: at most 40 letters (a to z), digits and "
            "underscores are allowed, the first a letter"
        )
    if name.lower() in STANDARD_HEADERS:
        raise StateError(
            f"'{name}' would hide the standard header {name.lower()}.h: take another name"
        )


def _printed(function: str, spec: Function, model: Model, real: Real, real_name: str) -> Printed:
    try:
        return printed(spec, model, real, real_name)
    except ZeroDivisionError:
        # a joint moves nothing: forward dynamics raises an error with its name
        rest = np.zeros(model.nv)
        model.forward_dynamics(model.neutral(), rest, rest)
        raise StateError(f"{function} is singular: a joint has nothing to accelerate") from None


def _source(name: str, functions: Mapping[str, Function], bodies: Mapping[str, Printed]) -> str:
    parts = [
        f"/* {name}.c: see {name}.h. Written by modurob; do not edit. */",
        "",
        f'#include "{name}.h"',
        "",
        "#include <math.h>",
    ]
    for function, body in bodies.items():
        head = signature(name, function, functions[function])
        parts += ["", head, "{", *(f"  {line}" for line in body.lines), "}"]
    return "\n".join(parts) + "\n"
