"""Section IV: the arm follows a quintic motion under two laws, with noise; Fig. 7 and 8."""

from __future__ import annotations

import numpy as np

from modurob import Model, Trajectory, examples, simulate
from modurob.control import ComputedTorque, Controller, Reference
from modurob.scenario import presets
from modurob.sim import Noise
from papers import figures
from papers.claims import Claims
from papers.giusti2015 import seeds
from papers.giusti2015.setting import (
    DISTURBED,
    DURATION,
    FINAL,
    FRICTION,
    KD,
    KEEP,
    KP,
    MEASURED,
    MOTION,
    SAMPLE,
    WORD,
    rounded,
)

SEEDS, SLOW = 100, 20  # with noise that is new at each sample, and each millisecond only
TOLERANCE = 1e-11
DASHES = (0, (4, 4))
COLORS = (figures.PALETTE[0], figures.PALETTE[1], figures.PALETTE[3])


def reproduce(claims: Claims) -> None:
    """One seed under the controllers, a hundred in a batch, and the pictures."""
    claims.working_on("both controllers")
    model = examples.arm(WORD).model("physical")
    ends = [MOTION(t) for t in (0.0, DURATION)]
    claims.check("motion", rounded([[*end.q, *end.v, *end.a] for end in ends]))
    claims.check("exact", np.abs(_followed(model, ComputedTorque(model, k0=KP, k1=KD))).max())
    laws = presets.ARM_TORQUE, presets.ARM_PD
    runs = [presets.arm_motion(law).run().trajectory for law in laws]
    _draw(claims, "fig_7_pd_gravity.png", "PD with gravity compensation", runs[1])
    _draw(claims, "fig_8_computed_torque.png", "Computed torque", runs[0])
    claims.working_on(f"{SEEDS} seeds")
    errors = seeds.errors(model.compile(), [1] * SEEDS + [round(KEEP / SAMPLE)] * SLOW)
    same = enumerate((_printed(model), runs[1]))
    claims.check("same", [np.abs(_error(run) - errors[k, 0]).max() for k, run in same])
    _judge(claims, errors)


def resting(t: float) -> Reference:
    """The motion as a set point that moves: the PD law of the document damps all velocity."""
    return Reference(MOTION(t).q, np.zeros(len(FINAL)), np.zeros(len(FINAL)))


def _followed(model: Model, law: Controller) -> np.ndarray:
    """(N, 5) errors without noise, the law acting continuously."""
    found = simulate(
        model, None, None, DURATION, law, "DOP853", rtol=TOLERANCE, atol=TOLERANCE,
        reference=MOTION, record=KEEP,
    )  # fmt: skip
    return _error(found)


def _printed(model: Model) -> Trajectory:
    """Seed 0 under the printed law, which does not account for friction during a sample."""
    return simulate(
        model, None, None, DURATION, ComputedTorque(model, k0=KP, k1=KD), "SemiImplicitEuler",
        dt=SAMPLE, sample_time=SAMPLE, reference=MOTION,
        noise=Noise(MEASURED, MEASURED, DISTURBED), record=KEEP, rng=np.random.default_rng(0),
    )  # fmt: skip


def _error(found: Trajectory) -> np.ndarray:
    """(N, 5) q - q_d. [rad, m]"""
    return found.q - np.array([MOTION(t).q for t in found.t])


def _judge(claims: Claims, errors: np.ndarray) -> None:
    """Who is better, and does every seed stay near the motion?"""
    slow = seeds.integrated(seeds.norms(errors[:, SEEDS:]))
    errors = errors[:, :SEEDS]
    norms = seeds.norms(errors)
    plain, scaled = seeds.integrated(norms), seeds.integrated(seeds.norms(errors / FINAL))
    claims.check("better", int(np.sum(plain[0] < plain[1])))
    claims.check("better_scaled", int(np.sum(scaled[0] < scaled[1])))
    claims.check("ratio", plain[1].mean() / plain[0].mean())
    lag = (KD + FRICTION) / KP * np.linalg.norm(MOTION(DURATION / 2).v)  # of PD at full speed
    mean = errors[1].mean(axis=0) / FINAL  # (N, 5)
    claims.check("curves", np.abs(mean - _lag(len(mean))[:, None]).max())
    for key, norm in zip(("bounded_torque", "bounded_pd"), norms, strict=False):
        claims.check(key, norm.max() / lag)
    told = int(np.sum(plain[0] < plain[2])), int(np.sum(scaled[0] < scaled[2]))
    claims.check("told", told[0], f"of the errors as fractions of the way: {told[1]} of {SEEDS}")
    better = int(np.sum(slow[0] < slow[2]))
    claims.check("slow", int(np.sum(slow[0] < slow[1])), f"told the velocity: {better} of {SLOW}")
    _draw_seeds(claims, norms, plain)


def _lag(count: int) -> np.ndarray:
    """(N,) errors as fractions of the way by ``(Kd + F) q' = Kp (q_d - q)``: without inertia."""
    t, rate = KEEP * np.arange(count), KP / (KD + FRICTION)
    wanted = np.array([MOTION(time).q[0] for time in t]) / FINAL[0]
    grown = np.exp(rate * t)  # variation of constants, by the trapezoidal rule
    steps = (grown * wanted)[1:] + (grown * wanted)[:-1]
    return rate * KEEP / 2 * np.r_[0.0, np.cumsum(steps)] / grown - wanted


# -- pictures --------------------------------------------------------------------------------------


def _draw(claims: Claims, name: str, headline: str, found: Trajectory) -> None:
    """Positions, errors as fractions of the way, and the norm of the error."""
    drawn, axes = figures.figure(3, size=(8.4, 7.0), sharex=True)
    places, fractions, norm = axes[:, 0]
    error, t = _error(found), found.t
    units = ("rad", "rad", "rad", "rad", "m")
    for k, unit in enumerate(units):
        color, label = figures.PALETTE[k], f"joint {k + 1} [{unit}]"
        places.plot(t, found.q[:, k], color=color, lw=2.0, label=label)
        places.plot(t, found.q[:, k] - error[:, k], color=figures.INK, lw=1.0, ls=DASHES,
                    label="desired" if k == len(units) - 1 else None)  # fmt: skip
        fractions.plot(t, 100 * error[:, k] / FINAL[k], color=color, lw=1.4)
    norm.plot(t, seeds.norms(error / FINAL), color=figures.INK, lw=1.6, label="as fractions")
    norm.plot(t, seeds.norms(error), color=figures.SPOT, lw=1.6, label="in rad and m")
    places.set_ylabel("position", color=figures.INK)
    fractions.set_ylabel("error [% of the way]", color=figures.INK)
    norm.set_ylabel("norm of the error", color=figures.INK)
    fractions.set_ylim(-26, 6)
    norm.set_ylim(0, 0.55)
    figures.legend(places, loc="upper left", bbox_to_anchor=(1.0, 1.03))
    figures.legend(norm, loc="upper left", bbox_to_anchor=(1.0, 1.03))
    norm.set_xlabel("time [s]", color=figures.INK)
    norm.set_xlim(0, DURATION)
    figures.title(drawn, f"{headline}: b-a-b-a-c follows a quintic motion with noise")
    drawn.align_ylabels(list(axes[:, 0]))
    figures.save(drawn, claims.picture(name))


def _draw_seeds(claims: Claims, norms: np.ndarray, plain: np.ndarray) -> None:
    """Norms over time (median, and between which all seeds lie), and their integrals."""
    drawn, axes = figures.figure(1, 2, size=(8.4, 3.8), width_ratios=(1.6, 1))
    over, total = axes[0]
    t = np.arange(norms.shape[-1]) * KEEP
    for law, color, name in zip(norms, COLORS, seeds.LAWS, strict=True):
        over.fill_between(t, law.min(axis=0), law.max(axis=0), color=color, alpha=0.25, lw=0)
        over.semilogy(t, np.median(law, axis=0), color=color, lw=1.8, label=name)
    over.set(xlim=(0, DURATION), ylim=(1e-4, 1))
    over.set_xlabel("time [s]", color=figures.INK)
    over.set_ylabel("norm of the error [rad and m]", color=figures.INK)
    rng = np.random.default_rng(0)
    for k, (each, color) in enumerate(zip(plain, COLORS, strict=True)):
        at = k + rng.uniform(-0.25, 0.25, len(each))
        total.semilogy(at, each, color=color, marker="o", ms=3, ls="none", alpha=0.6)
    total.set_xticks(range(len(plain)), ["computed\ntorque", "PD", "PD, told\nvelocity"])
    total.set_ylabel("integrated norm [rad s and m s]", color=figures.INK)
    total.set_ylim(1e-3, 1)
    handles = over.get_legend_handles_labels()
    drawn.legend(*handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9,
                 labelcolor=figures.INK)  # fmt: skip
    figures.title(drawn, f"Errors of {SEEDS} seeds")
    figures.save(drawn, claims.picture("seeds.png"))
