"""The whole way on one organism: a report on the crab of meister2013.

Equations of motion, a fall, a gait that is followed with computed torque on the estimate of a
Kalman filter, and the verification against identities, conservation laws and other engines. All of
it goes into one page with pictures.

Run it with `python examples/05_crab_report.py`; then open `output/report.html`.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

import modurob as mr
from modurob.drawing import picture
from modurob.sim import Noise
from modurob.verification import VerificationReport, verify

OUTPUT = Path("output")
SAMPLE = 0.01  # [s] between two measurements
NOISE = 0.03  # [rad] standard deviation of a measured angle
STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;
color:#1f2933}h1,h2{line-height:1.2}img{max-width:100%}table{border-collapse:collapse;margin:1rem 0}
td,th{border-bottom:1px solid #d5dbe1;padding:.3rem .8rem;text-align:left}
math{margin:.4rem 0;overflow-x:auto}pre{white-space:pre-wrap}
.ok{color:#0a7d4b}.bad{color:#b3261e}"""


def equations(organism: mr.Organism) -> list[str]:
    """Formulas of the papers' model, and how many the physical one has."""
    formulas = organism.equations("dyad")
    physical = organism.equations("physical")
    terms = sum(len(physical.exact_entry(entry)) for entry in physical.entries())
    return [
        "<h2>Equations of motion</h2>",
        f"<p>{len(formulas.model.joint_names)} joints can move in the papers' model; "
        f"{len(formulas.model.locked)} are locked. In symbols:</p>",
        formulas.mathml(),
        f"<p>With every joint of the hardware there are {terms:,} terms, such as</p>",
        physical.mathml("N[1]"),
    ]


def fall(organism: mr.Organism) -> list[str]:
    """A second without torques, and how well energy is kept."""
    model = organism.model("physical")
    run = mr.simulate(model, None, None, 1.0, integrator="DOP853", rtol=1e-10, organism=organism)
    run.picture(OUTPUT / "fall.png", [0.0, 0.1, 0.2, 0.3])
    run.plot("q", "energy", path=OUTPUT / "fall_plot.png", title="a fall")
    drift = np.ptp(run.energy)
    print(f"fall: {len(run.t) - 1} steps, energy kept to {drift:.1e} J")
    return [
        "<h2>A fall</h2>",
        f"<p>Energy is kept to {drift:.1e} J.</p>",
        '<img src="fall.png" alt="the crab at four times">',
        '<img src="fall_plot.png" alt="angles and energy over time">',
    ]


def walk(organism: mr.Organism) -> list[str]:
    """A gait followed on estimates: only angles are measured, and those are noisy."""
    model = organism.model("physical")
    gait = mr.gaits.Wave.for_model(model, ramp=1.0)
    law = mr.control.ComputedTorque(model, settling_time=0.5, sample_time=SAMPLE)
    n = model.nv
    ekf = mr.estimation.Ekf(model, dt=SAMPLE, Q=np.repeat([1e-8, 1e-3], n), R=NOISE**2)
    run = mr.simulate(
        model, gait(0.0).q, None, 4.0, mr.control.OutputFeedback(law, ekf), "RK4",
        dt=SAMPLE / 10, rng=np.random.default_rng(0), reference=gait, record=SAMPLE,
        noise=Noise(q=NOISE), organism=organism,
    )  # fmt: skip
    run.plot("q", "tau", path=OUTPUT / "walk_plot.png", title="a gait")
    error = np.sqrt(np.mean((run.channels["estimate_q"][100:] - run.q[100:]) ** 2))
    print(f"walk: measured to {NOISE} rad, estimated to {error:.4f} rad")
    return [
        "<h2>A gait, followed on estimates</h2>",
        f"<p>Measured angles are off by {NOISE} rad, estimated ones by {error:.4f} rad.</p>",
        '<img src="walk_plot.png" alt="angles and torques over time">',
        f"<pre>{escape(str(law.certificate()))}</pre>",
    ]


def checks(organism: mr.Organism) -> tuple[list[str], VerificationReport]:
    """Everything that can be compared."""
    report = verify(organism, "physical")
    rows = []
    for check in report.checks:
        number = (
            "" if check.found is None else f"{check.found:.1e} {check.relation} {check.limit:g}"
        )
        mark = "bad" if check.verdict == "FAILED" else "ok"
        cells = (check.name, check.note, number)
        rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
        rows[-1] = f'<tr>{rows[-1]}<td class="{mark}">{check.verdict}</td></tr>'
    print(f"checks: {report.count('passed')} passed, {report.count('FAILED')} failed")
    return ["<h2>Verification</h2>", "<table>", *rows, "</table>"], report


def main() -> None:
    OUTPUT.mkdir(exist_ok=True)
    crab = mr.examples.crab()
    picture(crab, OUTPUT / "crab.png")
    body = ["<h1>The crab</h1>", '<img src="crab.png" alt="the crab" width="420">']
    body += equations(crab)
    body += fall(crab)
    body += walk(crab)
    found, report = checks(crab)
    body += found
    page = f"<!doctype html><meta charset='utf-8'><title>The crab</title><style>{STYLE}</style>"
    (OUTPUT / "report.html").write_text(page + "\n".join(body), encoding="utf-8")
    names = ("report.html", "crab.png", "fall.png", "fall_plot.png", "walk_plot.png")
    print("wrote " + ", ".join(f"output/{name}" for name in names))
    assert report.passed, "a check failed: see the table in the report"
    print("open output/report.html in a browser")


if __name__ == "__main__":
    main()
