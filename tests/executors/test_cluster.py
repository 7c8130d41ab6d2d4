"""A Dask cluster: order, killed workers, errors, and clear words when it cannot be used."""

import importlib
import sys
import time
from types import SimpleNamespace

import pytest

from modurob.errors import StateError
from modurob.executors import DaskExecutor, cluster
from worker_functions import Seed, accelerations, end_at_two, fail_from_three

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

SEEDS = [Seed(k) for k in range(12)]
FEW_SECONDS = 10.0  # on a busy machine, for a wait of half a second


@pytest.fixture(scope="module")
def four():
    """Four processes on this machine; forked from one that has loaded Dask, which is quicker."""
    settings = {
        "distributed.worker.multiprocessing-method": "forkserver",
        "logging": {"distributed": "critical"},
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=4, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def executor(four):
    with DaskExecutor(four.scheduler_address) as made:
        yield made


def test_the_first_error_of_items_is_raised_with_its_class(executor):
    with pytest.raises(StateError, match="item 3 is wrong"):
        executor.map(fail_from_three, range(8))


def test_a_module_that_the_workers_do_not_have_is_named(executor, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def same(x):\n    return x\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    same = importlib.import_module("only_here").same
    with pytest.raises(StateError, match="a worker has no module 'only_here': install it"):
        executor.map(same, [1])


def test_workers_of_another_version_are_refused(executor, monkeypatch):
    monkeypatch.setattr(cluster, "_version", lambda: "9.9")
    with pytest.raises(
        StateError, match=r"has modurob 0\.\d.*, this process modurob 9\.9: install"
    ):
        executor.map(accelerations, SEEDS)


def test_resources_that_no_worker_has_are_refused(four):
    with (
        DaskExecutor(four.scheduler_address, resources={"GPU": 1}) as demanding,
        pytest.raises(StateError, match=r"offers {'GPU': 1}: start one with .*--resources"),
    ):
        demanding.map(accelerations, SEEDS)


def worker_name(k):
    """Name of the worker that computes an item."""
    return distributed.get_worker().name


def test_items_that_need_a_resource_reach_only_workers_that_have_it():
    """In a cluster of workers with and without a GPU."""
    offers = {"with": {"GPU": 1}, "without": {}}
    workers = {
        name: {"cls": distributed.Worker, "options": {"nthreads": 1, "resources": offered}}
        for name, offered in offers.items()
    }
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard_address": ":0"}}
    with (
        dask.config.set({"logging": {"distributed": "critical"}}),
        distributed.SpecCluster(workers, scheduler) as mixed,
        DaskExecutor(mixed.scheduler_address, resources={"GPU": 1}) as demanding,
    ):
        mixed.wait_for_workers(2)
        assert set(demanding.map(worker_name, range(8))) == {"with"}


def test_four_workers_one_of_them_killed_and_one_worker_return_the_same_bytes(
    four, executor, tmp_path
):
    wanted, seen = [accelerations(item) for item in SEEDS], []
    items = [*SEEDS[:7], Seed(7, tmp_path / "killed"), *SEEDS[8:]]
    assert executor.map(accelerations, items, seen.append) == wanted
    assert items[7].fatal.exists()
    assert seen[-1] == 1.0
    four.scale(1)
    while len(four.scheduler.workers) > 1:
        time.sleep(0.01)
    assert executor.map(accelerations, SEEDS) == wanted


def test_an_item_that_ends_its_workers_is_named(four, executor, monkeypatch):
    monkeypatch.setattr(four.scheduler, "allowed_failures", 0)
    # alone: items that wait for the same worker are suspected with it
    with pytest.raises(StateError, match=r"item 0 ended several workers, perhaps .*: 2$"):
        executor.map(end_at_two, [2])


def test_a_scheduler_that_does_not_answer_is_named_within_seconds():
    begin = time.monotonic()
    with pytest.raises(StateError, match=r"answers at tcp://127\.0\.0\.1:9 .*`dask scheduler`"):
        DaskExecutor("tcp://127.0.0.1:9", wait=0.5)
    assert time.monotonic() - begin < FEW_SECONDS


@pytest.mark.parametrize("address", ["", "somewhere", "http://127.0.0.1:8786", 8786])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(StateError, match=r"is such as tcp://127\.0\.0\.1:8786, got"):
        DaskExecutor(address)


def test_a_scheduler_without_workers_is_named():
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        pytest.raises(StateError, match=r"has no worker after 0\.2 s: start one with `dask worker"),
    ):
        DaskExecutor(empty.scheduler_address, wait=0.2)


def test_a_scheduler_that_ends_between_two_calls_is_named():
    """As between two generations of a search."""
    with (
        dask.config.set({"logging": {"distributed": "critical"}}),
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as brief,
        DaskExecutor(brief.scheduler_address, wait=1.0) as executor,
    ):
        assert executor.map(abs, [-1]) == [1]
        brief.close()
        with pytest.raises(StateError, match="ended before the work was done"):
            executor.map(abs, [-1])


def test_the_extra_is_named_where_dask_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(StateError, match=r"pip install 'modurob\[cluster\]'"):
        DaskExecutor("tcp://127.0.0.1:8786")


def test_resources_are_those_of_one_worker():
    workers = {k: SimpleNamespace(resources=x) for k, x in enumerate(({"GPU": 1, "RAM": 8}, {}))}
    scheduler = SimpleNamespace(workers=workers)
    for resources, offered in (
        ({"GPU": 1}, True), ({"GPU": 1, "RAM": 8}, True), ({"GPU": 2}, False),
        ({"GPU": 1, "RAM": 9}, False), ({"TPU": 1}, False),
    ):  # fmt: skip
        assert cluster._offered(resources, scheduler) is offered
    assert cluster._named(None) == "no modurob"
    assert cluster._named("1.2") == "modurob 1.2"
