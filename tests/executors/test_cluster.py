"""A Dask cluster: order, killed workers, errors, and clear words when it cannot be used."""

import importlib
import inspect
import pickle
import sys
import time
from concurrent.futures import CancelledError
from importlib.metadata import PackageNotFoundError
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


class Client:
    """The calls of a Dask client, and what workers and scheduler would answer."""

    def __init__(self, workers=("1.0",), scheduler="1.0", offered=True):
        self.versions = {f"tcp://w{k}": x for k, x in enumerate(workers)}
        self.scheduler, self.offered = scheduler, offered
        self.gathered, self.cancelled, self.options, self.closed = [], [], {}, 0

    def run(self, function, name, on_error):
        return dict(self.versions)

    def run_on_scheduler(self, function, given):
        if function is cluster._offered:
            return self.offered
        if isinstance(self.scheduler, Exception):
            raise self.scheduler
        return self.scheduler

    def map(self, function, messages, **options):
        self.options = options
        return [SimpleNamespace(result=lambda m=m: function(m)) for m in messages]

    def gather(self, futures):
        self.gathered.append(len(futures))
        return [future.result() for future in futures]

    def cancel(self, futures):
        self.cancelled.append(len(futures))

    def close(self):
        self.closed += 1


def fake(monkeypatch, resources=(), **answers):
    monkeypatch.setattr(cluster, "_version", lambda: "1.0")
    executor = object.__new__(DaskExecutor)
    executor.address, executor._resources = "tcp://s:1", dict(resources)
    executor._client = Client(**answers)
    return executor


def test_there_are_at_most_100_reports_of_progress(monkeypatch):
    executor, seen = fake(monkeypatch), []
    assert executor.map(abs, range(-101, 0), seen.append) == [*range(101, 0, -1)]
    assert executor._client.gathered == [2] * 50 + [1]
    assert seen == [min(2 * (k + 1), 101) / 101 for k in range(51)]
    assert executor._client.options == {"pure": False}  # the same item twice is computed twice
    assert executor.map(abs, [], seen.append) == []
    assert fake(monkeypatch).map(abs, [-2, -1]) == [2, 1]
    demanding = fake(monkeypatch, {"GPU": 1})
    demanding.map(abs, [-1])
    assert demanding._client.options == {"pure": False, "resources": {"GPU": 1}}


def test_work_after_the_first_error_is_cancelled(monkeypatch):
    executor = fake(monkeypatch)
    with pytest.raises(StateError, match="item 3 is wrong"):
        executor.map(fail_from_three, range(8))
    assert executor._client.cancelled == [5]


GONE = PackageNotFoundError("modurob")


@pytest.mark.parametrize(
    ("answers", "named"),
    [
        ({"workers": ("1.0", OSError("gone"))}, None),
        ({"workers": ("1.0", "1.1")}, "tcp://w1 has modurob 1.1, this process modurob 1.0"),
        ({"workers": (GONE,)}, "tcp://w0 has no modurob"),
        ({"scheduler": GONE}, r"tcp://s:1 \(scheduler\) has no modurob"),
        ({"scheduler": "0.9"}, r"tcp://s:1 \(scheduler\) has modurob 0.9"),
        ({"resources": {"GPU": 1}}, None),
        ({"resources": {"GPU": 1}, "offered": False}, "no worker at tcp://s:1 offers"),
        ({"offered": False}, None),
    ],
)
def test_scheduler_and_all_workers_need_this_version_and_one_the_resources(
    monkeypatch, answers, named
):
    executor = fake(monkeypatch, **answers)
    if named is None:
        assert executor.map(abs, [-1]) == [1]
    else:
        with pytest.raises(StateError, match=named):
            executor.map(abs, [-1])


def test_a_scheduler_that_ends_at_work_is_named(monkeypatch):
    executor = fake(monkeypatch)

    def cancelled(futures):
        raise CancelledError

    executor._client.gather = cancelled
    executor._client.map = lambda function, messages, **options: [
        SimpleNamespace(result=lambda: cancelled(None)) for _ in messages
    ]
    with pytest.raises(StateError, match="scheduler at tcp://s:1 ended before the work was done"):
        executor.map(abs, [-1])


def test_a_checkout_has_no_version(monkeypatch):
    def missing(name):
        assert name == "modurob"
        raise GONE

    monkeypatch.setattr(cluster, "version", missing)
    assert cluster._version() is None


def test_two_checkouts_that_are_not_installed_count_as_equal(monkeypatch):
    executor = fake(monkeypatch, workers=(GONE,), scheduler=GONE)
    monkeypatch.setattr(cluster, "_version", lambda: None)
    assert executor.map(abs, [-1]) == [1]


def test_an_executor_leaves_other_clients_alone_and_the_cluster_when_it_is_closed(monkeypatch):
    made, waited = [], []

    def client(address, **options):
        made.append((address, options))
        found = Client()
        found.wait_for_workers = lambda count, timeout: waited.append((count, timeout))
        return found

    monkeypatch.setattr(distributed, "Client", client)
    with DaskExecutor("tcp://10.0.0.5:8786", wait=3.5) as executor:
        assert not executor._client.closed
    assert made == [("tcp://10.0.0.5:8786", {"timeout": 3.5, "set_as_default": False})]
    assert waited == [(1, 3.5)]
    assert executor._client.closed == 1
    assert inspect.signature(DaskExecutor).parameters["wait"].default == 5.0

    def late(count, timeout):
        raise TimeoutError

    alone = Client()
    alone.wait_for_workers = late
    monkeypatch.setattr(distributed, "Client", lambda address, **options: alone)
    with pytest.raises(StateError, match="no worker after 5 s"):
        DaskExecutor("tcp://10.0.0.5:8786")
    assert alone.closed == 1


def test_a_worker_computes_what_is_pickled():
    assert cluster._computed(pickle.dumps((abs, -3))) == 3
