"""Rows of the table for many classes, utilities and sparse penalties."""

import numpy as np
import sets
from peers import CACHE, Peer, missing, small
from report import Result
from rows import INTEL, Job, against, best_of, timed, told

import outlast

CRAMMER_SINGER, HIGHS, SVC = "LinearSVC crammer_singer", "HiGHS LP", "scikit-learn SVC"


def jobs(folder, quick, limit):
    """Every row, small ones first."""
    repeats = 1 if quick else 3
    yield _sparse_job("l1 n=300 d=2000", 300, 2_000, repeats, limit)
    yield Job("utility k=3 rbf n=4000", lambda: _utility(repeats))
    yield _kernel_job("rbf k=3 d=20 n=10000, 10 % flipped", lambda: sets.classes(10_000, 20, 3), repeats, limit, 0.5, 0.2)
    yield _kernel_job("rbf pendigits k=10", lambda: sets.classes_of("pendigits", folder), repeats, limit, 1.0, None,
                      sets.missing("pendigits", folder))
    yield _kernel_job("rbf letter k=26", lambda: sets.classes_of("letter", folder), 1, limit, 1.0, None,
                      sets.missing("letter", folder))
    yield _linear_job("linear k=3 n=200000 d=20", lambda: sets.classes(200_000, 20, 3), 1, limit, 1_000, 0.2, 0.05)
    if not quick:
        covtype = dict(data=lambda: sets.classes_of("covtype", folder), repeats=1, limit=5 * limit, must=0.5, want=0.1,
                       absent=sets.missing("covtype", folder))
        yield _linear_job("linear covtype k=7", max_iter=100, **covtype)
        # LIBLINEAR's solver of this form knows no limit of iterations: only a loose tolerance lets it end
        yield _linear_job("linear covtype k=7, peer tol=3", max_iter=100, tol=3.0, **covtype)
    for columns in (2_500,) if quick else (2_500, 5_000, 10_000):
        yield Job(f"adaptive_l1 k=3 n=1000 d={columns}", lambda columns=columns: _adaptive(columns))


def _kernel_job(name, data, repeats, limit, must, want, absent=None):
    """The joint robust fit against the peer's plain one-against-one fit. The two have no objective in common."""

    def run():
        X, y = data()
        outlast.TruncatedSVC(cache_size=CACHE).fit(*small(X, y, 50))
        peer = Peer(INTEL, X, y, limit, C=1.0)
        try:
            (ours,), theirs, (model,), _ = against(
                peer, repeats, lambda: outlast.TruncatedSVC(cache_size=CACHE).fit(X, y), ask=False
            )
        finally:
            peer.close()
        shared = dict(gap=model.gap_, note=told(model), converged=model.status_ == "converged")
        results = [Result(name, INTEL, ours, theirs or limit, must, want, stopped=theirs is None, **shared)]
        if want is None:
            # many small problems are where the other one is the faster of the two
            peer = Peer(SVC, X, y, limit)
            try:
                theirs, _ = best_of(repeats, lambda: (peer.time(), None))
            finally:
                peer.close()
            stopped = theirs[0] is None
            results.append(Result(name, SVC, ours, theirs[0] or limit, None, 1.0, stopped=stopped, **shared))
        return results

    return Job(name, run, absent or missing(INTEL))


def _utility(repeats):
    """A utility matrix gives every row three terms; the reduced dual keeps the number of variables."""
    X, y = sets.classes(4_000, 20, 3)
    matrix = [[1.0, 0.4, 0.0], [0.2, 1.0, 0.2], [0.0, 0.4, 1.0]]
    fits = [lambda options=options: timed(lambda: outlast.TruncatedSVC(cache_size=CACHE, **options).fit(X, y))
            for options in ({"utility": matrix}, {})]
    times, models = best_of(repeats, *fits)
    return [Result("utility k=3 rbf n=4000", "our unweighted fit", *times, 2.0, gap=models[0].gap_, note=told(models[0]),
                   converged=models[0].status_ == "converged")]


def _linear_job(name, data, repeats, limit, max_iter, must, want, absent=None, tol=1e-4):
    def run():
        X, y = data()
        outlast.TruncatedSVC(kernel="linear").fit(*small(X, y))
        peer = Peer(CRAMMER_SINGER, X, y, limit, max_iter=max_iter, tol=tol)
        try:
            (ours,), theirs, (model,), found = against(
                peer, repeats, lambda: outlast.TruncatedSVC(kernel="linear").fit(X, y)
            )
        finally:
            peer.close()
        value = None
        if found is not None:
            # the peer penalises its intercepts, which our objective does not
            value = model.objective_ / _truncated_objective(X, y, *found)
        aside = "" if theirs is None or peer.converged else "; the peer did not converge"
        return [Result(name, CRAMMER_SINGER, ours, theirs or limit, must, want, value, model.gap_, note=told(model) + aside,
                       stopped=theirs is None, converged=model.status_ == "converged")]

    return Job(name, run, absent)


def _truncated_objective(X, y, weights, intercepts):
    """1/2 sum_j |w_j|^2 + sum_i min([1 - m_i]_+, 1 - s), s = -1/(k-1), after the mean over the classes is taken out of w."""
    classes, codes = np.unique(y, return_inverse=True)
    weights = weights - weights.mean(axis=0)
    scores = X @ weights.T + intercepts
    rows = np.arange(len(codes))
    own = scores[rows, codes]
    scores[rows, codes] = -np.inf
    margin = own - scores.max(axis=1)
    most = 1.0 + 1.0 / (len(classes) - 1)
    return 0.5 * float((weights**2).sum()) + float(np.clip(1.0 - margin, 0.0, most).sum())


def _sparse_job(name, n, d, repeats, limit):
    """The robust l1 fit, all its convex steps, against one linear program, the plain one."""

    def run():
        X, y = sets.sparse_truth(n, d, 2)
        options = dict(kernel="linear", penalty="l1")
        outlast.TruncatedSVC(**options).fit(X[:50, :20], y[:50])
        peer = Peer(HIGHS, X, y, limit)
        try:
            (ours, robust), theirs, (model, truncated), found = against(
                peer,
                repeats,
                lambda: outlast.TruncatedSVC(truncation=None, **options).fit(X, y),
                lambda: outlast.TruncatedSVC(**options).fit(X, y),
            )
        finally:
            peer.close()
        value = None if found is None else model.objective_ / found
        note = f"{model.n_features_selected_} variables, {told(model)}"
        also = f"{truncated.n_features_selected_} variables, {told(truncated)}"
        stopped = theirs is None
        return [
            Result(f"{name} plain", HIGHS, ours, theirs or limit, 0.1, 0.03, value, model.gap_, note=note, stopped=stopped,
                   converged=model.status_ == "converged"),
            Result(f"{name} robust", HIGHS, robust, theirs or limit, 0.1, 0.03, None, truncated.gap_, note=also,
                   stopped=stopped, converged=truncated.status_ == "converged"),
        ]

    return Job(name, run)


def _adaptive(columns):
    X, y = sets.sparse_truth(1_000, columns, 3)
    seconds, model = timed(lambda: outlast.TruncatedSVC(kernel="linear", penalty="adaptive_l1").fit(X, y))
    note = f"{model.n_features_selected_} variables, {told(model)}"
    return [Result(f"adaptive_l1 k=3 n=1000 d={columns}", "", seconds, None, gap=model.gap_, note=note,
                   series="adaptive_l1 k=3 n=1000, columns", size=columns, converged=model.status_ == "converged")]
