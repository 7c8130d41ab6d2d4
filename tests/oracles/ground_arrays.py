"""Forces and anchors of a contact with the ground, computed with arrays instead of kernels."""

from __future__ import annotations

import numpy as np

from modurob.equations.contact import contact_force, slipped, stretch
from modurob.stepping import GroundContact


def array_force(contact: GroundContact, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(..., nv) force on the joints and a free base, by the screws of the joints."""
    point, S, (which, _) = contact._points(q, v)
    f = contact_force(contact.law, point, stretch(point))
    F = np.stack([*f, *point.x.cross(f)], axis=-2)  # (..., 6, which) about the origin
    return np.sum(F @ contact._moves[contact._body[which]] * S, axis=-2)


def array_anchors(contact: GroundContact, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(..., k, 4) anchors of points that touch or did so, and `held`, after a step; 0 in air."""
    point, _, _ = contact._points(q, v)
    _, anchor, held = slipped(contact.law, point)
    return np.stack([*(anchor * (held > 0)), held], axis=-1)


def kept_anchors(contact: GroundContact, which: np.ndarray) -> np.ndarray:
    """The same of chosen points, as compiled code has left them."""
    found = contact._states(np.moveaxis(contact._memory[:, which, :4], -1, 1))
    return np.where(found[..., 3:] > 0, found, 0.0)
