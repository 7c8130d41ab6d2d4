"""Reports of `modurob control`: one run of a closed loop, or a table of many."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from modurob import Scenario
from modurob.cli import output
from modurob.control import (
    Certificate,
    Robustness,
    RobustnessCase,
    StepResponse,
    plot_closed_loop,
    step_response,
)
from modurob.control.closed_loop import delay_margin, zero_dynamics
from modurob.control.pid import PidLaw
from modurob.control.promise import LATE
from modurob.errors import choices
from modurob.estimation import Consistency, consistency
from modurob.scenario.scenario import RunResult, joint_values

RUNAWAY = 10.0  # steps from the target: farther away a joint counts as unstable
AT_LIMIT = 1e-12  # of the limit: a torque this close to it is at it


class ControlReport:
    """Step response, certificate and failures of a closed loop.

    Attributes:
        law: The controller, with the model that it assumes.
        goal: (n,) end of the motion. [rad, m]
        reference: The motion to the goal, a function of time.
        masses: True masses, as a factor on those of the law's model.
        noise: Standard deviation of what was measured.
    """

    def __init__(self, scenario: Scenario, result: RunResult) -> None:
        assert result.law is not None
        self.scenario, self.law, self.run = scenario, result.law, result.trajectory
        self.reference, self.title = result.reference, scenario.name
        self.goal = joint_values(self.law.model, scenario.target)
        self.masses, self.noise, self.note = scenario.masses, scenario.noise_q, result.note

    # -- numbers -----------------------------------------------------------------------------------

    @cached_property
    def response(self) -> StepResponse | None:
        """Of the true positions; None when the run broke off."""
        if self.run.status != "finished":
            return None
        return step_response(self.run.t, self.run.q, self.goal)

    @cached_property
    def certificate(self) -> Certificate:
        """Of the law, with its own model."""
        start = self.run.q[0], self.run.v[0]
        return self.law.certificate(self.goal, start)

    @cached_property
    def peak(self) -> np.ndarray:
        """(n,) largest torque. [N m, N]"""
        return np.abs(self.run.tau).max(axis=0)

    @cached_property
    def at_limit(self) -> np.ndarray:
        """(N - 1, n) whether each motor was at its limit from a time to the next."""
        limit = self.law.torque_limit
        return np.abs(self.run.tau[:-1]) >= np.where(np.isfinite(limit), 1 - AT_LIMIT, 1) * limit

    def saturated(self) -> list[dict[str, Any]]:
        """Motors at their limits: for how long, and between which times."""
        t, found = self.run.t, []
        for k in np.flatnonzero(self.at_limit.any(axis=0)):
            rows = np.flatnonzero(self.at_limit[:, k])
            seconds = float(np.diff(t)[rows].sum())
            joint, limit = self.law.model.joint_names[k], float(self.law.torque_limit[k])
            ends = float(t[rows[0]]), float(t[rows[-1] + 1])
            found.append({"joint": joint, "limit": limit, "seconds": seconds, "from_to": ends})
        return found

    @cached_property
    def estimator(self) -> dict[str, Any] | None:
        """Errors of the estimate and of what was measured; None without an estimator."""
        channels, rows = self.run.channels, slice(0, len(self.run.t) - 1)  # the last has no sample
        if "estimate_q" not in channels:
            return None
        q, v = self.run.q[rows], self.run.v[rows]
        raw = channels.get("measured_q", self.run.q)[rows]
        return {
            "measured": _rms(raw - q).tolist(),
            "estimate": _rms(channels["estimate_q"][rows] - q).tolist(),
            "rate": _rms(channels["estimate_v"][rows] - v).tolist(),
            "nis": consistency(channels["nis"][rows], q.shape[1]),
        }

    @cached_property
    def runaways(self) -> dict[int, float]:
        """Joints far from the target, and the time from which on. [s]"""
        far = RUNAWAY * np.abs(self.goal - self.run.q[0]).max()
        lost = np.abs(self.run.q - self.goal) > far
        return {
            int(k): float(self.run.t[lost[:, k].argmax()]) for k in np.flatnonzero(lost.any(axis=0))
        }

    @cached_property
    def margin(self) -> float | None:
        """The longest delay with which errors still decay close to the goal. [s]"""
        return delay_margin(self.law, self.goal)

    @cached_property
    def zero_dynamics(self) -> np.ndarray | None:
        """Eigenvalues of what moves while the outputs are held; None with a motor everywhere."""
        if not len(self.law._idle):
            return None
        return np.linalg.eigvals(zero_dynamics(self.law, self.goal))

    def not_exact(self) -> list[str]:
        """Assumptions that this run breaks and a certificate cannot see."""
        found = []
        low, high = self.law.mass_range
        if not low <= self.masses <= high:
            found.append(f"the model is exact: true masses are {self.masses:g} times its own")
        load = self.scenario.payload
        if load is not None and not load.known:
            found.append(f"the model is exact: {load.body} carries {load.mass:g} kg more")
        pushes, measured = self.scenario.pushes, self.scenario.wrench_sensors
        # a measured push that does not change within a sample is taken up exactly
        if bodies := dict.fromkeys(x.body for x in pushes if x.frequency or not measured):
            found.append(f"only the motors act: {choices(bodies)} is pushed")
        if "contact" in self.run.channels:
            touched = np.any(self.run.channels["contact"] != 0, axis=(0, 2))
            if touched.any():
                names = choices(np.array(self.run.model.body_names)[touched])
                found.append(f"only the motors act: the ground touches {names}")
        if self.scenario.noise_tau:
            found.append(f"torques are exact: noise {self.scenario.noise_tau:g}")
        if self.noise:
            seen = "an estimate" if self.estimator else "measurements"
            found.append(f"the state is known: the law sees {seen}, noise {self.noise:g}")
        return found

    def failures(self) -> list[str]:
        """Failures of the run, each with its time."""
        found: list[str] = []
        if self.run.status != "finished":
            found.append(self.run.message.removeprefix("the simulation ").split(": ", 1)[-1])
            found[0] = f"at {self.run.t[-1]:.3f} s {found[0]}"
        if self.margin is None:
            found.append("errors do not decay close to the target, even without a delay")
        elif self.law.delay > self.margin:
            found.append(
                f"a delay of {1e3 * self.law.delay:g} ms is too long: errors decay up to "
                f"{1e3 * self.margin:g} ms"
            )
        found += [
            f"{self.law.model.joint_names[k]} runs away: more than {RUNAWAY:g} steps from its "
            f"target from {time:.3f} s on"
            for k, time in self.runaways.items()
        ]
        for entry in self.saturated():
            begin, end = entry["from_to"]
            found.append(
                f"{entry['joint']} is at its limit of {entry['limit']:g} for "
                f"{entry['seconds']:.3f} s, between {begin:.3f} and {end:.3f} s"
            )
        return found + self._off_target() + self._missed() + self._bad_estimates()

    def _missed(self) -> list[str]:
        """Reasons of a step that does not settle in the time that the gains were designed for."""
        asked = self.law.settling_time
        if asked is None or self.response is None or self.scenario.motion != "step":
            return []
        shown = min(self.run.t[-1], self.response.settling.max())  # a short run shows no miss
        if self.masses != 1 or self.noise or shown <= LATE * asked:
            return []
        return list(self.law.promise(self.goal, self.run.q[0]).reasons)

    def _bad_estimates(self) -> list[str]:
        """Joints whose estimate is worse than the measurement."""
        if self.estimator is None or self.estimator["nis"].consistent:
            return []
        pairs = zip(self.estimator["measured"], self.estimator["estimate"], strict=True)
        worse = [k for k, (raw, estimate) in enumerate(pairs) if estimate > raw > 0]
        names = choices(self.law.model.joint_names[k] for k in worse)
        if not worse:
            return ["the filter's covariances do not fit its errors (NIS)"]
        return [f"the estimate is worse than the measurement at {names}: the filter's model is off"]

    def _off_target(self) -> list[str]:
        response, found = self.response, []
        if response is None:
            return []
        for k, name in enumerate(self.law.model.joint_names):
            if np.isfinite(response.settling[k]) or k in self.runaways:
                continue
            off, ripple = (self.shown(k, x[k]) for x in (response.steady_error, response.ripple))
            around = ripple.lstrip("+")
            found.append(f"{name} does not settle within {response.band:.0%}: {off} ± {around}")
        if found and self.masses != 1 and not isinstance(self.law, PidLaw):
            found.append("(a law with an integral, as pid-linearized, evens out wrong masses)")
        return found

    # -- for people --------------------------------------------------------------------------------

    def shown(self, joint: int, value: float, digits: int = 2) -> str:
        """A displacement in degrees or millimeters."""
        scale, unit = (1e3, " mm") if self.law.model.prismatic[joint] else (180 / math.pi, "°")
        return f"{round(scale * value, digits) + 0.0:+.{digits}f}{unit}"  # no minus before a zero

    def print(self) -> None:
        """One screen for people."""
        console = output.console()
        motion = "a step" if self.scenario.motion == "step" else "a smooth motion"
        heading = f"{self.title}: {self.law.name}, {motion}, {self.run.t[-1]:.3g} s"
        if self.note:
            console.print(self.note, soft_wrap=True)
        self._print_joints(console, heading)
        if self.estimator is not None:
            self._print_estimator(console, self.estimator)
        self._print_certificate(console)
        if self.zero_dynamics is not None:
            console.print(f"Zero dynamics at the target: {_poles_text(self.zero_dynamics)} 1/s.")
        failures = self.failures()
        if self.margin is not None and math.isfinite(self.margin):
            near = f"Stable with up to {1e3 * self.margin:g} ms of delay near the target."
            console.print(Text(near, style="default" if failures else "green"))
        console.print(Text("Failures:", "bold") if failures else Text("No failures.", "green"))
        for line in failures:
            console.print(Text(f"  {line}", style="red"), soft_wrap=True)

    def plot(self, path: str) -> None:
        """Positions, velocities, torques and errors."""
        title = f"{self.title}: {self.law.name}"
        plot_closed_loop(self.run, self.law, self.reference, path, title=title)

    def _print_joints(self, console: Console, heading: str) -> None:
        headings = ("target", "rise", "over", "settled", "steady error", "peak torque", "at limit")
        table, response = output.plain_table("joint", *headings), self.response
        share = self.at_limit.mean(axis=0)
        for k, name in enumerate(self.law.model.joint_names):
            unit = "N" if self.law.model.prismatic[k] else "N m"
            if response is None or k in self.runaways:
                cells = ["-", "-", "runs away", "-"]
            else:
                off = self.shown(k, response.steady_error[k])
                cells = [
                    _seconds(response.rise[k]),
                    f"{response.overshoot[k]:.1%}",
                    _seconds(response.settling[k]),
                    off,
                ]
            limit = f"{share[k]:.1%}" if np.isfinite(self.law.torque_limit[k]) else "-"
            peak = f"{self.peak[k]:.3g} {unit}"
            table.add_row(name, self.shown(k, self.goal[k], 1), *cells, peak, limit)
        output.print_table(console, heading, table)

    def _print_estimator(self, console: Console, found: dict[str, Any]) -> None:
        table = output.plain_table("joint", "measured", "estimate", "better", "rate")
        rows = zip(*(found[key] for key in ("measured", "estimate", "rate")), strict=True)
        for k, (raw, estimate, rate) in enumerate(rows):
            factor = f"{raw / estimate:.1f} x" if raw and estimate else "-"
            numbers = [self.shown(k, x, 3).lstrip("+") for x in (raw, estimate)]
            speed = f"{self.shown(k, rate, 2).lstrip('+')}/s"
            table.add_row(self.law.model.joint_names[k], *numbers, factor, speed)
        output.print_table(console, "RMS errors of angles measured and estimated", table)
        nis: Consistency = found["nis"]
        style = "green" if nis.consistent else "yellow"
        console.print(Text(f"the filter is {nis} (NIS)", style=style))
        console.print()

    def _print_certificate(self, console: Console) -> None:
        certificate, wrong = self.certificate, self.not_exact()
        word = "guaranteed" if certificate.guaranteed and not wrong else "NOT guaranteed"
        console.print(Text(f"{word}: {certificate.claim}", style="bold"), soft_wrap=True)
        findings = [(f.holds, f"{f.assumption}: {f.why}") for f in certificate.findings]
        for holds, text in [*findings, *((False, text) for text in wrong)]:
            line = Text("  ok  ", style="green") if holds else Text("  NO  ", style="red")
            console.print(line.append(text, style="default"), soft_wrap=True)
        console.print()

    # -- for machines ------------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        """Numbers for machines; None for what does not apply."""
        response, found = self.response, self.estimator
        certificate = self.certificate
        return {
            "title": self.title,
            "law": self.law.name,
            "seconds": float(self.run.t[-1]),
            "status": self.run.status,
            **({"note": self.note} if self.note else {}),
            "joints": list(self.law.model.joint_names),
            "target": self.goal.tolist(),
            "response": None if response is None else {
                name: getattr(response, name).tolist()
                for name in ("rise", "overshoot", "settling", "steady_error", "ripple")
            },
            "peak_torque": self.peak.tolist(),
            "saturated": self.saturated(),
            "estimator": None if found is None else {**found, "nis": found["nis"]._asdict()},
            "delay_margin": self.margin,
            "zero_dynamics": None if self.zero_dynamics is None else [
                [x.real, x.imag] for x in self.zero_dynamics.tolist()
            ],
            "guaranteed": certificate.guaranteed and not self.not_exact(),
            "claim": certificate.claim,
            "assumptions": [finding._asdict() for finding in certificate.findings],
            "broken_assumptions": self.not_exact(),
            "breaks": self.failures(),
        }  # fmt: skip


def _rms(errors: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(errors**2, axis=0))


def _poles_text(values: np.ndarray) -> str:
    """Each real one, and each pair once."""
    pairs = sorted(((x.real, x.imag) for x in values + 0j if x.imag >= 0), reverse=True)
    return ", ".join(f"{re + 0.0:.3g}" + (f" ± {im:.3g}j" if im else "") for re, im in pairs)


def _seconds(value: float) -> str:
    if math.isnan(value):
        return "-"
    return "never" if math.isinf(value) else f"{value:.3f} s"


# -- many runs -------------------------------------------------------------------------------------


def print_robustness(title: str, found: Robustness) -> None:
    """A table with one row for each condition."""
    headings = ("settled", "in", "worst over", "RMS error", "at limit", "diverged")
    console, table = output.console(), output.plain_table("condition", *headings)
    for case in found.cases:
        table.add_row(*_cells(case))
    runs = found.cases[0].runs
    heading = f"{title}: {found.law}, {runs:,} random steps of {found.duration:.3g} s a row"
    output.print_table(console, heading, table)
    console.print(
        f"settled: all joints within {found.band:.0%} of their steps to the end. RMS error: over "
        "the last tenth [rad, m]. The controller has no information about the conditions.",
    )


def _cells(case: RobustnessCase) -> list[str]:
    nothing = math.isnan(case.overshoot)
    return [
        case.name,
        f"{case.settled:.1%}",
        "-" if math.isnan(case.settling) else f"{case.settling:.2f} s",
        "-" if nothing else f"{case.overshoot:.1%}",
        "-" if nothing else f"{case.error:.1e}",
        f"{case.saturated:.1%}",
        f"{case.diverged:.1%}",
    ]


def robustness_data(title: str, found: Robustness) -> dict[str, Any]:
    """The table for JSON."""
    rows = [case._asdict() for case in found.cases]
    head = {"title": title, "law": found.law, "duration": found.duration, "band": found.band}
    return {**head, "cases": rows}
