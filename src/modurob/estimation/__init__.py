"""Estimation: states of a body from what its joints measure."""

from modurob.estimation.covariance import Consistency, chi_square, consistency
from modurob.estimation.ekf import Ekf, Innovation
from modurob.estimation.sensors import ekf_for_sensors

__all__ = ["Consistency", "Ekf", "Innovation", "chi_square", "consistency", "ekf_for_sensors"]
