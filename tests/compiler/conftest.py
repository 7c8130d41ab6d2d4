"""Compiler tests leave the user's cache of compiled code alone."""

import pytest


@pytest.fixture(scope="package", autouse=True)
def own_cache(tmp_path_factory):
    """An empty cache of compiled code, thrown away afterwards; the other tests share the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODUROB_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
