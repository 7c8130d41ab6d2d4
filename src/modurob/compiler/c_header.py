"""The header of an exported C file: what a firmware developer reads."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

import numpy as np

from modurob.compiler.c_functions import COUNTED, Function, Printed, Real
from modurob.model import Model

WIDTH = 96  # characters of a comment's line
UNSAFE = re.compile(r"[^A-Za-z0-9 _.,:;'()=+-]")  # could close a comment, or be a trigraph
LONGEST = 200  # characters of a name or a reason
COLUMN = 7  # of the table of operations


def plain(text: str) -> str:
    """A name or a reason as text that is safe in a comment of C."""
    safe = UNSAFE.sub("_", " ".join(text.split()))
    return safe if len(safe) <= LONGEST else f"{safe[: LONGEST - 3]}..."


def signature(name: str, function: str, spec: Function) -> str:
    """``void crab_mass_matrix(const crab_real q[CRAB_NQ], crab_real M[CRAB_NV][CRAB_NV])``."""
    upper, real = name.upper(), f"{name}_real"
    sizes = {"q": "NQ"}
    parameters = [
        f"const {real} {each}[{upper}_{sizes.get(each, 'NV')}]" for each in spec.inputs.values()
    ]
    result = "".join(f"[{s if s.isdigit() else f'{upper}_{s}'}]" for s in spec.sizes)
    parameters.append(f"{real} {spec.result}{result}")
    head = f"void {name}_{function}("
    line = head + ", ".join(parameters) + ")"
    return line if len(line) < WIDTH else head + "\n    " + ",\n    ".join(parameters) + ")"


def header_text(
    model: Model,
    name: str,
    real: Real,
    functions: Mapping[str, Function],
    bodies: Mapping[str, Printed],
) -> str:
    """The whole header."""
    upper = name.upper()
    declarations = []
    for function, spec in functions.items():
        declarations += [*_comment([spec.meaning]), f"{signature(name, function, spec)};", ""]
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
