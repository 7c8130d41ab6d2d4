"""The C runtime, compiled once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firmware.bus_in_c import BUILD_VARIABLE, FLAGS_VARIABLE
from oracles import runtime

HARNESS = Path(__file__).with_name("coordinator_harness.c")


@pytest.fixture(scope="session")
def double_runtime(tmp_path_factory) -> runtime.Runtime:
    if runtime.COMPILER is None:
        pytest.skip("no C compiler on this machine")
    build = os.environ.get(BUILD_VARIABLE)
    folder = Path(build) / "double" if build else tmp_path_factory.mktemp("double")
    flags = ("-O0", *os.environ.get(FLAGS_VARIABLE, "").split())  # for measurements of coverage
    return runtime.build(folder, flags=flags, more=[HARNESS])


@pytest.fixture(scope="session")
def single_runtime(tmp_path_factory) -> runtime.Runtime:
    if runtime.COMPILER is None:
        pytest.skip("no C compiler on this machine")
    return runtime.build(tmp_path_factory.mktemp("single"), single=True, flags=("-O0",))
