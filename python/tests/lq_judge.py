"""The L_q support vector machine written down once more: its value, its convex cases by cvxpy, and the paper's algorithm."""

import cvxpy as cp
import numpy as np


def costs(codes, k, cost=None):
    """What each row pays for each class, rows x classes: the cost matrix at its own class, by default 1 for any other class."""
    matrix = 1.0 - np.eye(k) if cost is None else np.asarray(cost, dtype=float)
    return matrix[codes]


def terms(codes, m, C, cost=None, weights=None):
    """The sign of each term and what it costs, rows x functions: one function for two classes, else one for each."""
    caps = C * (np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=float))
    if m == 1:
        pays = costs(codes, 2, cost)[np.arange(len(codes)), 1 - codes]
        return np.where(codes == 1, 1.0, -1.0)[:, None], (caps * pays)[:, None]
    return np.full((len(codes), m), -1.0), caps[:, None] * costs(codes, m, cost)


def value(w, b, X, codes, C, q, cost=None, weights=None):
    """sum |w|^q + C sum_i (costs) (hinge): one function for two classes, else Lee, Lin and Wahba's hinge."""
    w, b = np.atleast_2d(w), np.ravel(b)
    sign, pays = terms(codes, len(w), C, cost, weights)
    return (np.abs(w) ** q).sum() + (pays * np.maximum(0, 1 - sign * (X @ w.T + b))).sum()


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


def discriminant(X, codes, k, weights=None):
    """Linear discriminant analysis of standardised columns, the start of the paper's algorithm, on the columns as they came.

    A row of weight 2 counts as two; the ridge is for fewer rows than columns, however often they count.
    """
    n, d = X.shape
    counts = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    total = counts.sum()
    centre = counts @ X / total
    spread = np.sqrt(counts @ (X - centre) ** 2 / total)
    Z = (X - centre) / spread
    shares = np.array([counts[codes == j].sum() for j in range(k)]) / total
    means = np.array([np.average(Z[codes == j], axis=0, weights=counts[codes == j]) for j in range(k)])
    apart = Z - means[codes]
    pooled = apart.T @ (counts[:, None] * apart) / (total - k)
    if d >= np.sum(counts > 0):
        pooled = pooled + 0.01 * np.eye(d)
    w = np.linalg.solve(pooled, means.T).T
    b = np.log(shares) - (means * w).sum(axis=1) / 2 - (w / spread) @ centre
    w = w / spread
    if k == 2:
        return w[1:] - w[:1], b[1:] - b[:1]
    return w - w.mean(axis=0), b - b.mean()


def lqa_step(w, b, X, codes, C, q, floor, cost=None, weights=None):
    """One local quadratic approximation: |z| of the hinge and |w|^q are replaced by the parabolas that touch them where they are.

    Numbers below `floor` count as `floor`. The unknowns are v = w / |w0|^(1 - q/2), whose penalty is q/2 sum v^2 however small w0 is,
    and b; that functions sum to 0 is kept by multipliers. (The paper's appendix leaves out the last function instead, and loses all
    digits where its coefficients vanish.)
    """
    w, b = np.atleast_2d(w), np.ravel(b)
    (n, d), m = X.shape, len(w)
    sign, pays = terms(codes, m, C, cost, weights)
    # [z]_+ <= z^2 / (4 |z0|) + z / 2 + |z0| / 4 with z = 1 - sign f
    z = 1 - sign * (X @ w.T + b)
    curve = pays / (2 * np.maximum(np.abs(z), floor))
    size = np.maximum(np.abs(w), floor) ** (1 - q / 2)
    parts, sums = m * (d + 1), 0 if m == 1 else d + 1
    matrix, target = np.zeros((parts + sums, parts + sums)), np.zeros(parts + sums)
    for one in range(m):
        at = slice(one * (d + 1), (one + 1) * (d + 1))
        rows = np.c_[np.ones(n), X * size[one]]
        matrix[at, at] = rows.T @ (curve[:, [one]] * rows) + q * np.diag(np.r_[0, np.ones(d)])
        target[at] = rows.T @ (sign[:, one] * (curve[:, one] + pays[:, one] / 2))
        if sums:
            matrix[parts:, at] = np.diag(np.r_[1, size[one] / np.linalg.norm(size, axis=0)])
            matrix[at, parts:] = matrix[parts:, at]
    found = np.linalg.solve(matrix, target)[:parts].reshape(m, d + 1)
    return found[:, 1:] * size, found[:, 0]
