"""What fits to dask collections do to the workers they run on, and leave there."""

import gc
import os
import signal
import threading
import time

import numpy as np
import pytest

import outlast

dask = pytest.importorskip("dask")
import cloudpickle  # noqa: E402
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import distributed  # noqa: E402
import pandas as pd  # noqa: E402
from clusters import SMALL, cluster, rows, slowly  # noqa: E402, F401

import outlast.dask as od  # noqa: E402
import outlast.dask._audit  # noqa: E402
import outlast.dask._engine  # noqa: E402


@pytest.fixture(autouse=True)
def nothing_kept():
    """Exceptions that tests before this one kept, and all that their tracebacks know of, are gone."""
    gc.collect()


def not_asked_for(*arguments, **options):
    raise AssertionError("another scheduler was asked")


def test_without_a_client_tasks_run_in_threads_whatever_is_configured(monkeypatch):
    monkeypatch.setattr(od._engine, "current_client", lambda: None)
    X, y = rows(n=40_000)
    X[30_000:, 1] += 1e6  # the first part does not tell: all are read once more
    parts = da.from_array(X, chunks=(10_000, 5))
    with dask.config.set(scheduler=not_asked_for):
        model = od.TruncatedSVC(0.1, truncation=None, memory=SMALL).fit(parts, y)
        assert model.passes_ > 1
        model.score(parts, y)
        od.TruncatedSVC(0.1, kernel_approximation="nystroem", n_components=5).fit(parts[:300], y[:300])
        assert len(od.audit(parts[:2000], y[:2000], folds=2).suspects(5)) == 5


@pytest.fixture(scope="module")
def one_thread():
    """A client of a worker that can do one thing at a time; not the current one."""
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with distributed.Client(cluster, set_as_default=False) as client:
            yield client


def in_pool():
    """Whether this thread is one that a worker may give tasks to."""
    from distributed.threadpoolexecutor import thread_state

    return thread_state.proceed and threading.current_thread() in thread_state.executor._threads


def all_there_is(number, before=None):
    """Everything that waits for tasks, within one."""
    X, y = rows(n=600, seed=number)
    parts = da.from_array(X, chunks=(200, 5))
    if before == "secede":
        distributed.secede()
    model = od.TruncatedSVC(0.1, kernel_approximation="nystroem", n_components=20).fit(parts, y)
    share, suspects = model.score(parts, y), od.audit(parts, y, folds=2).suspects(3)
    tuned = od.tune(outlast.TruncatedSVCCV(Cs=[0.1, 1.0], kernel="linear", cv=2), X, y)
    return model.objective_, share, len(suspects), len(tuned.params_), in_pool()


def test_fits_within_tasks(one_thread):
    X, y = rows(n=600, seed=0)
    model = od.TruncatedSVC(0.1, kernel_approximation="nystroem", n_components=20)
    model.fit(da.from_array(X, chunks=(200, 5)), y, client=one_thread)
    found = one_thread.submit(all_there_is, 0, pure=False).result(timeout=60)
    assert found == (pytest.approx(model.objective_), pytest.approx((model.predict(X) == y).mean()), 3, 2, True)
    # several at a time, each of which gives way to the others
    for several in one_thread.map(all_there_is, [1, 2, 3], pure=False):
        assert several.result(timeout=120)[2:] == (3, 2, True)
    # one that has left already does not come back
    assert one_thread.submit(all_there_is, 0, "secede", pure=False).result(timeout=60)[-1] is False
    assert one_thread.submit(in_pool, pure=False).result(timeout=60)


def refused(number):
    with pytest.raises(ValueError, match="greater than one"):
        od.TruncatedSVC().fit(da.ones((100, 2), chunks=(50, 2)), np.zeros(100, dtype=int))
    return in_pool()


def test_a_fit_that_fails_within_a_task(one_thread):
    assert one_thread.submit(refused, 0, pure=False).result(timeout=60)


def left(client):
    """Tasks that the scheduler knows, and things that workers hold."""
    tasks = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
    return tasks, sum(client.run(lambda dask_worker: len(dask_worker.data)).values())


def comes_down_to(client, before):
    deadline = time.monotonic() + 5
    while True:
        fewer = all(now <= was for now, was in zip(left(client), before, strict=True))
        if fewer or time.monotonic() > deadline:
            return fewer
        time.sleep(0.02)


class Stop(Exception):
    pass


class Stopped(od.TruncatedSVC):
    def _recorded(self, engine, report):
        def record(stage, step, objective, gap):
            if engine.passes >= 3:
                raise Stop
            return False

        return record


def failing(*arguments):
    raise RuntimeError("no more")


@pytest.mark.parametrize("where", ["fit", "classes", "score", "kernel", "audit", "judged"])
def test_who_keeps_an_exception_keeps_no_rows_on_workers(where, cluster, monkeypatch):
    X, y = rows(n=40_000)
    parts, labels = cluster.persist([da.from_array(X, chunks=(5_000, 5)), da.from_array(y, chunks=5_000)])
    distributed.wait([parts, labels])
    before = left(cluster)
    with pytest.raises((Stop, ValueError, RuntimeError)) as kept:
        if where == "fit":
            Stopped(0.1, memory=SMALL).fit(parts, labels)
        elif where == "classes":
            od.TruncatedSVC().fit(parts, labels * 0)
        elif where == "score":
            model = od.TruncatedSVC(0.1).fit(parts[:100], labels[:100])
            model.score(parts.map_blocks(failing, dtype=float, meta=np.empty((0, 0))), labels)
        elif where == "kernel":
            broken = da.concatenate([parts, parts[:10].map_blocks(failing, dtype=float, meta=np.empty((0, 0)))])
            od.TruncatedSVC(kernel_approximation="nystroem").fit(broken, da.concatenate([labels, labels[:10]]))
        elif where == "audit":
            monkeypatch.setattr(od._audit, "_held_out", failing)
            od.audit(parts, labels, folds=2, memory=SMALL)
        else:
            monkeypatch.setattr(od._audit, "_noise", failing)
            od.audit(parts, labels, folds=2, memory=SMALL)
    assert kept.traceback
    assert comes_down_to(cluster, before)


@pytest.mark.parametrize("what", ["score", "kernel", "audit"])
def test_ctrl_c_leaves_no_tasks_and_no_rows(what, cluster):
    X, y = rows(n=6_000)
    slow = da.from_array(X, chunks=(200, 5)).map_blocks(slowly, dtype=X.dtype, meta=np.empty((0, 0)))
    model = od.TruncatedSVC(0.1).fit(da.from_array(X[:500], chunks=(200, 5)), y[:500])
    assert comes_down_to(cluster, (0, 0))
    thread = threading.Thread(target=lambda: (time.sleep(0.7), os.kill(os.getpid(), signal.SIGINT)), daemon=True)
    with pytest.raises(KeyboardInterrupt) as kept:
        thread.start()
        if what == "score":
            model.score(slow, y)
        elif what == "kernel":
            od.TruncatedSVC(kernel_approximation="nystroem").fit(slow, y)
        else:
            od.audit(slow, y)
        thread.join()
    began = time.monotonic()
    assert comes_down_to(cluster, (0, 0)) and time.monotonic() - began < 1.5
    assert kept.traceback


def heavy(client, limit=100_000):
    """The names of tasks that are of more bytes than that."""

    def of(dask_scheduler):
        from distributed.protocol.pickle import dumps

        return [str(task.key) for task in dask_scheduler.tasks.values() if task.run_spec is not None and len(dumps(task.run_spec)) > limit]

    return client.run_on_scheduler(of)


class Weighed(od.TruncatedSVC):
    def _recorded(self, engine, report):
        self.heavy_ = heavy(engine._client)
        return super()._recorded(engine, report)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_maps_and_models_are_sent_once_and_not_with_every_task(kind, cluster, monkeypatch):
    X, y = rows(n=3_000, d=30)
    parts = da.from_array(X, chunks=(300, 30)), da.from_array(y, chunks=300)
    if kind == "frame":
        names = [f"column {number}" for number in range(30)]
        parts = dd.from_pandas(pd.DataFrame(X, columns=names), npartitions=10), dd.from_pandas(pd.Series(y), npartitions=10)
    parts = cluster.persist(parts)
    model = Weighed(0.1, kernel_approximation="nystroem", n_components=200).fit(*parts)
    # 200 rows of 30 numbers and a matrix of 200 x 200
    assert [name.split("-")[0] for name in model.heavy_] == ["Columns"]
    predicted = cluster.persist(model.predict(parts[0]))
    distributed.wait(predicted)
    assert len(heavy(cluster)) == 1
    del predicted
    seen = []

    def watched(client, tasks):
        futures = client.compute(tasks)
        found = client.gather(futures)
        seen.append(heavy(client))
        return found

    monkeypatch.setattr(od._engine, "computed", watched)
    model.score(*parts)
    assert len(seen) == 1 and len(seen[0]) == 1


def test_the_models_of_an_audit_are_sent_once_and_not_with_every_task(cluster, monkeypatch):
    # five models of 2,000 numbers and more
    X, y = rows(n=1_000, d=2_000)
    seen = []
    computed = od._engine.computed

    def watched(client, tasks):
        seen.append([len(cloudpickle.dumps(dict(task.dask)[task.key])) for task in tasks])
        return computed(client, tasks)

    monkeypatch.setattr(od._engine, "computed", watched)
    od.audit(da.from_array(X, chunks=(250, -1)), y, folds=2, C=1e-3)
    assert [len(sizes) for sizes in seen] == [4, 4]
    assert max(max(sizes) for sizes in seen) < 10_000
