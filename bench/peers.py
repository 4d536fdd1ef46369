"""A peer in a process of its own: warmed before it is timed, and stopped when it takes too long."""

import gc
import multiprocessing
import sys
import time
import warnings
from importlib.util import find_spec

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

CACHE = 1000
"""Megabytes of cache, for us and for the peers."""

START = 600.0
"""Seconds a process may take to import the peer, receive the data and make a small fit."""

MODULES = {"sklearnex SVC": "sklearnex", "rehline": "rehline", "cvxpy + Clarabel": "cvxpy"}
"""What has to be installed for a peer, beyond scikit-learn and SciPy."""


def missing(name):
    """Why a peer can't take part, or None."""
    module = MODULES[name]
    return None if find_spec(module) else f"{module} is not installed"


def small(X, y, rows=250):
    """A few rows of each class, for a fit that only warms up."""
    some = np.sort(np.concatenate([np.flatnonzero(y == label)[:rows] for label in np.unique(y)]))
    return X[some], y[some]


class Peer:
    """Fits on request, after a fit of at most `warm` rows of each class (250 unless given). `time` gives the seconds of one fit, or None when the limit has passed and it was stopped."""

    def __init__(self, name, X, y, limit, **options):
        context = multiprocessing.get_context("spawn")
        self.name, self.limit, self.stopped, self.converged = name, limit, False, True
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there, name, X, y, options), daemon=True)
        self._process.start()
        there.close()
        if not self._pipe.poll(START):
            self._stop()
        else:
            self._receive()

    def time(self):
        if self.stopped:
            return None
        self._pipe.send("fit")
        if not self._pipe.poll(self.limit):
            self._stop()
            return None
        seconds, self.converged = self._receive()
        return seconds

    def answer(self):
        """What the last fit found, None of a peer that was stopped."""
        if self.stopped:
            return None
        self._pipe.send("answer")
        return self._receive()

    def close(self):
        if not self.stopped:
            self._stop()

    def _receive(self):
        try:
            return self._pipe.recv()
        except EOFError:
            raise RuntimeError(f"{self.name} has ended; what it said is above") from None

    def _stop(self):
        self.stopped = True
        self._process.kill()
        self._process.join()


def _serve(pipe, name, X, y, options):
    warnings.filterwarnings("ignore")
    fit, tell = _PEERS[name]
    fit(*small(X, y, options.pop("warm", 250)), **options)
    pipe.send("ready")
    model = None
    while True:
        try:
            order = pipe.recv()
        except EOFError:
            return
        if order == "answer":
            pipe.send(tell(model, X))
            continue
        gc.collect()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            started = time.perf_counter()
            model = fit(X, y, **options)
            seconds = time.perf_counter() - started
        pipe.send((seconds, not any(issubclass(warning.category, ConvergenceWarning) for warning in told)))


def _fit_svc(X, y, C):
    from sklearnex.svm import SVC

    return SVC(C=C, cache_size=CACHE).fit(X, y)


def _fit_plain_svc(X, y):
    from sklearn.svm import SVC

    return SVC(cache_size=CACHE).fit(X, y)


def _tell_svc(model, X):
    """Support, coefficients, intercept and decision values, 5,000 rows at a time."""
    decision = np.concatenate([
        np.ravel(model.decision_function(X[start:start + 5_000])) for start in range(0, X.shape[0], 5_000)
    ])
    beta = model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else model.dual_coef_
    return model.support_, np.ravel(beta), float(np.ravel(model.intercept_)[0]), decision


def _fit_rehline(X, y):
    from rehline import plqERM_Ridge

    return plqERM_Ridge(loss={"name": "svm"}, C=1.0, max_iter=10_000).fit(X=X, y=2.0 * y - 1.0)


def _tell_rehline(model, X):
    return np.ravel(model.coef_)


def _fit_crammer_singer(X, y, max_iter, tol):
    from sklearn.svm import LinearSVC

    return LinearSVC(multi_class="crammer_singer", max_iter=max_iter, tol=tol).fit(X, y)


def _fit_linear(X, y, **options):
    from sklearn.svm import LinearSVC

    return LinearSVC(**options).fit(X, y)


def _tell_linear(model, X):
    return model.coef_, model.intercept_


def _fit_highs(X, y):
    """min sum |w| + sum [1 - y (Xw + b)]_+ as a linear program in (w+, w-, b, slack)."""
    from scipy.optimize import linprog

    n, d = X.shape
    sign = (2.0 * y - 1.0)[:, None]
    rows = sparse.csr_matrix(np.hstack([sign * X, -sign * X, sign, np.eye(n)]))
    cost = np.concatenate([np.ones(2 * d), [0.0], np.ones(n)])
    bounds = [(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * n
    return linprog(cost, A_ub=-rows, b_ub=-np.ones(n), bounds=bounds, method="highs")


def _tell_value(answer, X):
    return float(answer.fun)


def _fit_conic(X, y, beta):
    """REH as the semidefinite program it comes from, with diag(M) = eta."""
    import cvxpy as cp

    n = len(y)
    G = (X @ X.T) * np.outer(y, y)
    eta, nu, omega, delta = cp.Variable(n), cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True), cp.Variable()
    moments, dual = cp.Variable((n + 1, n + 1), PSD=True), cp.Variable((n + 1, n + 1), PSD=True)
    M = moments[1:, 1:]
    problem = cp.Problem(cp.Minimize(delta), [
        moments[0, 0] == 1, moments[0, 1:] == eta, cp.diag(M) == eta,
        dual[:n, :n] == cp.multiply(G, M), dual[:n, n] == eta + nu - omega,
        dual[n, n] == 2 / beta * (delta - cp.sum(omega) + cp.sum(eta)),
    ])
    return n + problem.solve(solver=cp.CLARABEL)


def _factor(X, y, gamma, beta):
    """diag(y) L / sqrt(beta) with K = L L' in full: to find the rank is a part of what is compared."""
    from sklearn.metrics.pairwise import rbf_kernel

    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=gamma))
    return y[:, None] * vectors * np.sqrt(np.maximum(values, 0.0) / beta)


def _fit_reference(X, y, folder, gamma):
    sys.path.insert(0, folder)
    import ablation_fast

    return ablation_fast.solve_reh(_factor(X, y, gamma, 1.0))["value"]


def _fit_reference_search(X, y, folder, beta):
    sys.path.insert(0, folder)
    import ablation_bnb

    return ablation_bnb.solve(y[:, None] * X / np.sqrt(beta), tol=1e-6, tmax=1e9)["value"]


def _tell_number(answer, X):
    return float(answer)


_PEERS = {
    "sklearnex SVC": (_fit_svc, _tell_svc),
    "scikit-learn SVC": (_fit_plain_svc, _tell_svc),
    "rehline": (_fit_rehline, _tell_rehline),
    "LinearSVC crammer_singer": (_fit_crammer_singer, _tell_linear),
    "LinearSVC": (_fit_linear, _tell_linear),
    "HiGHS LP": (_fit_highs, _tell_value),
    "cvxpy + Clarabel": (_fit_conic, _tell_number),
    "reference REH": (_fit_reference, _tell_number),
    "reference branch and bound": (_fit_reference_search, _tell_number),
}
