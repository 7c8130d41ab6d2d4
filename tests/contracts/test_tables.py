"""Laws and gaits from outside appear in every front end by being listed."""

import numpy as np
import pytest
from click.testing import CliRunner

from modurob import Organism, examples
from modurob.cli import cli
from modurob.control import CONTROLLERS, PdGravity, law_class, register
from modurob.control.laws import law_keys
from modurob.distributed.bus.simulated import SimulatedBus
from modurob.gaits import GAITS, Gait
from modurob.gaits import register as register_gait
from modurob.scenario.scenario import Scenario
from modurob.scenario.settings import known


@pytest.fixture
def soft():
    @register("soft-pd", "a PD law with half the gains", settling_time="s")
    class SoftPd(PdGravity):
        name = "soft PD"

        def _choose_gains(self, *given, **shape):
            return [k / 2 for k in super()._choose_gains(*given, **shape)]

    yield SoftPd
    del CONTROLLERS["SoftPd"]


@pytest.fixture
def nod():
    @register_gait
    class Nod(Gait):
        name = "nod"

        def swing(self, t):
            u = t[:, None] * np.ones(len(self.joints))
            return np.sin(u), np.cos(u), -np.sin(u)

    yield Nod
    del GAITS["nod"]


def output(*arguments):
    result = CliRunner().invoke(cli, [str(x) for x in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_law_from_outside_is_offered_on_the_command_line(soft):
    assert "soft-pd" in output("control", "--help").replace("\n", "").replace(" ", "")
    assert "soft-pd" in output("bus", "--help").replace("\n", "").replace(" ", "")
    found = output("control", "crab", "--law", "soft-pd", "--duration", 0.1, "--json")
    assert "soft PD" in found


def test_a_law_from_outside_is_offered_in_the_studio(soft):
    model = examples.crab().model()
    assert "SoftPd" in known("controller")
    law = Scenario(organism="crab", controller="SoftPd", settling_time=0.25).law(model)
    np.testing.assert_allclose(law.kp, PdGravity(model, settling_time=0.25).kp / 2)


def test_a_law_from_outside_drives_modules_on_the_bus(soft):
    assert SimulatedBus("soft-pd").builder.law is soft


def test_every_law_has_a_key_a_line_and_parameters_and_is_found_by_key_and_class():
    assert len(set(law_keys())) == len(CONTROLLERS)
    model = Organism.start("giusti_b").model("physical")
    for name, law in CONTROLLERS.items():
        assert law_class(law.key) is law_class(name) is law
        assert law.summary
        assert law.parameters
        for parameter in law.parameters:  # each is an argument
            with pytest.raises(Exception, match=r".") as caught:
                law(model, **{parameter: "nonsense"})
            assert caught.type is not TypeError


def test_a_gait_from_outside_is_offered_on_the_command_line_and_in_the_studio(nod):
    output("simulate", "snake", "--gait", "nod", "--duration", 0.1)
    assert "nod" in known("motion")
    model = examples.snake(3).model("physical")
    scenario = Scenario(organism=examples.snake(3), motion="nod", controller="PdGravity")
    assert isinstance(scenario.reference(model), nod)
