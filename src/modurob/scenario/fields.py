"""Fields of a run as people type them: labels and texts for the command line and the studio."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from modurob.distributed.bus import motions
from modurob.errors import StateError, choices
from modurob.model import Model
from modurob.organism import Organism
from modurob.organism.examples import EMULATED, emulation
from modurob.scenario.settings import TIME
from modurob.sim import ENGINES

NAMED = re.compile(r"\s*(\w+)\s*=\s*([^=]*?)\s*(?=[\s,;]\w+\s*=|$)")  # kp=1,2 kd = 3
STEEPEST = 80.0  # [deg] of a slope that is typed
Read = Callable[[str, str, Model], Any]  # (name for errors, text, model) -> value of the field
Write = Callable[[Any, Model], str]


class RunField(NamedTuple):
    """A field of `RunSettings` in front ends.

    Attributes:
        label: For a form, with the unit.
        help: One line.
        read, write: From text, and to text; None for a number or a switch.
        step: Of a number.
        option: On the command line, where it is not the field's name.
        metavar: Of its value there.
        choices: Its values, where there are only some.
    """

    label: str
    help: str
    read: Read | None = None
    write: Write | None = None
    step: float | None = None
    option: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()


# -- numbers by joint ------------------------------------------------------------------------------


def joint_numbers(
    name: str, text: str, model: Model, unit: str, single: bool = False
) -> list[float]:
    """Finite numbers with commas, one for each joint; or one for all if that is allowed."""
    joints = model.joint_names
    try:
        numbers = [float(piece) for piece in text.split(",")]
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise StateError(f"{name} takes numbers separated by commas [{unit}], got '{text}'")
    if len(numbers) != len(joints) and not (single and len(numbers) == 1):
        raise StateError(
            f"{name} has {len(numbers)} numbers, but the model has {len(joints)} joints: "
            f"{' '.join(joints)}"
        )
    return numbers


def joint_positions(name: str, text: str, model: Model) -> dict[str, float]:
    """Positions by joint, typed with commas in degrees and meters. [rad, m]"""
    if not text.strip():
        return {}
    values = _scale(model) * joint_numbers(name, text, model, "deg, m")
    return dict(zip(model.joint_names, values.tolist(), strict=True))


def _positions_text(values: Mapping[str, float], model: Model) -> str:
    if not values:
        return ""
    found = np.array([values.get(joint, 0.0) for joint in model.joint_names]) / _scale(model)
    return ", ".join(f"{x:.6g}" for x in found)


def _scale(model: Model) -> np.ndarray:
    """(n,) radians in a degree, or 1 for a joint that slides."""
    return np.where(model.prismatic, 1.0, math.pi / 180)


def torque_limits(name: str, text: str, model: Model) -> float | tuple[float, ...]:
    """Torque limits: one, or one for each joint; 0 for none. [N m, N]"""
    numbers = joint_numbers(name, text or "0", model, "N m, N", single=True)
    if min(numbers) < 0:
        raise StateError(f"{name} must be at least 0, got {text}")
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def _limits_text(value: float | tuple[float, ...], model: Model) -> str:
    return _numbers_text(value)


def joint_list(name: str, text: str, model: Model) -> tuple[str, ...]:
    """Names of joints, with commas."""
    names = tuple(word.strip() for word in text.split(",") if word.strip())
    for joint in names:
        model.joint_index(joint)  # raises an error that lists the joints
    return names


def _list_text(names: tuple[str, ...], model: Model) -> str:
    return ", ".join(names)


def _body(name: str, text: str, model: Model) -> str:
    """Name of a body or a module."""
    if text.strip():
        model.body_index(text.strip())  # raises an error that lists the bodies
    return text.strip()


def _body_text(value: str, model: Model) -> str:
    return value


def pole_numbers(name: str, text: str, model: Model) -> tuple[complex, ...]:
    """Two poles, or two for each joint. [1/s]"""
    if not text.strip():
        return ()
    try:
        numbers = tuple(complex(piece.replace(" ", "")) for piece in text.split(","))
    except ValueError:
        raise StateError(f"{name} takes numbers such as -2 or -2+3j, got '{text}'") from None
    joints = len(model.joint_names)
    if len(numbers) not in (2, 2 * joints):
        raise StateError(f"{name} takes 2 numbers, or {2 * joints} for {joints} joints, got {text}")
    return numbers


def _poles_text(values: tuple[complex, ...], model: Model) -> str:
    words = (f"{p.real:g}{p.imag:+g}j" if p.imag else f"{p.real:g}" for p in values)
    return ", ".join(words)


def joint_locks(name: str, given: Sequence[str], organism: Organism) -> dict[str, float]:
    """Positions of joints that are held: ``m1.roll=45``, or the robot to emulate. [rad, m]"""
    locked: dict[str, float] = {}
    for text in given:
        joint, equals, number = text.partition("=")
        if not equals and text in EMULATED:
            found = emulation(organism, text)
        else:
            found = {joint: _lock_position(name, text, number) * _lock_unit(joint, organism)}
        for each in found:
            if each in locked:
                raise StateError(f"{name} has {each} twice: give it once")
        locked |= found
    return locked


def _lock_position(name: str, text: str, number: str) -> float:
    try:
        position = float(number)
    except ValueError:
        position = math.nan
    if not math.isfinite(position):
        raise StateError(
            f"{name} takes JOINT=POSITION, such as m1.roll=45, or {choices(EMULATED)}, "
            f"got '{text[:60]}'"
        )
    return position


def _lock_unit(name: str, organism: Organism) -> float:
    """Radians in a degree, or 1 for a joint that slides."""
    module, _, joint = name.partition(".")
    own = organism.kind(module).joints if module in organism else ()
    slides = (joint, "prismatic") in [(each.name, each.kind) for each in own]
    return 1.0 if slides or name.startswith("world.p") else math.pi / 180


def _locks(name: str, text: str, model: Model) -> dict[str, float]:
    assert model.organism is not None  # fields belong to a body
    return joint_locks(name, text.replace(",", " ").split(), model.organism)


def _locks_text(values: Mapping[str, float], model: Model) -> str:
    assert model.organism is not None
    units = {joint: _lock_unit(joint, model.organism) for joint in values}
    return " ".join(f"{joint}={x / units[joint]:.6g}" for joint, x in values.items())


def slope_degrees(name: str, text: str, model: Model) -> tuple[float, float]:
    """Slope along x, and along y if there is a second number, typed in degrees. [m/m]"""
    try:
        numbers = [float(piece) for piece in (text.strip() or "0").split(",")]
    except ValueError:
        numbers = [math.nan]
    if len(numbers) > 2 or not all(abs(x) < STEEPEST for x in numbers):
        raise StateError(
            f"{name} takes one or two angles below {STEEPEST:g} degrees, along x and y, such as "
            f"'5' or '5,-2', got '{text}'"
        )
    x, y = (*(math.tan(math.radians(number)) for number in numbers), 0.0)[:2]
    return x, y


def _slope_text(value: tuple[float, float], model: Model) -> str:
    angles = [f"{math.degrees(math.atan(x)):.6g}" for x in value]
    return "" if not any(value) else ", ".join(angles if value[1] else angles[:1])


# -- numbers by name -------------------------------------------------------------------------------


def named_numbers(name: str, text: str, model: Model) -> dict[str, Any]:
    """Numbers by name, ``kp=250 kd=30,20``; semicolons stand between the rows of a matrix."""
    pairs = [(match[1], match[2]) for match in NAMED.finditer(text)]
    found = dict(pairs)
    if len(found) < len(pairs):
        raise StateError(f"{name} has a name twice: give each once, got '{text}'")
    if NAMED.sub("", text).strip(" ,;"):
        raise StateError(f"{name} takes name=numbers such as kp=250 kd=30,20, got '{text}'")
    return {key: _typed_numbers(f"{name} {key}", value) for key, value in found.items()}


def _typed_numbers(name: str, text: str) -> Any:
    try:
        rows = [tuple(float(x) for x in row.split(",")) for row in text.split(";")]
    except ValueError:
        raise StateError(f"{name} takes numbers with commas, got '{text}'") from None
    if len(rows) > 1:
        return tuple(rows)
    return rows[0][0] if len(rows[0]) == 1 else rows[0]


def _named_text(values: Mapping[str, Any], model: Model) -> str:
    return " ".join(f"{key}={_numbers_text(value)}" for key, value in values.items())


def _numbers_text(value: Any) -> str:
    rows = np.atleast_2d(np.array(value, dtype=float))
    return ";".join(",".join(f"{x:.6g}" for x in row) for row in rows)


def gait_parameters(name: str, text: str, model: Model | None = None) -> dict[str, Any]:
    """Numbers of a gait, for all joints or one: ``lag=0.5 phase.m1.hinge=0.3``."""
    found: dict[str, Any] = {}
    for piece in text.split():
        key, _, number = piece.partition("=")
        try:
            value = int(number) if number.isdecimal() else float(number)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise StateError(
                f"{name} takes NAME=VALUE, such as lag=1 or phase.m1.hinge=0.3, got '{piece}'"
            )
        place: dict[str, Any] = found
        word, _, joint = key.partition(".")
        if joint and isinstance(place.setdefault(word, {}), dict):
            place, word = place[word], joint
        if word in place:
            raise StateError(f"{name} has {key} twice: give it once")
        place[word] = value
    return found


def _gait_text(values: Mapping[str, Any], model: Model) -> str:
    each = (
        (f"{name}.{joint}", x)
        for name, value in values.items()
        for joint, x in (value.items() if isinstance(value, dict) else (("", value),))
    )
    return " ".join(f"{name.removesuffix('.')}={x:.6g}" for name, x in each)


# -- records ---------------------------------------------------------------------------------------


def push(name: str, text: str, model: Model) -> dict[str, Any]:
    """One wrench: ``m3 force=0,0,5 begin=1 length=0.1``."""
    return _record(name, text, "m3 force=0,0,5 begin=1 length=0.1")


def pushes(name: str, text: str, model: Model) -> list[dict[str, Any]]:
    """One wrench in each line."""
    return [push(name, each, model) for each in text.splitlines() if each.strip()]


def payload(name: str, text: str, model: Model) -> dict[str, Any] | None:
    """A mass: ``m3 mass=0.5 center=0,0,0.1 known=1``."""
    return _record(name, text, "m3 mass=0.5 center=0,0,0.1 known=1") if text.strip() else None


def _record(name: str, text: str, example: str) -> dict[str, Any]:
    body, _, rest = text.strip().partition(" ")
    if not body or "=" in body:
        raise StateError(f"{name} starts with a body, such as '{example}', got '{text}'")
    return {"body": body, **named_numbers(name, rest, None)}  # pyright: ignore[reportArgumentType]


def _record_text(record: Any, model: Model) -> str:
    if record is None:
        return ""
    data = record.model_dump(exclude_defaults=True)
    return f"{data.pop('body')} {_named_text(data, model)}"


def _pushes_text(records: tuple[Any, ...], model: Model) -> str:
    return "\n".join(_record_text(record, model) for record in records)


def point_table(name: str, text: str, model: Model) -> dict[str, tuple[float, ...]]:
    """Points, one in each line: a time [s], then positions [deg, m]."""
    if not text.strip():
        return {}
    times, places = motions.table(text, model, name)
    columns = {TIME: times, **dict(zip(model.joint_names, places.T, strict=True))}
    return {column: tuple(values.tolist()) for column, values in columns.items()}


def _points_text(values: Mapping[str, tuple[float, ...]], model: Model) -> str:
    if not values:
        return ""
    still = (0.0,) * len(values[TIME])
    places = np.array([values.get(joint, still) for joint in model.joint_names]).T / _scale(model)
    rows = np.column_stack([values[TIME], places])
    return "\n".join(",".join(f"{x:.6g}" for x in row) for row in rows)


# -- the table -------------------------------------------------------------------------------------

MODEL: Mapping[str, RunField] = {
    "locked": RunField(
        "Locked joints, such as m1.roll=45 [deg, m]",
        "Hold joints, such as 'm1.roll=45', or conro or m-tran for the roll joints of all "
        "SuperBots. [deg, m]",
        _locks, _locks_text, option="lock",
    ),
    "analytic": RunField(
        "With formulas, beside numbers", "Simulate the closed-form equations and compare with "
        "the numeric model.", option="equations",
    ),
}  # fmt: skip
PARTS: Mapping[str, Mapping[str, RunField]] = {
    "Ground": {
        "ground": RunField("Ground under the body", "Put ground under the body."),
        "slope": RunField(
            "Slope along x, y [deg]", "Angle of the ground along x, or along x and y. [deg]",
            slope_degrees, _slope_text, metavar="ANGLES",
        ),
        "ground_friction": RunField(
            "Friction on the ground, 0: ice", "Coefficient of friction on the ground.", step=0.1,
            option="friction",
        ),
    },
    "Target, points, gait": {
        "target": RunField(
            "Target [deg, m]", "Joint positions to go to, separated by commas. [deg, m]",
            joint_positions, _positions_text, option="to", metavar="ANGLES",
        ),
        "move_time": RunField("Time to the target [s]", "Time of a quintic motion. [s]", step=0.1),
        "points": RunField(
            "Points, one in each line: time [s], positions [deg, m]",
            "File of times [s] and places [deg, m], or of a run: .csv or .npz.",
            point_table, _points_text, metavar="FILE",
        ),
        "feedforward": RunField(
            "Velocities to the law", "Give the law the velocity of the motion, too."
        ),
        "amplitude": RunField(
            "Amplitude [of the limits]", "Amplitude of a gait, as a share of the limits, up to 1.",
            step=0.1,
        ),
        "frequency": RunField("Frequency [Hz]", "Frequency of a gait. [Hz]", step=0.1),
        "ramp": RunField("Ramp [s]", "Time from rest to the full gait. [s]", step=0.5),
        "gait": RunField(
            "Gait parameters, such as lag=0.5 phase.m1.hinge=1",
            "Lag, phase, coupling, r ... by name.",
            gait_parameters, _gait_text,
        ),
    },
    "Gains, poles, limits": {
        "settling_time": RunField(
            "Settling time [s]", "Settling time. [s]", step=0.1, option="settle", metavar="SECONDS"
        ),
        "gains": RunField(
            "Gains, such as kp=9 kd=1,2,2", "Gains of the law by name, such as 'kp=250 kd=30'.",
            named_numbers, _named_text, metavar="GAINS",
        ),
        "poles": RunField(
            "Poles [1/s]",
            "Two poles, or two for each joint, such as -2,-3 (pole-placement). [1/s]",
            pole_numbers, _poles_text, metavar="POLES",
        ),
        "torque_limit": RunField(
            "Torque limit [N m], 0: none",
            "Largest torque: one, or one for each joint; 0 for none. [N m, N]",
            torque_limits, _limits_text, metavar="TORQUES",
        ),
        "passive": RunField(
            "Joints without a motor", "Joints without a motor, separated by commas.", joint_list,
            _list_text, metavar="JOINTS",
        ),
        "outputs": RunField(
            "Outputs of a partial linearization",
            "Joints that partial-linearization controls, as many as have a motor.", joint_list,
            _list_text, metavar="JOINTS",
        ),
        "yielding": RunField(
            "Body that yields", "Body of cartesian-impedance; the last one by default.", _body,
            _body_text, option="body", metavar="BODY",
        ),
        "sample_time": RunField(
            "Sample time [s], 0: none", "Time between commands. [s]", step=0.001
        ),
        "torque_delay": RunField(
            "Delay of torques [s]", "Time until a torque takes effect; the gains allow for it. [s]",
            step=0.001, option="delay",
        ),
    },
    "Payload and pushes": {
        "masses": RunField(
            "True masses [of the model's]",
            "True masses, as a multiple of those that the law uses.", step=0.05, metavar="FACTOR",
        ),
        "payload": RunField(
            "Payload, such as m3 mass=0.2",
            "Mass added to a body, such as 'm3 mass=0.2 center=0,0,0.1 known=1'. [kg, m]",
            payload, _record_text, metavar="PAYLOAD",
        ),
        "pushes": RunField(
            "Pushes, one in each line: m3 force=0,0,5 begin=1 length=0.1",
            "Wrench on a body, in its frame: 'm3 force=0,0,5 moment=0,1,0 begin=1 length=0.1 "
            "frequency=2'; may be repeated. [N, N m, s, Hz]",
            pushes, _pushes_text, option="push", metavar="PUSH",
        ),
        "wrench_sensors": RunField("Wrench sensors", "Let the law measure pushes and contacts."),
    },
    "Noise and filter": {
        "noise_q": RunField(
            "Position σ [rad, m]", "Noise of measured positions. [rad, m]", step=0.001
        ),
        "noise_v": RunField(
            "Velocity σ [rad/s, m/s]", "Noise of measured velocities. [rad/s, m/s]", step=0.001
        ),
        "noise_tau": RunField(
            "Torque σ [N m, N]", "Noise of the torques. [N m, N]", step=0.01,
            option="torque-noise", metavar="SIGMA",
        ),
        "ekf": RunField(
            "EKF, such as Q=1e-4 R=1e-3",
            "Q, R, W, V, P, q or v of the filter, such as 'Q=1e-4 R=0.01,0.01,0.02'.",
            named_numbers, _named_text, option="filter", metavar="MATRICES",
        ),
    },
}  # fmt: skip
METHOD: Mapping[str, RunField] = {
    "engine": RunField(
        "Engine", "Simulator: modurob, or MuJoCo, which also has contact between modules.",
        choices=ENGINES,
    ),
}  # fmt: skip
FIELDS: Mapping[str, RunField] = {
    name: field for part in (MODEL, *PARTS.values(), METHOD) for name, field in part.items()
}
