"""Experiments of the papers as scenarios: one command or one click each, judged and drawn.

Values that a paper prints are its own; `Preset.ours` names those that it does not print.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from modurob.control import PolePlacement
from modurob.control.gains import SETTLED
from modurob.distributed.balancing.result import Balanced
from modurob.errors import UnknownNameError, choices
from modurob.executors import Executor, LocalExecutor
from modurob.organism import examples
from modurob.scenario.scenario import RunResult, Scenario

Results = Mapping[str, RunResult]


class PresetFinding(NamedTuple):
    """A measured number beside what was expected of it.

    Attributes:
        what: In words, with the unit.
        found: The number, as text.
        holds: Whether the paper's statement holds; None for a fact without a verdict.
    """

    what: str
    found: str
    holds: bool | None = None


class Preset(NamedTuple):
    """A figure of a paper.

    Attributes:
        title: For people.
        source: Paper and figure.
        statement: Of the paper, in our words.
        ours: Values that the paper does not print.
        panels: Quantities that its figure shows; see `preset_figures`.
        build: Makes its runs, by the words of the legend.
        judge: From results by the same words to findings.
    """

    title: str
    source: str
    statement: str
    ours: str
    panels: tuple[str, ...]
    build: Callable[[], dict[str, Scenario]]
    judge: Callable[[Results], list[PresetFinding]]

    def run(
        self,
        progress: Callable[[float], Any] | None = None,
        executor: Executor | None = None,
    ) -> dict[str, RunResult]:
        """Simulate all its runs, by default in this process."""
        scenarios, work = self.build(), partial(Scenario.run, partial=True)
        found = (executor or LocalExecutor(1)).map(work, scenarios.values(), progress)
        return dict(zip(scenarios, found, strict=True))


# -- gutenkunst2012 --------------------------------------------------------------------------------

PENDULUM: dict[str, Any] = {
    "organism": "double_pendulum",
    "name": "double pendulum",
    "hinges": "physical",
}
UNIT_STEP = {"m0.hinge": 1.0, "m1.hinge": 1.0}  # [rad]
PID_GAINS: dict[str, Any] = {"kp": 10.0, "ki": 1.0, "kd": 4.0}  # of section 6.2
POLES = ((-2.0, -3.0), (-5.0, -10.0))  # (6.38); (6.37a) says otherwise: erratum 12
NEAR = 0.95  # of the step


def _thesis_pid() -> dict[str, Scenario]:
    return {
        "PID": Scenario(
            **PENDULUM, motion="step", target=UNIT_STEP, controller="PidLinearized",
            gains=PID_GAINS, duration=10.0, integrator="RK4", dt=1e-3, sample_time=1e-3,
            record=0.04,
        )
    }  # fmt: skip


def _thesis_poles() -> dict[str, Scenario]:
    return {
        "pole placement": Scenario(
            **PENDULUM, motion="step", target=UNIT_STEP, controller="PolePlacement",
            poles=tuple(pole for pair in POLES for pole in pair), duration=4.0,
            integrator="DOP853", rtol=1e-11, record=0.01,
        )
    }  # fmt: skip


def _judge_pid(results: Results) -> list[PresetFinding]:
    run = results["PID"].trajectory
    apart, left = np.ptp(run.q, axis=1).max(), np.abs(run.q[-1] - 1).max()
    return [
        _finding("the joints are decoupled: two equal steps differ by [rad]", apart, apart < 5e-3),
        _finding("largest overshoot [%]", 100 * (run.q.max() - 1)),
        _finding(f"left of the step after {run.t[-1]:g} s [%]", 100 * left, left < 0.05),
    ]


def _judge_poles(results: Results) -> list[PresetFinding]:
    result = results["pole placement"]
    run, law = result.trajectory, result.law
    assert isinstance(law, PolePlacement)
    slow, fast = (float(np.interp(NEAR, q, run.t)) for q in run.q.T)
    gains = "; ".join(f"{k0:g}, {k1:g}" for k0, k1 in zip(law.k0, law.k1, strict=True))
    return [
        PresetFinding("gains of the poles (position, velocity)", gains),
        _finding("time of the first joint to 95 % [s]", slow),
        _finding("time of the second joint to 95 % [s]", fast),
        _finding("the second joint reacts faster, by a factor of", slow / fast, slow > 2 * fast),
    ]


# -- meister2013 -----------------------------------------------------------------------------------

CRAB: dict[str, Any] = {"organism": "crab", "name": "crab"}
CRAB_STEP = {"m1.hinge": 1.0, "m3.hinge": 0.7, "m5.hinge": -0.5}  # [rad]
CRAB_EKF: dict[str, Any] = {
    "Q": (0.1, 0.1, 0.1, 1e-4, 1e-4, 1e-4), "W": (1.0,) * 6,  # (52), (53)
    "R": (1.0,) * 3, "V": (1.0,) * 3,  # (54), (55)
    "P": 0.1, "q": (0.2, -0.2, 0.2),
}  # fmt: skip
ANGLE_NOISE = 0.03  # [rad] standard deviation of the measured angles
FORGOTTEN_S, HELD_S = 0.5, 2.0  # until the filter has forgotten its start, and the step is over


def _crab_steps() -> dict[str, Scenario]:
    step: dict[str, Any] = {
        **CRAB, "motion": "step", "target": CRAB_STEP, "settling_time": 1.0, "duration": 2.0,
        "record": 0.005,
    }  # fmt: skip
    return {
        "computed torque": Scenario(
            **step, controller="ComputedTorque", integrator="DOP853", rtol=1e-11
        ),
        "with PID": Scenario(
            **step, controller="PidLinearized", integrator="RK4", sample_time=1e-3
        ),
    }


def crab_filter(law: str = "ComputedTorque", seed: int = 0, **changes: Any) -> Scenario:
    """The loop of Fig. 14, closed over estimates from noisy angles."""
    given: dict[str, Any] = {
        **CRAB, "motion": "step", "target": CRAB_STEP, "settling_time": 1.0, "duration": 4.0,
        "integrator": "RK4", "dt": 0.01, "sample_time": 0.01, "record": 0.01, "controller": law,
        "estimator": "Ekf", "ekf": CRAB_EKF, "noise_q": ANGLE_NOISE, "seed": seed, **changes,
    }  # fmt: skip
    return Scenario(**given)


def _crab_loops() -> dict[str, Scenario]:
    estimated = crab_filter("PidLinearized")
    kept = estimated.model_fields_set - {"estimator", "ekf", "noise_q", "seed"}
    state = Scenario(**{name: getattr(estimated, name) for name in kept})
    return {"with the true state": state, "with the estimate": estimated}


def _judge_steps(results: Results) -> list[PresetFinding]:
    found = []
    for name, result in results.items():
        time = settled(result)
        found.append(_finding(f"{name}: within 2 % from [s]", time, time < 1.5))
    return found


def _judge_loops(results: Results) -> list[PresetFinding]:
    state, estimated = (results[name].trajectory.q for name in results)
    late = slice(len(state) // 2, None)
    off = float(np.sqrt(np.mean((estimated - state)[late] ** 2, axis=0)).max())
    return [
        _finding("noise of the measured angles [rad]", ANGLE_NOISE),
        _finding("distance of the two motions after 2 s, RMS [rad]", off, off < ANGLE_NOISE),
    ]


def _judge_filter(results: Results) -> list[PresetFinding]:
    run = results["EKF"].trajectory
    late = run.t >= FORGOTTEN_S
    noise, left = (
        float(np.sqrt(np.mean((run.channels[name] - run.q)[late] ** 2)))
        for name in ("measured_q", "estimate_q")
    )
    first = np.abs(run.channels["estimate_q"] - run.q)[0].max()
    goal = results["EKF"].reference(0.0).q
    held = float(np.sqrt(np.mean((run.q - goal)[run.t >= HELD_S] ** 2, axis=0)).max())
    return [
        _finding("error of the first estimate, corrected once [rad]", first),
        _finding("noise of the measured angles, RMS [rad]", noise),
        _finding("error of the estimated angles, RMS [rad]", left, left < noise),
        _finding("worst joint, from its set point after 2 s, RMS [rad]", held),
    ]


# -- giusti2015 ------------------------------------------------------------------------------------

ARM_WORD = "babac"
ARM_GOAL = {f"m{k}.joint": x for k, x in enumerate((0.2, 0.4, 0.6, 0.8, 0.1))}  # [rad, m]
ARM_PD, ARM_TORQUE = "PD with gravity compensation", "computed torque"


def arm_motion(law: str, **changes: Any) -> Scenario:
    """The arm on its quintic motion, under the PD law or computed torque; section IV."""
    pd = law == ARM_PD
    given: dict[str, Any] = {
        "organism": examples.arm(ARM_WORD), "name": "arm b-a-b-a-c", "hinges": "physical",
        "motion": "quintic", "target": ARM_GOAL, "duration": 1.0, "move_time": 1.0,
        "controller": "PdGravity" if pd else "ComputedTorque", "feedforward": not pd,
        "gains": {"kp": 250.0, "kd": 30.0} if pd else {"k0": 250.0, "k1": 30.0},
        "noise_q": 0.03, "noise_v": 0.03, "noise_tau": 0.3, "integrator": "SemiImplicitEuler",
        "dt": 5e-5, "sample_time": 5e-5, "record": 1e-3, **changes,
    }  # fmt: skip
    return Scenario(**given)


def _arm_runs(*laws: str) -> dict[str, Scenario]:
    return {law: arm_motion(law) for law in laws}


def _judge_pd(results: Results) -> list[PresetFinding]:
    share = shares_of_the_way(results[ARM_PD])
    return [
        _finding("largest error, of the way [%]", 100 * np.abs(share).max()),
        _finding("error at the end, of the way [%]", 100 * np.abs(share[-1]).max()),
    ]


def _judge_torque(results: Results) -> list[PresetFinding]:
    norms = {
        law: float(np.linalg.norm(shares_of_the_way(result), axis=1).mean())
        for law, result in results.items()
    }
    found = [_finding(f"{law}: mean norm of the error", norm) for law, norm in norms.items()]
    ratio = norms[ARM_PD] / norms[ARM_TORQUE]
    return [*found, _finding("computed torque is better, by a factor of", ratio, ratio > 1)]


# -- moll2006 --------------------------------------------------------------------------------------

TREE_SEEDS = (1, 2, 3, 6)  # the first whose center starts more than half a width off
TREE_LAWS = ("default", "distance", "momentum")
REST_S, QUICK_S, SMALL = 0.3, 0.5, 0.05
TREE_STEP_S = 5e-4  # of the figure: with its friction, rest errors are those of 0.2 ms to 0.001


class TreeOutcome(NamedTuple):
    """The end of a balancing run, not its first crossing.

    Attributes:
        settled: From when on the distance stays below a tenth of the first; None for never. [s]
        rest: Mean distance over the last `REST_S`, as a share of the first.
        speed: Of the fastest joint: some rad/s in a run that converges. [rad/s]
    """

    settled: float | None
    rest: float
    speed: float


def tree_run(seed: int, law: str, **changes: Any) -> Scenario:
    """A random tree of 20 SuperBot modules that balances; section V."""
    given: dict[str, Any] = {
        "organism": examples.superbot_tree(4, 5, np.random.default_rng(seed)), "name": "tree",
        "hinges": "physical", "motion": "balance", "balancing_law": law, "duration": 1.0,
        "drive_friction": 2.0, "dt": 2e-4, "record": 1e-3, **changes,
    }  # fmt: skip
    return Scenario(**given)


def _trees() -> dict[str, Scenario]:
    return {
        f"tree {seed}: {law}": tree_run(seed, law, dt=TREE_STEP_S)
        for seed in TREE_SEEDS
        for law in TREE_LAWS
    }


def tree_outcome(run: Balanced) -> TreeOutcome:
    """Judge a run by its end."""
    share = run.distance / run.distance[0]
    rest = float(share[run.t > run.t[-1] - REST_S].mean())
    return TreeOutcome(run.reached, rest, float(np.abs(run.v).max()))


def tree_sentences(outcomes: Mapping[str, Sequence[TreeOutcome]]) -> dict[str, bool]:
    """Sentences of section V, and whether outcomes by law, one for each tree, support them."""
    times = {
        law: [np.inf if x.settled is None else x.settled for x in each]
        for law, each in outcomes.items()
    }
    firsts = {
        min(times, key=lambda law: times[law][k])
        for k in range(len(TREE_SEEDS))
        if min(each[k] for each in times.values()) < np.inf
    }
    settled = [time < np.inf for each in times.values() for time in each]
    momentum = times["momentum"]
    rests = {law: float(np.median([x.rest for x in each])) for law, each in outcomes.items()}
    beaten = [
        times[law][k] < momentum[k] and outcomes[law][k].rest < outcomes["momentum"][k].rest
        for law in times
        for k in range(len(TREE_SEEDS))
    ]
    return {
        "no law converges first on all trees": len(firsts) > 1,
        "the momentum law converges on all trees, in 0.5 s": max(momentum) < QUICK_S,
        "it leaves at most 5 % of the first distance": max(
            x.rest for x in outcomes["momentum"]
        ) < SMALL,
        "it leaves the least of the three, in the median": min(rests, key=rests.__getitem__)
        == "momentum",
        "another law is faster and leaves less on some tree": any(beaten),
        "more than half of all runs converge": sum(settled) > len(settled) / 2,
    }  # fmt: skip


def _judge_trees(results: Results) -> list[PresetFinding]:
    outcomes = {
        law: [_balanced(results[f"tree {seed}: {law}"]) for seed in TREE_SEEDS] for law in TREE_LAWS
    }
    found = []
    for law, each in outcomes.items():
        text = ", ".join("never" if x.settled is None else f"{x.settled:.2f}" for x in each)
        found.append(PresetFinding(f"{law}: below a tenth for good from [s]", text))
        text = ", ".join(f"{100 * x.rest:.2g}" for x in each)
        found.append(PresetFinding(f"{law}: rest error [%]", text))
    sentences = tree_sentences(outcomes)
    return [*found, *(PresetFinding(what, "", holds) for what, holds in sentences.items())]


def _balanced(result: RunResult) -> TreeOutcome:
    assert result.balanced is not None
    return tree_outcome(result.balanced)


# -- the table -------------------------------------------------------------------------------------


def settled(result: RunResult) -> float:
    """From when on all joints stay within 2 % of their steps. [s]"""
    run = result.trajectory
    goal = result.reference(0.0).q
    outside = np.flatnonzero((np.abs(run.q / goal - 1) > SETTLED).any(axis=1))
    return float(run.t[outside[-1] + 1]) if outside[-1] + 1 < len(run.t) else float("inf")


def shares_of_the_way(result: RunResult) -> np.ndarray:
    """(N, n) errors of the joints as fractions of the ways that they go."""
    run, wanted = result.trajectory, result.reference
    goal = wanted(float(run.t[-1])).q - wanted(0.0).q
    return (run.q - np.array([wanted(t).q for t in run.t.tolist()])) / goal


def _finding(what: str, value: float, holds: bool | None = None) -> PresetFinding:
    return PresetFinding(what, f"{value:.3g}", None if holds is None else bool(holds))


PRESETS: Mapping[str, Preset] = {
    "gutenkunst2012-fig6.4": Preset(
        "Double pendulum, feedback linearization and PID",
        "gutenkunst2012, Fig. 6.4",
        "The pendulum is linearized and decoupled, so that one standard PID controller for each "
        "joint (gains 10, 1, 4) is enough to control it.",
        "Steps of 1 rad; a sample time of 1 ms.",
        ("position", "torque"),
        _thesis_pid,
        _judge_pid,
    ),
    "gutenkunst2012-fig6.6": Preset(
        "Double pendulum, pole placement",
        "gutenkunst2012, Fig. 6.6",
        "The second joint reacts much faster, because the poles of its error are more negative "
        "(-5, -10 against -2, -3).",
        "Steps of 1 rad; gains of (6.43) swapped as the poles demand (erratum 12).",
        ("position", "torque"),
        _thesis_poles,
        _judge_poles,
    ),
    "meister2013-fig13": Preset(
        "Crab, steps under computed torque",
        "meister2013, Fig. 13",
        "Computed torque with PID control stabilizes the nonlinear crab, whose three active "
        "joints are stepped, in an acceptably short time.",
        "Steps of 1, 0.7 and -0.5 rad; gains for a settling time of 1 s. Short is taken as 1.5 s.",
        ("position", "torque"),
        _crab_steps,
        _judge_steps,
    ),
    "meister2013-fig14": Preset(
        "Crab, loop closed over the filter",
        "meister2013, Fig. 14",
        "Not all states can be measured on a robot, so an extended Kalman filter estimates them "
        "for the linearization and the PID controllers.",
        "Steps, sample time 10 ms, noise 0.03 rad, first estimate 0.2 rad off.",
        ("position", "torque"),
        _crab_loops,
        _judge_loops,
    ),
    "meister2013-fig15": Preset(
        "Crab, states and estimates",
        "meister2013, Fig. 15",
        "With the printed Q, W, R and V (52)-(55) the filter estimates angles and rates from "
        "noisy angles; the figure shows output, states, estimates and errors.",
        "Steps, sample time 10 ms, noise 0.03 rad, first estimate 0.2 rad off.",
        ("measured", "position", "estimate", "error of the estimate", "error of the rate"),
        lambda: {"EKF": crab_filter()},
        _judge_filter,
    ),
    "giusti2015-fig7": Preset(
        "Arm b-a-b-a-c, PD with gravity compensation",
        "giusti2015, Fig. 7",
        "The generated PD law with gravity compensation (Kp = 250, Kd = 30) follows a quintic "
        "motion of 1 s, with noise on measurements and torques.",
        "A sample time of 50 µs, which the printed Kd needs on the lightest motion of the arm.",
        ("position", "share", "norm"),
        partial(_arm_runs, ARM_PD),
        _judge_pd,
    ),
    "giusti2015-fig8": Preset(
        "Arm b-a-b-a-c, computed torque",
        "giusti2015, Fig. 8",
        "Computed torque performs better than PD with gravity compensation: the Euclidean norm "
        "of the error, in fractions of the way, is smaller over time.",
        "A sample time of 50 µs, which the printed Kd needs on the lightest motion of the arm.",
        ("position", "share", "norm"),
        partial(_arm_runs, ARM_TORQUE, ARM_PD),
        _judge_torque,
    ),
    "moll2006-fig4": Preset(
        "Four trees, center of mass under three laws",
        "moll2006, Fig. 4",
        "No law is always the best. The momentum law is the best over all: it always converges "
        "quickly and tends to leave a small error. The others are sometimes faster, to a smaller "
        "distance. All do what they should most of the time.",
        "The trees; friction of the drives (2 N m s/rad) and their torque (6 N m); lengths in "
        "widths of a module. Friction decides: docs/papers/moll2006.md has the region of each "
        "sentence.",
        ("distance",),
        _trees,
        _judge_trees,
    ),
}


def preset(name: str) -> Preset:
    """A preset by its name, or an error that lists them."""
    if name not in PRESETS:
        raise UnknownNameError(f"no preset '{name[:40]}': presets are {choices(PRESETS)}")
    return PRESETS[name]
