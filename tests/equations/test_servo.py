"""The torque of a servo against its law, and the sine that it follows."""

import math

import pytest

from modurob.equations.servo import Servo, servo_torque

SERVO = Servo(amplitude=0.6, rate=3.0, phase=0.4, offset=0.2, kp=5.0, kd=0.7, limit=100.0)


@pytest.mark.parametrize("t", [0.0, 0.31, 2.0])
def test_a_servo_pulls_toward_its_sine_and_its_rate(t):
    q, v = 0.35, -1.3
    wanted = 0.2 + 0.6 * math.sin(3 * t + 0.4)
    rate = 0.6 * 3 * math.cos(3 * t + 0.4)
    found = servo_torque(SERVO, 3 * t + 0.4, q, v)
    assert found == pytest.approx(5 * (wanted - q) + 0.7 * (rate - v), rel=1e-14)


@pytest.mark.parametrize(("q", "torque"), [(10.0, -2.5), (-10.0, 2.5)])
def test_its_torque_is_limited_both_ways(q, torque):
    assert servo_torque(SERVO._replace(limit=2.5), 0.0, q, 0.0) == torque
