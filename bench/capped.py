"""Rows of the table for the capped machine: the full robust fit against plain fits of LinearSVC and SVC, and exact rounds
against the alternating algorithm."""

import warnings

import numpy as np
import sets
from peers import Peer
from report import Result
from rows import Job, against, best_of, timed, told
from sklearn.exceptions import ConvergenceWarning

import outlast

LIBLINEAR, DUAL, LIBSVM = "LinearSVC dual=False", "LinearSVC", "scikit-learn SVC"


def jobs(folder, quick, limit):
    """Every row, small ones first."""
    repeats = 1 if quick else 3
    for n, d, k in ((72, 7_129, 2), (174, 9_000, 11)):
        yield Job(f"capped p=2 n={n} d={d} k={k}", lambda n=n, d=d, k=k: _plain(sets.genes(n, d, k), f"capped p=2 n={n} d={d} k={k}",
                  DUAL, {}, 5, limit, 1.0, 0.3))
    yield Job("capped p=2 n=100000 d=100", lambda: _plain(sets.synthetic(100_000, 100), "capped p=2 n=100000 d=100", LIBLINEAR,
              {"dual": False}, repeats, limit, 1.5, 0.7))
    if not quick:
        yield Job("capped p=2 n=1000000 d=50", lambda: _plain(sets.synthetic(1_000_000, 50), "capped p=2 n=1000000 d=50", LIBLINEAR,
                  {"dual": False}, 1, limit, None, 0.7))
    for n, d in ((20_000, 50),) if quick else ((20_000, 50), (100_000, 100)):
        yield Job(f"capped exact against alternating n={n} d={d}", lambda n=n, d=d: _exact(n, d))
    yield Job("capped p=1 rbf pendigits", lambda: _kernel(folder, limit), sets.missing("pendigits", folder))


def _plain(data, name, peer_name, options, repeats, limit, must, want):
    X, y = data
    outlast.CappedSVC(p=2.0).fit(X[:100, :50], y[:100])
    peer = Peer("LinearSVC", X, y, limit, **options)
    try:
        (ours,), theirs, (model,), _ = against(peer, repeats, lambda: outlast.CappedSVC(p=2.0).fit(X, y), ask=False)
    finally:
        peer.close()
    note = told(model) + ("" if theirs is None or peer.converged else "; LinearSVC did not converge")
    return [Result(name, peer_name, ours, theirs or limit, must, want, gap=model.gap_, note=note, stopped=theirs is None,
                   converged=model.status_ == "converged")]


def _exact(n, d):
    """The time each takes to the objective that the alternating solver ends at: first how many rounds that is, then these."""
    X, y = sets.synthetic(n, d)
    cap = outlast.CappedSVC(p=2.0).fit(X, y).cap_

    def fit(rounds, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return outlast.CappedSVC(p=2.0, cap=cap, max_iter=rounds, **options).fit(X, y)

    alternating = fit(5_000, solver="alternating")
    goal = alternating.objective_ * (1 + 1e-6)

    def needed(model):
        """Rounds until the goal; all of them if it was not reached."""
        reached = np.flatnonzero(model.objective_trace_ <= goal)
        return max(1, int(reached[0])) if len(reached) else len(model.objective_trace_)

    slow, fast = needed(alternating), needed(fit(1_000))
    (theirs, ours), (_, model) = best_of(3 if n <= 20_000 else 1, lambda: timed(lambda: fit(slow, solver="alternating")), lambda: timed(lambda: fit(fast)))
    return [Result(f"capped exact against alternating n={n} d={d}", "our alternating", ours, theirs, 0.1, None, model.objective_ / goal,
                   model.gap_, note=f"{slow} passes against {fast} rounds")]


def _kernel(folder, limit):
    X, y = sets.classes_of("pendigits", folder)
    outlast.CappedSVC(p=1.0, kernel="rbf").fit(X[:200], y[:200])
    peer = Peer(LIBSVM, X, y, limit)
    try:
        (ours,), theirs, (model,), _ = against(peer, 1, lambda: outlast.CappedSVC(p=1.0, kernel="rbf").fit(X, y), ask=False)
    finally:
        peer.close()
    return [Result("capped p=1 rbf pendigits", LIBSVM, ours, theirs or limit, None, 3.0, gap=model.gap_, note=told(model),
                   stopped=theirs is None, converged=model.status_ == "converged")]
