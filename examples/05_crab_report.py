"""The whole way on one organism: a report on the crab of meister2013.

Equations of motion, a fall, a gait that is followed with computed torque on the estimate of a
Kalman filter, a walk on the ground, a tree whose modules balance it by messages, and the
verification against identities, conservation laws and other engines. All of it goes into one
HTML file whose bodies can be turned and played.

Run it with `python examples/05_crab_report.py`; then open `output/report.html`.
"""

from __future__ import annotations

import base64
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
WRITTEN = ["report.html"]
SAMPLE = 0.01  # [s] between two measurements
NOISE = 0.03  # [rad] standard deviation of a measured angle
OPTIONAL = {  # packages that are used where they are installed, and what to install for them
    "nicegui": ("moving pictures in the report, and the studio", "'modurob[studio]'"),
    "mujoco": ("checks against MuJoCo, and its engine for simulations", "'modurob[mujoco]'"),
    "pinocchio": ("checks against Pinocchio", "pin"),
}
HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>The crab</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><style>
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;
color:light-dark(#1f2933,#e4e9ee);background:light-dark(#fff,#12171d)}
h1,h2{line-height:1.2}img{max-width:100%;background:#fff;border-radius:8px}
iframe{border-radius:8px}pre{white-space:pre-wrap;overflow-wrap:anywhere}
.wide{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse}math{margin:.4rem 0}
td{border-bottom:1px solid light-dark(#d5dbe1,#39434e);padding:.3rem .8rem;white-space:nowrap}
.passed{color:light-dark(#0a7d4b,#4cc38a)}.FAILED{color:light-dark(#b3261e,#ff8a80)}</style>
"""


def image(name: str, title: str) -> str:
    """A picture that was written, as part of the page."""
    WRITTEN.append(name)
    data = base64.b64encode((OUTPUT / name).read_bytes()).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{title}">'


def viewer(run: mr.Trajectory | mr.Organism, name: str, title: str, **options: mr.Ground) -> str:
    """Something to turn and play in the page; a still picture where NiceGUI is missing."""
    if find_spec("nicegui") is not None:
        return run.view(**options)._repr_html_()
    draw = picture if isinstance(run, mr.Organism) else mr.Trajectory.picture
    draw(run, OUTPUT / f"{name}.png")
    return image(f"{name}.png", title)


def equations(organism: mr.Organism) -> list[str]:
    """Formulas of the papers' model, and how many the physical one has."""
    formulas = organism.equations("dyad")
    physical = organism.equations("physical")
    terms = sum(len(physical.exact_entry(entry)) for entry in physical.entries())
    print(f"equations: {terms:,} terms with every joint of the hardware")
    return [
        "<h2>Equations of motion</h2>",
        f"<p>In the papers' model {len(formulas.model.joint_names)} joints move and "
        f"{len(formulas.model.locked)} are locked. In symbols:</p>",
        f'<div class="wide">{formulas.mathml()}</div>',
        f"<p>With every joint of the hardware, the equations have {terms:,} terms. One entry:</p>",
        f'<div class="wide">{physical.mathml("M[1,4]")}</div>',
    ]


def fall(organism: mr.Organism) -> list[str]:
    """A second without torques, and the drift of the energy."""
    model = organism.model("physical")
    run = mr.simulate(model, None, None, 1.0, integrator="DOP853", rtol=1e-10, organism=organism)
    drift = np.ptp(run.energy)
    print(f"fall: {len(run.t) - 1} steps, energy drifts by {drift:.1e} J")
    return [
        "<h2>A fall</h2>",
        f"<p>One second without torques. The energy drifts by {drift:.1e} J.</p>",
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
    error = np.sqrt(np.mean((run.channels["estimate_q"][100:] - run.q[100:]) ** 2))
    print(f"gait: noise of the angles {NOISE} rad, error of the estimate {error:.4f} rad")
    return [
        "<h2>A gait, followed with a Kalman filter</h2>",
        f"<p>Measured angles have a noise of {NOISE} rad; the estimate that the controller uses is "
        f"within {error:.4f} rad (both root mean square).</p>",
        image("follow.png", "angles and torques over time"),
        f"<pre>{escape(str(law.certificate()))}</pre>",
    ]


def walk() -> list[str]:
    """The crab of the zoo on the ground, with a gait that was tuned for it."""
    found = zoo_walk("crab", duration=6.0)
    print(f"walk: {found.metrics.distance:.2f} m in 6 s")
    return [
        "<h2>A walk</h2>",
        f"<p>{found.metrics.distance:.2f} m in 6 s, on ground with a friction coefficient of 0.8. "
        "Arrows show the contact forces.</p>",
        viewer(found.trajectory, "walk", "the crab walks", ground=found.ground),
    ]


def balance() -> list[str]:
    """A tree of SuperBots whose modules know their own joints and what neighbors tell them."""
    rng = np.random.default_rng(4)
    tree = mr.Organism.random("superbot", 8, rng)
    run = mr.distributed.balance(tree, duration=3.0, loss=0.1, rng=rng)
    begin, end = run.width * run.distance[[0, -1]]
    print(f"balance: center of mass {1e3 * begin:.0f} mm off the base, then {1e3 * end:.1f} mm")
    return [
        "<h2>Balance by messages</h2>",
        f"<p>Eight modules that talk to their neighbors only, with one message in ten lost, bring "
        f"the center of mass from {1e3 * begin:.0f} mm to within {1e3 * end:.1f} mm of the base's "
        "axis.</p>",
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
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in (check.name, number, check.note))
        rows.append(f'<tr><td class="{check.verdict}">{check.verdict}</td>{cells}</tr>')
    print(f"checks: {report.count('passed')} passed, {report.count('FAILED')} failed")
    table = ["<div class='wide'><table>", *rows, "</table></div>"]
    return ["<h2>Verification</h2>", *table], report


def main() -> None:
    OUTPUT.mkdir(exist_ok=True)
    print("\nReport: equations, a fall, a gait, a walk, balance and checks, a few seconds each")
    crab = mr.examples.crab()
    body = ["<h1>The crab</h1>", viewer(crab, "crab_view", "the crab")]
    for part in (equations(crab), fall(crab), follow(crab), walk(), balance()):
        body += part
    found, report = checks(crab)
    body += found
    for name, (use, package) in OPTIONAL.items():
        if find_spec(name) is None:
            print(f"not installed: {name}, for {use}: pip install {package}")
    (OUTPUT / "report.html").write_text(HEAD + "\n".join(body), encoding="utf-8")
    print("wrote " + ", ".join(f"output/{name}" for name in WRITTEN))
    assert report.passed, "a check failed: see the table in the report"
    print("open output/report.html in a browser")


if __name__ == "__main__":
    main()
