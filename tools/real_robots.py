"""Read every URDF file below some folders and compare the robots with Pinocchio.

Run by hand: ``python tools/real_robots.py FOLDER ...``, for example on the unpacked wheel of
``example-robot-data``. Each file is read with ``strict=False``. Poses of all links, mass matrix,
gravity torques and inverse dynamics at random states, on a fixed and on a free base, are compared
with Pinocchio, which reads the same file with the repaired inertias put into it; and so is what
`write_urdf` makes of the robot, with ``<ros2_control>``. Limits of effort and velocity are compared
as well. Servos and sensors of `write_mjcf` are loaded by MuJoCo, links of `write_srdf` looked up.
Joints that mimic others are free in both. A line for each robot has the largest differences; the
exit code is 1 if one of them is above its limit.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import mujoco
import numpy as np
import pinocchio as pin

import modurob as mr
from modurob.interop.conventions import UNLIMITED, motors_of, to_name

STATES = 5  # random states of each robot and base
RELATIVE = 1e-10  # of the largest entry of what is compared; poses in m and rad
FASTEST = 1.0  # joint velocities and accelerations are drawn up to here [rad/s, m/s, .../s^2]


class Differences(NamedTuple):
    """Largest differences from Pinocchio, each as a share of the largest entry."""

    poses: float = 0.0
    mass_matrix: float = 0.0
    gravity: float = 0.0
    inverse_dynamics: float = 0.0
    limits: float = 0.0


class Peer:
    """A URDF file in Pinocchio, in the coordinates of our model."""

    def __init__(self, path: Path, model: mr.Model, name_of: Callable[[str], str]) -> None:
        root = [pin.JointModelFreeFlyer()] if model.free_base else []
        self.model = pin.buildModelFromUrdf(str(path), *root)
        self.data, self.free = self.model.createData(), model.free_base
        numbers = {name_of(name): k for k, name in enumerate(self.model.names)}
        moving = [name for k, name in enumerate(map(name_of, self.model.names)) if k > self.free]
        if sorted(moving) != sorted(model.joint_names):
            apart = sorted(set(moving) ^ set(model.joint_names))
            raise RuntimeError(f"{path}: joints move only here or only in Pinocchio: {apart}")
        self.joints = [self.model.joints[numbers[name]] for name in model.joint_names]
        base = list(range(6 if self.free else 0))
        self.columns = np.array([*base, *(joint.idx_v for joint in self.joints)], dtype=int)
        self.frames = {
            name_of(frame.name): k
            for k, frame in enumerate(self.model.frames)
            if frame.type == pin.FrameType.BODY
        }

    def q(self, q: np.ndarray) -> np.ndarray:
        theirs, offset = pin.neutral(self.model), 7 if self.free else 0
        theirs[:offset] = q[:offset]
        for joint, value in zip(self.joints, q[offset:], strict=True):
            # a continuous joint is a point on the circle there
            entries = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
            theirs[joint.idx_q : joint.idx_q + joint.nq] = entries
        return theirs

    def v(self, v: np.ndarray) -> np.ndarray:
        theirs = np.zeros(self.model.nv)
        theirs[self.columns] = v
        return theirs


def as_read(name: str) -> str:
    """A name of a file as `read_urdf` gives it to the only module of an organism."""
    return f"m0.{to_name(name)}"


def compare(
    path: Path, model: mr.Model, name_of: Callable[[str], str], rng: np.random.Generator
) -> Differences:
    """The largest differences between a model and a file in Pinocchio, at random states."""
    peer, worst = Peer(path, model, name_of), Differences()
    worst = worst._replace(limits=limit_difference(peer, model))
    for _ in range(STATES):
        q = model.random_configuration(rng)
        v, a = rng.uniform(-FASTEST, FASTEST, (2, model.nv))
        theirs, columns = peer.q(q), peer.columns
        pin.framesForwardKinematics(peer.model, peer.data, theirs)
        poses = model.forward_kinematics(q)
        M = pin.crba(peer.model, peer.data, theirs)
        M = (np.triu(M) + np.triu(M, 1).T)[np.ix_(columns, columns)]
        gravity = pin.computeGeneralizedGravity(peer.model, peer.data, theirs)[columns]
        tau = pin.rnea(peer.model, peer.data, theirs, peer.v(v), peer.v(a))[columns]
        found = Differences(
            max(
                _share(poses[model.body_index(n)], peer.data.oMf[peer.frames[n]].homogeneous)
                for n in model.body_names
            ),
            _share(model.mass_matrix(q), M),
            _share(model.gravity_torque(q), gravity, np.sum(model.mass)),
            _share(model.inverse_dynamics(q, v, a), tau, np.sum(model.mass)),
        )
        worst = Differences(*map(max, worst, found))
    return worst


def limit_difference(peer: Peer, model: mr.Model) -> float:
    """Largest difference of limits of effort and velocity; 0 and 1e9 are none there."""
    joints, worst = peer.columns[6 if peer.free else 0 :], 0.0
    motors = motors_of(model)
    for limits, name in (
        (peer.model.effortLimit, "effort"),
        (peer.model.velocityLimit, "velocity"),
    ):
        theirs = np.where(
            np.abs(limits[joints] - UNLIMITED / 2) < UNLIMITED / 2, limits[joints], 0.0
        )
        ours = np.array([getattr(motor, name) for motor in motors])
        worst = max(worst, _share(np.where(ours < UNLIMITED, ours, 0.0), theirs))
    return worst


def check_other_files(organism: mr.Organism, folder: Path) -> None:
    """Load servos and sensors in MuJoCo, and look up the links of an SRDF in the URDF."""
    model, mjcf, srdf = organism.model(), folder / "it.xml", folder / "it.srdf"
    mr.interop.write_mjcf(organism, mjcf, actuators="position", kp=1.0, kd=0.1, sensors=True)
    peer = mujoco.MjModel.from_xml_path(str(mjcf))
    wanted = [motor.effort if motor.effort < UNLIMITED else 0.0 for motor in motors_of(model)]
    if peer.nsensor != 3 * model.nv or not np.array_equal(peer.actuator_forcerange[:, 1], wanted):
        raise RuntimeError(f"{organism.base}: MuJoCo has other sensors or limits of motors")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mr.interop.LossWarning)  # meshes
        mr.interop.write_srdf(organism, srdf, samples=100)
    pairs = ElementTree.parse(srdf).getroot().findall("disable_collisions")
    unknown = {pair.get(key) for pair in pairs for key in ("link1", "link2")} - {*model.body_names}
    if unknown:
        raise RuntimeError(f"links of the SRDF that the robot has not: {sorted(unknown)}")


def _share(ours: np.ndarray, theirs: np.ndarray, least: float = 0.0) -> float:
    """Largest difference over the largest entry, or over `least`: balanced torques are rounding."""
    largest = max(np.abs(theirs).max(initial=0.0), least)
    return float(np.abs(ours - theirs).max(initial=0.0) / (largest or 1.0))


def with_inertias(path: Path, kind: mr.ModuleType, target: Path) -> None:
    """Write the file again with the masses and inertias that were read."""
    document = ElementTree.parse(path)
    bodies = {body.name: body for body in kind.bodies}
    for link in document.getroot().findall("link"):
        for old in link.findall("inertial"):
            link.remove(old)
        body = bodies[to_name(link.get("name", ""))]
        if body.mass == 0:
            continue
        inertial = ElementTree.SubElement(link, "inertial")
        center = " ".join(map(repr, body.center_of_mass))
        ElementTree.SubElement(inertial, "origin", xyz=center, rpy="0 0 0")
        ElementTree.SubElement(inertial, "mass", value=repr(body.mass))
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = (map(repr, row) for row in body.inertia)
        ElementTree.SubElement(inertial, "inertia", ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)
    document.write(target)


def check(path: Path, rng: np.random.Generator) -> tuple[int, dict[str, Differences]]:
    """Number of repairs of a robot, and its differences by what was compared.

    Of a file that Pinocchio refuses, only what was written again is compared.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kind = mr.interop.read_urdf(path, strict=False)
    inertias = any("inertia" in str(w.message) or " kg" in str(w.message) for w in caught)
    organism = mr.Organism.start(kind.with_parameters(viscous=0, coulomb=0))
    found: dict[str, Differences] = {}
    with tempfile.TemporaryDirectory() as folder:
        same, written = Path(folder) / "same.urdf", Path(folder) / "written.urdf"
        with_inertias(path, kind, same)
        for base in ("fixed", "free"):
            model = organism.model(base=base)
            for what, file in [*[("file", path)][inertias:], ("file with our inertias", same)]:
                with contextlib.suppress(ValueError):  # refused by Pinocchio
                    found[f"{base}, {what}"] = compare(file, model, as_read, rng)
            mr.interop.write_urdf(organism, written, base=base, ros2_control="position")
            found[f"{base}, written"] = compare(written, model, str, rng)
            again = mr.Organism.start(mr.interop.read_urdf(written)).model(base=base)
            found[f"{base}, written and read"] = compare(written, again, as_read, rng)
        if organism.model().nv:
            check_other_files(organism, Path(folder))
    return len(caught), found


def main() -> int:
    """Check all files; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    files = sorted(f for folder in parser.parse_args().folders for f in folder.rglob("*.urdf"))
    rng, loaded, right = np.random.default_rng(0), 0, 0
    for path in files:
        try:
            repairs, found = check(path, rng)
        except mr.ModurobError as error:
            print(f"REFUSED {error}")
            continue
        except RuntimeError as error:
            loaded += 1
            print(f"DIFFERS {error}")
            continue
        loaded += 1
        worst = max(found, key=lambda what: max(found[what]))
        fine = max(found[worst]) <= RELATIVE
        right += fine
        total = Differences(*map(max, *found.values()))
        shares = ", ".join(f"{k} {x:.1e}" for k, x in total._asdict().items())
        verdict = "same" if fine else f"DIFFERS ({worst})"
        print(f"{verdict} {path.name}: {repairs} repairs; {shares}", flush=True)
    print(f"{loaded} of {len(files)} files read, {right} of them as in Pinocchio")
    return int(right < loaded)


if __name__ == "__main__":
    sys.exit(main())
