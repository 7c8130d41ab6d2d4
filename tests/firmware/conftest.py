"""The C runtime, compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracles import runtime

HARNESS = Path(__file__).with_name("coordinator_harness.c")


@pytest.fixture(scope="session")
def double_runtime(tmp_path_factory) -> runtime.Runtime:
    if runtime.COMPILER is None:
        pytest.skip("no C compiler on this machine")
    return runtime.build(tmp_path_factory.mktemp("double"), flags=("-O0",), more=[HARNESS])


@pytest.fixture(scope="session")
def single_runtime(tmp_path_factory) -> runtime.Runtime:
    if runtime.COMPILER is None:
        pytest.skip("no C compiler on this machine")
    return runtime.build(tmp_path_factory.mktemp("single"), single=True, flags=("-O0",))
