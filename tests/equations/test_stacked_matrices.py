"""The closed form against the stacked matrices of the documents, written out in full."""

from __future__ import annotations

import numpy as np
import pytest

from modurob.spatial import inertia, se3
from oracles import GROUPS
from oracles.rough_organisms import case

ROUNDING = 1e-12  # relative to the largest terms: products of matrices with up to 100 rows


def diagonal(blocks: np.ndarray) -> np.ndarray:
    k = len(blocks)
    whole = np.zeros((k, 6, k, 6))
    whole[np.arange(k), :, np.arange(k)] = blocks
    return whole.reshape(6 * k, 6 * k)


def documents(model, q, v) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M, C and N of meister2013 (29)-(33): T has the blocks Ad(T_ij^-1) of all ancestors j of i."""
    first, base = (0, 6) if model.free_base else (1, 0)
    links = range(first, len(model.mass))
    place = {link: row for row, link in enumerate(links)}
    T_w = [model.base_of(q)]
    S = np.zeros((len(links), 6, model.nv))
    S[0:1, :, :base] = np.eye(6)[:, :base]
    for k, parent in enumerate(model.parent.tolist()):
        motion = se3.screw_motion(model.screw[k], q[model.joint_slice_q][k])
        T_w.append(T_w[parent] @ model.placement[k] @ motion)
        S[place[k + 1], :, base + k] = model.screw[k]
    T = np.zeros((len(links), 6, len(links), 6))
    T_0 = np.zeros((len(links), 6, 6))
    for i in links:
        T_0[place[i]] = se3.Ad(se3.inverse(T_w[i]))
        j = i
        while j >= first:
            T[place[i], :, place[j]] = se3.Ad(se3.inverse(T_w[i]) @ T_w[j])
            j = int(model.parent[j - 1]) if j else -1
    n = 6 * len(links)
    T, T_0, S_all = T.reshape(n, n), T_0.reshape(n, 6), S.reshape(n, model.nv)
    M = diagonal(inertia.spatial_inertia(model.mass, model.center, model.inertia)[first:])
    V = (T @ S_all @ v).reshape(-1, 6)
    adS = diagonal(-se3.ad(S @ v))
    adV = diagonal(-np.swapaxes(se3.ad(V), -1, -2))
    ST = (T @ S_all).T
    upward = np.concatenate([-model.gravity, np.zeros(3)])
    C = ST @ (M @ T @ adS + adV @ M) @ T @ S_all
    rotors = np.diag(np.concatenate([np.zeros(base), model.armature]))  # the documents have none
    return ST @ M @ T @ S_all + rotors, C, ST @ M @ T_0 @ upward


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("kinds", GROUPS)
def test_closed_form_is_the_stacked_product_of_the_documents(kinds, base) -> None:
    for seed in (1, 2):
        c = case(kinds, seed, "physical", base, most=6)
        if not c.model.nv:
            continue
        q, v = c.q[0], c.v[0]
        found, expected = c.model.closed_form(q, v), documents(c.model, q, v)
        speed, mass = np.abs(v).max(), np.abs(expected[0]).max()
        scales = mass, mass * speed, np.sum(c.model.mass) * np.linalg.norm(c.model.gravity)
        for ours, theirs, scale in zip(found, expected, scales, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=ROUNDING * scale)
