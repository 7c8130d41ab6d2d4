"""Fused kernels on a GPU: million states a second, beside the same recursion in JAX.

Runs where CuPy finds an NVIDIA GPU; elsewhere it says so and measures nothing. JAX, where it is
installed, runs the textbook recursion with 3x3 rotations (vmap and jit), as its users write it;
it runs after ours and is timed on the host's clock, ours by GPU events, so its time includes some
tens of microseconds of dispatch in batches of milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bodies import grid_tree
from modurob import Model, StateError, examples

STATES, QUICK_STATES = 1 << 20, 1 << 16
ROUNDS = 20
JAX_UP_TO = 20  # joints; its compile time grows fast
SAME = {"float64": 1e-9, "float32": 2e-3}  # relative to the largest force


def timed(cp: Any, work: Callable[[], Any]) -> float:
    """Median seconds of GPU work, by events."""
    work()
    begin, end, seconds = cp.cuda.Event(), cp.cuda.Event(), []
    for _ in range(ROUNDS):
        begin.record()
        work()
        end.record()
        end.synchronize()
        seconds.append(1e-3 * cp.cuda.get_elapsed_time(begin, end))
    return float(np.median(seconds))


def on_host_clock(launch: Callable[[], Any], wait: Callable[[Any], Any], queued: int = 1) -> float:
    """Median seconds of a call, until the result of the last of `queued` calls is there."""
    seconds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(queued - 1):
            launch()
        wait(launch())
        seconds.append((time.perf_counter() - begin) / queued)
    return float(np.median(seconds))


def expected(model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Forces by the readable reference, in double precision."""
    from modurob.model.reference import reference

    return reference(model, "inverse_dynamics", q, v, a)


def in_jax(
    model: Model, dtype: str, q: np.ndarray, v: np.ndarray, a: np.ndarray, queued: int = 1
) -> float | None:
    """Seconds of the same batch in JAX, or None where it is not installed."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    frames = model._frames
    parent = frames.parent.tolist()
    R0, p0, m, h = (
        x.astype(dtype) for x in (frames.rotation, frames.position, frames.mass, frames.moment)
    )
    S = frames.second
    J = (np.trace(S, axis1=-2, axis2=-1)[:, None, None] * np.eye(3) - S).astype(dtype)
    x_axis = jnp.array([1, 0, 0], dtype)

    def forces(q: Any, v: Any, a: Any) -> Any:
        q, v, a = (z * frames.sign.astype(dtype) for z in (q, v, a))
        still = jnp.zeros(3, dtype)
        moved = [(still, still, -jnp.array(model.gravity, dtype))]
        rotations, loads = [], [(still, still)]
        for k, p in enumerate(parent):
            c, s = jnp.cos(q[k]), jnp.sin(q[k])
            turn = jnp.array([[1, 0, 0], [0, c, -s], [0, s, c]])
            R = R0[k] @ turn
            w, alpha, acc = moved[p]
            acc = R.T @ (acc + jnp.cross(alpha, p0[k]) + jnp.cross(w, jnp.cross(w, p0[k])))
            w, alpha = R.T @ w, R.T @ alpha
            alpha = alpha + jnp.cross(w, x_axis) * v[k] + x_axis * a[k]
            w = w + x_axis * v[k]
            moved.append((w, alpha, acc))
            hk = h[k + 1]
            f = m[k + 1] * acc + jnp.cross(alpha, hk) + jnp.cross(w, jnp.cross(w, hk))
            n = J[k + 1] @ alpha + jnp.cross(w, J[k + 1] @ w) + jnp.cross(hk, acc)
            loads.append((f, n))
            rotations.append(R)
        tau = [None] * len(parent)
        for k in range(len(parent) - 1, -1, -1):
            f, n = loads[k + 1]
            tau[k] = n[0]
            f = rotations[k] @ f
            held = loads[parent[k]]
            loads[parent[k]] = (held[0] + f, held[1] + rotations[k] @ n + jnp.cross(p0[k], f))
        return jnp.stack(tau) * frames.sign.astype(dtype)

    run = jax.jit(jax.vmap(forces))
    arrays = [jnp.asarray(x.astype(dtype)) for x in (q, v, a)]
    found = run(*arrays).block_until_ready()
    wanted = expected(model, q[:64], v[:64], a[:64])
    assert np.abs(np.asarray(found[:64]) - wanted).max() < SAME[dtype] * np.abs(wanted).max()
    return on_host_clock(lambda: run(*arrays), lambda x: x.block_until_ready(), queued)


def run(quick: bool) -> dict[str, Any]:
    """Measure, print and return million states a second."""
    try:
        grid_tree(2).model().compile(target="cuda")
    except StateError as error:
        print(error)
        return {"skipped": str(error)}
    import cupy as cp

    count, rng = QUICK_STATES if quick else STATES, np.random.default_rng(0)
    device = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    results: dict[str, Any] = {"device": device, "states": count}
    print(device)
    bodies = {f"grid {n}": grid_tree(n).model() for n in (6, 20, 60)}
    bodies["superbot 60"] = examples.superbot_tree(rng=np.random.default_rng(1)).model("physical")
    for label, model in bodies.items():
        q, v, a = rng.uniform(-1.5, 1.5, (3, count, model.nv))
        wanted = expected(model, q[:64], v[:64], a[:64])
        for dtype in ("float64", "float32"):
            fast = model.compile(target="cuda", dtype=dtype)
            arrays = [cp.asarray(x.astype(dtype)) for x in (q, v, a)]
            begin = time.perf_counter()
            found = cp.asnumpy(fast.inverse_dynamics(*arrays)[:64])
            compiled = time.perf_counter() - begin
            assert np.abs(found - wanted).max() < SAME[dtype] * np.abs(wanted).max()
            row: dict[str, float] = {"compile_seconds": compiled}
            for name in ("inverse_dynamics", "forward_dynamics"):
                seconds = timed(cp, lambda n=name, f=fast, x=arrays: getattr(f, n)(*x))
                row[f"{name} [million states/s]"] = count / seconds / 1e6
            if model.nv <= JAX_UP_TO:
                theirs = in_jax(model, dtype, q, v, a)
                if theirs is not None:
                    row["inverse_dynamics in JAX [million states/s]"] = count / theirs / 1e6
            results[f"{label}, {dtype}"] = row
            print(f"{label}, {dtype}: " + ", ".join(f"{k} {x:.4g}" for k, x in row.items()))
    return results
