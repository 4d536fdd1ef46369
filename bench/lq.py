"""Rows of the table for the L_q penalty: against a linear program, the paper's algorithm, a plain l2 fit, and cold fits."""

import warnings

import numpy as np
import sets
from peers import Peer, missing
from report import Result
from rows import REHLINE, Job, against, best_of, peak, timed, told
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

import outlast

HIGHS, LQA, COLD = "HiGHS LP", "the paper's algorithm", "cold fits"
POWERS = (0.3, 0.5, 0.75, 1.0, 1.5, 2.0)


def jobs(quick, limit):
    """Every row, small ones first."""
    repeats = 1 if quick else 3
    yield Job("lq q=1 n=300 d=2000", lambda: _program(repeats, limit))
    yield Job("lq path n=400 d=200", lambda: _path(6 if quick else 30))
    shapes = [(1_000, 10_000, False)] if quick else [(1_000, 10_000, False), (500, 100_000, False), (500, 100_000, True)]
    for n, d, few in shapes:
        yield Job(f"lq q=0.5 n={n} d={d}{' sparse' if few else ''}", lambda n=n, d=d, few=few: _reweighted(n, d, few, limit))
    if not quick:
        yield Job("lq memory n=500 d=100000", _memory)
    yield Job("lq q=1 n=100000 d=100", lambda: _tall(repeats, limit), missing(REHLINE))


def _note(model):
    return f"{model.n_features_selected_} variables, {told(model)}"


def _result(name, peer, ours, theirs, must, want, value, model, stopped=False):
    return Result(name, peer, ours, theirs, must, want, value, model.gap_, note=_note(model), stopped=stopped,
                  converged=model.status_ == "converged")


def _program(repeats, limit):
    X, y = sets.sparse_truth(300, 2_000, 2)
    peer = Peer(HIGHS, X, y, limit)
    try:
        (ours,), theirs, (model,), found = against(peer, repeats, lambda: outlast.LqSVC().fit(X, y))
    finally:
        peer.close()
    value = None if found is None else model.objective_ / found
    return [_result("lq q=1 n=300 d=2000", HIGHS, ours, theirs or limit, 0.1, 0.03, value, model, theirs is None)]


def _reweighted(n, d, few, limit):
    """Against the paper's algorithm from its own start, stopped after `limit` seconds. Both end in local minima."""
    X, y = sets.sparse_truth(n, d, 2)
    if few:
        X = sets.thinned(X)
    ours, model = timed(lambda: outlast.LqSVC(q=0.5).fit(X, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs, other = timed(lambda: outlast.LqSVC(q=0.5, solver="lqa", tol=1e-3, time_limit=limit).fit(X, y))
    name = f"lq q=0.5 n={n} d={d}{' sparse' if few else ''}"
    stopped = other.status_ != "converged"
    return [_result(name, LQA, ours, theirs, 0.2, None, model.objective_ / other.objective_, model, stopped)]


def _tall(repeats, limit):
    X, y = sets.synthetic(100_000, 100)
    peer = Peer(REHLINE, X, y, limit)
    try:
        (ours,), theirs, (model,), _ = against(peer, repeats, lambda: outlast.LqSVC().fit(X, y), ask=False)
    finally:
        peer.close()
    return [_result("lq q=1 n=100000 d=100", f"{REHLINE}, l2", ours, theirs or limit, 5.0, None, None, model, theirs is None)]


def _memory():
    """What a fit takes beyond X against X itself, dense and sparse."""
    results = []
    for storage, share in (("dense", 1.0), ("sparse", 0.02)):
        grown, objective = peak("lq", 500, 100_000, storage)
        size = 500 * 100_000 * 8 * share * (1.0 if storage == "dense" else 1.5) / 2**20
        results.append(Result(f"lq memory n=500 d=100000 {storage}", "X itself", grown, size, 1.0, unit="MB",
                              note=f"objective {objective:.6g}"))
    return results


# Cold fits are timed at one in so many points of the grid, and points of the path compared with fits of their own: each takes seconds.
SAMPLED, COMPARED = 13, 7


def _path(count):
    """The whole search against one fit for each (C, q) and fold, the same folds, from a sample of these; then its values on all rows
    against fits of their own, for which a power below 1 has several minima."""
    X, y = sets.sparse_truth(400, 200, 2)
    Cs = np.geomspace(0.01, 10.0, count)
    folds = list(StratifiedKFold(5).split(X, y))
    (ours,), (search,) = best_of(1, lambda: timed(lambda: outlast.LqSVCCV(Cs, POWERS, cv=folds, standardize=False).fit(X, y)))
    points = [(train, q, C) for train, _ in folds for q in POWERS for C in Cs]
    some = points[::SAMPLED]
    growth = len(points) / len(some)
    cold, _ = timed(lambda: [outlast.LqSVC(C, q=q).fit(X[train], y[train]) for train, q, C in some])
    name = f"lq path n=400 d=200, {count} C x {len(POWERS)} q, 5 folds"
    result = _result(name, f"{COLD}, 1 in {SAMPLED}", ours, growth * cold, 0.05, None, None, search)
    compared = [(i, j) for i, q in enumerate(POWERS) for j in range(count) if q < 1][::COMPARED]
    above = np.array([_value(search, X, y, i, j) / outlast.LqSVC(Cs[j], q=POWERS[i]).fit(X, y).objective_ - 1
                      for i, j in compared])
    result.note += (f"; q < 1 on all rows: above fits of their own by more than 1e-4 in {np.mean(above > 1e-4):.0%} of {len(above)} points, below in "
                    f"{np.mean(above < -1e-4):.0%}, {above.mean():.2%} above on average, {above.max():.1%} at most")
    return [result]


def _value(search, X, y, i, j):
    """The objective of a point of the path."""
    f = X @ search.coefs_path_[i, j, 0] + search.intercepts_path_[i, j, 0]
    sign = np.where(y == search.classes_[1], 1.0, -1.0)
    penalty = (np.abs(search.coefs_path_[i, j]) ** search.qs_[i]).sum()
    return penalty + search.Cs_[j] * np.maximum(0.0, 1.0 - sign * f).sum()
