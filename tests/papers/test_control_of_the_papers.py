"""How the papers' controllers and filters are judged: the judges see mistakes."""

from __future__ import annotations

import numpy as np
import pytest
from papers.giusti2015 import control as giusti
from papers.giusti2015 import seeds, setting
from papers.gutenkunst2012 import control as thesis
from papers.meister2013 import estimation

from modurob import Model, examples, simulate
from modurob.control import ComputedTorque, PdGravity
from modurob.manipulator import ne_mod
from modurob.sim import SimulationError

ROUNDING = 1e-12
RICCATI = 1e-6  # what the claim allows
WRONG = 0.01  # of a pole: what the claims allow


def arm() -> Model:
    return examples.arm(setting.WORD).model("physical")


# -- gutenkunst2012 --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("poles", "weights"),
    [
        ((-2, -3), (3, -2)),
        ((-5, -10), (1, 2)),
        ((-0.1, -2 + 2.4j, -2 - 2.4j), (1, 0.5 - 1j, 0.5 + 1j)),
    ],
)
def test_poles_are_found_from_a_response_alone(poles, weights):
    t = np.linspace(0, 4, 101)
    response = (np.exp(np.outer(t, poles)) @ weights).real
    found = thesis.measured_poles(t, response, len(poles))
    assert thesis._off(found, np.array(poles)) < 1e-6
    assert thesis._off(found, 1.02 * np.array(poles)) > WRONG


def test_the_printed_gains_do_not_have_the_poles():
    model = examples.double_pendulum().model("physical")
    law = ComputedTorque(model, *thesis.PRINTED)
    run = thesis._stepped(model, law, thesis.BOTH, thesis.POLE_TIME)
    for q, known in zip(run.q.T, thesis.POLES, strict=True):
        assert thesis._off(thesis.measured_poles(run.t, 1 - q, 2), np.array(known)) > 0.3


def test_extrapolation_removes_all_powers_but_the_last():
    steps = np.array([0.8, 0.4, 0.2, 0.1])
    values = [np.array([7 + 3 * h - 2 * h**2 + 5 * h**3]) for h in steps]
    assert thesis.extrapolated(values)[0] == pytest.approx(7, abs=ROUNDING)
    further = [x + h**4 for x, h in zip(values, steps, strict=True)]
    assert abs(thesis.extrapolated(further)[0] - 7) == pytest.approx(np.prod(steps))


def test_a_coupled_pendulum_would_be_seen():
    """Without the inertia between the joints, the one that is not stepped moves."""
    model = examples.double_pendulum().model("physical")

    def uncoupled(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        wanted = [6, 50] * (thesis.FIRST - q) - [5, 15] * v
        bias = model.inverse_dynamics(q, v, np.zeros(2))
        return np.diag(model.mass_matrix(q)) * wanted + bias

    run = simulate(model, None, None, 1.0, uncoupled, record=thesis.RECORD)
    assert np.abs(run.q[:, 1]).max() > 0.05


# -- giusti2015 ------------------------------------------------------------------------------------


def test_the_batched_laws_are_the_controllers():
    model, rng = arm(), np.random.default_rng(0)
    q, v = rng.standard_normal((2, len(seeds.LAWS), 4, model.nv))
    aim = setting.MOTION(0.4)
    found = seeds._commands(model, q, v, *aim)
    torque = ComputedTorque(model, k0=setting.KP, k1=setting.KD)
    pd = PdGravity(model, kp=setting.KP, kd=setting.KD)
    for k, (law, reference) in enumerate(((torque, aim), (pd, giusti.resting(0.4)), (pd, aim))):
        right = [law.command(0.4, *each, reference) for each in zip(q[k], v[k], strict=True)]
        if law is pd:  # the document's law does not compensate friction
            right = np.array(right) - model.viscous * reference.v
        np.testing.assert_allclose(found[k], right, rtol=ROUNDING, atol=ROUNDING)


def test_the_laws_are_nemod_of_the_datasheets():
    organism, rng = examples.arm(setting.WORD), np.random.default_rng(1)
    kinds = [organism.kind(name) for name in organism.modules]
    q, v = rng.standard_normal((2, 5))
    aim = giusti.resting(0.7)
    pd = PdGravity(organism.model("physical"), kp=setting.KP, kd=setting.KD)
    right = ne_mod(q, 0 * q, 0 * q, kinds) + setting.KP * (aim.q - q) - setting.KD * v
    np.testing.assert_allclose(pd.command(0, q, v, aim), right, rtol=ROUNDING)


def test_the_pd_law_needs_the_sample_time_that_is_used():
    model = arm()
    lightest = np.linalg.eigvalsh(model.mass_matrix(np.zeros(5)))[0]
    longest = 2 * lightest / setting.KD
    assert setting.SAMPLE < longest < 1.5 * setting.SAMPLE
    law = PdGravity(model, kp=setting.KP, kd=setting.KD)
    start, near = np.full(5, 1e-3), {}
    for sample in (setting.SAMPLE, 2 * longest):
        try:
            run = simulate(
                model, start, None, 0.02, law, "SemiImplicitEuler", dt=sample,
                sample_time=sample, reference=np.zeros(5),
            )  # fmt: skip
            near[sample] = np.abs(run.q).max()
        except SimulationError:
            near[sample] = np.inf
    assert near[setting.SAMPLE] <= 1e-3 < near[2 * longest]


def test_seeds_are_independent_and_share_their_noise_among_laws(monkeypatch):
    monkeypatch.setattr(seeds, "DURATION", 0.02)
    model = arm()
    two = seeds.errors(model, [1, 1])
    np.testing.assert_array_equal(seeds.errors(model, [1])[:, 0], two[:, 0])
    assert not np.array_equal(two[:, 0], two[:, 1])
    held = seeds.errors(model, [20])
    assert not np.array_equal(held[:, 0], two[:, 0])


def test_integrals_of_norms():
    norms = seeds.norms(np.full((2, 1001, 4), 0.5))
    np.testing.assert_allclose(norms, 1.0)
    np.testing.assert_allclose(seeds.integrated(norms), [1.0, 1.0])


# -- meister2013 -----------------------------------------------------------------------------------


def test_the_riccati_equation_sees_a_wrong_jacobian(monkeypatch):
    model = examples.crab().model()
    assert estimation._riccati(model) < RICCATI
    rates = estimation._rates(model, estimation.STEP)
    rates[3:] *= 1.001
    monkeypatch.setattr(estimation, "_rates", lambda *_: rates)
    assert estimation._riccati(model) > RICCATI


def test_an_estimate_that_is_the_measurement_gains_nothing():
    class Run:
        q = v = np.zeros((100, 3))
        noise = 0.1 * np.random.default_rng(0).standard_normal((100, 3))
        channels = {  # noqa: RUF012
            "measured_q": noise,
            "estimate_q": noise,
            "estimate_v": np.gradient(noise, estimation.SAMPLE, axis=0),
        }

    runs = [Run()]
    assert estimation._gain_of_angles(runs) == pytest.approx(1.0)  # pyright: ignore
    assert estimation._gain_of_rates(runs) == pytest.approx(1.0)  # pyright: ignore
