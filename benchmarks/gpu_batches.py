"""Inverse dynamics of one body on a GPU in batches of all sizes, beside JAX, frax, MuJoCo Warp.

Runs where CuPy finds an NVIDIA GPU; elsewhere it says so and measures nothing. 20 joints in single
precision, one engine after the other, all timed on the host's clock: one call until its result is
there, and many calls that are queued, until the last result is there. Ours is a prepared call; JAX
runs the textbook recursion of `benchmarks.gpu`; MuJoCo Warp launches a recorded graph of its
`inverse`, which computes more than is asked. Peers that are not installed are left out.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.bodies import grid_tree
from benchmarks.gpu import SAME, in_jax, on_host_clock
from benchmarks.population_gpu import in_frax
from modurob import Model, StateError

SIZES = (1, 16, 256, 4096, 1 << 16)
JOINTS = 20
QUEUED = 100  # calls at a time


def in_warp(model: Model, arrays: list[np.ndarray], queued: int) -> float | None:
    """Seconds of a batch in MuJoCo Warp, or None where it is not installed."""
    try:
        import mujoco_warp
        import warp
    except ImportError:
        return None
    import mujoco

    from benchmarks.peers import depth_first, mujoco_model

    order = depth_first(model)
    tree = mujoco_model(model, order)
    m = mujoco_warp.put_model(tree)
    d = mujoco_warp.put_data(tree, mujoco.MjData(tree), nworld=len(arrays[0]))
    for place, x in zip((d.qpos, d.qvel, d.qacc), arrays, strict=True):
        place.assign(np.ascontiguousarray(x[:, order], dtype=np.float32))
    mujoco_warp.inverse(m, d)
    wanted = model.inverse_dynamics(*(x[:64] for x in arrays))
    found = d.qfrc_inverse.numpy()[:64]
    assert np.abs(found - wanted[:, order]).max() < SAME["float32"] * np.abs(wanted).max()
    if not warp.get_device().is_cuda:
        return None
    with warp.ScopedCapture() as capture:
        mujoco_warp.inverse(m, d)
    launch = partial(warp.capture_launch, capture.graph)
    return on_host_clock(launch, lambda _: warp.synchronize(), queued)


def run(quick: bool) -> dict[str, Any]:
    """Measure, print and return million states a second."""
    organism = grid_tree(JOINTS)
    model = organism.model()
    try:
        fused = model.compile(target="cuda", dtype="float32")
    except StateError as error:
        print(error)
        return {"skipped": str(error)}
    import cupy as cp

    device = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    results: dict[str, Any] = {"device": device, "joints": JOINTS, "queued": QUEUED}

    def wait(_: Any) -> None:
        cp.cuda.Device().synchronize()

    for queued, kind in ((1, "one call"), (QUEUED, "queued calls")):
        results[kind] = {}
        for count in SIZES[:-1] if quick else SIZES:
            arrays = list(np.random.default_rng(0).uniform(-1, 1, (3, count, model.nv)))
            there = [cp.asarray(x.astype("float32")) for x in arrays]
            call = fused.prepare("inverse_dynamics", count)
            wanted = model.inverse_dynamics(*(x[:64] for x in arrays))
            found = cp.asnumpy(call(*there)[:64])
            assert np.abs(found - wanted).max() < SAME["float32"] * np.abs(wanted).max()
            seconds = {
                "modurob": on_host_clock(partial(call, *there), wait, queued),
                "JAX": in_jax(model, "float32", *arrays, queued),
                "frax": in_frax(organism, "float32", arrays, queued),
                "MuJoCo Warp": in_warp(model, arrays, queued),
            }
            row = {name: 1e-6 * count / value for name, value in seconds.items() if value}
            results[kind][str(count)] = row
            said = ", ".join(f"{name} {rate:.4g}" for name, rate in row.items())
            print(f"{count} states, {kind}, million a second: {said}", flush=True)
    return results
