"""Memory: refused before it is asked for, and worked through in blocks."""

from __future__ import annotations

import pytest

from modurob.checks import LARGEST_BYTES, refuse_over, states_per_block
from modurob.errors import SizeError


def test_too_large_a_request_names_what_how_much_and_what_to_do() -> None:
    with pytest.raises(SizeError) as caught:
        refuse_over("recording 10^9 states", 80e9, "record less often")
    for part in ("recording 10^9 states", "80 GB", "8 GB", "record less often"):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_fits_is_not_refused() -> None:
    refuse_over("a result", LARGEST_BYTES, "ask for less")


@pytest.mark.parametrize("state_bytes", [0, 1, 1000, 10**12])
def test_blocks_hold_at_least_one_state(state_bytes: int) -> None:
    assert states_per_block(state_bytes) >= 1
    assert states_per_block(state_bytes) * state_bytes <= LARGEST_BYTES or state_bytes == 10**12
