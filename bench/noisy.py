"""Clean data sets and known mistakes made in them, for bench/audit.py."""

from functools import lru_cache
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

#: Most rows taken of a set, drawn evenly.
MOST_ROWS = 1500

#: Sets that scikit-learn brings along.
BUILT_IN = {"iris": datasets.load_iris, "breast cancer": datasets.load_breast_cancer, "digits": datasets.load_digits}

#: Sets in the folder of --data.
FILES = {
    "wine": "wine.csv",
    "ionosphere": "ionosphere.csv",
    "banknote": "banknote.csv",
    "segment": "segment.csv",
    "vehicle": "vehicle.csv",
    "spambase": "spambase.csv.gz",
    "twonorm": "twonorm.csv.gz",
    "dna": "dna.csv.gz",
    "pendigits": "pendigits_test.csv",
    "usps": "usps_test.csv.gz",
}

#: The sets by whose mean the score was chosen. The figures of the others were computed in the same runs, and seen.
CHOSEN_ON = ("breast cancer", "wine", "segment", "vehicle", "spambase", "twonorm")


@lru_cache(maxsize=4)
def clean(name, folder):
    """X and y of a set, y from 0; None if its file is not there."""
    if name in BUILT_IN:
        X, y = BUILT_IN[name](return_X_y=True)
    else:
        import pandas

        path = Path(folder or ".") / FILES[name]
        if folder is None or not path.is_file():
            return None
        table = pandas.read_csv(path, dtype=np.float64).to_numpy()
        X, y = np.ascontiguousarray(table[:, :-1]), table[:, -1]
    y = np.unique(y, return_inverse=True)[1]
    if len(y) > MOST_ROWS:
        some = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        X, y = X[some], y[some]
    return X.astype(np.float64), y


def uniform(X, y, rng, share):
    """A share of the labels, drawn evenly, becomes one of the others."""
    wrong = _draw(rng, np.full(len(y), 1.0), share)
    return X, _others(y, wrong, rng), wrong


def pairwise(X, y, rng, share):
    """A share of the labels becomes the next class: every mistake of a class goes the same way."""
    wrong = _draw(rng, np.full(len(y), 1.0), share)
    return X, np.where(wrong, (y + 1) % (y.max() + 1), y), wrong


def boundary(X, y, rng, share):
    """Rows near the boundary of a logistic regression are the likelier ones; they get the likeliest other class."""
    Z = StandardScaler().fit_transform(X)
    likely = LogisticRegression(max_iter=2000).fit(Z, y).predict_proba(Z)
    own = likely[np.arange(len(y)), y]
    likely[np.arange(len(y)), y] = -1.0
    distance = np.argsort(np.argsort(np.abs(own - likely.max(axis=1)))) / len(y)
    wrong = _draw(rng, np.exp(-5.0 * distance), share)
    return X, np.where(wrong, likely.argmax(axis=1), y), wrong


def outliers(X, y, rng, share):
    """Half of them get another label and are moved far out, on the side where they are; the others only get a label."""
    wrong = _draw(rng, np.full(len(y), 1.0), share)
    moved = np.flatnonzero(wrong)[::2]
    X = X.copy()
    X[moved] = X.mean(axis=0) + 5.0 * (X[moved] - X.mean(axis=0))
    return X, _others(y, wrong, rng), wrong


NOISES = {
    "uniform 10 %": (uniform, 0.1),
    "uniform 20 %": (uniform, 0.2),
    "pairwise 20 %": (pairwise, 0.2),
    "boundary 10 %": (boundary, 0.1),
    "outliers 10 %": (outliers, 0.1),
}


def noisy(name, noise, folder, seed=0):
    """X, y with mistakes, and which rows those are; None if the set is not there."""
    found = clean(name, folder)
    if found is None:
        return None
    make, share = NOISES[noise]
    rng = np.random.default_rng([seed, list(NOISES).index(noise), sum(map(ord, name))])
    return make(*found, rng, share)


def _draw(rng, likely, share):
    wrong = np.zeros(len(likely), dtype=bool)
    wrong[rng.choice(len(likely), round(share * len(likely)), replace=False, p=likely / likely.sum())] = True
    return wrong


def _others(y, wrong, rng):
    step = rng.integers(1, y.max() + 1, len(y))
    return np.where(wrong, (y + step) % (y.max() + 1), y)
