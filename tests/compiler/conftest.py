"""Compiler tests leave the user's cache of compiled code alone."""

import pytest


@pytest.fixture(scope="session")
def empty_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


# Of each file: a scope of the whole folder would end with the session (`tests` are no packages),
# and all that the worker runs afterwards would be compiled anew.
@pytest.fixture(scope="module", autouse=True)
def own_cache(empty_cache):
    """A cache of compiled code that is thrown away; the other tests share the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODUROB_CACHE_DIR", str(empty_cache))
        yield
