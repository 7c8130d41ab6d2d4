"""Torque of a joint that follows a sine, over any scalar."""

from __future__ import annotations

from typing import Any, NamedTuple

from modurob.spatial.scalars import cos, maximum, minimum, sin


class Servo(NamedTuple):
    """A sine ``offset + amplitude sin(rate t + phase)``, gains and a torque limit."""

    amplitude: Any
    rate: Any
    phase: Any
    offset: Any
    kp: Any
    kd: Any
    limit: Any


def servo_torque(servo: Servo, angle: Any, q: Any, v: Any) -> Any:
    """``kp (q_ref - q) + kd (v_ref - v)``, within the limit.

    Args:
        angle: ``rate t + phase`` of the sine. [rad]
    """
    q_ref = servo.offset + servo.amplitude * sin(angle)
    v_ref = servo.amplitude * servo.rate * cos(angle)
    tau = servo.kp * (q_ref - q) + servo.kd * (v_ref - v)
    return maximum(minimum(tau, servo.limit), -servo.limit)
