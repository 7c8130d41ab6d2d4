"""Settings that all tests share."""

import gc
import os
from pathlib import Path

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
TESTS = Path(__file__).parent


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers():
    """One more than there are cores: that of the browser waits most of the time."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Send whole files to a worker, so that fixtures are made once.

    All tests in the browser share one worker, its server and its browser. The library's own
    groups (``--dist loadgroup``) have no effect: pytest-xdist 3.8 marks a test by ``_nodeid``,
    which pytest 9 does not read.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.split("::")[0]
            return "browser" if _in_browser(file) else file

    return ByFile(config, log)


def pytest_collection_modifyitems(items):
    """Mark slow tests; long files go first, so that no worker has one left at the end.

    Those in the browser are the very first: together they take longest.
    """
    slow = {*(TESTS / "slow.txt").read_text("utf-8").split()}
    files = {item: item.path.relative_to(TESTS).as_posix() for item in items}
    for item, file in files.items():
        function = f"{file}::{item.originalname}"
        if {file, function} & slow or _in_browser(file):
            item.add_marker("slow")
    items.sort(key=lambda item: (not _in_browser(files[item]), files[item] not in slow))


def pytest_collection_finish():
    """Thousands of tests stay to the end: the garbage collector need not visit them each time."""
    gc.collect()
    gc.freeze()


def _in_browser(file):
    return file.endswith("_browser.py")
