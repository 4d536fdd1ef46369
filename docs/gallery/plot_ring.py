"""
Outliers further and further out
================================

The synthetic data of Xu, Crammer and Schuurmans: twenty rows of each of two Gaussians, and ten rows on a ring of radius R whose
labels are drawn at random. The test rows are clean. The further out the ring, the more the plain machine and the leave-one-out
machine suffer; machines that give rows up don't mind.
"""

import matplotlib.pyplot as plt
import numpy as np

from outlast import AblationSVC, CentroidSVC, LeaveOneOutSVC, TruncatedSVC

rng = np.random.default_rng(0)
mean, covariance = np.array([3.0, -3.0]), [[20, 16], [16, 20]]


def gaussians(n):
    y = np.repeat([-1, 1], n)
    return y[:, None] * mean + rng.multivariate_normal([0, 0], covariance, 2 * n), y


def with_ring(radius):
    X, y = gaussians(20)
    angle, distance = rng.uniform(0, 2 * np.pi, 10), rng.uniform(radius, radius + 1, 10)
    ring = np.column_stack([distance * np.cos(angle), distance * np.sin(angle)])
    return np.vstack([X, ring]), np.append(y, rng.choice([-1, 1], 10))


X_test, y_test = gaussians(2000)

# %%
# C = 0.01 (the paper's β = 100), and no intercept, as in the paper. ROD is told the share of good rows, 0.8. The mean of 12
# data sets; the plain machine's errors have a heavy tail, so that its line would need many more to be smooth.

machines = {
    "plain": TruncatedSVC(0.01, kernel="linear", truncation=None, fit_intercept=False),
    "leave-one-out": LeaveOneOutSVC(),
    "centroid": CentroidSVC(0.01, fit_intercept=False),
    "REH": AblationSVC("reh", 0.01),
    "ROD, 0.8": AblationSVC("rod", 0.01, inlier_fraction=0.8),
}
radii = [15, 35, 55, 75]
errors = {name: np.zeros(len(radii)) for name in machines}
for at, radius in enumerate(radii):
    for _ in range(12):
        X, y = with_ring(radius)
        for name, machine in machines.items():
            errors[name][at] += 1 - machine.fit(X, y).score(X_test, y_test)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
X, y = with_ring(35)
left.scatter(*X[:40].T, c=np.where(y[:40] > 0, "tab:orange", "tab:blue"), s=18)
left.scatter(*X[40:].T, c=np.where(y[40:] > 0, "tab:orange", "tab:blue"), marker="x")
left.set(title="one data set, R = 35 (crosses: the ring)", aspect="equal")
for name, total in errors.items():
    right.plot(radii, total / 12, marker="o", label=name)
right.set(xlabel="radius R of the ring", ylabel="error on clean rows", ylim=(0, None))
right.legend()
plt.show()
