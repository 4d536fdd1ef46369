"""Rows of the table for convex outlier ablation: against a general conic solver, reference scripts, and itself."""

import numpy as np
import sets
from peers import Peer, missing
from report import Result
from rows import Job, best_of, timed, told

import outlast

CONIC, SCRIPT, SEARCH = "cvxpy + Clarabel", "reference REH", "reference branch and bound"
SHARE = 0.8


def jobs(folder, quick, limit, reference):
    """Every row, small ones first. `reference` is the folder of ablation_fast.py and ablation_bnb.py."""
    repeats = 1 if quick else 3
    yield Job("REH linear n=50 d=2", lambda: _conic(limit), missing(CONIC))
    sizes = (100, 1_000) if quick else (100, 1_000, 10_000)
    for d in (2, 50):
        for n in sizes:
            yield Job(f"REH and ROD linear n={n} d={d}", lambda n=n, d=d: _growth(n, d, repeats))
    absent = _absent(reference)
    for n in (500,) if quick else (500, 2_000):
        yield Job(f"REH and ROD rbf n={n}", lambda n=n: _kernel(n, repeats, limit, reference), absent)
    yield Job("branch and bound linear n=50", lambda: _search(limit, reference, absent))


def _absent(folder):
    if folder is None:
        return "needs --reference DIR"
    names = ("ablation_fast.py", "ablation_bnb.py")
    gone = [name for name in names if not (folder / name).is_file()]
    return f"{gone[0]} is not in {folder}" if gone else None


def _note(model):
    return f"bound {model.lower_bound_:.6g}, {told(model)}"


def _conic(limit):
    X, y = sets.ring(50, 2)
    C = 0.1
    outlast.AblationSVC(C=C).fit(X, y)
    peer = Peer(CONIC, X, y, limit, beta=1 / C, warm=3)
    try:
        (ours, _), (model, _) = best_of(5, lambda: timed(lambda: outlast.AblationSVC(C=C).fit(X, y)), lambda: (None, None))
        theirs = peer.time()
        found = None if theirs is None else peer.answer()
    finally:
        peer.close()
    # the bound may lie below the peer's value by the tolerance, never above
    value = None if found is None else model.lower_bound_ / (C * found)
    return [Result("REH linear n=50 d=2", CONIC, ours, theirs or limit, 0.001, None, value, model.gap_, note=_note(model),
                   stopped=theirs is None, converged=model.status_ == "converged")]


def _growth(n, d, repeats):
    X, y = sets.ring(n, d)
    fits = [lambda method=method: timed(lambda: outlast.AblationSVC(method, 0.1, inlier_fraction=SHARE, refine=False).fit(X, y))
            for method in ("reh", "rod")]
    (reh, rod), (first, second) = best_of(repeats, *fits)
    shared = dict(series=f"REH linear d={d}", size=n)
    limit = (1.0, None, 1.0) if n == 10_000 else (None, None, None)
    return [
        Result(f"REH linear n={n} d={d}", "1 second" if limit[0] else "", reh, *limit, gap=first.gap_, note=_note(first),
               converged=first.status_ == "converged", **shared),
        Result(f"ROD {SHARE} linear n={n} d={d}", "our REH", rod, reh, 10.0, 3.0, gap=second.gap_, note=_note(second),
               converged=second.status_ == "converged"),
    ]


def _kernel(n, repeats, limit, reference):
    X, y = sets.ring(n, 2)
    options = dict(C=1.0, kernel="rbf", gamma=0.02, refine=False)
    outlast.AblationSVC(**options).fit(X[:50], y[:50])
    peer = Peer(SCRIPT, X, y, limit, folder=str(reference), gamma=0.02, warm=20)
    try:
        fits = [lambda method=method: timed(lambda: outlast.AblationSVC(method, inlier_fraction=SHARE, **options).fit(X, y))
                for method in ("reh", "rod")]
        (reh, rod), (first, second) = best_of(repeats, *fits)
        theirs = peer.time()
        found = None if theirs is None else peer.answer()
    finally:
        peer.close()
    value = None if found is None else first._fitted.detail("relaxation") / found
    return [
        Result(f"REH rbf n={n}", SCRIPT, reh, theirs or limit, 0.1, None, value, first.gap_, note=_note(first),
               stopped=theirs is None, converged=first.status_ == "converged"),
        Result(f"ROD {SHARE} rbf n={n}", "our REH", rod, reh, 10.0, 3.0, gap=second.gap_, note=_note(second),
               converged=second.status_ == "converged"),
    ]


def _search(limit, reference, absent):
    X, y = sets.ring(50, 2)
    options = dict(truncation=0, kernel="linear", fit_intercept=False, global_search=True)
    seconds, model = timed(lambda: outlast.TruncatedSVC(0.01, **options).fit(X, y))
    theirs = value = None
    if absent is None:
        peer = Peer(SEARCH, X, y, limit, folder=str(reference), beta=100.0, warm=4)
        try:
            theirs = peer.time()
            value = None if theirs is None else model.objective_ / (0.01 * peer.answer())
        finally:
            peer.close()
    nodes = int(model._fitted.detail("nodes"))
    note = f"{nodes} nodes, {'closed' if model.proved_ else 'open'}, bound {model.lower_bound_:.6g} of {model.objective_:.6g}"
    return [Result("branch and bound linear n=50", SEARCH if absent is None else "", seconds, theirs, None,
                   0.1 if theirs else None, value, note=note, converged=model.proved_)]
