"""The whole way on one organism: a report on the crab of meister2013.

Equations of motion, a fall, a gait that is followed with computed torque on the estimate of a
Kalman filter, a walk on the ground, a tree whose modules balance it by messages, and the
verification against identities, conservation laws and other engines. All of it goes into one page
whose bodies can be turned and played.

Run it with `python examples/05_crab_report.py`; then open `output/report.html`.
"""

from __future__ import annotations

from html import escape
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import modurob as mr
from modurob.drawing import picture
from modurob.sim import Noise
from modurob.verification import VerificationReport, verify
from modurob.walking import zoo_walk

OUTPUT = Path("output")
WRITTEN: list[str] = []
SAMPLE = 0.01  # [s] between two measurements
NOISE = 0.03  # [rad] standard deviation of a measured angle
OPTIONAL = {  # what is used where it is installed, and the extra that brings it
    "nicegui": ("moving pictures in the report, and the studio", "studio"),
    "mujoco": ("checks against MuJoCo, and its engine for simulations", "mujoco"),
}
STYLE = """iframe{width:100%;height:34rem;border:1px solid #d5dbe1;border-radius:8px}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;
color:#1f2933}h1,h2{line-height:1.2}img{max-width:100%}table{border-collapse:collapse;margin:1rem 0}
td,th{border-bottom:1px solid #d5dbe1;padding:.3rem .8rem;text-align:left}
math{margin:.4rem 0;overflow-x:auto}pre{white-space:pre-wrap}
.ok{color:#0a7d4b}.bad{color:#b3261e}"""


def viewer(run: mr.Trajectory | mr.Organism, name: str, title: str, **options: mr.Ground) -> str:
    """Something to turn and play in the page; a still picture where NiceGUI is missing."""
    if find_spec("nicegui") is not None:
        run.view(**options).save(OUTPUT / f"{name}.html")
        WRITTEN.append(f"{name}.html")
        return f'<iframe src="{name}.html" title="{title}" loading="lazy"></iframe>'
    draw = picture if isinstance(run, mr.Organism) else mr.Trajectory.picture
    draw(run, OUTPUT / f"{name}.png")
    WRITTEN.append(f"{name}.png")
    return f'<img src="{name}.png" alt="{title}">'


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
    drift = np.ptp(run.energy)
    print(f"fall: {len(run.t) - 1} steps, energy kept to {drift:.1e} J")
    return [
        "<h2>A fall</h2>",
        f"<p>Energy is kept to {drift:.1e} J.</p>",
        viewer(run, "fall", "the crab falls"),
    ]


def follow(organism: mr.Organism) -> list[str]:
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
    run.plot("q", "tau", path=OUTPUT / "follow.png", title="a gait")
    WRITTEN.append("follow.png")
    error = np.sqrt(np.mean((run.channels["estimate_q"][100:] - run.q[100:]) ** 2))
    print(f"gait: measured to {NOISE} rad, estimated to {error:.4f} rad")
    return [
        "<h2>A gait, followed on estimates</h2>",
        f"<p>Measured angles are off by {NOISE} rad, estimated ones by {error:.4f} rad.</p>",
        '<img src="follow.png" alt="angles and torques over time">',
        f"<pre>{escape(str(law.certificate()))}</pre>",
    ]


def walk() -> list[str]:
    """The crab of the zoo on the ground, with a gait that was tuned for it."""
    found = zoo_walk("crab", duration=6.0)
    print(f"walk: {found.metrics.distance:.2f} m in 6 s")
    return [
        "<h2>A walk</h2>",
        f"<p>{found.metrics.distance:.2f} m in 6 s, on ground with friction 0.8. Arrows are the "
        "forces of the ground.</p>",
        viewer(found.trajectory, "walk", "the crab walks", ground=found.ground),
    ]


def balance() -> list[str]:
    """A tree of SuperBots whose modules know their own joints and what neighbors tell them."""
    rng = np.random.default_rng(4)
    tree = mr.Organism.random("superbot", 8, rng)
    run = mr.distributed.balance(tree, duration=3.0, loss=0.1, rng=rng)
    begin, end = run.width * run.distance[[0, -1]]
    print(f"balance: center of mass {1e3 * begin:.0f} mm beside the base, then {1e3 * end:.1f} mm")
    return [
        "<h2>Balance by messages</h2>",
        f"<p>Eight modules, one message in ten lost: the center of mass comes from "
        f"{1e3 * begin:.0f} mm to {1e3 * end:.1f} mm beside the base.</p>",
        viewer(run, "balance", "a tree of SuperBots balances"),
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
    body = ["<h1>The crab</h1>", viewer(crab, "crab_view", "the crab")]
    for part in (equations(crab), fall(crab), follow(crab), walk(), balance()):
        body += part
    found, report = checks(crab)
    body += found
    for name, (use, extra) in OPTIONAL.items():
        if find_spec(name) is None:
            print(f"not installed: {name}, for {use}: pip install 'modurob[{extra}]'")
    page = f"<!doctype html><meta charset='utf-8'><title>The crab</title><style>{STYLE}</style>"
    (OUTPUT / "report.html").write_text(page + "\n".join(body), encoding="utf-8")
    print("wrote " + ", ".join(f"output/{name}" for name in ("report.html", *WRITTEN)))
    assert report.passed, "a check failed: see the table in the report"
    print("open output/report.html in a browser")


if __name__ == "__main__":
    main()
