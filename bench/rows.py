"""The rows of the table. A job makes its data, lets us and the peer take turns, and returns results."""

import gc
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sets
from peers import CACHE, Peer, missing, small
from report import Result
from scipy import sparse
from sklearn.svm import SVC

import outlast

INTEL, REHLINE = "sklearnex SVC", "rehline"


@dataclass
class Job:
    name: str
    run: Callable[[], list[Result]]
    missing: str | None = None


def jobs(folder, quick, limit):
    """Every row, small ones first. `quick` keeps those that take seconds; a peer is stopped after `limit` seconds."""
    repeats = 1 if quick else 3
    rbf = "rbf make_classification d=20"
    for n in (5_000, 10_000) if quick else (5_000, 10_000, 20_000, 40_000):
        times = repeats if n <= 10_000 else 1
        yield _kernel_job(f"{rbf} n={n} C=1", lambda n=n: sets.synthetic(n, 20), 1.0, times, limit, 0.25, 0.12, rbf, n)
    for C in (10.0,) if quick else (10.0, 100.0):
        name = f"{rbf} n=10000 C={C:g}"
        yield _kernel_job(name, lambda: sets.synthetic(10_000, 20), C, repeats if C < 100 else 1, limit, 0.5, 0.2)
    for name, must, want in (("ijcnn1", 0.25, 0.1), ("a9a", 0.25, 0.1), ("mnist", 0.5, 0.25)):
        title = f"rbf {name} n=10000" if name == "mnist" else f"rbf {name}"
        yield _kernel_job(title, lambda name=name: sets.real(name, folder), 1.0, 1, limit, must, want,
                          absent=sets.missing(name, folder))
    for n, d in ((100_000, 50),) if quick else ((100_000, 50), (500_000, 20), (1_000_000, 20)):
        times = repeats if n <= 100_000 else 1
        series = "linear d=20" if d == 20 else ""
        yield _linear_job(f"linear n={n} d={d}", lambda n=n, d=d: sets.synthetic(n, d), times, limit, series, n)
    yield _linear_job("linear covtype", lambda: sets.real("covtype", folder), 1, limit,
                      absent=sets.missing("covtype", folder))
    yield Job("predict 2000 rows, 6000 support vectors", lambda: _predict(repeats))
    if not quick:
        yield Job("memory of a 20000-row kernel fit", _memory)


def timed(task):
    gc.collect()
    started = time.perf_counter()
    answer = task()
    return time.perf_counter() - started, answer


def best_of(repeats, *tasks):
    """The best time of each task and its last answer. Tasks give (seconds, answer), take turns, and change their order."""
    times, answers = [None] * len(tasks), [None] * len(tasks)
    for repeat in range(repeats):
        order = range(len(tasks)) if repeat % 2 == 0 else reversed(range(len(tasks)))
        for position in order:
            seconds, answer = tasks[position]()
            if seconds is not None:
                times[position] = min(seconds, times[position] or seconds)
                answers[position] = answer
    return times, answers


def against(peer, repeats, *ours, ask=True):
    """Times of our tasks and the peer's, our answers, the peer's answer; None for what a stopped peer did not give or, with
    `ask` false, was not asked for."""
    tasks = [lambda task=task: timed(task) for task in ours]
    times, answers = best_of(repeats, *tasks, lambda: (peer.time(), None))
    return times[:-1], times[-1], answers[:-1], peer.answer() if ask else None


def _kernel_job(name, data, C, repeats, limit, must, want, series="", size=0, absent=None):
    def run():
        X, y = data()
        outlast.TruncatedSVC(C, cache_size=CACHE).fit(*small(X, y))
        plain_rows = _faster_form(X)
        peer = Peer(INTEL, plain_rows, y, limit, C=C)
        try:
            (ours,), theirs, (model,), found = against(
                peer, repeats, lambda: outlast.TruncatedSVC(C, cache_size=CACHE).fit(X, y)
            )
        finally:
            peer.close()
        note, value, peer_gap = told(model), None, None
        if found is not None:
            truncated, primal, dual = _values(found, y, C)
            # the peer knows nothing of truncation, so above 1 would be a failure
            value, peer_gap = model.objective_ / truncated, (primal - dual) / primal
            note = f"{len(model.support_)} SV of {len(found[0])}, {note}"
        return [Result(name, INTEL, ours, theirs or limit, must, want, value, model.gap_, peer_gap, note=note, series=series,
                       size=size, stopped=theirs is None, converged=model.status_ == "converged")]

    return Job(name, run, absent or missing(INTEL))


def told(model):
    return f"{model.n_iter_} steps, {model.solver_}, {model.status_}"


def _faster_form(X):
    """What the peer is faster with: dense rows unless most entries are zero (ijcnn1 dense, a9a sparse)."""
    return X.toarray() if sparse.issparse(X) and X.nnz > 0.3 * X.shape[0] * X.shape[1] else X


def _values(found, y, C, truncation=-1.0):
    """Of an SVC with beta = y alpha: its truncated objective 1/2 |f|^2 + C sum min([1 - y f]_+, 1 - s), its hinge objective,
    and its dual objective sum alpha - 1/2 |f|^2, with alpha = |beta|."""
    support, beta, intercept, decision = found
    norm = 0.5 * float(beta @ (decision[support] - intercept))
    loss = np.maximum(0.0, 1.0 - (2 * y - 1) * decision)
    truncated = norm + C * float(np.minimum(loss, 1.0 - truncation).sum())
    return truncated, norm + C * float(loss.sum()), float(np.abs(beta).sum()) - norm


def _linear_job(name, data, repeats, limit, series="", size=0, absent=None):
    def run():
        X, y = data()
        for truncation in ("auto", None):
            outlast.TruncatedSVC(kernel="linear", truncation=truncation).fit(*small(X, y))
        # rehline has no intercept of its own; its constant column is penalised, which our objective is not
        peer = Peer(REHLINE, np.c_[X, np.ones(len(y))], y, limit)
        try:
            (robust, plain), theirs, (truncated, hinge), found = against(
                peer,
                repeats,
                lambda: outlast.TruncatedSVC(kernel="linear").fit(X, y),
                lambda: outlast.TruncatedSVC(kernel="linear", truncation=None).fit(X, y),
            )
        finally:
            peer.close()
        values = (None, None)
        if found is not None:
            norm, loss = 0.5 * float(found[:-1] @ found[:-1]), 1.0 - (2 * y - 1) * (X @ found[:-1] + found[-1])
            peer_truncated, peer_hinge = (norm + float(np.clip(loss, 0.0, most).sum()) for most in (2.0, None))
            values = (truncated.objective_ / peer_truncated, hinge.objective_ / peer_hinge)
        aside = "" if theirs is None or peer.converged else "; rehline did not converge"
        return [
            Result(f"{name} {kind}", REHLINE, ours, theirs or limit, must, want, value, model.gap_, note=told(model) + aside,
                   series=f"{series} {kind}" if series else "", size=size, stopped=theirs is None,
                   converged=model.status_ == "converged")
            for kind, ours, must, want, value, model in (
                ("robust", robust, 0.5, 0.2, values[0], truncated),
                ("plain", plain, 0.2, 0.1, values[1], hinge),
            )
        ]

    return Job(name, run, absent or missing(REHLINE))


def _predict(repeats):
    """Rows of noise make nearly every training row a support vector."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6_200, 20)), rng.integers(0, 2, 6_200)
    new = rng.standard_normal((2_000, 20))
    models = {"": outlast.TruncatedSVC(truncation=None).fit(X, y), "scikit-learn SVC": SVC(cache_size=CACHE).fit(X, y)}
    if missing(INTEL) is None:
        from sklearnex.svm import SVC as IntelSVC

        models[INTEL] = IntelSVC(cache_size=CACHE).fit(X, y)
    for model in models.values():
        model.predict(new[:50])
    tasks = [lambda model=model: timed(lambda: model.predict(new)) for model in models.values()]
    times, answers = best_of(repeats, *tasks)
    counts = ", ".join(str(len(model.support_)) for model in models.values())
    note = f"{counts} SV; {np.mean(answers[0] == answers[1]):.4f} agree"
    name = "predict 2000 rows, 6000 support vectors"
    results = [Result(name, "scikit-learn SVC", times[0], times[1], 0.2, 0.1, note=note)]
    if INTEL in models:
        results.append(Result(name, INTEL, times[0], times[2], note="for comparison"))
    return results


def _memory():
    allowed = CACHE + 200.0
    grown, objective = peak("kernel", 20_000, CACHE)
    return [Result("memory of a 20000-row kernel fit", "cache budget + 200", grown, allowed, 1.0, unit="MB",
                   note=f"objective {objective:.6g}")]


def peak(*what):
    """Peak memory a fit adds in MB, in a process of its own (data made before the first reading), and its objective."""
    command = [sys.executable, str(Path(__file__).with_name("memory.py")), *map(str, what)]
    return map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
