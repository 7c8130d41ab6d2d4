"""Fields of a scenario: their defaults, and the parts of a run that follow from them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import modurob as mr
from modurob.control import ComputedTorque, OutputFeedback, TrackingController
from modurob.distributed.balancing.plant import GearedDrive
from modurob.drawing import scene
from modurob.gaits import ChaoticMaps, Wave
from modurob.modules.files import read_document, write_document
from modurob.scenario import scenario as scenarios
from modurob.scenario.gait_files import GaitRecord, gait_fields
from modurob.scenario.settings import (
    WALKING,
    EventRecord,
    PayloadRecord,
    PushRecord,
    RunRecord,
    RunSettings,
    known,
)
from oracles import complains

EXACT = 1e-12
DEFAULTS = {
    "hinges": "dyad", "base": "fixed", "gravity": 9.81, "locked": {}, "ground": False,
    "slope": (0, 0), "ground_friction": mr.Ground().friction, "duration": 5, "engine": "modurob",
    "integrator": None, "rtol": 1e-8, "dt": None, "analytic": False, "motion": "none",
    "amplitude": 0.5, "frequency": 1, "ramp": 0, "gait": {}, "target": {}, "move_time": None,
    "points": {}, "feedforward": True, "controller": "none", "settling_time": 1, "poles": (),
    "gains": {}, "torque_limit": 0, "passive": (), "outputs": (), "yielding": "",
    "torque_delay": 0, "sample_time": 0, "masses": 1, "payload": None, "pushes": (),
    "wrench_sensors": False, "estimator": "none", "ekf": {}, "noise_q": 0, "noise_v": 0,
    "noise_tau": 0, "balancing_law": "shared", "loss": 0, "delay": 0,
    "drive_friction": GearedDrive.friction, "stuck": (), "seed": 0, "stops": False, "rates": {},
    "events": (),
}  # fmt: skip
LAW = {"organism": "crab", "controller": "ComputedTorque"}


def test_a_run_without_settings_is_a_free_motion_of_five_seconds():
    assert RunSettings().model_dump() == DEFAULTS
    scenario = mr.Scenario(organism="crab")
    own = {"format": "modurob-scenario", "version": 1, "name": "organism", "pose": {}, "kinds": (),
           "record": None}  # fmt: skip
    assert scenario.model_dump(exclude={"organism"}) == DEFAULTS | own
    gait = GaitRecord(motion="wave")
    for name in ("amplitude", "frequency", "ramp", "gait"):
        assert getattr(gait, name) == DEFAULTS[name]


def test_tolerances_go_down_to_a_hundred_roundings():
    least = 100 * np.finfo(float).eps
    assert mr.Scenario(organism="crab", rtol=least).rtol == least
    with complains(mr.StateError, "rtol: 2.2e-14 is below", "the least is 2.22045e-14"):
        mr.Scenario(organism="crab", rtol=2.2e-14)


def test_a_file_holds_what_differs_from_the_defaults(tmp_path):
    mr.Scenario(organism="crab", duration=5.0, gravity=1.62, rtol=1e-8).save(tmp_path / "x.json")
    data = read_document(tmp_path / "x.json", "modurob-scenario", 1)
    assert {*data} - {"format", "version"} == {"organism", "gravity"}


def test_walkers_have_the_servos_of_the_guide():
    """docs/guide/walking.md: a settling time of 0.1 s, asked every 2 ms."""
    law = {"controller": "PdGravity", "settling_time": 0.1, "sample_time": 0.002}
    assert {"base": "free", "ground": True, **law, "dt": 0.001, "ramp": 0.5} == {**WALKING}


def test_names_have_at_most_64_characters_and_drives_friction_of_no_less_than_zero():
    assert PushRecord(body="x" * 64, force=(1, 0, 0)).body == "x" * 64
    for wrong in ({"base": "x" * 65}, {"drive_friction": -1e-9}, {"duration": 0.0}):
        with complains(mr.StateError, *wrong):
            RunSettings(**wrong)
    assert RunSettings(dt=1e-9, torque_delay=0.0, drive_friction=0.0).dt == 1e-9


@pytest.mark.parametrize(("loss", "delay", "seed"), [(1.0, 0, 0), (0, 1001, 0), (0, 0, 2**32)])
def test_numbers_of_messages_have_limits(loss, delay, seed):
    settings = RunSettings(loss=0.999, delay=1000, seed=2**32 - 1)
    assert (settings.loss, settings.delay, settings.seed) == (0.999, 1000, 4294967295)
    with pytest.raises(mr.StateError):
        RunSettings(loss=loss, delay=delay, seed=seed)


# -- records ---------------------------------------------------------------------------------------


def test_a_push_acts_from_its_begin_for_its_length():
    push = PushRecord(body="m1", force=(1, -2, 3), begin=0.5, length=0.25)
    for t, share in ((0.49, 0), (0.5, 1), (0.74, 1), (0.75, 0)):
        assert push.at(t) == tuple(share * x for x in (1, -2, 3, 0, 0, 0))
    assert push.longest_step == 0.125
    sine = PushRecord(body="m1", moment=(4, 5, 6), frequency=2.0, begin=0.5)
    assert sine.at(0.5 + 1 / 24) == pytest.approx((0, 0, 0, 2, 2.5, 3))  # sin 30 degrees
    assert sine.at(0.25) == (0,) * 6
    assert sine.longest_step == 0.05
    both = PushRecord(body="m1", force=(1, 0, 0), length=0.02, frequency=2.0)
    assert both.longest_step == 0.01
    for_ever = PushRecord(body="m1", force=(0, 0, 1))
    assert (for_ever.begin, for_ever.frequency, for_ever.length) == (0, 0, None)
    assert (for_ever.at(0.0)[2], for_ever.at(1e9)[2], for_ever.longest_step) == (1, 1, np.inf)
    with complains(mr.StateError, "neither a force nor a moment"):
        PushRecord(body="m1")


def test_a_payload_sits_at_the_origin_and_is_unknown_unless_told():
    load = PayloadRecord(body="m1", mass=0.1)
    assert (load.center, load.known) == ((0, 0, 0), False)


def test_faults_are_told_from_changes_of_the_body():
    faults = {}
    for what in ("dock", "undock", "freeze", "die", "reboot"):
        faults[what] = EventRecord(what=what, time=0, module="m1").is_fault
    assert faults == {"dock": False, "undock": False, "freeze": True, "die": True, "reboot": True}


def test_runs_are_counted_from_one_and_stay_until_they_are_removed():
    given = {"title": "x", "status": "finished", "seconds": 1, "took": 0, "settings": RunSettings()}
    assert not RunRecord(number=1, **given).removed
    assert RunRecord(number=999_999, **given).message == ""
    for wrong in ({"number": 0}, {"number": 10**6}, {"title": ""}):
        with complains(mr.StateError, *wrong):
            RunRecord(**{"number": 1, **given, **wrong})


# -- what follows from settings --------------------------------------------------------------------


def test_a_run_is_told_in_a_few_words():
    law = {"controller": "ComputedTorque", "motion": "wave"}
    event = {"what": "undock", "time": 1, "module": "m1"}
    for settings, words in (
        ({}, "no controller, free motion"),
        ({"events": [event]}, "no controller, free motion, 1 event"),
        ({**law, "estimator": "Ekf", "events": [event] * 2},
         "computed torque, wave, EKF, 2 events"),
        ({**law, "analytic": True}, "computed torque, wave, formulas"),
        ({**law, "ground": True}, "computed torque, wave, on the ground"),
        ({"motion": "balance"}, "balance by messages, shared law"),
        ({"motion": "balance", "loss": 0.125}, "balance by messages, shared law, 12.5 % lost"),
    ):  # fmt: skip
        assert RunSettings(**settings).summary == words


def test_runs_with_noise_lost_messages_or_chaotic_gaits_are_random():
    for fields, random in (
        ({}, False),
        ({"motion": "wave"}, False),
        ({"motion": "chaotic"}, True),
        ({"motion": "balance", "noise_q": 1}, False),
        ({"motion": "balance", "loss": 0.1}, True),
        ({"loss": 0.1}, False),
        *(({name: 1e-3}, True) for name in ("noise_q", "noise_v", "noise_tau")),
    ):
        assert RunSettings(**fields).random is random


def test_steps_are_equal_for_mujoco_and_for_methods_that_take_them():
    for fields, equal in (
        ({}, False),
        ({"integrator": "DOP853"}, False),
        ({"integrator": "RK4"}, True),
        ({"engine": "mujoco"}, True),
        ({"ground": True}, True),
    ):
        assert RunSettings(**fields).fixed_step is equal
    assert RunSettings().method.name == "RK45"


def test_names_of_laws_motions_methods_and_engines_are_known():
    assert known("controller")[0] == known("motion")[0] == "none"
    assert {"hold", "zero", "step", "quintic", "spline", "balance", "wave"} < {*known("motion")}
    assert known("engine") == ("modurob", "mujoco")
    assert "RK45" in known("integrator")
    assert RunSettings(controller="computed-torque").controller == "ComputedTorque"
    assert RunSettings(integrator=None).integrator is None
    for field in ("controller", "motion", "integrator", "engine"):
        with complains(mr.StateError, f"{field}: must be one of", known(field)[-1]):
            RunSettings(**{field: "dance"})


@pytest.mark.parametrize("value", ["abc", (), float("nan"), [[[1.0]]], ((1, 2), (3,)), {}])
def test_gains_are_finite_numbers_which_is_said_once(value):
    with pytest.raises(mr.StateError) as caught:
        RunSettings(gains={"k0": value})
    words = "takes finite numbers: one, one for each joint, or the rows of a matrix"
    assert str(caught.value).count("gains") == 1
    assert words in str(caught.value)


def test_the_ground_has_a_slope_and_a_friction_where_there_is_ground():
    fields = {"slope", "ground_friction", "wrench_sensors"}
    for settings, idle in (
        ({"controller": "ComputedTorque"}, fields),
        ({"controller": "ComputedTorque", "ground": True}, set()),
        ({"motion": "balance", "ground": True}, fields),
    ):
        assert fields & RunSettings(**settings).without_effect().keys() == idle


def test_points_are_columns_of_equal_lengths_with_times():
    assert RunSettings(points={}).points == {}
    for wrong in ({"m1.hinge": (1, 2)}, {"time": (0, 1), "m1.hinge": (1,)}):
        with complains(mr.StateError, "rows of equal lengths by joint, and one for 'time'"):
            RunSettings(points=wrong)


# -- parts of a run --------------------------------------------------------------------------------


def test_a_pose_and_rates_are_those_of_the_joints_of_a_free_body_too():
    fields = {"pose": {"m3.hinge": 0.2}, "rates": {"m5.hinge": -0.7}}
    body = mr.Scenario(organism="crab", base="free", **fields)
    model = body.model()
    q, v = body.start(model)
    np.testing.assert_array_equal(q, [*model.neutral()[:7], 0, 0.2, 0])
    np.testing.assert_array_equal(v, [0] * 6 + [0, 0, -0.7])


def test_masses_and_payload_are_those_of_the_plant_and_only_known_ones_of_the_law():
    load = {"body": "m3", "mass": 0.5}
    bare = mr.Scenario(**LAW).model().mass.sum()
    for fields, law, plant in (
        ({"masses": 1.5}, bare, 1.5 * bare),
        ({"payload": load}, bare, bare + 0.5),
        ({"payload": {**load, "known": True}}, bare + 0.5, bare + 0.5),
        ({"payload": load, "masses": 2}, bare, 2 * bare + 0.5),
    ):
        scenario = mr.Scenario(**LAW, **fields)
        assert scenario.model().mass.sum() == pytest.approx(law)
        assert scenario.plant().mass.sum() == pytest.approx(plant)


def test_bodies_are_lifted_onto_the_ground_or_the_ground_lies_below_them():
    """Cubes of 0.1 m, whose corners reach 0.05 m below the origin; on a slope the ends do more."""
    fields = {"organism": "snake", "ground": True, "ground_friction": 0.3}
    free = mr.Scenario(**fields, base="free")
    model = free.model()
    start = model.neutral()
    ground, q, note = free.on_ground(model, start)
    np.testing.assert_allclose(q - start, [0, 0, 0.05, *[0] * (model.nq - 3)], atol=1e-9)
    assert not start[:3].any()
    assert (ground.friction, ground.slope, ground.height) == (0.3, (0, 0), 0)
    assert note == "Placed on the ground: raised by 0.05 m."
    ground, again, note = free.on_ground(model, q)
    assert (note, again is q) == ("", True)
    tilted = free.edited(slope=(0.5, -0.25))
    ground, q, _ = tilted.on_ground(model, start)
    assert ground.slope == (0.5, -0.25)
    corners = scene.build(free.organism, model, start).points
    assert q[2] == pytest.approx(np.max(corners @ [0.5, -0.25, -1.0]), abs=1e-6)
    held = mr.Scenario(**fields)
    model = held.model()
    ground, q, note = held.on_ground(model, model.neutral())
    np.testing.assert_array_equal(q, model.neutral())
    assert ground.height == pytest.approx(-0.05)
    assert ground.friction == 0.3
    assert note == "The ground is 0.05 m below the origin: the body reaches there."
    none = mr.Scenario(organism="snake", base="free").on_ground(model, q)
    assert (none[0], none[1] is q, none[2]) == (None, True, "")


def test_a_body_that_is_pushed_is_not_free():
    push = PushRecord(body="m1", force=(1, 0, 0))
    assert not mr.Scenario(organism="crab", pushes=[push]).free


def test_a_run_on_its_motion_starts_with_the_place_and_the_velocity_of_it():
    scenario = mr.Scenario(**LAW, motion="wave", gait={"phase": 0.4})
    reference = scenario.reference(scenario.model())
    started = scenario.on_motion()
    names = scenario.model().joint_names
    assert [started.pose[name] for name in names] == reference(0.0).q.tolist()
    assert [started.rates[name] for name in names] == reference(0.0).v.tolist()
    assert np.all(reference(0.0).v != 0)
    with complains(mr.StateError, "motion 'none' has no start of its own"):
        mr.Scenario(organism="crab").on_motion()
    still = mr.Scenario(organism="crab", motion="balance", hinges="physical")
    assert still.reference(still.model()) is None


def test_smooth_motions_take_half_of_the_run_unless_told():
    for motion, goal in (("zero", 0.0), ("quintic", 0.5)):
        target = {"target": {"m1.hinge": 0.5}} if motion == "quintic" else {}
        fields = {**LAW, "motion": motion, "pose": {"m1.hinge": 0.3}, **target, "duration": 4.0}
        for scenario, end in (
            (mr.Scenario(**fields), 2.0),
            (mr.Scenario(**fields, move_time=1.0), 1.0),
        ):
            reference = scenario.reference(scenario.model())
            assert reference(0.0).q[0] == pytest.approx(0.3)
            assert reference(end / 2).q[0] == pytest.approx((0.3 + goal) / 2)
            assert reference(end).q[0] == pytest.approx(goal)
            assert reference(0.99 * end).v[0] != 0
    slow = mr.Scenario(**fields, move_time=4.0)
    assert slow.reference(slow.model())(4.0).q[0] == pytest.approx(0.5)
    with complains(mr.StateError, "move_time: the motion takes 4.1 s, but the run ends at 4 s"):
        slow.edited(move_time=4.1).run()


def test_places_beyond_limits_are_refused_with_the_unit_of_the_joint():
    body = mr.examples.arm().with_parameters("m4", limits=(-0.05, 0.15))
    arm = {"organism": body, "hinges": "physical", "controller": "ComputedTorque"}
    points = {"time": (0, 1, 2), "m1.joint": (0, 0.1, 0.2), "m4.joint": (0.0, 0.1, 9.0)}
    scenario = mr.Scenario(**arm, motion="steps", points=points)
    model = scenario.model()
    with complains(mr.StateError, "points: m4.joint at 9 m is beyond its limits, -0.05 to 0.15 m"):
        scenario.reference(model)
    crab = mr.Scenario(**LAW, motion="step")
    model = crab.model()
    edge = float(model.upper[2])
    for goal in (edge + 5e-10, -edge - 5e-10):  # rounding of degrees
        crab.edited(target={"m5.hinge": goal}).reference(model)
    with complains(mr.StateError, "target: m5.hinge at 90.06° is beyond its limits, -90 to 90°"):
        crab.edited(target={"m5.hinge": edge + 1e-3}).reference(model)
    with complains(mr.StateError, "target: m3.hinge at -90.06°"):
        crab.edited(target={"m3.hinge": -edge - 1e-3}).reference(model)
    with complains(mr.StateError, "motion 'steps' needs times and places"):
        crab.edited(motion="steps").reference(model)


def test_amplitudes_of_gaits_are_shares_of_the_limits_or_numbers_by_joint():
    scenario = mr.Scenario(**LAW, motion="wave")
    model = scenario.model()
    usual = Wave.for_model(model).amplitude
    for amplitude in (0.5, 0.125):
        found = scenario.edited(amplitude=amplitude).reference(model).amplitude
        np.testing.assert_allclose(found, usual * amplitude / 0.5, rtol=EXACT)
    own = {"m1.hinge": 0.1, "m3.hinge": 0.2, "m5.hinge": 0.3}
    found = scenario.edited(gait={"amplitude": own}).reference(model)
    np.testing.assert_allclose(found.amplitude, [0.1, 0.2, 0.3], rtol=EXACT)
    with complains(mr.StateError, "gait: amplitude needs joints", "got 0.3: for all joints"):
        scenario.edited(gait={"amplitude": 0.3}).reference(model)
    slow = scenario.edited(frequency=0.25, ramp=0.5).reference(model)
    assert {*np.ravel(slow.frequency)} == {0.25}
    assert slow.ramp == 0.5


def test_chaotic_gaits_are_those_of_the_seed():
    scenario = mr.Scenario(**LAW, motion="chaotic", seed=7)
    model = scenario.model()
    expected = ChaoticMaps.for_model(model, rng=np.random.default_rng(7))
    np.testing.assert_array_equal(scenario.reference(model)(1.3).q, expected(1.3).q)


def test_laws_have_the_clock_the_gains_and_the_limits_that_are_given():
    scenario = mr.Scenario(**LAW, motion="hold")
    model = scenario.model()
    assert mr.Scenario(organism="crab").law(model) is None
    assert scenario.clock == 0
    assert scenario.law(model).sample_time is None
    for fields, clock in (
        ({"noise_tau": 0.1}, 0.005),
        ({"estimator": "Ekf"}, 0.005),
        ({"estimator": "Ekf", "sample_time": 0.02}, 0.02),
    ):
        timed = scenario.edited(**fields)
        assert timed.clock == timed.law(model).sample_time == clock
    pairs = [-2, -3, -4, -5, -6, -7]
    poles = {"controller": "PolePlacement"}
    for given, k0, k1 in (
        (pairs, [6, 20, 42], [5, 9, 13]),
        (pairs[:2], [6] * 3, [5] * 3),
    ):
        law = scenario.edited(**poles, poles=given).law(model)
        np.testing.assert_allclose(np.broadcast_to(law.k0, 3), k0)
        np.testing.assert_allclose(np.broadcast_to(law.k1, 3), k1)
    quick = scenario.edited(settling_time=0.25).law(model)
    assert quick.settling_time == 0.25
    gains = scenario.edited(gains={"k0": 9.0, "k1": 6.0}).law(model)
    assert np.unique(gains.k0) == 9
    linear = mr.Scenario(
        organism="crab", controller="Lqr", motion="step", target={"m3.hinge": 0.4}
    ).law(model)
    np.testing.assert_array_equal(linear.set_point, [0, 0.4, 0])
    for fields, words in (
        ({"yielding": "m3"}, "yielding: ComputedTorque has no body that yields"),
        ({"outputs": ("m1.hinge",)}, "ComputedTorque has no outputs: it takes"),
    ):
        with complains(mr.StateError, words):
            scenario.edited(**fields).law(model)


def test_filters_start_at_a_first_measurement_or_at_the_state():
    scenario = mr.Scenario(
        **LAW, base="free", motion="hold", estimator="Ekf", noise_q=0.1, ekf={"V": (1.0,) * 3},
    )  # fmt: skip
    model = scenario.model()
    q, v = scenario.start(model)
    found = scenario._estimator(model, q, v, np.random.default_rng(5))
    noise = 0.1 * np.random.default_rng(5).standard_normal(3)
    np.testing.assert_allclose(found.q, [*q[:7], *noise], rtol=EXACT)
    exact = scenario._estimator(model, q, v, None)
    np.testing.assert_array_equal(exact.q, q)
    fixed = mr.Scenario(
        **LAW, motion="hold", estimator="Ekf", noise_q=0.1,
        ekf={"q": (0.3, 0.2, 0.1), "W": (1.0, 2, 3, 4, 5, 6), "V": (7.0, 8, 9)},
    )  # fmt: skip
    model = fixed.model()
    found = fixed._estimator(model, *fixed.start(model), np.random.default_rng(5))
    np.testing.assert_array_equal(found.q, [0.3, 0.2, 0.1])
    np.testing.assert_array_equal(found.W, np.diag([1.0, 2, 3, 4, 5, 6]))
    np.testing.assert_array_equal(found.V, np.diag([7.0, 8, 9]))


@pytest.mark.parametrize(
    ("fields", "step"),
    [
        ({}, None),
        ({"dt": 0.3}, 0.3),
        ({"pushes": [{"length": 0.02}, {"length": 0.5}]}, 0.01),
        ({"pushes": [{"length": 0.02}], "dt": 0.3}, 0.3),
        ({"pushes": [{"length": 0.02}], "integrator": "RK4"}, None),
        ({"pushes": [{}]}, None),
        ({"pushes": [{}, {"length": 9.0}]}, 2.0),
    ],
)
def test_steps_are_short_enough_to_see_every_push(fields, step):
    fields = dict(fields)
    if "pushes" in fields:
        fields["pushes"] = [{"body": "m1", "force": (1, 0, 0), **x} for x in fields["pushes"]]
    assert mr.Scenario(organism="crab", duration=2.0, **fields)._longest_step() == step


def test_sines_are_at_most_half_as_fast_as_equal_steps():
    def demand(frequency, **fields):
        push = PushRecord(body="m1", force=(1, 0, 0), frequency=frequency)
        mr.Scenario(organism="crab", **fields)._demand_resolved(push)

    demand(500.0, integrator="RK4")  # 1 ms by default
    demand(50.0, integrator="RK4", dt=0.01)
    demand(1e6)
    with complains(mr.StateError, "501 Hz on m1 is above 500 Hz", "steps of 0.0002 s"):
        demand(501.0, integrator="RK4")
    with complains(mr.StateError, "51 Hz on m1 is above 50 Hz", "steps of 0.002 s"):
        demand(51.0, dt=0.01)


# -- the call of simulate --------------------------------------------------------------------------


@pytest.fixture
def called(monkeypatch):
    """Arguments of `simulate`, in place of a run."""
    found = []

    def simulate(plant, q, v, duration, **given):
        found.append({"plant": plant, "q": q, "v": v, "duration": duration, **given})
        audit = [SimpleNamespace(time=0.5, what="undock m5")]
        return SimpleNamespace(audit=audit)

    monkeypatch.setattr(scenarios, "simulate", simulate)
    return found


def test_a_free_motion_is_simulated_as_it_is_given(called):
    scenario = mr.Scenario(
        organism="crab", duration=0.3, rates={"m1.hinge": 1.0}, rtol=1e-5, dt=0.1, stops=True,
        integrator="LSODA", record=0.02,
    )  # fmt: skip
    result = scenario.run()
    (found,) = called
    assert found.pop("q").tolist() == [0, 0, 0]
    assert found.pop("v").tolist() == [1, 0, 0]
    assert found.pop("plant").mass.sum() == scenario.model().mass.sum()
    assert found == {
        "duration": 0.3, "controller": None, "integrator": "LSODA", "rtol": 1e-5, "dt": 0.1,
        "external": {}, "wrench_sensors": False, "events": [], "rng": None, "noise": None,
        "stops": True, "ground": None, "record": 0.02, "organism": scenario.organism,
        "progress": False, "engine": "modurob",
    }  # fmt: skip
    assert (result.law, result.reference, result.ground, result.note) == (None, None, None, "")


def test_a_closed_loop_is_simulated_with_sensors_noise_and_events(called):
    scenario = mr.Scenario(
        **LAW, motion="wave", duration=0.3, noise_q=0.1, noise_v=0.2, noise_tau=0.3, seed=4,
        wrench_sensors=True, pushes=[{"body": "m1", "force": (1, 0, 0), "begin": 0.25}],
        estimator="Ekf", engine="mujoco", pose={"m1.hinge": 2.0},
        events=[{"what": "undock", "time": 0.1, "module": "m5"}],
    )  # fmt: skip
    result = scenario.run(progress=print)
    (found,) = called
    assert (found["integrator"], found["engine"]) == (None, "mujoco")
    assert (found["wrench_sensors"], found["progress"]) == (True, print)
    assert found["noise"] == mr.sim.Noise(0.1, 0.2, 0.3)
    assert found["events"] == [mr.Undock(0.1, "m5")]
    assert [*found["external"]] == ["m1"]
    assert isinstance(found["controller"], TrackingController)
    assert isinstance(found["controller"].law, OutputFeedback)
    assert isinstance(result.law, ComputedTorque)
    assert result.reference(0.1).q.shape == (3,)
    assert [tuple(mark) for mark in result.marks] == [(0.25, "push m1"), (0.5, "undock m5")]
    assert result.note.startswith("The start of m1.hinge at 114.6° is beyond its limits")
    # the law's first measurement is drawn before the noise of the run
    drawn = np.random.default_rng(4)
    drawn.standard_normal(3)
    assert found["rng"].uniform() == drawn.uniform()


def test_a_law_without_a_motion_or_sensors_is_simulated_alone(called):
    mr.Scenario(**LAW, pushes=[{"body": "m1", "force": (1, 0, 0)}]).run()
    (found,) = called
    assert isinstance(found["controller"], ComputedTorque)
    assert found["wrench_sensors"] is False


def test_smooth_motions_may_take_the_whole_run_and_runs_may_be_short(called):
    scenario = mr.Scenario(**LAW, motion="zero", pose={"m1.hinge": 0.1}, duration=0.01)
    scenario.run()
    scenario.edited(move_time=0.01).run()
    assert [each["duration"] for each in called] == [0.01, 0.01]


def test_formulas_replace_the_numbers_of_the_plant(called):
    scenario = mr.Scenario(organism=mr.examples.snake(2), analytic=True, duration=0.1)
    scenario.run()
    assert isinstance(called[0]["plant"], mr.symbolic.Equations)
    for fields in ({"masses": 1.1}, {"payload": {"body": "m1", "mass": 0.1}}):
        with complains(mr.StateError, "analytic: formulas have the masses of the datasheets"):
            scenario.edited(**fields).run()


EVENT = {"what": "undock", "time": 0.1, "module": "m5"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"noise_v": 0.1}, "noise acts on what a controller sees and does"),
        ({"pushes": [{"body": "m1", "force": (1, 0, 0), "begin": 5.0}]},
         "m1 is pushed from 5 s on, but the run ends at 5 s"),
        ({"pushes": [{"body": "m1", "force": (1, 0, 0), "frequency": 300}], "dt": 0.01},
         "300 Hz on m1 is above 50 Hz"),
        ({"events": [{**EVENT, "what": "die"}]}, "'die m5' is for bodies that balance"),
        ({"events": [EVENT], "masses": 1.1}, "masses: a body that events change has the masses"),
        ({"events": [EVENT], "payload": {"body": "m1", "mass": 1}}, "payload: a body that events"),
        ({"analytic": True, "ground": True}, "analytic: formulas have no ground"),
        ({"motion": "balance"}, "balancing is for physical hinges on a fixed base"),
        ({"motion": "balance", "hinges": "physical", "base": "free"}, "physical hinges on a fixed"),
        ({"motion": "balance", "hinges": "physical", "events": [EVENT]}, "has no dockings"),
    ],
)  # fmt: skip
def test_what_cannot_be_simulated_is_refused_before_it_starts(called, fields, words):
    with complains(mr.StateError, words):
        mr.Scenario(organism="crab", **fields).run()
    assert not called


def test_dockings_bring_modules_of_the_catalog_or_of_the_scenario():
    own = mr.ModuleType(**{**mr.catalog["scout"].model_dump(), "name": "mine"})
    dock = {"what": "dock", "time": 0.1, "module": "m5", "port": 3, "child": "m6", "child_port": 4}
    for kind, expected in ((None, None), ("backbone", "backbone"), ("mine", own)):
        scenario = mr.Scenario(organism="crab", kinds=(own,), events=[{**dock, "kind": kind}])
        assert scenario._dockings() == [mr.Dock(0.1, "m5", 3, "m6", 4, kind=expected)]


def test_balancing_runs_have_the_options_that_are_given(monkeypatch):
    seen = []

    def balance(organism, law, **given):
        seen.append({"law": law, **given})
        run = mr.simulate(mr.examples.arm().model("physical"), None, None, 0.01).parts[0]
        return SimpleNamespace(parts=(run,), channels={}, estimate_errors=run.t, sent=run.t)

    monkeypatch.setattr(scenarios, "balance", balance)
    monkeypatch.setattr(scenarios, "replace", lambda value, **fields: SimpleNamespace(**fields))
    scenario = mr.Scenario(
        organism="arm", hinges="physical", motion="balance", loss=0.25, delay=3, seed=9,
        stuck=("m2.joint",), gravity=1.6, pose={"m1.joint": 0.3}, drive_friction=0.7,
        balancing_law="momentum", duration=0.5,
        events=[{"what": "die", "time": 0.2, "module": "m1"}],
    )  # fmt: skip
    result = scenario.run()
    (found,) = seen
    assert found.pop("rng").uniform() == np.random.default_rng(9).uniform()
    assert found.pop("q0").tolist() == [0, 0.3, 0, 0, 0]
    assert found.pop("drive") == GearedDrive(friction=0.7)
    (fault,) = found.pop("faults")
    assert (fault.time, fault.module, fault.kind) == (0.2, "m1", "die")
    assert found == {
        "law": "momentum", "duration": 0.5, "loss": 0.25, "delay": 3, "stuck": ("m2.joint",),
        "gravity": 1.6, "progress": None,
    }  # fmt: skip
    assert [tuple(mark) for mark in result.marks] == [(0.2, "die m1")]
    scenario.edited(record=0.1, dt=0.01).run(progress=print)
    assert (seen[1]["record"], seen[1]["dt"], seen[1]["progress"]) == (0.1, 0.01, print)


def test_differences_of_nothing_are_zero():
    one = SimpleNamespace(q=np.zeros((0, 2)), t=np.zeros(0))
    other = SimpleNamespace(at=lambda t: (np.zeros((0, 2)), None))
    assert scenarios.largest_difference(one, other) == 0


# -- files of gaits --------------------------------------------------------------------------------


def test_a_gait_is_a_name_or_a_file_and_keeps_what_was_given(tmp_path):
    given = GaitRecord(motion="wave", ramp=0.5, gait={"lag": 0.3})
    given.save(tmp_path / "g.json")
    expected = {"motion": "wave", "ramp": 0.5, "gait": {"lag": 0.3}}
    assert {key: given.fields()[key] for key in expected} == expected == given.fields()
    for path in (tmp_path / "g.json", str(tmp_path / "g.json")):
        assert GaitRecord.load(path) == given
        assert gait_fields(path).items() >= expected.items()
        assert not {"format", "version"} & gait_fields(path).keys()
    assert gait_fields("wave") == {"motion": "wave"}
    made = GaitRecord.of(RunSettings(motion="wave", amplitude=0.25, frequency=2, ramp=3,
                                     gait={"lag": 1}))  # fmt: skip
    assert (made.motion, made.amplitude, made.frequency, made.ramp, made.gait) == (
        "wave", 0.25, 2, 3, {"lag": 1}
    )  # fmt: skip
    with complains(mr.UnknownNameError, "dance"):
        gait_fields("dance")
    for wrong in ({"motion": "dance"}, {"motion": "wave", "ramp": -1}):
        document = {"format": "modurob-gait", "version": 1, **wrong}
        write_document(tmp_path / "wrong.json", document)
        with complains(mr.FileError, "wrong.json: "):
            GaitRecord.load(tmp_path / "wrong.json")
