"""The data of the benchmark: synthetic ones made here, real ones read from a folder."""

from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file, make_classification

FILES = {
    "ijcnn1": "ijcnn1.libsvm.gz",
    "a9a": "a9a_train.libsvm.gz",
    "mnist": "mnist_train.csv.gz",
    "covtype": "covtype.csv.gz",
    "pendigits": "pendigits_train.csv",
    "letter": "letter.csv",
}


@lru_cache(maxsize=1)
def synthetic(rows, columns):
    """make_classification with a tenth of the labels drawn anew."""
    return make_classification(rows, columns, flip_y=0.1, random_state=0)


@lru_cache(maxsize=1)
def classes(rows, columns, count):
    """make_classification with that many classes and a tenth of the labels drawn anew."""
    return make_classification(rows, columns, n_informative=10, n_classes=count, flip_y=0.1, random_state=0)


def sparse_truth(rows, columns, count):
    """Gaussian columns of which ten decide, in one linear rule per class, and a tenth of the labels drawn anew."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    y = (X[:, :10] @ rng.standard_normal((10, count))).argmax(axis=1)
    flip = rng.random(rows) < 0.1
    y[flip] = rng.integers(0, count, flip.sum())
    return X, y


def thinned(X):
    """The first ten columns as they are, and two in a hundred entries of the others."""
    hidden = np.random.default_rng(1).random(X.shape) < 0.98
    hidden[:, :10] = False
    return sparse.csr_matrix(np.where(hidden, 0.0, X))


def genes(rows, columns, count):
    """Many more columns than rows: a shift in twenty columns for each class, and a tenth of the labels drawn anew."""
    rng = np.random.default_rng(0)
    y = np.arange(rows) % count
    X = rng.standard_normal((rows, columns))
    for label in range(count):
        X[np.ix_(y == label, np.arange(20 * label, 20 * label + 20))] += 1.0
    flip = rng.random(rows) < 0.1
    y[flip] = rng.integers(0, count, flip.sum())
    return X, y


def ring(rows, columns):
    """Two Gaussian classes that overlap and, as the last fifth of the rows, a ring around them with labels at random."""
    rng = np.random.default_rng(0)
    far = rows // 5
    near = rows - far
    y = np.where(np.arange(near) % 2 == 0, 1, -1)
    factor = np.linalg.cholesky(np.array([[20.0, 16.0], [16.0, 20.0]]))
    X = 4.0 * rng.standard_normal((rows, columns))
    X[:near, :2] = rng.standard_normal((near, 2)) @ factor.T + y[:, None] * [3.0, -3.0]
    angle, length = rng.uniform(0, 2 * np.pi, far), 55 + rng.uniform(0, 1, far)
    X[near:, :2] = length[:, None] * np.c_[np.cos(angle), np.sin(angle)]
    return X, np.r_[y, rng.choice([-1, 1], far)]


def missing(name, folder):
    """Why a real data set can't be read, or None."""
    if folder is None:
        return "needs --data DIR"
    path = Path(folder) / FILES[name]
    return None if path.is_file() else f"{path} is not there"


def real(name, folder):
    """X and y in {0, 1} of a real data set."""
    path = str(Path(folder) / FILES[name])
    if name in ("ijcnn1", "a9a"):
        X, y = load_svmlight_file(path)
        return X, (y > 0).astype(int)
    import pandas

    rows = 10_000 if name == "mnist" else None
    table = pandas.read_csv(path, nrows=rows, dtype=np.float64).to_numpy()
    X, label = np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(int)
    if name == "mnist":
        return X / 255.0, label % 2
    return _standardized(X), (label == 2).astype(int)


def classes_of(name, folder):
    """Standardised X and all classes of a real data set."""
    import pandas

    table = pandas.read_csv(str(Path(folder) / FILES[name]), dtype=np.float64).to_numpy()
    return _standardized(np.ascontiguousarray(table[:, :-1])), table[:, -1].astype(int)


def _standardized(X):
    spread = X.std(axis=0)
    X -= X.mean(axis=0)
    X /= np.where(spread > 0, spread, 1.0)
    return X
