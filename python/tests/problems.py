"""Two-class data sets shared by the tests, and the objective written down once more in numpy."""

import numpy as np
from scipy import sparse
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_moons,
)
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import StandardScaler


def _two(bunch, first, second):
    keep = np.isin(bunch.target, [first, second])
    return bunch.data[keep], (bunch.target[keep] == second).astype(int)


def _standard(X, y):
    return StandardScaler().fit_transform(X), y


def _sparse():
    rng = np.random.default_rng(0)
    X = sparse.random(300, 40, density=0.1, random_state=0, format="csr")
    y = (X @ rng.standard_normal(40) + 0.3 * rng.standard_normal(300) > 0).astype(int)
    return X, y


SETS = {
    "breast_cancer": lambda: _standard(*load_breast_cancer(return_X_y=True)),
    "iris": lambda: _two(load_iris(), 1, 2),
    "digits_3_8": lambda: _standard(*_two(load_digits(), 3, 8)),
    "wine": lambda: _standard(*_two(load_wine(), 0, 1)),
    "classification": lambda: make_classification(300, 10, flip_y=0.1, random_state=1),
    "moons": lambda: make_moons(250, noise=0.35, random_state=2),
    "sparse": _sparse,
}


def signs(model, y):
    """-1 and +1 by the order of classes_."""
    return np.where(y == model.classes_[1], 1.0, -1.0)


def caps(model, y, weight=None):
    """C times the sample weight."""
    return model.C * (np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float))


def expansion(model):
    """The coefficients of the support vectors; SVC keeps them sparse when X is."""
    beta = model.dual_coef_
    return np.ravel(beta.toarray() if sparse.issparse(beta) else beta)


def kernel_values(model, X):
    """The n x n kernel values in double precision, by scikit-learn."""
    if callable(model.kernel):
        return np.asarray(model.kernel(X, X))
    if model.kernel == "precomputed":
        return np.asarray(X)
    dense = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    gamma = {"scale": 1 / (X.shape[1] * dense.var()), "auto": 1 / X.shape[1]}.get(model.gamma, model.gamma)
    parameters = {"gamma": gamma, "degree": model.degree, "coef0": model.coef0}
    return pairwise_kernels(dense, metric=model.kernel, filter_params=True, **parameters)


def parts(model, X):
    """1/2 |f|^2 and f on the rows of X, both from the coefficients alone: beta'K beta / 2 and K beta + b."""
    beta = np.zeros(X.shape[0])
    beta[model.support_] = expansion(model)
    values = kernel_values(model, X) @ beta
    return 0.5 * float(beta @ values), values + np.ravel(model.intercept_)[0]


def objective(model, X, y, truncation, weight=None):
    """1/2 |f|^2 + C sum w min([1 - y f]_+, 1 - s) of the function that predicts."""
    if model.kernel == "linear":
        norm, decision = 0.5 * float((model.coef_**2).sum()), np.ravel(X @ model.coef_[0]) + model.intercept_[0]
    else:
        norm, decision = parts(model, X)
    loss = np.maximum(0.0, 1.0 - signs(model, y) * decision)
    if truncation is not None:
        loss = np.minimum(loss, 1.0 - truncation)
    return norm + float(caps(model, y, weight) @ loss)
