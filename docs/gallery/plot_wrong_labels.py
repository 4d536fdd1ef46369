"""
Wrong labels: the plain and the truncated machine
=================================================

A tenth of the labels is flipped, and a cluster of rows far out carries the wrong label too. The plain support vector machine
pays for each of them in proportion to its distance, and turns its boundary towards them. The truncated machine pays no more than
a constant for any row, gives these rows up (crosses) and keeps the boundary that the other rows ask for (dashed: the boundary
by which the labels were made).
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.inspection import DecisionBoundaryDisplay

from outlast import TruncatedSVC

rng = np.random.default_rng(3)
X = rng.normal(size=(200, 2)) * 1.4
clean = (X[:, 0] + X[:, 1] > 0).astype(int)
y = np.where(rng.random(200) < 0.1, 1 - clean, clean)
X = np.vstack(
    [X, rng.normal([6.0, -1.5], 0.5, size=(16, 2))]
)  # sixteen rows far out ...
y = np.append(y, np.zeros(16, dtype=int))  # ... on the wrong side

# %%
# The same data, the same kernel, the same C; only the truncation differs.

models = {
    "plain: truncation=None": TruncatedSVC(C=1.0, kernel="linear", truncation=None).fit(
        X, y
    ),
    "truncated at −1 (the default)": TruncatedSVC(C=1.0, kernel="linear").fit(X, y),
}

colors = np.array(["tab:blue", "tab:orange"])
test = rng.normal(size=(5000, 2)) * 1.4
truth = test.sum(axis=1) > 0
figure, axes = plt.subplots(
    1, 2, figsize=(9, 4.2), sharex=True, sharey=True, layout="constrained"
)
for ax, (name, model) in zip(axes, models.items()):
    DecisionBoundaryDisplay.from_estimator(
        model,
        np.array([[-4.5, -4.5], [7.5, 4.5]]),
        response_method="predict",
        ax=ax,
        eps=0.0,
        grid_resolution=300,
        cmap=ListedColormap(colors),
        alpha=0.2,
    )
    given_up = model.outliers_
    ax.scatter(*X[~given_up].T, c=colors[y[~given_up]], s=16)
    ax.scatter(*X[given_up].T, c=colors[y[given_up]], marker="x", s=30)
    ax.plot([-4.5, 4.5], [4.5, -4.5], "k--", linewidth=1)
    error = np.mean((model.predict(test) == 1) != truth)
    ax.set_title(
        f"{name}\nerror on clean rows {error:.1%}, rows given up: {given_up.sum()}",
        fontsize=10,
    )
    ax.set(xlim=(-4.5, 7.5), ylim=(-4.5, 4.5))
plt.show()
