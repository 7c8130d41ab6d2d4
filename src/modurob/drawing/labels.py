"""Where the modules' names stand in a picture."""

from __future__ import annotations

import numpy as np

ROUNDS = 200  # of pushing labels apart; crowded pictures settle after some fifty


def anchors(owner: np.ndarray, modules: int) -> tuple[np.ndarray, np.ndarray]:
    """For each module the visible pixel next to the middle of what is seen of it.

    Args:
        owner: (height, width) row of the module that a pixel shows, negative for none.

    Returns:
        (modules, 2) x and y, NaN for what is hidden, and (modules,) numbers of visible pixels.
    """
    pixels = np.flatnonzero(owner >= 0)
    rows = owner.ravel()[pixels]
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=modules)
    places = np.full((modules, 2), np.nan)
    for row, mine in enumerate(np.split(pixels[order], np.cumsum(counts)[:-1])):
        if len(mine):
            y, x = np.divmod(mine, owner.shape[1])
            best = np.argmin((x - x.mean()) ** 2 + (y - y.mean()) ** 2)
            places[row] = x[best], y[best]
    return places, counts


def spread(places: np.ndarray, sizes: np.ndarray, picture: tuple[int, int]) -> np.ndarray:
    """(n, 2) places of labels after those that overlap have pushed each other apart.

    Args:
        places, sizes: (n, 2) centers, and widths and heights. [px]
        picture: Width and height, which no label leaves. [px]
    """
    places = places.astype(float).copy()
    need = (sizes[:, None] + sizes[None, :]) / 2
    upper = np.triu(np.ones((len(places), len(places)), dtype=bool), 1)
    for _ in range(ROUNDS):
        apart = places[None, :] - places[:, None]
        lack = need - np.abs(apart)
        pairs = np.argwhere(upper & (lack > 0.5).all(axis=-1))
        if not len(pairs):
            break
        for i, j in pairs:
            axis = int(np.argmin(lack[i, j] / need[i, j]))
            way = 1.0 if apart[i, j, axis] >= 0 else -1.0
            places[i, axis] -= way * lack[i, j, axis] / 3
            places[j, axis] += way * lack[i, j, axis] / 3
        places = np.clip(places, sizes / 2, np.maximum(np.array(picture) - sizes / 2, sizes / 2))
    return places
