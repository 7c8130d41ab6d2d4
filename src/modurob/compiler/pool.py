"""Threads that share a batch.

Handing work to a thread through Python takes a good part of a batch of one millisecond. Here the
hand-over is machine code: each thread takes shares of the batch from one counter until it runs out,
and a helper waits for the next batch for a moment before it sleeps.
"""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache

import numpy as np

from modurob.compiler.jit import compile_ir, host

SHARES = 16  # of a batch for each thread: a core that is busy elsewhere takes fewer
SPINS = 50_000  # checks of a waiting thread before it sleeps, about a millisecond


class Batch(ctypes.Structure):
    """The work that is shared; a pool has one at a time."""

    _fields_ = (
        ("run", ctypes.c_void_p),  # run(arguments, begin, end, workspace)
        ("arguments", ctypes.c_void_p),
        ("workspaces", ctypes.c_void_p),  # one after the other, the leader's first
        ("workspace_size", ctypes.c_int64),  # bytes
        ("count", ctypes.c_int64),  # states
        ("share", ctypes.c_int64),  # states that are taken at once
        ("next", ctypes.c_int64),  # the first state that is not taken
        ("free_slots", ctypes.c_int64),  # helpers that may still join
        ("inside", ctypes.c_int64),  # helpers that joined and have not left
        ("open", ctypes.c_int64),  # 1 while helpers may read the fields above
    )


class Pool:
    """Helper threads that sleep between batches."""

    def __init__(self) -> None:
        library = compile_ir(_ir())
        self._lead = library.function("lead", ctypes.c_void_p)
        self._help = library.function("help", ctypes.c_void_p)
        self._batch = Batch()
        self._leading = threading.Lock()
        # locked while a helper sleeps
        self._wake_locks = [threading.Lock() for _ in range(cores() - 1)]
        for lock in self._wake_locks:
            lock.acquire()
            threading.Thread(target=self._helper, args=(lock,), name="modurob", daemon=True).start()

    def run(self, run: int, arguments: int, count: int, workspaces: np.ndarray) -> None:
        """Run states 0 to count with one thread for each row of `workspaces`.

        When another thread leads a batch already, this one computes its own alone.
        """
        threads, width = len(workspaces), host().width
        alone = not self._leading.acquire(blocking=False)
        batch = Batch() if alone else self._batch
        batch.run, batch.arguments, batch.count, batch.next = run, arguments, count, 0
        batch.workspaces, batch.workspace_size = workspaces.ctypes.data, workspaces.strides[0]
        batch.share = -(-count // (SHARES * threads * width)) * width
        batch.free_slots = threads - 1
        try:
            if not alone:
                for lock in self._wake_locks[: threads - 1]:
                    if lock.locked():
                        lock.release()
            self._lead(ctypes.addressof(batch))
        finally:
            if not alone:
                self._leading.release()

    def _helper(self, lock: threading.Lock) -> None:
        while True:
            lock.acquire()
            self._help(ctypes.addressof(self._batch))


@cache
def pool() -> Pool:
    """The helpers of this process."""
    return Pool()


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=pool.cache_clear)


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _ir() -> str:
    """`lead` opens the batch and works; `help` waits for open batches and works.

    A leader may change the batch only when no helper is inside and it is closed. So a helper first
    counts itself in, and checks afterwards that the batch is open.
    """
    pause, yield_ = _waiting()
    field = {
        each[0]: f"getelementptr i64, ptr %batch, i64 {k}" for k, each in enumerate(Batch._fields_)
    }
    return f"""
declare void @{yield_}()
{"declare void @llvm.x86.sse2.pause()" if pause else ""}

define internal void @work(ptr %batch, ptr %workspace) {{
entry:
  %run.at = {field["run"]}
  %run = load ptr, ptr %run.at
  %arguments.at = {field["arguments"]}
  %arguments = load ptr, ptr %arguments.at
  %count.at = {field["count"]}
  %count = load i64, ptr %count.at
  %share.at = {field["share"]}
  %share = load i64, ptr %share.at
  %next.at = {field["next"]}
  br label %take
take:
  %begin = atomicrmw add ptr %next.at, i64 %share seq_cst
  %some = icmp slt i64 %begin, %count
  br i1 %some, label %do, label %done
do:
  %full = add i64 %begin, %share
  %fits = icmp slt i64 %full, %count
  %end = select i1 %fits, i64 %full, i64 %count
  call void %run(ptr %arguments, i64 %begin, i64 %end, ptr %workspace)
  br label %take
done:
  ret void
}}

define void @lead(ptr %batch) {{
entry:
  %workspaces.at = {field["workspaces"]}
  %workspace = load ptr, ptr %workspaces.at
  %open.at = {field["open"]}
  %inside.at = {field["inside"]}
  store atomic i64 1, ptr %open.at seq_cst, align 8
  call void @work(ptr %batch, ptr %workspace)
  store atomic i64 0, ptr %open.at seq_cst, align 8
  br label %wait
wait:
  %looks = phi i64 [ 0, %entry ], [ %looked, %again ], [ %looked, %give.way ]
  %inside = load atomic i64, ptr %inside.at seq_cst, align 8
  %anybody = icmp ne i64 %inside, 0
  br i1 %anybody, label %patient, label %done
patient:
  %looked = add i64 %looks, 1
  %enough = icmp sgt i64 %looked, {SPINS}
  br i1 %enough, label %give.way, label %again
give.way:
  call void @{yield_}()
  br label %wait
again:
  {pause}
  br label %wait
done:
  ret void
}}

define void @help(ptr %batch) {{
entry:
  %open.at = {field["open"]}
  %inside.at = {field["inside"]}
  %seats.at = {field["free_slots"]}
  %workspaces.at = {field["workspaces"]}
  %size.at = {field["workspace_size"]}
  br label %wait
wait:
  %looks = phi i64 [ 0, %entry ], [ %looked, %again ], [ %looks.kept, %leave ]
  %looked = add i64 %looks, 1
  %enough = icmp sgt i64 %looked, {SPINS}
  br i1 %enough, label %sleep, label %look
look:
  %seems.open = load atomic i64, ptr %open.at seq_cst, align 8
  %seems.free = load atomic i64, ptr %seats.at seq_cst, align 8
  %open.now = icmp ne i64 %seems.open, 0
  %free.now = icmp sgt i64 %seems.free, 0
  %inviting = and i1 %open.now, %free.now
  br i1 %inviting, label %enter, label %again
again:
  {pause}
  br label %wait
enter:
  %before = atomicrmw add ptr %inside.at, i64 1 seq_cst
  %still = load atomic i64, ptr %open.at seq_cst, align 8
  %still.open = icmp ne i64 %still, 0
  br i1 %still.open, label %sit, label %leave
sit:
  %seat = atomicrmw sub ptr %seats.at, i64 1 seq_cst
  %seated = icmp sgt i64 %seat, 0
  br i1 %seated, label %join, label %leave
join:
  %workspaces = load ptr, ptr %workspaces.at
  %size = load i64, ptr %size.at
  %offset = mul i64 %seat, %size
  %workspace = getelementptr i8, ptr %workspaces, i64 %offset
  call void @work(ptr %batch, ptr %workspace)
  br label %leave
leave:
  %looks.kept = phi i64 [ %looked, %enter ], [ %looked, %sit ], [ 0, %join ]
  %after = atomicrmw sub ptr %inside.at, i64 1 seq_cst
  br label %wait
sleep:
  ret void
}}
"""


def _waiting() -> tuple[str, str]:
    """The instruction for a short wait, and the function that yields to another thread."""
    triple = host().triple
    pause = "call void @llvm.x86.sse2.pause()" if triple.startswith(("x86_64", "i686")) else ""
    return pause, "SwitchToThread" if "windows" in triple else "sched_yield"
