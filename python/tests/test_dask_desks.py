"""The short way to rows on workers, against the way by tasks."""

import contextlib
import os
import signal
import time

import numpy as np
import pytest

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402
import distributed  # noqa: E402
from clusters import SMALL, cluster, rows  # noqa: E402, F401

import outlast.dask as od  # noqa: E402
from outlast.dask import _desks, _engine  # noqa: E402


@pytest.fixture
def ways(monkeypatch):
    """Which way each pass of a fit went: True for the desks."""
    gone = []
    directly = _engine.Engine._directly

    def recorded(self, request):
        told = directly(self, request)
        gone.append(told is not None)
        return told

    monkeypatch.setattr(_engine.Engine, "_directly", recorded)
    # other tests run beside these
    monkeypatch.setattr(_desks, "_PATIENCE", 60.0)
    return gone


def fitted(X, y, chunk=15_000):
    return od.TruncatedSVC(0.1, memory=SMALL).fit(da.from_array(X, chunks=(chunk, X.shape[1])), y)


def held(client):
    """Desks that the scheduler knows, and those on workers."""
    known = client.run_on_scheduler(lambda dask_scheduler: sum("Desk" in str(key) for key in dask_scheduler.tasks))
    return known + sum(client.run(lambda dask_worker: len(dask_worker.state.actors)).values())


def test_both_ways_give_the_same_sums(cluster, ways, monkeypatch):
    X, y = rows(n=60_000)
    short = fitted(X, y)
    assert len(ways) == short.passes_ > 5 and all(ways)
    # what is on the workers goes with the fit
    deadline = time.monotonic() + 5
    while held(cluster) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert held(cluster) == 0
    monkeypatch.setattr(_desks.Desks, "open", lambda *_: None)
    by_tasks = fitted(X, y)
    assert not any(ways[short.passes_ :])
    # parts may lie elsewhere the second time, and are added in another order
    np.testing.assert_allclose(short.coef_, by_tasks.coef_, rtol=1e-10)
    assert np.median(short.bytes_per_pass_) == pytest.approx(np.median(by_tasks.bytes_per_pass_), rel=0.01)
    assert short.objective_ == pytest.approx(by_tasks.objective_, rel=1e-12) and short.passes_ == by_tasks.passes_


def test_workers_of_several_threads(ways):
    X, y = rows(n=60_000)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=3, processes=True, dashboard_address=None) as machines:
        with distributed.Client(machines):
            model = fitted(X, y, 6_000)
    assert all(ways) and model.status_ == "converged"
    # what is sent does not depend on how many parts and threads there are: a question, and a sum of 6 + 6^2 numbers and some
    assert np.median(model.bytes_per_pass_) < 3_000


def forget(dask_worker):
    for desk in dask_worker.state.actors.values():
        desk._lanes = [[f"{key}-of-another" for key in lane] for lane in desk._lanes]


@pytest.mark.parametrize("trouble", ["rows are gone", "desk is unknown", "worker is gone", "worker hangs", "never there"])
def test_what_a_desk_cannot_do_tasks_can(trouble, ways, monkeypatch):
    X, y = rows(n=60_000)
    ask, calls = _desks.Desks.ask, []
    monkeypatch.setattr(_desks, "_LOOK", 0.2)
    # a scheduler that soon takes a silent worker for lost
    with dask.config.set({"distributed.scheduler.worker-ttl": "5s" if trouble == "worker hangs" else "300s"}):
        machines = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with machines:
        with distributed.Client(machines) as client:
            whole = fitted(X, y)
            ways.clear()

            def troubled(self, request):
                calls.append(request)
                if len(calls) == 4 and trouble == "rows are gone":
                    client.run(forget)
                if len(calls) == 4 and trouble == "desk is unknown":
                    self._keys = {worker: f"{key}-of-another" for worker, key in self._keys.items()}
                if len(calls) == 4 and trouble.startswith("worker"):
                    os.kill(machines.workers[0].pid, signal.SIGKILL if trouble == "worker is gone" else signal.SIGSTOP)
                return ask(self, request)

            monkeypatch.setattr(_desks.Desks, "ask", troubled)
            if trouble == "never there":
                monkeypatch.setattr(_desks, "_PATIENCE", 0.0)
            stopped = machines.workers[0].pid
            model = fitted(X, y)
            if trouble == "worker hangs":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(stopped, signal.SIGKILL)
    asked = {"never there": 0}.get(trouble, 3)
    assert ways == [True] * asked + [False] * (model.passes_ - asked)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-9)
