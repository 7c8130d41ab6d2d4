"""Settings that all tests share."""

import os

import pytest
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


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items):
    """Which worker runs what, if there are several: whole files, so that fixtures are made once.

    All tests that need a browser share one worker, its server and its browser, and go first: they
    take longest.
    """
    items.sort(key=lambda item: not _needs_browser(item))
    for item in items:
        group = "browser" if _needs_browser(item) else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


def _needs_browser(item):
    return "needs_browser" in getattr(item, "fixturenames", ())
