"""The L_q support vector machine written down once more: its value, its convex cases by cvxpy, and the paper's algorithm."""

import cvxpy as cp
import numpy as np


def costs(codes, k, cost=None):
    """What each row pays for each class, rows x classes: the cost matrix at its own class, by default 1 for any other class."""
    matrix = 1.0 - np.eye(k) if cost is None else np.asarray(cost, dtype=float)
    return matrix[codes]


def value(w, b, X, codes, C, q, cost=None):
    """sum |w|^q + C sum_i (costs) (hinge): one function for two classes, else Lee, Lin and Wahba's hinge."""
    w, b = np.atleast_2d(w), np.ravel(b)
    f = X @ w.T + b
    if len(w) == 1:
        pays = costs(codes, 2, cost)[np.arange(len(codes)), 1 - codes]
        loss = pays @ np.maximum(0, 1 - np.where(codes == 1, 1, -1) * f[:, 0])
    else:
        loss = (costs(codes, len(w), cost) * np.maximum(0, f + 1)).sum()
    return (np.abs(w) ** q).sum() + C * loss


def minimum(X, codes, C, q, cost=None, k=2):
    """The least value, q >= 1, by a general convex solver."""
    functions = 1 if k == 2 else k
    w, b = cp.Variable((functions, X.shape[1])), cp.Variable(functions)
    f = X @ w.T + np.ones((len(X), 1)) @ cp.reshape(b, (1, functions), order="C")
    penalty = cp.norm1(cp.vec(w, order="C")) if q == 1 else cp.sum(cp.power(cp.abs(w), q))
    if k == 2:
        pays = costs(codes, 2, cost)[np.arange(len(codes)), 1 - codes]
        loss = pays @ cp.pos(1 - cp.multiply(np.where(codes == 1, 1.0, -1.0), f[:, 0]))
        constraints = []
    else:
        loss = cp.sum(cp.multiply(costs(codes, k, cost), cp.pos(f + 1)))
        constraints = [cp.sum(w, axis=0) == 0, cp.sum(b) == 0]
    return cp.Problem(cp.Minimize(penalty + C * loss), constraints).solve(solver=cp.CLARABEL)


def discriminant(X, codes, k):
    """Linear discriminant analysis of standardised columns, the start of the paper's algorithm, on the columns as they came."""
    n, d = X.shape
    centre, spread = X.mean(axis=0), X.std(axis=0)
    Z = (X - centre) / spread
    means = np.array([Z[codes == j].mean(axis=0) for j in range(k)])
    pooled = sum(np.cov(Z[codes == j].T, ddof=0) * np.sum(codes == j) for j in range(k)) / (n - k)
    if d >= n:
        pooled = pooled + 0.01 * np.eye(d)
    w = np.linalg.solve(pooled, means.T).T
    b = np.array([np.log(np.mean(codes == j)) - means[j] @ w[j] / 2 for j in range(k)]) - (w / spread) @ centre
    w = w / spread
    if k == 2:
        return w[1:] - w[:1], b[1:] - b[:1]
    return w - w.mean(axis=0), b - b.mean()


def lqa_step(w, b, X, codes, C, q, floor, cost=None):
    """One local quadratic approximation, in the free parameters of the paper's appendix: all functions but the last.

    |z| of the hinge and |w|^q are replaced by the parabolas that touch them where they are; numbers below `floor` count as
    `floor`.
    """
    w, b = np.atleast_2d(w), np.ravel(b)
    n, d = X.shape
    k = len(w)
    rows = np.c_[np.ones(n), X]
    if k == 1:
        sign = np.where(codes == 1, 1.0, -1.0)
        pays = C * costs(codes, 2, cost)[np.arange(n), 1 - codes]
        z = 1 - sign * (X @ w[0] + b[0])
        # [z]_+ <= z^2 / (4 |z0|) + z / 2 + |z0| / 4 with z = 1 - sign f
        curve = pays / (2 * np.maximum(np.abs(z), floor))
        weight = q * np.maximum(np.abs(w[0]), floor) ** (q - 2)
        matrix = rows.T @ (curve[:, None] * rows) + np.diag(np.r_[0, weight])
        target = rows.T @ (curve * sign + pays / 2 * sign)
        found = np.linalg.solve(matrix, target)
        return found[1:][None], found[:1]
    pays = C * costs(codes, k, cost)
    z = X @ w.T + b + 1
    curve = pays / (2 * np.maximum(np.abs(z), floor))
    size = (k - 1) * (d + 1)
    matrix, target = np.zeros((size, size)), np.zeros(size)

    def block(at):
        return slice(at * (d + 1), (at + 1) * (d + 1))

    last = rows.T @ (curve[:, -1][:, None] * rows)
    for one in range(k - 1):
        weight = np.r_[0, q * np.maximum(np.abs(w[one]), floor) ** (q - 2)]
        matrix[block(one), block(one)] += rows.T @ (curve[:, one][:, None] * rows) + np.diag(weight)
        target[block(one)] += rows.T @ (curve[:, -1] + pays[:, -1] / 2 - curve[:, one] - pays[:, one] / 2)
        for other in range(k - 1):
            both = np.r_[0, q * np.maximum(np.abs(w[-1]), floor) ** (q - 2)]
            matrix[block(one), block(other)] += last + np.diag(both)
    # the intercepts of a cost matrix with a column of zeros are not determined
    found = np.linalg.lstsq(matrix, target, rcond=None)[0].reshape(k - 1, d + 1)
    found = np.vstack([found, -found.sum(axis=0)])
    return found[:, 1:], found[:, 0]
