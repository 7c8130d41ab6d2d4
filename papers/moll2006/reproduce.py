"""Every figure and claim of moll2006 that can be computed.

Run it with ``python -m papers.moll2006.reproduce``, or with ``modurob papers``.
"""

from __future__ import annotations

from papers.claims import Claims, main
from papers.moll2006 import control, leader, mass


def reproduce(claims: Claims) -> None:
    """Section by section."""
    mass.reproduce(claims)
    leader.reproduce(claims)
    control.reproduce(claims)


if __name__ == "__main__":
    main("moll2006", reproduce)
