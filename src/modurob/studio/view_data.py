"""Organisms as the browser draws them: solids on bodies, poses, axes, free ports, cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from modurob import Model, ModuleType, Organism
from modurob.spatial import se3
from modurob.studio.edits import CACHED, Site, heading

DIGITS = 6  # micrometers
REACH = {True: 0.2, False: float(np.pi)}  # slider ends where a joint has no limit [m, rad]
SHOWN = {True: 1000.0, False: 180 / float(np.pi)}  # velocities in mm/s and deg/s
LABELS = {
    "superbot_light": "SuperBot, light",
    "chen_link": "Link, small",
    "chen_link_large": "Link, large",
    "chen_revolute": "Revolute joint",
    "chen_prismatic": "Prismatic joint",
    "giusti_a": "Arm a, bends",
    "giusti_b": "Arm b, twists",
    "giusti_c": "Arm c, slides",
}  # of kinds whose titles are long
BEYOND = 0.75  # half length of a joint's axis, over the module's size


def pose(T: np.ndarray) -> list[Any]:
    """(..., 7) positions and quaternions (x, y, z, w) of frames."""
    return (se3.to_position_and_quaternion(T).round(DIGITS) + 0.0).tolist()


def poses(model: Model, q: np.ndarray) -> list[list[float]]:
    """One pose for each body."""
    return pose(model.forward_kinematics(q))


@lru_cache(maxsize=CACHED)
def kind_data(kind: ModuleType) -> dict[str, Any]:
    """A kind on its own, joints at zero: for the palette and for ghosts."""
    return {
        "name": kind.name,
        "symbol": kind.symbol,
        "color": main_color(kind),
        "size": kind.size,
        "grid": kind.grid,
        "solids": [solid | {"body": 0} for _, solid in _solids(kind, True)],
        "ports": {str(label): pose(kind.port_pose(label)) for label in kind.docks},
        "sides": {str(label): heading(kind, label) for label in kind.docks} if kind.grid else {},
    }


def label(kind: ModuleType) -> str:
    """A short name of a kind, for people."""
    return LABELS.get(kind.name) or kind.title.partition(" (")[0] or kind.name


def port_name(port: int | str) -> str:
    """A port in words: sides have numbers, other ports names."""
    return f"port {port}" if isinstance(port, str) else f"side {port}"


def main_color(kind: ModuleType) -> str:
    """The color that says which kind it is."""
    return kind.shapes[0].color if kind.shapes else "#8aa0b8"


def scene_data(organism: Organism, model: Model) -> dict[str, Any]:
    """Everything that can be drawn of a body in motion, fixed to its bodies."""
    modules, solids = [], []
    shapes: dict[tuple[int, bool], Any] = {}  # hashing datasheets costs more
    for index, name in enumerate(organism.modules):
        kind = organism.kind(name)
        about = {"name": name, "kind": kind.name, "base": name == organism.base}
        modules.append({**about, "body": model.modules[name], "size": kind.size})
        as_one = model.is_merged(name)
        key = (id(kind), as_one)
        if key not in shapes:
            shapes[key] = _solids(kind, as_one)
        for body, solid in shapes[key]:
            where = model.body_index(name if as_one else f"{name}.{body}")
            solids.append({**solid, "body": where, "module": index})
    return {
        "bodies": list(model.body_names),
        "modules": modules,
        "solids": solids,
        "joints": list(_joints(organism, model)),
    }


def sliders(
    model: Model, values: Mapping[str, float], rates: Mapping[str, float] = MappingProxyType({})
) -> list[dict[str, Any]]:
    """One for each joint, within its limits. [rad, m; rates as shown]"""
    found = []
    for k, (name, ends) in enumerate(zip(model.joint_names, _limits(model), strict=True)):
        slides = bool(model.prismatic[k])
        found.append(
            {
                "name": name, "module": name.partition(".")[0], "slides": slides,
                "lower": ends[0], "upper": ends[1], "value": values.get(name, 0.0),
                "rate": round(rates.get(name, 0.0) * SHOWN[slides], 6),
            }
        )  # fmt: skip
    return found


def _limits(model: Model) -> list[list[float]]:
    """Limits of each joint; where it has none, the ends of its slider. [rad, m]"""
    reach = np.where(model.prismatic, REACH[True], REACH[False])
    low = np.where(np.isfinite(model.lower), model.lower, -reach)
    return np.stack([low, np.where(np.isfinite(model.upper), model.upper, reach)], 1).tolist()


def ports(organism: Organism, model: Model, found: Iterable[Site]) -> list[dict[str, Any]]:
    """The free ports, fixed to bodies, with what the chosen kind would do there."""
    shown = []
    places: dict[tuple[int, int | str, bool], tuple[str, list[float]]] = {}  # as `shapes` above
    for module, label, child_port, turn, why in found:
        kind, as_one = organism.kind(module), model.is_merged(module)
        key = (id(kind), label, as_one)
        if key not in places:
            places[key] = _port(kind, label, as_one)
        body, place = places[key]
        where = model.body_index(module if as_one else f"{module}.{body}")
        shown.append(
            {
                "module": module, "port": label, "child_port": child_port, "turn": turn,
                "why": why, "body": where, "pose": place, "size": kind.size,
            }
        )  # fmt: skip
    return shown


def port_place(organism: Organism, model: Model, module: str, label: int | str) -> dict[str, Any]:
    """The body that a port is fixed to, and its pose there."""
    as_one = model.is_merged(module)
    body, place = _port(organism.kind(module), label, as_one)
    return {"body": model.body_index(module if as_one else f"{module}.{body}"), "pose": place}


def plan(organism: Organism, found: Iterable[Site]) -> dict[str, Any]:
    """The cubes in the plane of the base, seen from above, and where more could dock."""
    grid = _grid_of(organism)
    cells, links = [], []
    looks: dict[tuple[int, int], dict[str, Any]] = {}  # as `shapes` above
    for name in organism.modules:
        place, kind = organism.place(name), organism.kind(name)
        if place is None or place.grid != grid:
            continue
        key = (id(kind), place.quarter)
        if key not in looks:
            looks[key] = _seen_from_above(kind, place.quarter)
        cells.append(
            {"name": name, "base": name == organism.base, "x": place.x, "y": place.y, **looks[key]}
        )
    shown = {cell["name"]: cell for cell in cells}
    for entry in organism.dockings:
        if entry.parent in shown and entry.child in shown:
            a, b = shown[entry.parent], shown[entry.child]
            middle = {axis: (a[axis] + b[axis]) / 2 for axis in "xy"}
            ends = {"parent": entry.parent, "child": entry.child}
            links.append({**ends, "name": organism.dyad(entry).name, **middle})
    return {
        "cells": cells,
        "links": links,
        "sites": [site._asdict() for site in found if site.module in shown],
        "hidden": len(organism) - len(cells),
    }


def _seen_from_above(kind: ModuleType, quarter: int) -> dict[str, Any]:
    """A cube that is turned by so many quarter turns."""
    sides = [
        {"port": label, "heading": (heading(kind, label) + quarter) % 4} for label in kind.docks
    ]
    about = {"kind": kind.name, "symbol": kind.symbol, "color": main_color(kind)}
    return {**about, "hinge": _hinge(kind, quarter), "quarter": quarter, "sides": sides}


def tree(organism: Organism, kind: ModuleType, found: Iterable[Site]) -> dict[str, Any]:
    """The modules from the base outward, each after its parent, and the free ports of each."""
    modules: list[dict[str, Any]] = []
    waiting = [(organism.base, 0)]
    while waiting:
        name, depth = waiting.pop()
        own, held = organism.kind(name), organism.docking(name)
        row = {"name": name, "depth": depth, "kind": label(own), "symbol": own.symbol}
        row |= {"color": main_color(own), "base": held is None, "parent": None, "via": ""}
        if held is not None:
            row |= {"parent": held.parent, "held": held.port}
            row["via"] = f"{port_name(held.child_port)} to {held.port}"
        modules.append(row)
        waiting += [(child, depth + 1) for child in reversed(organism.children(name))]
    sites: dict[str, list[dict[str, Any]]] = {}
    for site in found:
        port = {"label": site.port, "port": port_name(site.port), "why": site.why}
        sites.setdefault(site.module, []).append(port)
    # an arm is built upward: its base stands on the port "in"
    sites.get(organism.base, []).sort(key=lambda port: port["label"] == "in")
    return {"modules": modules, "sites": sites, "kind": label(kind)}


def on_grid(organism: Organism) -> bool:
    """True if the plan shows a module."""
    return _grid_of(organism) is not None


def _grid_of(organism: Organism) -> str | None:
    """The plane to show: that of the base, or the first there is."""
    for name in organism.modules:
        place = organism.place(name)
        if place is not None:
            return place.grid
    return None


def _hinge(kind: ModuleType, quarter: int) -> int | None:
    """Direction of the hinge: across (0) or along (1) the plan; None for upright."""
    screw = kind.dyad_screw
    if screw is None or abs(screw[5]) > 0.5:
        return None
    return (int(abs(screw[4]) > 0.5) + quarter) % 2


@lru_cache(maxsize=CACHED)
def _solids(kind: ModuleType, as_one: bool) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The shapes of a kind, each with the body it is fixed to; or with the module's frame."""
    found = []
    for shape in kind.shapes:
        T = kind.rest_poses[kind.body_index(shape.body)] if as_one else np.eye(4)
        solid = {"form": shape.form, "size": list(shape.size), "color": shape.color}
        found.append((shape.body, {**solid, "pose": pose(T @ shape.pose)}))
    return tuple(found)


@lru_cache(maxsize=CACHED)
def _port(kind: ModuleType, label: int | str, as_one: bool) -> tuple[str, list[float]]:
    """A port's body, and its pose there or in the module's frame."""
    port = kind.port(label)
    return port.body, pose(kind.port_pose(label) if as_one else port.pose)


def _joints(organism: Organism, model: Model) -> Iterable[dict[str, Any]]:
    """The axes, fixed to a body that the joint moves."""
    first = {int(link): body for body, link in reversed([*enumerate(model.body_link)])}
    bodies = [first.get(k + 1, 0) for k in range(len(model.joint_names))]
    R = np.swapaxes(model.body_placement[bodies, :3, :3], -1, -2)
    v, w = model.screw[:, :3], model.screw[:, 3:]
    through = np.where(model.prismatic[:, None], 0.0, np.cross(w, v))
    through = (R @ (through - model.body_placement[bodies, :3, 3])[..., None])[..., 0]
    along = (R @ np.where(model.prismatic[:, None], v, w)[..., None])[..., 0]
    points, directions = through.round(DIGITS).tolist(), along.round(DIGITS).tolist()
    limits = _limits(model)
    for k, joint in enumerate(model.joint_names):
        owner = joint.partition(".")[0]
        size = organism.kind(owner).size if owner in organism else 0.1
        yield {
            "name": joint,
            "module": owner if owner in organism else organism.base,
            "body": bodies[k],
            "point": points[k],
            "direction": directions[k],
            "half": BEYOND * size,
            "slides": bool(model.prismatic[k]),
            "lower": limits[k][0],
            "upper": limits[k][1],
        }
