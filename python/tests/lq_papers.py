"""The simulated examples of the paper on L_q support vector machines (Liu, Zhang, Park and Ahn)."""

import numpy as np

BAYES_SCALE = 1.101
"""The paper draws no label noise, yet states a Bayes error of .2216: that of P(y = 1) = 1 / (1 + exp(-1.101 f))."""


def example_1(rows, rng):
    """Twenty uniform columns of which three count."""
    X = rng.uniform(size=(rows, 20))
    f = 2 * X[:, 0] + 4 * X[:, 1] + 4 * X[:, 2] - 4.8
    return X, np.where(rng.uniform(size=rows) < 1 / (1 + np.exp(-BAYES_SCALE * f)), 1, -1)


def example_3(rows, noise, rng):
    """A disc in the unit square, its rim drawn at random, beside columns of noise."""
    inside = rng.uniform(size=(rows, 2))
    distance = ((inside - 0.5) ** 2).sum(axis=1)
    y = np.where(distance < 0.07, 1, -1)
    rim = (distance >= 0.07) & (distance <= 0.13)
    y[rim] = rng.choice([-1, 1], rim.sum())
    return np.c_[inside, rng.standard_normal((rows, noise))], y


def example_4(rows, rng):
    """Three Gaussian classes in the plane."""
    y = rng.integers(0, 3, rows)
    centres = np.array([[np.sqrt(3), 1.0], [-np.sqrt(3), 1.0], [0.0, -2.0]])
    return centres[y] + np.sqrt(2) * rng.standard_normal((rows, 2)), y
