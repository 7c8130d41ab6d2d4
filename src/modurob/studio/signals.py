"""The lines of the plots: quantities of a trajectory, with names, units and bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob import ConnectorLoads, Ground, ModurobError, Trajectory, connector_loads
from modurob.distributed.balancing.support import support_polygon
from modurob.scenario.scenario import KNOWN, SENT, Mark, RunResult
from modurob.sim import BodyTrajectory
from modurob.sim.output.export import columns
from modurob.stepping.ground import corner_depths
from modurob.studio import view_data
from modurob.verification import lagrange

MOST_POINTS = 1500  # of a line
MOST_LINES = 60  # of a panel: joints beyond are left out, and the panel says so
MOST_FORCES = 20_000  # arrows of a run; of large bodies fewer moments have them
TINY = 1e-9
LOAD = "load"  # key of the colors by loads on connectors
DIGITS = 7
SIGMAS = 3.0  # half width of the band around an estimate
TITLES = {
    "q": "Position", "v": "Velocity", "a": "Acceleration", "tau": "Torque",
}  # fmt: skip


def run_data(
    result: RunResult, loads: Sequence[ConnectorLoads] = (), free: bool = False
) -> dict[str, Any]:
    """All that is drawn of a run besides its poses; arguments as of `tints` and `panels`."""
    run = result.trajectory
    return {
        "casts": [view_data.scene_data(part.organism, part.model) for part in run.parts],  # pyright: ignore[reportArgumentType]
        "panels": panels(run, result.reference, free),
        "mass": center_of_mass(run),
        "tints": tints(run, loads),
        "ground": ground(result),
        "events": [mark._asdict() for mark in (*result.marks, *overloads(loads))],
    }


def panels(
    trajectory: Trajectory, reference: Callable[[float], Any] | None, free: bool = False
) -> list[Any]:
    """One for each quantity: ``key, title, unit, lines``; a line has ``name, joint, t, y``.

    Lines with ``low`` and ``high`` have a band, those with ``dashed`` are to be compared with.

    Args:
        free: Whether only gravity moved the body, so that Lagrange's equations hold.
    """
    found = [_joints(trajectory, key) for key in TITLES]
    if free:
        _add_lagrange(trajectory, found)
    found.append(_energy(trajectory))
    found += [_error(trajectory, reference), _estimate(trajectory), _distance(trajectory)]
    errors = _module_lines(trajectory, KNOWN, lambda part, values: values)
    found.append(_panel(KNOWN, "Center of mass as modules estimate it: error", "m", errors))
    sent = _module_lines(trajectory, SENT, _rate)
    found.append(_panel(SENT, "Messages that modules send", "1/s", sent))
    return [panel for panel in found if panel["lines"]]


def center_of_mass(trajectory: Trajectory) -> dict[str, Any] | None:
    """Its way, of everything that hangs together with the first base."""
    parts = [p for p in trajectory.parts if p.name == trajectory.parts[0].name]
    if not all(p.model.mass.sum() > 0 for p in parts):
        return None
    t = np.concatenate([p.t for p in parts])
    xyz = np.concatenate([p.model.center_of_mass(p.q) for p in parts])
    kept = np.concatenate([chosen(len(t))])
    return {"t": _plain(t[kept]), "xyz": [_plain(row) for row in xyz[kept]]}


def tints(trajectory: Trajectory, loads: Sequence[ConnectorLoads] = ()) -> list[dict[str, Any]]:
    """Colors for modules: ``key, title, unit, most, t, modules, levels`` (0 to 1, of `most`).

    One that is ``quiet`` is not shown until it is chosen.
    """
    part = trajectory.parts[0]
    if part.organism is None:
        return []
    found, modules = [], part.organism.modules
    if KNOWN in part.channels:
        width = part.organism.kind(part.organism.base).size
        error = np.nan_to_num(part.channels[KNOWN], nan=width)
        title = "Error of the center of mass"
        found.append(_tint(KNOWN, title, "m", part.t, modules, error, width))
    if SENT in part.channels:
        rate = _rate(part, part.channels[SENT])
        most = float(rate.max())
        found.append(_tint(SENT, "Messages sent", "1/s", part.t, modules, rate, most))
    return found + [_load_tint(each) for each in loads[:1] if each.dockings]


def part_loads(trajectory: Trajectory) -> list[ConnectorLoads]:
    """Loads on the connectors of each part of a run; none where its masses are not the modules'."""
    try:
        return [connector_loads(part) for part in trajectory.parts]
    except ModurobError:  # a payload, or masses that differ from the datasheets
        return []


def overloads(loads: Sequence[ConnectorLoads]) -> list[Mark]:
    """The moments from which on connectors are loaded beyond their limits."""
    found = [each for part in loads for each in part.breaks()]
    return [Mark(each.time, f"overload {each.docking}") for each in found]


def _load_tint(found: ConnectorLoads) -> dict[str, Any]:
    """Load on the connector by which a module is docked, of its limit; the base has none.

    Where no datasheet has a limit, it is the torque.
    """
    torque = found.magnitudes[..., 1]
    limited = np.flatnonzero(~np.isnan(found.utilization[0]))
    title, unit, values, most = "Torque on connectors", "N m", torque, float(torque.max())
    if len(limited):
        title, unit, values, most = "Load on connectors", "% of the limit", found.utilization, 100.0
        values = 100 * values[:, limited]
    chosen = limited if len(limited) else range(len(found.dockings))
    modules = [found.dockings[k].child for k in chosen]
    return {**_tint(LOAD, title, unit, found.t, modules, values, most), "quiet": not len(limited)}


def _tint(
    key: str,
    title: str,
    unit: str,
    t: np.ndarray,
    modules: Sequence[str],
    values: np.ndarray,
    most: float,
) -> dict[str, Any]:
    rows = chosen(len(t))
    levels = (values[rows] / most if most > 0 else np.zeros_like(values[rows])).clip(0.0, 1.0)
    return {
        "key": key,
        "title": title,
        "unit": unit,
        "most": float(f"{most:.3g}"),
        "t": _plain(t[rows]),
        "modules": list(modules),
        "levels": levels.round(3).tolist(),
    }


def ground(result: RunResult) -> dict[str, Any] | None:
    """The ground of a run, and what it does: ``slope, height, weight, parts``.

    A part has times, forces ``[x, y, z, fx, fy, fz]`` of the bodies that touch, the corners of the
    support polygon, and whether the center of mass is above it. [m], [N]
    """
    found = result.ground
    if found is None:
        return None
    run = result.trajectory
    model = run.parts[0].model
    return {
        "slope": list(found.slope),
        "height": float(np.asarray(found.height)),
        "weight": float(model.mass.sum() * np.linalg.norm(model.gravity)),
        "parts": [_contacts(part, found) for part in run.parts],
    }


def _contacts(part: BodyTrajectory, ground: Ground) -> dict[str, Any]:
    assert part.organism is not None  # what touches are its shapes
    rows = chosen(len(part.t), max(2, MOST_FORCES // part.model.nbodies))
    forces = part.channels["contact"][rows]
    bodies, places, depths = corner_depths(ground, part.organism, part.model, part.q[rows])
    centers = part.model.center_of_mass(part.q[rows])[:, :2]
    shown: list[Any] = []
    support: list[Any] = []
    inside: list[bool] = []
    for force, place, depth, center in zip(forces, places, depths, centers, strict=True):
        touching = np.flatnonzero(depth > 0)
        region = support_polygon(place[touching]) if len(touching) else None
        support.append([] if region is None else [_plain(corner) for corner in region.corners])
        inside.append(region is not None and region.contains(center))
        shown.append([])
        for body in np.flatnonzero(force.any(axis=1)).tolist():
            own = np.flatnonzero(bodies == body)
            # the deepest corner counts in any case: bristles hold a little above the ground
            share = np.maximum(depth[own], TINY * (depth[own] == depth[own].max()))
            shown[-1].append(_plain([*(share @ place[own] / share.sum()), *force[body]]))
    return {"t": _plain(part.t[rows]), "forces": shown, "support": support, "inside": inside}


def _rate(part: BodyTrajectory, counts: np.ndarray) -> np.ndarray:
    """(N, modules) rate of counts. [1/s]"""
    return np.gradient(counts.astype(float), part.t, axis=0)


def _module_lines(
    trajectory: Trajectory, channel: str, of: Callable[[BodyTrajectory, np.ndarray], np.ndarray]
) -> list[Any]:
    """A line for each module, of something made of a channel (N, modules)."""
    return [
        _line(part, name, y)
        for part in trajectory.parts
        if channel in part.channels and part.organism is not None
        for name, y in zip(part.organism.modules, of(part, part.channels[channel]).T, strict=True)
    ]


def chosen(count: int, most: int = MOST_POINTS) -> np.ndarray:
    """Rows to draw: all, or evenly spread ones."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(int))


def _plain(values: ArrayLike) -> list[float]:
    return [float(f"{x:.{DIGITS}g}") for x in np.asarray(values, dtype=float)]


def _line(part: BodyTrajectory, name: str, y: np.ndarray, **more: Any) -> dict[str, Any]:
    rows = chosen(len(part.t))
    bands = {key: _plain(np.asarray(more.pop(key))[rows]) for key in ("low", "high") if key in more}
    return {"name": name, "t": _plain(part.t[rows]), "y": _plain(y[rows]), **bands, **more}


def _panel(key: str, title: str, unit: str, lines: list[Any]) -> dict[str, Any]:
    left = max(0, len(lines) - MOST_LINES)
    return {"key": key, "title": title, "unit": unit, "lines": lines[:MOST_LINES], "left_out": left}


def _joints(trajectory: Trajectory, key: str) -> dict[str, Any]:
    lines = []
    for part in trajectory.parts:
        values = getattr(part, key)
        skip = values.shape[-1] - len(part.model.joint_names)
        if key == "tau" and not np.any(values):
            continue
        for k, joint in enumerate(part.model.joint_names):
            lines.append(_line(part, joint, values[:, skip + k], joint=joint))
    return _panel(key, TITLES[key], _units(trajectory, key), lines)


def _add_lagrange(trajectory: Trajectory, panels: list[Any]) -> None:
    """Add the solution of Lagrange's equations, where the literature has those of the body."""
    part = trajectory.parts[0]
    if len(trajectory.parts) > 1 or part.organism is None:
        return
    equations = lagrange.printed(part.organism, part.model)
    if equations is None:
        return
    solution = equations.solution(part.q[0], part.v[0], part.t)
    for panel, values in zip(panels, solution, strict=False):  # positions, velocities, ...
        panel["lines"] += [
            _line(part, f"{joint} (Lagrange)", y, joint=joint, dashed=True)
            for joint, y in zip(part.model.joint_names, values.T, strict=True)
        ]


def _units(trajectory: Trajectory, key: str) -> str:
    """Of a quantity of the joints: that of turning ones, of sliding ones, or both."""
    found: dict[str, None] = {}
    for part in trajectory.parts:
        heads = columns(part.model, key)
        joints = heads[len(heads) - len(part.model.joint_names) :]
        found |= dict.fromkeys(head.unit for head in joints)
    return " or ".join(found)


def _energy(trajectory: Trajectory) -> dict[str, Any]:
    lines = []
    for part in trajectory.parts:
        who = f" of {part.name}" if len(trajectory.parts) > 1 else ""
        lines.append(_line(part, f"kinetic{who}", part.kinetic_energy))
        lines.append(_line(part, f"potential{who}", part.potential_energy))
        lines.append(_line(part, f"sum{who}", part.energy))
    return _panel("energy", "Energy", "J", lines)


def _error(trajectory: Trajectory, reference: Any) -> dict[str, Any]:
    """Position minus reference, of the joints that were there from the start; or set point."""
    lines: list[Any] = [
        _line(part, joint, part.q[:, k] - part.channels["set_point"][:, k], joint=joint)
        for part in trajectory.parts
        if "set_point" in part.channels
        for k, joint in enumerate(part.model.joint_names)
    ]
    if reference is not None:
        first = trajectory.parts[0].model.joint_names
        for part in trajectory.parts:
            wanted = np.array([np.asarray(reference(t).q) for t in part.t.tolist()])
            joints = part.q[..., part.model.joint_slice_q]
            for k, joint in enumerate(part.model.joint_names):
                if joint in first:
                    error = joints[:, k] - wanted[:, first.index(joint)]
                    lines.append(_line(part, joint, error, joint=joint))
    return _panel("error", "Tracking error", _units(trajectory, "q"), lines)


def _estimate(trajectory: Trajectory) -> dict[str, Any]:
    """Estimation error with its 3-sigma band: truth lies at zero."""
    lines = []
    for part in trajectory.parts:
        if "estimate_q" not in part.channels or part.model.free_base:
            continue
        estimate, sigma = part.channels["estimate_q"], part.channels["sigma"]
        for k, joint in enumerate(part.model.joint_names):
            band = SIGMAS * sigma[:, k]
            error = estimate[:, k] - part.q[:, k]
            lines.append(_line(part, joint, error, joint=joint, low=-band, high=band))
    return _panel("estimate", "Estimate minus truth, 3σ band", _units(trajectory, "q"), lines)


def _distance(trajectory: Trajectory) -> dict[str, Any]:
    """Horizontal distance of the center of mass from the base."""
    lines = []
    for part in trajectory.parts:
        if part.organism is None or not part.model.mass.sum() > 0:
            continue
        mass = part.model.center_of_mass(part.q)
        body = part.model.modules[part.organism.base]
        base = part.model.forward_kinematics(part.q)[:, body, :3, 3]
        apart = np.linalg.norm((mass - base)[:, :2], axis=-1)
        lines.append(_line(part, f"of {part.name}" if part.name else "distance", apart))
    return _panel("mass", "Center of mass: horizontal distance from the base", "m", lines)
