"""Every table, figure and claim of giusti2015 that can be computed.

Run it with ``python -m papers.giusti2015.reproduce``, or with ``modurob papers``.
"""

from __future__ import annotations

from papers.claims import Claims, main
from papers.giusti2015 import control, modules


def reproduce(claims: Claims) -> None:
    """Section by section."""
    modules.reproduce(claims)
    control.reproduce(claims)


if __name__ == "__main__":
    main("giusti2015", reproduce)
