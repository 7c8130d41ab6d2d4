"""Boxes in any attitude: which of them overlap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Boxes(NamedTuple):
    """Boxes, such as those around the shapes of modules.

    Attributes:
        rotation, center: (k, 3, 3), (k, 3) of the boxes. [m]
        half: (k, 3) half their widths. [m]
    """

    rotation: np.ndarray
    center: np.ndarray
    half: np.ndarray

    def moved(self, T: np.ndarray) -> Boxes:
        """The same boxes on a body with the pose T."""
        R = T[:3, :3]
        return Boxes(R @ self.rotation, self.center @ R.T + T[:3, 3], self.half)


def box_widths(form: str, size: tuple[float, ...]) -> tuple[float, ...]:
    """Widths of the box around a shape. [m]"""
    if form == "box":
        return size
    return (2 * size[0],) * 3 if form == "sphere" else (2 * size[0], 2 * size[0], size[1])


def overlaps(a: Boxes, b: Boxes) -> np.ndarray:
    """(...) True where a box of one overlaps that of the other: none of 15 axes separates them."""
    R = np.swapaxes(a.rotation, -1, -2) @ b.rotation  # (..., 3, 3) b in a
    d = (np.swapaxes(a.rotation, -1, -2) @ (b.center - a.center)[..., None])[..., 0]
    r_a, r_b = a.half, b.half
    size = np.abs(R)
    apart = (np.abs(d) > r_a + (size @ r_b[..., None])[..., 0]).any(axis=-1)
    across = np.abs((d[..., None, :] @ R)[..., 0, :])
    apart |= (across > r_b + (r_a[..., None, :] @ size)[..., 0, :]).any(axis=-1)
    for i in range(3):  # of a x of b
        j, k = (i + 1) % 3, (i + 2) % 3
        reach = r_a[..., j, None] * size[..., k, :] + r_a[..., k, None] * size[..., j, :]
        reach = reach + r_b[..., [1, 2, 0]] * size[..., i, [2, 0, 1]]
        reach = reach + r_b[..., [2, 0, 1]] * size[..., i, [1, 2, 0]]
        along = np.abs(d[..., k, None] * R[..., j, :] - d[..., j, None] * R[..., k, :])
        apart |= (along > reach + 1e-12).any(axis=-1)
    return np.asarray(~apart)
