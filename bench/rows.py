"""The rows of the table. A job makes its data, lets the peers take turns, and returns results."""

import gc
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sets
from report import Result
from scipy import sparse

import outlast

CACHE = 1000
"""Megabytes of cache, for us and for the peers."""


@dataclass
class Job:
    name: str
    run: Callable[[], list[Result]]
    missing: str | None = None


def jobs(folder, quick):
    """Every row, small ones first. `quick` keeps those that take seconds."""
    repeats = 1 if quick else 3
    rbf = "rbf make_classification d=20"
    for n in (5_000, 10_000) if quick else (5_000, 10_000, 20_000, 40_000):
        times = repeats if n <= 10_000 else 1
        yield _kernel_job(f"{rbf} n={n} C=1", lambda n=n: sets.synthetic(n, 20), 1.0, times, 0.25, 0.12, rbf, n)
    for C in (10.0,) if quick else (10.0, 100.0):
        name = f"{rbf} n=10000 C={C:g}"
        yield _kernel_job(name, lambda: sets.synthetic(10_000, 20), C, repeats if C < 100 else 1, 0.5, 0.2)
    for name, must, want in (("ijcnn1", 0.25, 0.1), ("a9a", 0.25, 0.1), ("mnist", 0.5, 0.25)):
        title = f"rbf {name} n=10000" if name == "mnist" else f"rbf {name}"
        yield _kernel_job(title, lambda name=name: sets.real(name, folder), 1.0, 1, must, want,
                          missing=sets.missing(name, folder))
    for n, d in ((100_000, 50),) if quick else ((100_000, 50), (500_000, 20), (1_000_000, 20)):
        times = repeats if n <= 100_000 else 1
        series = "linear d=20" if d == 20 else ""
        yield _linear_job(f"linear n={n} d={d}", lambda n=n, d=d: sets.synthetic(n, d), times, series, n)
    yield _linear_job("linear covtype", lambda: sets.real("covtype", folder), 1, missing=sets.missing("covtype", folder))
    yield Job("predict 2000 rows, 6000 support vectors", lambda: _predict(repeats))
    if not quick:
        yield Job("memory of a 20000-row kernel fit", _memory)


def best_of(repeats, *tasks):
    """The best time of each task, the tasks taking turns, and each task's last answer."""
    times, answers = [float("inf")] * len(tasks), [None] * len(tasks)
    for _ in range(repeats):
        for position, task in enumerate(tasks):
            gc.collect()
            started = time.perf_counter()
            answers[position] = task()
            times[position] = min(times[position], time.perf_counter() - started)
    return times, answers


def _sklearnex(**parameters):
    from sklearnex.svm import SVC

    return SVC(cache_size=CACHE, **parameters)


def _kernel_job(name, data, C, repeats, must, want, series="", size=0, missing=None):
    def run():
        X, y = data()
        plain_rows = _faster_form(X)
        (ours, theirs), (model, peer) = best_of(
            repeats,
            lambda: outlast.TruncatedSVC(C, cache_size=CACHE).fit(X, y),
            lambda: _sklearnex(C=C).fit(plain_rows, y),
        )
        # both measured by the truncated objective; the peer knows nothing of truncation, so above 1 would be a failure
        value = model.objective_ / _truncated_value(peer, plain_rows, y, C)
        note = f"{len(model.support_)} SV of {len(peer.support_)}, {model.n_iter_} steps, {model.solver_}, {model.status_}"
        return [Result(name, "sklearnex SVC", ours, theirs, must, want, value, model.gap_, note=note, series=series,
                       size=size)]

    return Job(name, run, missing)


def _faster_form(X):
    """What the peer is faster with: dense rows unless most entries are zero (ijcnn1 dense, a9a sparse)."""
    return X.toarray() if sparse.issparse(X) and X.nnz > 0.3 * X.shape[0] * X.shape[1] else X


def _truncated_value(peer, X, y, C, truncation=-1.0):
    """1/2 |f|^2 + C sum min([1 - y f]_+, 1 - s) of an SVC, 5,000 rows at a time."""
    decision = np.concatenate([np.ravel(peer.decision_function(X[start:start + 5_000])) for start in
                               range(0, X.shape[0], 5_000)])
    beta = peer.dual_coef_.toarray() if sparse.issparse(peer.dual_coef_) else peer.dual_coef_
    norm = 0.5 * float(np.ravel(beta) @ (decision[peer.support_] - np.ravel(peer.intercept_)[0]))
    loss = np.minimum(np.maximum(0.0, 1.0 - (2 * y - 1) * decision), 1.0 - truncation)
    return norm + C * float(loss.sum())


def _hinge_value(weights, intercept, X, y):
    margins = (2 * y - 1) * (X @ weights + intercept)
    return 0.5 * float(weights @ weights) + float(np.maximum(0.0, 1.0 - margins).sum())


def _linear_job(name, data, repeats, series="", size=0, missing=None):
    def run():
        from rehline import plqERM_Ridge

        X, y = data()
        # rehline has no intercept of its own; its constant column is penalised, which our objective is not
        with_constant = np.c_[X, np.ones(len(y))]
        labels = 2.0 * y - 1.0

        def rehline():
            model = plqERM_Ridge(loss={"name": "svm"}, C=1.0, max_iter=10_000)
            return model.fit(X=with_constant, y=labels)

        (robust, plain, theirs), (truncated, hinge, peer) = best_of(
            repeats,
            lambda: outlast.TruncatedSVC(kernel="linear").fit(X, y),
            lambda: outlast.TruncatedSVC(kernel="linear", truncation=None).fit(X, y),
            rehline,
        )
        weights, intercept = np.ravel(peer.coef_)[: X.shape[1]], float(np.ravel(peer.coef_)[X.shape[1]])
        peer_hinge = _hinge_value(weights, intercept, X, y)
        margins = (2 * y - 1) * (X @ weights + intercept)
        peer_truncated = 0.5 * float(weights @ weights) + float(np.clip(1.0 - margins, 0.0, 2.0).sum())
        tell = "{m.n_iter_} steps, {m.solver_}, {m.status_}"
        return [
            Result(f"{name} robust", "rehline", robust, theirs, 0.5, 0.2, truncated.objective_ / peer_truncated,
                   truncated.gap_, note=tell.format(m=truncated), series=f"{series} robust" if series else "", size=size),
            Result(f"{name} plain", "rehline", plain, theirs, 0.2, 0.1, hinge.objective_ / peer_hinge, hinge.gap_,
                   note=tell.format(m=hinge), series=f"{series} plain" if series else "", size=size),
        ]

    return Job(name, run, missing)


def _predict(repeats):
    """Rows of noise make nearly every training row a support vector."""
    from sklearn.svm import SVC

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6_200, 20)), rng.integers(0, 2, 6_200)
    new = rng.standard_normal((2_000, 20))
    ours = outlast.TruncatedSVC(truncation=None).fit(X, y)
    plain, fast = SVC(cache_size=CACHE).fit(X, y), _sklearnex().fit(X, y)
    times, answers = best_of(repeats, *(lambda model=model: model.predict(new) for model in (ours, plain, fast)))
    note = f"{len(ours.support_)}, {len(plain.support_)}, {len(fast.support_)} SV; {np.mean(answers[0] == answers[1]):.4f} agree"
    name = "predict 2000 rows, 6000 support vectors"
    return [
        Result(name, "scikit-learn SVC", times[0], times[1], 0.2, 0.1, note=note),
        Result(name, "sklearnex SVC", times[0], times[2], note="for comparison"),
    ]


def _memory():
    """Peak memory a fit adds, in a process of its own: data made before the first reading."""
    grown, objective = map(float, subprocess.run(
        [sys.executable, str(Path(__file__).with_name("memory.py")), "20000", str(CACHE)],
        check=True, capture_output=True, text=True,
    ).stdout.split())
    allowed = CACHE + 200.0
    return [Result("memory of a 20000-row kernel fit", "cache budget + 200", grown, allowed, 1.0, unit="MB",
                   note=f"objective {objective:.6g}")]
