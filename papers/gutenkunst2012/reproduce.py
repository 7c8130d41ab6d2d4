"""Every figure and claim of gutenkunst2012 that can be computed.

Run it with ``python -m papers.gutenkunst2012.reproduce``, or with ``modurob papers``.
"""

from __future__ import annotations

from papers.claims import Claims, main
from papers.gutenkunst2012 import control, generation, structure, verification


def reproduce(claims: Claims) -> None:
    """Chapter by chapter."""
    structure.reproduce(claims)
    generation.reproduce(claims)
    verification.reproduce(claims)
    control.reproduce(claims)


if __name__ == "__main__":
    main("gutenkunst2012", reproduce)
