"""Compiler tests leave the user's cache of compiled code alone."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """An empty cache of compiled code, thrown away afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODUROB_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
