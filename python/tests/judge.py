"""The many-class problem written down once more: in cvxpy, solved by Clarabel, and in numpy.

    penalty(f) + C sum_i sum_j U[y_i, j] l(f_j - max_{l != j} f_l),    sum_j f_j = 0

With two classes f_1 = -f/2 and f_2 = f/2, and the penalty is that of f.
"""

import warnings

import cvxpy as cp
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

ACCURATE = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}


def features(X, gamma=None):
    """Rows whose inner products are the kernel's values: a kernel problem is a linear one on them."""
    if gamma is None:
        return X
    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=gamma))
    kept = values > 1e-13 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def factors(codes, k, utility=None):
    """U[y_i, j]"""
    return (np.eye(k) if utility is None else np.asarray(utility))[codes]


def margins(F):
    """f_j - max_{l != j} f_l of every row and class."""
    k = F.shape[1]
    rivals = np.stack([np.delete(F, j, axis=1).max(axis=1) for j in range(k)], axis=1)
    return F - rivals


def _functions(Z, k, intercept):
    """All f_j on the rows, the weights, and what they must satisfy."""
    n, d = Z.shape
    if k == 2:
        w, b = cp.Variable((1, d)), cp.Variable(1)
        f = Z @ w[0] + (b[0] if intercept else 0.0)
        return cp.vstack([-f / 2, f / 2]).T, w, []
    w, b = cp.Variable((k, d)), cp.Variable((1, k))
    F = Z @ w.T
    if intercept:
        F = F + np.ones((n, 1)) @ b
    return F, w, [cp.sum(w, axis=0) == 0, cp.sum(b) == 0]


def _loss(name, minus_margin):
    return {
        "hinge": lambda: cp.pos(1 + minus_margin),
        "logistic": lambda: cp.logistic(minus_margin),
        "exponential": lambda: cp.exp(minus_margin),
    }[name]()


def minimum(Z, weights, C, *, penalty="l2", rates=None, loss="hinge", intercept=True):
    """The least value of the convex problem with these factors of the terms, rows x classes."""
    k = weights.shape[1]
    F, w, constraints = _functions(Z, k, intercept)
    total = 0
    for j in range(k):
        rows = np.flatnonzero(weights[:, j] > 0)
        if len(rows):
            others = [c for c in range(k) if c != j]
            minus_margin = cp.max(F[rows][:, others], axis=1) - F[rows, j]
            total = total + weights[rows, j] @ _loss(loss, minus_margin)
    if penalty == "l2":
        size = 0.5 * cp.sum_squares(w)
    else:
        rates = np.ones(w.shape) if rates is None else rates
        free = np.isfinite(rates)
        constraints += [w[~free] == 0] if (~free).any() else []
        size = cp.sum(cp.multiply(np.where(free, rates, 0.0), cp.abs(w)))
    problem = cp.Problem(cp.Minimize(size + C * total), constraints)
    with warnings.catch_warnings():
        # Clarabel says "almost solved" where 1e-11 is beyond reach; its value is good to far less than is asserted
        warnings.simplefilter("ignore", UserWarning)
        return float(problem.solve(solver=cp.CLARABEL, **ACCURATE))


def penalty_of(model, rates=None):
    """The penalty of a linear model."""
    if model.penalty == "l2":
        return 0.5 * float((model.coef_**2).sum())
    rates = np.ones_like(model.coef_) if rates is None else rates
    used = model.coef_ != 0
    return float((rates[used] * np.abs(model.coef_[used])).sum())


def decision(model, X, gamma=None):
    """f_j on the training rows in double precision, from the coefficients alone; two columns for two classes."""
    if gamma is None:
        F = X @ model.coef_.T + model.intercept_
    else:
        F = rbf_kernel(X, gamma=gamma)[:, model.support_] @ model.dual_coef_.T + model.intercept_
    return np.hstack([-F / 2, F / 2]) if F.shape[1] == 1 else F


def value(model, X, codes, *, utility=None, gamma=None, rates=None, truncation=None):
    """The objective of a hinge model, by its definition."""
    F = decision(model, X, gamma)
    if gamma is None:
        size = penalty_of(model, rates)
    else:
        V = np.zeros((len(X), model.dual_coef_.shape[0]))
        V[model.support_] = model.dual_coef_.T
        size = 0.5 * float((V * (rbf_kernel(X, gamma=gamma) @ V)).sum())
    losses = np.maximum(0.0, 1.0 - margins(F))
    if truncation is not None:
        losses = np.minimum(losses, 1.0 - truncation)
    return size + model.C * float((factors(codes, F.shape[1], utility) * losses).sum())
