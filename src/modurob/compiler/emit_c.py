"""The equations of one organism as C99 for firmware: a header, a source, and a test program.

Straight-line code from the compiler's traces: no allocation, no state, and of the mathematics
library only sin, cos and sqrt (sinf, cosf and sqrtf in single precision).
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from modurob.compiler.c_functions import (
    COUNTED,
    REALS,
    USUAL,
    Printed,
    Real,
    c_functions,
    printed,
)
from modurob.compiler.c_program import program_text
from modurob.errors import StateError, UnknownNameError, WriteError, choices
from modurob.model import Model
from modurob.modules.files import checked_path, checked_target, replace_file, writing

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
MOST_JOINTS = 100  # straight-line code of more takes C compilers minutes
STATES = 10  # of the test program
WIDTH = 96  # characters of a comment's line
UNSAFE = re.compile(r"[^A-Za-z0-9 _.,:;'()=+-]")  # could close a comment, or be a trigraph
LONGEST = 200  # characters of a name or a reason
COLUMN = 7  # of the table of operations
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
        return write_sources(folder, self.files())


def write_sources(folder: str | os.PathLike[str], files: Mapping[str, str]) -> list[Path]:
    """Write texts by their names below a folder, which may be new, or change nothing."""
    target = checked_path(folder)
    made = not os.path.exists(target)
    if not made and not target.is_dir():
        raise WriteError(f"{target}: cannot be written: not a folder")
    before: dict[Path, bytes | None] = {}
    with writing(target):
        try:
            if made:
                target.mkdir()
            for name, text in files.items():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
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
        shutil.rmtree(made)


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
    bodies = {key: printed(spec, model, real, f"{name}_real") for key, spec in chosen.items()}
    return CSources(
        name=name,
        header=_header(model, name, real, bodies),
        source=_source(name, bodies),
        test=program_text(model, name, dtype, states, chosen),
        operations={each: body.operations for each, body in bodies.items()},
    )


def check_name(name: str) -> None:
    """Refuse a name that cannot begin identifiers in C, or would hide a standard header."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise StateError(
            f"{name!r} cannot be the prefix of names in C: use at most 40 letters (a to z), digits "
            "and underscores, beginning with a letter"
        )
    if name.lower() in STANDARD_HEADERS:
        raise StateError(
            f"'{name}' would hide the standard header {name.lower()}.h: take another name"
        )


def _source(name: str, bodies: Mapping[str, Printed]) -> str:
    parts = [
        f"/* {name}.c: see {name}.h. Written by modurob; do not edit. */",
        "",
        f'#include "{name}.h"',
        "",
        "#include <math.h>",
    ]
    for function, body in bodies.items():
        parts += [
            "",
            _signature(name, function, body),
            "{",
            *(f"  {line}" for line in body.lines),
            "}",
        ]
    return "\n".join(parts) + "\n"


# -- header ---------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """A name or a reason as text that is safe in a comment of C."""
    safe = UNSAFE.sub("_", " ".join(text.split()))
    return safe if len(safe) <= LONGEST else f"{safe[: LONGEST - 3]}..."


def _signature(name: str, function: str, body: Printed) -> str:
    """``void crab_mass_matrix(const crab_real q[CRAB_NQ], crab_real M[CRAB_NV][CRAB_NV])``."""
    spec, upper, real = body.function, name.upper(), f"{name}_real"
    sizes = {"q": f"{upper}_NQ", "external": f"6 * {upper}_MODULES"}
    parameters = [
        f"const {real} {each}[{sizes.get(array, f'{upper}_NV')}]"
        for array, each in spec.inputs.items()
    ]
    result = "".join(f"[{s if s.isdigit() else f'{upper}_{s}'}]" for s in spec.sizes)
    parameters.append(f"{real} {spec.result}{result}")
    head = f"void {name}_{function}("
    line = head + ", ".join(parameters) + ")"
    return line if len(line) < WIDTH else head + "\n    " + ",\n    ".join(parameters) + ")"


def _header(model: Model, name: str, real: Real, bodies: Mapping[str, Printed]) -> str:
    """The whole header."""
    upper = name.upper()
    declarations = []
    for function, body in bodies.items():
        declarations += [
            *_comment([body.function.meaning]),
            f"{_signature(name, function, body)};",
            "",
        ]
    return "\n".join(
        [
            *_comment(_preface(model, name, real, bodies)),
            f"#ifndef {upper}_H",
            f"#define {upper}_H",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            f"#define {upper}_NQ {model.nq}",
            f"#define {upper}_NV {model.nv}",
            f"#define {upper}_MODULES {len(model.modules)}",
            "",
            f"typedef {real.name} {name}_real;",
            "",
            *declarations,
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            "#endif",
            "",
        ]
    )


def _comment(lines: list[str]) -> list[str]:
    wrapped = [part for line in lines for part in (_wrapped(line) or [""])]
    if len(wrapped) == 1:
        return [f"/* {wrapped[0]} */"]
    return [f"/* {wrapped[0]}", *(f" * {line}".rstrip() for line in wrapped[1:]), " */"]


def _wrapped(line: str) -> list[str]:
    inner = line.lstrip()
    indent = " " * (len(line) - len(inner))
    return textwrap.wrap(
        inner, WIDTH, initial_indent=indent, subsequent_indent=indent and indent + "    ",
        drop_whitespace=True, break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _preface(model: Model, name: str, real: Real, bodies: Mapping[str, Printed]) -> list[str]:
    s = real.suffix
    gravity = ", ".join(f"{g:g}" for g in model.gravity)
    return [
        f"{name}: equations of motion and kinematics of a modular robot. Written by modurob; "
        "do not edit.",
        "",
        f"C99 without loops and branches: no allocation, no state, and of <math.h> only sin{s}, "
        f"cos{s} and sqrt{s}. Units are SI and radians. Numbers must be finite; nothing is "
        "checked. In the dynamics the result may take the place of an input.",
        "",
        f"Base {'free' if model.free_base else 'fixed'}, gravity ({gravity}) m/s^2 in the world.",
        "",
        *_coordinates(model),
        "",
        *_modules(model),
        "",
        *_locked(model),
        *_operations(real, bodies),
    ]


def _coordinates(model: Model) -> list[str]:
    lines = ["Coordinates:"]
    first_q = first_v = 0
    if model.free_base:
        first_q, first_v = 7, 6
        lines += [
            "  q[0] to q[2]: position of the base in the world [m]",
            "  q[3] to q[6]: its unit quaternion x, y, z, w; it must have norm 1",
            "  v[0] to v[5]: its twist in its own frame, linear part first [m/s, rad/s]; a: the "
            "rate of that [m/s^2, rad/s^2]; tau: the wrench on it, force first [N, N m]",
        ]
    for k, joint in enumerate(model.joint_names):
        slides = model.prismatic[k]
        units = "m, m/s, m/s^2, N" if slides else "rad, rad/s, rad/s^2, N m"
        kind = "prismatic" if slides else "revolute"
        lines.append(
            f"  q[{first_q + k}], v[{first_v + k}]: {plain(joint)}, {kind} [{units}]"
            + _limits(model.lower[k], model.upper[k])
        )
    return lines


def _limits(lower: float, upper: float) -> str:
    if np.isfinite(lower) and np.isfinite(upper):
        return f", {lower:.6g} to {upper:.6g}"
    if np.isfinite(lower):
        return f", from {lower:.6g}"
    return f", up to {upper:.6g}" if np.isfinite(upper) else ""


def _modules(model: Model) -> list[str]:
    return [
        "Modules, in the order of T:",
        *(f"  T[{k}]: {plain(each)}" for k, each in enumerate(model.modules)),
    ]


def _locked(model: Model) -> list[str]:
    if not model.locked:
        return []
    reasons = [f"  {plain(joint)}: {plain(why)}" for joint, why in model.locked.items()]
    return ["Locked joints, which have no coordinate:", *reasons, ""]


def _operations(real: Real, bodies: Mapping[str, Printed]) -> list[str]:
    widest = 2 + max(len(function) for function in bodies)
    lines = ["Operations of a call (add counts subtractions), and bytes of values held at once:"]
    lines.append(
        "  " + "function".ljust(widest) + "".join(f"{op:>{COLUMN}}" for op in (*COUNTED, "bytes"))
    )
    for function, body in bodies.items():
        numbers = [*(body.operations[op] for op in COUNTED), body.held * real.bytes]
        lines.append(f"  {function:<{widest}}" + "".join(f"{n:>{COLUMN}}" for n in numbers))
    return lines
