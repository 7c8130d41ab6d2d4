"""`write_mjcf`: an organism for MuJoCo."""

from __future__ import annotations

import itertools
import os
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import per_joint, positive
from modurob.errors import StateError, choices
from modurob.interop.conventions import (
    UNLIMITED,
    ExportTree,
    axis_of,
    checked_title,
    motors_of,
    rgba,
    robot_of,
)
from modurob.interop.xml_files import XmlText
from modurob.model import Model
from modurob.model.shapes import body_place
from modurob.modules import Mesh
from modurob.modules.files import checked_target
from modurob.organism import Organism
from modurob.spatial import so3

FLOOR = "floor"  # geom and height field of the ground
GROUND = "ground"  # MuJoCo keeps the name "world" for itself
DUST = 2e-15  # kg, kg m^2: twice the least that MuJoCo accepts in moving bodies
FIELD_MEMORY = "64M"  # of contacts on a field of heights: a cube has a hundred
LONGEST_CHAIN = 490  # links; MuJoCo reads XML up to 500 levels deep
LinkPair = tuple[int, int]
ACTUATORS = ("motor", "position")
SERVO_RATE = 30.0  # [rad/s] of a joint under the default gains, critically damped
MUJOCO_INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast")


class Floor(NamedTuple):
    """Ground in MuJoCo: a plane, or heights on a grid.

    Attributes:
        pose: (4, 4) in the world; a plane's normal is its z axis.
        size: Of a plane, for drawing; of a field half its width along x and y, the difference of
            its heights, and the thickness below them. [m]
        heights: (ny, nx) from 0 to 1, of a field.
    """

    pose: np.ndarray
    size: tuple[float, ...]
    heights: np.ndarray | None = None


def write_mjcf(
    robot: Organism | Model,
    path: str | os.PathLike[str],
    *,
    hinges: str | None = None,
    base: str | Sequence[str] | None = None,
    gravity: ArrayLike | None = None,
    name: str = "organism",
    contact: bool = False,
    integrator: str = "RK4",
    timestep: float = 0.002,
    actuators: str = "motor",
    kp: ArrayLike | None = None,
    kd: ArrayLike | None = None,
    sensors: bool = False,
) -> None:
    """Write an organism as MJCF.

    Each link of the model is a body of MuJoCo, each body of the organism a site of its name
    (``m3.A``), each joint is called as in `Model.joint_names` and has a motor of the same name; the
    motors are in our order, so that ``ctrl`` is our ``tau``, without a free base's six entries.
    Efforts of motors have the limits of the datasheets.
    MuJoCo sorts joints its own way: find them by their names. Its free base has the quaternion as
    w, x, y, z and the linear velocity along the world's axes.

    MuJoCo refuses to move what has no mass: massless links and point masses get 2e-15 kg or kg m^2,
    which changes no result by more than rounding. A moment that exceeds the sum of the other two
    (datasheets tolerate a millionth) is written as that sum. Viscous friction is ``damping``, dry
    friction ``frictionloss``, which MuJoCo solves as a constraint; rotors are ``armature``, springs
    ``stiffness``. The names of locked joints,
    which ports are docked and what a module is are lost.

    Args:
        robot: An organism, or a model; one that was built from an organism is drawn with its
            shapes, too.
        path: The file to write; an old one stays intact if writing fails.
        hinges, base, gravity: See `Organism.model`.
        name: Of the model.
        contact: Whether the shapes collide, or are for drawing only. Links that share a joint or a
            module do not collide.
        integrator: One of MuJoCo's.
        timestep: Of the simulation. [s]
        actuators: ``motor``, with ``ctrl`` as our ``tau``; or ``position``, servos whose ``ctrl``
            is the position of a joint.
        kp, kd: Gains of servos, one number or one for each joint. By default those that give a
            joint 30 rad/s and critical damping with the inertia that it feels in the neutral pose.
            [N m/rad, N m s/rad; N/m, N s/m]
        sensors: Whether to add position, velocity and effort of each joint
            (``position:m3.hinge``), and accelerometer, gyroscope and attitude of each body with an
            inertial measurement unit (``accelerometer:m3.A``).
    """
    path = checked_target(path)
    tree = robot_of(robot, GROUND, hinges, base, gravity)
    if integrator not in MUJOCO_INTEGRATORS:
        given = reprlib.repr(integrator)
        raise StateError(f"integrator must be one of {choices(MUJOCO_INTEGRATORS)}, got {given}")
    positive("timestep", timestep, "seconds")
    given = {"integrator": integrator, "timestep": timestep}
    if actuators not in ACTUATORS:
        raise StateError(
            f"actuators are one of {choices(ACTUATORS)}, got {reprlib.repr(actuators)}"
        )
    gains = None
    if actuators == "position":
        gains = _servo_gains(tree.model, kp, kd)
    elif kp is not None or kd is not None:
        raise StateError("kp and kd are gains of servos: give actuators='position'")
    title = checked_title(name)
    mjcf_text(tree, contact, model=title, gains=gains, sensors=sensors, **given).write(path)


def mjcf_text(
    tree: ExportTree, contact: bool, floor: Floor | None = None, apart: Iterable[LinkPair] = (),
    model: str = "organism", gains: tuple[np.ndarray, np.ndarray] | None = None,
    sensors: bool = False, **options: Any,
) -> XmlText:  # fmt: skip
    """Return a tree of links as MJCF.

    Args:
        contact: Whether shapes collide; those of links that share a joint or a module do not.
        floor: The ground to stand on.
        apart: Further pairs of links that do not collide, the lower number first.
        model: Its name.
        gains: (n,) kp and kd of servos; None for motors, one for each joint, springs included.
        sensors: Whether to add those of joints and of inertial measurement units.
        options: Attributes of MuJoCo's ``option``.
    """
    collide = "1" if contact else "0"
    text = XmlText()
    with text.open("mujoco", model=model):
        text.leaf("compiler", angle="radian", inertiafromgeom="false", balanceinertia="false",
                  boundmass="0", boundinertia="0", fusestatic="false")  # fmt: skip
        text.leaf("option", gravity=tree.model.gravity, **options)
        with text.open("default"):
            text.leaf("geom", contype=collide, conaffinity=collide)
        if floor is not None and floor.heights is not None:
            text.leaf("size", memory=FIELD_MEMORY)
            with text.open("asset"):
                rows, columns = floor.heights.shape
                text.leaf("hfield", name=FLOOR, nrow=str(rows), ncol=str(columns),
                          size=floor.size)  # fmt: skip
        with text.open("worldbody"):
            if floor is not None:
                kind = {"type": "plane", "size": floor.size}
                if floor.heights is not None:
                    kind = {"type": "hfield", "hfield": FLOOR}
                text.leaf("geom", name=FLOOR, **kind, **_placed(floor.pose))
            _bodies(text, tree)
        if contact:
            with text.open("contact"):
                for one, other in sorted(linked_pairs(tree.model).union(apart)):
                    text.leaf("exclude", body1=tree.links[one], body2=tree.links[other])
        with text.open("actuator"):
            _actuators(text, tree.model, gains)
        if sensors:
            with text.open("sensor"):
                _sensors(text, tree.model)
    return text


def _servo_gains(
    model: Model, kp: ArrayLike | None, kd: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """(n,) given gains, or those of `SERVO_RATE` and critical damping."""
    free, names = 6 if model.free_base else 0, list(model.joint_names)
    inertia = np.zeros(len(names))
    if kp is None or kd is None:
        try:
            inertia = 1 / np.diag(np.linalg.inv(model.mass_matrix(model.neutral())))[free:]
        except np.linalg.LinAlgError:
            raise StateError(
                "the mass matrix is singular, so that servos have no default gains: give kp and "
                "kd, or hinges='physical'"
            ) from None
    return (
        SERVO_RATE**2 * inertia if kp is None else per_joint("kp", kp, names, least=0.0),
        2 * SERVO_RATE * inertia if kd is None else per_joint("kd", kd, names, least=0.0),
    )


def _actuators(text: XmlText, model: Model, gains: tuple[np.ndarray, np.ndarray] | None) -> None:
    motors = {motor.joint: motor for motor in motors_of(model)}
    for number, joint in enumerate(model.joint_names):
        motor, limits = motors.get(number), {}
        if gains is not None and motor is None:
            continue  # a spring has no servo
        if motor is not None and motor.effort < UNLIMITED:
            limits = {"forcelimited": "true", "forcerange": (-motor.effort, motor.effort)}
        if gains is None:
            text.leaf("motor", name=joint, joint=joint, **limits)
            continue
        ends = model.lower[number], model.upper[number]
        if np.isfinite(ends).all():
            limits |= {"ctrllimited": "true", "ctrlrange": ends}
        kp, kd = (gain[number] for gain in gains)
        text.leaf("position", name=joint, joint=joint, kp=kp, kv=kd, **limits)


def _sensors(text: XmlText, model: Model) -> None:
    for motor in motors_of(model):
        text.leaf("jointpos", name=f"position:{motor.name}", joint=motor.name)
        text.leaf("jointvel", name=f"velocity:{motor.name}", joint=motor.name)
        text.leaf("actuatorfrc", name=f"effort:{motor.name}", actuator=motor.name)
    for site in imu_sites(model):
        text.leaf("accelerometer", name=f"accelerometer:{site}", site=f"imu:{site}")
        text.leaf("gyro", name=f"gyro:{site}", site=f"imu:{site}")
        text.leaf("framequat", name=f"attitude:{site}", objtype="site", objname=f"imu:{site}")


def imu_sites(model: Model) -> dict[str, tuple[int, np.ndarray]]:
    """Bodies of datasheets with an inertial measurement unit: body of the model, and pose there."""
    organism, found = model.organism, {}
    if organism is None:
        return found
    for module in organism.modules:
        for body in organism.kind(module).bodies:
            if body.imu:
                found[f"{module}.{body.name}"] = body_place(model, organism, module, body.name)
    return found


def linked_pairs(model: Model) -> set[LinkPair]:
    """Pairs of links that share a joint or a module, the lower number first."""
    found = {(int(parent), child + 1) for child, parent in enumerate(model.parent)}
    links: dict[str, set[int]] = {}
    for name, link in zip(model.body_names, model.body_link.tolist(), strict=True):
        links.setdefault(name.partition(".")[0], set()).add(link)
    for shared in links.values():
        found.update(itertools.combinations(sorted(shared), 2))
    return found


def _bodies(text: XmlText, tree: ExportTree) -> None:
    """All links, each inside its parent."""
    model = tree.model
    beyond: list[list[int]] = [[] for _ in tree.links]
    depth = [0]
    for joint, parent in enumerate(model.parent.tolist()):
        beyond[parent].append(joint + 1)
        depth.append(depth[parent] + 1)
    if max(depth) > LONGEST_CHAIN:
        raise StateError(
            f"the longest chain has {max(depth):,} joints; MuJoCo reads up to {LONGEST_CHAIN}. "
            "Choose another base to shorten it, or write URDF"
        )
    imus: dict[int, list[tuple[str, np.ndarray]]] = {}
    for name, (body, T) in imu_sites(model).items():
        imus.setdefault(body, []).append((name, T))
    waiting: list[int | None] = [0]
    while waiting:
        link = waiting.pop()
        if link is None:
            text.close()
            continue
        T = model.base_pose if link == 0 else model.placement[link - 1]
        text.open("body", name=tree.links[link], **_placed(T))
        if link > 0:
            _joint(text, model, link - 1)
        elif model.free_base:
            text.leaf("freejoint", name=f"free:{tree.links[0]}")
        if link > 0 or model.free_base or model.mass[0] > 0:
            _inertial(text, model, link)
        for body in tree.bodies[link]:
            _site(text, tree, body, imus.get(body, ()))
        waiting.append(None)
        waiting.extend(reversed(beyond[link]))


def _joint(text: XmlText, model: Model, joint: int) -> None:
    lower, upper = model.lower[joint], model.upper[joint]
    limits = {}
    if np.isfinite(lower) or np.isfinite(upper):
        limits = {"range": np.clip([lower, upper], -UNLIMITED, UNLIMITED)}
    drive = {"armature": model.armature[joint], "stiffness": model.stiffness[joint]}
    text.leaf(
        "joint",
        name=model.joint_names[joint],
        type="slide" if model.prismatic[joint] else "hinge",
        axis=axis_of(model, joint),
        limited="true" if limits else "false",
        **limits,
        damping=model.viscous[joint],
        frictionloss=model.coulomb[joint],
        **{name: x for name, x in drive.items() if x},
    )


def _inertial(text: XmlText, model: Model, link: int) -> None:
    # principal axes found here: MuJoCo's own search stops at 1e-12
    moments, axes = np.linalg.eigh(model.inertia[link])
    moments = np.maximum(moments, DUST)
    moments[2] = min(moments[2], moments[0] + moments[1])
    axes = axes * np.sign(np.linalg.det(axes))
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = axes, model.center[link]
    mass = max(float(model.mass[link]), DUST)
    text.leaf("inertial", **_placed(T), mass=mass, diaginertia=moments)


def _site(
    text: XmlText, tree: ExportTree, body: int, imus: Sequence[tuple[str, np.ndarray]]
) -> None:
    """A body of the organism: its frame, measurement units and solids."""
    model = tree.model
    T_link_body, name = model.body_placement[body], model.body_names[body]
    text.leaf("site", name=name, **_placed(T_link_body), size="0.001", group="5")
    for imu, T in imus:
        text.leaf("site", name=f"imu:{imu}", **_placed(T_link_body @ T), size="0.001", group="5")
    for k, (T, shape) in enumerate(tree.visuals[body]):
        if isinstance(shape, Mesh):
            continue
        halved = {"box": 0, "cylinder": 1, "sphere": 1}[shape.form]  # a radius comes first
        size = [x if k < halved else x / 2 for k, x in enumerate(shape.size)]
        text.leaf("geom", name=f"{name}:{k}", type=shape.form, size=size,
                  **_placed(T_link_body @ T), rgba=rgba(shape.color))  # fmt: skip


def _placed(T: np.ndarray) -> dict[str, Any]:
    x, y, z, w = so3.to_quaternion(T[:3, :3])
    return {"pos": T[:3, 3], "quat": (w, x, y, z)}
