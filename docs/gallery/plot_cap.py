"""
A capped loss, and where to put the cap
=======================================

`CappedSVC` counts a power of the residual up to a cap. Rows beyond the cap (ringed) do not count. Too high a cap leaves bad rows in;
too low a cap gives up good rows near the boundary as well, which does little harm here but is a waste of data.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.inspection import DecisionBoundaryDisplay

from outlast import CappedSVC

rng = np.random.default_rng(2)


def sample(n):
    y = np.repeat([0, 1], n)
    return rng.normal(size=(2 * n, 2)) + (2 * y[:, None] - 1) * [1.5, 0.5], y


X, y = sample(60)
X[:9] = rng.normal([7, 4], 0.7, size=(9, 2))  # nine rows moved out, to the wrong side
X_test, y_test = sample(2000)

# %%
# Squared residuals (p = 2), which without a cap are the most sensitive of these losses.

colors = np.array(["tab:blue", "tab:orange"])
figure, axes = plt.subplots(
    2, 2, figsize=(9, 6.6), sharex=True, sharey=True, layout="constrained"
)
for ax, cap in zip(axes.flat, (np.inf, 16.0, 4.0, 0.25)):
    model = CappedSVC(C=1.0, p=2.0, cap=cap).fit(X, y)
    DecisionBoundaryDisplay.from_estimator(
        model,
        X,
        response_method="predict",
        ax=ax,
        grid_resolution=300,
        cmap=ListedColormap(colors),
        alpha=0.2,
    )
    ax.scatter(*X.T, c=colors[y], s=14)
    ax.scatter(
        *X[model.outliers_].T, facecolors="none", edgecolors="black", s=60, linewidth=1
    )
    error = 1 - model.score(X_test, y_test)
    ax.set_title(
        f"cap = {cap:g}: {model.outliers_.sum()} rows beyond, error on clean rows {error:.1%}",
        fontsize=10,
    )
plt.show()

# %%
# ``cap="auto"`` moves the cap during the first rounds so that a given share of the rows (`cap_fraction`) lies beyond it;
# ``cap="cv"`` takes the share from cross-validation.

model = CappedSVC(C=1.0, p=2.0, cap="auto", cap_fraction=0.1).fit(X, y)
print(
    f"cap {model.cap_:.3g}, {model.outliers_.sum()} rows beyond, error {1 - model.score(X_test, y_test):.1%}"
)
