"""Convex outlier ablation written down once more: the semidefinite programs in cvxpy, and the global optimum by enumeration.

In the paper's units: beta = 1 / C, and every value is 1 / C times ours.
"""

import itertools
import warnings

import cvxpy as cp
import numpy as np

ACCURATE = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}


def solved(problem, accuracy=ACCURATE):
    with warnings.catch_warnings():
        # the last digits are hard for semidefinite programs; the tests allow for that
        warnings.simplefilter("ignore")
        problem.solve(solver=cp.CLARABEL, **accuracy)
    return problem.value


def relaxation(K, y, beta, rho=None):
    """REH, or ROD for a share rho, with diag(M) = eta."""
    n = len(y)
    G = K * np.outer(y, y)
    eta, nu, omega, delta = cp.Variable(n), cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True), cp.Variable()
    moments = cp.Variable((n + 1, n + 1), PSD=True)
    dual = cp.Variable((n + 1, n + 1), PSD=True)
    M = moments[1:, 1:]
    constraints = [moments[0, 0] == 1, moments[0, 1:] == eta, cp.diag(M) == eta]
    constraints += [dual[:n, :n] == cp.multiply(G, M), dual[:n, n] == eta + nu - omega]
    if rho is None:
        constraints += [dual[n, n] == 2 / beta * (delta - cp.sum(omega) + cp.sum(eta))]
        return n + solved(cp.Problem(cp.Minimize(delta), constraints))
    constraints += [dual[n, n] == 2 / beta * (delta - cp.sum(omega)), cp.sum(eta) >= rho * n]
    return solved(cp.Problem(cp.Minimize(delta), constraints))


def hinge_minimum(F, beta, intercept=None):
    """min beta/2 |w|^2 + sum [1 - F w]_+, with an unpenalised b y if the labels are given."""
    w, b = cp.Variable(F.shape[1]), cp.Variable()
    margins = F @ w + (0.0 if intercept is None else b * intercept)
    value = solved(cp.Problem(cp.Minimize(beta / 2 * cp.sum_squares(w) + cp.sum(cp.pos(1 - margins)))),
                   {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11})
    return value


def global_optimum(F, beta, intercept=None):
    """min beta/2 |w|^2 + sum min(1, [1 - F w]_+) by looking at every set of kept rows."""
    n = len(F)
    best = float(n)
    for count in range(1, n + 1):
        for kept in itertools.combinations(range(n), count):
            if n - count >= best:
                break
            rows = list(kept)
            labels = None if intercept is None else intercept[rows]
            best = min(best, hinge_minimum(F[rows], beta, labels) + n - count)
    return best
