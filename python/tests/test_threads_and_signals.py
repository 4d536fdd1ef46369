"""Long fits: other threads run, and Ctrl-C is heard."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from outlast import TruncatedSVC

SOON = 3.0
"""Seconds within which a fit must have ended after Ctrl-C."""


@pytest.fixture(scope="module")
def long_work():
    """A fit that takes several seconds at least: noise, a large C and a tolerance beyond reach of a quick solve."""
    X, y = make_classification(20_000, 30, n_informative=20, flip_y=0.4, random_state=0)
    return TruncatedSVC(C=1000.0, tol=1e-12, max_iter=10_000), X, y


def test_ctrl_c_ends_a_fit(long_work):
    model, X, y = long_work
    timer = threading.Timer(0.7, signal.raise_signal, [signal.SIGINT])
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    timer.join()
    assert 0.6 < time.monotonic() - started < 0.7 + SOON
    assert not hasattr(model, "classes_")


@pytest.fixture(scope="module")
def long_search():
    """A search for a global optimum that takes hours: labels at random, and a large C."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 6)), rng.integers(0, 2, 120)
    return TruncatedSVC(C=10.0, truncation=0, kernel="linear", fit_intercept=False, global_search=True), X, y


def test_ctrl_c_ends_a_search_with_the_best_so_far(long_search):
    model, X, y = long_search
    timer = threading.Timer(1.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    started = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, y)
    timer.join()
    assert time.monotonic() - started < 1.5 + SOON
    assert model.status_ == "interrupted"
    assert 0 <= model.lower_bound_ <= model.objective_
    assert not model.proved_


def test_a_time_limit_ends_a_search_with_the_best_so_far(long_search):
    model, X, y = long_search
    started = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        limited = clone(model).set_params(time_limit=0.5).fit(X, y)
    assert time.monotonic() - started < 0.5 + SOON
    assert limited.objective_ <= clone(model).set_params(global_search=False).fit(X, y).objective_


def test_other_signal_handlers_run_and_their_exceptions_pass(long_work):
    class Alarm(Exception):
        pass

    def ring(number, frame):
        raise Alarm

    model, X, y = long_work
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(Alarm):
            model.fit(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_other_threads_run_during_a_fit(long_work):
    model, X, y = long_work
    beats = []
    done = threading.Event()

    def beat():
        while not done.is_set():
            beats.append(time.monotonic())
            time.sleep(0.01)

    heart = threading.Thread(target=beat)
    timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    heart.start()
    timer.start()
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    finally:
        ended = time.monotonic()
        done.set()
        heart.join()
        timer.join()
    during = [beat for beat in beats if started < beat < ended]
    # a fit that held the GIL would leave a gap as long as itself; the machine may be busy, hence the wide margin
    assert len(during) > 10
    assert max(np.diff([started, *during])) < 0.5


def test_an_error_in_the_progress_callback_ends_the_fit(monkeypatch):
    def fail(*arguments):
        raise RuntimeError("enough")

    X, y = make_classification(500, 5, flip_y=0.1, random_state=1)
    monkeypatch.setattr("outlast._progress.Lines.__call__", fail)
    with pytest.raises(RuntimeError, match="enough"):
        TruncatedSVC(verbose=1).fit(X, y)


def _ended(child, seconds):
    """The exit code of a child process, None if it is still running after that long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_forked_process_predicts_and_fits(n_jobs):
    """The child has none of the parent's threads; work given to their pool would wait forever."""
    X, y = make_classification(3000, 5, flip_y=0.1, random_state=1)
    model = TruncatedSVC(n_jobs=n_jobs).fit(X, y)
    expected = model.predict(X)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            again = TruncatedSVC(n_jobs=n_jobs).fit(X, y)
            code = 0 if (model.predict(X) == expected).all() and (again.predict(X) == expected).all() else 2
        finally:
            os._exit(code)
    assert _ended(child, 60.0) == 0
    np.testing.assert_array_equal(model.predict(X), expected)


def test_predictions_do_not_depend_on_the_threads():
    X, y = make_classification(3000, 5, flip_y=0.1, random_state=1)
    model = TruncatedSVC().fit(X, y)
    one, two = (model.set_params(n_jobs=jobs).decision_function(X) for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_fits_in_several_threads_at_once():
    X, y = make_classification(500, 5, flip_y=0.1, random_state=1)
    expected = TruncatedSVC().fit(X, y).objective_
    found = []
    workers = [threading.Thread(target=lambda: found.append(TruncatedSVC().fit(X, y).objective_)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == pytest.approx([expected] * 4, rel=1e-9)
