"""Settings that all tests share."""

import os

from hypothesis import HealthCheck, settings

# The same examples on every run and machine: a red test is red for everybody. To search further:
# HYPOTHESIS_PROFILE=search pytest
SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "ci", deadline=None, derandomize=True, max_examples=50, suppress_health_check=SLOW_IS_FINE
)
settings.register_profile(
    "search", deadline=None, max_examples=1000, suppress_health_check=SLOW_IS_FINE
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
