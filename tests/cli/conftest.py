"""The terminal of the tests of commands: none."""

import pytest


@pytest.fixture(autouse=True)
def plain_output(monkeypatch):
    """Terminals and CI services set these, and Rich then colors or folds what is compared here."""
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
