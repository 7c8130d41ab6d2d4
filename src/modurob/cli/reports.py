"""Reports of a free or guided motion, and of modules that balance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from rich.text import Text

from modurob import ConnectorLoads, Scenario, StateError, Trajectory, connector_loads
from modurob.cli import output
from modurob.scenario.scenario import RunResult, largest_difference
from modurob.scenario.settings import NONE
from modurob.walking.runs import measured


class MotionReport:
    """Last positions, largest speeds, errors from the motion, and energy of a run."""

    def __init__(self, scenario: Scenario, result: RunResult) -> None:
        self.scenario, self.run, self.reference = scenario, result.trajectory, result.reference
        self.note = result.note
        self.end = max(float(part.t[-1]) for part in self.run.parts)
        self.last = [part for part in self.run.parts if part.t[-1] == self.end]
        self.numeric = None  # the same run by the recursions, where this one is by formulas
        if scenario.analytic:
            self.numeric = scenario.edited(analytic=False).run().trajectory

    def data(self) -> dict[str, Any]:
        """Numbers for machines."""
        rows = [row for part in self.last for row in _joint_rows(part)]
        return {
            "title": self.scenario.name,
            "integrator": self.run.integrator,
            "seconds": self.end,
            "steps": sum(len(part.t) - 1 for part in self.run.parts),
            "joints": [joint for joint, _, _ in rows],
            "last_position": [place for _, place, _ in rows],
            "largest_speed": [speed for _, _, speed in rows],
            "rms_error": self._errors(),
            "energy": [
                float(self.run.parts[0].energy[0]),
                float(sum(part.energy[-1] for part in self.last)),
            ],
            **({"note": self.note} if self.note else {}),
            **({} if self.numeric is None else {"difference_of_numbers": self._difference()}),
        }

    def _difference(self) -> float:
        """Largest difference of positions between formulas and recursions. [rad, m]"""
        assert self.numeric is not None
        return largest_difference(self.run, self.numeric)

    def _errors(self) -> list[float] | None:
        """RMS distances of the joints of one body from their motion; None without one. [rad, m]"""
        if self.reference is None or len(self.run.parts) > 1:
            return None
        wanted = np.array([self.reference(t).q for t in self.run.t.tolist()])
        errors = self.run.q[:, self.run.model.joint_slice_q] - wanted
        return np.sqrt(np.mean(errors**2, axis=0)).tolist()

    def print(self) -> None:
        """One screen for people."""
        facts, console = self.data(), output.console()
        columns = {
            "position at the end": [f"{x:+.4f}" for x in facts["last_position"]],
            "largest speed": [f"{x:.4f}" for x in facts["largest_speed"]],
        }
        if facts["rms_error"] is not None:
            columns["RMS error"] = [f"{x:.2e}" for x in facts["rms_error"]]
        table = output.plain_table("joint", *columns)
        for row in zip(facts["joints"], *columns.values(), strict=True):
            table.add_row(*row)
        output.print_table(console, f"{facts['title']} after {facts['seconds']:g} s", table)
        begin, end = facts["energy"]
        console.print(
            f"{facts['steps']} steps of {facts['integrator']}; energy {begin:.6g} J at the start, "
            f"{end:.6g} J at the end",
            soft_wrap=True,
        )
        if self.note:
            console.print(self.note, soft_wrap=True)
        if self.numeric is not None:
            console.print(
                f"by formulas; the recursions differ by {facts['difference_of_numbers']:.2g} rad, m"
            )

    def plot(self, path: str) -> None:
        """Positions, velocities, and torques or energy."""
        third = "energy" if self.scenario.controller == "none" else "tau"
        self.run.plot("q", "v", third, path=path, title=self.scenario.name, overlay=self.numeric)


def _joint_rows(part: Any) -> list[tuple[str, float, float]]:
    """Name, last position and largest speed of each joint."""
    names = part.model.joint_names
    places = part.q[-1, part.model.joint_slice_q]
    speeds = np.abs(part.v[:, part.model.nv - len(names) :]).max(axis=0, initial=0.0)
    return list(zip(names, places.tolist(), speeds.tolist(), strict=True))


def loads_of(scenario: Scenario, run: Trajectory, asked: bool) -> list[ConnectorLoads]:
    """Loads on the connectors of each body of a run, where they are asked for or have limits."""
    kinds = map(scenario.organism.kind, scenario.organism.modules)
    limits = [(port.max_force, port.max_torque) for kind in kinds for port in kind.ports]
    if not asked and not (_has_own_masses(scenario) and set(limits) - {(None, None)}):
        return []
    return [connector_loads(part) for part in run.parts]


def check_loads(scenario: Scenario) -> None:
    """Refuse --loads before a run whose loads are not known."""
    if not _has_own_masses(scenario):
        raise StateError(
            "--loads needs the mass of each module, and --masses and --payload make other masses "
            "than the datasheets': leave them out, or change the datasheets"
        )


def _has_own_masses(scenario: Scenario) -> bool:
    """True if the plant has the masses of the datasheets."""
    return scenario.payload is None and scenario.masses == 1


def load_data(loads: ConnectorLoads) -> dict[str, Any]:
    """Largest loads for machines."""
    peaks = loads.magnitudes.max(axis=0)
    used = loads.utilization.max(axis=0)
    return {
        "dockings": loads.names,
        "largest_force": peaks[:, 0].tolist(),
        "largest_torque": peaks[:, 1].tolist(),
        "utilization": [None if np.isnan(x) else x for x in used.tolist()],
        "breaks": [entry._asdict() for entry in loads.breaks()],
    }


class BalanceReport:
    """Distance of the center of mass from its target, and the messages it took."""

    def __init__(self, scenario: Scenario, result: RunResult) -> None:
        assert result.balanced is not None
        self.scenario, self.run = scenario, result.balanced

    def data(self) -> dict[str, Any]:
        """Numbers for machines."""
        run = self.run
        errors = 1e3 * run.estimate_errors
        worst = np.nanmax(errors[-1]) if np.isfinite(errors[-1]).any() else None
        return {
            "title": self.scenario.name,
            "law": run.law,
            "seconds": float(run.t[-1]),
            "joints": len(run.model.joint_names),
            "width": run.width,
            "distance": {
                "start": float(run.distance[0]),
                "end": float(run.distance[-1]),
                "largest": float(run.distance.max()),
            },
            "first_below_a_tenth": run.first_reached,
            "stays_below_a_tenth": run.reached,
            "largest_torque": float(np.abs(run.tau).max(initial=0.0)),
            "largest_speed": float(np.abs(run.v).max(initial=0.0)),
            "error_of_the_worst_module_mm": None if worst is None else float(worst),
            "modules_without_a_world_frame": int(np.isnan(errors[-1]).sum()),
            "messages": run.messages,
            "lost": run.lost,
            "times_real_time": run.real_time,
        }

    def print(self) -> None:
        """One screen for people."""
        facts, console = self.data(), output.console()
        distance, stays = facts["distance"], facts["stays_below_a_tenth"]
        first = facts["first_below_a_tenth"]
        worst, cut_off = (
            facts["error_of_the_worst_module_mm"], facts["modules_without_a_world_frame"]
        )  # fmt: skip
        known = "unknown to all modules" if worst is None else f"{worst:.3g} mm, worst module"
        rate = facts["messages"] / facts["seconds"]
        lost = f", {facts['lost']:,} lost" if facts["lost"] else ""
        table = output.plain_table("", header=False)
        for name, value in {
            "law": facts["law"],
            "distance": f"{distance['start']:.3f} -> {distance['end']:.3f} widths of a module",
            "stays below a tenth": (
                Text("no", "red") if stays is None else Text(f"after {stays:.2f} s", "green")
            ),
            "first below a tenth": "never" if first is None else f"at {first:.2f} s",
            "largest speed, torque": (
                f"{facts['largest_speed']:.2g} rad/s, {facts['largest_torque']:.2g} N m"
            ),
            "error of the center": known
            + (f", {cut_off} module{'s' * (cut_off != 1)} cut off" if cut_off else ""),
            "messages": f"{facts['messages']:,} ({rate:,.0f} per second{lost})",
            "speed": f"{facts['times_real_time']:.2g} times real time",
        }.items():
            table.add_row(name, value)
        heading = f"{facts['title']}, {facts['joints']} joints, {facts['seconds']:g} s"
        output.print_table(console, heading, table)

    def plot(self, path: str) -> None:
        """Distance, path of the center, and errors of the modules."""
        self.run.plot(path, title=f"{self.scenario.name}, law: {self.run.law}")


class WalkReport:
    """Distance, cost of transport, slip and stability margin of a body on the ground."""

    def __init__(self, scenario: Scenario, result: RunResult) -> None:
        self.walk = measured(scenario, result)

    def data(self) -> dict[str, Any]:
        """Numbers for machines."""
        walk = self.walk
        return {
            "title": walk.scenario.name,
            "gait": walk.scenario.motion,
            "friction": walk.ground.friction,
            "slope": walk.ground.slope,
            "note": walk.note,
            **walk.metrics._asdict(),
        }

    def print(self) -> None:
        """One screen for people."""
        walk, m, console = self.walk, self.walk.metrics, output.console()
        table = output.plain_table("", header=False)
        for name, value in m.words().items():
            table.add_row(name, value)
        x, y = (math.degrees(math.atan(rise)) for rise in walk.ground.slope)
        on = f", slope {x:.3g}°, {y:.3g}°" if x or y else ""
        motion = "free motion" if walk.scenario.motion == NONE else walk.scenario.motion
        heading = f"{walk.scenario.name}: {motion}, friction {walk.ground.friction:g}"
        output.print_table(console, heading + on, table)
        if walk.note:
            console.print(walk.note, soft_wrap=True)

    def plot(self, path: str) -> None:
        """Positions, velocities and torques."""
        self.walk.trajectory.plot("q", "v", "tau", path=path, title=self.walk.scenario.name)
